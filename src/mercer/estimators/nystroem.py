"""Nystroem features: coordinates whose inner products are the kernel, as landmarks know it."""

from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from ..bases import Landmarks
from ..compute import Array, to_numpy
from ..exceptions import tell
from ..files import is_cluster_table
from ..fitting.expansion import KernelExpansion
from ..kernels import Chi2, Kernel
from ..selectors import SELECTORS, Selector
from ..selectors.base import row_keys
from ._checks import FINITE, NOT_NEGATIVE, StrOptions
from ._door import Door, Fitted, all_or_nothing, kept
from ._model import Scores
from ._sklearn import ClassNamePrefixFeaturesOutMixin, TransformerMixin


class Nystroem(Scores, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Door):
    """Features whose inner products are those of the kernel, by landmarks.

    A drop-in replacement of `sklearn.kernel_approximation.Nystroem`, whose landmarks are drawn
    uniformly: chosen ones are closer at the same number. For the same landmarks the features are
    the same.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
    gamma : float, "median", "mean" or None, default=None
        None for 1 / n_features, and 1 for "chi2", as in scikit-learn.
    coef0, degree : float or None, default=None
        Of polynomial and sigmoid kernels; None for 1 and 3.
    kernel_params : dict or None, default=None
    n_components : int, default=100
        Landmarks, and features.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Threads; None for all cores.
    selector : Selector, str or None, default=None
        How landmarks are chosen, see `mercer.selectors`; None takes less time than the rest.
        ``Uniform()`` draws them as scikit-learn does.
    memory : int, str or None, default=None
        Byte budget of the work, such as "2GB".

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The landmarks.
    component_indices_ : array of int of shape (n_components,) or None
        Which training rows they are; None where they are no rows, as those of `KMeans`, or rows of
        a table on a cluster, which have no numbers.
    normalization_ : array of shape (n_components, n_components)
        Features are ``k(X, components_) @ normalization_.T``.
    kernel_ : Kernel
    expansion_ : KernelExpansion
    n_features_in_ : int
    feature_names_in_ : array of str
        Their names, where X has them.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import Nystroem
    >>> X, _ = load_digits(return_X_y=True)
    >>> Nystroem(n_components=50, gamma="median", random_state=0).fit_transform(X).shape
    (1797, 50)
    """

    _fitted: ClassVar[dict[str, Fitted]] = Door._fitted | {
        "kernel_": kept(Kernel),
        "expansion_": kept("KernelExpansion d r"),
        "component_indices_": kept("r int or None"),
    }
    _least_rows = 1

    kernel: str | Kernel | Any = "rbf"
    _: KW_ONLY
    coef0: Annotated[float | None, FINITE, None] = None  # type: ignore[assignment]
    degree: Annotated[float | None, NOT_NEGATIVE, None] = None  # type: ignore[assignment]
    n_components: int = 100
    selector: Annotated[str | Selector | None, StrOptions(set(SELECTORS)), Selector, None] = None

    def fit(self, X: Array, y: Any = None) -> Self:
        """Choose landmarks among the rows of X.

        Parameters
        ----------
        X : array-like, sparse CSR matrix, path or other source of (n_samples, n_features)
            On a cluster, and where it does not fit `memory`, landmarks are chosen from 20,000
            uniform rows, or as many as fit.
        y : ignored

        Returns
        -------
        self
        """
        with all_or_nothing(self) as fresh:
            original, (X, numbers) = X, fresh._array_or_sample(X)
            if numbers is not None and len(numbers) < fresh.n_components:
                tell(
                    f"n_components={fresh.n_components:,}: all {len(numbers):,} rows of the sample "
                    "that landmarks are chosen from are taken. Raise memory for more."
                )
            if X.dtype != fresh._dtype and isinstance(X, np.memmap):
                X = np.asarray(X, fresh._dtype)  # a file of integers, or in another byte order
            fresh._check_has_rows("Nystroem")
            kernel, engine, asked = fresh._make_kernel(X), fresh._make_engine(X), fresh.selector
            selector = SELECTORS[asked]() if isinstance(asked, str) else asked
            recipe = Landmarks(min(fresh.n_components, X.shape[0]), selector)
            basis = recipe.build(kernel, X, engine, fresh._make_rng())
            W = to_numpy(basis.whitener(X.dtype))
            N = W @ (W / np.linalg.norm(W, axis=0)).T  # G^{-1/2}, of which W is a factor
            # Nothing is centered: a mean of zero, and one direction for each feature.
            frame = np.column_stack([np.zeros(len(N)), N]).astype(X.dtype)
            # The rows that landmarks are, the first of equal ones; none where one is no row.
            names = range(X.shape[0]) if numbers is None else numbers.tolist()
            rows = {key: i for i, key in reversed(list(zip(names, row_keys(X), strict=True)))}
            places = [rows.get(key) for key in row_keys(basis.points)]
            has_numbers = not is_cluster_table(original) and None not in places
            attributes = {
                "kernel_": basis.kernel,
                "component_indices_": np.array(places) if has_numbers else None,
                "expansion_": KernelExpansion(basis, frame, np.diag([0.0, *np.ones(len(N))])),
            }
            fresh._adopt(attributes)
        return self

    def _named_kernel(self, d: int) -> Kernel:
        # scikit-learn leaves a gamma of None to the kernel's function; that of chi2 takes 1.
        if self.kernel == "chi2" and self.gamma is None:
            return Chi2(1.0)
        return super()._named_kernel(d)

    @property
    def components_(self) -> Any:
        """The landmarks."""
        return self.expansion_.basis.points

    @property
    def normalization_(self) -> np.ndarray:
        """What makes features of kernel values; symmetric."""
        return self.expansion_.frame[:, 1:]
