"""Maps of the same rows by PCA, kernel PCA, t-SNE and UMAP: pictures, times, what they keep.

    pip install umap-learn
    python benchmarks/embeddings.py --out docs/images [--large]

Data are generated or come with scikit-learn; with ``--large`` they are 10,000 digits of MNIST,
looked for in MERCER_DATA. Seconds are of processor time, summed over threads, so that other work on
the machine does not count. Every method runs once on a few rows before it is timed, since two of
them compile first.
"""

import argparse
import time
from pathlib import Path

import matplotlib
import numpy as np
from _papers import papers_data
from matplotlib import pyplot as plt
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.datasets import load_digits, make_blobs, make_circles, make_swiss_roll
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.manifold import TSNE, trustworthiness
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from mercer import KernelPCA, plot

NEIGHBORS = 10
SAMPLE = 1500  # rows for measures that look at all pairs


def methods(gamma):
    """Makers of two-dimensional maps at their defaults; kernel PCA needs a width."""
    from umap import UMAP

    return {
        "PCA": lambda: PCA(2),
        "kernel PCA": lambda: KernelPCA(2, kernel="rbf", gamma=gamma, tol=1e-6),
        "t-SNE": lambda: TSNE(2, random_state=0),
        "UMAP": lambda: UMAP(n_components=2, random_state=0, n_jobs=1),
    }


def data_sets():
    """Rows, groups or positions to color by, and the width of the kernel."""
    digits = load_digits(return_X_y=True)
    rings = make_circles(1500, factor=0.35, noise=0.06, random_state=0)
    roll = make_swiss_roll(1500, noise=0.3, random_state=0)
    blobs = make_blobs([700, 700, 100], 10, cluster_std=[0.5, 3.0, 0.5], random_state=3)
    return {
        "digits": (*digits, "median"),
        "two rings": (*rings, 4.0),
        "a rolled sheet": (*roll, 0.01),
        "three clusters, one wide": (*blobs, "median"),
    }


def mapped(make, X):
    """The map and the seconds of processor time that it took."""
    make().fit_transform(X[:200])
    start = time.process_time()
    S = make().fit_transform(X)
    return S, time.process_time() - start


def measures(X, S, groups):
    """Neighbors kept, order of distances kept, and groups found by the nearest neighbor."""
    some = np.random.default_rng(0).choice(len(X), min(len(X), SAMPLE), replace=False)
    found = {
        "neighbors": trustworthiness(X[some], S[some], n_neighbors=NEIGHBORS),
        "distances": spearmanr(pdist(X[some]), pdist(S[some])).statistic,
    }
    if np.unique(groups).size < 20:
        nearest = KNeighborsClassifier(NEIGHBORS)
        found["groups"] = cross_val_score(nearest, S, groups, cv=5).mean()
    return found


def draw(ax, S, groups):
    """Groups by color, positions by shade."""
    if np.unique(groups).size < 20:
        plot.scores(S, groups, ax=ax).get_legend().remove()
    else:
        ax.scatter(*S.T, c=groups, s=8, cmap="viridis", linewidths=0)
    ax.set(xlabel="", ylabel="", xticks=[], yticks=[])


def as_features(X, groups):
    """Errors of a linear classifier on components of half of the rows, the other half being new."""
    from umap import UMAP

    half = np.random.default_rng(0).permutation(len(X)) < len(X) // 2
    for name, model in (
        ("PCA, 40", PCA(40)),
        ("kernel PCA, 300", KernelPCA(300, kernel="rbf", gamma=0.1 / 256, tol=1e-6)),
        ("UMAP, 10", UMAP(n_components=10, random_state=0, n_jobs=1)),
        ("UMAP, 40", UMAP(n_components=40, random_state=0, n_jobs=1)),
    ):
        linear = LinearDiscriminantAnalysis().fit(model.fit_transform(X[half]), groups[half])
        errors = 1 - linear.score(model.transform(X[~half]), groups[~half])
        print(f"{name:16} {100 * errors:.1f} % errors")


def report(name, method, seconds, found):
    """One line of the table."""
    numbers = "  ".join(f"{key} {value:.3f}" for key, value in found.items())
    print(f"{name:26} {method:12} {seconds:7.2f} s  {numbers}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    parser.add_argument("--large", action="store_true", help="10,000 digits of MNIST alone")
    options = parser.parse_args()
    matplotlib.use("Agg")
    options.out.mkdir(parents=True, exist_ok=True)
    if options.large:
        large()
    else:
        small(options.out)


def small(out):
    """Pictures, times and measures of four small sets, and components as features."""
    sets = data_sets()
    figure, axes = plt.subplots(len(sets), 4, figsize=(11, 11), layout="constrained")
    for line, (name, (X, groups, gamma)) in zip(axes, sets.items(), strict=True):
        for ax, (method, make) in zip(line, methods(gamma).items(), strict=True):
            S, seconds = mapped(make, X)
            report(name, method, seconds, measures(X, S, groups))
            draw(ax, S, groups)
            ax.set_title(f"{method}, {seconds:.2f} s", fontsize="medium")
        line[0].set_ylabel(name)
    figure.savefig(out / "compare-maps.png", dpi=90)
    print(out / "compare-maps.png")
    as_features(*load_digits(return_X_y=True))


def large():
    """Times and measures of 10,000 digits of MNIST."""
    mnist = papers_data.load_mnist()
    X, groups = mnist.data[:10_000].astype(float), mnist.target[:10_000]
    for method, make in methods("median").items():
        S, seconds = mapped(make, X)
        report("10,000 digits of MNIST", method, seconds, measures(X, S, groups))


if __name__ == "__main__":
    main()
