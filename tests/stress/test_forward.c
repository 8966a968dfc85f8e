/* SPDX-License-Identifier: MIT */
/*
 * Programs that wait for what is enqueued later, or never: none hangs. 2,000 random ones with HDRT_STRESS=all. All queues
 * stand at a gate until everything is enqueued, so the model knows each position, and with that which queues can go on
 * to their end: those succeed and have seen what they waited for; the others are in a ring, or wait for a producer that
 * is gone, and fail. Then calls with a gated GPU, and a kernel that waits for the host.
 */
#include "batches.h"
#include "execute.h"

#include <stdatomic.h>

#define QUEUES 8u
#define OPS 40u         /* of a queue */
#define SEEDS 20u       /* in a batch */
#define PATIENCE_NS 60000000000u
#define HOST_VALUES 4u

/* step(own, other, seen): *seen = *other; *own += 1.  spin(flag): until *flag is not 0.  raise(flag): *flag = 1. */
static const char ptx[] =
    ".version 7.4\n.target sm_75\n.address_size 64\n"
    ".visible .entry step(.param .u64 own, .param .u64 other, .param .u64 seen)\n{\n"
    " .reg .b32 %r<3>;\n .reg .b64 %d<4>;\n ld.param.u64 %d1, [own];\n ld.param.u64 %d2, [other];\n"
    " ld.param.u64 %d3, [seen];\n cvta.to.global.u64 %d1, %d1;\n cvta.to.global.u64 %d2, %d2;\n"
    " cvta.to.global.u64 %d3, %d3;\n ld.global.u32 %r1, [%d2];\n st.global.u32 [%d3], %r1;\n"
    " ld.global.u32 %r2, [%d1];\n add.u32 %r2, %r2, 1;\n st.global.u32 [%d1], %r2;\n ret;\n}\n"
    ".visible .entry spin(.param .u64 flag)\n{\n .reg .pred %q;\n .reg .b32 %r<3>;\n .reg .b64 %d<2>;\n"
    " ld.param.u64 %d1, [flag];\n cvta.to.global.u64 %d1, %d1;\n mov.u32 %r2, 1000;\n"
    "AGAIN:\n nanosleep.u32 %r2;\n ld.volatile.global.u32 %r1, [%d1];\n setp.eq.u32 %q, %r1, 0;\n @%q bra AGAIN;\n"
    " ret;\n}\n"
    ".visible .entry raise(.param .u64 flag)\n{\n .reg .b32 %r<2>;\n .reg .b64 %d<2>;\n"
    " ld.param.u64 %d1, [flag];\n cvta.to.global.u64 %d1, %d1;\n mov.u32 %r1, 1;\n"
    " st.volatile.global.u32 [%d1], %r1;\n ret;\n}\n";

typedef struct forward_op {
    bool wait;
    uint8_t producer; /* a queue, or QUEUES: the host */
    uint16_t value;
} forward_op;

typedef struct forward {
    uint32_t queues, count[QUEUES]; /* operation i of a queue has position i + 2: the gate is before them */
    forward_op ops[QUEUES][OPS];
    bool dies[QUEUES];    /* destroyed before the gate opens */
    uint32_t host_values; /* that the host signals */
    uint32_t reached[QUEUES];
} forward;

/* ---- programs and their model ------------------------------------------------------------------------------------ */

static void make_forward(forward *f, uint64_t seed)
{
    uint64_t state = seed * 31 + 7;
    memset(f, 0, sizeof *f);
    f->queues = 2 + (uint32_t)(program_random(&state) % (QUEUES - 1));
    f->host_values = (uint32_t)(program_random(&state) % (HOST_VALUES + 1));
    /* Mostly waits that look forward in a common order, which can all be kept, and some that need not be possible. */
    uint32_t wild = seed % 3 == 0 ? 10 : seed % 3 == 1 ? 1 : 0;
    for (uint32_t q = 0; q < f->queues; q++) {
        f->count[q] = 1 + (uint32_t)(program_random(&state) % OPS);
        f->dies[q] = program_random(&state) % 8 == 0;
        for (uint32_t i = 0; i < f->count[q]; i++) {
            uint64_t draw = program_random(&state);
            uint32_t producer = (uint32_t)(draw >> 8) % (QUEUES + 2);
            forward_op *op = &f->ops[q][i];
            op->wait = draw % 100 < 30 && producer != q && (producer < f->queues || producer >= QUEUES);
            op->producer = (uint8_t)(producer < QUEUES ? producer : QUEUES);
            uint32_t most = producer >= QUEUES ? HOST_VALUES : (draw >> 16) % 100 < wild ? OPS + 4 : i + 1;
            op->value = (uint16_t)(1 + (draw >> 32) % most);
        }
    }
}

