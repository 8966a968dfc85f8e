/* SPDX-License-Identifier: MIT */
#include "jit/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/number.h"
#include "base/status.h"

/* What stands behind an option's name. */
typedef enum value_kind {
    NO_VALUE,
    FOLDER,  /* -I: made absolute */
    FILE_TO_READ,
    TEXT,    /* any, not empty */
    BOOLEAN, /* true or false */
    NUMBER,
    STANDARD, /* c++03 ... c++23 */
    ON_OFF,
    LEVEL,   /* of --Ofast-compile */
    PTXAS,   /* -Xptxas: has a list of its own */
} value_kind;

struct option {
    const char *canonical; /* joined to its value as it stands */
    const char *names[3];  /* all spellings; a value follows behind "=", in the next element, or joined if `joined` */
    value_kind kind;
    bool joined;
};

static const struct option allowed[] = {
    {"-I", {"--include-path", "-I"}, FOLDER, true},
    {"-D", {"--define-macro", "-D"}, TEXT, true},
    {"-U", {"--undefine-macro", "-U"}, TEXT, true},
    {"--pre-include=", {"--pre-include", "-include"}, FILE_TO_READ, false},
    {"-std=", {"--std", "-std"}, STANDARD, false},
    {"-G", {"--device-debug", "-G"}, NO_VALUE, false},
    {"-lineinfo", {"--generate-line-info", "-lineinfo"}, NO_VALUE, false},
    {"-w", {"--disable-warnings", "-w"}, NO_VALUE, false},
    {"--use_fast_math", {"--use_fast_math", "-use_fast_math"}, NO_VALUE, false},
    {"--ftz=", {"--ftz", "-ftz"}, BOOLEAN, false},
    {"--prec-div=", {"--prec-div", "-prec-div"}, BOOLEAN, false},
    {"--prec-sqrt=", {"--prec-sqrt", "-prec-sqrt"}, BOOLEAN, false},
    {"--fmad=", {"--fmad", "-fmad"}, BOOLEAN, false},
    {"--maxrregcount=", {"--maxrregcount", "-maxrregcount"}, NUMBER, false},
    {"--restrict", {"--restrict", "-restrict"}, NO_VALUE, false},
    {"--device-as-default-execution-space",
     {"--device-as-default-execution-space", "-default-device"},
     NO_VALUE,
     false},
    {"--device-int128", {"--device-int128", "-device-int128"}, NO_VALUE, false},
    {"--device-float128", {"--device-float128", "-device-float128"}, NO_VALUE, false},
    {"--extra-device-vectorization", {"--extra-device-vectorization", "-extra-device-vectorization"}, NO_VALUE, false},
    {"--extensible-whole-program", {"--extensible-whole-program", "-ewp"}, NO_VALUE, false},
    {"--dopt=", {"--dopt", "-dopt"}, ON_OFF, false},
    {"--Ofast-compile=", {"--Ofast-compile", "-Ofc"}, LEVEL, false},
    {"--split-compile=", {"--split-compile", "-split-compile"}, NUMBER, false},
    {"--jump-table-density=", {"--jump-table-density", "-jtd"}, NUMBER, false},
    {"--device-stack-protector=", {"--device-stack-protector", "-device-stack-protector"}, BOOLEAN, false},
    {"--builtin-move-forward=", {"--builtin-move-forward", "-builtin-move-forward"}, BOOLEAN, false},
    {"--builtin-initializer-list=", {"--builtin-initializer-list", "-builtin-initializer-list"}, BOOLEAN, false},
    {"--minimal", {"--minimal", "-minimal"}, NO_VALUE, false},
    {"--no-source-include", {"--no-source-include", "-no-source-include"}, NO_VALUE, false},
    {"--Wreorder", {"--Wreorder", "-Wreorder"}, NO_VALUE, false},
    {"--warning-as-error=", {"--warning-as-error", "-Werror"}, TEXT, false},
    {"--display-error-number", {"--display-error-number", "-err-no"}, NO_VALUE, false},
    {"--no-display-error-number", {"--no-display-error-number", "-no-err-no"}, NO_VALUE, false},
    {"--diag-error=", {"--diag-error", "-diag-error"}, TEXT, false},
    {"--diag-suppress=", {"--diag-suppress", "-diag-suppress"}, TEXT, false},
    {"--diag-warn=", {"--diag-warn", "-diag-warn"}, TEXT, false},
    {"--optimization-info=", {"--optimization-info", "-opt-info"}, TEXT, false},
    {"-Xptxas=", {"--ptxas-options", "-Xptxas"}, PTXAS, false},
};

