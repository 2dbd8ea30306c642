"""What landmarks and random features miss of the ten leading components, by their number.

python examples/basis_size.py --out pictures
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from mercer import KernelPCA
from mercer.bases import Landmarks, RandomFeatures
from mercer.selectors import Uniform

SIZES = (50, 100, 200, 400)
COMPONENTS = 10


def missed(model, exact, X) -> float:
    """Share of the variance of the exact scores that the approximate ones do not span."""
    Q = np.linalg.qr(model.transform(X))[0]
    S = exact.transform(X)
    return float(np.sum((S - Q @ (Q.T @ S)) ** 2) / np.sum(S**2))


def main(out: Path):
    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    X = load_digits().data
    exact = KernelPCA(COMPONENTS, kernel="rbf", gamma="median").fit(X)
    figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
    for name, recipe, style in (
        ("landmarks, default", Landmarks, "o-"),
        ("landmarks, uniform", lambda m: Landmarks(m, Uniform()), "s--"),
        ("random features", RandomFeatures, "^:"),
    ):
        errors = []
        for size in SIZES:
            model = KernelPCA(
                COMPONENTS, kernel="rbf", gamma=exact.gamma_, basis=recipe(size), random_state=0
            ).fit(X)
            errors.append(missed(model, exact, X))
        print(f"{name}: " + ", ".join(f"{m} {e:.1e}" for m, e in zip(SIZES, errors, strict=True)))
        ax.loglog(SIZES, errors, style, color="0.1", label=name)
    ax.set(xlabel="size of the basis", ylabel="variance missed")
    ax.set_xticks(SIZES, [str(m) for m in SIZES])
    ax.minorticks_off()
    ax.legend(frameon=False)
    figure.savefig(out / "basis-size.png", dpi=90)
    print(out / "basis-size.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    main(parser.parse_args().out)
