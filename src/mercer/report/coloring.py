"""What points are colored by: groups by a code and their names, or numbers on a scale."""

from dataclasses import dataclass

import numpy as np

from ..compute import to_numpy

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
        k = _column(colors, names)
        column = X[:, [k]].toarray() if hasattr(X, "toarray") else X[:, [k]]
        return _of_values(name or names[k], np.asarray(column).ravel())
    values = np.asarray(to_numpy(colors))
    if values.shape != (n,):
        raise ValueError(
            f"colors has shape {values.shape}, and X has {n} rows. Give one value a row, or the "
            "name of a column."
        )
    return _of_values(str(name or getattr(colors, "name", None) or "color"), values)


def _column(colors, names) -> int:
    """The number of the column meant."""
    if isinstance(colors, str):
        if colors not in names:
            some = ", ".join(repr(name) for name in names[:10])
            raise ValueError(
                f"There is no column {colors!r} to color by. Choose one of these: {some}."
            )
        return names.index(colors)
    if not 0 <= colors < len(names):
        raise ValueError(
            f"There is no column {colors} to color by. Give a number below {len(names)}, counted "
            "from 0."
        )
    return int(colors)


def _of_values(name, values) -> Coloring:
    if values.dtype.kind in "iuf" and not _few_whole(values):
        numbers = values.astype(np.float32)
        # An infinite value has no place on a scale.
        return Coloring(name, None, np.where(np.isfinite(numbers), numbers, np.nan))
    texts = np.array([_text(value) for value in values], dtype=object)
    present = [text for text in texts if text is not None]
    # Numbers in the order of numbers, words in that of words.
    known = values[[text is not None for text in texts]]
    order = np.unique(known) if values.dtype.kind in "biuf" else sorted(set(present))
    groups = [str(_text(value)) for value in order]
    if len(groups) > MOST_GROUPS:
        raise ValueError(
            f"colors has {len(groups)} groups, which no one can tell apart. Give at most "
            f"{MOST_GROUPS}, or numbers for a scale."
        )
    code = {group: k for k, group in enumerate(groups)}
    codes = np.array([MISSING if text is None else code[text] for text in texts], np.uint16)
    return Coloring(name, tuple(groups), codes)


def _few_whole(values) -> bool:
    known = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    return bool(np.all(known == np.round(known))) and np.unique(known).size <= WHOLE_GROUPS


def _text(value) -> str | None:
    """The name of a group; None for a missing value."""
    if value is None or value != value:
        return None
    if isinstance(value, float | np.floating):
        return f"{value:g}"
    return str(value)
