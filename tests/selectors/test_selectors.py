"""Selectors: the contract over the registry, then each rule against its definition."""

import os

import numpy as np
import pytest
from contracts import SELECTOR_VARIANTS as VARIANTS
from contracts import check_recipe, generator
from scipy import sparse
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import pdist

from mercer import datasets
from mercer.compute.linalg import leading_eigh
from mercer.kernels import RBF, Linear, Polynomial
from mercer.selectors import (
    SELECTORS,
    ComponentLasso,
    FarthestPoint,
    FullGreedy,
    GreedyCholesky,
    GroupLasso,
    KMeans,
    NormWeighted,
    Novelty,
    NoveltyRule,
    PreimageDictionary,
    RPCholesky,
    SparseBayes,
    SparseGreedy,
    SubspaceGreedy,
    TwoStage,
    Uniform,
    base,
    greedy,
    lasso,
    online,
    sparse_components,
)
from mercer.selectors import sparse as bayes
from mercer.selectors.sampling import default_selector

needs_data = pytest.mark.skipif(
    "MERCER_DATA" not in os.environ, reason="set MERCER_DATA to the folder of the data sets"
)


def blob(n=150, d=4, key=0):
    return generator(7, key).standard_normal((n, d)) * np.linspace(2, 0.5, d)


def choose(selector, kernel, X, size, seed=3):
    return selector.select(kernel, X, size, np.random.default_rng(seed))


def points(selector, X, chosen):
    return chosen if selector.returns_points else X[chosen]


def lost(kernel, X, Z):
    """Share of tr K outside the span of Z, by the pseudo-inverse."""
    K_xz, G = kernel(X, Z), kernel(Z, Z)
    inside = np.sum(K_xz @ np.linalg.pinv(G, rcond=1e-13, hermitian=True) * K_xz)
    return 1 - inside / kernel.diag(X).sum()


def best_rank(K, d):
    values = np.linalg.eigvalsh(K)[::-1]
    return values[d:].sum() / values.sum()


