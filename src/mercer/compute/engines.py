"""The engine for given data: threads of this machine, or a device."""

from collections.abc import Callable
from typing import Any

from array_api_compat import is_torch_array

from .._packages import needed
from .arrays import Array, is_on_device
from .local import LocalEngine
from .memory import parse_bytes
from .tiles import TiledEngine


def make_engine(
    X: Array = None,
    *,
    memory: int | str | None = None,
    device: Any = None,
    threads: int | None = None,
    on_tiles: Callable[[int, int], None] | None = None,
) -> TiledEngine:
    """The engine that computes where the data are, or where it is told to.

    Parameters
    ----------
    X : array or None
        The data; on a CUDA device they are computed on there.
    memory : int, str or None
        Byte budget, of main memory or of the device.
    device : None, str or torch.device
        None for where X is, "cpu" for the threads of this machine, "cuda" or "cuda:1" for a
        GPU. A `torch.device` is taken at its word: torch computes there, on the CPU as well.
    threads : int or None
    on_tiles : callable or None
    """
    if device is None and is_on_device(X):
        device = f"cuda:{device_index(X)}"
    if device is None or (isinstance(device, str) and device == "cpu"):
        return LocalEngine(parse_bytes(memory), threads, on_tiles)
    needed("torch", "torch", f"device={str(device)!r}")
    from .device import TorchEngine

    return TorchEngine(memory, device, on_tiles)


def steps_on_device(A: Array) -> bool:
    """Whether small steps that depend on each other can be made where A is, by compiled kernels."""
    if not is_torch_array(A):
        return False
    from .device import can_fuse

    return can_fuse(A.device)


def device_index(X) -> int:
    """The number of the CUDA device that X is on, as torch, CuPy and JAX write it."""
    device = X.device
    for name in ("index", "id"):
        number = getattr(device, name, None)
        if isinstance(number, int):
            return number
    return 0
