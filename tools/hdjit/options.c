/* SPDX-License-Identifier: MIT */
#include "options.h"

#include "depfile.h"
#include "help.h"
#include "message.h"
#include "number.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_DEFAULT (4u << 20)
#define BATCH_LIMIT (1ull << 40)
#define DEPTH_DEFAULT 3
#define DEPTH_LIMIT 64
#define BLOCK_DEFAULT 256
#define JOBS_LIMIT 1024
#define REPEAT_LIMIT 1000000
#define TIME_LIMIT_SECONDS 4294967.0 /* as milliseconds it fits 32 bits */

/* getopt's number of the table's entry 0; above every character. */
#define FIRST_ENTRY 1000
#define ENTRY_LIMIT 128

static int set_driver(options *o, const char *value, const char *from)
{
    static const char *const names[] = {[DRIVER_AUTO] = "auto", [DRIVER_CUDA] = "cuda", [DRIVER_SOFT] = "soft"};

    for (int i = DRIVER_AUTO; i <= DRIVER_SOFT; i++)
        if (strcmp(value, names[i]) == 0) {
            o->driver = (enum driver_choice)i;
            return 0;
        }
    return fail(EXIT_CODE_USAGE, "%s is '%s': expected auto, cuda or soft", from, value);
}

static int set_device(options *o, const char *value, const char *from)
{
    uint64_t number;

    if (number_unsigned(value, UINT32_MAX, &number) != NUMBER_OK)
        return fail(EXIT_CODE_USAGE, "%s is '%s': expected a device's number, from 0", from, value);
    o->device = (uint32_t)number;
    return 0;
}

int options_begin(options *o)
{
    hdrt_environment_variable variable = {0};
    int code = 0;

    *o = (options){.block = {BLOCK_DEFAULT, 1, 1},
                   .grid = {1, 1, 1},
                   .batch_bytes = BATCH_DEFAULT,
                   .depth = DEPTH_DEFAULT};
    for (uint32_t i = 0; !code && hdrt_environment_get(i, &variable) == HDRT_OK; i++) {
        if (variable.value && strcmp(variable.name, "HDRT_DRIVER") == 0)
            code = set_driver(o, variable.value, variable.name);
        else if (variable.value && strcmp(variable.name, "HDRT_DEVICE") == 0)
            code = set_device(o, variable.value, variable.name);
    }
    return code;
}

void options_end(options *o)
{
    for (uint32_t i = 0; i < o->compile_option_count; i++)
        free(o->compile_options[i]);
    free(o->compile_options);
    for (uint32_t i = 0; i < o->setting_count; i++)
        free(o->settings[i].name);
    free(o->settings);
    free(o->names);
    for (uint32_t i = 0; i < o->depfile_target_count; i++)
        free(o->depfile_targets[i]);
    free(o->depfile_targets);
}

/* Room for one more element of `size` bytes; NULL: out of memory, and the old array stays. */
static void *room_for_one(void *array, uint32_t count, size_t size)
{
    return reallocarray(array, (size_t)count + 1, size);
}

static int out_of_memory(void)
{
    return fail(EXIT_CODE_FAILED, "out of memory");
}

static int add_compile_option(options *o, const char *pass, const char *value)
{
    char **list = room_for_one(o->compile_options, o->compile_option_count, sizeof *list);
    char *text;

    if (!list)
        return out_of_memory();
    o->compile_options = list;
    if (asprintf(&text, "%s%s", pass, value ? value : "") < 0)
        return out_of_memory();
    list[o->compile_option_count++] = text;
    return 0;
}

static int add_setting(options *o, const char *value)
{
    const char *equals = strchr(value, '=');
    setting *settings;
    char *name;

    if (!equals || equals == value || !equals[1])
        return fail(EXIT_CODE_USAGE, "--set is '%s': expected NAME=FILE", value);
    settings = room_for_one(o->settings, o->setting_count, sizeof *settings);
    if (!settings)
        return out_of_memory();
    o->settings = settings;
    name = strndup(value, (size_t)(equals - value));
    if (!name)
        return out_of_memory();
    settings[o->setting_count++] = (setting){name, equals + 1};
    return 0;
}

static int set_compiler(options *o, const char *value)
{
    if (strcmp(value, "auto") == 0)
        o->compiler = HDRT_COMPILER_AUTO;
    else if (strcmp(value, "nvrtc") == 0)
        o->compiler = HDRT_COMPILER_NVRTC;
    else if (strcmp(value, "clang") == 0)
        o->compiler = HDRT_COMPILER_CLANG;
    else
        return fail(EXIT_CODE_USAGE, "--compiler is '%s': expected auto, nvrtc or clang", value);
    return 0;
}

