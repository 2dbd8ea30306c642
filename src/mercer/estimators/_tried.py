"""What a search tries: kernels by width, numbers of components, and the errors they leave.

One fit of a kernel gives the errors at all numbers of components. What is tried next depends on
the best so far: more components, the widths beside it, the numbers of components between.
"""

from itertools import pairwise

import numpy as np
from sklearn.base import clone

from ..kernels import Kernel, Laplacian
from ._trial import Trial
from .kernel_pca import KernelPCA


class Tried:
    """Errors by kernel and number of components, as a search finds them.

    Parameters
    ----------
    kernels : list of Kernel
        By width.
    trial : Trial
        What a model is put to.
    candidate : KernelPCA
        The settings of all fits.
    """

    def __init__(self, kernels: list[Kernel], trial: Trial, candidate: KernelPCA):
        self.kernels, self.trial, self.candidate = kernels, trial, candidate
        self.errors: dict[tuple[int, int], float] = {}

    def look(self, i: int, ranks: list[int]) -> None:
        """One fit of kernel i, and the errors at some numbers of components."""
        model = self.candidate.set_params(kernel=self.kernels[i], n_components=ranks[-1])
        found = self.trial.errors(model, ranks)
        self.errors |= {(i, r): e for r, e in zip(ranks, found, strict=True) if np.isfinite(e)}

    def look_further(self, most: int) -> None:
        """Twice as many components while the most of them are the best."""
        i, r = self.best
        while r == max(rank for _, rank in self.errors) and 2 * r <= most:
            self.look(i, [2 * r])
            i, r = self.best

    def look_beside(self) -> None:
        """The widths next to the best one, at all numbers of components that it was tried at."""
        i = self.best[0]
        ranks = sorted(r for j, r in self.errors if j == i)
        for j in {i - 1, i + 1} & set(range(len(self.kernels))):
            self.look(j, ranks)

    def look_between(self) -> None:
        """Numbers of components halfway from the best one to those beside it."""
        i, r = self.best
        ranks = sorted(rank for j, rank in self.errors if j == i)
        at = ranks.index(r)
        middle = {(r + other) // 2 for other in ranks[max(at - 1, 0) : at + 2]} - set(ranks)
        if middle:
            self.look(i, sorted(middle))

    @property
    def best(self) -> tuple[int, int]:
        """Which kernel and how many components have the smallest error."""
        return min(self.errors, key=self.errors.__getitem__)

    @property
    def best_kernel(self) -> Kernel:
        """The kernel of the smallest error."""
        return self.kernels[self.best[0]]

    def table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Widths, numbers of components and the errors of both, NaN where there are none."""
        places = sorted({i for i, _ in self.errors})
        ranks = sorted({r for _, r in self.errors})
        errors = [[self.errors.get((i, r), np.nan) for r in ranks] for i in places]
        gammas = np.array([self.kernels[i].gamma for i in places], dtype=float)
        return gammas, np.array(ranks), np.array(errors)


def widened(kernel, X, widths) -> list[Kernel]:
    """The kernel with sigma at each multiple of the median distance; itself if it has no width."""
    if not kernel.measures_distance:
        return [kernel.resolve(X)]
    base = clone(kernel).set_params(gamma="median").resolve(X).gamma
    power = 1 if isinstance(kernel, Laplacian) else 2
    return [clone(kernel).set_params(gamma=base / float(width) ** power) for width in widths]


def finer(widths) -> list[float]:
    """Widths with the geometric means of neighbors between them."""
    between = [float(np.sqrt(a * b)) for a, b in pairwise(widths)]
    return sorted([*widths, *between])
