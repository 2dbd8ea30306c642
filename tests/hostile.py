"""Drawn inputs that are odd, hard or wrong, and what an estimator may make of them.

`draw(seed)` makes a case: a way to fit, a method to call afterwards, and data in one of three
classes. *Forms* hold ordinary numbers in an unusual container, and must give what the plain array
gives. *Hard* numbers are valid: the answer agrees with long double, or a refusal says what to do.
*Wrong* data are refused. `complaint(case)` is what is not so, or an empty string.
"""

import re
import signal
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
from answers import wrong_answer
from fuzz import WIDE
from scipy import sparse

from mercer import (
    ClassicalMDS,
    HebbianKernelPCA,
    KernelCCA,
    KernelPCA,
    KernelPCASearch,
    NoveltyDetector,
    PatchDenoiser,
    SpectralClustering,
    StreamingKernelPCA,
    SupervisedKernelPCA,
)
from mercer.bases import Landmarks, RandomFeatures

SECONDS = 30  # a case takes milliseconds; beyond this it hangs

# Errors of other libraries, and of code that did not expect what came.
FOREIGN = re.compile(
    r"must not contain infs|could not be broadcast|division by zero|"
    r"inhomogeneous|setting an array element|has no attribute|not subscriptable|singular|"
    r"did not converge|All-NaN|object of type|ufunc|cannot unpack|index .* out of bounds|"
    r"unsupported operand|0-dimensional|object is not|NoneType' object|HistGradient"
)
# What a message tells to do, or what was expected.
ADVICE = re.compile(
    r"\b(Pass|Fill|Give|Scale|Use|Convert|Leave|Reshape|Choose|Ask|Say|Shift|Take|Raise|Start|Write"
    r"|Guard|See|Name|Fit)\b|minimum of|is expecting|must be|need the same|\.toarray\(\)"
)


@dataclass
class Case:
    """A way to fit, and data of a class."""

    seed: int
    way: str
    kind: str  # "form", "hard", "wrong" or "kernel"
    what: str
    data: object
    plain: np.ndarray | None
    method: str = "fit"
    other: np.ndarray | None = None  # the target or other view, or the rows if that is the odd one
    odd_target: bool = False

    def __str__(self):
        of = " of y" if self.odd_target else ""
        return f"seed {self.seed}: {self.way}, {self.kind} {self.what}{of}, {self.method}"

    def given(self, data):
        """What a fit is given, with these data in the place of the odd ones."""
        if self.other is None:
            return (data,)
        return (self.other, data) if self.odd_target else (data, self.other)


# Ways to fit.


def exact(**options):
    return lambda seed: KernelPCA(
        2, **{"kernel": "rbf", "n_jobs": 1, "random_state": seed} | options
    )


def supervised(**options):
    return lambda seed: SupervisedKernelPCA(
        2, **{"kernel": "rbf", "target": "linear", "n_jobs": 1, "random_state": seed} | options
    )


