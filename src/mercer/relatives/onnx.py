"""The transform of a model as an ONNX graph: kernel rows against the basis, times the frame.

Every kernel is a few standard operators: one matrix product and a scalar map, or a scan over the
columns where the kernel is a sum over coordinates. Random features are products and a sine.
"""

from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import kernels
from .._packages import needed
from .._whole_file import whole_file
from ..bases import ColumnBasis, FeatureBasis, FourierBasis
from ..bases.fourier import BOX_ROUNDING
from ..bases.random_features import Fourier, TensorSketch
from ..compute import is_sparse, to_numpy
from ..exceptions import ModelFileError

# Operators as of these versions: read by every onnxruntime since 1.12.
OPSET, IR_VERSION = 17, 8
# Largest file that protocol buffers can hold.
MOST_BYTES = 2_000_000_000


def export_onnx(model: Any, path: str | PathLike[str], *, dtype: str = "float32") -> None:
    """Write the transform of a landmark, random-feature or Fourier model as an ONNX graph.

    The graph takes rows ``X`` (rows, columns) and gives ``scores`` (rows, components). It computes
    in the precision that the model itself would choose for such rows. It checks nothing: NaN in,
    NaN out; NaN also for rows that a Fourier grid does not serve.

    Parameters
    ----------
    model : estimator
        Fitted, with ``basis="landmarks"``, ``"features"`` or ``"fourier"``, or by a stream.
    path : str or path
    dtype : "float32" or "float64", default="float32"
        Type of the rows and of the scores.
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype={dtype!r} must be 'float32' or 'float64'.")
    check_is_fitted(model)
    onnx, d = needed("onnx", "onnx", "Export to ONNX"), model.n_features_in_
    expansion = vars(model).get("expansion_")
    if expansion is None:
        raise ModelFileError(f"{type(model).__name__} has no transform that ONNX could express.")
    basis = expansion.basis
    if basis.spans_data:
        raise ModelFileError(
            f"This model is exact: its graph would hold all {basis.size:,} training rows or their "
            "kernel. Export a KernelPCA with basis='landmarks' or basis='features' instead."
        )
    in_onnx = isinstance(basis, FeatureBasis | FourierBasis) or type(basis.kernel) in KERNEL_ROWS
    if not in_onnx:
        raise ModelFileError(
            f"{basis.kernel} cannot be expressed in ONNX. Those that can: "
            f"{', '.join(cls.__name__ for cls in KERNEL_ROWS)}."
        )
    # Single-precision rows are computed in what the model itself takes for them.
    inner = np.dtype(basis.precision(np.empty((1, d), dtype)))
    graph = Graph(onnx, inner)
    X = graph.to_type("X", inner) if inner != dtype else "X"
    P = project(graph, X, basis, np.asarray(to_numpy(expansion.frame[:, 1:]), float))
    offset = np.asarray(to_numpy(expansion.metric[0, 1:]), float)
    graph.to_type(graph.sub(P, offset), dtype, out="scores")
    content = graph.model(dtype, d, expansion.n_components, repr(model.kernel_))
    with whole_file(path) as file:
        file.write(content.SerializeToString())


def project(graph, X, basis, W) -> str:
    """Inner products of the rows with the sums W of basis vectors, (n, b)."""
    if isinstance(basis, FeatureBasis):
        features = basis.features
        rows = fourier_rows if isinstance(features, Fourier) else sketch_rows
        return rows(graph, X, features, W)
    if isinstance(basis, FourierBasis):
        return grid_rows(graph, X, basis, W)
    if isinstance(basis, ColumnBasis):
        Z = np.eye(basis.size)  # inner products with the unit vectors are the columns
    else:
        Z = basis.points.toarray() if is_sparse(basis.points) else to_numpy(basis.points)
    K = KERNEL_ROWS[type(basis.kernel)](graph, X, np.asarray(Z, float), basis.kernel)
    return graph.mat_mul(K, W)


def inner_products(graph, X, Z, kernel) -> str:
    """gamma X Z' + coef0; a linear kernel may have a center."""
    if isinstance(kernel, kernels.Linear) and kernel.center is not None:
        X, Z = graph.sub(X, kernel.center.astype(graph.dtype)), Z - kernel.center
    K = graph.mat_mul(X, Z.T * kernel._scale)
    return K if isinstance(kernel, kernels.Linear | kernels.Cosine) else graph.add(K, kernel.coef0)


def cosine(graph, X, Z, kernel) -> str:
    """Inner products of rows of unit length; a zero row stays zero."""
    tiny = np.finfo(graph.dtype).tiny
    lengths = graph.sqrt(graph.row_sums(graph.mul(X, X)))
    Z = Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), tiny)
    return graph.mat_mul(graph.div(X, graph.max(lengths, tiny)), Z.T)


