"""Pictures: what is drawn, where, and that given axes are used."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

from mercer import KernelPCA, plot  # noqa: E402
from mercer.bases import Landmarks  # noqa: E402


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).standard_normal((120, 5))


@pytest.fixture(scope="module")
def model(rows):
    return KernelPCA(3, kernel="rbf", basis=Landmarks(size=12), random_state=0).fit(rows)


def places(ax):
    """Where each collection of points lies."""
    return [np.asarray(points.get_offsets()) for points in ax.collections]


def grey(ax):
    """Whether every colour of the points is a grey."""
    colours = np.concatenate([points.get_facecolors()[:, :3] for points in ax.collections])
    return bool(np.all(colours == colours[:, :1]))


def test_scores_of_two_components(rows, model):
    S = model.transform(rows)
    ax = plot.scores(S, components=(2, 0))
    assert_allclose(places(ax)[0], S[:, [2, 0]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("component 3", "component 1")
    assert ax.get_legend() is None


def test_scores_tell_labels_apart_by_shape_and_shade(rows, model):
    labels = np.arange(len(rows)) % 3
    ax = plot.scores(model.transform(rows), labels)
    assert [len(points) for points in places(ax)] == [40, 40, 40]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2"]
    shapes = {points.get_paths()[0].vertices.tobytes() for points in ax.collections}
    shades = {tuple(points.get_facecolors()[0]) for points in ax.collections}
    assert len(shapes) == len(shades) == 3


@pytest.mark.parametrize("basis", ["points", Landmarks(size=12)])
def test_spectrum_shows_values_and_certified_intervals(rows, basis):
    model = KernelPCA(3, kernel="rbf", basis=basis, random_state=0).fit(rows)
    ax = plot.spectrum(model)
    line = ax.get_lines()[0]
    assert_allclose(line.get_xdata(), [1, 2, 3])
    assert_allclose(line.get_ydata(), model.eigenvalues_)
    ends = np.array([segment[1, 1] for segment in ax.collections[0].get_segments()])
    assert_allclose(ends, model.certificate_.eigenvalue_upper)
    assert ax.get_yscale() == "log"
    assert ax.get_title().endswith("% of the variance")


def test_landmarks_over_the_scores_of_their_data(rows, model):
    ax = plot.landmarks(model, rows, components=(1, 2))
    data, *chosen = places(ax)
    assert_allclose(data, model.transform(rows)[:, 1:])
    assert_allclose(chosen[-1], model.transform(model.landmarks_)[:, 1:])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("component 2", "component 3")
    assert "12 landmarks" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert grey(ax)


def test_landmarks_over_plane_data(rows):
    X = rows[:, :2]
    Z = X[:7]
    model = KernelPCA(2, kernel="rbf", basis=Landmarks(points=Z)).fit(X)
    for shown in (model, Z):
        data, *chosen = places(plot.landmarks(shown, X))
        assert_allclose(data, X)
        assert_allclose(chosen[-1], Z)
    assert plt.gca().get_xlabel() == "column 1"


def test_landmarks_of_sparse_rows(rows):
    X = sparse.csr_matrix(np.maximum(rows, 0))
    model = KernelPCA(2, kernel="rbf", basis=Landmarks(size=8), random_state=0).fit(X)
    data, *chosen = places(plot.landmarks(model, X))
    assert data.shape == (120, 2) and chosen[-1].shape == (8, 2)
    plane = X[:, :2]
    assert_allclose(places(plot.landmarks(plane[:4], plane))[0], plane.toarray())


def test_points_of_many_columns_need_a_model(rows):
    with pytest.raises(ValueError, match="Points of 5 columns have no place in a picture"):
        plot.landmarks(rows[:6], rows)


def test_given_axes_are_used(rows, model):
    figure, axes = plt.subplots(1, 3)
    S = model.transform(rows)
    assert plot.scores(S, ax=axes[0]) is axes[0]
    assert plot.spectrum(model, ax=axes[1]) is axes[1]
    assert plot.landmarks(model, rows, ax=axes[2]) is axes[2]
    assert plt.get_fignums() == [figure.number]
