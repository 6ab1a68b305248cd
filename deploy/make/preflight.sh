#!/bin/bash
# Finds a tool that must be on the machine, or says in one sentence what to install.
#   preflight.sh python [CANDIDATE]   prints the interpreter's path (Python 3.11+ with venv)
#   preflight.sh node                 Node 20.19+ with npm
#   preflight.sh cc                   a C compiler
#   preflight.sh kubernetes           Kubernetes 1.34 for tests: built within its time limit, or in the cache
set -u

fail() {
  echo "hugeplan: $1" >&2
  exit 1
}

is_new_python() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
  local candidate found=""
  local candidates=(python3 python3.14 python3.13 python3.12 python3.11)
  if [ -n "${1:-}" ]; then
    command -v "$1" >/dev/null 2>&1 || fail "no program named $1 was found; PYTHON must name Python 3.11 or newer."
    is_new_python "$1" || fail "Python 3.11 or newer is needed, but $1 is $("$1" -V 2>&1)."
    candidates=("$1")
  fi
  for candidate in "${candidates[@]}"; do
    command -v "$candidate" >/dev/null 2>&1 || continue
    found="${found:-$candidate ($("$candidate" -V 2>&1))}"
    is_new_python "$candidate" || continue
    "$candidate" -c 'import ensurepip, venv' 2>/dev/null ||
      fail "$candidate has no venv module; install it (Debian and Ubuntu: apt-get install python3-venv)."
    "$candidate" -c 'import sys; print(sys.executable)'
    return
  done
  [ -z "$found" ] ||
    fail "Python 3.11 or newer is needed, but only $found was found; install it, or run make PYTHON=/path/to/python3."
  fail "Python 3.11 or newer is needed; install it (Debian and Ubuntu: apt-get install python3 python3-venv)."
}

check_node() {
  local found
  command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 ||
    fail "Node 20.19 or newer with npm is needed to build the user interface; install it (Debian and Ubuntu: apt-get install nodejs npm)."
  found=$(node -p 'process.versions.node')
  IFS=. read -r major minor _ <<<"$found"
  [ "$major" -gt 20 ] || { [ "$major" -eq 20 ] && [ "$minor" -ge 19 ]; } || fail "Node 20.19 or newer is needed to build the user interface, but node is $found."
}

check_cc() {
  command -v "${CC:-cc}" >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 ||
    fail "a C compiler is needed to build tlbbench; install one (Debian and Ubuntu: apt-get install gcc libc6-dev)."
}

# Cold it takes about ten minutes of one free core; a later run finds the binaries, or Go's build cache, and goes on.
check_kubernetes() {
  local build log status=0 limit=${KUBERNETES_BUILD_SECONDS:-1200}
  build=$(dirname "$0")/../kubernetes/rig/binaries/build.sh
  "$build" --where >/dev/null && return
  [ "${HUGEPLAN_INSTALL:-}" != no ] || fail "Kubernetes is not built and HUGEPLAN_INSTALL=no forbids to fetch its modules."
  command -v go >/dev/null 2>&1 || fail "Go is needed to build Kubernetes for these tests (Debian and Ubuntu: apt-get install golang-go)."
  log=$(timeout "$limit" "$build" 2>&1 >/dev/null) || status=$?
  [ "$status" != 124 ] || fail "Kubernetes was not built within $limit seconds; the next run goes on from there (or: make kubernetes)."
  [ "$status" = 0 ] || fail "Kubernetes could not be built from its Go modules: $(tail -n 1 <<<"$log")"
}

case "${1:-}" in
  python) find_python "${2:-}" ;;
  node) check_node ;;
  cc) check_cc ;;
  kubernetes) check_kubernetes ;;
  *) fail "usage: preflight.sh python|node|cc|kubernetes" ;;
esac
