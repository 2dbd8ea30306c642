"""From a basis and data to an operator, and from its eigenpairs to the expansion."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from .bases import ColumnBasis, FourierBasis, TrigonometricMoments
from .certificate import (
    Certificate,
    projection_certificate,
    residual_certificate,
    series_certificate,
)
from .compute import on_device_of, to_numpy
from .expansion import KernelExpansion
from .moments import Moments
from .operators import CenteredGram, DenseOperator, ToeplitzCovariance
from .solvers import Eigenpairs
from .solvers.base import peak_signs

# What single-precision rows were seen to do to eigenvalues, relative to the total: up
# to 2e-7. The certificate allows for five times that.
SINGLE_ROUNDING = 1e-6

# Condition of the basis up to which kernel rows are whitened after they are summed, a third of
# the work: rounding of the sums grows by the condition, to 2e-8 of the total.
LATE_CONDITION = 1e8

# Rounding of one level of a fast Fourier transform, with a margin.
FFT_ROUNDING = 4 * np.finfo(float).eps

# Distance of the mean from the origin, in deviations of the rows, beyond which no digit is left.
FARTHEST = 1e15

# Blocks of rows whose products add up in place before their moments are merged.
MERGED_BLOCKS = 8


def reduced_problem(basis, X, moments_of, center: bool = True):
    """The m x m eigenproblem of rows that are met in any way.

    Parameters
    ----------
    basis : Basis
    X : array
        Some of the rows, for their type.
    moments_of : callable
        ``moments_of(W)``: moments of the coordinates of all rows, for W with W' G W = I.
    center : bool
    """
    whitener = basis.whitener(np.float64)
    rounding = np.finfo(float).eps * basis.size
    if basis.precision(X) == np.float32:
        # Directions that are left out here hold less than the rounding of the data.
        whitener = leading_columns(whitener)
        rounding = SINGLE_ROUNDING
    if whitens_late(whitener):
        rounding = max(rounding, np.finfo(float).eps * condition(whitener))
    return ReducedProblem(basis, whitener, moments_of(whitener), center, rounding)


class GramProblem:
    """Kernel PCA with all points as the basis: the eigenproblem of H K H.

    With U, L its eigenpairs the directions have weights A = H U L^{-1/2} and the mean
    has weights b = 1/n.
    """

    def __init__(self, basis, center: bool = True):
        self.basis, self.center = basis, center
        self.operator = CenteredGram(basis, center)

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.basis.size

    @property
    def size(self) -> int:
        """Number of components there can be."""
        return self.basis.size

    def overshoots(self, share: float) -> bool:
        """Nothing is projected."""
        return False

    def is_zero(self) -> bool:
        """Whether there is nothing to decompose, since all rows are equal."""
        return self.center and self.basis.is_constant()

    @cached_property
    def total(self) -> float:
        """The trace: the sum of all eigenvalues."""
        return self.operator.trace()

    @property
    def scale(self) -> float:
        """The size of the numbers that the trace is a sum of, for what counts as zero."""
        return float(abs(self.basis.diagonal()).sum())

    def assemble(self, pairs: Eigenpairs) -> tuple[KernelExpansion, Certificate]:
        """The expansion and the certificate of canonical eigenpairs."""
        n, r = pairs.vectors.shape
        frame = self.basis.engine.zeros((n, 1 + r))
        some = pairs.values > 0
        frame[:, 1:] = self.basis.engine.asarray(pairs.vectors)
        A = frame[:, 1:]
        A *= on_device_of(
            np.where(some, 1 / np.sqrt(np.where(some, pairs.values, 1.0)), 0.0), frame
        )
        metric = np.zeros((1 + r, 1 + r))
        metric[1:, 1:] = np.diag(some.astype(float))
        if self.center:
            frame[:, 0] = 1.0 / n
            A -= A.mean(axis=0)
            means = self.operator.row_means
            metric[0, 0] = float(means.mean())
            metric[0, 1:] = metric[1:, 0] = to_numpy(means @ A)
        certificate = residual_certificate(pairs, self.total)
        return KernelExpansion(self.basis, frame, metric), certificate


class ReducedProblem:
    """Kernel PCA in the span of a small basis: the eigenproblem of m x m moments.

    With W' G W = I the rows have orthonormal coordinates y = W' k(Z, x). Their mean and
    scatter give the eigenpairs S, Q; the directions have weights W Q and the mean W y.

    Parameters
    ----------
    basis : Basis
    whitener : array of shape (m, k) or None
        W; None where the basis is orthonormal.
    moments : Moments
        Of the coordinates of all rows.
    center : bool
    rounding : float
        Relative rounding of the coordinates, for the certificate.
    """

    def __init__(self, basis, whitener, moments: Moments, center=True, rounding=0.0):
        self.basis, self.whitener, self.moments, self.center = basis, whitener, moments, center
        self.rounding = rounding
        self.operator = DenseOperator(moments.scatter if center else moments.about_zero())

    @property
    def count(self) -> int:
        """Number of rows."""
        return round(self.moments.count)

    @property
    def size(self) -> int:
        """Number of components there can be: the rank of the basis."""
        return self.operator.shape[0]

    def overshoots(self, share: float) -> bool:
        """Whether rows are longer in the span than they are: an indefinite kernel makes them so."""
        return self.basis.exact_norms and self.moments.overshoots(share)

    def is_zero(self) -> bool:
        """Rounding of a few basis vectors does no harm."""
        return False

    @property
    def total(self) -> float:
        """The total variance times n, or a little more: the mean is known in the basis only."""
        mean = self.moments.count * float(self.moments.mean @ self.moments.mean)
        return self.moments.energy - (mean if self.center else 0.0)

    @property
    def scale(self) -> float:
        """The size of the numbers that the trace is a sum of, for what counts as zero."""
        return abs(self.moments.energy)

    def assemble(self, pairs: Eigenpairs) -> tuple[KernelExpansion, Certificate]:
        """The expansion and the certificate of canonical eigenpairs."""
        some = pairs.values > 0
        Q = pairs.vectors * some
        A = Q if self.whitener is None else self.whitener @ Q
        mean = self.moments.mean if self.center else np.zeros(self.size)
        b = mean if self.whitener is None else self.whitener @ mean
        metric = np.zeros((1 + Q.shape[1], 1 + Q.shape[1]))
        metric[0, 0] = mean @ mean
        metric[0, 1:] = metric[1:, 0] = mean @ Q
        metric[1:, 1:] = np.diag(some.astype(float))
        frame = np.hstack([b[:, None], A])
        lost = self.moments.lost_energy
        # What a span leaves out of an indefinite kernel bounds nothing.
        exact = self.basis.exact_norms and self.basis.kernel.definite
        certificate = projection_certificate(pairs, self.total, lost, exact, self.rounding)
        return KernelExpansion(self.basis, frame, metric), certificate


class ColumnProblem(ReducedProblem):
    """Linear kernel PCA in the space of the rows: nothing is lost.

    Parameters
    ----------
    basis : ColumnBasis
    moments : Moments
        Of all rows.
    center : bool
    X : array of shape (n, d) or None
        The rows, where eigenvectors are wanted.
    """

    def __init__(self, basis: ColumnBasis, moments: Moments, center: bool = True, X=None):
        super().__init__(basis, None, moments, center)
        self.X, self.vectors = X, None
        # Rows are added up about their mean, from which they differ by less than they are.
        mean, total = self._energy_of_mean, self.total
        far = np.sqrt(mean / total) if total > FARTHEST**-2 * mean else FARTHEST
        self.rounding = np.finfo(float).eps * (basis.size + 4 * far)

    @property
    def total(self) -> float:
        """The trace; of the scatter alone, since k(x, x) holds the mean as well."""
        spread = float(np.trace(self.moments.scatter))
        return spread if self.center else spread + self._energy_of_mean

    @property
    def _energy_of_mean(self) -> float:
        return self.moments.count * float(self.moments.mean @ self.moments.mean)

    def is_zero(self) -> bool:
        """Whether the rows differ by no more than rounding of their mean."""
        return self.total <= float((4 * np.finfo(float).eps) ** 2) * self._energy_of_mean

    def assemble(self, pairs: Eigenpairs) -> tuple[KernelExpansion, Certificate]:
        """The expansion and the certificate; signs and eigenvectors as of the n x n problem."""
        expansion, _ = super().assemble(pairs)
        if self.X is not None:
            S = to_numpy(expansion.scores(self.X))
            signs = peak_signs(S)
            expansion = expansion.signed(signs)
            S *= signs / np.sqrt(np.where(pairs.values > 0, pairs.values, 1.0))
            self.vectors = S
        rounded = replace(pairs, residuals=pairs.residuals + self.rounding * self.total)
        return expansion, residual_certificate(rounded, self.total)


class FourierProblem:
    """Kernel PCA on a grid of frequencies: the eigenproblem of the covariance of its features.

    Parameters
    ----------
    basis : FourierBasis
    sums : TrigonometricMoments
        Of all rows.
    center : bool
    """

    def __init__(self, basis: FourierBasis, sums: TrigonometricMoments, center: bool = True):
        self.basis, self.sums, self.center = basis, sums, center
        self.operator = ToeplitzCovariance(
            basis.frequencies.index, basis.amplitudes, sums, center, basis.engine.threads
        )

    @property
    def count(self) -> int:
        """Number of rows."""
        return round(self.sums.count)

    @property
    def size(self) -> int:
        """Number of components there can be: the features."""
        return self.operator.shape[0]

    def overshoots(self, share: float) -> bool:
        """The features are orthonormal."""
        return False

    def is_zero(self) -> bool:
        """Not known before the fit."""
        return False

    @property
    def scale(self) -> float:
        """Sum of k(x, x) over the rows."""
        return self.sums.count * self.basis.top

    @property
    def total(self) -> float:
        """The trace: the sum of all eigenvalues."""
        mean = self.operator.mean
        return self.scale - (self.sums.count * float(mean @ mean) if self.center else 0.0)

    @property
    def transform_slack(self) -> float:
        """What errors of the sums and rounding of the products change in eigenvalues at most.

        An error delta of every t_q changes the matrix by at most delta k(0), the sum of the
        weights, in Frobenius norm, and its mean by twice that.
        """
        steps = np.log2(np.prod(self.sums.sums.shape)) + 1
        return 3 * self.sums.error * self.basis.top + FFT_ROUNDING * steps * self.scale

    def assemble(self, pairs: Eigenpairs) -> tuple[KernelExpansion, Certificate]:
        """The expansion and the certificate of canonical eigenpairs."""
        some = pairs.values > 0
        A = pairs.vectors * some
        mean = self.operator.mean if self.center else np.zeros(len(A))
        metric = np.zeros((1 + A.shape[1], 1 + A.shape[1]))
        metric[0, 0], metric[0, 1:] = mean @ mean, mean @ A
        metric[1:, 0] = metric[0, 1:]
        metric[1:, 1:] = np.diag(some.astype(float))
        grid, n, slack = self.basis.frequencies, self.sums.count, self.transform_slack
        certificate = series_certificate(
            pairs, self.total, n * grid.alias + slack, n * grid.cut + slack
        )
        return KernelExpansion(self.basis, np.hstack([mean[:, None], A]), metric), certificate


def whitened(whitener, moments: Moments) -> Moments:
    """The moments of coordinates from the sum of `row_moments` over all blocks."""
    return moments.mapped(whitener) if whitens_late(whitener) else moments


def row_moments(basis, whitener, X) -> Moments:
    """Moments of the rows of X against the basis; those of blocks add up to those of all.

    ``W' (sum k k') W`` instead of ``sum (W'k) (W'k)'`` where rounding allows it: the products
    with W, two thirds of the work, are then done once and not for every row.
    """
    X = basis.engine.place(X)
    late, rows, n = whitens_late(whitener), basis.product_rows(X), X.shape[0]
    # In single precision the sums would lose what the late product magnifies.
    products = (
        basis.block_products(X, dtype=np.float64) if late else basis.block_products(X, whitener)
    )

    def moments(block):
        starts = range(block.start, block.stop, rows)
        parts = (slice(start, min(start + rows, block.stop)) for start in starts)
        energy = basis.kernel.diag(X[block]).sum()
        return Moments.of_blocks((products(part) for part in parts), energy)

    # Tasks small enough that every thread gets some.
    most = max(rows, n // (4 * basis.engine.threads))
    return basis.engine.sum_rows(moments, n, min(MERGED_BLOCKS * rows, most)).to_host()


def whitens_late(whitener) -> bool:
    """Whether rows may be whitened after they are summed."""
    return whitener is not None and condition(whitener) <= LATE_CONDITION


def condition(whitener) -> float:
    """Largest over smallest kept eigenvalue of G."""
    inverse = _inverse_eigenvalues(whitener)
    return float(inverse.max() / inverse.min()) if inverse.size else 1.0


def leading_columns(whitener):
    """The columns of W that leave the condition small enough to whiten late."""
    if whitener is None:
        return None
    inverse = _inverse_eigenvalues(whitener)
    return whitener[:, inverse <= LATE_CONDITION * inverse.min(initial=np.inf)]


def _inverse_eigenvalues(whitener):
    """1 / L from W = V L^{-1/2}, whose columns V are of unit length."""
    return np.einsum("ij,ij->j", whitener, whitener)