/* Known, and refused with the reason. Matched by the name before any "=". */
static const struct {
    const char *name, *why;
} refused[] = {
    {"--gpu-architecture", "set hdrt_compile_options.arch instead"},
    {"-arch", "set hdrt_compile_options.arch instead"},
    {"--gpu-code", "set hdrt_compile_options.arch instead"},
    {"-code", "set hdrt_compile_options.arch instead"},
    {"--time", "it writes a file"},
    {"-time", "it writes a file"},
    {"--fdevice-time-trace", "it writes a file"},
    {"-fdevice-time-trace", "it writes a file"},
    {"--output-file", "it writes a file; the code is in the image"},
    {"-o", "it writes a file; the code is in the image"},
    {"-MD", "it writes a file"},
    {"-MF", "it writes a file"},
    {"--pch", "it writes files, and code made with them can be stale"},
    {"-pch", "it writes files, and code made with them can be stale"},
    {"--create-pch", "it writes a file"},
    {"-create-pch", "it writes a file"},
    {"--use-pch", "code made with precompiled headers can be stale"},
    {"-use-pch", "code made with precompiled headers can be stale"},
    {"--pch-dir", "it names a folder to write to"},
    {"-pch-dir", "it names a folder to write to"},
    {"--instantiate-templates-in-pch", "it needs precompiled headers"},
    {"--relocatable-device-code", "images are loaded without a link step"},
    {"-rdc", "images are loaded without a link step"},
    {"--device-c", "images are loaded without a link step"},
    {"-dc", "images are loaded without a link step"},
    {"--device-link", "images are loaded without a link step"},
    {"--dlink-time-opt", "images are loaded without a link step"},
    {"-dlto", "images are loaded without a link step"},
    {"--gen-opt-lto", "images are loaded without a link step"},
    {"--optix-ir", "it makes no loadable code"},
    {"--fdevice-syntax-only", "it makes no code"},
    {"-fdevice-syntax-only", "it makes no code"},
    {"--modify-stack-limit", "the compile worker sets its own stack"},
    {"--no-cache", "it is always on: libhdrt has its own cache"},
    {"-no-cache", "it is always on: libhdrt has its own cache"},
    {"--frandom-seed", "it is set from the source, so that compiles repeat"},
    {"-frandom-seed", "it is set from the source, so that compiles repeat"},
};

/* ptxas options that only steer code: others name files, or targets. */
static const char *const ptxas_allowed[] = {
    "-O0", "-O1", "-O2", "-O3", "-v", "--verbose", "-w", "--disable-warnings", "--warn-on-spills", "-warn-spills",
    "--warn-on-local-memory-usage", "-warn-lmem-usage", "--disable-optimizer-constants", "--preserve-relocs",
    "--allow-expensive-optimizations=true", "--allow-expensive-optimizations=false", "--fmad=true", "--fmad=false",
    "-dlcm=ca", "-dlcm=cg", "-dlcm=cs", "-dlcm=cv", "-dscm=wb", "-dscm=cg", "-dscm=cs", "-dscm=wt",
    "--def-load-cache=ca", "--def-load-cache=cg", "--def-store-cache=wb", "--def-store-cache=cg",
};
static const char *const ptxas_numbered[] = {
    "--maxrregcount=", "-maxrregcount=", "--register-usage-level=", "--opt-level="};

static bool digits(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) <= 9;
}

static bool one_of(const char *value, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(value, list[i]) == 0)
            return true;
    return false;
}

static bool ptxas_option(const char *value)
{
    if (one_of(value, ptxas_allowed, sizeof(ptxas_allowed) / sizeof(ptxas_allowed[0])))
        return true;
    for (size_t i = 0; i < sizeof(ptxas_numbered) / sizeof(ptxas_numbered[0]); i++) {
        size_t size = strlen(ptxas_numbered[i]);
        if (strncmp(value, ptxas_numbered[i], size) == 0 && digits(value + size))
            return true;
    }
    return false;
}

/* What a value of this kind must look like, for a message; NULL if this one does. */
static const char *value_wrong(value_kind kind, const char *value)
{
    static const char *const standards[] = {"c++03", "c++11", "c++14", "c++17", "c++20", "c++23"};
    static const char *const levels[] = {"0", "min", "mid", "max"};
    switch (kind) {
    case NO_VALUE:
    case FOLDER:
    case FILE_TO_READ:
    case TEXT:
        return *value ? NULL : "a value";
    case BOOLEAN:
        return strcmp(value, "true") == 0 || strcmp(value, "false") == 0 ? NULL : "true or false";
    case NUMBER:
        return digits(value) ? NULL : "a number";
    case STANDARD:
        return one_of(value, standards, 6) ? NULL : "c++03, c++11, c++14, c++17, c++20 or c++23";
    case ON_OFF:
        return strcmp(value, "on") == 0 || strcmp(value, "off") == 0 ? NULL : "on or off";
    case LEVEL:
        return one_of(value, levels, 4) ? NULL : "0, min, mid or max";
    case PTXAS:
        return ptxas_option(value) ? NULL : "one ptxas option that only steers code, such as -O3, -v or -dlcm=cg";
    }
    return "a value";
}

/*
 * Whether `given` is this option. *value: what is joined to the name, NULL if nothing is.
 * "-lineinfo" is no "-l": only options marked so take a value without "=".
 */
