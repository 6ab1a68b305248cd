#!/bin/bash
# Builds agent/build/tlbbench. Argument: the folder with meson and ninja. Output is shown only when something fails.
set -eu
export PATH="$1:$PATH"
log=agent/build.log
build() {
  test -f agent/build/build.ninja || meson setup agent/build agent/tlbbench --buildtype=release
  ninja -C agent/build
}
# A build folder made by another meson or another compiler cannot be reused.
if ! build >"$log" 2>&1; then
  rm -rf agent/build
  build >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
fi
