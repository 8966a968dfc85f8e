/* SPDX-License-Identifier: MIT */
/* Queues on streams that are the caller's too, and driver calls, for tests of recordings of his own work. */
#ifndef TEST_FOREIGN_FIXTURE_H
#define TEST_FOREIGN_FIXTURE_H

#include "device_fixture.h"

enum { N = 256, BYTES = N * 4, NONE = 0, RELAXED = 2 };

struct CUgraph_st;

static struct {
    int (*stream_create)(struct CUstream_st **, unsigned);
    int (*stream_destroy)(struct CUstream_st *);
    int (*stream_query)(struct CUstream_st *);
    int (*stream_synchronize)(struct CUstream_st *);
    int (*begin)(struct CUstream_st *, unsigned);
    int (*end)(struct CUstream_st *, struct CUgraph_st **);
    int (*is_capturing)(struct CUstream_st *, unsigned *);
    int (*graph_destroy)(struct CUgraph_st *);
    int (*push)(struct CUctx_st *);
    int (*event_create)(struct CUevent_st **, unsigned);
    int (*event_record)(struct CUevent_st *, struct CUstream_st *);
    int (*event_destroy)(struct CUevent_st *);
    int (*wait)(struct CUstream_st *, struct CUevent_st *, unsigned);
    int (*set)(hdrt_ptr, unsigned, size_t, struct CUstream_st *);
    int (*copy)(hdrt_ptr, hdrt_ptr, size_t, struct CUstream_st *);
    int (*launch)(struct CUfunc_st *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  struct CUstream_st *, void **, void **);
    int (*cooperate)(struct CUfunc_st *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     struct CUstream_st *, void **);
} cu;

static inline void find(void *pointer, const char *name)
{
    void *symbol = hdrt_runtime_driver_symbol(rt, name);
    ck_assert_msg(symbol != NULL, "%s", name);
    memcpy(pointer, &symbol, sizeof symbol);
}

static struct CUstream_st *stream, *given, *side;
static hdrt_queue *own, *lent, *a; /* on `stream`, adopted; exclusive, on `given`; an ordinary one */
static hdrt_module *module;
static hdrt_kernel *add;
static hdrt_ptr x, y;
static unsigned *host;
static hdrt_graph *graph;

static inline void setup(void)
{
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    setup_device();
    find(&cu.stream_create, "cuStreamCreate");
    find(&cu.stream_destroy, "cuStreamDestroy_v2");
    find(&cu.stream_query, "cuStreamQuery");
    find(&cu.stream_synchronize, "cuStreamSynchronize");
    find(&cu.begin, "cuStreamBeginCapture_v2");
    find(&cu.end, "cuStreamEndCapture");
    find(&cu.is_capturing, "cuStreamIsCapturing");
    find(&cu.graph_destroy, "cuGraphDestroy");
    find(&cu.push, "cuCtxPushCurrent_v2");
    find(&cu.event_create, "cuEventCreate");
    find(&cu.event_record, "cuEventRecord");
    find(&cu.event_destroy, "cuEventDestroy_v2");
    find(&cu.wait, "cuStreamWaitEvent");
    find(&cu.set, "cuMemsetD32Async");
    find(&cu.copy, "cuMemcpyDtoDAsync_v2");
    find(&cu.launch, "cuLaunchKernel");
    find(&cu.cooperate, "cuLaunchCooperativeKernel");
    ck_assert_int_eq(cu.push(hdrt_device_context(dev)), 0);
    ck_assert_int_eq(cu.stream_create(&stream, 1), 0);
    ck_assert_int_eq(cu.stream_create(&side, 1), 0);
    options.name = "own";
    CK_OK(hdrt_queue_adopt(dev, stream, &options, &own));
    options.name = "lent";
    options.exclusive = true;
    CK_OK(hdrt_queue_create(dev, &options, &lent));
    CK_OK(hdrt_queue_stream(lent, &given));
    a = make_queue("a");
    module = load_kernels();
    add = kernel_of(module, "add");
    CK_OK(hdrt_alloc(a, BYTES, &x));
    CK_OK(hdrt_alloc(a, BYTES, &y));
    CK_OK(hdrt_fill(a, x, "\0", 1, BYTES));
    CK_OK(hdrt_fill(a, y, "\0", 1, BYTES));
    CK_OK(hdrt_host_alloc(dev, BYTES, (void **)&host));
    CK_OK(hdrt_queue_synchronize(a));
    CK_OK(hdrt_graph_create(dev, NULL, &graph));
}

