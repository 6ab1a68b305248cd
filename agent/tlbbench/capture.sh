#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Capture what `tlbbench info` reads of this machine, as one text file to look through and to send.
#
#   capture.sh [--processes] [--tlbbench PROGRAM] > node.tree   capture (no root needed)
#   capture.sh --unpack node.tree DIR                           make a tree for `tlbbench info --root DIR`
#
# The file holds "=== path" lines, each followed by the file's lines behind a "|"; "=== path hex" holds bytes in
# hexadecimal. It contains the kernel command line: look whether that holds secrets before you send it.
set -eu
LC_ALL=C # awk must write bytes, not characters
export LC_ALL

usage() {
    echo "usage: capture.sh [--processes] [--tlbbench PROGRAM] > FILE | capture.sh --unpack FILE DIR" >&2
    exit 2
}

text_file() {
    [ -r "$1" ] && [ -f "$1" ] || return 0
    content=$(head -n "${2:-400}" "$1" 2>/dev/null) || return 0
    printf '=== %s\n' "${1#/}"
    printf '%s\n' "$content" | sed 's/^/|/'
}

hex_file() {
    [ -r "$1" ] || return 0
    printf '=== %s hex\n|' "${1#/}"
    od -An -v -tx1 "$1" | tr -d ' \n'
    printf '\n'
}

capture_facts() {
    printf '=== capture.txt\n|machine: %s\n|release: %s\n|page_size: %s\n' \
        "$(uname -m)" "$(uname -r)" "$(getconf PAGESIZE)"
}

capture_cpuid() {
    [ -n "$tlbbench" ] || return 0
    registers=$("$tlbbench" info --registers 2>/dev/null) || return 0
    case $registers in *0x*) ;; *) return 0 ;; esac
    printf '=== cpuid.txt\n'
    printf '%s\n' "$registers" | sed 's/^/|/'
}

# The first processor's block is enough, and POWER names the machine in the last lines.
capture_cpuinfo() {
    [ -r /proc/cpuinfo ] || return 0
    printf '=== proc/cpuinfo\n'
    awk '!done { print "|" $0; if ($0 == "") done = 1; next }
         /^(timebase|platform|model|machine|firmware|MMU)[ \t]*:/ && $0 !~ /^model name/ { tail[++n] = $0 }
         END { if (tail[n] ~ /^MMU/) for (i = (n > 5 ? n - 4 : 1); i <= n; i++) print "|" tail[i] }' /proc/cpuinfo
}

capture_cgroup() {
    text_file /proc/self/cgroup
    memory_path=$(sed -n 's/^[0-9]*:\([^:]*,\)\{0,1\}memory\(,[^:]*\)\{0,1\}:\(.*\)/\3/p' /proc/self/cgroup | head -n 1)
    mount=/sys/fs/cgroup/memory
    names='memory.limit_in_bytes memory.usage_in_bytes'
    if [ -z "$memory_path" ]; then
        memory_path=$(sed -n 's/^0:://p' /proc/self/cgroup | head -n 1)
        mount=/sys/fs/cgroup
        names='memory.max memory.current'
    fi
    path=$memory_path
    while :; do
        [ "$path" = / ] && path=
        for name in $names; do text_file "$mount$path/$name"; done
        [ -n "$path" ] || break
        path=${path%/*}
    done
}

capture_processes() {
    for directory in /proc/[0-9]*; do
        text_file "$directory/status"
        text_file "$directory/smaps_rollup"
    done
}

capture() {
    capture_facts
    capture_cpuid
    capture_cpuinfo
    text_file /proc/cmdline
    text_file /proc/meminfo
    capture_cgroup
    for file in /sys/devices/system/cpu/online /sys/devices/system/cpu/cpu0/regs/identification/midr_el1 \
        /sys/devices/system/node/online /sys/devices/system/node/node[0-9]*/cpulist \
        /sys/devices/system/node/node[0-9]*/meminfo \
        /sys/devices/system/node/node[0-9]*/hugepages/hugepages-*/*_hugepages \
        /sys/kernel/mm/hugepages/hugepages-*/*_hugepages \
        /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/transparent_hugepage/defrag \
        /sys/kernel/mm/transparent_hugepage/shmem_enabled /sys/kernel/mm/transparent_hugepage/hpage_pmd_size \
        /sys/hypervisor/type /sys/class/dmi/id/sys_vendor; do
        text_file "$file"
    done
    hex_file /proc/device-tree/hypervisor/compatible
    for file in /proc/device-tree/cpus/*@*/tlb-size /proc/device-tree/cpus/*@*/tlb-sets \
        /proc/device-tree/cpus/*@*/[di]-tlb-size /proc/device-tree/cpus/*@*/[di]-tlb-sets; do
        hex_file "$file"
    done
    [ "$processes" = no ] || capture_processes
}

# Paths are taken only when they stay below DIR.
unpack() {
    [ -r "$1" ] || { echo "capture.sh: $1 cannot be read" >&2; exit 1; }
    awk -v root="$2" '
        function finish() { if (path != "") close(path) }
        /^=== / {
            finish(); name = $2; hex = ($3 == "hex")
            if (name ~ /(^|\/)\.\.(\/|$)/ || name ~ /^\// || name ~ /[^A-Za-z0-9_.,:@+\/-]/) {
                print "capture.sh: line " NR ": unsafe path " name > "/dev/stderr"; exit 1
            }
            path = root "/" name; directory = path; sub(/\/[^\/]*$/, "", directory)
            if (system("mkdir -p \"" directory "\"") != 0) exit 1
            printf "" > path; next
        }
        /^\|/ {
            if (path == "") { print "capture.sh: line " NR ": no path yet" > "/dev/stderr"; exit 1 }
            line = substr($0, 2)
            if (!hex) { print line > path; next }
            for (i = 1; i < length(line); i += 2) printf "%c", byte[substr(line, i, 2)] > path
            next
        }
        { print "capture.sh: line " NR ": neither a path nor a line" > "/dev/stderr"; exit 1 }
        BEGIN { for (i = 0; i < 256; i++) byte[sprintf("%02x", i)] = i }
        END { finish() }' "$1"
}

processes=no
tlbbench=$(command -v tlbbench 2>/dev/null || true)
while [ $# -gt 0 ]; do
    case $1 in
    --processes) processes=yes ;;
    --tlbbench)
        [ $# -ge 2 ] || usage
        tlbbench=$2
        shift
        ;;
    --unpack)
        [ $# -eq 3 ] || usage
        unpack "$2" "$3"
        exit
        ;;
    *) usage ;;
    esac
    shift
done
capture
