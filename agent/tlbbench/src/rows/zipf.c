/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/parts.h"

#include <math.h>

/* Integral of x^-s from 1/2 on, up to a constant, and its inverse. The hat over rank k (k >= 1 here) is the integral
 * from k - 1/2 to k + 1/2, which is at least k^-s because x^-s is convex. */
static double hat_area(const struct zipf *zipf, double x)
{
    return (pow(x, 1 - zipf->exponent) - pow(0.5, 1 - zipf->exponent)) / (1 - zipf->exponent);
}

static double hat_inverse(const struct zipf *zipf, double area)
{
    return pow(area * (1 - zipf->exponent) + pow(0.5, 1 - zipf->exponent), 1 / (1 - zipf->exponent));
}

struct zipf zipf_new(uint64_t count, double exponent)
{
    struct zipf zipf = {.count = count, .exponent = exponent};

    zipf.area = hat_area(&zipf, (double)count + 0.5);
    return zipf;
}

uint64_t zipf_draw(const struct zipf *zipf, struct rng *rng)
{
    for (;;) {
        double x = hat_inverse(zipf, rng_unit(rng) * zipf->area);
        uint64_t rank = (uint64_t)llround(x);

        if (rank < 1 || rank > zipf->count)
            continue;
        double hat = hat_area(zipf, (double)rank + 0.5) - hat_area(zipf, (double)rank - 0.5);

        /* Far out the hat and the weight agree to many digits: no need to draw. */
        if (rank > 1000 || rng_unit(rng) * hat <= pow((double)rank, -zipf->exponent))
            return rank - 1;
    }
}
