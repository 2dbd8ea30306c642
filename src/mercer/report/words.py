"""What was fitted and how sure it is, in sentences."""

import re

import numpy as np

from ..fitting.certificate import confidence_text
from ..hebbian import History
from ..plot.axes import dense

# Kernels that are called after people; the names of others are words.
EPONYMS = {"RBF": "Gaussian", "Laplacian": "Laplacian", "Matern": "Matérn", "Gower": "Gower"}


def name_words(model) -> str:
    """What an estimator is called: Kernel PCA, Diffusion Map."""
    return " ".join(re.findall("[A-Z]+(?![a-z])|[A-Z][a-z]+", type(model).__name__))


def lead(model, r: int, shown: int) -> str:
    """What is seen, for readers who never saw the code."""
    text = (
        f"Every point is a row: {_count(shown, 'row')}, described by {_count(r, 'component')}. "
        "Rows that are alike lie near each other, and change gradually along a component"
    )
    if (shares := _shares(model)) is not None:
        held = "the first two hold" if r > 1 else "it holds"
        text += f"; {held} {shares[:2].sum():.3g} % of the differences between rows"
    return f"{text}.".replace(" %", "\u00a0%")


def _shares(model) -> np.ndarray | None:
    """Percents of the variance, where the components have any."""
    found = vars(model).get("explained_variance_ratio_")
    return None if found is None else 100 * dense(found)


def sentences(model, inner, r: int, rows: int, shown: int) -> list[str]:
    """The summary, a paragraph each: what was fitted, how much it holds, how sure that is."""
    known, shares = vars(inner), _shares(inner)
    what = f"{name_words(model)} with {_count(r, 'component')}"
    if "kernel_" in known:
        what += f" and a {kernel_words(inner.kernel_)}"
    if "expansion_" in known:
        what += f", {basis_words(inner)}"
    if shown < rows:
        what += (
            f". Of the {rows:,} rows given, {shown:,} are shown: a random sample and those with "
            "the largest errors."
        )
    else:
        what += f". {_count(rows, 'row')} shown."
    told = [what]
    if shares is not None:
        second = f", the second {shares[1]:.3g} %" if shares.size > 1 else ""
        told.append(
            f"Together the components hold {shares.sum():.3g} % of the variance in feature space; "
            f"the first alone {shares[0]:.3g} %{second}."
        )
    if "certificate_" in known:
        told.append(_how_sure(inner))
    # A number stays on the line of its percent sign.
    return [text.replace(" %", "\u00a0%") for text in told]


def kernel_words(kernel) -> str:
    """A kernel's name and numbers."""
    kind = type(kernel).__name__
    words = " ".join(re.findall("[A-Z][a-z0-9]*", kind)).lower().replace("chi2", "chi-squared")
    name = EPONYMS.get(kind, words)
    numbers = [
        f"{key} = {value:.4g}"
        for key, value in kernel.get_params(deep=False).items()
        if isinstance(value, int | float | np.number) and not isinstance(value, bool)
    ]
    return f"{name} kernel ({', '.join(numbers)})" if numbers else f"{name} kernel"


def basis_words(model) -> str:
    """What the components are written in."""
    basis = model.expansion_.basis
    if basis.spans_data:
        text = f"written in all {_count(basis.size, 'training row')}"
    elif basis.points is not None:
        text = f"written in {_count(basis.size, 'landmark')} that stand for all rows"
    elif basis.exact_norms:
        text = f"written in {_count(basis.size, 'Fourier feature')} that give the kernel exactly"
    else:
        text = f"written in {_count(basis.size, 'random feature')} that approximate the kernel"
    known = vars(model)
    if isinstance(known.get("history_"), History):
        passes = _count(len(known["history_"].changes), "pass", "passes")
        text += f", learned by a Hebbian rule in {passes}"
    elif "n_samples_seen_" in known:
        text += f", learned from a stream of {_count(known['n_samples_seen_'], 'row')}"
    return text


def _how_sure(model) -> str:
    certificate = model.certificate_
    certain = certificate.kind == "bound"
    text = "This is certified" if certain else "This is an estimate, not a bound"
    far = _how_far(certificate)
    # Of a target, and not of the rows, where components are those that depend on it most.
    if certificate.captured_variance is not None and "hsic_" not in vars(model):
        # One number where both ends agree to the digits shown.
        ends = dict.fromkeys(f"{100 * share:.4g}" for share in certificate.captured_variance)
        held = f"between {' and '.join(ends)}" if len(ends) > 1 else next(iter(ends))
        text += f": the components hold {held} % of the variance" + (f", and {far}" if far else "")
    elif far:
        text += f": {far}"
    text += "."
    if not certificate.converged:
        text += " The fit stopped before it reached the tolerance asked for."
    if certificate.indefinite:
        text += (
            " The kernel is indefinite (negative eigenvalues were met), so that shares of "
            "variance lose their meaning."
        )
    return text


def _how_far(certificate) -> str:
    """How far from the exact eigenvalues those found can be, as the end of a sentence."""
    text, residual = "", certificate.relative_residual
    if residual is not None:
        text = (
            "each eigenvalue found has a true one no further away than "
            f"{_part(residual)} of the first"
        )
    elif certificate.kind == "bound" and certificate.widest is not None:
        text = (
            "no exact eigenvalue lies above the one found by more than "
            f"{_part(certificate.widest)} of the first"
        )
    if certificate.confidence is not None and certificate.confidence < 1:
        text += (
            f"; with confidence {confidence_text(certificate.confidence)} by no more than "
            f"{_part(certificate.likely_widest)}"
        )
    return text


def _part(share: float) -> str:
    """A share as people read it: percents, or a power of ten where they would be all zeros."""
    return f"{100 * share:.2g} %" if share >= 1e-4 else f"{share:.1e}"


def _count(number, noun, plural=None) -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
