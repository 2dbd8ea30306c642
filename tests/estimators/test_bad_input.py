"""Every bad input ends in a message that names what was wrong and what to do."""

import warnings

import numpy as np
import pandas as pd
import pytest
from contracts import generator
from hostile import FOREIGN, unclear
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mercer
from mercer import ClassicalMDS, KernelPCA, NoveltyDetector, SpectralClustering
from mercer.bases import RandomFeatures
from mercer.exceptions import InvalidParameterError
from mercer.kernels import RBF, BlockFunction, Chi2, Laplacian, Linear, Polynomial
from mercer.solvers import BlockKrylov

X = generator(1).standard_normal((30, 4))


def fails(match, data=X, error=ValueError, **params):
    with pytest.raises(error, match=match):
        KernelPCA(**{"n_components": 2, "kernel": "rbf"} | params).fit(data)


def spoiled(value):
    Y = X.copy()
    Y[3, 1] = value
    return Y


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_nan_and_infinity(kind):
    fails("contains NaN", kind(spoiled(np.nan)))
    fails("contains infinity", kind(spoiled(np.inf)))
    model = KernelPCA(2, kernel="rbf").fit(X)
    with pytest.raises(ValueError, match="contains NaN"):
        model.transform(kind(spoiled(np.nan)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_finite_rows_whose_sum_is_not(dtype):
    """Rows are checked by their sum first; what overflows there is no infinity."""
    large = np.full((3, 2), np.finfo(dtype).max / 2, dtype)
    model = KernelPCA(2, kernel="rbf").fit(X)
    assert model._check(X[:1], reset=False) is not None
    assert KernelPCA(copy_X=False)._check(large, reset=True) is large
    large[0] = np.inf
    with pytest.raises(ValueError, match="contains infinity"):
        KernelPCA()._check(large, reset=True)


def memmap(tmp_path, array):
    path = tmp_path / "rows.bin"
    rows = np.memmap(path, array.dtype, "w+", shape=array.shape)
    rows[...] = array
    rows.flush()
    return np.memmap(path, array.dtype, "r", shape=array.shape)


def test_bad_files(tmp_path):
    fails("NaN or infinity", memmap(tmp_path, spoiled(np.nan)))
    fails("NaN or infinity", memmap(tmp_path, spoiled(np.inf)))
    fails(r"2D array.*3D", memmap(tmp_path, np.ones((4, 3, 2))))
    fails(r"2D array.*complex", memmap(tmp_path, np.ones((4, 3), complex)))
    model = KernelPCA(2, kernel="rbf").fit(X)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        model.transform(memmap(tmp_path, np.ones((4, 3))))


def test_a_file_of_one_row(tmp_path):
    fails("minimum of 2", memmap(tmp_path, np.ones((1, 3))))


def test_empty():
    fails(r"0 sample\(s\).*minimum of 2", np.empty((0, 4)))
    fails(r"0 feature\(s\).*minimum of 1", np.empty((5, 0)))


def test_one_row():
    fails(r"1 sample.*minimum of 2", X[:1])


def test_one_column_is_fine():
    scores = KernelPCA(2, kernel="rbf").fit_transform(X[:, :1])
    assert scores.shape == (30, 2) and np.isfinite(scores).all()


@pytest.mark.parametrize("solver", ["auto", "dense", "krylov", "arpack", "randomized"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
@pytest.mark.parametrize("n", [12, 120])
def test_all_rows_equal(solver, kernel, n):
    model = KernelPCA(2, kernel=kernel, eigen_solver=solver, random_state=0)
    Y = np.full((n, 3), 0.7)
    with pytest.warns(UserWarning, match="no variance.*all rows are equal"):
        scores = model.fit_transform(Y)
    np.testing.assert_allclose(scores, 0, atol=1e-7)
    np.testing.assert_array_equal(model.explained_variance_ratio_, 0)
    np.testing.assert_allclose(model.transform(Y), 0, atol=1e-6)
    assert not model.certificate_.indefinite
    assert repr(model.certificate_)


def test_constant_rows():
    """Rows of one value each: rank one for a linear kernel, no trouble for any."""
    Y = np.repeat(np.arange(12.0)[:, None], 3, axis=1)
    model = KernelPCA(3, kernel="linear").fit(Y)
    np.testing.assert_allclose(model.eigenvalues_[1:], 0, atol=1e-9)
    np.testing.assert_allclose(model.explained_variance_ratio_[0], 1)
    assert np.isfinite(KernelPCA(3, kernel="rbf").fit_transform(Y)).all()
    with pytest.warns(UserWarning, match="no variance"):  # all of one direction
        KernelPCA(3, kernel="cosine").fit(Y + 1)


def test_objects_and_strings():
    fails("Row 0, column 0.*'a'", np.array([["a", "b"], ["c", "d"]], dtype=object))
    fails("Row 0, column 0.*'a'", np.array([["a", "b"], ["c", "d"]]))
    fails("float|number|object", np.array([[{}, 1], [2, 3]], dtype=object), (ValueError, TypeError))
    # numbers in an object array are numbers
    same = KernelPCA(2, kernel="rbf").fit_transform(X.astype(object))
    np.testing.assert_allclose(same, KernelPCA(2, kernel="rbf").fit_transform(X))


def test_complex():
    fails("[Cc]omplex data not supported", X + 1j)


@pytest.mark.parametrize("bad", [X[0], X[None]])
def test_dimensions(bad):
    fails("Expected 2D|dim 3", bad)
    with pytest.raises(ValueError, match=r"Expected 2D|dim 3"):
        KernelPCA(2).fit(X).transform(bad)


def test_more_components_than_rows():
    model = KernelPCA(50, kernel="rbf")
    with pytest.warns(UserWarning, match=r"n_components=50 is more than n_samples=30.*30.* kept"):
        model.fit(X)
    assert model.eigenvalues_.shape == (30,)


def test_more_components_than_arpack_finds():
    fails(
        "arpack.*fewer than n_samples=30.*Use eigen_solver='dense'",
        eigen_solver="arpack",
        n_components=30,
    )


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"kernel": "gauss"}, r"'kernel'.*must be.*'rbf'.*'gauss'"),
        ({"eigen_solver": "lanczos"}, r"'eigen_solver'.*must be.*'krylov'.*'lanczos'"),
        ({"basis": "wavelets"}, r"'basis'.*must be.*'points'.*'wavelets'"),
        ({"gamma": -1.0}, r"'gamma'.*\[0.*-1"),
        ({"gamma": "mode"}, r"'gamma'.*'median'.*'mode'"),
        ({"n_components": 0}, r"'n_components'.*0"),
        ({"n_components": 1.5}, r"'n_components'.*1\.5"),
        ({"n_components": -0.5}, r"'n_components'.*-0\.5"),
        ({"n_components": "all"}, r"'n_components'.*'all'"),
        ({"tol": -1}, r"'tol'.*-1"),
        ({"max_iter": 0}, r"'max_iter'.*0"),
        ({"alpha": -1}, r"'alpha'.*-1"),
        ({"degree": -1}, r"'degree'.*-1"),
        ({"center": "yes"}, r"'center'.*'yes'"),
        ({"memory": 0}, r"'memory'.*0"),
        ({"memory": "lots"}, r"memory='lots' is not an amount.*'300MB'"),
        ({"callback": 3}, r"'callback'.*3"),
        ({"kernel": RBF(gamma=-2.0)}, r"gamma=-2.* negative"),
        ({"kernel": RBF(), "gamma": 1.0}, r"gamma was given twice.*RBF\(gamma"),
        ({"kernel": Polynomial(gamma="median")}, r"gamma='median'.*Polynomial.*Give a number"),
        ({"kernel": "poly", "gamma": "median"}, r"gamma='median'.*Polynomial.*Give a number"),
        ({"kernel": "chi2"}, r"Chi2 needs non-negative data.*-\d.*Shift or clip"),
        ({"kernel": "additive_chi2"}, r"AdditiveChi2 needs non-negative"),
        ({"kernel": "matern", "kernel_params": {"nu": 3}}, r"nu=3.*0\.5, 1\.5 or 2\.5"),
    ],
    ids=str,
)
def test_parameters(params, match):
    fails(match, **params)


