"""
A million pixels by color
=========================

Every pixel is a row of three columns: red, green and blue. Spectral clustering asks which colors
are linked by a chain of similar ones. On a Fourier grid it needs no landmarks and no matrix of
pixels by pixels: two fast transforms of all pixels, and an eigenproblem whose size does not
depend on their number.
"""

import time

import numpy as np
from matplotlib import pyplot as plt
from scipy.ndimage import zoom
from sklearn.datasets import load_sample_image

# needs: finufft
from mercer import SpectralClustering
from mercer.bases import FourierGrid

photograph = load_sample_image("flower.jpg") / 255.0
photograph = np.clip(zoom(photograph, (2, 2, 1), order=1), 0, 1)
pixels = photograph.reshape(-1, 3)

# %%
# The times are of the machine that built this page. k-means on the million rows of the embedding
# takes most of it; the eigenvectors themselves take seconds.

model = SpectralClustering(
    6, gamma=40.0, basis=FourierGrid(tol=1e-5), n_init=1, random_state=0, memory="2GB"
)
start = time.perf_counter()
labels = model.fit_predict(pixels)
print(f"{len(pixels):,} pixels in {time.perf_counter() - start:.1f} s")
print(f"{model.map_.basis.size:,} Fourier features, eigenvalues {model.eigenvalues_.round(4)}")

# %%
# Each cluster in its mean color, and below where each of them is.

counts = np.bincount(labels, minlength=6)
means = np.stack([np.bincount(labels, column, 6) / counts for column in pixels.T], axis=1)
order = np.argsort(-counts)
shape = photograph.shape[:2]

figure = plt.figure(figsize=(9, 4.9), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=(2.1, 1))
for ax, image, title in zip(
    above.subplots(1, 2),
    (photograph, means[labels].reshape(photograph.shape)),
    ("a million pixels", "six clusters of color"),
    strict=True,
):
    ax.imshow(image)
    ax.set_title(title, fontsize="medium")
    ax.axis("off")
for ax, k in zip(below.subplots(1, 6), order, strict=True):
    here = (labels == k).reshape(shape)[..., None]
    ax.imshow(np.where(here, photograph, 1.0))
    ax.set_title(f"{counts[k] / len(labels):.0%}", fontsize="small")
    ax.axis("off")

plt.show()
