"""
Choosing gamma and the number of components
===========================================

Errors in feature space cannot choose the width of the kernel: they fall without end as it grows.
The search therefore adds noise to rows that were held out, and measures the error of the denoised
rows.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from mercer import KernelPCASearch, plot

NOISE = 3.0  # standard deviation, for gray values from 0 to 16

X = load_digits().data
search = KernelPCASearch(noise=NOISE, random_state=0).fit(X[:600])
print(f"chosen: {search.best_params_}")

# %%
# The share of the noise that is left, by width and number of components. 1 means that nothing was
# gained; a ring marks the best.

plot.selection(search)

# %%
# The choice holds for digits that the search has not seen.

fresh = X[600:1200]
noisy = fresh + np.random.default_rng(1).normal(0, NOISE, fresh.shape)
left = np.mean((search.denoise(noisy) - fresh) ** 2) / NOISE**2
print(f"noise left in fresh digits: {100 * left:.0f} % of its energy")

plt.show()
