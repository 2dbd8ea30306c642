"""Damaged, foreign and hostile model files are refused, and nothing in them is executed."""

import json
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from contracts import SEED
from damage import VALUES, header_of, places, replaced, tensors_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from sklearn.base import clone

import mercer
from mercer import KernelPCA, PatchDenoiser
from mercer.bases import Landmarks
from mercer.kernels import RBF
from mercer.saving import ModelFileError, load, read_header
from mercer.saving.archive import write_archive

X = np.random.default_rng(5).random((60, 6))
NEW = np.random.default_rng(6).random((15, 6))


@pytest.fixture(scope="module")
def model():
    return KernelPCA(3, kernel="rbf", basis=Landmarks(points=X[:9])).fit(X)


@pytest.fixture(scope="module")
def intact(model, tmp_path_factory):
    """The bytes of a small model file, and a place to damage them in."""
    path = tmp_path_factory.mktemp("damage") / "a.mercer"
    model.save(path)
    return path.read_bytes(), path.with_name("b.mercer")


PROPERTY = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@PROPERTY
@given(data=st.data())
def test_no_byte_can_change_unseen(intact, data):
    content, path = intact
    position = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda b: b != content[position]))
    path.write_bytes(content[:position] + bytes([byte]) + content[position + 1 :])
    with pytest.raises(ModelFileError):
        load(path)


def test_no_byte_of_the_header_can_change_unseen(intact):
    """Positions all over the part that is not numbers, with the flips most likely to pass."""
    content, path = intact
    end = 8 + int.from_bytes(content[:8], "little")
    for position in range(0, end, 19):
        for flip in (1, 32):
            damaged = bytearray(content)
            damaged[position] ^= flip
            path.write_bytes(damaged)
            with pytest.raises(ModelFileError):
                load(path)


@PROPERTY
@given(data=st.data())
def test_truncated_and_lengthened_files(intact, data):
    content, path = intact
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(ModelFileError):
        load(path)
    path.write_bytes(content + data.draw(st.binary(min_size=1, max_size=20)))
    with pytest.raises(ModelFileError):
        load(path)


@PROPERTY
@given(content=st.binary(max_size=300))
def test_random_bytes(intact, content):
    intact[1].write_bytes(content)
    with pytest.raises(ModelFileError):
        load(intact[1])


def test_foreign_files(intact, tmp_path):
    path = tmp_path / "a.mercer"
    png = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(200)
    for content in (b"just some text\n" * 9, png, pickle.dumps({"a": X}), b"{}", b"PK\x03\x04" * 5):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="not a mercer model file"):
            load(path)
    path.write_bytes(b"")
    with pytest.raises(ModelFileError, match="empty"):
        load(path)
    save_file({"a": X}, path, metadata={"format": "np"})
    with pytest.raises(ModelFileError, match="safetensors file, but not one of mercer"):
        load(path)
    save_file({"a": X}, path, metadata={"mercer": "[" * 100_000})
    with pytest.raises(ModelFileError):
        load(path)
    path.write_bytes(intact[0][:-5])
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


def test_a_newer_format_is_refused(intact):
    content, path = intact
    header = header_of(content) | {"format_version": 99, "library_version": "9.9"}
    write_archive(path, header, {})
    for read in (load, read_header):
        with pytest.raises(ModelFileError, match=r"version 99.*mercer 9.9.*Upgrade"):
            read(path)


