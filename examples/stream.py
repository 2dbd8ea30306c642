"""A stream that changes half way: one model remembers everything, one forgets.

    python examples/stream.py --out pictures

Batches of digits 0 to 4 come first, then 5 to 9. Shown is the share of each new batch that the
model of the batches before it does not explain.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from mercer import StreamingKernelPCA

BATCH = 50
GAMMA = 0.0002
HALF_LIFE = 100  # rows


def errors_before_learning(model, batches):
    """Mean feature-space error of each batch under the model of those before it; k(x, x) = 1."""
    found = []
    for i, batch in enumerate(batches):
        if i:
            found.append(float(np.mean(model.reconstruction_error(batch))))
        model.partial_fit(batch)
    return found


def main(out: Path):
    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    X, digit = load_digits(return_X_y=True)
    rows = np.vstack([X[digit < 5][:850], X[digit >= 5][:850]])
    batches = np.split(rows, len(rows) // BATCH)
    figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    seen = BATCH * np.arange(1, len(batches))
    for name, forgetting, style in (
        ("remembers all", 1.0, "-"),
        (f"forgets half in {HALF_LIFE} rows", 0.5 ** (1 / HALF_LIFE), "--"),
    ):
        model = StreamingKernelPCA(
            5, kernel="rbf", gamma=GAMMA, budget=300, forgetting=forgetting, random_state=0
        )
        found = errors_before_learning(model, batches)
        print(f"{name}: mean error of the last ten batches {np.mean(found[-10:]):.3f}")
        print(
            f"  {len(model.landmarks_)} points, {100 * model.lost_share_:.1f} % outside their span"
        )
        ax.plot(seen, found, style, color="0.1", label=name)
    ax.axvline(850, color="0.6", lw=1)
    ax.set(xlabel="rows seen", ylabel="share not explained", ylim=(0, None))
    ax.legend(frameon=False)
    figure.savefig(out / "stream.png", dpi=90)
    print(out / "stream.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    main(parser.parse_args().out)
