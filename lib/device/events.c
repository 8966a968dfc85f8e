/* SPDX-License-Identifier: MIT */
/* The public questions about events, and host timelines. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/number.h"
#include "base/status.h"
#include "device/runtime.h"

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* Keep the message that belongs to an answer; messages of driver calls are there already. */
static hdrt_status answer(hdrt_event event, hdrt_status status, hdrt__failure *failure)
{
    switch (status) {
    case HDRT_ERROR_EVENT_FAILED:
    case HDRT_ERROR_DEVICE_LOST:
        if (failure || status == HDRT_ERROR_EVENT_FAILED) {
            hdrt__fail_with(status, hdrt__failure_text(failure));
        }
        break;
    case HDRT_ERROR_INVALID_ARGUMENT:
        hdrt__fail(status, "event {0x%llx, %llu}: no timeline of this runtime", (unsigned long long)event.timeline,
                   (unsigned long long)event.value);
        break;
    case HDRT_ERROR_CYCLE:
        hdrt__fail(status, "hdrt_event_wait: a host function waits for an event that comes after its own call in the "
                           "same queue: it would wait for itself");
        break;
    default:
        break;
    }
    hdrt__failure_drop(failure);
    return status;
}

hdrt_status hdrt_event_query(hdrt_runtime *runtime, hdrt_event event)
{
    hdrt__failure *failure;
    hdrt_status status = hdrt__runtime_begin(runtime, "hdrt_event_query");
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt__event_look(runtime, event, true, &failure);
    if (status == HDRT_OK) {
        hdrt__order_known(runtime->order, event);
    }
    return answer(event, status, failure);
}

hdrt_status hdrt_event_wait(hdrt_runtime *runtime, hdrt_event event, uint64_t timeout_ns)
{
    hdrt__failure *failure;
    hdrt_status status = hdrt__runtime_begin(runtime, "hdrt_event_wait");
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt__event_wait_until(runtime, event, hdrt__deadline(timeout_ns), &failure);
    if (status == HDRT_OK) {
        hdrt__order_known(runtime->order, event);
    }
    return answer(event, status, failure);
}

/* ---- file descriptors -------------------------------------------------------------------------------------------- */

typedef struct notifier {
    hdrt__timeline_watch watch; /* first */
    hdrt__timeline *timeline;   /* pinned */
    const hdrt__timeline_source *source;
    void *wanted;
    int fd; /* a descriptor of our own: the caller may close his, and its number be another file's */
} notifier;

/* On whichever thread got the timeline there, under any lock. */
static void notify(hdrt__timeline_watch *watch)
{
    notifier *mine = (notifier *)watch;
    hdrt__order_known(mine->timeline->runtime->order, hdrt__timeline_event(mine->timeline, mine->watch.value));
    const uint64_t one = 1;
    ssize_t written = write(mine->fd, &one, sizeof one); /* into an empty counter: cannot fail */
    (void)written;
    close(mine->fd);
    if (mine->wanted) {
        mine->source->unwant(mine->wanted);
    }
    hdrt__timeline_unpin(mine->timeline);
    free(mine);
}

/* Let `mine` be told. Takes it over. */
static void watch_event(hdrt_runtime *runtime, notifier *mine, hdrt_event event)
{
    mine->timeline = hdrt__timeline_pin(runtime, event);
    if (!mine->timeline) { /* its generation is over: complete */
        uint64_t one = 1;
        ssize_t written = write(mine->fd, &one, sizeof one);
        (void)written;
        close(mine->fd);
        free(mine);
        return;
    }
    mine->watch = (hdrt__timeline_watch){.value = event.value, .step = HDRT__TIMELINE_COMPLETED, .wake = notify};
    mine->wanted = hdrt__timeline_want(mine->timeline, event.value, &mine->source);
    if (!hdrt__timeline_watch_begin(mine->timeline, &mine->watch)) {
        notify(&mine->watch);
    }
}

