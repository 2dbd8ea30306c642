"""Each part of the bounds of affinities and of scaling, where it is what holds the truth.

As in `test_certificate_rounding.py` a few rows are there many times, so that rounding adds up, and
the truth is that of a small matrix in long double.
"""

import numpy as np
import pytest
from contracts import generator
from fuzz import FORMULAS, WIDE
from test_certificate_rounding import DIGITS, jacobi

from mercer import ClassicalMDS, DiffusionMap, SpectralClustering
from mercer.bases import FourierGrid
from mercer.solvers import BlockKrylov


def walk(Z, counts, gamma, alpha):
    """Eigenvalues, functions of mean square one and degrees of a walk on copies of rows Z."""
    K, counts = FORMULAS["rbf"](Z.astype(WIDE), WIDE(gamma), {}), counts.astype(WIDE)
    K = K / np.outer(K @ counts, K @ counts) ** WIDE(alpha)
    degrees = K @ counts
    root = np.sqrt(counts / degrees)
    values, U = jacobi(root[:, None] * K * root)
    return values, U / np.sqrt(counts * degrees / (counts @ degrees))[:, None]


def holds(certificate, values, first=0):
    r = certificate.eigenvalue_lower.size
    true = np.append(values, np.zeros(r, WIDE))[first : first + r]
    if certificate.kind == "bound":
        assert np.all(certificate.eigenvalue_lower <= true + DIGITS)
        assert np.all(true <= certificate.eigenvalue_upper + DIGITS)


def functions_hold(certificate, found, true, slack=0.0):
    """Functions at all rows are off by no more than stated, whatever their sign."""
    for error, f, g in zip(certificate.score_error, found.T, true.T.astype(float), strict=False):
        if np.isfinite(error):
            f = np.asarray(f, float) * np.sign(np.sum(f * g))
            assert np.linalg.norm(f - g) <= (error + slack) * np.linalg.norm(f)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solver", ["dense", "krylov"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_walks_on_rows_that_round_alike(solver, dtype):
    for seed in range(15):
        rng = generator(seed, 1)
        Z = (rng.standard_normal((5, 2)) * 10 ** rng.uniform(-1, 0.5)).astype(dtype)
        counts, alpha = rng.integers(1, 120, 5), float(rng.choice([0.0, 0.5, 1.0]))
        gamma, t = float(10 ** rng.uniform(-1, 0.5)), float(rng.choice([0.0, 1.0, 3.0]))
        model = DiffusionMap(3, density_power=alpha, t=t, gamma=gamma, eigen_solver=solver)
        model.set_params(random_state=seed).fit(np.repeat(Z, counts, axis=0))
        values, functions = walk(Z, counts, gamma, alpha)
        holds(model.certificate_, values, 1)
        true = functions[:, 1:4] * np.maximum(values[1:4], 0) ** WIDE(t)
        functions_hold(model.certificate_, model.embedding_, np.repeat(true, counts, axis=0))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("t", [0.0, 1.0, 8.0])
@pytest.mark.parametrize("passes", [2, 3])
def test_functions_of_a_walk_that_was_not_solved_to_the_end(passes, t):
    """Rows of small degree have the largest errors, and powers of eigenvalues add theirs."""
    for seed in range(6):
        rng = generator(seed, 2)
        X = rng.standard_normal((150, 2))
        X[:5] = 3.5 * X[:5] / np.linalg.norm(X[:5], axis=1)[:, None]
        solver = BlockKrylov(block=4, oversampling=3, max_passes=passes)
        model = DiffusionMap(2, density_power=0.0, t=t, gamma=0.4, eigen_solver=solver)
        model.set_params(random_state=seed).fit(X)
        K = np.asarray(FORMULAS["rbf"](X.astype(WIDE), WIDE(0.4), {}), float)
        degrees = K.sum(axis=1)
        values, U = np.linalg.eigh(K / np.sqrt(np.outer(degrees, degrees)))
        values = values[::-1]
        holds(model.certificate_, values + 1e-13, 1)
        true = U[:, ::-1][:, 1:3] * np.sqrt(degrees.sum() / degrees)[:, None] * values[1:3] ** t
        functions_hold(model.certificate_, model.embedding_, true, 1e-10)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8])
def test_affinities_of_a_grid_for_rows_that_round_alike(tol):
    """Degrees and entries are off alike by what the grid leaves out; a lone row has the least."""
    for seed in range(12):
        rng = generator(seed, 3)
        Z = rng.uniform(-2, 2, (4, 1))
        counts, gamma = rng.integers(1, 60, 4), float(10 ** rng.uniform(-0.5, 0.7))
        counts[0] = 1
        model = SpectralClustering(2, gamma=gamma, basis=FourierGrid(tol=tol), n_init=1)
        model.set_params(random_state=seed).fit(np.repeat(Z, counts, axis=0))
        holds(model.certificate_, walk(Z, counts, gamma, 0.0)[0])


def scaled(Z, counts, squares):
    """Eigenvalues of -H D2 H / 2 for copies of points with these squared distances."""
    counts = counts.astype(WIDE)
    share = counts / counts.sum()
    B = -squares / 2
    B = B - share @ B
    B = B - (B @ share)[:, None]
    root = np.sqrt(counts)
    A = root[:, None] * B * root
    return jacobi((A + A.T) / 2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "precomputed"])
@pytest.mark.parametrize("columns", [2, 400])
def test_scaling_of_points_that_round_alike(metric, columns):
    """Also far from the origin, in few columns and in many, where the other Gram matrix serves."""
    if columns > 2 and metric != "euclidean":
        return
    for seed in range(15):
        rng = generator(seed, 4, len(metric))
        Z = rng.standard_normal((5, columns)) * 10 ** rng.uniform(-3, 1)
        Z = Z + 10 ** rng.uniform(0, 6) * (metric == "euclidean")
        counts = rng.integers(1, 60, 5)
        differences = Z.astype(WIDE)[:, None] - Z.astype(WIDE)[None]
        squares = np.sum(differences**2, axis=2)
        if metric == "cityblock":
            squares = np.sum(np.abs(differences), axis=2) ** 2
        X, r = np.repeat(Z, counts, axis=0), 2
        if metric == "precomputed":
            D = np.sqrt(np.asarray(squares, float))
            squares, X = D.astype(WIDE) ** 2, np.repeat(np.repeat(D, counts, 0), counts, 1)
        model = ClassicalMDS(r, dissimilarity=metric, random_state=seed).fit(X)
        values, U = scaled(Z, counts, squares)
        certificate = model.certificate_
        true = np.maximum(values[:r], 0)
        assert certificate.kind == "bound"
        assert np.all(certificate.eigenvalue_lower <= true + DIGITS * true[0])
        assert np.all(true <= certificate.eigenvalue_upper + DIGITS * true[0])
        coordinates = np.repeat(U[:, :r] * np.sqrt(true / counts[:, None]), counts, axis=0)
        functions_hold(certificate, model.embedding_, coordinates)