def hostile(header):
    """Headers with a right checksum that must be refused, by what is wrong with them."""
    model = header["model"]
    state = model["state"]["items"]
    expansion = state["expansion_"]

    def with_state(**changes):
        items = state | changes
        return header | {"model": model | {"state": {"@": "dict", "items": items}}}

    def with_params(**changes):
        items = model["params"]["items"] | changes
        return header | {"model": model | {"params": {"@": "dict", "items": items}}}

    def with_expansion(**changes):
        return with_state(expansion_=expansion | changes)

    def with_points(points):
        return with_expansion(basis=expansion["basis"] | {"points": points})

    def tensor(name):
        return {"@": "array", "tensor": name}

    frame, points, certificate = (
        expansion["frame"],
        expansion["basis"]["points"],
        state["certificate_"],
    )
    deep = "x"
    for _ in range(100):
        deep = {"@": "tuple", "items": [deep]}
    sparse_points = {"@": "csr", "tensor": "csr", "columns": 10**12}
    nan, texts = {"@": "float", "value": "nan"}, {"@": "tuple", "items": ["a", "b"]}
    code = {"@": "Callable", "function": "print", "params": None}
    few = {"model": model | {"state": {"@": "dict", "items": {"n_features_in_": 6}}}}
    yield "unknown estimator", header | {"estimator": "Pipeline"}
    yield "another estimator", header | {"estimator": "NoveltyDetector"}
    yield "no estimator", {k: v for k, v in header.items() if k != "estimator"}
    yield "a list for a model", header | {"model": [1, 2]}
    yield "no summary", header | {"summary": 3}
    yield "an importable name", with_params(kernel={"@": "os.system", "command": "true"})
    yield "a class of scikit-learn", with_params(kernel={"@": "StandardScaler"})
    yield "an unhashable name", with_params(kernel={"@": ["RBF"]})
    yield "a bad parameter", with_params(n_components=-3)
    yield "a parameter of the wrong type", with_params(degree="three")
    yield "an unknown parameter", with_params(evil=1)
    yield "deeply nested", with_params(kernel_params=deep)
    yield "memory that is none", with_params(memory="lots")
    yield "a kernel of code", with_state(kernel_=code)
    yield "a kernel with a word", with_state(kernel_={"@": "RBF", "gamma": "median"})
    yield "a kernel with NaN", with_state(kernel_={"@": "RBF", "gamma": nan})
    yield "an unknown attribute", with_state(__class__="x")
    yield "a missing attribute", header | few
    yield "not fitted", header | {"model": model | {"state": {"@": "dict", "items": {}}}}
    yield "a text for an expansion", with_state(expansion_="x")
    yield "a bool for a number", with_state(n_features_in_=True)
    yield "other columns", with_state(n_features_in_=7)
    yield "eigenvalues of another number", with_state(eigenvalues_=frame)
    yield "a type that is none", with_state(_dtype={"@": "dtype", "name": "object"})
    yield "a certificate of texts", with_state(certificate_=certificate | {"kind": 3})
    yield "eigenvalues that are too many", with_state(eigenvalues_=tensor("csr.data"))
    yield (
        "shares that are texts",
        with_state(certificate_=certificate | {"captured_variance": texts}),
    )
    yield "a long certificate", with_state(certificate_=certificate | {"eigenvalue_lower": frame})
    yield "a missing tensor", with_expansion(frame=tensor("none"))
    yield "an unhashable tensor", with_expansion(frame=tensor({}))
    yield "a frame of another shape", with_expansion(frame=points)
    yield "a metric of another shape", with_expansion(metric=frame)
    yield "an expansion for a basis", with_expansion(basis=expansion)
    yield "whole numbers for a frame", with_expansion(frame=tensor("ints"))
    yield "a frame with NaN", with_expansion(frame=tensor("nans"))
    yield "an immense basis", with_expansion(basis={"@": "PrecomputedBasis", "size": 10**15})
    yield "a basis of no size", with_expansion(basis={"@": "PrecomputedBasis", "size": "9"})
    yield "sparse points out of range", with_points(sparse_points | {"columns": 6})
    yield "immense sparse points", with_points(sparse_points)
    yield "tensors without a use", header


