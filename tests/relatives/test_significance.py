"""How many components are real: false positives at the stated rate, known ranks, stability."""

import numpy as np
import pytest
from contracts import generator, peak_bytes
from scipy import sparse
from scipy.stats import binom
from sklearn.base import clone

from mercer import KernelPCA, StreamingKernelPCA, kernels, load
from mercer.bases import Landmarks
from mercer.relatives.explaining import (
    coordinates,
    drawn_again,
    significance_of,
    spectrum,
)
from mercer.report import write_report
from mercer.selectors import Uniform


def planted(n, d, rank, key, signal=4.0):
    """Rank-r signal in noise of unit variance."""
    rng = generator(400, key)
    Q = np.linalg.qr(rng.standard_normal((d, rank)))[0]
    sizes = signal * np.linspace(1.3, 1.0, rank)
    return (rng.standard_normal((n, rank)) * sizes) @ Q.T + rng.standard_normal((n, d))


@pytest.mark.parametrize("name", ["linear", "rbf", "laplacian", "cosine"])
@pytest.mark.parametrize("alpha", [0.1, 0.25])
def test_noise_is_called_real_as_often_as_stated(name, alpha):
    """Independent columns of any distribution: a share alpha of the draws at most."""
    draws, found = 60, 0
    for key in range(draws):
        rng = generator(401, key)
        X = np.column_stack(
            [rng.standard_normal(30), rng.exponential(size=30), rng.uniform(size=30)]
        )
        kernel = kernels.KERNELS[name]().resolve(X)
        result = significance_of(
            kernel, X, 2, True, rng, level=alpha, n_permutations=19, n_bootstrap=0
        )
        found += result.n_significant > 0
    assert found <= binom.ppf(1 - 1e-6, draws, alpha)
    # The test is exact, and not merely safe: it does call noise real now and then.
    assert found >= binom.ppf(1e-6, draws, alpha * 0.8)


@pytest.mark.parametrize("rank", [0, 1, 3, 5])
@pytest.mark.parametrize("basis", ["points", "columns", "landmarks"])
def test_known_ranks_are_found(basis, rank):
    X = planted(300, 12, rank, rank) if rank else generator(402).standard_normal((300, 12))
    basis = Landmarks(12) if basis == "landmarks" else basis
    model = KernelPCA(8, kernel="linear", basis=basis, random_state=0).fit(X)
    found = model.significance(level=0.02, n_permutations=99, random_state=0)
    assert found.n_significant == rank
    assert f"{rank} of 8 components stand above noise" in repr(found)
    assert (np.diff(found.p_values) >= 0).all() and (found.p_values > 0).all()


def test_clusters_and_circles_stand_above_noise():
    """Structure that only a kernel sees, in columns that are not correlated."""
    rng = generator(403)
    t = rng.uniform(0, 2 * np.pi, 400)
    ring = np.column_stack([np.cos(t), np.sin(t)]) + 0.05 * rng.standard_normal((400, 2))
    curved = KernelPCA(6, kernel="rbf", gamma=2.0).fit(ring).significance(random_state=0)
    assert curved.n_significant >= 2
    centers = 6 * np.eye(4)
    groups = centers[rng.integers(4, size=400)] + rng.standard_normal((400, 4))
    found = KernelPCA(6, kernel="rbf", gamma="median").fit(groups).significance(random_state=0)
    assert found.n_significant >= 3
    assert found.stability[:3].min() > 0.5


def ring_and_noise(rng):
    angle = rng.uniform(0, 2 * np.pi, 150)
    ring = np.column_stack([np.cos(angle), np.sin(angle), np.zeros((150, 3))])
    return ring + 0.1 * rng.standard_normal(ring.shape)


def three_groups(rng):
    centers = 3 * rng.standard_normal((3, 5)) / np.sqrt(5)
    return centers[rng.integers(3, size=150)] + rng.standard_normal((150, 5))


def one_direction(rng):
    return 2 * rng.standard_normal((80, 1)) / np.sqrt(5) + rng.standard_normal((80, 5))


@pytest.mark.parametrize(
    "draw, least_both, most_more",
    [(ring_and_noise, 13, 2), (three_groups, 11, 2), (one_direction, 0, 3)],
)
def test_both_components_are_found_and_no_more(draw, least_both, most_more):
    """Of 20 draws, at a level of 5 %: two components of one size, two of three, and one alone."""
    true, found = (1 if draw is one_direction else 2), []
    for key in range(20):
        rng = generator(410, key)
        X = draw(rng)
        kernel = kernels.RBF("median").resolve(X)
        options = {"level": 0.05, "n_permutations": 39, "n_bootstrap": 0}
        found.append(significance_of(kernel, X, 4, True, rng, **options).n_significant)
    assert sum(count >= true for count in found) >= (least_both or 20)
    assert sum(count > true for count in found) <= most_more


