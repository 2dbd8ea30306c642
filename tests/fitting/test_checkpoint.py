"""A fit that is killed goes on from its checkpoint, and ends with the same numbers."""

import errno
import os
import signal
import time
import warnings
from contextlib import suppress
from functools import cache
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from mercer import HebbianKernelPCA, KernelPCA, StreamingKernelPCA
from mercer.bases import FourierGrid, Landmarks, RandomFeatures
from mercer.compute.engine import TiledEngine
from mercer.exceptions import CheckpointError
from mercer.fitting.checkpoint import Checkpoint
from mercer.selectors import Uniform


def wide_rows(n, seed):
    """Rows of five dimensions among 64 columns: few of them fill a block of a small budget."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 5)) @ np.linalg.qr(rng.standard_normal((64, 5)))[0].T


X = wide_rows(900, 3)
# The second one has blocks of 122 rows.
MEMORY, LITTLE = "50MB", "1MB"


@pytest.fixture
def hours_pass(monkeypatch):
    """States are written every minute: here between any two looks at the clock."""
    monkeypatch.setattr("mercer.fitting.checkpoint.monotonic", count(step=3600).__next__)


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
    "features": lambda: RandomFeatures(60),
    "grid": lambda: FourierGrid(tol=0.01),
}


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("as_kind", [np.asarray, sparse.csr_matrix])
def test_passes_over_blocks_go_on(name, as_kind, tmp_path, hours_pass):
    if name == "grid" and as_kind is sparse.csr_matrix:
        pytest.skip("a grid takes dense rows")
    rows = X[:, :2] if name == "grid" else X
    memory = MEMORY if name == "grid" else LITTLE
    settings = {"basis": RECIPES[name](), "eigen_solver": "auto", "memory": memory}

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


def test_rows_that_were_summed_are_not_summed_again(tmp_path, monkeypatch, hours_pass):
    from mercer.fitting.moments import MomentsOf

    np.save(tmp_path / "x.npy", X)
    settings = {"basis": Landmarks(points=X[:40]), "eigen_solver": "auto", "memory": LITTLE}
    model = exact(tmp_path / "c", **settings)
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
    firsts = [first for first in seen if first is not None]
    assert len(firsts) > 5 and np.all(np.diff(firsts) > 0)


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


@pytest.mark.parametrize("removed", range(6))
def test_killed_while_it_begins_or_is_removed(removed, tmp_path, monkeypatch):
    folder, plain, left = tmp_path / "c", Path.unlink, [removed]
    folder.mkdir()
    (folder / ".about.json.0123abcd.part").write_bytes(b"{")
    whole = exact().fit(X)

    def unlink(self, **options):
        if self.parent == folder and self.exists():
            if not left[0]:
                raise Killed
            left[0] -= 1
        plain(self, **options)

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(Path, "unlink", unlink)
        exact(folder).fit(X)
    assert_same(exact(folder).fit(X), whole)
    assert not folder.exists()


def test_two_fits_do_not_share_a_checkpoint(tmp_path):
    """The second one is refused while the first one runs, and also where it has other rows."""
    folder, refused = tmp_path / "c", []

    def meanwhile(state):
        for rows in (X, X[:500]):
            with pytest.raises(CheckpointError, match=r"another fit that is running. Give each"):
                exact(folder).fit(rows)
            refused.append(rows)

    found = exact(folder, callback=meanwhile).fit(X)
    assert refused and not folder.exists()
    assert_same(found, exact().fit(X))


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_processes_that_start_together(tmp_path):
    """One of them fits, others are refused in a sentence; killed ones hold nothing."""
    for number in range(3):
        folder = tmp_path / f"{number}.ckpt"
        jobs = [start("krylov", folder, tmp_path / f"{i}.npy", tmp_path, 3) for i in range(3)]
        for job in jobs:
            job.join(120)
        codes = sorted(job.exitcode for job in jobs)
        assert 0 in codes and set(codes) <= {0, 3}, codes
        assert not folder.exists()


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def missing(file):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("mercer.fitting.checkpoint.hold", missing)
    exact(tmp_path / "c").fit(X)
    assert list(tmp_path.iterdir()) == []


def test_only_what_is_ours_is_removed(tmp_path):
    folder = tmp_path / "c"
    with pytest.raises(Killed):
        exact(folder, callback=killed_after(2)).fit(X)
    (folder / "notes.txt").write_text("mine")
    model = exact(folder).fit(X)
    assert [file.name for file in folder.iterdir()] == ["notes.txt"]
    model.save(tmp_path / "m.mercer")  # a path of this machine is no part of a model


EXACT = {"basis": "points", "eigen_solver": "krylov"}
SMALL = {"basis": Landmarks(60, Uniform()), "memory": LITTLE}
GROWING = {"basis": Landmarks(error=0.3, selector=Uniform()), "memory": LITTLE}
KINDS = {
    "krylov": (KernelPCA, EXACT, "array"),
    "gram-power": (KernelPCA, {"basis": "points", "eigen_solver": "gram-power"}, "array"),
    "landmarks": (KernelPCA, SMALL, "array"),
    "features": (KernelPCA, {"basis": RandomFeatures(60), "memory": LITTLE}, "array"),
    "file": (KernelPCA, SMALL, "file"),
    "cluster": (KernelPCA, {"basis": Landmarks(60, Uniform())}, "dask"),
    "exact cluster": (KernelPCA, EXACT, "dask"),
    "sparse cluster": (KernelPCA, {"basis": Landmarks(60, Uniform())}, "sparse dask"),
    "exact sparse cluster": (KernelPCA, EXACT, "sparse dask"),
    "small chunks": (KernelPCA, {"basis": Landmarks(60, Uniform())}, "small dask"),
    "growing landmarks": (KernelPCA, GROWING, "file"),
    "columns of a file": (
        KernelPCA,
        {"basis": "columns", "kernel": "linear", "memory": LITTLE},
        "file",
    ),
    "grid of a file": (KernelPCA, {"basis": "fourier", "tol": 1e-3}, "narrow file"),
    "single precision": (KernelPCA, EXACT, "single"),
    "hebbian": (HebbianKernelPCA, {"n_passes": 4}, "array"),
    "hebbian smd": (HebbianKernelPCA, {"n_passes": 4, "gain": "smd"}, "array"),
    "stream": (StreamingKernelPCA, {"budget": 60, "forgetting": 0.999}, "array"),
    "stream of batches": (StreamingKernelPCA, {"basis": "features", "budget": 60}, "batches"),
    "stream of a cluster": (StreamingKernelPCA, {"budget": 60}, "dask"),
    "stream of a file": (StreamingKernelPCA, {"budget": 60, "memory": LITTLE}, "file"),
}


def make(kind, folder=None, n_jobs=1, **settings):
    cls, given, _ = KINDS[kind]
    fixed = {"kernel": "rbf", "gamma": 0.2, "random_state": 0, "n_jobs": n_jobs, "memory": "40MB"}
    return cls(4, **fixed | given | settings, checkpoint=folder)


def rows_for(kind, n, folder):
    """The rows as the kind takes them, the same in every process."""
    Y = wide_rows(n, 5)
    where = KINDS[kind][2]
    Y = Y[:, :2] if where.startswith("narrow") else Y
    if where.endswith("file"):
        path = folder / f"{where}-{n}.npy"
        if not path.exists():
            np.save(path, Y)
        return path
    if where == "single":
        return Y.astype(np.float32)
    if where == "batches":
        return np.array_split(Y, 9)
    if where.endswith("dask"):
        da = pytest.importorskip("dask.array")
        X = da.from_array(Y, chunks=(1 if where.startswith("small") else -(-n // 40), -1))
        whole = sparse.csr_matrix((0, 0))
        return X.map_blocks(sparse.csr_matrix, meta=whole) if where.startswith("sparse") else X
    return Y


def result(model):
    tables = [model.eigenvalues_, model.expansion_.frame, model.expansion_.metric]
    return np.concatenate([np.ravel(np.asarray(table)) for table in tables])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_goes_on_after_any_state(kind, tmp_path, monkeypatch, hours_pass):
    """Killed after each state that is written, one after the other, in one fit."""
    X, n_jobs = rows_for(kind, 600, tmp_path), 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged, and so on
        whole = result(make(kind, tmp_path / "whole", n_jobs).fit(X))
        plain, most = Checkpoint._write, [0]

        def write(self, *args):
            plain(self, *args)
            most[0] -= 1
            if most[0] == 0:
                raise Killed

        monkeypatch.setattr(Checkpoint, "_write", write)
        folder, kills = tmp_path / "run.ckpt", 0
        while kills < 500:
            most[0] = 1 + kills % 3
            try:
                model = make(kind, folder, n_jobs).fit(X)
                break
            except Killed:
                kills += 1
        assert kills >= 2, "there were states to be killed after"
        assert_array_equal(result(model), whole)
        assert not folder.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_refuses_other_rows_and_parameters(kind, tmp_path, monkeypatch, hours_pass):
    X, plain = rows_for(kind, 900, tmp_path), Checkpoint._write

    def write(self, *args):
        plain(self, *args)
        raise Killed

    with warnings.catch_warnings(), monkeypatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setattr(Checkpoint, "_write", write)
        with pytest.raises(Killed):
            make(kind, tmp_path / "c").fit(X)
        for model, rows in [
            (make(kind, tmp_path / "c", gamma=0.3), X),
            (make(kind, tmp_path / "c", center=False), X),
            (make(kind, tmp_path / "c"), rows_for(kind, 890, tmp_path)),
        ]:
            with pytest.raises(CheckpointError, match="other data or parameters"):
                model.fit(rows)


def test_iterators_of_batches_have_no_checkpoint(tmp_path):
    model = StreamingKernelPCA(2, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="an iterator can be read only once"):
        model.fit(iter([X]))


def fit_in_child(kind, folder, out, files, refused=1):
    """What a process does that may be killed; its exit code is `refused` for a CheckpointError."""
    import mercer.fitting.checkpoint

    # Time goes by six thousand times as fast, so that states are written every 10 milliseconds.
    mercer.fitting.checkpoint.monotonic = lambda: 6000 * time.monotonic()
    warnings.simplefilter("ignore")
    files = Path(files)
    try:
        model = make(kind, folder).fit(rows_for(kind, 4000, files))
    except CheckpointError:
        raise SystemExit(refused) from None
    np.save(out, result(model))


@cache
def children():
    """Processes that begin as copies of one which has imported all that a fit needs."""
    from multiprocessing import forkserver

    context = get_context("forkserver")
    context.set_forkserver_preload(["test_checkpoint"])
    # Until Python 3.13 the server itself does not get the path of its parent.
    tests = Path(__file__).parent
    here = os.pathsep.join([str(tests), str(tests.parent), os.environ.get("PYTHONPATH", "")])
    with patch.dict(os.environ, PYTHONPATH=here):
        forkserver.ensure_running()
    return context


def start(kind, folder, out, files, refused=1):
    child = children().Process(target=fit_in_child, args=(kind, folder, out, files, refused))
    child.start()
    return child


def finish(kind, folder, out, files):
    child = start(kind, folder, out, files)
    child.join(300)
    assert child.exitcode == 0
    return np.load(out)


def kill_at_random(kind, kills, tmp_path):
    """Kills fits at random moments once they have begun; every one ends with the same numbers."""
    whole = finish(kind, tmp_path / "whole.ckpt", tmp_path / "whole.npy", tmp_path)
    rng, done, seconds = np.random.default_rng(), 0, 0.5
    while done < kills:
        folder = tmp_path / f"{done}.ckpt"
        child = start(kind, folder, tmp_path / "a.npy", tmp_path)
        while child.is_alive() and not (folder / "about.json").exists():
            time.sleep(0.002)
        child.join(rng.uniform(0, seconds))
        child.kill()
        child.join(60)
        killed = child.exitcode == -signal.SIGKILL
        # Fits that had ended before tell how long one takes.
        seconds = seconds * (1.2 if killed else 0.8)
        done += killed
        assert_array_equal(finish(kind, folder, tmp_path / "a.npy", tmp_path), whole)
        assert not folder.exists()


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_process_that_is_killed(tmp_path):
    kill_at_random("krylov", 2, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
@pytest.mark.parametrize("kind", KINDS)
def test_twenty_random_moments(kind, tmp_path):
    kill_at_random(kind, 20, tmp_path)


@pytest.mark.parametrize("passes", [1, 3, 5])
def test_a_resumed_fit_states_the_same_certificate(passes, tmp_path):
    """The sums of squares that prove components are kept with the products."""
    X = np.random.default_rng(40).standard_normal((700, 5))
    settings = {"kernel": "rbf", "gamma": 0.1, "eigen_solver": "krylov", "random_state": 0}
    model = KernelPCA(5, n_jobs=1, **settings)
    whole = model.fit(X).certificate_

    def kill(state):
        if state.n_passes >= passes:
            raise KeyboardInterrupt

    model.set_params(checkpoint=tmp_path / "kept", callback=kill)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    resumed = model.set_params(callback=None).fit(X).certificate_
    assert resumed.n_proven == whole.n_proven > 0
    np.testing.assert_array_equal(resumed.eigenvalue_upper, whole.eigenvalue_upper)
    np.testing.assert_array_equal(resumed.score_error, whole.score_error)