@pytest.mark.parametrize("gamma", [np.nan, np.inf])
@pytest.mark.parametrize("kernel", [RBF, Laplacian])
def test_gamma_of_a_kernel_object_is_a_number(kernel, gamma):
    fails("gamma", kernel=kernel(gamma=gamma))


def test_broken_powers_of_negative_numbers():
    """(x.z + c)^2.5 has no value where the base is negative."""
    fails("degree", kernel=Polynomial(degree=2.5, gamma=1.0, coef0=0.0))


def test_new_data_is_checked_by_the_kernel():
    model = KernelPCA(2, kernel=Chi2()).fit(np.abs(X))
    with pytest.raises(ValueError, match="non-negative"):
        model.transform(X)


def test_precomputed_must_be_square_and_symmetric():
    fails(r"square matrix.*\(30, 4\)", kernel="precomputed")
    fails(
        r"symmetric.*differ by.*\(K \+ K.T\) / 2",
        X @ generator(2).random((4, 30)),
        kernel="precomputed",
    )
    K = sparse.csr_array(np.triu(np.ones((6, 6))))
    fails("symmetric", K, kernel="precomputed")
    KernelPCA(2, kernel="precomputed").fit(X @ X.T * (1 + 1e-9))


def test_precomputed_cannot_do_everything():
    fails(
        "fit_inverse_transform.*precomputed",
        X @ X.T,
        kernel="precomputed",
        fit_inverse_transform=True,
    )
    model = KernelPCA(2, kernel="precomputed").fit(X @ X.T)
    with pytest.raises(ValueError, match=r"reconstruction error is unknown.*Use a kernel"):
        model.reconstruction_error(X @ X.T)
    with pytest.raises(ValueError, match="features"):
        model.transform(np.ones((3, 7)))


