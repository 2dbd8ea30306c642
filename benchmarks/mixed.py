"""The Gower kernel against the package `gower`: the same distances, and time.

    pip install gower pandas
    python benchmarks/mixed.py [--rows 1000]

A table of six columns of numbers and four of categories. Seconds are of processor time, one
thread. The package fills the n x n matrix and stops there; the last line is a whole fit of kernel
PCA, whose memory is a parameter.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd

from mercer import KernelPCA

KINDS = [False] * 6 + [True] * 4


def table(n):
    """Drawn columns of both kinds."""
    rng = np.random.default_rng(0)
    numbers = {f"x{i}": rng.normal(size=n) * 10.0**i for i in range(6)}
    labels = np.array(list("abcdef"), dtype=object)
    return pd.DataFrame(numbers | {f"c{i}": labels[rng.integers(0, 6, n)] for i in range(4)})


def measured(work):
    """The result and processor seconds; the first run compiles, the second counts."""
    work()
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def main():
    """Print the comparison."""
    import gower

    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1000)
    X = table(parser.parse_args().rows)
    model = KernelPCA(10, kernel="gower").fit(X)
    rows = model.X_fit_
    theirs, one = measured(lambda: gower.gower_matrix(X, cat_features=KINDS))
    ours, two = measured(lambda: 1 - model.kernel_(rows))
    _, three = measured(lambda: KernelPCA(10, kernel="gower", n_jobs=1).fit(X))
    print(f"{len(X)} rows, 6 numbers and 4 categories; largest difference of distances ", end="")
    print(f"{np.abs(ours - theirs).max():.1e}")
    for name, seconds in {
        "gower.gower_matrix": one,
        "1 - Gower()(X)": two,
        "KernelPCA(10, kernel='gower').fit": three,
    }.items():
        print(f"  {name:36s} {seconds:6.3f} s")


if __name__ == "__main__":
    main()
