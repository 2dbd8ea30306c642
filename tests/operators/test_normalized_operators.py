"""Normalized and double-centered operators against dense matrices."""

import numpy as np
import oracle
import pytest
from contracts import (
    check_draft,
    check_gram_basis,
    check_operator,
    check_solver,
    generator,
    peak_bytes,
)
from scipy import sparse
from scipy.spatial.distance import cdist

from mercer.bases import AllPoints, HollowMatrix, PrecomputedBasis
from mercer.compute import LocalEngine
from mercer.kernels import RBF, Hollow, SquaredDistance
from mercer.operators import DoubleCentered, MatrixDistance, Multiple, NormalizedGram
from mercer.solvers import BlockKrylov, Dense

ENGINE = LocalEngine(10**6, 2)


def affinity(n=130, d=3, gamma=0.3):
    X = generator(n, d).standard_normal((n, d))
    K = oracle.kernel_matrix("rbf", X, gamma=gamma)
    degrees = K.sum(axis=0)
    basis = AllPoints().build(RBF(gamma=gamma), X, ENGINE, generator(1), 4)
    return NormalizedGram(basis), K / np.sqrt(np.outer(degrees, degrees)), K


def double_center(D):
    H = np.eye(len(D)) - 1 / len(D)
    return -0.5 * H @ D**2 @ H


def cityblock(n=130, d=3):
    X = generator(n, d).standard_normal((n, d))
    return X, cdist(X, X, "cityblock")


@pytest.mark.parametrize("n", [6, 64, 130, 400])
def test_normalized_contract(n):
    operator, S, _ = affinity(n)
    check_operator(operator, S)
    assert np.sum(operator.diagonal()) == pytest.approx(np.trace(S))
    index = np.array([n - 1, 0, 3])
    V = generator(9).standard_normal((n, 2))
    np.testing.assert_allclose(operator.rows(index), S[index], atol=1e-14)
    np.testing.assert_allclose(operator.rows_times(index, V), S[index] @ V, atol=1e-12)


@pytest.mark.parametrize("first", ["product", "dense", "start", "degrees"])
def test_degrees_come_from_wherever(first):
    operator, _, K = affinity()
    if first == "product":
        operator @ np.ones((130, 1))
    elif first == "dense":
        operator.to_dense()
    elif first == "start":
        operator.start(3, generator(2))
    np.testing.assert_allclose(operator.degrees, K.sum(axis=0), rtol=1e-12)
    assert operator.least_degree == pytest.approx(K.sum(axis=0).min())


def test_the_first_eigenvector_is_the_root_of_the_degrees():
    """S D^{1/2} 1 = D^{-1/2} K 1 = D^{1/2} 1: eigenvalue one, whatever the data."""
    operator, _, K = affinity(300)
    root = np.sqrt(K.sum(axis=0))[:, None]
    np.testing.assert_allclose(operator @ root, root, rtol=1e-12)
    pairs = BlockKrylov().solve(operator, 3, generator(3))
    assert pairs.values[0] == pytest.approx(1.0, abs=1e-12) and pairs.values[1] < 1
    direction = root[:, 0] / np.linalg.norm(root)
    assert abs(direction @ pairs.vectors[:, 0]) == pytest.approx(1.0, abs=1e-10)


def test_solvers_agree_on_the_normalized_matrix():
    operator, S, _ = affinity(400, d=2)
    check_solver(BlockKrylov(), operator, S, 4)
    check_solver(Dense(), operator, S, 4)


def test_normalized_draft_is_in_single_precision():
    operator, S, _ = affinity(300)
    check_draft(operator, S)


def test_start_is_one_power_step_beyond_the_sample():
    """The degrees' product is not spent on them alone: the leading subspace is near at once."""
    operator, S, _ = affinity(600, d=2)
    V = operator.start(6, generator(5))
    _, U = oracle.eigenpairs(S, 3, centered=False)
    Q, _ = np.linalg.qr(V)
    assert np.linalg.norm(U - Q @ (Q.T @ U), 2) < 0.1
    assert operator._degrees is not None, "no further product is needed for the degrees"


def test_a_row_without_affinity_is_a_zero_row():
    K = np.eye(5)[:, [1, 0, 3, 2, 4]]
    K[4, 4] = 0
    operator = NormalizedGram(PrecomputedBasis(K, ENGINE))
    np.testing.assert_array_equal(operator.to_dense(), K)
    np.testing.assert_array_equal(operator @ np.eye(5), K)
    assert operator.least_degree == 0
    assert np.isfinite(operator.start(4, generator(6))).all()
    assert NormalizedGram(PrecomputedBasis(-K, ENGINE)).degrees.min() == 1


