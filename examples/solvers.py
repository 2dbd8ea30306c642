"""Residuals by readings of the kernel: block Krylov, Gram power and the Hebbian rule.

python examples/solvers.py --out pictures
"""

import argparse
from pathlib import Path

import matplotlib
from sklearn.datasets import load_digits

from mercer import HebbianKernelPCA, KernelPCA, plot

RBF = {"n_components": 8, "kernel": "rbf", "gamma": "median", "random_state": 0}


def main(out: Path):
    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    X = load_digits().data
    krylov, power = [], []
    KernelPCA(eigen_solver="krylov", tol=1e-6, callback=krylov.append, **RBF).fit(X)
    KernelPCA(eigen_solver="gram-power", tol=1e-6, callback=power.append, **RBF).fit(X)
    hebbian = HebbianKernelPCA(n_passes=10, **RBF).fit(X)
    for name, states in (("block Krylov", krylov), ("Gram power", power)):
        print(f"{name}: residual {states[-1].residual:.1e} after {states[-1].n_passes} passes")
    histories = {"block Krylov": krylov, "Gram power": power, "Hebbian, auto": hebbian.history_}
    figure = plot.convergence(histories, quantity="residual").figure
    figure.savefig(out / "solvers.png", dpi=90)
    print(out / "solvers.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    main(parser.parse_args().out)