def test_the_first_component_stands_above_the_noise_that_is_printed():
    """It does so where, and only where, it is said to."""
    verdicts = set()
    for key in range(20):
        rng = generator(412, key)
        X = rng.lognormal(size=(90, 4)) if key % 2 else rng.standard_normal((90, 4))
        X[:, 1] += (key % 3) * 0.2 * X[:, 0]
        for kernel in (kernels.RBF(gamma=0.1 * (1 + key % 5)), kernels.Linear()):
            options = {"level": 0.05, "n_permutations": 39, "n_bootstrap": 0}
            found = significance_of(kernel, X, 3, True, rng, **options)
            above = found.eigenvalues[0] > found.null_upper[0]
            assert above == (found.n_significant > 0), key
            verdicts.add(bool(above))
    assert verdicts == {True, False}


@pytest.mark.parametrize("rank", [1, 3])
def test_columns_with_unequal_noise_are_no_components(rank):
    """Few of 20 draws have one too many, and what counts exceeds the noise that is printed."""
    more = 0
    for key in range(20):
        rng = generator(411, key)
        Q = np.linalg.qr(rng.standard_normal((12, rank)))[0]
        X = 3 * rng.standard_normal((150, rank)) @ Q.T
        X += rng.uniform(0.3, 1.2, 12) * rng.standard_normal((150, 12))
        options = {"level": 0.05, "n_permutations": 39, "n_bootstrap": 0}
        found = significance_of(kernels.Linear(), X, 5, True, rng, **options)
        count = found.n_significant
        assert count >= rank
        assert (found.eigenvalues[:count] >= found.null_upper[:count] * (1 - 1e-9)).all()
        more += count > rank
    assert more <= 8


def test_real_components_are_stable_and_noise_is_not():
    X = planted(400, 10, 2, 7, signal=5.0)
    found = KernelPCA(6, kernel="linear").fit(X).significance(random_state=0)
    assert found.subspace_stability[1] > 0.97
    assert found.subspace_stability[2] < 0.9
    assert found.stability[3:].max() < 0.9
    # Two directions of equal variance turn into each other, and their plane stays.
    rng = generator(404)
    X = rng.standard_normal((400, 6)) * [5, 5, 1, 1, 1, 1]
    found = KernelPCA(4, kernel="linear").fit(X).significance(random_state=0)
    assert found.subspace_stability[1] > 0.97 > found.subspace_stability[0]


def test_draws_by_weights_are_draws_of_rows():
    """A draw on coordinates has the components of the kernel matrix of the rows drawn."""
    X = generator(405).standard_normal((40, 3))
    kernel = kernels.RBF(0.3)
    Y = coordinates(kernel, X, np.ones(len(X)), 13, True)
    assert Y.shape[1] >= 39
    w = generator(406).multinomial(40, np.full(40, 1 / 40))
    rows = np.repeat(np.arange(40), w)
    wanted = spectrum(kernel, X[rows], np.ones(len(rows)), 5, True)[0]
    Z = np.repeat(Y, w, axis=0)
    Z = Z - Z.mean(axis=0)
    np.testing.assert_allclose(np.linalg.eigvalsh(Z.T @ Z / 40)[::-1][:5], wanted, rtol=1e-6)
    single, together = drawn_again(
        np.diag([9.0, 4.0, 1.0])[:, :3], np.ones(3), 2, False, 0, generator(1)
    )
    np.testing.assert_array_equal(single, [0, 0])
    np.testing.assert_array_equal(together, [0, 0])


def test_eigenvalues_are_those_of_the_model():
    X = generator(407).standard_normal((80, 4))
    for kernel in ("linear", "rbf", "poly"):
        for center in (True, False):
            model = KernelPCA(4, kernel=kernel, center=center).fit(X)
            found = model.significance(random_state=0, n_bootstrap=2)
            np.testing.assert_allclose(80 * found.eigenvalues, model.eigenvalues_, rtol=1e-6)


def test_all_kinds_of_rows_and_models(tmp_path):
    X = planted(200, 6, 2, 8)
    model = KernelPCA(4, kernel="rbf", gamma="median", basis=Landmarks(30), random_state=0).fit(X)
    wanted = model.significance(X, random_state=3)
    np.save(tmp_path / "rows.npy", X)
    for source in (str(tmp_path / "rows.npy"), sparse.csr_matrix(X)):
        found = model.significance(source, random_state=3)
        np.testing.assert_allclose(found.eigenvalues, wanted.eigenvalues, rtol=1e-9)
        assert found.n_significant == wanted.n_significant
    stream = StreamingKernelPCA(3, kernel="rbf", random_state=0).fit(X)
    assert stream.significance(random_state=0).n_rows == 200
    few = model.significance(X, max_rows=50, random_state=0)
    assert few.n_rows == 50 and "<table>" in few._repr_html_()
    assert few.as_dict()["p_values"] == few.p_values.tolist()


def test_memory_stays_within_the_budget():
    X = generator(408).standard_normal((2000, 10))
    basis = Landmarks(50, selector=Uniform())
    model = KernelPCA(4, kernel="rbf", basis=basis, memory="4MB", n_jobs=1, random_state=0).fit(X)
    size = []
    peak = peak_bytes(lambda: size.append(model.significance(X, random_state=0).n_rows))
    assert peak <= 4e6 and 100 < size[0] < 1000


