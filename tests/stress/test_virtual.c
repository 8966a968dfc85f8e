/* SPDX-License-Identifier: MIT */
/*
 * What the scheduler's order costs, in virtual time: programs enqueued whole before anything is handed over are at most
 * 1.02 times as long as with a mark after each operation, and the GPU waits at most 1.05 times as often as it must.
 *
 * How often it must: given the stream and the place in it that the scheduler chose for each operation, taken in the order
 * in which they were handed over. An operation needs, of each other stream, the last operation there that comes before it
 * by the program's edges. It is no wait if the stream already comes after that, by the waits before, each of which brings
 * all that its operation came after; nor if another one that is needed brings it. The rest are counted: the edges of the
 * transitive reduction between streams.
 */
#include "batches.h"
#include "execute.h"

#include "queue/stream.h"

#include <sys/mman.h>

#define SEEDS 25u     /* in a batch */
#define STREAMS 40u

/* ---- what went where --------------------------------------------------------------------------------------------- */

typedef struct flown {
    const hdrt_queue *queue;
    const hdrt__stream *stream;
    uint64_t position;
} flown;

static struct {
    pthread_mutex_t lock;
    uint32_t count;
    flown all[8192];
} flights = {.lock = PTHREAD_MUTEX_INITIALIZER};

void __real_hdrt__stream_fly(hdrt__stream *stream, hdrt_queue *queue, uint64_t position);
void __wrap_hdrt__stream_fly(hdrt__stream *stream, hdrt_queue *queue, uint64_t position);
void __wrap_hdrt__stream_fly(hdrt__stream *stream, hdrt_queue *queue, uint64_t position)
{
    pthread_mutex_lock(&flights.lock);
    if (flights.count == sizeof flights.all / sizeof flights.all[0]) {
        bed_fail("more flights than there is room for");
    }
    flights.all[flights.count++] = (flown){queue, stream, position};
    pthread_mutex_unlock(&flights.lock);
    __real_hdrt__stream_fly(stream, queue, position);
}

/* ---- the least number of waits ----------------------------------------------------------------------------------- */

typedef struct optimum {
    const program_graph *program;
    const bed *b;
    const hdrt__stream *streams[STREAMS];
    uint32_t stream_count, waits;
    /* Commands of each stream that come before its next one; that each operation comes after, itself included. */
    uint16_t clock[STREAMS][STREAMS], after[PROGRAM_OPS][STREAMS];
    uint16_t commands[STREAMS]; /* so far */
    uint16_t pending[PROGRAM_QUEUES][STREAMS]; /* that a queue's next operation needs of each stream */
    uint32_t next[PROGRAM_QUEUES]; /* the queue's first operation that has not gone */
} optimum;

static uint32_t stream_number(optimum *o, const hdrt__stream *stream)
{
    uint32_t i = 0;
    while (i < o->stream_count && o->streams[i] != stream) {
        i++;
    }
    if (i == o->stream_count) {
        if (i == STREAMS) {
            bed_fail("more streams than there is room for");
        }
        o->streams[o->stream_count++] = stream;
    }
    return i;
}

static void join(uint16_t *clock, const uint16_t *other)
{
    for (uint32_t i = 0; i < STREAMS; i++) {
        clock[i] = other[i] > clock[i] ? other[i] : clock[i];
    }
}

/* What is known when the stream has waited for the n-th command of another: that operation's own knowledge. */
typedef struct known_command {
    uint16_t clock[STREAMS];
} known_command;
static known_command known[STREAMS][PROGRAM_OPS + 1];

/* The queue's needs are met in a stream: by what it knows, or by waits. */
static void meet_needs(optimum *o, uint32_t queue, uint32_t stream)
{
    uint16_t *needs = o->pending[queue];
    for (uint32_t i = 0; i < o->stream_count; i++) {
        if (i == stream || needs[i] <= o->clock[stream][i]) {
            needs[i] = 0;
        }
    }
    for (uint32_t i = 0; i < o->stream_count; i++) {
        for (uint32_t k = 0; k < o->stream_count && needs[i]; k++) {
            if (k != i && needs[k] && known[k][needs[k]].clock[i] >= needs[i]) {
                needs[i] = 0;
            }
        }
    }
    for (uint32_t i = 0; i < o->stream_count; i++) {
        if (needs[i]) {
            o->waits++;
            join(o->clock[stream], known[i][needs[i]].clock);
            needs[i] = 0;
        }
    }
}

