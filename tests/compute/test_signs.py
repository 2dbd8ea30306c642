"""Signs: an exact and an approximate fit of the same rows are no mirror images."""

import numpy as np
import pytest
from contracts import generator
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from mercer import KernelPCA
from mercer.bases import Landmarks, RandomFeatures
from mercer.files import open_source

DATA = {
    "iris": lambda: load_iris().data,
    "wine": lambda: StandardScaler().fit_transform(load_wine().data),
    "cancer": lambda: StandardScaler().fit_transform(load_breast_cancer().data),
    "digits": lambda: load_digits().data[:900],
    "skewed": lambda: generator(71).exponential(size=(700, 3)),
}
BASES = {"landmarks": Landmarks(120), "features": RandomFeatures(800)}


def peaks(S):
    """The score of largest modulus of every component, and how far it is ahead of the other end."""
    high, low = S.max(axis=0), -S.min(axis=0)
    return np.where(high > low, high, -low), np.abs(high - low) / np.maximum(high, low)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("name", DATA)
def test_exact_and_approximate_fits_agree(name, basis):
    X = DATA[name]()
    exact = KernelPCA(4, kernel="rbf", gamma="median").fit(X)
    few = KernelPCA(4, kernel="rbf", gamma=exact.gamma_, basis=BASES[basis], random_state=0).fit(X)
    E, S = exact.transform(X), few.transform(X)
    assert (peaks(E)[0] > 0).all() and (peaks(S)[0] > 0).all(), "scikit-learn's convention"
    cosine = np.sum(E * S, axis=0) / np.linalg.norm(E, axis=0) / np.linalg.norm(S, axis=0)
    # A component that the approximation has found, and whose ends are not equally far.
    sure = (np.abs(cosine) > 0.95) & (peaks(E)[1] > 0.1)
    assert (cosine[sure] > 0).all()


def test_every_way_to_the_same_rows_has_the_same_signs(tmp_path):
    X = generator(72).exponential(size=(3000, 3))
    np.save(tmp_path / "x.npy", X)
    settings = {"kernel": "rbf", "gamma": 0.3, "basis": "landmarks", "random_state": 0}
    kinds = [X, open_source(tmp_path / "x.npy"), lambda: iter([X[:7], X[7:]]), sparse.csr_matrix(X)]
    scores = [KernelPCA(3, **settings).fit(kind).transform(X[:50]) for kind in kinds]
    for S in scores[1:]:
        assert (np.sum(S * scores[0], axis=0) > 0).all()
