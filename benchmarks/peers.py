"""The field, measured: every library that does the same, in its own process, on the same data.

    python benchmarks/peers.py                      # all of it, about ten minutes on two cores
    python benchmarks/peers.py --sizes 500 2000 --limit 10
    python benchmarks/peers.py --python other/bin/python     # where further peers are installed
    python benchmarks/peers.py --report             # docs/results.md, figure and table again

Rows of covertype (generated ones where that cannot be found), columns scaled to unit variance,
Gaussian kernel of the mean distance, 16 components. Each run has an interpreter of its own, a limit
on time and one on memory; a peer that meets a limit is not asked for more rows: that is its wall.
Peers that are not installed are named with the reason. Error is the largest relative error of the
16 eigenvalues: up to 8,000 rows against ARPACK with tol=0 on the whole matrix, beyond that against
mercer's exact fit, whose own certificate stands in its place.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from _harness import OtherWork, machine, measure, write_json

RANK, CLUSTERS, LANDMARKS = 16, 7, 1000
SIZES = (500, 2000, 8000, 30_000, 100_000)
REFERENCE_ROWS = 8000
HERE = Path(__file__).parent
RESULTS = HERE / "peers.json"


def eigenvalues(values) -> dict:
    return {"values": sorted((float(x) for x in np.asarray(values).ravel()), reverse=True)[:RANK]}


def mercer_exact(gamma):
    from mercer import KernelPCA

    def fit(X):
        model = KernelPCA(RANK, kernel="rbf", gamma=gamma, random_state=0).fit(X)
        found = model.certificate_
        width = np.max(
            (found.eigenvalue_upper - found.eigenvalue_lower) / 2 / found.eigenvalue_upper
        )
        return eigenvalues(model.eigenvalues_) | {"certified": float(width)}

    return fit


def mercer_landmarks(gamma):
    from mercer import KernelPCA
    from mercer.bases import Landmarks

    def fit(X):
        basis = Landmarks(min(LANDMARKS, len(X)))
        model = KernelPCA(RANK, kernel="rbf", gamma=gamma, basis=basis, random_state=0).fit(X)
        return eigenvalues(model.eigenvalues_)

    return fit


def sklearn_solver(solver: str) -> Callable:
    def make(gamma):
        from sklearn.decomposition import KernelPCA

        model = KernelPCA(RANK, kernel="rbf", gamma=gamma, eigen_solver=solver, random_state=0)
        return lambda X: eigenvalues(model.fit(X).eigenvalues_)

    return make


def sklearn_nystroem(incremental: bool) -> Callable:
    def make(gamma):
        from sklearn.decomposition import PCA, IncrementalPCA
        from sklearn.kernel_approximation import Nystroem

        def fit(X):
            size = min(LANDMARKS, len(X))
            map_ = Nystroem(gamma=gamma, n_components=size, random_state=0).fit(X)
            if not incremental:
                pca = PCA(RANK, random_state=0).fit(map_.transform(X))
            else:
                pca, step = IncrementalPCA(RANK), 2000
                for start in range(0, len(X), step):
                    # A last block of fewer rows than components would be refused.
                    if len(X) - start >= RANK:
                        pca.partial_fit(map_.transform(X[start : start + step]))
            return eigenvalues(pca.explained_variance_ * (len(X) - 1))

        return fit

    return make


def keops(gamma):
    from pykeops.numpy import LazyTensor
    from scipy.sparse.linalg import LinearOperator, eigsh

    def fit(X):
        n = len(X)
        rows, columns = LazyTensor(X[:, None, :]), LazyTensor(X[None, :, :])
        K = (-gamma * ((rows - columns) ** 2).sum(-1)).exp()

        def product(v):
            v = np.asarray(v).reshape(n, 1)
            w = K @ np.ascontiguousarray(v - v.mean())
            return (w - w.mean()).ravel()

        gram = LinearOperator((n, n), matvec=product, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(n)
        return eigenvalues(eigsh(gram, RANK, v0=start)[0])

    return fit


def torch_dense(gamma):
    import torch

    def fit(X):
        X = torch.as_tensor(X)
        K = torch.exp(-gamma * torch.cdist(X, X) ** 2)
        K -= K.mean(0)
        K -= K.mean(1, keepdim=True)
        return eigenvalues(torch.linalg.eigvalsh(K)[-RANK:].numpy())

    return fit


def torchdr(gamma):
    import torch
    from torchdr import KernelPCA, NormalizedGaussianAffinity

    def fit(X):
        affinity = NormalizedGaussianAffinity(
            sigma=1 / gamma, zero_diag=False, normalization_dim=None, device="cpu"
        )
        model = KernelPCA(affinity=affinity, n_components=RANK, device="cpu")
        model.fit_transform(torch.as_tensor(X))
        return eigenvalues(model.eigenvalues_[:RANK].cpu().numpy())

    return fit


def mlpack(gamma):
    import mlpack as library

    def fit(X):
        bandwidth = float(np.sqrt(0.5 / gamma))
        found = library.kernel_pca(
            input_=X, kernel="gaussian", bandwidth=bandwidth, center=True, new_dimensionality=RANK
        )["output"]
        return eigenvalues(np.sum(np.square(found), axis=0))

    return fit


def kernlab(gamma):
    settings = f"kernel='rbfdot', kpar=list(sigma={gamma:.17g}), features={RANK}"
    script = (
        "suppressMessages(library(kernlab));"
        "X <- as.matrix(read.csv(commandArgs(TRUE)[1], header=FALSE));"
        f"m <- kpca(X, {settings}); cat(eig(m) * nrow(X))"
    )

    def fit(X):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "X.csv"
            np.savetxt(path, X, delimiter=",")
            words = subprocess.run(
                ["Rscript", "-e", script, str(path)], capture_output=True, text=True, check=True
            ).stdout.split()
        return eigenvalues([float(word) for word in words])

    return fit


def clustering(library: str, **settings) -> Callable:
    def make(gamma):
        if library == "mercer":
            from mercer import SpectralClustering
        else:
            from sklearn.cluster import SpectralClustering

        model = SpectralClustering(CLUSTERS, gamma=gamma, random_state=0, **settings)
        return lambda X: {"inertia": _normalized_cut(X, model.fit(X).labels_, gamma)}

    return make


def _normalized_cut(X, labels, gamma):
    """The normalized cut of the clusters among 1,000 rows: smaller is better."""
    some = np.random.default_rng(0).permutation(len(X))[:1000]
    X, labels = X[some], np.asarray(labels)[some]
    K = np.exp(-gamma * np.maximum(_squares(X), 0))
    np.fill_diagonal(K, 0)
    inside = [K[np.ix_(labels == c, labels == c)].sum() / K[labels == c].sum() for c in set(labels)]
    return float(len(inside) - sum(inside))


def _squares(X):
    norms = np.sum(X**2, axis=1)
    return norms[:, None] + norms - 2 * X @ X.T


def scaling(library: str) -> Callable:
    def make(gamma):
        if library == "mercer":
            from mercer import ClassicalMDS
        else:
            from sklearn.manifold import ClassicalMDS

        model = ClassicalMDS(n_components=2, metric="cityblock")
        return lambda X: {"values": np.asarray(model.fit(X).eigenvalues_).tolist()[:2]}

    return make


#: task: contender: (module it needs, maker)
TASKS: dict[str, dict[str, tuple[str, Callable]]] = {
    "kernel PCA": {
        "mercer, exact": ("mercer", mercer_exact),
        "mercer, 1,000 landmarks": ("mercer", mercer_landmarks),
        "scikit-learn, dense": ("sklearn", sklearn_solver("dense")),
        "scikit-learn, arpack": ("sklearn", sklearn_solver("arpack")),
        "scikit-learn, randomized": ("sklearn", sklearn_solver("randomized")),
        "scikit-learn, Nystroem + PCA": ("sklearn", sklearn_nystroem(False)),
        "scikit-learn, Nystroem + IncrementalPCA": ("sklearn", sklearn_nystroem(True)),
        "KeOps + SciPy": ("pykeops", keops),
        "torch, dense": ("torch", torch_dense),
        "TorchDR": ("torchdr", torchdr),
        "mlpack": ("mlpack", mlpack),
        "kernlab (R)": ("Rscript", kernlab),
    },
    "spectral clustering": {
        "mercer": ("mercer", clustering("mercer")),
        "scikit-learn": ("sklearn", clustering("sklearn")),
    },
    "classical scaling, city-block distances": {
        "mercer": ("mercer", scaling("mercer")),
        "scikit-learn": ("sklearn", scaling("sklearn")),
    },
}
APPROXIMATE = ("landmarks", "Nystroem")


def rows(n: int) -> tuple[np.ndarray, str]:
    """Rows with columns of unit variance, and where they come from."""
    try:
        from _papers import papers_data

        X = papers_data.load_covtype().data
        name = "covertype"
    except FileNotFoundError:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((max(n, 1000), 20)) @ rng.standard_normal((20, 54))
        name = "generated"
    X = X[np.random.default_rng(1).permutation(len(X))[:n]].astype(np.float64)
    scale = X.std(axis=0)
    return np.ascontiguousarray((X - X.mean(axis=0)) / np.where(scale > 0, scale, 1)), name


def width(X) -> float:
    """gamma = 1 / (2 s^2), s the mean distance within 1,000 rows."""
    from scipy.spatial.distance import pdist

    return float(0.5 / np.mean(pdist(X[:1000])) ** 2)


def work(job: dict) -> dict:
    """In the process of a contender."""
    import resource

    limit = int(job["memory"])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    X = np.load(job["data"])
    fit = TASKS[job["task"]][job["contender"]][1](job["gamma"])
    try:
        return measure(fit, X)
    except MemoryError:
        return {"error": f"over {limit / 1e9:.0f} GB"}
    except RuntimeError as error:
        # torch says so in its own words.
        if "allocate memory" in str(error):
            return {"error": f"over {limit / 1e9:.0f} GB"}
        raise


def run_isolated(python: str, job: dict, limit: float) -> dict:
    command = [python, str(HERE / "peers.py"), "--worker", json.dumps(job)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"error": f"over {limit:.0f} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        # NumPy's BLAS does not survive that an array could not be had.
        killed = f"ended by signal {-done.returncode} within {job['memory'] / 1e9:.0f} GB"
        return {"error": killed if done.returncode < 0 else lines[-1][:160]}
    return json.loads(done.stdout.splitlines()[-1])


@cache
def has(python: str, module: str) -> bool:
    """Whether an interpreter has a module, or the machine a program."""
    if module == "Rscript":
        try:
            done = subprocess.run(
                ["Rscript", "-e", "library(kernlab)"], capture_output=True, timeout=60
            )
        except (FileNotFoundError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0
    done = subprocess.run([python, "-c", f"import {module}"], capture_output=True, timeout=300)
    return done.returncode == 0


def interpreter(module: str, pythons: list[str]) -> str | None:
    return next((python for python in pythons if has(python, module)), None)


def versions(python: str) -> dict:
    code = (
        "import json; from importlib.metadata import version, PackageNotFoundError\n"
        "out = {}\n"
        "for p in ('numpy','scipy','scikit-learn','mercer','pykeops','mlpack','torch','torchdr'):\n"
        "    try: out[p] = version(p)\n"
        "    except PackageNotFoundError: pass\n"
        "print(json.dumps(out))"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def reference(X, gamma) -> list[float]:
    """The 16 largest eigenvalues by ARPACK on the whole centered matrix."""
    from scipy.sparse.linalg import eigsh

    K = np.exp(-gamma * np.maximum(_squares(X), 0))
    np.fill_diagonal(K, 1.0)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    start = np.random.default_rng(0).standard_normal(len(X))
    return sorted(eigsh(K, RANK, v0=start, tol=0)[0].tolist(), reverse=True)


def race(options):
    """Every contender on every size, smallest first; what is known is handed on after each size."""
    pythons = [sys.executable, *options.python]
    others, begun = OtherWork(), time.perf_counter()
    head = {"machine": machine() | {"versions": _merged(pythons)}}
    limits = {"limit_s": options.limit, "memory_gb": options.memory}
    field = Field(pythons, options.limit, options.only)
    for n in options.sizes:
        X, name = rows(n)
        field.run(X, options.memory * 1e9)
        yield head | {
            "settings": {"data": name, "columns": X.shape[1], "components": RANK} | limits,
            "minutes": round((time.perf_counter() - begun) / 60, 1),
            "busy_cores": others.cores(),
            "absent": field.absent,
            "results": field.found,
        }


class Field:
    """All contenders, and the walls that some have met."""

    def __init__(self, pythons, limit, only=None):
        self.pythons, self.limit, self.only = pythons, limit, only
        self.found: list[dict] = []
        self.absent: dict[str, str] = {}
        self.walls: dict[tuple[str, str], str] = {}

    def run(self, X, memory):
        """Every contender on the same rows."""
        gamma = width(X)
        self.exact = reference(X, gamma) if len(X) <= REFERENCE_ROWS else None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "X.npy"
            np.save(path, X)
            job = {"n": len(X), "gamma": gamma, "data": str(path), "memory": memory}
            for task, contenders in TASKS.items():
                for contender in contenders:
                    if self.only and contender not in self.only:
                        continue
                    self._ask(job | {"task": task, "contender": contender})

    def _ask(self, job):
        task, contender, n = (job[name] for name in ("task", "contender", "n"))
        module = TASKS[task][contender][0]
        python = interpreter(module, self.pythons)
        if python is None:
            self.absent[contender] = f"{module} is not installed"
            return
        record = {"task": task, "contender": contender, "n": n}
        if (task, contender) in self.walls:
            self.found.append(record | {"error": self.walls[task, contender], "asked": False})
            return
        result = run_isolated(python, job, self.limit)
        if "error" in result:
            self.walls[task, contender] = f"{result['error']} at {n:,} rows"
        elif task == "kernel PCA":
            self.exact = self.exact or result["values"]
            result["accuracy"] = _error(result.pop("values"), self.exact)
        self.found.append(record | result)
        said = result.get("error") or f"{result['seconds']:.3g} s"
        print(f"{n:>8,} {task}: {contender}: {said}", flush=True)


def _merged(pythons) -> dict:
    merged: dict = {}
    for python in reversed(pythons):
        merged |= versions(python)
    return merged


def _error(values, exact) -> float:
    values, exact = np.asarray(values), np.asarray(exact)
    if len(values) < len(exact):
        return float("nan")
    return float(np.max(np.abs(values - exact) / exact))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--limit", type=float, default=60, help="seconds for one run, default 60")
    parser.add_argument("--memory", type=float, default=8, help="gigabytes for one run, default 8")
    parser.add_argument(
        "--python", nargs="*", default=[], help="further interpreters to look for peers in"
    )
    parser.add_argument("--only", nargs="+", help="contenders, by name")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="only make the page from the file")
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(work(options.worker)))
        return
    if not options.report:
        for content in race(options):
            write_json(options.out, content)
    if options.out == RESULTS:
        import peers_report

        peers_report.write(json.loads(RESULTS.read_text()))


if __name__ == "__main__":
    main()
