"""Kernels of the distance |x - z|: Gaussian, Matern, rational quadratic.

All three share one width: each tends to ``exp(-gamma |x - z|^2)`` as its shape parameter
grows, so a gamma found for one is a fair start for the others.
"""

import math
from functools import partial
from typing import Any

import numpy as np
from scipy.special import gamma as gamma_function
from scipy.special import kv

from ..compute import ScalarMap, array_namespace, inplace, is_sparse
from ..compute.arrays import Array, dtype_name, placement_of
from . import base

# Largest gamma |x|^2, for each precision, at which distances may come from products of rows, whose
# rounding is eps times that. Beyond it, squared distances below 1 / FAR of the norms are computed
# from differences of rows; larger ones lose fewer digits.
FAR = {"float64": 1e3, "float32": 1e2}
# A kernel with a cusp uses differences for squared distances below this share of the norms: above
# it, rounding eps of the norms changes distances by at most eps / (2 sqrt(share)).
CUSP = {"float64": 1e-6, "float32": 1e-3}
# Entries of the differences that are held at once.
DIFFERENCES = 2**20


class StationaryKernel(base.DifferenceKernel, base.FactoredKernel):
    """A function of -gamma |x - z|^2, which one GEMM of augmented rows gives."""

    metric = "euclidean"
    extra_columns = 2

    def embed(self, X: Array) -> Array:
        """[sqrt(2 gamma) x, -gamma |x|^2, 1]."""
        scale = float(np.sqrt(2 * self.gamma))
        scaled = X * scale
        norms = -0.5 * base.row_squares(scaled)
        return base.append_columns(scaled, norms, array_namespace(norms).ones_like(norms))

    def turn(self, E: Array) -> Array:
        """[sqrt(2 gamma) z, 1, -gamma |z|^2]."""
        d = E.shape[1] - 2
        if is_sparse(E):
            columns = E.indices.copy()
            columns[E.indices == d], columns[E.indices == d + 1] = d + 1, d
            return type(E)((E.data, columns, E.indptr), shape=E.shape)
        turned = array_namespace(E).asarray(E, copy=True)
        turned[:, d], turned[:, d + 1] = E[:, d + 1], E[:, d]
        return turned

    def repair(
        self, T: Array, left: Array, right: Array, pairs: base.Pairs, i: Any, j: Any
    ) -> Array:
        """T = -gamma d^2; entries in which digits canceled are computed from differences."""
        xp, (share, least) = array_namespace(T), self._cancels(dtype_name(T.dtype))
        s, t = minus_squares(left), minus_squares(right)
        if 0 in T.shape:
            return T
        lowest = float(s.min()) + float(t.min())
        # Written so that rows with NaN are not passed over.
        if lowest >= -least or float(T.max()) <= share * lowest:
            return T
        norms = s[:, None] + t[None, :]
        canceled = (norms < -least) & ~(share * norms >= T)
        if not bool(canceled.any()):
            return T
        index, other = xp.nonzero(canceled)
        X, Z = base.rows_of(pairs.X, i, xp.float64), base.rows_of(pairs.Z, j, xp.float64)
        step = max(1, DIFFERENCES // X.shape[1])
        for start in range(0, index.shape[0], step):
            a, b = index[start : start + step], other[start : start + step]
            squares = base.row_squares(base.dense_rows(X[a]) - base.dense_rows(Z[b]))
            T[a, b] = xp.asarray(squares * -self.gamma, dtype=T.dtype)
        return T

    def _cancels(self, precision: str) -> tuple[float, float]:
        """Share of the norms below which squared distances lose digits, and norms from which on."""
        return 1 / FAR[precision], 2 * FAR[precision]

    def growth(self, X: Array) -> float:
        """Rounding of -gamma d^2 in units of eps: that of the norms, up to where FAR limits it."""
        return 4 * min(self.argument(X), FAR["float64"]) + 1

    def argument(self, X: Array) -> float:
        """gamma |x|^2 of the row farthest from the origin."""
        return self.gamma * base.farthest(X, self.origin(X), base.row_squares)

    def of_differences(self, D: Array) -> Array:
        """From the squared norms of differences, in which no digits cancel."""
        return self.finish((-self.gamma * base.row_squares(D))[:, None])[:, 0]

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """2 gamma f'(-gamma |x - z|^2) (z - x)."""
        C = self.slopes(X, Z)
        C *= 2 * self.gamma
        # About the middle of the rows, so that no digits are lost far from the origin.
        middle = self.origin(Z)
        X, Z = X - middle, Z - middle
        return base.weighted_sums(C, W, Z) - X[:, :, None] * (C @ W)[:, None, :]


def minus_squares(E):
    """-gamma |x|^2 of prepared rows, of the left or of the right factor, (n,)."""
    # The other of the last two columns holds ones. A minimum along the short axis takes 20 times
    # longer.
    if isinstance(E, np.ndarray):
        return np.minimum(E[:, -2], E[:, -1])
    last = base.dense_rows(E[:, -2:])
    return array_namespace(last).minimum(last[:, 0], last[:, 1])


class RBF(StationaryKernel):
    """Gaussian kernel ``exp(-gamma |x - z|^2)``.

    Parameters
    ----------
    gamma : float, array of shape (d,), "median", "mean" or None
        1 / (2 sigma^2). A word takes sigma to be that distance between rows; None is
        1 / number of columns, as in scikit-learn.
    """

    def __init__(self, gamma: Any = None):
        self.gamma = gamma

    def finish(self, T: Array) -> Array:
        """exp of T = -gamma d^2."""
        # Rounding can leave T positive where a row is compared with itself. In main memory a check
        # costs a seventh of the correction; up to 1e-4 is ordinary rounding of single precision.
        if isinstance(T, np.ndarray):
            if T.max(initial=0.0) > 1e-4:
                np.minimum(T, 0, out=T)
            return np.exp(T, out=T)
        xp = array_namespace(T)
        zero = xp.zeros((), dtype=T.dtype, **placement_of(T))
        return inplace(xp.exp, inplace(partial(xp.minimum, zero), T))

    slope = finish

    def scalar_map(self) -> ScalarMap | None:
        """2^(x . z - |x|^2 / 2 - |z|^2 / 2) of scaled rows: GPUs compute powers of two."""
        scale = float(np.sqrt(2 * self.gamma / math.log(2.0)))
        return ScalarMap("exp2", scale, distance=True)

    def frequencies(self, G: Array, rng: np.random.Generator) -> Array:
        """Draws of the spectral density from Gaussian rows G: a Gaussian again."""
        return np.sqrt(2 * self.gamma) * G

    def spectral_density(self, f: Array, d: int) -> Array:
        """A Gaussian of the frequency."""
        return (np.pi / self.gamma) ** (d / 2) * np.exp(-((np.pi * f) ** 2) / self.gamma)


class Matern(StationaryKernel):
    """Matern kernel of smoothness nu, with rho = sqrt(2 gamma) |x - z|.

    ``exp(-rho)`` for nu = 1/2, ``(1 + s) exp(-s)`` with s = sqrt(3) rho for 3/2 and
    ``(1 + s + s^2 / 3) exp(-s)`` with s = sqrt(5) rho for 5/2. Rougher than the Gaussian:
    its spectrum decays slower, and far points keep more similarity.

    Parameters
    ----------
    gamma : float, array of shape (d,), "median", "mean" or None
        As in `RBF`, which is the limit of large nu; the length scale is 1/sqrt(2 gamma).
    nu : 0.5, 1.5 or 2.5
    """

    live_tiles = 3

    def __init__(self, gamma: Any = None, nu: float = 1.5):
        self.gamma = gamma
        self.nu = nu

    def check(self, X: Array) -> None:
        super().check(X)
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"Matern: nu={self.nu!r} has no closed form. Give 0.5, 1.5 or 2.5.")

    def _cancels(self, precision: str) -> tuple[float, float]:
        """For nu = 1/2, all small distances: at the cusp, k changes by the root of rounding."""
        return super()._cancels(precision) if self.nu > 0.5 else (CUSP[precision], 0.0)

    def growth(self, X: Array) -> float:
        """With a cusp, rounding at the smallest distances that come from products."""
        if self.nu > 0.5:
            return super().growth(X)
        return 2 + min(self.argument(X), 1 / CUSP["float64"] ** 2) ** 0.5 / CUSP["float64"] ** 0.5

    def finish(self, T: Array) -> Array:
        """T holds -rho^2 / 2."""
        xp = array_namespace(T)
        T *= -4 * self.nu
        # Rounding leaves small negative squares where a row is compared with itself, and
        # infinity times exp(-infinity) is no number: exp(-1000) is zero already.
        s = inplace(xp.sqrt, xp.clip(T, 0, 1e6))
        T[...] = -s
        T = inplace(xp.exp, T)
        if self.nu == 0.5:
            return T
        if self.nu == 2.5:
            square = s * s
            square /= 3
            s += square
        s += 1
        T *= s
        return T

    def slope(self, T: Array) -> Array:
        """exp(-s) times 1 / s, 3 and 5 (1 + s) / 3; zero at the cusp of nu = 1/2."""
        xp = array_namespace(T)
        s = xp.sqrt(xp.clip(T * (-4 * self.nu), 0, None))
        decay = xp.exp(-s)
        if self.nu == 0.5:
            positive = s > 0
            return xp.where(positive, decay, 0.0) / xp.where(positive, s, 1.0)
        return 3 * decay if self.nu == 1.5 else 5 / 3 * (1 + s) * decay

    def scalar_map(self) -> ScalarMap | None:
        """exp(-s) times a polynomial of degree nu - 1/2, s^2 = -4 nu t."""
        scale, degree = float(np.sqrt(2 * self.gamma)), int(self.nu - 0.5)
        return ScalarMap(
            "matern", scale, (4.0 * self.nu,), degree, distance=True, rough=self.nu == 0.5
        )

    def frequencies(self, G: Array, rng: np.random.Generator) -> Array:
        """The spectral density is a multivariate t of 2 nu degrees of freedom."""
        stretch = np.sqrt(2 * self.nu / rng.chisquare(2 * self.nu, size=(G.shape[0], 1)))
        return np.sqrt(2 * self.gamma) * stretch * G

    def spectral_density(self, f: Array, d: int) -> Array:
        """A power of the frequency, -(2 nu + d) of large ones."""
        nu, square = self.nu, 1 / (2 * self.gamma)  # of the length scale
        scale = (4 * np.pi * square) ** (d / 2) * gamma_function(nu + d / 2) / gamma_function(nu)
        growth = 1 + 2 * np.pi**2 * square * f**2 / nu
        return scale * (2 * nu) ** (-d / 2) * growth ** -(nu + d / 2)


