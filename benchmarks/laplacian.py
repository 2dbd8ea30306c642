"""Spectral embeddings and diffusion maps against scikit-learn's and pydiffmap's: time, difference.

    python benchmarks/laplacian.py [--rows 2000 5000]

Swiss rolls, two coordinates. Seconds are of processor time; the difference is that of coordinates
up to sign, as a share of the largest one. pydiffmap, where it is installed, has other
scales: the correlations of coordinates are given.
"""

import argparse
import time
import warnings
from importlib.util import find_spec

import numpy as np
from sklearn.datasets import make_swiss_roll
from sklearn.manifold import SpectralEmbedding as Theirs

from mercer import DiffusionMap, SpectralEmbedding
from mercer.bases import Landmarks

GAMMA, NEIGHBORS, LANDMARKS = 0.05, 12, 300


def timed(model, X):
    """Its coordinates and processor seconds; a small run has compiled before."""
    start = time.process_time()
    return model.fit_transform(X), time.process_time() - start


def difference(Y, Z):
    """Largest difference of coordinates, signs aside, as a share of the largest coordinate."""
    signs = np.sign(np.sum(Y * Z, axis=0))
    return np.abs(Y * signs - Z).max() / np.abs(Z).max()


def cases():
    """Ours and theirs, by name."""
    rbf = {"affinity": "rbf", "gamma": GAMMA, "random_state": 0}
    near = {"n_neighbors": NEIGHBORS, "random_state": 0}
    ours = SpectralEmbedding(2, basis=Landmarks(LANDMARKS), **rbf)
    return {
        "rbf": (SpectralEmbedding(2, **rbf), Theirs(2, **rbf)),
        f"rbf, {LANDMARKS} landmarks": (ours, Theirs(2, **rbf)),
        f"{NEIGHBORS} neighbors": (SpectralEmbedding(2, **near), Theirs(2, **near)),
    }


def against_pydiffmap(X):
    """Correlations of the coordinates and both times, at alpha 1/2 with all neighbors."""
    from pydiffmap.diffusion_map import DiffusionMap as Walk

    walk = Walk.from_sklearn(n_evecs=2, alpha=0.5, k=len(X), epsilon=1 / (4 * GAMMA))
    Z, theirs = timed(walk, X)
    model = DiffusionMap(2, density_power=0.5, gamma=GAMMA, random_state=0)
    Y, ours = timed(model, X)
    same = [abs(np.corrcoef(Y[:, i], Z[:, i])[0, 1]) for i in range(2)]
    print(f"  pydiffmap: {theirs:.2f} s, mercer {ours:.2f} s, correlations {np.round(same, 3)}")


def main():
    """Print a line for each case."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 5000])
    SpectralEmbedding(2, affinity="rbf").fit(make_swiss_roll(100, random_state=0)[0])
    for n in parser.parse_args().rows:
        X = make_swiss_roll(n, noise=0.3, random_state=0)[0]
        print(f"{n} rows of a swiss roll")
        for name, (ours, theirs) in cases().items():
            Y, mine = timed(ours, X)
            Z, other = timed(theirs, X)
            print(f"  {name:20s} scikit-learn {other:.2f} s, mercer {mine:.2f} s, ", end="")
            print(f"difference {difference(Y, Z):.0e}")
        if find_spec("pydiffmap") is not None and n <= 2000:
            against_pydiffmap(X)


if __name__ == "__main__":
    main()
