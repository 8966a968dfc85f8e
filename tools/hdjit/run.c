/* SPDX-License-Identifier: MIT */
#include "arguments.h"
#include "commands.h"
#include "launch.h"
#include "message.h"
#include "source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything of one run, in the order it is made. */
typedef struct run {
    session session;
    checks checks;
    hdrt_module *module;
    hdrt_kernel *kernel;
    hdrt_queue *queue; /* borrowed: the device's default queue */
    arguments args;
    int standard_output;
} run;

static int check_usage(const options *o, int words, char **word)
{
    if (words < 2)
        return fail(EXIT_CODE_USAGE, "run needs a file and a kernel's name; see hdjit run --help");
    if (!o->grid_given || !o->block_given)
        return fail(EXIT_CODE_USAGE, "run needs --%s X[,Y[,Z]]", o->grid_given ? "block" : "grid");
    return 0;
}

static int prepare(const options *o, run *r, char **word)
{
    int code = launch_open(o, &r->session, &r->checks, &r->args, word[0], word[1], &r->module, &r->kernel);

    if (code)
        return code;
    r->queue = hdrt_device_default_queue(r->session.device);
    if (!r->queue)
        return fail(EXIT_CODE_FAILED, "the device's queue cannot be made: %s", hdrt_last_error());
    return arguments_allocate(&r->args, r->queue);
}

/* One launch with everything as at the start. `start` and `end` may be NULL. */
static int launch_once(const options *o, run *r, hdrt_timer *start, hdrt_timer *end)
{
    hdrt_status status = HDRT_OK;
    int code = arguments_upload(&r->args, r->queue);

    if (!code)
        code = source_set_variables(o, r->module, r->queue);
    if (code)
        return code;
    if (start)
        status = hdrt_queue_timestamp(r->queue, start);
    if (status == HDRT_OK) {
        code = launch_kernel(o, r->queue, r->kernel, o->grid, NULL, 0, &r->args);
        if (code)
            return code;
    }
    if (status == HDRT_OK && end)
        status = hdrt_queue_timestamp(r->queue, end);
    if (status == HDRT_OK)
        status = hdrt_queue_synchronize(r->queue);
    return status == HDRT_OK ? 0 : fail_status(-1, status, "kernel %s", hdrt_kernel_name(r->kernel));
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void print_times(const run *r, int64_t *times, uint32_t count)
{
    int64_t median;

    qsort(times, count, sizeof *times, compare_times);
    median = count % 2 ? times[count / 2] : times[count / 2 - 1] + (times[count / 2] - times[count / 2 - 1]) / 2;
    printf("%s: median kernel time %.3f us, %u runs, fastest %.3f us, slowest %.3f us\n", hdrt_kernel_name(r->kernel),
           (double)median / 1000, count, (double)times[0] / 1000, (double)times[count - 1] / 1000);
}

static int launch_repeatedly(const options *o, run *r)
{
    int64_t *times = malloc(o->repeat * sizeof *times);
    hdrt_timer *start = NULL, *end = NULL;
    hdrt_status status = hdrt_timer_create(r->session.device, &start);
    int code = 0;

    if (!times) {
        code = fail(EXIT_CODE_FAILED, "out of memory for %u times", o->repeat);
        goto destroy_timers;
    }
    if (status == HDRT_OK)
        status = hdrt_timer_create(r->session.device, &end);
    for (uint32_t i = 0; i < o->repeat && !code && status == HDRT_OK; i++) {
        code = launch_once(o, r, start, end);
        if (!code)
            status = hdrt_timer_elapsed(start, end, &times[i]);
    }
    if (!code && status != HDRT_OK)
        code = fail_status(-1, status, "--repeat: the time cannot be measured");
    if (!code)
        print_times(r, times, o->repeat);
destroy_timers:
    hdrt_timer_destroy(end);
    hdrt_timer_destroy(start);
    free(times);
    return code;
}

int command_run(options *o, int argc, char **argv)
{
    run r = {.standard_output = -1};
    int first, code = options_parse(o, COMMAND_RUN, argc, argv, &first);

    if (code != OPTIONS_GO_ON)
        return code;
    code = check_usage(o, argc - first, argv + first);
    if (!code)
        code = arguments_parse(&r.args, argv + first + 2, (uint32_t)(argc - first - 2));
    if (!code && strcmp(argv[first], "-") == 0 && arguments_read_standard_input(&r.args))
        code = fail(EXIT_CODE_USAGE, "the source and an argument cannot both be standard input");
    /* What the kernel prints must not land among the results. */
    if (!code && arguments_write_standard_output(&r.args))
        r.standard_output = take_standard_output();
    if (!code)
        code = arguments_open(&r.args, r.standard_output);
    if (!code)
        code = prepare(o, &r, argv + first);
    if (!code)
        launch_note_zero_grid(o);
    if (!code)
        code = o->repeat ? launch_repeatedly(o, &r) : launch_once(o, &r, NULL, NULL);
    if (!code)
        code = arguments_download(&r.args, r.queue);
    code = checks_look(&r.checks, code);
    if (!code)
        code = arguments_commit(&r.args);
    r.checks.args = NULL;
    arguments_end(&r.args, r.queue);
    hdrt_module_destroy(r.module);
    session_close(&r.session);
    return checks_end(&r.checks, code);
}
