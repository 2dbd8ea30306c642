"""Answers of fitted models against long double, up to what their certificates leave open.

`wrong_answer(way, model, X, y)` is the first thing that a model says of its own training rows and
that is not so: statements of the certificate, scores, reconstruction errors, orthogonality,
eigenvalues of a clustering, correlations of views, and rows that come back from scores. An empty
string where all is right.
"""

import numpy as np
from fuzz import FORMULAS, WIDE, Problem, false_statements_of, truth_of

from mercer import HebbianKernelPCA, KernelCCA, NoveltyDetector, SpectralClustering
from mercer.bases import ColumnBasis
from mercer.compute import to_numpy

KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "cosine": {"kernel": "cosine"},
    "laplacian": {"kernel": "laplacian"},
    "matern": {"kernel": "matern", "kernel_params": {"nu": 1.5}},
}
KINDS = ("landmarks", "features", "fourier", "hebbian", "stream")
# Kinds whose scores are inner products with unit vectors of feature space itself.
TRUE_SCORES = ("exact", "columns", "landmarks", "stream")
# Beyond this angle between computed and true directions, vectors say nothing about each other.
LARGEST_ANGLE = 0.05
# Widths of the data by which a pre-image may leave their box.
OUTSIDE = 10.0
ROUNDING_OF_SCORES = 1e-5


def wrong_answer(way, model, X, y=None) -> str:
    """What is wrong with a model of rows X, which `way` to fit made."""
    if isinstance(model, KernelCCA):
        return wrong_correlations(way, model, X, y)
    if isinstance(model, NoveltyDetector):
        return wrong_novelty(X, model)
    if isinstance(model, SpectralClustering):
        return wrong_clusters(X, model)
    if not {"certificate_", "expansion_"} <= vars(model).keys():
        return ""
    if isinstance(model.get_params().get("target"), str) and model.target != "linear":
        return ""
    problem, exact = true_problem(way, X, model, y)
    if not np.isfinite(exact.values).all():
        return ""  # beyond float64
    found = false_statements_of(problem, model, exact)
    found += wrong_scores(problem, model, exact)
    found += not_orthogonal(model) + wrong_rows_back(X, model)
    return found[0] if found else ""


def true_problem(way, X, model, y=None):
    """The problem that a model solved, and its exact answer."""
    kind = way if way in KINDS else "exact"
    if isinstance(model.expansion_.basis, ColumnBasis):
        kind = "columns"
    options = {"tol": vars(model).get("tol", 0.0)}
    if y is not None:
        kind = "supervised"
        options |= {"unsupervised": model.unsupervised, "basis": model.basis}
    kernel = dict(KERNELS.get(way.split()[-1], {"kernel": "rbf"}))
    problem = Problem(0, X, kernel, kind, options, len(model.eigenvalues_), target=y)
    return problem, truth_of(problem, model)


def wrong_scores(problem, model, exact) -> list[str]:
    """Scores of the training rows: those of the true vectors, and their moments the eigenvalues."""
    if problem.estimator not in TRUE_SCORES or model.certificate_.kind != "bound":
        return []
    S = np.asarray(to_numpy(model.transform(problem.X)), dtype=float)
    values = np.asarray(model.eigenvalues_, dtype=float)
    top, error = max(float(values.max(initial=0)), 1e-300), own_error(problem, model, exact)
    moments = S.T @ S
    gaps = np.abs(moments - np.diag(values))
    if np.any(gaps > 4 * (error[:, None] + error) + 1e-8 * top):
        return [f"moments of scores {np.diag(moments)} and eigenvalues {values}"]
    if problem.estimator in ("landmarks", "stream"):
        return []
    found = wrong_vectors(S, values, error, exact)
    return found or wrong_errors(problem, model, S, exact)


