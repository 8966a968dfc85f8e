/* SPDX-License-Identifier: MIT */
#include "compiler/clang_options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hdrt__cc_arguments_add(hdrt__cc_arguments *arguments, const char *format, ...)
{
    if (arguments->failed)
        return;
    if (arguments->count + 1 >= arguments->capacity) {
        size_t capacity = arguments->capacity ? arguments->capacity * 2 : 32;
        char **items = reallocarray(arguments->items, capacity, sizeof *items);
        if (items == NULL) {
            arguments->failed = true;
            return;
        }
        arguments->items = items;
        arguments->capacity = capacity;
    }
    char *text = NULL;
    va_list values;
    va_start(values, format);
    if (vasprintf(&text, format, values) < 0) {
        text = NULL;
        arguments->failed = true;
    }
    va_end(values);
    if (text != NULL)
        arguments->items[arguments->count++] = text;
    arguments->items[arguments->count] = NULL;
}

void hdrt__cc_arguments_free(hdrt__cc_arguments *arguments)
{
    for (size_t i = 0; i < arguments->count; i++)
        free(arguments->items[i]);
    free(arguments->items);
    *arguments = (hdrt__cc_arguments){0};
}

enum meaning {
    INCLUDE_FOLDER,
    DEFINE,
    UNDEFINE,
    PRE_INCLUDE,
    STANDARD,
    LINE_INFO,
    DEBUG,
    FAST_MATH,
    FMAD,
    FTZ,
    PRECISE_DIVISION,
    PRECISE_ROOT,
    MAX_REGISTERS,
    RELOCATABLE,
    NO_WARNINGS,
    WARNINGS_ARE_ERRORS,
    NO_SOURCE_INCLUDE,
    NO_EFFECT, /* says how NVRTC should work, not what comes out */
    TARGET,    /* not by option */
};

enum shape {
    FLAG,   /* -name */
    VALUE,  /* -name=value or -name value */
    JOINED, /* -Xvalue or -X value */
};

/* With one dash or two, as NVRTC takes them. */
typedef struct option {
    const char *name;
    enum shape shape;
    enum meaning meaning;
} option;

static const option options[] = {
    {"I", JOINED, INCLUDE_FOLDER},
    {"include-path", VALUE, INCLUDE_FOLDER},
    {"D", JOINED, DEFINE},
    {"define-macro", VALUE, DEFINE},
    {"U", JOINED, UNDEFINE},
    {"undefine-macro", VALUE, UNDEFINE},
    {"include", VALUE, PRE_INCLUDE},
    {"pre-include", VALUE, PRE_INCLUDE},
    {"std", VALUE, STANDARD},
    {"lineinfo", FLAG, LINE_INFO},
    {"generate-line-info", FLAG, LINE_INFO},
    {"G", FLAG, DEBUG},
    {"device-debug", FLAG, DEBUG},
    {"use_fast_math", FLAG, FAST_MATH},
    {"fmad", VALUE, FMAD},
    {"ftz", VALUE, FTZ},
    {"prec-div", VALUE, PRECISE_DIVISION},
    {"prec-sqrt", VALUE, PRECISE_ROOT},
    {"maxrregcount", VALUE, MAX_REGISTERS},
    {"rdc", VALUE, RELOCATABLE},
    {"relocatable-device-code", VALUE, RELOCATABLE},
    {"w", FLAG, NO_WARNINGS},
    {"disable-warnings", FLAG, NO_WARNINGS},
    {"Werror", FLAG, WARNINGS_ARE_ERRORS},
    {"warning-as-error", VALUE, WARNINGS_ARE_ERRORS},
    {"no-source-include", FLAG, NO_SOURCE_INCLUDE},
    {"no-cache", FLAG, NO_EFFECT},
    {"frandom-seed", VALUE, NO_EFFECT},
    {"modify-stack-limit", VALUE, NO_EFFECT},
    {"minimal", FLAG, NO_EFFECT},
    {"device-int128", FLAG, NO_EFFECT}, /* clang always has it */
    {"brief-diagnostics", VALUE, NO_EFFECT},
    {"brief-diag", VALUE, NO_EFFECT},
    {"display-error-number", FLAG, NO_EFFECT},
    {"err-no", FLAG, NO_EFFECT},
    {"no-display-error-number", FLAG, NO_EFFECT},
    {"no-err-no", FLAG, NO_EFFECT},
    {"split-compile", VALUE, NO_EFFECT},
    {"gpu-architecture", VALUE, TARGET},
    {"arch", VALUE, TARGET},
};

