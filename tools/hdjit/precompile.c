/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "file.h"
#include "json.h"
#include "message.h"
#include "session.h"
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The form of the list, see HDRT_RECORD: a JSON object a line, of this version. */
#define LIST_VERSION 1

/* One compile under way. */
typedef struct item {
    char *name; /* the source's, for messages */
    hdrt_runtime *runtime;
    hdrt_image *image;
    hdrt_event event;
} item;

typedef struct work {
    const options *o;
    const char *list; /* its name */
    session s;
    hdrt_runtime *soft; /* for compiles without libdevice, as for the soft driver; NULL: none yet */
    item *items;
    size_t count;
    size_t lines, failed, from_cache;
} work;

/* ---- a line of the list ------------------------------------------------------------------------------------------- */

/* What base64 says; malloc'ed with a NUL behind; NULL: it is none, or no memory. */
static char *decode_base64(const char *text, size_t *out_size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = strlen(text), used = 0;
    unsigned bits = 0, value = 0;
    char *out = malloc(length + 1);

    for (; out && *text && *text != '='; text++) {
        const char *digit = strchr(digits, *text);

        if (!digit) {
            free(out);
            return NULL;
        }
        value = value << 6 | (unsigned)(digit - digits);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out[used++] = (char)(value >> bits & 0xff);
        }
    }
    if (out)
        out[used] = 0;
    *out_size = used;
    return out;
}

/* A text member, or its base64; borrowed from the line or put into *owned. NULL: neither is there. */
static const char *text_member(const json_t *object, char **owned, size_t *size)
{
    const json_t *text = json_object_get(object, "text");
    const char *base64 = json_string_value(json_object_get(object, "text_base64"));

    if (json_is_string(text)) {
        *size = json_string_length(text);
        return json_string_value(text);
    }
    *owned = base64 ? decode_base64(base64, size) : NULL;
    return *owned;
}

/* Texts of an array, borrowed; NULL with *count 0 if there is none. false: no memory, or not texts. */
static bool take_texts(const json_t *array, const char ***out, uint32_t *count)
{
    const json_t *value;
    size_t i;

    *count = (uint32_t)json_array_size(array);
    *out = *count ? calloc(*count, sizeof **out) : NULL;
    if (*count && !*out)
        return false;
    json_array_foreach(array, i, value)
        if (!((*out)[i] = json_string_value(value)))
            return false;
    return true;
}

/* All that a line says, in the library's words. */
typedef struct recipe {
    hdrt_source source;
    hdrt_compile_options wanted;
    const char **options, **names, **header_names, **header_texts;
    char *text, **owned_headers;
    const char *directory;
    bool libdevice; /* may be linked */
} recipe;

static void recipe_free(recipe *r)
{
    for (uint32_t i = 0; i < r->source.header_count && r->owned_headers; i++)
        free(r->owned_headers[i]);
    free(r->owned_headers);
    free(r->options);
    free(r->names);
    free(r->header_names);
    free(r->header_texts);
    free(r->text);
}

static bool take_headers(const json_t *array, recipe *r)
{
    size_t count = json_array_size(array), i, size;
    const json_t *value;

    if (count == 0)
        return true;
    r->header_names = calloc(count, sizeof *r->header_names);
    r->header_texts = calloc(count, sizeof *r->header_texts);
    r->owned_headers = calloc(count, sizeof *r->owned_headers);
    if (!r->header_names || !r->header_texts || !r->owned_headers)
        return false;
    r->source.header_count = (uint32_t)count;
    r->source.header_names = r->header_names;
    r->source.header_texts = r->header_texts;
    json_array_foreach(array, i, value) {
        r->header_names[i] = json_string_value(json_object_get(value, "name"));
        r->header_texts[i] = text_member(value, &r->owned_headers[i], &size);
        if (!r->header_names[i] || !r->header_texts[i])
            return false;
    }
    return true;
}

static bool take_words(const json_t *line, recipe *r)
{
    static const char *const kinds[] = {"auto", "ptx", "cubin", "lto_ir"};
    const char *compiler = json_text_at(line, "compiler"), *kind = json_text_at(line, "kind");
    int found = -1;

    for (int i = 0; i < 4; i++)
        if (strcmp(kind, kinds[i]) == 0)
            found = i;
    if (found < 0 || (strcmp(compiler, "clang") != 0 && strcmp(compiler, "nvrtc") != 0))
        return false;
    r->wanted.kind = (hdrt_code_kind)found;
    r->wanted.compiler = strcmp(compiler, "clang") == 0 ? HDRT_COMPILER_CLANG : HDRT_COMPILER_NVRTC;
    r->wanted.arch = json_string_value(json_object_get(line, "arch"));
    r->wanted.lower_arch = json_is_true(json_object_get(line, "lower_arch"));
    r->libdevice = json_is_true(json_object_get(line, "libdevice"));
    r->directory = json_string_value(json_object_get(line, "directory"));
    return r->wanted.arch && r->directory;
}

