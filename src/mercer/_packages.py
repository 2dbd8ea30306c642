"""Libraries that only some uses need, imported when they are used; and versions for bug reports."""

import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec

# Optional libraries.
OPTIONAL = (
    *("torch", "triton", "cupy", "finufft", "dask", "distributed", "pandas", "polars"),
    *("pyarrow", "duckdb", "zarr", "h5py", "onnx", "pyspark", "ray", "faiss", "anndata"),
)


def needed(module: str, extra: str | None = None, use: str = "This"):
    """The module, or an ImportError that says what to install.

    Parameters
    ----------
    module : str
        Such as "pyarrow.parquet".
    extra : str or None
        The extra of mercer that brings it.
    use : str
        What needs it, as the subject of a sentence.
    """
    top = module.split(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != top:
            raise  # the library is installed, but something that it needs is not
        beside = f", which mercer's extra {extra!r} brings" if extra else ""
        raise ImportError(
            f"{use} needs {top}, which is not installed. Install it with pip install {top}{beside}."
        ) from error


def has(module: str) -> bool:
    """Whether a top-level module is installed, without importing it."""
    return find_spec(module) is not None


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
    lines = list(facts())
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        print(f"{name:<{width}}  {text}")


def facts() -> Iterator[tuple[str, str]]:
    """The interpreter, the machine and what of it this process may use, libraries, devices."""
    import scipy.linalg  # noqa: F401  its BLAS may be another than NumPy's
    from threadpoolctl import threadpool_info

    from .compute import format_bytes
    from .compute.engine import available_memory, usable_cores

    yield "mercer", version("mercer")
    yield "python", f"{platform.python_version()} ({sys.executable})"
    yield "platform", platform.platform()
    yield "cores", f"{usable_cores()} usable of {os.cpu_count()}"
    yield "free memory", format_bytes(available_memory())
    required = [line for line in requires("mercer") or () if "extra ==" not in line]
    for line in (*required, *OPTIONAL):
        (name,) = re.findall(r"^[\w-]+", line)
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "not installed"
    for pool in threadpool_info():
        about = f"{pool['internal_api']} {pool['version'] or ''}".strip()
        yield pool["user_api"], f"{about}, {pool['num_threads']} threads ({pool['filepath']})"
    # They change how many threads the libraries below us start.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        if name in os.environ:
            yield name, os.environ[name]
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
        device = torch.cuda.get_device_properties(i)
        yield f"cuda:{i}", f"{device.name}, {format_bytes(device.total_memory)}"
