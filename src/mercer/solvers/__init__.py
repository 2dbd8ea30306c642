"""Solvers: the leading eigenpairs of a symmetric operator.

A solver sees an operator and nothing else. `Dense` forms the matrix and is best when all
or many components are wanted; `BlockKrylov` touches it only through a handful of block
products and is best for a few components of many points; `Arpack`, `Randomized` and `Lobpcg`
are scikit-learn's choices, kept for those who compare; `GramPower` is the covariance-free
method of Shi, Guo and Xue.
"""

from .base import Eigenpairs, PassState, Solver, canonical, no_variance
from .block_krylov import BlockKrylov
from .gram_power import GramPower
from .peers import Arpack, Dense, Lobpcg, Randomized

SOLVERS: dict[str, type[Solver]] = {
    "dense": Dense,
    "krylov": BlockKrylov,
    "gram-power": GramPower,
    "arpack": Arpack,
    "randomized": Randomized,
    "lobpcg": Lobpcg,
}

__all__ = [
    "SOLVERS",
    "Arpack",
    "BlockKrylov",
    "Dense",
    "Eigenpairs",
    "GramPower",
    "Lobpcg",
    "PassState",
    "Randomized",
    "Solver",
    "canonical",
    "no_variance",
]
