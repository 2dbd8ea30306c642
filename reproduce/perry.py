"""Efficient non-linear analysis of large data sets (Perry, Elhabian, Whitaker; slides).

Projection error against dictionary size on the slides' data: a Gaussian signal in noise at three
ratios, and the cloud, forest cover and solar flare sets of UCI. Every method chooses within the
same first-stage subset, kernel width the mean distance, as the slides say.
"""

import numpy as np
from _experiment import MEASURED, Experiment, Finding, judged, numbers, pick, plotting
from papers_data import load_cloud, load_covtype, load_solar_flare
from scipy.spatial.distance import pdist

from mercer.datasets import make_signal_in_noise
from mercer.kernels import RBF
from mercer.selectors import (
    ComponentLasso,
    FullGreedy,
    GroupLasso,
    NormWeighted,
    Novelty,
    PreimageDictionary,
    SparseBayes,
    SparseGreedy,
    Uniform,
)

METHODS = {
    "joint lasso": GroupLasso(),
    "joint lasso, raw columns": GroupLasso(unit=False),
    "joint lasso, convex": GroupLasso(unit=False, solver="convex"),
    "lasso each": ComponentLasso(),
    "uniform": Uniform(),
    "norms, with replacement": NormWeighted(replace=True),
    "Smola, gain on 59": SparseGreedy(gain="subset"),
    "Ouimet": Novelty(),
    "Tipping": SparseBayes(),
    "Tipping, fixed point": SparseBayes(solver="fixed-point", max_iter=200),
    "full greedy": FullGreedy(),
    "pre-images, online": PreimageDictionary(),
}
# Methods whose choice depends on the seed.
DRAWN = {"uniform", "norms, with replacement", "Smola, gain on 59"}


def data_sets(count, generated_only):
    """Name -> rows, the first stage of every method: a uniform subset."""
    rng = np.random.default_rng(0)
    sets = {
        f"signal-to-noise {snr:g}": make_signal_in_noise(count, snr, 0).data for snr in (0.1, 1, 10)
    }
    if not generated_only:
        sets["cloud"] = load_cloud().data
        sets["forest cover"] = load_covtype().data
        sets["solar flare"] = load_solar_flare().data
    chosen = {}
    for name, X in sets.items():
        X = np.asarray(X, dtype=float)
        chosen[name] = X[np.sort(rng.permutation(len(X))[:count])]
    return chosen


def projection_error(kernel, X, Z):
    """tr R / tr K for the span of Z."""
    K = kernel(X, Z)
    inside = np.sum(K @ np.linalg.pinv(kernel(Z, Z), rcond=1e-12, hermitian=True) * K)
    return float(1 - inside / len(X))


def study(size, out):
    count, sizes, seeds = pick(
        size, (80, (5,), 1), (400, (10, 20, 40), 1), (800, (10, 20, 40, 80), 3)
    )
    errors: dict = {}
    for name, X in data_sets(count, size == "smoke").items():
        kernel = RBF(gamma=0.5 / np.mean(pdist(X)) ** 2)
        values = np.linalg.eigvalsh(kernel(X))[::-1]
        best = [float(values[d:].sum() / values.sum()) for d in sizes]
        errors[name] = {"best": best}
        for method, selector in METHODS.items():
            rows = []
            for seed in range(seeds if method in DRAWN else 1):
                row = []
                for d in sizes:
                    chosen = selector.select(kernel, X, d, np.random.default_rng(seed))
                    Z = chosen if selector.returns_points else X[chosen]
                    row.append(projection_error(kernel, X, Z))
                rows.append(row)
            errors[name][method] = np.mean(rows, axis=0).tolist()
    draw(out / "perry-projection-error.png", errors, sizes)
    return findings(errors)


def draw(path, errors, sizes):
    plt = plotting()
    columns = min(len(errors), 3)
    shape = (-(-len(errors) // columns), columns)
    size = (3.4 * shape[1] + 2, 3.2 * shape[0])
    figure, axes = plt.subplots(*shape, figsize=size, squeeze=False, layout="constrained")
    for ax, (name, rows) in zip(axes.flat, errors.items(), strict=True):
        for number, (method, row) in enumerate(rows.items()):
            # Colors repeat after ten, and then lines are dashed.
            style = {"color": f"C{number % 10}", "ls": "-" if number < 10 else "--"}
            style = {"color": "k", "ls": ":"} if method == "best" else style
            ax.semilogy(sizes, row, label=method, **style)
        ax.set(title=name, xlabel="atoms")
    for row in axes:
        row[0].set_ylabel("projection error")
    axes[0][-1].legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(path, dpi=100)
    plt.close(figure)


def over_best(errors, method):
    """Geometric mean of error over the best rank-d error, all sets and sizes."""
    ratios = [np.array(rows[method]) / np.array(rows["best"]) for rows in errors.values()]
    return float(np.exp(np.mean(np.log(np.concatenate(ratios)))))


def wins(errors, one, other):
    """Share of cells in which one method has the smaller error."""
    pairs = [
        (a, b) for rows in errors.values() for a, b in zip(rows[one], rows[other], strict=True)
    ]
    return 100 * float(np.mean([a < b for a, b in pairs]))


def findings(errors):
    means = {method: over_best(errors, method) for method in METHODS}
    table = ", ".join(f"{name} {means[name]:.2f}" for name in sorted(means, key=means.get))

    share = wins(errors, "joint lasso", "full greedy")
    others = ("lasso each", "uniform", "Ouimet", "Tipping", "Smola, gain on 59")
    shares = [wins(errors, "joint lasso", other) for other in others]
    return [
        Finding("error over the best of its rank, all methods", "curves", table, MEASURED, errors),
        Finding(
            "greedy methods need larger dictionaries than a joint lasso",
            "yes",
            f"the lasso is better in {share:.0f} % of cells",
            judged(share > 50),
            share,
        ),
        Finding(
            f"a joint lasso against {', '.join(others)}",
            "curves; the text states no order",
            f"better in {numbers(shares, '.0f')} % of cells",
            MEASURED,
            dict(zip(others, shares, strict=True)),
        ),
    ]


EXPERIMENTS = [
    Experiment(
        "perry-projection-error",
        "perry",
        "Projection error against dictionary size",
        "With S free the stated minimum is never attained (shrink W and S together), so S = L. "
        "LARS takes columns of unit length unless raw ones are named. The kernel is exp(-d²/(2 "
        "s²)), s the mean distance; the slides' exponent lacks its sign.",
        study,
    )
]
