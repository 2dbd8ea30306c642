"""From a basis and data to an operator, and from its eigenpairs to the expansion.

`GramProblem` has all points as the basis, `ReducedProblem` and `ColumnProblem` the moments of rows
in a smaller one, `FourierProblem` those of a grid of frequencies; `SupervisedGram` and
`SupervisedReduced` see the same rows through a target kernel. All answer the same: `operator`,
`total`, `scale`, `slack`, `is_zero`, `overshoots`, `assemble`.
"""

from .correlation import CanonicalPairs, canonical_pairs, expansion_of
from .fourier import FourierProblem
from .gram import GramProblem
from .reduced import ColumnProblem, ReducedProblem, reduced_problem
from .summing import row_moments, whitened
from .supervised import SupervisedGram, SupervisedReduced

__all__ = [
    "CanonicalPairs",
    "ColumnProblem",
    "FourierProblem",
    "GramProblem",
    "ReducedProblem",
    "SupervisedGram",
    "SupervisedReduced",
    "canonical_pairs",
    "expansion_of",
    "reduced_problem",
    "row_moments",
    "whitened",
]
