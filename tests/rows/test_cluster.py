"""Dask collections: the same answers as rows in one place, whatever the chunks and the workers."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from functools import partial

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from contracts import check_gram_basis, generator
from dask.callbacks import Callback
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mercer import HebbianKernelPCA, KernelPCA
from mercer.bases import Landmarks, RandomFeatures
from mercer.compute import LocalEngine
from mercer.compute.arrays import is_dask
from mercer.exceptions import MercerWarning
from mercer.fitting.functions import SurveyOf
from mercer.kernels import RBF, Laplacian, Matern, Polynomial
from mercer.metrics import subspace_error
from mercer.rows import ArrayRows, BlockRows, DaskRows
from mercer.rows.chunk_gram import ChunkGram, evened
from mercer.rows.tasks import Workers, neighbors, pool_size, task_engine
from mercer.selectors import KMeans, Uniform

# Clusters of several processes at a time would fight for two cores.
pytestmark = pytest.mark.xdist_group("cluster")

LENGTHS = (150, 0, 31, 260, 1, 158)


def rows(n=600, d=5, key=0):
    """Rows near a curve, so that a few components stand out."""
    rng = generator(n, d, key)
    t = rng.uniform(-2, 2, n)
    curve = np.column_stack([np.cos((k + 1) * t + k) for k in range(d)])
    return curve + 0.1 * rng.standard_normal((n, d))


def chunked(X, lengths=LENGTHS, columns=-1):
    return da.from_array(X, chunks=(lengths, columns))


def unknown(D):
    """The same array with chunks of unknown length."""
    return D[da.ones(D.shape[0], chunks=D.chunks[0], dtype=bool)]


def model(basis="landmarks", **others):
    options = {"n_components": 4, "kernel": "rbf", "gamma": 0.2, "random_state": 0} | others
    return KernelPCA(basis=basis, **options)


@pytest.fixture(autouse=True)
def scheduler():
    """Few threads, so that tests do not depend on the machine."""
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


BASES = {
    "landmarks": Landmarks(40),
    "a share": Landmarks(0.1),
    "an error": Landmarks(error=0.02),
    "indices": Landmarks(indices=[500, 3, 151, 449, 7, 440]),
    "k-means": Landmarks(20, KMeans()),
    "features": RandomFeatures(60),
    "points": "points",
}


@pytest.mark.parametrize("scheduler_name", ["synchronous", "threads"])
@pytest.mark.parametrize("basis", BASES.values(), ids=BASES)
def test_same_components_as_in_one_place(basis, scheduler_name):
    X = rows()
    solver = {"eigen_solver": "krylov"} if basis == "points" else {}
    here = model(basis, **solver).fit(X)
    with dask.config.set(scheduler=scheduler_name):
        there = model(basis, **solver).fit(chunked(X))
        scores = there.transform(chunked(X)).compute()
    assert subspace_error(here.transform(X), scores) < 1e-6
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(
        there.certificate_.captured_variance, here.certificate_.captured_variance, atol=1e-6
    )
    assert there.certificate_.kind == here.certificate_.kind
    assert there.certificate_.converged


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kernel", [RBF("median"), Laplacian("mean"), Polynomial(2, 0.1)])
def test_exact_for_every_kind_of_kernel(kernel, center):
    X = rows(1200)
    options = {"kernel": kernel, "gamma": None, "center": center, "eigen_solver": "krylov"}
    here = model("points", **options).fit(X)
    there = model("points", **options).fit(da.from_array(X, chunks=(500, -1)))
    assert there.gamma_ == here.gamma_
    assert subspace_error(here.eigenvectors_, there.eigenvectors_) < 1e-6
    assert there.certificate_.relative_residual < 1e-8


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [RBF(0.2), Laplacian(0.1), Matern(0.2, 1.5)])
def test_none_is_missed_as_in_one_place(kernel, weighted):
    """Sums of squares are made within the tasks: intervals are by number, and hold the truth."""
    for seed in range(3):
        X = rows(900, key=seed)
        w = generator(seed).uniform(0.2, 5.0, len(X)) if weighted else np.ones(len(X))
        given = {"sample_weight": w} if weighted else {}
        options = {"kernel": kernel, "gamma": None, "eigen_solver": "krylov", "n_components": 6}
        here = model("points", **options).fit(X, **given).certificate_
        there = model("points", **options).fit(chunked(X, (300, 0, 31, 410, 1, 158)), **given)
        found = there.certificate_
        assert found.n_proven == here.n_proven == 6
        K = kernel(X)
        K = K - w @ K / w.sum()
        K = np.sqrt(w)[:, None] * (K - (K @ w / w.sum())[:, None]) * np.sqrt(w)
        values = np.linalg.eigvalsh((K + K.T) / 2)[::-1]
        assert np.all(found.eigenvalue_lower <= values[:6] + 1e-11 * values[0])
        assert np.all(values[:6] <= found.eigenvalue_upper + 1e-11 * values[0])
        assert found.widest < 1e-8


def test_scores_are_lazy_and_keep_the_chunks():
    X = rows()
    D = chunked(X)
    fitted = model().fit(D)
    scores = fitted.transform(D)
    assert is_dask(scores) and scores.chunks == (LENGTHS, (4,)) and scores.dtype == np.float64
    np.testing.assert_allclose(scores.compute(), fitted.transform(X), atol=1e-12)
    np.testing.assert_allclose(scores[155:400].compute(), fitted.transform(X[155:400]), atol=1e-12)
    errors = fitted.reconstruction_error(D)
    assert errors.chunks == (LENGTHS,)
    np.testing.assert_allclose(errors.compute(), fitted.reconstruction_error(X), atol=1e-12)
    assert fitted.score(D) == pytest.approx(fitted.score(X))


def test_scores_of_an_exact_model():
    X, new = rows(), rows(40, key=1)
    here = model("points").fit(X)
    there = model("points", eigen_solver="krylov").fit(chunked(X))
    assert is_dask(there.X_fit_) and there.X_fit_.chunks[0] == LENGTHS
    np.testing.assert_allclose(np.abs(there.transform(new)), np.abs(here.transform(new)), atol=1e-6)
    lazy = there.transform(da.from_array(new, chunks=(25, -1)))
    assert lazy.chunks == ((25, 15), (4,))
    np.testing.assert_allclose(lazy.compute(), there.transform(new), atol=1e-10)
    errors = there.reconstruction_error(da.from_array(new, chunks=(25, -1)))
    np.testing.assert_allclose(errors.compute(), here.reconstruction_error(new), atol=1e-6)
    training = model("points", eigen_solver="krylov").fit_transform(chunked(X))
    assert training.chunks[0] == LENGTHS
    np.testing.assert_allclose(training.compute(), there.transform(X), atol=1e-6)


def test_a_landmark_model_is_plain():
    X = rows()
    fitted = model().fit(chunked(X))
    assert not any(is_dask(value) for value in vars(fitted).values())
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    assert fitted.inverse_transform(fitted.transform(X[:3])).shape == (3, 5)
    assert fitted.fit_transform(chunked(X)).shape == (600, 4)


def test_other_estimators_score_dask_rows():
    X = rows()
    fitted = HebbianKernelPCA(4, kernel="rbf", gamma=0.2, random_state=0).fit(X)
    lazy = fitted.transform(chunked(X))
    np.testing.assert_allclose(lazy.compute(), fitted.transform(X), atol=1e-12)


@pytest.mark.parametrize("basis", ["landmarks", "points"])
@pytest.mark.parametrize("change", [unknown, partial(da.rechunk, chunks=(100, 2))])
def test_any_chunks_will_do(basis, change):
    X = rows()
    D = change(chunked(X))
    here, there = (model(basis, eigen_solver="krylov").fit(data) for data in (X, D))
    scores = there.transform(D)
    assert subspace_error(here.transform(X), scores.compute()) < 1e-6
    assert scores.shape[1] == 4


@pytest.mark.parametrize("basis", ["landmarks", "points"])
def test_single_precision_stays(basis):
    X = rows().astype(np.float32)
    there = model(basis, eigen_solver="krylov").fit(chunked(X))
    assert there.transform(chunked(X)).dtype == np.float32 == there.eigenvalues_.dtype
    assert there.transform(chunked(X)).compute().dtype == np.float32
    here = model(basis).fit(X)
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-5)


def test_whole_numbers_become_double():
    X = np.round(10 * rows())
    there = model().fit(chunked(X.astype(np.int16)))
    np.testing.assert_allclose(there.eigenvalues_, model().fit(X).eigenvalues_)


def test_an_error_is_held_on_all_rows():
    """The landmarks that do for a few rows do not for all: more are taken."""
    X = rows(600, 6)
    there = model(Landmarks(error=0.05, selector=Uniform()), gamma=1.0).fit(chunked(X))
    basis = there.expansion_.basis
    assert basis.lost_share(X) <= 0.05 and basis.size > 80


def frame(X):
    return pd.DataFrame(X, columns=list("abcde"))


def test_dataframes_have_names():
    X = rows()
    D = dd.from_pandas(frame(X), npartitions=3)
    there = model().fit(D)
    assert list(there.feature_names_in_) == list("abcde")
    assert subspace_error(there.transform(D).compute(), model().fit(X).transform(X)) < 1e-6
    np.testing.assert_allclose(there.transform(frame(X)), there.transform(D).compute(), atol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        there.transform(D.rename(columns={"a": "z"}))


def test_dataframes_of_single_precision_and_missing_values():
    X = rows().astype(np.float32)
    there = model().fit(dd.from_pandas(frame(X), npartitions=2))
    assert there.landmarks_.dtype == np.float32
    gaps = frame(rows()).convert_dtypes()
    gaps.iloc[550, 2] = pd.NA
    with pytest.raises(ValueError, match=r"Chunk 1 .* NaN"):
        model().fit(dd.from_pandas(gaps, npartitions=2))
    words = frame(rows()).assign(name="x")
    with pytest.raises(ValueError, match=r"\['name'\].*no numbers"):
        model().fit(dd.from_pandas(words, npartitions=2))


@pytest.mark.parametrize("basis", ["landmarks", "features", "points"])
def test_a_chunk_with_nan_is_named(basis):
    X = rows()
    X[181 + 17, 2] = np.nan
    with pytest.raises(ValueError, match=r"Chunk 3 of X: row 17 .*holds NaN or infinity"):
        model(basis).fit(chunked(X))
    fitted = model(basis).fit(chunked(rows()))
    lazy = fitted.transform(chunked(X))
    with pytest.raises(ValueError, match=r"Chunk 3 of X: row .* holds NaN"):
        lazy.compute()


def wrong_width():
    return da.from_delayed(dask.delayed(np.ones)((5, 2)), shape=(5, 3), dtype=float)


BAD = {
    "one row": (lambda: da.ones((1, 3)), "minimum of 2"),
    "no rows": (lambda: da.ones((0, 3)), "minimum of 2"),
    "a vector": (lambda: da.ones(7), "2D"),
    "words": (lambda: da.from_array(np.array([["a", "b"]] * 3)), "numbers"),
    "a lie": (wrong_width, r"Chunk 0 .*\(5, 2\).* 3 columns"),
    "a bag": (lambda: dask.bag.from_sequence([1, 2]), "Bag"),
    "all rows too large": (lambda: da.full((9, 3), np.inf), "NaN or infinity"),
}


@pytest.mark.parametrize("make, message", BAD.values(), ids=BAD)
def test_bad_rows(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model("landmarks").fit(make())


def bad_chunk(kind):
    """A chunk of 50 rows and 5 columns that a plain array would be refused for, or taken as."""
    good = rows(50)
    made = {
        "complex": good + 1j,
        "masked": np.ma.masked_less(good, 0),
        "dates": good.astype("M8[s]"),
        "times": good.astype("m8[s]"),
        "words": np.full((50, 5), "a"),
        "dates in objects": np.full((50, 5), datetime(2020, 1, 1, tzinfo=UTC), object),
        "none": None,
        "list": good.tolist(),
        "str": "rows",
        "set": {1.0},
        "range": range(50),
        "a class": np.ndarray,
        "broken csr": sparse.csr_matrix(good),
    }[kind]
    if kind == "broken csr":
        made.indices[7] = 50
    return made


WRONG_CHUNKS = {
    "complex": "complex numbers",
    "masked": "masked values",
    "dates": "holds dates",
    "times": "holds times",
    "words": "holds 'a'",
    "dates in objects": "datetime",
    "none": "of type NoneType",
    "list": "of type list",
    "str": "of type str",
    "set": "of type set",
    "range": "of type range",
    "a class": "of type type",
    "broken csr": "parts contradict",
}


@pytest.mark.parametrize("lengths", ["known", "unknown", "sparse"])
@pytest.mark.parametrize("kind", WRONG_CHUNKS)
@pytest.mark.parametrize("many", [3, 90])
def test_chunks_that_are_not_what_was_promised(kind, lengths, many):
    """Also those that are stacked with their neighbors."""
    if lengths == "sparse" and kind in ("dates", "times", "words", "dates in objects", "masked"):
        pytest.skip("no sparse matrix holds them")
    good, meta = rows(50), np.empty((0, 5))
    if lengths == "sparse":
        good, meta = sparse.csr_matrix(good), sparse.csr_matrix(meta)
    n = np.nan if lengths == "unknown" else 50
    values = [good] * (many - 1) + [bad_chunk(kind)]
    parts = [
        da.from_delayed(dask.delayed(lambda i=i: values[i])(), (n, 5), meta=meta)
        for i in range(many)
    ]
    D = da.concatenate(parts, allow_unknown_chunksizes=True)
    with pytest.raises(ValueError, match=f"Chunk {many - 1} of X.*{WRONG_CHUNKS[kind]}"):
        model("landmarks").fit(D)
    fitted = model("landmarks").fit(chunked(rows()))
    with pytest.raises(ValueError, match=f"Chunk {many - 1} of X.*{WRONG_CHUNKS[kind]}"):
        fitted.transform(D).compute()


@pytest.mark.parametrize("key", range(4))
def test_chunks_of_other_forms_and_lengths(key):
    """Rows are taken in the promised form; another number of rows than promised is refused."""
    rng, X = generator(key), rows(400)
    X[rng.random(X.shape) < 0.5] = 0.0
    forms = [np.asarray, sparse.csr_array, sparse.coo_matrix, sparse.lil_matrix, np.asfortranarray]
    made = [forms[rng.integers(5)](part) for part in np.split(X, 8)]
    meta = [np.empty((0, 5)), sparse.csr_matrix((0, 5))][key % 2]

    def lazy():
        promised = [da.from_delayed(dask.delayed(m), (50, 5), meta=meta) for m in made]
        return da.concatenate(promised)

    for basis in ("landmarks", "points"):
        there, here = model(basis).fit(lazy()), model(basis).fit(chunked(X, (50,) * 8))
        assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-6)
        assert_allclose(there.transform(lazy()), here.transform(X), atol=1e-6)
    made[rng.integers(8)] = rows(50 + rng.choice([-50, -1, 1, 50]))
    for basis in ("landmarks", "points"):
        with pytest.raises(ValueError, match=r"Chunk \d+ of X has \d+ rows"):
            model(basis).fit(lazy())


def test_coo_chunks_are_served():
    good = rows()
    pieces = [sparse.coo_matrix(good[:300]), sparse.coo_matrix(good[300:])]
    for meta in (np.empty((0, 5)), sparse.csr_matrix((0, 5))):
        parts = [da.from_delayed(dask.delayed(p), (300, 5), meta=meta) for p in pieces]
        fitted = model("landmarks").fit(da.concatenate(parts))
        plain = model("landmarks").fit(chunked(good, (300, 300)))
        np.testing.assert_allclose(fitted.eigenvalues_, plain.eigenvalues_, rtol=1e-6)


WRONG_PARTS = {
    "swapped": (lambda part: part[list("bacde")], r"columns \['b', 'a'.*promised"),
    "other names": (lambda part: part.rename(columns={"c": "z"}), "'z'.*promised"),
    "fewer": (lambda part: part[list("abcd")], r"'d'\], and.*promised"),
    "complex": (lambda part: part.assign(b=part["b"] + 1j), "complex numbers"),
    "dates": (lambda part: part.assign(b=pd.Timestamp("2020-01-01")), "dates"),
    "words": (lambda part: part.assign(b="x"), "holds 'x'"),
    "none": (lambda part: None, "of type NoneType"),
    "list": (lambda part: part.to_numpy().tolist(), "of type list"),
}


@pytest.mark.parametrize("change, message", WRONG_PARTS.values(), ids=WRONG_PARTS)
def test_partitions_that_are_not_what_was_promised(change, message):
    X = frame(rows())
    made = [X[:300], change(X[300:])]
    D = dd.from_map(lambda i: made[i], [0, 1], meta=X[:0], enforce_metadata=False)
    with pytest.raises(ValueError, match=f"(?s)Chunk 1 of X.*{message}"):
        model("landmarks").fit(D)


def test_bad_requests():
    D = chunked(rows())
    with pytest.raises(ValueError, match="precomputed kernel"):
        model("auto", kernel="precomputed").fit(D)
    with pytest.raises(ValueError, match="fit_inverse_transform"):
        model("points", fit_inverse_transform=True).fit(D)
    with pytest.warns(MercerWarning, match="601 landmarks were asked for, and there are 600 rows"):
        assert len(model(Landmarks(601, Uniform())).fit(D).landmarks_) == 600
    with pytest.raises(ValueError, match="one of size, error"):
        model(Landmarks(5, error=0.1)).fit(D)
    with pytest.raises(ValueError, match=r"vectors of .* on the client.*landmarks"):
        model("points", memory="100KB").fit(D)
    with pytest.raises(ValueError, match="non-negative data"):
        model("points", kernel="chi2").fit(D)
    fitted = model("points", eigen_solver="krylov").fit(D)
    with pytest.raises(ValueError, match=r"on a cluster.*to_zarr"):
        fitted.transform(D, out="scores.npy")
    with pytest.raises(ValueError, match="fitted to 5"):
        fitted.transform(da.ones((4, 3)))
    with pytest.raises(NotFittedError):
        model().transform(D)


def test_equal_rows_have_no_variance():
    with pytest.warns(UserWarning, match="no variance"):
        fitted = model("points", eigen_solver="krylov").fit(da.ones((300, 3), chunks=100))
    assert not fitted.eigenvalues_.any()


@pytest.mark.parametrize("lengths", [LENGTHS, (600,), (100,) * 6])
@pytest.mark.parametrize("kernel", [RBF(0.2), Laplacian(0.1)])
def test_gram_contract(kernel, lengths):
    X, new = rows(), rows(7, key=1)
    D = chunked(X, lengths)
    basis = ChunkGram(kernel, D, LocalEngine(10**8, 1), Workers.of(D, memory=10**7))
    assert basis.draft is not None
    check_gram_basis(basis, kernel(X), new, kernel(new, X))
    index = np.array([420, 3, 150])
    W = generator(1).standard_normal((600, 2))
    np.testing.assert_allclose(basis.rows_times(index, W), kernel(X[index], X) @ W, atol=1e-10)
    assert not basis.is_constant()


def test_a_small_budget_gives_the_same():
    X = rows()
    D = chunked(X)
    W = generator(2).standard_normal((600, 3))
    small, large = (
        ChunkGram(RBF(0.2), D, LocalEngine(10**8), Workers.of(D, memory)).gram(W)
        for memory in ("300KB", "1GB")
    )
    np.testing.assert_allclose(small, large, atol=1e-10)
    with pytest.raises(ValueError, match="cannot hold one tile"):
        ChunkGram(RBF(0.2), D, LocalEngine(10**8), Workers.of(D, "1KB")).gram(W)


def test_chunks_are_evened_for_pairs():
    X = rows(1000)
    many = evened(da.from_array(X, chunks=(10, -1)), 2, 10**9, 10)
    assert 4 <= many.numblocks[0] <= 8 and many.shape == (1000, 5)
    tight = evened(da.from_array(X, chunks=(500, -1)), 2, 64_000, 10)
    assert max(tight.chunks[0]) * 10 * 16 <= 6400
    fine = da.from_array(X, chunks=(250, -1))
    assert evened(fine, 2, 10**9, 10) is fine


def test_sample_is_uniform_whatever_the_chunks():
    """Every row is drawn equally often, from chunks of 1 row and of 260."""
    X = np.arange(600.0)[:, None]
    drawn = np.zeros(600)
    with dask.config.set(scheduler="synchronous"):
        for seed in range(60):
            some = DaskRows(unknown(chunked(X)))
            taken = some.sample(100, seed)
            assert len(taken) == 100 and some.shape == (600, 1)
            assert np.all(np.diff(taken[:, 0]) > 0)
            drawn[taken[:, 0].astype(int)] += 1
    expected = 60 * 100 / 600
    # Draws without replacement vary less than binomial ones, of variance 8.3.
    assert abs(drawn[181:441].mean() - expected) < 5 * np.sqrt(8.3 / 260)
    assert np.square(drawn - expected).mean() == pytest.approx(8.3, rel=0.35)


def test_a_sample_is_the_same_for_any_kind_of_rows():
    X = rows()
    here = ArrayRows(X)
    there = [DaskRows(chunked(X)), DaskRows(unknown(chunked(X))), BlockRows(lambda: iter([X]))]
    for other in there:
        np.testing.assert_array_equal(other.sample(100, 5), here.sample(100, 5))
        np.testing.assert_array_equal(other.sample(40, 5), here.sample(40, 5))
        far = np.argmax(np.square(X).sum(axis=1))
        pilot = other.sum(SurveyOf(100, 5)).pilot
        np.testing.assert_array_equal(pilot, np.vstack([here.sample(100, 5), X[far]]))


def test_detection_imports_nothing():
    code = (
        "import sys, numpy as np; from mercer import KernelPCA;"
        "KernelPCA(2).fit_transform(np.eye(4));"
        "print([m for m in ('dask', 'distributed') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_tasks_share_what_a_process_has():
    with dask.config.set(num_workers=4):
        assert pool_size() == 4
        workers = Workers.of(da.ones(3), memory="100MB")
        assert workers.cores == 4
        assert workers.engine(100)().threads == 1 and workers.engine(2)().threads == 2
        assert (
            workers.engine(100)().memory == 25_000_000 and workers.engine(2)().memory == 50_000_000
        )
    with dask.config.set(scheduler="synchronous"):
        assert Workers.of(da.ones(3)).cores == 1


@pytest.fixture(scope="module")
def client():
    """Two workers of one thread each, in processes of their own."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="1GiB"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def on_cluster(client, scheduler):
    with dask.config.set(scheduler="distributed"):
        yield client


