"""Rounding is part of every bound: rows that round alike, judged in long double.

A few different rows, each of them many times: whatever rounding does to a kernel value it does to
all its copies, so that eigenvalues are off by the sum and not by its root. What is true of them is
known from a matrix of the different rows alone.
"""

import warnings

import numpy as np
import pytest
from contracts import generator
from fuzz import FORMULAS, LEAST_HELD, WIDE, Problem, rbf, share_of_leading, violations

from mercer import KernelPCA
from mercer.bases import AllPoints, FourierGrid, Landmarks, RandomFeatures
from mercer.exceptions import MercerWarning
from mercer.kernels import BlockFunction
from mercer.solvers import BlockKrylov

# What long double leaves of eigenvalues, and the rounding of a share to a number.
DIGITS, EPS = 100 * np.finfo(WIDE).eps, np.finfo(float).eps


def jacobi(S):
    """Eigenvalues, largest first, and vectors of a small symmetric matrix in its own precision."""
    S, U = S.copy(), np.eye(len(S), dtype=S.dtype)
    for _ in range(12):
        for i in range(len(S)):
            for j in range(i):
                angle = np.arctan2(2 * S[i, j], S[i, i] - S[j, j]) / 2
                turn = np.eye(len(S), dtype=S.dtype)
                turn[i, i] = turn[j, j] = np.cos(angle)
                turn[i, j], turn[j, i] = -np.sin(angle), np.sin(angle)
                S, U = turn.T @ S @ turn, U @ turn
    order = np.argsort(-np.diag(S))
    return np.diag(S)[order], U[:, order]


def truth(Z, counts, kernel, gamma, center):
    """Eigenvalues, eigenvectors and the matrix of rows Z, each so many times."""
    Z, counts = Z.astype(WIDE), counts.astype(WIDE)
    share = counts / counts.sum()
    if kernel["kernel"] in ("linear", "cosine"):
        # Centered as rows, since inner products lose the digits of rows far from the origin.
        Z = Z if kernel["kernel"] == "linear" else Z / np.sqrt((Z * Z).sum(axis=1))[:, None]
        for _ in range(2 * center):
            Z = Z - share @ Z
        K = Z @ Z.T
    else:
        K = FORMULAS[kernel["kernel"]](Z, WIDE(gamma), kernel)
    if center:
        K = K - share @ K
        K = K - (K @ share)[:, None]
    A = np.sqrt(counts)[:, None] * K * np.sqrt(counts)
    values, U = jacobi((A + A.T) / 2)
    return values, U, A


def false_statements(model, Z, counts, kernel, center=True):
    """What the certificate of a fit to copies says that is not so, but for long double's digits."""
    gamma = model.kernel_.get_params().get("gamma", 1.0)
    values, U, A = truth(Z, counts, kernel, gamma, center)
    certificate, found = model.certificate_, []
    r = certificate.eigenvalue_lower.size
    true = np.append(values, np.zeros(r, WIDE))[:r]
    ends = [(certificate.eigenvalue_lower, certificate.eigenvalue_upper)]
    if certificate.kind == "estimate":
        ends = []
    if certificate.confidence is not None:
        ends.append((certificate.likely_lower, certificate.likely_upper))
    for lower, upper in ends:
        off = np.maximum(lower - true, true - upper)
        if np.any(off > DIGITS * values[0]):
            found.append(f"intervals miss by {float(np.max(off / values[0])):.1e} of the first")
    if model.basis == "points" and Z.dtype == np.float64:
        found += false_share(model, Z, counts, A)
    scores = model.transform(Z)
    # Numbers given in single precision are rounded to it.
    rounding = np.finfo(np.float32).eps if scores.dtype == np.float32 else 0.0
    stated = [] if certificate.score_error is None else certificate.score_error[: len(values)]
    for i in np.flatnonzero(np.isfinite(stated)):
        s, t = np.sqrt(counts) * scores[:, i].astype(WIDE), np.sqrt(values[i]) * U[:, i]
        off = min(np.linalg.norm((s - t).astype(float)), np.linalg.norm((s + t).astype(float)))
        share = off / float(np.sqrt(values[i]))
        if share > stated[i] + rounding:
            found.append(f"score {i} off by {share:.1e}, not {stated[i]:.1e}")
    return found


