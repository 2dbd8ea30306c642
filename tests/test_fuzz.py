"""Whatever a file holds: it is read, or refused in one clear sentence, soon and in little memory.

Files of every kind are damaged at random, and forged where damage alone would be found out. A
reader may raise ValueError that names the file; a model file is opened and works, or raises
ModelFileError. Anything else (a foreign exception, a late failure, a crash) fails the test.
"""

import json
import os

import numpy as np
import pytest
from scipy import sparse

from mercer import (
    ClassicalMDS,
    HebbianKernelPCA,
    KernelPCA,
    NoveltyDetector,
    SpectralClustering,
    StreamingKernelPCA,
    load,
)
from mercer.bases import FourierGrid
from mercer.files import open_source
from mercer.saving import ModelFileError
from mercer.saving.archive import write_archive
from mercer.saving.models import KNOWN
from mercer.saving.values import Writer

SEED = int(os.environ.get("MERCER_SEED", "0")) or None
X = np.random.default_rng(5).random((40, 3))
NEW = np.random.default_rng(6).random((7, 3))
S = sparse.random(40, 6, 0.3, format="csr", random_state=1)
# Inputs for each of 21 kinds of file: 525 in the suite, 105,000 in `make test-slow`.
QUICK, LONG = 25, 5000


def write_csv(path):
    np.savetxt(path, X, delimiter=",", header="a,b,c", comments="")


def write_parquet(path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table(dict(zip("abc", X.T, strict=True))), path)


def write_feather(path):
    pa, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    feather.write_feather(pa.table(dict(zip("abc", X.T, strict=True))), str(path))


WRITERS = {
    "x.npy": lambda path: np.save(path, X),
    "x.npz": lambda path: np.savez_compressed(path, X=X),
    "columns.npz": lambda path: np.savez(path, X=np.asfortranarray(X)),
    "csr.npz": lambda path: sparse.save_npz(path, S),
    "coo.npz": lambda path: sparse.save_npz(path, S.tocoo(), compressed=False),
    "x.csv": write_csv,
    "x.csv.gz": write_csv,
    "x.parquet": write_parquet,
    "x.feather": write_feather,
}


def damaged(content: bytes, rng) -> bytes:
    """Bytes with a few changed, left out, doubled or put in."""
    out = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        at, size = int(rng.integers(0, len(out) + 1)), int(rng.integers(1, 9))
        kind = rng.integers(6)
        if kind == 0:
            del out[at:]
        elif kind == 1:
            del out[at : at + size]
        elif kind == 2:
            out[at:at] = rng.bytes(size)
        elif kind == 3:
            out[at:at] = out[at : at + 40]
        elif out:
            place = min(at, len(out) - 1)
            # Small files are mostly header, which ordinary damage should meet too.
            place = place if kind == 4 else place % min(len(out), 200)
            out[place] = int(rng.integers(256)) if rng.random() < 0.5 else out[place] ^ 1
    return bytes(out)


def check_read(path):
    try:
        source = open_source(path)
        rows = sum(block.shape[0] for block in source.blocks(16))
        assert source.n_rows in (None, rows)
        assert source.n_columns > 0
    except ValueError as error:
        assert type(error) is ValueError, f"{type(error)}: {error}"
        assert path.name in str(error) or "Two columns" in str(error), error


def fuzz_reader(name, folder, count, seed):
    path = folder / name
    WRITERS[name](path)
    check_read(path)
    content = path.read_bytes()
    for case in range(count):
        path.write_bytes(damaged(content, np.random.default_rng([seed, case])))
        try:
            check_read(path)
        except BaseException as error:
            error.add_note(f"{name}, seed {seed}, case {case}")
            raise


@pytest.fixture
def seed(request):
    """Fixed in the suite, so that it says the same twice; drawn anew in the slow runs."""
    slow = request.node.get_closest_marker("slow") is not None
    return SEED or (int(np.random.default_rng().integers(2**31)) if slow else 1)


