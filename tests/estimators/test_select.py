"""The choice of width and components: near the best of its grid, all candidates of one fit."""

import numpy as np
import pytest
from contracts import generator
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import KernelPCA, KernelPCASearch, select
from mercer.bases import Landmarks
from mercer.estimators.search import Trial
from mercer.kernels import RBF


def spiral(n, key, d=8):
    """One and a half turns in d dimensions."""
    rng = generator(60, key)
    t = np.sqrt(rng.uniform(0.05, 1, n)) * 3 * np.pi
    curve = np.column_stack([t * np.cos(t), t * np.sin(t)]) / 5
    Q = np.linalg.qr(generator(61).standard_normal((d, d)))[0][:2]
    return curve @ Q


CLEAN, FRESH = spiral(300, 1), spiral(300, 2)
MANY = spiral(900, 3)


# The checks' own rows have no structure that two components could hold.
@pytest.mark.filterwarnings("ignore:.*The best setting leaves")
@parametrize_with_checks([KernelPCASearch(n_components=[1, 2], widths=(0.5, 1, 2))])
def test_estimator(estimator, check):
    check(estimator)


# The narrowest kernel leaves one row in a hundred short of the tolerance.
@pytest.mark.filterwarnings("ignore:.*pre-images had not converged")
@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_choice_is_near_the_best(noise):
    """The true error at the choice is near the least that any candidate has, for any seed."""
    ranks = [2, 4, 8, 16, 32]
    search = KernelPCASearch(noise=noise, n_components=ranks, random_state=0).fit(MANY)
    noisy = FRESH + noise * generator(62).standard_normal(FRESH.shape)
    result = search.selection_
    truth = np.empty(result.errors.shape)
    trial = Trial(MANY, FRESH, noisy)
    for i, gamma in enumerate(result.gammas):
        truth[i] = trial.errors(KernelPCA(ranks[-1], kernel="rbf", gamma=gamma), ranks)
    i, j = result._best
    assert truth[i, j] <= 1.25 * truth.min()
    ours = np.mean((search.denoise(noisy) - FRESH) ** 2)
    assert ours < 0.5 * noise**2
    # What the fit believed about its error is about right.
    assert 0.5 < result.best_error / truth[i, j] < 2


def test_truncation_is_a_smaller_fit():
    """One fit at the most components serves them all."""
    model, few = (KernelPCA(r, kernel="rbf", gamma=1.0).fit(CLEAN) for r in (16, 4))
    cut = model.expansion_.leading(4)
    np.testing.assert_allclose(
        np.abs(cut.scores(FRESH)), np.abs(few.expansion_.scores(FRESH)), atol=1e-6
    )
    np.testing.assert_allclose(
        cut.squared_errors(FRESH), few.expansion_.squared_errors(FRESH), atol=1e-8
    )


def test_hidden_coordinates_choose_for_noisy_data():
    """With noisy training rows the hidden entries tell more than added noise does."""
    noisy = CLEAN + 0.3 * generator(63).standard_normal(CLEAN.shape)
    found = KernelPCASearch(noise="hidden", random_state=0).fit(noisy)
    assert found.selection_.criterion == "hidden coordinates"
    assert found.selection_.best_error < found.selection_.reference
    error = np.mean((found.denoise(noisy) - CLEAN) ** 2)
    assert error < 0.6 * 0.3**2


def test_select_is_the_search():
    result = select(CLEAN, 0.2, random_state=0)
    search = KernelPCASearch(noise=0.2, random_state=0).fit(CLEAN)
    np.testing.assert_array_equal(result.errors, search.selection_.errors)
    assert search.best_params_ == {
        "gamma": result.best_gamma,
        "n_components": result.best_n_components,
    }
    assert search.best_estimator_.n_components == result.best_n_components
    text = repr(result)
    assert text.count("\n") == len(result.gammas) + 1 and " *" in text and "r=2" in text
    assert "<table>" in result._repr_html_()


def test_other_kernels():
    linear = select(CLEAN, 0.2, kernel="linear", n_components=[1, 2, 4], random_state=0)
    assert linear.errors.shape == (1, 3) and np.isnan(linear.best_gamma)
    assert linear.best_n_components == 2  # the spiral lies in a plane
    matern = select(CLEAN, 0.2, kernel="matern", widths=[1, 2], n_components=[4], random_state=0)
    assert matern.errors.shape == (2, 1) and matern.gammas[0] == pytest.approx(4 * matern.gammas[1])
    laplacian = select(CLEAN, kernel="laplacian", widths=[1, 2], n_components=[4], random_state=0)
    assert laplacian.gammas[0] == pytest.approx(2 * laplacian.gammas[1])


