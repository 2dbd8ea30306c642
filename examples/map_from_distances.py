"""
A map from distances
====================

Classical scaling draws a map of things of which only the distances are known. Here they are the
Manhattan distances between the ten mean digits, which no plane shows exactly; the summary says
how much of them it shows.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances

from mercer import ClassicalMDS

X, digit = load_digits(return_X_y=True)
means = np.array([X[digit == k].mean(axis=0) for k in range(10)])
D = pairwise_distances(means, metric="manhattan")
model = ClassicalMDS(2, dissimilarity="precomputed").fit(D)
print(model.summary())

# %%
# Others are placed on the map afterwards, by their distances to the ten.

some = np.random.default_rng(0).choice(len(X), 300, replace=False)
placed = model.transform(pairwise_distances(X[some], means, metric="manhattan"))
figure, ax = plt.subplots(figsize=(6.5, 5), layout="constrained")
for k in range(10):
    own = placed[digit[some] == k]
    ax.scatter(own[:, 0], own[:, 1], s=25, marker=f"${k}$", color="0.65", linewidths=0.3)
    ax.text(*model.embedding_[k], str(k), fontsize=20, weight="bold", ha="center", va="center")
ax.set(xlabel="dimension 1", ylabel="dimension 2", aspect="equal")
ax.set_title("ten mean digits, and 300 digits placed afterwards", fontsize="medium")
