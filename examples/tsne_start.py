"""
A start for t-SNE
=================

t-SNE keeps the large structure of its start, and a random start has none. Scores of kernel PCA have
large structure: `embedding_init` scales them for t-SNE and UMAP.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE

from mercer import KernelPCA, embedding_init

X, digit = load_digits(return_X_y=True)
X, digit = X[:300], digit[:300]
scores = KernelPCA(n_components=2, kernel="rbf", gamma="median").fit_transform(X)
start = embedding_init(scores, random_state=0)
Y = TSNE(init=start, perplexity=30, max_iter=250, random_state=0).fit_transform(X)

# %%
# Digits that are far apart in the scores stay far apart.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, (name, points) in zip(axes, {"scores": start, "t-SNE": Y}.items(), strict=True):
    ax.scatter(*points.T, c=digit, s=8, cmap="tab10")
    ax.set(title=name, xticks=[], yticks=[])

plt.show()
