"""The generated data sets."""

import inspect

import numpy as np
import pytest

from mercer import datasets

GENERATED = [
    datasets.make_plant,
    datasets.make_signal_in_noise,
    datasets.make_unbalanced_clusters,
    datasets.make_three_clusters,
]


def test_everything_public_is_tested():
    public = {getattr(datasets, name) for name in datasets.__all__}
    assert public == {*GENERATED, datasets.make_walk}


@pytest.mark.parametrize("make", GENERATED, ids=lambda f: f.__name__)
def test_generated_sets_follow_seed_and_size(make):
    size = next(iter(inspect.signature(make).parameters))
    first, second = make(**{size: 40}, rng=3), make(**{size: 40}, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(first.data, second.data)
    assert len(first.data) == (120 if make is datasets.make_three_clusters else 40)
    assert not np.array_equal(first.data, make(**{size: 40}, rng=4).data)
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
