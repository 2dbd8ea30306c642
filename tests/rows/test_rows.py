"""Rows of every kind answer the same verbs with the same numbers, and fits are whole."""

import os
import sys

import numpy as np
import pytest
from contracts import check_rows, generator
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import mercer
from mercer import (
    ClassicalMDS,
    HebbianKernelPCA,
    KernelPCA,
    NoveltyDetector,
    SpectralClustering,
    StreamingKernelPCA,
)
from mercer.bases import Landmarks
from mercer.rows import ArrayRows, BlockRows, DaskRows, Rows

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
        "file": BlockRows(tmp_path / "rows.npy", "50KB"),
        "pieces": BlockRows(lambda: iter(cut(X, 3)), "50KB"),
        "csr pieces": BlockRows(lambda: map(sparse.csr_matrix, cut(X, 4)), "50KB"),
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


KIND_NAMES = [
    "array",
    "memmap",
    "file",
    "pieces",
    "csr pieces",
    "dask",
    "dask, lengths unknown",
]


def lazy(piece):
    import dask

    return dask.delayed(lambda: piece)()


@pytest.mark.parametrize("kind", KIND_NAMES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_of_every_kind_answer_as_the_array_does(kind, dtype, X, tmp_path):
    if "dask" in kind:
        pytest.importorskip("dask.array")
    X = X.astype(dtype)
    for name in ("these", "others", "out"):
        (tmp_path / name).mkdir()
    rows, others = kinds(X, tmp_path / "these")[kind], kinds(X + 1, tmp_path / "others")[kind]
    check_rows(rows, X, tmp_path / "out", others)


class PieceRows(Rows):
    """Rows in a list of arrays: a new kind, in one place."""

    def __init__(self, pieces):
        self.pieces = pieces

    @property
    def shape(self):
        return sum(map(len, self.pieces)), self.pieces[0].shape[1]

    @property
    def dtype(self):
        return self.pieces[0].dtype

    def _partial_sums(self, function, title, again, done, checkpoint):
        firsts = np.cumsum([0, *map(len, self.pieces)])
        for i in range(done.get("pieces", 0), len(self.pieces)):
            if len(self.pieces[i]):
                yield function(self.pieces[i], int(firsts[i])), {"pieces": i + 1}

    def map(self, function, out=None, names=None):
        if out is not None:
            return ArrayRows(self.as_array("out")).map(function, out, names)
        return np.concatenate([function(p, 0) for p in self.pieces if len(p)]).astype(self.dtype)

    def as_basis(self, kernel, engine, n_components):
        return "the rows are in pieces"

    def as_array(self, who, limit=None, instead=""):
        return np.concatenate(self.pieces)

    def blocks(self):
        yield from self.pieces

    def identity(self):
        return ["pieces", *self.pieces]


class Pieces:
    """What a user would pass: pieces of rows."""

    def __init__(self, X):
        self.pieces = cut(X, 6)


@pytest.fixture
def pieces(monkeypatch):
    """The line that registers the new kind."""
    kind = (lambda X: isinstance(X, Pieces), lambda X, how: PieceRows(X.pieces))
    monkeypatch.setattr(mercer.rows.array, "KINDS", [*mercer.rows.KINDS, kind])


def test_a_new_kind_of_rows_is_one_class_and_one_line(pieces, X, tmp_path):
    check_rows(PieceRows(Pieces(X).pieces), X, tmp_path, PieceRows(Pieces(X + 1).pieces))
    options = {"kernel": "rbf", "gamma": 0.5, "basis": "landmarks", "random_state": 0}
    here, there = (KernelPCA(3, **options).fit(rows) for rows in (X, Pieces(X)))
    np.testing.assert_array_equal(there.landmarks_, here.landmarks_)
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-12)
    found = there.transform(Pieces(X[::2]))
    np.testing.assert_allclose(found, here.transform(X[::2]), atol=1e-10)
    with pytest.raises(ValueError, match="the rows are in pieces"):
        KernelPCA(3, kernel="rbf", basis="points").fit(Pieces(X))
    clustered = SpectralClustering(2, gamma=0.5, basis="landmarks", random_state=0)
    one, other = (clone(clustered).fit(rows) for rows in (X, Pieces(X)))
    np.testing.assert_allclose(other.eigenvalues_, one.eigenvalues_, rtol=1e-9)


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
