"""Kernel CCA against scikit-learn's CCA: correlation of rows in the fit and of rows that were not.

    python benchmarks/correlations.py

Two views of the same rows: left and right half of the digits' images, and a ring with a column that
depends on the angle. Half of the rows are fitted. Width: the median distance of each view. The
first pair of directions; the regularization of the last line is chosen by five folds of the rows
that are fitted.
"""

import time
import warnings

import numpy as np
from sklearn.cross_decomposition import CCA
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from mercer import KernelCCA

GRID = {"regularization": [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]}


def digits():
    """Left and right halves."""
    images = load_digits().images
    return images[:, :, :4].reshape(-1, 32), images[:, :, 4:].reshape(-1, 32)


def ring(n=1500):
    """A place on a ring, and the cosine of three times its angle, both with noise."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, n)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.2 * rng.standard_normal((n, 2))
    return X, np.cos(3 * angle)[:, None] + 0.2 * rng.standard_normal((n, 1))


def noise(n=600):
    """Nothing in common."""
    return tuple(np.random.default_rng(1).standard_normal((2, n, 5)))


def correlation(model, X, Y):
    """Of the first pair, for scikit-learn's too."""
    model = vars(model).get("best_estimator_", model)
    S, T = model.transform(X, Y)
    return np.corrcoef(S[:, 0], T[:, 0])[0, 1]


def models(r):
    """By name."""
    rbf = {"kernel": "rbf", "gamma": "median", "random_state": 0}
    return {
        "scikit-learn CCA": CCA(r, max_iter=2000),
        "linear kernel, 1e-10": KernelCCA(r, regularization=1e-10),
        "rbf, 1e-6": KernelCCA(r, regularization=1e-6, **rbf),
        "rbf, 1e-2 (default)": KernelCCA(r, **rbf),
        "rbf, 1": KernelCCA(r, regularization=1.0, **rbf),
        "rbf, 200 landmarks, 1e-2": KernelCCA(r, basis="landmarks", **rbf),
        "rbf, chosen": GridSearchCV(KernelCCA(r, **rbf), GRID),
    }


def main():
    """Print a table for each pair of views."""
    warnings.simplefilter("ignore")
    for name, (X, Y) in {"digits": digits(), "ring": ring(), "noise": noise()}.items():
        order = np.random.default_rng(2).permutation(len(X))
        train, test = np.split(order, 2) if len(X) % 2 == 0 else (order[:898], order[898:])
        print(f"\n{name}: {len(train)} rows fitted, {X.shape[1]} and {Y.shape[1]} columns")
        for label, model in models(1).items():
            start = time.process_time()
            model.fit(X[train], Y[train])
            seconds = time.process_time() - start
            found = [correlation(model, X[some], Y[some]) for some in (train, test)]
            chosen = vars(model).get("best_params_", "")
            print(f"  {label:28s} {found[0]:.3f} {found[1]:.3f} {seconds:7.2f} s {chosen}")


if __name__ == "__main__":
    main()
