"""Supervised kernel PCA against kernel PCA, LDA and NCA: a classifier on few components.

    python benchmarks/supervised.py

Standardized columns, a logistic regression on the components, mean accuracy over five folds (three
times with other folds; the number after +- is the deviation of the three means) and seconds of
processor time of one fit. The Gaussian kernel has the median distance as its width everywhere;
nothing is tuned. As many components as classes less one, unless the table says otherwise.
"""

import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_circles
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelPCA, SupervisedKernelPCA


def rings(return_X_y=True):
    """Two rings in two columns, six columns of noise beside them."""
    X, y = make_circles(600, factor=0.4, noise=0.1, random_state=0)
    return np.hstack([X, 0.5 * np.random.default_rng(0).standard_normal((600, 6))]), y


DATA = {
    "digits": load_digits,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "two rings": rings,
}
RBF = {"kernel": "rbf", "gamma": "median", "random_state": 0}
MORE = 30


def methods(r):
    """Makers of r components, and of more where a method has them."""
    return {
        f"PCA, {r}": PCA(r),
        f"kernel PCA, {r}": KernelPCA(r, **RBF),
        f"LDA, {r}": LinearDiscriminantAnalysis(n_components=r),
        f"NCA, {r}": NeighborhoodComponentsAnalysis(r, max_iter=30, random_state=0),
        f"supervised, linear kernel, {r}": SupervisedKernelPCA(r),
        f"supervised, {r}": SupervisedKernelPCA(r, **RBF),
        f"supervised, 200 landmarks, {r}": SupervisedKernelPCA(r, basis="landmarks", **RBF),
        f"kernel PCA, {MORE}": KernelPCA(MORE, **RBF),
        f"supervised, unsupervised=0.1, {MORE}": SupervisedKernelPCA(MORE, unsupervised=0.1, **RBF),
    }


def accuracy(model, X, y, seed):
    """Mean accuracy over five folds."""
    pipe = make_pipeline(StandardScaler(), model, LogisticRegression(max_iter=2000))
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return cross_val_score(pipe, X, y, cv=folds).mean()


def main():
    """Print a table for each data set."""
    warnings.simplefilter("ignore")
    for name, load in DATA.items():
        X, y = load(return_X_y=True)
        X = X[:, X.std(axis=0) > 0]
        print(f"\n{name}: {len(X)} rows, {X.shape[1]} columns, {len(np.unique(y))} classes")
        for method, model in methods(len(np.unique(y)) - 1).items():
            slow = isinstance(model, NeighborhoodComponentsAnalysis)
            found = [accuracy(model, X, y, seed) for seed in range(1 if slow else 3)]
            start = time.process_time()
            model.fit(StandardScaler().fit_transform(X), y)
            seconds = time.process_time() - start
            print(f"  {method:40s} {np.mean(found):.3f} +- {np.std(found):.3f}   {seconds:.3f} s")


if __name__ == "__main__":
    main()
