"""Loaders of published data sets."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils import Bunch

from ._sources import (
    IMAGES,
    choose,
    digits,
    fetch_covtype,
    fetch_mnist,
    fetch_usps,
    fetched,
    indicators,
    join,
    read_stored,
    required,
    smooth,
    standardize,
    subset_rows,
)

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
