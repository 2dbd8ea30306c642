"""Kernel PCA of streams, as a scikit-learn estimator."""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from itertools import chain, islice
from numbers import Real
from types import SimpleNamespace
from typing import Any, ClassVar, Self
from zlib import crc32

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..bases import BasisRecipe, FourierBasis, FourierGrid, RandomFeatures
from ..bases.points import wide_rows
from ..compute import is_sparse, make_engine, match_sparsity, restore, to_numpy
from ..compute.arrays import Array, is_on_device
from ..compute.engine import device_index
from ..compute.linalg import peak_signs
from ..exceptions import tell
from ..files import is_arrow
from ..fitting.partial_sums import pack, unpack
from ..fitting.sampling import RowSample
from ..fitting.task import model_rows
from ..kernels.base import check_values
from ..preimage import Preimage
from ..rows import ArrayRows, BlockRows, DaskRows, is_dask, is_source
from ..rows.array import float_type, in_type
from ..selectors import Novelty
from ..stream.components import components_of, new_reference
from ..stream.dictionary import GrowingDictionary, threshold_of
from ..stream.moments import FixedSpan, FourierStream, Stream, Totals, as_float, transition
from ..stream.state import BatchRecord, State, follow, record
from ._checks import checked_weights, in_main_memory, named_rows
from ._door import become, unfitted
from ._model import INDEFINITE, NO_VARIANCE, ZERO_VARIANCE, KernelModel
from ._parameters import AT_LEAST_1, Interval, StrOptions

# Batches that `history_` remembers: an endless stream must not fill the memory.
HISTORY = 1000
# Share of the energy of a batch outside a full dictionary that a user should know of.
LOST_TOO_MUCH = 0.05


