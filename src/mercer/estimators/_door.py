"""The one door: parameters and rows are checked here, once, for all estimators.

Rows of any kind come in through `Door._open`: arrays and CSR matrices by scikit-learn's checks
(unless one look shows that those would leave them as they are), memmaps in blocks, tensors on their
device, files and iterators as `BlockRows`, Dask collections as `DaskRows`. Errors say where the
fault is and what to do.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, lru_cache, partial, wraps
from inspect import signature
from numbers import Integral, Real
from operator import ge, gt, le, lt
from os import PathLike
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..bases import BASES, AllPoints, BasisRecipe
from ..compute import TiledEngine, format_bytes, is_sparse, make_engine, parse_bytes, to_numpy
from ..compute.arrays import is_foreign, is_on_device
from ..compute.numbers import check_meaning, reason
from ..exceptions import InvalidParameterError, TableWarning, tell
from ..files import RowSource, is_arrow, is_table, table_like
from ..files.base import COUNTER, listed
from ..fitting.checkpoint import Checkpoint, identity_of
from ..fitting.costs import client_vectors
from ..fitting.task import FitTask
from ..kernels import KERNELS, Kernel, Precomputed
from ..kernels import Callable as CallableKernel
from ..preimage import PREIMAGES, Preimage, choose_preimage
from ..progress import PassBar
from ..rows import ArrayRows, BlockRows, DaskRows, Rows, is_dask, is_source
from ..rows.base import count_rows
from ..rows.blocks import WHOLE_SHARE
from ..rows.dask import is_number
from ..solvers import SOLVERS, Solver
from ..solvers.block_krylov import DRAFT_FLOOR
from ._output import summary_html
from ._sklearn import BaseEstimator

Fit = TypeVar("Fit", bound=Callable[..., Any])

# Threads that no machine has: libraries below us fail on more.
MOST_JOBS = 10_000
# Rows checked at a time when a file on disk is too large to check at once.
CHECK_ROWS = 65536
# Sums of a kernel's values that float64 holds, and the smallest value with all its digits.
LARGEST_SUM, SMALLEST_VALUE = 1e305, 1e-290
# Parameters that a fit may change when it goes on from a checkpoint.
NOT_OF_THE_RESULT = {"checkpoint", "n_jobs", "memory", "verbose", "callback", "copy_X"}
# Private attributes that a fit sets; public ones end in an underscore.
PRIVATE_RESULTS = {
    "_anchors",
    "_distance",
    "_dtype",
    "_encoding",
    "_kept",
    "_points",
    "_rectangular",
    "_state",
    "_stream",
    "_variance",
    "_weights",
}


class Rule:
    """Values that a parameter may have, and words for them.

    An estimator lists for each parameter what it may be, in scikit-learn's words: an `Interval`,
    `StrOptions`, a class, None, ``callable``, ``"boolean"``, ``"verbose"``, ``"array-like"`` or
    ``"random_state"``. scikit-learn has such checks for its own estimators only: its module is
    private and may change with any release, so these are ours.
    """

    def __init__(self, words: str, allows: Callable[[Any], bool]):
        self.words, self.allows = words, allows


class Interval(Rule):
    """Numbers of one type between two bounds; None for no bound, and NaN is never between them.

    Parameters
    ----------
    kind : numbers.Integral or numbers.Real
    left, right : number or None
    closed : "left", "right", "both" or "neither"
        Which bounds belong to the interval. An open infinite bound leaves infinity out.
    """

    def __init__(self, kind: Any, left: Any, right: Any, closed: str = "neither"):
        above = ge if closed in ("left", "both") else gt
        below = le if closed in ("right", "both") else lt
        low, high = -np.inf if left is None else left, np.inf if right is None else right
        number, name = (int, "an int") if kind is Integral else (float, "a float")
        ends = [str(end if np.isinf(end) else number(end)) for end in (low, high)]
        opening, closing = "[" if above is ge else "(", "]" if below is le else ")"
        super().__init__(
            f"{name} in the range {opening}{', '.join(ends)}{closing}",
            lambda x: isinstance(x, kind) and bool(above(x, low) and below(x, high)),
        )


class StrOptions(Rule):
    """One of a set of strings."""

    def __init__(self, options: set[str]):
        words = f"a str among {{{', '.join(map(repr, sorted(options)))}}}"
        super().__init__(words, lambda value: isinstance(value, str) and value in options)


def instance(kind: Any, words: str) -> Rule:
    """An object of a class, or of one of some."""
    return Rule(words, lambda value: isinstance(value, kind))


def holds_several(value) -> bool:
    """Whether the value has a length or a shape, and is no scalar and no string."""
    several = any(hasattr(value, name) for name in ("__len__", "shape", "__array__"))
    return several and not np.isscalar(value)


BOOLEAN = instance(bool | np.bool_, "a bool")
NONE = instance(type(None), "None")
POSITIVE, AT_LEAST_1 = Interval(Real, 0, None), Interval(Integral, 1, None, closed="left")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
WORDS: dict[Any, list[Rule]] = {
    None: [NONE],
    callable: [Rule("a callable", callable)],
    "array-like": [Rule("an array-like", holds_several)],
    "boolean": [BOOLEAN],
    "random_state": [
        Interval(Integral, 0, 2**32 - 1, closed="both"),
        instance(np.random.RandomState, "a numpy.random.RandomState"),
        NONE,
    ],
    "verbose": [Interval(Integral, 0, None, closed="left"), BOOLEAN],
}


def rules(constraint) -> list[Rule]:
    """What a constraint allows."""
    if isinstance(constraint, Rule):
        return [constraint]
    if isinstance(constraint, type):
        article = "an" if constraint.__name__[0].lower() in "aeiou" else "a"
        return [instance(constraint, f"{article} {constraint.__name__}")]
    return WORDS[constraint]


@cache
def checks_of(kind: Any) -> list[tuple[str, Any, list[Rule]]]:
    """Name, default and rules of every parameter that is checked.

    Kept for each class: to look them up takes longer than to fit some rows.
    """
    parameters, known = signature(kind.__init__).parameters, kind._parameter_constraints
    return [
        (name, parameters[name].default, [rule for one in known[name] for rule in rules(one)])
        for name in known
        if name in parameters
    ]


def one_of(words: list[str]) -> str:
    """Words with commas, and "or" before the last."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


