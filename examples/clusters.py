"""Two moons: k-means cuts them, spectral clustering follows them, and new points join.

python examples/clusters.py --out pictures
"""

import argparse
from pathlib import Path

import matplotlib
from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from mercer import SpectralClustering


def main(out: Path):
    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    X, moon = make_moons(600, noise=0.07, random_state=0)
    new, new_moon = make_moons(600, noise=0.07, random_state=1)
    round_ones = KMeans(2, n_init=10, random_state=0).fit(X)
    model = SpectralClustering(n_clusters=2, gamma=20.0, random_state=0).fit(X)
    figure, axes = plt.subplots(1, 3, figsize=(10, 3), sharey=True, layout="constrained")
    for ax, points, labels, true, title in (
        (axes[0], X, round_ones.labels_, moon, "k-means"),
        (axes[1], X, model.labels_, moon, "spectral clustering"),
        (axes[2], new, model.predict(new), new_moon, "new points, predicted"),
    ):
        for k, (marker, color) in enumerate((("o", "0.15"), ("^", "tab:orange"))):
            own = points[labels == k]
            ax.scatter(own[:, 0], own[:, 1], s=9, marker=marker, color=color)
        score = adjusted_rand_score(true, labels)
        print(f"{title}: adjusted Rand index {score:.3f}")
        ax.set(title=f"{title}, ARI {score:.2f}", xticks=[], yticks=[], aspect="equal")
    figure.savefig(out / "clusters.png", dpi=90)
    print(out / "clusters.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    main(parser.parse_args().out)
