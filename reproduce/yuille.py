"""Kernel PCA and multidimensional scaling (Yuille 2014, lecture 11): its identities, in numbers."""

import numpy as np
from _experiment import Experiment, Finding, checked, pick, plotting
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances

from mercer import ClassicalMDS, KernelPCA
from mercer.kernels import RBF

ROUNDING = 1e-8


def identities(size, out):
    n = pick(size, 60, 500, 1500)
    X = load_digits().data[:n]
    scaled = ClassicalMDS(5, dissimilarity="precomputed").fit(pairwise_distances(X))
    scores = PCA(5).fit_transform(X)
    linear = float(np.abs(np.abs(scaled.embedding_) - np.abs(scores)).max() / np.abs(scores).max())
    kernel = RBF(gamma=0.001)
    K = kernel(X)
    squares = np.add.outer(np.diag(K), np.diag(K)) - 2 * K
    by_kernel = KernelPCA(5, kernel=kernel).fit(X)
    by_distance = ClassicalMDS(5, dissimilarity="precomputed").fit(np.sqrt(np.maximum(squares, 0)))
    gap = float(np.abs(by_distance.embedding_ - by_kernel.transform(X)).max())
    return [
        Finding(
            "classical scaling of Euclidean distances is PCA",
            "the same eigenvalues, related vectors",
            f"coordinates agree to {linear:.0e}",
            checked(linear < ROUNDING),
            linear,
        ),
        Finding(
            "kernel PCA is scaling of kernel distances k(x, x) + k(y, y) - 2 k(x, y)",
            "dot products from distances alone",
            f"scores agree to {gap:.0e}",
            checked(gap < ROUNDING),
            gap,
        ),
    ]


def dimensions(size, out):
    X, digit = load_digits(return_X_y=True)
    means = np.array([X[digit == k].mean(axis=0) for k in range(10)])
    D = pairwise_distances(means, metric="manhattan")
    model = ClassicalMDS(2, dissimilarity="precomputed").fit(D)
    asked = {
        share: ClassicalMDS(share, metric="euclidean").fit(X[:300]) for share in (0.5, 0.9, 0.99)
    }
    counts = {share: model.embedding_.shape[1] for share, model in asked.items()}
    values = np.linalg.eigvalsh(np.cov(X[:300].T))[::-1] ** 2
    expected = {
        share: int(np.sum(np.cumsum(values) <= share * values.sum())) + 1 for share in counts
    }
    plt = plotting()
    figure, ax = plt.subplots(figsize=(4.5, 4), layout="constrained")
    for k, (x, y) in enumerate(model.embedding_):
        ax.text(x, y, str(k), ha="center", va="center", fontsize=14)
    reach = np.abs(model.embedding_).max() * 1.1
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", title="ten mean digits")
    figure.savefig(out / "yuille-map.png", dpi=100)
    plt.close(figure)
    return [
        Finding(
            "dimensions d with sum of l² up to d over the sum of all above a threshold",
            "the truncation condition",
            ", ".join(f"{share:g}: {count}" for share, count in counts.items()) + " of 64 columns",
            checked(counts == expected),
            counts,
        ),
        Finding(
            "a map from distances alone",
            "possible without features",
            f"ten mean digits, city-block distances: stress {model.stress_:.2f}",
            "measured",
            float(model.stress_),
        ),
    ]


EXPERIMENTS = [
    Experiment(
        "yuille-identities",
        "yuille",
        "PCA, kernel PCA and classical scaling are one",
        "The lecture's second display of the Gram matrix drops 1/(2N) on its first term; the "
        "first is right. Its axes are not normalized: alpha is scaled to 1/sqrt(N λ) here.",
        identities,
        data=False,
    ),
    Experiment(
        "yuille-dimensions", "yuille", "How many dimensions, and a map", "", dimensions, data=False
    ),
]
