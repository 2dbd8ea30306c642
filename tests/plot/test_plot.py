"""Pictures: what is drawn, where, and that given axes are used."""

import inspect
import re
from importlib import resources

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.decomposition import KernelPCA as PeerKernelPCA
from sklearn.exceptions import NotFittedError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

from mercer import (  # noqa: E402
    DiffusionMap,
    HebbianKernelPCA,
    KernelPCA,
    KernelPCASearch,
    NoveltyDetector,
    ProcessMonitor,
    SpectralClustering,
    plot,
)
from mercer.bases import Landmarks  # noqa: E402
from mercer.plot.axes import GROUP_COLORS  # noqa: E402


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).standard_normal((120, 5))


@pytest.fixture(scope="module")
def model(rows):
    return KernelPCA(3, kernel="rbf", basis=Landmarks(size=12), random_state=0).fit(rows)


def test_eigengaps_show_the_evidence(rows):
    groups = np.vstack([rows + 20 * k for k in range(3)])
    model = SpectralClustering("auto", max_clusters=6, random_state=0).fit(groups)
    ax = plot.eigengaps(model)
    assert_allclose([bar.get_height() for bar in ax.patches], model.eigengaps_[1:])
    assert ax.get_title().startswith("3 clusters; the largest gap is at 3, then ")
    dark = [bar.get_facecolor()[0] < 0.5 for bar in ax.patches]
    assert dark == [k == 3 for k in range(2, 7)]
    assert plot.eigengaps(model.with_clusters(4)).get_title().startswith("4 clusters; the largest")
    with pytest.raises(ValueError, match="n_clusters='auto'"):
        plot.eigengaps(SpectralClustering(2, random_state=0).fit(groups))


def places(ax):
    """Where each collection of points lies."""
    return [np.asarray(points.get_offsets()) for points in ax.collections]


def grey(ax):
    """Whether every color of the points is a grey."""
    colors = np.concatenate([points.get_facecolors()[:, :3] for points in ax.collections])
    return bool(np.all(colors == colors[:, :1]))


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
    with pytest.raises(ValueError, match="two axes, and the points have 5 columns"):
        plot.landmarks(rows[:6], rows)


def test_given_axes_are_used(rows, model):
    figure, axes = plt.subplots(1, 3)
    S = model.transform(rows)
    assert plot.scores(S, ax=axes[0]) is axes[0]
    assert plot.spectrum(model, ax=axes[1]) is axes[1]
    assert plot.landmarks(model, rows, ax=axes[2]) is axes[2]
    assert plt.get_fignums() == [figure.number]


def in_grey(figure):
    """The picture as lightness, (h, w)."""
    figure.canvas.draw()
    colors = np.asarray(figure.canvas.buffer_rgba())[:, :, :3]
    return colors @ np.array([0.299, 0.587, 0.114])


@pytest.fixture(scope="module")
def plane():
    rng = np.random.default_rng(0)
    centers = np.array([[-0.5, -0.2], [0.0, 0.6], [0.5, 0.0]])
    return np.concatenate([rng.normal(center, 0.1, (30, 2)) for center in centers])


@pytest.fixture(scope="module")
def of_plane(plane):
    return KernelPCA(4, kernel="rbf", gamma=5.0).fit(plane)


def test_scores_of_a_component_that_is_not_there(rows, model):
    with pytest.raises(ValueError, match="component 3 does not exist: the model has 3"):
        plot.scores(model.transform(rows), components=(0, 3))


def test_contours_are_scores_over_the_plane(plane, of_plane):
    axes = plot.contours(of_plane, plane, components=(0, 2), labels=np.repeat([0, 1, 2], 30))
    assert [ax.get_title() for ax in axes] == ["component 1", "component 3"]
    for ax, k in zip(axes, (0, 2), strict=True):
        levels = ax.collections[1]
        lines = [
            (level, path) for level, path in zip(levels.levels, levels.get_paths(), strict=True)
        ]
        height = np.ptp(levels.levels)
        for level, path in lines:
            if len(path.vertices):
                found = of_plane.transform(path.vertices)[:, k]
                assert_allclose(found, level, atol=0.02 * height)
        shown = np.concatenate(places(ax)[2:])
        assert_allclose(np.sort(shown, axis=0), np.sort(plane, axis=0))
        assert len(ax.collections) == 2 + 3


def test_contours_of_one_component_on_given_axes(plane, of_plane):
    ax = plt.subplots()[1]
    (panel,) = plot.contours(of_plane, plane, components=1, resolution=20, ax=ax)
    assert panel is ax and ax.get_title() == "component 2"