static int set_kind(options *o, hdrt_code_kind kind)
{
    if (o->kind != HDRT_CODE_AUTO && o->kind != kind)
        return fail(EXIT_CODE_USAGE, "of --ptx, --cubin and --lto-ir only one can be given");
    o->kind = kind;
    return 0;
}

static void log_line(void *context, hdrt_log_level level, const char *line)
{
    fprintf(stderr, "hdrt: %s\n", line);
}

static int set_log(const char *value)
{
    static const char *const names[] = {"none", "error", "warn", "info", "debug"};

    for (int i = HDRT_LOG_NONE; i <= HDRT_LOG_DEBUG; i++)
        if (strcmp(value, names[i]) == 0) {
            hdrt_log_set((hdrt_log_level)i, log_line, NULL);
            return 0;
        }
    return fail(EXIT_CODE_USAGE, "--log is '%s': expected none, error, warn, info or debug", value);
}

static int set_time_limit(options *o, const char *value)
{
    double seconds;

    if (number_double(value, &seconds) != NUMBER_OK || !(seconds >= 0.001 && seconds <= TIME_LIMIT_SECONDS))
        return fail(EXIT_CODE_USAGE, "--time-limit is '%s': expected seconds, 0.001 to %.0f", value,
                    TIME_LIMIT_SECONDS);
    o->time_limit_ms = (uint32_t)lround(seconds * 1000);
    return 0;
}

/* A number from `least` to `most`, as a size with a suffix or a plain one. */
static int set_number(const option_entry *entry, const char *value, bool size, uint64_t least, uint64_t most,
                      uint64_t *out)
{
    enum number_result result = size ? number_size(value, most, out) : number_unsigned(value, most, out);

    if (result == NUMBER_OK && *out >= least)
        return 0;
    return fail(EXIT_CODE_USAGE, "--%s is '%s': expected a whole number%s, %llu to %llu", entry->name, value,
                size ? " (K, M or G may follow)" : "", (unsigned long long)least, (unsigned long long)most);
}

static int set_triple(const option_entry *entry, const char *value, uint32_t out[3])
{
    enum number_result result = number_triple(value, out);

    if (result == NUMBER_MALFORMED)
        return fail(EXIT_CODE_USAGE, "--%s is '%s': expected X, X,Y or X,Y,Z, whole numbers", entry->name, value);
    if (result == NUMBER_RANGE)
        return fail(EXIT_CODE_USAGE, "--%s is '%s': each number is at most %u", entry->name, value, UINT32_MAX);
    if (entry->id == OPTION_BLOCK && (!out[0] || !out[1] || !out[2]))
        return fail(EXIT_CODE_USAGE, "--block is '%s': a block has 1 thread or more in each direction", value);
    return 0;
}

static int add_name(options *o, const char *value)
{
    const char **names = room_for_one(o->names, o->name_count, sizeof *names);

    if (!names)
        return out_of_memory();
    o->names = names;
    names[o->name_count++] = value;
    return 0;
}

static int add_depfile_target(options *o, const char *value, bool quote)
{
    char **targets = room_for_one(o->depfile_targets, o->depfile_target_count, sizeof *targets), *target;

    if (!targets)
        return out_of_memory();
    o->depfile_targets = targets;
    target = quote ? depfile_quote(value, true) : strdup(value);
    if (!target)
        return out_of_memory();
    targets[o->depfile_target_count++] = target;
    return 0;
}

static int set_diagnostics(const char *value)
{
    if (strcmp(value, "json") != 0 && strcmp(value, "text") != 0)
        return fail(EXIT_CODE_USAGE, "--diagnostics is '%s': expected text or json", value);
    message_json(strcmp(value, "json") == 0);
    return 0;
}

/* Options of compile alone, or of it and its relatives. */
static int apply_output_option(options *o, const option_entry *entry, const char *value)
{
    uint64_t number = 0;
    int code;

    switch (entry->id) {
    case OPTION_LTO_IR:
        return set_kind(o, HDRT_CODE_LTO_IR);
    case OPTION_BUNDLE:
        o->bundle = true;
        return 0;
    case OPTION_NAME:
        return add_name(o, value);
    case OPTION_JOBS:
        code = set_number(entry, value, false, 1, JOBS_LIMIT, &number);
        o->jobs = (uint32_t)number;
        return code;
    case OPTION_LIST_KERNELS:
        o->list_kernels = true;
        return 0;
    case OPTION_PRINT_COMMAND:
        o->print_command = true;
        return 0;
    case OPTION_DEPFILE_ONLY:
        o->depfile_only = true;
        return 0;
    case OPTION_DEPFILE_ALSO:
        o->depfile_also = true;
        return 0;
    case OPTION_DEPFILE:
        o->depfile = value;
        return 0;
    case OPTION_PHONY:
        o->phony = true;
        return 0;
    case OPTION_DIAGNOSTICS:
        return set_diagnostics(value);
    case OPTION_INTO:
        o->into = value;
        return 0;
    default:
        return add_depfile_target(o, value, entry->id == OPTION_DEPFILE_TARGET_QUOTED);
    }
}

