/* SPDX-License-Identifier: Apache-2.0 */
#include "results.h"

/* The names below are the document's; tlbbench.schema.json lists the same ones. */

const char *status_name(enum status status)
{
    static const char *const names[] = {
        [STATUS_OK] = "ok",
        [STATUS_SKIPPED] = "skipped",
        [STATUS_NOISY] = "noisy",
        [STATUS_NO_FREE_HUGEPAGES] = "no_free_hugepages",
        [STATUS_THP_NOT_GRANTED] = "thp_not_granted",
        [STATUS_FRACTURED] = "fractured",
        [STATUS_CPUID_HIDDEN] = "cpuid_hidden",
        [STATUS_STOPPED] = "stopped",
        [STATUS_NO_MEMORY] = "no_memory",
        [STATUS_MEMORY_LIMIT] = "memory_limit",
        [STATUS_CGROUP_LIMIT] = "cgroup_limit",
        [STATUS_ADDRESS_SPACE_LIMIT] = "address_space_limit",
        [STATUS_SIGBUS] = "sigbus",
        [STATUS_NOT_PERMITTED] = "not_permitted",
        [STATUS_UNSUPPORTED] = "unsupported",
        [STATUS_NOT_REACHED] = "not_reached",
        [STATUS_FAILED] = "failed",
    };

    return names[status];
}

const char *backing_kind_name(enum backing_kind kind)
{
    static const char *const names[] = {[BACKING_BASE] = "base", [BACKING_THP] = "thp", [BACKING_HUGETLB] = "hugetlb"};

    return names[kind];
}

const char *tlb_kind_name(enum tlb_kind kind)
{
    static const char *const names[] = {
        [TLB_DATA] = "data", [TLB_INSTRUCTION] = "instr", [TLB_UNIFIED] = "unified",
        [TLB_LOAD] = "load", [TLB_STORE] = "store",
    };

    return names[kind];
}

const char *fact_source_name(enum fact_source source)
{
    static const char *const names[] = {
        [SOURCE_CPUID] = "cpuid",
        [SOURCE_CATALOGUE] = "catalogue",
        [SOURCE_MEASURED] = "measured",
        [SOURCE_DEVICE_TREE] = "device_tree",
    };

    return names[source];
}

const char *confidence_name(enum confidence confidence)
{
    static const char *const names[] = {
        [CONFIDENCE_LOW] = "low", [CONFIDENCE_MEDIUM] = "medium", [CONFIDENCE_HIGH] = "high"};

    return names[confidence];
}

const char *alias_method_name(enum alias_method method)
{
    static const char *const names[] = {[METHOD_ALIASED] = "aliased", [METHOD_DISTINCT_LINES] = "distinct_lines"};

    return names[method];
}

const char *row_keys_name(enum row_keys keys)
{
    static const char *const names[] = {[KEYS_UNIFORM] = "uniform", [KEYS_ZIPF] = "zipf"};

    return names[keys];
}

const char *latency_curve_name(enum latency_curve curve)
{
    static const char *const names[LATENCY_CURVE_COUNT] = {[LAYOUT_LINE_PER_PAGE] = "line_per_page",
                                                           [LAYOUT_RANDOM_64B] = "random_64b",
                                                           [LAYOUT_PACKED] = "packed",
                                                           [LATENCY_PRESSURE] = "pressure"};

    return names[curve];
}

const char *row_read_name(enum row_read read)
{
    static const char *const names[] = {
        [READ_HEADER] = "header", [READ_ROW] = "row", [READ_INDEX_THEN_ROW] = "index_then_row"};

    return names[read];
}

const char *row_mode_name(enum row_mode mode)
{
    static const char *const names[] = {[MODE_THREADS] = "threads", [MODE_PROCESSES] = "processes"};

    return names[mode];
}
