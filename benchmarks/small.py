"""Small problems against scikit-learn: 100 to 3,000 rows, where most people are.

    python benchmarks/small.py
    python benchmarks/small.py --what arpack --only rbf
    python benchmarks/small.py --what drawn --draws 200 --seed 1

Processor time on one core (the process is held on it), the least of several fits that take
turns, both libraries at their defaults. A ratio above 1 means that mercer is faster. `--what`
names what is timed: the default fit (`proven` also counts the components that are proven to be
the leading ones, in 24 cases), the same solver asked for by name in both, `transform`, a
grid search over a pipeline, classical scaling, or random features (`features`, and `feature-scores`
for `fit_transform`) against `RBFSampler` or `PolynomialCountSketch` before `PCA`.
"""

from __future__ import annotations

import argparse
import math
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Before NumPy is loaded: its BLAS reads this once.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _harness import machine, print_table, write_json

# Each contender is timed at least this often, and for about so long in all.
LEAST_FITS, SECONDS = 5, 0.4
NARROW = 20.0


@dataclass(frozen=True)
class Case:
    """Standard normal rows with columns of decaying size, and what is asked of them."""

    kernel: str
    n: int
    d: int
    r: int | None
    features: int = 0

    @property
    def name(self) -> str:
        if self.features:
            return f"{self.kernel} {self.n} x {self.d}, {self.features} features"
        return f"{self.kernel} {self.n} x {self.d}, {self.r or 'all'}"

    @property
    def data(self) -> np.ndarray:
        rng = np.random.default_rng(self.n + self.d)
        return rng.standard_normal((self.n, self.d)) / np.sqrt(1 + np.arange(self.d) / 4)

    @property
    def parameters(self) -> dict:
        """A Gaussian of scikit-learn's width, or one so narrow that the spectrum is flat."""
        if self.kernel == "narrow":
            return {"kernel": "rbf", "gamma": NARROW / self.d, "n_components": self.r}
        return {"kernel": self.kernel, "n_components": self.r}


CASES = [
    Case(kernel, n, d, r)
    for kernel, shapes in {
        "rbf": [
            (100, 10, 2),
            (200, 10, 5),
            (300, 20, 10),
            (500, 20, 5),
            (500, 10, 100),
            (1000, 10, 2),
            (1000, 50, 20),
            (1000, 50, 200),
            (2000, 20, 5),
            (2000, 100, 50),
            (2000, 100, 200),
            (3000, 20, 10),
        ],
        "narrow": [(100, 10, 2), (500, 20, 5), (1000, 10, 20), (2000, 20, 10), (3000, 10, 50)],
        "linear": [
            (100, 10, 2),
            (500, 200, 5),
            (1000, 50, 10),
            (1000, 2000, 10),
            (2000, 20, 5),
            (2000, 500, 100),
            (3000, 200, 10),
        ],
        "cosine": [(500, 200, 5), (2000, 50, 10)],
        "poly": [(300, 10, 5), (1000, 20, 10)],
        "sigmoid": [(500, 20, 5)],
    }.items()
    for n, d, r in shapes
]
FEATURES = [
    *(
        Case("rbf", n, 20, 10, m)
        for n in (500, 1000, 2000, 5000, 20_000)
        for m in (100, 200, 500, 1000)
    ),
    *(Case("rbf", n, 100, 10, 300) for n in (500, 2000, 5000)),
    *(Case("poly", n, 20, 10, m) for n in (500, 2000, 5000) for m in (100, 500)),
]
# With what it takes to prove that no component was missed.
PROVEN = [
    Case("rbf", n, d, r) for n in (300, 500, 1000, 2000) for d in (10, 100) for r in (2, 8, 50)
]
ALL_COMPONENTS = [Case("rbf", 100, 10, None), Case("linear", 500, 20, None)]


KINDS = ("normal", "decaying", "blobs", "rounded", "repeated")


