"""What a model says of its components: the columns that drive them, and how many are real.

*Attribution.* A score is a function of a row, s_j(x) = sum_i A_ij k(z_i, x) - const, and its
gradient says how much it moves with each column there. KPCA-IG (Briscik, Dillies & Dejean 2023,
"Improvement of variables interpretability in kernel PCA") averages the length of that gradient over
the rows. Here gradients are times the standard deviation of their column, so that columns in
different units can be compared.

*Above noise* (parallel analysis; Horn 1965, Buja & Eyuboglu 1992). Every column is shuffled on its
own, which keeps the columns and takes away what they have to do with each other, and the
eigenvalues of the same kernel on such rows are the null. Where columns are independent the data
are one more such shuffle, so that the first component is called real with the probability `level`
and no more, for any kernel and any number of rows. It is judged by how uneven the whole spectrum
is, sum l^2 / (sum l)^2: a ring has two components of one size, neither of which need be large.
A later one is judged by its eigenvalue against that of its number, which is careful, since the
null shares out all of the variance, that of the components before included; or, where that says
more, by its share of what the components before it leave, which must be larger than two nulls: the
first share of shuffled rows where as many other eigenvalues are left out, and its own share where
only those parts of the columns are shuffled that the components before do not predict. (The second
holds for noise of unequal size in the columns; of the first alone, three directions like those of
the wine data with such noise had a fourth in 54 of 60 draws.) Components count up to the first that
neither finds.

Only for the first component the level is proven. For later ones it was measured, at 5 % with 39
shuffles. With equal noise in all columns (a ring, three groups, one or two directions) none of 380
draws had a component too many. With noise of unequal size 1 to 13 % of the draws had for the linear
kernel, and 0 to 20 % for Gaussian ones, to which a curved direction is more than one component.

*Come again* (the bootstrap). Rows are drawn with replacement, by weights on coordinates that are
computed once: an eigenproblem of a few dozen columns for each draw, and no kernel at all.
"""

from dataclasses import dataclass
from functools import reduce
from math import sqrt
from numbers import Integral
from operator import mul
from typing import Any

import numpy as np
from scipy import linalg

from .._tables import Shown
from ..bases import Basis, ColumnBasis, FeatureBasis, FourierBasis, GramBasis
from ..bases.random_features import Fourier, TensorSketch
from ..compute import array_namespace, to_numpy
from ..fitting.certificate import plain
from ..fitting.expansion import KernelExpansion
from ..fitting.functions import Sums
from ..kernels import Cosine, Kernel, Linear
from ..kernels.base import dense_rows
from ..kernels.dot_product import unit_gradient

# Columns of a component that a table shows, and how the numbers of its significance are written.
SHOWN, FORMATS = 5, (".4g", ".4g", ".3g", ".2f", ".2f")
# Arrays of the size of a block's gradients that are alive at once, and share of the budget.
LIVE_GRADIENTS, GRADIENT_SHARE = 6, 2
# Share of the budget that a block of points may take in a gradient, with what is made of it.
POINTS_SHARE = 16
# Arrays of the size of the sample's kernel matrix, and of the sample, that are alive at once.
LIVE_MATRICES, LIVE_SAMPLES = 5.5, 6.0
# Coordinates in which rows are drawn again: as many as components, times this, and some.
COORDINATES, MORE_COORDINATES = 3, 20


def gradient_sums(expansion: KernelExpansion, X: Any) -> Sums:
    """Sums over the rows of X of their gradients, in blocks within the budget.

    The number of rows; sums of the gradients and of their sizes, (d, r); and of the lengths of the
    gradients over all components, (d,).
    """
    basis, n = expansion.basis, X.shape[0]
    X, A = basis.engine.place(X), expansion.frame[:, 1:]

    def of_block(block):
        rows = basis.engine.asarray(dense_rows(X[block]), np.float64)
        G = gradients(basis, rows, A)
        xp = array_namespace(G)
        parts = G, xp.abs(G), xp.sqrt(xp.sum(G**2, axis=2))
        sums = (to_numpy(xp.sum(part, axis=0)) for part in parts)
        return Sums((float(rows.shape[0]), *sums))

    # Gradients of a block, and its kernel with the basis, fit the budget of a thread.
    d, engine = X.shape[1], basis.engine
    width = LIVE_GRADIENTS * (d * A.shape[1] + min(basis.size, 2**14)) + 4 * d
    room = engine.memory // (GRADIENT_SHARE * engine.threads * 8 * width)
    return engine.sum_rows(of_block, n, int(np.clip(room, 1, engine.stream_block)))


