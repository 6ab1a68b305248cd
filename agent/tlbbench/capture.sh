#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Capture what `tlbbench info` reads of this machine, as one text file to look through and to send.
#
#   capture.sh [OPTION]... > node.tree   capture (no root needed)
#       --tlbbench PROGRAM               take the CPUID registers with it (default: the one on the PATH)
#       --processes                      add the page use of every process, with its name
#       --whole-command-line             keep the values of all kernel parameters
#   capture.sh --unpack node.tree DIR    make a tree for `tlbbench info --root DIR`
#
# The file holds "=== path" lines, each followed by the file's lines behind a "|"; "=== path hex" holds bytes in
# hexadecimal. Of the kernel command line the values that concern memory and processors are kept, of the others only the
# names; names of control groups are replaced by their depth. No host name, address, serial number or argument of a
# process is read. Look through the file before you send it all the same.
set -eu
LC_ALL=C # awk must write bytes, not characters
export LC_ALL

usage() {
    echo "usage: capture.sh [--processes] [--whole-command-line] [--tlbbench PROGRAM] > FILE" >&2
    echo "       capture.sh --unpack FILE DIR" >&2
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

# Small systems have no getconf: the first mapping of this shell is its program, in base pages.
page_size() {
    getconf PAGESIZE 2>/dev/null || awk '/^KernelPageSize:/ { print $2 * 1024; exit }' /proc/self/smaps
}

capture_facts() {
    printf '=== capture.txt\n|machine: %s\n|release: %s\n|page_size: %s\n' \
        "$(uname -m)" "$(uname -r)" "$(page_size)"
}

# Kernel parameters whose values are kept; those that `tlbbench info` prints are the same.
parameters='hugepagesz hugepages default_hugepagesz hugetlb_cma hugetlb_free_vmemmap transparent_hugepage
    transparent_hugepage_shmem thp_anon thp_shmem numa numa_balancing mem movablecore kernelcore isolcpus nohz_full
    maxcpus nr_cpus nosmt mitigations pti nopti kpti gbpages nogbpages nokaslr init_on_alloc init_on_free
    processor.max_cstate intel_idle.max_cstate intel_pstate amd_pstate tsc clocksource iommu intel_iommu amd_iommu'

# Values in quotes may hold blanks: the quote ends the word. What follows "--" is for init.
capture_command_line() {
    if [ "$whole_command_line" = yes ]; then
        text_file /proc/cmdline
        return 0
    fi
    [ -r /proc/cmdline ] || return 0
    printf '=== proc/cmdline\n'
    awk -v kept="$parameters" '
        function flush(    at, name) {
            if (word == "") return
            at = index(word, "=")
            name = at ? substr(word, 1, at - 1) : word
            if (word == "--") of_init = 1
            else if (of_init || name !~ /^[A-Za-z0-9_.-]+$/) word = "..."
            else if (at && !(name in keep)) word = name "=..."
            out = out (out == "" ? "" : " ") word
            word = ""
        }
        BEGIN { n = split(kept, names); for (i = 1; i <= n; i++) keep[names[i]] = 1 }
        {
            for (i = 1; i <= length($0); i++) {
                c = substr($0, i, 1)
                if (c == "\"") quoted = !quoted
                if (!quoted && (c == " " || c == "\t")) flush(); else word = word c
            }
            flush(); print "|" out; exit
        }' /proc/cmdline
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

# "/a/b" becomes "/1/2": the names of groups are those of containers, services and users.
by_depth() {
    printf '%s\n' "$1" | awk -F / '{ out = ""; for (i = 2; i <= NF; i++) if ($i != "") out = out "/" (i - 1); print out }'
}

# The first lines of the files of one group, and of those above it, as they are found below the mount point.
group_files() {
    path=$2
    while :; do
        for pattern in $3; do
            for file in "$1$path"/$pattern; do
                [ -r "$file" ] || continue
                printf '=== %s/%s\n|%s\n' "${1#/}$(by_depth "$path")" "${file##*/}" "$(head -n 1 "$file")"
            done
        done
        [ -n "$path" ] || break
        path=${path%/*}
    done
}

# A group outside this namespace has no files that are visible here.
visible_path() {
    case $1 in */..*) ;; *) printf '%s\n' "${1%/}" ;; esac
}

v1_path() {
    sed -n "s/^[0-9]*:\([^:]*,\)\{0,1\}$1\(,[^:]*\)\{0,1\}:\(.*\)/\3/p" /proc/self/cgroup | head -n 1
}

capture_cgroup() {
    [ -r /proc/self/cgroup ] || return 0
    unified=$(sed -n 's/^0:://p' /proc/self/cgroup | head -n 1)
    printf '=== proc/self/cgroup\n'
    for controller in memory hugetlb cpu; do
        found=$(v1_path "$controller")
        [ -z "$found" ] || printf '|1:%s:/%s\n' "$controller" "$(by_depth "$(visible_path "$found")" | cut -c 2-)"
    done
    [ -z "$unified" ] || printf '|0::/%s\n' "$(by_depth "$(visible_path "$unified")" | cut -c 2-)"
    for controller in memory hugetlb cpu; do
        found=$(v1_path "$controller")
        [ -z "$found" ] || group_files "/sys/fs/cgroup/$controller" "$(visible_path "$found")" \
            'memory.limit_in_bytes memory.usage_in_bytes hugetlb.*.limit_in_bytes hugetlb.*.usage_in_bytes cpu.cfs_*_us'
    done
    [ -z "$unified" ] || group_files /sys/fs/cgroup "$(visible_path "$unified")" \
        'memory.max memory.high memory.current hugetlb.*.max hugetlb.*.current cpu.max'
}

# Only the lines that are needed: status also names the user and the groups.
process_file() {
    content=$(grep -E "$2" "$1" 2>/dev/null) || return 0
    printf '=== %s\n' "${1#/}"
    printf '%s\n' "$content" | sed 's/^/|/'
}

capture_processes() {
    for directory in /proc/[0-9]*; do
        process_file "$directory/status" '^(Name|VmSize|VmRSS|VmPTE|HugetlbPages):'
        process_file "$directory/smaps_rollup" \
            '^(Pss|AnonHugePages|ShmemPmdMapped|FilePmdMapped|Shared_Hugetlb|Private_Hugetlb):'
    done
}

capture() {
    capture_facts
    capture_cpuid
    capture_cpuinfo
    capture_command_line
    text_file /proc/meminfo
    capture_cgroup
    for file in /sys/devices/system/cpu/online /sys/devices/system/cpu/cpu0/regs/identification/midr_el1 \
        /sys/devices/system/node/online /sys/devices/system/node/node[0-9]*/cpulist \
        /sys/devices/system/node/node[0-9]*/meminfo \
        /sys/devices/system/node/node[0-9]*/hugepages/hugepages-*/*_hugepages \
        /sys/kernel/mm/hugepages/hugepages-*/*_hugepages \
        /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/transparent_hugepage/defrag \
        /sys/kernel/mm/transparent_hugepage/hugepages-*/enabled \
        /sys/kernel/mm/transparent_hugepage/shmem_enabled /sys/kernel/mm/transparent_hugepage/hpage_pmd_size \
        /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor /sys/devices/system/cpu/cpufreq/boost \
        /sys/devices/system/cpu/intel_pstate/no_turbo /sys/devices/system/cpu/smt/active \
        /sys/devices/system/cpu/vulnerabilities/meltdown /sys/devices/system/cpu/cpu0/cache/index[0-9]/level \
        /sys/devices/system/cpu/cpu0/cache/index[0-9]/type /sys/devices/system/cpu/cpu0/cache/index[0-9]/size \
        /sys/devices/system/clocksource/clocksource0/current_clocksource /proc/sys/kernel/numa_balancing \
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
    TLBBENCH_TREE=$2 awk '
        function finish() { if (path != "") close(path) }
        { sub(/\r$/, "") } # mail programs add them
        /^=== / {
            finish(); name = $2; hex = ($3 == "hex")
            if (name ~ /(^|\/)\.\.(\/|$)/ || name ~ /^\// || name ~ /[^A-Za-z0-9_.,:@+\/-]/) {
                print "capture.sh: line " NR ": unsafe path " name > "/dev/stderr"; exit 1
            }
            path = ENVIRON["TLBBENCH_TREE"] "/" name; directory = "/" name; sub(/\/[^\/]*$/, "", directory)
            if (system("mkdir -p -- \"$TLBBENCH_TREE" directory "\"") != 0) exit 1
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
whole_command_line=no
tlbbench=$(command -v tlbbench 2>/dev/null || true)
while [ $# -gt 0 ]; do
    case $1 in
    --processes) processes=yes ;;
    --whole-command-line) whole_command_line=yes ;;
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
