"""Methods by name: from the options of a command line to an estimator."""

from argparse import ArgumentParser, Namespace
from typing import Any

from .failures import UsageError
from .messages import verbosity
from .options import add_components, components, positive, whole
from .registries import BASIS_NAMES, KERNEL_NAMES, SELECTOR_NAMES, SOLVER_NAMES
from .suggestions import did_you_mean

# Methods that are no name of a registry: the library's choice, exact by the best solver, and
# learning sample by sample.
AUTO, EXACT, HEBBIAN = "auto", "exact", "hebbian"
METHODS = (AUTO, EXACT, *SOLVER_NAMES, *BASIS_NAMES, HEBBIAN)


def add_method(parser: ArgumentParser) -> None:
    """The method and its settings."""
    add_components(parser, components, 16, "components, or a share of variance such as 0.95")
    group = parser.add_argument_group("method")
    group.add_argument(
        "--method",
        choices=METHODS,
        default="auto",
        metavar="NAME",
        help="%(choices)s (default: auto, which is exact where the table fits in memory)",
    )
    add_sizes(group)
    group.add_argument(
        "--passes", type=whole(1), metavar="N", help="at most, of methods that iterate"
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
    if args.passes and not iterates(method):
        able = ", ".join(name for name in METHODS if iterates(name))
        raise UsageError(f"--passes is for --method {able}, and not for {method}.")
    if method in (HEBBIAN, "fourier") and vars(args).get("target") is not None:
        raise UsageError(f"--target is not for --method {method}.")
    if method == HEBBIAN and not isinstance(args.components, int):
        raise UsageError("--method hebbian needs a number of components, not a share.")
    return method


def iterates(method: str) -> bool:
    """Whether the passes of a method can be limited."""
    if method not in SOLVER_NAMES:
        return method == HEBBIAN
    return SOLVER_NAMES.load()[method]().cap(1).most_passes is not None


def make_model(args: Namespace, method: str):
    """The estimator of a method, not fitted."""
    from .. import HebbianKernelPCA, KernelPCA, SupervisedKernelPCA

    settings = {
        "kernel": args.kernel,
        "gamma": width(args),
        "degree": args.degree,
        "coef0": args.coef0,
        "tol": args.tol,
        "copy_X": False,
        "device": args.device,
        **budget_of(args),
    }
    if method == HEBBIAN:
        passes = {} if args.passes is None else {"n_passes": args.passes}
        return HebbianKernelPCA(args.components, **passes, **settings)
    settings |= parts(args, method) | {"max_iter": args.passes}
    if vars(args).get("target") is not None:
        return SupervisedKernelPCA(args.components, unsupervised=args.unsupervised, **settings)
    return KernelPCA(args.components, **settings)


def parts(args: Namespace, method: str) -> dict:
    """The basis and the solver of a method."""
    if method in BASIS_NAMES:
        return {"basis": BASIS_NAMES.load()[method](**basis_settings(args, method))}
    basis = "auto" if method == AUTO else "points"
    return {"basis": basis, "eigen_solver": method if method in SOLVER_NAMES else "auto"}


def basis_settings(args: Namespace, method: str) -> dict:
    """The size of an approximate basis, and how its landmarks are chosen."""
    if method == "landmarks":
        return {"size": args.landmarks, "selector": make_selector(args.selector)}
    return {"size": args.features} if method == "features" and args.features else {}


def make_selector(name: str | None):
    """A selector with its defaults, by the name of its class."""
    if name is None:
        return None
    known = {known.lower(): known for known in SELECTOR_NAMES}
    if name.lower() not in known:
        raise UsageError(
            f"--selector {name} is unknown.{did_you_mean(name, SELECTOR_NAMES)} Choose one of "
            f"{', '.join(SELECTOR_NAMES)}."
        )
    return SELECTOR_NAMES.load()[known[name.lower()]]()


def width(args: Namespace) -> float | str | None:
    """Gamma as the estimators take it."""
    if args.gamma == "auto":
        return "median" if KERNEL_NAMES.load()[args.kernel].measures_distance else None
    return None if args.gamma == "columns" else args.gamma


def budget_of(args: Namespace) -> dict[str, Any]:
    """The parameters of every estimator that the options of `add_budget` stand for."""
    return {
        "random_state": args.seed,
        "memory": args.memory,
        "n_jobs": args.threads,
        "verbose": verbosity(args),
    }


def affinity_of(args: Namespace) -> dict[str, Any]:
    """The parameters of the spectral estimators that the options of `add_affinity` stand for."""
    from ..bases import Landmarks

    found: dict[str, Any] = {
        "affinity": args.kernel,
        "gamma": width(args),
        "degree": args.degree,
        "coef0": args.coef0,
        "basis": "auto" if args.landmarks is None else Landmarks(args.landmarks),
    }
    if args.neighbors is not None:
        found |= {"affinity": "nearest_neighbors", "n_neighbors": args.neighbors}
    return found
