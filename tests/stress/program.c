/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <stdio.h>
#include <string.h>

/* ---- what is known while a program is made ----------------------------------------------------------------------- */

typedef struct maker {
    program_graph *program;
    const program_options *options;
    uint64_t random;
    uint8_t live[PROGRAM_LIVE]; /* their numbers */
    uint32_t live_count;
    bool open; /* the gate */
    bool there[PROGRAM_CELLS];
    /* Operations + 1 of each queue that come before all further ones of a queue, of the host; and of each operation. */
    uint16_t clock[PROGRAM_QUEUES + 1][PROGRAM_QUEUES];
    uint16_t seen[PROGRAM_OPS][PROGRAM_QUEUES];
    uint16_t last[PROGRAM_QUEUES];
    /* Operations + 1 that wrote a cell last, and that read it since, by queue. */
    uint16_t written[PROGRAM_CELLS], read[PROGRAM_CELLS][PROGRAM_QUEUES];
} maker;

#define HOST PROGRAM_QUEUES

static uint32_t draw(maker *m, uint32_t limit)
{
    return (uint32_t)(program_random(&m->random) >> 33) % limit;
}

static bool chance(maker *m, uint32_t of_hundred)
{
    return draw(m, 100) < of_hundred;
}

static void join(uint16_t *clock, const uint16_t *other)
{
    for (uint32_t i = 0; i < PROGRAM_QUEUES; i++) {
        clock[i] = other[i] > clock[i] ? other[i] : clock[i];
    }
}

static bool has_room(const maker *m, uint32_t count)
{
    return m->program->op_count + count <= PROGRAM_OPS;
}

/* The operation takes its place; if it has an event, that is known of it. */
static void put(maker *m, program_op op, bool has_event)
{
    uint32_t index = m->program->op_count++;
    m->program->ops[index] = op;
    if (has_event) {
        join(m->clock[op.queue], m->clock[HOST]);
        m->clock[op.queue][op.queue] = (uint16_t)(index + 1);
        m->last[op.queue] = (uint16_t)(index + 1);
        memcpy(m->seen[index], m->clock[op.queue], sizeof m->seen[index]);
    }
}

static void put_wait(maker *m, uint32_t queue, uint32_t index)
{
    join(m->clock[queue], m->seen[index]);
    m->program->wait_count++;
    put(m, (program_op){.kind = PROGRAM_WAIT, .queue = (uint8_t)queue, .event = (uint16_t)index}, true);
}

/* ---- edges ------------------------------------------------------------------------------------------------------- */

/* Operation `mark` - 1 comes before the queue's next one: as it is, or by a wait for it or for what comes later there. */
static void order(maker *m, uint32_t queue, uint32_t mark)
{
    if (!mark) {
        return;
    }
    uint32_t producer = m->program->ops[mark - 1].queue;
    join(m->clock[queue], m->clock[HOST]);
    if (producer != queue && m->clock[queue][producer] < mark) {
        put_wait(m, queue, chance(m, 25) ? m->last[producer] - 1u : mark - 1u);
    }
}

static void order_read(maker *m, uint32_t queue, uint32_t cell)
{
    order(m, queue, m->written[cell]);
}

static void order_write(maker *m, uint32_t queue, uint32_t cell)
{
    order(m, queue, m->written[cell]);
    for (uint32_t i = 0; i < PROGRAM_QUEUES; i++) {
        order(m, queue, m->read[cell][i]);
    }
}

