/* SPDX-License-Identifier: Apache-2.0 */
/* A streaming writer for JSON (RFC 8259): no tree in memory, so the document costs no space while it measures. */
#pragma once

#include "base/std.h"

enum {
    JSON_MAX_DEPTH = 32,
    /* Deeper values stay on their parent's line: one curve point or one TLB level a line. */
    JSON_INDENT_DEPTH = 4,
};

/* Zero-initialise with json_init(). Do not read the fields. */
struct json {
    FILE *out;
    unsigned depth;
    bool has_items[JSON_MAX_DEPTH + 1];
    bool is_array[JSON_MAX_DEPTH + 1];
    bool failed;
};

/* Starts a document on `out`, which stays the caller's. */
void json_init(struct json *j, FILE *out);

/* Ends the document with a newline and flushes. Returns 0, or -1 when a write failed or the nesting was not closed. */
int json_finish(struct json *j);

/* `key` is NULL inside an array and at the top; it must not be NULL inside an object. */
void json_begin(struct json *j, const char *key, bool is_array);
void json_end(struct json *j, bool is_array);
#define json_begin_object(j, key) json_begin(j, key, false)
#define json_end_object(j) json_end(j, false)
#define json_begin_array(j, key) json_begin(j, key, true)
#define json_end_array(j) json_end(j, true)

/* An array of objects: for (size_t i = json_begin_list(j, key); json_next(j, i, count); i++) { members of item i } */
size_t json_begin_list(struct json *j, const char *key);
bool json_next(struct json *j, size_t index, size_t count);

/* Writes a string; NULL is written as null. Bytes that are not UTF-8 are replaced by U+FFFD. */
void json_string(struct json *j, const char *key, const char *value);
void json_string_n(struct json *j, const char *key, const char *value, size_t length);
void json_u64(struct json *j, const char *key, uint64_t value);
void json_i64(struct json *j, const char *key, int64_t value);
/* Writes a number with at most 9 significant digits; NaN and infinities, which JSON lacks, are written as null. */
void json_double(struct json *j, const char *key, double value);

/* A time that was found by subtraction: noise below zero is written as zero, not finite as null. */
void json_duration(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

/* Writes null where the value is unknown: a negative count; that very number; an empty text, or NULL. */
void json_i64_or_null(struct json *j, const char *key, int64_t value);
void json_u64_or_null(struct json *j, const char *key, uint64_t value, uint64_t unknown);
void json_text_or_null(struct json *j, const char *key, const char *text);

/* Writes up to 12 members of a struct under their own names. Whole numbers below zero, and empty texts, are null. */
#define JSON_MEMBERS(j, of, ...)                                                                                       \
    JSON_NTH(__VA_ARGS__, JSON_12, JSON_11, JSON_10, JSON_9, JSON_8, JSON_7, JSON_6, JSON_5, JSON_4, JSON_3, JSON_2,   \
             JSON_1, )                                                                                                 \
    (j, of, __VA_ARGS__)
#define JSON_NTH(a, b, c, d, e, f, g, h, i, j, k, l, nth, ...) nth
#define JSON_1(j, of, m)                                                                                               \
    _Generic((of)->m, unsigned                                                                                         \
             : json_u64, uint64_t                                                                                      \
             : json_u64, int                                                                                           \
             : json_i64_or_null, int64_t                                                                               \
             : json_i64_or_null, double                                                                                \
             : json_double, bool                                                                                       \
             : json_bool, default                                                                                      \
             : json_text_or_null)(j, #m, (of)->m)
#define JSON_2(j, of, m, ...) JSON_1(j, of, m), JSON_1(j, of, __VA_ARGS__)
#define JSON_3(j, of, m, ...) JSON_1(j, of, m), JSON_2(j, of, __VA_ARGS__)
#define JSON_4(j, of, m, ...) JSON_1(j, of, m), JSON_3(j, of, __VA_ARGS__)
#define JSON_5(j, of, m, ...) JSON_1(j, of, m), JSON_4(j, of, __VA_ARGS__)
#define JSON_6(j, of, m, ...) JSON_1(j, of, m), JSON_5(j, of, __VA_ARGS__)
#define JSON_7(j, of, m, ...) JSON_1(j, of, m), JSON_6(j, of, __VA_ARGS__)
#define JSON_8(j, of, m, ...) JSON_1(j, of, m), JSON_7(j, of, __VA_ARGS__)
#define JSON_9(j, of, m, ...) JSON_1(j, of, m), JSON_8(j, of, __VA_ARGS__)
#define JSON_10(j, of, m, ...) JSON_1(j, of, m), JSON_9(j, of, __VA_ARGS__)
#define JSON_11(j, of, m, ...) JSON_1(j, of, m), JSON_10(j, of, __VA_ARGS__)
#define JSON_12(j, of, m, ...) JSON_1(j, of, m), JSON_11(j, of, __VA_ARGS__)
