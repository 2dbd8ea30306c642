"""Rows that are read in blocks: the model of memory, within the budget, or a clear error."""

import io
import os
import pickle
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from contracts import generator, peak_bytes
from numpy.testing import assert_allclose, assert_array_equal
from rich.console import Console
from scipy import sparse

from mercer import KernelPCA
from mercer.bases import Landmarks, RandomFeatures
from mercer.exceptions import MercerWarning
from mercer.files import open_sink, open_source
from mercer.kernels import Laplacian
from mercer.progress import RowBar
from mercer.selectors import KMeans, TwoStage, Uniform

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N, D, R = 3001, 5, 4
NAMES = list("abcde")


@pytest.fixture(scope="module")
def X():
    rng = generator(N)
    return np.sin(rng.standard_normal((N, 3)) @ rng.standard_normal((3, D))) + 1.0


@pytest.fixture
def parquet(X, tmp_path):
    return write_parquet(X, tmp_path / "rows.parquet")


def write_parquet(X, path):
    pq.write_table(pa.table(dict(zip(NAMES, X.T, strict=True))), path, row_group_size=700)
    return path


def model(basis="landmarks", **options):
    defaults = {"kernel": "rbf", "gamma": 0.5, "memory": "60MB", "n_jobs": 2, "random_state": 0}
    return KernelPCA(R, basis=basis, **defaults | options)


def pieces(X, lengths=(0, 1, 700, 0, 13, 1500, 0)):
    return lambda: iter(np.split(X, np.cumsum(lengths)))


def assert_same_model(one, other, X, rtol=1e-9, bounds=True):
    assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=rtol)
    assert_allclose(one.explained_variance_ratio_, other.explained_variance_ratio_, rtol=rtol)
    scale = np.abs(other.transform(X)).max()
    assert_allclose(one.transform(X), other.transform(X), atol=rtol * scale)
    assert_allclose(one.expansion_.metric, other.expansion_.metric, atol=rtol)
    if bounds:
        # Few rows of an array are multiplied with each other, or drawn from in pairs, which a pass
        # over a file cannot do: what is known of the array lies within what is known of the file.
        ours, theirs = one.certificate_, other.certificate_
        slack = max(rtol, 1e-7) * theirs.eigenvalue_upper
        assert np.all(ours.eigenvalue_lower <= theirs.eigenvalue_lower + slack)
        assert np.all(ours.eigenvalue_upper >= theirs.eigenvalue_upper - slack)
        (low, high), (least, most) = ours.captured_variance, theirs.captured_variance
        assert low <= least + 1e-7 and high >= most - 1e-7


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kind", ["npy", "memmap", "parquet", "csv", "function", "iterator", "h5"])
def test_a_source_gives_the_model_of_its_rows_in_memory(kind, center, X, tmp_path):
    basis = Landmarks(points=X[:60])
    expected = model(basis, center=center).fit(X)
    path = tmp_path / f"rows.{kind}"
    if kind in ("npy", "memmap"):
        np.save(tmp_path / "rows.npy", X)
        source = tmp_path / "rows.npy"
        source = np.load(source, mmap_mode="r") if kind == "memmap" else str(source)
    elif kind == "parquet":
        source = write_parquet(X, path)
    elif kind == "csv":
        np.savetxt(path, X, delimiter=",", fmt="%.17g")
        source = path
    elif kind == "h5":
        h5py = pytest.importorskip("h5py")
        source = h5py.File(path, "w").create_dataset("rows", data=X)
    else:
        source = pieces(X) if kind == "function" else pieces(X)()
    found = model(basis, center=center, memory="3300kB").fit(source)
    found.__dict__.pop("feature_names_in_", None)
    assert_same_model(found, expected, X)
    assert found.n_features_in_ == D and not found.expansion_.basis.spans_data
    assert set(map(bytes, found.X_sample_)) <= set(map(bytes, X))
    if kind != "iterator":
        assert_allclose(found.transform(source), expected.transform(X), atol=1e-9)


