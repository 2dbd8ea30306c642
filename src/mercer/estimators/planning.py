"""What each method would cost, told before a fit."""

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from ..bases.fourier import MOST_COLUMNS
from ..fitting.choosing import NEARLY, NONE, ONLY, Plan, choose, measured
from ..fitting.costs import fourier
from ..fitting.task import MEASURED_ROWS, FitTask, components_problem
from ..kernels import KERNELS, Kernel, Precomputed
from ..rows import ArrayRows
from .kernel_pca import KernelPCA

# Bases that "auto" may take for rows of which only the shape is known.
CANDIDATES = frozenset(("columns", "landmarks"))


def plan(
    X: Any,
    n_components: int | None = 16,
    *,
    kernel: str | Kernel = "rbf",
    memory: int | str | None = None,
    device: Any = None,
    tol: float = 0.0,
    n_jobs: int | None = None,
) -> Plan:
    """What each method of kernel PCA would cost for given data, the best one marked.

    The method marked is the one that ``KernelPCA(basis="auto")`` takes for the same arguments.
    Measures the speed of this machine for a moment; the data are not decomposed.

    Parameters
    ----------
    X : the rows, as in `KernelPCA.fit`, or their shape (n, d)
        Files that `fit` would read in blocks are not read. For rows on a cluster the plan says
        what serves there, and what can be done with the model after.
    n_components : int or None
        None for all.
    kernel : str or Kernel
    memory : int, str or None
        Byte budget, as in `KernelPCA`.
    device : None, str or torch.device
        Where to compute, as in `KernelPCA`. Speeds of this machine are measured, those of a
        GPU and of a cluster are typical ones.
    tol : float
    n_jobs : int or None
        Threads; None for all cores.

    Returns
    -------
    Plan
        With a table as its repr; ``plan.method`` is the recommended method.

    Examples
    --------
    >>> import mercer
    >>> mercer.plan((100_000, 54), n_components=16, memory="2GB").method
    'krylov, matrix-free'
    """
    if n_components is not None and not (isinstance(n_components, Integral) and n_components > 0):
        raise ValueError(
            f"n_components={n_components!r}: plan needs a number of components, at least 1, or "
            "None for all. The number that holds a share of the variance is known after a fit only."
        )
    if isinstance(kernel, str):
        if kernel not in KERNELS:
            raise ValueError(f"kernel={kernel!r} is unknown. Choose one of {sorted(KERNELS)}.")
        kernel = KERNELS[kernel]()
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"kernel={kernel!r} is neither a name nor an object of mercer.kernels, and what a "
            "function costs is not known. Plan for a kernel like it."
        )
    resources = {"memory": memory, "device": device, "n_jobs": n_jobs}
    estimator = KernelPCA(n_components, kernel=kernel, tol=tol, copy_X=False, **resources)
    if isinstance(X, tuple):
        return _with_rivals(_plan_of_shape(X, kernel, estimator))
    with estimator._task(X, looks=False) as task:
        if task.rows.shape[0] is None:
            raise ValueError(
                "plan needs the number of rows, and X has unknown lengths. Give the shape, "
                "plan((n, d)), or count the rows first, those of a Dask array with "
                "X.compute_chunk_sizes()."
            )
        chosen = choose(task, listing=True)
        if task.array is not None and task.engine.where == "cpu":
            sample = task.pilot[:MEASURED_ROWS]
            chosen = measured(chosen, task.kernel, sample, task.engine)
    return _with_rivals(chosen)


def _plan_of_shape(shape, kernel: Kernel, estimator: KernelPCA) -> Plan:
    """The plan for rows in the unit cube; the range of no data is known, so no grid is taken."""
    if len(shape) != 2 or not all(isinstance(k, Integral) and int(k) > 0 for k in shape):
        raise ValueError(
            f"plan takes rows or their shape (n, d), at least one row and column, and got {shape}."
        )
    n, d = (int(k) for k in shape)
    sample = np.random.default_rng(0).random((MEASURED_ROWS, d))
    kernel, engine = kernel.resolve(sample), estimator._make_engine()
    r, points = estimator.n_components, np.broadcast_to(sample[0], (n, d))
    asked = None if r is None else min(n, int(r))
    candidates = frozenset() if isinstance(kernel, Precomputed) else CANDIDATES
    what = ArrayRows(points), points, kernel, "auto", "auto", asked, engine
    how = np.random.default_rng(0), None, components_problem
    task = FitTask(*what, *how, tol=float(estimator.tol), candidates=candidates)
    chosen = choose(task, listing=True)
    if d <= MOST_COLUMNS:
        grid = fourier(chosen.workload, kernel, np.ones(d), engine)
        note = f"{grid.note}; for data in the unit cube" if grid.fits else grid.note
        chosen = chosen.with_estimate(replace(grid, note=note))
    return measured(chosen, kernel, sample, engine) if engine.where == "cpu" else chosen


def _with_rivals(chosen: Plan) -> Plan:
    """The plan with the other exact methods named, where it is said to be the only one."""
    exact = [e.method for e in chosen.estimates if e.fits and not e.approximate]
    rivals = [method for method in exact if method not in (*NEARLY, chosen.method)]
    if not rivals or chosen.reason not in (ONLY, NONE):
        return chosen
    but = "but for" if chosen.reason == NONE else "beside"
    return replace(chosen, reason=f"{chosen.reason}, {but} {' and '.join(rivals)}")
