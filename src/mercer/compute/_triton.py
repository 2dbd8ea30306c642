"""A fused tile for CUDA: inner products, the kernel's scalar map and the product with V.

One program owns a strip of rows and walks over the columns; a tile of the kernel matrix
lives in registers and is never written to memory, as in flash attention. Of a symmetric matrix
only tiles on and above the diagonal are made: each is multiplied with the columns' part of V and,
transposed, with the rows' part, whose product is added to `side` atomically. Rows and columns
are padded to whole tiles, so nothing is masked: padded rows of V are zero.

Rows come as a left factor and a right factor, so that norms are columns of the same product.
Four precisions of it, all summed in float32:

    "half"    one product of float16 roundings, error about 2e-4
    "split"   x = h + l as two float16, products h.l + l.h + h.h, error about 1e-6
    "tf32"    one product of rounded float32, for numbers beyond the range of float16
    "tf32x3"  three of them

float16 keeps as many digits as tf32 and multiplies twice as fast.
"""

import torch
import triton
import triton.language as tl

from .fused_tile import STRIP, Tile


def launch(left, right, V, out, side, scalar_map, precision, rows, chunk, first, squares=None):
    """out[i] += f(left . right') V for some strips of rows; side[j] += f(..)' V[i] if symmetric.

    Parameters
    ----------
    left, right : tuples (high, low)
        Prepared rows, (n, D), and columns, (m, D); `low` is `high` where the precision needs none.
    V : tuple (high, low)
        (m, B), B a whole number of sixteens as in `parts`; `low` is None where V has none.
    out : tensor of shape (n, B), float64
    side : tensor of shape (n, B), float32, or None
        None for a matrix that is not symmetric, or not treated as such.
    scalar_map : ScalarMap
    precision : str
    rows : slice
        Whole strips.
    chunk : int
        Columns of one program, a multiple of `STRIP`.
    first : int or None
        The row that the first column is, where columns are rows; None where they are not.
    squares : tensor of shape (n,), float64, or None
        For every row the sum over columns of the squares of the entries as they are multiplied, is
        added to it; those of tiles that serve both sides count twice. Padded ones count.
    """
    D, (m, B) = left[0].shape[1], V[0].shape
    present = (part is not None for part in (side, V[1], first, squares))
    tile = Tile(D, B, scalar_map, precision, *present)
    # One signature for all, so that there is one launcher.
    halves = V[0], V[0] if V[1] is None else V[1]
    side = out.new_empty(1, dtype=torch.float32) if side is None else side
    squares = out.new_empty(1) if squares is None else squares
    grid = (rows.stop - rows.start) // tile.shape[0], -(-m // chunk)
    numbers = rows.start, m, chunk, first or 0, D, (*scalar_map.parameters, 0.0)[0], 1.0
    _strips[grid](*left, *right, *halves, out, side, squares, *numbers, **tile.constants)


def compile_tile(tile: Tile) -> None:
    """Compile a tile and what starts it, without a run of it."""
    half = torch.float16 if tile.precision in ("half", "split") else torch.float32
    numbers = 0, STRIP, STRIP, 0, tile.D, 0.5, 1.0
    types = *6 * (half,), torch.float64, torch.float32, torch.float64
    kernel = _strips.warmup(*types, *numbers, grid=(1, 1), **tile.constants)
    # Asking for it builds the launcher, by a C compiler, and loads the code: a third of a second.
    assert kernel.run is not None


