/* SPDX-License-Identifier: MIT */
#include "soft/model/driver.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "soft/check/report.h"
#include "soft/exec/forms.h"
#include "soft/model/inject.h"
#include "soft/model/pool.h"
#include "soft/model/trace.h"

#define DEFAULT_MEMORY ((uint64_t)16 << 30)
#define LEAST_MEMORY ((uint64_t)16 << 20)

hdsoft__driver hdsoft__the = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .progress = PTHREAD_COND_INITIALIZER,
};

/* In the static block: AddressSanitizer takes the bytes before a loaded library's own block for glibc 2.19's header,
 * and its leak check then reads whatever they point to. */
static __thread hdsoft__thread *this_thread __attribute__((tls_model("initial-exec")));
__thread bool hdsoft__own_default_stream;

uint64_t hdsoft__now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t hdsoft__timestamp(void)
{
    return hdsoft__the.policy == HDSOFT__VIRTUAL ? hdsoft__the.clock : hdsoft__now();
}

int hdsoft__start_thread(void *(*main)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&attributes))
        return 304;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, &attributes, main, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failed ? 304 : 0;
}

/* ---- threads ---- */

static struct {
    pthread_mutex_t lock; /* a leaf */
    hdsoft__thread *first;
} threads = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void list_thread(hdsoft__thread *thread)
{
    pthread_mutex_lock(&threads.lock);
    thread->next = threads.first;
    if (thread->next)
        thread->next->previous = thread;
    threads.first = thread;
    pthread_mutex_unlock(&threads.lock);
}

static void unlist_thread(hdsoft__thread *thread)
{
    pthread_mutex_lock(&threads.lock);
    if (thread->next)
        thread->next->previous = thread->previous;
    if (thread->previous)
        thread->previous->next = thread->next;
    else
        threads.first = thread->next;
    pthread_mutex_unlock(&threads.lock);
}

static void thread_ended(void *state)
{
    hdsoft__thread *thread = state;
    if (atomic_load(&hdsoft__the.forked))
        return; /* the locks may be held by threads that are not here */
    hdsoft__lock();
    for (size_t i = 0; i < thread->stream_count; i++) {
        if (!thread->streams[i].stream->destroyed)
            hdsoft__stream_destroy(thread->streams[i].stream);
        else
            hdsoft__stream_release(thread->streams[i].stream); /* its context went first */
    }
    hdsoft__unlock();
    unlist_thread(thread);
    free(thread->streams);
    free(thread->stack);
    free(thread);
    this_thread = NULL;
}

hdsoft__thread *hdsoft__thread_state(void)
{
    static _Atomic uint64_t next_id;
    if (this_thread)
        return this_thread;
    hdsoft__thread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return NULL;
    if (pthread_setspecific(hdsoft__the.thread_key, thread)) {
        free(thread);
        return NULL;
    }
    thread->id = atomic_fetch_add(&next_id, 1) + 1;
    list_thread(thread);
    this_thread = thread;
    return thread;
}

int hdsoft__current(hdsoft__context **out)
{
    const hdsoft__thread *thread = hdsoft__thread_state();
    *out = thread && thread->depth ? thread->stack[thread->depth - 1] : NULL;
    if (!thread)
        return HDCU_ERROR_OUT_OF_MEMORY;
    if (!*out)
        return HDCU_ERROR_INVALID_CONTEXT;
    return (*out)->destroyed ? HDCU_ERROR_CONTEXT_IS_DESTROYED : 0;
}

/* ---- handles ---- */

static size_t slot_of(const void *handle)
{
    uint64_t hash = (uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 20) & (hdsoft__the.slot_capacity - 1);
}

static const char dead_slot;

