"""A fit by states, which any engine makes and merges, is the fit of one array."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from contracts import generator
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import mercer
from mercer import KernelPCA, SpectralClustering, SupervisedKernelPCA
from mercer.bases import FourierGrid, Landmarks, RandomFeatures
from mercer.rows import State

N = 700
RNG = generator(36)
X = np.sin(RNG.standard_normal((N, 2)) @ RNG.standard_normal((2, 3))) + 0.1 * RNG.random((N, 3))
WEIGHTS, LABELS = RNG.integers(0, 4, N).astype(float), np.array(list("abc"))[RNG.integers(0, 3, N)]
RBF = {"kernel": "rbf", "random_state": 0, "memory": "200MB"}

WAYS = {
    "chosen landmarks": KernelPCA(3, gamma="median", basis=Landmarks(40), **RBF),
    "an error": KernelPCA(3, gamma=0.5, basis=Landmarks(error=0.02), **RBF),
    "given landmarks": KernelPCA(3, gamma=0.5, basis=Landmarks(points=X[:25]), **RBF),
    "auto": KernelPCA(0.6, gamma=9.0, **RBF),
    "features": KernelPCA(2, gamma="median", basis=RandomFeatures(60), **RBF),
    "a grid": KernelPCA(2, gamma=0.5, basis=FourierGrid(tol=1e-3), **RBF),
    "columns": KernelPCA(2, basis="columns", random_state=0),
    "uncentered": KernelPCA(2, gamma="median", basis=Landmarks(40), center=False, **RBF),
}


def batches(rng, *arrays):
    """The number of the first row, and batches of drawn lengths, some of them empty."""
    ends = np.sort(rng.integers(0, N + 1, 6))
    ends = [0, *ends, ends[-1], N]
    return [(i, *(A[i:j] for A in arrays)) for i, j in pairwise(ends)]


def fitted(model, rng, form=np.asarray, **beside):
    """The model of drawn batches, sent elsewhere and merged in any order."""
    model = clone(model)
    while model.stage != "fitted":
        with pytest.raises(NotFittedError):
            check_is_fitted(model)
        there, states = pickle.loads(pickle.dumps(model)), []
        for first, rows, *parts in batches(rng, X, *beside.values()):
            given = dict(zip(beside, parts, strict=True))
            state = there.partial(form(rows), first_row=first, **given)
            states.append(bytes(state) if rng.random() < 0.5 else pickle.loads(pickle.dumps(state)))
        rng.shuffle(states)
        states = [mercer.merge(states[:2]), *states[2:]] if rng.random() < 0.5 else states
        assert model.advance(mercer.merge(states)) is model
    return model


def check_same(found, wanted):
    assert_allclose(found.eigenvalues_, wanted.eigenvalues_, rtol=1e-9)
    assert_allclose(found.transform(X), wanted.transform(X), atol=1e-8)
    one, other = found.certificate_, wanted.certificate_
    assert_allclose(one.eigenvalue_upper, other.eigenvalue_upper, rtol=1e-6)
    assert_allclose(one.captured_variance, other.captured_variance, rtol=1e-6)
    if hasattr(wanted, "landmarks_"):
        np.testing.assert_array_equal(found.landmarks_, wanted.landmarks_)


@pytest.mark.parametrize("model", WAYS.values(), ids=WAYS)
def test_merged_states_give_the_model_of_one_array(model):
    # Of an array in one place "auto" takes all points; of blocks that are read, what states take.
    wanted = clone(model)
    if model.basis == "auto":
        wanted.set_params(basis="landmarks")
    wanted.fit(lambda: iter([X]))
    check_same(fitted(model, generator(37)), wanted)


def arrow(rows):
    pa = pytest.importorskip("pyarrow")
    return pa.table({name: rows[:, i] for i, name in enumerate("xyz")})


def test_batches_of_any_kind(tmp_path):
    pa = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    rng, model = generator(38), WAYS["chosen landmarks"]
    wanted = clone(model).fit(X)
    forms = {
        "table": arrow,
        "record batch": lambda rows: pa.RecordBatch.from_arrays(list(rows.T), list("xyz")),
        "more columns": lambda rows: arrow(rows).append_column("text", pa.array(["a"] * len(rows))),
        "polars": lambda rows: polars.from_arrow(arrow(rows)),
        "pandas": lambda rows: arrow(rows).to_pandas(),
    }
    for form in forms.values():
        there = fitted(model, rng, form)
        assert_allclose(there.eigenvalues_, wanted.eigenvalues_, rtol=1e-9)
        assert list(there.feature_names_in_) == list("xyz")
    np.save(tmp_path / "rows.npy", X)
    one = clone(model)
    while one.stage != "fitted":
        one.advance(one.partial(tmp_path / "rows.npy", first_row=0))
    assert_allclose(one.eigenvalues_, wanted.eigenvalues_, rtol=1e-9)


def test_weights_and_a_target_stand_beside_batches():
    pytest.importorskip("pyarrow")
    model = WAYS["chosen landmarks"]
    there = fitted(model, generator(39), sample_weight=WEIGHTS)
    wanted = clone(model).fit(lambda: iter([X]), sample_weight=WEIGHTS)
    assert_allclose(there.eigenvalues_, wanted.eigenvalues_, rtol=1e-9)
    assert_allclose(there._weights, wanted._weights)
    for y in (LABELS, X[:, 0] ** 2, RNG.integers(0, 3, N)):
        model = SupervisedKernelPCA(1, gamma="median", basis=Landmarks(40), **RBF)
        there = fitted(model, generator(40), y=y)
        wanted = clone(model).fit(lambda: iter([X]), y)
        assert_allclose(there.eigenvalues_, wanted.eigenvalues_, rtol=1e-9)
        assert there.target_ == wanted.target_


def test_without_numbers_any_cut_gives_rows_of_the_data_and_a_valid_certificate():
    model = KernelPCA(3, gamma=0.5, basis=Landmarks(40), **RBF)
    exact = KernelPCA(3, gamma=0.5, basis="points", **RBF).fit(X).eigenvalues_
    for seed in range(3):
        there = clone(model)
        while there.stage != "fitted":
            cut = batches(generator(seed), X)
            there.advance(mercer.merge(there.partial(rows) for _, rows in cut))
        assert {tuple(row) for row in there.landmarks_} <= {tuple(row) for row in X}
        certificate = there.certificate_
        assert (certificate.eigenvalue_lower <= exact * (1 + 1e-12)).all()
        assert (certificate.eigenvalue_upper >= exact * (1 - 1e-12)).all()


def states_of(model, rows=X):
    return [
        model.partial(part, first_row=100 * i) for i, part in enumerate(np.array_split(rows, 7))
    ]


def test_states_that_do_not_belong_together_are_refused():
    model = KernelPCA(3, gamma="median", basis=Landmarks(40), **RBF)
    survey = states_of(model)
    later = clone(model).advance(mercer.merge(survey))
    moments, half = states_of(later), clone(model).advance(mercer.merge(survey[:4]))
    other = clone(model).set_params(n_components=2)
    old = replace(survey[0], layout=replace(survey[0].layout, version=0))
    names, more = pytest.importorskip("pyarrow") and arrow(X), np.column_stack([X, X])
    refused = [
        (lambda: mercer.merge([survey[0], *states_of(other)]), "models with other parameters"),
        (lambda: mercer.merge([survey[0], moments[1]]), "different passes: 'survey' and 'moments'"),
        (lambda: mercer.merge([moments[0], *states_of(half)]), "took in other states before"),
        (lambda: mercer.merge([survey[0], model.partial(names)]), "rows with other columns"),
        (lambda: mercer.merge([survey[0], model.partial(more)]), "other numbers of columns"),
        (lambda: mercer.merge([survey[0], model.partial(X.astype("f4"))]), "rows of other types"),
        (
            lambda: mercer.merge([survey[0], model.partial(X, sample_weight=WEIGHTS)]),
            "other y or sample_weight",
        ),
        (lambda: mercer.merge([*survey[1:], old]), "releases of mercer whose sums differ: "),
        (lambda: mercer.merge([]), "no states to merge"),
        (lambda: mercer.merge([b"nothing"]), "7 bytes are no state of mercer"),
        (lambda: clone(other).advance(survey[0]), "models with other parameters"),
        (lambda: clone(model).advance(mercer.merge(moments)), "another pass ('moments')"),
        (lambda: pickle.loads(pickle.dumps(later)).advance(survey[0]), "another pass ('survey')"),
        (lambda: pickle.loads(pickle.dumps(later)).advance(moments[0]), "needs the states of all"),
        (lambda: later.partial(more), "was fitted to 3|is expecting 3"),
        (lambda: later.partial(X, sample_weight=WEIGHTS), "other y or sample_weight"),
        (lambda: model.partial(X, sample_weight=-WEIGHTS), "negative weight"),
        (lambda: model.partial(X, sample_weight=WEIGHTS[:9]), "9 values for 700 rows"),
        (lambda: model.partial(np.where(X > 0.5, np.nan, X)), "NaN"),
        (lambda: clone(model).set_params(random_state=None).partial(X), "needs random_state="),
        (lambda: clone(model).set_params(checkpoint="c").partial(X), "no checkpoint="),
        (lambda: clone(model).set_params(basis="points").partial(X), "only sums are known"),
        (lambda: clone(model).set_params(basis=Landmarks(indices=[1])).partial(X), "only sums are"),
        (
            lambda: (
                clone(model).set_params(kernel="gower").partial(arrow(X).to_pandas().assign(x="a"))
            ),
            "batches of numbers",
        ),
        (lambda: clone(model).fit(X).partial(X), "The model is fitted"),
        (lambda: clone(model).advance(clone(model).partial(X[:1])), "two at least"),
    ]
    for call, words in refused:
        with pytest.raises(ValueError) as caught:
            call()
            pytest.fail(f"not refused: {words}")
        assert any(word in str(caught.value) for word in words.split("|")), str(caught.value)
    with pytest.raises(TypeError, match="merge takes what"):
        mercer.merge([X])
    assert later.stage == "moments" and not hasattr(later, "expansion_")
    assert not hasattr(SpectralClustering(), "partial")


def test_damaged_bytes_are_refused():
    rng, state = generator(41), bytes(states_of(WAYS["chosen landmarks"])[0])
    assert mercer.merge([memoryview(state)]).n_rows == N // 7
    for _ in range(40):
        damaged = bytearray(state)
        for place in rng.integers(0, len(state), 3):
            damaged[place] ^= int(rng.integers(1, 256))
        cut = bytes(damaged[: rng.integers(0, len(state))])
        for data in (bytes(damaged), cut):
            with pytest.raises(ValueError, match=r"no state of mercer|releases of mercer"):
                mercer.merge([data, state])
                assert bytes(mercer.merge([data])) != state, "nothing was damaged"


def test_a_model_that_fails_on_the_way_stays_where_it_was():
    model = clone(WAYS["chosen landmarks"])
    model.advance(mercer.merge(states_of(model)))
    before, moments = model.stage, mercer.merge(states_of(model))
    with pytest.raises(ValueError):
        model.advance(states_of(clone(model))[0])
    assert model.stage == before == "moments"
    model.advance(moments)
    again = model.transform(X)
    model.fit(X[:300])
    assert model.stage == "fitted" and not np.array_equal(model.transform(X), again)
    assert isinstance(moments, State)
