/* SPDX-License-Identifier: MIT */
#include "soft/model/simulate.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/model/executor.h"
#include "soft/model/trace.h"

/* Shares of a multiprocessor: divisible by each number of blocks up to 32, so that no share is rounded. */
#define MULTIPROCESSOR UINT64_C(144403552893600)
#define MOST_BLOCKS_EACH 32
/* So many steps of a kernel come before anything else; most are through then. */
#define FIRST_STEPS 8
/* A kernel that is not through after so many steps may be waiting for what comes later. */
#define SPIN_STEPS 256
#define HOST_GRACE_NS 100000000u

enum { H2D, D2H, D2D, P2P, DIRECTIONS };

/*
 *   kernel:         STARTING -> QUEUED -> EXECUTING (its length is not known yet) -> RUNNING -> done
 *   copy:           QUEUED -> ENDING -> done
 *   host function:  QUEUED -> EXECUTING -> ENDING -> done
 *   a wait:         QUEUED (looked at) -> ENDING -> done
 *   anything else:  ENDING -> done
 */
enum { STARTING, QUEUED, EXECUTING, RUNNING, ENDING };

/* Something that happens at a time; those of one time in the order in which they were found out. */
typedef struct happening {
    uint64_t time, order, blocks;
    hdsoft__work *work;
} happening;

/* Works that want a resource: by priority, then by order. */
typedef struct work_queue {
    hdsoft__work *first;
} work_queue;

typedef struct simulated_device {
    work_queue kernels, copies[DIRECTIONS], hosts;
    work_queue polling;                 /* waits for memory, and for the events of graphs */
    uint64_t room, free_engines[DIRECTIONS], kernels_begun;
    hdsoft__work *live;            /* kernels that have begun and are not executed to their end */
    unsigned spins;                /* rounds since one of them began or came to its end */
    bool host_busy;
    uint64_t called;               /* real time, when the host function began that is running */
} simulated_device;

static struct {
    happening *heap;
    size_t count, capacity;
    uint64_t order, limit, makespan;
    uint64_t asked, answered;
    uint64_t settled;              /* up to this sequence all has begun that can */
    bool dirty;                    /* something was done: others may begin */
    simulated_device machines[HDSOFT__DEVICES];
} world;

static const hdsoft__costs *costs(void)
{
    return &hdsoft__the.options.costs;
}

static hdsoft__device *device_of(const hdsoft__work *work)
{
    return work->command->stream->context->device;
}

static simulated_device *machine_of(const hdsoft__work *work)
{
    return &world.machines[device_of(work)->ordinal];
}

static uint64_t capacity(void)
{
    return costs()->sms * MULTIPROCESSOR;
}

static void make_machine(simulated_device *machine)
{
    memset(machine, 0, sizeof *machine);
    machine->room = capacity();
    for (unsigned i = 0; i < DIRECTIONS; i++)
        machine->free_engines[i] = costs()->engines;
}

/* ---- what happens when ---- */

static bool before(const happening *a, const happening *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void sift_down(size_t at)
{
    happening moved = world.heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < world.count && before(&world.heap[child + 1], &world.heap[child]))
            child++;
        if (child >= world.count || !before(&world.heap[child], &moved))
            break;
        world.heap[at] = world.heap[child];
        at = child;
    }
    world.heap[at] = moved;
}

