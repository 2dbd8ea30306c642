"""Pre-images, denoising, novelty and the choice of parameters: published settings, full size.

USPS digits with noise (Mika et al. 1999; Shi, Guo & Xue), image patches (Kim, Franz & Schoelkopf
2005; Schraudolph, Guenter & Vishwanathan 2007, section 5.2), a walk (section 5.4), and checks
of the numerics. Every number is printed beside what it is held to.

    python reproduce/denoising.py --out results [--quick] [--only usps images ...]

Writes denoising.json and usps.png. Data: see papers_data; what needs scikit-image or bm3d is
left out where they are missing.
"""

import argparse
import json
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from _denoising import (
    Report,
    digits,
    gaussian,
    mse,
    salt_and_pepper,
    timed,
    usps_gamma,
    wiener,
)
from _image_peers import nonlocal_means, total_variation, wavelets
from papers_data import load_cloud, load_covtype, load_mocap, load_test_image, load_usps
from scipy.optimize import minimize
from scipy.signal import savgol_filter
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score

from mercer import KernelPCA, NoveltyDetector, PatchDenoiser, select
from mercer.estimators.search import Trial
from mercer.kernels import RBF, Polynomial
from mercer.metrics import snr
from mercer.preimage import FixedPoint, KernelRidge

STD = 20 / 255


def numerics(report, quick):
    """The pre-images themselves: optimal, finite, fast."""
    X, clean = digits(quick)
    noisy = gaussian(clean, 0.5)
    D, few = X.astype(float), noisy[:300].astype(float)
    model, pca = KernelPCA(20, kernel="linear").fit(D), PCA(20).fit(D)
    gap = model.inverse_transform(model.transform(few)) - pca.inverse_transform(pca.transform(few))
    report.add("linear kernel against PCA, largest difference", np.abs(gap).max(), 1e-8)
    optimal(report, RBF(1 / 128), D, few[:40], 1e-5, "sigma 8")
    for p in (2, 3, 5):
        optimal(report, Polynomial(p, 1 / 256, 1), D[:1500], few[:10], 1e-4, f"degree {p}")
    for sigma in (8.0, 11.0, 15.3):
        expansion = KernelPCA(64, kernel="rbf", gamma=0.5 / sigma**2).fit(X).expansion_
        found = FixedPoint().fit(expansion, X)(expansion.scores(noisy))
        bad = int(np.sum(~found.converged) + np.sum(~np.isfinite(found.points)))
        report.add(f"fixed point, sigma {sigma:g}: rows not finite or not settled", bad, 0)
        report.add(f"fixed point, sigma {sigma:g}: mean iterations", found.n_iter.mean(), 12)
    for sigma in (2.0, 3.0, 5.0, 8.0):
        model = KernelPCA(64, kernel="rbf", gamma=0.5 / sigma**2).fit(X)
        S = np.random.default_rng(3).standard_normal((200, 64)) * np.sqrt(model.explained_variance_)
        found = [FixedPoint().fit(model.expansion_, X)(factor * S).points for factor in (1, 3)]
        report.add(
            f"random scores, sigma {sigma:g}: rows not finite", np.sum(~np.isfinite(found)), 0
        )


def optimal(report, kernel, X, noisy, limit, name):
    """The objective of the fixed point against L-BFGS started at its answer and at W X."""
    model = KernelPCA(64, kernel=kernel, preimage=FixedPoint(1e-6, 1000)).fit(X)
    S = model.transform(noisy)
    W = model.expansion_.weights(S)

    def loss(z, w):
        return float(kernel.diag(z[None])[0] - 2 * (kernel(z[None], X) @ w)[0])

    gaps = []
    for z, w in zip(model.inverse_transform(S), W, strict=True):
        best = min(lbfgs(kernel, X, w, start) for start in (z, w @ X))
        gaps.append((loss(z, w) - best) / max(1.0, abs(best)))
    report.add(
        f"fixed point against L-BFGS, {name}: largest gap of the objective", max(gaps), limit
    )


