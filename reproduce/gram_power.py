"""Covariance-free kernel PCA (Shi, Guo, Xue 2009): Tables 1 and 2 and the claim of Figure 2.

Table 1: the three leading eigenvalues of the toy data, mean of 200 draws; the printed ones are
    22.558, 20.936 and 4.648 for one draw. Figure 2: how fast the vectors of the published recursion
    turn to the eigenvectors.
Table 2: 1-NN error on USPS of 64 components of polynomial kernels of degree 2 to 6, by exact
    eigenvectors, by the published recursion with amnesic parameter 4 after two passes, and by one
    pass of block Gram power; in the paper's reading (unit vectors) and as proper components.

    python reproduce/gram_power.py --out results [--quick] [--only 1|2] [--degrees 2 3]

Prints the tables; writes gram_power.json. Table 2 keeps a Gram matrix in memory (430 MB). Data: see
papers_data.load_usps.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from papers_data import load_usps
from scipy.sparse.linalg import eigsh
from sklearn.neighbors import KNeighborsClassifier

from mercer.kernels import RBF, Polynomial
from mercer.operators import DenseOperator
from mercer.solvers.gram_power import GramPower, sequential_pass

PRINTED_1 = (22.558, 20.936, 4.648)
TARGET_1, SLACK_1 = (22.67, 21.54, 4.25), 0.15
PRINTED_2 = {2: 5.88, 3: 6.13, 4: 6.57, 5: 7.06, 6: 7.25}
TARGET_2 = {2: 5.88, 3: 6.03, 4: 6.33, 5: 6.88, 6: 7.03}
SLACK_2, SLACK_PASSES = 0.10, 0.25
COMPONENTS, AMNESIC, PASSES = 64, 4.0, 2


def centered(K):
    """H K H, in place."""
    means = K.mean(axis=0)
    K -= means
    K -= (means - means.mean())[:, None]
    return K


def toy(rng):
    """Three mixed clusters of thirty; sigma = 0.1 is the whole denominator of the kernel."""
    centers = np.repeat([[-0.5, -0.2], [0.0, 0.6], [0.5, 0.0]], 30, axis=0)[rng.permutation(90)]
    return centered(RBF(gamma=1 / 0.1)(centers + 0.1 * rng.standard_normal((90, 2))))


def table_1(quick, degrees):
    draws = 40 if quick else 200
    rng = np.random.default_rng(0)
    solver = GramPower(block=30, n_passes=2)
    values = [solver.solve(DenseOperator(toy(rng)), 3, rng).values for _ in range(draws)]
    mean, spread = np.mean(values, axis=0), np.std(values, axis=0)
    held = np.abs(mean - TARGET_1) <= SLACK_1
    print(f"\nTable 1, mean of {draws} draws, centered exp(-d^2 / 0.1)")
    for i in range(3):
        word = "held" if held[i] else "MISSED"
        print(
            f"  {PRINTED_1[i]:7.3f} printed, {mean[i]:6.2f} +- {spread[i]:.2f}; "
            f"{TARGET_1[i]} +- {SLACK_1} {word}"
        )
    return {"mean": mean.tolist(), "spread": spread.tolist(), "figure_2": figure_2(quick)}


def figure_2(quick):
    """Mean |cosine| with the three eigenvectors by passes of the published recursion."""
    draws, marks = (4, (1, 10)) if quick else (20, (1, 10, 50, 200))
    found = {}
    for amnesic in (0.0, 2.0, 4.0):
        rng, rows = np.random.default_rng(1), []
        for _ in range(draws):
            K = toy(rng)
            exact = np.linalg.eigh(K)[1][:, ::-1][:, :3]
            U, L, row = np.zeros((90, 0)), np.zeros(0), []
            for done in range(max(marks)):
                U, L = sequential_pass(DenseOperator(K), U, L, 90 * done, 3, amnesic)
                row.append(np.abs(np.sum(U * exact, axis=0)).mean())
            rows.append([row[mark - 1] for mark in marks])
        found[amnesic] = np.mean(rows, axis=0).tolist()
        cells = "  ".join(f"{m}: {x:.2f}" for m, x in zip(marks, found[amnesic], strict=True))
        print(f"  Figure 2, amnesic {amnesic:g}, mean |cosine| by passes:  {cells}")
    return found


def table_2(quick, degrees):
    train, test = load_usps(), load_usps(subset="test")
    keep = slice(None, None, 5 if quick else 1)
    X, y, Z, z = train.data[keep], train.target[keep], test.data[keep], test.target[keep]
    X, Z = unit_rows((X + 1) / 2), unit_rows((Z + 1) / 2)
    raw = 100 * (1 - KNeighborsClassifier(1).fit(train.data[keep], y).score(test.data[keep], z))
    print(f"\nTable 2, 1-NN error in percent, {COMPONENTS} components; raw pixels {raw:.2f}")
    print("  degree  printed  exact  published x2  block x1    proper components, likewise")
    results = {"raw": raw}
    for degree in degrees:
        kernel = Polynomial(degree=degree, gamma=1.0, coef0=0.0)
        results[degree] = one_degree(kernel, X, y, Z, z)
        report(degree, results[degree], held=not quick)
    return results


def one_degree(kernel, X, y, Z, z):
    """Errors of every way to the vectors, unit and proper."""
    K = kernel(X)
    means = K.mean(axis=0)
    new = kernel(Z, X)
    new = new - new.mean(axis=1)[:, None] - means + means.mean()
    K = centered(K)
    found = {}
    for name, solve in WAYS.items():
        begun = time.perf_counter()
        values, U = solve(K)
        seconds = time.perf_counter() - begun
        scores, test = K @ U, new @ U
        proper = 1 / np.sqrt(values)
        found[name] = {
            "unit": error(scores, y, test, z),
            "proper": error(scores * proper, y, test * proper, z),
            "seconds": seconds,
        }
    return found


def exact(K):
    values, U = eigsh(K, COMPONENTS, v0=np.random.default_rng(0).standard_normal(len(K)))
    return values[::-1], U[:, ::-1]


def published(K):
    """Equations 11 and 12 in the order of the rows; their own norms give the eigenvalues."""
    U, L = np.zeros((len(K), 0)), np.zeros(0)
    for done in range(PASSES):
        U, L = sequential_pass(DenseOperator(K), U, L, len(K) * done, COMPONENTS, AMNESIC)
    # w is an eigenvector of K^2 / m times its eigenvalue.
    return np.sqrt(L * len(K)), U


def block(K):
    pairs = GramPower().solve(DenseOperator(K), COMPONENTS, np.random.default_rng(0))
    return pairs.values, pairs.vectors


WAYS = {"exact": exact, "published": published, "block": block}


def error(scores, y, test, z):
    return 100 * (1 - KNeighborsClassifier(1).fit(scores, y).score(test, z))


def unit_rows(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def report(degree, found, held):
    unit, proper = ([found[name][kind] for name in WAYS] for kind in ("unit", "proper"))
    line = (
        f"  {degree:6}  {PRINTED_2[degree]:7.2f}  {unit[0]:5.2f}  {unit[1]:12.2f}  {unit[2]:8.2f}"
    )
    line += "    " + "  ".join(f"{x:.2f}" for x in proper)
    if held:
        near = abs(unit[0] - TARGET_2[degree]) <= SLACK_2
        as_exact = unit[1] - unit[0] <= SLACK_PASSES
        line += "   exact " + ("held" if near else "MISSED")
        line += ", published " + ("held" if as_exact else "MISSED")
    print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--quick", action="store_true", help="fewer draws and images")
    parser.add_argument("--only", choices=["1", "2"], help="one table")
    parser.add_argument("--degrees", type=int, nargs="+", choices=PRINTED_2, default=PRINTED_2)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    run = {"1": table_1, "2": table_2}
    names = [options.only] if options.only else list(run)
    results = {f"table {name}": run[name](options.quick, options.degrees) for name in names}
    (options.out / "gram_power.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
