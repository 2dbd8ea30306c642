"""Exact kernel PCA on one GPU: products by tile, and whole fits, with scikit-learn's for the ratio.

    python benchmarks/gpu.py                 everything, about five minutes on an H200
    python benchmarks/gpu.py --only fits
    python benchmarks/gpu.py --quick         small sizes

Products: the kernel matrix of n rows in d columns times a block of b vectors, by the fused tile
in its two precisions, by plain torch tiles in float32 and by KeOps where it is installed. The
share is that of the measured float16 matrix product of the same card, counting the operations
that the method needs (three products for one in "split").

Fits start from a float32 NumPy array in main memory and end with the certificate: checks,
transfers and the start included. Triton compiles a tile for each new width of the data; that
first time is given apart ("cold"), since it is kept on disk.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from _harness import print_table, write_json

from mercer import HebbianKernelPCA, KernelPCA, datasets
from mercer.bases import Landmarks, RandomFeatures
from mercer.compute.device import TorchEngine
from mercer.kernels import RBF
from mercer.metrics import subspace_error

WIDTHS, BLOCKS = (3, 16, 64, 256, 784), (1, 16, 32, 64)
ROWS = {3: 2**18, 16: 2**18, 64: 2**18, 256: 2**17, 784: 2**16}
COMPONENTS, TOL = 16, 1e-5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", choices=["products", "million", "fits", "methods", "agreement"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/gpu.json"))
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This benchmark needs a CUDA device and a CUDA build of torch.")
    results: dict = {"card": card()}
    print(results["card"])
    parts = {
        "products": products,
        "million": million,
        "fits": fits,
        "methods": methods,
        "agreement": agreement,
    }
    for name, part in parts.items():
        if args.only in (None, name):
            results[name] = part(args.quick)
            write_json(args.json, results)


def card() -> dict:
    """What was measured on, and when."""
    import subprocess

    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    name, driver = subprocess.run(query, capture_output=True, text=True).stdout.strip().split(", ")
    return {
        "card": name,
        "driver": driver,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
        "half_tflops": round(gemm_peak(torch.float16), 0),
    }


def gemm_peak(dtype) -> float:
    """Operations a second of a large matrix product, in 1e12."""
    A, B = (torch.randn(8192, 8192, device="cuda").to(dtype) for _ in range(2))
    return 2 * 8192**3 / seconds_of(lambda: A @ B, repeat=10) / 1e12


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
    for d in WIDTHS[:2] if quick else WIDTHS:
        n = ROWS[d] // (4 if quick else 1)
        X = torch.randn(n, d, device="cuda")
        kernel = RBF(gamma=0.5 / d)
        for b in BLOCKS:
            V = torch.randn(n, b, device="cuda", dtype=torch.float64)
            row = {"d": d, "block": b, "n": n}
            for name, (product, terms) in contenders(engine, kernel, X, V).items():
                seconds = seconds_of(product, 2)
                work = 2 * terms * n**2 * (max(d, 16) + max(b, 16)) / seconds / 1e12
                row[name] = {"seconds": seconds, "values": n**2 / seconds, "share": work / peak}
            rows.append(row)
    names = [name for name in rows[0] if name not in ("d", "block", "n")]
    heads = ["d", "block", "n"] + [f"{name}: ms (share)" for name in names]
    table = [
        [str(r["d"]), str(r["block"]), f"{r['n']:,}"]
        + [f"{1e3 * r[name]['seconds']:.1f} ({r[name]['share']:.0%})" for name in names]
        for r in rows
    ]
    print_table("products", heads, table)
    return rows


def contenders(engine, kernel, X, V) -> dict:
    """Products by name, each with the number of GEMMs it makes for one."""
    half, single = (kernel.pairs(X, dtype=dtype) for dtype in ("float16", "float32"))
    plain = PlainTiles(device="cuda")
    own = {
        "half": (lambda: engine.pair_rows(half, V), 1),
        "split": (lambda: engine.pair_rows(single, V), 3),
        "torch tiles": (lambda: plain.pair_rows(kernel.pairs(X, dtype="float32"), V), 1),
    }
    try:
        from pykeops.torch import LazyTensor
    except ImportError:
        return own
    x, y = LazyTensor(X[:, None, :]), LazyTensor(X[None, :, :])
    lazy = (-kernel.gamma * ((x - y) ** 2).sum(-1)).exp()
    return own | {"KeOps": (lambda: lazy @ V.float(), 1)}


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
    size = 1 if not quick else 20
    cases = {
        "covtype 581,012": lambda: datasets.load_covtype(dtype=np.float32).data[:: 1 * size],
        "covtype 1,000,000": lambda: many_rows(1_000_000 // size),
        "MNIST 60,000": lambda: datasets.load_mnist(dtype=np.float32).data[::size],
    }
    rows = []
    for name, load in cases.items():
        X = np.ascontiguousarray(load())
        cold, _ = fit_seconds(X[:5000])
        seconds, model = fit_seconds(X)
        peak = torch.cuda.max_memory_allocated()
        start = time.perf_counter()
        model.transform(X)
        again = time.perf_counter() - start
        rows.append(
            {
                "case": name,
                "rows": len(X),
                "columns": X.shape[1],
                "cold": cold,
                "seconds": seconds,
                "transform": again,
                "residual": float(model.certificate_.relative_residual),
                "passes": model.certificate_.n_passes,
                "device_gb": peak / 1e9,
            }
        )
        del model
    rows += [scikit_learn(2000 if quick else 20_000)]
    heads = ["case", "columns", "seconds", "residual", "passes", "GB", "transform", "first 5,000"]
    print_table("fits", heads, [fit_row(r) for r in rows])
    return rows


def fit_row(r: dict) -> list[str]:
    """A line of the table."""
    if "passes" not in r:
        return [r["case"], str(r["columns"]), f"{r['seconds']:.1f}"] + [""] * 5
    return [
        r["case"],
        str(r["columns"]),
        f"{r['seconds']:.2f}",
        f"{r['residual']:.1e}",
        str(r["passes"]),
        f"{r['device_gb']:.1f}",
        f"{r['transform']:.2f}",
        f"{r['cold']:.1f}",
    ]


def fit_seconds(X) -> tuple[float, KernelPCA]:
    """A fit from main memory, everything included."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model = KernelPCA(
        COMPONENTS, kernel="rbf", gamma="mean", tol=TOL, device="cuda", random_state=0
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
        "case": f"scikit-learn {n:,} (mercer: {ours:.2f} s)",
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
        "Gram power": (KernelPCA(COMPONENTS, eigen_solver="gram-power", **options), few),
        "Hebbian, two passes": (HebbianKernelPCA(COMPONENTS, n_passes=2, **options), few),
    }
    results = []
    for name, (model, X) in cases.items():
        model.set_params(device="cuda").fit(X[:3000])
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


def many_rows(n: int) -> np.ndarray:
    """Rows of covtype, repeated with a little noise where there are not enough."""
    X = datasets.load_covtype(dtype=np.float32).data
    rng = np.random.default_rng(0)
    index = rng.permutation(np.arange(n) % len(X))
    noise = 0.01 * rng.standard_normal((n, X.shape[1]), dtype=np.float32)
    return np.ascontiguousarray(X[index] + (noise if n > len(X) else 0))


if __name__ == "__main__":
    main()
