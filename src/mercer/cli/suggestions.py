"""Did you mean ...? for options, commands and columns that are not there."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question with the nearest of the words that are known, with a space before it; or nothing.

    Examples
    --------
    >>> did_you_mean("--componets", ["--components", "--columns"])
    ' Did you mean --components?'
    >>> did_you_mean("xyz", ["--components"])
    ''
    """
    spelled = {name.lower(): name for name in known}
    near = get_close_matches(word.lower(), spelled, n=1, cutoff=0.6)
    return f" Did you mean {spelled[near[0]]}?" if near else ""