def holds_nothing(client, seconds=20):
    """Whether the workers let go of all results, which they do a moment after they are told."""
    end = time.monotonic() + seconds
    while any(client.has_what().values()) and time.monotonic() < end:
        gc.collect()
        time.sleep(0.05)
    return not any(client.has_what().values())


def test_cluster_gives_the_same_components(on_cluster):
    X = rows()
    D = chunked(X, (250, 0, 350))
    for basis, solver in [(Landmarks(40), "auto"), ("points", "krylov")]:
        here = model(basis).fit(X)
        there = model(basis, eigen_solver=solver).fit(D)
        assert subspace_error(here.transform(X), there.transform(D).compute()) < 1e-6
        assert basis != "points" or "2 tasks at a time" in there.plan_.reason
    assert holds_nothing(on_cluster), "rows of a finished fit are kept"
    assert subspace_error(here.transform(X[:50]), there.transform(X[:50])) < 1e-6


def test_cluster_names_the_chunk_with_nan(on_cluster):
    X = rows()
    X[181, 0] = np.inf
    with pytest.raises(ValueError, match=r"Chunk 3 of X: row .* holds NaN or infinity"):
        model().fit(chunked(X))


def test_tasks_share_what_a_worker_has(on_cluster):
    half = on_cluster.submit(task_engine, None, 1).result()
    given = on_cluster.submit(task_engine, "100MB", 1).result()
    assert (half.memory, half.threads) == (2**29, 1) and given.memory == 10**8


