"""Covariance-free kernel PCA (Shi, Guo, Xue 2009): Tables 1 and 2, Figures 1 to 3."""

import numpy as np
from _experiment import MEASURED, Experiment, Finding, judged, numbers, pick, plotting
from gram_power import AMNESIC, COMPONENTS, PRINTED_1, PRINTED_2, centered, error, unit_rows
from papers_data import load_usps
from scipy.sparse.linalg import eigsh

from mercer import KernelPCA
from mercer.kernels import RBF, Polynomial
from mercer.operators import DenseOperator
from mercer.solvers import GramPower

PRINTED_G = (5.556, 4.95, 0.247)
CENTERS = np.repeat([[-0.5, -0.2], [0.0, 0.6], [0.5, 0.0]], 30, axis=0)


def draw_toy(rng):
    """Ninety points of three clusters, in random order."""
    return CENTERS[rng.permutation(90)] + 0.1 * rng.standard_normal((90, 2))


def recursion(amnesic=0.0, passes=1):
    """The published algorithm and nothing else."""
    return GramPower(block=1, amnesic=amnesic, n_passes=passes, rotate=False)


def table_1(size, out):
    draws, passes = pick(size, (5, 3), (200, 50), (200, 200))
    readings = {
        "exp(-d²/0.1), centered": (10.0, True),
        "as printed, centered": (50.0, True),
        "exp(-d²/0.1), not centered": (10.0, False),
    }
    exact = {}
    for name, (gamma, center) in readings.items():
        rng, rows = np.random.default_rng(0), []
        for _ in range(draws):
            K = RBF(gamma=gamma)(draw_toy(rng))
            rows.append(np.linalg.eigvalsh(centered(K) if center else K)[::-1][:3])
        exact[name] = (np.mean(rows, axis=0), np.std(rows, axis=0))
    mean, spread = exact["exp(-d²/0.1), centered"]
    rng, own = np.random.default_rng(1), []
    for _ in range(min(draws, 20)):
        K = DenseOperator(centered(RBF(gamma=10.0)(draw_toy(rng))))
        own.append(recursion(2.0, passes).solve(K, 3, rng).values ** 2 / 90)
    words = "; ".join(f"{name}: {numbers(pair[0], '.2f')}" for name, pair in exact.items())
    return [
        Finding(
            "eigenvalues of K, one draw of the toy data",
            numbers(PRINTED_1, ".3f"),
            f"means of {draws} draws: {words}",
            judged(
                lambda pair: np.all(np.abs(pair[0] - PRINTED_1) <= 2 * pair[1]),
                (mean, spread),
                exact["as printed, centered"],
            ),
            {name: pair[0].tolist() for name, pair in exact.items()},
            "each within two standard deviations of a draw",
            "the kernel as printed is not",
        ),
        Finding(
            "eigenvalues λ_G of the recursion itself, `GramPower(block=1, rotate=False)`",
            numbers(PRINTED_G, ".3f"),
            f"{numbers(np.mean(own, axis=0), '.3f')}, means of {len(own)} draws, amnesic 2, "
            f"{passes} passes; λ_K²/90 is {numbers(mean**2 / 90, '.3f')}",
            MEASURED,
            np.mean(own, axis=0).tolist(),
        ),
    ]


def figure_1(size, out):
    """Contours of the first three components by the recursion and by LAPACK."""
    passes = pick(size, 2, 50, 50)
    X = draw_toy(np.random.default_rng(2))
    side = np.linspace(-1, 1, 40)
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(side, side)])
    models = {
        "recursion": KernelPCA(
            3, kernel=RBF(gamma=10.0), eigen_solver=recursion(2.0, passes), tol=1.0
        ),
        "as printed": KernelPCA(
            3, kernel=RBF(gamma=10.0), eigen_solver=recursion(0.0, passes), tol=1.0
        ),
        "LAPACK": KernelPCA(3, kernel=RBF(gamma=10.0), eigen_solver="dense"),
    }
    plt = plotting()
    figure, axes = plt.subplots(3, 3, figsize=(8, 7.4), layout="constrained")
    maps = {}
    for row, (name, model) in zip(axes, models.items(), strict=True):
        maps[name] = model.fit(X).transform(grid)
        for j, ax in enumerate(row):
            ax.contourf(side, side, maps[name][:, j].reshape(40, 40), 12, cmap="gray")
            ax.plot(*X.T, "k.", ms=2)
            ax.set(title=f"{name}, {j + 1}", xticks=[], yticks=[])
    figure.savefig(out / "shi-figure-1.png", dpi=100)
    plt.close(figure)
    same, printed = (
        [abs(np.corrcoef(maps[name][:, j], maps["LAPACK"][:, j])[0, 1]) for j in range(3)]
        for name in ("recursion", "as printed")
    )
    return [
        Finding(
            "the first three components look alike by both methods",
            "alike",
            f"correlation of the two maps {numbers(same, '.3f')}",
            judged(lambda values: min(values) > 0.9, same, printed),
            same,
            "a correlation above 0.9",
            f"without an amnesic parameter {numbers(printed, '.3f')}",
        )
    ]


