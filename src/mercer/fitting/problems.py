"""The eigenproblems of kernel PCA: what a solver gets, and what its eigenpairs become.

A problem is complete when it is built, and never changed. All points give the n x n Gram matrix,
landmarks, features and columns the m x m moments of coordinates, a Fourier grid the covariance of
its features.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from ..bases import Basis, FourierBasis, GramBasis, PointBasis, TrigonometricMoments, Whitening
from ..compute import array_namespace, match_sparsity, on_device_of, stack_rows, to_numpy
from ..compute.arrays import Array, dtype_name, is_sparse
from ..compute.linalg import cholesky, peak_signs, self_product
from ..kernels.base import check_values, on_host
from ..operators import CenteredGram, DenseOperator, ToeplitzCovariance
from ..solvers import Eigenpairs, canonical
from .certificate import (
    INDEFINITE_SHARE,
    Certificate,
    Rounding,
    certify,
    narrowed,
    projection_certificate,
)
from .expansion import KernelExpansion
from .moments import Moments
from .remainder import SINGLE_ENTRY, Remainder, judge, paired_remainder

# Rounding of an entry of the kernel matrix beside that of its inner product, and of sums over n
# rows over sqrt(n), in units of eps.
ENTRY_ROUNDING, SUM_ROUNDING = 8.0, 4.0
# Times that where rows have weights: far rows of little weight round the mean of the others.
WEIGHTED_ROUNDING = 16.0
# Rows among which negative eigenvalues are looked for: of a kernel matrix by a Cholesky factor of
# so many, where the budget holds sixteen such matrices, or fewer.
MOST_ROWS, LEAST_ROWS = 1024, 256
# Points at least that are looked at beside few rows.
FEWEST_POINTS = 32
# Energy of rows in a span beyond their own, as a share, that no definite kernel gives them, nor
# rounding in single precision.
LONGER = 1e-2
# Distance of the mean from the origin, in deviations of the rows, beyond which no digit is left.
FARTHEST = 1e15
# Rounding of one level of a fast Fourier transform, with a margin.
FFT_ROUNDING = 4 * np.finfo(float).eps

# Rounding of a number to float16, and pairs of rows by which it is judged.
HALF, HALF_PAIRS = 2.0**-11, 2**18

EPS, SINGLE_EPS = (float(np.finfo(t).eps) for t in (np.float64, np.float32))


@dataclass(frozen=True)
class Result:
    """What the eigenpairs of a problem become.

    Attributes
    ----------
    expansion : KernelExpansion
    certificate : Certificate
    pairs : Eigenpairs
        Canonical; with all points as the basis their vectors are those of the rows.
    problem : Problem
        Whose result it is.
    vectors : array of shape (n, r) or None
        Eigenvectors of the rows, where they are known.
    """

    expansion: KernelExpansion
    certificate: Certificate
    pairs: Eigenpairs
    problem: Any
    vectors: Any = None


class Problem(ABC):
    """An eigenproblem of kernel PCA.

    Attributes
    ----------
    operator : SymmetricOperator
        The matrix to decompose.
    basis : Basis
        What the result is written in.
    center : bool
    weight : float
        Number of rows, each as often as its weight says.
    total : float
        The trace: the sum of all eigenvalues.
    scale : float
        The size of the numbers that the trace is a sum of, for what counts as zero.
    slack : float
        What rounding may change an eigenvalue by.
    """

    operator: Any
    basis: Basis
    center: bool
    weight: float
    total: float
    scale: float
    slack: float
    #: Number of rows where they have weights; else it is the sum of these.
    n_rows: int | None = None
    #: Uniform rows for the model to keep, where its basis is not all of them.
    model_rows: Any = None

    @property
    def count(self) -> int:
        """Number of rows."""
        return round(self.weight) if self.n_rows is None else self.n_rows

    @property
    def size(self) -> int:
        """Number of components there can be."""
        return self.operator.shape[0]

    def is_zero(self) -> bool:
        """Whether there is known to be nothing to decompose."""
        return False

    @contextmanager
    def session(self, reserve: int = 0, checkpoint: Any = None, **settings: bool) -> Iterator[Any]:
        """The operator with room for a solver's work; parameters as of `GramBasis.session`."""
        yield self.operator

    def completed(self, pairs: Eigenpairs, operator: Any, rng: Any) -> Eigenpairs:
        """A solver's pairs with all that is to be asked of the operator within its session."""
        return pairs

    def canonical(self, pairs: Eigenpairs, precision: str = "d") -> Eigenpairs:
        """Pairs in order, with rounding of eigenvalues clipped to zero."""
        return canonical(pairs, precision, self.slack)

    def count_to_find(self, r: int) -> int:
        """Eigenpairs to find where r are asked for: r, or all where these tell more."""
        return r

    def count_holding(self, values: np.ndarray, share: float) -> int:
        """Number of leading components that hold a share of the total; their number + 1 if none do.

        `values` are the leading eigenvalues.
        """
        return 1 + int(np.sum(np.cumsum(values) < share * self.total))

    @abstractmethod
    def result(self, pairs: Eigenpairs) -> Any:
        """The result for canonical eigenpairs of the operator; may be called again."""


