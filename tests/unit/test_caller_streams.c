/* SPDX-License-Identifier: MIT */
/* The library's operations and the caller's own work on one stream: their order, and captures of his. */
#include "device_fixture.h"

#include <stdatomic.h>
#include <unistd.h>

typedef int (*stream_create)(struct CUstream_st **, unsigned);
typedef int (*stream_call)(struct CUstream_st *);
typedef int (*push_call)(struct CUctx_st *);
typedef int (*set_call)(unsigned long long, unsigned, size_t, struct CUstream_st *);

static void find(void *pointer, const char *name)
{
    void *symbol = hdrt_runtime_driver_symbol(rt, name);
    ck_assert_msg(symbol != NULL, "%s", name);
    memcpy(pointer, &symbol, sizeof symbol);
}

static atomic_uint seen;
static unsigned *watched;

static void look(void *argument)
{
    (void)argument;
    atomic_store(&seen, watched[0]);
}

/* The library's operations and the caller's own take effect in the order of the calls. */
START_TEST(an_adopted_queue_keeps_the_callers_order)
{
    struct CUstream_st *stream;
    hdrt_queue *queue, *other = make_queue("other");
    hdrt_ptr memory;
    push_call push;
    stream_create create;
    stream_call destroy;
    set_call set;
    find(&push, "cuCtxPushCurrent_v2");
    find(&create, "cuStreamCreate");
    find(&destroy, "cuStreamDestroy_v2");
    find(&set, "cuMemsetD32Async");
    ck_assert_int_eq(push(hdrt_device_context(dev)), 0);
    ck_assert_int_eq(create(&stream, 1), 0);
    CK_OK(hdrt_queue_adopt(dev, stream, NULL, &queue));
    CK_OK(hdrt_host_alloc(dev, 64, (void **)&watched));
    CK_OK(hdrt_alloc(other, 64, &memory));
    CK_OK(hdrt_queue_wait(queue, hdrt_queue_record(other)));
    for (unsigned i = 0; i < 60; i += 3) {
        unsigned mine = i + 1, back;
        ck_assert_int_eq(set(memory, i, 16, stream), 0);
        CK_OK(hdrt_copy_dtoh(queue, watched, memory, 64));
        CK_OK(hdrt_queue_host_call(queue, look, NULL));
        ck_assert_int_eq(set(memory, i + 2, 16, stream), 0); /* after the host call */
        CK_OK(hdrt_fill(queue, memory + 4, &mine, 4, 1));
        hdrt_event event = hdrt_queue_record(queue);
        CK_OK(hdrt_queue_wait(other, event));
        CK_OK(hdrt_copy_dtoh(other, &back, memory, 4));
        CK_OK(hdrt_queue_synchronize(other));
        ck_assert_uint_eq(back, i + 2);
        ck_assert_uint_eq(atomic_load(&seen), i);
        CK_OK(hdrt_copy_dtoh(other, &back, memory + 4, 4));
        CK_OK(hdrt_queue_synchronize(other));
        ck_assert_uint_eq(back, i + 1);
    }
    CK_OK(hdrt_queue_synchronize(queue));
    hdrt_queue_destroy(queue);
    CK_OK(hdrt_free(other, memory));
    CK_OK(hdrt_device_synchronize(dev));
    ck_assert_int_eq(destroy(stream), 0);
    CK_OK(hdrt_host_free(dev, watched));
    hdrt_queue_destroy(other);
}
END_TEST

/* The caller's own work comes after a wait, with no operation of the queue between them: on an adopted stream, and on one
 * that was given out before the wait, or after. */