def test_blocks_do_not_matter(X):
    """Neither how a source is cut nor the size of the blocks made of it moves the result."""
    basis = Landmarks(40, TwoStage(pool=300))
    whole = model(basis, gamma="median").fit(pieces(X, (100,)))
    for lengths in [(1, 0, 2999), (1500,)]:
        other = model(basis, gamma="median").fit(pieces(X, lengths))
        assert_array_equal(other.landmarks_, whole.landmarks_)
        assert_array_equal(other.eigenvalues_, whole.eigenvalues_)
        assert other.gamma_ == whole.gamma_
    # Blocks are a share of the budget: of 1,562, 625 and 468 rows.
    given = Landmarks(points=whole.landmarks_)
    for memory in ("1MB", "400kB", "300kB"):
        other = model(given, gamma=whole.gamma_, memory=memory, n_jobs=1).fit(pieces(X))
        assert_same_model(other, whole, X, bounds=False)


def test_a_small_file_has_the_landmarks_of_memory(X, parquet):
    """Where the sample is all rows, nothing tells a file from an array."""
    for basis in ("landmarks", Landmarks(30, KMeans()), Landmarks(0.02), "features"):
        few = X[:1500]
        write_parquet(few, parquet)
        found, expected = model(basis).fit(parquet), model(basis).fit(few)
        found.__dict__.pop("feature_names_in_")
        if basis != "features":
            assert_array_equal(found.landmarks_, expected.landmarks_)
        assert_same_model(found, expected, few)


def test_landmarks_of_a_sample_carry_a_certificate(X):
    exact = KernelPCA(R, kernel="rbf", gamma=0.5).fit(X)
    found = model(Landmarks(50, TwoStage(pool=400)), gamma=0.5).fit(pieces(X))
    assert found.landmarks_.shape == (50, D)
    assert set(map(bytes, found.landmarks_)) <= set(map(bytes, X))
    slack = 1e-9 * exact.eigenvalues_[0]
    assert np.all(found.certificate_.eigenvalue_lower <= exact.eigenvalues_ + slack)
    assert np.all(exact.eigenvalues_ <= found.certificate_.eigenvalue_upper + slack)
    assert found.plan_.method == "landmarks"


def test_the_sample_moves_with_the_seed_only(X):
    basis = Landmarks(20, Uniform())
    one, two, three = (model(basis, random_state=s).fit(pieces(X)).landmarks_ for s in (1, 1, 2))
    assert_array_equal(one, two)
    assert len(set(map(bytes, one)) & set(map(bytes, three))) < 20


def test_landmarks_by_number_and_by_error(X):
    index = np.array([2900, 3, 1500, 40, 77])
    found = model(Landmarks(indices=index)).fit(pieces(X))
    assert_array_equal(found.landmarks_, X[index])
    with pytest.raises(ValueError, match="whole numbers from 0 to 3000"):
        model(Landmarks(indices=[0, N])).fit(pieces(X))
    found = model(Landmarks(error=0.02)).fit(pieces(X))
    low, high = found.certificate_.captured_variance
    total = found.expansion_.basis.lost_share(X)
    assert total <= 0.02 and high - low < 0.1
    with pytest.raises(ValueError, match=r"error=2 must be a share"):
        model(Landmarks(error=2)).fit(pieces(X))
    with pytest.raises(ValueError, match="give one of size"):
        model(Landmarks(5, indices=[1])).fit(pieces(X))
    with pytest.raises(ValueError, match="Give at least 162 MB, or ask for fewer"):
        model(Landmarks(2500), memory="10MB").fit(pieces(X))


def test_random_features_need_one_pass(X):
    passes = []

    def blocks():
        passes.append(1)
        yield from np.array_split(X, 7)

    basis = RandomFeatures(64)
    expected = model(basis).fit(X)
    for source in (blocks, blocks()):
        found = model(basis).fit(source)
        # Pairs that judge features are drawn from all rows of an array, and from some of a file.
        assert_same_model(found, expected, X, bounds=False)
        assert found.certificate_.kind == expected.certificate_.kind == "estimate"
    # A function is called once to see the width, and once to read.
    assert len(passes) == 3


def test_what_can_be_read_once_needs_a_choice_beforehand(X):
    for basis, gamma in [("landmarks", 0.5), ("features", "median"), (Landmarks(10), 0.5)]:
        with pytest.raises(ValueError, match=r"can be read only once.*Pass a function"):
            model(basis, gamma=gamma).fit(pieces(X)())
    with pytest.raises(ValueError, match=r"gave no rows. An iterator that was read before"):
        model("features").fit_transform(pieces(X)())


