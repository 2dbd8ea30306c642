"""What a fused tile needs to know of a kernel."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ScalarMap:
    """A kernel as a scalar function of inner products of scaled rows.

    Attributes
    ----------
    name : str
        "exp2", "matern", "rational", "power", "tanh" or "identity".
    scale : float
        What rows are multiplied with.
    parameters : tuple of float
        At most one.
    degree : int
        A whole parameter.
    distance : bool
        Whether half of both rows' squared norms are taken off the inner product, which makes
        it minus half a squared distance.
    unit : bool
        Whether rows are brought to length one.
    rough : bool
        Whether rounding of the distance of a row to itself, which is zero, would be seen: the
        map has a kink there.
    bounded : bool
        Whether values lie between -1 and 1, as float16 needs them.
    hollow : bool
        Whether a row has no value with itself: zeros on the diagonal.
    """

    name: str
    scale: float = 1.0
    parameters: tuple = ()
    degree: int = 0
    distance: bool = False
    unit: bool = False
    rough: bool = False
    bounded: bool = True
    hollow: bool = False
