#!/bin/sh
# Sets up the development environment from the hashed lock (once) and runs every check: style, types, tests, contract.
# Arguments are pytest's: tests/run.sh -k recommendation
set -eu
cd "$(dirname "$0")/.."
deploy/environment.sh dev
PATH="$PWD/.venv/bin:$PATH"
ruff format --check .
ruff check .
mypy
python -m pytest "$@"
