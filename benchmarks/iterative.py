"""Iterative kernel PCA: what a pass costs, whether it ever fails, and MNIST and kernlab.

    python benchmarks/iterative.py               time of a pass over that of its kernel rows
    python benchmarks/iterative.py --stress      300 random problems, every gain untuned
    python benchmarks/iterative.py --odd         270 larger problems of narrow kernels and clusters
    python benchmarks/iterative.py --mnist       60,000 x 784 within 2 GB, against block Krylov
    python benchmarks/iterative.py --kernlab     kha of R's kernlab, USPS 1,000, equal passes

Results go to --out as JSON. USPS and MNIST come from `papers_data`; without them the first
uses scikit-learn's digits and the others say that they cannot run.
"""

import argparse
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from _harness import OtherWork, machine, memory_now, memory_peak, print_table, write_json
from _papers import papers_data
from scipy.sparse.linalg import eigsh
from threadpoolctl import threadpool_limits

from mercer import HebbianKernelPCA, KernelPCA
from mercer.bases import PrecomputedBasis
from mercer.bases.points import PointGram
from mercer.compute import LocalEngine
from mercer.hebbian import GAINS, hebbian_eigenpairs
from mercer.kernels import RBF
from mercer.metrics import excess_reconstruction_error
from mercer.operators import CenteredGram

SIGMA = 8.0
BLOCK, ROUNDS = 128, 5
PROBLEMS, WORST_EXCESS = 300, 0.3
ODD_SEEDS = (150, 420)
NORM_ROWS = 2048


# --- the price of a pass


def pass_times(rank=10):
    """Processor seconds of the rows alone and of a pass of every gain, on one thread.

    Rows are made anew each time. Processor time does not feel what else is running.
    """
    X, name = usps_or_digits()
    rows, passes = [], {gain: [] for gain in GAINS}
    others = OtherWork()
    for round_ in range(ROUNDS):
        rows.append(min(seconds_of_rows(make_gram(X)), seconds_of_plain_rows(X)))
        for gain, found in passes.items():
            found.append(seconds_of_pass(make_gram(X), rank, gain, round_))
    base = float(np.median(rows))
    result = {
        "data": name,
        "rows": base,
        "others": others.cores(),
        "passes": {gain: float(np.median(found)) for gain, found in passes.items()},
        # Neighbors in time share what the machine does besides.
        "ratios": {
            gain: float(np.median(np.divide(found, rows))) for gain, found in passes.items()
        },
    }
    table = [
        [gain, f"{result['passes'][gain]:.2f} s", f"{ratio:.2f}"]
        for gain, ratio in result["ratios"].items()
    ]
    title = f"A pass over {name}, r = {rank}, one thread; its kernel rows alone take {base:.2f} s"
    print_table(title, ["gain", "a pass", "over the rows"], table)
    return result


def make_gram(X):
    return CenteredGram(PointGram(RBF(gamma=0.5 / SIGMA**2), X, LocalEngine(10**9, 1), False))


def seconds_of_rows(gram):
    """All rows in blocks, in random order, without their centering."""
    order = np.random.default_rng(0).permutation(gram.shape[0])
    gram.basis.rows(order[:BLOCK])
    begun = time.process_time()
    for first in range(0, len(order), BLOCK):
        gram.basis.rows(order[first : first + BLOCK])
    return time.process_time() - begun


def seconds_of_plain_rows(X):
    """The same in five lines of NumPy, the faster of the two being what a pass is held to."""
    gamma, norms = 0.5 / SIGMA**2, np.sum(X**2, axis=1)
    order = np.random.default_rng(0).permutation(len(X))
    K = np.empty((BLOCK, len(X)))
    begun = time.process_time()
    for first in range(0, len(X), BLOCK):
        index = order[first : first + BLOCK]
        T = np.matmul(2 * gamma * X[index], X.T, out=K[: len(index)])
        T -= gamma * norms
        T -= gamma * norms[index, None]
        np.exp(T, out=T)
    return time.process_time() - begun


def seconds_of_pass(gram, rank, gain, seed):
    """The second of two passes: the first compiles and warms what there is."""
    marks = []
    # Products outside the engine's own, too, on the one thread that the title speaks of.
    with gram.basis.engine.single_blas():
        hebbian_eigenpairs(
            gram,
            rank,
            gain,
            n_passes=2,
            block=BLOCK,
            readout="free",
            rng=np.random.default_rng(seed),
            report=lambda state: marks.append(time.process_time()),
        )
    return marks[1] - marks[0]