def test_contours_say_what_they_need(rows, plane, model, of_plane):
    with pytest.raises(ValueError, match="data of two columns"):
        plot.contours(model, rows)
    with pytest.raises(ValueError, match="component 7 does not exist"):
        plot.contours(of_plane, plane, components=7)
    with pytest.raises(ValueError, match="3 pictures need as many axes, and ax= has 2"):
        plot.contours(of_plane, plane, ax=plt.subplots(1, 2)[1])


def test_convergence_of_a_hebbian_fit(rows):
    fitted = HebbianKernelPCA(2, kernel="rbf", n_passes=4, track_excess=True, random_state=0)
    history = fitted.fit(rows).history_
    ax = plot.convergence(history)
    (line,) = ax.get_lines()
    assert_allclose(line.get_xdata(), [1, 2, 3, 4])
    assert_allclose(line.get_ydata(), history.excess)
    assert ax.get_yscale() == "log" and ax.get_ylabel() == "excess reconstruction error"
    assert ax.get_legend() is None
    ax = plot.convergence(history, quantity="change")
    assert_allclose(ax.get_lines()[0].get_ydata(), history.changes)


def test_convergence_of_several_methods(rows):
    states = []
    exact = KernelPCA(2, kernel="rbf", eigen_solver="krylov", tol=1e-8, callback=states.append)
    exact.fit(rows)
    history = (
        HebbianKernelPCA(2, kernel="rbf", track_excess=True, random_state=0).fit(rows).history_
    )
    ax = plot.convergence({"krylov": states, "Hebbian": history})
    krylov, hebbian = ax.get_lines()
    # A callback knows residuals and not the excess, so that residuals are what both have.
    assert ax.get_ylabel() == "residual / largest eigenvalue"
    assert_allclose(krylov.get_ydata(), [state.residual for state in states])
    tops = history.eigenvalues.max(axis=1)
    assert_allclose(hebbian.get_ydata(), history.residuals.max(axis=1) / tops)
    assert krylov.get_marker() != hebbian.get_marker()
    assert krylov.get_linestyle() != hebbian.get_linestyle()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["krylov", "Hebbian"]


def test_convergence_of_numbers_leaves_a_gap_at_zero():
    line = plot.convergence({"a": [1.0, 0.0, 0.1]}).get_lines()[0]
    assert_allclose(line.get_ydata(), [1.0, np.nan, 0.1])


@pytest.mark.parametrize(
    ("histories", "quantity", "match"),
    [
        ({}, "auto", "no history to show"),
        ([], "auto", "is empty"),
        ({"a": np.ones((2, 2))}, "auto", r"one number a pass, and has shape \(2, 2\)"),
        ({"a": [1.0]}, "speed", "quantity='speed' must be one that every history has"),
    ],
)
def test_convergence_says_what_is_wrong(histories, quantity, match):
    with pytest.raises(ValueError, match=match):
        plot.convergence(histories, quantity)


def test_preimages_as_curves(rows):
    model = KernelPCA(3, kernel="rbf", gamma=0.02, preimage="ridge").fit(rows)
    ax = plot.preimages(model, component=1, n_steps=5, span=1.5)
    deviation = np.sqrt(model.explained_variance_[1])
    S = np.zeros((5, 3))
    S[:, 1] = np.linspace(-1.5, 1.5, 5) * deviation
    for line, row in zip(ax.get_lines(), model.inverse_transform(S), strict=True):
        assert_allclose(line.get_ydata(), row)
    styles = {(str(line.get_linestyle()), str(line.get_color())) for line in ax.get_lines()}
    assert len(styles) == 5
    assert ax.get_title() == "along component 2"


def test_preimages_as_images():
    X = np.random.default_rng(0).uniform(size=(60, 12))
    model = KernelPCA(2, kernel="rbf", gamma="median", preimage="ridge").fit(X)
    ax = plot.preimages(model, images=(4, 3), n_steps=3)
    picture = np.asarray(ax.get_images()[0].get_array())
    assert picture.shape == (4 + 1, 3 * (3 + 1))
    S = np.zeros((3, 2))
    S[:, 0] = np.array([-2, 0, 2]) * np.sqrt(model.explained_variance_[0])
    rows = model.inverse_transform(S)
    scaled = (rows - rows.min()) / np.ptp(rows)
    for k in range(3):
        assert_allclose(picture[:4, 4 * k : 4 * k + 3], scaled[k].reshape(4, 3))
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["-2", "+0", "+2"]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"component": 5}, "component 5 does not exist"),
        ({"n_steps": 1}, "at least 2 steps"),
        ({"span": 0}, "positive span"),
        ({"images": (2, 2)}, "is not the shape of a row"),
    ],
)
def test_preimages_say_what_is_wrong(rows, options, match):
    model = KernelPCA(2, kernel="rbf").fit(rows)
    with pytest.raises(ValueError, match=match):
        plot.preimages(model, **options)


