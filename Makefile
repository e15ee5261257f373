# The hub's everyday commands. `make` alone lists them.
#
# Everything runs as `.venv/bin/python -m …`: that works in a folder that was moved or copied, and with spaces in its path.

.DEFAULT_GOAL := help
.PHONY: help demo demo-reset test check bench bench-fault format requirements runtime dev
.SILENT:
MAKEFLAGS += --no-print-directory

# Which Python to make .venv with: the first of these that is 3.11 to 3.13 and can make one.
PYTHON ?= python3.13 python3.12 python3.11 python3
python := .venv/bin/python

help: ## this list
	awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

demo: runtime ## a whole hub with fictional platforms on http://127.0.0.1:8000 (PORT=… for another port)
	ACCELHUB_DEMO=1 exec $(python) manage.py up

demo-reset: runtime ## remove the demo's data; the next `make demo` starts fresh
	exec $(python) manage.py demo_reset

test: dev ## all tests, on all cores
	exec $(python) -m pytest -n auto --dist worksteal $(ARGS)

check: dev ## formatting, lint, types, import layers, templates, migrations, system checks
	$(python) -m ruff format --check .
	$(python) -m ruff check .
	$(python) -m mypy
	$(python) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()' --no-logo
	find templates apps -name '*.html' -exec .venv/bin/djade --target-version 5.2 --check {} +
	ACCELHUB_DEBUG=1 $(python) -W 'ignore:Got an error checking a consistent migration history' \
		manage.py makemigrations --check --dry-run
	ACCELHUB_DEBUG=1 $(python) manage.py check

bench: dev ## benchmarks beside their floors, on loopback; BENCH_… variables set their size
	exec $(python) -m bench $(ARGS)

bench-fault: dev ## events while workers are killed and GitHub fails: what is lost, wrong, sent twice
	exec $(python) -m bench fault

format: dev ## rewrite files as `make check` wants them
	$(python) -m ruff check --fix .
	$(python) -m ruff format .
	find templates apps -name '*.html' -exec .venv/bin/djade --target-version 5.2 {} + || true  # 1 is: I changed some

compile = $(python) -m uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --quiet \
	--python-version 3.11 pyproject.toml
requirements: dev ## recompile both requirements files from pyproject.toml
	$(compile) --output-file requirements.txt
	$(compile) --extra dev --constraints requirements.txt --output-file requirements-dev.txt

# What is installed stands in two stamps, each the checksum of the files it was installed from. The development set
# contains the runtime set, so its stamp speaks for both. A stamp is written last: an interrupted install has none.
runtime_sum = $$(cksum < requirements.txt)
dev_sum = $$(cat requirements.txt requirements-dev.txt | cksum)
install = echo "Installing $(1) into .venv: this takes a minute." && rm -f .venv/runtime .venv/dev \
	&& $(python) -m pip install --require-hashes --only-binary=:all: --disable-pip-version-check -q -r $(1)

runtime: .venv/usable ## install what the hub runs on into .venv
	[ "$$(cat .venv/runtime 2> /dev/null)" = "$(runtime_sum)" ] || [ "$$(cat .venv/dev 2> /dev/null)" = "$(dev_sum)" ] \
		|| { $(call install,requirements.txt) && echo "$(runtime_sum)" > .venv/runtime; }

dev: .venv/usable
	[ "$$(cat .venv/dev 2> /dev/null)" = "$(dev_sum)" ] \
		|| { $(call install,requirements-dev.txt) && echo "$(dev_sum)" > .venv/dev; }

# Not a file: asked each time, because a folder that was copied may have lost the Python it stands on.
.PHONY: .venv/usable
fits = sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
.venv/usable:
	if $(python) -c 'import sys, pip; $(fits)' 2> /dev/null; then exit 0; fi; \
	for candidate in $(PYTHON); do \
		if "$$candidate" -c 'import sys, ensurepip, venv; $(fits)' 2> /dev/null; then exec "$$candidate" -m venv --clear .venv; fi; \
	done; \
	echo "No Python 3.11 to 3.13 with venv found (tried: $(PYTHON)). Install python3 and python3-venv, or set PYTHON=…" >&2; \
	exit 1
