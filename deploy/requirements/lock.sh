#!/bin/sh
# Renews the hashed locks from pyproject.toml (needs uv). No package address is written into them.
set -eu
cd "$(dirname "$0")/../.."
lock() {
    output=$1
    shift
    uv pip compile pyproject.toml "$@" --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
        --no-emit-index-url --quiet --output-file "deploy/requirements/$output"
}
lock run.txt
lock dev.txt --group dev
