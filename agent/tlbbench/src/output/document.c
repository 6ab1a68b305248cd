/* SPDX-License-Identifier: Apache-2.0 */
#include "output/to_json.h"

#include "base/clock.h"
#include "machine/cpuid.h"
#include "machine/cpuid_tlb.h"

static void sections_to_json(const struct document *d, struct json *j)
{
    json_begin_array(j, "sections");
    for (size_t i = 0; i < d->section_count; i++) {
        json_begin_object(j, NULL);
        json_string(j, "name", d->sections[i].name);
        verdict_to_json(&d->sections[i].verdict, j);
        json_double(j, "duration_seconds", d->sections[i].duration_seconds);
        json_end_object(j);
    }
    json_end_array(j);
}

/* What CPUID says, structure by structure, before anything is summed or compared. */
static void cpuid_to_json(const struct environment *environment, struct json *j)
{
    struct cpuid_identity identity;
    struct cpuid_tlb tlb;

    cpuid_identify(&environment->cpuid, &identity);
    cpuid_tlb_decode(&environment->cpuid, &identity, &tlb);
    json_begin_object(j, "cpuid_tlb");
    verdict_to_json(&tlb.verdict, j);
    json_begin_array(j, "leaf2_descriptors");
    for (size_t i = 0; i < tlb.descriptor_count; i++)
        json_u64(j, NULL, tlb.descriptors[i]);
    json_end_array(j);
    json_bool(j, "l2_size_x32", tlb.l2_size_x32);
    json_bool(j, "l2_size_doubtful", tlb.l2_size_doubtful);
    tlb_structures_to_json(tlb.structures, tlb.structure_count, j);
    json_end_object(j);
}

struct document document_start(const char *command, uint64_t seed, const struct environment *environment)
{
    struct document document = {
        .command = command, .seed = seed, .environment = environment, .start_ns = clock_now_ns()};

    (void)clock_gettime(CLOCK_REALTIME, &document.started_at);
    return document;
}

void document_begin(const struct document *d, FILE *out, struct json *j)
{
    char started[32] = "";
    struct tm utc;

    if (gmtime_r(&d->started_at.tv_sec, &utc) != NULL)
        (void)strftime(started, sizeof(started), "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_init(j, out);
    json_begin_object(j, NULL);
    json_u64(j, "schema_version", DOCUMENT_SCHEMA_VERSION);
    json_begin_object(j, "tool");
    json_string(j, "name", "tlbbench");
    json_string(j, "version", TLBBENCH_VERSION);
    json_end_object(j);
    json_string(j, "command", d->command);
    json_string(j, "profile", d->profile);
    json_u64(j, "seed", d->seed);
    json_string(j, "started_at", started);
    json_double(j, "duration_seconds", (double)(clock_now_ns() - d->start_ns) / 1e9);
    json_i64(j, "exit_status", d->exit_status);
    sections_to_json(d, j);
    json_begin_object(j, "environment");
    environment_to_json(d->environment, j);
    cpuid_to_json(d->environment, j);
    if (d->processes != NULL)
        processes_to_json(d->processes, j);
    json_end_object(j);
}

int document_end(struct json *j)
{
    json_end_object(j);
    return json_finish(j);
}
