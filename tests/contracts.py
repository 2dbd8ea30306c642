"""What every part must satisfy, whatever it is: functions that take one and assert mathematics.

The registries drive the parametrization of the tests that call these, so a new part is tested
for being listed. Random data come from `generator`, which a seed in the environment moves.
"""

import os
import pickle
import threading
import tracemalloc
from contextlib import suppress

import numpy as np
import oracle
import pytest
from sklearn.base import clone

from mercer.bases import Landmarks, choose_whitening
from mercer.compute import LocalEngine
from mercer.fitting import checkpoint
from mercer.fitting.expansion import KernelExpansion, errors_of, scores_of
from mercer.fitting.moments import MomentsOf
from mercer.fitting.problems import ENTRY_ROUNDING
from mercer.kernels import RBF, Kernel
from mercer.kernels.base import DifferenceKernel
from mercer.kernels.stationary import StationaryKernel
from mercer.rows import ArrayRows, count_rows
from mercer.selectors import (
    SELECTORS,
    FullGreedy,
    GroupLasso,
    KMeans,
    Novelty,
    PreimageDictionary,
    RidgeLeverage,
    RPCholesky,
    SparseBayes,
    SparseGreedy,
    SubspaceGreedy,
    TwoStage,
    Uniform,
)

SEED = int(os.environ.get("MERCER_TEST_SEED", "0"))

EPS = {np.dtype(np.float64): 2.3e-16, np.dtype(np.float32): 1.2e-7}


def generator(*key):
    """A random generator of its own for every test."""
    return np.random.default_rng([SEED, *key])


def check_recipe(part):
    """Parameters only: clone, repr and pickle are free, and equal parts print equally."""
    copy = clone(part)
    assert copy is not part and repr(copy) == repr(part)
    assert repr(pickle.loads(pickle.dumps(part))) == repr(part)
    assert set(part.get_params(deep=False)) == set(part._get_param_names())


def check_kernel(kernel, formula, X=None, Z=None, rtol=None):
    """All members of `Kernel`: those that certificates rest on against dense matrices.

    `formula(X, Z)` is the kernel in float64 or wider; X and Z may be sparse or of another library,
    and are drawn from the kernel's domain where they are not given.
    """
    check_recipe(kernel)
    rng = generator(7)
    X = rows_within(kernel.domain, rng, 40, 5) if X is None else X
    Z = rows_within(kernel.domain, rng, 17, 5) if Z is None else Z
    check_values(kernel, formula, X, Z, rtol)
    check_domain(kernel)
    finite = 0
    for size in (0.3, 3.0, 30.0):
        rows = rows_within(kernel.domain, rng, 60, 2, size)
        rows[30:] = kernel.domain.nearest(rows[:30] + 1e-3 * rng.standard_normal((30, 2)))
        with np.errstate(invalid="ignore"):
            G = formula(rows.astype(np.longdouble), rows.astype(np.longdouble))
        if np.isfinite(G).all():  # a fractional power has no value for all rows
            finite += 1
            check_bounds(kernel, G, rows)
    assert finite, "the kernel has values on rows of its domain"
    check_derived(kernel, formula, rows_within(kernel.domain, rng, 9, 3, 0.5))

    value, column = kernel.seconds
    assert value > 0 and column >= 0 and kernel.live_tiles >= 1
    assert set(kernel.per_column) <= set(kernel.get_params()) and kernel.needs_range is False
    for name, setting in kernel.get_params(deep=False).items():
        parts = setting if isinstance(setting, list | tuple) else [setting]
        of_columns = name in kernel.per_column
        assert of_columns or all(isinstance(one, int | float | Kernel) for one in parts), (
            "a resolved kernel has numbers and kernels only, or a number for each column"
        )


def rows_within(domain, rng, n, d, size=1.0):
    """Random rows of a domain, (n, d), whose numbers are of about this size."""
    rows = size * rng.standard_normal((n, d))
    if domain.low > -np.inf and domain.high < np.inf:
        return rng.uniform(domain.low, domain.high, (n, d))
    if domain.low > -np.inf:
        return domain.low + abs(rows)
    return domain.high - abs(rows) if domain.high < np.inf else rows


