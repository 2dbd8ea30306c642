"""Fitting to Dask collections: the work is done where the chunks are.

A first pass checks, counts and samples the rows. Landmarks are chosen from the sample here,
and a second pass sums the moments of the chunks in a tree. With all points as the basis the
solver runs here, on vectors, and its products on the cluster.
"""

from copy import copy
from dataclasses import replace
from functools import partial
from math import isqrt
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from ..bases import BASES, AllPoints, Landmarks
from ..bases.chunk_gram import ChunkGram
from ..bases.landmarks import GROWTH
from ..bases.points import DRAFT_SPREAD
from ..compute import format_bytes, make_engine
from ..compute.chunks import Chunks
from ..compute.cluster import Crew, constant, delayed, run, tree_sum
from ..compute.survey import Survey, survey
from ..kernels.base import WIDTH_SAMPLE
from ..moments import Moments
from ..problems import GramProblem, reduced_problem, row_moments, whitened
from ..progress.passes import PassBar

# Rows sampled for each landmark, and at least: twice the pool of the default selector, so that
# equal rows can be passed over.
ROWS_PER_LANDMARK, LEAST_SAMPLE = 16, 4000
# Arrays of the size of a sample's Gram matrix that a selector was seen to hold.
GRAM_COPIES = 3

# Tiles between two chunks are centered on one of them and not on all rows, so that squared
# norms in them are up to four times those that the spread is judged by.
PAIR_SPREAD = DRAFT_SPREAD / 4

# Blocks of vectors that block Krylov holds at the least, and vectors of a block beyond the
# components.
LEAST_BLOCKS, SPARE_VECTORS = 6, 16


def fit_cluster(model, X):
    """Fit a `KernelPCA` to a Dask array or dataframe."""
    model._validate_params()
    check_possible(model)
    chunks = Chunks.of(X)
    check_columns(model, X, chunks, reset=True)
    model._dtype = chunks.dtype
    crew = make_crew(model, chunks)
    rng, recipe = model._make_rng(), make_recipe(model.basis)
    pose = pose_points if isinstance(recipe, AllPoints) else pose_reduced
    with PassBar(model.verbose, model.callback) as progress:
        # What is done here is small: devices are those of the workers.
        engine = make_engine(memory=model.memory, threads=model.n_jobs)
        with engine.single_blas():
            problem, rows = pose(model, recipe, chunks, crew, engine, rng)
            pairs = model._solve(problem, engine, rng, progress.report)
            model.expansion_, model.certificate_ = problem.assemble(pairs)
    problem.basis.release()
    model._set_results(pairs, problem, rows, None)
    model.plan_ = on_cluster(model.plan_, problem, crew)
    model._warn(problem, progress.stopped)
    return model


def check_possible(model) -> None:
    """Raise ValueError where a fit needs all rows in one place."""
    if model._is_precomputed():
        raise ValueError(
            "A precomputed kernel is one matrix, and X is on a cluster. Name a kernel, to have "
            "it computed from the rows."
        )
    if model.fit_inverse_transform:
        raise ValueError(
            "fit_inverse_transform=True solves an n x n system in one place, and X is on a "
            "cluster. Leave it out: with basis='landmarks', inverse_transform needs no fit."
        )


def check_columns(model, X, chunks: Chunks, reset: bool) -> None:
    """Note number and names of the columns, or compare them with those of the fit."""
    head = X._meta if hasattr(X, "columns") else np.empty((0, chunks.width))
    validate_data(model, head, reset=reset, skip_check_array=True)


def make_recipe(basis):
    """The basis asked for, as a recipe."""
    return BASES["points" if basis == "auto" else basis]() if isinstance(basis, str) else basis


def make_crew(model, chunks: Chunks) -> Crew:
    """What the tasks of a model may take."""
    device = getattr(model, "device", None)
    return Crew.of(chunks.array, model.memory, model.n_jobs, device)


def pose_points(model, recipe, chunks: Chunks, crew: Crew, engine, rng):
    """The n x n problem of all rows, which stay on the workers, and the rows themselves."""
    held = chunks.persisted()
    taken = take(held, LEAST_SAMPLE, rng)
    chunks, held = (part.with_lengths(taken.counts) for part in (chunks, held))
    check_vectors(model, taken.count, engine)
    r = whole(model.n_components) or 0
    even = held.evened(crew.cores, crew.core_memory, held.width + 4 * (r + SPARE_VECTORS))
    held = held if even is held else even.persisted()
    kernel = model.kernel_ = model._make_kernel(held.rows(width_sample(taken.count)))
    check_chunks(kernel, held)
    single = kernel.spread(taken.candidates) <= PAIR_SPREAD
    basis = ChunkGram(kernel, chunks, engine, crew, single)
    basis.hold(held)
    return GramProblem(basis, model.center), chunks.array