@pytest.mark.filterwarnings("ignore::mercer.exceptions.TableWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("name", WRITERS)
def test_damaged_tables(name, tmp_path, seed):
    fuzz_reader(name, tmp_path, QUICK, seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mercer.exceptions.TableWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("name", WRITERS)
def test_damaged_tables_at_length(name, tmp_path, seed):
    fuzz_reader(name, tmp_path, LONG, seed)


FORGED = {
    "indptr wraps around 32 bits": {"indptr": np.array([0, 2**31 - 1, -(2**31), 3], np.int32)},
    "indptr falls": {"indptr": np.array([0, 3, 1, 3])},
    "indptr beyond the numbers": {"indptr": np.array([0, 1, 2, 300])},
    "indptr of unsigned numbers": {"indptr": np.array([0, 2**63, 2, 3], np.uint64)},
    "indptr of fractions": {"indptr": np.array([0.0, 1.0, 2.0, 3.0])},
    "indptr of another length": {"indptr": np.array([0, 3])},
    "indices beyond the columns": {"indices": np.array([0, 1, 10**6])},
    "negative indices": {"indices": np.array([0, -1, 1])},
    "fewer indices": {"indices": np.array([0, 1])},
    "numbers that are texts": {"data": np.array(["a", "b", "c"])},
    "a shape of one number": {"shape": np.array([3])},
    "a negative shape": {"shape": np.array([3, -2])},
    "a shape beyond all": {"shape": np.array([3, 2**63 - 1])},
    "a format that is none": {"format": np.array("evil")},
    "a format that is a number": {"format": np.array(3.0)},
}
GOOD = {
    "data": np.ones(3),
    "indices": np.array([0, 1, 1]),
    "indptr": np.array([0, 1, 2, 3]),
    "shape": np.array([3, 2]),
    "format": np.array("csr"),
}


@pytest.mark.parametrize("what", FORGED)
def test_forged_sparse_archives(what, tmp_path):
    """Parts that contradict each other never reach compiled code."""
    path = tmp_path / "x.npz"
    np.savez(path, **GOOD)
    assert open_source(path).read().shape == (3, 2)
    np.savez(path, **GOOD | FORGED[what])
    with pytest.raises(ValueError, match=r"x\.npz"):
        open_source(path)


def test_archives_that_claim_any_size(tmp_path):
    """A kilobyte that says it is a matrix of a million gigabytes."""
    import io
    import zipfile

    from contracts import peak_bytes

    path = tmp_path / "bomb.npz"
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", head.getvalue() + bytes(80))
    with pytest.raises(ValueError, match=r"bomb\.npz.*claims the shape"):
        open_source(path)
    # And one that is as large as it says: its rows come one block after another.
    np.savez_compressed(path, X=np.zeros((200_000, 20)))
    assert path.stat().st_size < 100_000

    def read():
        assert sum(len(block) for block in open_source(path).blocks(1000)) == 200_000

    assert peak_bytes(read) < 2_000_000


def test_arrays_without_columns(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5, 0)))
    np.savez(tmp_path / "x.npz", np.zeros((5, 0)))
    for name in ("x.npy", "x.npz"):
        with pytest.raises(ValueError, match=f"{name} has no columns"):
            KernelPCA(2).fit(tmp_path / name)


def test_tables_with_very_many_columns(tmp_path):
    """The time is proportional to the cells: each column used to be looked up among all."""
    from time import perf_counter

    path = tmp_path / "wide.csv"
    seconds = []
    for d in (2_000, 20_000):
        line = ",".join(["0.5"] * d)
        path.write_text(",".join(f"c{i}" for i in range(d)) + f"\n{line}\n{line}\n")
        start = perf_counter()
        assert open_source(path).read().shape == (2, d)
        seconds.append(perf_counter() - start)
    assert seconds[1] < 60 * seconds[0] + 1


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.files.text.MOST_LINE", 1000)
    (tmp_path / "x.csv").write_text("1,2\n" + "3," * 2000)
    with pytest.raises(ValueError, match="line 2 has more than 1,000 characters"):
        open_source(tmp_path / "x.csv")


def streamed(**settings):
    return StreamingKernelPCA(2, kernel="rbf", gamma=0.5, random_state=0, **settings).fit(X)


