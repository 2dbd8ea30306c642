"""Planning: the choice by size and budget, and how it is told."""

import re
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from contracts import generator, peak_bytes
from scipy import sparse

import mercer
from mercer import KernelPCA
from mercer.bases import Landmarks, RandomFeatures
from mercer.compute import LocalEngine
from mercer.fitting.choosing import (
    SOON,
    Plan,
    check_budget,
    exact_plan,
    follow,
    format_seconds,
)
from mercer.fitting.costs import Speeds, Workload, features, landmarks
from mercer.fitting.problems import Problem
from mercer.kernels import RBF, Polynomial
from mercer.operators import DenseOperator
from mercer.progress import PassBar
from mercer.solvers import SOLVERS, Arpack, BlockKrylov, Dense
from mercer.solvers.base import NoConvergence

GB = 10**9


def chosen(n, r, memory=4 * GB, d=20, **kwargs):
    return exact_plan(Workload(n, d, r, memory, 2), **kwargs).method


def test_choice_by_size():
    assert chosen(60, 20) == "dense"
    assert chosen(20_000, 16) == "krylov, tiles kept"
    assert chosen(200_000, 16) == "krylov, matrix-free"
    assert chosen(2_000, 1_900) == "dense"


def test_choice_by_memory():
    """Less memory never leads to a method that needs more."""
    needs = {"dense": 3, "krylov, tiles kept": 2, "krylov, matrix-free": 1}
    for n in (3_000, 12_000):
        methods = [chosen(n, 8, memory) for memory in (10**7, 10**8, GB, 10 * GB, 100 * GB)]
        order = [needs[m] for m in methods]
        assert order[0] == 1
        assert order == sorted(order) or "dense" not in methods


def test_chosen_fits_and_is_the_fastest():
    for n in (100, 1_000, 10_000, 100_000):
        for memory in (10**8, GB, 50 * GB):
            plan = exact_plan(Workload(n, 30, 10, memory, 2))
            possible = [e for e in plan.estimates if e.fits]
            if possible:
                assert plan.chosen in possible
                assert plan.chosen.seconds == min(e.seconds for e in possible)
                # Vectors and prepared rows are counted beside the budget.
                beside = 8 * n * (2 * 30 + 8 * 26) if "krylov" in plan.method else 0
                assert plan.chosen.bytes <= 1.3 * memory + beside


def test_nothing_fits():
    plan = exact_plan(Workload(5_000, 10, 8, 10**6))
    assert plan.method == "krylov, matrix-free"  # the engine then makes its tiles small
    check_budget(plan)
    plan = exact_plan(Workload(5_000, 10, 5_000, 10**6))
    with pytest.raises(ValueError, match=r"dense needs .*5,000 rows.*memory allows 1 MB.*fewer"):
        check_budget(plan)


def test_costs_grow_as_they_should():
    def estimates(n, r=8):
        return {e.method: e for e in exact_plan(Workload(n, 10, r, 100 * GB, 2)).estimates}

    small, large = estimates(5_000), estimates(10_000)
    assert large["dense"].seconds / small["dense"].seconds == pytest.approx(8, rel=0.2)
    free = "krylov, matrix-free"
    assert 3 < large[free].seconds / small[free].seconds < 4.1, "tiles, and steps linear in n"
    assert large[free].evaluations / small[free].evaluations == pytest.approx(4, rel=0.01)
    assert large["krylov, tiles kept"].bytes / small["krylov, tiles kept"].bytes > 3
    assert large[free].bytes < 2.5 * small[free].bytes, "does not grow with n^2"
    assert small["krylov, tiles kept"].evaluations < small[free].evaluations


@pytest.mark.parametrize(("n", "method"), [(600, "dense"), (30_000, "krylov")])
def test_more_components_than_columns_are_not_left_to_arpack(n, method):
    """A linear kernel has no more than its columns; Lanczos looked for the others for ever."""
    plan = exact_plan(Workload(n, 27, 50, 2 * GB, rank=27))
    assert plan.method.startswith(method)
    assert not plan.estimate("arpack, matrix formed").fits
    if n == 600:
        X = generator(n).standard_normal((n, 27))
        model = KernelPCA(50, kernel="linear").fit(X)
        assert not model.plan_.estimate("arpack, matrix formed").fits
        assert model.plan_.method == "dense" and (model.eigenvalues_[27:] == 0).all()


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_rank_of_polynomials_is_known(degree, d):
    X = generator(d).standard_normal((200, d))
    kernel = Polynomial(degree=degree, gamma=1.0, coef0=1.0)
    assert kernel.rank(d) == np.linalg.matrix_rank(kernel(X))