/* false: it is not of that form. */
static bool recipe_read(const json_t *line, recipe *r)
{
    *r = (recipe){.source = HDRT_SOURCE_INIT, .wanted = HDRT_COMPILE_OPTIONS_INIT};
    r->source.path = json_string_value(json_object_get(line, "path"));
    if (!r->source.path)
        r->source.text = text_member(line, &r->text, &r->source.length);
    r->source.name = json_string_value(json_object_get(line, "name"));
    if ((!r->source.path && !r->source.text) || !r->source.name || !take_words(line, r) ||
        !take_texts(json_object_get(line, "options"), &r->options, &r->wanted.option_count) ||
        !take_texts(json_object_get(line, "names"), &r->names, &r->wanted.name_count) ||
        !take_headers(json_object_get(line, "headers"), r))
        return false;
    r->wanted.options = r->options;
    r->wanted.names = r->names;
    return true;
}

/* ---- compiling ---------------------------------------------------------------------------------------------------- */

/* The runtime whose compiles have the key that the application's had; NULL after a message. */
static hdrt_runtime *runtime_for(work *w, const recipe *r)
{
    hdrt_status status;

    if (r->wanted.compiler == HDRT_COMPILER_NVRTC || r->libdevice)
        return w->s.runtime;
    status = w->soft ? HDRT_OK : session_runtime(w->o, HDRT_DRIVER_SOFT, &w->soft);
    if (status != HDRT_OK)
        fail_status(-1, status, "the runtime cannot be created");
    return w->soft;
}

/* Begins one compile; errors of its own are said and counted, and the rest goes on. Returns an exit code if not. */
static int begin(work *w, const recipe *r, const char *arch)
{
    item *items = reallocarray(w->items, w->count + 1, sizeof *items);
    hdrt_compile_options wanted = r->wanted;
    hdrt_runtime *runtime = items ? runtime_for(w, r) : NULL;
    hdrt_status status;
    item *it;

    if (!items)
        return fail(EXIT_CODE_FAILED, "out of memory");
    w->items = items;
    if (!runtime)
        return EXIT_CODE_FAILED;
    it = &items[w->count];
    *it = (item){.name = strdup(r->source.name)};
    if (!it->name)
        return fail(EXIT_CODE_FAILED, "out of memory");
    w->count++;
    it->runtime = runtime;
    if (arch)
        wanted.arch = arch;
    wanted.time_limit_ms = w->o->time_limit_ms;
    wanted.memory_limit_bytes = w->o->memory_limit_bytes;
    status = chdir(r->directory) == 0
                 ? hdrt_image_compile_async(it->runtime, &r->source, &wanted, &it->image, &it->event)
                 : HDRT_ERROR_IO;
    if (status == HDRT_OK)
        return 0;
    w->failed++;
    if (status == HDRT_ERROR_IO && !it->image && errno && access(r->directory, X_OK) != 0)
        fail(EXIT_CODE_FAILED, "%s: its folder '%s' cannot be entered: %s", it->name, r->directory, strerror(errno));
    else
        fail_status(EXIT_CODE_FAILED, status, "%s", it->name);
    return 0;
}

/* For the targets of -arch, or the one of the line. */
static int begin_all(work *w, const recipe *r)
{
    char *archs = w->o->arch ? strdup(w->o->arch) : NULL, *rest = archs, *word;
    int code = 0;

    if (!w->o->arch)
        return begin(w, r, NULL);
    if (!archs)
        return fail(EXIT_CODE_FAILED, "out of memory");
    while (!code && (word = strsep(&rest, ",")) != NULL)
        code = *word ? begin(w, r, word)
                     : fail(EXIT_CODE_USAGE, "-arch is '%s': expected sm_XX, several with commas between", w->o->arch);
    free(archs);
    return code;
}

static int take_line(work *w, const char *text, size_t size)
{
    json_error_t error;
    recipe r = {0};
    json_t *line = json_loadb(text, size, JSON_ALLOW_NUL, &error);
    int code;

    w->lines++;
    if (!line)
        return fail(EXIT_CODE_FAILED, "%s:%zu:%d: is no line of HDRT_RECORD: %s", w->list, w->lines, error.column,
                    error.text);
    if (json_integer_value(json_object_get(line, "version")) != LIST_VERSION)
        code = fail(EXIT_CODE_FAILED, "%s:%zu: is of no version that this hdjit knows: expected %d", w->list, w->lines,
                    LIST_VERSION);
    else if (!recipe_read(line, &r))
        code = fail(EXIT_CODE_FAILED, "%s:%zu: is no line of HDRT_RECORD: a member is missing or of another form",
                    w->list, w->lines);
    else
        code = begin_all(w, &r);
    recipe_free(&r);
    json_decref(line);
    return code;
}

