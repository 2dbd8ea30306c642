"""Products with a kernel matrix whose tiles never reach memory: preparation and bookkeeping.

The tile itself is `_triton.py`, its size `fused_tile.py`. Here rows are brought to the form that
it takes, panels of rows are walked over whose sums are added up in float64, and V is scaled into
the range of float16.
"""

import math
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from copy import copy
from typing import Any

import torch

from ._triton import compile_tile, launch
from .engine import row_blocks
from .fused_tile import STRIP, WIDEST, Tile, uses_symmetry, whole_width

# Rows whose share in the other rows' products is summed in float32 before it joins the sum in
# float64, and columns of one program, summed likewise: rounding of longer sums would be seen.
PANEL, CHUNK = 65536, 32768
# Programs that keep a large GPU busy; with fewer strips of rows the columns are split.
PROGRAMS = 1056
# Rows prepared at once, in float64.
PREPARED_ROWS = 65536
# Largest number that float16 takes, with some room.
HALF_RANGE = 6e4
# Binary digits between the largest entry of V and one: small entries keep theirs in float16.
HEADROOM = 10
# Columns beside those of the data: both rows' norms in two pieces, against ones.
NORM_COLUMNS = 4


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
        return 8 * prepared_width(d, self.map) + 16 * d

    def some(self, X, block) -> "PreparedRows":
        """A block of rows, not kept."""
        return PreparedRows(X[block], self.pairs.origin, self.map, self.precision, self.device)

    def all(self, side: str) -> "PreparedRows":
        """All "rows" or "columns", kept."""
        prepared = self.pairs.prepared
        if side not in prepared:
            X = self.pairs.X if side == "rows" else self.pairs.Z
            prepared[side] = self.some(X, slice(0, X.shape[0]))
        return prepared[side]

    def _fit_half(self) -> bool:
        """Whether the largest number that prepared rows hold is in the range of float16."""
        largest = []
        for X in (self.pairs.X, self.pairs.Z):
            for block in row_blocks(X.shape[0], PREPARED_ROWS):
                rows = scaled(X[block], self.pairs.origin, self.map)
                largest.append(rows.abs().amax())
                if self.map.distance:
                    largest.append(0.5 * torch.sum(rows * rows, dim=1).amax())
        return bool(torch.stack(largest).amax() < HALF_RANGE)


