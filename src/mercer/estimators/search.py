"""Choosing the kernel's width and the number of components by the error of pre-images.

Feature-space errors cannot choose: they fall without end as the kernel widens and as components
are added. What can be compared is the way back: rows held out of the fit are damaged, and the
choice is what brings them closest to where they were. Adding noise is the trial for clean data.
Where the data are noisy themselves it would teach to keep their noise; then coordinates are hidden
and predicted instead.
"""

from copy import copy
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._tables import Shown
from ..bases.fourier import FourierGrid, SharedGrid
from ..compute import Array, Same, is_sparse, parse_bytes
from ..exceptions import tell, trials
from ..kernels import KERNELS, Kernel, Laplacian
from ..preimage import FixedPoint, choose_preimage
from ..preimage.base import total_std
from ..progress import PassBar
from ._checks import AT_LEAST_1, NOISE, POSITIVE, Several, StrOptions
from ._door import NO_MATRIX, Door, Fitted, all_or_nothing, kept
from ._inverse import check_dense
from ._output import certificate_of
from ._sklearn import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from .kernel_pca import KernelPCA
from .novelty import split

# Widths in units of the median distance, from 1/4 to 4: every second one is tried, then those next
# to the best of them.
WIDTHS = tuple(2.0 ** (i / 2) for i in range(-4, 5))
# The most components that are tried first, and in all.
FIRST_MOST, MOST_COMPONENTS = 128, 1024
# Rows held out: their share and the most of them; and the most that fits to all points learn from
# in a search, which are exact and grow with the square. The best is fitted to all rows.
HOLDOUT, MOST_HELD, MOST_LEARNED = 0.2, 200, 2500
# Noise to add where none is given, as a share of the data's total standard deviation.
NOISE_SHARE = 0.3
# Entries hidden, and rounds of filling them in from the pre-image.
HIDDEN_SHARE, ROUNDS = 0.15, 6
# Share of the budget that sparse rows may take when they are made dense for the trial.
TRIAL_SHARE = 8
# A search ranks errors; it does not need their third digit.
SEARCH_TOL, SEARCH_STEPS = 1e-3, 50


@dataclass(frozen=True, repr=False)
class Selection(Shown):
    """Errors of all that was tried, and the best.

    Attributes
    ----------
    gammas : array of shape (g,)
        Widths; NaN for a kernel without one.
    n_components : array of shape (c,)
    errors : array of shape (g, c)
        Mean squared error per coordinate of the rows brought back; NaN for what was not tried.
    reference : float
        The error of doing nothing: of the noise, or of filling in the mean.
    criterion : str
        "injected noise" or "hidden coordinates".
    """

    gammas: Annotated[np.ndarray, "t wide"]
    n_components: Annotated[np.ndarray, "c int"]
    errors: Annotated[np.ndarray, "t c wide"]
    reference: float
    criterion: str

    @property
    def _best(self) -> tuple[int, int]:
        i, j = np.unravel_index(np.nanargmin(self.errors), self.errors.shape)
        return int(i), int(j)

    @property
    def best_gamma(self) -> float:
        """The width of the smallest error."""
        return float(self.gammas[self._best[0]])

    @property
    def best_n_components(self) -> int:
        """The number of components of the smallest error."""
        return int(self.n_components[self._best[1]])

    @property
    def best_error(self) -> float:
        """The smallest error."""
        return float(self.errors[self._best])

    def table(self) -> tuple[list[str], list[list[str]]]:
        heads = ["gamma", *(f"r={r}" for r in self.n_components)]
        rows = [
            [f"{gamma:.3g}", *("" if np.isnan(e) else f"{e:.4g}" for e in errors)]
            for gamma, errors in zip(self.gammas, self.errors, strict=True)
        ]
        i, j = self._best
        rows[i][1 + j] += " *"
        return heads, rows

    def sentence(self) -> str:
        return (
            f"{self.criterion}: error {self.best_error:.4g} at gamma={self.best_gamma:.4g}, "
            f"n_components={self.best_n_components} (nothing done: {self.reference:.4g})"
        )


