"""
Digits: a first look
====================

The 1,797 digits that come with scikit-learn, 8 x 8 pixels each: fit, plot, read the certificate,
walk along a component, save. The script has the code of :doc:`the ten-minute start </start>`.
"""

import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

import mercer
from mercer import KernelPCA, plot
from mercer.bases import Landmarks

X, digit = load_digits(return_X_y=True)
model = KernelPCA(16, kernel="rbf", gamma="median").fit(X)
plot.scores(model.transform(X), digit).set_title("1,797 digits by two components")

# %%
# The certificate bounds the error of a fit. This fit is exact:

print(model.certificate_)

# %%
# Landmarks are for many rows: 200 chosen digits stand for all. They cost little, and the
# certificate bounds the loss. The true eigenvalues lie within the bars; those of the exact
# fit are too short to see.

few = KernelPCA(16, kernel="rbf", gamma="median", basis=Landmarks(200), random_state=0).fit(X)
print(few.certificate_)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
plot.spectrum(model, ax=axes[0]).set_title("exact")
plot.spectrum(few, ax=axes[1]).set_title("200 landmarks")

# %%
# What does a component mean? Each point of a walk along it has a pre-image, here an image.

plot.preimages(model, component=0, images=(8, 8))

# %%

plot.preimages(model, component=1, images=(8, 8))

# %%
# A model is saved as one file without any code in it, and gives the same scores when it is
# loaded.

with tempfile.TemporaryDirectory() as folder:
    few.save(Path(folder) / "digits.mercer")
    again = mercer.load(Path(folder) / "digits.mercer")
print("the same after loading:", np.array_equal(again.transform(X), few.transform(X)))

plt.show()
