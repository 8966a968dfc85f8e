/* SPDX-License-Identifier: MIT */
/*
 * The command line: one table of all options, which says for each the subcommands that take it. Parsing, the help texts
 * and the completion all come from it. main.c parses what stands before the subcommand, each subcommand the rest.
 */
#ifndef HDJIT_OPTIONS_H
#define HDJIT_OPTIONS_H

#include <hdrt.h>

#include <stdbool.h>
#include <stdint.h>

enum command {
    COMMAND_NONE = 1, /* what stands before the subcommand */
    COMMAND_COMPILE = 2,
    COMMAND_RUN = 4,
    COMMAND_PIPE = 8,
    COMMAND_INFO = 16,
    COMMAND_ENV = 32,
    COMMAND_CACHE = 64, /* what stands before its own subcommand */
    COMMAND_CACHE_STATS = 128,
    COMMAND_CACHE_LIST = 256,
    COMMAND_CACHE_PATH = 512,
    COMMAND_CACHE_VERIFY = 1024,
    COMMAND_CACHE_TRIM = 2048,
    COMMAND_CACHE_CLEAR = 4096,
    COMMAND_CACHE_EXPLAIN = 8192,
    COMMAND_INSPECT = 16384,
    COMMAND_LINK = 32768,
    COMMAND_PRECOMPILE = 65536,
};

enum driver_choice {
    DRIVER_AUTO, /* NVIDIA's if it has a device, else the soft one */
    DRIVER_CUDA,
    DRIVER_SOFT,
};

/* --set NAME=FILE */
typedef struct setting {
    char *name;
    const char *file;
} setting;

/* All that options and environment ask for. Texts are borrowed from argv and the environment. */
typedef struct options {
    enum driver_choice driver;
    bool driver_given; /* by option or environment */
    uint32_t device;
    const char *cache_dir, *nvrtc, *clang, *libexec;

    hdrt_compiler compiler;
    hdrt_code_kind kind;
    const char *arch;
    char **compile_options; /* NVRTC spelling, owned */
    uint32_t compile_option_count;
    uint32_t time_limit_ms;
    uint64_t memory_limit_bytes;
    bool no_cache;
    const char *output;
    const char **names; /* name expressions */
    uint32_t name_count;
    uint32_t jobs; /* 0: not given */
    bool bundle, list_kernels, print_command;

    bool depfile_only, depfile_also, phony; /* -M, -MD, -MP */
    const char *depfile;                    /* -MF */
    char **depfile_targets;                 /* as they stand in the file, owned */
    uint32_t depfile_target_count;
    const char *into;

    bool grid_given, block_given;
    uint32_t grid[3], block[3], shared;
    setting *settings;
    uint32_t setting_count;
    const char *checks; /* NULL: none */
    uint32_t repeat;

    uint64_t batch_bytes;
    uint32_t depth;
    bool stats;
    uint64_t measure_bytes;

    bool json;

    bool zero, repair, for_device;
    uint64_t max_bytes, max_age_s; /* 0: not given */
} options;

/* Defaults, then the environment's wishes. Returns 0 or an exit code. */
int options_begin(options *o);
void options_end(options *o);

/* No exit code: go on. */
#define OPTIONS_GO_ON (-1)

/*
 * Reads the options of `command` and moves the other words to argv[*out_first] and on. --help and --version are
 * answered here. Returns OPTIONS_GO_ON, or the exit code to end with.
 */
int options_parse(options *o, enum command command, int argc, char **argv, int *out_first);

/* One option. */
enum option_id {
    OPTION_HELP = 1,
    OPTION_VERSION,
    OPTION_DRIVER,
    OPTION_DEVICE,
    OPTION_CACHE_DIR,
    OPTION_NVRTC,
    OPTION_CLANG,
    OPTION_LIBEXEC,
    OPTION_LOG,
    OPTION_COMPILER,
    OPTION_PTX,
    OPTION_CUBIN,
    OPTION_ARCH,
    OPTION_PASS, /* goes to the compiler as option_entry.pass says */
    OPTION_LTO_IR,
    OPTION_BUNDLE,
    OPTION_NAME,
    OPTION_JOBS,
    OPTION_LIST_KERNELS,
    OPTION_PRINT_COMMAND,
    OPTION_DEPFILE_ONLY,
    OPTION_DEPFILE_ALSO,
    OPTION_DEPFILE,
    OPTION_DEPFILE_TARGET,
    OPTION_DEPFILE_TARGET_QUOTED,
    OPTION_PHONY,
    OPTION_DIAGNOSTICS,
    OPTION_INTO,
    OPTION_TIME_LIMIT,
    OPTION_MEMORY_LIMIT,
    OPTION_NO_CACHE,
    OPTION_OUTPUT,
    OPTION_GRID,
    OPTION_BLOCK,
    OPTION_SHARED,
    OPTION_SET,
    OPTION_CHECK,
    OPTION_REPEAT,
    OPTION_BATCH,
    OPTION_DEPTH,
    OPTION_STATS,
    OPTION_MEASURE,
    OPTION_JSON,
    OPTION_ZERO,
    OPTION_REPAIR,
    OPTION_FOR_DEVICE,
    OPTION_MAX_SIZE,
    OPTION_MAX_AGE,
};

typedef struct option_entry {
    const char *name;  /* long name, taken with one dash or two; NULL: there is only a letter */
    char letter;       /* 0: there is only a long name */
    enum option_id id;
    const char *value; /* what its value is called; NULL: it takes none */
    unsigned commands; /* which take it */
    const char *pass;  /* compile options: the compiler's spelling, before the value */
    const char *help;
} option_entry;

/* The table, in the order of the help texts; it ends with an entry of id 0. */
extern const option_entry option_table[];

#endif
