"""An ONNX graph under construction: operators as methods, arrays as constants."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .archive import ModelFileError

# Operators as of these versions: read by every onnxruntime since 1.12.
OPSET, IR_VERSION = 17, 8
# Largest file that protocol buffers can hold.
MOST_BYTES = 2_000_000_000


class Graph:
    """Nodes and constants of a graph under construction; operators by their names.

    ``graph.exp(x)`` appends a node and gives the name of its result. Arrays and numbers among the
    inputs become constants of the graph's type.
    """

    def __init__(self, onnx, dtype, prefix=""):
        self.onnx, self.dtype, self.prefix = onnx, np.dtype(dtype), prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def __getattr__(self, name) -> Callable[..., str]:
        if name.startswith("_"):
            raise AttributeError(name)
        op = OPERATORS[name]

        def append(*inputs, out=None, **attributes):
            names = [item if isinstance(item, str) else self.constant(item) for item in inputs]
            out = out or self.fresh()
            self.nodes.append(self.onnx.helper.make_node(op, names, [out], **attributes))
            return out

        return append

    def constant(self, value, dtype=None) -> str:
        """A constant of the graph's type, or another."""
        name = f"{self.prefix}c{len(self.constants)}"
        A = np.ascontiguousarray(value, dtype=dtype or self.dtype).reshape(np.shape(value))
        self.constants.append(self.onnx.numpy_helper.from_array(A, name))
        return name

    def cast(self, x, dtype, out=None) -> str:
        """x in another type."""
        return self.to_type(x, to=self.tensor_type(dtype), out=out)

    def row_sums(self, x) -> str:
        """Sums over columns, (n, 1)."""
        return self.reduce_sum(x, self.constant([1], np.int64), keepdims=1)

    def tensor_type(self, dtype) -> int:
        """ONNX's number of a type."""
        return self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def fresh(self) -> str:
        """A name that no value has yet."""
        return f"{self.prefix}v{len(self.nodes)}"

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


OPERATORS = {
    "abs": "Abs",
    "add": "Add",
    "concat": "Concat",
    "cos": "Cos",
    "div": "Div",
    "exp": "Exp",
    "greater": "Greater",
    "log": "Log",
    "matmul": "MatMul",
    "max": "Max",
    "min": "Min",
    "mul": "Mul",
    "neg": "Neg",
    "pow": "Pow",
    "reduce_sum": "ReduceSum",
    "scan": "Scan",
    "sin": "Sin",
    "sqrt": "Sqrt",
    "sub": "Sub",
    "tanh": "Tanh",
    "to_type": "Cast",
    "transpose": "Transpose",
    "unsqueeze": "Unsqueeze",
    "where": "Where",
}
