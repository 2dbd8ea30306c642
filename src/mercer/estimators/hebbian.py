"""Kernel PCA by Hebbian rules, as a scikit-learn estimator."""

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .. import hebbian
from ..bases import BasisRecipe, PointBasis, PointGram
from ..compute import Array, is_sparse, match_sparsity, to_numpy, too_little
from ..exceptions import ModelFileError, tell
from ..fitting.certificate import Certificate
from ..fitting.expansion import KernelExpansion
from ..fitting.problems import GramProblem, has_negative
from ..fitting.task import components_problem
from ..kernels.function import NO_BATCHES, Objects
from ..rows import Rows
from ..selectors import Novelty
from ..stream.dictionary import threshold_of
from . import _checks
from ._door import OF_POINTS, Fitted, become, kept, unfitted
from ._model import INDEFINITE, KernelModel, variances_along

# Copies of the Gram matrix of the points that are held at once while points are removed.
GRAM_COPIES = 4
# Directions a stream carries beyond those asked for, unless a number is given.
OVERSAMPLING = 10
# Largest entry of unit vectors, with a margin for rows of small weights.
LARGEST_ENTRY = 1e9


# Gains by name, and the estimates of eigenvalues that they use.
GAIN = _checks.StrOptions(set(hebbian.GAINS))
ESTIMATES = _checks.StrOptions({"outputs", "product", "running"})


