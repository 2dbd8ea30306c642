"""Doctests are collected from every module; those that need an absent library are skipped."""

import pytest
from _pytest.doctest import DoctestModule

# Libraries that some modules of ours need at their head: they serve one kind of device only.
OPTIONAL = {"torch", "triton"}


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Skip a doctest module that an absent optional library keeps from loading, and say so."""
    report = yield
    if report.failed and isinstance(collector, DoctestModule):
        missing = absent_library(report.call.excinfo.value)
        if missing in OPTIONAL:
            report.outcome = "skipped"
            report.longrepr = (str(collector.path), None, f"Skipped: {missing} is not installed")
    return report


def absent_library(error) -> str | None:
    """The module whose absence an error, or what caused it, is about."""
    while error is not None and not isinstance(error, ModuleNotFoundError):
        error = error.__cause__
    return error and error.name
