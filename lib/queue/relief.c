/* SPDX-License-Identifier: MIT */
#include "queue/relief.h"

#include "base/number.h"
#include "queue/dispatcher.h"
#include "queue/scheduler.h"

static void do_nothing(void *argument)
{
    (void)argument;
}

static uint64_t commands_of(const hdrt__scheduler *scheduler)
{
    uint64_t commands = 0;
    for (uint32_t i = atomic_load(&scheduler->stream_count); i > 0; i--) {
        hdrt__stream *stream = atomic_load(&scheduler->streams[i - 1]);
        commands += atomic_load_explicit(&stream->sequence, memory_order_relaxed);
    }
    return commands;
}

/* The one before it has run: where the driver's thread is held up by a stranger's host function, they do not pile up. */
static bool has_run(const hdrt__scheduler *scheduler)
{
    const hdrt__stream *stream = scheduler->relief.stream;
    return !stream ||
           HDRT__CALL(scheduler->device->driver, cuStreamQuery, stream->handle).result != HDCU_ERROR_NOT_READY;
}

static bool make_stream(hdrt__scheduler *scheduler)
{
    return scheduler->relief.stream ||
           hdrt__stream_create(scheduler, (uint8_t)(scheduler->classes - 1), false, NULL, &scheduler->relief.stream) ==
               HDRT_OK;
}

void hdrt__relief_give(hdrt__scheduler *scheduler)
{
    hdrt__relief *relief = &scheduler->relief;
    uint64_t now_ns = hdrt__now_ns();
    if (relief->refused || now_ns - relief->given_ns < HDRT__RELIEF_NS || atomic_load(&scheduler->stream_count) < 2 ||
        atomic_load(&scheduler->closed) || hdrt__device_is_lost(scheduler->device)) {
        return;
    }
    uint64_t commands = commands_of(scheduler);
    if (commands - relief->commands < HDRT__RELIEF_COMMANDS || !has_run(scheduler)) {
        return;
    }
    relief->given_ns = now_ns;
    relief->commands = commands;
    /* If it is refused, things go on as they were. */
    relief->refused = !make_stream(scheduler) || HDRT__CALL(scheduler->device->driver, cuLaunchHostFunc,
                                                            relief->stream->handle, do_nothing, NULL).result;
}

void hdrt__relief_want(hdrt__scheduler *scheduler, uint64_t now_ns)
{
    _Atomic uint64_t *wanted_ns = &scheduler->relief.wanted_ns;
    uint64_t before = atomic_load_explicit(wanted_ns, memory_order_relaxed);
    if (now_ns - before >= HDRT__RELIEF_NS && atomic_load_explicit(&scheduler->stream_count, memory_order_relaxed) > 1 &&
        atomic_compare_exchange_strong(wanted_ns, &before, now_ns)) {
        hdrt__dispatcher_look(scheduler);
    }
}
