/* SPDX-License-Identifier: MIT */
#include "execute.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CELL_BYTES (PROGRAM_WORDS * sizeof(uint32_t))

void bed_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("# ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    _exit(1);
}

void bed_symbol(const bed *b, const char *name, void *out_function)
{
    void *symbol = hdrt_runtime_driver_symbol(b->runtime, name);
    if (!symbol) {
        bed_fail("the driver has no %s", name);
    }
    memcpy(out_function, &symbol, sizeof symbol);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/*
 * mix(dst, src, value, stamp), turn(dst, value, stamp), pack(dst, src, stamp, words): as program_mix and program_turn, by
 * a thread for each word; the first one's new word is written to `stamp`. pack's value is the sum of its words.
 */
#define HEAD(extra)                                                                                                    \
    ".reg .pred %q;\n .reg .b32 %r<9>;\n .reg .b64 %d<6>;\n ld.param.u64 %d1, [dst];\n" extra                           \
    " ld.param.u64 %d3, [stamp];\n mov.u32 %r1, %tid.x;\n mul.wide.u32 %d4, %r1, 4;\n add.s64 %d1, %d1, %d4;\n"          \
    " cvta.to.global.u64 %d1, %d1;\n cvta.to.global.u64 %d3, %d3;\n ld.global.u32 %r2, [%d1];\n"
#define TAIL                                                                                                           \
    " st.global.u32 [%d1], %r2;\n setp.ne.u32 %q, %r1, 0;\n @%q bra DONE;\n st.global.u32 [%d3], %r2;\nDONE:\n ret;\n}\n"
#define SOURCE " ld.param.u64 %d2, [src];\n"
#define ADD_SOURCE                                                                                                     \
    " add.s64 %d2, %d2, %d4;\n cvta.to.global.u64 %d2, %d2;\n ld.global.u32 %r3, [%d2];\n"                              \
    " mad.lo.u32 %r2, %r2, 31, %r3;\n add.u32 %r2, %r2, %r4;\n"
#define WORD(at) " ld.param.u32 %r5, [words+" at "];\n add.u32 %r4, %r4, %r5;\n"

static const char ptx[] =
    ".version 7.4\n.target sm_75\n.address_size 64\n"
    ".visible .entry mix(.param .u64 dst, .param .u64 src, .param .u32 value, .param .u64 stamp)\n{\n"
    HEAD(SOURCE) " ld.param.u32 %r4, [value];\n" ADD_SOURCE TAIL
    ".visible .entry turn(.param .u64 dst, .param .u32 value, .param .u64 stamp)\n{\n"
    HEAD("") " ld.param.u32 %r4, [value];\n shl.b32 %r5, %r2, 5;\n shr.u32 %r6, %r2, 27;\n or.b32 %r2, %r5, %r6;\n"
    " xor.b32 %r2, %r2, %r4;\n" TAIL
    ".visible .entry pack(.param .u64 dst, .param .u64 src, .param .u64 stamp, .param .align 4 .b8 words[64])\n{\n"
    HEAD(SOURCE) " mov.u32 %r4, 0;\n" WORD("0") WORD("4") WORD("8") WORD("12") WORD("16") WORD("20") WORD("24")
    WORD("28") WORD("32") WORD("36") WORD("40") WORD("44") WORD("48") WORD("52") WORD("56") WORD("60") ADD_SOURCE TAIL;

typedef struct packed_words {
    uint32_t words[PROGRAM_PACKED];
} packed_words;

static void bed_launch(bed *b, const program_graph *program, uint32_t index, hdrt_queue *queue)
{
    const program_op *op = &program->ops[index];
    uint32_t device = program->queues[op->queue].device;
    hdrt_ptr dst = b->cells[op->dst], src = b->cells[op->src], stamp = b->stamps[device] + 4 * index;
    hdrt_grid grid = hdrt_grid_1d(PROGRAM_WORDS, PROGRAM_WORDS);
    if (op->kind == PROGRAM_MIX) {
        MUST(hdrt_launch(queue, b->kernels[device][0], grid, HDRT_ARGS(dst, src, op->value, stamp)));
    } else if (op->kind == PROGRAM_TURN) {
        MUST(hdrt_launch(queue, b->kernels[device][1], grid, HDRT_ARGS(dst, op->value, stamp)));
    } else if (op->kind == PROGRAM_EMPTY) {
        MUST(hdrt_launch(queue, b->kernels[device][1], hdrt_grid_1d(0, 1), HDRT_ARGS(dst, op->value, stamp)));
    } else {
        packed_words words;
        for (uint32_t i = 0; i < PROGRAM_PACKED; i++) {
            words.words[i] = program_word(op->value, i);
        }
        MUST(hdrt_launch(queue, b->kernels[device][2], grid, HDRT_ARGS(dst, src, stamp, words)));
    }
}

/* ---- beds -------------------------------------------------------------------------------------------------------- */

static void open_device(bed *b, uint32_t device)
{
    static const char *const names[] = {"mix", "turn", "pack"};
    MUST(hdrt_device_open(b->runtime, device, NULL, &b->devices[device]));
    MUST(hdrt_module_load(b->devices[device], ptx, sizeof ptx - 1, NULL, &b->modules[device]));
    for (uint32_t i = 0; i < 3; i++) {
        MUST(hdrt_module_kernel(b->modules[device], names[i], &b->kernels[device][i]));
    }
    MUST(hdrt_queue_create(b->devices[device], NULL, &b->own[device]));
    MUST(hdrt_alloc(b->own[device], PROGRAM_OPS * sizeof(uint32_t), &b->stamps[device]));
    for (uint32_t i = 0; i < PROGRAM_DEVICE_CELLS; i++) {
        uint32_t cell = device * PROGRAM_DEVICE_CELLS + i;
        if (!program_is_passing(cell)) {
            MUST(hdrt_alloc(b->own[device], CELL_BYTES, &b->cells[cell]));
        }
    }
}

void bed_open(bed *b, uint32_t devices)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    void *memory;
    memset(b, 0, sizeof *b);
    options.driver = HDRT_DRIVER_SOFT;
    options.cache_dir = "";
    MUST(hdrt_runtime_create(&options, &b->runtime));
    b->device_count = devices;
    for (uint32_t i = 0; i < devices; i++) {
        open_device(b, i);
    }
    MUST(hdrt_host_alloc(b->devices[0], PROGRAM_HOST_CELLS * CELL_BYTES, &memory));
    for (uint32_t i = 0; i < PROGRAM_HOST_CELLS; i++) {
        b->host_cells[PROGRAM_DEVICES * PROGRAM_DEVICE_CELLS + i] = (uint32_t *)memory + i * PROGRAM_WORDS;
    }
    MUST(hdrt_host_alloc(b->devices[0], sizeof(program_result), &memory));
    b->pinned = memory;
    for (uint32_t i = 0; i < devices; i++) {
        MUST(hdrt_device_synchronize(b->devices[i]));
    }
}

