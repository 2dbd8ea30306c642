"""A survey of rows that come in chunks: checked, counted and sampled in one pass."""

from dataclasses import dataclass, replace

import numpy as np

from .chunks import Chunks
from .cluster import run, tree_sum

# Standard deviations by which a sample drawn by keys is sought wider than asked for.
SPARE_DEVIATIONS = 6


@dataclass(frozen=True)
class Survey:
    """Counts and a uniform sample of rows that come in chunks; two of them add up to one.

    Every row draws a number, and the `size` rows with the smallest are the sample, whatever
    the lengths of the chunks and the order in which surveys meet.

    Attributes
    ----------
    size : int
        Rows that the sample may have.
    lengths : dict
        Rows of every chunk.
    keys : array of shape (s,)
        The numbers drawn by the rows of the sample.
    places : array of shape (s, 2)
        Their chunks, and their rows in these.
    rows : array of shape (s, d)
    reach : float
        The largest distance of a row from the mean of its chunk.
    farthest : array of shape (<= 1, d)
        That row: a sample alone would miss it.
    """

    size: int
    lengths: dict[int, int]
    keys: np.ndarray
    places: np.ndarray
    rows: np.ndarray
    reach: float
    farthest: np.ndarray

    @classmethod
    def of(cls, rows, chunk: int, width: int, size: int, cut: float, seed: int) -> "Survey":
        """The survey of one chunk; rows whose number is above `cut` are passed over."""
        rows = checked(rows, chunk, width)
        keys = np.random.default_rng([seed, chunk]).random(len(rows))
        kept = np.flatnonzero(keys <= cut)
        kept = kept[np.argsort(keys[kept], kind="stable")[:size]]
        places = np.column_stack([np.full(len(kept), chunk), kept])
        reach, farthest = _farthest(rows)
        return cls(size, {chunk: len(rows)}, keys[kept], places, rows[kept], reach, farthest)

    def __sizeof__(self):
        # A cluster's scheduler asks for it before it moves one.
        arrays = (self.keys, self.places, self.rows, self.farthest)
        return object.__sizeof__(self) + sum(array.nbytes for array in arrays)

    def __add__(self, other: "Survey") -> "Survey":
        keys = np.concatenate([self.keys, other.keys])
        kept = np.argsort(keys, kind="stable")[: self.size]
        far = max(self, other, key=lambda survey: survey.reach)
        return replace(
            self,
            lengths=self.lengths | other.lengths,
            keys=keys[kept],
            places=np.concatenate([self.places, other.places])[kept],
            rows=np.concatenate([self.rows, other.rows])[kept],
            reach=far.reach,
            farthest=far.farthest,
        )

    @property
    def sample(self) -> np.ndarray:
        """The rows of the sample in the order of the data, (s, d)."""
        return self.rows[np.lexsort(self.places.T[::-1])]

    @property
    def candidates(self) -> np.ndarray:
        """The sample, and the farthest row where rows were left out of it."""
        if len(self.rows) == self.count:
            return self.sample
        return np.concatenate([self.sample, self.farthest])

    @property
    def counts(self) -> list[int]:
        """Rows of the chunks in order."""
        return [self.lengths[chunk] for chunk in sorted(self.lengths)]

    @property
    def count(self) -> int:
        """Rows of all chunks."""
        return sum(self.lengths.values())


def survey(chunks: Chunks, size: int, seed: int) -> Survey:
    """One pass over the chunks: all checked, counted and sampled."""
    n = chunks.count
    # Where the number of rows is known, hardly more rows than the sample travel.
    cut = 1.0 if not n else (size + SPARE_DEVIATIONS * np.sqrt(size) + 1) / n
    parts = chunks.map(Survey.of, width=chunks.width, size=size, cut=cut, seed=seed)
    return run([tree_sum(parts)])[0]


def checked(rows, chunk: int, width: int) -> np.ndarray:
    """The rows of a chunk, or an error that names it."""
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(
            f"Chunk {chunk} of X has shape {rows.shape}, and {width} columns were promised. Check "
            "the function that makes it."
        )
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        raise ValueError(
            f"Chunk {chunk} of X contains NaN or infinity, first in its row {bad[0]}. Remove or "
            "fill such rows first."
        )
    return rows


def _farthest(rows) -> tuple[float, np.ndarray]:
    if not len(rows):
        return -1.0, rows[:0]
    squares = np.square(rows - rows.mean(axis=0)).sum(axis=1)
    peak = int(np.argmax(squares))
    return float(squares[peak]), rows[peak : peak + 1].copy()
