"""From rows and a recipe to the eigenproblem of kernel PCA, the same for all kinds of rows."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from ..bases import (
    AllPoints,
    Basis,
    BasisRecipe,
    ColumnBasis,
    FourierBasis,
    Whitening,
    choose_whitening,
)
from ..bases.base import check_moments
from ..compute import TiledEngine, format_bytes, parse_bytes
from ..exceptions import tell
from ..fitting import remainder
from ..fitting.problems import ColumnProblem, FourierProblem, GramProblem, ReducedProblem
from .base import KEPT_ROWS, Rows
from .functions import MomentsOf, RangeOf, TrigonometricOf

# Bytes for each entry of the sample's Gram matrix that selectors were seen to hold: from none at
# all to 25, which is `SparseBayes`; the default holds 10.
ENTRY_BYTES = 26
# Share of the budget that the sampled rows themselves may take.
SAMPLE_SHARE = 16


@dataclass(frozen=True)
class Request:
    """What a fit asks for.

    Attributes
    ----------
    recipe : BasisRecipe
    kernel_for : callable
        ``kernel_for(X)``: the kernel with numbers for its parameters, from rows X.
    needs_rows : bool
        Whether the kernel takes a width from the rows.
    center : bool
    n_components : int or None
        None where their number follows from a share of the variance.
    check : callable
        ``check(basis)`` raises where what follows the fit could not be done.
    moments_of : callable
        ``moments_of(basis, whitening, weights=...)``: the row function whose sum are the moments of
        coordinates, `MomentsOf` or one that sums more.
    """

    recipe: BasisRecipe
    kernel_for: Callable
    needs_rows: bool
    center: bool = True
    n_components: int | None = None
    check: Callable[[Basis], Any] = lambda basis: None
    moments_of: Callable[..., MomentsOf] = MomentsOf


def pose(request: Request, rows: Rows, engine: TiledEngine, rng: np.random.Generator) -> Any:
    """The n x n problem of all points, or the m x m problem of a small basis."""
    if isinstance(request.recipe, AllPoints):
        kernel = request.kernel_for(rows.typical())
        basis = rows.gram(kernel, engine, rng, request.n_components)
        request.check(basis)
        return GramProblem(basis, request.center, rows.weights)
    recipe = request.recipe
    n = rows.count_rows() if recipe.needs_count else rows.shape[0]
    recipe = recipe.located(n, rows.take).settled(n, request.n_components)
    if recipe.needs_range and not rows.in_memory:
        check_repeatable(rows)
        recipe = recipe.with_range(rows.sum(RangeOf(), "looking at rows").bounds)
    seen = looked_at(request, recipe, rows)
    kernel = request.kernel_for(seen)
    make = reduced if recipe.error is None else grown
    return make(request, recipe, kernel, seen, rows, engine, rng)


def looked_at(request: Request, recipe: BasisRecipe, rows: Rows):
    """Rows to choose the basis from and to take widths from; stand-ins where neither is needed."""
    wanted = recipe.rows_wanted(rows.shape[0], request.n_components)
    if rows.in_memory:
        return rows.candidates(wanted)
    if not wanted and not request.needs_rows:
        return recipe.stand_in(rows.blank())
    check_repeatable(rows)
    return rows.candidates(sample_size(recipe, max(wanted, KEPT_ROWS), rows))


def check_repeatable(rows: Rows) -> None:
    """Raise ValueError where there is no second pass."""
    if not rows.repeatable:
        raise ValueError(
            f"{rows.name} can be read only once, and one pass is needed to choose landmarks or a "
            "width before another sums up. Pass a function that returns a fresh iterator, or a "
            "file; or give basis=Landmarks(points=...), FourierGrid(box=...) or basis='features' "
            "and gamma as a number, which need one pass."
        )


def sample_size(recipe: BasisRecipe, wanted: int, rows: Rows) -> int:
    """Rows to look at: as many as the recipe wants, if their Gram matrix fits the budget."""
    memory, d = parse_bytes(rows.memory), rows.shape[1]
    room = min(isqrt(memory // ENTRY_BYTES), memory // (SAMPLE_SHARE * 8 * d))
    least = max(recipe.least_rows, 2)
    if room < least:
        need = max(ENTRY_BYTES * least**2, SAMPLE_SHARE * 8 * d * least)
        raise ValueError(
            f"memory={format_bytes(memory)} holds a sample of {room:,} rows of {d:,} columns, and "
            f"{least:,} landmarks are to be chosen from it. Give at least {format_bytes(need)}, or "
            "ask for fewer."
        )
    return min(wanted, room)


def reduced(request, recipe, kernel, seen, rows: Rows, engine, rng) -> Any:
    """The m x m problem of a basis that is built from the rows looked at."""
    basis = recipe.build(kernel, engine.place(seen), engine, rng, request.n_components)
    request.check(basis)  # fails before the pass if it would fail after it
    n_rows = None if rows.weights is None else len(rows.weights)
    if isinstance(basis, FourierBasis):
        sums = rows.sum(TrigonometricOf(basis, weights=rows.weights), "summing moments")
        return FourierProblem(basis, sums, request.center, n_rows)
    if isinstance(basis, ColumnBasis):
        whitening, X = Whitening(basis.size), seen if rows.in_memory else None
        moments = request.moments_of(basis, whitening, weights=rows.weights).over(rows)
        return ColumnProblem(basis, whitening, moments, request.center, n_rows=n_rows, X=X)
    check_moments(basis.size, basis.noun, engine)
    whitening = choose_whitening(basis, seen, rows.shape[0])
    function = request.moments_of(basis, whitening, weights=rows.weights)
    witnessed = rows.witnessed(function, witness_count(rows))
    return ReducedProblem(
        basis,
        whitening,
        witnessed.moments,
        request.center,
        # What a uniform sample says holds for rows that count alike.
        witnessed.rows if rows.weights is None else None,
        witnessed.coordinates,
        rows.seed,
        n_rows,
    )


def witness_count(rows: Rows) -> int:
    """Rows on which a basis is judged, as far as they take a small share of the budget."""
    room = parse_bytes(rows.memory) // (SAMPLE_SHARE * 8 * rows.shape[1])
    return max(2, min(remainder.sample_size(rows.shape[0]), room))


def grown(request, recipe, kernel, seen, rows: Rows, engine, rng) -> ReducedProblem:
    """The first of doubling sizes that loses no more than asked, one pass over all rows each."""

    def attempt(sized):
        problem = reduced(request, sized, kernel, seen, rows, engine, rng)
        return problem, problem.basis.size, lost_share(problem)

    problem, lost = recipe.grow(seen.shape[0], attempt)
    if lost > recipe.error and seen.shape[0] < (rows.shape[0] or 0):
        tell(
            f"{problem.basis.size} landmarks lose {lost:.2g} of the energy, and "
            f"error={recipe.error} was asked for. Raise memory, for a larger sample to choose them "
            "from."
        )
    return problem


def lost_share(problem: ReducedProblem) -> float:
    """The share of energy outside the span of the basis, tr(K - K_nys) / tr K, of all rows."""
    return problem.moments.lost_energy / max(problem.moments.energy, np.finfo(float).tiny)
