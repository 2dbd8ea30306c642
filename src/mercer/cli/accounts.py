"""What was made of the tables of a command: columns used, columns left out and why."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..exceptions import TableWarning, tell
from ..files import RowSource

# Columns named in a message, at most.
SHOWN = 12


@dataclass
class Account:
    """What became of one table.

    Attributes
    ----------
    name : str
    used : list of str or int
        Names of the columns used, or how many where they have none.
    left_out : dict of str to str
        The other columns, and why.
    missing : dict
        What was done about missing values.
    chosen : bool
        Whether the user named the columns, and so knows what is left out.
    """

    name: str
    used: list[str] | int
    left_out: dict[str, str]
    missing: dict = field(default_factory=dict)
    chosen: bool = False

    def facts(self) -> dict:
        """The account for programs."""
        names = ("name", "used", "left_out", "missing")
        return {name: vars(self)[name] for name in names}

    def line(self) -> str:
        """The account for people; empty where all is as one would think."""
        expected = ("not asked for", "kept")
        told = {name: why for name, why in self.left_out.items() if why not in expected}
        if not told or self.chosen:
            return ""
        count = self.used if isinstance(self.used, int) else len(self.used)
        some = [f"{name} ({why})" for name, why in list(told.items())[:SHOWN]]
        more = [f"and {len(told) - SHOWN} more"] if len(told) > SHOWN else []
        return f"{self.name}: used {count}; left out: {', '.join([*some, *more])}"


def take_account(
    args: Namespace, source: RowSource, chosen: bool = False, kept: Sequence[str] = ()
) -> Account:
    """Remember what was made of a table, and warn of what may have been meant otherwise.

    Parameters
    ----------
    args : Namespace
    source : RowSource
    chosen : bool
        Whether the user named the columns, and so knows what is left out.
    kept : sequence of str
        Columns that go with the rows into the result.
    """
    used = source.n_columns if source.columns is None else source.columns
    reasons = dict(source.reasons) | dict.fromkeys(set(kept) & set(source.reasons), "kept")
    account = Account(source.name, used, reasons, chosen=chosen)
    args.accounts.append(account)
    for note in source.notes:
        tell(note, TableWarning)
    return account
