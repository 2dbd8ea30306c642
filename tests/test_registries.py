"""A new part is one file and one line of its registry: all else follows from that line.

Each case writes the file of a new part beside the package, adds the line before anything else is
imported, and uses the part by its name wherever a user would.
"""

import subprocess
import sys
import textwrap

import pytest

PARTS = {
    "kernel": """
        from mercer.kernels import KERNELS
        from mercer.kernels.stationary import StationaryKernel

        class Cauchy(StationaryKernel):
            'A kernel of the distance.'
            def __init__(self, gamma=None):
                self.gamma = gamma
            def finish(self, T):
                T *= -1
                T += 1
                T **= -1
                return T

        KERNELS["cauchy"] = Cauchy
        model = dict(kernel="cauchy", gamma="median")
        option = ["--kernel", "cauchy"]
    """,
    "selector": """
        import numpy as np
        from mercer.selectors import SELECTORS, Selector
        from mercer.bases import Landmarks

        class FirstRows(Selector):
            'The first rows.'
            def select(self, kernel, X, size, rng):
                return np.arange(min(size, X.shape[0]))

        SELECTORS["FirstRows"] = FirstRows
        model = dict(kernel="rbf", basis=Landmarks(9, FirstRows()))
        option = ["--kernel", "rbf", "--landmarks", "9", "--selector", "FirstRows"]
    """,
    "solver": """
        import numpy as np
        from mercer.solvers import SOLVERS, Dense, Solver

        class Plain(Solver):
            'LAPACK after a number of products that may be limited.'
            _cap_name = "steps"
            def __init__(self, steps=7):
                self.steps = steps
            def solve(self, operator, n_components, rng, tol=0.0, report=lambda state: False):
                pairs = Dense().solve(operator, n_components, rng, tol, report)
                from dataclasses import replace
                return replace(pairs, n_passes=self.steps)

        SOLVERS["plain"] = Plain
        model = dict(kernel="rbf", eigen_solver="plain")
        option = ["--kernel", "rbf", "--method", "plain"]
    """,
}

USE = """
    import numpy as np
    import mercer
    from mercer import KernelPCA
    from mercer.cli import main

    X = np.random.default_rng(0).standard_normal((40, 3))
    fitted = KernelPCA(2, random_state=0, **model).fit(X)
    fitted.save("model.mercer")
    assert np.allclose(mercer.load("model.mercer").transform(X), fitted.transform(X))
    if "eigen_solver" in model:
        assert KernelPCA(2, max_iter=3, **model).fit(X).certificate_.n_passes == 3
    np.savetxt("rows.csv", X, delimiter=",", header="a,b,c", comments="")
    assert main(["fit", "rows.csv", "-o", "other.mercer", "--components", "2", *option]) == 0
    assert main(["transform", "other.mercer", "rows.csv", "-o", "scores.csv"]) == 0
    print("used")
"""


@pytest.mark.parametrize("kind", PARTS)
def test_one_line_is_enough(kind, tmp_path):
    code = textwrap.dedent(PARTS[kind]) + textwrap.dedent(USE)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("used")
