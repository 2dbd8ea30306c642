"""Model files: what is saved comes back, what is damaged or hostile is refused."""

import io
import json
import os
import pickle
import stat
import threading
from typing import Any

import joblib
import numpy as np
import pytest
from safetensors.numpy import load_file
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

import mercer
from mercer import (
    ClassicalMDS,
    DiffusionMap,
    HebbianKernelPCA,
    Isomap,
    KernelCCA,
    KernelPCA,
    KernelPCASearch,
    NoveltyDetector,
    Nystroem,
    PatchDenoiser,
    ProcessMonitor,
    SpectralClustering,
    SpectralEmbedding,
    StreamingKernelPCA,
    SupervisedKernelPCA,
)
from mercer.bases import Landmarks, RandomFeatures
from mercer.hebbian import GAINS
from mercer.kernels import KERNELS, RBF, Kernel, Matern
from mercer.preimage import PREIMAGES
from mercer.saving import ModelFileError, load, read_header, save
from mercer.saving.parts import MODELS, PARTS, RECIPES
from mercer.selectors import SELECTORS, KMeans, Novelty, Uniform
from mercer.solvers import SOLVERS

RNG = np.random.default_rng(5)
X = RNG.random((120, 6))
NEW = RNG.random((15, 6))
# Rounding of sums whose order depends on threads and budget.
ROUNDING = {"rtol": 1e-12, "atol": 1e-12}


def assert_same(first, second):
    """Two results alike, sparse or dense, to the rounding of a sum."""
    assert type(first) is type(second)
    np.testing.assert_allclose(first, second, **ROUNDING)


def copy_of(model, path):
    model.save(path)
    return mercer.load(path)


# Every estimator that has a model file, in forms that take different ways, and what it does.
FITTED = {
    "exact": lambda: KernelPCA(4, kernel="rbf", gamma="median", random_state=0).fit(X),
    "exact float32": lambda: KernelPCA(4, kernel="rbf").fit(X.astype(np.float32)),
    "not centered": lambda: KernelPCA(4, kernel="poly", center=False).fit(X),
    "share of variance": lambda: KernelPCA(0.9, kernel="laplacian").fit(X),
    "all components": lambda: KernelPCA(None, kernel="linear").fit(X),
    "ridge": lambda: KernelPCA(4, kernel="rbf", fit_inverse_transform=True).fit(X),
    "distance": lambda: KernelPCA(3, kernel=Matern(0.5), preimage="distance").fit(X),
    "landmarks": lambda: KernelPCA(4, kernel="rbf", basis=Landmarks(30), random_state=0).fit(X),
    "k-means": lambda: KernelPCA(
        3, kernel=RBF(0.7), basis=Landmarks(20, KMeans()), random_state=1
    ).fit(X),
    "given landmarks": lambda: KernelPCA(3, kernel="rbf", basis=Landmarks(points=X[:9])).fit(X),
    "features": lambda: KernelPCA(3, kernel="rbf", basis=RandomFeatures(40), random_state=0).fit(X),
    "sketch": lambda: KernelPCA(3, kernel="poly", basis=RandomFeatures(40), random_state=0).fit(X),
    "hebbian": lambda: HebbianKernelPCA(3, kernel="rbf", n_passes=2, random_state=0).fit(X),
    "hebbian stream": lambda: HebbianKernelPCA(
        3, kernel="rbf", budget=40, novelty=Novelty(threshold=0.01)
    ).partial_fit(X),
    "stream": lambda: StreamingKernelPCA(3, kernel="rbf", budget=40).fit(X),
    "stream of features": lambda: StreamingKernelPCA(
        3, kernel="rbf", basis="features", budget=40, random_state=0
    ).fit(X),
    "supervised": lambda: SupervisedKernelPCA(1, kernel="rbf").fit(X, X[:, 0] > X[:, 1]),
    "supervised by landmarks": lambda: SupervisedKernelPCA(
        2, kernel="rbf", basis=Landmarks(30), target=Matern(0.5), random_state=0
    ).fit(X, X[:, :2]),
    "correlations": lambda: KernelCCA(2, kernel="rbf").fit(X, X[:, :2] ** 2),
    "novelty": lambda: NoveltyDetector(5, random_state=0).fit(X),
    "monitor": lambda: ProcessMonitor(lags=1, smoothing=0.5, false_alarms=0.2).fit(X),
    "nystroem": lambda: Nystroem(n_components=30, gamma=0.1, random_state=0).fit(X),
    "search": lambda: KernelPCASearch(
        widths=(1.0, 2.0), n_components=[2, 4], noise=0.8, random_state=0
    ).fit(X),
    "search with settings": lambda: KernelPCASearch(
        widths=np.array([1.0]),
        n_components=3,
        noise=0.8,
        model=KernelPCA(preimage="ridge"),
        random_state=0,
    ).fit(X),
    "embedding": lambda: SpectralEmbedding(2, gamma=2.0, random_state=0).fit(X),
    "diffusion": lambda: DiffusionMap(2, gamma=2.0, density_power=0.5, random_state=0).fit(X),
    "clusters": lambda: SpectralClustering(3, gamma=2.0, random_state=0).fit(X),
    "clusters by landmarks": lambda: SpectralClustering(
        3, gamma=2.0, basis=Landmarks(30), random_state=0
    ).fit(X),
    "clusters by neighbors": lambda: SpectralClustering(
        3, affinity="nearest_neighbors", assign_labels="discretize", random_state=0
    ).fit(X),
    "clusters by pivots": lambda: SpectralClustering(
        3, gamma=2.0, assign_labels="cluster_qr", random_state=0
    ).fit(X),
    "scaling": lambda: ClassicalMDS(2).fit(X),
    "scaling by landmarks": lambda: ClassicalMDS(2, landmarks=30, random_state=0).fit(X),
    "isomap": lambda: Isomap(2).fit(X),
    "scaling of a metric": lambda: ClassicalMDS(2, dissimilarity="seuclidean").fit(X),
    "lifted scaling": lambda: ClassicalMDS(
        2, dissimilarity="cityblock", correction="lingoes", random_state=0
    ).fit(X),
}
METHODS = ("transform", "reconstruction_error", "predict", "decision_function")


