"""The target of a supervised fit as features P, whose inner products are the target kernel."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..bases import Landmarks
from ..compute import format_bytes, is_sparse, make_engine, parse_bytes, to_numpy
from ..compute.arrays import is_foreign
from ..compute.linalg import eigh
from ..compute.numbers import check_unmasked, reason
from ..kernels import KERNELS, Kernel
from ..selectors import GreedyCholesky
from ._door import LARGEST_SUM, SMALLEST_VALUE, check_gram, checked_array

# Distinct targets that a kernel between them is expanded in, chosen by pivots where there are more.
MOST_POINTS = 1000
# Copies of P while it is made, and the share of the budget that they may take.
COPIES, SHARE = 4, 2
# Share of a target kernel that may be left out without a word.
LEFT_OUT = 1e-6


@dataclass(frozen=True)
class Target:
    """What rows are to depend on.

    Attributes
    ----------
    kernel : str or Kernel
        "delta", "linear", "precomputed", or a kernel with numbers for its parameters.
    features : array of shape (n, q)
        P, about its mean: the target kernel is P P'.
    lost : float
        Share of the energy of the target kernel that P leaves out.
    counting : array of bool or None
        Rows that count, where rows are weighted.
    """

    kernel: Any
    features: np.ndarray
    lost: float = 0.0
    counting: np.ndarray | None = None

    def of_weighted(self, sample_weight: Any) -> "Target":
        """With the rows noted that count nothing: a fit to an array leaves them out."""
        if sample_weight is None:
            return self
        some = np.asarray(to_numpy(sample_weight)) != 0
        known = some.shape == self.features.shape[:1]
        return replace(self, counting=some) if known else self

    def of_rows(self, weights: np.ndarray | None) -> np.ndarray:
        """P of the rows of a fit, whose weights are those of all or of those that count."""
        if self.counting is None or weights is None or len(weights) == len(self.features):
            return self.features
        return self.features[self.counting]


def target_of(kernel: Any, y: Any, who: str, memory: Any = None) -> Target:
    """The target of y: (n,) or (n, q) numbers or labels, or the kernel itself.

    ValueError where it would take more than half of the `memory` of the fit.
    """
    Y = columns_of(y, who)
    check_room(Y.shape[0], Y.shape[1], memory)
    if isinstance(kernel, str) and kernel == "auto":
        kernel = "linear" if Y.dtype.kind == "f" else "delta"
    if isinstance(kernel, str) and kernel == "delta":
        return checked(Target("delta", indicators(Y, memory)), y)
    Y = numbers(Y)
    if isinstance(kernel, str) and kernel == "linear":
        return checked(Target("linear", Y), y)
    if isinstance(kernel, str) and kernel == "precomputed":
        return checked(Target("precomputed", root_of(Y)), y)
    kernel = KERNELS[kernel](**default_width(kernel, Y)) if isinstance(kernel, str) else kernel
    return checked(expanded(kernel, Y, memory), y)


def columns_of(y: Any, who: str) -> np.ndarray:
    """y as a table (n, q) of numbers or labels, or an error that says what is wrong."""
    if y is None:
        raise ValueError(
            f"{who} requires y to be passed, but the target y is None. Pass labels or numbers, one "
            "for each row; KernelPCA needs none."
        )
    Y = table_of(y)
    if Y.ndim != 2 or 0 in Y.shape:
        raise ValueError(
            f"y has shape {Y.shape}, and must hold a label or some numbers for each row. Pass an "
            "array of shape (n,) or (n, q)."
        )
    if Y.dtype.kind == "c":
        raise ValueError(
            "Complex data not supported: y must hold labels or real numbers. Pass real and "
            "imaginary parts as columns: np.column_stack([y.real, y.imag])."
        )
    return numbers(Y) if Y.dtype.kind == "f" else Y


def table_of(y: Any) -> np.ndarray:
    """Anything that a user may pass as a dense array, one column where it has one dimension."""
    check_unmasked(y, "y")
    if is_sparse(y):
        raise ValueError("y is a sparse matrix, and a dense one is needed. Pass y.toarray().")
    try:
        Y = np.asarray(to_numpy(y) if is_foreign(y) else y)
    except ValueError as error:
        raise reason(y, error, "y") from error
    return Y[:, None] if Y.ndim == 1 else Y


def numbers(Y: np.ndarray) -> np.ndarray:
    """A table of finite floats."""
    return checked_array(Y, dtype=np.float64, input_name="y", ensure_min_samples=1)


def indicators(Y: np.ndarray, memory: Any) -> np.ndarray:
    """A column of zeros and ones for every label of every column, (n, q)."""
    columns = []
    for labels in Y.T:
        if labels.dtype.kind == "O":
            missing = [label is None or label != label for label in labels]
            if any(missing):
                raise ValueError(
                    f"Input y contains NaN or None, first in row {missing.index(True)}. Leave such "
                    "rows out, or give them a label."
                )
            labels = labels.astype(str)
        columns.append(np.unique(labels, return_inverse=True))
    sizes = [len(known) for known, _ in columns]
    check_room(len(Y), sum(sizes), memory)
    P = np.zeros((len(Y), sum(sizes)))
    for start, (_, codes) in zip(np.cumsum([0, *sizes]), columns, strict=False):
        P[np.arange(len(Y)), start + codes.ravel()] = 1.0
    return P


def check_room(n: int, q: int, memory: Any) -> None:
    """Raise ValueError where a target of q columns would take more than its share of the budget."""
    budget, need = parse_bytes(memory), COPIES * SHARE * 8 * n * q
    if need > budget:
        raise ValueError(
            f"The target takes {q:,} columns for {n:,} rows, one for each class or number, and "
            f"with memory={format_bytes(budget)} there is no room for it. Give at least "
            f"memory={need}, or a y of fewer classes."
        )


def default_width(name: str, Y: np.ndarray) -> dict:
    """The median distance of targets, for a kernel that has a width."""
    return {"gamma": "median"} if "gamma" in KERNELS[name]._get_param_names() else {}


def root_of(L: np.ndarray) -> np.ndarray:
    """P with P P' = L, for a kernel matrix of targets."""
    check_gram(L)
    values, V = eigh((L + L.T) / 2)
    top = max(float(values[-1]), np.finfo(float).tiny)
    if values[0] < -1e-8 * top:
        raise ValueError(
            f"The target kernel has a negative eigenvalue, {values[0]:.3g} against a largest of "
            f"{top:.3g}. Pass one that is positive semidefinite."
        )
    some = values > len(L) * np.finfo(float).eps * top
    return V[:, some] * np.sqrt(values[some])


