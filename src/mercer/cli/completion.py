"""Completion of commands and options in the shell, by shtab."""

from argparse import ArgumentParser

SHELLS = ("bash", "zsh", "tcsh")


def completion_script(parser: ArgumentParser, shell: str) -> str:
    """What to put where the shell looks for completions.

    Parameters
    ----------
    parser : ArgumentParser
    shell : str
        One of `SHELLS`.
    """
    from .._packages import needed

    return needed("shtab", "completion", "Completion").complete(parser, shell=shell)
