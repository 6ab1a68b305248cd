/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that observe and do not measure: info and decode. */
#pragma once

#include "cli/options.h"

#include <stdio.h>

/* Print to `out`, as JSON or as text. Return 0, or -1 with one line in `error`. */
int info_print(const struct options *options, FILE *out, char error[OPTIONS_ERROR_BYTES]);
int decode_print(const struct options *options, FILE *out, char error[OPTIONS_ERROR_BYTES]);
