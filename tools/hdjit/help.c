/* SPDX-License-Identifier: MIT */
#include "help.h"

#include <stdio.h>
#include <string.h>

typedef struct command_entry {
    enum command command, parent;
    const char *name;
    const char *words;   /* what follows the name in the usage line */
    const char *summary; /* one line */
    const char *text;    /* the rest of the help, after the options */
} command_entry;

static const char argument_text[] =
    "\nEach ARG is a parameter of the kernel, in order:\n"
    "  i32:N u32:N i64:N u64:N   whole number, decimal or 0x hexadecimal\n"
    "  f32:X f64:X               floating point number\n"
    "  in:FILE                   pointer to the file's content\n"
    "  inout:FILE                the same, and the file gets what the kernel leaves there\n"
    "  out:FILE:BYTES            pointer to BYTES zeros; what the kernel leaves there goes to the file\n"
    "A .npy file keeps its type and shape, any other is raw bytes; - is a standard stream. Files are written\n"
    "after the last kernel, all or none.\n";

static const command_entry commands[] = {
    {COMMAND_COMPILE, COMMAND_NONE, "compile", "FILE.cu -o OUT [OPTION]...", "compile a kernel source to PTX or a cubin",
     "\nThe kind of code is told by OUT's ending, .ptx, .cubin, .ltoir, or .hdb for a bundle, of which a program loads\n"
     "what suits its GPU; with another, several targets give a bundle, NVRTC makes a cubin and clang PTX. No driver\n"
     "and no GPU is needed. A word @FILE stands for the words in FILE.\n"},
    {COMMAND_LINK, COMMAND_NONE, "link", "FILE... -o OUT [OPTION]...", "link LTO-IR, PTX and cubins to one cubin",
     "\nBy NVIDIA's nvJitLink. Each FILE is LTO-IR, PTX, a relocatable cubin or object, a fatbin, a library of these,\n"
     "or an image file. Without -arch the target is that of the first that tells.\n"},
    {COMMAND_INSPECT, COMMAND_NONE, "inspect", "FILE... [OPTION]...", "show what is in compiled code",
     "\nEach FILE is PTX, a cubin, an image file of the cache, or a bundle. No driver and no compiler is needed.\n"},
    {COMMAND_PRECOMPILE, COMMAND_NONE, "precompile", "LIST --into DIR [OPTION]...",
     "compile what an application compiled, to ship it",
     "\nLIST is what a run of the application with HDRT_RECORD=LIST wrote. DIR becomes a kernel cache, to be\n"
     "shipped and named to the application by HDRT_CACHE_READ_ONLY. Sources must be where they were.\n"},
    {COMMAND_RUN, COMMAND_NONE, "run", "FILE KERNEL --grid X[,Y[,Z]] --block X[,Y[,Z]] [OPTION]... [ARG]...",
     "run a kernel over files", argument_text},
    {COMMAND_PIPE, COMMAND_NONE, "pipe", "FILE KERNEL [OPTION]... [ARG]...", "run standard input through a kernel, batch by batch",
     "\nThe kernel is (const unsigned char *in, unsigned char *out, unsigned long long n, ARG...); of each batch it\n"
     "gets n bytes and has n to write. What it prints goes to standard error.\n"},
    {COMMAND_INFO, COMMAND_NONE, "info", "[OPTION]...", "show driver, devices, compilers, companions and cache", NULL},
    {COMMAND_ENV, COMMAND_NONE, "env", "", "show the environment variables and their values", NULL},
    {COMMAND_CACHE, COMMAND_NONE, "cache", "WHAT [OPTION]...", "look at the kernel cache, keep it small, ask why", NULL},
    {COMMAND_CACHE_STATS, COMMAND_CACHE, "cache stats", "[OPTION]...", "show what the cache did and holds",
     "\nThe counters are of all programs that used the folder and ended in order.\n"},
    {COMMAND_CACHE_LIST, COMMAND_CACHE, "cache list", "[OPTION]...", "list the compiled code in the cache",
     "\nThe latest used comes first. With --json all files are listed, not only code.\n"},
    {COMMAND_CACHE_PATH, COMMAND_CACHE, "cache path", "", "print the cache's folder", NULL},
    {COMMAND_CACHE_VERIFY, COMMAND_CACHE, "cache verify", "[OPTION]...", "read every file and check it",
     "\nThe exit status is 1 if some are bad and stay. Bad files do no harm: they are never used.\n"},
    {COMMAND_CACHE_TRIM, COMMAND_CACHE, "cache trim", "[OPTION]...", "remove what was not used for long",
     "\nWhat killed processes left is removed, too.\n"},
    {COMMAND_CACHE_CLEAR, COMMAND_CACHE, "cache clear", "", "remove everything from the cache",
     "\nOnly what libhdrt made is removed; the counters stay.\n"},
    {COMMAND_CACHE_EXPLAIN, COMMAND_CACHE, "cache explain", "FILE.cu [OPTION]...", "say why a compile would run",
     "\nGive it the options of the compile. Nothing is compiled. The exit status is 0, found or not.\n"},
};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

