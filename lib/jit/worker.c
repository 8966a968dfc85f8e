/* SPDX-License-Identifier: MIT */
#include "jit/worker.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/number.h"
#include "base/status.h"
#include "compiler/protocol.h"
#include "driver/fork.h"
#include "jit/cursor.h"
#include "jit/spawn.h"

#define MOST_BY_DEFAULT 8u
#define RECEIVE_STEP ((size_t)1 << 20)
#define CANCEL_STEP_NS 20000000 /* between two looks whether a compile that waits for a worker was cancelled */

struct worker {
    struct worker *next;     /* idle ones of a pool */
    struct worker *listed, **listed_at; /* all of the process, for fork */
    int socket;
    hdrt__process process;
    bool used; /* has answered before */
};

struct hdrt__worker_pool {
    char *program;
    char **environment;
    uint32_t limit;
    uint64_t fork_generation;
    _Atomic uint64_t started;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t freed; /* a worker became idle, or one ended */
    struct worker *idle;
    uint32_t count; /* idle and busy */
};

/*
 * The workers of this process, whatever pool they are of: fork is process-wide, and so is this list. The lock is held
 * across fork, so that the child finds the list whole.
 */
static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    struct worker *first;
} listed = {PTHREAD_ONCE_INIT, PTHREAD_MUTEX_INITIALIZER, NULL};

static void before_fork(void)
{
    pthread_mutex_lock(&listed.lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&listed.lock);
}

static void after_fork_in_child(void)
{
    for (struct worker *worker = listed.first; worker; worker = worker->listed) {
        close(worker->socket);
        if (worker->process.pidfd >= 0)
            close(worker->process.pidfd);
        worker->socket = -1;
        worker->process = (hdrt__process){-1, -1};
    }
    listed.first = NULL;
    pthread_mutex_unlock(&listed.lock);
}

