"""Byte budgets, tiles, threads, and the way to NumPy and back."""

import ctypes
import os
import pickle
import subprocess
import sys
import threading
import time
from unittest import mock

import numpy as np
import pytest
from contracts import check_engine, generator
from numba import njit
from scipy import sparse

from mercer.compute import (
    LocalEngine,
    TileStore,
    array_namespace,
    available_memory,
    format_bytes,
    is_sparse,
    parse_bytes,
    restore,
    row_blocks,
    to_numpy,
)
from mercer.compute import engine as engine_module
from mercer.compute._numba import compiled
from mercer.compute.arrays import is_foreign
from mercer.compute.engine import usable_cores
from mercer.compute.linalg import times_few
from mercer.kernels import RBF, Laplacian, Linear, Polynomial

PLENTY = 10**9


# --- bytes


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("300MB", 300 * 10**6),
        ("2GB", 2 * 10**9),
        ("2GiB", 2 * 2**30),
        ("1.5kB", 1500),
        (".5k", 500),
        ("7", 7),
        ("12B", 12),
        (" 3 mib ", 3 * 2**20),
        ("1TB", 10**12),
        ("1e6", 10**6),
        ("2e3kB", 2 * 10**6),
        (4096, 4096),
        (1e6, 10**6),
        (np.int64(5), 5),
    ],
)
def test_parse_bytes(text, count):
    assert parse_bytes(text) == count
    assert isinstance(parse_bytes(text), int)


@pytest.mark.parametrize("text", ["", "much", "MB", "3 apples", "-3MB", "3PB", "1..5GB", "1IB"])
def test_parse_bytes_says_what_it_wants(text):
    with pytest.raises(ValueError, match=r"is not an amount of memory.*'300MB'"):
        parse_bytes(text)


@pytest.mark.parametrize("amount", [0, -1, "0GB", float("nan"), 0.5])
def test_parse_bytes_wants_something(amount):
    with pytest.raises(ValueError, match="positive"):
        parse_bytes(amount)


def test_free_memory_where_there_is_no_meminfo(monkeypatch):
    """Half of all memory, and on Windows what its own call reports."""

    class Kernel32:
        @staticmethod
        def GlobalMemoryStatusEx(reference):
            status = reference._obj
            assert status.length == 64  # the size that Windows checks
            status.total, status.free = 8 * 10**9, 3 * 10**9

    monkeypatch.setattr(engine_module, "_read", lambda path, after=b"": None)
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    assert available_memory() == half
    monkeypatch.setattr(engine_module, "os", mock.Mock(wraps=os))
    engine_module.os.name = "nt"
    monkeypatch.setattr(ctypes, "windll", mock.Mock(kernel32=Kernel32), raising=False)
    # c_ulong has four bytes there, and eight on other systems.
    monkeypatch.setattr(ctypes, "c_ulong", ctypes.c_uint32)
    assert available_memory() == 3 * 10**9


def test_default_is_a_share_of_what_is_free():
    free = available_memory()
    assert free > 10**6
    assert 0.2 * free < parse_bytes(None) < 0.9 * free


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 12_345_678_901])
def test_budgets_have_few_digits(count):
    """Rounded down by less than 3.2 %, so that a moment later the budget is the same."""
    found = engine_module.rounded_down(count)
    assert 0.968 * count < found <= count or found == count
    assert engine_module.rounded_down(found) == found


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1500, "1.5 kB"),
        (2e6, "2 MB"),
        (3.21e9, "3.21 GB"),
        (5e12, "5 TB"),
        (7e15, "7e+03 TB"),
    ],
)
def test_format_bytes(count, text):
    assert format_bytes(count) == text


@pytest.mark.parametrize("count", [123, 999_600, 12_345_678, 999_999, 3 * 10**9])
def test_format_and_parse_agree(count):
    assert parse_bytes(format_bytes(count)) == pytest.approx(count, rel=0.005)


# --- tiling


def gram(n=150, d=4, kernel=None, dtype=np.float64, seed=0):
    X = generator(n, d, seed).standard_normal((n, d))
    return (kernel or RBF(gamma=0.3)).pairs(X, dtype=dtype)


def whole(pairs):
    n, m = pairs.shape
    return pairs.tile(slice(0, n), slice(0, m), np.empty((n, m), pairs.dtype)).astype(float)


