"""The report: what its file holds, in which words, and what it does with bad input."""

import base64
import datetime as dt
import hashlib
import json
import os
import re
import zlib
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import KernelPCA as PeerKernelPCA
from sklearn.exceptions import NotFittedError

import mercer
from mercer import (
    ClassicalMDS,
    DiffusionMap,
    HebbianKernelPCA,
    Isomap,
    KernelCCA,
    KernelPCA,
    KernelPCASearch,
    NoveltyDetector,
    Nystroem,
    PatchDenoiser,
    ProcessMonitor,
    SpectralClustering,
    SpectralEmbedding,
    StreamingKernelPCA,
    SupervisedKernelPCA,
    load,
)
from mercer.bases import Landmarks
from mercer.fitting.certificate import Certificate
from mercer.preimage import FixedPoint
from mercer.report import write_report
from mercer.report.content import MISSING, Column, rows_to_show, sentences
from mercer.report.page import (
    curve_chart,
    pack,
    pack_column,
    script_json,
    spectrum_chart,
    thumbnails,
    ticks,
)

EVIL = '</script><img src=x onerror="alert(1)"><!-- & \' ]]>'


def unpack(packed):
    """The numbers of `pack`, flat: what the page's own script does."""
    stream = zlib.decompress(base64.b64decode(packed["data"]))
    return np.frombuffer(stream, dtype=f"<{packed['kind']}")


def named(data):
    """The columns of a page by name."""
    return {column["name"]: column for column in data["columns"]}


def matrix(data, names):
    """Values of columns of numbers, side by side."""
    return np.column_stack([unpack(named(data)[name]["values"]) for name in names])


class Page(HTMLParser):
    """The elements of a file, the texts of its scripts and style, and what people read."""

    def __init__(self, path):
        self._read(path.read_text(encoding="utf-8"))

    @classmethod
    def of(cls, source):
        page = cls.__new__(cls)
        page._read(source)
        return page

    def _read(self, source):
        super().__init__(convert_charrefs=True)
        self.tags, self.raw, self.texts, self._open = [], {}, [], None
        self.source = source
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        kind = dict(attrs).get("type", tag)
        self._open = kind if tag in ("script", "style") else None

    def handle_endtag(self, tag):
        self._open = None

    def handle_data(self, text):
        if self._open:
            self.raw[self._open] = self.raw.get(self._open, "") + text
        else:
            self.texts.append(text)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    @property
    def data(self):
        return json.loads(self.raw["application/json"])

    @property
    def policy(self):
        metas = [attrs for tag, attrs in self.tags if tag == "meta"]
        name = "Content-Security-Policy"
        return next(meta["content"] for meta in metas if meta.get("http-equiv") == name)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).standard_normal((90, 4))


@pytest.fixture(scope="module")
def model(rows):
    return KernelPCA(3, kernel="rbf", gamma=0.2).fit(rows)


def report(tmp_path, model, X, **options):
    return Page(write_report(model, X, tmp_path / "report.html", **options))


def test_arrays_come_back():
    values = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    assert_array_equal(unpack(pack(values, "f4")), values.ravel())
    assert_array_equal(unpack(pack([1, 70000], "i4")), [1, 70000])


def test_json_has_nothing_to_end_a_script():
    text = script_json({EVIL: EVIL})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {EVIL: EVIL}


def test_the_file_holds_scores_errors_and_values(tmp_path, rows, model):
    names = ["a", "b", "c", "d"]
    data = report(tmp_path, model, rows, columns=names).data
    assert data["count"] == 90 and data["components"] == 3 and list(named(data)) == names
    S = unpack(data["scores"]).reshape(3, 90).T
    assert_allclose(S, model.transform(rows), atol=1e-6)
    assert_allclose(unpack(data["errors"]), model.reconstruction_error(rows), rtol=1e-4, atol=1e-6)
    assert_allclose(matrix(data, names), rows, rtol=1e-6)
    assert_array_equal(unpack(data["index"]), np.arange(90))
    assert data["colored"] is None and data["images"] is None