static void watch_fork(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void list_worker(struct worker *worker)
{
    worker->listed = listed.first;
    worker->listed_at = &listed.first;
    if (listed.first)
        listed.first->listed_at = &worker->listed;
    listed.first = worker;
}

/* What the worker's environment keeps of ours: nothing that steers a compiler. */
static char **make_environment(void)
{
    static const char *const kept[] = {"PATH",         "LD_LIBRARY_PATH", "TMPDIR",       "ASAN_OPTIONS",
                                       "TSAN_OPTIONS", "UBSAN_OPTIONS",   "LSAN_OPTIONS", "GCOV_PREFIX",
                                       "GCOV_PREFIX_STRIP"};
    const size_t count = sizeof(kept) / sizeof(kept[0]);
    char **environment = calloc(count + 2, sizeof(*environment));
    size_t used = 0;
    if (!environment)
        return NULL;
    environment[used] = strdup("LC_ALL=C");
    bool good = environment[used++] != NULL;
    for (size_t i = 0; i < count && good; i++) {
        const char *value = secure_getenv(kept[i]);
        if (!value)
            continue;
        hdrt__buffer text = HDRT__BUFFER_INIT;
        hdrt__buffer_format(&text, "%s=%s", kept[i], value);
        environment[used] = hdrt__buffer_take(&text, NULL);
        good = environment[used++] != NULL;
    }
    if (good)
        return environment;
    for (size_t i = 0; i < used; i++)
        free(environment[i]);
    free(environment);
    return NULL;
}

uint32_t hdrt__worker_limit(uint32_t limit)
{
    cpu_set_t set;
    if (limit)
        return limit;
    uint32_t processors = sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
    return processors < 1 ? 1 : processors > MOST_BY_DEFAULT ? MOST_BY_DEFAULT : processors;
}

hdrt_status hdrt__worker_pool_create(const char *program, uint32_t limit, hdrt__worker_pool **out_pool)
{
    *out_pool = NULL;
    hdrt__worker_pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return hdrt__fail_memory(sizeof(*pool), "the compile workers");
    pthread_once(&listed.once, watch_fork);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->freed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pool->program = strdup(program);
    pool->environment = make_environment();
    pool->limit = hdrt__worker_limit(limit);
    hdrt_status status = hdrt__fork_watch(&pool->fork_generation);
    if (status == HDRT_OK && (!pool->program || !pool->environment))
        status = hdrt__fail_memory(sizeof(*pool), "the compile workers");
    if (status != HDRT_OK) {
        hdrt__worker_pool_destroy(pool);
        return status;
    }
    *out_pool = pool;
    return HDRT_OK;
}

/* Closes and forgets a worker; `kill_it` where it may be in the middle of something. */
static void discard(struct worker *worker, bool kill_it)
{
    /* One that ends in its own time could leave a child of its own to an application that adopts orphans. */
    if (kill_it || hdrt__adopts_orphans())
        hdrt__process_kill(&worker->process, worker->socket);
    pthread_mutex_lock(&listed.lock);
    *worker->listed_at = worker->listed;
    if (worker->listed)
        worker->listed->listed_at = worker->listed_at;
    int socket = worker->socket;
    hdrt__process process = worker->process;
    if (socket >= 0)
        close(socket);
    pthread_mutex_unlock(&listed.lock);
    hdrt__process_end(&process);
    free(worker);
}

void hdrt__worker_pool_destroy(hdrt__worker_pool *pool)
{
    if (!pool)
        return;
    bool forked = hdrt__forked(pool->fork_generation) && pool->program;
    for (struct worker *worker = pool->idle, *next; worker; worker = next) {
        next = worker->next;
        if (forked)
            free(worker); /* its descriptors were closed at the fork */
        else
            discard(worker, false);
    }
    for (char **entry = pool->environment; entry && *entry; entry++)
        free(*entry);
    free(pool->environment);
    free(pool->program);
    if (!forked) { /* in a child another thread's lock may be held for ever */
        pthread_cond_destroy(&pool->freed);
        pthread_mutex_destroy(&pool->lock);
    }
    free(pool);
}

static hdrt_status start_worker(hdrt__worker_pool *pool, struct worker **out_worker)
{
    int pair[2];
    struct worker *worker = calloc(1, sizeof(*worker));
    if (!worker)
        return hdrt__fail_memory(sizeof(*worker), "a compile worker");
    char name[] = "hdrt-cc", option[] = "--fd=3";
    char *arguments[] = {name, option, NULL};
    /* The list's lock keeps a fork out, whose child would have the socket but not know of it. */
    pthread_mutex_lock(&listed.lock);
    hdrt_status status = HDRT_OK;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        status = hdrt__fail(HDRT_ERROR_OUT_OF_MEMORY, "cannot make a socket for the compile worker: %s",
                            strerrordesc_np(errno));
    } else {
        status = hdrt__spawn(pool->program, arguments, pool->environment, pair[1], pair[0], &worker->process);
        close(pair[1]);
        worker->socket = pair[0];
        if (status == HDRT_OK)
            list_worker(worker);
        else
            close(pair[0]);
    }
    pthread_mutex_unlock(&listed.lock);
    if (status != HDRT_OK) {
        free(worker);
        return status;
    }
    atomic_fetch_add(&pool->started, 1);
    hdrt__log(HDRT_LOG_DEBUG, "compile worker %ld started: %s", (long)worker->process.pid, pool->program);
    *out_worker = worker;
    return HDRT_OK;
}