def test_negative_eigenvalues():
    K = np.diag(np.r_[3.0, 2.0, -2.5, np.zeros(9)])
    fails(
        r"significant negative eigenvalues.*-2.*Ask for fewer components",
        K,
        kernel="precomputed",
        n_components=None,
        center=False,
    )


@pytest.mark.parametrize("n", [200, 900])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "matern"])
def test_budget_too_small_names_the_least_that_does(n, kernel):
    Y = generator(n).standard_normal((n, 3))
    model = KernelPCA(2, kernel=kernel, memory="1kB", n_jobs=1)
    with pytest.raises(ValueError, match=r"memory=1 kB cannot hold one tile.*ive at least") as e:
        model.fit(Y)
    least = int(str(e.value).rsplit("memory=", 1)[1].rstrip("."))
    model.set_params(memory=least).fit(Y)
    assert model.certificate_.converged


def test_budget_too_small_for_every_component():
    Y = generator(3).standard_normal((600, 3))
    fails(
        r"needs .*MB for 600 rows and 600 components.*memory allows 1 MB.*fewer",
        Y,
        n_components=None,
        memory="1MB",
    )
    fails(r"needs .*MB.*memory allows 1 MB", Y, eigen_solver="dense", memory="1MB")
    fails(r"fit_inverse_transform.*MB.*memory", Y, memory="1MB", fit_inverse_transform=True)


def test_budget_too_small_for_krylov_of_most_components():
    """So many components need the matrix, whoever asks for them."""
    Y = generator(3).standard_normal((600, 3))
    fails("memory", Y, n_components=200, eigen_solver="krylov", memory="1MB")


def test_other_columns():
    model = KernelPCA(2, kernel="rbf").fit(X)
    with pytest.raises(ValueError, match="X has 3 features, but KernelPCA is expecting 4"):
        model.transform(X[:, :3])
    with pytest.raises(ValueError, match="X has 3 features"):
        model.reconstruction_error(X[:, :3])


def test_other_column_names():
    pd = pytest.importorskip("pandas")
    model = KernelPCA(2, kernel="rbf").fit(pd.DataFrame(X, columns=list("abcd")))
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(pd.DataFrame(X, columns=list("abcz")))


