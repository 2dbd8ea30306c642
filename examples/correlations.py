"""
What two views share
====================

The left and the right half of a digit's image have no pixel in common, and yet both come from one
digit. Kernel CCA finds functions of each half that vary together. The correlation in the
rows of the fit proves nothing: with little regularization any two views of few rows correlate
perfectly. Only the correlation of new rows counts.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from mercer import KernelCCA

images, digit = load_digits(return_X_y=True)
left = images.reshape(-1, 8, 8)[:, :, :4].reshape(-1, 32)
right = images.reshape(-1, 8, 8)[:, :, 4:].reshape(-1, 32)
train, test = slice(0, 700), slice(700, 1400)
shares = 10.0 ** np.arange(-7, 1)
fitted, new = [], []
for share in shares:
    model = KernelCCA(1, kernel="rbf", gamma="median", regularization=share, basis="landmarks")
    model.set_params(random_state=0).fit(left[train], right[train])
    fitted.append(model.correlations_[0])
    new.append(model.score(left[test], right[test]))

# %%
# The regularization to take is the one with the largest correlation of new rows; `GridSearchCV`
# finds it by folds.

best = shares[int(np.argmax(new))]
model = KernelCCA(2, kernel="rbf", gamma="median", regularization=best, random_state=0)
S, T = model.fit(left[train], right[train]).transform(left[test], right[test])
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
axes[0].semilogx(shares, fitted, "o-", label="rows of the fit")
axes[0].semilogx(shares, new, "o-", label="new rows")
axes[0].set(xlabel="regularization", ylabel="correlation, first pair")
axes[0].legend()
axes[1].scatter(S[:, 0], T[:, 0], c=digit[test], cmap="tab10", s=8)
axes[1].set(xlabel="left halves", ylabel="right halves", title="new rows, colored by digit")
print(f"regularization {best:g}: {model.correlations(left[test], right[test]).round(3)}")

plt.show()