@dataclass(eq=False, repr=False)
class StreamingKernelPCA(KernelModel):
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
    explain less than what is lost for each point: those that only forgotten rows were like.
    What the others had along them is counted as lost. A dictionary that cannot follow warns.

    A point that joins adds a direction along which earlier rows are not known. What they had
    there was outside the span when they came, so it is counted as lost, and the certificate
    allows for the worst it can be. Its share falls while nothing joins.

    `fit` gives components the signs of `KernelPCA`, which do not depend on the order of the rows.
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
    >>> bool((abs(once.transform(X)) - abs(model.transform(X))).max() < 1e-9)
    True
    """

    _parameter_constraints: ClassVar[dict] = KernelModel._parameter_constraints | {
        "basis": [StrOptions({"dictionary", "features", "fourier"}), BasisRecipe],
        "budget": [AT_LEAST_1],
        "novelty": [Interval(Real, 0, 1, closed="left"), Novelty],
        "forgetting": [Interval(Real, 0, 1, closed="right")],
    }

    n_components: int = 10
    _: KW_ONLY
    basis: str | BasisRecipe = "dictionary"
    budget: int = 500
    novelty: Any = 0.001
    forgetting: float = 1.0
    preimage: str | Preimage = "auto"

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
        batches, identity = opened(X, self)
        if sample_weight is not None and not isinstance(batches, list):
            raise ValueError(
                "sample_weight is for one array, and X is a sequence of batches, a file or rows on "
                "a cluster. Give partial_fit each batch with the weights of its rows."
            )
        self._validate_params()
        weights = None if sample_weight is None else np.asarray(sample_weight)
        identified: Any = SimpleNamespace(identity=identity)
        with self._open_checkpoint(identified, weights) as kept:
            self._learn(batches, True, sample_weight, kept, whole=True)
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
        return self._learn([X], "_state" not in vars(self), sample_weight)

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
        engine = self._engine_for()
        change = transition(mine.stream.span, theirs.stream.span, engine)
        stream = mine.stream + (theirs.stream if change is None else theirs.stream.mapped(change))
        state = State(stream, mine.sample + theirs.sample, mine.reference)
        history = [*self.history_, record(mine.stream.totals, stream.totals, kept=1.0)]
        # Rows of both are uniform ones of all, unless some are forgotten or were drawn together.
        apart = mine.sample.seed != theirs.sample.seed
        uniform = apart and self.forgetting == 1 == other.forgetting
        self._adopt_stream(state, history, engine, self.X_sample_, judged=uniform)
        return self

    def _learn(self, batches, afresh, sample_weight=None, kept=None, whole=False):
        """Learn from batches; the model changes as a whole, after the last of them."""
        self._validate_params()
        if self._is_precomputed():
            raise ValueError(
                "A stream needs rows, and a precomputed kernel has none. Give a kernel by name, or "
                "use KernelPCA for a matrix."
            )
        if self.basis in ("dictionary", "features") and self.budget < self.n_components:
            raise ValueError(
                f"budget={self.budget} cannot give n_components={self.n_components}. Give a "
                "larger budget, or ask for fewer components."
            )
        novelty, encoder = threshold_of(self.novelty, example=0.001), self._encoder()
        batches = iter(batches)
        first = list(islice(batches, 1))
        engine = self._engine_for(first[0] if first else None, afresh)
        if kept is not None and engine.device is not None:
            raise ValueError("checkpoint= is for streams in main memory. Give device='cpu'.")
        model = unfitted(self) if afresh else copy(self)
        state, history = (None, []) if afresh else (self._state, list(self.history_))
        if state is not None:  # with the settings of now
            stream, span = state.stream, state.stream.span
            if isinstance(span, GrowingDictionary):
                now: dict[str, Any] = {"novelty": novelty, "budget": self.budget}
                span = span if now.items() <= vars(span).items() else replace(span, **now)
            stream = replace(stream, span=span, forgetting=float(self.forgetting))
            state = replace(state, stream=stream)
        log: Any = None if kept is None else kept.next_stage("loop")
        known = {} if log is None else log.header
        source = X = None
        for number, source in enumerate(chain(first, batches)):
            if state is not None and np.shape(source)[:1] == (0,):
                continue
            if encoder is not None and encoder.of(source) is not None:
                raise ValueError(
                    "A stream learns batch by batch, and the categories that kernel="
                    f"{self.kernel!r} compares are those of all rows. Use "
                    "KernelPCA(basis='landmarks'), or pass codes for categories."
                )
            X = model._check(source, state is None)
            X = X if engine.device is None else engine.place(X)
            counts = checked_weights(sample_weight, X.shape[0], least=0)
            if counts is not None and not counts.all():
                some = np.flatnonzero(counts)
                X, counts = X[some], counts[some]
            if state is None:
                state = model._begin(X, engine, self._make_rng(kept))
            before, start = state.stream.totals, 0
            if known and number == known["batch"]:
                learned, totals, lines = unpack(log.header["state"], log.arrays)
                state, before = state.resumed(learned, engine), Totals(*totals)
                start, history = known["row"], [BatchRecord(*line) for line in lines]
            if not X.shape[0] or number < known.get("batch", 0):
                continue
            way = follow(state, X, counts, engine, self.n_components, self.center, start)
            for row, state in way:
                if log is not None and log.due:
                    arrays: list = []
                    lines = [tuple(line) for line in history[-HISTORY:]]
                    facts = pack((state.learned(), before, lines), arrays)
                    log.write({"batch": number, "row": row, "state": facts}, arrays)
            history.append(record(before, state.stream.totals, self.forgetting ** X.shape[0]))
        if state is None:
            raise ValueError("There were no batches to learn from. Give at least one with rows.")
        if X is None:
            return self
        if not state.stream.span.size:
            check_values(state.stream.span.kernel, np.asarray(state.stream.totals.energy))
            raise ValueError(
                "No row so far has k(x, x) above 0, as zero rows have none in a linear kernel: "
                "there is no direction to begin with. Start with a batch that has other rows, or "
                "choose another kernel."
            )
        if whole:
            settings = self.n_components, self.center, engine, state.reference
            found = new_reference(state.stream, *settings)
            signs = peak_signs(found.scores(state.sample.rows))
            state = replace(state, reference=found.stretched(signs))
        # The kept rows judge the certificate of rows that count alike, which with forgetting they
        # do not; too much after every batch.
        judged = whole and sample_weight is None and self.forgetting == 1
        model._adopt_stream(state, history, engine, X, source, judged)
        model._warn()
        if afresh:
            model._warn_of_width(model.n_samples_seen_)
        become(self, model)
        return self

    def _engine_for(self, X=None, afresh=False):
        """The engine of the batches before; that of a new model works where its first batch is."""
        where = self._device()
        if where is None and afresh and is_on_device(X):
            where = f"cuda:{device_index(X)}"
        elif where is None and not afresh:
            where = self.expansion_.basis.engine.device
        settings = self.memory, self.n_jobs, where
        if self._engine is None or self._engine[0] != settings:
            made = make_engine(memory=self.memory, device=where, threads=self.n_jobs)
            self.__dict__["_engine"] = settings, made
        return self._engine[1]

    #: Settings of an engine, and the engine.
    _engine: ClassVar[Any] = None
    # Set by fits, and no parameters.
    _state: ClassVar[Any]
    _variance: ClassVar[float]
    history_: ClassVar[list]
    lost_share_: ClassVar[float]
    n_samples_seen_: ClassVar[int]
    _least_rows = 1

    def _device(self):
        return "cpu" if self.basis == "dictionary" else self.device  # rows join it one by one

    def _check(self, X, reset):
        """Rows checked for the model, sparse or dense as it is."""
        return match_sparsity(super()._check(X, reset), vars(self).get("X_sample_"))

    def _begin(self, X, engine, rng) -> State:
        """The state before the first row: the kernel and the span are settled."""
        if not X.shape[0]:
            raise ValueError(
                "Every sample_weight is zero, so there is no row to begin with. Give at least one "
                "row a positive weight."
            )
        kernel, kind = self._make_kernel(X), Stream
        span: Any = None
        if self.basis == "dictionary":
            threshold = threshold_of(self.novelty, example=0.001)
            span = GrowingDictionary(kernel, threshold, self.budget, as_float(X[:0]))
        else:
            named = {"features": RandomFeatures(self.budget), "fourier": FourierGrid()}
            recipe = named[self.basis] if isinstance(self.basis, str) else self.basis
            basis = recipe.build(kernel, wide_rows(X), engine, rng, self.n_components)
            if basis.spans_data:
                raise ValueError(
                    f"basis={self.basis!r} keeps every row, and a stream has no end of them. Use "
                    "basis='dictionary', Landmarks or RandomFeatures, or KernelPCA for fixed data."
                )
            span = FixedSpan(basis, basis.whitener(np.float64))
            kind = FourierStream if isinstance(basis, FourierBasis) else Stream  # type: ignore
        self._check_preimage(span.basis(engine))  # fails before the work if it would fail after
        # Rows of streams that are merged must be drawn apart, whatever their random_state.
        row = X[:1].toarray() if is_sparse(X) else to_numpy(X[:1])
        own = crc32(np.ascontiguousarray(row).tobytes())
        sample = RowSample(model_rows(X, engine.memory), int(rng.integers(2**32)) ^ own)
        return State(kind.start(span, float(self.forgetting)), sample, None)

    def _adopt_stream(self, state, history, engine, X, source=None, judged=False):
        """Set the fitted attributes; `judged` spends a look at the kept rows on the certificate."""
        sample, seen, before = state.sample, state.stream.totals, vars(self).get("certificate_")
        found, total = components_of(
            state.stream,
            self.n_components,
            self.center,
            engine,
            state.reference,
            sample.rows if before is None else X,
            sample.rows if judged else None,
            sample.seed,
        )
        known = found.certificate
        if before is not None and before.indefinite:
            known = replace(known, indefinite=True)
        values, points = found.pairs.values, found.expansion.basis.points
        with np.errstate(over="ignore"):  # the total of an indefinite kernel may be nothing
            ratios = np.minimum(values / max(total, np.finfo(float).tiny), 1.0)
        single = float_type(X)

        def out(array):
            return restore(in_type(np.asarray(array), single), source)

        self.__dict__.update(
            _state=state,
            _dtype=np.dtype(single),
            _variance=total,
            kernel_=state.stream.span.kernel,
            expansion_=found.expansion,
            certificate_=known,
            eigenvalues_=out(values),
            explained_variance_=out(values / max(seen.weight - self.center, 1.0)),
            explained_variance_ratio_=out(ratios),
            lost_share_=seen.lost / seen.energy,
            X_sample_=sample.rows,
            _weights=sample.weights,
            n_samples_seen_=seen.rows,
            history_=history[-HISTORY:],
        )
        if points is not None:
            self.landmarks_ = restore(points, source)
        self._set_gamma(X.shape[1])

    def _warn(self):
        """Say what the user may not expect of the result."""
        seen = self._state.stream.totals
        full = [batch for batch in self.history_ if batch.size >= self.budget]
        # A stream that forgets is to follow its rows, and a full dictionary cannot.
        if self.basis == "dictionary" and self.forgetting < 1 and full:
            first, last = full[0].lost_share, self.history_[-1].lost_share
            if min(last, self.lost_share_) > max(LOST_TOO_MUCH, 2 * first):
                tell(
                    f"The dictionary is full (budget={self.budget}), and {last:.0%} of the energy "
                    f"of the last rows lies outside of its span, after {first:.0%} when it was "
                    "filled: the data drift faster than points leave, or need more of them. Raise "
                    "budget or novelty."
                )
        if self.certificate_.indefinite:
            tell(INDEFINITE.format(self.kernel_))
        elif self.n_samples_seen_ > 1 and self._variance <= ZERO_VARIANCE * seen.energy:
            tell(NO_VARIANCE)


def opened(X, model) -> tuple[Any, Callable[[], list]]:
    """The batches of whatever X is, an array being one; and a function that identifies it."""

    def identities():
        if isinstance(X, Iterator):
            raise ValueError(
                "checkpoint= needs batches that can be read again, and an iterator can be read "
                "only once. Pass a list of batches, a file or a function that returns an iterator."
            )
        return [ArrayRows(in_main_memory(batch, type(model).__name__)).identity() for batch in X]

    several = isinstance(X, list | tuple) and X and all(np.ndim(batch) == 2 for batch in X)
    if several or (isinstance(X, Iterator) and not is_arrow(X)):
        # Without those that are plainly empty; what has no shape is for the checks to judge.
        return (batch for batch in X if np.shape(batch)[:1] != (0,)), identities
    if is_dask(X):
        chunks = DaskRows(X, model.memory, model.n_jobs)
        return chunks.blocks(), chunks.identity
    if is_source(X):
        rows = BlockRows(X, model.memory, verbose=model.verbose)
        return (named_rows(batch, rows.names, X) for batch in rows.blocks()), rows.identity
    return [X], lambda: ArrayRows(X.tocsr() if is_sparse(X) else np.asarray(to_numpy(X))).identity()
