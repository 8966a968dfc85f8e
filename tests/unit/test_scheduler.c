/* SPDX-License-Identifier: MIT */
/*
 * The scheduler: waits for what is not yet there, cycles, producers that end, the ways of handing over, and what queues
 * and streams cost. On the soft driver.
 */
#include "device_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "base/status.h"
#include "child.h"
#include "device/device.h"
#include "driver/cuda_symbols.h"
#include "driver/thread.h"
#include "queue/commit.h"
#include "queue/queue.h"
#include "queue/relief.h"
#include "queue/scheduler.h"
#include "queue/stream.h"

static int order_log[4096];
static atomic_int order_count;

static void note(void *argument)
{
    int index = atomic_fetch_add(&order_count, 1);
    if (index < (int)(sizeof order_log / sizeof *order_log)) {
        order_log[index] = (int)(intptr_t)argument;
    }
}

static void enqueue_note(hdrt_queue *queue, int value)
{
    CK_OK(hdrt_queue_host_call(queue, note, (void *)(intptr_t)value));
}

/* The event of a position that is yet to be enqueued: 1 is the next one. */
static hdrt_event future_of(hdrt_queue *queue, uint64_t ahead)
{
    hdrt_ptr memory;
    CK_OK(hdrt_alloc(queue, 64, &memory));
    hdrt_event event = hdrt_queue_record(queue);
    CK_OK(hdrt_free(queue, memory));
    CK_OK(hdrt_queue_synchronize(queue));
    event.value = hdrt_queue_record(queue).value + ahead;
    return event;
}

static hdrt_queue *make_with(hdrt_submission submission, int priority)
{
    hdrt_queue *queue;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.submission = submission;
    options.priority = priority;
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    return queue;
}

static unsigned long long all_driver_calls(void)
{
    static const char *const names[] = {
#define NAME(name, ...) #name,
        HDCU_SYMBOL_LIST(NAME)
#undef NAME
    };
    unsigned long long sum = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        sum += calls_of(names[i]);
    }
    return sum;
}

/* ---- waiting for what is not there yet --------------------------------------------------------------------------- */

/* A chain of queues, each of which is to go on where the next one ends, enqueued from its end. */
START_TEST(a_chain_of_waits_before_their_records)
{
    enum { QUEUES = 20 };
    hdrt_queue *queues[QUEUES];
    hdrt_event done[QUEUES];
    unsigned zero = 0, back = 0;
    hdrt_module *module = load_kernels();
    hdrt_kernel *add = kernel_of(module, "add");
    hdrt_ptr memory;
    hdrt_queue *first = make_queue("first");
    CK_OK(hdrt_alloc(first, 64, &memory));
    CK_OK(hdrt_fill(first, memory, &zero, 4, 1));
    CK_OK(hdrt_queue_synchronize(first));
    for (int i = 0; i < QUEUES; i++) {
        queues[i] = make_with((hdrt_submission)(i % 3), 0);
        done[i] = future_of(queues[i], i == QUEUES - 1 ? 1 : 2); /* the last one waits for nobody */
    }
    for (int i = 0; i < QUEUES; i++) {
        if (i < QUEUES - 1) {
            CK_OK(hdrt_queue_wait(queues[i], done[i + 1]));
        }
        CK_OK(hdrt_queue_host_call(queues[i], note, (void *)(intptr_t)i));
        ck_assert(order_count == 0 || i == QUEUES - 1);
    }
    CK_OK(hdrt_event_wait(rt, done[0], HDRT_FOREVER));
    ck_assert_int_eq(order_count, QUEUES);
    for (int i = 0; i < QUEUES; i++) {
        ck_assert_int_eq(order_log[i], QUEUES - 1 - i);
    }
    /* The same by the GPU's order. */
    for (int i = 0; i < QUEUES; i++) {
        done[i].value = hdrt_queue_record(queues[i]).value + (i == QUEUES - 1 ? 1 : 2);
    }
    for (int i = 0; i < QUEUES; i++) {
        if (i < QUEUES - 1) {
            CK_OK(hdrt_queue_wait(queues[i], done[i + 1]));
        }
        CK_OK(hdrt_launch(queues[i], add, hdrt_grid_1d(1, 1), HDRT_ARGS(memory, 1u, 1u)));
    }
    CK_OK(hdrt_queue_wait(first, done[0]));
    CK_OK(hdrt_copy_dtoh(first, &back, memory, 4));
    CK_OK(hdrt_queue_synchronize(first));
    ck_assert_uint_eq(back, QUEUES);
    for (int i = 0; i < QUEUES; i++) {
        hdrt_queue_destroy(queues[i]);
    }
    CK_OK(hdrt_free(first, memory));
    hdrt_queue_destroy(first);
    hdrt_module_destroy(module);
}
END_TEST