class Door(BaseEstimator):
    """Checked parameters and rows, the kernel with numbers, the engine and the generator of a fit.

    Kernel methods have the parameters ``kernel, gamma, degree, coef0, kernel_params``. Those below
    are parameters of some estimators, and stand for what the others do.
    """

    # A parameter that is not listed is not checked here.
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions(set(KERNELS)), callable, Kernel],
        "n_components": [AT_LEAST_1],
        "gamma": [NOT_NEGATIVE, StrOptions({"median", "mean"}), None],
        "degree": [NOT_NEGATIVE],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "random_state": ["random_state"],
        "n_jobs": [None, Interval(Integral, -MOST_JOBS, MOST_JOBS, closed="both")],
        "memory": [POSITIVE, str, None],
        "verbose": ["verbose"],
        "copy_X": ["boolean"],
        "center": ["boolean"],
        "callback": [callable, None],
        "checkpoint": [str, PathLike, None],
        "basis": [StrOptions({"auto", *BASES}), BasisRecipe],
        "eigen_solver": [StrOptions({"auto", *SOLVERS}), Solver],
        "preimage": [StrOptions({"auto", *PREIMAGES}), Preimage],
        "tol": [NOT_NEGATIVE],
    }

    n_components: Any
    kernel: Any = None
    degree: Any
    coef0: Any
    kernel_params: Any
    gamma: Any = None
    memory: Any = None
    n_jobs: Any = None
    random_state: Any = None
    device: Any = "cpu"
    copy_X = False
    #: Rows that a fit needs at least.
    _least_rows = 2
    #: Whether it takes sparse rows, and whether it needs y.
    _sparse, _needs_target = True, False
    eigenvalues_: Any
    fit_inverse_transform = False
    verbose: int = 0
    callback: Any = None
    checkpoint: Any = None
    basis: Any = "auto"
    eigen_solver: Any = "auto"
    preimage: Any = "auto"
    center = True
    tol: float = 0.0
    max_iter: int | None  # no value: scikit-learn takes who has one for iterative
    iterated_power: Any = "auto"
    remove_zero_eig = False
    #: Whether "auto" may take a Fourier grid.
    _serves_grid = True
    #: How the columns of a table of more than numbers are encoded, by the kernel's `encoder`.
    _encoding: Any = None

    def save(self, path: str | PathLike[str], *, overwrite: bool = True) -> None:
        """Write the fitted model to a file that `mercer.load` opens; see `mercer.saving`.

        The file holds no code and is written whole or not at all.

        Parameters
        ----------
        path : str or path
            By convention with the suffix ``.mercer``.
        overwrite : bool, default=True
            False raises FileExistsError where there is a file already.
        """
        from ..saving import save

        save(self, path, overwrite=overwrite)

    def report(self, X: Any, path: str | PathLike[str] | None = None, **options: Any) -> Any:
        """An interactive page of the model and rows, shown in place by notebooks.

        Parameters
        ----------
        X : array-like, DataFrame, path or other rows of (n, n_features)
        path : str, path or None, default=None
            A file to write the page to as well.
        **options
            Colors, further columns, images and so on, as of `mercer.report.Report`.

        Returns
        -------
        mercer.report.Report
        """
        from ..report import Report

        return Report(self, X, path, **options)

    def _validate_params(self) -> None:
        """Raise InvalidParameterError for a parameter that none of its constraints allows."""
        kind: Any = type(self)
        for name, default, allowed in checks_of(kind):
            value = getattr(self, name)
            # What a class has by default it allows; most parameters are left at that.
            if value is not default and not any(rule.allows(value) for rule in allowed):
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must be "
                    f"{one_of([rule.words for rule in allowed])}. Got {value!r} instead.",
                    parameter=name,
                )

    def _open(self, X, *, reset: bool) -> Rows:
        """The rows of X, wherever they are, checked once and for all."""
        if reset:
            self._validate_params()
        else:
            check_is_fitted(self)
        original, X = X, self._encoded(X, reset)
        if type(X) is not np.ndarray and is_dask(X):
            if reset and self._encoder() is not None and hasattr(X, "columns"):
                left = [str(name) for name, kind in X.dtypes.items() if not is_number(kind)]
                self._check_all_read(
                    left,
                    "this one is on a cluster, with",
                    "X.compute() if it fits into memory, or a sample of it, or its columns of "
                    "numbers",
                )
            rows: Any = DaskRows(X, self.memory, self.n_jobs, self.device)
            validate_data(self, rows.head, reset=reset, skip_check_array=True)
        elif type(X) is not np.ndarray and is_source(X):
            rows = self._open_source(X, reset)
        else:
            rows = ArrayRows(self._check(X, reset), original, self.memory)
        if reset:
            self._dtype = rows.dtype
        return rows

    def _array(self, X, *, reset: bool):
        """The rows of X as one array; raises if they do not fit."""
        return self._open(X, reset=reset).as_array(type(self).__name__)

    def _encoded(self, X, reset: bool):
        """X as it is, or a table of more than numbers as the encoder of the kernel gives it."""
        encoder = self._encoder() if reset else None
        found = None if encoder is None else encoder.of(X)
        if found is not None:
            self._encoding = found
        return X if self._encoding is None else self._encoding.apply(X)

    def _encoder(self) -> Any:
        """What makes numbers of tables for the kernel asked for, or None."""
        kind = KERNELS.get(self.kernel, Kernel) if isinstance(self.kernel, str) else self.kernel
        return kind.encoder if isinstance(self.kernel, str | Kernel) else None

    def _check_all_read(self, left: list[str], where: str, instead: str) -> None:
        """Raise ValueError where columns are left out that the kernel's encoder would take."""
        if left:
            raise ValueError(
                f"kernel={self.kernel!r} compares categories of tables in memory as well as "
                f"numbers, and {where} {listed(left)}. Pass {instead}."
            )

    def _open_source(self, X, reset: bool) -> BlockRows:
        """Rows read in blocks, with the columns that the model was fitted to."""
        rows = BlockRows(X, self.memory, verbose=self.verbose)
        if reset:
            if self._encoder() is not None and not isinstance(X, RowSource):
                reasons = rows.source.reasons.items()
                self._check_all_read(
                    [f"{name} ({why})" for name, why in reasons if why != COUNTER],
                    f"{rows.source.name} would be read without",
                    "a data frame in memory, such as pandas.read_parquet(path), or "
                    "mercer.files.open_source(path, columns=[...]) with the columns of numbers "
                    "that are to be used",
                )
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
                f"{rows.source.name} has {rows.shape[1]} columns, and the model was fitted to "
                f"{self.n_features_in_}. Pass the same columns in the same order."
            )
        if names and rows.names not in (None, names):
            raise ValueError(
                f"{rows.source.name} has the columns {rows.names}, and the model was fitted to "
                f"{names}. Open it with columns= these."
            )
        return rows

    def _check(self, X, reset: bool):
        """X as a NumPy array, memmap, CSR matrix or tensor of finite floats."""
        if is_on_device(X) and self._computes_on_devices(reset):
            copied = reset and self._keeps_copy()
            return check_tensor(self, X, reset, least=self._least_rows, copy=copied)
        known = "device" in names_of_parameters(self.__class__)  # type: ignore[arg-type]
        if reset and not (known and self.device == "cpu"):
            X = in_main_memory(X, type(self).__name__)
        X = to_numpy(X) if is_foreign(X) else X
        if isinstance(X, np.memmap):
            check_file(X, self._least_rows if reset else 1)
            return validate_data(self, X, reset=reset, skip_check_array=True)
        return valid_rows(
            self,
            X,
            reset=reset,
            accept_sparse="csr" if self._takes_sparse() else False,
            dtype=[np.float64, np.float32],
            copy=reset and self._keeps_copy(),
            ensure_min_samples=self._least_rows if reset else 1,
        )

    @contextmanager
    def _task(self, X, sample_weight=None, looks: bool = True, **more) -> Iterator[FitTask]:
        """The task of a fit, checked as far as it can be before the work, its progress shown.

        Without `looks` there is no pass over rows that are not in memory.
        """
        rows: Any = self._open(X, reset=True)
        given = rows
        weights = None
        if sample_weight is not None:
            weights = checked_weights(sample_weight, count_rows(rows))
        if self._is_precomputed():
            self._check_precomputed(rows, weights)
        basis, refusal = self.basis, ""
        if isinstance(basis, str) and basis != "auto":
            basis = BASES[basis]()
        points = basis == "auto" or isinstance(basis, AllPoints)
        if points:
            rows, refusal = self._for_points(rows, required=basis != "auto")
        else:
            rows = self._for_passes(rows)
        if isinstance(basis, BasisRecipe) and basis.needs_count:
            # Row numbers are those of X, also where rows of no weight are left out.
            basis = basis.located(count_rows(given), given.take)
        if weights is not None and not weights.all():
            rows, weights = without_zeros(rows, weights, points and not refusal)
        array = rows.array if isinstance(rows, ArrayRows) else None
        if self.fit_inverse_transform and array is None:
            raise ValueError(
                "fit_inverse_transform=True solves an n x n system in one place, and the rows are "
                "not in memory. Leave it out: inverse_transform works without it."
            )
        # Passes over blocks show progress of their own.
        bar = PassBar(self.verbose, self.callback, drawn=not isinstance(rows, BlockRows))
        with self._open_checkpoint(rows, weights) as kept, bar as progress:
            device = None if isinstance(rows, DaskRows) else self.device
            engine = make_engine(
                array,
                memory=self.memory,
                device=device,
                threads=self.n_jobs,
                on_tiles=progress.tiles,
            )
            if array is not None:
                rows = ArrayRows(array, rows.original, self.memory, engine)
            solver, single = self._solver(), self._dtype == np.float32
            ends = self.tol == 0 and isinstance(solver, Solver) and solver.ends_by_passes
            asked = self.fit_inverse_transform or self.eigen_solver != "auto"
            task = FitTask(
                rows,
                array,
                self._named_kernel(rows.shape[1]),
                basis,
                solver,
                self.n_components,
                engine,
                self._make_rng(kept),
                progress,
                weights,
                self.center,
                0.0 if ends else max(float(self.tol), DRAFT_FLOOR if single else 0.0),
                self.max_iter,
                single,
                self.remove_zero_eig,
                kept,
                check_basis=self._check_preimage,
                asked_basis=self.basis,
                only_points=asked or self._is_precomputed(),
                grid_serves=self._serves_grid and self.preimage in ("auto", "ridge"),
                refusal=refusal,
                **more,
            )
            unseen = array is None and not looks
            yield task if unseen else task.with_pilot(self._make_kernel)

    def _for_points(self, rows: Rows, required: bool) -> tuple[Rows, str]:
        """The rows as a basis of all points can use them, or why they cannot be one."""
        if isinstance(rows, ArrayRows):
            return rows, ""
        budget = parse_bytes(self.memory)
        if isinstance(rows, BlockRows):
            limit = None if required else budget // WHOLE_SHARE
            try:
                array = rows.as_array(f"basis={self.basis!r}", limit)
            except ValueError:
                if required or not rows.source.repeatable:
                    raise
                return rows, f"the rows do not fit memory={format_bytes(budget)}"
            return ArrayRows(array, None, self.memory), ""
        if isinstance(rows, DaskRows) and not required:
            asked = isinstance(self.n_components, Integral)
            need = client_vectors(count_rows(rows), int(self.n_components) if asked else 0)
            if need > budget:
                return rows, (
                    f"the exact method keeps {format_bytes(need)} or more of vectors here, and "
                    f"memory allows {format_bytes(budget)}"
                )
        return rows, ""

    def _for_passes(self, rows: Rows) -> Rows:
        """A file on disk in blocks, and any array where a killed pass is to go on."""
        if not isinstance(rows, ArrayRows):
            return rows
        here = isinstance(rows.array, np.ndarray) or is_sparse(rows.array)
        killable = self.checkpoint is not None and not self.fit_inverse_transform and here
        if killable or isinstance(rows.array, np.memmap):
            return BlockRows(rows.array, self.memory)
        return rows

    def _check_precomputed(self, rows: Rows, weights) -> None:
        if self.fit_inverse_transform:
            raise ValueError(
                "Cannot fit_inverse_transform with a precomputed kernel, which has no rows to come "
                "back to. Give a kernel by name, or leave it out."
            )
        if self.basis not in ("auto", "points"):
            raise ValueError(
                f"basis={self.basis!r} needs points, and a precomputed kernel has none. "
                "Use basis='auto', or a kernel that is computed from the data."
            )
        if weights is not None and not weights.all():
            raise ValueError(
                "sample_weight has zeros, and rows of a precomputed kernel cannot be left out "
                "here. Leave them out before the fit."
            )
        check_gram(rows.as_array("A precomputed kernel"))

    def _check_preimage(self, basis) -> None:
        """Raise ValueError where the pre-images asked for cannot serve a basis."""
        if not isinstance(self.preimage, str) or self.preimage != "auto":
            choose_preimage(self.preimage, basis)

    def _solver(self) -> Any:
        """The solver asked for, with this estimator's settings where it is asked for by name."""
        asked = self.eigen_solver
        given = {"iterated_power": self.iterated_power} if asked == "randomized" else {}
        return SOLVERS[asked](**given) if isinstance(asked, str) and asked != "auto" else asked

    def _open_checkpoint(
        self, rows: Rows, weights=None
    ) -> AbstractContextManager[Checkpoint | None]:
        """Open or resume the checkpoint of a fit to these rows."""
        if self.checkpoint is None:
            return nullcontext()
        params = self.get_params(deep=False)
        if isinstance(self.random_state, np.random.RandomState):
            params["random_state"] = "a generator"
        settings = {name: params[name] for name in params.keys() - NOT_OF_THE_RESULT}
        identity = rows.identity() if weights is None else [*rows.identity(), weights]
        return Checkpoint(
            self.checkpoint, identity_of(settings, identity), seed_from(self.random_state)
        )

    def _device(self) -> Any:
        """Where the work is done: what `device` says, unless this estimator has no choice."""
        return self.device

    def _computes_on_devices(self, reset: bool) -> bool:
        """Whether data stay on the device they are on; else they come to main memory.

        In a fit by the parameter `device`; later, where the fitted basis is.
        """
        fitted = None if reset else vars(self).get("expansion_", vars(self).get("map_"))
        return self._device() != "cpu" if fitted is None else fitted.basis.engine.device is not None

    def _keeps_copy(self) -> bool:
        """Whether the model keeps the rows, and a copy of them was asked for."""
        return self.copy_X

    def _make_engine(self, X=None, on_tiles=None) -> TiledEngine:
        where = self._device()
        return make_engine(
            X, memory=self.memory, device=where, threads=self.n_jobs, on_tiles=on_tiles
        )

    def _make_rng(self, kept: Checkpoint | None = None) -> np.random.Generator:
        """The generator of a fit; one that goes on from a checkpoint draws as it did before."""
        return np.random.default_rng(seed_from(self.random_state) if kept is None else kept.seed)

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
            return self._encoding.kernel(self.kernel)
        if isinstance(self.kernel, Kernel):
            if self.gamma is not None:
                raise ValueError(
                    "gamma was given twice, to the estimator and with a kernel object. "
                    f"Write kernel={type(self.kernel).__name__}(gamma=...) and leave the other out."
                )
            return self.kernel
        if callable(self.kernel):
            return CallableKernel(self.kernel, self.kernel_params)
        kind = KERNELS[self.kernel]
        given = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        if given["gamma"] is None:
            given["gamma"] = 1.0 / d
        if self.kernel not in PAIRWISE_KERNEL_FUNCTIONS:
            # scikit-learn's KernelPCA ignores them for names of its own.
            given |= self.kernel_params or {}
        known = names_of_parameters(kind)
        asked = {name: value for name, value in given.items() if value is not None}
        return kind(**{name: value for name, value in asked.items() if name in known})

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or self.kernel == "precomputed"

    def _takes_sparse(self) -> bool:
        """A learned inverse transform gives dense rows, so it needs dense ones."""
        return self._sparse and not self.fit_inverse_transform

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.target_tags.required = tags.target_tags.multi_output = self._needs_target
        return tags

    @property
    def _n_features_out(self) -> int:
        """Columns of the scores or coordinates."""
        found = vars(self).get("expansion_")
        return self.eigenvalues_.shape[0] if found is None else found.n_components

    @property
    def _repr_html_(self):
        # A property, since scikit-learn has none where diagrams are turned off.
        diagram = super()._repr_html_
        return lambda: diagram() + summary_html(self)

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += summary_html(self)
        return bundle


