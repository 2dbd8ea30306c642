"""
A map from distances
====================

Classical scaling draws a map from distances alone. Here these are the Manhattan distances between
the ten mean digits. No plane shows them exactly; the summary says how much of them the map shows.
"""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances

from mercer import ClassicalMDS

X, digit = load_digits(return_X_y=True)
means = np.array([X[digit == k].mean(axis=0) for k in range(10)])
D = pairwise_distances(means, metric="manhattan")
model = ClassicalMDS(2, dissimilarity="precomputed").fit(D)
print(model.summary())

# %%
# Other digits are placed on the map afterwards, by their distances to the ten.

some = np.random.default_rng(0).choice(len(X), 300, replace=False)
placed = model.transform(pairwise_distances(X[some], means, metric="manhattan"))
figure, ax = plt.subplots(figsize=(7, 5.4), layout="constrained")
ax.scatter(*placed.T, s=14, c=digit[some], cmap="tab10", alpha=0.6, linewidths=0)
for place, image, k in zip(model.embedding_, means, range(10), strict=True):
    picture = OffsetImage(image.reshape(8, 8), zoom=2.8, cmap="gray_r")
    edge = {"edgecolor": plt.get_cmap("tab10")(k), "linewidth": 2.5}
    ax.add_artist(AnnotationBbox(picture, place, pad=0.15, bboxprops=edge))
ax.set(xlabel="dimension 1", ylabel="dimension 2", aspect="equal")
ax.set_title("ten mean digits by their distances, and 300 digits placed afterwards")

plt.show()
