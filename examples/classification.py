"""Digits by the nearest neighbor among 64 polynomial kernel components, as Shi, Guo and Xue do.

    python examples/classification.py

Kernel PCA is one step of a scikit-learn pipeline; its degree is chosen by cross-validation like any
other parameter. Needs no files: the digits come with scikit-learn.
"""

from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from mercer import KernelPCA


def main():
    X, y = load_digits(return_X_y=True)
    train, test, train_y, test_y = train_test_split(
        X / 16, y, test_size=0.4, random_state=0, stratify=y
    )
    nearest = KNeighborsClassifier(n_neighbors=1)
    kernel = KernelPCA(n_components=64, kernel="poly", gamma=1.0, coef0=0, random_state=0)
    search = GridSearchCV(
        make_pipeline(kernel, nearest), {"kernelpca__degree": [1, 2, 3, 4, 5]}, cv=3
    )
    search.fit(train, train_y)
    for degree, score in zip(
        search.cv_results_["param_kernelpca__degree"],
        search.cv_results_["mean_test_score"],
        strict=True,
    ):
        print(f"degree {degree}: {100 * (1 - score):.2f} % errors in cross-validation")
    linear = make_pipeline(PCA(40), clone(nearest)).fit(train, train_y)
    pixels = clone(nearest).fit(train, train_y)
    print(f"test errors, {len(test)} digits:")
    for name, model in (
        (f"64 components of degree {search.best_params_['kernelpca__degree']}", search),
        ("40 linear components", linear),
        ("pixels", pixels),
    ):
        print(f"  {name}: {100 * (1 - model.score(test, test_y)):.2f} %")


if __name__ == "__main__":
    main()
