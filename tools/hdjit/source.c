/* SPDX-License-Identifier: MIT */
#include "source.h"

#include "file.h"
#include "message.h"
#include "npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

bool source_ends(const char *path, const char *ending)
{
    size_t length = strlen(path), tail = strlen(ending);

    return length > tail && strcasecmp(path + length - tail, ending) == 0;
}

void source_wanted(const options *o, hdrt_compile_options *wanted)
{
    *wanted = (hdrt_compile_options)HDRT_COMPILE_OPTIONS_INIT;
    wanted->compiler = o->compiler;
    wanted->kind = o->kind;
    wanted->arch = o->arch;
    wanted->options = (const char *const *)o->compile_options;
    wanted->option_count = o->compile_option_count;
    wanted->time_limit_ms = o->time_limit_ms;
    wanted->memory_limit_bytes = o->memory_limit_bytes;
    wanted->no_cache = o->no_cache;
    wanted->names = o->names;
    wanted->name_count = o->name_count;
}

/* What the compiler said: its diagnostics, or the plain log where it has none of that form. true: it said something. */
bool source_print_messages(const hdrt_image *image, const hdrt_image_info *info)
{
    hdrt_diagnostic diagnostic = {0};
    uint32_t count = 0;

    for (; hdrt_image_diagnostic(image, count, &diagnostic) == HDRT_OK; count++)
        message_diagnostic(&diagnostic);
    if (count == 0 && info->log && *info->log)
        message_log(info->log);
    return count > 0 || (info->log && *info->log);
}

