"""Input of the estimators: rows checked once, the kernel with numbers, the generator of a fit."""

from functools import cache, lru_cache
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..compute import TiledEngine, make_engine, to_numpy
from ..compute.arrays import is_foreign, is_on_device
from ..exceptions import TableWarning, tell
from ..files import RowSource, is_arrow, is_table, table_like
from ..files.columns import COUNTER, listed
from ..kernels import KERNELS, Callable, Gower, Kernel, Precomputed
from ..rows import ArrayRows, BlockRows, DaskRows, Rows, is_dask, is_source
from ..rows.chunks import is_number
from ._checks import check_file, check_tensor, valid_rows
from ._mixed import TableEncoding, is_mixed
from ._parameters import CheckedEstimator, Interval, StrOptions
from ._summary import Portable

# Kernel names whose parameters scikit-learn's KernelPCA ignores in kernel_params; ours
# beyond those take them.
OWN_KERNELS = {"matern", "rational_quadratic"}


class KernelInput(Portable, CheckedEstimator):
    """Checked rows, the kernel with numbers, the engine and the generator of a fit.

    A subclass has the parameters ``kernel, gamma, degree, coef0, kernel_params, memory, n_jobs,
    random_state``. Those below are parameters of some, and stand for what the others do.
    """

    _parameter_constraints: ClassVar[dict] = {
        "kernel": [StrOptions(set(KERNELS)), callable, Kernel],
        "gamma": [Interval(Real, 0, None, closed="left"), StrOptions({"median", "mean"}), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "memory": [Interval(Real, 0, None, closed="neither"), str, None],
        "verbose": ["verbose"],
    }

    device: Any = "cpu"
    copy_X = False
    fit_inverse_transform = False
    verbose: int = 0
    #: How the columns of a data frame of more than numbers are encoded, for the Gower kernel.
    _encoding: TableEncoding | None = None

    def _open(self, X, *, reset: bool) -> Rows:
        """The rows of X, wherever they are, checked once and for all."""
        if reset:
            self._validate_params()
        else:
            check_is_fitted(self)
        original, X = X, self._encoded(X, reset)
        if type(X) is np.ndarray:
            rows: Rows = ArrayRows(self._check(X, reset), original, self.memory)
        elif is_dask(X):
            rows = self._open_dask(X, reset)
        elif is_source(X):
            rows = self._open_source(X, reset)
        else:
            rows = ArrayRows(self._check(X, reset), original, self.memory)
        if reset:
            self._dtype = rows.dtype
        return rows

    def _array(self, X, *, reset: bool):
        """The rows of X as one array, for an estimator that needs them so."""
        return self._open(X, reset=reset).whole(type(self).__name__).array

    def _encoded(self, X, reset: bool):
        """X as it is, or a data frame of categories and missing entries as one of numbers."""
        if reset and self._is_gower() and is_mixed(X):
            self._encoding = TableEncoding.of(X)
        return X if self._encoding is None else self._encoding.apply(X)

    def _check_numbers(self, what: str) -> None:
        """Raise ValueError for what has no meaning where columns are categories."""
        if self._encoding is not None:
            raise ValueError(
                f"The model was fitted to a data frame of more than numbers, and {what}. Fit to "
                "columns of numbers, with no entry missing, for that."
            )

    def _is_gower(self) -> bool:
        return isinstance(self.kernel, Gower) or self.kernel == "gower"

    def _open_dask(self, X, reset: bool) -> DaskRows:
        """Rows where their chunks are, with their columns noted or compared."""
        if reset and self._is_gower() and hasattr(X, "columns"):
            check_numbers_of(X)
        rows = DaskRows(X, self.memory, self.n_jobs, self.device)
        validate_data(self, rows.head, reset=reset, skip_check_array=True)
        return rows

    def _open_source(self, X, reset: bool) -> BlockRows:
        """Rows read in blocks, with the columns that the model was fitted to."""
        rows = BlockRows(X, self.memory, verbose=self.verbose)
        if reset and self._is_gower() and not isinstance(X, RowSource):
            check_all_read(rows)
        if reset:
            self.n_features_in_ = rows.shape[1]
            if rows.names is not None:
                self.feature_names_in_ = np.array(rows.names, dtype=object)
            for note in rows.source.notes:
                tell(note, TableWarning)
            return rows
        names = list(vars(self).get("feature_names_in_", ()))
        if names and is_table(X) and rows.names not in (None, names):
            rows = BlockRows(X, self.memory, names, self.verbose)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"{rows.name} has {rows.shape[1]} columns, and the model was fitted to "
                f"{self.n_features_in_}. Pass the same columns in the same order."
            )
        if names and rows.names not in (None, names):
            raise ValueError(
                f"{rows.name} has the columns {rows.names}, and the model was fitted to {names}. "
                "Open it with columns= these."
            )
        return rows

    def _check(self, X, reset: bool):
        """X as a NumPy array, memmap, CSR matrix or tensor of finite floats."""
        if is_on_device(X) and self._computes_on_devices(reset):
            return check_tensor(self, X, reset, copy=reset and self._keeps_copy())
        known = "device" in names_of_parameters(self.__class__)  # type: ignore[arg-type]
        if reset and not (known and self.device == "cpu"):
            X = in_main_memory(X, type(self).__name__)
        X = to_numpy(X) if is_foreign(X) else X
        if isinstance(X, np.memmap):
            check_file(X, 2 if reset else 1)
            return validate_data(self, X, reset=reset, skip_check_array=True)
        return valid_rows(
            self,
            X,
            reset=reset,
            accept_sparse="csr" if self._takes_sparse() else False,
            dtype=[np.float64, np.float32],
            copy=reset and self._keeps_copy(),
            ensure_min_samples=2 if reset else 1,
        )

    def _computes_on_devices(self, reset: bool) -> bool:
        """Whether data stay on the device they are on; else they come to main memory."""
        return self.device != "cpu"

    def _keeps_copy(self) -> bool:
        """Whether the model keeps the rows, and a copy of them was asked for."""
        return self.copy_X

    def _make_engine(self, X=None, on_tiles=None) -> TiledEngine:
        return make_engine(
            X, memory=self.memory, device=self.device, threads=self.n_jobs, on_tiles=on_tiles
        )

    def _make_rng(self) -> np.random.Generator:
        return np.random.default_rng(self._draw_seed())

    def _draw_seed(self) -> int:
        return seed_from(self.random_state)

    def _make_kernel(self, X) -> Kernel:
        """The kernel asked for, with numbers for its parameters, checked against X."""
        kernel = self._named_kernel(X.shape[1])
        gamma = kernel.gamma
        if gamma is not None and not isinstance(gamma, str) and not 0 <= gamma < np.inf:
            raise ValueError(
                f"gamma={gamma!r} must be a finite number that is not negative, such as 0.1."
            )
        # gamma is always measured on the same rows, whatever random_state is.
        resolved = kernel.resolve(X)
        resolved.check(X)
        return resolved

    def _named_kernel(self, d: int) -> Kernel:
        """The kernel asked for, for rows of d columns."""
        if self._encoding is not None:
            return self._encoded_kernel()
        if isinstance(self.kernel, Kernel):
            if self.gamma is not None:
                raise ValueError(
                    "gamma was given twice, to the estimator and with a kernel object. "
                    f"Write kernel={type(self.kernel).__name__}(gamma=...) and leave the other out."
                )
            return self.kernel
        if callable(self.kernel):
            return Callable(self.kernel, self.kernel_params)
        kind = KERNELS[self.kernel]
        given = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        if given["gamma"] is None:
            given["gamma"] = 1.0 / d
        if self.kernel in OWN_KERNELS:
            given |= self.kernel_params or {}
        known = names_of_parameters(kind)
        return kind(**{name: value for name, value in given.items() if name in known})

    def _encoded_kernel(self) -> Kernel:
        """The kernel of encoded columns, each of which has the range 1."""
        if isinstance(self.kernel, Gower) and self.kernel.ranges is not None:
            raise ValueError(
                "Gower was given ranges=, and the columns of a data frame with categories or "
                "missing entries have theirs from the training rows. Leave ranges out."
            )
        return Gower(ranges=1.0)

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or self.kernel == "precomputed"

    def _takes_sparse(self) -> bool:
        """A learned inverse transform gives dense rows, so it needs dense ones."""
        return not self.fit_inverse_transform

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.pairwise = self._is_precomputed()
        return tags


