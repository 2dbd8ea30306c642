"""NumPy archives: arrays read block by block as they are unpacked, and sparse matrices, checked.

What an archive says about its size is compared with what its arrays would take before anything
is made: a few kilobytes can claim to be a matrix of any size.
"""

import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np
from scipy import sparse

from ..compute import format_bytes, parse_bytes
from ..compute.csr import check_size, check_within, csr_from_parts, whole_numbers
from .arrays import ArraySource, only_name
from .base import RowSource, float_of

# What reading a damaged archive raises.
DAMAGED = (OSError, EOFError, BadZipFile, zlib.error, NotImplementedError, RuntimeError)
ENDING = ".npy"
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
SPARSE_PARTS = {"format", "shape", "data"}


class NpzSource(RowSource):
    """One array of an ``.npz`` archive, unpacked from its start for every reading.

    Parameters
    ----------
    path : Path
    member : str
    """

    def __init__(self, path: Path, member: str):
        self.path, self.name, self.member = path, path.name, member
        with opened(path) as archive, archive.open(member) as file:
            shape, self.by_columns, self.stored = read_header(file, size_of(archive, member))
        if len(shape) != 2 or self.stored.kind not in "biuf":
            raise ValueError(
                f"{self.name}: expected a 2D array of numbers, got a {len(shape)}D array of "
                f"type {self.stored} instead."
            )
        if not shape[1]:
            raise ValueError(f"{self.name} has no columns. At least one is needed.")
        self.shape = shape
        self.n_rows, self.n_columns = shape
        self.dtype = float_of(self.stored)

    def chunks(self, rows):
        """Rows as they are unpacked; an array stored by columns is unpacked as a whole."""
        with opened(self.path) as archive, archive.open(self.member) as file:
            read_header(file, size_of(archive, self.member))
            if self.by_columns:
                yield self._whole(file)
                return
            n, d = self.shape
            for start in range(0, n, rows):
                yield read_array(file, (min(rows, n - start), d), self.stored)

    def _whole(self, file):
        """The array, where half of the memory that is free holds it."""
        check_room(self.name, math.prod(self.shape) * self.stored.itemsize)
        return read_array(file, self.shape[::-1], self.stored).T


def from_npz(path: Path, name=None) -> RowSource:
    """An array of an ``.npz`` archive, or the matrix of `scipy.sparse.save_npz`."""
    with opened(path) as archive:
        names = [member.removesuffix(ENDING) for member in archive.namelist()]
        if name is None and set(names) >= SPARSE_PARTS:
            return ArraySource(read_sparse(archive, names, path.name), path.name)
    return NpzSource(path, only_name(names, name, path.name) + ENDING)


@contextmanager
def opened(path: Path) -> Iterator[ZipFile]:
    """The archive, open; what is wrong with it is said in one sentence."""
    try:
        if not is_zipfile(path):
            raise BadZipFile("it is cut short, damaged or another kind of file")
        with ZipFile(path) as archive:
            yield archive
    except DAMAGED as error:
        raise ValueError(f"{path.name} cannot be read as a NumPy archive: {error}") from error
    except KeyError as error:
        raise ValueError(f"{path.name} is not a NumPy archive: {error.args[0]}") from error


def read_sparse(archive: ZipFile, names, where: str) -> sparse.csr_matrix:
    """The matrix of `scipy.sparse.save_npz` as CSR, its parts checked before they are joined."""
    check_room(where, sum(info.file_size for info in archive.infolist()))
    parts = {name: read_member(archive, name + ENDING) for name in names}
    kind = as_text(parts["format"])
    try:
        rows, columns = checked_shape(parts["shape"])
        if kind in ("csr", "csc"):
            down, across = (rows, columns) if kind == "csr" else (columns, rows)
            A = csr_from_parts(parts["data"], parts["indices"], parts["indptr"], across)
            if A.shape[0] != down:
                raise ValueError(f"a sparse matrix has {A.shape[0]} pointers for {down}")
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


def checked_shape(shape) -> tuple[int, int]:
    """Rows and columns of a sparse matrix."""
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise ValueError("a sparse matrix has no rows and columns")
    for size in shape:
        check_size(size)
    return int(shape[0]), int(shape[1])


def as_text(value) -> str:
    """A text that NumPy stored, as bytes or as characters."""
    item = value.item() if value.size == 1 and value.dtype.kind in "SU" else ""
    return item.decode("latin-1") if isinstance(item, bytes) else item


def read_member(archive: ZipFile, member: str) -> np.ndarray:
    """One array of an archive, all of it."""
    with archive.open(member) as file:
        shape, by_columns, dtype = read_header(file, size_of(archive, member))
        array = read_array(file, shape[::-1] if by_columns else shape, dtype)
        return array.T if by_columns else array


def size_of(archive: ZipFile, member: str) -> int:
    """Bytes of a member when it is unpacked; more never come out of it."""
    return archive.getinfo(member).file_size


def read_header(file, size: int) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns come first, and type, from the head of a ``.npy`` file of `size`."""
    try:
        version = np.lib.format.read_magic(file)
        shape, by_columns, dtype = HEADERS[version](file)
    except Exception as error:  # what a damaged header raises is not documented
        raise OSError(f"an array is damaged ({error})") from error
    if dtype.hasobject:
        raise OSError("an array holds Python objects, which are never loaded")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size - file.tell():
        raise OSError(f"an array claims the shape {shape}, which its bytes do not have")
    return shape, by_columns, dtype


def read_array(file, shape, dtype: np.dtype) -> np.ndarray:
    """The next numbers of a file."""
    wanted = math.prod(shape) * dtype.itemsize
    content = file.read(wanted)
    if len(content) != wanted:
        raise EOFError("it is cut short")
    return np.frombuffer(content, dtype).reshape(shape)


def check_room(where: str, size: int) -> None:
    """Raise ValueError for arrays that take more than half of the memory that is free."""
    room = parse_bytes(None)
    if size > room:
        raise ValueError(
            f"{where} takes {format_bytes(size)} when it is unpacked, and {format_bytes(room)} can "
            "be used. Save its rows as a .npy file, which is used from disk."
        )
