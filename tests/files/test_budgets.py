"""What a small file unpacks to stays within the budget, or is refused soon, in words."""

import time
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from contracts import SEED, generator, peak_bytes
from scipy import sparse

from mercer import KernelPCA
from mercer.files import open_source, read_table

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def write_book(path, rows, columns, row=b""):
    """An Excel file of equal cells, which packs to a thousandth."""
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("pandas")
    empty = path.with_name("empty.xlsx")
    openpyxl.Workbook().save(empty)
    with ZipFile(empty) as source, ZipFile(path, "w", ZIP_DEFLATED) as book:
        for name in source.namelist():
            if "worksheets" not in name:
                book.writestr(name, source.read(name))
                continue
            with book.open(name, "w") as file:
                file.write(f'<worksheet xmlns="{MAIN}"><sheetData>'.encode())
                for _ in range(rows):
                    file.write(row or b"<row>" + b"<c><v>1.5</v></c>" * columns + b"</row>")
                file.write(b"</sheetData></worksheet>")


@pytest.mark.parametrize("where", ["cell", "formula", "attribute", "comment"])
def test_books_of_few_cells_with_long_texts(where, tmp_path):
    path, long = tmp_path / "x.xlsx", b"a" * 100_000_000
    parts = {
        "cell": (b'<row><c t="inlineStr"><is><t>', b"</t></is></c></row>"),
        "formula": (b"<row><c><f>", b"</f><v>1</v></c></row>"),
        "attribute": (b'<row><c r="', b'"><v>1</v></c></row>'),
        "comment": (b"<!--", b"--><row><c><v>1</v></c></row>"),
    }
    write_book(path, 1, 1, parts[where][0] + long + parts[where][1])
    assert path.stat().st_size < 1_000_000
    with pytest.raises(ValueError, match=r"x\.xlsx has .* memory allows 100"):
        open_source(path, memory="100MB")


@pytest.mark.parametrize("filled", [True, False])
def test_books_of_two_cells_far_apart(filled, tmp_path):
    """All places between them were filled in; cells without a value are none."""
    path = tmp_path / "x.xlsx"
    last = b'<row r="1048576"><c r="XFD1048576"%s</row>'
    row = b'<row r="1"><c r="A1"><v>1</v></c></row><row r="2"><c r="A2"><v>3</v></c></row>'
    write_book(path, 1, 1, row + last % (b"><v>1</v></c>" if filled else b' s="0"/>'))
    if filled:
        with pytest.raises(ValueError, match=r"x\.xlsx has 17,179,869,184 cells or more"):
            open_source(path, memory="2GB")
    else:
        assert open_source(path, memory="2GB").read().shape == (2, 1)


@pytest.mark.parametrize("shape", [(1, 2_000_000), (100_000, 20), (1_000, 2_000)])
def test_books_of_many_cells(shape, tmp_path):
    path = tmp_path / "x.xlsx"
    write_book(path, *shape)
    assert path.stat().st_size < 1_000_000
    start = time.perf_counter()
    for opened in (
        lambda: open_source(path, memory="100MB"),
        lambda: KernelPCA(2, memory="100MB").fit(path),
    ):
        with pytest.raises(ValueError, match=r"x\.xlsx has .* cells or more.* memory allows 100"):
            opened()
    assert time.perf_counter() - start < 10
    write_book(path, 20, 3)
    assert open_source(path, memory="1MB").read().shape == (20, 3)


def test_damaged_books(tmp_path):
    path, rng = tmp_path / "x.xlsx", generator(3, SEED)
    write_book(path, 30, 4)
    content = path.read_bytes()
    for _ in range(30):
        damaged = np.frombuffer(content, np.uint8).copy()
        if rng.random() < 0.5:
            damaged = damaged[: rng.integers(len(damaged))]
        else:
            damaged[rng.integers(0, len(damaged), 9)] = rng.integers(0, 256, 9)
        path.write_bytes(damaged.tobytes())
        try:
            open_source(path).read()
        except ValueError as error:
            assert "x.xlsx" in str(error)


@pytest.mark.parametrize("kind", ["sparse", "by columns", "weights"])
def test_archives_of_zeros(kind, tmp_path):
    """Every way to an archive knows the budget: rows, what stands beside them, and tables."""
    path, X = tmp_path / "x.npz", generator(4, SEED).standard_normal((50, 3))
    if kind == "sparse":
        sparse.save_npz(path, sparse.csr_array(np.ones((2, 2_000_000))))
    elif kind == "by columns":
        np.savez_compressed(path, np.zeros((2_000_000, 4), order="F"))
    else:
        np.savez_compressed(path, np.zeros(5_000_000))
    assert path.stat().st_size < 6_000_000
    fit = KernelPCA(2, memory="20MB", basis="landmarks").fit
    ways = [lambda: fit(X, sample_weight=path)]
    if kind != "weights":
        ways += [
            lambda: open_source(path, memory="20MB").read(),
            lambda: read_table(path, memory="20MB"),
        ]
    for way in ways:
        refusals = []
        used = peak_bytes(lambda way=way, to=refusals: to.append(refusal(way)))
        assert "x.npz takes" in refusals[0] and "memory" in refusals[0]
        assert used < 25 * 10**6


def refusal(way):
    """What is said instead of the result."""
    with pytest.raises(ValueError) as error:
        way()
    return str(error.value)
