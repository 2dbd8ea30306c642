"""What an estimator has once it is fitted is declared on its class: set there, saved, documented."""

import inspect
import re

import numpy as np
import pytest
from contracts import generator

import mercer
from mercer import estimators
from mercer.estimators._door import Door, Fitted

X = generator(3).standard_normal((60, 4))
Y = np.column_stack([X[:, 0] ** 2, X[:, 1]])
IMAGE = generator(4).random((24, 24))
# Every estimator in the ways that set different attributes.
WAYS = {
    "KernelPCA": [
        {},
        {"basis": "landmarks"},
        {"fit_inverse_transform": True},
        {"basis": "columns"},
    ],
    "SupervisedKernelPCA": [{}, {"kernel": "rbf", "basis": "landmarks"}],
    "KernelCCA": [{}, {"kernel": "rbf"}],
    "HebbianKernelPCA": [{"n_components": 2, "n_passes": 2}],
    "StreamingKernelPCA": [{"n_components": 2}, {"n_components": 2, "basis": "features"}],
    "SpectralClustering": [
        {"n_clusters": 2, "gamma": 0.2},
        {"n_clusters": 2, "basis": "landmarks"},
    ],
    "SpectralEmbedding": [{"n_neighbors": 20}, {"affinity": "rbf", "basis": "landmarks"}],
    "DiffusionMap": [{}, {"basis": "landmarks"}],
    "ClassicalMDS": [{}, {"landmarks": 20}, {"metric": "cityblock"}],
    "NoveltyDetector": [{}],
    "Nystroem": [{"n_components": 10}],
    "KernelPCASearch": [{"noise": 0.1, "n_components": 2}],
    "PatchDenoiser": [{"patch_size": 4}],
}
CASES = [(name, options) for name, ways in WAYS.items() for options in ways]


def fitted(name, options):
    options = options | ({"random_state": 0} if "random_state" in parameters(name) else {})
    model = vars(estimators).get(name, getattr(mercer, name))(**options)
    if name == "PatchDenoiser":
        return model.fit(IMAGE)
    return model.fit(X, Y) if model._needs_target else model.fit(X)


def parameters(name):
    return inspect.signature(getattr(mercer, name)).parameters


def test_every_estimator_is_tried():
    classes = {name for name in estimators.__all__ if isinstance(getattr(mercer, name), type)}
    assert classes == set(WAYS)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_what_a_fit_sets_is_declared(name, options):
    model = fitted(name, options)
    declared, params = type(model)._fitted, model.get_params(deep=False)
    undeclared = vars(model).keys() - declared.keys() - params.keys()
    assert not undeclared
    assert {name for name, one in declared.items() if one.always} <= vars(model).keys()


def test_an_attribute_that_is_not_declared_fails():
    class Extended(mercer.KernelPCA):
        def _attributes(self, result, plan, task):
            return super()._attributes(result, plan, task) | {"new_": 1}

    with pytest.raises(TypeError, match="does not declare.*new_"):
        Extended(2).fit(X)

    class Declared(Extended):
        _fitted = Extended._fitted | {"new_": Fitted(int)}

    assert Declared(2).fit(X).new_ == 1


@pytest.mark.parametrize("name", WAYS)
def test_what_is_declared_is_documented_and_the_other_way_round(name):
    """Public attributes, and those of a class whose docstring names another's."""
    kind = getattr(mercer, name)
    section = re.search(
        r"\n    Attributes\n    -+\n(.*?)(?=\n    [A-Z][\w ]+\n    -+\n|\Z)", kind.__doc__, re.S
    )
    documented = set(
        re.findall(
            r"\b[a-zA-Z]\w*_\b",
            "\n".join(line for line in section[1].splitlines() if re.match(r"    \S", line)),
        )
    )
    declared = {attribute for attribute in kind._fitted if not attribute.startswith("_")}
    made = {
        n
        for n, value in inspect.getmembers(kind)
        if isinstance(value, property) and n.endswith("_")
    }
    assert declared <= documented | {"significance_"}, declared - documented
    assert documented <= declared | made, documented - declared - made


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_refused_fit_leaves_nothing_behind(name, options):
    if name == "PatchDenoiser":
        return
    model = fitted(name, options)
    before = dict(vars(model))
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError):
        model.fit(bad, Y) if model._needs_target else model.fit(bad)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def pipelines():
    """Estimators whose fit is that of the door."""
    return [
        (n, o)
        for n, o in CASES
        if "_posing" in {k for c in getattr(mercer, n).__mro__ for k in vars(c) if c is not Door}
    ]


@pytest.mark.parametrize(("name", "options"), pipelines())
def test_a_problem_can_be_asked_for_its_result_twice(name, options, monkeypatch):
    seen = []
    kind = getattr(mercer, name)
    original = kind._adopt

    def twice(self, result, plan, task):
        if hasattr(result, "problem") and hasattr(result, "pairs"):
            again = result.problem.result(result.pairs)
            first = vars(result)["certificate"]
            for one, other in (
                (first.eigenvalue_lower, again.certificate.eigenvalue_lower),
                (first.eigenvalue_upper, again.certificate.eigenvalue_upper),
            ):
                np.testing.assert_array_equal(one, other)
            seen.append(name)
        return original(self, result, plan, task)

    monkeypatch.setattr(kind, "_adopt", twice)
    fitted(name, options)
    assert seen or name == "KernelCCA"
