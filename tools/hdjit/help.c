/* SPDX-License-Identifier: MIT */
#include "help.h"

#include <stdio.h>
#include <string.h>

typedef struct command_entry {
    enum command command;
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
    {COMMAND_COMPILE, "compile", "FILE.cu -o OUT [OPTION]...", "compile a kernel source to PTX or a cubin",
     "\nThe kind of code is told by OUT's ending, .ptx or .cubin; with another, NVRTC makes a cubin and clang PTX.\n"
     "No driver and no GPU is needed.\n"},
    {COMMAND_RUN, "run", "FILE KERNEL --grid X[,Y[,Z]] --block X[,Y[,Z]] [OPTION]... [ARG]...",
     "run a kernel over files", argument_text},
    {COMMAND_PIPE, "pipe", "FILE KERNEL [OPTION]... [ARG]...", "run standard input through a kernel, batch by batch",
     "\nThe kernel is (const unsigned char *in, unsigned char *out, unsigned long long n, ARG...); of each batch it\n"
     "gets n bytes and has n to write. What it prints goes to standard error.\n"},
    {COMMAND_INFO, "info", "[OPTION]...", "show driver, devices, compilers, companions and cache", NULL},
    {COMMAND_ENV, "env", "", "show the environment variables and their values", NULL},
};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

const char *command_name(enum command command)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (commands[i].command == command)
            return commands[i].name;
    return "";
}

enum command command_by_name(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].command;
    return COMMAND_NONE;
}

static void print_option(const option_entry *entry)
{
    /* Either works; shown is what compilers are used to. */
    bool one_dash = entry->id == OPTION_ARCH || (entry->pass && entry->pass[0] == '-' && entry->pass[1] != '-');
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
               "Compile, cache and run GPU kernels, on NVIDIA GPUs or on the CPU.\n\nCommands:\n");
        for (size_t i = 0; i < COMMAND_COUNT; i++)
            printf("  %-8s  %s\n", commands[i].name, commands[i].summary);
    }
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
