"""Rows, scores, models and checkpoints at URLs; what fails leaves nothing there."""

import os
import socket
import subprocess
import sys
import time
import zipfile
from itertools import count

import numpy as np
import pytest
from contracts import generator
from numpy.testing import assert_allclose, assert_array_equal

from mercer import KernelPCA, StreamingKernelPCA, load
from mercer._remote import as_path
from mercer.bases import Landmarks
from mercer.exceptions import CheckpointError, ModelFileError
from mercer.files import open_sink, open_source
from mercer.fitting.checkpoint import Checkpoint

fsspec = pytest.importorskip("fsspec")
pa = pytest.importorskip("pyarrow")
parquet, feather = (pytest.importorskip(f"pyarrow.{name}") for name in ("parquet", "feather"))
NAMES = list("abcd")


@pytest.fixture(scope="module")
def s3():
    """A local S3: the server of moto."""
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    pytest.importorskip("moto.server", reason="moto's server is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(command, **quiet)
    settings = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "test"}
    settings |= {"AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        for _ in range(300):
            with socket.socket() as waiting:
                if not waiting.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.1)
        yield fsspec.filesystem("s3")
        server.terminate()
        server.wait()


@pytest.fixture(params=["memory", "file", "s3"])
def store(request, tmp_path):
    """A place at a URL, and its file system."""
    if request.param == "s3":
        fs = request.getfixturevalue("s3")
        bucket = f"bucket-{time.time_ns()}"
        fs.mkdir(bucket)
        return f"s3://{bucket}/folder", fs
    if request.param == "file":
        return f"file://{tmp_path}/folder", fsspec.filesystem("file", auto_mkdir=True)
    return f"memory://{time.time_ns()}/folder", fsspec.filesystem("memory")


def rows(seed=0, n=700):
    return generator(seed, 83).standard_normal((n, 4))


def model(**params):
    basis = Landmarks(points=rows(1, 20))
    return KernelPCA(3, kernel="rbf", gamma=0.2, basis=basis, memory="1MB", **params)


def written(X, kind, folder, store):
    """The rows as a file of some kind, or a folder of some, at a URL."""
    url, fs = store
    local, table = folder / f"rows.{kind}", pa.table(dict(zip(NAMES, X.T, strict=True)))
    if kind == "npy":
        np.save(local, X)
    elif kind == "npz":
        np.savez(local, X=X)
    elif kind.startswith("csv"):
        np.savetxt(local, X, delimiter=",", header="a,b,c,d", comments="", fmt="%.17g")
    elif kind == "feather":
        feather.write_feather(table, local, chunksize=90)
    elif kind == "parquet":
        parquet.write_table(table, local, row_group_size=123)
    else:
        for i, start in enumerate(range(0, len(X), 200)):
            part = folder / f"{i}.parquet"
            parquet.write_table(table.slice(start, 200), part)
            fs.put(str(part), f"{url}/rows/part-{i}.parquet")
        return f"{url}/rows"
    fs.put(str(local), f"{url}/rows.{kind}")
    return f"{url}/rows.{kind}"


@pytest.mark.parametrize("kind", ["npy", "npz", "csv", "csv.gz", "feather", "parquet", "folder"])
def test_rows_at_a_url_are_those_of_a_file(kind, store, tmp_path):
    X = rows()
    url = written(X, kind, tmp_path, store)
    found = model().fit(url)
    expected = model().fit(lambda: iter([X])).eigenvalues_
    assert_allclose(found.eigenvalues_, expected, rtol=1e-12)
    assert_array_equal(open_source(url).read(), X)


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".csv"])
def test_scores_are_written_to_a_url_or_not_at_all(suffix, store, tmp_path):
    X, (url, fs) = rows(), store
    found, source = model().fit(X), written(rows(), "npy", tmp_path, store)
    out = f"{url}/scores{suffix}"
    assert found.transform(source, out=out) == out
    assert_array_equal(open_source(out).read(), found.transform(X))
    with pytest.raises(ValueError, match="is the file that is read"):
        found.transform(source, out=source)
    before = sorted(fs.find(url, detail=False))

    def broken():
        yield X[:300]
        yield np.full((2, 4), np.nan)

    for target in (out, f"{url}/more/scores{suffix}"):
        with pytest.raises(ValueError, match="NaN"):
            found.transform(broken, out=target)
        with pytest.raises(KeyboardInterrupt), open_sink(target, 4) as sink:
            sink.write(X)
            raise KeyboardInterrupt
    fs.invalidate_cache()
    assert sorted(fs.find(url, detail=False)) == before
    assert_array_equal(open_source(out).read(), found.transform(X))


