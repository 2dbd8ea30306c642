"""
A plant that is watched
=======================

Ten sensors follow the operating point of a plant, each in a way of its own. A monitor learns normal
operation, and two statistics of each new row say when a sensor leaves it, and which one.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from mercer import ProcessMonitor, plot
from mercer.datasets import make_plant

plant = {"plant": 1, "memory": 0.7}
monitor = ProcessMonitor().fit(make_plant(800, 0, **plant).data)
fresh = make_plant(3000, 1, **plant).data
print(f"normal rows in alarm: {np.mean(monitor.predict(fresh) < 0):.1%}, asked for 1 %")

# %%
# From row 150 on a sensor drifts. The chart names it above its longest alarms.

run = make_plant(300, 2, fault="drift", **plant)
chart = monitor.chart(run.data)
print(chart)
print(f"it was x{run.sensor}, from row {run.start}")
plot.control_chart(chart)
plt.show()

# %%
# Linear PCA on the same run: the residual of each row, over that of normal rows.

scaler = StandardScaler().fit(fresh)
pca = PCA(0.95).fit(scaler.transform(fresh))


def left(X):
    """The squared prediction error of linear PCA."""
    Z = scaler.transform(X)
    return ((Z - pca.inverse_transform(pca.transform(Z))) ** 2).sum(axis=1)


share = left(run.data) / np.quantile(left(fresh), 0.99)
print(f"rows of the fault in alarm: {np.mean(chart.alarms[150:]):.0%}")
print(f"by linear PCA: {np.mean(share[150:] > 1):.0%}")
