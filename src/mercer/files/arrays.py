"""Arrays as row sources: in memory, on disk, sparse, or in the chunks of a store."""

from contextlib import contextmanager
from pathlib import Path

import numpy as np
from scipy import sparse

from .._packages import needed
from ..compute import is_sparse, to_numpy
from .base import RowSource, float_of


class ArraySource(RowSource):
    """Anything that has a shape, a dtype and slices of rows.

    Parameters
    ----------
    array : ndarray, memmap, CSR matrix, HDF5 dataset or zarr array of shape (n, d)
    name : str
    chunk_rows : int
        Rows that are stored, and so decoded, together.
    """

    def __init__(self, array, name: str = "the array", chunk_rows: int = 1):
        self.rows, self.name, self.chunk_rows = array, name, chunk_rows
        if len(array.shape) != 2 or np.dtype(array.dtype).kind not in "biuf":
            raise ValueError(
                f"{name}: expected a 2D array of numbers, got a {len(array.shape)}D array of "
                f"type {array.dtype} instead."
            )
        self.n_rows, self.n_columns = (int(size) for size in array.shape)
        if not self.n_columns:
            raise ValueError(f"{name} has no columns. At least one is needed.")
        self.dtype, self.sparse = float_of(array.dtype), is_sparse(array)
        self.array = array if isinstance(array, np.ndarray) or is_sparse(array) else None

    def chunks(self, rows):
        """Slices that begin where stored chunks do, so that none is decoded twice."""
        step = self.chunk_rows * max(1, rows // self.chunk_rows)
        for start in range(0, self.rows.shape[0], step):
            yield self.rows[start : start + step]


class StoredSource(ArraySource):
    """An array in a file that is opened for each reading and closed after it.

    Parameters
    ----------
    opened : callable
        A context manager function that gives the array.
    name : str
    """

    def __init__(self, opened, name: str):
        self.opened = opened
        with opened() as array:
            super().__init__(array, name, stored_rows(array))
        del self.rows

    def chunks(self, rows):
        """As for an array, the file open meanwhile."""
        with self.opened() as array:
            yield from ArraySource(array, self.name, self.chunk_rows).chunks(rows)


def stored_rows(array) -> int:
    """Rows of the chunks that an HDF5 dataset or a zarr array is stored in."""
    chunks = getattr(array, "chunks", None)
    return int(chunks[0]) if chunks else 1


def from_memory(array) -> ArraySource:
    """An array or sparse matrix in memory, or a memmap."""
    if is_sparse(array):
        return ArraySource(sparse.csr_matrix(array), "the sparse matrix")
    array = np.asanyarray(to_numpy(array))
    filename = getattr(array, "filename", None)
    return ArraySource(array, Path(filename).name if filename else "the array")


def from_npy(path: Path, name=None) -> ArraySource:
    """A ``.npy`` file, mapped and not read."""
    if name is not None:
        raise ValueError(f"name= is for archives, and {path.name} holds one array.")
    try:
        # np.load would open an archive too, and take any other file for a pickle.
        array = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # what a damaged header raises is not documented
        raise ValueError(f"{path.name} cannot be read as a NumPy file: {error}") from error
    return ArraySource(array, path.name)


def from_hdf5(path: Path, name=None) -> StoredSource:
    """A dataset of an HDF5 file, named or the only one."""
    h5py = needed("h5py", "formats")

    def datasets(file):
        found = []
        file.visititems(lambda key, item: found.append(key) if hasattr(item, "shape") else None)
        return found

    @contextmanager
    def opened():
        try:
            file = h5py.File(path, "r")
        except OSError as error:
            raise ValueError(f"{path.name} cannot be read as an HDF5 file: {error}") from error
        with file:
            yield file[only_name(datasets(file), name, path.name)]

    return StoredSource(opened, path.name)


def from_zarr(path: Path, name=None) -> StoredSource:
    """An array of a zarr store, or one of a group, named or the only one."""
    zarr = needed("zarr", "formats")

    @contextmanager
    def opened():
        try:
            node = zarr.open(str(path), mode="r")
        except (OSError, ValueError) as error:
            raise ValueError(f"{path.name} cannot be read as a zarr store: {error}") from error
        if hasattr(node, "shape"):
            yield node
        else:
            names = [key for key, _ in node.arrays()]
            yield node[only_name(names, name, path.name)]

    return StoredSource(opened, path.name)


def from_store(array) -> ArraySource:
    """An HDF5 dataset or a zarr array that is open."""
    return ArraySource(
        array, f"the {type(array).__module__.split('.')[0]} array", stored_rows(array)
    )


def only_name(names, name, where: str) -> str:
    """The array asked for, or the only one there is."""
    names = sorted(names)
    if name is None and len(names) == 1:
        return names[0]
    if name in names:
        return name
    asked = "and none was named" if name is None else f"and none is called {name!r}"
    raise ValueError(f"{where} holds the arrays {names}, {asked}. Give name= one of these.")
