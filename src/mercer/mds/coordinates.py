"""Classical scaling: coordinates from distances, for all points, by landmarks, for new ones.

With B = -H D2 H / 2 and its leading eigenpairs U, L the coordinates are Y = U L^{1/2}. A new point
with squared distances d2 to the points has (Gower 1968)

    y = L^{-1/2} U' (-d2 / 2 - mean of the rows of -D2 / 2),

which is the score of kernel PCA with the kernel -d^2 / 2. Only positive eigenvalues have
coordinates; the others are measured (`Spectrum`) or lifted by a constant.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvals
from scipy.spatial.distance import cdist

from ..compute.linalg import peak_signs
from ..fitting.moments import Moments
from ..solvers._linalg import orthonormal_against, small_eigh

# Eigenvalues below this share of the largest are rounding and have no coordinate.
ZERO_SHARE = 1e-12
# Landmark eigenvalues below this share of the largest are not used, whatever their sign.
LANDMARK_SHARE = 1e-9
# Distances below this share of the largest are between copies of a point, which a constant
# must not drive apart: training rows were seen to move by half their norm.
SAME_POINT = 1e-8
# Shares of the first eigenvalue that rounding leaves of a zero, in double and single precision.
ROUNDING, DRAFT_NOISE = 1e-12, 1e-6
# Probes and steps of the quadrature that estimates the sum of |l|.
PROBES, STEPS = 8, 8


@dataclass(frozen=True)
class Spectrum:
    """What all eigenvalues of B say about the distances.

    Attributes
    ----------
    total : float
        Sum of the eigenvalues.
    absolute : float
        Sum of their absolute values.
    least : float
        The smallest: negative where no points have these distances.
    exact : bool
        Whether the last two are known, and not estimated.
    """

    total: float
    absolute: float
    least: float
    exact: bool = True

    @property
    def positive(self) -> float:
        """Sum of the positive eigenvalues."""
        return (self.absolute + self.total) / 2

    @property
    def negative_share(self) -> float:
        """The share of the sum of |l| that is negative: 0 for Euclidean distances."""
        return max(self.absolute - self.total, 0.0) / 2 / max(self.absolute, 1e-300)

    def goodness_of_fit(self, kept) -> tuple[float, float]:
        """Sum of the kept eigenvalues over that of |l|, and over that of the positive ones."""
        share = float(np.sum(kept)) / np.maximum([self.absolute, self.positive], 1e-300)
        first, second = np.minimum(share, 1.0)
        return float(first), float(second)


def full_spectrum(values) -> Spectrum:
    """From all eigenvalues."""
    return Spectrum(float(values.sum()), float(np.abs(values).sum()), float(values.min()))


def estimated_spectrum(operator, pairs, rng) -> Spectrum:
    """From the leading eigenpairs, the trace, and block Lanczos quadrature of what they leave.

    For Rademacher vectors z and f(l) = max(-l, 0), z'f(B)z is the negative mass on average
    (Hutchinson); Lanczos from z gives it, and the smallest eigenvalue on the way (Bai, Fahey &
    Golub 1996). With the trace it gives the sum of |l|, and is zero where nothing is negative.
    Single precision is enough, and what it cannot tell from zero counts as zero.
    """
    inner, noise = (operator, ROUNDING) if operator.draft is None else (operator.draft, DRAFT_NOISE)
    U = pairs.vectors
    Z = rng.choice([-1.0, 1.0], size=(operator.shape[0], PROBES))
    V, _, B = orthonormal_against(Z, U)
    steps = min(STEPS, (operator.shape[0] - U.shape[1]) // PROBES)
    blocks, T = [V], np.zeros((steps * PROBES, steps * PROBES))
    for step in range(steps):
        new = slice(step * PROBES, (step + 1) * PROBES)
        Q = np.hstack([U, *blocks])
        V, C, _ = orthonormal_against(inner @ blocks[-1], Q)
        C = C[U.shape[1] :]
        T[: new.stop, new], T[new, : new.stop] = C, C.T
        blocks.append(V)
    values, Y = small_eigh(T)
    values = np.where(values < -noise * abs(float(pairs.values[0])), values, 0.0)
    weights = np.square(Y[:PROBES].T @ B).sum(axis=1) / PROBES
    negative = float(weights @ np.maximum(-values, 0.0))
    total = float(operator.trace())
    return Spectrum(total, total + 2 * negative, float(values[-1]), exact=False)


def positive_part(values) -> np.ndarray:
    """Eigenvalues with rounding and negative ones set to zero."""
    return np.where(values > ZERO_SHARE * max(float(np.max(values)), 0.0), values, 0.0)


def inverse_root(values) -> np.ndarray:
    """l^{-1/2} where l is positive, else 0."""
    return np.divide(1.0, np.sqrt(values), out=np.zeros(values.shape), where=values > 0)


@dataclass(frozen=True)
class DistanceMap:
    """Coordinates of any point from its distances to the m points of the map.

    y = ((-d2 / 2) A - offset) R, with R the identity where it is None.

    Attributes
    ----------
    weights : array of shape (m, k)
        A, with columns that sum to zero.
    offset : array of shape (k,)
    rotation : array of shape (k, p) or None
    """

    weights: np.ndarray
    offset: np.ndarray
    rotation: np.ndarray | None = None

    def __call__(self, D) -> np.ndarray:
        """Coordinates for distances D (not squared), (n, m) to (n, p)."""
        Y = (-0.5 * np.square(D)) @ self.weights - self.offset
        return Y if self.rotation is None else Y @ self.rotation


def gower_map(basis, vectors, values) -> tuple[DistanceMap, np.ndarray]:
    """The map of eigenpairs of B, and the coordinates of the points themselves, (n, r).

    The coordinates are the map's own, one product beyond the eigenvectors, so that the
    points keep their place however small the residual was asked to be.
    """
    A = vectors * inverse_root(values)
    A = A - A.mean(axis=0)
    Y = basis.gram(A)
    offset = Y.mean(axis=0)
    Y -= offset
    signs = peak_signs(Y)
    return DistanceMap(A * signs, offset * signs), Y * signs


def landmark_map(D, p: int) -> tuple[DistanceMap, Spectrum]:
    """The map of m landmarks from their own distances D, (m, m).

    All eigenpairs above the noise level, which the most negative one shows, and at least p:
    triangulation with the leading p alone (de Silva & Tenenbaum 2004) was seen to be five
    times farther from the exact result.
    """
    values, U = small_eigh(double_centered(D))
    noise = max(LANDMARK_SHARE * values[0], -values[-1])
    k = max(int(np.sum(values > noise)), min(p, len(values)))
    kept = positive_part(values[:k])
    A = U[:, :k] * inverse_root(kept)
    A -= A.mean(axis=0)
    return DistanceMap(A, (-0.5 * np.square(D) @ A).mean(axis=0)), full_spectrum(values)


def principal_map(first: DistanceMap, moments: Moments, p: int) -> tuple[DistanceMap, np.ndarray]:
    """A landmark map followed by PCA of what it gives for all points, with its eigenvalues."""
    values, Q = small_eigh(moments.scatter)
    values, Q = positive_part(values[:p]), Q[:, :p]
    short = p - values.size
    Q = np.pad(Q * (values > 0), ((0, 0), (0, short)))
    values = np.pad(values, (0, short))
    return DistanceMap(first.weights, first.offset + moments.mean, Q), values


def double_centered(D) -> np.ndarray:
    """-H D2 H / 2 of a distance matrix, (n, n)."""
    B = -0.5 * np.square(D)
    B -= B.mean(axis=0)
    B -= B.mean(axis=1)[:, None]
    return B


def cailliez_constant(D) -> float:
    """The least c for which the distances d + c are Euclidean (Cailliez 1983).

    The largest real eigenvalue of a nonsymmetric 2n x 2n matrix: O(n^3) with a large factor.
    """
    n = D.shape[0]
    M = np.zeros((2 * n, 2 * n))
    M[:n, n:] = 2 * double_centered(D)
    M[n:, :n] = -np.eye(n)
    M[n:, n:] = -4 * double_centered(np.sqrt(D))
    return max(float(eigvals(M, overwrite_a=True, check_finite=False).real.max()), 0.0)


def lifted(D, kind: str, constant: float, same: float) -> np.ndarray:
    """Distances with the additive constant, where they are more than `same`.

    "lingoes" adds 2c to the squares, "cailliez" adds c to the distances themselves.
    """
    E = np.sqrt(np.square(D) + 2 * constant) if kind == "lingoes" else D + constant
    return np.where(same < D, E, D)


def misfit(D, Y, Z) -> tuple[float, float]:
    """Mean squared error of inner products (strain) and stress-1 of a block of distances.

    Parameters
    ----------
    D : array of shape (a, b)
        Distances between points with coordinates Y (a, p) and Z (b, p). Inner products are
        about the mean of the block.
    """
    gap = np.square(D)
    scale = float(gap.sum())
    E = cdist(Y, Z)
    E -= D
    stress = math.sqrt(float(np.vdot(E, E)) / max(scale, 1e-300))
    gap *= -0.5
    gap -= gap.mean(axis=0)
    gap -= gap.mean(axis=1)[:, None]
    gap -= (Y - Y.mean(axis=0)) @ (Z - Z.mean(axis=0)).T
    return float(np.vdot(gap, gap)) / gap.size, stress


def squared_distances(Y, Z, own) -> np.ndarray:
    """|y - z|^2 between two sets of rows, with `own` the |y|^2, (n,)."""
    D = Y @ Z.T
    D *= -2.0
    D += own[:, None]
    D += own if Z is Y else np.einsum("ij,ij->i", Z, Z)
    return D