def test_the_file_needs_nothing_else_and_says_so(tmp_path, rows, model):
    page = report(tmp_path, model, rows)
    policy, script, style = page.policy, page.raw["script"], page.raw["style"]
    for text, kind in [(script, "script"), (style, "style")]:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    for tag, attrs in page.tags:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form"}
        assert "src" not in attrs and attrs.get("href", "#").startswith("#")
        assert not any(name.startswith("on") or name == "style" for name in attrs)
    addresses = set(re.findall(r"\w+://[^\s\"']+", page.source))
    assert addresses <= {"http://www.w3.org/2000/svg"}


def test_what_users_supply_stays_text(tmp_path, rows):
    X = pd.DataFrame(rows, columns=[EVIL, "b", "<b>c</b>", "d"])
    model = KernelPCA(2, kernel="rbf", gamma=0.2, kernel_params={EVIL: 1}).fit(X)
    plain = report(tmp_path, model, X)
    groups = np.array([EVIL, "other"])[np.arange(90) % 2]
    page = report(tmp_path, model, X, title=EVIL, color=groups, color_name=EVIL)
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert page.raw["script"] == plain.raw["script"]
    assert page.data["columns"][0]["name"] == EVIL == page.data["columns"][0]["groups"][0]
    assert f"{EVIL}" in page.texts and EVIL in page.text


def test_half_a_surrogate_pair_does_no_harm(tmp_path, rows, model):
    page = report(tmp_path, model, rows, title="a\ud800b", columns=["\udfff", "b", "c", "d"])
    assert page.data["columns"][0]["name"] == "\udfff"


