"""Products with a kernel matrix whose tiles never reach memory: preparation and bookkeeping.

The tile itself is `_triton.py`. Here rows are brought to the form it takes, columns are walked
over in panels whose sums are added up in float64, and V is scaled into the range of float16.
"""

import torch

from ._triton import SLICE, STRIP, launch
from .tiles import row_blocks

# Columns whose products are summed in float32 before they join the sum in float64: rounding
# of longer sums would be seen.
PANEL = 32768
# Programs that keep a large GPU busy; with fewer strips of rows the columns are split.
PROGRAMS, MOST_SPLITS = 1056, 64
# Rows prepared at once, in float64.
PREPARED_ROWS = 65536
# Largest number that float16 takes, with some room.
HALF_RANGE = 6e4
# Widest block of vectors a tile is multiplied with.
WIDEST = 64


class Preparation:
    """How the rows of one set of pairs are prepared, and those that are kept prepared.

    Parameters
    ----------
    pairs : FactoredPairs
        In half precision one rounding of every number will do, with an error of about 1e-3;
        in single precision three products for one bring it to 1e-6.
    """

    def __init__(self, pairs, device):
        self.pairs, self.device = pairs, device
        self.map = pairs.kernel.scalar_map()

    @property
    def precision(self) -> str:
        """Which of the four precisions, the same for rows and columns."""
        if "precision" not in self.pairs.prepared:
            half = self.map.bounded and self._fit_half()
            names = ("half", "split") if half else ("tf32", "tf32x3")
            self.pairs.prepared["precision"] = names[0 if self.pairs.itemsize == 2 else 1]
        return self.pairs.prepared["precision"]

    @property
    def row_bytes(self) -> int:
        """Bytes of a prepared row, and of one in float64 on its way."""
        d = self.pairs.X.shape[1]
        return 4 * padded_width(d) + 8 * d + 4

    def columns(self) -> "PreparedRows":
        """All columns, kept."""
        return self._kept("columns", self.pairs.Z)

    def rows(self) -> "PreparedRows":
        """All rows, kept."""
        return self._kept("rows", self.pairs.X)

    def some(self, X, block) -> "PreparedRows":
        """A block of rows, not kept."""
        return PreparedRows(X[block], self.pairs.origin, self.map, self.precision, self.device)

    def _kept(self, side, X):
        prepared = self.pairs.prepared
        if side not in prepared:
            prepared[side] = self.some(X, slice(0, X.shape[0]))
        return prepared[side]

    def _fit_half(self) -> bool:
        largest = [
            scaled(X[block], self.pairs.origin, self.map).abs().amax()
            for X in (self.pairs.X, self.pairs.Z)
            for block in row_blocks(X.shape[0], PREPARED_ROWS)
        ]
        return bool(torch.stack(largest).amax() < HALF_RANGE)


class PreparedRows:
    """Rows in the form that the fused tile takes, padded to whole strips.

    Parameters
    ----------
    X : tensor of shape (n, d)
    origin : tensor of shape (d,) or None
        What is taken off every row.
    scalar_map : ScalarMap
    precision : str
    device : torch.device
    """

    def __init__(self, X, origin, scalar_map, precision, device):
        n, d = X.shape
        self.count, self.map, self.precision = n, scalar_map, precision
        padded, width = -(-n // STRIP) * STRIP, padded_width(d)
        dtype = torch.float16 if precision in ("half", "split") else torch.float32
        self.high = torch.zeros((padded, width), dtype=dtype, device=device)
        self.low = torch.zeros_like(self.high) if precision == "split" else self.high
        self.norms = torch.zeros(padded, dtype=torch.float32, device=device)
        for block in row_blocks(n, PREPARED_ROWS):
            self._fill(block, scaled(X[block], origin, scalar_map), d)

    def _fill(self, block, rows, d):
        self.high[block, :d] = rows.to(self.high.dtype)
        kept = self.high[block, :d].to(torch.float64)
        if self.precision == "split":
            self.low[block, :d] = (rows - kept).to(torch.float16)
            kept = kept + self.low[block, :d].to(torch.float64)
        if self.map.distance:
            # Norms of the rows as they are rounded: the kernel of nearby rows, and so positive
            # semidefinite with a true diagonal.
            self.norms[block] = (-0.5 * torch.sum(kept * kept, dim=1)).to(torch.float32)

    @property
    def arrays(self):
        """What the tile takes."""
        return self.high, self.low, self.norms

    def part(self, block):
        """Some whole strips of the arrays."""
        return self.high[block], self.low[block], self.norms[block]


def padded_width(d: int) -> int:
    """Columns of prepared rows: a power of two, or whole slices."""
    return max(16, 1 << (d - 1).bit_length()) if d <= SLICE else -(-d // SLICE) * SLICE


def scaled(rows, origin, scalar_map):
    """Rows as the scalar map takes them, in float64."""
    rows = rows.to(torch.float64)
    if origin is not None:
        rows = rows - origin
    if scalar_map.unit:
        length = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        rows = rows / torch.where(length == 0, 1.0, length)
    return rows * scalar_map.scale


def product(rows: PreparedRows, columns: PreparedRows, V, on_tiles=None):
    """The kernel matrix between prepared rows and columns times V, (n, b) in float64."""
    n, b = rows.count, V.shape[1]
    out = torch.empty((n, b), dtype=torch.float64, device=V.device)
    for first in range(0, b, WIDEST):
        some = slice(first, min(first + WIDEST, b))
        out[:, some] = _block_product(rows, columns, V[:, some], on_tiles)
    return out


def _block_product(rows, columns, V, on_tiles):
    n, m = rows.high.shape[0], columns.high.shape[0]
    b = V.shape[1]
    width = max(16, 1 << (b - 1).bit_length())
    V, scale = prepare_vectors(V, m, width, rows.precision)
    splits = max(1, min(MOST_SPLITS, -(-PROGRAMS // (n // STRIP)), m // STRIP))
    chunk = min(PANEL, -(-m // (splits * STRIP)) * STRIP)
    total = torch.zeros((n, width), dtype=torch.float64, device=scale.device)
    part = torch.empty((splits, n, width), dtype=torch.float32, device=scale.device)
    for start in range(0, m, splits * chunk):
        panel = slice(start, min(start + splits * chunk, m))
        chunks = -(-(panel.stop - start) // chunk)
        W = tuple(v[panel] for v in V)
        first = start if rows is columns else None
        launch(
            rows.arrays,
            columns.part(panel),
            W,
            part[:chunks],
            rows.map,
            rows.precision,
            chunk,
            first,
        )
        for sums in part[:chunks]:
            total += sums
        if on_tiles is not None:
            on_tiles(panel.stop, m)
    return total[: rows.count, :b] * scale


def prepare_vectors(V, m, width, precision):
    """V padded to (m, width) and rounded as the tile takes it, and what to multiply back."""
    largest = V.abs().amax(dim=0)
    # A power of two changes no digit.
    scale = torch.exp2(torch.ceil(torch.log2(torch.where(largest > 0, largest, 1.0))))
    if precision not in ("half", "split"):
        scale = torch.ones_like(scale)
    padded = torch.zeros((m, width), dtype=torch.float64, device=V.device)
    padded[: V.shape[0], : V.shape[1]] = V / scale
    if precision not in ("half", "split"):
        high = padded.to(torch.float32)
        return (high, high), scale
    high = padded.to(torch.float16)
    low = (padded - high).to(torch.float16) if precision == "split" else high
    return (high, low), scale