@triton.jit
def _strips(
    Lh, Ll, Rh, Rl, Vh, Vl, out, side, squares, first_row, m, chunk, first, D, parameter, one,
    D0: tl.constexpr, D1: tl.constexpr, LOOP: tl.constexpr,
    B: tl.constexpr, B0: tl.constexpr, B1: tl.constexpr,
    MAP: tl.constexpr, DEGREE: tl.constexpr, PRECISION: tl.constexpr, LOW: tl.constexpr,
    SYMMETRIC: tl.constexpr, SAME: tl.constexpr, HOLLOW: tl.constexpr, SUMMED: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """One strip of BM rows against a chunk of columns, BN at a time."""
    row = first_row + tl.program_id(0) * BM
    begin = tl.program_id(1) * chunk
    end = tl.minimum(begin + chunk, m)
    if SYMMETRIC:
        begin = tl.maximum(begin, row)
    if begin < end:
        i = tl.arange(0, BM)
        j = tl.arange(0, BN)
        d0 = tl.arange(0, D0)
        d1 = D0 + tl.arange(0, max(D1, 16))
        k0 = tl.arange(0, B0)
        k1 = B0 + tl.arange(0, max(B1, 16))
        corner = tl.full((), 0, tl.int64) + row
        x = Lh + corner * D + i[:, None] * D
        y = Ll + corner * D + i[:, None] * D
        if not LOOP:
            x0, x1 = _both(x, d0, d1, D1)
            y0, y1 = x0, x1
            if PRECISION == "split":
                y0, y1 = _both(y, d0, d1, D1)
        if SYMMETRIC:
            u0, u1 = _both(Vh + corner * B + i[:, None] * B, k0, k1, B1)
            t0, t1 = u0, u1
            if LOW:
                t0, t1 = _both(Vl + corner * B + i[:, None] * B, k0, k1, B1)
        total0 = tl.zeros((BM, B0), tl.float32)
        total1 = tl.zeros((BM, max(B1, 16)), tl.float32)
        square = tl.zeros((BM,), tl.float64)
        for start in range(begin, end, BN):
            place = tl.full((), 0, tl.int64) + start
            z = Rh + place * D + j[None, :] * D
            q = Rl + place * D + j[None, :] * D
            T = tl.zeros((BM, BN), tl.float32)
            if LOOP:
                T = _looped(x, y, z, q, d0, D, T, D0, PRECISION)
            else:
                T = _kept(x0, y0, x1, y1, z, q, d0, d1, T, D1, PRECISION)
            if SAME:
                T = tl.where((row + i)[:, None] == (first + start + j)[None, :], 0.0, T)
            K = _scalar_map(T, parameter, MAP, DEGREE)
            if HOLLOW:
                K = tl.where((row + i)[:, None] == (first + start + j)[None, :], 0.0, K)
            kh, kl = _halves(K, PRECISION)
            if SUMMED:
                # In double from tile to tile: longer sums in single precision would round too much.
                taken = kh.to(tl.float32) if PRECISION == "half" else K
                twice = tl.where(start >= row + BM, 2.0, 1.0) if SYMMETRIC else 1.0
                square += (tl.sum(taken * taken, axis=1) * twice).to(tl.float64)
            v = Vh + place * B + j[:, None] * B
            w = Vl + place * B + j[:, None] * B
            v0 = tl.load(v + k0[None, :])
            w0 = tl.load(w + k0[None, :]) if LOW else 0
            # A fresh sum for every tile: tensor cores truncate what they add to. Times one, since
            # a plain sum would be made a part of the product again.
            total0 = tl.fma(_outer(kh, kl, v0, w0, PRECISION, LOW), one, total0)
            if B1 > 0:
                v1 = tl.load(v + k1[None, :])
                w1 = tl.load(w + k1[None, :]) if LOW else 0
                total1 = tl.fma(_outer(kh, kl, v1, w1, PRECISION, LOW), one, total1)
            if SYMMETRIC:
                # Tiles that touch the diagonal are all made, and serve their rows alone.
                above = tl.where(start >= row + BM, 1.0, 0.0)
                target = side + place * B + j[:, None] * B
                kht = tl.trans(kh)
                klt = tl.trans(kl) if PRECISION == "split" else kl
                _add_back(target, k0, kht, klt, u0, t0, above, PRECISION, LOW)
                if B1 > 0:
                    _add_back(target, k1, kht, klt, u1, t1, above, PRECISION, LOW)
        if SUMMED:
            tl.atomic_add(squares + corner + i, square, sem="relaxed")
        sums = out + corner * B + i[:, None] * B
        tl.atomic_add(sums + k0[None, :], total0.to(tl.float64), sem="relaxed")
        if B1 > 0:
            tl.atomic_add(sums + k1[None, :], total1.to(tl.float64), sem="relaxed")


@triton.jit
def _both(rows, c0, c1, C1: tl.constexpr):
    """Two parts of some rows; the first one twice where there is no second."""
    r0 = tl.load(rows + c0[None, :])
    r1 = r0
    if C1 > 0:
        r1 = tl.load(rows + c1[None, :])
    return r0, r1


@triton.jit
def _looped(x, y, z, q, d0, D, T, D0: tl.constexpr, PRECISION: tl.constexpr):
    """Inner products of wide rows, a slice of columns at a time."""
    for s in range(0, D, D0):
        T = _inner(
            tl.load(x + (s + d0)[None, :]),
            tl.load(y + (s + d0)[None, :]) if PRECISION == "split" else 0,
            tl.load(z + (s + d0)[:, None]),
            tl.load(q + (s + d0)[:, None]) if PRECISION == "split" else 0,
            T,
            PRECISION,
        )
    return T


@triton.jit
def _kept(x0, y0, x1, y1, z, q, d0, d1, T, D1: tl.constexpr, PRECISION: tl.constexpr):
    """Inner products with rows that stay where they are."""
    q0 = tl.load(q + d0[:, None]) if PRECISION == "split" else 0
    T = _inner(x0, y0, tl.load(z + d0[:, None]), q0, T, PRECISION)
    if D1 > 0:
        q1 = tl.load(q + d1[:, None]) if PRECISION == "split" else 0
        T = _inner(x1, y1, tl.load(z + d1[:, None]), q1, T, PRECISION)
    return T


@triton.jit
def _add_back(target, k, kht, klt, u, t, above, PRECISION: tl.constexpr, LOW: tl.constexpr):
    """The transposed tile times the rows' part of V, to the columns' sums."""
    back = _outer(kht, klt, u, t, PRECISION, LOW) * above
    tl.atomic_add(target + k[None, :], back, sem="relaxed")


@triton.jit
def _inner(xh, xl, zh, zl, T, PRECISION: tl.constexpr):
    """T + x z; the small products first, before T is too large for their last digits."""
    if PRECISION == "split":
        T = tl.dot(xh, zl, T)
        T = tl.dot(xl, zh, T)
    if PRECISION == "tf32x3":
        T = tl.dot(xh, zh, T, input_precision="tf32x3")
    else:
        T = tl.dot(xh, zh, T, input_precision="tf32")
    return T


@triton.jit
def _halves(K, PRECISION: tl.constexpr):
    """The tile as the product with V takes it: in float16, and what that leaves."""
    if PRECISION == "half":
        kh = K.to(tl.float16)
        return kh, kh
    elif PRECISION == "split":
        kh = K.to(tl.float16)
        return kh, (K - kh.to(tl.float32)).to(tl.float16)
    else:
        return K, K


@triton.jit
def _outer(kh, kl, vh, vl, PRECISION: tl.constexpr, LOW: tl.constexpr):
    """The tile times some rows of V, in float32."""
    if PRECISION == "split":
        part = tl.dot(kl, vh)
        if LOW:
            part = tl.dot(kh, vl, part)
        return tl.dot(kh, vh, part)
    elif PRECISION == "tf32x3":
        return tl.dot(kh, vh, input_precision="tf32x3")
    else:
        return tl.dot(kh, vh, input_precision="tf32")


@triton.jit
def _scalar_map(T, parameter, MAP: tl.constexpr, DEGREE: tl.constexpr):
    """The kernel of an inner product, or of minus a scaled squared distance."""
    if MAP == "exp2":
        # Rounding leaves T positive where a row far from the origin is compared with itself.
        K = tl.exp2(tl.minimum(T, 0.0))
    elif MAP == "matern":
        # T = -gamma |x - z|^2, s = sqrt(-4 nu T); rounding leaves small positive T.
        s = tl.sqrt(tl.maximum(-parameter * T, 0.0))
        K = tl.exp(-s)
        if DEGREE == 1:
            K *= 1.0 + s
        elif DEGREE == 2:
            K *= 1.0 + s + s * s * (1.0 / 3.0)
    elif MAP == "rational":
        K = tl.exp(-parameter * tl.log(1.0 + tl.maximum(-T, 0.0) / parameter))
    elif MAP == "power":
        T += parameter
        K = T
        for _ in tl.static_range(DEGREE - 1):
            K *= T
    elif MAP == "tanh":
        # 1 - 2 / (exp(2t) + 1) has no overflow that matters: exp(2t) = inf gives 1.
        K = 1.0 - 2.0 / (tl.exp(2.0 * (T + parameter)) + 1.0)
    else:
        K = T
    return K
