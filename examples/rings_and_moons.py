"""
Rings and moons
===============

No straight line separates two rings or two moons. The components of linear PCA are straight lines
and cannot separate them. Components of kernel PCA are curved: here they separate the groups.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_circles, make_moons
from sklearn.decomposition import PCA

from mercer import KernelPCA, plot

data = {
    "rings": (*make_circles(600, factor=0.35, noise=0.06, random_state=0), 4.0),
    "moons": (*make_moons(600, noise=0.06, random_state=0), 15.0),
}


def right_side(scores, group):
    """The share of rows on the right side of the best cut across one component."""
    shares = []
    for column in scores.T:
        ordered = group[np.argsort(column)]
        below = np.cumsum(ordered == 1) + np.sum(ordered == 0) - np.cumsum(ordered == 0)
        shares.append(max(below.max(), len(group) - below.min()) / len(group))
    return max(shares)


# %%
# The only parameter that matters is ``gamma``, the width of the Gaussian kernel: rows that are
# farther apart than about ``1 / sqrt(gamma)`` are not similar. This distance should be about
# the gap between the groups. A cut across one component then separates them.

figure, axes = plt.subplots(2, 3, figsize=(9, 6), layout="constrained")
for row, (name, (X, group, gamma)) in zip(axes, data.items(), strict=True):
    linear = PCA(2).fit_transform(X)
    kernel = KernelPCA(2, kernel="rbf", gamma=gamma).fit_transform(X)
    plot.scores(X, group, ax=row[0]).set(title=f"two {name}", xlabel="x", ylabel="y")
    for ax, scores, title in ((row[1], linear, "linear PCA"), (row[2], kernel, "kernel PCA")):
        share = right_side(scores, group)
        plot.scores(scores, group, ax=ax).set_title(f"{title}: {100 * share:.0f} %")
        print(f"{name}, {title}: a cut has {100 * share:.1f} % of the rows on their side")
    for ax in row:
        ax.get_legend().remove()

# %%
# Lines of equal score
# --------------------
#
# A component is a function of the plane. Lines of equal score follow the rings and the moons;
# those of linear PCA are parallel lines.

X, _, gamma = data["rings"]
plot.contours(KernelPCA(3, kernel="rbf", gamma=gamma).fit(X), X)

# %%

X, _, gamma = data["moons"]
plot.contours(KernelPCA(3, kernel="rbf", gamma=gamma).fit(X), X)

plt.show()