@dataclass(frozen=True, eq=False)
class GramProblem(Problem):
    """Kernel PCA with all points as the basis: the eigenproblem of H K H.

    With U, L its eigenpairs the directions have weights A = H U L^{-1/2} and the mean
    has weights b = 1/n.

    Attributes
    ----------
    weights : array of shape (n,) or None
        How often each row counts.
    """

    basis: GramBasis
    center: bool = True
    weights: Array | None = None

    @cached_property
    def operator(self) -> Any:
        """H K H, or as of rows that are repeated by their weights."""
        return self._operator(self.basis)

    def _operator(self, basis: GramBasis) -> CenteredGram:
        weights = None if self.weights is None else np.asarray(self.weights, dtype=float)
        operator = CenteredGram(basis, self.center, weights)
        operator.definite = self.basis.kernel.definite  # a formed matrix does not know its kernel
        return operator

    @contextmanager
    def session(self, reserve: int = 0, checkpoint: Any = None, **settings: bool) -> Iterator[Any]:
        with self.basis.session(reserve, checkpoint, **settings) as gram:
            operator = self._operator(gram)
            yield operator
            self.operator.learn_from(operator)
        if gram.points is None and self.basis.points is not None:
            # The matrix was formed, and serves the result as well.
            vars(self)["operator"] = operator

    count = property(lambda self: self.basis.size)
    weight = property(lambda self: self.operator.weight)

    def is_zero(self) -> bool:
        """Whether all rows are equal."""
        return self.center and self.basis.is_constant()

    @cached_property
    def total(self) -> float:  # type: ignore[override]
        return float(self.operator.diagonal().sum())

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        sizes = abs(self.basis.diagonal())
        return float((sizes if self.weights is None else to_numpy(sizes) * self.weights).sum())

    @cached_property
    def slack(self) -> float:  # type: ignore[override]
        """Largest change of H K H by rounding.

        Entries of a definite kernel have a rounding of at most c sqrt(k_ii k_jj), so that the
        matrix of all of them has a norm of at most c tr K.
        """
        return self.roundings()[0].matrix

    def _size(self) -> float:
        """The sum of k(x, x), or of typical entries where these may be larger."""
        norm = 0.0 if self.basis.kernel.definite else self.operator.norm
        return max(self.scale, self.weight * self.basis.entry_size(), norm)

    def result(self, pairs: Eigenpairs) -> Result:
        """The expansion over all points; vectors as if rows were repeated by their weights."""
        if self.weights is not None:
            V = pairs.vectors / on_device_of(self.operator.weights**0.5, pairs.vectors)[:, None]
            pairs = replace(pairs, vectors=V * on_device_of(peak_signs(to_numpy(V)), V))
        pairs, points = self.with_least(pairs), self.basis.points
        used = np.float64 if points is None else self.basis.precision(points)
        rounding, definite = self.roundings(pairs), self.basis.kernel.definite
        # Rows in single precision are projected in theirs, and a mean may be in it.
        ends = {"projection": float(np.finfo(used).eps) / EPS * self.slack + rounding[0].trace}
        with self.basis.engine.single_blas():
            certificate = certify(pairs, self.size, self.total, rounding, definite=definite, **ends)
        return Result(self.expand(pairs), certificate, pairs, self, vectors=pairs.vectors)

    def roundings(self, pairs: Eigenpairs | None = None) -> tuple[Rounding, ...]:
        """Bounds of rounding, one for each precision in which the pairs were multiplied."""
        size = self._size() * (1 if self.weights is None else WEIGHTED_ROUNDING)
        # Row means in single precision leave some of the trace unknown.
        means = self.operator.means_rounding * self._size() if self.center else 0.0
        evidence = () if pairs is None else pairs.evidence
        levels = roundings_of(self.basis, size, evidence, means)
        if len(levels) < 3 or evidence[0].square is None:
            return levels
        double, single, half = levels
        drafts: Any = self.basis.draft
        # Rows move by a share of their length, and entries with distances, which is of that.
        largest = HALF + half.matrix / size / (self.basis.points.shape[1] + 2)
        norm = single.matrix + half_norm(drafts.draft, min(largest, 2.0))
        return double, single, replace(half, matrix=norm, product=single.product)

    def expand(self, pairs: Eigenpairs) -> KernelExpansion:
        """The mean and the directions with weights `vectors` over the roots of `values`."""
        n, r = pairs.vectors.shape
        frame = self.basis.engine.zeros((n, 1 + r))
        positive = pairs.values > 0
        frame[:, 1:] = self.basis.engine.asarray(pairs.vectors)
        A = frame[:, 1:]
        A *= on_device_of(positive / np.sqrt(np.where(positive, pairs.values, 1.0)), frame)
        metric = np.zeros((1 + r, 1 + r))
        metric[1:, 1:] = np.diag(positive.astype(float))
        if not pairs.ritz:
            M = to_numpy(A.T @ (self.operator @ A))
            metric[1:, 1:] = (M + M.T) / 2
        share: Any = 1.0 / n
        if self.weights is not None:
            share = on_device_of(self.operator.weights / self.weight, frame)[:, None]
            A *= self.weight * share
        if self.center:
            frame[:, :1] = share
            A -= share * A.sum(axis=0)
            means = on_device_of(self.operator.row_means, A)
            metric[0, 0] = float((means * frame[:, 0]).sum())
            metric[0, 1:] = metric[1:, 0] = to_numpy(means @ A)
        return KernelExpansion(self.basis, frame, metric)

    def with_least(self, pairs: Eigenpairs) -> Eigenpairs:
        """The pairs with a negative eigenvalue, where a kernel may have one and some rows show it.

        For w that sums to zero and lives on these rows, w'Kw is w'HKHw: where the centered matrix
        of the rows alone has a negative eigenvalue, that of all rows has one. It has none beyond
        a share of its first where it has a Cholesky factor with as much added to its diagonal.
        """
        if self.basis.kernel.definite:
            # Passes in single precision leave rounding of either sign: a row of large weight,
            # which centering takes out, has much of it.
            rounded = pairs.least is not None and pairs.least > -SINGLE_ENTRY * self._size()
            return replace(pairs, least=0.0) if rounded else pairs
        if pairs.searched:
            return pairs
        most, engine = LEAST_ROWS, self.basis.engine
        if not self.basis.kernel.expensive:
            most = max(most, min(MOST_ROWS, int((engine.memory / 128) ** 0.5)))
        index = thinned(np.arange(self.count), most)
        K = to_numpy(self.basis.minor(index)).astype(float)
        w = np.ones(len(index)) if self.weights is None else self.operator.weights[index]
        if self.center:
            K = K - w @ K / w.sum()
            K = K - (K @ w / w.sum())[:, None]
        K = w**0.5 * K * w[:, None] ** 0.5
        unit = float(np.abs(K).max()) or 1.0
        K = (K + K.T) / (2 * unit)
        shift = INDEFINITE_SHARE * float(np.linalg.norm(K)) / len(K) ** 0.5
        with engine.single_blas():
            try:
                cholesky(K + shift * np.eye(len(K)))
                return pairs
            except LinAlgError:
                # Eigenvalues grow with the number of rows.
                least = unit * float(np.linalg.eigvalsh(K)[0]) * self.count / len(index)
        return replace(pairs, least=least if pairs.least is None else min(least, pairs.least))


