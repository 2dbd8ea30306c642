"""Kernel PCA of streams, as a scikit-learn estimator."""

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Annotated, Any, ClassVar, Self, cast
from zlib import crc32

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..bases import BasisRecipe, FourierBasis, FourierGrid, RandomFeatures
from ..bases.points import wide_rows
from ..compute import Array, TiledEngine, is_sparse, match_sparsity, restore, stack_rows, to_numpy
from ..exceptions import ModelFileError, tell
from ..files import is_arrow
from ..fitting.checkpoint import Progress, RowDigest
from ..fitting.functions import RowSample, pack, unpack
from ..fitting.moments import ExtraColumn
from ..fitting.task import model_rows
from ..kernels.base import check_values
from ..kernels.function import NO_BATCHES, Objects
from ..preimage import Preimage
from ..rows import ArrayRows, Rows, in_memory, like_of, with_extras
from ..selectors import Novelty
from ..stream import components
from ..stream.dictionary import GrowingDictionary, threshold_of
from ..stream.moments import FixedSpan, FourierStream, Stream, Totals, as_float, transition
from ._checks import FADING, Count, Interval, StrOptions, as_weights, checked_weights
from ._door import NOT_SAVED, SETTLING_ROWS, Fitted, become, kept, unfitted
from ._model import INDEFINITE, NO_VARIANCE, ZERO_VARIANCE, KernelModel, variances_along

# Batches that `history_` remembers: an endless stream must not fill the memory.
HISTORY = 1000
# Attributes that are made when they are asked for.
COMPONENTS = {
    *("expansion_", "certificate_", "eigenvalues_", "explained_variance_", "landmarks_"),
    *("explained_variance_ratio_", "_variance"),
}
# A warning is given if more than this share of a batch's energy is outside a full dictionary.
LOST_TOO_MUCH = 0.05


# Spans by name.
SPANS = StrOptions({"dictionary", "features", "fourier"})


@dataclass(frozen=True)
class Unread:
    """Components after the last batch, which are made on demand.

    Attributes
    ----------
    rows : Rows
        Those learned last: results are of their type, and in their array library.
    engine : TiledEngine
    n_components : int
    problem : Problem
    before : dict
        Attributes of the components that were made last.
    """

    rows: Rows
    engine: TiledEngine
    n_components: int
    problem: Any
    before: dict[str, Any]


