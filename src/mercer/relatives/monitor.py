"""Control charts of components: two statistics of rows in time order, their limits, and sensors.

*T-squared* is the squared length of a row's scores, each over its variance: how far the row is from
the mean within what the components explain. *SPE*, the squared prediction error, is its squared
distance to what they explain (Lee et al. 2004, "Nonlinear process monitoring using kernel principal
component analysis").

*Limits.* Rows that follow each other are alike, so that rows held out one by one have neighbors
among those learned from, and limits set by them are too low. Blocks of time are held out instead,
with a gap around them. Both limits are the same quantile of their statistic, so that the share of
rows beyond either is the one asked for. Where exceedances come in runs of `tau` rows, m rows count
as m / tau: the mean over plants is then too high by tau / 2 of the m rows if tails are exponential.
Models of fewer rows, which is what blocks are held out of, take half of that back, and the quantile
allows for the other half.

*Contributions* are by replacement: the part of a statistic that goes away if a sensor had read what
it reads in some normal row. Gradients say nothing far from all rows, where a Gaussian kernel is
flat, and the residuals of linear PCA are smeared over sensors (Alcala & Qin 2009).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.signal import lfilter

from .._tables import Shown, counted
from ..compute import array_namespace, on_device_of, self_product
from ..exceptions import tell
from ..fitting.expansion import KernelExpansion

# Directions of whitened rows with less of the mean variance than this count as having so much;
# with few rows for the columns more, since variances of directions are then underestimated.
FLOOR, FLOOR_OF_FEW = 1e-6, 0.1
# A column whose deviation is this share of its mean is constant.
CONSTANT = 1e-12
# Rows that the quantile allows for each row of a run beyond the first.
ALLOWED = 0.25
# Runs of exceedances are measured above this quantile, where there are enough of them.
UPPER = 0.9
# What the statistics are called.
NAMES = ("T2", "SPE")
# Alarms that a table shows, and sensors that it names for each.
SHOWN, NAMED = 12, 3


def lagged(X: np.ndarray, lags: int) -> np.ndarray:
    """Rows beside those before them, (n, d (1 + lags)); before the first, copies of it."""
    padded = np.concatenate([np.repeat(X[:1], lags, axis=0), X])
    return np.concatenate([padded[lags - k : lags - k + len(X)] for k in range(lags + 1)], axis=1)


def scaling_of(X: np.ndarray, whiten: bool) -> tuple[np.ndarray, np.ndarray]:
    """The mean, and the matrix by which centered rows are multiplied; zero for constant columns."""
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    varies = deviation > CONSTANT * np.abs(mean)
    unit = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=varies)
    if not whiten:
        return mean, np.diag(unit)
    n, d = X.shape
    Z = (X - mean) * unit
    values, vectors = np.linalg.eigh(self_product(Z) / n)
    floor = max(FLOOR, FLOOR_OF_FEW * (d / n) ** 2) * values.mean()
    return mean, unit[:, None] * vectors / np.sqrt(np.maximum(values, floor))


def autocorrelations(V: np.ndarray, most: int) -> np.ndarray:
    """The mean autocorrelation of columns at lags of 0 to `most` rows, (most + 1,)."""
    V = V - V.mean(axis=0)
    V = V / np.maximum(np.sqrt((V**2).sum(axis=0)), np.finfo(float).tiny)
    return np.array([(V[k:] * V[: len(V) - k]).sum(axis=0).mean() for k in range(most + 1)])


def limits_of(statistics: np.ndarray, share: float) -> np.ndarray:
    """The places, in a column each, of the rows whose statistics are the limits, (2,).

    `statistics` (m, 2) are those of held-out rows in time order.
    """
    m = len(statistics)
    order = np.argsort(-statistics, axis=0, kind="stable")
    ranks = np.argsort(order, axis=0, kind="stable").min(axis=1) + 1
    # Rows that count as one among those with the smallest ranks: 1 + twice their correlations, as
    # far as the first that is not positive: the others are noise.
    high = (ranks <= (1 - UPPER) * len(ranks)).astype(float)[:, None]
    correlations = autocorrelations(high, len(high) // 5)[1:]
    ends = np.flatnonzero(correlations <= 0)
    runs = 1 + 2 * float(correlations[: ends[0] if ends.size else None].sum())
    place = int(np.floor((m + 1) * share) - np.round((runs - 1) * ALLOWED))
    if place < 1:
        tell(
            f"{m} rows that come in runs of {runs:.3g} are too few for false_alarms={share:g}: "
            f"expect up to {max(share, runs / (m + runs)):.2g}. Give more rows of normal operation."
        )
    cut = np.sort(ranks)[max(place, 1) - 1]
    return order[cut - 1]


def statistics_of(expansion: KernelExpansion, X: Any, precisions: np.ndarray) -> Any:
    """T-squared and SPE of rows, (n, 2); `precisions` (r,) are 1 over the variances of scores."""
    S, errors = expansion.scores_and_errors(X)
    xp = array_namespace(S)
    return xp.stack([S**2 @ on_device_of(precisions, S), errors], axis=1)


def smoothed(values: np.ndarray, rule: Any, start: np.ndarray) -> np.ndarray:
    """Statistics in time order by a rule, (n, 2): EWMA from a start, or the k-th largest of m."""
    if rule is None:
        return values
    if isinstance(rule, tuple | list):
        k, m = rule
        padded = np.concatenate([np.full((m - 1, values.shape[1]), -np.inf), values])
        windows = np.lib.stride_tricks.sliding_window_view(padded, m, axis=0)
        return np.maximum(np.sort(windows, axis=2)[:, :, m - k], 0.0)
    state = (1 - rule) * start[None, :]
    return lfilter([rule], [1, rule - 1], values, axis=0, zi=state)[0]


def contributions(
    statistics: Callable, X: np.ndarray, normal: np.ndarray, sensors: int, room: int
) -> np.ndarray:
    """The share of each statistic that goes away with another reading of a sensor, (2, n, d).

    Parameters
    ----------
    statistics : callable
        Of lagged rows, (n, 2).
    X : array of shape (n, d (1 + lags))
    normal : array of shape (g, d (1 + lags))
        Readings to try: row i has, for every sensor, one of its readings with those before it.
    sensors : int
        d.
    room : int
        Rows that may be tried at once.
    """
    g, step = len(normal), max(1, room // (len(normal) * sensors))
    shares = np.zeros((2, len(X), sensors))
    for first in range(0, len(X), step):
        rows = X[first : first + step]
        tried = np.repeat(rows[:, None, None], sensors, axis=1).repeat(g, axis=2)
        for j in range(sensors):
            tried[:, j, :, j::sensors] = normal[:, j::sensors]
        values = statistics(tried.reshape(-1, X.shape[1]))
        least = values.reshape(len(rows), sensors, g, 2).min(axis=2)
        now = statistics(rows)[:, None]
        left = np.divide(least, now, out=np.ones_like(least), where=now > 0)
        shares[:, first : first + step] = np.moveaxis(1 - np.minimum(left, 1), 2, 0)
    return shares


@dataclass(frozen=True, repr=False)
class ControlChart(Shown):
    """T-squared and SPE of rows in time order, with limits, alarms and the sensors behind them.

    Attributes
    ----------
    rows : array of shape (n,)
        What rows are called: the index of a data frame, else their numbers.
    sensors : tuple of str
        Names of the d columns.
    statistics : array of shape (n, 2)
        T-squared and SPE, smoothed if the monitor smooths.
    limits : array of shape (2,)
    contributions : array of shape (2, a, d)
        For T-squared and for SPE: the share of the statistic that goes away in each of the a rows
        in alarm if the sensor had read something normal. NaN if they were not asked for.
    """

    rows: np.ndarray
    sensors: tuple[str, ...]
    statistics: np.ndarray
    limits: np.ndarray
    contributions: np.ndarray

    @property
    def ratios(self) -> np.ndarray:
        """Statistics over their limits, (n, 2); above 1 is an alarm."""
        return self.statistics / self.limits

    @property
    def alarms(self) -> np.ndarray:
        """Whether either limit is exceeded, (n,)."""
        return np.any(self.ratios > 1, axis=1)

    @property
    def exceeded(self) -> np.ndarray:
        """Which limits: "", "T2", "SPE" or "T2 and SPE", (n,)."""
        t2, spe = (self.ratios > 1).T
        return np.select([t2 & spe, t2, spe], ["T2 and SPE", "T2", "SPE"], "").astype(object)

    @property
    def blame(self) -> np.ndarray:
        """Contributions to the statistic that is the farthest beyond its limit, (a, d)."""
        worst = self.ratios[self.alarms].argmax(axis=1)
        return self.contributions[worst, np.arange(len(worst))]

    @property
    def sensor(self) -> np.ndarray:
        """The sensor behind each alarm, (n,); "" without an alarm."""
        names = np.full(len(self.rows), "", dtype=object)
        if np.isfinite(self.contributions).all():
            names[self.alarms] = np.array(self.sensors, dtype=object)[self.blame.argmax(axis=1)]
        return names

    def episodes(self) -> list[slice]:
        """Rows in alarm that follow each other."""
        edges = np.flatnonzero(np.diff(np.r_[False, self.alarms, False]))
        return [slice(int(a), int(b)) for a, b in edges.reshape(-1, 2)]

    def as_columns(self) -> dict[str, np.ndarray]:
        """Statistics, verdicts and sensors by name, for data frames and files."""
        named = dict(zip(NAMES, self.statistics.T, strict=True))
        verdicts = {"alarm": self.alarms, "exceeded": self.exceeded, "sensor": self.sensor}
        return named | verdicts

    def as_dict(self) -> dict[str, Any]:
        """Numbers of rows, limits and alarms, for JSON."""
        found = [
            {"first": part.start, "last": part.stop - 1, "sensors": dict(self.top(part))}
            for part in self.episodes()
        ]
        limits = dict(zip(NAMES, self.limits.tolist(), strict=True))
        return {"rows": len(self.rows), "limits": limits, "alarms": found}

    def top(self, part: slice, count: int = NAMED) -> list[tuple[str, float]]:
        """The sensors with the largest mean contributions in an episode, with these."""
        place = np.cumsum(self.alarms)[part] - 1
        means = self.blame[place].mean(axis=0)
        known = int(np.isfinite(means).all())
        order = np.argsort(-means, kind="stable")[: known * count]
        return [(self.sensors[j], float(means[j])) for j in order]

    def table(self, count: int = SHOWN) -> tuple[list[str], list[list[str]]]:
        """Head and rows, one for each of the first `count` episodes."""
        rows = []
        for part in self.episodes()[:count]:
            highest, first = self.ratios[part].max(axis=0), self.rows[part.start]
            last, count = self.rows[part.stop - 1], part.stop - part.start
            pairs = zip(NAMES, highest, strict=True)
            over = ", ".join(f"{name} {ratio:.3g}" for name, ratio in pairs if ratio > 1)
            sensors = ", ".join(f"{name} {share:.0%}" for name, share in self.top(part))
            rows.append([f"{first}", f"{last}", f"{count}", over, sensors])
        return ["from", "to", "rows", "times the limit", "sensors"], rows

    def sentence(self) -> str:
        """How many alarms."""
        alarms, episodes = int(self.alarms.sum()), len(self.episodes())
        shown = f"; the first {SHOWN}" if episodes > SHOWN else ""
        total = counted(len(self.rows), "row")
        parts = f", in {counted(episodes, 'episode')}{shown}" if episodes else ""
        return f"{alarms:,} of {total} in alarm{parts}"
