"""Paths that are URLs, by fsspec: ``s3://bucket/rows.parquet``, ``gs://``, ``https://`` and others.

All of mercer takes its paths from `as_path`. Parquet is read where it is; what is to be mapped, or
read in parts, is copied to a temporary file first.
"""

import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path, PurePosixPath
from secrets import token_hex
from types import SimpleNamespace
from typing import Any

from ._packages import needed

# A protocol has two letters or more: one is a drive of Windows.
URL = re.compile(r"[A-Za-z][\w+.-]+(::|://)")
# Stores where what is written in a transaction appears at its end, or not at all. A file of any
# other is written under another name, and renamed.
TRANSACTIONAL = {"s3", "s3a", "gs", "gcs", "memory"}
# Bytes copied at a time.
CHUNK = 2**22


class RemotePath:
    """A file or folder of any file system, with as much of `pathlib.Path` as mercer asks for.

    Parameters
    ----------
    url : str
    """

    def __init__(self, url: str):
        self.url = url

    @cached_property
    def _place(self) -> tuple[Any, str]:
        """The file system, of its own since transactions are of a whole one, and the key in it."""
        core = needed("fsspec.core", "cloud", self.url)
        try:
            return core.url_to_fs(self.url, skip_instance_cache=True)
        except ImportError as error:  # that of fsspec names the package
            raise ImportError(f"{self.url} cannot be opened: {error}.") from error
        except ValueError as error:
            raise ValueError(
                f"{self.url} cannot be opened: {error}. Give a local path, or a URL of a file "
                "system that fsspec knows, such as s3://, gs://, abfs:// or https://."
            ) from error

    def __str__(self):
        return self.url

    def __repr__(self):
        return f"RemotePath({self.url!r})"

    def __lt__(self, other):
        return self.url < other.url

    def __truediv__(self, name: str) -> "RemotePath":
        return self._beside(f"{self._place[1].rstrip('/')}/{name}")

    def _beside(self, key: str) -> "RemotePath":
        """Another file of the same file system, which is opened once."""
        fs = self._place[0]
        other = RemotePath(fs.unstrip_protocol(key))
        vars(other)["_place"] = fs, key
        return other

    @property
    def _pure(self) -> PurePosixPath:
        return PurePosixPath(self.url.split("::")[0].split("?")[0].split("://")[-1].strip("/"))

    @property
    def name(self) -> str:
        return self._pure.name

    @property
    def suffix(self) -> str:
        return self._pure.suffix

    def relative_to(self, folder: "RemotePath") -> PurePosixPath:
        return self._pure.relative_to(folder._pure)

    def _kind(self) -> str | None:
        """ "file" or "directory"; None where there is nothing."""
        fs, key = self._place
        try:
            return fs.info(key)["type"]
        except FileNotFoundError:
            return None
        except Exception as error:  # those of the libraries of stores are their own
            raise OSError(
                f"{self.url} cannot be read: {error}. Check the address, and that this machine is "
                "allowed to read it."
            ) from error

    def exists(self) -> bool:
        return self._kind() is not None

    def is_dir(self) -> bool:
        return self._kind() == "directory"

    def is_file(self) -> bool:
        return self._kind() == "file"

    def rglob(self, pattern: str) -> Iterator["RemotePath"]:
        """Files below whose names match a pattern."""
        fs, key = self._place
        for file in fs.find(key):
            if PurePosixPath(file).match(pattern):
                yield self._beside(file)

    def open(self, mode: str = "rb") -> Any:
        """The file to read, in parts as they are asked for."""
        fs, key = self._place
        return fs.open(key, mode)

    def stat(self) -> Any:
        """Its size, and what tells a file from one that was written later in its place."""
        fs, key = self._place
        about, mark = fs.info(key), fs.ukey(key)
        # Only a digest of the content is known not to stay as it was.
        tag = about.get("ETag") or about.get("etag")
        times = {"st_mtime_ns": mark, "st_ctime_ns": tag, "st_ctime": 0.0 if tag else float("inf")}
        return SimpleNamespace(st_size=about["size"], st_ino=self.url, **times)

    def fetch(self, place: Path) -> None:
        """Copy the file to a place on this machine."""
        fs, key = self._place
        size, room = self.stat().st_size, shutil.disk_usage(place.parent).free
        if size and size > room:
            raise OSError(
                f"{self.url} has {size:,} bytes, and is copied to {place.parent} to be read, where "
                f"{room:,} are free. Set TMPDIR to a larger disk, or save it as Parquet, which is "
                "read where it is."
            )
        fs.get_file(key, str(place))

    def put(self, place: Path) -> None:
        """Copy a file of this machine here, whole or not at all."""
        with self.writing() as target, place.open("rb") as file:
            shutil.copyfileobj(file, target, CHUNK)

    def unlink(self) -> None:
        """Remove the file, if there is one."""
        fs, key = self._place
        with suppress(FileNotFoundError):
            fs.rm_file(key)

    @contextmanager
    def writing(self, parameter: str = "path") -> Iterator[Any]:
        """A file to write from its start to its end, which is there at the end or not at all."""
        fs, key = self._place
        at_once = fs.protocol in TRANSACTIONAL or not TRANSACTIONAL.isdisjoint(fs.protocol)
        part = key if at_once else f"{key}.{token_hex(4)}.part"
        try:
            with fs.transaction:
                try:
                    if not at_once:  # others have folders
                        fs.makedirs(fs._parent(part), exist_ok=True)
                    file = fs.open(part, "wb")
                except Exception as error:  # those of the libraries of stores are their own
                    said = str(error) or "files of this kind are only read"
                    raise OSError(
                        f"{parameter}={self.url!r} cannot be written: {said}. Give a place that "
                        "you may write to."
                    ) from error
                with file:
                    yield file
            if not at_once:
                fs.mv(part, key)
        except BaseException:
            if not at_once:
                with suppress(Exception):
                    fs.rm_file(part)
            raise


def as_path(path: Any) -> Any:
    """A path of this machine, or that of a URL."""
    if isinstance(path, RemotePath):
        return path
    return RemotePath(path) if isinstance(path, str) and URL.match(path) else Path(path)


def local_copy(path: Any) -> Path:
    """A path of this machine as it is; of a URL a copy, which is removed with the path."""
    if isinstance(path, Path):
        return path
    copy = temporary_folder(path) / path.name
    path.fetch(copy)
    return copy


def temporary_folder(owner: Any) -> Path:
    """A folder that is removed with its owner, or at the end of the program."""
    folder = tempfile.mkdtemp(prefix="mercer-")
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