def false_share(model, Z, counts, A):
    """The share of the variance that the vectors of a fit to all rows hold."""
    first = np.cumsum(np.append(0, counts))[:-1] if len(model.eigenvectors_) > len(Z) else ...
    U = model.eigenvectors_[first].astype(WIDE) * np.sqrt(counts.astype(WIDE))[:, None]
    U = U[:, model.eigenvalues_ > 0]
    held = min(np.sum(U * (A @ U) / np.sum(U * U, axis=0)) / np.trace(A), WIDE(1))
    low, high = model.certificate_.captured_variance
    if low - EPS <= held <= high + EPS:
        return []
    return [f"{float(held):.17g} is held, not {low:.17g} to {high:.17g}"]


KERNELS = {
    "rbf": {"kernel": "rbf"},
    "laplacian": {"kernel": "laplacian"},
    "poly": {"kernel": "poly", "degree": 3, "coef0": 1.0},
    "linear": {"kernel": "linear"},
    "cosine": {"kernel": "cosine"},
}


def copies(rng, groups, most, offset=0.0, far=1.0, dtype=float):
    """A few rows, and how often there is each."""
    Z = rng.standard_normal((groups, 3)) * far + offset
    return Z.astype(dtype), rng.integers(1, most, groups)


def fit(model, Z, counts, weighted):
    if weighted:
        return model.fit(Z, sample_weight=counts.astype(float))
    return model.fit(np.repeat(Z, counts, axis=0))


