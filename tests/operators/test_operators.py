"""Operators: products, matrices, traces and starts against dense centering."""

import numpy as np
import oracle
import pytest
from contracts import check_draft, check_operator, generator

from mercer.bases import AllPoints, PrecomputedBasis
from mercer.compute import LocalEngine
from mercer.kernels import RBF, Polynomial
from mercer.operators import CenteredGram, DenseOperator, Multiple, SymmetricOperator, base

ENGINE = LocalEngine(10**6, 2)


def gram(n=130, center=True, d=3, gamma=0.3):
    X = generator(n, d).standard_normal((n, d))
    K = oracle.kernel_matrix("rbf", X, gamma=gamma)
    basis = AllPoints().build(RBF(gamma=gamma), X, ENGINE, generator(1))
    return CenteredGram(basis, center), oracle.center(K) if center else K, K


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("n", [6, 64, 130, 400])
def test_contract(n, center):
    operator, A, _ = gram(n, center)
    check_operator(operator, A)


def test_dense_operator():
    A = generator(1).standard_normal((20, 20))
    A = A @ A.T
    operator = DenseOperator(A)
    check_operator(operator, A)
    operator.to_dense()[...] = 0
    assert np.abs(operator.A).max() > 0
    assert operator.draft is None


class ByProducts(SymmetricOperator):
    """The least that an operator must have: all else comes from the base class."""

    definite = False

    def __init__(self, A):
        self.A, self.shape = A, A.shape

    def __matmul__(self, V):
        return self.A @ V

    def to_dense(self):
        return self.A.copy()


@pytest.mark.parametrize("wrap", [ByProducts, lambda A: Multiple(DenseOperator(-A), -1.0)])
def test_what_the_base_class_answers(wrap):
    A = generator(3).standard_normal((17, 17))
    check_operator(wrap(A + A.T), A + A.T)


def test_a_negated_gram_matrix_and_its_draft():
    operator, A, _ = gram(90)
    check_operator(Multiple(operator, -1.0), -A)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("first", ["product", "means", "dense", "diagonal"])
def test_row_means_come_from_wherever(center, first):
    """The means ride along with the first product, or come by themselves: the same numbers."""
    operator, A, K = gram(center=center)
    if first == "product":
        operator @ generator(2).standard_normal((130, 2))
    elif first == "dense":
        operator.to_dense()
    elif first == "diagonal":
        operator.diagonal()
    # Asked for before any product in double precision, the draft's means are given.
    atol = 1e-12 if center and first in ("product", "dense") else 1e-6
    np.testing.assert_allclose(operator.row_means, K.mean(axis=0), rtol=0, atol=atol)
    np.testing.assert_allclose(operator.diagonal(), np.diag(A), rtol=0, atol=4 * atol)
    assert np.sum(operator.diagonal()) == pytest.approx(np.trace(A), rel=max(atol, 1e-12))
    index = np.array([5, 0, 17])
    np.testing.assert_allclose(operator.rows(index), A[index], rtol=0, atol=4 * atol)


def test_centered_operator_annihilates_constants():
    operator, _, _ = gram()
    ones = np.ones((130, 1))
    assert np.abs(operator @ ones).max() < 1e-12
    V = generator(3).standard_normal((130, 3))
    np.testing.assert_allclose((operator @ V).mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(operator @ (V + 7), operator @ V, atol=1e-11)


def test_draft_is_the_same_operator_in_single_precision():
    operator, A, _ = gram(300)
    check_draft(operator, A)


def test_nystroem_start_is_near_the_leading_subspace():
    operator, A, _ = gram(600, d=2)
    V = operator.start(6, generator(5))
    _, U = oracle.eigenpairs(A, 2, centered=False)
    Q, _ = np.linalg.qr(V)
    assert np.linalg.norm(U - Q @ (Q.T @ U), 2) < 0.2
    np.testing.assert_allclose(V.mean(axis=0), 0, atol=1e-10 * np.abs(V).max())


@pytest.mark.parametrize("center", [True, False])
def test_start_of_a_rank_deficient_operator_is_full(center):
    X = generator(6).standard_normal((90, 1))
    basis = AllPoints().build(Polynomial(degree=1, gamma=1.0, coef0=0), X, ENGINE, generator(1))
    V = CenteredGram(basis, center).start(12, generator(7))
    assert V.shape == (90, 12) and np.linalg.matrix_rank(V) == 12
    zero = CenteredGram(PrecomputedBasis(np.zeros((30, 30)), ENGINE), center)
    V = zero.start(4, generator(8))
    assert np.linalg.matrix_rank(V) == 4


@pytest.mark.parametrize("found", [0, 1, 18])
def test_a_start_takes_what_lapack_finds(found, monkeypatch):
    """Of eigenvalues that are equal to rounding it may be none; the rest of a start is random."""
    pairs = np.ones(found), np.eye(50)[:, :found]
    monkeypatch.setattr(base, "eigh", lambda K, **few: pairs)
    assert base.sample_weights(np.eye(50), 20).shape == (50, found)
