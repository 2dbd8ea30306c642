"""Pre-images: from a point of feature space back to a row.

A reconstruction with scores s is a sum of basis vectors with weights b + A s, and in general
no row maps onto it. A pre-image is a row whose image is near it. Keeping the mean b is what
makes this work: the weights then sum to one and the answer is close to a weighted mean of rows.

`FixedPoint` (Mika et al. 1999) finds the row whose image is nearest, by ascent of the inner
product; it needs points as the basis and a kernel whose gradient is known. `DistanceMDS`
(Kwok & Tsang 2004) turns inner products with some near training rows into distances and places
the answer among those rows; it needs a kernel of the distance. `KernelRidge` (Bakir, Weston &
Schoelkopf 2004) learns rows from scores by regression; it needs nothing but training rows.

Which to choose: nearest in feature space is not nearest to the clean row. To invert what was
transformed, a ridge with a small alpha is closest of all, and after its first call the fastest; to
denoise with a Gaussian kernel the fixed point is a good default, with all others the ridge; under
impulse noise the distances are best. A recipe's ``fit(expansion, X)`` gives a function from scores
to `Preimages`.

Noise shrinks scores, whatever the method: `Compensation` undoes that for Gaussian kernels.
"""

from ..bases import Basis, ColumnBasis, FourierBasis, GramBasis
from ..kernels import RBF, Linear
from .base import Preimage, Preimages
from .distance import DistanceMDS
from .fixed_point import FixedPoint
from .noise import Compensation
from .ridge import KernelRidge, ridge_inverse

PREIMAGES: dict[str, type[Preimage]] = {
    "fixed-point": FixedPoint,
    "distance": DistanceMDS,
    "ridge": KernelRidge,
}


def choose_preimage(asked: str | Preimage, basis: Basis, denoising: bool = False) -> Preimage:
    """The method asked for, or an error that says why it cannot serve the basis.

    "auto" is for the linear kernel its closed form, for Gaussian kernels the ridge to invert scores
    and the fixed point to denoise, and the ridge for all others.
    """
    if not isinstance(asked, str) or asked != "auto":
        preimage = PREIMAGES[asked]() if isinstance(asked, str) else asked
        preimage.check(basis)
        return preimage
    at_hand = basis.points is not None and not (isinstance(basis, GramBasis) and not basis.at_hand)
    linear = isinstance(basis.kernel, Linear) and (at_hand or isinstance(basis, ColumnBasis))
    climbed = isinstance(basis.kernel, RBF) and (at_hand or isinstance(basis, FourierBasis))
    return FixedPoint() if linear or (climbed and denoising) else KernelRidge()


__all__ = [
    "PREIMAGES",
    "Compensation",
    "DistanceMDS",
    "FixedPoint",
    "KernelRidge",
    "Preimage",
    "Preimages",
    "choose_preimage",
    "ridge_inverse",
]
