"""What an estimator has once it is fitted is declared on its class, and follows from that."""

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
        {"kernel": "rbf", "basis": "landmarks"},
        {"fit_inverse_transform": True},
        {"basis": "columns"},
    ],
    "SupervisedKernelPCA": [{}, {"kernel": "rbf", "basis": "landmarks"}],
    "KernelCCA": [{}, {"kernel": "rbf"}],
    "HebbianKernelPCA": [{"n_components": 2, "n_passes": 2}],
    "StreamingKernelPCA": [{"kernel": "rbf"}, {"kernel": "rbf", "basis": "features"}],
    "SpectralClustering": [
        {"n_clusters": 2, "gamma": 0.2},
        {"n_clusters": 2, "gamma": 0.2, "basis": "landmarks"},
    ],
    "SpectralEmbedding": [{"n_neighbors": 20}, {"affinity": "rbf", "basis": "landmarks"}],
    "DiffusionMap": [{}, {"basis": "landmarks"}],
    "ClassicalMDS": [{}, {"landmarks": 20}, {"metric": "cityblock"}],
    "Isomap": [{}, {"landmarks": 20}],
    "NoveltyDetector": [{}],
    "ProcessMonitor": [{"false_alarms": 0.1}, {"false_alarms": 0.1, "lags": 1}],
    "Nystroem": [{"n_components": 10}],
    "KernelPCASearch": [{"noise": 1.0, "n_components": 3}],
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

    with pytest.raises(TypeError, match=r"does not declare.*new_"):
        Extended(2).fit(X)

    class Declared(Extended):
        _fitted = Extended._fitted | {"new_": Fitted(int)}

    assert Declared(2).fit(X).new_ == 1


SECTION = r"\nAttributes\n-+\n(.*?)(?=\n[A-Z][\w ]+\n-+\n|\Z)"


@pytest.mark.parametrize("name", WAYS)
def test_what_is_declared_is_documented_and_the_other_way_round(name):
    kind = getattr(mercer, name)
    section = re.search(SECTION, inspect.getdoc(kind), re.DOTALL)[1]
    heads = [line for line in section.splitlines() if re.match(r"\S", line)]
    documented = set(re.findall(r"\b[a-zA-Z]\w*_\b", "\n".join(heads)))
    set_by_fits = {a for options in WAYS[name] for a in vars(fitted(name, options))}
    declared = {a for a in kind._fitted if a in set_by_fits and not a.startswith("_")}
    members = inspect.getmembers(kind, lambda value: isinstance(value, property))
    assert declared <= documented, declared - documented
    assert documented <= kind._fitted.keys() | {member for member, _ in members}


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


#: An estimator on the pipeline says how its problem is posed, in one of two ways.
POSING = ("_posing", "_problem")
PIPELINES = [
    (name, options)
    for name, options in CASES
    if any(
        vars(Door).get(hook) is not getattr(getattr(mercer, name), hook, None) for hook in POSING
    )
]


@pytest.mark.parametrize(("name", "options"), PIPELINES)
def test_a_problem_can_be_asked_for_its_result_twice(name, options, monkeypatch):
    kind, asked = getattr(mercer, name), []
    adopt = kind._adopt

    def ask_again(self, result, plan, task):
        again, asked[:] = result.problem.result(result.pairs), [result]
        for end in ("eigenvalue_lower", "eigenvalue_upper"):
            first, second = (getattr(one.certificate, end) for one in (result, again))
            np.testing.assert_array_equal(first, second)
        return adopt(self, result, plan, task)

    monkeypatch.setattr(kind, "_adopt", ask_again)
    fitted(name, options)
    assert asked
