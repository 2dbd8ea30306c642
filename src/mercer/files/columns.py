"""Which columns of a table are used, and why the others are not."""

# Why the index of a data frame is left out where nobody asks for it.
COUNTER = "row numbers without a name"


def choose_columns(kinds: dict[str, str | None], columns, name: str):
    """The columns to read, in the order asked for, and those that are left out."""
    if columns is None:
        numeric = [column for column, why in kinds.items() if why is None]
        if not numeric:
            why = ", ".join(f"{column} ({why})" for column, why in kinds.items())
            raise ValueError(f"{name} has no column of numbers; its columns are {why}.")
        return numeric, tuple(column for column in kinds if column not in numeric)
    columns = [columns] if isinstance(columns, str) else [str(column) for column in columns]
    if not columns:
        raise ValueError("columns is empty. Name at least one column, or leave it out for all.")
    for column in columns:
        if column not in kinds:
            raise ValueError(f"{name} has no column {column!r}; its columns are {list(kinds)}.")
        if kinds[column] not in (None, COUNTER):
            raise ValueError(
                f"{name}: column {column!r} is not made of numbers ({kinds[column]}). Leave it out."
            )
    if len(set(columns)) < len(columns):
        raise ValueError(f"columns={columns} names a column twice.")
    return columns, tuple(column for column in kinds if column not in columns)


def reasons_of(kinds: dict[str, str | None], left_out) -> dict[str, str]:
    """Why columns are left out: what they are, or that nobody asked for them."""
    return {column: kinds[column] or "not asked for" for column in left_out}
