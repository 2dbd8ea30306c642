"""The certificate: how far a result can be from exact kernel PCA."""

from dataclasses import dataclass

import numpy as np

from ._tables import html_table, text_table

# Eigenvalues below minus this share of the largest are no rounding.
INDEFINITE_SHARE = 1e-5


@dataclass(frozen=True)
class Certificate:
    """What is known about the error of a fit.

    Attributes
    ----------
    kind : "bound" or "estimate"
        Whether the intervals hold for certain (up to the rounding of float64) or are
        estimates.
    eigenvalue_lower, eigenvalue_upper : arrays of shape (r,)
        Each interval holds a true eigenvalue.
    residuals : array of shape (r,) or None
        ``|K'u - l u|`` of every pair.
    captured_variance : (float, float)
        The share of the total variance that the kept components are known to hold.
    converged : bool
        Whether the residuals reached the tolerance asked for.
    n_passes : int
        Products with the kernel matrix that the fit took.
    indefinite : bool
        Whether negative eigenvalues were met: the kernel is then no inner product, and
        shares of variance lose their meaning.
    """

    kind: str
    eigenvalue_lower: np.ndarray
    eigenvalue_upper: np.ndarray
    residuals: np.ndarray | None
    captured_variance: tuple[float, float]
    converged: bool
    n_passes: int = 1
    indefinite: bool = False

    @property
    def relative_residual(self) -> float | None:
        """The largest residual as a share of the largest eigenvalue."""
        if self.residuals is None or self.residuals.size == 0:
            return None
        top = float(self.eigenvalue_upper[0])
        return float(self.residuals.max()) / top if top > 0 else 0.0

    def summary(self) -> list[tuple[str, str]]:
        """The statements of the certificate, as pairs of a name and a text."""
        low, high = self.captured_variance
        words = {"bound": "certified bounds", "estimate": "estimates, not bounds"}
        lines = [
            ("kind", words[self.kind]),
            ("components", str(self.eigenvalue_lower.size)),
            ("captured variance", _interval(100 * low, 100 * high) + " %"),
        ]
        if self.residuals is not None and self.residuals.size:
            share = f"{self.relative_residual:.1e} of the first eigenvalue"
            lines.append(("largest residual", share))
        lines.append(("converged", "yes" if self.converged else "no"))
        lines.append(("passes over the kernel", str(self.n_passes)))
        if self.indefinite:
            lines.append(("warning", "the kernel is indefinite: negative eigenvalues were met"))
        return lines

    def __repr__(self) -> str:
        rows = [["  " + name, text] for name, text in self.summary()]
        return text_table(["Certificate", ""], rows)

    def _repr_html_(self) -> str:
        rows = [[name, text] for name, text in self.summary()]
        return html_table([], rows, caption="Certificate")


def residual_certificate(pairs, total: float) -> Certificate:
    """The certificate of an exact method: every eigenvalue within its residual of a true one.

    Parameters
    ----------
    pairs : Eigenpairs
        In order, rounding clipped.
    total : float
        The trace.
    """
    values = pairs.values
    lower, upper = values - pairs.residuals, values + pairs.residuals
    top = float(np.max(values, initial=0.0))
    indefinite = pairs.least is not None and pairs.least < -INDEFINITE_SHARE * top
    if not indefinite:
        lower = np.maximum(lower, 0.0)
    share = _share(lower.sum(), total), _share(upper.sum(), total)
    return Certificate(
        "bound",
        lower,
        upper,
        pairs.residuals,
        share,
        pairs.converged,
        pairs.n_passes,
        bool(indefinite),
    )


def projection_certificate(
    pairs, total: float, lost: float, exact: bool = True, rounding: float = 0.0
) -> Certificate:
    """The certificate of a method that works in a subspace of feature space.

    What the subspace leaves out of the Gram matrix is positive semidefinite with trace
    `lost`, so each exact eigenvalue lies between the one found and that plus `lost`. The
    directions lie in the subspace, so the variance found along them is exact; the total
    is known up to the share of the mean that the subspace leaves out.

    Parameters
    ----------
    pairs : Eigenpairs
    total : float
        Trace of the centred Gram matrix, or at most `lost` more.
    lost : float
    exact : bool
        False where the subspace's inner products are themselves approximations, as those of
        random features are: the same numbers are then estimates.
    rounding : float
        Share of the total that the arithmetic of the rows may have got wrong.
    """
    values = pairs.values
    slack = rounding * total
    lower, upper = np.maximum(values - slack, 0.0), values + lost + slack
    kept, missed = float(lower.sum()), lost + slack
    share = _share(kept, total + slack), _share(float(values.sum()) + slack, total - missed)
    kind = "bound" if exact else "estimate"
    return Certificate(kind, lower, upper, None, share, pairs.converged)


def series_certificate(pairs, total: float, above: float, below: float) -> Certificate:
    """The certificate of a kernel that is replaced by a series close to it everywhere.

    Parameters
    ----------
    pairs : Eigenpairs
    total : float
        Trace of the centered Gram matrix.
    above, below : float
        What eigenvalues of the series are at most too large, and too small, by.
    """
    values = pairs.values
    lower = np.maximum(values - pairs.residuals - above, 0.0)
    upper = values + pairs.residuals + below
    slack = above + below
    share = _share(lower.sum(), total + slack), _share(upper.sum(), total - slack)
    return Certificate(
        "bound", lower, upper, pairs.residuals, share, pairs.converged, pairs.n_passes
    )


def _share(part: float, total: float) -> float:
    return min(1.0, float(part) / float(total)) if total > 0 else 0.0


def _interval(low: float, high: float) -> str:
    """Two numbers to the digits in which they differ."""
    for digits in range(1, 9):
        if f"{low:.{digits}f}" != f"{high:.{digits}f}":
            return f"{low:.{digits}f} to {high:.{digits}f}"
    return f"{low:.4f}"