/* An operation with its accesses: edges first. `reads`, `writes`: cells, or PROGRAM_CELLS for none. */
static void put_access(maker *m, program_op op, uint32_t reads, uint32_t writes)
{
    if (!has_room(m, 1 + 2 * PROGRAM_QUEUES)) {
        return;
    }
    if (reads < PROGRAM_CELLS) {
        order_read(m, op.queue, reads);
    }
    if (writes < PROGRAM_CELLS) {
        order_write(m, op.queue, writes);
    }
    put(m, op, true);
    if (reads < PROGRAM_CELLS) {
        m->read[reads][op.queue] = (uint16_t)m->program->op_count;
    }
    if (writes < PROGRAM_CELLS) {
        memset(m->read[writes], 0, sizeof m->read[writes]);
        m->written[writes] = (uint16_t)m->program->op_count;
    }
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static uint32_t some_queue(maker *m)
{
    /* Some are used much more than others. */
    uint32_t limit = chance(m, 50) && m->live_count > 4 ? 4 : m->live_count;
    return m->live[draw(m, limit)];
}

static uint32_t device_of(const maker *m, uint32_t queue)
{
    return m->program->queues[queue].device;
}

/* A cell of the device that is there; few are used much. */
static uint32_t some_cell(maker *m, uint32_t device)
{
    for (;;) {
        uint32_t limit = chance(m, 40) ? 4 : PROGRAM_DEVICE_CELLS;
        uint32_t cell = device * PROGRAM_DEVICE_CELLS + draw(m, limit);
        if (m->there[cell]) {
            return cell;
        }
    }
}

static uint32_t some_host_cell(maker *m)
{
    return PROGRAM_DEVICES * PROGRAM_DEVICE_CELLS + draw(m, PROGRAM_HOST_CELLS);
}

static program_op op_of(maker *m, program_kind kind, uint32_t queue, uint32_t dst, uint32_t src)
{
    return (program_op){.kind = (uint8_t)kind, .queue = (uint8_t)queue, .dst = (uint8_t)dst, .src = (uint8_t)src,
                        .value = (uint32_t)program_random(&m->random)};
}

static void put_launch(maker *m, program_kind kind, uint32_t queue, uint32_t dst, uint32_t src)
{
    put_access(m, op_of(m, kind, queue, dst, src), kind == PROGRAM_TURN ? PROGRAM_CELLS : src, dst);
}

static void some_launch(maker *m, uint32_t queue)
{
    static const program_kind kinds[] = {PROGRAM_MIX, PROGRAM_MIX, PROGRAM_TURN, PROGRAM_TURN, PROGRAM_PACK};
    uint32_t device = device_of(m, queue);
    put_launch(m, kinds[draw(m, 5)], queue, some_cell(m, device), some_cell(m, device));
}

/* A loop of kernels, for templates. */
static void some_loop(maker *m)
{
    uint32_t queue = some_queue(m), period = 1 + draw(m, 4), times = 2 + draw(m, 6), device = device_of(m, queue);
    program_kind kinds[4];
    uint32_t dst = some_cell(m, device), src = some_cell(m, device);
    for (uint32_t i = 0; i < period; i++) {
        kinds[i] = chance(m, 50) ? PROGRAM_MIX : PROGRAM_TURN;
    }
    for (uint32_t i = 0; i < period * times; i++) {
        put_launch(m, kinds[i % period], queue, dst, src);
        if (chance(m, 5)) {
            dst = some_cell(m, device);
        }
    }
}

/* The same kernel on many queues. */
static void some_side_by_side(maker *m)
{
    program_kind kind = chance(m, 50) ? PROGRAM_MIX : PROGRAM_TURN;
    for (uint32_t i = 0; i < m->live_count; i++) {
        uint32_t cell = device_of(m, m->live[i]) * PROGRAM_DEVICE_CELLS + i % PROGRAM_DEVICE_CELLS;
        if (m->there[cell]) {
            put_launch(m, kind, m->live[i], cell, cell);
        }
    }
}

static void some_copy(maker *m)
{
    uint32_t queue = some_queue(m), device = device_of(m, queue), other = chance(m, 25) && !m->options->no_host ? 1 - device : device;
    uint32_t dst = some_cell(m, device), src = some_cell(m, other);
    if (chance(m, 50)) {
        uint32_t cell = dst;
        dst = src;
        src = cell;
    }
    if (dst != src) {
        put_access(m, op_of(m, PROGRAM_COPY, queue, dst, src), src, dst);
    }
}

static void some_host_copy(maker *m)
{
    uint32_t queue = some_queue(m), cell = some_cell(m, device_of(m, queue)), host = some_host_cell(m);
    if (chance(m, 50)) {
        put_access(m, op_of(m, PROGRAM_HTOD, queue, cell, host), host, cell);
    } else {
        put_access(m, op_of(m, PROGRAM_DTOH, queue, host, cell), cell, host);
    }
}

static void some_allocation(maker *m)
{
    uint32_t queue = some_queue(m);
    uint32_t cell = (device_of(m, queue) + 1) * PROGRAM_DEVICE_CELLS - 1 - draw(m, PROGRAM_PASSING_CELLS);
    if (!has_room(m, 2 + 3 * PROGRAM_QUEUES)) {
        return;
    }
    if (m->there[cell]) {
        put_access(m, op_of(m, PROGRAM_FREE, queue, cell, cell), PROGRAM_CELLS, cell);
    } else {
        put_access(m, op_of(m, PROGRAM_ALLOC, queue, cell, cell), PROGRAM_CELLS, cell);
        put_access(m, op_of(m, PROGRAM_FILL, queue, cell, cell), PROGRAM_CELLS, cell);
    }
    m->there[cell] = !m->there[cell];
}

/* An edge that nothing needs, to what is long over or just enqueued. */
static void some_wait(maker *m)
{
    uint32_t queue = some_queue(m), producer = some_queue(m);
    if (producer != queue && m->last[producer] && has_room(m, 1)) {
        uint32_t mark = m->last[producer];
        if (chance(m, 30)) {
            mark = 1 + draw(m, m->program->op_count);
            if (!m->seen[mark - 1][m->program->ops[mark - 1].queue] || m->program->ops[mark - 1].queue == queue) {
                return;
            }
        }
        put_wait(m, queue, mark - 1);
    }
}

/* A queue that does nothing itself hands an order on: what the one did last the other comes after, and touches. */
static void some_relay(maker *m)
{
    uint32_t queue = some_queue(m), relay = some_queue(m), producer = some_queue(m);
    if (queue == relay || relay == producer || queue == producer || !m->last[producer] ||
        !has_room(m, 3 + 2 * PROGRAM_QUEUES)) {
        return;
    }
    const program_op *last = &m->program->ops[m->last[producer] - 1];
    put_wait(m, relay, m->last[producer] - 1u);
    put_wait(m, queue, m->last[relay] - 1u);
    if (last->kind <= PROGRAM_FILL && last->kind != PROGRAM_EMPTY && m->there[last->dst] &&
        device_of(m, queue) == device_of(m, producer)) {
        put_launch(m, PROGRAM_TURN, queue, last->dst, last->dst);
    }
}

/* ---- the host's part --------------------------------------------------------------------------------------------- */

static void open_gate(maker *m)
{
    if (!m->open && has_room(m, 1)) {
        m->open = true;
        put(m, (program_op){.kind = PROGRAM_OPEN}, false);
    }
}

static void some_host_wait(maker *m)
{
    uint32_t queue = some_queue(m);
    if (!m->open || !m->last[queue] || !has_room(m, 1)) {
        return;
    }
    uint32_t mark = m->last[queue];
    bool all = chance(m, 50);
    put(m, (program_op){.kind = all ? PROGRAM_SYNC : PROGRAM_HOST_WAIT, .queue = (uint8_t)queue,
                        .event = (uint16_t)(mark - 1)}, false);
    join(m->clock[HOST], m->seen[mark - 1]);
}

static void some_look(maker *m)
{
    uint32_t queue = some_queue(m);
    if (has_room(m, 1) && m->last[queue]) {
        put(m, (program_op){.kind = chance(m, 50) ? PROGRAM_QUERY : PROGRAM_PAUSE, .queue = (uint8_t)queue,
                            .event = (uint16_t)(m->last[queue] - 1), .value = draw(m, 100)}, false);
    }
}

static uint32_t make_queue(maker *m)
{
    uint32_t number = m->program->queue_count++;
    m->program->queues[number] = (program_queue){
        .device = (uint8_t)(chance(m, 25) && !m->options->no_host ? 1 : 0),
        .priority = (int8_t)(chance(m, 20) ? -(int)draw(m, 3) : 0),
        .submission = (uint8_t)(chance(m, 15) && !m->options->no_host ? 1 + draw(m, 3) : 0),
        .exclusive = chance(m, 8),
        .narrow = m->options->may_block && !m->program->gated && chance(m, 15),
    };
    put(m, (program_op){.kind = PROGRAM_CREATE, .queue = (uint8_t)number}, false);
    if (!m->open) {
        put(m, (program_op){.kind = PROGRAM_GATE, .queue = (uint8_t)number}, true);
    }
    return number;
}

static void renew_queue(maker *m)
{
    uint32_t place = draw(m, m->live_count);
    if (m->program->queue_count < PROGRAM_QUEUES && has_room(m, 3)) {
        put(m, (program_op){.kind = PROGRAM_DESTROY, .queue = m->live[place]}, false);
        m->live[place] = (uint8_t)make_queue(m);
    }
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static void some_host_work(maker *m)
{
    uint32_t host = some_host_cell(m), queue = some_queue(m);
    put_access(m, op_of(m, PROGRAM_CALL, queue, host, host), host, host);
}

static void some_device_work(maker *m)
{
    uint32_t queue = some_queue(m), cell = some_cell(m, device_of(m, queue));
    switch (draw(m, 10)) {
    case 0:
    case 1:
        put_access(m, op_of(m, PROGRAM_FILL, queue, cell, cell), PROGRAM_CELLS, cell);
        break;
    case 2:
        put_access(m, op_of(m, PROGRAM_WRITE, queue, cell, cell), PROGRAM_CELLS, cell);
        break;
    case 3:
        put_access(m, op_of(m, PROGRAM_EMPTY, queue, cell, cell), PROGRAM_CELLS, PROGRAM_CELLS);
        break;
    case 4:
        if (!m->options->no_host) {
            some_allocation(m);
        }
        break;
    case 5:
    case 6:
        some_copy(m);
        break;
    default:
        some_host_copy(m);
    }
}

static void some_step(maker *m)
{
    uint32_t kind = draw(m, 100);
    if (kind < 45) {
        some_launch(m, some_queue(m));
    } else if (kind < 70) {
        some_device_work(m);
    } else if (kind < 76) {
        some_wait(m);
    } else if (kind < 78) {
        some_relay(m);
    } else if (kind < 82) {
        some_loop(m);
    } else if (kind < 85) {
        some_side_by_side(m);
    } else if (m->options->no_host) {
        some_launch(m, some_queue(m));
    } else if (kind < 90) {
        some_host_work(m);
    } else if (kind < 93) {
        some_host_wait(m);
    } else if (kind < 97) {
        some_look(m);
    } else if (kind < 99) {
        renew_queue(m);
    } else {
        open_gate(m);
    }
}

void program_generate(program_graph *program, uint64_t seed, const program_options *options)
{
    maker m = {.program = program, .options = options, .random = seed * 0x2545f4914f6cdd1du + 1};
    memset(program, 0, sizeof *program);
    program->seed = seed;
    program->gated = options->gated || (chance(&m, 35) && !options->no_host);
    m.open = !program->gated;
    for (uint32_t i = 0; i < PROGRAM_CELLS; i++) {
        m.there[i] = !program_is_passing(i);
    }
    uint32_t queues = chance(&m, 30) ? 2 + draw(&m, 3) : 2 + draw(&m, PROGRAM_LIVE - 1);
    while (m.live_count < queues) {
        m.live[m.live_count++] = (uint8_t)make_queue(&m);
    }
    uint32_t steps = 4 + draw(&m, 120);
    for (uint32_t i = 0; i < steps && has_room(&m, 1 + 2 * PROGRAM_QUEUES); i++) {
        some_step(&m);
    }
    open_gate(&m);
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

void program_start(program_result *result, uint64_t seed, uint32_t devices)
{
    memset(result, 0, sizeof *result);
    for (uint32_t i = 0; i < PROGRAM_CELLS; i++) {
        bool there = program_is_host(i) || (!program_is_passing(i) && program_device_of(i) < devices);
        for (uint32_t w = 0; w < PROGRAM_WORDS && there; w++) {
            result->cells[i][w] = program_word((uint32_t)seed ^ i, w);
        }
    }
}

static uint32_t packed(uint32_t value)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < PROGRAM_PACKED; i++) {
        sum += program_word(value, i);
    }
    return sum;
}

static uint32_t model_word(const program_op *op, uint32_t dst, uint32_t src, uint32_t index)
{
    switch (op->kind) {
    case PROGRAM_MIX:
    case PROGRAM_CALL:
        return program_mix(dst, src, op->value);
    case PROGRAM_PACK:
        return program_mix(dst, src, packed(op->value));
    case PROGRAM_TURN:
        return program_turn(dst, op->value);
    case PROGRAM_FILL:
        return op->value;
    case PROGRAM_WRITE:
        return program_word(op->value, index);
    case PROGRAM_COPY:
    case PROGRAM_HTOD:
    case PROGRAM_DTOH:
        return src;
    case PROGRAM_FREE:
        return 0;
    default:
        return dst;
    }
}

void program_model(const program_graph *program, program_result *result)
{
    for (uint32_t i = 0; i < program->op_count; i++) {
        const program_op *op = &program->ops[i];
        for (uint32_t w = 0; w < PROGRAM_WORDS; w++) {
            result->cells[op->dst][w] = model_word(op, result->cells[op->dst][w], result->cells[op->src][w], w);
        }
        if (op->kind <= PROGRAM_PACK || op->kind == PROGRAM_CALL) {
            result->stamps[i] = result->cells[op->dst][0];
        }
    }
    /* What was allocated is freed in the end. */
    for (uint32_t i = 0; i < PROGRAM_CELLS; i++) {
        if (program_is_passing(i)) {
            memset(result->cells[i], 0, sizeof result->cells[i]);
        }
    }
}

const char *program_describe(const program_graph *program, uint32_t index, char buffer[160])
{
    static const char *const names[] = {"mix",   "turn", "pack", "empty", "fill", "copy", "htod",  "dtoh",
                                        "write", "call", "alloc", "free", "wait", "gate", "open", "sync",
                                        "host wait", "query", "pause", "create", "destroy"};
    const program_op *op = &program->ops[index];
    snprintf(buffer, 160, "%3u queue %2u (device %u) %-9s dst %2u src %2u event %u", index, op->queue,
             program->queues[op->queue].device, names[op->kind], op->dst, op->src, op->event);
    return buffer;
}