class SmallProblem(Problem):
    """An eigenproblem of the coordinates that rows have in a small basis.

    Attributes
    ----------
    whitening : Whitening
        How the coordinates were made.
    mean : array of shape (size,)
        Of the coordinates.
    """

    whitening: Any
    mean: Any

    @abstractmethod
    def certificate(self, pairs: Eigenpairs) -> Certificate:
        """How far from exact the result can be."""

    def result(self, pairs: Eigenpairs) -> Result:
        return Result(self.expand(pairs), self.certificate(pairs), pairs, self)

    def expand(self, pairs: Eigenpairs) -> KernelExpansion:
        """The mean and the directions along `vectors`, from coordinates to the basis."""
        positive, weights = pairs.values > 0, self.whitening.weights
        Q = to_numpy(pairs.vectors) * positive
        mean = self.mean if self.center else np.zeros(len(Q))
        metric = np.zeros((1 + Q.shape[1], 1 + Q.shape[1]))
        metric[0, 0] = mean @ mean
        metric[0, 1:] = metric[1:, 0] = mean @ Q
        metric[1:, 1:] = np.diag(positive.astype(float)) if pairs.ritz else self_product(Q)
        frame = np.column_stack([mean, Q])
        return KernelExpansion(self.basis, frame if weights is None else weights @ frame, metric)