WAYS = {
    "dense": {"eigen_solver": "dense", "basis": "points"},
    "krylov": {"eigen_solver": "krylov", "basis": "points"},
    "few": {"eigen_solver": BlockKrylov(block=4, oversampling=2), "basis": "points"},
    "columns": {"basis": "columns"},
    "landmarks": {"basis": "landmarks"},
    "features": {"basis": RandomFeatures(40)},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("way", WAYS)
def test_rows_that_round_alike(way, name, dtype):
    served = {"features": ("rbf", "laplacian"), "columns": ("linear", "cosine")}
    if name not in served.get(way, KERNELS):
        return
    wrong = []
    for seed in range(8):
        rng = generator(seed, len(name), len(way))
        offset = float(rng.choice([0.0, 3.0, 30.0]))
        Z, counts = copies(rng, 5, 200, offset, 10 ** rng.uniform(-1, 1), dtype)
        options = dict(WAYS[way])
        if way == "landmarks":
            options["basis"] = Landmarks(points=Z)
        center = bool(rng.integers(2))
        model = KernelPCA(3, gamma=float(10 ** rng.uniform(-2, 0.5)), center=center, **options)
        model.set_params(random_state=seed, **KERNELS[name])
        fit(model, Z, counts, weighted=bool(rng.integers(2)))
        found = false_statements(model, Z, counts, KERNELS[name], center)
        wrong += [f"seed {seed}: {sentence}" for sentence in found]
    assert not wrong, wrong


@pytest.mark.filterwarnings("ignore")
def test_sums_over_many_equal_rows_of_few_columns():
    """Each term of a sum is rounded as its copies are: by the number of rows, not of columns."""
    wrong = []
    for seed in range(60):
        rng = generator(seed, 362)
        Z, counts = copies(rng, int(rng.integers(2, 5)), int(10 ** rng.uniform(2, 3.3)))
        Z, name = Z[:, : rng.integers(1, 4)], str(rng.choice(["linear", "cosine"]))
        model = fit(KernelPCA(2, kernel=name, basis="columns"), Z, counts, weighted=False)
        found = false_statements(model, Z, counts, KERNELS[name])
        wrong += [f"seed {seed}: {sentence}" for sentence in found]
    assert not wrong, wrong


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["rbf", "poly", "linear", "laplacian"])
@pytest.mark.parametrize("way", ["dense", "krylov"])
def test_weights_far_apart(way, name):
    """Also of rows that are far away and have little weight."""
    wrong = []
    for seed in range(40):
        rng = generator(seed, 1, len(name), len(way))
        Z = rng.standard_normal((int(rng.integers(3, 8)), 3)) * 10 ** rng.uniform(-1, 1)
        Z[rng.integers(len(Z))] *= 10 ** rng.uniform(0, 8)
        weights = 10 ** rng.uniform(-12, 12, len(Z))
        options = KERNELS[name] | WAYS[way] | {"gamma": float(10 ** rng.uniform(-2, 0.5))}
        model = KernelPCA(3, random_state=0, **options).fit(Z, sample_weight=weights)
        found = false_statements(model, Z, weights, KERNELS[name])
        wrong += [f"seed {seed}: {sentence}" for sentence in found]
    assert not wrong, wrong


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["dense", "landmarks"])
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_neighbors_far_from_the_other_rows(name, way):
    """Distances of rows far from the median are differences of large numbers."""
    wrong = []
    for seed in range(20):
        rng = generator(seed, 2, len(way))
        gamma = float(10 ** rng.uniform(-1, 1))
        Z = rng.standard_normal((4, 2)) / np.sqrt(gamma)
        Z[2:] = Z[2:] / 3 + np.sqrt(rng.uniform(300, 900) / gamma) * np.array([0.6, 0.8])
        counts = np.array([40, 20, 50, 45]) if seed % 2 else np.array([60, 55, 30, 20])
        options = {"basis": Landmarks(points=Z)} if way == "landmarks" else WAYS[way]
        model = KernelPCA(3, center=False, random_state=0, gamma=gamma, kernel=name, **options)
        fit(model, Z, counts, weighted=False)
        found = false_statements(model, Z, counts, KERNELS[name], center=False)
        wrong += [f"seed {seed}: {sentence}" for sentence in found]
    assert not wrong, wrong


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["linear", "cosine"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_far_from_the_origin_and_of_any_size(name, dtype):
    wrong = []
    for seed in range(40):
        rng = generator(seed, 3, len(name))
        Z = rng.standard_normal((5, 3)) * 10 ** rng.uniform(-4, 0, 3)
        Z = (Z + 10 ** rng.uniform(-1, 7) * rng.integers(0, 2, 3)).astype(dtype)
        if len(np.unique(Z, axis=0)) < 5:
            continue
        counts, center = rng.integers(1, 300, 5), bool(rng.integers(2))
        model = KernelPCA(3, kernel=name, basis="columns", center=center)
        fit(model, Z, counts, weighted=bool(rng.integers(2)))
        found = false_statements(model, Z, counts, KERNELS[name], center)
        wrong += [f"seed {seed}: {sentence}" for sentence in found]
    assert not wrong, wrong


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-9])
def test_kernels_of_a_grid(tol):
    """Entries of copies are off alike: by frequencies that are cut, aliases, and the sums."""
    wrong = []
    for seed in range(16):
        rng = generator(seed, 4)
        Z = rng.uniform(-1, 1, (int(rng.integers(2, 6)), 1)) * 3
        counts, center = rng.integers(1, 100, len(Z)), bool(rng.integers(2))
        kernel = {"kernel": "matern", "kernel_params": {"nu": 2.5}}
        kernel = {"kernel": "rbf"} if seed % 2 else kernel
        gamma = float(10 ** rng.uniform(-1, 1))
        model = KernelPCA(2, gamma=gamma, basis=FourierGrid(tol=tol), center=center, **kernel)
        try:
            fit(model, Z, counts, weighted=False)
        except ValueError as error:
            assert "grid" in str(error)
            continue
        found = false_statements(model, Z, counts, kernel, center)
        wrong += [f"seed {seed}: {sentence}" for sentence in found]
    assert not wrong, wrong


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("basis", ["landmarks", "features"])
def test_groups_of_equal_rows_that_a_basis_does_not_see(basis):
    """The largest eigenvalue may be outside of the span, or one that features make of others."""
    for seed in range(10):
        rng = generator(seed, 5)
        Z, counts = 50.0 * rng.permutation(np.eye(6)), rng.permutation([40, 10, 20, 5, 30, 15])
        X = np.repeat(Z, counts, axis=0)
        recipe = RandomFeatures(8)
        if basis == "landmarks":
            recipe = Landmarks(points=np.delete(Z, np.argmax(counts), axis=0)[: rng.integers(1, 5)])
        model = KernelPCA(3, kernel="rbf", gamma=1.0, basis=recipe, center=False, random_state=seed)
        certificate, true = model.fit(X).certificate_, np.sort(counts)[::-1]
        r = len(certificate.likely_upper)
        assert np.all(certificate.likely_lower <= true[:r] + 1e-9)
        assert np.all(true[:r] <= certificate.likely_upper + 1e-9)
        if certificate.kind == "bound":
            assert np.all(true[:r] <= certificate.eigenvalue_upper + 1e-9)


