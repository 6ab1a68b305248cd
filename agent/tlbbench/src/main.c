/* SPDX-License-Identifier: Apache-2.0 */
/* tlbbench: what this machine's TLBs are and what each page size costs here. Only this file exits. */
#include "info.h"
#include "measure.h"
#include "options.h"
#include "reserve.h"

#include <stdio.h>
#include <unistd.h>

enum exit_status { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_PARTIAL = 3 };

static int fail(const char *error, int status)
{
    (void)fprintf(stderr, "tlbbench: %s\n", error);
    return (int)status;
}

static int observe(const struct options *options)
{
    char error[OPTIONS_ERROR_BYTES];

    if (options_check_root(options, error) != OPTIONS_OK)
        return fail(error, EXIT_USAGE);
    if ((options->command == COMMAND_INFO ? info_print : decode_print)(options, stdout, error) != 0)
        return fail(error, EXIT_FAILED);
    return EXIT_DONE;
}

int main(int argc, char **argv)
{
    struct options options;
    char error[OPTIONS_ERROR_BYTES];

    switch (options_parse(&options, argc, argv, error)) {
    case OPTIONS_HELP:
        options_print_help(stdout);
        return EXIT_DONE;
    case OPTIONS_VERSION:
        (void)puts("tlbbench " TLBBENCH_VERSION);
        return EXIT_DONE;
    case OPTIONS_ERROR:
        return fail(error, EXIT_USAGE);
    case OPTIONS_OK:
        break;
    }
    if (options.output == OUTPUT_AUTO)
        options.output = isatty(STDOUT_FILENO) ? OUTPUT_TEXT : OUTPUT_JSON;
    /* A run with --reserve that was killed left its pools to the next start, whatever that is. */
    if (options.root[0] == '\0' && options.command != COMMAND_DECODE && reservation_recover(&RESERVE_SYSTEM) != 0)
        (void)fputs("tlbbench: restored the huge page pools of a run that was killed\n", stderr);
    if (options.command == COMMAND_INFO || options.command == COMMAND_DECODE)
        return observe(&options);
    const int status = measure_print(&options, stdout, error);

    return status == EXIT_FAILED || status == EXIT_USAGE ? fail(error, status) : status;
}