def test_sparse_rows_stay_sparse(tmp_path):
    S = sparse.random(900, 60, 0.05, random_state=0, format="csr")
    sparse.save_npz(tmp_path / "s.npz", S)
    expected = model(Landmarks(points=S[:30])).fit(S)
    found = model(Landmarks(indices=np.arange(30))).fit(tmp_path / "s.npz")
    assert sparse.issparse(found.landmarks_)
    assert_same_model(found, expected, S)
    assert_allclose(found.transform(tmp_path / "s.npz"), expected.transform(S), atol=1e-12)
    assert_allclose(found.transform(iter([S.toarray()])), expected.transform(S), atol=1e-12)
    once = model(Landmarks(points=S[:30].toarray())).fit(iter([S[:500], S[500:].toarray()]))
    assert_same_model(once, expected, S)


def test_single_precision(X, tmp_path):
    path = write_parquet(X.astype(np.float32), tmp_path / "x.parquet")
    found = model(Landmarks(points=X[:60])).fit(path)
    double = model(Landmarks(points=X[:60])).fit(X)
    assert found.eigenvalues_.dtype == np.float32
    assert_allclose(found.eigenvalues_, double.eigenvalues_, rtol=1e-4)
    out = found.transform(path, out=tmp_path / "s.npy")
    assert np.load(out).dtype == np.float32


def test_a_device_takes_the_blocks(X, parquet, tmp_path):
    torch = pytest.importorskip("torch")
    expected = model(Landmarks(points=X[:60])).fit(X)
    for basis in (Landmarks(points=X[:60]), "landmarks"):
        found = model(basis, device=torch.device("cpu")).fit(parquet)
        assert isinstance(found.landmarks_, np.ndarray)
        assert isinstance(found.transform(parquet), np.ndarray)
        if basis != "landmarks":
            found.__dict__.pop("feature_names_in_")
            assert_same_model(found, expected, X)
    assert np.load(found.transform(parquet, out=tmp_path / "s.npy")).shape == (N, R)


def test_other_kernels_and_their_checks(X):
    expected = model(Landmarks(points=X[:40]), kernel=Laplacian(0.3), gamma=None).fit(X)
    found = model(Landmarks(points=X[:40]), kernel=Laplacian(0.3), gamma=None).fit(pieces(X))
    assert_same_model(found, expected, X)
    bad = X.copy()
    bad[2500] = -1.0
    with pytest.raises(ValueError, match="negative"):
        model(Landmarks(points=np.abs(X[:40])), kernel="chi2").fit(pieces(bad))


def test_the_exact_method_from_files(X, parquet, tmp_path):
    few = X[:400]
    np.save(tmp_path / "few.npy", few)
    write_parquet(few, parquet)
    expected = model("auto").fit(few)
    for basis in ("auto", "points"):
        for source in (tmp_path / "few.npy", parquet, pieces(few, (10,)), pieces(few, (10,))()):
            found = model(basis).fit(source)
            assert found.expansion_.basis.spans_data
            assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-9)
    assert list(model("auto").fit(parquet).feature_names_in_) == NAMES
    assert_allclose(model("auto").fit_transform(tmp_path / "few.npy").std(axis=0),
                    expected.transform(few).std(axis=0), rtol=1e-6)  # fmt: skip
    K = expected.kernel_(few)
    np.save(tmp_path / "K.npy", K)
    found = model("auto", kernel="precomputed", gamma=None).fit(tmp_path / "K.npy")
    assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-9)
    assert_allclose(found.transform(tmp_path / "K.npy"), expected.transform(few), atol=1e-6)


