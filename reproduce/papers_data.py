"""Loaders of the papers' data sets.

They are read from ``.npz`` files in the folder that the environment variable ``MERCER_DATA``
names; where scikit-learn has a fetcher for a set, it is asked next. Each loader's notes give the
file's name and arrays. All of them return a :class:`sklearn.utils.Bunch`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils import Bunch

COVTYPE_QUANTITATIVE = [
    "Elevation",
    "Aspect",
    "Slope",
    "Horizontal_Distance_To_Hydrology",
    "Vertical_Distance_To_Hydrology",
    "Horizontal_Distance_To_Roadways",
    "Hillshade_9am",
    "Hillshade_Noon",
    "Hillshade_3pm",
    "Horizontal_Distance_To_Fire_Points",
]
CLOUD_COLUMNS = [
    "visible_min",
    "visible_max",
    "visible_mean",
    "visible_mean_distribution",
    "visible_contrast",
    "visible_entropy",
    "visible_second_angular_momentum",
    "ir_min",
    "ir_max",
    "ir_mean",
]
# The letters of the three codes of a sunspot group, in the order of UCI's description.
FLARE_CODES = ("ABCDEFH", "XRSAHK", "XOIC")
USPS_TRAIN, MNIST_TRAIN = 7291, 60000


def load_usps(
    *, smoothed: bool = False, subset: str = "train", dtype: DTypeLike = np.float64
) -> Bunch:
    """Load the USPS digits: 7,291 training and 2,007 test images of 16 x 16 gray values.

    Two versions are in circulation, with the same digits in the same order. Papers that give
    no source may mean either, so try both before doubting a number.

    Parameters
    ----------
    smoothed : bool, default=False
        False for the images of *The Elements of Statistical Learning*; True for those of
        LIBSVM, which are the former after a Gaussian filter of 0.75 pixels.
    subset : {"train", "test", "all"}, default="train"
        Rows to return, in the original order.
    dtype : dtype, default=float64
        Type of `data`.

    Returns
    -------
    Bunch
        `data` in [-1, 1] (-1 is background), `target` (the digits), `images_shape`,
        `feature_names`, `DESCR`.

    Notes
    -----
    File ``usps.npz``: `X_train`, `X_test` (integers), `y_train`, `y_test`, `scale`; a gray value
    is `X / scale`. Without it OpenML's set 41082 is fetched, which is probably the smoothed one:
    asking it for the other warns.
    """
    stored = read_stored("usps.npz")
    if stored is None:
        X, y = fetched("USPS", "usps.npz", fetch_usps)
        if not smoothed:
            warnings.warn(
                "OpenML's copy of USPS is probably the smoothed one; put usps.npz into the "
                "folder MERCER_DATA for the original images, or pass smoothed=True",
                UserWarning,
                stacklevel=2,
            )
    else:
        X, y = join(stored)
        X = X / float(stored["scale"])
        X = smooth(X, (16, 16)) if smoothed else X
    rows = subset_rows(subset, USPS_TRAIN, len(y))
    name = "smoothed (LIBSVM)" if smoothed else "original"
    return digits(X[rows], y[rows], (16, 16), dtype, f"USPS handwritten digits, {name} images.")


def load_mnist(*, subset: str = "train", dtype: DTypeLike = np.float64) -> Bunch:
    """Load MNIST: 60,000 training and 10,000 test images of 28 x 28 gray values.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        Rows to return, in the original order.
    dtype : dtype, default=float64
        Type of `data`. The training set takes 376 MB as float64, 188 MB as float32.

    Returns
    -------
    Bunch
        `data` in [0, 1] (0 is background), `target` (the digits), `images_shape`,
        `feature_names`, `DESCR`.

    Notes
    -----
    File ``mnist.npz``: `X_train`, `X_test` (integers 0 to 255), `y_train`, `y_test`. Without it
    OpenML's ``mnist_784`` is fetched.
    """
    stored = read_stored("mnist.npz")
    X, y = fetched("MNIST", "mnist.npz", fetch_mnist) if stored is None else join(stored)
    rows = subset_rows(subset, MNIST_TRAIN, len(y))
    X = np.divide(X[rows], 255, dtype=np.dtype(dtype))
    return digits(X, y[rows], (28, 28), dtype, "MNIST handwritten digits.")


def load_covtype(*, scaling: str = "mixed", dtype: DTypeLike = np.float64) -> Bunch:
    """Load the forest cover types of UCI: 581,012 rows of 10 measurements and 44 indicators.

    Parameters
    ----------
    scaling : {"mixed", "raw", "standard"}, default="mixed"
        "mixed" gives the 10 measurements zero mean and unit variance and leaves the 44
        indicators (4 wilderness areas, 40 soil types) as 0 and 1; "standard" does it to all
        54 columns, which lets rare soil types rule the distances; "raw" does nothing.
    dtype : dtype, default=float64
        Type of `data`, which takes 251 MB as float64.

    Returns
    -------
    Bunch
        `data` (581012, 54), `target` (cover type, 1 to 7), `feature_names`, `DESCR`.

    Notes
    -----
    File ``covtype.npz``: `X_quantitative` (581012, 10), `wilderness` (1 to 4), `soil` (1 to 40),
    `y`. Without it :func:`sklearn.datasets.fetch_covtype` is asked.
    """
    columns = choose("scaling", scaling, {"mixed": range(10), "raw": (), "standard": range(54)})
    stored = read_stored("covtype.npz")
    if stored is None:
        X, y = fetched("Covertype", "covtype.npz", fetch_covtype)
        X = X.astype(dtype)
    else:
        X, y = indicators(stored, dtype), stored["y"]
    areas = [f"Wilderness_Area_{i}" for i in range(4)]
    soils = [f"Soil_Type_{i}" for i in range(40)]
    return Bunch(
        data=standardize(X, columns),
        target=np.asarray(y, dtype=np.int64),
        feature_names=[*COVTYPE_QUANTITATIVE, *areas, *soils],
        DESCR=f"UCI Covertype, {scaling} scaling. Blackard & Dean (2000).",
    )


def load_cloud(
    *, part: int | None = None, scaling: str = "standard", dtype: DTypeLike = np.float64
) -> Bunch:
    """Load UCI's Cloud: 2,048 pieces of satellite images, 10 measurements each.

    Parameters
    ----------
    part : {None, 1, 2}, default=None
        One of the two halves of 1,024 rows, or both. They come from two image pairs with
        infra-red values in different units; papers with 1,024 rows mostly use the first.
    scaling : {"standard", "raw"}, default="standard"
        Whether each column gets zero mean and unit variance over the rows returned.
    dtype : dtype, default=float64
        Type of `data`.

    Returns
    -------
    Bunch
        `data`, `target` (the half, 1 or 2), `feature_names`, `DESCR`.

    Notes
    -----
    File ``cloud.npz``: `X` (2048, 10), `db` (2048,).
    """
    columns = choose("scaling", scaling, {"standard": range(10), "raw": ()})
    halves = choose("part", part, {None: (1, 2), 1: (1,), 2: (2,)})
    stored = required("Cloud", "cloud.npz", "UCI id 155 has the text it is made from")
    rows = np.isin(stored["db"], halves)
    return Bunch(
        data=standardize(stored["X"][rows].astype(dtype), columns),
        target=stored["db"][rows].astype(np.int64),
        feature_names=CLOUD_COLUMNS.copy(),
        DESCR=f"UCI Cloud, {rows.sum()} rows, {scaling} scaling. Donated by P. Collard (1989).",
    )


def load_solar_flare(
    *, part: int | None = None, scaling: str = "standard", dtype: DTypeLike = np.float64
) -> Bunch:
    """Load UCI's Solar Flare: sunspot groups and the flares that followed within a day.

    More than half of the rows are duplicates, which makes it a hard case for selectors.

    Parameters
    ----------
    part : {None, 1, 2}, default=None
        1 for the 323 groups of 1969, 2 for the 1,066 of 1978, None for both.
    scaling : {"standard", "raw"}, default="standard"
        Whether each column gets zero mean and unit variance; constant ones become 0.
    dtype : dtype, default=float64
        Type of `data`.

    Returns
    -------
    Bunch
        `data`: 17 indicators of the three letter codes and 7 ordinal values; `target` (n, 3):
        numbers of C-, M- and X-class flares; `target_names`, `feature_names`, `DESCR`.

    Notes
    -----
    File ``solar_flare.npz``: `codes1`, `values1`, `codes2`, `values2`, `columns`.
    """
    columns = choose("scaling", scaling, {"standard": range(24), "raw": ()})
    parts = choose("part", part, {None: (1, 2), 1: (1,), 2: (2,)})
    stored = required("Solar Flare", "solar_flare.npz", "UCI id 89 has the text it is made from")
    codes = np.vstack([stored[f"codes{i}"] for i in parts]).astype("U1")
    values = np.vstack([stored[f"values{i}"] for i in parts])
    letters = [codes[:, [j]] == np.array(list(code)) for j, code in enumerate(FLARE_CODES)]
    names = [str(name) for name in stored["columns"]]
    X = np.hstack([*letters, values[:, :7]]).astype(dtype)
    return Bunch(
        data=standardize(X, columns),
        target=values[:, 7:].astype(np.int64),
        target_names=names[10:],
        feature_names=[f"{names[j]}_{c}" for j in range(3) for c in FLARE_CODES[j]] + names[3:10],
        DESCR=f"UCI Solar Flare, {len(X)} rows, {scaling} scaling. Donated by G. Bradshaw (1989).",
    )


def load_mocap(trial: str = "35_01", *, dtype: DTypeLike = np.float64) -> Bunch:
    """Load walks of the CMU motion capture database: 31 joints x 3 coordinates a frame.

    Parameters
    ----------
    trial : {"35_01", "02_01", "02_02", "cmu35"}, default="35_01"
        One walk of about 350 frames, or all 23 walks of subject 35 (9,591 frames).
    dtype : dtype, default=float64
        Type of `data`.

    Returns
    -------
    Bunch
        `data` in meters (y up, x, y, z of the first joint, then of the next), `joint_names`,
        `parents` (the joint each hangs on, -1 for the root), `frame_rate` per second,
        `feature_names`, `DESCR`; for "cmu35" also `trials`, `lengths` and `target`, the walk
        that each frame belongs to.

    Notes
    -----
    Files ``mocap_walk.npz``: `X_<trial>`, and ``mocap_cmu35_walks.npz``: `X`, `trials`,
    `lengths`; both: `joint_names`, `parents`, `frame_rate`. The positions follow from the
    database's joint angles by forward kinematics.
    """
    walk = "mocap_walk.npz"
    files = {"35_01": walk, "02_01": walk, "02_02": walk, "cmu35": "mocap_cmu35_walks.npz"}
    file = choose("trial", trial, files)
    stored = required("CMU motion capture", file, "mocap.cs.cmu.edu has the joint angles")
    joints = [str(name) for name in stored["joint_names"]]
    bunch = Bunch(
        data=stored["X" if trial == "cmu35" else f"X_{trial}"].astype(dtype),
        joint_names=joints,
        parents=stored["parents"].astype(np.int64),
        frame_rate=float(stored["frame_rate"]),
        feature_names=[f"{joint}_{axis}" for joint in joints for axis in "xyz"],
        DESCR=f"CMU motion capture, {trial}. mocap.cs.cmu.edu, funded by NSF EIA-0196217.",
    )
    if trial == "cmu35":
        lengths = stored["lengths"].astype(np.int64)
        target = np.repeat(np.arange(len(lengths)), lengths)
        bunch.update(trials=[str(t) for t in stored["trials"]], lengths=lengths, target=target)
    return bunch


def load_test_image(name: str = "china", *, dtype: DTypeLike = np.float64) -> Bunch:
    """Load a gray test image with values in [0, 1].

    Parameters
    ----------
    name : str, default="china"
        "china" or "flower" (with scikit-learn); "camera", "brick", "grass", "gravel", "moon",
        "coins", "cell", "page", "text" or "clock" (with scikit-image); "lena512" (from a file).
    dtype : dtype, default=float64
        Type of `data`.

    Returns
    -------
    Bunch
        `data` (rows, columns), `images_shape`, `DESCR`.

    Notes
    -----
    File ``images_lena512.npz``: `image`, integers 0 to 255. It is here because published numbers
    rest on it; the woman shown has asked that it be retired, so use another where you can.
    """
    image = choose("name", name, IMAGES)(name).astype(np.float64) / 255
    # The weights of Rec. 601, as in most papers' conversions to gray.
    image = image @ np.array([0.299, 0.587, 0.114]) if image.ndim == 3 else image
    return Bunch(
        data=image.astype(dtype), images_shape=image.shape, DESCR=f"Test image {name}, gray."
    )


def choose(parameter: str, value: Any, options: dict) -> Any:
    """The option of that name, or an error that lists the names."""
    if value not in options:
        names = ", ".join(repr(name) for name in options)
        raise ValueError(f"{parameter} must be one of {names}; got {value!r}")
    return options[value]


def read_stored(file: str) -> dict[str, np.ndarray] | None:
    """The arrays of a file of the folder MERCER_DATA, None where there is no such file."""
    path = Path(os.environ.get("MERCER_DATA", "")) / file
    if "MERCER_DATA" not in os.environ or not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def required(title: str, file: str, hint: str) -> dict[str, np.ndarray]:
    """The arrays of a file that has no other source."""
    stored = read_stored(file)
    if stored is None:
        raise FileNotFoundError(f"{looked_for(title, file)}; {hint}")
    return stored


def fetched(title: str, file: str, fetch: Callable) -> tuple[np.ndarray, np.ndarray]:
    """Data and target from scikit-learn's fetcher, whose failures all mean 'not found' here."""
    try:
        return fetch()
    except (OSError, ValueError, ImportError) as error:
        raise FileNotFoundError(
            f"{looked_for(title, file)}; scikit-learn's download failed too: {error}"
        ) from error


