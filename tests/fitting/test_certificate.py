"""The certificate: its intervals hold, and it reads well."""

from unittest import mock

import numpy as np
import oracle
import pytest
from contracts import generator
from sklearn.exceptions import ConvergenceWarning

from mercer import KernelPCA
from mercer._tables import html_table, text_table
from mercer.bases import Landmarks, RandomFeatures
from mercer.fitting.certificate import NO_ROUNDING, Certificate, certify
from mercer.solvers import BlockKrylov, Eigenpairs


def blobs(n=300, d=5):
    rng = generator(n, d)
    return 2 * rng.standard_normal((3, d))[rng.integers(0, 3, n)] + rng.standard_normal((n, d))


def holds(certificate, K, r, center=True, slack=1e-12):
    exact, _ = oracle.eigenpairs(K, centered=center)
    rounding = slack * exact[0]
    for low, high in zip(certificate.eigenvalue_lower, certificate.eigenvalue_upper, strict=True):
        assert np.any((exact >= low - rounding) & (exact <= high + rounding))
    low, high = certificate.captured_variance
    share = exact[:r].sum() / exact.sum()
    assert 0 <= low <= high + 1e-12 <= 1 + 1e-9
    assert low <= share + slack
    return share


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("solver", ["dense", "krylov", "arpack", "randomized"])
def test_intervals_hold_the_exact_eigenvalues(solver, center):
    X = blobs()
    K = oracle.kernel_matrix("rbf", X, gamma=0.1)
    model = KernelPCA(
        5, kernel="rbf", gamma=0.1, eigen_solver=solver, center=center, random_state=0
    ).fit(X)
    certificate = model.certificate_
    assert certificate.kind == "bound" and not certificate.indefinite
    share = holds(certificate, K, 5, center)
    if solver != "randomized":
        assert certificate.captured_variance[1] >= share - 1e-12
        np.testing.assert_allclose(certificate.captured_variance, share, atol=1e-7)
        assert certificate.relative_residual < 1e-8


@pytest.mark.parametrize("passes", [2, 3, 4])
def test_intervals_hold_when_stopped_early(passes):
    """Rough results have wide intervals, and these still hold."""
    X = blobs(400, 20)
    K = oracle.kernel_matrix("rbf", X, gamma=0.05)
    model = KernelPCA(
        5, kernel="rbf", gamma=0.05, eigen_solver=BlockKrylov(max_passes=passes), random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="Raise max_iter or tol"):
        model.fit(X)
    certificate = model.certificate_
    assert not certificate.converged and certificate.relative_residual > 1e-8
    holds(certificate, K, 5)
    U = model.eigenvectors_
    true = np.linalg.norm(oracle.center(K) @ U - U * model.eigenvalues_, axis=0)
    np.testing.assert_allclose(certificate.residuals, true, rtol=1e-6, atol=1e-9)
    # What these directions hold is known exactly: it lies in the interval.
    held = np.trace(U.T @ oracle.center(K) @ U) / oracle.total_variance(K)
    low, high = certificate.captured_variance
    assert low - 1e-12 <= held <= high + 1e-12


@pytest.mark.parametrize(
    "solver",
    [
        "dense",
        "krylov",
    ],
)
def test_intervals_hold_in_float32(solver):
    """Small eigenvalues that are clipped to zero must not leave their intervals."""
    X = blobs(300, 2).astype(np.float32)
    K = oracle.kernel_matrix("rbf", X, gamma=0.01)
    model = KernelPCA(20, kernel="rbf", gamma=0.01, eigen_solver=solver).fit(X)
    holds(model.certificate_, K, 20, slack=1e-9)


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_indefinite_is_noted_though_few_components_are_wanted(solver):
    X = blobs(200, 3)
    K = oracle.kernel_matrix("sigmoid", X, gamma=0.5, coef0=-1.0)
    model = KernelPCA(2, kernel="sigmoid", gamma=0.5, coef0=-1.0, eigen_solver=solver).fit(X)
    exact, _ = oracle.eigenpairs(K)
    assert exact[-1] < -1e-3 * exact[0]
    np.testing.assert_allclose(model.eigenvalues_, exact[:2], rtol=1e-8)
    assert model.certificate_.indefinite
    assert "indefinite" in repr(model.certificate_)
    assert "indefinite" in model.certificate_._repr_html_()