MODELS = {
    "landmarks": lambda: KernelPCA(2, kernel="rbf", basis="landmarks", random_state=0).fit(X),
    "points": lambda: KernelPCA(2, kernel="rbf").fit(X),
    "sparse": lambda: KernelPCA(2, kernel="rbf").fit(sparse.csr_matrix(X)),
    "features": lambda: KernelPCA(2, kernel="rbf", basis="features", random_state=0).fit(X),
    "fourier": lambda: KernelPCA(2, kernel="rbf", basis=FourierGrid(tol=0.1)).fit(X),
    "stream": lambda: streamed(budget=12),
    "stream of features": lambda: streamed(basis="features", budget=12),
    "Hebbian stream": lambda: HebbianKernelPCA(2, kernel="rbf", budget=20).partial_fit(X),
    "MDS": lambda: ClassicalMDS(2).fit(X),
    "MDS of a metric": lambda: ClassicalMDS(2, metric="cityblock", landmarks=9).fit(X),
    "clusters": lambda: SpectralClustering(2, random_state=0).fit(X),
    "novelty": lambda: NoveltyDetector(2, kernel="rbf").fit(X),
}
VALUES = [
    *(None, True, 0, -1, 3, 10**30, 2**62, 0.5, -0.5, 1e300, "", "rbf", [], {}, [[1]]),
    *({"@": "RBF"}, {"@": 3}, {"@": "float", "value": "nan"}, {"@": "float", "value": "inf"}),
    *({"@": "RBF", "gamma": 0.5}, {"@": "tuple", "items": [1, 2]}),
]


def places(item, path=()):
    """The way to every value of a JSON document."""
    yield path
    if isinstance(item, dict | list):
        for key, value in item.items() if isinstance(item, dict) else enumerate(item):
            yield from places(value, (*path, key))


def replaced(item, path, value):
    """A JSON document with another value in one place."""
    if not path:
        return value
    copy = item.copy()
    copy[path[0]] = replaced(item[path[0]], path[1:], value)
    return copy


def forged_tensor(A, rng):
    """An array with other numbers, of another type or of another shape."""
    A = A.copy()
    kind = rng.integers(8)
    if kind < 4 and A.size:
        extreme = [np.nan, np.inf, 0, -1] if A.dtype.kind == "f" else [2**31 - 1, -1, 0, -(2**31)]
        A.flat[int(rng.integers(A.size))] = extreme[kind]
        return A
    forms = [
        lambda: A[:-1],
        lambda: A.astype(np.float32 if A.dtype.kind == "f" else np.float64),
        lambda: A[..., None],
        lambda: np.zeros((0, *A.shape[1:]), A.dtype),
    ]
    return forms[kind - 4]()


def use(model):
    """What a user does next; none of it may fail."""
    method = "transform" if hasattr(model, "transform") else "predict"
    try:
        getattr(model, method)(NEW)
    except ValueError as error:
        assert "Fourier grid of this model was made for" in str(error)  # a box of other numbers
    repr(model)
    if isinstance(model, StreamingKernelPCA | HebbianKernelPCA):
        model.partial_fit(NEW)
        model.transform(NEW)


def fuzz_model(model, folder, count, seed):
    path = folder / "a.mercer"
    model.save(path)
    use(load(path))
    content = path.read_bytes()
    entries = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    header = json.loads(entries["__metadata__"]["mercer"])
    del header["checksum"]
    writer = Writer(KNOWN)
    writer.encode(model, type(model).__name__)
    # Other settings are as after set_params: some need another fit, and say so.
    ways = [way for way in places(header["model"]) if way[:1] == ("state",)]
    names = sorted(writer.tensors)
    for case in range(count):
        rng = np.random.default_rng([seed, case])
        changed, tensors = header["model"], dict(writer.tensors)
        if rng.random() < 0.5:
            name = names[rng.integers(len(names))]
            what = tensors[name] = forged_tensor(tensors[name], rng)
        else:
            name, what = ways[rng.integers(len(ways))], VALUES[rng.integers(len(VALUES))]
            changed = replaced(changed, name, what)
        write_archive(path, header | {"model": changed}, tensors)
        try:
            loaded = load(path)
        except ModelFileError:
            continue
        except BaseException as error:
            error.add_note(f"load: {name} = {what!r:.200}, seed {seed}, case {case}")
            raise
        try:
            use(loaded)
        except BaseException as error:
            error.add_note(f"use: {name} = {what!r:.200}, seed {seed}, case {case}")
            raise


@pytest.mark.filterwarnings("ignore")  # numbers may be nonsense
@pytest.mark.parametrize("name", MODELS)
def test_forged_models(name, tmp_path, seed):
    fuzz_model(MODELS[name](), tmp_path, QUICK, seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_forged_models_at_length(name, tmp_path, seed):
    fuzz_model(MODELS[name](), tmp_path, LONG, seed)
