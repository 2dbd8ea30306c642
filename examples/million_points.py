"""
A million points
================

A spiral of a million rows. Its kernel matrix would take eight terabytes; 200 landmarks need
one pass over the rows, within a memory budget, and a bound of their loss.
"""

import time

import numpy as np
from matplotlib import pyplot as plt

from mercer import KernelPCA, plan
from mercer.bases import Landmarks

n = 1_000_000
rng = np.random.default_rng(0)
turn = np.sqrt(rng.uniform(0.25, 9.0, n))  # as many rows along every stretch
angle = 2 * np.pi * turn
X = np.column_stack([turn * np.cos(angle), turn * np.sin(angle)]) + rng.normal(0, 0.08, (n, 2))

# %%
# The plan predicts the cost before the fit.

print(plan(X, n_components=6, memory="1GB"))

# %%
# The times are of the machine that built this page.

model = KernelPCA(6, kernel="rbf", gamma=3.0, basis=Landmarks(200), memory="1GB", random_state=0)
start = time.perf_counter()
model.fit(X)
fitted = time.perf_counter()
scores = model.transform(X)
done = time.perf_counter()
print(f"fit {fitted - start:.1f} s, all scores {done - fitted:.1f} s")
print(model.certificate_)

# %%
# Too many points for a scatter: the color is the mean score of the rows in a cell. The first
# components run along the spiral like waves of growing frequency.

figure, axes = plt.subplots(1, 4, figsize=(11, 3.1), layout="constrained")
axes[0].hexbin(*X.T, gridsize=90, bins="log", cmap="Greys")
axes[0].set_title("a million rows", fontsize="medium")
for k, ax in enumerate(axes[1:]):
    ax.hexbin(*X.T, C=scores[:, k], gridsize=90, cmap="PuOr")
    ax.set_title(f"component {k + 1}", fontsize="medium")
for ax in axes:
    ax.set(xticks=[], yticks=[], aspect="equal")

plt.show()
