"""The estimators that have model files, and how the declaration of each becomes a file.

Every estimator declares what it has once it is fitted (`_fitted`), with its kind. Saved is what
transform, errors, pre-images, plots and reports need. Not saved is what only a fit needs or what
follows from the rest: `X_fit_` and `landmarks_` are the points of the basis, `eigenvectors_` the
frame times the roots of the eigenvalues; a precomputed training matrix is not read again,
`callback` and random generators belong to the program that ran the fit. A model that learns from a
stream keeps what it needs to go on.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import estimators

# Parameters that only the running program can have.
OF_PROGRAM = ("callback", "checkpoint")


@dataclass(frozen=True)
class Model:
    """An estimator as a part of a file.

    Attributes
    ----------
    cls : type
    kinds : dict of str to kind
        Its fitted attributes that are saved, and what they must be.
    optional : set of str
        Those that a file may lack.
    """

    cls: Any
    kinds: dict[str, Any]
    optional: set[str]
    tag = None

    @classmethod
    def of(cls, estimator: Any) -> "Model":
        """By the declaration of an estimator."""
        saved = {name: one for name, one in estimator._fitted.items() if one.saved}
        optional = {name for name, one in saved.items() if not one.always}
        return cls(estimator, {name: one.kind for name, one in saved.items()}, optional)

    def read(self, model) -> dict[str, Any]:
        """Parameters, and attributes of a fitted model."""
        params, facts = model.get_params(deep=False), vars(model)
        params |= dict.fromkeys(dropped_params(model))
        if params.get("device") is not None:
            params["device"] = str(params["device"])
        names = [name for name in self.kinds if name in facts and model._is_saved(name)]
        return {"params": params, "state": {name: facts[name] for name in names}}


def dropped_params(model) -> list[str]:
    """Names of parameters that a file does not keep: callbacks, generators, checkpoints."""
    params = model.get_params(deep=False)
    generator = isinstance(params.get("random_state"), np.random.RandomState)
    names = [name for name in OF_PROGRAM if params.get(name) is not None]
    return ["random_state", *names] if generator else names


MODELS: dict[str, Model] = {
    name: Model.of(estimator)
    for name in estimators.__all__
    if isinstance(estimator := vars(estimators).get(name) or getattr(estimators, name), type)
}
