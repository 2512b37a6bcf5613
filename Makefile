# Each target does its own set-up. `make` alone lists them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DEMO   := .venv-demo
LLM    := build/llm-venv
PHOTOS ?=
# Suites with a target of their own; `make test` runs the rest.
SKIP   := not browser and not llm and not qdrant_server and not qdrant_cluster and not faults

.PHONY: help setup format check test test-qdrant test-qdrant-cluster test-browser test-faults test-llm docs demo bench wheel constraints clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 22

setup: $(VENV)/.installed ## create .venv with everything the tests need

# Packages are checked by their hashes, but for torch, of which machines have builds of their own.
$(VENV)/.installed: pyproject.toml constraints.txt requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all]' --group dev --group docs
	@touch $@

format: setup ## rewrite the code in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: setup ## style, lint, spelling and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/mypy

test: setup ## the tests and their coverage, without the suites below
	$(BIN)/python -m pytest -n 2 -m '$(SKIP)' --cov --cov-report=term:skip-covered

test-qdrant: setup ## a real Qdrant server, over REST and gRPC (QDRANT_URL=… for your own)
	$(BIN)/python -m pytest -m qdrant_server

test-qdrant-cluster: setup ## three Qdrant nodes, one of them killed under queries
	$(BIN)/python -m pytest -m qdrant_cluster

test-browser: setup ## the page in a headless Chromium (installs Debian's as root; else skips)
	command -v chromium >/dev/null || { apt-get update -qq && apt-get install -yqq chromium chromium-driver; } || true
	$(BIN)/python -m pytest -m browser

test-faults: setup ## kills, corruption, bombs and URL tricks; about three minutes, seeds are printed
	$(BIN)/python -m pytest -m faults -s

test-llm: setup ## the parser chain against a real language model (fetches 1.1 GB once)
	test -x $(LLM)/bin/python || $(PYTHON) -m venv $(LLM)
	$(LLM)/bin/python -m pip install --quiet -r benchmarks/requirements-local-model.txt
	$(LLM)/bin/python benchmarks/local_model.py fetch
	LCSE_LLM_PYTHON=$(LLM)/bin/python $(BIN)/python -m pytest -m llm -s tests/llm/test_local_model.py

docs: setup ## build the site into build/site; warnings are errors
	$(BIN)/zensical build --strict --clean

demo: $(DEMO)/.installed ## rank real photographs by logic and write demo.html (PHOTOS=dir for your own)
	$(DEMO)/bin/lcse demo $(if $(PHOTOS),--photos '$(subst ','\'',$(PHOTOS))') --html demo.html

$(DEMO)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[web]'
	@touch $@

bench: setup ## time exact logical search against plain similarity
	$(BIN)/python -m benchmarks.timing

wheel: setup ## build the wheel and try it alone in a clean environment
	rm -rf dist
	$(BIN)/python -m build --wheel
	$(PYTHON) -m venv --clear build/wheel-venv
	build/wheel-venv/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	cd build && wheel-venv/bin/lcse demo --html wheel-demo.html

constraints: setup ## resolve the pinned versions anew, for every Python from 3.10 on
	mkdir -p build
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --all-extras --group dev --group docs --no-header \
	  --no-annotate --generate-hashes --constraint constraints.in pyproject.toml > build/resolved.txt
	grep '^[a-z]' build/resolved.txt | sed 's/ .$$//' | grep -vE '^(nvidia|cuda|triton)' > constraints.txt
	awk '/^[a-z]/ { keep = !/^(nvidia|cuda|triton|torch==|torchvision==)/ } keep' build/resolved.txt > requirements.lock

clean: ## remove what the targets made
	rm -rf $(VENV) $(DEMO) build dist demo.html
