"""Warnings: of our own category, at the user's line; errors: a family that says what to do."""

import ast
import re
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from contracts import generator
from sklearn.model_selection import GridSearchCV, cross_val_score

import mercer
from mercer import ClassicalMDS, KernelPCA
from mercer.bases import Landmarks
from mercer.cli.frame import heard_warnings
from mercer.exceptions import MercerError, MercerWarning, tell
from mercer.selectors import Uniform


@pytest.fixture(scope="module")
def X():
    return generator(61).standard_normal((61, 4))


def heard(action):
    """What a user with Python's own filters sees of an action."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        action()
    return [one for one in told if issubclass(one.category, UserWarning)]


def test_warnings_name_the_line_of_the_user(X):
    """Also through scikit-learn, whose folds and searches call us."""
    model = KernelPCA(2, kernel="rbf", gamma=0.2, basis=Landmarks(500, Uniform()))
    search = GridSearchCV(model, {"gamma": [0.1, 0.2]}, cv=3)
    actions = (model.fit, search.fit, lambda X: cross_val_score(model, X, cv=5))
    for act in actions:
        told = heard(partial(act, X))
        assert told and all(one.filename == __file__ for one in told)
        assert all(issubclass(one.category, MercerWarning) for one in told)
        assert "500 landmarks were asked for" in str(told[0].message)


def test_too_many_landmarks_of_distances(X):
    with pytest.warns(MercerWarning, match="landmarks=99 is more than n_samples=61"):
        found = ClassicalMDS(2, landmarks=99, random_state=0).fit(X)
    exact = ClassicalMDS(2).fit(X)
    signs = np.sign(np.sum(found.embedding_ * exact.embedding_, axis=0))
    np.testing.assert_allclose(signs * found.embedding_, exact.embedding_, atol=1e-6)


# All messages of the library, read from its source.

WORDS = (
    "Add Ask Begin Bring Check Choose Clip Combine Convert Delete Draw Fill Fit "
    "Give Guard Install Leave Make Name Open Pass Plan Raise Remove Rename "
    "Reshape Run Save Say Scale See Set Shift Start Take Try Upgrade Use Write "
)
ADVICE = re.compile(
    rf"\b({'|'.join(WORDS.split())})\b|\bmust\b|\bneed|\bexpect|\bonly\b|\bat (least|most)\b|"
    r"\bknown\b|\b[Vv]alid\b|minimum|\b(give|pass|use|choose|instead|cannot|such as)\b|\{\}$"
)
# Kinds that reach users from the Python API; a fragment in lower case ends another sentence.
REFUSALS = ("ValueError", "InvalidRowsError", "CheckpointError", "FileNotFoundError")


def messages():
    """(place, kind, text) of every literal message, with {} for what is filled in."""
    root = Path(mercer.__file__).parent
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                kind, text = ast.unparse(node.exc.func), literal(node.exc.args[0])
                yield f"{path.relative_to(root)}:{node.lineno}", kind, text


def literal(node) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(part) for part in node.values)
    return "{}"


def test_messages_are_sentences_that_say_what_to_do():
    """All name a remedy or what is expected, and end as sentences do."""
    found = [
        (place, text)
        for place, kind, text in messages()
        if kind in REFUSALS and (text[:1].isupper() or text.startswith("{}")) and " " in text
    ]
    assert len(found) > 150
    unfinished = [place for place, text in found if not re.search(r"([.!?)]|\{\})$", text)]
    assert not unfinished
    silent = [f"{place} {text}" for place, text in found if not ADVICE.search(text)]
    assert not silent, "\n".join(silent)


def test_errors_are_one_family():
    """Each can be caught by its own kind, by MercerError, and as a ValueError."""
    own = [
        kind
        for kind in vars(mercer.exceptions).values()
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning)
    ]
    assert len(own) == 5
    for kind in own:
        assert issubclass(kind, MercerError)
        assert kind is MercerError or issubclass(kind, ValueError)
    with pytest.raises(MercerError):
        KernelPCA(n_components=-1).fit(np.ones((3, 3)))
    with pytest.raises(MercerError):
        KernelPCA().fit([[1, 2], [3]])
    with pytest.raises(MercerError):
        mercer.load(__file__)


NARROW = {
    "KernelPCA": lambda **k: mercer.KernelPCA(3, kernel="rbf", **k),
    "landmarks": lambda **k: mercer.KernelPCA(3, kernel="rbf", basis=Landmarks(40), **k),
    "NoveltyDetector": lambda **k: mercer.NoveltyDetector(3, **k),
    "StreamingKernelPCA": lambda **k: mercer.StreamingKernelPCA(3, kernel="rbf", **k),
    "HebbianKernelPCA": lambda **k: mercer.HebbianKernelPCA(3, kernel="rbf", **k),
    "SupervisedKernelPCA": lambda **k: mercer.SupervisedKernelPCA(1, kernel="rbf", **k),
}


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("seed", range(3))
def test_a_width_that_makes_the_kernel_matrix_the_identity(name, seed):
    """One warning, which names a width that would do; none with that width, nor with others."""
    rng = np.random.default_rng(seed)
    d = int(rng.choice([3, 20, 60]))
    X = rng.standard_normal((150, d)) * float(rng.choice([0.01, 1.0, 100.0]))
    y = np.arange(150) % 3
    measured = mercer.kernels.RBF("median").resolve(X).gamma
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        NARROW[name](gamma=1e4 * measured, random_state=0).fit(X, y)
    told = [str(one.message) for one in told if "too large" in str(one.message)]
    assert len(told) == 1
    assert "gamma='median'" in told[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for factor in (0.1, 1.0, 2.0):
            NARROW[name](gamma=factor * measured, random_state=0).fit(X, y)


def test_a_stream_says_once_that_its_kernel_is_too_narrow():
    X = np.random.default_rng(0).standard_normal((90, 5))
    for make in (mercer.StreamingKernelPCA, mercer.HebbianKernelPCA):
        model = make(2, kernel="rbf", gamma=1e4, random_state=0)
        with pytest.warns(mercer.exceptions.MercerWarning, match="gamma=10000 is too large"):
            model.partial_fit(X[:30])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.partial_fit(X[30:60]).partial_fit(X[60:])


# Warnings in the command, whose users know options and no names of the library.

# Not fitted, or not read, by any command.
PYTHON_ONLY = {
    "anndata.py",
    "estimators/cca.py",
    "estimators/novelty.py",
    "estimators/search.py",
    "estimators/streaming.py",
    "rows/frames.py",
}
LIBRARY_NAMES = {
    "an attribute": r"\w+_\b(?!\w)",
    "code": r"`|\w{2}\(|\bmercer\.\w",
    "a parameter with a value": r"\b\w+=",
    "a parameter": r"\b[a-z]+_[a-z_]+\b",
}


def told_texts():
    """(place, text, sentence for Python) of every warning and note, read from the source."""
    root = Path(mercer.__file__).parent
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        place = path.relative_to(root)
        # The `tell` of a report moves a bar, and bases give advice to errors.
        if place.parts[0] == "report" or str(place) in PYTHON_ONLY | {"bases/fourier_grid.py"}:
            continue
        for node in ast.walk(tree):
            texts = []
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if name == "tell" and node.args:
                    extra = [one.value for one in node.keywords if one.arg == "python"]
                    extra += node.args[2:3]
                    texts = [(node.args[0], literal(extra[0]) if extra else "")]
                elif name == "notes.append":
                    texts = [(node.args[0], "")]
                elif name == "cls" and len(node.args) > 3:
                    texts = [(node.args[3], "")]
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in (
                "warning",
                "advice",
                "if_used",
                "note",
                "INDEFINITE",
                "NO_VARIANCE",
            ):
                texts = [(node.value, "")]
            for text, extra in texts:
                text = literal(text).replace("{}", "7")
                if re.search(r"[a-z]{3}", text):
                    yield f"{place}:{node.lineno}", text, extra


def test_warnings_of_the_command_name_options_only():
    """No attribute, class or parameter of the library is in a warning that a command raises."""
    found = list(told_texts())
    assert len(found) > 40
    wrong = []
    for place, text, extra in found:
        lines = []
        with heard_warnings(True, lines):
            tell(text, python=extra)
        for what, pattern in LIBRARY_NAMES.items():
            for name in re.findall(pattern, lines[0]):
                wrong.append(f"{place} has {what}, {name!r}: {lines[0]}")
    assert not wrong, "\n".join(wrong)


def test_what_only_python_can_do_is_said_in_python_only():
    lines = []
    with heard_warnings(True, lines):
        tell("Something is off.", python="Raise it in f(x=1).")
    assert lines == ["Something is off."]
    with pytest.warns(MercerWarning, match=r"^Something is off. Raise it in f\(x=1\).$"):
        tell("Something is off.", python="Raise it in f(x=1).")
