"""Kernels of objects by a function of two blocks: fits, new objects, number of values."""

import pickle
import tracemalloc
import warnings
from difflib import SequenceMatcher

import numpy as np
import oracle
import pandas as pd
import pytest
from contracts import generator

import mercer
from mercer import KernelPCA
from mercer.bases import Landmarks
from mercer.kernels import RBF, BlockFunction
from mercer.selectors import SELECTORS, GreedyCholesky, RPCholesky, Uniform


def words(n, seed=0):
    rng = generator(seed, n)
    return ["".join(rng.choice(list("abcdef"), rng.integers(4, 12))) for _ in range(n)]


def counts(A):
    """How often each pair of letters comes, (n, 36)."""
    pairs = [a + b for a in "abcdef" for b in "abcdef"]
    return np.array([[1e-3 * i + word.count(pair) for i, pair in enumerate(pairs)] for word in A])


def spectrum(A, B):
    return np.exp(-((counts(A)[:, None] - counts(B)[None]) ** 2).sum(axis=2) / 4)


class Counting:
    """A function that counts the values it is asked for."""

    def __init__(self, function=spectrum):
        self.function, self.values = function, 0

    def __call__(self, A, B):
        self.values += len(A) * len(B)
        return self.function(A, B)


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda A: np.array(A, dtype=object)])
def test_exact_components_of_strings(kind):
    X, new = words(60), words(9, 1)
    K = spectrum(X, X)
    model = KernelPCA(3, kernel=BlockFunction(spectrum, definite=True)).fit(kind(X))
    values, _ = oracle.eigenpairs(K, 3)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    expected = oracle.scores(spectrum(new, X), K, 3)
    np.testing.assert_allclose(abs(model.transform(kind(new))), abs(expected), atol=1e-7)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.transform(new), model.transform(new))
    np.testing.assert_allclose(model.fit_transform(kind(X)), model.transform(kind(X)), atol=1e-7)


@pytest.mark.parametrize("selector", [None, Uniform(), RPCholesky(), GreedyCholesky()], ids=str)
@pytest.mark.parametrize(("n", "m"), [(1000, 100), (400, 60)])
def test_landmarks_ask_for_no_more_than_they_need(selector, n, m):
    """n m + m^2 values at most, the certificate included, which is true."""
    X, function = words(n), Counting()
    kernel = BlockFunction(function, definite=True)
    model = KernelPCA(4, kernel=kernel, basis=Landmarks(m, selector), random_state=0).fit(X)
    assert function.values <= n * m + m * m
    values = np.linalg.eigvalsh(oracle.center(spectrum(X, X)))[::-1][:4]
    certificate = model.certificate_
    assert (certificate.eigenvalue_lower <= values * (1 + 1e-9)).all()
    assert (certificate.eigenvalue_upper >= values * (1 - 1e-9)).all()
    function.values = 0
    model.transform(words(20, 2))
    assert function.values <= 20 * m + 16  # a few for the check of symmetry


