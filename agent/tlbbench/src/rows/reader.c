/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/parts.h"

enum {
    INDEX_ENTRY_BYTES = 8,
    BATCH_ROWS = 32, /* between two readings of the clock: its 20 ns vanish */
};

/* The usual skew of database benchmarks. */
#define ZIPF_EXPONENT 0.99

unsigned rows_bucket(double ns)
{
    double bucket = ns > 0.25 ? log2(ns * 4) * ROWS_BUCKETS_PER_OCTAVE : 0;

    return bucket >= ROWS_BUCKETS - 1 ? ROWS_BUCKETS - 1 : (unsigned)bucket;
}

double rows_bucket_ns(unsigned bucket)
{
    return exp2((bucket + 0.5) / ROWS_BUCKETS_PER_OCTAVE) / 4;
}

double rows_quantile_ns(const struct rows_counters *counters, unsigned workers, double quantile)
{
    uint64_t total = 0;
    uint64_t seen = 0;

    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned bucket = 0; bucket < ROWS_BUCKETS; bucket++) {
            for (unsigned number = 0; number < workers; number++) {
                uint32_t count = counters[number].histogram[bucket];

                total += pass == 0 ? count : 0;
                seen += pass == 1 ? count : 0;
            }
            if (pass == 1 && total > 0 && (double)seen >= quantile * (double)total)
                return rows_bucket_ns(bucket);
        }
    }
    return NAN;
}

uint64_t rows_count(uint64_t bytes, uint64_t row_bytes)
{
    return bytes / (row_bytes + INDEX_ENTRY_BYTES);
}

struct reader {
    const char *rows;
    const char *index; /* behind the rows, one entry per row */
    uint64_t row_bytes;
    uint64_t count;
    enum row_read read;
    enum row_keys keys;
    struct zipf zipf;
    struct permutation scatter; /* popular rows lie anywhere in the table */
    struct rng rng;
    uint64_t zero; /* the compiler must believe that loaded data decides the next address */
};

static uint64_t load(const char *address)
{
    return *(const volatile uint64_t *)address;
}

static uint64_t next_key(struct reader *reader)
{
    if (reader->keys == KEYS_UNIFORM)
        return rng_below(&reader->rng, reader->count);
    return permutation_at(&reader->scatter, zipf_draw(&reader->zipf, &reader->rng));
}

/* Reads one row; the address waits for `carry`, which the row before it left, as a query waits for the one before. */
static uint64_t read_row(struct reader *reader, uint64_t carry)
{
    uint64_t key = next_key(reader) + (carry & reader->zero);

    if (reader->read == READ_INDEX_THEN_ROW)
        key += load(reader->index + key * INDEX_ENTRY_BYTES) & reader->zero;
    const char *row = reader->rows + key * reader->row_bytes;
    uint64_t sum = load(row);

    if (reader->read != READ_HEADER)
        for (uint64_t offset = CACHE_LINE_BYTES; offset < reader->row_bytes; offset += CACHE_LINE_BYTES)
            sum += load(row + offset);
    return sum;
}

void rows_read_until_stopped(const struct rows_reading *reading, struct rows_counters *counters)
{
    const struct rows_spec *spec = reading->spec;
    uint64_t count = rows_count(reading->bytes, spec->row_bytes);
    struct reader reader = {
        .rows = reading->view,
        .index = reading->view + count * spec->row_bytes,
        .row_bytes = spec->row_bytes,
        .count = count,
        .read = spec->read,
        .keys = spec->keys,
        .zipf = zipf_new(count, ZIPF_EXPONENT),
        .scatter = permutation_new(count, reading->seed),
        .rng = rng_new(reading->seed, reading->worker), /* the same keys for every page size */
    };
    uint64_t carry = 0;
    uint64_t last_ns = clock_now_ns();

    __asm__ volatile("" : "+r"(reader.zero));
    while (!atomic_load_explicit(reading->stop, memory_order_relaxed)) {
        for (unsigned row = 0; row < BATCH_ROWS; row++)
            carry = read_row(&reader, carry);
        uint64_t now = clock_now_ns();

        counters->histogram[rows_bucket((double)(now - last_ns) / BATCH_ROWS)]++;
        counters->rows += BATCH_ROWS;
        last_ns = now;
    }
}

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
