"""Greedy pivots of a partial Cholesky factorization, step after step on a device.

A step takes a few microseconds there, and to wait for it at every pivot takes fifty. So the choice
of a pivot is made on the device as well: one kernel chooses and scales its row, another one takes
it out of all rows. The host reads the pivots of some dozens of steps at once.
"""

import numpy as np
import torch
import triton
import triton.language as tl

from .fused import current

# Columns worked on at once.
CHOICE_COLUMNS, UPDATE_COLUMNS = 4096, 2048


class GreedyPivots:
    """The rows of R that become pivots, at each step the one of largest gain.

    The gain of row i is ``sum_n c_n R_in^2 / R_ii``. Arrays stay where they are from one call of
    `take` to the next, so that its steps are recorded once and then repeated as a whole.

    Parameters
    ----------
    counts : tensor of shape (m,)
        Weights c of the columns.
    length : int
        Rows to choose from.
    limit : int
        Pivots at a time.
    ties : tuple of three floats
        Shares of the largest gain from which gains are equal, and nearly equal; the share of
        another diagonal below which a row loses to one that is nearly equal.

    Attributes
    ----------
    V : tensor of shape (limit, m)
        The rows of the factor, one for every pivot.
    """

    def __init__(self, counts, length: int, limit: int, ties: tuple[float, float, float]):
        def array(*shape, dtype=counts.dtype):
            return torch.empty(shape, dtype=dtype, device=counts.device)

        m = counts.shape[0]
        self.counts, self.length, self.limit = counts, length, limit
        self.rows, self.V = array(length, m), array(limit, m)
        self.places = array(length, dtype=torch.int64)
        self.power, self.diagonal, self.floor = array(length), array(length), array(length)
        self.free, self.norm = array(length, dtype=torch.int32), array(limit)
        # The pivot of each step or -1; the last place tells whether it has ended.
        self.chosen = array(limit + 1, dtype=torch.int32)
        self.bounds = torch.tensor([0.0, *ties], dtype=counts.dtype, device=counts.device)
        self._calls, self._recorded = 0, None

    def take(self, R, places, power, diagonal, floor, bar: float):
        """Numbers of the rows taken, in order, (k,).

        Ends where the best row has no gain, or, after the first, one below `bar`.

        Parameters
        ----------
        R : tensor of shape (m, m)
        places : array of int, shape (length,)
            The rows to choose from.
        power, diagonal, floor : arrays of shape (length,)
            ``sum_n c_n R_in^2``, R_ii, and what of R_ii is rounding.
        """
        self.places.copy_(torch.from_numpy(places))
        torch.index_select(R, 0, self.places, out=self.rows)
        numbers = np.concatenate([power, diagonal, floor, [bar]]).astype(power.dtype)
        parts = torch.from_numpy(numbers).to(R.device).split([*3 * (self.length,), 1])
        targets = self.power, self.diagonal, self.floor, self.bounds[:1]
        for target, part in zip(targets, parts, strict=True):
            target.copy_(part)
        self.free.fill_(1)
        self.chosen.fill_(-1)
        # All steps: the first time one by one, which compiles, then as they were recorded.
        self._calls += 1
        if self._recorded is None and self._calls > 1 and self.rows.is_cuda:
            self._recorded = recorded(self._launch, self.rows.device)
        if self._recorded is None:
            self._launch()
        else:
            self._recorded.replay()
        pivots = self.chosen[: self.limit].cpu().numpy()
        return pivots[pivots >= 0]

    def _launch(self):
        m, numbers = self.rows.shape[1], (self.limit, self.length, self.rows.shape[1])
        fixed = self.rows, self.V, self.counts
        state = self.power, self.diagonal, self.floor, self.free, self.chosen, self.norm
        side = triton.next_power_of_2(self.length)
        with current(self.rows.device):
            for step in range(self.limit):
                _choose[(1,)](
                    *fixed, *state, self.bounds, step, *numbers,
                    SIDE=side, BLOCK=CHOICE_COLUMNS, num_warps=8,
                )  # fmt: skip
                _update[(self.length,)](
                    *fixed, self.places, self.power, self.diagonal, self.chosen, self.norm,
                    step, self.limit, m, BLOCK=UPDATE_COLUMNS, num_warps=4,
                )  # fmt: skip