void bed_close(bed *b)
{
    for (uint32_t i = 0; i < b->device_count; i++) {
        MUST(hdrt_device_synchronize(b->devices[i]));
        for (uint32_t cell = 0; cell < PROGRAM_CELLS; cell++) {
            if (b->cells[cell] && program_device_of(cell) == i) {
                MUST(hdrt_free(b->own[i], b->cells[cell]));
            }
        }
        MUST(hdrt_free(b->own[i], b->stamps[i]));
        hdrt_queue_destroy(b->own[i]);
        hdrt_module_destroy(b->modules[i]);
    }
    MUST(hdrt_host_free(b->devices[0], b->host_cells[PROGRAM_DEVICES * PROGRAM_DEVICE_CELLS]));
    MUST(hdrt_host_free(b->devices[0], b->pinned));
    for (uint32_t i = 0; i < b->device_count; i++) {
        hdrt_device_close(b->devices[i]);
    }
    hdrt_runtime_destroy(b->runtime);
}

/* ---- executing --------------------------------------------------------------------------------------------------- */

typedef struct host_work {
    uint32_t *cell, *stamp;
    uint32_t value;
} host_work;

typedef struct execution {
    bed *b;
    const program_graph *program;
    host_work works[PROGRAM_OPS];
    uint32_t stamps[PROGRAM_OPS]; /* the host's */
    hdrt_timeline *gate;
} execution;

static void host_mix(void *argument)
{
    host_work *work = argument;
    for (uint32_t i = 0; i < PROGRAM_WORDS; i++) {
        work->cell[i] = program_mix(work->cell[i], work->cell[i], work->value);
    }
    *work->stamp = work->cell[0];
}

