"""Bases in a model file: what is kept of each, and what must hold when it is read again.

Points are written from wherever they are, rows of a cluster among them; a precomputed training
matrix is not kept at all.
"""

from typing import Any, NoReturn

import numpy as np

from ..bases import (
    ColumnBasis,
    FeatureBasis,
    FourierBasis,
    FourierGrid,
    HollowMatrix,
    PointBasis,
    PointGram,
    PrecomputedBasis,
)
from ..bases.columns import has_columns
from ..bases.fourier_grid import Frequencies
from ..bases.random_features import Fourier, TensorSketch
from ..compute import is_sparse, to_numpy
from ..rows.chunk_gram import ChunkGram
from .archive import ModelFileError, Pieces
from .checks import matrix, number, resolved, rows, vector, whole
from .values import CsrPieces, Part, Reader, named

#: What a frame or a map may be written in.
BASIS_TYPES = (PointBasis, FeatureBasis, FourierBasis, ColumnBasis, PrecomputedBasis)
# Frequencies of a full grid for each one that is kept, at most: a ball in three dimensions, of
# which half is stored, takes a fourth of its box.
FULL_GRID = 50


def points_of(*names):
    """The attributes of a basis, its points where they can be written from."""

    def read(basis):
        return named(*names)(basis) | {"points": host(basis.points)}

    return read


def host(points):
    """Rows in main memory, wherever they are."""
    stays = is_sparse(points) or isinstance(points, np.ndarray)
    return points if stays else to_numpy(points[:])


def point_basis(reader: Reader, given) -> PointBasis:
    """Points and a kernel with numbers."""
    kernel, points = resolved(given["kernel"]), rows(given["points"])
    points = reader.engine.place(points)
    return PointBasis(kernel, points, reader.engine, single=bool(given["single"]))


def point_gram(reader: Reader, given) -> PointGram:
    """All points; the draft, which only a fit needs, is not made before it is asked for."""
    kernel, points = resolved(given["kernel"]), rows(given["points"])
    dtype = np.dtype(given["dtype"]).type
    if dtype not in (np.float32, np.float64):
        raise ModelFileError(f"a basis cannot be of type {dtype.__name__}")
    points = reader.engine.place(points)
    return PointGram(kernel, points, reader.engine, single=bool(given["single"]), dtype=dtype)


def chunk_points(basis: ChunkGram) -> dict:
    """All points of a cluster, which are brought here some at a time while they are written."""
    rows: Any = Pieces(basis.points.dtype, basis.points.shape, basis.pieces)
    if basis.sparse_rows:
        rows = sparse_pieces(basis)
    return {"kernel": basis.kernel, "single": basis.single, "dtype": np.float64, "points": rows}


def sparse_pieces(basis: ChunkGram) -> CsrPieces:
    """The same of CSR chunks: their numbers are counted first."""
    counts = np.concatenate([np.diff(piece.indptr) for piece in basis.pieces()])
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    nnz = int(indptr[-1])
    small = max(nnz, basis.points.shape[1]) < np.iinfo(np.int32).max
    whole_number = np.dtype(np.int32 if small else np.int64)
    return CsrPieces(
        Pieces(basis.points.dtype, (nnz,), lambda: (piece.data for piece in basis.pieces())),
        Pieces(whole_number, (nnz,), lambda: (piece.indices for piece in basis.pieces())),
        indptr.astype(whole_number),
        basis.points.shape[1],
    )


def only_written(reader: Reader, given) -> NoReturn:
    """Rows of a cluster are in a file as all points, and never by their own name."""
    raise ModelFileError("the header names rows of a cluster, which no file holds")


def given_matrix(cls) -> Part:
    """A basis without points, of which only the size is kept."""

    def build(reader, given):
        return cls(AbsentMatrix(whole(given["size"])), reader.engine)

    return Part(cls, lambda basis: {"size": basis.size}, build)


class AbsentMatrix:
    """The training kernel matrix that a model file leaves out: only its size is known."""

    def __init__(self, size: int):
        self.shape = (size, size)

    def _missing(self, *args):
        raise ValueError(
            "This model was loaded from a file, which does not hold the training kernel matrix. "
            "transform needs only the kernel between new and training rows; for all else fit again."
        )

    __matmul__ = __getitem__ = diagonal = toarray = __array__ = _missing


def feature_basis(reader: Reader, given) -> FeatureBasis:
    """Random features and the kernel they stand for."""
    features = given["features"]
    if not isinstance(features, Fourier | TensorSketch):
        raise ModelFileError("random features of an unknown kind")
    return FeatureBasis(resolved(given["kernel"]), features, reader.engine)


def fourier(reader: Reader, given) -> Fourier:
    """Frequencies, one row each."""
    return Fourier(matrix(given["frequencies"]))


def tensor_sketch(reader: Reader, given) -> TensorSketch:
    """Hashes within the size, and their signs."""
    columns, signs, size = given["columns"], matrix(given["signs"]), whole(given["size"])
    fits = isinstance(columns, np.ndarray) and columns.shape == signs.shape and len(columns)
    if not fits or columns.dtype.kind not in "iu" or columns.min() < 0 or columns.max() >= size:
        raise ModelFileError("the hashes of a tensor sketch do not fit its size")
    return TensorSketch(columns, signs, number(given["scale"]), number(given["constant"]), size)


def fourier_grid(reader: Reader, given) -> FourierBasis:
    """A grid of frequencies whose weights are those of its kernel."""
    grid, kernel = given["frequencies"], resolved(given["kernel"])
    if not isinstance(grid, Frequencies):
        raise ModelFileError("a Fourier grid without frequencies")
    box, spacing, weights = matrix(grid.box), vector(grid.spacing), vector(grid.weights)
    J, d = grid.index, spacing.size
    shapes = box.shape == (d, 2) and J.shape == (weights.size - 1, d) and J.dtype.kind == "i"
    signs = shapes and (box[:, 0] < box[:, 1]).all() and min(spacing) > 0 and weights.min() >= 0
    full = np.prod(2.0 * np.abs(J.astype(float)).max(axis=0, initial=0) + 1) if signs else np.inf
    if not signs or d > FourierGrid.most_columns or full > FULL_GRID * weights.size:
        raise ModelFileError("the frequencies of a Fourier grid do not fit its box or its weights")
    return FourierBasis(kernel, grid, reader.engine, number(given["tol"]))


def columns(reader: Reader, given) -> ColumnBasis:
    """The columns themselves, for the kernels that are inner products of them."""
    kernel, size = resolved(given["kernel"]), whole(given["size"])
    if not has_columns(kernel) or size < 1:
        raise ModelFileError(f"{size} columns are no basis for {kernel!r:.60}")
    return ColumnBasis(kernel, size, reader.engine)


#: Every basis, and the random features that one is made of.
BASIS_PARTS = [
    Part(PointBasis, points_of("kernel", "single"), point_basis),
    Part(PointGram, points_of("kernel", "single", "dtype"), point_gram),
    Part(ChunkGram, chunk_points, only_written, tag="PointGram"),
    given_matrix(PrecomputedBasis),
    given_matrix(HollowMatrix),
    Part(FeatureBasis, named("kernel", "features"), feature_basis),
    Part(Fourier, named("frequencies"), fourier),
    Part(FourierBasis, named("kernel", "frequencies", "tol"), fourier_grid),
    Part(ColumnBasis, named("kernel", "size"), columns),
    Part(TensorSketch, named("columns", "signs", "scale", "constant", "size"), tensor_sketch),
]
