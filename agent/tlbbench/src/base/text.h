/* SPDX-License-Identifier: Apache-2.0 */
/* Building short texts in fixed buffers: what does not fit is cut, never written past the end. */
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
