"""Long fits are foretold: how long, what would be faster, and how much is left."""

import io
import itertools
import os
import re
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from contracts import generator
from rich.console import Console

from mercer import (
    ClassicalMDS,
    HebbianKernelPCA,
    KernelCCA,
    KernelPCA,
    KernelPCASearch,
    NoveltyDetector,
    SpectralClustering,
    SpectralEmbedding,
    StreamingKernelPCA,
)
from mercer.bases import Landmarks
from mercer.files import open_source
from mercer.progress import LONG, PassBar, RowBar
from mercer.selectors import Uniform


class Enough(BaseException):
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
    for verbose in (-1, 0, 2):
        PassBar(verbose=verbose).foresee(seconds, "long")
    assert "long" not in capsys.readouterr().err
    PassBar(verbose=1).foresee(seconds, "asked for")
    assert capsys.readouterr().err == "asked for\n"


SAYING = {
    "points": (lambda: KernelPCA(3, kernel="rbf", gamma=0.2, verbose=1), "dense|arpack|krylov"),
    "landmarks": (lambda: KernelPCA(3, kernel="rbf", basis=UNIFORM, verbose=1), "landmarks"),
    "hebbian": (lambda: HebbianKernelPCA(3, kernel="rbf", verbose=1), "Hebbian"),
    "clusters": (lambda: SpectralClustering(3, basis="points", verbose=1), "arpack|krylov|dense"),
}


@pytest.mark.filterwarnings("ignore:.* landmarks were asked for", "ignore:The affinities fall")
@pytest.mark.parametrize("case", SAYING)
def test_a_fit_that_is_watched_says_method_and_time_first(case, capsys):
    """Also one that takes no time; the bar comes after."""
    make, method = SAYING[case]
    make().fit(rows(400))
    lines = capsys.readouterr().err.splitlines()
    said = [k for k, line in enumerate(lines) if re.search(rf"({method}).*, about [\d.]+ ", line)]
    bars = [k for k, line in enumerate(lines) if "left" in line]
    assert len(said) == 1 and (not bars or said[0] < bars[0]), lines


@pytest.mark.parametrize("seed", range(3))
def test_the_first_pass_over_a_text_knows_what_is_left(seed, tmp_path):
    """The rows are estimated by the size of the file, wrong as the first rows may be."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(300, 5000)), int(rng.integers(1, 9))
    np.savetxt(tmp_path / "rows.csv", rng.standard_normal((n, d)), delimiter=",", fmt="%.6g")
    source = open_source(tmp_path / "rows.csv")
    assert source.n_rows is None and 0.7 * n < source.likely_rows < 1.4 * n
    for likely in (source.likely_rows, n // 2, 2 * n):
        console = Console(file=io.StringIO(), width=100, force_terminal=True)
        left = []
        with RowBar(1, console) as bar:
            for _ in bar.over(source.blocks(64), "rows", likely):
                (task,) = bar._bar.tasks
                left.append(bar._bar.columns[-1].render(task).plain)
        assert re.fullmatch(r"\d+:\d\d", left[1]), left
        assert task.completed == task.total == n


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
    "stream": lambda: StreamingKernelPCA(2, budget=300, novelty=0.0),
    "batches": lambda: Batches(2, budget=100),
}


class Batches(HebbianKernelPCA):
    """Learns all rows as one batch."""

    def fit(self, X):
        return self.partial_fit(X)


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


class Failing:
    """A stream that may be a terminal, whose every use fails from the one with this number on."""

    def __init__(self, error, works, terminal):
        self.error, self.works, self.terminal = error, works, terminal

    def _use(self):
        self.works -= 1
        if self.works < 0:
            raise self.error

    def write(self, text):
        self._use()

    def flush(self):
        self._use()

    def isatty(self):
        self._use()
        return self.terminal


def closed_pipe():
    reading, writing = os.pipe()
    os.close(reading)
    return io.TextIOWrapper(io.FileIO(writing, "w"), write_through=True)


def closed_file():
    stream = io.StringIO()
    stream.close()
    return stream


GONE = {
    "none": lambda rng: None,
    "a closed file": lambda rng: closed_file(),
    "a pipe without a reader": lambda rng: closed_pipe(),
    "letters that it lacks": lambda rng: io.TextIOWrapper(io.BytesIO(), "ascii", "strict"),
    "read-only": lambda rng: io.TextIOWrapper(io.BufferedReader(io.BytesIO())),
    "an error at any use": lambda rng: Failing(
        rng.choice([BrokenPipeError, OSError, ValueError, RuntimeError, AttributeError])("gone"),
        int(rng.integers(0, 12)),
        bool(rng.integers(2)),
    ),
}
SHORT_FITS = {
    "points": lambda v: KernelPCA(2, kernel="rbf", verbose=v).fit(rows(60)),
    "krylov": lambda v: KernelPCA(2, eigen_solver="krylov", tol=1e-6, verbose=v).fit(rows(60)),
    "blocks": lambda v: KernelPCA(2, kernel="rbf", basis=Landmarks(5), verbose=v).fit(
        lambda: iter([rows(60)])
    ),
    "hebbian": lambda v: HebbianKernelPCA(2, kernel="rbf", n_passes=2, verbose=v).fit(rows(60)),
    "stream": lambda v: StreamingKernelPCA(2, budget=9, verbose=v).fit(rows(60)),
    "clusters": lambda v: SpectralClustering(2, gamma="median", verbose=v).fit(rows(60)),
    "mds": lambda v: ClassicalMDS(2, verbose=v).fit(rows(60)),
}


@contextmanager
def gone_stderr(stream):
    """A stderr that is closed in the end, as far as it can be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        yield
    with suppress(AttributeError, OSError, ValueError):
        stream.detach().close()


@pytest.mark.parametrize("gone", GONE)
def test_a_stderr_that_goes_away_does_not_end_a_fit(gone, monkeypatch):
    """Bars, lines of a log, announcements and warnings are dropped, and the fit goes on."""
    rng = generator(17)
    monkeypatch.setattr("mercer.progress.EVERY", 0.001)
    for fit in SHORT_FITS.values():
        for verbose in (1, 2):
            monkeypatch.setattr("mercer.progress.LONG", float(rng.choice([-1.0, 1e9])))
            with gone_stderr(GONE[gone](rng)):
                fit(verbose)


def test_a_warning_on_a_closed_stderr_does_not_end_a_fit(monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", lambda text, *_: sys.stderr.write(str(text)))
    with warnings.catch_warnings(), gone_stderr(closed_file()):
        warnings.simplefilter("always")
        KernelPCA(3, kernel="rbf", gamma=1e9).fit(rows(60))  # which warns of gamma


def test_a_command_whose_stderr_is_closed_does_its_work(tmp_path):
    """What it warns of is dropped; it once wrote nothing, and ended with success."""
    np.savetxt(tmp_path / "x.csv", np.c_[np.arange(60), rows(60)], delimiter=",")
    command = [sys.executable, "-m", "mercer", "fit", "x.csv", "-o", "m.mercer"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, cwd=tmp_path, stderr=writing)
    os.close(writing)
    assert done.returncode == 0 and (tmp_path / "m.mercer").exists()