static void create_queue(execution *e, uint32_t number)
{
    const program_queue *queue = &e->program->queues[number];
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.priority = queue->priority;
    options.exclusive = queue->exclusive;
    options.ring_limit = queue->narrow ? 4 : 0;
    options.submission = queue->submission ? (hdrt_submission)(queue->submission - 1) : e->b->submission;
    MUST(hdrt_queue_create(e->b->devices[queue->device], &options, &e->b->queues[number]));
}

static void host_part(execution *e, const program_op *op, hdrt_queue *queue)
{
    hdrt_status status;
    switch (op->kind) {
    case PROGRAM_OPEN:
        if (e->gate) {
            MUST(hdrt_timeline_signal(e->gate, 1));
        }
        break;
    case PROGRAM_SYNC:
        MUST(hdrt_queue_synchronize(queue));
        break;
    case PROGRAM_HOST_WAIT:
        MUST(hdrt_event_wait(e->b->runtime, e->b->events[op->event], HDRT_FOREVER));
        break;
    case PROGRAM_QUERY:
        status = hdrt_event_query(e->b->runtime, e->b->events[op->event]);
        if (status != HDRT_NOT_READY) {
            MUST(status);
        }
        break;
    case PROGRAM_PAUSE:
        if (op->value % 4) {
            sched_yield();
        } else {
            usleep(op->value);
        }
        break;
    case PROGRAM_CREATE:
        create_queue(e, op->queue);
        break;
    default:
        hdrt_queue_destroy(queue);
        e->b->queues[op->queue] = NULL;
    }
}

static void device_part(execution *e, uint32_t index, hdrt_queue *queue)
{
    bed *b = e->b;
    const program_op *op = &e->program->ops[index];
    uint32_t words[PROGRAM_WORDS];
    switch (op->kind) {
    case PROGRAM_FILL:
        MUST(hdrt_fill(queue, b->cells[op->dst], &op->value, sizeof op->value, PROGRAM_WORDS));
        break;
    case PROGRAM_COPY:
        MUST(hdrt_copy_dtod(queue, b->cells[op->dst], b->cells[op->src], CELL_BYTES));
        break;
    case PROGRAM_HTOD:
        MUST(hdrt_copy_htod(queue, b->cells[op->dst], b->host_cells[op->src], CELL_BYTES));
        break;
    case PROGRAM_DTOH:
        MUST(hdrt_copy_dtoh(queue, b->host_cells[op->dst], b->cells[op->src], CELL_BYTES));
        break;
    case PROGRAM_WRITE:
        for (uint32_t i = 0; i < PROGRAM_WORDS; i++) {
            words[i] = program_word(op->value, i);
        }
        MUST(hdrt_write(queue, b->cells[op->dst], words, sizeof words));
        memset(words, 0x5a, sizeof words);
        break;
    case PROGRAM_CALL:
        e->works[index] = (host_work){b->host_cells[op->dst], &e->stamps[index], op->value};
        MUST(hdrt_queue_host_call(queue, host_mix, &e->works[index]));
        break;
    case PROGRAM_ALLOC:
        MUST(hdrt_alloc(queue, CELL_BYTES, &b->cells[op->dst]));
        break;
    case PROGRAM_FREE:
        MUST(hdrt_free(queue, b->cells[op->dst]));
        b->cells[op->dst] = 0;
        break;
    case PROGRAM_WAIT:
        MUST(hdrt_queue_wait(queue, e->b->events[op->event]));
        break;
    case PROGRAM_GATE:
        MUST(hdrt_queue_wait(queue, hdrt_timeline_event(e->gate, 1)));
        break;
    default:
        bed_launch(b, e->program, index, queue);
    }
}

static void begin(execution *e)
{
    bed *b = e->b;
    program_result *start = malloc(sizeof *start);
    if (!start) {
        bed_fail("no memory");
    }
    program_start(start, e->program->seed, b->device_count);
    for (uint32_t i = 0; i < PROGRAM_CELLS; i++) {
        if (program_is_host(i)) {
            memcpy(b->host_cells[i], start->cells[i], CELL_BYTES);
        } else if (b->cells[i]) {
            MUST(hdrt_write(b->own[program_device_of(i)], b->cells[i], start->cells[i], CELL_BYTES));
        }
    }
    free(start);
    for (uint32_t i = 0; i < b->device_count; i++) {
        MUST(hdrt_fill(b->own[i], b->stamps[i], &(uint32_t){0}, sizeof(uint32_t), PROGRAM_OPS));
        MUST(hdrt_queue_synchronize(b->own[i]));
    }
}

