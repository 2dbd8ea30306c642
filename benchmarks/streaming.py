"""Kernel PCA of a stream: time and error of StreamingKernelPCA against what else there is.

    python benchmarks/streaming.py --out benchmarks/results
    python benchmarks/streaming.py --batch 256 1000

All contenders see the same rows in the same batches, with the same Gaussian kernel (width the
median distance of the first batch), m points or features and r components:

- scikit-learn's IncrementalPCA on its Nystroem features (m rows of the first batch),
- HebbianKernelPCA.partial_fit with the same budget,
- StreamingKernelPCA with a dictionary, which makes its components at the end, and the same with
  components made after every batch, as the others make them; with the same rows as Nystroem; with
  random features.

Error is the mean squared distance in feature space of later rows to their reconstructions, as
the excess over that of StreamingKernelPCA with the dictionary: negative is better. Random
features have a space of their own, whose errors do not compare. Times are ratios to
IncrementalPCA in the same run, of the wall clock and of the processor: the second stands also
where the machine is busy, best with OPENBLAS_NUM_THREADS=1, since waiting threads count as work.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from _harness import OtherWork, machine, print_table, write_json
from _papers import papers_data
from sklearn.decomposition import IncrementalPCA
from sklearn.kernel_approximation import Nystroem

from mercer import HebbianKernelPCA, StreamingKernelPCA
from mercer.bases import Landmarks
from mercer.kernels import RBF

DATA = {
    "digits": lambda: papers_data.load_usps().data,
    "covtype": lambda: papers_data.load_covtype().data,
    "drift": lambda: drifting(60_000),
}


def drifting(n: int):
    """Rows on a curve that moves: dimension 20, the directions turn as time goes by."""
    rng = np.random.default_rng(0)
    t, time_ = rng.uniform(0, 6, n), np.linspace(0, 1, n)
    angles = t[:, None] * np.arange(1, 6) + 2 * time_[:, None]
    latent = np.hstack([np.cos(angles), np.sin(angles)])
    return latent @ rng.standard_normal((10, 20)) + 0.1 * rng.standard_normal((n, 20))


class IncrementalNystroem:
    """scikit-learn's way: an explicit map from rows of the first batch, then incremental PCA."""

    def __init__(self, m, r, gamma, seed):
        self.map = Nystroem(kernel="rbf", gamma=gamma, n_components=m, random_state=seed)
        self.pca = IncrementalPCA(r)

    def partial_fit(self, X):
        if not hasattr(self.map, "components_"):
            self.map.fit(X)
        self.pca.partial_fit(self.map.transform(X))

    def reconstruction_error(self, X):
        Y = self.map.transform(X)
        back = self.pca.inverse_transform(self.pca.transform(Y))
        return 1 - np.sum(Y**2, axis=1) + np.sum((Y - back) ** 2, axis=1)


class EveryBatch:
    """A stream that is asked for its components after every batch."""

    def __init__(self, model):
        self.model = model

    def partial_fit(self, X):
        self.model.partial_fit(X).eigenvalues_  # noqa: B018

    def reconstruction_error(self, X):
        return self.model.reconstruction_error(X)


def contenders(first, m, r, gamma, seed):
    """Fresh models by name."""
    common = {"kernel": "rbf", "gamma": gamma, "random_state": seed}
    peer = IncrementalNystroem(m, r, gamma, seed)
    same = Nystroem(kernel="rbf", gamma=gamma, n_components=m, random_state=seed).fit(first)
    return {
        "IncrementalPCA on Nystroem": peer,
        "Hebbian": HebbianKernelPCA(r, budget=m, novelty=0.001, **common),
        "dictionary": StreamingKernelPCA(r, budget=m, **common),
        "dictionary, every batch": EveryBatch(StreamingKernelPCA(r, budget=m, **common)),
        "same landmarks": StreamingKernelPCA(r, basis=Landmarks(points=same.components_), **common),
        "random features": StreamingKernelPCA(r, basis="features", budget=m, **common),
    }


def race(X, batch, m, r, seed, hebbian_rows):
    """Seconds and error of every contender on all rows but the last thousand."""
    X, later = X[:-1000], X[-1000:]
    gamma = float(RBF(gamma="median").resolve(X[:batch]).gamma)
    results = {}
    for name, model in contenders(X[:batch], m, r, gamma, seed).items():
        stream = X[:hebbian_rows] if name == "Hebbian" else X
        start, busy, others = time.perf_counter(), time.process_time(), OtherWork()
        for i in range(0, len(stream), batch):
            model.partial_fit(stream[i : i + batch])
        results[name] = {
            "seconds": time.perf_counter() - start,
            "processor": time.process_time() - busy,
            "rows": len(stream),
            "others": others.cores(),
        }
        if name != "random features":
            results[name]["error"] = float(np.mean(model.reconstruction_error(later)))
        if isinstance(model, StreamingKernelPCA):
            low, high = model.certificate_.captured_variance
            size = len(getattr(model, "landmarks_", [])) or m
            results[name] |= {"size": size, "lost": model.lost_share_, "captured": [low, high]}
    return results


def table_rows(results):
    peer, ours = results["IncrementalPCA on Nystroem"], results["dictionary"]
    for name, result in results.items():
        scale = peer["rows"] / result["rows"]
        captured = result.get("captured")
        yield [
            name,
            *(f"{scale * result[key] / peer[key]:.2f}" for key in ("seconds", "processor")),
            f"{result['rows'] / result['processor']:,.0f}",
            str(result.get("size", "")),
            f"{result['error']:.4f}" if "error" in result else "",
            f"{result['error'] / ours['error'] - 1:+.2%}" if "error" in result else "",
            f"{result['lost']:.2%}" if "lost" in result else "",
            f"{captured[0]:.1%} to {captured[1]:.1%}" if captured else "",
        ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", nargs="*", choices=list(DATA), default=list(DATA))
    parser.add_argument("--rows", type=int, default=60_000, help="most rows of a data set")
    parser.add_argument("--batch", nargs="+", type=int, default=[256, 1000])
    parser.add_argument("--budget", type=int, default=500)
    parser.add_argument("--components", type=int, default=10)
    parser.add_argument("--hebbian-rows", type=int, default=10_000, help="it is slow: rows it gets")
    parser.add_argument("--out", type=Path, help="folder for streaming.json")
    options = parser.parse_args()
    done = {}
    for name, batch in ((name, batch) for name in options.data for batch in options.batch):
        X = np.asarray(DATA[name](), dtype=float)
        if name != "drift":
            X = X[np.random.default_rng(0).permutation(len(X))]
        X = X[: options.rows]
        found = race(X, batch, options.budget, options.components, 0, options.hebbian_rows)
        done.setdefault(name, {})[batch] = found
        print_table(
            f"{name}: {len(X):,} x {X.shape[1]}, batches of {batch}, m = {options.budget}",
            [
                "",
                "time a row",
                "processor",
                "rows/s",
                "points",
                "error",
                "excess",
                "lost",
                "captured variance",
            ],
            table_rows(found),
        )
    if options.out:
        write_json(options.out / "streaming.json", {"machine": machine(), "results": done})


if __name__ == "__main__":
    main()