WAYS = {
    "dense": exact(eigen_solver="dense"),
    "auto": exact(),
    "linear": exact(kernel="linear"),
    "poly": exact(kernel="poly", degree=2),
    "cosine": exact(kernel="cosine"),
    "laplacian": exact(kernel="laplacian"),
    "matern": exact(kernel="matern"),
    "median": exact(gamma="median"),
    "krylov": exact(eigen_solver="krylov", tol=1e-9),
    "arpack": exact(eigen_solver="arpack"),
    "randomized": exact(eigen_solver="randomized"),
    "gram-power": exact(eigen_solver="gram-power"),
    "learned inverse": exact(fit_inverse_transform=True),
    "landmarks": exact(basis=Landmarks(6)),
    "features": exact(basis=RandomFeatures(32)),
    "fourier": exact(basis="fourier"),
    "hebbian": lambda seed: HebbianKernelPCA(2, kernel="rbf", random_state=seed, n_jobs=1),
    "stream": lambda seed: StreamingKernelPCA(2, kernel="rbf", budget=20, random_state=seed),
    "mds": lambda seed: ClassicalMDS(2, random_state=seed),
    "city block": lambda seed: ClassicalMDS(2, metric="cityblock", random_state=seed),
    "landmark mds": lambda seed: ClassicalMDS(2, landmarks=5, random_state=seed),
    "spectral": lambda seed: SpectralClustering(2, gamma="median", n_init=2, random_state=seed),
    "novelty": lambda seed: NoveltyDetector(2, random_state=seed),
    "search": lambda seed: KernelPCASearch(n_components=[1, 2], widths=[1.0], random_state=seed),
    "patches": lambda seed: PatchDenoiser(n_components=2, patch_size=3, random_state=seed),
    "supervised": supervised(),
    "supervised variance": supervised(unsupervised=0.3),
    "supervised linear": supervised(kernel="linear"),
    "supervised landmarks": supervised(basis=Landmarks(6)),
    "supervised median": supervised(gamma="median", target="rbf"),
    "cca": lambda seed: KernelCCA(2, kernel="rbf", random_state=seed),
    "linear cca": lambda seed: KernelCCA(2, random_state=seed),
    "landmark cca": lambda seed: KernelCCA(
        2, kernel="rbf", gamma="median", basis=Landmarks(6), random_state=seed
    ),
}
EXACT = ("dense", "auto", "linear", "poly", "cosine", "laplacian", "matern", "median", "krylov")
EXACT += ("arpack",)
DENSE_ONLY = ("mds", "city block", "landmark mds", "novelty", "search", "patches")
DENSE_ONLY += ("learned inverse",)
# Ways that take a target or another view.
TARGETED = tuple(way for way in WAYS if way.startswith("supervised") or way.endswith("cca"))
METHODS = ("transform", "predict", "reconstruction_error", "score_samples", "partial_fit")
METHODS += ("inverse_transform", "denoise")


# Data.


def plain_rows(rng):
    """Ordinary rows, at least a patch wide, of few columns where a grid is to serve them."""
    return rng.standard_normal((int(rng.integers(9, 40)), int(rng.integers(3, 7))))


def as_sparse(rng, X, name):
    """A sparse matrix with explicit zeros, and entries in two parts where the format has such."""
    X = np.where(np.abs(X) > 0.8, X, 0)
    coo = sparse.coo_array(X)
    half = coo.data * rng.uniform(0.2, 0.8, coo.nnz)
    coordinates = tuple(np.r_[one, one] for one in coo.coords)
    split = sparse.coo_array((np.r_[half, coo.data - half], coordinates), X.shape)
    zeros = sparse.csr_array(X.astype(float))
    zeros.data[::3] = 0
    made = {
        "split coo": lambda: (split, split.toarray()),
        "split csr": lambda: (unsummed(split), split.toarray()),
        "zeros": lambda: (zeros, zeros.toarray()),
        "unsorted": lambda: (unsorted(sparse.csr_array(X)), X),
    }
    if name in made:
        return made[name]()
    return getattr(sparse, f"{name}_matrix")(X), X


def unsummed(coo):
    order = np.argsort(coo.coords[0], kind="stable")
    counts = np.bincount(coo.coords[0], minlength=coo.shape[0])
    parts = coo.data[order], coo.coords[1][order], np.r_[0, np.cumsum(counts)]
    return sparse.csr_array(parts, shape=coo.shape)


def unsorted(A):
    for i in range(A.shape[0]):
        row = slice(A.indptr[i], A.indptr[i + 1])
        A.data[row], A.indices[row] = A.data[row][::-1].copy(), A.indices[row][::-1].copy()
    A.has_sorted_indices = False
    return A


SPARSE = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia", "split coo", "split csr", "zeros")
SPARSE += ("unsorted",)


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


FORMS = {
    "bool": lambda X: X > 0,
    "int8": lambda X: np.clip(X * 20, -120, 120).astype(np.int8),
    "int64": lambda X: (X * 1000).astype(np.int64),
    "uint64": lambda X: (np.abs(X) * 1000).astype(np.uint64),
    "float16": lambda X: X.astype(np.float16),
    "long double": lambda X: X.astype(np.longdouble),
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X: X[::-1, ::-1],
    "read-only": read_only,
    "big-endian": lambda X: X.astype(">f8"),
    "list": lambda X: X.tolist(),
    "tuple": lambda X: tuple(map(tuple, X.tolist())),
    "objects": lambda X: X.astype(object),
    "decimals": lambda X: np.vectorize(Decimal, otypes=[object])(X.round(3)),
    "fractions": lambda X: np.vectorize(Fraction, otypes=[object])(X.round(3)),
    "nothing masked": lambda X: np.ma.array(X, mask=False),
    "matrix view": lambda X: np.lib.stride_tricks.as_strided(X.copy(), X.shape),
    "subclass": lambda X: X.view(type("Rows", (np.ndarray,), {})),
}