/* Nobody waits for the position after the last: hdrt_queue_destroy may take it, and so may or may not complete it. */
static void move_ends(forward *f)
{
    for (uint32_t q = 0; q < f->queues; q++) {
        for (uint32_t i = 0; i < f->count[q]; i++) {
            forward_op *op = &f->ops[q][i];
            op->value += op->wait && op->producer < QUEUES && op->value == f->count[op->producer] + 2;
        }
    }
}

/* How far each queue comes, by going on as long as one can. */
static void model_forward(forward *f)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t q = 0; q < f->queues; q++) {
            while (f->reached[q] < f->count[q]) {
                const forward_op *op = &f->ops[q][f->reached[q]];
                uint32_t there = op->producer < QUEUES ? f->reached[op->producer] + 1 : f->host_values;
                if (op->wait && op->value > there) {
                    break;
                }
                f->reached[q]++;
                moved = true;
            }
        }
    }
}

/* ---- running them ------------------------------------------------------------------------------------------------ */

typedef struct stand {
    bed b;
    hdrt_module *module;
    hdrt_kernel *step;
    hdrt_ptr counters, seen;
    uint32_t *pinned;
} stand;

static void stand_open(stand *s)
{
    void *memory;
    bed_open(&s->b, 1);
    MUST(hdrt_module_load(s->b.devices[0], ptx, sizeof ptx - 1, NULL, &s->module));
    MUST(hdrt_module_kernel(s->module, "step", &s->step));
    MUST(hdrt_alloc(s->b.own[0], QUEUES * 4, &s->counters));
    MUST(hdrt_alloc(s->b.own[0], QUEUES * OPS * 4, &s->seen));
    MUST(hdrt_host_alloc(s->b.devices[0], QUEUES * OPS * 4, &memory));
    s->pinned = memory;
}

static void stand_close(stand *s)
{
    MUST(hdrt_free(s->b.own[0], s->counters));
    MUST(hdrt_free(s->b.own[0], s->seen));
    MUST(hdrt_host_free(s->b.devices[0], s->pinned));
    hdrt_module_destroy(s->module);
    bed_close(&s->b);
}

/* Enqueue queue q's operation i; `other` is whose counter the next launch looks at. */
static void enqueue_forward(stand *s, const forward *f, hdrt_queue *const *queues, const hdrt_event *bases,
                            const hdrt_timeline *host, uint32_t q, uint32_t i, uint8_t *other)
{
    const forward_op *op = &f->ops[q][i];
    if (!op->wait) {
        hdrt_ptr own = s->counters + 4 * q, theirs = s->counters + 4u * *other, seen = s->seen + 4 * (q * OPS + i);
        MUST(hdrt_launch(queues[q], s->step, hdrt_grid_1d(1, 1), HDRT_ARGS(own, theirs, seen)));
    } else if (op->producer == QUEUES) {
        MUST(hdrt_queue_wait(queues[q], hdrt_timeline_event(host, op->value)));
    } else {
        MUST(hdrt_queue_wait(queues[q], (hdrt_event){bases[op->producer].timeline, op->value}));
        *other = op->producer;
    }
}

/* What each launch saw of the queue that was waited for last is not less than was to be done there. */
static void check_seen(const stand *s, const forward *f, uint32_t q)
{
    uint32_t least[QUEUES] = {0}, other = q;
    for (uint32_t i = 0; i < f->count[q]; i++) {
        const forward_op *op = &f->ops[q][i];
        uint32_t launches = 0;
        if (!op->wait) {
            if (s->pinned[q * OPS + i] < least[other]) {
                bed_fail("queue %u, operation %u saw %u launches of queue %u, not %u", q, i, s->pinned[q * OPS + i],
                         other, least[other]);
            }
            least[q]++;
        } else if (op->producer < QUEUES) {
            other = op->producer;
            for (uint32_t k = 0; k < f->count[other] && k + 2 <= op->value; k++) {
                launches += !f->ops[other][k].wait;
            }
            least[other] = launches > least[other] ? launches : least[other];
        }
    }
}

