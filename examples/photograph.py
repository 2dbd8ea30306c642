"""
A photograph, and when not to use a kernel
==========================================

Patches of a noisy photograph are rows; their leading components are the photograph and the rest
is noise. The linear kernel does better here than the Gaussian one, as on every photograph we
tried: use it, and see :doc:`/denoising` for the numbers.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_sample_image

from mercer import PatchDenoiser
from mercer.metrics import snr

NOISE = 20.0  # gray values of 255

clean = load_sample_image("china.jpg")[80:208, 200:360].mean(axis=2)
noisy = clean + NOISE * np.random.default_rng(0).standard_normal(clean.shape)
linear = PatchDenoiser(random_state=0).fit(noisy).denoise(noisy)
kernel = PatchDenoiser(7, 2, kernel="rbf", random_state=0).fit(noisy).denoise(noisy)

# %%
# The signal-to-noise ratio in decibels; more is better.

figure, axes = plt.subplots(2, 2, figsize=(8, 6.6), layout="constrained")
images = {"clean": clean, "noisy": noisy, "linear": linear, "Gaussian kernel": kernel}
for ax, (name, image) in zip(axes.flat, images.items(), strict=True):
    title = name if image is clean else f"{name}: {snr(clean, image):.1f} dB"
    ax.imshow(image, cmap="gray", vmin=0, vmax=255)
    ax.set_title(title, fontsize="medium")
    ax.axis("off")
    print(title)

plt.show()