HARD = {
    "constant": lambda rng, X: np.full_like(X, rng.normal()),
    "zeros": lambda rng, X: np.zeros_like(X),
    "copies": lambda rng, X: X[rng.integers(0, 3, len(X))],
    "two distinct": lambda rng, X: X[rng.integers(0, 2, len(X))],
    "one column": lambda rng, X: X[:, :1],
    "two rows": lambda rng, X: X[:2],
    "four rows": lambda rng, X: X[:4],
    "collinear": lambda rng, X: np.outer(X[:, 0], np.arange(1.0, 1 + X.shape[1])),
    "one outlier": lambda rng, X: np.r_[X[:-1], X[-1:] * 10 ** rng.uniform(1, 300)],
    "offset": lambda rng, X: X + 10 ** rng.uniform(1, 7),
    "huge": lambda rng, X: X * 10 ** rng.uniform(10, 307),
    "tiny": lambda rng, X: X * 10 ** rng.uniform(-320, -10),
    "uneven": lambda rng, X: X * 10 ** rng.uniform(-8, 8, X.shape[1]),
    "a zero row": lambda rng, X: np.r_[X[:-1], np.zeros((1, X.shape[1]))],
    "wide": lambda rng, X: np.hstack([X, rng.standard_normal((len(X), 60))]),
}


