"""Attribution: which columns of the data drive which component.

A score is a function of a row, s_j(x) = sum_i A_ij k(z_i, x) - const, and its gradient says how
much it moves with each column there. KPCA-IG (Briscik, Dillies & Dejean 2023, "Improvement of
variables interpretability in kernel PCA") averages the length of that gradient over the rows. Here
gradients are times the standard deviation of their column, so that columns in different units can
be compared.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._tables import html_table, text_table
from ..compute import array_namespace, is_sparse, to_numpy
from ..fitting.expansion import KernelExpansion

# Columns of a component that a table shows.
SHOWN = 5
# Arrays of the size of a block's gradients that are alive at once, and share of the budget.
LIVE_GRADIENTS, GRADIENT_SHARE = 6, 2


@dataclass(frozen=True)
class GradientSums:
    """Sums over rows of their gradients and of the rows themselves; two of them add up to one.

    Attributes
    ----------
    count : float
    signed, absolute : arrays of shape (d, r)
        Sums of the gradients and of their sizes.
    length : array of shape (d,)
        Sums over rows of the lengths of the gradients over all components.
    mean, spread : arrays of shape (d,)
        Mean of the rows, and their squared differences from it.
    """

    count: float
    signed: np.ndarray
    absolute: np.ndarray
    length: np.ndarray
    mean: np.ndarray
    spread: np.ndarray

    def __sizeof__(self):
        # A scheduler asks for it before it moves one.
        return object.__sizeof__(self) + 8 * (2 * self.signed.size + 3 * self.mean.size)

    def __add__(self, other: "GradientSums") -> "GradientSums":
        count = self.count + other.count
        shift = other.mean - self.mean
        return GradientSums(
            count,
            self.signed + other.signed,
            self.absolute + other.absolute,
            self.length + other.length,
            self.mean + shift * (other.count / count),
            self.spread + other.spread + shift**2 * (self.count * other.count / count),
        )


def gradient_sums(expansion: KernelExpansion, X: Any) -> GradientSums:
    """The sums over the rows of X, in blocks within the budget."""
    basis, n = expansion.basis, X.shape[0]
    X, A = basis.engine.place(X), expansion.frame[:, 1:]

    def of_block(block):
        rows = X[block]
        rows = rows.toarray() if is_sparse(rows) else rows
        rows = basis.engine.asarray(rows, np.float64)
        G = basis.gradients(rows, A)
        xp = array_namespace(G)
        mean = xp.mean(rows, axis=0)
        parts = (
            xp.sum(G, axis=0),
            xp.sum(xp.abs(G), axis=0),
            xp.sum(xp.sqrt(xp.sum(G**2, axis=2)), axis=0),
            mean,
            xp.sum((rows - mean) ** 2, axis=0),
        )
        return GradientSums(float(rows.shape[0]), *(to_numpy(part) for part in parts))

    return basis.engine.sum_rows(of_block, n, block_rows(expansion, X.shape[1]))


def block_rows(expansion: KernelExpansion, d: int) -> int:
    """Rows whose gradients, and kernel with the basis, fit the budget of a thread."""
    basis = expansion.basis
    width = LIVE_GRADIENTS * (d * expansion.n_components + min(basis.size, 2**14)) + 4 * d
    room = basis.engine.memory // (GRADIENT_SHARE * basis.engine.threads * 8 * width)
    return int(np.clip(room, 1, basis.engine.stream_block))


@dataclass(frozen=True)
class Attribution:
    """How much each column of the data drives each component.

    Attributes
    ----------
    columns : tuple of str
        Names of the d columns.
    components : tuple of str
        Names of the r components.
    size : array of shape (d, r)
        Mean over the rows of the size of the gradient, times the standard deviation of the
        column: what a score changes by when the column does by one standard deviation.
    direction : array of shape (d, r)
        The same with signs, which cancel where a component rises with a column in one place
        and falls in another: from -1 (falls everywhere) to 1 (rises everywhere) of `size`.
    overall : array of shape (d,)
        Mean length of the gradient over all components, times the standard deviation: the ranking
        of KPCA-IG.
    scale : array of shape (d,)
        Standard deviations of the columns; ``size / scale[:, None]`` are gradients for one unit.
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
    def of(cls, sums: GradientSums, columns: Any, components: Any) -> "Attribution":
        """Averages of sums."""
        scale = np.sqrt(sums.spread / sums.count)
        size = sums.absolute / sums.count * scale[:, None]
        signed = sums.signed / sums.count * scale[:, None]
        direction = np.divide(signed, size, out=np.zeros_like(size), where=size > 0)
        overall = sums.length / sums.count * scale
        names = tuple(str(name) for name in columns), tuple(str(name) for name in components)
        return cls(*names, size, direction, overall, scale, int(sums.count))

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
        shown = min(count, len(self.columns))
        heads = ["component", *(f"{i + 1}." for i in range(shown))]
        rows = [["all", *(f"{name} {value:.3g}" for name, value in self.top(None, count))]]
        for j, name in enumerate(self.components):
            cells = [self._cell(i, j) for i in self.order(j)[:count]]
            rows.append([name, *cells])
        return heads, rows

    def _cell(self, i: int, j: int) -> str:
        d = self.direction[i, j]
        sign = "+" if d > 0.5 else "-" if d < -0.5 else "±"
        return f"{self.columns[i]} {sign}{self.size[i, j]:.3g}"

    def _title(self) -> str:
        return f"Columns that drive the components, over {self.n_rows:,} rows"

    def __repr__(self) -> str:
        return f"{self._title()}\n{text_table(*self.table())}"

    def _repr_html_(self) -> str:
        return html_table(*self.table(), caption=self._title())
