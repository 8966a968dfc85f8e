/* SPDX-License-Identifier: MIT */
/*
 * Threads that enqueue on one queue: effects come in the order of positions. Each thread's launch appends its number to a
 * log on the device; a record before and one after it tell between which positions it lies. 10^7 operations with
 * HDRT_STRESS=all, a hundredth else.
 */
#include "batches.h"
#include "yields.h"

#include <hdrt.h>
#include <hdrt/interop.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define THREADS 8u
#define LOG_ENTRIES (1u << 16)

/* append(log): log[0] is how many entries there are, log[1 + n] the n-th. */
static const char ptx[] =
    ".version 7.4\n.target sm_75\n.address_size 64\n"
    ".visible .entry append(.param .u64 log, .param .u32 entry)\n{\n"
    " .reg .b32 %r<3>;\n .reg .b64 %d<3>;\n"
    " ld.param.u64 %d1, [log];\n ld.param.u32 %r2, [entry];\n cvta.to.global.u64 %d1, %d1;\n"
    " ld.global.u32 %r1, [%d1];\n add.u32 %r1, %r1, 1;\n st.global.u32 [%d1], %r1;\n"
    " mul.wide.u32 %d2, %r1, 4;\n add.s64 %d2, %d1, %d2;\n st.global.u32 [%d2], %r2;\n ret;\n}\n";

