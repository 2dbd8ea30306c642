"""The engine of a torch device: tiles by torch, or fused ones by Triton.

Arrays stay in the device's memory. Rows that do not fit there are streamed to it.
"""

from contextlib import contextmanager
from functools import cache

import numpy as np
import torch
from array_api_compat import torch as xp

from .arrays import BlocksOnDemand, dtype_in, dtype_name, is_sparse, to_numpy
from .engine import FREE_SHARE, TiledEngine, available_memory, format_bytes, parse_bytes, row_blocks

# A GPU likes tiles far larger than a cache; below 256 launches cost more than work.
TILE_SIDES = (16384, 8192, 4096, 2048, 1024, 512, 256)

# Share of the budget that one block of streamed rows may take; two are held at a time.
STREAMED_SHARE = 0.2

# Share of the budget that the rows themselves may take before they are streamed.
ROWS_SHARE = 0.25

# Columns of a kernel matrix from which the fused tile is worth compiling.
FUSED_COLUMNS = 1024

# Rows from which the matrix is certainly too large to be formed.
AHEAD_ROWS = 20_000

# Entries of a kernel matrix from which a product is split between GPUs: a tenth of a second.
SHARED_PAIRS = 10**11

# The oldest GPU whose tensor cores multiply in tf32.
LEAST_CAPABILITY = (8, 0)


