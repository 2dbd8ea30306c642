"""Damaged and forged files, and what may become of them.

A table is read, or refused by a ValueError that names it. A model file is opened and works, or
raises ModelFileError. `reader_faults` and `model_faults` try many files of a kind, each made from
a seed and a number, go on after a fault, and list all of them.
"""

import json
import traceback
import warnings
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from scipy import sparse
from stored import IMAGE, WAYS
from stored import X as STORED

from mercer import KernelCCA, KernelPCA, SpectralClustering, StreamingKernelPCA, load
from mercer.bases import Landmarks
from mercer.estimators._model import KernelModel
from mercer.exceptions import InvalidRowsError, MercerWarning
from mercer.files import open_source
from mercer.report import write_report
from mercer.saving import ModelFileError
from mercer.saving.archive import write_archive
from mercer.saving.model_file import Writer

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
        assert path.name in str(error), error


def reader_faults(name, folder, cases, seed) -> list[str]:
    """What damaged files of one kind did that they must not."""
    path = folder / name
    WRITERS[name](path)
    check_read(path)
    content, found = path.read_bytes(), []
    for case in cases:
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


def removed(item, path):
    """A JSON document without one place."""
    copy = item.copy()
    if len(path) > 1:
        copy[path[0]] = removed(item[path[0]], path[1:])
    else:
        del copy[path[0]]
    return copy


def found_at(item, path):
    """What stands in one place of a JSON document."""
    return found_at(item[path[0]], path[1:]) if path else item


def forged_tensor(A, rng):
    """An array with other numbers, of another type or of another shape."""
    A = A.copy()
    if A.size and rng.random() < 0.5:
        floats = [np.nan, np.inf, -np.inf, 0, -1, 1e308, -1e308, 1e-320, 1e40]
        extreme = floats if A.dtype.kind == "f" else [2**31 - 1, -1, 0, -(2**31), 10**6]
        value = extreme[rng.integers(len(extreme))]
        if A.dtype.kind not in "fb":
            info = np.iinfo(A.dtype)
            value = int(np.clip(value, info.min, info.max))
        where = rng.random(A.shape) < 0.5 if rng.random() < 0.3 else int(rng.integers(A.size))
        if isinstance(where, int):
            A.flat[where] = value
        else:
            A[where] = value
        return A
    forms = [
        lambda: A[:-1] if A.ndim else A[None],
        lambda: A[..., :-1] if A.ndim else A[None],
        lambda: np.concatenate([A, A[-1:]]) if A.ndim and len(A) else A[None],
        lambda: A.astype(np.float32 if A.dtype.kind == "f" else np.float64),
        lambda: A.astype(np.float16 if A.dtype.kind == "f" else np.uint8),
        lambda: A.astype(np.int64),
        lambda: A[..., None],
        lambda: A.T.copy(),
        lambda: A.ravel(),
        lambda: -A if A.dtype.kind in "fi" else ~A,
        lambda: A[::-1].copy() if A.ndim else A[None],
        lambda: np.zeros_like(A),
        lambda: np.zeros((0, *A.shape[1:]), A.dtype),
        lambda: A[..., :1] if A.ndim else A[None],
        lambda: A[:1] if A.ndim else A[None],
        lambda: (1e160 * A).astype(A.dtype) if A.dtype.kind == "f" else A,
    ]
    return forms[rng.integers(len(forms))]()


# Models that other rows than those of `stored` are for.
OWN_ROWS = {
    "table": lambda: table(9),
    "sparse": lambda: sparse.csr_matrix(NEW),
    "precomputed": lambda: NEW @ STORED.T,
    "fourier": lambda: NEW[:, :2],
}
QUICKLY = {"n_permutations": 19, "n_bootstrap": 2, "random_state": 0}


