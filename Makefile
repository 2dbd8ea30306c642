# Everything runs from a virtual environment that these targets make themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready
OLDEST := .venv-oldest
# `make test LOCKED=1` installs exactly the versions of constraints.txt.
LOCK := $(if $(LOCKED),--constraint constraints.txt)

.PHONY: demo test test-slow test-oldest cover package lint lock audit bench peers reproduce docs clean

demo: $(READY)
	$(BIN)/python -m mercer.demo demo-output

# Two processes with one BLAS thread each: more threads than cores would wait for each other.
test: $(READY)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup

# The longer studies that `make test` leaves out.
test-slow: $(READY)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup -m slow

# Exactly the lower bounds of pyproject.toml, in an environment of their own.
# Old releases warn of what is new below them, and the checks of scikit-learn 1.6 want SCIPY_ARRAY_API.
test-oldest: $(OLDEST)/.ready
	SCIPY_ARRAY_API=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest -n 2 --dist loadgroup \
		-W ignore::DeprecationWarning

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Wheel and sdist, and the wheel tried in an empty environment without extras.
package:
	rm -rf dist .venv-package .venv-empty
	$(PYTHON) -m venv .venv-package
	.venv-package/bin/python -m pip install --quiet build twine
	.venv-package/bin/python -m build
	.venv-package/bin/python -m twine check --strict dist/*
	$(PYTHON) -m venv .venv-empty
	.venv-empty/bin/python -m pip install --quiet dist/*.whl
	tried=$$(mktemp -d) && cd $$tried && $(CURDIR)/.venv-empty/bin/python $(CURDIR)/.ci/smoke.py $(CURDIR)/README.md && rm -rf $$tried

# The versions that development takes today, and what is known against them.
lock:
	$(PYTHON) .ci/lock.py

audit:
	test -x .venv-audit/bin/pip-audit || { $(PYTHON) -m venv .venv-audit && .venv-audit/bin/python -m pip install --quiet pip-audit; }
	.venv-audit/bin/python .ci/audit.py

# Branch coverage of the whole suite.
cover: $(READY)
	$(BIN)/python -m pip install --quiet pytest-cov
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 NUMBA_DISABLE_JIT=0 $(BIN)/python -m pytest -n 2 --dist loadgroup \
		--cov --cov-report=term:skip-covered

bench: $(READY)
	$(BIN)/python benchmarks/exact.py --quick

# Every peer that installs, measured on the same data: docs/results.md and the README's table.
PEERS := .venv-peers
peers: $(READY)
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	-$(PEERS)/bin/python -m pip install --quiet numpy scipy matplotlib psutil
	-for peer in pykeops mlpack torchdr; do $(PEERS)/bin/python -m pip install --quiet $$peer; done
	$(BIN)/python benchmarks/peers.py --python $(PEERS)/bin/python

# Every table and figure of the sources beside ours: docs/reproductions.md.
# QUICK=1 takes a few minutes, writes to results/reproduce-quick and leaves the published page alone.
reproduce: $(READY)
	$(BIN)/python reproduce/all.py $(if $(QUICK),--quick,--publish)

# Links, anchors, references and loads from elsewhere are warnings, and warnings are errors.
# One BLAS thread: the examples are small, and threads that wait for each other take processor time.
docs: $(DOCS_READY)
	@echo "docs: runs the scripts of examples/ (those that changed), then writes the pages: one to three minutes"
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/sphinx-build --fail-on-warning --keep-going -d docs/.trees docs site
	@echo "docs: open site/index.html"

clean:
	rm -rf $(VENV) $(OLDEST) .venv-package .venv-empty dist demo-output site docs/.trees docs/api/generated docs/gallery

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet $(LOCK) --editable ".[test]"
	touch $(READY)

$(OLDEST)/.ready: pyproject.toml
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python .ci/oldest.py > $(OLDEST)/bounds.txt
	$(OLDEST)/bin/python -m pip install --quiet --constraint $(OLDEST)/bounds.txt --editable ".[test]"
	touch $(OLDEST)/.ready

$(DOCS_READY): pyproject.toml
	@echo "docs: installs Sphinx and the libraries of the examples into $(VENV)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $(DOCS_READY)