def check_selector(selector, kernel, X, size):
    """Distinct rows, the number asked for, an order that is nested where it says so."""
    check_recipe(selector)
    before = X.copy()
    chosen = choose(selector, kernel, X, size)
    assert isinstance(chosen, np.ndarray) and len(chosen) == size
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(chosen, choose(selector, kernel, X, size))

    Z = points(selector, X, chosen)
    assert Z.shape == (size, X.shape[1]) and len(np.unique(Z, axis=0)) == size
    if not selector.returns_points:
        assert chosen.dtype.kind == "i" and chosen.min() >= 0 and chosen.max() < len(X)
    if selector.nested:
        np.testing.assert_array_equal(chosen[: size // 2], choose(selector, kernel, X, size // 2))


@pytest.mark.parametrize("selector", VARIANTS, ids=repr)
class TestContract:
    def test_gaussian(self, selector):
        check_selector(selector, RBF(gamma=0.15), blob(), 24)

    def test_polynomial_of_uneven_norms(self, selector):
        check_selector(selector, Polynomial(degree=3, gamma=0.2, coef0=1.0), blob(), 12)

    def test_single_precision(self, selector):
        X = blob().astype(np.float32)
        chosen = choose(selector, RBF(gamma=0.15), X, 16)
        assert len(np.unique(points(selector, X, chosen), axis=0)) == 16
        if selector.returns_points:
            assert chosen.dtype == np.float32

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_copies_never_enter_twice(self, selector, dtype):
        values = blob(9, 3).astype(dtype)
        X = np.repeat(values, 12, axis=0)[generator(8).permutation(108)]
        X[::5] = np.where(X[::5] == 0, -0.0, X[::5])
        kernel = RBF(gamma=0.2)
        for size in (9, 30):
            Z = points(selector, X, choose(selector, kernel, X, size))
            assert len(np.unique(Z, axis=0)) == len(Z) <= 9
            if not isinstance(selector, SparseBayes | Novelty):
                assert len(Z) == 9

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_short_rank_gives_fewer(self, selector, dtype):
        X = blob(60, 3).astype(dtype)
        chosen = choose(selector, Linear(), X, 10)
        if selector.independent:
            assert 1 <= len(chosen) <= 3
        else:
            assert len(chosen) <= 10

    def test_one_row_and_equal_rows(self, selector):
        for X in (blob(1), np.ones((20, 4))):
            Z = points(selector, X, choose(selector, RBF(gamma=0.5), X, 5))
            np.testing.assert_array_equal(Z, X[:1])

    def test_size_beyond_the_rows(self, selector):
        X = blob(12)
        Z = points(selector, X, choose(selector, RBF(gamma=2.0), X, 40))
        assert len(np.unique(Z, axis=0)) == len(Z) <= 12

    def test_zero_kernel(self, selector):
        chosen = choose(selector, Linear(), np.zeros((6, 2)), 3)
        assert len(chosen) <= 1


@pytest.mark.parametrize(
    "selector", [s for s in VARIANTS if not s.needs_points], ids=lambda s: repr(s)
)
def test_only_the_kernel_is_seen(selector):
    """Rows may be row numbers, as for a precomputed kernel matrix."""
    X = blob(80)
    K = RBF(gamma=0.15)(X)
    rows = np.arange(80)
    chosen = choose(selector, MatrixKernel(K), rows, 10)
    np.testing.assert_array_equal(np.sort(chosen), np.unique(chosen))
    assert len(chosen) == 10


class MatrixKernel:
    def __init__(self, K):
        self.K = K

    def __call__(self, X, Z):
        return self.K[np.ix_(X, Z)]

    def diag(self, X):
        return self.K[X, X]


@pytest.mark.parametrize("selector", [Uniform(), FullGreedy(), RPCholesky(), SparseGreedy()])
def test_sparse_rows(selector):
    X = sparse.random_array((90, 30), density=0.2, format="csr", rng=generator(9))
    X = sparse.vstack([X, X[:20]]).tocsr()
    kernel = RBF(gamma=0.5)
    chosen = choose(selector, kernel, X, 15)
    np.testing.assert_array_equal(chosen, choose(selector, kernel, X.toarray(), 15))


def test_registry_is_the_public_list():
    import mercer.selectors as family

    assert set(SELECTORS) <= set(family.__all__)
    assert all(name == cls.__name__ for name, cls in SELECTORS.items())


class TestSampling:
    def test_with_replacement_repeats_are_dropped(self):
        X = np.arange(50.0)[:, None]
        counts = [len(choose(Uniform(replace=True), Linear(), X, 50, s)) for s in range(200)]
        # The expected number of distinct rows in n draws of n is n (1 - (1 - 1/n)^n).
        assert abs(np.mean(counts) - 50 * (1 - 0.98**50)) < 0.8

    def test_norm_weights(self):
        X = np.sqrt(np.array([1.0, 2.0, 3.0]))[:, None]
        first = [choose(NormWeighted(), Linear(), X, 1, s)[0] for s in range(4000)]
        expected = np.array([1, 4, 9]) / 14
        np.testing.assert_allclose(np.bincount(first) / 4000, expected, atol=0.03)

    def test_leverage_is_close_to_its_definition(self):
        from mercer.selectors.sampling import leverage

        X, kernel, rows = blob(120), RBF(gamma=0.1), np.arange(120)
        scores = leverage(kernel, X, rows, rows, np.ones(120), 20)
        K = kernel(X)
        values = np.linalg.eigvalsh(K)[::-1]
        rank = int(np.ceil(20 / (4 * np.log(20))))
        ridge = values[rank:].sum() / rank
        exact = np.diag(np.linalg.solve(K + ridge * np.eye(120), K))
        np.testing.assert_allclose(scores, exact, rtol=1e-8)


class TestCholesky:
    def test_greedy_pivots(self):
        X, kernel = blob(60), Polynomial(degree=4, gamma=0.3, coef0=1.0)
        R, order = kernel(X), []
        for _ in range(20):
            p = int(np.argmax(np.diag(R)))
            order.append(p)
            R = R - np.outer(R[p], R[p]) / R[p, p]
        np.testing.assert_array_equal(choose(GreedyCholesky(), kernel, X, 20), order)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("n", [120, 4500])
    def test_factor_and_residual(self, n, dtype):
        from mercer.selectors import cholesky

        X, kernel = blob(n).astype(dtype), RBF(gamma=0.2)
        factor = cholesky.PartialCholesky.of_kernel(kernel, X, 30)
        pivots = np.array([5, 50, 90, 7, 110])
        factor.append(3)
        factor.extend(pivots, np.linalg.cholesky(factor.block(pivots)))
        X, chosen = X.astype(float), np.r_[3, pivots]
        G, K = kernel(X[chosen], X[chosen]), kernel(X[chosen], X)
        inside, some = np.linalg.solve(G, K), slice(None, None, 11)
        eps = 1e-13 if dtype == np.float64 else 1e-5
        np.testing.assert_allclose(factor.residual, 1 - np.sum(inside * K, axis=0), atol=eps)
        L = factor.L[:6]
        np.testing.assert_allclose(L[:, some].T @ L, inside[:, some].T @ K, atol=eps)

    def test_first_pivots_follow_the_diagonal(self):
        X = np.sqrt(np.array([1.0, 2.0, 5.0]))[:, None] * np.eye(3)
        for method in ("plain", "accelerated"):
            first = [choose(RPCholesky(method), Linear(), X, 1, s)[0] for s in range(3000)]
            np.testing.assert_allclose(
                np.bincount(first, minlength=3) / 3000, np.array([1, 2, 5]) / 8, atol=0.04
            )

    def test_second_pivots_follow_the_residual(self):
        """Rejection leaves exactly the law of updating after every pivot."""
        X, kernel = np.array([[0.0], [0.3], [0.6], [2.0], [2.1]]), RBF(gamma=1.0)
        K = kernel(X)
        exact = np.zeros((5, 5))
        for i in range(5):
            left = np.diag(K) - K[:, i] ** 2
            exact[i] = left / left.sum() / 5
        drawn = np.zeros((5, 5))
        for s in range(4000):
            i, j = choose(RPCholesky(block=6), kernel, X, 2, s)
            drawn[i, j] += 1 / 4000
        np.testing.assert_allclose(drawn, exact, atol=0.025)

    def test_methods_agree_in_mean_error(self):
        X, kernel = blob(400, 6), RBF(gamma=0.05)
        errors = {
            method: np.mean(
                [
                    lost(kernel, X, X[choose(RPCholesky(method), kernel, X, 30, s)])
                    for s in range(30)
                ]
            )
            for method in ("plain", "block", "accelerated")
        }
        assert abs(errors["accelerated"] / errors["plain"] - 1) < 0.06
        assert abs(errors["block"] / errors["plain"] - 1) < 0.12


class TestGreedy:
    @pytest.mark.parametrize("copies", [False, True])
    @pytest.mark.parametrize("gamma", [0.02, 0.3])
    def test_full_greedy_takes_the_largest_gain(self, gamma, copies):
        X, kernel = blob(300), RBF(gamma=gamma)
        X = np.vstack([X, X[:60], X[:60]]) if copies else X
        R, order = kernel(X), []
        for _ in range(16):
            gain = np.sum(R**2, axis=0) / np.where(np.diag(R) > 1e-10, np.diag(R), np.inf)
            order.append(int(np.argmax(gain)))
            R = R - np.outer(R[order[-1]], R[order[-1]]) / R[order[-1], order[-1]]
        np.testing.assert_array_equal(X[choose(FullGreedy(), kernel, X, 16)], X[order])

    def test_subspace_greedy_minimizes_the_distance_to_the_targets(self):
        X, kernel, p = blob(60), RBF(gamma=0.1), 5
        K = kernel(X)
        values, U = np.linalg.eigh(K)
        values, U = values[-p:], U[:, -p:]
        order = []
        for _ in range(8):

            def overlap(i):
                D = np.array([*order, i])
                C = (U * np.sqrt(values))[D]
                return np.trace(C.T @ np.linalg.solve(K[np.ix_(D, D)], C))

            order.append(max((i for i in range(60) if i not in order), key=overlap))
        chosen = choose(SubspaceGreedy(n_targets=p), kernel, X, 8)
        np.testing.assert_array_equal(chosen, order)

    def test_all_weighted_targets_are_full_greedy(self):
        X, kernel = blob(80), RBF(gamma=0.2)
        one = choose(SubspaceGreedy(n_targets=80, weighted=True), kernel, X, 12)
        np.testing.assert_array_equal(one, choose(FullGreedy(), kernel, X, 12))

    def test_sparse_greedy_is_nested_whether_or_not_it_keeps_the_matrix(self):
        X, kernel = blob(150), RBF(gamma=0.2)
        few, many = (choose(SparseGreedy(), kernel, X, size) for size in (2, 24))
        np.testing.assert_array_equal(few, many[:2])

    def test_sparse_greedy_with_all_candidates_is_full_greedy(self):
        X, kernel = blob(80), RBF(gamma=0.2)
        one = choose(SparseGreedy(candidates=80), kernel, X, 12)
        np.testing.assert_array_equal(one, choose(FullGreedy(), kernel, X, 12))

    def test_greedy_kernel_pca_looks_at_the_farthest_rows(self):
        """One candidate is a pivoted Cholesky factor, all are a full search; few lie between."""
        X = blob(80) + 0.1 * np.random.default_rng(1).normal(size=(80, 1))
        kernel = Polynomial(degree=2, gamma=0.3, coef0=1)  # all of a Gaussian's rows tie at first
        for candidates, same in ((1, GreedyCholesky()), (80, FullGreedy())):
            selector = SparseGreedy(candidates=candidates, among="farthest")
            one = choose(selector, kernel, X, 12)
            np.testing.assert_array_equal(one, choose(same, kernel, X, 12))
        X, kernel = blob(400, 6), RBF(gamma=0.05)
        few, pivots, every = (
            lost(kernel, X, X[choose(selector, kernel, X, 30)])
            for selector in (SparseGreedy(among="farthest"), GreedyCholesky(), FullGreedy())
        )
        assert every < few < pivots
        with pytest.raises(ValueError, match="among 'random' or 'farthest'"):
            choose(SparseGreedy(among="nearest"), kernel, X, 3)

    def test_more_is_measured_the_better(self):
        X, kernel = blob(400, 6), RBF(gamma=0.05)

        def mean(selector, seeds=8):
            return np.mean(
                [lost(kernel, X, X[choose(selector, kernel, X, 30, s)]) for s in range(seeds)]
            )

        assert mean(FullGreedy(), 1) < mean(SparseGreedy()) < mean(RPCholesky())
        assert mean(SparseGreedy()) < mean(SparseGreedy(gain="subset")) < mean(Uniform())


class TestNovelty:
    def test_rule_is_the_definition(self):
        X, kernel, threshold = blob(150, 3), RBF(gamma=0.2), 0.02
        atoms = []
        for i in range(150):
            D = X[atoms] if atoms else X[:0]
            k = kernel(D, X[i : i + 1])[:, 0]
            left = 1 - (k @ np.linalg.solve(kernel(D, D), k) if atoms else 0)
            if left > threshold:
                atoms.append(i)
        np.testing.assert_array_equal(choose(Novelty(threshold), kernel, X, 150), atoms)

    def test_blocks_do_not_matter(self):
        X, kernel = blob(200, 3), RBF(gamma=0.2)
        whole, pieces = NoveltyRule(kernel, 0.01), NoveltyRule(kernel, 0.01)
        admitted = whole.admit(X)
        parts = [start + pieces.admit(X[start : start + 13]) for start in range(0, 200, 13)]
        np.testing.assert_array_equal(np.concatenate(parts), admitted)
        np.testing.assert_allclose(whole.C @ whole.C.T, kernel(whole.Z, whole.Z), atol=1e-12)
        assert whole.residual(X).max() <= 0.01 * (1 + 1e-9)

    def test_size_is_hit(self):
        X, kernel = blob(500, 5), RBF(gamma=0.05)
        for size in (1, 7, 60):
            assert len(choose(Novelty(), kernel, X, size)) == size


class TestGeometry:
    def test_farthest_point(self):
        X, kernel = blob(100), RBF(gamma=0.1)
        order = choose(FarthestPoint(), kernel, X, 15)
        D = 2 - 2 * kernel(X)
        for k in range(1, 15):
            gap = D[:, order[:k]].min(axis=1)
            assert gap[order[k]] == pytest.approx(gap.max(), rel=1e-12)

    def test_centers_are_means_of_their_cells(self):
        X = np.vstack([blob(80, 2) * 0.1 + c for c in ([0, 0], [10, 0], [0, 10])])
        Z = choose(KMeans(), RBF(gamma=1.0), X, 3)
        cells = np.argmin(((X[:, None] - Z) ** 2).sum(-1), axis=1)
        means = np.array([X[cells == j].mean(axis=0) for j in range(3)])
        np.testing.assert_allclose(Z, means, atol=1e-10)
        rows = choose(KMeans(snap=True), RBF(gamma=1.0), X, 3)
        assert sorted(cells[rows]) == [0, 1, 2]

    def test_points_are_needed(self):
        assert KMeans().needs_points and TwoStage(second=KMeans()).needs_points
        assert not TwoStage().needs_points and not TwoStage().returns_points


def group_lars_reference(A, Y, steps):
    """Multiresponse LARS on unit columns of A with a fresh QR at each step."""
    A = A / np.linalg.norm(A, axis=0)
    fit, active, levels = np.zeros_like(Y), [], []
    for _ in range(steps):
        c = np.linalg.norm(A.T @ (Y - fit), axis=1)
        if not active:
            active.append(int(np.argmax(c)))
        levels.append(c[active].max())
        Q = np.linalg.qr(A[:, active])[0]
        target = Q @ (Q.T @ Y)
        C, E = A.T @ (Y - fit), A.T @ (Y - target)
        shares = np.full(A.shape[1], np.inf)
        for i in set(range(A.shape[1])) - set(active):
            # |(1 - g) c_i + g e_i| = (1 - g) level, solved as a quadratic in g.
            u, v = C[i], E[i] - C[i]
            roots = np.roots(
                [v @ v - levels[-1] ** 2, 2 * (u @ v + levels[-1] ** 2), u @ u - levels[-1] ** 2]
            )
            good = [r.real for r in roots if abs(r.imag) < 1e-9 and -1e-12 < r.real <= 1]
            shares[i] = min(good, default=np.inf)
        step = int(np.argmin(shares))
        fit = fit + shares[step] * (target - fit)
        active.append(step)
    return active[:steps], levels


class TestLars:
    @pytest.mark.parametrize("norm", ["score", "rkhs"])
    def test_group_path_is_the_brute_force_one(self, norm):
        X, kernel, p, steps = blob(70), RBF(gamma=0.15), 6, 20
        K = kernel(X)
        values, U = np.linalg.eigh(K)
        top = slice(-1, -p - 1, -1)
        if norm == "score":
            A, Y = K, U[:, top]
        else:
            A = np.sqrt(np.maximum(values, 0))[:, None] * U.T
            Y = A @ U[:, top] / np.sqrt(values[top])
        path = GroupLasso(p, norm=norm).path(kernel, X, steps, generator(1))
        ours = [step for _, step in zip(range(steps), path, strict=False)]
        active, levels = group_lars_reference(A, Y, steps)
        assert [step.atom for step in ours] == active
        np.testing.assert_allclose([step.level for step in ours], levels, rtol=1e-8)

    @pytest.mark.parametrize("unit", [True, False])
    @pytest.mark.parametrize("norm", ["score", "rkhs"])
    def test_invariant(self, norm, unit):
        """Active correlations equal to 1e-10, no inactive one larger."""
        X, kernel = blob(250, 6), RBF(gamma=0.1)
        order, tight = [], 1e-10
        for step in GroupLasso(norm=norm, unit=unit).path(kernel, X, 60, generator(1)):
            order.append(step.atom)
            np.testing.assert_allclose(step.products[order], step.level, rtol=tight)
            assert step.products.max() <= step.level * (1 + tight)
            if len(order) == 60:
                break
        assert len(order) == 60

    def test_true_correlations_stay_equal(self):
        """Recomputed from a fresh QR: the recurrences have not drifted."""
        X, kernel, p = blob(250, 6), RBF(gamma=0.1), 40
        K = kernel(X)
        _, U = base.top_eigenpairs(K, p, generator(1))
        A = K / np.linalg.norm(K, axis=0)
        fit, order, last = np.zeros((250, p)), [], None
        for step in GroupLasso().path(kernel, X, p, generator(1)):
            if order:
                Q = np.linalg.qr(A[:, order])[0]
                share = 1 - step.level / last
                fit += share * (Q @ (Q.T @ U) - fit)
            order.append(step.atom)
            last = step.level
            c = np.linalg.norm(A.T @ (U - fit), axis=1)
            np.testing.assert_allclose(c[order], step.level, rtol=1e-10)
            assert c.max() <= step.level * (1 + 1e-10)

    def test_lasso_corners_are_optimal(self):
        """|c| equal on active atoms with the sign of their coefficients, smaller elsewhere."""
        X, kernel = blob(120, 3), RBF(gamma=0.3)
        A = kernel(X)
        y = A @ generator(2).standard_normal(120)
        sizes = []
        for active, coefficients in lasso.lasso_path(A, y, np.arange(120), 120):
            c = A.T @ (y - A[:, active] @ coefficients)
            scale, signs = np.abs(A.T @ y).max(), np.sign(coefficients)
            np.testing.assert_allclose(c[active], signs * np.abs(c).max(), atol=1e-10 * scale)
            sizes.append(len(active))
        assert np.any(np.diff(sizes) < 0), "no atom was ever dropped, so that went untested"

    @pytest.mark.parametrize("n", [1, 2, 5, 8])
    def test_a_path_ends_where_all_rows_are_active(self, n):
        """Atoms leave a square factor too."""
        for seed in range(20):
            K = RBF(gamma=0.1)(generator(seed).standard_normal((n, 5)))
            y = K @ generator(n).standard_normal(n)
            *_, (active, coefficients) = lasso.lasso_path(K, y, np.arange(n), 100)
            np.testing.assert_allclose(K[:, active] @ coefficients, y, atol=1e-8)

    def test_joint_beats_independent(self):
        X, kernel = blob(400, 6), RBF(gamma=0.05)
        one, each = (
            lost(kernel, X, X[choose(s, kernel, X, 30)]) for s in (GroupLasso(), ComponentLasso())
        )
        assert one < each


def log_likelihood(K, counts, model, center=False):
    """Mean log-likelihood up to a constant that depends on sigma^2 alone."""
    w, noise = model.weights, model.noise
    A = np.flatnonzero(w)
    root = np.sqrt(w[A])
    C = np.linalg.cholesky(np.eye(len(A)) + root[:, None] * K[np.ix_(A, A)] * root / noise)
    V = np.linalg.solve(C, root[:, None] * K[A]) / np.sqrt(noise)
    left, total = K.diagonal() - np.einsum("ij,ij->j", V, V), counts.sum()
    trace = counts @ left
    if center:
        mean = V @ counts / total
        trace -= (counts @ K @ counts) / total - total * (mean @ mean)
    return -np.log(C.diagonal()).sum() - 0.5 * trace / (total * noise)


class TestBayes:
    def model(self, center=False):
        X, kernel = blob(90, 3), RBF(gamma=0.2)
        counts = generator(4).integers(1, 4, 90)
        K = kernel(X)
        noise = np.linalg.eigvalsh(K)[-12] / counts.sum()
        return (
            K,
            counts,
            noise,
            bayes.sequential(K, counts, bayes.SparseModel(np.zeros(90), noise), 5000, center),
        )

    @pytest.mark.parametrize("center", [False, True])
    def test_likelihood_against_the_dense_gaussian(self, center):
        K, counts, noise, model = self.model(center)
        values, U = np.linalg.eigh(K)
        keep = values > 1e-12 * values[-1]
        Phi = np.sqrt(values[keep])[:, None] * U[:, keep].T
        C = noise * np.eye(keep.sum()) + (Phi * model.weights) @ Phi.T
        mean = Phi @ counts / counts.sum() if center else 0 * Phi[:, 0]
        D = Phi - mean[:, None]
        S = (D * counts) @ D.T / counts.sum()
        dense = -0.5 * (np.linalg.slogdet(C / noise)[1] + np.trace(np.linalg.solve(C, S)))
        assert log_likelihood(K, counts, model, center) == pytest.approx(dense, rel=1e-9)

    @pytest.mark.parametrize("center", [False, True])
    def test_sequential_is_a_maximum_that_em_climbs_to(self, center):
        K, counts, noise, model = self.model(center)
        top = log_likelihood(K, counts, model, center)
        for i in range(0, 90, 3):
            for change in (1e-3, -1e-3):
                w = model.weights.copy()
                w[i] = max(w[i] * (1 + change), 0) if w[i] else max(change, 0) * w.max()
                moved = log_likelihood(K, counts, model._replace(weights=w), center)
                assert moved <= top + 1e-6
        climb = [
            log_likelihood(K, counts, bayes.all_at_once(K, counts, noise, steps, center), center)
            for steps in (1, 5, 25, 100)
        ]
        assert np.all(np.diff(climb) > 0) and climb[-1] < top + 1e-4
        assert top - climb[-1] < 0.2 * (top - climb[0])
        assert np.count_nonzero(model.weights) < 60

    def test_residual_keeps_up_with_its_recurrences(self):
        K, counts = RBF(gamma=0.2)(blob(80, 3)), generator(5).integers(1, 5, 80)
        residual = bayes.ResidualGram(K.copy(), counts, center=True)
        R = K.copy()
        for i, kappa in zip(range(50), generator(6).uniform(-0.3, 0.6, 50), strict=True):
            r = residual.column(i)
            np.testing.assert_allclose(r, R[i], atol=1e-12)
            kappa = kappa / max(r[i], 1)
            residual.subtract(kappa, r)
            R = R - kappa * np.outer(R[i], R[i])
            mean = counts @ R / counts.sum()
            np.testing.assert_allclose(residual.power, counts @ (R - mean) ** 2, atol=1e-10)
            np.testing.assert_allclose(residual.diagonal, np.diag(R), atol=1e-12)

    def test_first_atom_enters_at_the_known_noise(self):
        K, counts, _, _ = self.model()
        limit = np.max(counts @ K**2 / np.diag(K)) / counts.sum()
        for noise, atoms in ((1.001 * limit, 0), (0.95 * limit, 1)):
            start = bayes.SparseModel(np.zeros(90), noise)
            weights = bayes.sequential(K, counts, start, 100).weights
            assert np.count_nonzero(weights) >= atoms and (atoms or not weights.any())

    def test_copies_are_multiplicities(self):
        X, kernel = blob(40, 3), RBF(gamma=0.2)
        many = np.vstack([X, X[:10], X[:10]])
        noise = 0.01
        a = choose(SparseBayes(noise=noise), kernel, many, 40)
        K, counts = kernel(X), np.r_[np.full(10, 3), np.ones(30, int)]
        weights = bayes.sequential(K, counts, bayes.SparseModel(np.zeros(40), noise), 5000).weights
        assert set(a) == set(np.flatnonzero(weights))


class TestSparseComponents:
    @pytest.mark.parametrize("center", [True, False])
    @pytest.mark.parametrize("method", ["lasso", "bayes"])
    def test_pattern_norm_and_variance(self, method, center):
        X, kernel = blob(120), RBF(gamma=0.15)
        K = kernel(X)
        H = np.eye(120) - center / 120
        values = np.linalg.eigvalsh(H @ K @ H)[::-1] / 120
        result = sparse_components(kernel, X, 3, 12, generator(1), method=method, center=center)
        assert np.all(result.support.sum(axis=0) == 12)
        assert len(result.atoms) == 12 if method == "bayes" else len(result.atoms) <= 36
        W = result.loadings
        np.testing.assert_allclose(np.einsum("ij,ik,kj->j", W, K, W), 1, rtol=1e-9)
        assert result.total_variance == pytest.approx(values.sum())
        assert result.variance[0] == pytest.approx(np.mean((H @ K @ W[:, 0]) ** 2))
        assert np.all(np.cumsum(result.variance) <= np.cumsum(values[:3]) + 1e-12)
        assert result.variance.sum() > 0.8 * values[:3].sum()

    def test_all_rows_give_kernel_pca(self):
        X, kernel = blob(30, 2), RBF(gamma=1.0)
        H = np.eye(30) - 1 / 30
        values = np.linalg.eigvalsh(H @ kernel(X) @ H)[::-1] / 30
        result = sparse_components(kernel, X, 3, 30, generator(1))
        np.testing.assert_allclose(result.variance, values[:3], rtol=1e-2)

    def test_copies_carry_one_loading(self):
        X = np.repeat(blob(30, 3), 3, axis=0)
        for method in ("lasso", "bayes"):
            result = sparse_components(RBF(gamma=0.2), X, 2, 5, generator(1), method=method)
            for j in range(2):
                rows = X[result.support[:, j]]
                assert len(np.unique(rows, axis=0)) == len(rows) == 5


@pytest.mark.parametrize("n", [300, 2600])
def test_leading_eigenpairs(n):
    K = RBF(gamma=0.05)(blob(n, 5))
    values, U = (part[..., ::-1] for part in eigsh(K, 12))
    found, V = base.top_eigenpairs(K, 12, generator(1))
    np.testing.assert_allclose(found, values, rtol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(U.T @ V, axis=0), 1, atol=1e-2)


@pytest.mark.parametrize("seed", range(20))
def test_as_many_eigenpairs_as_asked_for(seed):
    """LAPACK's choice for a few pairs loses some where many are equal to rounding."""
    rng, n, p = generator(seed), 60, 1 + seed % 3
    K = 1e-22 * rng.standard_normal((n, n))
    K[np.diag_indices(n)] = 1.0
    away = int(rng.integers(n))
    K[away] = K[:, away] = 0.0
    values, U = leading_eigh(np.asfortranarray((K + K.T) / 2), p)
    assert U.shape == (n, p)
    np.testing.assert_allclose(values, 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(U, axis=0), 1.0, rtol=1e-12)


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("n, size", [(40, 40), (300, 100), (1100, 60)])
def test_greedy_is_as_good_as_all_gains_at_every_step(n, size, copies):
    """Only the gains of a shortlist are updated with every atom."""
    X = blob(n, 4)
    counts = generator(n).integers(1, 4, n) if copies else np.ones(n, int)
    K = RBF(gamma=0.1)(X)
    found, exact, R = greedy.greedy_order(K.copy(), counts, size), [], K.copy()
    for _ in range(len(found)):
        diagonal = R.diagonal()
        gain = np.where(diagonal > 1e-11, R**2 @ counts / np.maximum(diagonal, 1e-11), 0)
        exact.append(int(np.argmax(gain)))
        R -= np.outer(R[exact[-1]], R[exact[-1]]) / diagonal[exact[-1]]
    # Gains nearly always fall, so that the best is on the shortlist; not always.
    assert left_by(K, found, counts) <= 1.05 * left_by(K, exact, counts) + 1e-9 * n


def left_by(K, order, counts):
    """tr R after some atoms, rows as often as they count."""
    L = np.linalg.cholesky(K[np.ix_(order, order)] + 1e-12 * np.eye(len(order)))
    B = np.linalg.solve(L, K[order])
    return float(counts @ (K.diagonal() - (B * B).sum(axis=0)))


# Upper bounds of the projection error for 50 atoms of 1,500 rows, Gaussian kernel with the mean
# distance as its width: full greedy, subspace greedy, group lasso, sparse greedy, RPCholesky and
# k-means.
BOUNDS = {
    "snr1": (0.085, 0.086, 0.095, 0.093, 0.113, 0.082),
    "snr10": (0.039, 0.041, 0.052, 0.044, 0.055, 0.040),
    "usps": (0.155, 0.156, 0.187, 0.166, 0.190, 0.128),
    "cloud": (7.9e-4, 5.9e-4, 7.8e-4, 9.0e-4, 1.2e-3, 8.6e-4),
    "covtype": (0.0557, 0.0555, 0.0674, 0.0615, 0.0751, 0.0508),
}
BOUNDED = [FullGreedy(), SubspaceGreedy(), GroupLasso(), SparseGreedy(), RPCholesky(), KMeans()]


def study_rows(name, rng):
    if name.startswith("snr"):
        return datasets.make_signal_in_noise(1500, float(name[3:]), rng).data
    import papers_data

    X = getattr(papers_data, f"load_{name}")(dtype=np.float32).data
    return X[rng.permutation(len(X))[:1500]].astype(np.float64)


@pytest.mark.parametrize(
    "name", [n if n.startswith("snr") else pytest.param(n, marks=needs_data) for n in BOUNDS]
)
def test_measured_bounds(name):
    """The bounds are for means over subsets; one subset may differ by a few percent."""
    rng = generator(11)
    X = study_rows(name, rng)
    kernel = RBF(gamma=1 / (2 * pdist(X).mean() ** 2))
    best = best_rank(kernel(X), 50)
    for selector, bound in zip(BOUNDED, BOUNDS[name], strict=True):
        Z = points(selector, X, selector.select(kernel, X, 50, rng))
        error = lost(kernel, X, Z)
        assert error <= 1.1 * bound, selector
        # Nothing within the span of 50 points beats the best 50 directions.
        assert error >= best * (1 - 1e-9)


class TestConvexLasso:
    @pytest.mark.parametrize("unit", [True, False])
    @pytest.mark.parametrize("share", [0.9, 0.5, 0.2])
    def test_conditions_of_the_minimum(self, unit, share):
        """Subgradients of the objective as it is written, by dense matrices."""
        X = blob(80, 3, key=int(10 * share))
        K = RBF(gamma=0.3)(X, X)
        values, U = (part[..., ::-1][..., :5] for part in np.linalg.eigh(K))
        problem = lasso.JointProblem(K, np.arange(80), values, U, unit)
        mu = share * np.linalg.norm(problem.C, axis=1).max()
        found = lasso.joint_lasso(problem, mu, tol=1e-8)
        A = K / np.linalg.norm(K, axis=0) if unit else K
        gradient = A.T @ ((A @ found.W - K @ U) / values)
        lengths = np.linalg.norm(found.W, axis=1)
        active = lengths > 0
        assert 0 < active.sum() < 80
        assert np.linalg.norm(gradient[~active], axis=1).max() <= mu * (1 + 1e-3)
        expected = -mu * found.W[active] / lengths[active][:, None]
        np.testing.assert_allclose(gradient[active], expected, atol=1e-3 * mu)

    def test_no_penalty_is_left_at_the_largest(self):
        X = blob(50, 3)
        K = RBF(gamma=0.3)(X, X)
        values, U = (part[..., ::-1][..., :5] for part in np.linalg.eigh(K))
        problem = lasso.JointProblem(K, np.arange(50), values, U)
        largest = np.linalg.norm(problem.C, axis=1).max()
        assert not len(lasso.joint_lasso(problem, largest * 1.001).active)
        assert len(lasso.joint_lasso(problem, largest * 0.999).active) == 1


@pytest.mark.parametrize("center", [False, True])
def test_fixed_point_climbs_where_sequential_ends(center):
    X = blob(60, 3, key=5)
    K, counts = RBF(gamma=0.3)(X, X), np.ones(60)
    noise = np.linalg.eigvalsh(K)[::-1][10] / 60
    best = bayes.sequential(K, counts, bayes.SparseModel(np.zeros(60), noise), 5000, center)
    found = bayes.all_at_once(K, counts, noise, 3000, center, pruning=True)
    likelihood = [log_likelihood(K, counts, model, center) for model in (best, found)]
    assert likelihood[1] >= likelihood[0] - 1e-3
    assert 0 < np.count_nonzero(found.weights) < 60
    em = bayes.all_at_once(K, counts, noise, 100, center)
    assert np.count_nonzero(em.weights) > np.count_nonzero(found.weights)


def test_norm_weights_with_replacement():
    X = np.array([[1.0], [2.0], [3.0], [0.0]])
    draws = np.zeros(4)
    for seed in range(600):
        (chosen,) = choose(NormWeighted(replace=True), Linear(), X, 1, seed)
        draws[chosen] += 1
    expected = np.array([1.0, 16.0, 81.0, 0.0]) / 98
    np.testing.assert_allclose(draws / 600, expected, atol=0.06)
    assert len(choose(NormWeighted(replace=True), Linear(), X, 4)) < 4


class TestPreimageDictionary:
    def test_preimage_of_a_feature_is_the_point(self):
        kernel, B = RBF(gamma=0.5), blob(40, 3)
        a = np.zeros(40)
        a[7] = 1.0
        z = online.preimage(kernel, B, a, B[7] + 0.3)
        np.testing.assert_allclose(z, B[7], atol=1e-2)

    def test_about_as_good_as_random_rows(self):
        kernel, X = RBF(gamma=0.15), blob(600)
        mean = [
            np.mean(
                [lost(kernel, X, points(s, X, choose(s, kernel, X, 15, seed))) for seed in range(3)]
            )
            for s in (PreimageDictionary(), Uniform())
        ]
        assert mean[0] < 1.15 * mean[1]

    def test_memory_of_the_rows_is_a_moment(self):
        """With as many points as the rows span, nothing is forgotten."""
        X = blob(90, 2)
        Z, root = X[:0], np.empty((0, 0))
        for start in range(0, 90, 30):
            rows = X[start : start + 30]
            Z, root = online.with_block(Linear(), 5, Z, root, rows, np.ones(30))
        np.testing.assert_allclose(Z.T @ root @ root.T @ Z, X.T @ X, atol=1e-8)


@pytest.mark.parametrize("n", [150, 2_000, 40_000, 10**7, None])
def test_the_default_takes_less_time_than_the_fit(n):
    """Its work grows no faster than that of the moments, n m^2, beside what a few rows take."""
    for size in (10, 100, 299, 300, 1_000):
        selector = default_selector(n, size)
        assert selector.pool >= 2 * size or selector.pool >= 2000
        if isinstance(selector.second, FullGreedy):
            most = max(2000**2, 4 * size**2) if n is None else n * size / 9
            assert selector.pool**2 <= max(most, 300**2, 4 * size**2)
        else:
            assert selector.pool <= max(2000, 4 * size)


def test_the_default_loses_less_than_random_rows():
    X = generator(5).standard_normal((1500, 3)) * [3.0, 1.0, 0.3]
    kernel = RBF(0.5)
    for size in (40, 320):
        chosen = default_selector(1500, size).select(kernel, X, size, generator(size))
        some = Uniform().select(kernel, X, size, generator(size))
        assert error_of(kernel, X, chosen) < 0.9 * error_of(kernel, X, some)


def error_of(kernel, X, chosen):
    """tr(K - K_nys) of some rows."""
    values, V = np.linalg.eigh(kernel(X[chosen]))
    kept = values > 1e-10
    Y = kernel(X, X[chosen]) @ (V[:, kept] / np.sqrt(values[kept]))
    return len(X) - float((Y**2).sum())
