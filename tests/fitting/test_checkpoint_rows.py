"""No fit goes on from a checkpoint with other rows, whatever holds them and wherever it stopped."""

import os
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from types import FunctionType

import numpy as np
import pytest
from contracts import generator
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone

from mercer import HebbianKernelPCA, KernelPCA, StreamingKernelPCA
from mercer.bases import Landmarks, RandomFeatures
from mercer.exceptions import CheckpointError
from mercer.files import RowSource
from mercer.fitting.checkpoint import Checkpoint, identity_of
from mercer.kernels import RBF as RBFKernel
from mercer.rows.blocks import SETTLED
from mercer.selectors import Uniform

N, D = 700, 64


def dask_rows(X):
    return pytest.importorskip("dask.array").from_array(X, chunks=(23, -1))


def table_of(X):
    pa = pytest.importorskip("pyarrow")
    return pa.table({f"c{i}": column for i, column in enumerate(X.T)})


def saved(X, folder, kind):
    """A file of one name, size and time whatever the rows are, as a copy that was put back has."""
    path = folder / f"rows.{kind}"
    if kind == "npy":
        np.save(path, X)
    elif kind == "npz":
        sparse.save_npz(path, sparse.csr_matrix(X), compressed=False)
    elif kind == "csv":
        names = ",".join(f"c{i}" for i in range(D))
        np.savetxt(path, X, "%+.9e", delimiter=",", header=names, comments="")
    elif kind == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(table_of(X), path, compression="none", use_dictionary=False)
    else:
        feather = pytest.importorskip("pyarrow.feather")
        feather.write_feather(table_of(X), path, compression="uncompressed", chunksize=200)
    os.utime(path, ns=(10**18, 10**18))
    return path


def csr_chunks(X):
    return dask_rows(X).map_blocks(sparse.csr_matrix, meta=sparse.csr_matrix((0, 0)))


FORMS = {
    "array": lambda X, folder: X,
    "CSR": lambda X, folder: sparse.csr_matrix(X),
    "memmap": lambda X, folder: np.load(saved(X, folder, "npy"), mmap_mode="r"),
    "CSR in a file": lambda X, folder: saved(X, folder, "npz"),
    "csv": lambda X, folder: saved(X, folder, "csv"),
    "parquet": lambda X, folder: saved(X, folder, "parquet"),
    "feather": lambda X, folder: saved(X, folder, "feather"),
    "table": lambda X, folder: table_of(X),
    "function": lambda X, folder: lambda: iter(np.array_split(X, 7)),
    "function of CSR": lambda X, folder: lambda: map(sparse.csr_matrix, np.array_split(X, 7)),
    "dask": lambda X, folder: dask_rows(X),
    "dask of CSR": lambda X, folder: csr_chunks(X),
    "dask frame": lambda X, folder: dask_rows(X).to_dask_dataframe([f"c{i}" for i in range(D)]),
    "batches": lambda X, folder: np.array_split(X, 9),
}
# The second budget cuts rows into blocks of 122.
RBF = {"kernel": "rbf", "gamma": 0.2, "random_state": 0, "n_jobs": 1, "memory": "1MB"}
LEARNERS = {
    "landmarks": KernelPCA(4, basis=Landmarks(30, Uniform()), **RBF),
    "growing landmarks": KernelPCA(4, basis=Landmarks(error=0.4, selector=Uniform()), **RBF),
    "features": KernelPCA(4, basis=RandomFeatures(40), **RBF),
    "points": KernelPCA(4, basis="points", eigen_solver="krylov", **RBF | {"memory": "50MB"}),
    "hebbian": HebbianKernelPCA(4, n_passes=2, **RBF | {"memory": "50MB"}),
    "stream": StreamingKernelPCA(4, budget=40, **RBF),
    "stream of features": StreamingKernelPCA(4, basis="features", budget=40, **RBF),
}


class Killed(BaseException):
    """Stands for the end of the process: nothing of ours catches it."""


def numbers_of(model):
    certificate = model.certificate_
    parts = model.eigenvalues_, certificate.eigenvalue_lower, certificate.eigenvalue_upper
    return np.concatenate(parts)


def drawn_rows(rng):
    X = rng.standard_normal((N, 5)) @ np.linalg.qr(rng.standard_normal((D, 5)))[0].T
    X[rng.random((N, D)) < 0.5] = 0.0
    return X


def changed(X, rng):
    """One or two rows that are others, fewer or more rows, or numbers in other columns."""
    Y, (i, j) = X.copy(), rng.choice(len(X), 2, replace=False)
    match rng.integers(6):
        case 0:
            Y[i] = 3 * X[j]
        case 1:
            Y[i] = -X[i]
        case 2:
            Y[[i, j]] = 2 * X[[j, i]]
        case 3:
            return X[: -1 - i % 200]
        case 4:
            return np.vstack([X, 2 * X[: 1 + i % 200]])
        case _:
            Y[i] = np.roll(X[i], 1)
    return Y