def test_denoised_images_line_up():
    noisy, result, clean = np.random.default_rng(0).uniform(size=(3, 5, 6))
    ax = plot.denoised(noisy, result, clean, images=(2, 3))
    picture = np.asarray(ax.get_images()[0].get_array())
    assert picture.shape == (3 * (2 + 1), 5 * (3 + 1))
    low, high = min(result.min(), clean.min()), max(result.max(), clean.max())
    for line, rows in enumerate((noisy, result, clean)):
        expected = np.clip((rows[1] - low) / (high - low), 0, 1).reshape(2, 3)
        assert_allclose(picture[3 * line : 3 * line + 2, 4:7], expected)
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names == ["noisy", "denoised", "clean"]
    assert in_grey(ax.figure).std() > 0


def test_denoised_pictures_of_one_image():
    image = np.random.default_rng(0).uniform(size=(6, 4, 3))
    ax = plot.denoised(image, image / 2, images=image.shape)
    assert np.asarray(ax.get_images()[0].get_array()).shape == (2 * 7, 5, 3)


def test_denoised_curves():
    noisy, result, clean = np.random.default_rng(0).uniform(size=(3, 2, 9))
    axes = plot.denoised(noisy, result, clean)
    assert axes.shape == (2,)
    for i, ax in enumerate(axes):
        for line, rows in zip(ax.get_lines(), (noisy, result, clean), strict=True):
            assert_allclose(line.get_ydata(), rows[i])
        assert len({(line.get_linestyle(), line.get_color()) for line in ax.get_lines()}) == 3
    with pytest.raises(ValueError, match="of one shape; they are noisy"):
        plot.denoised(noisy, result[:1])
    with pytest.raises(TypeError, match=r"images= draws .* It got ndarray of shape \(9,\)"):
        plot.denoised(noisy[0], result[0])


def test_groups_differ_in_grey_by_more_than_their_color(rows, model):
    S = model.transform(rows)
    ax = plot.scores(S, np.arange(len(rows)) % 3)
    shades = [points.get_facecolors()[0, :3] @ [0.299, 0.587, 0.114] for points in ax.collections]
    assert np.min(np.abs(np.diff(shades))) > 0.15


def test_ten_groups_have_ten_colors(rows, model):
    ax = plot.scores(model.transform(rows), np.arange(len(rows)) % 10)
    assert len({tuple(points.get_facecolors()[0]) for points in ax.collections}) == 10


