"""The width of the kernel and the number of components, chosen by how well rows come back.

python examples/choose_width.py --out pictures
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits

from mercer import KernelPCASearch, plot

NOISE = 3.0  # standard deviation, for gray values from 0 to 16


def main(out: Path):
    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    X = load_digits().data
    search = KernelPCASearch(noise=NOISE, random_state=0).fit(X[:600])
    print(f"chosen: {search.best_params_}")
    rng = np.random.default_rng(1)
    fresh = X[600:1200]
    noisy = fresh + rng.normal(0, NOISE, fresh.shape)
    left = np.mean((search.denoise(noisy) - fresh) ** 2) / NOISE**2
    print(f"noise left in rows that the search has not seen: {100 * left:.0f} % of its energy")
    figure = plot.selection(search).figure
    figure.savefig(out / "choose-width.png", dpi=90)
    print(out / "choose-width.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    main(parser.parse_args().out)