/* Options of compile. */
static int apply_compile_option(options *o, const option_entry *entry, const char *value)
{
    switch (entry->id) {
    case OPTION_COMPILER:
        return set_compiler(o, value);
    case OPTION_PTX:
        return set_kind(o, HDRT_CODE_PTX);
    case OPTION_CUBIN:
        return set_kind(o, HDRT_CODE_CUBIN);
    case OPTION_ARCH:
        o->arch = value;
        return 0;
    case OPTION_PASS:
        return add_compile_option(o, entry->pass, value);
    case OPTION_TIME_LIMIT:
        return set_time_limit(o, value);
    case OPTION_MEMORY_LIMIT:
        return set_number(entry, value, true, 1, BATCH_LIMIT, &o->memory_limit_bytes);
    case OPTION_NO_CACHE:
        o->no_cache = true;
        return 0;
    default:
        o->output = value;
        return 0;
    }
}

/* The driver knows the words too; here they are looked at before anything is done. */
static int set_checks(options *o, const char *value)
{
    static const char *const words[] = {"memory", "race", "init"};

    for (const char *at = value;; at++) {
        size_t length = strcspn(at, ",");
        bool known = false;

        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            known |= strlen(words[i]) == length && strncmp(words[i], at, length) == 0;
        if (!known)
            return fail(EXIT_CODE_USAGE, "--check is '%s': '%.*s' is no check: expected words out of memory, race and "
                        "init, with commas between", value, (int)length, at);
        at += length;
        if (!*at)
            break;
    }
    o->checks = value;
    return add_compile_option(o, "-lineinfo", NULL); /* so that reports name source lines */
}

/* Options of run and pipe. */
static int apply_launch_option(options *o, const option_entry *entry, const char *value)
{
    uint64_t number = 0;
    int code;

    switch (entry->id) {
    case OPTION_GRID:
        o->grid_given = true;
        return set_triple(entry, value, o->grid);
    case OPTION_BLOCK:
        o->block_given = true;
        return set_triple(entry, value, o->block);
    case OPTION_SHARED:
        code = set_number(entry, value, true, 0, UINT32_MAX, &number);
        o->shared = (uint32_t)number;
        return code;
    case OPTION_SET:
        return add_setting(o, value);
    case OPTION_CHECK:
        return set_checks(o, value);
    case OPTION_REPEAT:
        code = set_number(entry, value, false, 1, REPEAT_LIMIT, &number);
        o->repeat = (uint32_t)number;
        return code;
    case OPTION_BATCH:
        return set_number(entry, value, true, 1, BATCH_LIMIT, &o->batch_bytes);
    case OPTION_DEPTH:
        code = set_number(entry, value, false, 1, DEPTH_LIMIT, &number);
        o->depth = (uint32_t)number;
        return code;
    case OPTION_MEASURE:
        o->stats = true;
        return set_number(entry, value, true, 1, UINT64_MAX, &o->measure_bytes);
    default:
        o->stats = true;
        return 0;
    }
}

/* Seconds with an optional s, m, h, d or w. */
static int set_age(options *o, const char *value)
{
    static const char units[] = "smhdw";
    static const uint32_t seconds[] = {1, 60, 3600, 86400, 604800};
    size_t length = strlen(value);
    const char *unit = length ? strchr(units, value[length - 1]) : NULL;
    uint32_t factor = unit && *unit ? seconds[unit - units] : 1;
    char digits[24] = "";

    snprintf(digits, sizeof digits, "%.*s", (int)(factor > 1 || (unit && *unit) ? length - 1 : length), value);
    if (length < sizeof digits && number_unsigned(digits, UINT32_MAX, &o->max_age_s) == NUMBER_OK && o->max_age_s) {
        o->max_age_s *= factor;
        return 0;
    }
    return fail(EXIT_CODE_USAGE, "--max-age is '%s': expected a whole number with s, m, h, d or w behind: 30d", value);
}

