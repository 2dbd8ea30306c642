"""Long fits are foretold: how long, what would be faster, and how much is left."""

import itertools
import re
import sys
import time

import numpy as np
import pytest

from mercer import (
    ClassicalMDS,
    HebbianKernelPCA,
    KernelCCA,
    KernelPCA,
    KernelPCASearch,
    NoveltyDetector,
    SpectralClustering,
    SpectralEmbedding,
)
from mercer.bases import Landmarks
from mercer.progress import LONG, PassBar
from mercer.selectors import Uniform


class Enough(Exception):
    """Ends a fit that has said what it was to say."""


class Stderr:
    """A stream that may be a terminal, and ends the fit that foretells on it how long it takes."""

    def __init__(self, terminal):
        self.text, self.terminal = "", terminal

    def write(self, text):
        self.text += text
        if "about" in text:
            raise Enough

    def flush(self):
        pass

    def isatty(self):
        return self.terminal


def rows(n, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 3))


UNIFORM = Landmarks(3000, selector=Uniform())
LONG_FITS = {
    "points": (lambda v: KernelPCA(2, kernel="rbf", basis="points", verbose=v), 200_000),
    "landmarks": (lambda v: KernelPCA(2, kernel="rbf", basis=UNIFORM, verbose=v), 800_000),
    "hebbian": (lambda v: HebbianKernelPCA(2, kernel="rbf", verbose=v), 200_000),
    "clusters": (lambda v: SpectralClustering(2, basis="points", verbose=v), 200_000),
}


@pytest.mark.parametrize("watched", ["terminal", "verbose"])
@pytest.mark.parametrize("case", LONG_FITS)
def test_a_long_fit_is_foretold(case, watched, monkeypatch):
    make, n = LONG_FITS[case]
    stderr = Stderr(watched == "terminal")
    monkeypatch.setattr(sys, "stderr", stderr)
    with pytest.raises(Enough):
        make(2 * (watched == "verbose")).fit(rows(n))
    said = stderr.text.split("about ")[1].split()
    assert float(said[0]) * {"s": 1, "min": 60, "hours": 3600}[said[1].strip(".:")] > LONG


def test_what_is_faster_is_tried(monkeypatch):
    """Landmarks that take a hundredth are fitted, and their certificate is said."""
    stderr = Stderr(True)
    monkeypatch.setattr(sys, "stderr", stderr)
    X = rows(200_000, seed=1)
    given = {"kernel": "laplacian", "gamma": 0.3, "random_state": 0}
    with pytest.raises(Enough):
        KernelPCA(4, basis="points", **given).fit(X)
    assert "would take about" in stderr.text
    width = float(stderr.text.split("certified to ")[1].split()[0])
    quick = KernelPCA(4, basis="landmarks", **given).fit(X)
    assert width == pytest.approx(quick.certificate_.likely_widest, rel=0.5)


@pytest.mark.parametrize(
    "make",
    [KernelPCA, HebbianKernelPCA, SpectralClustering, ClassicalMDS],
    ids=lambda m: m.__name__,
)
def test_a_short_fit_says_nothing(make, monkeypatch):
    stderr = Stderr(True)
    monkeypatch.setattr(sys, "stderr", stderr)
    make(2).fit(rows(100))
    assert stderr.text == ""


def test_the_first_pass_knows_what_is_left():
    bar = PassBar(verbose=1)
    left, now = bar._bar.columns[-1], itertools.count(0, 10)
    bar._bar.get_time = lambda: next(now)
    with bar:
        bar.foresee(3 * 3600.0, "long")
        (task,) = bar._bar.tasks
        shown = left.render(task).plain
    hours, minutes, _ = map(int, shown.split(":"))
    assert 2.9 < hours + minutes / 60 < 3


@pytest.mark.parametrize("seconds", [np.nan, 0.0, 0.9 * LONG])
def test_nothing_is_foretold_of_what_is_short_or_unknown(seconds, capsys):
    PassBar(verbose=1).foresee(seconds, "long")
    assert "long" not in capsys.readouterr().err


WORKING = {
    "a share of the variance": lambda: KernelPCA(0.95, kernel="rbf"),
    "points": lambda: KernelPCA(5, kernel="laplacian", eigen_solver="krylov"),
    "landmarks": lambda: KernelPCA(5, kernel="rbf", basis="landmarks"),
    "hebbian": lambda: HebbianKernelPCA(3, kernel="rbf"),
    "another metric": lambda: ClassicalMDS(2, metric="cityblock"),
    "search": lambda: KernelPCASearch(),
    "clusters": lambda: SpectralClustering(3, basis="points"),
    "embedding": lambda: SpectralEmbedding(2, affinity="rbf"),
    "novelty": lambda: NoveltyDetector(),
    "pairs of tables": lambda: KernelCCA(2),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", WORKING)
def test_a_fit_that_works_long_says_so(case, monkeypatch):
    """In a terminal, also where nobody asked for it, with the time that is left."""
    stderr = Stderr(True)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr("mercer.progress.UNASKED", 1e-3)
    monkeypatch.setattr("mercer.progress.EVERY", 2e-3)
    X = rows(1200, seed=len(case))
    for _ in range(20):
        WORKING[case]().fit(X, *([X[:, :2]] if case == "pairs of tables" else []))
        if re.search(r"left \d+:\d\d", stderr.text):
            return
    raise AssertionError(f"no time left in {stderr.text!r}")


def test_the_time_left_without_a_prediction():
    """It is known from the first share of the first pass, and again when a prediction was wrong."""
    for seconds in (np.nan, 3.0):
        bar = PassBar(verbose=1)
        left, now = bar._bar.columns[-1], itertools.count(0, 1)
        bar._bar.get_time = lambda now=now: next(now)
        with bar:
            bar.foresee(seconds, "short")
            for done in range(1, 20):
                bar.tiles(done, 100)
            (task,) = bar._bar.tasks
            assert re.fullmatch(r"\d+:\d\d", left.render(task).plain)


def test_quiet_is_silent(monkeypatch):
    stderr = Stderr(True)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr("mercer.progress.UNASKED", 1e-3)
    KernelPCA(0.95, kernel="rbf", verbose=-1).fit(rows(800))
    assert not stderr.text


def test_lines_in_a_log(monkeypatch, capsys):
    """One now and then while the fit runs, none of a short fit, and none after it."""
    with PassBar(verbose=2, title="a title"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("mercer.progress.EVERY", 0.02)
    with PassBar(verbose=2, title="a title") as bar:
        bar.foresee(7200.0, "two hours")
        time.sleep(0.3)
    time.sleep(0.05)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "two hours" and len(lines) > 3
    assert all("a title" in line and "left 1:59" in line for line in lines[1:])
    time.sleep(0.1)
    assert capsys.readouterr().err == ""