def figure_2(size, out):
    draws, passes = pick(size, (2, 5), (10, 100), (20, 200))
    rows: dict = {}
    ends: dict = {}
    for amnesic in (0.0, 2.0, 4.0):
        rng, found = np.random.default_rng(1), []
        for _ in range(draws):
            K = centered(RBF(gamma=10.0)(draw_toy(rng)))
            U = np.linalg.eigh(K)[1][:, ::-1][:, :3]
            found.append(cosines(K, U, amnesic, passes))
        rows[f"a = {amnesic:g}"] = np.mean(found, axis=0).tolist()
        ends[amnesic] = [row[-1] for row in found]
    plt = plotting()
    figure, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
    for name, row in rows.items():
        ax.semilogx(range(1, passes + 1), row, label=name)
    ax.set(xlabel="passes", ylabel="mean |cosine| with the eigenvectors", ylim=(0, 1))
    ax.legend()
    figure.savefig(out / "shi-figure-2.png", dpi=100)
    plt.close(figure)
    rng, turned = np.random.default_rng(1), []
    for _ in range(draws):
        K = DenseOperator(centered(RBF(gamma=10.0)(draw_toy(rng))))
        U = np.linalg.eigh(K.to_dense())[1][:, ::-1][:, :3]
        V = GramPower().solve(K, 3, rng).vectors
        turned.append(float(np.abs(np.sum(V * U, axis=0)).mean()))
    printed = rows["a = 0"]
    return [
        Finding(
            "vectors of the recursion converge to the eigenvectors",
            "very well, after some iterations",
            f"as printed {printed[0]:.2f} after one pass and {spread(ends[0.0])} after {passes}; "
            f"with amnesic parameter 4 {spread(ends[4.0])}",
            judged(lambda cosine: cosine > 0.98, printed[-1], np.mean(turned), True),
            rows | {"ends": ends, "turned": turned},
            f"a mean cosine above 0.98, {draws} draws",
            f"the library's own recursion, by blocks: {spread(turned)}",
        )
    ]


def spread(values):
    """The mean of some draws, the least and the largest."""
    return f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def cosines(K, U, amnesic, passes):
    """Mean |cosine| of the recursion's vectors with the columns of U, after every pass."""
    from mercer.solvers.gram_power import sequential_pass

    V, L, row = np.zeros((len(K), 0)), np.zeros(0), []
    for done in range(passes):
        V, L = sequential_pass(DenseOperator(K), V, L, len(K) * done, U.shape[1], amnesic)
        row.append(float(np.abs(np.sum(V * U, axis=0)).mean()))
    return row


