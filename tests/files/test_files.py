"""Readers of rows in blocks, whole tables, and files written whole or not at all."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from contracts import generator
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from mercer.files import delimited as csv_files
from mercer.files import open_sink, open_source, read_blocks, read_image, read_table
from mercer.files.sinks import SINKS

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N, D = 103, 4
NAMES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def X():
    return generator(N).standard_normal((N, D))


def write_npy(X, path):
    np.save(path, X)


def write_npz(X, path):
    np.savez(path, X)


def write_csv(X, path):
    np.savetxt(path, X, delimiter=",", fmt="%.17g", header=",".join(NAMES), comments="")


def write_tsv(X, path):
    np.savetxt(path, X, delimiter="\t", fmt="%.17g")


def write_parquet(X, path):
    pq.write_table(pa.table(dict(zip(NAMES, X.T, strict=True))), path, row_group_size=20)


WRITERS = {
    "x.npy": write_npy,
    "x.npz": write_npz,
    "x.csv": write_csv,
    "x.tsv": write_tsv,
    "x.parquet": write_parquet,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("rows", [1, 7, 50, 1000])
def test_every_format_gives_the_rows_in_even_blocks(name, rows, X, tmp_path):
    path = tmp_path / name
    WRITERS[name](X, path)
    source = open_source(path)
    assert (source.n_columns, source.dtype, source.repeatable) == (D, np.float64, True)
    assert source.n_rows in (N, None) and source.name == name
    for read in (source.blocks, lambda r: read_blocks(source, r)):
        blocks = list(read(rows))
        assert [len(block) for block in blocks[:-1]] == [rows] * (len(blocks) - 1)
        assert_array_equal(np.concatenate(blocks), X)
    assert_array_equal(open_source(str(path)).read(), X)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.parquet"])
def test_single_precision_stays_and_integers_do_not(name, X, tmp_path):
    for dtype, expected in [(np.float32, np.float32), (np.int16, np.float64)]:
        path = tmp_path / f"{np.dtype(dtype).name}-{name}"
        WRITERS[name]((10 * X).astype(dtype), path)
        source = open_source(path)
        (block,) = source.blocks(N)
        assert source.dtype == block.dtype == expected
        assert_array_equal(block, (10 * X).astype(dtype))


def test_arrays_and_sparse_matrices(X, tmp_path):
    S = sparse.random(50, 30, 0.1, random_state=0)
    sparse.save_npz(tmp_path / "s.npz", S)
    for source in (open_source(S), open_source(tmp_path / "s.npz")):
        blocks = list(source.blocks(20))
        assert [block.shape for block in blocks] == [(20, 30), (20, 30), (10, 30)]
        assert all(sparse.issparse(block) for block in blocks)
        assert_array_equal(source.read().toarray(), S.toarray())
    memmap = np.memmap(tmp_path / "raw", dtype=float, mode="w+", shape=X.shape)
    memmap[:] = X
    assert_array_equal(open_source(memmap).read(), X)
    assert open_source(memmap).name == "raw"
    assert open_source(X).array is X
    with pytest.raises(ValueError, match="2D array of numbers"):
        open_source(np.array([["a", "b"]]))
    with pytest.raises(ValueError, match="2D array of numbers"):
        open_source(X[0])
    with pytest.raises(TypeError, match="Rows cannot be read from dict"):
        open_source({})


def test_open_datasets_are_read_chunk_by_chunk(X, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        source = open_source(file.create_dataset("rows", data=X, chunks=(30, D)))
        assert_array_equal(source.read(), X)
        # No chunk of 30 rows is decoded twice, also where blocks are smaller.
        assert [len(chunk) for chunk in source.chunks(7)] == [30, 30, 30, 13]
        assert [len(chunk) for chunk in source.chunks(70)] == [60, 43]
    with pytest.raises(ValueError, match=r"In Python pass h5py\.File\(path\)\[name\]"):
        open_source(tmp_path / "x.h5")


def test_open_zarr_arrays_are_read(X, tmp_path):
    zarr = pytest.importorskip("zarr")
    store = zarr.create_array(str(tmp_path / "x.zarr"), data=X, chunks=(30, D))
    assert_array_equal(open_source(store).read(), X)


def test_one_array_of_several(X, tmp_path):
    np.savez(tmp_path / "two.npz", first=X, second=2 * X)
    assert_array_equal(open_source(tmp_path / "two.npz", name="second").read(), 2 * X)
    with pytest.raises(ValueError, match=r"\['first', 'second'\], and none was named"):
        open_source(tmp_path / "two.npz")
    with pytest.raises(ValueError, match="none is called 'third'"):
        open_source(tmp_path / "two.npz", name="third")
    (tmp_path / "two.npz").rename(tmp_path / "archive.npy")
    with pytest.raises(ValueError, match=r"archive\.npy cannot be read as a NumPy file"):
        open_source(tmp_path / "archive.npy")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(1, 12))
def test_uneven_and_empty_blocks_are_joined_and_cut(lengths, rows):
    X = np.arange(2.0 * sum(lengths)).reshape(-1, 2)
    pieces = np.split(X, np.cumsum(lengths)[:-1])
    if not sum(lengths):
        with pytest.raises(ValueError, match="gave no rows"):
            open_source(iter(pieces))
        return
    for source in (open_source(iter(pieces)), open_source(lambda: iter(pieces))):
        blocks = list(source.blocks(rows))
        assert all(len(block) == rows for block in blocks[:-1]) and 1 <= len(blocks[-1]) <= rows
        assert_array_equal(np.concatenate(blocks), X)


def test_iterators_are_read_once_and_functions_again(X):
    once = open_source(iter([X[:50], X[50:]]))
    assert not once.repeatable and once.n_rows is None and once.n_columns == D
    assert_array_equal(once.read(), X)
    with pytest.raises(ValueError, match=r"it was read already. Pass a function"):
        once.read()

    def blocks():
        yield X[:50]
        yield X[50:]

    again = open_source(blocks)
    assert again.repeatable and again.name == "the blocks of blocks()"
    assert_array_equal(again.read(), again.read())
    with pytest.raises(TypeError, match="returned int"):
        open_source(lambda: 3)


def test_an_iterator_stays_in_its_thread(X):
    """It may hold what is tied to one, such as a database connection; files are read ahead."""
    seen = []

    def blocks():
        for _ in range(3):
            seen.append(threading.current_thread())
            yield X

    for source in (open_source(blocks), open_source(blocks())):
        list(read_blocks(source, 10))
    assert set(seen) == {threading.current_thread()}


def test_blocks_of_many_kinds(X):
    pd = pytest.importorskip("pandas")
    kinds = [X[:5].tolist(), pd.DataFrame(X[5:10]), X[10:20].astype(np.float32), X[20:]]
    assert np.allclose(open_source(iter(kinds)).read(), X, atol=1e-6)
    with pytest.raises(ValueError, match=r"has shape \(4,\). Pass a single row as x\[None, :\]"):
        open_source(iter([X[0]]))
    with pytest.raises(ValueError, match=r"block at row 103 .* holds .a. of type str"):
        open_source(iter([X, np.array([["a"] * D])])).read()
    with pytest.raises(ValueError, match="rows from 103 have 3 columns, and those before had 4"):
        open_source(iter([X, X[:, :3]])).read()


def test_the_error_of_a_generator_says_how_far_it_came(X):
    def blocks():
        yield X
        yield X[:7]
        raise RuntimeError("the database went away")

    with pytest.raises(RuntimeError, match="went away") as caught:
        open_source(blocks()).read()
    assert "after 110 rows" in caught.value.__notes__[0]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", WRITERS)
def test_a_row_with_nan_is_named(name, bad, X, tmp_path):
    broken = X.copy()
    broken[71, 2] = bad
    WRITERS[name](broken, tmp_path / name)
    column = "'c'" if name in ("x.csv", "x.parquet") else "2"
    with pytest.raises(ValueError, match=rf"{name}: row 71 .* in column {column}"):
        open_source(tmp_path / name).read()


def test_a_sparse_row_with_nan_is_named():
    S = sparse.random(50, 30, 0.1, random_state=0, format="csr")
    S.data[100] = np.nan
    row = int(np.flatnonzero(np.isnan(S.toarray()).any(axis=1))[0])
    column = int(np.flatnonzero(np.isnan(S.toarray()[row]))[0])
    with pytest.raises(ValueError, match=rf"row {row} .* in column {column}"):
        open_source(S).read()


def test_missing_values_of_tables_are_named(tmp_path):
    pq.write_table(pa.table({"a": [1, None, 3], "b": [1.0, 2.0, 3.0]}), tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text("a,b\n1,2\n,3\n4,NA\n")
    for name in ("x.parquet", "x.csv"):
        with pytest.raises(ValueError, match=r"row 1 .* in column 'a'"):
            open_source(tmp_path / name).read()


def test_columns_of_tables(X, tmp_path):
    table = pa.table({"id": [f"r{i}" for i in range(N)], "b": X[:, 1], "a": X[:, 0], "n": range(N)})
    pq.write_table(table, tmp_path / "x.parquet")
    lines = [f"r{i},{row[1]!r},{row[0]!r},{i}" for i, row in enumerate(X.tolist())]
    (tmp_path / "x.csv").write_text("\n".join(["id,b,a,n", *lines]))
    for name in ("x.parquet", "x.csv"):
        path = tmp_path / name
        source = open_source(path)
        assert source.columns == ["b", "a", "n"] and source.left_out == ("id",)
        assert_array_equal(source.read(), np.column_stack([X[:, 1], X[:, 0], np.arange(N)]))
        assert_array_equal(open_source(path, columns=["a", "b"]).read(), X[:, :2])
        assert open_source(path, columns="a").n_columns == 1
        with pytest.raises(ValueError, match="no column 'z'; its columns are"):
            open_source(path, columns=["z"])
        with pytest.raises(ValueError, match="'id' is not made of numbers"):
            open_source(path, columns=["id"])
        with pytest.raises(ValueError, match="names a column twice"):
            open_source(path, columns=["a", "a"])
        with pytest.raises(ValueError, match="columns is empty"):
            open_source(path, columns=[])
        with pytest.raises(ValueError, match="for archives"):
            open_source(path, name="a")
        table = read_table(path, columns=["a"])
        assert table.names == ["a"] and list(table.others) == ["id", "b", "n"]
        assert table.others["id"][3] == "r3"
        assert_array_equal(table.others["b"], X[:, 1])
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ValueError, match="columns are for tables"):
        open_source(tmp_path / "x.npy", columns=["a"])
    with pytest.raises(ValueError, match="columns and name are for files"):
        open_source(X, columns=["a"])


def test_a_folder_of_parquet_files_is_one_table(X, tmp_path):
    folder = tmp_path / "rows"
    (folder / "later").mkdir(parents=True)
    write_parquet(X[:40], folder / "0.parquet")
    write_parquet(X[40:40], folder / "1.parquet")
    write_parquet(X[40:], folder / "later" / "2.parquet")
    (folder / ".hidden.parquet").write_text("not data")
    source = open_source(folder)
    assert source.n_rows == N and source.columns == NAMES
    assert_array_equal(source.read(), X)
    pq.write_table(pa.table({"a": [1.0]}), folder / "3.parquet")
    with pytest.raises(ValueError, match=r"3.parquet has no column of numbers called 'b'"):
        open_source(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="folder without Parquet files"):
        open_source(tmp_path / "empty")


@pytest.mark.parametrize("group", [300_000, 50_000])
def test_parquet_holds_neither_the_file_nor_a_row_group(group, tmp_path):
    columns = generator(1).random((D, 300_000))
    table = pa.table(dict(zip(NAMES, columns, strict=True)))
    # A page is what a reader decodes at once; early releases of pyarrow wrote pages of 1 MB.
    layout = {"row_group_size": group, "use_dictionary": False, "data_page_size": 2**16}
    pq.write_table(table, tmp_path / "x.parquet", **layout)
    del table
    source, before = open_source(tmp_path / "x.parquet"), pa.total_allocated_bytes()
    held = max(pa.total_allocated_bytes() - before for _ in source.blocks(5000))
    assert 0 < held < columns.nbytes / 3


@pytest.mark.parametrize("keep", [0.3, 0.9])
@pytest.mark.parametrize("name", ["x.parquet", "x.npy", "x.npz"])
def test_a_truncated_file_is_refused(name, keep, X, tmp_path):
    WRITERS[name](X, tmp_path / name)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(keep * len(content))])
    with pytest.raises(ValueError, match=f"{name} cannot be read as"):
        open_source(tmp_path / name).read()


def test_damage_inside_a_parquet_file_is_an_error(X, tmp_path):
    path = tmp_path / "x.parquet"
    write_parquet(generator(0).standard_normal((5000, D)), path)
    content = bytearray(path.read_bytes())
    content[4:3000] = b"\xff" * 2996
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.parquet"):
        open_source(path).read()


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        open_source(tmp_path / "x.npy")
    for name in ("x.parquet", "x.npy", "x.npz"):
        (tmp_path / name).write_text("hello")
        with pytest.raises(ValueError, match=f"{name} cannot be read as"):
            open_source(tmp_path / name)
    (tmp_path / "x.docx").write_text("hello")
    with pytest.raises(ValueError, match=r"end in \.docx are not known. Known are \.npy"):
        open_source(tmp_path / "x.docx")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "text.parquet")
    with pytest.raises(ValueError, match="no column of numbers"):
        open_source(tmp_path / "text.parquet")


@pytest.fixture(params=["pyarrow", "csv"])
def csv_reader(request, monkeypatch):
    if request.param == "csv":
        monkeypatch.setattr(csv_files, "has", lambda module: False)


def test_csv_dialects(csv_reader, tmp_path):
    path = tmp_path / "x.csv"
    for text, names in [
        ("1,2\n3,4\n", None),
        ("a;b\n1;2\n3;4", ["a", "b"]),
        ("\n a , b \n1, 2\n\n3,4\n", ["a", "b"]),
        ('a\tb\n"1"\t2\n3\t4.0e0\n', ["a", "b"]),
    ]:
        path.write_text(text)
        source = open_source(path)
        assert source.columns == names
        assert_array_equal(source.read(), [[1, 2], [3, 4]])
    path.write_text("1,2\n3,4\n")
    assert_array_equal(open_source(path, columns=[1]).read(), [[2], [4]])


def test_csv_faults(csv_reader, tmp_path):
    path = tmp_path / "x.csv"
    faults = {
        "": "is empty",
        "a,b\n": "a header and no rows",
        "a,a\n1,2\n": "the same name",
        "1,2\n3\n": "line 2 has 1 cells, and the first line has 2",
        "x,y\nu,v\n": "no column of numbers",
        "1,2\n" * 200 + "1,oops\n": "cannot be read as numbers.*oops",
        "1,2\n" * 200 + "1\n": "cannot be read as numbers",
    }
    for text, message in faults.items():
        path.write_text(text)
        with pytest.raises(ValueError, match=f"(?s){message}"):
            open_source(path).read()
    path.write_bytes(b"\xff\xfe\x00\x01" * 10)
    with pytest.raises(ValueError, match="cannot be read as"):
        open_source(path).read()


def test_tables_of_images(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    grey = generator(1).integers(256, size=(3, 5, 7), dtype=np.uint8)
    for i, image in enumerate(grey):
        Image.fromarray(image).save(tmp_path / f"{i}.png")
    (tmp_path / "notes.txt").write_text("not an image")
    table = read_table(tmp_path)
    assert table.image_shape == (5, 7) and table.names is None
    assert_array_equal(table.X, grey.reshape(3, -1) / 255)
    assert list(table.others["file"]) == ["0.png", "1.png", "2.png"]
    assert_array_equal(read_image(tmp_path / "1.png"), grey[1] / 255)
    Image.fromarray(np.zeros((5, 7, 3), np.uint8)).save(tmp_path / "3.png")
    assert read_table(tmp_path).image_shape == (5, 7, 3)
    assert read_table(tmp_path / "3.png").X.shape == (1, 105)
    wide = (256 * grey[0].astype(np.uint16)).astype(np.uint16)
    Image.fromarray(wide).save(tmp_path / "wide.png")
    np.testing.assert_allclose(read_image(tmp_path / "wide.png"), wide / 65535)
    Image.fromarray(np.zeros((4, 7), np.uint8)).save(tmp_path / "9.png")
    with pytest.raises(ValueError, match=r"9.png is 7 x 4 pixels and 0.png is 7 x 5"):
        read_table(tmp_path)
    (tmp_path / "9.png").write_bytes((tmp_path / "0.png").read_bytes()[:60])
    with pytest.raises(ValueError, match=r"9.png cannot be read as an image"):
        read_table(tmp_path)


def test_tables_of_arrays(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    table = read_table(tmp_path / "x.npy")
    assert_array_equal(table.X, X)
    assert table.names is None and table.others == {} and table.image_shape is None


@pytest.mark.parametrize("suffix", SINKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_written_reads_back(suffix, dtype, X, tmp_path):
    path = tmp_path / f"scores{suffix}"
    X = X.astype(dtype)
    with open_sink(path, D, dtype, NAMES) as sink:
        for block in np.split(X, [1, 1, 60]):
            sink.write(block)
        assert not path.exists(), "it appears when it is whole"
    if suffix == ".npy":
        assert np.load(path).dtype == dtype
    source = open_source(path)
    assert_array_equal(source.read().astype(dtype), X)
    assert source.columns == (None if suffix == ".npy" else NAMES)
    assert os.listdir(tmp_path) == [path.name]
    assert path.stat().st_mode & 0o444 == 0o444 & ~os.umask(os.umask(0o022)) or os.name == "nt"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["npy", "csv", "parquet", "folder", "feather", "blocks"])
def test_reading_from_any_row_on(kind, seed, tmp_path):
    """The blocks behind any row are those of the rows behind it, in files of any groups."""
    rng = generator(seed, 9)
    X, path = rng.standard_normal((int(rng.integers(2, 400)), 3)), tmp_path / f"x.{kind}"
    pa = pytest.importorskip("pyarrow")
    parquet, feather = (pytest.importorskip(f"pyarrow.{name}") for name in ("parquet", "feather"))
    table, group = pa.table(dict(zip("abc", X.T, strict=True))), int(rng.integers(1, 90))
    match kind:
        case "npy":
            np.save(path, X)
        case "csv":
            np.savetxt(path, X, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
        case "parquet":
            parquet.write_table(table, path, row_group_size=group)
        case "folder":
            path.mkdir()
            for i, start in enumerate(range(0, len(X), 3 * group)):
                part = table.slice(start, 3 * group)
                parquet.write_table(part, path / f"{i:03}.parquet", row_group_size=group)
        case "feather":
            feather.write_feather(table, path, chunksize=group)
    cuts = np.sort(rng.integers(0, len(X), 5))
    source = open_source(path) if kind != "blocks" else open_source(lambda: np.split(X, cuts))
    for start in (0, 1, len(X) - 1, len(X), *rng.integers(0, len(X), 5)):
        rows = int(rng.integers(1, 120))
        blocks = list(source.blocks(rows, int(start)))
        assert [len(block) for block in blocks[:-1]] == [rows] * (len(blocks) - 1)
        assert_array_equal(np.concatenate([X[:0], *blocks]), X[start:])


@pytest.mark.parametrize("suffix", SINKS)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_while_writing_leaves_what_was_there(suffix, error, X, tmp_path):
    path = tmp_path / f"scores{suffix}"
    path.write_text("before")
    with pytest.raises(error), open_sink(path, D) as sink:
        sink.write(X)
        raise error
    assert os.listdir(tmp_path) == [path.name] and path.read_text() == "before"


def test_targets_that_cannot_be(tmp_path):
    with pytest.raises(ValueError, match=r"end in \.npy, \.parquet"):
        open_sink(tmp_path / "scores.xlsx", D).__enter__()
    with pytest.raises(FileNotFoundError, match="no folder"), open_sink(tmp_path / "a/b.npy", D):
        pass


@pytest.mark.parametrize("suffix", SINKS)
def test_a_disk_that_fills_while_writing_leaves_nothing(suffix, tmp_path):
    """The limit of a file's size stands for the disk: writes fail half way as on a full one."""
    resource = pytest.importorskip("resource")
    path = tmp_path / f"scores{suffix}"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError) as caught, open_sink(path, D) as sink:
            for seed in range(20):
                sink.write(generator(seed).standard_normal((1000, D)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(tmp_path) == []
    assert "File too large" in str(caught.value)


def test_an_interrupt_leaves_nothing(tmp_path):
    """A real SIGINT, in a process of its own, in the middle of a write."""
    code = f"""
        import numpy as np, os, signal
        from mercer.files import open_sink
        with open_sink({str(tmp_path / "s.npy")!r}, 2) as sink:
            sink.write(np.ones((1000, 2)))
            os.kill(os.getpid(), signal.SIGINT)
            sink.write(np.ones((1000, 2)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True
    )
    assert done.returncode != 0 and "KeyboardInterrupt" in done.stderr
    assert os.listdir(tmp_path) == []
