"""The budget is a promise: work arrays stay inside it, whatever n is.

NumPy tells tracemalloc of every array, so the peak is exact. Allowed beyond `memory`: the result
and the vectors of the solver, O(n r).
"""

import numpy as np
import pytest
from contracts import generator, peak_bytes

from mercer import KernelPCA
from mercer.compute import TileStore

R = 4
# Vectors of length n that a fit may hold beyond the budget, per carried component: the basis
# (two blocks and the kept ones at least), its products, the sums of two threads, the result.
VECTORS = 16
# Imports, caches of the interpreter, small matrices of side r.
SMALL = 400_000


def allowed(n, memory, r=R):
    return memory + 8 * n * VECTORS * (r + 8) + SMALL


def peak(n, memory, **params):
    X = generator(n).standard_normal((n, 3))
    options = {"kernel": "rbf", "gamma": 0.1, "n_jobs": 2, "random_state": 0, "copy_X": False}
    warm = {"n_components": R} | options | params | {"memory": "100MB"}
    KernelPCA(**warm).fit(X[:700])  # imports and compiles
    model = KernelPCA(memory=memory, **{"n_components": R} | options | params)
    return peak_bytes(lambda: model.fit(X)), model


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize(
    ("n", "memory"),
    [(1500, 10**6), (1500, 4 * 10**6), (4000, 10**6), (4000, 5 * 10**6), (4000, 20 * 10**6)],
)
def test_krylov_stays_inside(n, memory, kernel):
    used, model = peak(n, memory, kernel=kernel, tol=1e-4, eigen_solver="krylov")
    assert used <= allowed(n, memory), f"{used / 1e6:.1f} MB against {allowed(n, memory) / 1e6:.1f}"
    assert 8 * n * n > 2 * allowed(n, memory) or n < 4000, "the matrix would not have fitted"
    assert model.certificate_.converged


@pytest.mark.parametrize("memory", [10**6, 10**7, 60 * 10**6])
def test_auto_stays_inside(memory):
    used, model = peak(1500, memory)
    assert used <= allowed(1500, memory), f"{used / 1e6:.1f} MB for {model.plan_.method}"


@pytest.mark.parametrize("r", [R, 600, None])
def test_dense_uses_what_it_says(r):
    """The estimate that decides whether the matrix fits is an upper bound of what is used."""
    n = 900
    used, model = peak(n, "1GB", eigen_solver="dense", n_components=r)
    said = model.plan_.chosen.bytes
    result = 8 * n * (4 * model.eigenvalues_.size + 20)  # vectors, frame and their copies
    # A tile in flight and the rows prepared for tiles come beside the matrix.
    assert used <= said + result + 5 * 10**6, f"{used / 1e6:.1f} MB, {said / 1e6:.1f} said"
    assert said <= 50 * n * n


def test_transform_stays_inside():
    n, memory = 1500, 10**6
    X = generator(n).standard_normal((n, 3))
    model = KernelPCA(R, kernel="rbf", memory=memory, n_jobs=2, tol=1e-3).fit(X)
    for method in (model.transform, model.reconstruction_error):
        method(X[:10])
        assert peak_bytes(lambda m=method: m(X)) <= allowed(n, memory)


def test_more_memory_is_used_when_there_is_more():
    """Tiles are kept while they fit: otherwise every test here would pass for no reason."""
    small, _ = peak(2500, 10**6, tol=1e-3, eigen_solver="krylov")
    large, _ = peak(2500, 60 * 10**6, tol=1e-3, eigen_solver="krylov")
    assert large > small + 2500 * 2500 * 4 / 4


def test_a_broken_budget_is_seen(monkeypatch):
    """The measure works: a store that keeps every tile fails the very assertion above."""

    def reserve(self, shape, dtype):
        return np.empty(shape, dtype)

    monkeypatch.setattr(TileStore, "reserve", reserve)
    used, _ = peak(4000, 10**6, tol=1e-4, eigen_solver="krylov")
    assert used > allowed(4000, 10**6)
