"""Random problems for the certificate, and what is true of them in extended precision.

`draw(seed)` makes a problem, `violations(problem)` fits it and lists every statement of the
certificate that is false, and every eigenvalue that a fit called converged has missed. The kernel
matrix of the oracle is made from differences and products of rows in long double, so that neither
offsets nor outliers nor scales cost it digits.
"""

import warnings
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
from scipy import sparse
from targets import draw_target, seen_through, target_features

from mercer import HebbianKernelPCA, KernelPCA, StreamingKernelPCA, SupervisedKernelPCA
from mercer.bases import FourierGrid, Landmarks, RandomFeatures
from mercer.hebbian import GAINS
from mercer.selectors import SELECTORS
from mercer.solvers import BlockKrylov, GramPower

WIDE = np.longdouble
LARGEST = 1e300  # kernel values beyond this may be refused
# Share of what the best vectors hold that proven ones do at least.
LEAST_HELD = 0.4

STATIONARY = ("rbf", "matern", "rational_quadratic", "laplacian")
COLUMNS = ("linear", "cosine")  # kernels that have a basis of as many columns as the rows
POSITIVE = ("chi2", "additive_chi2")  # kernels of rows that are not negative
DEFINITE = (*STATIONARY, *COLUMNS, "poly", "gower", "chi2")
KINDS = ("exact", "landmarks", "features", "hebbian", "stream", "columns", "fourier", "supervised")
# Kinds whose rows may come in blocks from a file.
REDUCED = ("landmarks", "features", "columns", "fourier")
# Kinds that take weights of rows.
WEIGHTED = ("exact", "landmarks", "features", "columns", "fourier", "stream", "supervised")


@dataclass
class Problem:
    """A data set, a kernel and a way to fit them."""

    seed: int
    X: np.ndarray
    kernel: dict
    estimator: str
    options: dict
    r: int
    center: bool = True
    sparse: bool = False
    weights: np.ndarray | None = None
    target: np.ndarray | None = None
    blocks: int = 0  # rows of a block of a file or of a batch, 0 for an array
    witnesses: int = 0  # rows on which a span is judged, 0 for as many as usual
    eager: bool = False  # landmarks are left out and whitened in stages however few the rows are
    ranges: object = None  # of the columns, as the fit took them
    story: list = field(default_factory=list)

    def __str__(self):
        return (
            f"seed {self.seed}: {self.estimator} r={self.r} center={self.center} {self.kernel} "
            f"{self.options} X {self.X.shape} {self.X.dtype}{' csr' if self.sparse else ''}"
            f"{'' if self.weights is None else ' weighted'}"
            f"{'' if self.target is None else f' y {self.target.shape} {self.target.dtype}'}"
            f"{f' blocks of {self.blocks}' if self.blocks else ''}"
            f"{f' {self.witnesses} witnesses' if self.witnesses else ''}"
            f"{' eager' if self.eager else ''} "
            f"({', '.join(self.story)})"
        )


# Drawing.


