"""The command on messy tables: what is used, left out, kept, filled, and where it goes."""

import base64
import csv
import gzip
import io
import json
import sys
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from contracts import generator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import sparse

from mercer.cli import main
from mercer.files import read_table

N = 40


@pytest.fixture
def frame(tmp_path, monkeypatch):
    """A table as people have it, in the working folder."""
    monkeypatch.chdir(tmp_path)
    X = generator(51).standard_normal((N, 3))
    frame = pd.DataFrame(X, columns=["length", "width", "height"])
    frame.insert(0, "name", [f"flower, {i}" for i in range(N)])
    frame["species"] = np.where(X[:, 0] > 0, "setosa", "virginica")
    return frame


@pytest.fixture
def run(capsys):
    def run_line(*line, code=0):
        capsys.readouterr()
        found = main([*map(str, line), "--json"])
        out, err = capsys.readouterr()
        assert found == code, err
        return json.loads(out) | {"stderr": err}

    return run_line


def test_what_is_used_and_left_out_is_said(frame, run, capsys):
    frame["width"] = frame["width"].astype(object)
    frame.loc[2, "width"] = "?"
    frame.to_csv("t.csv", index=False)
    facts = run("fit", "t.csv", "-r", 2, "-o", "m.mercer")
    line = "t.csv: used 2 columns; left out: name (text), width ('?' in line 4), species (text)"
    assert line in facts["stderr"].splitlines()
    (table,) = facts["tables"]
    assert table["used"] == ["length", "height"]
    assert table["left_out"]["width"] == "'?' in line 4"
    (warning,) = facts["warnings"]
    assert "line 4" in warning and "--missing drop" in warning
    assert main(["fit", "t.csv", "-r", "2", "-o", "n.mercer", "-q"]) == 0
    assert capsys.readouterr().err == ""
    # Who names the columns knows what is left out.
    assert main(["fit", "t.csv", "--columns", "length", "-r", "1", "-o", "k.mercer"]) == 0
    assert capsys.readouterr().err == ""


def test_missing_values(frame, run, capsys):
    frame["width"] = frame["width"].astype(object)
    frame.loc[2, "width"] = "?"
    frame.loc[7, "height"] = None
    frame.to_csv("t.csv", index=False)
    facts = run("fit", "t.csv", "-r", 2, "-o", "a.mercer", code=1)
    assert "line 9" in facts["error"]["message"]
    assert "--missing drop or --missing mean" in facts["error"]["message"]
    facts = run("fit", "t.csv", "-r", 2, "--missing", "drop", "-o", "drop.mercer")
    assert facts["rows"] == N - 2 and facts["columns"] == 3
    assert facts["tables"][0]["missing"] == {"policy": "drop", "rows_dropped": 2}
    assert "left out 2 rows with missing values" in facts["stderr"]
    facts = run("fit", "t.csv", "-r", 2, "--missing", "mean", "-o", "mean.mercer")
    assert facts["rows"] == N and facts["tables"][0]["missing"]["cells_filled"] == 2
    # The means of the fit travel with the model; rows are never left out unasked.
    frame.iloc[:8].to_csv("new.csv", index=False)
    assert run("transform", "mean.mercer", "new.csv", "-o", "s.csv")["rows"] == 8
    assert main(["transform", "drop.mercer", "new.csv"]) == 1
    capsys.readouterr()
    run(
        "transform",
        "drop.mercer",
        "new.csv",
        "--missing",
        "drop",
        "--id",
        "name",
        "-o",
        "t.csv",
        "--force",
    )
    assert list(read_table("t.csv").others["name"])[:3] == [f"flower, {i}" for i in (0, 1, 3)]
    means = pd.to_numeric(frame["width"], errors="coerce").mean(), frame["height"].mean()
    filled = frame.iloc[:8].copy()
    filled.loc[2, "width"], filled.loc[7, "height"] = means
    filled.to_csv("filled.csv", index=False)
    run("transform", "mean.mercer", "filled.csv", "-o", "f.csv")
    np.testing.assert_allclose(read_table("s.csv").X, read_table("f.csv").X, atol=1e-12)


