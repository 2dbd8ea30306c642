"""Where arrays live and how row blocks move: the layer that knows threads, bytes and devices."""

# For the other packages of mercer; the API page lists `__all__`.
from .arrays import Array as Array
from .arrays import Same as Same
from .arrays import (
    array_namespace,
    dtype_name,
    inplace,
    is_sparse,
    match_sparsity,
    on_device_of,
    restore,
    stack_rows,
    to_numpy,
)
from .engine import (
    LocalEngine,
    TiledEngine,
    TileStore,
    available_memory,
    format_bytes,
    make_engine,
    parse_bytes,
    row_blocks,
    steps_on_device,
)
from .engine import too_little as too_little
from .fused_tile import ScalarMap
from .linalg import self_product as self_product

__all__ = [
    "LocalEngine",
    "ScalarMap",
    "TileStore",
    "TiledEngine",
    "array_namespace",
    "available_memory",
    "dtype_name",
    "format_bytes",
    "inplace",
    "is_sparse",
    "make_engine",
    "match_sparsity",
    "on_device_of",
    "parse_bytes",
    "restore",
    "row_blocks",
    "stack_rows",
    "steps_on_device",
    "to_numpy",
]
