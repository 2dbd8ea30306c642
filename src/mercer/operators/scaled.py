"""A / c: an operator whose entries are of ordinary size, so that their squares can be summed."""

from .base import SymmetricOperator

# Sizes of entries whose squares, and sums of them over any number of rows, are ordinary numbers.
ORDINARY = (1e-100, 1e100)


class Scaled(SymmetricOperator):
    """A / unit.

    Parameters
    ----------
    operator : SymmetricOperator
    unit : float
    """

    def __init__(self, operator, unit: float):
        self.operator, self.unit = operator, unit
        self.shape, self.definite, self.even = operator.shape, operator.definite, operator.even

    def __matmul__(self, V):
        return (self.operator @ V) / self.unit

    def to_dense(self):
        """A / unit."""
        A = self.operator.to_dense()
        A /= self.unit
        return A

    def vectors(self, V):
        """As of A."""
        return self.operator.vectors(V)

    def progress(self):
        """That of A."""
        return self.operator.progress()

    @property
    def draft(self):
        """The draft of A over the unit."""
        draft = self.operator.draft
        return None if draft is None else Scaled(draft, self.unit)

    def start(self, k, rng):
        """Any vectors will do; those of A may overflow on the way."""
        return self.vectors(super().start(k, rng))

    def rows(self, index):
        """Some rows, (b, n)."""
        return self.operator.rows(index) / self.unit

    def rows_times(self, index, V):
        """Some rows of the product with V, (len(index), b)."""
        return self.operator.rows_times(index, V) / self.unit

    def visit(self, index, W):
        """The minor of some rows, (b, b), and their product with W, (b, k)."""
        K, P = self.operator.visit(index, W)
        return K / self.unit, P / self.unit

    def diagonal(self):
        """The diagonal, (n,)."""
        return self.operator.diagonal() / self.unit

    def trace(self):
        """The sum of all eigenvalues."""
        return self.operator.trace() / self.unit


def ordinary(operator) -> tuple[SymmetricOperator, float]:
    """The operator, and 1, or A / unit and the unit where its entries are huge or tiny."""
    size = operator.magnitude()
    if not size > 0 or size == float("inf") or ORDINARY[0] < size < ORDINARY[1]:
        return operator, 1.0
    return Scaled(operator, size), size
