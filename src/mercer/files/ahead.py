"""Reading ahead: the next block is decoded while the last one is worked on."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from .base import RowSource


def read_blocks(source: RowSource, rows: int) -> Generator:
    """The blocks of a source, one read ahead where another thread may read it.

    Close it (`contextlib.closing`) when it is left before its end.
    """
    with closing(source.blocks(rows)) as blocks:
        if not source.threaded:
            yield from blocks
            return
        with ThreadPoolExecutor(1) as reader:
            waiting = reader.submit(next, blocks, None)
            while (block := waiting.result()) is not None:
                waiting = reader.submit(next, blocks, None)
                yield block
