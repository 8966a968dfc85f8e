/* SPDX-License-Identifier: MIT */
#include "queue/accesses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/registry.h"

/* Rows of a box that are told apart; what has more is taken as one piece. */
#define ROWS 65536u

typedef struct list {
    hdrt_runtime *runtime;
    hdrt__access *items, inside[16];
    uint32_t count, capacity;
} list;

static void list_begin(list *of, hdrt_runtime *runtime)
{
    of->runtime = runtime;
    of->items = of->inside;
    of->count = 0;
    of->capacity = sizeof of->inside / sizeof of->inside[0];
}

static void list_end(list *of)
{
    if (of->items != of->inside) {
        free(of->items);
    }
}

/* Without memory for it the access is not checked. */
static void append(list *to, const hdrt__access *access)
{
    if (to->count == to->capacity) {
        uint32_t capacity = to->capacity * 2;
        hdrt__access *items = to->items == to->inside ? malloc(capacity * sizeof *items)
                                                      : realloc(to->items, capacity * sizeof *items);
        if (!items) {
            return;
        }
        if (to->items == to->inside) {
            memcpy(items, to->inside, sizeof to->inside);
        }
        to->items = items;
        to->capacity = capacity;
    }
    to->items[to->count++] = *access;
}

/* Some bytes of a range. Host memory that is in none is the library's own, or was read during the call. */
static void add(list *to, bool host, uint64_t address, uint64_t bytes, bool writes)
{
    hdrt__place place;
    hdrt__access access = {.address = address, .bytes = bytes, .writes = writes};
    bool found = hdrt__registry_find(to->runtime, host, address, &place);
    if (found) {
        access.block = place.serial;
        access.block_address = place.address;
        access.block_bytes = place.bytes;
    }
    if (bytes && (found || !host)) {
        append(to, &access);
    }
}

static void add_rows(list *to, const hdrt_region_side *side, const hdrt__region *box, bool writes)
{
    bool host = side->host != NULL;
    uint64_t first = host ? (uint64_t)(uintptr_t)side->host : side->device;
    if (box->depth > ROWS || box->height > ROWS || box->depth * box->height > ROWS) {
        uint64_t bytes = box->width + (box->height - 1) * side->row_pitch + (box->depth - 1) * side->slice_pitch;
        add(to, host, first, bytes, writes);
        return;
    }
    for (uint64_t z = 0; z < box->depth; z++) {
        for (uint64_t y = 0; y < box->height; y++) {
            add(to, host, first + z * side->slice_pitch + y * side->row_pitch, box->width, writes);
        }
    }
}

static void add_box(list *to, const hdrt__region *box)
{
    if (box->width && box->height && box->depth) {
        add_rows(to, &box->src, box, false);
        add_rows(to, &box->dst, box, true);
    }
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* The whole range that a word points into, if it does. */
static void add_pointed(list *to, uint64_t word, bool writes)
{
    hdrt__place place;
    for (int host = 0; host < 2; host++) {
        if (hdrt__registry_find(to->runtime, host, word, &place)) {
            add(to, host, place.address, place.bytes, writes);
            return;
        }
    }
}

static void add_arguments(list *to, const hdrt_kernel *kernel, const unsigned char *bytes)
{
    uint64_t read = atomic_load_explicit(&kernel->access_read, memory_order_relaxed);
    uint64_t none = atomic_load_explicit(&kernel->access_none, memory_order_relaxed);
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        const hdrt_parameter *parameter = &kernel->parameters[i];
        uint64_t bit = i < 64 ? UINT64_C(1) << i : 0, word;
        if (none & bit) {
            continue;
        }
        for (uint32_t at = 0; at + sizeof word <= parameter->size; at += sizeof word) { /* a struct may have several */
            memcpy(&word, bytes + parameter->offset + at, sizeof word);
            add_pointed(to, word, !(read & bit));
        }
    }
}

static void add_declared(list *to, const hdrt_access_range *declared, uint32_t count)
{
    hdrt__place place;
    for (uint32_t i = 0; i < count; i++) {
        if (declared[i].access != HDRT_ACCESS_NONE) {
            bool host = !hdrt__registry_find(to->runtime, false, declared[i].ptr, &place);
            add(to, host, declared[i].ptr, declared[i].bytes, declared[i].access != HDRT_ACCESS_READ);
        }
    }
}

