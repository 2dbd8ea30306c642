"""Arrays as row sources: in memory, mapped, sparse, in an archive, or in blocks as they are made.

What a NumPy archive says about its size is compared with what its arrays would take before
anything is made: a few kilobytes can claim to be a matrix of any size.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, is_zipfile

import numpy as np
from scipy import sparse

from ..compute import is_sparse, parse_bytes, to_numpy
from ..compute.arrays import check_size, check_within, csr_from_parts, whole_numbers
from ..compute.numbers import sound_sparse
from .base import RowSource, as_rows, check_room, float_of, readable

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
# Members of an archive of `scipy.sparse.save_npz`, and those with a number for each entry.
SPARSE_PARTS, ENTRIES = {"format", "shape", "data"}, ("data", "indices")
# Stored archives are used from disk where the budget is less than so many times their size.
MAPPED_SHARE = 4
# What to save instead of an archive that does not fit.
AS_ROWS = "save its rows as a .npy file, which is used from disk"
UNCOMPRESSED = "scipy.sparse.save_npz(path, A.tocsr(), compressed=False)"
AS_SPARSE = f"save it with {UNCOMPRESSED}, which is used from disk"


class ArraySource(RowSource):
    """Anything that has a shape, a dtype and slices of rows.

    Parameters
    ----------
    array : ndarray, memmap, CSR matrix or open array of a store of shape (n, d)
    name : str
    chunk_rows : int
        Rows that are stored, and so decoded, together.
    """

    def __init__(self, array, name: str, chunk_rows: int = 1):
        self.rows, self.name, self.chunk_rows = array, name, chunk_rows
        check_numbers(array.shape, np.dtype(array.dtype), name)
        self.n_rows, self.n_columns = (int(size) for size in array.shape)
        self.dtype, self.sparse = float_of(array.dtype), is_sparse(array)
        # Numbers of extended precision are rounded as they are read.
        in_place = isinstance(array, np.ndarray) and array.dtype.char != "g"
        self.array = array if in_place or self.sparse else None

    def chunks(self, rows):
        """Slices that begin where stored chunks do, so that none is decoded twice."""
        return self.chunks_from(0, rows)

    def chunks_from(self, start, rows):
        """The same; the first one may begin anywhere."""
        step = self.chunk_rows * max(1, rows // self.chunk_rows)
        for stop in range(start - start % step + step, self.rows.shape[0] + step, step):
            yield self.rows[start:stop]
            start = stop


def check_numbers(shape, dtype: np.dtype, name: str) -> None:
    """Raise ValueError unless an array has rows and columns of numbers."""
    if len(shape) != 2 or dtype.kind not in "biuf":
        raise ValueError(
            f"{name}: expected a 2D array of numbers, got a {len(shape)}D array of type {dtype} "
            "instead."
        )
    if not shape[1]:
        raise ValueError(f"{name} has no columns. At least one is needed.")


def from_memory(array) -> ArraySource:
    """An array or sparse matrix in memory, or a memmap."""
    if is_sparse(array):
        name = "the sparse matrix"
        return ArraySource(sparse.csr_matrix(sound_sparse(array, name)), name)
    array = np.asanyarray(to_numpy(array))
    mapped = isinstance(array, np.memmap) and array.filename
    return ArraySource(array, Path(array.filename).name if mapped else "the array")


def from_npy(path: Path, name: str | None = None, memory=None) -> ArraySource:
    """A ``.npy`` file, mapped and not read."""
    if name is not None:
        raise ValueError(f"name= is for archives, and {path.name} holds one array.")
    return ArraySource(mapped(path), path.name)


def mapped(path: Path) -> np.memmap:
    """The array of a ``.npy`` file, of any shape and type."""
    try:
        # np.load would open an archive too, and take any other file for a pickle.
        return np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # what a damaged header raises is not documented
        raise ValueError(f"{path.name} cannot be read as a NumPy file: {error}") from error


def from_npz(path: Path, name: str | None = None, memory=None) -> RowSource:
    """An array of an ``.npz`` archive, or the matrix of `scipy.sparse.save_npz`."""
    with opened(path) as (archive, names):
        if name is None and set(names) >= SPARSE_PARTS:
            return ArraySource(read_sparse(archive, names, path.name, memory), path.name)
    return NpzSource(path, f"{one_of(names, name, path.name)}.npy", memory)


def one_of(names: list[str], name: str | None, where: str) -> str:
    """The name asked for, or the only one."""
    if name is None and len(names) == 1:
        return names[0]
    if name not in names:
        asked = "and none was named" if name is None else f"and none is called {name!r}"
        raise ValueError(f"{where} holds the arrays {names}, {asked}. Give name= one of these.")
    return name


def read_npz(path: Path, memory=None):
    """The only array of an ``.npz`` archive, of any shape and type, or its sparse matrix."""
    with opened(path) as (archive, names):
        if set(names) >= SPARSE_PARTS:
            return read_sparse(archive, names, path.name, memory)
        size = sum(info.file_size for info in archive.infolist())
        check_room(path.name, size, memory, AS_ROWS)
        return read_member(archive, one_of(names, None, path.name))


class NpzSource(RowSource):
    """One array of an ``.npz`` archive, unpacked from its start for every reading."""

    def __init__(self, path: Path, member: str, memory=None):
        self.path, self.name, self.member, self.memory = path, path.name, member, memory
        with opened(path) as (archive, _), archive.open(member) as file:
            shape, _, stored = read_header(file, archive, member)
        check_numbers(shape, stored, self.name)
        self.n_rows, self.n_columns = shape
        self.dtype = float_of(stored)

    def chunks(self, rows):
        """Rows as they are unpacked; an array stored by columns is unpacked as a whole."""
        with opened(self.path) as (archive, _), archive.open(self.member) as file:
            (n, d), by_columns, stored = read_header(file, archive, self.member)
            if by_columns:
                size = n * d * stored.itemsize
                check_room(self.name, size, self.memory, AS_ROWS)
                yield read_array(file, (d, n), stored).T
                return
            for start in range(0, n, rows):
                yield read_array(file, (min(rows, n - start), d), stored)


@contextmanager
def opened(path: Path) -> Iterator[tuple[ZipFile, list[str]]]:
    """The archive, open, and the names of its arrays; errors say in one sentence what is wrong."""
    with readable(path.name, "a NumPy archive"):
        if not is_zipfile(path):
            raise OSError("it is no archive")
        with ZipFile(path) as archive:
            yield archive, sorted(member.removesuffix(".npy") for member in archive.namelist())


def read_header(file, archive: ZipFile, member: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns come first, and type, from the head of an array in an archive."""
    try:
        version = np.lib.format.read_magic(file)
        shape, by_columns, dtype = HEADERS[version](file)
    except Exception as error:  # what a damaged header raises is not documented
        raise OSError(f"an array is damaged ({error})") from error
    if dtype.hasobject:
        raise OSError("an array holds Python objects, which are never loaded")
    # More bytes than the archive says never come out of it.
    size = archive.getinfo(member).file_size - file.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size:
        raise OSError(f"an array of shape {shape} has another number of bytes")
    return shape, by_columns, dtype


