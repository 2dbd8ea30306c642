"""Each term of the bounds of classical scaling, where the truth needs it."""

from unittest.mock import patch

import numpy as np
import oracle
import pytest
from contracts import generator

from mercer import ClassicalMDS
from mercer.mds import scaling

pytestmark = pytest.mark.filterwarnings("ignore")


def fitted(model, X):
    """The result of a fit, and what it asks the rounding of."""
    adopted, asked, adopt = [], [], ClassicalMDS._adopt
    roundings = scaling.roundings_of

    def watched(self, result, *others):
        adopted.append(result)
        return adopt(self, result, *others)

    def noted(basis, size, evidence, trace):
        asked.append((size, trace))
        return roundings(basis, size, evidence, trace)

    with (
        patch.object(ClassicalMDS, "_adopt", watched),
        patch.object(scaling, "roundings_of", noted),
    ):
        model.fit(X)
        result = adopted[0]
        result.problem.operator.means_rounding = 1e-3
        result.problem.result(result.pairs)
    return result, asked


@pytest.mark.parametrize("seed", range(4))
def test_rounding_is_a_share_of_squared_distances_and_of_their_shift(seed):
    """Entries shift - d^2 / 2 are differences of numbers, all of which are rounded."""
    rng = generator(seed, 1)
    X = np.repeat(rng.standard_normal((6, 3)), 5, axis=0)
    result, asked = fitted(ClassicalMDS(2, dissimilarity="cityblock", random_state=0), X)
    D = np.abs(X[:, None] - X[None]).sum(axis=2)
    shift = float(result.problem.basis.kernel.shift)
    norm = np.linalg.norm(D**2 / 2, 2) + len(X) * abs(shift)
    assert shift > 0 and asked[0][0] >= norm * (1 - 1e-12)
    # Means of the rows that are off by a share leave the total unknown by their sum.
    means = np.abs(D**2 / 2).mean(axis=1).sum() + len(X) * abs(shift)
    assert asked[1][1] >= 1e-3 * means * (1 - 1e-12)


def test_rounding_of_points_that_are_all_as_far_from_each_other():
    """No row has a larger sum than the others: what is stated is the norm, and no more."""
    n = 12
    D = np.ones((n, n)) - np.eye(n)
    result, asked = fitted(ClassicalMDS(2, dissimilarity="precomputed", random_state=0), D)
    shift = float(result.problem.basis.kernel.shift)
    assert asked[0][0] == pytest.approx(np.linalg.norm(D**2 / 2, 2) + n * abs(shift))


@pytest.mark.parametrize("seed", range(4))
def test_residuals_of_values_that_were_clipped(seed):
    """Distances that no points have: a negative eigenvalue is stated as zero."""
    rng = generator(seed, 2)
    D = rng.uniform(1, 3, (6, 6))
    D = (D + D.T) * (1 - np.eye(6))
    D[0, 1] = D[1, 0] = 30.0  # farther than by way of any other point
    result, _ = fitted(ClassicalMDS(6, dissimilarity="precomputed", random_state=0), D)
    B = oracle.center(-(D**2) / 2)
    U, values = result.pairs.vectors, result.eigenvalues
    residuals = np.linalg.norm(B @ U - U * values[: U.shape[1]], axis=0)
    assert residuals.max() > 0.1, "the case is one of negative eigenvalues"
    assert np.all(residuals <= result.certificate.residuals[: U.shape[1]] + 1e-9)
