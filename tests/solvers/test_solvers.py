"""Solvers: one table of all solvers x operators, then the corners of each."""

import numpy as np
import pytest
from contracts import check_eigenpairs, check_solver, generator
from scipy.stats import ortho_group
from threadpoolctl import threadpool_limits

from mercer import KernelPCA
from mercer.compute.linalg import leading_eigh
from mercer.hebbian import GAINS, Hebbian
from mercer.operators import DenseOperator
from mercer.solvers import SOLVERS, Arpack, BlockKrylov, Dense, Eigenpairs, Randomized, canonical
from mercer.solvers.base import (
    FULL_FLOOR,
    NEGATIVE_SHARE,
    ZERO_SHARE,
    clip_rounding,
    column_norms,
    orthonormal_against,
    small_eigh,
)
from mercer.solvers.block_krylov import DOUBT_FACTOR, Ritz, Sizes, Watch, refine
from mercer.solvers.peers import likely_rest, probes

N, R = 140, 6


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    """Small matrices: several threads wait for each other, for seconds on a busy machine."""
    with threadpool_limits(1):
        yield


def rotated(values, seed=0):
    """A symmetric matrix with the given eigenvalues."""
    Q = ortho_group.rvs(len(values), random_state=np.random.RandomState(seed + 17))
    A = (Q * values) @ Q.T
    return (A + A.T) / 2


