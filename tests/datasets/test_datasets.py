"""The loaders' shapes and values, their words when data are missing, and the generated sets."""

import inspect
import os

import numpy as np
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from mercer import datasets

needs_data = pytest.mark.skipif(
    "MERCER_DATA" not in os.environ, reason="MERCER_DATA names no folder of data files"
)
GENERATED = [
    datasets.make_signal_in_noise,
    datasets.make_unbalanced_clusters,
    datasets.make_three_clusters,
]
FETCHED = [datasets.load_usps, datasets.load_mnist, datasets.load_covtype]
FILES = {
    datasets.load_usps: "usps.npz",
    datasets.load_mnist: "mnist.npz",
    datasets.load_covtype: "covtype.npz",
    datasets.load_cloud: "cloud.npz",
    datasets.load_solar_flare: "solar_flare.npz",
    datasets.load_mocap: "mocap_walk.npz",
    datasets.load_test_image: "images_lena512.npz",
}


def load(loader, **params):
    """Call a loader so that it must read a file."""
    return loader("lena512", **params) if loader is datasets.load_test_image else loader(**params)


@pytest.fixture
def offline(monkeypatch):
    """scikit-learn's fetchers without a network."""

    def fail(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fail)
    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fail)


def test_everything_public_is_tested():
    public = {getattr(datasets, name) for name in datasets.__all__}
    assert public == {*FILES, *GENERATED, datasets.make_walk}


@pytest.mark.parametrize("loader", FILES, ids=lambda f: f.__name__)
def test_missing_file_says_what_to_do(loader, monkeypatch, tmp_path, offline):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError) as error:
        load(loader)
    message = str(error.value)
    assert FILES[loader] in message and repr(str(tmp_path)) in message
    assert "Set the environment variable MERCER_DATA" in message
    assert ("download failed too: no network" in message) == (loader in FETCHED)


