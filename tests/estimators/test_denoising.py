"""Patches: every pixel covered, noise removed, memory bounded, bad images refused."""

import os
import pickle
import warnings

import numpy as np
import pytest
from _image_peers import nonlocal_means
from contracts import check_recipe, generator, peak_bytes
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_sample_image
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError, SkipTestWarning
from sklearn.utils import estimator_checks, get_tags

from mercer import PatchDenoiser
from mercer.estimators.denoise import (
    add_patches,
    draw_patches,
    estimate_noise,
    patches_at,
    positions,
)
from mercer.hebbian import Hebbian
from mercer.metrics import snr


def picture(h=64, w=56, channels=None):
    """Edges, ramps and waves in [0, 1]."""
    y, x = np.mgrid[:h, :w] / max(h, w)
    image = 0.3 * (x > 0.5) + 0.3 * np.sin(8 * y) ** 2 + 0.4 * ((x - 0.3) ** 2 + y**2 < 0.2)
    if channels is None:
        return image
    return np.stack([np.roll(image, 5 * c, axis=0) * (1 - 0.2 * c) for c in range(channels)], -1)


CLEAN = picture()
NOISY = CLEAN + 0.08 * generator(50).standard_normal(CLEAN.shape)


@pytest.mark.parametrize("shape", [(13, 9), (9, 9), (20, 31), (12, 17, 3)])
@pytest.mark.parametrize("stride", [1, 2, 4, 5])
def test_patches_put_back_are_the_image(shape, stride):
    """All pixels are covered, and averaging unchanged patches changes nothing."""
    image = generator(51).standard_normal(shape)
    rows, columns = (positions(side, 5, stride) for side in shape[:2])
    total, count = np.zeros(shape), np.zeros(shape[:2])
    add_patches(total, count, patches_at(image, 5, rows, columns), 1.0, 5, rows, columns)
    assert count.min() >= 1
    np.testing.assert_allclose(total / (count if len(shape) == 2 else count[..., None]), image)


def test_drawn_patches_are_patches():
    image = picture(12, 10, 3)
    every = draw_patches([image], 4, 10**6, np.random.RandomState(0))
    grid = patches_at(image, 4, np.arange(9), np.arange(7))
    np.testing.assert_array_equal(every, grid)
    some = draw_patches([image, image], 4, 20, np.random.RandomState(0))
    assert some.shape == (20, 48)
    assert {tuple(p) for p in some} <= {tuple(p) for p in every}


def test_linear_is_pca_of_patches():
    """Without a threshold and at every place, the answer is averaged linear PCA."""
    denoiser = PatchDenoiser(5, 1, kernel="linear", n_components=6, threshold=None, demean=False)
    places = [np.arange(side - 4) for side in NOISY.shape]
    P = patches_at(NOISY, 5, *places)
    pca = PCA(6).fit(P)
    total, count = np.zeros(NOISY.shape), np.zeros(NOISY.shape)
    add_patches(total, count, pca.inverse_transform(pca.transform(P)), 1.0, 5, *places)
    np.testing.assert_allclose(denoiser.fit(NOISY).denoise(NOISY), total / count, atol=1e-8)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kernel": "rbf", "patch_size": 7, "stride": 2},
        {"stride": 2},
        {"threshold": None, "n_components": 8},
        {"kernel": "rbf", "preimage": "ridge", "n_patches": 500, "stride": 2},
        {"kernel": "poly", "threshold": None, "n_components": 8, "stride": 2},
        {"kernel": "rbf", "demean": False, "n_components": 10, "threshold": None, "stride": 2},
    ],
    ids=str,
)
def test_noise_is_removed(settings):
    check_recipe(PatchDenoiser(**settings))
    denoiser = PatchDenoiser(**{"n_patches": 800, **settings}, random_state=0).fit(NOISY)
    found = denoiser.denoise(NOISY)
    assert found.shape == NOISY.shape
    assert snr(CLEAN, found) > snr(CLEAN, NOISY) + 3


