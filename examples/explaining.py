"""
What drives a component, and how many are real
===============================================

A component of kernel PCA has no loadings, but every score has a gradient: how much it changes with
each column. Averaged over the rows, the gradient says which columns drive which component.
Shuffled columns show the eigenvalues of noise.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from mercer import KernelPCA, plot

wine = load_wine(as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(wine.data)
model = KernelPCA(8, kernel="rbf", gamma="median").fit(X)

# %%
# The columns that drive the components, as a table: the first line is for all components together.
# A sign says that the score rises or falls with the column everywhere, ± that it does both.

found = model.attribute(X)
print(found)

# %%
# The same as bars, for the first two components.

figure, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
for component, ax in enumerate(axes):
    plot.attribution(found, component, count=8, ax=ax)

# %%
# How many of them are real? Eigenvalues above the dashed line stand above those of shuffled
# columns. A stable component, or a stable space of the first components, is found again when rows
# are drawn anew.

real = model.significance(X, random_state=0)
print(real)
plot.spectrum(model, significance=real)

plt.show()