/* One operation of the queue goes, to a stream if it has a command. */
static void go(optimum *o, uint32_t index, uint32_t stream)
{
    const program_op *op = &o->program->ops[index];
    uint32_t queue = op->queue;
    if (op->kind == PROGRAM_WAIT) {
        join(o->pending[queue], o->after[op->event]);
    } else if (op->kind < PROGRAM_WAIT && op->kind != PROGRAM_EMPTY) {
        meet_needs(o, queue, stream);
        o->clock[stream][stream] = ++o->commands[stream];
        memcpy(known[stream][o->commands[stream]].clock, o->clock[stream], sizeof o->clock[stream]);
        memset(o->pending[queue], 0, sizeof o->pending[queue]);
        o->pending[queue][stream] = o->commands[stream];
    }
    memcpy(o->after[index], o->pending[queue], sizeof o->after[index]);
}

static uint32_t queue_number(const optimum *o, const hdrt_queue *queue)
{
    uint32_t i = 0;
    while (i < PROGRAM_QUEUES && o->b->queues[i] != queue) {
        i++;
    }
    return i;
}

/* The operations without commands up to a waited one's event: a wait for a wait needs what that waits for. */
static void go_up_to(optimum *o, uint32_t queue, uint64_t position, uint32_t stream)
{
    for (uint32_t i = o->next[queue]; i < o->program->op_count; i++) {
        const program_op *op = &o->program->ops[i];
        if (op->queue != queue || op->kind >= PROGRAM_OPEN) {
            continue;
        }
        if (o->b->events[i].value > position) {
            break;
        }
        if (op->kind == PROGRAM_WAIT && o->next[o->program->ops[op->event].queue] <= op->event) {
            /* Its queue has not flown since: what is there has no command of its own. */
            go_up_to(o, o->program->ops[op->event].queue, o->b->events[op->event].value, stream);
        }
        go(o, i, stream);
        o->next[queue] = i + 1;
    }
}