void source_print_command(const hdrt_image *image)
{
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;

    if (hdrt_image_get_info(image, &info) == HDRT_OK)
        fprintf(stderr, "%s\n", *info.command ? info.command : "# the command is not known");
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int compile_failed(const char *name, hdrt_status status, bool messages, bool time_over)
{
    switch (status) {
    case HDRT_ERROR_COMPILE:
        return messages ? fail(EXIT_CODE_FAILED, "%s does not compile", name) : fail_status(-1, status, "%s", name);
    case HDRT_ERROR_COMPILE_LIMIT:
        return fail_status(time_over ? EXIT_CODE_TIME_LIMIT : EXIT_CODE_FAILED, status, "%s", name);
    case HDRT_ERROR_COMPANION:
        return fail_status(EXIT_CODE_NO_COMPILER, status, "%s", name);
    case HDRT_ERROR_INVALID_ARGUMENT:
    case HDRT_ERROR_UNSUPPORTED:
        return fail_status(EXIT_CODE_USAGE, status, "%s", name);
    default:
        return fail_status(-1, status, "%s", name);
    }
}

int source_failed(const char *name, hdrt_status status)
{
    return compile_failed(name, status, false, false);
}

void source_describe(hdrt_source *source, const char *path, const unsigned char *text, uint64_t length)
{
    source->path = text ? NULL : path;
    source->text = (const char *)text;
    source->length = text ? (size_t)length : 0;
    source->name = text ? SOURCE_STDIN : NULL;
}

/* What came of one compile is said; on failure the image goes. `name`: the source. Returns 0 or an exit code. */
static int report(const char *name, hdrt_status status, bool time_over, hdrt_image **image)
{
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
    bool messages = false;

    if (*image && hdrt_image_get_info(*image, &info) == HDRT_OK) {
        messages = source_print_messages(*image, &info);
        if (status == HDRT_OK && info.note)
            note("%s: %s", name, info.note);
    }
    if (status == HDRT_OK)
        return 0;
    /* Asking the image made no message of its own: the last error is still the compile's. */
    hdrt_image_destroy(*image);
    *image = NULL;
    return compile_failed(name, status, messages, time_over);
}

/* `text`: the source if it was read already. */
static int compile(session *s, const char *path, const unsigned char *text, uint64_t length,
                   const hdrt_compile_options *wanted, uint32_t count, hdrt_image **out_images)
{
    const char *name = text ? SOURCE_STDIN : path;
    hdrt_source source = HDRT_SOURCE_INIT;
    hdrt_compile_item *items = calloc(count, sizeof *items);
    uint64_t limit = wanted->time_limit_ms ? wanted->time_limit_ms : 60000, begin = now_ms();
    hdrt_status status;
    bool time_over;
    int code = 0;

    if (!items)
        return fail(EXIT_CODE_FAILED, "%s: out of memory", name);
    source_describe(&source, path, text, length);
    for (uint32_t i = 0; i < count; i++)
        items[i] = (hdrt_compile_item){&source, &wanted[i]};
    if (s->device)
        status = hdrt_image_compile_for(s->device, &source, wanted, out_images);
    else if (count == 1)
        status = hdrt_image_compile(s->runtime, &source, wanted, out_images);
    else
        status = hdrt_image_compile_batch(s->runtime, items, count, out_images);
    free(items);
    /* The status covers memory too; only the clock tells which limit it was. */
    time_over = now_ms() - begin >= limit;
    if (count == 1 || !out_images[0])
        return report(name, status, time_over, out_images);
    for (uint32_t i = 0; i < count && !code; i++)
        code = report(name, hdrt_image_status(out_images[i]), time_over, &out_images[i]);
    return code;
}

int source_compile_all(session *s, const char *path, const hdrt_compile_options *wanted, uint32_t count,
                       hdrt_image **out_images)
{
    unsigned char *text = NULL;
    uint64_t length = 0;
    int code;

    memset(out_images, 0, count * sizeof *out_images);
    if (s->soft && wanted->compiler == HDRT_COMPILER_NVRTC && s->device)
        return fail(EXIT_CODE_USAGE, "--compiler=nvrtc: NVRTC's output is for NVIDIA GPUs only, and the driver is the "
                    "soft one: leave it out, or use --driver=cuda");
    code = strcmp(path, "-") == 0 ? file_read(path, &text, &length) : 0;
    if (!code)
        code = compile(s, path, text, length, wanted, count, out_images);
    free(text);
    return code;
}

int source_compile(session *s, const char *path, const hdrt_compile_options *wanted, hdrt_image **out_image)
{
    return source_compile_all(s, path, wanted, 1, out_image);
}

static int load_code(session *s, const char *path, hdrt_module **out_module)
{
    hdrt_load_options wanted = HDRT_LOAD_OPTIONS_INIT;
    unsigned char *code;
    uint64_t bytes;
    hdrt_status status;
    int result = file_read(path, &code, &bytes);

    if (result)
        return result;
    wanted.name = path;
    if (bytes == 0)
        result = fail(EXIT_CODE_FAILED, "%s: is empty: expected PTX or a cubin", path);
    else if ((status = hdrt_module_load(s->device, code, (size_t)bytes, &wanted, out_module)) != HDRT_OK)
        result = fail_status(-1, status, "%s: cannot be loaded", path);
    free(code);
    return result;
}

int source_load(const options *o, session *s, const char *path, hdrt_module **out_module)
{
    hdrt_compile_options wanted;
    hdrt_image *image;
    hdrt_status status;
    int code;

    *out_module = NULL;
    if (source_ends(path, ".ptx") || source_ends(path, ".cubin") || source_ends(path, ".hdb"))
        return load_code(s, path, out_module);
    source_wanted(o, &wanted);
    code = source_compile(s, path, &wanted, &image);
    if (code)
        return code;
    status = hdrt_module_load_image(s->device, image, out_module);
    hdrt_image_destroy(image);
    return status == HDRT_OK ? 0 : fail_status(-1, status, "%s: cannot be loaded", path);
}

static int set_variable(const setting *set, hdrt_module *module, hdrt_queue *queue)
{
    hdrt_ptr address;
    uint64_t room, bytes, header = 0;
    unsigned char *data = NULL;
    const char *trouble = NULL;
    hdrt_status status = hdrt_module_global(module, set->name, &address, &room);
    int code;

    if (status != HDRT_OK)
        return fail_last(status);
    code = file_read(set->file, &data, &bytes);
    if (!code && npy_named(set->file))
        trouble = npy_check(data, bytes, &header);
    if (!code && trouble)
        code = fail(EXIT_CODE_FAILED, "%s: is no .npy file to use: %s", set->file, trouble);
    if (!code && bytes - header != room)
        code = fail(EXIT_CODE_FAILED, "--set %s=%s: the variable has %llu bytes, the file %llu", set->name, set->file,
                    (unsigned long long)room, (unsigned long long)(bytes - header));
    if (!code) {
        status = hdrt_copy_htod(queue, address, data + header, room);
        if (status == HDRT_OK)
            status = hdrt_queue_synchronize(queue);
        if (status != HDRT_OK)
            code = fail_status(-1, status, "--set %s=%s", set->name, set->file);
    }
    free(data);
    return code;
}

int source_set_variables(const options *o, hdrt_module *module, hdrt_queue *queue)
{
    int code = 0;

    for (uint32_t i = 0; i < o->setting_count && !code; i++)
        code = set_variable(&o->settings[i], module, queue);
    return code;
}