@dataclass(frozen=True, eq=False)
class ReducedProblem(SmallProblem):
    """Kernel PCA in the span of a small basis: the eigenproblem of m x m moments.

    The rows have orthonormal coordinates y = W' k(Z, x). Their mean and scatter give the
    eigenpairs S, Q; the directions have weights W Q and the mean W y.

    Attributes
    ----------
    moments : Moments
        Of the coordinates of all rows.
    sample : array or None
        Rows drawn uniformly without replacement and independently of the basis, on which the
        certificate judges what the basis leaves out.
    seed : int
        What pairs of sampled rows and random vectors are drawn by.
    exact : GramProblem or None
        That of all rows, where one product with its matrix costs little beside the fit.
    """

    basis: Basis
    whitening: Whitening
    moments: Moments
    center: bool = True
    sample: Any = None
    seed: int = 0
    n_rows: int | None = None
    model_rows: Any = None
    exact: GramProblem | None = None

    def __post_init__(self):
        energy = np.asarray(self.moments.energy)
        check_values(self.basis.kernel, self.moments.scatter, energy)

    @cached_property
    def operator(self) -> Any:
        """The second moments, where the rows were: a device decomposes them far faster."""
        matrix = self.moments.scatter if self.center else self.moments.about_zero()
        return DenseOperator(self.basis.engine.asarray(matrix))

    weight = property(lambda self: float(self.moments.count))
    mean = property(lambda self: self.moments.mean)

    @property
    def total(self) -> float:  # type: ignore[override]
        """The total variance times n, or a little more: the mean is known in the basis only."""
        return self.moments.energy - (self.energy_of_mean if self.center else 0.0)

    @property
    def energy_of_mean(self) -> float:
        return self.moments.count * float(self.moments.mean @ self.moments.mean)

    scale = property(lambda self: abs(self.moments.energy))

    @property
    def lost(self) -> float:
        """The trace of what the span leaves out; negative by rounding, or if it has no such."""
        return float(self.moments.energy) - self.moments.projected_energy

    @property
    def rounding(self) -> float:
        """Relative rounding of the coordinates."""
        return self.whitening.rounding

    @cached_property
    def slack(self) -> float:  # type: ignore[override]
        """Largest change of an eigenvalue by rounding of kernel values and coordinates."""
        u, energy = max(EPS, self.basis.rounding()), abs(self.scale)
        slack = (self.rounding + u) * max(abs(self.total), energy)
        slack += self.whitening.slack(self.moments, u, energy)
        # More energy in the span than there is: rounding was worse than that.
        return max(slack, 2 * (self.moments.projected_energy - energy))

    def projection(self, pairs: Eigenpairs) -> np.ndarray:
        """Rounding of projected rows, in the precision of the rows.

        Terms of a sum over landmarks may be far larger than the score that they add up to.
        """
        points, lengths = self.basis.points, np.zeros(1)
        rows = points if self.model_rows is None else self.model_rows
        used = np.float64 if rows is None else self.basis.precision(rows)
        eps, share = float(np.finfo(used).eps), self.basis.rounding() / EPS
        if points is not None:
            frame = np.abs(to_numpy(self.expand(pairs).frame)[:, 1:])
            lengths = np.sqrt(np.abs(to_numpy(self.basis.norms(points)))) @ frame
            lengths *= np.sqrt(self.scale) * np.sqrt(pairs.values) * (1 + len(frame) ** 0.5 / share)
        return eps * share * np.maximum(self.scale, lengths)

    @cached_property
    def remainder(self) -> Remainder | None:
        """The part of sampled rows outside the span, or the error of their features."""
        return None if self.sample is None else judge(self)

    def certificate(self, pairs: Eigenpairs) -> Certificate:
        """What the span leaves out, rounding, and the sampled rows or a product with all."""
        sizes = self.size, self.total, self.lost, self.slack, self.remainder
        known = *self.judgment(), self.projection(pairs)
        certificate = projection_certificate(pairs, *sizes, *known)
        return certificate if self.exact is None else narrowed(certificate, self, pairs)

    def judgment(self) -> tuple[bool, bool]:
        """Whether what the span leaves out is a bound, and whether the kernel is indefinite."""
        exact, definite = self.basis.exact_norms, self.basis.kernel.definite
        longer = self.lost < -LONGER * self.scale
        if definite and longer and self.basis.kernel.expensive:
            raise ValueError(
                f"The kernel {type(self.basis.kernel).__name__} is declared as positive "
                "semidefinite, but some values with landmarks are too large beside k(x, x). "
                "Correct the function, or give definite=False."
            )
        if definite or not exact:
            return exact and definite, False
        # What a span leaves out of an indefinite kernel bounds nothing.
        return False, longer or has_negative(self.basis, self.model_rows, self.center)


