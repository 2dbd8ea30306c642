"""
Which method, by the number of rows
===================================

Seconds of processor time for eight Gaussian components of ten columns, exact and approximate, on
the machine that built this page. :doc:`/which-method` says more.
"""

import time

import numpy as np
from matplotlib import pyplot as plt
from sklearn.decomposition import KernelPCA as ScikitLearn

from mercer import KernelPCA
from mercer.bases import Landmarks

rng = np.random.default_rng(0)
rows = rng.standard_normal((64_000, 3)) @ rng.standard_normal((3, 10))
rows += 0.3 * rng.standard_normal(rows.shape)

# %%
# Exact methods grow with the square of the rows, since every pair counts. scikit-learn also keeps
# all pairs in memory. The time of landmarks grows with the rows, and their certificate bounds the
# loss.

rbf = {"n_components": 8, "kernel": "rbf", "gamma": 0.02, "random_state": 0}
contest = {
    "scikit-learn": (ScikitLearn(eigen_solver="auto", **rbf), 4_000, "s:"),
    "exact, all digits": (KernelPCA(**rbf), 8_000, "o--"),
    "exact, tol=1e-6": (KernelPCA(tol=1e-6, **rbf), 8_000, "o-"),
    "200 landmarks": (KernelPCA(basis=Landmarks(200), **rbf), 64_000, "^-"),
}
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, (model, most, style) in contest.items():
    model.fit(rows[:500])  # compiles what there is to compile
    sizes = [n for n in (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000) if n <= most]
    seconds = []
    for n in sizes:
        start = time.process_time()
        model.fit(rows[:n])
        seconds.append(time.process_time() - start)
    print(f"{name}: {seconds[-1]:.2f} s for {sizes[-1]:,} rows")
    ax.loglog(sizes, seconds, style, label=name)
ax.set(xlabel="rows", ylabel="seconds of processor time")
ax.legend(frameon=False)

# %%
# What the landmarks of the last fit lose:

print(model.certificate_)

plt.show()
