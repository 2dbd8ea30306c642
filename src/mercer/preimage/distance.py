"""Pre-images from distances (Kwok & Tsang 2004): multilateration among near training rows.

Inner products of the reconstruction with training rows give, through the inverse of the kernel's
profile, distances in input space; the answer is the row of the neighbors' span that has them.
The paper takes the inner product to be 1 - d^2 / 2, as if the reconstruction had unit norm; it
is shorter than that, so the inner products are taken as they are.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from ..bases import Basis
from ..compute import Array, array_namespace, on_device_of, to_numpy
from ..fitting.expansion import KernelExpansion
from ..kernels.stationary import StationaryKernel
from .base import FittedPreimage, Preimage, Preimages, batch_rows, some_rows, tiny, with_mean

# Squared distances, in units of 1 / gamma, on which a profile is inverted by interpolation.
PROFILE = np.concatenate([[0.0], np.geomspace(1e-8, 1e3, 4000)])


@dataclass(eq=False, repr=False)
class DistanceMDS(Preimage):
    """The row at the right distances from the nearest training rows, kept inside their ball.

    Kernels of the Euclidean distance only. No iteration: O(n r) a row to find the neighbors, and
    an eigenproblem of their number. Robust to impulse noise.

    Parameters
    ----------
    n_neighbors : int
    """

    n_neighbors: int = 20

    def check(self, basis: Basis) -> None:
        """A distance must follow from the kernel's value."""
        if not isinstance(basis.kernel, StationaryKernel):
            raise ValueError(
                f"preimage='distance' needs a kernel of the Euclidean distance, and "
                f"{basis.kernel} is none. Use preimage='ridge'."
            )

    def fit(self, expansion: KernelExpansion, X: Array, denoising: bool = False) -> FittedPreimage:
        """Inner products of the training rows with the frame."""
        # Neighbors are searched for among at most 10,000 rows: each costs one row of the kernel.
        rows = expansion.basis.engine.asarray(some_rows(X, 10_000))
        anchors = expansion.basis.project(rows, expansion.frame)
        return partial(placed, expansion, rows, anchors, k=min(self.n_neighbors, len(rows)))


def placed(expansion, rows, anchors, S, near=None, *, k: int) -> Preimages:
    """Rows for scores S (q, r): neighbors by inner product, then all places at once.

    The `anchors` (n, 1 + r) are inner products of the rows (n, d) with the frame, k is the number
    of neighbors; rows and anchors are where the engine computes.
    """
    (n, d), engine, kernel = rows.shape, expansion.basis.engine, expansion.basis.kernel
    out = Preimages.at_once(engine.empty((len(S), d), rows.dtype))
    S = engine.asarray(S)

    def batch(block):
        inner = with_mean(S[block]) @ anchors.T
        if isinstance(inner, np.ndarray):
            chosen = np.argpartition(-inner, k - 1, axis=1)[:, :k]
        else:
            chosen = inner.topk(k, dim=1).indices
        values = array_namespace(inner).take_along_axis(inner, chosen, axis=1)
        return place(rows[chosen], squared_distances(kernel, values))

    size = batch_rows(engine, 3 * n + 4 * k * d + 6 * k * k, 8)
    engine.map_rows(batch, len(S), size, out.points)
    return out


def squared_distances(kernel, values):
    """|x - z|^2 from kernel values."""
    xp = array_namespace(values)
    values = xp.clip(values, 1e-6, 1.0)  # the log of smaller ones amplifies noise
    profile = kernel.finish(-PROFILE)
    # Interpolation needs rising abscissae, and the profile falls.
    squares = np.interp(to_numpy(values), profile[::-1], PROFILE[::-1]) / kernel.gamma
    return on_device_of(squares, values)


def place(neighbors, squares):
    """Rows (q, d) at squared distances (q, k) from neighbors (q, k, d), inside their ball.

    With the neighbors centered, X = Q L^(1/2) V', the row is their mean plus X' Q L^-1 Q' e, where
    e is half of (distance to the mean)^2 - (distance wanted)^2.
    """
    xp = array_namespace(neighbors)
    mean = xp.mean(neighbors, axis=1, keepdims=True, dtype=xp.float64)
    X = neighbors - mean
    norms = xp.einsum("qkd,qkd->qk", X, X)
    values, Q = xp.linalg.eigh(X @ xp.matrix_transpose(X))
    # Directions in which neighbors vary less amplify the errors of the distances. A hundredth costs
    # nothing on digits, and rows on a curve need it.
    large = values > 1e-2 * xp.clip(values[:, -1:], tiny(values), None)
    inverse = large / xp.where(large, values, 1.0)
    e = (norms - squares) / 2
    e -= xp.mean(e, axis=1, keepdims=True)
    coefficients = Q @ (inverse[..., None] * (xp.matrix_transpose(Q) @ e[..., None]))
    shift = xp.einsum("qk,qkd->qd", coefficients[..., 0], X)
    ball = xp.sqrt(xp.max(norms, axis=1, keepdims=True))
    length = xp.linalg.vector_norm(shift, axis=1, keepdims=True)
    return mean[:, 0] + shift * xp.clip(ball / xp.clip(length, tiny(length), None), None, 1.0)
