"""The Gower kernel: mixed tables against a dense oracle, definiteness, frames, saving, command."""

import json
import warnings

import numpy as np
import oracle
import pytest
from contracts import generator
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import mercer
from mercer import (
    HebbianKernelPCA,
    KernelPCA,
    KernelPCASearch,
    NoveltyDetector,
    SpectralClustering,
    StreamingKernelPCA,
)
from mercer.bases import Landmarks
from mercer.cli import main
from mercer.files import open_source
from mercer.kernels import Gower
from mercer.report import write_report

pd = pytest.importorskip("pandas")

COLORS = np.array(["red", "green", "blue", "grey"])


def frame(n, key=0, holes=0.0, scale=1.0):
    """A drawn table with every kind of column."""
    rng = generator(700, key)
    table = pd.DataFrame(
        {
            "age": scale * rng.normal(40, 12, n),
            "children": rng.integers(0, 5, n),
            "color": pd.Categorical(rng.choice(COLORS, n)),
            "town": rng.choice(["Ulm", "Bern", "Graz"], n).astype(object),
            "member": rng.random(n) < 0.4,
            "grade": pd.array(rng.integers(1, 4, n), dtype="Int64").astype("category"),
        }
    )
    if holes:
        table["children"] = table["children"].astype("Int64")
        table["member"] = table["member"].astype("boolean")
        for name in table.columns:
            table.loc[rng.random(n) < holes, name] = pd.NA if name != "age" else np.nan
    return table


def similarity(A, B, fitted):
    """Gower's formula column by column, in the words of the documentation, (n, m)."""
    total = np.zeros((len(A), len(B)))
    for name in fitted.columns:
        # What is missing is the mean of feature space, over the values of the fit.
        known = fitted[name].dropna()
        part = np.array(
            [[np.nan if pd.isna(v) or pd.isna(w) else 0.0 for w in B[name]] for v in A[name]]
        )
        part += column_similarity(A[name], B[name], known)
        ours, theirs = (column_similarity(side[name], known, known).mean(axis=1) for side in (A, B))
        both = column_similarity(known, known, known).mean()
        gone = A[name].isna().to_numpy()[:, None], B[name].isna().to_numpy()[None, :]
        part = np.where(gone[0], theirs[None, :], np.where(gone[1], ours[:, None], part))
        total += np.where(gone[0] & gone[1], both, part)
    return total / len(fitted.columns)


def column_similarity(a, b, known):
    """That of two columns, without regard to what is missing."""
    a, b = a.astype(object).to_numpy(), b.astype(object).to_numpy()
    if pd.api.types.is_numeric_dtype(known) and not str(known.dtype).startswith("bool"):
        x, z = (np.array([0.0 if pd.isna(v) else float(v) for v in side]) for side in (a, b))
        gap, size = np.abs(x[:, None] - z[None, :]), np.ptp(known.to_numpy(dtype=float))
        return np.maximum(0, 1 - gap / size) if size else (gap == 0).astype(float)
    return np.array([[str(v) == str(w) for w in b] for v in a], dtype=float)


@pytest.mark.parametrize("key", range(3))
@pytest.mark.parametrize("holes", [0.0, 0.15, 0.5])
@pytest.mark.parametrize("later", [0.0, 0.4])
def test_mixed_frames_against_the_formula(key, holes, later):
    """Eigenvalues, scores of new rows and errors, from the similarities themselves."""
    X, new = frame(60, key, holes), frame(15, key + 10, later, scale=2.0)
    # The means over a column are those of 32 of its values.
    rough = 0.03 * bool(holes or later)
    K, L = similarity(X, X, X), similarity(new, X, X)
    assert np.linalg.eigvalsh(K).min() > -1e-10 * len(K)
    model = KernelPCA(4, kernel="gower").fit(X)
    codes = model._encoding.apply(X).to_numpy(dtype=float)
    np.testing.assert_allclose(model.kernel_(codes), K, atol=1e-9 + rough)
    K, later_codes = model.kernel_(codes), model._encoding.apply(new).to_numpy(dtype=float)
    np.testing.assert_allclose(model.kernel_(later_codes, codes), L, atol=1e-9 + rough)
    L = model.kernel_(later_codes, codes)
    np.testing.assert_allclose(model.kernel_.diag(codes), np.diag(K), rtol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-10 * len(K)
    values, vectors = oracle.eigenpairs(K, 4)
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-9 * values[0])
    centered = L - L.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
    wanted = centered @ vectors / np.sqrt(values)
    np.testing.assert_allclose(np.abs(model.transform(new)), np.abs(wanted), atol=1e-7)
    assert model.certificate_.converged and model.kernel_.definite
    np.testing.assert_allclose(model.fit_transform(X), model.transform(X), atol=1e-8)
    assert list(model.feature_names_in_) == list(X.columns)


