"""
Solvers, pass by pass
=====================

Residuals of eight components by readings of the kernel matrix. Block Krylov is the default for a
few components of many rows; Gram power and the Hebbian rule are the methods of papers, and
slower.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from mercer import HebbianKernelPCA, KernelPCA, plot

rbf = {"n_components": 8, "kernel": "rbf", "gamma": "median", "random_state": 0}

X = load_digits().data
krylov, power = [], []
KernelPCA(eigen_solver="krylov", tol=1e-6, callback=krylov.append, **rbf).fit(X)
KernelPCA(eigen_solver="gram-power", tol=1e-6, callback=power.append, **rbf).fit(X)
hebbian = HebbianKernelPCA(n_passes=10, **rbf).fit(X)
histories = {"block Krylov": krylov, "Gram power": power, "Hebbian, auto": hebbian.history_}
plot.convergence(histories, quantity="residual")
for name, states in (("block Krylov", krylov), ("Gram power", power)):
    print(f"{name}: residual {states[-1].residual:.1e} after {states[-1].n_passes} passes")

# %%
# The rules of the Hebbian family are compared with each other in :doc:`pictures`.

plt.show()
