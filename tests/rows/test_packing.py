"""Many small chunks in few tasks: the same rows, and nothing made twice."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from contracts import generator
from dask.callbacks import Callback
from scipy import sparse
from sklearn.base import clone

from mercer import KernelPCA, StreamingKernelPCA
from mercer.bases import Landmarks
from mercer.rows import DaskRows
from mercer.rows.tasks import grouped

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture(autouse=True)
def scheduler():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def made(count, rows=3):
    """Rows that are made where they are."""

    def make(block_id=None):
        return np.random.default_rng(block_id[0]).standard_normal((rows, 2))

    return da.map_blocks(make, chunks=((rows,) * count, (2,)), dtype=float, meta=np.empty((0, 0)))


def delayed_parts(count):
    """Chunks that are cut from a few larger ones, each made once."""
    whole = [dask.delayed(np.full)((10, 2), float(i)) for i in range(-(-count // 10))]
    cut = dask.delayed(lambda rows, i: rows[i : i + 1])
    parts = [da.from_delayed(cut(whole[i // 10], i % 10), (1, 2), float) for i in range(count)]
    return da.concatenate(parts)


def a_frame(count):
    t = np.linspace(0, 3, 2 * count)
    table = pd.DataFrame({"a": t, "b": np.sin(t)})
    return dd.from_pandas(table, npartitions=count)


ARRAYS = {
    "made in chunks": lambda: made(250),
    "cut from one array": lambda: da.from_array(generator(1).random((250, 2)), chunks=(1, -1)),
    "cut from larger ones": lambda: delayed_parts(200),
    "rechunked": lambda: made(15, rows=30).rechunk((2, 2)),
    "joined": lambda: da.concatenate([made(100), made(100)[::-1]]),
    "every chunk needs the one before": lambda: da.cumsum(made(150), axis=0),
    "every chunk needs all": lambda: made(150) - made(150).mean(axis=0),
    "persisted": lambda: made(200).persist(),
    "columns in two": lambda: da.concatenate([made(160), made(160) ** 2], axis=1),
    "sparse": lambda: made(200).map_blocks(sparse.csr_matrix, meta=sparse.csr_matrix((0, 0))),
    "some empty": lambda: made(600)[made(600)[:, 0].compute() > 0.8],
}


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_the_same_rows_in_fewer_chunks(make):
    array, tasks = make(), []
    known = array.compute()
    rows, every = DaskRows(array), np.arange(known.shape[0])
    assert abs(rows.take(every) - known).max() == 0
    with Callback(posttask=lambda *task: tasks.append(1)):
        index = generator(5).permutation(every)[:20]
        assert abs(rows.take(index) - known[index]).max() == 0
    assert len(tasks) < 100


def dense(rows):
    return not sparse.issparse(rows)


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_nothing_is_made_twice(make):
    """Of what one group of chunks needs and of what several do, every chunk is made once."""
    notes = []

    def note(rows):
        notes.append(1)
        return rows

    noted = make().rechunk({1: -1}).map_blocks(note, dtype=float, meta=np.empty((0, 0)))
    array = noted + noted[::-1] if dense(noted.blocks[0].compute()) else noted
    notes.clear()
    many = array.numblocks[0]
    groups = [range(i, min(i + 50, many)) for i in range(0, many, 50)]
    found = dask.compute(*grouped(array, groups, lambda chunks, first: first + len(chunks)))
    assert list(found) == [group.stop for group in groups]
    assert len(notes) == noted.numblocks[0]


@pytest.mark.parametrize("make", [lambda: made(1500), lambda: a_frame(600)], ids=["array", "frame"])
def test_passes_cost_few_tasks(make):
    """Counting, sampling, summing and products, also where lengths are not known."""
    X, tasks = make(), []
    model = KernelPCA(2, kernel="rbf", gamma=0.1, basis=Landmarks(points=np.eye(2)))
    with Callback(posttask=lambda *task: tasks.append(1)):
        model.fit(X)
        exact = KernelPCA(
            2, kernel="rbf", gamma=0.1, basis="points", eigen_solver="krylov", tol=1e-4
        ).fit(X)
    assert exact.expansion_.basis.spans_data and len(tasks) < 2000
    whole = clone(model).fit(np.asarray(X.compute()))
    np.testing.assert_allclose(model.eigenvalues_, whole.eigenvalues_, rtol=1e-9)


def test_a_stream_learns_the_same_from_chunks_together():
    X = made(400)
    options = {"kernel": "rbf", "gamma": 0.3, "budget": 20, "random_state": 0}
    there = StreamingKernelPCA(2, **options).fit(X)
    here = StreamingKernelPCA(2, **options).fit(X.compute())
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-9)
    assert len(there.history_) < 150


def test_a_chunk_that_fails_says_so():
    def broken(rows, block_id=(0, 0)):
        if block_id[0] == 431:
            raise OSError("no such disk")
        return rows

    with pytest.raises(OSError, match="no such disk"):
        KernelPCA(2, kernel="rbf", basis=Landmarks(5)).fit(
            made(600).map_blocks(broken, dtype=float)
        )


def test_chunks_of_a_checkpoint_are_the_same_on_any_machine():
    lengths = set()
    for workers in (1, 2, 16):
        with dask.config.set(num_workers=workers):
            lengths.add(DaskRows(made(3000))._together.chunks[0])
    assert len(lengths) == 1 and len(lengths.pop()) < 1500
