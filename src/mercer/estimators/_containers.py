"""Scores in the container that the user asked for, or in the kind that the rows had."""

from sklearn import get_config

from ..files import is_arrow, table_like

try:
    # The only private names of scikit-learn that are used: a release may move them.
    from sklearn.utils._set_output import _wrap_data_with_container as _wrap
except ImportError:  # pragma: no cover
    _wrap = None


def contained(model, S, X):
    """Scores as `set_output` asks for them; of Arrow data a table, else as they are."""
    wanted = output_wanted(model)
    if wanted == "default":
        return table_like(S, model.get_feature_names_out(), X) if is_arrow(X) else S
    if _wrap is not None:
        return _wrap("transform", S, X, model)
    return frame(S, model.get_feature_names_out(), X, wanted)


def output_wanted(model) -> str:
    """What `set_output` of the model says, else scikit-learn's configuration."""
    own = vars(model).get("_sklearn_output_config", {})
    return own.get("transform", get_config()["transform_output"])


def frame(S, names, X, library: str):
    """A data frame of scores, with the index of X where it has one."""
    if library == "polars":
        import polars

        return polars.DataFrame(S, schema=list(names))
    import pandas

    index = X.index if isinstance(X, pandas.DataFrame) else None
    return pandas.DataFrame(S, index=index, columns=names)
