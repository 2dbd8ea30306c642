"""Odd containers, hard numbers and wrong data: right, or refused in words that help.

`hostile.draw(seed)` makes a case again; a failure names its seed.
"""

import warnings
from collections import Counter

import numpy as np
import pytest
from contracts import SEED, generator
from hostile import FORMS, HARD, SPARSE, WAYS, WRONG, complaint, draw, unclear

from mercer import (
    ClassicalMDS,
    HebbianKernelPCA,
    KernelCCA,
    KernelPCA,
    PatchDenoiser,
    SpectralClustering,
    StreamingKernelPCA,
    SupervisedKernelPCA,
)
from mercer.bases import Landmarks
from mercer.exceptions import InvalidRowsError
from mercer.files import open_source

QUICK, SLOW, SHARE = 200, 2_000, 50
X = generator(3).standard_normal((30, 4))


def complaints(first, count):
    return [said for seed in range(first, first + count) if (said := complaint(draw(seed)))]


@pytest.mark.parametrize("first", range(0, QUICK, SHARE))
def test_drawn_cases(first):
    found = complaints(1_000_000 * (1 + SEED) + first, SHARE)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SLOW, 200))
def test_two_thousand_drawn_cases(first):
    found = complaints(100_000_000 * (1 + SEED) + first, 200)
    assert not found, "\n".join(found)


def test_cases_are_of_all_kinds():
    cases = [draw(seed) for seed in range(3000)]
    kinds = Counter(case.kind for case in cases)
    assert min(kinds[kind] for kind in ("form", "hard", "wrong", "kernel")) >= 300
    assert {case.way for case in cases if case.kind == "wrong"} == set(WAYS)
    for kind, all_of_it in (
        ("form", {*FORMS, *SPARSE}),
        ("hard", set(HARD)),
        ("wrong", set(WRONG)),
    ):
        assert {case.what for case in cases if case.kind == kind} == all_of_it
    assert str(draw(5)) == str(draw(5))


def test_the_judge_sees_faults():
    """A foreign error, one without advice, and one of another kind are all told apart."""
    assert unclear(ValueError("array must not contain infs or NaNs"))
    assert unclear(ValueError("Bad input."))
    assert unclear(ZeroDivisionError("Scale the data."))
    assert unclear(np.linalg.LinAlgError("Scale the data."))
    assert not unclear(ValueError("X holds NaN. Fill it."))


# What each message names.


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (np.ma.array(X, mask=X > 1), r"masked array with \d+ masked.*X\.filled"),
        (X.astype("M8[s]"), r"holds dates \(datetime64\[s\]\).*timedelta64"),
        (X.astype("m8[s]"), r"holds times.*X / np\.timedelta64"),
        (X + 1j, r"complex.*np\.hstack\(\[X\.real, X\.imag\]\)"),
        ([[1.0, 2.0], [3.0]], r"between 1 and 2 values"),
        (None, r"NoneType.*Pass an array"),
        ([[1.0, None], [2.0, 3.0]], r"NaN in row 0, column 1.*None is a missing value"),
        (np.array([["a", 1], [2, 3]], object), r"Row 0, column 0.*'a' of type str"),
        (np.where(X[7, 2] == X, np.nan, X), r"NaN in row 7, column 2.*1 of 30 rows"),
        (X[None], r"dim 3.*reshape"),
    ],
)
def test_messages_name_the_place_and_the_remedy(data, words):
    for model in (KernelPCA(2), StreamingKernelPCA(2), ClassicalMDS(), SpectralClustering(2)):
        with pytest.raises(InvalidRowsError, match=words):
            model.fit(data)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.ma.array(X, mask=X > 1), r"y is a masked array with \d+ masked.*y\.filled"),
        (X + 1j, r"omplex.*Pass real and imaginary parts"),
        ([[1.0, 2.0], [3.0]] * 15, r"rows of y have between 1 and 2 values"),
        (np.where(X[7, 2] == X, np.nan, X), r"y contains NaN in row 7, column 2"),
        (X[None], r"reshape|Pass an array of shape"),
        (X * 1e300, r"Scale (y|the data)"),
        (X[:-1], r"30 rows.* y has 29.*(Give|Pass)"),
        (None, r"Pass"),
    ],
)
def test_messages_about_a_target_or_another_view(y, words):
    for model in (SupervisedKernelPCA(2), KernelCCA(2), KernelCCA(2, basis=Landmarks(3))):
        with pytest.raises(ValueError, match=words):
            model.fit(X, y)


def test_a_view_that_varies_by_rounding_alone():
    """Kernel values are 1 to the last digit: no correlation, and a word about it."""
    with pytest.warns(UserWarning, match="no variance in feature space"):
        model = KernelCCA(1, kernel="rbf").fit(X, X * 1e-9)
    assert not model.correlations_.any()


def test_data_frames_of_dates():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"when": pd.date_range("2020", periods=9), "size": np.arange(9.0)})
    for some in (frame, frame[["when"]]):
        with pytest.raises(InvalidRowsError, match="dates"):
            KernelPCA(2).fit(some)


def test_blocks_with_masks_are_refused():
    with pytest.raises(InvalidRowsError, match=r"block at row 0 is a masked array"):
        next(open_source(iter([np.ma.array(X, mask=X > 1)])).blocks(10))
    blocks = (X[i : i + 10].astype("m8[s]") for i in (0, 10))
    with pytest.raises(InvalidRowsError, match="times"):
        KernelPCA(2, basis="landmarks").fit(blocks)


def test_an_image_smaller_than_a_patch():
    with pytest.raises(ValueError, match=r"4 x 9 pixels is smaller.*patch_size=9.*smaller patch"):
        PatchDenoiser().fit(np.ones((4, 9)))
    with pytest.raises(ValueError, match=r"empty list\. Pass one image"):
        PatchDenoiser().fit([])
    with pytest.raises(InvalidRowsError, match="masked"):
        PatchDenoiser().fit(np.ma.array(np.ones((9, 9)), mask=np.eye(9, dtype=bool)))


def test_a_kernel_that_writes_into_its_rows_is_stopped():
    def moving(x, z):
        x += 1
        return float(x @ z)

    before = X.copy()
    with pytest.raises(ValueError, match="read-only"):
        KernelPCA(2, kernel=moving, copy_X=False).fit(X)
    np.testing.assert_array_equal(X, before)


def test_no_affinity_at_all_is_said():
    with pytest.raises(ValueError, match=r"too narrow for these data.*smaller gamma"):
        SpectralClustering(2, gamma=1.0).fit(X * 1e6)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_widths_that_float64_does_not_hold(scale):
    with warnings.catch_warnings(), pytest.raises(ValueError, match=r"median distance.*Scale"):
        warnings.simplefilter("error")
        KernelPCA(2, kernel="rbf", gamma="median").fit(X * scale)


@pytest.mark.parametrize("model", [StreamingKernelPCA(2), HebbianKernelPCA(2)], ids=repr)
def test_ragged_rows_of_a_later_batch(model):
    lists = [list(range(length)) for length in generator(8).integers(1, 9, 12)] + [[1.0]]
    model.fit(X)
    for rows in (lists, tuple(map(tuple, lists)), [np.arange(length) for length in (2, 3)]):
        with pytest.raises(InvalidRowsError, match=r"rows of X have between \d+ and \d+ values"):
            model.partial_fit(rows)
