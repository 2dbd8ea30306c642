"""What problems whose rows were summed have in common."""

from abc import ABC, abstractmethod
from typing import Any

from ..solvers import Eigenpairs


class SummedProblem(ABC):
    """An eigenproblem in a basis: its size does not depend on the number of rows."""

    #: Number of rows where they have weights; else it is the sum of these.
    n_rows: int | None = None
    operator: Any

    @property
    @abstractmethod
    def weight(self) -> float:
        """Number of rows, each as often as its weight says."""

    @property
    def count(self) -> int:
        """Number of rows."""
        return round(self.weight) if self.n_rows is None else self.n_rows

    @property
    def size(self) -> int:
        """Number of components there can be: the rank of the basis."""
        return self.operator.shape[0]

    def of_rows(self, pairs: Eigenpairs) -> Eigenpairs:
        """The pairs themselves: their vectors have an entry a vector of the basis."""
        return pairs

    def is_zero(self) -> bool:
        """Not known before the fit; rounding of a few basis vectors does no harm."""
        return False

    def known_scores(self, pairs: Eigenpairs) -> Any:
        """Scores of all rows, (n, r), where they are known without another pass; else None."""
        return None