@pytest.fixture(scope="module")
def models():
    """Every fitted form, made once."""
    return {name: make() for name, make in FITTED.items()}


@pytest.mark.parametrize("form", FITTED)
def test_a_loaded_model_does_the_same(form, models, tmp_path):
    model = models[form]
    loaded = copy_of(model, tmp_path / "a.mercer")
    assert type(loaded) is type(model)
    assert repr(loaded) == repr(model)
    done = [name for name in METHODS if hasattr(model, name)]
    assert done
    for name in done:
        assert_same(getattr(loaded, name)(NEW), getattr(model, name)(NEW))
    if hasattr(model, "inverse_transform"):
        S = model.transform(NEW)
        assert_same(loaded.inverse_transform(S), model.inverse_transform(S))
        options = {} if form.startswith("search") else {"noise": np.inf}
        assert_same(loaded.denoise(NEW, **options), model.denoise(NEW, **options))


@pytest.mark.parametrize("form", FITTED)
def test_a_loaded_model_saves_the_same_bytes(form, models, tmp_path):
    """Nothing is lost or added, however often a model goes through a file."""
    first, second = tmp_path / "a.mercer", tmp_path / "b.mercer"
    copy_of(models[form], first).save(second)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("form", FITTED)
def test_a_loaded_model_can_be_cloned_and_fitted(form, models, tmp_path):
    loaded = copy_of(models[form], tmp_path / "a.mercer")
    again = clone(loaded)
    assert not hasattr(again, "n_features_in_")
    assert again.get_params(deep=True).keys() == models[form].get_params(deep=True).keys()
    again.fit(X, X[:, :2])


