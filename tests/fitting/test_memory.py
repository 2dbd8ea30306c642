"""The budget is a promise: work arrays stay inside it, or the work is refused before it begins.

NumPy tells tracemalloc of every array, so that the peak is exact. What counts is all that is made
on the way; not what is left at the end (the fitted model, the answer), nor the caller's data.
"""

import json
import re
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
from contracts import generator, peak_bytes
from scipy.sparse import random as random_rows
from sklearn.base import clone

from mercer import (
    ClassicalMDS,
    HebbianKernelPCA,
    KernelCCA,
    KernelPCA,
    NoveltyDetector,
    PatchDenoiser,
    SpectralClustering,
    SpectralEmbedding,
    StreamingKernelPCA,
    SupervisedKernelPCA,
)
from mercer.bases import BASES, Landmarks, RandomFeatures
from mercer.compute import TileStore
from mercer.exceptions import MercerWarning
from mercer.hebbian import GAINS
from mercer.kernels import KERNELS
from mercer.preimage import PREIMAGES
from mercer.selectors import SELECTORS
from mercer.solvers import SOLVERS

# Caches of the interpreter, arguments, small vectors.
SMALL = 500_000
COMMON = {"n_jobs": 2, "random_state": 0}
RBF = {"kernel": "rbf", "gamma": 0.1}


def slow(value):
    """A case that `make test-slow` runs."""
    return pytest.param(value, marks=pytest.mark.slow)


def pca(**settings):
    return lambda m: KernelPCA(4, **RBF | COMMON | {"copy_X": False} | settings, memory=m)


def supervised(**settings):
    return lambda m: SupervisedKernelPCA(4, **RBF | COMMON | {"copy_X": False} | settings, memory=m)


def on(basis):
    kernel = {"kernel": "linear", "gamma": None} if basis == "columns" else {}
    return pca(basis=basis, **kernel)


FITS = {
    **{f"solver {name}": pca(eigen_solver=name) for name in sorted(SOLVERS)},
    **{f"basis {name}": on(name) for name in sorted(set(BASES) - {"fourier"})},
    **{
        f"selector {name}": pca(basis=Landmarks(40, kind()))
        for name, kind in sorted(SELECTORS.items())
    },
    "share": lambda m: KernelPCA(0.9, **RBF, **COMMON, memory=m),
    "all components": lambda m: KernelPCA(None, **RBF, **COMMON, memory=m),
    "median": pca(gamma="median"),
    "many landmarks": pca(basis=Landmarks(500)),
    "landmarks to an error": pca(basis=Landmarks(error=0.3)),
    "many features": pca(basis=RandomFeatures(700)),
    "learned inverse": pca(fit_inverse_transform=True),
    **{
        f"hebbian {name}": lambda m, name=name: HebbianKernelPCA(
            4, gain=name, n_passes=2, **RBF, **COMMON, copy_X=False, memory=m
        )
        for name in sorted(GAINS)
    },
    **{
        f"stream {name}": lambda m, name=name: StreamingKernelPCA(
            4, basis=name, budget=100, **RBF, **COMMON, memory=m
        )
        for name in ("dictionary", "features")
    },
    "stream landmarks": lambda m: StreamingKernelPCA(
        4, basis=Landmarks(60), **RBF, **COMMON, memory=m
    ),
    "novelty": lambda m: NoveltyDetector(10, **RBF, **COMMON, memory=m),
    "clusters": lambda m: SpectralClustering(3, gamma=0.1, **COMMON, memory=m),
    "clusters by landmarks": lambda m: SpectralClustering(
        3, gamma=0.1, basis="landmarks", **COMMON, memory=m
    ),
    "mds": lambda m: ClassicalMDS(2, **COMMON, memory=m),
    "mds of distances": lambda m: ClassicalMDS(2, metric="manhattan", **COMMON, memory=m),
    "supervised": supervised(),
    "supervised, with variance": supervised(unsupervised=0.3),
    **{
        f"supervised by {name}": supervised(unsupervised=0.3, eigen_solver=name)
        for name in sorted(SOLVERS)
    },
    "supervised landmarks": supervised(basis=Landmarks(60)),
    "supervised features": supervised(basis=RandomFeatures(200)),
    "supervised columns": supervised(kernel="linear", basis="columns"),
    "supervised, kernel of y": supervised(target="rbf"),
    "cca": lambda m: KernelCCA(4, **RBF, **COMMON, memory=m),
    "cca of points": lambda m: KernelCCA(4, **RBF, **COMMON, basis="points", memory=m),
    "cca of landmarks": lambda m: KernelCCA(4, **RBF, **COMMON, basis=Landmarks(60), memory=m),
    "cca of features": lambda m: KernelCCA(4, **RBF, **COMMON, basis=RandomFeatures(200), memory=m),
    "linear cca": lambda m: KernelCCA(4, **COMMON, memory=m),
}