/* Which option a word is; *value is what is joined to it, NULL if nothing is. */
static const option *find_option(const char *word, const char **value)
{
    const char *name = word;
    while (*name == '-' && name < word + 2)
        name++;
    if (name == word)
        return NULL;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        size_t length = strlen(options[i].name);
        const char *rest = name + length;
        *value = NULL;
        if (strncmp(name, options[i].name, length) != 0)
            continue;
        if (*rest == '\0')
            return &options[i];
        *value = rest;
        if (options[i].shape == JOINED && name == word + 1)
            return &options[i];
        if (options[i].shape == VALUE && *rest == '=') {
            *value = rest + 1;
            return &options[i];
        }
    }
    return NULL;
}

static bool truth(const char *value, bool *out)
{
    *out = strcmp(value, "true") == 0;
    return *out || strcmp(value, "false") == 0;
}

/* clang's own names for what --use_fast_math and its parts mean on a GPU; -ffast-math would also assume no NaN. */
static bool add_arithmetic(hdrt__cc_arguments *arguments, enum meaning meaning, const char *value)
{
    bool on = true;
    if (meaning != FAST_MATH && !truth(value, &on))
        return false;
    switch (meaning) {
    case FAST_MATH:
        hdrt__cc_arguments_add(arguments, "-D__USE_FAST_MATH__=1");
        hdrt__cc_arguments_add(arguments, "-fcuda-approx-transcendentals");
        hdrt__cc_arguments_add(arguments, "-mllvm");
        hdrt__cc_arguments_add(arguments, "-nvptx-prec-divf32=0");
        hdrt__cc_arguments_add(arguments, "-mllvm");
        hdrt__cc_arguments_add(arguments, "-nvptx-prec-sqrtf32=0");
        hdrt__cc_arguments_add(arguments, "-ffp-contract=fast");
        return add_arithmetic(arguments, FTZ, "true");
    case FMAD:
        hdrt__cc_arguments_add(arguments, "-ffp-contract=%s", on ? "fast" : "off");
        return true;
    case FTZ:
        if (on)
            hdrt__cc_arguments_add(arguments, "-D__CUDA_FTZ=1");
        else
            hdrt__cc_arguments_add(arguments, "-U__CUDA_FTZ");
        hdrt__cc_arguments_add(arguments, "-f%scuda-flush-denormals-to-zero", on ? "" : "no-");
        return true;
    case PRECISE_DIVISION:
        hdrt__cc_arguments_add(arguments, "-mllvm");
        hdrt__cc_arguments_add(arguments, "-nvptx-prec-divf32=%d", on ? 2 : 1);
        return true;
    case PRECISE_ROOT:
        hdrt__cc_arguments_add(arguments, "-mllvm");
        hdrt__cc_arguments_add(arguments, "-nvptx-prec-sqrtf32=%d", on ? 1 : 0);
        return true;
    default: return false;
    }
}

static bool set_max_registers(hdrt__cc_clang_options *out, const char *value)
{
    char *end;
    unsigned long count = strtoul(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || count > 255)
        return false;
    out->max_registers = (uint32_t)count;
    return true;
}

/* The one macro of the user's that the prelude asks for, where it defines assert: to be there before the prelude. */
static bool is_asked_early(const char *value)
{
    return strcspn(value, "=(\r\n") == strlen("NDEBUG") && memcmp(value, "NDEBUG", strlen("NDEBUG")) == 0;
}

