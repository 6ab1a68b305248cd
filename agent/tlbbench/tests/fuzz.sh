#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes the JSON writer and every parser of /proc, /sys and register dumps with libFuzzer, under ASan and UBSan.
#
#   tests/fuzz.sh [SECONDS_EACH]     default: 60
#
# The seeds in fuzz/corpus stay as they are: new inputs go to the build folder. A finding is left there too, with the
# command that repeats it. The last line is "fuzz: N passed, N failed, N skipped".
set -u

seconds=${1:-60}
home=$(cd "$(dirname "$0")/.." && pwd)
repository=$(cd "$home/../.." && pwd)
folder=$repository/agent/build-fuzz
PATH=$repository/.venv/bin:$PATH
export LC_ALL=C PATH
passed=0 failed=0

case $seconds in
'' | *[!0-9]* | 0)
    echo "fuzz.sh: SECONDS_EACH: '$seconds' is not valid; valid: whole seconds from 1" >&2
    exit 2
    ;;
esac
for program in meson ninja clang; do
    if ! command -v "$program" >/dev/null 2>&1; then
        echo "SKIP fuzz: $program is not installed"
        echo "fuzz: 0 passed, 0 failed, 1 skipped"
        exit 0
    fi
done
if ! echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long s); int LLVMFuzzerTestOneInput(const char *d, unsigned long s) { return d == 0 && s; }' |
    clang -fsanitize=fuzzer,address -x c - -o /dev/null 2>/dev/null; then
    echo "SKIP fuzz: clang has no libFuzzer here (package libclang-rt-14-dev)"
    echo "fuzz: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
if ! { [ -f "$folder/build.ninja" ] ||
    CC=clang meson setup -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false "$folder" "$home"; } >"$folder.log" 2>&1 ||
    ! ninja -C "$folder" >>"$folder.log" 2>&1; then
    grep -E 'error|ERROR|FAILED' "$folder.log" | head -n 20
    echo "FAIL fuzz build (see $folder.log)"
    echo "fuzz: 0 passed, 1 failed, 0 skipped"
    exit 1
fi
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
for target in "$folder"/fuzz/fuzz_*; do
    [ -f "$target" ] && [ -x "$target" ] || continue
    name=${target##*/fuzz_}
    found=$folder/found/$name
    mkdir -p "$found/corpus"
    # 4096 bytes are more than any of these files holds in one interesting piece.
    if "$target" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
        -artifact_prefix="$found/" "$found/corpus" "$home/fuzz/corpus/$name" >"$found/log" 2>&1; then
        echo "PASS fuzz $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$found/log") inputs in $seconds s"
        passed=$((passed + 1))
    else
        tail -n 20 "$found/log"
        echo "FAIL fuzz $name: $target $(ls "$found"/crash-* "$found"/timeout-* "$found"/oom-* "$found"/leak-* 2>/dev/null | head -n 1)"
        failed=$((failed + 1))
    fi
done
echo "fuzz: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