static bool grow_slots(void)
{
    size_t old_capacity = hdsoft__the.slot_capacity;
    hdsoft__slot *old = hdsoft__the.slots;
    size_t capacity = 256;
    while (capacity < 4 * (hdsoft__the.slot_count + 1))
        capacity *= 2;
    hdsoft__slot *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    hdsoft__the.slots = slots;
    hdsoft__the.slot_capacity = capacity;
    hdsoft__the.slot_dead = 0;
    for (size_t i = 0; i < old_capacity; i++) {
        if (!old[i].handle || old[i].handle == &dead_slot)
            continue;
        size_t at = slot_of(old[i].handle);
        while (slots[at].handle)
            at = (at + 1) & (capacity - 1);
        slots[at] = old[i];
    }
    free(old);
    return true;
}

bool hdsoft__handle_add(const void *handle, hdsoft__kind kind)
{
    if (2 * (hdsoft__the.slot_count + hdsoft__the.slot_dead + 1) > hdsoft__the.slot_capacity && !grow_slots())
        return false;
    size_t at = slot_of(handle);
    while (hdsoft__the.slots[at].handle && hdsoft__the.slots[at].handle != &dead_slot)
        at = (at + 1) & (hdsoft__the.slot_capacity - 1);
    if (hdsoft__the.slots[at].handle)
        hdsoft__the.slot_dead--;
    hdsoft__the.slots[at] = (hdsoft__slot){handle, kind};
    hdsoft__the.slot_count++;
    return true;
}

static hdsoft__slot *find_slot(const void *handle)
{
    if (!handle || !hdsoft__the.slot_capacity)
        return NULL;
    for (size_t at = slot_of(handle); hdsoft__the.slots[at].handle; at = (at + 1) & (hdsoft__the.slot_capacity - 1)) {
        if (hdsoft__the.slots[at].handle == handle)
            return &hdsoft__the.slots[at];
    }
    return NULL;
}

void hdsoft__handle_remove(const void *handle)
{
    hdsoft__slot *slot = find_slot(handle);
    if (!slot)
        return;
    slot->handle = &dead_slot;
    hdsoft__the.slot_count--;
    hdsoft__the.slot_dead++;
}

bool hdsoft__handle_is(const void *handle, hdsoft__kind kind)
{
    const hdsoft__slot *slot = find_slot(handle);
    return slot && slot->kind == kind;
}

/* ---- faults and progress ---- */

bool hdsoft__is_sticky(unsigned code)
{
    return code == 226 || code == 700 || code == 702 || code == 710 || (code >= 714 && code <= 719) || code == 721 ||
           code == 810 || code == 911;
}

void hdsoft__fault(hdsoft__device *device, unsigned code, const char *text)
{
    if (atomic_load(&device->fault))
        return;
    if (!atomic_load(&hdsoft__the.fault_told)) {
        snprintf(hdsoft__the.fault_text, sizeof hdsoft__the.fault_text, "%s", text);
        atomic_store(&hdsoft__the.fault_told, true);
    }
    atomic_store(&device->fault, code);
    hdsoft__wake();
}

void hdsoft__wait_progress(void)
{
    hdsoft__the.waiters++;
    pthread_cond_wait(&hdsoft__the.progress, &hdsoft__the.lock);
    hdsoft__the.waiters--;
}

void hdsoft__wake(void)
{
    if (hdsoft__the.waiters)
        pthread_cond_broadcast(&hdsoft__the.progress);
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        if (hdsoft__the.devices[i].running)
            pthread_cond_signal(&hdsoft__the.devices[i].work);
    }
}

/* ---- start ---- */

static void in_forked_child(void)
{
    atomic_store(&hdsoft__the.forked, true);
}

static bool read_number(const char *name, uint64_t *value)
{
    const char *text = secure_getenv(name);
    if (!text || !*text)
        return false;
    const char *end;
    if (!hdsoft__bytes_read(text, &end, value) || *end) {
        fprintf(stderr, "libhdsoft: %s: \"%s\" is no number, and none with K, M or G behind it\n", name, text);
        return false;
    }
    return true;
}

