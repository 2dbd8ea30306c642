"""Run an unchanged scikit-learn program with the estimators of mercer.

``python -m mercer.accel script.py`` and, in a notebook, ``%load_ext mercer.accel`` put subclasses
of scikit-learn's KernelPCA, Nystroem, SpectralClustering, SpectralEmbedding and ClassicalMDS in
their place, which fit here and fall back to scikit-learn for what mercer refuses. At the end a
table says what was replaced, how long it took and what the certificates say. With ``--compare``
scikit-learn runs too, and the table has its times beside ours.

scikit-learn's MDS minimizes a stress by iteration, which nothing here does; its classical start
(``init="classical_mds"``) is replaced.
"""

import atexit
import runpy
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from . import estimators
from ._tables import text_table
from .exceptions import to_stderr

# scikit-learn's estimators by the package that has them.
PEERS = {
    "KernelPCA": "sklearn.decomposition",
    "Nystroem": "sklearn.kernel_approximation",
    "SpectralClustering": "sklearn.cluster",
    "SpectralEmbedding": "sklearn.manifold",
    "ClassicalMDS": "sklearn.manifold",  # of scikit-learn 1.8 and later
}
HEADS = ["estimator", "fits", "rows", "seconds", "scikit-learn", "certificate"]


@dataclass(frozen=True)
class Fit:
    """A fit that ran: seconds here and in scikit-learn, NaN if not run, and the certificate."""

    name: str
    rows: int
    seconds: float
    peer_seconds: float
    words: str


DONE: list[Fit] = []
COMPARES: list[bool] = []


class Replaced:
    """A base of the subclasses that replace scikit-learn's estimators.

    Attributes
    ----------
    fitted_here : estimator
        Of mercer; or of scikit-learn if mercer refused.
    """

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit with mercer, or with scikit-learn if mercer refuses."""
        kind: Any = type(self)
        name, (_, _, peer, *_) = kind.__name__, kind.__mro__
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        count = np.shape(X)[0]
        # scikit-learn's affinities of single precision are computed in double, and rounded.
        rounds = name == "SpectralEmbedding" and is_single(X)
        try:
            estimator, seconds = timed(served(name, params), X.astype(float) if rounds else X)
        except (ValueError, TypeError) as refusal:
            estimator, seconds = timed(peer(**params), X)
            DONE.append(Fit(name, count, np.nan, seconds, f"refused here: {refusal}"[:100]))
        else:
            if name == "SpectralClustering" and params["verbose"]:
                print(f"Computing label assignment using {params['assign_labels']}")
            other = timed(peer(**params), X)[1] if COMPARES else np.nan
            certificate = vars(estimator).get("certificate_")
            lines = [] if certificate is None else certificate.summary()[2:4]
            words = "; ".join(f"{key} {text}" for key, text in lines) or "none"
            DONE.append(Fit(name, count, seconds, other, words))
        settings = {key: value for key, value in vars(self).items() if not key.endswith("_")}
        fitted = {key: value for key, value in vars(estimator).items() if key.endswith("_")}
        if rounds:
            fitted["embedding_"] = fitted["embedding_"].astype(np.float32)
        self.__dict__ = settings | fitted | {"fitted_here": estimator}
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "fitted_here" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = attrgetter(name)(self.fitted_here)
        if name == "affinity_matrix_" and is_single(vars(self).get("embedding_")):
            return value.astype(np.float32)
        return value


def is_single(X: Any) -> bool:
    """Whether X is an array or a sparse matrix of single precision."""
    return (isinstance(X, np.ndarray) or issparse(X)) and X.dtype == np.float32


def served(name: str, params: dict[str, Any]) -> Any:
    """Our estimator of that name with scikit-learn's parameters."""
    if name == "ClassicalMDS":
        params = params | {"dissimilarity": params["metric"], "metric": None}
    if name == "SpectralEmbedding" and callable(params["affinity"]):
        raise ValueError("affinity is a function of all rows at once")
    if name.startswith("Spectral"):
        # Our names and values for what scikit-learn calls otherwise.
        tol, solver = params["eigen_tol"], params["eigen_solver"]
        params = {key: value for key, value in params.items() if key != "eigen_tol"}
        params |= {"neighbor_weights": "uniform", "eigen_solver": solver or "auto"}
        params |= {} if tol == "auto" else {"tol": tol}
    return attrgetter(name)(estimators)(**params)