# Fits of matrices of all rows, or of all targets.
LARGE = ("cca of points", "supervised, kernel of y")


def work_bytes(work):
    """The most that was held beyond what is left at the end, and the error that refused it."""
    left, refused = [], []

    def attempt():
        try:
            left.append(work())
        except (ValueError, MemoryError) as error:
            refused.append(str(error))

    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        attempt()
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before - (after - before if left else 0), refused


def quietly(work):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer rows to choose from, and so on
        return work()


def check_inside(name, n, d, memory, **hurried):
    X = generator(n).standard_normal((n, d)) * (1 + np.arange(d)) ** -0.7
    make = FITS[name]
    # A target or another view, where one is needed.
    beside = [np.sin(X[:, :4])] if name.startswith("supervised") or "cca" in name else []
    quietly(lambda: make("2GB").fit(X[:300], *(y[:300] for y in beside)))  # imports and compiles
    model = make(memory)
    model.set_params(**{key: value for key, value in hurried.items() if key in model.get_params()})
    used, refused = quietly(lambda: work_bytes(lambda: model.fit(X, *beside)))
    assert used <= memory + SMALL, f"{used / 1e6:.1f} MB of {memory / 1e6:.0f}: {refused}"
    if refused:
        assert re.search(r"memory.*\d.*(at least|aise memory|needs)", refused[0]), refused[0]
    return refused


@pytest.mark.parametrize("memory", [6 * 10**6, slow(60 * 10**6)])
@pytest.mark.parametrize("name", FITS)
def test_fits_stay_inside_or_are_refused(name, memory):
    refused = check_inside(name, 1100, 5, memory)
    assert memory < 10**7 or not refused or name in LARGE, "60 MB are enough for 1,100 rows"


@pytest.mark.parametrize("name", LARGE)
def test_what_refusals_ask_for_is_enough(name):
    """Each view of two asks for its own share first, and then for both."""
    refusals, least = 0, 10**7
    while refused := check_inside(name, 700, 5, least):
        refusals += 1
        least = int(re.search(r"memory=(\d{5,})", refused[0])[1])
    assert 1 <= refusals <= 2


