# `make demo` and `make test` do all of their own set-up in the virtual environment .venv.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= -1
BIN := $(VENV)/bin
SOURCES := pyproject.toml Cargo.toml Cargo.lock $(shell find rust -name '*.rs')

.PHONY: demo test lint bench wheel cpu-torch clean

## check four models against the three MIL unit tests
demo: $(VENV)/.demo
	$(BIN)/milfast check NSK mi-SVM mi-Net MI-Net --checks paper --recipe paper --scale fast --runs 5 --jobs $(JOBS) --seed 0 --exit-zero

## all tests, Rust and Python
test: $(VENV)/.test
	cargo test --no-default-features
	$(BIN)/python -m pytest

## formatting, lints and types
lint: $(VENV)/.lint
	cargo fmt --check
	cargo clippy --no-default-features --all-targets -- -D warnings
	PYO3_PYTHON=$(abspath $(BIN))/python cargo clippy --all-targets -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest milfast._core

## speed beside the best peers
bench: $(VENV)/.bench
	$(BIN)/python -m pytest benches

## what is published: a wheel, packed as tightly as its format allows
wheel: $(VENV)/.bench
	$(BIN)/pip wheel -q --no-deps --wheel-dir dist .
	$(BIN)/python -m benches.wheel dist/milfast-*.whl

## torch without GPU libraries; run it before the others to save a download of some gigabytes
cpu-torch: $(BIN)/pip
	$(BIN)/pip install -q uv
	$(BIN)/uv pip install --python $(BIN)/python --torch-backend cpu torch \
	  || { echo "PyTorch's download site cannot be reached: leave this step out, make demo then takes the large build" >&2; exit 1; }

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "milfast needs Python 3.11 or later: make PYTHON=python3.11 ..." >&2; exit 1; }
	@command -v cargo >/dev/null || { echo "milfast is built with Rust: install a toolchain with rustup first" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip

# the compiled module is built in place, so Python sources need no new install
$(VENV)/.demo: $(BIN)/pip $(SOURCES)
	@echo "installing: builds the extension and, the first time, downloads torch; some minutes"
	$(BIN)/pip install -q -e '.[torch]'
	@touch $@

$(VENV)/.test: $(VENV)/.demo
	$(BIN)/pip install -q -e '.[torch,test]'
	@touch $@

$(VENV)/.lint: $(VENV)/.demo
	$(BIN)/pip install -q -e '.[torch,test,lint]'
	@touch $@

$(VENV)/.bench: $(VENV)/.demo
	$(BIN)/pip install -q -e '.[torch,bench]'
	@touch $@

clean:
	rm -rf $(VENV) target dist
