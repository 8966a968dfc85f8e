/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "depfile.h"
#include "kernels.h"
#include "message.h"
#include "output.h"
#include "source.h"
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGET_LIMIT 64

/* One compile for each target. */
typedef struct job {
    const char *source;
    char *archs;                                  /* the words of -arch, cut at the commas */
    char device_arch[TARGET_ROOM];                /* where none was given */
    hdrt_compile_options wanted[TARGET_LIMIT];
    hdrt_image *images[TARGET_LIMIT];
    uint32_t count;
    int standard_output;
    char *depfile_name, *target_name; /* owned; NULL: not needed */
} job;

/* ---- what was asked for ------------------------------------------------------------------------------------------- */

/* The endings tell the kind where no option does. */
static void kind_by_ending(options *o)
{
    static const struct {
        const char *ending;
        hdrt_code_kind kind;
    } endings[] = {{".ptx", HDRT_CODE_PTX}, {".cubin", HDRT_CODE_CUBIN}, {".ltoir", HDRT_CODE_LTO_IR}};

    if (!o->output || o->bundle)
        return;
    o->bundle = source_ends(o->output, ".hdb");
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (o->kind == HDRT_CODE_AUTO && source_ends(o->output, endings[i].ending))
            o->kind = endings[i].kind;
}

static int check_depfile(const options *o)
{
    bool any = o->depfile_only || o->depfile_also;

    if (!any && o->depfile)
        return fail(EXIT_CODE_USAGE, "-MF is for -M or -MD: give one of them");
    if (!any && o->depfile_target_count)
        return fail(EXIT_CODE_USAGE, "-MT and -MQ are for -M or -MD: give one of them");
    if (!any && o->phony)
        return fail(EXIT_CODE_USAGE, "-MP is for -M or -MD: give one of them");
    if (o->depfile_also && !o->depfile_only && !o->depfile && (!o->output || strcmp(o->output, "-") == 0))
        return fail(EXIT_CODE_USAGE, "-MD needs -MF FILE where OUT is no file");
    if (o->depfile && strcmp(o->depfile, "-") == 0 && o->output && !o->depfile_only && strcmp(o->output, "-") == 0)
        return fail(EXIT_CODE_USAGE, "-MF and -o cannot both be standard output");
    return 0;
}

/* What the words and options leave open is decided here, before anything is loaded. */
static int check_usage(options *o, int words, char **word)
{
    bool several = o->arch && strchr(o->arch, ',');

    if (words < 1)
        return fail(EXIT_CODE_USAGE, "compile needs a source file; see hdjit compile --help");
    if (words > 1)
        return fail(EXIT_CODE_USAGE, "compile takes one source file, but got '%s' too", word[1]);
    if (!o->output && !o->depfile_only && !o->list_kernels)
        return fail(EXIT_CODE_USAGE, "compile needs -o OUT; see hdjit compile --help");
    if (o->list_kernels && o->output && strcmp(o->output, "-") == 0)
        return fail(EXIT_CODE_USAGE, "--list-kernels and -o cannot both be standard output");
    kind_by_ending(o);
    if ((o->kind == HDRT_CODE_CUBIN || o->kind == HDRT_CODE_LTO_IR) && o->compiler == HDRT_COMPILER_CLANG)
        return fail(EXIT_CODE_USAGE, "%s: clang makes PTX only, no cubin: use --compiler=nvrtc, or write PTX",
                    o->output && (source_ends(o->output, ".cubin") || source_ends(o->output, ".ltoir")) ? o->output
                    : o->kind == HDRT_CODE_CUBIN ? "--cubin" : "--lto-ir");
    if (several && o->output && !o->bundle && o->kind != HDRT_CODE_AUTO &&
        (source_ends(o->output, ".ptx") || source_ends(o->output, ".cubin") || source_ends(o->output, ".ltoir")))
        return fail(EXIT_CODE_USAGE, "%s: several targets (-arch=%s) need a bundle: name it .hdb, or give --bundle",
                    o->output, o->arch);
    o->bundle = o->bundle || several;
    target_compiler(o);
    return check_depfile(o);
}

/* -arch=sm_80,sm_90: one compile each. */
static int take_targets(const options *o, job *j)
{
    char *rest, *word;

    if (!o->arch) {
        j->count = 1;
        return target_choose(o, &j->wanted[0], j->device_arch);
    }
    j->archs = strdup(o->arch);
    if (!j->archs)
        return fail(EXIT_CODE_FAILED, "out of memory");
    for (rest = j->archs; (word = strsep(&rest, ",")) != NULL;) {
        if (!*word)
            return fail(EXIT_CODE_USAGE, "-arch is '%s': expected sm_XX, several with commas between", o->arch);
        for (uint32_t i = 0; i < j->count; i++)
            if (strcmp(j->wanted[i].arch, word) == 0)
                return fail(EXIT_CODE_USAGE, "-arch is '%s': %s is there twice", o->arch, word);
        if (j->count == TARGET_LIMIT)
            return fail(EXIT_CODE_USAGE, "-arch: there are more than %d targets", TARGET_LIMIT);
        source_wanted(o, &j->wanted[j->count]);
        j->wanted[j->count++].arch = word;
    }
    return 0;
}

