"""Generated data sets: they need no files, and all return a :class:`sklearn.utils.Bunch`."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter
from sklearn.utils import Bunch

__all__ = [
    "make_plant",
    "make_signal_in_noise",
    "make_three_clusters",
    "make_unbalanced_clusters",
    "make_walk",
]

Rng = np.random.Generator | int | None


def make_signal_in_noise(n: int = 1500, snr: float = 1.0, rng: Rng = None) -> Bunch:
    """Generate a 5-d Gaussian signal in 20-d isotropic noise of unit variance.

    Parameters
    ----------
    n : int, default=1500
        Number of rows.
    snr : float, default=1.0
        Expected squared norm of a row's signal over that of its noise.
    rng : Generator, int or None
        Source of randomness, or a seed for it.

    Returns
    -------
    Bunch
        `data` (n, 20), `signal` (n, 20) without the noise, `directions` (20, 5), an orthonormal
        basis of the signal's span, `DESCR`.
    """
    rng = np.random.default_rng(rng)
    d, q = 20, 5
    directions = np.linalg.qr(rng.standard_normal((d, q)))[0]
    signal = np.sqrt(snr * d / q) * rng.standard_normal((n, q)) @ directions.T
    X = signal + rng.standard_normal((n, d))
    text = f"{q}-d Gaussian signal in {d}-d isotropic noise, signal to noise ratio {snr:g}."
    return Bunch(data=X, signal=signal, directions=directions, DESCR=text)


def make_unbalanced_clusters(
    n: int = 1500, rng: Rng = None, *, n_clusters: int = 20, n_features: int = 10
) -> Bunch:
    """Generate Gaussian clusters whose sizes follow Zipf's law, the k-th in proportion to 1/k.

    Centers are standard normal and clusters have deviation 0.2 in each coordinate, so uniform
    landmarks see the large ones many times and may miss the small ones.

    Parameters
    ----------
    n : int, default=1500
        Number of rows.
    rng : Generator, int or None
        Source of randomness, or a seed for it.
    n_clusters, n_features : int, default=20 and 10
        Number of clusters and of columns.

    Returns
    -------
    Bunch
        `data` (n, n_features), `target` (the cluster, 0 the most frequent), `centers`,
        `weights` (the clusters' probabilities), `DESCR`.
    """
    rng = np.random.default_rng(rng)
    weights = 1 / np.arange(1, n_clusters + 1)
    weights /= weights.sum()
    target = rng.choice(n_clusters, size=n, p=weights)
    centers = rng.standard_normal((n_clusters, n_features))
    X = centers[target] + 0.2 * rng.standard_normal((n, n_features))
    text = f"{n_clusters} Gaussian clusters in {n_features} dimensions with Zipf weights."
    return Bunch(data=X, target=target, centers=centers, weights=weights, DESCR=text)


def make_three_clusters(n_per_cluster: int = 30, rng: Rng = None) -> Bunch:
    """Generate the three plane clusters on which Shi, Guo and Xue test the Gram power method.

    Centers (-0.5, -0.2), (0, 0.6), (0.5, 0), deviation 0.1. The eigenvalues they print belong
    to the centered kernel exp(-|x - y|^2 / 0.1), that is gamma = 10.

    Parameters
    ----------
    n_per_cluster : int, default=30
        Rows of each cluster; the paper has 30.
    rng : Generator, int or None
        Source of randomness, or a seed for it.

    Returns
    -------
    Bunch
        `data` (3 n_per_cluster, 2), `target`, `centers`, `DESCR`.
    """
    rng = np.random.default_rng(rng)
    centers = np.array([[-0.5, -0.2], [0.0, 0.6], [0.5, 0.0]])
    target = np.repeat(np.arange(3), n_per_cluster)
    X = centers[target] + 0.1 * rng.standard_normal((len(target), 2))
    text = "Three Gaussian clusters in the plane, deviation 0.1."
    return Bunch(data=X, target=target, centers=centers, DESCR=text)


# The joint that each joint of the generated figure hangs on: root, chest, head, left hip, knee and
# foot, right hip, knee and foot, shoulders, left and right hand.
WALK_PARENTS = (-1, 0, 1, 0, 3, 4, 0, 6, 7, 1, 9, 9)


def make_walk(n: int = 240, rate: float = 60.0, speed: float = 0.0) -> Bunch:
    """Generate the joint positions of a figure that walks, as motion capture records them.

    Parameters
    ----------
    n : int, default=240
        Frames.
    rate : float, default=60.0
        Frames a second.
    speed : float, default=0.0
        Meters a second along the first axis; 0 walks on the spot.

    Returns
    -------
    Bunch
        `data` (n, 36), the coordinates of twelve joints in meters, the second axis up; `parents`,
        the joint each joint hangs on, and `frame_rate`, as of `load_mocap`; `DESCR`.
    """
    t = np.arange(n) / rate
    phase = 2 * np.pi * 0.9 * t
    P = np.zeros((n, len(WALK_PARENTS), 3))
    P[:, 0, 0] = speed * t
    P[:, 0, 1] = 0.95 + 0.03 * np.cos(2 * phase)
    P[:, 1] = P[:, 0] + [0, 0.45, 0]
    P[:, 9] = P[:, 1] + [0, 0.08, 0]
    P[:, 2] = P[:, 1] + [0.02, 0.3, 0]
    for side, hip, start in ((0.1, 3, 0.0), (-0.1, 6, np.pi)):
        swing = 0.5 * np.sin(phase + start)
        bend = 0.5 * np.maximum(np.sin(phase + start + 1.2), 0)
        P[:, hip] = P[:, 0] + [0, 0, side]
        P[:, hip + 1] = P[:, hip] + _limb(0.45, swing)
        P[:, hip + 2] = P[:, hip + 1] + _limb(0.45, swing - bend)
    for hand, side, start in ((10, 0.25, np.pi), (11, -0.25, 0.0)):
        P[:, hand] = P[:, 9] + _limb(0.6, 0.4 * np.sin(phase + start)) + [0, 0, side]
    X, parents = P.reshape(n, -1), np.array(WALK_PARENTS)
    text = "A generated walk: twelve joints in meters."
    return Bunch(data=X, parents=parents, frame_rate=rate, DESCR=text)


def make_plant(
    n: int = 1000,
    rng: Rng = None,
    *,
    plant: int = 0,
    fault: str | None = None,
    start: int | None = None,
    size: float = 1.5,
    memory: float = 0.9,
    n_features: int = 10,
) -> Bunch:
    """Generate sensors of a plant whose operating point wanders: rows in the order of time.

    The operating point has two coordinates, autoregressive of order one; each sensor is a linear,
    quadratic, saturating or periodic function of it, in a unit of its own, with noise.

    Parameters
    ----------
    n : int, default=1000
        Number of rows.
    rng : Generator, int or None
        Source of randomness, or a seed for it.
    plant : int, default=0
        Which plant: runs of the same number have the same sensors.
    fault : "step", "drift", "stuck", "relation" or None, default=None
        What happens to one sensor: an offset, one that grows to twice that, no more change, or
        another function of the operating point.
    start : int or None, default=None
        The first row of the fault; None is the middle.
    size : float, default=1.5
        The offset in standard deviations of the sensor.
    memory : float, default=0.9
        Autocorrelation of the operating point from row to row.
    n_features : int, default=10
        Number of sensors.

    Returns
    -------
    Bunch
        `data` (n, n_features), `start`, `sensor` (the column of the fault, or None), `DESCR`.
    """
    if fault not in (None, "step", "drift", "stuck", "relation"):
        raise ValueError(f"fault={fault!r} must be step, drift, stuck, relation or None.")
    rng, fixed = np.random.default_rng(rng), np.random.default_rng(plant)
    d, q, start = n_features, 2, n // 2 if start is None else start
    ways, curves, others = fixed.standard_normal((3, q, d))
    shift, kind = fixed.uniform(-1, 1, d), fixed.integers(4, size=d)
    unit = 10 ** fixed.uniform(-1, 3, d)
    steps = np.sqrt(1 - memory**2) * rng.standard_normal((n, q))
    steps[:1] = rng.standard_normal(q)
    point = lfilter([1.0], [1.0, -memory], steps, axis=0)

    def readings(ways, kind):
        Z = point @ (ways / np.linalg.norm(ways, axis=0))
        W = point @ (curves / np.linalg.norm(curves, axis=0)) + shift
        forms = [Z, np.tanh(1.5 * Z + shift), Z + (W**2 - 1) / 1.5, 1.3 * np.sin(1.3 * Z + shift)]
        return np.choose(kind, forms)

    X, noise = readings(ways, kind), 0.1 * rng.standard_normal((n, d))
    sensor = None if fault is None else int(rng.integers(d))
    if fault == "relation":
        X[start:, sensor] = readings(others, (kind + 1) % 4)[start:, sensor]
    elif fault in ("step", "drift"):
        since = np.arange(n) - start
        growing = 2 * since / max(n - start, 1) if fault == "drift" else 1.0
        offset = size * X[:, sensor].std() * rng.choice([-1, 1])
        X[:, sensor] += np.where(since >= 0, growing, 0.0) * offset
    X += noise
    if fault == "stuck":
        X[start:, sensor] = X[start, sensor]
    text = f"{d} sensors of plant {plant}, fault: {fault}."
    return Bunch(data=unit * X, start=start, sensor=sensor, DESCR=text)


def _limb(length, angle):
    """A limb that hangs down, turned in the plane of the walk."""
    return length * np.column_stack([np.sin(angle), -np.cos(angle), np.zeros_like(angle)])