def read_array(file, shape, dtype: np.dtype) -> np.ndarray:
    """The next numbers of a file."""
    wanted = math.prod(shape) * dtype.itemsize
    content = file.read(wanted)
    if len(content) != wanted:
        raise EOFError("it is cut short")
    return np.frombuffer(content, dtype).reshape(shape)


def read_member(archive: ZipFile, name: str) -> np.ndarray:
    """An array of an archive, whole."""
    with archive.open(f"{name}.npy") as file:
        shape, by_columns, dtype = read_header(file, archive, f"{name}.npy")
        array = read_array(file, shape[::-1] if by_columns else shape, dtype)
        return array.T if by_columns else array


def mapped_member(archive: ZipFile, name: str) -> np.ndarray:
    """An array that an archive stores as it is, used from disk."""
    member = archive.getinfo(f"{name}.npy")
    with archive.open(member) as file:
        shape, _, dtype = read_header(file, archive, member.filename)
        inside = file.tell()
    if not math.prod(shape):
        return np.empty(shape, dtype)
    # The name and the extra field before a member have their lengths in its own header.
    with open(str(archive.filename), "rb") as file:
        file.seek(member.header_offset + 26)
        named, extra = np.frombuffer(file.read(4), "<u2").tolist()
    offset = member.header_offset + 30 + named + extra + inside
    return np.memmap(str(archive.filename), dtype, "r", offset, shape)