def check_other_rows(form, seed, tmp_path, monkeypatch):
    """Killed after a drawn state; the changed rows are refused, or the result is theirs alone."""
    rng = generator(seed, list(FORMS).index(form))
    X = drawn_rows(rng)
    name = str(rng.choice([n for n in LEARNERS if form != "batches" or n.startswith("stream")]))
    if form.startswith("dask") and name == "hebbian":
        name = "points"
    Y, rows_of, learner = changed(X, rng), FORMS[form], LEARNERS[name]
    plain, written, stop = Checkpoint._write, [0], [None]

    def write(self, *args):
        plain(self, *args)
        written[0] += 1
        if written[0] == stop[0]:
            raise Killed

    with warnings.catch_warnings(), monkeypatch.context() as patch:
        warnings.simplefilter("ignore")  # not converged, and so on
        patch.setattr("mercer.fitting.checkpoint.monotonic", count(step=3600).__next__)
        patch.setattr(Checkpoint, "_write", write)
        model = clone(learner).set_params(checkpoint=tmp_path / "c")
        whole = numbers_of(model.fit(rows_of(X, tmp_path)))
        # After the last state all passes may be complete.
        states, written[0] = written[0], 0
        stop[0] = states if rng.random() < 0.4 else int(rng.integers(1, states + 1))
        with pytest.raises(Killed):
            model.fit(rows_of(X, tmp_path))
        where = f"{name}, state {stop[0]} of {states}"
        stop[0] = None
        try:
            resumed = numbers_of(model.fit(rows_of(Y, tmp_path)))
        except CheckpointError as error:
            assert "other data" in str(error) or "not those that" in str(error)
        else:
            fresh = clone(learner).fit(rows_of(Y, tmp_path))
            assert_array_equal(resumed, numbers_of(fresh), where)
            return
        assert_array_equal(numbers_of(model.fit(rows_of(X, tmp_path))), whole, where)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("form", FORMS)