class RationalQuadratic(StationaryKernel):
    """``(1 + gamma |x - z|^2 / alpha)^-alpha``, a mixture of Gaussians of many widths.

    alpha = 1 is the Cauchy kernel.

    Parameters
    ----------
    gamma : float, array of shape (d,), "median", "mean" or None
        As in `RBF`, which is the limit of large alpha.
    alpha : float
        Weight of the far tail; smaller is heavier.
    """

    live_tiles = 2

    def __init__(self, gamma: Any = None, alpha: float = 1.0):
        self.gamma = gamma
        self.alpha = alpha

    def check(self, X: Array) -> None:
        super().check(X)
        if not self.alpha > 0:
            raise ValueError(f"RationalQuadratic: alpha={self.alpha!r} must be positive.")

    def finish(self, T: Array) -> Array:
        """T holds -gamma d^2."""
        xp = array_namespace(T)
        T *= -1 / self.alpha
        T[...] = xp.clip(T, 0, None)
        T = inplace(xp.log1p, T)
        T *= -self.alpha
        return inplace(xp.exp, T)

    def slope(self, T: Array) -> Array:
        """(1 - t / alpha)^-(alpha + 1)."""
        xp = array_namespace(T)
        return xp.exp(-(self.alpha + 1) * xp.log1p(xp.clip(T * (-1 / self.alpha), 0, None)))

    def scalar_map(self) -> ScalarMap | None:
        """(1 - t / alpha)^-alpha."""
        scale = float(np.sqrt(2 * self.gamma))
        return ScalarMap("rational", scale, (float(self.alpha),), distance=True)

    def frequencies(self, G: Array, rng: np.random.Generator) -> Array:
        """A mixture of Gaussians whose gammas follow a gamma distribution."""
        mixed = self.gamma * rng.gamma(self.alpha, 1 / self.alpha, size=(G.shape[0], 1))
        return np.sqrt(2 * mixed) * G

    def spectral_density(self, f: Array, d: int) -> Array:
        """A Bessel function; infinite at zero where the tail of the kernel has no integral."""
        a, order = np.sqrt(self.alpha / self.gamma), self.alpha - d / 2
        z = np.maximum(2 * np.pi * a * np.asarray(f, dtype=float), np.finfo(float).tiny)
        with np.errstate(over="ignore", invalid="ignore"):
            bell = (z / (2 * np.pi)) ** order * kv(order, z)
        if order > 0:
            # The limit at zero, where the formula is zero times infinity.
            limit = gamma_function(order) / (2 * np.pi**order)
            bell = np.where(np.isfinite(bell), np.minimum(bell, limit), limit)
        else:
            bell = np.where(f > 0, bell, np.inf)
        return a**d * 2 * np.pi**self.alpha / gamma_function(self.alpha) * bell
