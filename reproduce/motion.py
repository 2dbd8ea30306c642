"""A walk, the walk with noise, and the walk denoised by kernel PCA, as an animation.

    python reproduce/motion.py --out results [--noise 0.03] [--html] [--generated]

Frames are rows of joint coordinates in meters; kernel PCA is fitted to the noisy frames themselves
(the published setting: sigma = sqrt 1.5, 25 components). Real walks come from
mercer.datasets.load_mocap where its files are found; else a walk is generated.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np

from mercer import KernelPCA
from mercer.datasets import load_mocap

# A body of twelve joints for the generated walk: name, parent, height or offset at rest.
JOINTS = ["root", "chest", "head", "hip_l", "knee_l", "foot_l", "hip_r", "knee_r", "foot_r"]
JOINTS += ["shoulder", "hand_l", "hand_r"]
PARENTS = [-1, 0, 1, 0, 3, 4, 0, 6, 7, 1, 9, 9]


def generated_walk(n=240, rate=60.0):
    """Joint positions (n, 36) of a figure that walks along x, y up."""
    t = np.arange(n) / rate
    phase = 2 * np.pi * 0.9 * t
    P = np.zeros((n, len(JOINTS), 3))
    P[:, :, 0] += (1.3 * t)[:, None]
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
    return P.reshape(n, -1), np.array(PARENTS), rate


def limb(length, angle):
    """A limb that hangs down, turned in the plane of the walk."""
    return length * np.column_stack([np.sin(angle), -np.cos(angle), np.zeros_like(angle)])


def load(generated):
    """Frames, the joint each joint hangs on, and frames a second."""
    if not generated:
        try:
            walk = load_mocap()
            return walk.data, walk.parents, walk.frame_rate
        except FileNotFoundError as error:
            print(f"{error}\nGenerating a walk instead.")
    return generated_walk()


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
    found = model.denoise(noisy)
    share = 1 - np.mean((found - clean) ** 2) / np.mean((noisy - clean) ** 2)
    print(f"{len(clean)} frames, noise {100 * options.noise:g} cm: {100 * share:.1f} % removed")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / ("walk.html" if options.html else "walk.gif")
    frames = {"original": clean, "noisy": noisy, "denoised": found}
    animate(frames, parents, rate, path, every=max(1, round(rate / 20)))
    print(f"animation: {path}")


if __name__ == "__main__":
    main()
