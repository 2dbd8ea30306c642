"""Text tables are never read wrongly in silence: what is used, what is left out, and why."""

import gzip

import numpy as np
import pytest
from contracts import generator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mercer import KernelPCA
from mercer.exceptions import TableWarning
from mercer.files import DropMissing, FillMissing, TextFormat, open_source, read_table
from mercer.files import delimited as csv_files

pa = pytest.importorskip("pyarrow")


@pytest.fixture(params=["pyarrow", "csv"], autouse=True)
def csv_reader(request, monkeypatch):
    if request.param == "csv":
        monkeypatch.setattr(csv_files, "has", lambda module: False)


@pytest.fixture
def table(tmp_path):
    """Open a text as a table."""

    def open_text(text, name="rows.csv", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return open_source(path, **options)

    return open_text


def lines(*rows):
    return "".join(row + "\n" for row in rows)


IRIS = ["5.1,3.5,setosa", "4.9,3.0,setosa", "6.2,2.9,virginica", "5.9,3.2,virginica"]


@pytest.mark.parametrize("line", [2, 3, 4, 60])
def test_a_cell_that_is_no_number_is_named_by_its_line(line, table):
    body = [f"{i}.5,{i},a" for i in range(100)]
    body[line - 2] = "1.5,?,a"
    source = table(lines("length,width,species", *body))
    assert source.columns == ["length"]
    assert source.reasons == {"width": f"'?' in line {line}", "species": "text"}
    (note,) = source.notes
    assert "'width' is left out" in note and f"line {line}" in note
    marked = table(lines("length,width,species", *body), format=TextFormat(marks=True))
    assert marked.columns == ["length", "width"] and marked.notes == ()
    with pytest.raises(ValueError, match=rf"row {line - 2} .* in column 'width', line {line};"):
        marked.read()


def test_a_later_cell_that_is_no_number_is_named_too(table):
    body = ["1.5,2,a"] * 500
    body[398] = "1.5,?,a"
    source = table(lines("length,width,species", *body))
    with pytest.raises(ValueError, match=r"line 400 has '\?' in column 'width'. If that is a miss"):
        source.read()
    body[398] = "1.5"
    with pytest.raises(ValueError, match=r"line 400 has 1 cells, and the first line has 3"):
        table(lines("length,width,species", *body)).read()
    body[3] = "1,2"
    with pytest.raises(ValueError, match=r"line 5 has 2 cells, and the first line has 3"):
        table(lines("length,width,species", *body))


def test_kinds_of_columns(table):
    text = lines(
        "n,truth,day,thousands,empty,word",
        '1,True,2024-01-31,"1,000",,a',
        '2,false,2024-02-01,"2,000",,b',
        '3,,2024-02-02 12:30,"3,500",,c',
    )
    source = table(text, format=TextFormat(marks=True))
    assert source.columns == ["n", "truth"]
    assert source.reasons == {
        "day": "dates",
        "thousands": "'1,000' in line 2",
        "empty": "empty",
        "word": "text",
    }
    assert any("decimal" in note for note in source.notes)
    truths = FillMissing(source).read()[:, 1]
    assert_array_equal(truths, [1, 0, 0.5])


def test_an_index_is_no_feature(table):
    pd = pytest.importorskip("pandas")
    X = generator(3).standard_normal((8, 2))
    source = table(pd.DataFrame(X, columns=["a", "b"]).to_csv())
    assert source.columns == ["a", "b"]
    assert source.reasons == {"Unnamed: 0": "row numbers without a name"}
    assert "no name and counts the rows" in source.notes[0]
    asked = table(pd.DataFrame(X, columns=["a", "b"]).to_csv(), columns=["Unnamed: 0"])
    assert_array_equal(asked.read()[:, 0], np.arange(8))
    named = table(pd.DataFrame(X, columns=["a", "b"]).to_csv(index_label="id"))
    assert named.columns == ["id", "a", "b"] and "'id' counts the rows" in named.notes[0]
    other = table(lines(",b", *(f"{3 * i},{i}.5" for i in range(7))))
    assert other.columns == ["Unnamed: 0", "b"] and "has no name" in other.notes[0]


def test_a_table_without_names_keeps_its_first_row(table):
    source = table(lines(*IRIS))
    assert source.columns is None and source.reasons == {"2": "text"}
    assert len(source.read()) == 4
    assert "(5.1, 3.5, setosa) is taken for a row" in source.notes[0]
    asked = table(lines(*IRIS), format=TextFormat(header=True))
    assert asked.columns == ["5.1", "3.5"] and asked.notes == () and len(asked.read()) == 3


def test_names_that_are_numbers(table):
    pd = pytest.importorskip("pandas")
    X = generator(4).standard_normal((5, 3))
    for start in (0, 1990):
        frame = pd.DataFrame(X, columns=range(start, start + 3))
        for text in (frame.to_csv(index=False), frame.to_csv()):
            source = table(text)
            assert source.columns == [str(start + i) for i in range(3)]
            assert any("names that are numbers" in note for note in source.notes)
            np.testing.assert_allclose(source.read(), X)
        kept = table(frame.to_csv(index=False), format=TextFormat(header=False))
        assert len(kept.read()) == 6
    # A row that happens to count up is a row where the others do so too, or hold no fractions.
    for rows in (
        ["1,2,3", "4,5,6"],
        ["3,4,5", "1,7,2"],
        ["0.5,1.5,2.5", "1,2,9.5"],
        ["0,1", "1,0"],
    ):
        source = table(lines(*rows))
        assert source.columns is None and source.notes == () and len(source.read()) == 2


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    X=st.lists(
        st.lists(st.floats(-1e6, 1e6, allow_nan=False, width=32), min_size=3, max_size=3),
        min_size=2,
        max_size=30,
    ),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    header=st.booleans(),
    decimal=st.sampled_from([".", ","]),
    encoding=st.sampled_from(["utf-8", "latin-1", "utf-16", "utf-8-sig"]),
    comments=st.lists(st.integers(0, 31), max_size=3),
    packed=st.booleans(),
)
def test_what_is_written_is_read(
    X, delimiter, header, decimal, encoding, comments, packed, tmp_path
):
    if decimal == delimiter:
        delimiter = ";"
    rows = [delimiter.join(repr(float(cell)).replace(".", decimal) for cell in row) for row in X]
    if header:
        rows.insert(0, delimiter.join(["größe", "b", "c"]))
    for place in comments:
        rows.insert(min(place, len(rows)), "# a remark")
    content = lines(*rows).encode(encoding)
    path = tmp_path / ("rows.csv.gz" if packed else "rows.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    form = TextFormat(encoding=encoding, decimal=decimal, header=header, comment="#")
    source = open_source(path, format=form)
    assert source.columns == (["größe", "b", "c"] if header else None)
    for size in (1, 7, 100):
        assert_array_equal(np.concatenate(list(source.blocks(size))), X)


def test_comments_and_numpy_headers(table, tmp_path):
    X = generator(5).standard_normal((6, 3))
    np.savetxt(tmp_path / "a.csv", X, delimiter=",", header="made today\nu,v,w")
    np.savetxt(tmp_path / "b.txt", X, header="made today")
    assert open_source(tmp_path / "a.csv").columns == ["u", "v", "w"]
    for name in ("a.csv", "b.txt"):
        source = open_source(tmp_path / name)
        assert source.notes == ()
        np.testing.assert_allclose(source.read(), X)
    between = table(lines("a,b", "1,2", "# pause", "3,4"))
    assert_array_equal(between.read(), [[1, 2], [3, 4]])
    assert "left out as comments" in between.notes[0]
    colors = table(lines("color,b", *(f"#ff000{i},{i}.5" for i in range(8))))
    assert colors.columns == ["b"] and len(colors.read()) == 8
    other = table(lines("a,b", "% remark", "1,2", "3,4"), format=TextFormat(comment="%"))
    assert_array_equal(other.read(), [[1, 2], [3, 4]])


def test_encodings_that_are_wrong(table):
    latin = lines("größe,b", "1,2", "3,4").encode("latin-1")
    with pytest.raises(ValueError, match="give encoding='latin-1' or"):
        table(latin)
    assert table(latin, format=TextFormat(encoding="latin-1")).columns == ["größe", "b"]
    wide = lines("a,b", "1,2").encode("utf-16")
    with pytest.raises(ValueError, match="give encoding='utf-16'"):
        table(wide)
    with pytest.raises(ValueError, match="no encoding 'klingon'"):
        table(latin, format=TextFormat(encoding="klingon"))
    with pytest.raises(ValueError, match="cannot be read as text"):
        table(b"not compressed", name="rows.csv.gz")
    whole = gzip.compress(lines("a,b", *["1,2"] * 5000).encode())
    with pytest.raises(ValueError, match="cannot be read"):
        table(whole[: len(whole) // 2], name="rows.csv.gz").read()


@pytest.mark.parametrize("size", [1, 3, 100])
def test_missing_values_are_left_out_or_filled(size, table):
    source = table(lines("a,b,name", "1,2,u", ",4,v", "3,NA,w", "5,6,x"))
    kept = DropMissing(source)
    assert_array_equal(np.concatenate(list(kept.blocks(size))), [[1, 2], [5, 6]])
    assert kept.dropped == 2 and list(kept.others()["name"]) == ["u", "x"]
    filled = FillMissing(source)
    assert_array_equal(np.concatenate(list(filled.blocks(size))), [[1, 2], [3, 4], [3, 4], [5, 6]])
    assert filled.filled == 2 and list(filled.others()["name"]) == ["u", "v", "w", "x"]
    assert_array_equal(FillMissing(source, [0, 0]).read()[1], [0, 4])
    infinite = table(lines("a,b", "1,inf", "2,3"))
    with pytest.raises(ValueError, match="NaN or infinity"):
        DropMissing(infinite).read()


def test_a_fit_tells_what_it_made_of_a_table(table, tmp_path):
    table(lines(*IRIS))
    with pytest.warns(TableWarning, match="is taken for a row") as told:
        KernelPCA(1).fit(str(tmp_path / "rows.csv"))
    assert told[0].filename == __file__


def test_columns_that_are_kept_stay_as_they_are_written(table):
    source = table(lines("a,whole,code,part", "1.5,7,007,1", "2.5,-8,008,2.5"))
    kept = source.others(["whole", "code", "part"])
    assert kept["whole"].dtype.kind == "i" and list(kept["whole"]) == [7, -8]
    assert list(kept["part"]) == [1.0, 2.5] and list(kept["code"]) == ["007", "008"]


def test_excel_and_feather(tmp_path, csv_reader):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame(
        {"a": [1.5, 2.5, 3.5], "day": pd.to_datetime(["2024-01-01"] * 3), "name": ["u", "v", "w"]}
    )
    frame["b"] = [1, "?", 3]
    with pd.ExcelWriter(tmp_path / "x.xlsx") as book:
        frame.to_excel(book, sheet_name="first")
        frame[["a"]].to_excel(book, sheet_name="second", index=False)
    frame.drop(columns="b").to_feather(tmp_path / "x.feather")
    source = open_source(tmp_path / "x.xlsx")
    assert source.columns == ["a"]
    assert source.reasons == {
        "Unnamed: 0": "row numbers without a name",
        "day": "dates",
        "name": "text",
        "b": "'?' in line 3",
    }
    assert any("'b' is left out" in note for note in source.notes)
    assert_array_equal(open_source(tmp_path / "x.xlsx", name="second").read()[:, 0], frame["a"])
    with pytest.raises(ValueError, match="cannot be read as an Excel file"):
        open_source(tmp_path / "x.xlsx", name="third")
    feather = read_table(tmp_path / "x.feather")
    assert feather.names == ["a"] and list(feather.others["name"]) == ["u", "v", "w"]
    (tmp_path / "y.feather").write_text("hello")
    with pytest.raises(ValueError, match="Feather or Arrow file"):
        open_source(tmp_path / "y.feather")


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize("seed", range(3))
def test_decimal_commas_are_seen_and_said(seed, delimiter, header, table):
    X = generator(seed).standard_normal((30, 3))
    rows = [delimiter.join(repr(float(x)).replace(".", ",") for x in row) for row in X]
    source = table(lines(*([delimiter.join("abc")] if header else []), *rows))
    assert_array_equal(source.read(), X)
    assert any("decimal comma" in note for note in source.notes)
    with_points = [row.replace(",", ".") for row in rows]
    source = table(lines(*with_points), name="points.csv")
    assert_array_equal(source.read(), X)
    assert not any("decimal" in note for note in source.notes)


def test_commas_that_may_set_thousands_apart_are_not_guessed(table):
    body = [f"{i},5{i}0;{i}" for i in range(1, 10)]
    source = table(lines("a;b", *body))
    assert source.columns == ["b"] and any("thousands=','" in note for note in source.notes)
    asked = table(lines("a;b", *body), format=TextFormat(thousands=","))
    assert_array_equal(asked.read()[:, 0], [1000 * i + 500 + 10 * i for i in range(1, 10)])


@pytest.mark.parametrize("marks", [".,", ",.", " ,", "'."], ids=repr)
def test_thousands_apart(marks, table):
    """In groups of three digits only: what else has the mark is no number."""
    thousands, point = marks
    X = (generator(3).standard_normal((25, 2)) * 10.0 ** np.array([4, 8])).round(2)
    swap = str.maketrans({",": thousands, ".": point})
    rows = [";".join(f"{x:,.2f}".translate(swap) for x in row) for row in X]
    form = TextFormat(thousands=thousands, decimal=point)
    assert_array_equal(table(lines("a;b", *rows), format=form).read(), X)
    rows[4] = f"1{thousands}5{thousands}0;1"
    with pytest.raises(ValueError, match=r"1.5.0. in line 6"):
        table(lines("a;b", *rows), format=form, columns=["a", "b"]).read()


@pytest.mark.parametrize("seed", range(3))
def test_a_table_has_the_same_columns_as_text_and_as_a_sheet(seed, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    rng, n = generator(seed), 30
    numbers = rng.standard_normal(n)
    frame = pd.DataFrame(
        {
            "x": numbers,
            "typed": [str(x) for x in numbers],
            "whole": rng.integers(0, 9, n),
            "truth": rng.random(n) > 0.5,
            "day": pd.date_range("2024-01-01", periods=n),
            "word": rng.choice(["u", "v"], n),
            "holes": np.where(rng.random(n) < 0.2, np.nan, numbers),
            "mark": ["?" if i == 7 else i for i in range(n)],
            "empty": [None] * n,
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    text, sheet = (open_source(tmp_path / name) for name in ("t.csv", "t.xlsx"))
    assert sheet.columns == text.columns and sheet.reasons == text.reasons
    assert sheet.columns == ["x", "typed", "whole", "truth", "holes"] and sheet.n_rows == n
    rows, wanted = (FillMissing(source).read() for source in (sheet, text))
    np.testing.assert_allclose(rows, wanted, rtol=1e-14)  # a sheet holds 16 digits
    assert [note.split(": ", 1)[1] for note in sheet.notes] == [
        note.split(": ", 1)[1] for note in text.notes
    ]
    assert all(note.startswith("t.xlsx: ") for note in sheet.notes)


def test_images_in_folders_of_classes(tmp_path):
    from PIL import Image

    images = generator(5).integers(0, 255, (6, 4, 5)).astype(np.uint8)
    for i, image in enumerate(images):
        folder = tmp_path / "pictures" / ("cats" if i < 4 else "dogs")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{i}.png")
    found = read_table(tmp_path / "pictures")
    assert_array_equal(found.X, images.reshape(6, -1) / 255)
    assert list(found.others["folder"]) == ["cats"] * 4 + ["dogs"] * 2
    assert "folder" not in read_table(tmp_path / "pictures" / "cats").others
