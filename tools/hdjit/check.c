/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "message.h"

#include <hdrt/interop.h>

#include <stdio.h>
#include <string.h>

/* What the soft driver answers to hdsoft_check. */
enum { CHECK_UNKNOWN = 1 };

/* Which argument an address belongs to; NULL: none. */
static const argument *argument_at(const arguments *args, unsigned long long address, uint32_t *number)
{
    for (uint32_t i = 0; args && address && i < args->count; i++)
        if (args->list[i].role != ARGUMENT_NUMBER && args->list[i].value.pointer == address) {
            *number = i + 1;
            return &args->list[i];
        }
    return NULL;
}

/* Lines about where in hdjit an allocation was made say nothing to whoever wrote the kernel. */
static bool is_own_frame(const char *line)
{
    return strncmp(line, "        at ", 11) == 0;
}

/* Called by the soft driver, on a thread of its own or on ours. */
static void print_report(void *context, const char *kind, const char *text, unsigned long long allocation,
                         unsigned long long count)
{
    const checks *c = context;
    uint32_t number;
    const argument *found = argument_at(c->args, allocation, &number);

    (void)kind, (void)count;
    flockfile(stderr);
    fputs("hdjit: ", stderr);
    while (*text) {
        size_t length = strcspn(text, "\n");

        if (!is_own_frame(text))
            fprintf(stderr, "%.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
    if (found)
        fprintf(stderr, "    it is the memory of argument %u, %s\n", number, found->word);
    funlockfile(stderr);
}

static int wrong_driver(void)
{
    return fail(EXIT_CODE_USAGE, "--check works with the soft driver only, and the driver is NVIDIA's: add "
                "--driver=soft");
}

int checks_usage(const options *o)
{
    return o->checks && o->driver == DRIVER_CUDA ? wrong_driver() : 0;
}

int checks_begin(const options *o, session *s, checks *c, const arguments *args)
{
    hdrt_soft_check choose = NULL;
    hdrt_soft_set_report set_report = NULL;

    *c = (checks){.args = args};
    if (!o->checks)
        return 0;
    if (!s->soft)
        return wrong_driver();
    *(void **)&choose = hdrt_runtime_driver_symbol(s->runtime, "hdsoft_check");
    *(void **)&set_report = hdrt_runtime_driver_symbol(s->runtime, "hdsoft_set_report");
    *(void **)&c->count = hdrt_runtime_driver_symbol(s->runtime, "hdsoft_report_count");
    *(void **)&c->flush = hdrt_runtime_driver_symbol(s->runtime, "hdsoft_report_flush");
    if (!choose || !set_report || !c->count || !c->flush)
        return fail(EXIT_CODE_FAILED, "--check: this soft driver has no checks; it is older than hdjit");
    set_report(print_report, c);
    switch (choose(o->checks)) {
    case 0:
        return 0;
    case CHECK_UNKNOWN:
        return fail(EXIT_CODE_USAGE, "--check is '%s': expected words out of memory, race and init, with commas "
                    "between", o->checks);
    default:
        return fail(EXIT_CODE_FAILED, "--check: the soft driver is in use already");
    }
}

int checks_look(const checks *c, int code)
{
    return code == EXIT_CODE_OK && c->count && c->count() > 0 ? EXIT_CODE_FAILED : code;
}

int checks_end(checks *c, int code)
{
    unsigned long long count;

    if (!c->count)
        return code;
    c->args = NULL;
    c->flush();
    count = c->count();
    if (count)
        note("--check: %llu report%s", count, count == 1 ? "" : "s");
    return checks_look(c, code);
}