static void schedule(hdsoft__work *work, uint64_t time, uint64_t blocks)
{
    if (world.count == world.capacity) {
        size_t capacity = world.capacity ? 2 * world.capacity : 256;
        happening *grown = realloc(world.heap, capacity * sizeof *grown);
        if (!grown) {
            hdsoft__fault(device_of(work), HDCU_ERROR_LAUNCH_FAILED, "the soft driver's simulation: no host memory");
            return;
        }
        world.heap = grown;
        world.capacity = capacity;
    }
    happening fresh = {time, ++world.order, blocks, work};
    size_t at = world.count++;
    while (at && before(&fresh, &world.heap[(at - 1) / 2])) {
        world.heap[at] = world.heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    world.heap[at] = fresh;
}

static happening next_happening(void)
{
    happening first = world.heap[0];
    world.heap[0] = world.heap[--world.count];
    if (world.count)
        sift_down(0);
    return first;
}

/* The works of a faulted device are about to be dropped. */
static void forget(hdsoft__device *device)
{
    size_t kept = 0;
    for (size_t i = 0; i < world.count; i++) {
        if (device_of(world.heap[i].work) != device)
            world.heap[kept++] = world.heap[i];
    }
    world.count = kept;
    for (size_t i = kept / 2; i-- > 0;)
        sift_down(i);
    make_machine(&world.machines[device->ordinal]);
}

/* ---- queues ---- */

static int64_t rank(const hdsoft__work *work)
{
    return work->command->stream->priority;
}

static void put(work_queue *queue, hdsoft__work *work)
{
    work->simulated.phase = QUEUED;
    work->simulated.order = ++world.order;
    hdsoft__work **at = &queue->first;
    while (*at && (rank(*at) < rank(work) ||
                   (rank(*at) == rank(work) && (*at)->simulated.order < work->simulated.order)))
        at = &(*at)->simulated.next;
    work->simulated.next = *at;
    *at = work;
}

static uint64_t time_of(uint64_t fixed, uint64_t bytes, uint64_t megabytes_per_second)
{
    if (!megabytes_per_second)
        return fixed;
    /* 1 MB/s is a byte in 1000 ns. */
    unsigned __int128 scaled = (unsigned __int128)bytes * 1000 + megabytes_per_second - 1;
    return fixed + (uint64_t)(scaled / megabytes_per_second);
}

/* ---- copies ---- */

static int place_of(uint64_t address)
{
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        if (hdsoft__memory_is_device(hdsoft__the.devices[i].memory, address))
            return (int)i;
    }
    return -1;
}

static unsigned direction_of(const hdsoft__copy *copy)
{
    int from = copy->source.pageable || copy->staged ? -1 : place_of(copy->source.address);
    int to = copy->destination.pageable ? -1 : place_of(copy->destination.address);
    if (to < 0)
        return D2H;
    return from < 0 ? H2D : from == to ? D2D : P2P;
}

static void begin(hdsoft__work *work)
{
    work->begun = true;
    work->simulated.since = hdsoft__the.clock;
    hdsoft__trace_begin(work);
}

static void end_at(hdsoft__work *work, uint64_t time, uint64_t which)
{
    work->simulated.phase = ENDING;
    schedule(work, time, which);
}

static void dispatch_copies(simulated_device *machine)
{
    const uint64_t rates[DIRECTIONS] = {costs()->h2d, costs()->d2h, costs()->d2d, costs()->p2p};
    for (unsigned i = 0; i < DIRECTIONS; i++) {
        work_queue *queue = &machine->copies[i];
        for (; queue->first && machine->free_engines[i]; machine->free_engines[i]--) {
            hdsoft__work *work = queue->first;
            const hdsoft__copy *copy = &work->task->copy;
            uint64_t bytes = copy->width * copy->height * copy->depth;
            queue->first = work->simulated.next;
            begin(work);
            end_at(work, time_of(hdsoft__the.clock + costs()->copy, bytes, rates[i]), i);
        }
    }
}

/* ---- kernels ---- */

static void queue_kernel(hdsoft__work *work)
{
    const hdsoft__launch *launch = &work->task->launch;
    uint64_t each = launch->blocks_each;
    each = each < 1 ? 1 : each > MOST_BLOCKS_EACH ? MOST_BLOCKS_EACH : each;
    work->simulated.blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    work->simulated.unit = MULTIPROCESSOR / each;
    /* A cooperative kernel that fits an H200 fits a smaller device too: it has no choice. */
    if (launch->cooperative && work->simulated.unit > capacity() / work->simulated.blocks)
        work->simulated.unit = capacity() / work->simulated.blocks;
    put(&machine_of(work)->kernels, work);
}

static void append_live(simulated_device *machine, hdsoft__work *work)
{
    hdsoft__work **at = &machine->live;
    while (*at)
        at = &(*at)->simulated.next_live;
    work->simulated.next_live = NULL;
    *at = work;
    machine->spins = 0;
}

/* How many more of a kernel's blocks can begin now. */
static uint64_t blocks_that_fit(const simulated_device *machine, const hdsoft__work *work)
{
    uint64_t left = work->simulated.blocks - work->simulated.started;
    uint64_t fit = machine->room / work->simulated.unit;
    if (!work->simulated.started && machine->kernels_begun == costs()->kernels)
        return 0;
    if (fit >= left)
        return left;
    return work->task->launch.cooperative ? 0 : fit;
}

/* Let blocks begin while there is room. A kernel's later blocks wait until its length is known, and so do those of the
 * kernels behind it, unless it spins. */
