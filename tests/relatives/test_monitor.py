"""Control charts: honest false alarms on rows that follow each other, faults and sensors found."""

import numpy as np
import pytest
from contracts import generator
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import ProcessMonitor
from mercer.datasets import make_plant
from mercer.exceptions import InvalidParameterError
from mercer.relatives.monitor import smoothed

FAULTS = ("step", "drift", "stuck", "relation")


def run(plant, key, n=400, **options):
    """Rows of a drawn plant; another key gives other rows of the same one."""
    return make_plant(n, [plant, key], plant=plant, **options)


def seasonal(plant, key, n):
    """Rows whose operating point goes in circles, with a period of its own for each plant."""
    rng, fixed = generator(101, plant, key), generator(102, plant)
    t = np.arange(n) + rng.integers(1000)
    turn = 2 * np.pi * t[:, None] / fixed.uniform(15, 60) + fixed.uniform(0, 6, 6)
    return np.sin(turn) ** fixed.integers(1, 4, 6) + 0.2 * rng.standard_normal((n, 6))


DRAWN = {
    "independent": lambda plant, key, n: run(plant, key, n, memory=0.0).data,
    "memory .5": lambda plant, key, n: run(plant, key, n, memory=0.5).data,
    "memory .9": lambda plant, key, n: run(plant, key, n, memory=0.9).data,
    "seasonal": seasonal,
}


@pytest.mark.filterwarnings("ignore:.*rows that come in runs")
@pytest.mark.parametrize("kind", DRAWN)
def test_false_alarms_on_rows_that_follow_each_other(kind):
    """1 % asked for: .5 to 1.5 % over drawn plants, up to the error of the mean over them."""
    shares = []
    for plant in range(8):
        monitor = ProcessMonitor().fit(DRAWN[kind](plant, 0, 400))
        shares.append(np.mean(monitor.predict(DRAWN[kind](plant, 1, 2000)) < 0))
    error = np.std(shares) / np.sqrt(len(shares))
    assert 0.005 - 3 * error < np.mean(shares) < 0.015 + 3 * error
    assert np.mean(shares) < 0.03


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_expected_false_alarms_of_exchangeable_rows(share):
    """Over many small sets the mean is what was asked for, or less; never more."""
    normal, shares = generator(103).standard_normal, []
    for _ in range(30):
        monitor = ProcessMonitor(5, false_alarms=share).fit(normal((80, 3)))
        shares.append(np.mean(monitor.predict(normal((500, 3))) < 0))
    error = np.std(shares) / np.sqrt(len(shares))
    assert share / 2 - 4 * error < np.mean(shares) < share + 4 * error


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*rows that come in runs")
@pytest.mark.parametrize("settings", [{"smoothing": 0.2}, {"smoothing": (2, 3)}, {"lags": 2}])
def test_false_alarms_of_rules_and_lags(settings):
    shares = []
    for plant in range(20):
        monitor = ProcessMonitor(**settings).fit(run(plant, 0, 1000, memory=0.7).data)
        fresh = run(plant, 1, 3000, memory=0.7).data
        shares.append(monitor.chart(fresh, explain=False).alarms.mean())
    assert 0.005 < np.mean(shares) < 0.018


def linear_chart(X):
    """T-squared, SPE and residuals of PCA that keeps 95 % of the variance, as a function."""
    scaler = StandardScaler().fit(X)
    pca = PCA(0.95).fit(scaler.transform(X))

    def statistics(rows):
        Z = scaler.transform(rows)
        E = Z - pca.inverse_transform(pca.transform(Z))
        T = (pca.transform(Z) ** 2 / pca.explained_variance_).sum(axis=1)
        return np.column_stack([T, (E**2).sum(axis=1)]), E

    return statistics


def test_faults_and_their_sensors_are_found_before_linear_pca():
    """At the same false alarms: shorter delays, and more sensors named right than by residuals."""
    delays, named = ([], []), ([], [])
    for plant in range(6):
        X, fresh = run(plant, 0, 600, memory=0.6).data, run(plant, 1, 1500, memory=0.6).data
        monitor, linear = ProcessMonitor().fit(X), linear_chart(X)
        limit = np.quantile(-monitor.score_samples(fresh), 0.99)
        monitor.limits_ = monitor.limits_ * limit  # the same for both
        limits = np.quantile(linear(fresh)[0], 0.995, axis=0)
        limits = limits * np.quantile((linear(fresh)[0] / limits).max(axis=1), 0.99)
        for k, fault in enumerate(FAULTS):
            rows = run(plant, 2 + k, 250, memory=0.6, fault=fault, start=50)
            chart = monitor.chart(rows.data)
            values, residuals = linear(rows.data)
            wrong = abs(residuals).argmax(axis=1)
            names = np.array([int(name[1:] or -1) for name in chart.sensor])
            pairs = (chart.alarms, names), ((values > limits).any(axis=1), wrong)
            for i, (alarms, blamed) in enumerate(pairs):
                after = np.flatnonzero(alarms[50:])
                delays[i].append(after[0] if after.size else 200)
                if after.size:
                    named[i].append(blamed[50 + after[0]] == rows.sensor)
    assert np.mean(delays[0]) < np.mean(delays[1])
    assert np.mean(named[0]) > max(0.6, np.mean(named[1]))


