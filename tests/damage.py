"""Damaged and forged files, and what may become of them.

A table is read, or refused by a ValueError that names it. A model file is opened and works, or
raises ModelFileError. `reader_faults` and `model_faults` try many files of a kind, each made from
a seed and a number, go on after a fault, and list all of them.
"""

import json
import re
import warnings
from unittest.mock import patch

import numpy as np
import pytest
from scipy import sparse
from stored import WAYS, results

from mercer import HebbianKernelPCA, KernelPCA, SpectralClustering, StreamingKernelPCA, load
from mercer.bases import Landmarks
from mercer.exceptions import InvalidRowsError, MercerWarning
from mercer.files import open_source
from mercer.saving import ModelFileError
from mercer.saving.archive import write_archive
from mercer.saving.values import Writer

X = np.random.default_rng(5).random((40, 3))
NEW = np.random.default_rng(6).random((7, 3))
S = sparse.random(40, 6, 0.3, format="csr", random_state=1)
MOST_SHOWN = 20


# Tables.


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
    """A table gives as many rows as it says, or is refused by name."""
    try:
        source = open_source(path)
        rows = sum(block.shape[0] for block in source.blocks(16))
        assert source.n_rows in (None, rows)
        assert source.n_columns > 0
    except ValueError as error:
        assert type(error) in (ValueError, InvalidRowsError), f"{type(error)}: {error}"
        assert path.name in str(error) or "Two columns" in str(error), error


def reader_faults(name, folder, count, seed) -> list[str]:
    """What damaged files of one kind did that they must not."""
    path = folder / name
    WRITERS[name](path)
    check_read(path)
    content, found = path.read_bytes(), []
    for case in range(count):
        path.write_bytes(damaged(content, np.random.default_rng([seed, case])))
        try:
            check_read(path)
        except Exception as error:
            found.append(said(f"{name}, seed {seed}, case {case}", error))
    return found


def said(where, error) -> str:
    return f"{where}: {type(error).__name__}: {error!s:.300}"


# Model files.


def streamed(**settings):
    return StreamingKernelPCA(2, kernel="rbf", gamma=0.5, random_state=0, **settings).fit(X)


MODELS = WAYS | {
    "sparse": lambda: KernelPCA(2, kernel="rbf").fit(sparse.csr_matrix(X)),
    "table": lambda: KernelPCA(2, kernel="gower", basis=Landmarks(6), random_state=0).fit(table()),
    "stream of features": lambda: streamed(basis="features", budget=12),
    "clusters by landmarks": lambda: SpectralClustering(
        2, gamma=2.0, basis="landmarks", random_state=0
    ).fit(X),
}

VALUES = [
    *(None, True, 0, -1, 3, 10**30, 2**62, 0.5, -0.5, 1e300, "", "rbf", [], {}, [[1]]),
    *({"@": "RBF"}, {"@": 3}, {"@": "float", "value": "nan"}, {"@": "float", "value": "inf"}),
    *({"@": "RBF", "gamma": 0.5}, {"@": "tuple", "items": [1, 2]}),
]


def table(n=24):
    """A data frame with a category and a missing entry."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(n)
    colors = rng.choice(["red", "green", None], n).tolist()
    return pd.DataFrame({"color": pd.Categorical(colors), "size": rng.random(n)})


def header_of(content: bytes) -> dict:
    """Our header of a model file, without its checksum."""
    entries = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    header = json.loads(entries["__metadata__"]["mercer"])
    del header["checksum"]
    return header


def tensors_of(model) -> dict[str, np.ndarray]:
    """The arrays that the file of a model holds."""
    writer = Writer()
    writer.encode(model, type(model).__name__)
    return writer.tensors


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
        info = None if A.dtype.kind in "fb" else np.iinfo(A.dtype)
        value = extreme[kind] if info is None else int(np.clip(extreme[kind], info.min, info.max))
        A.flat[int(rng.integers(A.size))] = value
        return A
    forms = [
        lambda: A[:-1] if A.ndim else A[None],
        lambda: A.astype(np.float32 if A.dtype.kind == "f" else np.float64),
        lambda: A[..., None],
        lambda: np.zeros((0, *A.shape[1:]), A.dtype),
    ]
    return forms[kind % 4]()


# What a model says that is for rows of another kind: another box, numbers in place of categories,
# images of other channels; and scores that a nonsensical kernel makes.
OTHER_ROWS = re.compile(
    "grid of this model was made for|contains (NaN|infinity)|made of numbers in the training rows"
    "|fit saw 3 channels"
)
# Models that other rows than those of `stored` are for, and which have no pre-images.
OWN_ROWS = {"table": lambda: table(9), "sparse": lambda: sparse.csr_matrix(NEW)}


def use(name, model):
    """What a user does next; none of it may fail."""
    try:
        if name in OWN_ROWS:
            model.transform(OWN_ROWS[name]())
        else:
            results(name, model)
    except ValueError as error:
        if not OTHER_ROWS.search(str(error)):
            raise
    repr(model)
    if isinstance(model, StreamingKernelPCA | HebbianKernelPCA):
        model.partial_fit(NEW)
        model.transform(NEW)


def model_faults(name, folder, count, seed) -> list[str]:
    """What forged files of one kind of model did that they must not; numbers may be nonsense."""
    model, path, found = MODELS[name](), folder / "a.mercer", []
    model.save(path)
    use(name, load(path))
    header, intact = header_of(path.read_bytes()), tensors_of(model)
    # Other settings are as after set_params: some need another fit, and say so.
    ways = [way for way in places(header["model"]) if way[:1] == ("state",) and "params" not in way]
    names = sorted(intact)
    for case in range(count):
        rng = np.random.default_rng([seed, case])
        changed, tensors = header["model"], dict(intact)
        if rng.random() < 0.5:
            place = names[rng.integers(len(names))]
            what = tensors[place] = forged_tensor(tensors[place], rng)
        else:
            place, what = ways[rng.integers(len(ways))], VALUES[rng.integers(len(VALUES))]
            changed = replaced(changed, place, what)
        with patch("os.fsync"):  # half of the time, and nobody pulls a plug here
            write_archive(path, header | {"model": changed}, tensors)
        step = "load"
        try:
            loaded = load(path)
            step = "use"
            use(name, loaded)
        except Exception as error:
            if step == "use" or not isinstance(error, ModelFileError):
                where = f"{name}, seed {seed}, case {case}, {step}: {place} = {what!r:.200}"
                found.append(said(where, error))
    return found


def listed(found: list[str]) -> str:
    """Faults for a message: their number, and the first of them."""
    return "\n".join([f"{len(found)} faults", *found[:MOST_SHOWN]])


def quietly(work):
    """Tables may be odd and numbers nonsense: what counts here is whether that is refused."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        for kind in (MercerWarning, RuntimeWarning, UserWarning):
            warnings.simplefilter("ignore", kind)
        return work()
