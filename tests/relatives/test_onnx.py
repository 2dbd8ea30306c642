"""ONNX export: onnxruntime computes the scores that transform does."""

import numpy as np
import pytest
from scipy import sparse

from mercer import HebbianKernelPCA, KernelPCA, NoveltyDetector, StreamingKernelPCA
from mercer.bases import Landmarks, RandomFeatures
from mercer.kernels import (
    RBF,
    Chi2,
    Cosine,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)
from mercer.relatives.onnx import KERNEL_ROWS
from mercer.saving import ModelFileError, export_onnx
from mercer.selectors import Uniform

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(3)
X = RNG.random((200, 6))
NEW = RNG.random((25, 6))
# A zero row, and a landmark: the corners of cosines and of square roots.
NEW[3], NEW[4] = 0, X[7]

KERNELS = [
    Linear(),
    Polynomial(),
    Polynomial(degree=2.5, gamma=0.3, coef0=2.0),
    Sigmoid(),
    Cosine(),
    RBF("median"),
    Matern(1.0, nu=0.5),
    Matern(1.0, nu=1.5),
    Matern(1.0, nu=2.5),
    RationalQuadratic(1.0, alpha=0.7),
    Laplacian("median"),
    Chi2(),
]
FEATURES = [
    (RBF("median"), 60),
    (Laplacian(1.0), 60),
    (Matern(1.0, nu=2.5), 60),
    (RationalQuadratic(1.0), 60),
    (Polynomial(), 61),
    (Polynomial(degree=2, gamma=0.5, coef0=0), 60),
    (Polynomial(degree=1), 60),
]
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}


def run(path, rows):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["scores"], {"X": rows})[0]


def check(model, path, rows=NEW, kind=np.asarray):
    """The graph gives the model's scores, relative to the largest, in both precisions."""
    for dtype, tolerance in TOLERANCE.items():
        model.to_onnx(path, dtype=dtype)
        wanted = model.transform(kind(rows.astype(dtype)))
        found = run(path, rows.astype(dtype))
        assert found.dtype == dtype
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.filterwarnings("ignore:Sigmoid.* is indefinite on these data")
def test_landmarks(kernel, tmp_path):
    basis = Landmarks(30, Uniform())
    check(KernelPCA(4, kernel=kernel, basis=basis, random_state=0).fit(X), tmp_path / "a.onnx")


@pytest.mark.parametrize(("kernel", "size"), FEATURES, ids=repr)
def test_random_features(kernel, size, tmp_path):
    basis = RandomFeatures(size)
    check(KernelPCA(4, kernel=kernel, basis=basis, random_state=0).fit(X), tmp_path / "a.onnx")


def test_every_exported_kernel_is_tested():
    assert {type(kernel) for kernel in KERNELS} == set(KERNEL_ROWS)


def test_other_models(tmp_path):
    path = tmp_path / "a.onnx"
    check(KernelPCA(3, kernel="rbf", basis="landmarks", center=False).fit(X), path)
    check(StreamingKernelPCA(3, kernel="rbf", budget=30).fit(X), path)
    check(HebbianKernelPCA(3, kernel="rbf", budget=30).partial_fit(X), path)
    model = KernelPCA(3, kernel="rbf", basis=Landmarks(points=X[:20])).fit(sparse.csr_matrix(X))
    check(model, path, kind=sparse.csr_matrix)


def test_data_far_from_the_origin(tmp_path):
    """What float32 cannot hold is computed in double precision, as the model does."""
    far = X + 300.0
    model = KernelPCA(3, kernel="rbf", gamma=1.0, basis=Landmarks(30, Uniform()), random_state=0)
    check(model.fit(far), tmp_path / "a.onnx", NEW + 300.0)
    check(model.set_params(kernel="poly", gamma=None).fit(far), tmp_path / "a.onnx", NEW + 300.0)


def test_any_number_of_rows(tmp_path):
    model = KernelPCA(2, kernel="laplacian", basis=Landmarks(10), random_state=0).fit(X)
    model.to_onnx(tmp_path / "a.onnx")
    for n in (0, 1, 7):
        assert run(tmp_path / "a.onnx", X[:n].astype(np.float32)).shape == (n, 2)


def test_the_graph_says_what_it_is(tmp_path):
    model = KernelPCA(2, kernel="rbf", gamma=0.5, basis=Landmarks(10), random_state=0).fit(X)
    export_onnx(model, tmp_path / "a.onnx")
    graph = onnx.load(tmp_path / "a.onnx")
    onnx.checker.check_model(graph, full_check=True)
    assert graph.producer_name == "mercer"
    assert "RBF(gamma=0.5)" in graph.doc_string
    assert list(tmp_path.iterdir()) == [tmp_path / "a.onnx"]


def test_what_cannot_be_exported(tmp_path):
    path = tmp_path / "a.onnx"
    with pytest.raises(ModelFileError, match=r"exact.*basis='landmarks'"):
        KernelPCA(2, kernel="rbf").fit(X).to_onnx(path)
    with pytest.raises(ModelFileError, match="exact"):
        KernelPCA(2, kernel="precomputed").fit(X @ X.T).to_onnx(path)
    with pytest.raises(ModelFileError, match="cannot be expressed in ONNX"):
        KernelPCA(2, kernel=lambda x, z: float(x @ z), basis=Landmarks(points=X[:5])).fit(
            X
        ).to_onnx(path)
    with pytest.raises(ModelFileError, match="NoveltyDetector has no transform"):
        export_onnx(NoveltyDetector(3).fit(X), path)
    with pytest.raises(ValueError, match="dtype='float16'"):
        KernelPCA(2, basis=Landmarks(points=X[:5])).fit(X).to_onnx(path, dtype="float16")
    assert list(tmp_path.iterdir()) == []
