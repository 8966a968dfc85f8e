/* SPDX-License-Identifier: MIT */
#include "race_programs.h"

#include <stdbool.h>
#include <string.h>

static unsigned below(program_generator *from, unsigned limit)
{
    from->state ^= from->state << 13;
    from->state ^= from->state >> 7;
    from->state ^= from->state << 17;
    return (unsigned)(from->state >> 33) % limit;
}

static bool overlap(program_range a, program_range b)
{
    return a.count && b.count && a.buffer == b.buffer && a.first < b.first + b.count && b.first < a.first + a.count;
}

static bool conflict(const program_generator *from, const program_operation *a, const program_operation *b)
{
    if (from->kinds[a->kind] == PROGRAM_COUNTS && from->kinds[b->kind] == PROGRAM_COUNTS)
        return false;
    return overlap(a->write, b->write) || overlap(a->write, b->read) || overlap(a->read, b->write);
}

static program_range draw_range(program_generator *from)
{
    program_range made;
    made.buffer = below(from, PROGRAM_BUFFERS);
    made.first = below(from, PROGRAM_BUFFER_BYTES - 1);
    made.count = 1 + below(from, 40);
    if (made.first + made.count > PROGRAM_BUFFER_BYTES)
        made.count = PROGRAM_BUFFER_BYTES - made.first;
    return made;
}

static void draw_operation(program_generator *from, program_operation *made)
{
    memset(made, 0, sizeof *made);
    made->kind = below(from, from->kind_count);
    made->lane = below(from, PROGRAM_LANES);
    program_access access = from->kinds[made->kind];
    if (access == PROGRAM_READS || access == PROGRAM_COPIES)
        made->read = draw_range(from);
    if (access != PROGRAM_READS)
        made->write = draw_range(from);
    if (access == PROGRAM_COPIES) {
        made->write.buffer = (made->read.buffer + 1 + below(from, PROGRAM_BUFFERS - 1)) % PROGRAM_BUFFERS;
        unsigned most = PROGRAM_BUFFER_BYTES - made->write.first;
        made->read.count = made->write.count = made->read.count < most ? made->read.count : most;
    }
    if (access == PROGRAM_COUNTS)
        made->write = (program_range){made->write.buffer, made->write.first / 4 * 4, 4};
}

/* For each of the first operations those that come before it, by lanes and edges. */
static void reach(const program *p, unsigned count, unsigned *before)
{
    for (unsigned i = 0; i < count; i++) {
        before[i] = 0;
        for (unsigned j = 0; j < i; j++) {
            if (p->operations[j].lane == p->operations[i].lane || p->operations[i].before >> j & 1)
                before[i] |= before[j] | 1u << j;
        }
    }
}

/* Edges where a conflict needs one. */
static void draw_operations(program_generator *from, program *p)
{
    unsigned before[PROGRAM_MOST];
    p->count = 5 + below(from, from->most - 5);
    for (unsigned i = 0; i < p->count; i++) {
        draw_operation(from, &p->operations[i]);
        for (unsigned j = i; j-- > 0;) {
            reach(p, i + 1, before);
            if (conflict(from, &p->operations[i], &p->operations[j]) && !(before[i] >> j & 1))
                p->operations[i].before |= 1u << j;
        }
    }
}

/* Of the edges only those stay that no other makes superfluous. */
static void keep_needed_edges(program *p)
{
    unsigned before[PROGRAM_MOST];
    p->edges = 0;
    for (unsigned i = 0; i < p->count; i++) {
        for (unsigned j = 0; j < i; j++) {
            if (!(p->operations[i].before >> j & 1))
                continue;
            p->operations[i].before &= ~(1u << j);
            reach(p, p->count, before);
            if (!(before[i] >> j & 1)) {
                p->operations[i].before |= 1u << j;
                p->edges++;
            }
        }
    }
}

void program_draw(program_generator *from, program *out)
{
    do {
        draw_operations(from, out);
        keep_needed_edges(out);
    } while (!out->edges);
}

void program_remove_edge(program_generator *from, program *p)
{
    unsigned chosen = below(from, p->edges);
    for (unsigned i = 0; i < p->count; i++) {
        for (unsigned j = 0; j < i; j++) {
            if (p->operations[i].before >> j & 1 && chosen-- == 0) {
                p->operations[i].before &= ~(1u << j);
                return;
            }
        }
    }
}
