/* SPDX-License-Identifier: Apache-2.0 */
/* The processor's own counter of page walks as a witness of the second level: times can be soft, walks are counted. */
#include "geometry/work.h"

enum { WARM_LAPS = 2, COUNTED_LAPS = 16 };

/* Cycles this far inside and outside of the level's interval. Other work takes entries of any level now and then, and
 * replacement that is not LRU keeps some pages of a cycle that is too long. */
#define HELD_SHARE 0.75
#define MISSED_SHARE 2.0
#define HELD_FRACTION_MAX 0.10
#define MISSED_FRACTION_MIN 0.25

/* Walks per access of a cycle over so many zero pages; NAN with the reason. */
static double count_walks(const struct session *session, size_t pages, struct verdict *verdict)
{
    struct rng rng = rng_new(session->seed, pages);
    uint32_t *order = malloc(pages * sizeof(*order));
    struct zero_window zeroes = {0};
    double walks = NAN;

    if (order == NULL) {
        verdict_set(verdict, STATUS_NO_MEMORY, "no memory for the order of %zu pages", pages);
    } else if (zero_window_open(&zeroes, session->base_page_bytes, pages, verdict) == 0) {
        struct chase chase = zero_window_link(&zeroes, false, pages, &rng, order);

        tlb_flush();
        chase_walk(&chase, WARM_LAPS * pages);
        double before = session->counted_walks(session->walks_context);

        chase_walk(&chase, COUNTED_LAPS * pages);
        walks = (session->counted_walks(session->walks_context) - before) / (double)(COUNTED_LAPS * pages);
    }
    zero_window_close(&zeroes);
    free(order);
    return walks;
}

static void judge(struct walk_witness *witness)
{
    double held = witness->held_fraction;
    double missed = witness->missed_fraction;

    if (isnan(held) || isnan(missed))
        verdict_set(&witness->verdict, STATUS_CANNOT_TELL, "the processor's counter of walks could not be read");
    else if (held == 0 && missed == 0)
        verdict_set(&witness->verdict, STATUS_CANNOT_TELL,
                    "the processor counts no walk at all: a hypervisor may filter its events");
    else if (held > HELD_FRACTION_MAX || missed < MISSED_FRACTION_MIN)
        verdict_set(&witness->verdict, STATUS_NOISY,
                    "the processor counts walks at %.0f %% of the accesses to %" PRIu64
                    " pages and at %.0f %% of those to %" PRIu64,
                    100 * held, witness->held_pages, 100 * missed, witness->missed_pages);
}

void geometry_call_witness(struct geometry_work *work)
{
    const struct session *session = work->session;
    struct walk_witness *witness = &work->result->witness;
    struct tlb_level *level = geometry_find_measured(work->result, 2, session->base_page_bytes);

    *witness = (struct walk_witness){session->walks_verdict, 0, 0, NAN, NAN};
    if (session->counted_walks == NULL)
        return;
    if (level == NULL) {
        verdict_set(&witness->verdict, STATUS_CANNOT_TELL, "no second level was found that it could be asked about");
        return;
    }
    witness->held_pages = (uint64_t)(HELD_SHARE * level->entries_min);
    witness->missed_pages = (uint64_t)(MISSED_SHARE * level->entries_max);
    witness->held_fraction = count_walks(session, (size_t)witness->held_pages, &witness->verdict);
    witness->missed_fraction = count_walks(session, (size_t)witness->missed_pages, &witness->verdict);
    if (witness->verdict.status == STATUS_OK)
        judge(witness);
    if (witness->verdict.status != STATUS_NOISY)
        return;
    level->confidence = CONFIDENCE_LOW;
    (void)snprintf(level->note, sizeof(level->note), "%.150s", witness->verdict.reason);
}