def offers(name, model, folder):
    """All that a fitted model of a kind can be asked for, as names and functions."""
    rows = IMAGE if name == "patches" else OWN_ROWS.get(name, lambda: NEW)()
    scores = {}

    def transform():
        scores[0] = model.transform(rows)

    def save():
        model.save(folder / "again.mercer")
        load(folder / "again.mercer")

    def report():
        write_report(model, rows, folder / "a.html", max_points=5)

    def merge():
        model.merge(deepcopy(model))

    calls = {
        "repr": lambda: (repr(model), model._repr_html_()),
        "transform": transform,
        "inverse_transform": lambda: scores and model.inverse_transform(scores[0]),
        "significance": lambda: model.significance(rows, **QUICKLY),
        "correlations": lambda: model.correlations(NEW, NEW[:, :2]),
        "to_onnx": lambda: model.to_onnx(folder / "a.onnx"),
        "merge": merge,
        "report": report,
        "save": save,
    }
    ones = "predict decision_function score_samples reconstruction_error denoise attribute"
    for one in f"{ones} unit_features score partial_fit".split():
        calls[one] = lambda one=one: getattr(model, one)(rows)
    for one in ("get_feature_names_out", "summary"):
        calls[one] = lambda one=one: getattr(model, one)()
    for one in ("affinity_matrix_", "dissimilarity_matrix_", "preimage_"):
        calls[one] = lambda one=one: getattr(model, one)
    if isinstance(model, KernelCCA):
        calls["score"] = lambda: model.score(NEW, NEW[:, :2])
    if not isinstance(model, KernelModel):
        del calls["report"]
    named = {"repr", "save", "report", *dir(type(model))}
    return {name: call for name, call in calls.items() if name in named}


def is_ours(error) -> bool:
    """Whether an error is a sentence of mercer's, or of the checks that scikit-learn lends it."""
    own = isinstance(error, (ValueError, TypeError, AttributeError, MemoryError, ImportError))
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    by_us = "mercer" in Path(last.filename).parts and (last.line or "").startswith("raise")
    lent = "sklearn/utils/validation.py" in last.filename or "available_if" in last.filename
    return own and (by_us or lent) and bool(str(error))


# What most users do first.
FIRST = ("repr", "transform", "predict", "inverse_transform", "denoise", "partial_fit", "merge")


def use(name, model, folder, rng):
    """What a user does next, and some of the rest: all works, or fails by a sentence of ours."""
    calls = offers(name, model, folder)
    for call in [*(n for n in FIRST if n in calls), *rng.choice(list(calls), 3, replace=False)]:
        try:
            calls[call]()
        except Exception as error:
            if not is_ours(error):
                error.add_note(call)
                raise


def forge(header, tensors, rng) -> tuple[dict, dict, str]:
    """The content of a model file with something else in one place, or two."""
    names = sorted(tensors)
    ways = [way for way in places(header) if way]
    said = []
    for _ in range(1 + (rng.random() < 0.2)):
        kind = rng.integers(8)
        place = ways[rng.integers(len(ways))]
        # A second place may have gone with the first.
        with suppress(AttributeError, KeyError, TypeError, IndexError):
            if kind < 3:
                place = names[rng.integers(len(names))]
                what = tensors[place] = forged_tensor(tensors[place], rng)
            elif kind == 3:
                place, what = names[rng.integers(len(names))], names[rng.integers(len(names))]
                tensors[place], tensors[what] = tensors[what], tensors[place]
            elif kind == 4:
                what = "away"
                header = removed(header, place)
            elif kind == 5:
                what = found_at(header, ways[rng.integers(len(ways))])
                header = replaced(header, place, what)
            else:
                what = VALUES[rng.integers(len(VALUES))]
                header = replaced(header, place, what)
            said.append(f"{place} = {what!r:.200}")
    return header, tensors, "; ".join(said)


def without_each(header, tensors) -> list:
    """The content of a model file without one field of it, for every field."""
    ways = [way for way in places(header) if way and isinstance(way[-1], str) and way[-1] != "@"]
    return [(removed(header, way), tensors, f"{way} = away") for way in ways]


def model_faults(name, folder, count, seed) -> list[str]:
    """What forged files of one kind of model did that they must not; numbers may be nonsense.

    Of no `count` are those that lack a field, for every field.
    """
    model, path, found = MODELS[name](), folder / "a.mercer", []
    model.save(path)
    header, intact = header_of(path.read_bytes()), tensors_of(model)
    lacking = without_each(header["model"], intact) if count is None else []
    for case in range(len(lacking) if count is None else count):
        rng = np.random.default_rng([seed, case])
        changed, tensors, what = (
            lacking[case] if lacking else forge(header["model"], dict(intact), rng)
        )
        with patch("os.fsync"):  # half of the time, and nobody pulls a plug here
            write_archive(path, header | {"model": changed}, tensors)
            step = "load"
            try:
                loaded = load(path)
                step = "use"
                use(name, loaded, folder, rng)
            except Exception as error:
                if step == "use" or not isinstance(error, ModelFileError):
                    step = " ".join([step, *getattr(error, "__notes__", [])])
                    found.append(said(f"{name}, seed {seed}, case {case}, {step}: {what}", error))
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
