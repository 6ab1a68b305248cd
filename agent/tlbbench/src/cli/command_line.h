/* SPDX-License-Identifier: Apache-2.0 */
/* Reading argv, the checks of what was read, and the help. */
#pragma once

#include "cli/options.h"
#include "machine/environment.h"

#include <stdio.h>

enum options_status { OPTIONS_OK, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_ERROR };

/* Writes the error's line. Returns OPTIONS_ERROR. */
enum options_status options_fail(char error[OPTIONS_ERROR_BYTES], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Parses argv. On OPTIONS_ERROR `error` holds one line that names the option, the value and the valid range. */
enum options_status options_parse(struct options *options, int argc, char **argv, char error[OPTIONS_ERROR_BYTES]);

/* Checks what only the machine can tell: page sizes, NUMA node, CPUs, memory, row widths. Same error contract; touches
 * nothing. */
enum options_status options_check(const struct options *options, const struct environment *environment,
                                  char error[OPTIONS_ERROR_BYTES]);

/* Checks that --root is a directory. Same error contract. */
enum options_status options_check_root(const struct options *options, char error[OPTIONS_ERROR_BYTES]);

const char *command_name(enum command_id command);

/* Prints the help that the command and option tables generate. */
void options_print_help(FILE *out);
