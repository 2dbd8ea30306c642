"""
Every picture of ``mercer.plot``
================================

One picture of each function; :doc:`/plots` describes them. All take ``ax=`` and return the axes.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from mercer import HebbianKernelPCA, KernelPCA, plot
from mercer.bases import Landmarks
from mercer.datasets import make_three_clusters

X, digit = load_digits(return_X_y=True)
rbf = {"kernel": "rbf", "gamma": "median", "random_state": 0}

# %%
# Components over the plane: Figure 1 of Shi, Guo & Xue (2009).

clusters = make_three_clusters(rng=0).data
plot.contours(KernelPCA(3, kernel="rbf", gamma=10.0).fit(clusters), clusters)

# %%
# Rows by two components, four of the digits.

few = digit < 4
plot.scores(KernelPCA(2, **rbf).fit_transform(X[few]), digit[few])

# %%
# Eigenvalues in their intervals: with 60 landmarks these are wide enough to see.

plot.spectrum(KernelPCA(12, basis=Landmarks(60), **rbf).fit(X))

# %%
# Landmarks over their data.

plot.landmarks(KernelPCA(2, basis=Landmarks(40), **rbf).fit(X), X)

# %%
# Convergence: excess error by pass of the Hebbian rules.

histories = {}
for gain in ("constant", "t", "et", "smd", "auto"):
    histories[gain] = HebbianKernelPCA(8, gain=gain, track_excess=True, **rbf).fit(X).history_
plot.convergence(histories)

# %%
# What a component means.

plot.preimages(KernelPCA(8, **rbf).fit(X), images=(8, 8))

# %%
# Rows before and after denoising.

half = len(X) // 2
new = [half + int(np.flatnonzero(digit[half:] == k)[0]) for k in range(10)]
noisy = X[new] + np.random.default_rng(0).normal(0, 4.0, (10, 64))
model = KernelPCA(128, kernel="rbf", gamma=0.001).fit(X[:half])
plot.denoised(noisy, model.denoise(noisy), X[new], images=(8, 8))

plt.show()
