#!/bin/bash
# Leaves in a virtual environment what the service runs, and nothing that builds or tests. Argument: VENV
# An image keeps the result; a checkout's own .venv would no longer build.
set -eu
venv=$1
python=$venv/bin/python
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index ./backend
"$python" -m pip uninstall --quiet --yes meson ninja setuptools pip
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# Packages' own tests, headers, stubs and what the next compilation writes anew.
find "$site" -type d \( -name tests -o -name __pycache__ \) -prune -exec rm -rf {} +
find "$site" -type f \( -name '*.pyi' -o -name '*.pxd' -o -name '*.pyx' -o -name '*.h' -o -name '*.a' -o -name '*.c' \) -delete
rm -rf "$venv/include" "$venv/share"
# A second binding that CPython does not use, and debug information: 22 of the 23 MB of this package.
rm -f "$site"/zstandard/_cffi.*.so
strip --strip-debug "$site"/zstandard/backend_c.*.so
# By the hash of the source and unchecked: the same bytes whenever they are made, and valid whatever a copy does to times.
"$python" -m compileall -q -j 0 --invalidation-mode unchecked-hash "$site" agent/hugeplan_agent