def test_not_fitted():
    from sklearn.exceptions import NotFittedError

    for method in ("transform", "reconstruction_error", "score", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(KernelPCA(fit_inverse_transform=True), method)(X)


def test_not_converged_warns_with_what_to_do():
    from sklearn.exceptions import ConvergenceWarning

    Y = generator(4).standard_normal((400, 30))
    model = KernelPCA(8, kernel="rbf", gamma=1.0, eigen_solver="krylov", max_iter=3)
    with pytest.warns(ConvergenceWarning, match=r"Not converged after 3 passes.*Raise max_iter"):
        model.fit(Y)
    assert not model.certificate_.converged


def test_plan_messages():
    with pytest.raises(ValueError, match=r"kernel='gauss' is unknown.*'rbf'"):
        mercer.plan((100, 3), kernel="gauss")
    with pytest.raises(ValueError, match=r"device='tpu'"):
        mercer.plan((100, 3), device="tpu")
    with pytest.raises(ValueError, match="not an amount of memory"):
        mercer.plan((100, 3), memory="lots")


def test_solver_object_on_few_rows_is_no_matter_of_memory():
    """BlockKrylov hands small problems to LAPACK; the budget has nothing to do with it."""
    scores = KernelPCA(5, kernel="rbf", eigen_solver=BlockKrylov()).fit_transform(X)
    assert scores.shape == (30, 5)


@pytest.mark.parametrize("memory", ["1e400MB", "1e30GB", 10**400, 1e300, "0B", 0.5])
def test_budgets_that_no_machine_has(memory):
    fails("memory=.*Give|positive amount of memory.*Give|a str or None. Got 10", memory=memory)


@pytest.mark.parametrize("widths", [[], [0], [-1.0], [np.nan], [np.inf], ["a"], [[1.0, 2.0]]])
def test_widths_of_a_search_are_numbers_above_zero(widths):
    with pytest.raises(InvalidParameterError, match=r"'widths' parameter.*each a float"):
        mercer.KernelPCASearch(widths=widths).fit(X)


@pytest.mark.parametrize("name", ["n_components", "gamma", "tol", "memory", "n_jobs"])
@pytest.mark.parametrize("value", [True, False])
def test_a_bool_is_no_number(name, value):
    fails(f"'{name}' parameter .*Got {value}", error=InvalidParameterError, **{name: value})


@pytest.mark.parametrize("alpha", [1e30, 21, -1, np.nan, np.inf])
def test_densities_to_a_power_that_is_too_large(alpha):
    with pytest.raises(InvalidParameterError, match="'density_power' parameter"):
        mercer.DiffusionMap(density_power=alpha).fit(X)
    Y = generator(4).standard_normal((90, 3))
    assert np.isfinite(mercer.DiffusionMap(density_power=20, random_state=0).fit_transform(Y)).all()


@pytest.mark.parametrize("unit", ["ns", "s", "D"])
@pytest.mark.parametrize("kind", [np.datetime64, np.timedelta64])
def test_dates_in_object_arrays(kind, unit):
    Y = X.astype(object)
    Y[3, 1] = kind(7, unit)
    fails(r"X holds .*\(3, 1\).*Say what", Y)
    fails("holds .*Say what", lambda: iter([X, Y]), basis="landmarks")


@pytest.mark.parametrize("model", [KernelPCA(2), mercer.Nystroem(), mercer.ClassicalMDS(2)])
def test_a_polars_frame_without_rows(model):
    polars = pytest.importorskip("polars")
    empty = polars.DataFrame(schema={"a": polars.Float64, "b": polars.Float64})
    with pytest.raises(ValueError, match="polars frame has 0 rows, while a minimum of"):
        model.fit(empty)


@pytest.mark.parametrize("ranks", [[], [0], [True], [2.5], ["a"], [30], [[1, 2]], [None], {}])
def test_numbers_of_components_of_a_search_are_whole(ranks):
    with pytest.raises(ValueError, match=r"each an int|whole numbers from 1 to"):
        mercer.KernelPCASearch(n_components=ranks, widths=[1.0]).fit(X)


EVERY = {
    "points": KernelPCA(2, kernel="rbf"),
    "columns": KernelPCA(2),
    "bits": KernelPCA(2, kernel="tanimoto"),
    "pre-images": KernelPCA(2, kernel="rbf", preimage="ridge"),
    "landmarks": KernelPCA(2, kernel="laplacian", basis="landmarks", random_state=0),
    "features": KernelPCA(2, kernel="rbf", basis="features", random_state=0),
    "hebbian": mercer.HebbianKernelPCA(2, random_state=0),
    "stream": mercer.StreamingKernelPCA(2, random_state=0),
    "novelty": mercer.NoveltyDetector(random_state=0),
    "search": mercer.KernelPCASearch(n_components=[1, 2], widths=[1.0], random_state=0),
    "scaling": mercer.ClassicalMDS(2),
    "isomap": mercer.Isomap(2),
    "embedding": mercer.SpectralEmbedding(2, affinity="nearest_neighbors", random_state=0),
    "diffusion": mercer.DiffusionMap(2, random_state=0),
    "clusters": mercer.SpectralClustering(2, random_state=0),
    "nystroem": mercer.Nystroem(n_components=5, random_state=0),
    "supervised": mercer.SupervisedKernelPCA(1, kernel="rbf"),
    "correlation": mercer.KernelCCA(1, kernel="rbf"),
}


def fit_to(model, data, n):
    """A fit, with what it takes beside the rows."""
    if isinstance(model, mercer.KernelCCA):
        return clone(model).fit(data, data)
    beside = (np.arange(n) % 2,) if isinstance(model, mercer.SupervisedKernelPCA) else ()
    return clone(model).fit(data, *beside)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["function", "csv", "stream of a table", "no columns"])
