"""Exact kernel PCA on one GPU: products by tile, and whole fits, with scikit-learn's for the ratio.

    python benchmarks/gpu.py                 everything but "ten", about three minutes on an H200
    python benchmarks/gpu.py --only fits
    python benchmarks/gpu.py --only ten      ten million rows, four minutes
    python benchmarks/gpu.py --quick         small sizes

Products: the kernel matrix of n rows in d columns times a block of b vectors, by the fused tile
in its two precisions, by plain torch tiles in float32 and by KeOps where it is installed. Shares
are those of the measured float16 matrix product and of the measured rate of exponentials of the
same card, counting what the tile does: three products for one in "split", and half of the tiles
where both sides are served by each.

Fits start from a float32 NumPy array in main memory and end with the certificate: checks,
transfers and the start included. "first": a new process with nothing compiled on disk, the import
not counted.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import triton
import triton.language as tl
from _harness import print_table, write_json
from _papers import papers_data

from mercer import (
    HebbianKernelPCA,
    KernelPCA,
    NoveltyDetector,
    SpectralClustering,
    StreamingKernelPCA,
)
from mercer._packages import has
from mercer.bases import Landmarks, RandomFeatures
from mercer.compute.device import TorchEngine
from mercer.compute.fused_tile import uses_symmetry, whole_width
from mercer.kernels import RBF
from mercer.metrics import subspace_error

# Columns of the rows and of the block of vectors.
PRODUCTS = (
    (3, 32),
    (54, 16),
    (54, 32),
    (54, 64),
    (54, 128),
    (84, 32),
    (100, 16),
    (100, 32),
    (784, 32),
)
COMPONENTS, TOL = 16, 1e-5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", choices=[*PARTS, "ten"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/gpu.json"))
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This benchmark needs a CUDA device and a CUDA build of torch.")
    results: dict = {"card": card()}
    print(results["card"])
    for name, part in (PARTS | {"ten": ten}).items():
        if args.only == name or (args.only is None and name in PARTS):
            results[name] = part(args.quick)
            write_json(args.json, results)


def card() -> dict:
    """What was measured on, and when."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    name, driver = subprocess.run(query, capture_output=True, text=True).stdout.strip().split(", ")
    return {
        "card": name,
        "driver": driver,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
        "half_tflops": round(gemm_peak(torch.float16), 0),
        "exponentials": exponential_rate(),
    }


def gemm_peak(dtype) -> float:
    """Operations a second of a large matrix product, in 1e12."""
    A, B = (torch.randn(8192, 8192, device="cuda").to(dtype) for _ in range(2))
    return 2 * 8192**3 / seconds_of(lambda: A @ B, repeat=10) / 1e12