def draw(seed, largest=90, kind=None):
    """A problem, of any kind or of one; the same for the same seed."""
    rng = np.random.default_rng([14, seed])
    kernel = draw_kernel(rng)
    served = {"features": (*STATIONARY, "poly"), "fourier": STATIONARY[:3]}.get(kind, FORMULAS)
    while kernel["kernel"] not in served:
        kernel = draw_kernel(rng)
    X, story = draw_rows(rng, largest, kernel["kernel"], 3 if kind == "fourier" else 8)
    # What came later has a generator of its own, so that seeds give the problems they gave.
    later = np.random.default_rng([29, seed])
    if later.random() < 0.15:
        X, told = draw_symmetry(later, *X.shape)
        X, story = np.abs(X) if kernel["kernel"] in POSITIVE else X, [told]
    n, d = X.shape
    if kernel["kernel"] in STATIONARY and rng.random() < 0.6:
        kernel["gamma"] = "median" if rng.random() < 0.5 else float(10 ** rng.uniform(-2, 1))
    elif kernel["kernel"] in ("poly", "sigmoid") and rng.random() < 0.5:
        kernel["gamma"] = float(10 ** rng.uniform(-2, 0.5))
    estimator, options = draw_method(rng, n, d, kernel["kernel"], kind)
    blocks = rng.random() < 0.2 and estimator in (*REDUCED, "stream")
    smooth = kernel["kernel"] in STATIONARY[:3] and d <= 3
    if estimator == "stream" and smooth and later.random() < 0.5:
        options = {"basis": FourierGrid(tol=float(10 ** later.uniform(-9, -1)))}
    grid = isinstance(options.get("basis"), FourierGrid)
    takes = kernel["kernel"] not in ("gower", *POSITIVE) and not grid and not blocks
    if grid and estimator == "stream" and later.random() < 0.8:
        # A box that is known before the rows: theirs, or wider.
        reach = np.stack([X.min(axis=0), X.max(axis=0)], axis=1).astype(float)
        options["basis"].box = reach + (reach[:, 1:] - reach[:, :1]) * later.uniform(0, 1) * [-1, 1]
    return Problem(
        seed,
        X,
        kernel,
        estimator,
        options,
        r=int(rng.integers(1, max(2, min(n // 3, 12)))),
        center=bool(rng.random() < 0.8) or estimator == "supervised",
        sparse=takes and bool(rng.random() < (0.2 if estimator == "exact" else 0.1)),
        weights=draw_weights(rng, n, estimator, blocks),
        target=draw_target(rng, n) if estimator == "supervised" else None,
        blocks=int(rng.integers(3, 40)) if blocks else 0,
        witnesses=int(rng.integers(3, 30)) if rng.random() < 0.2 else 0,
        eager=bool(rng.random() < 0.5),
        story=story,
    )


def draw_hard(seed, largest=90, kind=None):
    """A problem as of `draw`, with a few of the things that have made statements false."""
    problem, rng = draw(seed, largest, kind), np.random.default_rng([35, seed])
    X, story = problem.X, problem.story
    n, d = X.shape
    iterates = problem.estimator == "exact" and rng.random() < 0.6
    if iterates or rng.random() < 0.4:
        levels, count = int(rng.integers(2, 30)), int(rng.integers(100, 260)) if iterates else n
        levels = levels if rng.random() < 0.7 else n
        pick = rng.permutation(n)[:levels][rng.integers(0, min(levels, n), count)]
        X, n = X[pick], count
        problem.weights = None if problem.weights is None else problem.weights[pick] + 1e-3
        problem.target = None if problem.target is None else problem.target[pick]
        story.append(f"{levels} distinct rows")
    if rng.random() < 0.2:
        rank = int(rng.integers(1, d + 1))
        mixture = (
            rng.integers(-2, 3, (rank, d)) if rng.random() < 0.5 else rng.normal(size=(rank, d))
        )
        X = X[:, :rank] @ mixture.astype(X.dtype)
        story.append(f"rank {rank}")
    if rng.random() < 0.2:
        offset = 10 ** rng.uniform(6, 8)
        X = X + (offset * rng.choice([0, 1, -1], d)).astype(X.dtype)
        story.append(f"offset {offset:.0e}")
    if rng.random() < 0.3 and np.abs(X).max() < 1e30:
        X = X.astype(np.float32)
    problem.X = np.abs(X) if problem.kernel["kernel"] in POSITIVE else X
    if rng.random() < 0.3 and problem.estimator in WEIGHTED:
        problem.weights = 10 ** rng.uniform(-rng.integers(1, 13), 0, n)
    if iterates:
        names = ["krylov", "krylov", "lobpcg", "randomized", "gram-power", "arpack", "auto"]
        problem.options["eigen_solver"] = str(rng.choice(names))
        if rng.random() < 0.5:
            problem.options["max_iter"] = int(rng.integers(1, 4))
        elif rng.random() < 0.5:
            block, spare = int(rng.integers(2, 24)), int(rng.integers(1, 16))
            problem.options["eigen_solver"] = BlockKrylov(block=block, oversampling=spare)
    if rng.random() < 0.2:
        problem.r = int(rng.integers(max(1, n - 5), n + 1))
    elif rng.random() < 0.2:
        problem.r = int(rng.integers(1, max(2, n // 2)))
    problem.r = min(problem.r, problem.options.get("budget", n))
    return problem


def draw_weights(rng, n, estimator, blocks):
    """How often each row counts, for some problems; rows of files cannot be left out."""
    if estimator not in WEIGHTED or rng.random() < 0.75:
        return None
    w = rng.integers(1, 5, n).astype(float) if rng.random() < 0.3 else rng.uniform(0.1, 2, n)
    if rng.random() < 0.3:
        w *= 10 ** rng.uniform(-6, 6, n)
    if not blocks and rng.random() < 0.3:
        w[rng.permutation(n)[: n // 3]] = 0
    return w


def draw_kernel(rng):
    """A kernel by name, with its shape parameters."""
    name = str(rng.choice([*DEFINITE, "additive_chi2", "sigmoid", "rbf", "linear", "poly"]))
    kernel = {"kernel": name}
    if name == "poly":
        kernel |= {"degree": int(rng.integers(1, 4)), "coef0": float(rng.choice([0.0, 1.0]))}
    if name == "sigmoid":
        kernel |= {"coef0": float(rng.choice([-1.0, 0.0, 1.0]))}
    if name == "matern":
        kernel |= {"kernel_params": {"nu": float(rng.choice([0.5, 1.5, 2.5]))}}
    return kernel


def draw_rows(rng, largest, kernel, columns=8):
    """Rows of one of several shapes, then what makes them hard."""
    n, d = int(rng.integers(8, largest)), int(rng.integers(1, columns + 1))
    if rng.random() < 0.03:
        n *= 7
    X = rng.standard_normal((n, d))
    story = []
    if rng.random() < 0.3:
        X = X + 3 * rng.standard_normal((4, d))[rng.integers(0, 4, n)]
        story.append("clusters")
    if rng.random() < 0.2:
        X[:, rng.integers(d)] *= 100
        story.append("uneven columns")
    if rng.random() < 0.2:
        X = X[rng.integers(0, max(2, n // 2), n)]
        story.append("copies")
    if rng.random() < 0.2:
        X = np.round(X)
        story.append("whole numbers")
    if rng.random() < 0.15:
        X = X[:, :1] @ rng.standard_normal((1, d)) + 10 ** rng.uniform(-17, -1) * X
        story.append("near a line")
    if rng.random() < 0.15:
        near = 10 ** rng.uniform(-17, -3)
        X = X[rng.integers(0, max(2, n // 3), n)] + near * rng.standard_normal((n, d))
        story.append(f"copies up to {near:.0e}")
    if rng.random() < 0.25:
        far = 10 ** rng.uniform(1, 10)
        X[rng.integers(0, n, int(rng.integers(1, 4)))] *= far
        story.append(f"outliers {far:.0e}")
    if rng.random() < 0.2:
        offset = 10 ** rng.uniform(1, 8)
        X = X + offset * rng.choice([0, 1, -1], d)
        story.append(f"offset {offset:.0e}")
    if rng.random() < 0.15:
        scale = 10 ** (rng.uniform(-30, 80) if rng.random() < 0.5 else rng.uniform(-3, 3))
        X = X * scale
        story.append(f"scale {scale:.0e}")
    if rng.random() < 0.3 and np.abs(X).max() < 1e30:
        X = X.astype(np.float32)
    return np.abs(X) if kernel in POSITIVE else X, story


def draw_symmetry(rng, n, d):
    """Rows whose kernel matrix has multiple eigenvalues, exact to rounding or nearly so."""
    how, n = int(rng.integers(5)), 2 if rng.random() < 0.1 else n
    if how == 0:
        side = 2 if d > 2 else int(rng.integers(2, 9))
        levels = np.arange(side) - (side - 1) / 2 * rng.integers(2)
        return np.array(list(product(levels, repeat=d))), f"factorial design {side}^{d}"
    if how == 1:
        groups = int(rng.integers(2, max(3, n // 3)))
        return 5.0 * np.eye(groups, max(d, groups))[np.arange(n) % groups], "groups of equal rows"
    if how == 2:
        groups = int(rng.integers(2, 9))
        X = rng.standard_normal((n // groups + 1, d))  # the same about each center
        return np.vstack([X + 40 * i for i in range(groups)]), f"{groups} far blobs"
    if how == 3:
        X = rng.choice([-1.0, 1.0], n)[:, None] * rng.uniform(0.1, 3, d)
        return X * (1 - 10 ** rng.uniform(-9, -1) * rng.random((n, 1))), "two ends of a box"
    angles = 2 * np.pi * np.arange(n) / n
    return rng.uniform(0.3, 3) * np.column_stack([np.cos(angles), np.sin(angles)]), "circle"


def draw_method(rng, n, d, kernel, kind=None):
    """An estimator, and the options that choose its algorithm."""
    shares = [0.31, 0.27, 0.07, 0.06, 0.1, 0.06, 0.06, 0.07]
    kind = kind or str(rng.choice(KINDS, p=shares))
    if kind == "supervised":
        return kind, draw_supervised(rng, n, kernel)
    if kind == "features" and kernel not in (*STATIONARY, "poly"):
        kind = "landmarks"
    if kind == "fourier" and (kernel not in STATIONARY[:3] or d > 3):
        kind = "landmarks"
    if kind == "columns" and kernel not in COLUMNS:
        kind = "exact"
    if kind == "exact":
        return kind, draw_solver(rng, n)
    if kind == "landmarks":
        return kind, {"basis": draw_landmarks(rng, n)}
    if kind == "features":
        how = str(rng.choice(["orthogonal", "plain", "qmc"]))
        return kind, {"basis": RandomFeatures(int(rng.integers(2, 300)), how)}
    if kind == "columns":
        return kind, {"basis": "columns"}
    if kind == "fourier":
        return kind, {"basis": FourierGrid(tol=float(10 ** rng.uniform(-9, -1)))}
    if kind == "hebbian":
        readout = str(rng.choice(["ritz", "nystroem", "carried", "free"]))
        passes, gain = int(rng.integers(1, 6)), str(rng.choice(list(GAINS)))
        return kind, {"readout": readout, "n_passes": passes, "gain": gain}
    if kernel in STATIONARY and rng.random() < 0.2:
        return kind, {"basis": "features", "budget": int(rng.integers(12, 200))}
    novelty = float(10 ** rng.uniform(-6, -1))
    return kind, {"novelty": novelty, "budget": int(rng.integers(12, n + 13))}


def draw_supervised(rng, n, kernel):
    """A basis of a supervised fit, and the share of variance in what it maximizes."""
    share = {"unsupervised": float(rng.choice([0.0, 0.0, 1e-6, rng.random(), 1.0]))}
    how = rng.random()
    if how < 0.4:
        return share | {"basis": "points"} | draw_solver(rng, n)
    if how < 0.5 and kernel in COLUMNS:
        return share | {"basis": "columns"}
    if how < 0.6 and kernel in (*STATIONARY, "poly"):
        return share | {"basis": RandomFeatures(int(rng.integers(2, 300)))}
    return share | {"basis": draw_landmarks(rng, n)}


def draw_landmarks(rng, n):
    """Landmarks of every selector, to an error, or any rows, which may be the same ones."""
    how = rng.random()
    if how < 0.15:
        return Landmarks(indices=rng.integers(0, n, int(rng.integers(1, n))).tolist())
    if how < 0.25:
        return Landmarks(error=float(10 ** rng.uniform(-8, -0.5)))
    names = [*SELECTORS]
    selector = SELECTORS[names[rng.integers(len(names))]]() if how < 0.8 else None
    return Landmarks(int(rng.integers(1, n)), selector)


def draw_solver(rng, n):
    """A solver of the exact problem and a tolerance."""
    tol = float(rng.choice([0.0, 1e-9, 1e-6, 1e-5, 1e-3]))
    solver = ["auto", "dense", "krylov", "arpack", "randomized", "gram-power", "small", "few"][
        rng.integers(8)
    ]
    if solver == "small":  # block Krylov on matrices that it leaves to LAPACK otherwise
        solver = BlockKrylov(block=2, oversampling=1)
    if solver == "few":
        solver = BlockKrylov(block=3, oversampling=2, max_passes=int(rng.integers(2, 6)))
    if solver == "gram-power" and rng.random() < 0.5:
        solver = GramPower(block=int(rng.integers(1, 20)), n_passes=int(rng.integers(1, 3)))
    return {"eigen_solver": solver, "tol": tol}


# The truth.


def exact_gram(problem, gamma):
    """The kernel matrix in long double, centered and weighted if the problem is, and as it is."""
    X, w = problem.X.astype(WIDE), np.ones(len(problem.X), WIDE)
    if problem.weights is not None:
        some = problem.weights > 0
        X, w = X[some], problem.weights[some].astype(WIDE)
    name, options = problem.kernel["kernel"], problem.kernel | {"ranges": problem.ranges}
    share, root = w / w.sum(), np.sqrt(w)
    weigh = root[:, None] * root
    if name == "linear" and problem.center:
        X = X - X.mean(axis=0)
        X = X - share @ X
        return weigh * (X @ X.T), weigh * (X @ X.T)
    K = FORMULAS[name](X, WIDE(gamma), options)
    if not problem.center:
        return weigh * K, weigh * K
    centered = K - share @ K
    return weigh * (centered - (centered @ share)[:, None]), weigh * K


def squared_distances(X):
    difference = X[:, None, :] - X[None, :, :]
    return (difference * difference).sum(axis=2)


def rbf(X, gamma, options):
    return np.exp(-gamma * squared_distances(X))


def laplacian(X, gamma, options):
    return np.exp(-gamma * np.abs(X[:, None, :] - X[None, :, :]).sum(axis=2))


def matern(X, gamma, options):
    nu = options["kernel_params"]["nu"]
    s = np.sqrt(4 * nu * gamma * squared_distances(X))
    factor = {0.5: 1, 1.5: 1 + s, 2.5: 1 + s + s * s / 3}[nu]
    return np.where(s < 1e4, factor * np.exp(-np.minimum(s, WIDE(1e4))), WIDE(0))


def rational_quadratic(X, gamma, options):
    return 1 / (1 + gamma * squared_distances(X))


def linear(X, gamma, options):
    return X @ X.T


def polynomial(X, gamma, options):
    return (gamma * (X @ X.T) + WIDE(options["coef0"])) ** options["degree"]


def sigmoid(X, gamma, options):
    return np.tanh(gamma * (X @ X.T) + WIDE(options["coef0"]))


def cosine(X, gamma, options):
    norms = np.sqrt((X * X).sum(axis=1))
    X = X / np.where(norms > 0, norms, WIDE(1))[:, None]
    return X @ X.T


def gower(X, gamma, options):
    gaps = np.abs(X[:, None, :] - X[None, :, :])
    ranges = np.broadcast_to(np.asarray(options["ranges"], WIDE), X.shape[1:])
    some = ranges > 0
    shares = np.where(some, gaps / np.where(some, ranges, WIDE(1)), gaps > 0)
    return np.maximum(0, 1 - shares).mean(axis=2)


def additive_chi2(X, gamma, options):
    total = X[:, None, :] + X[None, :, :]
    gaps = X[:, None, :] - X[None, :, :]
    return -(gaps * (gaps / np.where(total > 0, total, WIDE(1)))).sum(axis=2)


def chi2(X, gamma, options):
    return np.exp(gamma * additive_chi2(X, gamma, options))


FORMULAS = {
    "gower": gower,
    "chi2": chi2,
    "additive_chi2": additive_chi2,
    "rbf": rbf,
    "laplacian": laplacian,
    "matern": matern,
    "rational_quadratic": rational_quadratic,
    "linear": linear,
    "poly": polynomial,
    "sigmoid": sigmoid,
    "cosine": cosine,
}


@dataclass
class Truth:
    """What holds of a problem: eigenvalues, the matrix, and how well the oracle knows them."""

    values: np.ndarray
    matrix: np.ndarray
    total: float
    slack: float
    least: float


def truth(problem, gamma):
    """The exact answer."""
    A, K = exact_gram(problem, gamma)
    n = len(A)
    if problem.target is not None:
        P = target_features(problem.target, problem.weights)
        A = seen_through(A, P, problem.options.get("unsupervised", 0.0))
        K = np.abs(K).max() * np.square(P).sum()
    # float64 holds any eigenvalue that the scale of the entries is taken out of.
    unit = max(np.abs(A).max(), WIDE(np.finfo(float).tiny))
    values = np.linalg.eigvalsh(np.asarray(A / unit, dtype=float))[::-1]
    values = np.asarray(values * unit, dtype=WIDE)
    if problem.target is not None:  # the matrix has no room for all zeros, or too much
        values = np.sort(np.append(values, np.zeros(n)))[::-1]
    # LAPACK in float64, and centering in long double.
    slack = float(20 * n * np.finfo(float).eps * np.abs(values).max())
    slack += float(8 * n * np.finfo(WIDE).eps * np.abs(K).max())
    return Truth(values.astype(float), A, float(np.trace(A)), slack, float(values[-1]))


# Fitting, and what must be true.


def fitted(problem):
    """The fitted estimator."""
    common = {**problem.kernel, "center": problem.center, "random_state": problem.seed}
    common |= {"n_jobs": 1, **problem.options}
    kind = {"hebbian": HebbianKernelPCA, "stream": StreamingKernelPCA}
    kind |= {"supervised": SupervisedKernelPCA}
    if problem.estimator == "supervised":
        del common["center"]
    model = kind.get(problem.estimator, KernelPCA)(problem.r, **common)
    weights = {} if problem.weights is None else {"sample_weight": problem.weights}
    with warnings.catch_warnings(), given(problem) as X:
        warnings.simplefilter("ignore")
        if problem.estimator == "stream" and problem.blocks:
            return learned(problem, model)
        return model.fit(X, problem.target, **weights)


def learned(problem, model):
    """A stream that met the rows in batches."""
    cuts = np.arange(max(problem.blocks, 12), len(problem.X) - 1, problem.blocks)
    for rows in np.split(np.arange(len(problem.X)), cuts):
        w = None if problem.weights is None else problem.weights[rows]
        model.partial_fit(problem.X[rows], sample_weight=w)
    return model


@contextmanager
def given(problem):
    """The rows as the problem gives them, judged on as few witnesses as it says."""
    with ExitStack() as stack:
        if problem.witnesses:
            for name in ("ALL_ROWS", "SAMPLE_ROWS"):
                stack.enter_context(patch(f"mercer.fitting.remainder.{name}", problem.witnesses))
            stack.enter_context(patch("mercer.fitting.remainder.LEAST_WORK", 0.0))
        if problem.eager:
            stack.enter_context(patch("mercer.bases.whitening.MANY_ROWS", 0))
            stack.enter_context(patch("mercer.bases.whitening.LEAST_JUDGES", 2))
        if not problem.blocks or problem.estimator == "stream":
            yield sparse.csr_matrix(problem.X) if problem.sparse else problem.X
            return
        stack.enter_context(patch("mercer.rows.blocks.BLOCK_ROWS", problem.blocks))
        path = Path(stack.enter_context(TemporaryDirectory())) / "rows.npy"
        np.save(path, problem.X)
        yield path


def violations(problem):
    """Statements of the certificate that are false, as sentences."""
    overflow = np.abs(problem.X.astype(WIDE)).max() ** 2 * problem.X.shape[1]
    try:
        model = fitted(problem)
    except ValueError as error:
        return refused(problem, str(error), overflow)
    return false_statements_of(problem, model, truth_of(problem, model))


def truth_of(problem, model):
    """The exact answer, with the width and the ranges that a fit took from the rows."""
    numbers = model.kernel_.get_params()
    problem.ranges, gamma = numbers.get("ranges"), numbers.get("gamma", 1.0)
    return truth(problem, gamma)


def false_statements_of(problem, model, exact):
    """What the certificate of a model says that is not so."""
    certificate = model.certificate_
    checks = [finite(model), flags(problem, certificate, exact)]
    checks.append(intervals(problem, certificate, exact))
    checks.append(missed(problem, model, exact))
    checks.append(scores(problem, model, exact))
    if problem.target is not None:
        checks.append(dependence(problem, model, exact))
    elif hasattr(model, "eigenvectors_"):
        checks.append(pairs(problem, model, exact))
    return [sentence for check in checks for sentence in check]


def refused(problem, message, overflow):
    """A fit may refuse kernels that are indefinite or overflow, and nothing else."""
    name, indefinite = problem.kernel["kernel"], not definite(problem)
    excuses = {
        "negative eigenvalues": indefinite,
        # A landmark at the origin, of which these see nothing, or an indefinite kernel.
        "positive semidefinite": indefinite or name in ("poly", "linear", "cosine"),
        "No row can be a landmark": indefinite or not problem.X.any(),
        "have k(x, x) = 0": indefinite or name in ("poly", "linear", "cosine"),
        "not finite": name == "poly" and overflow**3 > LARGEST / 1e20,
        "eigen_solver='arpack'": True,
        "Landmarks: size": True,
        "fewer than n_samples": True,
        "at least as many rows": True,
        "Fourier grid": isinstance(problem.options.get("basis"), FourierGrid),
        # Of few rows the drawn ones may all have one.
        "same target": problem.target is not None and len(np.unique(problem.target, axis=0)) == 1,
    }
    if any(text in message and excuse for text, excuse in excuses.items()):
        return []
    return [f"refused: {message}"]


def finite(model):
    """No result without a word that is not a number."""
    certificate = model.certificate_
    arrays = [model.eigenvalues_, certificate.eigenvalue_lower, *certificate.captured_variance]
    return [] if all(np.isfinite(A).all() for A in arrays) else ["results are not finite"]


def flags(problem, certificate, exact):
    """`indefinite` is said where it is so, and not where it is not."""
    top = max(exact.values[0], 0.0)
    found = []
    negative = exact.least < -1e-4 * top - 10 * exact.slack
    if negative and not (certificate.indefinite or certificate.kind == "estimate"):
        found.append(f"indefinite is missed: {exact.least:.3e} against {top:.3e}")
    if certificate.indefinite and exact.least > -1e-9 * top - exact.slack and definite(problem):
        found.append(f"called indefinite: {exact.least:.3e} against {top:.3e}")
    if certificate.kind not in ("bound", "estimate"):
        found.append(f"kind {certificate.kind}")
    return found


def definite(problem):
    return problem.kernel["kernel"] in DEFINITE


def intervals(problem, certificate, exact):
    """Every interval holds the eigenvalue of its number."""
    found = []
    spans = []
    if certificate.kind == "bound":
        spans.append(("", certificate.eigenvalue_lower, certificate.eigenvalue_upper))
    if getattr(certificate, "confidence", None) is not None:
        spans.append(("likely ", certificate.likely_lower, certificate.likely_upper))
    for what, lower, upper in spans:
        # A small basis may have more components than there are rows of any weight.
        values = np.append(exact.values, np.zeros(len(lower)))
        for i, (low, high, true) in enumerate(zip(lower, upper, values, strict=False)):
            near = max(low - true, true - high)
            if near > exact.slack:
                top = exact.values[0]
                found.append(
                    f"{what}interval {i} [{low:.6e}, {high:.6e}] misses {true:.6e} by "
                    f"{near:.1e}, {near / max(top, 1e-300):.1e} of the first"
                )
                break
        if np.any(lower > upper):
            found.append(f"{what}interval turned around")
    return found


def missed(problem, model, exact):
    """No fit that says it has converged has left out an eigenvalue, or a copy of one."""
    certificate = model.certificate_
    if not certificate.converged or problem.estimator not in ("exact", "columns", "hebbian"):
        return []
    # The rule of Hebb ends in the eigenvalues that are largest in size.
    if problem.estimator == "hebbian" and certificate.indefinite:
        return []
    values = np.asarray(model.eigenvalues_, dtype=float)
    size = float(np.abs(exact.values).max())
    asked = max(problem.options.get("tol", 0.0), 1e-6 if problem.X.dtype == np.float32 else 1e-9)
    reach = certificate.eigenvalue_upper - values + 2 * asked * size + exact.slack
    short = np.maximum(exact.values[: len(values)], 0.0) - values - reach
    if np.max(short, initial=0.0) <= 0:
        return []
    i = int(np.argmax(short))
    return [f"eigenvalue {i} is {exact.values[i]:.6e}, and {values[i]:.6e} was called converged"]


def scores(problem, model, exact):
    """Scores of training rows are right to the share stated, and the proven ones the leading."""
    stated, found = model.certificate_.score_error, []
    if stated is None or problem.target is not None:
        return []
    unit = max(float(np.abs(exact.matrix).max()), 1e-300)
    values, U = np.linalg.eigh(np.asarray(exact.matrix / unit, dtype=float))
    values, U = values[::-1] * unit, U[:, ::-1]
    some = slice(None) if problem.weights is None else problem.weights > 0
    rows = sparse.csr_matrix(problem.X[some]) if problem.sparse else problem.X[some]
    S = np.asarray(model.transform(rows), dtype=float)
    S = S * (1.0 if problem.weights is None else np.sqrt(problem.weights[some])[:, None])
    for i in np.flatnonzero(np.isfinite(stated)):
        # What the oracle itself knows of the vector.
        gap = np.min(np.abs(np.delete(values, i) - values[i]), initial=np.inf)
        slack = 4 * exact.slack / max(gap, 1e-300) + 2 * exact.slack / max(values[i], 1e-300)
        slack += np.finfo(problem.X.dtype).eps  # of the numbers given
        true = U[:, i] * np.sqrt(max(values[i], 0.0))
        off = min(np.linalg.norm(S[:, i] - true), np.linalg.norm(S[:, i] + true))
        if slack < 0.1 and off > (1.001 * stated[i] + slack) * np.linalg.norm(true):
            share = off / np.linalg.norm(true)
            found.append(f"scores of component {i} are off by {share:.1e}, stated {stated[i]:.1e}")
    count = min(model.certificate_.n_proven, int(np.argmin(np.append(np.isfinite(stated), False))))
    count = min(count, int(np.sum(values > 10 * exact.slack)))
    # What is wrong with scores is judged above: it may lie along large negative eigenvalues.
    held = share_of_leading(S[:, :count], (U * np.maximum(values / unit, 0.0)) @ U.T)
    if held < LEAST_HELD:
        found.append(f"{count} are proven, of which a span holds {held:.1e} of the best")
    return found[:2]


def share_of_leading(U, A):
    """The least of what each span of the first vectors holds, of what the best such span has."""
    best, U = np.linalg.eigvalsh(A)[::-1], np.linalg.qr(U)[0]
    held = [np.linalg.eigvalsh(U[:, :p].T @ A @ U[:, :p])[0] for p in range(1, U.shape[1] + 1)]
    return min((one / top for one, top in zip(held, best, strict=False)), default=1.0)


def dependence(problem, model, exact):
    """The share of the dependence that the directions of a supervised fit hold."""
    certificate = model.certificate_
    if certificate.kind != "bound" or certificate.indefinite or not definite(problem):
        return []
    P = target_features(problem.target, problem.weights)
    # In double precision, since scores may be below what single precision holds.
    S = np.asarray(model.transform(problem.X.astype(float)), dtype=float)
    if problem.weights is not None:
        some = problem.weights > 0
        S = S[some] * np.sqrt(problem.weights[some])[:, None]
    a = problem.options.get("unsupervised", 0.0)
    held = float(np.trace(seen_through(S.astype(WIDE) @ S.T.astype(WIDE), P, a)))
    low, high = certificate.captured_variance
    slack = 1e-12 + len(S) * exact.slack / max(exact.total, 1e-300)
    slack += 8 * np.finfo(problem.X.dtype).eps * np.sqrt(len(S))
    # Scores are differences of kernel values.
    size = float(np.abs(np.asarray(model.kernel_.diag(problem.X), dtype=float)).max())
    slack += 1e-14 * len(S) * size * float(np.square(P).sum()) / max(exact.total, 1e-300)
    held = min(held / max(exact.total, 1e-300), 1.0)
    if exact.total > 1e3 * exact.slack and not low - slack <= held <= high + slack:
        return [f"dependence {held:.6g} is not in [{low:.6g}, {high:.6g}]"]
    return []


def pairs(problem, model, exact):
    """Residuals, captured variance and convergence, from the vectors themselves."""
    certificate = model.certificate_
    U = np.asarray(model.eigenvectors_, dtype=WIDE)
    if problem.weights is not None:
        U = U * np.sqrt(problem.weights[problem.weights > 0])[:, None]
    norms = np.sqrt((U * U).sum(axis=0))
    if certificate.kind != "bound" or not np.all(norms > 0):
        return []
    U = U / norms
    AU = exact.matrix @ U
    values = np.asarray(model.eigenvalues_, dtype=WIDE)
    residuals = np.sqrt(((AU - U * values) ** 2).sum(axis=0)).astype(float)
    found, top = [], max(float(exact.values[0]), 1e-300)
    # Attributes are rounded to the type of the data.
    size = float(np.abs(exact.values).max())
    rounding = exact.slack + 4 * np.finfo(problem.X.dtype).eps * np.sqrt(len(U)) * size
    width = np.maximum(certificate.eigenvalue_upper - values, values - certificate.eigenvalue_lower)
    if problem.estimator in ("exact", "columns"):
        # They are of the matrix as it is computed; what that is off by is part of the intervals.
        allowed = certificate.residuals + width.astype(float)
        worst = np.max(residuals - allowed)
        if worst > rounding:
            found.append(f"a residual is {worst / top:.1e} of the first above what is stated")
    held = float((U * AU).sum()) / max(exact.total, 1e-300)
    low, high = certificate.captured_variance
    slack = rounding * len(values) / max(exact.total, 1e-300) + 1e-12
    meaningful = exact.total > 1e3 * exact.slack and not certificate.indefinite
    # Vectors are orthonormal to rounding only, and negative eigenvalues make others hold more.
    held = min(held, 1.0)
    if meaningful and not low - slack <= held <= high + slack:
        found.append(f"captured {held:.9g} is not in [{low:.9g}, {high:.9g}]")
    # What the directions of unit length hold, which for pairs not yet exact is more.
    AU2 = np.square(AU[:, values > 0]).sum(axis=0) / values[values > 0]
    along = min(float(AU2.sum()) / max(exact.total, 1e-300), 1.0)
    if meaningful and problem.estimator == "exact" and along > high + slack:
        found.append(f"directions hold {along:.6g}, above {high:.6g}")
    tol = problem.options.get("tol", 0.0)
    asked = max(tol, 1e-6 if problem.X.dtype == np.float32 else 1e-9)
    if certificate.converged and problem.estimator in ("exact", "columns"):
        # Rounding, which of columns is part of the residuals.
        stated = 0.0 if problem.estimator == "columns" else certificate.residuals
        known = np.maximum(width.astype(float), certificate.residuals)
        allowance = np.max(known - stated, initial=0.0)
        worst = np.max(
            residuals[np.asarray(values > 0)], initial=0.0
        )  # zeros are values set to zero
        if worst > 1.5 * asked * top + rounding + allowance:
            found.append(f"converged at {worst / top:.1e}, asked for {asked:.0e}")
    return found
