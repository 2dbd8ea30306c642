"""Rows of Arrow streams: of real DuckDB, polars and pyarrow."""

import numpy as np
import pytest
from contracts import SEED, generator
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from mercer import (
    ClassicalMDS,
    HebbianKernelPCA,
    KernelPCA,
    NoveltyDetector,
    SpectralClustering,
    StreamingKernelPCA,
)
from mercer.files import is_arrow, open_source, read_blocks
from mercer.report import write_report

pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")

N, NAMES = 2500, ["a", "b", "c"]
OPEN: list = []  # connections, which relations of DuckDB below 1.5 do not keep alive


@pytest.fixture(scope="module")
def X():
    return generator(31).standard_normal((N, len(NAMES)))


@pytest.fixture(scope="module")
def table(X):
    """Numbers between columns of other kinds."""
    columns = dict(zip(NAMES, X.T, strict=True))
    labels = [f"r{i}" for i in range(N)]
    return pa.table({"label": labels, **columns, "day": pa.array([0] * N, pa.date32())})


def dataset_of(table, folder):
    import pyarrow.dataset

    folder = folder / f"{len(table)}"
    if not folder.exists():
        pyarrow.dataset.write_dataset(table, folder, format="parquet")
    return pyarrow.dataset.dataset(folder)


def scan_of(table, folder):
    return dataset_of(table, folder).scanner(columns=["label", *NAMES])


def relation_of(table, folder):
    connection = duckdb.connect()
    OPEN.append(connection)
    connection.register("given", table)
    connection.execute("create table kept as select * from given")
    return connection.table("kept")


KINDS = {
    "pyarrow table": lambda table, folder: table,
    "polars frame": lambda table, folder: pl.from_arrow(table),
    "polars query": lambda table, folder: pl.from_arrow(table).lazy(),
    "DuckDB relation": relation_of,
    "pyarrow dataset": dataset_of,
    "pyarrow reader": lambda table, folder: table.to_reader(1000),
    "pyarrow scan": scan_of,
}
ONCE = {"pyarrow reader", "pyarrow scan"}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def rows(kind, table, tmp_path):
    return KINDS[kind](table, tmp_path)


@pytest.mark.parametrize("size", [1, 700, 10_000])
def test_blocks_are_the_rows(kind, rows, size, X):
    if size == 1 and kind == "polars query":
        size = 50  # a thread a batch
    source = open_source(rows)
    assert is_arrow(rows) and source.columns == NAMES
    assert source.reasons["label"] == "text" and source.reasons.get("day", "dates") == "dates"
    assert source.repeatable == (kind not in ONCE)
    blocks = list(read_blocks(source, size))
    assert {len(block) for block in blocks[:-1]} <= {size}
    assert_array_equal(np.concatenate(blocks), X)
    if kind in ONCE:
        with pytest.raises(ValueError, match="it was read already"):
            source.read()
    else:
        assert_array_equal(source.read(), X)
        assert source.others(["label"])["label"][7] == "r7"


def test_columns_are_chosen(kind, rows, X):
    source = open_source(rows, columns=["c", "a"])
    assert source.columns == ["c", "a"] and source.reasons["b"] == "not asked for"
    assert_array_equal(source.read(), X[:, [2, 0]])


def test_a_reading_left_early_can_be_begun_again(kind, rows, X):
    """A connection of DuckDB has room for one open result."""
    if kind in ONCE:
        pytest.skip("read once")
    source = open_source(rows)
    for _ in range(3):
        blocks = source.blocks(10)
        assert_array_equal(next(blocks), X[:10])
        blocks.close()
    assert_array_equal(source.read(), X)


@pytest.mark.parametrize("basis", ["points", "landmarks"])
def test_fit_and_transform(kind, table, tmp_path, basis, X):
    settings = {"kernel": "rbf", "gamma": 0.2, "random_state": 0, "basis": basis, "tol": 1e-8}
    few = slice(0, 300 if basis == "points" else N)
    model = KernelPCA(3, **settings)
    if kind in ONCE and basis == "landmarks":
        with pytest.raises(ValueError, match="can be read only once"):
            model.fit(KINDS[kind](table, tmp_path))
        return
    model.fit(KINDS[kind](table.slice(0, few.stop), tmp_path))
    same = KernelPCA(3, **settings).fit(open_source(X[few]) if basis != "points" else X[few])
    assert list(model.feature_names_in_) == NAMES
    assert_allclose(model.eigenvalues_, same.eigenvalues_, rtol=1e-6)
    S = model.transform(KINDS[kind](table, tmp_path))
    expected = pl.DataFrame if kind.startswith("polars") else pa.Table
    assert isinstance(S, expected)
    values = S.to_numpy() if expected is pl.DataFrame else np.column_stack(S.columns)
    assert_allclose(np.abs(values), np.abs(same.transform(X)), atol=1e-6)
    out = model.transform(KINDS[kind](table, tmp_path), out=tmp_path / "scores.parquet")
    assert open_source(out).columns == list(model.get_feature_names_out())
    assert_allclose(open_source(out).read(), values)
    model.set_output(transform="pandas")
    assert type(model.transform(KINDS[kind](table, tmp_path))).__module__.startswith("pandas")


def test_scores_of_a_fit_come_in_kind(table):
    S = KernelPCA(2, kernel="rbf", gamma=0.3).fit_transform(pl.from_arrow(table.slice(0, 100)))
    assert isinstance(S, pl.DataFrame) and S.shape == (100, 2)