static hdrt_status make_notifier(int *out_fd, notifier **out_notifier)
{
    notifier *mine = calloc(1, sizeof *mine);
    if (!mine) {
        return hdrt__fail_memory(sizeof *mine, "an event's notification");
    }
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    mine->fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (mine->fd < 0) {
        hdrt_status status = hdrt__fail(HDRT_ERROR_IO, "hdrt_event_notify_fd: no descriptor: %s", strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        free(mine);
        return status;
    }
    *out_fd = fd;
    *out_notifier = mine;
    return HDRT_OK;
}

hdrt_status hdrt_event_notify_fd(hdrt_runtime *runtime, hdrt_event event, int *out_fd)
{
    notifier *mine = NULL;
    hdrt_status status = hdrt__runtime_begin(runtime, "hdrt_event_notify_fd");
    if (out_fd) {
        *out_fd = -1;
    } else if (status == HDRT_OK) {
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_event_notify_fd: out_fd is NULL");
    }
    if (status == HDRT_OK && hdrt__event_look(runtime, event, false, NULL) == HDRT_ERROR_INVALID_ARGUMENT) {
        status = answer(event, HDRT_ERROR_INVALID_ARGUMENT, NULL);
    }
    if (status == HDRT_OK) {
        status = make_notifier(out_fd, &mine);
    }
    if (status == HDRT_OK) {
        watch_event(runtime, mine, event);
    }
    return status;
}

/* ---- host timelines ---------------------------------------------------------------------------------------------- */

struct hdrt_timeline {
    hdrt_runtime *runtime; /* held */
    hdrt__timeline *slot;
    pthread_mutex_t lock; /* one signal or failure at a time; taken before the slot's */
    hdrt__failure *failure;
    bool failed;
};

hdrt_status hdrt_timeline_create(hdrt_runtime *runtime, hdrt_timeline **out_timeline)
{
    if (!out_timeline) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_timeline_create: out_timeline is NULL");
    }
    *out_timeline = NULL;
    hdrt_status status = hdrt__runtime_begin(runtime, "hdrt_timeline_create");
    if (status != HDRT_OK) {
        return status;
    }
    hdrt_timeline *timeline = calloc(1, sizeof *timeline);
    if (!timeline) {
        return hdrt__fail_memory(sizeof *timeline, "a host timeline");
    }
    status = hdrt__timeline_acquire(runtime, NULL, NULL, &timeline->slot);
    if (status != HDRT_OK) {
        free(timeline);
        return status;
    }
    pthread_mutex_init(&timeline->lock, NULL);
    timeline->runtime = runtime;
    hdrt__order_timeline(runtime->order, hdrt__timeline_event(timeline->slot, 0));
    hdrt__runtime_hold(runtime);
    *out_timeline = timeline;
    return HDRT_OK;
}

void hdrt_timeline_destroy(hdrt_timeline *timeline)
{
    if (!timeline || hdrt__runtime_forked(timeline->runtime)) {
        return;
    }
    hdrt__failure *failure = hdrt__failure_create(
        HDRT_ERROR_EVENT_FAILED, "the host timeline was destroyed before this value of it was signalled");
    hdrt__order_end(timeline->runtime->order, hdrt__timeline_event(timeline->slot, 0));
    hdrt__timeline_retire(timeline->slot, failure);
    hdrt__failure_drop(failure);
    hdrt__failure_drop(timeline->failure);
    pthread_mutex_destroy(&timeline->lock);
    hdrt__runtime_drop(timeline->runtime);
    free(timeline);
}

hdrt_event hdrt_timeline_event(const hdrt_timeline *timeline, uint64_t value)
{
    return timeline && value ? hdrt__timeline_event(timeline->slot, value) : (hdrt_event){0, 0};
}

static hdrt_status timeline_begin(hdrt_timeline *timeline, const char *function)
{
    if (!timeline) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: the timeline is NULL", function);
    }
    return hdrt__runtime_begin(timeline->runtime, function);
}

hdrt_status hdrt_timeline_signal(hdrt_timeline *timeline, uint64_t value)
{
    hdrt_status status = timeline_begin(timeline, "hdrt_timeline_signal");
    if (status != HDRT_OK) {
        return status;
    }
    pthread_mutex_lock(&timeline->lock);
    uint64_t signalled = atomic_load(&timeline->slot->completed);
    if (timeline->failed) {
        status = hdrt__fail(HDRT_ERROR_EVENT_FAILED, "hdrt_timeline_signal: the timeline has failed: %s",
                            hdrt__failure_text(timeline->failure));
    } else if (value <= signalled) {
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                            "hdrt_timeline_signal: %llu was signalled after %llu: values must go up",
                            (unsigned long long)value, (unsigned long long)signalled);
    } else {
        hdrt__order_signal(timeline->runtime->order, hdrt__timeline_event(timeline->slot, value));
        hdrt__timeline_complete(timeline->slot, value);
    }
    pthread_mutex_unlock(&timeline->lock);
    hdrt__order_tell(timeline->runtime->order);
    return status;
}

hdrt_status hdrt_timeline_fail(hdrt_timeline *timeline, hdrt_status cause, const char *text)
{
    hdrt_status status = timeline_begin(timeline, "hdrt_timeline_fail");
    if (status != HDRT_OK) {
        return status;
    }
    if (cause >= 0) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "hdrt_timeline_fail: status %d is no failure: it must be negative", (int)cause);
    }
    /* A host timeline fails as itself: only a device's loss may tell its waiters that a device is lost. */
    hdrt_status kept = cause == HDRT_ERROR_DEVICE_LOST ? HDRT_ERROR_EVENT_FAILED : cause;
    pthread_mutex_lock(&timeline->lock);
    if (timeline->failed) {
        status = hdrt__fail(HDRT_ERROR_EVENT_FAILED, "hdrt_timeline_fail: the timeline has failed before: %s",
                            hdrt__failure_text(timeline->failure));
    } else {
        timeline->failure = hdrt__failure_create(kept, text ? text : hdrt_status_text(cause));
        timeline->failed = true;
        hdrt__timeline_fail(timeline->slot, 1, timeline->failure);
    }
    pthread_mutex_unlock(&timeline->lock);
    return status;
}
