"""
A roll, unrolled
================

A swiss roll is a sheet. Spectral embedding finds the sheet from a graph of near rows. A diffusion
map with `density_power=1` finds it at any density of rows. `transform` places rows that were not in
the fit (crosses).
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_swiss_roll

from mercer import DiffusionMap, SpectralEmbedding

X, place = make_swiss_roll(700, noise=0.2, random_state=0)
new, new_place = make_swiss_roll(60, noise=0.2, random_state=1)
models = {
    "spectral embedding": SpectralEmbedding(2, n_neighbors=12, random_state=0),
    "diffusion map": DiffusionMap(2, density_power=1, gamma=0.1, random_state=0),
}

# %%
# Colors are the place along the roll.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    Y, Z = model.fit_transform(X), model.transform(new)
    ax.scatter(*Y.T, c=place, s=6, cmap="viridis")
    ax.scatter(*Z.T, c=new_place, s=50, marker="x", cmap="viridis")
    ax.set(title=name, xticks=[], yticks=[])
    print(f"{name}: eigenvalues {model.eigenvalues_.round(4)}")

plt.show()
