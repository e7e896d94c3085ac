# Two commands do everything on a fresh clone: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
export PYTHONDONTWRITEBYTECODE :=  # libraries are compiled once, not in every process of the tests

.PHONY: words pictures screenshots demo test test-oldest test-newest build test-sdist test-slow test-browser attack mutants check docs benchmark benchmarks-quick clean
demo: .venv/demo
	$(BIN)/setpoint demo --force

test: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m "not browser and not slow"

CORE := tests/rates tests/problems tests/axes tests/certificates tests/results tests/solvers tests/losses \
        tests/test_batch.py tests/test_steps.py tests/estimators/test_certified_threshold.py
ON_CORE := -m pytest -n 2 -m "not browser and not slow" $(CORE)

test-oldest: .venv-oldest/ready  ## the core on the oldest numpy, scipy, scikit-learn and torch that are allowed
	OMP_NUM_THREADS=1 PYTHONPATH=src .venv-oldest/bin/python $(ON_CORE)

test-newest: .venv-newest/ready  ## the core on the newest numpy, scipy and scikit-learn that pip finds; TORCH=torch: torch too
	OMP_NUM_THREADS=1 PYTHONPATH=src .venv-newest/bin/python $(ON_CORE)

build: .venv/ready  ## a wheel and an sdist in dist/
	$(BIN)/python -m build --outdir dist

test-sdist: build  ## the tests of the newest sdist, unpacked, on that package; SDIST_TESTS=tests/rates: a part of them
	rm -rf build/sdist && mkdir -p build/sdist
	tar -xzf "$$(ls -t dist/setpoint-*.tar.gz | head -1)" --strip-components=1 -C build/sdist
	cd build/sdist && OMP_NUM_THREADS=1 PYTHONPATH=src $(CURDIR)/$(BIN)/python -m pytest -n 2 --dist worksteal \
	    -m "not browser and not slow" $(SDIST_TESTS)

test-slow: .venv/ready  ## what takes long: several ranks, killed workers, a Ray cluster; five minutes
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -m slow

test-browser: .venv/ready  ## needs a Chromium, such as Debian's package chromium
	OMP_NUM_THREADS=1 SETPOINT_BROWSER=required $(BIN)/pytest -n 2 --dist loadgroup -m browser tests/browser

attack: .venv/ready  ## an hour of hostile input that no run has seen before; ATTACK=--minutes=5
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m attacks $(ATTACK)

mutants: .venv/ready  ## an hour of one-operator changes: which of them do the tests notice?
	test -f build/tests.json || OMP_NUM_THREADS=1 $(BIN)/python tests/mutants.py --record build/tests.json
	OMP_NUM_THREADS=1 $(BIN)/python tests/mutants.py --map build/tests.json $(MUTANTS)

check: .venv/ready  ## what CI and pre-commit run besides the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md docs src examples benchmarks

words: .venv/ready  ## the words of every page
	$(BIN)/python -m docs.words

pictures: .venv/ready  ## the eight pictures of the site, in docs/images
	$(BIN)/python -m docs.pictures

docs: .venv/ready  ## the site, into build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

screenshots: docs  ## every page in light, dark and on a phone, into build/screenshots
	$(BIN)/python -m docs.screenshots build/site build/screenshots

QUICK := inequalities peers.cost peers.table5 peers.reach
benchmarks-quick: $(QUICK:%=quick-%)  ## a corner of those that need neither a peer nor a data folder

quick-%: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks $* --quick

benchmark: .venv/ready  ## the cost of a step, as in docs/cost.md; threads of numpy that wait would count as CPU time
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks step_cost

# torch goes in first and pinned: an unpinned torch may bring several gigabytes of CUDA packages.
# Not compiled: of the thousands of files in these libraries most are never imported.
PIP = $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt
.venv/demo: pyproject.toml constraints.txt  ## what the demo needs
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) torch
	$(PIP) --editable ".[demo]"
	touch $@

.venv/ready: .venv/demo  ## everything: tests, types, docs and all extras
	$(PIP) --editable ".[dev]"
	touch $@

# Without a GPU: PIP_EXTRA_INDEX_URL=(PyTorch's index of CPU builds) make test-oldest
.venv-oldest/ready: pyproject.toml constraints-oldest.txt
	test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --no-compile --constraint constraints-oldest.txt \
	    torch ".[train,sklearn,data,metrics]" pandas pytest pytest-xdist hypothesis
	touch $@

TORCH ?= torch==2.13.0  # an unpinned torch may bring several gigabytes of CUDA packages
.venv-newest/ready: pyproject.toml
	test -x .venv-newest/bin/python || $(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --no-compile $(TORCH)
	.venv-newest/bin/python -m pip install --quiet --no-compile --upgrade --upgrade-strategy eager \
	    $(TORCH) ".[train,sklearn,data,metrics]" pandas pytest pytest-xdist hypothesis
	touch $@

clean:
	rm -rf .venv .venv-oldest .venv-newest build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