def test_components_of_a_share_that_do_not_fit_are_refused():
    """The first components fit, and as many more as the share needs do not."""
    assert check_inside("share", 6000, 20, 32 * 10**6, tol=1e-2, max_iter=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_twenty_thousand_rows_in_100_MB(name):
    # What a pass holds is seen in the first ones.
    check_inside(name, 20_000, 20, 10**8, tol=1e-2, max_iter=3, n_passes=1)


@pytest.mark.parametrize("memory", [3 * 10**6, 60 * 10**6])
@pytest.mark.parametrize("basis", ["points", "landmarks"])
@pytest.mark.parametrize("name", PREIMAGES)
def test_preimages_stay_inside(name, basis, memory):
    check_preimages(name, basis, 1100, 5, memory)


@pytest.mark.slow
@pytest.mark.parametrize("basis", ["points", "landmarks"])
@pytest.mark.parametrize("name", PREIMAGES)
def test_preimages_of_twenty_thousand_rows(name, basis):
    check_preimages(name, basis, 20_000, 20, 10**8)


def check_preimages(name, basis, n, d, memory):
    X = generator(n).standard_normal((n, d))
    model = pca(basis=basis, preimage=name, tol=1e-2)("1GB").fit(X)
    S = 0.1 * generator(1).standard_normal((200, 4))
    for work in (lambda: model.inverse_transform(S), lambda: model.denoise(X[:200])):
        quietly(work)
        model._kept = None
        model.expansion_.basis.engine.memory = memory
        used, refused = quietly(lambda work=work: work_bytes(work))
        assert used <= memory + SMALL and not refused, f"{used / 1e6:.1f} MB: {refused}"


def test_patches_stay_inside():
    image = generator(5).random((60, 60))

    def work(memory):
        return PatchDenoiser(8, n_patches=1500, **COMMON, memory=memory).fit(image)

    quietly(lambda: work("1GB"))
    for memory in (8 * 10**6, 60 * 10**6):
        used, refused = quietly(lambda m=memory: work_bytes(lambda: work(m)))
        assert used <= memory + SMALL, f"{used / 1e6:.1f} MB: {refused}"


EXPLAINED = {
    "many columns": (300, 300, {"n_components": 20}),
    "many components": (500, 6, {"n_components": 120}),
    "many landmarks": (
        1000,
        5,
        {"n_components": 4, "basis": Landmarks(400, SELECTORS["Uniform"]())},
    ),
    "features": (2000, 5, {"n_components": 4, "basis": RandomFeatures(400)}),
    "columns": (2000, 40, {"n_components": 30, "kernel": "linear", "basis": "columns"}),
    "points": (700, 5, {"n_components": 4, "basis": "points"}),
    **{
        f"kernel {name}": (400, 8, {"n_components": 4, "kernel": name, "gamma": None})
        for name in sorted(set(KERNELS) - {"precomputed"})
    },
}


@pytest.mark.parametrize("memory", [4 * 10**6, 8 * 10**6])
@pytest.mark.parametrize("name", EXPLAINED)
def test_explanations_stay_inside(name, memory):
    """Attribution and significance, over kernels, bases, and shapes that are large in one way."""
    n, d, settings = EXPLAINED[name]
    X = np.abs(generator(n, d).standard_normal((n, d)))
    model = quietly(lambda: KernelPCA(**RBF | COMMON | settings, memory="1GB").fit(X))
    few = {"n_permutations": 19, "n_bootstrap": 2, "random_state": 0}
    for method, options in (("attribute", {}), ("significance", few)):
        work = getattr(model, method)
        quietly(lambda work=work, options=options: work(X[:30], **options))
        model.expansion_.basis.engine.memory = model.memory = memory
        used, refused = quietly(lambda w=work, o=options: work_bytes(lambda: w(X, **o)))
        assert used <= memory + SMALL, f"{method}: {used / 1e6:.1f} MB of {memory / 1e6:.0f}"
        assert not refused or "memory" in refused[0]


@pytest.mark.parametrize("method", ["transform", "reconstruction_error"])
@pytest.mark.parametrize("basis", ["points", "landmarks"])
def test_scores_stay_inside(basis, method):
    n, memory = 3000, 2 * 10**6
    X = generator(n).standard_normal((n, 3))
    model = pca(basis=basis, tol=1e-3)("1GB").fit(X)
    model.expansion_.basis.engine.memory = memory
    function = getattr(model, method)
    function(X[:10])
    used, refused = work_bytes(lambda: function(X))
    # The answer with its mean taken out, and in the type of the rows.
    assert used <= memory + 8 * n * 5 + SMALL and not refused


@pytest.mark.parametrize(("n", "r"), [(1500, 2), (1500, 16), (4000, 4)])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_the_least_that_is_named_is_enough(n, r, kernel):
    X = generator(n).standard_normal((n, 3))
    given = COMMON | {"kernel": kernel, "gamma": 0.1, "eigen_solver": "krylov", "tol": 1e-4}
    KernelPCA(r, **given, memory="1GB").fit(X[:700])
    with pytest.raises(ValueError, match=r"cannot hold one tile .* beside the vectors") as error:
        KernelPCA(r, **given, memory="1MB").fit(X)
    least = int(re.search(r"memory=(\d+)\.$", str(error.value))[1])
    model = KernelPCA(r, **given, copy_X=False, memory=least)
    used, refused = work_bytes(lambda: model.fit(X))
    assert not refused and model.certificate_.converged
    assert used <= least + SMALL, f"{used / 1e6:.1f} MB of {least / 1e6:.1f}"


@pytest.mark.parametrize("r", [4, 600, None])
def test_dense_uses_what_it_says(r):
    """The estimate that decides whether the matrix fits is an upper bound of what is used."""
    n = 900
    X = generator(n).standard_normal((n, 3))
    model = KernelPCA(r, **RBF, **COMMON, eigen_solver="dense", copy_X=False, memory="1GB")
    used, _ = work_bytes(lambda: model.fit(X))
    said = model.plan_.chosen.bytes
    # A tile in flight may be larger than the least where there is room.
    assert used <= said + 5 * 10**6, f"{used / 1e6:.1f} MB, {said / 1e6:.1f} said"
    assert said <= 50 * n * n


def test_more_memory_is_used_when_there_is_more():
    """Tiles are kept while they fit: otherwise every test here would pass for no reason."""
    X = generator(2500).standard_normal((2500, 3))
    peaks = []
    for memory in (10**7, 8 * 10**7):
        model = pca(tol=1e-3, eigen_solver="krylov")(memory)
        peaks.append(peak_bytes(lambda model=model: model.fit(X)))
    assert peaks[1] > peaks[0] + 2500 * 2500 * 4 / 4


def test_a_broken_budget_is_seen(monkeypatch):
    """The measure works: a store that keeps every tile fails the very assertion above."""

    def reserve(self, shape, dtype):
        return np.empty(shape, dtype)

    monkeypatch.setattr(TileStore, "reserve", reserve)
    X = generator(4000).standard_normal((4000, 3))
    model = pca(tol=1e-4, eigen_solver="krylov")("12MB")
    used, refused = work_bytes(lambda: model.fit(X))
    assert not refused and used > 12 * 10**6 + SMALL


@pytest.mark.parametrize("seed", [0, slow(1), slow(2)])
def test_graphs_of_neighbors_stay_inside(seed):
    """A tenth of the rows are more neighbors than fit: as many as do, or a refusal."""
    rng = generator(seed)
    n, memory = int(rng.integers(2500, 4000)), int(rng.integers(15, 30)) * 10**6
    X = rng.standard_normal((n, int(rng.integers(3, 40)))) * np.exp(rng.standard_normal((n, 1)))
    SpectralEmbedding(2, n_neighbors=5, **COMMON).fit(X[:400])
    model = SpectralEmbedding(2, n_neighbors=None, **COMMON, memory=memory)
    with pytest.warns(MercerWarning, match=r"neighbors are used.*raise memory to \d+"):
        used, refused = work_bytes(lambda: model.fit(X))
    assert not refused and used <= memory + SMALL, f"{used / 1e6:.1f} MB of {memory / 1e6:.0f}"
    with pytest.raises(ValueError, match="Give n_neighbors=") as error:
        model.set_params(n_neighbors=n // 5).fit(X)
    least = int(re.search(r"memory=(\d+)\.$", str(error.value))[1])
    model.set_params(memory=least)
    used, refused = work_bytes(lambda: model.fit(X))
    assert not refused and used <= least + SMALL


@pytest.mark.parametrize("seed", range(2))
def test_wide_rows_beside_a_matrix_that_is_kept(seed):
    """Tiles of wide rows take most of a budget whose half would hold the kernel matrix."""
    rng = generator(seed)
    n, d, memory = int(rng.integers(600, 800)), int(rng.integers(2200, 2800)), 12 * 10**6
    X = rng.standard_normal((n, d)) * (1 + np.arange(d)) ** -0.5
    settings = {"kernel": "rbf", "gamma": "median", "gain": "t", "n_passes": 1}
    for least in ("1GB", memory):
        model = HebbianKernelPCA(4, **settings, **COMMON | {"n_jobs": 1}, memory=least)
        some = X[:60] if least != memory else X
        used, refused = quietly(lambda model=model, some=some: work_bytes(lambda: model.fit(some)))
    assert not refused and used <= memory + SMALL, f"{used / 1e6:.1f} MB"


# Rows, columns and budgets; of sparse rows one number in a hundred is not zero.
SHAPES = {
    "tall": (3000, 5, 6 * 10**6),
    "mid": (800, 150, 6 * 10**6),
    "wide": (500, 2500, 12 * 10**6),
    "sparse": (500, 3000, 10 * 10**6),
}
DRAWN_KERNELS = ("rbf", "linear", "poly", "cosine", "laplacian", "sigmoid")


def check_drawn(seed):
    """An estimator, a kernel, a precision and a shape: within the budget, or refused."""
    rng = generator(seed)
    name, shape = (str(rng.choice(list(of))) for of in (FITS, SHAPES))
    n, d, memory = SHAPES[shape]
    dtype = rng.choice([np.float32, np.float64])
    if shape == "sparse":
        X = random_rows(n, d, 0.01, format="csr", dtype=dtype, random_state=seed)
    else:
        X = rng.standard_normal((n, d)).astype(dtype) * (1 + np.arange(d, dtype=dtype)) ** -0.5
    model = FITS[name](memory)
    hurried = {"max_iter": 3, "tol": 1e-2, "n_passes": 1, "n_init": 1}
    if shape == "sparse" and not model.__sklearn_tags__().input_tags.sparse:
        return
    if "kernel" in model.get_params() and "columns" not in name:
        hurried |= {"kernel": str(rng.choice(DRAWN_KERNELS)), "gamma": None}
    model.set_params(**{key: value for key, value in hurried.items() if key in model.get_params()})
    beside = []
    if name.startswith("supervised") or "cca" in name:
        beside = [np.sin(rng.standard_normal((n, 4)))]
    # Imports and compiles.
    few = clone(model).set_params(memory="1GB")
    quietly(lambda: work_bytes(lambda: few.fit(X[:60], *(y[:60] for y in beside))))
    used, refused = quietly(lambda: work_bytes(lambda: model.fit(X, *beside)))
    # Of a fit that was refused nothing is left, so that its copy of X would count.
    copied = 8 * n * d if (refused or name == "novelty") and shape != "sparse" else 0
    case = f"{name}, {shape}, {np.dtype(dtype)}, {hurried.get('kernel')}: {refused}"
    assert used <= memory + copied + SMALL, f"{used / 1e6:.1f} MB of {memory / 1e6:.0f}, {case}"
    if refused and "memory" in refused[0]:
        assert re.search(r"at least|aise memory|needs", refused[0]), case


@pytest.mark.parametrize("seed", range(6))
def test_drawn_fits_stay_inside(seed):
    check_drawn(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 250))
def test_many_drawn_fits_stay_inside(seed):
    check_drawn(seed)


GROWTH = """
import gc, json, resource, sys, warnings
warnings.simplefilter("ignore")
from mercer import HebbianKernelPCA, KernelPCA, StreamingKernelPCA
few, path, memory, kind = sys.argv[1:]
given = {"kernel": "rbf", "gamma": 0.01, "n_jobs": 2, "random_state": 0}
make = {
    "landmarks": lambda m: KernelPCA(4, **given, basis="landmarks", memory=m),
    "stream": lambda m: StreamingKernelPCA(4, **given, basis="features", budget=100, memory=m),
    "hebbian": lambda m: HebbianKernelPCA(4, **given, n_passes=1, memory=m),
}[kind]
make("1GB").fit(few)
gc.collect()
peak = lambda: 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before, refused = peak(), ""
try:
    make(int(memory)).fit(path)
except ValueError as error:
    refused = str(error)
print(json.dumps([peak() - before, refused]))
"""
# What allocators keep beside what is in use: Arrow's for each thread, and that of C.
ALLOCATORS = 20 * 10**6
# Rows, columns, rows of a group of Parquet, and the budget in MB.
PARQUET = {
    "long": (300_000, 20, 30_000, 30),
    "one group": (1_000_000, 20, 1_000_000, 40),
    "wide": (6_000, 600, 6_000, 60),
    "small groups": (60_000, 40, 2_000, 30),
}


def check_parquet(tmp_path, shape, kind, seed=0):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    n, d, group, megabytes = PARQUET[shape]
    X = generator(seed).standard_normal((n, d))
    table = pa.table({f"c{i}": X[:, i] for i in range(d)})
    few, path = tmp_path / "few.parquet", tmp_path / "x.parquet"
    parquet.write_table(table.slice(0, 300), few)
    parquet.write_table(table, path, row_group_size=group)
    memory = megabytes * 10**6
    command = [sys.executable, "-c", GROWTH, str(few), str(path), str(memory), kind]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    grown, refused = json.loads(ended.stdout)
    assert grown <= memory + ALLOCATORS, f"{grown / 1e6:.1f} MB of {megabytes}: {refused}"
    assert not refused or "memory" in refused


@pytest.mark.skipif(sys.platform != "linux", reason="measures the peak of Linux")
def test_parquet_stays_inside(tmp_path):
    """What Arrow decodes counts, of which NumPy does not know."""
    check_parquet(tmp_path, "long", "landmarks")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measures the peak of Linux")
@pytest.mark.parametrize("kind", ["landmarks", "stream", "hebbian"])
@pytest.mark.parametrize("shape", PARQUET)
def test_parquet_of_any_shape_stays_inside(shape, kind, tmp_path):
    check_parquet(tmp_path, shape, kind, seed=1)


def test_labels_of_many_rows_are_held_once(tmp_path):
    """Labels take most of the budget: nothing of their size stands beside them."""
    parquet, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    X, memory = generator(3).standard_normal((800_000, 2)).astype("f4"), 5_000_000
    X[::2] += 6
    path = tmp_path / "rows.parquet"
    table = pa.table({"a": X[:, 0], "b": X[:, 1]})
    parquet.write_table(table, path, row_group_size=5000, use_dictionary=False)
    settings = {"gamma": 0.5, "basis": Landmarks(points=X[:12].astype(float)), "random_state": 0}
    model = SpectralClustering(2, n_init=1, **settings, n_jobs=1, memory=memory)
    used, refused = quietly(lambda: work_bytes(lambda: model.fit(path)))
    assert not refused, refused
    assert used < model.labels_.nbytes == 3_200_000, f"{used / 1e6:.1f} MB"
    share = np.mean(model.labels_ == np.arange(800_000) % 2)
    assert max(share, 1 - share) > 0.99
    np.testing.assert_array_equal(model.predict(path), model.labels_)
