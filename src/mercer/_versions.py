"""What a bug report needs to know: versions, BLAS and its threads, devices, memory."""

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from ._packages import has
from .compute import format_bytes
from .compute.engine import usable_cores
from .compute.memory import available_memory

REQUIRED = (
    "numpy",
    "scipy",
    "scikit-learn",
    "array-api-compat",
    "threadpoolctl",
    "numba",
    "safetensors",
    "rich",
    "matplotlib",
)
OPTIONAL = (
    "torch",
    "triton",
    "cupy",
    "finufft",
    "dask",
    "distributed",
    "pandas",
    "polars",
    "pyarrow",
    "duckdb",
    "zarr",
    "h5py",
    "onnx",
)
# They change how many threads the libraries below us start.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def show_versions() -> None:
    """Print what a bug report should contain about this machine and its libraries.

    Versions of Python, mercer and what it uses, BLAS and its threads, torch and its CUDA devices,
    cores and free memory. ``mercer --version --verbose`` prints the same.

    Examples
    --------
    >>> import mercer
    >>> mercer.show_versions()  # doctest: +SKIP
    mercer           0.1.0
    python           3.11.7
    ...
    """
    print(versions_text())


def versions_text() -> str:
    """All facts, a line each, their names aligned."""
    facts = [*system(), *packages(), *thread_pools(), *devices()]
    width = max(len(name) for name, _ in facts)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in facts)


def system() -> Iterator[tuple[str, str]]:
    """The interpreter, the machine, and what of it this process may use."""
    from . import __version__

    yield "mercer", __version__
    yield "python", f"{platform.python_version()} ({sys.executable})"
    yield "platform", platform.platform()
    yield "cores", f"{usable_cores()} usable of {os.cpu_count()}"
    yield "free memory", format_bytes(available_memory())


def packages() -> Iterator[tuple[str, str]]:
    """Versions of what mercer needs, and of what it can use."""
    for names, absent in ((REQUIRED, "missing"), (OPTIONAL, "not installed")):
        for name in names:
            try:
                yield name, version(name)
            except PackageNotFoundError:
                yield name, absent


def thread_pools() -> Iterator[tuple[str, str]]:
    """BLAS and OpenMP libraries that this process has loaded, and their threads."""
    import scipy.linalg  # noqa: F401  its BLAS may be another than NumPy's
    from threadpoolctl import threadpool_info

    for pool in threadpool_info():
        about = f"{pool['internal_api']} {pool['version'] or ''}".strip()
        yield pool["user_api"], f"{about}, {pool['num_threads']} threads ({pool['filepath']})"
    for name in THREAD_VARIABLES:
        if name in os.environ:
            yield name, os.environ[name]


def devices() -> Iterator[tuple[str, str]]:
    """CUDA as torch sees it, and its devices."""
    if not has("torch"):
        return
    try:
        import torch
    except Exception as error:  # a broken installation is what the report is about
        yield "torch", f"cannot be imported: {error}"
        return
    usable = "" if torch.cuda.is_available() else ", no device"
    yield "CUDA of torch", f"{torch.version.cuda or 'none'}{usable}"
    for i in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(i)
        yield f"cuda:{i}", f"{about.name}, {format_bytes(about.total_memory)}"
