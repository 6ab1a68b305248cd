/* SPDX-License-Identifier: Apache-2.0 */
/* tlbbench: what this machine's TLBs are and what each page size costs here. Only this file exits. */
#include "base/signals.h"
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

/* What was printed must have arrived. Returns the exit status of the program, with its line on standard error. */
static int finish(int status, char error[OPTIONS_ERROR_BYTES])
{
    if (status == EXIT_FAILED || status == EXIT_USAGE)
        return fail(error, status);
    if (status >= 0 && fflush(stdout) == 0 && ferror(stdout) == 0)
        return status;
    (void)snprintf(error, OPTIONS_ERROR_BYTES, "the output cannot be written: %s", strerror(errno));
    return fail(error, EXIT_FAILED);
}

/* A run with --reserve that was killed left its pools to the next start of a command that measures. Those that observe
 * promise to change nothing, and only say so. */
static void recover(const struct options *options)
{
    bool observes = options->command == COMMAND_INFO || options->command == COMMAND_COUNTERS;

    if (options->root[0] != '\0' || options->command == COMMAND_DECODE)
        return;
    int found = reservation_recover(&RESERVE_SYSTEM, !observes);

    if (found != 0)
        (void)fprintf(stderr, "tlbbench: %s\n",
                      found < 0  ? "the huge page pools of a run that was killed could not be restored"
                      : observes ? "a run that was killed left huge page pools raised; the next command that measures "
                                   "restores them"
                                 : "restored the huge page pools of a run that was killed");
}

static int run_command(const struct options *options, char error[OPTIONS_ERROR_BYTES])
{
    static command_print *const commands[COMMAND_COUNT] = {
        [COMMAND_INFO] = info_print, [COMMAND_DECODE] = decode_print, [COMMAND_COUNTERS] = counters_print};
    static struct environment environment; /* large */
    struct document document = document_start(command_name(options->command), options->seed, &environment);
    command_print *print = commands[options->command] != NULL ? commands[options->command] : measure_print;

    if (options->command != COMMAND_INFO && options->command != COMMAND_DECODE && signals_install() != 0) {
        (void)snprintf(error, OPTIONS_ERROR_BYTES, "signals cannot be handled: %s", strerror(errno));
        return EXIT_FAILED;
    }
    /* A dump is all that decode reads. */
    if (options->command != COMMAND_DECODE && environment_read(&environment, options->root) != 0) {
        (void)snprintf(error, OPTIONS_ERROR_BYTES,
                       "--root: '%.200s' is no captured tree; valid: a directory that holds proc and sys",
                       options->root);
        return EXIT_USAGE;
    }
    int status = print(options, &document, &environment, stdout, error);

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
        return finish(EXIT_DONE, error);
    case OPTIONS_VERSION:
        (void)puts("tlbbench " TLBBENCH_VERSION);
        return finish(EXIT_DONE, error);
    case OPTIONS_ERROR:
        return fail(error, EXIT_USAGE);
    case OPTIONS_OK:
        break;
    }
    options.json = options.json || (!options.text && !isatty(STDOUT_FILENO));
    recover(&options);
    return finish(run_command(&options, error), error);
}
