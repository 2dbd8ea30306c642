"""The 15 nearest rows of every row: mercer's searches against scikit-learn's and faiss's.

    pip install faiss-cpu
    python benchmarks/neighbors.py --rows 10000 20000 40000

Rows lie in thirty groups of 50 columns. Seconds are of processor time on one thread; "found" is the
share of the true neighbors, of 1,000 rows.
"""

import argparse
import time

import faiss
import numpy as np
from sklearn.neighbors import NearestNeighbors

from mercer.compute import make_engine
from mercer.spectral.neighbors import nearest, neighbors_of_all

NEIGHBORS, COLUMNS, LOOKED_AT = 15, 50, 1000


def rows(n):
    rng = np.random.default_rng(0)
    centers = 2 * rng.standard_normal((30, COLUMNS))
    return centers[rng.integers(0, 30, n)] + rng.standard_normal((n, COLUMNS))


def flat(X):
    index = faiss.IndexFlatL2(X.shape[1])
    index.add(X.astype(np.float32))
    return index.search(X.astype(np.float32), NEIGHBORS)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 20_000, 40_000])
    parser.add_argument("--only-index", action="store_true", help="leave exact searches out")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    engine = make_engine(memory=500 * 10**6, threads=1)
    peer = NearestNeighbors(n_neighbors=NEIGHBORS, n_jobs=1)
    searches = {
        "scikit-learn": lambda X: peer.fit(X).kneighbors(X)[1],
        "faiss, flat": flat,
        "mercer, exact": lambda X: neighbors_of_all(X, NEIGHBORS, engine, "exact")[0],
        "mercer, index": lambda X: neighbors_of_all(X, NEIGHBORS, engine, "approximate")[0],
    }
    neighbors_of_all(rows(300), NEIGHBORS, engine, "exact")  # compiles
    for n in options.rows:
        X = rows(n)
        true = nearest(X[:LOOKED_AT], X, NEIGHBORS, engine)[0]
        for name, search in searches.items():
            if options.only_index and name != "mercer, index":
                continue
            start = time.process_time()
            index = search(X)
            seconds = time.process_time() - start
            pairs = zip(true, index[:LOOKED_AT], strict=True)
            found = np.mean([np.isin(a, b).mean() for a, b in pairs])
            print(f"{n:8,} {name:14} {seconds:7.2f} s  found {found:.4f}", flush=True)


if __name__ == "__main__":
    main()
