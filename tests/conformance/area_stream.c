/* SPDX-License-Identifier: MIT */
/* Streams: flags and priorities, queries, the legacy stream's rule, destruction with work pending. */
#include "areas.h"
#include "support.h"

#include <pthread.h>
#include <time.h>

static void create(const check *self)
{
    hdcu_stream stream = NULL;
    unsigned flags = 77;
    hdcu_result status = cu.cuStreamCreate(&stream, (unsigned)self->number);
    say("%u", status);
    if (status)
        return;
    STATUS(cuStreamGetFlags(stream, &flags));
    say("%u", flags);
    STATUS(cuStreamDestroy(stream));
}

static void priority(const check *self)
{
    hdcu_stream stream = NULL;
    int value = 77;
    STATUS(cuStreamCreateWithPriority(&stream, HDCU_STREAM_NON_BLOCKING, (int)self->number));
    STATUS(cuStreamGetPriority(stream, &value));
    say("%d", value);
    STATUS(cuStreamDestroy(stream));
}

static void misuse(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    STATUS(cuStreamCreate(NULL, 0));
    STATUS(cuStreamCreateWithPriority(NULL, 0, 0));
    STATUS(cuStreamCreateWithPriority(&stream, 99, 0));
    STATUS(cuStreamGetFlags(stream, NULL));
    STATUS(cuStreamGetPriority(stream, NULL));
    STATUS(cuStreamGetCtx(stream, NULL));
}

static void properties(const check *self)
{
    hdcu_stream stream = self->kind == 'l' ? HDCU_STREAM_LEGACY : self->kind == 'p' ? HDCU_STREAM_PER_THREAD
                         : self->kind == 'n' ? NULL : new_stream(0);
    unsigned flags = 77;
    int value = 77;
    hdcu_context context = NULL;
    hdcu_device device = -5;
    STATUS(cuStreamGetFlags(stream, &flags));
    say("%u", flags);
    STATUS(cuStreamGetPriority(stream, &value));
    say("%d", value);
    STATUS(cuStreamGetCtx(stream, &context));
    say("%d", context == own_context);
    STATUS(cuStreamGetDevice(stream, &device));
    say("%d", device);
    STATUS(cuStreamQuery(stream));
    STATUS(cuStreamSynchronize(stream));
}

static void ids(const check *self)
{
    (void)self;
    hdcu_stream a = new_stream(0), b = new_stream(0);
    unsigned long long first = 0, again = 0, second = 0, legacy = 0, null = 0;
    STATUS(cuStreamGetId(a, &first));
    STATUS(cuStreamGetId(a, &again));
    STATUS(cuStreamGetId(b, &second));
    STATUS(cuStreamGetId(HDCU_STREAM_LEGACY, &legacy));
    STATUS(cuStreamGetId(NULL, &null));
    say("%d:%d:%d", first == again, first == second, legacy == null);
}

static void destroy_standing(const check *self)
{
    (void)self;
    STATUS(cuStreamDestroy(NULL));
    STATUS(cuStreamDestroy(HDCU_STREAM_LEGACY));
    STATUS(cuStreamDestroy(HDCU_STREAM_PER_THREAD));
}

static void query(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    STATUS(cuStreamQuery(stream));
    hold *held = hold_up(stream);
    STATUS(cuStreamQuery(stream));
    release(held);
    STATUS(cuStreamSynchronize(stream));
    STATUS(cuStreamQuery(stream));
}

static void kernel_pending(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    volatile uint32_t *flag = new_pinned(4);
    hdcu_pointer address = (uintptr_t)flag;
    STATUS(LAUNCH(KERNEL("spin"), 1, 1, stream, &address));
    STATUS(cuStreamQuery(stream));
    *flag = 1;
    STATUS(cuStreamSynchronize(stream));
    STATUS(cuStreamQuery(stream));
}