def all_or_nothing(fit: Fit) -> Fit:
    """A fit that leaves the estimator as it was where it fails or is interrupted.

    It works on a copy with the same parameters and nothing fitted, whose attributes become those
    of the estimator at the end.
    """

    @wraps(fit)
    def whole(self, X, y=None, *more, **options):
        fresh = unfitted(self)
        # Overflow is checked for in results, with errors that name the kernel.
        with np.errstate(over="ignore", invalid="ignore"):
            fit(fresh, X, y, *more, **options)
        become(self, fresh)
        return self

    return cast(Fit, whole)


def unfitted(model):
    """An estimator with the same parameter objects and settings, and nothing fitted."""
    fresh = object.__new__(type(model))
    fresh.__dict__ = {name: x for name, x in vars(model).items() if not is_result(name)}
    return fresh


def become(model, fresh) -> None:
    """Give an estimator the results of another one, and those alone, in a single step."""
    kept = {name: value for name, value in vars(model).items() if not is_result(name)}
    # One assignment: an interrupt comes before it or after it.
    model.__dict__ = kept | vars(fresh)


def is_result(name: str) -> bool:
    """Whether an attribute comes from a fit."""
    return name in PRIVATE_RESULTS or (name.endswith("_") and not name.startswith("_"))


def valid_rows(estimator, X, **options):
    """X as an array or CSR matrix of finite floats, its columns noted or compared.

    As `sklearn.utils.validation.validate_data`, whose options it takes, with dates, masked and
    complex values refused, and errors that say where the fault is and what to do. Those checks
    allow for all kinds of data and take longer than the kernel of a hundred rows, so a matrix of
    finite floats without names is taken as it is.
    """
    types = options["dtype"] if isinstance(options["dtype"], list) else [options["dtype"]]
    plain = (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype.type in types
        and X.dtype.isnative
        and X.size
        and X.shape[0] >= options.get("ensure_min_samples", 1)
        and "feature_names_in_" not in vars(estimator)
    )
    if plain:
        with np.errstate(all="ignore"):
            plain = np.isfinite(X.sum())  # a sum that overflows is looked at entry by entry
    if plain and options.get("reset", True):
        estimator.n_features_in_ = X.shape[1]
    if plain and vars(estimator).get("n_features_in_") == X.shape[1]:
        return np.array(X) if options.get("copy") else X
    return checked_array(X, partial(validate_data, estimator), **options)


