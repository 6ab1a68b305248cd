/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

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