@pytest.mark.parametrize("smoothing", [None, 0.3, (2, 3)])
@pytest.mark.parametrize("lags", [0, 2])
def test_rows_that_come_one_by_one_are_charted_as_together(lags, smoothing):
    fitted = ProcessMonitor(10, lags=lags, smoothing=smoothing, false_alarms=0.1)
    monitor = fitted.fit(run(1, 0).data)
    X = run(1, 1, 60, fault="step", size=30).data
    whole = monitor.chart(X)
    assert whole.alarms.any() and not whole.alarms.all()
    for i in (1, 7, 40):
        one = monitor.chart(X[i : i + 1], before=X[:i])
        np.testing.assert_allclose(one.statistics, whole.statistics[i : i + 1], rtol=1e-6)
        assert one.sensor[0] == whole.sensor[i]


def test_predictions_scores_and_chart_agree():
    monitor = ProcessMonitor(false_alarms=0.05).fit(run(2, 0).data)
    X = run(2, 1, fault="relation").data
    chart, scores = monitor.chart(X), monitor.score_samples(X)
    np.testing.assert_array_equal(monitor.predict(X) < 0, chart.alarms)
    np.testing.assert_allclose(scores, -chart.ratios.max(axis=1))
    np.testing.assert_allclose(monitor.decision_function(X), scores - monitor.offset_)
    for k, name in enumerate(("T2", "SPE")):
        said = np.array([name in text for text in chart.exceeded])
        np.testing.assert_array_equal(said, chart.statistics[:, k] > monitor.limits_[k])
    rows = np.concatenate([np.arange(400)[part] for part in chart.episodes()])
    np.testing.assert_array_equal(rows, np.flatnonzero(chart.alarms))
    assert ((chart.contributions >= 0) & (chart.contributions <= 1)).all()
    assert (chart.sensor[~chart.alarms] == "").all() and (chart.sensor[chart.alarms] != "").all()
    assert not monitor.chart(X, explain=False).sensor.any()
    assert "in alarm" in repr(chart) and chart.as_dict()["rows"] == 400


def test_smoothing_by_its_definition():
    rng = generator(104)
    V, start = rng.chisquare(3, (50, 2)), np.array([3.0, 3.0])
    state, averages = start, []
    for value in V:
        state = 0.3 * value + 0.7 * state
        averages.append(state)
    np.testing.assert_allclose(smoothed(V, 0.3, start), averages)
    for k, m in ((1, 1), (2, 3), (3, 3)):
        rule = smoothed(V, (k, m), start) > 4
        counts = [(V[max(0, i - m + 1) : i + 1] > 4).sum(axis=0) >= k for i in range(50)]
        np.testing.assert_array_equal(rule, counts)


def test_the_linear_kernel_is_the_classical_chart():
    X, new = run(3, 0).data, run(3, 1, 100).data
    monitor = ProcessMonitor(4, kernel="linear", whiten=False, false_alarms=0.05).fit(X)
    scaler = StandardScaler().fit(X)
    pca = PCA(4).fit(scaler.transform(X))
    Z = scaler.transform(new)
    T = (pca.transform(Z) ** 2 / pca.explained_variance_).sum(axis=1)
    E = Z - pca.inverse_transform(pca.transform(Z))
    expected = np.column_stack([T, (E**2).sum(axis=1)])
    np.testing.assert_allclose(monitor.chart(new).statistics, expected, rtol=1e-8)


def test_the_unit_of_a_sensor_does_not_matter():
    X, new = run(1, 0).data, run(1, 1, fault="step").data
    factors = 10 ** generator(105).uniform(-6, 6, X.shape[1])
    here = ProcessMonitor().fit(X).chart(new)
    there = ProcessMonitor().fit(X * factors - 3).chart(new * factors - 3)
    np.testing.assert_allclose(there.ratios, here.ratios, rtol=1e-4)
    np.testing.assert_array_equal(there.sensor, here.sensor)


def test_rows_far_from_all_others_are_in_alarm():
    monitor = ProcessMonitor().fit(run(0, 0).data)
    X = run(0, 1, 60).data
    far = X * 10 ** np.linspace(3, 290, 60)[:, None]
    assert monitor.chart(far, explain=False).alarms.all()
    assert np.isfinite(monitor.score_samples(far)).all()


