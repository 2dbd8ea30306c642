"""Pre-images: from feature space back to rows."""

from .ridge import ridge_inverse

__all__ = ["ridge_inverse"]