def lbfgs(kernel, X, w, start):
    """Least k(z, z) - 2 sum w k(x, z), with the gradient of the two kernels used here."""

    def both(z):
        if isinstance(kernel, RBF):
            K = kernel(z[None], X)[0] * w
            return 1 - 2 * K.sum(), 4 * kernel.gamma * (K.sum() * z - K @ X)
        base, own = kernel.gamma * X @ z + kernel.coef0, kernel.gamma * z @ z + kernel.coef0
        p = kernel.degree
        slope = own ** (p - 1) * z - (w * base ** (p - 1)) @ X
        return own**p - 2 * w @ base**p, 2 * p * kernel.gamma * slope

    return minimize(both, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000}).fun


def speed(report, quick):
    """Milliseconds a row in single precision on one thread, in batches and one by one."""
    X, clean = digits(quick)
    noisy = gaussian(clean, 0.5)
    model = KernelPCA(64, kernel="rbf", gamma=usps_gamma(X), n_jobs=1).fit(X)
    S, fitted = model.transform(noisy), FixedPoint().fit(model.expansion_, X)
    batch = min(timed(lambda: fitted(S)) for _ in range(3)) / len(S)
    alone = timed(lambda: [fitted(s[None]) for s in S[:100]]) / 100
    report.add("fixed point in batches, ms a row", 1e3 * batch, 1.0)
    report.add("one by one, times slower", alone / batch, 5.0, most=False)


def usps(report, quick, out):
    """Denoising digits."""
    X, clean = digits(quick)
    cases = {"Gaussian 0.5": gaussian(clean, 0.5), "salt and pepper": salt_and_pepper(clean)}
    limits = {
        ("Gaussian 0.5", 64, "FP"): 0.155,
        ("Gaussian 0.5", 64, "FP compensated"): 0.116,
        ("Gaussian 0.5", 256, "FP compensated"): 0.098,
        ("salt and pepper", 64, "distance compensated"): 0.168,
    }
    pictures = {}
    for case, noisy in cases.items():
        report.add(f"USPS {case}: noisy", mse(noisy, clean))
        best = min(
            (mse(p.inverse_transform(p.transform(noisy)), clean), r)
            for r in (16, 24, 32, 40, 64)
            for p in [PCA(r, random_state=0).fit(X)]
        )
        report.add(f"USPS {case}: linear PCA, best r = {best[1]}", best[0])
        report.add(f"USPS {case}: linear PCA, Wiener", mse(wiener(X, noisy), clean))
        for r in (64, 256):
            model = KernelPCA(r, kernel="rbf", gamma=usps_gamma(X)).fit(X)
            for name, preimage, compensate in (
                ("FP", "fixed-point", False),
                ("FP compensated", "fixed-point", True),
                ("distance compensated", "distance", True),
                ("ridge compensated", "ridge", True),
            ):
                found = model.set_params(preimage=preimage).denoise(
                    noisy, compensate=compensate, noise=np.inf
                )
                limit = limits.get((case, r, name))
                report.add(f"USPS {case}, r = {r}: {name}", mse(found, clean), limit)
                pictures[case, r, name] = found
    draw_digits(out / "usps.png", clean, cases, pictures)
    round_trip(report, X, clean)
    X, clean = digits(quick, smoothed=True)
    noisy = gaussian(clean, 0.5)
    model = KernelPCA(64, kernel="rbf", gamma=1 / 128).fit(X)
    report.add(
        "smoothed USPS, sigma 8, r = 64: compensated",
        mse(model.denoise(noisy, noise=np.inf), clean),
        0.047,
    )


def round_trip(report, X, clean):
    """Rows there and back without noise: what `inverse_transform` is for."""
    model = KernelPCA(64, kernel="rbf", gamma=usps_gamma(X)).fit(X)
    S = model.transform(clean)
    for name, preimage in (
        ("fixed point", FixedPoint()),
        ("ridge, alpha 0.01", KernelRidge()),
        ("ridge, alpha 1", KernelRidge(1.0)),
        ("distance", "distance"),
    ):
        found = model.set_params(preimage=preimage).inverse_transform(S)
        report.add(f"USPS clean round trip, r = 64: {name}", mse(found, clean))
    peer = KernelPCA(64, kernel="rbf", gamma=usps_gamma(X), fit_inverse_transform=True).fit(X)
    found = peer.inverse_transform(peer.transform(clean))
    report.add("USPS clean round trip, r = 64: scikit-learn's", mse(found, clean))