def test_rows_are_not_alike_because_of_their_gaps():
    """Half of the entries missing in half of the rows: clusters are those of the entries."""
    found = []
    for seed in range(6):
        rng = generator(740, seed)
        group, half = rng.integers(0, 3, 300), rng.random(300)[:, None] < 0.5
        numbers = rng.standard_normal((300, 5)) + 2.2 * np.eye(3, 5)[group]
        codes = np.where(rng.random((300, 4)) < 0.65, group[:, None], rng.integers(0, 3, (300, 4)))
        numbers[half & (rng.random(numbers.shape) < 0.5)] = np.nan
        letters = np.array(list("abc"), dtype=object)[codes]
        letters[half & (rng.random(codes.shape) < 0.5)] = None
        table = pd.concat([pd.DataFrame(numbers), pd.DataFrame(letters).add_prefix("c")], axis=1)
        S = KernelPCA(2, kernel="gower").fit_transform(table)
        labels = KMeans(3, n_init=5, random_state=0).fit_predict(S)
        found.append(adjusted_rand_score(group, labels))
    assert np.mean(found) > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_ordered_categories_are_compared_by_rank(seed, tmp_path):
    """As the column of their ranks; text, new rows and files follow the order of the fit."""
    rng = generator(730, seed)
    grades = list(rng.permutation(["low", "some", "much", "most"]))  # any spelling, this order
    rank, other = rng.integers(0, 4, 40), rng.random(40)
    ordered = pd.Categorical([grades[i] for i in rank], categories=grades, ordered=True)
    X = pd.DataFrame({"grade": ordered, "number": other})
    X.loc[3, "grade"] = None
    as_ranks = pd.DataFrame({"grade": rank / 3.0, "number": other})
    as_ranks.loc[3, "grade"] = np.nan
    new = pd.DataFrame({"grade": [grades[1], "unknown", grades[3]], "number": [0.1, 0.5, 0.9]})
    model = KernelPCA(3, kernel="gower").fit(X)
    wanted = KernelPCA(3, kernel="gower").fit(as_ranks)
    np.testing.assert_allclose(model.eigenvalues_, wanted.eigenvalues_, rtol=1e-9)
    model.save(tmp_path / "m.mercer")
    ranks = pd.DataFrame({"grade": [1 / 3, 1.0], "number": [0.1, 0.9]})
    for one in (model, mercer.load(tmp_path / "m.mercer")):
        S = one.transform(new)
        np.testing.assert_allclose(np.abs(S[[0, 2]]), np.abs(wanted.transform(ranks)), atol=1e-8)
        assert np.isfinite(S).all()