static void destroy_pending(const check *self)
{
    (void)self;
    hdcu_stream stream = NULL;
    hdcu_pointer p = new_bytes(4);
    set_word(p, 1);
    NEED(cuStreamCreate(&stream, HDCU_STREAM_NON_BLOCKING));
    hold *held = hold_up(stream);
    STATUS(cuMemsetD32Async(p, 2, 1, stream));
    STATUS(cuStreamDestroy(stream));
    release(held);
    STATUS(cuCtxSynchronize());
    say("%u", word_at(p));
}

static void context_synchronize(const check *self)
{
    (void)self;
    hdcu_stream a = new_stream(HDCU_STREAM_NON_BLOCKING), b = new_stream(0);
    hdcu_pointer p = new_bytes(8);
    STATUS(cuMemsetD32Async(p, 3, 1, a));
    STATUS(cuMemsetD32Async(p + 4, 4, 1, b));
    STATUS(cuCtxSynchronize());
    STATUS(cuStreamQuery(a));
    STATUS(cuStreamQuery(b));
    say_words(p, 2);
}

static void order(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    hdcu_pointer p = new_bytes(8), q = p + 4;
    uint32_t nine = 9;
    STATUS(cuMemsetD32Async(p, 1, 2, stream));
    STATUS(LAUNCH(KERNEL("store"), 1, 1, stream, &p, &nine));
    STATUS(LAUNCH(KERNEL("copy"), 1, 1, stream, &p, &q));
    STATUS(cuMemsetD32Async(p, 5, 1, stream));
    STATUS(cuStreamSynchronize(stream));
    say_words(p, 2);
}

/* ---- the legacy stream's rule: b is looked at while a is held up ---- */

static hdcu_stream stream_of(char kind)
{
    switch (kind) {
    case 'b': return new_stream(HDCU_STREAM_DEFAULT);
    case 'n': return new_stream(HDCU_STREAM_NON_BLOCKING);
    case 'p': return HDCU_STREAM_PER_THREAD;
    case 'L': return HDCU_STREAM_LEGACY;
    default: return NULL;
    }
}

static void rule(const check *self)
{
    hdcu_pointer p = new_bytes(4);
    set_word(p, 1);
    hdcu_stream first = stream_of(self->text[0]), second = stream_of(self->text[1]);
    hold *held = hold_up(first);
    STATUS(cuMemsetD32Async(p, 2, 1, second));
    if (self->kind == 'w') {
        STATUS(cuStreamQuery(second));
        release(held);
        STATUS(cuStreamSynchronize(second));
    } else {
        STATUS(cuStreamSynchronize(second));
        STATUS(cuStreamQuery(first));
        release(held);
    }
    STATUS(cuStreamSynchronize(first));
    say("%u", word_at(p));
}

/* What came before in the legacy stream is between what came before and after it in others. */
static void rule_chain(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(12), q = p + 4, r = p + 8;
    hdcu_stream a = new_stream(0), b = new_stream(0);
    NEED(cuMemsetD32(p, 1, 3));
    NEED(cuCtxSynchronize());
    hold *held = hold_up(a);
    STATUS(cuMemsetD32Async(p, 2, 1, a));
    STATUS(LAUNCH(KERNEL("copy"), 1, 1, NULL, &p, &q));
    STATUS(LAUNCH(KERNEL("copy"), 1, 1, b, &q, &r));
    STATUS(cuStreamQuery(b));
    release(held);
    STATUS(cuStreamSynchronize(b));
    say_words(p, 3);
}

static void query_per_thread(void *argument)
{
    hdcu_result *out = argument;
    out[0] = cu.cuCtxSetCurrent(own_context);
    out[1] = cu.cuStreamQuery(HDCU_STREAM_PER_THREAD);
}

static void per_thread_is_per_thread(const check *self)
{
    (void)self;
    hdcu_result got[2] = {77, 77};
    hold *held = hold_up(HDCU_STREAM_PER_THREAD);
    in_thread(query_per_thread, got);
    say("%u:%u", got[0], got[1]);
    STATUS(cuStreamQuery(HDCU_STREAM_PER_THREAD));
    release(held);
    STATUS(cuStreamSynchronize(HDCU_STREAM_PER_THREAD));
}

