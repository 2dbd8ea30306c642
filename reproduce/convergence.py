"""Excess error by passes and by seconds: Hebbian rules, Gram power, block Krylov and Lanczos.

All meet the same centered Gaussian kernel matrix row by row or tile by tile, in float64, and
never keep it: USPS, 7,291 images, sigma 8 (scikit-learn's digits where USPS is not to be found).
A pass is one reading of the matrix, the first product included; a symmetric product makes each
tile for both sides, so it takes about half the time of a pass over rows.

    python reproduce/convergence.py --out docs/images [--quick]

Writes convergence.png and convergence.json to --out. The error of a Hebbian rule is equation 22
of Schraudolph et al. for its directions as they are; that of the other methods, and of "auto"
with its read-outs, is |K' - U L U'| for Ritz pairs U, L; both relative to the best, less 1. Time is
processor time on one thread, that of measuring errors not counted.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from papers_data import load_usps
from scipy.sparse.linalg import eigsh
from threadpoolctl import threadpool_limits

from mercer.bases.points import PointGram
from mercer.compute import LocalEngine
from mercer.hebbian import hebbian_eigenpairs
from mercer.kernels import RBF
from mercer.operators import CenteredGram
from mercer.solvers import BlockKrylov, GramPower

RANK = 10
SIGMA = {"USPS": 8.0, "digits": 2.0}
HEBBIAN = ("constant", "t", "et", "smd", "auto")
READOUTS = (1, 3, 10)
FLOOR = 1e-16  # below this the excess is rounding of the differences it is made of


class Truth:
    """The matrix once, in memory, for the errors alone."""

    def __init__(self, kernel, X):
        self.K = kernel(X)
        means = self.K.mean(axis=0)
        self.K -= means
        self.K -= (means - means.mean())[:, None]
        start = np.random.default_rng(0).standard_normal(len(X))
        self.values = eigsh(self.K, RANK, v0=start)[0]
        self.square = float(np.vdot(self.K, self.K))
        self.best = self.square - float(np.sum(self.values**2))

    def of_rows(self, A):
        """Equation 22 for coefficients A (r, n)."""
        S = self.K @ A.T
        gap = np.sum((S.T @ S) ** 2) - 2 * np.vdot(S, self.K @ S) + np.sum(self.values**2)
        return self._excess(gap)

    def of_values(self, values):
        """The error of U L U' from Ritz values L."""
        return self._excess(np.sum(self.values**2) - np.sum(np.sort(values)[-RANK:] ** 2))

    def _excess(self, gap):
        # sqrt(1 + x) - 1 without its cancellation.
        x = float(gap) / self.best
        return max(FLOOR, x / (np.sqrt(1 + max(x, 0.0)) + 1))


class Clock:
    """Points of a curve: passes, processor seconds without the measuring, excess.

    On one thread these are the seconds of a quiet machine, whatever else is running.
    """

    def __init__(self):
        self.points, self.begun = [], time.process_time()

    def note(self, passes, measure, argument):
        now = time.process_time()
        seconds = now - self.begun
        self.points.append((float(passes), seconds, measure(argument)))
        self.begun += time.process_time() - now


def hebbian(make, truth, gain, passes):
    clock = Clock()

    def measure(A):
        clock.note(len(clock.points) + 2, truth.of_rows, A)
        return clock.points[-1][2]

    settings = {"readout": "free", "measure": measure, "rng": np.random.default_rng(0)}
    hebbian_eigenpairs(make(), RANK, gain, n_passes=passes, **settings)
    return clock.points


def auto_read_out(make, truth, passes):
    """ "auto" with its default read-out, one product more, after a few numbers of passes."""
    points = []
    for n_passes in (p for p in READOUTS if p <= passes):
        clock = Clock()
        pairs, _ = hebbian_eigenpairs(make(), RANK, n_passes=n_passes, rng=np.random.default_rng(0))
        clock.note(pairs.n_passes, truth.of_values, pairs.values)
        points += clock.points
    return points


