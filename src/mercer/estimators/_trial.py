"""Trials of a model: rows held out of the fit are damaged, brought back and compared.

Adding noise is the trial for clean data. Where the data are noisy themselves it would teach to
keep their noise; then coordinates are hidden and predicted instead.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.base import clone

from ..preimage import FixedPoint, choose_preimage
from ..preimage.base import total_std

# Noise to add where none is given, as a share of the data's total standard deviation.
NOISE_SHARE = 0.3
# Entries hidden, and rounds of filling them in from the pre-image.
HIDDEN_SHARE, ROUNDS = 0.15, 6
# A search ranks errors; it does not need their third digit.
SEARCH_TOL, SEARCH_STEPS = 1e-3, 50


def make_trial(noise, X, held, rng) -> "Trial":
    """The trial that `noise` asks for."""
    if noise == "hidden":
        mask = rng.random_sample(held.shape) < HIDDEN_SHARE
        return HiddenTrial(X, held, np.where(mask, X.mean(axis=0), held), mask)
    std = NOISE_SHARE * total_std(X) / np.sqrt(X.shape[1]) if noise is None else float(noise)
    Y = held + std * rng.standard_normal(held.shape)
    return NoiseTrial(X, held, Y.astype(X.dtype), np.ones(held.shape, bool))


@dataclass(frozen=True)
class Trial:
    """Rows to learn from, rows held out, those rows damaged, and where the error is counted."""

    X: np.ndarray
    held: np.ndarray
    damaged: np.ndarray
    mask: np.ndarray

    criterion: ClassVar[str]

    @property
    def reference(self) -> float:
        """The error of the damaged rows themselves."""
        return self._error(self.damaged)

    def errors(self, model, ranks) -> list[float]:
        """The error at every number of components, from one fit."""
        model = model.fit(self.X)
        most = model.expansion_.n_components
        return [self._error(self.restore(model, r)) if r <= most else np.nan for r in ranks]

    def restore(self, model, r) -> np.ndarray:
        """The damaged rows, brought back with r components."""
        raise NotImplementedError

    def _preimage(self, model, expansion):
        recipe = choose_preimage(model.preimage, expansion.basis, denoising=True)
        if isinstance(recipe, FixedPoint):
            recipe = clone(recipe).set_params(tol=SEARCH_TOL, max_iter=SEARCH_STEPS)
        return recipe.fit(expansion, self.X, denoising=True)

    def _error(self, Z) -> float:
        return float(np.mean(np.square(Z - self.held, dtype=float), where=self.mask))


class NoiseTrial(Trial):
    """Noise was added: denoise with compensation, since the training rows have none."""

    criterion = "injected noise"

    def restore(self, model, r):
        """Project, compensate, pre-image."""
        S = model._inverse().denoising_scores(self.damaged, compensate=True)[:, :r]
        return self._preimage(model, model.expansion_.leading(r))(S, self.damaged).points


class HiddenTrial(Trial):
    """Entries were hidden: fill them in from the pre-image, a few rounds."""

    criterion = "hidden coordinates"

    def restore(self, model, r):
        """Project, pre-image, put back what is known."""
        expansion = model.expansion_.leading(r)
        preimage, Z = self._preimage(model, expansion), self.damaged
        for _ in range(ROUNDS):
            Z = np.where(self.mask, preimage(expansion.scores(Z), Z).points, self.held)
        return Z