/* Options of cache. */
static int apply_cache_option(options *o, const option_entry *entry, const char *value)
{
    switch (entry->id) {
    case OPTION_ZERO:
        o->zero = true;
        return 0;
    case OPTION_REPAIR:
        o->repair = true;
        return 0;
    case OPTION_FOR_DEVICE:
        o->for_device = true;
        return 0;
    case OPTION_MAX_SIZE:
        return set_number(entry, value, true, 1, BATCH_LIMIT, &o->max_bytes);
    default:
        return set_age(o, value);
    }
}

static int apply_general_option(options *o, const option_entry *entry, const char *value)
{
    switch (entry->id) {
    case OPTION_DRIVER:
        return set_driver(o, value, "--driver");
    case OPTION_DEVICE:
        return set_device(o, value, "--device");
    case OPTION_CACHE_DIR:
        o->cache_dir = strcmp(value, "off") == 0 ? "" : value;
        return 0;
    case OPTION_NVRTC:
        o->nvrtc = value;
        return 0;
    case OPTION_CLANG:
        o->clang = value;
        return 0;
    case OPTION_LIBEXEC:
        o->libexec = value;
        return 0;
    case OPTION_LOG:
        return set_log(value);
    default:
        o->json = true;
        return 0;
    }
}

static int apply(options *o, enum command command, const option_entry *entry, const char *value)
{
    int code;

    if (entry->id == OPTION_HELP) {
        help_print(command);
        return EXIT_CODE_OK;
    }
    if (entry->id == OPTION_VERSION) {
        version_print();
        return EXIT_CODE_OK;
    }
    if (entry->value && !*value)
        return fail(EXIT_CODE_USAGE, "%s%s is empty: expected %s", entry->name ? "--" : "-",
                    entry->name ? entry->name : (char[]){entry->letter, 0}, entry->value);
    if (entry->id >= OPTION_GRID && entry->id <= OPTION_MEASURE)
        code = apply_launch_option(o, entry, value);
    else if (entry->id >= OPTION_LTO_IR && entry->id <= OPTION_INTO)
        code = apply_output_option(o, entry, value);
    else if (entry->id >= OPTION_COMPILER && entry->id <= OPTION_OUTPUT)
        code = apply_compile_option(o, entry, value);
    else if (entry->id >= OPTION_ZERO)
        code = apply_cache_option(o, entry, value);
    else
        code = apply_general_option(o, entry, value);
    return code ? code : OPTIONS_GO_ON;
}

static int bad_option(enum command command, bool lacks_value, const char *word, int letter)
{
    const char *name = command_name(command), *trouble = "is not an option here, or is short for several";
    char text[3] = {'-', (char)letter, 0};

    /* Letters run together: getopt tells which one it was. */
    if (letter > 0 && letter < FIRST_ENTRY && strncmp(word, "--", 2) != 0)
        word = text;
    if (lacks_value)
        trouble = "needs a value";
    else if (letter >= FIRST_ENTRY)
        trouble = "takes no value";
    return fail(EXIT_CODE_USAGE, "%s %s; see hdjit %s%s--help", word, trouble, name, *name ? " " : "");
}

int options_parse(options *o, enum command command, int argc, char **argv, int *out_first)
{
    struct option longs[ENTRY_LIMIT + 1] = {0};
    char shorts[2 * ENTRY_LIMIT + 4] = "";
    int long_count = 0, short_count = 0, code = OPTIONS_GO_ON, which;

    /* Before the subcommand, stop at the first word; ':' tells a missing value from an unknown option. */
    if (command == COMMAND_NONE || command == COMMAND_CACHE)
        shorts[short_count++] = '+';
    shorts[short_count++] = ':';
    for (int i = 0; option_table[i].id && i < ENTRY_LIMIT; i++) {
        const option_entry *entry = &option_table[i];

        if (!(entry->commands & command))
            continue;
        if (entry->name)
            longs[long_count++] = (struct option){entry->name, entry->value ? required_argument : no_argument, NULL,
                                                  FIRST_ENTRY + i};
        if (entry->letter) {
            shorts[short_count++] = entry->letter;
            if (entry->value)
                shorts[short_count++] = ':';
        }
    }
    opterr = 0;
    optind = 0; /* glibc: begin anew */
    while (code == OPTIONS_GO_ON && (which = getopt_long_only(argc, argv, shorts, longs, NULL)) != -1) {
        const option_entry *entry = which >= FIRST_ENTRY ? &option_table[which - FIRST_ENTRY] : NULL;

        if (which == '?' || which == ':') {
            code = bad_option(command, which == ':', argv[optind - 1], optopt);
            break;
        }
        for (int i = 0; !entry && option_table[i].id; i++)
            if (option_table[i].letter == which && (option_table[i].commands & command))
                entry = &option_table[i];
        code = apply(o, command, entry, optarg);
    }
    *out_first = optind;
    return code;
}
