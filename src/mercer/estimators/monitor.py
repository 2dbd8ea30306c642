"""Monitoring of a process: control charts of kernel PCA, and the sensors behind their alarms."""

from collections.abc import Callable
from dataclasses import KW_ONLY
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state

from .._tables import counted
from ..compute import Array, match_sparsity, parse_bytes, restore, to_numpy, too_little
from ..exceptions import ModelFileError, tell, trials
from ..files.base import listed
from ..fitting.expansion import OfExpansion
from ..kernels import KERNELS, Kernel
from ..relatives import monitor as charts
from ._checks import FADING, FROM_0, Flag, Rule, Share, StrOptions
from ._door import Fitted, all_or_nothing, kept
from ._output import certificate_of
from .kernel_pca import KernelPCA
from .novelty import Detector, judged, rounding_at

# Blocks of time that are held out in turn. Of five, models of the other four know less of normal
# operation than the final one: limits let .82 % of rows through in place of .90 (memory .7).
BLOCKS = 10
# Width of the kernel in median distances between whitened rows. Over drawn plants of memory .9
# the mean delay with 40 components is 49 rows; 54 with a width of 6, 85 with 1.5, 89 with 1.
WIDTH = 3.0
# Readings of a sensor that are tried in place of one in alarm.
READINGS = 25
# Copies of the rows with their lags that a fit, or a block of readings, may take of the budget.
COPIES = 8
# Whitened rows are clipped here, far from all others and with squares in the range of doubles.
LARGEST = 1e150
# Components whose variance is less than this share of the first have no say in T-squared.
LEAST_VARIANCE = 1e-10


# Alarms where k of the last m rows are beyond a limit.
RUN = Rule(
    "two whole numbers (k, m) with 1 <= k <= m",
    lambda run: (
        (isinstance(run, tuple | list) and len(run) == 2 and all(type(x) is int for x in run))
        and 1 <= run[0] <= run[1]
    ),
)
# Kernels of numbers.
NUMERIC = StrOptions({n for n, k in KERNELS.items() if k.encoder is None} - {"precomputed"})


