"""What points are colored by: groups by a code and their names, or numbers on a scale."""

from dataclasses import dataclass

import numpy as np

from ..compute import to_numpy
from ..plot.axes import dense

# Whole numbers with no more distinct values than this are groups, such as digits.
WHOLE_GROUPS = 20
# Groups beyond this many would be told apart by neither color nor shape.
MOST_GROUPS = 60
# The code of a row without a value.
MISSING = 65_535


@dataclass(frozen=True)
class Coloring:
    """A value for every row.

    Attributes
    ----------
    name : str
    groups : tuple of str or None
        Names of the groups; None for numbers on a scale.
    values : array of shape (n,)
        Codes of the groups, or numbers; NaN where there is none.
    """

    name: str
    groups: tuple[str, ...] | None
    values: np.ndarray

    def take(self, index) -> "Coloring":
        """The coloring of some rows."""
        return Coloring(self.name, self.groups, self.values[index])

    def text(self, i: int) -> str:
        """The value of row i, for a table."""
        value = self.values[i]
        if self.groups is None:
            return "" if np.isnan(value) else f"{value:.6g}"
        return "" if value == MISSING else self.groups[int(value)]


def make_coloring(colors, names, X, n: int, name: str | None = None) -> Coloring | None:
    """The coloring asked for.

    Parameters
    ----------
    colors : str, int, array-like of shape (n,) or None
    names : list of str
        Names of the columns of X.
    X : array of shape (n, d), sparse or not
    n : int
    name : str or None
        What to call the values; None for the name they bring.
    """
    if colors is None:
        return None
    if isinstance(colors, str | int | np.integer) and not isinstance(colors, bool):
        if colors not in names if isinstance(colors, str) else not 0 <= colors < len(names):
            some = ", ".join(repr(name) for name in names[:10])
            raise ValueError(
                f"There is no column {colors!r} to color by. Choose one of these: {some}; or give "
                f"a number below {len(names)}, counted from 0."
            )
        k = names.index(colors) if isinstance(colors, str) else int(colors)
        return _of_values(name or names[k], dense(X[:, [k]]).ravel())
    values = np.asarray(to_numpy(colors))
    if values.shape != (n,):
        raise ValueError(
            f"colors has shape {values.shape}, and X has {n} rows. Give one value a row, or the "
            "name of a column."
        )
    return _of_values(str(name or getattr(colors, "name", None) or "color"), values)


def _of_values(name, values) -> Coloring:
    if values.dtype.kind in "iuf":
        known = values[np.isfinite(values)]
        if not np.all(known == np.round(known)) or np.unique(known).size > WHOLE_GROUPS:
            numbers = values.astype(np.float32)
            # An infinite value has no place on a scale.
            return Coloring(name, None, np.where(np.isfinite(numbers), numbers, np.nan))
    texts = [_text(value) for value in values]
    present = np.array([text is not None for text in texts], dtype=bool)
    # Numbers in the order of numbers, words in that of words.
    numeric = values.dtype.kind in "biuf"
    order = (
        np.unique(values[present])
        if numeric
        else sorted(text for text in texts if text is not None)
    )
    code = {group: k for k, group in enumerate(dict.fromkeys(str(_text(one)) for one in order))}
    if len(code) > MOST_GROUPS:
        raise ValueError(
            f"colors has {len(code)} groups, which no one can tell apart. Give at most "
            f"{MOST_GROUPS}, or numbers for a scale."
        )
    codes = np.array([MISSING if text is None else code[text] for text in texts], np.uint16)
    return Coloring(name, tuple(code), codes)


def _text(value) -> str | None:
    """The name of a group; None for a missing value."""
    if value is None or value != value:
        return None
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)
