/* SPDX-License-Identifier: MIT */
#include "pipeline.h"

#include "launch.h"
#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIPE_BYTES (1 << 20)
#define TWO_WAY_COPIES 64

/* A larger pipe means fewer turns through the kernel; where it may not grow, it works as it is. */
static bool prepare_pipe(int fd)
{
    struct stat about;

    if (fstat(fd, &about) != 0 || !S_ISFIFO(about.st_mode))
        return false;
    if (fcntl(fd, F_GETPIPE_SZ) < PIPE_BYTES)
        fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
    return true;
}

static hdrt_status make_queues(pipeline *p)
{
    static const char *const names[ROW_COUNT] = {"copy in", "kernel", "copy out"};
    hdrt_status status = HDRT_OK;

    for (int r = 0; r < ROW_COUNT && status == HDRT_OK; r++) {
        hdrt_queue_options wanted = HDRT_QUEUE_OPTIONS_INIT;

        wanted.name = names[r];
        status = hdrt_queue_create(p->device, &wanted, &p->queues[r]);
    }
    return status;
}

/* What a slot's device memory holds at first must not be somebody's old data: zeros. */
static hdrt_status make_slot(pipeline *p, pipeline_slot *slot)
{
    uint64_t bytes = p->o->batch_bytes;
    hdrt_queue *queue = p->queues[ROW_KERNEL];
    void *memory = NULL;
    hdrt_status status = hdrt_host_alloc(p->device, bytes, &memory);

    slot->in = memory;
    if (status == HDRT_OK && p->o->measure_bytes)
        memset(slot->in, 0, (size_t)bytes);
    if (status == HDRT_OK) {
        memory = NULL;
        status = hdrt_host_alloc(p->device, bytes, &memory);
        slot->out = memory;
    }
    if (status == HDRT_OK)
        status = hdrt_alloc(queue, bytes, &slot->device_in);
    if (status == HDRT_OK)
        status = hdrt_alloc(queue, bytes, &slot->device_out);
    if (status == HDRT_OK)
        status = hdrt_fill(queue, slot->device_in, "", 1, bytes);
    if (status == HDRT_OK)
        status = hdrt_fill(queue, slot->device_out, "", 1, bytes);
    slot->computed = hdrt_queue_record(queue);
    return status;
}

static hdrt_status make_timers(pipeline *p)
{
    hdrt_status status = hdrt_timer_create(p->device, &p->begin);

    for (uint32_t i = 0; i < 2 * p->o->depth; i++)
        for (int r = 0; r < ROW_COUNT && status == HDRT_OK; r++) {
            status = hdrt_timer_create(p->device, &p->batches[i].start[r]);
            if (status == HDRT_OK)
                status = hdrt_timer_create(p->device, &p->batches[i].end[r]);
        }
    return status;
}

static int make_memory(pipeline *p)
{
    hdrt_status status = make_queues(p);

    for (uint32_t i = 0; i < p->o->depth && status == HDRT_OK; i++)
        status = make_slot(p, &p->slots[i]);
    if (status == HDRT_OK)
        status = hdrt_queue_synchronize(p->queues[ROW_KERNEL]);
    if (status == HDRT_OK && p->o->stats)
        status = make_timers(p);
    return status == HDRT_OK ? 0 : fail_status(-1, status, "%u slots of 4 x %llu bytes", p->o->depth,
                                               (unsigned long long)p->o->batch_bytes);
}