class ProcessMonitor(Detector):
    """Control charts of a process from rows of its normal operation, in the order of time.

    Two statistics of each row: T-squared, how far it is from the mean within the components of
    normal rows, and SPE, its squared prediction error. A row beyond either limit is in alarm, and
    contributions say which sensor is behind it. Limits come from blocks of time that are held out
    in turn: rows that follow each other are alike, and single ones held out would be explained by
    their neighbors. Sensors are whitened first, so that a nearly exact relation between them counts
    as much as a large movement.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Components of normal operation. None is 40, a quarter of the rows, or half of all there can
        be (half of the sensors for a linear kernel), whichever is least. A float is the share of
        variance to keep.

    kernel : str, Kernel or callable, default="rbf"
        As in `KernelPCA`; "linear" with ``whiten=False`` is the classical chart.

    gamma : float, "auto", "median", "mean" or None, default="auto"
        As in `KernelPCA`, for whitened rows; "auto" is a width of three median distances between
        them.

    degree, coef0, kernel_params, basis, memory, n_jobs, device
        As in `KernelPCA`.

    lags : int, default=0
        Earlier rows that count as further columns of a row, for processes with dynamics.

    smoothing : float, (k, m) or None, default=None
        A float is the weight of the newest row in an exponentially weighted moving average (EWMA)
        of each statistic: about .2 finds small faults sooner and large ones later. (k, m) is an
        alarm where k of the last m rows are beyond a limit. Limits are set for the rule.

    whiten : bool, default=True
        False only gives all sensors the same variance.

    false_alarms : float, default=0.01
        Share of normal rows to be in alarm. For exchangeable rows it is the expected share at most,
        whatever the data. Rows that follow each other hold it on average over plants, if the
        training rows are long against the memory of the process; a warning says if they are not.
        One plant may have more or less, as its training rows happen to cover normal operation: of
        1 % asked and 1,000 rows, 14 of 16 drawn plants had .5 to 1.5 % at an autocorrelation of 0
        to .7, and 9 at .9 (.14 to 2.4 %), where 3,000 rows gave 8 of 10.

    random_state : int, RandomState or None, default=None
        Which landmarks are chosen.

    Attributes
    ----------
    certificate_ : Certificate
        That of `model_`.

    model_ : KernelPCA
        Fitted to the whitened rows, ``(lagged rows - mean_) @ scaling_``.

    mean_, scaling_ : arrays of shape (w,) and (w, w)
        Of rows with their lags, ``w = n_features_in_ * (1 + lags)``: the newest row comes first.

    limits_ : array of shape (2,)
        Of T-squared and SPE.

    means_ : array of shape (2,)
        Mean T-squared and SPE of rows held out, from which averages start.

    readings_ : array of shape (g, w)
        Readings of each sensor in normal operation that are tried for contributions.

    offset_ : float
        Scores below it are alarms: -1.

    n_features_in_ : int
        Columns of X.

    feature_names_in_ : array of str
        Their names, where X has them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import ProcessMonitor
    >>> rng = np.random.default_rng(0)
    >>> load = rng.uniform(-1, 1, 600)
    >>> plant = np.column_stack([load, load**2, load**3]) + 0.05 * rng.standard_normal((600, 3))
    >>> monitor = ProcessMonitor().fit(plant[:500])
    >>> plant[550:, 1] = 0.2  # a sensor is stuck
    >>> chart = monitor.chart(plant[500:])
    >>> int(chart.alarms[:50].sum()), str(chart.sensor[chart.alarms][-1])
    (1, 'x1')
    """

    _fitted: ClassVar[dict[str, Fitted]] = Detector._fitted | {
        "model_": kept("KernelPCA w"),
        "mean_": kept("w"),
        "scaling_": kept("w w"),
        "limits_": kept("l"),
        "means_": kept("l"),
        "readings_": kept("t w"),
    }
    certificate_ = certificate_of("model_")
    _sparse = _of_columns = False
    _least_rows = BLOCKS

    _: KW_ONLY
    kernel: Annotated[str | Kernel | Callable, NUMERIC, callable, Kernel] = "rbf"
    gamma: float | str | None = "auto"
    lags: Annotated[int, FROM_0] = 0
    smoothing: Annotated[float | tuple[int, int] | None, FADING, RUN, None] = None
    whiten: Flag = True
    false_alarms: Share = 0.01

    def fit(self, X: Array, y: Any = None) -> Self:
        """Learn normal operation and the limits.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of normal operation in the order of time, evenly spaced.
        y : ignored

        Returns
        -------
        self
        """
        with all_or_nothing(self) as fresh:
            rows, rng = fresh._training_rows(X), check_random_state(fresh.random_state)
            scaled = (rows - rows.mean(axis=0)) @ charts.scaling_of(rows, fresh.whiten)[1]
            named = isinstance(fresh.kernel, str) and KERNELS[fresh.kernel].metric is not None
            wider = named and isinstance(fresh.gamma, str) and fresh.gamma == "auto"
            model = fresh._model(2, rows.shape[1], rng)
            kernel = model._make_kernel(WIDTH * scaled if wider else scaled)
            held = np.empty((len(rows), 2))
            # Rows between a block of time held out and those that are learned from: the lags, and
            # as many as the mean autocorrelation of columns takes to fall below 1 / e.
            n, most = len(rows), len(rows) // (2 * BLOCKS)
            below = np.flatnonzero(charts.autocorrelations(rows, most) < np.exp(-1))
            gap = fresh.lags + (int(below[0]) if below.size else most)
            with trials():
                for start, stop in pairwise(np.linspace(0, n, BLOCKS + 1).astype(int)):
                    others = np.r_[0 : max(0, start - gap), min(n, stop + gap) : n]
                    fold = Learned.of(fresh, rows[others], kernel, rng)
                    held[start:stop] = fold.statistics(rows[start:stop])
            learned = Learned.of(fresh, rows, kernel, rng)
            means = held.mean(axis=0)
            held = charts.smoothed(held, fresh.smoothing, means)
            at = charts.limits_of(held, fresh.false_alarms)
            expansion, last = learned.model.expansion_, learned.scaled(rows[at[1:]])
            threshold = float(held[at[1], 1]) + rounding_at(expansion, last)
            spe = fresh._within_reach(threshold, held[:, 1], learned.model)
            attributes = {f"{name}_": value for name, value in learned._asdict().items()}
            attributes |= {"limits_": np.array([held[at[0], 0], spe]), "means_": means}
            readings = spread_readings(rows, fresh.n_features_in_)
            fresh._adopt(attributes | {"readings_": readings})
        return self

    def chart(self, X: Array, before: Array = None, *, explain: bool = True) -> charts.ControlChart:
        """Statistics of rows in time order, their limits, alarms and the sensors behind them.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        before : array-like of shape (m, n_features) or None, default=None
            The rows before X, for lags and smoothing: rows that come one by one are charted as they
            would be together. Without them, earlier rows count as copies of the first, averages
            start from those of normal operation.
        explain : bool, default=True
            Whether to compute contributions: 25 rows are evaluated for each alarm and sensor.

        Returns
        -------
        ControlChart
            `as_columns` gives it for a data frame; `mercer.plot.control_chart` draws it.
        """
        new = self._rows(X)
        rows = new if before is None else np.concatenate([self._rows(before), new])
        rows, learned = charts.lagged(rows, self.lags), self._learned()
        values = charts.smoothed(learned.statistics(rows), self.smoothing, self.means_)
        values, rows = values[-len(new) :], rows[-len(new) :]
        alarms, d = rows[(values > self.limits_).any(axis=1)], self.n_features_in_
        shares = np.full((2, len(alarms), d), np.nan)
        if explain and len(alarms):
            room = parse_bytes(self.memory) // (8 * COPIES * rows.shape[1])
            shares = charts.contributions(learned.statistics, alarms, self.readings_, d, room)
        called = X.index if {"index", "columns"} <= set(dir(X)) else np.arange(len(new))
        named = vars(self).get("feature_names_in_", [f"x{j}" for j in range(d)])
        return charts.ControlChart(
            np.asarray(called), tuple(map(str, named)), values, self.limits_, shares
        )

    def score_samples(self, X: Array) -> Array:
        """Minus the larger of T-squared and SPE over their limits, (n,): below -1 is an alarm."""
        return self._judged(X, "score")

    def _judged(self, X, title: str) -> Any:
        ratios = self.chart(X, explain=False).ratios
        return restore(judged(-ratios.max(axis=1), title, self.offset_), X)

    @property
    def offset_(self) -> float:
        """Scores below it are alarms."""
        return -1.0

    def _inner_rows(self, X) -> np.ndarray:
        return self._learned().scaled(charts.lagged(self._rows(X), self.lags))

    def _learned(self) -> "Learned":
        return Learned(self.mean_, self.scaling_, self.model_)

    def _rows(self, X, reset: bool = False) -> np.ndarray:
        """Rows as doubles in main memory."""
        rows = self._open(X, reset=reset)
        try:
            array = rows.as_array(type(self).__name__)
        except ValueError as error:
            raise ValueError(
                "ProcessMonitor needs rows in the order of time in one place, and these are on a "
                "cluster or do not fit memory. Give a stretch of them as an array, every k-th row, "
                "or raise memory."
            ) from error
        return np.asarray(match_sparsity(to_numpy(array), np.empty(0)), dtype=float)

    def _training_rows(self, X) -> np.ndarray:
        """Rows beside those before them; refuses too few of them, warns of constant sensors."""
        rows = self._rows(X, reset=True)
        # Blocks are held out with the lags on both sides: half of the rows, at least, are left.
        (n, d), least = rows.shape, self._least_rows + 5 * self.lags
        if n < least:
            raise ValueError(
                f"X has {counted(n, 'row')}, and lags={self.lags} needs at least {least}: "
                f"{BLOCKS} blocks of time are held out in turn. Give more rows, or fewer lags."
            )
        memory, size = parse_bytes(self.memory), 8 * COPIES * n * d * (1 + self.lags)
        if size > memory:
            what = f"{n:,} rows of {d * (1 + self.lags)} columns, lags among them"
            raise too_little(memory, size, what, "Give every k-th row, or fewer lags. ")
        sizes = np.abs(rows).max(axis=0)
        if np.any((sizes > LARGEST) | ((sizes > 0) & (sizes < 1 / LARGEST))):
            raise ValueError(
                f"Sensors hold numbers of up to {sizes.max():.1e}, and they must be from "
                f"{1 / LARGEST:.0e} to {LARGEST:.0e}. Scale the columns."
            )
        constant = np.flatnonzero(rows.std(axis=0) <= charts.CONSTANT * np.abs(rows.mean(axis=0)))
        if constant.size:
            names = vars(self).get("feature_names_in_", [f"x{j}" for j in range(d)])
            told = listed([str(names[j]) for j in constant])
            if constant.size == d:
                raise ValueError(
                    f"All columns are constant ({told}), and nothing can be learned from them. "
                    "Give rows in which the sensors move."
                )
            tell(
                f"Constant sensors are not watched, since no size of a change is known: {told}. "
                "Leave them out, or give rows in which they move."
            )
        return charts.lagged(rows, self.lags)[self.lags :]

    def _complete(self) -> None:
        if len(self.mean_) != self.n_features_in_ * (1 + self.lags) or len(self.limits_) != 2:
            raise ModelFileError("a monitor of other columns or lags than its own")