@pytest.mark.parametrize("name", SELECTORS)
def test_every_selector_asks_for_no_more(name):
    """Those that compare all candidates have fewer of them; those that average rows are refused."""
    rng, selector = generator(len(name)), SELECTORS[name]()
    for n in rng.integers(100, 300, 2):
        m = int(rng.integers(np.sqrt(n) + 3, n // 4))
        X, function = words(n, m), Counting()
        kernel = BlockFunction(function, definite=True)
        model = KernelPCA(2, kernel=kernel, basis=Landmarks(m, selector), random_state=0)
        if selector.needs_points:
            with pytest.raises(ValueError, match=f"{name} chooses by the coordinates of rows"):
                model.fit(X)
            continue
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.fit(X)
        assert function.values <= n * m + m * m
        sparing = any("n m + m^2 kernel values" in str(one.message) for one in told)
        assert sparing != selector.reads_chosen


def test_exact_fits_ask_once():
    X, function = words(300), Counting()
    KernelPCA(4, kernel=BlockFunction(function, definite=True), basis="points").fit(X)
    assert function.values <= 1.1 * 300**2


def test_many_new_objects_do_not_stay():
    X = words(40)
    model = KernelPCA(2, kernel=BlockFunction(spectrum, definite=True)).fit(X)
    for seed in range(60):
        model.transform(words(5, seed))
    assert len(model._encoding.lots) <= 20
    X[0] = "changed"
    expected = KernelPCA.transform(model, tuple(X))
    np.testing.assert_allclose(model.transform(X), expected)
    assert not np.allclose(model.transform(X)[0], model.transform(words(40))[0])


def test_any_objects():
    """Series of any length, sets, and arrays whose rows are one object each."""

    def alike(A, B):
        return np.array([[SequenceMatcher(None, list(a), list(b)).ratio() for b in B] for a in A])

    series = [tuple(generator(i).integers(0, 4, 3 + i % 5)) for i in range(30)]
    similar = BlockFunction(lambda A, B: (alike(A, B) + alike(B, A).T) / 2)
    assert KernelPCA(2, kernel=similar).fit_transform(series).shape == (30, 2)

    def images(A, B):
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=(2, 3)))

    stack = generator(4).standard_normal((30, 3, 2))
    model = KernelPCA(2, kernel=BlockFunction(images, definite=True)).fit(stack)
    expected = KernelPCA(2, kernel="rbf", gamma=1.0).fit(stack.reshape(30, 6))
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_)


@pytest.mark.parametrize(
    ("function", "words_"),
    [
        (lambda A, B: 1.0, r"shape \(\) .*is expected"),
        (lambda A, B: np.ones((len(A) + 1, len(B))), "is expected"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "not finite"),
        (lambda A, B: "what", "numbers of shape"),
        (lambda A, B: np.array([[len(a) - 2.0 * len(b) for b in B] for a in A]), "not symmetric"),
    ],
)
def test_functions_that_are_no_kernels(function, words_):
    with pytest.raises(ValueError, match=words_):
        KernelPCA(2, kernel=BlockFunction(function)).fit(words(20))


def test_what_objects_cannot_do(tmp_path):
    model = KernelPCA(2, kernel=BlockFunction(spectrum, definite=True)).fit(words(20))
    sets = KernelPCA(2, kernel=BlockFunction(spectrum)).fit([UserWord(word) for word in words(9)])
    with pytest.raises(ValueError, match=r"UserWord.*holds no code"):
        sets.save(tmp_path / "model.mercer")
    with pytest.raises(ValueError, match="fit_inverse_transform"):
        KernelPCA(2, kernel=BlockFunction(spectrum), fit_inverse_transform=True).fit(words(20))
    with pytest.raises(ValueError, match="no pre-images"):
        model.inverse_transform(model.transform(words(3)))
    with pytest.raises(ValueError, match="checkpoint"):
        KernelPCA(2, kernel=BlockFunction(spectrum), checkpoint=tmp_path / "c").fit(words(20))
    table = pd.DataFrame({"word": words(5), "other": words(5, 1)})
    for wrong in ("one", b"one", table, dict(table), set(words(5)), (word for word in words(5))):
        with pytest.raises(ValueError, match="list or array of objects"):
            model.transform(wrong)
    params = KernelPCA(2, kernel=BlockFunction(spectrum)).get_params()
    assert params["kernel__definite"] is False


class UserWord:
    """A class of the user's, of which a file can hold nothing."""

    def __init__(self, word):
        self.count = word.count


def stacks(n, seed=0):
    return generator(seed, n).standard_normal((n, 3, 2))


def series(n, seed=0):
    rng = generator(seed, n)
    return [rng.standard_normal(int(rng.integers(2, 6))) for _ in range(n)]


def of_stacks(A, B):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=(2, 3)))