# Machado, Oliveira & Fernandes (2009), severity 1: what eyes make of linear RGB.
EYES = {
    "ordinary": np.eye(3),
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
# Ottosson (2020): linear RGB to the cone responses of OKLab, and their cube roots to L, a, b.
CONES = np.array([[0.412, 0.536, 0.051], [0.212, 0.681, 0.107], [0.088, 0.282, 0.630]])
OKLAB = np.array([[0.210, 0.794, -0.004], [1.978, -2.429, 0.451], [0.026, 0.783, -0.809]])


@pytest.mark.parametrize("eyes", EYES)
def test_group_colors_differ_to_all_eyes(eyes):
    linear = matplotlib.colors.to_rgba_array(GROUP_COLORS)[:, :3]
    linear = np.where(linear <= 0.04045, linear / 12.92, ((linear + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(EYES[eyes]), 0, 1)
    lab = np.cbrt(seen @ CONES.T) @ OKLAB.T
    # matplotlib's ten colors come to 0.01 for protan eyes.
    assert pdist(lab).min() > 0.09


def test_the_report_has_the_colors_of_plots():
    script = (resources.files("mercer.report") / "assets" / "paint.js").read_text()
    listed = script.split("GROUP_COLORS = [")[1].split("]")[0]
    assert tuple(re.findall(r"#\w{6}", listed)) == GROUP_COLORS


def test_landmarks_of_a_model_without_any(rows):
    with pytest.raises(ValueError, match="was fitted without landmarks"):
        plot.landmarks(KernelPCA(2, kernel="rbf").fit(rows), rows)


@pytest.mark.parametrize("colored", ["numbers", "labels", None])
def test_an_embedding_with_new_rows(rows, colored):
    X = rows
    model = DiffusionMap(2, random_state=0).fit(X)
    colors = {"numbers": np.arange(len(X)) / 2, "labels": np.arange(len(X)) % 3, None: None}
    near = X[:5] + 0.01
    ax = plot.embedding(model, colors[colored], near, new_colors=np.arange(5.0))
    found = np.concatenate(places(ax))
    wanted = np.concatenate([model.embedding_, model.transform(near)])
    order = [np.lexsort(A.T) for A in (found, wanted)]
    np.testing.assert_allclose(found[order[0]], wanted[order[1]], atol=1e-12)
    assert "eigenvalue" in ax.get_xlabel()
    with pytest.raises(ValueError, match="does not exist"):
        plot.embedding(model, components=(0, 2))


# Every function with everything that people pass: a picture, or a sentence that says what to pass.


@pytest.fixture(scope="module")
def models(plane):
    """Of every kind that has something to draw, with the rows that they were fitted to."""
    X = pd.DataFrame(plane, columns=["length", "width"])
    rbf = {"kernel": "rbf", "gamma": 5.0}
    hebbian = HebbianKernelPCA(2, n_passes=3, random_state=0, **rbf)
    search = KernelPCASearch(noise=0.1, widths=[1], n_components=[2], random_state=0)
    return {
        "model": KernelPCA(3, **rbf).fit(plane),
        "named": KernelPCA(3, basis=Landmarks(9), random_state=0, **rbf).fit(X),
        "hebbian": hebbian.fit(plane),
        "embedding": DiffusionMap(2, random_state=0).fit(plane),
        "clustering": SpectralClustering(3, gamma=5.0, random_state=0).fit(plane),
        "novelty": NoveltyDetector(3, random_state=0).fit(plane),
        "monitor": ProcessMonitor(3, false_alarms=0.2).fit(plane),
        "search": search.fit(plane),
        "peer": PeerKernelPCA(2, kernel="rbf").fit(plane),
    }


def is_a_picture(result):
    return all(isinstance(ax, matplotlib.axes.Axes) for ax in np.atleast_1d(result))


DRAWN = {
    "attribution": ("model named hebbian", lambda m, X: (m,)),
    "contours": ("model hebbian named embedding peer", lambda m, X: (m, X)),
    "control_chart": ("monitor", lambda m, X: (m, X)),
    "convergence": ("hebbian", lambda m, X: (m,)),
    "eigengaps": ("clustering", lambda m, X: (m,)),
    "denoised": ("model named", lambda m, X: (m, X[:3])),
    "embedding": ("embedding", lambda m, X: (m,)),
    "landmarks": ("named", lambda m, X: (m, X)),
    "preimages": ("model named hebbian", lambda m, X: (m,)),
    "scores": ("model named hebbian embedding novelty monitor search peer", lambda m, X: (m, X)),
    "selection": ("search", lambda m, X: (m,)),
    "spectrum": ("model named hebbian embedding clustering novelty search", lambda m, X: (m,)),
}


def test_every_function_is_tried():
    assert set(DRAWN) == set(plot.__all__)


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.filterwarnings("ignore:15 rows set the threshold", "ignore:The noise of these")
@pytest.mark.filterwarnings("ignore:No noise was found")
@pytest.mark.filterwarnings("ignore:9 rows set the threshold", "ignore:.*had not converged")
def test_a_fitted_model_is_drawn(name, models, plane):
    """With rows as arrays or frames, on axes given and in figures given."""
    kinds, arguments = DRAWN[name]
    frame = pd.DataFrame(plane, columns=["length", "width"])
    for kind in kinds.split():
        shown = arguments(models[kind], frame if kind == "named" else plane)
        assert is_a_picture(getattr(plot, name)(*shown)), kind
        halves = plt.figure().subfigures(1, 2)
        for figure in halves:
            panels = getattr(plot, name)(*shown, ax=figure)
            assert is_a_picture(panels) and np.atleast_1d(panels)[0] in figure.axes
        plt.close("all")
    before = plt.get_fignums()
    with pytest.raises(TypeError, match="ax= takes axes or a figure"):
        getattr(plot, name)(*shown, ax=plane)
    assert plt.get_fignums() == before


def test_a_monitor_shows_what_it_computed(models, plane):
    """Its components are those of whitened columns, which the others cannot draw."""
    monitor = models["monitor"]
    drawn = plot.scores(monitor, plane).collections[0].get_offsets()
    whitened = (plane - monitor.mean_) @ monitor.scaling_
    assert_allclose(drawn, monitor.model_.transform(whitened)[:, :2])
    assert is_a_picture(plot.spectrum(monitor))
    for name in ("attribution", "contours", "denoised", "landmarks", "preimages"):
        with pytest.raises(TypeError, match=rf"Call plot.{name}\(.* It got ProcessMonitor"):
            getattr(plot, name)(monitor, plane)
    with pytest.raises(TypeError, match="the class KernelPCA"):
        plot.embedding(KernelPCA)


def wrong_arguments(rng, models, plane):
    """A drawn call: one or two things of any kind, with an option or without."""
    things = [
        *models.values(),
        *(KernelPCA(2), KernelPCA, plot, matplotlib, plane, plane[0], plane[:4], plane.tolist()),
        *(None, 3, 2.5, "model", "rows.csv", [], {}, [1.0, 2.0], {"a": [1.0, 0.1]}, print),
        *(pd.DataFrame({"town": ["Rome"] * 4}), np.ones((3, 5)), np.ones((2, 2, 2)), plt.figure()),
        *(plane[:0], np.full((4, 2), np.nan)),
    ]
    drawn = [things[k] for k in rng.integers(len(things), size=rng.integers(1, 4))]
    options = [{}, {"ax": plane}, {"ax": "left"}, {"components": 9}, {"component": "first"}]
    options += [{"labels": [1]}, {"colors": plane}, {"images": 3}, {"quantity": 7}, {"X": plane}]
    return drawn, options[rng.integers(len(options))]


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.filterwarnings("ignore")
def test_anything_is_drawn_or_refused_in_a_sentence(name, models, plane):
    rng = np.random.default_rng(sum(map(ord, name)))
    call = getattr(plot, name)
    known = set(inspect.signature(call).parameters)
    for _ in range(60):
        things, options = wrong_arguments(rng, models, plane)
        options = {key: value for key, value in options.items() if key in known}
        try:
            result = call(*things[: len(known)], **options)
        except (TypeError, ValueError) as error:  # NotFittedError is one
            text = str(error)
            if "positional argument" in text or "multiple values" in text:
                continue  # Python's own
            assert re.match(r"[A-Za-z][^\n]{30,}", text) and text[-1] in ".)", (things, text)
            for words in (" object ", "index", "zero-size", "14,400"):
                assert words not in text, (things, options, text)
        else:
            assert is_a_picture(result), (things, options)
        plt.close("all")


def test_the_module_says_what_can_be_called(models):
    with pytest.raises(TypeError, match=r"plot\.scores\(model, X\)"):
        plot(models["model"])
    assert not {"components", "fits", "axes"} & set(dir(plot))


def test_what_a_mistaken_call_is_told(models, rows, plane):
    model = models["model"]
    for call, error, text in [
        (lambda: plot.embedding(model), TypeError, r"no embedding. Call plot.scores\(model, X\)"),
        (lambda: plot.scores(model), TypeError, r"rows are missing. Call plot.scores\(model, X\)"),
        (lambda: plot.scores(plane[:, 0]), TypeError, r"It got ndarray of shape \(90,\)"),
        (lambda: plot.spectrum(model, plane), TypeError, "ax= takes axes or a figure"),
        (lambda: plot.scores(plane, [1, 2]), ValueError, "there are 90 rows. Give one value a row"),
        (lambda: plot.spectrum(KernelPCA(2)), NotFittedError, "not fitted yet"),
        (lambda: plot.spectrum(KernelPCA), TypeError, "It got the class KernelPCA"),
        (lambda: plot.convergence(model), TypeError, "plot.convergence"),
        (lambda: plot.preimages(model, plane), TypeError, "component must be a whole number"),
        (lambda: plot.denoised(None, plane), TypeError, r"plot.denoised\(noisy, result, clean\)"),
        (lambda: plot.denoised(plane, plane), ValueError, "at most 20 rows, and there are 90"),
        (lambda: plot.contours(model, plane[:0]), ValueError, "nothing to draw"),
        (lambda: plot.contours(model, plane * np.nan), ValueError, "X contains NaN or infinity"),
    ]:
        with pytest.raises(error, match=text):
            call()
        assert not plt.get_fignums(), "no empty figure is left"
