/* SPDX-License-Identifier: Apache-2.0 */
#include "timing/sweep_samples.h"

/* A median with a larger standard error gets more rounds where they are allowed: the median of a repeated run then
 * mostly lies within 2 %. */
#define MEDIAN_ERROR_SHARE 0.007
/* Of a stolen round, batches above the point's best by more than this go. */
#define STOLEN_EXCESS_SHARE 0.05

void samples_keep(struct sweep_samples *samples, double ns, bool alone)
{
    if (alone && samples->count < SWEEP_SAMPLES_MAX)
        samples->ns[samples->count++] = ns;
    else if (!alone && samples->contended_count < SWEEP_CONTENDED_MAX)
        samples->contended_ns[samples->contended_count++] = ns;
}

/* Figures of an idle SMT sibling if there are enough; else of all. */
void samples_summarise(struct sweep_samples *samples)
{
    double all[SWEEP_SAMPLES_MAX + SWEEP_CONTENDED_MAX];
    size_t count = samples->count;

    memcpy(all, samples->ns, count * sizeof(*all));
    if (count < SWEEP_IDLE_MIN) {
        memcpy(all + count, samples->contended_ns, samples->contended_count * sizeof(*all));
        count += samples->contended_count;
    }
    statistics_summarise(all, count, samples->dropped, &samples->stats);
}

size_t samples_all(const struct sweep_samples *samples)
{
    return samples->count + samples->contended_count;
}

bool samples_lack_idle(const struct sweep_samples *samples, size_t wanted)
{
    return samples->count < wanted && samples->contended_count > 0;
}

/* The standard error of a median, estimated from the MAD as for normal noise. */
bool samples_are_uncertain(const struct sweep_samples *samples)
{
    double sorted[SWEEP_SAMPLES_MAX];

    if (samples->count < SWEEP_SAMPLES_MIN || samples->count == SWEEP_SAMPLES_MAX)
        return samples->count < SWEEP_SAMPLES_MIN;
    memcpy(sorted, samples->ns, samples->count * sizeof(*sorted));
    double median = statistics_median(sorted, samples->count);
    double deviation = 1.4826 * statistics_mad(sorted, samples->count, median);

    return 1.2533 * deviation / sqrt((double)samples->count) > MEDIAN_ERROR_SHARE * median;
}

/* Where a kernel does not take stolen time out of processor time, a stolen batch passes the guard. It stands out: time
 * is stolen for a large part of a batch or more. So of a stolen round the batches go that are well above the point's
 * best. */
void samples_drop_stolen(struct sweep_samples *samples, size_t first)
{
    double best = samples_best(samples);
    size_t kept = first;

    for (size_t index = first; index < samples->count; index++)
        if (samples->ns[index] <= (1 + STOLEN_EXCESS_SHARE) * best)
            samples->ns[kept++] = samples->ns[index];
    samples->dropped += (unsigned)(samples->count - kept);
    samples->count = kept;
}

double samples_best(const struct sweep_samples *samples)
{
    double best = INFINITY;

    for (size_t index = 0; index < samples->count; index++)
        best = fmin(best, samples->ns[index]);
    for (size_t index = 0; index < samples->contended_count; index++)
        best = fmin(best, samples->contended_ns[index]);
    return best;
}
