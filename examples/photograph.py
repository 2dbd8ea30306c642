"""A photograph with noise, denoised by PCA of its patches, linear and with a Gaussian kernel.

python examples/photograph.py --out pictures
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_sample_image

from mercer import PatchDenoiser
from mercer.metrics import snr

NOISE = 20.0  # gray values of 255


def main(out: Path):
    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    clean = load_sample_image("china.jpg")[80:208, 200:360].mean(axis=2)
    noisy = clean + NOISE * np.random.default_rng(0).standard_normal(clean.shape)
    linear = PatchDenoiser(11, 1, kernel="linear", random_state=0).fit(noisy).denoise(noisy)
    kernel = PatchDenoiser(random_state=0).fit(noisy).denoise(noisy)
    figure, axes = plt.subplots(2, 2, figsize=(8, 6.6), layout="constrained")
    for ax, image, title in (
        (axes[0, 0], clean, "clean"),
        (axes[0, 1], noisy, "noisy"),
        (axes[1, 0], linear, "linear, 11 x 11"),
        (axes[1, 1], kernel, "Gaussian kernel, 7 x 7"),
    ):
        if image is not clean:
            title += f": {snr(clean, image):.1f} dB"
            print(title)
        ax.imshow(image, cmap="gray", vmin=0, vmax=255)
        ax.set_title(title, fontsize="medium")
        ax.axis("off")
    figure.savefig(out / "photograph.png", dpi=90)
    print(out / "photograph.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    main(parser.parse_args().out)