@pytest.mark.parametrize("gamma", [0.01, 0.06])
def test_arpack_gives_way_to_lapack_on_matrices_of_low_rank(gamma):
    """Ten components of one column: most are rounding, and take Lanczos 20 times as long."""
    rng = generator(7)
    X = rng.standard_normal((300, 1))[rng.integers(0, 300, 700)]
    for watch in (None, lambda state: None):
        model = KernelPCA(10, kernel="sigmoid", gamma=gamma, callback=watch).fit(X)
        assert model.certificate_.converged
        assert model.plan_.method == "dense" or model.certificate_.n_passes < 200


@pytest.mark.parametrize("solver", ["auto", Dense()])
@pytest.mark.parametrize("n", [300, 2_000])
def test_all_components_are_found_where_there_is_room_and_some_elsewhere(n, solver):
    def planned(memory):
        return exact_plan(Workload(n, 10, n // 2, memory), solver)

    room = planned(100 * GB).chosen
    assert room.solver.subset is None and room.fits
    short = planned(room.bytes - 1).chosen
    assert short.solver.subset and short.fits and short.bytes < room.bytes
    assert short.seconds > room.seconds
    assert not planned(short.bytes - 1).estimate("dense").fits


@pytest.mark.parametrize(
    "solver", [Dense(), BlockKrylov(block=3, max_columns=60), Arpack(form=False)]
)
def test_solver_objects_are_taken_as_they_are(solver):
    before = repr(solver)
    plan = exact_plan(Workload(1_000, 5, 4, GB), solver)
    assert repr(plan.solver) == before == repr(solver)
    assert plan.reason == "asked for as eigen_solver"


@pytest.mark.parametrize("name", ["dense", "krylov", "arpack", "randomized"])
def test_names(name):
    X = generator(6).standard_normal((400, 4))
    plan = KernelPCA(3, kernel="rbf", eigen_solver=name).fit(X).plan_
    assert plan.method.lower().startswith(name) and plan.reason == "asked for as eigen_solver"
    assert type(plan.solver) is SOLVERS[name]


def test_plan_of_a_shape():
    plan = mercer.plan((100_000, 54), n_components=16, memory="2GB", n_jobs=2)
    assert isinstance(plan, Plan) and plan.method == "krylov, matrix-free"
    assert plan.workload == Workload(100_000, 54, 16, 2 * GB, 2, 0.0)
    text = repr(plan)
    assert "100,000 rows, 54 columns, 16 components in 2 GB on 2 threads" in text
    for estimate in plan.estimates:
        assert estimate.method in text and estimate.seconds > 0
    marked = [line for line in text.splitlines() if line.startswith("*")]
    assert plan.method in marked[0] and len(marked) == 2  # the row, and the reason
    assert "over the memory budget" in text
    html = plan._repr_html_()
    assert html.startswith("<table>") and plan.method in html


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "chi2", RBF(gamma="median")])
def test_plan_of_data(kernel):
    X = generator(1).random((700, 6))
    plan = mercer.plan(X, n_components=3, kernel=kernel, memory="1GB")
    assert plan.workload.n == 700 and plan.workload.d == 6
    assert all(np.isfinite(e.seconds) and e.seconds > 0 for e in plan.estimates)


def test_plan_of_all_components():
    assert mercer.plan((1_000, 5), n_components=None, memory="1GB").workload.r == 1_000
    assert mercer.plan((100, 5), n_components=500, memory="1GB").workload.r == 100


def test_plan_does_not_touch_the_data():
    X = generator(2).random((600, 3))
    X.flags.writeable = False
    mercer.plan(X, n_components=3, memory="100MB")


def test_plan_with_all_jobs():
    plan = mercer.plan((1_000, 5), memory="1GB", n_jobs=-1)
    assert plan.workload.threads >= 1
    assert all(e.seconds > 0 for e in plan.estimates)


def test_plan_of_few_rows():
    assert mercer.plan(generator(3).random((9, 3)), n_components=2).method == "dense"


def test_plan_of_sparse_data():
    X = sparse.random_array((600, 20), density=0.2, format="csr", rng=generator(4))
    assert mercer.plan(X, n_components=3, memory="1GB").workload.n == 600