static void kernel_words(char *what, size_t size, const hdrt_kernel *kernel, const hdrt_grid *g)
{
    snprintf(what, size, "kernel '%.80s' <<<(%u,%u,%u), (%u,%u,%u)>>>", kernel->name, g->grid[0], g->grid[1], g->grid[2],
             g->block[0], g->block[1], g->block[2]);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static void add_copy(list *to, const hdrt__op *op)
{
    uint64_t host = (uint64_t)(uintptr_t)op->copy.host;
    switch (op->detail) {
    case HDRT__COPY_HTOD:
        add(to, true, host, op->copy.bytes, false);
        add(to, false, op->copy.dst, op->copy.bytes, true);
        break;
    case HDRT__COPY_DTOH:
        add(to, false, op->copy.src, op->copy.bytes, false);
        add(to, true, host, op->copy.bytes, true);
        break;
    default:
        add(to, false, op->copy.src, op->copy.bytes, false);
        add(to, false, op->copy.dst, op->copy.bytes, true);
        break;
    }
}

static void add_range(list *to, const hdrt__range *range)
{
    append(to, &(hdrt__access){range->serial, range->address, range->bytes, range->address, range->bytes, true});
}

static void add_node(list *to, const hdrt__plan_node *node)
{
    switch (node->kind) {
    case HDRT__PLAN_LAUNCH:
        add_arguments(to, node->launch.kernel, node->launch.parameters);
        break;
    case HDRT__PLAN_COPY:
        add_box(to, &node->copy);
        break;
    case HDRT__PLAN_FILL:
        add(to, false, node->fill.dst, node->fill.count * node->fill.element_bytes, true);
        break;
    default:
        break;
    }
}

/* What the operation touches. \return what it is, in words, which may be in `what`. */
static const char *add_operation(list *to, const hdrt__op *op, const hdrt_access_range *declared, uint32_t count,
                                 char *what, size_t size)
{
    switch (op->kind) {
    case HDRT__OP_LAUNCH:
        if (declared) {
            add_declared(to, declared, count);
        } else {
            add_arguments(to, op->launch.kernel, hdrt__op_parameters(op));
        }
        kernel_words(what, size, op->launch.kernel, &op->launch.grid);
        return what;
    case HDRT__OP_COPY:
        add_copy(to, op);
        return hdrt__op_words(op);
    case HDRT__OP_REGION:
        add_box(to, op->region);
        return hdrt__op_words(op);
    case HDRT__OP_FILL:
        add(to, false, op->fill.dst, op->fill.count * op->fill.pattern_bytes, true);
        return hdrt__op_words(op);
    case HDRT__OP_FREE:
        add_range(to, op->range);
        return "hdrt_free";
    case HDRT__OP_REPLAY:
        for (uint32_t i = 0; i < op->replay.plan->count; i++) {
            add_node(to, &op->replay.plan->nodes[i]);
        }
        return "a replay";
    default:
        return "an operation";
    }
}

static bool has_foreign(const hdrt__plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        if (plan->nodes[i].kind == HDRT__PLAN_FOREIGN) {
            return true;
        }
    }
    return false;
}

void hdrt__accesses_note(hdrt_queue *queue, uint64_t position, const hdrt__op *op, const hdrt_access_range *declared,
                         uint32_t count)
{
    hdrt__order *order = queue->device->runtime->order;
    hdrt_event event = hdrt__timeline_event(queue->entry.timeline, position);
    const char *name = HDRT__QUEUE_NAME(queue);
    char what[160];
    list touched;
    if (!order) {
        return;
    }
    if (op->kind == HDRT__OP_HOST) {
        hdrt__order_call(order, event, name);
        return;
    }
    if (op->kind == HDRT__OP_WAIT) {
        hdrt__order_wait(order, event, name, op->wait.event);
    }
    if (op->kind == HDRT__OP_REPLAY && has_foreign(op->replay.plan)) {
        hdrt__order_wait_unknown(order, event, name); /* CUevents may be in it */
    }
    list_begin(&touched, queue->device->runtime);
    const char *words = add_operation(&touched, op, declared, count, what, sizeof what);
    hdrt__order_operation(order, event, name, words, touched.items, touched.count);
    list_end(&touched);
    if (op->kind == HDRT__OP_FREE) {
        hdrt__order_forget(order, event, op->range->serial);
    }
}

void hdrt__accesses_alloc(hdrt_queue *queue, uint64_t position, hdrt_ptr ptr)
{
    hdrt_runtime *runtime = queue->device->runtime;
    list touched;
    if (!runtime->order) {
        return;
    }
    list_begin(&touched, runtime);
    add_pointed(&touched, ptr, true);
    hdrt__order_operation(runtime->order, hdrt__timeline_event(queue->entry.timeline, position),
                          HDRT__QUEUE_NAME(queue), "hdrt_alloc", touched.items, touched.count);
    list_end(&touched);
    hdrt__order_tell(runtime->order);
}