@pytest.mark.parametrize("form", FITTED)
@pytest.mark.parametrize("way", ["pickle", "joblib"])
def test_pickle_and_joblib_keep_working(form, way, models, tmp_path):
    model = models[form]
    if way == "pickle":
        again = pickle.loads(pickle.dumps(model))
    else:
        joblib.dump(model, tmp_path / "a.joblib")
        again = joblib.load(tmp_path / "a.joblib")
    name = next(name for name in METHODS if hasattr(model, name))
    assert_same(getattr(again, name)(NEW), getattr(model, name)(NEW))


@pytest.mark.parametrize("form", FITTED)
def test_pickles_carry_no_threads(form, models):
    """A model that was used holds controllers of thread pools; its pickle does not."""
    model = models[form]
    getattr(model, next(name for name in METHODS if hasattr(model, name)))(NEW)
    seen = []

    class Watcher(pickle.Pickler):
        def persistent_id(self, thing):
            module = type(thing).__module__
            if isinstance(thing, type(threading.Lock())) or module.startswith(
                ("threadpoolctl", "concurrent", "rich")
            ):
                seen.append(type(thing))

    Watcher(io.BytesIO()).dump(model)
    assert seen == []


def test_every_estimator_with_a_file_is_tested(models):
    tested = {type(model) for model in models.values()} | {PatchDenoiser}
    assert tested == {model.cls for model in MODELS.values()}


def test_attributes_come_back(models, tmp_path):
    for form in ("exact", "landmarks", "features", "hebbian", "stream"):
        model = models[form]
        loaded = copy_of(model, tmp_path / "a.mercer")
        public = {name for name in vars(model) if name.endswith("_")}
        assert public <= set(vars(loaded)), form
        for name in ("eigenvalues_", "eigenvectors_", "explained_variance_ratio_", "landmarks_"):
            if name in public:
                assert_same(getattr(loaded, name), getattr(model, name))
        assert repr(loaded.certificate_) == repr(model.certificate_)
        assert repr(getattr(loaded, "plan_", "")) == repr(getattr(model, "plan_", ""))
        assert loaded.gamma_ == model.gamma_


def test_the_points_are_stored_once(models, tmp_path):
    model, path = models["exact"], tmp_path / "a.mercer"
    loaded = copy_of(model, path)
    n_points = sum(shape == X.shape for _, shape in read_header(path).tensors.values())
    assert n_points == 1
    assert loaded.X_fit_ is loaded.expansion_.basis.points


@pytest.mark.parametrize("kernel", sorted(set(KERNELS) - {"precomputed"}))
def test_every_kernel(kernel, tmp_path):
    model = KernelPCA(3, kernel=kernel).fit(X)
    loaded = copy_of(model, tmp_path / "a.mercer")
    assert repr(loaded.kernel_) == repr(model.kernel_)
    assert_same(loaded.transform(NEW), model.transform(NEW))


RECIPE_PARAMS = [
    *({"kernel": "rbf", "basis": Landmarks(10, make())} for make in SELECTORS.values()),
    *({"kernel": "rbf", "eigen_solver": make()} for make in SOLVERS.values()),
    *({"kernel": "rbf", "preimage": make()} for make in PREIMAGES.values()),
]


@pytest.mark.parametrize("params", RECIPE_PARAMS, ids=repr)
def test_every_recipe_comes_back_as_a_parameter(params, tmp_path):
    fitted = KernelPCA(2, kernel="rbf").fit(X).set_params(**params)
    loaded = copy_of(fitted, tmp_path / "a.mercer")
    assert repr(loaded) == repr(fitted)
    for name in params:
        assert type(getattr(loaded, name)) is type(params[name])


@pytest.mark.parametrize("gain", GAINS)
def test_every_gain_comes_back_as_a_parameter(gain, tmp_path):
    model = HebbianKernelPCA(2, kernel="rbf", n_passes=1, gain=GAINS[gain]()).fit(X)
    loaded = copy_of(model, tmp_path / "a.mercer")
    assert type(loaded.gain) is GAINS[gain]
    assert loaded.gain.get_params() == model.gain.get_params()