def read_sparse(archive: ZipFile, names, where: str, memory=None) -> sparse.csr_matrix:
    """The matrix of `scipy.sparse.save_npz` as CSR, its parts checked before they are joined."""
    size = sum(info.file_size for info in archive.infolist())
    stored = all(info.compress_type == ZIP_STORED for info in archive.infolist())
    kind: Any = read_member(archive, "format").astype(str).tolist()
    from_disk = stored and kind == "csr" and MAPPED_SHARE * size > parse_bytes(memory)
    if not from_disk:
        check_room(where, size, memory, AS_SPARSE)
    try:
        parts = {
            name: (mapped_member if from_disk and name in ENTRIES else read_member)(archive, name)
            for name in names
        }
        sizes = parts["shape"]
        rows, columns = whole_numbers(sizes, "shape").tolist()
        check_size(rows)
        check_size(columns)
        if kind in ("csr", "csc"):
            down, across = (rows, columns) if kind == "csr" else (columns, rows)
            A = csr_from_parts(parts["data"], parts["indices"], parts["indptr"], across)
            if A.shape[0] != down:
                raise ValueError(f"a sparse matrix has {A.shape[0]} pointers for {down}")
            A = sound_sparse(A, where)
            return A if kind == "csr" else A.T.tocsr()
        if kind == "coo":
            row, column = (whole_numbers(parts[name], name) for name in ("row", "col"))
            check_within(row, rows, "row")
            check_within(column, columns, "column")
            return sparse.csr_matrix((parts["data"], (row, column)), shape=(rows, columns))
    except (ValueError, KeyError) as error:
        raise ValueError(f"{where} is damaged: {error}. Save it again.") from error
    raise ValueError(
        f"{where} holds a sparse matrix in the format {kind!r:.20}, and csr, csc and coo are read. "
        "Save it with scipy.sparse.save_npz(path, A.tocsr())."
    )


class BlocksSource(RowSource):
    """Blocks of rows that a program makes.

    Parameters
    ----------
    given : iterator, or function without arguments that returns a fresh one
        Of arrays, data frames or sparse matrices of shape (rows, n_columns), of any length, also
        empty. Reading uses an iterator up, so that it can be read only once.
    """

    threaded = False  # a program's own iterator may be tied to its thread
    again = "Pass a function that returns a fresh iterator, or a file."

    def __init__(self, given: Iterator | Callable[[], Iterable]):
        self.given, self.repeatable = given, not isinstance(given, Iterator)
        title = getattr(given, "__name__", type(given).__name__)
        self.name = f"the blocks of {title}()" if self.repeatable else f"the {type(given).__name__}"
        blocks = self._fresh()
        for block in blocks:
            first = as_rows(block, f"{self.name}: the block at row 0")
            if first.shape[0]:
                break
        else:
            raise ValueError(
                f"{self.name} gave no rows. An iterator that was read before is empty: pass a "
                "function that returns a fresh one."
            )
        self.n_columns, self.dtype = first.shape[1], float_of(first.dtype)
        self.sparse = is_sparse(first)
        # The block that was looked at is the first one again.
        self._unread = chain([first], blocks)

    def chunks(self, rows):
        """The blocks as they come."""
        return self._fresh() if self.repeatable else self._unread

    def _fresh(self) -> Iterator:
        """The blocks; an error of the program that makes them says how far it came."""
        given = self.given
        blocks = given if isinstance(given, Iterator) else called(given, self.name)
        count = 0
        try:
            for block in blocks:
                yield block
                count += np.shape(block)[0]
        except Exception as error:
            error.add_note(f"This came from {self.name}, after {count:,} rows.")
            raise


def called(function: Any, name: str) -> Any:
    """What a function without arguments returns, if that are blocks."""
    blocks = function()
    if not isinstance(blocks, Iterable):
        raise TypeError(
            f"{name}: the function returned {type(blocks).__name__}, and an iterator of blocks of "
            "rows is needed."
        )
    return blocks