def pose_reduced(model, recipe, chunks: Chunks, crew: Crew, engine, rng):
    """The m x m problem of a small basis, and a sample of the rows."""
    if isinstance(recipe, Landmarks):
        recipe.check()
    r = whole(model.n_components)
    chunks = chunks.counted() if needs_count(recipe) else chunks
    room = sample_room(engine.memory, chunks.width)
    taken = take(chunks, sample_size(recipe, chunks.count, r, room), rng)
    n, chunks = taken.count, chunks.with_lengths(taken.counts)
    model.kernel_ = model._make_kernel(taken.sample)
    wanted, recipe = getattr(recipe, "error", None), settled(recipe, chunks, n, r)
    before = 0
    while True:
        basis = recipe.build(model.kernel_, taken.candidates, engine, rng, r)
        model._preimage_recipe(basis)  # fails before the work if it would fail after it
        moments_of = partial(cluster_moments, basis, chunks, crew)
        problem = reduced_problem(basis, taken.sample, moments_of, model.center)
        enough = wanted is None or lost_share(problem) <= wanted
        if enough or basis.size == n or basis.size <= before:
            return problem, taken.sample
        # The sample is no bound for all rows: more landmarks, where they lose more than asked
        # and there are more independent rows.
        before = basis.size
        recipe = clone(recipe).set_params(error=None, size=min(GROWTH * basis.size, n))
        taken = take(chunks, sample_size(recipe, n, r, room), rng)


def take(chunks: Chunks, size: int, rng) -> Survey:
    """A survey with at least two rows, whose draws leave the generator as it is."""
    taken = survey(chunks, size, int(rng.spawn(1)[0].integers(2**31)))
    if taken.count < 2:
        raise ValueError(
            f"Found array with {taken.count} sample(s) while a minimum of 2 is required."
        )
    return taken


def sample_room(memory: int, width: int) -> int:
    """Rows of a sample whose Gram matrix a selector can hold, and that take a small share."""
    return min(isqrt(memory // (8 * GRAM_COPIES)), memory // (8 * GRAM_COPIES * width))


def sample_size(recipe, n: int | None, r: int | None, room: int) -> int:
    """Rows to choose the basis from."""
    size, pool = 0, 0
    if isinstance(recipe, Landmarks):
        named = recipe.points is not None or recipe.indices is not None
        size = 0 if named or recipe.error else recipe.count(n or np.iinfo(int).max, r)
        pool = getattr(recipe.selector, "pool", None) or 0
    if size > room:
        raise ValueError(
            f"{size:,} landmarks are chosen from a sample on the client, and memory allows one of "
            f"{room:,} rows. Raise memory, or ask for fewer."
        )
    return min(room, max(LEAST_SAMPLE, ROWS_PER_LANDMARK * size, 2 * pool))


def needs_count(recipe) -> bool:
    """Whether the number of rows must be known before any is sampled."""
    return isinstance(recipe, Landmarks) and isinstance(recipe.size, float)


def settled(recipe, chunks: Chunks, n: int, r: int | None):
    """The recipe in terms of the sample: a size for a share of all rows, points for indices."""
    if not isinstance(recipe, Landmarks):
        return recipe
    if recipe.indices is not None:
        index = recipe._checked_indices(n)
        return clone(recipe).set_params(indices=None, points=chunks.rows(index))
    if recipe.points is not None or recipe.error is not None:
        return recipe
    return clone(recipe).set_params(size=recipe.count(n, r))


def lost_share(problem) -> float:
    """The share of energy outside the span of the basis, tr(K - K_nys) / tr K, of all rows."""
    return problem.moments.lost_energy / max(problem.moments.energy, np.finfo(float).tiny)


def cluster_moments(basis, chunks: Chunks, crew: Crew, whitener) -> Moments:
    """Moments of the coordinates of all rows: those of the chunks, added in a tree."""
    make, both = crew.engine(len(chunks.filled())), constant((basis, whitener))
    parts = chunks.map(chunk_moments, both=both, make=make)
    some = [part for part, length in zip(parts, chunks.lengths or (), strict=True) if length]
    return whitened(whitener, run([tree_sum(some)])[0])


def chunk_moments(rows, chunk, both, make) -> Moments:
    """Moments of the rows of a chunk against the basis."""
    basis, whitener = both
    basis.kernel.check(rows)
    return row_moments(moved(basis, make()), whitener, rows)


def moved(basis, engine):
    """The basis where an engine works."""
    basis = copy(basis)
    basis.engine = engine
    if basis.points is not None:
        basis.points = engine.place(basis.points)
    return basis


def width_sample(n: int) -> np.ndarray:
    """The rows on which widths are measured when all are in one place, so that they agree."""
    if n <= WIDTH_SAMPLE:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, WIDTH_SAMPLE, replace=False))


def check_chunks(kernel, chunks: Chunks) -> None:
    """Raise ValueError if the kernel is not defined on some row."""
    check = delayed(kernel.check)
    run([check(rows) for _, rows in chunks.filled()])


def check_vectors(model, n: int, engine) -> None:
    """Raise ValueError where the vectors of the exact method do not fit here."""
    need = 8 * n * LEAST_BLOCKS * ((whole(model.n_components) or 0) + SPARE_VECTORS)
    if need > engine.memory:
        raise ValueError(
            f"Exact kernel PCA of {n:,} rows keeps vectors of {format_bytes(need)} on the client, "
            f"and memory allows {format_bytes(engine.memory)}. Use basis='landmarks', or raise "
            "memory."
        )


def whole(n_components) -> int | None:
    """The number of components, where it is one."""
    return int(n_components) if isinstance(n_components, Integral) else None


def on_cluster(plan, problem, crew: Crew):
    """The plan as it was carried out: nothing is kept between products of chunk pairs."""
    tasks = f"by Dask, {crew.cores} tasks at a time"
    if not problem.basis.spans_data or "kept" not in plan.method:
        return replace(plan, reason=f"{plan.reason}; {tasks}")
    free = next(e for e in plan.estimates if e.method == "krylov, matrix-free")
    reason = f"{free.method}: rows stay on the workers, tiles are not kept; {tasks}"
    return replace(plan, chosen=replace(free, solver=plan.solver), reason=reason)
