"""Methods by name: from the options of a command line to an estimator."""

from argparse import ArgumentParser, Namespace

from .failures import UsageError
from .messages import verbosity
from .options import add_components, components, positive, whole

# Exact methods by the solver they ask for.
SOLVERS = {
    "auto": "auto",
    "exact": "auto",
    "dense": "dense",
    "krylov": "krylov",
    "gram-power": "gram-power",
}
METHODS = (*SOLVERS, "landmarks", "features", "hebbian")
# Methods whose passes can be limited.
PASSES = ("krylov", "hebbian")
# Kernels of a distance, whose width the median distance settles.
MEDIAN_KERNELS = {"rbf", "laplacian", "matern", "rational_quadratic"}


def add_method(parser: ArgumentParser) -> None:
    """The method and its settings."""
    add_components(parser, components, 16, "components, or a share of variance such as 0.95")
    group = parser.add_argument_group("method")
    group.add_argument(
        "--method",
        choices=METHODS,
        default="auto",
        metavar="NAME",
        help=f"{', '.join(METHODS)} (default: auto, which is exact where the table fits in memory)",
    )
    add_sizes(group)
    group.add_argument(
        "--passes", type=whole(1), metavar="N", help="at most, of krylov and hebbian"
    )
    group.add_argument(
        "--tol", type=positive, default=0.0, metavar="T", help="largest residual, such as 1e-6"
    )


def add_sizes(group) -> None:
    """How large an approximate basis is."""
    group.add_argument("--landmarks", type=whole(1), metavar="M", help="number of landmarks")
    group.add_argument(
        "--selector", metavar="NAME", help="how landmarks are chosen, such as KMeans or Uniform"
    )
    group.add_argument("--features", type=whole(2), metavar="M", help="number of random features")


def settle_method(args: Namespace) -> str:
    """The method asked for; a number of landmarks or features asks for that one."""
    method = args.method
    if method == "auto" and (args.landmarks or args.selector):
        method = "landmarks"
    elif method == "auto" and args.features:
        method = "features"
    if (args.landmarks or args.selector) and method != "landmarks":
        raise UsageError(f"--landmarks and --selector are not for --method {method}.")
    if args.features and method != "features":
        raise UsageError(f"--features is not for --method {method}.")
    if args.passes and method not in PASSES:
        raise UsageError(f"--passes is for --method {' and '.join(PASSES)}, and not for {method}.")
    if method == "hebbian" and not isinstance(args.components, int):
        raise UsageError("--method hebbian needs a number of components, not a share.")
    return method


def make_model(args: Namespace, method: str):
    """The estimator of a method, not fitted."""
    from .. import HebbianKernelPCA, KernelPCA

    settings = {
        "kernel": args.kernel,
        "gamma": width(args),
        "degree": args.degree,
        "coef0": args.coef0,
        "tol": args.tol,
        "random_state": args.seed,
        "copy_X": False,
        "memory": args.memory,
        "n_jobs": args.threads,
        "device": args.device,
        "verbose": verbosity(args),
    }
    if method == "hebbian":
        passes = {} if args.passes is None else {"n_passes": args.passes}
        return HebbianKernelPCA(args.components, **passes, **settings)
    settings |= parts(args, method) | {"max_iter": args.passes}
    return KernelPCA(args.components, **settings)


def parts(args: Namespace, method: str) -> dict:
    """The basis and the solver of a method."""
    from ..bases import Landmarks, RandomFeatures

    if method == "landmarks":
        return {"basis": Landmarks(args.landmarks, make_selector(args.selector))}
    if method == "features":
        size = {} if args.features is None else {"size": args.features}
        return {"basis": RandomFeatures(**size)}
    basis = "auto" if method == "auto" else "points"
    return {"basis": basis, "eigen_solver": SOLVERS[method]}


def make_selector(name: str | None):
    """A selector with its defaults, by the name of its class."""
    from ..selectors import SELECTORS

    if name is None:
        return None
    known = {known.lower(): selector for known, selector in SELECTORS.items()}
    if name.lower() not in known:
        raise UsageError(f"--selector {name} is unknown. Choose one of {', '.join(SELECTORS)}.")
    return known[name.lower()]()


def width(args: Namespace) -> float | str | None:
    """Gamma as the estimators take it."""
    if args.gamma == "auto":
        return "median" if args.kernel in MEDIAN_KERNELS else None
    return None if args.gamma == "columns" else args.gamma
