/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include <ctype.h>

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
    uint64_t whole = 0;
    double fraction = 0;

    if (!read_digits(&text, 10, &whole))
        return false;
    if (*text == '.') {
        double scale = 0.1;

        for (text++; isdigit((unsigned char)*text); text++, scale /= 10)
            fraction += (*text - '0') * scale;
    }
    *seconds = (double)whole + fraction;
    return *text == '\0';
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