def check_domain(kernel):
    """Rows inside the domain pass, and one number outside is refused; the nearest rows are in."""
    domain, X = kernel.domain, rows_within(kernel.domain, generator(8), 6, 3)
    kernel.check(X)
    for end, step in ((domain.low, -1.0), (domain.high, 1.0)):
        if np.isfinite(end):
            outside = X.copy()
            outside[2, 1] = end + step
            with pytest.raises(ValueError, match=domain.name):
                kernel.check(outside)
            kernel.check(domain.nearest(outside))
            assert domain.nearest(outside)[2, 1] == end
    np.testing.assert_array_equal(domain.nearest(X), X)


def check_bounds(kernel, G, X):
    """`definite`, `growth`, `entry_size`, `rank` and `metric` on rows X with the true matrix G."""
    K, norm = G.astype(float), np.linalg.norm(G.astype(float))
    diagonal, d = np.abs(np.diag(K)), X.shape[1]
    if kernel.definite:
        assert np.linalg.eigvalsh(K).min() > -1e-10 * np.trace(K), "it says that it is definite"
    largest = max(diagonal.max(), kernel.entry_size(X))
    assert np.abs(K).max() <= largest * (1 + 1e-12), "entries are larger than it says"
    # The rounding of entries that certificates allow for.
    sizes = np.maximum(np.sqrt(np.outer(diagonal, diagonal)), kernel.entry_size(X))
    rounding = np.finfo(float).eps * ((d + 2) * kernel.growth(X) + ENTRY_ROUNDING)
    excess = float((np.abs(kernel(X) - G) / (rounding * sizes + np.finfo(float).tiny)).max())
    assert excess <= 1, f"rounding is {excess:.1f} times what it says"
    rank = kernel.rank(d)
    if rank is not None:
        assert np.linalg.matrix_rank(K, tol=1e-10 * norm) <= rank, "the rank is higher"
    assert kernel.metric is None or K.min() >= 0, "kernels of a distance are nowhere negative"


def check_derived(kernel, formula, X):
    """What a kernel may know beside its values: each must give the same values."""
    n, G = X.shape[0], formula(X, X)
    W = generator(9).standard_normal((n, 2))
    scale = np.abs(G).max()
    kernel_map, origin = kernel.scalar_map(), kernel.origin(X)
    if kernel_map is not None:
        np.testing.assert_allclose(by_map(kernel_map, X, origin), G, rtol=0, atol=1e-7 * scale)
    if kernel.is_inner_product:
        E = kernel.embed(X if origin is None else X - origin)
        np.testing.assert_allclose(E @ E.T, G, rtol=0, atol=1e-12 * scale)
    far = kernel.domain.nearest(X + 1e4)
    other = kernel.recentered(far)
    if other is not kernel:
        H = np.eye(n) - 1 / n
        expected = (H @ formula(*[far.astype(np.longdouble)] * 2) @ H).astype(float)
        found = other(far)
        # Other parts of a sum have the rounding of their own values.
        rounding = 8 * np.finfo(float).eps * (X.shape[1] + 2) * other.growth(far)
        atol = 1e-9 * np.abs(expected).max() + rounding * np.abs(found).max()
        np.testing.assert_allclose(H @ found @ H, expected, rtol=0, atol=atol)
    if isinstance(kernel, DifferenceKernel):
        values = kernel.of_differences(X - X[:1])
        np.testing.assert_allclose(values, G[:, 0], rtol=0, atol=1e-7 * scale)
    try:
        gradient = kernel.gradient(X[:5], X[5:], W[5:])
    except ValueError:
        return
    for k in range(X.shape[1]):
        step = 1e-6 * np.eye(X.shape[1])[k]
        ahead, behind = (formula(X[:5] + s, X[5:]) @ W[5:] for s in (step, -step))
        slope = (ahead - behind) / 2e-6
        np.testing.assert_allclose(gradient[:, k], slope, rtol=1e-5, atol=1e-5 * scale)


def by_map(scalar_map, X, origin):
    """The kernel matrix as a fused tile makes it of a `ScalarMap`, in NumPy."""
    rows = X if origin is None else X - origin
    rows = rows / np.linalg.norm(rows, axis=1)[:, None] if scalar_map.unit else rows
    rows = rows * scalar_map.scale
    T, squares = rows @ rows.T, (rows**2).sum(axis=1)
    if scalar_map.distance:
        T = np.minimum(T - squares[:, None] / 2 - squares / 2, 0)
    (a,) = scalar_map.parameters or (0.0,)
    s = np.sqrt(np.maximum(-a * T, 0))
    K = {
        "identity": lambda: T,
        "exp2": lambda: 2**T,
        "power": lambda: (T + a) ** scalar_map.degree,
        "tanh": lambda: np.tanh(T + a),
        "rational": lambda: (1 - T / a) ** -a,
        "matern": lambda: [1, 1 + s, 1 + s + s**2 / 3][scalar_map.degree] * np.exp(-s),
    }[scalar_map.name]()
    return K * (1 - np.eye(len(K))) if scalar_map.hollow else K