def expanded(kernel: Kernel, Y: np.ndarray, memory: Any) -> Target:
    """Coordinates of all targets in the span of some, which is all of it where these suffice."""
    kernel = kernel.resolve(Y)
    kernel.check(Y)
    points = np.unique(Y, axis=0)
    check_room(len(Y), min(len(points), MOST_POINTS), memory)
    engine = make_engine(Y, memory=parse_bytes(memory) // SHARE)
    recipe = Landmarks(points=points)
    if len(points) > MOST_POINTS:
        recipe = Landmarks(MOST_POINTS, GreedyCholesky())
    basis = recipe.build(kernel, points, engine, np.random.default_rng(0))
    P = basis.project(Y, basis.whitener(np.float64))
    energy = float(np.sum(kernel.diag(Y)))
    lost = max(energy - float(np.sum(P**2)), 0.0) / max(energy, np.finfo(float).tiny)
    return Target(kernel, P, lost if lost > LEFT_OUT else 0.0)


def checked(target: Target, y: Any) -> Target:
    """The target about its mean, unless it is the same for all rows."""
    P = target.features - target.features.mean(axis=0)
    if not np.any(np.abs(P) > 1e-12 * np.max(np.abs(target.features), initial=0.0)):
        raise ValueError(
            "All rows have the same target, 1 class or value, so that nothing can depend on it. "
            "Pass a y with two different values or more, or use KernelPCA."
        )
    check_size(P)
    return Target(target.kernel, P, target.lost)


def check_size(P: np.ndarray) -> None:
    """Raise ValueError where float64 does not hold the sums of the squares of a target."""
    largest = float(np.max(np.abs(P)))
    if not largest * largest * P.size < LARGEST_SUM or largest * largest < SMALLEST_VALUE:
        raise ValueError(
            f"The targets differ by up to {largest:.1e}, and float64 does not hold the sum of "
            "their squares with all digits. Scale y, such as y / np.abs(y).max()."
        )
