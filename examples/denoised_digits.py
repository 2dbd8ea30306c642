"""
Denoised digits
===============

Digits with heavy noise, denoised by the components of clean digits. Kernel PCA learns the curved
surface that digits lie on. It can keep more components than linear PCA without keeping the
noise.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from mercer import KernelPCA, plot

NOISE = 4.0  # standard deviation, for gray values from 0 to 16

X, digit = load_digits(return_X_y=True)
train, clean, digit = X[:900], X[900:], digit[900:]
noisy = clean + np.random.default_rng(0).normal(0, NOISE, clean.shape)


def noise_left(rows):
    """Share of the energy of the noise that is still there."""
    return np.sum((rows - clean) ** 2) / np.sum((noisy - clean) ** 2)


# %%
# The best number of linear components is chosen with the clean digits, which one would not
# have. Kernel PCA gets no such help: 128 components, and one width.

linear = []
for r in range(5, 41):
    pca = PCA(r).fit(train)
    linear.append(pca.inverse_transform(pca.transform(noisy)))
best = min(linear, key=noise_left)
model = KernelPCA(128, kernel="rbf", gamma=0.001).fit(train)
kernel = model.denoise(noisy)
print(f"linear PCA at its best: {100 * noise_left(best):.0f} % of the noise is left")
print(f"kernel PCA:             {100 * noise_left(kernel):.0f} %")

# %%
# One of each digit, none of them seen by the fit.

shown = [int(np.flatnonzero(digit == k)[0]) for k in range(10)]
plot.denoised(noisy[shown], kernel[shown], clean[shown], images=(8, 8))

plt.show()
