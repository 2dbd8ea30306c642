"""Warnings that name the user's own line, whatever the way in."""

import sys
import warnings
from pathlib import Path

import sklearn

# Frames of these packages are between the user's line and the warning: ours, and those through
# which scikit-learn calls us (wrapped methods, pipelines, searches).
_OURS = tuple(str(Path(file).parent) for file in (__file__, sklearn.__file__ or ""))


def tell(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that is neither ours nor scikit-learn's."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
