"""None was missed: intervals by number, how many components are proven, and errors of scores."""

import numpy as np
import pytest
from contracts import generator
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits

from mercer import KernelPCA
from mercer.bases import PointGram, PrecomputedBasis
from mercer.compute import LocalEngine
from mercer.fitting.certificate import Rounding, certify
from mercer.kernels import RBF
from mercer.operators import CenteredGram, DenseOperator
from mercer.solvers import BlockKrylov


def mean_distance_gamma(X):
    return 1 / (2 * np.mean([np.linalg.norm(X[:200] - x, axis=1).mean() for x in X[:200]]) ** 2)


def exact_pairs(X, gamma, weights=None, center=True):
    """Of rows that count as often as their weights say."""
    norms = (X * X).sum(axis=1)
    K = np.exp(-gamma * np.maximum(norms[:, None] + norms - 2 * X @ X.T, 0))
    w = np.ones(len(X)) if weights is None else weights
    if center:
        K -= w @ K / w.sum()
        K -= (K @ w / w.sum())[:, None]
    K = np.sqrt(w)[:, None] * K * np.sqrt(w)
    values, U = np.linalg.eigh((K + K.T) / 2)
    return values[::-1], U[:, ::-1]


def uneven_rows(seed, n, d=5):
    rng = generator(seed, n)
    scales = rng.permutation(np.linspace(1.5, 0.2, d))
    return rng.standard_normal((n, d)) * scales + rng.standard_normal(d)


def check_all_proven(certificate, values, narrow=1e-7):
    """All components are proven, within narrow intervals that hold what LAPACK finds."""
    r, slack = len(certificate.eigenvalue_lower), 1e-13 * len(values) * values[0]
    assert certificate.n_proven == r
    width = certificate.eigenvalue_upper - certificate.eigenvalue_lower
    assert np.max(width) < narrow * values[0]
    assert np.all(certificate.eigenvalue_lower <= values[:r] + slack)
    assert np.all(values[:r] <= certificate.eigenvalue_upper + slack)


@pytest.mark.parametrize("spread", [1.0, 3.0])
@pytest.mark.parametrize("solver", ["krylov", "gram-power", "randomized"])
@pytest.mark.parametrize("center", [True, False])
def test_weighted_components_are_proven(solver, center, spread):
    """With weights up to thousands of times apart, and a tolerance that passes can reach."""
    for seed in range(3):
        X = uneven_rows(seed, 700)
        weights = 10.0 ** generator(seed, 1).uniform(-spread / 2, spread / 2, len(X))
        options = {"kernel": "rbf", "gamma": 0.2, "center": center, "random_state": seed}
        if solver == "gram-power":
            options["tol"] = 1e-7
        model = KernelPCA(6, eigen_solver=solver, **options).fit(X, sample_weight=weights)
        check_all_proven(model.certificate_, exact_pairs(X, 0.2, weights, center)[0])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("center", [True, False])
def test_sum_of_squares_is_that_of_all_eigenvalues(center, weighted):
    """In every precision and for a given matrix, sparse or not."""
    X = uneven_rows(0, 900)
    weights = generator(2).uniform(0.1, 5.0, len(X)) if weighted else None
    kernel, engine = RBF(0.2), LocalEngine(10**8, 2)
    K, (values, _) = kernel(X), exact_pairs(X, 0.2, weights, center)
    bases = [PointGram(kernel, X, engine), PointGram(kernel, X, engine, dtype=np.float32)]
    bases += [PrecomputedBasis(K, engine), PrecomputedBasis(csr_matrix(K), engine)]
    for basis, close in zip(bases, (1e-12, 1e-6, 1e-12, 1e-12), strict=True):
        with basis.session() as working:
            operator = CenteredGram(working, center, weights)
            operator @ np.ones((len(X), 3))
            assert operator.square() == pytest.approx(float(values @ values), rel=close)


@pytest.mark.parametrize("tol", [1e-6, 1e-4])
@pytest.mark.parametrize("weighted", [False, True])
def test_components_beyond_the_rows_of_a_whole_product_are_proven(tol, weighted):
    """Where rounding is sampled, and the product in double precision is some rows of it."""
    X, copies = uneven_rows(int(weighted), 920), 9
    weights = generator(1).choice([0.5, 1.0, 3.0], len(X)) if weighted else np.ones(len(X))
    model = KernelPCA(16, kernel="rbf", gamma=0.2, eigen_solver="krylov", tol=tol, random_state=0)
    given = {"sample_weight": np.tile(weights, copies)} if weighted else {}
    model.fit(np.tile(X, (copies, 1)), **given)
    values = copies * exact_pairs(X, 0.2, weights)[0]
    check_all_proven(model.certificate_, values, 2e-6)


