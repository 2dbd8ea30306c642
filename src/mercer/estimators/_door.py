"""The one door: what every estimator is, and how its parameters and rows become the task of a fit.

Rows of any kind come in through `Door._open`. Every fit is `Door._fit`: the task, a choice, the
problem, its eigenpairs, and `_adopt`, the only place that sets what an estimator has once it is
fitted. What that is, each class declares in `_fitted`; saving, "all or nothing" and the test of the
documentation follow from the declaration.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from numbers import Integral
from os import PathLike
from typing import Annotated, Any, ClassVar, NamedTuple, Self, dataclass_transform

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils.validation import check_is_fitted, validate_data

from ..bases import BASES, AllPoints, BasisRecipe, Landmarks, PointGram, PrecomputedBasis
from ..compute import TiledEngine, make_engine, match_sparsity, on_device_of, parse_bytes, to_numpy
from ..compute.arrays import is_foreign, is_on_device, stack_rows
from ..exceptions import InvalidRowsError
from ..fitting.checkpoint import Checkpoint, identity_of
from ..fitting.choosing import Plan, choose, solve
from ..fitting.functions import SurveyOf
from ..fitting.task import FitTask, announced, build_problem
from ..kernels import KERNELS, BlockFunction, Kernel, Precomputed
from ..kernels import Callable as CallableKernel
from ..kernels.derived import CompositeKernel
from ..kernels.function import MISPLACED, Objects
from ..preimage import PREIMAGES, Preimage, choose_preimage
from ..progress import PassBar
from ..rows import (
    ArrayRows,
    Opening,
    Rows,
    count_rows,
    engine_for,
    in_memory,
    is_elsewhere,
    like_of,
    open_rows,
    with_extras,
    without_weightless,
)
from ..solvers import SOLVERS, Solver
from ..solvers.block_krylov import DRAFT_FLOOR
from . import _checks
from ._output import summary_html
from ._sklearn import BaseEstimator

# Rows that measure the width of a stream's kernel, at least: until as many have come, `partial_fit`
# begins again with all of them.
SETTLING_ROWS = 100
# Upper limit on n_jobs: libraries below us fail on more.
MOST_JOBS = 10_000
# Beside the words of scikit-learn -1: no line of progress, however long the fit takes.
QUIET = _checks.Interval(Integral, -1, -1, closed="both")
# Rows that are enough to learn from where not all are at hand, and copies that fits to them make.
SAMPLED_ROWS, SAMPLE_COPIES = 20_000, 16
# Kernels that are computed from rows, and bases without features and grids.
NO_MATRIX = _checks.StrOptions(set(KERNELS) - {"precomputed"})
OF_POINTS = {"auto", "points", "landmarks"}
PointKernel = Annotated[str | Kernel | Callable, NO_MATRIX, callable, Kernel]
# Parameters that a fit may change when it goes on from a checkpoint.
NOT_OF_THE_RESULT = {"checkpoint", "n_jobs", "memory", "verbose", "callback", "copy_X"}


class Fitted(NamedTuple):
    """A fitted attribute.

    Attributes
    ----------
    kind : object
        What its value must be, as `mercer.saving.kinds` says.
    saved : bool
        Whether model files hold it; the others are computed from what they hold.
    always : bool
        Whether every file has it: some fits do not set all, and earlier versions had fewer.
    """

    kind: Any = Any
    saved: bool = True
    always: bool = False


def kept(kind: Any) -> Fitted:
    """A fitted attribute that every model file holds."""
    return Fitted(kind, always=True)


#: A fitted attribute that model files leave out: it follows from the rest, or is made anew.
NOT_SAVED = Fitted(saved=False)


def not_saved(names: str) -> dict[str, Fitted]:
    """Several such attributes."""
    return dict.fromkeys(names.split(), NOT_SAVED)


def is_float(dtype: Any) -> bool:
    """Whether a value is a type that kernels are computed in."""
    return isinstance(dtype, np.dtype) and dtype in (np.float32, np.float64)


@dataclass_transform()
class Door(BaseEstimator):
    """Checked parameters and rows, the kernel with numbers, the engine and the generator of a fit.

    Kernel methods have the parameters ``kernel, gamma, degree, coef0, kernel_params``. The
    class attributes below are parameters of some estimators, and constants of the others.
    """

    # Rules of parameters whose types do not bring theirs, as `Annotated`; others are not checked.
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [_checks.StrOptions(set(KERNELS)), callable, Kernel],
        "n_components": [_checks.AT_LEAST_1],
        "gamma": [_checks.NOT_NEGATIVE, _checks.MEASURES, None, _checks.WIDTHS],
        "degree": [_checks.NOT_NEGATIVE],
        "coef0": [_checks.FINITE],
        "kernel_params": [dict, None],
        "device": [_checks.DEVICE, None],
        "random_state": ["random_state"],
        "n_jobs": [None, _checks.Interval(Integral, -MOST_JOBS, MOST_JOBS, closed="both")],
        "memory": [_checks.POSITIVE, str, None],
        "verbose": ["verbose", QUIET],
        "copy_X": ["boolean"],
        "center": ["boolean"],
        "callback": [callable, None],
        "checkpoint": [str, PathLike, None],
        "basis": [_checks.StrOptions({"auto", *BASES}), BasisRecipe],
        "eigen_solver": [_checks.StrOptions({"auto", *SOLVERS}), Solver],
        "preimage": [_checks.StrOptions({"auto", *PREIMAGES}), Preimage],
        "tol": [_checks.NOT_NEGATIVE],
    }
    #: All that a fit sets, by name.
    _fitted: ClassVar[dict[str, Fitted]] = {
        "n_features_in_": kept("int d"),
        "feature_names_in_": Fitted("d text"),
        "_dtype": Fitted(is_float),
        "_encoding": Fitted("Objects|TableEncoding d names"),
    }

    kernel: Any = None
    gamma: Any = None
    memory: Any = None
    n_jobs: Any = None
    random_state: Any = None
    device: Any = "cpu"
    copy_X = False
    #: Rows that a fit needs at least.
    _least_rows = 2
    #: Types of entries that arrays are left in.
    _types: ClassVar[Any] = [np.float64, np.float32]
    #: Whether it takes sparse rows, and whether it needs y.
    _sparse, _needs_target = True, False
    fit_inverse_transform = False
    verbose: int = 0
    callback: Any = None
    checkpoint: Any = None
    basis: Any = "auto"
    eigen_solver: Any = "auto"
    preimage: Any = "auto"
    center = True
    tol: float = 0.0
    iterated_power: Any = "auto"
    remove_zero_eig = False
    #: Bases beside all points that "auto" may take, and rows up to which it takes all points.
    _candidates: ClassVar[frozenset[str]] = frozenset(("columns", "fourier", "landmarks"))
    _most_points: ClassVar[int | None] = None
    #: Whether all points may be rows that are not in memory.
    _points_anywhere: ClassVar[bool] = True
    #: What a progress bar calls the fit.
    _title: ClassVar[str] = "kernel PCA"
    #: Whether the kernel PCA within, if there is one, is fitted to the columns themselves.
    _of_columns: ClassVar[bool] = True
    #: How the columns of a table of more than numbers are encoded, by the kernel's `encoder`.
    _encoding: ClassVar[Any] = None

    def __init_subclass__(cls, **settings: Any) -> None:
        """Parameters are fields: every estimator is a dataclass, compared by identity."""
        super().__init_subclass__(**settings)
        dataclass(eq=False, repr=False)(cls)

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
        for name, default, allowed in _checks.checks_of(kind):
            value = getattr(self, name)
            if value is default:
                continue  # defaults are allowed; most parameters keep theirs
            _checks.check_parameter(self, name, value, allowed)
            _checks.check_parts(value)

    def _fit(self, X, y=None, sample_weight=None) -> Self:
        """Every fit: what is asked, how it is done, the problem, its eigenpairs, the result.

        All or nothing: where it fails or is interrupted the estimator stays as it was.
        """
        with all_or_nothing(self) as fresh, fresh._task(X, y, sample_weight) as task:
            plan = choose(task)
            problem = build_problem(task, plan)
            pairs, plan = solve(problem, announced(plan, task), task)
            fresh._adopt(problem.result(pairs), plan, task)
        return self

    def _adopt(self, result: Any, plan: Plan | None = None, task: Any = None) -> Self:
        """Set the fitted attributes, or those that a result gives: the only place that does."""
        is_ready = isinstance(result, dict)
        attributes = result if is_ready else self._attributes(result, plan, task)
        undeclared = attributes.keys() - type(self)._fitted.keys()
        if undeclared:
            raise TypeError(f"{type(self).__name__} does not declare {sorted(undeclared)}.")
        for name in type(self)._fitted.keys() - attributes.keys() - Door._fitted.keys():
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)
        if not is_ready:
            self._warn(result, plan, task)
        return self

    def _attributes(self, result: Any, plan: Any, task: Any) -> dict[str, Any]:
        """The fitted attributes that a result gives: its fields that are declared."""
        named = {f"{name}_": value for name, value in vars(result).items()}
        return {name: value for name, value in named.items() if name in type(self)._fitted}

    def _warn(self, result: Any, plan: Any, task: Any) -> None:
        """Warnings about the fitted model."""
        return

    def _complete(self) -> None:
        """After loading: set what a file leaves out, refuse what does not fit together."""
        return

    def _is_saved(self, name: str) -> bool:
        """Whether a fitted attribute goes into the model's file."""
        value = vars(self).get(name)
        return type(self)._fitted[name].saved and not is_elsewhere(value)

    def _open(self, X, *, reset: bool) -> Rows:
        """The rows of X, wherever they are, checked once and for all."""
        if reset:
            self._validate_params()
        else:
            check_is_fitted(self)
        original, X = X, self._encoded(X, reset)
        names = None if reset else list(vars(self).get("feature_names_in_", ()))
        all_columns = f"kernel={self.kernel!r}" if reset and self._encoder() is not None else ""
        how = Opening(self.memory, self.n_jobs, self.device, self.verbose, names, all_columns)
        rows = open_rows(X, how, lambda X: self._check(X, reset), original)
        if reset and rows.sparse and not self._takes_sparse():
            raise InvalidRowsError(
                f"fit_inverse_transform=True needs dense rows, and those of {rows._title} are "
                "sparse. Leave it out: inverse_transform works without it."
                if self.fit_inverse_transform
                else f"{type(self).__name__} needs dense rows, and those of {rows._title} are "
                "sparse. Pass them as a dense array, X.toarray()."
            )
        if reset:
            self._dtype = rows.dtype
        if in_memory(rows) is not None:
            return rows  # the checks of arrays have noted or compared the columns
        if reset:
            self._check_count(rows, rows._title)
            self.n_features_in_ = rows.shape[1]
            if rows.names is not None:
                self.feature_names_in_ = np.array(rows.names, dtype=object)
        elif rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"{rows._title} has {rows.shape[1]} columns, and the model was fitted to "
                f"{self.n_features_in_}. Pass the same columns in the same order."
            )
        elif names and rows.names not in (None, names):
            raise ValueError(
                "The feature names should match those that were passed during fit: "
                f"{rows._title} has the columns {rows.names}, and the model was fitted to "
                f"{names}. Open it with columns= these."
            )
        return rows

    def _check_count(self, rows: Any, title: str) -> None:
        """Raise ValueError for rows that are fewer than a fit needs."""
        n = rows.shape[0]
        if n is not None and n < self._least_rows:
            raise ValueError(
                f"{title} has {n} rows, while a minimum of {self._least_rows} is required."
            )

    def _array(self, X, who: str):
        """New rows as one array; raises if there are none, or if they do not fit."""
        rows = self._open(X, reset=False)
        array = rows.as_array(who, instead="pass some of them at a time")
        if not array.shape[0]:
            raise ValueError(f"{rows._title} has 0 rows, while a minimum of 1 is required.")
        return array

    def _array_or_sample(self, X, again: bool = False) -> tuple[Any, Any]:
        """The rows of X as one array, or uniform ones where they are too many or on a cluster.

        With their numbers; None for all rows. `again` says that X will be read once more.
        """
        rows = self._open(X, reset=True)
        try:
            array = rows.as_array(type(self).__name__)
        except ValueError:
            room = parse_bytes(self.memory) // (SAMPLE_COPIES * 8 * rows.shape[1])
            most = max(self._least_rows, min(SAMPLED_ROWS, room))
            survey = SurveyOf(most, _checks.seed_from(self.random_state))
            sample = rows.sum(survey, "sampling rows", again=again).sample
            return sample.rows, sample.numbers
        self._check_count(array, rows._title)
        return array, None

    def _encoded(self, X, reset: bool):
        """X as it is, or a table of more than numbers as the encoder of the kernel gives it."""
        encoder = self._encoder() if reset else None
        encoding = None if encoder is None else encoder.of(X)
        if encoding is not None:
            self._encoding = encoding  # type: ignore[misc]
            if isinstance(encoding, Objects):
                encoding.room = parse_bytes(self.memory) // 8
                if self.checkpoint is not None or self.fit_inverse_transform:
                    raise ValueError(
                        "A checkpoint and fit_inverse_transform need rows of numbers, and objects "
                        "have none. Leave them out."
                    )
        if not reset and self._has_landmarks():
            return _checks.with_diagonal(X, self.n_features_in_)
        return X if self._encoding is None else self._encoding.apply(X)

    def _inner_rows(self, X) -> Any:
        """Rows as the kernel PCA within takes them."""
        return self._encoded(X, False)

    def _encoder(self) -> Any:
        """What makes numbers of tables for the kernel asked for, or None."""
        kind = KERNELS.get(self.kernel, Kernel) if isinstance(self.kernel, str) else self.kernel
        if isinstance(kind, CompositeKernel) and any(
            isinstance(part, BlockFunction) for part in kind.leaves()
        ):
            raise ValueError(MISPLACED)
        return kind.encoder if isinstance(self.kernel, str | Kernel) else None

    def _check(self, X, reset: bool):
        """X as a NumPy array, memmap, CSR matrix or tensor of finite floats."""
        least = self._least_rows if reset else min(self._least_rows, 1)
        copy = reset and self._keeps_copy()
        in_place = is_on_device(X) and self._device() != "cpu"
        fitted = vars(self).get("expansion_", vars(self).get("map_"))
        if in_place and not reset and fitted is not None:
            in_place = fitted.basis.engine.device is not None
        if not in_place:
            if reset and vars(self).get("device") != "cpu":
                X = _checks.in_main_memory(X, type(self).__name__)
            X = to_numpy(X) if is_foreign(X) else X
            in_place = isinstance(X, np.memmap) and X.dtype.char != "g"
        if in_place:
            X = _checks.checked_in_place(X, least, copy)
            return validate_data(self, X, reset=reset, skip_check_array=True)
        options = {"dtype": self._types, "copy": copy, "ensure_min_samples": least}
        options["accept_sparse"] = "csr" if self._takes_sparse() else False
        return _checks.valid_rows(self, X, reset=reset, **options)

    @contextmanager
    def _task(self, X, y=None, sample_weight=None, looks: bool = True) -> Iterator[FitTask]:
        """The task of a fit, checked as far as it can be before the work, its progress shown.

        Without `looks` there is no pass over rows that are not in memory.
        """
        self._validate_params()
        y = y if self._needs_target else None
        if y is not None or sample_weight is not None:
            X, y, sample_weight = with_extras(X, self.memory, y=y, sample_weight=sample_weight)
        rows: Any = self._open(X, reset=True)
        weights = None
        if sample_weight is not None:
            weights = _checks.checked_weights(sample_weight, count_rows(rows))
        basis: Any = self.basis
        if self._has_landmarks():
            basis = self._given_landmarks(rows)
        elif self._is_precomputed():
            self._check_precomputed(rows, weights)
        if isinstance(basis, str) and basis != "auto":
            basis = BASES[basis]()
        numbered, as_points = rows, basis == "auto" or isinstance(basis, AllPoints)
        if as_points and in_memory(rows) is None:
            title = rows._title
            rows = rows._for_points(f"basis={self.basis!r}", required=basis != "auto")
            self._check_count(rows, title)  # which may be known only now
        elif not as_points:
            resumable = self.checkpoint is not None and not self.fit_inverse_transform
            rows = rows._for_passes(resumable)
        if isinstance(basis, BasisRecipe) and basis.needs_count:
            # Row numbers are those of X, also where rows of no weight are left out.
            basis = basis.located(count_rows(numbered), numbered.take)
        named, title = self._named_kernel(rows.shape[1]), self._title
        bar = PassBar(self.verbose, self.callback, self._passes(), title, not rows._draws)
        with bar as progress:
            settings = self.memory, self._device(), self.n_jobs, progress.tiles
            engine = engine_for(rows, *settings)
            if isinstance(self._encoding, Objects):  # known values take their part of the budget
                engine = engine.with_memory(engine.memory - self._encoding.room)
            wanted = self._wanted()
            if weights is not None:
                count = int(wanted) if isinstance(wanted, Integral) else None
                if as_points and in_memory(rows) is None and not weights.all():
                    as_points = not isinstance(rows.as_basis(named, engine, count), str)
                rows, weights = without_weightless(rows, weights, as_points)
            array = in_memory(rows)
            if array is not None:
                array = self._matrix(array, engine)
                rows = ArrayRows(array, like_of(rows), self.memory, engine)
            elif self.fit_inverse_transform:
                raise ValueError(
                    "fit_inverse_transform=True solves an n x n system in one place, and the rows "
                    "are not in memory. Leave it out: inverse_transform works without it."
                )
            with self._open_checkpoint(rows, weights) as checkpoint:
                solver, tol = self._solver(array), self._tolerance()
                ends = tol == 0 and isinstance(solver, Solver) and solver.ends_by_passes
                floor = DRAFT_FLOOR if self._dtype == np.float32 else 0.0
                asked = self.fit_inverse_transform or self.eigen_solver != "auto"
                task = FitTask(
                    rows,
                    array,
                    named,
                    basis,
                    solver,
                    self._wanted(),  # the matrix may say how many
                    engine,
                    self._make_rng(checkpoint),
                    progress,
                    self._posing(y, rows, weights, sample_weight),
                    weights,
                    self.center,
                    0.0 if ends else max(float(tol), floor),
                    vars(self).get("max_iter"),
                    self.remove_zero_eig,
                    checkpoint,
                    frozenset() if asked or isinstance(named, Precomputed) else self._candidates,
                    self._most_points if array is not None or self._points_anywhere else 0,
                )
                unseen = array is None and not looks
                yield task if unseen else task.with_pilot(self._make_kernel)

    def _posing(self, y, rows: Rows, weights, sample_weight) -> Callable[[FitTask, Any], Any]:
        """How the problem is posed in a basis: ``pose(task, basis)``; y is checked before.

        That of estimators without y is their method `_problem`.
        """
        return self._problem

    def _wanted(self) -> Any:
        """Eigenpairs to find: a number, a share of the variance, or None for all."""
        return self.n_components

    def _tolerance(self) -> float:
        """Residual to reach, as a share of the first eigenvalue."""
        return self.tol

    def _passes(self) -> int | None:
        """Passes over the kernel matrix, where their number is known before."""
        return None

    def _matrix(self, X, engine: TiledEngine) -> Any:
        """The rows that the problem is posed for, or the matrix that is made of them."""
        return X

    def _has_landmarks(self) -> bool:
        """Whether rows are columns of a kernel matrix, and its diagonal."""
        return isinstance(self.kernel, Precomputed) and self.kernel.landmarks is not None

    def _given_landmarks(self, rows: Rows) -> Any:
        """The landmarks of a kernel that is given by its columns, checked."""
        named = vars(self).get("basis") in ("auto", "landmarks")
        if self.fit_inverse_transform or not named:
            raise ValueError(
                "Of a precomputed kernel with landmarks only values with these are known: that "
                "takes KernelPCA with basis='landmarks' and without fit_inverse_transform."
            )
        recipe = Landmarks(indices=self.kernel.landmarks).located(count_rows(rows), rows.take)
        _checks.check_columns(recipe.points)
        return recipe

    def _check_precomputed(self, rows: Rows, weights) -> None:
        if self.fit_inverse_transform:
            raise ValueError(
                "Cannot fit_inverse_transform with a precomputed kernel, which has no rows to come "
                "back to. Give a kernel by name, or leave it out."
            )
        if self.basis not in ("auto", "points"):
            raise ValueError(
                f"basis={self.basis!r} needs points, and a precomputed kernel has none. "
                "Use basis='auto', kernel=Precomputed(landmarks=...) for columns of it, or a "
                "kernel that is computed from the data."
            )
        if weights is not None and not weights.all():
            raise ValueError(
                "sample_weight has zeros, and rows of a precomputed kernel cannot be left out "
                "here. Leave them out before the fit."
            )
        _checks.check_gram(rows.as_array("A precomputed kernel"))

    def _check_has_rows(self, who: str) -> None:
        """Raise ValueError for a precomputed kernel where rows are needed."""
        if self._is_precomputed():
            raise ValueError(
                f"{who} needs rows, and a precomputed kernel has none. Use a kernel that is "
                "computed from the data, or fit and transform of KernelPCA for the matrix."
            )

    def _check_in_one_place(self, basis) -> None:
        """Raise ValueError for all points as the basis where these are elsewhere."""
        if not isinstance(basis, PointGram | PrecomputedBasis):
            raise ValueError(
                f"{type(self).__name__} with basis='points' needs all rows in one place, and they "
                "are on a cluster. Pass X.compute() if they fit into memory, or use "
                "basis='landmarks', which works where they are."
            )

    def _check_preimage(self, basis) -> None:
        """Raise ValueError where the pre-images asked for cannot serve a basis."""
        if not isinstance(self.preimage, str) or self.preimage != "auto":
            choose_preimage(self.preimage, basis)

    def _solver(self, X=None) -> Any:
        """The solver asked for, with this estimator's settings where it is asked for by name."""
        asked = self.eigen_solver
        settings = {"iterated_power": self.iterated_power} if asked == "randomized" else {}
        return SOLVERS[asked](**settings) if isinstance(asked, str) and asked != "auto" else asked

    def _open_checkpoint(
        self, rows: Rows, weights=None
    ) -> AbstractContextManager[Checkpoint | None]:
        """Open or resume the checkpoint of a fit to these rows."""
        if self.checkpoint is None:
            return nullcontext()
        settings = self._settings()
        identity = rows.identity() if weights is None else [*rows.identity(), weights]
        return Checkpoint(
            self.checkpoint, identity_of(settings, identity), _checks.seed_from(self.random_state)
        )

    def _settings(self) -> dict[str, Any]:
        """The parameters that the result depends on."""
        params = self.get_params(deep=False)
        if isinstance(self.random_state, np.random.RandomState):
            params["random_state"] = "a generator"
        return {name: params[name] for name in params.keys() - NOT_OF_THE_RESULT}

    def _device(self) -> Any:
        """Where the work is done: what `device` says, unless this estimator has no choice."""
        return self.device

    def _keeps_copy(self) -> bool:
        """Whether the model keeps the rows, and a copy of them was asked for."""
        return self.copy_X

    def _make_engine(self, X=None) -> TiledEngine:
        return make_engine(X, memory=self.memory, device=self._device(), threads=self.n_jobs)

    def _make_rng(self, checkpoint: Checkpoint | None = None) -> np.random.Generator:
        """The generator of a fit; one that goes on from a checkpoint draws as it did before."""
        seed = _checks.seed_from(self.random_state) if checkpoint is None else checkpoint.seed
        return np.random.default_rng(seed)

    def _make_kernel(self, X) -> Kernel:
        """The kernel asked for, with numbers for its parameters, checked against X."""
        kernel = self._named_kernel(X.shape[1])
        # gamma is always measured on the same rows, whatever random_state is.
        resolved = kernel.resolve(X)
        resolved.check(X)
        return resolved

    def _named_kernel(self, d: int) -> Kernel:
        """The kernel asked for, for rows of d columns."""
        if self._encoding is not None:
            return self._encoding.kernel(self.kernel)
        unset = self.gamma is None or (isinstance(self.gamma, str) and self.gamma == "auto")
        if isinstance(self.kernel, Kernel):
            if not unset:
                raise ValueError(
                    "gamma was given twice, to the estimator and with a kernel object. "
                    f"Write kernel={type(self.kernel).__name__}(gamma=...) and leave the other out."
                )
            return self.kernel
        if callable(self.kernel):
            return CallableKernel(self.kernel, self.kernel_params)
        kind = KERNELS[self.kernel]
        params = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        if unset and self.gamma == "auto" and kind.metric:
            params["gamma"] = "median"
        elif unset:
            params["gamma"] = 1.0 / d
        if self.kernel not in PAIRWISE_KERNEL_FUNCTIONS:
            # scikit-learn's KernelPCA ignores them for names of its own.
            params |= self.kernel_params or {}
        names = kind._get_param_names()
        return kind(**{k: v for k, v in params.items() if v is not None and k in names})

    def _measures_kernel(self, d: int) -> bool:
        """Whether a parameter of the kernel, such as its width, is measured on the rows."""
        kernel = self._named_kernel(d)
        parts = kernel.leaves() if isinstance(kernel, CompositeKernel) else [kernel]
        widths = [vars(part).get("gamma") for part in parts]
        return any(isinstance(width, str) for width in widths) or kernel.needs_range

    def _relearns(self, points: Any) -> bool:
        """Whether a stream begins again: all rows so far, `points`, are too few for a width."""
        few = points.shape[0] == self.n_samples_seen_ and points.shape[0] < SETTLING_ROWS
        return few and self._measures_kernel(self.n_features_in_)

    def _begun_again(self, points: Any, rows: Rows) -> tuple[Any, Rows]:
        """A model with nothing learned, and the points of this one with some rows after them."""
        model, X = unfitted(self), in_memory(rows)
        known = ("n_features_in_", "feature_names_in_", "_dtype")
        vars(model).update({name: vars(self)[name] for name in known if name in vars(self)})
        X = stack_rows([points, on_device_of(match_sparsity(X, points), points)])
        return model, ArrayRows(X, like_of(rows))

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or self.kernel == "precomputed"

    def _takes_sparse(self) -> bool:
        """A learned inverse transform gives dense rows, so it needs dense ones."""
        return self._sparse and not self.fit_inverse_transform

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.pairwise = self._is_precomputed() and not self._has_landmarks()
        tags.target_tags.required = tags.target_tags.multi_output = self._needs_target
        return tags

    @property
    def _n_features_out(self) -> int:
        """Columns of the scores or coordinates."""
        expansion = vars(self).get("expansion_")
        return self.eigenvalues_.shape[0] if expansion is None else expansion.n_components

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


@contextmanager
def all_or_nothing(model) -> Iterator[Any]:
    """A copy of an estimator, to be fitted: one that fails or is interrupted stays as it was.

    The copy has the same parameters and nothing fitted; its attributes become those of the
    estimator at the end.
    """
    fresh = unfitted(model)
    # Overflow is checked for in results, with errors that name the kernel.
    with np.errstate(over="ignore", invalid="ignore"):
        yield fresh
    become(model, fresh)


def unfitted(model):
    """An estimator with the same parameters, in Python's numbers, and nothing fitted."""
    fresh = object.__new__(type(model))
    declared = type(model)._fitted
    fresh.__dict__ = {name: value for name, value in vars(model).items() if name not in declared}
    kind: Any = type(model)
    for name, default, allowed in _checks.checks_of(kind):
        value = fresh.__dict__[name]
        if value is not default:
            fresh.__dict__[name] = _checks.plain(value, allowed)
    return fresh


def become(model, fresh) -> None:
    """Give an estimator the results of another one, and those alone, in a single step."""
    # One assignment: an interrupt comes before it or after it.
    model.__dict__ = vars(unfitted(model)) | vars(fresh)