static void dispatch_kernels(simulated_device *machine)
{
    hdsoft__work **at = &machine->kernels.first;
    while (*at) {
        hdsoft__work *work = *at;
        if (work->simulated.phase == EXECUTING) {
            if (machine->spins < SPIN_STEPS)
                return;
            at = &work->simulated.next;
            continue;
        }
        uint64_t fit = blocks_that_fit(machine, work);
        if (!fit)
            return;
        machine->room -= fit * work->simulated.unit;
        work->simulated.started += fit;
        bool all = work->simulated.started == work->simulated.blocks;
        if (all) {
            *at = work->simulated.next;
            hdsoft__work_begun(work);
            world.dirty = true;
        }
        if (work->simulated.phase == QUEUED) {
            machine->kernels_begun++;
            begin(work);
            work->simulated.phase = EXECUTING;
            append_live(machine, work);
        } else {
            schedule(work, hdsoft__the.clock + work->simulated.length, fit);
        }
        if (!all)
            return;
    }
}

/* How long a kernel's blocks take, by what has been executed so far. */
static uint64_t length_of(const hdsoft__work *work)
{
    unsigned __int128 picoseconds = (unsigned __int128)work->executed * costs()->instruction +
                                    (unsigned __int128)work->slept * 1000;
    unsigned __int128 blocks = (unsigned __int128)work->simulated.blocks * 1000;
    return costs()->block + (uint64_t)((picoseconds + blocks - 1) / blocks);
}

/* A kernel was executed: now its length is known. */
static void executed(hdsoft__work *work)
{
    uint64_t now = hdsoft__the.clock;
    work->simulated.length = length_of(work);
    work->simulated.phase = RUNNING;
    uint64_t end = work->simulated.since + work->simulated.length;
    schedule(work, end > now ? end : now, work->simulated.started);
}

/* One step of each kernel that is being executed. */
static void step_live(hdsoft__device *device)
{
    simulated_device *machine = &world.machines[device->ordinal];
    machine->spins += machine->spins < SPIN_STEPS;
    for (hdsoft__work **at = &machine->live; *at && !atomic_load(&device->fault);) {
        hdsoft__work *work = *at;
        int status = hdsoft__work_step_only(device, work, 0);
        if (status < 0)
            return;
        if (status) {
            at = &work->simulated.next_live;
            continue;
        }
        *at = work->simulated.next_live;
        machine->spins = 0;
        executed(work);
    }
}

static void blocks_ended(hdsoft__work *work, uint64_t blocks)
{
    simulated_device *machine = machine_of(work);
    machine->room += blocks * work->simulated.unit;
    work->simulated.done += blocks;
    if (work->simulated.done < work->simulated.blocks)
        return;
    machine->kernels_begun--;
    world.makespan = hdsoft__the.clock;
    world.dirty = true;
    hdsoft__work_done(work);
}

/* ---- host functions and waits ---- */

static void dispatch_host(hdsoft__device *device, simulated_device *machine)
{
    hdsoft__work *work = machine->hosts.first;
    if (!work || machine->host_busy || device->call)
        return;
    machine->hosts.first = work->simulated.next;
    machine->host_busy = true;
    machine->called = hdsoft__now();
    work->simulated.phase = EXECUTING;
    work->simulated.since = hdsoft__the.clock;
    hdsoft__work_call(device, work);
}

void hdsoft__simulate_returned(hdsoft__work *work)
{
    uint64_t end = work->simulated.since + costs()->host, now = hdsoft__the.clock;
    end_at(work, end > now ? end : now, 0);
}

static void look(hdsoft__device *device, simulated_device *machine)
{
    for (hdsoft__work **at = &machine->polling.first; *at;) {
        hdsoft__work *work = *at;
        work->idle = false;
        if (hdsoft__must_poll(device, work, false)) {
            at = &work->simulated.next;
            continue;
        }
        *at = work->simulated.next;
        uint64_t cost = work->task->kind == HDSOFT__TASK_WAIT_EVENT ? costs()->wait : costs()->value;
        end_at(work, hdsoft__the.clock + cost, 0);
    }
}

/* ---- works ---- */

