"""Notebook manners: estimators, certificates and plans as HTML, and bars without widgets."""

import builtins
import html.parser
import itertools
import sys
import types

import numpy as np
import pytest
import sklearn
from rich.progress import Progress

from mercer import ClassicalMDS, HebbianKernelPCA, KernelPCA, NoveltyDetector, SpectralClustering
from mercer._tables import html_table
from mercer.progress import NotebookProgress, PassBar
from mercer.solvers import PassState

X = np.random.default_rng(0).random((80, 4))
VOID = {"input", "br", "meta", "img", "hr", "link"}


class Balance(html.parser.HTMLParser):
    """Raises where a tag is closed that is not open."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def fitted():
    return KernelPCA(3, kernel="rbf", gamma="median").fit(X)


def added(model):
    """What stands after scikit-learn's own diagram, whose tables have no caption."""
    text = model._repr_mimebundle_()["text/html"]
    return text[text.index("<table><caption") :] if "<table><caption" in text else ""


def test_a_fitted_estimator_says_how_good_it_is(fitted):
    bundle = fitted._repr_mimebundle_()
    assert bundle["text/plain"] == repr(fitted)
    text = bundle["text/html"]
    assert "sk-container" in text
    for words in ("RBF(gamma=", "all 80 points", "certified bounds", "captured variance"):
        assert words in text
    assert fitted._repr_html_().count("certified bounds") == 1


def test_an_estimator_that_is_not_fitted_is_scikit_learns():
    assert added(KernelPCA(3)) == ""


def test_every_estimator_has_something_to_say():
    for model in (
        HebbianKernelPCA(2, kernel="rbf", n_passes=1),
        NoveltyDetector(3, holdout=0.4),
        SpectralClustering(2),
        ClassicalMDS(2),
        KernelPCA(2, kernel="rbf", basis="landmarks"),
    ):
        assert "Fitted" in added(model.fit(X)), model


def test_texts_are_escaped():
    model = KernelPCA(2).fit(X)
    model.kernel_ = "<script>alert(1)</script>"
    text = added(model)
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    assert "<i>" not in html_table(["<i>"], [["<i>"]], "<i>")


def test_display_as_text_is_respected(fitted):
    with sklearn.config_context(display="text"):
        assert "text/html" not in fitted._repr_mimebundle_()
        assert not hasattr(fitted, "_repr_html_")


def test_tables_are_whole_and_take_the_colors_of_the_page(fitted):
    """No color is set, so that light and dark pages are readable alike."""
    for thing in (fitted.certificate_, fitted.plan_):
        text = thing._repr_html_()
        assert "table" in Balance(text).seen
        assert "color" not in text
        assert "background" not in text


class Notebook:
    """As much of IPython as a bar needs: a shell of the right name, displays, their updates."""

    def __init__(self, monkeypatch):
        self.shown = []
        display = types.ModuleType("IPython.display")
        display.HTML, display.display = str, self.display
        package = types.ModuleType("IPython")
        package.display = display
        monkeypatch.setitem(sys.modules, "IPython", package)
        monkeypatch.setitem(sys.modules, "IPython.display", display)
        shell = type("ZMQInteractiveShell", (), {})()
        monkeypatch.setattr(builtins, "get_ipython", lambda: shell, raising=False)

    def display(self, content, display_id):
        assert display_id is True
        self.shown.append([content])
        return types.SimpleNamespace(update=self.shown[-1].append)


def test_a_bar_in_a_notebook(monkeypatch):
    """One display, drawn again and again, without ipywidgets and without a warning."""
    notebook = Notebook(monkeypatch)
    monkeypatch.setattr("time.monotonic", itertools.count(1).__next__)
    KernelPCA(3, kernel="rbf", eigen_solver="krylov", verbose=1).fit(X)
    assert len(notebook.shown) == 1
    drawings = notebook.shown[0]
    assert len(drawings) > 2
    assert "first pass" in drawings[1]
    assert "residual" in drawings[-1]
    assert "pre" in Balance(drawings[-1]).seen


def test_a_notebook_is_not_flooded(monkeypatch):
    notebook = Notebook(monkeypatch)
    monkeypatch.setattr("time.monotonic", lambda: 5.0)
    with PassBar(verbose=1, title="<i>title</i>") as progress:
        for i in range(100):
            progress.tiles(i, 100)
    assert len(notebook.shown[0]) <= 3
    assert not any("<i>" in drawing for drawing in notebook.shown[0])
    assert "&lt;i&gt;title" in notebook.shown[0][-1]


def test_time_left_never_grows(monkeypatch):
    """However the number of passes foreseen does."""
    now = [0.0]
    bar = PassBar(verbose=1)
    bar._bar.get_time = lambda: now[0]
    left = bar._bar.columns[-1]
    shown = []
    with bar:
        for k, residual in enumerate([1, 0.5, 0.4, 0.39, 0.38, 0.1, 1e-3, 1e-9], start=1):
            now[0] += 10.0
            bar.report(PassState(k, np.ones(2), residual, 1e-8))
            (task,) = bar._bar.tasks
            shown.append(left.render(task).plain)
    assert shown[0] == "0:50", "after one pass of 10 s, five more are a first guess"
    seconds = [int(text.split(":")[0]) * 60 + int(text.split(":")[1]) for text in shown[1:]]
    assert seconds == sorted(seconds, reverse=True) and seconds[0] > 0


def test_silence_in_a_notebook(monkeypatch):
    notebook = Notebook(monkeypatch)
    KernelPCA(3, kernel="rbf").fit(X)
    assert notebook.shown == []


def test_a_bar_in_a_terminal(capsys):
    progress = PassBar(verbose=1)
    assert isinstance(progress._bar, Progress)
    assert not isinstance(progress._bar, NotebookProgress)
    KernelPCA(3, kernel="rbf", eigen_solver="krylov", verbose=1).fit(X)
    out, err = capsys.readouterr()
    assert out == ""
    assert "kernel PCA" in err