static uint32_t least_waits(const program_graph *program, const bed *b)
{
    static optimum o;
    memset(&o, 0, sizeof o);
    o.program = program;
    o.b = b;
    for (uint32_t i = 0; i < flights.count; i++) {
        uint32_t queue = queue_number(&o, flights.all[i].queue);
        if (queue < PROGRAM_QUEUES) {
            go_up_to(&o, queue, flights.all[i].position, stream_number(&o, flights.all[i].stream));
        }
    }
    return o.waits;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

typedef struct measure {
    bed b;
    unsigned long long (*makespan)(void), (*clock_now)(void), (*gpu_waits)(void);
    const program_graph *program; /* NULL: the least is known */
    unsigned long long span, waits, least;
} measure;

/* Everything is enqueued and the gate open: virtual time stands still until the host waits. */
static void measure_execution(void *context)
{
    measure *m = context;
    unsigned long long begun = m->clock_now(), waits = m->gpu_waits();
    usleep(3000); /* in which the dispatcher hands all over */
    MUST(hdrt_device_synchronize(m->b.devices[0]));
    m->span = m->makespan() - begun;
    m->waits = m->gpu_waits() - waits;
    m->least = m->program ? least_waits(m->program, &m->b) : 0;
}

static void measure_open(measure *m, bool eager)
{
    memset(m, 0, sizeof *m);
    setenv("HDSOFT_POLICY", "virtual:patience=0", 1);
    setenv("HDRT_STREAMS", "8", 1);
    setenv("HDRT_TEMPLATES", "off", 1);
    setenv("HDRT_RECORDING", eager ? "eager" : "flagged", 1);
    bed_open(&m->b, 1);
    m->b.submission = HDRT_SUBMISSION_DISPATCHER;
    bed_symbol(&m->b, "hdsoft_makespan", &m->makespan);
    bed_symbol(&m->b, "hdsoft_clock_now", &m->clock_now);
    bed_symbol(&m->b, "hdsoft_gpu_waits", &m->gpu_waits);
}

/* Sums over the batches, which share them: [0] flagged, [1] eager. */
typedef struct sums {
    _Atomic uint64_t spans[2], waits[2], least[2];
} sums;
static sums *shared;

static void run_batch(uint64_t batch)
{
    static program_graph program;
    static program_result result, expected;
    measure m;
    bool eager = batch & 1;
    measure_open(&m, eager);
    program_options options = {.no_host = true, .gated = true};
    for (uint64_t seed = batch / 2 * SEEDS; seed < (batch / 2 + 1) * SEEDS; seed++) {
        program_generate(&program, seed, &options);
        program_start(&expected, seed, 1);
        program_model(&program, &expected);
        flights.count = 0;
        m.program = &program;
        bed_execute(&m.b, &program, &result, measure_execution, &m);
        if (!bed_compare(&program, &result, &expected, "virtual")) {
            exit(1);
        }
        atomic_fetch_add(&shared->spans[eager], m.span);
        atomic_fetch_add(&shared->waits[eager], m.waits);
        atomic_fetch_add(&shared->least[eager], m.least);
        if (getenv("HDRT_STRESS_TELL")) {
            fprintf(stderr, "# seed %llu %s: %llu ns, %llu waits, %llu needed\n", (unsigned long long)seed,
                    eager ? "eager" : "flagged", m.span, m.waits, m.least);
        }
    }
    bed_close(&m.b);
}

/* ---- the double buffer ------------------------------------------------------------------------------------------- */

#define BATCHES 64u
#define BUFFER_BYTES ((uint64_t)1 << 20)

static void double_buffer(uint64_t eager)
{
    measure m;
    hdrt_queue *load, *work;
    hdrt_timeline *gate;
    hdrt_event emptied[2] = {{0, 0}, {0, 0}};
    hdrt_ptr buffers[2];
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    void *pinned;
    measure_open(&m, eager);
    options.submission = HDRT_SUBMISSION_DISPATCHER;
    MUST(hdrt_queue_create(m.b.devices[0], &options, &load));
    MUST(hdrt_queue_create(m.b.devices[0], &options, &work));
    MUST(hdrt_host_alloc(m.b.devices[0], BUFFER_BYTES, &pinned));
    MUST(hdrt_alloc(m.b.own[0], BUFFER_BYTES, &buffers[0]));
    MUST(hdrt_alloc(m.b.own[0], BUFFER_BYTES, &buffers[1]));
    MUST(hdrt_queue_synchronize(m.b.own[0]));
    MUST(hdrt_timeline_create(m.b.runtime, &gate));
    MUST(hdrt_queue_wait(load, hdrt_timeline_event(gate, 1)));
    MUST(hdrt_queue_wait(work, hdrt_timeline_event(gate, 1)));
    for (uint32_t i = 0; i < BATCHES; i++) {
        hdrt_ptr buffer = buffers[i & 1], stamp = m.b.stamps[0];
        MUST(hdrt_queue_wait(load, emptied[i & 1]));
        MUST(hdrt_copy_htod(load, buffer, pinned, BUFFER_BYTES));
        MUST(hdrt_queue_wait(work, hdrt_queue_record(load)));
        for (uint32_t k = 0; k < 12; k++) {
            MUST(hdrt_launch(work, m.b.kernels[0][1], hdrt_grid_1d(16, 16), HDRT_ARGS(buffer, i, stamp)));
        }
        emptied[i & 1] = hdrt_queue_record(work);
    }
    MUST(hdrt_timeline_signal(gate, 1));
    measure_execution(&m);
    atomic_fetch_add(&shared->spans[eager], m.span);
    atomic_fetch_add(&shared->waits[eager], m.waits);
    atomic_fetch_add(&shared->least[eager], 2 * BATCHES - 2); /* one for each direction, but for the first two */
    hdrt_timeline_destroy(gate);
    MUST(hdrt_free(m.b.own[0], buffers[0]));
    MUST(hdrt_free(m.b.own[0], buffers[1]));
    MUST(hdrt_host_free(m.b.devices[0], pinned));
    hdrt_queue_destroy(load);
    hdrt_queue_destroy(work);
    bed_close(&m.b);
}

/* ---- what nothing orders overlaps -------------------------------------------------------------------------------- */

#define OVERLAP_NS 32000u /* a fill, a wait and one of the two copies take 24 us; both copies 45 */

/* A queue fills; two copies in opposite directions come after that, of which one's queue is third, the other's `second`. */
static void overlap_of(bool same_queue)
{
    measure m;
    hdrt_queue *queues[3];
    hdrt_timeline *gate;
    hdrt_ptr buffers[2];
    void *pinned[2];
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    measure_open(&m, false);
    options.submission = HDRT_SUBMISSION_DISPATCHER;
    MUST(hdrt_timeline_create(m.b.runtime, &gate));
    for (uint32_t i = 0; i < 3; i++) {
        MUST(hdrt_queue_create(m.b.devices[0], &options, &queues[i]));
        MUST(hdrt_queue_wait(queues[i], hdrt_timeline_event(gate, 1)));
    }
    for (uint32_t i = 0; i < 2; i++) {
        MUST(hdrt_alloc(m.b.own[0], BUFFER_BYTES, &buffers[i]));
        MUST(hdrt_host_alloc(m.b.devices[0], BUFFER_BYTES, &pinned[i]));
    }
    MUST(hdrt_queue_synchronize(m.b.own[0]));
    MUST(hdrt_fill(queues[0], buffers[0], &(uint32_t){1}, 4, 1));
    hdrt_event filled = hdrt_queue_record(queues[0]);
    hdrt_queue *second = same_queue ? queues[0] : queues[1];
    MUST(hdrt_queue_wait(second, filled));
    MUST(hdrt_copy_htod(second, buffers[1], pinned[1], BUFFER_BYTES));
    MUST(hdrt_queue_wait(queues[2], filled));
    MUST(hdrt_copy_dtoh(queues[2], pinned[0], buffers[0], BUFFER_BYTES));
    MUST(hdrt_timeline_signal(gate, 1));
    measure_execution(&m);
    if (m.span > OVERLAP_NS) {
        bed_fail("%s: two copies that nothing orders take %llu ns", same_queue ? "one queue goes on" : "a queue joins",
                 m.span);
    }
    for (uint32_t i = 0; i < 3; i++) {
        hdrt_queue_destroy(queues[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        MUST(hdrt_free(m.b.own[0], buffers[i]));
        MUST(hdrt_host_free(m.b.devices[0], pinned[i]));
    }
    hdrt_timeline_destroy(gate);
    bed_close(&m.b);
}

static void overlap(uint64_t same_queue)
{
    overlap_of(same_queue);
}

/* ---- judging ----------------------------------------------------------------------------------------------------- */

static bool judge(const char *name, bool ran)
{
    double span = (double)shared->spans[0] / (double)shared->spans[1];
    double waits = (double)shared->waits[0] / (double)shared->least[0];
    printf("# %s: makespan %.4f of eager recording's; %llu waits of the GPU for %llu needed: %.4f (eager %llu for %llu)\n",
           name, span, (unsigned long long)shared->waits[0], (unsigned long long)shared->least[0], waits,
           (unsigned long long)shared->waits[1], (unsigned long long)shared->least[1]);
    bool good = ran && span <= 1.02 && waits <= 1.05;
    memset(shared, 0, sizeof *shared);
    return good;
}

int main(int argc, char **argv)
{
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return 1;
    }
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t count = argc > 1 ? 2 : stress_whole() ? 2 * 1000 / SEEDS : 4;
    puts("1..3");
    bool ran = batches_run(0, 2, double_buffer) == 0;
    tap(1, judge("double buffer", ran), "the double buffer, enqueued whole");
    ran = batches_run(first, count, run_batch) == 0;
    tap(2, judge("random programs", ran), "random programs, enqueued whole");
    tap(3, batches_run(0, 2, overlap) == 0, "what comes later in a producer's stream is not waited for");
    printf("# %llu programs, %.1f s\n", (unsigned long long)count / 2 * SEEDS, seconds_since(&start));
    return 0;
}