def test_plan_of_a_precomputed_kernel():
    assert mercer.plan((600, 600), n_components=3, kernel="precomputed").method


def test_typical_speeds_grow_with_columns():
    assert Speeds.typical(800).evaluate > Speeds.typical(4).evaluate > 0


def test_fit_follows_the_plan():
    X = generator(5).standard_normal((400, 4))
    plan = KernelPCA(3, kernel="rbf").fit(X).plan_
    assert plan.method == exact_plan(plan.workload).method
    assert plan.workload.n == 400 and plan.workload.d == 4 and plan.workload.r == 3
    small = KernelPCA(3, kernel="rbf", memory="1100kB").fit(X).plan_
    assert small.method == "krylov, matrix-free"
    assert repr(small).count("over the memory budget") >= 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([[1.0, 2.0]],), r"minimum of 2 is required"),
        (("rows.npy",), r"no file or folder rows\.npy"),
        (((5,),), r"shape \(n, d\).*\(5,\)"),
        (((0, 5),), r"at least one row.*\(0, 5\)"),
        (((100, 5), 0), r"n_components=0.*at least 1"),
        (((100, 5), 0.9), r"n_components=0\.9.*after a fit only"),
    ],
)
def test_what_cannot_be_planned(args, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        mercer.plan(*args)


def test_functions_cannot_be_planned():
    with pytest.raises(TypeError, match=r"neither a name nor an object of mercer\.kernels"):
        mercer.plan((100, 5), kernel=lambda x, z: float(x @ z))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.00042, "0.42 ms"),
        (0.0999, "0.1 s"),
        (12.3, "12 s"),
        (99.4, "99 s"),
        (300, "5 min"),
        (12_000, "3.3 hours"),
        (900_000, "10 days"),
        (1e9, "32 years"),
        (1e17, "over 10,000 years"),
        (float("nan"), "unknown"),
    ],
)
def test_times_as_people_say_them(seconds, said):
    assert format_seconds(seconds) == said


def test_a_long_exact_fit_names_the_approximation():
    """The recommendation comes first, and no row of the table makes its words untrue."""
    lines = repr(mercer.plan((1_000_000, 10), memory="8GB", n_jobs=2)).splitlines()
    assert lines[1].startswith("* krylov, matrix-free, about") and "hours" in lines[1]
    assert "the only exact method" in lines[1] and 'basis="landmarks" would take' in lines[1]
    assert "landmarks" not in repr(mercer.plan((2_000, 10), memory="2GB")).splitlines()[1]


class Stubborn(Arpack):
    """A search that ends without its pairs, or with pairs that are not good enough."""

    def __init__(self, residual: float | None):
        self.residual = residual

    def solve(self, operator, n_components, rng, tol=0.0, report=None):
        if self.residual is None:
            raise NoConvergence("no pairs")
        pairs = Dense().solve(operator, n_components, rng)
        residuals = np.full(n_components, self.residual * pairs.values[0])
        return replace(pairs, residuals=residuals, converged=False, n_passes=7)


class OfMatrix(Problem):
    """The eigenproblem of a matrix."""

    def __init__(self, A):
        self.operator = DenseOperator(A)

    def result(self, pairs):
        return pairs


@pytest.mark.parametrize("slow", [True, False])
@pytest.mark.parametrize("residual", [None, 1e-2, 1e-8])
def test_no_cliff(residual, slow):
    """What LAPACK takes over is said before where it takes long, or kept where it is near."""
    A = generator(7).standard_normal((60, 60))
    plan = exact_plan(Workload(60, 5, 3, GB))
    chosen = replace(plan.estimate("arpack, matrix formed"), solver=Stubborn(residual))
    lapack = replace(plan.estimate("dense"), seconds=2 * SOON if slow else 0.0)
    plan = replace(plan, chosen=chosen, estimates=(chosen, lapack))
    asked, problem = replace(plan, left_to_us=False), OfMatrix(A @ A.T)
    task = SimpleNamespace(
        engine=LocalEngine(GB, 1), rng=generator(0), progress=PassBar(), checkpoint=None
    )
    near = residual == 1e-8
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        pairs, done = follow(plan, problem, task)
    assert done.method == (plan.method if near and slow else "dense")
    assert pairs.converged != (near and slow)
    assert len(said) == (slow and not near)
    assert all("goes on with LAPACK on the whole matrix" in str(w.message) for w in said)
    if residual is None:
        with pytest.raises(NoConvergence):
            follow(asked, problem, task)
    else:
        assert follow(asked, problem, task)[1] is asked


