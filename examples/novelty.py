"""Novelty: what the components of a ring do not explain, over the plane.

python examples/novelty.py --out pictures
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot as plt

from mercer import NoveltyDetector


def main(out: Path):
    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 600)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.07, (600, 2))
    detector = NoveltyDetector(20, gamma=2.0, false_alarms=0.05, random_state=0).fit(ring)
    angle = rng.uniform(0, 2 * np.pi, 600)
    fresh = np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.07, (600, 2))
    alarms = np.mean(detector.predict(fresh) == -1)
    print(f"fresh normal rows called novel: {100 * alarms:.1f} %, asked for 5 %")
    side = np.linspace(-1.7, 1.7, 120)
    plane = np.column_stack([axis.ravel() for axis in np.meshgrid(side, side)])
    height = detector.decision_function(plane).reshape(len(side), -1)
    figure, ax = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
    ax.contourf(side, side, height, levels=12, cmap="Greys_r")
    ax.contour(side, side, height, levels=[0], colors="tab:orange", linewidths=2)
    ax.scatter(ring[:, 0], ring[:, 1], s=4, color="tab:blue")
    ax.set(title="within the line: normal", xticks=[], yticks=[], aspect="equal")
    figure.savefig(out / "novelty.png", dpi=90)
    print(out / "novelty.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    main(parser.parse_args().out)
