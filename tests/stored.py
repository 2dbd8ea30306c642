"""Model files that stay: one for every way to fit, of each version whose format was new.

``python tests/stored.py`` writes those that are missing, of the version at hand, to
``tests/models/FORMAT``, with the results that they gave. Files that were
released are never written again: `test_stored_models.py` shows that every later version opens them.
"""

from pathlib import Path

import numpy as np

from mercer import (
    ClassicalMDS,
    DiffusionMap,
    HebbianKernelPCA,
    Isomap,
    KernelCCA,
    KernelPCA,
    KernelPCASearch,
    NoveltyDetector,
    Nystroem,
    PatchDenoiser,
    ProcessMonitor,
    SpectralClustering,
    SpectralEmbedding,
    StreamingKernelPCA,
    SupervisedKernelPCA,
)
from mercer.bases import FourierGrid, Landmarks, RandomFeatures
from mercer.saving import FORMAT_VERSION

FOLDER = Path(__file__).parent / "models"
X = np.random.default_rng(7).random((24, 3)).round(3)
NEW = np.random.default_rng(8).random((5, 3)).round(3)
IMAGE = np.random.default_rng(9).random((12, 12)).round(3)
METHODS = ("transform", "predict", "decision_function", "reconstruction_error", "inverse_transform")

WAYS = {
    "points": lambda: KernelPCA(3, kernel="rbf", random_state=0).fit(X),
    "columns": lambda: KernelPCA(2, kernel="linear").fit(X),
    "learned-inverse": lambda: KernelPCA(2, kernel="poly", fit_inverse_transform=True).fit(X),
    "precomputed": lambda: KernelPCA(2, kernel="precomputed").fit(X @ X.T),
    "landmarks": lambda: KernelPCA(3, kernel="matern", basis=Landmarks(8), random_state=0).fit(X),
    "features": lambda: KernelPCA(2, kernel="rbf", basis=RandomFeatures(16), random_state=0).fit(X),
    "fourier": lambda: KernelPCA(
        2, kernel="rbf", gamma=0.5, basis=FourierGrid(tol=1e-4, margin=0.5), random_state=0
    ).fit(X[:, :2]),
    "hebbian": lambda: HebbianKernelPCA(2, kernel="rbf", n_passes=2, random_state=0).fit(X),
    "hebbian-stream": lambda: HebbianKernelPCA(2, kernel="rbf", budget=12).partial_fit(X),
    "stream": lambda: StreamingKernelPCA(2, kernel="rbf", budget=12, forgetting=0.9).fit(X),
    "supervised": lambda: SupervisedKernelPCA(
        2, kernel="rbf", basis=Landmarks(8), target="rbf", random_state=0
    ).fit(X, X[:, 0]),
    "correlations": lambda: KernelCCA(2, kernel="rbf", basis=Landmarks(8), random_state=0).fit(
        X, X[:, :2] ** 2
    ),
    "mds": lambda: ClassicalMDS(2).fit(X),
    "mds-of-a-metric": lambda: ClassicalMDS(2, metric="cityblock", random_state=0).fit(X),
    "clusters": lambda: SpectralClustering(2, gamma=2.0, random_state=0).fit(X),
    "embedding": lambda: SpectralEmbedding(2, n_neighbors=6, random_state=0).fit(X),
    "diffusion": lambda: DiffusionMap(2, random_state=0).fit(X),
    "isomap": lambda: Isomap(2, random_state=0).fit(X),
    "novelty": lambda: NoveltyDetector(3, random_state=0).fit(X),
    "monitor": lambda: ProcessMonitor(3, lags=1, smoothing=(1, 2), false_alarms=0.2).fit(X),
    "nystroem": lambda: Nystroem(n_components=6, gamma=1.0, random_state=0).fit(X),
    "search": lambda: KernelPCASearch(
        widths=(1.0,), n_components=[2], noise=0.8, random_state=0
    ).fit(X),
    "patches": lambda: PatchDenoiser(n_components=2, patch_size=3, random_state=0).fit(IMAGE),
}


def results(name, model) -> dict[str, np.ndarray]:
    """What a model gives for rows it has not seen, by method."""
    if name == "patches":
        return {"denoise": np.asarray(model.denoise(IMAGE))}
    rows = {"precomputed": NEW @ X.T, "fourier": NEW[:, :2]}.get(name, NEW)
    found = {}
    for method in METHODS:
        if method == "inverse_transform" or not hasattr(model, method):
            continue
        if method == "reconstruction_error" and name == "precomputed":
            continue
        found[method] = np.asarray(getattr(model, method)(rows))
    if hasattr(model, "inverse_transform") and name != "precomputed":
        found["inverse_transform"] = np.asarray(model.inverse_transform(found["transform"]))
    return found


def main():
    folder = FOLDER / str(FORMAT_VERSION)
    folder.mkdir(parents=True, exist_ok=True)
    for name, fit in WAYS.items():
        if (folder / f"{name}.mercer").exists():
            continue
        model = fit()
        model.save(folder / f"{name}.mercer")
        np.savez_compressed(folder / f"{name}.npz", **results(name, model))


if __name__ == "__main__":
    main()
