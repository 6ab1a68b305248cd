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
void json_begin_object(struct json *j, const char *key);
void json_end_object(struct json *j);
void json_begin_array(struct json *j, const char *key);
void json_end_array(struct json *j);

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

/* Writes null where the value is unknown: a negative count; that very number; an empty text. */
void json_i64_or_null(struct json *j, const char *key, int64_t value);
void json_u64_or_null(struct json *j, const char *key, uint64_t value, uint64_t unknown);
void json_text_or_null(struct json *j, const char *key, const char *text);
