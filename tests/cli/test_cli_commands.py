"""What the commands compute is what the library computes, whatever file the rows are in."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from contracts import generator
from PIL import Image
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from mercer import (
    ClassicalMDS,
    DiffusionMap,
    KernelPCA,
    NoveltyDetector,
    ProcessMonitor,
    SpectralClustering,
    SpectralEmbedding,
    datasets,
    load,
)
from mercer.cli import main
from mercer.cli.models import TableModel
from mercer.cli.parser import methods
from mercer.files import read_image, read_table
from mercer.saving import read_extra, save

NAMES = ["length", "width", "height", "weight"]
SCALERS = {"standard": StandardScaler, "minmax": MinMaxScaler}


@pytest.fixture
def X(tmp_path, monkeypatch):
    """Rows in columns of very different size, in a file of every kind in the working folder."""
    monkeypatch.chdir(tmp_path)
    rows = generator(11).standard_normal((60, 4)) * [1.0, 10.0, 0.1, 100.0] + [0, 5, 1, -40]
    table = pd.DataFrame(rows, columns=NAMES)
    table["kind"] = np.where(rows[:, 0] > 0, "up", "down")
    table.to_csv("rows.csv", index=False)
    table.to_parquet("rows.parquet")
    np.save("rows.npy", rows)
    np.savez("rows.npz", first=rows[:3], rows=rows)
    return rows


@pytest.fixture
def run(capsys):
    """Run a line and return its JSON document."""

    def run_line(*line):
        assert main([*map(str, line), "--json", "--quiet"]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    return run_line


def exact(X, r=3, **params):
    return KernelPCA(r, **{"kernel": "rbf", "gamma": "median"} | params).fit(X)


def same_up_to_sign(S, T, atol=1e-6):
    signs = np.sign(np.sum(S * T, axis=0))
    np.testing.assert_allclose(S * signs, T, atol=atol)


def test_monitor_and_outliers(X, run, tmp_path, capsys):
    """What the library says, from a table or a saved model, with names of the table."""
    make_plant = datasets.make_plant
    for name, key, options in [("plant", 0, {}), ("new", 1, {"fault": "step", "size": 30})]:
        plant = make_plant(300, key, plant=1, **options).data
        pd.DataFrame(plant, columns=[f"s{j}" for j in range(10)]).to_csv(f"{name}.csv", index=False)
    monitor = ["monitor", "plant.csv", "new.csv", "--false-alarms", 0.05, "--smoothing", "2/3"]
    facts = run(*monitor, "-o", "c.csv", "--save", "m.mercer", "--chart", "c.png")
    rows = [pd.read_csv(f"{name}.csv").to_numpy() for name in ("plant", "new")]
    model = ProcessMonitor(false_alarms=0.05, smoothing=(2, 3), random_state=0).fit(rows[0])
    chart, table = model.chart(rows[1]), pd.read_csv("c.csv", keep_default_na=False)
    np.testing.assert_array_equal(table["alarm"], chart.alarms)
    assert chart.alarms.any() and Path("c.png").stat().st_size > 1000
    expected = ["" if name == "" else f"s{name[1:]}" for name in chart.sensor]
    assert table["sensor"].tolist() == expected
    np.testing.assert_allclose(list(facts["limits"].values()), model.limits_)
    again = run("monitor", "m.mercer", "new.csv", "-o", "again.csv")
    assert again["alarms"] == facts["alarms"]
    assert run("report", "m.mercer", "new.csv", "-o", "r.html")["rows"] == 300
    blamed = re.findall(r"(\w+) \d+%", Path("r.html").read_text())
    assert blamed and set(blamed) <= {f"s{j}" for j in range(10)}
    assert main(["monitor", "m.mercer"]) == 2
    assert main(["monitor", "m.mercer", "new.csv", "--lags", "2"]) == 2
    facts = run("outliers", "rows.npy", "-o", "out.csv", "--save", "o.mercer")
    detector = NoveltyDetector(random_state=0).fit(X)
    assert facts["outliers"] == int((detector.predict(X) < 0).sum())
    other = run("outliers", "o.mercer", "rows.npy", "-o", "out2.csv")
    assert other["outliers"] == facts["outliers"]
    # Without an output file columns go to stdout, and what is said to stderr.
    for words, file in (
        (["monitor", "m.mercer", "new.csv"], "c.csv"),
        (["outliers", "o.mercer", "rows.npy"], "out.csv"),
    ):
        capsys.readouterr()
        assert main(words) == 0
        out, err = capsys.readouterr()
        assert out == Path(file).read_text() and " of " in err


@pytest.mark.parametrize(
    "file", ["rows.csv", "rows.parquet", "rows.npy", "rows.npz"], ids=lambda name: name[5:]
)
def test_fit_and_transform_of_every_file(file, X, run):
    which = ["--array", "rows"] if file.endswith("npz") else []
    facts = run("fit", file, *which, "-r", 3, "-o", "m.mercer")
    model = exact(X)
    assert (facts["rows"], facts["columns"], facts["components"]) == (60, 4, 3)
    np.testing.assert_allclose(facts["eigenvalues"], model.eigenvalues_)
    assert facts["certificate"]["converged"]
    (warning,) = facts["warnings"]
    assert "very different scales" in warning and "--scale standard" in warning
    assert run("transform", "m.mercer", file, *which, "-o", "s.npy")["rows"] == 60
    same_up_to_sign(np.load("s.npy"), model.transform(X))


def test_fit_of_a_folder_of_images(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    Path("images").mkdir()
    pictures = generator(12).integers(0, 256, (12, 5, 6)).astype(np.uint8)
    for i, picture in enumerate(pictures):
        Image.fromarray(picture).save(f"images/{i:02}.png")
    assert run("fit", "images", "-r", 2, "-o", "m.mercer")["columns"] == 30
    run("transform", "m.mercer", "images", "-o", "s.npy")
    same_up_to_sign(
        np.load("s.npy"),
        exact(pictures.reshape(12, -1) / 255, 2).transform(pictures.reshape(12, -1) / 255),
    )
    assert read_extra("m.mercer")["image_shape"] == (5, 6)
    run("report", "m.mercer", "images", "-o", "r.html")
    assert "<svg" in Path("r.html").read_text()
    Path("others").mkdir()
    Image.fromarray(pictures[0].T.copy()).save("others/a.png")
    assert main(["transform", "m.mercer", "others"]) == 1


@pytest.mark.parametrize("kind", ["text", "number"])
def test_the_column_that_names_rows_travels_with_the_model(kind, X, run, capsys):
    """--id of the fit holds for transform, report and inverse; a .npy has numbers only."""
    table = pd.read_csv("rows.csv").drop(columns="kind")
    table.insert(2, "who", [f"r{i}" for i in range(60)] if kind == "text" else np.arange(60) + 7)
    table.to_csv("named.csv", index=False)
    run("fit", "named.csv", "--id", "who", "-r", 2, "-o", "m.mercer")
    run("transform", "m.mercer", "named.csv", "-o", "s.csv")
    found = pd.read_csv("s.csv")
    assert list(found) == ["who", "component1", "component2"]
    assert found["who"].tolist() == table["who"].tolist()
    run("report", "m.mercer", "named.csv", "-o", "r.html")
    page = Path("r.html").read_text()
    assert f'"names":["{table["who"][0]}"' in page
    assert "<td>--id</td><td>who</td>" in page and "copy_X" not in page
    run("report", "m.mercer", "named.csv", "--color", "who", "-o", "colored.html")
    assert '{"name":"who"' in Path("colored.html").read_text()
    run("inverse", "m.mercer", "s.csv", "-o", "back.csv")
    assert list(pd.read_csv("back.csv")) == ["who", *NAMES]
    run("explain", "m.mercer", "named.csv")
    run("transform", "m.mercer", "named.csv", "-o", "s.npy")
    assert np.load("s.npy").shape == (60, 2)
    # Another column can be named, and a table without the column has no names, which is said.
    run("transform", "m.mercer", "named.csv", "--id", "length", "-o", "s.csv", "--force")
    assert pd.read_csv("s.csv").columns[0] == "length"
    assert main(["transform", "m.mercer", "rows.csv", "-o", "s.csv", "--force"]) == 0
    assert "no column 'who', which named the rows" in capsys.readouterr().err
    assert list(pd.read_csv("s.csv")) == ["component1", "component2"]


def test_the_number_of_a_column_that_names_rows_travels_too(X, run):
    np.save("named.npy", np.column_stack([np.arange(60.0), X]))
    run("fit", "named.npy", "--id", 0, "-r", 2, "-o", "m.mercer")
    run("transform", "m.mercer", "named.npy", "-o", "s.csv")
    assert pd.read_csv("s.csv").iloc[:, 0].tolist() == list(range(60))


@pytest.mark.parametrize("scale", SCALERS)
def test_scaling_travels_with_the_model(scale, X, run):
    run("fit", "rows.csv", "--scale", scale, "-r", 3, "-o", "m.mercer")
    scaler = SCALERS[scale]().fit(X)
    model = exact(scaler.transform(X))
    run("transform", "m.mercer", "rows.npy", "-o", "s.npy")
    S = np.load("s.npy")
    same_up_to_sign(S, model.transform(scaler.transform(X)))
    run("inverse", "m.mercer", "s.npy", "-o", "back.csv")
    back = read_table("back.csv")
    assert back.names == NAMES
    expected = scaler.inverse_transform(load("m.mercer").inverse_transform(S))
    np.testing.assert_allclose(back.X, expected)
    assert main(["describe", "m.mercer"]) == 0


def test_a_constant_column_scales_to_zero(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", np.column_stack([np.arange(9.0), np.full(9, 7.0)]))
    for scale in SCALERS:
        run("fit", "rows.npy", "--scale", scale, "-r", 1, "-o", f"{scale}.mercer")
        assert run("transform", f"{scale}.mercer", "rows.npy")["rows"] == 9


def test_columns_are_found_by_name(X, run):
    run("fit", "rows.csv", "--drop", "weight,kind", "-r", 2, "-o", "m.mercer")
    run("fit", "rows.npy", "--columns", "0,1,2", "-r", 2, "-o", "n.mercer")
    pd.DataFrame(X, columns=NAMES)[["weight", "height", "width", "length"]].to_csv("turned.csv")
    run("transform", "m.mercer", "turned.csv", "-o", "s.npy")
    run("transform", "n.mercer", "rows.csv", "--columns", "length,width,height", "-o", "t.npy")
    expected = exact(X[:, :3], 2).transform(X[:, :3])
    same_up_to_sign(np.load("s.npy"), expected)
    same_up_to_sign(np.load("t.npy"), expected)


def test_other_columns_are_refused(X, run, capsys):
    run("fit", "rows.csv", "-r", 2, "-o", "m.mercer")
    np.save("narrow.npy", X[:, :2])
    assert main(["transform", "m.mercer", "narrow.npy"]) == 1
    assert "2 columns of numbers, and the model was fitted to 4" in capsys.readouterr().err
    pd.DataFrame(X, columns=["a", "b", "c", "d"]).to_csv("renamed.csv", index=False)
    assert main(["transform", "m.mercer", "renamed.csv"]) == 1
    assert "'length', which the model was fitted to" in capsys.readouterr().err
    assert main(["inverse", "m.mercer", "rows.npy"]) == 1
    assert "the model has 2 components" in capsys.readouterr().err


@pytest.mark.parametrize("method", methods())
def test_every_method_fits(method, X, run):
    three = ["rows.npy", "--columns", "0,1,2"]  # as many as a Fourier grid takes
    options = ["--method", method, "-r", 2, "--scale", "standard", "-o", "m.mercer"]
    # Columns are a basis for inner products of rows alone.
    linear = {"kernel": "linear", "gamma": None} if method == "columns" else {}
    facts = run("fit", *three, *options, *(["--kernel", "linear"] if linear else []))
    assert facts["components"] == 2
    values = exact(StandardScaler().fit_transform(X[:, :3]), 2, **linear).eigenvalues_
    loose = 0.5 if method == "features" else 0.05
    np.testing.assert_allclose(facts["eigenvalues"], values, rtol=loose)
    assert run("transform", "m.mercer", *three)["rows"] == 60


def test_sizes_choose_their_method(X, run):
    run("fit", "rows.npy", "--landmarks", 20, "--selector", "kmeans", "-o", "m.mercer", "-r", 2)
    assert load("m.mercer").landmarks_.shape == (20, 4)
    run("fit", "rows.npy", "--features", 50, "-o", "n.mercer", "-r", 2)
    assert load("n.mercer").expansion_.basis.size == 50


@pytest.mark.parametrize(
    ("options", "params"),
    [
        (
            ["--kernel", "poly", "--degree", "2", "--coef0", "0.5"],
            {"kernel": "poly", "degree": 2, "coef0": 0.5, "gamma": None},
        ),
        (["--kernel", "rbf", "--gamma", "0.25"], {"gamma": 0.25}),
        (["--kernel", "rbf", "--gamma", "columns"], {"gamma": None}),
        (["--kernel", "laplacian", "--gamma", "mean"], {"kernel": "laplacian", "gamma": "mean"}),
        (["--kernel", "linear"], {"kernel": "linear", "gamma": None}),
    ],
)
def test_kernel_options_reach_the_kernel(options, params, X, run):
    facts = run("fit", "rows.npy", *options, "-r", 2, "-o", "m.mercer")
    model = exact(X, 2, **params)
    assert repr(load("m.mercer").kernel_) == repr(model.kernel_)
    np.testing.assert_allclose(facts["eigenvalues"], model.eigenvalues_)


def test_a_share_of_variance(X, run):
    facts = run("fit", "rows.npy", "--scale", "standard", "-r", 0.9, "-o", "m.mercer")
    assert sum(facts["explained_variance_ratio"]) >= 0.9
    assert sum(facts["explained_variance_ratio"][:-1]) < 0.9


def test_strict_fails_where_nothing_converged(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", generator(16).standard_normal((600, 8)))
    line = ["fit", "rows.npy", "--method", "krylov", "--passes", "2", "-r", "2", "-o", "m.mercer"]
    assert main([*line, "--strict"]) == 1
    assert "Not converged" in capsys.readouterr().err and not Path("m.mercer").exists()
    assert main(line) == 0
    assert "mercer: warning: Not converged" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["npy", "csv", "parquet"])
def test_scores_in_every_format(suffix, X, run, capsys):
    run("fit", "rows.npy", "-r", 2, "-o", "m.mercer")
    expected = load("m.mercer").transform(X)
    assert run("transform", "m.mercer", "rows.npy", "-o", f"s.{suffix}")["output"] == f"s.{suffix}"
    np.testing.assert_array_equal(read_table(f"s.{suffix}").X, expected)
    assert main(["transform", "m.mercer", "rows.npy"]) == 0
    out, err = capsys.readouterr()
    Path("stdout.csv").write_text(out)
    np.testing.assert_array_equal(read_table("stdout.csv").X, expected)
    assert err == "rows  60\n"
    table = run("transform", "m.mercer", "rows.npy")["result"]
    np.testing.assert_array_equal(np.transpose(list(table.values())), expected)


def test_single_precision_stays(X, run):
    np.save("single.npy", X.astype(np.float32))
    run("fit", "single.npy", "--scale", "standard", "-r", 2, "-o", "m.mercer")
    run("transform", "m.mercer", "single.npy", "-o", "s.npy")
    assert np.load("s.npy").dtype == np.float32


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """A folder of Parquet files that is larger than the memory the tests allow."""
    monkeypatch.chdir(tmp_path)
    Path("parts").mkdir()
    rows = generator(13).standard_normal((12000, 5)) * [1, 2, 3, 4, 50] + 100
    for i in range(3):
        pd.DataFrame(rows[4000 * i : 4000 * (i + 1)], columns=list("abcde")).to_parquet(
            f"parts/{i}.parquet"
        )
    return rows


def test_tables_larger_than_memory(parts, run):
    """The fit and the scores of blocks are those of the library, scaled by all rows."""
    line = ("parts", "--memory", "400kB", "--landmarks", 50, "-r", 3)
    facts = run("fit", *line, "-o", "plain.mercer")
    assert facts["rows"] == 12000 and load("plain.mercer").landmarks_.shape == (50, 5)
    run("fit", *line, "--scale", "standard", "--drop", "e", "-o", "scaled.mercer")
    scaler = StandardScaler().fit(parts[:, :4])
    extra = read_extra("scaled.mercer")
    np.testing.assert_allclose(extra["shift"], scaler.mean_)
    np.testing.assert_allclose(extra["size"], scaler.scale_)
    assert extra["columns"] == list("abcd")
    run("transform", "scaled.mercer", "parts", "-o", "s.npy")
    model = load("scaled.mercer")
    assert np.abs(model.landmarks_).max() < 10, "fitted to rows that were not scaled"
    del model.feature_names_in_
    expected = model.transform(scaler.transform(parts[:, :4]))
    np.testing.assert_allclose(np.load("s.npy"), expected, atol=1e-12)


def test_auto_turns_to_landmarks_where_rows_do_not_fit(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = generator(14).standard_normal((30_000, 20))
    pd.DataFrame(rows, columns=[f"c{i}" for i in range(20)]).to_parquet("rows.parquet")
    run("fit", "rows.parquet", "--memory", "15MB", "-r", 3, "-o", "m.mercer")
    assert len(load("m.mercer").landmarks_) < 30_000


@pytest.mark.parametrize("method", ["exact", "hebbian"])
def test_methods_that_need_all_rows_say_so(method, parts, capsys):
    line = ["fit", "parts", "--memory", "400kB", "--method", method, "-o", "m.mercer"]
    assert main(line) == 1
    err = capsys.readouterr().err
    assert "landmarks" in err and "parts" in err and not Path("m.mercer").exists()


def test_models_of_the_library_serve(X, run, capsys):
    frame = pd.DataFrame(X, columns=NAMES)
    model = exact(frame, 2)
    model.save("m.mercer")
    assert run("describe", "m.mercer")["estimator"] == "KernelPCA"
    run("transform", "m.mercer", "rows.csv", "-o", "s.npy")
    np.testing.assert_allclose(np.load("s.npy"), model.transform(frame))
    ClassicalMDS().fit(X).save("mds.mercer")
    run("transform", "mds.mercer", "rows.npy", "-o", "p.npy")
    np.testing.assert_allclose(np.load("p.npy"), ClassicalMDS().fit_transform(X), atol=1e-8)
    assert main(["explain", "mds.mercer", "rows.npy"]) == 1
    assert "holds a ClassicalMDS" in capsys.readouterr().err
    assert run("describe", "mds.mercer")["estimator"] == "ClassicalMDS"


@pytest.mark.parametrize(
    "extra",
    [
        {"columns": ["only one"]},
        {"columns": [1, 2, 3, 4]},
        {"scale": "standard", "shift": np.zeros(3), "size": np.ones(4)},
        {"scale": "standard", "shift": np.zeros(4), "size": np.full(4, np.nan)},
        {"image_shape": (3, 3)},
    ],
)
def test_what_does_not_fit_the_model_is_refused(extra, X, capsys):
    save(exact(X, 2), "m.mercer", extra=extra)
    assert main(["transform", "m.mercer", "rows.npy"]) == 1
    assert "do not fit its model of 4 columns" in capsys.readouterr().err


def test_explain_names_the_columns_of_the_table(X, run, capsys):
    """In the units of the model: scaled as it was, with the names of the table."""
    run("fit", "rows.csv", "--scale", "standard", "-r", 2, "-o", "m.mercer")
    facts = run("explain", "m.mercer", "rows.csv", "-o", "drive.csv")
    assert facts["columns"] == NAMES and len(facts["size"]) == 2
    rows = TableModel.load("m.mercer", "attribute").scaling.apply(X)
    model = load("m.mercer")
    vars(model).pop("feature_names_in_", None)
    np.testing.assert_allclose(facts["overall"], model.attribute(rows).overall, rtol=1e-9)
    table = pd.read_csv("drive.csv")
    assert list(table["column"]) == NAMES
    np.testing.assert_allclose(table["all"], facts["overall"])
    assert main(["explain", "m.mercer", "rows.csv", "--top", "1"]) == 0
    assert capsys.readouterr().out.startswith("Change of the scores")


def test_significance_of_a_model(X, run, capsys):
    run("fit", "rows.csv", "-r", 3, "-o", "m.mercer")
    facts = run("significance", "m.mercer", "rows.csv", "--rows", 30, "--draws", 3)
    assert 0 <= facts["n_significant"] <= 3 and facts["n_rows"] == 30
    assert main(["significance", "m.mercer", "rows.csv", "--rows", "30"]) == 0
    assert "stand above noise" in capsys.readouterr().out
    assert main(["significance", "m.mercer", "rows.csv", "--level", "2"]) == 2
    assert main(["significance", "m.mercer", "rows.csv", "--level", "0.01"]) == 1
    assert "n_permutations" in capsys.readouterr().err


def test_describe_says_what_was_fitted(X, run, capsys):
    run("fit", "rows.csv", "--scale", "minmax", "-r", 2, "-o", "m.mercer")
    assert main(["describe", "m.mercer"]) == 0
    out = capsys.readouterr().out
    assert "length, width, height, weight" in out and "minmax" in out and "RBF(gamma=" in out
    facts = run("describe", "m.mercer")
    assert facts["prepared"]["scale"] == "minmax" and len(facts["prepared"]["shift"]) == 4
    Path("cut.mercer").write_bytes(Path("m.mercer").read_bytes()[:-10])
    assert main(["describe", "cut.mercer"]) == 1
    assert "damaged" in capsys.readouterr().err


def test_report_shows_the_rows_as_the_table_has_them(X, run, capsys):
    run("fit", "rows.csv", "--scale", "standard", "-r", 2, "-o", "m.mercer")
    run("report", "m.mercer", "rows.csv", "--color", "kind", "--title", "My <rows>", "-o", "r.html")
    page = Path("r.html").read_text()
    assert "My &lt;rows&gt;" in page and "weight" in page and '"down"' in page
    run("cluster", "rows.csv", "-k", 2, "--scale", "standard", "-o", "labels.csv")
    run("report", "m.mercer", "rows.csv", "--color", "labels.csv", "-o", "c.html")
    assert Path("c.html").read_text().count('"0"') > 0
    Path("short.csv").write_text("cluster\n0\n1\n")
    assert main(["report", "m.mercer", "rows.csv", "--color", "short.csv", "-o", "q.html"]) == 1
    assert main(["report", "m.mercer", "rows.csv", "--color", "z", "-o", "q.html"]) == 1
    assert "Its columns are length" in capsys.readouterr().err and not Path("q.html").exists()
    np.save("plain.npy", np.ones((2, 4)))
    assert main(["report", "m.mercer", "plain.npy", "--color", "z", "-o", "q.html"]) == 1
    assert "Its columns have no names" in capsys.readouterr().err


def test_plan_counts_the_rows_of_a_table(X, run):
    facts = run("plan", "rows.csv", "-r", 3, "--memory", "1GB")
    assert (facts["rows"], facts["columns"], facts["memory"]) == (60, 4, 10**9)
    assert facts["method"] in {one["method"] for one in facts["methods"]}
    assert {one["option"] for one in facts["methods"]} <= set(methods())
    facts = run("plan", "--shape", "100000x54", "--memory", "2GB")
    assert [one["fits"] for one in facts["methods"] if one["method"] == "dense"] == [False]


def test_compare_measures_and_certifies(X, run, capsys):
    line = ["compare", "rows.csv", "--scale", "standard", "-r", "3", "--landmarks", "20"]
    facts = run(*line, "-o", "picture.png")
    found = {one["method"]: one for one in facts["methods"]}
    assert set(found) == {"exact", "landmarks", "features", "gram-power", "hebbian"}
    assert all(one["seconds"] > 0 and one["peak_bytes"] > 0 for one in found.values())
    for method in ("landmarks", "gram-power", "hebbian"):
        assert found[method]["difference"] <= found[method]["error"] + 1e-9
    assert found["exact"]["error"] < 1e-6 and found["features"]["error"] is None
    assert read_image("picture.png").shape[1] > 1000
    assert main([*line, "--methods", "landmarks,dense"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1].startswith("landmarks") and "landmarks ...\ndense ...\n" in err
    assert "rows.csv: used 4 columns; left out: kind (text)\n" in err


def test_cluster_finds_two_rings(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    X, truth = np.vstack([ring, 3 * ring]), np.repeat([0, 1], 60)
    np.save("rings.npy", X)
    facts = run("cluster", "rings.npy", "-k", 2, "--gamma", 5, "-o", "labels.npy")
    assert facts["sizes"] == [60, 60]
    assert adjusted_rand_score(np.load("labels.npy"), truth) == 1
    ties = run("cluster", "rings.npy", "-k", 2, "--neighbors", 6, "--labels", "cluster_qr")
    assert adjusted_rand_score(ties["result"]["cluster"], truth) == 1
    found = run("cluster", "rings.npy", "-k", "auto", "--gaps", "gaps.png", "-o", "found.npy")
    assert found["clusters"] == 2 and int(np.argmax(found["eigengaps"][1:])) == 0
    assert Path("gaps.png").stat().st_size > 5000
    few = run("cluster", "rings.npy", "-k", 2, "--gamma", 5, "--landmarks", 100)
    theirs = SpectralClustering(2, gamma=5.0, random_state=0).fit(X).labels_
    assert adjusted_rand_score(few["result"]["cluster"], theirs) == 1


def test_embed_gives_the_coordinates_of_the_estimators(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    X = generator(15).standard_normal((60, 3))
    np.save("rows.npy", X)
    facts = run("embed", "rows.npy", "--neighbors", 9, "-o", "map.npy")
    ours = SpectralEmbedding(2, n_neighbors=9, random_state=0).fit(X)
    np.testing.assert_allclose(np.load("map.npy"), ours.embedding_, atol=1e-8)
    np.testing.assert_allclose(facts["eigenvalues"], ours.eigenvalues_, atol=1e-8)
    walk = ("--diffusion", "--density-power", 1, "--steps", 2, "--gamma", 0.3, "--kernel", "rbf")
    found = run("embed", "rows.npy", *walk)["result"]
    ours = DiffusionMap(2, density_power=1, t=2, gamma=0.3, random_state=0).fit_transform(X)
    np.testing.assert_allclose(np.column_stack([found["x1"], found["x2"]]), ours, atol=1e-8)


def test_mds_reproduces_distances_and_keeps_names(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    Y = generator(14).standard_normal((8, 2))
    D = np.linalg.norm(Y[:, None] - Y, axis=2)
    names = [f"town{i}" for i in range(8)]
    pd.DataFrame(D, columns=names).assign(town=names).to_csv("towns.csv", index=False)
    facts = run("mds", "towns.csv", "-o", "map.csv")
    table = read_table("map.csv")
    assert table.names == ["x1", "x2"] and list(table.others["town"]) == names
    np.testing.assert_allclose(np.linalg.norm(table.X[:, None] - table.X, axis=2), D, atol=1e-8)
    assert facts["stress"] < 1e-6
    np.save("rows.npy", Y)
    rows = run("mds", "rows.npy", "--metric", "euclidean", "--landmarks", 6)["result"]
    Z = np.column_stack([rows["x1"], rows["x2"]])
    np.testing.assert_allclose(np.linalg.norm(Z[:, None] - Z, axis=2), D, atol=1e-8)


@pytest.mark.parametrize("color", [False, True])
def test_denoise_comes_closer_to_the_clean_image(color, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    clean = 120 + 60 * np.add.outer(np.sin(np.linspace(0, 6, 40)), np.linspace(-1, 1, 48))
    clean = np.stack([clean, 255 - clean, clean / 2], axis=2) if color else clean
    noisy = np.clip(clean + 20 * generator(15).standard_normal(clean.shape), 0, 255)
    Image.fromarray(noisy.astype(np.uint8)).save("noisy.png")
    facts = run("denoise", "noisy.png", "--patch", 7, "-o", "out.png")
    out = 255 * read_image("out.png")
    assert out.shape == clean.shape and (facts["width"], facts["height"]) == (48, 40)
    assert np.mean((out - clean) ** 2) < 0.3 * np.mean((noisy - clean) ** 2)
    assert 10 < facts["noise"] < 30
    assert run("denoise", "noisy.png", "--noise", 20, "-o", "given.png")["noise"] == 20


@pytest.mark.parametrize("method", ["exact", "hebbian"])
def test_a_checkpoint_is_used_and_removed(method, X, run, capsys):
    """What is no checkpoint of this fit is refused; after a fit nothing is left."""
    line = ["fit", "rows.npy", "--method", method, "--components", 3, "--checkpoint", "run.ckpt"]
    Path("run.ckpt").mkdir()
    Path("run.ckpt/mine.txt").write_text("mine")
    assert main([*map(str, line), "-o", "a.mercer"]) == 1
    assert "run.ckpt" in capsys.readouterr().err and not Path("a.mercer").exists()
    Path("run.ckpt/mine.txt").unlink()
    run(*line, "-o", "a.mercer")
    assert not Path("run.ckpt").exists()