def test_names_of_parts_are_unique():
    assert len({cls.__name__ for cls in RECIPES}) == len(set(RECIPES))
    assert not PARTS.keys() & MODELS.keys()


def test_sparse_rows(tmp_path):
    S = sparse.random(80, 12, 0.3, format="csr", rng=np.random.default_rng(0))
    for basis in ("points", Landmarks(20, Uniform())):
        model = KernelPCA(3, kernel="rbf", basis=basis, random_state=0).fit(S)
        loaded = copy_of(model, tmp_path / "a.mercer")
        assert sparse.issparse(loaded.expansion_.basis.points)
        assert_same(loaded.transform(S), model.transform(S))


def test_a_precomputed_kernel_is_saved_without_its_matrix(tmp_path):
    K, K_new, path = rbf_kernel(X), rbf_kernel(NEW, X), tmp_path / "a.mercer"
    model = KernelPCA(3, kernel="precomputed").fit(K)
    loaded = copy_of(model, path)
    assert_same(loaded.transform(K_new), model.transform(K_new))
    assert path.stat().st_size < K.nbytes / 2
    with pytest.raises(ValueError, match="does not hold the training kernel matrix"):
        loaded.expansion_.basis.gram(np.ones((120, 1)))


def test_precomputed_affinities_and_distances(tmp_path):
    K, K_new = rbf_kernel(X, gamma=2.0), rbf_kernel(NEW, X, gamma=2.0)
    model = SpectralClustering(3, affinity="precomputed", random_state=0).fit(K)
    assert_same(copy_of(model, tmp_path / "a.mercer").predict(K_new), model.predict(K_new))
    D = np.abs(X[:, None] - X).sum(axis=2)
    D_new = np.abs(NEW[:, None] - X).sum(axis=2)
    for correction in (None, "lingoes"):
        scaling = ClassicalMDS(2, dissimilarity="precomputed", correction=correction).fit(D)
        loaded = copy_of(scaling, tmp_path / "b.mercer")
        assert_same(loaded.transform(D_new), scaling.transform(D_new))


def test_patches(tmp_path):
    image = np.add.outer(np.linspace(0, 1, 32), np.sin(np.linspace(0, 9, 32)))
    noisy = image + 0.1 * RNG.standard_normal(image.shape)
    for kernel in ("linear", "rbf"):
        model = PatchDenoiser(5, kernel=kernel, noise=0.1, n_patches=200, random_state=0).fit(noisy)
        loaded = copy_of(model, tmp_path / "a.mercer")
        np.testing.assert_allclose(loaded.denoise(noisy), model.denoise(noisy), **ROUNDING)
    flat = PatchDenoiser(5, noise=0.1).fit(np.ones((20, 20)))
    assert copy_of(flat, tmp_path / "a.mercer").model_ is None


def test_names_of_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"größe {i} <b>" for i in range(6)])
    loaded = copy_of(KernelPCA(2).fit(frame), tmp_path / "a.mercer")
    assert list(loaded.feature_names_in_) == list(frame.columns)
    loaded.transform(frame)
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(frame.rename(columns=str.upper))


def test_torch_tensors(tmp_path):
    torch = pytest.importorskip("torch")
    model = KernelPCA(2, kernel="rbf").fit(torch.asarray(X))
    loaded = copy_of(model, tmp_path / "a.mercer")
    assert isinstance(loaded.eigenvalues_, np.ndarray)
    rows = torch.asarray(NEW)
    np.testing.assert_allclose(loaded.transform(rows), model.transform(rows), **ROUNDING)


@pytest.mark.parametrize("form", ["hebbian", "hebbian stream", "stream", "stream of features"])
def test_a_stream_goes_on_after_loading(form, models, tmp_path):
    model = pickle.loads(pickle.dumps(models[form]))
    loaded = copy_of(model, tmp_path / "a.mercer")
    more = RNG.random((60, 6))
    loaded.partial_fit(more)
    model.partial_fit(more)
    assert loaded.n_samples_seen_ == model.n_samples_seen_ == 180
    np.testing.assert_allclose(loaded.transform(NEW), model.transform(NEW), rtol=1e-8, atol=1e-9)