@pytest.mark.parametrize("given", ["points", "matrix", "sparse"])
def test_hollow_affinities(given):
    """A zero diagonal in every verb that the operator uses, and in its draft."""
    X = generator(3).standard_normal((150, 3))
    K = oracle.kernel_matrix("rbf", X, gamma=0.3)
    if given == "points":
        basis = AllPoints().build(Hollow(RBF(gamma=0.3)), X, ENGINE, generator(1), 4)
    else:
        G = sparse.csr_matrix(K) if given == "sparse" else K
        basis = HollowMatrix(G, ENGINE)
        hollow = K.copy()
        np.fill_diagonal(hollow, 0)
        check_gram_basis(basis, hollow, G[:7], K[:7])
    np.fill_diagonal(K, 0)
    degrees = K.sum(axis=0)
    operator, S = NormalizedGram(basis), K / np.sqrt(np.outer(degrees, degrees))
    check_operator(operator, S)
    index, V = np.array([149, 0, 70]), generator(4).standard_normal((150, 2))
    np.testing.assert_allclose(operator.rows(index), S[index], atol=1e-14)
    np.testing.assert_allclose(operator.rows_times(index, V), S[index] @ V, atol=1e-12)
    np.testing.assert_array_equal(operator.diagonal(), 0)
    check_solver(BlockKrylov(), operator, S, 3)


def of_matrix(D, rng, r):
    points = np.arange(len(D), dtype=np.intp)[:, None]
    return DoubleCentered.of_distance(MatrixDistance(D), points, ENGINE, rng, r)


@pytest.mark.parametrize("n", [6, 130, 400])
@pytest.mark.parametrize("source", ["matrix", "memmap", "function", "data"])
def test_double_centered_contract(source, n, tmp_path):
    X, D = cityblock(n)
    rng = generator(2)
    if source == "matrix":
        operator = of_matrix(D, rng, 2)
    elif source == "memmap":
        path = tmp_path / "D.npy"
        np.save(path, D)
        operator = of_matrix(np.load(path, mmap_mode="r"), rng, 2)
    elif source == "function":
        operator = DoubleCentered.of_distance(
            lambda a, b: cdist(a, b, "cityblock"), X, ENGINE, rng, 2
        )
    else:
        operator, D = DoubleCentered.of_distance(None, X, ENGINE, rng, 2), cdist(X, X)
    check_operator(operator, double_center(D))


def test_double_centered_krylov_meets_negative_eigenvalues():
    _, D = cityblock(400)
    B = double_center(D)
    operator = of_matrix(D, generator(2), 3)
    pairs = check_solver(BlockKrylov(), operator, B, 3)
    exact = np.linalg.eigvalsh(B)
    assert pairs.least is None or exact[0] <= pairs.least <= 0
    least = BlockKrylov().solve(Multiple(operator, -1.0), 1, generator(3))
    assert -least.values[0] == pytest.approx(exact[0], rel=1e-9)
    check_operator(Multiple(operator, -1.0), -B)


def test_points_reach_the_function_as_they_are():
    """Row numbers stay whole numbers, also where tiles are in single precision."""
    _, D = cityblock(200)
    seen = set()

    def distance(rows, columns):
        seen.add(rows.dtype)
        return D[np.ix_(rows[:, 0], columns[:, 0])]

    points = np.arange(200)[:, None]
    operator = DoubleCentered.of_distance(distance, points, ENGINE, generator(1), 2)
    V = generator(5).standard_normal((200, 2))
    np.testing.assert_allclose(operator @ V, double_center(D) @ V, atol=1e-10)
    np.testing.assert_allclose(operator.draft @ V, double_center(D) @ V, atol=1e-2)
    assert seen == {points.dtype}


def test_tiles_of_distances_use_what_they_say():
    X = generator(3).standard_normal((512, 4))
    pairs = SquaredDistance(lambda a, b: cdist(a, b)).pairs(X, dtype=np.float64)
    out = np.empty((256, 256))
    used = peak_bytes(lambda: pairs.tile(slice(0, 256), slice(256, 512), out))
    assert used <= pairs.tile_bytes(256)