@pytest.mark.parametrize("name", EVERY)
def test_too_few_rows_of_a_source_that_is_not_counted(name, form, tmp_path):
    """Refused as they would be in an array, by every estimator."""
    model = EVERY[name]
    least = {"search": 4, "novelty": 3, "hebbian": 1, "stream": 1, "nystroem": 1}.get(name, 2)
    pd = pytest.importorskip("pandas")
    for n in range(least):
        frame = pd.DataFrame(X[:n], columns=list("abcd"))
        if form == "no columns":
            data, n = frame[[]], 9
        elif form == "function":
            data = lambda n=n: iter([X[:1], X[1:n]][: 1 + (n > 1)] if n else [X[:0]])  # noqa: E731
        elif form == "csv":
            data = tmp_path / "rows.csv"
            frame.to_csv(data, index=False)
        else:
            data = pytest.importorskip("pyarrow").Table.from_pandas(frame).to_reader()
        with pytest.raises(
            ValueError, match=r"minimum of|no rows|at least|once|same target|no columns"
        ):
            fit_to(model, data, n)


TYPES = [">f8", ">f4", ">i4", "<i2", "u1", "f2", "?", "g"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EVERY)
def test_files_in_any_type_and_byte_order(tmp_path, name):
    """By path and as a memmap: what the numbers are, not how they are stored."""
    for dtype in TYPES:
        stored = np.abs(9 * X).astype(dtype)
        np.save(tmp_path / "rows.npy", stored)
        expected = outcome(fit_to(EVERY[name], stored.astype(float), 30), stored.astype(float))
        for form in (tmp_path / "rows.npy", np.load(tmp_path / "rows.npy", mmap_mode="r")):
            model = fit_to(EVERY[name], form, 30)
            model.save(tmp_path / "model")
            assert outcome(model, form).shape == expected.shape
            if np.dtype(dtype).itemsize > 2 and name not in ("hebbian", "stream", "clusters"):
                np.testing.assert_allclose(outcome(model, form), expected, rtol=1e-3, atol=1e-4)


def outcome(model, data):
    if isinstance(model, mercer.NoveltyDetector):
        return model.decision_function(data)
    if isinstance(model, KernelPCA) and model.preimage == "ridge":
        return model.denoise(data)
    return np.abs(model.transform(data) if hasattr(model, "transform") else model.predict(data))


