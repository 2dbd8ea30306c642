"""Warnings: of our own category, at the user's line, once for a line and not once a fold."""

import ast
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from contracts import generator
from sklearn.model_selection import GridSearchCV, cross_val_score

import mercer
from mercer import ClassicalMDS, KernelPCA
from mercer.bases import Landmarks
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


def test_folds_warn_once(X):
    """Folds of other sizes, and so other numbers in the message."""
    model = KernelPCA(2, kernel="rbf", gamma=0.2, basis=Landmarks(500, Uniform()))
    (one,) = heard(lambda: cross_val_score(model, X, cv=5))
    assert "size=500 is more than the 48 rows" in str(one.message) and one.filename == __file__
    assert issubclass(one.category, MercerWarning)
    search = GridSearchCV(model, {"gamma": [0.1, 0.2, 0.4]}, cv=3)
    assert len(heard(lambda: search.fit(X))) == 1


def test_other_lines_and_other_advice_are_heard(X):
    def act():
        tell("3 of 5 rows")
        tell("4 of 5 rows")
        tell("4 of 5 columns")

    assert [str(one.message) for one in heard(act)] == [
        "3 of 5 rows",
        "4 of 5 rows",  # another line
        "4 of 5 columns",
    ]

    def again():
        for i in range(4):
            tell(f"{i} of 1.5e-{i} rows")
            tell(f"{i} of 1,000 columns")

    assert [str(one.message) for one in heard(again)] == ["0 of 1.5e-0 rows", "0 of 1,000 columns"]


@pytest.mark.parametrize(("action", "count"), [("always", 4), ("ignore", 0)])
def test_who_wants_to_hear_all_or_nothing_does(action, count):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter(action)
        for i in range(4):
            tell(f"{i} rows")
    assert len(told) == count
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="never", category=MercerWarning)
        for _ in range(2):
            with pytest.raises(MercerWarning):
                tell("never again")


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
    r"\bknown\b|minimum|\b(give|pass|use|choose|instead|cannot|such as)\b|\{\}$"
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