class TorchEngine(TiledEngine):
    """Row blocks and tiles on a torch device.

    Parameters
    ----------
    memory : int, str or None
        Bytes of the device that work arrays may take; None for half of what is free there.
    device : torch.device or str
    on_tiles : callable or None
        ``on_tiles(done, total)`` after tiles.
    """

    sides, small_side = TILE_SIDES, 2048
    stream_block = 16384

    def __init__(self, memory=None, device="cuda", on_tiles=None):
        self.device = check_device(device)
        self.where = str(self.device)
        self.devices = all_devices(device, self.device)
        #: Tiles that threads are compiling.
        self._ahead: list = []
        free = free_memory(self.device)
        # A budget beyond what is free would only fail later.
        self.memory = min(int(FREE_SHARE * free) if memory is None else parse_bytes(memory), free)
        self.on_tiles = on_tiles

    def empty(self, shape, dtype=np.float64):
        """A tensor."""
        return torch.empty(tuple(shape), dtype=dtype_in(xp, dtype), device=self.device)

    def zeros(self, shape):
        """A tensor of zeros."""
        return torch.zeros(tuple(shape), dtype=torch.float64, device=self.device)

    def asarray(self, A, dtype=None):
        """A tensor on the device."""
        dtype = None if dtype is None else dtype_in(xp, dtype)
        if isinstance(A, np.ndarray):
            # Contiguous, since torch knows no negative strides.
            return torch.tensor(np.ascontiguousarray(A), device=self.device, dtype=dtype)
        return torch.asarray(A, device=self.device, dtype=dtype)

    def place(self, X):
        """X on the device, or rows that go there block by block if they are too many."""
        if isinstance(X, PagedRows):
            return X
        if is_sparse(X):
            raise ValueError(
                "Sparse rows are computed on in main memory only. Leave device out, or pass "
                "X.toarray()."
            )
        if isinstance(X, torch.Tensor) and X.device == self.device:
            return X
        if X.shape[0] * X.shape[1] * X.dtype.itemsize > ROWS_SHARE * self.memory:
            return PagedRows(to_numpy(X), self)
        return self.asarray(X)

    def draft(self, dtype, kernel):
        """Single precision for double; half precision where a fused tile exists."""
        if dtype == np.float64:
            return np.float32
        return np.float16 if dtype == np.float32 and self.fuses(kernel) else None

    def fuses(self, kernel) -> bool:
        """Whether products with this kernel's matrix are made by the fused tile."""
        return kernel.scalar_map() is not None and can_fuse(self.device)

    def eigh(self, A):
        """By the device's own LAPACK, twenty times faster than that of the host at 1,000 rows."""
        values, V = torch.linalg.eigh(self.asarray(A, np.float64))
        return to_numpy(values), to_numpy(V)

    def expect(self, kernel, shape, columns):
        """Compile the fused tile for such products in the background."""
        if self.device.type == "cuda" and shape[0] >= AHEAD_ROWS and self.fuses(kernel):
            from .fused import compile_ahead

            self._ahead = compile_ahead(kernel.scalar_map(), shape[1], columns, self.device)

    def pair_rows(self, pairs, V, store=None):
        """The product of a kernel matrix with V, fused where it can be; smaller when it must."""
        while True:
            try:
                return self._product(pairs, V, store)
            except torch.OutOfMemoryError:
                pairs.prepared.clear()
                if self.device.type == "cuda":
                    torch.cuda.empty_cache()
                least = pairs.tile_bytes(self.sides[-1])
                if self.memory // 2 < least:
                    raise MemoryError(
                        f"{self.device} has {format_bytes(free_memory(self.device))} free, too "
                        f"little for one tile of the kernel matrix ({format_bytes(least)}). Free "
                        "some of it, pass fewer rows, or leave device out to compute in main "
                        "memory."
                    ) from None
                self.memory //= 2

    def _share(self, tasks, work, threads, turns=None):
        with exact_products():
            super()._share(tasks, work, threads, turns)

    def rounded(self, V, dtype, kernel):
        """V as the fused tile multiplies it fastest, where there is one."""
        if dtype == np.float64 or not self.fuses(kernel):
            return V
        from .fused import rounded_vectors

        return rounded_vectors(self.asarray(V))

    def _product(self, pairs, V, store):
        few = pairs.shape[1] < FUSED_COLUMNS and pairs.itemsize == 4
        if pairs.itemsize == 8 or few or not self.fuses(pairs.kernel):
            return super().pair_rows(pairs, V, store)
        from .fused import Preparation, product, sums_squares

        V, preparation = self.asarray(V), Preparation(pairs, self.device)
        while self._ahead:
            self._ahead.pop().result()
        n, m = pairs.shape
        if not any(isinstance(rows, PagedRows) for rows in (pairs.X, pairs.Z)):
            columns = preparation.all("columns")
            rows = columns if pairs.symmetric else preparation.all("rows")
            devices = self.devices if n * m >= SHARED_PAIRS else [self.device]
            summing = store is not None and store.weights is not None and store.sums is None
            # Weights would be one load and one product more for every entry.
            summing = summing and pairs.symmetric and bool((store.weights == 1).all())
            summing = summing and sums_squares(preparation.map, preparation.precision)
            squares: list[float] | None = [] if summing else None
            KV = product(rows, columns, V, devices, self.on_tiles, squares)
            if squares:
                store.sums = squares[0], None
            return KV
        # Blocks of rows against blocks of columns, each prepared when its turn comes.
        block = max(1, int(STREAMED_SHARE * self.memory) // preparation.row_bytes)
        out = self.zeros((n, V.shape[1]))
        for done, i in enumerate(row_blocks(n, block), 1):
            rows = preparation.some(pairs.X, i)
            for j in row_blocks(m, block):
                same = pairs.symmetric and i == j
                columns = rows if same else preparation.some(pairs.Z, j)
                out[i] += product(rows, columns, V[j], [self.device])
            if self.on_tiles is not None:
                self.on_tiles(done, -(-n // block))
        return out

    def __getstate__(self):
        # Threads are not pickled.
        return super().__getstate__() | {"_ahead": []}


class PagedRows(BlocksOnDemand):
    """Rows in main memory or in a file whose blocks are copied to the device when indexed."""

    namespace = xp

    def __init__(self, X, engine):
        self.X, self.engine = X, engine
        self.shape, self.ndim = X.shape, 2
        self.dtype = dtype_in(xp, X.dtype if X.dtype in (np.float32, np.float64) else np.float64)
        self.device = engine.device

    def __getitem__(self, rows):
        """A block of rows as a tensor."""
        if isinstance(rows, torch.Tensor):
            rows = rows.cpu().numpy()
        return self.engine.asarray(np.asarray(self.X[rows], dtype=dtype_name(self.dtype)))


def check_device(device) -> torch.device:
    """The device, or an error that says what there is."""
    try:
        device = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"device={device!r} is not a torch device. Give None, 'cpu' or 'cuda'."
        ) from error
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"device={str(device)!r} is not supported. Give None, 'cpu' or 'cuda'.")
    if device.type == "cuda":
        count = torch.cuda.device_count()
        if count == 0:
            raise ValueError(
                f"device={str(device)!r} was asked for, and torch sees no CUDA device. Install a "
                "CUDA build of torch and a driver, or leave device out."
            )
        if (device.index or 0) >= count:
            raise ValueError(f"device={str(device)!r} was asked for, and there are {count}.")
        # Tensors name their device with its number, so comparisons need it too.
        index = torch.cuda.current_device() if device.index is None else device.index
        device = torch.device("cuda", index)
    return device


def all_devices(asked, device) -> list:
    """The devices that share products: every visible GPU unless one was given by number."""
    named = isinstance(asked, torch.device) or ":" in str(asked)
    if device.type != "cuda" or named or torch.cuda.device_count() == 1:
        return [device]
    others = (torch.device("cuda", index) for index in range(torch.cuda.device_count()))
    return [device, *(other for other in others if other != device and can_fuse(other))]


def free_memory(device) -> int:
    """Bytes free on a device, including those that torch holds for reuse."""
    if device.type != "cuda":
        return available_memory()
    free, _ = torch.cuda.mem_get_info(device)
    reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free + reserved


@cache
def can_fuse(device) -> bool:
    """Whether Triton is installed and the device has the tensor cores it needs."""
    try:
        import triton
    except ImportError:
        return False
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= LEAST_CAPABILITY
    return bool(triton.knobs.runtime.interpret)


@contextmanager
def exact_products():
    """Keep torch from multiplying float32 matrices in tf32, whatever the program has set."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