static void run_forward(stand *s, forward *f, uint64_t seed)
{
    hdrt_queue *queues[QUEUES] = {NULL};
    hdrt_event bases[QUEUES], lasts[QUEUES];
    uint8_t others[QUEUES];
    hdrt_timeline *gate, *host;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    MUST(hdrt_timeline_create(s->b.runtime, &gate));
    MUST(hdrt_timeline_create(s->b.runtime, &host));
    MUST(hdrt_fill(s->b.own[0], s->counters, &(uint32_t){0}, 4, QUEUES));
    MUST(hdrt_queue_synchronize(s->b.own[0]));
    for (uint32_t q = 0; q < f->queues; q++) {
        options.submission = seed % 2 ? HDRT_SUBMISSION_AUTO : HDRT_SUBMISSION_DISPATCHER;
        MUST(hdrt_queue_create(s->b.devices[0], &options, &queues[q]));
        MUST(hdrt_queue_wait(queues[q], hdrt_timeline_event(gate, 1)));
        bases[q] = hdrt_queue_record(queues[q]);
        others[q] = (uint8_t)q;
    }
    for (uint32_t i = 0; i < OPS; i++) {
        for (uint32_t q = 0; q < f->queues; q++) {
            if (i < f->count[q]) {
                enqueue_forward(s, f, queues, bases, host, q, i, &others[q]);
            }
        }
    }
    for (uint32_t q = 0; q < f->queues; q++) {
        lasts[q] = hdrt_queue_record(queues[q]);
        if (lasts[q].value != f->count[q] + 1) {
            bed_fail("seed %llu: queue %u is at position %llu, not %u", (unsigned long long)seed, q,
                     (unsigned long long)lasts[q].value, f->count[q] + 1);
        }
        if (f->dies[q]) {
            hdrt_queue_destroy(queues[q]);
            queues[q] = NULL;
        }
    }
    if (f->host_values) {
        MUST(hdrt_timeline_signal(host, f->host_values));
    }
    MUST(hdrt_timeline_signal(gate, 1));
    hdrt_timeline_destroy(host); /* whoever waits for more fails */
    /* The last references go: who waits for a position that nobody enqueued is told. */
    for (uint32_t q = 0; q < f->queues; q++) {
        hdrt_queue_destroy(queues[q]);
    }
    for (uint32_t q = 0; q < f->queues; q++) {
        hdrt_status status = hdrt_event_wait(s->b.runtime, lasts[q], PATIENCE_NS);
        bool good = f->reached[q] == f->count[q];
        if (status != (good ? HDRT_OK : HDRT_ERROR_EVENT_FAILED)) {
            const forward_op *op = &f->ops[q][f->reached[q] % OPS];
            bed_fail("seed %llu: queue %u, which comes to operation %u of %u, there waits for %u of %u: %s: %s",
                     (unsigned long long)seed, q, f->reached[q], f->count[q], op->value, op->producer,
                     hdrt_status_name(status), hdrt_last_error());
        }
    }
    MUST(hdrt_device_synchronize(s->b.devices[0])); /* what those did that failed later */
    MUST(hdrt_copy_dtoh(s->b.own[0], s->pinned, s->seen, QUEUES * OPS * 4));
    MUST(hdrt_queue_synchronize(s->b.own[0]));
    for (uint32_t q = 0; q < f->queues; q++) {
        if (f->reached[q] == f->count[q]) {
            check_seen(s, f, q);
        }
    }
    hdrt_timeline_destroy(gate);
}

static void run_batch(uint64_t batch)
{
    static const char *const policies[] = {"random:%llu,patience=5", "eager", "lazy:patience=5"};
    char policy[64];
    stand s;
    forward f;
    snprintf(policy, sizeof policy, policies[batch % 3], (unsigned long long)batch + 1);
    setenv("HDSOFT_POLICY", policy, 1);
    setenv("HDRT_STREAMS", batch % 2 ? "8" : "2", 1);
    setenv("HDRT_DISPATCHERS", batch % 4 < 2 ? "2" : "1", 1);
    stand_open(&s);
    for (uint64_t seed = batch * SEEDS; seed < (batch + 1) * SEEDS; seed++) {
        make_forward(&f, seed);
        move_ends(&f);
        model_forward(&f);
        run_forward(&s, &f, seed);
    }
    stand_close(&s);
}

