"""
Rows that count more than once
==============================

A survey asks some groups more often than others. Weights correct this: a row of weight three
counts as three equal rows, and the components are those of the population.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import KernelPCA

rng = np.random.default_rng(0)
centers = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 3.0]])
shares = np.array([0.6, 0.3, 0.1])


def rows(counts):
    """Three groups, and of which group each row is."""
    group = np.repeat(np.arange(3), counts)
    return centers[group] + rng.normal(0, 0.5, (len(group), 2)), group


# %%
# The population has the groups in shares of 60, 30 and 10 %; the survey has asked each equally
# often.

population, _ = rows((3000 * shares).astype(int))
survey, group = rows([200, 200, 200])
weights = shares[group] * 3

settings = {"n_components": 2, "kernel": "rbf", "gamma": 0.1}
true = KernelPCA(**settings).fit(population)
plain = KernelPCA(**settings).fit(survey)
weighted = KernelPCA(**settings).fit(survey, sample_weight=weights)
for name, model in (("population", true), ("survey", plain), ("survey, weighted", weighted)):
    print(f"{name:17s} shares of variance", np.round(model.explained_variance_ratio_, 3))

# %%
# The first component over the plane: with weights it is that of the population.

side = np.linspace(-2, 6, 80), np.linspace(-2, 5, 70)
plane = np.column_stack([axis.ravel() for axis in np.meshgrid(*side)])
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained", sharey=True)
for ax, (name, model) in zip(
    axes, (("population", true), ("survey", plain), ("survey, weighted", weighted)), strict=True
):
    S = model.transform(plane)[:, 0].reshape(len(side[1]), -1)
    ax.contour(*side, S, levels=12, colors="0.3", linewidths=0.8)
    ax.scatter(*survey.T, s=3, color="tab:blue")
    ax.set(title=name, xticks=[], yticks=[])

plt.show()
