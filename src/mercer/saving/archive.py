"""The container of a model file: one safetensors archive whose metadata is a JSON header.

    8 bytes   length of what follows
    JSON      names, types and places of the tensors; under "__metadata__" our header
    bytes     the tensors, one after the other

The header begins with a checksum: the SHA-256 of the whole file with zeros in its own place, so
that no byte of the file can change unseen. Nothing in a file is ever executed.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._remote import as_path, local_copy
from .._whole_file import whole_file
from ..exceptions import ModelFileError

# Version of what the header says. Files of a later one are refused.
FORMAT_VERSION = 1
# The name of our header among the metadata of the archive.
ENTRY = "mercer"
# The text before the checksum: JSON within JSON, so quotes are escaped.
MARK = b'{\\"checksum\\": \\"'
BLANK = b"0" * 64
# Longest header that safetensors reads.
MOST_HEADER = 100_000_000
# Bytes read and written at once.
CHUNK = 1 << 20

SAVE_AGAIN = "Save the model again, or copy the file again from where it is whole."

SIZES = {"float": (64, 32, 16), "int": (64, 32, 16, 8), "uint": (64, 32, 16, 8)}
#: Names of NumPy's types in an archive.
DTYPES = {f"{name}{n}": f"{name[0].upper()}{n}" for name, sizes in SIZES.items() for n in sizes}
DTYPES |= {"bool": "BOOL"}


@dataclass(frozen=True)
class Archive:
    """What a file holds: the header, and for every tensor its type and shape.

    Attributes
    ----------
    header : dict
    layout : dict of str to (str, tuple of int)
    file : open safetensors archive
    size : int
        Bytes of the file.
    """

    header: dict[str, Any]
    layout: dict[str, tuple[str, tuple[int, ...]]]
    file: Any
    size: int

    def tensor(self, name: str) -> np.ndarray:
        """One tensor, read now."""
        A = self.file.get_tensor(name)
        return A if A.flags.writeable else A.copy()


@dataclass(frozen=True)
class Pieces:
    """A tensor that is made piece by piece while it is written.

    Attributes
    ----------
    dtype : dtype
    shape : tuple of int
    make : callable
        ``make()`` gives the pieces, one under the other.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    make: Callable[[], Iterator[np.ndarray]]

    def __iter__(self) -> Iterator[np.ndarray]:
        done = 0
        for piece in self.make():
            done += piece.shape[0]
            yield piece.astype(self.dtype, copy=False)
        if done != self.shape[0]:
            raise ModelFileError(
                f"The data of this model had the size {self.shape[0]:,} when it was fitted, and "
                f"have {done:,} now. Restore the data, or fit again."
            )


def write_archive(path, header: dict, tensors: dict[str, Any], overwrite=True) -> None:
    """Write the header and the tensors to one file; large arrays are not copied as a whole."""
    text = json.dumps({"checksum": BLANK.decode(), **header}, allow_nan=False)
    # Wide types first, as safetensors has it: every tensor is then aligned to its type.
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    entries: dict[str, Any] = {"__metadata__": {ENTRY: text}}
    end = 0
    for name in names:
        A = tensors[name]
        start, end = end, end + math.prod(A.shape) * A.dtype.itemsize
        kind, shape = DTYPES[A.dtype.name], list(A.shape)
        entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
    head = json.dumps(entries).encode()
    head += b" " * (-len(head) % 8)
    if len(head) > MOST_HEADER:
        raise ModelFileError("This model has more settings than a model file holds: 100 MB.")
    digest = hashlib.sha256()
    with whole_file(path, overwrite) as file:
        for chunk in _chunks(head, (tensors[name] for name in names)):
            digest.update(chunk)
            file.write(chunk)
        file.seek(8 + head.index(MARK) + len(MARK))
        file.write(digest.hexdigest().encode())


def _chunks(head: bytes, arrays) -> Iterator[bytes]:
    """The bytes of a file; a large array is never copied as a whole."""
    yield len(head).to_bytes(8, "little") + head
    for array in arrays:
        for piece in array if isinstance(array, Pieces) else [np.atleast_1d(array)]:
            rows = max(1, CHUNK // max(1, piece[:1].nbytes))
            for start in range(0, piece.shape[0], rows):
                block = piece[start : start + rows]
                yield np.ascontiguousarray(block, dtype=piece.dtype.newbyteorder("<")).tobytes()


@contextmanager
def open_archive(path, verify=True) -> Iterator[Archive]:
    """The contents of a model file, checked; tensors are read on demand.

    With `verify` the checksum is computed, for which the whole file is read once.
    """
    from safetensors import safe_open

    place = as_path(path)
    copy = local_copy(place)
    with open(copy, "rb") as raw:
        size = raw.seek(0, os.SEEK_END)
    if size == 0:
        raise ModelFileError(f"{path} is empty, and no model file.")
    try:
        file = safe_open(copy, framework="numpy")
    except OSError:
        raise
    except Exception as error:  # what a damaged file raises is not documented
        raise _not_readable(path) from error
    with file:
        header = _header(path, file.metadata() or {})
        if verify and header["checksum"] != _digest(copy):
            why = f"{path} is damaged: its checksum does not agree. {SAVE_AGAIN}"
            raise ModelFileError(why)
        parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        layout = {name: (p.get_dtype(), tuple(p.get_shape())) for name, p in parts.items()}
        yield Archive(header, layout, file, size)


def _not_readable(path: Any) -> ModelFileError:
    """The error for a file that is not ours, or ours and damaged."""
    with as_path(path).open("rb") as file:
        ours = MARK in file.read(CHUNK)
    if ours:
        why = "it was cut off or altered after it was written"
        return ModelFileError(f"{path} is damaged: {why}. {SAVE_AGAIN}")
    return ModelFileError(
        f"{path} is not a mercer model file. Give a file of mercer fit or of model.save."
    )


def _header(path: Any, metadata: dict[str, str]) -> dict[str, Any]:
    """Our header, if its version can be read."""
    if ENTRY not in metadata:
        raise ModelFileError(
            f"{path} is a safetensors file, but not one of mercer. Give a file that "
            "model.save(path) wrote."
        )
    try:
        header = json.loads(metadata[ENTRY])
        version, library = header["format_version"], str(header["library_version"])
        if type(version) is not int or type(header["checksum"]) is not str:
            raise TypeError("version and checksum")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _not_readable(path) from error
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version}, written by mercer {library:.40}; this mercer "
            f"reads versions up to {FORMAT_VERSION}. Upgrade mercer to open it."
        )
    return header


def _digest(path: Path) -> str | None:
    """The checksum of the content, or None if the header has no place for one."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        start = file.read(8)
        head = file.read(int.from_bytes(start, "little"))
        place = head.find(MARK) + len(MARK)
        if place < len(MARK):
            return None
        digest.update(start + head[:place] + BLANK + head[place + len(BLANK) :])
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
