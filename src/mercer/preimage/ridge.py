"""The inverse transform as a kernel ridge regression of rows on their scores.

Bakir, Weston & Schoelkopf 2004, "Learning to find pre-images"; the form scikit-learn uses.
"""

from scipy import linalg


def ridge_inverse(kernel, S, X, alpha):
    """Coefficients B of the regression ``x = k(s, S) B``: (K_S + alpha I) B = X, (n, d).

    The kernel of the data is reused on the scores, and nothing is centred: both are
    scikit-learn's choices. n^2 memory, n^3 time.
    """
    K = kernel(S)
    K.flat[:: S.shape[0] + 1] += alpha
    return linalg.solve(K, X, assume_a="pos", overwrite_a=True)