/* Whether an idle worker is still there and quiet; they end by themselves after a while. */
static bool still_there(const struct worker *worker)
{
    char byte;
    ssize_t got = recv(worker->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* Under the lock: wait for a worker to become free; not long where somebody may cancel. */
static void wait_for_worker(hdrt__worker_pool *pool, const hdrt__cancel *cancel)
{
    struct timespec until;
    if (!cancel) {
        pthread_cond_wait(&pool->freed, &pool->lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += CANCEL_STEP_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&pool->freed, &pool->lock, &until);
}

static hdrt_status acquire(hdrt__worker_pool *pool, bool fresh, hdrt__cancel *cancel, struct worker **out_worker)
{
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        struct worker *worker = pool->idle;
        if (worker) {
            pool->idle = worker->next;
            if (!fresh && still_there(worker)) {
                pthread_mutex_unlock(&pool->lock);
                *out_worker = worker;
                return HDRT_OK;
            }
            pool->count--;
            discard(worker, false);
        } else if (pool->count < pool->limit) {
            break;
        } else {
            wait_for_worker(pool, cancel);
        }
        if (hdrt__cancel_asked(cancel)) {
            pthread_cond_signal(&pool->freed); /* this thread may have taken the signal that was for another */
            pthread_mutex_unlock(&pool->lock);
            return hdrt__cancelled();
        }
    }
    pool->count++;
    pthread_mutex_unlock(&pool->lock);
    hdrt_status status = start_worker(pool, out_worker);
    if (status != HDRT_OK) {
        pthread_mutex_lock(&pool->lock);
        pool->count--;
        pthread_cond_signal(&pool->freed);
        pthread_mutex_unlock(&pool->lock);
    }
    return status;
}

static void release(hdrt__worker_pool *pool, struct worker *worker, bool reuse)
{
    if (!reuse)
        discard(worker, true);
    else
        worker->used = true;
    pthread_mutex_lock(&pool->lock);
    if (reuse) {
        worker->next = pool->idle;
        pool->idle = worker;
    } else {
        pool->count--;
    }
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->lock);
}

/* How a transfer ended. */
enum transfer { DONE, ANSWERED_EARLY, CLOSED, RESET, LATE };

/* Waits until the socket is ready; never longer than to the deadline, whatever signals come. */
static enum transfer wait_for(int socket, short events, uint64_t deadline)
{
    for (;;) {
        uint64_t now = hdrt__now_ns();
        if (now >= deadline)
            return LATE;
        uint64_t left_ms = (deadline - now + 999999) / 1000000;
        struct pollfd ready = {socket, events, 0};
        int count = poll(&ready, 1, left_ms > INT_MAX ? INT_MAX : (int)left_ms);
        if (count > 0)
            return DONE;
        if (count < 0 && errno != EINTR)
            return CLOSED;
    }
}

static enum transfer send_all(int socket, const unsigned char *bytes, size_t size, uint64_t deadline)
{
    while (size > 0) {
        ssize_t sent = send(socket, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            bytes += sent;
            size -= (size_t)sent;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            struct pollfd early = {socket, POLLIN, 0};
            /* A worker that answers before it read all does not want the rest. */
            if (poll(&early, 1, 0) > 0 && (early.revents & POLLIN))
                return ANSWERED_EARLY;
            enum transfer wait = wait_for(socket, POLLOUT | POLLIN, deadline);
            if (wait != DONE)
                return wait;
        } else if (errno != EINTR) {
            return RESET;
        }
    }
    return DONE;
}

static enum transfer receive_all(int socket, unsigned char *bytes, size_t size, uint64_t deadline)
{
    while (size > 0) {
        ssize_t got = recv(socket, bytes, size, MSG_DONTWAIT);
        if (got > 0) {
            bytes += got;
            size -= (size_t)got;
        } else if (got == 0) {
            return CLOSED;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            enum transfer wait = wait_for(socket, POLLIN, deadline);
            if (wait != DONE)
                return wait;
        } else if (errno != EINTR) {
            return RESET;
        }
    }
    return DONE;
}

/* A reply's payload, taken in steps: the length is the worker's word only. */
static enum transfer receive_payload(int socket, uint64_t length, uint64_t deadline, unsigned char **out,
                                     bool *no_memory)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    enum transfer result = DONE;
    do {
        size_t step = length - size < RECEIVE_STEP ? (size_t)length - size : RECEIVE_STEP;
        unsigned char *bigger = realloc(bytes, size + step + 1);
        if (!bigger) {
            *no_memory = true;
            break;
        }
        bytes = bigger;
        result = receive_all(socket, bytes + size, step, deadline);
        size += step;
    } while (result == DONE && size < length);
    if (result == DONE && !*no_memory) {
        *out = bytes;
        return DONE;
    }
    free(bytes);
    return result;
}

static enum transfer receive_reply(int socket, uint64_t deadline, unsigned char **out_reply, size_t *out_size,
                                   hdrt_status *status)
{
    unsigned char header[HDRT_CC_HEADER_SIZE];
    bool no_memory = false;
    enum transfer result = receive_all(socket, header, sizeof(header), deadline);
    if (result != DONE)
        return result;
    hdrt__cursor cursor = {header, sizeof(header), false};
    uint32_t magic = hdrt__cursor_u32(&cursor), version = hdrt__cursor_u32(&cursor), type = hdrt__cursor_u32(&cursor);
    hdrt__cursor_u32(&cursor);
    uint64_t length = hdrt__cursor_u64(&cursor);
    if (magic != HDRT_CC_MAGIC || version != HDRT_CC_VERSION || type != HDRT_CC_REPLY_COMPILE ||
        length > HDRT_CC_MESSAGE_LIMIT) {
        *status = hdrt__fail(HDRT_ERROR_COMPANION,
                             "the compile worker's answer cannot be read: it speaks version %u of another build, this "
                             "library version %u", magic == HDRT_CC_MAGIC ? version : 0, HDRT_CC_VERSION);
        return DONE;
    }
    result = receive_payload(socket, length, deadline, out_reply, &no_memory);
    *out_size = (size_t)length;
    if (no_memory)
        *status = hdrt__fail_memory((size_t)length, "the compile worker's answer");
    return result;
}

