"""Every estimator with rows on a torch device: all that it offers is what NumPy's rows give.

The device is a GPU where there is one, else the CPU, whose tensors pass for those of a GPU.
"""

import inspect
import pickle
import sys
import warnings
from dataclasses import fields, is_dataclass
from importlib.util import find_spec

import numpy as np
import pytest
from contracts import generator
from sklearn.base import clone

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
    load,
)
from mercer.bases import Landmarks, RandomFeatures
from mercer.estimators._model import KernelModel
from mercer.exceptions import MercerWarning
from mercer.report import write_report
from mercer.saving.parts import MODELS

torch = pytest.importorskip("torch")

GPU = torch.cuda.is_available()
WHERE = torch.device("cuda:0" if GPU else "cpu")
needs_cuda = pytest.mark.skipif(not GPU, reason="there is no CUDA device")
RBF = {"kernel": "rbf", "gamma": 0.1, "random_state": 0}
ROWS = 150
FIXED = {"gamma": 0.1, "random_state": 0}

ESTIMATORS = {
    "points": KernelPCA(3, **RBF),
    "linear": KernelPCA(3, kernel="linear"),
    "poly": KernelPCA(3, kernel="poly", gamma=0.1, random_state=0),
    "landmarks": KernelPCA(3, basis=Landmarks(40), **RBF),
    "features": KernelPCA(3, basis=RandomFeatures(60), **RBF),
    "ridge": KernelPCA(3, preimage="ridge", **RBF),
    "learned inverse": KernelPCA(3, fit_inverse_transform=True, **RBF),
    "precomputed": KernelPCA(3, kernel="precomputed"),
    "supervised": SupervisedKernelPCA(2, **RBF),
    "supervised and not": SupervisedKernelPCA(2, unsupervised=0.3, **RBF),
    "supervised landmarks": SupervisedKernelPCA(2, basis=Landmarks(40), **RBF),
    "correlations": KernelCCA(2, basis=Landmarks(30), **RBF),
    "passes": HebbianKernelPCA(2, n_passes=3, **RBF),
    "stream": StreamingKernelPCA(3, basis=Landmarks(40), **RBF),
    "growing stream": StreamingKernelPCA(3, budget=60, **RBF),
    "novelty": NoveltyDetector(3, **FIXED),
    "novelty landmarks": NoveltyDetector(3, basis=Landmarks(40), **FIXED),
    "novelty outliers": NoveltyDetector(3, outliers=0.1, **FIXED),
    "monitor": ProcessMonitor(3, **FIXED),
    "search": KernelPCASearch(widths=(1.0, 2.0), n_components=[2], noise=0.5, random_state=0),
    "nystroem": Nystroem(n_components=30, gamma=0.1, random_state=0),
    "patches": PatchDenoiser(n_components=4, kernel="rbf", patch_size=4, random_state=0),
    "linear patches": PatchDenoiser(n_components=4, kernel="linear", patch_size=4, random_state=0),
    "clusters": SpectralClustering(3, **FIXED),
    "cluster landmarks": SpectralClustering(3, basis=Landmarks(60), **FIXED),
    "neighbor clusters": SpectralClustering(
        3, affinity="nearest_neighbors", n_neighbors=25, random_state=0
    ),
    "embedding": SpectralEmbedding(2, n_neighbors=12, random_state=0),
    "kernel embedding": SpectralEmbedding(2, affinity="rbf", **FIXED),
    "diffusion": DiffusionMap(2, **FIXED),
    "diffusion landmarks": DiffusionMap(2, basis=Landmarks(60), **FIXED),
    "scaling": ClassicalMDS(2),
    "isomap": Isomap(2, n_neighbors=60),
    "metric scaling": ClassicalMDS(2, metric="cityblock", random_state=0),
}
# What each offers, as functions of the model, rows and targets; `S` are its scores.


def known_noise(model):
    """An option of `KernelPCA.denoise`, which else says that rows without noise have none."""
    return {"noise": 0.3} if "noise" in inspect.signature(model.denoise).parameters else {}


OFFERS = {
    "transform": lambda model, X, S: S,
    "inverse_transform": lambda model, X, S: model.inverse_transform(S),
    "denoise": lambda model, X, S: model.denoise(X, **known_noise(model)),
    "reconstruction_error": lambda model, X, S: model.reconstruction_error(X),
    "score": lambda model, X, S: model.score(X),
    "unit_features": lambda model, X, S: model.unit_features(X),
    "score_samples": lambda model, X, S: model.score_samples(X),
    "decision_function": lambda model, X, S: model.decision_function(X),
    "predict": lambda model, X, S: model.predict(X),
    "attribute": lambda model, X, S: model.attribute(X),
    "significance": lambda model, X, S: model.significance(
        X, n_permutations=19, n_bootstrap=5, random_state=0
    ),
    "affinity_matrix_": lambda model, X, S: model.affinity_matrix_,
    "summary": lambda model, X, S: model.summary(),
    "get_feature_names_out": lambda model, X, S: model.get_feature_names_out(),
}
KEPT = ("eigenvalues_", "explained_variance_ratio_", "correlations_", "offset_", "embedding_")
# Numbers that are those of the rows passed, where these are.
OF_ROWS = {"transform", "inverse_transform", "denoise", "reconstruction_error", "unit_features"}
OF_ROWS |= {"score_samples", "decision_function", "predict"}