static int take_list(work *w, const char *text, size_t size)
{
    const char *end = text + size;
    int code = 0;

    while (text < end && !code) {
        const char *feed = memchr(text, '\n', (size_t)(end - text)), *stop = feed ? feed : end;

        if (strspn(text, " \t\r") < (size_t)(stop - text))
            code = take_line(w, text, (size_t)(stop - text));
        else
            w->lines++;
        text = stop + (feed != NULL);
    }
    return code;
}

/* Waits for one and says what came of it. */
static void settle(work *w, item *it)
{
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
    hdrt_status status;

    if (!it->image)
        return;
    hdrt_event_wait(it->runtime, it->event, HDRT_FOREVER);
    status = hdrt_image_status(it->image);
    if (hdrt_image_get_info(it->image, &info) == HDRT_OK) {
        source_print_messages(it->image, &info);
        if (status == HDRT_OK && info.note)
            note("%s: %s", it->name, info.note);
    }
    if (status != HDRT_OK) {
        w->failed++;
        hdrt_image_status(it->image); /* its message again */
        fail_status(EXIT_CODE_FAILED, status, "%s", it->name);
    } else {
        w->from_cache += info.from_cache;
    }
}

static int precompile(work *w, const char *text, size_t size)
{
    hdrt_cache_info info = HDRT_CACHE_INFO_INIT;
    hdrt_cache_stats stats = HDRT_CACHE_STATS_INIT, more = HDRT_CACHE_STATS_INIT;
    hdrt_status status;
    int code = take_list(w, text, size);

    for (size_t i = 0; i < w->count; i++)
        settle(w, &w->items[i]);
    if (code)
        return code;
    status = hdrt_cache_get_info(w->s.runtime, &info);
    if (status == HDRT_OK)
        status = hdrt_cache_get_stats(w->s.runtime, HDRT_CACHE_THIS_RUNTIME, &stats);
    if (status == HDRT_OK && w->soft)
        status = hdrt_cache_get_stats(w->soft, HDRT_CACHE_THIS_RUNTIME, &more);
    stats.not_cacheable += more.not_cacheable;
    stats.store_failures += more.store_failures;
    if (status != HDRT_OK)
        return fail_status(-1, status, "%s", w->o->into);
    if (info.reason)
        return fail(EXIT_CODE_FAILED, "%s: nothing is stored: %s", w->o->into, info.reason);
    printf("%zu compiled, %zu there already, %zu failed: %s\n", w->count - w->failed - w->from_cache, w->from_cache,
           w->failed, info.directory);
    if (stats.not_cacheable || stats.store_failures)
        note("%llu must not be stored (a date or time in the source, say), %llu could not be",
             (unsigned long long)stats.not_cacheable, (unsigned long long)stats.store_failures);
    return w->failed || stats.store_failures ? EXIT_CODE_FAILED : EXIT_CODE_OK;
}

int command_precompile(options *o, int argc, char **argv)
{
    work w = {.o = o};
    unsigned char *text = NULL;
    uint64_t size = 0;
    char *here = NULL, *folder = NULL;
    int first, code = options_parse(o, COMMAND_PRECOMPILE, argc, argv, &first);

    if (code != OPTIONS_GO_ON)
        return code;
    if (first == argc)
        return fail(EXIT_CODE_USAGE, "precompile needs a list that HDRT_RECORD made; see hdjit precompile --help");
    if (argc - first > 1)
        return fail(EXIT_CODE_USAGE, "precompile takes one list, but got '%s' too", argv[first + 1]);
    if (!o->into)
        return fail(EXIT_CODE_USAGE, "precompile needs --into DIR; see hdjit precompile --help");
    w.list = argv[first];
    code = file_read(w.list, &text, &size);
    /* Compiles are begun in the folders where the application began them. */
    if (!code && *o->into != '/' && (!(here = getcwd(NULL, 0)) || asprintf(&folder, "%s/%s", here, o->into) < 0)) {
        folder = NULL;
        code = fail(EXIT_CODE_FAILED, "%s: the current folder cannot be told: %s", o->into, strerror(errno));
    }
    o->cache_dir = folder ? folder : o->into;
    if (!code)
        code = session_open_compile_only(o, &w.s);
    if (!code)
        code = precompile(&w, (const char *)text, (size_t)size);
    for (size_t i = 0; i < w.count; i++) {
        hdrt_image_destroy(w.items[i].image);
        free(w.items[i].name);
    }
    hdrt_runtime_destroy(w.soft);
    session_close(&w.s);
    free(w.items);
    free(folder);
    free(here);
    free(text);
    return code;
}
