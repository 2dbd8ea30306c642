"""`PatchDenoiser` against non-local means by image and noise level: the cells of docs/denoising.md.

Seven images (camera, coins, brick, moon and text of scikit-image, china of scikit-learn, and Lena
from the folder MERCER_DATA) with Gaussian noise of 5, 10, 20 and 40 of 255, one seed.
`PatchDenoiser()` estimates the noise; non-local means of scikit-image are given it, with h = .8
sigma, and the better of patch 7, distance 11 and patch 5, distance 6 counts. Signal-to-noise ratios
in dB, and processor time as a multiple of that of the former.

    python benchmarks/nlm.py [--images camera coins] [--noise 10 20] [--side 512]

Needs scikit-image 0.26 (pip install scikit-image pooch).
"""

import argparse
import time
from pathlib import Path

import numpy as np
from _harness import machine, print_table, write_json
from _papers import papers_data

from mercer import PatchDenoiser
from mercer._packages import has
from mercer.metrics import snr

IMAGES = ("lena512", "camera", "china", "coins", "brick", "moon", "text")
LEVELS = (5, 10, 20, 40)
# Patch and search distance of non-local means.
SETTINGS = ((7, 11), (5, 6))


def image(name: str, side: int) -> np.ndarray:
    """A gray image between 0 and 1, its middle where it is larger than `side`."""
    clean = papers_data.load_test_image(name).data
    rows, columns = (slice((k - min(k, side)) // 2, (k + min(k, side)) // 2) for k in clean.shape)
    return clean[rows, columns]


def cell(clean: np.ndarray, sigma: float) -> dict:
    """Signal-to-noise ratios of both, and seconds."""
    from skimage.restoration import denoise_nl_means

    noisy = clean + sigma * np.random.default_rng(0).standard_normal(clean.shape)
    ours, seconds = timed(lambda: PatchDenoiser(random_state=0).fit(noisy).denoise(noisy))
    found = {"noisy": snr(clean, noisy), "ours": snr(clean, ours), "seconds": seconds}
    for patch, distance in SETTINGS:
        options = {"h": 0.8 * sigma, "sigma": sigma, "patch_size": patch}
        theirs, seconds = timed(
            lambda o=options, d=distance: denoise_nl_means(noisy, patch_distance=d, **o)
        )
        found |= {f"nlm {patch}, {distance}": snr(clean, theirs), f"seconds {patch}": seconds}
    return found


def timed(work) -> tuple[np.ndarray, float]:
    """What it returns, and its processor time."""
    start = time.process_time()
    return work(), time.process_time() - start


def main() -> None:
    """Print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", nargs="+", choices=IMAGES, default=IMAGES)
    parser.add_argument("--noise", nargs="+", type=float, default=LEVELS, help="of 255")
    parser.add_argument("--side", type=int, default=512, help="largest side of an image")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    if not has("skimage"):
        parser.error("scikit-image is needed: pip install scikit-image pooch")
    table, results = [], {}
    for name in options.images:
        clean = image(name, options.side)
        for level in options.noise:
            found = results[f"{name}, {level:g}"] = cell(clean, level / 255)
            means = [found[f"nlm {patch}, {distance}"] for patch, distance in SETTINGS]
            numbers = found["noisy"], found["ours"], *means, found["ours"] - max(means)
            ratio = found["seconds"] / found[f"seconds {SETTINGS[0][0]}"]
            table.append([name, f"{level:g}", *(f"{x:.2f}" for x in numbers), f"{ratio:.1f}"])
    heads = [f"means {patch}, {distance}" for patch, distance in SETTINGS]
    ahead = sum(float(row[-2]) > 0 for row in table)
    print_table(
        f"PatchDenoiser ahead in {ahead} of {len(table)} cells, dB",
        ["image", "noise", "noisy", "PatchDenoiser", *heads, "ahead by", "times the seconds"],
        table,
    )
    write_json(options.out / "nlm.json", {"machine": machine(), "results": results})


if __name__ == "__main__":
    main()