def timed(estimator: Any, X: Any) -> tuple[Any, float]:
    """The estimator, fitted, and the seconds that it took."""
    start = time.perf_counter()
    return estimator.fit(X), time.perf_counter() - start


def either(name: str) -> Any:
    """A method of what was fitted."""

    def method(self, *args: Any, **more: Any) -> Any:
        check_is_fitted(self)
        return methodcaller(name, *args, **more)(self.fitted_here)

    method.__name__ = name
    return method


def fit_transform(self: Any, X: Any, y: Any = None) -> Any:
    """Fit, and the scores or coordinates of X."""
    self.fit(X)
    return self.embedding_ if "embedding_" in vars(self) else self.transform(X)


def fit_predict(self: Any, X: Any, y: Any = None) -> Any:
    """Fit, and the clusters of X."""
    return self.fit(X).labels_


def replaced(name: str, peer: Any) -> type:
    """The subclass of a class of scikit-learn."""
    members: dict[str, Any] = {"__module__": __name__, "__doc__": peer.__doc__, "fit": Replaced.fit}
    members |= {key: either(key) for key in ("transform", "inverse_transform") if key in dir(peer)}
    for function in (fit_transform, fit_predict):
        if function.__name__ in dir(peer):
            members[function.__name__] = function
    return type(name, (Replaced, peer), {"__init__": peer.__init__} | members)


def swap(name: str, old: type, new: type) -> None:
    """Put one class in the place of another in all modules of scikit-learn that have it."""
    for module in [*sys.modules.values()]:
        if module.__name__.startswith("sklearn") and vars(module).get(name) is old:
            setattr(module, name, new)


def install() -> None:
    """Put the replacements where programs import scikit-learn's estimators from."""
    for name, package in PEERS.items():
        peer = vars(import_module(package)).get(name)
        if peer is not None and not issubclass(peer, Replaced):
            globals()[name] = replaced(name, peer)
            swap(name, peer, globals()[name])
    atexit.register(report)


def uninstall() -> None:
    """Give scikit-learn its own estimators back."""
    for name, package in PEERS.items():
        ours = vars(import_module(package)).get(name)
        if ours is not None and issubclass(ours, Replaced):
            swap(name, ours, ours.__mro__[2])
    atexit.unregister(report)


def report() -> None:
    """Say on stderr what was replaced; once."""
    if DONE:
        # A line for each estimator, and for each reason why one was refused.
        groups: dict[tuple[str, str], list[Fit]] = {}
        for fit in DONE:
            reason = fit.words if np.isnan(fit.seconds) else ""
            groups.setdefault((fit.name, reason), []).append(fit)
        lines = [summed(fits) for fits in groups.values()]
        to_stderr(f"mercer.accel: what ran here\n{text_table(HEADS, lines)}")
        if not COMPARES:
            to_stderr("to measure the speedup, add --compare")
    DONE.clear()


def summed(fits: list[Fit]) -> list[str]:
    """The line of the table for some fits: seconds of all, the certificate of the longest."""
    rows = sorted({fit.rows for fit in fits})
    sizes = f"{rows[0]:,}" if len(rows) == 1 else f"{rows[0]:,} to {rows[-1]:,}"
    here, there = sum(fit.seconds for fit in fits), sum(fit.peer_seconds for fit in fits)
    times = ["" if np.isnan(here) else f"{here:.3g}"]
    times.append("not run" if np.isnan(there) else f"{there:.3g}")
    longest = max(fits, key=lambda fit: fit.seconds).words
    same = all(fit.words == longest for fit in fits)
    return [fits[0].name, str(len(fits)), sizes, *times, longest if same else f"longest: {longest}"]


def load_ipython_extension(ipython: Any) -> None:
    """For ``%load_ext mercer.accel``."""
    install()


def unload_ipython_extension(ipython: Any) -> None:
    """For ``%unload_ext mercer.accel``, which reports."""
    report()
    uninstall()


def main(words: list[str]) -> None:
    """Run a script: ``[--compare] script.py [its arguments]``."""
    if words[:1] == ["--compare"]:
        words = words[1:]
        COMPARES.append(True)
    if not words or words[0].startswith("-"):
        raise SystemExit("usage: python -m mercer.accel [--compare] script.py [arguments]")
    sys.argv = words
    install()
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    # The classes must live in the module of this name, or pickles of them could not be read.
    import_module("mercer.accel").main(sys.argv[1:])
