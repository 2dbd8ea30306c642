"""
How many landmarks?
===================

What landmarks and random features miss of the ten leading components of the digits, by their
number. Landmarks are better by orders of magnitude, and chosen landmarks better than random rows.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from mercer import KernelPCA, plot
from mercer.bases import Landmarks, RandomFeatures
from mercer.selectors import Uniform

SIZES = (50, 100, 200, 400)

X = load_digits().data
exact = KernelPCA(10, kernel="rbf", gamma="median").fit(X)


def missed(model):
    """Share of the variance of the exact scores that the approximate ones do not span."""
    Q = np.linalg.qr(model.transform(X))[0]
    S = exact.transform(X)
    return float(np.sum((S - Q @ (Q.T @ S)) ** 2) / np.sum(S**2))


# %%
# The rest of the code is the same for all of them: only ``basis`` changes.

figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
for name, basis, style in (
    ("landmarks, default", Landmarks, "o-"),
    ("landmarks, uniform", lambda m: Landmarks(m, Uniform()), "s--"),
    ("random features", RandomFeatures, "^:"),
):
    rbf = {"kernel": "rbf", "gamma": exact.gamma_, "random_state": 0}
    errors = [missed(KernelPCA(10, basis=basis(m), **rbf).fit(X)) for m in SIZES]
    print(f"{name}: " + ", ".join(f"{m} {e:.1e}" for m, e in zip(SIZES, errors, strict=True)))
    ax.loglog(SIZES, errors, style, color="0.1", label=name)
ax.set(xlabel="size of the basis", ylabel="variance missed")
ax.set_xticks(SIZES, [str(m) for m in SIZES])
ax.minorticks_off()
ax.legend(frameon=False)

# %%
# The certificate says the same without the exact result: each exact eigenvalue (a cross)
# lies in its interval.

figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained", sharey=True)
for ax, size in zip(axes, (25, 50, 200), strict=True):
    few = KernelPCA(10, basis=Landmarks(size), **rbf).fit(X)
    plot.spectrum(few, ax).plot(range(1, 11), exact.eigenvalues_, "x", color="tab:orange")
    ax.set_title(f"{size} landmarks")

plt.show()
