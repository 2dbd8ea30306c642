"""Solvers: the leading eigenpairs of a symmetric operator.

A solver sees an operator and nothing else. `Dense` forms the matrix and is best when all
or many components are wanted; `BlockKrylov` touches it only through a handful of block
products and is best for a few components of many points; `Arpack` is the fastest for a few
components of up to a few thousand points; `GramPower` is the covariance-free method of Shi, Guo
and Xue. Two names are scikit-learn's: "randomized" is block Krylov with a fixed number of
products (`Randomized`), and "lobpcg" is block Krylov itself.
"""

from .base import Eigenpairs, PassState, Solver, canonical, no_variance
from .block_krylov import BlockKrylov, Randomized
from .gram_power import GramPower
from .peers import Arpack, Dense

SOLVERS: dict[str, type[Solver]] = {
    "dense": Dense,
    "krylov": BlockKrylov,
    "gram-power": GramPower,
    "arpack": Arpack,
    "randomized": Randomized,
    "lobpcg": BlockKrylov,
}

__all__ = [
    "SOLVERS",
    "Arpack",
    "BlockKrylov",
    "Dense",
    "Eigenpairs",
    "GramPower",
    "PassState",
    "Randomized",
    "Solver",
    "canonical",
    "no_variance",
]