/* The stream is the caller's again: what he enqueues runs. */
static inline void check_usable(struct CUstream_st *of)
{
    unsigned capturing = 7;
    ck_assert_int_eq(cu.is_capturing(of, &capturing), 0);
    ck_assert_uint_eq(capturing, NONE);
    ck_assert_int_eq(cu.set(y, 77, N, of), 0);
    ck_assert_int_eq(cu.stream_synchronize(of), 0);
}

static inline void teardown(void)
{
    hdrt_graph_destroy(graph);
    CK_OK(hdrt_device_synchronize(dev));
    check_usable(stream);
    check_usable(given);
    check_usable(side);
    CK_OK(hdrt_queue_error(own));
    CK_OK(hdrt_queue_error(lent));
    hdrt_host_free(dev, host);
    hdrt_free(a, x);
    hdrt_free(a, y);
    hdrt_module_destroy(module);
    hdrt_queue_destroy(a);
    hdrt_queue_destroy(own);
    hdrt_queue_destroy(lent);
    ck_assert_int_eq(cu.stream_destroy(stream), 0);
    ck_assert_int_eq(cu.stream_destroy(side), 0);
    teardown_device();
}

static inline void begin(hdrt_queue *queue)
{
    CK_OK(hdrt_graph_begin(graph, &queue, 1));
}

/* The queue's, and the caller's own. */
static inline hdrt_status enqueue_add(hdrt_queue *queue, hdrt_ptr at, unsigned value)
{
    return hdrt_launch(queue, add, hdrt_grid_1d(N, 64), HDRT_ARGS(at, (unsigned)N, value));
}

static inline int launch_add(struct CUstream_st *on, hdrt_ptr at, unsigned value)
{
    unsigned count = N;
    void *params[] = {&at, &count, &value};
    return cu.launch(hdrt_kernel_function(add), N / 64, 1, 1, 64, 1, 1, 0, on, params, NULL);
}

/* What the memory has everywhere, when all is done. */
static inline unsigned value_at(hdrt_ptr at)
{
    CK_OK(hdrt_device_synchronize(dev));
    CK_OK(hdrt_copy_dtoh(a, host, at, BYTES));
    CK_OK(hdrt_queue_synchronize(a));
    for (int i = 1; i < N; i++) {
        ck_assert_uint_eq(host[i], host[0]);
    }
    return host[0];
}

/* What other streams have of the stream's work from here on; and the stream of theirs. */
static inline void fork_to(struct CUstream_st *to, struct CUstream_st *from)
{
    struct CUevent_st *event;
    ck_assert_int_eq(cu.event_create(&event, 2), 0);
    ck_assert_int_eq(cu.event_record(event, from), 0);
    ck_assert_int_eq(cu.wait(to, event, 0), 0);
    ck_assert_int_eq(cu.event_destroy(event), 0);
}

/* The graph adds v to x by the caller's own work, as its node 0. */
static inline void record_foreign(unsigned v)
{
    begin(own);
    ck_assert_int_eq(launch_add(stream, x, v), 0);
    CK_OK(hdrt_graph_end(graph));
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 1);
}

/* The graph is what record_foreign(v) left, and `own` runs what it is given. */
static inline void check_unchanged(unsigned v)
{
    unsigned before = value_at(x);
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 1);
    CK_OK(hdrt_graph_replay(a, graph));
    ck_assert_uint_eq(value_at(x), before + v);
    CK_OK(enqueue_add(own, x, 1));
    ck_assert_uint_eq(value_at(x), before + v + 1);
}

#endif