def images(report, quick, out):
    """Patches: the published setting, ours, and the peers."""
    lena = load_test_image("lena512").data
    small = lena.reshape(256, 2, 256, 2).mean(axis=(1, 3))
    noisy = small + STD * np.random.default_rng(0).standard_normal(small.shape)
    report.add("Lena 256: noisy, dB", snr(small, noisy))
    report.add(
        "Lena 256, four quadrants, r = 20, sigma 4, dB (paper 13.49)",
        snr(small, quadrants(noisy)),
        13.3,
        most=False,
    )
    widths(report, small, noisy)
    cases = {"Lena 256": small, "Lena 512": lena, "china": load_test_image("china").data}
    try:
        cases["camera"] = load_test_image("camera").data
    except ImportError as error:
        print(f"camera left out: {error}")
    limits = {
        ("camera", "rbf, 7 x 7, stride 2, threshold"): 18.3,
        ("camera", "linear, 11 x 11, stride 1, threshold"): 19.1,
    }
    for name, clean in cases.items():
        if quick and name != "Lena 256":
            continue
        noisy = clean + STD * np.random.default_rng(0).standard_normal(clean.shape)
        if name != "Lena 256":
            report.add(f"{name}: noisy, dB", snr(clean, noisy))
        for label, denoise in denoisers(clean).items():
            start = time.perf_counter()
            found = denoise(noisy)
            seconds = time.perf_counter() - start
            limit = limits.get((name, label))
            report.add(f"{name}: {label}, dB ({seconds:.1f} s)", snr(clean, found), limit, False)


def widths(report, clean, noisy):
    """As the kernel widens the threshold of kernel PCA becomes that of linear PCA."""
    noisy = noisy.astype(np.float32)
    for sigma in (2, 4, 16, None):
        width = {} if sigma is None else {"kernel": "rbf", "gamma": 0.5 / sigma**2}
        denoiser = PatchDenoiser(7, 2, noise=STD, random_state=0, **width).fit(noisy)
        name = "linear" if sigma is None else f"sigma {sigma}"
        report.add(f"Lena 256, 7 x 7, stride 2, {name}, dB", snr(clean, denoiser.denoise(noisy)))


def denoisers(clean):
    """Name -> function of a noisy image; total variation is given its best weight."""

    def patches(**settings):
        def denoise(noisy):
            denoiser = PatchDenoiser(noise=STD, random_state=0, **settings)
            return denoiser.fit(noisy.astype(np.float32)).denoise(noisy.astype(np.float32))

        return denoise

    def best_variation(noisy):
        found = [total_variation(noisy, weight) for weight in (0.06, 0.08, 0.1, 0.12)]
        return max(found, key=lambda image: snr(clean, image))

    published = {
        "patch_size": 11,
        "stride": 2,
        "n_components": 20,
        "threshold": None,
        "demean": False,
    }
    return {
        "linear, 7 x 7, threshold": patches(),
        "rbf, 7 x 7, stride 2, threshold": patches(kernel="rbf", patch_size=7, stride=2),
        "rbf, 11 x 11, r = 20, no threshold": patches(kernel="rbf", gamma=1 / 32, **published),
        "linear, 11 x 11, r = 20, no threshold": patches(**published),
        "linear, 11 x 11, stride 1, threshold": patches(patch_size=11),
        "non-local means": lambda noisy: nonlocal_means(noisy, STD),
        "total variation, best weight": best_variation,
        "wavelets": lambda noisy: wavelets(noisy, STD),
        **libraries(),
    }


def libraries():
    """Denoisers of libraries that are installed, given the noise."""
    found = {}
    if find_spec("skimage"):
        from skimage.restoration import denoise_nl_means

        settings = {"h": 0.8 * STD, "sigma": STD, "patch_size": 7, "patch_distance": 11}
        found["scikit-image, non-local means"] = lambda noisy: denoise_nl_means(noisy, **settings)
    if find_spec("bm3d"):
        from bm3d import bm3d

        found["BM3D"] = lambda noisy: bm3d(noisy, STD)
    return found


