"""Selectors: choose rows of the data, called atoms or landmarks, that represent all of them.

Landmarks D span a subspace of the feature space, and the part of the data outside it is lost:
``tr R / tr K`` with R = K - K_XD K_DD^+ K_DX. No d directions lose less than those of kernel PCA,
the share of the eigenvalues beyond the d-th; every selector pays a factor on top for using points.
All have ``select(kernel, X, size, rng)``, which returns row indices in the order of choice
(k-means: points). A nested selector's first k atoms are its choice for size k, so one selection
serves every smaller size. Equal rows are chosen once, and if the data have fewer distinct or
independent rows, fewer than `size` are returned.

How to choose:

- `TwoStage`, the default, lets `FullGreedy` choose within a uniform pool. No parameter, no
  eigenpairs, nested, and close to the best there is.
- `SubspaceGreedy` in the second stage where the spectrum decays fast, or for the leading
  components (``n_targets`` = their number, weighted, centered).
- `KMeans` where landmarks need not be rows: the lowest error of all for Gaussian kernels on
  continuous data, and the best leading components.
- `RPCholesky` where no pool is wanted: all n rows are candidates, K is never formed.
- `Novelty` for streams: it reads each row once. So does `PreimageDictionary`, whose points are not
  rows.
- `GroupLasso`, `ComponentLasso`, `SparseBayes`, `SparseGreedy`, `RidgeLeverage`, `NormWeighted`: by
  their papers, for comparison. `GreedyCholesky` and `FarthestPoint` choose outliers and are no
  better than random rows on noisy data.

Measured loss over the smallest possible, geometric mean of eleven data sets, 10, 20 and 50 atoms of
1,500 rows, Gaussian kernel of the mean distance (``benchmarks/selectors.py``; more in
``docs/choosing-landmarks.md``):

    1.44  KMeans                      1.74  GroupLasso(norm="rkhs")   2.54  RidgeLeverage
    1.48  SubspaceGreedy              1.79  SparseGreedy, on subset   2.60  NormWeighted
    1.53  FullGreedy                  2.06  SparseBayes               2.61  ComponentLasso
    1.63  SparseGreedy                2.10  RPCholesky                2.67  Uniform
    1.69  GroupLasso                  2.14  GroupLasso(unit=False)    2.73  FarthestPoint
    1.69  KMeans(snap=True)           2.49  Novelty                   2.96  GreedyCholesky

For sparse kernel PCA itself, loadings with most entries zero, see `sparse_components`.
A new selector is a subclass of `Selector` that is imported here: `SELECTORS`, over which the tests
run, are all of these.
"""

from .base import Selector
from .cholesky import GreedyCholesky, RPCholesky
from .greedy import FullGreedy, SparseGreedy, SubspaceGreedy
from .lasso import ComponentLasso, GroupLasso
from .online import Novelty, NoveltyRule, PreimageDictionary
from .sampling import FarthestPoint, KMeans, NormWeighted, RidgeLeverage, TwoStage, Uniform
from .sparse import SparseBayes, SparseComponents, sparse_components

SELECTORS: dict[str, type[Selector]] = {
    name: kind
    for name, kind in list(vars().items())
    if isinstance(kind, type) and issubclass(kind, Selector) and kind is not Selector
}

__all__ = ["SELECTORS", "NoveltyRule", "Selector", "SparseComponents", "sparse_components"]
__all__ += sorted(SELECTORS)
