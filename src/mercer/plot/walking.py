"""A walk along a component: scores in steps of its standard deviation, and their pre-images."""

import numpy as np

from .axes import check_component, dense


def steps_along(span: float, count: int) -> np.ndarray:
    """Places of a walk from -span to span, in standard deviations."""
    if not (span > 0 and np.isfinite(span) and count >= 2):
        raise ValueError(
            f"A walk needs a positive span and at least 2 steps; span={span!r}, n_steps={count!r}."
        )
    return np.linspace(-span, span, count)


def walk(model, component: int, steps):
    """Rows (len(steps), d) whose scores are zero but along one component.

    Parameters
    ----------
    model : fitted estimator with `inverse_transform`
    component : int
    steps : array
        In standard deviations of the component.
    """
    variances = dense(model.explained_variance_)
    component = check_component(component, variances.size)
    S = np.zeros((len(steps), variances.size))
    S[:, component] = np.asarray(steps) * np.sqrt(max(float(variances[component]), 0.0))
    return dense(model.inverse_transform(S))
