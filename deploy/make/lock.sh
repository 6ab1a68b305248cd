#!/bin/bash
# Writes the lock files from the pyproject files: exact versions and hashes, no index or link lines. Arguments: WORKDIR UV_VERSION
# --universal: one file holds for every supported Python and platform.
set -eu
work=$1 uv_version=$2
python=$(deploy/make/preflight.sh python)
"$python" -m venv "$work"
"$work/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$uv_version"
compile() {
  "$work/bin/uv" pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes --no-annotate \
    --custom-compile-command "make lock" "$@"
}
compile backend/pyproject.toml agent/pyproject.toml deploy/python/tools.in --extra demo --extra dev \
  --output-file deploy/python/development.txt
compile backend/pyproject.toml deploy/python/build.in --constraint deploy/python/development.txt \
  --output-file deploy/python/production.txt
# What the service's wheel needs with all its extras but our own agent, for installs that ask an index for nothing else.
compile backend/pyproject.toml --extra demo --constraint deploy/python/development.txt --output-file deploy/python/wheel.txt
compile deploy/python/docs.in --output-file deploy/python/docs.txt
rm -rf "$work"
deploy/make/say "wrote deploy/python/development.txt, production.txt, wheel.txt and docs.txt"