def test_duckdb_reads_the_scores(table):
    relation = relation_of(table.slice(0, 200), None)
    scores = KernelPCA(2, kernel="linear").fit(relation).transform(relation)  # noqa: F841
    assert duckdb.sql("select count(*), sum(kernelpca0) from scores").fetchall()[0][0] == 200


def test_a_stream_larger_than_memory_is_read_in_batches(X):
    """The rows are made by the query, and never stand in one array."""
    relation = duckdb.sql(
        "select sin(i) as a, cos(i * 0.7) as b, sin(i * i) as c from range(150000) r(i)"
    )
    model = KernelPCA(
        3, kernel="rbf", gamma=0.5, basis="landmarks", memory="4MB", random_state=0
    ).fit(relation)
    assert model.certificate_.converged and model.expansion_.basis.size < 2000


ESTIMATORS = [
    KernelPCA(2, kernel="rbf", gamma=0.3),
    HebbianKernelPCA(2, kernel="rbf", gamma=0.3, random_state=0),
    StreamingKernelPCA(2, kernel="rbf", gamma=0.3, random_state=0),
    NoveltyDetector(n_components=2, kernel="rbf", gamma=0.3),
    SpectralClustering(2, gamma=0.3, random_state=0),
    ClassicalMDS(2),
]


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_every_estimator_takes_them(kind, model, table, tmp_path):
    found = clone(model).fit(KINDS[kind](table.slice(0, 120), tmp_path))
    assert list(found.feature_names_in_) == NAMES, "columns of numbers, and no others"


@pytest.mark.parametrize("kind", ["pyarrow table", "polars frame", "polars query"])
def test_reports_take_them(kind, table, tmp_path):
    rows = KINDS[kind](table.slice(0, 60), tmp_path)
    model = KernelPCA(2, kernel="rbf", gamma=0.3).fit(rows)
    page = write_report(model, rows, tmp_path / "r.html", color="day").read_text()
    for name, kind in [("a", "number"), ("b", "number"), ("c", "number"), ("day", "date")]:
        assert f'"name":"{name}","kind":"{kind}"' in page


def test_missing_values_and_kinds():
    table = pa.table(
        {
            "whole": pa.array([1, 2, 3]),
            "truth": pa.array([True, False, True]),
            "exact": pa.array([1, 2, 3], pa.decimal128(5, 2)),
            "single": pa.array([1, 2, 3], pa.float32()),
            "code": pa.array([1.0, 2.0, 1.0]).dictionary_encode(),
            "words": pa.array(["a", "b", "a"]).dictionary_encode(),
            "list": pa.array([[1], [2], [3]]),
        }
    )
    source = open_source(table)
    assert source.columns == ["whole", "truth", "exact", "single", "code"]
    assert set(source.reasons) == {"words", "list"}
    assert_array_equal(source.read()[:, 1], [1, 0, 1])
    assert open_source(table.select(["single"])).dtype == np.float32
    broken = open_source(pa.table({"a": pa.array([1, None, 3]), "b": [1.0, 2.0, 3.0]}))
    with pytest.raises(ValueError, match=r"row 1 .* in column 'a'"):
        broken.read()
    with pytest.raises(TypeError, match="no stream of rows"):
        open_source(pa.chunked_array([[1.0, 2.0]]))


def test_pandas_frames_and_what_derives_from_them_are_arrays(X):
    pd = pytest.importorskip("pandas")

    class Measured(pd.DataFrame):
        pass

    for frame in (pd.DataFrame(X[:30], columns=NAMES), Measured(X[:30], columns=NAMES)):
        assert not is_arrow(frame) and not is_arrow(frame["a"])
        assert isinstance(KernelPCA(2).fit(frame).transform(frame), np.ndarray)
    assert not is_arrow(X) and not is_arrow(pl.DataFrame) and not is_arrow([[1.0]])


def test_a_query_of_an_old_polars_is_refused(monkeypatch, table):
    monkeypatch.delattr(pl.LazyFrame, "collect_batches")
    with pytest.raises(TypeError, match=r"Pass frame\.collect\(\)"):
        KernelPCA(2).fit(pl.from_arrow(table).lazy())


@pytest.mark.parametrize("seed", range(4))
def test_parquet_in_parts_of_its_columns(seed, tmp_path):
    """A budget too small for all columns at once reads the same rows, from any row on."""
    parquet = pytest.importorskip("pyarrow.parquet")
    rng = generator(seed, SEED)
    n, d = int(rng.integers(50, 9000)), int(rng.integers(2, 9))
    X = rng.standard_normal((n, d)).round(int(rng.integers(0, 9)))
    words = pa.array(rng.choice(["a", "b", None], n).tolist()).dictionary_encode()
    table = pa.table({f"c{i}": X[:, i] for i in range(d)} | {"word": words})
    path, group = tmp_path / "x.parquet", int(rng.integers(1, n + 1))
    parquet.write_table(table, path, row_group_size=max(group, n // 20))
    source = open_source(path, memory=int(rng.integers(10_000, 300_000)))
    start, rows = int(rng.integers(0, n)), int(rng.integers(1, n + 1))
    np.testing.assert_array_equal(np.vstack(list(source.blocks(rows))), X)
    if start:
        np.testing.assert_array_equal(np.vstack(list(source.blocks(rows, start))), X[start:])
    others = source.others()
    assert list(others) == ["word"] and others["word"].tolist() == words.to_pylist()
