"""Kernel PCA by Hebbian rules, as a scikit-learn estimator."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .. import hebbian
from ..bases import PointBasis, PointGram, PrecomputedBasis
from ..bases.points import DRAFT_SPREAD
from ..compute import format_bytes, is_sparse, match_sparsity, restore, to_numpy
from ..compute.arrays import Array, Same, is_foreign
from ..exceptions import tell
from ..fitting import costs
from ..fitting.certificate import Certificate
from ..fitting.choosing import format_seconds, workload
from ..fitting.costs import Speeds
from ..fitting.expansion import KernelExpansion
from ..fitting.problems import GramProblem, has_negative
from ..metrics import excess_reconstruction_error, minimal_reconstruction_error
from ..operators import in_ordinary_units
from ..progress import PassBar
from ..rows import ArrayRows
from ..rows.array import in_type
from ..selectors import Novelty
from ..solvers import canonical
from ..stream.dictionary import threshold_of
from ._checks import check_gram, valid_rows
from ._door import all_or_nothing, become, in_one_place, unfitted
from ._model import INDEFINITE, KernelModel
from ._parameters import AT_LEAST_1, NOT_NEGATIVE, POSITIVE, Interval, StrOptions

# Vectors of length n that a run holds at its peak for every direction it carries, the result
# and the products with the kernel matrix among them.
VECTORS = 12
# Copies of the Gram matrix of the points that are alive while points leave.
GRAM_COPIES = 4
# Directions a stream carries beyond those asked for, unless a number is given.
OVERSAMPLING = 10


@dataclass(eq=False, repr=False)
class HebbianKernelPCA(KernelModel):
    """Kernel PCA that learns from one sample at a time: KHA, KHA/t, KHA/et, KHA-SMD.

    The Kernel Hebbian Algorithm of Kim, Franz and Schoelkopf with the gains of Schraudolph,
    Guenter and Vishwanathan, run in exact blocks: the same iterates as the one-sample rule at
    the speed of matrix products. For fixed data `KernelPCA` is more accurate for fewer
    passes; this is for data that arrive or drift (`partial_fit`) and for the papers' methods.

    Parameters
    ----------
    n_components : int, default=10
        Number of components.

    kernel, gamma, degree, coef0, kernel_params
        As in `KernelPCA`.

    gain : "auto", "constant", "t", "et", "smd" or a gain of mercer.hebbian, default="auto"
        The rule: "auto" keeps the directions orthonormal, carries a few more than asked for
        and has nothing to tune; the others are as published, with a cap on steps that would
        overshoot. An object brings its own settings, the cap among them.

    eta0 : float or None, default=None
        Gain of the published rules; None for a safe one from the size of the kernel. Not
        used by "auto".

    mu, xi, rho0 : float, default=None, 0.99 and 0.0
        Rate, memory and start of the meta-descent of "smd"; None is a safe rate. The paper's
        start, 1, diverges on its own data.

    eigenvalue_estimate : "outputs" or "running", default="outputs"
        What the gains of "et" and "smd" are divided by: the sum of squared outputs over the last
        pass, or equation 13 of the paper anew before every step, as its Algorithm 1 lists it.

    scale : float or None, default=None
        Scale of the random start; 1 is the published one, None makes unit vectors of feature
        space.

    n_passes : int, default=10
        Passes over the data, at most.

    oversampling : int or None, default=None
        Directions carried beyond those asked for; None is 10 for "auto" and 0 otherwise.

    block : int, default=128
        Rows of the kernel matrix made at once, at most: fewer where `memory` is short.

    readout : "ritz", "nystroem", "carried" or "free", default="ritz"
        How the result is read after the last pass: "ritz" spends one product on orthonormal
        directions and certifies them. The others are as published or for study: "free" takes
        the directions as they are, "carried" those of a Nystroem step that the passes paid
        for, "nystroem" those of one more product; where these are orthonormal only in the
        limit, their inner products take a product of their own.

    tol : float, default=0.0
        Stop when the subspace turns by less than this (sine of the angle) in a pass; 0 for
        all of `n_passes`.

    track_excess : bool, default=False
        Record the excess reconstruction error of each pass. Needs the exact eigenvalues, and
        so the whole matrix: for study, not for work.

    forgetting : float, default=1.0
        For `partial_fit`: weight of a row relative to the one after it, as in
        `StreamingKernelPCA`. Below 1 the model follows data that drift, with a memory of
        ``1 / (1 - forgetting)`` rows.

    budget : int or None, default=None
        For `partial_fit`: points the model may hold.

    novelty : float, Novelty or None, default=None
        For `partial_fit`: a row joins the points if more than this share of k(x, x) lies
        outside their span. The others are learned from without joining. None lets all join.

    random_state, copy_X, n_jobs, center, memory, device, verbose, callback
        As in `KernelPCA`; the last three are for `fit`. A kernel matrix that would fit half of
        `memory` in double precision is kept from pass to pass. On a device the rows and their
        products are made there, and the recursion of a block, which is small, on the host.

    checkpoint : str, path or None, default=None
        As in `KernelPCA`, for `fit`: the state after every pass and every minute in between. After
        Ctrl-C the folder stays, and the same fit goes on there.

    Attributes
    ----------
    eigenvalues_, eigenvectors_, explained_variance_, explained_variance_ratio_, certificate_, \
    expansion_, kernel_, gamma_, X_fit_
        As in `KernelPCA`.

    history_ : History
        Of `fit`, per pass: gains, eigenvalue estimates, residual estimates, change of the
        subspace and, where asked for, the excess error; `interrupted` after Ctrl-C.

    landmarks_ : array of shape (m, n_features)
        After `partial_fit`: the points of the model, in place of `X_fit_` and `eigenvectors_`.

    budget_loss_, novelty_loss_ : arrays of shape (1 + n_components,)
        After `partial_fit`: the squared norm that the mean (relative to the variance) and each
        direction lost to the budget, and to rows that did not join, summed over the blocks.

    n_samples_seen_ : int
        Rows learned from.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import HebbianKernelPCA
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = HebbianKernelPCA(5, kernel="rbf", gamma="median", n_passes=3, random_state=0)
    >>> model.fit_transform(X).shape
    (1797, 5)
    """

    _parameter_constraints: ClassVar[dict] = KernelModel._parameter_constraints | {
        "gain": [StrOptions(set(hebbian.GAINS)), hebbian.ConstantGain, hebbian.AutoGain],
        "eta0": [POSITIVE, None],
        "mu": [NOT_NEGATIVE, None],
        "xi": [Interval(Real, 0, 1, closed="both")],
        "rho0": [Interval(Real, None, None, closed="neither")],
        "eigenvalue_estimate": [StrOptions({"outputs", "running"})],
        "scale": [POSITIVE, None],
        "n_passes": [AT_LEAST_1],
        "oversampling": [Interval(Integral, 0, None, closed="left"), None],
        "block": [AT_LEAST_1],
        "readout": [StrOptions(set(hebbian.READOUTS))],
        "track_excess": ["boolean"],
        "forgetting": [Interval(Real, 0, 1, closed="right")],
        "budget": [Interval(Integral, 2, None, closed="left"), None],
        "novelty": [Interval(Real, 0, 1, closed="neither"), Novelty, None],
    }

    n_components: int = 10
    _: KW_ONLY
    gain: Any = "auto"
    eta0: float | None = None
    mu: float | None = None
    xi: float = 0.99
    rho0: float = 0.0
    eigenvalue_estimate: str = "outputs"
    scale: float | None = None
    n_passes: int = 10
    oversampling: int | None = None
    block: int = 128
    readout: str = "ritz"
    tol: float = 0.0
    track_excess: bool = False
    forgetting: float = 1.0
    budget: int | None = None
    novelty: Any = None
    copy_X: bool = True
    callback: Callable[..., Any] | None = None

    @all_or_nothing
    def fit(self, X: Array, y: Any = None) -> Self:
        """Learn the components of X in passes over its rows.

        Parameters
        ----------
        X : array-like, sparse CSR matrix or memmap of shape (n_samples, n_features)
            With ``kernel="precomputed"`` the kernel matrix, (n_samples, n_samples).
        y : ignored

        Returns
        -------
        self
        """
        rows = self._open(X, reset=True)
        if not isinstance(rows, ArrayRows):
            rows = ArrayRows(rows.as_array("HebbianKernelPCA"), None, self.memory)
        X = rows.array
        self._check_size(X)
        if self._is_precomputed():
            check_gram(X)
        self.kernel_ = self._make_kernel(X)
        engine, bar = self._make_engine(X), PassBar(self.verbose, self.callback, 1 + self.n_passes)
        with self._open_checkpoint(rows) as kept, bar as progress:
            rng = self._make_rng(kept)
            work = workload(
                X.shape[0], X.shape[1], self.n_components, self.tol, self.kernel_, engine
            )
            speeds = Speeds.typical(work.d, work.device, self.kernel_)
            seconds = costs.hebbian(work, speeds, self.n_passes).seconds
            words = f"{self.n_passes} passes, about {format_seconds(seconds)}."
            progress.foresee(seconds, f'{words} KernelPCA(basis="landmarks") is far faster.')
            problem = self._problem(engine.place(X), engine, kept)
            with engine.single_blas():
                pairs, self.history_ = self._passes(problem, engine, progress, rng)
                result = problem.result(canonical(pairs, self._dtype.char, problem.slack))
            if kept is not None:
                kept.unfinished = self.history_.interrupted
        self._stream, self._variance = None, problem.total / X.shape[0]
        self.n_samples_seen_ = X.shape[0]
        self._adopt(problem, result, rows)
        self._warn()
        return self

    def fit_transform(self, X: Same, y: Any = None) -> Same:
        """Fit to X and return its scores, (n_samples, n_components).

        The same as `fit` and `transform`: the scaled eigenvectors are the scores only
        where the passes have converged.
        """
        return self.fit(X, y).transform(X)

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

    def _problem(self, X, engine, kept) -> GramProblem:
        """The Gram matrix of the rows: kept where it fits half of the budget, else row by row."""
        if self._is_precomputed():
            given = PrecomputedBasis(X, engine)
            given.checkpoint = kept
            return GramProblem(given, self.center)
        n, gain = X.shape[0], self._make_gain()
        more = gain.oversampling if self.oversampling is None else self.oversampling
        allowed = self.kernel_.spread(X) <= DRAFT_SPREAD
        dtype = np.float32 if self._dtype == np.float32 and allowed else np.float64
        basis, matrix = PointGram(self.kernel_, X, engine, allowed, dtype), None
        basis.release()
        basis.checkpoint = kept
        basis.reserve(8 * n * VECTORS * (self.n_components + more))
        # Products of a single-precision matrix need a copy in double precision.
        # A device makes rows about as fast as it reads them; tiles of wide rows need room beside.
        held, memory = 8 * n**2, basis.engine.memory
        least = 0 if engine.device else basis.pairs.tile_bytes(engine.sides[-1])
        if engine.device is None and held <= min(memory // 2, memory - least):
            K = basis.engine.with_memory(memory - held).fill(basis.pairs, np.empty((n, n), dtype))
            matrix = PrecomputedBasis(K, engine)
            matrix.checkpoint = kept
        return GramProblem(basis, self.center, kept=matrix)

    def _passes(self, problem, engine, progress, rng):
        """Passes of the rule over the problem's Gram matrix."""
        operator, unit = in_ordinary_units(problem.operator)
        # Rows that a fourth of the budget holds with a copy.
        room = problem.basis.engine.memory // (4 * 2 * 8 * problem.size)
        pairs, history = hebbian.hebbian_eigenpairs(
            operator,
            self.n_components,
            self._make_gain(),
            n_passes=self.n_passes,
            oversampling=self.oversampling,
            block=max(1, min(self.block, room)),
            tol=self.tol,
            scale=self.scale,
            readout=self.readout,
            rng=rng,
            report=progress.report,
            tick=progress.tiles,
            measure=self._excess(problem, engine) if self.track_excess else None,
        )
        return pairs.scaled(unit), history

    def _make_gain(self):
        """The gain with the settings it has."""
        if not isinstance(self.gain, str):
            eta0 = self.gain.get_params(deep=False).get("eta0")
            if eta0 is not None and not eta0 > 0:
                raise ValueError(f"gain={self.gain!r}: eta0 must be positive, or None.")
            return hebbian.make_gain(self.gain)
        given = {"eta0": self.eta0, "mu": self.mu, "xi": self.xi, "rho0": self.rho0}
        known = hebbian.GAINS[self.gain]().get_params(deep=False)
        if self.eigenvalue_estimate == "running":
            if "running" not in known:
                raise ValueError(
                    f"eigenvalue_estimate='running' is for gains that use eigenvalues, 'et' and "
                    f"'smd', and gain={self.gain!r}. Change one of the two."
                )
            given["running"] = True
        return hebbian.make_gain(
            self.gain, **{name: x for name, x in given.items() if name in known}
        )

    def _excess(self, problem, engine):
        """The excess error of coefficients; the exact eigenvalues are found once."""
        need = 3 * 8 * problem.size**2
        if need > engine.memory:
            raise ValueError(
                f"track_excess=True forms the kernel matrix, which needs {format_bytes(need)} for "
                f"{problem.size:,} rows, and memory allows {format_bytes(engine.memory)}. Raise "
                "memory, or fit without it."
            )
        K = to_numpy(problem.operator.to_dense())
        least = minimal_reconstruction_error(np.linalg.eigvalsh(K), self.n_components)
        return lambda A: excess_reconstruction_error(K, to_numpy(A), least)

    def _warn(self):
        """Say what the user may not expect of the result."""
        done = len(self.history_.changes)
        if self.history_.interrupted:
            tell(f"Interrupted after {done} passes: the model is what they had learned.")
        elif self.history_.recoveries:
            tell(
                f"Gains were too large for these data: {self.history_.recoveries} blocks of rows "
                "were taken back, and the gains halved. Give a smaller eta0, or gain='auto'.",
                ConvergenceWarning,
            )
        elif self.tol > 0 and not self.certificate_.converged and self.callback is None:
            tell(
                f"Not converged: the subspace still turned by {self.history_.changes[-1]:.1e} in "
                f"pass {done}, and tol={self.tol:.1e} was asked for. Raise n_passes or tol.",
                ConvergenceWarning,
            )

    def _check_size(self, X):
        if X.shape[0] < self.n_components:
            raise ValueError(
                f"n_components={self.n_components} needs at least as many rows, and there are "
                f"{X.shape[0]}. Give more rows or ask for fewer components."
            )

    def _learn_batch(self, X, first: bool):
        """Learn the rows of a batch; what an interrupt leaves is the model of whole blocks."""
        X = in_one_place(X, self.memory, "partial_fit of HebbianKernelPCA")
        checked = valid_rows(
            self,
            to_numpy(X) if is_foreign(X) else X,
            reset=first,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
        )
        rows = ArrayRows(checked, X, self.memory)
        stream = self._stream_for(rows, first)
        like = stream.points if stream.count else None
        try:
            stream.partial_fit(match_sparsity(rows.array.astype(float), like))
        finally:
            if stream.count:
                self._adopt_stream(stream, rows)
        known, basis = self.certificate_, self.expansion_.basis
        if not basis.kernel.definite and not known.indefinite:
            met = has_negative(basis, rows.array, self.center)
            self.certificate_ = known = replace(known, indefinite=met)
        if known.indefinite:
            tell(INDEFINITE.format(basis.kernel))
        if first:
            self._warn_of_width(self.n_samples_seen_)
        return self

    def _stream_for(self, rows, first: bool) -> hebbian.GrowingHebbian:
        """The stream of the batches before, or a new one, from the fitted model if there is one."""
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
        novelty = threshold_of(self.novelty, example=0.1)
        if first:
            self._check_size(rows.array)
            self._dtype = rows.dtype
        stream = None if first else self._stream
        if stream is None:
            stream = hebbian.GrowingHebbian(
                self._make_kernel(rows.array) if first else self.kernel_,
                self.n_components,
                self.forgetting,
                self.budget,
                OVERSAMPLING if self.oversampling is None else self.oversampling,
                self.block,
                novelty,
                self.center,
            )
            if not first:
                n, values = self.n_samples_seen_, to_numpy(self.eigenvalues_).astype(float)
                points, frame = self.X_fit_, to_numpy(self.expansion_.frame)
                points = (points if is_sparse(points) else to_numpy(points)).astype(float)
                stream.resume(points, frame, values / n, self._variance, n)
        # Without budget and novelty only a stream that goes on from a file takes all of it.
        m = stream.points.shape[0] if stream.count else 0
        if self.budget is not None:
            m = max(m, min(self.budget, m + rows.shape[0])) + self.block
        elif self.novelty is None:
            m += rows.shape[0]
        need, memory = GRAM_COPIES * 8 * m**2, self._make_engine().memory
        if need > memory:
            raise ValueError(
                f"partial_fit keeps the kernel between its points, which takes "
                f"{format_bytes(need)} for {m:,} points, and memory allows "
                f"{format_bytes(memory)}. Give a budget or a novelty, or raise memory."
            )
        return stream

    def _adopt_stream(self, stream: hebbian.GrowingHebbian, rows: ArrayRows):
        """Set the fitted attributes as the stream has them now."""
        columns = np.concatenate([[0], 1 + stream.leading])
        kernel: Any = stream.kernel
        basis = PointBasis(kernel, stream.points, self._make_engine())
        frame, metric = stream.frame[:, columns], stream.metric[np.ix_(columns, columns)]
        values, count = stream.variances[stream.leading], stream.count
        shares = np.minimum(values / (stream.variance or 1.0), 1.0)
        share, totals = float(min(1.0, shares.sum())), values * count
        before = vars(self).get("certificate_")
        met = before is not None and before.indefinite
        # Of a direction that learns nothing more is known than the variance of all.
        nothing, most = np.zeros_like(totals), np.maximum(totals, stream.variance * count)
        known = Certificate("estimate", nothing, most, None, (share, share), True, indefinite=met)

        def out(array):
            return restore(in_type(np.asarray(array), rows.dtype), rows.original)

        for name in ("X_fit_", "eigenvectors_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(
            _stream=stream,
            kernel_=stream.kernel,
            expansion_=KernelExpansion(basis, frame, metric),
            certificate_=known,
            eigenvalues_=out(totals),
            explained_variance_=out(totals / max(count - self.center, 1)),
            explained_variance_ratio_=out(shares),
            landmarks_=stream.points,
            n_samples_seen_=count,
            budget_loss_=stream.lost[columns],
            novelty_loss_=stream.missed[columns],
        )
        self._set_gamma(rows.shape[1])