@pytest.mark.parametrize(
    "model",
    [
        KernelPCA(3, kernel="rbf", basis="points"),
        KernelPCA(3, kernel="rbf", basis=Landmarks(size=20), random_state=0),
        KernelPCA(3, kernel="rbf", basis="features", random_state=0),
        KernelPCA(3, kernel="poly", degree=2),
        KernelPCA(0.5, kernel="laplacian"),
        KernelPCA(3, kernel="rbf", eigen_solver="gram-power", random_state=0),
        KernelPCA(1, kernel="linear"),
        KernelPCA(3, kernel="rbf", fit_inverse_transform=True),
        HebbianKernelPCA(3, kernel="rbf", random_state=0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_method_has_a_report(tmp_path, rows, model, dtype):
    X = rows.astype(dtype)
    page = report(tmp_path, model.fit(X), X)
    r = len(model.eigenvalues_)
    assert f"Kernel PCA with {r} component" in page.text
    assert page.data["components"] == r
    walk = page.data["walk"]
    points = unpack(walk["rows"]).reshape(len(walk["deviations"]), len(walk["steps"]), 4)
    # The scores along a walk are the standard deviations of the scores of the training rows.
    deviations = model.transform(X).std(axis=0, ddof=1)
    assert_allclose(walk["deviations"], deviations[:8], rtol=0.2)
    assert np.isfinite(points).all() and np.ptp(points[0], axis=0).max() > 0
    assert ("Convergence" in page.text) == hasattr(model, "history_")


ESTIMATORS = {
    "KernelPCA": KernelPCA(3, kernel="rbf"),
    "StreamingKernelPCA": StreamingKernelPCA(3, kernel="rbf"),
    "HebbianKernelPCA": HebbianKernelPCA(3, kernel="rbf", random_state=0),
    "SupervisedKernelPCA": SupervisedKernelPCA(2, kernel="rbf"),
    "KernelCCA": KernelCCA(2, kernel="rbf", gamma=0.1),
    "NoveltyDetector": NoveltyDetector(5, random_state=0),
    "ProcessMonitor": ProcessMonitor(5, false_alarms=0.1),
    "SpectralClustering": SpectralClustering(3, gamma="median", random_state=0),
    "SpectralEmbedding": SpectralEmbedding(2, n_neighbors=30, random_state=0),
    "DiffusionMap": DiffusionMap(2, random_state=0),
    "ClassicalMDS": ClassicalMDS(2, random_state=0),
    "Isomap": Isomap(2, n_neighbors=40, random_state=0),
    "Nystroem": Nystroem(n_components=6, random_state=0),
    "KernelPCASearch": KernelPCASearch(noise=1.0, widths=[1], n_components=[4], random_state=0),
}


def test_every_estimator_is_tried():
    known = {name for name in mercer.__all__ if isinstance(getattr(mercer, name), type)}
    known = {name for name in known if issubclass(getattr(mercer, name), BaseEstimator)}
    assert known - {"PatchDenoiser"} == set(ESTIMATORS)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_has_a_report(name, tmp_path):
    """What it has is shown, what it has not is absent, and a model from a file has the same."""
    rng = np.random.default_rng(len(name))
    X = np.concatenate([rng.normal(c, 0.5, (30, 3)) for c in (-2, 0, 2)])
    y = X[:, :2] ** 2 if name == "KernelCCA" else np.repeat([0, 1, 2], 30)
    model = clone(ESTIMATORS[name]).fit(X, y)
    town = np.array(["Rome", "Oslo", None], dtype=object)[np.arange(90) % 3]
    made = model.report(X, tmp_path / "r.html", table={"town": town}, max_points=60)
    page = Page(tmp_path / "r.html")
    assert page.source == made.html and "60 of 90 rows are shown" in page.text
    inner = vars(model).get("best_estimator_", vars(model).get("model_", model))
    prepared = (X - model.mean_) @ model.scaling_ if name == "ProcessMonitor" else X
    S = np.asarray(inner.transform(prepared))
    index = unpack(page.data["index"])
    shown = unpack(page.data["scores"]).reshape(-1, 60).T
    assert_allclose(shown, S[index], rtol=1e-4, atol=1e-5)
    groups = named(page.data)["town"]
    assert [[*groups["groups"], None][k] for k in unpack(groups["values"])] == town[index].tolist()
    titles = {attrs.get("aria-label") for tag, attrs in page.tags if tag == "section"}
    for title, attribute in [
        ("Spectrum", "eigenvalues_"),
        ("Certificate", "certificate_"),
        ("Plan", "plan_"),
    ]:
        assert (title in titles) == (attribute in vars(inner)), title
    assert ("Convergence" in titles) == (name == "HebbianKernelPCA")
    for title, method in [
        ("Rows unlike the others", "reconstruction_error"),
        ("Columns that drive the components", "attribute"),
    ]:
        absent = name == "ProcessMonitor" and method == "attribute"  # of whitened columns
        assert (title in titles) == (hasattr(inner, method) and not absent), title
    assert ("Control chart" in titles) == (name == "ProcessMonitor")
    has_walk = hasattr(inner, "inverse_transform") and name != "ProcessMonitor"
    assert (page.data["walk"] is not None) == has_walk
    if hasattr(model, "predict"):
        label = page.data["columns"][page.data["colored"]]
        texts = np.array(label["groups"])[unpack(label["values"])]
        words = (
            {1: "normal", -1: "novel"}
            if name in ("NoveltyDetector", "ProcessMonitor")
            else {0: "0", 1: "1", 2: "2"}
        )
        assert texts.tolist() == [words[k] for k in model.predict(X)[index].tolist()]
    model.save(tmp_path / "m.mercer")
    again = load(tmp_path / "m.mercer").report(X, table={"town": town}, max_points=60)
    found = Page.of(again.html).data
    assert_allclose(unpack(found["scores"]).reshape(-1, 60).T, shown, rtol=1e-3, atol=1e-4)


def test_notebooks_show_the_page_in_a_frame(rows, model):
    made = model.report(rows, title=EVIL)
    frame = Page.of(made._repr_html_())
    ((tag, attrs),) = frame.tags
    assert tag == "iframe" and attrs["srcdoc"] == made.html
    assert attrs["sandbox"] == "allow-scripts allow-downloads"


def test_a_denoiser_says_what_to_show():
    image = np.random.default_rng(0).standard_normal((30, 30))
    for kernel, known in [("linear", "X_sample_"), ("rbf", "X_fit_")]:
        model = PatchDenoiser(kernel=kernel, n_patches=80, random_state=0).fit(image)
        with pytest.raises(TypeError, match=f"model.model_.{known}, images"):
            model.report(image)
        rows = getattr(model.model_, known)
        assert Page.of(model.model_.report(rows, images=(9, 9)).html).data["images"] is not None


def test_warnings_of_a_walk_name_nothing_of_the_library(rows):
    model = KernelPCA(3, kernel="rbf", gamma=0.2, preimage=FixedPoint(max_iter=1)).fit(rows)
    text = Page.of(model.report(rows).html).text
    assert "had not converged" in text and "Raise max_iter" not in text


def test_progress_is_told(rows, model, capsys):
    model.report(rows)
    assert capsys.readouterr().err == ""
    model.report(rows, verbose=1)
    assert "report" in capsys.readouterr().err


def test_how_far_scores_can_be_off(tmp_path, rows):
    """A share of their own size, in their own units; none where components may be mixed."""
    model = KernelPCA(3, kernel="rbf", gamma=0.2, tol=1e-3, eigen_solver="krylov").fit(rows)
    error = model.certificate_.score_error * np.sqrt((model.transform(rows) ** 2).mean(axis=0))
    found = report(tmp_path, model, rows).data["scoreErrors"]
    assert_allclose([np.nan if one is None else one for one in found], error, rtol=1e-6)
    assert report(tmp_path, Nystroem(n_components=5).fit(rows), rows).data["scoreErrors"] == []


def test_a_walk_is_the_way_back_asked_for(tmp_path, rows, model):
    model = clone(model).set_params(preimage="ridge").fit(rows)
    walk = report(tmp_path, model, rows).data["walk"]
    S = np.zeros((21, 3))
    S[:, 1] = np.array(walk["steps"]) * walk["deviations"][1]
    points = unpack(walk["rows"]).reshape(3, 21, 4)
    assert_allclose(points[1], model.inverse_transform(S), rtol=1e-5, atol=1e-5)


def test_a_stream_has_a_report(tmp_path, rows):
    model = HebbianKernelPCA(3, kernel="rbf", budget=30, random_state=0)
    model.partial_fit(rows[:50]).partial_fit(rows[50:])
    page = report(tmp_path, model, rows)
    assert "30 landmarks" in page.text and "a stream of 90 rows" in page.text
    assert "an estimate, not a bound" in page.text and "Convergence" not in page.text


def test_streaming_kernel_pca_has_a_report(tmp_path, rows):
    model = StreamingKernelPCA(3, kernel="rbf", gamma=0.2)
    for start in range(0, 90, 30):
        model.partial_fit(rows[start : start + 30])
    page = report(tmp_path, model, rows)
    assert "a stream of 90 rows" in page.text and page.data["walk"] is not None


@pytest.mark.parametrize("basis", ["points", "landmarks", "features"])
def test_a_model_from_a_file_has_the_same_report(tmp_path, rows, basis):
    model = KernelPCA(3, kernel="rbf", gamma=0.2, basis=basis, random_state=0).fit(rows)
    expected = report(tmp_path, model, rows)
    model.save(tmp_path / "model.mercer")
    page = report(tmp_path, load(tmp_path / "model.mercer"), rows)
    assert page.text == expected.text
    assert_allclose(unpack(page.data["scores"]), unpack(expected.data["scores"]), atol=1e-6)


def test_a_precomputed_kernel_has_no_walk_and_no_values(tmp_path, rows):
    K = rows @ rows.T
    page = report(tmp_path, KernelPCA(2, kernel="precomputed").fit(K), K)
    assert "There is no walk: A precomputed kernel has no rows" in page.text
    assert page.data["walk"] is None and page.data["columns"] == []
    assert page.data["errors"] is None and "errors are not known" in page.text
    few = report(tmp_path, KernelPCA(2, kernel="precomputed").fit(K), K, max_points=25)
    assert few.data["count"] == 25


def test_sparse_rows(tmp_path, rows):
    X = sparse.csr_matrix(np.maximum(rows, 0))
    page = report(tmp_path, KernelPCA(2, kernel="rbf").fit(X), X, color=1)
    assert_allclose(matrix(page.data, named(page.data)), X.toarray(), rtol=1e-6)
    assert page.data["colored"] == 1
    assert page.data["walk"] is not None


def test_a_data_frame_brings_its_names(tmp_path, rows):
    X = pd.DataFrame(rows, columns=list("wxyz"))
    page = report(tmp_path, KernelPCA(2, kernel="rbf").fit(X), X, color="y")
    assert list(named(page.data)) == list("wxyz") and page.data["colored"] == 2


def test_lists_and_tensors_are_rows_too(tmp_path, rows, model):
    expected = report(tmp_path, model, rows).data
    assert report(tmp_path, model, rows.tolist()).data == expected
    torch = pytest.importorskip("torch")
    assert report(tmp_path, model, torch.tensor(rows)).data == expected


def test_new_rows_of_a_fitted_model(tmp_path, rows, model):
    new = rows[:7] + 1
    page = report(tmp_path, model, new)
    assert page.data["count"] == 7 and "7 rows shown" in page.text


def test_a_single_row(tmp_path, rows, model):
    page = report(tmp_path, model, rows[:1])
    assert "1 row shown" in page.text and page.data["count"] == 1


def test_too_many_rows_show_the_worst_and_a_sample(tmp_path, rows, model):
    errors = model.reconstruction_error(rows)
    page = report(tmp_path, model, rows, max_points=30)
    index = unpack(page.data["index"])
    assert index.size == 30 and np.all(np.diff(index) > 0)
    assert set(np.argsort(-errors)[:20]) <= set(index)
    assert "30 of 90 rows are shown" in page.text
    assert report(tmp_path, model, rows, max_points=1).data["count"] == 1
    assert_array_equal(index, rows_to_show(90, np.argsort(-errors)[:20], 30))


def test_the_table_lists_the_worst_rows_first(tmp_path, rows, model):
    page = report(tmp_path, model, rows)
    names = [attrs.get("aria-label") for tag, attrs in page.tags if tag == "button"]
    listed = [int(name.split()[-1]) for name in names if (name or "").startswith("Show row")]
    assert_array_equal(listed, np.argsort(-model.reconstruction_error(rows), kind="stable")[:20])


def test_images_are_thumbnails(tmp_path):
    X = np.random.default_rng(0).uniform(0, 16, (30, 12))
    model = KernelPCA(2, kernel="rbf", gamma="median").fit(X)
    data = report(tmp_path, model, X, images=(4, 3)).data
    pixels = unpack(data["images"]["pixels"]).reshape(30, 4, 3, 1)
    assert data["images"]["shape"] == [4, 3, 1] and data["columns"] == []
    gray = 255 * (X - X.min()) / np.ptp(X)
    assert_allclose(pixels.reshape(30, 12), gray, atol=0.5)
    assert data["walk"]["shape"] == [4, 3, 1]
    colored = report(tmp_path, model, X, images=(2, 2, 3)).data
    assert colored["images"]["shape"] == [2, 2, 3] == colored["walk"]["shape"]


def test_large_images_shrink_by_averages():
    X = np.arange(2 * 128 * 96, dtype=float).reshape(2, -1)
    pixels = thumbnails(X, (128, 96), 0.0, X.max())
    assert pixels.shape == (2, 64, 48, 1)
    means = X.reshape(2, 64, 2, 48, 2).mean(axis=(2, 4)) * 255 / X.max()
    assert_allclose(pixels[..., 0], means, atol=0.5)


def test_colors_are_groups_or_a_scale(rows):
    def of(colors):
        return Column.of("z", np.asarray(colors), grouped=True)

    assert of(np.arange(90) % 12).groups == [str(k) for k in range(12)]
    assert of(np.arange(90)).kind == "number"
    assert of(rows[:, 0] > 0).groups == ["False", "True"]
    made = of(pd.Series(["b", "a", None] * 30, name="kind"))
    assert made.groups == ["a", "b"]
    assert_array_equal(made.values[:3], [1, 0, MISSING])
    numbers = rows[:, 0].copy()
    numbers[:2] = np.nan, np.inf
    made = of(numbers)
    assert made.kind == "number" and np.isnan(made.values[:2]).all()


DAYS = np.array(["2024-02-29", "2023-12-31", "NaT"], "datetime64[D]")
NONE = float("nan")
KINDS = {
    "floats with gaps": ([1.5, np.nan, -2.0], "number", [1.5, NONE, -2]),
    "whole numbers of pandas": (pd.array([7, None, 9], "Int64"), "number", [7, NONE, 9]),
    "large whole numbers": ([20240115, 20240116, 3], "number", [20240115, 20240116, 3]),
    "truth values": ([True, False, True], "group", ["True", "False", "True"]),
    "truth values with gaps": ([False, None, False], "group", ["False", None, "False"]),
    "texts": (["b", None, "a"], "group", ["b", None, "a"]),
    "texts of pandas": (pd.array(["b", None, "a"], "string"), "group", ["b", None, "a"]),
    "categories": (pd.Categorical(["b", None, "a"]), "group", ["b", None, "a"]),
    "dates": (DAYS, "date", ["2024-02-29", "2023-12-31", None]),
    "dates of Python": ([dt.date(2024, 2, 29), None, dt.date(1969, 5, 1)], "date", None),
    "dates as texts": (
        ["2024-02-29", None, "2024-03-01 12:30"],
        "date",
        ["2024-02-29", None, "2024-03-01T12:30"],
    ),
    "times with a zone": (
        pd.to_datetime(["2024-02-29 12:00", None, "2024-03-01 00:00"]).tz_localize("Asia/Tokyo"),
        "date",
        ["2024-02-29T12:00", None, "2024-03-01"],
    ),
    "no days of any calendar": (
        ["2024-02-30", "2024-02-01", None],
        "group",
        ["2024-02-30", "2024-02-01", None],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_every_kind(kind):
    values, expected, wanted = KINDS[kind]
    made = Column.of("z", np.asarray(values, dtype=object if isinstance(values, list) else None))
    assert made.kind == expected
    packed = unpack(pack_column(made))
    if expected == "group":
        found = [None if code == MISSING else made.groups[code] for code in packed]
        assert found == wanted
        return
    if expected == "date":
        times = np.array(values if wanted is None else wanted, "datetime64[ms]")
        wanted = np.where(np.isnat(times), np.nan, times.astype(np.int64))
    assert_array_equal(packed, wanted, "no digit is lost")


def test_many_categories_and_large_numbers_are_kept(tmp_path, rows, model):
    """A category for every row, and whole numbers that single precision does not tell apart."""
    orders = 2**31 + np.arange(90)
    names = np.array([f"name {i}" for i in range(90)])
    data = report(tmp_path, model, rows, table={"order": orders, "name": names}).data
    assert_array_equal(unpack(named(data)["order"]["values"]), orders)
    column = named(data)["name"]
    assert [column["groups"][k] for k in unpack(column["values"])] == names.tolist()
    colored = report(tmp_path, model, rows, color=names, color_name="who").data
    assert len(named(colored)["who"]["groups"]) == 90


def test_a_frame_shows_its_other_columns(tmp_path, rows):
    """The model takes the columns that it was fitted to, in their order, whatever else there is."""
    frame = pd.DataFrame(rows, columns=list("wxyz"))
    frame.insert(0, "kind", np.array(["a", "b"])[np.arange(90) % 2])
    frame["day"] = pd.date_range("2024-01-01", periods=90)
    model = KernelPCA(2, kernel="rbf").fit(frame[["z", "x"]])
    expected = report(tmp_path, model, frame[["z", "x"]]).data
    for given in (frame, csv_of(frame, tmp_path)):
        data = report(tmp_path, model, given, color="kind").data
        assert data["scores"] == expected["scores"]
        assert set(named(data)) == set(frame.columns)
        assert named(data)["day"]["kind"] == "date"
        assert data["columns"][data["colored"]]["name"] == "kind"


def test_rows_of_a_function_are_reported_as_the_array(rows):
    model = KernelPCA(2, kernel="rbf", gamma=0.3).fit(rows)
    made = model.report(lambda: iter(np.array_split(rows, 3)))
    np.testing.assert_allclose(made.scores, model.report(rows).scores, rtol=1e-12)


@pytest.mark.parametrize("name", ["NoveltyDetector", "KernelPCASearch"])
def test_models_within_models_take_frames(name, rows):
    """Fitted to rows without names, and nobody is warned of that."""
    frame = pd.DataFrame(rows, columns=list("wxyz")).assign(kind="a")
    model = clone(ESTIMATORS[name]).fit(frame[list("wxyz")])
    inner = vars(model).get("best_estimator_", vars(model).get("model_"))
    made = model.report(frame)
    assert_allclose(made.scores, inner.transform(rows), atol=1e-10)
    assert {"kind", *"wxyz"} <= {column.name for column in made.columns}


def csv_of(frame, folder):
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def test_words_for_bounds_and_estimates(model):
    text = " ".join(sentences(model, model, 3, 90, 90))
    share = 100 * model.explained_variance_ratio_.sum()
    assert "Gaussian kernel (gamma = 0.2)" in text and "all 90 training rows" in text
    assert f"Together the components hold {share:.3g}\u00a0%" in text
    assert "This is certified" in text


def test_words_for_doubt(model):
    values = model.eigenvalues_
    doubtful = Certificate("estimate", values, values, values * 0.1, (0.2, 0.4), False, 1, True)
    copy = KernelPCA(3, kernel="rbf", gamma=0.2)
    copy.__dict__ |= vars(model) | {"certificate_": doubtful}
    text = " ".join(sentences(copy, copy, 3, 90, 40))
    for words in (
        "estimate, not a bound",
        "between 20 and 40\u00a0%",
        "10\u00a0% of the largest",
        "stopped before it reached the tolerance",
        "indefinite",
        "40 of 90 rows are shown",
    ):
        assert words in text


def test_the_passes_of_a_callback(tmp_path, rows):
    states = []
    model = KernelPCA(2, kernel="rbf", eigen_solver="krylov", callback=states.append).fit(rows)
    page = report(tmp_path, model, rows, history={"krylov": states, EVIL: [1.0, 0.1, 0.0]})
    assert "Convergence" in page.text and "residual / largest eigenvalue" in page.text
    assert f"{EVIL} pass 2: 0.1" in page.text


@pytest.mark.parametrize(
    "chart",
    [
        spectrum_chart([3.0, 2.0, 1e-9], [2.9, 1.9, 0.0], [3.1, 2.2, 1.0]),
        spectrum_chart([3.0, 0.0], [2.9, 0.0], [3.1, 0.0]),
        spectrum_chart([0.0], [0.0], [0.0]),
        curve_chart({EVIL: (np.array([1, 2]), np.array([0.1, 0.01]))}, EVIL, EVIL),
        curve_chart({"": (np.array([1]), np.array([0.0]))}, "y", "pass"),
        curve_chart({"": (np.array([0, 1]), np.array([0.0, 9.0]))}, "y", "row", limit=1.0),
    ],
)
def test_charts_are_whole_and_inside_their_frame(chart):
    root = ElementTree.fromstring(chart)
    _, _, width, height = (float(x) for x in root.attrib["viewBox"].split())
    for circle in root.iter("circle"):
        assert 0 <= float(circle.attrib["cx"]) <= width
        assert 0 <= float(circle.attrib["cy"]) <= height


def test_ticks_are_round():
    assert_allclose(ticks(-0.7, 0.3), [-0.6, -0.4, -0.2, 0.0, 0.2], atol=1e-12)
    assert_allclose(ticks(3, 90, log=True), [5, 10, 20, 50])
    assert_allclose(ticks(1e-8, 1, log=True), [1e-8, 1e-6, 1e-4, 1e-2, 1])


def test_the_file_is_small(tmp_path):
    X = np.random.default_rng(0).standard_normal((20_000, 5))
    model = KernelPCA(8, kernel="rbf", basis=Landmarks(size=50), random_state=0).fit(X)
    path = write_report(model, X, tmp_path / "report.html")
    # 14 numbers of four bytes a row in base64, the page itself and its walks.
    assert path.stat().st_size < 20_000 * 14 * 4 * 4 / 3 + 180_000


@pytest.mark.parametrize("seed", range(4))
def test_rows_unlike_the_others_are_marked(tmp_path, seed):
    """Rows far from all others, which a Gaussian kernel puts in the middle."""
    rng = np.random.default_rng(seed)
    d, count = int(rng.integers(2, 7)), int(rng.integers(1, 16))
    X = rng.uniform(size=(400, d))
    planted = rng.choice(400, count, replace=False)
    model = KernelPCA(12, kernel="rbf", gamma="median")
    page = report(tmp_path, model.fit(X), X)
    plain = set(page.data["unlike"])
    X[planted] += rng.choice([-9, 9], size=(count, d))
    page = report(tmp_path, model.fit(X), X)
    assert set(page.data["unlike"]) >= set(planted.tolist()), plain
    rows = f"each of the {len(page.data['unlike'])} rows" if len(page.data["unlike"]) > 1 else "row"
    assert rows in page.text and "most unlike the others" in page.text


def test_rows_without_error_are_not_unlike_others(tmp_path):
    """Errors that are nothing but rounding."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    X[0] *= 50
    page = report(tmp_path, KernelPCA(3, kernel="linear").fit(X), X)
    assert page.data["unlike"] == [] and "unlike the others." not in page.text
    assert "No error is far beyond the others" in page.text


@pytest.mark.parametrize("seed", range(5))
def test_help_speaks_of_the_columns_of_the_table(tmp_path, seed):
    """Its searches name columns and groups of this table and of no other."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(["age", "net worth", "not", "a-b (x)", 'say "hi"', "x_1"])[:4].tolist()
    X = pd.DataFrame(rng.standard_normal((50, 4)), columns=names)
    X.loc[3, "town"] = "New York" if seed else None
    X["town"] = X["town"].fillna("Oslo" if seed % 2 else "New York")
    model = KernelPCA(2, kernel="rbf").fit(X[names])
    made = model.report(X)
    page = Page.of(made.html)
    assert made.examples and all(text in page.text for text in made.examples)
    assert not {"segment", "pro", "Rome"} & set(re.findall(r"\w+", " ".join(made.examples)))
    assert any(name in made.examples[0] for name in [*names, "town"])
    assert any(name in made.examples[1] for name in names), "a column of numbers too"


def test_no_section_is_empty_of_things_to_see(tmp_path):
    """Pixels drive components, and have no names to say it with."""
    X = np.random.default_rng(0).uniform(size=(30, 12))
    model = KernelPCA(2, kernel="rbf", gamma="median").fit(X)
    page = report(tmp_path, model, X, images=(4, 3))
    assert "Columns that drive" not in page.text
    assert "Columns that drive" in report(tmp_path, model, X).text


def test_settings_are_those_that_somebody_chose(tmp_path, rows):
    model = KernelPCA(2, kernel="rbf", gamma=0.2, verbose=-1, copy_X=False, n_jobs=1).fit(rows)
    made = model.report(rows)
    assert made.settings == {"n_components": "2", "kernel": "rbf", "gamma": "0.2"}
    told = model.report(rows, settings={"--components": 2})
    assert told.settings == {"--components": "2"}
    assert "Settings" not in Page.of(model.report(rows, settings={}).html).text


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"columns": ["a"]}, ValueError, r"\['a'\] must be 4 names, one for each column"),
        ({"columns": "abcd"}, ValueError, "'abcd' must be 4 names, one for each column"),
        ({"color": "nothing"}, ValueError, "no column 'nothing'"),
        ({"color": 9}, ValueError, "no column 9"),
        ({"color": [1, 2]}, ValueError, "one value a row"),
        ({"table": {"z": [1, 2]}}, ValueError, "The column 'z' has shape"),
        ({"images": (3, 3)}, ValueError, "not the shape of a row of 4 columns"),
        ({"images": (2, 1, 2)}, ValueError, "2 channels"),
        ({"max_points": 0}, ValueError, "max_points=0"),
        ({"max_points": 1e4}, ValueError, "max_points"),
        ({"history": []}, ValueError, "empty"),
    ],
)
def test_bad_options(tmp_path, rows, model, options, error, match):
    with pytest.raises(error, match=match):
        write_report(model, rows, tmp_path / "report.html", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("spoil", ["nan", "width", "empty"])
def test_bad_rows(tmp_path, rows, model, spoil):
    X = {"nan": np.where(rows > 2, np.nan, rows), "width": rows[:, :2], "empty": rows[:0]}[spoil]
    with pytest.raises(ValueError, match=r"NaN|features|minimum of 1"):
        write_report(model, X, tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_bad_models(tmp_path, rows):
    with pytest.raises(NotFittedError):
        write_report(KernelPCA(2), rows, tmp_path / "report.html")
    with pytest.raises(TypeError, match="a fitted model of mercer"):
        write_report(PeerKernelPCA(2).fit(rows), rows, tmp_path / "report.html")
    for thing in (KernelPCA, "model"):
        with pytest.raises(TypeError, match="needs a fitted model"):
            write_report(thing, rows, tmp_path / "report.html")


def test_a_missing_folder(tmp_path, rows, model):
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        write_report(model, rows, tmp_path / "none" / "report.html")


def test_whole_or_not_at_all(tmp_path, rows, model, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("the old one")

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_report(model, rows, path)
    assert path.read_text() == "the old one" and list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    write_report(model, rows, path)
    assert path.read_text().startswith("<!doctype html>") and list(tmp_path.iterdir()) == [path]