@dataclass(frozen=True, eq=False)
class ColumnProblem(ReducedProblem):
    """Linear kernel PCA in the space of the rows: nothing is lost.

    Attributes
    ----------
    X : array of shape (n, d) or None
        The rows, where eigenvectors are wanted.
    """

    X: Array | None = None

    @cached_property
    def rounding(self) -> float:
        """Rows are added up about their mean, from which they differ by less than they are."""
        mean, total = self.energy_of_mean, self.total
        far = np.sqrt(mean / total) if total > FARTHEST**-2 * mean else FARTHEST
        return EPS * (self.basis.size + SUM_ROUNDING * self.count**0.5 + 4 * far)

    @property
    def total(self) -> float:  # type: ignore[override]
        """The trace; of the scatter alone, since k(x, x) holds the mean as well."""
        spread = float(np.trace(self.moments.scatter))
        return spread if self.center else spread + self.energy_of_mean

    def is_zero(self) -> bool:
        """Whether the rows differ by no more than rounding of their mean."""
        return self.total <= float((4 * EPS) ** 2) * self.energy_of_mean

    def result(self, pairs: Eigenpairs) -> Result:
        """Signs and eigenvectors as of the n x n problem."""
        expansion, S = self.expand(pairs), None
        if self.X is not None:
            S = to_numpy(expansion.scores(self.X))
            signs = peak_signs(S)
            expansion = expansion.stretched(signs)
            S *= signs / np.sqrt(np.where(pairs.values > 0, pairs.values, 1.0))
        return Result(expansion, self.certificate(pairs), pairs, self, vectors=S)

    def certificate(self, pairs: Eigenpairs) -> Certificate:
        # A vector is its scores over sqrt(l), and their rounding is that of the largest.
        top = float(np.max(pairs.values, initial=0.0))
        growth = np.sqrt(top / np.where(pairs.values > 0, pairs.values, top or 1.0))
        error = self.rounding * self.total
        rounded = replace(pairs, residuals=pairs.residuals + error * growth)
        roundings = (Rounding(error, error, (error * self.total) ** 0.5),)
        return certify(rounded, self.size, self.total, roundings, definite=True)


@dataclass(frozen=True, eq=False)
class FourierProblem(SmallProblem):
    """Kernel PCA on a grid of frequencies: the eigenproblem of the covariance of its features.

    Attributes
    ----------
    sums : TrigonometricMoments
        Of all rows.
    """

    basis: FourierBasis
    sums: TrigonometricMoments
    center: bool = True
    n_rows: int | None = None
    model_rows: Any = None

    @cached_property
    def operator(self) -> Any:
        grid, threads = self.basis.frequencies, self.basis.engine.threads
        return ToeplitzCovariance(
            grid.index, self.basis.amplitudes, self.sums, self.center, threads
        )

    weight = property(lambda self: float(self.sums.count))
    mean = property(lambda self: self.operator.mean)
    whitening = property(lambda self: Whitening(self.basis.size))
    scale = property(lambda self: self.sums.count * self.basis.top)

    @property
    def total(self) -> float:  # type: ignore[override]
        mean = self.mean
        return self.scale - (self.sums.count * float(mean @ mean) if self.center else 0.0)

    @property
    def slack(self) -> float:  # type: ignore[override]
        """Largest change of eigenvalues by errors of the sums and rounding of the products.

        An error delta of every t_q changes the matrix by at most delta k(0), the sum of the
        weights, in Frobenius norm, and its mean by twice that.
        """
        steps = np.log2(np.prod(self.sums.sums.shape)) + 1
        return 3 * self.sums.error * self.basis.top + FFT_ROUNDING * steps * self.scale

    def certificate(self, pairs: Eigenpairs) -> Certificate:
        grid, n, slack = self.basis.frequencies, self.sums.count, self.slack
        rounding = Rounding(slack, slack, 2 * (slack * self.scale) ** 0.5)
        ends = {"above": n * grid.alias, "below": n * (grid.cut + grid.alias / 2)}
        return certify(pairs, self.size, self.total, (rounding,), definite=True, **ends)