/* `path` with another ending; only the name itself counts. malloc'ed. */
static char *with_ending(const char *path, const char *ending)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    char *out;

    return asprintf(&out, "%.*s%s", dot && dot > name ? (int)(dot - path) : (int)strlen(path), path, ending) < 0 ? NULL
                                                                                                               : out;
}

/* Where the rule for make goes and what its target is. */
static int name_depfile(const options *o, job *j)
{
    const char *slash = strrchr(j->source, '/'), *ending = o->bundle ? ".hdb" : o->kind == HDRT_CODE_CUBIN ? ".cubin"
                                                                : o->kind == HDRT_CODE_LTO_IR ? ".ltoir" : ".ptx";
    const char *file = o->depfile ? o->depfile : o->depfile_only ? (o->output ? o->output : "-") : NULL;

    if (!o->depfile_only && !o->depfile_also)
        return 0;
    j->depfile_name = file ? strdup(file) : with_ending(o->output, ".d");
    if (o->output && strcmp(o->output, "-") != 0 && (!o->depfile_only || o->depfile))
        j->target_name = strdup(o->output);
    else
        j->target_name = with_ending(strcmp(j->source, "-") == 0 ? "stdin" : slash ? slash + 1 : j->source, ending);
    return j->depfile_name && j->target_name ? 0 : fail(EXIT_CODE_FAILED, "out of memory");
}

/* ---- what came of it ---------------------------------------------------------------------------------------------- */

static int write_bytes(const char *path, const void *bytes, size_t size, int standard_output)
{
    output out;
    int code = output_open(&out, path, standard_output);

    if (!code)
        code = output_write(&out, bytes, size);
    if (!code)
        code = output_finish(&out);
    output_close(&out);
    return code;
}

static int write_bundle(const options *o, const job *j)
{
    const hdrt_image *const *images = (const hdrt_image *const *)j->images;
    size_t size = 0;
    hdrt_status status = hdrt_bundle_write(images, j->count, NULL, &size);
    void *bytes = status == HDRT_OK ? malloc(size) : NULL;
    int code;

    if (status == HDRT_OK && !bytes)
        return fail(EXIT_CODE_FAILED, "%s: out of memory", o->output);
    if (status == HDRT_OK)
        status = hdrt_bundle_write(images, j->count, bytes, &size);
    code = status == HDRT_OK ? write_bytes(o->output, bytes, size, j->standard_output)
                             : fail_status(-1, status, "%s", o->output);
    free(bytes);
    return code;
}

static int write_code(const options *o, const job *j)
{
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
    hdrt_status status;

    if (o->bundle)
        return write_bundle(o, j);
    status = hdrt_image_get_info(j->images[0], &info);
    return status == HDRT_OK ? write_bytes(o->output, info.code, info.code_size, j->standard_output)
                             : fail_status(-1, status, "%s", o->output);
}

static int list_kernels(const job *j)
{
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
    int code = 0;

    for (uint32_t i = 0; i < j->count && !code; i++) {
        if (j->count > 1 && hdrt_image_get_info(j->images[i], &info) == HDRT_OK)
            printf("%s\n", info.arch);
        code = kernels_print(j->images[i], j->count > 1 ? "    " : "");
    }
    return code;
}

static int finish(const options *o, const job *j)
{
    int code = 0;

    for (uint32_t i = 0; i < j->count && o->print_command; i++)
        source_print_command(j->images[i]);
    if (j->depfile_name)
        code = depfile_write(o, j->source, j->target_name, j->depfile_name, j->standard_output, j->images, j->count);
    if (!code && o->output && !o->depfile_only)
        code = write_code(o, j);
    if (!code && o->list_kernels)
        code = list_kernels(j);
    return code;
}

int command_compile(options *o, int argc, char **argv)
{
    job j = {.standard_output = -1};
    session s = {0};
    int first, code = options_parse(o, COMMAND_COMPILE, argc, argv, &first);

    if (code != OPTIONS_GO_ON)
        return code;
    code = check_usage(o, argc - first, argv + first);
    if (code)
        return code;
    j.source = argv[first];
    source_wanted(o, &j.wanted[0]);
    code = name_depfile(o, &j);
    if (!code)
        code = take_targets(o, &j);
    if ((o->output && strcmp(o->output, "-") == 0) || (j.depfile_name && strcmp(j.depfile_name, "-") == 0))
        j.standard_output = take_standard_output();
    if (!code)
        code = session_open_compile_only(o, &s);
    if (!code)
        code = source_compile_all(&s, j.source, j.wanted, j.count, j.images);
    if (!code)
        code = finish(o, &j);
    for (uint32_t i = 0; i < j.count; i++)
        hdrt_image_destroy(j.images[i]);
    session_close(&s);
    free(j.depfile_name);
    free(j.target_name);
    free(j.archs);
    return code;
}
