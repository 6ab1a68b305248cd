/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "output/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sink {
    FILE *file;
    char *text;
    size_t length;
    struct json j;
};

static void sink_open(struct sink *sink)
{
    sink->text = NULL;
    sink->file = open_memstream(&sink->text, &sink->length);
    if (sink->file == NULL)
        abort();
    json_init(&sink->j, sink->file);
}

/* Ends the document; the text stays valid until sink_free(). */
static int sink_close(struct sink *sink)
{
    int status = json_finish(&sink->j);

    (void)fclose(sink->file);
    return status;
}

static void strings_are_escaped(struct harness *h)
{
    struct sink sink;

    sink_open(&sink);
    json_string(&sink.j, NULL, "a\"b\\c\n\t\x01\x7f");
    CHECK(sink_close(&sink) == 0);
    CHECK_TEXT(sink.text, "\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\"\n");
    free(sink.text);
}

static void invalid_utf8_is_replaced(struct harness *h)
{
    /* A stray continuation byte, an overlong form, a surrogate, a cut sequence; then two valid characters. */
    static const char *const bad[] = {"\x80", "\xC0\xAF", "\xED\xA0\x80", "\xE2\x82", "\xF5\x80\x80\x80"};
    struct sink sink;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        sink_open(&sink);
        json_string(&sink.j, NULL, bad[i]);
        CHECK(sink_close(&sink) == 0);
        CHECK(strstr(sink.text, "\xEF\xBF\xBD") != NULL);
        free(sink.text);
    }
    sink_open(&sink);
    json_string(&sink.j, NULL, "\xC3\xA9\xF0\x9F\x98\x80");
    CHECK(sink_close(&sink) == 0);
    CHECK_TEXT(sink.text, "\"\xC3\xA9\xF0\x9F\x98\x80\"\n");
    free(sink.text);
}

static void numbers_json_lacks_are_null(struct harness *h)
{
    struct sink sink;

    sink_open(&sink);
    json_begin_array(&sink.j, NULL);
    json_double(&sink.j, NULL, (double)NAN);
    json_double(&sink.j, NULL, (double)INFINITY);
    json_double(&sink.j, NULL, 1.5);
    json_double(&sink.j, NULL, 1e300);
    json_duration(&sink.j, NULL, -0.25);
    json_duration(&sink.j, NULL, (double)NAN);
    json_u64(&sink.j, NULL, UINT64_MAX);
    json_i64(&sink.j, NULL, INT64_MIN);
    json_i64_or_null(&sink.j, NULL, -1);
    json_i64_or_null(&sink.j, NULL, 0);
    json_string(&sink.j, NULL, NULL);
    json_end_array(&sink.j);
    CHECK(sink_close(&sink) == 0);
    CHECK_TEXT(
        sink.text,
        "[\n  null,\n  null,\n  1.5,\n  1e+300,\n  0,\n  null,\n  18446744073709551615,\n  -9223372036854775808,\n"
        "  null,\n  0,\n  null\n]\n");
    free(sink.text);
}

static void nesting_is_closed(struct harness *h)
{
    struct sink sink;

    sink_open(&sink);
    json_begin_object(&sink.j, NULL);
    json_begin_array(&sink.j, "empty");
    json_end_array(&sink.j);
    json_begin_object(&sink.j, "inner");
    json_bool(&sink.j, "yes", true);
    json_end_object(&sink.j);
    json_end_object(&sink.j);
    CHECK(sink_close(&sink) == 0);
    CHECK_TEXT(sink.text, "{\n  \"empty\": [],\n  \"inner\": {\n    \"yes\": true\n  }\n}\n");
    free(sink.text);
}

static void misuse_is_reported(struct harness *h)
{
    struct sink sink;

    sink_open(&sink);
    json_begin_object(&sink.j, NULL);
    CHECK(sink_close(&sink) == -1); /* not closed */
    free(sink.text);

    sink_open(&sink);
    json_begin_object(&sink.j, NULL);
    json_u64(&sink.j, NULL, 1); /* a member without a key */
    json_end_object(&sink.j);
    CHECK(sink_close(&sink) == -1);
    free(sink.text);

    sink_open(&sink);
    json_begin_array(&sink.j, NULL);
    json_end_object(&sink.j); /* closes the wrong kind */
    json_end_array(&sink.j);
    CHECK(sink_close(&sink) == -1);
    free(sink.text);

    sink_open(&sink);
    for (int i = 0; i <= JSON_MAX_DEPTH; i++)
        json_begin_array(&sink.j, NULL); /* one too deep */
    for (int i = 0; i < JSON_MAX_DEPTH; i++)
        json_end_array(&sink.j);
    CHECK(sink_close(&sink) == -1);
    free(sink.text);
}

static void write_errors_are_reported(struct harness *h)
{
    FILE *full = fopen("/dev/full", "w");
    struct json j;

    if (full == NULL) {
        harness_skip(h, "/dev/full is not there");
        return;
    }
    json_init(&j, full);
    json_string(&j, NULL, "text");
    CHECK(json_finish(&j) == -1);
    (void)fclose(full);
}

static const struct harness_case cases[] = {
    {"strings are escaped", strings_are_escaped},
    {"invalid UTF-8 is replaced", invalid_utf8_is_replaced},
    {"numbers that JSON lacks are null", numbers_json_lacks_are_null},
    {"nesting is closed", nesting_is_closed},
    {"misuse is reported", misuse_is_reported},
    {"write errors are reported", write_errors_are_reported},
};

HARNESS_MAIN("json", cases)
