"""Each term of the bounds of what a Hebbian run is read out by, where the truth needs it."""

import numpy as np
import pytest
from contracts import generator

from mercer.fitting.certificate import Rounding, certify
from mercer.hebbian.passes import distances, nystroem_pairs
from mercer.operators import DenseOperator

SINGLE = float(np.finfo(np.float32).eps)
# What a product in single precision is taken to be off by, as a share of the first eigenvalue.
OFF = 10 * SINGLE


@pytest.mark.parametrize("seed", range(5))
def test_residuals_of_products_in_single_precision(seed):
    """The matrix has no more eigenvalues than there are vectors: nothing is left but rounding."""
    rng = generator(seed, 1)
    U, _ = np.linalg.qr(rng.standard_normal((50, 3)))
    values = np.array([3.0, 2.0, 1.0])
    K = (U * values) @ U.T
    V = np.linalg.qr(U + 1e-3 * rng.standard_normal(U.shape))[0].astype(np.float32)
    pairs = nystroem_pairs(DenseOperator(K), V, (K @ V).astype(np.float32), 3)
    found = np.asarray(pairs.vectors, float)
    residuals = np.linalg.norm(K @ found - found * pairs.values, axis=0)
    assert np.all(residuals <= pairs.residuals)
    assert residuals.max() > SINGLE / 10, "the case is one of rounding"


@pytest.mark.parametrize("seed", range(5))
def test_residuals_of_what_the_vectors_leave_out(seed):
    """At most the rest of the trace, as far as the result is outside of the vectors."""
    rng = generator(seed, 2)
    U, _ = np.linalg.qr(rng.standard_normal((30, 30)))
    K = (U * 0.5 ** np.arange(30)) @ U.T
    V, _ = np.linalg.qr(U[:, :4] + 0.1 * rng.standard_normal((30, 4)))
    pairs = nystroem_pairs(DenseOperator(K), V, K @ V, 3)
    residuals = np.linalg.norm(K @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
    assert np.all(residuals <= pairs.residuals) and residuals.max() > 1e-6


def test_more_is_found_than_the_matrix_has():
    """One product came out too long, another too short: the sum shows the difference."""
    off, K = 1e-3, np.eye(2)
    pairs = nystroem_pairs(DenseOperator(K), np.eye(2), np.diag([1 + 2 * off, 1 - off]), 2)
    residuals = np.linalg.norm(K @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
    assert np.all(residuals <= pairs.residuals + 1e-12)


def test_products_of_which_rounding_took_a_part():
    """A quotient is too small, and the residual, of the same size, came out as zero."""
    K = np.array([[1 + OFF, OFF], [OFF, 1 - OFF]])
    V, Z = np.eye(2, 1, dtype=np.float32), np.array([[1.0], [0.0]], np.float32)
    pairs = nystroem_pairs(DenseOperator(K), V, Z, 1)
    certificate = certify(pairs, 2, 2.0, (Rounding(),), definite=True)
    assert certificate.eigenvalue_upper[0] >= np.linalg.eigvalsh(K)[1]


@pytest.mark.parametrize("sign", [-1, 1])
def test_distances_have_the_rounding_of_the_products(sign):
    """Of an indefinite matrix values are only near some eigenvalue."""
    V, Z = np.eye(3, 2, dtype=np.float32), np.array([[1, 0], [0, -2], [0, 0]], np.float32)
    around, least = distances(V, Z, np.array([1.0]))
    assert around[0] >= abs(sign * OFF * 2.0) - 1e-12 and least == -2.0
    Z[2, 0] = 0.25
    assert distances(V, Z, np.array([1.5]))[0][0] >= 0.75