int pipeline_open(pipeline *p, const options *o, session *s, hdrt_kernel *kernel, const arguments *args, int output_fd)
{
    *p = (pipeline){.o = o, .runtime = s->runtime, .device = s->device, .kernel = kernel, .args = args,
                    .output = output_fd, .cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (p->cancel < 0)
        return fail(EXIT_CODE_FAILED, "an eventfd cannot be made: %s", strerror(errno));
    p->lock_made = pthread_mutex_init(&p->lock, NULL) == 0;
    p->changed_made = pthread_cond_init(&p->changed, NULL) == 0;
    p->slots = calloc(o->depth, sizeof *p->slots);
    p->batches = calloc(2 * (size_t)o->depth, sizeof *p->batches);
    if (!p->lock_made || !p->changed_made || !p->slots || !p->batches)
        return fail(EXIT_CODE_FAILED, "out of memory");
    if (!o->measure_bytes) {
        prepare_pipe(STDIN_FILENO);
        p->watch_output = prepare_pipe(output_fd);
    }
    p->progress = isatty(STDERR_FILENO) && !isatty(output_fd);
    return make_memory(p);
}

void pipeline_close(pipeline *p)
{
    for (uint32_t i = 0; p->slots && i < p->o->depth; i++) {
        pipeline_slot *slot = &p->slots[i];

        if (p->queues[ROW_KERNEL]) {
            hdrt_free(p->queues[ROW_KERNEL], slot->device_in);
            hdrt_free(p->queues[ROW_KERNEL], slot->device_out);
        }
        hdrt_host_free(p->device, slot->in);
        hdrt_host_free(p->device, slot->out);
    }
    for (uint32_t i = 0; p->batches && i < 2 * p->o->depth; i++)
        for (int r = 0; r < ROW_COUNT; r++) {
            hdrt_timer_destroy(p->batches[i].start[r]);
            hdrt_timer_destroy(p->batches[i].end[r]);
        }
    hdrt_timer_destroy(p->begin);
    for (int r = 0; r < ROW_COUNT; r++)
        hdrt_queue_destroy(p->queues[r]);
    free(p->batches);
    free(p->slots);
    if (p->changed_made)
        pthread_cond_destroy(&p->changed);
    if (p->lock_made)
        pthread_mutex_destroy(&p->lock);
    if (p->cancel >= 0)
        close(p->cancel);
}

static hdrt_status stamp(pipeline *p, enum timeline_row row, hdrt_timer *timer)
{
    return timer ? hdrt_queue_timestamp(p->queues[row], timer) : HDRT_OK;
}

/* ceil(n / block) blocks unless --grid was given. */
static void choose_grid(const options *o, uint64_t n, uint32_t grid[3])
{
    uint64_t threads = (uint64_t)o->block[0] * o->block[1], blocks;

    memcpy(grid, o->grid, sizeof o->grid);
    if (o->grid_given)
        return;
    /* A block too large for 64 bits is refused by the launch. */
    if (__builtin_mul_overflow(threads, o->block[2], &threads))
        threads = UINT64_MAX;
    blocks = n / threads + (n % threads != 0);
    grid[0] = blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)blocks;
}

static int launch(pipeline *p, hdrt_ptr in, hdrt_ptr out, uint64_t n, const uint32_t grid[3])
{
    const leading_argument leading[LEADING_LIMIT] = {
        {&in, HDRT_KIND(HDRT_CLASS_INTEGER, sizeof in)},
        {&out, HDRT_KIND(HDRT_CLASS_INTEGER, sizeof out)},
        {&n, HDRT_KIND(HDRT_CLASS_INTEGER, sizeof n)},
    };

    return launch_kernel(p->o, p->queues[ROW_KERNEL], p->kernel, grid, leading, LEADING_LIMIT, p->args);
}