def test_interrupt_leaves_the_cluster_idle(on_cluster):
    def interrupt(state):
        raise KeyboardInterrupt

    before = set(on_cluster.scheduler_info()["workers"])
    with pytest.raises(KeyboardInterrupt):
        model("points", eigen_solver="krylov", callback=interrupt).fit(chunked(rows(), (300, 300)))
    assert not any(on_cluster.processing().values())
    assert holds_nothing(on_cluster)
    assert set(on_cluster.scheduler_info()["workers"]) == before


def fragile(X, folder, calls):
    """X, but the worker that makes the last of so many chunks is killed, once."""
    mark = os.path.join(folder, f"{os.getpid()}-{os.urandom(4).hex()}")
    open(mark, "w").close()
    if len(os.listdir(folder)) == calls:
        os.kill(os.getpid(), signal.SIGKILL)
    return X


@pytest.mark.parametrize(
    "basis, solver, calls",
    # Four chunks are made for the survey, and for landmarks four more for the moments.
    [("landmarks", "auto", 6), ("points", "krylov", 3)],
    ids=["moments", "survey"],
)
def test_a_killed_worker_costs_a_retry(on_cluster, tmp_path, basis, solver, calls):
    X = rows()
    blocks = [
        da.from_delayed(dask.delayed(fragile)(part, str(tmp_path), calls), part.shape, float)
        for part in np.array_split(X, 4)
    ]
    there = model(basis, eigen_solver=solver).fit(da.concatenate(blocks))
    assert len(os.listdir(tmp_path)) > calls
    assert subspace_error(model(basis).fit(X).transform(X), there.transform(X)) < 1e-6