def test_a_refused_image_leaves_a_denoiser_as_it_was():
    image, damaged = generator(6).standard_normal((2, 16, 16))
    damaged[3, 4] = np.nan
    model = mercer.PatchDenoiser(patch_size=3, random_state=0)
    for wrong in (damaged, image[:2], [], [image, image[..., None]]):
        with pytest.raises(ValueError):
            model.fit(wrong)
        with pytest.raises(NotFittedError):
            model.denoise(image)
    before = dict(vars(model.fit(image)))
    for wrong in (damaged, image[:2], []):
        with pytest.raises(ValueError):
            model.fit(wrong)
        assert vars(model) == before


CONTAINERS = {
    "frame of two equal names": lambda X: pd.DataFrame(X, columns=["a"] * X.shape[1]),
    "frame of no rows": lambda X: frame_of(X).iloc[:0],
    "frame of sparse columns": lambda X: frame_of(X).astype(pd.SparseDtype(float, 0)),
    "frame of missing values": lambda X: frame_of(X).astype("Float64").mask(X > 1),
    "polars": lambda X: polars_of(X),
    "polars of no rows": lambda X: polars_of(X)[:0],
    "polars query": lambda X: polars_of(X).lazy(),
    "polars column of lists": lambda X: pytest.importorskip("polars").DataFrame(
        {"a": [[1, 2]] * 9}
    ),
    "iterator": lambda X: iter([X[:5], X[5:]]),
    "iterator of other columns": lambda X: iter([X[:5], X[5:, :1]]),
    "iterator of None": lambda X: iter([X[:5], None]),
    "empty CSR": lambda X: sparse.csr_array(X.shape),
    "CSR of integers": lambda X: sparse.csr_array(np.round(9 * X).astype(int)),
    "CSR with a column too many": lambda X: broken_csr(X, 77),
    "CSR with a negative column": lambda X: broken_csr(X, -1),
    "COO of one dimension": lambda X: sparse.coo_array(X[:, 0]),
    "a number in an array": lambda X: np.array(3.0),
    "a path that is not there": lambda X: "nowhere.csv",
    "an empty path": lambda X: "",
    "huge": lambda X: X * 1e300,
    "huge in single precision": lambda X: np.full_like(X, 2e38, dtype=np.float32),
    "tiny": lambda X: X * 1e-300,
    "a set": lambda X: {1, 2},
    "a dict": lambda X: {"a": 1},
}


def frame_of(X):
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])


def polars_of(X):
    return pytest.importorskip("polars").DataFrame({f"c{j}": X[:, j] for j in range(X.shape[1])})


def broken_csr(X, column):
    A = sparse.csr_array(X)
    A.indices = A.indices.copy()
    A.indices[-1] = column
    return A


def distances_of(X):
    return np.sqrt(np.square(X[:, None] - X[None]).sum(axis=2))


SERVED = {
    KernelPCA(2, kernel="rbf"): None,
    KernelPCA(2, kernel="rbf", basis=RandomFeatures(16), random_state=0): None,
    KernelPCA(2, kernel=RBF(gamma=1.0) + 0.1 * Linear()): None,
    KernelPCA(2, kernel="gower"): None,
    KernelPCA(2, kernel=BlockFunction(lambda A, B: np.ones((len(A), len(B))))): None,
    mercer.Isomap(2, n_neighbors=4): None,
    mercer.ProcessMonitor(2): None,
    ClassicalMDS(2): None,
    ClassicalMDS(2, metric="precomputed"): distances_of,
    SpectralClustering(2, random_state=0): None,
    SpectralClustering(
        2, affinity="precomputed_nearest_neighbors", n_neighbors=3, random_state=0
    ): distances_of,
    mercer.SpectralEmbedding(2): None,
    mercer.SpectralEmbedding(2, affinity="precomputed"): lambda X: np.exp(-distances_of(X)),
    mercer.DiffusionMap(2): None,
    NoveltyDetector(2): None,
    mercer.SupervisedKernelPCA(2): None,
    mercer.KernelCCA(2): None,
    mercer.Nystroem(n_components=4, random_state=0): None,
}
LATER = ("transform", "predict", "denoise", "inverse_transform", "score_samples")