@pytest.mark.parametrize("key", range(5))
def test_definite_wherever_rows_are(key):
    """Also far outside the ranges, where 1 - |x - z| / range without the maximum is not."""
    rng = generator(701, key)
    X = np.column_stack([5 * rng.standard_normal((70, 3)), rng.integers(0, 4, (70, 2))])
    kernel = Gower(ranges=[1.0, 0.3, 2.0, 0.0, 0.0])
    K = kernel(X)
    np.testing.assert_allclose(K, oracle.kernel_matrix("gower", X, ranges=kernel.ranges))
    assert np.linalg.eigvalsh(K).min() > -1e-12 * len(K)
    np.testing.assert_array_equal(kernel.diag(X), np.ones(70))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranges_are_those_of_the_training_rows(dtype):
    X = generator(702).random((40, 3)).astype(dtype) * np.array([1, 1000, 0], dtype) + dtype(3)
    model = KernelPCA(2, kernel="gower").fit(X)
    np.testing.assert_allclose(model.kernel_.ranges, np.ptp(X, axis=0).astype(float), rtol=1e-6)
    K = oracle.kernel_matrix("gower", X, ranges=model.kernel_.ranges)
    np.testing.assert_allclose(model.eigenvalues_, oracle.eigenpairs(K, 2)[0], rtol=2e-5)
    units = KernelPCA(2, kernel="gower").fit(X * np.array([1, 0.5, 8], dtype))
    np.testing.assert_allclose(units.eigenvalues_, model.eigenvalues_, rtol=2e-5)


def test_torch_tiles_are_the_compiled_ones():
    torch = pytest.importorskip("torch")
    rng = generator(703)
    X = np.column_stack([rng.random((30, 2)), rng.integers(0, 3, (30, 2))])
    kernel = Gower(ranges=[0.7, 0.4, 0, 0])
    np.testing.assert_allclose(kernel(torch.asarray(X)).numpy(), kernel(X), atol=1e-14)