def looked_for(title: str, file: str) -> str:
    folder = os.environ.get("MERCER_DATA")
    where = "MERCER_DATA is not set" if folder is None else f"it is not in MERCER_DATA={folder!r}"
    return (
        f"{title} was looked for as {file!r}, but {where}. Set the environment variable "
        f"MERCER_DATA to a folder that holds the file (the loader's docstring lists its arrays)"
    )


def fetch_usps() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import fetch_openml

    bunch = fetch_openml(data_id=41082, as_frame=False)
    # OpenML numbers the classes from 1, as LIBSVM does.
    return bunch.data, bunch.target.astype(np.int64) - 1


def fetch_mnist() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import fetch_openml

    bunch = fetch_openml("mnist_784", version=1, as_frame=False)
    return bunch.data, bunch.target.astype(np.int64)


def fetch_covtype() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import fetch_covtype

    return fetch_covtype(return_X_y=True)


def join(stored: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Training rows, then test rows."""
    X = np.concatenate([stored["X_train"], stored["X_test"]])
    return X, np.concatenate([stored["y_train"], stored["y_test"]])


def subset_rows(subset: str, n_train: int, n: int) -> slice:
    rows = {"train": slice(n_train), "test": slice(n_train, n), "all": slice(n)}
    return choose("subset", subset, rows)


def smooth(X: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The filter that turns the original USPS images into LIBSVM's, to 3e-6."""
    from scipy.ndimage import gaussian_filter

    images = X.reshape(-1, *shape)
    sigma = (0, 0.75, 0.75)
    return gaussian_filter(images, sigma, mode="constant", cval=-1, truncate=6).reshape(X.shape)


def digits(
    X: np.ndarray, y: np.ndarray, shape: tuple[int, int], dtype: DTypeLike, description: str
) -> Bunch:
    return Bunch(
        data=X.astype(dtype, copy=False),
        target=y.astype(np.int64),
        images_shape=shape,
        feature_names=[f"pixel_{i}_{j}" for i in range(shape[0]) for j in range(shape[1])],
        DESCR=description,
    )


def indicators(stored: dict[str, np.ndarray], dtype: DTypeLike) -> np.ndarray:
    """The 54 columns of Covertype from its 10 measurements and two class numbers."""
    n = len(stored["y"])
    X, rows = np.zeros((n, 54), dtype=dtype), np.arange(n)
    X[:, :10] = stored["X_quantitative"]
    X[rows, 9 + stored["wilderness"].astype(int)] = 1
    X[rows, 13 + stored["soil"].astype(int)] = 1
    return X


def standardize(X: np.ndarray, columns: Sequence[int]) -> np.ndarray:
    """Zero mean and unit variance for some columns of X, in place; constant ones become 0."""
    for j in columns:
        x = X[:, j].astype(np.float64)
        X[:, j] = (x - x.mean()) / (x.std() or 1)
    return X


def sklearn_image(name: str) -> np.ndarray:
    from sklearn.datasets import load_sample_image

    return load_sample_image(f"{name}.jpg")


def skimage_image(name: str) -> np.ndarray:
    from skimage import data

    return getattr(data, name)()


def lena(name: str) -> np.ndarray:
    hint = "or choose another image, such as 'china', which needs no file"
    return required(name, "images_lena512.npz", hint)["image"]


IMAGES: dict[str, Callable[[str], np.ndarray]] = {
    "china": sklearn_image,
    "flower": sklearn_image,
    **dict.fromkeys(
        ("camera", "brick", "grass", "gravel", "moon", "coins", "cell", "page", "text", "clock"),
        skimage_image,
    ),
    "lena512": lena,
}
