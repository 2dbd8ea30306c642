"""Random features as the basis: an explicit map psi with psi(x) . psi(z) near k(x, z).

Fourier features (Rahimi & Recht 2007) draw frequencies from the kernel's spectral density;
orthogonal ones (Yu et al. 2016) and quasi-Monte-Carlo ones (Avron et al. 2016) spread them
more evenly. Polynomial kernels use the tensor sketch (Pham & Pagh 2013). Landmarks are
better at equal size: they look at the data, these do not.
"""

import numpy as np
from scipy.stats import norm, qmc

from ..compute import is_sparse
from ..kernels.base import float_dtype, rows_of
from .base import Basis, BasisRecipe


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

    def __init__(self, size=500, kind="orthogonal"):
        self.size = size
        self.kind = kind

    def build(self, kernel, X, engine, rng, n_components=None):
        """Draw the features for the columns of X."""
        if self.kind not in DRAWS:
            raise ValueError(f"RandomFeatures: kind={self.kind!r} must be one of {sorted(DRAWS)}.")
        if self.size < 2 or self.size != int(self.size):
            raise ValueError(f"RandomFeatures: size={self.size!r} must be a whole number above 1.")
        size, d = int(self.size), X.shape[1]
        if hasattr(kernel, "frequencies"):
            G = DRAWS[self.kind](size // 2, d, rng)
            return FeatureBasis(kernel, Fourier(kernel.frequencies(G, rng)), engine)
        if hasattr(kernel, "sketch_terms"):
            sketch = TensorSketch.draw(*kernel.sketch_terms(), d, size, rng)
            return FeatureBasis(kernel, sketch, engine)
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
        ``features(rows) -> (n, m)``, with `size` and `scratch` (floats per row).
    engine : LocalEngine
    """

    exact_norms = False

    def __init__(self, kernel, features, engine):
        self.kernel, self.features, self.engine = kernel, features, engine
        self.size = features.size

    def stream(self, X, W=None):
        """psi of a block of rows, times W."""
        dtype = float_dtype(X)
        W = None if W is None else W.astype(dtype)

        def coordinates(block):
            rows = rows_of(X, block, dtype)
            Y = self.features(rows.toarray() if is_sparse(rows) else rows)
            return Y if W is None else Y @ W

        return coordinates

    def stream_width(self):
        """Numbers alive for one row."""
        return self.features.scratch

    def whitener(self, dtype):
        """The features are orthonormal as they are."""
        return None

    def gram(self, W):
        """W itself."""
        return W

    def norms(self, X):
        """|psi(x)|^2."""
        out = np.empty(X.shape[0])
        stream = self.stream(X)
        self.engine.map_rows(lambda b: np.square(stream(b)).sum(axis=1), X.shape[0], 1024, out)
        return out

    def diagonal(self):
        """Ones."""
        return np.ones(self.size)


class Fourier:
    """``[cos(X w), sin(X w)] / sqrt(pairs)``: inner products average cos(w . (x - z)).

    Pairs rather than random phases: the same cost, less variance, and |psi(x)| = 1.
    """

    def __init__(self, frequencies):
        self.frequencies = frequencies
        self.size = 2 * frequencies.shape[0]
        self.scratch = 2 * self.size

    def __call__(self, X):
        """The features of rows, (n, m)."""
        pairs = self.frequencies.shape[0]
        angles = X @ self.frequencies.T.astype(X.dtype)
        Y = np.empty((X.shape[0], self.size), X.dtype)
        np.cos(angles, out=Y[:, :pairs])
        np.sin(angles, out=Y[:, pairs:])
        Y *= 1 / np.sqrt(pairs)
        return Y


class TensorSketch:
    """Inner products near ``(a x.z + c)^p``: the circular convolution of p count sketches."""

    def __init__(self, columns, signs, scale, constant, size):
        self.columns, self.signs = columns, signs
        self.scale, self.constant, self.size = scale, constant, size
        self.scratch = 5 * size

    @classmethod
    def draw(cls, degree, scale, constant, d, size, rng):
        """Hashes and signs for d columns and the constant one."""
        columns = rng.integers(size, size=(degree, d + 1))
        signs = rng.choice([-1.0, 1.0], size=(degree, d + 1))
        return cls(columns, signs, np.sqrt(scale), np.sqrt(constant), size)

    def __call__(self, X):
        """The features of rows, (n, m)."""
        one = np.full((X.shape[0], 1), self.constant, X.dtype)
        rows = np.hstack([X * self.scale, one])
        product = None
        for columns, signs in zip(self.columns, self.signs, strict=True):
            sketch = np.zeros((X.shape[0], self.size), X.dtype)
            np.add.at(sketch.T, columns, (rows * signs.astype(X.dtype)).T)
            spectrum = np.fft.rfft(sketch, axis=1)
            product = spectrum if product is None else product * spectrum
        return np.fft.irfft(product, n=self.size, axis=1).astype(X.dtype, copy=False)


def plain(count, d, rng):
    """Independent Gaussian rows."""
    return rng.standard_normal((count, d))


def orthogonal(count, d, rng):
    """Gaussian rows, orthogonal to each other in groups of d, with the lengths of Gaussian rows."""
    blocks = []
    for _ in range(-(-count // d)):
        Q, R = np.linalg.qr(rng.standard_normal((d, d)))
        # The signs make Q uniform over rotations, so that every row alone is Gaussian.
        Q = Q * np.sign(np.diag(R))
        lengths = np.sqrt(rng.chisquare(d, size=d))
        blocks.append(Q.T * lengths[:, None])
    return np.vstack(blocks)[:count]


def quasi(count, d, rng):
    """Gaussian quantiles of a scrambled Sobol sequence."""
    points = 2 ** int(np.ceil(np.log2(max(count, 2))))
    uniform = qmc.Sobol(d, rng=rng).random(points)[:count]
    tiny = np.finfo(float).eps
    return norm.ppf(np.clip(uniform, tiny, 1 - tiny))


DRAWS = {"plain": plain, "orthogonal": orthogonal, "qmc": quasi}
