"""
Numbers and categories together
===============================

Penguins of a made-up survey: lengths, a weight, the island, the sex, and entries that are
missing. `kernel="gower"` compares each column in its own way, without any preparation:
numbers by their range, categories by equality, missing entries as a value of their own.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from mercer import KernelPCA

rng = np.random.default_rng(0)
n = 400
kind = rng.integers(0, 3, n)
heavy = rng.random(n) < 0.5
islands = np.array(["Torgersen", "Biscoe", "Dream"], dtype=object)
home = np.where(rng.random(n) < 0.85, kind, rng.integers(0, 3, n))
table = pd.DataFrame(
    {
        "bill": np.array([39.0, 48.0, 49.0])[kind] + rng.normal(0, 3, n) + 2 * heavy,
        "mass": np.array([3700.0, 5000.0, 3750.0])[kind] + rng.normal(0, 350, n) + 400 * heavy,
        "island": pd.Categorical(islands[home]),
        "sex": np.where(heavy, "male", "female").astype(object),
    }
)
table.loc[rng.random(n) < 0.1, "mass"] = np.nan
table.loc[rng.random(n) < 0.1, "sex"] = None
print(table.head())

# %%
# Without scaling, the mass alone decides the distances of a Gaussian kernel.

numbers = table[["bill", "mass"]].fillna(table[["bill", "mass"]].mean())
plain = KernelPCA(2, kernel="rbf", gamma="median", random_state=0).fit_transform(numbers)
mixed = KernelPCA(2, kernel="gower", random_state=0).fit(table)
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, (title, S) in zip(
    axes,
    {"rbf of the numbers": np.asarray(plain), "gower": np.asarray(mixed.transform(table))}.items(),
    strict=True,
):
    ax.scatter(*S.T, c=kind, s=8, cmap="viridis")
    ax.set(title=title, xticks=[], yticks=[])
print(mixed.certificate_)

# %%
# A row with a new category is placed by its other columns: here the first of two.

rows = pd.DataFrame(
    {"bill": 48.0, "mass": 5000.0, "island": ["Anvers", "Biscoe"], "sex": "male"}, index=[0, 1]
)
print("scores of new rows:", np.asarray(mixed.transform(rows)).round(3))

plt.show()
