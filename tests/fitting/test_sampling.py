"""Samples by keys: the short cuts keep the rows that the definition keeps."""

from itertools import pairwise

import numpy as np
import pytest
from contracts import generator

from mercer.fitting.functions import RowSample, sampled_numbers, uniforms


def by_definition(n, size, seed):
    """The numbers with the smallest log(-log u), of all n."""
    keys = np.log(-np.log(uniforms(np.arange(n), seed)))
    return np.sort(np.argsort(keys, kind="stable")[:size])


@pytest.mark.parametrize("n", [1, 10, 499, 500, 501, 1000, 1500, 70_000])
def test_numbers_and_batches_agree_with_the_definition(n):
    rng, size = generator(n), 500
    seed = int(rng.integers(2**62))
    wanted = by_definition(n, size, seed)
    np.testing.assert_array_equal(sampled_numbers(n, size, seed), wanted)
    X, sample = np.arange(n, dtype=float)[:, None], RowSample(size, seed)
    cuts = np.unique([0, *rng.integers(0, n + 1, 6), n])
    for start, stop in pairwise(cuts):
        sample = sample.add(X[start:stop], start)
    np.testing.assert_array_equal(sample.rows[:, 0], wanted)
