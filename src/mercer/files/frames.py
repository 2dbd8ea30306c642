"""Data frames of pandas as row sources, and the Excel files that pandas reads."""

from pathlib import Path

import numpy as np

from .._packages import needed
from .base import RowSource
from .columns import COUNTER, choose_columns, reasons_of


class FrameSource(RowSource):
    """A pandas data frame in memory.

    Parameters
    ----------
    frame : pandas.DataFrame
    name : str
    columns : list of str or None
        None for all columns of numbers.
    """

    def __init__(self, frame, name: str, columns=None):
        self.frame, self.name, self.n_rows = frame, name, len(frame)
        frame.columns = [str(column) for column in frame.columns]
        if not frame.columns.is_unique:
            raise ValueError(
                f"{name}: two columns have the same name in {list(frame.columns)}. Rename one."
            )
        kinds = {column: why_no_number(frame[column]) for column in frame.columns}
        self.columns, self.left_out = choose_columns(kinds, columns, name)
        self.reasons = reasons_of(kinds, self.left_out)
        self.n_columns = len(self.columns)
        self.notes = () if columns is not None else self._notes()

    def chunks(self, rows):
        """Slices of rows."""
        numbers = self.frame[self.columns]
        for start in range(0, len(self.frame), rows):
            yield numbers.iloc[start : start + rows].to_numpy(dtype=float, na_value=np.nan)

    def others(self, names=None):
        """Columns of any kind."""
        names = self.left_out if names is None else names
        return {name: self.frame[name].to_numpy() for name in names}

    def _notes(self) -> tuple[str, ...]:
        """Columns of mostly numbers that are left out for a few cells."""
        told = ((name, why) for name, why in self.reasons.items() if " in row " in why)
        return tuple(f"{self.name}: Column {name!r} is left out: {why}." for name, why in told)


def why_no_number(column) -> str | None:
    """Why a column of a frame is not read as numbers; None if it is."""
    types = needed("pandas.api.types", "excel")
    if column.isna().all():
        return "empty"
    if types.is_numeric_dtype(column):
        counted = str(column.name).startswith("Unnamed: ") and counts(column)
        return COUNTER if counted else None
    if types.is_datetime64_any_dtype(column):
        return "dates"
    known = column.dropna()
    numbers = needed("pandas", "excel").to_numeric(known, errors="coerce")
    if numbers.notna().mean() > 0.5:
        fault = known[numbers.isna()]
        if len(fault):
            # Row 1 of a sheet is the header, and pandas counts from 0.
            return f"{str(fault.iloc[0])!r} in row {int(fault.index[0]) + 2}"
    return "text"


def counts(column) -> bool:
    """Whether a column is 0, 1, 2, ... or 1, 2, 3, ..."""
    values = column.to_numpy()
    return values[0] in (0, 1) and bool(np.array_equal(values, values[0] + np.arange(len(values))))


def from_excel(path: Path, columns=None, name: str | None = None) -> FrameSource:
    """A sheet of an Excel file, named or the first one."""
    pandas = needed("pandas", "excel", path.name)
    if path.suffix.lower() == ".xlsx":
        needed("openpyxl", "excel", path.name)
    try:
        frame = pandas.read_excel(path, sheet_name=0 if name is None else name)
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(f"{path.name} cannot be read as an Excel file: {error}") from error
    if frame.empty:
        raise ValueError(f"{path.name} has no rows. Add at least one.")
    return FrameSource(frame, path.name, columns)
