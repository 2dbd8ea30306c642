"""Which columns of a table are used, and why the others are not."""

from collections.abc import Iterable

# Columns that a message lists.
LISTED = 30
# Why the index of a data frame is left out where nobody asks for it.
COUNTER = "row numbers without a name"


def choose_columns(kinds: dict[str, str | None], columns, name: str):
    """The columns to read, in the order asked for, and those that are left out."""
    if columns is None:
        numeric = [column for column, why in kinds.items() if why is None]
        if not numeric:
            why = listed(f"{column} ({why})" for column, why in kinds.items())
            raise ValueError(
                f"{name} has no column of numbers; its columns are {why}. Convert those that are "
                "meant as numbers."
            )
        return numeric, without(kinds, numeric)
    columns = [columns] if isinstance(columns, str) else [str(column) for column in columns]
    if not columns:
        raise ValueError("columns is empty. Name at least one column, or leave it out for all.")
    for column in columns:
        if column not in kinds:
            raise ValueError(
                f"{name} has no column {column!r}; its columns are {listed(map(repr, kinds))}. "
                "Name some of these."
            )
        if kinds[column] not in (None, COUNTER):
            raise ValueError(
                f"{name}: column {column!r} is not made of numbers ({kinds[column]}). Leave it out."
            )
    if len(set(columns)) < len(columns):
        raise ValueError(f"columns={columns} names a column twice. Name each once.")
    return columns, without(kinds, columns)


def without(kinds: dict[str, str | None], columns) -> tuple[str, ...]:
    """The columns that are not among those taken."""
    taken = set(columns)
    return tuple(column for column in kinds if column not in taken)


def listed(items: Iterable[str]) -> str:
    """Items for a message, the first few of many."""
    items = list(items)
    more = f" and {len(items) - LISTED:,} more" if len(items) > LISTED else ""
    return ", ".join(items[:LISTED]) + more


def reasons_of(kinds: dict[str, str | None], left_out) -> dict[str, str]:
    """Why columns are left out: what they are, or that nobody asked for them."""
    return {column: kinds[column] or "not asked for" for column in left_out}