/* ---- gated GPUs -------------------------------------------------------------------------------------------------- */

static void wait_for_flag(void *argument)
{
    atomic_bool *flag = argument;
    while (!atomic_load(flag)) {
        usleep(1000);
    }
}

/* Everything asynchronous, a hundred rounds, while the stream stands still: far within the ring, and no call waits. */
static void gated(uint64_t submission)
{
    static atomic_bool open;
    stand s;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    hdrt_queue *keeper, *queue;
    struct CUstream_st *stream;
    struct timespec start;
    hdrt_ptr passing;
    stand_open(&s);
    options.exclusive = true;
    MUST(hdrt_queue_create(s.b.devices[0], &options, &keeper));
    MUST(hdrt_queue_stream(keeper, &stream)); /* so that the host call stands in the stream */
    MUST(hdrt_queue_host_call(keeper, wait_for_flag, &open));
    options = (hdrt_queue_options)HDRT_QUEUE_OPTIONS_INIT;
    options.submission = (hdrt_submission)submission;
    options.back_pressure = HDRT_BACK_PRESSURE_WOULD_BLOCK;
    MUST(hdrt_queue_create(s.b.devices[0], &options, &queue));
    MUST(hdrt_queue_wait(queue, hdrt_queue_record(keeper)));
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (uint32_t i = 0; i < 100; i++) {
        hdrt_ptr own = s.counters, seen = s.seen;
        MUST(hdrt_launch(queue, s.step, hdrt_grid_1d(1, 1), HDRT_ARGS(own, own, seen)));
        MUST(hdrt_fill(queue, s.counters + 4, &i, 4, 1));
        MUST(hdrt_copy_dtod(queue, s.counters + 8, s.counters + 4, 4));
        MUST(hdrt_copy_dtoh(queue, s.pinned, s.counters, 8));
        MUST(hdrt_copy_htod(queue, s.seen + 8, s.pinned, 8));
        MUST(hdrt_write(queue, s.seen + 16, &i, 4));
        MUST(hdrt_alloc(queue, 4096, &passing));
        MUST(hdrt_free(queue, passing));
        MUST(hdrt_queue_wait(queue, hdrt_queue_record(keeper)));
        if (hdrt_event_query(s.b.runtime, hdrt_queue_record(queue)) != HDRT_NOT_READY) {
            bed_fail("the gate is open");
        }
    }
    hdrt_status status = HDRT_OK;
    uint64_t enqueued = 0;
    while (status == HDRT_OK) {
        hdrt_ptr own = s.counters, seen = s.seen;
        status = hdrt_launch(queue, s.step, hdrt_grid_1d(1, 1), HDRT_ARGS(own, own, seen));
        enqueued++;
    }
    double seconds = seconds_since(&start);
    if (status != HDRT_WOULD_BLOCK || hdrt_queue_record(queue).value < 4096 || seconds > 20) {
        bed_fail("after %.1f s and %llu more launches, at position %llu: %s", seconds, (unsigned long long)enqueued,
                 (unsigned long long)hdrt_queue_record(queue).value, hdrt_status_name(status));
    }
    atomic_store(&open, true);
    MUST(hdrt_queue_synchronize(queue));
    hdrt_queue_destroy(queue);
    hdrt_queue_destroy(keeper);
    stand_close(&s);
}

/* A kernel waits for a word that the next queue's kernel writes: with one shared stream only an exclusive queue can. */
static void spinning(uint64_t unused)
{
    stand s;
    hdrt_kernel *spin, *raise_flag;
    hdrt_queue *waiting, *writing;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    (void)unused;
    setenv("HDRT_STREAMS", "1", 1);
    stand_open(&s);
    MUST(hdrt_module_kernel(s.module, "spin", &spin));
    MUST(hdrt_module_kernel(s.module, "raise", &raise_flag));
    MUST(hdrt_fill(s.b.own[0], s.counters, &(uint32_t){0}, 4, 1));
    MUST(hdrt_queue_synchronize(s.b.own[0]));
    MUST(hdrt_queue_create(s.b.devices[0], NULL, &writing));
    options.exclusive = true;
    MUST(hdrt_queue_create(s.b.devices[0], &options, &waiting));
    MUST(hdrt_launch(waiting, spin, hdrt_grid_1d(1, 1), HDRT_ARGS(s.counters)));
    MUST(hdrt_launch(writing, raise_flag, hdrt_grid_1d(1, 1), HDRT_ARGS(s.counters)));
    if (hdrt_event_wait(s.b.runtime, hdrt_queue_record(waiting), PATIENCE_NS) != HDRT_OK) {
        bed_fail("the spinning kernel did not end");
    }
    hdrt_queue_destroy(waiting);
    hdrt_queue_destroy(writing);
    stand_close(&s);
}