def test_tiling_stays_inside_the_budget_and_uses_it():
    pairs = gram(800)
    for memory in (10**5, 10**6, 10**7, 10**8, 10**9):
        side, threads = LocalEngine(memory, 4).tiling(pairs)
        assert threads * pairs.tile_bytes(side) <= memory
    assert LocalEngine(PLENTY, 4).tiling(pairs) == (LocalEngine.sides[0], 4)
    sides = [LocalEngine(m, 1).tiling(pairs)[0] for m in (10**5, 10**6, 10**7, 10**8)]
    assert sides == sorted(sides)


def test_least_budget_is_named_and_does():
    pairs = gram(n=100)
    least = pairs.tile_bytes(LocalEngine.sides[-1])
    with pytest.raises(ValueError, match=rf"cannot hold one tile.*memory={least}\b") as error:
        LocalEngine(least - 1, 2).tiling(pairs)
    assert format_bytes(least - 1) in str(error.value)
    assert LocalEngine(least, 2).tiling(pairs) == (LocalEngine.sides[-1], 1)


@pytest.mark.parametrize("n", [0, 1, 6, 7, 8, 100])
def test_row_blocks_cover_once(n):
    rows = np.concatenate([np.arange(n)[b] for b in row_blocks(n, 7)] or [np.arange(0)])
    np.testing.assert_array_equal(rows, np.arange(n))
    assert all(b.stop - b.start <= 7 for b in row_blocks(n, 7))


# --- products


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_contract(threads, n):
    for kernel in (RBF(gamma=0.3), Polynomial(gamma=0.1), Laplacian(gamma=0.2)):
        pairs = gram(n, kernel=kernel)
        engine = LocalEngine(pairs.tile_bytes(64) * threads, threads)
        assert engine.tiling(pairs)[0] == 64
        check_engine(engine, pairs, whole(pairs))
        X, Z = generator(n, 1).standard_normal((n, 4)), generator(n, 2).standard_normal((90, 4))
        cross = kernel.pairs(X, Z, dtype=np.float64)
        check_engine(engine, cross, whole(cross))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_symmetric_is_rectangular(dtype):
    X = generator(2).standard_normal((300, 5))
    V = generator(3).standard_normal((300, 6))
    kernel = RBF(gamma=0.2)
    engine = LocalEngine(10**5, 2)
    half = engine.pair_rows(kernel.pairs(X, dtype=dtype), V)
    full = engine.pair_rows(kernel.pairs(X, X.copy(), dtype=dtype), V)
    assert half.dtype == np.float64
    np.testing.assert_allclose(half, full, rtol=0, atol=300 * np.finfo(dtype).eps)


@pytest.mark.parametrize("room", [0, 64 * 64 * 8, 100_000, PLENTY])
@pytest.mark.parametrize("threads", [1, 4])
def test_kept_tiles_give_the_same_product(room, threads):
    pairs = gram(300)
    V = generator(4).standard_normal((300, 3))
    engine = LocalEngine(10**5, threads)
    store = TileStore(room)
    first = engine.pair_rows(pairs, V, store)
    assert store.room >= 0
    kept = sum(T.nbytes for T in store.tiles.values())
    assert kept + store.room == room
    again = engine.pair_rows(pairs, V, store)
    np.testing.assert_allclose(again, first, rtol=0, atol=1e-13 * 300)
    np.testing.assert_allclose(first, whole(pairs) @ V, rtol=0, atol=1e-13 * 300)


def test_kept_tiles_are_used():
    pairs = gram(200)
    engine, store, V = LocalEngine(10**5, 1), TileStore(PLENTY), np.ones((200, 1))
    engine.pair_rows(pairs, V, store)
    pairs.tile = None  # no tile may be made again
    engine.pair_rows(pairs, V, store)


def test_threads_do_not_change_the_result():
    pairs = gram(400)
    V = generator(5).standard_normal((400, 4))
    one, four = (LocalEngine(10**5 * t, t).pair_rows(pairs, V) for t in (1, 4))
    np.testing.assert_allclose(one, four, rtol=0, atol=1e-13 * 400)
    X = generator(6).standard_normal((1000, 3))
    sums = [LocalEngine(PLENTY, t).sum_rows(lambda b: X[b].sum(), 1000, 9) for t in (1, 4, 4)]
    assert sums[0] == sums[1] == sums[2], "sums do not depend on threads to the last bit"


