"""Random features as the basis: an explicit map psi with psi(x) . psi(z) near k(x, z).

Fourier features (Rahimi & Recht 2007) draw frequencies from the kernel's spectral density;
orthogonal ones (Yu et al. 2016) and quasi-Monte-Carlo ones (Avron et al. 2016) spread them
more evenly. Polynomial kernels use the tensor sketch (Pham & Pagh 2013). Landmarks are
better at equal size: they look at the data, these do not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import fft
from scipy.stats import norm, qmc

from ..compute import array_namespace, is_sparse, on_device_of
from ..compute.arrays import Array, dtype_in, placement_of
from ..compute.engine import moment_bytes, too_little
from ..kernels import Kernel, Polynomial, base
from .base import Basis, BasisRecipe
from .points import DRAFT_SPREAD

# Angles whose cosines and sines are computed at once, so that work arrays stay in the cache.
HALVED = 2**14
# Bytes for each feature and column while frequencies are drawn: five copies of half as many.
FREQUENCY_BYTES = 20
# Up to so many columns, spectra of count sketches are a product with the rows.
FEW_COLUMNS = 64


@dataclass(eq=False, repr=False)
class RandomFeatures(BasisRecipe):
    """A basis of random features.

    Parameters
    ----------
    size : int
        Number of features; Fourier features come in pairs of a sine and a cosine.
    kind : "orthogonal", "plain" or "qmc"
        How Fourier frequencies are drawn. Polynomial kernels use the tensor sketch
        whatever the kind.
    """

    size: int = 500
    kind: str = "orthogonal"

    def build(
        self, kernel: Kernel, X: Array, engine: Any, rng: Any, n_components: int | None = None
    ) -> Basis:
        """Draw the features for the columns of X."""
        if self.kind not in DRAWS:
            raise ValueError(f"RandomFeatures: kind={self.kind!r} must be one of {sorted(DRAWS)}.")
        if self.size < 2 or self.size != int(self.size):
            raise ValueError(f"RandomFeatures: size={self.size!r} must be a whole number above 1.")
        size, d = int(self.size), X.shape[1]
        if isinstance(kernel, Polynomial):
            sketch = TensorSketch.draw(kernel, d, size, rng)
            return FeatureBasis(kernel, sketch, engine, kernel.spread(X) <= DRAFT_SPREAD)
        if engine.device is None and FREQUENCY_BYTES * d * size > engine.memory:
            need = max(FREQUENCY_BYTES * d * size, moment_bytes(size, engine))
            what = f"{size:,} random features of {d:,} columns while they are drawn"
            advice = "Ask for fewer, or use basis='landmarks'. "
            raise too_little(engine.memory, need, what, advice)
        frequencies = None
        if isinstance(kernel, base.DifferenceKernel):
            frequencies = kernel.frequencies(DRAWS[self.kind](size // 2, d, rng), rng)
        if frequencies is not None:
            # The rounding of an angle is proportional to the angle.
            angle = float(kernel.gamma * base.wide_row_squares(X).max()) ** 0.5
            single = angle**2 <= DRAFT_SPREAD and base.fits_single(X)
            return FeatureBasis(kernel, Fourier(frequencies), engine, single, 1 + angle)
        raise ValueError(
            f"No random features are known for {type(kernel).__name__}. Use RBF, Laplacian, "
            "Matern, RationalQuadratic or Polynomial, or basis='landmarks'."
        )


class FeatureBasis(Basis):
    """The coordinates of an explicit feature map: G = I.

    Parameters
    ----------
    kernel : Kernel
        The kernel that the map approximates.
    features : callable
        ``features(rows) -> (n, m)``, with `size`, `scratch` (floats per row) and `beside(rows)`,
        the same map with its numbers where the rows are and in their type.
    engine : TiledEngine
    single : bool
        Whether single-precision rows may be computed in single precision.
    growth : float
        Rounding of a feature over that of a number of its size, about.
    """

    exact_norms = False
    noun = "random features"

    def __init__(
        self, kernel: Kernel, features: Any, engine: Any, single: bool = True, growth: float = 1.0
    ):
        self.kernel, self.features, self.engine = kernel, features, engine
        self.single, self.growth = single, growth
        self.size = features.size

    def precision(self, X: Array) -> Any:
        """The NumPy type to compute X's features in: its own where rounding allows."""
        return super().precision(X) if self.single else np.dtype(np.float64)

    def entry_size(self) -> float:
        """Fourier features of a row have unit length; those of a sketch may have any."""
        return 0.0 if self.features.unit else np.inf

    def rounding(self) -> float:
        """Rounding of the products of features."""
        return float(8 * np.finfo(float).eps * self.growth)

    def block_products(self, X: Array, W: Array = None, dtype: Any = None) -> Callable:
        """psi of a block of rows, times W."""
        X = self.engine.place(X)
        xp = np if is_sparse(X) else array_namespace(X)
        dtype = dtype_in(xp, self.precision(X) if dtype is None else dtype)
        # Moved to the device once, not with every block.
        features = self.features.beside(base.rows_of(X, slice(0, 1), dtype))
        W = None if W is None else self.engine.asarray(W, dtype)

        def coordinates(block):
            Y = features(base.dense_rows(base.rows_of(X, block, dtype)))
            return Y if W is None else Y @ W

        return coordinates

    def pair_errors(self, X: Array, Z: Array, dtype: Any) -> Array:
        """k(x, z) - psi(x) . psi(z) for every row x of X and the same row z of Z, (n,).

        For features of differences of rows: one cosine a pair of features.
        """
        double = array_namespace(X).float64 if not is_sparse(X) else np.float64
        X, Z = (base.rows_of(A, slice(None), double) for A in (X, Z))
        D = self.engine.asarray(base.dense_rows(X - Z), dtype)
        exact = self.kernel.of_differences(D)  # type: ignore[attr-defined]
        return exact - self.features.beside(D).of_differences(D)

    def _row_floats(self) -> int:
        return self.features.scratch

    def norms(self, X: Array) -> Array:
        """|psi(x)|^2."""
        n, products = X.shape[0], self.block_products(X)
        out = self.engine.empty((n,))
        rows = min(self.product_rows(X), self.engine.stream_block // 2)
        self.engine.map_rows(lambda block: base.row_squares(products(block)), n, rows, out)
        return out


class Fourier:
    """``[cos(X w), sin(X w)] / sqrt(pairs)``: inner products average cos(w . (x - z)).

    Pairs rather than random phases: the same cost, less variance, and |psi(x)| = 1.
    """

    unit = True

    def __init__(self, frequencies):
        self.frequencies = frequencies
        self.size = 2 * frequencies.shape[0]
        self.scratch = 2 * self.size

    def beside(self, X):
        """The same map in the library, on the device and in the type of rows X."""
        xp = np if is_sparse(X) else array_namespace(X)
        return Fourier(xp.asarray(on_device_of(self.frequencies, X), dtype=X.dtype))

    def __call__(self, X):
        """The features of rows, (n, m)."""
        xp, pairs = array_namespace(X), self.frequencies.shape[0]
        angles = X @ self.beside(X).frequencies.T
        Y = xp.empty((X.shape[0], self.size), dtype=X.dtype, **placement_of(X))
        scale = float(1 / np.sqrt(pairs))
        if xp is np and X.dtype == np.float64:
            half_angles(angles, scale, Y[:, :pairs], Y[:, pairs:])
            return Y
        xp.cos(angles, out=Y[:, :pairs])
        xp.sin(angles, out=Y[:, pairs:])
        Y *= scale
        return Y

    def of_differences(self, D):
        """psi(x) . psi(z) for rows D = x - z, (n,): the means of cos(w . (x - z))."""
        xp, angles = array_namespace(D), D @ self.frequencies.T
        if xp is np and D.dtype == np.float64:
            np.tan(np.multiply(angles, 0.5, out=angles), out=angles)
            angles *= angles
            angles += 1.0
            return np.divide(2.0, angles, out=angles).mean(axis=1) - 1.0
        return xp.mean(xp.cos(angles), axis=1)


def half_angles(angles, scale: float, cosines, sines) -> None:
    """Scaled cosines and sines of angles, which are overwritten, from one tangent: t = tan(a / 2).

    cos a = 2 / (1 + t^2) - 1 and sin a = 2 t / (1 + t^2), to a few units of rounding of 1. NumPy's
    tangent in double precision is ten times faster than its sine and cosine where the processor
    has AVX-512, and as fast elsewhere.
    """
    step = max(1, HALVED // max(angles.shape[1], 1))
    for start in range(0, angles.shape[0], step):
        rows = slice(start, start + step)
        t = angles[rows]
        t *= 0.5
        np.tan(t, out=t)
        q = t * t
        q += 1.0
        np.divide(2 * scale, q, out=q)
        np.multiply(t, q, out=sines[rows])
        np.subtract(q, scale, out=cosines[rows])


class TensorSketch:
    """Inner products near ``(a x.z + c)^p``: the circular convolution of p count sketches."""

    unit = False

    def __init__(self, columns, signs, scale, constant, size):
        self.columns, self.signs = columns, signs
        self.scale, self.constant, self.size = scale, constant, size
        self.scratch = 5 * size

    @classmethod
    def draw(cls, kernel, d, size, rng):
        """Hashes and signs for d columns and the constant one, for a `Polynomial` kernel."""
        if not kernel.definite or kernel.degree < 1:
            raise ValueError(
                f"A tensor sketch needs a whole degree above 0 and coef0 >= 0, not "
                f"degree={kernel.degree!r} and coef0={kernel.coef0!r}."
            )
        degree = int(kernel.degree)
        columns = rng.integers(size, size=(degree, d + 1))
        signs = rng.choice([-1.0, 1.0], size=(degree, d + 1))
        return cls(columns, signs, np.sqrt(kernel.gamma), np.sqrt(kernel.coef0), size)

    def beside(self, X):
        """The same map in the library, on the device and in the type of rows X."""
        xp = np if is_sparse(X) else array_namespace(X)
        columns, signs = (on_device_of(A, X) for A in (self.columns, self.signs))
        signs = xp.asarray(signs, dtype=X.dtype)
        return TensorSketch(columns, signs, self.scale, self.constant, self.size)

    def __call__(self, X):
        """The features of rows, (n, m)."""
        xp, product = array_namespace(X), None
        for spectrum in self.spectra(X):
            product = spectrum if product is None else product * spectrum
        return xp.asarray(transforms(xp).irfft(product, n=self.size, axis=1), dtype=X.dtype)

    def spectra(self, X):
        """Fourier transforms of the count sketches, one after the other, (n, m // 2 + 1)."""
        xp, near, place = array_namespace(X), self.beside(X), placement_of(X)
        one = xp.full((X.shape[0], 1), self.constant, dtype=X.dtype, **place)
        rows = xp.concat([X * float(self.scale), one], axis=1)
        for columns, signs in zip(near.columns, near.signs, strict=True):
            if xp is np and rows.shape[1] <= FEW_COLUMNS:
                # The transform of a sum of few columns is the sum of theirs.
                each = np.zeros((rows.shape[1], self.size), X.dtype)
                each[np.arange(len(each)), columns] = signs
                spectra = fft.rfft(each, axis=1)
                yield (rows @ spectra.view(X.dtype)).view(spectra.dtype)
                continue
            sketch = xp.zeros((X.shape[0], self.size), dtype=X.dtype, **place)
            # An index may occur twice.
            if xp is np:
                np.add.at(sketch.T, columns, (rows * signs).T)
            else:
                sketch.index_add_(1, columns, rows * signs)
            yield transforms(xp).rfft(sketch, axis=1)


def transforms(xp) -> Any:
    """Fast Fourier transforms: SciPy's takes several rows at once where NumPy's takes one."""
    return fft if xp is np else xp.fft


def plain(count, d, rng):
    return rng.standard_normal((count, d))


def orthogonal(count, d, rng):
    """Gaussian rows, orthogonal to each other in groups of d, with the lengths of Gaussian rows."""
    blocks = []
    for start in range(0, count, d):
        # No more rows than needed: all d of them would take d^2 numbers.
        wanted = min(d, count - start)
        Q, R = np.linalg.qr(rng.standard_normal((d, wanted)))
        # The signs make Q uniform over rotations, so that every row alone is Gaussian.
        Q = Q * np.sign(np.diag(R))
        lengths = np.sqrt(rng.chisquare(d, size=wanted))
        blocks.append(Q.T * lengths[:, None])
    return np.vstack(blocks)


def quasi(count, d, rng):
    """Gaussian quantiles of a scrambled Sobol sequence."""
    points = 2 ** int(np.ceil(np.log2(max(count, 2))))
    uniform = qmc.Sobol(d, rng=rng).random(points)[:count]
    tiny = np.finfo(float).eps
    return norm.ppf(np.clip(uniform, tiny, 1 - tiny))


DRAWS = {"plain": plain, "orthogonal": orthogonal, "qmc": quasi}
