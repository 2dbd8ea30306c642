"""Rows as small grey or color images of bytes."""

import math

import numpy as np

# Longest side of a thumbnail, and bytes of all of them before compression.
SIDE = 64
BYTES = 16_000_000


def check_images(images, d: int) -> tuple[int, ...] | None:
    """The shape of a row as an image, or an error that says why it is none."""
    if images is None:
        return None
    shape = tuple(int(side) for side in images)
    if len(shape) not in (2, 3) or min(shape) < 1 or math.prod(shape) != d:
        raise ValueError(
            f"images={images!r} is not the shape of a row of {d} columns. Give (height, width) or "
            "(height, width, channels) whose product is the number of columns."
        )
    if shape[2:] not in ((), (1,), (3,)):
        raise ValueError(f"images={images!r} has {shape[2]} channels, and 1 or 3 can be shown.")
    return shape


def gray_range(rows) -> tuple[float, float]:
    """The values that become black and white."""
    low, high = float(np.min(rows)), float(np.max(rows))
    return (low, high) if high > low else (low, low + 1.0)


def to_bytes(rows, low: float, high: float) -> np.ndarray:
    """Values as bytes, those beyond the range at its ends."""
    return np.clip(np.round(255 * (np.asarray(rows, float) - low) / (high - low)), 0, 255).astype(
        np.uint8
    )


def thumbnails(rows, shape, low: float, high: float) -> tuple[np.ndarray, tuple[int, int, int]]:
    """Bytes (n, h, w, channels), averaged over squares of pixels until all fit, and their shape."""
    h, w = shape[:2]
    channels = shape[2] if len(shape) == 3 else 1
    pixels = rows.reshape(len(rows), h, w, channels)
    side = max(math.ceil(max(h, w) / SIDE), math.ceil(math.sqrt(pixels.size / BYTES)))
    # Small sides must not vanish.
    side = min(side, h, w)
    if side > 1:
        # Pixels beyond the last whole square are cut off.
        pixels = pixels[:, : h // side * side, : w // side * side]
        pixels = pixels.reshape(len(rows), h // side, side, w // side, side, channels)
        pixels = pixels.mean(axis=(2, 4))
    return to_bytes(pixels, low, high), pixels.shape[1:]
