"""Fitting to rows that are read in blocks: one pass to choose the landmarks, one to sum moments.

The basis is m vectors and the moments are m x m, whatever the number of rows, so memory does not
grow with it. What follows the sums is the same as for rows in memory.
"""

import sys
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from math import isqrt
from numbers import Integral

import numpy as np
from sklearn.base import clone

from ..bases import Landmarks, RandomFeatures
from ..compute import format_bytes, parse_bytes
from ..exceptions import tell
from ..files import RowPick, RowSource, of_kind, read_blocks
from ..problems import ReducedProblem, reduced_problem, row_moments, whitened
from ..progress.passes import PassBar
from ..progress.rows import RowBar
from ..selectors import TwoStage
from ..selectors.two_stage import MIN_POOL, POOL_PER_ATOM
from ..stream.sample import RowSample

# Rows of a block at most: far more give no more speed.
BLOCK_ROWS = 65536
# Share of the budget that one block may take. The one read ahead, the pieces that blocks are made
# of, and the rows prepared for the kernel come beside it.
BLOCK_SHARE = 16
# Bytes for each entry of the sample's Gram matrix that selectors were seen to hold: from none at
# all to 25, which is `SparseBayes`; the default holds 10.
ENTRY_BYTES = 26
# Landmarks that a sample must serve when their number follows from an error.
GROWN_LANDMARKS = 2000