/* Enqueues copy in and kernel of the next batch. */
static int enqueue_kernel(pipeline *p, uint64_t number)
{
    pipeline_slot *slot = &p->slots[number % p->o->depth];
    pipeline_batch *batch = &p->batches[number % (2 * (uint64_t)p->o->depth)];
    hdrt_queue *in = p->queues[ROW_COPY_IN], *work = p->queues[ROW_KERNEL];
    uint32_t grid[3];
    hdrt_status status = hdrt_queue_wait(in, slot->computed);
    int code;

    batch->bytes = slot->in_bytes;
    if (status == HDRT_OK)
        status = stamp(p, ROW_COPY_IN, batch->start[ROW_COPY_IN]);
    if (status == HDRT_OK)
        status = hdrt_copy_htod(in, slot->device_in, slot->in, batch->bytes);
    if (status == HDRT_OK)
        status = stamp(p, ROW_COPY_IN, batch->end[ROW_COPY_IN]);
    slot->copied_in = hdrt_queue_record(in);
    if (status == HDRT_OK)
        status = hdrt_queue_wait(work, slot->copied_in);
    if (status == HDRT_OK)
        status = hdrt_queue_wait(work, slot->copied_out);
    if (status == HDRT_OK)
        status = stamp(p, ROW_KERNEL, batch->start[ROW_KERNEL]);
    if (status == HDRT_OK) {
        choose_grid(p->o, batch->bytes, grid);
        code = launch(p, slot->device_in, slot->device_out, batch->bytes, grid);
        if (code)
            return code;
        status = stamp(p, ROW_KERNEL, batch->end[ROW_KERNEL]);
    }
    slot->computed = hdrt_queue_record(work);
    return status == HDRT_OK ? 0 : fail_status(-1, status, "batch %llu", (unsigned long long)number);
}

/* Enqueues the copy out of a batch. */
static int enqueue_copy_out(pipeline *p, uint64_t number)
{
    pipeline_slot *slot = &p->slots[number % p->o->depth];
    pipeline_batch *batch = &p->batches[number % (2 * (uint64_t)p->o->depth)];
    hdrt_queue *out = p->queues[ROW_COPY_OUT];
    hdrt_status status = hdrt_queue_wait(out, slot->computed);

    if (status == HDRT_OK)
        status = stamp(p, ROW_COPY_OUT, batch->start[ROW_COPY_OUT]);
    if (status == HDRT_OK)
        status = hdrt_copy_dtoh(out, slot->out, slot->device_out, batch->bytes);
    if (status == HDRT_OK)
        status = stamp(p, ROW_COPY_OUT, batch->end[ROW_COPY_OUT]);
    slot->copied_out = hdrt_queue_record(out);
    return status == HDRT_OK ? 0 : fail_status(-1, status, "batch %llu", (unsigned long long)number);
}

enum step { STEP_LAUNCH, STEP_DRAIN, STEP_END };

/* Waits until there is something to enqueue; the older batch first. */
static enum step next_step(pipeline *p)
{
    uint64_t depth = p->o->depth;
    enum step step = STEP_END;