def check_values(kernel, formula, X, Z, rtol=None):
    """The matrix, its tiles in both precisions and its diagonal."""
    A, B = dense(X), dense(Z)
    K, G = formula(A, B), formula(A, A)
    # A tile in precision eps has the rounding of the terms that cancel in it.
    spread = min(kernel.spread(X), 1e3) if isinstance(kernel, StationaryKernel) else 1.0
    terms = max(1.0, spread) * max(1.0, np.abs(G).max())
    rounding = 50 * A.shape[1] * EPS[A.dtype] * terms if rtol is None else rtol * np.abs(G).max()

    np.testing.assert_allclose(to_float(kernel(X, Z)), K, rtol=0, atol=rounding)
    np.testing.assert_allclose(to_float(kernel(X)), G, rtol=0, atol=rounding)
    np.testing.assert_allclose(to_float(kernel.diag(X)), np.diag(G), rtol=0, atol=rounding)
    assert str(kernel(X, Z).dtype).endswith(A.dtype.name)

    n, m = K.shape
    i, j = slice(n // 3, n), slice(0, m // 2)
    index = np.array([1, 0, n - 1])
    for dtype in (np.float32, np.float64):
        loose = max(rounding, 50 * A.shape[1] * EPS[np.dtype(dtype)] * terms)
        for store in (0, 10**9):
            pairs = kernel.pairs(numpy(X), numpy(Z), dtype=dtype, store=store)
            assert pairs.shape == (n, m) and not pairs.symmetric
            out = np.empty((i.stop - i.start, j.stop), dtype)
            tile = pairs.tile(i, j, out)
            assert tile is out, "a tile is made in the array given for it"
            np.testing.assert_allclose(tile, K[i, j], rtol=0, atol=loose)
            rows = pairs.of_rows(index)
            tile = rows.tile(slice(0, 3), j, np.empty((3, j.stop), dtype))
            np.testing.assert_allclose(tile, K[index, j], rtol=0, atol=loose)


def check_tile_bytes(kernel, X, side=256, slack=1.05):
    """A tile takes no more work memory than `tile_bytes` says: the budget rests on it."""
    i, j = slice(0, side), slice(side, 2 * side)
    for dtype in (np.float32, np.float64):
        pairs = kernel.pairs(X, dtype=dtype)
        pairs.tile(i, j, np.empty((side, side), dtype))  # compiles and imports
        peak = peak_bytes(
            lambda i=i, j=j, p=pairs, t=dtype: p.tile(i, j, np.empty((side, side), t))
        )
        stated = pairs.tile_bytes(side)
        assert peak <= slack * stated + 20_000, f"{kernel}: {peak} bytes used, {stated} stated"


def check_basis(basis, X, atol=1e-8):
    """The verbs of any basis: linear in W, a Gram matrix, and no projection longer than its row.

    X holds rows as `project` takes them.
    """
    m = basis.size
    W = generator(m).standard_normal((m, 3))
    G, P = basis.gram(np.eye(m)), basis.project(X, np.eye(m))
    norms = np.asarray(basis.norms(X))
    scale = np.abs(G).max()
    assert P.shape == (X.shape[0], m) and norms.shape == (X.shape[0],)
    np.testing.assert_allclose(G, G.T, rtol=0, atol=atol * scale)
    assert np.linalg.eigvalsh(G).min() >= -atol * m * scale
    np.testing.assert_allclose(basis.gram(W), G @ W, rtol=0, atol=atol * m * scale)
    np.testing.assert_allclose(basis.project(X, W), P @ W, rtol=0, atol=atol * m * scale)
    if basis.exact_norms:
        # Bessel: the part of phi(x) in the span of the basis is no longer than phi(x).
        inside = np.einsum("ij,jk,ik->i", P, np.linalg.pinv(G, rcond=1e-10, hermitian=True), P)
        assert np.all(inside <= norms + 1e-4 * norms.max())
    again = pickle.loads(pickle.dumps(basis))
    np.testing.assert_allclose(again.project(X, W), P @ W, rtol=0, atol=atol * m * scale)


def check_gram_basis(basis, K, X_new, K_new, atol=1e-12):
    """A basis that is the data, with its short cuts, against K (m, m) and K_new (n, m)."""
    m = K.shape[0]
    rng = generator(m)
    W = rng.standard_normal((m, 3))
    index = np.sort(rng.choice(m, 5, replace=False))
    w = rng.standard_normal((5, 2))

    assert basis.size == m and basis.spans_data

    def close(a, b):
        assert isinstance(a, np.ndarray) and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=atol * m * max(1, np.abs(b).max()))

    close(basis.gram(W), K @ W)
    close(basis.project(X_new, W), K_new @ W)
    close(basis.diagonal(), np.diag(K))
    close(basis.to_dense(), K)
    close(basis.columns(index, w), K[:, index] @ w)
    close(basis.rows(index), K[index])
    close(basis.minor(index), K[np.ix_(index, index)])
    dense = basis.to_dense()
    dense[...] = 0
    close(basis.to_dense(), K)  # in an array of its own
    before = set(vars(basis))
    for keeps_tiles in (True, False):
        with basis.session(keeps_tiles=keeps_tiles) as working:
            for _ in range(2):  # the second product may find work arrays of the first
                close(working.gram(W), K @ W)
            if working.draft is not None:
                draft = working.draft.gram(W)
                np.testing.assert_allclose(draft, K @ W, rtol=0, atol=1e-4 * np.abs(K @ W).max())
                np.testing.assert_allclose(working.draft.gram(W), draft, rtol=0, atol=1e-6 * m)
            assert working is not basis
        close(basis.gram(W), K @ W)
    # A basis is frozen: a session leaves no work arrays in it.
    assert not {name for name in set(vars(basis)) - before if "tile" in name or "pairs" in name}
    close(pickle.loads(pickle.dumps(basis)).project(X_new, W), K_new @ W)


