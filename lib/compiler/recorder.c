/* SPDX-License-Identifier: MIT */
/*
 * libhdrt-record.so, preloaded into clang by hdrt-cc: writes one record for every file that the front end looks for.
 * It begins when the source itself is opened, so that the driver's search for tool chains is not taken for
 * dependencies. It touches nothing else, allocates nothing, and says nothing.
 */
#include "compiler/record.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Set once, before main, and only read then; `started` when the source is opened. */
static int record_fd = -1;
static const char *source_path, *macros_path;
static int memory_first = -1; /* -1: no in-memory headers */
static atomic_bool started;

__attribute__((constructor)) static void recorder_begin(void)
{
    const char *number = getenv(HDRT__CC_ENV_RECORD_FD);
    source_path = getenv(HDRT__CC_ENV_RECORD_SOURCE);
    macros_path = getenv(HDRT__CC_ENV_RECORD_MACROS);
    if (number == NULL || source_path == NULL || macros_path == NULL)
        return;
    record_fd = atoi(number);
    const char *memory = getenv(HDRT__CC_ENV_RECORD_MEMORY);
    if (memory != NULL)
        memory_first = atoi(memory);
    hdrt__cc_record_head hello = {.kind = HDRT__CC_RECORD_HELLO};
    hdrt__cc_record(&hello, "");
}

/* Whether what follows the folder of descriptors is the number of an in-memory header's. */
static bool is_in_memory(const char *name)
{
    return memory_first >= 0 && *name != '\0' && strspn(name, "0123456789") == strlen(name) &&
           atoi(name) >= memory_first;
}

/*
 * The source lies at /proc/self/fd/N, so the front end also looks for quoted headers in that folder, where the other
 * descriptors are: nothing there is a header.
 */
enum hdrt__cc_watch hdrt__cc_watch(const char *path, bool opening)
{
    if (record_fd < 0 || path == NULL || strcmp(path, macros_path) == 0)
        return HDRT__CC_PASS;
    if (strcmp(path, source_path) == 0) {
        if (opening)
            atomic_store(&started, true);
        return HDRT__CC_PASS;
    }
    if (!atomic_load(&started))
        return HDRT__CC_PASS;
    if (strncmp(path, "/proc/self/fd/", 14) != 0)
        return HDRT__CC_WATCH;
    return is_in_memory(path + 14) ? HDRT__CC_PASS : HDRT__CC_DENY;
}

/* One write for one record, so that records of two threads do not mix. A longer path cannot name a file. */
void hdrt__cc_record(const hdrt__cc_record_head *head, const char *path)
{
    size_t length = strlen(path);
    struct {
        hdrt__cc_record_head head;
        char path[2 * PATH_MAX];
    } record;
    if (length > sizeof record.path)
        return;
    record.head = *head;
    record.head.path_length = length;
    memcpy(record.path, path, length);
    ssize_t written = write(record_fd, &record, sizeof record.head + length);
    (void)written;
}
