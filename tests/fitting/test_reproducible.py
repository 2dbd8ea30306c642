"""The same fit gives the same numbers: bitwise in every run, nearly so for any threads and tiles.

Threads end in any order, so that only sums in a fixed order are the same from run to run.
"""

import threading
import time

import numpy as np
import pytest
from contracts import generator
from numpy.testing import assert_array_equal

from mercer import ClassicalMDS, HebbianKernelPCA, KernelPCA, SpectralClustering, StreamingKernelPCA
from mercer.bases import Landmarks, RandomFeatures
from mercer.compute import LocalEngine
from mercer.compute.engine import Turns
from mercer.kernels import RBF
from mercer.selectors import Uniform
from mercer.solvers import SOLVERS

# Largest change of an eigenvalue, as a share of the first, between numbers of threads and sizes
# of tiles, with the default tolerance; documented in docs/exact.md.
BOUND = 1e-11

OPTIONS = {"kernel": "rbf", "gamma": 0.2, "random_state": 0}
FITS = {
    **{f"solver {name}": (KernelPCA, {"eigen_solver": name}) for name in sorted(SOLVERS)},
    "landmarks": (KernelPCA, {"basis": Landmarks(60, Uniform())}),
    "features": (KernelPCA, {"basis": RandomFeatures(80)}),
    "columns": (KernelPCA, {"basis": "columns", "kernel": "linear"}),
    "hebbian": (HebbianKernelPCA, {"n_passes": 2}),
    "stream": (StreamingKernelPCA, {"budget": 60}),
}


def fitted(name, X, n_jobs, memory="40MB"):
    kind, given = FITS[name]
    return kind(4, **OPTIONS | given, n_jobs=n_jobs, memory=memory).fit(X)


def numbers(model):
    return [model.eigenvalues_, model.expansion_.frame, model.expansion_.metric]


@pytest.mark.parametrize("n_jobs", [2, 3])
@pytest.mark.parametrize("name", FITS)
def test_bitwise_from_run_to_run(name, n_jobs, shuffled_threads):
    X = generator(7).standard_normal((800, 4))
    first = numbers(fitted(name, X, n_jobs))
    for _ in range(2):
        for a, b in zip(first, numbers(fitted(name, X, n_jobs)), strict=True):
            assert_array_equal(a, b)


def test_clusters_and_maps_are_bitwise_the_same(shuffled_threads):
    X = generator(8).standard_normal((700, 4))
    for model in (
        SpectralClustering(3, random_state=0, n_jobs=2),
        ClassicalMDS(2, random_state=0, n_jobs=2),
    ):
        first = model.fit(X).embedding_.copy()
        assert_array_equal(model.fit(X).embedding_, first)


@pytest.fixture
def shuffled_threads(monkeypatch):
    """Threads that rest at random, so that tasks end in another order every time."""
    plain, rng = Turns.add, np.random.default_rng()

    def add(self, place, number, action):
        if rng.random() < 0.05:
            time.sleep(1e-4)
        plain(self, place, number, action)

    monkeypatch.setattr(Turns, "add", add)


@pytest.mark.parametrize("name", FITS)
def test_threads_and_tiles_change_rounding_only(name):
    """A smaller budget has smaller tiles."""
    X = generator(9).standard_normal((900, 5)) * [3.0, 1.5, 0.8, 0.5, 0.3]
    known = fitted(name, X, 1)
    for n_jobs, memory in [(2, "40MB"), (5, "40MB"), (2, "10MB")]:
        other = fitted(name, X, n_jobs, memory)
        change = np.abs(other.eigenvalues_ - known.eigenvalues_).max() / known.eigenvalues_[0]
        assert change <= BOUND, (n_jobs, memory, change)


def test_sums_are_the_same_for_any_number_of_threads():
    Y = generator(10).standard_normal((4000, 3))
    sums = [LocalEngine(10**7, t).sum_rows(lambda b: Y[b].sum(axis=0), 4000, 7) for t in (1, 2, 5)]
    assert_array_equal(sums[0], sums[1])
    assert_array_equal(sums[0], sums[2])


class Failed(Exception):
    pass


@pytest.mark.parametrize("fails", range(6))
def test_a_thread_that_fails_keeps_nobody_waiting(fails):
    """The others wait for its turn, which never comes."""
    lock, calls = threading.Lock(), []

    def function(block):
        with lock:
            calls.append(block)
            mine = len(calls) - 1
        if mine == fails:
            time.sleep(0.01)
            raise Failed
        return 1.0

    threads = threading.active_count()
    with pytest.raises(Failed):
        LocalEngine(10**7, 3).sum_rows(function, 60, 10)
    assert threading.active_count() == threads


def test_an_interrupt_keeps_nobody_waiting(monkeypatch):
    X, engine = generator(11).standard_normal((1500, 3)), LocalEngine(10**7, 3)
    plain, main, interrupted = Turns.add, threading.main_thread(), threading.Event()

    def add(self, place, number, action):
        if threading.current_thread() is main:
            interrupted.set()
            raise KeyboardInterrupt
        # Else the others may have taken all tiles before the main thread has one.
        assert interrupted.wait(60)
        plain(self, place, number, action)

    monkeypatch.setattr(Turns, "add", add)
    with pytest.raises(KeyboardInterrupt):
        engine.pair_rows(RBF(0.2).pairs(X), np.ones((1500, 2)))
