#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every test of tlbbench: all suites with gcc, all unit tests under ASan and UBSan, the rows' threads under TSan,
# each fuzzer for a second; what depends on the compiler or the architecture with clang, as static binaries, and on
# aarch64 and ppc64le under qemu-user. One PASS, FAIL or SKIP line per case; the last line is
# "tlbbench: N passed, N failed, N skipped". What is not installed is skipped with its reason; nothing needs root.
#
#   tests/run.sh [PART]...    parts: native clang sanitizers threads fuzz static aarch64 ppc64le tidy (default: all but
#                             tidy, which is a lint and a part of `make check`)
#
# Several parts: native, which measures, runs alone; the others then run side by side, one per core.
set -u

home=$(cd "$(dirname "$0")/.." && pwd)
repository=$(cd "$home/../.." && pwd)
builds=$repository/agent/build-tests
PATH=$repository/.venv/bin:$PATH
export LC_ALL=C PATH
passed=0 failed=0 skipped=0
ulimit -c 0 # some cases end by a signal on purpose

# Suites of the command line that do not measure: they also run under the sanitizers and some under qemu-user.
observing="info decode usage counters"

# Suites that read the schema and the sources: the compiler is nothing to them, so they run once.
reading="schema layers"

# Unit tests of code that another compiler, C library or architecture can break: inline assembly, atomics, system calls,
# page sizes. Everything else is plain arithmetic on numbers and texts, which native and sanitizers cover.
dependent="backing chase cpus environment pressure reserve run smt_watch sweep"

pass() { echo "PASS $1"; passed=$((passed + 1)); }
fail() { echo "FAIL $1"; failed=$((failed + 1)); }
skip() { echo "SKIP $1: $2"; skipped=$((skipped + 1)); }
has() { command -v "$1" >/dev/null 2>&1; }

# The Python that has jsonschema, if any has; else the first: its schema cases then skip.
python=python3
for candidate in "$repository/.venv/bin/python" python3; do
    if has "$candidate" && "$candidate" -c 'import jsonschema' 2>/dev/null; then
        python=$candidate
        break
    fi
done

# suite VARIANT COMMAND...: runs one suite, prints its lines with the variant behind the verdict, and adds up its totals.
# A suite that ends without totals, or badly without saying what failed, is a failure itself.
suite() {
    local variant=$1 output status totals suite_failed begun=$SECONDS
    shift
    output=$("$@" 2>&1)
    status=$?
    # Where the time goes: `make test` has a budget of 15 minutes for all suites.
    [ $((SECONDS - begun)) -lt 2 ] || echo "$variant ${*: -1} took $((SECONDS - begun)) s" | sed "s|$builds/||; s|$home/||"
    printf '%s\n' "$output" | sed -E "s/^(PASS|FAIL|SKIP) /\1 $variant /; /: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped\$/d"
    totals=$(printf '%s\n' "$output" | sed -nE 's/^[a-z_]+: ([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' | tail -n 1)
    if [ -z "$totals" ]; then
        fail "$variant ${*: -1}: no totals, exit status $status"
        return
    fi
    read -r suite_passed suite_failed suite_skipped <<<"$totals"
    passed=$((passed + suite_passed)) failed=$((failed + suite_failed)) skipped=$((skipped + suite_skipped))
    if [ "$status" -ne 0 ] && [ "$suite_failed" -eq 0 ]; then
        fail "$variant ${*: -1}: exit status $status after its totals"
    fi
}

# build VARIANT TARGETS CC MESON_ARGUMENT...: an existing build folder is used again, so that a second run is quick.
build() {
    local variant=$1 targets=$2 cc=$3 folder=$builds/$1 log=$builds/$1.log begun=$SECONDS
    shift 3
    mkdir -p "$builds"
    # A folder that another version of Meson left, or that a broken-off setup left, is made anew.
    # shellcheck disable=SC2086 # a list of targets
    if ! { [ -f "$folder/build.ninja" ] || CC=$cc meson setup --wipe "$@" "$folder" "$home" ||
        { rm -rf "$folder" && CC=$cc meson setup "$@" "$folder" "$home"; }; } >"$log" 2>&1 ||
        ! ninja -C "$folder" $targets >>"$log" 2>&1; then
        grep -E 'error|warning|ERROR|FAILED' "$log" | head -n 20
        fail "$variant build (see $log)"
        return 1
    fi
    pass "$variant build without warnings"
    echo "$variant build took $((SECONDS - begun)) s"
}

# The programs of $dependent, as targets of ninja.
dependent_targets() {
    local name
    echo tlbbench
    for name in $dependent; do echo "tests/test_$name"; done
}

