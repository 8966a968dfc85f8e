/* SPDX-License-Identifier: MIT */
#include "message.h"
#include "pipeline.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define READ_STEP (1u << 30) /* one read takes at most 2 GiB */
#define PROGRESS_SECONDS 0.2

double pipeline_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void pipeline_stop(pipeline *p, int code)
{
    const uint64_t one = 1;
    ssize_t put;

    pthread_mutex_lock(&p->lock);
    if (!p->stopped)
        p->code = code;
    p->stopped = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    /* Fails only if the counter is full, and then the reader wakes all the same. */
    put = write(p->cancel, &one, sizeof one);
    (void)put;
}

/* Waits for input; false: the reader is to end. */
static bool wait_for_input(pipeline *p)
{
    struct pollfd wait[3] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = p->cancel, .events = POLLIN},
                             {.fd = p->watch_output ? p->output : -1}};

    for (;;) {
        int ready = poll(wait, 3, -1);

        if (ready < 0 && errno == EINTR)
            continue;
        if (ready < 0) {
            pipeline_stop(p, fail(EXIT_CODE_FAILED, "standard input: cannot be waited for: %s", strerror(errno)));
            return false;
        }
        if (wait[1].revents)
            return false;
        /* Nobody reads any more: no use in waiting for input that may never come. */
        if (wait[2].revents & (POLLERR | POLLNVAL)) {
            pipeline_stop(p, EXIT_CODE_OK);
            return false;
        }
        if (wait[0].revents)
            return true;
    }
}

/* Reads a batch into `memory`: less than all only at the end of the input. false: stop. */
static bool read_batch(pipeline *p, unsigned char *memory, uint64_t *out_bytes)
{
    uint64_t room = p->o->batch_bytes;

    for (*out_bytes = 0; *out_bytes < room;) {
        uint64_t rest = room - *out_bytes;
        ssize_t got;

        if (!wait_for_input(p))
            return false;
        got = read(STDIN_FILENO, memory + *out_bytes, rest < READ_STEP ? (size_t)rest : READ_STEP);
        if (got == 0)
            break;
        if (got > 0) {
            *out_bytes += (uint64_t)got;
        } else if (errno != EINTR && errno != EAGAIN) {
            pipeline_stop(p, fail(EXIT_CODE_FAILED, "standard input: cannot be read: %s", strerror(errno)));
            return false;
        }
    }
    return true;
}

/* Waits until the pinned memory for batch `number` is free. false: stop. */
static bool wait_for_slot(pipeline *p, uint64_t number)
{
    pipeline_slot *slot = &p->slots[number % p->o->depth];
    hdrt_event copied_in;
    hdrt_status status;
    bool stopped;

    pthread_mutex_lock(&p->lock);
    while (!p->stopped && p->launched + p->o->depth <= number)
        pthread_cond_wait(&p->changed, &p->lock);
    stopped = p->stopped;
    copied_in = slot->copied_in;
    pthread_mutex_unlock(&p->lock);
    if (stopped)
        return false;
    status = hdrt_event_wait(p->runtime, copied_in, HDRT_FOREVER);
    if (status != HDRT_OK)
        pipeline_stop(p, fail_status(-1, status, "copying in"));
    return status == HDRT_OK;
}

void *pipeline_reader(void *context)
{
    pipeline *p = context;
    uint64_t measured = p->o->measure_bytes, bytes = 0;

    for (uint64_t number = 0; wait_for_slot(p, number); number++) {
        pipeline_slot *slot = &p->slots[number % p->o->depth];

        if (p->o->measure_bytes) {
            bytes = measured < p->o->batch_bytes ? measured : p->o->batch_bytes;
            measured -= bytes;
        } else if (!read_batch(p, slot->in, &bytes)) {
            break;
        }
        pthread_mutex_lock(&p->lock);
        slot->in_bytes = bytes;
        p->read = number + (bytes > 0);
        p->input_ended = bytes < p->o->batch_bytes;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock);
        if (bytes < p->o->batch_bytes)
            break;
    }
    return NULL;
}

/* Adds a batch's times to the totals. */
static hdrt_status add_times(pipeline *p, const pipeline_batch *batch, uint64_t number)
{
    timeline_batch times = {.number = number};
    hdrt_status status = HDRT_OK;
    int64_t busy;

    for (int r = 0; r < ROW_COUNT && status == HDRT_OK; r++) {
        status = hdrt_timer_elapsed(p->begin, batch->start[r], &times.start[r]);
        if (status == HDRT_OK)
            status = hdrt_timer_elapsed(p->begin, batch->end[r], &times.end[r]);
        /* Not the difference of the two: their resolution coarsens as the run gets long. */
        if (status == HDRT_OK)
            status = hdrt_timer_elapsed(batch->start[r], batch->end[r], &busy);
        if (status == HDRT_OK)
            p->totals.busy_ns[r] += busy;
    }
    if (status != HDRT_OK)
        return status;
    p->totals.device_ns = times.end[ROW_COPY_OUT];
    if (p->totals.drawn_count < DRAWN_LIMIT)
        p->totals.drawn[p->totals.drawn_count++] = times;
    return HDRT_OK;
}

/* Waits until the copy out of batch `number` is enqueued. false: it will never be. */
static bool wait_for_batch(pipeline *p, uint64_t number)
{
    bool there;

    pthread_mutex_lock(&p->lock);
    while (!p->stopped && p->drained <= number && !(p->input_ended && p->read == number))
        pthread_cond_wait(&p->changed, &p->lock);
    there = !p->stopped && p->drained > number;
    pthread_mutex_unlock(&p->lock);
    return there;
}

static void show_progress(pipeline *p, double begin, double *shown)
{
    double now = pipeline_clock();

    if (!p->progress || now - *shown < PROGRESS_SECONDS)
        return;
    *shown = now;
    fprintf(stderr, "hdjit: %.1f MiB, %.3f GB/s\033[K\r", (double)p->totals.bytes / (1 << 20),
            (double)p->totals.bytes / (now - begin) / 1e9);
}

/* One batch: waits for its data and writes it. */
static bool write_batch(pipeline *p, uint64_t number)
{
    pipeline_slot *slot = &p->slots[number % p->o->depth];
    pipeline_batch *batch = &p->batches[number % (2 * (uint64_t)p->o->depth)];
    hdrt_status status = hdrt_event_wait(p->runtime, slot->copied_out, HDRT_FOREVER);

    if (status == HDRT_OK && p->begin)
        status = add_times(p, batch, number);
    if (status != HDRT_OK) {
        pipeline_stop(p, fail_status(-1, status, "batch %llu", (unsigned long long)number));
        return false;
    }
    if (!p->o->measure_bytes && !write_all(p->output, slot->out, batch->bytes)) {
        /* Whoever reads our output may leave when it has enough. */
        pipeline_stop(p, errno == EPIPE ? EXIT_CODE_OK :
                         fail(EXIT_CODE_FAILED, "standard output: cannot be written: %s", strerror(errno)));
        return false;
    }
    p->totals.bytes += batch->bytes;
    p->totals.batches++;
    return true;
}

void *pipeline_writer(void *context)
{
    pipeline *p = context;
    double begin = pipeline_clock(), shown = begin;

    for (uint64_t number = 0; wait_for_batch(p, number) && write_batch(p, number); number++) {
        show_progress(p, begin, &shown);
        pthread_mutex_lock(&p->lock);
        p->written = number + 1;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock);
    }
    p->totals.seconds = pipeline_clock() - begin;
    if (p->progress && shown > begin)
        fputs("\033[K", stderr);
    return NULL;
}