/* Wait for all, and read what is there. */
static void end(execution *e, program_result *out_result)
{
    bed *b = e->b;
    program_result *pinned = (program_result *)b->pinned;
    uint32_t *stamps = pinned->stamps; /* of one device after the other */
    for (uint32_t i = 0; i < b->device_count; i++) {
        MUST(hdrt_device_synchronize(b->devices[i]));
    }
    memset(out_result, 0, sizeof *out_result);
    memcpy(out_result->stamps, e->stamps, sizeof e->stamps);
    for (uint32_t i = 0; i < PROGRAM_CELLS; i++) {
        if (program_is_host(i)) {
            memcpy(out_result->cells[i], b->host_cells[i], CELL_BYTES);
        } else if (b->cells[i] && !program_is_passing(i)) {
            MUST(hdrt_copy_dtoh(b->own[program_device_of(i)], pinned->cells[i], b->cells[i], CELL_BYTES));
        } else if (b->cells[i]) {
            MUST(hdrt_free(b->own[program_device_of(i)], b->cells[i]));
            b->cells[i] = 0;
        }
    }
    for (uint32_t i = 0; i < b->device_count; i++) {
        MUST(hdrt_copy_dtoh(b->own[i], stamps, b->stamps[i], sizeof pinned->stamps));
        MUST(hdrt_queue_synchronize(b->own[i]));
        for (uint32_t k = 0; k < PROGRAM_OPS; k++) {
            out_result->stamps[k] |= stamps[k];
        }
    }
    for (uint32_t i = 0; i < PROGRAM_CELLS; i++) {
        if (!program_is_host(i) && b->cells[i] && !program_is_passing(i)) {
            memcpy(out_result->cells[i], pinned->cells[i], CELL_BYTES);
        }
    }
}

void bed_execute(bed *b, const program_graph *program, program_result *out_result, void (*between)(void *), void *context)
{
    execution *e = calloc(1, sizeof *e);
    if (!e) {
        bed_fail("no memory");
    }
    e->b = b;
    e->program = program;
    begin(e);
    if (program->gated) {
        MUST(hdrt_timeline_create(b->runtime, &e->gate));
    }
    for (uint32_t i = 0; i < program->op_count; i++) {
        const program_op *op = &program->ops[i];
        hdrt_queue *queue = e->b->queues[op->queue];
        if (op->kind >= PROGRAM_OPEN) {
            host_part(e, op, queue);
        } else {
            device_part(e, i, queue);
            e->b->events[i] = hdrt_queue_record(queue);
        }
    }
    if (between) {
        between(context);
    }
    end(e, out_result);
    for (uint32_t i = 0; i < PROGRAM_QUEUES; i++) {
        hdrt_queue_destroy(b->queues[i]);
        b->queues[i] = NULL;
    }
    hdrt_timeline_destroy(e->gate);
    free(e);
}

bool bed_compare(const program_graph *program, const program_result *result, const program_result *expected,
                 const char *name)
{
    char words[160];
    for (uint32_t i = 0; i < program->op_count; i++) {
        if (result->stamps[i] != expected->stamps[i]) {
            fprintf(stderr, "# seed %llu, %s: this operation saw 0x%x, not 0x%x:\n#   %s\n",
                    (unsigned long long)program->seed, name, result->stamps[i], expected->stamps[i],
                    program_describe(program, i, words));
            return false;
        }
    }
    for (uint32_t i = 0; i < PROGRAM_CELLS; i++) {
        for (uint32_t w = 0; w < PROGRAM_WORDS; w++) {
            if (result->cells[i][w] != expected->cells[i][w]) {
                fprintf(stderr, "# seed %llu, %s: word %u of cell %u is 0x%x in the end, not 0x%x\n",
                        (unsigned long long)program->seed, name, w, i, result->cells[i][w], expected->cells[i][w]);
                return false;
            }
        }
    }
    return true;
}
