# Two commands do everything on a fresh machine: `make report` and `make test`.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TRACE ?= samples/cpu_bound_loop.json
CHECK ?= gpu-check

# Compiled modules are kept: without them each of the hundreds of processes of the tests would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: report test browser lint types docs samples screenshots bench gpu-check gpu-check-wheels clean

# Installs the analyser alone (seconds, no torch) and reports on TRACE.
report: $(VENV)/.analyser
	@$(BIN)/traceanalyze report "$(TRACE)" || [ $$? -eq 3 ]

# Installs all extras and runs lint, types and the whole suite; a file of tests stays in one process, which makes its fixtures once.
# Types are checked while the tests run; their order is that of the files, so that no long one is left for the end.
test: $(VENV)/.all browser lint
	@$(MAKE) --no-print-directory types >$(VENV)/types.log 2>&1 & types=$$!; \
	$(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder; suite=$$?; \
	wait $$types; types=$$?; echo; cat $(VENV)/types.log; [ $$suite -eq 0 ] && [ $$types -eq 0 ]

# A browser for the tests of the HTML pages, where it can be had: without one they skip and say so.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "installing chromium for the tests of the pages ..." && \
	    { timeout 240 env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium || \
	      { timeout 120 apt-get update -qq && timeout 240 env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; }; } >/dev/null 2>&1; } || true

lint: $(VENV)/.all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy knows no package_dir: it is shown the packages where they install.
types: $(VENV)/.all
	@mkdir -p $(VENV)/types/traceanalyzer
	@ln -sfn $(CURDIR)/traceanalyzer/* $(CURDIR)/capture $(CURDIR)/kernels $(VENV)/types/traceanalyzer/
	cd $(VENV)/types && $(abspath $(BIN))/mypy --config-file $(CURDIR)/pyproject.toml

# Pages and schema files made from the code, then all of docs/ as a site in build/site; a link that leads nowhere is an error.
docs: $(VENV)/.all
	$(BIN)/python -m traceanalyzer.report.schema_page
	$(BIN)/python -m traceanalyzer.doctor.pages
	$(BIN)/python -m traceanalyzer.fleet.tables_page
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict -f docs/site/mkdocs.yml

samples: $(VENV)/.all
	$(BIN)/python samples/generate.py

# Pictures of the pages of the samples, for README and docs.
screenshots: $(VENV)/.all browser
	$(BIN)/python samples/screenshots.py

bench: $(VENV)/.all
	$(BIN)/python benchmarks/compare_peers.py "$(TRACE)"

# Checks everything that needs a GPU, within six minutes, into the folder CHECK. With no virtual environment it takes PYTHON as it
# is (with torch, triton and msgspec): a machine that is lent may reach no package registry.
gpu-check:
	@$(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON)) benchmarks/gpu_check.py "$(CHECK)"

# What a bare machine with torch and triton lacks for gpu-check, as wheels for PY (default: the Python that runs here).
PY ?= $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
gpu-check-wheels:
	$(PYTHON) -m pip download -q --no-deps --only-binary=:all: --python-version $(PY) --implementation cp \
	  --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 --platform any -d wheels \
	  click jinja2 markupsafe msgspec rich markdown-it-py mdurl pygments pytest pluggy iniconfig packaging

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.analyser: setup.cfg pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing the analyser into $(VENV) ..."
	@$(BIN)/pip install -q --no-compile --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.all: setup.cfg pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install -q --no-compile --disable-pip-version-check -c constraints.txt -e '.[all]'
	@touch $@ $(VENV)/.analyser

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