def solver(make, truth, recipe, before=0, tol=1e-9):
    """A curve from a solver's reports; `before` products come before those it counts."""
    clock = Clock()

    def report(state):
        clock.note(before + state.n_passes, truth.of_values, state.values)
        return clock.points[-1][2] < 1e-13

    recipe.solve(make(), RANK, np.random.default_rng(0), tol, report)
    return clock.points


def lanczos(make, truth, steps=60):
    """One vector a product, full reorthogonalization; a point from r vectors on."""
    gram, clock = make(), Clock()
    q = np.random.default_rng(0).standard_normal(gram.shape[0])
    Q, a, b = [q / np.linalg.norm(q)], [], []
    for _ in range(steps):
        w = (gram @ Q[-1][:, None])[:, 0]
        a.append(w @ Q[-1])
        basis = np.array(Q)
        for _ in range(2):
            w = w - basis.T @ (basis @ w)
        b.append(np.linalg.norm(w))
        Q.append(w / b[-1])
        if len(a) >= RANK:
            T = np.diag(a) + np.diag(b[:-1], 1) + np.diag(b[:-1], -1)
            clock.note(len(a), truth.of_values, np.linalg.eigvalsh(T))
            if clock.points[-1][2] < 1e-13:
                break
    return clock.points


def data(quick):
    try:
        X, name = load_usps().data, "USPS"
    except (FileNotFoundError, OSError):
        from sklearn.datasets import load_digits

        X, name = load_digits().data / 16, "digits"
    return (X[::6] if quick else X), name


def curves(quick):
    X, name = data(quick)
    kernel = RBF(gamma=0.5 / SIGMA[name] ** 2)
    truth = Truth(kernel, X)
    engine = LocalEngine(10**9, 1)
    passes = 6 if quick else 20

    def make():
        basis = PointGram(kernel, X, engine)
        basis.release()
        return CenteredGram(basis)

    hebbian(make, truth, "smd", 1)  # compiles
    found = {}
    for gain in HEBBIAN:
        found[f"KHA, {gain}"] = hebbian(make, truth, gain, passes)
    found["KHA, auto, read out"] = auto_read_out(make, truth, passes)
    # Rows can be centered only after a product for their means.
    found["Gram power"] = solver(make, truth, GramPower(n_passes=3), before=1)
    found["block Krylov"] = solver(make, truth, BlockKrylov())
    found["Lanczos"] = lanczos(make, truth)
    return found, f"{name}, {len(X):,} rows, {RANK} components"


def draw(found, title, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    for name, points in found.items():
        passes, seconds, excess = np.array(points).T
        hebbian = name.startswith("KHA")
        style = {"ls": "--", "lw": 1} if hebbian else {"lw": 2}
        style |= {"ls": "none"} if "read out" in name else {}
        for axis, x in zip(axes, (passes, seconds), strict=True):
            axis.plot(
                x, excess, marker="s" if "read out" in name else "o", ms=3, label=name, **style
            )
    for axis, label in zip(
        axes, ("readings of the kernel matrix", "processor seconds, one thread"), strict=True
    ):
        axis.set(xscale="log", yscale="log", xlabel=label, ylim=(1e-14, 10))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("excess error")
    axes[1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    fig.suptitle(title, fontsize=10)
    fig.savefig(path, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--quick", action="store_true", help="fewer rows and passes")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        found, title = curves(options.quick)
    for name, points in found.items():
        marks = [p for i, p in enumerate(points) if i in (0, 1, 4, 9) or i == len(points) - 1]
        cells = "  ".join(f"{p:.0f}: {e:.1e} ({s:.1f} s)" for p, s, e in marks)
        print(f"{name:22} {cells}")
    (options.out / "convergence.json").write_text(json.dumps(found, indent=1))
    draw(found, title, options.out / "convergence.png")


if __name__ == "__main__":
    main()
