/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "message.h"

#include <stdio.h>

int command_env(options *o, int argc, char **argv)
{
    hdrt_environment_variable variable = {0};
    int first, code = options_parse(o, COMMAND_ENV, argc, argv, &first);

    if (code != OPTIONS_GO_ON)
        return code;
    if (first < argc)
        return fail(EXIT_CODE_USAGE, "env takes no words, but got '%s'", argv[first]);
    for (uint32_t i = 0; hdrt_environment_get(i, &variable) == HDRT_OK; i++)
        printf("%s%s%s%s\n    %s (%s)\n", variable.name, variable.value ? "='" : "",
               variable.value ? variable.value : "", variable.value ? "'" : " is not set", variable.meaning,
               variable.type);
    return EXIT_CODE_OK;
}