def exponents(graph, X, Z, kernel) -> str:
    """-gamma |x - z|^2 about the mean of the points, never above zero."""
    origin = Z.mean(axis=0).astype(graph.dtype)
    X, Z = graph.sub(X, origin), Z - origin.astype(float)
    norms = graph.add(
        graph.mul(graph.row_sums(graph.mul(X, X)), kernel.gamma),
        kernel.gamma * np.square(Z).sum(axis=1)[None],
    )
    return graph.min(graph.sub(graph.mat_mul(X, 2 * kernel.gamma * Z.T), norms), 0.0)


def matern(graph, X, Z, kernel) -> str:
    """(1 + s + s^2 / 3) exp(-s), with as many terms as nu has."""
    s = graph.sqrt(graph.mul(exponents(graph, X, Z, kernel), -4 * kernel.nu))
    decay = graph.exp(graph.neg(s))
    if kernel.nu == 0.5:
        return decay
    terms = graph.add(s, 1.0)
    if kernel.nu == 2.5:
        terms = graph.add(terms, graph.div(graph.mul(s, s), 3.0))
    return graph.mul(terms, decay)


def rational_quadratic(graph, X, Z, kernel) -> str:
    """(1 + gamma |x - z|^2 / alpha)^-alpha."""
    base = graph.sub(1.0, graph.div(exponents(graph, X, Z, kernel), kernel.alpha))
    return graph.pow(base, -kernel.alpha)


def laplacian(graph, X, Z, kernel) -> str:
    """exp(-gamma |x - z|_1)."""

    sums = column_sums(graph, X, Z, lambda body, x, z: body.abs(body.sub(x, z)))
    return graph.exp(graph.mul(sums, -kernel.gamma))


def chi2(graph, X, Z, kernel) -> str:
    """exp(-gamma sum (x - z)^2 / (x + z)), with nothing where both are zero."""

    def term(body, x, z):
        difference, total = body.sub(x, z), body.add(x, z)
        share = body.div(body.mul(difference, difference), total)
        return body.where(body.greater(total, 0.0), share, 0.0)

    return graph.exp(graph.mul(column_sums(graph, X, Z, term), -kernel.gamma))


def column_sums(graph, X, Z, term) -> str:
    """The sum over columns of term(x, z) for all pairs, (n, m), by a scan: n x m memory."""
    helper, kind = graph.onnx.helper, graph.tensor_type(graph.dtype)
    body = Graph(graph.onnx, graph.dtype, prefix="column_")
    x = body.unsqueeze("x", body.constant([1], np.int64))
    z = body.unsqueeze("z", body.constant([0], np.int64))
    body.add("before", term(body, x, z), out="after")
    values = {
        name: helper.make_tensor_value_info(name, kind, shape)
        for name, shape in {"before": [None, len(Z)], "x": [None], "z": [len(Z)]}.items()
    }
    after = helper.make_tensor_value_info("after", kind, [None, len(Z)])
    scanned = helper.make_graph(body.nodes, "column", [*values.values()], [after], body.constants)
    start = graph.add(graph.mul(graph.row_sums(X), 0.0), np.zeros((1, len(Z))))
    columns = graph.transpose(X, perm=[1, 0])
    return graph.scan(start, columns, Z.T, body=scanned, num_scan_inputs=2)


def fourier_rows(graph, X, features: Fourier, W) -> str:
    """[cos(X w), sin(X w)] W / sqrt(pairs)."""
    W = W / np.sqrt(len(features.frequencies))
    half = len(features.frequencies)
    angles = graph.mat_mul(X, features.frequencies.T)
    cosines = graph.mat_mul(graph.cos(angles), W[:half])
    return graph.add(cosines, graph.mat_mul(graph.sin(angles), W[half:]))


def grid_rows(graph, X, basis: FourierBasis, W) -> str:
    """Cosines and sines of the grid; NaN for rows that it does not serve."""
    grid, W = basis.frequencies, basis.amplitudes[:, None] * W
    M, shifted = len(grid.index), graph.sub(X, grid.center[None])
    angles = graph.mat_mul(shifted, (2 * np.pi * grid.spacing * grid.index).T)
    cosines = graph.mat_mul(graph.cos(angles), W[1 : 1 + M])
    P = graph.add(cosines, graph.mat_mul(graph.sin(angles), W[1 + M :]))
    reach = np.diff(grid.box, axis=1).T / 2 * (1 + BOX_ROUNDING) + grid.room
    beyond = graph.to_type(graph.greater(graph.abs(shifted), reach), graph.dtype)
    outside = graph.greater(graph.row_sums(beyond), np.zeros((1, 1)))
    none = 0.0 if grid.room else np.nan
    return graph.where(outside, np.full((1, W.shape[1]), none), graph.add(P, W[:1]))