def test_containers_of_all_kinds_are_served_or_refused_in_words():
    """NumPy's, SciPy's and narwhals' own errors, and NaN, came of one in thirty of these."""
    faults = []
    for seed in range(120):
        rng = np.random.default_rng([35, seed])
        model, make = list(SERVED.items())[rng.integers(len(SERVED))]
        name = list(CONTAINERS)[rng.integers(len(CONTAINERS))]
        rows, y = rng.standard_normal((20, 3)), rng.standard_normal((20, 1))
        given = CONTAINERS[name](rows if make is None else make(rows))
        rows = rows if make is None else make(rows)
        targeted = model._needs_target
        later = [verb for verb in LATER if hasattr(model, verb)]
        verb = "fit" if rng.random() < 0.4 or not later else str(rng.choice(later))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.simplefilter("error", RuntimeWarning)
                if verb == "fit" and targeted and rng.random() < 0.5:
                    clone(model).fit(rows, given)
                elif verb == "fit":
                    clone(model).fit(given, y) if targeted else clone(model).fit(given)
                else:
                    fitted = clone(model).fit(rows, y) if targeted else clone(model).fit(rows)
                    result = getattr(fitted, verb)(given)
                    assert np.isfinite(np.asarray(result, dtype=float)).all(), "not finite"
        except FileNotFoundError:
            assert name.endswith("not there")
        except (ValueError, TypeError) as error:
            if unclear(error):
                faults.append(f"{seed}: {model}, {verb} of {name}: {unclear(error)}")
        except Exception as error:
            faults.append(f"{seed}: {model}, {verb} of {name}: {type(error).__name__}: {error}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_neighbors_of_rows_whose_squares_do_not_fit_are_refused(scale):
    """31 of 80 rows of two far blobs were in the wrong cluster, in silence."""
    rng = np.random.default_rng(3)
    rows = np.r_[rng.standard_normal((40, 3)), rng.standard_normal((40, 3)) + 6] * scale
    for model in (SpectralClustering(2, random_state=0), mercer.SpectralEmbedding(2)):
        with pytest.raises(ValueError, match=r"Neighbors take distances.*Scale the data"):
            model.fit(rows)


def broken(A, **parts):
    """A sparse matrix with other parts than it was made with."""
    for name, value in parts.items():
        setattr(A, name, value)
    return A


def torch_of(make):
    return lambda X: make(pytest.importorskip("torch"), X)


def short_chunks(X):
    array = pytest.importorskip("dask.array").from_array(X, chunks=(7, -1))
    return array.map_blocks(lambda rows: rows[:3], dtype=float, meta=np.empty((0, 0)))


# What no estimator may take for rows, and the words for it.
MISLEADING = {
    "LIL with a column too many": (
        lambda X: broken(
            sparse.lil_array(X), rows=np.array([[99, 1, 2, 3]] * len(X) + [0], object)[:-1]
        ),
        "parts contradict",
    ),
    "LIL with lists of other lengths": (
        lambda X: broken(sparse.lil_array(X), rows=np.array([[0]] * len(X) + [0], object)[:-1]),
        "different lengths",
    ),
    "DIA with more offsets": (
        lambda X: broken(sparse.dia_array(X), offsets=np.arange(99)),
        "parts contradict",
    ),
    "CSR of masked values": (
        lambda X: broken(
            sparse.csr_array(X), data=np.ma.masked_greater(sparse.csr_array(X).data, 1)
        ),
        "masked",
    ),
    "CSR of texts": (
        lambda X: broken(sparse.csr_array(X), data=np.full(X.size, "a", object)),
        "parts contradict",
    ),
    "masked rows in a list": (lambda X: [np.ma.masked_greater(row, 0) for row in X], "masked"),
    "a list of sparse rows": (lambda X: [sparse.csr_array(row[None]) for row in X], r"vstack"),
    "lists within lists": (lambda X: [[[1.0, 2.0]]] * 9, r"dim 3.*reshape"),
    "ragged lists within lists": (lambda X: [[[1.0], [3.0, 2.0]]], "of type list|between 1 and 2"),
    "a date in a cell": (lambda X: spoiled_by(X, pd.Timestamp("2020")), "holds .*Say what"),
    "ragged blocks": (lambda X: iter([[[1.0, 2.0], [3.0]]]), "between 1 and 2"),
    "pairs of blocks": (lambda X: iter([(X[:7], X[7:])]), "between 7 and"),
    "a polars series": (
        lambda X: pytest.importorskip("polars").Series(X[:, 0]),
        r"Pass .*to_frame",
    ),
    "a Dask series": (
        lambda X: pytest.importorskip("dask.dataframe").from_pandas(frame_of(X))["c0"],
        "2D|to_frame",
    ),
    "Dask chunks of fewer rows": (short_chunks, "has 3 rows|needs all rows"),
    "a tensor without values": (torch_of(lambda t, X: t.empty(X.shape, device="meta")), "Pass"),
    "a sparse tensor": (torch_of(lambda t, X: t.tensor(X).to_sparse()), "to_dense"),
    "a conjugate tensor": (torch_of(lambda t, X: (t.tensor(X) + 1j).conj()), "omplex"),
    "a nested tensor": (
        torch_of(lambda t, X: t.nested.nested_tensor([t.tensor(X[0]), t.tensor(X[1, :2])])),
        "Pass",
    ),
}


def spoiled_by(X, value):
    rows = X.astype(object)
    rows[3, 1] = value
    return rows


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MISLEADING)
def test_what_is_no_table_of_numbers_is_refused(name):
    """A broken LIL matrix ended Python, masks were ignored, others got NumPy's own words."""
    make, words = MISLEADING[name]
    for model in ("points", "landmarks", "stream", "isomap"):
        fitted = clone(EVERY[model]).fit(X)
        are_batches = model == "stream" and name in ("a list of sparse rows", "lists within lists")
        for call in (fitted.transform, clone(EVERY[model]).fit)[: 1 if are_batches else 2]:
            with pytest.raises((ValueError, TypeError), match=words) as caught:
                result = call(make(X))
                if hasattr(result, "compute"):
                    result.compute()
            assert not FOREIGN.search(str(caught.value)) or name == "a list of sparse rows"


