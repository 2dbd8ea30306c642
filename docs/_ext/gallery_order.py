"""The order of the gallery: what one would show first. Scripts not named here come last."""

FIRST = [
    "rings_and_moons",
    "digits",
    "denoised_digits",
    "classification",
    "mixed",
    "supervised",
    "correlations",
    "clusters",
    "novelty",
    "monitor",
    "explaining",
    "weights",
    "map_from_distances",
    "stream",
    "cells",
    "million_points",
    "image_by_color",
    "motion",
    "photograph",
    "choose_width",
    "which_method",
    "basis_size",
    "solvers",
    "pictures",
]


class Order:
    """The key that sphinx-gallery sorts scripts by."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, filename):
        """The place of a script, then its name."""
        name = filename.removesuffix(".py")
        return (FIRST.index(name) if name in FIRST else len(FIRST), name)