def groups(n, key):
    """Three groups of rows in six columns."""
    rng = generator(n, key)
    return 0.6 * rng.standard_normal((n, 6)) + 3 * np.eye(6)[np.arange(n) % 3]


def data_for(name):
    """Rows to fit, new rows, and targets."""
    if "patches" in name:
        image = np.add.outer(np.sin(np.arange(26) / 5), np.arange(24) / 20)
        return image + 0.1 * generator(26).standard_normal(image.shape), image, None
    X, new = groups(ROWS, 1), groups(31, 2)
    if name == "precomputed":
        return X @ X.T, new @ X.T, None
    return X, new, {"c": X[:, :3] ** 2, "s": np.arange(ROWS) % 3}.get(name[0])


def numbers(value) -> list[np.ndarray]:
    """The numbers in a result, up to signs."""
    if is_dataclass(value):
        return [part for field in fields(value) for part in numbers(getattr(value, field.name))]
    if isinstance(value, tuple | list):
        return [part for item in value for part in numbers(item)]
    value = value.cpu().numpy() if torch.is_tensor(value) else value
    value = value.toarray() if hasattr(value, "toarray") else value
    array = np.asarray(value)
    return [np.abs(array.astype(float))] if array.dtype.kind in "biuf" else []


def agree(found, expected, what):
    found, expected = numbers(found), numbers(expected)
    assert len(found) == len(expected), what
    for a, b in zip(found, expected, strict=True):
        scale = np.abs(b[np.isfinite(b)]).max(initial=1e-9)
        np.testing.assert_allclose(a, b, atol=2e-5 * scale, err_msg=what)


def refusal(call):
    """The result of a call, or the sentence that it is refused with."""
    try:
        return call()
    except (ValueError, AttributeError) as error:
        return str(error)


def offered(model, X):
    """All results of a model for rows, by method; sentences where the model has none."""
    S = model.transform(X) if hasattr(model, "transform") else None
    names = [name for name in OFFERS if hasattr(type(model), name)]
    both = isinstance(model, KernelCCA)
    return {
        name: refusal(lambda name=name: OFFERS[name](model, X, S))
        for name in names
        if not (both and name == "score")
    }


def fitted(model, X, y):
    return model.fit(X) if y is None else model.fit(X, y)


