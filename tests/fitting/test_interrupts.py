"""An interrupt at any line of a fit leaves the model that was there before, and nothing mixed."""

import pickle
import re
import sys
import warnings
from contextlib import suppress
from linecache import getline

import numpy as np
import pytest

import mercer
from mercer import (
    ClassicalMDS,
    HebbianKernelPCA,
    KernelCCA,
    KernelPCA,
    NoveltyDetector,
    ProcessMonitor,
    SpectralClustering,
    StreamingKernelPCA,
    SupervisedKernelPCA,
)
from mercer.bases import Landmarks

HERE = mercer.__path__[0]
MODELS = {
    "krylov": lambda: KernelPCA(3, kernel="rbf", gamma=0.2, eigen_solver="krylov", n_jobs=1),
    "landmarks": lambda: KernelPCA(3, kernel="rbf", gamma=0.2, basis=Landmarks(30), n_jobs=1),
    "inverse": lambda: KernelPCA(3, kernel="rbf", gamma=0.2, fit_inverse_transform=True, n_jobs=1),
    "stream": lambda: StreamingKernelPCA(3, kernel="rbf", gamma=0.2, budget=30, n_jobs=1),
    "novelty": lambda: NoveltyDetector(3, gamma=0.2, random_state=0, n_jobs=1),
    "monitor": lambda: ProcessMonitor(3, gamma=0.2, false_alarms=0.2, n_jobs=1),
    "clusters": lambda: SpectralClustering(3, gamma=0.2, random_state=0, n_jobs=1),
    "mds": lambda: ClassicalMDS(2, random_state=0, n_jobs=1),
    "supervised": lambda: SupervisedKernelPCA(2, kernel="rbf", gamma=0.2, n_jobs=1),
    "supervised landmarks": lambda: SupervisedKernelPCA(
        2, kernel="rbf", gamma=0.2, basis=Landmarks(30), random_state=0, n_jobs=1
    ),
    "cca": lambda: KernelCCA(2, kernel="rbf", gamma=0.2, n_jobs=1),
}


# All that is left to do once the new model is there.
AFTER = ("return self", "if kept is not None:")
# A trace function is asked once more between the body of a ``with`` and its end, where Python does
# not look for signals: an error there would leave a lock locked that no interrupt leaves so.
LOCKS = re.compile(r"with .*lock\b")


class Lines:
    """Counts the lines of mercer that run, and interrupts one of them."""

    def __init__(self, stop=None):
        self.stop, self.count, self.at = stop, 0, ""

    def __call__(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(HERE):
            return None
        if event == "line":
            self.count += 1
            if self.count == self.stop:
                self.at = getline(frame.f_code.co_filename, frame.f_lineno).strip()
                if LOCKS.match(self.at):
                    self.stop += 1
                    return self
                sys.settrace(None)
                raise KeyboardInterrupt
        return self

    def run(self, work):
        before = sys.gettrace()  # a debugger's, or that of coverage
        sys.settrace(self)
        try:
            work()
        finally:
            sys.settrace(before)


def state(model):
    return pickle.dumps({k: v for k, v in vars(model).items() if k not in ("_kept", "_engine")})


def given(name, X):
    """What a fit takes: rows, and for some a target or another view of them."""
    return (X, np.sin(X[:, :2])) if name.startswith(("supervised", "cca")) else (X,)


def check(name, work, draws):
    rng = np.random.default_rng()
    A, B = (rng.standard_normal((120, 3)) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name]().fit(*given(name, A))
        total = Lines()
        total.run(lambda: work(pickle.loads(pickle.dumps(model)), B))
        for stop in rng.integers(1, total.count, draws):
            model = MODELS[name]().fit(*given(name, A))
            before = state(model)
            lines = Lines(int(stop))
            try:
                lines.run(lambda model=model: work(model, B))
            except KeyboardInterrupt:
                ended = lines.at in AFTER
                assert ended or state(model) == before, f"{lines.at}: line {stop} of {total.count}"


@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_refit_leaves_the_old_model(name):
    check(name, lambda model, X: model.fit(*given(name, X)), 4)


def test_an_interrupted_batch_leaves_the_stream():
    check("stream", lambda model, X: model.partial_fit(X), 6)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_hundred_moments(name):
    check(name, lambda model, X: model.fit(*given(name, X)), 100)
    if name == "stream":
        check(name, lambda model, X: model.partial_fit(X), 100)


@pytest.mark.parametrize("work", ["fit", "partial_fit"])
def test_an_interrupt_among_the_last_lines_of_a_stream(work):
    """Where it says what the user may not expect, nothing has been taken over yet."""
    X = np.random.default_rng(3).standard_normal((120, 3))
    stored, total = pickle.dumps(MODELS["stream"]().fit(X)), Lines()
    total.run(lambda: getattr(pickle.loads(stored), work)(X))
    for back in range(10, 120, 10):
        model = pickle.loads(stored)
        before = state(model)
        try:
            Lines(total.count - back).run(lambda model=model: getattr(model, work)(X))
        except KeyboardInterrupt:
            assert state(model) == before, f"{back} lines before the end"


def test_an_interrupted_first_fit_leaves_nothing():
    X = np.random.default_rng().standard_normal((120, 3))
    for stop in np.random.default_rng().integers(1, 400, 5):
        model = KernelPCA(3, kernel="rbf", gamma=0.2, eigen_solver="krylov", n_jobs=1)
        with pytest.raises(KeyboardInterrupt):
            Lines(int(stop)).run(lambda model=model: model.fit(X))
        assert not [key for key in vars(model) if key.endswith("_") and not key.startswith("_")]


def test_an_interrupted_hebbian_stream_is_whole_blocks():
    """Its interrupts end the rows, not the model: what is there works."""
    rng = np.random.default_rng()
    X = rng.standard_normal((200, 3))
    for stop in rng.integers(50, 2000, 4):
        model = HebbianKernelPCA(3, kernel="rbf", gamma=0.2, budget=60).partial_fit(X[:80])
        with suppress(KeyboardInterrupt):
            Lines(int(stop)).run(lambda model=model: model.partial_fit(X[80:]))
        assert np.isfinite(model.transform(X)).all()