def test_no_components(tmp_path):
    with pytest.warns(UserWarning, match="no variance"):
        model = KernelPCA(None).fit(np.ones((5, 2)))
    assert copy_of(model, tmp_path / "a.mercer").transform(np.ones((3, 2))).shape == (3, 0)


def test_what_only_the_program_has_is_left_out(tmp_path):
    path = tmp_path / "a.mercer"
    model = KernelPCA(2, random_state=np.random.RandomState(0), callback=lambda state: False)
    loaded = copy_of(model.fit(X), path)
    assert loaded.random_state is None
    assert loaded.callback is None
    assert read_header(path).summary["not_kept"] == ["random_state", "callback"]


class OwnKernel(Kernel):
    """A kernel that is none of mercer's."""

    def pairs(self, X, Z=None, dtype=None, store=0):
        return RBF(1.0).pairs(X, Z, dtype, store)

    def diag(self, X):
        return np.ones(X.shape[0])


def test_code_cannot_be_saved(tmp_path):
    path = tmp_path / "a.mercer"
    for kernel in (lambda x, z: float(x @ z), KERNELS["rbf"](1.0).__call__):
        model = KernelPCA(2).fit(X).set_params(kernel=kernel)
        with pytest.raises(ModelFileError, match=r"kernel is a function.*joblib"):
            model.save(path)
    with pytest.raises(ModelFileError, match="none of mercer's own classes"):
        KernelPCA(2, kernel=OwnKernel()).fit(X).save(path)
    with pytest.raises(ModelFileError, match="is a function"):
        ClassicalMDS(2, dissimilarity=lambda a, b: np.abs(a[:, :1] - b[:, 0])).fit(X).save(path)
    with pytest.raises(ModelFileError, match="StandardScaler has no model file"):
        from sklearn.preprocessing import StandardScaler

        save(StandardScaler().fit(X), path)
    with pytest.raises(NotFittedError):
        KernelPCA(2).save(path)
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_a_safetensors_archive(models, tmp_path):
    path = tmp_path / "a.mercer"
    models["landmarks"].save(path)
    tensors = load_file(path)
    frames = [A for name, A in tensors.items() if name.endswith("frame")]
    assert_same(frames[0], models["landmarks"].expansion_.frame)


def test_read_header(models, tmp_path):
    path = tmp_path / "a.mercer"
    models["landmarks"].save(path)
    header = read_header(path)
    assert header.estimator == "KernelPCA"
    assert header.library_version == mercer.__version__
    assert header.params["n_components"] == 4
    assert header.summary["kernel"] == repr(models["landmarks"].kernel_)
    assert header.summary["basis"] == "30 landmarks"
    assert header.summary["components"] == 4
    assert header.summary["columns"] == 6
    assert header.size == path.stat().st_size
    json.dumps(header.summary)


def test_read_header_reads_no_tensors(models, tmp_path):
    """Without `verify` a damaged tensor goes unseen, with it it does not."""
    path = tmp_path / "a.mercer"
    models["landmarks"].save(path)
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    assert read_header(path, verify=False).estimator == "KernelPCA"
    with pytest.raises(ModelFileError, match="checksum"):
        read_header(path)


def test_writing_is_all_or_nothing(models, tmp_path, monkeypatch):
    path = tmp_path / "a.mercer"
    models["landmarks"].save(path)
    before = path.read_bytes()

    for error in (OSError(28, "No space left on device"), KeyboardInterrupt()):

        def fail(*args, error=error):
            raise error

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(type(error)):
            models["exact"].save(path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]