def test_auto_turns_to_landmarks_where_rows_do_not_fit(X, tmp_path):
    tall = np.tile(X, (30, 1))
    np.save(tmp_path / "tall.npy", tall)
    for source in (write_parquet(tall, tmp_path / "tall.parquet"), pieces(tall)):
        found = model("auto", memory="3300kB").fit(source)
        assert "do not fit memory=3.3 MB" in found.plan_.reason
        assert found.plan_.method == 'basis="landmarks"' and "landmarks" in repr(found.plan_)
        with pytest.raises(ValueError, match=r"Save them as a \.npy file"):
            model("points", memory="3300kB").fit(source)
    found = model("auto", memory="3300kB").fit(tmp_path / "tall.npy")
    assert found.plan_.method == 'basis="landmarks"'
    with pytest.raises(ValueError, match=r"only once, and its rows do not fit memory=3.3 MB"):
        model("auto", memory="3300kB").fit(pieces(tall)())


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".csv"])
def test_scores_are_written_as_they_come(suffix, X, parquet, tmp_path):
    found = model(Landmarks(points=X[:60])).fit(pieces(X))
    out = tmp_path / f"scores{suffix}"
    for source in (parquet, X, pieces(X), sparse.csr_matrix(X)):
        assert found.transform(source, out=str(out)) == out
        scores = open_source(out)
        assert_allclose(scores.read(), found.transform(parquet), atol=1e-12)
        out.unlink()
    if suffix != ".npy":
        assert scores.columns == [f"kernelpca{i}" for i in range(R)]


def test_parquet_has_no_dictionary_of_scores(tmp_path):
    """Random numbers do not repeat: the file is hardly larger than they are."""
    rows = np.random.default_rng(0).standard_normal((4000, 3))
    names = np.array(["a", "b"] * 2000)
    with open_sink(tmp_path / "x.parquet", 3, columns=["u", "v", "w"], kept={"id": names}) as sink:
        sink.write(rows)
    assert (tmp_path / "x.parquet").stat().st_size < 1.05 * rows.nbytes
    encodings = pq.ParquetFile(tmp_path / "x.parquet").metadata.row_group(0)
    told = ["DICTIONARY" in str(encodings.column(i).encodings) for i in range(4)]
    assert told == [True, False, False, False]


@pytest.mark.parametrize("seed", range(3))
def test_row_groups_are_as_large_as_may_be(seed, tmp_path):
    """Blocks of any lengths: groups hold no more than asked for, and two neighbors would."""
    rng, d = generator(seed, 5), int(generator(seed).integers(1, 6))
    lengths, held = rng.integers(0, 900, 40), int(rng.integers(1000, 60_000))
    rows = rng.standard_normal((lengths.sum(), d))
    with open_sink(tmp_path / "x.parquet", d, held=held) as sink:
        for block in np.split(rows, np.cumsum(lengths)[:-1]):
            sink.write(block)
    assert_array_equal(open_source(tmp_path / "x.parquet").read(), rows)
    meta = pq.ParquetFile(tmp_path / "x.parquet").metadata
    groups = np.array([meta.row_group(i).num_rows for i in range(meta.num_row_groups)])
    assert (8 * d * groups <= max(held, 8 * d * lengths.max())).all()
    assert (8 * d * (groups[1:] + groups[:-1]) > held).all()


def test_scores_that_do_not_fit_go_to_a_file(X, parquet, tmp_path):
    found = model(Landmarks(points=X[:20]), memory="300kB").fit(parquet)
    tall = np.tile(X, (4, 1))
    for source in (write_parquet(tall, tmp_path / "tall.parquet"), pieces(tall)):
        with pytest.raises(ValueError, match=r"or write scores to a file: transform\(\.\.\., out="):
            found.transform(source)
    with pytest.raises(ValueError, match="is the file that is read"):
        found.transform(parquet, out=parquet)
    assert open_source(parquet).n_rows == N


def test_columns_go_by_name(X, parquet, tmp_path):
    found = model(Landmarks(points=X[:60])).fit(parquet)
    assert list(found.feature_names_in_) == NAMES
    other = pa.table({"id": ["x"] * N, **dict(zip(reversed(NAMES), X.T[::-1], strict=True))})
    pq.write_table(other.append_column("label", [range(N)]), tmp_path / "other.parquet")
    assert_array_equal(found.transform(tmp_path / "other.parquet"), found.transform(parquet))
    with pytest.raises(ValueError, match="the model was fitted to"):
        found.transform(open_source(tmp_path / "other.parquet", columns=NAMES[::-1]))
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "narrow.parquet")
    with pytest.raises(ValueError, match="no column 'b'"):
        found.transform(tmp_path / "narrow.parquet")
    with pytest.raises(ValueError, match="has 2 columns, and the model was fitted to 5"):
        found.transform(iter([X[:, :2]]))
    found.fit(pieces(X))
    assert not hasattr(found, "feature_names_in_")


