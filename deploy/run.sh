#!/bin/sh
# Sets up a virtual environment from the hashed lock (once) and serves on http://127.0.0.1:8000.
# Arguments are gunicorn's: deploy/run.sh --bind 0.0.0.0:8080
set -eu
cd "$(dirname "$0")/.."
deploy/environment.sh run
exec .venv/bin/python -m gunicorn -c deploy/gunicorn.conf.py "$@" service.asgi:app