const char *command_name(enum command command)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (commands[i].command == command)
            return commands[i].name;
    return "";
}

/* What of the name stands behind the parent's. */
static const char *last_word(const command_entry *entry)
{
    const char *blank = strrchr(entry->name, ' ');

    return blank ? blank + 1 : entry->name;
}

enum command command_by_name(enum command parent, const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (commands[i].parent == parent && strcmp(last_word(&commands[i]), name) == 0)
            return commands[i].command;
    return COMMAND_NONE;
}

const char *command_list(enum command parent, char *room, size_t size)
{
    const command_entry *last = NULL;
    size_t used = 0;

    *room = 0;
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (commands[i].parent == parent)
            last = &commands[i];
    for (size_t i = 0; i < COMMAND_COUNT && used < size; i++)
        if (commands[i].parent == parent)
            used += (size_t)snprintf(room + used, size - used, "%s%s",
                                     used == 0 ? "" : &commands[i] == last ? " or " : ", ", last_word(&commands[i]));
    return room;
}

static void print_option(const option_entry *entry)
{
    /* Either works; shown is what compilers are used to. */
    bool one_dash = entry->id == OPTION_ARCH || (entry->name && entry->name[0] == 'M') || (entry->pass && entry->pass[0] == '-' && entry->pass[1] != '-');
    const char *dashes = one_dash ? "-" : "--";
    char left[64], letter[4] = "   ";

    if (entry->letter)
        snprintf(letter, sizeof letter, "-%c%s", entry->letter, entry->name ? "," : "");
    if (entry->name)
        snprintf(left, sizeof left, "  %-3s %s%s%s%s", letter, dashes, entry->name, entry->value ? "=" : "",
                 entry->value ? entry->value : "");
    else
        snprintf(left, sizeof left, "  %s%s%s", letter, entry->value ? " " : "", entry->value ? entry->value : "");
    printf("%-30s  %s\n", left, entry->help);
}

static void print_commands(enum command parent)
{
    bool any = false;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (commands[i].parent != parent)
            continue;
        printf("%s  %-10s  %s\n", any ? "" : "\nCommands:\n", last_word(&commands[i]), commands[i].summary);
        any = true;
    }
}

void help_print(enum command command)
{
    const command_entry *about = NULL;

    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (commands[i].command == command)
            about = &commands[i];
    if (about) {
        printf("Usage: hdjit %s%s%s\n%c%s.\n", about->name, *about->words ? " " : "", about->words,
               about->summary[0] - 'a' + 'A', about->summary + 1);
    } else {
        printf("Usage: hdjit COMMAND [OPTION]... [WORD]...\n"
               "Compile, cache and run GPU kernels, on NVIDIA GPUs or on the CPU.\n");
    }
    print_commands(command);
    printf("\nOptions, before or after the other words:\n");
    for (const option_entry *entry = option_table; entry->id; entry++)
        if (entry->commands & command)
            print_option(entry);
    if (about && about->text)
        fputs(about->text, stdout);
    if (command == COMMAND_PIPE)
        fputs(argument_text, stdout);
    printf("\nExit status: 0 done, 1 failed, 2 bad usage, 3 no usable driver or device, 4 no usable compiler,\n"
           "5 the compile passed its time limit. %s\n",
           about ? "More: man hdjit." : "More: hdjit COMMAND --help, man hdjit.");
}

void version_print(void)
{
    unsigned version = hdrt_version();

    printf("hdjit (libhdrt) %u.%u.%u\nLicence: MIT. There is no warranty, to the extent permitted by law.\n",
           version / 10000, version / 100 % 100, version % 100);
}