START_TEST(a_wait_holds_up_the_callers_work)
{
    static gate gates[3] = {GATE_INIT, GATE_INIT, GATE_INIT};
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    struct CUstream_st *stream;
    hdrt_queue *queue, *other = make_queue("other");
    hdrt_ptr memory;
    push_call push;
    stream_create create;
    stream_call destroy, query;
    set_call set;
    unsigned back;
    find(&push, "cuCtxPushCurrent_v2");
    find(&create, "cuStreamCreate");
    find(&destroy, "cuStreamDestroy_v2");
    find(&query, "cuStreamQuery");
    find(&set, "cuMemsetD32Async");
    CK_OK(hdrt_alloc(other, 64, &memory));
    CK_OK(hdrt_fill(other, memory, "", 1, 64));
    CK_OK(hdrt_queue_synchronize(other));
    if (_i == 0) {
        ck_assert_int_eq(push(hdrt_device_context(dev)), 0);
        ck_assert_int_eq(create(&stream, 1), 0);
        CK_OK(hdrt_queue_adopt(dev, stream, NULL, &queue));
    } else {
        options.exclusive = true;
        ck_assert_int_eq(push(hdrt_device_context(dev)), 0);
        CK_OK(hdrt_queue_create(dev, &options, &queue));
    }
    if (_i == 1) {
        CK_OK(hdrt_queue_stream(queue, &stream));
    }
    gate_hold(&gates[_i], other);
    CK_OK(hdrt_fill(other, memory, "a", 1, 4));
    CK_OK(hdrt_queue_wait(queue, hdrt_queue_record(other)));
    if (_i == 2) {
        CK_OK(hdrt_queue_stream(queue, &stream));
    }
    ck_assert_int_eq(set(memory, 7, 1, stream), 0);
    usleep(20000);
    ck_assert_int_eq(query(stream), 600); /* not ready */
    gate_open(&gates[_i]);
    CK_OK(hdrt_queue_wait(other, hdrt_queue_record(queue)));
    CK_OK(hdrt_copy_dtoh(other, &back, memory, 4));
    CK_OK(hdrt_queue_synchronize(other));
    ck_assert_uint_eq(back, 7);
    CK_OK(hdrt_free(other, memory));
    CK_OK(hdrt_queue_synchronize(other));
    hdrt_queue_destroy(queue);
    CK_OK(hdrt_device_synchronize(dev));
    if (_i == 0) {
        ck_assert_int_eq(destroy(stream), 0);
    }
    hdrt_queue_destroy(other);
}
END_TEST

/* Another queue waits for what was enqueued before the caller began a capture of his own: his capture stays whole. */
START_TEST(a_wait_leaves_the_callers_capture_alone)
{
    static gate g = GATE_INIT;
    typedef int (*begin_call)(struct CUstream_st *, unsigned);
    typedef int (*end_call)(struct CUstream_st *, void **);
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    hdrt_queue *queue, *other = make_queue("other");
    struct CUstream_st *stream;
    begin_call begin;
    end_call end;
    set_call set;
    int (*destroy)(void *);
    hdrt_ptr memory;
    void *graph = NULL;
    find(&begin, "cuStreamBeginCapture_v2");
    find(&end, "cuStreamEndCapture");
    find(&destroy, "cuGraphDestroy");
    find(&set, "cuMemsetD32Async");
    options.exclusive = true;
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    CK_OK(hdrt_queue_stream(queue, &stream));
    CK_OK(hdrt_alloc(other, 64, &memory));
    CK_OK(hdrt_queue_wait(queue, hdrt_queue_record(other)));
    gate_hold(&g, queue);
    CK_OK(hdrt_fill(queue, memory, "a", 1, 64));
    hdrt_event before = hdrt_queue_record(queue);
    push_call push;
    find(&push, "cuCtxPushCurrent_v2");
    ck_assert_int_eq(push(hdrt_device_context(dev)), 0);
    ck_assert_int_eq(begin(stream, 2), 0); /* relaxed */
    ck_assert_int_eq(set(memory, 1, 1, stream), 0);
    CK_OK(hdrt_queue_wait(other, before));
    CK_OK(hdrt_fill(other, memory, "b", 1, 64));
    usleep(20000);
    ck_assert_int_eq(set(memory, 2, 1, stream), 0);
    ck_assert_int_eq(end(stream, &graph), 0);
    ck_assert_int_eq(destroy(graph), 0);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(other));
    CK_OK(hdrt_queue_synchronize(queue));
    CK_OK(hdrt_free(other, memory));
    hdrt_queue_destroy(queue);
    CK_OK(hdrt_device_synchronize(dev));
    hdrt_queue_destroy(other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("streams of the caller's");
    TCase *tcase = tcase_create("streams");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup_device, teardown_device);
    tcase_add_test(tcase, an_adopted_queue_keeps_the_callers_order);
    tcase_add_loop_test(tcase, a_wait_holds_up_the_callers_work, 0, 3);
    tcase_add_test(tcase, a_wait_leaves_the_callers_capture_alone);
    add_soft_tcase(suite, tcase, "streams");
    return run_suite(suite);
}