def test_hostile_headers(intact, model, tmp_path):
    content, path = intact
    path = tmp_path / "a.mercer"
    tensors = tensors_of(model)
    shape = model.expansion_.frame.shape
    extra = {
        "ints": np.ones(shape, int),
        "nans": np.full(shape, np.nan),
        "csr.data": np.ones(9),
        "csr.indices": np.full(9, 10**6, np.int32),
        "csr.indptr": np.arange(10, dtype=np.int32),
    }
    count = 0
    for what, header in hostile(header_of(content)):
        write_archive(path, header, tensors | extra)
        with pytest.raises(ModelFileError) as refusal:
            load(path)
            pytest.fail(f"{what} was accepted")
        # The tensors added above are refused as well, but only after all else was accepted.
        accepted = "without a use" in str(refusal.value)
        assert accepted == (what == "tensors without a use"), what
        count += 1
    assert count > 30


def test_the_unchanged_header_is_accepted(intact, model, tmp_path):
    """So that the refusals above have the reason they claim."""
    tensors = tensors_of(model)
    write_archive(tmp_path / "a.mercer", header_of(intact[0]), tensors)
    loaded = load(tmp_path / "a.mercer")
    np.testing.assert_allclose(loaded.transform(NEW), model.transform(NEW), rtol=1e-12)


def test_files_of_an_earlier_version(intact, model, tmp_path):
    """Parameters and fields that had not been thought of yet get their defaults."""
    header = header_of(intact[0])
    content = header["model"]
    params = {k: v for k, v in content["params"]["items"].items() if k not in ("device", "memory")}
    state = content["state"]["items"]
    certificate = {k: v for k, v in state["certificate_"].items() if k != "indefinite"}
    changed = content | {
        "params": {"@": "dict", "items": params},
        "state": {"@": "dict", "items": state | {"certificate_": certificate}},
    }
    tensors = tensors_of(model)
    write_archive(tmp_path / "a.mercer", header | {"model": changed}, tensors)
    loaded = load(tmp_path / "a.mercer")
    assert loaded.certificate_.indefinite is False
    np.testing.assert_allclose(loaded.transform(NEW), model.transform(NEW), rtol=1e-12)


OTHER = [*VALUES, {"@": "array", "tensor": "KernelPCA.state.X_sample_"}]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers may be nonsense
@settings(PROPERTY, max_examples=60)
@given(data=st.data())
def test_any_other_value_in_the_header(intact, model, data):
    """With a right checksum: the model opens and works, or the file is refused."""
    content, path = intact
    tensors = tensors_of(model)
    header = header_of(content)
    # Budgets that are too small for any work are allowed, and say so when there is some.
    ways = [way for way in places(header["model"]) if not {"n_jobs", "memory"} & set(way)]
    way = data.draw(st.sampled_from(ways))
    changed = replaced(header["model"], way, data.draw(st.sampled_from(OTHER)))
    write_archive(path, header | {"model": changed}, tensors)
    try:
        loaded = load(path)
    except ModelFileError:
        return
    # Other settings than those of the fit are as after set_params: some need another fit.
    loaded.set_params(fit_inverse_transform=False, preimage="auto")
    assert loaded.transform(NEW).shape == (15, 3)
    assert loaded.inverse_transform(loaded.transform(NEW)).shape == NEW.shape
    repr(loaded), repr(loaded.certificate_), repr(loaded.plan_)


@pytest.mark.parametrize("stride", [8, 2**31, 2**60])
def test_parameters_that_a_fit_refuses_together(stride, tmp_path):
    path = tmp_path / "a.mercer"
    model = PatchDenoiser(patch_size=7, stride=3).fit(np.random.default_rng(0).random((20, 20)))
    model.save(path)
    header = json.dumps(header_of(path.read_bytes()))
    forged = json.loads(header.replace('"stride": 3', f'"stride": {stride}'))
    assert forged != json.loads(header)
    write_archive(tmp_path / "b.mercer", forged, load_file(path))
    with pytest.raises(ModelFileError, match="would leave pixels between patches"):
        load(tmp_path / "b.mercer")