START_TEST(producers_that_end_fail_their_waiters)
{
    static gate g = GATE_INIT;
    hdrt_queue *producer = make_queue("producer"), *waiter = make_queue("waiter"), *late = make_queue("late");
    hdrt_event never = future_of(producer, 3);
    CK_OK(hdrt_queue_host_call(producer, gate_wait, &g));
    CK_OK(hdrt_queue_wait(waiter, never));
    enqueue_note(waiter, 1);
    hdrt_event of_waiter = hdrt_queue_record(waiter);
    CK_STATUS(hdrt_event_wait(rt, of_waiter, 2000000), HDRT_TIMEOUT);
    hdrt_event last = hdrt_queue_record(producer);
    hdrt_queue_destroy(producer); /* still at its gate: what was enqueued goes on, no more comes */
    CK_STATUS(hdrt_event_wait(rt, of_waiter, HDRT_FOREVER), HDRT_ERROR_EVENT_FAILED);
    CK_STATUS(hdrt_queue_synchronize(waiter), HDRT_ERROR_QUEUE_FAILED);
    CK_MESSAGE("destroyed before this value was enqueued");
    CK_STATUS(hdrt_queue_wait(late, never), HDRT_ERROR_EVENT_FAILED); /* who comes now is told at once */
    CK_MESSAGE("destroyed before this value was enqueued");
    CK_OK(hdrt_queue_clear_error(late));
    never.value = last.value + 1; /* the first that never comes */
    CK_STATUS(hdrt_event_query(rt, never), HDRT_ERROR_EVENT_FAILED);
    CK_STATUS(hdrt_event_query(rt, last), HDRT_NOT_READY);
    CK_OK(hdrt_queue_wait(late, last));
    enqueue_note(late, 2);
    gate_open(&g);
    CK_OK(hdrt_event_wait(rt, last, HDRT_FOREVER));
    CK_OK(hdrt_queue_synchronize(late));
    ck_assert_int_eq(order_count, 1);
    ck_assert_int_eq(order_log[0], 2);
    CK_OK(hdrt_event_query(rt, last));
    hdrt_queue_destroy(waiter);
    hdrt_queue_destroy(late);
}
END_TEST

/* Rings of waits, of as many queues as the loop says: all of them fail, with one that says why, and nobody hangs. */
START_TEST(cycles_are_told)
{
    hdrt_queue *queues[4];
    hdrt_event futures[4];
    int count = _i + 1, told = 0;
    for (int i = 0; i < count; i++) {
        queues[i] = make_queue(NULL);
        futures[i] = future_of(queues[i], 2);
    }
    if (count == 1) {
        CK_STATUS(hdrt_queue_wait(queues[0], futures[0]), HDRT_ERROR_CYCLE);
        CK_OK(hdrt_queue_error(queues[0]));
    } else {
        for (int i = 0; i < count; i++) {
            CK_OK(hdrt_queue_wait(queues[i], futures[(i + 1) % count]));
        }
        for (int i = 0; i < count; i++) { /* by now they may know */
            hdrt_status status = hdrt_queue_host_call(queues[i], note, NULL);
            ck_assert(status == HDRT_OK || status == HDRT_ERROR_QUEUE_FAILED);
        }
        for (int i = 0; i < count; i++) {
            CK_STATUS(hdrt_queue_synchronize(queues[i]), HDRT_ERROR_QUEUE_FAILED);
            told += strstr(hdrt_last_error(), "none of them can go on") != NULL;
        }
        ck_assert_int_ge(told, 1);
        ck_assert_int_eq(order_count, 0);
    }
    for (int i = 0; i < count; i++) {
        CK_OK(hdrt_queue_clear_error(queues[i]));
        enqueue_note(queues[i], i);
        CK_OK(hdrt_queue_synchronize(queues[i]));
        hdrt_queue_destroy(queues[i]);
    }
    ck_assert_int_eq(order_count, count);
}
END_TEST

/* A wait alone is not handed over until somebody needs it: each of these is somebody. */
START_TEST(a_wait_that_lies_there_is_woken)
{
    static gate gates[6] = {GATE_INIT, GATE_INIT, GATE_INIT, GATE_INIT, GATE_INIT, GATE_INIT};
    gate *g = &gates[_i];
    hdrt_queue *producer = make_queue("producer"), *queue = make_queue("waiter"), *other = make_queue("other");
    CK_OK(hdrt_queue_host_call(producer, gate_wait, g));
    CK_OK(hdrt_queue_wait(queue, hdrt_queue_record(producer)));
    hdrt_event event = hdrt_queue_record(queue);
    if (_i == 4) {
        hdrt_queue_destroy(queue);
    }
    if (_i == 2) {
        CK_OK(hdrt_queue_wait(other, event));
        enqueue_note(other, 1);
    }
    CK_STATUS(hdrt_event_query(rt, event), HDRT_NOT_READY);
    gate_open(g);
    switch (_i) {
    case 0:
        for (int i = 0; i < 5000 && hdrt_event_query(rt, event) == HDRT_NOT_READY; i++) {
            usleep(1000);
        }
        break;
    case 1:
    case 4:
        CK_OK(hdrt_event_wait(rt, event, HDRT_FOREVER));
        break;
    case 2:
        CK_OK(hdrt_queue_synchronize(other));
        ck_assert_int_eq(order_count, 1);
        break;
    case 3:
        CK_OK(hdrt_queue_synchronize(queue));
        break;
    default:
        CK_OK(hdrt_device_synchronize(dev));
        break;
    }
    CK_OK(hdrt_event_query(rt, event));
    if (_i != 4) {
        hdrt_queue_destroy(queue);
    }
    hdrt_queue_destroy(producer);
    hdrt_queue_destroy(other);
}
END_TEST

