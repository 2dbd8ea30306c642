"""Walks along the components for the slider, or the reason why there are none."""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import NotFittedError

from ..plot.rows import steps_along, walk

# Components to walk along, steps of each, and standard deviations to both sides.
COMPONENTS = 8
STEPS = 21
SPAN = 2.5
# Numbers of all walks; rows of very many columns are walked along fewer components.
NUMBERS = 2_000_000


@dataclass(frozen=True)
class Walks:
    """Pre-images along the leading components.

    Attributes
    ----------
    steps : array of shape (q,)
        In standard deviations.
    deviations : array of shape (c,)
        Standard deviation of the scores of each component.
    rows : array of shape (c, q, d)
    note : str
        What the method warned of; empty if of nothing.
    """

    steps: np.ndarray
    deviations: np.ndarray
    rows: np.ndarray
    note: str


def take_walks(model) -> Walks | str:
    """Walks along the leading components, or why the model has no way back to rows."""
    deviations = np.sqrt(np.maximum(np.asarray(model.explained_variance_, float), 0.0))
    count = min(COMPONENTS, deviations.size, max(1, NUMBERS // (STEPS * model.n_features_in_)))
    steps = steps_along(SPAN, STEPS)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            rows = np.stack([walk(model, k, steps) for k in range(count)])
        except (NotFittedError, ValueError) as error:
            return str(error)
    if not np.isfinite(rows).all():
        return "The pre-images of this model are not finite."
    note = " ".join(dict.fromkeys(str(one.message) for one in told))
    return Walks(steps, deviations[:count], rows, note)