class PreparedRows:
    """Rows in the form that the fused tile takes, padded to whole strips.

    ``[x, a, 1]`` as the left factor and ``[x, 1, a]`` as the right one, a = -|x|^2 / 2 in two
    pieces, so that their inner product is minus half a squared distance; x for both where the
    kernel is one of inner products. Each number is two of float16 in "split".

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
        self._copies: dict = {}
        shape = (-(-n // STRIP) * STRIP, prepared_width(d, scalar_map))
        dtype = torch.float16 if precision in ("half", "split") else torch.float32

        def zeros():
            return torch.zeros(shape, dtype=dtype, device=device)

        high = zeros()
        low = zeros() if precision == "split" else high
        self.left = self.right = (high, low)
        if scalar_map.distance:
            other = zeros()
            self.right = (other, zeros() if precision == "split" else other)
        for block in row_blocks(n, PREPARED_ROWS):
            self._fill(block, scaled(X[block], origin, scalar_map), d)

    def on(self, device) -> "PreparedRows":
        """The same rows on another device, kept there."""
        if device == self.left[0].device:
            return self
        if device not in self._copies:
            other = copy(self)
            other._copies = {}
            other.left, other.right = (
                tuple(half.to(device) for half in factor) for factor in (self.left, self.right)
            )
            self._copies[device] = other
        return self._copies[device]

    def _fill(self, block, rows, d):
        high, low = self.left
        high[block, :d] = rows.to(high.dtype)
        rounded = high[block, :d].to(torch.float64)
        if self.precision == "split":
            low[block, :d] = (rows - rounded).to(torch.float16)
            rounded = rounded + low[block, :d].to(torch.float64)
        if self.map.distance:
            self.right[0][block, :d] = high[block, :d]
            if self.precision == "split":
                self.right[1][block, :d] = low[block, :d]
            # Norms of the rows as they are rounded: the kernel of nearby rows, and so positive
            # semidefinite with a true diagonal. The first piece is one that tf32 keeps whole, too.
            norms, half = -0.5 * torch.sum(rounded * rounded, dim=1), high.dtype
            ones = torch.ones_like(norms)
            first = torch.bfloat16 if self.precision == "tf32" else half
            big = norms.to(first).to(torch.float64)
            small = (norms - big).to(half).to(torch.float64)
            for factor, columns in (
                (self.left, (big, small, ones, ones)),
                (self.right, (ones, ones, big, small)),
            ):
                for k, column in enumerate(columns):
                    factor[0][block, d + k] = column.to(half)
            if self.precision == "split":
                rest = (norms - big - small).to(torch.float16)
                self.left[1][block, d] = self.right[1][block, d + 2] = rest


def sums_squares(scalar_map, precision: str = "half") -> bool:
    """Whether a product can sum squares: those of padded rows are known, and those multiplied."""
    return scalar_map.distance and not scalar_map.hollow and precision in ("half", "split")


def prepared_width(d: int, scalar_map) -> int:
    """Columns of prepared rows."""
    return whole_width(d + (NORM_COLUMNS if scalar_map.distance else 0))


def scaled(rows, origin, scalar_map):
    """Rows as the scalar map takes them, in float64."""
    rows = rows.to(torch.float64)
    if origin is not None:
        rows = rows - origin
    if scalar_map.unit:
        length = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        rows = rows / torch.where(length == 0, 1.0, length)
    return rows * scalar_map.scale


def product(rows: PreparedRows, columns: PreparedRows, V, devices, on_tiles=None, squares=None):
    """The kernel matrix between prepared rows and columns times V, (n, b) in float64.

    Panels of rows are dealt out to the devices; the result is on that of V. The sum of the squares
    of all entries is added to a list `squares`, where there is one.
    """
    n, b = rows.count, V.shape[1]
    out = torch.empty((n, b), dtype=torch.float64, device=V.device)
    for some in row_blocks(b, WIDEST):
        out[:, some] = _block_product(rows, columns, V[:, some], devices, on_tiles, squares)
        squares = None
    return out


def _block_product(rows, columns, V, devices, on_tiles, squares):
    n, b = rows.left[0].shape[0], V.shape[1]
    halves, scale = prepare_vectors(V, columns.right[0].shape[0], whole_width(b), rows.precision)
    shares = [Share(rows, columns, halves, device, squares is not None) for device in devices]
    panel = max(PANEL // len(shares) // STRIP, 1) * STRIP
    for k, some in enumerate(row_blocks(n, panel)):
        # Forth and back, since the panels of a symmetric matrix get smaller.
        turn, place = divmod(k, len(shares))
        shares[place if turn % 2 == 0 else -1 - place].add(some)
        if on_tiles is not None:
            on_tiles(some.stop, n)
    total = shares[0].total
    for other in shares[1:]:
        total += other.total.to(total.device)
    if squares is not None:
        # Padded rows are zeros, whose distances from all others come out as zero.
        total_square = math.fsum(float(share.squares.sum()) for share in shares)
        squares.append(total_square - (n**2 - rows.count**2))
    return total[: rows.count, :b].to(V.device) * scale


class Share:
    """What one device does of a product."""

    def __init__(self, rows, columns, halves, device, summed):
        self.device = device
        self.rows = rows.on(device)
        self.columns = self.rows if columns is rows else columns.on(device)
        self.V = tuple(None if half is None else half.to(device) for half in halves)
        n, (D, width) = rows.left[0].shape[0], (rows.left[0].shape[1], halves[0].shape[1])
        self.total = torch.zeros((n, width), dtype=torch.float64, device=device)
        self.side = None
        self.squares: Any = self.total.new_zeros(n) if summed else None
        if columns is rows and uses_symmetry(D, width, rows.precision):
            self.side = torch.zeros((n, width), dtype=torch.float32, device=device)

    def add(self, panel):
        """Add the products of a panel of rows."""
        rows, columns, symmetric = self.rows, self.columns, self.side is not None
        # Columns of one program, so that there are enough programs.
        strips, m = (panel.stop - panel.start) // STRIP, columns.right[0].shape[0]
        programs = -(-PROGRAMS * (2 if symmetric else 1) // strips)
        chunk = min(CHUNK, -(-m // (programs * STRIP)) * STRIP)
        with current(self.device):
            parts = rows.left, columns.right, self.V, self.total, self.side
            first = 0 if rows is columns else None
            launch(*parts, rows.map, rows.precision, panel, chunk, first, self.squares)
            if self.side is not None:
                self.total += self.side
                self.side.zero_()


def current(device):
    """Make a device the one that kernels are launched on."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def compile_ahead(scalar_map, d: int, columns: int, device) -> list[Future]:
    """The tiles of a fit, compiled by threads while rows are checked, copied and prepared."""
    precisions = [("half", False), ("split", False)]
    precisions += [("half", True)] if sums_squares(scalar_map) else []
    if not scalar_map.bounded:
        precisions = [("tf32", False), ("tf32x3", False)]
    D, width = prepared_width(d, scalar_map), whole_width(min(columns, WIDEST))

    def compile_one(precision, summed):
        symmetric = uses_symmetry(D, width, precision)
        with current(device):
            compile_tile(Tile(D, width, scalar_map, precision, symmetric, False, True, summed))

    pool = ThreadPoolExecutor(len(precisions))
    waiting = [pool.submit(compile_one, *precision) for precision in precisions]
    pool.shutdown(wait=False)
    return waiting


def prepare_vectors(V, m, width, precision):
    """V padded to (m, width) and rounded as the tile takes it, and what to multiply back."""
    padded = torch.zeros((m, width), dtype=torch.float64, device=V.device)
    if precision not in ("half", "split"):
        padded[: V.shape[0], : V.shape[1]] = V
        return (padded.to(torch.float32), None), 1.0
    scale = column_scale(V)
    padded[: V.shape[0], : V.shape[1]] = V / scale
    high = padded.to(torch.float16)
    low = (padded - high).to(torch.float16) if precision == "split" else None
    if low is not None and not bool(low.any()):
        low = None
    return (high, low), scale


def column_scale(V):
    """A power of two for each column, which changes no digit, that brings it into range."""
    largest = V.abs().amax(dim=0)
    largest = torch.where(largest > 0, largest, 1.0)
    return torch.exp2(torch.ceil(torch.log2(largest)) - HEADROOM)


def rounded_vectors(V):
    """V with the digits that float16 keeps: the product in "split" then needs no second half."""
    scale = column_scale(V)
    return (V / scale).to(torch.float16).to(torch.float64) * scale
