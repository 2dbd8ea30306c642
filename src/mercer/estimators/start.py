"""Scores as the start of t-SNE and UMAP."""

import numpy as np
from sklearn.utils import check_array, check_random_state

from ..compute import to_numpy
from ..compute.arrays import Array, is_foreign


def embedding_init(
    scores: Array,
    n_components: int = 2,
    *,
    scale: float = 1e-4,
    jitter: float = 0.01,
    random_state: int | np.random.RandomState | None = None,
) -> np.ndarray:
    """The first columns of scores as ``init=`` of t-SNE or UMAP.

    Centered and scaled, all columns alike, so that the first one has the standard deviation
    `scale`; then noise, so that equal rows do not stay together for ever.

    Parameters
    ----------
    scores : array of shape (n, r)
        Of any estimator here, at least `n_components` columns.
    n_components : int, default=2
        Columns to take.
    scale : float, default=1e-4
        Standard deviation of the first column: 1e-4 is what t-SNE wants; UMAP's coordinates
        go from -10 to 10, so that ``scale=5`` suits it.
    jitter : float, default=0.01
        Standard deviation of the noise as a share of `scale`.
    random_state : int, RandomState or None, default=None
        The noise.

    Returns
    -------
    array of float32, shape (n, n_components)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import embedding_init
    >>> start = embedding_init(np.arange(12.0).reshape(4, 3), random_state=0)
    >>> start.shape, bool(abs(start[:, 0].std() - 1e-4) < 1e-5)
    ((4, 2), True)
    """
    S = check_array(to_numpy(scores) if is_foreign(scores) else scores, dtype=np.float64)
    if S.shape[1] < n_components or n_components < 1:
        raise ValueError(
            f"n_components={n_components} columns were asked for, and the scores have "
            f"{S.shape[1]}. Fit with more components, or ask for fewer columns."
        )
    if not scale > 0 or jitter < 0:
        raise ValueError(f"scale={scale} must be above zero and jitter={jitter} not below it.")
    S = S[:, :n_components] - S[:, :n_components].mean(axis=0)
    spread = S[:, 0].std()
    S = S / spread if spread > 0 else S
    noise = check_random_state(random_state).standard_normal(S.shape)
    return (scale * (S + jitter * noise)).astype(np.float32)
