"""Where distances come from: data and a metric, a function asked for blocks, or a matrix.

All become one thing, ``distance(rows, columns)`` between two blocks of points, with its points:
rows of the data, or row numbers of the matrix.
"""

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from ..compute import row_blocks
from ..exceptions import tell
from ..kernels.function import check_signature, finite_number, name_of, single_rows

EUCLIDEAN = ("euclidean", "l2")
# Metrics that scikit-learn hands to SciPy: asked there, a tile of few rows takes a tenth of the
# time.
OF_SCIPY = dict.fromkeys(("cityblock", "manhattan", "l1"), "cityblock") | {
    name: name for name in ("braycurtis", "canberra", "chebyshev", "correlation", "sqeuclidean")
}
# Squared distances below this share of a squared norm have lost half of their digits.
CANCELLED = 1e-8
# Pairs whose differences are taken at once.
CLOSE_PAIRS = 4096
# Distances whose fourth powers float64 holds.
SMALLEST, LARGEST = 1e-75, 1e75
# Rows on which a user's function is tried both ways.
CHECKED_ROWS = 8
# Rows checked at a time, and what rounding leaves between a distance and its mirror image.
CHECK_ROWS = 1024
ASYMMETRY = {"f": 1e-5, "d": 1e-8}


class EuclideanDistance:
    """|x - z| by one matrix product a block, about an origin that keeps rounding small."""

    def __init__(self, X):
        self.origin = X[:: -(-X.shape[0] // 4096)].mean(axis=0, dtype=float)

    def __call__(self, rows, columns):
        X = rows - self.origin
        Z = X if columns is rows else columns - self.origin
        norms = np.einsum("ij,ij->i", X, X)
        D = X @ Z.T
        D *= -2.0
        D += norms[:, None]
        D += norms if Z is X else np.einsum("ij,ij->i", Z, Z)
        # Where nearly all digits cancel, the difference itself is taken.
        close = (CANCELLED * norms)[:, None] >= D
        rows, columns = np.nonzero(close)
        for start in range(0, rows.size, CLOSE_PAIRS):
            i, j = rows[start : start + CLOSE_PAIRS], columns[start : start + CLOSE_PAIRS]
            D[i, j] = np.square(Z[j] - X[i]).sum(axis=1)
        return np.sqrt(D, out=D)


class MetricDistance:
    """A metric of scikit-learn or SciPy by name, or a function of two rows."""

    def __init__(self, metric, params, moments):
        self.metric = metric
        if callable(metric):
            check_signature(metric, params)
        self.params = dict(params or {})
        # Settings that come from all the data, which a block must not guess anew.
        setting = {"seuclidean": "V", "mahalanobis": "VI"}.get(str(metric), "")
        if setting and setting not in self.params:
            of = moments()
            S = of.scatter / (of.count - 1)
            self.params[setting] = np.diag(S) if setting == "V" else np.linalg.inv(S).T

    def __call__(self, rows, columns):
        name = f"The metric {self.metric if isinstance(self.metric, str) else name_of(self.metric)}"
        plain = all(isinstance(X, np.ndarray) and X.dtype == float for X in (rows, columns))
        if callable(self.metric):
            right, f = single_rows(columns), self.metric
            values = (
                finite_number(f(x, z, **self.params), name)
                for x in single_rows(rows)
                for z in right
            )
            D = np.fromiter(values, float).reshape(len(rows), len(columns))
        elif plain and self.metric in OF_SCIPY and not self.params:
            D = cdist(rows, columns, OF_SCIPY[self.metric])
        else:
            D = np.asarray(pairwise_distances(rows, columns, metric=self.metric, **self.params))
        check_entries(D, name)
        return D


class BlockDistance:
    """The user's ``distance(rows, columns)``, each block checked."""

    def __init__(self, function, name="dissimilarity(rows, columns)"):
        self.function, self.name = function, name

    def __call__(self, rows, columns):
        block = self.function(rows, columns)
        try:
            D = np.asarray(block, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{self.name} returned a {type(block).__name__} that is no matrix of real numbers: "
                f"{error}. It must return the distances between the rows and the columns."
            ) from error
        wanted = (len(rows), len(columns))
        if D.shape != wanted:
            raise ValueError(
                f"{self.name} returned shape {D.shape} for {wanted[0]} rows and "
                f"{wanted[1]} columns. It must return a matrix of shape {wanted}."
            )
        check_entries(D, self.name)
        return D


class LiftedDistance:
    """Distances whose squares are raised by 2c, but for copies of a point, at most `same` apart."""

    def __init__(self, distance, constant, same):
        self.distance, self.constant, self.same = distance, constant, same

    def __call__(self, rows, columns):
        return self.lift(self.distance(rows, columns))

    def lift(self, D) -> np.ndarray:
        """Given distances with the constant."""
        return np.where(self.same < D, np.sqrt(np.square(D) + 2 * self.constant), D)


def check_distance(distance, X) -> None:
    """Raise ValueError unless distances are in range, symmetric, and zero from a row to itself.

    Tried on a few rows of X; the range of Euclidean ones follows from all rows.
    """
    if isinstance(distance, EuclideanDistance):
        sides = X.max(axis=0).astype(float) - X.min(axis=0)
        return check_scale(float(np.sqrt(len(sides)) * sides.max()), "X")
    sample = X[np.linspace(0, X.shape[0] - 1, min(CHECKED_ROWS, X.shape[0])).astype(int)]
    check_matrix(np.asarray(distance(sample, sample)))


def make_distance(metric, params, X, moments=None):
    """The distance of a name or of a function of two rows.

    Euclidean ones are taken about the rows X; settings of others are of the `Moments` of all rows,
    ``moments()``.
    """
    plain = metric in EUCLIDEAN if isinstance(metric, str) else False
    return EuclideanDistance(X) if plain and not params else MetricDistance(metric, params, moments)


def choose_landmarks(landmarks, n: int, rng) -> np.ndarray | None:
    """Row numbers of the landmarks: as given, or drawn at random; None for the exact method.

    Random ones do as well as spread-out ones, and better on data of many dimensions.
    """
    if landmarks is None:
        return None
    if np.ndim(landmarks) > 0:
        index = np.asarray(landmarks)
        numbers = index.ndim == 1 and index.dtype.kind in "iu" and index.size > 0
        if not numbers or index.min() < -n or index.max() >= n:
            raise ValueError(f"landmarks must be row numbers below n_samples={n}.")
        return index % n
    return np.sort(rng.choice(n, landmark_count(landmarks, n), replace=False))


def landmark_count(landmarks, n: int) -> int:
    """Number of landmarks for a number or a share of n rows."""
    m = max(1, round(landmarks * n) if isinstance(landmarks, float) else int(landmarks))
    if m > n:
        tell(
            f"landmarks={m} is more than n_samples={n}: every row is a landmark. Leave landmarks "
            "out for the exact method."
        )
    return min(m, n)


def check_matrix(D) -> None:
    """Raise ValueError unless D is a matrix of distances; read in blocks."""
    check_square(D)
    largest, gap = 0.0, 0.0
    for rows in row_blocks(D.shape[0], CHECK_ROWS):
        # Blocks of the columns too: a file is then read in pieces that fit a cache.
        for columns in row_blocks(rows.stop, CHECK_ROWS):
            block, mirror = np.asarray(D[rows, columns]), np.asarray(D[columns, rows]).T
            check_entries(block, "X")
            check_entries(mirror, "X")
            largest = max(largest, float(block.max(initial=0)), float(mirror.max(initial=0)))
            gap = max(gap, float(np.abs(block - mirror).max(initial=0)))
    check_scale(largest, "X")
    if gap > ASYMMETRY["f" if D.dtype == np.float32 else "d"] * largest:
        raise ValueError(
            "Array must be symmetric: a distance and its mirror image differ by up to "
            f"{gap:.3g}. Pass (D + D.T) / 2 if that is rounding."
        )
    diagonal = float(np.abs(np.diagonal(D)).max())
    # Distances from inner products have the root of rounding on their diagonal.
    if diagonal > np.sqrt(ASYMMETRY["d"]) * largest:
        raise ValueError(
            f"The diagonal of a distance matrix must be zero, and holds {diagonal:.3g}. Pass "
            "distances of points to themselves, not similarities."
        )


def check_square(D) -> None:
    """Raise ValueError unless D is square."""
    if D.ndim != 2 or D.shape[0] != D.shape[1]:
        raise ValueError(
            f"The distance array must be 2-dimensional and square, and has shape {D.shape}. To "
            "measure distances between rows, give metric='euclidean' or another metric."
        )


def check_scale(largest: float, name: str, least: float = SMALLEST) -> None:
    """Raise ValueError for distances whose fourth powers float64 does not hold."""
    if largest > LARGEST or 0 < largest < least:
        raise ValueError(
            f"{name} holds distances of up to {largest:.1e}, and the fourth powers that a fit is "
            f"measured by need them between {SMALLEST:.0e} and {LARGEST:.0e}. Scale the data."
        )


def check_entries(D, name) -> None:
    """Raise ValueError for distances that are negative, infinite or no numbers."""
    least = float(D.min(initial=0))
    if np.isnan(least) or not np.isfinite(D.max(initial=0)):
        raise ValueError(
            f"{name} holds NaN or infinite distances, as between unconnected parts of a graph. "
            "Fill them, or scale each part by itself."
        )
    check_scale(float(D.max(initial=0)), name, least=0.0)
    if least < 0:
        raise ValueError(
            f"{name} holds negative distances, down to {least:.3g}. Pass distances, neither "
            "similarities nor squared distances."
        )
