/* SPDX-License-Identifier: MIT */
#include "queue/bell.h"

#include "base/number.h"
#include "queue/dispatcher.h"
#include "queue/scheduler.h"

/* So many launches in a row are waited for until the next one is expected to be; twice as many each time that it was not;
 * and again so few after as many as can be counted. */
#define EXPECTED 2u
#define EXPECTED_MOST 64u

/* NULL: there is none for this stream. */
static hdrt__word *word_of(const hdrt__stream *stream)
{
    return stream->entry.index < HDRT__INDICES ? stream->scheduler->bells[stream->entry.index] : NULL;
}

void hdrt__bell_hang(hdrt__stream *stream)
{
    if (!stream->adopted && stream->device->limits.stream_write_64 && stream->entry.index < HDRT__INDICES &&
        !word_of(stream)) {
        stream->scheduler->bells[stream->entry.index] = hdrt__word_spare(stream->scheduler->memory);
    }
}

/* It was rung, and what for is not known complete: if the word tells since a moment ago, whoever asks next hears it. */
static bool is_out(const hdrt__stream *stream)
{
    return atomic_load_explicit(&stream->bell.rung, memory_order_acquire) >
           atomic_load_explicit(&stream->entry.completed, memory_order_relaxed);
}

bool hdrt__bell_is_rung(const hdrt__stream *stream)
{
    return is_out(stream) && hdrt__bell_heard(stream) < atomic_load_explicit(&stream->bell.rung, memory_order_relaxed);
}

/* The last command is to write its number. */
static void rings(hdrt__stream *stream)
{
    uint64_t end = atomic_load_explicit(&stream->sequence, memory_order_relaxed), now_ns = hdrt__now_ns();
    atomic_store_explicit(&stream->bell.asked_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&stream->bell.rung, end, memory_order_release);
    hdrt__relief_want(stream->scheduler, now_ns);
}

bool hdrt__bell_ring(hdrt__stream *stream)
{
    uint64_t end = atomic_load_explicit(&stream->sequence, memory_order_relaxed);
    hdrt__word *word = is_out(stream) || stream->bell.refused ? NULL : word_of(stream);
    if (!word) {
        return false;
    }
    hdrt__call call = HDRT__CALL(stream->device->driver, cuStreamWriteValue64, stream->handle, word->device, end,
                                 HDCU_STREAM_WRITE_VALUE_DEFAULT);
    if (call.result) {
        stream->bell.refused = call.result != HDCU_ERROR_OUT_OF_MEMORY;
        return false;
    }
    rings(stream);
    return true;
}

void hdrt__bell_heed(hdrt__stream *stream)
{
    uint64_t end = atomic_load_explicit(&stream->sequence, memory_order_relaxed);
    if (atomic_load_explicit(&stream->bell.heeded, memory_order_relaxed) != end) {
        atomic_store_explicit(&stream->bell.heeded, end, memory_order_relaxed);
    }
}

hdcu_pointer hdrt__bell_expect(hdrt__stream *stream)
{
    uint64_t alone = stream->bell.alone;
    if (hdrt__stream_outstanding(stream)) {
        return 0;
    }
    bool heeded = alone && atomic_load_explicit(&stream->bell.heeded, memory_order_relaxed) == alone;
    uint8_t *streak = &stream->bell.streak, *expected = &stream->bell.expected;
    if (alone && !heeded && stream->bell.unasked == alone) {
        *expected = *expected < EXPECTED_MOST ? *expected * 2 : EXPECTED_MOST;
    } else if (!*expected || *streak == UINT8_MAX) {
        *expected = EXPECTED;
    }
    *streak = heeded ? *streak + (*streak < UINT8_MAX) : 0;
    stream->bell.alone = atomic_load_explicit(&stream->sequence, memory_order_relaxed) + 1;
    bool asks = *streak >= *expected && !stream->mark_count && !stream->bell.refused &&
                hdrt__dispatchers_rest(stream->scheduler);
    const hdrt__word *word = asks ? word_of(stream) : NULL;
    return word ? word->device : 0;
}

void hdrt__bell_rings(hdrt__stream *stream)
{
    rings(stream);
    stream->bell.unasked = stream->bell.alone;
}

static bool is_recent(const hdrt__stream *stream)
{
    return hdrt__now_ns() - atomic_load_explicit(&stream->bell.asked_ns, memory_order_relaxed) < HDRT__BELL_NS;
}

hdrt__bell_state hdrt__bell_state_for(hdrt__stream *stream, uint64_t sequence)
{
    if (!is_out(stream) || sequence > atomic_load_explicit(&stream->bell.rung, memory_order_relaxed)) {
        return HDRT__BELL_SILENT;
    }
    if (is_recent(stream)) {
        return HDRT__BELL_RUNG;
    }
    atomic_store_explicit(&stream->bell.asked_ns, hdrt__now_ns(), memory_order_relaxed);
    return HDRT__BELL_OVERDUE;
}

uint64_t hdrt__bell_heard(const hdrt__stream *stream)
{
    const hdrt__word *word = word_of(stream);
    return word ? atomic_load_explicit(word->host, memory_order_acquire) : 0;
}

bool hdrt__bell_is_awaited(const hdrt__stream *stream)
{
    uint64_t rung = atomic_load_explicit(&stream->bell.rung, memory_order_acquire);
    return rung && rung == atomic_load(&stream->sequence) && hdrt__bell_is_rung(stream) && is_recent(stream);
}
