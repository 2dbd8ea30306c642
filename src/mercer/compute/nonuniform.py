"""Nonuniform fast Fourier transforms, by finufft in main memory and cufinufft on a GPU.

Sums of exponentials over arbitrary points, for all frequencies of a grid at once or for all
points at once. Angles are in radians within [-pi, pi]; grids hold the integer frequencies
-k .. k of every coordinate, in rising order.

Barnett, Magland & af Klinteberg 2019, "A parallel nonuniform fast Fourier transform library
based on an exponential of semicircle kernel".
"""

import numpy as np

from .._packages import needed
from .arrays import array_namespace, is_on_device, on_device_of, placement_of, to_numpy

# Requests below this gain nothing in double precision.
LEAST_PRECISION = 1e-14
# The oversampling of the fine grid: fixed, so that the error that was measured in one coordinate
# is that of the others.
OVERSAMPLING = 2.0
# Points and frequencies at which the error of a transform is measured.
PROBES, PROBED_MODES = 400, 64
# Safety factor on the measured error: the points are not the worst ones.
PROBE_SAFETY = 2.0


def frequency_sums(angles, modes: tuple[int, ...], precision: float, weights=None) -> np.ndarray:
    """sum_i w_i exp(-1j q . angles_i) for all q of a grid of that many modes, (*modes)."""
    xp = array_namespace(angles)
    c = xp.ones(angles.shape[0], dtype=xp.complex128, **placement_of(angles))
    if weights is not None:
        c = c * on_device_of(to_numpy(weights), angles)
    return to_numpy(_transform(1, angles, c, modes, precision=precision, isign=-1))


def evaluate(angles, coefficients, precision: float):
    """sum_q c_q exp(1j q . angles_i) for all rows, (n, b), c of shape (b, *modes)."""
    c = on_device_of(np.ascontiguousarray(coefficients), angles)
    values = _transform(2, angles, c, precision=precision, isign=1)
    return values.reshape(coefficients.shape[0], -1).T


def _transform(kind: int, angles, *arguments, precision: float, isign: int):
    """The transform of a kind in as many dimensions as there are angles."""
    on_host = isinstance(angles, np.ndarray)
    library = needed(
        "cufinufft" if is_on_device(angles) else "finufft", "fourier", "A Fourier grid"
    )
    # Each coordinate in one piece; one thread, since threads share out the blocks of rows.
    columns = [np.ascontiguousarray(x) if on_host else x.contiguous() for x in angles.T]
    return vars(library)[f"nufft{len(columns)}d{kind}"](
        *columns,
        *arguments,
        eps=max(precision, LEAST_PRECISION),
        isign=isign,
        upsampfac=OVERSAMPLING,
        **({"nthreads": 1} if on_host else {}),
    )


def measured_error(counts: tuple[int, ...], precision: float, place=np.asarray) -> float:
    """Largest error of one exponential in a transform, over points and frequencies, with a margin.

    Transforms spread every coordinate on its own, so the errors of the coordinates multiply.
    `place` puts angles where the transforms are to be made.
    """
    factor = 1.0
    rng = np.random.default_rng(0)
    for count in counts:
        half = count // 2
        angles = rng.uniform(-np.pi, np.pi, (PROBES, 1))
        # The largest frequencies, which have the largest error, and some of the others.
        modes = np.unique(np.linspace(-half, half, min(count, PROBED_MODES)).round())
        one = np.zeros((modes.size, count), complex)
        one[np.arange(modes.size), (modes + half).astype(int)] = 1.0
        values = to_numpy(evaluate(place(angles), one, precision))
        error = np.abs(values - np.exp(1j * angles * modes)).max()
        factor *= 1.0 + PROBE_SAFETY * float(error)
    return factor - 1.0
