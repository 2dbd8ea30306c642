"""Checks of parameters: scikit-learn's meaning, without its private modules."""

import ast
import warnings
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from inspect import Parameter, signature
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from hostile import unclear
from hypothesis import given, settings
from hypothesis import strategies as st

import mercer
from mercer import KernelPCA, KernelPCASearch, PatchDenoiser
from mercer.bases import BasisRecipe, Landmarks
from mercer.estimators._checks import Interval, StrOptions, checks_of, one_of, rules
from mercer.estimators._door import Door
from mercer.exceptions import InvalidParameterError
from mercer.kernels import RBF, DirectKernel, Kernel, Linear
from mercer.preimage import Preimage
from mercer.saving.parts import RECIPES
from mercer.selectors import Selector
from mercer.solvers import BlockKrylov, Solver

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
    theirs = peer().make_constraint(kind).is_satisfied_by(value)
    # A class, such as RBF for RBF(), is no function to us.
    assert allowed(kind, value) == (theirs and not (kind is callable and isinstance(value, type)))


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


RIGHT = abs(np.random.default_rng(5).standard_normal((20, 2)))
PATH = {  # how a part is tried
    Selector: lambda part: KernelPCA(2, kernel="rbf", basis=Landmarks(5, part), random_state=0),
    Solver: lambda part: KernelPCA(2, kernel="rbf", eigen_solver=part, random_state=0),
    BasisRecipe: lambda part: KernelPCA(2, kernel="rbf", basis=part, random_state=0),
    Preimage: lambda part: KernelPCA(2, kernel="rbf", preimage=part),
    Kernel: lambda part: KernelPCA(2, kernel=part),
}


def names_of(part):
    """Parameters of a part that odd values are tried for."""
    return sorted(signature(part).parameters.keys() - {"args", "params", "kernel", "kernels"})


NEEDED = {"kernel": RBF(), "kernels": [RBF(), Linear()], "function": lambda A, B: np.eye(len(A))}
PARTS = [part for part in RECIPES if issubclass(part, tuple(PATH)) and names_of(part)]
ODD = [True, np.True_, 0, -1, -0.0, "", "1e400MB", [], (), {}, [[1], [2, 3]], 1e30, 1e308, np.inf]
ODD += [np.nan, 10**400, 2**63, 1j, None, np.int8(3), np.uint64(2), np.float32(0.5), b"x", object()]
ODD += [np.array(2), np.array([2]), np.array([np.nan, 1]), int, len, Fraction(1, 2), Decimal("0.5")]
ENDLESS = {"n_passes", "n_init"}  # a number that large is what was asked for


def odd_case(seed):
    """A model with an odd value for one parameter, of its own or of a part."""
    rng = np.random.default_rng([24, seed])
    value = ODD[rng.integers(len(ODD))]
    if rng.random() < 0.4:
        kind = getattr(mercer, ESTIMATORS[rng.integers(len(ESTIMATORS))])
        names = sorted(kind().get_params(deep=False).keys() - {"verbose", "checkpoint", "device"})
        settings = {"patch_size": 3} if kind is mercer.PatchDenoiser else {"random_state": 0}
        settings |= {"n_neighbors": 4} if kind is mercer.Isomap else {}
        make = lambda **params: kind(**settings | params)  # noqa: E731
    else:
        part = PARTS[rng.integers(len(PARTS))]
        names = names_of(part)
        given = {name: NEEDED[name] for name in NEEDED.keys() & signature(part).parameters.keys()}
        wrap = next(PATH[kind] for kind in PATH if issubclass(part, kind))
        make = lambda **params: wrap(part(**given | params))  # noqa: E731
    name = names[rng.integers(len(names))]
    is_endless = name in ENDLESS and isinstance(value, int) and value > 5
    return make, name, 1 if is_endless else value


def test_odd_values_of_parameters_are_served_or_refused_in_words():
    """NumPy's numbers overflowed, fractions have no roots, and parts checked nothing: 250 draws."""
    faults = []
    for seed in range(250):
        make, name, value = odd_case(seed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.simplefilter("error", RuntimeWarning)
                model = make(**{name: value})
                y = RIGHT[:, :1] ** 2
                model.fit(RIGHT, y) if model._needs_target else model.fit(RIGHT)
                if str(model.get_params().get("preimage", "auto")) != "auto":
                    model.inverse_transform(model.transform(RIGHT[:3]))
        except (ValueError, TypeError) as error:
            what = unclear(error)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
        else:
            what = ""
        if what:
            faults.append(f"{seed}: {name}={value!r:.40}: {what}")
    assert not faults, "\n".join(faults)


def test_numbers_of_parts_are_not_changed_where_the_user_has_them():
    kernel = RBF(gamma=np.float32(0.5))
    model = KernelPCA(
        np.int8(2), kernel=kernel, eigen_solver=BlockKrylov(oversampling=np.uint64(3))
    )
    model.fit(RIGHT)
    assert type(kernel.gamma) is np.float32
    assert model.n_components == 2


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


def test_parts_that_users_wrote_may_name_their_parameters_as_they_like():
    class Worded(DirectKernel):
        def __init__(self, size="large", kind=3):
            self.size, self.kind = size, kind

        def fill(self, X, Z, out):
            out[...] = np.asarray(X) @ np.asarray(Z).T
            return out

        def diag(self, X):
            return np.sum(np.asarray(X) ** 2, axis=1)

    X = np.random.default_rng(3).normal(size=(30, 4))
    values = KernelPCA(2, kernel=Worded()).fit(X).eigenvalues_
    np.testing.assert_allclose(values, KernelPCA(2).fit(X).eigenvalues_, rtol=1e-8)


@pytest.mark.parametrize(
    "model", [KernelPCASearch(noise=1e300), PatchDenoiser(noise=1e300)], ids=repr
)
def test_noise_whose_square_is_out_of_range(model):
    """It was taken, and `denoise` raised OverflowError."""
    with pytest.raises(ValueError, match="'noise' parameter of"):
        model.fit(np.random.default_rng(0).random((12, 12)))