def test_names_and_times_of_a_data_frame():
    pandas = pytest.importorskip("pandas")
    names = [f"sensor {j}" for j in range(10)]
    times = pandas.date_range("2024-01-01", periods=300, freq="h")
    rows = run(1, 1, 300, fault="step", size=30)
    new = pandas.DataFrame(rows.data, columns=names, index=times)
    monitor = ProcessMonitor().fit(pandas.DataFrame(run(1, 0).data, columns=names))
    chart = monitor.chart(new)
    assert chart.alarms[200:].any() and set(chart.sensor) <= {*names, ""}
    table = pandas.DataFrame(chart.as_columns(), index=new.index)
    assert table["alarm"].sum() == chart.alarms.sum()
    assert "2024-01-" in str(chart)
    with pytest.raises(ValueError, match="feature names should match"):
        monitor.predict(new.rename(columns={"sensor 1": "other"}))
    with pytest.raises(ValueError, match="9 features"), pytest.warns(UserWarning, match="names"):
        monitor.predict(new.iloc[:, :9].to_numpy())


@pytest.mark.parametrize("settings", [{}, {"lags": 1, "smoothing": (1, 2)}, {"basis": "landmarks"}])
def test_a_model_from_a_file_gives_the_same_chart(settings, tmp_path):
    monitor = ProcessMonitor(8, false_alarms=0.1, random_state=0, **settings).fit(run(4, 0).data)
    monitor.save(tmp_path / "plant.mercer")
    X = run(4, 1, 80, fault="step").data
    one, other = monitor.chart(X), mercer.load(tmp_path / "plant.mercer").chart(X)
    np.testing.assert_array_equal(one.statistics, other.statistics)
    np.testing.assert_array_equal(one.sensor, other.sensor)
    assert clone(monitor).get_params() == monitor.get_params()
    assert monitor.certificate_ is monitor.model_.certificate_


def test_errors_say_what_to_do():
    X = run(0, 0, 200).data
    with pytest.raises(ValueError, match=r"12 rows, and lags=5 needs at least 35.*fewer lags"):
        ProcessMonitor(lags=5).fit(X[:12])
    with pytest.raises(ValueError, match="NaN"):
        ProcessMonitor().fit(np.where(X > 1, np.nan, X))
    with pytest.raises(InvalidParameterError, match=r"smoothing.* two whole .*\(3, 2\)"):
        ProcessMonitor(smoothing=(3, 2)).fit(X)
    with pytest.raises(ValueError, match="'false_alarms'"):
        ProcessMonitor(false_alarms=1.5).fit(X)
    with pytest.raises(ValueError, match=r"cannot hold .* rows of .* lags"):
        ProcessMonitor(memory=10_000).fit(X)
    with pytest.raises(ValueError, match=r"All columns are constant"):
        ProcessMonitor().fit(np.ones((50, 3)))
    with pytest.warns(UserWarning, match=r"30 rows that come in runs.*too few.*Give more rows"):
        ProcessMonitor().fit(X[:30])


def test_a_constant_sensor_is_not_watched_and_that_is_said():
    X = run(0, 0, 300).data
    X[:, 3] = 7.1
    with pytest.warns(UserWarning, match="Constant sensors are not watched.*x3"):
        monitor = ProcessMonitor().fit(X)
    new = run(0, 1, 20).data
    here = monitor.chart(new).statistics
    new[:, 3] = 1e9
    np.testing.assert_allclose(monitor.chart(new).statistics, here)


def test_a_run_that_ends_high_is_drawn_and_named(tmp_path):
    """The picture has a line a statistic, the limits, and the sensor above the longest alarm."""
    monitor = ProcessMonitor().fit(run(1, 0, memory=0.7).data)
    chart = monitor.chart(run(1, 1, 300, memory=0.7, fault="drift").data)
    axes = mercer.plot.control_chart(chart)
    for k, ax in enumerate(axes):
        heights = [line.get_ydata() for line in ax.lines]
        np.testing.assert_array_equal(heights[0], chart.statistics[:, k])
        assert heights[2][0] == chart.limits[k]
    longest = max(chart.episodes(), key=lambda part: part.stop - part.start)
    assert chart.top(longest)[0][0] in {text.get_text() for text in axes[0].texts}
    axes[0].figure.savefig(tmp_path / "chart.png")
    with pytest.raises(ValueError, match="need as many axes"):
        mercer.plot.control_chart(chart, ax=axes[0])


def test_sparse_blocks_are_scored_as_dense_ones():
    sparse = pytest.importorskip("scipy.sparse")
    model, X = ProcessMonitor(2, random_state=0).fit(run(1, 2).data), run(1, 3).data
    blocks = [sparse.csr_array(part) for part in np.array_split(X, 3)]
    got = model.score_samples(iter(blocks))
    np.testing.assert_allclose(got, model.score_samples(X), rtol=1e-9, atol=1e-12)
