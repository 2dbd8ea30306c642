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

NOISE = 0.03  # meters

# A body of twelve joints for the generated walk, each with the one that it hangs on: root, chest,
# head, left hip, knee and foot, right hip, knee and foot, shoulders, left and right hand.
PARENTS = [-1, 0, 1, 0, 3, 4, 0, 6, 7, 1, 9, 9]


def limb(length, angle):
    """A limb that hangs down, turned in the plane of the walk."""
    return length * np.column_stack([np.sin(angle), -np.cos(angle), np.zeros_like(angle)])


def generated_walk(n=240, rate=60.0):
    """Joint positions (n, 36) of a figure that walks on the spot, y up."""
    phase = 2 * np.pi * 0.9 * np.arange(n) / rate
    P = np.zeros((n, len(PARENTS), 3))
    P[:, 0, 1] = 0.95 + 0.03 * np.cos(2 * phase)
    P[:, 1] = P[:, 0] + [0, 0.45, 0]
    P[:, 9] = P[:, 1] + [0, 0.08, 0]
    P[:, 2] = P[:, 1] + [0.02, 0.3, 0]
    for side, hip, start in ((0.1, 3, 0.0), (-0.1, 6, np.pi)):
        swing = 0.5 * np.sin(phase + start)
        bend = 0.5 * np.maximum(np.sin(phase + start + 1.2), 0)
        P[:, hip] = P[:, 0] + [0, 0, side]
        P[:, hip + 1] = P[:, hip] + limb(0.45, swing)
        P[:, hip + 2] = P[:, hip + 1] + limb(0.45, swing - bend)
    for hand, side, start in ((10, 0.25, np.pi), (11, -0.25, 0.0)):
        P[:, hand] = P[:, 9] + limb(0.6, 0.4 * np.sin(phase + start)) + [0, 0, side]
    return P.reshape(n, -1), PARENTS


clean, parents = generated_walk()
noisy = clean + NOISE * np.random.default_rng(0).standard_normal(clean.shape)


def removed(frames):
    """Share of the energy of the noise that is gone."""
    return 1 - np.sum((frames - clean) ** 2) / np.sum((noisy - clean) ** 2)


# %%
# Linear PCA gets the number of components that suits it best, which only the clean walk tells.

model = KernelPCA(6, kernel="rbf", gamma=4.0).fit(noisy)
found = model.denoise(noisy)
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