static bool matches(const struct option *option, const char *given, const char **value)
{
    for (size_t i = 0; i < 3 && option->names[i]; i++) {
        const char *name = option->names[i];
        size_t size = strlen(name);
        if (strncmp(given, name, size) != 0)
            continue;
        const char *rest = given + size;
        bool short_name = size == 2;
        *value = NULL;
        if (*rest == '\0')
            return true;
        if (option->kind == NO_VALUE)
            continue;
        if (*rest == '=' && !short_name) {
            *value = rest + 1;
            return true;
        }
        if (option->joined && short_name) {
            *value = rest;
            return true;
        }
    }
    return false;
}

static const struct option *find_option(const char *given, const char **value)
{
    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
        if (matches(&allowed[i], given, value))
            return &allowed[i];
    return NULL;
}

static hdrt_status refuse(const char *given)
{
    size_t size = strcspn(given, "=");
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (strlen(refused[i].name) == size && strncmp(refused[i].name, given, size) == 0)
            return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "compile option '%s' is not allowed: %s", given,
                              refused[i].why);
    if (strcmp(given, "-O0") == 0 || strcmp(given, "-O1") == 0 || strcmp(given, "-O2") == 0 ||
        strcmp(given, "-O3") == 0)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "compile option '%s' is not known: code is always optimised; for ptxas write -Xptxas=%s",
                          given, given);
    return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "compile option '%s' is not known (expected NVRTC's spelling)",
                      given);
}

static hdrt_status append(hdrt__option_list *list, const char *name, const char *folder, const char *value)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 8;
        char **bigger = realloc(list->items, capacity * sizeof(*bigger));
        if (!bigger)
            return hdrt__fail_memory(capacity * sizeof(*bigger), "compile options");
        list->items = bigger;
        list->capacity = capacity;
    }
    hdrt__buffer text = HDRT__BUFFER_INIT;
    hdrt__buffer_text(&text, name);
    if (folder)
        hdrt__buffer_format(&text, "%s/", strcmp(folder, "/") == 0 ? "" : folder);
    hdrt__buffer_text(&text, value ? value : "");
    char *item = hdrt__buffer_take(&text, NULL);
    if (!item)
        return hdrt__fail_memory(strlen(name), "compile options");
    list->items[list->count++] = item;
    return HDRT_OK;
}

static hdrt_status take_option(hdrt__option_list *list, const struct option *option, const char *given,
                               const char *value, const char *directory)
{
    const char *folder = NULL;
    if (option->kind != NO_VALUE) {
        const char *expected = value_wrong(option->kind, value);
        if (expected)
            return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "compile option '%s' has the value '%s': expected %s", given,
                              value, expected);
        if (strchr(value, '\n'))
            return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "compile option '%s' has a line break in it", given);
    }
    /* A name without a folder is looked for along the -I folders, as in #include "name". */
    bool path = option->kind == FOLDER || (option->kind == FILE_TO_READ && strchr(value, '/'));
    if (path && *value != '/')
        folder = directory;
    if (strcmp(option->canonical, "-G") == 0 || strcmp(option->canonical, "-lineinfo") == 0)
        list->debug_paths = true;
    if (option->kind == FILE_TO_READ)
        list->includes = true;
    return append(list, option->canonical, folder, option->kind == NO_VALUE ? NULL : value);
}

hdrt_status hdrt__options_parse(const char *const *given, uint32_t count, const char *directory,
                                hdrt__option_list *out_list)
{
    hdrt_status status = HDRT_OK;
    *out_list = (hdrt__option_list){0};
    if (count && !given)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_compile_options.options is NULL, option_count is %u",
                          count);
    for (uint32_t i = 0; i < count && status == HDRT_OK; i++) {
        const char *value = NULL;
        if (!given[i] || !*given[i]) {
            status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "compile option %u is %s", i, given[i] ? "empty" : "NULL");
            break;
        }
        const struct option *option = find_option(given[i], &value);
        if (!option) {
            status = refuse(given[i]);
        } else if (option->kind != NO_VALUE && !value) {
            if (i + 1 == count || !given[i + 1])
                status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "compile option '%s' needs a value", given[i]);
            else
                status = take_option(out_list, option, given[i], given[i + 1], directory);
            i++;
        } else {
            status = take_option(out_list, option, given[i], value, directory);
        }
    }
    if (status != HDRT_OK)
        hdrt__option_list_free(out_list);
    return status;
}

void hdrt__option_list_free(hdrt__option_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (hdrt__option_list){0};
}

hdrt_status hdrt__arch_check(const char *arch)
{
    size_t count = strncmp(arch, "sm_", 3) == 0 ? strspn(arch + 3, "0123456789") : 0;
    const char *end = count ? arch + 3 + count : "?";
    if ((count == 2 || count == 3) && (*end == '\0' || ((*end == 'a' || *end == 'f') && end[1] == '\0')))
        return HDRT_OK;
    return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                      "the target '%s' is not known: expected sm_ and a number, sm_90 say%s", arch,
                      strncmp(arch, "compute_", 8) == 0 ? "; for PTX ask for that kind of code" : "");
}