@dataclass(frozen=True)
class Drawn(Case):
    """Rows of some kind, a width of any size, few or many components."""

    kind: str = "normal"
    gamma: float | None = None
    seed: int = 0

    @property
    def name(self) -> str:
        width = "" if self.gamma is None else f", gamma {self.gamma:.2g}"
        return f"{super().name}, {self.kind}{width}"

    @property
    def data(self) -> np.ndarray:
        rng = np.random.default_rng(self.seed)
        X = rng.standard_normal((self.n, self.d))
        if self.kind == "decaying":
            X /= np.sqrt(1 + np.arange(self.d))
        elif self.kind == "blobs":
            X += 4 * rng.integers(0, 5, (self.n, 1))
        elif self.kind == "rounded":
            X = np.round(X)
        elif self.kind == "repeated":
            X = X[rng.integers(0, self.n // 2 + 1, self.n)]
        return X

    @property
    def parameters(self) -> dict:
        return {"kernel": self.kernel, "gamma": self.gamma, "n_components": self.r}


def drawn(count: int, seed: int) -> list[Case]:
    """Cases of 30 to 1,500 rows and up to 600 columns.

    Sigmoids are left out: we refuse kernels that are not positive semidefinite where scikit-learn,
    which does not look for it, goes on.
    """
    rng, cases = np.random.default_rng(seed), []
    for k in range(count):
        n, d = (int(math.exp(rng.uniform(0, math.log(most)))) for most in (50, 600))
        n *= 30
        r = rng.choice([1, 2, 3, 5, 10, 20, 50, 100, n // 3, n - 1, n])
        kernel = str(rng.choice(["rbf", "rbf", "rbf", "poly", "linear", "cosine"]))
        gamma = math.exp(rng.uniform(-3, 3)) / d if rng.random() < 0.6 else None
        kind, r = str(rng.choice(KINDS)), int(min(r, n))
        cases.append(Drawn(kernel, n, d, None if r == n else r, kind=kind, gamma=gamma, seed=k))
    return cases


def fits(case: Case, solver: str = "auto") -> dict[str, Callable[[], object]]:
    """A fit of either library."""
    from sklearn.decomposition import KernelPCA as Theirs

    from mercer import KernelPCA as Ours

    X = case.data
    options = case.parameters | {"eigen_solver": solver, "random_state": 0}
    return {
        "scikit-learn": lambda: Theirs(**options).fit(X),
        "mercer": lambda: Ours(**options).fit(X),
    }


def transforms(case: Case) -> dict[str, Callable[[], object]]:
    """Scores of as many new rows as the fit had."""
    X = case.data + 0.1
    fitted = {name: fit() for name, fit in fits(case).items()}
    return {name: (lambda model=model: model.transform(X)) for name, model in fitted.items()}


def searches(case: Case) -> dict[str, Callable[[], object]]:
    """A grid search over the width and the number of components, before a logistic regression."""
    from sklearn.decomposition import KernelPCA as Theirs
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    from mercer import KernelPCA as Ours

    X = case.data
    y = X[:, 0] * X[:, 1] > 0
    grid = {"kernelpca__gamma": [0.01, 0.1, 1.0], "kernelpca__n_components": [2, 5, 10]}

    def search(kind):
        model = make_pipeline(kind(kernel="rbf", random_state=0), LogisticRegression(max_iter=200))
        return GridSearchCV(model, grid, cv=3).fit(X, y)

    return {"scikit-learn": lambda: search(Theirs), "mercer": lambda: search(Ours)}


def scalings(case: Case) -> dict[str, Callable[[], object]]:
    """Classical scaling into two dimensions."""
    from sklearn.manifold import ClassicalMDS as Theirs

    from mercer import ClassicalMDS as Ours

    X = case.data
    return {
        "scikit-learn": lambda: Theirs(n_components=2).fit(X),
        "mercer": lambda: Ours(n_components=2, random_state=0).fit(X),
    }


def feature_fits(case: Case, method: str = "fit") -> dict[str, Callable[[], object]]:
    """Random features, and principal components of them."""
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler
    from sklearn.pipeline import make_pipeline

    from mercer import KernelPCA
    from mercer.bases import RandomFeatures

    X, m, gamma = case.data, case.features, 1.0 / case.d
    kind, options = RBFSampler, {"gamma": gamma, "n_components": m, "random_state": 0}
    if case.kernel == "poly":
        kind, options = PolynomialCountSketch, options | {"degree": 3, "coef0": 1}
    basis = RandomFeatures(m)

    def theirs():
        return make_pipeline(kind(**options), PCA(case.r, random_state=0))

    def ours():
        return KernelPCA(case.r, kernel=case.kernel, gamma=gamma, basis=basis, random_state=0)

    return {
        "scikit-learn": lambda: getattr(theirs(), method)(X),
        "mercer": lambda: getattr(ours(), method)(X),
    }


WHAT: dict[str, tuple[list[Case], Callable]] = {
    "fit": (CASES + ALL_COMPONENTS, fits),
    "drawn": ([], fits),
    "proven": (PROVEN, fits),
    "dense": (CASES, lambda case: fits(case, "dense")),
    "arpack": (CASES, lambda case: fits(case, "arpack")),
    "transform": (CASES, transforms),
    "search": ([Case("rbf", n, 10, 10) for n in (100, 300, 1000)], searches),
    "features": (FEATURES, feature_fits),
    "feature-scores": (FEATURES, lambda case: feature_fits(case, "fit_transform")),
    "mds": ([Case("rbf", n, 10, 2) for n in (50, 100, 200, 500, 1000, 2000)], scalings),
}


def processor_times(contenders: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The least processor time of each in seconds; they take turns."""
    for run in contenders.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    while min(map(len, times.values())) < LEAST_FITS or (
        sum(map(sum, times.values())) < 2 * SECONDS and len(times["mercer"]) < 200
    ):
        for name, run in contenders.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return {name: min(seconds) for name, seconds in times.items()}


def hold_on_one_core() -> None:
    """Keep this process, and so both libraries, on one core (Linux only)."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def report(what: str, options: argparse.Namespace) -> list[dict]:
    cases, prepare = WHAT[what]
    cases, only = cases or drawn(options.draws, options.seed), options.only
    results = []
    for case in cases:
        if only is None or only in case.name:
            contenders = prepare(case)
            results.append({"what": what, "case": case.name, **processor_times(contenders)})
            if what == "proven":
                count = contenders["mercer"]().certificate_.n_proven
                results[-1] |= {"case": f"{case.name} ({count} proven)", "n_proven": count}
    if what == "drawn":
        results.sort(key=ratio)
    rows = [
        [r["case"], milliseconds(r["scikit-learn"]), milliseconds(r["mercer"]), f"{ratio(r):.2f}"]
        for r in results
    ]
    print_table(f"{what}: {summary(results)}", ["case", "scikit-learn", "mercer", "ratio"], rows)
    return results


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.2f} ms"


def ratio(result: dict) -> float:
    return result["scikit-learn"] / result["mercer"]


def summary(results: list[dict]) -> str:
    """How many are slower, and the mean ratio."""
    ratios = [ratio(r) for r in results]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    slower = sum(r < 1 for r in ratios)
    return f"{slower} of {len(ratios)} slower, geometric mean {mean:.2f}, least {min(ratios):.2f}"


def plot(path: Path, results: list[dict]) -> None:
    """The ratio of every case as a bar; the line at 1 is scikit-learn's time."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [r for r in results if r["what"] == "fit"][::-1]
    figure, axes = plt.subplots(figsize=(7, 0.6 + 0.22 * len(shown)), layout="constrained")
    ratios = [ratio(r) for r in shown]
    colors = ["tab:blue" if value >= 1 else "tab:red" for value in ratios]
    axes.barh([r["case"] for r in shown], [value - 1 for value in ratios], left=1, color=colors)
    axes.axvline(1, color="black", linewidth=1)
    axes.set(xscale="log", xlabel="times scikit-learn's speed (fit, processor time, one core)")
    axes.margins(y=0.01)
    axes.grid(axis="x", which="both", alpha=0.3)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--what", help=f"comma-separated, of {', '.join(WHAT)}", default="fit")
    parser.add_argument("--only", help="cases whose name holds this")
    parser.add_argument("--draws", type=int, default=100, help="cases of --what drawn")
    parser.add_argument("--seed", type=int, default=0, help="of --what drawn")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    hold_on_one_core()
    warnings.simplefilter("ignore")
    results = [row for what in options.what.split(",") for row in report(what, options)]
    write_json(options.out / "small.json", {"machine": machine(), "results": results})
    if any(row["what"] == "fit" for row in results):
        plot(options.out / "small.png", results)
    print(f"Written: {options.out / 'small.json'}")


if __name__ == "__main__":
    main()
