/* SPDX-License-Identifier: Apache-2.0 */
/* Short texts: built in fixed buffers, where what does not fit is cut and never written past the end; and the parsers
 * of the command line, /proc and /sys, which refuse what they do not fully understand. */
#pragma once

#include "base/std.h"

/* Appends to the NUL-terminated `text` in a buffer of `size` bytes. */
void text_append(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The line after this one; the end of the text after the last. */
const char *text_next_line(const char *line);

/* Cuts the blanks at the end of `text`, which it returns. */
char *text_without_end(char *text);

/* True when the first `word_length` bytes of `word` are an item of the list, whose items any of `separators` part. */
bool text_has_word(const char *list, size_t length, const char *separators, const char *word, size_t word_length);

/* Replaces what is not printable ASCII by '?': for terminals whose character set is not known. */
void text_ascii(char *text);

/* Replaces control characters by '?', so that no file, name or argument can drive a terminal or forge a line. */
void text_clean(char *text);

/* "4K", "2M", "1G", or plain bytes when the size is not a whole unit. Returns `text`. */
#define PAGE_TEXT_BYTES 24
char *page_text(uint64_t page_bytes, char text[PAGE_TEXT_BYTES]);

enum { CPU_LIST_MAX = 4096 }; /* CONFIG_NR_CPUS of the largest distribution kernels is 8192; servers stay below this */

/* A set of CPU or node numbers, as in /sys/devices/system/cpu/online. */
struct cpu_list {
    uint64_t bits[CPU_LIST_MAX / 64];
    int count;
};

/* An unsigned as a set of small numbers, such as those of an enum. */
#define SET_BIT(value) (1u << (unsigned)(value))

/* A list of the command line. */
enum { NUMBER_LIST_MAX = 16 };
struct number_list {
    uint64_t items[NUMBER_LIST_MAX];
    size_t count;
};

bool number_list_has(const struct number_list *list, uint64_t number);

/* The largest number; 0 when there is none. */
uint64_t number_list_largest(const struct number_list *list);

/* Decimal or 0x-hexadecimal digits only. Returns false on anything else and on overflow. */
bool parse_u64(const char *text, uint64_t *value);

/* A size with an optional unit: bytes, or K, M, G, T (powers of 1024; "KiB" and "kB" mean the same). */
bool parse_size(const char *text, uint64_t *bytes);

/* Seconds with an optional fraction ("2.5"). */
bool parse_seconds(const char *text, double *seconds);

/* "0-3,8" -> the set; an empty text is the empty set. Trailing white space is allowed. */
bool parse_cpu_list(const char *text, struct cpu_list *list);
bool cpu_list_has(const struct cpu_list *list, int cpu);

/* Copies `text` into `out` without leading and trailing white space, cut to `size` - 1 bytes. Returns its length. */
size_t parse_trimmed(const char *text, char *out, size_t size);