def check_operator(operator, A, atol=1e-11):
    """Products, the matrix and its symmetry."""
    n = A.shape[0]
    assert operator.shape == (n, n)
    scale = max(np.abs(A).max(), np.finfo(float).tiny)
    V = generator(n).standard_normal((n, 4))
    before = V.copy()
    for _ in range(2):  # the first product may fill caches
        np.testing.assert_allclose(operator @ V, A @ V, rtol=0, atol=atol * n * scale)
    np.testing.assert_array_equal(V, before)
    np.testing.assert_allclose(operator.to_dense(), A, rtol=0, atol=atol * n * scale)
    S = operator.start(5, generator(n, 1))
    assert S.shape == (n, 5) and np.isfinite(S).all()
    assert np.linalg.matrix_rank(S) == 5
    check_operator_verbs(operator, A, V, atol * n * scale)
    if operator.draft is not None:
        check_operator_verbs(operator.draft, A, V, 2e-5 * n * scale)


def check_operator_verbs(operator, A, V, atol):
    """Rows, products of rows, diagonal, trace and the sign of the spectrum."""
    n = A.shape[0]
    index = generator(n, 2).permutation(n)[: min(n, 5)]

    def close(found, expected):
        np.testing.assert_allclose(np.asarray(found, dtype=float), expected, rtol=0, atol=atol)

    close(operator @ operator.vectors(V), A @ V)
    for rows in (index, slice(1, 3)):
        close(operator.rows(rows), A[rows])
    close(operator.rows_times(index, V), A[index] @ V)
    close(operator.diagonal(), np.diag(A))
    square = operator.square()
    assert square is None or abs(square - np.vdot(A, A)) <= n * n * atol
    least = np.linalg.eigvalsh(A)[0]
    assert not operator.definite or least >= -n * atol, "it says that it is definite"


def check_draft(operator, A):
    """The draft of an operator is made once, and is the same in single precision."""
    V = generator(4).standard_normal((A.shape[0], 3))
    assert operator.draft is operator.draft
    gap = np.abs(operator.draft @ V - A @ V).max() / np.abs(A @ V).max()
    assert 1e-12 < gap < 1e-5