# unit_tests VARIANT RUNNER [NAME]...: default is all that were built.
unit_tests() {
    local variant=$1 runner=$2 program
    shift 2
    for program in $([ $# -eq 0 ] && echo "$builds/$variant"/tests/test_* || printf "$builds/$variant/tests/test_%s " "$@"); do
        [ -f "$program" ] && [ -x "$program" ] || continue
        # shellcheck disable=SC2086 # the runner is a command with arguments, or nothing
        TLBBENCH_RUNNER=$runner suite "$variant" $runner "$program"
    done
}

command_line() {
    local variant=$1 runner=$2 name
    shift 2
    for name in "$@"; do
        TLBBENCH=$builds/$variant/tlbbench TLBBENCH_RUNNER=$runner \
            suite "$variant" "$python" "$home/tests/test_$name.py"
    done
}

# The suites that measure are those that are in neither list.
measuring() {
    local file name
    for file in "$home"/tests/test_*.py; do
        name=${file##*/test_}
        name=${name%.py}
        case " $observing $reading " in *" $name "*) ;; *) echo "$name" ;; esac
    done
}

part_native() {
    has gcc || { skip "native" "gcc is not installed"; return; }
    build native '' gcc || return
    unit_tests native ""
    # shellcheck disable=SC2046,SC2086 # lists of names
    command_line native "" $observing $reading $(measuring)
    if "$python" "$home/tools/generate_catalogue.py" --check; then
        pass "native the catalogue's C table is current"
    else
        fail "native the catalogue's C table is stale"
    fi
}

part_clang() {
    has clang || { skip "clang" "clang is not installed"; return; }
    # shellcheck disable=SC2086 # a list of names
    build clang "$(dependent_targets)" clang -Ddebug=false && unit_tests clang "" $dependent
}

part_sanitizers() {
    local cc=gcc
    has gcc || cc=clang
    has "$cc" || { skip "sanitizers" "no C compiler is installed"; return; }
    if ! echo 'int main(void) { return 0; }' | "$cc" -fsanitize=address,undefined -x c - -o /dev/null 2>/dev/null; then
        skip "sanitizers" "$cc has no AddressSanitizer library here"
        return
    fi
    export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    # -O1 and line tables: half the time to compile, and a finding still names its line.
    build sanitizers "" "$cc" -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Dc_args=-g1 || return
    unit_tests sanitizers ""
    # shellcheck disable=SC2086 # a list of names
    command_line sanitizers "" $observing
    unset ASAN_OPTIONS UBSAN_OPTIONS
}

# The rows' workers are the only threads. A program with a race shows first that TSan sees one here.
part_threads() {
    has gcc || { skip "threads" "gcc is not installed"; return; }
    mkdir -p "$builds"
    local racy=$builds/racy log=$builds/threads.tsan status
    if ! gcc -fsanitize=thread -g -x c - -o "$racy" 2>/dev/null <<'EOF'
#include <pthread.h>
static int shared;
static void *add(void *unused) { shared++; return unused; }
int main(void)
{
    pthread_t other;
    if (pthread_create(&other, 0, add, 0) != 0)
        return 1;
    add(0);
    return pthread_join(other, 0);
}
EOF
    then
        skip "threads" "gcc has no ThreadSanitizer library here"
        return
    fi
    TSAN_OPTIONS=exitcode=66 "$racy" >"$log" 2>&1
    status=$?
    if [ "$status" -ne 66 ]; then
        skip "threads" "ThreadSanitizer sees no race in a program that has one (exit status $status): $(head -n 1 "$log")"
        return
    fi
    build threads tlbbench gcc -Db_sanitize=thread -Db_lundef=false -Doptimization=1 || return
    TSAN_OPTIONS=exitcode=66 "$builds/threads/tlbbench" rows --page-sizes 4K --mode threads --workers 2,8 --row-bytes \
        128,8K --segment 16M --time-limit 10 --json >"$builds/threads.json" 2>"$log"
    status=$?
    # 3: a busy machine had no time for all rows.
    if { [ "$status" -eq 0 ] || [ "$status" -eq 3 ]; } && "$python" -c 'import json, sys
rows = json.load(open(sys.argv[1]))["rows"]["measurements"]
sys.exit(not any(row["status"] == "ok" for row in rows))' "$builds/threads.json"; then
        pass "threads rows of 2 and 8 threads share nothing unguarded"
    else
        head -n 30 "$log"
        fail "threads rows of 2 and 8 threads (exit status $status, see $log)"
    fi
}

part_fuzz() { suite fuzz "$home/tests/fuzz.sh" 1; }

part_static() {
    has gcc || { skip "static" "gcc is not installed"; return; }
    build static "$(dependent_targets)" gcc -Dstatic=true -Ddebug=false || return
    # A dynamic program names its interpreter.
    if has readelf && readelf -l "$builds/static/tlbbench" | grep -q INTERP; then
        fail "static the program has an interpreter"
    else
        pass "static the program needs no shared library"
    fi
    # shellcheck disable=SC2086 # a list of names
    unit_tests static "" $dependent
}

# cross VARIANT TRIPLE QEMU CPU_FAMILY CPU
cross() {
    local variant=$1 triple=$2 qemu=$3 family=$4 cpu=$5
    has "$triple-gcc" || { skip "$variant" "$triple-gcc is not installed"; return; }
    has "$qemu" || { skip "$variant" "$qemu is not installed (package qemu-user)"; return; }
    mkdir -p "$builds"
    cat >"$builds/$variant.ini" <<EOF
[binaries]
c = '$triple-gcc'
ar = '$triple-ar'
strip = '$triple-strip'
[host_machine]
system = 'linux'
cpu_family = '$family'
cpu = '$cpu'
endian = 'little'
EOF
    # Static, so that no foreign C library must be found at run time.
    build "$variant" "$(dependent_targets)" gcc --cross-file "$builds/$variant.ini" -Dstatic=true -Ddebug=false || return
    # shellcheck disable=SC2086 # a list of names
    unit_tests "$variant" "$qemu" $dependent
    command_line "$variant" "$qemu" info decode
}

part_aarch64() { cross aarch64 aarch64-linux-gnu qemu-aarch64 aarch64 armv8; }
part_ppc64le() { cross ppc64le powerpc64le-linux-gnu qemu-ppc64le ppc64 power8; }

# tidy_file SOURCE: a stamp holds the sum of what clang-tidy saw last in this file and its headers when it found nothing.
tidy_file() {
    local stamp=$builds/tidy/${1##*/src/} seen
    mkdir -p "${stamp%/*}"
    seen=$({ clang-tidy --version && cat "$home/.clang-tidy" && cpp -C -D_GNU_SOURCE -I "$home/src" "$1"; } | sha256sum)
    [ "$seen" != "$(cat "$stamp" 2>/dev/null)" ] || return 0
    clang-tidy --quiet -p "$builds/native" "$1" 2>/dev/null && echo "$seen" >"$stamp"
}

part_tidy() {
    has clang-tidy || { skip "tidy" "clang-tidy is not installed"; return; }
    mkdir -p "$builds"
    # The compile commands are there once Meson has configured the build; nothing need be compiled.
    [ -f "$builds/native/compile_commands.json" ] || CC=gcc meson setup "$builds/native" "$home" >"$builds/native.log" 2>&1
    local output=$builds/tidy.log
    export -f tidy_file
    export builds home
    # One process per core, one file per process: the tool is slow, and with several files its va_list check errs.
    if find "$home/src" -name '*.c' -print0 | xargs -0 -n 1 -P "$(nproc)" bash -c 'tidy_file "$1"' tidy >"$output"; then
        pass "tidy clang-tidy finds nothing"
    else
        grep -E 'warning:|error:' "$output" | sort -u | head -n 30
        fail "tidy clang-tidy (see $output)"
    fi
}

if ! has meson || ! has ninja; then
    skip "everything" "meson and ninja are not installed (make setup brings them)"
    echo "tlbbench: $passed passed, $failed failed, $skipped skipped"
    exit 0
fi
parts="native clang sanitizers threads fuzz static aarch64 ppc64le tidy"
for part in "$@"; do
    case " $parts " in
    *" $part "*) ;;
    *)
        echo "run.sh: no part $part; valid: $parts" >&2
        exit 2
        ;;
    esac
done
# shellcheck disable=SC2086 # a list of parts
[ $# -gt 0 ] || set -- ${parts% tidy}

# Prints the output of a part that ran by itself, and adds up its totals.
take() {
    local log=$builds/part-$1.log part_passed part_failed part_skipped
    sed '$d' "$log"
    if ! read -r part_passed part_failed part_skipped < <(sed -nE \
        '$s/^tlbbench: ([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$log"); then
        fail "$1: no totals"
        return
    fi
    passed=$((passed + part_passed)) failed=$((failed + part_failed)) skipped=$((skipped + part_skipped))
}

if [ $# -eq 1 ]; then
    "part_$1"
else
    mkdir -p "$builds"
    others=()
    for part in "$@"; do
        # tidy needs the compile commands of native.
        if [ "$part" = native ]; then part_native; else others+=("$part"); fi
    done
    printf '%s\0' "${others[@]}" |
        xargs -0 -P "$(nproc)" -I '{}' sh -c 'bash "$1" "$2" >"$3/part-$2.log" 2>&1; true' sh "$0" '{}' "$builds"
    for part in "${others[@]}"; do take "$part"; done
fi
echo "tlbbench: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
