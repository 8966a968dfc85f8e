/* SPDX-License-Identifier: MIT */
/* Copies of every kind and fills. */
#include "areas.h"
#include "support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORDS 16

static const uint32_t pattern[WORDS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static void say_equal(const void *got)
{
    say("%s", memcmp(got, pattern, sizeof pattern) ? "differs" : "equal");
}

static void there_and_back(const check *self)
{
    (void)self;
    uint32_t back[WORDS] = {0};
    hdcu_pointer a = new_bytes(sizeof back), b = new_bytes(sizeof back);
    STATUS(cuMemcpyHtoD(a, pattern, sizeof back));
    STATUS(cuMemcpyDtoD(b, a, sizeof back));
    STATUS(cuMemcpyDtoH(back, b, sizeof back));
    say_equal(back);
}

static void unified(const check *self)
{
    (void)self;
    uint32_t back[WORDS] = {0}, other[WORDS] = {0};
    hdcu_pointer a = new_bytes(sizeof back), b = new_bytes(sizeof back);
    STATUS(cuMemcpy(a, (uintptr_t)pattern, sizeof back));
    STATUS(cuMemcpy(b, a, sizeof back));
    STATUS(cuMemcpy((uintptr_t)back, b, sizeof back));
    say_equal(back);
    STATUS(cuMemcpy((uintptr_t)other, (uintptr_t)back, sizeof back));
    say_equal(other);
}

static void async_pinned(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    uint32_t *from = new_pinned(sizeof pattern), *back = new_pinned(sizeof pattern);
    hdcu_pointer a = new_bytes(sizeof pattern), b = new_bytes(sizeof pattern);
    memcpy(from, pattern, sizeof pattern);
    STATUS(cuMemcpyHtoDAsync(a, from, sizeof pattern, stream));
    STATUS(cuMemcpyDtoDAsync(b, a, sizeof pattern, stream));
    STATUS(cuMemcpyDtoHAsync(back, b, sizeof pattern, stream));
    STATUS(cuStreamSynchronize(stream));
    say_equal(back);
}

static void async_unified(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    uint32_t *from = new_pinned(sizeof pattern), *back = new_pinned(sizeof pattern);
    hdcu_pointer a = new_bytes(sizeof pattern);
    memcpy(from, pattern, sizeof pattern);
    STATUS(cuMemcpyAsync(a, (uintptr_t)from, sizeof pattern, stream));
    STATUS(cuMemcpyAsync((uintptr_t)back, a, sizeof pattern, stream));
    STATUS(cuStreamSynchronize(stream));
    say_equal(back);
}

static void pinned_source_is_read_late(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    uint32_t *from = new_pinned(4);
    hdcu_pointer a = new_bytes(4);
    from[0] = 1;
    hold *held = hold_up(stream);
    STATUS(cuMemcpyHtoDAsync(a, from, 4, stream));
    from[0] = 2;
    release(held);
    STATUS(cuStreamSynchronize(stream));
    say("%u", word_at(a));
}

/* "The copy may return before the DMA, but after the bytes are staged." */
static void pageable_source_is_staged(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    uint32_t *from = malloc(4096);
    hdcu_pointer a = new_bytes(4096);
    from[0] = 1;
    hold *held = hold_up(stream);
    STATUS(cuMemcpyHtoDAsync(a, from, 4096, stream));
    from[0] = 2;
    STATUS(cuStreamQuery(stream));
    release(held);
    STATUS(cuStreamSynchronize(stream));
    say("%u", word_at(a));
    free(from);
}

static void *release_later(void *argument)
{
    struct timespec pause = {0, 50 * 1000 * 1000};
    nanosleep(&pause, NULL);
    release(argument);
    return NULL;
}

/* From host memory to host memory the call is synchronous, and yet the stream's turn. */
static void async_host_to_host(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    uint32_t *from = new_pinned(sizeof pattern), *back = new_pinned(sizeof pattern);
    memcpy(from, pattern, sizeof pattern);
    hold *held = hold_up(stream);
    pthread_t thread;
    if (pthread_create(&thread, NULL, release_later, held))
        give_up("no thread");
    STATUS(cuMemcpyAsync((uintptr_t)back, (uintptr_t)from, sizeof pattern, stream));
    say_equal(back);
    pthread_join(thread, NULL);
    STATUS(cuStreamSynchronize(stream));
}

/* To pageable memory the call returns when the bytes are there, whatever it is called. */
static void pageable_destination_blocks(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    hdcu_pointer a = new_bytes(4);
    uint32_t *back = malloc(4);
    set_word(a, 7);
    *back = 0;
    hold *held = hold_up(stream);
    pthread_t thread;
    if (pthread_create(&thread, NULL, release_later, held))
        give_up("no thread");
    hdcu_result status = cu.cuMemcpyDtoHAsync(back, a, 4, stream);
    say("%u:%u", status, *(volatile uint32_t *)back);
    pthread_join(thread, NULL);
    STATUS(cuStreamSynchronize(stream));
    free(back);
}

static void zero_bytes(const check *self)
{
    (void)self;
    uint32_t word = 5;
    hdcu_pointer a = new_bytes(16);
    STATUS(cuMemcpyHtoD(a, &word, 0));
    STATUS(cuMemcpyDtoH(&word, a, 0));
    STATUS(cuMemcpyDtoD(a, a, 0));
    say("%u", word);
}

static void zero_bytes_of_null(const check *self)
{
    (void)self;
    STATUS(cuMemcpyHtoD(0, NULL, 0));
    STATUS(cuMemcpyDtoH(NULL, 0, 0));
    STATUS(cuMemcpyDtoD(0, 0, 0));
    STATUS(cuMemcpy(0, 0, 0));
    STATUS(cuMemsetD8(0, 0, 0));
}

static void null_addresses(const check *self)
{
    (void)self;
    uint32_t word = 5;
    hdcu_pointer a = new_bytes(16);
    STATUS(cuMemcpyHtoD(0, &word, 4));
    STATUS(cuMemcpyHtoD(a, NULL, 4));
    STATUS(cuMemcpyDtoH(NULL, a, 4));
    STATUS(cuMemcpyDtoH(&word, 0, 4));
    STATUS(cuMemcpyDtoD(0, a, 4));
    STATUS(cuMemcpyDtoD(a, 0, 4));
    STATUS(cuMemcpy(0, a, 4));
    STATUS(cuMemsetD8(0, 1, 4));
    STATUS(cuCtxSynchronize());
}

static void wild_addresses(const check *self)
{
    (void)self;
    uint32_t word = 5;
    hdcu_pointer a = new_bytes(16);
    STATUS(cuMemcpyHtoD(16, &word, 4));
    STATUS(cuMemcpyDtoH(&word, 16, 4));
    STATUS(cuMemcpyDtoD(a, 16, 4));
    STATUS(cuMemsetD32(16, 1, 1));
    STATUS(cuCtxSynchronize());
}

static void wild_addresses_async(const check *self)
{
    (void)self;
    uint32_t *word = new_pinned(4);
    hdcu_stream stream = new_stream(0);
    hdcu_pointer a = new_bytes(16);
    STATUS(cuMemcpyHtoDAsync(16, word, 4, stream));
    STATUS(cuMemcpyDtoHAsync(word, 16, 4, stream));
    STATUS(cuMemcpyDtoDAsync(a, 16, 4, stream));
    STATUS(cuMemsetD32Async(16, 1, 1, stream));
    STATUS(cuStreamSynchronize(stream));
}

static void far_too_long(const check *self)
{
    (void)self;
    uint32_t word = 5;
    hdcu_pointer a = new_bytes(4 << 20), b = new_bytes(4 << 20);
    STATUS(cuMemcpyDtoD(a, b, (size_t)1 << 46));
    STATUS(cuMemcpyHtoD(a, &word, (size_t)1 << 46));
    STATUS(cuMemcpyDtoH(&word, a, (size_t)1 << 46));
    STATUS(cuMemsetD8(a, 1, (size_t)1 << 46));
    STATUS(cuCtxSynchronize());
}

static void freed(const check *self)
{
    (void)self;
    uint32_t word = 5;
    hdcu_pointer p = 0;
    NEED(cuMemAlloc(&p, 8 << 20));
    NEED(cuMemFree(p));
    STATUS(cuMemcpyHtoD(p, &word, 4));
    STATUS(cuMemcpyDtoH(&word, p, 4));
    STATUS(cuMemsetD8(p, 1, 4));
    STATUS(cuCtxSynchronize());
}

static void odd_bytes(const check *self)
{
    (void)self;
    unsigned char bytes[64], back[64];
    hdcu_pointer a = new_bytes(64);
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    NEED(cuMemsetD8(a, 0xee, 64));
    STATUS(cuMemcpyHtoD(a + 3, bytes + 1, 13));
    STATUS(cuMemcpyDtoD(a + 33, a + 5, 7));
    STATUS(cuMemcpyDtoH(back, a, 64));
    for (unsigned i = 0; i < 48; i++)
        say("%x", back[i]);
}

static void peer_to_self(const check *self)
{
    (void)self;
    uint32_t back[WORDS] = {0};
    hdcu_stream stream = new_stream(0);
    hdcu_pointer a = new_bytes(sizeof back), b = new_bytes(sizeof back);
    NEED(cuMemcpyHtoD(a, pattern, sizeof back));
    STATUS(cuMemcpyPeer(b, own_context, a, own_context, sizeof back));
    STATUS(cuMemcpyDtoH(back, b, sizeof back));
    say_equal(back);
    STATUS(cuMemcpyPeerAsync(b, own_context, a, own_context, sizeof back, stream));
    STATUS(cuStreamSynchronize(stream));
    STATUS(cuMemcpyPeer(b, NULL, a, own_context, sizeof back));
}

/* ---- rectangles ---- */

static hdcu_memcpy2d rectangle(hdcu_pointer to, const void *from)
{
    return (hdcu_memcpy2d){.source_type = HDCU_MEMORYTYPE_HOST, .source_host = from, .source_pitch = 16,
                           .destination_type = HDCU_MEMORYTYPE_DEVICE, .destination_device = to,
                           .destination_pitch = 32, .width_bytes = 8, .height = 3};
}

static void copy_2d(const check *self)
{
    (void)self;
    hdcu_pointer a = new_bytes(256);
    NEED(cuMemsetD8(a, 0, 256));
    hdcu_memcpy2d of = rectangle(a, pattern);
    of.source_x_bytes = 4;
    of.source_y = 1;
    of.destination_x_bytes = 8;
    of.destination_y = 1;
    STATUS(cuMemcpy2D(&of));
    say_words(a, 32);
}

static void copy_2d_async(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    hdcu_pointer a = new_bytes(256);
    NEED(cuMemsetD8(a, 0, 256));
    hdcu_memcpy2d of = rectangle(a, pattern);
    STATUS(cuMemcpy2DAsync(&of, stream));
    STATUS(cuStreamSynchronize(stream));
    say_words(a, 20);
}

static void copy_2d_unified(const check *self)
{
    (void)self;
    hdcu_pointer a = new_bytes(256);
    NEED(cuMemsetD8(a, 0, 256));
    hdcu_memcpy2d of = rectangle(0, NULL);
    of.source_type = of.destination_type = HDCU_MEMORYTYPE_UNIFIED;
    of.source_device = (uintptr_t)pattern;
    of.destination_device = a;
    STATUS(cuMemcpy2D(&of));
    say_words(a, 20);
}

/* Misuse number n, of a rectangle that would be well. */
static void copy_2d_misuse(const check *self)
{
    hdcu_pointer a = new_bytes(256);
    hdcu_memcpy2d of = rectangle(a, pattern);
    switch (self->number) {
    case 0: of.source_pitch = 4; break;
    case 1: of.destination_pitch = 4; break;
    case 2: of.width_bytes = 0; break;
    case 3: of.height = 0; break;
    case 4: of.source_type = 0; break;
    case 5: of.source_type = 9; break;
    case 6: of.destination_type = HDCU_MEMORYTYPE_ARRAY; break;
    case 7: of.destination_device = 0; break;
    case 8: of.source_host = NULL; break;
    case 9: of.source_pitch = of.destination_pitch = 0; break;
    case 10: of.source_pitch = of.destination_pitch = 0; of.height = 1; break;
    case 11: of.destination_pitch = (size_t)1 << 33; break;
    default: break;
    }
    STATUS(cuMemcpy2D(self->number == 12 ? NULL : &of));
    STATUS(cuCtxSynchronize());
}

static void copy_3d(const check *self)
{
    (void)self;
    hdcu_pointer a = new_bytes(512);
    NEED(cuMemsetD8(a, 0, 512));
    hdcu_memcpy3d of = {.source_type = HDCU_MEMORYTYPE_HOST, .source_host = pattern, .source_pitch = 8,
                        .source_height = 4, .source_z = 0, .destination_type = HDCU_MEMORYTYPE_DEVICE,
                        .destination_device = a, .destination_pitch = 16, .destination_height = 3,
                        .destination_z = 1, .width_bytes = 4, .height = 2, .depth = 2};
    STATUS(cuMemcpy3D(&of));
    say_words(a, 40);
    of.source_height = 1;
    STATUS(cuMemcpy3D(&of));
    of.source_height = 4;
    of.source_pitch = 2;
    STATUS(cuMemcpy3D(&of));
    of.source_pitch = 8;
    of.depth = 0;
    STATUS(cuMemcpy3D(&of));
}

/* ---- fills ---- */

static void fill(const check *self)
{
    (void)self;
    hdcu_pointer a = new_bytes(64);
    STATUS(cuMemsetD8(a, 0x11, 64));
    STATUS(cuMemsetD8(a + 1, 0x22, 3));
    STATUS(cuMemsetD16(a + 6, 0x3344, 5));
    STATUS(cuMemsetD32(a + 20, 0x55667788, 2));
    STATUS(cuCtxSynchronize());
    say_words(a, 10);
}

static void fill_async(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    hdcu_pointer a = new_bytes(64);
    STATUS(cuMemsetD8Async(a, 0x11, 64, stream));
    STATUS(cuMemsetD16Async(a + 6, 0x3344, 5, stream));
    STATUS(cuMemsetD32Async(a + 20, 0x55667788, 2, stream));
    STATUS(cuStreamSynchronize(stream));
    say_words(a, 10);
}

static void fill_misaligned(const check *self)
{
    (void)self;
    hdcu_pointer a = new_bytes(64);
    STATUS(cuMemsetD16(a + 1, 1, 1));
    STATUS(cuMemsetD32(a + 1, 1, 1));
    STATUS(cuMemsetD32(a + 2, 1, 1));
    STATUS(cuMemsetD32Async(a + 2, 1, 1, NULL));
    STATUS(cuMemsetD32(a + 2, 1, 0));
    STATUS(cuCtxSynchronize());
}

static void fill_2d(const check *self)
{
    (void)self;
    hdcu_pointer a = new_bytes(128);
    NEED(cuMemsetD8(a, 0, 128));
    STATUS(cuMemsetD2D8Async(a + 1, 16, 0xab, 3, 2, NULL));
    STATUS(cuMemsetD2D32Async(a + 64, 16, 0x12345678, 2, 3, NULL));
    STATUS(cuCtxSynchronize());
    say_words(a, 32);
}

static void fill_2d_misuse(const check *self)
{
    (void)self;
    hdcu_pointer a = new_bytes(128);
    STATUS(cuMemsetD2D8Async(a, 2, 0xab, 3, 2, NULL));
    STATUS(cuMemsetD2D32Async(a, 10, 1, 2, 3, NULL));
    STATUS(cuMemsetD2D32Async(a + 2, 16, 1, 2, 3, NULL));
    STATUS(cuMemsetD2D8Async(a, 16, 1, 0, 2, NULL));
    STATUS(cuMemsetD2D8Async(a, 16, 1, 2, 0, NULL));
    STATUS(cuMemsetD2D8Async(a, 0, 1, 2, 1, NULL));
    STATUS(cuCtxSynchronize());
}

static void fill_pinned(const check *self)
{
    (void)self;
    uint32_t *p = new_pinned(64);
    STATUS(cuMemsetD32((uintptr_t)p, 9, 2));
    STATUS(cuCtxSynchronize());
    say("%u:%u:%u", p[0], p[1], p[2]);
}

#define MISUSE(text, n) {.name = "2d " text, .run = copy_2d_misuse, .number = n}

static const check checks[] = {
    {.name = "there and back", .run = there_and_back},
    {.name = "unified", .run = unified},
    {.name = "async pinned", .run = async_pinned},
    {.name = "async unified", .run = async_unified},
    {.name = "async host to host", .run = async_host_to_host},
    {.name = "pinned source is read late", .run = pinned_source_is_read_late},
    {.name = "pageable source is staged", .run = pageable_source_is_staged},
    {.name = "pageable destination blocks", .run = pageable_destination_blocks},
    {.name = "0 bytes", .run = zero_bytes},
    {.name = "0 bytes of null", .run = zero_bytes_of_null},
    {.name = "null addresses", .run = null_addresses, .alone = true},
    {.name = "wild addresses", .run = wild_addresses, .alone = true},
    {.name = "wild addresses async", .run = wild_addresses_async, .alone = true},
    {.name = "far too long", .run = far_too_long, .alone = true},
    {.name = "freed", .run = freed, .alone = true},
    {.name = "odd bytes", .run = odd_bytes},
    {.name = "peer to self", .run = peer_to_self},
    {.name = "2d", .run = copy_2d},
    {.name = "2d async", .run = copy_2d_async},
    {.name = "2d unified", .run = copy_2d_unified},
    MISUSE("source pitch below width", 0),
    MISUSE("destination pitch below width", 1),
    MISUSE("width 0", 2),
    MISUSE("height 0", 3),
    MISUSE("type 0", 4),
    MISUSE("type 9", 5),
    MISUSE("no array", 6),
    MISUSE("no device address", 7),
    MISUSE("no host address", 8),
    MISUSE("pitch 0", 9),
    MISUSE("pitch 0 of one row", 10),
    MISUSE("pitch beyond the limit", 11),
    MISUSE("null", 12),
    {.name = "3d", .run = copy_3d},
    {.name = "fill", .run = fill},
    {.name = "fill async", .run = fill_async},
    {.name = "fill misaligned", .run = fill_misaligned},
    {.name = "fill 2d", .run = fill_2d},
    {.name = "fill 2d misuse", .run = fill_2d_misuse},
    {.name = "fill pinned", .run = fill_pinned},
};

const area area_copy = {"copy", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
