/* SPDX-License-Identifier: MIT */
/* Waiting for and writing values in stream order. */
#include "areas.h"
#include "support.h"

static void write_32(const check *self)
{
    hdcu_stream stream = new_stream(0);
    hdcu_pointer p = new_bytes(8);
    set_word(p, 0);
    set_word(p + 4, 1);
    STATUS(cuStreamWriteValue32(stream, p, 0x12345678, (unsigned)self->number));
    STATUS(cuStreamSynchronize(stream));
    say_words(p, 2);
}

static void write_64(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    hdcu_pointer p = new_bytes(8);
    STATUS(cuStreamWriteValue64(stream, p, 0x123456789abcdef0, 0));
    STATUS(cuStreamSynchronize(stream));
    say_words(p, 2);
}

static void write_pinned(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    uint32_t *p = new_pinned(8);
    STATUS(cuStreamWriteValue32(stream, (uintptr_t)p, 5, 0));
    STATUS(cuStreamSynchronize(stream));
    say("%u", *(volatile uint32_t *)p);
}

/* The word holds inputs[0], the wait is for inputs[1]: does it pass? If not, inputs[2] must let it pass. */
static void wait_32(const check *self)
{
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING), other = new_stream(HDCU_STREAM_NON_BLOCKING);
    volatile uint32_t *word = new_pinned(8);
    const uint64_t *in = self->inputs[0];
    *word = (uint32_t)in[0];
    STATUS(cuStreamWaitValue32(stream, (uintptr_t)word, (uint32_t)in[1], (unsigned)self->number));
    if (self->kind == 'p') {
        STATUS(cuStreamSynchronize(stream));
        return;
    }
    STATUS(cuStreamQuery(stream));
    STATUS(cuStreamWriteValue32(other, (uintptr_t)word, (uint32_t)in[2], 0));
    STATUS(cuStreamSynchronize(stream));
}

static void wait_64(const check *self)
{
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING), other = new_stream(HDCU_STREAM_NON_BLOCKING);
    volatile uint64_t *word = new_pinned(8);
    const uint64_t *in = self->inputs[0];
    *word = in[0];
    STATUS(cuStreamWaitValue64(stream, (uintptr_t)word, in[1], (unsigned)self->number));
    STATUS(cuStreamQuery(stream));
    STATUS(cuStreamWriteValue64(other, (uintptr_t)word, in[2], 0));
    STATUS(cuStreamSynchronize(stream));
}

static void between_streams(const check *self)
{
    (void)self;
    hdcu_stream a = new_stream(HDCU_STREAM_NON_BLOCKING), b = new_stream(HDCU_STREAM_NON_BLOCKING);
    hdcu_pointer flag = new_bytes(4), p = new_bytes(8), q = p + 4;
    uint32_t value = 9;
    load_shared_kernels();
    set_word(flag, 0);
    STATUS(cuStreamWaitValue32(b, flag, 1, HDCU_STREAM_WAIT_VALUE_EQ));
    STATUS(LAUNCH(KERNEL("copy"), 1, 1, b, &p, &q));
    STATUS(LAUNCH(KERNEL("store"), 1, 1, a, &p, &value));
    STATUS(cuStreamWriteValue32(a, flag, 1, 0));
    STATUS(cuStreamSynchronize(b));
    say_words(p, 2);
}

static void misuse(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    hdcu_pointer p = new_bytes(64);
    STATUS(cuStreamWriteValue32(stream, p + 1, 1, 0));
    STATUS(cuStreamWriteValue32(stream, p + 2, 1, 0));
    STATUS(cuStreamWriteValue64(stream, p + 4, 1, 0));
    STATUS(cuStreamWaitValue32(stream, p + 1, 0, 0));
    STATUS(cuStreamWaitValue64(stream, p + 4, 0, 0));
    STATUS(cuStreamWriteValue32(stream, p, 1, 99));
    STATUS(cuStreamWaitValue32(stream, p, 0, 99));
    STATUS(cuStreamSynchronize(stream));
}

static void misuse_address(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    uint32_t word = 0;
    STATUS(cuStreamWriteValue32(stream, 0, 1, 0));
    STATUS(cuStreamWriteValue32(stream, (uintptr_t)&word, 1, 0));
    STATUS(cuStreamWaitValue32(stream, 0, 0, 0));
    STATUS(cuStreamWaitValue32(stream, 4096, 0, 0));
    STATUS(cuStreamSynchronize(stream));
}

static void flush(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    hdcu_pointer p = new_bytes(4);
    set_word(p, 1);
    STATUS(cuStreamWaitValue32(stream, p, 1, HDCU_STREAM_WAIT_VALUE_EQ | HDCU_STREAM_WAIT_VALUE_FLUSH));
    STATUS(cuStreamSynchronize(stream));
}

#define PASS(text, flag, ...)                                                                                          \
    {.name = "passes: " text, .run = wait_32, .kind = 'p', .number = flag, INPUTS(__VA_ARGS__)}
#define WAIT(text, flag, ...)                                                                                          \
    {.name = "waits: " text, .run = wait_32, .kind = 'w', .number = flag, INPUTS(__VA_ARGS__)}
#define WAIT64(text, flag, ...) {.name = "waits 64: " text, .run = wait_64, .number = flag, INPUTS(__VA_ARGS__)}

static const check checks[] = {
    {.name = "write 32", .run = write_32, .number = 0},
    {.name = "write 32 without barrier", .run = write_32, .number = 1},
    {.name = "write 64", .run = write_64},
    {.name = "write pinned", .run = write_pinned},
    PASS("5 at least 5", HDCU_STREAM_WAIT_VALUE_GEQ, {5, 5}),
    PASS("6 at least 5", HDCU_STREAM_WAIT_VALUE_GEQ, {6, 5}),
    PASS("3 at least -16, cyclic", HDCU_STREAM_WAIT_VALUE_GEQ, {3, 0xfffffff0}),
    PASS("7 equals 7", HDCU_STREAM_WAIT_VALUE_EQ, {7, 7}),
    PASS("6 and 2", HDCU_STREAM_WAIT_VALUE_AND, {6, 2}),
    PASS("5 nor 2", HDCU_STREAM_WAIT_VALUE_NOR, {5, 2}),
    WAIT("4 at least 5", HDCU_STREAM_WAIT_VALUE_GEQ, {4, 5, 5}),
    WAIT("-16 at least 3, cyclic", HDCU_STREAM_WAIT_VALUE_GEQ, {0xfffffff0, 3, 3}),
    WAIT("6 equals 7", HDCU_STREAM_WAIT_VALUE_EQ, {6, 7, 7}),
    WAIT("5 and 2", HDCU_STREAM_WAIT_VALUE_AND, {5, 2, 7}),
    WAIT("15 nor -16", HDCU_STREAM_WAIT_VALUE_NOR, {15, 0xfffffff0, 7}),
    WAIT64("at least", HDCU_STREAM_WAIT_VALUE_GEQ, {0x500000000, 0x600000000, 0x600000001}),
    WAIT64("equals", HDCU_STREAM_WAIT_VALUE_EQ, {5, 0x100000005, 0x100000005}),
    WAIT64("and", HDCU_STREAM_WAIT_VALUE_AND, {1, 0x100000000, 0x300000000}),
    {.name = "between streams", .run = between_streams},
    {.name = "misuse", .run = misuse},
    {.name = "misuse of addresses", .run = misuse_address, .alone = true},
    {.name = "flush", .run = flush},
};

const area area_value = {"value", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