@pytest.mark.parametrize("basis", ["points", "landmarks"])
def test_saving_keeps_the_categories(basis, tmp_path):
    X, new = frame(50, 1, holes=0.1), frame(20, 2, holes=0.1)
    how = Landmarks(20) if basis == "landmarks" else basis
    model = KernelPCA(3, kernel="gower", basis=how, random_state=0).fit(X)
    model.save(tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(loaded.transform(new), model.transform(new))
    shuffled = new[list(reversed(new.columns))]
    np.testing.assert_array_equal(loaded.transform(shuffled), model.transform(new))


def test_unknown_categories_match_nothing():
    X = frame(40)
    model = KernelPCA(3, kernel="gower", center=False).fit(X)
    new = X.iloc[:5].copy()
    new["color"], new["town"] = "violet", "Rome"
    K = similarity(new, X, X)
    assert K.max() <= 4 / 6 + 1e-12
    wanted = K @ model.eigenvectors_ / np.sqrt(model.eigenvalues_)
    with pytest.warns(UserWarning, match="no category that the training"):
        found = model.transform(new)
    np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_other_estimators_and_containers():
    X = frame(60, 3)
    model = KernelPCA(2, kernel="gower").fit(X)
    slow = HebbianKernelPCA(2, kernel=Gower(), n_passes=30, random_state=0).fit(X)
    np.testing.assert_allclose(slow.eigenvalues_, model.eigenvalues_, rtol=1e-2)
    named, own = (
        SpectralClustering(3, affinity=kernel, random_state=0).fit(X)
        for kernel in ("gower", Gower())
    )
    np.testing.assert_array_equal(named.labels_, own.labels_)
    np.testing.assert_allclose(own.affinity_matrix_, similarity(X, X, X), atol=1e-12)
    kept = model.set_output(transform="pandas").transform(X)
    assert list(kept.index) == list(X.index)
    polars = pytest.importorskip("polars")
    texts = X.astype({"color": str, "grade": float})
    same = KernelPCA(2, kernel="gower").fit(texts)
    other = KernelPCA(2, kernel="gower").fit(polars.DataFrame(texts.to_dict("list")))
    np.testing.assert_allclose(other.eigenvalues_, same.eigenvalues_, rtol=1e-12)


def test_a_frame_of_numbers_is_as_its_array():
    X = frame(40)[["age", "children"]]
    one, two = (KernelPCA(2, kernel="gower").fit(rows) for rows in (X, X.to_numpy(float)))
    np.testing.assert_array_equal(one.eigenvalues_, two.eigenvalues_)
    assert one.inverse_transform(one.transform(X)).shape == (40, 2)
    mixed = one.fit(frame(40))
    assert mixed.n_features_in_ == 6
    assert mixed.fit(X).n_features_in_ == 2, "nothing is left of the categories"
    assert mixed.transform(X).shape == (40, 2)


def test_what_cannot_be_is_said():
    X = frame(30)
    model = KernelPCA(2, kernel="gower").fit(X)
    scores = model.transform(X)
    for call, match in [
        (lambda: model.transform(np.zeros((3, 6))), "fitted to a data frame"),
        (lambda: model.transform(X.drop(columns="age")), "Pass the same columns"),
        (lambda: model.transform(X.assign(age="old")), "'age' is made of numbers"),
        (lambda: model.transform(X.assign(age=np.inf)), "'age' contains infinity"),
        (lambda: model.inverse_transform(scores), "no pre-images"),
        (lambda: model.denoise(X), "no pre-images"),
        (lambda: model.fit(X.assign(day=pd.Timestamp("2020-01-01"))), "neither numbers nor"),
        (lambda: model.fit(X.assign(gone=np.nan)), "'gone' is empty"),
        (lambda: KernelPCA(2, kernel=Gower(ranges=1.0)).fit(X), "Leave ranges out"),
        (lambda: KernelPCA(2, kernel="rbf").fit(X), "could not convert|number"),
        (lambda: Gower()(np.zeros((2, 2))), "ranges"),
        (lambda: Gower(ranges=[1.0])(np.zeros((2, 2))), "one for each column"),
        (lambda: KernelPCA(2, kernel=Gower(ranges=-1.0)).fit(np.eye(3)), "not negative"),
        (lambda: KernelPCA(2, kernel=Gower(np.ones(3))).fit(np.full((4, 3), np.nan)), "NaN"),
        (
            lambda: KernelPCA(2, kernel="gower", fit_inverse_transform=True).fit(np.eye(3)),
            "between scores",
        ),
    ]:
        with pytest.raises(ValueError, match=match):
            call()


def test_command(tmp_path, monkeypatch, capsys):
    """Columns of numbers, whatever their units; a model of categories is for Python."""
    monkeypatch.chdir(tmp_path)
    X = generator(704).random((40, 3)) * [1, 1000, 5]
    np.savetxt("rows.csv", X, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    options = ["--kernel", "gower", "--components", "2"]
    assert main(["fit", "rows.csv", *options, "-o", "m.mercer"]) == 0
    assert main(["transform", "m.mercer", "rows.csv", "-o", "scores.npy"]) == 0
    expected = KernelPCA(2, kernel="gower").fit_transform(X)
    np.testing.assert_allclose(np.load("scores.npy"), expected, atol=1e-9)
    assert "very different scales" not in capsys.readouterr().err
    KernelPCA(2, kernel="gower").fit(frame(30)).save("mixed.mercer")
    assert main(["transform", "mixed.mercer", "rows.csv", "-o", "s.npy"]) != 0
    assert "which the model was fitted" in capsys.readouterr().err
    assert main(["significance", "mixed.mercer", "rows.csv"]) != 0
    assert "this command cannot use" in capsys.readouterr().err


@pytest.mark.parametrize("file", ["rows.csv", "rows.parquet"])
@pytest.mark.parametrize("holes", [0.0, 0.1])
def test_command_takes_texts(file, holes, tmp_path, monkeypatch, capsys):
    """`mercer fit --kernel gower`: what the estimator makes of the same frame, for new rows too."""
    monkeypatch.chdir(tmp_path)
    columns = ["age", "children", "color", "town", "member"]
    table, new = frame(80, 5, holes)[columns], frame(30, 6, holes)[columns]
    new.loc[0, "town"] = "Rom"
    for name, rows in (("", table), ("new-", new)):
        rows = rows.assign(color=rows["color"].astype(object))
        if file.endswith("csv"):
            rows.to_csv(name + file, index=False)
        else:
            rows.to_parquet(name + file)
    options = ["--kernel", "gower", "--components", "3"]
    assert main(["fit", file, *options, "-o", "m.mercer"]) == 0
    told = capsys.readouterr()
    assert "left out: color" not in told.err and "5 columns" in told.out
    assert main(["fit", file, *options, "--drop", "town", "-o", "few.mercer"]) == 0
    told = capsys.readouterr()
    assert "used 4 columns; left out: town" in told.err and "4 columns" in told.out
    assert main(["transform", "m.mercer", "new-" + file, "-o", "scores.npy"]) == 0
    model = KernelPCA(3, kernel="gower").fit(table)
    wanted = model.transform(new)
    found = np.load("scores.npy")
    np.testing.assert_allclose(np.abs(found), np.abs(wanted), atol=1e-6)
    assert mercer.load("m.mercer").n_features_in_ == 5
    assert main(["fit", file, *options, "--scale", "standard", "-o", "n.mercer"]) == 2
    towards = [*options, "--target", "town", "-o", "t.mercer"]
    if not holes:
        assert main(["fit", file, *towards]) == 0
        assert mercer.load("t.mercer").n_features_in_ == 4


@pytest.mark.parametrize("command", [["cluster", "-k", "3"], ["embed", "--components", "2"]])
def test_spectral_commands_take_texts(command, tmp_path, monkeypatch, capsys):
    """What the estimators make of the same frame; columns that are kept take no part."""
    monkeypatch.chdir(tmp_path)
    table = frame(60, 9, 0.1)[["age", "children", "color", "town"]].assign(
        color=lambda rows: rows["color"].astype(object)
    )
    table.assign(id=[f"row {i}" for i in range(60)], weight=np.arange(60) + 0.5).to_csv(
        "rows.csv", index=False
    )
    options = ["--kernel", "gower", "--id", "id", "--keep", "weight,age", "-o", "found.csv"]
    assert main([command[0], "rows.csv", *command[1:], *options]) == 0
    assert "left out: color" not in capsys.readouterr().err
    found = pd.read_csv("found.csv")
    assert found["id"][7] == "row 7" and (found["weight"] == np.arange(60) + 0.5).all()
    del table["age"]  # kept, and so no part of the rows
    if command[0] == "cluster":
        model = mercer.SpectralClustering(3, affinity="gower", random_state=0).fit(table)
        assert adjusted_rand_score(found["cluster"], model.labels_) == 1.0
    else:
        model = mercer.SpectralEmbedding(2, affinity="gower", random_state=0).fit(table)
        wanted = np.abs(model.embedding_)
        np.testing.assert_allclose(np.abs(found[["x1", "x2"]]), wanted, atol=1e-6)
    assert main([command[0], "rows.csv", *command[1:], *options[:4], "--scale", "standard"]) == 2


@pytest.mark.parametrize("colors", ["town", "age", None])
def test_reports_of_mixed_frames(colors, tmp_path, monkeypatch):
    """In Python and in the shell: columns of complete numbers have values, all can color."""
    monkeypatch.chdir(tmp_path)
    table = frame(50, 3, 0.1)[["age", "children", "town"]].assign(size=np.arange(50) / 7)
    model = KernelPCA(2, kernel="gower").fit(table)
    page = write_report(model, table, "page.html", color=colors)
    assert "Columns that drive the components" in page.read_text()
    table.to_csv("rows.csv", index=False)
    assert main(["fit", "rows.csv", "--kernel", "gower", "-o", "m.mercer"]) == 0
    options = [] if colors is None else ["--color", colors]
    assert main(["report", "m.mercer", "rows.csv", *options, "-o", "shell.html"]) == 0
    assert "size" in (tmp_path / "shell.html").read_text()


def test_detectors_take_frames_and_others_refuse(tmp_path):
    rng = generator(705)
    kind = rng.integers(0, 3, 200)
    X = pd.DataFrame(
        {
            "town": np.array(["Ulm", "Bern", "Graz"], dtype=object)[kind],
            "color": pd.Categorical(COLORS[kind]),
            "age": np.where(rng.random(200) < 0.05, np.nan, 20.0 * kind + rng.normal(40, 2, 200)),
        }
    )
    model = NoveltyDetector(3, kernel="gower", random_state=0).fit(X)
    assert np.mean(model.predict(X) == 1) > 0.8
    strange = X.assign(town=X["town"].to_numpy()[::-1], color="green", age=100.0)
    mixed_up = (strange["town"] != "Bern").to_numpy()
    assert np.mean(model.predict(strange)[mixed_up] == -1) > 0.9
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    with pytest.raises(ValueError, match="batch by batch"):
        StreamingKernelPCA(2, kernel="gower").fit(X)
    with pytest.raises(ValueError, match="batch by batch"):
        StreamingKernelPCA(2, kernel="gower").partial_fit(X)
    with pytest.raises(ValueError, match="pre-images"):
        KernelPCASearch(model=KernelPCA(kernel="gower")).fit(X)


def test_distances_of_the_gower_package():
    """Without missing entries: 1 minus the similarity, categories and numbers alike."""
    gower = pytest.importorskip("gower")
    X = frame(40, 8)
    texts = X.astype({"color": object, "grade": object, "member": object})
    theirs = gower.gower_matrix(texts, cat_features=[False, False, True, True, True, True])
    model = KernelPCA(2, kernel="gower").fit(X)
    ours = 1 - model.kernel_(model.X_fit_)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def write_parquet(X, path):
    pytest.importorskip("pyarrow")
    X.to_parquet(path)


@pytest.mark.parametrize("write", [write_parquet, lambda X, path: X.to_csv(path, index=False)])
def test_a_file_is_not_read_without_its_categories(write, tmp_path):
    """A table of numbers and categories is refused in words; named columns of numbers are taken."""
    path = tmp_path / ("rows.parquet" if write is write_parquet else "rows.csv")
    t = np.linspace(0, 3, 40)
    X = pd.DataFrame({"length": np.sin(t), "kind": list("abca") * 10, "width": np.cos(t)})
    write(X, path)
    with pytest.raises(ValueError, match=r"read without kind .*data frame in memory.*columns="):
        KernelPCA(2, kernel="gower").fit(path)
    KernelPCA(2, kernel="rbf").fit(path)
    names = ["length", "width"]
    found = KernelPCA(2, kernel=Gower()).fit(open_source(path, columns=names))
    wanted = KernelPCA(2, kernel="gower").fit(X[names])
    np.testing.assert_allclose(found.eigenvalues_, wanted.eigenvalues_)
    write(X[names], tmp_path / f"numbers{path.suffix}")
    plain = KernelPCA(2, kernel="gower").fit(tmp_path / f"numbers{path.suffix}")
    np.testing.assert_allclose(plain.eigenvalues_, wanted.eigenvalues_)


def test_categories_on_a_cluster_are_refused_in_words():
    dd = pytest.importorskip("dask.dataframe")
    X = pd.DataFrame({"length": np.linspace(0, 1, 30), "kind": list("abc") * 10})
    with pytest.raises(ValueError, match=r"cluster, with kind\. .*compute"):
        KernelPCA(2, kernel="gower").fit(dd.from_pandas(X, npartitions=2))
    numbers = dd.from_pandas(X[["length"]], npartitions=2)
    there = KernelPCA(2, kernel="gower", basis="points").fit(numbers)
    here = KernelPCA(2, kernel="gower").fit(X[["length"]])
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-6)


@pytest.mark.parametrize("kind", ["blocks", "dask"])
@pytest.mark.parametrize("basis", ["given", "chosen"])
def test_ranges_are_those_of_all_rows(kind, basis):
    """Also where only a sample, or none, of the rows is looked at: one row tells the range."""
    X = generator(9).random((5000, 3))
    X[4321] = [40.0, -3.0, 0.5]
    basis = Landmarks(points=X[:20]) if basis == "given" else Landmarks(20)
    if kind == "dask":
        rows = pytest.importorskip("dask.array").from_array(X, chunks=(700, -1))
    else:
        rows = lambda: iter(np.array_split(X, 7))  # noqa: E731
    found = KernelPCA(2, kernel="gower", basis=basis, random_state=0).fit(rows)
    np.testing.assert_allclose(found.kernel_.ranges, np.ptp(X, axis=0))
    if kind == "blocks":
        with pytest.raises(ValueError, match="read only once"):
            KernelPCA(2, kernel="gower", basis=basis).fit(iter([X]))


SPELLINGS = {
    "booleans": [[True, False], [1, 0], [1.0, 0.0], ["True", "False"], ["1", "0"]],
    "numbers": [["1", "0"], [1, 0], [1.0, 0.0], ["1.0", "0.0"], [True, False]],
}


@pytest.mark.parametrize("draw", range(3))
@pytest.mark.parametrize("name", SPELLINGS)
def test_a_category_is_the_same_however_it_is_written(name, draw):
    pd = pytest.importorskip("pandas")
    rng = generator(41, draw)
    which, x = rng.integers(2, size=40), rng.standard_normal(40)

    def table(spelling):
        return pd.DataFrame({"x": x, "flag": [spelling[k] for k in which]})

    model = KernelPCA(2, kernel="gower").fit(table(SPELLINGS[name][0]))
    expected = model.transform(table(SPELLINGS[name][0]))
    for spelling in SPELLINGS[name][1:]:
        np.testing.assert_array_equal(model.transform(table(spelling)), expected)
    with pytest.warns(UserWarning, match=r"'flag' has no category that.*as they were in the fit"):
        other = model.transform(table(["yes", "no"]))
    assert not np.allclose(other, expected)


@pytest.mark.parametrize("seed", range(3))
def test_columns_with_categories_are_explained_by_exchange(seed, tmp_path, monkeypatch, capsys):
    """The column that makes the groups drives the first component; a constant one nothing."""
    rng, n = np.random.default_rng(seed), 120
    town = rng.choice(["Ulm", "Bonn"], n)
    table = pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "town": town,
            "same": "x",
            "park": np.where(town == "Ulm", "a", "b"),
        }
    )
    table.loc[3, "age"] = np.nan
    model = KernelPCA(2, kernel="gower").fit(table)
    found = model.attribute()
    assert found.columns == ("age", "town", "same", "park") and found.n_rows == n
    assert set(found.order(0)[:2]) == {1, 3} and found.size[2].max() < 1e-12
    assert (found.direction == 0).all() and (found.size >= 0).all()
    monkeypatch.chdir(tmp_path)
    table.to_csv("rows.csv", index=False)
    assert main(["fit", "rows.csv", "--kernel", "gower", "-o", "m.mercer"]) == 0
    capsys.readouterr()
    assert main(["explain", "m.mercer", "rows.csv", "--json"]) == 0
    top = json.loads(capsys.readouterr().out)["top"][0]["columns"]
    assert set(list(top)[:2]) == {"town", "park"}


@pytest.mark.parametrize("n, warned", [(30, True), (5, False)])
def test_a_column_that_names_the_rows_is_no_silent_category(n, warned):
    table = frame(n, 1).assign(name=[f"row {i}" for i in range(n)])
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        KernelPCA(2, kernel="gower").fit(table)
    assert (
        any("'name' has a different category in every row" in str(w.message) for w in heard)
        is warned
    )


@pytest.mark.parametrize("dates", ["period", "timestamps", "days"])
def test_dates_in_columns_of_objects_are_no_categories(dates):
    when = pd.date_range("2020", periods=9)
    made = {
        "period": when.to_period("D"),
        "timestamps": np.array(list(when), object),
        "days": [one.date() for one in when],
    }
    with pytest.raises(ValueError, match=r"'when' is of type .*Turn dates into numbers"):
        KernelPCA(2, kernel="gower").fit(pd.DataFrame({"when": made[dates], "size": range(9)}))


def test_infinity_is_named_by_its_column():
    with pytest.raises(ValueError, match="Column 'size' contains infinity"):
        KernelPCA(2, kernel="gower").fit(pd.DataFrame({"size": [1.0, np.inf, 2.0]}))
