"""Checks of parameters: scikit-learn's meaning, without its private modules."""

import ast
from dataclasses import dataclass
from inspect import Parameter
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mercer
from mercer import KernelPCA
from mercer.estimators._checks import Interval, StrOptions, checks_of, one_of, rules
from mercer.estimators._door import Door
from mercer.exceptions import InvalidParameterError

ROOT = Path(mercer.__file__).parent
ESTIMATORS = [name for name in mercer.__all__ if isinstance(getattr(mercer, name), type)]

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(2**32 - 2, 2**32 + 2),
    st.floats(-3, 3),
    st.sampled_from(
        [0.0, 1.0, np.inf, -np.inf, np.nan, np.float32(0.5), np.int64(1), np.bool_(True)]
    ),
    st.sampled_from(
        ["auto", "rbf", "", {}, {"a": 1}, [], [1, 2], (), len, np.ones(2), np.array(1.0)]
    ),
    st.sampled_from([np.random.RandomState(0), np.random.default_rng(0), object(), int]),
)
bounds = st.tuples(
    st.one_of(st.none(), st.integers(-2, 0)), st.one_of(st.none(), st.integers(1, 3))
)
sides = st.sampled_from(["left", "right", "both", "neither"])


def peer():
    return pytest.importorskip("sklearn.utils._param_validation")


@given(value=values, word=st.sampled_from(["boolean", "verbose", "random_state"]))
def test_words_mean_what_they_mean_in_scikit_learn(value, word):
    assert allowed(word, value) == peer().make_constraint(word).is_satisfied_by(value)


@given(value=values, kind=st.sampled_from([dict, str, Integral, Real, callable, None]))
def test_kinds_mean_what_they_mean_in_scikit_learn(value, kind):
    assert allowed(kind, value) == peer().make_constraint(kind).is_satisfied_by(value)


@settings(max_examples=300)
@given(value=values, ends=bounds, closed=sides, kind=st.sampled_from([Integral, Real]))
def test_intervals_mean_what_they_mean_in_scikit_learn(value, ends, closed, kind):
    try:
        theirs = peer().Interval(kind, *ends, closed=closed)
    except ValueError:
        return  # it has no integers up to infinity included
    ours = Interval(kind, *ends, closed=closed)
    assert ours.allows(value) == theirs.is_satisfied_by(value)
    assert ours.words == str(theirs)


def allowed(constraint, value):
    return any(rule.allows(value) for rule in rules(constraint))


@dataclass(eq=False, repr=False)
class Some(Door):
    width: Annotated[Any, Interval(Real, 0, None), StrOptions({"median", "auto"}), None] = None
    other: Any = 1


def test_the_message_lists_all_that_is_allowed():
    text = (
        r"^The 'width' parameter of Some must be a float in the range \(0.0, inf\), a str among "
        r"\{'auto', 'median'\} or None. Got 'wide' instead.$"
    )
    with pytest.raises(InvalidParameterError, match=text):
        Some("wide")._validate_params()
    for width in (None, "auto", 2, 0.5):
        Some(width, other=object())._validate_params()


def test_lists_of_words():
    assert [one_of(list(words)) for words in ("a", "ab", "abc")] == ["a", "a or b", "a, b or c"]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_refuses_what_it_does_not_allow(name):
    """Each parameter that is checked refuses an object of no use, by its name."""
    kind = getattr(mercer, name)
    assert issubclass(kind, Door)
    for parameter, _, _ in checks_of(kind):
        with pytest.raises(InvalidParameterError, match=f"The '{parameter}' parameter of {name}"):
            kind(**{parameter: object()})._validate_params()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_default_is_allowed(name):
    """Defaults are not checked in a fit, so they are here."""
    for parameter, default, allowed in checks_of(getattr(mercer, name)):
        if default is not Parameter.empty:
            assert any(rule.allows(default) for rule in allowed), parameter


def test_a_refused_parameter_is_a_value_error_and_a_type_error():
    for error in (ValueError, TypeError):
        with pytest.raises(error, match="'degree' parameter of KernelPCA must be a float"):
            KernelPCA(degree="three").fit(np.eye(3))


def private_imports(text):
    """Private modules and names of scikit-learn that a source imports."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sklearn":
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("sklearn")]
        else:
            continue
        yield from (name for name in names if "._" in name)


def test_no_private_module_of_scikit_learn():
    private = {
        str(path.relative_to(ROOT)): found
        for path in ROOT.rglob("*.py")
        if (found := list(private_imports(path.read_text())))
    }
    assert private.keys() <= {str(Path("estimators/_output.py"))}
    seen = "from sklearn.utils._a import b\nfrom sklearn.utils import _c\nimport sklearn.utils._d"
    assert len(list(private_imports(seen))) == 3