START_TEST(destroyed_queues_with_waits_end_in_order)
{
    static gate g = GATE_INIT;
    hdrt_queue *first = make_queue("first"), *between[3], *last = make_queue("last");
    gate_hold(&g, first);
    enqueue_note(first, 1);
    hdrt_event event = hdrt_queue_record(first);
    for (int i = 0; i < 3; i++) {
        between[i] = make_queue(NULL);
        CK_OK(hdrt_queue_wait(between[i], event));
        event = hdrt_queue_record(between[i]);
        hdrt_queue_destroy(between[i]);
    }
    hdrt_queue_destroy(first);
    CK_STATUS(hdrt_event_query(rt, event), HDRT_NOT_READY);
    CK_OK(hdrt_queue_wait(last, event));
    enqueue_note(last, 2);
    CK_STATUS(hdrt_event_wait(rt, hdrt_queue_record(last), 2000000), HDRT_TIMEOUT);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(last));
    CK_OK(hdrt_event_query(rt, event));
    ck_assert_int_eq(order_count, 2);
    ck_assert_int_eq(order_log[1], 2);
    hdrt_queue_destroy(last);
}
END_TEST

/* ---- two devices ------------------------------------------------------------------------------------------------- */

static void setup_two(void)
{
    setenv("HDSOFT_DEVICES", "2", 1);
    setup_device();
}

START_TEST(queues_of_two_devices_wait_for_each_other)
{
    enum { ROUNDS = 50 };
    hdrt_device *second;
    hdrt_queue *here = make_queue("here"), *there;
    hdrt_ptr near, far;
    unsigned char back[16];
    CK_OK(hdrt_device_open(rt, 1, NULL, &second));
    CK_OK(hdrt_queue_create(second, NULL, &there));
    CK_OK(hdrt_alloc(here, 16, &near));
    CK_OK(hdrt_alloc(there, 16, &far));
    CK_OK(hdrt_queue_synchronize(there));
    hdrt_event wanted = future_of(here, 1);
    /* Before it is enqueued, and on another device. */
    CK_OK(hdrt_queue_wait(there, wanted));
    CK_OK(hdrt_copy_dtod(there, far, near, 16));
    hdrt_event copied = hdrt_queue_record(there);
    CK_STATUS(hdrt_event_wait(rt, copied, 2000000), HDRT_TIMEOUT);
    CK_OK(hdrt_fill(here, near, "0", 1, 16));
    for (unsigned char i = 1; i < ROUNDS; i++) {
        CK_OK(hdrt_queue_wait(here, copied));
        CK_OK(hdrt_fill(here, near, &i, 1, 16));
        CK_OK(hdrt_queue_wait(there, hdrt_queue_record(here)));
        CK_OK(hdrt_copy_dtod(there, far, near, 16));
        copied = hdrt_queue_record(there);
    }
    CK_OK(hdrt_copy_dtoh(there, back, far, 16));
    CK_OK(hdrt_queue_synchronize(there));
    ck_assert_int_eq(back[15], ROUNDS - 1);
    CK_OK(hdrt_free(here, near));
    CK_OK(hdrt_free(there, far));
    hdrt_queue_destroy(here);
    hdrt_queue_destroy(there);
    hdrt_device_close(second);
}
END_TEST

/* ---- priorities -------------------------------------------------------------------------------------------------- */

START_TEST(priorities_have_streams_of_their_own)
{
    hdrt_queue *urgent = make_with(HDRT_SUBMISSION_DISPATCHER, -1000), *plain = make_with(HDRT_SUBMISSION_DISPATCHER, 1000);
    hdrt_ptr memory;
    ck_assert_uint_eq(urgent->class, 0);
    ck_assert_uint_gt(plain->class, urgent->class);
    CK_OK(hdrt_alloc(plain, 64, &memory));
    CK_OK(hdrt_queue_synchronize(plain));
    for (int i = 0; i < 100; i++) { /* each goes on where the other ended, in another stream */
        CK_OK(hdrt_queue_wait(urgent, hdrt_queue_record(plain)));
        CK_OK(hdrt_fill(urgent, memory, "u", 1, 64));
        CK_OK(hdrt_queue_wait(plain, hdrt_queue_record(urgent)));
        CK_OK(hdrt_fill(plain, memory, "p", 1, 64));
    }
    CK_OK(hdrt_device_synchronize(dev));
    bool seen[2] = {false, false};
    pthread_mutex_lock(&dev->queues_lock);
    for (hdrt__device_stream *entry = dev->streams; entry; entry = entry->next) {
        const hdrt__stream *stream = (const hdrt__stream *)entry;
        seen[0] |= stream->shared && stream->class == urgent->class;
        seen[1] |= stream->shared && stream->class == plain->class;
    }
    pthread_mutex_unlock(&dev->queues_lock);
    ck_assert(seen[0] && seen[1]);
    hdrt_queue_destroy(urgent);
    hdrt_queue_destroy(plain);
}
END_TEST