def quadrants(noisy):
    """Each quarter of a 256 x 256 image, widened by 5 pixels, on its own: 62 x 62 patches."""
    out = np.empty_like(noisy)
    for i in (0, 1):
        for j in (0, 1):
            rows, columns = (slice(0, 133) if k == 0 else slice(123, 256) for k in (i, j))
            part = noisy[rows, columns].astype(np.float32)
            denoiser = PatchDenoiser(
                11,
                2,
                kernel="rbf",
                gamma=1 / 32,
                n_components=20,
                threshold=None,
                demean=False,
                n_patches=20_000,
            )
            found = denoiser.fit(part).denoise(part)
            inner = [slice(0, 128) if k == 0 else slice(5, 133) for k in (i, j)]
            out[128 * i : 128 * i + 128, 128 * j : 128 * j + 128] = found[tuple(inner)]
    return out


def motion(report, quick):
    """A walk denoised by itself, and by other walks."""
    clean = load_mocap().data
    for std, limit in ((0.01, None), (0.03, 90.0), (0.1, None)):
        shares, smooth = [], []
        for seed in range(3):
            noisy = clean + std * np.random.default_rng(seed).standard_normal(clean.shape)
            found = KernelPCA(25, kernel="rbf", gamma=1 / 3).fit(noisy).denoise(noisy, noise=np.inf)
            shares.append(100 * (1 - mse(found, clean) / mse(noisy, clean)))
            smooth.append(
                max(
                    100 * (1 - mse(savgol_filter(noisy, k, 3, axis=0), clean) / mse(noisy, clean))
                    for k in (7, 11, 15, 21, 31, 41)
                )
            )
        report.add(
            f"walk, {100 * std:g} cm, its own frames: % of noise removed (paper 87.5)",
            np.mean(shares),
            limit,
            most=False,
        )
        report.add(f"walk, {100 * std:g} cm: Savitzky-Golay, best window", np.mean(smooth))
    others = load_mocap("cmu35")
    frames = others.data[others.target != others.trials.index("35_01")]
    frames = poses(frames[np.random.default_rng(0).permutation(len(frames))[:2000]])
    clean = poses(clean)
    noisy = clean + 0.037 * np.random.default_rng(1).standard_normal(clean.shape)
    found = KernelPCA(25, kernel="rbf", gamma="median").fit(frames).denoise(noisy, noise=np.inf)
    share = 100 * (1 - mse(found, clean) / mse(noisy, clean))
    report.add("poses, 3.7 cm, database of other walks, sigma median, r = 25: %", share, 90, False)


def poses(frames):
    """Joints from the root of the body."""
    joints = frames.reshape(len(frames), -1, 3)
    return (joints - joints[:, :1]).reshape(frames.shape)


def novelty(report, quick):
    """One class against the rest: mean area under the curve."""
    train, test = load_usps(), load_usps(subset="test")
    areas = [
        area(train.data[train.target == k][:800], test.data, test.target == k)
        for k in range(0, 10, 5 if quick else 1)
    ]
    report.add("novelty, USPS, sigma median, r = 40: mean area", np.mean(areas), 0.94, most=False)
    cover = load_covtype()
    X, y = cover.data[:, :10], cover.target
    rng = np.random.default_rng(0)
    areas = []
    for k in (1, 2, 3, 7):
        own = rng.permutation(np.flatnonzero(y == k))
        others = rng.permutation(np.flatnonzero(y != k))[:1000]
        rows = np.r_[own[800:1800], others]
        areas.append(area(X[own[:800]], X[rows], y[rows] == k))
    report.add("novelty, Covertype, 4 classes: mean area", np.mean(areas), 0.78, most=False)


def area(train, rows, normal):
    detector = NoveltyDetector(random_state=0).fit(train)
    return roc_auc_score(normal, detector.score_samples(rows))