@pytest.mark.parametrize("n", [10**8, 10**9, 10**10])
def test_rows_beyond_every_exact_method(n):
    """The plan names what serves, in seconds and bytes that do not grow with the rows."""
    plan = mercer.plan((n, 20), 10, memory="2GB", n_jobs=2)
    assert plan.method == 'basis="landmarks"' and plan.chosen.fits
    assert "no exact method fits" in plan.advice and plan.chosen.bytes < GB
    assert plan.chosen.seconds > n * 1e-7


def test_plans_are_made_once_and_belong_to_their_fit():
    """The plan of the same work is the same, and a change to its solver stays with one fit."""
    work = Workload(5_000, 10, 8, 4 * GB, 2)
    first = exact_plan(work)
    first.solver.set_params(max_passes=1)
    again = exact_plan(work)
    assert again.method == first.method and again.solver.max_passes != 1


def test_words_of_plans_are_true():
    """Drawn shapes, kernels and budgets: the recommendation says nothing that the table denies."""
    rng, reasons = generator(11), set()
    for _ in range(60):
        n, d = int(10 ** rng.uniform(1.5, 8)), int(10 ** rng.uniform(0, 2))
        r = None if n < 10**5 and rng.random() < 0.2 else int(rng.integers(1, 40))
        kernel = str(rng.choice(["rbf", "linear", "poly", "cosine"]))
        memory = int(10 ** rng.uniform(6, 11))
        X = (n, d) if n > 5000 or rng.random() < 0.5 else rng.standard_normal((n, d))
        plan = mercer.plan(X, r, kernel=kernel, memory=memory, n_jobs=1)
        exact = {e.method for e in plan.estimates if e.fits and not e.approximate}
        exact -= {"gram-power", "HebbianKernelPCA"}
        if plan.reason.startswith("the only exact method"):
            named = {method for method in exact if method in plan.reason}
            assert exact == {plan.method} | named
        elif plan.reason.startswith("no exact method"):
            assert all(method in plan.reason for method in exact)
            assert plan.chosen.approximate or not any(
                e.fits for e in plan.estimates if e.approximate
            )
        else:
            ratio, other = re.match(r"predicted (.*) times faster than (.*)", plan.reason).groups()
            assert plan.method in exact and other in exact and float(ratio) >= 1
            ratio_now = plan.estimate(other).seconds / plan.chosen.seconds
            assert float(ratio) == pytest.approx(ratio_now, rel=0.1)
        assert plan.chosen.fits or "needs the least" in plan.reason
        if plan.chosen.approximate:
            assert plan.workload.r <= 500 or "features" not in plan.method
        reasons.add(plan.reason.split(" method")[0].split(" ")[0])
    assert reasons == {"the", "no", "predicted"}


def test_plans_of_small_bases_say_the_rows(tmp_path):
    """`plan_` has the rows of the data and not the size of the problem that is left."""
    X = generator(12).standard_normal((3000, 4))
    np.save(tmp_path / "rows.npy", X)
    for basis in ("landmarks", "features", Landmarks(30), RandomFeatures(40)):
        for rows in (X, tmp_path / "rows.npy"):
            plan = KernelPCA(3, kernel="rbf", basis=basis, random_state=0).fit(rows).plan_
            assert plan.workload.n == 3000 and "3,000 rows" in repr(plan)
            assert "basis vectors" in plan.reason


@pytest.mark.parametrize("cost", [landmarks, features])
def test_costs_of_small_bases_grow_as_they_should(cost):
    """With the rows, and with rows times the square of the size; memory not with the rows."""
    speeds = Speeds.typical(20)

    def of(n, m, threads=1):
        return cost(Workload(n, 20, 10, GB, threads), speeds, m)

    assert of(10**8, 200).seconds / of(10**7, 200).seconds == pytest.approx(10, rel=0.05)
    assert 3 < of(10**7, 4000).seconds / of(10**7, 2000).seconds < 4.1
    assert of(10**7, 200, 2).seconds < 0.6 * of(10**7, 200).seconds
    assert of(10**9, 200).bytes == of(10**6, 200).bytes
    # One reading of the rows: no more values than coordinates, but for what is fixed.
    assert of(10**9, 200).evaluations == pytest.approx(2e11, rel=0.01)