class KernelPCASearch(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Door):
    """Kernel PCA with the width and the number of components chosen by pre-image error.

    For each width one model is fitted to four fifths of the rows (all points to 2,500 at most), and
    tried with fewer and fewer of its components. Around the best the search goes on: with more
    components while more are better, and with widths and numbers of components between those tried.
    The best is then fitted to all rows.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        Kernels without a width are searched for the number of components only.

    noise : float, "hidden" or None, default=None
        Standard deviation per coordinate of the noise to expect; None adds noise of 0.3 of the
        data's total standard deviation. "hidden" is for data that are noisy themselves: 15 % of
        the entries are hidden and predicted.

    widths : sequence of float or None, default=None
        Values of sigma to try, in units of the median distance between rows. None for 0.25, 0.5,
        1, 2 and 4, and those between the best of them and its neighbors.

    n_components : int, sequence of int or None, default=None
        Numbers of components to try. None for powers of two up to 128, up to 1,024 while more are
        better, and those between the best and its neighbors.

    model : KernelPCA or None, default=None
        Settings of the fits (basis, pre-image, memory...); kernel, gamma and n_components are
        set by the search.

    random_state : int, RandomState or None, default=None
        Rows held out and noise.

    Attributes
    ----------
    selection_ : Selection
        All errors, as a table; `mercer.plot.selection` draws them.

    best_estimator_ : KernelPCA
        Fitted to all rows with the best parameters.

    certificate_ : Certificate
        That of `best_estimator_`.

    best_params_ : dict
        Its ``gamma`` (where the kernel has a width) and ``n_components``.

    n_features_in_ : int
        Columns of X.

    feature_names_in_ : array of str
        Their names, where X has them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCASearch
    >>> angle = np.linspace(0, 6.28, 150)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> search = KernelPCASearch(noise=0.1, random_state=0).fit(ring)
    >>> noisy = ring + 0.1 * np.random.default_rng(0).standard_normal(ring.shape)
    >>> error = np.mean((search.denoise(noisy) - ring) ** 2)
    >>> bool(error < 0.8 * 0.1**2)
    True
    """

    _fitted: ClassVar[dict[str, Fitted]] = Door._fitted | {
        "best_estimator_": kept("KernelPCA d"),
        "best_params_": kept(dict),
        "selection_": kept(Selection),
    }
    certificate_ = certificate_of("best_estimator_")
    _least_rows = 4

    kernel: Annotated[str | Kernel, NO_MATRIX, Kernel] = "rbf"
    _: KW_ONLY
    noise: Annotated[Any, NOISE, StrOptions({"hidden"}), None] = None
    widths: Annotated[Any, Several(POSITIVE), None] = None
    n_components: Annotated[Any, AT_LEAST_1, Several(AT_LEAST_1), None] = None
    model: Annotated[Any, KernelPCA, None] = None
    random_state: int | np.random.RandomState | None = None

    def fit(self, X: Array, y: Any = None) -> Self:
        """Search, then fit the best to all rows.

        Parameters
        ----------
        X : array-like, sparse CSR matrix, path or other source of (n_samples, n_features)
            Where the rows are more than the budget holds, or on a cluster, the search is made on
            20,000 of them, drawn uniformly.
        y : ignored

        Returns
        -------
        self
        """
        with all_or_nothing(self) as fresh:
            original, (X, sampled) = X, fresh._array_or_sample(X, again=True)
            if fresh._encoding is not None:
                raise ValueError(
                    "KernelPCASearch compares rows with their pre-images, and objects, categories "
                    "and missing entries have none. Pass columns of numbers."
                )
            rng = check_random_state(self.random_state)
            learned, held = split(X.shape[0], min(HOLDOUT, MOST_HELD / X.shape[0]), rng)
            model = clone(self.model or KernelPCA()).set_params(gamma=None)
            if len(learned) > MOST_LEARNED and model.basis in ("auto", "points"):
                learned = np.sort(rng.choice(learned, MOST_LEARNED, replace=False))
            if model.basis == "fourier":
                # Damaged rows lie beyond those of a fit.
                model.set_params(basis=FourierGrid(margin="all"))
            # Noise is drawn once, so that all candidates meet the same.
            count = len(learned) + len(held) if is_sparse(X) else 0
            check_dense(count, X.shape[1], parse_bytes(model.memory), TRIAL_SHARE)
            parts = [part.toarray() if is_sparse(X) else part for part in (X[learned], X[held])]
            first, other = (part.astype(fresh._dtype, copy=False) for part in parts)
            trial = Trial.of(self.noise, first, other, rng)
            with PassBar(model.verbose, passes=1, title="choosing the width") as bar:
                tried = self._try(model, trial, bar.tiles)
            selection = Selection(*tried.table(), trial.error(trial.damaged), trial.criterion)
            best, nothing = selection.best_error, selection.reference
            if best >= nothing:
                tell(
                    f"The best setting leaves an error of {best:.3g}; without denoising the error "
                    f"is {nothing:.3g}. With noise this small, kernel PCA adds more than it "
                    "removes. Give noise=, the standard deviation you expect, or do not denoise."
                )
            r, gamma = selection.best_n_components, selection.best_gamma
            params: dict[str, float] = {"n_components": r}
            kernel = tried.kernels[tried.best[0]]
            attributes = {
                "selection_": selection,
                "best_params_": params if np.isnan(gamma) else params | {"gamma": gamma},
                "best_estimator_": model.set_params(kernel=kernel, n_components=r).fit(
                    X if sampled is None else original
                ),
            }
            fresh._adopt(attributes)
        return self

    def _try(self, model: KernelPCA, trial: "Trial", tick: Any = None) -> "Tried":
        """Try what was asked for, and what lies around the best of it where that is left to us."""
        X, ranks = trial.X, self._ranks(len(trial.X))
        kernel = self.kernel if isinstance(self.kernel, Kernel) else KERNELS[self.kernel]()
        kernels = widened(kernel, X, WIDTHS if self.widths is None else np.asarray(self.widths))
        candidate = clone(model).set_params(verbose=0)
        if isinstance(model.basis, FourierGrid):
            # All kernels share one pass over X.
            grid = clone(model.basis).set_params(margin="all")
            candidate.set_params(basis=SharedGrid.of(grid, kernels, X, model._make_engine(X)))
        tried = Tried(kernels, trial, candidate, tick)
        refined = self.widths is None and len(kernels) > 1
        for i in range(0, len(kernels), 2 if refined else 1):
            tried.look(i, ranks)
        i, r = tried.best
        if self.n_components is None:
            # Twice as many components while the most of them are the best.
            most = min(MOST_COMPONENTS, len(X) - 1)
            while r == max(rank for _, rank in tried.errors) and 2 * r <= most:
                tried.look(i, [2 * r])
                i, r = tried.best
        ranks = sorted(rank for j, rank in tried.errors if j == i)
        if refined:
            # The widths next to the best one, at all numbers of components that it was tried at.
            for j in {i - 1, i + 1} & set(range(len(kernels))):
                tried.look(j, ranks)
        if self.n_components is None:
            # Numbers of components halfway from the best one to those beside it.
            i, r = tried.best
            ranks = sorted(rank for j, rank in tried.errors if j == i)
            at = ranks.index(r)
            between = {(r + other) // 2 for other in ranks[max(at - 1, 0) : at + 2]} - set(ranks)
            if between:
                tried.look(i, sorted(between))
        return tried

    def transform(self, X: Same) -> Same:
        """Scores by the best model, (n, n_components)."""
        return self._best().transform(X)

    def inverse_transform(self, X: Same) -> Same:
        """Pre-images by the best model, (n, n_features)."""
        return self._best().inverse_transform(X)

    def denoise(self, X: Same) -> Same:
        """Rows of X denoised by the best model, (n, n_features); see `KernelPCA.denoise`.

        Noise of the size that was named is taken to be that of X. With ``noise="hidden"`` the
        training rows are as noisy as X: rows become their pre-images, as in the search.
        """
        named = {"hidden": np.inf, None: None}
        noise = float(self.noise) if isinstance(self.noise, Real) else named[self.noise]
        return self._best().denoise(X, compensate=self.noise != "hidden", noise=noise)

    def _encoder(self):
        return super()._encoder() or (self.model or KernelPCA())._encoder()

    def _best(self) -> KernelPCA:
        check_is_fitted(self)
        return self.best_estimator_

    def _ranks(self, n) -> list[int]:
        if self.n_components is None:
            largest = min(FIRST_MOST, n - 1)
            return [2**i for i in range(1, 8) if 2**i <= largest] or [1]
        ranks = sorted(map(int, np.atleast_1d(self.n_components)))
        if ranks[-1] >= n:
            raise ValueError(
                f"n_components={self.n_components!r} must be whole numbers from 1 to {n - 1}, "
                f"one less than the rows that are learned from."
            )
        return ranks

    _n_features_out = property(lambda self: self.best_estimator_._n_features_out)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(frozen=True)
class Trial:
    """Rows held out of a fit are damaged, brought back and compared.

    Attributes
    ----------
    X, held : arrays
        Rows to learn from, and rows held out.
    damaged : array
        The latter with noise, or with some entries hidden.
    hidden : array of bool or None
        Which entries these are; None where noise was added to all.
    """

    X: np.ndarray
    held: np.ndarray
    damaged: np.ndarray
    hidden: np.ndarray | None = None

    @classmethod
    def of(cls, noise: Any, X: np.ndarray, held: np.ndarray, rng: Any) -> "Trial":
        """The trial that `noise` asks for."""
        if noise == "hidden":
            hidden = rng.random_sample(held.shape) < HIDDEN_SHARE
            return cls(X, held, np.where(hidden, X.mean(axis=0), held), hidden)
        std = NOISE_SHARE * total_std(X) / np.sqrt(X.shape[1]) if noise is None else float(noise)
        return cls(X, held, (held + std * rng.standard_normal(held.shape)).astype(X.dtype))

    @property
    def criterion(self) -> str:
        return "injected noise" if self.hidden is None else "hidden coordinates"

    def error(self, Z: np.ndarray) -> float:
        """Mean squared error of rows brought back, of the entries that were damaged."""
        where = True if self.hidden is None else self.hidden
        return float(np.mean(np.square(Z - self.held, dtype=float), where=where))

    def errors(self, model: KernelPCA, ranks: list[int]) -> list[float]:
        """The error at every number of components, from one fit, which is made if there is none."""
        if "expansion_" not in vars(model):
            with trials():
                model = model.fit(self.X)
        most = model.expansion_.n_components
        return [self.error(self._restored(model, r)) if r <= most else np.nan for r in ranks]

    def _restored(self, model: KernelPCA, r: int) -> np.ndarray:
        """The damaged rows, brought back with r components."""
        expansion = model.expansion_.leading(r)
        recipe = choose_preimage(model.preimage, expansion.basis, denoising=True)
        if isinstance(recipe, FixedPoint):
            recipe = clone(recipe).set_params(tol=SEARCH_TOL, max_iter=SEARCH_STEPS)
        preimage, Z = recipe.fit(expansion, self.X, denoising=True), self.damaged
        if self.hidden is None:
            # With compensation, since the training rows have no noise.
            S = model._inverse().denoising_scores(Z, compensate=True)[:, :r]
            return preimage(S, Z).points
        for _ in range(ROUNDS):
            Z = np.where(self.hidden, preimage(expansion.scores(Z), Z).points, self.held)
        return Z


class Tried:
    """Errors by kernel and number of components, as a search finds them.

    One fit of a kernel gives the errors at all numbers of components.

    Parameters
    ----------
    kernels : list of Kernel
        By width.
    trial : Trial
        What a model is put to.
    candidate : KernelPCA
        The settings of all fits.
    tick : callable or None
        ``tick(done, total)`` after each fit.
    """

    def __init__(self, kernels: list[Kernel], trial: Trial, candidate: KernelPCA, tick: Any):
        self.kernels, self.trial, self.candidate, self.tick = kernels, trial, candidate, tick
        self.looks = 0
        self.models: dict[int, Any] = {}
        self.errors: dict[tuple[int, int], float] = {}

    def look(self, i: int, ranks: list[int]) -> None:
        """The errors of kernel i at some numbers of components, by its fit if it has so many."""
        if i not in self.models or self.models[i].n_components < ranks[-1]:
            asked = {"kernel": self.kernels[i], "n_components": ranks[-1]}
            self.models[i] = copy(self.candidate).set_params(**asked)
        errors = self.trial.errors(self.models[i], ranks)
        self.looks += 1
        if self.tick is not None:
            # About as many fits as widths; fits that follow the best one may be more.
            self.tick(self.looks, max(len(self.kernels), self.looks) + 1)
        self.errors |= {(i, r): e for r, e in zip(ranks, errors, strict=True) if np.isfinite(e)}

    @property
    def best(self) -> tuple[int, int]:
        """Which kernel and how many components have the smallest error."""
        return min(self.errors, key=self.errors.__getitem__)

    def table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Widths, numbers of components and the errors of both, NaN where there are none."""
        places = sorted({i for i, _ in self.errors})
        ranks = sorted({r for _, r in self.errors})
        errors = [[self.errors.get((i, r), np.nan) for r in ranks] for i in places]
        gammas = np.array([self.kernels[i].gamma for i in places], dtype=float)
        return gammas, np.array(ranks), np.array(errors)


def widened(kernel, X, widths) -> list[Kernel]:
    """The kernel with sigma at each multiple of the median distance; itself if it has no width."""
    if kernel.metric is None:
        return [kernel.resolve(X)]
    base = clone(kernel).set_params(gamma="median").resolve(X).gamma
    power = 1 if isinstance(kernel, Laplacian) else 2
    return [clone(kernel).set_params(gamma=base / float(width) ** power) for width in widths]


def select(
    X: Array,
    noise: Any = None,
    *,
    kernel: str | Kernel = "rbf",
    random_state: int | np.random.RandomState | None = None,
    **settings: Any,
) -> Selection:
    """The kernel's width and the number of components that bring rows back best.

    Parameters
    ----------
    X : array-like of shape (n, d)
    noise : float, "hidden" or None
        As in `KernelPCASearch`.
    kernel, random_state, **settings
        As in `KernelPCASearch`.

    Returns
    -------
    Selection
        ``best_gamma``, ``best_n_components`` and a table of all errors.
    """
    search = KernelPCASearch(kernel, noise=noise, random_state=random_state, **settings)
    return search.fit(X).selection_
