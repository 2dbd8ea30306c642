"""The ten-minute start of the documentation as one script: fit, look, certify, come back, save.

    python examples/start.py --out pictures

Needs no data but what scikit-learn brings.
"""

import argparse
import tempfile
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits

import mercer
from mercer import KernelPCA, plot
from mercer.bases import Landmarks

NOISE = 4.0  # standard deviation, for gray values from 0 to 16
SHOWN = 10


def scores(model, X, digit):
    """All digits by their first two components."""
    return plot.scores(model.transform(X), digit).figure


def spectra(exact, few):
    """Eigenvalues of both models in the intervals that hold the true ones."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for ax, model, title in zip(axes, (exact, few), ("exact", "200 landmarks"), strict=True):
        plot.spectrum(model, ax=ax).set_title(title)
    return figure


def denoised(X, digit):
    """Digits that the fit has not seen, with noise and without."""
    half = len(X) // 2
    new = [half + int(np.flatnonzero(digit[half:] == k)[0]) for k in range(SHOWN)]
    noisy = X[new] + np.random.default_rng(0).normal(0, NOISE, (SHOWN, X.shape[1]))
    model = KernelPCA(128, kernel="rbf", gamma=0.001).fit(X[:half])
    return plot.denoised(noisy, model.denoise(noisy), X[new], images=(8, 8)).figure


def saved_and_loaded(model):
    """The model as another program would open it."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "digits.mercer")
        return mercer.load(Path(folder) / "digits.mercer")


def main(out: Path):
    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    X, digit = load_digits(return_X_y=True)
    exact = KernelPCA(16, kernel="rbf", gamma="median").fit(X)
    print(exact.certificate_)
    basis = Landmarks(200)
    few = KernelPCA(16, kernel="rbf", gamma="median", basis=basis, random_state=0).fit(X)
    print(few.certificate_)
    apart = np.abs(saved_and_loaded(few).transform(X) - few.transform(X)).max()
    print(f"after save and load: {apart:.1e} apart")
    pictures = {
        "start-scores": scores(exact, X, digit),
        "start-spectra": spectra(exact, few),
        "start-denoised": denoised(X, digit),
    }
    for name, figure in pictures.items():
        figure.savefig(out / f"{name}.png", dpi=90)
        print(out / f"{name}.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    main(parser.parse_args().out)
