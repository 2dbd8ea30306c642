"""A walk, the walk with noise, and the walk denoised by kernel PCA, as an animation.

    python reproduce/motion.py --out results [--noise 0.03] [--html] [--generated]

Frames are rows of joint coordinates in meters; kernel PCA is fitted to the noisy frames themselves
(the published setting: sigma = sqrt 1.5, 25 components). Real walks come from
papers_data.load_mocap where its files are found; else a walk is generated.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from papers_data import load_mocap

from mercer import KernelPCA
from mercer.datasets import make_walk


def load(generated):
    """Frames, the joint each joint hangs on, and frames a second."""
    walk = None if generated else found_walk()
    walk = walk or make_walk(speed=1.3)
    return walk.data, walk.parents, walk.frame_rate


def found_walk():
    """A walk of the motion capture database, or None where it cannot be found."""
    try:
        return load_mocap()
    except FileNotFoundError as error:
        print(f"{error}\nGenerating a walk instead.")
        return None


def animate(frames, parents, rate, path, every):
    """Skeletons side by side, seen from the side, into a GIF or an HTML page."""
    from matplotlib import pyplot as plt
    from matplotlib.animation import FuncAnimation, HTMLWriter, PillowWriter

    bones = [(j, p) for j, p in enumerate(parents) if p >= 0]
    walks = {name: walk.reshape(len(walk), -1, 3) for name, walk in frames.items()}
    first = next(iter(walks.values()))
    figure, axes = plt.subplots(1, len(walks), figsize=(9, 4), layout="constrained")
    low, high = first[..., 1].min() - 0.15, first[..., 1].max() + 0.15
    # The view follows the root along the longer way of the walk.
    along = 0 if np.ptp(first[:, 0, 0]) > np.ptp(first[:, 0, 2]) else 2
    drawn = []
    for ax, name in zip(axes, walks, strict=True):
        ax.set(title=name, xlim=(-0.9, 0.9), ylim=(low, high), aspect="equal", xticks=[], yticks=[])
        drawn.append([ax.plot([], [], "o-", color="0.1", ms=2.5, lw=1.5)[0] for _ in bones])

    def show(i):
        center = first[i, 0, along]
        for lines, walk in zip(drawn, walks.values(), strict=True):
            for line, (j, p) in zip(lines, bones, strict=True):
                line.set_data(walk[i, [j, p], along] - center, walk[i, [j, p], 1])
        return [line for lines in drawn for line in lines]

    fps = rate / every
    movie = FuncAnimation(figure, show, frames=range(0, len(first), every), blit=False)
    html = path.suffix == ".html"
    writer = HTMLWriter(fps=fps, embed_frames=True) if html else PillowWriter(fps=min(fps, 30))
    movie.save(path, writer=writer, dpi=80)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--noise", type=float, default=0.03, help="meters, default 0.03")
    parser.add_argument("--html", action="store_true", help="an HTML page rather than a GIF")
    parser.add_argument("--frames", type=int, help="take the first so many (default: all)")
    parser.add_argument("--generated", action="store_true", help="do not look for real data")
    options = parser.parse_args()
    matplotlib.use("Agg")
    clean, parents, rate = load(options.generated)
    clean = clean[: options.frames]
    noisy = clean + options.noise * np.random.default_rng(0).standard_normal(clean.shape)
    model = KernelPCA(25, kernel="rbf", gamma=1 / 3).fit(noisy)
    found = model.denoise(noisy, noise=np.inf)
    share = 1 - np.mean((found - clean) ** 2) / np.mean((noisy - clean) ** 2)
    print(f"{len(clean)} frames, noise {100 * options.noise:g} cm: {100 * share:.1f} % removed")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / ("walk.html" if options.html else "walk.gif")
    frames = {"original": clean, "noisy": noisy, "denoised": found}
    animate(frames, parents, rate, path, every=max(1, round(rate / 20)))
    print(f"animation: {path}")


if __name__ == "__main__":
    main()
