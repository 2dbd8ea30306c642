"""Kernel PCA of streams, as a scikit-learn estimator."""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self
from zlib import crc32

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ..bases import BasisRecipe, FourierBasis, FourierGrid, RandomFeatures
from ..checkpoint import Checkpoint
from ..compute import is_sparse, make_engine, match_sparsity, restore, to_numpy
from ..compute.arrays import Array, is_on_device
from ..compute.engines import device_index
from ..exceptions import tell
from ..files import is_arrow
from ..kernels import Kernel
from ..preimage import PREIMAGES, Preimage
from ..rows import BlockRows, DaskRows, is_dask, is_source
from ..rows.array import ArrayRows, float_type, in_type
from ..sampling import RowSample
from ..selectors import Novelty
from ..stream.components import components_of, moved_reference, new_reference
from ..stream.dictionary import GrowingDictionary
from ..stream.fourier import FourierStream
from ..stream.moments import FixedSpan, Stream, as_float, rows_to_look, transition
from ..stream.state import (
    BatchRecord,
    State,
    record,
    to_checkpoint,
)
from ._batches import HISTORY, Several, StreamLog, ahead, as_rows, has_rows, is_several
from ._checks import check_file, check_tensor, valid_rows
from ._estimator import INDEFINITE, OVERSHOOT, SAMPLE_ROWS, ZERO_VARIANCE, KernelEstimator
from ._input import in_main_memory, named_rows
from ._mixed import is_mixed
from ._parameters import Interval, StrOptions
from ._weights import checked_weights
from ._whole import become, unfitted

__all__ = ["BatchRecord", "State", "StreamingKernelPCA"]

# Share of the energy of a batch outside a full dictionary that a user should know of.
LOST_TOO_MUCH = 0.05