def test_vectors_of_other_layouts():
    pairs = gram(130)
    K = whole(pairs)
    V = generator(7).standard_normal((130, 8))
    engine = LocalEngine(10**5, 2)
    for W in (np.asfortranarray(V), V[:, ::2], V.astype(np.float32), V[:, :0]):
        np.testing.assert_allclose(engine.pair_rows(pairs, W), K @ W, rtol=0, atol=1e-11)


def test_progress_counts_to_the_end():
    calls = []
    engine = LocalEngine(10**5, 1, on_tiles=lambda done, total: calls.append((done, total)))
    engine.pair_rows(gram(200), np.ones((200, 1)))
    total = calls[0][1]
    assert [done for done, _ in calls] == list(range(1, total + 1))
    assert {t for _, t in calls} == {total}


def test_blas_is_held_at_one_thread():
    from threadpoolctl import threadpool_info

    engine = LocalEngine(PLENTY)
    with engine.single_blas():
        pass  # puts back what an interrupted test may have left
    before = [pool["num_threads"] for pool in threadpool_info()]
    with engine.single_blas():
        with engine.single_blas():
            pass
        blas = [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]
        assert set(blas) == {1}  # the inner one has not let go
    assert [pool["num_threads"] for pool in threadpool_info()] == before
    with pytest.raises(KeyError), engine.single_blas():
        raise KeyError
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_blas_has_its_threads_again_when_the_last_of_several_fits_leaves():
    """Each putting back what it found, the second would have left one thread for good."""
    from threadpoolctl import threadpool_info

    with LocalEngine(PLENTY).single_blas():
        pass  # puts back what an interrupted test may have left
    before = [pool["num_threads"] for pool in threadpool_info()]
    first, second = LocalEngine(PLENTY).single_blas(), LocalEngine(PLENTY).single_blas()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"} == {1}
    second.__exit__(None, None, None)
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_engine_travels():
    engine = LocalEngine(10**6, 3, on_tiles=lambda done, total: None)
    with engine.single_blas():
        copy = pickle.loads(pickle.dumps(engine))
    assert (copy.memory, copy.threads, copy.on_tiles) == (10**6, 3, None)
    assert LocalEngine(1).threads == usable_cores() >= 1


# --- errors and interrupts


class Counting:
    """Pairs that fail at one tile and are slow at all of them."""

    symmetric = True
    dtype = np.dtype(float)

    def __init__(self, error, at=5, blocks=16, seconds=0.002):
        self.shape = (64 * blocks, 64 * blocks)
        self.error, self.at, self.seconds = error, at, seconds
        self.made = 0
        self.lock = threading.Lock()

    def tile(self, i, j, out):
        with self.lock:
            self.made += 1
            fails = self.made == self.at
        if fails and self.fails_here():
            raise self.error("in a tile")
        time.sleep(self.seconds)
        out[...] = 1.0
        return out

    def fails_here(self):
        return True

    def tile_bytes(self, side):
        return 8 * side * side


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_error_in_a_tile_propagates(threads, symmetric, error):
    pairs = Counting(error)
    pairs.symmetric = symmetric
    before = threading.active_count()
    engine = LocalEngine(64 * 64 * 8 * threads, threads)
    with pytest.raises(error, match="in a tile"):
        engine.pair_rows(pairs, np.ones((pairs.shape[1], 1)))
    assert threading.active_count() == before, "no thread survives"
    tiles = 16 * 17 // 2 if symmetric else 16 * 16
    assert pairs.made < tiles / 2, "the others stop after the tile they are in"


def test_interrupt_of_the_main_thread_stops_the_others_within_a_tile():
    class Pressed(Counting):
        def fails_here(self):
            return threading.current_thread() is threading.main_thread()

        def tile(self, i, j, out):
            if self.made > 10 and self.fails_here():
                raise KeyboardInterrupt("ctrl-C")
            return super().tile(i, j, out)

    pairs = Pressed(ValueError, at=-1, seconds=0.01)
    before = threading.active_count()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt, match="ctrl-C"):
        LocalEngine(64 * 64 * 32, 4).pair_rows(pairs, np.ones((1024, 1)))
    assert time.perf_counter() - start < 1.0
    assert threading.active_count() == before
    assert pairs.made < 40


