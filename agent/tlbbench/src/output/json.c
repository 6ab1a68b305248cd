/* SPDX-License-Identifier: Apache-2.0 */
#include "output/json.h"

/* Significant digits of a double: nine are finer than any measurement here and keep the document short. */
#define JSON_DOUBLE_DIGITS 9

/* Writes that fail stay known to the stream until json_finish() asks. */
static void newline(struct json *j)
{
    (void)fputc('\n', j->out);
    for (unsigned i = 0; i < j->depth; i++)
        (void)fputs("  ", j->out);
}

/* Length of the UTF-8 sequence at `s`, or 0 when the bytes are not valid UTF-8 (RFC 3629 table). */
static size_t utf8_length(const unsigned char *s, size_t left)
{
    size_t need;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;

    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xC2 && s[0] <= 0xDF) {
        need = 2;
    } else if (s[0] >= 0xE0 && s[0] <= 0xEF) {
        need = 3;
        low = s[0] == 0xE0 ? 0xA0 : 0x80;
        high = s[0] == 0xED ? 0x9F : 0xBF;
    } else if (s[0] >= 0xF0 && s[0] <= 0xF4) {
        need = 4;
        low = s[0] == 0xF0 ? 0x90 : 0x80;
        high = s[0] == 0xF4 ? 0x8F : 0xBF;
    } else {
        return 0;
    }
    if (left < need || s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < need; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    return need;
}

static void put_escaped(struct json *j, unsigned char c)
{
    static const char special[] = "\"\\\n\t";
    const char *found = c != '\0' ? strchr(special, c) : NULL;

    if (found != NULL)
        (void)fprintf(j->out, "\\%c", "\"\\nt"[found - special]);
    else if (c < 0x20 || c == 0x7F)
        (void)fprintf(j->out, "\\u%04x", c);
    else
        (void)fputc((char)c, j->out);
}

static void put_string(struct json *j, const char *value, size_t length)
{
    const unsigned char *s = (const unsigned char *)value;

    (void)fputc('"', j->out);
    for (size_t i = 0; i < length;) {
        size_t bytes = utf8_length(s + i, length - i);

        if (bytes == 0) {
            (void)fputs("\xEF\xBF\xBD", j->out); /* U+FFFD: the document stays valid whatever /proc held */
            i++;
        } else if (bytes == 1) {
            put_escaped(j, s[i]);
            i++;
        } else {
            (void)fwrite(s + i, 1, bytes, j->out);
            i += bytes;
        }
    }
    (void)fputc('"', j->out);
}

/* Writes the comma, the line break and the key that come before every value. */
static void prefix(struct json *j, const char *key)
{
    if (j->depth == 0)
        return;
    if (j->has_items[j->depth])
        (void)fputc(',', j->out);
    if (j->depth <= JSON_INDENT_DEPTH)
        newline(j);
    else if (j->has_items[j->depth])
        (void)fputc(' ', j->out);
    j->has_items[j->depth] = true;
    if (j->is_array[j->depth]) {
        if (key != NULL)
            j->failed = true;
        return;
    }
    if (key == NULL) {
        j->failed = true;
        key = "";
    }
    put_string(j, key, strlen(key));
    (void)fputs(": ", j->out);
}

void json_begin(struct json *j, const char *key, bool is_array)
{
    prefix(j, key);
    if (j->depth == JSON_MAX_DEPTH) {
        j->failed = true;
        return;
    }
    (void)fputc(is_array ? '[' : '{', j->out);
    j->depth++;
    j->has_items[j->depth] = false;
    j->is_array[j->depth] = is_array;
}

void json_end(struct json *j, bool is_array)
{
    if (j->depth == 0 || j->is_array[j->depth] != is_array) {
        j->failed = true;
        return;
    }
    bool had_items = j->has_items[j->depth];
    bool indented = j->depth <= JSON_INDENT_DEPTH;

    j->depth--;
    if (had_items && indented)
        newline(j);
    (void)fputc(is_array ? ']' : '}', j->out);
}

void json_init(struct json *j, FILE *out)
{
    memset(j, 0, sizeof(*j));
    j->out = out;
}

int json_finish(struct json *j)
{
    (void)fputc('\n', j->out);
    return fflush(j->out) != 0 || ferror(j->out) != 0 || j->failed || j->depth != 0 ? -1 : 0;
}

size_t json_begin_list(struct json *j, const char *key)
{
    json_begin_array(j, key);
    return 0;
}

bool json_next(struct json *j, size_t index, size_t count)
{
    if (index > 0)
        json_end_object(j);
    if (index < count)
        json_begin_object(j, NULL);
    else
        json_end_array(j);
    return index < count;
}

void json_string(struct json *j, const char *key, const char *value)
{
    if (value == NULL)
        json_null(j, key);
    else
        json_string_n(j, key, value, strlen(value));
}

void json_string_n(struct json *j, const char *key, const char *value, size_t length)
{
    prefix(j, key);
    put_string(j, value, length);
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
    prefix(j, key);
    (void)fprintf(j->out, "%" PRIu64, value);
}

void json_i64(struct json *j, const char *key, int64_t value)
{
    prefix(j, key);
    (void)fprintf(j->out, "%" PRId64, value);
}

void json_double(struct json *j, const char *key, double value)
{
    if (!isfinite(value)) {
        json_null(j, key);
        return;
    }
    prefix(j, key);
    (void)fprintf(j->out, "%.*g", JSON_DOUBLE_DIGITS, value);
}

void json_duration(struct json *j, const char *key, double value)
{
    json_double(j, key, value < 0 ? 0 : value);
}

void json_bool(struct json *j, const char *key, bool value)
{
    prefix(j, key);
    (void)fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key)
{
    prefix(j, key);
    (void)fputs("null", j->out);
}

void json_u64_or_null(struct json *j, const char *key, uint64_t value, uint64_t unknown)
{
    if (value == unknown)
        json_null(j, key);
    else
        json_u64(j, key, value);
}

void json_text_or_null(struct json *j, const char *key, const char *text)
{
    json_string(j, key, text != NULL && text[0] != '\0' ? text : NULL);
}

void json_i64_or_null(struct json *j, const char *key, int64_t value)
{
    if (value < 0)
        json_null(j, key);
    else
        json_i64(j, key, value);
}