/* A work whose turn it is, at the present time. */
static void start(hdsoft__work *work)
{
    const hdsoft__command *command = work->command;
    const hdsoft__task *task = work->task;
    simulated_device *machine = machine_of(work);
    uint64_t now = hdsoft__the.clock;
    switch (task ? task->kind : HDSOFT__TASK_NONE) {
    case HDSOFT__TASK_KERNEL:
        work->simulated.phase = STARTING;
        schedule(work, now + (command->order ? costs()->node : costs()->launch), 0);
        break;
    case HDSOFT__TASK_COPY: put(&machine->copies[direction_of(&task->copy)], work); break;
    case HDSOFT__TASK_HOST: put(&machine->hosts, work); break;
    case HDSOFT__TASK_WAIT_VALUE:
    case HDSOFT__TASK_WAIT_EVENT: put(&machine->polling, work); break;
    case HDSOFT__TASK_FILL:
        begin(work);
        end_at(work, time_of(now + costs()->fill, task->fill.width * task->fill.height * task->fill.element_size,
                             costs()->set), 0);
        break;
    case HDSOFT__TASK_WRITE_VALUE: end_at(work, now + costs()->value, 0); break;
    case HDSOFT__TASK_RECORD_EVENT: end_at(work, now + costs()->record, 0); break;
    case HDSOFT__TASK_NONE:
        end_at(work, now + (command->mark ? costs()->record : command->is_wait ? costs()->wait : 0), 0);
        break;
    default: end_at(work, now, 0); break;
    }
}

static void end(hdsoft__work *work, uint64_t which)
{
    hdsoft__device *device = device_of(work);
    simulated_device *machine = machine_of(work);
    hdsoft__task_kind kind = work->task ? work->task->kind : HDSOFT__TASK_NONE;
    if (kind == HDSOFT__TASK_COPY)
        machine->free_engines[which]++;
    if (kind == HDSOFT__TASK_HOST) {
        machine->host_busy = false;
    } else {
        int status;
        do
            status = hdsoft__work_step_only(device, work, UINT64_MAX);
        while (status == 1);
        if (status == 2) /* the memory that it waits for has changed again */
            put(&machine->polling, work);
        if (status)
            return;
    }
    world.makespan = hdsoft__the.clock;
    world.dirty = true;
    hdsoft__work_done(work);
}

static void happen(const happening *what)
{
    hdsoft__work *work = what->work;
    switch (work->simulated.phase) {
    case STARTING: queue_kernel(work); break;
    case RUNNING: blocks_ended(work, what->blocks); break;
    default: end(work, what->blocks); break;
    }
}

/* Start what the streams have got to. */
static void begin_ready(void)
{
    world.dirty = false;
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        hdsoft__stream *stream = hdsoft__the.devices[i].busy, *first = stream;
        if (!stream)
            continue;
        do {
            hdsoft__command *command = stream->first;
            if (command->begun || hdsoft__dependencies_met(command, false)) {
                command->begun = true;
                while (command->ready_count)
                    start(hdsoft__work_take(command, 0));
            }
            stream = stream->busy_next;
        } while (stream != first);
    }
    world.settled = hdsoft__the.next_sequence;
}

/* ---- the loop ---- */

/* Until when nothing depends on how long the kernels take that are being executed: they have that much behind them.
 * Those that go on for ever do not count. */
static uint64_t horizon(bool *live)
{
    uint64_t until = UINT64_MAX;
    *live = false;
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        const simulated_device *machine = &world.machines[i];
        for (const hdsoft__work *work = machine->live; work; work = work->simulated.next_live) {
            uint64_t end = machine->spins < FIRST_STEPS ? 0 : work->simulated.since + length_of(work);
            *live = true;
            if (end < until && machine->spins < SPIN_STEPS)
                until = end;
        }
    }
    return until;
}

/* Faulted devices are emptied, what waited for too long is forced. Whether nobody wants anything to happen. */
static bool must_rest(uint64_t *until)
{
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        hdsoft__device *device = &hdsoft__the.devices[i];
        if (atomic_load(&device->fault) && device->busy) {
            forget(device);
            hdsoft__drain(device);
            world.dirty = true; /* others may have waited for it */
        }
        hdsoft__force_overdue(device, until);
    }
    return !hdsoft__the.demand && world.asked == world.answered;
}

/* Until when a running host function must be waited for, so that its end has a fixed place; 0: no longer. */
static uint64_t host_grace(void)
{
    uint64_t until = 0;
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        uint64_t end = world.machines[i].called + HOST_GRACE_NS;
        if (hdsoft__the.devices[i].call && end > until && hdsoft__now() < end)
            until = end;
    }
    return until;
}

