"""Torch devices: the same answers as NumPy, tensors in and out, budgets, and the fused tile.

The engine runs on the CPU here and on CUDA where there is a device; the fused tile runs in
Triton's interpreter where Triton is installed.
"""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from contracts import check_engine, generator
from sklearn.base import clone

from mercer import (
    ClassicalMDS,
    HebbianKernelPCA,
    KernelPCA,
    NoveltyDetector,
    PatchDenoiser,
    SpectralClustering,
    StreamingKernelPCA,
    load,
    plan,
)
from mercer.bases import Landmarks, RandomFeatures
from mercer.compute import make_engine
from mercer.exceptions import MercerWarning
from mercer.kernels import RBF, Chi2, Cosine, Laplacian, Linear, Matern, Polynomial, Sigmoid
from mercer.metrics import subspace_error

torch = pytest.importorskip("torch")
from mercer.compute.device import PagedRows, TorchEngine, check_device, exact_products  # noqa: E402

CPU = torch.device("cpu")
DEVICES = [CPU] + (["cuda"] if torch.cuda.is_available() else [])
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
KERNELS = [
    RBF(0.2),
    Matern(0.2, 1.5),
    Polynomial(2, 0.3, 1.0),
    Linear(),
    Sigmoid(0.02, 0.1),
    Cosine(),
    Laplacian(0.3),
    Chi2(0.3),
]


def rows(n=400, d=6, *seed):
    return np.abs(generator(n, d, *seed).standard_normal((n, d)) * np.linspace(2, 0.3, d))


@pytest.fixture(params=DEVICES, ids=str)
def device(request):
    return request.param


class OnHost(TorchEngine):
    """An engine whose results are NumPy arrays, for the contract."""

    def pair_rows(self, pairs, V, store=None):
        return super().pair_rows(pairs, V, store).cpu().numpy()

    def fill(self, pairs, out):
        return super().fill(pairs, self.asarray(out)).cpu().numpy()


@pytest.mark.parametrize("memory", [10**9, 3 * 10**6])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
def test_engine(kernel, memory, device):
    X, Z = rows(700), rows(90, 6, 1)
    engine = OnHost(memory, device)
    check_engine(engine, kernel.pairs(engine.place(X)), kernel(X))
    check_engine(engine, kernel.pairs(engine.place(X), engine.place(Z)), kernel(X, Z))


