"""Greedy pivots of a partial Cholesky factorization, step after step on a device.

A step takes a few microseconds there, and to wait for it at every pivot takes fifty. So the choice
of a pivot is made on the device as well: one kernel chooses and scales its row, another one takes
it out of all rows. The host reads the pivots of some dozens of steps at once.
"""

import torch
import triton
import triton.language as tl

from .fused import current

# Columns worked on at once.
CHOICE_COLUMNS, UPDATE_COLUMNS = 4096, 2048


def greedy_pivots(rows, V, counts, places, power, diagonal, floor, *, bar, ties, limit):
    """Which of some rows of R become pivots, in order: at each step the one of largest gain.

    The gain of row i is ``sum_n c_n R_in^2 / R_ii``. It ends where the best has none, or, after the
    first, one below `bar`.

    Parameters
    ----------
    rows : tensor of shape (l, m)
        Rows of R, overwritten with what the pivots leave of them.
    V : tensor of shape (b, m)
        Filled with the rows of the factor, one for every pivot.
    counts : tensor of shape (m,)
    places : tensor of int, shape (l,)
        The columns that the rows belong to.
    power, diagonal, floor : tensors of shape (l,)
        ``sum_n c_n R_in^2``, overwritten; R_ii, overwritten; what of R_ii is rounding.
    bar : float
    ties : tuple of three floats
        Shares of the largest gain from which gains are equal, and nearly equal; the share of
        another diagonal below which a row loses to one that is nearly equal.
    limit : int
        Most pivots, at most b.

    Returns
    -------
    array of int, shape (k,)
        Numbers of the rows.
    """
    (length, m), side = rows.shape, triton.next_power_of_2(rows.shape[0])
    free = torch.ones(length, dtype=torch.int32, device=rows.device)
    # The pivot of each step or -1; the last place tells whether it has ended.
    chosen = torch.full((limit + 1,), -1, dtype=torch.int32, device=rows.device)
    norm = torch.zeros(limit, dtype=rows.dtype, device=rows.device)
    bounds = torch.tensor([bar, *ties], dtype=rows.dtype, device=rows.device)
    state = power, diagonal, floor, free, chosen, norm, bounds
    with current(rows.device):
        for step in range(limit):
            _choose[(1,)](
                rows, V, counts, *state, step, limit, length, m,
                SIDE=side, BLOCK=CHOICE_COLUMNS, num_warps=8,
            )  # fmt: skip
            _update[(length,)](
                rows, V, counts, places, power, diagonal, chosen, norm, step, limit, m,
                BLOCK=UPDATE_COLUMNS, num_warps=4,
            )  # fmt: skip
    found = chosen[:limit].cpu().numpy()
    return found[found >= 0]


@triton.jit(do_not_specialize=["step", "limit", "length", "m"])
def _choose(
    rows,
    V,
    counts,
    power,
    diagonal,
    floor,
    free,
    chosen,
    norm,
    bounds,
    step,
    limit,
    length,
    m,
    SIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The row of largest gain becomes the next row of V, if there is one above the bar."""
    bar, equal = tl.load(bounds), tl.load(bounds + 1)
    near, far_smaller = tl.load(bounds + 2), tl.load(bounds + 3)
    at = tl.arange(0, SIDE)
    there = at < length
    P = tl.load(power + at, mask=there, other=0.0)
    D = tl.load(diagonal + at, mask=there, other=1.0)
    rest = tl.load(floor + at, mask=there, other=0.0)
    ok = there & (tl.load(free + at, mask=there, other=0) > 0) & (D > rest)
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
        wide = tl.full((), 0, tl.int64)
        total = tl.zeros((BLOCK,), P.dtype)
        for start in range(0, m, BLOCK):
            j = start + tl.arange(0, BLOCK)
            v = tl.load(rows + (wide + pivot) * m + j, mask=j < m, other=0.0) / root
            tl.store(V + (wide + step) * m + j, v, mask=j < m)
            total += tl.load(counts + j, mask=j < m, other=0.0) * v * v
        tl.store(norm + step, tl.sum(total, axis=0))


@triton.jit(do_not_specialize=["step", "limit", "m"])
def _update(
    rows,
    V,
    counts,
    places,
    power,
    diagonal,
    chosen,
    norm,
    step,
    limit,
    m,
    BLOCK: tl.constexpr,
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
