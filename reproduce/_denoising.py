"""What the denoising experiments share: a report with limits, noisy digits, a clock."""

import time

import numpy as np
from papers_data import load_usps
from sklearn.decomposition import PCA


class Report:
    """Rows of (check, measured, limit), printed as they come."""

    def __init__(self):
        self.rows = []

    def add(self, check, value, limit=None, most=True):
        """A number; with a limit it must be at most that, or at least."""
        good = None if limit is None else bool(value <= limit if most else value >= limit)
        bound = "" if limit is None else f"{'<=' if most else '>='} {limit:g}"
        word = {None: "", True: "ok", False: "MISSED"}[good]
        print(f"{check:<68} {value:>10.4g}  {bound:<10} {word}", flush=True)
        self.rows.append({"check": check, "value": float(value), "limit": limit, "ok": good})


def mse(a, b):
    return float(np.mean((np.asarray(a, dtype=float) - b) ** 2))


def digits(quick, smoothed=False):
    """3,000 training and all test images."""
    rng = np.random.default_rng(0)
    train = load_usps(smoothed=smoothed, dtype=np.float32).data
    test = load_usps(smoothed=smoothed, subset="test", dtype=np.float32).data
    train = train[rng.permutation(len(train))[: 800 if quick else 3000]]
    return train, test[:: 10 if quick else 1]


def gaussian(X, variance, seed=1):
    noise = np.random.default_rng(seed).standard_normal(X.shape)
    return (X + variance**0.5 * noise).astype(np.float32)


def salt_and_pepper(X, share=0.4, seed=2):
    rng = np.random.default_rng(seed)
    hit = rng.random(X.shape) < share
    return np.where(hit, np.where(rng.random(X.shape) < 0.5, -1, 1), X).astype(np.float32)


def wiener(X, noisy):
    """Linear PCA of X with every score shrunk by its share of signal, all components kept.

    The noise is read from the last twenty scores, which hold little else.
    """
    model = PCA().fit(X)
    scores = model.transform(noisy)
    noise = np.mean(scores[:, -20:] ** 2)
    signal = model.explained_variance_
    return model.inverse_transform(scores * signal / (signal + noise))


def usps_gamma(X):
    """2 sigma^2 = d c, c twice the mean variance of a pixel."""
    return 1 / (2 * X.shape[1] * X.var(axis=0, dtype=float).mean())


def timed(work):
    """Seconds of processor time, which other programs on the machine do not lengthen much."""
    start = time.process_time()
    work()
    return time.process_time() - start