def recorded(launch, device):
    """The kernels that `launch` starts, as a graph: to start it takes as long as one of them."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(device), torch.cuda.stream(torch.cuda.Stream(device)):
        torch.cuda.synchronize(device)
        graph.capture_begin()
        launch()
        graph.capture_end()
    return graph


@triton.jit(do_not_specialize=["step", "limit", "length", "m"])
def _choose(
    rows, V, counts, power, diagonal, floor, free, chosen, norm, bounds, step, limit, length, m,
    SIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The row of largest gain becomes the next row of V, if there is one above the bar."""
    bar, equal = tl.load(bounds), tl.load(bounds + 1)
    near, far_smaller = tl.load(bounds + 2), tl.load(bounds + 3)
    at = tl.arange(0, SIDE)
    there = at < length
    P = tl.load(power + at, mask=there, other=0.0)
    D = tl.load(diagonal + at, mask=there, other=1.0)
    rest = tl.load(floor + at, mask=there, other=0.0)
    ok = there & (tl.load(free + at, mask=there, other=0) > 0) & (rest < D)
    gain = tl.where(ok, P / tl.where(ok, D, 1.0), 0.0)
    # Where only rounding is left a square may be negative, or no number.
    gain = tl.where(gain > 0, gain, 0.0)
    top = tl.max(gain, axis=0)
    among = tl.where(ok & (gain >= equal * top), D, -1.0)
    first = tl.argmax(among, axis=0)
    pivot_diagonal = tl.max(among, axis=0)
    others = tl.where(ok & (gain >= near * top), D, -1.0)
    larger = tl.max(others, axis=0)
    swap = pivot_diagonal < far_smaller * larger
    pivot = tl.where(swap, tl.argmax(others, axis=0), first)
    pivot_diagonal = tl.where(swap, larger, pivot_diagonal)
    gained = tl.sum(tl.where(at == pivot, P, 0.0), axis=0)
    ended = (tl.load(chosen + limit) >= 0) | (top <= 0)
    ended = ended | ((step > 0) & (gained < bar * pivot_diagonal))
    if ended:
        tl.store(chosen + limit, 1)
    else:
        tl.store(chosen + step, pivot)
        tl.store(free + pivot, 0)
        root = tl.sqrt(pivot_diagonal)
        zero = tl.full((), 0, tl.int64)  # makes the offsets below 64 bits
        total = tl.zeros((BLOCK,), P.dtype)
        for start in range(0, m, BLOCK):
            j = start + tl.arange(0, BLOCK)
            v = tl.load(rows + (zero + pivot) * m + j, mask=j < m, other=0.0) / root
            tl.store(V + (zero + step) * m + j, v, mask=j < m)
            total += tl.load(counts + j, mask=j < m, other=0.0) * v * v
        tl.store(norm + step, tl.sum(total, axis=0))


@triton.jit(do_not_specialize=["step", "limit", "m"])
def _update(
    rows, V, counts, places, power, diagonal, chosen, norm, step, limit, m, BLOCK: tl.constexpr
):
    """One row of R without the last pivot, its gain and its diagonal."""
    if tl.load(chosen + limit) < 0:
        i = tl.program_id(0)
        v_row = V + (tl.full((), 0, tl.int64) + step) * m
        row = rows + (tl.full((), 0, tl.int64) + i) * m
        u = tl.load(v_row + tl.load(places + i))
        total = tl.zeros((BLOCK,), u.dtype)
        for start in range(0, m, BLOCK):
            j = start + tl.arange(0, BLOCK)
            r = tl.load(row + j, mask=j < m, other=0.0)
            v = tl.load(v_row + j, mask=j < m, other=0.0)
            total += r * tl.load(counts + j, mask=j < m, other=0.0) * v
            tl.store(row + j, r - u * v, mask=j < m)
        product = tl.sum(total, axis=0)
        length = tl.load(norm + step)
        tl.store(power + i, tl.load(power + i) + u * (u * length - 2.0 * product))
        tl.store(diagonal + i, tl.load(diagonal + i) - u * u)
