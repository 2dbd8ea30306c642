"""Hebbian learning from batches: points join the model, leave it, and its components are read."""

from typing import Any, Self

import numpy as np

from ..bases import PointBasis
from ..compute import format_bytes, is_sparse, match_sparsity, restore, to_numpy
from ..compute.arrays import Array, is_foreign
from ..fitting.certificate import Certificate
from ..fitting.expansion import KernelExpansion
from ..hebbian import GrowingHebbian
from ..rows import ArrayRows
from ..rows.array import in_type
from ._batches import novelty_threshold
from ._door import become, in_one_place, unfitted, valid_rows
from ._model import KernelModel

# Copies of the Gram matrix of the points that are alive while points leave.
GRAM_COPIES = 4
# Directions a stream carries beyond those asked for, unless a number is given.
OVERSAMPLING = 10


class HebbianStream(KernelModel):
    """`partial_fit`: a stream of rows whose points are kept, at most `budget` of them.

    A subclass has the parameters ``n_components, block, oversampling, forgetting, budget,
    novelty, center`` beside those of `KernelModel`.
    """

    n_components: int
    block: int
    oversampling: int | None
    forgetting: float
    budget: int | None
    novelty: Any
    center: bool
    #: The stream that `partial_fit` goes on with; None after `fit`.
    _stream: GrowingHebbian | None

    def partial_fit(self, X: Array, y: Any = None) -> Self:
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
        if "expansion_" in vars(self):
            return self._learn_batch(X, first=False)
        self._validate_params()
        fresh = unfitted(self)
        try:
            fresh._learn_batch(X, first=True)
        finally:
            if "expansion_" in vars(fresh):
                become(self, fresh)
        return self

    def _learn_batch(self, X, first: bool):
        """Learn the rows of a batch; what an interrupt leaves is the model of whole blocks."""
        rows = self._open_batch(X, first)
        self._check_stream()
        stream = self._begin_stream(rows) if first else self._stream or self._resume()
        self._check_room(rows.array, stream)
        like = stream.points if stream.count else None
        try:
            stream.partial_fit(match_sparsity(rows.array.astype(float), like))
        finally:
            if stream.count:
                self._read_stream(stream, rows)
        return self

    def _check_size(self, X):
        if X.shape[0] < self.n_components:
            raise ValueError(
                f"n_components={self.n_components} needs at least as many rows, and there are "
                f"{X.shape[0]}. Give more rows or ask for fewer components."
            )

    def _open_batch(self, X, first: bool) -> ArrayRows:
        """A batch in main memory, checked."""
        X = in_one_place(X, self.memory, "partial_fit of HebbianKernelPCA")
        checked = valid_rows(
            self,
            to_numpy(X) if is_foreign(X) else X,
            reset=first,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
        )
        return ArrayRows(checked, X, self.memory)

    def _check_stream(self):
        if self._is_precomputed():
            raise ValueError(
                "partial_fit needs points, and a precomputed kernel has none. Use fit, or give a "
                "kernel by name."
            )
        if self.budget is not None and self.budget <= self.n_components:
            raise ValueError(
                f"budget={self.budget} points cannot hold n_components={self.n_components} and a "
                "mean. Give a larger budget."
            )
        self._threshold()

    def _check_room(self, X, stream: GrowingHebbian):
        """The Gram matrix of the points is kept, and must fit the budget."""
        points = stream.points.shape[0] if stream.count else 0
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

    def _begin_stream(self, rows: ArrayRows) -> GrowingHebbian:
        self._check_size(rows.array)
        self._dtype = rows.dtype
        return self._make_stream(self._make_kernel(rows.array))

    def _threshold(self) -> float | None:
        return novelty_threshold(self.novelty, example=0.1)

    def _make_stream(self, kernel) -> GrowingHebbian:
        return GrowingHebbian(
            kernel,
            self.n_components,
            self.forgetting,
            self.budget,
            OVERSAMPLING if self.oversampling is None else self.oversampling,
            self.block,
            self._threshold(),
            self.center,
        )

    def _resume(self) -> GrowingHebbian:
        """A stream that goes on from the fitted model."""
        n, values = self.n_samples_seen_, to_numpy(self.eigenvalues_).astype(float)
        points, frame = self.X_fit_, to_numpy(self.expansion_.frame)
        points = (points if is_sparse(points) else to_numpy(points)).astype(float)
        stream = self._make_stream(self.kernel_)
        return stream.resume(points, frame, values / n, self._variance, n)

    def _read_stream(self, stream: GrowingHebbian, rows: ArrayRows):
        """The expansion and the shares of variance as the stream has them now."""
        columns = np.concatenate([[0], 1 + stream.leading])
        kernel: Any = stream.kernel
        basis = PointBasis(kernel, stream.points, self._make_engine())
        frame, metric = stream.frame[:, columns], stream.metric[np.ix_(columns, columns)]
        values, count = stream.variances[stream.leading], stream.count
        shares = np.minimum(values / max(stream.variance, np.finfo(float).tiny), 1.0)
        share, totals = float(min(1.0, shares.sum())), values * count

        def out(array):
            return restore(in_type(np.asarray(array), rows.dtype), rows.original)

        for name in ("X_fit_", "eigenvectors_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(
            _stream=stream,
            kernel_=stream.kernel,
            expansion_=KernelExpansion(basis, frame, metric),
            certificate_=Certificate("estimate", totals, totals, None, (share, share), True),
            eigenvalues_=out(totals),
            explained_variance_=out(totals / max(count - self.center, 1)),
            explained_variance_ratio_=out(shares),
            landmarks_=stream.points,
            n_samples_seen_=count,
            budget_loss_=stream.lost[columns],
            novelty_loss_=stream.missed[columns],
        )
        self._set_gamma(rows.shape[1])