def test_no_fit_goes_on_with_other_rows(form, seed, tmp_path, monkeypatch):
    check_other_rows(form, seed, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("form", FORMS)
def test_no_fit_goes_on_with_other_rows_often(form, seed, tmp_path, monkeypatch):
    check_other_rows(form, seed, tmp_path, monkeypatch)


def test_resumed_passes_read_rows_once(tmp_path, monkeypatch):
    """But for one reading that compares them with those before, however many passes were made."""
    X, reads = drawn_rows(generator(0)), []

    def rows():
        for part in np.array_split(X, 7):
            reads.append(len(part))
            yield part

    model = clone(LEARNERS["growing landmarks"]).set_params(checkpoint=tmp_path / "c")
    plain, stop = Checkpoint._write, [1]

    def write(self, *args):
        plain(self, *args)
        stop[0] -= 1
        if not stop[0]:
            raise Killed

    monkeypatch.setattr("mercer.fitting.checkpoint.monotonic", count(step=3600).__next__)
    monkeypatch.setattr(Checkpoint, "_write", write)
    least = sum(reads_of(clone(model).set_params(checkpoint=None), rows, reads))
    while True:
        try:
            stop[0] = 3
            read = sum(reads_of(model, rows, reads))
            break
        except Killed:
            assert sum(reads) <= least + len(X) + 100  # the first block tells what the rows are
    assert read <= least + len(X) + 100


SLOW_FORMS = [pytest.param(form, marks=pytest.mark.slow) for form in ("csv", "feather")]


@pytest.mark.parametrize("form", ["npy", "parquet", *SLOW_FORMS])
def test_rows_of_a_file_that_nobody_wrote_to_are_passed_over(form, tmp_path, monkeypatch):
    """Killed after any state: what was summed is not read again; after a change it is."""
    rng = generator(list(FORMS).index("csv"), len(form))
    X = drawn_rows(rng)
    path = saved(X, tmp_path, form)
    time.sleep(max(0.0, SETTLED - (time.time() - path.stat().st_ctime)) + 0.1)
    plain, written, stop = Checkpoint._write, [0], [None]
    chunks, firsts = RowSource.blocks, []

    def write(self, *args):
        plain(self, *args)
        written[0] += 1
        if written[0] == stop[0]:
            raise Killed

    def blocks(self, rows, start=0):
        firsts.append(start)
        return chunks(self, rows, start)

    monkeypatch.setattr("mercer.fitting.checkpoint.monotonic", count(step=3600).__next__)
    monkeypatch.setattr(Checkpoint, "_write", write)
    monkeypatch.setattr(RowSource, "blocks", blocks)
    model = clone(LEARNERS["landmarks"]).set_params(checkpoint=tmp_path / "c")
    whole = numbers_of(model.fit(path))
    states, starts = written[0], set()
    for stop[0] in range(2, states + 1):
        written[0] = 0
        with pytest.raises(Killed):
            model.fit(path)
        written[0], stop[0] = 0, 2
        with suppress(Killed):  # another state is reached from the one before, by seeking
            model.fit(path)
        stop[0] = None
        firsts.clear()
        assert_array_equal(numbers_of(model.fit(path)), whole)
        starts |= set(firsts)
        # The rows that were summed are read from their start by nothing but the look at the first.
        assert firsts.count(0) <= 3
    assert len(starts) > 3
    # With other rows in the same place, under the same name, time and size.
    written[0], stop[0] = 0, states - 1
    with pytest.raises(Killed):
        model.fit(path)
    stop[0] = None
    Y = X.copy()
    Y[-1] = X[0]
    saved(Y, tmp_path, form)
    with pytest.raises(CheckpointError):
        model.fit(path)


def shifted(offset):
    return lambda x, z: (x @ z + offset) ** 2


def plain(x, z, offset=0.0):
    return (x @ z + offset) ** 2


@dataclass
class Shifted:
    """A kernel with state, whose repr shortens long arrays."""

    offset: np.ndarray

    def __call__(self, x, z):
        return (x @ z + self.offset.sum()) ** 2

    def method(self, x, z):
        return self(x, z)


def frame_of(X):
    return pytest.importorskip("pandas").DataFrame(X)


def tensor_of(X):
    return pytest.importorskip("torch").tensor(X)


FORMS_OF_NUMBERS = {
    "array": np.asarray,
    "CSR": sparse.csr_matrix,
    "CSC": sparse.csc_array,
    "lists": np.ndarray.tolist,
    "objects": lambda X: X.astype(object),
    "single precision": np.float32,
    "data frame": frame_of,
    "tensor": tensor_of,
    "in a function": lambda X: shifted(X),
    "in its defaults": lambda X: FunctionType(plain.__code__, {}, argdefs=(X,)),
    "in a partial function": lambda X: partial(plain, offset=X),
    "in an object": Shifted,
    "in a method": lambda X: Shifted(X).method,
    "in a dict": lambda X: {"offset": X},
    "in a recipe": lambda X: Landmarks(points=sparse.csr_matrix(X)),
    "in a kernel": lambda X: RBFKernel(gamma=X[0]),
}


@pytest.mark.parametrize("form", FORMS_OF_NUMBERS)
@pytest.mark.parametrize("seed", range(3))
def test_parameters_with_one_other_number_are_others(form, seed):
    """Wherever it is held; equal ones are the same, however often they are made."""
    rng, make = generator(seed), FORMS_OF_NUMBERS[form]
    X = rng.standard_normal((2000, 3))
    Y = X.copy()
    Y[0 if form == "in a kernel" else rng.integers(len(X)), rng.integers(3)] += 0.25
    assert identity_of(make(X)) == identity_of(make(X.copy())) != identity_of(make(Y))
    assert identity_of([make(Y)]) != identity_of([make(X)])


@pytest.mark.parametrize(
    "change",
    [
        {"basis": Landmarks(points=sparse.csr_matrix(np.eye(9, D, 2)))},
        {"kernel": shifted(2.0), "gamma": None},
        {"basis": Landmarks(indices=np.arange(1, 10))},
    ],
    ids=["landmarks", "kernel", "indices"],
)
def test_no_fit_goes_on_with_other_parameters(change, tmp_path, monkeypatch):
    first = {"basis": Landmarks(points=sparse.csr_matrix(np.eye(9, D)))}
    if "kernel" in change:
        first |= {"kernel": shifted(1.0), "gamma": None}
    X = sparse.csr_matrix(drawn_rows(generator(0)))
    X = X.toarray() if "kernel" in change else X
    model = clone(LEARNERS["landmarks"]).set_params(checkpoint=tmp_path / "c", **first)
    monkeypatch.setattr(Checkpoint, "_write", lambda *args: (_ for _ in ()).throw(Killed))
    with pytest.raises(Killed):
        model.fit(X)
    with pytest.raises(CheckpointError, match="other data or parameters"):
        model.set_params(**change).fit(X)


def reads_of(model, rows, reads):
    reads.clear()
    model.fit(rows)
    return list(reads)


@pytest.mark.parametrize("seed", range(3))
def test_damage_anywhere_in_what_a_checkpoint_says_of_itself_is_seen(seed, tmp_path):
    rng = generator(seed)
    with Checkpoint(tmp_path / "c", "identity", 12345) as checkpoint:
        checkpoint.unfinished = True
    about = tmp_path / "c" / "about.json"
    content = about.read_bytes()
    for place in rng.integers(len(content), size=20):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(7))
        about.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="cannot be used"):
            Checkpoint(tmp_path / "c", "identity", 0)
    about.write_bytes(content)
    with Checkpoint(tmp_path / "c", "identity", 0) as checkpoint:
        assert checkpoint.seed == 12345