/* All that can happen at the present time has. Let resources be taken; whether something was changed by that. */
static bool dispatch_all(void)
{
    uint64_t order = world.order;
    bool called = false;
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        hdsoft__device *device = &hdsoft__the.devices[i];
        simulated_device *machine = &world.machines[i];
        look(device, machine);
        dispatch_copies(machine);
        dispatch_kernels(machine);
        dispatch_host(device, machine);
        called |= device->call != NULL && machine->called + HOST_GRACE_NS > hdsoft__now();
    }
    return order != world.order || called;
}

static bool step_all_live(void)
{
    for (unsigned i = 0; i < hdsoft__the.device_count; i++)
        step_live(&hdsoft__the.devices[i]);
    return true;
}

/* The next step of the simulation at the present time, or to the next one. False: there is none. */
static bool advance(void)
{
    bool live;
    if (world.dirty || world.settled != hdsoft__the.next_sequence)
        begin_ready();
    if (world.count && world.heap[0].time <= hdsoft__the.clock) {
        happening next = next_happening();
        happen(&next);
        return true;
    }
    if (dispatch_all())
        return true;
    uint64_t known = horizon(&live);
    if (!world.count || (!hdsoft__the.demand && world.heap[0].time > world.limit))
        return live && (hdsoft__the.demand || known < world.limit) ? step_all_live() : false;
    if (live && (world.heap[0].time > known || known == UINT64_MAX))
        step_all_live();
    if (world.heap[0].time <= known)
        hdsoft__the.clock = world.heap[0].time;
    return true;
}

static void answer(void)
{
    if (world.limit > hdsoft__the.clock)
        hdsoft__the.clock = world.limit;
    world.answered = world.asked;
    hdsoft__wake();
}

void *hdsoft__simulate_main(void *first)
{
    uint64_t pause = HDSOFT__POLL_FIRST_NS;
    hdsoft__lock();
    for (unsigned i = 0; i < hdsoft__the.device_count; i++)
        make_machine(&world.machines[i]);
    for (;;) {
        uint64_t until = UINT64_MAX, grace;
        if (must_rest(&until)) {
            hdsoft__executor_sleep(first, until);
        } else if ((grace = host_grace())) {
            hdsoft__executor_sleep(first, grace);
        } else if (advance()) {
            pause = HDSOFT__POLL_FIRST_NS;
        } else if (world.asked != world.answered) {
            answer();
        } else { /* a stream waits for memory, or a host function takes long */
            uint64_t next = hdsoft__now() + pause;
            hdsoft__executor_sleep(first, next < until ? next : until);
            pause = pause < HDSOFT__POLL_MOST_NS ? 2 * pause : HDSOFT__POLL_MOST_NS;
        }
    }
    return NULL;
}

/* ---- the host's side ---- */

/* Let all happen that is due by a time, and the clock be there. */
static void ask(uint64_t limit)
{
    if (!hdsoft__the.devices[0].running) {
        hdsoft__the.clock = limit > hdsoft__the.clock ? limit : hdsoft__the.clock;
        return;
    }
    world.limit = limit;
    uint64_t mine = ++world.asked;
    hdsoft__executor_signal(&hdsoft__the.devices[0]);
    while (world.answered < mine)
        hdsoft__wait_progress();
}

void hdsoft__simulate_query(hdsoft__stream *stream, uint64_t position, bool force)
{
    ask(hdsoft__the.clock);
    if (force && !hdsoft__reached(stream, position) && world.count)
        ask(world.heap[0].time);
}

void hdsoft__clock_advance(unsigned long long ns)
{
    hdsoft__lock();
    const hdsoft__thread *thread = hdsoft__thread_state();
    if (hdsoft__the.policy == HDSOFT__VIRTUAL && thread && !thread->in_callback)
        ask(hdsoft__the.clock + ns);
    hdsoft__unlock();
}

unsigned long long hdsoft__clock_now(void)
{
    hdsoft__lock();
    uint64_t now = hdsoft__the.policy == HDSOFT__VIRTUAL ? hdsoft__the.clock : hdsoft__now();
    hdsoft__unlock();
    return now;
}

unsigned long long hdsoft__makespan(void)
{
    hdsoft__lock();
    uint64_t last = world.makespan;
    hdsoft__unlock();
    return last;
}

unsigned long long hdsoft__gpu_waits(void)
{
    hdsoft__lock();
    uint64_t waits = hdsoft__the.gpu_waits;
    hdsoft__unlock();
    return waits;
}