def own_error(problem, model, exact):
    """How far eigenvalues may be off by rounding and residuals, (r,); a span leaves out more."""
    values, certificate = model.eigenvalues_, model.certificate_
    error = np.maximum(values - certificate.eigenvalue_lower, 0)
    if problem.estimator in ("exact", "columns"):
        error = np.maximum(error, certificate.eigenvalue_upper - values)
        error = np.maximum(error, 0.0 if certificate.residuals is None else certificate.residuals)
    return error + exact.slack


def wrong_vectors(S, values, error, exact) -> list[str]:
    """Scores against the true ones, up to sign, where the eigenvalue has room around it."""
    unit = np.abs(exact.matrix).max()
    if not unit > 0:
        return []
    A = np.asarray(exact.matrix / unit, dtype=float)
    U = np.linalg.eigh(A)[1][:, ::-1]
    for i, value in enumerate(values):
        others = np.delete(exact.values, i)
        angle = error[i] / max(np.abs(others - exact.values[i]).min(initial=np.inf), 1e-300)
        if angle > LARGEST_ANGLE or value <= 100 * error[i]:
            continue
        wanted = np.sqrt(value) * U[:, i]
        gap = min(np.abs(S[:, i] - wanted).max(), np.abs(S[:, i] + wanted).max())
        if gap > 4 * np.sqrt(value) * (angle + error[i] / value) + 1e-8 * np.sqrt(value):
            return [f"scores {i} are off by {gap:.2e} of {np.sqrt(value):.2e}, angle {angle:.0e}"]
    return []


def wrong_errors(problem, model, S, exact) -> list[str]:
    """Reconstruction errors of the training rows: what scores leave of their squared norms."""
    errors = np.asarray(model.reconstruction_error(problem.X), dtype=float)
    norms = np.asarray(np.diagonal(exact.matrix), dtype=float)
    gap = np.abs(errors - np.maximum(norms - (S * S).sum(axis=1), 0)).max()
    # Norms are differences of kernel values.
    rounding = 1e-13 * len(errors) * float(np.abs(to_numpy(model.kernel_.diag(problem.X))).max())
    if errors.min() < 0 or gap > 10 * exact.slack + rounding + 1e-7 * max(norms.max(), 0):
        return [f"reconstruction errors are off by {gap:.2e} of {norms.max():.2e}"]
    return []


def not_orthogonal(model) -> list[str]:
    """Directions of a Hebbian fit have unit length and right angles."""
    if not isinstance(model, HebbianKernelPCA):
        return []
    metric = np.asarray(to_numpy(model.expansion_.metric))[1:, 1:]
    some = np.asarray(model.eigenvalues_) > 1e-6 * max(float(model.eigenvalues_[0]), 1e-300)
    gap = np.abs(metric[np.ix_(some, some)] - np.eye(int(some.sum()))).max(initial=0.0)
    return [f"directions are {gap:.1e} from orthonormal"] if not gap <= 1e-5 else []


def wrong_rows_back(X, model) -> list[str]:
    """Pre-images of the scores are finite rows that are not far outside the data."""
    try:
        back = np.asarray(model.inverse_transform(model.transform(X)), dtype=float)
    except ValueError:
        return []  # judged by its words elsewhere
    if model.get_params().get("fit_inverse_transform"):
        # A ridge towards zero, as scikit-learn has it: far from the origin it comes back short.
        return [] if np.isfinite(back).all() else ["inverse_transform: not finite"]
    low, high = X.min(axis=0), X.max(axis=0)
    # Rounding of rows far from the origin, and columns that do not vary.
    room = OUTSIDE * (high - low) + 1e-6 * (np.abs(X).max() + (high - low).max())
    if not np.isfinite(back).all():
        return ["inverse_transform: not finite"]
    if np.any(back < low - room) or np.any(back > high + room):
        out = np.maximum(low - back, back - high).max()
        return [f"inverse_transform: {out:.2e} outside of the data, which are {high - low} wide"]
    return []