def test_overwriting(models, tmp_path):
    path = tmp_path / "a.mercer"
    models["landmarks"].save(path)
    models["exact"].save(path)
    with pytest.raises(FileExistsError, match="exists"):
        models["landmarks"].save(path, overwrite=False)
    assert "all 120 points" in read_header(path).summary["basis"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~current_umask()


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_missing_files_and_folders(models, tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.mercer")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        models["exact"].save(tmp_path / "none" / "a.mercer")


def test_a_device_that_is_not_here(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    path = tmp_path / "a.mercer"
    model = KernelPCA(2, kernel="rbf").fit(X)
    wanted = model.transform(NEW)
    model.set_params(device="cuda").save(path)
    with pytest.raises(ModelFileError, match=r"device='cuda'.*load\(path, device='cpu'\)"):
        load(path)
    loaded = load(path, device="cpu")
    assert loaded.device == "cpu"
    assert_same(loaded.transform(NEW), wanted)


def test_a_loaded_graph_places_rows_along_negative_eigenvalues(tmp_path):
    """Two sides of a bipartite graph are told apart by the last eigenvalue, which is negative."""
    X = np.arange(24.0)[:, None] * np.array([1.0, 0.5])
    model = SpectralEmbedding(23, n_neighbors=2, random_state=0).fit(X)
    assert model.eigenvalues_.min() < 0
    np.testing.assert_allclose(
        copy_of(model, tmp_path / "a").transform(X), model.transform(X), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("entry", [-1e308, 1e200, -1e120])
@pytest.mark.parametrize("column", [0, 1, -1])
def test_frames_that_learning_cannot_go_on_from_are_refused(tmp_path, streamed, entry, column):
    """Refused when they are read, and not by `partial_fit`."""
    X = np.random.default_rng(0).standard_normal((60, 3))
    model = mercer.HebbianKernelPCA(2, kernel="rbf", gamma=0.3, random_state=0)
    model = model.partial_fit(X) if streamed else model.fit(X)
    model.save(tmp_path / "right.mercer")
    mercer.load(tmp_path / "right.mercer").partial_fit(X)
    frame = model._stream.frame if streamed else model.expansion_.frame
    frame[3, column] = entry
    model.save(tmp_path / "forged.mercer")
    with pytest.raises(ModelFileError):
        mercer.load(tmp_path / "forged.mercer")


@pytest.mark.parametrize("name", ["_stream", "_variance"])
def test_models_that_learning_cannot_go_on_from_are_refused(name, tmp_path):
    """They used to load, and `partial_fit` raised AttributeError."""
    model = HebbianKernelPCA(2, random_state=0).fit(X)
    del vars(model)[name]
    model.save(tmp_path / "forged.mercer")
    with pytest.raises(ModelFileError):
        load(tmp_path / "forged.mercer")


def test_every_field_has_a_kind():
    """A field that may be anything is found wrong when it is used, and not when it is read."""
    free = {
        f"{name}.{field}"
        for name, part in {**PARTS, **MODELS}.items()
        for field, kind in (part.kinds or {}).items()
        if kind is Any
    }
    assert free == {"Plan.basis"}  # which no file holds


@pytest.mark.parametrize("factor", [1e-120, 1e60, 1e150])
def test_streams_of_any_size_come_back(factor, tmp_path):
    """Their squares are out of range: files of such streams were taken for forged ones."""
    stream = StreamingKernelPCA(2, kernel="linear", budget=5).fit(factor * X)
    again = copy_of(stream, tmp_path / "a.mercer")
    assert_same(
        again.partial_fit(factor * NEW).eigenvalues_ / factor**2,
        stream.partial_fit(factor * NEW).eigenvalues_ / factor**2,
    )


def test_directions_that_no_memory_holds():
    with pytest.raises(ValueError, match="cannot hold the kernel between"):
        HebbianKernelPCA(2, oversampling=2**62).partial_fit(X)


def test_components_that_no_budget_holds_are_refused(tmp_path):
    """As `fit` refuses them: `merge` of such a file asked NumPy for an array of any size."""
    model = StreamingKernelPCA(2, basis="features", budget=12, gamma=0.5, random_state=0).fit(X)
    model.n_components = 2**62
    model.save(tmp_path / "forged.mercer")
    with pytest.raises(ModelFileError, match="budget=12 cannot give"):
        load(tmp_path / "forged.mercer")