/* HDSOFT_ISA, for measurements and for tests of the other handlers. */
static int find_level(void)
{
    static const char *const names[] = {"sse2", "avx2", "avx512"};
    const char *name = secure_getenv("HDSOFT_ISA");
    for (int i = 0; name && i < (int)(sizeof names / sizeof names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

static int start_device(hdsoft__device *device, unsigned ordinal, uint64_t memory)
{
    device->ordinal = ordinal;
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes))
        return HDCU_ERROR_OUT_OF_MEMORY;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&device->work, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_cond_init(&device->calls, NULL);
    /* A limit on the address space leaves room for a smaller device. */
    for (; !device->memory && memory >= LEAST_MEMORY; memory /= 2)
        device->memory = hdsoft__memory_create(memory, hdsoft__the.hosts);
    if (!device->memory)
        return HDCU_ERROR_OUT_OF_MEMORY;
    device->default_pool = hdsoft__pool_create(device, true);
    device->current_pool = device->default_pool;
    if (!device->default_pool) {
        hdsoft__memory_destroy(device->memory);
        return HDCU_ERROR_OUT_OF_MEMORY;
    }
    return 0;
}

static void read_policy(void)
{
    char text[200];
    const char *policy = secure_getenv("HDSOFT_POLICY");
    if (!hdsoft__the.options_set && hdsoft__options_read(policy ? policy : "eager", &hdsoft__the.options, text,
                                                         sizeof text))
        fprintf(stderr, "soft driver: HDSOFT_POLICY: %s; running eagerly\n", text);
    hdsoft__the.policy = hdsoft__the.options.policy;
}

int hdsoft__driver_set_policy(const char *policy)
{
    char text[200];
    hdsoft__options options;
    if (!policy || hdsoft__options_read(policy, &options, text, sizeof text))
        return 1;
    hdsoft__lock();
    bool late = false;
    for (unsigned i = 0; i < hdsoft__the.device_count; i++)
        late |= hdsoft__the.devices[i].running;
    if (!late) {
        hdsoft__the.options = options;
        hdsoft__the.options_set = true;
        hdsoft__the.policy = options.policy;
    }
    hdsoft__unlock();
    return late;
}

static int start(void)
{
    uint64_t count = 1, memory = DEFAULT_MEMORY;
    read_number("HDSOFT_DEVICES", &count);
    if (hdsoft__inject_from_environment())
        return HDCU_ERROR_INVALID_VALUE; /* the line on stderr says which character */
    read_number("HDSOFT_MEMORY", &memory);
    if (hdsoft__inject_memory())
        memory = hdsoft__inject_memory();
    memory = memory < LEAST_MEMORY ? LEAST_MEMORY : memory & ~(uint64_t)0x1fffff;
    if (!count)
        return HDCU_ERROR_NO_DEVICE;
    read_policy();
    hdsoft__the.level = find_level();
    hdsoft_forms_of(hdsoft__the.level); /* not in the first module's time */
    hdsoft__the.hosts = hdsoft__memory_create(0, NULL);
    if (!hdsoft__the.hosts)
        return HDCU_ERROR_OUT_OF_MEMORY;
    if (pthread_key_create(&hdsoft__the.thread_key, thread_ended))
        goto free_hosts;
    for (unsigned i = 0; i < count && i < HDSOFT__DEVICES; i++) {
        if (start_device(&hdsoft__the.devices[i], i, memory))
            break;
        hdsoft__the.device_count = i + 1;
    }
    if (!hdsoft__the.device_count)
        goto delete_key;
    pthread_atfork(NULL, NULL, in_forked_child);
    hdsoft__checks_from_environment();
    hdsoft__trace_from_environment();
    return 0;

delete_key:
    pthread_key_delete(hdsoft__the.thread_key);
free_hosts:
    hdsoft__memory_destroy(hdsoft__the.hosts);
    hdsoft__the.hosts = NULL;
    return HDCU_ERROR_OUT_OF_MEMORY;
}

int hdsoft__driver_start(void)
{
    if (atomic_load(&hdsoft__the.forked))
        return HDCU_ERROR_NOT_INITIALIZED;
    int status = 0;
    hdsoft__lock();
    if (!atomic_load(&hdsoft__the.ready)) {
        status = start();
        if (!status)
            atomic_store(&hdsoft__the.ready, true);
    }
    hdsoft__unlock();
    return status;
}