class HebbianKernelPCA(KernelModel):
    """Kernel PCA that learns from one sample at a time: KHA, KHA/t, KHA/et, KHA-SMD.

    The Kernel Hebbian Algorithm of Kim, Franz and Schoelkopf with the gains of Schraudolph,
    Guenter and Vishwanathan, run in exact blocks: the same iterates as the one-sample rule at
    the speed of matrix products. With ``kernel="linear"`` it is Sanger's Generalized Hebbian
    Algorithm on the rows themselves. For fixed data `KernelPCA` is more accurate for fewer
    passes; this is for data that arrive or drift (`partial_fit`) and for the papers' methods.

    Parameters
    ----------
    n_components : int, default=10
        Number of components.

    kernel : str, Kernel or callable, default="rbf"
        As in `KernelPCA`.

    gamma : float, "auto", "median", "mean" or None, default="auto"
        As in `mercer.StreamingKernelPCA`: measured on the rows of `fit`, or on the first batches.

    degree, coef0, kernel_params
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

    eigenvalue_estimate : "outputs", "product" or "running", default="outputs"
        What the gains of "et" and "smd" are divided by: the sum of squared outputs over the last
        pass; equation 13 of the paper once a pass, for one more product with the kernel matrix; or
        equation 13 before every step, as its Algorithm 1 lists it.

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

    basis : "auto", "points", "landmarks" or BasisRecipe, default="auto"
        For `fit`: "points" are coefficients of all rows, as published, which need the rows in one
        place. "landmarks" is the same rule on the coordinates of rows in the span of chosen ones,
        over files of any size, iterators and clusters, in the order of the rows: shuffle sorted
        ones first. "auto" takes them where rows are not in memory and do not fit.

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
    plan_, expansion_, kernel_, gamma_, X_fit_
        As in `KernelPCA`; `plan_` is of `fit`.

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

    n_features_in_ : int
        Columns of X.

    feature_names_in_ : array of str
        Their names, where X has them.

    significance_ : Significance
        What `significance` found last.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import HebbianKernelPCA
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = HebbianKernelPCA(5, kernel="rbf", gamma="median", n_passes=3, random_state=0)
    >>> model.fit_transform(X).shape
    (1797, 5)
    """

    _fitted: ClassVar[dict[str, Fitted]] = KernelModel._fitted | {
        "n_samples_seen_": kept(Annotated[int, "[0, inf)"]),
        "history_": Fitted(hebbian.History),
        "budget_loss_": Fitted("1+r"),
        "novelty_loss_": Fitted("1+r"),
        "_variance": Fitted("(-inf, inf)"),
        "_stream": kept((hebbian.GrowingHebbian, None)),
    }
    _least_rows = 1  # of the first batch of a stream
    _candidates: ClassVar[frozenset[str]] = frozenset(("landmarks",))
    _points_anywhere = False

    n_components: int = 10
    _: KW_ONLY
    kernel: Any = "rbf"
    gamma: Any = "auto"
    gain: Annotated[Any, GAIN, hebbian.ConstantGain, hebbian.AutoGain] = "auto"
    eta0: Annotated[float | None, _checks.POSITIVE, None] = None
    mu: Annotated[float | None, _checks.NOT_NEGATIVE, None] = None
    xi: Annotated[float, _checks.UNIT] = 0.99
    rho0: Annotated[float, _checks.FINITE] = 0.0
    eigenvalue_estimate: Annotated[str, ESTIMATES] = "outputs"
    scale: Annotated[float | None, _checks.POSITIVE, None] = None
    n_passes: _checks.Count = 10
    oversampling: Annotated[int | None, _checks.FROM_0, None] = None
    block: _checks.Count = 128
    readout: Annotated[str, _checks.StrOptions(set(hebbian.READOUTS))] = "ritz"
    tol: float = 0.0
    track_excess: _checks.Flag = False
    forgetting: Annotated[float, _checks.FADING] = 1.0
    budget: Annotated[int | None, _checks.FROM_2, None] = None
    novelty: Annotated[Any, _checks.SHARE, Novelty, None] = None
    basis: Annotated[str | BasisRecipe, _checks.StrOptions(OF_POINTS), BasisRecipe] = "auto"
    copy_X: bool = True
    callback: Callable[..., Any] | None = None

    def fit(self, X: Array, y: Any = None) -> Self:
        """Learn the components of X in passes over its rows.

        Parameters
        ----------
        X : array-like, sparse CSR matrix, memmap, path or other source of (n_samples, n_features)
            With ``kernel="precomputed"`` the kernel matrix, (n_samples, n_samples).
        y : ignored

        Returns
        -------
        self
        """
        return self._fit(X, y)

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
        if self._encoder() is Objects:
            raise ValueError(NO_BATCHES)
        fresh, rows = unfitted(self), None
        if "expansion_" in vars(self):
            rows = self._open(X, reset=False)
            stream = vars(self).get("_stream")
            if stream is None or not self._relearns(stream.points):
                return self._learn_batch(rows, first=False)
            fresh, rows = self._begun_again(stream.points, rows)
        try:
            fresh._learn_batch(fresh._open(X, reset=True) if rows is None else rows, first=True)
        finally:
            if "expansion_" in vars(fresh):
                become(self, fresh)
        return self

    def _open(self, X, *, reset: bool) -> Rows:
        rows = super()._open(X, reset=reset)
        n = rows.shape[0]
        if reset and n is not None and n < self.n_components:
            raise ValueError(
                f"n_components={self.n_components} needs at least as many rows, and there are "
                f"{n}. Give more rows or ask for fewer components."
            )
        return rows

    def _problem(self, task, basis):
        if not basis.spans_data:
            by_row = ("scale", "track_excess", "eigenvalue_estimate")
            asked = [name for name in by_row if vars(self)[name] not in (None, False, "outputs")]
            if asked:
                raise ValueError(
                    f"{asked[0]}= needs a coefficient for each row, and with {basis.noun} there "
                    "are none. Leave it out, or use basis='points', which needs all rows in one "
                    "place."
                )
            problem: Any = components_problem(task, basis)
            return hebbian.RowwiseProblem.of(problem, task.rows)
        self._check_in_one_place(basis)
        if basis.size < 2:
            raise ValueError("X has 1 sample, and fit needs 2 or more. Give more rows.")
        need, memory = 3 * 8 * basis.size**2, task.engine.memory
        if self.track_excess and need > memory:
            what = f"the kernel matrix of {basis.size:,} rows, which track_excess=True forms"
            raise too_little(memory, need, what, "Fit without it. ")
        if task.is_single and isinstance(basis, PointGram) and basis.single:
            basis = PointGram(basis.kernel, basis.points, basis.engine, dtype=np.float32)
        return GramProblem(basis, task.center)

    def _solver(self, X=None) -> hebbian.Hebbian:
        solver = hebbian.Hebbian()
        params = self.get_params(deep=False) | {"gain": self._make_gain()}
        return solver.set_params(**{name: params[name] for name in solver.get_params(deep=False)})

    def _tolerance(self) -> float:
        """No residual is asked for: `tol` is the turn of the subspace, which the solver knows."""
        return 0.0

    def _passes(self) -> int:
        return 1 + self.n_passes

    def _make_gain(self) -> Any:
        """The gain with the settings it has."""
        if not isinstance(self.gain, str):
            return hebbian.make_gain(self.gain)
        settings = {name: vars(self)[name] for name in ("eta0", "mu", "xi", "rho0")}
        names = hebbian.GAINS[self.gain]().get_params(deep=False)
        settings["estimate"] = self.eigenvalue_estimate
        if self.eigenvalue_estimate != "outputs" and "estimate" not in names:
            raise ValueError(
                f"eigenvalue_estimate={self.eigenvalue_estimate!r} is for gains that use "
                f"eigenvalues, 'et' and 'smd', and gain={self.gain!r}. Change one of the two."
            )
        return hebbian.make_gain(
            self.gain, **{name: value for name, value in settings.items() if name in names}
        )

    def _learn_batch(self, rows, first: bool):
        """Learn the rows of a batch; what an interrupt leaves is the model of whole blocks."""
        array = rows.as_array("partial_fit of HebbianKernelPCA")
        array = array if is_sparse(array) else to_numpy(array)
        stream = self._stream_for(array, first)
        kernel, indefinite = stream.kernel, not first and self.certificate_.indefinite
        like = stream.points if stream.count else None
        try:
            with self._bar_unasked() as bar:
                stream.partial_fit(match_sparsity(array.astype(float), like), bar.tiles)
            if not (kernel.definite or indefinite):
                points = PointBasis(kernel, stream.points, self._make_engine())
                indefinite = has_negative(points, array, self.center)
        finally:
            if stream.count:
                self._adopt(self._after_batch(rows, stream, indefinite))
        if indefinite:
            tell(INDEFINITE.format(kernel))
        if first:
            self._warn_of_width(self.n_samples_seen_)
        return self

    def _stream_for(self, X, first: bool) -> Any:
        """The stream of the batches before, or a new one, from the fitted model if there is one."""
        self._check_has_rows("partial_fit")
        if self.budget is not None and self.budget <= self.n_components:
            raise ValueError(
                f"budget={self.budget} points cannot hold n_components={self.n_components} and a "
                "mean. Give a larger budget."
            )
        novelty = threshold_of(self.novelty, example=0.1)
        stream = None if first else self._stream
        spare = OVERSAMPLING if self.oversampling is None else self.oversampling
        q = self.n_components + spare if stream is None else stream.carried
        # Points after this batch: with neither a budget nor a novelty all rows join.
        m, n = 0 if first else self.expansion_.basis.size, X.shape[0]
        if self.budget is not None:
            m = max(m, min(self.budget, m + n)) + self.block
        elif self.novelty is None:
            m += n
        need, memory = 8 * (GRAM_COPIES * m**2 + (1 + q) * max(m, n, q)), self._make_engine().memory
        if need > memory:
            what = (
                f"the kernel between {m:,} points and {1 + q:,} directions, which partial_fit keeps"
            )
            raise too_little(memory, need, what, "Give a budget or a novelty. ")
        if stream is None:
            kernel = self._make_kernel(X) if first else self.kernel_
            bounds = self.n_components, self.forgetting, self.budget, spare, self.block
            stream = hebbian.GrowingHebbian(kernel, *bounds, novelty, self.center)
            if not first:
                n, values = self.n_samples_seen_, to_numpy(self.eigenvalues_).astype(float)
                points, frame = self.expansion_.basis.points, to_numpy(self.expansion_.frame)
                points = (points if is_sparse(points) else to_numpy(points)).astype(float)
                stream.resume(points, frame, values / n, self._variance, n)
        return stream

    def _attributes(self, result, plan, task) -> dict[str, Any]:
        problem, history = result.problem, result.pairs.history
        if history is None:  # all rows are equal, and no pass was made
            history = hebbian.History.of([], self.n_components, self.n_components)
        return super()._attributes(result, plan, task) | {
            "history_": history,
            "n_samples_seen_": problem.count,
            "_stream": None,
            "_variance": problem.total / problem.count,
        }

    def _after_batch(self, rows: Rows, stream: Any, indefinite: bool) -> dict[str, Any]:
        """The fitted attributes as the stream has them after some rows."""
        columns = np.concatenate([[0], 1 + stream.leading])
        basis = PointBasis(stream.kernel, stream.points, self._make_engine())
        frame, metric = stream.frame[:, columns], stream.metric[np.ix_(columns, columns)]
        count, variance = stream.count, stream.variance
        values = stream.variances[stream.leading] * count
        captured = float(min(1.0, values.sum() / (variance * count or 1.0)))
        # All that is known of the variance along a direction is that it is at most the total.
        lower, upper = np.zeros_like(values), np.maximum(values, variance * count)
        certificate = Certificate(
            "estimate", lower, upper, None, (captured, captured), True, indefinite=indefinite
        )
        attributes = {name: value for name, value in vars(self).items() if name == "history_"}
        attributes |= variances_along(values, max(count - self.center, 1), variance * count, rows)
        return attributes | {
            "kernel_": stream.kernel,
            "gamma_": self._gamma_of(stream.kernel, rows.shape[1]),
            "expansion_": KernelExpansion(basis, frame, metric),
            "certificate_": certificate,
            "landmarks_": stream.points,
            "n_samples_seen_": count,
            "budget_loss_": stream.lost[columns],
            "novelty_loss_": stream.missed[columns],
            "_stream": stream,
        }

    def _warn(self, result, plan, task) -> None:
        super()._warn(result, plan, task)
        history = self.history_
        passes = len(history.changes)
        if history.interrupted:
            tell(f"Interrupted after {passes} passes: the model is the state after the last one.")
        elif history.recoveries:
            tell(
                f"Gains were too large for these data: {history.recoveries} times a block of rows "
                "was learned again with half the gain.",
                ConvergenceWarning,
                "Give a smaller eta0, or gain='auto'.",
            )
        elif self.tol > 0 and not self.certificate_.converged and self.callback is None:
            tell(
                f"Not converged: the subspace turned by {history.changes[-1]:.1e} in pass "
                f"{passes}, and tol={self.tol:.1e} was asked for. Raise n_passes or tol.",
                ConvergenceWarning,
            )

    def _complete(self) -> None:
        """Complete the model as all models do, and refuse what further learning would fail at."""
        super()._complete()
        stream, kernel = self._stream, repr(self.kernel_)
        if "_variance" not in vars(self) if stream is None else repr(stream.kernel) != kernel:
            raise ModelFileError("neither a stream of its kernel nor the variance to start one")
        weights = vars(self).get("eigenvectors_", np.zeros(0)), self.expansion_.frame[:, 0]
        if not max(np.abs(part).max(initial=0.0) for part in weights) < LARGEST_ENTRY:
            raise ModelFileError("a frame of directions that are far too long")
