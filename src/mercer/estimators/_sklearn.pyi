from typing import Any, Self

class BaseEstimator:
    """Parameters, clones and diagrams."""

    _repr_html_: Any
    _repr_mimebundle_: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> Self: ...
    def __sklearn_tags__(self) -> Any: ...
    def __getstate__(self) -> dict[str, Any]: ...

    # Fitted attributes, which each class declares in `_fitted`.
    def __getattr__(self, name: str) -> Any: ...

class TransformerMixin:
    """Containers of scores."""

    def set_output(self, *, transform: Any = None) -> Self: ...

class ClassNamePrefixFeaturesOutMixin:
    """Names of scores."""

    def get_feature_names_out(self, input_features: Any = None) -> Any: ...

class ClusterMixin:
    """Labels of clusters."""

class OutlierMixin:
    """Labels of outliers."""

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> Any: ...
