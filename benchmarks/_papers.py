"""The folder of `papers_data`, the loaders of the papers' data, on the path of the benchmarks."""

import sys
from pathlib import Path

# Behind all else: scripts there have names that scripts here have too.
sys.path.append(str(Path(__file__).parents[1] / "reproduce"))

import papers_data as papers_data
from _denoising import wiener as wiener