START_TEST(who_is_waited_for_is_promoted)
{
    static gate g = GATE_INIT;
    hdrt_queue *urgent = make_with(HDRT_SUBMISSION_DISPATCHER, -1000), *slow = make_with(HDRT_SUBMISSION_DISPATCHER, 1000);
    hdrt_event later = future_of(slow, 2);
    CK_OK(hdrt_queue_host_call(slow, gate_wait, &g));
    CK_OK(hdrt_queue_wait(urgent, later));
    enqueue_note(urgent, 2);
    for (int i = 0; i < 5000 && atomic_load(&slow->urgency) != urgent->class; i++) {
        usleep(1000);
    }
    ck_assert_uint_eq(atomic_load(&slow->urgency), urgent->class);
    enqueue_note(slow, 1);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(urgent));
    ck_assert_int_eq(order_log[0], 1);
    ck_assert_int_eq(order_log[1], 2);
    for (int i = 0; i < 5000 && atomic_load(&slow->urgency) != UINT8_MAX; i++) {
        usleep(1000);
    }
    ck_assert_uint_eq(atomic_load(&slow->urgency), UINT8_MAX); /* with its ring empty it is what it was */
    hdrt_queue_destroy(urgent);
    hdrt_queue_destroy(slow);
}
END_TEST

/* ---- rings ------------------------------------------------------------------------------------------------------- */

START_TEST(a_growing_ring_takes_all)
{
    enum { LAUNCHES = 2000 };
    static gate g = GATE_INIT;
    hdrt_queue *queue;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    unsigned zero = 0, back = 0;
    hdrt_ptr memory;
    hdrt_module *module = load_kernels();
    hdrt_kernel *add = kernel_of(module, "add");
    options.ring_limit = 8;
    options.back_pressure = HDRT_BACK_PRESSURE_GROW;
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    CK_OK(hdrt_alloc(queue, 64, &memory));
    CK_OK(hdrt_fill(queue, memory, &zero, 4, 1));
    CK_OK(hdrt_queue_host_call(queue, gate_wait, &g));
    for (int i = 0; i < LAUNCHES; i++) {
        CK_OK(hdrt_launch(queue, add, hdrt_grid_1d(1, 1), HDRT_ARGS(memory, 1u, 1u)));
    }
    gate_open(&g);
    CK_OK(hdrt_copy_dtoh(queue, &back, memory, 4));
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_uint_eq(back, LAUNCHES);
    CK_OK(hdrt_free(queue, memory));
    hdrt_queue_destroy(queue);
    hdrt_module_destroy(module);
}
END_TEST

typedef struct opener {
    hdrt_timeline *timeline;
    uint64_t value;
} opener;

static void *open_later(void *argument)
{
    const opener *mine = argument;
    usleep(20000);
    CK_OK(hdrt_timeline_signal(mine->timeline, mine->value));
    return NULL;
}

/*
 * A full ring has room again when its oldest operations are complete, though there are few of them and what is behind
 * them waits for something that the caller only does after the call.
 */
START_TEST(a_little_room_is_enough)
{
    enum { LIMIT = 64 };
    hdrt_timeline *timeline;
    hdrt_queue *queue;
    hdrt_ptr memory;
    pthread_t thread;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.ring_limit = LIMIT;
    options.exclusive = _i;
    CK_OK(hdrt_timeline_create(rt, &timeline));
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    CK_OK(hdrt_alloc(queue, 256, &memory));
    CK_OK(hdrt_queue_synchronize(queue));
    opener first = {timeline, 1};
    CK_OK(hdrt_queue_wait(queue, hdrt_timeline_event(timeline, 1)));
    CK_OK(hdrt_fill(queue, memory, "a", 1, 256));
    CK_OK(hdrt_queue_wait(queue, hdrt_timeline_event(timeline, 2)));
    for (int i = 3; i < LIMIT; i++) {
        CK_OK(hdrt_fill(queue, memory, "b", 1, 256));
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, open_later, &first), 0);
    CK_OK(hdrt_fill(queue, memory, "c", 1, 256));
    CK_OK(hdrt_timeline_signal(timeline, 2));
    CK_OK(hdrt_queue_synchronize(queue));
    pthread_join(thread, NULL);
    CK_OK(hdrt_free(queue, memory));
    hdrt_queue_destroy(queue);
    hdrt_timeline_destroy(timeline);
}
END_TEST