def test_bad_settings():
    model = KernelPCA(2).fit(generator(409).standard_normal((20, 3)))
    with pytest.raises(ValueError, match="n_permutations=5 must be a whole number of at least 19"):
        model.significance(n_permutations=5)
    with pytest.raises(ValueError, match="level"):
        model.significance(level=0)
    with pytest.raises(ValueError, match="max_rows"):
        model.significance(max_rows=1)
    with pytest.raises(ValueError, match="two columns or more"):
        KernelPCA(1).fit(np.arange(9.0)[:, None]).significance()
    with pytest.raises(ValueError, match="two columns or more"):
        KernelPCA(1, kernel="precomputed").fit(np.eye(4)).significance()


def test_picture():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from mercer import plot

    X = planted(150, 12, 2, 9)
    model = KernelPCA(5, kernel="linear").fit(X)
    ax = plot.spectrum(model, significance=model.significance(random_state=0))
    assert "2 of 5 stand above noise" in ax.get_title()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["noise"]
    plt.close(ax.figure)


def test_summaries_and_reports_show_it(tmp_path):
    """The model keeps the outcome until the next fit."""
    X = planted(80, 6, 2, 9)
    model = KernelPCA(4).fit(X)
    assert "above noise" not in model._repr_html_()
    found = model.significance(n_bootstrap=5, random_state=0)
    assert model.significance_ is found
    assert f"{found.n_significant} of 4 components" in model._repr_html_()
    write_report(model, X, tmp_path / "r.html")
    assert found.sentence() in (tmp_path / "r.html").read_text()
    assert "above noise" not in model.fit(X)._repr_html_()


@pytest.mark.parametrize("basis", ["points", "landmarks"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("key", range(3))
def test_weights_of_a_fit_count(key, kernel, basis, tmp_path):
    """Eigenvalues are those of the weighted fit; rows that count nothing say nothing."""
    rng = generator(66, key)
    X, w = rng.standard_normal((80, 4)), rng.integers(1, 4, 80).astype(float)
    X[:, 1] = X[:, 0] + 0.3 * X[:, 1]
    settings = {"kernel": kernel, "gamma": 0.2, "random_state": 0}
    settings["basis"] = "points" if basis == "points" else Landmarks(80, Uniform())
    model = KernelPCA(3, **settings).fit(X, sample_weight=w)
    found = model.significance(n_bootstrap=20, random_state=1)
    np.testing.assert_allclose(found.eigenvalues, model.eigenvalues_ / w.sum(), rtol=1e-6)
    model.save(tmp_path / "a.mercer")
    again = load(tmp_path / "a.mercer").significance(n_bootstrap=20, random_state=1)
    np.testing.assert_allclose(again.p_values, found.p_values)
    np.testing.assert_allclose(again.eigenvalues, found.eigenvalues, rtol=1e-9)
    far = np.vstack([X, 50 + 20 * rng.standard_normal((30, 4))])
    dust = KernelPCA(3, **settings).fit(far, sample_weight=np.r_[w, np.full(30, 1e-12)])
    same = dust.significance(n_bootstrap=20, random_state=1)
    np.testing.assert_allclose(same.eigenvalues, found.eigenvalues, rtol=1e-3)
    assert model.significance(X, random_state=1).n_rows == 80


def test_weights_do_not_change_the_level():
    """Independent columns with weights of their own: at most a few of 60 are called real."""
    real = 0
    for key in range(60):
        rng = generator(67, key)
        X, w = rng.standard_normal((40, 3)), rng.exponential(size=40) ** 2 + 0.01
        model = KernelPCA(2, kernel="rbf", gamma=0.3).fit(X, sample_weight=w)
        found = model.significance(n_permutations=19, n_bootstrap=0, random_state=key)
        real += found.p_values[0] <= 0.05
    assert real <= 9


def test_weights_of_streams_count_as_repeated_rows(tmp_path):
    rng = generator(412)
    X, w = rng.standard_normal((300, 4)), rng.integers(0, 4, 300)
    model = StreamingKernelPCA(3, kernel="rbf", gamma=0.3, random_state=0)
    weighted = clone(model).partial_fit(X[:200], sample_weight=w[:200])
    weighted.partial_fit(X[200:], sample_weight=w[200:])
    exact = KernelPCA(3, kernel="rbf", gamma=0.3).fit(X, sample_weight=w)
    wanted = exact.significance(random_state=0, n_bootstrap=2).eigenvalues
    weighted.save(tmp_path / "model.mercer")
    for found in (weighted, load(tmp_path / "model.mercer")):
        values = found.significance(random_state=0, n_bootstrap=2).eigenvalues
        np.testing.assert_allclose(values, wanted, rtol=1e-6)
    # Rows that came without weights count once.
    mixed = clone(model).partial_fit(X[:200], sample_weight=w[:200]).partial_fit(X[200:])
    wanted = exact.fit(X, sample_weight=np.append(w[:200], np.ones(100)))
    wanted = wanted.significance(random_state=0, n_bootstrap=2).eigenvalues
    values = mixed.significance(random_state=0, n_bootstrap=2).eigenvalues
    np.testing.assert_allclose(values, wanted, rtol=1e-6)