def sketch_rows(graph, X, features: TensorSketch, W) -> str:
    """A product of count sketches in the Fourier domain, whose transforms are folded into W."""
    m, d = features.size, features.columns.shape[1] - 1
    waves = np.exp(-2j * np.pi * np.outer(np.arange(m), np.arange(m // 2 + 1)) / m)
    real = imaginary = None
    for columns, signs in zip(features.columns, features.signs, strict=True):
        spectrum = waves[columns] * signs[:, None]
        row, shift = features.scale * spectrum[:d], features.constant * spectrum[d]
        a = graph.add(graph.mat_mul(X, row.real), shift.real[None])
        b = graph.add(graph.mat_mul(X, row.imag), shift.imag[None])
        if real is None:
            real, imaginary = a, b
            continue
        real, imaginary = (
            graph.sub(graph.mul(real, a), graph.mul(imaginary, b)),
            graph.add(graph.mul(real, b), graph.mul(imaginary, a)),
        )
    # All frequencies but the ends stand for themselves and their mirror image.
    counts = np.full(m // 2 + 1, 2.0)
    counts[0] = 1.0
    counts[-1] = 1.0 if m % 2 == 0 else 2.0
    back = (counts[:, None] / m) * (waves.T @ W)
    return graph.add(graph.mat_mul(real, back.real), graph.mat_mul(imaginary, back.imag))


class Graph:
    """Nodes and constants of a graph under construction; operators by their names.

    ``graph.exp(x)`` appends a node and gives the name of its result; ``mat_mul`` is MatMul.
    Arrays and numbers among the inputs become constants of the graph's type.
    """

    def __init__(self, onnx, dtype, prefix=""):
        self.onnx, self.dtype, self.prefix = onnx, np.dtype(dtype), prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def __getattr__(self, name) -> Callable[..., str]:
        if name.startswith("_"):
            raise AttributeError(name)
        operator = name.title().replace("_", "")

        def append(*inputs, out=None, **attributes):
            names = [item if isinstance(item, str) else self.constant(item) for item in inputs]
            out = out or f"{self.prefix}v{len(self.nodes)}"
            self.nodes.append(self.onnx.helper.make_node(operator, names, [out], **attributes))
            return out

        return append

    def constant(self, value, dtype=None) -> str:
        """A constant of the graph's type, or another."""
        name = f"{self.prefix}c{len(self.constants)}"
        A = np.ascontiguousarray(value, dtype=dtype or self.dtype).reshape(np.shape(value))
        self.constants.append(self.onnx.numpy_helper.from_array(A, name))
        return name

    def to_type(self, x, dtype, out=None) -> str:
        return self.cast(x, to=self.tensor_type(dtype), out=out)

    def row_sums(self, x) -> str:
        """Sums over columns, (n, 1)."""
        return self.reduce_sum(x, self.constant([1], np.int64), keepdims=1)

    def tensor_type(self, dtype) -> int:
        """ONNX's number of a type."""
        return self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def model(self, dtype, d, r, kernel):
        """The finished model."""
        helper, kind = self.onnx.helper, self.tensor_type(dtype)
        size = sum(len(constant.raw_data) for constant in self.constants)
        if size > MOST_BYTES:
            raise ModelFileError(f"The graph takes {size:,} bytes, and ONNX files hold 2 GB.")
        graph = helper.make_graph(
            self.nodes,
            "kernel PCA",
            [helper.make_tensor_value_info("X", kind, ["rows", d])],
            [helper.make_tensor_value_info("scores", kind, ["rows", r])],
            self.constants,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="mercer",
            doc_string=f"Scores of kernel PCA with {' '.join(kernel.split())}",
        )
        self.onnx.checker.check_model(model, full_check=True)
        return model


KERNEL_ROWS: dict[type[kernels.Kernel], Callable[[Any, str, np.ndarray, Any], str]] = {
    kernels.Linear: inner_products,
    kernels.Polynomial: lambda graph, *of: graph.pow(
        inner_products(graph, *of), float(of[-1].degree)
    ),
    kernels.Sigmoid: lambda graph, *of: graph.tanh(inner_products(graph, *of)),
    kernels.Cosine: cosine,
    kernels.RBF: lambda graph, *of: graph.exp(exponents(graph, *of)),
    kernels.Matern: matern,
    kernels.RationalQuadratic: rational_quadratic,
    kernels.Laplacian: laplacian,
    kernels.Chi2: chi2,
}