def test_tensors_of_types_that_numpy_has_not():
    torch = pytest.importorskip("torch")
    model = KernelPCA(2, kernel="rbf").fit(X)
    for rows in (torch.tensor(X).bfloat16(), torch._neg_view(torch.tensor(X))):
        expected = model.transform(rows.double().resolve_neg().numpy())
        np.testing.assert_allclose(model.transform(rows), expected, atol=1e-5)
        KernelPCA(2, kernel="rbf").fit(rows)


MISLEADING_WEIGHTS = {
    "masked": (lambda w: np.ma.masked_greater(w, 0.5), "masked"),
    "ragged": (lambda w: [[1.0, 2.0], [3.0]] * (len(w) // 2), "between 1 and 2"),
    "beyond sums": (lambda w: w * 1e307, "scale all"),
}


@pytest.mark.parametrize("name", MISLEADING_WEIGHTS)
@pytest.mark.parametrize("model", ["points", "landmarks", "stream", "supervised"])
def test_what_is_no_weight_is_refused(model, name):
    """The mask of masked weights was ignored."""
    make, words = MISLEADING_WEIGHTS[name]
    beside = [np.arange(30.0)] if model == "supervised" else []
    with pytest.raises((ValueError, TypeError), match=words):
        clone(EVERY[model]).fit(X, *beside, sample_weight=make(np.linspace(0.1, 1, 30)))


def test_weights_of_tensors():
    torch = pytest.importorskip("torch")
    for w in (torch.ones(30, requires_grad=True), torch.ones(30).bfloat16()):
        for model in ("points", "stream"):
            got = clone(EVERY[model]).fit(X, sample_weight=w)
            np.testing.assert_allclose(got.eigenvalues_, clone(EVERY[model]).fit(X).eigenvalues_)


@pytest.mark.parametrize("unit", ["M8[s]", "m8[s]", object])
def test_a_target_of_dates_is_refused(unit):
    """Each date was a class of its own, in silence."""
    y = np.arange(30).astype("M8[D]").astype(unit)
    with pytest.raises(ValueError, match=r"y holds .*Say what a number is to mean"):
        clone(EVERY["supervised"]).fit(X, y)
