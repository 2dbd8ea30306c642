"""
A walk
======

A figure walks on the spot, and the places of its joints are measured with noise of three
centimeters. Frames are rows, joints are columns. Components are fitted to the noisy frames
themselves: the frames of a walk lie along a curve, and kernel PCA keeps to it with few
components.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.decomposition import PCA

from mercer import KernelPCA
from mercer.datasets import make_walk

NOISE = 0.03  # meters

walk = make_walk()
clean, parents = walk.data, walk.parents
noisy = clean + NOISE * np.random.default_rng(0).standard_normal(clean.shape)


def removed(frames):
    """Share of the energy of the noise that is gone."""
    return 1 - np.sum((frames - clean) ** 2) / np.sum((noisy - clean) ** 2)


# %%
# Linear PCA gets its best number of components, which only the clean walk shows.

model = KernelPCA(6, kernel="rbf", gamma=4.0).fit(noisy)
found = model.denoise(noisy, noise=np.inf)
linear = [PCA(r).fit(noisy) for r in range(2, 13)]
best = max(removed(pca.inverse_transform(pca.transform(noisy))) for pca in linear)
print(f"kernel PCA removes {100 * removed(found):.1f} % of the noise")
print(f"linear PCA at its best {100 * best:.1f} %")

# %%
# Every tenth frame of the first second and a half, seen from the side.


def draw(ax, frames, title):
    """Skeletons side by side."""
    joints = frames.reshape(len(frames), -1, 3)
    for i, body in enumerate(joints[::10][:10]):
        center = body[0, 0] - 0.75 * i
        for j, p in enumerate(parents):
            if p >= 0:
                x = body[[j, p], 0] - center
                ax.plot(x, body[[j, p], 1], "o-", color="0.15", ms=2, lw=1.3)
    ax.set_ylabel(title)
    ax.set(xticks=[], yticks=[], aspect="equal")


figure, axes = plt.subplots(3, 1, figsize=(8, 7.6), layout="constrained")
for ax, (name, frames) in zip(
    axes, {"original": clean, "noisy": noisy, "denoised": found}.items(), strict=True
):
    draw(ax, frames, name)

# %%
# By two components the frames run to and fro along an arch; the color is time.

scores = model.transform(noisy)
figure, ax = plt.subplots(figsize=(4.5, 4), layout="constrained")
ax.plot(scores[:, 0], scores[:, 1], lw=0.6, color="0.6")
ax.scatter(scores[:, 0], scores[:, 1], c=np.arange(len(scores)), s=9, cmap="viridis")
ax.set(xlabel="component 1", ylabel="component 2")

plt.show()