def with_cell(X, value):
    X = X.astype(object)
    X[len(X) // 2, X.shape[1] // 2] = value
    return X


WRONG = {
    "masked": lambda X: np.ma.array(X, mask=np.abs(X) > 1.2),
    "dates": lambda X: (X * 1e6).astype("M8[s]"),
    "times": lambda X: (X * 1e6).astype("m8[ms]"),
    "complex": lambda X: X + 1j,
    "complex without imaginary part": lambda X: X.astype(complex),
    "ragged": lambda X: [row[: 1 + i % 2].tolist() for i, row in enumerate(X)],
    "None": lambda X: None,
    "None in a cell": lambda X: with_cell(X, None),
    "None in a list": lambda X: with_cell(X, None).tolist(),
    "a text": lambda X: with_cell(X, "many"),
    "texts": lambda X: np.array([["a", "b"], ["c", "d"], ["e", "f"]]),
    "a date": lambda X: with_cell(X, datetime(2020, 1, 1, tzinfo=UTC)),
    "a dict": lambda X: with_cell(X, {"a": 1}),
    "a list in a cell": lambda X: with_cell(X, [1, 2]),
    "a dict of columns": lambda X: {"a": [1, 2, 3]},
    "a set": lambda X: {1, 2, 3},
    "NaN": lambda X: with_cell(X, np.nan).astype(float),
    "infinity": lambda X: with_cell(X, -np.inf).astype(float),
    "too large for float64": lambda X: X.astype(np.longdouble) * np.longdouble("1e4000"),
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "an empty list": lambda X: [],
    "one dimension": lambda X: X[0],
    "four dimensions": lambda X: X[None, None],
    "a number": lambda X: 3.0,
    "records": lambda X: np.zeros((9, 2), dtype=[("a", float), ("b", float)]),
    "one record field": lambda X: np.zeros((9, 2), dtype=[("a", float)]),
    "sparse NaN": lambda X: sparse.csr_array(with_cell(X, np.nan).astype(float)),
    "sparse complex": lambda X: sparse.csr_array(X + 1j),
}


def rbf_of(x, z):
    return float(np.exp(-np.square(x - z).sum()))


FUNCTIONS = {
    "good": rbf_of,
    "not symmetric": lambda x, z: rbf_of(x, z) * (2 + np.tanh(x[0])),
    "NaN": lambda x, z: np.nan,
    "infinite": lambda x, z: np.inf if (x == z).all() else 0.0,
    "a vector": lambda x, z: x * z,
    "None": lambda x, z: None,
    "a text": lambda x, z: "near",
    "complex": lambda x, z: 1j * rbf_of(x, z),
    "of one row": lambda x: 1.0,
    "negative": lambda x, z: -1.0 - rbf_of(x, z),
}
MATRICES = {
    "good": lambda K: K,
    "not symmetric": lambda K: K + np.triu(np.ones_like(K), 1),
    "NaN": lambda K: with_cell(K, np.nan).astype(float),
    "not square": lambda K: K[:, :-2],
    "negative": lambda K: -1.0 - K,
    "masked": lambda K: np.ma.array(K, mask=K > 0.9),
    "complex": lambda K: K + 0j,
    "near overflow": lambda K: K * 1.7e308,
    "sparse, not symmetric": lambda K: sparse.csr_array(np.triu(K)),
    "one row": lambda K: K[:1, :1],
}
KERNEL_WAYS = {
    "dense": lambda k: KernelPCA(2, kernel=k, eigen_solver="dense"),
    "auto": lambda k: KernelPCA(2, kernel=k),
    "krylov": lambda k: KernelPCA(2, kernel=k, eigen_solver="krylov"),
    "arpack": lambda k: KernelPCA(2, kernel=k, eigen_solver="arpack"),
    "gram-power": lambda k: KernelPCA(2, kernel=k, eigen_solver="gram-power", random_state=0),
    "landmarks": lambda k: KernelPCA(2, kernel=k, basis=Landmarks(6), random_state=0),
    "hebbian": lambda k: HebbianKernelPCA(2, kernel=k, random_state=0),
    "stream": lambda k: StreamingKernelPCA(2, kernel=k, budget=20, random_state=0),
    "spectral": lambda k: SpectralClustering(2, affinity=k, n_init=2, random_state=0),
    "mds": lambda k: ClassicalMDS(2, metric=k),
    "novelty": lambda k: NoveltyDetector(2, kernel=k, random_state=0),
    "supervised": lambda k: SupervisedKernelPCA(2, kernel=k, random_state=0),
    "cca": lambda k: KernelCCA(2, kernel=k, random_state=0),
}


def draw(seed) -> Case:
    """A case; the same for the same seed."""
    rng = np.random.default_rng([16, seed])
    X = plain_rows(rng)
    kind = str(rng.choice(["form", "hard", "wrong", "kernel"], p=[0.25, 0.35, 0.25, 0.15]))
    way = str(rng.choice(list(WAYS)))
    if way == "fourier":
        X = X[:, :2]
    if kind == "kernel":
        return draw_kernel(rng, seed, X)
    if way not in TARGETED:
        return draw_rows(rng, seed, way, kind, X)
    odd = bool(rng.random() < 0.5)
    case = draw_rows(rng, seed, way, kind, X, takes_sparse=not odd or way.endswith("cca"))
    rows = len(case.data) if kind == "hard" else len(X)
    other = X[:rows, :1] + rng.standard_normal((rows, int(rng.integers(1, 4))))
    method = "fit" if odd and kind == "wrong" else case.method
    return replace(case, other=other, odd_target=odd, method=method)


def draw_rows(rng, seed, way, kind, X, takes_sparse=True) -> Case:
    """A case of rows, or of another view of them."""
    if kind == "form":
        takes = way not in DENSE_ONLY and way != "fourier" and takes_sparse
        what = str(rng.choice([*FORMS, *SPARSE] if takes else list(FORMS)))
        data, plain = as_sparse(rng, X, what) if what in SPARSE else (FORMS[what](X), None)
        plain = np.asarray(data, dtype=float) if plain is None else plain
        return Case(seed, way, kind, what, data, plain, later(rng))
    if kind == "hard":
        what = str(rng.choice(list(HARD)))
        with np.errstate(all="ignore"):
            data = HARD[what](rng, X)
        return Case(seed, way, kind, what, data, data)
    what = str(rng.choice(list(WRONG)))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = WRONG[what](X)
    method = str(rng.choice(["fit", *METHODS]))
    return Case(seed, way, kind, what, data, X, method)


def later(rng) -> str:
    return str(rng.choice(METHODS))


def draw_kernel(rng, seed, X) -> Case:
    way = str(rng.choice(list(KERNEL_WAYS)))
    if rng.random() < 0.5:
        what = str(rng.choice(list(FUNCTIONS)))
        return Case(seed, way, "kernel", f"function, {what}", (FUNCTIONS[what], X), X)
    what = str(rng.choice(list(MATRICES)))
    K = np.exp(-np.square(X[:, None] - X[None]).sum(axis=2))
    return Case(seed, way, "kernel", f"matrix, {what}", ("precomputed", MATRICES[what](K)), K)


# Judgment.


class Hang(BaseException):
    pass


@contextmanager
def time_limit():
    def stop(number, frame):
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def complaint(case) -> str:
    """What is wrong with what became of a case; empty if nothing is."""
    judge = {"form": judge_form, "hard": judge_hard, "wrong": judge_wrong, "kernel": judge_kernel}
    try:
        with time_limit(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # A warning of NumPy's is an answer nobody wrote.
            warnings.simplefilter("error", RuntimeWarning)
            return judge[case.kind](case)
    except Hang:
        return f"{case}: not done after {SECONDS} s"
    except Exception as error:
        return f"{case}: {unclear(error) or f'refused: {error}'}"


def unclear(error) -> str:
    """Why an error does not say what was wrong and what to do; empty if it does."""
    text = str(error)
    if not isinstance(error, ValueError | TypeError) or isinstance(error, np.linalg.LinAlgError):
        return f"{type(error).__name__}: {text}"
    if FOREIGN.search(text):
        return f"foreign: {text}"
    return "" if ADVICE.search(text) else f"no advice: {text}"


def results(model, X, method):
    """What a fitted model gives for X, as arrays."""
    found = {}
    for name in ("eigenvalues_", "embedding_", "regularized_correlations_"):
        if name in vars(model):
            found[name] = np.abs(np.asarray(vars(model)[name], dtype=float))
    if isinstance(model, PatchDenoiser):
        found["denoise"] = np.asarray(model.denoise(X), dtype=float)
    elif method != "partial_fit" and method != "inverse_transform" and hasattr(model, method):
        found[method] = np.abs(np.asarray(getattr(model, method)(X), dtype=float))
    return found


def judge_form(case) -> str:
    """The same numbers in another container give the same results."""
    try:
        plain = case.given(case.plain)
        wanted = results(WAYS[case.way](case.seed).fit(*plain), plain[0], case.method)
    except ValueError as error:
        return unclear(error) and f"{case}: {unclear(error)}"
    if case.method == "denoise" and sparse.issparse(case.data):
        return ""
    if case.way == "patches" and case.what in ("list", "objects", "decimals", "fractions"):
        return ""  # a list is a list of images, and pixels are numbers
    odd = case.given(case.data)
    got = results(WAYS[case.way](case.seed).fit(*odd), odd[0], case.method)
    for name in wanted:
        scale = np.abs(wanted[name]).max(initial=1e-300)
        near = got[name].shape == wanted[name].shape and np.allclose(
            got[name], wanted[name], rtol=1e-6, atol=1e-6 * scale
        )
        if not near and not ambiguous(wanted):
            return f"{case}: {name} differs from that of the plain array"
    return ""


def ambiguous(found) -> bool:
    """Whether eigenvalues are so close that vectors are not determined."""
    values = found.get("regularized_correlations_", np.array([3.0, 2.0, 1.0]))
    values = found.get("eigenvalues_", values)
    return bool(np.any(np.abs(np.diff(values)) < 1e-4 * values.max(initial=1e-300)))


def judge_hard(case) -> str:
    """The right answer, or a refusal that says what to do."""
    try:
        model = WAYS[case.way](case.seed).fit(*case.given(case.data))
    except ValueError as error:
        reason = unclear(error)
        return f"{case}: {reason}" if reason else wrongly_refused(case, str(error))
    rows = case.given(case.data)[0]
    for method in METHODS:
        if method in ("inverse_transform", "partial_fit") or not hasattr(model, method):
            continue
        try:
            values = np.asarray(getattr(model, method)(rows), dtype=float)
        except ValueError as error:
            if unclear(error):
                return f"{case}, {method}: {unclear(error)}"
            continue
        if not np.isfinite(values).all():
            return f"{case}, {method}: not finite"
    wrong = wrong_values(case, model)
    given = (np.asarray(data) for data in case.given(case.data))
    if not wrong and (said := wrong_answer(case.way, model, *given)):
        wrong = f"{case}: {said}"
    return wrong


# Refusals of data that are in no way extreme would be easy answers.
EXTREME = (
    "huge",
    "tiny",
    "one outlier",
    "constant",
    "zeros",
    "two rows",
    "four rows",
    "one column",
)
EXTREME += ("uneven", "two distinct", "copies", "collinear", "offset", "wide")


def wrongly_refused(case, message) -> str:
    return "" if case.what in EXTREME else f"{case}: refused: {message}"


def wrong_values(case, model) -> str:
    """Eigenvalues against long double, where the method is exact."""
    kernel = vars(model).get("kernel_")
    truth = true_values(case, kernel.gamma if case.way == "median" else None)
    if truth is None:
        return ""
    values, slack = truth
    got = np.asarray(model.eigenvalues_, dtype=float)
    gap = np.abs(got - np.maximum(values[: len(got)], 0)).max()
    if gap > slack:
        return f"{case}: eigenvalues {got} and truly {values[: len(got)]}"
    return ""


def true_values(case, gamma=None):
    """The leading eigenvalues in long double, and how far off they may be; None if not known."""
    X = case.data.astype(WIDE)
    gamma = WIDE(1) / X.shape[1] if gamma is None else WIDE(gamma)
    if case.way in ("mds", "linear"):
        X = X - X.mean(axis=0)
        return leading(X @ X.T)
    L1 = np.abs(X[:, None] - X[None]).sum(axis=2)
    if case.way == "city block":
        return leading(-np.square(L1) / 2)
    if case.way in ("dense", "auto", "krylov", "arpack", "learned inverse", "median"):
        return leading(np.exp(-gamma * np.square(X[:, None] - X[None]).sum(axis=2)))
    if case.way == "laplacian":
        return leading(np.exp(-gamma * L1))
    if case.way == "poly":
        return leading((gamma * (X @ X.T) + 1) ** 2)
    if case.way == "cosine":
        norms = np.sqrt(np.square(X).sum(axis=1))
        X = X / np.where(norms > 0, norms, WIDE(1))[:, None]
        return leading(X @ X.T)
    return None


def leading(K):
    """Eigenvalues of a centered matrix, largest first, and how far off a fit may be.

    Centering takes differences of entries, which rounding leaves with a share of the largest one.
    """
    A = K - K.mean(axis=0)
    A = A - A.mean(axis=1)[:, None]
    unit = np.abs(A).max()
    if not unit > 0:
        return np.zeros(len(A)), 1e-9
    values = np.linalg.eigvalsh(np.asarray(A / unit, dtype=float))[::-1] * unit
    slack = len(A) * (1e-9 * unit + 1e-13 * np.abs(K).max())
    return np.asarray(values, dtype=float), float(slack)


def judge_wrong(case) -> str:
    """Refused, by fit or by a method of a model fitted to plain rows."""
    model = WAYS[case.way](case.seed)
    if allowed(case):
        return ""
    plain = case.plain
    if case.method != "fit":
        if not hasattr(type(model), case.method):
            return ""
        try:
            model.fit(*case.given(plain))
        except ValueError as error:
            return unclear(error) and f"{case}: {unclear(error)}"
    try:
        getattr(model, case.method)(
            *(case.given(case.data) if case.method == "fit" else [case.data])
        )
    except (ValueError, TypeError) as error:
        reason = unclear(error)
        return f"{case}: {reason}" if reason else ""
    except AttributeError as error:
        return (
            "" if "no attribute" in str(error) and not hasattr(model, case.method) else str(error)
        )
    return f"{case}: accepted"


def allowed(case) -> bool:
    """Rows that a method does take: an image of three dimensions, an empty batch of a stream."""
    empty = case.what == "no rows" and case.method == "partial_fit"
    return empty or (case.way == "patches" and case.what in ("one dimension", "a number"))


def judge_kernel(case) -> str:
    """Good ones are accepted, wrong ones refused in words."""
    kernel, data = case.data
    model = KERNEL_WAYS[case.way](kernel)
    beside = [np.linspace(0, 1, data.shape[0])] if case.way in TARGETED else []
    try:
        model.fit(data, *beside)
    except (ValueError, TypeError) as error:
        if unclear(error):
            return f"{case}: {unclear(error)}"
        good = case.what.endswith("good") and kernel != "precomputed" and case.way != "mds"
        return f"{case}: refused: {error}" if good else ""
    if case.what.endswith(("good", "negative", "near overflow")):
        return ""
    return f"{case}: accepted"
