"""Landmarks, features and columns: the m x m eigenproblem of moments."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..bases import Basis, ColumnBasis, FeatureBasis
from ..bases.points import JUDGES
from ..bases.staging import Factor, Stages, inverse_eigenvalues
from ..compute import is_sparse, to_numpy
from ..compute.arrays import Array
from ..operators import DenseOperator
from ..solvers import Eigenpairs
from ..solvers.base import peak_signs
from . import remainder
from .base import SummedProblem
from .certificate import Certificate, projection_certificate, residual_certificate
from .expansion import KernelExpansion
from .moments import Moments
from .remainder import (
    BLOCK,
    PAIR_STEP,
    Remainder,
    block_rows,
    feature_remainder,
    landmark_remainder,
    pair_count,
    paired_remainder,
)
from .summing import LATE_CONDITION, late_blocks, leading_columns

# What single-precision rows were seen to do to eigenvalues, relative to the total: up
# to 2e-7. The certificate allows for five times that.
SINGLE_ROUNDING = 1e-6

# Rows for each landmark from which it is worth a search to leave out some of them.
MANY_ROWS = 20

# Distance of the mean from the origin, in deviations of the rows, beyond which no digit is left.
FARTHEST = 1e15

# Safety factor on the rounding of coordinates.
COORDINATE_ROUNDING = 4.0

# Share of the budget that rows which the basis is judged on may take, and floats for each of
# them beside its features: its kernel with a block of others, twice.
WITNESS_SHARE, PAIR_WIDTH = 8, 2 * BLOCK

EPS = float(np.finfo(np.float64).eps)


def reduced_problem(
    basis: Basis,
    X: Array,
    moments_of: Callable[[Any], Moments],
    center: bool = True,
    sample: Callable[[], Any] | None = None,
    count: int | None = 0,
) -> "ReducedProblem":
    """The m x m eigenproblem of rows that are met in any way.

    Parameters
    ----------
    basis : Basis
    X : array
        Some of the rows, for their type.
    moments_of : callable
        ``moments_of(W)``: moments of the coordinates of all rows, for W with W' G W = I or
        `Stages` of it.
    center : bool
    sample : callable or None
        ``sample()``, called after `moments_of`: rows drawn uniformly without replacement and
        independently of the basis, on which the certificate judges what it leaves out.
    count : int or None
        Rows in all; None for many. What a whitener saves for each of them is worth a search.
    """
    many = count is None or count >= MANY_ROWS * max(basis.size, JUDGES)
    whitener, way = basis.whitener_for(X, 1 / LATE_CONDITION, many)
    rounding = EPS * basis.size
    if basis.precision(X) == np.float32:
        # Directions that are left out here hold less than the rounding of the data.
        whitener = way = leading_columns(whitener)
        rounding = SINGLE_ROUNDING
    return ReducedProblem(basis, whitener, moments_of(way), center, rounding, sample, way)


class ReducedProblem(SummedProblem):
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
    sample : callable or None
        As in `reduced_problem`.
    way : array, Stages or None
        How W was applied; None for W itself.
    """

    #: What pairs of rows are drawn by.
    seed: int = 0
    #: Coordinates of all rows, (n, k), where they are few enough to be kept.
    coordinates: Any = None

    def __init__(
        self,
        basis: Basis,
        whitener: Any,
        moments: Moments,
        center: bool = True,
        rounding: float = 0.0,
        sample: Callable[[], Any] | None = None,
        way: Any = None,
    ):
        self.basis, self.whitener, self.moments, self.center = basis, whitener, moments, center
        self.rounding, self.sample = rounding, sample
        self.way = whitener if way is None else way
        if not np.isfinite(moments.scatter).all() or not np.isfinite(moments.energy):
            raise ValueError(
                f"{basis.kernel!r} gives values that are not finite on these data. Scale the data "
                "or change the kernel's parameters."
            )
        # Where the rows were: a device decomposes it far faster.
        matrix = moments.scatter if center else moments.about_zero()
        self.operator = DenseOperator(basis.engine.asarray(matrix))

    @property
    def weight(self) -> float:
        """Number of rows, each as often as its weight says."""
        return float(self.moments.count)

    def overshoots(self, share: float) -> bool:
        """Whether rows are longer in the span than they are: an indefinite kernel makes them so."""
        return self.basis.exact_norms and self.moments.overshoots(share)

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
        Q = to_numpy(pairs.vectors) * some
        A = Q if self.whitener is None else self.whitener @ Q
        mean = self.moments.mean if self.center else np.zeros(self.size)
        b = mean if self.whitener is None else self.whitener @ mean
        metric = np.zeros((1 + Q.shape[1], 1 + Q.shape[1]))
        metric[0, 0] = mean @ mean
        metric[0, 1:] = metric[1:, 0] = mean @ Q
        metric[1:, 1:] = np.diag(some.astype(float)) if pairs.ritz else Q.T @ Q
        frame = np.hstack([b[:, None], A])
        return KernelExpansion(self.basis, frame, metric), self.certificate(pairs)

    def known_scores(self, pairs: Eigenpairs) -> Any:
        """Scores of all rows, where their coordinates were kept."""
        if self.coordinates is None:
            return None
        Q = to_numpy(pairs.vectors) * (pairs.values > 0)
        S = self.coordinates @ Q
        return S - self.moments.mean @ Q if self.center else S

    def certificate(self, pairs: Eigenpairs) -> Certificate:
        """What the span leaves out, rounding, and the sampled rows."""
        return projection_certificate(
            pairs, self.total, self.lost, self.slack, self.remainder, *self.judgment()
        )

    def judgment(self) -> tuple[bool, bool]:
        """Whether what the span leaves out is a bound, and whether the kernel is indefinite."""
        exact, definite = self.basis.exact_norms, self.basis.kernel.definite
        if definite or not exact:
            return exact and definite, False
        # What a span leaves out of an indefinite kernel bounds nothing.
        return False, bool(2 * self.lost < -self.slack or self.basis.is_indefinite())

    @property
    def lost(self) -> float:
        """The trace of what the span leaves out; negative by rounding, or if it has no such."""
        return float(self.moments.energy) - self.moments.projected_energy

    @cached_property
    def slack(self) -> float:
        """What rounding may change an eigenvalue by.

        In direction j of the basis, with eigenvalue l_j and energy e_j of the rows, rounding u of
        kernel values changes the basis by u tr G / l_j, and the rows by u sqrt(e tr G / l_j),
        where e is their energy in all. Rows whitened after they are summed have the rounding of
        the sums, whose size is sum l_i s_i with s the centered energy, over l_j; its signs vary.
        """
        u, energy = max(EPS, self.basis.rounding()), abs(self.scale)
        slack = (self.rounding + u) * max(abs(self.total), energy)
        if self.whitener is not None and self.whitener.size:
            spread = np.abs(np.diagonal(self.moments.scatter))
            slack += COORDINATE_ROUNDING * self._early_rounding(u, energy, spread)
            slack += COORDINATE_ROUNDING * EPS * self._late_rounding(spread)
        # More energy in the span than there is: rounding was worse than that.
        return max(slack, 2 * (self.moments.projected_energy - energy))

    def _early_rounding(self, u: float, energy: float, spread: np.ndarray) -> float:
        """Rounding u of kernel values in the coordinates."""
        moments = self.moments
        if isinstance(self.way, Factor):
            # That of the factor is as if G were wrong by m eps of its trace. Over eigenvectors
            # the second sum is at most the root of their number times the first.
            u, trace = max(u, self.size * EPS), self.way.trace
            weights = max(self.way.energy_of_weights(moments.about_zero()), 0.0)
            return u * (trace * weights + np.sqrt(energy * trace * self.size * weights))
        inverse = inverse_eigenvalues(self.whitener)
        along = spread + moments.count * moments.mean**2
        trace = float(np.sum(1 / inverse))
        if isinstance(self.way, Stages):
            trace = max(trace, self.way.trace)
        rows = np.sqrt(energy) * np.sqrt(trace)
        return u * float(trace * (inverse @ along) + rows * np.sqrt(along * inverse).sum())

    def _late_rounding(self, spread: np.ndarray) -> float:
        """Rounding of sums that were whitened after, in units of eps.

        Of two parts, products of one with the other are at most as bad as both.
        """
        if self.coordinates is not None:
            return 0.0
        blocks = late_blocks(self.way)
        parts = np.split(spread, np.cumsum([W.shape[1] for W in blocks])[:-1])
        if isinstance(self.way, Factor):
            sums = np.array([part.sum() for part in parts])
            return len(blocks) * float(sums @ self.way.conditions)
        worst = 0.0
        for W, s in zip(blocks, parts, strict=False):
            inverse = inverse_eigenvalues(W)
            worst += len(blocks) * float((s / inverse).sum() * np.linalg.norm(inverse))
        return worst

    @cached_property
    def remainder(self) -> Remainder | None:
        """What rows of the sample leave outside the span, or their features get wrong."""
        # What is left of an indefinite kernel bounds nothing.
        if self.sample is None or not self.basis.kernel.definite:
            return None
        rows = self.sample()
        if isinstance(self.basis, FeatureBasis):
            return self._of_features(self.basis, rows)
        return self._of_span(rows)

    def _of_span(self, rows) -> Remainder:
        """What these rows leave outside the span."""
        basis, dtype = self.basis, np.dtype(np.float64)
        rows = self._in_type(fewer_rows(rows, self._witnesses(PAIR_WIDTH)), dtype)
        trace, largest = self.lost + self.slack, self.moments.largest
        coordinates, store = self._coordinates_of(rows, dtype), basis.engine.memory // WITNESS_SHARE
        return landmark_remainder(
            basis.kernel,
            rows,
            coordinates,
            self.count,
            trace,
            largest,
            block_rows(basis.size),
            store,
        )

    def _of_features(self, basis: FeatureBasis, rows) -> Remainder | None:
        """What the features of these rows get wrong: all pairs of few rows, some of many."""
        n = rows.shape[0]
        # Features are many, and wrong by far more than their rounding.
        dtype = basis.precision(np.empty((0, 1), np.float32))
        largest = self.moments.largest + max(self.moments.largest, basis.entry_size())
        width = basis.stream_width() + PAIR_WIDTH
        if n == self.count and n <= min(remainder.PAIRED_ROWS, self._witnesses(width)):
            rows = self._in_type(rows, dtype)
            coordinates = self._coordinates_of(rows, dtype)
            return feature_remainder(basis.kernel, rows, coordinates, largest)
        if not np.isfinite(largest):
            return None  # no sample says anything of what nothing bounds

        def errors(i, j):
            return basis.pair_errors(rows[i], rows[j], dtype)

        pairs = pair_count(n, basis.size, rows.shape[1])
        step = min(PAIR_STEP, self._witnesses(width + 8 * rows.shape[1]))
        return paired_remainder(errors, n, self.count, largest, self.seed, pairs, step)

    def _in_type(self, rows, dtype):
        """Rows where they are computed with, in one precision."""
        if is_sparse(rows):
            return rows.astype(dtype, copy=False)
        return self.basis.engine.asarray(rows, dtype)

    def _coordinates_of(self, rows, dtype) -> Callable[[slice], Any]:
        """A function of slices of some rows: kept coordinates, or made anew."""
        if self.coordinates is not None and rows.shape[0] == self.coordinates.shape[0]:
            return self.coordinates.__getitem__
        W = None if self.whitener is None else self.basis.engine.asarray(self.whitener, dtype)
        return self.basis.block_products(rows, W, dtype=dtype)

    def _witnesses(self, width: int) -> int:
        """Rows of so many numbers that fit a small share of the budget."""
        return max(2, self.basis.engine.memory // (WITNESS_SHARE * 8 * width))


def fewer_rows(X, most: int):
    """At most so many of some rows, drawn without replacement."""
    n = X.shape[0]
    return X if n <= most else X[np.random.default_rng(n).choice(n, most, replace=False)]


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

    def __init__(
        self,
        basis: ColumnBasis,
        moments: Moments,
        center: bool = True,
        X: Array | None = None,
    ):
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
            expansion = expansion.stretched(signs)
            S *= signs / np.sqrt(np.where(pairs.values > 0, pairs.values, 1.0))
            self.vectors = S
        # A vector is its scores over sqrt(l), and their rounding is that of the largest.
        top = float(np.max(pairs.values, initial=0.0))
        growth = np.sqrt(top / np.where(pairs.values > 0, pairs.values, top or 1.0))
        rounded = replace(pairs, residuals=pairs.residuals + self.rounding * self.total * growth)
        return expansion, residual_certificate(rounded, self.total)