def quietly(call):
    """What stays in main memory says so, which has a test of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return call()


@pytest.fixture
def like_a_gpu(monkeypatch):
    """Where there is none, tensors of main memory pass for those of a device.

    They are on one for whoever asks, and NumPy does not get their numbers by itself.
    """
    if GPU:
        return

    def refuse(self, *given, **more):
        raise TypeError("NumPy was given a tensor")

    monkeypatch.setattr(torch.Tensor, "__array__", refuse)
    monkeypatch.setattr("mercer.compute.device.check_device", lambda device: WHERE)
    for name, module in list(sys.modules.items()):
        if name.startswith("mercer") and "is_on_device" in vars(module):
            monkeypatch.setattr(module, "is_on_device", torch.is_tensor)


def test_every_estimator_is_here():
    assert {type(model).__name__ for model in ESTIMATORS.values()} == set(MODELS)


@pytest.mark.parametrize("how", ["tensors", "device"])
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.usefixtures("like_a_gpu")
def test_all_that_an_estimator_offers(name, how, tmp_path):
    X, new, y = data_for(name)
    host = quietly(lambda: fitted(clone(ESTIMATORS[name]), X, y))
    there = clone(ESTIMATORS[name])
    if how == "device":
        if "device" not in there.get_params():
            pytest.skip("it has no such parameter")
        there.set_params(device=WHERE)
        rows, given = X, new
    else:
        rows, given = (torch.as_tensor(A, device=WHERE) for A in (X, new))
    quietly(lambda: fitted(there, rows, y))
    for attribute in KEPT:
        if hasattr(host, attribute):
            agree(getattr(there, attribute), getattr(host, attribute), attribute)
    expected, found = (
        quietly(lambda m=m, A=A: offered(m, A)) for m, A in ((host, new), (there, given))
    )
    assert found.keys() == expected.keys()
    for method, result in found.items():
        agree(result, expected[method], method)
        assert isinstance(result, str) == isinstance(expected[method], str), result
        # The others compute in main memory, and give NumPy arrays.
        on_device = "device" in there.get_params() and method in OF_ROWS
        if on_device and not isinstance(result, str | tuple):
            assert type(result) is type(given), method
            assert how == "device" or result.device.type == WHERE.type, method
    repr(there), there._repr_html_()
    check_files(there, new, expected, tmp_path)
    if name in ("points", "landmarks", "stream", "diffusion"):
        check_pictures(there, given, tmp_path)
    check_more_rows(there, host, given, new)


def check_files(model, new, expected, folder):
    """A model is saved and pickled, and loaded without the device."""
    model.save(folder / "a.mercer")
    for again in (load(folder / "a.mercer", device="cpu"), pickle.loads(pickle.dumps(model))):
        for method, result in quietly(lambda again=again: offered(again, new)).items():
            if method in OF_ROWS and not isinstance(expected[method], str):
                agree(result, expected[method], method)


def check_pictures(model, rows, folder):
    """Whatever shows or exports a model takes it, and its results, from where they are."""
    plot = pytest.importorskip("mercer.plot", reason="the rest passed")
    if isinstance(model, KernelModel):
        write_report(model, rows, folder / "a.html")
        if not model.expansion_.basis.spans_data and find_spec("onnx"):
            model.to_onnx(folder / "a.onnx")
        plot.spectrum(model)
        plot.scores(model.transform(rows))
        plot.preimages(model)
        plot.denoised(rows[:9], model.denoise(rows, noise=0.3)[:9])
        plot.attribution(model.attribute(rows))
        if hasattr(model, "landmarks_"):
            plot.landmarks(model, rows)
    elif isinstance(model, SpectralEmbedding):
        plot.embedding(model, new=rows)
    pytest.importorskip("matplotlib.pyplot").close("all")


def check_more_rows(there, host, given, new):
    """Models that learn on, and those that merge, do so alike."""
    if hasattr(there, "partial_fit"):
        quietly(lambda: (there.partial_fit(given), host.partial_fit(new)))
        agree(there.transform(given), host.transform(new), "partial_fit")
    if hasattr(there, "merge"):
        other = pickle.dumps(host)
        quietly(lambda: (there.merge(pickle.loads(other)), host.merge(pickle.loads(other))))
        agree(there.eigenvalues_, host.eigenvalues_, "merge")


@pytest.mark.usefixtures("like_a_gpu")
def test_two_views_on_a_device():
    X, new, y = data_for("correlations")
    X, new, y = (torch.as_tensor(A, device=WHERE) for A in (X, new, y))
    model = quietly(lambda: clone(ESTIMATORS["correlations"]).fit(X, y))
    host = quietly(lambda: clone(ESTIMATORS["correlations"]).fit(*(numpy_of(A) for A in (X, y))))
    agree(model.correlations(X, y), host.correlations(numpy_of(X), numpy_of(y)), "correlations")
    agree(model.score(X, y), host.score(numpy_of(X), numpy_of(y)), "score")
    agree(model.transform(X, y), host.transform(numpy_of(X), numpy_of(y)), "both views")


def numpy_of(A):
    return A.cpu().numpy()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian", "matern", "cosine"])
def test_rows_far_from_the_origin(kernel, dtype):
    """Single precision holds them, and half precision does not: nothing is made of them in it."""
    rng = generator(3)
    offset, scale = 10 ** rng.uniform(5, 7), 10 ** rng.uniform(2, 3.5)
    n = 5000 if GPU else 1500
    X = (offset + scale * rng.standard_normal((n, 7)) * np.linspace(1, 2, 7)).astype(dtype)
    options = {"kernel": kernel, "basis": "points", "eigen_solver": "krylov", "random_state": 0}
    host = KernelPCA(2, **options).fit(X)
    there = KernelPCA(2, device=WHERE, **options).fit(X)
    close = 1e-7 if dtype == np.float64 else 2e-3
    np.testing.assert_allclose(there.eigenvalues_, host.eigenvalues_, rtol=close)


@needs_cuda
def test_one_pass_keeps_no_tiles():
    """All tiles of 30,000 rows would be 3.6 GB."""
    X = torch.as_tensor(groups(30_000, 5), device=WHERE)
    torch.cuda.reset_peak_memory_stats()
    SupervisedKernelPCA(2, **RBF).fit(X, np.arange(30_000) % 3)
    assert torch.cuda.max_memory_allocated() < 1e9


@needs_cuda
def test_the_ridge_of_many_rows_is_solved_on_the_device():
    import time

    X = torch.as_tensor(groups(6000, 6), device=WHERE)
    model = KernelPCA(3, preimage="ridge", **RBF).fit(X)
    S, start = model.transform(X[:2000]), time.perf_counter()
    model.inverse_transform(S)
    assert time.perf_counter() - start < 2  # 3 s in main memory on 16 cores, 9 s on two


@pytest.mark.usefixtures("like_a_gpu")
@pytest.mark.parametrize("name", ["embedding", "neighbor clusters", "correlations", "stream"])
def test_nothing_says_that_rows_leave_the_device(name):
    X, _, y = data_for(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)  # of what the data are
        warnings.filterwarnings("error", "(?s).*main memory", MercerWarning)
        fitted(clone(ESTIMATORS[name]), torch.as_tensor(X, device=WHERE), y)
