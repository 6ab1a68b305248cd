/* SPDX-License-Identifier: Apache-2.0 */
/* Draws ranks with Zipf popularity: rank k (from 0) has weight 1 / (k + 1)^exponent. */
#pragma once

#include "base/rng.h"

#include <stdint.h>

struct zipf {
    uint64_t count;
    double exponent;
    double area; /* of the hat function over all ranks */
};

/* `exponent` > 0 and not 1 (0.99 is the usual one of database benchmarks). */
struct zipf zipf_new(uint64_t count, double exponent);

/* Rejection against the integral of x^-exponent: exact popularity, about one draw a sample, no table. */
uint64_t zipf_draw(const struct zipf *zipf, struct rng *rng);
