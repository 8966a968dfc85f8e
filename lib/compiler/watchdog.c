/* SPDX-License-Identifier: MIT */
#include "compiler/watchdog.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "compiler/child.h"
#include "compiler/job.h"

/* One per process, like the thread. */
static struct {
    int socket, wake;
    atomic_bool busy;
    pthread_mutex_t lock; /* guards what follows; kept for good by the thread once the deadline has struck */
    bool armed;
    int64_t deadline_ns;
    const unsigned char *reply;
    size_t reply_size;
} watchdog = {.socket = -1, .wake = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

bool hdrt__cc_send(int socket, const unsigned char *bytes, size_t size)
{
    size_t at = 0;
    while (at < size) {
        ssize_t sent = send(socket, bytes + at, size - at, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return false;
        at += (size_t)sent;
    }
    return true;
}

/* Milliseconds until the deadline, -1 without one. At the deadline this answers the client and ends the process. */
static int time_to_deadline(void)
{
    int timeout = -1;
    pthread_mutex_lock(&watchdog.lock);
    if (watchdog.armed) {
        int64_t left = (watchdog.deadline_ns - hdrt__cc_now_ns() + 999999) / 1000000;
        if (left <= 0) {
            hdrt__cc_send(watchdog.socket, watchdog.reply, watchdog.reply_size);
            _exit(0);
        }
        timeout = left < 1000000 ? (int)left : 1000000;
    }
    pthread_mutex_unlock(&watchdog.lock);
    return timeout;
}

/* Leave the main thread a moment to return from main, which is the clean end, if it is not in a compile. */
static _Noreturn void end_process(void)
{
    struct timespec moment = {0, 10000000};
    for (int i = 0; i < 50 && !atomic_load(&watchdog.busy); i++)
        nanosleep(&moment, NULL);
    hdrt__cc_kill_child();
    _exit(0);
}

static void *run(void *argument)
{
    for (;;) {
        struct pollfd fds[2] = {{watchdog.socket, POLLRDHUP, 0}, {watchdog.wake, POLLIN, 0}};
        if (poll(fds, 2, time_to_deadline()) < 0 && errno != EINTR)
            break;
        if ((fds[0].revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0)
            break;
        uint64_t count;
        if ((fds[1].revents & POLLIN) != 0 && read(watchdog.wake, &count, sizeof count) < 0 && errno != EAGAIN)
            break;
    }
    end_process();
}

void hdrt__cc_watchdog_busy(bool busy)
{
    atomic_store(&watchdog.busy, busy);
}

int hdrt__cc_watchdog_start(int socket)
{
    watchdog.socket = socket;
    watchdog.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watchdog.wake < 0)
        return errno;
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run, NULL);
    if (error == 0)
        pthread_detach(thread);
    return error;
}

static void wake(void)
{
    uint64_t one = 1;
    ssize_t written = write(watchdog.wake, &one, sizeof one);
    (void)written;
}

void hdrt__cc_watchdog_arm(int64_t deadline_ns, const unsigned char *reply, size_t size)
{
    pthread_mutex_lock(&watchdog.lock);
    watchdog.armed = deadline_ns != INT64_MAX;
    watchdog.deadline_ns = deadline_ns;
    watchdog.reply = reply;
    watchdog.reply_size = size;
    pthread_mutex_unlock(&watchdog.lock);
    wake();
}

void hdrt__cc_watchdog_disarm(void)
{
    pthread_mutex_lock(&watchdog.lock);
    watchdog.armed = false;
    pthread_mutex_unlock(&watchdog.lock);
}