def spectrum(name, n=N):
    k = np.arange(n)
    return {
        "easy": 0.6**k,
        "slow": 1.0 / (1 + k),
        "clustered": np.r_[5.0, 4 + 1e-7 * np.arange(4), 0.9 ** np.arange(n - 5)],
        "equal pairs": np.repeat(0.7 ** np.arange(n // 2), 2),
        "flat": 1 + 0.01 * np.cos(k),
        "rank deficient": np.r_[3.0, 2.0, 1.0, np.zeros(n - 3)],
        "indefinite": np.r_[0.6 ** np.arange(n // 2), -0.8 * 0.7 ** np.arange(n - n // 2)],
        "near identity": 1 + 1e-9 * np.sin(k),
        "identity": np.ones(n),
        "one giant": np.r_[1e8, 0.8 ** np.arange(n - 1)],
    }[name]


SPECTRA = [
    "easy",
    "slow",
    "clustered",
    "equal pairs",
    "flat",
    "rank deficient",
    "indefinite",
    "near identity",
    "identity",
    "one giant",
]
# A fixed number of passes cannot resolve these; its residuals must still be true.
HARD_FOR_RANDOMIZED = {"slow", "flat", "clustered"}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("solver", SOLVERS)
def test_contract(solver, name):
    A = rotated(spectrum(name))
    recipe = SOLVERS[solver]()
    rough = {"randomized": HARD_FOR_RANDOMIZED, "gram-power": SPECTRA}  # a fixed number of passes
    if name not in rough.get(solver, ()):
        r = 3 if name == "indefinite" else R
        tol = 1e-8 if solver != "randomized" else 0.1
        check_solver(recipe, DenseOperator(A), A, r, tol)
    else:
        pairs = recipe.solve(DenseOperator(A), R, generator(1))
        true = np.linalg.norm(A @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
        # Both are rounded as the products with the largest eigenvalue are.
        atol = 1e-12 + 1e-14 * np.abs(pairs.values[0])
        np.testing.assert_allclose(pairs.residuals, true, rtol=1e-6, atol=atol)


@pytest.mark.parametrize("name", SPECTRA)
def test_krylov_says_whether_it_converged(name):
    A = rotated(spectrum(name))
    pairs = BlockKrylov().solve(DenseOperator(A), R, generator(2), tol=1e-6)
    top = np.abs(pairs.values).max()
    assert pairs.converged == (pairs.residuals.max() <= 1e-6 * top)
    if name not in ("flat",):
        assert pairs.converged


class Counted(DenseOperator):
    """Counts products, and may offer a float32 draft that counts into the same list."""

    def __init__(self, A, draft=False, log=None):
        super().__init__(A)
        self.products = [] if log is None else log
        self._draft = Counted(A.astype(np.float32), log=self.products) if draft else None

    def __matmul__(self, V):
        self.products.append(V.shape[1])
        return (self.A @ V.astype(self.A.dtype)).astype(float)

    @property
    def draft(self):
        return self._draft


@pytest.mark.parametrize("draft", [False, True])
@pytest.mark.parametrize("name", ["easy", "slow", "clustered", "indefinite"])
def test_krylov_counts_its_products(name, draft):
    A = Counted(rotated(spectrum(name)), draft)
    states = []
    pairs = BlockKrylov().solve(A, 3, generator(3), report=lambda s: states.append(s))
    assert pairs.n_passes == len(A.products)
    check_eigenpairs(pairs, A.A, 3)
    residuals = [s.residual for s in states]
    assert residuals[-1] <= FULL_FLOOR and states[-1].tol == FULL_FLOOR
    assert [s.n_passes for s in states] == sorted({s.n_passes for s in states})


class Noisy(DenseOperator):
    """A matrix with drafts whose products are off by given shares of its norm."""

    def __init__(self, A, noise, log, level=0):
        super().__init__(A)
        self.log, self.level, self.noise = log, level, noise
        self.E = symmetric_noise(A, noise[0])

    def __matmul__(self, V):
        self.log.append(self.level)
        return (self.A + self.E) @ V

    def rounded(self, V):
        """Three digits, where a draft has no more."""
        return np.round(V, 3) if self.noise[0] else V

    @property
    def draft(self):
        rest = self.noise[1:]
        return Noisy(self.A, rest, self.log, self.level + 1) if rest else None


def symmetric_noise(A, share):
    E = generator(len(A)).standard_normal(A.shape)
    E = E + E.T
    return share * np.linalg.norm(A, 2) / np.linalg.norm(E, 2) * E


@pytest.mark.parametrize("name", ["easy", "slow", "clustered", "equal pairs"])
@pytest.mark.parametrize(
    ("noise", "tol"), [((0, 1e-7), 1e-9), ((0, 3e-7, 3e-4), 1e-5), ((0, 3e-7, 3e-4), 1e-9)]
)
def test_each_precision_costs_one_product(name, noise, tol, monkeypatch):
    """Corrections of a better precision are multiplied by the worse one."""
    monkeypatch.setattr("mercer.solvers.block_krylov.WHOLE_ROWS", 0)  # as of many rows
    A = Noisy(rotated(spectrum(name)), noise, [])
    pairs = BlockKrylov().solve(A, 4, generator(4), tol=tol)
    assert pairs.converged
    true = column_norms(A.A @ pairs.vectors - pairs.vectors * pairs.values)
    assert np.max(true) <= tol * pairs.values[0]
    np.testing.assert_allclose(pairs.values, spectrum(name)[:4], atol=tol * pairs.values[0])
    if name in ("easy", "slow"):
        assert A.log.count(0) == (tol < 1e-6)
        assert tol < 1e-6 or A.log.count(1) == 1


def test_draft_of_no_use_does_no_harm():
    """A draft whose rounding hides all pairs but one: the rest is left to the operator itself."""
    A = Noisy(rotated(spectrum("one giant")), (0, 1e-7), [])
    pairs = BlockKrylov().solve(A, 4, generator(5), tol=1e-9)
    assert pairs.converged
    check_eigenpairs(pairs, A.A, 4, tol=1e-9)


@pytest.mark.parametrize("draft", [False, True])
def test_draft_does_not_limit_accuracy(draft):
    """Single-precision passes find the subspace; the result has double precision."""
    values = 0.8 ** np.arange(N)
    A = Counted(rotated(values), draft)
    pairs = BlockKrylov().solve(A, R, generator(4))
    assert pairs.converged
    np.testing.assert_allclose(pairs.values, values[:R], rtol=1e-12)
    assert pairs.residuals.max() <= 1e-9


def test_tolerance_saves_passes():
    A = rotated(spectrum("slow"))
    passes = [
        BlockKrylov().solve(DenseOperator(A), R, generator(5), tol=tol).n_passes
        for tol in (1e-2, 1e-5, 0)
    ]
    assert passes[0] < passes[1] < passes[2]


@pytest.mark.parametrize("max_columns", [1, 45, 60])
def test_thick_restart_with_few_columns(max_columns):
    """Restarts keep the wanted Ritz vectors: the same answer in a tiny basis."""
    A = rotated(spectrum("slow"))
    solver = BlockKrylov(max_columns=max_columns)
    pairs = solver.solve(DenseOperator(A), R, generator(6))
    assert pairs.converged
    check_eigenpairs(pairs, A, R)
    plain = BlockKrylov(max_columns=200).solve(DenseOperator(A), R, generator(6))
    assert pairs.n_passes >= plain.n_passes


@pytest.mark.parametrize("block", [1, 2, 5, 14, 40])
def test_any_block_width(block):
    A = rotated(spectrum("easy", 260))
    pairs = BlockKrylov(block=block).solve(DenseOperator(A), R, generator(7))
    assert pairs.converged
    check_eigenpairs(pairs, A, R)


@pytest.mark.parametrize("max_passes", [1, 2, 3, 5, 8, 12])
@pytest.mark.parametrize("draft", [False, True])
def test_passes_are_capped(max_passes, draft):
    A = Counted(rotated(spectrum("flat")), draft)
    pairs = BlockKrylov(max_passes=max_passes).solve(A, R, generator(8))
    assert not pairs.converged
    assert len(A.products) <= max(max_passes, 2), "one pass and one for the true residuals"
    check_eigenpairs(pairs, A.A, R)


@pytest.mark.parametrize("stop", [1, 2, 4])
@pytest.mark.parametrize("block", [None, 2])
def test_report_can_stop(stop, block):
    A = Counted(rotated(spectrum("flat")))
    states = []

    def report(state):
        states.append(state)
        return len(states) == stop

    pairs = BlockKrylov(block=block).solve(A, R, generator(9), report=report)
    assert not pairs.converged
    assert pairs.values.shape == (R,), "as many components as asked for, however early the stop"
    assert len(A.products) <= stop + 1 + 7
    check_eigenpairs(pairs, A.A, R)


def test_wide_problems_have_blocks_narrower_than_the_result():
    n, r = 700, 150
    values = 0.97 ** np.arange(n)
    A = np.diag(values)
    pairs = BlockKrylov().solve(DenseOperator(A), r, generator(10), tol=1e-6)
    assert pairs.converged
    np.testing.assert_allclose(pairs.values, values[:r], atol=1e-6)
    stopped = BlockKrylov().solve(DenseOperator(A), r, generator(10), report=lambda s: True)
    assert stopped.values.shape == (r,)


def test_krylov_of_most_components_is_dense():
    A = rotated(spectrum("slow", 60))
    pairs = BlockKrylov().solve(DenseOperator(A), 40, generator(11))
    check_eigenpairs(pairs, A, 40)


@pytest.mark.parametrize("r", [1, 2, 15, 16, 59, 60, 61])
def test_dense_any_count(r):
    A = rotated(spectrum("slow", 60))
    pairs = Dense().solve(DenseOperator(A), r, generator(12))
    check_eigenpairs(pairs, A, min(r, 60))


@pytest.mark.parametrize("r", [3, 30, 59])
@pytest.mark.parametrize("name", SPECTRA)
def test_some_components_or_all_of_them_are_the_same(name, r):
    A = rotated(spectrum(name, 60))
    some, every = (
        Dense(subset).solve(DenseOperator(A), r, generator(12)) for subset in (True, False)
    )
    for pairs in (some, every):
        check_eigenpairs(pairs, A, r)
    scale = 1e-12 * np.abs(some.values).max()
    np.testing.assert_allclose(some.values, every.values, rtol=0, atol=scale)


@pytest.mark.parametrize("solver", [Dense(), BlockKrylov(), Randomized()])
def test_zero_operator(solver):
    A = np.zeros((80, 80))
    pairs = solver.solve(DenseOperator(A), 3, generator(13))
    np.testing.assert_allclose(pairs.values, 0, atol=1e-300)
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("solver", [Dense(), BlockKrylov()])
def test_indefinite_is_noticed(solver):
    A = rotated(spectrum("indefinite", 60 if isinstance(solver, Dense) else N))
    r = A.shape[0] if isinstance(solver, Dense) else 3
    assert solver.solve(DenseOperator(A), r, generator(14)).least < -0.5
    definite = rotated(spectrum("easy"))
    least = solver.solve(DenseOperator(definite), min(r, 3), generator(15)).least
    assert least is None or least > -1e-12


def test_scale_does_not_matter():
    A = rotated(spectrum("slow"))
    for scale in (1e-50, 1e-8, 1e12, 1e50):
        pairs = BlockKrylov().solve(DenseOperator(A * scale), R, generator(16))
        assert pairs.converged
        np.testing.assert_allclose(pairs.values / scale, spectrum("slow")[:R], rtol=1e-9)


@pytest.mark.parametrize("count", [1, 6, 30])
def test_arpack_on_the_formed_matrix_is_the_same(count):
    A = DenseOperator(rotated(np.linspace(3.0, -1.0, 120)))
    formed, free = (Arpack(form=form).solve(A, count, generator(2)) for form in (True, False))
    np.testing.assert_allclose(formed.values, free.values, rtol=1e-11)
    assert formed.residuals.max() < 1e-12 * formed.values[0] * 120
    A.definite = False
    assert Arpack(form=True).solve(A, count, generator(2)).least < 0


def test_arpack_says_what_it_cannot_do():
    A = DenseOperator(rotated(spectrum("flat", 60)))
    with pytest.raises(ValueError, match=r"fewer than n_samples=60.*Use eigen_solver='dense'"):
        Arpack().solve(A, 60, generator(17))
    with pytest.raises(ValueError, match=r"arpack' found \d+ of 5.*max_iter=1\. Raise max_iter"):
        Arpack(max_iter=1).solve(A, 5, generator(17))


def test_randomized_finds_the_largest_values_not_the_largest_moduli():
    A = rotated(spectrum("indefinite"))
    pairs = Randomized(iterated_power=30).solve(DenseOperator(A), 3, generator(18))
    np.testing.assert_allclose(pairs.values, [1, 0.6, 0.36], atol=1e-8)


@pytest.mark.parametrize("draft", [False, True])
@pytest.mark.parametrize("power", [0, 3])
def test_randomized_makes_a_fixed_number_of_products(power, draft):
    A = Counted(rotated(spectrum("flat")), draft)
    pairs = Randomized(power).solve(A, R, generator(18))
    assert pairs.n_passes == len(A.products) == power + 2
    assert Randomized(power, max_passes=2).solve(A, R, generator(18)).n_passes == 2


def test_randomized_does_not_call_large_residuals_converged():
    A = DenseOperator(rotated(spectrum("flat")))
    pairs = Randomized(iterated_power=0).solve(A, R, generator(18), tol=1e-8)
    assert pairs.residuals.max() > 1e-4
    assert not pairs.converged


# --- order, sign, clipping


def test_canonical_sorts_and_signs():
    rng = generator(20)
    U, _ = np.linalg.qr(rng.standard_normal((30, 4)))
    pairs = canonical(Eigenpairs(np.array([1.0, 3, 2, 5]), U, np.array([1.0, 2, 3, 4])))
    np.testing.assert_array_equal(pairs.values, [5, 3, 2, 1])
    np.testing.assert_array_equal(pairs.residuals, [4, 2, 3, 1])
    peaks = pairs.vectors[np.abs(pairs.vectors).argmax(axis=0), range(4)]
    assert (peaks > 0).all()
    np.testing.assert_allclose(np.abs(pairs.vectors), np.abs(U[:, [3, 1, 2, 0]]))
    flipped = canonical(Eigenpairs(np.array([1.0, 3, 2, 5]), -U, np.zeros(4)))
    np.testing.assert_array_equal(flipped.vectors, pairs.vectors)


@pytest.mark.parametrize("precision", "fd")
def test_rounding_is_clipped(precision):
    zero, negative = ZERO_SHARE[precision], NEGATIVE_SHARE[precision]
    values = np.array([2.0, 1.0, 3 * zero, zero, -zero, -negative])
    np.testing.assert_array_equal(clip_rounding(values, precision), [2, 1, 3 * zero, 0, 0, 0])
    with pytest.raises(ValueError, match=r"significant negative eigenvalues.*fewer components"):
        clip_rounding(np.array([2.0, -4 * negative]), precision)
    with pytest.raises(ValueError, match="negative"):
        clip_rounding(np.array([-1.0, -2.0]), precision)
    np.testing.assert_array_equal(clip_rounding(np.zeros(3)), np.zeros(3))


def test_clipping_does_not_change_the_order_of_vectors():
    U = np.eye(5)
    pairs = canonical(Eigenpairs(np.array([1.0, -1e-15, 1e-14, 0.5, -1e-14]), U, np.zeros(5)))
    np.testing.assert_array_equal(pairs.values, [1, 0.5, 0, 0, 0])
    np.testing.assert_array_equal(pairs.vectors[:, :2], U[:, [0, 3]])


# --- small steps


@pytest.mark.parametrize("case", ["plain", "in the span", "repeated", "zero"])
def test_orthonormal_against(case):
    rng = generator(21)
    Q, _ = np.linalg.qr(rng.standard_normal((50, 8)))
    W = rng.standard_normal((50, 4))
    if case == "in the span":
        W[:, 1:] = Q[:, :3] * 1e3 + 1e-13 * W[:, 1:]
    elif case == "repeated":
        W[:, 2] = W[:, 1]
    elif case == "zero":
        W[:, 0] = 0
    V, C, B = orthonormal_against(W, Q)
    np.testing.assert_allclose(V.T @ V, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(Q.T @ V, 0, atol=1e-12)
    np.testing.assert_allclose(Q @ C + V @ B, W, atol=1e-10 * max(1, np.abs(W).max()))


def test_small_eigh_reads_both_triangles():
    T = np.array([[2.0, 1e-3], [0.0, 1.0]])
    values, vectors = small_eigh(T)
    S = (T + T.T) / 2
    np.testing.assert_allclose(S @ vectors, vectors * values, atol=1e-15)
    assert values[0] > values[1]
    np.testing.assert_allclose(column_norms(vectors), 1)


def test_refine_gains_digits_by_corrections():
    """From a rough subspace, corrections on the draft reach double precision in few passes."""
    values = 0.7 ** np.arange(N)
    A = Counted(rotated(values), draft=True)
    U = np.linalg.eigh(A.A)[1][:, ::-1][:, :10]
    U = U + 1e-4 * generator(22).standard_normal(U.shape)
    watch, rng = Watch(4, 100, 1e-9, lambda state: False), generator(23)
    rest = np.empty((N, 0))
    R = A.draft @ U[:, :4] - U[:, :4] * values[:4]
    rough = Ritz(values[:10], U, R, (rest, rest))
    sizes = Sizes(10, 10, 80)
    pairs = refine(A, 0, rough, 1e-9, sizes, rng, watch, DOUBT_FACTOR).pairs(watch)
    assert pairs.converged and pairs.residuals.max() <= 1e-9
    check_eigenpairs(pairs, A.A, 4)


def test_bias_of_the_draft_is_taken_out_of_the_eigenvalues(monkeypatch):
    """Rows in full precision tell what single precision did to all values alike."""
    monkeypatch.setattr("mercer.solvers.block_krylov.WHOLE_ROWS", 0)  # as of many rows

    class Biased(DenseOperator):
        @property
        def draft(self):
            return DenseOperator((1 - 1e-5) * self.A)

        def rows_times(self, index, V):
            return self.A[index] @ V

    rng = generator(30)
    U, _ = np.linalg.qr(rng.standard_normal((200, 200)))
    values = 0.6 ** np.arange(200)
    pairs = BlockKrylov().solve(Biased((U * values) @ U.T), 3, rng, tol=1e-4)
    assert pairs.converged
    np.testing.assert_allclose(pairs.values, values[:3], rtol=1e-7)
    # The bias stays in the residuals: it was measured, not removed from the vectors' product.
    assert np.all(pairs.residuals >= 1e-5 * values[:3])


@pytest.mark.parametrize("gain", GAINS)
def test_hebbian_rules_are_a_solver(gain):
    X = generator(list(GAINS).index(gain)).standard_normal((120, 4)) * [5, 3, 2, 1]
    A = X @ X.T
    solver = Hebbian(gain, n_passes=20)
    pairs = check_solver(solver, DenseOperator(A), A, 3)
    np.testing.assert_allclose(pairs.values, np.linalg.eigvalsh(A)[::-1][:3], rtol=1e-2)
    assert solver.cap(2).n_passes == 2 and solver.needs_definite
    free = Hebbian(gain, n_passes=2, readout="free").solve(DenseOperator(A), 3, generator(1))
    assert not free.bounded and free.ritz == GAINS[gain]().orthonormal


def test_hebbian_kernel_pca_by_solver_or_estimator():
    X = generator(3).standard_normal((90, 3))
    kernel = {"kernel": "rbf", "gamma": 0.3}
    exact = KernelPCA(3, **kernel).fit(X)
    solver = KernelPCA(3, eigen_solver=Hebbian(n_passes=30), tol=1e-3, **kernel).fit(X)
    np.testing.assert_allclose(solver.eigenvalues_, exact.eigenvalues_, rtol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_leading_eigh_is_lapack(n):
    """Pairs of the lower triangle, for every number of them; the upper one is not read."""
    A = generator(n).standard_normal((n, n))
    A = A + A.T
    values = np.linalg.eigvalsh(A)[::-1]
    for r in range(1, n + 1):
        w, U = leading_eigh(np.asfortranarray(np.tril(A)), r)
        np.testing.assert_allclose(w, values[:r], atol=1e-12 * n)
        np.testing.assert_allclose(A @ U, U * w, atol=1e-12 * n)


def test_dense_refuses_what_is_not_finite():
    A = np.eye(5)
    A[3, 2] = A[2, 3] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        Dense().solve(DenseOperator(A), 2, generator(0))


def test_extra_columns_a_basis_are_all_there():
    """Whatever of them lies in its span but for rounding: none of the others is lost for it."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, q, b = int(rng.integers(12, 60)), int(rng.integers(1, 5)), int(rng.integers(1, 6))
        Q, _ = np.linalg.qr(rng.normal(size=(n, q)))
        W = rng.normal(size=(n, b)) * 10.0 ** rng.integers(-6, 1, b)
        for j in np.flatnonzero(rng.random(b) < 0.4):
            # In the span of Q, zero, or that of another column.
            spans = (Q @ rng.normal(size=q), np.zeros(n), W[:, rng.integers(b)])
            W[:, j] = spans[rng.integers(3)]
        V, C, B = orthonormal_against(W, Q)
        size = np.abs(W).max() or 1.0
        np.testing.assert_allclose(Q @ C + V @ B, W, atol=1e-14 * size)
        np.testing.assert_allclose(V.T @ V, np.eye(b), atol=1e-14)
        np.testing.assert_allclose(Q.T @ V, 0.0, atol=1e-14)


def test_random_starts_bound_what_is_left():
    """Also where leading vectors were missed; as often as stated where that is seldom enough."""
    below = 0
    for seed in range(120):
        rng = generator(seed, 5)
        n, k, unit = rng.integers(30, 120), rng.integers(0, 5), 10.0 ** rng.integers(-8, 8)
        values = np.sort(rng.exponential(1, n) ** rng.uniform(0.5, 4))[::-1] * unit
        values[1 : 1 + 3 * (seed % 3 == 0)] = values[1]
        values[10 : 10 + n * (seed % 4 == 0)] = 0.0
        A = rotated(values, seed)
        vectors = np.linalg.eigh(A)[1][:, ::-1]
        Q = vectors[:, 1 : k + 1] if seed % 2 else np.linalg.qr(rng.standard_normal((n, k)))[0]
        left = np.eye(n) - Q @ Q.T
        true = np.linalg.eigvalsh(left @ A @ left)[-1]
        seen = probes(lambda v, A=A: A @ v, Q, int(rng.integers(2, 20)), rng)
        assert likely_rest(Q, *seen, values[0], 1e-6) >= true * (1 - 1e-9)
        below += likely_rest(Q, *seen, values[0], 0.3) < true
    assert below <= 0.5 * 120