@pytest.mark.parametrize("options", [{}, {"tol": 1e-6}, {"eigen_solver": "krylov"}])
def test_all_components_of_ordinary_data_are_proven(options):
    X = load_digits().data
    model = KernelPCA(16, kernel="rbf", gamma=mean_distance_gamma(X), random_state=0, **options)
    certificate = model.fit(X).certificate_
    width = certificate.eigenvalue_upper - certificate.eigenvalue_lower
    assert certificate.n_proven == 16
    assert np.max(width) < 1e-7 * certificate.eigenvalue_upper[0]
    assert "no larger component was missed" in repr(certificate)
    values, U = exact_pairs(X, mean_distance_gamma(X))
    assert np.all(certificate.eigenvalue_lower <= values[:16] + 1e-9)
    assert np.all(values[:16] <= certificate.eigenvalue_upper + 1e-9)
    scores = model.transform(X)
    for i in range(16):
        true = U[:, i] * np.sqrt(values[i])
        off = min(np.linalg.norm(scores[:, i] - true), np.linalg.norm(scores[:, i] + true))
        assert off <= (certificate.score_error[i] + 1e-9) * np.linalg.norm(true)


class Blind(DenseOperator):
    """Starts orthogonal to its first eigenvector, which no product then leads to."""

    def __init__(self, A, lead):
        super().__init__(A)
        self.lead = lead

    def start(self, k, rng):
        V = rng.standard_normal((self.shape[0], k))
        return V - np.outer(self.lead, self.lead @ V)


@pytest.mark.parametrize("seed", range(6))
def test_what_a_start_cannot_see_is_not_claimed(seed):
    rng = generator(seed)
    values = np.r_[3.0, 0.9 ** np.arange(199)]
    V, _ = np.linalg.qr(rng.standard_normal((200, 200)))
    A = (V * values) @ V.T
    pairs = BlockKrylov(block=6).solve(Blind((A + A.T) / 2, V[:, 0]), 4, rng)
    rounding = (Rounding(1e-12),) * 3
    certificate = certify(pairs, 200, float(values.sum()), rounding, definite=True)
    assert np.all(values[:4] <= certificate.eigenvalue_upper + 1e-9)
    found = abs(pairs.values[0] - 3.0) < 1e-6
    assert found or certificate.n_proven == 0


def clusters(rng):
    return np.repeat(100 * rng.standard_normal((40, 3)), 8, axis=0)


def ring(rng):
    angles = 2 * np.pi * np.arange(301) / 301
    return np.column_stack([np.cos(angles), np.sin(angles)])


@pytest.mark.parametrize("data", [clusters, ring])
@pytest.mark.parametrize("solver", ["auto", BlockKrylov(block=2, oversampling=1)])
@pytest.mark.filterwarnings("ignore")
def test_copies_are_found_or_not_claimed(data, solver):
    for seed in range(4):
        X = data(generator(seed))
        options = {"kernel": "rbf", "gamma": 0.5, "eigen_solver": solver, "random_state": seed}
        model = KernelPCA(12, **options).fit(X)
        certificate, (values, _) = model.certificate_, exact_pairs(X, 0.5)
        proven = certificate.n_proven
        gap = np.abs(model.eigenvalues_[:proven] - values[:proven])
        assert np.all(gap <= 2e-6 * values[0])
        assert np.all(values[:12] <= certificate.eigenvalue_upper + 1e-9)


def test_components_that_may_be_mixed_are_named():
    X = ring(None)
    certificate = KernelPCA(4, kernel="rbf", gamma=0.5).fit(X).certificate_
    assert np.isnan(certificate.score_error).all() and certificate.n_proven == 4
    assert "cannot be told apart" in repr(certificate)


@pytest.mark.parametrize("basis", ["landmarks", "features"])
def test_scores_of_approximations_are_right_to_what_is_stated(basis):
    for seed in range(5):
        X = generator(seed).standard_normal((400, 3)) * [3, 2, 1]
        model = KernelPCA(3, kernel="rbf", gamma=0.02, basis=basis, random_state=seed).fit(X)
        values, U = exact_pairs(X, 0.02)
        scores, stated = model.transform(X), model.certificate_.score_error
        for i in np.flatnonzero(np.isfinite(stated)):
            true = U[:, i] * np.sqrt(values[i])
            off = min(np.linalg.norm(scores[:, i] - true), np.linalg.norm(scores[:, i] + true))
            assert off <= (stated[i] + 1e-9) * np.linalg.norm(true)