@lru_cache
def seed_of(random_state: int) -> int:
    """The seed that a number stands for; NumPy takes longer than LAPACK needs for a few rows."""
    return drawn(random_state)


def seed_from(random_state: Any) -> int:
    """A seed from any random state that scikit-learn takes."""
    return seed_of(int(random_state)) if isinstance(random_state, Integral) else drawn(random_state)


def drawn(random_state: Any) -> int:
    """The next seed of a random state."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def in_one_place(X, memory, who: str):
    """X as it is, or the rows of a file or device that fit; an error for rows on a cluster."""
    if type(X) is np.ndarray:
        return X
    if is_dask(X):
        return DaskRows(X).whole(who)
    if is_on_device(X):
        return in_main_memory(X, who)
    if not is_source(X):
        return X
    rows = BlockRows(X, memory)
    return named_rows(rows.whole(who).array, rows.names, X)


def check_all_read(rows: BlockRows) -> None:
    """Raise ValueError where a table for the Gower kernel would be read without some columns."""
    left = [f"{name} ({why})" for name, why in rows.source.reasons.items() if why != COUNTER]
    if left:
        raise ValueError(
            f"The Gower kernel compares categories as well as numbers, and {rows.name} would be "
            f"read without {listed(left)}. Pass a data frame in memory, such as "
            "pandas.read_parquet(path), or mercer.files.open_source(path, columns=[...]) with the "
            "columns of numbers that are to be used."
        )


def check_numbers_of(frame: Any) -> None:
    """Raise ValueError for categories of a Dask dataframe, which only frames in memory may have."""
    left = [str(name) for name, kind in frame.dtypes.items() if not is_number(kind)]
    if left:
        raise ValueError(
            f"The Gower kernel takes categories of data frames in memory, and this one is on a "
            f"cluster, with {listed(left)}. Pass X.compute() if it fits into memory, or a sample "
            "of it, or its columns of numbers."
        )


def named_rows(rows, names: list[str] | None, X):
    """Rows of an Arrow stream with their names, as scikit-learn reads them; others as they are."""
    return table_like(rows, names, X) if names is not None and is_arrow(X) else rows


def in_main_memory(X, who: str):
    """Rows of any library as NumPy's, with a warning where they were on a device."""
    if is_on_device(X):
        tell(
            f"{who} computes in main memory, and these rows are on a device: they are copied. "
            "The page 'On a GPU' of the documentation says what is computed where rows are."
        )
    return to_numpy(X) if is_foreign(X) else X


@cache
def names_of_parameters(kind: Any) -> frozenset[str]:
    """The parameters of a recipe's class; to look them up takes longer than checking 100 rows."""
    return frozenset(kind._get_param_names())
