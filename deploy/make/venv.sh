#!/bin/bash
# Creates or updates a virtual environment from a lock file. Arguments: VENV LOCK [PYTHON]
set -eu
venv=$1 lock=$2 wanted=${3:-}
here=$(dirname "$0")

if ! "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  python=$("$here/preflight.sh" python "$wanted")
  "$here/say" "creating $venv with $("$python" -V)"
  rm -rf "$venv"
  "$python" -m venv "$venv"
fi
"$here/say" "installing the locked Python packages ($(grep -c '^[a-z0-9].*==' "$lock"))"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --requirement "$lock"
