"""Checks of states that go on: streams, samples of rows, and the maps of classical scaling.

A model that is opened must work: what does not fit together is refused when it is read, and not
when the next batch comes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..bases import FourierBasis
from ..fitting.moments import Moments
from ..fitting.sampling import RowSample
from ..mds.coordinates import DistanceMap, Spectrum
from ..mds.fit import LinearMap
from ..relatives.mixed import TableEncoding
from ..stream.dictionary import GrowingDictionary
from ..stream.moments import FixedSpan, FourierStream, Stream
from ..stream.state import State
from .archive import ModelFileError
from .bases import BASIS_TYPES
from .checks import count, matrix, number, resolved, rows, vector, whole


def moments(value) -> Moments:
    """Moments of finite numbers, all of one size."""
    size = vector(value.mean).size
    if matrix(value.scatter).shape != (size, size) or number(value.count) < 0:
        raise ModelFileError("moments whose mean and scatter do not fit each other")
    number(value.energy)
    number(value.largest)
    return value


def span(value) -> GrowingDictionary | FixedSpan:
    """A dictionary with the Cholesky factor of its points, or a fixed span with its whitener."""
    if isinstance(value, GrowingDictionary):
        return dictionary(value)
    if not isinstance(value, FixedSpan) or not isinstance(value.vectors, BASIS_TYPES):
        raise ModelFileError("a stream without a span")
    if value.whitener is not None and matrix(value.whitener).shape[0] != value.vectors.size:
        raise ModelFileError("a whitener that does not fit its basis")
    return value


def dictionary(value: GrowingDictionary) -> GrowingDictionary:
    """Points and a lower triangle without zeros on its diagonal."""
    resolved(value.kernel)
    m = rows(value.points).shape[0]
    L = matrix(value.factor)
    if L.shape != (m, m) or L.diagonal().min() <= 0 or np.triu(L, 1).any():
        raise ModelFileError("the factor of a dictionary does not fit its points")
    if not 0 <= number(value.novelty) < 1:
        raise ModelFileError(f"a novelty of {value.novelty}")
    whole(value.budget)
    return value


def stream(value: Stream) -> Stream:
    """Moments and losses in the coordinates of the span."""
    size = span(value.span).size
    fits = {moments(part).mean.size for part in (value.early, value.since)} == {size}
    if not fits or vector(value.missed).size != size:
        raise ModelFileError("the moments of a stream do not fit its span")
    forgetting(value.forgetting)
    whole(value.count)
    count(value.joined)
    return value


def fourier_stream(value: FourierStream) -> FourierStream:
    """Sums of the frequencies of the grid."""
    span(value.span)
    basis = value.span.vectors
    if not isinstance(basis, FourierBasis) or value.sums.sums.shape != basis.moment_modes:
        raise ModelFileError("the sums of a stream do not fit its grid")
    forgetting(value.forgetting)
    whole(value.count)
    return value


def forgetting(value) -> float:
    """A weight above 0 and up to 1."""
    if not 0 < number(value) <= 1:
        raise ModelFileError(f"a forgetting of {value}")
    return value


def row_sample(value: RowSample) -> RowSample:
    """As many keys as rows, and no more than its size."""
    count = 0 if value.rows is None else rows(value.rows).shape[0]
    if not vector(value.keys).size == count <= whole(value.size) or not 0 <= value.seed < 2**63:
        raise ModelFileError("a sample of rows whose keys do not fit its rows")
    return value


def stream_state(value: State) -> State:
    """A reference for the signs that lies within the span."""
    span, reference = value.stream.span, value.reference
    size = span.vectors.size if isinstance(span, FixedSpan) else span.size
    if reference is not None and reference.frame.shape[0] > size:
        raise ModelFileError("the reference of a stream is larger than its span")
    return value


def linear_map(value: LinearMap) -> LinearMap:
    """A mean and a rotation of finite numbers."""
    if matrix(value.rotation).shape[0] != vector(value.mean).size:
        raise ModelFileError("the rotation of a map does not fit its mean")
    return value


def distance_map(value: DistanceMap) -> DistanceMap:
    """Weights, offset and rotation that follow each other."""
    k = matrix(value.weights).shape[1]
    fits = vector(value.offset).size == k
    if not fits or (value.rotation is not None and matrix(value.rotation).shape[0] != k):
        raise ModelFileError("the offset or the rotation of a map does not fit its weights")
    return value


def spectrum(value: Spectrum) -> Spectrum:
    """Finite sums."""
    for part in (value.total, value.absolute, value.least):
        number(part)
    return value


#: The check of each record that has one.
def table_encoding(value) -> TableEncoding:
    """Categories, and ranges that are not negative, for as many columns."""
    sizes = {len(value.names), len(value.labels), vector(value.low).size, vector(value.size).size}
    if len(sizes) > 1 or (value.size < 0).any() or len(set(value.names)) < len(value.names):
        raise ModelFileError("the encoding of a table whose columns do not fit each other")
    return value


STATE_CHECKS: dict[type, Callable[[Any], Any]] = {
    DistanceMap: distance_map,
    FixedSpan: span,
    FourierStream: fourier_stream,
    GrowingDictionary: dictionary,
    LinearMap: linear_map,
    Moments: moments,
    RowSample: row_sample,
    Spectrum: spectrum,
    State: stream_state,
    Stream: stream,
    TableEncoding: table_encoding,
}