def figure_3(size, out):
    count, tests, r = pick(size, (150, 20, 16), (1500, 300, 64), (3000, 2007, 64))
    train = load_usps(smoothed=True, dtype=np.float32).data
    X = train[np.random.default_rng(0).permutation(len(train))[:count]]
    clean = load_usps(smoothed=True, subset="test", dtype=np.float32).data[:tests]
    noise = np.random.default_rng(1).standard_normal(clean.shape)
    noisy = (clean + 0.5**0.5 * noise).astype(np.float32)
    # "sigma = d c" is 2 sigma² = d c with c twice the mean variance of a pixel.
    kernel = RBF(gamma=1 / (2 * X.shape[1] * X.var(axis=0, dtype=float).mean()))
    found = {}
    ritz = GramPower(block=1, amnesic=AMNESIC, n_passes=2)
    ways = {"exact": "auto", "recursion": recursion(AMNESIC, 2), "with Rayleigh-Ritz": ritz}
    for name, solver in ways.items():
        model = KernelPCA(r, kernel=kernel, eigen_solver=solver, tol=0 if name == "exact" else 1.0)
        found[name] = model.fit(X).denoise(noisy, compensate=False, noise=np.inf)
    errors = {name: float(np.mean((image - clean) ** 2)) for name, image in found.items()}
    errors["noisy"] = float(np.mean((noisy - clean) ** 2))
    plt = plotting()
    figure, axes = plt.subplots(5, 10, figsize=(8, 4.2), layout="constrained")
    for row, images in zip(axes, (clean, noisy, *found.values()), strict=True):
        for ax, image in zip(row, images[:: max(1, tests // 10)], strict=False):
            ax.imshow(image.reshape(16, 16), cmap="gray_r", vmin=-1, vmax=1)
            ax.axis("off")
    figure.savefig(out / "shi-figure-3.png", dpi=100)
    plt.close(figure)
    return [
        Finding(
            "digits denoised by the recursion look like those of batch kernel PCA",
            "both very good",
            f"mean squared error {errors['recursion']:.3f} and {errors['exact']:.3f}, noisy "
            f"{errors['noisy']:.3f}; the recursion's vectors overlap",
            judged(
                lambda error: abs(error / errors["exact"] - 1) < 0.1,
                errors["recursion"],
                errors["with Rayleigh-Ritz"],
                True,
            ),
            errors,
            "within a tenth of the error of batch kernel PCA",
            f"with a Rayleigh-Ritz step after it {errors['with Rayleigh-Ritz']:.3f}",
        )
    ]


def table_2(size, out):
    degrees, step, r = pick(
        size, ((2,), 15, 16), ((2, 4), 1, 64), (tuple(PRINTED_2), 1, COMPONENTS)
    )
    train, test = load_usps(), load_usps(subset="test")
    X, Z = (unit_rows((part.data[::step] + 1) / 2) for part in (train, test))
    y, z = train.target[::step], test.target[::step]
    found = {}
    for degree in degrees:
        kernel = Polynomial(degree=degree, gamma=1.0, coef0=0.0)
        K, new = kernel(X), kernel(Z, X)
        means = K.mean(axis=0)
        new = new - new.mean(axis=1)[:, None] - means + means.mean()
        K = centered(K)
        values, U = eigsh(K, r, v0=np.random.default_rng(0).standard_normal(len(K)))
        pairs = recursion(AMNESIC, 2).solve(DenseOperator(K), r, np.random.default_rng(0))
        V = pairs.vectors
        proper = 1 / np.sqrt(values)
        found[degree] = {
            "exact, unit": error(K @ U, y, new @ U, z),
            "recursion, unit": error(K @ V, y, new @ V, z),
            "exact, proper": error(K @ U * proper, y, new @ U * proper, z),
        }

    return table_2_findings(found, step == 1)


def table_2_findings(found, everything):
    """What the errors by degree say; a verdict only of all digits."""
    degrees = list(found)

    def row(kind):
        return numbers([found[degree][kind] for degree in degrees], ".2f") + " %"

    printed = [PRINTED_2[degree] for degree in degrees]

    def gap(kind):
        return max(abs(found[d][kind] - PRINTED_2[d]) for d in degrees)

    def better(one, other):
        return max(found[d][one] - found[d][other] for d in degrees)

    which = ", ".join(map(str, degrees))
    return [
        Finding(
            f"1-NN error by the recursion's unit vectors (equation 6), degrees {which}",
            numbers(printed, ".2f") + " %",
            f"{row('recursion, unit')}; exact eigenvectors {row('exact, unit')}",
            judged(lambda kind: gap(kind) <= 0.3, "recursion, unit", "exact, proper")
            if everything
            else MEASURED,
            found,
            "within 0.3 points of each printed number",
            f"proper components are up to {gap('exact, proper'):.2f} points away",
        ),
        Finding(
            "features by unit eigenvectors are the ones to use",
            "equation 6",
            f"proper components: {row('exact, proper')}",
            judged(
                lambda pair: better(*pair) <= 0.3,
                ("exact, unit", "exact, proper"),
                ("exact, proper", "exact, unit"),
                True,
            ),
            None,
            "no degree for which they err by 0.3 points more than proper components",
            "proper components in their place",
        ),
    ]


EXPERIMENTS = [
    Experiment(
        "shi-table-1",
        "shi",
        "Table 1: eigenvalues of the toy data",
        "K is centered with 1/m in place of the printed 1_m.",
        table_1,
        data=False,
        chosen="sigma = 0.1 is the whole denominator, exp(-d²/0.1): the kernel as printed gives "
        "other values.",
    ),
    Experiment(
        "shi-figure-1",
        "shi",
        "Figure 1: contours of the first three components",
        "Equation 11 as printed has no amnesic parameter.",
        figure_1,
        data=False,
        chosen="amnesic parameter 2.",
    ),
    Experiment(
        "shi-figure-2",
        "shi",
        "Figure 2: inner products with the eigenvectors",
        "How n counts over passes is not said; it runs on. The cost is O(passes r n²) and the "
        "memory O(r n), not O(passes r n) and O(n).",
        figure_2,
        data=False,
    ),
    Experiment(
        "shi-figure-3",
        "shi",
        "Figure 3: denoised digits",
        "sigma = d c would make the kernel linear.",
        figure_3,
        chosen="2 sigma² = d c, the smoothed copy of USPS, amnesic parameter 4, two passes.",
    ),
    Experiment(
        "shi-table-2",
        "shi",
        "Table 2: 1-NN error of 64 components",
        "`transform` gives proper components, `unit_features` those of the paper.",
        table_2,
        chosen="rows of unit length, of the scalings tried the nearest to the printed numbers; "
        "amnesic parameter 4, two passes.",
    ),
]
