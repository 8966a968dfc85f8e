/* SPDX-License-Identifier: MIT */
/*
 * Short kernels of many queues, of which many come at once, and which go out together, whichever queues they are of
 * (pending.h). Each operation writes a word of its own from the word of its queue's last one and from one of another
 * queue's that the queue has waited for; one that comes too early reads a word that is not there yet. `test_short BATCH`
 * repeats one.
 */
#include <hdrt.h>
#include <hdrt/interop.h>

#include "batches.h"
#include "jit/kernel.h"
#include "queue/commit.h"
#include "queue/template.h"

#define QUEUES 40u
#define OPS 320u      /* of a program; the word of number 0 is always there */
#define PROGRAMS 25u  /* in a batch */
#define SHORT_US 5u

static const char ptx[] =
    ".version 7.4\n.target sm_75\n.address_size 64\n"
    ".visible .entry step(.param .u64 words, .param .u32 op, .param .u32 own, .param .u32 other)\n{\n"
    " .reg .pred %q;\n .reg .b32 %r<8>;\n .reg .b64 %d<6>;\n ld.param.u64 %d1, [words];\n cvta.to.global.u64 %d1, %d1;\n"
    " ld.param.u32 %r1, [op];\n ld.param.u32 %r2, [own];\n ld.param.u32 %r3, [other];\n"
    " mul.wide.u32 %d2, %r1, 4;\n add.s64 %d2, %d2, %d1;\n mul.wide.u32 %d3, %r2, 4;\n add.s64 %d3, %d3, %d1;\n"
    " mul.wide.u32 %d4, %r3, 4;\n add.s64 %d4, %d4, %d1;\n ld.global.u32 %r4, [%d3];\n ld.global.u32 %r5, [%d4];\n"
    " mad.lo.u32 %r4, %r4, 31, %r1;\n mad.lo.u32 %r4, %r5, 17, %r4;\n mov.u32 %r6, 0;\nAGAIN:\n add.u32 %r6, %r6, 1;\n"
    " setp.lt.u32 %q, %r6, 5000;\n @%q bra AGAIN;\n st.global.u32 [%d2], %r4;\n ret;\n}\n"; /* late, and read early */

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        hdrt_status must_status_ = (call);                                                                             \
        if (must_status_ != HDRT_OK) {                                                                                 \
            fprintf(stderr, "# %s: %s\n", #call, hdrt_last_error());                                                   \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

typedef struct lane {
    hdrt_queue *queue;
    uint32_t own, other; /* operations whose words the next one reads; 0: none */
    bool held;           /* this thread is its committer: what is enqueued stays there */
} lane;

static hdrt_runtime *runtime;
static hdrt_device *device;
static hdrt_kernel *step;
static hdrt_ptr words;
static lane lanes[QUEUES];
static hdrt_event events[OPS];
static uint32_t queue_of[OPS], expected[OPS], ops;
static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

static void launch(lane *at)
{
    uint32_t op = ops++;
    MUST(hdrt_launch(at->queue, step, hdrt_grid_1d(1, 1), HDRT_ARGS(words, op, at->own, at->other)));
    expected[op] = expected[at->own] * 31 + expected[at->other] * 17 + op;
    events[op] = hdrt_queue_record(at->queue);
    queue_of[op] = (uint32_t)(at - lanes);
    at->own = op;
    at->other = 0;
}

static void wait_for_some(lane *at)
{
    uint32_t op = ops > 1 ? 1 + draw(ops - 1) : 0;
    if (op && &lanes[queue_of[op]] != at) {
        MUST(hdrt_queue_wait(at->queue, events[op]));
        at->other = op;
    }
}

/* All that is enqueued meanwhile comes at once. */
static void enqueue_some(void)
{
    bool each_once = draw(3);
    uint32_t launches = 1 + draw(each_once ? QUEUES : 2 * QUEUES), waits = draw(3) ? draw(6) : 0, first = draw(QUEUES);
    for (uint32_t i = 0; i < QUEUES; i++) {
        lanes[i].held = hdrt__committer_take(lanes[i].queue, HDRT__COMMITTER_NONE);
    }
    for (uint32_t i = 0; i < launches && ops < OPS; i++) {
        lane *at = &lanes[(first + i + (each_once ? 0 : draw(3))) % QUEUES];
        if (waits && draw(8) < waits) {
            wait_for_some(at);
        }
        launch(at);
    }
    for (uint32_t i = 0; i < QUEUES; i++) {
        if (lanes[i].held) {
            atomic_store(&step->expected_us, SHORT_US); /* whatever the last one took */
            hdrt__committer_leave(lanes[i].queue);
        }
    }
}

static void run_program(uint64_t number)
{
    uint32_t read[OPS];
    memset(read, 0, sizeof read);
    MUST(hdrt_copy_htod(lanes[0].queue, words, read, sizeof read));
    MUST(hdrt_device_synchronize(device));
    random_state = number * 2654435761u + 11;
    ops = 1;
    for (uint32_t i = 0; i < QUEUES; i++) {
        lanes[i].own = lanes[i].other = 0;
    }
    while (ops < OPS) {
        enqueue_some();
        switch (draw(4)) {
        case 0: MUST(hdrt_device_synchronize(device)); break;
        case 1: MUST(hdrt_queue_synchronize(lanes[draw(QUEUES)].queue)); break;
        case 2: usleep(200); break;
        default: break;
        }
    }
    MUST(hdrt_device_synchronize(device));
    MUST(hdrt_copy_dtoh(lanes[0].queue, read, words, sizeof read));
    MUST(hdrt_queue_synchronize(lanes[0].queue));
    for (uint32_t i = 1; i < OPS; i++) {
        if (read[i] != expected[i]) {
            fprintf(stderr, "# program %llu: operation %u of queue %u wrote 0x%x, not 0x%x\n", (unsigned long long)number, i,
                    queue_of[i], read[i], expected[i]);
            _exit(1);
        }
    }
}

static void run_batch(uint64_t batch)
{
    static const char *const policies[] = {NULL, "lazy:patience=10", NULL, NULL, NULL, "eager"};
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    hdrt_queue_options queue_options = HDRT_QUEUE_OPTIONS_INIT;
    hdrt_module *module;
    char random[64];
    unsigned long long (*calls)(const char *);
    snprintf(random, sizeof random, "random:%llu,patience=5", (unsigned long long)batch + 1);
    setenv("HDSOFT_POLICY", policies[batch % 6] ? policies[batch % 6] : random, 1);
    setenv("HDRT_STREAMS", batch % 3 ? "8" : "2", 1);
    setenv("HDRT_DISPATCHERS", batch % 2 ? "2" : "1", 1);
    queue_options.submission = HDRT_SUBMISSION_DISPATCHER;
    options.driver = HDRT_DRIVER_SOFT;
    MUST(hdrt_runtime_create(&options, &runtime));
    MUST(hdrt_device_open(runtime, 0, NULL, &device));
    MUST(hdrt_module_load(device, ptx, sizeof ptx - 1, NULL, &module));
    MUST(hdrt_module_kernel(module, "step", &step));
    for (uint32_t i = 0; i < QUEUES; i++) {
        MUST(hdrt_queue_create(device, &queue_options, &lanes[i].queue));
    }
    MUST(hdrt_alloc(lanes[0].queue, OPS * sizeof(uint32_t), &words));
    for (uint64_t i = 0; i < PROGRAMS; i++) {
        run_program(batch * PROGRAMS + i);
    }
    *(void **)&calls = hdrt_runtime_driver_symbol(runtime, "hdsoft_call_count");
    unsigned long long commands = calls ? calls("cuGraphLaunch") + calls("cuLaunchKernel") : UINT64_MAX;
    if (commands > PROGRAMS * OPS * 3 / 4) {
        fprintf(stderr, "# batch %llu: %llu commands for %u launches: few went together\n", (unsigned long long)batch, commands,
                PROGRAMS * OPS);
        _exit(1);
    }
    MUST(hdrt_free(lanes[0].queue, words));
    for (uint32_t i = 0; i < QUEUES; i++) {
        hdrt_queue_destroy(lanes[i].queue);
    }
    hdrt_module_destroy(module);
    hdrt_device_close(device);
    hdrt_runtime_destroy(runtime);
}

int main(int argc, char **argv)
{
    char name[128];
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t count = argc > 1 ? 1 : stress_whole() ? 400 : 8;
    puts("1..1");
    bool good = batches_run(first, count, run_batch) == 0;
    snprintf(name, sizeof name, "%llu programs of short kernels on many queues, as the model says",
             (unsigned long long)(count * PROGRAMS));
    tap(1, good, name);
    return 0;
}