def test_doubtful_tables_warn(frame, run):
    frame.to_csv("index.csv")
    assert "counts the rows" in run("fit", "index.csv", "-r", 1, "-o", "a.mercer")["warnings"][0]
    frame.to_csv("none.csv", index=False, header=False)
    facts = run("fit", "none.csv", "-r", 1, "-o", "b.mercer")
    assert facts["rows"] == N and "--header" in facts["warnings"][0]
    assert run("fit", "none.csv", "--header", "-r", 1, "-o", "c.mercer")["rows"] == N - 1
    frame.assign(id=range(N)).to_csv("id.csv", index=False)
    warnings = run("fit", "id.csv", "-r", 1, "-o", "d.mercer")["warnings"]
    assert any("'id' counts the rows" in text and "--id" in text for text in warnings)
    assert run("fit", "id.csv", "--id", "id", "-r", 1, "-o", "e.mercer")["warnings"] == []
    frame.assign(weight=1000 * frame["width"]).to_csv("far.csv", index=False)
    (warning,) = run("fit", "far.csv", "-r", 1, "-o", "f.mercer")["warnings"]
    assert "weight ranges over" in warning and "--scale standard" in warning
    for more in (["--scale", "standard"], ["--columns", "length,width"]):
        out = f"{more[1][:2]}.mercer"
        assert run("fit", "far.csv", *more, "-r", 1, "-o", out)["warnings"] == []


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_names_go_into_the_scores(form, frame, run, capsys):
    frame.to_csv("t.csv", index=False)
    run("fit", "t.csv", "--id", "name", "-r", 2, "-o", "m.mercer")
    out = f"s.{form}"
    run("transform", "m.mercer", "t.csv", "--id", "name", "--keep", "species,length", "-o", out)
    table = pd.read_csv(out) if form == "csv" else pd.read_parquet(out)
    assert list(table.columns) == ["name", "species", "length", "component1", "component2"]
    assert list(table["name"]) == list(frame["name"])
    np.testing.assert_allclose(table["length"], frame["length"])
    run("inverse", "m.mercer", out, "--keep", "name", "-o", "back.csv")
    assert list(pd.read_csv("back.csv").columns) == ["name", "length", "width", "height"]
    run("cluster", "t.csv", "--id", "name", "-k", 2, "-o", f"c.{form}")
    clusters = read_table(f"c.{form}")
    assert list(clusters.others["name"]) == list(frame["name"])
    assert main(["transform", "m.mercer", "t.csv", "--id", "name", "-o", "s.npy"]) == 1
    assert "numbers of one kind only" in capsys.readouterr().err
    assert main(["transform", "m.mercer", "t.csv", "--id", "nam"]) == 1
    assert "Did you mean name?" in capsys.readouterr().err


