"""
Spectral clusters
=================

Clusters need not be round. k-means cuts the moons in two; spectral clustering follows them, along
chains of near rows. New rows join the clusters without another fit.
"""

from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from mercer import SpectralClustering, plot

X, moon = make_moons(600, noise=0.07, random_state=0)
new, new_moon = make_moons(600, noise=0.07, random_state=1)
model = SpectralClustering(n_clusters=2, gamma=20.0, random_state=0).fit(X)
found = {
    "k-means": (X, KMeans(2, n_init=10, random_state=0).fit_predict(X), moon),
    "spectral clustering": (X, model.labels_, moon),
    "new rows, predicted": (new, model.predict(new), new_moon),
}

# %%
# The adjusted Rand index is 1 where the clusters are the moons, and 0 for chance.

figure, axes = plt.subplots(1, 3, figsize=(10, 3), sharey=True, layout="constrained")
for ax, (name, (points, labels, true)) in zip(axes, found.items(), strict=True):
    score = adjusted_rand_score(true, labels)
    plot.scores(points, labels, ax=ax).get_legend().remove()
    ax.set(title=f"{name}, {score:.2f}", xlabel="", ylabel="", xticks=[], yticks=[])
    ax.set_aspect("equal")
    print(f"{name}: adjusted Rand index {score:.3f}")

plt.show()