def checked_array(X, check: Callable = check_array, **options):
    """X as a check of scikit-learn gives it, or an error that says where the fault is."""
    name = options.get("input_name", "X")
    check_meaning(X, name)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return check(X, **options)
    except (ValueError, TypeError, OverflowError) as error:
        raise reason(X, error, name) from error


def check_file(X, least_rows: int = 1) -> None:
    """Raise ValueError unless a memmap is a matrix of finite numbers; read in blocks."""
    check_shape(X, X.dtype.kind in "biuf", least_rows)
    for start in range(0, X.shape[0], CHECK_ROWS):
        if not np.isfinite(X[start : start + CHECK_ROWS]).all():
            raise ValueError(
                f"Input X contains NaN or infinity in rows {start} to {start + CHECK_ROWS}. "
                "Remove or fill those rows first."
            )


def check_tensor(estimator, X, reset: bool, *, least: int = 2, copy: bool = False):
    """A matrix of finite numbers that lives on a device, checked there, as a torch tensor.

    At least `least` rows in a fit; with `copy` in memory of its own.
    """
    import torch

    X = X.detach() if isinstance(X, torch.Tensor) else torch.from_dlpack(X)
    check_shape(X, not X.dtype.is_complex, least if reset else 1)
    if X.dtype not in (torch.float32, torch.float64):
        X = X.to(torch.float64)
    elif copy:
        X = X.clone()
    if not bool(torch.isfinite(X).all()):
        raise ValueError("Input X contains NaN or infinity. Remove or fill those rows first.")
    return validate_data(estimator, X, reset=reset, skip_check_array=True)