/* The same program by each way of handing over. */
static void run_program(hdrt_submission submission, unsigned result[64], int log[64], int *out_count)
{
    enum { QUEUES = 4, OPERATIONS = 400 };
    hdrt_queue *queues[QUEUES];
    hdrt_event events[QUEUES] = {{0, 0}};
    hdrt_ptr memory;
    unsigned zero = 0, random = 12345;
    hdrt_module *module = load_kernels();
    hdrt_kernel *add = kernel_of(module, "add"), *stamp = kernel_of(module, "stamp");
    for (int i = 0; i < QUEUES; i++) {
        queues[i] = make_with(submission, 0);
    }
    CK_OK(hdrt_alloc(queues[0], 256, &memory));
    CK_OK(hdrt_fill(queues[0], memory, &zero, 4, 64));
    hdrt_event turn = hdrt_queue_record(queues[0]);
    order_count = 0;
    for (int i = 0; i < OPERATIONS; i++) { /* all in one order, from queue to queue */
        random = random * 1103515245u + 12345u;
        unsigned which = random >> 16;
        hdrt_queue *queue = queues[which % QUEUES];
        CK_OK(hdrt_queue_wait(queue, turn));
        CK_OK(hdrt_queue_wait(queue, events[which / 8 % QUEUES]));
        switch (which / 64 % 5) {
        case 0:
            CK_OK(hdrt_launch(queue, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(memory + which % 64 * 4, which)));
            break;
        case 1:
            CK_OK(hdrt_copy_dtod(queue, memory + 128, memory, 64));
            break;
        case 2:
            if (i % 16 == 0) {
                enqueue_note(queue, i);
            }
            break;
        default:
            CK_OK(hdrt_launch(queue, add, hdrt_grid_1d(64, 32), HDRT_ARGS(memory, 64u, which)));
            break;
        }
        events[which % QUEUES] = turn = hdrt_queue_record(queue);
    }
    CK_OK(hdrt_event_wait(rt, turn, HDRT_FOREVER));
    CK_OK(hdrt_copy_dtoh(queues[0], result, memory, 256));
    CK_OK(hdrt_device_synchronize(dev));
    *out_count = order_count;
    memcpy(log, order_log, 64 * sizeof *log);
    CK_OK(hdrt_free(queues[0], memory));
    for (int i = 0; i < QUEUES; i++) {
        hdrt_queue_destroy(queues[i]);
    }
    hdrt_module_destroy(module);
}

START_TEST(each_way_of_handing_over_gives_the_same)
{
    unsigned results[3][64];
    int logs[3][64], counts[3];
    for (int i = 0; i < 3; i++) {
        run_program((hdrt_submission)i, results[i], logs[i], &counts[i]);
    }
    ck_assert_int_gt(counts[0], 0);
    ck_assert_int_lt(counts[0], 64);
    for (int i = 1; i < 3; i++) {
        ck_assert_int_eq(memcmp(results[i], results[0], sizeof results[0]), 0);
        ck_assert_int_eq(counts[i], counts[0]);
        ck_assert_int_eq(memcmp(logs[i], logs[0], (size_t)counts[0] * sizeof(int)), 0);
    }
}
END_TEST

/* ---- what queues and streams cost -------------------------------------------------------------------------------- */

/*
 * Many queues that each hold one long kernel go out side by side, in pieces, with whatever else there is between them;
 * and what fits into no piece, or waits for one of them, goes too.
 */
