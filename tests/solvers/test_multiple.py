"""Multiple eigenvalues: no solver and no estimator leaves out a copy without a word."""

import itertools

import numpy as np
import pytest
from contracts import generator
from sklearn.cluster import SpectralClustering as Peer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from mercer import DiffusionMap, KernelPCA, SpectralClustering, SpectralEmbedding
from mercer.operators import DenseOperator
from mercer.solvers import Arpack, BlockKrylov, Dense, GramPower, Randomized
from mercer.solvers.base import NoConvergence


def factorial_design(rng):
    k, least = int(rng.integers(7, 10)), float(rng.choice([0.0, -1.0]))
    return np.array(list(itertools.product([least, 1.0], repeat=k)))


def equal_rows(rng):
    centers = rng.normal(size=(rng.integers(3, 40), rng.integers(2, 8))) * rng.uniform(2, 20)
    return np.repeat(centers, rng.integers(8, 25), axis=0)


def far_blobs(rng):
    d, groups = int(rng.integers(2, 6)), int(rng.integers(3, 9))
    centers = rng.permutation(groups)[:, None] * 20.0 * np.ones(d)
    return (centers[:, None] + rng.normal(size=(groups, 60, d))).reshape(-1, d)


def circle(rng):
    angles = np.linspace(0, 2 * np.pi, int(rng.integers(200, 600)), endpoint=False)
    return rng.uniform(0.5, 4) * np.column_stack([np.cos(angles), np.sin(angles)])


def lattice(rng):
    side = np.linspace(-1, 1, int(rng.integers(12, 22)))
    return np.array(list(itertools.product(side, side)))


def torus(rng):
    angles = 2 * np.pi * np.arange(m := int(rng.integers(10, 20))) / m
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.hstack([np.repeat(ring, m, axis=0), np.tile(ring, (m, 1))])


DATA = (factorial_design, equal_rows, far_blobs, circle, lattice, torus)


def centered_kernel(X, gamma):
    K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
    K -= K.mean(axis=0)
    return K - K.mean(axis=1)[:, None]


@pytest.mark.filterwarnings("ignore:Not converged")
@pytest.mark.parametrize("data", DATA)
def test_a_fit_finds_every_copy_or_says_that_it_has_not_converged(data):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, gamma, r = data(rng), float(rng.choice([0.1, 0.3, 1.0])), int(rng.integers(3, 14))
        true = np.linalg.eigvalsh(centered_kernel(X, gamma))[::-1][:r]
        for solver in ("auto", "arpack", "krylov"):
            options = {"gamma": gamma, "eigen_solver": solver, "random_state": seed}
            model = KernelPCA(r, kernel="rbf", **options).fit(X)
            short = np.max(true - model.eigenvalues_) > 1e-8 * true[0]
            assert not (short and model.certificate_.converged), (seed, solver)