@pytest.mark.parametrize("solver", ["krylov", "dense", "gram-power", "arpack", "randomized"])
def test_solvers_agree_with_numpy(solver, device):
    X = rows(500)
    options = {"kernel": "rbf", "gamma": "median", "eigen_solver": solver, "random_state": 0}
    ours = KernelPCA(4, device=device, **options).fit(X)
    host = KernelPCA(4, **options).fit(X)
    assert isinstance(ours.eigenvectors_, np.ndarray)
    # One pass of Gram power ends where its single-precision rows took it.
    close = 1e-5 if solver == "gram-power" else 1e-10
    np.testing.assert_allclose(ours.eigenvalues_, host.eigenvalues_, rtol=close)
    most = max(1e-7, 100 * close)
    np.testing.assert_allclose(ours.transform(X[:20]), host.transform(X[:20]), atol=most)
    np.testing.assert_allclose(
        ours.reconstruction_error(X[:20]), host.reconstruction_error(X[:20]), atol=most
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_agree_with_numpy(kernel, dtype, device):
    X = rows(600).astype(dtype)
    ours = KernelPCA(3, kernel=kernel, eigen_solver="krylov", device=device, random_state=0).fit(X)
    host = KernelPCA(3, kernel=kernel, eigen_solver="dense").fit(X.astype(float))
    assert ours.eigenvalues_.dtype == dtype
    close = 1e-9 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(ours.eigenvalues_, host.eigenvalues_, rtol=close)
    assert subspace_error(ours.eigenvectors_, host.eigenvectors_) < 100 * close


@pytest.mark.parametrize("basis", ["landmarks", "features"])
def test_bases_agree_with_numpy(basis, device):
    X = rows(900)
    options = {"kernel": "rbf", "gamma": "median", "basis": basis, "random_state": 0}
    ours = KernelPCA(4, device=device, **options).fit(X)
    host = KernelPCA(4, **options).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, host.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(ours.transform(X[:50]), host.transform(X[:50]), atol=1e-8)
    np.testing.assert_allclose(
        ours.certificate_.captured_variance, host.certificate_.captured_variance, rtol=1e-6
    )


@pytest.mark.parametrize("solver", ["krylov", "dense", "gram-power"])
def test_precomputed_agrees_with_numpy(solver, device):
    K = RBF(0.2)(rows(300))
    options = {"kernel": "precomputed", "eigen_solver": solver, "random_state": 0}
    ours, host = (KernelPCA(3, device=where, **options).fit(K) for where in (device, None))
    np.testing.assert_allclose(ours.eigenvalues_, host.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(ours.transform(K[:9]), host.transform(K[:9]), atol=1e-9)


@pytest.mark.parametrize("gain", ["auto", "smd", "et"])
def test_hebbian_passes_agree_with_numpy(gain, device):
    X = rows(300)
    options = {"kernel": "rbf", "gamma": "median", "n_passes": 2, "random_state": 0}
    ours, host = (
        HebbianKernelPCA(3, gain=gain, device=where, **options).fit(X) for where in (device, None)
    )
    np.testing.assert_allclose(ours.eigenvalues_, host.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(ours.history_.changes, host.history_.changes, rtol=1e-6)
    np.testing.assert_allclose(ours.transform(X[:9]), host.transform(X[:9]), atol=1e-8)
    ours.partial_fit(X[:20])
    assert np.isfinite(ours.transform(X[:9])).all()


def test_rows_that_do_not_fit_are_streamed(device):
    X = rows(3000, 10)
    options = {"kernel": "rbf", "gamma": "median", "eigen_solver": "krylov", "random_state": 0}
    ours = KernelPCA(4, device=device, memory=900_000, **options).fit(X)
    assert isinstance(ours.expansion_.basis.points, PagedRows)
    host = KernelPCA(4, **options).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, host.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(ours.transform(X[:20]), host.transform(X[:20]), atol=1e-7)


def test_fit_goes_on_from_its_checkpoint(tmp_path, device, monkeypatch):
    X, products = rows(900), []
    whole = TorchEngine.pair_rows

    def counted(self, pairs, V, store=None):
        products.append(V.shape)
        return whole(self, pairs, V, store)

    def stop(state):
        if state.n_passes == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(TorchEngine, "pair_rows", counted)
    options = {"kernel": "rbf", "gamma": "median", "eigen_solver": "krylov", "random_state": 0}
    options |= {"device": device}
    plain = KernelPCA(4, **options).fit(X)
    needed = len(products)
    path = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        KernelPCA(4, callback=stop, checkpoint=path, **options).fit(X)
    products.clear()
    again = KernelPCA(4, checkpoint=path, **options).fit(X)
    np.testing.assert_allclose(again.eigenvalues_, plain.eigenvalues_, rtol=1e-9)
    assert len(products) <= needed - 3
    assert not path.exists()


def test_tight_budget_gives_smaller_tiles():
    X = rows(1200)
    sides = [TorchEngine(memory, CPU).tiling(RBF(0.2).pairs(X))[0] for memory in (10**9, 10**7)]
    assert sides[0] > sides[1]
    with pytest.raises(ValueError, match="cannot hold one tile"):
        TorchEngine(1000, CPU).tiling(RBF(0.2).pairs(X))


def test_out_of_memory_drops_the_tiles_then_says_what_fits(monkeypatch):
    engine, X = TorchEngine(10**9, CPU), torch.as_tensor(rows(300))
    calls = []
    whole = TorchEngine._product

    def short(self, pairs, V, store):
        calls.append(self.memory)
        if self.memory > 3 * 10**8:
            raise torch.OutOfMemoryError("no")
        return whole(self, pairs, V, store)

    monkeypatch.setattr(TorchEngine, "_product", short)
    pairs, V = RBF(0.2).pairs(X), torch.ones(300, 2, dtype=torch.float64)
    expected = torch.as_tensor(RBF(0.2)(X.numpy()) @ V.numpy())
    assert torch.allclose(engine.pair_rows(pairs, V), expected)
    assert len(calls) == 3

    def never(self, pairs, V, store):
        raise torch.OutOfMemoryError("no")

    monkeypatch.setattr(TorchEngine, "_product", never)
    with pytest.raises(MemoryError, match=r"too little for one tile.*leave device out"):
        engine.pair_rows(pairs, V)


def test_tf32_is_never_silent():
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        with exact_products():
            assert not torch.backends.cuda.matmul.allow_tf32
        assert torch.backends.cuda.matmul.allow_tf32
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("nowhere", "not a torch device|must be 'cpu', 'cuda'"),
        (1.5, "not a torch device|is not supported|must be 'cpu', 'cuda'"),
        ("meta", "is not supported|must be 'cpu', 'cuda'"),
        pytest.param(
            "cuda",
            "no CUDA device",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is one"),
        ),
    ],
)
def test_unknown_device(device, message):
    with pytest.raises(ValueError, match=message):
        KernelPCA(2, device=device).fit(rows(20))
    with pytest.raises(ValueError, match=message):
        check_device(device)


def test_sparse_rows_stay_in_main_memory():
    from scipy import sparse

    with pytest.raises(ValueError, match="Sparse rows are computed on in main memory"):
        KernelPCA(2, kernel="rbf", device=CPU).fit(sparse.csr_matrix(rows(30)))


@pytest.mark.parametrize("forgetting", [1.0, 0.99])
@pytest.mark.parametrize("basis", ["landmarks", "features"])
def test_streams_agree_with_numpy(basis, forgetting, device, tmp_path):
    X = rows(900)
    recipe = Landmarks(points=X[:40]) if basis == "landmarks" else RandomFeatures(60)
    options = {"kernel": "rbf", "gamma": 0.2, "forgetting": forgetting, "random_state": 0}
    models = [StreamingKernelPCA(4, basis=recipe, device=w, **options) for w in (device, None)]
    for model in models:
        for start in range(0, 900, 300):
            model.partial_fit(X[start : start + 300])
    ours, host = models
    assert ours.expansion_.basis.engine.device is not None
    np.testing.assert_allclose(ours.eigenvalues_, host.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(ours.transform(X[:30]), host.transform(X[:30]), atol=1e-7)
    np.testing.assert_allclose(ours.lost_share_, host.lost_share_, rtol=1e-6, atol=1e-12)
    ours.save(tmp_path / "stream.mercer")
    again = load(tmp_path / "stream.mercer", device="cpu")
    np.testing.assert_allclose(again.transform(X[:30]), host.transform(X[:30]), atol=1e-7)
    both = [clone(model).fit(X[:500]).merge(model) for model in models]
    np.testing.assert_allclose(both[0].eigenvalues_, both[1].eigenvalues_, rtol=1e-8)


@pytest.mark.parametrize("basis", ["points", "landmarks", "features"])
def test_novelty_agrees_with_numpy(basis, device):
    X, new = rows(500), rows(40, 6, 1) + 1.0
    options = {"n_components": 5, "basis": basis, "random_state": 0}
    ours, host = (NoveltyDetector(device=where, **options).fit(X) for where in (device, None))
    assert ours.model_.expansion_.basis.engine.device is not None
    np.testing.assert_allclose(ours.offset_, host.offset_, rtol=1e-7)
    np.testing.assert_allclose(ours.score_samples(new), host.score_samples(new), rtol=1e-7)
    np.testing.assert_array_equal(ours.predict(new), host.predict(new))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_denoiser_agrees_with_numpy(kernel, device):
    noisy = np.add.outer(np.sin(np.arange(40) / 5), np.arange(30) / 20)
    noisy = noisy + 0.1 * generator(40, 30).standard_normal(noisy.shape)
    options = {"kernel": kernel, "n_components": 8, "n_patches": 300, "random_state": 0}
    ours, host = (PatchDenoiser(device=where, **options).fit(noisy) for where in (device, None))
    assert ours.model_.expansion_.basis.engine.device is not None
    np.testing.assert_allclose(ours.denoise(noisy), host.denoise(noisy), atol=1e-5)


@pytest.mark.parametrize("basis", ["points", "landmarks"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_spectral_clustering_agrees_with_numpy(basis, dtype, device):
    X = rows(700).astype(dtype)
    X[:300] += 4
    X[300:450, 0] -= 6
    tol = 1e-10 if dtype == np.float64 else 1e-5
    options = {"n_clusters": 3, "gamma": 0.3, "basis": basis, "random_state": 0, "tol": tol}
    ours, host = (SpectralClustering(device=where, **options).fit(X) for where in (device, None))
    assert ours.map_.basis.engine.device is not None
    close = 1e-9 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(ours.eigenvalues_, host.eigenvalues_, rtol=close)
    np.testing.assert_array_equal(ours.labels_, host.labels_)
    np.testing.assert_array_equal(ours.predict(X[:50] + 0.1), host.predict(X[:50] + 0.1))


@pytest.mark.parametrize(
    "model",
    [SpectralClustering(2, affinity="precomputed"), StreamingKernelPCA(2), ClassicalMDS(2)],
)
def test_estimators_that_leave_the_device_say_so(model, monkeypatch):
    X = torch.as_tensor(RBF(0.2)(rows(60)))
    monkeypatch.setattr("mercer.estimators._checks.is_on_device", torch.is_tensor)
    with pytest.warns(MercerWarning, match="computes in main memory"):
        clone(model).fit(X)


def test_word_cpu_means_threads():
    assert not isinstance(make_engine(device="cpu", memory=10**7), TorchEngine)
    assert isinstance(make_engine(device=CPU, memory=10**7), TorchEngine)


def test_model_survives_pickling():
    X = rows(300)
    model = KernelPCA(3, kernel="rbf", device=CPU).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_plan_names_the_device():
    found = plan(rows(500), 4, device=CPU)
    assert "on cpu" in repr(found) or "thread" in repr(found)
    assert found.method.startswith(("krylov", "dense", "arpack"))


def run_interpreted(code):
    """Run code in an interpreter whose Triton kernels are interpreted."""
    pytest.importorskip("triton")
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]


FUSED = """
import numpy as np, torch
from mercer.compute import device, fused
from mercer.kernels import *
device.FUSED_COLUMNS = 0
engine = device.TorchEngine(10**9, torch.device("cpu"))
rng = np.random.default_rng(0)
# Widths and blocks of one part and of two, and widths that are looped over.
for d, b in ((3, 17), (70, 40), (140, 130)):
    X, Z = rng.normal(size=(130, d)), rng.normal(size=(60, d))
    V, W = rng.normal(size=(60, b)), rng.normal(size=(130, b))
    kernels = (RBF(.5/d), Matern(.5/d, .5), Matern(.5/d, 1.5), Matern(.5/d, 2.5),
               RationalQuadratic(.5/d, 1.3), Polynomial(3, 1/d, 1), Linear(), Sigmoid(.3/d, .2),
               Cosine())
    for k in kernels if d == 3 else kernels[:1]:
        assert engine.fuses(k)
        for dtype, most in (("float32", 2e-6), ("float16", 2e-3)):
            x, z = engine.place(X), engine.place(Z)
            for pairs, U, K in ((k.pairs(x, z, dtype=dtype), V, k(X, Z)),
                                (k.pairs(x, dtype=dtype), W, k(X))):
                error = np.linalg.norm(engine.pair_rows(pairs, U).numpy() - K @ U)
                assert error < most * np.linalg.norm(K @ U), (k, d, b, dtype, error)
                assert pairs.prepared
            U = engine.rounded(W, np.dtype(dtype), k)
            error = np.linalg.norm(engine.pair_rows(pairs, U).numpy() - K @ np.asarray(U))
            assert error < most * np.linalg.norm(K @ np.asarray(U)), (k, d, b, dtype, error)
            assert np.abs(np.asarray(U) - W).max() < 1e-3 * np.abs(W).max()
# The same product, shared out between devices.
device.SHARED_PAIRS, fused.PANEL = 0, 256
X, W = rng.normal(size=(500, 5)), rng.normal(size=(500, 4))
for count, m in ((1, None), (2, None), (3, 200)):
    engine.devices = count * [torch.device("cpu")]
    Z = None if m is None else engine.place(X[:m])
    K, U = RBF(.1)(X, Z if m is None else X[:m]), W[:m]
    out = np.asarray(engine.pair_rows(RBF(.1).pairs(engine.place(X), Z, dtype="float32"), U))
    assert np.linalg.norm(out - K @ U) < 2e-6 * np.linalg.norm(K @ U), (count, m)
pairs = RBF(1.0).pairs(engine.place(1e6 * X), dtype="float32")
engine.pair_rows(pairs, W)
assert pairs.prepared["precision"] == "tf32x3"
"""

FIT = """
import numpy as np, torch
from mercer import KernelPCA
from mercer.compute import device
from mercer.compute.device import PagedRows
device.FUSED_COLUMNS = 0
rng = np.random.default_rng(0)
X = rng.normal(size=(250, 8)) * np.linspace(2, .3, 8)
host = KernelPCA(4, kernel="rbf", gamma="median", eigen_solver="dense").fit(X)
passes = []
for dtype, tol, most in ((np.float32, 1e-5, 1e-6), (np.float64, 0, 1e-10)):
    ours = KernelPCA(4, kernel="rbf", gamma="median", eigen_solver="krylov", tol=tol,
                     random_state=0, device=torch.device("cpu")).fit(X.astype(dtype))
    assert ours.expansion_.basis.engine.fuses(ours.kernel_)
    assert ours.certificate_.converged
    assert np.max(np.abs(ours.eigenvalues_ / host.eigenvalues_ - 1)) < most
    bound = ours.certificate_.eigenvalue_upper - ours.certificate_.eigenvalue_lower
    rounding = most * host.eigenvalues_  # of the rows themselves
    assert np.all(np.abs(ours.eigenvalues_ - host.eigenvalues_) <= bound + rounding)
    scores = ours.transform(X[:30].astype(dtype))
    assert np.abs(scores - host.transform(X[:30])).max() < 1e-5
# Rows that do not fit are streamed through the fused tile too.
engine = type(ours.expansion_.basis.engine)(100_000, torch.device("cpu"))
some, V = PagedRows(X, engine), torch.ones(250, 2, dtype=torch.float64)
pairs = ours.kernel_.pairs(some, dtype="float32")
K = ours.kernel_(X)
assert np.abs(engine.pair_rows(pairs, V).numpy() - K @ V.numpy()).max() < 1e-5 * K.sum(1).max()
assert "columns" not in pairs.prepared
"""


HOLLOW = """
import numpy as np, torch
from mercer import SpectralClustering
from mercer.compute import device
from mercer.kernels import RBF, Matern
from mercer.kernels import Hollow
device.FUSED_COLUMNS = 0
engine = device.TorchEngine(10**9, torch.device("cpu"))
rng = np.random.default_rng(0)
X, V = rng.normal(size=(150, 3)), rng.normal(size=(150, 5))
X[0] += 9.0  # a row far from all others: with itself on the diagonal it would be tied to itself
for kernel in (RBF(.5), Matern(.5, .5)):
    K = kernel(X) - np.diag(kernel.diag(X))
    for dtype, most in (("float32", 2e-6), ("float16", 2e-3)):
        pairs = Hollow(kernel).pairs(engine.place(X), dtype=dtype)
        found = engine.pair_rows(pairs, V).numpy()
        assert pairs.prepared
        assert np.linalg.norm(found - K @ V) < most * np.linalg.norm(K @ V), (kernel, dtype)
        # Its own value would be V[0].
        assert np.abs(found[0] - K[0] @ V).max() < 1e-3 * np.abs(V[0]).max(), (kernel, dtype)
X = X[1:]
X[:70] += 4.0
options = dict(gamma=.3, basis="points", eigen_solver="krylov", random_state=0)
host, ours = (SpectralClustering(2, device=where, **options).fit(X.astype(np.float32))
              for where in (None, torch.device("cpu")))
assert ours.map_.basis.engine.fuses(ours.kernel_)
assert np.abs(ours.eigenvalues_ - host.eigenvalues_).max() < 1e-5
assert np.array_equal(ours.labels_, host.labels_)
"""

SQUARES = """
import numpy as np, torch
from mercer import KernelPCA
from mercer.compute import device, make_engine
from mercer.compute.engine import TileStore
from mercer.kernels import RBF, Matern, RationalQuadratic
device.FUSED_COLUMNS = 0
engine, n = make_engine(device=torch.device("cpu")), 200
for seed, kernel in enumerate((RBF(.3), Matern(.2, .5), RationalQuadratic(.2, 1.0))):
    rng = np.random.default_rng(seed)
    X = engine.place(rng.normal(size=(n, 3)))
    for dtype, b in (("float32", 3), ("float16", 3), ("float16", 90)):
        pairs, store = kernel.pairs(X, dtype=dtype), TileStore(weights=np.ones(n))
        engine.pair_rows(pairs, rng.normal(size=(n, b)), store)
        # Of the matrix as it is multiplied.
        K = engine.pair_rows(pairs, np.eye(n)).numpy()
        assert abs(store.sums[0] / (K * K).sum() - 1) < 2e-7, (kernel, dtype, b)
    store = TileStore(weights=np.arange(n) + 1.0)
    engine.pair_rows(kernel.pairs(X, dtype="float16"), np.ones((n, 1)), store)
    assert store.sums is None, "of no use to weights"
for seed in range(3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 4)) * [2, 1.2, .7, .3]
    if seed == 2:
        X = np.round(X)  # copies: entries of vectors that are equal are rounded alike
    K = RBF(.1)(X)
    K -= K.mean(axis=0)
    values = np.linalg.eigvalsh(K - K.mean(axis=1)[:, None])[::-1][:4]
    for tol in (0, 1e-6):
        model = KernelPCA(4, kernel="rbf", gamma=.1, eigen_solver="krylov", tol=tol,
                          random_state=seed, device=torch.device("cpu")).fit(X)
        found = model.certificate_
        assert found.n_proven == 4 and found.widest < 1e-8, found
        assert np.all(found.eigenvalue_lower <= values + 1e-10)
        assert np.all(values <= found.eigenvalue_upper + 1e-10)
"""

PIVOTS = """
import numpy as np, torch
from mercer.compute import steps_on_device
from mercer.kernels import RBF, Polynomial
from mercer.selectors import FullGreedy, greedy
greedy.PENDING = 4
assert steps_on_device(torch.ones(1)) and not steps_on_device(np.ones(1))
rng = np.random.default_rng(0)
# Copies, clouds of their own, and fewer independent rows than asked for.
X = np.repeat(rng.normal(size=(25, 3)), rng.integers(1, 4, 25), axis=0)
X[:20] += 5 * rng.normal(size=3)
for kernel in (RBF(.3), Polynomial(2, .2, 1.0)):
    host = FullGreedy().select(kernel, X, 12, rng)
    there = FullGreedy().select(kernel, torch.tensor(X), 12, rng)
    assert np.array_equal(host, there), (kernel, host, there)
single = FullGreedy().select(kernel, torch.tensor(X, dtype=torch.float32), 12, rng)
assert len(np.unique(X[single], axis=0)) == len(single) <= 11
"""


@pytest.mark.skipif(torch.cuda.is_available(), reason="the device runs the kernels themselves")
def test_fused_tiles():
    """Fits, hollow kernels, squares, pivots and products, one after the other in one process."""
    # The one that changes the size of panels comes last.
    codes = [FIT, HOLLOW, SQUARES, PIVOTS, FUSED]
    run_interpreted(f"for code in {codes!r}:\n    exec(code, {{}})")


@needs_cuda
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cuda_tensors_in_cuda_tensors_out(dtype):
    X = torch.as_tensor(rows(900).astype(dtype), device="cuda")
    model = KernelPCA(4, kernel="rbf", gamma="median", random_state=0).fit(X)
    host = KernelPCA(4, kernel="rbf", gamma="median").fit(X.cpu().numpy().astype(float))
    for result in (model.eigenvalues_, model.eigenvectors_, model.transform(X[:9])):
        assert result.is_cuda
        assert result.dtype == X.dtype
    scores = np.abs(model.transform(X).cpu().numpy())
    np.testing.assert_allclose(scores, np.abs(host.transform(X.cpu().numpy())), atol=1e-4)
    back = model.inverse_transform(model.transform(X[:50]))
    assert back.is_cuda
    assert back.shape == (50, X.shape[1])
    assert model.denoise(X[:20], noise=0.5).is_cuda
    assert model.score(X) <= 0


@needs_cuda
def test_models_of_the_host_take_tensors_and_the_other_way_round():
    X = rows(300)
    tensor = torch.as_tensor(X, device="cuda")
    host, ours = KernelPCA(3, kernel="rbf").fit(X), KernelPCA(3, kernel="rbf").fit(tensor)
    assert host.transform(tensor).is_cuda
    np.testing.assert_allclose(host.transform(tensor).cpu().numpy(), host.transform(X), atol=1e-9)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(host.transform(X)), atol=1e-6)


@needs_cuda
def test_saved_on_a_device_loaded_anywhere(tmp_path):
    X = rows(300)
    tensor = torch.as_tensor(X, device="cuda")
    model = KernelPCA(3, kernel="rbf").fit(tensor)
    model.save(tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    expected = model.transform(tensor).cpu().numpy()
    np.testing.assert_allclose(again.transform(X), expected, atol=1e-9)
    np.testing.assert_allclose(again.transform(tensor).cpu().numpy(), expected, atol=1e-9)


@needs_cuda
@pytest.mark.parametrize("basis", ["landmarks", "features"])
def test_cuda_reduced_bases(basis):
    X = torch.as_tensor(rows(5000), device="cuda")
    options = {"kernel": "rbf", "gamma": "median", "basis": basis, "random_state": 0}
    ours, host = KernelPCA(4, **options).fit(X), KernelPCA(4, **options).fit(X.cpu().numpy())
    np.testing.assert_allclose(ours.eigenvalues_.cpu().numpy(), host.eigenvalues_, rtol=1e-7)
    assert ours.inverse_transform(ours.transform(X[:20])).is_cuda


@needs_cuda
@pytest.mark.parametrize("library", ["cupy", "jax.numpy"])
def test_other_libraries_on_cuda(library):
    xp = pytest.importorskip(library)
    X = rows(500).astype(np.float32)
    model = KernelPCA(3, kernel="rbf", random_state=0).fit(xp.asarray(X))
    host = KernelPCA(3, kernel="rbf", random_state=0).fit(X)
    scores = model.transform(xp.asarray(X))
    assert type(scores) is type(xp.asarray(X))
    scores = scores.get() if hasattr(scores, "get") else np.asarray(scores)
    np.testing.assert_allclose(np.abs(scores), np.abs(host.transform(X)), atol=1e-4)


@needs_cuda
def test_cuda_bad_input():
    X = torch.as_tensor(rows(50), device="cuda")
    X[3, 2] = torch.nan
    with pytest.raises(ValueError, match="NaN or infinity"):
        KernelPCA(2).fit(X)
    with pytest.raises(ValueError, match="2D array"):
        KernelPCA(2).fit(X[0])
    with pytest.raises(ValueError, match="minimum of 2 rows"):
        KernelPCA(2).fit(X[:1])
    model = KernelPCA(2).fit(rows(50))
    with pytest.raises(ValueError, match="6 features"):
        model.transform(rows(9, 5))


@needs_cuda
def test_cuda_integers_and_constant_rows():
    X = torch.arange(60, device="cuda").reshape(20, 3)
    assert KernelPCA(1).fit(X).eigenvalues_[0] > 0
    with pytest.warns(UserWarning, match="no variance"):
        KernelPCA(1, kernel="rbf").fit(torch.ones(20, 3, device="cuda"))


@needs_cuda
def test_cuda_products_are_shared_out(monkeypatch):
    """Two logical devices on one card: panels of rows alternate between them."""
    monkeypatch.setattr("mercer.compute.device.SHARED_PAIRS", 0)
    monkeypatch.setattr("mercer.compute.fused.PANEL", 1024)
    X = torch.as_tensor(rows(5000, 20), device="cuda", dtype=torch.float32)
    V = torch.as_tensor(rows(5000, 8, 1), device="cuda")
    engine = TorchEngine(device="cuda")
    for dtype, most in (("float32", 1e-6), ("float16", 1e-3)):
        alone = engine.pair_rows(RBF(0.1).pairs(X, dtype=dtype), V)
        engine.devices = 2 * [engine.device]
        shared = engine.pair_rows(RBF(0.1).pairs(X, dtype=dtype), V)
        engine.devices = [engine.device]
        assert float((alone - shared).norm() / alone.norm()) < most