START_TEST(long_kernels_go_side_by_side)
{
    enum { MANY = 150, N = 40000 };
    static hdrt_queue *queues[MANY];
    static uint32_t host[N];
    hdrt_module *module = load_kernels();
    hdrt_kernel *add = kernel_of(module, "add"), *stamp = kernel_of(module, "stamp");
    hdrt_queue *last = make_queue("last");
    hdrt_ptr memory, mark;
    CK_OK(hdrt_alloc(last, (uint64_t)MANY * N * 4, &memory));
    CK_OK(hdrt_alloc(last, 4, &mark));
    CK_OK(hdrt_fill(last, memory, "\0", 1, (uint64_t)MANY * N * 4));
    CK_OK(hdrt_queue_synchronize(last));
    for (int i = 0; i < MANY; i++) {
        queues[i] = make_with(HDRT_SUBMISSION_DISPATCHER, 0);
    }
    /* Until a round is seen in which all was known and built, and the dispatcher was not kept from gathering. */
    unsigned long long launches = MANY;
    unsigned round = 0;
    while (launches >= MANY / 2 && round++ < 40) {
        unsigned long long before = calls_of("cuGraphLaunch") + calls_of("cuLaunchKernel");
        for (unsigned i = 0; i < MANY; i++) {
            CK_OK(hdrt_launch(queues[i], add, hdrt_grid_1d(N, 128), HDRT_ARGS(memory + i * N * 4ull, (uint32_t)N, i + 1)));
            if (i % 50 == 20) {
                CK_OK(hdrt_launch(queues[i], stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(mark, round)));
                CK_OK(hdrt_queue_wait(last, hdrt_queue_record(queues[i])));
                CK_OK(hdrt_launch(last, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(mark, round)));
            }
        }
        CK_OK(hdrt_device_synchronize(dev));
        launches = calls_of("cuGraphLaunch") + calls_of("cuLaunchKernel") - before;
    }
    for (unsigned i = 0; i < MANY; i++) {
        CK_OK(hdrt_copy_dtoh(last, host, memory + i * N * 4ull, sizeof host));
        for (unsigned k = 0; k < N; k += 997) {
            ck_assert_uint_eq(host[k], round * (i + 1));
        }
        hdrt_queue_destroy(queues[i]);
    }
    ck_assert_uint_lt(launches, MANY / 2);
    CK_OK(hdrt_free(last, memory));
    CK_OK(hdrt_free(last, mark));
    hdrt_queue_destroy(last);
    hdrt_module_destroy(module);
}
END_TEST

START_TEST(queues_come_and_go_without_the_driver)
{
    enum { QUEUES = 1000 };
    static hdrt_queue *queues[QUEUES];
    CK_OK(hdrt_device_synchronize(dev));
    hdrt_queue *kept = make_queue("kept");
    CK_OK(hdrt_queue_synchronize(kept));
    usleep(20000); /* the dispatcher has gone to sleep */
    unsigned long long calls = all_driver_calls();
    for (int i = 0; i < QUEUES; i++) {
        queues[i] = make_queue(NULL);
        CK_OK(hdrt_queue_synchronize(queues[i]));
    }
    for (int i = 0; i < QUEUES; i++) {
        hdrt_queue_destroy(queues[i]);
    }
    ck_assert_uint_eq(all_driver_calls(), calls);
    hdrt_queue_destroy(kept);
}
END_TEST

START_TEST(idle_queues_own_no_ring)
{
    hdrt_ptr memory;
    ck_assert_uint_le(sizeof(hdrt_queue) + sizeof(hdrt__timeline), 512);
    for (int submission = 0; submission < 3; submission++) {
        hdrt_queue *queue = make_with((hdrt_submission)submission, 0);
        ck_assert_ptr_null(queue->ring.tail);
        CK_OK(hdrt_alloc(queue, 64, &memory));
        for (int i = 0; i < 300; i++) {
            CK_OK(hdrt_fill(queue, memory, "i", 1, 64));
        }
        CK_OK(hdrt_free(queue, memory));
        CK_OK(hdrt_queue_synchronize(queue));
        hdrt__segment *segment = NULL;
        for (int i = 0; i < 5000; i++) { /* the committer gives it back after it has told */
            pthread_mutex_lock(&queue->lock);
            segment = queue->ring.tail;
            pthread_mutex_unlock(&queue->lock);
            if (!segment) {
                break;
            }
            usleep(1000);
        }
        ck_assert_ptr_null(segment);
        hdrt_queue_destroy(queue);
    }
}
END_TEST

static void setup_few_streams(void)
{
    setenv("HDRT_STREAMS", "4", 1);
    setup_device();
}

START_TEST(streams_stay_within_their_limit)
{
    enum { QUEUES = 64 };
    hdrt_queue *queues[QUEUES];
    hdrt_ptr memory;
    unsigned zero = 0, back[QUEUES];
    hdrt_module *module = load_kernels();
    hdrt_kernel *add = kernel_of(module, "add");
    hdrt_queue *first = make_queue("first");
    CK_OK(hdrt_alloc(first, sizeof back, &memory));
    CK_OK(hdrt_fill(first, memory, &zero, 4, QUEUES));
    CK_OK(hdrt_queue_synchronize(first));
    for (int i = 0; i < QUEUES; i++) {
        queues[i] = make_with((hdrt_submission)(i % 3), 0);
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < QUEUES; i++) {
            CK_OK(hdrt_launch(queues[i], add, hdrt_grid_1d(1, 1), HDRT_ARGS(memory + 4 * (unsigned)i, 1u, 1u)));
        }
    }
    for (int i = 0; i < QUEUES; i++) {
        CK_OK(hdrt_queue_wait(first, hdrt_queue_record(queues[i])));
        hdrt_queue_destroy(queues[i]);
    }
    CK_OK(hdrt_copy_dtoh(first, back, memory, sizeof back));
    CK_OK(hdrt_queue_synchronize(first));
    for (int i = 0; i < QUEUES; i++) {
        ck_assert_uint_eq(back[i], 10);
    }
    ck_assert_uint_le(calls_of("cuStreamCreateWithPriority"), 5); /* and one for copies of pageable memory */
    CK_OK(hdrt_free(first, memory));
    hdrt_queue_destroy(first);
    hdrt_module_destroy(module);
}
END_TEST

