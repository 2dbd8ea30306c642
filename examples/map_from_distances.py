"""A map of the ten digits from nothing but the distances between them.

    python examples/map_from_distances.py --out pictures

Manhattan distances have no exact picture in any number of dimensions; the summary says how much
of them two dimensions show.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances

from mercer import ClassicalMDS


def main(out: Path):
    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    X, digit = load_digits(return_X_y=True)
    means = np.array([X[digit == k].mean(axis=0) for k in range(10)])
    D = pairwise_distances(means, metric="manhattan")
    model = ClassicalMDS(2, dissimilarity="precomputed").fit(D)
    print(model.summary())
    some = np.random.default_rng(0).choice(len(X), 300, replace=False)
    placed = model.transform(pairwise_distances(X[some], means, metric="manhattan"))
    figure, ax = plt.subplots(figsize=(5.5, 4.5), layout="constrained")
    for k in range(10):
        own = placed[digit[some] == k]
        ax.scatter(own[:, 0], own[:, 1], s=25, marker=f"${k}$", color="0.65", linewidths=0.3)
        x, y = model.embedding_[k]
        ax.text(x, y, str(k), fontsize=20, weight="bold", ha="center", va="center")
    ax.set(xlabel="dimension 1", ylabel="dimension 2", aspect="equal")
    ax.set_title("mean digits, and 300 digits placed afterwards", fontsize="medium")
    figure.savefig(out / "map.png", dpi=90)
    print(out / "map.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    main(parser.parse_args().out)
