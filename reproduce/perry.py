"""Efficient non-linear analysis of large data sets (Perry, Elhabian, Whitaker; slides).

Projection error against dictionary size on the slides' data: a Gaussian signal in noise at three
ratios, and the cloud, forest cover and solar flare sets of UCI. Every method chooses within the
same first-stage subset, kernel width the mean distance, as the slides say.
"""

import numpy as np
from _experiment import MEASURED, Experiment, Finding, judged, numbers, pick, plotting
from papers_data import load_cloud, load_covtype, load_solar_flare
from scipy.spatial.distance import pdist
from sklearn.linear_model import lars_path

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


def draw(path, errors, sizes, label="atoms"):
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
        ax.set(title=name, xlabel=label)
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
    against_uniform = wins(errors, "joint lasso", "uniform")
    others = ("lasso each", "uniform", "Ouimet", "Tipping", "Smola, gain on 59")
    shares = [wins(errors, "joint lasso", other) for other in others]
    return [
        Finding("error over the best of its rank, all methods", "curves", table, MEASURED, errors),
        Finding(
            "greedy methods need larger dictionaries than a joint lasso",
            "yes",
            f"the lasso is better in {share:.0f} % of cells",
            judged(lambda percent: percent > 50, share, against_uniform, True),
            share,
            "better in more than half of the cells",
            f"against uniform it is in {against_uniform:.0f} %",
        ),
        Finding(
            f"a joint lasso against {', '.join(others)}",
            "curves; the text states no order",
            f"better in {numbers(shares, '.0f')} % of cells",
            MEASURED,
            dict(zip(others, shares, strict=True)),
        ),
    ]


def first_stage(size, out):
    """Atoms from uniform subsets of growing size, judged on all rows."""
    n, atoms, stages, seeds = pick(
        size,
        (120, 5, (10, 60, 120), 1),
        (800, 40, (40, 100, 400, 800), 1),
        (1600, 40, (40, 100, 200, 400, 800, 1600), 3),
    )
    methods = {"joint lasso": GroupLasso(), "full greedy": FullGreedy(), "uniform": Uniform()}
    errors: dict = {}
    for name, X in data_sets(n, size == "smoke").items():
        kernel = RBF(gamma=0.5 / np.mean(pdist(X)) ** 2)
        errors[name] = {method: [] for method in methods}
        for stage in stages:
            for method, selector in methods.items():
                found = []
                for seed in range(seeds):
                    rng = np.random.default_rng(seed)
                    rows = X[rng.permutation(len(X))[:stage]]
                    chosen = selector.select(kernel, rows, min(atoms, len(rows)), rng)
                    found.append(projection_error(kernel, X, rows[chosen]))
                errors[name][method].append(float(np.mean(found)))
    draw(out / "perry-first-stage.png", errors, stages, "rows of the first stage")

    def over_all(method, place):
        ratios = [rows[method][place] / rows[method][-1] for rows in errors.values()]
        return float(np.exp(np.mean(np.log(ratios))))

    quarter = [place for place, stage in enumerate(stages) if stage <= n // 4][-1]
    growth = {method: [over_all(method, k) for k in range(len(stages))] for method in methods}
    return [
        Finding(
            "a first stage that is much smaller than the data is large enough for the second",
            "large enough to capture the statistics of the full data set",
            f"error of {atoms} atoms by the joint lasso, over that from all {n} rows, from first "
            f"stages of {', '.join(map(str, stages))}: {numbers(growth['joint lasso'], '.2f')}; "
            f"full greedy {numbers(growth['full greedy'], '.2f')}",
            judged(
                lambda ratio: ratio <= 1.1,
                growth["joint lasso"][quarter],
                growth["joint lasso"][0],
            ),
            errors,
            f"at {stages[quarter]} rows at most 1.1 times the error from all",
            f"a first stage of {stages[0]} rows, as many as atoms: {growth['joint lasso'][0]:.2f}",
        ),
        elastic_net(size),
    ]


def elastic_net(size):
    """The atoms of Zou's elastic net beside those of the lasso, component by component."""
    X = data_sets(pick(size, 60, 300, 400), True)["signal-to-noise 1"]
    G = RBF(gamma=0.5 / np.mean(pdist(X)) ** 2)(X)
    values, U = np.linalg.eigh(G)
    ridges, same = (1e-8, 1e-4, 1e-2, 1.0), []
    for ridge in ridges:
        taken = [
            [
                first_atoms(np.vstack([G, np.sqrt(share) * values[-1] * np.eye(len(G))]), y)
                for share in (0.0, ridge)
            ]
            for y in (G @ U[:, -10:] / np.sqrt(values[-10:])).T
        ]
        same.append(np.mean([len(a & b) / len(a) for a, b in taken]))
    return Finding(
        "the elastic net of Zou et al. chooses the same atoms as the lasso",
        "the same in the kernel case",
        f"{numbers(100 * np.array(same), '.0f')} % of the first ten of ten components, with "
        f"ridges of {numbers(ridges, 'g')} times the first eigenvalue squared",
        MEASURED,
        dict(zip(map(str, ridges), map(float, same), strict=True)),
    )


def first_atoms(A, y, count=10):
    """The columns that least angle regression takes first."""
    y = np.concatenate([y, np.zeros(len(A) - len(y))])
    return set(lars_path(A, y, method="lasso", max_iter=count)[1][:count])


EXPERIMENTS = [
    Experiment(
        "perry-projection-error",
        "perry",
        "Projection error against dictionary size",
        "With S free the stated minimum is never attained (shrink W and S together), so S = L. "
        "LARS takes columns of unit length unless raw ones are named. The kernel is exp(-d²/(2 "
        "s²)), s the mean distance; the slides' exponent lacks its sign.",
        study,
    ),
    Experiment(
        "perry-first-stage",
        "perry",
        "The size of the first stage",
        "The slides name the two stages and show no numbers on the size of the first.",
        first_stage,
    ),
]
