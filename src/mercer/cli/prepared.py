"""A model with what happens to the rows of a table before it: columns chosen, columns scaled.

Both are kept in the model file as its `extra`, so that new tables meet the same treatment.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..estimators._estimator import KernelEstimator
from ..files import RowSource
from ..relatives.mixed import EncodedRows, MixedTable
from ..saving import ModelFileError, load, read_extra, save
from .standardization import Standardization


@dataclass(frozen=True)
class PreparedModel:
    """An estimator that takes and gives rows as the table has them.

    All else that it is asked for is the estimator's.

    Attributes
    ----------
    model : fitted estimator
    columns : list of str or None
        Names of the columns that it was fitted to.
    scaling : Scaling
    image_shape : tuple of int or None
        Shape of the images that its rows are.
    fill : array of shape (d,) or None
        What stands for missing values of each column; None where there must be none.
    """

    model: Any
    columns: list[str] | None = None
    scaling: Standardization = field(default_factory=Standardization)
    image_shape: tuple[int, ...] | None = None
    fill: np.ndarray | None = None

    def transform(self, X):
        """Scores of rows of the table."""
        return self.model.transform(self._prepared(X))

    def _prepared(self, X):
        """Rows as the estimator takes them: scaled, or with texts, which may be encoded already."""
        if isinstance(X, MixedTable):
            return X
        return self.scaling.apply(X) if self.model._encoding is None else EncodedRows(X)

    def inverse_transform(self, S):
        """Rows of the table whose scores are near S."""
        return self.scaling.undo(self.model.inverse_transform(S))

    def reconstruction_error(self, X):
        """Squared feature-space error of rows of the table."""
        return self.model.reconstruction_error(self._prepared(X))

    def explained(self, source: RowSource, max_rows: int | None):
        """Columns of the table that drive each component, over rows read in blocks."""
        found = self.model.attribute(ScaledRows(source, self.scaling), max_rows=max_rows)
        return found if self.columns is None else replace(found, columns=tuple(self.columns))

    def __getattr__(self, name):
        return getattr(self.model, name)

    @property  # type: ignore[misc]
    def __class__(self):
        # A transparent proxy: what is true of the estimator's class is true of this.
        return type(self.model)

    def __sklearn_is_fitted__(self):
        return True

    def save(self, path: Path) -> None:
        """Write a model file."""
        extra = {
            "columns": self.columns,
            "scale": self.scaling.kind,
            "shift": self.scaling.shift,
            "size": self.scaling.size,
            "image_shape": self.image_shape,
            "fill": self.fill,
        }
        save(self.model, path, extra=extra)

    @classmethod
    def load(cls, path: str, mixed: bool = False) -> "PreparedModel":
        """Open a model file; one of `model.save` has nothing to prepare.

        `mixed` says whether the command can use one that was fitted to texts.
        """
        model, extra = load(path), read_extra(path)
        if not isinstance(model, KernelEstimator):
            raise ModelFileError(
                f"{path} holds a {type(model).__name__}, and a kernel PCA is needed. Give a file "
                "that mercer fit wrote."
            )
        if model._encoding is not None and not mixed:
            raise ModelFileError(
                f"{path} was fitted to a table with categories, of which this command can make no "
                "use. Use it from Python: mercer.load(path)."
            )
        check_extra(extra, model.n_features_in_, path)
        scaling = Standardization(extra.get("scale", "none"), extra.get("shift"), extra.get("size"))
        # Columns are chosen by name here; the estimator would ask arrays for theirs.
        names = model.__dict__.pop("feature_names_in_", None)
        columns = None if names is None else [str(name) for name in names]
        named = extra.get("columns") or columns
        return cls(model, named, scaling, extra.get("image_shape"), extra.get("fill"))


def check_extra(extra: dict, width: int, path: str) -> None:
    """Raise ModelFileError unless what was kept with a model fits its columns."""
    names, shape = extra.get("columns"), extra.get("image_shape")
    good = names is None or (len(names) == width and all(isinstance(n, str) for n in names))
    good &= shape is None or prod(shape) == width
    vectors = ["shift", "size"] if extra.get("scale", "none") != "none" else []
    vectors += ["fill"] if extra.get("fill") is not None else []
    for vector in (np.asarray(extra.get(name), dtype=float) for name in vectors):
        good &= vector.shape == (width,) and bool(np.isfinite(vector).all())
    if not good:
        raise ModelFileError(
            f"{path} keeps columns, a scaling or images that do not fit its model of {width} "
            "columns. Fit it again with mercer fit."
        )


class ScaledRows(RowSource):
    """Rows of a source, scaled as they are read.

    Parameters
    ----------
    source : RowSource
    scaling : Scaling
    """

    def __init__(self, source: RowSource, scaling: Standardization):
        self.source, self.scaling = source, scaling
        self.name, self.dtype, self.columns = source.name, source.dtype, source.columns
        self.n_columns, self.n_rows = source.n_columns, source.n_rows

    def chunks(self, rows: int) -> Iterator:
        """Blocks of the source, scaled."""
        return map(self.scaling.apply, self.source.blocks(rows))
