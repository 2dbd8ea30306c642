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
from mercer.rows.chunks import Chunks
from mercer.rows.packing import packed

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
    "made in chunks": lambda: made(700),
    "cut from one array": lambda: da.from_array(generator(1).random((900, 2)), chunks=(1, -1)),
    "cut from larger ones": lambda: delayed_parts(300),
    "rechunked": lambda: made(40, rows=30).rechunk((2, 2)),
    "joined": lambda: da.concatenate([made(300), made(300)[::-1]]),
    "every chunk needs the one before": lambda: da.cumsum(made(400), axis=0),
    "every chunk needs all": lambda: made(300) - made(300).mean(axis=0),
    "persisted": lambda: made(500).persist(),
    "columns in two": lambda: da.concatenate([made(400), made(400) ** 2], axis=1),
    "sparse": lambda: made(500).map_blocks(sparse.csr_matrix, meta=sparse.csr_matrix((0, 0))),
    "some empty": lambda: made(600)[made(600)[:, 0].compute() > 0.8],
}


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_the_same_rows_in_fewer_chunks(make):
    chunks = Chunks.of(make())
    few = chunks.fused(2, 10**9)
    assert len(few.lengths) < 200 and few.count == chunks.count
    found, known = few.whole(), chunks.whole()
    assert abs(found - known).max() == 0
    index = generator(5).permutation(chunks.count)[:20]
    assert abs(few.rows(index) - known[index]).max() == 0


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_nothing_is_made_twice(make):
    """No task of the packed graph does what another one does."""
    array = Chunks.of(make()).array
    groups = [range(i, min(i + 50, array.numblocks[0])) for i in range(0, array.numblocks[0], 50)]
    found = packed(array, groups, lambda chunk, number: number, list)
    if found is None:
        return
    shared, packs = found
    inside = [node.key for pack, *_ in packs for node in pack.nodes]
    assert len(inside) == len(set(inside)) and not shared.keys() & set(inside)
    for (pack, *inputs), group in zip(packs, groups, strict=True):
        assert list(inputs) == pack.inputs and set(inputs) <= shared.keys()
        assert len(pack.keys) == len(group)


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


def test_a_stream_learns_the_same_from_chunks_together(monkeypatch):
    monkeypatch.setattr("mercer.rows.dask.KEPT_CORES", 4)
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
            lengths.add(DaskRows(made(3000))._kept_chunks.lengths)
    assert len(lengths) == 1 and len(lengths.pop()) < 1500