static hdrt_runtime *runtime;
static hdrt_device *device;
static hdrt_kernel *append;
static hdrt_ptr device_log;

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        hdrt_status must_status_ = (call);                                                                             \
        if (must_status_ != HDRT_OK) {                                                                                 \
            fprintf(stderr, "# %s: %s: %s\n", #call, hdrt_status_name(must_status_), hdrt_last_error());               \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef struct writer {
    pthread_t thread;
    hdrt_queue *queue;
    uint32_t number, count;
    uint64_t *after, *until; /* of each of its operations: its position is above the one, and not above the other */
    atomic_bool *go;
} writer;

static void *write_entries(void *argument)
{
    writer *w = argument;
    uint32_t random = w->number + 1;
    while (!atomic_load(w->go)) {
        sched_yield();
    }
    for (uint32_t i = 0; i < w->count; i++) {
        uint32_t entry = w->number << 24 | i;
        random = random * 1664525u + 1013904223u;
        if (random >> 29 == 0) {
            sched_yield();
        }
        w->after[i] = hdrt_queue_record(w->queue).value;
        MUST(hdrt_launch(w->queue, append, hdrt_grid_1d(1, 1), HDRT_ARGS(device_log, entry)));
        w->until[i] = hdrt_queue_record(w->queue).value;
    }
    return NULL;
}

/* The log agrees with what the writers know of positions: the entry at `at` was enqueued at `base` + at. */
static bool check_log(const uint32_t *entries, writer *writers, uint32_t threads, uint32_t total, uint64_t base)
{
    uint32_t next[THREADS] = {0};
    if (entries[0] != total) {
        fprintf(stderr, "# %u entries, not %u\n", entries[0], total);
        return false;
    }
    for (uint32_t at = 1; at <= total; at++) {
        uint32_t number = entries[at] >> 24, i = entries[at] & 0xffffff;
        if (number >= threads || i != next[number]++) {
            fprintf(stderr, "# entry %u is operation %u of thread %u, after its operation %u\n", at, i, number,
                    number < threads ? next[number] - 1 : 0);
            return false;
        }
        if (base + at <= writers[number].after[i] || base + at > writers[number].until[i]) {
            fprintf(stderr, "# entry %u took effect at position %llu, but lies in (%llu, %llu]\n", at,
                    (unsigned long long)(base + at), (unsigned long long)writers[number].after[i],
                    (unsigned long long)writers[number].until[i]);
            return false;
        }
    }
    return true;
}

static bool round_of(hdrt_queue *queue, uint32_t threads, uint32_t total, uint32_t *pinned)
{
    writer writers[THREADS];
    atomic_bool go;
    atomic_init(&go, false);
    MUST(hdrt_fill(queue, device_log, &(uint32_t){0}, 4, 1));
    uint64_t base = hdrt_queue_record(queue).value;
    for (uint32_t i = 0; i < threads; i++) {
        writers[i] = (writer){.queue = queue, .number = i, .count = total / threads, .go = &go};
        writers[i].after = malloc(writers[i].count * sizeof(uint64_t));
        writers[i].until = malloc(writers[i].count * sizeof(uint64_t));
        if (!writers[i].after || !writers[i].until ||
            pthread_create(&writers[i].thread, NULL, write_entries, &writers[i])) {
            fprintf(stderr, "# no memory or thread\n");
            exit(1);
        }
    }
    atomic_store(&go, true);
    for (uint32_t i = 0; i < threads; i++) {
        pthread_join(writers[i].thread, NULL);
    }
    total = total / threads * threads;
    MUST(hdrt_copy_dtoh(queue, pinned, device_log, (total + 1) * 4ull));
    MUST(hdrt_queue_synchronize(queue));
    bool good = check_log(pinned, writers, threads, total, base);
    for (uint32_t i = 0; i < threads; i++) {
        free(writers[i].after);
        free(writers[i].until);
    }
    return good;
}

static bool run_rounds(uint32_t threads, uint64_t operations, hdrt_submission submission)
{
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    hdrt_queue *queue;
    void *pinned;
    bool good = true;
    options.submission = submission;
    MUST(hdrt_queue_create(device, &options, &queue));
    MUST(hdrt_alloc(queue, (LOG_ENTRIES + 1) * 4ull, &device_log));
    MUST(hdrt_host_alloc(device, (LOG_ENTRIES + 1) * 4ull, &pinned));
    for (uint64_t done = 0; done < operations && good; done += LOG_ENTRIES) {
        good = round_of(queue, threads, LOG_ENTRIES < operations - done ? LOG_ENTRIES : (uint32_t)(operations - done),
                        pinned);
    }
    MUST(hdrt_host_free(device, pinned));
    MUST(hdrt_free(queue, device_log));
    MUST(hdrt_queue_synchronize(queue));
    hdrt_queue_destroy(queue);
    return good;
}

static void count_up(void *argument)
{
    atomic_fetch_add((_Atomic uint32_t *)argument, 1);
}

/* Host calls that nobody asks the library about: each is made although it came just when its queue's committer left. */
static bool unasked(uint32_t count)
{
    static _Atomic uint32_t made;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    hdrt_queue *queue;
    struct timespec start;
    bool good = true;
    options.submission = HDRT_SUBMISSION_DISPATCHER;
    MUST(hdrt_queue_create(device, &options, &queue));
    for (uint32_t i = 1; i <= count && good; i++) {
        MUST(hdrt_queue_host_call(queue, count_up, &made));
        clock_gettime(CLOCK_MONOTONIC, &start);
        while (atomic_load(&made) != i && good) {
            sched_yield();
            good = seconds_since(&start) < 20;
        }
    }
    if (!good) {
        fprintf(stderr, "# host call %u of %u is not made\n", atomic_load(&made) + 1, count);
    }
    MUST(hdrt_queue_synchronize(queue));
    hdrt_queue_destroy(queue);
    return good;
}

int main(void)
{
    static const struct {
        uint32_t threads, share;
        hdrt_submission submission;
        const char *name;
    } cases[] = {
        {2, 4, HDRT_SUBMISSION_AUTO, "two threads, auto"},
        {2, 4, HDRT_SUBMISSION_INLINE, "two threads, inline"},
        {2, 4, HDRT_SUBMISSION_DISPATCHER, "two threads, dispatcher"},
        {THREADS, 4, HDRT_SUBMISSION_AUTO, "eight threads, auto"},
    };
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    hdrt_module *module;
    struct timespec start;
    uint64_t operations = stress_whole() ? 10000000 : 100000;
    alarm(stress_whole() ? 3600 : 300);
    clock_gettime(CLOCK_MONOTONIC, &start);
    options.driver = HDRT_DRIVER_SOFT;
    options.cache_dir = "";
    MUST(hdrt_runtime_create(&options, &runtime));
    MUST(hdrt_device_open(runtime, 0, NULL, &device));
    MUST(hdrt_module_load(device, ptx, sizeof ptx - 1, NULL, &module));
    MUST(hdrt_module_kernel(module, "append", &append));
    printf("1..%zu\n", sizeof cases / sizeof cases[0] + 1);
    yields_set(8);
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tap(i + 1, run_rounds(cases[i].threads, operations / cases[i].share, cases[i].submission), cases[i].name);
    }
    yields_set(2);
    tap(sizeof cases / sizeof cases[0] + 1, unasked((uint32_t)(operations / 10)), "operations that nobody asks about");
    printf("# %llu operations, %.1f s\n", (unsigned long long)operations, seconds_since(&start));
    hdrt_module_destroy(module);
    hdrt_device_close(device);
    hdrt_runtime_destroy(runtime);
    return 0;
}