def check_eigenpairs(pairs, A, r, tol=1e-8, exact=None):
    """True residuals, orthonormal vectors, the largest eigenvalues in falling order."""
    n = A.shape[0]
    values, U = pairs.values, pairs.vectors
    assert values.shape == (r,) and U.shape == (n, r) and pairs.residuals.shape == (r,)
    assert np.all(np.diff(values) <= 1e-9 * np.abs(values).max())
    np.testing.assert_allclose(U.T @ U, np.eye(r), rtol=0, atol=1e-10)
    top = np.abs(values).max()
    rounding = 100 * n * 2.3e-16 * np.linalg.norm(A, 2)
    true = np.linalg.norm(A @ U - U * values, axis=0)
    assert np.all(true <= pairs.residuals * 1.001 + rounding), "residuals are the true ones"
    exact = np.linalg.eigvalsh(A)[::-1] if exact is None else exact
    # Weyl: each value is within its residual of an eigenvalue, and never above the exact one.
    assert np.all(np.abs(values[:, None] - exact[None, :]).min(axis=1) <= true + rounding)
    assert np.all(values <= exact[:r] + rounding)
    if pairs.converged:
        assert true.max() <= tol * top + rounding
        np.testing.assert_allclose(values, exact[:r], rtol=0, atol=tol * top + rounding)


def check_solver(solver, operator, A, r, tol=1e-8):
    """The contract of a solver on one operator with matrix A."""
    check_recipe(solver)
    before = repr(solver)
    states = []
    pairs = solver.solve(operator, r, generator(r), report=lambda s: states.append(s) or False)
    check_eigenpairs(pairs, A, r, tol)
    assert repr(solver) == before, "solving leaves the recipe alone"
    assert states, "every solver reports"
    for state in states:
        assert state.values.size <= r and np.isfinite(state.residual)
    numbers = [state.n_passes for state in states]
    assert numbers == sorted(numbers) and numbers[-1] <= pairs.n_passes
    again = solver.solve(operator, r, generator(r))
    np.testing.assert_allclose(again.values, pairs.values, rtol=0, atol=1e-9 * pairs.values[0])
    return pairs


def check_engine(engine, pairs, K, atol=1e-11):
    """All verbs of an engine for one kernel matrix K."""
    n, m = K.shape
    V = generator(n, m).standard_normal((m, 3))
    threads = threading.active_count()
    scale = np.abs(K).sum(axis=1).max() * 4
    np.testing.assert_allclose(engine.pair_rows(pairs, V), K @ V, rtol=0, atol=atol * scale)
    np.testing.assert_allclose(engine.fill(pairs, np.empty((n, m))), K, rtol=0, atol=atol * scale)
    X = generator(n).standard_normal((n, 2))
    out = np.empty((n, 2))
    engine.map_rows(lambda block: X[block] * 2, n, 7, out)
    np.testing.assert_array_equal(out, X * 2)
    total = engine.sum_rows(lambda block: X[block].sum(axis=0), n, 7)
    np.testing.assert_allclose(total, X.sum(axis=0), atol=1e-12 * n)
    assert threading.active_count() == threads


