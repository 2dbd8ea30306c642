"""Model files of earlier versions open, and give what they gave."""

import numpy as np
import pytest
from stored import FOLDER, WAYS, results

from mercer import load
from mercer.saving import FORMAT_VERSION
from mercer.saving.parts import MODELS

FILES = sorted(FOLDER.glob("*/*.mercer"))
# Other processors and libraries round otherwise; iterations amplify that.
LOOSE = {"inverse_transform": 1e-4, "denoise": 1e-4}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_stored_model_gives_what_it_gave(path):
    if path.stem == "fourier":
        pytest.importorskip("finufft")
    model = load(path)
    with np.load(path.with_suffix(".npz")) as expected:
        got = results(path.stem, model)
        assert set(expected) <= set(got)
        for method, wanted in expected.items():
            share = LOOSE.get(method, 1e-6)
            size = max(1.0, float(np.abs(wanted).max()))
            np.testing.assert_allclose(got[method], wanted, atol=share * size, err_msg=method)
    repr(model)


def test_every_way_to_fit_has_a_file():
    """Of the present format: a new estimator needs one, `python tests/stored.py` writes it."""
    stored = {path.stem for path in FILES if path.parent.name == str(FORMAT_VERSION)}
    assert stored == set(WAYS)
    kinds = {type(load(FOLDER / str(FORMAT_VERSION) / f"{name}.mercer")).__name__ for name in WAYS}
    assert kinds == set(MODELS)
