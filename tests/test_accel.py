"""An unchanged scikit-learn program runs here, and what was replaced is said."""

import importlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
from contracts import generator
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_transformer_general

import mercer
from mercer import accel

SCRIPT = """
import sys
import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.cluster import SpectralClustering
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X = np.random.default_rng(int(sys.argv[1])).standard_normal((90, 4))
made = make_pipeline(StandardScaler(), KernelPCA(3, kernel="rbf", random_state=0)).fit(X)
labels = SpectralClustering(2, random_state=0).fit_predict(X)
np.savez("out.npz", S=np.abs(made.transform(X)), values=made[-1].eigenvalues_)
"""


@pytest.fixture
def replaced(capsys):
    accel.install()
    yield
    accel.unload_ipython_extension(None)


def test_a_script_gives_what_it_gave(tmp_path):
    (tmp_path / "program.py").write_text(SCRIPT)
    found = []
    for words in ([], ["-m", "mercer.accel"], ["-m", "mercer.accel", "--compare"]):
        line = [sys.executable, *words, "program.py", "1"]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        found.append((dict(np.load(tmp_path / "out.npz")), done.stderr))
    for one, said in found[1:]:
        np.testing.assert_allclose(one["S"], found[0][0]["S"], atol=1e-7)
        np.testing.assert_allclose(one["values"], found[0][0]["values"], rtol=1e-9)
        assert "KernelPCA" in said and "SpectralClustering" in said and "captured variance" in said
    assert "not run" in found[1][1] and "add --compare" in found[1][1]
    assert "not run" not in found[2][1] and "add --compare" not in found[2][1]


def test_replacements_are_scikit_learns_own_kind(replaced):
    from sklearn import decomposition
    from sklearn.decomposition._kernel_pca import KernelPCA

    assert decomposition.KernelPCA is KernelPCA is accel.KernelPCA
    model = KernelPCA(2, kernel="rbf", gamma=0.3)
    X = generator(4).standard_normal((40, 3))
    assert type(clone(model).fit(X).fitted_here) is mercer.KernelPCA
    frame = clone(model).set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == ["kernelpca0", "kernelpca1"]
    again = pickle.loads(pickle.dumps(model.fit(X)))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    check_transformer_general("KernelPCA", KernelPCA(2))


def test_what_is_not_served_runs_in_scikit_learn(replaced, capsys):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.manifold import SpectralEmbedding
    from sklearn.metrics.pairwise import rbf_kernel

    X = generator(5).standard_normal((50, 3))
    model = SpectralEmbedding(2, affinity=rbf_kernel, random_state=0)
    assert model.fit_transform(X).shape == (50, 2)
    assert type(model.fitted_here).__module__.startswith("sklearn")
    K = rbf_kernel(X)
    assert Nystroem(kernel="precomputed", n_components=50).fit_transform(K).shape == (50, 50)
    with pytest.raises(ValueError, match="NaN"):
        SpectralEmbedding(2).fit(np.full((5, 2), np.nan))
    accel.report()
    said = capsys.readouterr().err
    assert said.count("refused here") == 2 and "function of all rows" in said


def test_a_notebook_loads_and_unloads(capsys):
    """What %load_ext and %unload_ext do, by IPython itself where there is one."""
    try:
        from IPython.core.interactiveshell import InteractiveShell

        manager = InteractiveShell.instance().extension_manager
        load, unload = manager.load_extension, manager.unload_extension
    except ImportError:

        def load(name):
            importlib.import_module(name).load_ipython_extension(object())

        def unload(name):
            sys.modules[name].unload_ipython_extension(object())

    from sklearn import decomposition

    before = decomposition.KernelPCA
    load("mercer.accel")
    try:
        assert decomposition.KernelPCA is accel.KernelPCA is not before
        decomposition.KernelPCA(2, kernel="rbf").fit(generator(6).standard_normal((30, 3)))
    finally:
        unload("mercer.accel")
    assert decomposition.KernelPCA is before
    assert "KernelPCA" in capsys.readouterr().err


def test_everything_is_given_back():
    from sklearn import cluster, decomposition, manifold

    before = decomposition.KernelPCA, cluster.SpectralClustering, manifold.SpectralEmbedding
    accel.install()
    accel.install()
    assert decomposition.KernelPCA is not before[0]
    accel.uninstall()
    assert before == (
        decomposition.KernelPCA,
        cluster.SpectralClustering,
        manifold.SpectralEmbedding,
    )
