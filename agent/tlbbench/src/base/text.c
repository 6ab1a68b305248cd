/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <ctype.h>
#include <stdarg.h>

void text_append(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

void text_clean(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++)
        if (*p < 0x20 || *p == 0x7F)
            *p = '?';
}

const char *text_next_line(const char *line)
{
    line += strcspn(line, "\n");
    return *line == '\n' ? line + 1 : line;
}

char *text_without_end(char *text)
{
    size_t length = strlen(text);

    while (length > 0 && text[length - 1] == ' ')
        length--;
    text[length] = '\0';
    return text;
}

bool text_has_word(const char *list, size_t length, const char *separators, const char *word, size_t word_length)
{
    for (size_t start = 0; start < length;) {
        size_t end = start;

        while (end < length && strchr(separators, list[end]) == NULL)
            end++;
        if (end - start == word_length && memcmp(list + start, word, word_length) == 0)
            return true;
        start = end + 1;
    }
    return false;
}

void text_ascii(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++)
        if (*p < 0x20 || *p > 0x7E)
            *p = '?';
}

char *page_text(uint64_t page_bytes, char text[PAGE_TEXT_BYTES])
{
    static const struct {
        unsigned shift;
        char unit;
    } units[] = {{40, 'T'}, {30, 'G'}, {20, 'M'}, {10, 'K'}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        uint64_t unit = UINT64_C(1) << units[i].shift;

        if (page_bytes >= unit && page_bytes % unit == 0) {
            (void)snprintf(text, PAGE_TEXT_BYTES, "%" PRIu64 "%c", page_bytes / unit, units[i].unit);
            return text;
        }
    }
    (void)snprintf(text, PAGE_TEXT_BYTES, "%" PRIu64, page_bytes);
    return text;
}

bool number_list_has(const struct number_list *list, uint64_t number)
{
    for (size_t index = 0; index < list->count; index++)
        if (list->items[index] == number)
            return true;
    return false;
}

uint64_t number_list_largest(const struct number_list *list)
{
    uint64_t largest = 0;

    for (size_t index = 0; index < list->count; index++)
        largest = list->items[index] > largest ? list->items[index] : largest;
    return largest;
}

/* Reads digits from *text and moves it behind them. */
static bool read_digits(const char **text, int base, uint64_t *value)
{
    size_t count = strspn(*text, base == 10 ? "0123456789" : "0123456789abcdefABCDEF");

    errno = 0;
    *value = strtoull(*text, NULL, base);
    *text += count;
    return count > 0 && errno == 0;
}

bool parse_u64(const char *text, uint64_t *value)
{
    int base = 10;

    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        text += 2;
    }
    return read_digits(&text, base, value) && *text == '\0';
}

static bool read_unit(const char *text, unsigned *shift)
{
    static const char units[] = "KMGT";

    *shift = 0;
    if (*text == '\0' || strcmp(text, "B") == 0)
        return true;
    const char *unit = strchr(units, toupper((unsigned char)*text));

    if (unit == NULL)
        return false;
    *shift = 10 * (unsigned)(unit - units + 1);
    text++;
    return *text == '\0' || strcmp(text, "iB") == 0 || strcmp(text, "B") == 0;
}

bool parse_size(const char *text, uint64_t *bytes)
{
    uint64_t number = 0;
    unsigned shift = 0;

    if (!read_digits(&text, 10, &number) || !read_unit(text, &shift))
        return false;
    if (number > UINT64_MAX >> shift)
        return false;
    *bytes = number << shift;
    return true;
}

bool parse_seconds(const char *text, double *seconds)
{
    char *end = NULL;

    if (!isdigit((unsigned char)*text) || text[strspn(text, "0123456789.")] != '\0')
        return false;
    *seconds = strtod(text, &end);
    return *end == '\0' && isfinite(*seconds);
}

static void list_add(struct cpu_list *list, uint64_t cpu)
{
    uint64_t bit = UINT64_C(1) << (cpu % 64);

    if ((list->bits[cpu / 64] & bit) == 0)
        list->count++;
    list->bits[cpu / 64] |= bit;
}

bool parse_cpu_list(const char *text, struct cpu_list *list)
{
    memset(list, 0, sizeof(*list));
    while (isspace((unsigned char)*text))
        text++;
    while (*text != '\0') {
        uint64_t first = 0;

        if (!read_digits(&text, 10, &first))
            return false;
        uint64_t last = first;
        if (*text == '-') {
            text++;
            if (!read_digits(&text, 10, &last))
                return false;
        }
        if (last < first || last >= CPU_LIST_MAX)
            return false;
        for (uint64_t cpu = first; cpu <= last; cpu++)
            list_add(list, cpu);
        if (*text == ',' && text[1] != '\0') {
            text++;
            continue;
        }
        while (isspace((unsigned char)*text))
            text++;
        if (*text != '\0')
            return false;
    }
    return true;
}

bool cpu_list_has(const struct cpu_list *list, int cpu)
{
    return cpu >= 0 && cpu < CPU_LIST_MAX && (list->bits[cpu / 64] >> (cpu % 64) & 1) != 0;
}

size_t parse_trimmed(const char *text, char *out, size_t size)
{
    size_t length = strlen(text);

    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    while (length > 0 && isspace((unsigned char)*text)) {
        text++;
        length--;
    }
    if (length > size - 1)
        length = size - 1;
    memcpy(out, text, length);
    out[length] = '\0';
    return length;
}