def of_series(A, B):
    A, B = ([[np.sum(a), np.max(a)] for a in some] for some in (A, B))
    return np.exp(-((np.array(A)[:, None] - np.array(B)[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("basis", ["points", Landmarks(30)], ids=str)
@pytest.mark.parametrize(
    ("make", "function"),
    [
        (words, spectrum),
        (lambda *which: np.array(words(*which)), spectrum),
        (lambda *which: np.array(words(*which), dtype=object), spectrum),
        (stacks, of_stacks),
        (series, of_series),
        (lambda *which: [tuple(map(float, one)) for one in series(*which)], of_series),
    ],
)
def test_models_of_objects_are_saved_without_their_function(make, function, basis, tmp_path):
    X, new, path = make(200), make(9, 1), tmp_path / "model.mercer"
    model = KernelPCA(3, kernel=BlockFunction(function, definite=True), basis=basis).fit(X)
    expected = model.transform(new)
    model.save(path)
    unset = mercer.load(path)
    with pytest.raises(ValueError, match=r"load\(path, kernel_function=f\)"):
        unset.transform(new)
    for _ in range(2):  # what is loaded is saved again
        model = mercer.load(path, kernel_function=function)
        np.testing.assert_allclose(model.transform(new), expected, rtol=1e-9, atol=1e-12)
        again = model.transform(X[:3])
        np.testing.assert_allclose(model.transform(X[:3]), again)
        model.save(path)
    stored = model._encoding.stored_fields()["items"]
    assert len(stored) == model.expansion_.basis.size
    assert pickle.loads(pickle.dumps(model)).transform(new).shape == (9, 3)
    assert model.fit(X[:60]).transform(new).shape == (9, 3)


def test_a_function_where_there_is_none(tmp_path):
    KernelPCA(2).fit(stacks(20)[:, 0]).save(tmp_path / "m")
    with pytest.raises(ValueError, match="Leave kernel_function out"):
        mercer.load(tmp_path / "m", kernel_function=spectrum)


@pytest.mark.parametrize("kind", [lambda b: b + RBF(), lambda b: 0.5 * b, lambda b: (b * b) ** 2])
@pytest.mark.parametrize("X", [words(20), stacks(20)[:, 0]], ids=["words", "numbers"])
def test_block_functions_stand_alone(kind, X):
    with pytest.raises(ValueError, match=r"compares objects.*write one function"):
        KernelPCA(2, kernel=kind(BlockFunction(spectrum))).fit(X)
    with pytest.raises(ValueError, match="A BlockFunction compares objects"):
        mercer.plan((100, 2), kernel=kind(BlockFunction(spectrum)))


def test_other_uses_of_objects():
    X, kernel = words(80), BlockFunction(spectrum, definite=True)
    assert mercer.plan(X, kernel=kernel, n_components=2).method
    assert mercer.NoveltyDetector(2, kernel=kernel).fit(X).score_samples(X[:4]).shape == (4,)
    model = KernelPCA(2, kernel=kernel).fit(X)
    assert model.report(X).scores.shape == (80, 2)
    assert "Objects have no columns" in model.report(X).attribution
    for stream in mercer.StreamingKernelPCA, mercer.HebbianKernelPCA:
        with pytest.raises(ValueError, match="does not keep objects of earlier batches"):
            stream(2, kernel=kernel).partial_fit(X)
    with pytest.raises(ValueError, match="does not keep objects of earlier batches"):
        mercer.StreamingKernelPCA(2, kernel=kernel).fit(X)
    for fitted in model, mercer.SupervisedKernelPCA(1, kernel=kernel).fit(X, np.arange(80.0)):
        with pytest.raises(ValueError, match="Objects have no columns"):
            fitted.attribute(X)
    with pytest.raises(ValueError, match="objects, categories and missing entries have none"):
        mercer.select(X, 5, kernel=kernel)


@pytest.mark.parametrize("basis", ["points", "landmarks"])
def test_known_values_stay_in_the_budget(basis):
    """All that is alive at once, values that are kept for later included."""
    memory, X = 8_000_000, [float(x) for x in generator(8).standard_normal(2000)]

    def near(A, B):
        K = np.subtract.outer(np.asarray(A), np.asarray(B))
        np.abs(K, out=K)
        np.negative(K, out=K)
        return np.exp(K, out=K)

    model = KernelPCA(2, kernel=BlockFunction(near, definite=True), basis=basis, memory=memory)
    tracemalloc.start()
    try:
        model.fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= memory
    kept = sum(column.nbytes for column in model._encoding.columns.values())
    assert 0 < kept <= memory // 8
