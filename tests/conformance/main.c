/* SPDX-License-Identifier: MIT */
#include "conformance.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "instructions.h"
#include "modules.h"

static const char usage[] =
    "usage: conformance --driver=cuda|soft [options]\n"
    "  --library=FILE   the driver's library, instead of libcuda.so.1 or libhdsoft.so\n"
    "  --only=PATTERN   checks whose name contains PATTERN or matches it as a glob\n"
    "  --out=FILE       write the answers there as JSON; standard output without it\n"
    "  --compare=FILE   print TAP against a recording instead\n"
    "  --jobs=N         processes at once (processors, at most 8)\n"
    "  --time-limit=N   seconds that a check may take (20)\n"
    "  --list           print the names of the checks\n"
    "  --ptx-to=DIR     write every module of PTX there, to be held against an assembler\n"
    "  --verbose        leave the children's output on\n";

typedef struct choices {
    run_options run;
    const char *out, *compare, *ptx_to;
    bool list;
} choices;

static void write_string(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            fprintf(to, "\\%c", byte);
        else if (byte < 32 || byte > 126)
            fprintf(to, "\\u%04x", byte > 126 ? '?' : byte);
        else
            fputc(byte, to);
    }
    fputc('"', to);
}

static bool write_json(const choices *chosen, const answer *answers, size_t count, int version, const char *device)
{
    FILE *to = chosen->out ? fopen(chosen->out, "w") : stdout;
    if (!to) {
        fprintf(stderr, "conformance: cannot write %s: %s\n", chosen->out, strerror(errno));
        return false;
    }
    fprintf(to, "{\n  \"driver\": \"%s\",\n  \"driver_version\": %d,\n  \"device\": ", chosen->run.driver, version);
    write_string(to, device);
    fprintf(to, ",\n  \"differences\": {},\n  \"checks\": {\n");
    for (size_t i = 0; i < count; i++) {
        char name[256];
        check_full_name(&answers[i], name);
        fprintf(to, "    ");
        write_string(to, name);
        fprintf(to, ": ");
        write_string(to, answers[i].text ? answers[i].text : "not run");
        fprintf(to, "%s\n", i + 1 < count ? "," : "");
    }
    fprintf(to, "  }\n}\n");
    return to == stdout ? !fflush(to) : !fclose(to);
}

/* Answers that no driver should give: the check did not get as far as its question. */
static bool is_trouble(const char *text)
{
    return !text || strstr(text, "needed ") || !strncmp(text, "signal ", 7) || !strncmp(text, "exit ", 5) ||
           !strcmp(text, "timeout") || strstr(text, "9999");
}

static void summarize(const answer *answers, size_t count)
{
    size_t troubled = 0;
    for (size_t i = 0; i < count;) {
        const area *of = answers[i].area;
        size_t in_area = 0, bad = 0;
        for (; i < count && answers[i].area == of; i++) {
            in_area++;
            if (is_trouble(answers[i].text)) {
                char name[256];
                check_full_name(&answers[i], name);
                fprintf(stderr, "  %s: %s\n", name, answers[i].text ? answers[i].text : "not run");
                bad++;
            }
        }
        fprintf(stderr, "%-16s %4zu checks, %zu without an answer\n", of->name, in_area, bad);
        troubled += bad;
    }
    fprintf(stderr, "%-16s %4zu checks, %zu without an answer\n", "all", count, troubled);
}

static bool write_ptx(const char *folder)
{
    return modules_write(folder) && instructions_write(folder);
}

static bool parse(int count, char **arguments, choices *chosen)
{
    static const struct option known[] = {
        {"driver", required_argument, NULL, 'd'},  {"library", required_argument, NULL, 'l'},
        {"only", required_argument, NULL, 'p'},    {"out", required_argument, NULL, 'o'},
        {"compare", required_argument, NULL, 'c'}, {"jobs", required_argument, NULL, 'j'},
        {"time-limit", required_argument, NULL, 't'}, {"list", no_argument, NULL, 'L'},
        {"ptx-to", required_argument, NULL, 'x'},  {"verbose", no_argument, NULL, 'v'}, {0}};
    for (int option; (option = getopt_long(count, arguments, "", known, NULL)) != -1;) {
        switch (option) {
        case 'd': chosen->run.driver = optarg; break;
        case 'l': chosen->run.library = optarg; break;
        case 'p': chosen->run.pattern = optarg; break;
        case 'o': chosen->out = optarg; break;
        case 'c': chosen->compare = optarg; break;
        case 'j': chosen->run.jobs = (unsigned)atoi(optarg); break;
        case 't': chosen->run.seconds = (unsigned)atoi(optarg); break;
        case 'L': chosen->list = true; break;
        case 'x': chosen->ptx_to = optarg; break;
        case 'v': chosen->run.verbose = true; break;
        default: return false;
        }
    }
    if (!chosen->run.jobs || chosen->run.jobs > 32 || !chosen->run.seconds)
        return false;
    return chosen->list || chosen->ptx_to ||
           (chosen->run.driver && (!strcmp(chosen->run.driver, "cuda") || !strcmp(chosen->run.driver, "soft")));
}

static int run_and_tell(const choices *chosen, answer *answers, size_t count)
{
    int version = 0;
    char device[256] = "";
    if (!run_all(&chosen->run, answers, count, &version, device))
        return 2;
    if (chosen->compare) {
        compare(chosen->compare, answers, count, chosen->run.pattern != NULL);
        return 0; /* TAP has told */
    }
    if (!write_json(chosen, answers, count, version, device))
        return 2;
    summarize(answers, count);
    return 0;
}

int main(int argument_count, char **arguments)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    choices chosen = {.run = {.jobs = processors < 1 ? 1 : processors > 8 ? 8 : (unsigned)processors, .seconds = 20}};
    if (!parse(argument_count, arguments, &chosen)) {
        fputs(usage, stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (chosen.ptx_to)
        return write_ptx(chosen.ptx_to) ? 0 : 2;
    size_t count = 0;
    answer *answers = answers_list(chosen.run.pattern, &count);
    if (!answers || !count) {
        fprintf(stderr, answers ? "conformance: no check is called %s\n" : "conformance: out of memory for %s\n",
                chosen.run.pattern ? chosen.run.pattern : "all");
        free(answers);
        return 2;
    }
    int status = 0;
    for (size_t i = 0; chosen.list && i < count; i++) {
        char name[256];
        check_full_name(&answers[i], name);
        puts(name);
    }
    if (!chosen.list)
        status = run_and_tell(&chosen, answers, count);
    answers_free(answers, count);
    return status;
}