def test_settings_of_the_model_are_kept():
    basis = Landmarks(12)
    model = KernelPCA(kernel="linear", basis=basis, preimage="ridge", random_state=0)
    search = KernelPCASearch(RBF(), noise=0.2, n_components=[2, 8], widths=[0.5, 1], model=model)
    best = search.fit(CLEAN).best_estimator_
    assert (
        isinstance(best.basis, Landmarks)
        and best.preimage == "ridge"
        and isinstance(best.kernel, RBF)
    )
    assert model.kernel == "linear" and model.n_components is None
    S = search.transform(FRESH)
    assert S.shape[1] == search.best_params_["n_components"]
    assert search.inverse_transform(S).shape == FRESH.shape


def test_bad_input():
    with pytest.raises(ValueError, match="an int in the range"):
        select(CLEAN, n_components=[0, 2])
    with pytest.raises(ValueError, match="whole numbers from 1 to 239"):
        select(CLEAN, n_components=[2, 240])
    with pytest.raises(ValueError, match="noise"):
        select(CLEAN, noise=-1.0)
    with pytest.raises(ValueError, match="minimum of 4"):
        select(CLEAN[:3])
    with pytest.raises(ValueError, match="kernel"):
        select(CLEAN, kernel="precomputed")


def test_worse_than_nothing_is_told():
    """Noise far below what two components lose of an isotropic cloud."""
    cloud = generator(64).standard_normal((120, 6))
    with pytest.warns(UserWarning, match="without denoising"):
        result = select(cloud, 0.01, n_components=[1, 2], widths=[1, 2], random_state=0)
    assert result.best_error > result.reference


@pytest.mark.filterwarnings("ignore:.*pre-images had not converged")
def test_the_neighborhood_of_the_best_is_searched():
    """What is left to the search is refined around the best; what was asked for is not."""
    asked = select(CLEAN, 0.1, widths=[0.25, 0.5, 1, 2, 4], n_components=[2, 4, 8], random_state=0)
    assert asked.errors.shape == (5, 3) and np.isfinite(asked.errors).all()
    refined = select(CLEAN, 0.1, n_components=[2, 4, 8], random_state=0)
    at = list(refined.gammas).index(refined.best_gamma)
    steps = refined.gammas[max(at - 1, 0) : at + 2]
    assert len(refined.gammas) > 5 and np.max(steps[:-1] / steps[1:]) < 2.01
    assert refined.best_error <= asked.best_error + 1e-12
    all_ours = select(CLEAN, 0.1, random_state=0)
    assert all_ours.best_error <= refined.best_error + 1e-12
    assert np.isnan(all_ours.errors).any() and "nan" not in repr(all_ours)


def test_more_components_than_the_first_grid_has():
    """A cloud of many dimensions, where a wide kernel needs every one of them."""
    cloud = generator(65).standard_normal((700, 150))
    result = select(cloud, 0.2, widths=[4], random_state=0)
    assert result.best_n_components > 128


def test_heat_map():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from mercer import plot

    result = select(CLEAN, 0.2, n_components=[2, 4], random_state=0)
    ax = plot.selection(result)
    assert len(ax.texts) == result.errors.size
    assert ax.get_xlabel() == "components"
    plt.close(ax.figure)


@pytest.mark.filterwarnings("ignore:.*pre-images had not settled")
def test_no_width_is_fitted_again_for_fewer_components():
    """One fit gives the errors at all numbers of components up to its own."""
    fits = []

    class Counted(KernelPCA):
        def fit(self, X, y=None, **options):
            fits.append((self.kernel.gamma, self.n_components))
            return super().fit(X, y, **options)

    KernelPCASearch(noise=0.1, model=Counted(), random_state=0).fit(CLEAN)
    tried = fits[:-1]  # the last one is of all rows
    assert len(tried) > 5
    for at, (gamma, r) in enumerate(tried):
        assert all(r > before for other, before in tried[:at] if other == gamma)