PROVEN = {
    "rbf": {"kernel": "rbf", "gamma": 1.0},
    "laplacian": {"kernel": "laplacian", "gamma": 1.0},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "gamma": 1.0, "degree": 3, "coef0": 1.0},
}


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("name", PROVEN)
@pytest.mark.parametrize("seed", range(12))
def test_components_that_rounding_makes_are_not_proven(seed, name, center):
    """Of rows of any scale and distance from the origin."""
    rng, kernel = generator(seed, 17, len(name), center), PROVEN[name]
    scale, offset = 10.0 ** rng.uniform(-12, 8), 10.0 ** rng.uniform(-2, 9) * (rng.random() < 0.5)
    X = scale * (rng.standard_normal((40, 3)) + offset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        basis = AllPoints() if seed % 2 else "auto"
        model = KernelPCA(4, center=center, basis=basis, **kernel).fit(X)
    proven = model.certificate_.n_proven
    wide = X.astype(WIDE)
    if name == "linear":
        wide = wide - wide.mean(axis=0) * center
        K = wide @ wide.T
    else:
        K = FORMULAS[name](wide, WIDE(1.0), kernel)
    if center:
        K = K - K.mean(axis=0)
        K = K - K.mean(axis=1)[:, None]
    # All values round to the same number where even long double has too few digits.
    A = (K / max(np.abs(K).max(), np.finfo(WIDE).tiny)).astype(float)
    assert share_of_leading(model.eigenvectors_[:, :proven], A) > LEAST_HELD, proven


@pytest.mark.filterwarnings("ignore:Not converged", "ignore:.*more than the rank")
@pytest.mark.parametrize("solver", ["krylov", "randomized", "gram-power"])
def test_components_smaller_than_their_intervals_are_not_proven(solver):
    """Few distinct rows and a wide kernel: eigenvalues down to rounding, and beyond residuals."""
    for seed in range(20):
        rng = generator(361, seed)
        n, levels, d = int(rng.integers(100, 260)), int(rng.integers(6, 30)), rng.integers(1, 4)
        X = rng.standard_normal((levels, d))[rng.integers(0, levels, n)]
        gamma, center, r = (
            10 ** rng.uniform(-3, -1),
            bool(rng.integers(2)),
            int(rng.integers(4, 14)),
        )
        options = {"gamma": gamma, "center": center, "remove_zero_eig": False, "basis": "points"}
        model = KernelPCA(r, kernel="rbf", eigen_solver=solver, **options)
        model.set_params(random_state=seed).fit(X)
        A = rbf(X, gamma, {})
        if center:
            A = A - A.mean(axis=0)
            A = A - A.mean(axis=1)[:, None]
        proven = model.certificate_.n_proven
        assert share_of_leading(model.eigenvectors_[:, :proven], A) > LEAST_HELD, (seed, proven)


@pytest.mark.filterwarnings("ignore:Not converged", "ignore:.*more than the rank")
@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_few_passes_over_few_distinct_rows(max_iter):
    """Rounding of a draft mixes its vectors, so that U'AU is not diagonal, and moves its means."""
    for seed in range(25):
        rng = generator(351, max_iter, seed)
        n, levels, r = (int(rng.integers(*ends)) for ends in ((110, 300), (3, 16), (3, 12)))
        X = rng.standard_normal((levels, int(rng.integers(1, 8))))[rng.integers(0, levels, n)]
        gamma, solver = float(10 ** rng.uniform(-2, 0)), str(rng.choice(["krylov", "lobpcg"]))
        problem = Problem(
            seed, X, {"kernel": "rbf", "gamma": gamma}, "exact", {"eigen_solver": solver}, r
        )
        problem.options |= {"max_iter": max_iter, "remove_zero_eig": False, "basis": "points"}
        assert not violations(problem), str(problem)


@pytest.mark.parametrize("kernel", ["sigmoid", "linear", "poly"])
@pytest.mark.parametrize("seed", range(3))
def test_block_krylov_starts_where_a_sample_is_next_to_nothing(kernel, seed):
    """Single precision does not hold the inverse of kernel values of any row but one."""
    rng = generator(359, seed)
    X = 10 ** rng.uniform(-23, -20) * rng.standard_normal((60, 3)).astype(np.float32)
    X[rng.integers(60)] *= np.float32(10 ** rng.uniform(6, 9))
    options = {"coef0": 0.0, "degree": 1, "gamma": 0.2, "center": False, "random_state": seed}
    model = KernelPCA(2, kernel=kernel, eigen_solver=BlockKrylov(2, oversampling=1), **options)
    top = np.linalg.norm(X.astype(float), 2) ** 2 * (1.0 if kernel == "linear" else 0.2)
    assert model.fit(X).eigenvalues_[0] == pytest.approx(top, rel=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["objects", "rows", "matrix"])
@pytest.mark.parametrize("way", ["dense", "krylov", "few"])
def test_functions_with_nothing_on_their_diagonal(way, form):
    """What k(x, x) is says nothing of the size, and of the rounding, of an indefinite matrix."""
    wrong = []
    for seed in range(16):
        rng = generator(seed, 17, len(way))
        groups, weighted = int(rng.integers(3, 8)), bool(rng.integers(2)) and form != "matrix"
        counts = rng.integers(1, 20 if form == "rows" else 150, groups)
        K = rng.standard_normal((groups, groups)) * 10 ** rng.uniform(-3, 3)
        K = np.triu(K, 1) + np.triu(K, 1).T
        share = counts.astype(WIDE) / counts.sum()
        G = K - share @ K
        G = np.sqrt(counts * counts[:, None].astype(WIDE)) * (G - (G @ share)[:, None])
        values, size = jacobi(G)[0], np.abs(G).max()
        if values[0] < 0.1 * size:
            continue  # refused
        index = np.arange(groups) if weighted else np.repeat(np.arange(groups), counts)
        kernels = {"matrix": "precomputed", "rows": lambda x, z, K=K: K[int(x[0]), int(z[0])]}
        kernels["objects"] = BlockFunction(lambda A, B, K=K: K[np.ix_(A, B)])
        rows = {"objects": index, "rows": index[:, None] * 1.0, "matrix": K[index][:, index]}
        model = KernelPCA(1, kernel=kernels[form], random_state=0, **WAYS[way])
        model.fit(rows[form], sample_weight=counts * 1.0 if weighted else None)
        low, high = model.certificate_.eigenvalue_lower, model.certificate_.eigenvalue_upper
        off = max(low[0] - values[0], values[0] - high[0])
        if off > DIGITS * size:
            wrong.append(f"seed {seed}: off by {float(off / size):.1e}")
    assert not wrong, wrong
