/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "launch.h"
#include "message.h"
#include "pipeline.h"
#include "source.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Drawn are batches from here on, if there are that many more: the first ones also pay for starting up. */
#define DRAWN_FROM 2

static int check_usage(const options *o, int words, char **word, const arguments *args)
{
    if (!o->measure_bytes && strcmp(word[0], "-") == 0)
        return fail(EXIT_CODE_USAGE, "the source cannot be standard input: that is the data");
    if (arguments_read_standard_input(args) || arguments_write_standard_output(args))
        return fail(EXIT_CODE_USAGE, "an argument cannot be a standard stream: those are the data");
    return 0;
}

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

static void print_queue(const char *name, const pipeline_totals *t, enum timeline_row row)
{
    fprintf(stderr, "%-15s %.6f s", name, seconds(t->busy_ns[row]));
    if (t->busy_ns[row] > 0)
        fprintf(stderr, ", %.3f GB/s", (double)t->bytes / (double)t->busy_ns[row]);
    fputc('\n', stderr);
}

/*
 * How near the device part comes to what the machine allows: the kernels one after another, or the bytes at the rate of
 * two-way copies, whichever is longer, and the copy in of the first and the copy out of the last batch, which nothing
 * can overlap.
 */
static void print_bound(const pipeline_totals *t)
{
    double copies = (double)t->bytes / t->two_way_bytes_per_ns, kernels = (double)t->busy_ns[ROW_KERNEL];
    double fill = (double)(t->busy_ns[ROW_COPY_IN] + t->busy_ns[ROW_COPY_OUT]) / (double)t->batches;
    double longer = copies > kernels ? copies : kernels;

    fprintf(stderr, "two-way rate    %.3f GB/s each way: %.6f s for these bytes\n", t->two_way_bytes_per_ns,
            copies / 1e9);
    fprintf(stderr, "fill            %.6f s: copy in of the first batch, copy out of the last\n", fill / 1e9);
    fprintf(stderr, "ratio           %.3f = (device part - fill) / longer of kernel and two-way time\n",
            ((double)t->device_ns - fill) / longer);
}

static void print_stats(const options *o, const pipeline_totals *t)
{
    uint32_t from = t->drawn_count == DRAWN_LIMIT ? DRAWN_FROM : 0, count = t->drawn_count - from;

    fprintf(stderr, "bytes           %llu in %llu batches of at most %llu, depth %u\n", (unsigned long long)t->bytes,
            (unsigned long long)t->batches, (unsigned long long)o->batch_bytes, o->depth);
    fprintf(stderr, "seconds         %.6f\n", t->seconds);
    fprintf(stderr, "GB/s            %.3f\n", t->seconds > 0 ? (double)t->bytes / t->seconds / 1e9 : 0.0);
    if (!t->batches)
        return;
    fprintf(stderr, "device part     %.6f s, from the first copy in to the last copy out\n", seconds(t->device_ns));
    print_queue("copy in", t, ROW_COPY_IN);
    print_queue("kernel", t, ROW_KERNEL);
    print_queue("copy out", t, ROW_COPY_OUT);
    if (o->measure_bytes)
        print_bound(t);
    if (count > DRAWN_LIMIT - DRAWN_FROM)
        count = DRAWN_LIMIT - DRAWN_FROM;
    timeline_draw(stderr, t->drawn + from, count);
}

static int stream_through(const options *o, session *s, const checks *c, hdrt_kernel *kernel, arguments *args,
                          int output_fd)
{
    pipeline p;
    bool complete = false;
    int code = pipeline_open(&p, o, s, kernel, args, output_fd);

    if (!code)
        code = arguments_upload(args, p.queues[ROW_KERNEL]);
    if (!code)
        code = pipeline_run(&p, &complete);
    if (!code && complete)
        code = arguments_download(args, p.queues[ROW_KERNEL]);
    code = checks_look(c, code);
    if (!code && complete)
        code = arguments_commit(args);
    if (!code && o->stats)
        print_stats(o, &p.totals);
    /* The arguments' memory is freed next; a kernel that was cut off may still use it. */
    if (!complete && p.queues[ROW_KERNEL])
        hdrt_queue_synchronize(p.queues[ROW_KERNEL]);
    pipeline_close(&p);
    return code;
}

/* The last look at standard output: some file systems tell of a full disk only when it is closed. */
static int close_output(int output_fd, int code)
{
    if (output_fd >= 0 && close(output_fd) != 0 && !code)
        return fail(EXIT_CODE_FAILED, "standard output: cannot be written: %s", strerror(errno));
    return code;
}

/* On a queue that outlives the pipeline's, which use the memory too. */
static int allocate_arguments(arguments *args, hdrt_queue *queue)
{
    int code = arguments_allocate(args, queue);
    hdrt_status status = code ? HDRT_OK : hdrt_queue_synchronize(queue);

    return status == HDRT_OK ? code : fail_status(-1, status, "allocating the arguments");
}

int command_pipe(options *o, int argc, char **argv)
{
    session s = {0};
    hdrt_module *module = NULL;
    hdrt_kernel *kernel = NULL;
    hdrt_queue *queue = NULL;
    arguments args = {0};
    checks found = {0};
    int first, output_fd = -1, code = options_parse(o, COMMAND_PIPE, argc, argv, &first);

    if (code != OPTIONS_GO_ON)
        return code;
    if (argc - first < 2)
        return fail(EXIT_CODE_USAGE, "pipe needs a file and a kernel's name; see hdjit pipe --help");
    code = arguments_parse(&args, argv + first + 2, (uint32_t)(argc - first - 2));
    if (!code)
        code = check_usage(o, argc - first, argv + first, &args);
    if (!code) {
        /* What the kernel prints goes to standard error; before the driver is loaded, which may keep the descriptor. */
        output_fd = take_standard_output();
        if (output_fd < 0)
            code = fail(EXIT_CODE_FAILED, "standard output: cannot be written: %s", strerror(errno));
        signal(SIGPIPE, SIG_IGN);
    }
    if (!code)
        code = arguments_open(&args, -1);
    if (!code)
        code = launch_open(o, &s, &found, &args, argv[first], argv[first + 1], &module, &kernel);
    if (!code && !(queue = hdrt_device_default_queue(s.device)))
        code = fail(EXIT_CODE_FAILED, "the device's queue cannot be made: %s", hdrt_last_error());
    if (!code)
        code = source_set_variables(o, module, queue);
    if (!code)
        code = allocate_arguments(&args, queue);
    if (!code) {
        launch_note_zero_grid(o);
        code = stream_through(o, &s, &found, kernel, &args, output_fd);
    }
    found.args = NULL;
    arguments_end(&args, queue);
    hdrt_module_destroy(module);
    session_close(&s);
    return close_output(output_fd, checks_end(&found, code));
}
