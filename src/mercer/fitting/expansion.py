"""The expansion: a mean and r directions of feature space, written in a basis.

Frame F = [b | A], (m, 1 + r): column 0 the weights of the mean, the others those of the
directions. M = F' G F, with M[1:, 1:] = I where a direction has variance. All that is done
with a fitted model follows from P = project(X, F):

    scores                s = P[1:] - M[0, 1:]
    reconstruction        b + A s, as weights over the basis
    squared error         k(x, x) - 2 t.P + t M t',  t = [1, s]
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from ..bases import Basis, GramBasis
from ..compute import TiledEngine, array_namespace, dtype_name, on_device_of
from ..compute.linalg import lead_signs, peak_signs
from ..kernels.base import check_values
from .moments import RowFunction


@dataclass(frozen=True)
class KernelExpansion:
    """A mean and r orthonormal directions of feature space in a basis of size m.

    Attributes
    ----------
    basis : Basis
    frame : array of shape (m, 1 + r)
    metric : array of shape (1 + r, 1 + r)
        Inner products of the frame's vectors.
    """

    basis: Basis
    frame: Annotated[np.ndarray, "m 1+r"]
    metric: Annotated[np.ndarray, "1+r 1+r"]

    @property
    def n_components(self) -> int:
        """Number of directions r."""
        return self.frame.shape[1] - 1

    def here(self) -> "KernelExpansion":
        """The expansion with the points of its basis in this process, where they are at hand."""
        if not isinstance(self.basis, GramBasis):
            return self
        return replace(self, basis=self.basis.here())

    def leading(self, r: int) -> "KernelExpansion":
        """The expansion with only the first r directions."""
        return KernelExpansion(self.basis, self.frame[:, : 1 + r], self.metric[: 1 + r, : 1 + r])

    def signs(self, rows: Any, count: float) -> np.ndarray:
        """Signs that make the largest score of a training row positive, as of all points, (r,).

        Where `rows` are not all of them, which are `count`, the largest score of a landmark, or a
        large weight: no order of the rows changes these.
        """
        if rows.shape[0] < count:
            rows = self.basis.points
        return lead_signs(self.frame[:, 1:]) if rows is None else peak_signs(self.scores(rows))

    def stretched(self, factors: np.ndarray) -> "KernelExpansion":
        """The expansion with every direction times a number, such as its sign, (r,)."""
        factors = np.concatenate([[1.0], factors])
        frame = self.frame * on_device_of(factors.astype(dtype_name(self.frame.dtype)), self.frame)
        return KernelExpansion(self.basis, frame, self.metric * factors * factors[:, None])

    def scores(self, X) -> np.ndarray:
        """Coordinates of phi(X) along the directions, from the mean, (n, r)."""
        P = self.basis.project(X, self.frame[:, 1:])
        return P - on_device_of(self.metric[0, 1:], P)

    def weights(self, S) -> np.ndarray:
        """Basis weights of the reconstructions with scores S, (n, m)."""
        return self.frame[:, 0] + S @ self.frame[:, 1:].T

    def scores_and_errors(self, X) -> tuple[np.ndarray, np.ndarray]:
        """The scores, (n, r), and the squared distances of phi(X) to its reconstructions, (n,).

        Small negative values are rounding and become zero.
        """
        P = self.basis.project(X, self.frame)
        xp, M = array_namespace(P), on_device_of(self.metric, P)
        t = P - M[0]
        t[:, 0] = 1.0
        inner = xp.sum(t * P, axis=1)
        square = xp.sum((t @ M) * t, axis=1)
        return t[:, 1:], xp.clip(self.basis.norms(X) - 2 * inner + square, 0.0, None)

    def squared_errors(self, X) -> np.ndarray:
        """Squared feature-space distance of phi(X) to its reconstruction, (n,)."""
        return self.scores_and_errors(X)[1]


@dataclass(frozen=True)
class OfExpansion(RowFunction):
    """A verb of an expansion, as a function of blocks of rows.

    Attributes
    ----------
    expansion : KernelExpansion
    verb : callable
        ``verb(expansion, rows)``.
    tail : tuple of int
        The shape of one row's result.
    title : str
        What progress says is being made.
    dtype : type or None
        Of the results; None for that of the rows.
    """

    expansion: KernelExpansion
    verb: Callable
    tail: tuple[int, ...]
    title: str
    dtype: Any = None

    def __call__(self, rows, first):
        self.expansion.basis.kernel.check(rows)
        result = self.verb(self.expansion, rows)
        if isinstance(result, np.ndarray):  # sums may overflow, in single precision above all
            check_values(self.expansion.basis.kernel, result)
        return result

    def moved(self, engine: TiledEngine) -> Any:
        basis = self.expansion.basis.moved(engine)
        return replace(self, expansion=replace(self.expansion, basis=basis))


def scores_of(expansion: KernelExpansion) -> OfExpansion:
    """Coordinates of rows along the directions."""
    return OfExpansion(expansion, KernelExpansion.scores, (expansion.n_components,), "scores")


def errors_of(expansion: KernelExpansion) -> OfExpansion:
    """Squared distances of rows to their reconstructions."""
    return OfExpansion(expansion, KernelExpansion.squared_errors, (), "errors")
