"""The batches of a stream: what `StreamingKernelPCA.fit` takes for them."""

from collections.abc import Iterator
from contextlib import closing

from scipy import sparse

from ..compute import is_sparse, parse_bytes
from ..files import open_source, read_blocks
from ..progress.rows import RowBar
from .out_of_core import block_rows
from .sources import is_source


def as_batches(X, memory, verbose):
    """The batches of an iterator, of a list of 2D arrays or of a file; an array is one batch."""
    several = isinstance(X, list | tuple) and X and all(getattr(b, "ndim", 0) == 2 for b in X)
    if several or isinstance(X, Iterator):
        return filter(has_rows, X)
    return file_batches(X, memory, verbose) if is_source(X) else [X]


def has_rows(batch) -> bool:
    """Whether a batch is not plainly empty; what has no shape is for the checks to judge."""
    return getattr(batch, "shape", ())[:1] != (0,)


def file_batches(X, memory, verbose):
    """The blocks of a file or another source, with a progress bar."""
    source = open_source(X)
    reading = closing(read_blocks(source, block_rows(source, parse_bytes(memory))))
    with RowBar(verbose) as progress, reading as blocks:
        yield from progress.over(blocks, "moments", source.n_rows)


def match_sparsity(X, rows):
    """X sparse or dense as the rows before it."""
    if rows is None or is_sparse(X) == is_sparse(rows):
        return X
    return sparse.csr_matrix(X) if is_sparse(rows) else X.toarray()