def test_plans_know_where_single_precision_does_not_serve():
    """A nearly constant kernel is searched in double precision, at twice the time and tiles."""
    X = generator(13).standard_normal((3000, 40)) * 1e-2
    rough, fine = (mercer.plan(rows, 4, tol=1e-6, n_jobs=1) for rows in (X, 100 * X))
    assert not rough.workload.single and fine.workload.single
    kept = "krylov, tiles kept"
    assert rough.estimate(kept).bytes > 1.3 * fine.estimate(kept).bytes
    model = KernelPCA(4, kernel="rbf", tol=1e-6, n_jobs=1, random_state=0).fit(X)
    assert not model.plan_.workload.single


def drawn_configuration(rng, tmp_path):
    """Rows of some kind and the parameters of a fit to them, all drawn."""
    n, d = int(10 ** rng.uniform(1.5, 3.6)), int(10 ** rng.uniform(0, 1.7))
    if d <= 3 and rng.random() < 0.5:
        n = int(rng.integers(20_000, 60_000))  # where a grid is worth it
    X = np.abs(rng.standard_normal((n, d))) * 10 ** rng.uniform(-1.5, 0.5)
    kernel = rng.choice(["rbf", "linear", "poly", "cosine", "laplacian", "matern", "chi2"])
    # A grid takes moments; tiles of so many rows do not.
    if n > 5000:
        X, kernel = X / X.max(), "rbf"
    memory = int(10 ** rng.uniform(6.3 if n < 5000 else 8.5, 9.3))
    # Few components beside all of them, which LAPACK finds for a thousand rows in time.
    every = n < 1500 and rng.random() < 0.15
    r = None if every else int(rng.integers(1, 1 + min(20, n // 5)))
    given = {"memory": memory, "tol": float(rng.choice([0.0, 1e-6, 1e-3])), "n_jobs": 2}
    rows = X
    match rng.choice(["array", "float32", "sparse", "file", "list", "Fortran"]):
        case "float32":
            rows = X.astype(np.float32)
        case "sparse" if n < 5000:
            rows = sparse.csr_array(X * (rng.random(X.shape) < 0.3))
        case "file":
            rows = tmp_path / "rows.npy"
            np.save(rows, X)
        case "list" if n < 1000:
            rows = X.tolist()
        case "Fortran":
            rows = np.asfortranarray(X)
    return rows, X, r, str(kernel), given


def test_fits_take_what_plans_say(tmp_path):
    """Drawn rows, kernels, budgets and tolerances: `plan_` is what `mercer.plan` had marked.

    Weights do not change it. Where the plan's search does not converge LAPACK takes over, which no
    plan can foresee, and what no method serves within the budget is refused by both.
    """
    rng, methods = generator(21), []
    for _ in range(60):
        rows, X, r, kernel, given = drawn_configuration(rng, tmp_path)
        weight = rng.uniform(0.5, 2, len(X)) if rng.random() < 0.2 else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # landmarks in place of all points, rows of zeros
            planned = mercer.plan(rows, r, kernel=kernel, **given)
            try:
                model = KernelPCA(r, kernel=kernel, **given).fit(rows, sample_weight=weight)
            except ValueError as error:
                assert "memory" in str(error) and not planned.chosen.fits, (planned, error)
                continue
        found = model.plan_
        if found.reason.startswith(f"dense: {planned.method}"):
            continue
        assert found.method == planned.method, (X.shape, r, kernel, given, planned, found)
        # All components of columns are as many as there are columns.
        assert r is None or found.workload == planned.workload
        methods.append(found.method)
    assert {"dense", "krylov, tiles kept", 'basis="columns"', 'basis="fourier"'} <= set(methods)
    assert len(methods) > 45


@pytest.mark.parametrize("basis", ["landmarks", "features"])
def test_the_product_that_judges_is_planned_where_it_is_made(basis, tmp_path):
    """Of an array, whose memory then bounds that of the fit; not of rows read in blocks."""
    X = np.random.default_rng(0).standard_normal((1500, 6))
    np.save(tmp_path / "rows.npy", X)
    model = KernelPCA(5, kernel="rbf", basis=basis, random_state=0, n_jobs=1, copy_X=False)
    planned = model.fit(X).plan_.chosen
    assert planned.evaluations > 1500**2 / 2
    assert 0.5 < planned.bytes / peak_bytes(lambda: model.fit(X)) < 2
    assert model.fit(tmp_path / "rows.npy").plan_.chosen.evaluations < 1500**2 / 2 + 1500 * 1000
    assert model.plan_.chosen.seconds < planned.seconds
