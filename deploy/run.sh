#!/bin/sh
# Sets up a virtual environment from the hashed lock (once) and serves on http://127.0.0.1:8000.
set -eu
cd "$(dirname "$0")/.."
environment=.venv
lock=deploy/requirements/run.txt
# A stamp with the lock's checksum tells whether the environment is whole and current.
stamp="$environment/.run-$(cksum < "$lock" | cut -d' ' -f1)"
if [ ! -e "$stamp" ]; then
    "${PYTHON:-python3}" -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
    touch "$stamp"
fi
exec "$environment/bin/gunicorn" -c deploy/gunicorn.conf.py service.asgi:app
