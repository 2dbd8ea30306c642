"""What components mean: the columns that drive them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..relatives.attribution import Attribution
from .axes import check_component, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Share of its size that a gradient must have with one sign for the bar to be told by it.
ONE_SIGN = 0.5
HATCHES = {"rises": "", "falls": "////", "both": "...."}


def attribution(
    result: Any, component: int | None = None, *, count: int = 12, ax: "Axes | None" = None
) -> Any:
    """Bars of the columns that drive a component, or all of them, the longest first.

    Parameters
    ----------
    result : Attribution or fitted estimator with `attribute`
        An estimator is asked about the training rows that it has.
    component : int or None, default=None
        Which, from 0; None for all together.
    count : int, default=12
        Columns shown at most.
    ax : matplotlib Axes or None

    Returns
    -------
    matplotlib Axes
        Bars are plain where the score rises with the column, striped where it falls and dotted
        where it does both.
    """
    found = result if isinstance(result, Attribution) else result.attribute()
    if component is not None:
        component = check_component(component, len(found.components))
    order = found.order(component)[:count]
    values = found.overall if component is None else found.size[:, component]
    ax = ax or new_axes((5.2, 0.8 + 0.28 * len(order)))
    kinds = ["rises"] * len(order) if component is None else signs(found, order, component)
    place = np.arange(len(order))
    for kind, hatch in HATCHES.items():
        some = np.array([one == kind for one in kinds])
        if some.any():
            label = None if component is None else kind
            ax.barh(
                place[some], values[order][some], color="0.75", ec="0.2", hatch=hatch, label=label
            )
    ax.set_yticks(place, [found.columns[i] for i in order])
    ax.invert_yaxis()
    ax.set_xlabel("change of the score for one standard deviation")
    name = "all components" if component is None else found.components[component]
    ax.set_title(f"What drives {name}", fontsize="medium")
    if component is not None:
        ax.legend(fontsize="small", framealpha=0.6, title="with the column it")
    return ax


def signs(found: Attribution, order, component: int) -> list[str]:
    """Whether the score rises or falls with each column, or does both."""
    direction = found.direction[order, component]
    return [
        "rises" if share > ONE_SIGN else "falls" if share < -ONE_SIGN else "both"
        for share in direction
    ]
