"""The row in the middle of a walk is a usual one."""

import numpy as np
import pytest
from contracts import generator

from mercer import KernelPCA
from mercer.plot.components import walk


@pytest.mark.parametrize("basis", ["points", "landmarks"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern", "rational_quadratic"])
@pytest.mark.parametrize("seed", range(3))
def test_the_middle_of_a_walk_is_among_most_rows(kernel, basis, seed):
    """Also in a table with a few extreme rows, where regression on scores extrapolates."""
    rng = generator(71, seed)
    n, d = 600, int(rng.integers(2, 6))
    X = np.column_stack([rng.lognormal(10, 0.6, n), rng.standard_normal((n, d))])
    extreme = rng.choice(n, rng.integers(3, 8), replace=False)
    X[extreme, 0] *= 40
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = KernelPCA(8, kernel=kernel, basis=basis, random_state=0).fit(X)
    low, high = np.quantile(np.delete(X, extreme, axis=0), [0.02, 0.98], axis=0)
    (middle,) = walk(model, seed, [0.0])
    assert np.all((low <= middle) & (middle <= high))
