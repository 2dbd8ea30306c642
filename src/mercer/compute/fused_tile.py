"""What a fused tile needs to know of a kernel, and the shapes that were fastest on an H200.

The tile itself is `_triton.py`; here are only numbers, which take neither torch nor a device.
"""

from dataclasses import dataclass

# Rows of a strip: all arrays are padded to multiples of it.
STRIP = 128
# Columns of the data taken at once, twice at most; more are looped over.
SLICE = 64
# Widest block of vectors.
WIDEST = 128
# Registers of a thread that let three programs of four warps run at once: a pass that sums squares
# takes 303 ms of 1,000,000 rows, and 336 with the 188 that the compiler would take; others 252.
SUMMED_REGISTERS = 160
# Shared memory that one program may take on a GPU of the Hopper generation.
SHARED_BYTES = 232_448


@dataclass(frozen=True)
class ScalarMap:
    """A kernel as a scalar function of inner products of scaled rows.

    Attributes
    ----------
    name : str
        "exp2", "matern", "rational", "power", "tanh" or "identity".
    scale : float
        What rows are multiplied with.
    parameters : tuple of float
        At most one.
    degree : int
        A whole parameter.
    distance : bool
        Whether half of both rows' squared norms are taken off the inner product, which makes
        it minus half a squared distance.
    unit : bool
        Whether rows are brought to length one.
    rough : bool
        Whether rounding of the distance of a row to itself, which is zero, would be seen: the
        map has a kink there.
    bounded : bool
        Whether values lie between -1 and 1, as float16 needs them.
    hollow : bool
        Whether a row has no value with itself: zeros on the diagonal.
    """

    name: str
    scale: float = 1.0
    parameters: tuple = ()
    degree: int = 0
    distance: bool = False
    unit: bool = False
    rough: bool = False
    bounded: bool = True
    hollow: bool = False


@dataclass(frozen=True)
class Tile:
    """What a tile is compiled for.

    Attributes
    ----------
    D, B : int
        Columns of prepared rows and of V.
    scalar_map : ScalarMap
    precision : str
    symmetric : bool
        Whether tiles serve both sides.
    low : bool
        Whether V comes in two halves.
    same : bool
        Whether columns are the rows.
    summed : bool
        Whether squares of the entries are summed.
    """

    D: int
    B: int
    scalar_map: ScalarMap
    precision: str
    symmetric: bool
    low: bool
    same: bool
    summed: bool = False

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Rows and columns, warps and pipeline stages that were fastest on an H200."""
        D, B = self.D, self.B
        if self.precision not in ("half", "split"):
            small = self.precision == "tf32x3" or D > SLICE or B > SLICE
            return 64 if small else STRIP, 64, 4, 2
        if D > 2 * SLICE:
            return STRIP, 128, 8, 3
        if self.precision == "half":
            stages, halves = 2 if B == 32 and D >= SLICE else 3, 1
        elif self.symmetric and self.low and D <= SLICE:
            return STRIP, 128, 8, 2
        else:
            stages, halves = 2 if self.symmetric and D <= SLICE else 3, 2
        # Shared memory of a tile that keeps its rows: exactly what the compiler was seen to take.
        vectors = 2 * B * (2 if self.low else 1)
        shared = 2 * STRIP * D * halves
        shared += (STRIP * vectors + 2 * STRIP * 64 * halves) if self.symmetric else 0
        fits = shared + stages * 64 * (2 * D * halves + vectors) <= SHARED_BYTES
        return STRIP, 64, 4, stages if fits else 2

    @property
    def constants(self) -> dict:
        """The arguments that are compiled in; the same for all rows of many columns."""
        BM, BN, warps, stages = self.shape
        loop = self.D > 2 * SLICE
        D0, D1 = (SLICE, 0) if loop else parts(self.D)
        B0, B1 = parts(self.B)
        form = self.scalar_map
        limit = {"maxnreg": SUMMED_REGISTERS} if self.summed and warps == 4 else {}
        program = {"BM": BM, "BN": BN, "num_warps": warps, "num_stages": stages}
        sides = {"D0": D0, "D1": D1, "LOOP": loop, "B": self.B, "B0": B0, "B1": B1}
        kernel = {"MAP": form.name, "DEGREE": form.degree, "PRECISION": self.precision}
        kernel |= {"SAME": self.same and form.rough, "HOLLOW": self.same and form.hollow}
        what = {"LOW": self.low, "SYMMETRIC": self.symmetric, "SUMMED": self.summed}
        return limit | program | sides | kernel | what


def parts(width: int) -> tuple[int, int]:
    """A width of whole sixteens up to 128 as one or two powers of two."""
    largest = 1 << (width.bit_length() - 1)
    return (SLICE, SLICE) if width == 2 * SLICE else (largest, width - largest)


def whole_width(d: int) -> int:
    """The least width from d on that `parts` can take, or whole slices."""
    if d > 2 * SLICE:
        return -(-d // SLICE) * SLICE
    width = -(-max(d, 1) // 16) * 16
    return width if width in (16, 32, 48, 64, 80, 96) else 2 * SLICE


def uses_symmetry(D: int, B: int, precision: str) -> bool:
    """Whether tiles above the diagonal alone are faster: not where the product with V dominates."""
    widest = {"half": 64, "split": 32}.get(precision, 0)
    return widest >= B
