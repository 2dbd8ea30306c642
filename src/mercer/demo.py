"""The demonstration behind ``make demo``: digits, exactly and with landmarks, against scikit-learn.

Run as ``python -m mercer.demo FOLDER``; leaves a picture and a report there.
"""

import sys
import time
from html import escape
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA as PeerKernelPCA

from . import KernelPCA, plan

COMPONENTS = 16


def main(folder: str) -> None:
    """Fit, compare, draw, and say where the results are."""
    matplotlib.use("Agg")
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    X, digit = load_digits(return_X_y=True)
    exact, seconds = timed(KernelPCA(COMPONENTS, kernel="rbf", gamma="median"), X)
    few, few_seconds = timed(
        KernelPCA(COMPONENTS, kernel="rbf", gamma=exact.gamma_, basis="landmarks", random_state=0),
        X,
    )
    peer, peer_seconds = timed(PeerKernelPCA(COMPONENTS, kernel="rbf", gamma=exact.gamma_), X)
    lines = [
        f"{X.shape[0]} digits of {X.shape[1]} pixels, {COMPONENTS} components, "
        f"gamma = {exact.gamma_:.3g} from the median distance",
        f"exact: {seconds:.2f} s; scikit-learn: {peer_seconds:.2f} s; largest relative "
        f"difference of an eigenvalue: {difference(exact, peer):.1e}",
        f"{len(few.landmarks_)} landmarks: {few_seconds:.2f} s; largest relative difference of "
        f"an eigenvalue: {difference(few, exact):.1e}",
    ]
    picture, report = out / "digits.png", out / "report.html"
    draw(exact, few, X, digit, picture)
    write_report(report, lines, exact, few, X, picture.name)
    print("\n".join(lines))
    print(exact.certificate_)
    print(f"picture: {picture}\nreport:  {report}")


def timed(model, X):
    """A fitted model and the seconds it took."""
    start = time.perf_counter()
    model.fit(X)
    return model, time.perf_counter() - start


def difference(model, reference) -> float:
    """Largest relative difference of the eigenvalues."""
    return float(np.max(np.abs(model.eigenvalues_ / reference.eigenvalues_ - 1)))


def draw(exact, few, X, digit, path: Path) -> None:
    """Scores and spectra of both models in one picture."""
    from matplotlib import pyplot as plt

    from . import plot

    figure, axes = plt.subplots(2, 2, figsize=(11, 9), layout="constrained")
    for row, (model, title) in enumerate([(exact, "exact"), (few, "landmarks")]):
        plot.scores(model.transform(X), digit, ax=axes[row, 0]).set_title(title)
        plot.spectrum(model, ax=axes[row, 1])
    figure.savefig(path, dpi=130)
    plt.close(figure)


def write_report(path: Path, lines, exact, few, X, picture: str) -> None:
    """One page: what was done, what it would cost elsewhere, how sure the result is."""
    parts = "".join(f"<p>{escape(line)}</p>" for line in lines)
    costs = plan((100_000, X.shape[1]), COMPONENTS, memory="2GB")
    path.write_text(
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>mercer demo</title>"
        "<style>body{font:16px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
        "td,th{padding:.2em .8em .2em 0}img{max-width:100%}caption{text-align:left}</style>"
        f"<h1>Kernel PCA of the digits</h1>{parts}"
        f"<h2>Exact</h2>{exact.plan_._repr_html_()}{exact.certificate_._repr_html_()}"
        f"<h2>Landmarks</h2>{few.certificate_._repr_html_()}"
        f"<h2>The same for 100,000 rows in 2 GB</h2>{costs._repr_html_()}"
        f"<h2>Picture</h2><img src='{escape(picture)}' alt='Scores and spectra'></html>",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "demo-output")
