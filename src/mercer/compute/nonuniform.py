"""Nonuniform fast Fourier transforms, by finufft in main memory and cufinufft on a GPU.

Sums of exponentials over arbitrary points, for all frequencies of a grid at once or for all
points at once. Angles are in radians within [-pi, pi]; grids hold the integer frequencies
-k .. k of every coordinate, in rising order.

Barnett, Magland & af Klinteberg 2019, "A parallel nonuniform fast Fourier transform library
based on an exponential of semicircle kernel".
"""

import numpy as np

from .._packages import has, needed
from .arrays import is_on_device, on_device_of, to_numpy

# Requests below this gain nothing in double precision.
LEAST_PRECISION = 1e-14
# The oversampling of the fine grid: fixed, so that the error that was measured in one coordinate
# is that of the others.
OVERSAMPLING = 2.0
# Points and frequencies at which the error of a transform is measured.
PROBES, PROBED_MODES = 400, 64
# Safety factor on the measured error: the points are not the worst ones.
PROBE_SAFETY = 2.0


def is_available() -> bool:
    """Whether finufft is installed."""
    return has("finufft")


def transforms_on_devices() -> bool:
    """Whether cufinufft is installed; without it rows of a device come to main memory."""
    return has("cufinufft")


def check_available() -> None:
    """Raise ImportError that says what to install where finufft is missing."""
    needed("finufft", "fourier", "A Fourier grid")


def frequency_sums(angles, modes: tuple[int, ...], precision: float, weights=None) -> np.ndarray:
    """sum_i w_i exp(-1j q . angles_i) for all q of a grid of that many modes, (*modes)."""
    library, columns = _library(angles), _columns(angles)
    c = _ones(angles)
    if weights is not None:
        c = c * on_device_of(to_numpy(weights), angles)
    kinds = (library.nufft1d1, library.nufft2d1, library.nufft3d1)
    out = kinds[len(columns) - 1](
        *columns, c, modes, eps=max(precision, LEAST_PRECISION), isign=-1, **_options(angles)
    )
    return to_numpy(out)


def evaluate(angles, coefficients, precision: float):
    """sum_q c_q exp(1j q . angles_i) for all rows, (n, b), c of shape (b, *modes)."""
    library, columns = _library(angles), _columns(angles)
    kinds = (library.nufft1d2, library.nufft2d2, library.nufft3d2)
    values = kinds[len(columns) - 1](
        *columns,
        _beside(coefficients, angles),
        eps=max(precision, LEAST_PRECISION),
        isign=1,
        **_options(angles),
    )
    return values.reshape(coefficients.shape[0], -1).T


def measured_error(modes: tuple[int, ...], precision: float, place=np.asarray) -> float:
    """Largest error of one exponential in a transform, over points and frequencies, with a margin.

    Transforms spread every coordinate on its own, so the errors of the coordinates multiply.
    `place` puts angles where the transforms are to be made.
    """
    factor = 1.0
    rng = np.random.default_rng(0)
    for count in modes:
        half = count // 2
        angles = rng.uniform(-np.pi, np.pi, (PROBES, 1))
        # The largest frequencies, which have the largest error, and some of the others.
        some = np.unique(np.linspace(-half, half, min(count, PROBED_MODES)).round())
        one = np.zeros((some.size, count), complex)
        one[np.arange(some.size), (some + half).astype(int)] = 1.0
        found = to_numpy(evaluate(place(angles), one, precision))
        error = np.abs(found - np.exp(1j * angles * some)).max()
        factor *= 1.0 + PROBE_SAFETY * float(error)
    return factor - 1.0


def _library(angles):
    module = "cufinufft" if is_on_device(angles) else "finufft"
    return needed(module, "fourier", "A Fourier grid")


def _columns(angles):
    """The coordinates, each in one piece."""
    if isinstance(angles, np.ndarray):
        return [np.ascontiguousarray(angles[:, a]) for a in range(angles.shape[1])]
    return [angles[:, a].contiguous() for a in range(angles.shape[1])]


def _ones(angles):
    if isinstance(angles, np.ndarray):
        return np.ones(angles.shape[0], complex)
    import torch

    return torch.ones(angles.shape[0], dtype=torch.complex128, device=angles.device)


def _beside(coefficients, angles):
    if isinstance(angles, np.ndarray):
        return np.ascontiguousarray(coefficients)
    import torch

    return torch.asarray(coefficients, device=angles.device)


def _options(angles) -> dict:
    """One thread a transform: threads share out the blocks of rows."""
    options = {"upsampfac": OVERSAMPLING}
    return options | ({"nthreads": 1} if isinstance(angles, np.ndarray) else {})
