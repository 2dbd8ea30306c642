"""Denoisers to compare with, in plain NumPy: non-local means, total variation, wavelets.

Written from their formulas so that the comparison needs no further library; tuned as their
authors advise. scikit-image has faster versions.
"""

import numpy as np
from scipy.ndimage import uniform_filter


def nonlocal_means(image, noise, size=7, reach=11, strength=0.8):
    """Buades, Coll & Morel 2005: the mean of pixels whose patches look alike."""
    padded = np.pad(image, reach, mode="reflect")
    total, weights = np.zeros_like(image), np.zeros_like(image)
    h, w = image.shape
    for i in range(2 * reach + 1):
        for j in range(2 * reach + 1):
            moved = padded[i : i + h, j : j + w]
            distance = uniform_filter((image - moved) ** 2, size) - 2 * noise**2
            weight = np.exp(-np.maximum(distance, 0) / (strength * noise) ** 2)
            total += weight * moved
            weights += weight
    return total / weights


def total_variation(image, weight, n_iter=150):
    """Rudin, Osher & Fatemi 1992 by Chambolle's projection (2004)."""
    P = np.zeros((2, *image.shape))
    for _ in range(n_iter):
        g = gradient(divergence(P) - image / weight)
        P = (P + 0.248 * g) / (1 + 0.248 * np.sqrt((g**2).sum(axis=0)))
    return image - weight * divergence(P)


def gradient(u):
    g = np.zeros((2, *u.shape))
    g[0, :-1] = u[1:] - u[:-1]
    g[1, :, :-1] = u[:, 1:] - u[:, :-1]
    return g


def divergence(P):
    out = np.zeros(P.shape[1:])
    out[:-1] += P[0, :-1]
    out[1:] -= P[0, :-1]
    out[:, :-1] += P[1, :, :-1]
    out[:, 1:] -= P[1, :, :-1]
    return out


# Daubechies' filter with two vanishing moments.
LOW = np.array([1 + 3**0.5, 3 + 3**0.5, 3 - 3**0.5, 1 - 3**0.5]) / (4 * 2**0.5)
HIGH = LOW[::-1] * np.array([1, -1, 1, -1])


def wavelets(image, noise, levels=4):
    """Undecimated wavelets (cycle spinning over all shifts), soft BayesShrink thresholds."""
    if levels == 0:
        return image
    return _level(image, noise, 1, levels)


def _level(image, noise, gap, levels):
    bands = {}
    for a, rows in (("l", LOW), ("h", HIGH)):
        part = _filter(image, rows, gap, 0)
        for b, columns in (("l", LOW), ("h", HIGH)):
            bands[a + b] = _filter(part, columns, gap, 1)
    # Undecimated coefficients of orthonormal filters keep the noise's standard deviation.
    for name in ("lh", "hl", "hh"):
        signal = np.sqrt(max(np.mean(bands[name] ** 2) - noise**2, 1e-12))
        limit = min(noise**2 / signal, np.abs(bands[name]).max())
        bands[name] = np.sign(bands[name]) * np.maximum(np.abs(bands[name]) - limit, 0)
    if levels > 1:
        bands["ll"] = _level(bands["ll"], noise, 2 * gap, levels - 1)
    out = 0
    for a, rows in (("l", LOW), ("h", HIGH)):
        part = sum(
            _filter(bands[a + b], columns, -gap, 1) for b, columns in (("l", LOW), ("h", HIGH))
        )
        out = out + _filter(part, rows, -gap, 0)
    # Each level is redundant fourfold.
    return out / 4


def _filter(image, taps, gap, axis):
    return sum(t * np.roll(image, -k * gap, axis) for k, t in enumerate(taps))
