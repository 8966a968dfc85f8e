/* SPDX-License-Identifier: MIT */
#include "soft/model/inject.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAMES 48
#define NEAREST 6 /* of them the first four are the soft driver's own */

static struct {
    pthread_once_t once;
    int file;
} call_log = {.once = PTHREAD_ONCE_INIT, .file = -1};

static void open_log(void)
{
    const char *path = secure_getenv("HDSOFT_CALLS");
    if (!path || !*path)
        return;
    call_log.file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (call_log.file < 0)
        fprintf(stderr, "libhdsoft: HDSOFT_CALLS: %s cannot be opened for writing: %m\n", path);
}

/* Of each frame's offset in its module, so that runs can be compared: nearest callers, and all. */
static void hash_places(uint64_t *nearest, uint64_t *all)
{
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES);
    uint64_t hash = 0xcbf29ce484222325u;
    *nearest = 0;
    for (int i = 0; i < count; i++) {
        Dl_info about;
        uint64_t at = (uint64_t)(uintptr_t)frames[i];
        if (dladdr(frames[i], &about) && about.dli_fbase)
            at -= (uint64_t)(uintptr_t)about.dli_fbase;
        hash = (hash ^ at) * 0x100000001b3u;
        hash ^= hash >> 29;
        if (i + 1 == NEAREST)
            *nearest = hash;
    }
    *all = hash;
}

void hdsoft__call_log(hdsoft__entry entry, uint64_t number)
{
    pthread_once(&call_log.once, open_log);
    if (call_log.file < 0)
        return;
    char line[160];
    uint64_t nearest, all;
    hash_places(&nearest, &all);
    int length = snprintf(line, sizeof line, "%s %llu %016llx %016llx\n", hdsoft__entry_symbol(entry),
                          (unsigned long long)number, (unsigned long long)nearest, (unsigned long long)all);
    if (write(call_log.file, line, (size_t)length) != length) { /* a log that is full says less, no more */
        close(call_log.file);
        call_log.file = -1;
    }
}