def test_names_of_images_go_into_the_scores(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    Path("images").mkdir()
    for i, picture in enumerate(generator(52).integers(0, 256, (9, 4, 4)).astype(np.uint8)):
        Image.fromarray(picture).save(f"images/leaf{i}.png")
    run("fit", "images", "-r", 2, "-o", "m.mercer")
    run("transform", "m.mercer", "images", "-o", "s.csv")
    assert list(read_table("s.csv").others["file"]) == [f"leaf{i}.png" for i in range(9)]
    run("transform", "m.mercer", "images", "-o", "s.npy")
    run("cluster", "images", "-k", 2, "-o", "c.csv")
    assert list(read_table("c.csv").others["file"]) == [f"leaf{i}.png" for i in range(9)]
    run("mds", "images", "--metric", "euclidean", "-o", "d.csv")
    assert list(read_table("d.csv").others["file"]) == [f"leaf{i}.png" for i in range(9)]
    run("report", "m.mercer", "images", "-o", "r.html")
    assert "leaf3.png" in Path("r.html").read_text()


class Stdin:
    def __init__(self, content: bytes):
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize("packed", [False, True])
def test_stdin_and_stdout(packed, frame, monkeypatch, capsysbinary):
    content = frame.to_csv(index=False).encode()
    content = gzip.compress(content) if packed else content
    monkeypatch.setattr(sys, "stdin", Stdin(content))
    assert main(["fit", "-", "-r", "2", "-o", "-"]) == 0
    model, said = capsysbinary.readouterr()
    assert said.endswith(b"written                 stdout\n")
    Path("m.mercer").write_bytes(model)
    monkeypatch.setattr(sys, "stdin", Stdin(content))
    assert main(["transform", "m.mercer", "-", "--id", "name", "-o", "-", "-q"]) == 0
    scores = pd.read_csv(io.BytesIO(capsysbinary.readouterr().out))
    assert list(scores["name"]) == list(frame["name"]) and scores.shape == (N, 3)
    monkeypatch.setattr(sys, "stdin", Stdin(b""))
    assert main(["fit", "-", "-o", "x.mercer"]) == 1
    assert b"stdin is empty" in capsysbinary.readouterr().err
    assert {path.name for path in Path().iterdir()} == {"m.mercer"}


def test_tables_of_every_kind(frame, run):
    pytest.importorskip("openpyxl")
    frame.to_csv("t.csv", index=False)
    first = run("fit", "t.csv", "-r", 2, "-o", "m.mercer")["eigenvalues"]
    frame.to_csv("t.tsv", index=False, sep="\t")
    frame.to_csv("t.csv.gz", index=False)
    frame.to_csv("latin.csv", index=False, sep=";", decimal=",", encoding="latin-1")
    frame.to_excel("t.xlsx", index=False)
    frame.to_feather("t.feather")
    Path("c.csv").write_text("% made today\n" + frame.to_csv(index=False))
    for file, *options in [
        ["t.tsv"],
        ["t.csv.gz"],
        ["latin.csv", "--decimal", ",", "--encoding", "latin-1"],
        ["t.xlsx"],
        ["t.feather"],
        ["c.csv", "--comment", "%"],
    ]:
        facts = run("fit", file, *options, "-r", 2, "-o", f"{file}.mercer")
        np.testing.assert_allclose(facts["eigenvalues"], first, rtol=1e-9)
        assert facts["tables"][0]["left_out"] == {"name": "text", "species": "text"}
        assert facts["warnings"] == []


CELLS = ["", "?", "1", "-2.5", "1e400", "abc", "a,b", "True", "false", "1,5", "nan", "inf", "é"]
CELLS += ["2024-01-01", "#x", " 3 ", "0", "7", "1_000", "-", '"', "0x1f", "1e-3", "NA", "007"]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.sampled_from(CELLS), min_size=width, max_size=width), max_size=9
        )
    ),
    ragged=st.booleans(),
    delimiter=st.sampled_from(",;\t"),
    options=st.sampled_from([[], ["--missing", "drop"], ["--missing", "mean"], ["--no-header"]]),
    scale=st.sampled_from(["none", "standard"]),
)
def test_no_table_is_a_defect(rows, ragged, delimiter, options, scale, tmp_path, capsys):
    """Whatever stands in a table: a result, or one line that says what is wrong."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerows(rows)
    if ragged and rows:
        writer.writerow([*rows[0], "1"])
    table, model = tmp_path / "t.csv", tmp_path / "m.mercer"
    table.write_text(text.getvalue(), encoding="utf-8")
    line = ["fit", str(table), "-r", "1", "--scale", scale, *options, "-o", str(model), "--force"]
    code = main(line)
    said = capsys.readouterr().err.splitlines()
    assert code in (0, 1) and "unexpected" not in " ".join(said), said
    assert (code == 1) == any(part.startswith("mercer: error: ") for part in said)
    if code == 0:
        kept = ["--missing", "drop"] if "drop" in options else options
        assert main(["transform", str(model), str(table), *kept]) == 0, capsys.readouterr().err
        scores = capsys.readouterr().out.splitlines()
        assert 2 <= len(scores) <= len(rows) + 2 + sum(cell.count("\n") for r in rows for cell in r)


@pytest.mark.parametrize("how", ["as said", "as seen", "thousands"])
def test_a_model_remembers_how_its_table_is_written(how, frame, run):
    """What fit was told of the text, transform need not be told again."""
    frame["length"] *= 1e4
    frame["species"] = "größe"
    frame.to_csv("points.csv", index=False)
    options = {"as said": ["--decimal", ",", "--encoding", "latin-1"], "as seen": []}
    options["thousands"] = ["--thousands", "."]
    encoding = "latin-1" if how == "as said" else "utf-8"
    if how == "thousands":
        swap = str.maketrans(",.", ".,")
        frame["length"] = [f"{x:,.12f}".translate(swap) for x in frame["length"]]
    frame.to_csv("euro.csv", index=False, sep=";", decimal=",", encoding=encoding)
    for name, said in [("euro.csv", options[how]), ("points.csv", [])]:
        run("fit", name, *said, "--scale", "standard", "-r", 2, "-o", f"{name}.mercer")
        run("transform", f"{name}.mercer", name, "-o", f"{name}.scores.csv")
    found, wanted = (read_table(f"{name}.scores.csv").X for name in ("euro.csv", "points.csv"))
    np.testing.assert_allclose(found, wanted, atol=1e-8)


def test_clusters_color_a_report_and_are_saved(frame, run):
    import mercer

    frame.to_csv("t.csv", index=False)
    run("fit", "t.csv", "-r", 2, "-o", "m.mercer")
    run("cluster", "t.csv", "-k", 3, "--id", "name", "-o", "c.csv", "--save", "c.mercer")
    model = mercer.load("c.mercer")
    np.testing.assert_array_equal(pd.read_csv("c.csv")["cluster"], model.labels_)
    run("cluster", "t.csv", "-k", 3, "-o", "d.csv", "--save", "c.mercer", code=1)
    assert not Path("d.csv").exists()
    run("embed", "t.csv", "-r", 2, "-o", "e.csv", "--save", "e.mercer")
    assert mercer.load("e.mercer").embedding_.shape == (N, 2)
    run("report", "m.mercer", "t.csv", "--color", "c.csv", "-o", "one.html")
    frame["cluster"] = model.labels_
    frame.to_csv("both.csv", index=False)
    run("fit", "both.csv", "--drop", "cluster", "-r", 2, "-o", "n.mercer")
    run("report", "n.mercer", "both.csv", "--color", "cluster", "-o", "two.html")
    for name in ("one.html", "two.html"):
        data = page_data(name)
        assert data["columns"][data["colored"]]["name"] == "cluster"


def page_data(path):
    """What the scripts of a report are given."""
    text = Path(path).read_text().split('id="data">')[1].split("</script>")[0]
    return json.loads(text)


@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize(
    "command", [["cluster", "-k", 3], ["embed", "-r", 2], ["embed", "-r", 2, "--diffusion"]]
)
def test_saved_models_of_methods_have_reports(command, scale, frame, run):
    """Rows of the same table get their own places: its scaling is saved with the model."""
    frame["height"] *= 1000
    frame.to_csv("t.csv", index=False)
    options = [] if scale == "standard" else ["--columns", "length,width"]
    method, *more = command
    run(method, "t.csv", *more, *options, "--scale", scale, "-o", "o.csv", "--save", "m.mercer")
    made = pd.read_csv("o.csv")
    run("report", "m.mercer", "t.csv", "--id", "name", "-o", "r.html")
    data = page_data("r.html")
    kinds = {column["name"]: column["kind"] for column in data["columns"]}
    assert kinds["species"] == "group" and kinds["height"] == "number"
    assert data["names"] == frame["name"].tolist() and "name" not in kinds
    run("transform", "m.mercer", "t.csv", "-o", "s.csv")
    scores = pd.read_csv("s.csv").to_numpy()
    if method == "cluster":
        assert pd.read_csv("s.csv")["cluster"].tolist() == made["cluster"].tolist()
        label = data["columns"][data["colored"]]
        codes = np.frombuffer(zlib.decompress(base64.b64decode(label["values"]["data"])), "<i4")
        assert [int(label["groups"][code]) for code in codes] == made["cluster"].tolist()
    else:
        np.testing.assert_allclose(scores, made.to_numpy(), atol=1e-6)


def test_reports_show_what_is_missing(frame, run):
    """Filled for the model, and missing for people."""
    frame.loc[3, "width"] = np.nan
    frame.to_csv("t.csv", index=False)
    run("fit", "t.csv", "--missing", "mean", "-r", 2, "-o", "m.mercer")
    run("report", "m.mercer", "t.csv", "-o", "r.html")
    column = next(one for one in page_data("r.html")["columns"] if one["name"] == "width")
    stream = zlib.decompress(base64.b64decode(column["values"]["data"]))
    found = np.frombuffer(stream, f"<{column['values']['kind']}")
    np.testing.assert_allclose(found, frame["width"], rtol=1e-6)
    assert np.isnan(found[3])


@pytest.mark.parametrize("rank", [1, 3])
def test_a_table_for_embedding_atlas(rank, frame, run, capsys):
    """All columns, scores, two places of a map, and for every row those nearest to it."""
    parquet = pytest.importorskip("pyarrow.parquet")
    frame["since"] = pd.date_range("2024-01-01", periods=N).strftime("%Y-%m-%d")
    frame.to_csv("t.csv", index=False)
    run("fit", "t.csv", "-r", rank, "-o", "m.mercer")
    facts = run("transform", "m.mercer", "t.csv", "--atlas", "a.parquet")
    found = parquet.read_table("a.parquet").to_pandas()
    scores = [f"component{k}" for k in range(1, rank + 1)]
    places = ["projection_x", "projection_y", "neighbors"]
    assert set(found) == {*frame, *scores, *places} == set(facts["names"])
    pd.testing.assert_frame_equal(found[list(frame)], frame, check_dtype=False)
    run("transform", "m.mercer", "t.csv", "-o", "s.csv")
    S = pd.read_csv("s.csv").to_numpy()
    np.testing.assert_allclose(found[scores], S, atol=1e-12)
    np.testing.assert_allclose(found[places[:2]], S[:, [0, min(1, rank - 1)]], atol=1e-12)
    for i in range(0, N, 7):
        near, far = found["neighbors"][i]["ids"], np.linalg.norm(S - S[i], axis=1)
        np.testing.assert_allclose(found["neighbors"][i]["distances"], far[near], atol=1e-7)
        np.testing.assert_allclose(far[near], np.sort(far)[: len(near)], atol=1e-7)
        assert i in near[far[near] < 1e-9]
    run("transform", "m.mercer", "t.csv", "--atlas", "a.parquet", code=1)
    run("transform", "m.mercer", "t.csv", "--atlas", "b.parquet", "-o", "s2.csv", code=2)
    assert not Path("b.parquet").exists()


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_array", "coo_matrix"])
@pytest.mark.parametrize("options", [[], ["--memory", "20MB", "--method", "landmarks"]])
def test_sparse_archives(kind, options, run, tmp_path):
    A = sparse.random(N, 6, 0.5, rng=generator(52))
    sparse.save_npz(tmp_path / "a.npz", getattr(sparse, kind)(A))
    np.save(tmp_path / "a.npy", A.toarray())
    found = []
    for name in ("a.npz", "a.npy"):
        model, scores = tmp_path / f"{name}.mercer", tmp_path / f"{name}.scores.npy"
        run("fit", tmp_path / name, "-o", model, *options)
        run("transform", model, tmp_path / name, "-o", scores)
        found.append(np.load(scores))
    np.testing.assert_allclose(np.abs(found[0]), np.abs(found[1]), atol=1e-8)
