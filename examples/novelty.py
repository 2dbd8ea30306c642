"""
Novelty: rows unlike the others
===============================

Kernel PCA of normal rows explains normal rows. A row that it does not explain is novel. You choose
the share of normal rows that may be called novel by mistake; it sets the threshold.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import NoveltyDetector

rng = np.random.default_rng(0)


def ring(n):
    """Rows around a circle."""
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.07, (n, 2))


normal = ring(600)
detector = NoveltyDetector(20, gamma=2.0, false_alarms=0.05, random_state=0).fit(normal)
alarms = np.mean(detector.predict(ring(600)) == -1)
print(f"fresh normal rows called novel: {100 * alarms:.1f} %, asked for 5 %")
print("the center of the ring:", "novel" if detector.predict([[0.0, 0.0]]) == -1 else "normal")

# %%
# Over the plane: the lighter, the better explained. Rows within the orange line are called
# normal. The center is far from every row, though it is their mean.

side = np.linspace(-1.7, 1.7, 120)
plane = np.column_stack([axis.ravel() for axis in np.meshgrid(side, side)])
height = detector.decision_function(plane).reshape(len(side), -1)
figure, ax = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
ax.contourf(side, side, height, levels=12, cmap="Greys_r")
ax.contour(side, side, height, levels=[0], colors="tab:orange", linewidths=2)
ax.scatter(normal[:, 0], normal[:, 1], s=4, color="tab:blue")
ax.set(title="within the line: normal", xticks=[], yticks=[], aspect="equal")

plt.show()
