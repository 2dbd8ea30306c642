"""Denoised digits (Mika et al. 1999), and where linear PCA is as good."""

import numpy as np
from _denoising import wiener
from _experiment import MEASURED, Experiment, Finding, judged, pick
from papers_data import load_usps
from sklearn.decomposition import PCA

from mercer import KernelPCA


def digits(size, out):
    count, tests, r = pick(size, (150, 30, 16), (1500, 400, 64), (3000, 2007, 64))
    train = load_usps(dtype=np.float32).data
    X = train[np.random.default_rng(0).permutation(len(train))[:count]]
    clean = load_usps(subset="test", dtype=np.float32).data[:tests]
    noise = np.random.default_rng(1).standard_normal(clean.shape)
    noisy = (clean + 0.5**0.5 * noise).astype(np.float32)

    def mse(found):
        return float(np.mean((found - clean) ** 2))

    linear = {}
    for k in (8, 16, 24, 40, 64):
        if k < min(count, 256):
            model = PCA(k).fit(X)
            linear[k] = mse(model.inverse_transform(model.transform(noisy)))
    gamma = 1 / (2 * X.shape[1] * X.var(axis=0, dtype=float).mean())
    model = KernelPCA(r, kernel="rbf", gamma=gamma).fit(X)
    plain, full = (mse(model.denoise(noisy, compensate=c, noise=np.inf)) for c in (False, True))
    best, shrunk = min(linear.values()), mse(wiener(X, noisy))
    return [
        Finding(
            "kernel PCA denoises digits better than linear PCA, by 5 % at least",
            "yes (Mika et al.)",
            f"mean squared error {plain:.3f}, linear PCA with the best of five numbers of "
            f"components {best:.3f}",
            judged(lambda error: plain < 0.95 * error, best, max(linear.values()), True),
            {"linear": linear, "kernel": plain, "compensated": full},
            "5 % less error at least",
            f"the worst number of components of linear PCA has {max(linear.values()):.3f}",
        ),
        Finding(
            "the noise allowed for on both sides: shrinkage undone, and linear PCA with Wiener's",
            "not compared",
            f"kernel PCA, {r} components {full:.3f}, linear PCA, all components {shrunk:.3f}",
            MEASURED,
            {"kernel": full, "linear": shrunk},
        ),
    ]


EXPERIMENTS = [
    Experiment(
        "mika-digits",
        "mika",
        "Denoised digits",
        "Gaussian noise of variance 0.5, 2 sigma² = d c with c twice the mean variance of a pixel.",
        digits,
    ),
]