def roundings_of(
    basis: GramBasis, size: float, evidence: tuple = (), trace: float = 0.0
) -> tuple[Rounding, ...]:
    """Bounds of rounding in a matrix, one for each precision in which it was multiplied.

    `size` is what the relative rounding of its entries is a share of.
    """
    levels: list[Rounding] = []
    used: Any = basis
    for level in range(1 + max((seen.level for seen in evidence), default=0)):
        used = used.draft if level else basis
        eps = float(np.finfo(dtype_name(used.dtype)).eps)
        # Products in single precision are no part of the matrix that they are evidence of, and
        # squares are of the very tiles that they are made with.
        entry, double = used.rounding(), used.dtype == np.float64
        sums = eps * (SUM_ROUNDING * (basis.size if double else 1) ** 0.5 + ENTRY_ROUNDING)
        # Fused tiles sum in single precision within a tile: 1e-7 of the squares was seen.
        fused = not double and used.engine.fuses(used.kernel)
        root = 2 * ((entry if double else 0.0) + (SINGLE_EPS if fused else 4 * EPS)) ** 0.5 * size
        levels.append(Rounding((entry + sums) * size, eps * size, root, trace))
    return tuple(levels)


def half_norm(basis: Any, largest: float) -> float:
    """At most how far the matrix of half precision is from that of single, in the Frobenius norm.

    By pairs of rows, at a confidence of 1 - 1e-6: rows and entries are rounded to float16, and
    nothing else to fewer digits than single precision. No entry changes by more than `largest`.
    """
    X, kernel, origin = basis.points, basis.kernel, basis.pairs.origin
    xp, scale = array_namespace(X), kernel.scalar_map().scale

    def rounded(A):
        return xp.astype(xp.astype(A, xp.float16), xp.float64)

    def errors(*pair):
        A, B = (xp.astype(X[on_device_of(k, X)], xp.float64) - origin for k in pair)
        D = (rounded(scale * A) - rounded(scale * B)) / scale
        return rounded(kernel.of_differences(D)) - kernel.of_differences(A - B)

    n = basis.size
    return paired_remainder(errors, n, n, largest, 0, HALF_PAIRS, HALF_PAIRS).likely


def thinned(rows: Any, most: int = LEAST_ROWS) -> Any:
    """At most `most` of the rows, drawn at random: equal rows may lie at any distance."""
    n = rows.shape[0]
    return rows if n <= most else rows[np.sort(np.random.default_rng(n).permutation(n)[:most])]


def has_negative(basis: Basis, rows: Any, center: bool) -> bool:
    """Whether some rows, and as many points of a basis, show a negative eigenvalue of their kernel.

    Then all rows have one: no eigenvalue of a part of a matrix is below its least. Beyond rounding,
    and a share of the largest of the centered matrix, which may be far below that of the other.
    """
    if basis.kernel.expensive and isinstance(basis, PointBasis):
        K = to_numpy(basis.kernel_matrix())  # whose values are there
    else:
        # Dense points make dense rows of sparse ones.
        width = 1 if is_sparse(basis.points) else basis.points.shape[1]
        room = max(FEWEST_POINTS, basis.engine.memory // (64 * width))
        few = on_host(thinned(rows, min(LEAST_ROWS, room)))
        points = on_host(thinned(basis.points, min(max(few.shape[0], FEWEST_POINTS), room)))
        K = np.asarray(basis.kernel(stack_rows([points, match_sparsity(few, points)])), dtype=float)
    C = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean() if center else K
    rounding = (basis.rounding() + ENTRY_ROUNDING * EPS) * float(np.abs(K).sum(axis=0).max())
    floor = -INDEFINITE_SHARE * float(np.linalg.norm(C, 2)) - rounding
    return bool(np.linalg.eigvalsh((K + K.T) / 2)[0] < floor)