@pytest.mark.parametrize("seed", range(6))
def test_the_default_is_the_better_one(seed):
    """Drawn pictures: discs, or noise as smooth as photographs are."""
    rng = generator(53, seed)
    y, x = np.mgrid[:64, :64] / 64
    if seed % 2:
        discs = rng.random((8, 4)) * [1, 1, 0.3, 0.5]
        clean = sum(c * ((x - a) ** 2 + (y - b) ** 2 < r * r) for a, b, r, c in discs)
    else:
        waves = np.hypot(np.fft.fftfreq(64)[:, None], np.fft.rfftfreq(64)) + 1 / 64
        clean = np.fft.irfft2(np.fft.rfft2(rng.standard_normal((64, 64))) / waves**1.6)
        clean /= np.ptp(clean)
    noisy = clean + rng.uniform(0.05, 0.2) * rng.standard_normal(clean.shape)
    found = [
        snr(clean, PatchDenoiser(**settings, random_state=0).fit(noisy).denoise(noisy))
        for settings in ({}, {"kernel": "rbf", "patch_size": 7, "stride": 2, "n_patches": 1000})
    ]
    assert found[0] > found[1]


def test_color():
    clean = picture(channels=3)
    noisy = clean + 0.08 * generator(52).standard_normal(clean.shape)
    for settings in ({}, {"kernel": "rbf", "n_patches": 800, "stride": 3}):
        denoiser = PatchDenoiser(**settings, random_state=0).fit(noisy)
        together = denoiser.denoise(noisy)
        assert together.shape == clean.shape
        assert snr(clean, together) > snr(clean, noisy) + 4
    with pytest.raises(ValueError, match="3 channels"):
        denoiser.denoise(noisy[..., 0])


def test_clean_examples_teach_too():
    """Fitted to other, clean pictures."""
    denoiser = PatchDenoiser(kernel="linear", noise=0.08, random_state=0)
    denoiser.fit([picture(60, 60).T, picture(48, 80)])
    assert snr(CLEAN, denoiser.denoise(NOISY)) > snr(CLEAN, NOISY) + 4


def test_scale_does_not_matter():
    """Gray values of 0 to 255 give the same picture."""
    settings = {"kernel": "rbf", "n_patches": 500, "stride": 3, "random_state": 0}
    one = PatchDenoiser(**settings).fit(NOISY).denoise(NOISY)
    other = PatchDenoiser(**settings).fit(255 * NOISY).denoise(255 * NOISY)
    np.testing.assert_allclose(other, 255 * one, atol=0.1)
    whole = np.round(255 * np.clip(NOISY, 0, 1)).astype(np.uint8)
    assert PatchDenoiser(kernel="linear").fit(whole).denoise(whole).dtype == float


def drawn_image(kind, rng, h=160, w=192):
    """A clean picture of 0 to 255."""
    y, x = np.mgrid[:h, :w] / max(h, w)
    if kind == "discs":
        discs = rng.random((12, 4)) * [1, 1, 0.3, 1]
        clean = sum(c * ((x - a) ** 2 + (y - b) ** 2 < r * r) for a, b, r, c in discs)
    elif kind == "stripes":
        clean = np.sin(rng.uniform(10, 50) * x + rng.uniform(10, 50) * y) + (x > rng.random())
    elif kind == "waves":
        clean = gaussian_filter(rng.standard_normal((h, w)), rng.uniform(2, 6))
    elif kind == "ramp":
        clean = rng.random() * x + rng.random() * y
    else:
        photo = load_sample_image(kind).mean(axis=2)
        i, j = (rng.integers(side - part) for side, part in zip(photo.shape, (h, w), strict=True))
        return photo[i : i + h, j : j + w]
    return 255 * (clean - clean.min()) / np.ptp(clean)


KINDS = ["discs", "stripes", "waves", "ramp", "china.jpg", "flower.jpg"]