class Learned(NamedTuple):
    """Components of rows with their lags.

    Attributes
    ----------
    mean, scaling : arrays of shape (w,) and (w, w)
    model : KernelPCA
    """

    mean: np.ndarray
    scaling: np.ndarray
    model: KernelPCA

    @classmethod
    def of(cls, monitor: ProcessMonitor, rows, kernel: Kernel, rng) -> "Learned":
        """Learn from rows."""
        mean, scaling = charts.scaling_of(rows, monitor.whiten)
        n, d = rows.shape
        model = monitor._model(n, d, rng, kernel=kernel, gamma=None)
        return cls(mean, scaling, model.fit((rows - mean) @ scaling))

    def statistics(self, rows) -> np.ndarray:
        """T-squared and SPE of rows, (n, 2)."""
        variances = to_numpy(self.model.explained_variance_).astype(float)
        least = LEAST_VARIANCE * variances.max(initial=0)
        precisions = np.divide(1, variances, np.zeros_like(variances), where=variances > least)
        function = partial(charts.statistics_of, precisions=precisions)
        of_rows = OfExpansion(self.model.expansion_, function, (2,), "statistics")
        return to_numpy(self.model._open(self.scaled(rows), reset=False).map(of_rows))

    def scaled(self, rows) -> np.ndarray:
        """Rows as the model takes them; those beyond the range of doubles at its end."""
        with np.errstate(over="ignore"):
            return np.clip((rows - self.mean) @ self.scaling, -LARGEST, LARGEST)


def spread_readings(rows, d: int) -> np.ndarray:
    """Readings of each sensor with those before it, evenly spread over its newest, (g, w)."""
    places = np.linspace(0, len(rows) - 1, min(READINGS, len(rows))).round().astype(int)
    chosen = np.argsort(rows[:, :d], axis=0)[places]
    by_lag, lags = rows.reshape(len(rows), -1, d), rows.shape[1] // d
    readings = by_lag[chosen[:, None], np.arange(lags)[:, None], np.arange(d)]
    return readings.reshape(len(places), -1)