def test_errors_and_containers(X, parquet, tmp_path):
    found = model(Landmarks(points=X[:60])).fit(parquet)
    errors = found.reconstruction_error(parquet)
    assert_allclose(found.score(parquet), -errors.mean())
    frame = found.set_output(transform="pandas").transform(parquet)
    assert list(frame.columns) == [f"kernelpca{i}" for i in range(R)]
    assert found.transform(parquet, out=tmp_path / "s.csv") == tmp_path / "s.csv"
    assert not hasattr(found, "set_transform_request")
    pd = pytest.importorskip("pandas")
    for rows in (pd.DataFrame(X, columns=NAMES), parquet):
        scores = open_source(found.transform(rows, out=tmp_path / "s.npy")).read()
        assert_allclose(scores, frame, atol=1e-12)
    np.savetxt(tmp_path / "bare.csv", X, delimiter=",", fmt="%.17g")
    assert_allclose(found.transform(tmp_path / "bare.csv"), frame, atol=1e-12)
    found.__dict__.pop("feature_names_in_")
    assert_allclose(errors, found.reconstruction_error(X), atol=1e-12)


def test_the_model_is_like_any_other(X, parquet):
    found = model(Landmarks(100)).fit(parquet)
    found.__dict__.pop("feature_names_in_")
    again = pickle.loads(pickle.dumps(found))
    assert_array_equal(again.transform(X[:50]), found.transform(X[:50]))
    assert found.denoise(X[:5], noise=0.1).shape == (5, D)
    with pytest.warns(MercerWarning, match=r"ridge of 2,000 centers needs .* memory=60 MB holds"):
        assert found.inverse_transform(found.transform(X[:5])).shape == (5, D)
    assert found.score(X) <= 0


def test_bad_requests(X, parquet, tmp_path):
    with pytest.raises(ValueError, match="fit_inverse_transform=True solves an n x n system"):
        model(fit_inverse_transform=True).fit(parquet)
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        model().fit(tmp_path / "nothing.parquet")
    with pytest.raises(ValueError, match="has 1 rows, while a minimum of 2"):
        model("features").fit(iter([X[:1]]))
    with pytest.raises(ValueError, match="has 0 rows"):
        model().fit(write_parquet(X[:0], tmp_path / "empty.parquet"))
    with pytest.raises(ValueError, match=r"scores can be written to files that end in \.npy"):
        model(Landmarks(20)).fit(parquet).transform(parquet, out=tmp_path / "scores.txt")
    with pytest.raises(ValueError, match="needs points, and a precomputed kernel has none"):
        model(kernel="precomputed", gamma=None).fit(parquet)
    with pytest.raises(ValueError, match="n_components"):
        KernelPCA(-1, basis="landmarks").fit(parquet)


def test_a_source_that_changes_between_passes(X):
    lengths = iter([N, N, 2000])

    def blocks():
        return iter([X[: next(lengths)]])

    with pytest.raises(ValueError, match="gave 3,001 rows at first and 2,000 when read again"):
        model().fit(blocks)
    used = iter(np.array_split(X, 4))
    with pytest.raises(ValueError, match=r"gave 2,250 rows at first and 0 when read again"):
        model().fit(lambda: used)


@pytest.mark.parametrize("row", [0, 1700, N - 1])
def test_nan_in_a_chunk(row, X, tmp_path):
    bad = X.copy()
    bad[row, 3] = np.nan
    path = write_parquet(bad, tmp_path / "bad.parquet")
    message = rf"bad\.parquet: row {row:,} .* in column 'd'"
    for basis in ("landmarks", "features"):
        with pytest.raises(ValueError, match=message):
            model(basis).fit(path)
    good = model(Landmarks(points=X[:20])).fit(write_parquet(X, tmp_path / "x.parquet"))
    for suffix in (".npy", ".parquet", ".csv"):
        with pytest.raises(ValueError, match=message):
            good.transform(path, out=tmp_path / f"scores{suffix}")
    assert sorted(os.listdir(tmp_path)) == ["bad.parquet", "x.parquet"]


