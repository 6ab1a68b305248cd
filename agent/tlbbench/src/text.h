/* SPDX-License-Identifier: Apache-2.0 */
/* Building short texts in fixed buffers: what does not fit is cut, never written past the end. */
#ifndef TLBBENCH_TEXT_H
#define TLBBENCH_TEXT_H

#include <stddef.h>

/* Appends to the NUL-terminated `text` in a buffer of `size` bytes. */
void text_append(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Replaces control characters by '?', so that no file, name or argument can drive a terminal or forge a line. */
void text_clean(char *text);

#endif
