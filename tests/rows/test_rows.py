"""Rows of every kind answer the same verbs with the same numbers, and fits are whole."""

import os
import sys

import numpy as np
import pytest
from contracts import generator
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import mercer
from mercer import (
    ClassicalMDS,
    HebbianKernelPCA,
    KernelPCA,
    KernelPCASearch,
    NoveltyDetector,
    SpectralClustering,
    StreamingKernelPCA,
)
from mercer.bases import Landmarks, RandomFeatures, choose_whitening
from mercer.compute import LocalEngine
from mercer.fitting.moments import MomentsOf
from mercer.kernels import RBF
from mercer.rows import ArrayRows, BlockRows, DaskRows, errors_of, scores_of
from mercer.rows.base import count_rows

N, D = 457, 4


@pytest.fixture(scope="module")
def X():
    rng = generator(8)
    return np.sin(rng.standard_normal((N, 2)) @ rng.standard_normal((2, D))) + 3.0


def cut(X, seed):
    """The rows in pieces of drawn lengths, some of them empty."""
    ends = np.sort(generator(seed).integers(0, len(X) + 1, 5))
    return np.split(X, ends)


def kinds(X, tmp_path):
    """The same rows in every place that rows can be in."""
    np.save(tmp_path / "rows.npy", X)
    found = {
        "array": ArrayRows(X),
        "memmap": ArrayRows(np.load(tmp_path / "rows.npy", mmap_mode="r")),
        "file": BlockRows(tmp_path / "rows.npy", "1MB"),
        "pieces": BlockRows(lambda: iter(cut(X, 3)), "1MB"),
        "csr pieces": BlockRows(lambda: map(sparse.csr_matrix, cut(X, 4)), "1MB"),
    }
    try:
        import dask.array as da
    except ImportError:
        return found
    found["dask"] = DaskRows(da.from_array(X, chunks=(97, D)), "10MB")
    unknown = da.concatenate(
        [da.from_delayed(lazy(piece), (np.nan, D), X.dtype) for piece in cut(X, 5)],
        allow_unknown_chunksizes=True,
    )
    return found | {"dask, lengths unknown": DaskRows(unknown, "10MB")}


def lazy(piece):
    import dask

    return dask.delayed(lambda: piece)()


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


def test_sample_and_take_are_those_of_the_array(X, tmp_path):
    here = ArrayRows(X)
    for name, rows in kinds(X, tmp_path).items():
        for seed in (0, 11):
            for size in (3, 100, N, 2 * N):
                found, expected = rows.sample(size, seed), here.sample(size, seed)
                np.testing.assert_array_equal(dense(found), expected, name)
        index = generator(1).integers(0, N, 20)
        np.testing.assert_array_equal(dense(rows.take(index)), X[index], name)
        assert count_rows(rows) == N and rows.shape == (N, D) and rows.dtype == np.float64


