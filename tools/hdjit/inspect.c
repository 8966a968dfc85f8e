/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "file.h"
#include "json.h"
#include "kernels.h"
#include "message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *kind_text(hdrt_code_kind kind)
{
    return kind == HDRT_CODE_CUBIN ? "cubin" : kind == HDRT_CODE_LTO_IR ? "LTO-IR" : "PTX";
}

/* What the line ".version 8.3" says; "" if there is none. */
static void ptx_version(const char *ptx, char out[16])
{
    *out = 0;
    for (const char *line = ptx; line && !*out; line = strchr(line, '\n')) {
        line += *line == '\n';
        line += strspn(line, " \t");
        if (strncmp(line, ".version", 8) == 0)
            snprintf(out, 16, "%.*s", (int)strspn(line + 8 + strspn(line + 8, " \t"), "0123456789."),
                     line + 8 + strspn(line + 8, " \t"));
    }
}

static json_t *image_json(const hdrt_image *image, const hdrt_image_info *info)
{
    const char *ptx = info->kind == HDRT_CODE_PTX ? info->code : info->ptx;
    json_t *kernels = kernels_json(image), *object;
    char version[16] = "";

    if (ptx)
        ptx_version(ptx, version);
    object = json_pack("{s:s, s:o, s:I, s:o}", "kind", kind_text(info->kind), "arch", json_text(info->arch), "bytes",
                       (json_int_t)info->code_size, "kernels", kernels);
    if (object && ptx) {
        json_object_set_new(object, "ptx_version", json_text(version));
        json_object_set_new(object, "ptx_bytes",
                            json_integer((json_int_t)(info->ptx ? info->ptx_size : info->code_size)));
    }
    if (!object || info->compiler == HDRT_COMPILER_AUTO)
        return object;
    json_object_set_new(object, "source", json_text(info->source_name));
    json_object_set_new(object, "options", json_text(info->options));
    json_object_set_new(object, "compiler", json_text(info->compiler_path));
    json_object_set_new(object, "compiler_version", json_text(info->compiler_version));
    json_object_set_new(object, "command", json_text(info->command));
    json_object_set_new(object, "note", json_text(info->note));
    json_object_set_new(object, "log", json_text(info->log));
    return object;
}

/* A line, unless there is nothing to say. */
static void line(const char *indent, const char *label, const char *value)
{
    if (value && *value)
        printf("%s  %-10s  %s\n", indent, label, value);
}

static int print_image(const char *indent, const char *name, const hdrt_image *image, const hdrt_image_info *info)
{
    const char *ptx = info->kind == HDRT_CODE_PTX ? info->code : info->ptx;
    char version[16] = "", inner[16];

    if (ptx)
        ptx_version(ptx, version);
    printf("%s%s%s%s for %s, %zu bytes", indent, name, *name ? ": " : "", kind_text(info->kind),
           *info->arch ? info->arch : "an unknown target", info->code_size);
    if (info->ptx)
        printf(", and PTX %s of %zu bytes", version, info->ptx_size);
    else if (*version)
        printf(", version %s", version);
    printf("\n");
    line(indent, "source", info->source_name);
    line(indent, "options", info->options);
    if (*info->compiler_version)
        printf("%s  %-10s  %s, %s\n", indent, "compiler", info->compiler_version, info->compiler_path);
    line(indent, "command", info->command);
    line(indent, "note", info->note);
    if (*info->log)
        printf("%s  log\n%s%s", indent, info->log, info->log[strlen(info->log) - 1] == '\n' ? "" : "\n");
    snprintf(inner, sizeof inner, "%s  ", indent);
    return info->kind == HDRT_CODE_LTO_IR ? 0 : kernels_print(image, inner);
}

/* One image, whose reading may have failed; shows it and drops it. `all`: the JSON array. */
static int show(const options *o, const char *indent, const char *name, hdrt_image *image, json_t *all)
{
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
    hdrt_status status = hdrt_image_get_info(image, &info);
    int code = 0;

    if (status != HDRT_OK)
        code = fail_status(-1, status, "%s", name);
    else if (!o->json)
        code = print_image(indent, name, image, &info);
    else if (json_array_append_new(all, image_json(image, &info)) != 0)
        code = fail(EXIT_CODE_FAILED, "out of memory");
    hdrt_image_destroy(image);
    return code;
}

/* A bundle's images one by one; *out_bundle is false, and nothing is said, if it is none. */
static int inspect_bundle(const options *o, const char *path, const void *bytes, size_t size, json_t *all,
                          bool *out_bundle)
{
    static const char magic[] = "HDRTBDL\n";
    hdrt_image *image;
    hdrt_status status = HDRT_OK;
    uint32_t count = 0;
    int code = 0;

    *out_bundle = size >= 8 && memcmp(bytes, magic, 8) == 0;
    if (!*out_bundle)
        return 0;
    while (hdrt_bundle_image(bytes, size, count, path, &image) == HDRT_OK) {
        hdrt_image_destroy(image);
        count++;
    }
    if (!o->json && count)
        printf("%s: bundle of %u image%s, %zu bytes\n", path, count, count == 1 ? "" : "s", size);
    for (uint32_t i = 0; !code && (status = hdrt_bundle_image(bytes, size, i, path, &image)) == HDRT_OK; i++)
        code = show(o, "  ", "", image, all);
    if (!code && status != HDRT_ERROR_NOT_FOUND)
        code = fail_last(status);
    return code;
}

static int inspect(const options *o, const char *path, json_t *files)
{
    json_t *images = json_array();
    unsigned char *bytes = NULL;
    hdrt_image *image = NULL;
    uint64_t size = 0;
    bool bundle = false;
    hdrt_status status;
    int code = file_read(path, &bytes, &size);

    if (!code && size == 0)
        code = fail(EXIT_CODE_FAILED, "%s: is empty: expected PTX, a cubin, an image file or a bundle", path);
    if (!code)
        code = inspect_bundle(o, path, bytes, (size_t)size, images, &bundle);
    if (!code && !bundle) {
        status = hdrt_image_read(bytes, (size_t)size, path, &image);
        code = status == HDRT_OK ? show(o, "", path, image, images) : fail_last(status);
    }
    free(bytes);
    if (o->json && !code)
        json_array_append_new(files, json_pack("{s:o, s:b, s:I, s:O}", "file", json_text(path), "bundle", bundle,
                                               "bytes", (json_int_t)size, "images", images));
    json_decref(images);
    return code;
}

int command_inspect(options *o, int argc, char **argv)
{
    json_t *files;
    int first, worst = 0, code = options_parse(o, COMMAND_INSPECT, argc, argv, &first);

    if (code != OPTIONS_GO_ON)
        return code;
    if (first == argc)
        return fail(EXIT_CODE_USAGE, "inspect needs a file; see hdjit inspect --help");
    files = json_array();
    for (int i = first; i < argc; i++) {
        code = inspect(o, argv[i], files);
        worst = worst ? worst : code;
    }
    if (o->json)
        code = json_show(files);
    else
        json_decref(files);
    return worst ? worst : code;
}
