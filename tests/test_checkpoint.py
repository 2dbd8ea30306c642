"""A fit that is killed goes on from its checkpoint, and ends with the same numbers."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from mercer import KernelPCA
from mercer.bases import FourierGrid, Landmarks
from mercer.compute.tiles import TiledEngine
from mercer.exceptions import CheckpointError

X = np.random.default_rng(3).standard_normal((900, 5))
MEMORY = "50MB"


def exact(path=None, **settings):
    given = {"kernel": "rbf", "gamma": 0.2, "basis": "points", "eigen_solver": "krylov"}
    fixed = {"random_state": 0, "n_jobs": 1, "memory": MEMORY, "checkpoint": path}
    return KernelPCA(4, **given | fixed | settings)


def assert_same(a, b):
    """Bitwise."""
    assert_array_equal(a.eigenvalues_, b.eigenvalues_)
    assert_array_equal(a.expansion_.frame, b.expansion_.frame)
    assert_array_equal(a.expansion_.metric, b.expansion_.metric)
    assert a.certificate_.captured_variance == b.certificate_.captured_variance


class Killed(BaseException):
    """Stands for the end of the process: nothing of ours catches it."""


def killed_after(passes):
    def callback(state):
        if state.n_passes == passes:
            raise Killed

    return callback


def counted(monkeypatch):
    """Counts the products with square kernel matrices."""
    found, plain = [], TiledEngine.pair_rows

    def pair_rows(self, pairs, W, *rest):
        if pairs.shape[0] == pairs.shape[1] == len(X):
            found.append(W.shape)
        return plain(self, pairs, W, *rest)

    monkeypatch.setattr(TiledEngine, "pair_rows", pair_rows)
    return found


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, np.float32])
def test_krylov_goes_on_after_any_pass(kind, tmp_path, monkeypatch):
    rows = kind(X)
    products = counted(monkeypatch)
    whole = exact(callback=lambda state: None).fit(rows)
    total = len(products)
    assert total >= 4
    for passes in range(1, total):
        folder = tmp_path / f"{passes}.ckpt"
        with pytest.raises(Killed):
            exact(folder, callback=killed_after(passes)).fit(rows)
        products.clear()
        resumed = exact(folder, callback=lambda state: None).fit(rows)
        assert len(products) <= total - passes, "passes were made again"
        assert_same(resumed, whole)
        assert not folder.exists()


def test_a_fit_without_a_seed_keeps_its_own(tmp_path):
    """Else the passes would be those of another start."""
    with pytest.raises(Killed):
        exact(tmp_path / "c", random_state=None, callback=killed_after(3)).fit(X)
    before = sorted((tmp_path / "c").glob("product-*"))
    found = {file.name: file.read_bytes() for file in before}
    with pytest.raises(Killed):
        exact(tmp_path / "c", random_state=None, callback=killed_after(4)).fit(X)
    assert len(list((tmp_path / "c").glob("product-*"))) > len(before)
    assert all((tmp_path / "c" / name).read_bytes() == content for name, content in found.items())


def blocks_of(rows, fail_at=None):
    """A source whose blocks end before their time, in the pass and at the block asked for."""
    passes = []

    def source():
        passes.append(0)
        for i, block in enumerate(np.array_split(rows, 12)):
            if fail_at == (len(passes), i):
                raise Killed
            yield block

    return source


RECIPES = {
    "given landmarks": lambda: Landmarks(points=X[:40]),
    "chosen landmarks": lambda: Landmarks(40),
    "features": lambda: "features",
    "grid": lambda: FourierGrid(tol=0.01),
}


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("as_kind", [np.asarray, sparse.csr_matrix])
def test_passes_over_blocks_go_on(name, as_kind, tmp_path, monkeypatch):
    if name == "grid" and as_kind is sparse.csr_matrix:
        pytest.skip("a grid takes dense rows")
    monkeypatch.setattr("mercer.checkpoint.EVERY", 0.0)
    monkeypatch.setattr("mercer.rows.blocks.BLOCK_ROWS", 75)
    rows = X[:, :2] if name == "grid" else X
    recipe = Landmarks(points=X[:40]) if name == "given landmarks" else RECIPES[name]()
    settings = {"basis": recipe, "eigen_solver": "auto"}

    def source(fail_at=None):
        inner = blocks_of(rows, fail_at)
        return lambda: map(as_kind, inner())

    whole = exact(**settings).fit(source())
    # The first opening is the look at the first rows, then come the passes.
    stops = 0
    for opening in range(1, 6):
        folder = tmp_path / f"{opening}.ckpt"
        try:
            exact(folder, **settings).fit(source((opening, 7)))
        except Killed:
            stops += 1
            resumed = exact(folder, **settings).fit(source())
            assert_same(resumed, whole)
        assert not folder.exists()
    assert stops >= 1


def test_rows_that_were_summed_are_not_summed_again(tmp_path, monkeypatch):
    from mercer.rows.base import MomentsOf

    monkeypatch.setattr("mercer.checkpoint.EVERY", 0.0)
    monkeypatch.setattr("mercer.rows.blocks.BLOCK_ROWS", 75)
    np.save(tmp_path / "x.npy", X)
    model = exact(tmp_path / "c", basis=Landmarks(points=X[:40]), eigen_solver="auto")
    seen, plain = [], MomentsOf.__call__

    def call(self, rows, first):
        if len(seen) == 5:
            seen.append(None)
            raise Killed
        seen.append(first)
        return plain(self, rows, first)

    monkeypatch.setattr(MomentsOf, "__call__", call)
    source = np.load(tmp_path / "x.npy", mmap_mode="r")
    with pytest.raises(Killed):
        model.fit(source)
    model.fit(source)
    assert [first for first in seen if first is not None] == list(range(0, 900, 75))


def test_other_fits_are_refused(tmp_path):
    folder = tmp_path / "c"
    with pytest.raises(Killed):
        exact(folder, callback=killed_after(2)).fit(X)
    changed = X.copy()
    changed[0, 0] += 1e-12
    for model, rows in [
        (exact(folder), changed),
        (exact(folder), X[:-1]),
        (exact(folder), X.astype(np.float32)),
        (exact(folder, gamma=0.3), X),
        (exact(folder, center=False), X),
        (exact(folder, random_state=1), X),
    ]:
        with pytest.raises(CheckpointError, match="other data or parameters"):
            model.fit(rows)
    exact(folder, verbose=0, memory="80MB", n_jobs=2).fit(X)  # these do not matter
    assert not folder.exists()


def test_damaged_and_foreign_folders_are_refused(tmp_path):
    folder = tmp_path / "c"
    with pytest.raises(Killed):
        exact(folder, callback=killed_after(2)).fit(X)
    file = folder / "product-0.safetensors"
    content = bytearray(file.read_bytes())
    content[-9] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"product-0\.safetensors is damaged"):
        exact(folder).fit(X)
    (folder / "about.json").write_text("[]")
    with pytest.raises(CheckpointError, match=r"no readable about\.json"):
        exact(folder).fit(X)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CheckpointError, match="it is a file"):
        exact(tmp_path / "file").fit(X)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.txt").write_text("mine")
    with pytest.raises(CheckpointError):
        exact(tmp_path / "folder").fit(X)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        exact(tmp_path / "none" / "c").fit(X)
    with pytest.raises(ValueError, match="can be read only once"):
        exact(tmp_path / "once", basis="features", eigen_solver="auto").fit(iter([X]))
    assert (tmp_path / "folder" / "mine.txt").read_text() == "mine"


def test_only_what_is_ours_is_removed(tmp_path):
    folder = tmp_path / "c"
    with pytest.raises(Killed):
        exact(folder, callback=killed_after(2)).fit(X)
    (folder / "notes.txt").write_text("mine")
    model = exact(folder).fit(X)
    assert [file.name for file in folder.iterdir()] == ["notes.txt"]
    model.save(tmp_path / "m.mercer")  # a path of this machine is no part of a model


PROGRAM = """
import sys
import numpy as np
from mercer import KernelPCA
X = np.random.default_rng(3).standard_normal((2500, 5))
model = KernelPCA(6, kernel="rbf", gamma=0.2, basis="points", eigen_solver="krylov", random_state=0,
                  n_jobs=1, memory="20MB", checkpoint=sys.argv[1] or None).fit(X)
