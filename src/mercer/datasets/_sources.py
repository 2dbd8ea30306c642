"""Where the published data sets come from: a folder, or scikit-learn's fetchers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils import Bunch

from .._packages import needed


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
    return getattr(needed("skimage.data", use=f"The image {name!r}"), name)()


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
