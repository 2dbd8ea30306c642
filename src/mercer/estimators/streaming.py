"""Kernel PCA of streams, as a scikit-learn estimator."""

from collections.abc import Callable
from copy import copy
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..bases import BasisRecipe
from ..compute import restore
from ..compute.arrays import Array
from ..exceptions import tell
from ..kernels import Kernel
from ..preimage import PREIMAGES, Preimage
from ..rows.array import float_type, in_type
from ..selectors import Novelty
from ..stream.components import components_of
from ..stream.moments import transition
from ..stream.state import State, follow, record
from ._batches import HISTORY, StreamLog, ahead, batches_of, counted
from ._door import become, unfitted
from ._model import INDEFINITE, NO_VARIANCE, OVERSHOOT, ZERO_VARIANCE
from ._parameters import Interval, StrOptions
from ._stream import StreamInput

# Share of the energy of a batch outside a full dictionary that a user should know of.
LOST_TOO_MUCH = 0.05


class StreamingKernelPCA(StreamInput):
    """Kernel PCA of data that never end, in a fixed amount of memory.

    Each row is projected on a small span of feature space, and the moments of the projections
    are kept: m x m numbers, from which the components follow at any time. The span is that of a
    dictionary, which rows join that are news to it, of given landmarks, or of random features.
    If nothing is forgotten, the result depends on the rows and their order, not on how they
    were cut into batches. What the span leaves out is measured and bounds the error
    (`certificate_`).

    Parameters
    ----------
    n_components : int, default=10
        Number of components. There are always as many: those that the rows so far are too few
        for have zero eigenvalues and zero scores.

    kernel, gamma, degree, coef0, kernel_params
        As in `KernelPCA`. The first batch settles ``gamma="median"`` and ``"mean"``; with a
        number the result does not depend on what the first batch was.

    basis : "dictionary", "features", "fourier" or BasisRecipe, default="dictionary"
        "dictionary" grows by `novelty` up to `budget`; "features" are `budget` random features;
        "fourier" is a grid for up to three columns, which loses nothing of any row within its box:
        give that as ``FourierGrid(box=...)``, or it is that of the first batch.
        ``Landmarks(points=Z)`` are fixed from the start; other recipes choose among the rows of
        the first batch.

    budget : int, default=500
        Points the dictionary may hold, or number of features.

    novelty : float or Novelty, default=0.001
        A row joins the dictionary if more than this share of k(x, x) lies outside the span of
        the points in it (Ouimet and Bengio 2005). Higher values need fewer points and lose more.

    forgetting : float, default=1.0
        Weight of a row relative to the one after it. Below 1 the model follows data that drift,
        with a memory of ``1 / (1 - forgetting)`` rows; the half-life h is
        ``forgetting=0.5 ** (1 / h)``.

    random_state : int, RandomState or None, default=None
        Draws random features, and the rows kept for pre-images.

    n_jobs, preimage, center, memory, verbose
        As in `KernelPCA`; the last is for files.

    device : None, str or torch.device, default=None
        As in `KernelPCA`: None to compute where the first batch is, "cuda" on a GPU. A dictionary
        grows row by row, in main memory.

    checkpoint : str, path or None, default=None
        As in `KernelPCA`, for `fit`: the state every minute. Not for iterators, which can be read
        only once, nor for streams that compute on a device.

    Attributes
    ----------
    eigenvalues_, explained_variance_, explained_variance_ratio_, certificate_, expansion_, \
    kernel_, gamma_, landmarks_, X_sample_
        As in `KernelPCA`, of the rows so far; with forgetting, of the rows with their weights.

    lost_share_ : float
        Share of the energy, the sum of k(x, x), that is outside the span.

    n_samples_seen_ : int
        Rows learned from.

    history_ : list of BatchRecord
        Of the last 1,000 batches: rows, points that joined, share of energy lost.

    See Also
    --------
    HebbianKernelPCA : Learns from streams by gradient steps, with directions in place of moments.

    Notes
    -----
    A batch of b rows takes O(b m (d + m)) operations, and reading the components O(m^3).
    Memory is O(m^2 + m d) for the model and O(m) for each row of a block, whatever the number of
    rows.

    Where a full dictionary loses more than `novelty` and the stream forgets, points leave that
    explain far less than what is lost for each point: those that only forgotten rows were like.
    What the others had along them is counted as lost. A dictionary that cannot follow warns.

    A point that joins adds a direction along which earlier rows are not known. What they had
    there was outside the span when they came, so it is counted as lost, and the certificate
    allows for the worst it can be. Its share falls while nothing joins.

    A component keeps its sign from batch to batch: the one that agrees with the component
    nearest to it a while before. Order is always that of the eigenvalues.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import StreamingKernelPCA
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = StreamingKernelPCA(5, kernel="rbf", gamma=0.0005, budget=200)
    >>> for start in range(0, len(X), 100):
    ...     model = model.partial_fit(X[start : start + 100])
    >>> model.transform(X).shape
    (1797, 5)
    >>> model.n_samples_seen_, len(model.landmarks_)
    (1797, 200)
    >>> once = StreamingKernelPCA(5, kernel="rbf", gamma=0.0005, budget=200).fit(X)
    >>> bool(abs(once.transform(X) - model.transform(X)).max() < 1e-9)
    True
    """

    _parameter_constraints: ClassVar[dict] = StreamInput._parameter_constraints | {
        "basis": [StrOptions({"dictionary", "features", "fourier"}), BasisRecipe],
        "budget": [Interval(Integral, 1, None, closed="left")],
        "novelty": [Interval(Real, 0, 1, closed="left"), Novelty],
        "forgetting": [Interval(Real, 0, 1, closed="right")],
        "preimage": [StrOptions({"auto", *PREIMAGES}), Preimage],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        kernel: str | Kernel | Callable[..., Any] = "linear",
        gamma: float | str | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        basis: str | BasisRecipe = "dictionary",
        budget: int = 500,
        novelty: Any = 0.001,
        forgetting: float = 1.0,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        preimage: str | Preimage = "auto",
        center: bool = True,
        memory: int | str | None = None,
        verbose: int = 0,
        device: Any = None,
        checkpoint: str | PathLike[str] | None = None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.basis = basis
        self.budget = budget
        self.novelty = novelty
        self.forgetting = forgetting
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.preimage = preimage
        self.center = center
        self.memory = memory
        self.verbose = verbose
        self.device = device
        self.checkpoint = checkpoint

    def fit(self, X: Array, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from the start, from an array or from batches.

        Parameters
        ----------
        X : array-like, sparse CSR matrix or memmap of shape (n_samples, n_features), or batches
            An iterator, or a list of 2D arrays, is a sequence of batches; empty ones are
            passed over. A path, or another source that `KernelPCA.fit` takes, is read in blocks.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How often each row counts, as in `partial_fit`; for one array.

        Returns
        -------
        self
        """
        batches = batches_of(X, self.memory, self.n_jobs, self.verbose)
        if sample_weight is not None and not isinstance(batches, list):
            raise ValueError(
                "sample_weight is for one array, and X is a sequence of batches, a file or rows on "
                "a cluster. Give partial_fit each batch with the weights of its rows."
            )
        self._validate_params()
        kept = None if self.checkpoint is None else self._kept_for(X, sample_weight)
        judged = sample_weight is None  # a uniform sample judges rows that count alike
        self._learn(batches, True, judged, sample_weight, kept)
        if kept is not None:
            kept.remove()
        return self

    def partial_fit(self, X: Array, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows, in their order.

        Parameters
        ----------
        X : array-like, sparse CSR matrix or memmap of shape (n, n_features)
            An empty batch changes nothing. A batch that is refused leaves the model as it was.
        y : ignored
        sample_weight : array-like of shape (n,) or None, default=None
            How often each row counts: whole numbers are the same as repeating rows, zero as
            leaving them out. With `forgetting` a row fades as one row, whatever it counts.

        Returns
        -------
        self
        """
        return self._learn([X], afresh="_state" not in vars(self), sample_weight=sample_weight)

    def merge(self, other: Any) -> Self:
        """Take in the rows that another model has learned from.

        Both must have the same kernel and the same landmarks or features: those of
        ``Landmarks(points=...)``, or random features with equal `random_state`. A dictionary
        that one model has grown can be given to others: ``Landmarks(points=model.landmarks_)``.

        Parameters
        ----------
        other : StreamingKernelPCA
            Left as it is.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if not isinstance(other, StreamingKernelPCA):
            raise TypeError(
                f"merge takes a StreamingKernelPCA, and got {type(other).__name__}. Pass a fitted "
                "stream over the same landmarks or features."
            )
        check_is_fitted(other)
        mine, theirs = self._state, other._state
        engine = self._kept_engine()
        change = transition(mine.stream.span, theirs.stream.span, engine)
        rows = theirs.stream if change is None else theirs.stream.mapped(change)
        stream = mine.stream + rows
        state = State(stream, mine.sample + theirs.sample, mine.reference)
        history = [*self.history_, record(mine.stream.totals, stream.totals, kept=1.0)]
        # Rows of both are uniform ones of all, unless some are forgotten or were drawn together.
        apart = mine.sample.seed != theirs.sample.seed
        uniform = apart and self.forgetting == 1 == other.forgetting
        self._become(
            state, history, engine, self.X_sample_, sample=state.sample.rows if uniform else None
        )
        return self

    def _learn(self, batches, afresh, judged=False, sample_weight=None, kept=None):
        """Learn from batches; the model changes as a whole, after the last of them.

        `judged` spends a look at the kept rows on the certificate: too much after every batch.
        """
        self._validate_params()
        self._check_settings()
        model = unfitted(self) if afresh else copy(self)
        first, batches = ahead(batches)
        engine = self._kept_engine(first, afresh)
        if kept is not None and engine.device is not None:
            raise ValueError("checkpoint= is for streams in main memory. Give device='cpu'.")
        model._learn_all(batches, afresh, engine, judged, sample_weight, kept)
        model._warn()
        become(self, model)
        return self

    def _learn_all(self, batches, afresh, engine, judged, sample_weight, kept):
        state, history = (None, []) if afresh else (self._renewed(), list(self.history_))
        log, source, X = StreamLog(kept), None, None
        reading: dict[str, Any] = {"n_components": self.n_components, "center": self.center}
        for number, source in enumerate(batches):
            X, counts = counted(self._checked(source, state is None, engine), sample_weight)
            if state is None:
                state = self._begin(X, engine, self._make_rng(kept))
                state, history = log.resume(state, history, engine)
            if X.shape[0] and number >= log.batch:
                before, start = log.begun(number, state.stream)
                for row, after in follow(state, X, counts, engine, start=start, **reading):
                    log.note(number, before, history, row, after)
                    state = after
                history.append(record(before, state.stream.totals, self.forgetting ** X.shape[0]))
        if X is None or state is None:
            raise ValueError("There were no batches to learn from. Give at least one with rows.")
        check_span(state.stream)
        # With forgetting the kept rows are not uniform.
        sample = state.sample.rows if judged and self.forgetting == 1 else None
        self._become(state, history, engine, X, source, sample)

    def _become(self, state, history, engine, X, source=None, sample=None):
        """Set the fitted attributes."""
        stream, reference, seed = state.stream, state.reference, state.sample.seed
        found = components_of(
            stream, self.n_components, self.center, engine, reference, sample, seed
        )
        seen = stream.totals
        total = max(found.total, np.finfo(float).tiny)
        with np.errstate(over="ignore"):  # the total of an indefinite kernel may be nothing
            shares = np.minimum(found.values / total, 1.0)

        single = float_type(X)

        def out(array):
            return restore(in_type(np.asarray(array), single), source)

        self.__dict__.update(
            _state=state,
            _dtype=np.dtype(single),
            _variance=found.total,
            kernel_=state.stream.span.kernel,
            expansion_=found.expansion,
            certificate_=found.certificate,
            eigenvalues_=out(found.values),
            explained_variance_=out(found.values / max(seen.weight - self.center, 1.0)),
            explained_variance_ratio_=out(shares),
            lost_share_=seen.lost / seen.energy,
            X_sample_=state.sample.rows,
            n_samples_seen_=state.stream.count,
            history_=history[-HISTORY:],
        )
        if found.expansion.basis.points is not None:
            self.landmarks_ = restore(found.expansion.basis.points, source)
        self._set_gamma(X.shape[1])

    def _warn_of_drift(self) -> None:
        """A stream that forgets is to follow its rows, and a full dictionary cannot."""
        full = [batch for batch in self.history_ if batch.size >= self.budget]
        if self.basis != "dictionary" or self.forgetting == 1 or not full:
            return
        first, last = full[0].lost_share, self.history_[-1].lost_share
        if min(last, self.lost_share_) > max(LOST_TOO_MUCH, 2 * first):
            tell(
                f"The dictionary is full (budget={self.budget}), and {last:.0%} of the energy of "
                f"the last rows lies outside of its span, after {first:.0%} when it was filled: "
                "the data drift faster than points leave, or need more of them. Raise budget or "
                "novelty."
            )

    def _warn(self):
        """Say what the user may not expect of the result."""
        self._warn_of_drift()
        seen = self._state.stream.totals
        overshoots = seen.projected > (1 + OVERSHOOT) * max(seen.energy, 0.0)
        if self.expansion_.basis.exact_norms and overshoots:
            tell(INDEFINITE.format(self.kernel_))
        elif self.n_samples_seen_ > 1 and self._variance <= ZERO_VARIANCE * seen.energy:
            tell(NO_VARIANCE)


def check_span(stream) -> None:
    """Raise ValueError where the rows have given a stream no direction to begin with."""
    if stream.span.size:
        return
    if not np.isfinite(stream.totals.energy):
        raise ValueError(
            f"{stream.span.kernel!r} gives values that are not finite on these data. Scale the "
            "data or change the kernel's parameters."
        )
    raise ValueError(
        "All rows so far have k(x, x) = 0, as zero rows have in a linear kernel: there is no "
        "direction to begin with. Start with a batch that has other rows."
    )
