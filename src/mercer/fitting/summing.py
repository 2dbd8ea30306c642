"""Moments of rows against a basis, whitened row by row or after they are summed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..bases import Basis
from ..bases.staging import ORDINARY, Stages, condition, inverse_eigenvalues
from ..compute import array_namespace, on_device_of
from ..compute.arrays import Array
from .moments import Moments

# Condition of the basis up to which kernel rows are whitened after they are summed, a third of
# the work: rounding of the sums grows by the condition, to 2e-8 of the total.
LATE_CONDITION = 1e8

# Blocks of rows whose products add up in place before their moments are merged.
MERGED_BLOCKS = 8


def late_blocks(way) -> list:
    """The whiteners V l^{-1/2} that are applied to sums, part by part."""
    if isinstance(way, Stages):
        return list(way.blocks)
    return [way] if whitens_late(way) else []


def whitened(basis: Basis, whitener: Any, moments: Moments) -> Moments:
    """The moments of coordinates from the sum of `row_moments` over all blocks."""
    late = late_whitener(whitener)
    if late is None:
        return moments
    return moments.moved(basis.engine.asarray).mapped(late).to_host()


def late_whitener(whitener: Any) -> Any:
    """What sums of `row_moments` are still to be multiplied with, or None."""
    if isinstance(whitener, Stages):
        return whitener.late
    return used_rows(whitener) if whitens_late(whitener) else None


def used_rows(W):
    """W without its rows of zeros."""
    used = W.any(axis=1)
    return W[used] if used.any() else W


def row_moments(
    basis: Basis,
    whitener: Any,
    X: Array,
    weights: Array | None = None,
    columns: Callable[[slice], Any] | None = None,
    kept: Array | None = None,
) -> Moments:
    """Moments of the rows of X against the basis; those of blocks add up to those of all.

    Each row counts as often as its weight says, once where there are none. ``columns(block)``, if
    given, are further columns of a block of rows, (b, q), which follow the coordinates. `kept`, if
    given, is filled with the coordinates of all rows, (n, k), of which moments are then made.

    ``W' (sum k k') W`` instead of ``sum (W'k) (W'k)'`` where rounding allows it: the products
    with W, two thirds of the work, are then done once and not for every row.
    """
    X = basis.engine.place(X)
    if kept is None:
        basis, products = rows_to_sum(basis, whitener, X)
    else:
        basis, coordinates = rows_to_keep(basis, whitener, X)
        products = keeping(coordinates, kept)
    if columns is not None:
        products = joined(products, columns)
    rows, n = basis.product_rows(X), X.shape[0]

    def moments(block):
        starts = range(block.start, block.stop, rows)
        parts = [slice(start, min(start + rows, block.stop)) for start in starts]
        norms = basis.kernel.diag(X[block])
        if weights is None:
            moments = Moments.of_blocks((products(part) for part in parts), norms.sum())
        else:
            energy = (on_device_of(weights[block], norms) * norms).sum()
            of_each = (weights[part] for part in parts)
            moments = Moments.of_blocks((products(part) for part in parts), energy, of_each)
        return replace(moments, largest=norms.max())

    # Tasks small enough that every thread gets some.
    most = max(rows, n // (4 * basis.engine.threads))
    return basis.engine.sum_rows(moments, n, min(MERGED_BLOCKS * rows, most)).to_host()


def joined(products, columns):
    """A function of blocks whose last columns are those of another."""

    def both(block):
        P = products(block)
        xp = array_namespace(P)
        other = xp.asarray(on_device_of(columns(block), P), dtype=P.dtype)
        return xp.concat([P, other], axis=1)

    return both


def keeping(products, kept):
    """A function of blocks whose results also go where they are kept."""

    def both(block):
        kept[block] = P = products(block)
        return P

    return both


def rows_to_keep(basis, whitener, X) -> tuple:
    """The basis vectors that have weights, and the function of blocks of X to coordinates."""
    if not isinstance(whitener, Stages):
        return basis, basis.block_products(X, whitener, dtype=np.float64)
    basis = basis.subset(whitener.used)
    products = basis.block_products(X, dtype=np.float64)
    return basis, lambda block: whitener.coordinates(products(block))


def rows_to_sum(basis, whitener, X) -> tuple:
    """The basis vectors that have weights, and the function of blocks of X that is summed."""
    if isinstance(whitener, Stages):
        basis = basis.subset(whitener.used)
        products = basis.block_products(X, dtype=np.float64)
        return basis, lambda block: whitener.residuals(products(block))
    basis, whitener = basis.without_unused(whitener)
    if whitens_late(whitener):
        # In single precision the sums would lose what the late product magnifies.
        return basis, basis.block_products(X, dtype=np.float64)
    return basis, basis.block_products(X, whitener)


def whitens_late(whitener) -> bool:
    """Whether rows may be whitened after they are summed."""
    if whitener is None or condition(whitener) > LATE_CONDITION:
        return False
    inverse = inverse_eigenvalues(whitener)
    return bool(np.all((inverse > ORDINARY[0]) & (inverse < ORDINARY[1])))


def leading_columns(whitener):
    """The columns of W that leave the condition small enough to whiten late."""
    if whitener is None:
        return None
    inverse = inverse_eigenvalues(whitener)
    return whitener[:, inverse <= LATE_CONDITION * inverse.min(initial=np.inf)]