/* "NAME", "NAME=value", "NAME(x)=value"; as with compilers, a value ends with its line. */
static bool define(hdrt__cc_clang_options *out, const char *value)
{
    hdrt__cc_buffer *macros = &out->macros;
    size_t name = strcspn(value, "=\r\n"), whole = strcspn(value, "\r\n");
    if (is_asked_early(value))
        hdrt__cc_arguments_add(&out->arguments, "-D%.*s", (int)whole, value);
    else if (name == whole)
        hdrt__cc_buffer_format(macros, "#define %.*s 1\n", (int)name, value);
    else
        hdrt__cc_buffer_format(macros, "#define %.*s %.*s\n", (int)name, value, (int)(whole - name - 1),
                               value + name + 1);
    return name > 0;
}

/* false: the value is none of this option's. */
static bool translate(hdrt__cc_clang_options *out, enum meaning meaning, const char *value)
{
    hdrt__cc_arguments *arguments = &out->arguments;
    bool on;
    switch (meaning) {
    case INCLUDE_FOLDER:
        hdrt__cc_arguments_add(arguments, "-I");
        hdrt__cc_arguments_add(arguments, "%s", value);
        hdrt__cc_arguments_add(&out->folders, "%s", value);
        return value[0] != '\0';
    case DEFINE: return define(out, value);
    case UNDEFINE:
        if (is_asked_early(value))
            hdrt__cc_arguments_add(arguments, "-UNDEBUG");
        else
            hdrt__cc_buffer_format(&out->macros, "#undef %.*s\n", (int)strcspn(value, "\r\n"), value);
        return value[0] != '\0';
    case PRE_INCLUDE:
        hdrt__cc_arguments_add(arguments, "-include");
        hdrt__cc_arguments_add(arguments, "%s", value);
        return value[0] != '\0';
    case STANDARD: hdrt__cc_arguments_add(arguments, "-std=%s", value); return value[0] != '\0';
    case LINE_INFO: hdrt__cc_arguments_add(arguments, "-gline-tables-only"); return true;
    case DEBUG: out->debug = true; return true;
    case MAX_REGISTERS: return set_max_registers(out, value);
    case RELOCATABLE:
        if (truth(value, &on) && on)
            hdrt__cc_arguments_add(arguments, "-fgpu-rdc");
        return on || strcmp(value, "false") == 0;
    case NO_WARNINGS: hdrt__cc_arguments_add(arguments, "-w"); return true;
    case WARNINGS_ARE_ERRORS:
        hdrt__cc_arguments_add(arguments, "-Werror");
        return value == NULL || strcmp(value, "all-warnings") == 0;
    case NO_SOURCE_INCLUDE: out->no_source_include = true; return true;
    case NO_EFFECT: return true;
    case TARGET: return false;
    default: return add_arithmetic(arguments, meaning, value);
    }
}

bool hdrt__cc_clang_translate(const hdrt__cc_request *request, hdrt__cc_clang_options *out, hdrt__cc_reply *reply)
{
    *out = (hdrt__cc_clang_options){0};
    for (size_t i = 0; i < request->options.count; i++) {
        const char *word = request->options.items[i], *value;
        const option *found = find_option(word, &value);
        if (found == NULL) {
            hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_OPTION, "clang has nothing that corresponds to the option '%s'",
                                word);
            return false;
        }
        if (found->shape != FLAG && value == NULL) {
            if (i + 1 == request->options.count) {
                hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_OPTION, "the option '%s' needs a value", word);
                return false;
            }
            value = request->options.items[++i];
        }
        if (found->meaning == TARGET) {
            hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_OPTION, "'%s': the target is given apart from the options", word);
            return false;
        }
        if (!translate(out, found->meaning, value)) {
            hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_OPTION, "'%s' is not a value of the option '-%s'",
                                value == NULL ? "" : value, found->name);
            return false;
        }
    }
    if (out->arguments.failed || out->folders.failed || out->macros.failed) {
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_MEMORY, "out of memory while translating the options");
        return false;
    }
    return true;
}

void hdrt__cc_clang_options_free(hdrt__cc_clang_options *translated)
{
    hdrt__cc_arguments_free(&translated->arguments);
    hdrt__cc_arguments_free(&translated->folders);
    hdrt__cc_buffer_free(&translated->macros);
}
