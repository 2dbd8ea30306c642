"""Image denoising by kernel PCA of patches."""

from dataclasses import KW_ONLY
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from scipy.fft import dct
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import check_is_fitted

from ..bases import Landmarks
from ..compute import Array, array_namespace, parse_bytes, restore, to_numpy
from ..compute.arrays import is_foreign, is_on_device
from ..compute.engine import device_index
from ..exceptions import InvalidParameterError, ModelFileError
from ..kernels import KERNELS, Kernel, Linear
from ..kernels.base import typical_distance
from ..kernels.stationary import StationaryKernel
from ..preimage import Preimage
from ..solvers import Solver
from . import _checks
from ._checks import AT_LEAST_1, FROM_2, NOISE_OR_0, NOT_NEGATIVE, POSITIVE, Count, Flag
from ._door import NO_MATRIX, Door, Fitted, all_or_nothing, kept
from .kernel_pca import KernelPCA, PreimageName, SolverName

# Default width in median distances of the patches, components, and training patches: of
# kernels, and of the linear one, which is cheap.
WIDTH, COMPONENTS, PATCHES, LINEAR_PATCHES = 4.5, 45, 2500, 50_000
# The most patches that are processed at once.
CHUNK = 8192
# Side of the blocks that show the noise, blocks at most, the share of them with least structure,
# and how many of these are enough.
BLOCK, BLOCKS, FLATTEST, ENOUGH = 8, 30_000, 0.03, 200
# Blocks that touch the largest or least value of the image are passed over if this share is left.
UNCLIPPED = 0.1