@pytest.mark.parametrize("loader", FILES, ids=lambda f: f.__name__)
def test_unset_folder_is_named(loader, monkeypatch, offline):
    monkeypatch.delenv("MERCER_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="MERCER_DATA is not set"):
        load(loader)


@pytest.mark.parametrize(
    ("loader", "params"),
    [
        (datasets.load_covtype, {"scaling": "z"}),
        (datasets.load_cloud, {"part": 3}),
        (datasets.load_solar_flare, {"scaling": None}),
        (datasets.load_mocap, {"trial": "36_01"}),
        (datasets.load_test_image, {"name": "lina"}),
    ],
)
def test_unknown_options_list_the_known(loader, params):
    (parameter,) = params
    with pytest.raises(ValueError, match=f"{parameter} must be one of .*; got"):
        loader(**params)


def test_fetched_usps_warns_and_counts_digits_from_zero(monkeypatch):
    X, y = np.zeros((9298, 256)), (np.arange(9298) % 10 + 1).astype(str)
    fetch = lambda data_id, as_frame: Bunch(data=X, target=y)  # noqa: E731
    monkeypatch.delenv("MERCER_DATA", raising=False)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    with pytest.warns(UserWarning, match="probably the smoothed"):
        bunch = datasets.load_usps(subset="test")
    assert bunch.data.shape == (2007, 256) and set(bunch.target) == set(range(10))
    assert datasets.load_usps(smoothed=True).data.shape == (7291, 256)
    with pytest.raises(ValueError, match="subset must be one of 'train', 'test', 'all'"):
        datasets.load_usps(smoothed=True, subset="valid")


def test_fetched_mnist(monkeypatch):
    fetch = lambda *args, **kwargs: Bunch(  # noqa: E731
        data=np.full((60010, 784), 255, dtype=np.uint8), target=np.full(60010, "7")
    )
    monkeypatch.delenv("MERCER_DATA", raising=False)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    bunch = datasets.load_mnist(subset="test", dtype=np.float32)
    assert bunch.data.shape == (10, 784) and bunch.data.dtype == np.float32
    assert (bunch.data == 1).all() and (bunch.target == 7).all()


def test_fetched_covtype(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 50, (200, 54)).astype(float), np.ones(200, dtype=np.int32)
    monkeypatch.delenv("MERCER_DATA", raising=False)
    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", lambda return_X_y: (X, y))
    mixed = datasets.load_covtype().data
    np.testing.assert_allclose(mixed[:, :10].std(axis=0), 1)
    np.testing.assert_array_equal(mixed[:, 10:], X[:, 10:])
    np.testing.assert_allclose(
        datasets.load_covtype(scaling="standard").data.mean(axis=0), 0, atol=1e-12
    )


@needs_data
def test_usps():
    train, test = datasets.load_usps(), datasets.load_usps(subset="test", dtype=np.float32)
    assert train.data.shape == (7291, 256) and train.images_shape == (16, 16)
    assert (train.data.min(), train.data.max()) == (-1, 1)
    counts = [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
    np.testing.assert_array_equal(np.bincount(train.target), counts)
    assert test.data.shape == (2007, 256) and test.data.dtype == np.float32
    assert len(train.feature_names) == 256


@needs_data
def test_smoothed_usps_is_the_same_digits_with_less_contrast():
    sharp, smooth = datasets.load_usps(), datasets.load_usps(smoothed=True)
    np.testing.assert_array_equal(sharp.target, smooth.target)
    assert smooth.data.min() >= -1 and smooth.data.max() <= 1
    assert smooth.data.var() < sharp.data.var()
    correlations = np.corrcoef(sharp.data[0], smooth.data[0])
    assert 0.9 < correlations[0, 1] < 1


@needs_data
def test_mnist():
    train = datasets.load_mnist(dtype=np.float32)
    assert train.data.shape == (60000, 784) and train.data.dtype == np.float32
    assert (train.data.min(), train.data.max()) == (0, 1)
    np.testing.assert_array_equal(train.target[:5], [5, 0, 4, 1, 9])


@needs_data
def test_covtype():
    raw = datasets.load_covtype(scaling="raw", dtype=np.float32)
    assert raw.data.shape == (581012, 54) and len(raw.feature_names) == 54
    assert raw.data[:, 0].mean(dtype=np.float64) == pytest.approx(2959.365300544567)
    np.testing.assert_array_equal(np.unique(raw.data[:, 10:]), [0, 1])
    np.testing.assert_array_equal(raw.data[:, 10:14].sum(axis=1), 1)
    np.testing.assert_array_equal(raw.data[:, 14:].sum(axis=1), 1)
    assert np.bincount(raw.target)[1:].tolist() == [
        211840, 283301, 35754, 2747, 9493, 17367, 20510
    ]  # fmt: skip


@needs_data
def test_covtype_scalings():
    mixed = datasets.load_covtype(dtype=np.float32).data
    np.testing.assert_allclose(mixed[:, :10].mean(axis=0, dtype=np.float64), 0, atol=1e-5)
    np.testing.assert_allclose(mixed[:, :10].std(axis=0, dtype=np.float64), 1, rtol=1e-5)
    np.testing.assert_array_equal(np.unique(mixed[:, 10:]), [0, 1])


@needs_data
def test_cloud():
    both, first = datasets.load_cloud(), datasets.load_cloud(part=1, scaling="raw")
    assert both.data.shape == (2048, 10) and first.data.shape == (1024, 10)
    np.testing.assert_allclose(both.data.std(axis=0), 1)
    assert (first.data[:, 0] <= first.data[:, 2]).all()
    assert np.bincount(both.target).tolist() == [0, 1024, 1024]


@needs_data
def test_solar_flare():
    both, raw = datasets.load_solar_flare(), datasets.load_solar_flare(part=2, scaling="raw")
    assert both.data.shape == (1389, 24) and both.target.shape == (1389, 3)
    assert raw.data.shape == (1066, 24) and len(raw.feature_names) == 24
    np.testing.assert_array_equal(raw.data[:, :17].sum(axis=1), 3)
    assert np.ptp(raw.data[:, -1]) == 0
    assert (datasets.load_solar_flare(part=2).data[:, -1] == 0).all()
    assert both.target.max() == 8


@needs_data
def test_mocap():
    walk, walks = datasets.load_mocap(), datasets.load_mocap("cmu35")
    assert walk.data.shape == (358, 93) and walk.parents[0] == -1
    assert walk.frame_rate == 120 and len(walk.feature_names) == 93
    assert walks.data.shape == (9591, 93) and len(walks.trials) == 23
    np.testing.assert_array_equal(np.bincount(walks.target), walks.lengths)
    np.testing.assert_array_equal(walks.data[:358], walk.data)


@needs_data
def test_mocap_bones_keep_their_length():
    walk = datasets.load_mocap()
    joints = walk.data.reshape(-1, 31, 3)
    bones = np.linalg.norm(joints[:, 1:] - joints[:, walk.parents[1:]], axis=2)
    assert (np.ptp(bones, axis=0) <= 1e-4 * (1 + bones.mean(axis=0))).all()


@needs_data
def test_lena():
    image = datasets.load_test_image("lena512")
    assert image.data.shape == image.images_shape == (512, 512)
    assert 255 * image.data.mean() == pytest.approx(124.047, abs=1e-3)


def test_image_of_scikit_learn_is_gray():
    pytest.importorskip("PIL")
    image = datasets.load_test_image("china", dtype=np.float32)
    assert image.data.shape == image.images_shape == (427, 640)
    assert image.data.dtype == np.float32 and 0 <= image.data.min() < image.data.max() <= 1


@pytest.mark.parametrize("make", GENERATED, ids=lambda f: f.__name__)
def test_generated_sets_follow_seed_size_and_dtype(make):
    size = next(iter(inspect.signature(make).parameters))
    first, second = make(**{size: 40}, rng=3), make(**{size: 40}, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(first.data, second.data)
    assert len(first.data) == (120 if make is datasets.make_three_clusters else 40)
    assert not np.array_equal(first.data, make(**{size: 40}, rng=4).data)
    assert make(rng=0, dtype=np.float32).data.dtype == np.float32
    assert isinstance(first.DESCR, str)


@pytest.mark.parametrize("snr", [0.1, 1.0, 10.0])
def test_signal_to_noise_ratio(snr):
    bunch = datasets.make_signal_in_noise(20000, snr, rng=0)
    noise = bunch.data - bunch.signal
    assert (bunch.signal**2).sum() / (noise**2).sum() == pytest.approx(snr, rel=0.05)
    assert np.cov(noise.T) == pytest.approx(np.eye(20), abs=0.06)
    outside = bunch.signal - bunch.signal @ bunch.directions @ bunch.directions.T
    assert np.abs(outside).max() < 1e-12


def test_cluster_sizes_follow_zipf():
    bunch = datasets.make_unbalanced_clusters(50000, rng=0)
    shares = np.bincount(bunch.target, minlength=20) / 50000
    np.testing.assert_allclose(shares, bunch.weights, atol=0.01)
    assert bunch.weights[0] / bunch.weights[9] == pytest.approx(10)
    spread = bunch.data - bunch.centers[bunch.target]
    assert spread.std() == pytest.approx(0.2, rel=0.02)


def test_three_clusters_have_the_published_eigenvalues():
    """Table 1 of Shi, Guo and Xue is one draw: it must lie within the spread of ours."""
    values = [_top_eigenvalues(datasets.make_three_clusters(rng=seed)) for seed in range(100)]
    deviations = (np.mean(values, axis=0) - [22.558, 20.936, 4.648]) / np.std(values, axis=0)
    assert np.abs(deviations).max() < 2


def _top_eigenvalues(bunch, gamma=10.0):
    differences = bunch.data[:, None] - bunch.data[None]
    K = np.exp(-gamma * (differences**2).sum(axis=2))
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    return np.linalg.eigvalsh(K)[::-1][:3]


def test_generated_walk_keeps_its_limbs():
    """Bones between joints and their parents have the same length in every frame."""
    walk = datasets.make_walk(50, speed=1.3)
    joints = walk.data.reshape(50, -1, 3)
    for joint, parent in enumerate(walk.parents):
        if parent >= 0 and joint not in (10, 11):
            lengths = np.linalg.norm(joints[:, joint] - joints[:, parent], axis=1)
            np.testing.assert_allclose(lengths, lengths[0], atol=1e-12)
    assert joints[-1, 0, 0] - joints[0, 0, 0] == pytest.approx(1.3 * 49 / 60)
    assert walk.data.shape == (50, 36) and walk.frame_rate == 60
