"""What was recorded pass by pass, as curves: the one way in which histories are read.

A history is `HebbianKernelPCA.history_`, a list of the states that a callback collected, or
plain numbers, one a pass.
"""

from collections.abc import Mapping

import numpy as np

from ..hebbian import History
from ..solvers import PassState

# What a curve can show, best first: equation 22 of the Hebbian paper, what residuals say, and
# how far the subspace turned.
QUANTITIES = {
    "excess": "excess reconstruction error",
    "residual": "residual / largest eigenvalue",
    "change": "turn of the subspace (sine)",
}


def curves(histories, quantity: str = "auto"):
    """Curves of one quantity, from one history or several by name.

    Parameters
    ----------
    histories : history or mapping of str to history
    quantity : "auto", "excess", "residual" or "change"
        "auto" is the first of these that all histories have. Plain numbers are taken for
        whatever is asked.

    Returns
    -------
    quantity : str
    named : dict of str to (passes, values)
        Two arrays a history.
    """
    if not isinstance(histories, Mapping):
        histories = {"": histories}
    known = {name: _read(history, name) for name, history in histories.items()}
    if not known:
        raise ValueError("There is no history to show. Give one, or several by name.")
    if quantity == "auto":
        common = [q for q in QUANTITIES if all(q in kinds for kinds in known.values())]
        if not common:
            have = "; ".join(f"{name}: {', '.join(kinds)}" for name, kinds in known.items())
            raise ValueError(
                f"The histories have no quantity in common ({have}). Draw them one by one, or fit "
                "both so that they record the same."
            )
        quantity = common[0]
    for name, kinds in known.items():
        if quantity not in kinds:
            raise ValueError(
                f"History {name!r} has no {quantity!r}, only {', '.join(kinds)}. For the excess "
                "error fit HebbianKernelPCA with track_excess=True."
            )
    return quantity, {name: kinds[quantity] for name, kinds in known.items()}


def _read(history, name):
    """Quantities of one history, each as (passes, values)."""
    if isinstance(history, History):
        return _of_hebbian(history)
    history = list(history)
    if not history:
        raise ValueError(f"History {name!r} is empty: no pass was recorded.")
    if all(isinstance(state, PassState) for state in history):
        passes = np.array([state.n_passes for state in history])
        return {"residual": (passes, np.array([state.residual for state in history], float))}
    values = np.asarray(history, dtype=float)
    if values.ndim != 1:
        raise ValueError(f"History {name!r} needs one number a pass, and has shape {values.shape}.")
    return {quantity: (np.arange(1, values.size + 1), values) for quantity in QUANTITIES}


def _of_hebbian(history):
    passes = np.arange(1, len(history.changes) + 1)
    if not passes.size:
        raise ValueError("The history is empty: no pass was finished.")
    top = np.maximum(history.eigenvalues.max(axis=1), np.finfo(float).tiny)
    found = {
        "residual": (passes, history.residuals.max(axis=1) / top),
        "change": (passes, np.asarray(history.changes)),
    }
    if history.excess is not None:
        found["excess"] = (passes, np.asarray(history.excess, dtype=float))
    return found
