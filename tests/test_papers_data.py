"""The loaders of the papers' data: shapes and values, and their words when data are missing."""

import os

import numpy as np
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

papers_data = pytest.importorskip("papers_data")

needs_data = pytest.mark.skipif(
    "MERCER_DATA" not in os.environ, reason="MERCER_DATA names no folder of data files"
)
FETCHED = [papers_data.load_usps, papers_data.load_mnist, papers_data.load_covtype]
FILES = {
    papers_data.load_usps: "usps.npz",
    papers_data.load_mnist: "mnist.npz",
    papers_data.load_covtype: "covtype.npz",
    papers_data.load_cloud: "cloud.npz",
    papers_data.load_solar_flare: "solar_flare.npz",
    papers_data.load_mocap: "mocap_walk.npz",
    papers_data.load_test_image: "images_lena512.npz",
}


def load(loader, **params):
    """Call a loader so that it must read a file."""
    return (
        loader("lena512", **params) if loader is papers_data.load_test_image else loader(**params)
    )


@pytest.fixture
def offline(monkeypatch):
    """scikit-learn's fetchers without a network."""

    def fail(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fail)
    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fail)


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
        (papers_data.load_covtype, {"scaling": "z"}),
        (papers_data.load_cloud, {"part": 3}),
        (papers_data.load_solar_flare, {"scaling": None}),
        (papers_data.load_mocap, {"trial": "36_01"}),
        (papers_data.load_test_image, {"name": "lina"}),
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
        bunch = papers_data.load_usps(subset="test")
    assert bunch.data.shape == (2007, 256) and set(bunch.target) == set(range(10))
    assert papers_data.load_usps(smoothed=True).data.shape == (7291, 256)
    with pytest.raises(ValueError, match="subset must be one of 'train', 'test', 'all'"):
        papers_data.load_usps(smoothed=True, subset="valid")


def test_fetched_mnist(monkeypatch):
    fetch = lambda *args, **kwargs: Bunch(  # noqa: E731
        data=np.full((60010, 784), 255, dtype=np.uint8), target=np.full(60010, "7")
    )
    monkeypatch.delenv("MERCER_DATA", raising=False)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    bunch = papers_data.load_mnist(subset="test", dtype=np.float32)
    assert bunch.data.shape == (10, 784) and bunch.data.dtype == np.float32
    assert (bunch.data == 1).all() and (bunch.target == 7).all()


def test_fetched_covtype(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 50, (200, 54)).astype(float), np.ones(200, dtype=np.int32)
    monkeypatch.delenv("MERCER_DATA", raising=False)
    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", lambda return_X_y: (X, y))
    mixed = papers_data.load_covtype().data
    np.testing.assert_allclose(mixed[:, :10].std(axis=0), 1)
    np.testing.assert_array_equal(mixed[:, 10:], X[:, 10:])
    np.testing.assert_allclose(
        papers_data.load_covtype(scaling="standard").data.mean(axis=0), 0, atol=1e-12
    )


@needs_data
def test_usps():
    train, test = papers_data.load_usps(), papers_data.load_usps(subset="test", dtype=np.float32)
    assert train.data.shape == (7291, 256) and train.images_shape == (16, 16)
    assert (train.data.min(), train.data.max()) == (-1, 1)
    counts = [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
    np.testing.assert_array_equal(np.bincount(train.target), counts)
    assert test.data.shape == (2007, 256) and test.data.dtype == np.float32
    assert len(train.feature_names) == 256


@needs_data
def test_smoothed_usps_is_the_same_digits_with_less_contrast():
    sharp, smooth = papers_data.load_usps(), papers_data.load_usps(smoothed=True)
    np.testing.assert_array_equal(sharp.target, smooth.target)
    assert smooth.data.min() >= -1 and smooth.data.max() <= 1
    assert smooth.data.var() < sharp.data.var()
    correlations = np.corrcoef(sharp.data[0], smooth.data[0])
    assert 0.9 < correlations[0, 1] < 1


@needs_data
def test_mnist():
    train = papers_data.load_mnist(dtype=np.float32)
    assert train.data.shape == (60000, 784) and train.data.dtype == np.float32
    assert (train.data.min(), train.data.max()) == (0, 1)
    np.testing.assert_array_equal(train.target[:5], [5, 0, 4, 1, 9])


@needs_data
def test_covtype():
    raw = papers_data.load_covtype(scaling="raw", dtype=np.float32)
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
    mixed = papers_data.load_covtype(dtype=np.float32).data
    np.testing.assert_allclose(mixed[:, :10].mean(axis=0, dtype=np.float64), 0, atol=1e-5)
    np.testing.assert_allclose(mixed[:, :10].std(axis=0, dtype=np.float64), 1, rtol=1e-5)
    np.testing.assert_array_equal(np.unique(mixed[:, 10:]), [0, 1])


@needs_data
def test_cloud():
    both, first = papers_data.load_cloud(), papers_data.load_cloud(part=1, scaling="raw")
    assert both.data.shape == (2048, 10) and first.data.shape == (1024, 10)
    np.testing.assert_allclose(both.data.std(axis=0), 1)
    assert (first.data[:, 0] <= first.data[:, 2]).all()
    assert np.bincount(both.target).tolist() == [0, 1024, 1024]


@needs_data
def test_solar_flare():
    both, raw = papers_data.load_solar_flare(), papers_data.load_solar_flare(part=2, scaling="raw")
    assert both.data.shape == (1389, 24) and both.target.shape == (1389, 3)
    assert raw.data.shape == (1066, 24) and len(raw.feature_names) == 24
    np.testing.assert_array_equal(raw.data[:, :17].sum(axis=1), 3)
    assert np.ptp(raw.data[:, -1]) == 0
    assert (papers_data.load_solar_flare(part=2).data[:, -1] == 0).all()
    assert both.target.max() == 8


@needs_data
def test_mocap():
    walk, walks = papers_data.load_mocap(), papers_data.load_mocap("cmu35")
    assert walk.data.shape == (358, 93) and walk.parents[0] == -1
    assert walk.frame_rate == 120 and len(walk.feature_names) == 93
    assert walks.data.shape == (9591, 93) and len(walks.trials) == 23
    np.testing.assert_array_equal(np.bincount(walks.target), walks.lengths)
    np.testing.assert_array_equal(walks.data[:358], walk.data)


@needs_data
def test_mocap_bones_keep_their_length():
    walk = papers_data.load_mocap()
    joints = walk.data.reshape(-1, 31, 3)
    bones = np.linalg.norm(joints[:, 1:] - joints[:, walk.parents[1:]], axis=2)
    assert (np.ptp(bones, axis=0) <= 1e-4 * (1 + bones.mean(axis=0))).all()


@needs_data
def test_lena():
    image = papers_data.load_test_image("lena512")
    assert image.data.shape == image.images_shape == (512, 512)
    assert 255 * image.data.mean() == pytest.approx(124.047, abs=1e-3)


def test_image_of_scikit_learn_is_gray():
    pytest.importorskip("PIL")
    image = papers_data.load_test_image("china", dtype=np.float32)
    assert image.data.shape == image.images_shape == (427, 640)
    assert image.data.dtype == np.float32 and 0 <= image.data.min() < image.data.max() <= 1