def test_arpack_tells_apart_what_is_near_each_other():
    """Of groups that hardly touch: eigenvalues of 1 but for 1e-3 to 1e-12, and a bulk below."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        groups, d, gamma = int(rng.integers(3, 9)), int(rng.integers(2, 9)), rng.uniform(0.05, 1.0)
        centers = rng.uniform(-10, 10, (groups, 1, d))
        X = centers + rng.uniform(0.3, 2.5) * rng.normal(size=(groups, rng.integers(40, 70), d))
        X = X.reshape(-1, d)
        K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
        np.fill_diagonal(K, 0.0)
        roots = np.sqrt(np.maximum(K.sum(axis=1), 1e-3))
        A = K / np.outer(roots, roots)
        operator = DenseOperator(A)
        operator.definite = False
        pairs = Arpack(form=True).solve(operator, groups, np.random.default_rng(seed))
        true = np.linalg.eigvalsh(A)[::-1][:groups]
        assert not (pairs.converged and np.max(true - pairs.values) > 1e-8), seed


def narrow_krylov(rng):
    return BlockKrylov(int(rng.integers(2, 24)), oversampling=int(rng.integers(1, 16)))


@pytest.mark.filterwarnings("ignore:Not converged")
@pytest.mark.parametrize("data", DATA)
def test_narrow_blocks_find_every_copy_or_say_that_they_have_not_converged(data):
    """Components end beside the last copy of an eigenvalue, where one that is missed shows."""
    called, fits = 0, 16
    for seed in range(fits):
        rng = generator(356, seed)
        X, gamma, tol = data(rng), float(10 ** rng.uniform(-2, 0)), float(rng.choice([0.0, 1e-5]))
        X = X.astype(np.float32) if rng.random() < 0.3 else X
        true = np.linalg.eigvalsh(centered_kernel(X.astype(float), gamma))[::-1]
        steps = np.flatnonzero(true[:-1] - true[1:] > 1e-6 * true[0])
        r = min(steps[: 1 + steps.size // 2][-1] + rng.integers(1, 4), 60)
        solver = narrow_krylov(rng)
        options = {"gamma": gamma, "tol": tol, "eigen_solver": solver, "basis": "points"}
        model = KernelPCA(int(r), kernel="rbf", random_state=seed, **options).fit(X)
        short = true[:r] - model.eigenvalues_ > max(2 * tol, 2e-6) * true[0]
        assert not (short.any() and model.certificate_.converged), (seed, r, options)
        called += model.certificate_.converged
    assert called >= fits // 4


SOLVERS = (Dense(), Arpack(), Arpack(form=True), BlockKrylov(), Randomized(), GramPower())


@pytest.mark.parametrize("solver", [*SOLVERS, "narrow"])
def test_solvers_find_copies_of_a_drawn_spectrum(solver):
    """Or say that they have not converged, as where a block has fewer vectors than there are."""
    called = 0
    for seed in range(12):
        rng = generator(357, seed)
        levels = np.sort(rng.uniform(0.1, 1.0, rng.integers(2, 7)))[::-1]
        copies = np.repeat(levels, rng.integers(1, rng.choice([6, 36]), levels.size))
        rest = rng.uniform(0, 0.1, 250) * rng.integers(0, 2)
        values, r = np.append(copies, np.sort(rest)[::-1]), int(rng.integers(4, 45))
        Q, _ = np.linalg.qr(rng.normal(size=(values.size, values.size)))
        chosen, tol = solver, float(rng.choice([0.0, 1e-6, 1e-4]))
        if solver == "narrow":
            chosen = narrow_krylov(rng)
        try:
            pairs = chosen.solve(DenseOperator((Q * values) @ Q.T), r, rng, tol)
        except NoConvergence:
            continue
        short = np.max(values[:r] - pairs.values) > max(1e-8, 2 * tol)
        assert not (short and pairs.converged), (seed, chosen)
        called += pairs.converged
    assert called >= 2


@pytest.mark.parametrize("solver", [*SOLVERS[:-1], "narrow"])
@pytest.mark.parametrize("n", [60, 420])
def test_solvers_find_copies_of_negative_eigenvalues(solver, n):
    """As of affinities without their diagonal, one copy of which is left at the end."""
    called = 0
    for seed in range(12):
        rng = generator(362, seed)
        levels, copies = -np.sort(rng.uniform(0.01, 0.3, 3)), rng.integers(2, 9, 3)
        low = -np.sort(rng.uniform(0.4, 0.6, n)[: n - 2 - copies.sum()])
        values = np.concatenate([[1.0, rng.uniform(0, 0.5)], np.repeat(levels, copies), low])
        r = 2 + int(copies[: rng.integers(1, 4)].sum())
        Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
        chosen = narrow_krylov(rng) if solver == "narrow" else solver
        try:
            pairs = chosen.solve(DenseOperator((Q * values) @ Q.T), r, rng)
        except NoConvergence:
            continue
        short = np.max(values[:r] - pairs.values) > 1e-8
        assert not (short and pairs.converged), (seed, chosen)
        called += pairs.converged
    assert called >= 2 or isinstance(solver, Randomized)


def test_a_block_full_of_copies_has_converged_only_where_none_can_be_missing():
    """One eigenvalue of 23 copies: sums of squares tell that there are no more, unless many rows
    that are alike to no other leave as much to them.
    """
    groups = np.repeat(10.0 * np.eye(24), 8, axis=0)
    alone = np.vstack([groups, 10 * generator(358).normal(size=(300, 24)) - 9])
    options = {"kernel": "rbf", "basis": "points", "random_state": 0}
    model = KernelPCA(24, eigen_solver=BlockKrylov(8), **options).fit(groups)
    assert model.certificate_.converged
    with pytest.warns(ConvergenceWarning, match="more copies than the block of the solver"):
        model.fit(alone)
    assert not model.certificate_.converged


@pytest.mark.filterwarnings("ignore:Not converged")
@pytest.mark.parametrize("solver", ["krylov", "randomized", "gram-power"])
def test_groups_that_a_start_has_no_rows_of_are_found_or_nothing_has_converged(solver):
    """A start from drawn rows may hold exact eigenvectors, and not those of the largest groups."""
    called = 0
    for seed in range(50):
        rng = generator(362, seed)
        n, r = int(rng.integers(150, 350)), int(rng.integers(1, [16, 4][seed % 2]))
        groups = int(rng.integers(max(8, r), n // 4))
        labels = rng.integers(0, groups, n)
        X = 20 * np.eye(groups)[labels] + 10 ** rng.uniform(-9, -3) * rng.normal(size=(n, groups))
        weights = [None, rng.integers(1, 4, n), 10 ** rng.uniform(-2, 0, n)][rng.integers(3)]
        sizes = np.bincount(labels, weights, groups)
        tol = float(rng.choice([0.0, 1e-6]))
        options = {"kernel": "rbf", "gamma": 0.3, "center": False, "basis": "points", "tol": tol}
        model = KernelPCA(r, eigen_solver=solver, random_state=seed, **options)
        values = model.fit(X, sample_weight=weights).eigenvalues_
        short = np.max(np.sort(sizes)[::-1][:r] - values) > 1e-3 * sizes.max()
        assert not (short and model.certificate_.converged), (seed, r)
        called += model.certificate_.converged
    assert called >= 5


@pytest.mark.filterwarnings("ignore:The affinities fall into")
def test_groups_far_from_each_other_are_found_whatever_the_start():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = far_blobs(rng)
        groups = np.repeat(np.arange(len(X) // 60), 60)
        count = int(groups.max()) + 1
        labels = SpectralClustering(count, gamma=0.3, random_state=seed).fit_predict(X)
        theirs = Peer(count, gamma=0.3, random_state=seed).fit_predict(X)
        assert adjusted_rand_score(groups, labels) >= adjusted_rand_score(groups, theirs)
        for estimator in (SpectralEmbedding, DiffusionMap):
            options = {"affinity": "rbf"} if estimator is SpectralEmbedding else {}
            model = estimator(count, gamma=0.3, random_state=seed, **options).fit(X)
            full = estimator(count, gamma=0.3, eigen_solver="dense", **options).fit(X)
            gap = np.max(np.abs(model.eigenvalues_ - full.eigenvalues_))
            assert gap < 1e-8, (seed, estimator.__name__)


@pytest.mark.filterwarnings("ignore:Not converged", "ignore:.*indefinite", "ignore:.*no variance")
@pytest.mark.parametrize("n", [8, 9, 12])
def test_few_rows_have_no_more_vectors_than_rows(n):
    """What is looked for beside the pairs found may be all that there is."""
    for seed, groups in itertools.product(range(10), (2, 3, 4)):
        X = 5.0 * np.eye(groups, 4)[np.arange(n) % groups]
        options = {"kernel": "sigmoid", "coef0": -1.0, "tol": 1e-6}
        found = [
            KernelPCA(1, eigen_solver=solver, random_state=seed, **options).fit(X).eigenvalues_
            for solver in ("arpack", "dense")
        ]
        np.testing.assert_allclose(*found, atol=1e-5)