@pytest.mark.parametrize(
    "recipe", [Landmarks(20), RandomFeatures(30)], ids=["landmarks", "features"]
)
def test_moments_are_those_of_the_array(recipe, X, tmp_path):
    basis = recipe.build(RBF(0.5), X, LocalEngine(10**8, 2), generator(0))
    moments_of = MomentsOf(basis, choose_whitening(basis, X, N))
    expected = moments_of.finished(ArrayRows(X).sum(moments_of))
    for name, rows in kinds(X, tmp_path).items():
        found = moments_of.finished(rows.sum(moments_of))
        assert found.count == N, name
        np.testing.assert_allclose(found.mean, expected.mean, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(found.scatter, expected.scatter, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(found.energy, expected.energy, rtol=1e-12, err_msg=name)


def test_map_is_that_of_the_array_and_comes_back_in_kind(X, tmp_path):
    model = KernelPCA(3, kernel="rbf", gamma=0.5, basis=Landmarks(20), random_state=0).fit(X)
    for function in (scores_of(model.expansion_), errors_of(model.expansion_)):
        expected = ArrayRows(X).map(function)
        for name, rows in kinds(X, tmp_path).items():
            found = rows.map(function)
            there = isinstance(rows, DaskRows)
            assert hasattr(found, "compute") == there, name
            found = found.compute() if there else found
            np.testing.assert_allclose(found, expected, atol=1e-10, err_msg=name)
            if there:
                with pytest.raises(ValueError, match="on a cluster"):
                    rows.map(function, tmp_path / "out.npy")
                continue
            written = rows.map(function, tmp_path / "out.npy")
            np.testing.assert_allclose(np.squeeze(np.load(written)), expected, atol=1e-10)


def needs_one_place():
    options = {"random_state": 0}
    return [
        HebbianKernelPCA(2, kernel="rbf", gamma=0.5, n_passes=2, **options),
        ClassicalMDS(2, **options),
        NoveltyDetector(3, gamma=0.5, **options),
        KernelPCASearch(noise=0.1, **options),
    ]


@pytest.mark.parametrize("model", needs_one_place(), ids=lambda m: type(m).__name__)
def test_what_needs_all_rows_refuses_chunks_and_reads_small_files(model, X, tmp_path):
    da = pytest.importorskip("dask.array")
    name = type(model).__name__
    with pytest.raises(ValueError, match=rf"{name} needs all rows in one place.*X\.compute"):
        clone(model).fit(da.from_array(X, chunks=(100, D)))
    np.save(tmp_path / "rows.npy", X)
    here, there = clone(model).fit(X), clone(model).fit(tmp_path / "rows.npy")
    for attribute in ("eigenvalues_", "offset_", "best_params_"):
        if hasattr(here, attribute):
            one, other = getattr(here, attribute), getattr(there, attribute)
            assert one == other if isinstance(one, dict) else np.allclose(one, other)


def test_streams_read_chunks_in_their_order(X):
    da = pytest.importorskip("dask.array")
    stream = StreamingKernelPCA(3, kernel="rbf", gamma=0.5, random_state=0)
    here = clone(stream).fit(X)
    there = clone(stream).fit(da.from_array(X, chunks=(100, D)))
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-9)


WHOLE_FITS = [
    KernelPCA(2, kernel="rbf", n_jobs=1),
    KernelPCA(2, kernel="rbf", basis=Landmarks(20), n_jobs=1),
    HebbianKernelPCA(2, kernel="rbf"),
    StreamingKernelPCA(2, kernel="rbf"),
    SpectralClustering(2),
    ClassicalMDS(2),
    NoveltyDetector(2),
]


class Stopped(BaseException):
    """Nothing of ours catches it; `HebbianKernelPCA` keeps what it learned before a Ctrl-C."""


def traced(call, most=0):
    """How many of our functions a call enters; it is stopped at the last of `most`."""
    home, count = os.path.dirname(mercer.__file__), [0]

    def see(frame, event, arg):
        # What is raised while a generator is closed is lost.
        ours = frame.f_code.co_filename.startswith(home) and frame.f_code.co_name != "<genexpr>"
        if event == "call" and ours:
            count[0] += 1
            if count[0] == most:
                sys.setprofile(None)
                raise Stopped

    sys.setprofile(see)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count[0]


@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
@pytest.mark.parametrize("model", WHOLE_FITS, ids=lambda model: type(model).__name__)
def test_an_interrupted_fit_leaves_what_was_there(model, share, X):
    model = clone(model).set_params(random_state=0)
    clone(model).fit(X)  # what is made once only is not counted
    moment = int(share * traced(lambda: clone(model).fit(X)))
    with pytest.raises(Stopped):
        traced(lambda: model.fit(X), moment)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert not [name for name in vars(model) if name.endswith("_") and name[0] != "_"]
    model.fit(X[:, :3])
    before = {name: x for name, x in vars(model).items() if name != "_engine"}
    with pytest.raises(Stopped):
        traced(lambda: model.fit(X), moment)
    assert vars(model).keys() - {"_engine"} == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def test_results_of_an_earlier_fit_do_not_linger(X):
    model = KernelPCA(2, kernel="rbf", basis=Landmarks(20)).fit(X)
    assert hasattr(model, "landmarks_") and hasattr(model, "X_sample_")
    model.set_params(basis="points").fit(X)
    assert not hasattr(model, "landmarks_") and not hasattr(model, "X_sample_")