    pthread_mutex_lock(&p->lock);
    while (!p->stopped && !(p->input_ended && p->drained == p->read)) {
        if (p->drained < p->launched && p->drained < p->written + depth) {
            step = STEP_DRAIN;
            break;
        }
        if (p->launched < p->read && p->launched < p->drained + depth) {
            step = STEP_LAUNCH;
            break;
        }
        pthread_cond_wait(&p->changed, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return step;
}

/* Enqueues all that comes. `launched` and `drained` change here only, so they are read without the lock. */
static void enqueue_all(pipeline *p)
{
    enum step step;
    int code = 0;

    while (!code && (step = next_step(p)) != STEP_END) {
        code = step == STEP_LAUNCH ? enqueue_kernel(p, p->launched) : enqueue_copy_out(p, p->drained);
        if (code) {
            pipeline_stop(p, code);
            break;
        }
        pthread_mutex_lock(&p->lock);
        if (step == STEP_LAUNCH)
            p->launched++;
        else
            p->drained++;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock);
    }
}

/* What each way carries while both go at once: the yardstick for the device part. */
static int measure_two_way(pipeline *p)
{
    hdrt_timer **start = p->batches[0].start, **end = p->batches[0].end;
    static const enum timeline_row rows[] = {ROW_COPY_IN, ROW_COPY_OUT};
    int64_t ns = 0, longest = 1;
    hdrt_status status = HDRT_OK;

    for (uint32_t i = 0; i <= TWO_WAY_COPIES && status == HDRT_OK; i++) {
        pipeline_slot *slot = &p->slots[i % p->o->depth];

        for (int r = 0; r < 2 && status == HDRT_OK; r++) {
            if (i == 0)
                status = stamp(p, rows[r], start[rows[r]]);
            else if (rows[r] == ROW_COPY_IN)
                status = hdrt_copy_htod(p->queues[ROW_COPY_IN], slot->device_in, slot->in, p->o->batch_bytes);
            else
                status = hdrt_copy_dtoh(p->queues[ROW_COPY_OUT], slot->out, slot->device_out, p->o->batch_bytes);
            if (status == HDRT_OK && i == TWO_WAY_COPIES)
                status = stamp(p, rows[r], end[rows[r]]);
        }
    }
    for (int r = 0; r < 2 && status == HDRT_OK; r++) {
        status = hdrt_queue_synchronize(p->queues[rows[r]]);
        if (status == HDRT_OK)
            status = hdrt_timer_elapsed(start[rows[r]], end[rows[r]], &ns);
        longest = ns > longest ? ns : longest;
    }
    p->totals.two_way_bytes_per_ns = (double)p->o->batch_bytes * TWO_WAY_COPIES / (double)longest;
    return status == HDRT_OK ? 0 : fail_status(-1, status, "measuring the copies");
}

/* The launch checks the same, and has the message. */
static bool arguments_fit(const pipeline *p)
{
    const uint32_t leading = HDRT_KIND(HDRT_CLASS_INTEGER, sizeof(uint64_t));
    hdrt_parameter parameter;
    uint32_t count = 0;

    for (; hdrt_kernel_parameter(p->kernel, count, &parameter) == HDRT_OK; count++) {
        if (count >= LEADING_LIMIT + p->args->count)
            return false;
        uint32_t kind = count < LEADING_LIMIT ? leading : p->args->list[count - LEADING_LIMIT].kind;
        uint32_t given = kind >> 24, expected = parameter.argument_class;
        if ((kind & 0xffffffu) != parameter.size ||
            (given != expected && given != HDRT_CLASS_UNKNOWN && expected != HDRT_CLASS_UNKNOWN))
            return false;
    }
    return count == LEADING_LIMIT + p->args->count;
}

/* Finds what is wrong with the arguments before any input is read: a launch of no blocks is checked like any other. */
static int check_launch(pipeline *p)
{
    static const uint32_t none[3] = {0, 1, 1};
    int code = launch(p, p->slots[0].device_in, p->slots[0].device_out, 0, none);

    if (code && !arguments_fit(p))
        note("pipe passes (const unsigned char *in, unsigned char *out, unsigned long long n) and then each ARG");
    return code;
}

int pipeline_run(pipeline *p, bool *out_complete)
{
    pthread_t reader, writer;
    hdrt_status status = HDRT_OK;
    int code = check_launch(p), error;

    *out_complete = false;
    if (!code && p->o->measure_bytes)
        code = measure_two_way(p);
    if (!code && p->begin)
        status = hdrt_queue_timestamp(p->queues[ROW_COPY_IN], p->begin);
    if (status != HDRT_OK)
        code = fail_status(-1, status, "the beginning cannot be timed");
    if (code)
        return code;
    error = pthread_create(&writer, NULL, pipeline_writer, p);
    if (error)
        return fail(EXIT_CODE_FAILED, "a thread cannot be made: %s", strerror(error));
    error = pthread_create(&reader, NULL, pipeline_reader, p);
    if (error) {
        pipeline_stop(p, fail(EXIT_CODE_FAILED, "a thread cannot be made: %s", strerror(error)));
    } else {
        enqueue_all(p);
        pthread_join(reader, NULL);
    }
    pthread_join(writer, NULL);
    *out_complete = !p->stopped;
    return p->code;
}