class StreamingKernelPCA(KernelEstimator):
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

    _parameter_constraints: ClassVar[dict] = KernelEstimator._parameter_constraints | {
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
        batches = self._batches(X)
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
        history = [*self.history_, record(mine.stream, stream, kept=1.0)]
        # Rows of both are uniform ones of all, unless some are forgotten or were drawn together.
        apart = mine.sample.seed != theirs.sample.seed
        uniform = apart and self.forgetting == 1 == other.forgetting
        self._become(
            state, history, engine, self.X_sample_, sample=state.sample.rows if uniform else None
        )
        return self

    def _batches(self, X):
        """The batches of an iterator, of a list of 2D arrays, a file or Dask; an array is one."""
        if is_several(X) or (isinstance(X, Iterator) and not is_arrow(X)):
            return filter(has_rows, X)
        if is_dask(X):
            return DaskRows(X, self.memory, self.n_jobs).batches()
        if is_source(X):
            rows = BlockRows(X, self.memory, verbose=self.verbose)
            return (named_rows(batch, rows.names, X) for batch in rows.batches())
        return [X]

    def _kept_for(self, X, weights) -> Checkpoint | None:
        """The checkpoint of a fit to rows and their weights."""
        rows = self._identified(X)
        rows.weights = None if weights is None else np.asarray(weights)
        return self._open_checkpoint(rows)

    def _identified(self, X):
        """The rows of a fit that may be killed and go on, which says what they are."""
        if is_several(X):
            return Several([ArrayRows(in_main_memory(b, type(self).__name__)) for b in X])
        if isinstance(X, Iterator) and not is_arrow(X):
            raise ValueError(
                "checkpoint= needs batches that can be read again, and an iterator can be read "
                "only once. Pass a list of batches, a file or a function that returns an iterator."
            )
        if is_dask(X):
            return DaskRows(X, self.memory, self.n_jobs)
        if is_source(X):
            return BlockRows(X, self.memory)
        return ArrayRows(np.asarray(X) if isinstance(X, list | tuple) else as_rows(X))

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

    def _learn_all(self, batches, afresh, engine, judged, sample_weight, kept=None):
        state, history = (None, []) if afresh else (self._renewed(), list(self.history_))
        log, source, X = StreamLog(kept), None, None
        for number, source in enumerate(batches):
            X = self._checked(source, state is None, engine)
            counts = checked_weights(sample_weight, X.shape[0], least=0)
            if counts is not None and not counts.all():
                some = np.flatnonzero(counts)
                X, counts = X[some], counts[some]
            if state is None and not X.shape[0]:
                raise ValueError(
                    "Every sample_weight is zero, so there is no row to begin with. Give at least "
                    "one row a positive weight."
                )
            if state is None:
                rng = self._make_rng() if kept is None else np.random.default_rng(kept.seed)
                state = self._begin(X, engine, rng)
                state, history = log.resume(state, history, engine)
            if X.shape[0] and number >= log.batch:
                before, start = log.begun(number, state.stream)
                note = partial(log.note, number, before, history)
                state = self._follow(state, X, engine, counts, start, note)
                history.append(record(before, state.stream, self.forgetting ** X.shape[0]))
        if X is None or state is None:
            raise ValueError("There were no batches to learn from. Give at least one with rows.")
        if not state.stream.span.size and not np.isfinite(state.stream.moments.energy):
            raise ValueError(
                f"{state.stream.span.kernel!r} gives values that are not finite on these data. "
                "Scale the data or change the kernel's parameters."
            )
        if not state.stream.span.size:
            raise ValueError(
                "All rows so far have k(x, x) = 0, as zero rows have in a linear kernel: there is "
                "no direction to begin with. Start with a batch that has other rows."
            )
        # With forgetting the kept rows are not uniform.
        sample = state.sample.rows if judged and self.forgetting == 1 else None
        self._become(state, history, engine, X, source, sample)

    def _check(self, X, reset):
        """Rows checked for the model, sparse or dense as it is."""
        return match_sparsity(super()._check(X, reset), self.X_sample_)

    def _kept_engine(self, X=None, afresh=False):
        """The engine of the batches before: making one takes longer than learning a small batch.

        A new model computes where its first batch X is.
        """
        where = self.device
        if self.basis == "dictionary":
            where = "cpu"  # rows join one by one
        elif where is None and afresh and is_on_device(X):
            where = f"cuda:{device_index(X)}"
        elif where is None and not afresh and "expansion_" in vars(self):
            where = self.expansion_.basis.engine.device
        settings = self.memory, self.n_jobs, where
        kept = vars(self).get("_engine")
        if kept is None or kept[0] != settings:
            made = make_engine(memory=self.memory, device=where, threads=self.n_jobs)
            kept = self._engine = settings, made
        return kept[1]

    def _checked(self, X, first, engine):
        """A batch of finite floats: on the device of the engine, or as NumPy's or SciPy's."""
        if self._is_gower() and is_mixed(X):
            raise ValueError(
                "A stream learns batch by batch, and the ranges and categories that Gower compares "
                "by are those of all rows. Use KernelPCA(kernel='gower', basis='landmarks'), or "
                "codes for categories with kernel=Gower(ranges=...)."
            )
        if engine.device is not None and is_on_device(X):
            return check_tensor(self, X, first, least=1)
        X = self._checked_on_host(X, first)
        return X if engine.device is None else engine.place(X)

    def _checked_on_host(self, X, first):
        """A batch as a NumPy array, memmap or CSR matrix of finite floats."""
        grows = " with a growing dictionary" if self.basis == "dictionary" else ""
        X = in_main_memory(X, f"StreamingKernelPCA{grows}")
        if isinstance(X, np.memmap):
            check_file(X)
            return validate_data(self, X, reset=first, skip_check_array=True)
        return valid_rows(
            self,
            X,
            reset=first,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=1 if first else 0,
        )

    def _check_settings(self):
        if self._is_precomputed():
            raise ValueError(
                "A stream needs rows, and a precomputed kernel has none. Give a kernel by name, or "
                "use KernelPCA for a matrix."
            )
        sized = self.basis in ("dictionary", "features")
        if sized and self.budget < self.n_components:
            raise ValueError(
                f"budget={self.budget} cannot give n_components={self.n_components}. Give a "
                "larger budget, or ask for fewer components."
            )
        if isinstance(self.novelty, Novelty) and self.novelty.threshold is None:
            raise ValueError(
                "novelty=Novelty() has no threshold to tell new rows by. Give one, for example "
                "Novelty(threshold=0.001)."
            )

    def _threshold(self) -> float:
        given: Any = self.novelty.threshold if isinstance(self.novelty, Novelty) else self.novelty
        return given

    def _begin(self, X, engine, rng) -> State:
        """The state before the first row: the kernel and the span are settled."""
        kernel = self._make_kernel(X)
        span = self._make_span(kernel, X, engine, rng)
        self._preimage_recipe(span.basis(engine))  # fails before the work if it would fail after
        # Rows of streams that are merged must be drawn apart, whatever their random_state.
        own = crc32(
            np.ascontiguousarray(X[:1].toarray() if is_sparse(X) else to_numpy(X[:1])).tobytes()
        )
        sample = RowSample(SAMPLE_ROWS, int(rng.integers(2**32)) ^ own)
        kind = FourierStream if isinstance(span.basis(engine), FourierBasis) else Stream
        return State(kind.start(span, float(self.forgetting)), sample, None)

    def _make_span(self, kernel, X, engine, rng):
        if self.basis == "dictionary":
            return GrowingDictionary(kernel, self._threshold(), self.budget, as_float(X[:0]))
        named = {"features": RandomFeatures(self.budget), "fourier": FourierGrid()}
        recipe = named[self.basis] if isinstance(self.basis, str) else self.basis
        basis = recipe.build(kernel, as_float(X), engine, rng, self.n_components)
        if basis.spans_data:
            raise ValueError(
                f"basis={self.basis!r} keeps every row, and a stream has no end of them. Use "
                "basis='dictionary', Landmarks or RandomFeatures, or KernelPCA for fixed data."
            )
        return FixedSpan.of(basis)

    def _renewed(self) -> State:
        """The state of the model, under the parameters as they are now."""
        state, span = self._state, self._state.stream.span
        now = self._threshold(), self.budget
        if isinstance(span, GrowingDictionary) and (span.novelty, span.budget) != now:
            span = replace(span, novelty=self._threshold(), budget=self.budget)
        stream = replace(state.stream, span=span, forgetting=float(self.forgetting))
        return state._replace(stream=stream)

    def _follow(self, state, X, engine, counts, start, note) -> State:
        """The state after a batch; at fixed numbers of rows the signs get a new reference."""
        stream, sample, reference = state
        stream.span.kernel.check(X)
        X = match_sparsity(X, sample.rows)
        n = X.shape[0]
        while start < n:
            wait = (to_checkpoint, rows_to_look)
            stop = min(n, start + min(rows(stream.count, self.forgetting) for rows in wait))
            part = X[start:stop]
            sample = sample.add(part, stream.count, self.forgetting)
            some = None if counts is None else counts[start:stop]
            stream = stream.learn(part, engine, some)
            if rows_to_look(stream.count - 1, self.forgetting) == 1:
                stream, reference = self._without_faded(stream, reference, engine)
            if stream.span.size and to_checkpoint(stream.count - 1, self.forgetting) == 1:
                reference = new_reference(stream, self.n_components, self.center, engine, reference)
            start = stop
            note(start, State(stream, sample, reference))
        return State(stream, sample, reference)

    def _without_faded(self, stream, reference, engine):
        """The stream and its reference without points that have faded."""
        grows = isinstance(stream.span, GrowingDictionary)
        found = stream.without_faded() if grows else None
        if found is None:
            return stream, reference
        smaller, T = found
        if reference is not None:
            reference = moved_reference(smaller, stream.span, T, reference, self.center, engine)
        return smaller, reference

    def _become(self, state, history, engine, X, source=None, sample=None):
        """Set the fitted attributes."""
        found = components_of(
            state.stream, self.n_components, self.center, engine, state.reference, sample
        )
        weight = state.stream.moments.count
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
            explained_variance_=out(found.values / max(weight - self.center, 1.0)),
            explained_variance_ratio_=out(shares),
            lost_share_=state.stream.moments.lost_energy / state.stream.moments.energy,
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
        moments = self._state.stream.moments
        if self.expansion_.basis.exact_norms and moments.overshoots(OVERSHOOT):
            tell(INDEFINITE.format(self.kernel_))
        elif self.n_samples_seen_ > 1 and self._variance <= ZERO_VARIANCE * moments.energy:
            tell(
                "The data have no variance in feature space, as when all rows are equal: "
                "every component is zero."
            )
