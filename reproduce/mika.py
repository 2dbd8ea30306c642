"""Denoising and novelty: what kernel PCA is used for, and where others are better."""

import numpy as np
from _denoising import wiener
from _experiment import MEASURED, Experiment, Finding, checked, judged, pick
from papers_data import load_usps
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from mercer import KernelPCA, NoveltyDetector

# Area under the curve within which a method counts as competitive with the best one here.
COMPETITIVE = 0.02


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


def novelty(size, out):
    sets = {"wine": load_wine(), "breast cancer": load_breast_cancer()}
    areas = {name: novelty_areas(data.data, data.target) for name, data in sets.items()}
    if size != "smoke":
        train, test = load_usps(), load_usps(subset="test")
        rows = np.vstack([train.data[:2000], test.data[:500]])
        areas["USPS"] = novelty_areas(
            rows, np.concatenate([train.target[:2000], test.target[:500]])
        )
    findings = []
    for name, found in areas.items():
        findings.append(
            Finding(
                f"novelty by reconstruction error (Hoffmann 2007) is within {COMPETITIVE} of the "
                f"best area under the curve, {name}",
                "",
                ", ".join(f"{way} {area:.3f}" for way, area in found.items()),
                checked(found["kernel PCA"] > max(found.values()) - COMPETITIVE),
                found,
            )
        )
    return findings


def novelty_areas(X, y):
    """Mean area under the curve, each class against the rest, half of its rows for training."""
    ways = {
        "kernel PCA": lambda A: NoveltyDetector(random_state=0).fit(A).score_samples,
        "linear PCA": _linear_score,
        "one-class SVM": lambda A: OneClassSVM(gamma="scale").fit(A).score_samples,
        "isolation forest": lambda A: IsolationForest(random_state=0).fit(A).score_samples,
    }
    areas = {name: [] for name in ways}
    for k in np.unique(y):
        rng = np.random.default_rng(int(k))
        own = rng.permutation(np.flatnonzero(y == k))
        train, held = own[: len(own) // 2], own[len(own) // 2 :]
        rows = np.concatenate([held, np.flatnonzero(y != k)])
        scaler = StandardScaler().fit(X[train])
        for name, way in ways.items():
            score = way(scaler.transform(X[train]))(scaler.transform(X[rows]))
            areas[name].append(roc_auc_score(y[rows] == k, score))
    return {name: float(np.mean(found)) for name, found in areas.items()}


def _linear_score(A):
    model = PCA(0.9, svd_solver="full").fit(A)
    return lambda B: -np.sum((B - model.inverse_transform(model.transform(B))) ** 2, axis=1)


EXPERIMENTS = [
    Experiment(
        "mika-digits",
        "mika",
        "Denoised digits",
        "Gaussian noise of variance 0.5, 2 sigma² = d c with c twice the mean variance of a pixel.",
        digits,
    ),
    Experiment(
        "hoffmann-novelty",
        "mika",
        "Novelty",
        "Columns standardized, defaults of every method.",
        novelty,
        data=False,
    ),
]
