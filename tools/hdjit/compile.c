/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "message.h"
#include "output.h"
#include "source.h"
#include "target.h"

#include <stdio.h>
#include <string.h>

/* What the words and options leave open is decided here, before anything is loaded. */
static int check_usage(options *o, int words, char **word)
{
    if (words < 1)
        return fail(EXIT_CODE_USAGE, "compile needs a source file; see hdjit compile --help");
    if (words > 1)
        return fail(EXIT_CODE_USAGE, "compile takes one source file, but got '%s' too", word[1]);
    if (!o->output)
        return fail(EXIT_CODE_USAGE, "compile needs -o OUT; see hdjit compile --help");
    if (o->kind == HDRT_CODE_AUTO && source_ends(o->output, ".ptx"))
        o->kind = HDRT_CODE_PTX;
    else if (o->kind == HDRT_CODE_AUTO && source_ends(o->output, ".cubin"))
        o->kind = HDRT_CODE_CUBIN;
    if (o->kind == HDRT_CODE_CUBIN && o->compiler == HDRT_COMPILER_CLANG)
        return fail(EXIT_CODE_USAGE, "%s: clang makes PTX only, no cubin: use --compiler=nvrtc, or write PTX",
                    source_ends(o->output, ".cubin") ? o->output : "--cubin");
    target_compiler(o);
    return 0;
}

static int write_code(const options *o, const hdrt_image *image, int standard_output)
{
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
    output out;
    hdrt_status status = hdrt_image_get_info(image, &info);
    int code;

    if (status != HDRT_OK)
        return fail_status(-1, status, "%s", o->output);
    code = output_open(&out, o->output, standard_output);
    if (!code)
        code = output_write(&out, info.code, info.code_size);
    if (!code)
        code = output_finish(&out);
    output_close(&out);
    return code;
}

int command_compile(options *o, int argc, char **argv)
{
    hdrt_compile_options wanted;
    hdrt_image *image = NULL;
    session s = {0};
    char arch[TARGET_ROOM];
    int first, standard_output = -1, code = options_parse(o, COMMAND_COMPILE, argc, argv, &first);

    if (code != OPTIONS_GO_ON)
        return code;
    code = check_usage(o, argc - first, argv + first);
    if (code)
        return code;
    if (strcmp(o->output, "-") == 0)
        standard_output = take_standard_output();
    source_wanted(o, &wanted);
    code = target_choose(o, &wanted, arch);
    if (!code)
        code = session_open_compile_only(o, &s);
    if (!code)
        code = source_compile(&s, argv[first], &wanted, &image);
    if (!code)
        code = write_code(o, image, standard_output);
    hdrt_image_destroy(image);
    session_close(&s);
    return code;
}