np.save(sys.argv[2], np.vstack([model.eigenvalues_, model.expansion_.frame[:, 1:]]))
"""


def run_killed(folder, out, after):
    """Start the program and kill it `after(folder)`; whether it had not finished before."""
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder), str(out)])
    try:
        after(folder, child)
        child.send_signal(signal.SIGKILL)
    finally:
        child.wait(60)
    return child.returncode == -signal.SIGKILL


def finish(folder, out):
    subprocess.run([sys.executable, "-c", PROGRAM, str(folder), str(out)], check=True, timeout=120)
    return np.load(out)


def until_second_product(folder, child):
    while child.poll() is None and not (folder / "product-1.safetensors").exists():
        time.sleep(0.002)


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_process_that_is_killed(tmp_path):
    folder = tmp_path / "run.ckpt"
    whole = finish("", tmp_path / "whole.npy")
    assert run_killed(folder, tmp_path / "a.npy", until_second_product)
    assert folder.is_dir()
    assert_array_equal(finish(folder, tmp_path / "a.npy"), whole)
    assert not folder.exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_twenty_random_moments(tmp_path):
    start = time.monotonic()
    whole = finish("", tmp_path / "whole.npy")
    seconds = time.monotonic() - start
    rng, kills = np.random.default_rng(), 0
    while kills < 20:
        folder = tmp_path / f"{kills}.ckpt"
        wait = rng.uniform(0.2, 1.0) * seconds
        kills += run_killed(folder, tmp_path / "a.npy", lambda *_, wait=wait: time.sleep(wait))
        assert_array_equal(finish(folder, tmp_path / "a.npy"), whole)
        assert not folder.exists()