def check_shape(X, is_numbers: bool, least_rows: int) -> None:
    """Raise ValueError unless X is a matrix of numbers with that many rows and a column."""
    if X.ndim != 2 or not is_numbers:
        raise ValueError(
            f"Expected a 2D array of numbers, got a {X.ndim}D array of type {X.dtype} instead."
        )
    if X.shape[0] < least_rows or X.shape[1] < 1:
        raise ValueError(
            f"Found array with shape {tuple(X.shape)} while a minimum of {least_rows} rows and 1 "
            "column is required."
        )


def check_gram(K) -> None:
    """Raise ValueError unless K is a square symmetric matrix."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"A precomputed kernel must be a square matrix, n_samples x n_samples, and X has "
            f"shape {tuple(K.shape)}. Pass the kernel between all training rows, or name a "
            "kernel to have it computed from the rows."
        )
    n, largest, gap = K.shape[0], 0.0, 0.0
    for start in range(0, n, 1024):
        rows = slice(start, start + 1024)
        gap = max(gap, abs(K[rows] - K[:, rows].T).max())
        largest = max(largest, abs(K[rows]).max())
    if not largest * n < LARGEST_SUM or 0 < largest < SMALLEST_VALUE:
        raise ValueError(
            f"The precomputed kernel holds values of up to {largest:.1e}, and float64 does not "
            f"hold sums of {n:,} of them with all digits. Scale it, K / np.abs(K).max()."
        )
    if gap > 1e-5 * largest:
        raise ValueError(
            f"A precomputed kernel must be symmetric, and entries across the diagonal differ by "
            f"up to {gap:.3g}. Pass (K + K.T) / 2 if that is rounding."
        )


def checked_weights(sample_weight: Any, n: int, least: int = 2) -> np.ndarray | None:
    """Weights as numbers (n,), or an error that says what is wrong; None for all alike.

    A number stands for the same weight of every row. At least `least` rows must count.
    """
    if sample_weight is None:
        return None
    w = np.asarray(to_numpy(sample_weight.compute() if is_dask(sample_weight) else sample_weight))
    if w.ndim == 0:
        w = np.full(n, w)
    if w.dtype.kind not in "biuf" or w.ndim != 1:
        raise ValueError(
            f"sample_weight must be a number for each row, and has shape {w.shape} and type "
            f"{w.dtype}."
        )
    if len(w) != n:
        raise ValueError(
            f"sample_weight.shape == {w.shape}, expected {(n,)}: a number for each of the {n} rows."
        )
    w = w.astype(float)
    if not np.isfinite(w).all():
        raise ValueError("sample_weight contains NaN or infinity. Give those rows a weight, or 0.")
    if (w < 0).any():
        raise ValueError(
            "Negative values in sample_weight: a row cannot count less than not at all. Use 0 to "
            "leave it out."
        )
    if np.count_nonzero(w) < least:
        raise ValueError(
            f"Only {np.count_nonzero(w)} of {n} values of sample_weight are not zero, and a "
            f"minimum of {least} rows that count is required."
        )
    return w


@lru_cache
def _seed_of(random_state: int) -> int:
    # Kept: NumPy takes longer than LAPACK needs for a few rows.
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def seed_from(random_state: Any) -> int:
    """A seed from any random state that scikit-learn takes; a generator is advanced."""
    if isinstance(random_state, Integral):
        return _seed_of(int(random_state))
    return _seed_of.__wrapped__(random_state)


def in_one_place(X, memory, who: str):
    """X as it is, or the rows of a file or device that fit; an error for rows on a cluster."""
    if type(X) is np.ndarray:
        return X
    if is_dask(X):
        return DaskRows(X).as_array(who)
    if is_on_device(X):
        return in_main_memory(X, who)
    if not is_source(X):
        return X
    rows = BlockRows(X, memory)
    return named_rows(rows.as_array(who), rows.names, X)


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


def without_zeros(rows: Rows, w: np.ndarray, all_points: bool) -> tuple[Any, np.ndarray]:
    """An array without the rows that count nothing; sums over other rows take them as they are."""
    if not isinstance(rows, ArrayRows):
        if all_points:
            raise ValueError(
                "sample_weight has zeros, and of all points of a cluster none can be left out. "
                "Leave them out before the fit, or use basis='landmarks'."
            )
        return rows, w
    some, array = np.flatnonzero(w), rows.array
    plain = is_sparse(array) or isinstance(array, np.ndarray)
    kept = array[some] if plain else array[some.tolist()]
    return ArrayRows(kept, rows.original, rows.memory), w[some]