def test_indefinite_is_noted_when_met():
    K = np.diag(np.r_[3.0, 2.0, -2.5, np.zeros(9)])
    pairs = Eigenpairs(np.array([3.0, 2.0]), np.eye(12)[:, :2], np.zeros(2), least=-2.5)
    certificate = certify(pairs, 12, np.trace(K), (NO_ROUNDING,))
    assert certificate.indefinite and "indefinite" in repr(certificate)
    assert "negative eigenvalues" in certificate._repr_html_()


def make(**changes):
    fields = {
        "kind": "bound",
        "eigenvalue_lower": np.array([2.9, 0.9]),
        "eigenvalue_upper": np.array([3.1, 1.1]),
        "residuals": np.array([0.1, 0.1]),
        "captured_variance": (0.701, 0.702),
        "converged": True,
        "n_passes": 6,
    }
    return Certificate(**fields | changes)


def test_repr_reads_well():
    lines = repr(make()).splitlines()
    assert lines[0] == "Certificate"
    text = "\n".join(lines)
    for words in (
        "certified bounds",
        "70.1 to 70.2 %",
        "3.2e-02 of the first eigenvalue",
        "converged",
        "yes",
        "6",
    ):
        assert words in text
    assert len({line[:25].rfind("  ") for line in lines[1:]}) >= 1
    assert max(map(len, lines)) < 90
    assert "estimates, not bounds" in repr(make(kind="estimate"))
    assert "no" in repr(make(converged=False)).split("converged")[1]
    none = repr(make(residuals=None))
    assert "residual" not in none and make(residuals=None).relative_residual is None
    tight = repr(make(captured_variance=(0.5, 0.5)))
    assert "50.0000 %" in tight and " to " not in tight


def test_wide_intervals_are_told_of():
    """Random features judged on a sample say little of small eigenvalues, and say so."""
    X = blobs(600)
    model = KernelPCA(5, kernel="rbf", basis=RandomFeatures(50), random_state=0)
    with mock.patch("mercer.fitting.remainder.LEAST_WORK", 0):
        certificate = model.fit(X).certificate_
    wide = int(np.sum(certificate.likely_upper > 2 * certificate.likely_lower))
    assert wide > 0 and f"{wide} of 5; the errors are usually far smaller" in repr(certificate)
    assert "they limit" not in repr(model.set_params(basis=Landmarks(200)).fit(X).certificate_)


def test_html_is_a_table_and_escapes():
    html = make()._repr_html_()
    assert html.startswith("<table>") and html.endswith("</table>") and "Certificate" in html
    assert html.count("<tr>") == html.count("</tr>") and html.count("<td") == html.count("</td>")
    evil = html_table(["<b>"], [["a & b", "<script>"]][:1] and [["<script>&"]], caption="x < y")
    assert "<script>" not in evil and "&lt;script&gt;&amp;" in evil
    assert "&lt;b&gt;" in evil and "x &lt; y" in evil


def test_text_table_aligns():
    table = text_table(["a", "long head"], [["longer cell", "1"], ["x", ""]]).splitlines()
    assert table[0].index("long head") == table[1].index("1")
    assert all(line == line.rstrip() for line in table)


def test_certificate_of_nothing():
    empty = Eigenpairs(np.empty(0), np.empty((5, 0)), np.empty(0))
    certificate = certify(empty, 5, 0.0, (NO_ROUNDING,))
    assert repr(certificate) and certificate.relative_residual is None
    assert certificate.captured_variance == (0.0, 0.0)
    pairs = Eigenpairs(np.zeros(2), np.eye(5)[:, :2], np.zeros(2), least=-1e-17)
    zero = certify(pairs, 5, 0.0, (NO_ROUNDING,))
    assert zero.relative_residual == 0.0


def test_results_are_frozen():
    with pytest.raises(AttributeError):
        make().kind = "guess"


@pytest.mark.parametrize("basis", ["points", "landmarks", "features"])
def test_shares_are_plain_numbers(basis):
    """NumPy's would be printed with their type."""
    X = generator(3).standard_normal((120, 3))
    model = KernelPCA(3, kernel="rbf", gamma=0.2, basis=basis, random_state=0).fit(X)
    assert [type(end) for end in model.certificate_.captured_variance] == [float, float]
