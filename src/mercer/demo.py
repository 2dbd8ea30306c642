"""The demonstration behind `mercer demo` and ``make demo``: digits, exactly and with landmarks.

It writes a picture, a report, a model, and the files that the examples of all commands use.
``python -m mercer.demo FOLDER`` replaces the files of an earlier run.
"""

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

COMPONENTS = 16
# Standard deviation of the noise on the photograph, in gray levels.
NOISE = 25

FILES = {
    "picture": "digits.png",
    "report": "report.html",
    "table": "digits.csv",
    "model": "digits.mercer",
    "scores": "scores.csv",
    "distances": "distances.csv",
    "photograph": "noisy.png",
    "plant": "plant.csv",
    "fault": "fault.csv",
}


def demo(args: Namespace) -> Any:
    """``mercer demo``: fit, compare, draw, and say where the results are."""
    from .cli.outputs import Result, whole_folder

    with whole_folder(args.folder, args.force) as draft:
        said, files = demonstrate(draft)
    paths = {name: str(args.folder / file) for name, file in files.items()}
    text = [
        *said,
        f"to try commands on: {', '.join(sorted(paths.values()))}",
        f"picture: {paths['picture']}",
        f"report:  {paths['report']}",
    ]
    return Result({"summary": said, "files": paths}, "\n".join(text))


def demonstrate(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Fit, compare and draw, with all files in a folder.

    Returns
    -------
    said : list of str
        What was found, in lines.
    files : dict of str to str
        What each file is, and its name.
    """
    from sklearn.datasets import load_digits
    from sklearn.decomposition import KernelPCA as PeerKernelPCA

    from . import KernelPCA
    from .accel import timed

    X, digit = load_digits(return_X_y=True)
    rbf: dict[str, Any] = {"n_components": COMPONENTS, "kernel": "rbf"}
    exact, seconds = timed(KernelPCA(gamma="median", **rbf), X)
    few, few_seconds = timed(
        KernelPCA(gamma=exact.gamma_, basis="landmarks", random_state=0, **rbf), X
    )
    peer, peer_seconds = timed(PeerKernelPCA(gamma=exact.gamma_, **rbf), X)
    said = [
        f"{X.shape[0]} digits of {X.shape[1]} pixels, {COMPONENTS} components, "
        f"gamma = {exact.gamma_:.3g} from the median distance",
        f"exact: {seconds:.2f} s; scikit-learn: {peer_seconds:.2f} s; largest relative "
        f"difference of an eigenvalue: {difference(exact, peer):.1e}",
        f"{len(few.landmarks_)} landmarks: {few_seconds:.2f} s; largest relative difference of "
        f"an eigenvalue: {difference(few, exact):.1e}",
        str(exact.certificate_),
    ]
    draw(exact, few, X, digit, folder / FILES["picture"])
    write_files(exact, X, digit, folder)
    return said, FILES


def difference(model, reference) -> float:
    """Largest relative difference of the eigenvalues."""
    return float(np.max(np.abs(model.eigenvalues_ / reference.eigenvalues_ - 1)))


def draw(exact, few, X, digit, path: Path) -> None:
    """Scores and spectra of both models in one picture."""
    from matplotlib.figure import Figure

    from . import plot

    figure = Figure(figsize=(11, 9), layout="constrained")
    axes = figure.subplots(2, 2)
    for row, (model, title) in enumerate([(exact, "exact"), (few, "landmarks")]):
        plot.scores(model.transform(X), digit, ax=axes[row, 0]).set_title(title)
        plot.spectrum(model, ax=axes[row, 1])
    figure.savefig(path, dpi=130)


def write_files(model, X, digit, folder: Path) -> None:
    """The report, the model, and the tables and the image that examples start from."""
    from PIL import Image
    from sklearn.datasets import load_sample_image
    from sklearn.metrics import pairwise_distances

    from .cli.models import TableModel, component_names
    from .cli.outputs import as_columns, write_columns
    from .datasets import make_plant
    from .report import write_report

    pixels = [f"pixel{i}" for i in range(X.shape[1])]
    look = {"color": digit, "color_name": "digit", "images": (8, 8)}
    title = "Kernel PCA of the digits"
    write_report(model, X, folder / FILES["report"], columns=pixels, title=title, **look)
    TableModel(model, pixels).save(folder / FILES["model"])
    write_columns(folder / FILES["table"], as_columns(X, pixels) | {"digit": digit})
    scores = as_columns(model.transform(X), component_names(model))
    write_columns(folder / FILES["scores"], scores)
    # Distances between the ten mean digits, by name.
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    D = pairwise_distances(np.array([X[digit == k].mean(axis=0) for k in range(10)]))
    named = {"digit": np.array(names)} | as_columns(D, names)
    write_columns(folder / FILES["distances"], named)
    # A plant in normal operation, and with a sensor that drifts.
    for name, fault, n in (("plant", None, 800), ("fault", "drift", 300)):
        run = make_plant(n, n, plant=1, fault=fault, memory=0.7)
        sensors = [f"sensor{j}" for j in range(run.data.shape[1])]
        write_columns(folder / FILES[name], as_columns(run.data, sensors))
    # A piece of a photograph, in gray, with noise.
    clean = load_sample_image("china.jpg")[80:208, 200:360].mean(axis=2)
    noisy = clean + NOISE * np.random.default_rng(0).standard_normal(clean.shape)
    gray = np.rint(np.clip(noisy, 0, 255)).astype(np.uint8)
    Image.fromarray(gray).save(folder / FILES["photograph"])


if __name__ == "__main__":
    from mercer.cli import main

    sys.exit(main(["demo", *sys.argv[1:], "--force"]))