class StreamingKernelPCA(KernelModel):
    """Kernel PCA of data that never end, in a fixed amount of memory.

    Each row is projected on a small span of feature space, and the moments of the projections
    are kept: m x m numbers, from which the components follow at any time. The span is that of a
    dictionary, which grows by rows outside of its span, of given landmarks, or of random features.
    If nothing is forgotten, the result depends on the rows and their order, not on how they
    were cut into batches. What the span leaves out is measured and bounds the error
    (`certificate_`).

    Parameters
    ----------
    n_components : int, default=10
        Number of components. While there are fewer rows, the last components have
        zero eigenvalues and zero scores.

    kernel : str, Kernel or callable, default="rbf"
        As in `KernelPCA`.

    gamma : float, "auto", "median", "mean" or None, default="auto"
        As in `KernelPCA`; "auto" is "median" for kernels of a distance, else None. It is measured
        on the first batches until they hold 100 rows, or the first one if that has more, `fit` on
        its array: until then `partial_fit` begins again with all rows. If the first rows are not
        like those to come, give a number: then the result depends on no batch.

    degree, coef0, kernel_params
        As in `KernelPCA`.

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
        Of the last 1,000 batches: rows, points that joined, share of energy lost. Those that settle
        a width count as one.

    n_features_in_ : int
        Columns of X.

    feature_names_in_ : array of str
        Their names, where X has them.

    significance_ : Significance
        What `significance` found last.

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

    After `partial_fit` components are made when they are first asked for.

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

    _fitted: ClassVar[dict[str, Fitted]] = KernelModel._fitted | {
        "X_sample_": kept("s d sparse"),
        "n_samples_seen_": kept(Annotated[int, "[0, inf)"]),
        "history_": kept(list[components.BatchRecord]),
        "lost_share_": kept("(-inf, inf)"),
        "_variance": kept("(-inf, inf)"),
        "_state": kept("State d"),
        "_unread": NOT_SAVED,
    }

    n_components: int = 10
    _: KW_ONLY
    kernel: Any = "rbf"
    gamma: Any = "auto"
    basis: Annotated[str | BasisRecipe, SPANS, BasisRecipe] = "dictionary"
    budget: Count = 500
    novelty: Annotated[Any, Interval(Real, 0, 1, closed="left"), Novelty] = 0.001
    forgetting: Annotated[float, FADING] = 1.0
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
            How often each row counts, as in `partial_fit`.

        Returns
        -------
        self
        """
        self._validate_params()
        model = unfitted(self)
        X, sample_weight = with_extras(X, self.memory, sample_weight=sample_weight)
        listed = isinstance(X, list | tuple) and X and all(len(shape_of(one)) == 2 for one in X)
        is_sequence = listed or (isinstance(X, Iterator) and not is_arrow(X))
        source: Any = Batches(model, X) if is_sequence else model._open(X, reset=True)
        weights = as_weights(sample_weight)
        with self._open_checkpoint(source, weights) as checkpoint:
            opened = source if is_sequence else [source]
            model._learn(opened, sample_weight, checkpoint, is_fit=True)
        become(self, model)
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
        self._validate_params()
        is_first = "_state" not in vars(self)
        # NumPy does not tell the shape of lists of several lengths.
        is_empty = not X if isinstance(X, list | tuple) else np.shape(X)[:1] == (0,)
        if is_empty and not is_first:
            return self
        model = unfitted(self) if is_first else self._with_last()
        X, sample_weight = with_extras(X, self.memory, sample_weight=sample_weight)
        rows = model._open(X, reset=is_first)
        if not is_first and in_memory(rows) is not None and self._relearns(self.X_sample_):
            before, new = self._weights, sample_weight
            model, rows = self._begun_again(self.X_sample_, rows)
            if before is not None or new is not None:
                n = self.n_samples_seen_
                before, new = np.ones(n) if before is None else before, 1.0 if new is None else new
                sample_weight = np.append(before, np.broadcast_to(new, rows.shape[0] - n))
        model._learn([rows], sample_weight)
        become(self, model)
        return self

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
        engine = self._make_engine()
        change = transition(mine.stream.span, theirs.stream.span, engine)
        stream = mine.stream + (theirs.stream if change is None else theirs.stream.mapped(change))
        state = components.State(stream, mine.sample + theirs.sample, mine.reference)
        history = [*self.history_, components.record(mine.stream.totals, stream.totals)]
        # The kept rows of both are a uniform sample of all, unless some are forgotten or both were
        # drawn with the same seed.
        apart = mine.sample.seed != theirs.sample.seed
        uniform = apart and self.forgetting == 1 == other.forgetting
        model = copy(self)
        model._adopt_state(state, history, ArrayRows(self.X_sample_), engine, uniform)
        become(self, model)
        return self

    def _learn(self, opened, sample_weight=None, checkpoint=None, is_fit: bool = False) -> None:
        """Learn from rows, and adopt the components after the last of them.

        Called on a copy of the model: one that fails, or is interrupted, is left.
        """
        self._check_has_rows("A stream")
        self._check_budget()
        state: Any = vars(self).get("_state")
        engine: Any = None
        is_first, history, rows = state is None, [], None
        if not is_first:
            threshold = threshold_of(self.novelty, example=0.001)
            state = state.with_settings(threshold, self.budget, float(self.forgetting))
            history, engine = list(self.history_), self._make_engine()
        stage: Any = None if checkpoint is None else Progress(checkpoint)
        resumed = {} if stage is None else stage.header
        total, hashed, last = RowDigest(), "", 0
        weights = as_weights(sample_weight)
        for number, (rows, part) in enumerate(steps(opened, weights)):
            engine = self._make_engine(in_memory(rows)) if engine is None else engine
            if stage is not None and engine.device is not None:
                raise ValueError("checkpoint= is for streams in main memory. Give device='cpu'.")
            X = engine.place(in_memory(rows))
            if stage is not None:
                hashed = total.add(X)
            last += X.shape[0]
            counts = checked_weights(part, X.shape[0], least=0)
            if counts is not None and not counts.all():
                counted = np.flatnonzero(counts)
                X, counts = X[counted], counts[counted]
            if state is None:
                state = self._begin(X, engine, self._make_rng(checkpoint))
            before, start = state.stream.totals, 0
            if resumed and number == resumed["batch"]:
                checkpoint.check_rows("X", hashed, resumed["hashed"])
                learned, totals, lines = unpack(resumed["state"], stage.arrays)
                state, before = state.resumed(learned, engine), Totals(*totals)
                start, history = resumed["row"], [components.BatchRecord(*line) for line in lines]
                resumed = {}
            if not X.shape[0] or number < resumed.get("batch", 0):
                continue
            settings = engine, self.n_components, self.center
            states = components.states_along(state, X, counts, *settings, start)
            with self._bar_unasked() as bar:
                for row, state in states:
                    if bar.tiles is not None:
                        bar.tiles(row, X.shape[0])
                    if stage is not None and stage.due:
                        arrays: list = []
                        lines = [tuple(line) for line in history[-HISTORY:]]
                        facts = pack((state.learned(), before, lines), arrays)
                        place = {"batch": number, "row": row, "hashed": hashed}
                        stage.write(place | {"state": facts}, arrays)
            history.append(
                components.record(before, state.stream.totals, self.forgetting ** X.shape[0])
            )
        if np.ndim(weights) and len(weights) != last:
            checked_weights(weights, last, least=0)  # which says what is wrong
        if resumed:  # there are fewer batches than before
            checkpoint.check_rows("X", hashed, resumed["hashed"])
        if state is None:
            raise ValueError("There were no batches to learn from. Give at least one with rows.")
        if rows is None:
            return
        if not state.stream.span.size:
            check_values(state.stream.span.kernel, np.asarray(state.stream.totals.energy))
            raise ValueError(
                "All rows so far have k(x, x) = 0, for example rows of zeros with a linear "
                "kernel, and give no direction. Start with a batch that has other rows, or choose "
                "another kernel."
            )
        if is_fit:
            expansion = components.new_reference(state.stream, *settings, state.reference)
            signs = expansion.signs(state.sample.rows, state.stream.totals.rows)
            state = replace(state, reference=expansion.stretched(signs))
        # The kept rows test the certificate where all rows count alike, so not with forgetting, and
        # not after every batch, which would take too long.
        judged = is_fit and sample_weight is None and self.forgetting == 1
        # Negative eigenvalues are looked for among the rows of every batch.
        lazy = not is_first and state.stream.span.kernel.definite
        self._adopt_state(state, history, ArrayRows(X, like_of(rows)), engine, judged, lazy)
        if is_first:
            self._warn_of_width(self.n_samples_seen_)

    def _check_budget(self) -> None:
        if self.basis in ("dictionary", "features") and self.budget < self.n_components:
            raise ValueError(
                f"budget={self.budget} cannot give n_components={self.n_components}. Give a "
                "larger budget, or ask for fewer components."
            )

    def _adopt_state(self, state, history, rows: Rows, engine, judged, lazy=False) -> None:
        """Adopt a state after some rows, and its components unless they can be `lazy`.

        `judged` spends a look at the kept rows on them.
        """
        sample, kernel, totals = state.sample, state.stream.span.kernel, state.stream.totals
        options = {
            # Rows among which negative eigenvalues are looked for.
            "model_rows": in_memory(rows) if "certificate_" in vars(self) else sample.rows,
            "sample": sample.rows if judged else None,
            "seed": sample.seed,
        }
        with engine.single_blas():
            problem = components.stream_problem(
                state.stream, engine, self.center, state.reference, **options
            )
        before = {name: value for name, value in vars(self).items() if name in COMPONENTS}
        unread = Unread(rows, engine, self.n_components, problem, before)
        attributes = {
            "_state": state,
            "_dtype": rows.dtype,
            "kernel_": kernel,
            "gamma_": self._gamma_of(kernel, rows.shape[1]),
            "lost_share_": totals.lost / totals.energy,
            "X_sample_": sample.rows,
            "_weights": sample.weights,
            "n_samples_seen_": totals.rows,
            "history_": history[-HISTORY:],
        }
        later = {"_unread": unread} if lazy else self._components_of(unread, totals)
        self._adopt(attributes | later)
        self._warn_of_state(problem)

    def _components_of(self, unread: Unread, totals: Totals) -> dict[str, Any]:
        """The fitted attributes that are made of the components."""
        problem, rows = unread.problem, unread.rows
        with unread.engine.single_blas():
            result = problem.result(components.leading_pairs(problem, unread.n_components))
        certificate, before = result.certificate, unread.before.get("certificate_")
        if before is not None and before.indefinite:
            certificate = replace(certificate, indefinite=True)
        degrees = max(totals.weight - problem.center, 1.0)
        attributes = variances_along(result.pairs.values, degrees, problem.total, rows) | {
            "_variance": problem.total,
            "expansion_": result.expansion,
            "certificate_": certificate,
        }
        if (points := result.expansion.basis.points) is not None:
            attributes["landmarks_"] = restore(points, like_of(rows))
        return attributes

    def _with_last(self) -> Self:
        """A copy of the model with the components that were made last."""
        fresh, facts = object.__new__(type(self)), dict(vars(self))
        unread = facts.pop("_unread", None)
        fresh.__dict__ = facts if unread is None else facts | unread.before
        return fresh

    def __sklearn_is_fitted__(self) -> bool:
        """Whether rows were learned; components that were not made yet are made now."""
        if (unread := vars(self).get("_unread")) is not None:
            model = self._with_last()
            vars(model).update(self._components_of(unread, self._state.stream.totals))
            become(self, model)  # in one step: other threads may ask as well
        return "n_features_in_" in vars(self)

    def __getattr__(self, name: str) -> Any:
        """An attribute of components that were not made yet."""
        if name in COMPONENTS and "_unread" in vars(self):
            check_is_fitted(self)
            return getattr(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self):
        self.__sklearn_is_fitted__()
        return super().__getstate__()

    def _warn_of_state(self, problem) -> None:
        """Warnings after a step of the stream."""
        full = [batch for batch in self.history_ if batch.size >= self.budget]
        # A stream that forgets follows rows that drift, and a full dictionary cannot.
        if self.basis == "dictionary" and self.forgetting < 1 and full:
            first, last = full[0].lost_share, self.history_[-1].lost_share
            if min(last, self.lost_share_) > max(LOST_TOO_MUCH, 2 * first):
                tell(
                    f"The dictionary is full (budget={self.budget}) and misses {last:.0%} of the "
                    f"energy of the last rows; it missed {first:.0%} when it was filled. The data "
                    "drift faster than points are replaced, or need more points. Raise budget or "
                    "novelty."
                )
        certificate = vars(self).get("certificate_")
        if certificate is not None and certificate.indefinite:
            tell(INDEFINITE.format(self.kernel_))
        elif self.n_samples_seen_ > 1 and problem.total <= ZERO_VARIANCE * problem.scale:
            tell(NO_VARIANCE)

    def _complete(self) -> None:
        if repr(self._state.stream.span.kernel) != repr(self.kernel_):
            raise ModelFileError("the state of a stream has another kernel than its model")
        self._check_budget()
        super()._complete()

    _least_rows = 1

    def _device(self):
        if self.basis == "dictionary":
            return "cpu"  # rows join it one by one
        fitted: Any = vars(self).get("expansion_")
        # Where no device is asked for, that of the first batch.
        is_settled = self.device is None and fitted is not None
        return fitted.basis.engine.device if is_settled else self.device

    def _encoded(self, X, reset):
        encoder = self._encoder()
        if encoder is Objects:
            raise ValueError(NO_BATCHES)
        if encoder is not None and encoder.of(X) is not None:
            raise ValueError(
                "A stream learns batch by batch, and the categories that kernel="
                f"{self.kernel!r} compares are those of all rows. Use "
                "KernelPCA(basis='landmarks'), or pass codes for categories."
            )
        return X

    def _check(self, X, reset):
        """Rows checked for the model, sparse or dense as it is."""
        return match_sparsity(super()._check(X, reset), vars(self).get("X_sample_"))

    def _begin(self, X, engine, rng) -> components.State:
        """The state before the first row, with kernel and span chosen."""
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
                    f"basis={self.basis!r} keeps every row, and a stream may have any number. Use "
                    "basis='dictionary', Landmarks or RandomFeatures, or KernelPCA for fixed data."
                )
            span = FixedSpan(basis, basis.whitener(np.float64))
            kind = FourierStream if isinstance(basis, FourierBasis) else Stream  # type: ignore
        self._check_preimage(span.basis(engine))  # fails before the work if it would fail after
        # Rows of streams that are merged must be drawn apart, whatever their random_state.
        row = X[:1].toarray() if is_sparse(X) else to_numpy(X[:1])
        checksum = crc32(np.ascontiguousarray(row).tobytes())
        sample = RowSample(model_rows(X, engine.memory), int(rng.integers(2**32)) ^ checksum)
        return components.State(kind.start(span, float(self.forgetting)), sample, None)


