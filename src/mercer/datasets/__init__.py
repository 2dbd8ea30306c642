"""Data sets of the kernel PCA papers, and generated ones that need no files.

The published sets are read from ``.npz`` files in the folder that the environment variable
``MERCER_DATA`` names; where scikit-learn has a fetcher for a set, it is asked next. Each loader's
notes give the file's name and arrays. All of them return a :class:`sklearn.utils.Bunch`.
"""

from .generated import (
    make_signal_in_noise,
    make_three_clusters,
    make_unbalanced_clusters,
    make_walk,
)
from .published import (
    load_cloud,
    load_covtype,
    load_mnist,
    load_mocap,
    load_solar_flare,
    load_test_image,
    load_usps,
)

__all__ = [
    "load_cloud",
    "load_covtype",
    "load_mnist",
    "load_mocap",
    "load_solar_flare",
    "load_test_image",
    "load_usps",
    "make_signal_in_noise",
    "make_three_clusters",
    "make_unbalanced_clusters",
    "make_walk",
]