def usps_or_digits():
    try:
        return papers_data.load_usps().data, "USPS 7,291"
    except (FileNotFoundError, OSError):
        from sklearn.datasets import load_digits

        return load_digits().data / 16, "digits 1,797"


# --- robustness


def stress():
    """Every gain, untuned, ten passes, on small random problems of all scales and tails."""
    worst, failures, over = {gain: [] for gain in GAINS}, [], []
    for seed in range(PROBLEMS):
        K, r = random_problem(seed)
        centered = K - K.mean(axis=0)
        centered -= centered.mean(axis=1)[:, None]
        for gain in GAINS:
            try:
                model = HebbianKernelPCA(r, kernel="precomputed", gain=gain, random_state=seed)
                with np.errstate(all="raise", under="ignore"):
                    model.fit(K)
                numbers = (model.transform(K), model.eigenvalues_, model.history_.gains)
                assert all(np.isfinite(x).all() for x in numbers), "not finite"
            except Exception as error:  # every one of them counts
                failures.append(f"problem {seed}, {gain}: {error!r}")
                continue
            A = model.expansion_.frame[:, 1:].T
            worst[gain].append(max(0.0, excess_reconstruction_error(centered, A)))
    over = [x for x in worst["auto"] if x > WORST_EXCESS]
    rows = [
        [gain, *(f"{np.quantile(found, q):.1e}" for q in (0.5, 0.9, 0.99, 1.0))]
        for gain, found in worst.items()
    ]
    title = (
        f"{PROBLEMS} random problems, 10 passes, untuned: excess error; {len(failures)} failures"
    )
    print_table(title, ["gain", "median", "90 %", "99 %", "worst"], rows)
    print(*failures, sep="\n")
    print(f"auto above {WORST_EXCESS}: {len(over)} of {PROBLEMS}")
    return {"failures": failures, "excess": worst, "over": len(over)}


