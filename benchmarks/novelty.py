"""Novelty detection beside scikit-learn's detectors: ranking, false alarms, outliers in training.

Normal rows train; the others of the set are novel. With "10 % outliers" every tenth training row is
a novel one. False alarms are the share of fresh normal rows called novel, over many draws.

    python benchmarks/novelty.py [--draws 5] [--out novelty.json]
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from mercer import NoveltyDetector

OUTLIERS, HALF = 0.1, 0.5


def detectors():
    """What is compared, with the defaults of each."""
    return {
        "NoveltyDetector": NoveltyDetector(random_state=0),
        "without trimming": NoveltyDetector(random_state=0, outliers=0.0),
        "OneClassSVM": OneClassSVM(),
        "IsolationForest": IsolationForest(random_state=0),
        "LocalOutlierFactor": LocalOutlierFactor(novelty=True),
    }


def sets(rng):
    """Training rows, fresh normal rows and novel rows of every set."""
    normal = rng.standard_normal
    yield "5 columns, novel cluster", normal((300, 5)), normal((500, 5)), cluster(rng, 600, 5)
    yield "20 columns, novel cluster", normal((300, 20)), normal((500, 20)), cluster(rng, 600, 20)
    yield "ring, novel around it", ring(rng, 300), ring(rng, 500), rng.uniform(-2, 2, (600, 2))
    yield "ring, novel in its middle", ring(rng, 300), ring(rng, 500), 0.1 * normal((600, 2))
    X, y = load_digits(return_X_y=True)
    for own, other in ((0, 1), (3, 8), (5, 9)):
        i, j = (rng.permutation(np.flatnonzero(y == k)) for k in (own, other))
        yield f"digit {own}, novel {other}", X[i[:120]], X[i[120:]], X[j]
    X, y = load_breast_cancer(return_X_y=True)
    i, j = (rng.permutation(np.flatnonzero(y == k)) for k in (1, 0))
    scale = StandardScaler().fit(X[i[:200]]).transform
    yield "cancer, benign normal", scale(X[i[:200]]), scale(X[i[200:]]), scale(X[j])


def cluster(rng, n, d):
    """Rows close together, six standard deviations from the normal ones."""
    return 6 / np.sqrt(d) + 0.5 * rng.standard_normal((n, d))


def ring(rng, n):
    """Rows around a circle."""
    t = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(t), np.sin(t)]) + 0.07 * rng.standard_normal((n, 2))


def areas(draws):
    """Mean areas under the curve: set -> share of outliers -> detector."""
    found: dict = {}
    for seed in range(draws):
        for name, train, fresh, novel in sets(np.random.default_rng(seed)):
            test, train_novel = np.array_split(novel, [int(HALF * len(novel))])
            for share in (0.0, OUTLIERS):
                k = int(share * len(train))
                rows = np.vstack([train[k:], train_novel[:k]])
                for who, detector in detectors().items():
                    S = detector.fit(rows).score_samples(np.vstack([fresh, test]))
                    area = roc_auc_score(np.repeat([1, 0], [len(fresh), len(test)]), S)
                    found.setdefault((name, share), {}).setdefault(who, []).append(area)
    return {key: {who: float(np.mean(a)) for who, a in row.items()} for key, row in found.items()}


def alarms(draws, n=200, asked=0.05):
    """The mean share of fresh normal rows called novel."""
    shares = []
    for seed in range(draws):
        rng = np.random.default_rng([7, seed])
        detector = NoveltyDetector(false_alarms=asked, random_state=seed)
        detector.fit(rng.standard_normal((n, 5)))
        shares.append(np.mean(detector.predict(rng.standard_normal((2000, 5))) < 0))
    return float(np.mean(shares)), float(np.std(shares) / np.sqrt(draws))


def main():
    """Print two tables and write them."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    table = areas(options.draws)
    print("| novel rows | outliers in training | " + " | ".join(detectors()) + " |")
    print("|---|---|" + "---|" * len(detectors()))
    for (name, share), row in table.items():
        print(f"| {name} | {share:.0%} | " + " | ".join(f"{a:.3f}" for a in row.values()) + " |")
    rates = {n: alarms(20 * options.draws, n) for n in (50, 200, 1000)}
    for n, (rate, error) in rates.items():
        print(f"false alarms, 5 % asked for, {n} rows: {rate:.3f} +- {error:.3f}")
    if options.out:
        rows = [{"set": k[0], "outliers": k[1], **row} for k, row in table.items()]
        options.out.write_text(json.dumps({"areas": rows, "false_alarms": rates}, indent=1))


if __name__ == "__main__":
    main()
