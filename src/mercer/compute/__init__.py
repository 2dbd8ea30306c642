"""Where arrays live and how row blocks move: the layer that knows threads, bytes and devices."""

from .arrays import array_namespace, inplace, is_sparse, restore, to_numpy
from .local import LocalEngine, TileStore
from .memory import available_memory, format_bytes, parse_bytes

__all__ = [
    "LocalEngine",
    "TileStore",
    "array_namespace",
    "available_memory",
    "format_bytes",
    "inplace",
    "is_sparse",
    "parse_bytes",
    "restore",
    "to_numpy",
]
