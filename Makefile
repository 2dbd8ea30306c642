# Everything runs from a virtual environment that these targets make themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready

.PHONY: demo test test-slow lint bench docs clean

demo: $(READY)
	$(BIN)/python -m mercer.demo demo-output

# Two processes with one BLAS thread each: more threads than cores would wait for each other.
test: lint
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup

# The longer studies that `make test` leaves out.
test-slow: $(READY)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python benchmarks/exact.py --quick

# Links, anchors, references and loads from elsewhere are warnings, and warnings are errors.
docs: $(DOCS_READY)
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -d docs/.trees docs site
	@echo site/index.html

clean:
	rm -rf $(VENV) demo-output site docs/.trees docs/api/generated docs/gallery

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $(READY)

$(DOCS_READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $(DOCS_READY)