/* ---- depth ---- */

typedef struct flood {
    hdcu_function kernel;
    hdcu_stream stream;
    int wanted;
    volatile int done;
    volatile hdcu_result worst;
} flood;

static void *pour(void *argument)
{
    flood *of = argument;
    of->worst = cu.cuCtxSetCurrent(own_context);
    for (int i = 0; i < of->wanted; i++) {
        hdcu_result status = cu.cuLaunchKernel(of->kernel, 1, 1, 1, 1, 1, 1, 0, of->stream, NULL, NULL);
        if (status)
            of->worst = status;
        __atomic_store_n(&of->done, i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* A stream that makes no progress takes so many launches and blocks the next. */
static void depth(const check *self)
{
    flood of = {.kernel = KERNEL("nothing"), .stream = new_stream(HDCU_STREAM_NON_BLOCKING),
                .wanted = (int)self->number};
    hold *held = hold_up(of.stream);
    pthread_t thread;
    if (pthread_create(&thread, NULL, pour, &of))
        give_up("no thread");
    struct timespec pause = {0, 10 * 1000 * 1000};
    int done = 0;
    for (int idle = 0; idle < 60 && done < of.wanted; idle++) {
        nanosleep(&pause, NULL);
        int before = done;
        done = __atomic_load_n(&of.done, __ATOMIC_ACQUIRE);
        if (done > before)
            idle = 0;
    }
    say("%s", done == of.wanted ? "passes" : "blocks");
    release(held);
    pthread_join(thread, NULL);
    say("%u", of.worst);
    STATUS(cuStreamSynchronize(of.stream));
}

#define WAITS(text_, pair) {.name = "legacy rule: " text_, .run = rule, .kind = 'w', .text = pair}
#define PASSES(text_, pair) {.name = "legacy rule: " text_, .run = rule, .kind = 'p', .text = pair}

static const check checks[] = {
    {.name = "create flags 0", .run = create, .number = 0},
    {.name = "create non-blocking", .run = create, .number = 1},
    {.name = "create flags 2", .run = create, .number = 2},
    {.name = "priority 0", .run = priority, .number = 0},
    {.name = "priority -3", .run = priority, .number = -3},
    {.name = "priority clamped below", .run = priority, .number = -100},
    {.name = "priority clamped above", .run = priority, .number = 100},
    {.name = "misuse", .run = misuse},
    {.name = "properties of a new stream", .run = properties, .kind = 's'},
    {.name = "properties of null", .run = properties, .kind = 'n'},
    {.name = "properties of legacy", .run = properties, .kind = 'l'},
    {.name = "properties of per-thread", .run = properties, .kind = 'p'},
    {.name = "ids", .run = ids},
    {.name = "destroy standing streams", .run = destroy_standing},
    {.name = "query", .run = query},
    {.name = "kernel pending", .run = kernel_pending},
    {.name = "destroy with work pending", .run = destroy_pending},
    {.name = "context synchronize", .run = context_synchronize},
    {.name = "order", .run = order},
    WAITS("legacy waits for blocking", "b0"),
    WAITS("blocking waits for legacy", "0b"),
    WAITS("legacy waits for per-thread", "p0"),
    WAITS("per-thread waits for legacy", "0p"),
    WAITS("handle 1 is the legacy stream", "L0"),
    WAITS("handle 1 waits for blocking", "bL"),
    PASSES("legacy passes non-blocking", "n0"),
    PASSES("non-blocking passes legacy", "0n"),
    PASSES("blocking passes blocking", "bb"),
    PASSES("non-blocking passes blocking", "bn"),
    PASSES("per-thread passes non-blocking", "np"),
    {.name = "legacy rule: chain", .run = rule_chain},
    {.name = "per-thread is per thread", .run = per_thread_is_per_thread},
    {.name = "depth 900", .run = depth, .number = 900},
    {.name = "depth 1200", .run = depth, .number = 1200},
};

const area area_stream = {"stream", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