def test_a_truncated_file(X, parquet):
    parquet.write_bytes(parquet.read_bytes()[:-300])
    with pytest.raises(ValueError, match=r"rows\.parquet cannot be read as Parquet: it is cut"):
        model().fit(parquet)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_generator_that_raises(error, X, tmp_path):
    def blocks():
        yield X[:2000]
        raise error("half way")

    with pytest.raises(error, match="half way"):
        model("features").fit(blocks())
    found = model(Landmarks(points=X[:20])).fit(X)
    with pytest.raises(error, match="half way"):
        found.transform(blocks(), out=tmp_path / "scores.parquet")
    assert os.listdir(tmp_path) == []


def test_a_disk_that_fills_while_scores_are_written(X, parquet, tmp_path):
    resource = pytest.importorskip("resource")
    found = model(Landmarks(points=X[:20])).fit(parquet)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, before[1]))
    try:
        for suffix in (".npy", ".parquet", ".csv"):
            with pytest.raises(OSError, match="File too large"):
                found.transform(parquet, out=tmp_path / f"scores{suffix}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(tmp_path) == ["rows.parquet"]


def test_ctrl_c_in_the_middle(tmp_path):
    """A real interrupt of a process that writes scores of endless rows."""
    code = f"""
        import itertools, os, signal
        import numpy as np
        from mercer import KernelPCA
        from mercer.bases import Landmarks
        X = np.random.default_rng(0).standard_normal((1000, 3))
        model = KernelPCA(2, kernel="rbf", basis=Landmarks(points=X[:20])).fit(X)
        def blocks():
            for i in itertools.count():
                if i == 200:
                    os.kill(os.getpid(), signal.SIGINT)
                yield X
        model.transform(blocks, out={str(tmp_path / "s.npy")!r})
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0 and "KeyboardInterrupt" in done.stderr
    assert os.listdir(tmp_path) == []


def test_memory_stays_inside_and_does_not_grow(tmp_path):
    """Arrays that NumPy makes; what pyarrow holds is bounded in benchmarks/scale.py."""
    memory, peaks = 8 * 10**6, []
    block = generator(0).standard_normal((4000, 20))

    def rows(count):
        return lambda: (block + 0.001 * i for i in range(count))

    options = {"gamma": 0.02, "memory": memory}
    model(Landmarks(100), **options).fit(rows(2)).transform(rows(2), out=tmp_path / "s.npy")
    for count in (10, 40):
        fitted = model(Landmarks(100), **options)
        peaks.append(peak_bytes(lambda f=fitted, c=count: f.fit(rows(c))))
        peaks.append(
            peak_bytes(lambda f=fitted, c=count: f.transform(rows(c), out=tmp_path / "s.npy"))
        )
    assert max(peaks) <= memory, peaks
    assert 40 * block.nbytes > 3 * memory
    # A busy machine decides how many blocks lie ready at once.
    ready = 3 * block.nbytes
    assert peaks[2] <= peaks[0] + ready and peaks[3] <= peaks[1] + ready


def test_progress_shows_rows_speed_and_time_left(X):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    with RowBar(1, console) as progress:
        for _ in progress.over(iter(np.array_split(X, 5)), "summing moments", N):
            progress._bar.refresh()
    shown = screen.getvalue()
    assert "summing moments" in shown and "3,001 rows" in shown
    assert "/s" in shown and "left" in shown
    assert next(RowBar(0).over(iter([X]), "quiet", None)) is X


def test_verbose_fits_show_both_passes(X, capfd):
    model(Landmarks(20), verbose=1).fit(pieces(X))
    shown = capfd.readouterr().err
    assert "reading rows" in shown and "summing moments" in shown


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("kind", ["npy", "sparse"])
def test_missing_numbers_of_mapped_files_are_named(kernel, kind, tmp_path):
    """Arrays that are used from disk as they are have their first bad cell named too."""
    X = np.random.default_rng(0).standard_normal((200, 4))
    X[150, 2] = np.nan
    path = tmp_path / ("rows.npy" if kind == "npy" else "rows.npz")
    if kind == "npy":
        np.save(path, X)
    else:
        sparse.save_npz(path, sparse.csr_matrix(X))
    with pytest.raises(
        ValueError, match=rf"{path.name}: row 150 .* holds NaN or infinity in column 2"
    ):
        KernelPCA(2, kernel=kernel).fit(path)
