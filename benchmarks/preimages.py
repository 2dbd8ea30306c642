"""Which pre-image when: fixed point, ridge and linear PCA over noise and components, on digits.

Errors are means of squares for each pixel, of rows that the fit has not seen unless it says
"training". Noise is a share of the standard deviation of the pixels. "denoise" is the published
way, ``noise=np.inf``; "estimated" and "known" move rows only as far as pays, and
"linear, Wiener" the rival
that costs least: all components of linear PCA, shrunk by the noise. Denoisers of images, among them
BM3D and scikit-image's: ``python reproduce/denoising.py --only images``.

    python benchmarks/preimages.py [--usps] [--out preimages.json]

`--usps` takes USPS (see papers_data) and not scikit-learn's digits.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from _papers import papers_data, wiener
from sklearn.datasets import load_digits

from mercer import KernelPCA

NOISES, RANKS = (0.0, 0.1, 0.3, 0.5, 1.0), (16, 64, 256)


def rows(usps):
    """Rows to train and to test."""
    if usps:
        return papers_data.load_usps().data[:2000], papers_data.load_usps(subset="test").data[:300]
    X = load_digits().data
    return X[:1200], X[1200:1500]


def mse(A, B):
    """Mean of squares."""
    return float(np.mean(np.square(np.asarray(A, dtype=float) - B)))


def case(X, clean, share, model, rng):
    """One line of the table."""
    std = share * float(np.sqrt(X.var(axis=0).mean()))
    noisy = clean + std * rng.standard_normal(clean.shape)
    found = {"noise": share, "components": model.n_components, "nothing": mse(noisy, clean)}
    for name in ("fixed-point", "ridge"):
        model.preimage = name
        found[f"inverse, {name}"] = mse(model.inverse_transform(model.transform(noisy)), clean)
        found[f"denoise, {name}"] = mse(model.denoise(noisy, noise=np.inf), clean)
    model.preimage = "auto"
    found["estimated"] = mse(model.denoise(noisy), clean)
    found["known"] = mse(model.denoise(noisy, noise=std), clean)
    found["linear, Wiener"] = mse(wiener(X, noisy), clean)
    return found


def round_trips(X, clean, model):
    """Errors and milliseconds a row, there and back without noise."""
    found = {}
    for name in ("fixed-point", "ridge"):
        model.preimage = name
        S = model.transform(clean)
        start = time.perf_counter()
        model.inverse_transform(S)
        first, start = time.perf_counter() - start, time.perf_counter()
        fresh = mse(model.inverse_transform(S), clean)
        again = time.perf_counter() - start
        own = mse(model.inverse_transform(model.transform(X[:300])), X[:300])
        found[name] = {
            "new rows": fresh,
            "training rows": own,
            "first call, ms a row": 1e3 * first / len(S),
            "later, ms a row": 1e3 * again / len(S),
        }
    return found


def main():
    """Print the table."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--usps", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    X, clean = rows(options.usps)
    rng, table, trips = np.random.default_rng(0), [], {}
    for r in RANKS:
        model = KernelPCA(r, kernel="rbf", gamma="median").fit(X)
        table += [case(X, clean, share, model, rng) for share in NOISES]
        trips[r] = round_trips(X, clean, model)
    print("| " + " | ".join(table[0]) + " |\n|" + "---|" * len(table[0]))
    for line in table:
        print("| " + " | ".join(f"{v:.3g}" for v in line.values()) + " |")
    for r, found in trips.items():
        for name, facts in found.items():
            print(r, name, ", ".join(f"{k} {v:.3g}" for k, v in facts.items()))
    if options.out:
        options.out.write_text(json.dumps({"noise": table, "round trips": trips}, indent=1))


if __name__ == "__main__":
    main()