#define SIDES 32u

/* Kernels of many queues go side by side in one template; what each queue enqueues next comes after its own. */
static void side_by_side(uint64_t unused)
{
    bed b;
    hdrt_queue *queues[SIDES];
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    hdrt_ptr cells;
    hdrt_grid grid = hdrt_grid_1d(PROGRAM_WORDS, PROGRAM_WORDS);
    uint32_t expected = 0, *read;
    void *pinned;
    unsigned long long (*call_count)(const char *entry);
    (void)unused;
    setenv("HDSOFT_POLICY", "random:5,patience=1000", 1);
    bed_open(&b, 1);
    bed_symbol(&b, "hdsoft_call_count", &call_count);
    options.submission = HDRT_SUBMISSION_DISPATCHER;
    MUST(hdrt_alloc(b.own[0], SIDES * 64, &cells));
    MUST(hdrt_host_alloc(b.devices[0], SIDES * 64, &pinned));
    MUST(hdrt_fill(b.own[0], cells, &(uint32_t){0}, 4, SIDES * PROGRAM_WORDS));
    MUST(hdrt_queue_synchronize(b.own[0]));
    for (uint32_t i = 0; i < SIDES; i++) {
        MUST(hdrt_queue_create(b.devices[0], &options, &queues[i]));
    }
    for (uint32_t value = 1; value < 60; value++) {
        for (uint32_t part = 0; part < 2; part++) {
            for (uint32_t i = 0; i < SIDES; i++) {
                hdrt_ptr cell = cells + 64 * i, stamp = b.stamps[0];
                if (part) {
                    MUST(hdrt_launch(queues[i], b.kernels[0][1], grid, HDRT_ARGS(cell, value, stamp)));
                } else {
                    MUST(hdrt_launch(queues[i], b.kernels[0][0], grid, HDRT_ARGS(cell, cell, value, stamp)));
                }
            }
            usleep(500); /* they are handed over, and hardly done */
        }
        expected = program_turn(program_mix(expected, expected, value), value);
        MUST(hdrt_device_synchronize(b.devices[0]));
    }
    MUST(hdrt_copy_dtoh(b.own[0], pinned, cells, SIDES * 64));
    MUST(hdrt_queue_synchronize(b.own[0]));
    read = pinned;
    for (uint32_t i = 0; i < SIDES * PROGRAM_WORDS; i++) {
        if (read[i] != expected) {
            bed_fail("queue %u, word %u: 0x%x, not 0x%x", i / PROGRAM_WORDS, i % PROGRAM_WORDS, read[i], expected);
        }
    }
    printf("# %llu launches of templates\n", call_count("cuGraphLaunch"));
    for (uint32_t i = 0; i < SIDES; i++) {
        hdrt_queue_destroy(queues[i]);
    }
    MUST(hdrt_free(b.own[0], cells));
    MUST(hdrt_host_free(b.devices[0], pinned));
    bed_close(&b);
}

int main(int argc, char **argv)
{
    struct timespec start;
    char name[96];
    clock_gettime(CLOCK_MONOTONIC, &start);
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t count = argc > 1 ? 1 : stress_whole() ? 2000 / SEEDS : 30;
    puts("1..4");
    bool good = batches_run(first, count, run_batch) == 0;
    snprintf(name, sizeof name, "%llu random programs that wait before they record", (unsigned long long)count * SEEDS);
    tap(1, good, name);
    tap(2, batches_run(0, 3, gated) == 0, "no call waits for a gated GPU: auto, inline, dispatcher");
    tap(3, batches_run(0, 1, spinning) == 0, "a kernel that waits for another one's word, on an exclusive queue");
    tap(4, batches_run(0, 1, side_by_side) == 0, "kernels of many queues side by side");
    printf("# %.1f s\n", seconds_since(&start));
    return 0;
}