def test_a_failed_tile_is_not_kept():
    pairs, store = Counting(ValueError, at=3, blocks=3, seconds=0), TileStore(PLENTY)
    engine, V = LocalEngine(64 * 64 * 8, 1), np.ones((192, 1))
    with pytest.raises(ValueError, match="in a tile"):
        engine.pair_rows(pairs, V, store)
    assert len(store.tiles) == 2
    np.testing.assert_allclose(engine.pair_rows(pairs, V, store), 192.0)


# --- arrays


def test_numpy_passes_through():
    X = np.ones((2, 2))
    assert to_numpy(X) is X and array_namespace(X) is np
    assert restore(X, X) is X and restore(X, None) is X
    S = sparse.csr_array(X)
    assert to_numpy(S) is S and is_sparse(S) and not is_sparse(X)
    assert restore(X, S) is X
    assert not is_foreign(X) and not is_foreign(S) and not is_foreign([[1.0]])


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("name", ["float32", "float64", "int64"])
def test_round_trip(library, name):
    xp = pytest.importorskip(library)
    X = np.arange(6).reshape(2, 3).astype(name)
    A = xp.asarray(X)
    assert is_foreign(A)
    N = to_numpy(A)
    assert isinstance(N, np.ndarray)
    np.testing.assert_array_equal(N, X)
    B = restore(N[:, ::-1], A)
    assert type(B) is type(A) and str(B.dtype).endswith(name)
    np.testing.assert_array_equal(to_numpy(B), X[:, ::-1])


def test_torch_is_viewed_and_gradients_are_left_behind():
    torch = pytest.importorskip("torch")
    A = torch.ones((2, 2), dtype=torch.float64)
    to_numpy(A)[0, 0] = 5
    assert A[0, 0] == 5
    assert to_numpy(A.requires_grad_(True)).shape == (2, 2)


def test_linear_kernel_of_no_columns_of_vectors():
    pairs = Linear().pairs(np.ones((3, 2)))
    assert LocalEngine(PLENTY).pair_rows(pairs, np.empty((3, 0))).shape == (3, 0)


def test_loops_compile_where_nothing_can_be_written(monkeypatch):
    """As in a container whose packages and home are read-only."""

    class ReadOnly:
        def __init__(self, *_):
            raise RuntimeError("cannot cache function: no locator available")

    def one_more(number):
        return number + 1

    monkeypatch.setattr("numba.core.dispatcher.FunctionCache", ReadOnly)
    with pytest.raises(RuntimeError, match="cannot cache"):
        njit(cache=True)(one_more)
    assert compiled()(one_more)(2) == 3


LIMITED = """
import resource
from mercer import KernelPCA
from mercer.compute import available_memory, parse_bytes
import numpy as np
free, limit = available_memory(), 10**9 + {used}
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
assert parse_bytes(None) <= available_memory() / 2 <= 0.5e9 < free
KernelPCA(2, kernel="rbf", n_jobs=1).fit(np.random.default_rng(0).random((12000, 3)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc and RLIMIT_AS")
def test_the_default_budget_knows_the_limit_of_the_shell():
    used = "int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()"
    subprocess.run([sys.executable, "-c", LIMITED.replace("{used}", used)], check=True)


# --- products with few columns


@pytest.mark.parametrize("columns", [1, 2, 9, 10, 24, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 7, 130])
def test_a_product_with_few_columns_is_the_product_in_any_order_of_memory(dtype, columns, rows):
    rng = generator()
    A, V = (rng.standard_normal(shape).astype(dtype) for shape in ((rows, 50), (50, columns)))
    expected = np.einsum("ik,kj->ij", A.astype(float), V.astype(float))
    wide = np.zeros((rows + 3, 60), dtype)
    wide[:rows, :50] = A
    for held in (A, np.asfortranarray(A), wide[:rows, :50], np.ascontiguousarray(A.T).T):
        product = times_few(held, V)
        assert product.dtype == dtype and product.shape == (rows, columns)
        np.testing.assert_allclose(product, expected, rtol=0, atol=1e3 * np.finfo(dtype).eps)
