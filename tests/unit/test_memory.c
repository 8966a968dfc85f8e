/* SPDX-License-Identifier: MIT */
/* Device and pinned memory, copies, writes, fills and regions: effects, checks and life times. */
#include "device_fixture.h"

static hdrt_queue *queue;

static void setup(void)
{
    setup_device();
    queue = make_queue("memory");
}

static void teardown(void)
{
    hdrt_queue_destroy(queue);
    teardown_device();
}

static hdrt_ptr allocate(uint64_t bytes)
{
    hdrt_ptr memory;
    CK_OK(hdrt_alloc(queue, bytes, &memory));
    ck_assert_uint_ne(memory, 0);
    ck_assert_uint_eq(memory % 256, 0);
    return memory;
}

static void *pinned(uint64_t bytes)
{
    void *memory;
    CK_OK(hdrt_host_alloc(dev, bytes, &memory));
    ck_assert_uint_eq((uintptr_t)memory % 4096, 0);
    return memory;
}

static void pattern(unsigned char *bytes, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (unsigned char)(i * 31 + (i >> 8) + seed);
    }
}

/* ---- device memory ----------------------------------------------------------------------------------------------- */

START_TEST(allocations_are_checked)
{
    hdrt_ptr memory = 5;
    CK_STATUS(hdrt_alloc(queue, 0, &memory), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_uint_eq(memory, 0);
    CK_STATUS(hdrt_alloc(queue, 1, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_alloc(NULL, 1, &memory), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_alloc(queue, (uint64_t)1 << 50, &memory), HDRT_ERROR_OUT_OF_DEVICE_MEMORY);
    CK_MESSAGE("1125899906842624");
    CK_MESSAGE("free");
    ck_assert_uint_eq(memory, 0);
    CK_OK(hdrt_queue_error(queue)); /* no memory fails no queue */
    CK_OK(hdrt_free(queue, 0));
    CK_STATUS(hdrt_free(NULL, 0), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_free(queue, 0x1234500), HDRT_ERROR_INVALID_ARGUMENT);
    memory = allocate(1000);
    CK_STATUS(hdrt_free(queue, memory + 256), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_free(queue, memory));
    CK_STATUS(hdrt_free(queue, memory), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("freed before");
    CK_OK(hdrt_queue_synchronize(queue));
}
END_TEST

START_TEST(freed_memory_is_refused_at_once)
{
    static gate g = GATE_INIT;
    char bytes[64];
    hdrt_ptr memory = allocate(64), kept = allocate(64);
    gate_hold(&g, queue); /* the free is enqueued, but not done */
    CK_OK(hdrt_free(queue, memory));
    CK_STATUS(hdrt_fill(queue, memory, "x", 1, 64), HDRT_ERROR_INVALID_ARGUMENT);
    /* NVIDIA's driver may know the address no more. */
    const char *words = hdrt_last_error();
    ck_assert_msg(strstr(words, "hdrt_free was called") || strstr(words, "freed already"), "%s", words);
    CK_STATUS(hdrt_copy_dtod(queue, kept, memory, 64), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_write(queue, memory, bytes, sizeof bytes), HDRT_ERROR_INVALID_ARGUMENT);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(queue));
    CK_STATUS(hdrt_fill(queue, memory, "x", 1, 64), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_fill(queue, kept, "x", 1, 64));
    CK_OK(hdrt_queue_synchronize(queue));
    CK_OK(hdrt_free(queue, kept));
}
END_TEST

START_TEST(memory_of_another_device_object_is_refused)
{
    hdrt_device *second;
    hdrt_queue *other;
    CK_OK(hdrt_device_open(rt, 0, NULL, &second));
    CK_OK(hdrt_queue_create(second, NULL, &other));
    hdrt_ptr memory = allocate(64);
    CK_STATUS(hdrt_free(other, memory), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_queue_synchronize(queue));
    CK_OK(hdrt_fill(other, memory, "x", 1, 64)); /* using it is fine: the same context */
    CK_OK(hdrt_queue_synchronize(other));
    CK_OK(hdrt_free(queue, memory));
    hdrt_queue_destroy(other);
    hdrt_device_close(second);
}
END_TEST

START_TEST(freed_memory_is_not_reused_too_early)
{
    enum { ROUNDS = 50, BYTES = 4096 };
    unsigned char *host = pinned(BYTES * ROUNDS);
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char value = (unsigned char)(i + 1);
        hdrt_ptr memory = allocate(BYTES);
        CK_OK(hdrt_fill(queue, memory, &value, 1, BYTES));
        CK_OK(hdrt_copy_dtoh(queue, host + (size_t)i * BYTES, memory, BYTES));
        CK_OK(hdrt_free(queue, memory));
    }
    CK_OK(hdrt_queue_synchronize(queue));
    for (size_t i = 0; i < ROUNDS * BYTES; i++) {
        ck_assert_uint_eq(host[i], i / BYTES + 1);
    }
    CK_OK(hdrt_host_free(dev, host));
}
END_TEST

/* ---- pinned memory ----------------------------------------------------------------------------------------------- */

START_TEST(pinned_memory_is_checked)
{
    void *memory = &memory;
    CK_STATUS(hdrt_host_alloc(dev, 0, &memory), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_null(memory);
    CK_STATUS(hdrt_host_alloc(dev, 1, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_host_alloc(NULL, 1, &memory), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_host_alloc(dev, (uint64_t)1 << 46, &memory), HDRT_ERROR_OUT_OF_MEMORY);
    CK_OK(hdrt_host_free(dev, NULL));
    CK_STATUS(hdrt_host_free(NULL, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_host_free(dev, &memory), HDRT_ERROR_INVALID_ARGUMENT);
    char *bytes = pinned(5000);
    memset(bytes, 1, 5000);
    CK_STATUS(hdrt_host_free(dev, bytes + 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_host_unregister(dev, bytes), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_host_free(dev, bytes));
    CK_STATUS(hdrt_host_free(dev, bytes), HDRT_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(pinned_memory_lives_as_long_as_it_is_used)
{
    static gate g = GATE_INIT;
    enum { BYTES = 1 << 16 };
    unsigned char *from = pinned(BYTES), *back = malloc(BYTES), *expected = malloc(BYTES);
    hdrt_ptr memory = allocate(BYTES);
    pattern(from, BYTES, 3);
    pattern(expected, BYTES, 3);
    gate_hold(&g, queue);
    CK_OK(hdrt_copy_htod(queue, memory, from, BYTES));
    CK_OK(hdrt_host_free(dev, from)); /* does not wait: the queue is held */
    void *fresh = pinned(BYTES);      /* and is not the same memory */
    ck_assert_ptr_ne(fresh, from);
    memset(fresh, 0xee, BYTES);
    gate_open(&g);
    CK_OK(hdrt_copy_dtoh(queue, back, memory, BYTES));
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_mem_eq(back, expected, BYTES);
    CK_OK(hdrt_host_free(dev, fresh));
    CK_OK(hdrt_free(queue, memory));
    free(expected);
    free(back);
}
END_TEST

static void *open_later(void *argument)
{
    usleep(30000);
    gate_open(argument);
    return NULL;
}

START_TEST(unregistering_waits_for_copies)
{
    static gate g = GATE_INIT;
    enum { BYTES = 64 << 10 };
    unsigned char *own = aligned_alloc(4096, BYTES), *back = malloc(BYTES);
    hdrt_ptr memory = allocate(BYTES);
    pattern(own, BYTES, 9);
    memcpy(back, own, BYTES);
    CK_OK(hdrt_host_register(dev, own, BYTES));
    CK_STATUS(hdrt_host_register(dev, own, BYTES), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_host_register(dev, NULL, BYTES), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_host_register(dev, own, 0), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_host_free(dev, own), HDRT_ERROR_INVALID_ARGUMENT);
    gate_hold(&g, queue);
    CK_OK(hdrt_copy_htod(queue, memory, own, BYTES));
    hdrt_event copied = hdrt_queue_record(queue);
    CK_STATUS(hdrt_event_query(rt, copied), HDRT_NOT_READY);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, open_later, &g), 0);
    CK_OK(hdrt_host_unregister(dev, own));
    CK_OK(hdrt_event_query(rt, copied)); /* it has waited for the copy */
    memset(own, 0, BYTES);
    pthread_join(thread, NULL);
    CK_OK(hdrt_copy_dtoh(queue, own, memory, BYTES));
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_mem_eq(own, back, BYTES);
    CK_STATUS(hdrt_host_unregister(dev, own), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_free(queue, memory));
    free(back);
    free(own);
}
END_TEST

/* ---- copies ------------------------------------------------------------------------------------------------------ */

START_TEST(copies_of_all_kinds_and_sizes)
{
    static const size_t sizes[] = {1, 3, 255, 4096, 65536, 65537, 1 << 20};
    enum { MOST = 1 << 20 };
    unsigned char *from = malloc(MOST), *to = malloc(MOST), *pin = pinned(MOST);
    hdrt_ptr a = allocate(MOST), b = allocate(MOST);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int is_pinned = 0; is_pinned < 2; is_pinned++) {
            size_t bytes = sizes[i];
            unsigned char *source = is_pinned ? pin : from;
            pattern(source, bytes, (unsigned)i);
            memset(to, 0, bytes);
            CK_OK(hdrt_copy_htod(queue, a, source, bytes));
            CK_OK(hdrt_copy_dtod(queue, b, a, bytes));
            CK_OK(hdrt_copy_dtoh(queue, to, b, bytes));
            CK_OK(hdrt_queue_synchronize(queue));
            ck_assert_mem_eq(to, source, bytes);
        }
    }
    CK_OK(hdrt_host_free(dev, pin));
    CK_OK(hdrt_free(queue, a));
    CK_OK(hdrt_free(queue, b));
    free(to);
    free(from);
}
END_TEST

START_TEST(copies_are_checked)
{
    char host[64] = {0};
    hdrt_ptr memory = allocate(64);
    char *pin = pinned(4096);
    CK_STATUS(hdrt_copy_htod(NULL, memory, host, 8), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_copy_htod(queue, memory, NULL, 8), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_copy_htod(queue, 0, host, 8), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_copy_htod(queue, memory + 60, host, 8), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("4 bytes beyond the allocation of 64");
    CK_STATUS(hdrt_copy_htod(queue, memory, pin + 4090, 8), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("2 bytes beyond");
    CK_STATUS(hdrt_copy_dtoh(queue, NULL, memory, 8), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_copy_dtoh(queue, host, memory, 65), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_copy_dtoh(queue, host, 0x7, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_copy_dtoh(queue, (void *)(uintptr_t)UINT64_MAX, memory, 8), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_copy_dtod(queue, memory, memory + 8, 16), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("overlap");
    CK_STATUS(hdrt_copy_dtod(queue, memory, 0, 16), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_copy_dtod(queue, memory, memory + 8, 8));
    CK_STATUS(hdrt_copy_batch(queue, NULL, 0), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_copy_batch(NULL, NULL, 0), HDRT_ERROR_INVALID_ARGUMENT);
    /* Nothing is an ordered no-op, whatever the addresses. */
    CK_OK(hdrt_copy_htod(queue, 0, NULL, 0));
    CK_OK(hdrt_copy_dtoh(queue, NULL, 0, 0));
    CK_OK(hdrt_copy_dtod(queue, 0, 0, 0));
    CK_OK(hdrt_write(queue, 0, NULL, 0));
    CK_OK(hdrt_fill(queue, 0, NULL, 1, 0));
    CK_OK(hdrt_queue_synchronize(queue));
    CK_OK(hdrt_queue_error(queue)); /* what arguments tell fails no queue */
    CK_OK(hdrt_host_free(dev, pin));
    CK_OK(hdrt_free(queue, memory));
    CK_OK(hdrt_queue_synchronize(queue));
    CK_STATUS(hdrt_copy_htod(queue, memory, host, 8), HDRT_ERROR_INVALID_ARGUMENT);
}
END_TEST

static void set_bytes(void *argument)
{
    memset(argument, 0x5a, 4096);
}

static void set_bytes_small(void *argument)
{
    memset(argument, 0x6b, 1000);
}

/* The host-done rule: a copy in reads what an earlier host call or copy out of its queue has written. */
START_TEST(copies_in_see_what_the_queue_wrote_before)
{
    unsigned char *pageable = calloc(1, 200000), *back = malloc(200000);
    static gate g = GATE_INIT;
    hdrt_ptr memory = allocate(200000);
    gate_hold(&g, queue);
    CK_OK(hdrt_queue_host_call(queue, set_bytes, pageable));
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, open_later, &g), 0);
    CK_OK(hdrt_copy_htod(queue, memory, pageable, 4096));
    pthread_join(thread, NULL);
    CK_OK(hdrt_copy_dtoh(queue, back, memory, 4096));
    CK_OK(hdrt_queue_synchronize(queue));
    for (int i = 0; i < 4096; i++) {
        ck_assert_uint_eq(back[i], 0x5a);
    }
    CK_OK(hdrt_free(queue, memory));
    free(back);
    free(pageable);
}
END_TEST

/* With nothing before it in the queue that could write host memory, a small copy in is as good as a write. */
START_TEST(small_pageable_copies_in_do_not_wait)
{
    static gate g = GATE_INIT;
    hdrt_queue *held = make_queue("held");
    unsigned char source[1000], expected[1000], *back = pinned(1000);
    hdrt_ptr memory = allocate(1000);
    pattern(source, 1000, 1);
    memcpy(expected, source, 1000);
    CK_OK(hdrt_fill(queue, memory, "x", 1, 1000));
    CK_OK(hdrt_copy_htod(queue, memory, source, 1000));
    CK_OK(hdrt_copy_dtoh(queue, back, memory, 1000));
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_mem_eq(back, expected, 1000);
    /* Behind a wait for another queue the source may still be written: the copy waits, and sees it. */
    gate_hold(&g, held);
    CK_OK(hdrt_queue_host_call(held, set_bytes_small, source));
    CK_OK(hdrt_queue_wait(queue, hdrt_queue_record(held)));
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, open_later, &g), 0);
    CK_OK(hdrt_copy_htod(queue, memory, source, 1000));
    CK_OK(hdrt_copy_dtoh(queue, back, memory, 1000));
    CK_OK(hdrt_queue_synchronize(queue));
    pthread_join(thread, NULL);
    ck_assert_uint_eq(back[0], 0x6b);
    ck_assert_uint_eq(back[999], 0x6b);
    hdrt_queue_destroy(held);
    CK_OK(hdrt_host_free(dev, back));
    CK_OK(hdrt_free(queue, memory));
}
END_TEST

/* ---- writes ------------------------------------------------------------------------------------------------------ */

START_TEST(writes_are_snapshots)
{
    static gate g = GATE_INIT;
    unsigned char source[5000], expected[5000], *back = pinned(5000);
    hdrt_ptr memory = allocate(5000);
    pattern(source, 5000, 7);
    memcpy(expected, source, 5000);
    gate_hold(&g, queue);
    CK_OK(hdrt_write(queue, memory, source, 5000));
    memset(source, 0, 5000); /* read during the call, although the queue is held */
    CK_OK(hdrt_copy_dtoh(queue, back, memory, 5000));
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_mem_eq(back, expected, 5000);
    CK_STATUS(hdrt_write(queue, memory, source, HDRT_WRITE_LIMIT + 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_write(queue, memory, NULL, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_write(queue, memory + 4999, source, 2), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_write(NULL, memory, source, 2), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_host_free(dev, back));
    CK_OK(hdrt_free(queue, memory));
}
END_TEST

START_TEST(writes_are_bounded)
{
    static gate g = GATE_INIT;
    static unsigned char source[HDRT_WRITE_LIMIT];
    hdrt_queue *free_queue = make_queue("free");
    hdrt_ptr memory = allocate(HDRT_WRITE_LIMIT);
    CK_OK(hdrt_queue_synchronize(queue));
    gate_hold(&g, queue);
    hdrt_status status = HDRT_OK;
    int large = 0, small = 0;
    while (large < 10000 && (status = hdrt_write(queue, memory, source, HDRT_WRITE_LIMIT)) == HDRT_OK) {
        large++;
    }
    CK_STATUS(status, HDRT_WOULD_BLOCK);
    while (small < 10000 && (status = hdrt_write(queue, memory, source, 16)) == HDRT_OK) {
        small++;
    }
    CK_STATUS(status, HDRT_WOULD_BLOCK);
    ck_assert_int_ge(large, 8);
    ck_assert_int_ge(small, 64);
    CK_STATUS(hdrt_write(free_queue, memory, source, 16), HDRT_WOULD_BLOCK);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(queue));
    for (int i = 0; i < 2 * small; i++) {
        status = hdrt_write(free_queue, memory, source, 16);
        if (status == HDRT_WOULD_BLOCK) {
            CK_OK(hdrt_queue_synchronize(free_queue));
            status = hdrt_write(free_queue, memory, source, 16);
        }
        CK_OK(status);
    }
    CK_OK(hdrt_queue_synchronize(free_queue));
    hdrt_queue_destroy(free_queue);
    CK_OK(hdrt_free(queue, memory));
}
END_TEST

/* ---- fills ------------------------------------------------------------------------------------------------------- */

START_TEST(fills_are_exact)
{
    static const uint32_t sizes[] = {1, 2, 4, 8, 16};
    static const uint64_t counts[] = {1, 2, 3, 7, 64, 1000, 4097};
    static const unsigned char values[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    static const unsigned char same[16] = {9, 8, 7, 6, 9, 8, 7, 6, 9, 8, 7, 6, 9, 8, 7, 6};
    enum { BYTES = 4097 * 16 + 64 };
    unsigned char *back = pinned(BYTES);
    hdrt_ptr memory = allocate(BYTES);
    for (size_t s = 0; s < 5; s++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            const unsigned char *bytes = c % 2 ? values : same, guard = 0xc3;
            uint64_t total = sizes[s] * counts[c];
            CK_OK(hdrt_fill(queue, memory, &guard, 1, BYTES));
            CK_OK(hdrt_fill(queue, memory + 32, bytes, sizes[s], counts[c]));
            CK_OK(hdrt_copy_dtoh(queue, back, memory, BYTES));
            CK_OK(hdrt_queue_synchronize(queue));
            for (uint64_t i = 0; i < BYTES; i++) {
                bool inside = i >= 32 && i < 32 + total;
                ck_assert_uint_eq(back[i], inside ? bytes[(i - 32) % sizes[s]] : guard);
            }
        }
    }
    CK_STATUS(hdrt_fill(queue, memory, values, 3, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_fill(queue, memory, values, 0, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_fill(queue, memory, NULL, 4, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_fill(queue, memory + 4, values, 8, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_fill(queue, memory, values, 16, (uint64_t)1 << 61), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_fill(queue, memory, values, 16, 4097 + 5), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_fill(NULL, memory, values, 16, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_host_free(dev, back));
    CK_OK(hdrt_free(queue, memory));
}
END_TEST

/* ---- regions ----------------------------------------------------------------------------------------------------- */

typedef struct shape {
    uint64_t width, height, depth, pitch, slice;
} shape;

static uint64_t shape_bytes(const shape *s)
{
    return (s->depth - 1) * s->slice + (s->height - 1) * s->pitch + s->width;
}

START_TEST(regions_move_their_box_and_nothing_else)
{
    static const shape shapes[] = {
        {10, 1, 1, 0, 0}, {10, 5, 1, 16, 0}, {7, 3, 4, 8, 32}, {64, 8, 2, 64, 512}, {1, 9, 3, 5, 60}, {100, 2, 1, 128, 0},
    };
    enum { BYTES = 8192 };
    unsigned char *host = malloc(BYTES), *pin = pinned(BYTES), *back = malloc(BYTES);
    hdrt_ptr a = allocate(BYTES), b = allocate(BYTES);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const shape *to = &shapes[s];
        for (int is_pinned = 0; is_pinned < 2; is_pinned++) {
            unsigned char *source = is_pinned ? pin : host, guard = 0x77;
            uint64_t row = to->pitch + 4, slice = row * (to->height + 1);
            pattern(source, BYTES, (unsigned)s);
            ck_assert_uint_le(shape_bytes(to), BYTES);
            hdrt_region_side from_side = {.host = source, .row_pitch = row, .slice_pitch = slice};
            hdrt_region_side a_side = {.device = a, .row_pitch = to->pitch, .slice_pitch = to->slice};
            hdrt_region_side b_side = {.device = b, .row_pitch = to->pitch, .slice_pitch = to->slice};
            hdrt_region_side back_side = {.host = back, .row_pitch = to->pitch, .slice_pitch = to->slice};
            memset(back, guard, BYTES);
            CK_OK(hdrt_copy_region(queue, &a_side, &from_side, to->width, to->height, to->depth));
            CK_OK(hdrt_copy_region(queue, &b_side, &a_side, to->width, to->height, to->depth));
            CK_OK(hdrt_copy_region(queue, &back_side, &b_side, to->width, to->height, to->depth));
            CK_OK(hdrt_queue_synchronize(queue));
            unsigned char *expected = malloc(BYTES);
            memset(expected, guard, BYTES);
            for (uint64_t z = 0; z < to->depth; z++) {
                for (uint64_t y = 0; y < to->height; y++) {
                    memcpy(expected + z * to->slice + y * to->pitch, source + z * slice + y * row, to->width);
                }
            }
            ck_assert_mem_eq(back, expected, BYTES);
            free(expected);
        }
    }
    CK_OK(hdrt_host_free(dev, pin));
    CK_OK(hdrt_free(queue, a));
    CK_OK(hdrt_free(queue, b));
    free(back);
    free(host);
}
END_TEST

START_TEST(regions_are_checked)
{
    char host[4096];
    hdrt_ptr memory = allocate(4096);
    hdrt_region_side device = {.device = memory, .row_pitch = 64, .slice_pitch = 640};
    hdrt_region_side side = {.host = host, .row_pitch = 64, .slice_pitch = 640};
    CK_OK(hdrt_copy_region(queue, &device, &side, 64, 10, 6));
    CK_OK(hdrt_copy_region(queue, &device, &side, 0, 10, 6));
    CK_OK(hdrt_copy_region(queue, NULL, NULL, 4, 0, 6));
    CK_STATUS(hdrt_copy_region(NULL, &device, &side, 64, 10, 6), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_copy_region(queue, NULL, &side, 64, 10, 6), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_copy_region(queue, &side, &side, 64, 10, 6), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_copy_region(queue, &device, &side, 65, 10, 6), HDRT_ERROR_INVALID_ARGUMENT); /* row */
    CK_STATUS(hdrt_copy_region(queue, &device, &side, 64, 11, 6), HDRT_ERROR_INVALID_ARGUMENT); /* slice */
    CK_STATUS(hdrt_copy_region(queue, &device, &side, 64, 10, 7), HDRT_ERROR_INVALID_ARGUMENT); /* range */
    CK_MESSAGE("beyond the allocation");
    CK_STATUS(hdrt_copy_region(queue, &device, &side, 64, UINT64_MAX / 2, 1), HDRT_ERROR_INVALID_ARGUMENT);
    device.row_pitch = (uint64_t)1 << 40;
    CK_STATUS(hdrt_copy_region(queue, &device, &side, 64, 2, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_queue_synchronize(queue));
    CK_OK(hdrt_free(queue, memory));
}
END_TEST

/* ---- devices without pools, and lack of memory ------------------------------------------------------------------- */

START_TEST(without_pools_frees_wait_for_the_queue)
{
    hdrt_runtime *runtime = rt;
    static gate g = GATE_INIT;
    hdrt_device *device;
    hdrt_queue *plain;
    hdrt_ptr memory, other;
    unsigned char *back = pinned(256);
    CK_OK(hdrt_device_open(runtime, 0, NULL, &device));
    inject("cuMemPoolCreate:1=801");
    CK_OK(hdrt_queue_create(device, NULL, &plain));
    ck_assert(!hdrt_device_supports(device, HDRT_FEATURE_MEMORY_POOLS));
    unsigned long long frees = calls_of("cuMemFree");
    CK_OK(hdrt_alloc(plain, 256, &memory));
    CK_OK(hdrt_fill(plain, memory, "q", 1, 256));
    gate_hold(&g, plain);
    CK_OK(hdrt_copy_dtoh(plain, back, memory, 256));
    CK_OK(hdrt_free(plain, memory));
    CK_STATUS(hdrt_free(plain, memory), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_uint_eq(calls_of("cuMemFree"), frees);
    CK_OK(hdrt_alloc(plain, 256, &other));
    ck_assert_uint_ne(other, memory);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(plain));
    for (int i = 0; i < 1000 && calls_of("cuMemFree") == frees; i++) {
        CK_OK(hdrt_device_synchronize(device));
        usleep(1000);
    }
    ck_assert_uint_eq(calls_of("cuMemFree"), frees + 1);
    ck_assert_uint_eq(back[255], 'q');
    CK_STATUS(hdrt_alloc(plain, (uint64_t)1 << 50, &memory), HDRT_ERROR_OUT_OF_DEVICE_MEMORY);
    hdrt_queue_destroy(plain);
    hdrt_device_close(device); /* frees what is left */
    CK_OK(hdrt_host_free(dev, back));
}
END_TEST

START_TEST(a_second_try_follows_a_trim)
{
    hdrt_ptr memory;
    inject("cuMemAllocFromPoolAsync:1=2");
    unsigned long long trims = calls_of("cuMemPoolTrimTo");
    CK_OK(hdrt_alloc(queue, 4096, &memory));
    ck_assert_uint_eq(calls_of("cuMemPoolTrimTo"), trims + 1);
    inject("cuMemAllocFromPoolAsync:1=2;cuMemAllocFromPoolAsync:2=2");
    CK_STATUS(hdrt_alloc(queue, 4096, &memory), HDRT_ERROR_OUT_OF_DEVICE_MEMORY);
    inject("cuMemHostAlloc:1=2");
    void *host;
    CK_STATUS(hdrt_host_alloc(dev, 4096, &host), HDRT_ERROR_OUT_OF_MEMORY);
    inject(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *tcase = tcase_create("memory"), *failures = tcase_create("failures");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, allocations_are_checked);
    tcase_add_test(tcase, freed_memory_is_refused_at_once);
    tcase_add_test(tcase, memory_of_another_device_object_is_refused);
    tcase_add_test(tcase, freed_memory_is_not_reused_too_early);
    tcase_add_test(tcase, pinned_memory_is_checked);
    tcase_add_test(tcase, pinned_memory_lives_as_long_as_it_is_used);
    tcase_add_test(tcase, unregistering_waits_for_copies);
    tcase_add_test(tcase, copies_of_all_kinds_and_sizes);
    tcase_add_test(tcase, copies_are_checked);
    tcase_add_test(tcase, copies_in_see_what_the_queue_wrote_before);
    tcase_add_test(tcase, small_pageable_copies_in_do_not_wait);
    tcase_add_test(tcase, writes_are_snapshots);
    tcase_add_test(tcase, writes_are_bounded);
    tcase_add_test(tcase, fills_are_exact);
    tcase_add_test(tcase, regions_move_their_box_and_nothing_else);
    tcase_add_test(tcase, regions_are_checked);
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(failures, setup, teardown);
    tcase_set_timeout(failures, 60);
    tcase_add_test(failures, without_pools_frees_wait_for_the_queue);
    tcase_add_test(failures, a_second_try_follows_a_trim);
    add_soft_tcase(suite, failures, "memory failures");
    return run_suite(suite);
}
