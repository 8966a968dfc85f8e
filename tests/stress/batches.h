/* SPDX-License-Identifier: MIT */
/*
 * Batches of random programs: a process for each, with its own driver, policy and configuration, a few at a time. What a
 * batch does is decided by its number alone, so any of them can be repeated.
 */
#ifndef TEST_STRESS_BATCHES_H
#define TEST_STRESS_BATCHES_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCHES_AT_ONCE 2u
#define BATCH_SECONDS 120u

static inline bool stress_whole(void)
{
    const char *value = getenv("HDRT_STRESS");
    return value && strcmp(value, "all") == 0;
}

/* Who runs what. */
typedef struct running_batch {
    pid_t child; /* 0: nobody */
    uint64_t batch;
} running_batch;

/* Wait for one. A batch that hangs is ended by its alarm. */
static inline bool batch_over(running_batch *all, uint64_t *failed)
{
    int status;
    pid_t child = wait(&status);
    if (child < 0) {
        return false;
    }
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    uint32_t at = 0;
    while (at < BATCHES_AT_ONCE - 1 && all[at].child != child) {
        at++;
    }
    all[at].child = 0;
    if (!good) {
        fprintf(stderr, "# batch %llu: %s %d%s\n", (unsigned long long)all[at].batch, WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? ": it hung" : "");
        ++*failed;
    }
    return true;
}

/* Run batches from `first` on, each in a process. \return how many failed. */
static inline uint64_t batches_run(uint64_t first, uint64_t count, void (*run)(uint64_t batch))
{
    uint64_t failed = 0, running = 0;
    running_batch all[BATCHES_AT_ONCE] = {{0, 0}};
    for (uint64_t batch = first; batch < first + count && !failed; batch++) {
        if (running == BATCHES_AT_ONCE) {
            batch_over(all, &failed);
            running--;
        }
        fflush(stdout);
        fflush(stderr);
        pid_t child = fork();
        if (child == 0) {
            alarm(BATCH_SECONDS);
            run(batch);
            exit(0);
        }
        if (child < 0) {
            fprintf(stderr, "# fork: %s\n", strerror(errno));
            return failed + 1;
        }
        uint32_t at = 0;
        while (all[at].child) {
            at++;
        }
        all[at] = (running_batch){child, batch};
        running++;
    }
    while (running--) {
        batch_over(all, &failed);
    }
    return failed;
}

static inline double seconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

/* A line of TAP. */
static inline void tap(uint32_t number, bool good, const char *name)
{
    printf("%s %u - %s\n", good ? "ok" : "not ok", number, name);
    fflush(stdout);
}

#endif