def check_rows(rows, X, folder, others=None):
    """The verbs of rows of any kind, which hold X, against those of the array.

    `folder` is an empty one to write to, and `others` hold other rows of the same shape.
    """
    array, n, before = ArrayRows(X), len(X), public(rows)
    assert rows.shape[0] in (None, n) and rows.shape[1] == X.shape[1] and rows.dtype == X.dtype
    assert rows.names is None or len(rows.names) == X.shape[1]
    for seed in (0, 11):
        for size in (3, n // 4, n, 2 * n):
            np.testing.assert_array_equal(dense(rows.sample(size, seed)), array.sample(size, seed))
    index = generator(1).integers(0, n, 20)
    np.testing.assert_array_equal(dense(rows.take(index)), X[index])
    assert count_rows(rows) == n
    np.testing.assert_array_equal(np.vstack([dense(block) for block in rows.blocks()]), X)
    try:
        np.testing.assert_array_equal(dense(rows.as_array("The test")), X)
    except ValueError as error:
        assert "The test needs all rows" in str(error)
    same, other = (checkpoint.identity_of(some.identity()) for some in (rows, others or rows))
    assert same == checkpoint.identity_of(rows.identity()) and (same != other or others is None)
    engine = LocalEngine(10**8, 2)
    basis = Landmarks(20).build(RBF(0.5), X, engine, generator(0))
    check_sums(rows, X, MomentsOf(basis, choose_whitening(basis, X, n)), folder / "sum")
    frame = generator(2).standard_normal((basis.size, 3))
    expansion = KernelExpansion(basis, frame, frame.T @ basis.gram(frame))
    check_map(rows, array, scores_of(expansion), folder)
    check_map(rows, array, errors_of(expansion), folder)
    points, W = rows.as_basis(RBF(0.5), engine, 2), generator(3).standard_normal((n, 2))
    if isinstance(points, str):
        assert points
    else:
        exact = oracle.kernel_matrix("rbf", X, gamma=0.5) @ W
        np.testing.assert_allclose(points.gram(W), exact, atol=1e-10)
    assert public(rows) == before, "rows are read-only"


def public(rows):
    return {name for name in vars(rows) if not name.startswith("_")}


def check_map(rows, array, function, folder):
    """A function of all rows is that of the array, lazy where a cluster has the rows."""
    expected, found = array.map(function), rows.map(function)
    assert hasattr(found, "compute") == rows._elsewhere
    found = found.compute() if rows._elsewhere else found
    assert found.dtype == expected.dtype
    digits = 1e-10 if expected.dtype == np.float64 else 1e-3
    np.testing.assert_allclose(found, expected, atol=digits)
    if rows._elsewhere:
        with pytest.raises(ValueError, match="on a cluster"):
            rows.map(function, folder / "out.npy")
        return
    written = np.load(rows.map(function, folder / "out.npy"))
    np.testing.assert_allclose(written.reshape(expected.shape), expected, atol=digits)


class Killed(Exception):
    """What ends a fit between two states of its checkpoint."""


def check_sums(rows, X, function, folder):
    """The sum of a row function is that of the array, to the last bit where it was resumed."""

    def close(found, expected, **tolerance):
        assert found.count == expected.count == len(X)
        for name in ("mean", "scatter", "energy"):
            one, other = getattr(found, name), getattr(expected, name)
            np.testing.assert_allclose(one, other, **tolerance)

    digits = 1e-9 if X.dtype == np.float64 else 1e-3
    close(function.finished(rows.sum(function)), function.finished(function(X, 0)), atol=digits)
    passes, write = rows._for_passes(resumable=True), checkpoint.Checkpoint._write

    def summed(path):
        with checkpoint.Checkpoint(path, "a sum", 0) as place:
            return function.finished(passes.sum(function, checkpoint=place))

    def killed(last):
        """A sum that ends when its state was written so many times, or before."""
        states = []

        def written(place, *state):
            write(place, *state)
            states.append(state)
            if len(states) == last:
                raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checkpoint, "EVERY", 0.0)
            patch.setattr(checkpoint.Checkpoint, "_write", written)
            with suppress(Killed):
                summed(folder)
        assert states

    expected = summed(folder.with_name("unbroken"))
    for last in (1, 3):
        killed(last)
        close(summed(folder), expected, rtol=0)


def peak_bytes(work):
    """The most memory that NumPy and Python held beyond the start while `work()` ran."""
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        start = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[1] - start
    finally:
        tracemalloc.stop()


def numpy(X):
    """X as NumPy or SciPy know it."""
    return X if hasattr(X, "tocsr") else np.asarray(X)


def dense(X):
    """X as a NumPy array."""
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)


def to_float(X):
    """X as a NumPy array of float64."""
    return dense(X).astype(np.float64)


# Every registered selector as it comes, then the options that change what it does.
SELECTOR_VARIANTS = [
    *(cls() for cls in SELECTORS.values()),
    Uniform(replace=False),
    SparseGreedy(candidates=7, gain="subset"),
    SparseGreedy(candidates=7, among="farthest"),
    Novelty(threshold=1e-3),
    SparseBayes(solver="em", max_iter=20),
    SparseBayes(solver="fixed-point", max_iter=20),
    GroupLasso(solver="convex"),
    GroupLasso(solver="convex", unit=False, n_targets=8),
    PreimageDictionary(block=40),
    GroupLasso(n_targets=6),
    GroupLasso(norm="rkhs"),
    GroupLasso(unit=False),
    SubspaceGreedy(n_targets=6, weighted=True, centered=True),
    RPCholesky("plain"),
    RPCholesky("block"),
    RPCholesky(block=3),
    RidgeLeverage(oversampling=2.0),
    KMeans(snap=True),
    TwoStage(RPCholesky(), SubspaceGreedy(n_targets=5), pool=60),
    TwoStage(KMeans(), FullGreedy(), pool=60),
    TwoStage(Uniform(), KMeans(), pool=60),
]