def permuted_sums(expansion: KernelExpansion, X: Any) -> Sums:
    """The same for changes of scores when a column is taken from another row.

    For columns that no gradient is known of, such as categories; these have no direction.
    """
    X, rng = np.array(X, dtype=float), np.random.default_rng(0)
    S, changes = to_numpy(expansion.scores(X)), []
    for j in range(X.shape[1]):
        column = X[:, j].copy()
        X[:, j] = rng.permutation(column)
        changes.append(to_numpy(expansion.scores(X)) - S)
        X[:, j] = column
    size = np.array([np.abs(change).sum(axis=0) for change in changes])
    length = np.array([np.linalg.norm(change, axis=1).sum() for change in changes])
    return Sums((float(len(X)), np.zeros_like(size), size, length))


def gradients(basis: Basis, X: Any, W: Any) -> Any:
    """Gradients of the inner products with sums W of basis vectors with respect to X, (n, d, b).

    X is a block of dense rows of double precision where the engine computes. ValueError where none
    are known.
    """
    engine, kernel, d = basis.engine, basis.kernel, X.shape[1]
    if isinstance(basis, FourierBasis):
        parts = [basis.project(X, slopes) for slopes in basis.slope_weights(to_numpy(W))]
        return array_namespace(parts[0]).stack(parts, axis=1)
    W = engine.asarray(W, np.float64)
    if isinstance(basis, FeatureBasis):
        return feature_gradients(basis.features.beside(X), X, W)
    if isinstance(basis, ColumnBasis):
        # Rows themselves, or rows of unit length for the cosine.
        constant = array_namespace(W).broadcast_to(W, (X.shape[0], *W.shape))
        return unit_gradient(X, W) if isinstance(kernel, Cosine) else constant
    points = basis.points
    if points is None:
        raise ValueError(
            f"{type(basis).__name__} has no points, and no gradient of its own: components of "
            f"{kernel!r} cannot be attributed to columns."
        )
    # Points in blocks: as rows of double precision they may be more than the budget holds.
    step = max(1, engine.memory // (POINTS_SHARE * 8 * max(d, X.shape[0])))
    blocks: Any = (points[i : i + step] for i in range(0, points.shape[0], step))
    if isinstance(basis, GramBasis) and not basis.at_hand:
        blocks = basis.pieces()  # type: ignore[attr-defined]
    total, start = 0.0, 0
    for rows in blocks:
        stop = start + rows.shape[0]
        Z = engine.asarray(dense_rows(rows), np.float64)
        total, start = total + kernel.gradient(X, Z, W[start:stop]), stop
    return total


def feature_gradients(features: Fourier | TensorSketch, X: Any, W: Any) -> Any:
    """Those of psi(x) . W; of a convolution, the correlation of W with the other sketches."""
    xp, d = array_namespace(X), X.shape[1]
    columns = range(W.shape[1])
    if isinstance(features, Fourier):
        pairs, F = features.frequencies.shape[0], features.frequencies
        C, S = xp.cos(X @ F.T), xp.sin(X @ F.T)
        of_each = [(C * W[pairs:, b] - S * W[:pairs, b]) @ F for b in columns]
        return xp.stack(of_each, axis=-1) * float(1 / np.sqrt(pairs))
    spectra, total = list(features.spectra(X)), 0.0
    for p in range(len(spectra)):
        others = reduce(mul, spectra[:p] + spectra[p + 1 :], xp.ones_like(spectra[p]))
        signs, places = features.signs[p, :d] * float(features.scale), features.columns[p, :d]
        parts = [
            xp.fft.irfft(xp.conj(others) * xp.fft.rfft(W[:, b]), n=features.size, axis=1)
            for b in columns
        ]
        total = total + xp.stack([part[:, places] * signs for part in parts], axis=-1)
    return total


@dataclass(frozen=True, repr=False)
class Attribution(Shown):
    """How much each column of the data drives each component.

    Attributes
    ----------
    columns : tuple of str
        Names of the d columns.
    components : tuple of str
        Names of the r components.
    size : array of shape (d, r)
        Mean over the rows of the size of the gradient, times the standard deviation of the
        column: what a score changes by when the column does by one standard deviation. Of a table
        with categories, what it changes by when the column is that of another row.
    direction : array of shape (d, r)
        The same with signs, which cancel where a component rises with a column in one place
        and falls in another: from -1 (falls everywhere) to 1 (rises everywhere) of `size`.
    overall : array of shape (d,)
        Mean length of the gradient over all components, times the standard deviation: the ranking
        of KPCA-IG.
    scale : array of shape (d,)
        Standard deviations of the columns in the training rows; ``size / scale[:, None]`` are
        gradients for one unit. Of a table with categories all are 1.
    n_rows : int
    """

    columns: tuple[str, ...]
    components: tuple[str, ...]
    size: np.ndarray
    direction: np.ndarray
    overall: np.ndarray
    scale: np.ndarray
    n_rows: int

    @classmethod
    def of(cls, sums: Sums, scale: np.ndarray, columns: Any, components: Any) -> "Attribution":
        """Averages of the sums of `gradient_sums`."""
        count, signed, absolute, length = sums.parts
        size = absolute / count * scale[:, None]
        direction = np.divide(signed, absolute, out=np.zeros_like(size), where=size > 0)
        names = tuple(map(str, columns)), tuple(map(str, components))
        return cls(*names, size, direction, length / count * scale, scale, int(count))

    def order(self, component: int | None = None) -> np.ndarray:
        """Numbers of the columns, the one that drives most first; of all components for None."""
        values = self.overall if component is None else self.size[:, component]
        return np.argsort(-values, kind="stable")

    def top(self, component: int | None = None, count: int = SHOWN) -> list[tuple[str, float]]:
        """Names of the columns that drive most, with their sizes."""
        values = self.overall if component is None else self.size[:, component]
        return [(self.columns[i], float(values[i])) for i in self.order(component)[:count]]

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for JSON."""
        return {
            "rows": self.n_rows,
            "columns": list(self.columns),
            "components": list(self.components),
            "overall": self.overall.tolist(),
            "size": self.size.T.tolist(),
            "direction": self.direction.T.tolist(),
            "standard_deviation": self.scale.tolist(),
        }

    def table(self, count: int = SHOWN) -> tuple[list[str], list[list[str]]]:
        """Head and rows: for each component its first columns, with a sign where it has one."""
        heads = ["component", *(f"{i + 1}." for i in range(min(count, len(self.columns))))]
        rows = [["all", *(f"{name} {value:.3g}" for name, value in self.top(None, count))]]
        signs = np.select([self.direction > 0.5, self.direction < -0.5], ["+", "-"], "±")
        for j in range(len(self.components)):
            named = ((self.columns[i], signs[i, j], self.size[i, j]) for i in self.order(j)[:count])
            rows.append([str(j + 1), *(f"{name} {sign}{size:.3g}" for name, sign, size in named)])
        return heads, rows

    def sentence(self) -> str:
        """What the table shows."""
        many = f"mean over {self.n_rows:,} rows, largest first; + rises with the column, - falls"
        return f"Change of the scores with each column: {many}"


@dataclass(frozen=True, repr=False)
class Significance(Shown):
    """Which components stand above noise, and how stable they are.

    Attributes
    ----------
    eigenvalues : array of shape (r,)
        Of the rows looked at, over their number.
    null_mean, null_upper : arrays of shape (r,)
        Mean of the same for shuffled columns, and what an eigenvalue must exceed at `level`: the
        quantile of the same, or less where the share of what is left says more; for the first, the
        eigenvalue of a spectrum as uneven as that quantile.
    p_values : array of shape (r,)
        Of the first component the share of shuffles with as uneven a spectrum, the data counted as
        one; of later ones that with as large an eigenvalue, or share of what is left if that is
        smaller. Never less than that of a component before it.
    n_significant : int
        Components above noise: those up to the first with a p-value above `level`.
    stability : array of shape (r,)
        Mean size of the cosine between a component and the same one of rows drawn again: 1 for one
        that comes again, near 0 for one that does not, or that changes places with another.
    subspace_stability : array of shape (r,)
        The same for the first components up to this one together: the mean cosine of the largest
        angle between the two subspaces.
    level : float
    n_rows, n_permutations, n_bootstrap : int
        Rows looked at, shuffles and draws.
    """

    eigenvalues: np.ndarray
    null_mean: np.ndarray
    null_upper: np.ndarray
    p_values: np.ndarray
    n_significant: int
    stability: np.ndarray
    subspace_stability: np.ndarray
    level: float
    n_rows: int
    n_permutations: int
    n_bootstrap: int

    def words(self) -> str:
        """How many components."""
        return f"{self.n_significant} of {len(self.eigenvalues)} components"

    def sentence(self) -> str:
        """The outcome in words."""
        return (
            f"{self.words()} stand above noise at the level of "
            f"{100 * self.level:g} % ({self.n_permutations} shuffles of {self.n_rows:,} rows)."
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for JSON."""
        return {name: plain(value) for name, value in vars(self).items()}

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Head and rows, one for each component."""
        heads = ["component", "eigenvalue", "noise", "p", "stability", "subspace"]
        values = self.eigenvalues, self.null_upper, self.p_values
        numbers = zip(*values, self.stability, self.subspace_stability, strict=True)
        rows = [
            [f"{j}{' *' if j <= self.n_significant else ''}", *map(format, row, FORMATS)]
            for j, row in enumerate(numbers, 1)
        ]
        return heads, rows


def check_significance(level: Any, n_permutations: Any, n_bootstrap: Any, max_rows: Any) -> None:
    """Raise ValueError unless the settings of `significance` can hold its level."""
    if not isinstance(level, float | int) or not 0 < level < 1:
        raise ValueError(f"level={level!r} must be a number between 0 and 1.")
    least = int(np.ceil(1 / level - 1 - 1e-9))
    for name, value, low in (
        ("n_permutations", n_permutations, least),
        ("n_bootstrap", n_bootstrap, 0),
        ("max_rows", max_rows, 2),
    ):
        if not isinstance(value, Integral) or value < low:
            raise ValueError(f"{name}={value!r} must be a whole number of at least {low}.")


def sample_rows(memory: int, d: int, most: int) -> int:
    """Rows whose kernel matrix, and themselves, fit the budget."""
    # The root of LIVE_MATRICES n^2 + LIVE_SAMPLES d n = memory / 8.
    half = LIVE_SAMPLES * d / (2 * LIVE_MATRICES)
    return max(2, min(most, int(sqrt(half**2 + memory / (8 * LIVE_MATRICES)) - half)))


def significance_of(
    kernel: Kernel, X, r: int, center: bool, rng, w=None, *, level, n_permutations, n_bootstrap
) -> Significance:
    """Shuffles and draws of the rows of X, (n, d), for the first r components.

    Rows count as their weights w say, and shuffles leave these where they are: the level holds
    where weights have nothing to do with the rows.
    """
    w = np.ones(len(X)) if w is None else w * (len(X) / w.sum())
    Y = coordinates(kernel, X, w, r, center)
    r = min(r, Y.shape[1])
    values, total, uneven = spectrum(kernel, X, w, r, center)
    shuffles = (rng.permuted(X, axis=0) for _ in range(n_permutations))
    of_each = [spectrum(kernel, rows, w, r, center) for rows in shuffles]
    null, totals, null_uneven = (np.array(part) for part in zip(*of_each, strict=True))

    def p_value(measured, of_null):
        return (1 + (of_null >= measured * (1 - 1e-9)).sum(axis=0)) / (1 + n_permutations)

    left = total - np.cumsum(values) + values
    others = totals[:, None] - np.cumsum(null, axis=1) + null[:, :1]
    share, first_share = (
        np.divide(a, b, out=np.zeros(b.shape), where=b > 1e-12 * total)
        for a, b in ((values, left), (np.broadcast_to(null[:, :1], null.shape), others))
    )
    p, p_share = p_value(values, null), p_value(share, first_share)
    p[0] = p_value(uneven, null_uneven)
    # What an eigenvalue must exceed for a p-value of this level.
    place = int(np.ceil((n_permutations + 1) * (1 - level) - 1e-9)) - 1
    place = min(n_permutations - 1, max(0, place))
    upper = np.sort(null, axis=0)[place]
    upper[0] = first_of(np.sort(null_uneven)[place], values[0], total, uneven)
    for j in range(1, r):
        if p[j - 1] > level or kernel.encoder is not None:
            break
        if p_share[j] <= level < p[j]:
            shares = left_shares(kernel, X, Y[:, :j], w, center, rng, n_permutations)
            p[j] = max(p_share[j], p_value(share[j], shares))
            least = max(np.sort(first_share[:, j])[place], np.sort(shares)[place])
            upper[j] = least / (1 - least) * (left[j] - values[j])
    p = np.maximum.accumulate(p)
    stability, together = drawn_again(Y, w, r, center, n_bootstrap, rng)
    tested = values, null.mean(axis=0), upper, p, int(np.sum(p <= level))
    sizes = float(level), len(X), n_permutations, n_bootstrap
    return Significance(*tested, stability, together, *sizes)


def first_of(wanted: float, first: float, total: float, uneven: float) -> float:
    """The first eigenvalue of a spectrum as uneven as wanted, the others in the same proportion."""
    left = max(total - first, 1e-12 * total)
    s = max(uneven * total**2 - first**2, 0.0) / left**2 if total > 0 else 0.0
    return total * (s + sqrt(max(wanted * (1 + s) - s, 0.0))) / (1 + s)


def left_shares(kernel: Kernel, X, S, w, center: bool, rng, count: int) -> np.ndarray:
    """Shares of the next component in what those with scores S leave, in shuffled rows, (count,).

    What the scores predict of the columns stays, and the rest is shuffled.
    """
    j, roots = S.shape[1], np.sqrt(w)[:, None]
    A = np.column_stack([np.ones(len(X)), S])
    predicted = A @ np.linalg.lstsq(roots * A, roots * X, rcond=None)[0]
    shares = np.zeros(count)
    for i in range(count):
        rows = kernel.domain.nearest(predicted + rng.permuted(X - predicted, axis=0))
        values, total, _ = spectrum(kernel, rows, w, j + 1, center)
        rest = total - values[:j].sum()
        shares[i] = values[j] / rest if rest > 1e-12 * total else 0.0
    return shares


def matrix(kernel: Kernel, X, w, center: bool) -> np.ndarray:
    """The matrix to decompose: scatter if d < n and the kernel is linear, else kernel."""
    share = w / w.sum()
    if isinstance(kernel, Linear) and X.shape[1] < X.shape[0]:
        Z = X - share @ X if center else X
        return (w[:, None] * Z).T @ Z
    K = np.asarray(kernel(X), dtype=float)
    if center:
        K -= share @ K
        K -= (K @ share)[:, None]
    roots = np.sqrt(w)
    K *= roots
    K *= roots[:, None]
    return (K + K.T) / 2


def spectrum(kernel: Kernel, X, w, r: int, center: bool) -> tuple[np.ndarray, float, float]:
    """The first r eigenvalues over the number of rows, zero where there are no more.

    And the sum of all, and the sum of their squares over the square of that.
    """
    A = matrix(kernel, X, w, center)
    m, eigenvalues, total = len(A), np.zeros(r), float(A.trace())
    uneven = float(np.linalg.norm(A / total) ** 2) if total > 0 else 0.0
    leading = linalg.eigvalsh(A, subset_by_index=[max(0, m - r), m - 1], overwrite_a=True)[::-1]
    eigenvalues[: len(leading)] = np.maximum(leading, 0) / len(X)
    return eigenvalues, total / len(X), uneven


def coordinates(kernel: Kernel, X, w, r: int, center: bool) -> np.ndarray:
    """Scores of the rows along their own components, more than r of them, (n, q)."""
    A = matrix(kernel, X, w, center)
    m, q = len(A), COORDINATES * r + MORE_COORDINATES
    values, V = linalg.eigh(A, subset_by_index=[max(0, m - q), m - 1], overwrite_a=True)
    values, V = values[::-1], V[:, ::-1]
    rank = max(1, int(np.sum(values > 1e-12 * max(values[0], 0.0))))
    if m == len(X):
        return V[:, :rank] * np.sqrt(np.maximum(values[:rank], 0)) / np.sqrt(w)[:, None]
    return (X - w @ X / w.sum() if center else X) @ V[:, :rank]


def drawn_again(Y, w, r: int, center: bool, draws: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """Mean cosines of components and of leading subspaces with those of rows drawn again."""
    n, q = Y.shape
    single, together = np.zeros(r), np.zeros(r)
    for _ in range(draws):
        drawn = rng.multinomial(n, w / w.sum()).astype(float)
        mean = drawn @ Y / n if center else np.zeros(q)
        C = (Y * drawn[:, None]).T @ Y - n * np.outer(mean, mean)
        V = linalg.eigh(C, subset_by_index=[max(0, q - r), q - 1])[1][:, ::-1]
        single += np.abs(np.diagonal(V))[:r]
        together += [np.linalg.svd(V[: j + 1, : j + 1], compute_uv=False)[-1] for j in range(r)]
    return single / max(draws, 1), np.minimum(together / max(draws, 1), 1.0)