def exponential_rate() -> float:
    """Exponentials of float32 a second, from registers."""
    x, rounds = torch.rand(2**24, device="cuda"), 512
    seconds = seconds_of(lambda: _exponentials[(x.numel() // 1024,)](x, rounds, N=1024))
    return rounds * x.numel() / seconds


@triton.jit
def _exponentials(x, rounds, N: tl.constexpr):
    """2^(-2^(-...)), `rounds` times."""
    place = x + tl.program_id(0) * N + tl.arange(0, N)
    y = tl.load(place)
    for _ in range(rounds):
        y = tl.exp2(-y)
    tl.store(place, y)


def seconds_of(work: Callable, repeat: int = 3) -> float:
    """The best of some runs after a warm-up, the device's work awaited."""
    work()
    times = []
    for _ in range(repeat):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times)


def products(quick: bool) -> list[dict]:
    """Products with the kernel matrix for widths and blocks."""
    engine, peak, rows = TorchEngine(device="cuda"), gemm_peak(torch.float16), []
    exponentials = exponential_rate()
    for d, b in PRODUCTS[:2] if quick else PRODUCTS:
        n = (2**16 if d > 256 else 2**18) // (4 if quick else 1)
        X = torch.randn(n, d, device="cuda")
        V = torch.randn(n, b, device="cuda", dtype=torch.float64)
        row = {"d": d, "block": b, "n": n}
        for name, product in contenders(engine, RBF(gamma=0.5 / d), X, V).items():
            seconds = seconds_of(product, 2)
            row[name] = {"seconds": seconds}
            if name in ("half", "split"):
                work, values = counted(n, d, b, name)
                row[name]["share"] = work / seconds / 1e12 / peak
                row[name]["exponentials"] = values / seconds / exponentials
        rows.append(row)
    names = [name for name in rows[0] if name not in ("d", "block", "n")]
    heads = ["columns", "block", "n"] + [head for name in names for head in product_heads(name)]
    table = [
        [str(r["d"]), str(r["block"]), f"{r['n']:,}"]
        + [cell for name in names for cell in product_cells(r[name])]
        for r in rows
    ]
    print_table("products: shares of the matrix product and of exponentials", heads, table)
    return rows


def product_heads(name: str) -> list[str]:
    """Heads of the columns of a contender."""
    return [f"{name}, ms"] + (["matrix", "exponentials"] if name in ("half", "split") else [])


def product_cells(cell: dict) -> list[str]:
    """Milliseconds, and shares where they are known."""
    text = [f"{1e3 * cell['seconds']:.1f}"]
    if "share" in cell:
        text += [f"{cell['share']:.0%}", f"{cell['exponentials']:.0%}"]
    return text


def counted(n: int, d: int, b: int, precision: str) -> tuple[float, float]:
    """Operations of tensor cores and exponentials that the tile makes of one product."""
    D, B, terms = whole_width(d + 4), whole_width(b), 3 if precision == "split" else 1
    tiles = n**2 / 2 if uses_symmetry(D, B, precision) else n**2
    return 2 * terms * (tiles * D + n**2 * B), tiles


def contenders(engine, kernel, X, V) -> dict:
    """Products by name."""
    half, single = (kernel.pairs(X, dtype=dtype) for dtype in ("float16", "float32"))
    plain = PlainTiles(device="cuda")
    own = {
        "half": lambda: engine.pair_rows(half, V),
        "split": lambda: engine.pair_rows(single, V),
        "torch tiles": lambda: plain.pair_rows(kernel.pairs(X, dtype="float32"), V),
    }
    try:
        from pykeops.torch import LazyTensor
    except ImportError:
        return own
    x, y = LazyTensor(X[:, None, :]), LazyTensor(X[None, :, :])
    lazy = (-kernel.gamma * ((x - y) ** 2).sum(-1)).exp()
    return own | {"KeOps": lambda: lazy @ V.float()}


class PlainTiles(TorchEngine):
    """The engine without its fused tile."""

    def fuses(self, kernel):
        return False


def million(quick: bool) -> dict:
    """One product at a million rows of 54 columns and block 32, with its error."""
    n = 100_000 if quick else 1_000_000
    X = torch.as_tensor(many_rows(n), device="cuda")
    kernel = RBF(gamma="mean").resolve(X)
    engine = TorchEngine(device="cuda")
    V = torch.linalg.qr(torch.randn(n, 32, device="cuda", dtype=torch.float64)).Q
    index = torch.randperm(n, device="cuda")[:64]
    exact = kernel(X[index].double(), X.double()) @ V
    rows = {}
    for name, dtype in (("half", "float16"), ("split", "float32")):
        pairs = kernel.pairs(X, dtype=dtype)
        seconds = seconds_of(lambda pairs=pairs: engine.pair_rows(pairs, V), 2)
        change = engine.pair_rows(pairs, V)[index] - exact
        error = float(change.norm() / exact.norm())
        rows[name] = {"seconds": seconds, "error": error}
    print_table(
        f"one product, {n:,} rows",
        ["precision", "seconds", "relative error"],
        [[name, f"{r['seconds']:.2f}", f"{r['error']:.1e}"] for name, r in rows.items()],
    )
    return rows


def fits(quick: bool) -> list[dict]:
    """Whole fits, and scikit-learn's where it can."""
    size = 20 if quick else 1
    cases = {
        "covtype": (lambda: papers_data.load_covtype(dtype=np.float32).data[::size], COMPONENTS),
        "covtype with noise": (lambda: many_rows(1_000_000 // size), COMPONENTS),
        "and 46 columns more": (lambda: many_rows(1_000_000 // size, 100), COMPONENTS),
        "64 components": (lambda: many_rows(1_000_000 // size), 64),
        "MNIST": (lambda: papers_data.load_mnist(dtype=np.float32).data[::size], COMPONENTS),
    }
    rows = []
    for name, (load, components) in cases.items():
        X = np.ascontiguousarray(load())
        fit_seconds(X[:20_000], components)
        rows.append({"case": name} | fit_figures(X, components))
    rows += [scikit_learn(2000 if quick else 20_000)]
    heads = ["case", "rows", "columns", "seconds", "residual", "passes", "GB", "transform"]
    print_table("fits", heads, [fit_row(r) for r in rows])
    return rows


def fit_figures(X, components: int) -> dict:
    """What a fit and a transform of all rows take."""
    seconds, model = fit_seconds(X, components)
    peak = torch.cuda.max_memory_allocated()
    model.transform(X[:20_000])
    start = time.perf_counter()
    model.transform(X)
    return {
        "rows": len(X),
        "columns": X.shape[1],
        "seconds": seconds,
        "transform": time.perf_counter() - start,
        "residual": float(model.certificate_.relative_residual),
        "passes": model.certificate_.n_passes,
        "device_gb": peak / 1e9,
    }


def fit_row(r: dict) -> list[str]:
    """A line of the table."""
    head = [r["case"], f"{r['rows']:,}", str(r["columns"]), f"{r['seconds']:.2f}"]
    if "passes" not in r:
        return head + [""] * 4
    return [
        *head,
        f"{r['residual']:.1e}",
        str(r["passes"]),
        f"{r['device_gb']:.1f}",
        f"{r['transform']:.2f}",
    ]


def fit_seconds(X, components: int = COMPONENTS) -> tuple[float, KernelPCA]:
    """A fit from main memory, everything included."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model = KernelPCA(
        components, kernel="rbf", gamma="mean", tol=TOL, device="cuda", random_state=0
    )
    start = time.perf_counter()
    model.fit(X)
    torch.cuda.synchronize()
    return time.perf_counter() - start, model


def scikit_learn(n: int) -> dict:
    """scikit-learn on the cores of the same machine, with the same kernel."""
    from sklearn.decomposition import KernelPCA as Theirs

    X = many_rows(n)
    gamma = RBF(gamma="mean").resolve(X).gamma
    model = Theirs(
        COMPONENTS, kernel="rbf", gamma=gamma, eigen_solver="arpack", tol=TOL, random_state=0
    )
    start = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - start
    ours, _ = fit_seconds(X)
    return {
        "case": f"scikit-learn (mercer: {ours:.2f} s)",
        "rows": n,
        "columns": X.shape[1],
        "seconds": seconds,
        "ours": ours,
    }


def methods(quick: bool) -> list[dict]:
    """The other methods on the device and on the cores of the same machine."""
    size = 20 if quick else 1
    options = {"kernel": "rbf", "gamma": "mean", "random_state": 0}
    rows, few = many_rows(581_012 // size), many_rows(20_000 // size)
    cases = {
        "1,000 landmarks": (KernelPCA(COMPONENTS, basis=Landmarks(1000), **options), rows),
        "1,000 random features": (
            KernelPCA(COMPONENTS, basis=RandomFeatures(1000), **options),
            rows,
        ),
        "Spectral clustering, exact": (SpectralClustering(8, gamma="median", random_state=0), few),
        "Novelty, 40 components": (NoveltyDetector(40, random_state=0), few),
        "Stream, 1,000 features": (
            StreamingKernelPCA(
                COMPONENTS, kernel="rbf", gamma=0.1, basis=RandomFeatures(1000), random_state=0
            ),
            rows,
        ),
        "Gram power": (KernelPCA(COMPONENTS, eigen_solver="gram-power", **options), few),
        "Hebbian, two passes": (HebbianKernelPCA(COMPONENTS, n_passes=2, **options), few),
    }
    results = []
    for name, (model, X) in cases.items():
        model.set_params(device="cuda").fit(X[:20_000])
        seconds = [timed_fit(model.set_params(device=where), X) for where in ("cuda", "cpu")]
        results.append({"method": name, "rows": len(X), "cuda": seconds[0], "cpu": seconds[1]})
    print_table(
        "other methods, float32",
        ["method", "rows", "GPU, s", "CPU, s", "ratio"],
        [
            [
                r["method"],
                f"{r['rows']:,}",
                f"{r['cuda']:.2f}",
                f"{r['cpu']:.2f}",
                f"{r['cpu'] / r['cuda']:.1f}",
            ]
            for r in results
        ],
    )
    return results


def timed_fit(model, X) -> float:
    """Seconds of a fit."""
    start = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - start


def agreement(quick: bool) -> dict:
    """The device in float32 against the host in float64, 10,000 rows of covtype."""
    X = many_rows(2000 if quick else 10_000).astype(np.float64)
    options = {"kernel": "rbf", "gamma": "mean", "random_state": 0}
    exact = KernelPCA(COMPONENTS, **options).fit(X)
    ours = KernelPCA(COMPONENTS, device="cuda", tol=TOL, **options).fit(X.astype(np.float32))
    result = {
        "subspace": float(subspace_error(ours.eigenvectors_, exact.eigenvectors_)),
        "eigenvalues": float(np.max(np.abs(ours.eigenvalues_ / exact.eigenvalues_ - 1))),
        "residual": float(ours.certificate_.relative_residual),
    }
    print_table("agreement", list(result), [[f"{value:.1e}" for value in result.values()]])
    return result


def first(quick: bool) -> list[dict]:
    """The first fit and transform of a new process, with and without tiles on disk."""
    rows = []
    for d in (54, 784):
        with tempfile.TemporaryDirectory() as folder:
            for compiled in ("nothing", "on disk"):
                rows.append({"columns": d, "compiled": compiled} | in_new_process(d, folder))
    print_table(
        "the first of a process, 20,000 rows",
        ["columns", "compiled", "fit, s", "transform, s", "second fit, s"],
        [
            [str(r["columns"]), r["compiled"], *(f"{r[k]:.2f}" for k in ("fit", "map", "again"))]
            for r in rows
        ],
    )
    return rows


def in_new_process(d: int, folder: str) -> dict:
    """Seconds of a first fit, a first transform and a second fit."""
    code = f"""
import time, numpy as np, torch
from mercer import KernelPCA
X = np.random.default_rng(0).standard_normal((20_000, {d})).astype(np.float32)
model = KernelPCA({COMPONENTS}, kernel="rbf", gamma="mean", tol={TOL}, device="cuda")
times = [time.perf_counter()]
for work in (model.fit, model.transform, model.fit):
    work(X)
    torch.cuda.synchronize()
    times.append(time.perf_counter())
print(*np.diff(times))
"""
    environment = os.environ | {"TRITON_CACHE_DIR": folder}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    seconds = [float(word) for word in done.stdout.split()]
    return dict(zip(("fit", "map", "again"), seconds, strict=True))


def many(quick: bool) -> list[dict]:
    """A hundred million rows of twenty columns, generated on the card."""
    X = torch.randn(10**6 if quick else 10**8, 20, device="cuda")
    rows = []
    for name, basis in (("landmarks", Landmarks(1000)), ("features", RandomFeatures(1000))):
        model = KernelPCA(
            COMPONENTS, kernel="rbf", gamma="mean", basis=basis, random_state=0, copy_X=False
        )
        start = time.perf_counter()
        model.fit(X)
        torch.cuda.synchronize()
        rows.append({"method": f"1,000 {name}", "seconds": time.perf_counter() - start})
    print_table(
        f"{len(X):,} rows of 20 columns on the card",
        ["method", "seconds"],
        [[r["method"], f"{r['seconds']:.1f}"] for r in rows],
    )
    return rows


def grid(quick: bool) -> list[dict]:
    """A Fourier grid on rows made on the card, where cufinufft is installed."""
    if not has("cufinufft"):
        print("grid: cufinufft is not installed")
        return []
    rows, size = [], 100 if quick else 1
    for n, d in ((10**7 // size, 1), (10**7 // size, 2), (10**7 // size, 3), (10**8 // size, 2)):
        X = torch.rand(n, d, device="cuda", dtype=torch.float64)
        model = KernelPCA(
            COMPONENTS, kernel="rbf", gamma=2.0, basis="fourier", random_state=0, copy_X=False
        )
        timed_fit(model, X[:1000])
        seconds = timed_fit(model, X)
        start = time.perf_counter()
        model.transform(X)
        torch.cuda.synchronize()
        bound = model.certificate_.eigenvalue_upper - model.certificate_.eigenvalue_lower
        rows.append(
            {
                "rows": n,
                "columns": d,
                "fit": seconds,
                "transform": time.perf_counter() - start,
                "frequencies": int(model.expansion_.basis.size),
                "certified": float(bound.max()) / float(model.eigenvalues_[0]),
            }
        )
    print_table(
        "Fourier grid, rows on the card",
        list(rows[0]),
        [
            [f"{r['rows']:,}", str(r["columns"]), f"{r['fit']:.2f}", f"{r['transform']:.2f}"]
            + [f"{r['frequencies']:,}", f"{r['certified']:.0e}"]
            for r in rows
        ],
    )
    return rows


def ten(quick: bool) -> dict:
    """Ten million rows, exactly, with the residual after each pass."""
    X = torch.as_tensor(many_rows(100_000 if quick else 10_000_000), device="cuda")
    passes: list[dict] = []
    start = time.perf_counter()

    def note(state):
        seconds = time.perf_counter() - start
        passes.append({"seconds": seconds, "residual": state.residual})
        print(f"pass {state.n_passes}: {seconds:.0f} s, residual {state.residual:.1e}", flush=True)

    options = {"kernel": "rbf", "gamma": "mean", "random_state": 0, "copy_X": False}
    model = KernelPCA(COMPONENTS, tol=TOL, callback=note, **options).fit(X)
    torch.cuda.synchronize()
    result = {
        "rows": len(X),
        "seconds": time.perf_counter() - start,
        "residual": float(model.certificate_.relative_residual),
        "device_gb": torch.cuda.max_memory_allocated() / 1e9,
        "history": passes,
    }
    print({name: value for name, value in result.items() if name != "history"})
    return result


def many_rows(n: int, columns: int = 54) -> np.ndarray:
    """Rows of covtype, with a little noise where they are repeated; columns beyond are noise."""
    X = papers_data.load_covtype(dtype=np.float32).data
    rng = np.random.default_rng(0)
    index = rng.permutation(np.arange(n) % len(X))
    noise = 0.01 * rng.standard_normal((n, X.shape[1]), dtype=np.float32)
    rows = X[index] + (noise if n > len(X) else 0)
    more = 0.3 * rng.standard_normal((n, columns - X.shape[1]), dtype=np.float32)
    return np.ascontiguousarray(np.hstack([rows, more]))


PARTS = {
    "products": products,
    "million": million,
    "fits": fits,
    "first": first,
    "methods": methods,
    "many": many,
    "grid": grid,
    "agreement": agreement,
}


if __name__ == "__main__":
    main()