class PatchDenoiser(Door):
    """Denoise images by kernel PCA of their patches; overlapping patches are averaged.

    The linear kernel is the default, better than any other kernel, non-local means, TV and
    wavelets on the test images. The first of two passes sets small scores to zero. The second
    takes components of that result and shrinks scores by its (Wiener), as in BM3D and LPG-PCA
    (Zhang et al. 2010). Patches that need few components weigh more in the mean. The other
    kernels are here because they were published (Kim, Franz & Schoelkopf 2005).

    Parameters
    ----------
    patch_size : int, default=9
        Side of a patch in pixels.

    stride : int, default=1
        Pixels from one patch to the next; of two passes, in the first at least 2. 1 is best and
        slowest: 2 takes half the time and loses 0.1 to 0.3 dB, with other kernels a fourth and
        0.2 dB.

    kernel : str or Kernel, default="linear"
    gamma : float or None, default=None
        None for sigma 4.5 times the median distance between patches.

    n_components : int or None, default=None
        Components kept; None for 45, and for all of them with a linear kernel.

    threshold : float or None, default=2.7
        Scores below this many standard deviations of the noise become zero; None keeps all
        scores of the components kept. A second pass is made by the linear kernel with a threshold
        and all components.

    noise : float or None, default=None
        Standard deviation of the noise; None to estimate it from the image.

    demean : bool, default=True
        Take the mean of each patch (and channel) out and put it back in the end.

    n_patches : int or None, default=None
        Patches to learn from, drawn at random; None for 2,500, or 50,000 with a linear kernel.

    eigen_solver : str or Solver, default="auto"
        How the components are found, as in `mercer.KernelPCA`; `mercer.hebbian.Hebbian` for the
        published way, by a Hebbian rule.

    preimage : "auto", "fixed-point", "distance", "ridge" or Preimage, default="auto"

    memory : int, str or None, default=None
        Bytes that work arrays may take beyond the image, the result and the training patches.

    n_jobs : int or None, default=None
        Threads; None for all cores.

    device : None, str or torch.device, default=None
        Where patches are projected and brought back, as in `mercer.KernelPCA`: None for where
        the image is. They are cut out and averaged in main memory.

    random_state : int, RandomState or None, default=None
        Which patches are learned from.

    Attributes
    ----------
    model_ : KernelPCA or None
        Fitted to patches; None if these have no variance.

    noise_ : float
        Standard deviation of the noise, given or estimated.

    n_channels_ : int or None
        Channels of a color image, None for grey ones.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import PatchDenoiser
    >>> clean = np.add.outer(np.linspace(0, 1, 48), np.sin(np.linspace(0, 9, 48)))
    >>> noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    >>> denoiser = PatchDenoiser(noise=0.1, random_state=0).fit(noisy)
    >>> error = np.mean((denoiser.denoise(noisy) - clean) ** 2)
    >>> bool(error < 0.2 * 0.1**2)
    True
    """

    patch_size: Annotated[int, FROM_2] = 9
    stride: Count = 1
    _: KW_ONLY
    kernel: Annotated[str | Kernel, NO_MATRIX, Kernel] = "linear"
    gamma: Annotated[float | None, POSITIVE, None] = None
    n_components: Annotated[int | None, AT_LEAST_1, None] = None
    threshold: Annotated[float | None, NOT_NEGATIVE, None] = 2.7
    noise: Annotated[float | None, NOISE_OR_0, None] = None
    demean: Flag = True
    n_patches: Annotated[int | None, FROM_2, None] = None
    eigen_solver: SolverName | Solver = "auto"
    preimage: PreimageName | Preimage = "auto"
    memory: int | str | None = None
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    device: Any = None

    def fit(self, image: Any, y: Any = None) -> Self:
        """Learn the patches of an image, the noisy one itself or clean examples.

        Parameters
        ----------
        image : array-like of shape (h, w) or (h, w, channels), or a list of such
        y : ignored

        Returns
        -------
        self
        """
        with all_or_nothing(self) as fresh:
            fresh._validate_params()
            originals = image if isinstance(image, list) else [image]
            if not originals:
                raise ValueError("There is no image in an empty list. Pass one image or several.")
            images = [fresh._image(one) for one in originals]
            if len({one.shape[2:] for one in images}) > 1:
                raise ValueError("Some images have other channels than others. Pass images alike.")
            channels = images[0].shape[2] if images[0].ndim == 3 else None
            rng = check_random_state(fresh.random_state)
            noises = [fresh.noise] if fresh.noise is not None else list(map(estimate_noise, images))
            linear = fresh.kernel == "linear" or isinstance(fresh.kernel, Linear)
            count = fresh.n_patches or (LINEAR_PATCHES if linear else PATCHES)
            P = fresh._without_mean(draw_patches(images, fresh.patch_size, count, rng), channels)[0]
            flat = np.ptp(P, axis=0).max() <= 1e-6 * max(np.abs(one).max() for one in images)
            model = None if flat else fresh._model(P, rng, originals[0]).fit(P)
            noise = float(np.mean(noises))
            fresh._adopt({"model_": model, "noise_": noise, "n_channels_": channels})
        return self

    def _complete(self) -> None:
        """Patches have as many entries as the model within has columns."""
        entries = self.patch_size**2 * (self.n_channels_ or 1)
        if self.model_ is not None and self.model_.n_features_in_ != entries:
            raise ModelFileError(f"a model of {self.model_.n_features_in_} columns for {entries}")

    def denoise(self, image: Any) -> Array:
        """The image with its patches projected and averaged.

        Parameters
        ----------
        image : array-like of shape (h, w) or (h, w, channels)

        Returns
        -------
        array of the image's shape
        """
        check_is_fitted(self)
        original, image = image, self._image(image)
        if image.shape[2:] != (() if self.n_channels_ is None else (self.n_channels_,)):
            raise ValueError(
                f"The image has shape {image.shape}, and fit saw "
                f"{self.n_channels_ or 'no'} channels. Pass images of the same kind."
            )
        if self.model_ is None:
            return restore(image.copy(), original)
        # What the first pass gives shows how far to shrink the scores of a second.
        linear = isinstance(self.model_.kernel_, Linear) and not self.n_components
        if not linear or self.threshold is None or not self.noise_ > 0:
            return restore(self._pass(image, self.stride, self._clean), original)
        pilot = self._pass(image, min(max(self.stride, 2), self.patch_size), self._clean)
        rng = np.random.RandomState(0)
        P = draw_patches([pilot], self.patch_size, self.n_patches or LINEAR_PATCHES, rng)
        P = self._without_mean(P, self.n_channels_)[0]
        second = partial(self._shrunk, self._model(P, rng, original).fit(P))
        return restore(self._pass(image, self.stride, second, pilot), original)

    def _pass(self, image, stride, clean, *pilot):
        """The weighted mean of ``clean(patches)`` over all patches of an image."""
        size = self.patch_size
        rows, columns = (positions(side, size, stride) for side in image.shape[:2])
        total = np.zeros(image.shape)
        count = np.zeros(image.shape[:2])
        # Bytes of a patch at work: itself, its mean, its scores and pre-image, and a pilot's.
        width = 8 * (12 * size**2 * (self.n_channels_ or 1) + COMPONENTS)
        chunk = int(np.clip(parse_bytes(self.memory) // (4 * width), 1, CHUNK))
        step = max(1, chunk // len(columns))
        for start in range(0, len(rows), step):
            block_rows = rows[start : start + step]
            patches = (patches_at(one, size, block_rows, columns) for one in (image, *pilot))
            P, weights = clean(*patches)
            add_patches(total, count, P, weights, size, block_rows, columns)
        total /= count if image.ndim == 2 else count[:, :, None]
        return total.astype(image.dtype, copy=False)

    _fitted: ClassVar[dict[str, Fitted]] = {
        "model_": kept("KernelPCA p or None"),
        "noise_": kept("(-inf, inf)"),
        "n_channels_": kept((Annotated[int, "[1, inf)"], None)),
    }
    _sparse = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Rows of an image are no samples: one image is.
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags

    def _clean(self, P):
        """Patches (q, p) projected, their small scores dropped, and brought back; their weights."""
        P, means = self._without_mean(P, self.n_channels_)
        kernel, expansion = self.model_.kernel_, self.model_.expansion_
        if isinstance(kernel, Linear):
            center, V = directions_of(expansion, P.dtype)
            S = (expansion.basis.engine.asarray(P) - center) @ V
            kept = array_namespace(S).abs(S) >= (self.threshold or 0.0) * self.noise_
            S *= kept
            weights = 1 / (1 + to_numpy(kept).sum(axis=1)) if self.threshold else 1.0
            return to_numpy(center + S @ V.T) + means, weights
        S = to_numpy(expansion.scores(P))
        if self.threshold is not None:
            # Length in feature space of a short unit step in input space.
            slope = float(np.sqrt(2 * float(kernel.gamma or 0)))
            S[np.abs(S) < self.threshold * self.noise_ * slope] = 0
        S = expansion.basis.engine.asarray(S)
        return to_numpy(self.model_._inverse().find(S, denoising=True, near=P)) + means, 1.0

    def _shrunk(self, model, P, pilot):
        """Patches whose scores are shrunk as if those of the pilot were true; their weights."""
        P, means = self._without_mean(P, self.n_channels_)
        pilot, _ = self._without_mean(pilot, self.n_channels_)
        center, V = directions_of(model.expansion_, P.dtype)
        S, gains = ((model.expansion_.basis.engine.asarray(A) - center) @ V for A in (P, pilot))
        gains *= gains
        gains /= gains + self.noise_**2
        S *= gains
        gains *= gains
        # The variance that is left in the patch, and no less than that of its mean.
        weights = 1 / (1 / P.shape[1] + to_numpy(gains.sum(axis=1)))
        return to_numpy(center + S @ V.T) + means, weights

    def _without_mean(self, P, channels):
        """Patches less their means, by channel, and the means to put back."""
        if not self.demean:
            return P, 0.0
        pixels = P.reshape(len(P), -1, channels or 1)
        means = np.broadcast_to(pixels.mean(axis=1, keepdims=True), pixels.shape)
        return P - means.reshape(P.shape), means.reshape(P.shape)

    def _model(self, P, rng, image) -> KernelPCA:
        kernel = self.kernel if isinstance(self.kernel, Kernel) else KERNELS[self.kernel]()
        linear = isinstance(kernel, Linear)
        if self.threshold is not None and not isinstance(kernel, Linear | StationaryKernel):
            raise ValueError(
                f"threshold={self.threshold!r} needs the length of the noise in feature space, "
                f"which is not known for {kernel}. Use threshold=None, or an rbf or linear kernel."
            )
        if "gamma" in kernel.get_params(deep=False):
            gamma = kernel.gamma if self.gamma is None else self.gamma
            if gamma is None and isinstance(kernel, StationaryKernel):
                # Where most patches are alike, the mean distance still tells them apart.
                kind = "median" if typical_distance(P, "median") > 0 else "mean"
                gamma = clone(kernel).set_params(gamma=kind).resolve(P).gamma / WIDTH**2
            kernel = clone(kernel).set_params(gamma=gamma)
        there = self.device is None and is_on_device(image)
        most = P.shape[1] if linear else min(COMPONENTS, len(P) - 1)
        r = min(self.n_components or most, len(P) - 1, P.shape[1] if linear else len(P))
        shared = ("eigen_solver", "preimage", "memory", "n_jobs")
        settings: dict[str, Any] = {name: vars(self)[name] for name in shared}
        settings["device"] = f"cuda:{device_index(image)}" if there else self.device
        settings["random_state"] = rng.randint(np.iinfo(np.int32).max)
        # The unit vectors span the patches, so this is exact at any number of them.
        basis: Any = Landmarks(points=np.eye(P.shape[1])) if linear else "points"
        return KernelPCA(r, kernel=kernel, basis=basis, **settings)

    def _validate_params(self) -> None:
        """Also the parameters together, as of a model file."""
        super()._validate_params()
        if self.stride > self.patch_size:
            raise InvalidParameterError(
                f"stride={self.stride} would leave pixels between patches of "
                f"patch_size={self.patch_size}. Give a stride no larger than that.",
                parameter="stride",
            )

    def _image(self, image):
        """A finite image of floats, not smaller than a patch."""
        image = to_numpy(image) if is_foreign(image) else image
        options: Any = {"ensure_2d": False, "allow_nd": True, "ensure_all_finite": False}
        options |= {"dtype": [np.float64, np.float32], "input_name": "image"}
        image = _checks.checked_array(image, **options)
        if image.ndim not in (2, 3) or not image.size:
            raise ValueError(
                "An image is an array of numbers of shape (h, w) or (h, w, channels), and this has "
                f"shape {image.shape}. Pass a list for several images."
            )
        if min(image.shape[:2]) < self.patch_size:
            raise ValueError(
                f"The image of {image.shape[0]} x {image.shape[1]} pixels is smaller than a patch "
                f"of patch_size={self.patch_size}. Give a smaller patch_size."
            )
        if not np.isfinite(image).all():
            raise ValueError("The image contains NaN or infinity. Fill those pixels first.")
        if np.abs(image).max() > np.sqrt(np.finfo(image.dtype).max) / image.size:
            raise ValueError(
                "Squares of the image's pixels overflow. Scale it: X / np.abs(X).max()."
            )
        return image


def positions(side: int, size: int, stride: int) -> np.ndarray:
    """First pixels of patches that cover a side of the image, its end included."""
    last = side - size
    return np.unique(np.append(np.arange(0, last + 1, stride), last))


def windows(image, size) -> np.ndarray:
    """A view of the patch at every pixel, (h', w', size, size[, channels])."""
    patches = np.lib.stride_tricks.sliding_window_view(image, (size, size), axis=(0, 1))
    return np.moveaxis(patches, 2, -1) if image.ndim == 3 else patches


def patches_at(image, size, rows, columns) -> np.ndarray:
    """Patches (q, size * size * channels), those of the first row first."""
    return windows(image, size)[np.ix_(rows, columns)].reshape(len(rows) * len(columns), -1)


def draw_patches(images, size, count, rng) -> np.ndarray:
    """Random patches, all of them where there are no more than `count`."""
    share, drawn = -(-count // len(images)), []
    for image in images:
        h, w = (side - size + 1 for side in image.shape[:2])
        chosen = np.sort(sample_without_replacement(h * w, min(share, h * w), random_state=rng))
        drawn.append(windows(image, size)[chosen // w, chosen % w].reshape(len(chosen), -1))
    return np.concatenate(drawn)


def add_patches(total, count, P, weights, size, rows, columns) -> None:
    """Add patches to where they came from, and their weights (q,) to the count of their pixels."""
    weights = np.broadcast_to(weights, len(P)).astype(P.dtype, copy=False)
    P = P * weights[:, None]
    P = P.reshape(len(rows), len(columns), size, size, *total.shape[2:])
    weights = weights.reshape(len(rows), len(columns))
    # Slices are faster than numbers, where there is no gap.
    no_gap = all(one[-1] - one[0] == len(one) - 1 for one in (rows, columns))
    top, left, height, width = rows[0], columns[0], len(rows), len(columns)
    for i in range(size):
        for j in range(size):
            where: Any = slice(top + i, top + i + height), slice(left + j, left + j + width)
            where = where if no_gap else np.ix_(rows + i, columns + j)
            total[where] += P[:, :, i, j]
            count[where] += weights


def directions_of(expansion, dtype) -> tuple[Array, Array]:
    """Mean (p,) and directions (p, r) of a linear kernel in the columns of its rows."""
    F = to_numpy(expansion.basis.points).T @ to_numpy(expansion.frame)
    place = expansion.basis.engine.asarray
    return place(F[:, 0], dtype), place(F[:, 1:], dtype)


def estimate_noise(image: np.ndarray) -> float:
    """Standard deviation of white noise: high frequencies of the blocks with least low ones.

    Texture has low frequencies where it has high ones, and in white noise these tell nothing of
    each other, so that no low noise is selected with low texture (Ponomarenko et al. 2007).
    """
    size = min(BLOCK, *image.shape[:2])
    blocks = windows(image, size)
    if image.ndim == 3:
        blocks = np.moveaxis(blocks, -1, 2)
    chosen = np.linspace(0, blocks.shape[0] * blocks.shape[1] - 1, BLOCKS).astype(int)
    chosen = np.unique(chosen)
    blocks = blocks[chosen // blocks.shape[1], chosen % blocks.shape[1]].reshape(-1, size**2)
    clipped = (blocks.min(axis=1) <= image.min()) | (blocks.max(axis=1) >= image.max())
    if np.mean(~clipped) >= UNCLIPPED:
        blocks = blocks[~clipped]
    frequency = np.add.outer(np.arange(size), np.arange(size)).ravel()
    cosines = dct(np.eye(size), axis=0, norm="ortho")
    squares = np.square(blocks @ np.kron(cosines, cosines).T)
    high = frequency > min(size, 2 * size - 3)
    structure = squares[:, (frequency > 0) & ~high].sum(axis=1)
    count = min(len(blocks), max(ENOUGH, int(FLATTEST * len(blocks))))
    flattest = np.argpartition(structure, count - 1)[:count]
    return float(np.sqrt(np.median(squares[flattest][:, high].mean(axis=0))))
