"""Models that leave the program: a file of their own, and a summary where they are shown."""

from dataclasses import dataclass
from os import PathLike

from .._tables import html_table
from ..fitting.choosing import Plan
from ..hebbian import History
from ..relatives.significance import Significance


@dataclass(frozen=True)
class Recorded:
    """What only some fits leave behind, for reports; None for what this one did not.

    Attributes
    ----------
    plan : Plan
        What was chosen and why.
    columns : list of str
        Names of the columns.
    passes : History
        Of a Hebbian rule.
    rows_streamed : int
        Rows that came as a stream.
    significance : Significance
        How many components stand above noise.
    """

    plan: Plan | None
    columns: list[str] | None
    passes: History | None
    rows_streamed: int | None
    significance: Significance | None


class Portable:
    """`save`, and what a fitted estimator says about itself in a notebook."""

    def save(self, path: str | PathLike[str], *, overwrite: bool = True) -> None:
        """Write the fitted model to a file that `mercer.load` opens; see `mercer.saving`.

        The file holds no code and is written whole or not at all.

        Parameters
        ----------
        path : str or path
            By convention with the suffix ``.mercer``.
        overwrite : bool, default=True
            False raises FileExistsError where there is a file already.
        """
        from ..saving import save

        save(self, path, overwrite=overwrite)

    def _recorded(self) -> Recorded:
        """What this fit has left behind that others have not."""
        facts = vars(self)
        columns, history = facts.get("feature_names_in_"), facts.get("history_")
        return Recorded(
            plan=facts.get("plan_"),
            columns=None if columns is None else list(columns),
            passes=history if isinstance(history, History) else None,
            rows_streamed=facts.get("n_samples_seen_"),
            significance=facts.get("significance_"),
        )

    @property
    def _repr_html_(self):
        # A property, since scikit-learn has none where diagrams are turned off.
        diagram = super()._repr_html_  # type: ignore[misc]
        return lambda: diagram() + summary_html(self)

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += summary_html(self)
        return bundle


def summary_html(model) -> str:
    """A table of what a fitted model is and how good, escaped; nothing for one not fitted."""
    rows = summary_rows(vars(model))
    return html_table([], rows, caption="Fitted") if rows else ""


def summary_rows(facts: dict) -> list[list[str]]:
    """Names and texts of what is known about a fitted model."""
    rows = [[title, text(facts[name])] for name, title, text in FACTS if name in facts]
    certificate = facts.get("certificate_")
    known = [list(pair) for pair in certificate.summary()] if certificate else []
    return rows + [["certificate" if name == "kind" else name, text] for name, text in known]


def kernel_text(kernel) -> str:
    """A kernel on one line."""
    return " ".join(repr(kernel).split())


def basis_text(basis) -> str:
    """What the directions are written in, and how many of these there are."""
    if basis.spans_data:
        return f"all {basis.size:,} points"
    return f"{basis.size:,} {basis.noun}"


# Fitted attributes worth a line, with its title and its text.
FACTS = (
    ("kernel_", "kernel", kernel_text),
    ("expansion_", "basis", lambda expansion: basis_text(expansion.basis)),
    ("plan_", "method", lambda plan: plan.method),
    ("significance_", "above noise", lambda found: found.words()),
    ("embedding_", "points and dimensions", lambda Y: " x ".join(map(str, Y.shape))),
    ("offset_", "novel from an error of", lambda offset: f"{-offset:.4g}"),
    ("noise_", "noise", lambda noise: f"{noise:.4g}"),
    ("stress_", "stress-1", lambda stress: f"{stress:.4g}"),
)
