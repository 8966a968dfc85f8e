/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "file.h"
#include "message.h"
#include "output.h"
#include "session.h"
#include "source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One input: its bytes, and the image where it is an image file. */
typedef struct piece {
    unsigned char *bytes;
    hdrt_image *image;
} piece;

static int read_piece(const char *path, piece *p, hdrt_link_input *input)
{
    static const char image_magic[] = "HDRTIMG\n", bundle_magic[] = "HDRTBDL\n";
    uint64_t size;
    hdrt_status status;
    int code = file_read(path, &p->bytes, &size);

    if (code)
        return code;
    if (size == 0)
        return fail(EXIT_CODE_FAILED, "%s: is empty: expected code to link", path);
    *input = (hdrt_link_input)HDRT_LINK_INPUT_INIT;
    input->name = path;
    if (size >= 8 && memcmp(p->bytes, bundle_magic, 8) == 0)
        return fail(EXIT_CODE_FAILED, "%s: is a bundle, which is for loading: link code for one target", path);
    if (size < 8 || memcmp(p->bytes, image_magic, 8) != 0) {
        input->code = p->bytes;
        input->code_size = (size_t)size;
        return 0;
    }
    status = hdrt_image_read(p->bytes, (size_t)size, path, &p->image);
    input->image = p->image;
    return status == HDRT_OK ? 0 : fail_last(status);
}

/* The target of the first input that tells; bytes of LTO-IR do not. */
static void find_arch(const piece *pieces, const hdrt_link_input *inputs, uint32_t count, char out[32])
{
    *out = 0;
    for (uint32_t i = 0; i < count && !*out; i++) {
        hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
        hdrt_image *image = NULL;

        if (!pieces[i].image && hdrt_image_read(inputs[i].code, inputs[i].code_size, NULL, &image) != HDRT_OK)
            continue;
        if (hdrt_image_get_info(image ? image : pieces[i].image, &info) == HDRT_OK && info.arch)
            snprintf(out, 32, "%s", info.arch);
        hdrt_image_destroy(image);
    }
}

static int link_failed(const options *o, hdrt_status status, bool messages)
{
    switch (status) {
    case HDRT_ERROR_COMPILE:
        return messages ? fail(EXIT_CODE_FAILED, "%s does not link", o->output)
                        : fail_status(EXIT_CODE_FAILED, status, "%s", o->output);
    case HDRT_ERROR_COMPANION:
        return fail_status(EXIT_CODE_NO_COMPILER, status, "%s", o->output);
    case HDRT_ERROR_UNSUPPORTED:
        return fail_status(EXIT_CODE_NO_COMPILER, status, "%s", o->output);
    case HDRT_ERROR_INVALID_ARGUMENT:
        return fail_status(EXIT_CODE_USAGE, status, "%s", o->output);
    default:
        return fail_status(-1, status, "%s", o->output);
    }
}

static int link_all(const options *o, session *s, const piece *pieces, const hdrt_link_input *inputs, uint32_t count,
                    int standard_output)
{
    hdrt_link_options wanted = HDRT_LINK_OPTIONS_INIT;
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
    hdrt_image *image = NULL;
    char arch[32];
    output out;
    hdrt_status status;
    bool messages = false;
    int code;

    find_arch(pieces, inputs, count, arch);
    if (!o->arch && !*arch)
        return fail(EXIT_CODE_USAGE, "link needs -arch=sm_XX: no input tells its target");
    wanted.arch = o->arch ? o->arch : arch;
    wanted.options = (const char *const *)o->compile_options;
    wanted.option_count = o->compile_option_count;
    wanted.time_limit_ms = o->time_limit_ms;
    wanted.memory_limit_bytes = o->memory_limit_bytes;
    wanted.ptx = o->kind == HDRT_CODE_PTX;
    wanted.no_cache = o->no_cache;
    status = hdrt_image_link(s->runtime, inputs, count, &wanted, &image);
    if (image && hdrt_image_get_info(image, &info) == HDRT_OK)
        messages = source_print_messages(image, &info);
    if (status != HDRT_OK) {
        code = link_failed(o, status, messages);
        hdrt_image_destroy(image);
        return code;
    }
    if (o->print_command)
        source_print_command(image);
    code = output_open(&out, o->output, standard_output);
    if (!code)
        code = output_write(&out, info.code, info.code_size);
    if (!code)
        code = output_finish(&out);
    output_close(&out);
    hdrt_image_destroy(image);
    return code;
}

int command_link(options *o, int argc, char **argv)
{
    hdrt_link_input *inputs = NULL;
    piece *pieces = NULL;
    session s = {0};
    int first, standard_output = -1, code = options_parse(o, COMMAND_LINK, argc, argv, &first);
    uint32_t count;

    if (code != OPTIONS_GO_ON)
        return code;
    if (first == argc)
        return fail(EXIT_CODE_USAGE, "link needs files; see hdjit link --help");
    if (!o->output)
        return fail(EXIT_CODE_USAGE, "link needs -o OUT; see hdjit link --help");
    if (o->kind == HDRT_CODE_AUTO && source_ends(o->output, ".ptx"))
        o->kind = HDRT_CODE_PTX;
    count = (uint32_t)(argc - first);
    inputs = calloc(count, sizeof *inputs);
    pieces = calloc(count, sizeof *pieces);
    code = inputs && pieces ? 0 : fail(EXIT_CODE_FAILED, "out of memory");
    for (uint32_t i = 0; i < count && !code; i++)
        code = read_piece(argv[first + (int)i], &pieces[i], &inputs[i]);
    if (!code && strcmp(o->output, "-") == 0)
        standard_output = take_standard_output();
    if (!code)
        code = session_open_compile_only(o, &s);
    if (!code)
        code = link_all(o, &s, pieces, inputs, count, standard_output);
    session_close(&s);
    for (uint32_t i = 0; i < count && pieces; i++) {
        hdrt_image_destroy(pieces[i].image);
        free(pieces[i].bytes);
    }
    free(pieces);
    free(inputs);
    return code;
}
