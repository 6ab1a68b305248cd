/* SPDX-License-Identifier: Apache-2.0 */
/* Any sequence of calls gives either a well-formed document or a failure from json_finish(). */
#include "fuzz.h"
#include "output/json.h"

#include <stdio.h>

/* --- a strict reader: RFC 8259, well-formed UTF-8 is checked by the bytes' ranges --- */

struct reader {
    const unsigned char *at, *end;
};

static bool read_value(struct reader *r, unsigned depth);

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
}

static bool take(struct reader *r, const char *text)
{
    size_t length = strlen(text);

    if ((size_t)(r->end - r->at) < length || memcmp(r->at, text, length) != 0)
        return false;
    r->at += length;
    return true;
}

static bool is_hex(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool read_escape(struct reader *r)
{
    if (r->at == r->end)
        return false;
    unsigned char c = *r->at++;

    if (c != 'u')
        return memchr("\"\\/bfnrt", c, 8) != NULL;
    for (int i = 0; i < 4; i++)
        if (r->at == r->end || !is_hex(*r->at++))
            return false;
    return true;
}

static bool read_continuation(struct reader *r, unsigned char first)
{
    unsigned more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;

    if (first < 0xC2 || first > 0xF4)
        return false;
    for (unsigned i = 0; i < more; i++)
        if (r->at == r->end || (*r->at++ & 0xC0) != 0x80)
            return false;
    return true;
}

static bool read_string(struct reader *r)
{
    if (!take(r, "\""))
        return false;
    while (r->at < r->end) {
        unsigned char c = *r->at++;

        if (c == '"')
            return true;
        if (c < 0x20 || (c == '\\' && !read_escape(r)) || (c >= 0x80 && !read_continuation(r, c)))
            return false;
    }
    return false;
}

static bool read_digits(struct reader *r)
{
    const unsigned char *start = r->at;

    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > start;
}

static bool read_number(struct reader *r)
{
    (void)take(r, "-");
    if (!take(r, "0") && !read_digits(r))
        return false;
    if (take(r, ".") && !read_digits(r))
        return false;
    if (take(r, "e") || take(r, "E")) {
        (void)(take(r, "+") || take(r, "-"));
        return read_digits(r);
    }
    return true;
}

static bool read_members(struct reader *r, bool is_object, unsigned depth)
{
    const char *close = is_object ? "}" : "]";

    skip_blanks(r);
    if (take(r, close))
        return true;
    for (;;) {
        skip_blanks(r);
        if (is_object && (!read_string(r) || !take(r, ":")))
            return false;
        if (!read_value(r, depth + 1))
            return false;
        skip_blanks(r);
        if (take(r, close))
            return true;
        if (!take(r, ","))
            return false;
    }
}

static bool read_value(struct reader *r, unsigned depth)
{
    skip_blanks(r);
    if (depth > JSON_MAX_DEPTH || r->at == r->end)
        return false;
    if (take(r, "{"))
        return read_members(r, true, depth);
    if (take(r, "["))
        return read_members(r, false, depth);
    if (*r->at == '"')
        return read_string(r);
    return take(r, "null") || take(r, "true") || take(r, "false") || read_number(r);
}

/* --- the calls --- */

struct input {
    const uint8_t *data;
    size_t left;
};

static uint64_t take_bytes(struct input *in, size_t count)
{
    uint64_t value = 0;

    for (size_t i = 0; i < count && in->left > 0; i++, in->left--)
        value = value << 8 | *in->data++;
    return value;
}

/* One call, chosen by a byte; keys are given as the place wants them, except when the byte says to misuse. */
static void call(struct json *j, struct input *in, unsigned *depth, bool arrays[256])
{
    uint64_t choice = take_bytes(in, 1);
    bool misuse = (choice & 0x80) != 0 && (choice & 0x40) != 0;
    bool wants_key = *depth > 0 && !arrays[*depth % 256];
    const char *key = wants_key != misuse ? "key" : NULL;

    switch (choice % 11) {
    case 0:
    case 1:
        choice % 11 == 0 ? json_begin_object(j, key) : json_begin_array(j, key);
        ++*depth;
        arrays[*depth % 256] = choice % 11 == 1;
        break;
    case 2:
        if (*depth > 0) {
            arrays[*depth % 256] != misuse ? json_end_array(j) : json_end_object(j);
            --*depth;
        }
        break;
    case 3: {
        size_t length = take_bytes(in, 1) % 32;

        length = length < in->left ? length : in->left;
        json_string_n(j, key, (const char *)in->data, length);
        in->data += length;
        in->left -= length;
        break;
    }
    case 4:
        json_u64(j, key, take_bytes(in, 8));
        break;
    case 5:
        json_i64(j, key, (int64_t)take_bytes(in, 8));
        break;
    case 6: {
        uint64_t bits = take_bytes(in, 8);
        double value = 0;

        memcpy(&value, &bits, sizeof(value));
        json_double(j, key, value);
        break;
    }
    case 7:
        json_bool(j, key, (choice & 0x20) != 0);
        break;
    case 8:
        json_null(j, key);
        break;
    case 9:
        json_string(j, key, NULL);
        break;
    default:
        json_i64_or_null(j, key, (int64_t)take_bytes(in, 8));
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct json j;
    char *text = NULL;
    size_t length = 0;
    unsigned depth = 1;
    bool arrays[256] = {false};
    FILE *out = open_memstream(&text, &length);

    PROMISE(out != NULL);
    json_init(&j, out);
    json_begin_array(&j, NULL);
    arrays[1] = true;
    while (in.left > 0 && depth > 0)
        call(&j, &in, &depth, arrays);
    for (; depth > 0; depth--)
        arrays[depth % 256] ? json_end_array(&j) : json_end_object(&j);
    bool good = json_finish(&j) == 0;

    PROMISE(fclose(out) == 0);
    if (good) {
        struct reader reader = {(const unsigned char *)text, (const unsigned char *)text + length};

        PROMISE(read_value(&reader, 0));
        skip_blanks(&reader);
        PROMISE(reader.at == reader.end);
    }
    free(text);
    return 0;
}