def random_problem(seed):
    """Any scale, rank, tails, kernel and number of components."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(4, 60), rng.integers(1, 8)
    X = rng.standard_normal((n, d)) * rng.choice([1e-4, 1.0, 1e4])
    if rng.random() < 0.3:
        X *= rng.standard_t(1.5, (n, 1))
    if rng.random() < 0.3:
        X[: n // 2] = X[0]
    K = X @ X.T
    kind = rng.integers(3)
    if kind == 1:
        K = (K / np.mean(np.diag(K)) + 1) ** rng.integers(2, 7)
    elif kind == 2:
        K = RBF(gamma=0.5 / np.mean(np.sum(X**2, axis=1)))(X)
    return K, int(rng.integers(1, min(n, 12) + 1))


def odd():
    """ "auto" on larger problems with narrow kernels, clusters and heavy tails."""
    found = []
    for seed in range(*ODD_SEEDS):
        K, r = odd_problem(seed)
        scale = (np.trace(K) - K.mean() * len(K)) / len(K)
        if not scale > 0:
            continue
        K = K / scale
        gram = CenteredGram(PrecomputedBasis(K, LocalEngine(1 << 28)))
        pairs, _ = hebbian_eigenpairs(gram, r, "auto", rng=np.random.default_rng(seed))
        exact = np.linalg.eigvalsh(gram.to_dense())[::-1]
        # Directions beyond the rank have no scores.
        real = pairs.values > len(K) * np.finfo(float).eps * exact[0]
        S = gram @ (pairs.vectors[:, real] / np.sqrt(pairs.values[real]))
        best = np.linalg.norm(exact[r:])
        error = np.linalg.norm(gram.to_dense() - S @ S.T)
        # A best error that is rounding has no shares.
        found.append(float((error - best) / max(best, 1e-8 * np.linalg.norm(exact))))
    rows = [[f"{np.quantile(found, q):.1e}" for q in (0.5, 0.9, 0.99, 1.0)]]
    title = f"auto on {len(found)} odd problems of 60 to 500 rows, 10 passes: excess error"
    print_table(title, ["median", "90 %", "99 %", "worst"], rows)
    return {"excess": found}


def odd_problem(seed):
    """Any scale, tails or clusters; linear, polynomial, Gaussian or Laplacian of any width."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(60, 500)), int(rng.integers(1, 12))
    X = rng.standard_normal((n, d)) * rng.choice([1e-4, 1, 1e4])
    shape = rng.random()
    if shape < 0.3:
        X *= rng.standard_t(1.5, (n, 1))
    elif shape < 0.5:
        X[: n // 2] = X[0]
    elif shape < 0.7:
        X = X + 50 * X.std() * rng.integers(0, 8, (n, 1))
    kind, K = rng.integers(4), X @ X.T
    if kind == 1:
        K = (K / np.mean(np.diag(K)) + 1) ** rng.integers(2, 7)
    elif kind == 2:
        spread = np.mean(np.sum((X - X.mean(axis=0)) ** 2, axis=1))
        K = RBF(gamma=float(10 ** rng.uniform(-1, 1.5)) * 0.5 / spread)(X)
    elif kind == 3:
        sums = np.abs(X[:, None, :] - X[None]).sum(axis=-1)
        K = np.exp(-sums / np.abs(X).mean() * 10 ** rng.uniform(-1, 1))
    return K, int(rng.integers(1, 13))


# --- MNIST


def mnist(out, rank=16, n=60000, passes=3, tol=1e-4):
    """Block Krylov, Gram power and "auto" within 2 GB on two cores; written as they come."""
    X = papers_data.load_mnist().data[:n].astype(np.float32)
    X /= X.max()
    settings = {"kernel": "rbf", "gamma": "median", "memory": "2GB", "n_jobs": 2}
    settings |= {"random_state": 0, "copy_X": False}
    models = {
        "block Krylov": KernelPCA(rank, eigen_solver="krylov", tol=tol, **settings),
        "block Gram-power": KernelPCA(rank, eigen_solver="gram-power", **settings),
        f"auto, {passes} passes": HebbianKernelPCA(rank, n_passes=passes, **settings),
    }
    square = squared_norm(X)
    results, exact = {"n": len(X), "passes": passes, "tol": tol}, None
    for name, model in models.items():
        before, others, begun = memory_now(), OtherWork(), time.perf_counter()
        model.fit(X)
        values = np.asarray(model.eigenvalues_, dtype=float)
        exact = values if exact is None else exact
        results[name] = {
            "seconds": time.perf_counter() - begun,
            "others": others.cores(),
            "peak_mb": (memory_peak() - before) / 1e6,
            "readings": model.certificate_.n_passes,
            "residual": model.certificate_.relative_residual,
            "excess": excess_of_values(square, values, exact),
        }
        print(name, results[name], flush=True)
        write_json(out / "iterative_mnist.json", results)
    return results


def squared_norm(X):
    """Squared Frobenius norm of the centered kernel matrix, from a sample of its rows."""
    kernel = RBF(gamma="median").resolve(X)
    rng = np.random.default_rng(0)
    index = rng.choice(len(X), min(NORM_ROWS, len(X)), replace=False)
    total, means = 0.0, kernel(X[rng.choice(len(X), 4096)], X).mean(axis=0, dtype=float)
    for part in np.array_split(index, max(1, len(index) // 256)):
        K = kernel(X[part], X).astype(float)
        K += means.mean() - means - means[part][:, None]
        total += float(np.vdot(K, K))
    return total * len(X) / len(index)


def excess_of_values(square, values, exact):
    """Excess error of U L U' from the Ritz values L: |K' - U L U'|^2 = |K'|^2 - |L|^2."""
    return float(np.sqrt((square - np.sum(values**2)) / (square - np.sum(exact**2))) - 1)


# --- kernlab

KHA = """
suppressMessages(library(kernlab))
args <- commandArgs(trailingOnly = TRUE)
x <- as.matrix(read.csv(args[1], header = FALSE))
colnames(x) <- NULL
set.seed(0)
seconds <- system.time(model <- kha(x, kernel = "rbfdot", kpar = list(sigma = as.numeric(args[2])),
  features = as.integer(args[3]), maxiter = as.integer(args[4]), th = 0,
  eta = as.numeric(args[5])))
write.table(pcv(model), args[6], sep = ",", row.names = FALSE, col.names = FALSE)
cat(seconds[["user.self"]] + seconds[["sys.self"]], "\\n")
"""


# Its default gain, and a small one: it starts from coefficients of size one, far too long.
KHA_GAINS = (0.005, 5e-6)


def kernlab(rank=16, passes=5):
    """kha and ours for equal passes on the first 100 images of each digit, one thread each."""
    if not shutil.which("Rscript") or "TRUE" not in r('cat("kernlab" %in% installed.packages())'):
        print("R with kernlab is not installed: nothing to compare with")
        return None
    X = first_of_each_digit()
    gamma = 0.5 / SIGMA**2
    K = RBF(gamma=gamma)(X)
    K = K - K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    values = eigsh(K, rank)[0]
    least = np.sqrt(np.sum(K**2) - np.sum(values**2))
    results = {}
    for eta in KHA_GAINS:
        name = f"kernlab kha, eta {eta:g}"
        try:
            seconds, A = run_kha(X, gamma, rank, passes, eta)
            results[name] = judged(K, A, least, seconds)
        except subprocess.CalledProcessError as error:
            results[name] = {"error": error.stderr.strip().splitlines()[-1]}
    for gain in GAINS:
        model = HebbianKernelPCA(
            rank, kernel="rbf", gamma=gamma, gain=gain, n_passes=passes, n_jobs=1, random_state=0
        )
        model.fit(X[:100])
        seconds = min(seconds_of_fit(model, X) for _ in range(3))
        results[f"mercer {gain}"] = judged(K, model.expansion_.frame[:, 1:].T, least, seconds)
    rows = [
        [k, "", v["error"]] if "error" in v else [k, f"{v['seconds']:.3f} s", f"{v['excess']:.1e}"]
        for k, v in results.items()
    ]
    title = f"USPS {len(X):,}, Gaussian, r = {rank}, {passes} passes"
    print_table(title, ["", "time", "excess error"], rows)
    return results


def seconds_of_fit(model, X):
    # Idle BLAS threads spin, which would count as work.
    with threadpool_limits(1):
        begun = time.process_time()
        model.fit(X)
        return time.process_time() - begun


def r(code):
    return subprocess.run(["Rscript", "-e", code], capture_output=True, text=True).stdout


def run_kha(X, gamma, rank, passes, eta):
    """Processor seconds within R and the coefficients, (rank, n)."""
    with tempfile.TemporaryDirectory() as folder:
        rows, script, result = (Path(folder) / name for name in ("x.csv", "kha.R", "a.csv"))
        np.savetxt(rows, X, delimiter=",")
        script.write_text(KHA)
        command = ["Rscript", script, rows, gamma, rank, passes, eta, result]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
        return float(done.stdout.split()[-1]), np.loadtxt(result, delimiter=",").T


def judged(K, A, least, seconds):
    """Excess error with rows of unit norm in feature space, the kinder of two readings of kha."""
    norms = np.sqrt(np.maximum(np.einsum("ij,ij->i", A @ K, A), 1e-300))
    unit = A / norms[:, None]
    with np.errstate(all="ignore"):
        excess = min(excess_reconstruction_error(K, B, least) for B in (A, unit))
    return {"seconds": seconds, "excess": float(excess)}


def first_of_each_digit():
    data = papers_data.load_usps()
    index = [np.flatnonzero(data.target == digit)[:100] for digit in range(10)]
    return data.data[np.concatenate(index)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for JSON")
    parser.add_argument("--stress", action="store_true")
    parser.add_argument("--odd", action="store_true")
    parser.add_argument("--mnist", action="store_true")
    parser.add_argument("--kernlab", action="store_true")
    parser.add_argument("--rows", type=int, default=60000, help="rows of MNIST")
    parser.add_argument("--passes", type=int, default=3, help='passes of "auto" on MNIST')
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    results = {"machine": machine()}
    if options.stress:
        results["stress"] = stress()
    if options.odd:
        results["odd"] = odd()
    if options.mnist:
        results["mnist"] = mnist(options.out, n=options.rows, passes=options.passes)
    if options.kernlab:
        results["kernlab"] = kernlab()
    if len(results) == 1:
        results["pass"] = pass_times()
    write_json(options.out / "iterative.json", results)


if __name__ == "__main__":
    main()