static hdrt_status explain_transfer(const hdrt__worker_pool *pool, enum transfer result, uint32_t time_limit_ms)
{
    if (result == LATE)
        return hdrt__fail(HDRT_ERROR_COMPILE_LIMIT, "the compile passed its time limit of %u ms and was stopped",
                          time_limit_ms);
    return hdrt__fail(HDRT_ERROR_COMPILER_CRASHED,
                      "the compile worker '%s' ended in the middle of a compile (crashed or killed); the next compile "
                      "starts a new one", pool->program);
}

/* One exchange with one worker. *again: it was an old one that had ended before it took the request. */
static hdrt_status exchange_once(hdrt__worker_pool *pool, bool fresh, const hdrt__buffer *message,
                                 uint32_t time_limit_ms, hdrt__cancel *cancel, unsigned char **out_reply,
                                 size_t *out_size, bool *again)
{
    struct worker *worker = NULL;
    *again = false;
    hdrt_status status = acquire(pool, fresh, cancel, &worker);
    if (status != HDRT_OK)
        return status;
    bool used = worker->used;
    uint64_t deadline = hdrt__deadline(((uint64_t)time_limit_ms + HDRT_CC_GRACE_MS) * 1000000u);
    if (!hdrt__cancel_attach(cancel, worker->socket)) {
        release(pool, worker, true);
        return hdrt__cancelled();
    }
    enum transfer result = send_all(worker->socket, message->bytes, message->size, deadline);
    if (result == DONE || result == ANSWERED_EARLY)
        result = receive_reply(worker->socket, deadline, out_reply, out_size, &status);
    hdrt__cancel_detach(cancel);
    bool cancelled = hdrt__cancel_asked(cancel); /* its socket may be shut down, whatever the result */
    release(pool, worker, result == DONE && status == HDRT_OK && !cancelled);
    if (cancelled)
        return hdrt__cancelled();
    *again = result == RESET && used;
    if (result != DONE && !*again)
        status = explain_transfer(pool, result, time_limit_ms);
    return status;
}

hdrt_status hdrt__worker_exchange(hdrt__worker_pool *pool, const void *request, size_t size, uint32_t time_limit_ms,
                                  hdrt__cancel *cancel, unsigned char **out_reply, size_t *out_size)
{
    hdrt__buffer message = HDRT__BUFFER_INIT;
    int cancel_state;
    bool again = false;
    *out_reply = NULL;
    if (hdrt__forked(pool->fork_generation))
        return hdrt__fail(HDRT_ERROR_FORKED, "compiling needs a runtime made in this process, not in the one it was "
                                             "forked from");
    hdrt__buffer_u32(&message, HDRT_CC_MAGIC);
    hdrt__buffer_u32(&message, HDRT_CC_VERSION);
    hdrt__buffer_u32(&message, HDRT_CC_REQUEST_COMPILE);
    hdrt__buffer_u32(&message, 0);
    hdrt__buffer_u64(&message, size);
    hdrt__buffer_append(&message, request, size);
    if (message.failed) {
        hdrt__buffer_free(&message);
        return hdrt__fail_memory(size, "a compile request");
    }
    /* A thread that is cancelled in here would take a worker with it. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    hdrt_status status = exchange_once(pool, false, &message, time_limit_ms, cancel, out_reply, out_size, &again);
    if (again)
        status = exchange_once(pool, true, &message, time_limit_ms, cancel, out_reply, out_size, &again);
    if (again)
        status = explain_transfer(pool, RESET, time_limit_ms);
    pthread_setcancelstate(cancel_state, NULL);
    hdrt__buffer_free(&message);
    return status;
}

uint64_t hdrt__worker_pool_started(const hdrt__worker_pool *pool)
{
    return atomic_load(&pool->started);
}
