/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "help.h"
#include "message.h"
#include "output.h"
#include "response.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LIST_ROOM 256

static int dispatch(options *o, enum command command, int argc, char **argv)
{
    char list[LIST_ROOM];

    switch (command) {
    case COMMAND_COMPILE:
        return command_compile(o, argc, argv);
    case COMMAND_RUN:
        return command_run(o, argc, argv);
    case COMMAND_PIPE:
        return command_pipe(o, argc, argv);
    case COMMAND_INFO:
        return command_info(o, argc, argv);
    case COMMAND_ENV:
        return command_env(o, argc, argv);
    case COMMAND_INSPECT:
        return command_inspect(o, argc, argv);
    case COMMAND_LINK:
        return command_link(o, argc, argv);
    case COMMAND_PRECOMPILE:
        return command_precompile(o, argc, argv);
    case COMMAND_CACHE:
        return command_cache(o, argc, argv);
    default:
        return fail(EXIT_CODE_USAGE, "'%s' is no command: expected %s; see hdjit --help", argv[0],
                    command_list(COMMAND_NONE, list, sizeof list));
    }
}

static int run_command_line(options *o, int argc, char **argv)
{
    int first, code = options_parse(o, COMMAND_NONE, argc, argv, &first);
    char list[LIST_ROOM];

    if (code != OPTIONS_GO_ON)
        return code;
    if (first == argc)
        return fail(EXIT_CODE_USAGE, "no command: expected %s; see hdjit --help",
                    command_list(COMMAND_NONE, list, sizeof list));
    return dispatch(o, command_by_name(COMMAND_NONE, argv[first]), argc - first, argv + first);
}

int main(int argc, char **argv)
{
    options o;
    response words = {0};
    int code;

    protect_standard_streams();
    code = options_begin(&o);
    if (!code)
        code = response_expand(argc, argv, &words);
    if (!code)
        code = run_command_line(&o, words.count, words.list);
    options_end(&o);
    response_free(&words);
    /* Help into a full disk is a failure like any other. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == EXIT_CODE_OK)
        code = fail(EXIT_CODE_FAILED, "standard output: cannot be written: %s", strerror(errno));
    return code;
}