def choice(report, quick):
    """The true error at the automatic choice, in units of the least on the grid."""
    sets = choice_sets(quick)
    for name, (train, test, noise) in sets.items():
        report.add(f"choice, {name}: true error over the least", regret(train, test, noise), 1.1)
    for name in ("USPS, variance 0.5", "poses, 3.7 cm"):
        train, test, noise = sets[name]
        noisy = train + noise * np.random.default_rng(6).standard_normal(train.shape)
        value = regret(noisy.astype(train.dtype), test, noise, "hidden")
        report.add(f"choice, {name}, only noisy rows: hidden coordinates", value)


def regret(train, test, noise, criterion=None):
    """Fresh rows denoised at the choice, over the best of the grid."""
    found = select(train, criterion or noise, random_state=0)
    noisy = test + noise * np.random.default_rng(5).standard_normal(test.shape)
    trial = Trial(train, test, noisy.astype(train.dtype))
    ranks = [int(r) for r in found.n_components]
    models = [KernelPCA(ranks[-1], kernel="rbf", gamma=gamma) for gamma in found.gammas]
    truth = np.array([trial.errors(model, ranks) for model in models])
    return truth[found._best] / np.nanmin(truth)


def choice_sets(quick):
    """Name -> training rows, fresh rows, noise to expect."""
    n = 500 if quick else 1500
    X, clean = digits(quick)
    t = np.sqrt(np.random.default_rng(0).uniform(0.05, 1, n + 300)) * 3 * np.pi
    spiral = np.column_stack([t * np.cos(t), t * np.sin(t), np.zeros((len(t), 8))]) / 5
    eight = load_digits().data[np.random.default_rng(0).permutation(1797)]
    cloud = load_cloud().data
    cloud = cloud[np.random.default_rng(0).permutation(len(cloud))]
    walks = load_mocap("cmu35")
    other = walks.target != walks.trials.index("35_01")
    frames = poses(walks.data[other][np.random.default_rng(0).permutation(other.sum())[:n]])
    return {
        "USPS, variance 0.5": (X[:n], clean[:300], 0.5**0.5),
        "USPS, variance 0.1": (X[:n], clean[:300], 0.1**0.5),
        "poses, 3.7 cm": (frames, poses(load_mocap().data), 0.037),
        "spiral": (spiral[:n], spiral[n:], 0.3),
        "digits": (eight[:n], eight[-290:], 3.0),
        "cloud": (cloud[:n], cloud[-300:], 0.5),
    }


def draw_digits(path, clean, cases, pictures):
    """Clean, noisy and denoised digits, one row a way."""
    from matplotlib import pyplot as plt

    rows = {"clean": clean}
    for case, noisy in cases.items():
        rows[case] = noisy
        rows |= {f"{c}: {n}": Z for (c, r, n), Z in pictures.items() if c == case and r == 64}
    figure, axes = plt.subplots(len(rows), 1, figsize=(9, 1.0 * len(rows)), layout="constrained")
    for ax, (name, Z) in zip(axes, rows.items(), strict=True):
        strip = np.hstack([z.reshape(16, 16) for z in Z[: 16 * 12 : 12]])
        ax.imshow(-strip, cmap="gray", vmin=-1, vmax=1)
        ax.set_title(name, fontsize="small", loc="left")
        ax.axis("off")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main():
    parts = {
        "numerics": lambda report, quick, out: numerics(report, quick),
        "speed": lambda report, quick, out: speed(report, quick),
        "usps": usps,
        "images": images,
        "motion": lambda report, quick, out: motion(report, quick),
        "novelty": lambda report, quick, out: novelty(report, quick),
        "choice": lambda report, quick, out: choice(report, quick),
    }
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--quick", action="store_true", help="smaller sets; limits may be missed")
    parser.add_argument("--only", nargs="+", choices=list(parts), default=list(parts))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    import matplotlib

    matplotlib.use("Agg")
    report = Report()
    for name in options.only:
        with warnings.catch_warnings():
            # Narrow kernels of a grid leave some rows short of the tolerance, which is no news.
            warnings.filterwarnings("ignore", message=".*pre-images had not converged")
            parts[name](report, options.quick, options.out)
    (options.out / "denoising.json").write_text(json.dumps(report.rows, indent=1))
    missed = sum(row["ok"] is False for row in report.rows)
    print(f"{len(report.rows)} numbers, {missed} limits missed")


if __name__ == "__main__":
    main()
