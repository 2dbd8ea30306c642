"""The inverse transform as a kernel ridge regression of rows on their scores.

Bakir, Weston & Schoelkopf 2004, "Learning to find pre-images".
"""

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from ..compute import Array, array_namespace, dtype_name, format_bytes, on_device_of, to_numpy
from ..compute.linalg import cholesky, self_product, solve_positive, solve_triangular
from ..exceptions import tell
from ..fitting.expansion import KernelExpansion
from ..kernels import RBF, Kernel
from ..kernels.base import check_values, float_dtype
from .base import FittedPreimage, Preimage, Preimages, batch_rows, row_sample, some_rows

# Bytes at the peak for each pair of centers.
CENTER_BYTES = 72


@dataclass(eq=False, repr=False)
class KernelRidge(Preimage):
    """Rows as a smooth function of scores, learned by ridge regression with a Gaussian kernel.

    Works for every kernel and basis, since it sees only scores and rows. scikit-learn's form of it
    uses the kernel of the data on the scores and centers nothing, which is far worse; see
    ``fit_inverse_transform`` of `KernelPCA` for that one.

    Parameters
    ----------
    alpha : float or None
        The ridge; None is 0.01 for `inverse_transform` and 1 for `denoise`.
    gamma : float or None
        Width of the kernel of the scores; None for sigma their median distance.
    size : int
        Centers at most. With more training rows than that, as many of them are centers and up to
        twice as many are fitted, so that no n x n system is solved.
    """

    alpha: float | None = None
    gamma: float | str | None = None
    size: int = 3000

    def fit(self, expansion: KernelExpansion, X: Array, denoising: bool = False) -> FittedPreimage:
        """Solve for the coefficients of the centers, on the engine's device if it has room."""
        alpha = self.alpha
        if alpha is None:
            alpha = 1.0 if denoising else 0.01  # best on digits
        engine = expansion.basis.engine
        size, room = min(self.size, X.shape[0]), isqrt(engine.memory // CENTER_BYTES)
        if engine.device is None and size > room:
            allowed = f"memory={format_bytes(engine.memory)}"
            if room < 20:
                raise ValueError(
                    f"{allowed} holds a ridge regression of {room} centers, and 20 are the least. "
                    f"Give at least {format_bytes(CENTER_BYTES * 20**2)}."
                )
            tell(
                f"A ridge of {size:,} centers needs {format_bytes(CENTER_BYTES * size**2)}, more "
                f"than {allowed} holds: {room:,} centers are used."
            )
            size = room
        # Two rows for each center: more change the answer little.
        rows = some_rows(X, 2 * size)
        dtype = np.dtype(dtype_name(float_dtype(rows)))
        S, rows = (to_numpy(A).astype(float) for A in (expansion.scores(rows), rows))
        if size <= room:
            S, rows = engine.asarray(S), engine.asarray(rows)
        kernel = RBF("median" if self.gamma is None else self.gamma).resolve(S)
        check_values(kernel, kernel(S[:2], S), on="the scores")
        mean = rows.mean(axis=0)
        index = row_sample(len(rows), size)
        with engine.single_blas() if engine.threads == 1 else nullcontext():
            if index is None:
                centers, B = S, ridge_inverse(kernel, S, rows - mean, alpha)
            else:
                centers = S[index]
                B = centered_ridge(kernel, centers, S, rows - mean, alpha)
        centers, B, mean = (engine.asarray(A) for A in (centers, B, mean))
        return partial(regressed, engine, kernel, centers, B, mean, dtype)


def regressed(engine, kernel, centers, coefficients, mean, dtype, S, near=None) -> Preimages:
    """``mean + k(S, centers) coefficients``, one GEMM a batch, where the engine computes."""
    out = Preimages.at_once(engine.empty((len(S), len(mean)), dtype))
    S = engine.asarray(S, np.float64)

    def points(block):
        return kernel(S[block], centers) @ coefficients + mean

    rows = batch_rows(engine, 2 * len(centers) + len(mean), 8)
    engine.map_rows(points, len(S), rows, out.points)
    return out


def centered_ridge(kernel, centers, S, X, alpha):
    """Coefficients of c centers that fit n rows: min |X - K_nc B|^2 + alpha tr B' K_cc B.

    Through the factor of K_cc, whose condition then is not squared.
    """
    K = with_diagonal(kernel(centers), len(centers) * np.finfo(float).eps * 10)
    L = cholesky(K, lower=True, overwrite=True)
    A = solve_triangular(L, kernel(centers, S), lower=True, overwrite=True)
    normal = with_diagonal(self_product(A.T), alpha)
    B = solve_positive(normal, A @ X, overwrite=True)
    return solve_triangular(L, B, lower=True, transposed=True)


def ridge_inverse(kernel: Kernel, S: Array, X: Array, alpha: Any) -> Any:
    """Coefficients B of the regression ``x = k(s, S) B``: (K_S + alpha I) B = X, (n, d).

    `alpha` is a number, or one for each row: over the weights of rows that count several times.

    With the kernel of the data and rows that are not centered this is scikit-learn's inverse
    transform. n^2 memory, n^3 time, where the scores are.
    """
    K = with_diagonal(kernel(S), alpha)
    X = array_namespace(K).asarray(on_device_of(X, K), dtype=K.dtype)
    return solve_positive(K, X, overwrite=True)


def with_diagonal(K: Array, added: Any) -> Array:
    """K, to whose diagonal something is added."""
    index = np.arange(K.shape[0])
    K[index, index] += on_device_of(added, K) if isinstance(added, np.ndarray) else added
    return K