IMAGE = np.random.default_rng(7).random((14, 14))
MODELS = {
    "points": KernelPCA(2, kernel="rbf"),
    "landmarks": KernelPCA(2, kernel="rbf", basis=Landmarks(9)),
    "hebbian": mercer.HebbianKernelPCA(2),
    "stream": mercer.StreamingKernelPCA(2),
    "scaling": mercer.ClassicalMDS(2),
    "isomap": mercer.Isomap(2),
    "clusters": mercer.SpectralClustering(2),
    "embedding": mercer.SpectralEmbedding(2),
    "diffusion": mercer.DiffusionMap(2),
    "novelty": mercer.NoveltyDetector(2),
    "search": mercer.KernelPCASearch(n_components=[1, 2], widths=[1.0]),
    "patches": PatchDenoiser(patch_size=3, n_components=2),
    "supervised": mercer.SupervisedKernelPCA(1, kernel="rbf"),
    "correlation": mercer.KernelCCA(1, kernel="rbf"),
}
# What a file may hold in the place of a parameter, and the same in Python.
HOSTILE = [
    *((value, value) for value in (True, -1, 0, 0.0, 1.0, -0.5, -7, "x", "", "cuda:x", None)),
    ({"@": "float", "value": "nan"}, np.nan),
    ({"@": "float", "value": "inf"}, np.inf),
    *((value, value) for value in ([], [2.5], ["a"], [-1], [[1]], "1e400MB")),
    ({"@": "tuple", "items": []}, ()),
    ({"@": "dict", "items": {}}, {}),
    ({"@": "dict", "items": {"a": 1}}, {"a": 1}),
    ({"@": "dtype", "name": "float64"}, np.dtype(float)),
    ({"@": "RBF", "gamma": -1.0}, RBF(-1.0)),
    ({"@": "Landmarks", "size": -5}, Landmarks(-5)),
]
# Of a fit to the rows, not of the parameter: settings as after `set_params`.
OF_ROWS = r"n_samples|would|budget=|affinity with|allows|features|euclidean|metric|has \d+ columns"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_what_a_fit_refuses_load_refuses(name, tmp_path):
    """Any parameter with any hostile value, in a file with a right checksum."""

    def fit(model):
        if isinstance(model, PatchDenoiser):
            return model.fit(IMAGE)
        second = {"correlation": (X[:, :2],), "supervised": (np.arange(len(X)) % 2,)}
        return model.fit(X, *second.get(name, ()))

    fit(clone(MODELS[name])).save(tmp_path / "a")
    header, tensors = header_of((tmp_path / "a").read_bytes()), load_file(tmp_path / "a")
    params, refused = header["model"]["params"]["items"], 0
    rng = np.random.default_rng([SEED, len(name)])
    for parameter in params:
        for place in rng.choice(len(HOSTILE), 8, replace=False):
            stored, value = HOSTILE[place]
            items = {"@": "dict", "items": params | {parameter: stored}}
            forged = header | {"model": header["model"] | {"params": items}}
            write_archive(tmp_path / "b", forged, tensors)
            try:
                load(tmp_path / "b")
            except ModelFileError:
                refused += 1
                continue
            # None is "auto" in files of earlier versions.
            if parameter in ("verbose", "memory") or (parameter, value) == ("eigen_solver", None):
                continue
            try:
                fit(clone(MODELS[name]).set_params(**{parameter: value}))
            except Exception as error:
                assert re.search(OF_ROWS, str(error)), f"{parameter}={value!r}: {error}"
    assert refused > len(params)


def test_no_device_of_a_file_imports_torch(intact, model, tmp_path):
    header, paths = header_of(intact[0]), []
    for device in ["x", "", "meta", "os.system", "cuda:x", "cpu:" + "9" * 40, 5, True, ["cuda"]]:
        params = header["model"]["params"]["items"] | {"device": device}
        forged = header["model"] | {"params": {"@": "dict", "items": params}}
        paths.append(str(tmp_path / str(len(paths))))
        write_archive(paths[-1], header | {"model": forged}, tensors_of(model))
    code = "import sys, mercer\nfor path in sys.argv[1:]:\n try: mercer.load(path)\n"
    code += " except mercer.exceptions.ModelFileError: print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True)
    assert run.stdout.split() == ["False"] * len(paths), run.stderr
