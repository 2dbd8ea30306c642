"""A fused tile for CUDA: inner products, the kernel's scalar map and the product with V.

One program owns a strip of rows and walks over the columns; a tile of the kernel matrix
lives in registers and is never written to memory, as in flash attention. Rows and columns
are padded to whole tiles, so nothing is masked: padded rows of V are zero.

Four precisions of the inner products, all summed in float32:

    "half"    one product of float16 roundings, error about 1e-3
    "split"   x = h + l as two float16, products h.h + h.l + l.h, error about 1e-6
    "tf32"    one product of rounded float32, for numbers beyond the range of float16
    "tf32x3"  three of them

float16 keeps as many digits as tf32 and multiplies twice as fast.
"""

import triton
import triton.language as tl

# Rows of a strip: all arrays are padded to multiples of it.
STRIP = 128
# Columns of the data taken at once; more are looped over.
SLICE = 64


def launch(rows, columns, V, out, scalar_map, precision, chunk, first):
    """out[s] = f(rows . columns[s]' + norms) V[s] for the s-th chunk of prepared columns.

    Parameters
    ----------
    rows, columns : tuples (high, low, norms)
        Prepared rows, (n, D), with D at most `SLICE` or a multiple of it; `low` is `high`
        where the precision needs none.
    V : tuple (high, low)
        (m, b), b one of 16, 32, 64.
    out : tensor of shape (chunks, n, b), float32
    scalar_map : ScalarMap
    precision : str
    chunk : int
        Columns in a chunk, a multiple of `STRIP`.
    first : int or None
        The row that the first column is, where columns are rows; None where they are not.
    """
    n, D = rows[0].shape
    m, B = V[0].shape
    BM, BN, warps, stages = tile_shape(D, precision)
    _strip[(n // BM, out.shape[0])](
        *rows,
        *columns,
        *V,
        out,
        n,
        m,
        chunk,
        first or 0,
        (*scalar_map.parameters, 0.0)[0],
        D=D,
        B=B,
        BD=min(D, SLICE),
        MAP=scalar_map.name,
        DEGREE=scalar_map.degree,
        PRECISION=precision,
        SAME=first is not None and scalar_map.rough,
        BM=BM,
        BN=BN,
        num_warps=warps,
        num_stages=stages,
    )


def tile_shape(D, precision):
    """Rows and columns of a tile, warps and pipeline stages that were fastest on an H200."""
    if precision in ("half", "split"):
        if D > SLICE:
            return STRIP, 128, 8, 3
        return STRIP, 64, 4 if precision == "half" else 8, 3
    return STRIP if precision == "tf32" and D <= SLICE else 64, 64, 4, 3


@triton.jit
def _strip(
    Xh,
    Xl,
    a,
    Zh,
    Zl,
    c,
    Vh,
    Vl,
    out,
    n,
    m,
    chunk,
    first,
    parameter,
    D: tl.constexpr,
    B: tl.constexpr,
    BD: tl.constexpr,
    MAP: tl.constexpr,
    DEGREE: tl.constexpr,
    PRECISION: tl.constexpr,
    SAME: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """One strip of BM rows against a chunk of columns, BN at a time."""
    i = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    split = tl.program_id(1)
    d = tl.arange(0, BD)
    k = tl.arange(0, B)
    step = tl.arange(0, BN)
    norms = tl.load(a + i)
    total = tl.zeros((BM, B), tl.float32)
    xh = tl.load(Xh + i[:, None] * D + d[None, :])
    xl = xh
    if PRECISION == "split":
        xl = tl.load(Xl + i[:, None] * D + d[None, :])
    for start in range(split * chunk, tl.minimum((split + 1) * chunk, m), BN):
        j = (start + step).to(tl.int64)
        if D == BD:
            zh = tl.load(Zh + j[None, :] * D + d[:, None])
            T = _dot(xh, zh, PRECISION)
            if PRECISION == "split":
                zl = tl.load(Zl + j[None, :] * D + d[:, None])
                T = tl.dot(xh, zl, T)
                T = tl.dot(xl, zh, T)
        else:
            T = tl.zeros((BM, BN), tl.float32)
            for s in range(0, D, BD):
                yh = tl.load(Xh + i[:, None] * D + (s + d)[None, :])
                zh = tl.load(Zh + j[None, :] * D + (s + d)[:, None])
                T += _dot(yh, zh, PRECISION)
                if PRECISION == "split":
                    yl = tl.load(Xl + i[:, None] * D + (s + d)[None, :])
                    zl = tl.load(Zl + j[None, :] * D + (s + d)[:, None])
                    T = tl.dot(yh, zl, T)
                    T = tl.dot(yl, zh, T)
        T += norms[:, None] + tl.load(c + j)[None, :]
        if SAME:
            T = tl.where(i[:, None] == first + j[None, :], 0.0, T)
        K = _scalar_map(T, parameter, MAP, DEGREE)
        vh = tl.load(Vh + j[:, None] * B + k[None, :])
        if PRECISION == "half" or PRECISION == "split":
            kh = K.to(tl.float16)
            # A fresh sum for every tile: tensor cores truncate what they add to.
            part = tl.dot(kh, vh)
            if PRECISION == "split":
                vl = tl.load(Vl + j[:, None] * B + k[None, :])
                part = tl.dot(kh, vl, part)
                part = tl.dot((K - kh.to(tl.float32)).to(tl.float16), vh, part)
        else:
            part = _dot(K, vh, PRECISION)
        total += part
    tl.store(out + (split.to(tl.int64) * n + i[:, None]) * B + k[None, :], total)


@triton.jit
def _dot(x, z, PRECISION: tl.constexpr):
    """x z in float32: float16 factors as they are, float32 ones by tf32."""
    if PRECISION == "tf32x3":
        return tl.dot(x, z, input_precision="tf32x3")
    else:
        return tl.dot(x, z, input_precision="tf32")


@triton.jit
def _scalar_map(T, parameter, MAP: tl.constexpr, DEGREE: tl.constexpr):
    """The kernel of an inner product, or of minus a scaled squared distance."""
    if MAP == "exp2":
        # Rounding leaves T positive where far rows meet themselves.
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
