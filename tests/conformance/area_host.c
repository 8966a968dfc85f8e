/* SPDX-License-Identifier: MIT */
/* Host functions and stream callbacks, and what the driver says to calls from within them. */
#include "areas.h"
#include "support.h"

#include <pthread.h>
#include <semaphore.h>

static void add_one(void *argument)
{
    ++*(volatile uint32_t *)argument;
}

static void runs(const check *self)
{
    hdcu_stream stream = self->kind == 'n' ? NULL : new_stream((unsigned)self->number);
    volatile uint32_t count = 0;
    STATUS(cuLaunchHostFunc(stream, add_one, (void *)&count));
    STATUS(cuLaunchHostFunc(stream, add_one, (void *)&count));
    STATUS(cuStreamSynchronize(stream));
    say("%u", count);
}

static void misuse(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    STATUS(cuLaunchHostFunc(stream, NULL, NULL));
    STATUS(cuStreamAddCallback(stream, NULL, NULL, 0));
    STATUS(cuStreamSynchronize(stream));
}

typedef struct look {
    volatile uint32_t *at;
    volatile uint32_t saw;
    pthread_t thread;
} look;

static void look_at(void *argument)
{
    look *of = argument;
    of->saw = *of->at;
    of->thread = pthread_self();
    *of->at = of->saw + 1;
}

static void in_order(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    uint32_t *word = new_pinned(8), value = 40;
    hdcu_pointer address = (uintptr_t)word, after = address + 4;
    look of = {.at = word};
    STATUS(LAUNCH(KERNEL("store"), 1, 1, stream, &address, &value));
    STATUS(cuLaunchHostFunc(stream, look_at, &of));
    STATUS(LAUNCH(KERNEL("copy"), 1, 1, stream, &address, &after));
    STATUS(cuStreamSynchronize(stream));
    say("%u:%u", of.saw, word[1]);
    say("%s", pthread_equal(of.thread, pthread_self()) ? "caller" : "another thread");
}

typedef struct gate {
    sem_t open;
} gate;

static void wait_at(void *argument)
{
    gate *of = argument;
    sem_wait(&of->open);
}

static void holds_its_stream_only(const check *self)
{
    (void)self;
    hdcu_stream a = new_stream(HDCU_STREAM_NON_BLOCKING), b = new_stream(HDCU_STREAM_NON_BLOCKING);
    hdcu_pointer p = new_bytes(4);
    gate of;
    sem_init(&of.open, 0, 0);
    STATUS(cuLaunchHostFunc(a, wait_at, &of));
    STATUS(cuMemsetD32Async(p, 6, 1, b));
    STATUS(cuStreamSynchronize(b));
    STATUS(cuStreamQuery(a));
    sem_post(&of.open);
    STATUS(cuStreamSynchronize(a));
    say("%u", word_at(p));
}

/* ---- calls from within: "may result in CUDA_ERROR_NOT_PERMITTED", so only those are asked that do ---- */

typedef struct within {
    int which;
    volatile hdcu_result got;
} within;

static void call_within(void *argument)
{
    within *of = argument;
    hdcu_pointer p = 0;
    hdcu_context context = NULL;
    const char *text = NULL;
    int value = 0;
    size_t bytes = 0, total = 0;
    switch (of->which) {
    case 0: of->got = cu.cuMemAlloc(&p, 16); break;
    case 1: of->got = cu.cuCtxSynchronize(); break;
    case 2: of->got = cu.cuCtxGetCurrent(&context); break;
    case 3: of->got = cu.cuGetErrorName(1, &text); break;
    case 4: of->got = cu.cuDeviceGetCount(&value); break;
    case 5: of->got = cu.cuMemGetInfo(&bytes, &total); break;
    case 6: of->got = cu.cuDriverGetVersion(&value); break;
    default: break;
    }
}

static void from_within(const check *self)
{
    within of = {.which = (int)self->number, .got = 77777};
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    STATUS(cuLaunchHostFunc(stream, call_within, &of));
    STATUS(cuStreamSynchronize(stream));
    say("%u", of.got);
}

/* ---- callbacks ---- */

typedef struct called {
    hdcu_stream stream;
    volatile hdcu_result status;
} called;

static void note(hdcu_stream stream, hdcu_result status, void *argument)
{
    called *of = argument;
    of->stream = stream;
    of->status = status;
}

static void callback(const check *self)
{
    hdcu_stream stream = new_stream(0);
    called of = {NULL, 77};
    STATUS(cuStreamAddCallback(stream, note, &of, (unsigned)self->number));
    STATUS(cuStreamSynchronize(stream));
    say("%d:%u", of.stream == stream, of.status);
}

#define WITHIN(text, which) {.name = "within: " text, .run = from_within, .number = which, .alone = true}

static const check checks[] = {
    {.name = "runs", .run = runs, .number = 0},
    {.name = "runs in a non-blocking stream", .run = runs, .number = 1},
    {.name = "runs in the legacy stream", .run = runs, .kind = 'n'},
    {.name = "misuse", .run = misuse},
    {.name = "in order", .run = in_order},
    {.name = "holds up its stream only", .run = holds_its_stream_only},
    {.name = "callback", .run = callback, .number = 0},
    {.name = "callback flags 1", .run = callback, .number = 1},
    WITHIN("cuMemAlloc", 0),
    WITHIN("cuCtxSynchronize", 1),
    WITHIN("cuCtxGetCurrent", 2),
    WITHIN("cuGetErrorName", 3),
    WITHIN("cuDeviceGetCount", 4),
    WITHIN("cuMemGetInfo", 5),
    WITHIN("cuDriverGetVersion", 6),
};

const area area_host = {"host", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