class SourceFit:
    """Kernel PCA of the rows of a source, in the span of a small basis.

    Parameters
    ----------
    model : KernelPCA
        Whose parameters are used and whose attributes are set.
    source : RowSource
    recipe : BasisRecipe
    reason : str or None
        Why this way was taken, where it was not asked for.
    """

    def __init__(self, model, source: RowSource, recipe, reason: str | None = None):
        self.model, self.source, self.recipe, self.reason = model, source, recipe, reason
        self.engine, self.rng = model._make_engine(), model._make_rng()
        # Rows are read into main memory also where the engine's budget is that of a device.
        self.memory = parse_bytes(model.memory)
        self.progress = RowBar(model.verbose)
        self.r = int(model.n_components) if isinstance(model.n_components, Integral) else None
        self.count = 0

    def run(self) -> None:
        """Fit the model."""
        model = self.model
        self._check_request()
        with self.progress:
            self.sample = self._empty_sample()
            rows = self._survey() if self._needs_survey() else self._stand_in()
            model.kernel_ = model._make_kernel(rows)
            problem = self._reduce(rows)
        with PassBar(0, model.callback) as passes:
            pairs = model._solve(problem, self.engine, self.rng, passes.report)
        model.expansion_, model.certificate_ = problem.assemble(pairs)
        problem.basis.release()
        model._set_results(pairs, problem, self.sample.rows, self.sample.rows)
        model._warn(problem, passes.stopped)
        if self.reason:
            model.plan_ = explained(model.plan_, self.reason)

    def _check_request(self):
        model, source = self.model, self.source
        if model._is_precomputed():
            raise ValueError(
                f"basis={model.basis!r} needs points, and a precomputed kernel has none. "
                "Use a kernel that is computed from the rows."
            )
        if isinstance(self.recipe, Landmarks):
            self.recipe.check()
        if model.fit_inverse_transform:
            raise ValueError(
                "fit_inverse_transform=True solves an n x n system, which rows read in blocks do "
                "not allow. Leave it out: inverse_transform works without it."
            )
        if not source.repeatable and self._needs_survey():
            raise ValueError(
                f"{source.name} can be read only once, and one pass is needed to choose landmarks "
                "or a width before another sums up. Pass a function that returns a fresh "
                "iterator, or a file; or give basis=Landmarks(points=...) or basis='features' "
                "and gamma as a number, which need one pass."
            )

    def _needs_survey(self) -> bool:
        """Whether rows must be seen before the pass that sums."""
        kernel = self.model._named_kernel(np.empty((0, self.source.n_columns)))
        chosen_beforehand = isinstance(self.recipe, RandomFeatures) or (
            isinstance(self.recipe, Landmarks) and self.recipe.points is not None
        )
        return isinstance(getattr(kernel, "gamma", None), str) or not chosen_beforehand

    def _stand_in(self):
        """Rows of the right width and kind, where nothing depends on their values."""
        rows = of_kind(np.zeros((2, self.source.n_columns), self.source.dtype), self.source.sparse)
        return self.recipe._given(rows) if isinstance(self.recipe, Landmarks) else rows

    def _empty_sample(self) -> RowSample:
        # A seed of its own, so that a sample of all rows leaves the choice of landmarks as it
        # would be for rows in memory.
        return RowSample(self._sample_rows(), int(self.rng.spawn(1)[0].integers(2**62)))

    def _survey(self):
        """A uniform sample of the rows, and the rows that were named as landmarks."""
        picked = None
        if isinstance(self.recipe, Landmarks) and self.recipe.indices is not None:
            picked = RowPick(self.recipe.indices)
        with self._reading("looking at rows", self.source.n_rows) as blocks:
            for block in blocks:
                self._see(block)
                if picked is not None:
                    picked.add(block)
        self._check_count()
        if isinstance(self.recipe, Landmarks):
            self.recipe = self._settled(picked)
        return self.sample.rows

    def _see(self, block):
        """Count the rows of a block, and give them a chance in the sample."""
        self.sample = self.sample.add(block, self.count)
        self.count += block.shape[0]

    def _settled(self, picked) -> Landmarks:
        """The recipe with what depends on all rows made explicit, to be built on the sample."""
        n, recipe = self.count, self.recipe
        if picked is not None:
            recipe._checked_indices(n)
            return Landmarks(points=picked.rows)
        if recipe.points is not None or recipe.error is not None:
            return recipe
        return clone(recipe).set_params(size=recipe.count(n, self.r))

    def _reduce(self, rows) -> ReducedProblem:
        """The m x m problem, with landmarks until the error is as asked for."""
        if getattr(self.recipe, "error", None) is None:
            return self._problem(self.recipe, rows)
        return self._grow(rows)

    def _problem(self, recipe, rows) -> ReducedProblem:
        placed = self.engine.place(rows)
        basis = recipe.build(self.model.kernel_, placed, self.engine, self.rng, self.r)
        self.model._preimage_recipe(basis)  # fails before the work if it would fail after it
        return reduced_problem(basis, rows, partial(self._moments, basis), self.model.center)

    def _grow(self, rows) -> ReducedProblem:
        """The first of doubling sizes that loses no more than asked, one pass each."""
        for size in self.recipe.sizes(rows.shape[0]):
            problem = self._problem(Landmarks(size, self.recipe.selector), rows)
            lost = problem.moments.lost_energy / max(problem.moments.energy, 1e-300)
            if lost <= self.recipe.error or problem.basis.size < size:
                return problem
        if self.count > rows.shape[0]:
            tell(
                f"{problem.basis.size} landmarks lose {lost:.2g} of the energy, and "
                f"error={self.recipe.error} was asked for. Raise memory, for a larger sample to "
                "choose them from."
            )
        return problem

    def _moments(self, basis, whitener):
        """Moments of the coordinates of all rows, block by block."""
        surveyed, count, moments = self.count, 0, None
        with self._reading("summing moments", surveyed or self.source.n_rows) as blocks:
            for block in blocks:
                self.model.kernel_.check(block)
                part = row_moments(basis, whitener, block)
                moments = part if moments is None else moments + part
                count += block.shape[0]
                if not surveyed:
                    self._see(block)
        self._check_count(count)
        return whitened(whitener, moments)

    @contextmanager
    def _reading(self, title: str, total: int | None):
        """The blocks of the source, with their progress shown, closed whatever happens."""
        rows = block_rows(self.source, self.memory)
        with closing(read_blocks(self.source, rows)) as blocks:
            yield self.progress.over(blocks, title, total)

    def _check_count(self, again: int | None = None):
        """Two rows at least, and the same number in every pass."""
        if self.count < 2:
            raise ValueError(
                f"{self.source.name} has {self.count} rows, while a minimum of 2 is required."
            )
        if again not in (None, self.count):
            raise ValueError(
                f"{self.source.name} gave {self.count:,} rows at first and {again:,} when read "
                "again. The rows must not change during a fit, and a function must return a "
                "fresh iterator each time."
            )

    def _sample_rows(self) -> int:
        """Rows of the sample: as many as `TwoStage` looks at, if their Gram matrix fits."""
        size = self._landmark_count()
        selector = getattr(self.recipe, "selector", None)
        pool = selector.pool if isinstance(selector, TwoStage) else None
        wanted = pool or max(MIN_POOL, POOL_PER_ATOM * size)
        room = min(
            isqrt(self.memory // ENTRY_BYTES),
            self.memory // (BLOCK_SHARE * 8 * self.source.n_columns),
        )
        if room < max(size, 2):
            need = max(ENTRY_BYTES * size**2, BLOCK_SHARE * 8 * self.source.n_columns * size)
            raise ValueError(
                f"memory={format_bytes(self.memory)} holds a sample of {room:,} rows of "
                f"{self.source.n_columns:,} columns, and {size:,} landmarks are to be chosen from "
                f"it. Give at least {format_bytes(need)}, or ask for fewer."
            )
        return min(wanted, room)

    def _landmark_count(self) -> int:
        """Landmarks to choose among the rows, before all rows were seen."""
        recipe = self.recipe
        if not isinstance(recipe, Landmarks):
            return 0
        if recipe.error is not None:
            return min(GROWN_LANDMARKS, isqrt(self.memory // ENTRY_BYTES))
        if recipe.points is not None or recipe.indices is not None:
            return 0
        return recipe.count(self._n_rows(), self.r)

    def _n_rows(self) -> int:
        """Rows there are: counted where a share of them is wanted and the source does not know."""
        if self.source.n_rows is not None:
            return self.source.n_rows
        if not isinstance(self.recipe.size, float) or not self.source.repeatable:
            return sys.maxsize
        with self._reading("counting rows", None) as blocks:
            return sum(block.shape[0] for block in blocks)


def block_rows(source: RowSource, memory: int) -> int:
    """Rows of a block that take a small share of the budget."""
    return int(min(BLOCK_ROWS, max(1, memory // (BLOCK_SHARE * 8 * source.n_columns))))


def explained(plan, reason: str):
    """The plan of a method that was not asked for, with the reason why it was taken."""
    chosen = replace(plan.chosen, method="landmarks")
    return replace(plan, estimates=(chosen,), chosen=chosen, reason=f"landmarks: {reason}")
