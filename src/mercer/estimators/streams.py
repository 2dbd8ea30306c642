"""Learning from rows as they arrive: what `partial_fit` adds to an estimator fitted by passes."""

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from ..bases import PointBasis
from ..certificate import Certificate
from ..compute import format_bytes, is_sparse, to_numpy
from ..compute.arrays import is_foreign
from ..expansion import KernelExpansion
from ..hebbian import GrowingHebbian
from ..selectors import Novelty
from .validation import float_type, restore_like

# Copies of the Gram matrix of the points that are alive while points leave.
GRAM_COPIES = 4
# Directions carried beyond those asked for, unless a number is given.
OVERSAMPLING = 10


class StreamMixin:
    """`partial_fit` on the points, frame and variances of a `GrowingHebbian`."""

    def partial_fit(self, X, y=None):
        """Learn more rows, in their order, from the start or from the fitted model.

        The first rows settle the kernel and must be as many as the components at least. New
        rows join the points of the model unless `novelty` says that they are no news; beyond
        `budget` the least useful leave. What either costs is in `novelty_loss_` and
        `budget_loss_`. With `forgetting` the model follows data that drift. An interrupt
        (Ctrl-C) leaves the model of the last whole block and is passed on.

        Parameters
        ----------
        X : array-like or sparse CSR matrix of shape (n, n_features)
        y : ignored

        Returns
        -------
        self
        """
        first = not hasattr(self, "expansion_")
        if first:
            self._validate_params()
        source, X = (
            X,
            validate_data(
                self,
                to_numpy(X) if is_foreign(X) else X,
                reset=first,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
            ),
        )
        self._check_stream()
        if first:
            self._begin_stream(X)
        self._check_room(X)
        if self._stream is None:
            self._stream = self._resume()
        try:
            self._stream.partial_fit(match_sparsity(X.astype(float), self._stream))
        finally:
            if self._stream.count:
                self._read_stream(X, source)
        return self

    def _close_stream(self, variance, count):
        """Forget what `partial_fit` left; a stream may go on from the model fitted now."""
        self._stream, self._variance, self.n_samples_seen_ = None, variance, count
        for name in ("landmarks_", "budget_loss_", "novelty_loss_"):
            vars(self).pop(name, None)

    def _check_stream(self):
        if self._is_precomputed():
            raise ValueError("partial_fit needs points, and a precomputed kernel has none.")
        if self.budget is not None and self.budget <= self.n_components:
            raise ValueError(
                f"budget={self.budget} points cannot hold n_components={self.n_components} and a "
                "mean. Give a larger budget."
            )
        if isinstance(self.novelty, Novelty) and self.novelty.threshold is None:
            raise ValueError(
                "novelty=Novelty() has no threshold to tell new rows by. Give one, for example "
                "Novelty(threshold=0.1)."
            )

    def _check_room(self, X):
        """The Gram matrix of the points is kept, and must fit the budget."""
        if self._stream is None:
            points = 0 if not hasattr(self, "X_fit_") else self.X_fit_.shape[0]
        else:
            points = self._stream.points.shape[0] if self._stream.count else 0
        if self.budget is not None:
            points = max(points, min(self.budget, points + X.shape[0])) + self.block
        elif self.novelty is None:
            points += X.shape[0]
        need, memory = GRAM_COPIES * 8 * points**2, self._make_engine().memory
        if need > memory:
            raise ValueError(
                f"partial_fit keeps the kernel between its points, which takes "
                f"{format_bytes(need)} for {points:,} points, and memory allows "
                f"{format_bytes(memory)}. Give a budget or a novelty, or raise memory."
            )

    def _begin_stream(self, X):
        self._check_size(X)
        self.kernel_ = self._make_kernel(X)
        self._set_gamma(X)
        self._dtype = X.dtype
        self._stream = self._make_stream()

    def _make_stream(self):
        novelty = self.novelty
        return GrowingHebbian(
            self.kernel_,
            self.n_components,
            self.forgetting,
            self.budget,
            OVERSAMPLING if self.oversampling is None else self.oversampling,
            self.block,
            novelty.threshold if isinstance(novelty, Novelty) else novelty,
            self.center,
        )

    def _resume(self):
        """A stream that goes on from the fitted model."""
        n, values = self.n_samples_seen_, to_numpy(self.eigenvalues_).astype(float)
        points, frame = self.X_fit_, to_numpy(self.expansion_.frame)
        points = (points if is_sparse(points) else to_numpy(points)).astype(float)
        stream = self._make_stream().resume(points, frame, values / n, self._variance, n)
        del self.X_fit_, self.eigenvectors_
        return stream

    def _read_stream(self, X, source):
        """The expansion and the shares of variance as the stream has them now."""
        stream = self._stream
        columns = np.concatenate([[0], 1 + stream.leading])
        basis = PointBasis(self.kernel_, stream.points, self._make_engine())
        frame, metric = stream.frame[:, columns], stream.metric[np.ix_(columns, columns)]
        self.expansion_ = KernelExpansion(basis, frame, metric)
        values, count = stream.variances[stream.leading], stream.count
        shares = np.minimum(values / max(stream.variance, np.finfo(float).tiny), 1.0)
        share = float(min(1.0, shares.sum()))

        def out(array):
            return restore_like(np.asarray(array, dtype=float_type(X)), source)

        self.eigenvalues_ = out(values * count)
        self.explained_variance_ = out(values * count / max(count - self.center, 1))
        self.explained_variance_ratio_ = out(shares)
        self.landmarks_, self.n_samples_seen_ = stream.points, count
        self.budget_loss_, self.novelty_loss_ = stream.lost[columns], stream.missed[columns]
        totals = values * count
        self.certificate_ = Certificate("estimate", totals, totals, None, (share, share), True)


def match_sparsity(X, stream):
    """X sparse or dense as the points of the stream are."""
    if not stream.count or is_sparse(X) == is_sparse(stream.points):
        return X
    return sparse.csr_matrix(X) if is_sparse(stream.points) else X.toarray()
