"""Checkpoints: what a long fit has found so far, in a folder, so that a killed one goes on there.

A fit is a fixed sequence of passes. What each pass gives is written when it is done, and the state
of a long one also every minute on the way. A fit that starts again takes what is there in
place of the passes that gave it, and so ends with the same numbers.

    about.json                 what the fit is: its parameters and data, and its seed
    product-0.safetensors      the first product with the kernel matrix, and so on
    sum-0.safetensors          the first pass over rows: how many are done, and their sums
    loop-0.safetensors         the state of what goes from row to row: a stream, a Hebbian rule
    lock                       held by the process that fits, and given back when that ends

Every file is written whole or not at all, and nothing in one is ever executed.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property, partial
from itertools import chain
from os import PathLike
from pathlib import Path
from time import monotonic
from types import CodeType, MethodType
from typing import Any, BinaryIO

import numpy as np

from .._remote import RemotePath, as_path, temporary_folder
from .._whole_file import check_folder, hold, telling, whole_file
from ..compute import is_sparse, to_numpy
from ..exceptions import CheckpointError

#: Seconds between two states of one pass.
EVERY = 60.0
ABOUT, LOCK = "about.json", "lock"
KINDS = ("product", "sum", "loop")
ENDING, EMPTY = ".safetensors", np.zeros(1)
# Times that a folder is opened which another fit, that has just ended, removes meanwhile.
ATTEMPTS = 9


class Checkpoint(AbstractContextManager):
    """The folder of one fit, which has the folder for itself; a context that ends with the fit.

    A fit that ends well takes the folder away, one that fails leaves it.

    Parameters
    ----------
    path : str or path
        A folder that is there already must be the checkpoint of the same fit.
    identity : str
        What the parameters and the data are, in a digest.
    seed : int
        What a fit that starts draws by; one that goes on keeps its own.

    Attributes
    ----------
    seed : int
    unfinished : bool
        Set by a fit that was interrupted and still gives a model: the folder then stays.
    """

    def __init__(self, path: str | PathLike[str], identity: str, seed: int):
        #: Where states are written; of a URL a copy of what is there.
        self.folder, self.name, self.unfinished = as_path(path), str(path), False
        self._remote: Any = None
        if isinstance(self.folder, RemotePath):
            self._remote, self.folder = self.folder, temporary_folder(self)
            for file in self._remote.rglob("*"):
                file.fetch(self.folder / file.name)
        self._done = dict.fromkeys(KINDS, 0)
        self._written = monotonic()
        self._lock = self._locked()
        try:
            new = self._is_new()
            self.seed = seed if new else self._known_seed(identity)
            if new:
                about = {"mercer checkpoint": 2, "identity": identity, "seed": self.seed}
                with self._writing(self.folder / ABOUT) as file:
                    file.write(json.dumps(about | {"checksum": identity_of(about)}).encode())
        except BaseException:
            self._lock.close()
            raise

    def __exit__(self, kind, error, where) -> None:
        """Take away the folder, after the fit has succeeded; other files in it stay.

        What says whose it is goes last: killed on the way, it is still the checkpoint of this fit.
        """
        with self._lock:
            if kind is not None or self.unfinished:
                return
            names = [f"{kind}-*{ENDING}" for kind in KINDS] + [f".{kind}-*.part" for kind in KINDS]
            states = chain.from_iterable(map(self.folder.glob, names))
            for file in (*states, *self._begun(), self.folder / ABOUT):
                file.unlink(missing_ok=True)
                if self._remote is not None:
                    (self._remote / file.name).unlink()
            if os.name == "nt":  # where nobody removes an open file
                self._lock.close()
            (self.folder / LOCK).unlink(missing_ok=True)
        with suppress(OSError):  # other files are in it, or the next fit begins
            self.folder.rmdir()

    def product(self, make: Callable[[], Any], W: Any, dtype: Any, store: Any = None) -> Any:
        """The next product of the kernel matrix with W: as it was written, or made and written.

        So are the sums over all entries that a product takes for a `store` (see `TileStore`) that
        has none. A product with anything else, as when another budget has led to another plan, is
        made anew.
        """
        file, key = self._next("product"), np.dtype(dtype).name + digest([to_numpy(W)])
        summed = store is None or store.sums is not None
        if file.exists():
            header, arrays = self._read(file)
            if header.get("key") == key and 1 <= len(arrays) <= 2:
                if not summed and header.get("square") is not None:
                    store.sums = header["square"], arrays[1] if len(arrays) > 1 else None
                return arrays[0]
        product = make()
        square, rows = (None, None) if summed or store.sums is None else store.sums
        arrays = [to_numpy(array) for array in (product, rows) if array is not None]
        self._write(file, {"key": key, "square": square}, arrays)
        return arrays[0]

    def _locked(self) -> BinaryIO:
        """The lock of the folder, which is made where there is none."""
        if self.folder.exists() and not self.folder.is_dir():
            raise self._foreign("it is a file")
        check_folder(self.folder, "checkpoint")
        for again in reversed(range(ATTEMPTS)):
            free = True
            try:
                with telling(f"checkpoint='{self.name}'", self.folder):
                    self.folder.mkdir(exist_ok=True)
                    if not self._is_new() and not (self.folder / ABOUT).exists():
                        raise self._foreign(f"it has no readable {ABOUT}")
                    file = open(self.folder / LOCK, "ab")  # noqa: SIM115
                with suppress(OSError):  # of a file system without locks
                    free = hold(file)
                if free and os.path.samestat(os.fstat(file.fileno()), os.stat(self.folder / LOCK)):
                    return file
                file.close()
            except FileNotFoundError:
                if not again:
                    raise
            if not free:
                break
        raise CheckpointError(
            f"checkpoint={self.name!r} is used by another fit that is running. Give each "
            "fit a path of its own, or wait until that one has ended."
        )

    def _is_new(self) -> bool:
        """Whether nothing was written: the folder was made for it, or a fit killed as it began."""
        return set(self.folder.iterdir()) <= {*self._begun(), self.folder / LOCK}

    def _known_seed(self, identity: str) -> int:
        try:
            about = json.loads((self.folder / ABOUT).read_bytes())
            version, seed = about["mercer checkpoint"], about["seed"]
            written, checksum = about["identity"], about.pop("checksum", None)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._foreign(f"it has no readable {ABOUT}") from error
        if version != 2:
            raise self._foreign("it was written by another version")
        if checksum != identity_of(about):
            raise self._foreign(f"{ABOUT} is damaged")
        if written != identity:
            raise self._foreign("it is of a fit with other data or parameters")
        return seed

    def _next(self, kind: str) -> Path:
        number = self._done[kind]
        self._done[kind] += 1
        return self.folder / f"{kind}-{number}{ENDING}"

    def _begun(self) -> Iterator[Path]:
        """Files of a fit that was killed while it began."""
        return self.folder.glob(f".{ABOUT}.*.part")

    def _write(self, file: Path, header: dict, arrays: list) -> None:
        with self._writing(file) as part:
            part.write(sealed(header, arrays))
        self._written = monotonic()

    @contextmanager
    def _writing(self, file: Path) -> Iterator[BinaryIO]:
        with telling(f"checkpoint='{self.name}'", self.folder), whole_file(file) as part:
            yield part
        if self._remote is not None:
            (self._remote / file.name).put(file)

    def _read(self, file: Path) -> tuple[dict, list]:
        try:
            return unsealed(file.read_bytes())
        except Exception as error:  # what a damaged file raises is not documented
            raise self._foreign(f"{file.name} is damaged") from error

    def check_rows(self, name: str, hashed: Any, written: Any) -> None:
        """Raise CheckpointError where rows have another digest or number than those before."""
        if hashed != written:
            raise self._foreign(f"the rows of {name} are not those that the fit was begun with")

    def _foreign(self, why: str) -> CheckpointError:
        return CheckpointError(
            f"checkpoint={self.name!r} cannot be used: {why}. Give another path, or delete "
            "it to start from the beginning."
        )


class Progress:
    """How far a long step has come; without a checkpoint it begins at the start and notes nothing.

    Parameters
    ----------
    checkpoint : Checkpoint or None
    kind : "sum" or "loop"
        A pass over rows, or what learns from row to row.

    Attributes
    ----------
    header : dict
        Of the state that was found; empty where there was none.
    arrays : list
        What belongs to it.
    tick : callable or None
        ``tick(done, total)`` shows how far the running pass has come.
    """

    tick: Callable[[int, int], None] | None = None

    def __init__(self, checkpoint: Checkpoint | None = None, kind: str = "loop"):
        self.checkpoint, self.header, self.arrays = checkpoint, dict[str, Any](), list[Any]()
        if checkpoint is not None:
            self.file = checkpoint._next(kind)
            if self.file.exists():
                self.header, self.arrays = checkpoint._read(self.file)

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return self.checkpoint is not None and monotonic() - self.checkpoint._written >= EVERY

    def write(self, header: dict, arrays: list) -> None:
        """Put a state in the place of the one before."""
        if self.checkpoint is not None:
            self.checkpoint._write(self.file, header, arrays)

    def keep(self) -> None:
        """Leave what was written in place after the fit: it was interrupted on the way."""
        if self.checkpoint is not None:
            self.checkpoint.unfinished = True


class RowDigest:
    """SHA-256 of rows that come in blocks, the same for any cut into blocks."""

    @cached_property
    def parts(self) -> list:
        return [hashlib.sha256() for _ in range(3)]

    def add(self, rows: Any) -> str:
        """Take in a block; the digest of all rows so far."""
        sparse = is_sparse(rows)
        numbers = (np.diff(rows.indptr), rows.indices, rows.data) if sparse else (to_numpy(rows),)
        for part, array in zip(self.parts, numbers, strict=False):
            # Types of indices depend on how many numbers a block has.
            array = array.astype(np.int64) if array.dtype.kind == "i" else array
            part.update(np.ascontiguousarray(array).data if array.size else b"")
        return "".join(part.hexdigest() for part in self.parts)


def sealed(header: dict, arrays: list) -> bytes:
    """Plain values and arrays as the bytes of an archive, in which no change goes unseen."""
    from safetensors.numpy import save

    flags = [array.flags for array in arrays]
    # Products of matrices round as their columns or rows lie in memory.
    columns = [i for i, f in enumerate(flags) if f.f_contiguous and not f.c_contiguous]
    text = json.dumps([header, columns])
    # Old releases of safetensors read no archive without a tensor.
    tensors = {f"{i}": np.asarray(array, order="C") for i, array in enumerate(arrays or [EMPTY])}
    return save(tensors, {"header": text, "checksum": identity_of(text, digest(tensors.values()))})


def unsealed(data: bytes) -> tuple[Any, list]:
    """Invert `sealed`; raises for other bytes."""
    from safetensors.numpy import load

    tensors, size = load(data), int.from_bytes(data[:8], "little")
    arrays = [np.require(tensors[str(i)], requirements="W") for i in range(len(tensors))]
    metadata = json.loads(data[8 : 8 + size])["__metadata__"]
    if metadata["checksum"] != identity_of(metadata["header"], digest(arrays)):
        raise ValueError("its checksum is another")
    header, columns = json.loads(metadata["header"])
    return header, [np.asfortranarray(A) if i in columns else A for i, A in enumerate(arrays)]


def digest(arrays: Iterable[np.ndarray]) -> str:
    """SHA-256 of types, shapes and numbers."""
    total = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(array)
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(array.data if array.size else b"")
    return total.hexdigest()


def identity_of(*things: Any) -> str:
    """A digest of parameters and data: of arrays their numbers, of recipes their parameters."""
    return hashlib.sha256(described(things).encode()).hexdigest()


def described(thing: Any, around: tuple = ()) -> str:
    """A text that is equal for equal things, in any process; of functions all but their globals.

    `around` has the ids of what the thing is part of.
    """
    thing = thing.item() if isinstance(thing, np.generic) else thing
    thing = getattr(thing, "py_func", thing)  # what numba compiles
    if id(thing) in around:
        return f"part {around.index(id(thing))}"
    kind, inner = type(thing), (*around, id(thing))
    parts: list = [getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)]
    if hasattr(thing, "get_params") and not isinstance(thing, type):
        parts = [thing.get_params(deep=False)]  # recipes are the user's as well as ours
    elif is_sparse(thing):
        A = thing.tocsr()
        parts = [A.shape, A.data, A.indices, A.indptr]
    elif hasattr(thing, "__array__") and not isinstance(thing, type):
        array = to_numpy(thing)
        if array.dtype.kind in "biufc":
            return digest([array])
        parts = [array.shape, array.tolist()]
    elif isinstance(thing, Mapping):
        parts = sorted([described(key, inner), value] for key, value in thing.items())
    elif isinstance(thing, set | frozenset):
        parts = sorted(described(part, inner) for part in thing)
    elif isinstance(thing, list | tuple):
        parts = list(thing)
    elif isinstance(thing, partial):
        parts = [thing.func, thing.args, thing.keywords]
    elif isinstance(thing, MethodType):
        parts = [thing.__func__, thing.__self__]
    elif isinstance(thing, CodeType):
        parts = [thing.co_code, thing.co_names, thing.co_consts]
    elif hasattr(thing, "__code__"):
        defaults = [getattr(thing, name, None) for name in ("__defaults__", "__kwdefaults__")]
        held = [cell.cell_contents for cell in getattr(thing, "__closure__", None) or ()]
        parts += [thing.__code__, defaults, held]
    elif hasattr(thing, "__dict__") and not isinstance(thing, type):
        parts += [getattr(thing, "__name__", None), vars(thing)]
    elif not (callable(thing) and parts[1]):
        return repr(thing)
    return f"{kind.__qualname__}({','.join(described(part, inner) for part in parts)})"