def wrong_novelty(X, model) -> str:
    """Scores are minus the reconstruction errors, and what is below the offset is novel."""
    kept = X[np.asarray(model.kept_)]
    wrong = wrong_answer("rbf", model.model_, kept)
    if wrong:
        return f"model_: {wrong}"
    scores = np.asarray(model.score_samples(X))
    errors = np.asarray(model.model_.reconstruction_error(X))
    if np.abs(scores + errors).max() > 1e-9 * max(np.abs(errors).max(), 1e-300):
        return "score_samples is not minus the reconstruction error"
    called = np.where(np.asarray(model.decision_function(X)) < 0, -1, 1)
    return (
        "" if np.array_equal(called, model.predict(X)) else "predict and decision_function differ"
    )


def wrong_clusters(X, model) -> str:
    """Eigenvalues of the normalized affinities without their diagonal, and labels of clusters."""
    labels = np.asarray(model.labels_)
    if labels.shape != (len(X),) or not set(labels.tolist()) <= set(range(model.n_clusters)):
        return f"labels {sorted(set(labels.tolist()))} of {model.n_clusters} clusters"
    K = FORMULAS["rbf"](X.astype(WIDE), WIDE(model.kernel_.gamma), {})
    np.fill_diagonal(K, 0)
    degrees = K.sum(axis=1)
    if degrees.min() < np.finfo(float).tiny:
        return ""
    A = np.asarray(K / np.sqrt(np.outer(degrees, degrees)), dtype=float)
    values = np.linalg.eigvalsh(A)[::-1]
    got = np.asarray(model.eigenvalues_, dtype=float)
    gap = np.abs(got - values[: len(got)]).max()
    # Distances lose the digits that a far origin takes.
    far = np.abs(X - np.median(X, axis=0)).max() / max(np.ptp(X, axis=0).max(), 1e-300)
    return f"eigenvalues {got} and truly {values[: len(got)]}" if gap > 1e-4 * max(far, 1) else ""


def wrong_correlations(way, model, X, Y) -> str:
    """Regularized correlations against their definition, and scores that have the correlations.

    With ``K = U D U'`` of each view these are the singular values of ``F U' V G``, where
    ``F = sqrt(D / (D + c tr D))``.
    """
    S, T = (np.asarray(part, dtype=float) for part in model.transform(X, Y))
    if not (np.isfinite(S).all() and np.isfinite(T).all()):
        return "scores are not finite"
    found, stated = np.mean(S * T, axis=0), np.asarray(model.correlations_)
    # Of directions that hardly vary, scores are rounding.
    if np.abs(found - stated).max() > ROUNDING_OF_SCORES:
        return f"scores have correlations {found} and {stated} are stated"
    if way.startswith("landmark"):
        return ""
    name = "linear" if way.startswith("linear") else "rbf"
    left, right = (
        view_factor(name, rows, kernel, model.regularization)
        for rows, kernel in ((X, model.kernel_), (Y, model.kernel_y_))
    )
    wanted = np.linalg.svd(left.T @ right, compute_uv=False)
    wanted = np.append(wanted, [0.0, 0.0])
    got = np.asarray(model.regularized_correlations_)
    gap = np.abs(got - wanted[: len(got)]).max()
    return f"correlations {got} and truly {wanted[: len(got)]}" if gap > 1e-5 else ""


def view_factor(name, X, kernel, regularization):
    """U sqrt(D / (D + c tr D)) of the centered kernel matrix of a view, (n, n)."""
    X = X.astype(WIDE)
    if name == "linear":
        X = X - X.mean(axis=0)
        X = X / max(np.abs(X).max(), WIDE(np.finfo(float).tiny))
    K = FORMULAS[name](X, WIDE(kernel.get_params().get("gamma", 1.0)), {})
    K = K - K.mean(axis=0)
    K = K - K.mean(axis=1)[:, None]
    values, U = np.linalg.eigh(np.asarray(K / max(np.abs(K).max(), 1e-300), dtype=float))
    values = np.where(values > len(K) * 1e-15 * values.max(), values, 0.0)
    shares = values / max(values.sum(), 1e-300)
    return U * np.sqrt(shares / (shares + regularization))
