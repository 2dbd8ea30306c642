"""The basis that a fit takes: what is asked for, or what "auto" finds best for the rows."""

from collections.abc import Callable
from numbers import Integral
from typing import Any

from ..bases import BASES, AllPoints, BasisRecipe, Columns, Landmarks
from ..fitting.choosing import Asked, automatic_basis
from ..kernels import Kernel
from ..rows import Request, Rows
from ..rows.functions import RangeOf
from ..rows.posing import check_repeatable
from ._door import check_gram


class BasisChoice:
    """From ``basis="auto"``, a name or a recipe to what is asked of the rows of a fit."""

    # Parameters of the estimators that this one is mixed with, and methods of theirs.
    basis: Any
    n_components: Any
    kernel: Any
    eigen_solver: Any
    preimage: Any
    center: bool
    copy_X: bool
    checkpoint: Any
    fit_inverse_transform: bool
    _is_precomputed: Callable[[], bool]
    _named_kernel: Callable[[int], Kernel]
    _make_kernel: Callable[..., Kernel]
    _preimage_recipe: Callable[..., Any]
    _tol: Callable[[], float]

    def _choose_basis(self, rows) -> tuple[BasisRecipe, Rows]:
        """The recipe asked for, and the rows as it needs them; "auto" is all points if it can."""
        if self._is_precomputed():
            self._check_precomputed(rows)
        recipe = self.basis
        if recipe in ("auto", "points") or isinstance(recipe, AllPoints):
            found = rows.for_points(recipe != "auto", f"basis={recipe!r}")
            recipe, rows = (AllPoints(), found) if found is not None else ("landmarks", rows)
        else:
            rows = rows.for_passes()
            if self.checkpoint is not None and not self.fit_inverse_transform:
                rows = rows.in_pieces()
        if self.fit_inverse_transform and not rows.in_memory:
            raise ValueError(
                "fit_inverse_transform=True solves an n x n system in one place, and the rows are "
                "not in memory. Leave it out: inverse_transform works without it."
            )
        return (BASES[recipe]() if isinstance(recipe, str) else recipe), rows

    def _keeps_copy(self):
        """Landmarks, random features and a Fourier grid keep no rows, or copies of some."""
        keeps = self.basis in ("auto", "points") or isinstance(self.basis, AllPoints | Columns)
        return self.copy_X and keeps

    def _check_precomputed(self, rows):
        if self.fit_inverse_transform:
            raise ValueError(
                "Cannot fit_inverse_transform with a precomputed kernel, which has no rows to come "
                "back to. Give a kernel by name, or leave it out."
            )
        if self.basis not in ("auto", "points"):
            raise ValueError(
                f"basis={self.basis!r} needs points, and a precomputed kernel has none. "
                "Use basis='auto', or a kernel that is computed from the data."
            )
        check_gram(rows.whole("A precomputed kernel").array)

    def _request(self, recipe, rows) -> Request:
        """What the fit asks of its rows."""
        ends = self._ends_of(rows)

        def kernel_for(X):
            self.kernel_ = self._make_kernel(X if ends is None else ends)
            if self.center and isinstance(recipe, AllPoints | Landmarks):
                self.kernel_ = self.kernel_.recentered(X)
            return self.kernel_

        measured = isinstance(self._named_kernel(rows.shape[1]).gamma, str)
        r = int(self.n_components) if isinstance(self.n_components, Integral) else None
        return Request(recipe, kernel_for, measured, self.center, r, self._preimage_recipe)

    def _ends_of(self, rows) -> Any:
        """Least and largest values of the columns, (2, d), where a kernel needs those of all rows.

        A sample would miss them. None for rows in memory, which are looked at as a whole.
        """
        if rows.in_memory or not self._named_kernel(rows.shape[1]).needs_range:
            return None
        check_repeatable(rows)
        return rows.sum(RangeOf(), "looking at rows").bounds.T

    def _best_basis(self, recipe, rows, engine) -> BasisRecipe:
        """The recipe, or what "auto" takes in place of all points."""
        elsewhere = self.fit_inverse_transform or engine.where != "cpu" or self._is_precomputed()
        if self.basis != "auto" or self.eigen_solver != "auto" or elsewhere:
            return recipe
        asked = Asked(
            rows.shape,
            self.n_components,
            self._tol(),
            self._named_kernel(rows.shape[1]),
            self._make_kernel,
            rows.array if rows.in_memory else None,
            self.preimage,
        )
        return automatic_basis(recipe, asked, engine)
