/* SPDX-License-Identifier: MIT */
/*
 * What many operations and queues leave behind: nothing. 10^7 operations on 10^4 queues with HDRT_STRESS=all, 10^5 on 10^3
 * else; from the middle on, streams, events, templates, memory and descriptors do not grow.
 */
#include "batches.h"
#include "execute.h"

#include <dirent.h>

#define AT_ONCE 64u      /* queues */
#define TEMPLATES 10240u /* as many as 32 MiB hold, if each has one kernel */

typedef struct resources {
    unsigned long long streams, events, templates;
    uint64_t bytes, descriptors;
} resources;

static bed b;
static unsigned long long (*call_count)(const char *entry);

static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*u %llu", &pages) != 1) {
        bed_fail("/proc/self/statm cannot be read");
    }
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t descriptors(void)
{
    uint64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder)) {
        count++;
    }
    if (folder) {
        closedir(folder);
    }
    return count;
}

static resources look(void)
{
    MUST(hdrt_device_synchronize(b.devices[0]));
    return (resources){
        .streams = call_count("cuStreamCreateWithPriority") - call_count("cuStreamDestroy"),
        .events = call_count("cuEventCreate") - call_count("cuEventDestroy"),
        .templates = call_count("cuGraphInstantiateWithFlags") - call_count("cuGraphExecDestroy"),
        .bytes = resident_bytes(),
        .descriptors = descriptors(),
    };
}

/* A queue's life: loops of kernels, with waits for the one before. */
static void live(hdrt_queue *queue, hdrt_queue *other, uint32_t operations, uint64_t *random)
{
    hdrt_grid grid = hdrt_grid_1d(PROGRAM_WORDS, PROGRAM_WORDS);
    for (uint32_t i = 0; i < operations; i++) {
        uint64_t draw = program_random(random);
        hdrt_ptr dst = b.cells[draw % 12], src = b.cells[(draw >> 8) % 12], stamp = b.stamps[0];
        uint32_t value = (uint32_t)(draw >> 32);
        switch (draw >> 16 & 31) {
        case 0:
            MUST(hdrt_queue_wait(queue, hdrt_queue_record(other)));
            break;
        case 1:
            MUST(hdrt_fill(queue, dst, &value, 4, PROGRAM_WORDS));
            break;
        case 2:
            MUST(hdrt_copy_dtod(queue, dst, src == dst ? stamp : src, 64));
            break;
        default:
            if (i % 3) {
                MUST(hdrt_launch(queue, b.kernels[0][0], grid, HDRT_ARGS(dst, src, value, stamp)));
            } else {
                MUST(hdrt_launch(queue, b.kernels[0][1], grid, HDRT_ARGS(dst, value, stamp)));
            }
        }
    }
}

static void run_queues(uint64_t queues, uint32_t operations, uint64_t seed)
{
    hdrt_queue *live_queues[AT_ONCE] = {NULL};
    uint64_t random = seed;
    for (uint64_t i = 0; i < queues; i++) {
        hdrt_queue **place = &live_queues[i % AT_ONCE], *other = live_queues[(i + AT_ONCE - 1) % AT_ONCE];
        hdrt_queue_destroy(*place);
        MUST(hdrt_queue_create(b.devices[0], NULL, place));
        live(*place, other ? other : *place, operations, &random);
        if (i % AT_ONCE == AT_ONCE - 1) {
            MUST(hdrt_device_synchronize(b.devices[0])); /* or more and more would be in flight */
        }
    }
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        hdrt_queue_destroy(live_queues[i]);
    }
}

static bool same(const char *what, uint64_t middle, uint64_t end, uint64_t slack)
{
    printf("# %s: %llu in the middle, %llu in the end\n", what, (unsigned long long)middle, (unsigned long long)end);
    return end <= middle + slack;
}

int main(void)
{
    struct timespec start;
    uint64_t queues = stress_whole() ? 10000 : 1000;
    uint32_t operations = stress_whole() ? 1000 : 100;
    clock_gettime(CLOCK_MONOTONIC, &start);
    alarm(stress_whole() ? 3600 : 300);
    puts("1..5");
    bed_open(&b, 1);
    bed_symbol(&b, "hdsoft_call_count", &call_count);
    run_queues(queues / 2, operations, 1);
    resources middle = look();
    run_queues(queues / 2, operations, 2);
    resources end = look();
    tap(1, same("streams", middle.streams, end.streams, 8) && end.streams <= 130, "streams");
    tap(2, same("events", middle.events, end.events, middle.events / 10 + 64), "events");
    tap(3, same("templates", middle.templates, end.templates, TEMPLATES) && end.templates <= TEMPLATES,
        "templates");
    /* What the allocator keeps of a moment with more in flight than before is no leak: 2 bytes an operation would show. */
    uint64_t slack = stress_whole() ? 8u << 20 : 4u << 20;
#ifdef __SANITIZE_THREAD__
    slack *= 16; /* it keeps several times as much itself */
#endif
    tap(4, same("resident bytes", middle.bytes, end.bytes, slack), "memory");
    tap(5, same("descriptors", middle.descriptors, end.descriptors, 0), "descriptors");
    bed_close(&b);
    printf("# %llu queues, %llu operations, %.1f s\n", (unsigned long long)queues,
           (unsigned long long)(queues * operations), seconds_since(&start));
    return 0;
}