/*
 * A wait in a stream may last; whoever asks afterwards for what stands before it, the same queue's or another's that
 * has its stream, does not wait for that too.
 */
START_TEST(a_wait_holds_up_nothing_before_it)
{
    static gate g = GATE_INIT;
    hdrt_ptr memory;
    hdrt_queue *held = make_inline_queue("held"), *other = make_inline_queue("other"), *first = _i ? other : held;
    CK_OK(hdrt_alloc(held, 64, &memory));
    CK_OK(hdrt_queue_synchronize(held));
    CK_OK(hdrt_queue_wait(other, hdrt_queue_record(held)));
    CK_OK(hdrt_fill(first, memory, "f", 1, 16));
    hdrt_event before = hdrt_queue_record(first);
    gate_hold(&g, held);
    CK_OK(hdrt_fill(held, memory + 16, "g", 1, 16));
    hdrt_event behind = hdrt_queue_record(held);
    CK_STATUS(hdrt_event_wait(rt, before, UINT64_C(1000000) * (unsigned)patience_ms()), HDRT_OK);
    CK_STATUS(hdrt_event_query(rt, behind), HDRT_NOT_READY);
    gate_open(&g);
    CK_OK(hdrt_free(held, memory));
    CK_OK(hdrt_queue_synchronize(held));
    hdrt_queue_destroy(held);
    hdrt_queue_destroy(other);
}
END_TEST

/* ---- relief ------------------------------------------------------------------------------------------------------ */

static hdrt_queue *relieved[2];
static hdrt_ptr relieved_memory;

/* Two queues with a stream each. */
static void setup_relieved(void)
{
    hdrt_kernel *spin;
    _Atomic uint32_t *flag;
    setup_device();
    hdrt_module *spinning = load_spin(&spin);
    CK_OK(hdrt_host_alloc(dev, sizeof *flag, (void **)&flag));
    atomic_store(flag, 0);
    hdrt_ptr address = (hdrt_ptr)(uintptr_t)flag;
    relieved[0] = make_inline_queue("one");
    relieved[1] = make_inline_queue("two");
    CK_OK(hdrt_alloc(relieved[0], 64, &relieved_memory));
    CK_OK(hdrt_queue_synchronize(relieved[0]));
    CK_OK(hdrt_launch(relieved[0], spin, hdrt_grid_1d(1, 1), HDRT_ARGS(address)));
    CK_OK(hdrt_fill(relieved[1], relieved_memory, "r", 1, 16));
    CK_OK(hdrt_queue_synchronize(relieved[1]));
    atomic_store(flag, 1);
    CK_OK(hdrt_queue_synchronize(relieved[0]));
    CK_OK(hdrt_host_free(dev, (void *)flag));
    hdrt_module_destroy(spinning);
    ck_assert_uint_ge(atomic_load(&relieved[0]->scheduler->stream_count), 2);
}

static void teardown_relieved(void)
{
    CK_OK(hdrt_free(relieved[0], relieved_memory));
    hdrt_queue_destroy(relieved[0]);
    hdrt_queue_destroy(relieved[1]);
    teardown_device();
}

static void fill_often(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        CK_OK(hdrt_fill(relieved[i % 2], relieved_memory + 16 * (i % 2), "f", 1, 16));
        if (i % 50 >= 48) {
            CK_OK(hdrt_queue_synchronize(relieved[i % 2]));
        }
    }
}

/* Go on with a little until the driver is relieved once more, or for so long. \return how often it was. */
static unsigned long long relieve(long for_ms)
{
    unsigned long long before = calls_of("cuLaunchHostFunc"), given = 0;
    for (long ms = 0; ms < for_ms && !given; ms += 2) {
        fill_often(2);
        CK_OK(hdrt_queue_synchronize(relieved[0]));
        usleep(2000);
        given = calls_of("cuLaunchHostFunc") - before;
    }
    return given;
}

/* Once for much work in several streams, and not for a little. */
START_TEST(a_driver_is_relieved_after_much_work)
{
    fill_often(100);
    ck_assert_uint_eq(relieve(3 * HDRT__RELIEF_NS / 1000000), 0);
    for (int i = 0; i < 3; i++) {
        fill_often(HDRT__RELIEF_COMMANDS);
        ck_assert_uint_eq(relieve(patience_ms()), 1);
        ck_assert_uint_eq(relieve(2 * HDRT__RELIEF_NS / 1000000), 0);
    }
}
END_TEST

