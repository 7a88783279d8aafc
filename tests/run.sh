#!/bin/sh
# Sets up the development environment from the hashed lock (once) and runs every check: style, types, tests, contract.
set -eu
cd "$(dirname "$0")/.."
environment=.venv
lock=deploy/requirements/dev.txt
stamp="$environment/.dev-$(cksum < "$lock" | cut -d' ' -f1)"
if [ ! -e "$stamp" ]; then
    "${PYTHON:-python3}" -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
    touch "$stamp"
fi
PATH="$PWD/$environment/bin:$PATH"
ruff format --check .
ruff check .
mypy
python -m pytest "$@"