def test_a_worker_killed_between_passes(on_cluster):
    """Chunks that it held are made again from the graph."""
    X = rows(1200)
    killed = []

    def kill(state):
        if not killed:
            workers = on_cluster.run(os.getpid)
            killed.append(next(iter(workers.values())))
            os.kill(killed[0], signal.SIGKILL)

    there = model("points", eigen_solver="krylov", callback=kill)
    there.fit(da.from_array(X, chunks=(300, -1)))
    assert killed and there.certificate_.converged
    assert subspace_error(model("points").fit(X).eigenvectors_, there.eigenvectors_) < 1e-6


# Many small chunks.


def small_chunks(count, rows=4):
    """Rows that are made where they are, in chunks of a few."""

    def make(block_id=None):
        return np.random.default_rng(block_id[0]).standard_normal((rows, 3))

    chunks = ((rows,) * count, (3,))
    return da.map_blocks(make, chunks=chunks, dtype=float, meta=np.empty((0, 0)))


def test_small_chunks_are_taken_together():
    """Four thousand of them cost some hundred tasks for a fit, and for scores."""
    X, tasks = small_chunks(4_000), []
    model = KernelPCA(
        3, kernel="rbf", gamma=0.3, basis=Landmarks(points=generator(3).standard_normal((20, 3)))
    )
    with Callback(posttask=lambda *task: tasks.append(1)):
        model.fit(X)
    assert len(tasks) < 500
    whole = clone(model).fit(X.compute())
    np.testing.assert_allclose(model.eigenvalues_, whole.eigenvalues_, rtol=1e-9)
    scores = model.transform(X)
    assert scores.shape == (16_000, 3) and scores.numblocks[0] < 200
    tasks.clear()
    with Callback(posttask=lambda *task: tasks.append(1)):
        scores.sum().compute()
    assert len(tasks) < 500
    some = X[:400].compute()
    np.testing.assert_allclose(abs(scores[:400].compute()), abs(whole.transform(some)), atol=1e-9)


def test_a_small_chunk_that_is_wrong_is_named():
    X = small_chunks(600)

    def spoiled(rows, block_id=(0, 0)):
        return np.full_like(rows, np.nan) if block_id[0] == 431 else rows

    with pytest.raises(ValueError, match=r"Chunk 431 of X: row 0 .*holds NaN"):
        KernelPCA(2, kernel="rbf", basis=Landmarks(5)).fit(X.map_blocks(spoiled, dtype=float))


def test_neighbors_have_all_chunks_in_order():
    rng = np.random.default_rng(4)
    for _ in range(20):
        lengths = rng.integers(0, 30, int(rng.integers(1, 200)))
        groups = neighbors(lengths, 50)
        assert [i for group in groups for i in group] == list(range(len(lengths)))
        assert all(len(group) == 1 or lengths[list(group)].sum() <= 50 for group in groups)
