/* SPDX-License-Identifier: Apache-2.0 */
/* tlbbench: what this machine's TLBs are and what each page size costs here. Only this file exits. */
#include "base/text.h"
#include "cli/commands.h"

#include <fcntl.h>

/* Footprints of many GiB and their page tables do not fit a smaller address space. */
_Static_assert(sizeof(void *) == 8, "tlbbench needs a 64-bit system");

/* One line, whatever an argument or a file held: no control character reaches the terminal. */
static int fail(char error[OPTIONS_ERROR_BYTES], int status)
{
    text_clean(error);
    (void)fprintf(stderr, "tlbbench: %s\n", error);
    return status;
}

/* A journal or a segment must not become standard output because that was closed: what is closed stays unwritable. */
static void occupy_standard_streams(void)
{
    int fd = 0;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

static int finish_output(char error[OPTIONS_ERROR_BYTES])
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return EXIT_DONE;
    (void)snprintf(error, OPTIONS_ERROR_BYTES, "the output cannot be written: %s", strerror(errno));
    return fail(error, EXIT_FAILED);
}

/* A run with --reserve that was killed left its pools to the next start of a command that measures. Those that observe
 * promise to change nothing, and only say so. */
static void recover(const struct options *options)
{
    if (options->root[0] != '\0' || options->command == COMMAND_DECODE)
        return;
    if (options->command == COMMAND_INFO || options->command == COMMAND_COUNTERS) {
        if (reservation_is_left(&RESERVE_SYSTEM))
            (void)fputs("tlbbench: a run that was killed left huge page pools raised; the next command that measures "
                        "restores them\n",
                        stderr);
        return;
    }
    int restored = reservation_recover(&RESERVE_SYSTEM);

    if (restored > 0)
        (void)fputs("tlbbench: restored the huge page pools of a run that was killed\n", stderr);
    if (restored < 0)
        (void)fputs("tlbbench: the huge page pools of a run that was killed could not be restored\n", stderr);
}

/* Returns the exit status of the program, with one line in `error` unless something was printed. */
static int run_command(const struct options *options, char error[OPTIONS_ERROR_BYTES])
{
    static struct environment environment; /* large */
    int status = EXIT_FAILED;

    if (options_check_root(options, error) != OPTIONS_OK)
        return EXIT_USAGE;
    if (options->command == COMMAND_INFO)
        status = info_print(options, &environment, stdout, error) == 0 ? EXIT_DONE : EXIT_FAILED;
    else if (options->command == COMMAND_COUNTERS)
        status = counters_print(options, &environment, stdout, error);
    else if (options->command == COMMAND_DECODE)
        status = decode_print(options, &environment, stdout, error) == 0 ? EXIT_DONE : EXIT_FAILED;
    else
        status = measure_print(options, &environment, stdout, error);
    environment_free(&environment);
    return status;
}

int main(int argc, char **argv)
{
    struct options options;
    char error[OPTIONS_ERROR_BYTES];

    occupy_standard_streams();
    switch (options_parse(&options, argc, argv, error)) {
    case OPTIONS_HELP:
        options_print_help(stdout);
        return finish_output(error);
    case OPTIONS_VERSION:
        (void)puts("tlbbench " TLBBENCH_VERSION);
        return finish_output(error);
    case OPTIONS_ERROR:
        return fail(error, EXIT_USAGE);
    case OPTIONS_OK:
        break;
    }
    options.json = options.json || (!options.text && !isatty(STDOUT_FILENO));
    recover(&options);
    int status = run_command(&options, error);

    return status == EXIT_FAILED || status == EXIT_USAGE ? fail(error, status) : status;
}