void hdrt__accesses_free(hdrt_queue *queue, const hdrt__range *range)
{
    hdrt__order *order = queue->device->runtime->order;
    list touched;
    if (!order) {
        return;
    }
    hdrt_event event = hdrt__timeline_event(queue->entry.timeline, hdrt__queue_position(queue));
    list_begin(&touched, queue->device->runtime);
    add_range(&touched, range);
    hdrt__order_operation(order, event, HDRT__QUEUE_NAME(queue), "hdrt_free", touched.items, touched.count);
    hdrt__order_forget(order, event, range->serial);
    list_end(&touched);
    hdrt__order_tell(order);
}

void hdrt__accesses_awaited(hdrt_queue *producer, hdrt_event event)
{
    hdrt__order *order = producer->device->runtime->order;
    if (order) {
        uint64_t enqueued = hdrt__queue_position(producer);
        hdrt__order_queue(order, event, HDRT__QUEUE_NAME(producer), enqueued < event.value ? enqueued : event.value);
    }
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

/*
 * Nodes have no queues any more: each node goes on a chain whose last node it comes after, or on a new one. In clocks
 * chains are lines, and a node's place in its chain is where they are.
 */
typedef struct chains {
    list touched;
    hdrt__shadow *shadow;
    hdrt__clock *clocks; /* by node: what it comes after, and itself */
    uint32_t *chain;     /* by node */
    uint32_t *last;      /* by chain: its last node */
    uint32_t count;
    const char *graph;
} chains;

static void conflict(void *context, const hdrt__access *access, const hdrt__toucher *toucher,
                     const hdrt__toucher *other, bool other_writes, uint64_t address)
{
    const chains *of = context;
    char text[1000], order[120];
    snprintf(order, sizeof order, "in graph '%.60s' no node orders one after the other", of->graph);
    hdrt__order_words(text, sizeof text, access, toucher, other, other_writes, address, order);
    hdrt__order_report(of->touched.runtime->order, text);
}

static uint32_t choose_chain(chains *of, const hdrt__plan *plan, const hdrt__plan_node *node)
{
    for (uint32_t i = 0; i < node->after_count; i++) {
        uint32_t before = plan->after[node->after_first + i];
        if (of->last[of->chain[before]] == before) {
            return of->chain[before];
        }
    }
    return of->count++;
}

static bool check_node(chains *of, const hdrt__plan *plan, uint32_t number)
{
    const hdrt__plan_node *node = &plan->nodes[number];
    char what[160], text[200];
    hdrt__clock *clock = &of->clocks[number];
    for (uint32_t i = 0; i < node->after_count; i++) {
        if (!hdrt__clock_join(clock, &of->clocks[plan->after[node->after_first + i]])) {
            return false;
        }
    }
    uint32_t chain = choose_chain(of, plan, node);
    of->chain[number] = chain;
    of->last[chain] = number;
    snprintf(what, sizeof what, "%s", node->kind == HDRT__PLAN_FILL ? "a fill" : "a copy");
    if (node->kind == HDRT__PLAN_LAUNCH) {
        kernel_words(what, sizeof what, node->launch.kernel, &node->launch.grid);
    }
    snprintf(text, sizeof text, "%s (node %u)", what, number);
    hdrt__toucher *toucher = hdrt__toucher_create(chain, number + UINT64_C(1), text);
    bool done = toucher != NULL;
    of->touched.count = 0;
    add_node(&of->touched, node);
    for (uint32_t i = 0; i < of->touched.count && done; i++) {
        done = hdrt__shadow_touch(of->shadow, &of->touched.items[i], toucher, clock, conflict, of);
    }
    hdrt__toucher_drop(toucher);
    return done && hdrt__clock_raise(clock, chain, number + UINT64_C(1));
}

void hdrt__accesses_check_plan(hdrt_device *device, const char *graph, const hdrt__plan *plan)
{
    if (!device->runtime->order || !plan->count) {
        return;
    }
    chains of = {.graph = graph,
                 .shadow = hdrt__shadow_create(),
                 .clocks = calloc(plan->count, sizeof *of.clocks),
                 .chain = calloc(plan->count, sizeof *of.chain),
                 .last = calloc(plan->count, sizeof *of.last)};
    list_begin(&of.touched, device->runtime);
    bool done = of.shadow && of.clocks && of.chain && of.last;
    for (uint32_t i = 0; i < plan->count && done; i++) {
        done = check_node(&of, plan, i);
    }
    for (uint32_t i = 0; of.clocks && i < plan->count; i++) {
        hdrt__clock_free(&of.clocks[i]);
    }
    free(of.clocks);
    free(of.chain);
    free(of.last);
    hdrt__shadow_destroy(of.shadow);
    list_end(&of.touched);
    hdrt__order_tell(device->runtime->order);
}
