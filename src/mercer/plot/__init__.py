"""Pictures of data and fitted models, with matplotlib.

Every function draws one thing, takes ``ax=`` to draw it where you want it, and returns the
axes for whatever you would like to add. Groups, methods and samples differ by marker, line
style or place besides color, so that all pictures read in grey.

| function | shows |
|---|---|
| `scores` | rows by two of their components |
| `spectrum` | eigenvalues in the intervals that are certified to hold true ones |
| `contours` | components as functions over data of two columns |
| `eigengaps` | the evidence for each number of clusters |
| `convergence` | error by pass, several methods |
| `landmarks` | a dictionary over its data |
| `preimages` | what a component means: pre-images of points along it |
| `denoised` | noisy, denoised and clean rows |
| `selection` | errors of a search over widths and components |
| `control_chart` | statistics of a process monitor, limits, alarms and sensors |
| `attribution` | columns that drive a component |
| `embedding` | coordinates of an embedding, and the places of new rows |
"""

import sys
from types import ModuleType

from .axes import CALLS
from .components import contours, denoised, embedding, landmarks, preimages, scores
from .fits import attribution, control_chart, convergence, eigengaps, selection, spectrum

__all__ = [
    "attribution",
    "contours",
    "control_chart",
    "convergence",
    "denoised",
    "eigengaps",
    "embedding",
    "landmarks",
    "preimages",
    "scores",
    "selection",
    "spectrum",
]


class _Plots(ModuleType):
    def __call__(self, *args, **kwargs):
        calls = "; ".join(CALLS.values())
        raise TypeError(f"mercer.plot is a module. Call one of its functions: {calls}.")


# Names of files are no names of pictures: plot.components(model) would be called in vain.
del axes, components, fits  # type: ignore[name-defined] # noqa: F821
sys.modules[__name__].__class__ = _Plots
