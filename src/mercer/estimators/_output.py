"""What leaves a fitted model: scores in the container asked for, and its summary in a notebook."""

from operator import attrgetter

from sklearn import get_config

from .._tables import html_table
from ..files import is_arrow, is_cluster_table, table_like


def contained(model, S, X):
    """Scores as `set_output` or the configuration asks for them; of Arrow data a table."""
    config = vars(model).get("_sklearn_output_config", {})
    wanted = config.get("transform", get_config()["transform_output"])
    names = model.get_feature_names_out
    if wanted != "default" and is_cluster_table(S):
        raise ValueError(
            f"Scores of a table on a cluster stay there, and the configured output is {wanted!r}. "
            "Set transform='default', and convert what transform returns: toPandas(), to_pandas()."
        )
    if wanted == "default":
        return table_like(S, names(), X) if is_arrow(X) else S
    if wanted == "polars":
        import polars

        return polars.DataFrame(S, schema=list(names()))
    import pandas

    index = X.index if isinstance(X, pandas.DataFrame) else None
    return pandas.DataFrame(S, index=index, columns=names())


def summary_rows(model) -> list[list[str]]:
    """What a fitted model is and how good, as names and texts; none of one not fitted."""
    facts = vars(model)
    rows = [[title, text(facts[name])] for name, title, text in FACTS if name in facts]
    if kernel := kernel_text(model):
        rows.insert(0, ["affinities" if "graph_" in facts else "kernel", kernel])
    inner = facts.get("model_") or facts.get("best_estimator_") or model
    if "certificate_" in vars(inner):
        statements = inner.certificate_.summary()
        rows += [["certificate" if name == "kind" else name, text] for name, text in statements]
    return rows


def summary_html(model) -> str:
    """The same as a table, escaped."""
    rows = summary_rows(model)
    return html_table([], rows, caption="Fitted") if rows else ""


def certificate_of(name: str) -> property:
    """`certificate_` of an estimator that keeps a fitted model under this name."""
    return property(attrgetter(f"{name}.certificate_"), doc="That of the model within.")


def kernel_text(model, form=str) -> str:
    """The kernel of a fitted model, or the graph in its place; empty without either."""
    facts = vars(model)
    if neighbors := getattr(facts.get("graph_"), "n_neighbors", None):
        return f"graph of the {neighbors} nearest rows"
    return " ".join(form(facts["kernel_"]).split()) if "kernel_" in facts else ""


def basis_text(basis) -> str:
    """What the directions are written in, and how many of these there are."""
    if basis.spans_data:
        return f"all {basis.size:,} points"
    return f"{basis.size:,} {basis.noun}"


# Fitted attributes that the summary shows: name, title and text.
FACTS = (
    ("expansion_", "basis", lambda expansion: basis_text(expansion.basis)),
    ("plan_", "method", lambda plan: plan.method),
    ("significance_", "above noise", lambda significance: significance.words()),
    ("embedding_", "points and dimensions", lambda Y: " x ".join(map(str, Y.shape))),
    ("correlations_", "correlations", lambda values: " ".join(f"{r:.4g}" for r in values[:10])),
    ("offset_", "novel from an error of", lambda offset: f"{-offset:.4g}"),
    ("limits_", "limits of T2 and SPE", lambda limits: " ".join(f"{x:.4g}" for x in limits)),
    ("noise_", "noise", lambda noise: f"{noise:.4g}"),
    ("stress_", "stress-1", lambda stress: f"{stress:.4g}"),
)
