"""Relatives of kernel PCA, built on its contracts: a file here is a feature that can go alone.

Those that join a registry of the core are imported here, and this package by that registry.
"""

from . import mixed as mixed