/* What the driver refuses is not asked for again, and nobody is told. */
START_TEST(relief_that_is_refused_is_done_without)
{
    static const char *const rules[] = {"cuLaunchHostFunc:p1=801", "cuStreamCreateWithPriority:p1=2"};
    unsigned long long before = calls_of("cuLaunchHostFunc");
    inject(rules[_i]);
    fill_often(HDRT__RELIEF_COMMANDS);
    ck_assert_uint_eq(relieve(_i ? 3 * (long)(HDRT__RELIEF_NS / 1000000) : patience_ms()), !_i);
    inject(NULL);
    fill_often(HDRT__RELIEF_COMMANDS);
    ck_assert_uint_eq(relieve(3 * HDRT__RELIEF_NS / 1000000), 0);
    ck_assert_uint_eq(calls_of("cuLaunchHostFunc"), before + !_i);
    CK_OK(hdrt_device_synchronize(dev));
}
END_TEST

static TCase *add_tcase(Suite *suite, const char *name, void (*setup)(void))
{
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown_device);
    add_soft_tcase(suite, tcase, name);
    return tcase;
}

static void *destroy(void *queue)
{
    hdrt_queue_destroy(queue);
    return NULL;
}

/* What it leaves to be told of its end is not enqueued behind what is dropped: nobody could serve the queue to its end. */
START_TEST(a_queue_that_fails_while_it_is_destroyed_ends)
{
    pthread_t thread;
    hdrt_queue *queue = make_with(HDRT_SUBMISSION_DISPATCHER, 0);
    hdrt__queue_hold(queue);
    ck_assert(hdrt__committer_take(queue, HDRT__COMMITTER_NONE));
    enqueue_note(queue, 0); /* so that it has something to end with */
    pthread_mutex_lock(&queue->lock);
    ck_assert_int_eq(pthread_create(&thread, NULL, destroy, queue), 0);
    while (!atomic_load(&queue->closed)) {
        sched_yield();
    }
    usleep(5000);
    hdrt__failure *failure = hdrt__failure_create(HDRT_ERROR_QUEUE_FAILED, "a test"); /* the rest of hdrt__queue_fail */
    queue->dropped = hdrt__queue_position(queue);
    atomic_store(&queue->state, HDRT__QUEUE_FAILED);
    hdrt__timeline_fail(queue->entry.timeline, 1, failure);
    pthread_mutex_unlock(&queue->lock);
    hdrt__failure_drop(failure);
    pthread_join(thread, NULL);
    hdrt__committer_leave(queue);
    while (atomic_load(&queue->ring.consumed) != atomic_load(&queue->ring.published)) {
        sched_yield(); /* for ever, if nobody can */
    }
    hdrt__queue_drop(queue);
    CK_OK(hdrt_device_synchronize(dev));
}
END_TEST

static void setup_two_dispatchers(void)
{
    setenv("HDRT_DISPATCHERS", "2", 1);
    setup_device();
}

static void add_rules(Suite *suite, const char *name, SFun fixture)
{
    TCase *tcase = add_tcase(suite, name, fixture);
    tcase_add_test(tcase, a_chain_of_waits_before_their_records);
    tcase_add_test(tcase, producers_that_end_fail_their_waiters);
    tcase_add_loop_test(tcase, cycles_are_told, 0, 4);
    tcase_add_loop_test(tcase, a_wait_that_lies_there_is_woken, 0, 6);
    tcase_add_test(tcase, destroyed_queues_with_waits_end_in_order);
    tcase_add_test(tcase, priorities_have_streams_of_their_own);
    tcase_add_test(tcase, who_is_waited_for_is_promoted);
    tcase_add_test(tcase, a_growing_ring_takes_all);
    tcase_add_loop_test(tcase, a_little_room_is_enough, 0, 2);
    tcase_add_test(tcase, each_way_of_handing_over_gives_the_same);
    tcase_add_test(tcase, long_kernels_go_side_by_side);
    tcase_add_test(tcase, queues_come_and_go_without_the_driver);
    tcase_add_test(tcase, idle_queues_own_no_ring);
    tcase_add_loop_test(tcase, a_wait_holds_up_nothing_before_it, 0, 2);
}

int main(void)
{
    Suite *suite = suite_create("scheduler");
    add_rules(suite, "scheduler", setup_device);
    add_rules(suite, "two dispatchers", setup_two_dispatchers);
    tcase_add_test(add_tcase(suite, "ending", setup_device), a_queue_that_fails_while_it_is_destroyed_ends);
    tcase_add_test(add_tcase(suite, "two devices", setup_two), queues_of_two_devices_wait_for_each_other);
    tcase_add_test(add_tcase(suite, "few streams", setup_few_streams), streams_stay_within_their_limit);
    TCase *relief = tcase_create("relief");
    tcase_set_timeout(relief, 60);
    tcase_add_checked_fixture(relief, setup_relieved, teardown_relieved);
    tcase_add_test(relief, a_driver_is_relieved_after_much_work);
    tcase_add_loop_test(relief, relief_that_is_refused_is_done_without, 0, 2);
    add_soft_tcase(suite, relief, "counted driver calls and failures");
    return run_suite(suite);
}
