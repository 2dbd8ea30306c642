"""scikit-learn's base classes; `_sklearn.pyi` says what types they have.

It has none, and below a class that it does not know mypy would allow any keyword.
"""

from sklearn.base import BaseEstimator as BaseEstimator
from sklearn.base import ClassNamePrefixFeaturesOutMixin as ClassNamePrefixFeaturesOutMixin
from sklearn.base import ClusterMixin as ClusterMixin
from sklearn.base import OutlierMixin as OutlierMixin
from sklearn.base import TransformerMixin as TransformerMixin
