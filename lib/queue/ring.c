/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "queue/op.h"
#include "driver/thread.h"

/* Segments that are kept: 256 KiB of small ones, 2 MiB of large ones. */
static const uint32_t kept[2] = {512, 256};

void hdrt__segments_init(hdrt__segments *segments)
{
    hdrt__mutex_init_short(&segments->lock);
}

void hdrt__segments_free(hdrt__segments *segments)
{
    for (int i = 0; i < 2; i++) {
        for (hdrt__segment *segment = segments->free[i], *next; segment; segment = next) {
            next = atomic_load_explicit(&segment->next, memory_order_relaxed);
            free(segment);
        }
    }
    pthread_mutex_destroy(&segments->lock);
}

static hdrt__segment *take(hdrt__segments *segments, bool large)
{
    uint32_t capacity = large ? HDRT__SEGMENT_LARGE : HDRT__SEGMENT_SMALL;
    pthread_mutex_lock(&segments->lock);
    hdrt__segment *segment = segments->free[large];
    if (segment) {
        segments->free[large] = atomic_load_explicit(&segment->next, memory_order_relaxed);
        segments->count[large]--;
    }
    pthread_mutex_unlock(&segments->lock);
    if (!segment) {
        segment = malloc(sizeof *segment + capacity * sizeof(hdrt__op));
    }
    if (segment) {
        atomic_init(&segment->next, NULL);
        segment->capacity = capacity;
    }
    return segment;
}

static void give(hdrt__segments *segments, hdrt__segment *segment)
{
    bool large = segment->capacity == HDRT__SEGMENT_LARGE;
    pthread_mutex_lock(&segments->lock);
    bool keep = segments->count[large] < kept[large];
    if (keep) {
        atomic_store_explicit(&segment->next, segments->free[large], memory_order_relaxed);
        segments->free[large] = segment;
        segments->count[large]++;
    }
    pthread_mutex_unlock(&segments->lock);
    if (!keep) {
        free(segment);
    }
}

hdrt__op *hdrt__ring_reserve(hdrt__ring *ring, hdrt__segments *segments)
{
    uint64_t position = atomic_load_explicit(&ring->published, memory_order_relaxed) + 1;
    hdrt__segment *tail = ring->tail;
    if (!tail || position - tail->first == tail->capacity) {
        hdrt__segment *segment = take(segments, tail != NULL);
        if (!segment) {
            return NULL;
        }
        segment->first = position;
        if (tail) {
            atomic_store_explicit(&tail->next, segment, memory_order_release);
        } else {
            ring->head = segment; /* nothing is published: the reader does not look */
        }
        ring->tail = tail = segment;
    }
    hdrt__op *op = &tail->ops[position - tail->first];
    /* The reader had these lines last: ask for the next ones early. */
    __builtin_prefetch(op + 3, 1);
    __builtin_prefetch((char *)(op + 3) + 64, 1);
    atomic_store_explicit(&op->flagged, 0, memory_order_relaxed);
    return op;
}

uint64_t hdrt__ring_ready(const hdrt__ring *ring)
{
    return atomic_load(&ring->published) - atomic_load_explicit(&ring->consumed, memory_order_relaxed);
}

hdrt__op *hdrt__ring_ahead(hdrt__ring *ring, uint32_t ahead)
{
    return ahead < hdrt__ring_ready(ring) ? hdrt__ring_at(ring, ahead) : NULL;
}

hdrt__segment *hdrt__ring_segment_at(const hdrt__ring *ring, uint32_t ahead, uint32_t *out_index)
{
    uint64_t position = atomic_load_explicit(&ring->consumed, memory_order_relaxed) + 1 + ahead;
    hdrt__segment *segment = ring->head;
    while (position - segment->first >= segment->capacity) {
        segment = atomic_load_explicit(&segment->next, memory_order_acquire);
    }
    *out_index = (uint32_t)(position - segment->first);
    return segment;
}

hdrt__op *hdrt__ring_at(const hdrt__ring *ring, uint32_t ahead)
{
    uint32_t index;
    return &hdrt__ring_segment_at(ring, ahead, &index)->ops[index];
}

/* Under the writers' lock: take off the segments that are read through, the last one too if nothing is left. */
static hdrt__segment *take_off(hdrt__ring *ring, uint64_t consumed)
{
    hdrt__segment *first = ring->head;
    bool empty = consumed == atomic_load(&ring->published);
    hdrt__segment *segment = ring->head;
    while (segment && (empty || consumed + 1 - segment->first >= segment->capacity)) {
        hdrt__segment *next = atomic_load_explicit(&segment->next, memory_order_acquire);
        if (!next && !empty) {
            break;
        }
        segment = next;
    }
    ring->head = segment;
    if (!segment) {
        ring->tail = NULL;
    }
    return first;
}

void hdrt__ring_consume(hdrt__ring *ring, uint32_t count, hdrt__segments *segments, pthread_mutex_t *lock)
{
    uint64_t consumed = atomic_load_explicit(&ring->consumed, memory_order_relaxed) + count;
    atomic_store_explicit(&ring->consumed, consumed, memory_order_relaxed);
    if (consumed + 1 - ring->head->first < ring->head->capacity && consumed != atomic_load(&ring->published)) {
        return;
    }
    pthread_mutex_lock(lock);
    hdrt__segment *segment = take_off(ring, consumed), *end = ring->head;
    pthread_mutex_unlock(lock);
    while (segment && segment != end) {
        hdrt__segment *next = atomic_load_explicit(&segment->next, memory_order_acquire);
        give(segments, segment);
        segment = next;
    }
}

void hdrt__ring_flag(hdrt__ring *ring, uint64_t position)
{
    if (position <= atomic_load_explicit(&ring->consumed, memory_order_relaxed) ||
        position > atomic_load(&ring->published)) {
        return;
    }
    hdrt__segment *segment = position >= ring->tail->first ? ring->tail : ring->head;
    while (position - segment->first >= segment->capacity) {
        segment = atomic_load_explicit(&segment->next, memory_order_acquire);
    }
    _Atomic uint8_t *flagged = &segment->ops[position - segment->first].flagged;
    if (atomic_load_explicit(flagged, memory_order_relaxed) < UINT8_MAX) {
        atomic_fetch_add_explicit(flagged, 1, memory_order_relaxed);
    }
}