def test_models_are_saved_to_a_url(store):
    X, (url, fs) = rows(), store
    found, path = model().fit(X), f"{url}/model.mercer"
    found.save(path)
    assert_array_equal(load(path).transform(X), found.transform(X))
    with pytest.raises(FileExistsError, match=r"exists\. Choose another name"):
        found.save(path, overwrite=False)
    with fs.open(path, "rb") as file:
        content = bytearray(file.read())
    content[-3] ^= 1
    with fs.open(path, "wb") as file:
        file.write(bytes(content))
    with pytest.raises(ModelFileError, match=r"model.mercer is damaged"):
        load(path)


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("learner", [model, lambda **p: StreamingKernelPCA(3, budget=30, **p)])
def test_fits_go_on_from_a_checkpoint_at_a_url(learner, store, tmp_path, monkeypatch):
    X, (url, fs) = rows(), store
    source, plain, left = written(X, "parquet", tmp_path, store), Checkpoint._write, [0]

    def write(self, *args):
        plain(self, *args)
        left[0] -= 1
        if not left[0]:
            raise Killed

    monkeypatch.setattr("mercer.fitting.checkpoint.monotonic", count(step=3600).__next__)
    monkeypatch.setattr(Checkpoint, "_write", write)
    settings = {"checkpoint": f"{url}/run.ckpt", "random_state": 0}
    whole, kills = learner(**settings).fit(source), 0
    for _ in range(50):
        left[0] = 2 + 6 * kills
        try:
            resumed = learner(**settings).fit(source)
            break
        except Killed:
            kills += 1
            with pytest.raises(CheckpointError, match=r"run.ckpt.*other data or parameters"):
                learner(**settings | {"center": False}).fit(source)
    assert kills
    assert_array_equal(resumed.eigenvalues_, whole.eigenvalues_)
    fs.invalidate_cache()
    assert not [file for file in fs.find(url) if "run.ckpt" in file]


def test_what_cannot_be_opened_is_said():
    with pytest.raises(ValueError, match=r"nowhere://.*cannot be opened.*s3://.*https://"):
        open_source("nowhere://bucket/rows.parquet")
    with pytest.raises(FileNotFoundError, match=r"no file or folder memory://none/rows.csv"):
        open_source("memory://none/rows.csv")


def test_a_file_system_that_is_only_read(tmp_path):
    found, out = model().fit(rows()), f"zip://scores.csv::file://{tmp_path}/rows.zip"
    with zipfile.ZipFile(tmp_path / "rows.zip", "w") as archive:
        archive.writestr("rows.csv", "a,b,c,d\n1,2,3,4\n5,6,7,9\n")
    assert found.transform(out.replace("scores", "rows")).shape == (2, 3)
    with pytest.raises(OSError, match=r"out='zip://.*cannot be written"):
        found.transform(rows(), out=out)


def test_without_fsspec(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "fsspec"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"needs fsspec.*pip install fsspec.*extra 'cloud'"):
        open_source("memory://bucket/rows.csv")


def test_nothing_is_imported_for_local_paths(tmp_path):
    np.save(tmp_path / "x.npy", rows())
    code = f"""
import sys
from mercer import KernelPCA
from mercer.bases import Landmarks
KernelPCA(2, basis=Landmarks(9)).fit({str(tmp_path / "x.npy")!r})
assert "fsspec" not in sys.modules
    """
    assert not subprocess.run([sys.executable, "-c", code], env=os.environ).returncode
    assert as_path(str(tmp_path)) == tmp_path
