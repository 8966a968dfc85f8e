/* SPDX-License-Identifier: MIT */
#include "compiler/watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* The interposed calls have no argument that could lead here, so this is the process's own. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `active` and the set behind it */
static hdrt__cc_files *active;
static atomic_bool watching; /* the same question without the lock */

void hdrt__cc_watch_begin(hdrt__cc_files *files)
{
    pthread_mutex_lock(&lock);
    active = files;
    pthread_mutex_unlock(&lock);
    atomic_store(&watching, true);
}

void hdrt__cc_watch_end(void)
{
    atomic_store(&watching, false);
    pthread_mutex_lock(&lock);
    active = NULL;
    pthread_mutex_unlock(&lock);
}

/* What the compiler asks the system about (memory, processors) is no input of the compile. */
enum hdrt__cc_watch hdrt__cc_watch(const char *path, bool opening)
{
    if (!atomic_load(&watching) || path == NULL)
        return HDRT__CC_PASS;
    return strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0 ? HDRT__CC_PASS : HDRT__CC_WATCH;
}

void hdrt__cc_record(const hdrt__cc_record_head *head, const char *path)
{
    pthread_mutex_lock(&lock);
    if (active != NULL)
        hdrt__cc_files_add(active, head, path);
    pthread_mutex_unlock(&lock);
}
