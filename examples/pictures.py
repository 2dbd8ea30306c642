"""The pictures of docs/plots.md, one a function of mercer.plot.

    python examples/pictures.py --out docs/images

Needs no data but what scikit-learn brings; takes a few seconds.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits

from mercer import HebbianKernelPCA, KernelPCA, plot
from mercer.bases import Landmarks
from mercer.datasets import make_three_clusters

# Digits shown in one picture, pixels of one side, and the noise added to them.
SHOWN, SIDE, NOISE = 10, 8, 4.0


def contours():
    """Figure 1 of Shi, Guo & Xue: three components over three clusters."""
    X = make_three_clusters(rng=0).data
    model = KernelPCA(3, kernel="rbf", gamma=10.0).fit(X)
    return plot.contours(model, X)[0].figure


def scores(X, digit):
    """Four of the digits by two components."""
    few = digit < 4
    S = KernelPCA(2, kernel="rbf", gamma="median").fit_transform(X[few])
    return plot.scores(S, digit[few]).figure


def spectrum(X):
    """Eigenvalues from 60 landmarks: the intervals are wide enough to see."""
    basis = Landmarks(size=60)
    model = KernelPCA(12, kernel="rbf", gamma="median", basis=basis, random_state=0).fit(X)
    return plot.spectrum(model).figure


def landmarks(X):
    """Where 40 landmarks lie among the digits."""
    basis = Landmarks(size=40)
    model = KernelPCA(2, kernel="rbf", gamma="median", basis=basis, random_state=0).fit(X)
    return plot.landmarks(model, X).figure


def convergence(X):
    """Excess error by pass of the rules of Schraudolph, Guenter & Vishwanathan and of our own."""
    histories = {}
    for gain in ("constant", "t", "et", "smd", "auto"):
        model = HebbianKernelPCA(8, kernel="rbf", gamma="median", gain=gain, random_state=0)
        histories[gain] = model.set_params(track_excess=True).fit(X).history_
    return plot.convergence(histories).figure


def preimages(X):
    """What the first component of the digits means."""
    model = KernelPCA(8, kernel="rbf", gamma="median").fit(X)
    return plot.preimages(model, images=(SIDE, SIDE)).figure


def denoised(X, digit):
    """Noise taken from digits that the fit has not seen."""
    rng = np.random.default_rng(0)
    last = len(X) // 2
    new = [last + int(np.flatnonzero(digit[last:] == k)[0]) for k in range(SHOWN)]
    noisy = X[new] + rng.normal(0, NOISE, (SHOWN, X.shape[1]))
    model = KernelPCA(128, kernel="rbf", gamma=0.001).fit(X[:last])
    return plot.denoised(noisy, model.denoise(noisy), X[new], images=(SIDE, SIDE)).figure


def main(out: Path):
    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    X, digit = load_digits(return_X_y=True)
    pictures = {
        "plot-contours": contours(),
        "plot-scores": scores(X, digit),
        "plot-spectrum": spectrum(X),
        "plot-landmarks": landmarks(X),
        "plot-convergence": convergence(X),
        "plot-preimages": preimages(X),
        "plot-denoised": denoised(X, digit),
    }
    for name, figure in pictures.items():
        figure.savefig(out / f"{name}.png", dpi=90)
        print(out / f"{name}.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    main(parser.parse_args().out)