@pytest.mark.parametrize("key", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_estimated(kind, key):
    """Edges and texture are no noise, and little noise is not drowned by them."""
    rng = generator(53, key, KINDS.index(kind))
    clean, errors = drawn_image(kind, rng), []
    for noise in np.exp(rng.uniform(np.log([2, 5, 15]), np.log([5, 15, 50]))):
        noisy = clean + noise * rng.standard_normal(clean.shape)
        errors.append(estimate_noise(noisy) / noise - 1)
        single = estimate_noise(noisy.astype(np.float32) / 255) / (noise / 255) - 1
        assert single == pytest.approx(errors[-1], abs=1e-3)
        # Where light is cut off there is no noise, and elsewhere there is.
        if noise < 15:
            cut = estimate_noise(np.clip(np.rint(noisy), 0, 255))
            assert cut == pytest.approx((1 + errors[-1]) * noise, rel=0.15)
    # Leaves have nothing but texture: little noise in them looks larger than it is.
    assert np.median(np.abs(errors)) < 0.08
    assert np.abs(errors).max() < (0.5 if kind.endswith("jpg") else 0.12)
    color = np.stack([clean, 0.5 * clean, 255 - clean], axis=-1)
    color = color + noise * rng.standard_normal(color.shape)
    assert estimate_noise(color) == pytest.approx(noise, rel=0.15)


@pytest.mark.parametrize("shape", [(9, 9), (9, 40), (2, 30), (3, 3), (5, 5, 3), (40, 7)])
def test_noise_of_small_images(shape):
    noises = [estimate_noise(generator(54, key).standard_normal(shape)) for key in range(20)]
    assert 0.4 < np.mean(noises) < 1.6
    assert estimate_noise(np.full(shape, 3.0)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS[:4])
def test_no_worse_than_nonlocal_means(kind):
    """Which are told the noise; the default is not. A plain sky under heavy noise is theirs."""
    rng = generator(57, KINDS.index(kind))
    clean = drawn_image(kind, rng, 96, 112)
    for noise in rng.uniform([4, 12, 25], [12, 25, 45]):
        noisy = clean + noise * rng.standard_normal(clean.shape)
        found = PatchDenoiser(random_state=0).fit(noisy).denoise(noisy)
        peer = nonlocal_means(noisy, noise)
        assert snr(clean, found) > snr(clean, peer) - 0.2, noise


def test_memory_is_bounded():
    """A larger image takes no more beside itself, its answer and the counts."""
    noisy = picture(250, 200).astype(np.float32)
    noisy = noisy + 0.1 * generator(54).standard_normal(noisy.shape).astype(np.float32)
    denoiser = PatchDenoiser(
        kernel="linear", n_patches=2000, memory="4MB", n_jobs=1, random_state=0
    ).fit(noisy)
    used = peak_bytes(lambda: denoiser.denoise(noisy))
    kept = 3 * 8 * noisy.size
    assert used < kept + 4e6


def test_bad_images():
    denoiser = PatchDenoiser()
    with pytest.raises(NotFittedError):
        denoiser.denoise(NOISY)
    with pytest.raises(ValueError, match=r"5 x 30 pixels is smaller.*smaller patch_size"):
        denoiser.fit(np.ones((5, 30)))
    with pytest.raises(ValueError, match="NaN or infinity"):
        denoiser.fit(np.where(NOISY > 0.9, np.nan, NOISY))
    with pytest.raises(ValueError, match=r"shape \(4,\)"):
        denoiser.fit(np.ones(4))
    with pytest.raises(ValueError, match=r"must be a number"):
        denoiser.fit(np.full((9, 9), "a"))
    with pytest.raises(ValueError, match="other channels"):
        denoiser.fit([NOISY, picture(channels=3)])
    with pytest.raises(ValueError, match=r"threshold=2.7.*threshold=None"):
        PatchDenoiser(kernel="poly").fit(NOISY)
    with pytest.raises(ValueError, match="patch_size"):
        PatchDenoiser(patch_size=0).fit(NOISY)
    with pytest.raises(ValueError, match=r"stride=10 would leave pixels.*patch_size=9"):
        PatchDenoiser(stride=10).fit(NOISY)
    denoiser = PatchDenoiser(kernel="linear").fit(NOISY)
    with pytest.raises(ValueError, match="smaller than a patch"):
        denoiser.denoise(NOISY[:5])
    with pytest.raises(ValueError, match="NaN"):
        denoiser.denoise(np.full((20, 20), np.nan))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("value", [0.0, 0.7, 255.0])
def test_constant_images_stay(kernel, value):
    image = np.full((20, 24), value)
    np.testing.assert_array_equal(PatchDenoiser(kernel=kernel).fit(image).denoise(image), image)
    denoiser = PatchDenoiser(kernel=kernel, n_patches=500, random_state=0).fit(NOISY)
    np.testing.assert_allclose(denoiser.denoise(image), image, atol=0.05)


def test_image_of_one_patch():
    image = generator(55).standard_normal((9, 9))
    assert np.isfinite(PatchDenoiser().fit(image).denoise(image)).all()


# Checks of scikit-learn that need no table of rows, which an image is not.
WITHOUT_ROWS = [
    estimator_checks.check_estimator_cloneable,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_parameters_default_constructible,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_set_params,
    estimator_checks.check_valid_tag_types,
    estimator_checks.check_mixin_order,
    estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
]


@pytest.mark.parametrize("check", WITHOUT_ROWS, ids=lambda check: check.__name__)
def test_checks_without_rows(check):
    check("PatchDenoiser", PatchDenoiser())


def test_images_are_no_table_of_rows():
    """Tags say so: scikit-learn's checks of tables are not run, and none fails."""
    tags = get_tags(PatchDenoiser()).input_tags
    assert tags.three_d_array and not tags.two_d_array
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        outcomes = estimator_checks.check_estimator(PatchDenoiser(), on_fail=None)
    assert all(one["status"] != "failed" for one in outcomes)


def test_what_scikit_learn_asks_of_every_fit():
    """Images are only read, denoise changes nothing, fits repeat, and pickles are the model."""
    noisy = picture() + 0.1 * generator(5).standard_normal((64, 56))
    noisy.setflags(write=False)
    model = PatchDenoiser(kernel="linear", random_state=0)
    params = model.get_params()
    assert model.fit(noisy, y=None) is model and model.get_params() == params
    fitted = set(vars(model))
    clean = model.denoise(noisy)
    assert set(vars(model)) == fitted
    for other in (pickle.loads(pickle.dumps(model)), model.fit(np.asfortranarray(noisy))):
        np.testing.assert_allclose(other.denoise(noisy), clean, rtol=1e-10, atol=1e-12)


@pytest.mark.skipif("MERCER_DATA" not in os.environ, reason="MERCER_DATA is not set")
def test_motion():
    """A walk with 3 cm of noise, fitted to itself: the published setting, 87.5 % in the paper."""
    from papers_data import load_mocap

    from mercer import KernelPCA

    clean = load_mocap().data
    noisy = clean + 0.03 * generator(56).standard_normal(clean.shape)
    found = KernelPCA(25, kernel="rbf", gamma=1 / 3).fit(noisy).denoise(noisy)
    assert np.mean((found - clean) ** 2) < 0.1 * np.mean((noisy - clean) ** 2)


@pytest.mark.parametrize("gain", ["et", "auto"])
def test_patches_by_a_hebbian_rule(gain):
    """Section 5.2 of Schraudolph et al.: the same components, learned patch by patch."""
    clean = np.add.outer(np.sin(np.linspace(0, 7, 40)), np.cos(np.linspace(0, 9, 40)))
    noisy = clean + 0.2 * np.random.default_rng(1).standard_normal(clean.shape)
    found = {}
    for name, solver in {"auto": "auto", "hebbian": Hebbian(gain, n_passes=20)}.items():
        denoiser = PatchDenoiser(
            7, n_components=8, threshold=None, n_patches=300, eigen_solver=solver, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found[name] = np.mean((denoiser.fit(noisy).denoise(noisy) - clean) ** 2)
    assert found["hebbian"] < 0.5 * 0.2**2
    np.testing.assert_allclose(found["hebbian"], found["auto"], rtol=0.1)
