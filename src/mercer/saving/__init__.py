"""Model files: a fitted estimator as one safetensors archive, without any code in it.

`save` writes what transform, errors, pre-images, plots and reports need; `load` gives the
estimator back; `read_header` tells what a file holds without reading its arrays. A file names
its parts (kernels, bases, solvers) from a closed list and is covered by a checksum, so that a
damaged or hostile file is refused (`ModelFileError`) and never executed.

`export_onnx` writes the transform of a landmark or random-feature model as an ONNX graph, for
programs that have no Python.
"""

from ..exceptions import ModelFileError
from ..relatives.onnx import export_onnx
from .archive import FORMAT_VERSION
from .model_file import ModelHeader, load, read_extra, read_header, save

__all__ = [
    "FORMAT_VERSION",
    "ModelFileError",
    "ModelHeader",
    "export_onnx",
    "load",
    "read_extra",
    "read_header",
    "save",
]