@dataclass(frozen=True)
class Batches:
    """A list or an iterator of batches, each of which is opened when it is its turn."""

    model: StreamingKernelPCA
    X: Any

    def __iter__(self) -> Iterator[Rows]:
        # Empty batches are skipped; the checks see to those without a shape.
        filled = (batch for batch in self.X if shape_of(batch)[:1] != (0,))
        opened = (self.model._open(batch, reset=at == 0) for at, batch in enumerate(filled))
        first: Any = next(opened, None)
        # Rows that settle the width are learned at once, as `partial_fit` would have them.
        for rows in opened:
            X: Any = in_memory(first)
            more: Any = in_memory(rows)
            few = X is not None and more is not None and X.shape[0] < SETTLING_ROWS
            if not (few and self.model._measures_kernel(X.shape[1])):
                yield from (first, rows)
                break
            first = ArrayRows(stack_rows([X, match_sparsity(more, X)]), like_of(first))
        else:
            yield from [] if first is None else [first]
        yield from opened

    def identity(self) -> list:
        """A digest of the batches, for a checkpoint."""
        if isinstance(self.X, Iterator):
            raise ValueError(
                "checkpoint= needs batches that can be read again, and an iterator can be read "
                "only once. Pass a list of batches, a file or a function that returns an iterator."
            )
        return [rows.identity() for rows in Batches(unfitted(self.model), self.X)]


def shape_of(batch: Any) -> tuple:
    """The shape of a batch; of one that is no array, what is no shape of rows."""
    try:
        return np.shape(batch)
    except ValueError:
        return ()


def steps(opened: Iterable[Rows], weights: Any) -> Iterator[tuple[Rows, Any]]:
    """Rows in memory that are learned at once, with their weights.

    An array, or a block of a file or a cluster.
    """
    first = 0
    for rows in opened:
        if isinstance(weights, ExtraColumn):
            table: Any = rows
            pairs = table.blocks_with_extras()
            yield from ((ArrayRows(block), columns[weights.name]) for block, columns in pairs)
            continue
        blocks = (ArrayRows(block) for block in rows.blocks() if block.shape[0])
        for part in blocks if in_memory(rows) is None else [rows]:
            last = first + cast(int, part.shape[0])
            yield part, weights[first:last] if np.ndim(weights) else weights
            first = last
