/* SPDX-License-Identifier: MIT */
#include "queue/together.h"

#include <stdlib.h>

#include "base/number.h"
#include "queue/commit.h"
#include "queue/park.h"
#include "queue/scheduler.h"
#include "queue/template.h"
#include "queue/wide.h"

/* For how long nobody must have come until a piece that is not full is launched. */
#define QUIET_NS 25000u
/* Those who come so long after others are others; and within how long these must come for the next to be awaited. */
#define APART_NS 1000000u
#define AGAIN_NS 10000000u
/* How soon after a full piece few are what is left of many. */
#define REST_NS 100000u
/* Most queues in it. */
#define MOST 4096u
/* How often streams are asked whether they are idle. */
#define ASK_NS 20000u

struct hdrt__together {
    hdrt__wide *wide;
    hdrt_queue *queues[MOST]; /* a ring */
    uint32_t first, count;
    uint32_t singles; /* the first ones, for which there is no template */
    uint32_t expected_us;
    uint64_t added_at;   /* when the last one came */
    bool many, again;    /* those who came together made a piece; soon after others who did */
    uint64_t piece_at;   /* when a piece was launched that was no rest */
    uint64_t held_until; /* when it is no longer waited for a stream */
    uint64_t asked_at;
    /* The last piece, if its queues are not finished yet: the next piece is launched first. */
    struct {
        hdrt_queue *queues[HDRT__WIDE_LIMIT];
        uint32_t count;
        hdrt__stream *stream;
    } launched;
};

hdrt__together *hdrt__together_create(void)
{
    hdrt__together *together = calloc(1, sizeof *together);
    if (together && !(together->wide = hdrt__wide_create())) {
        free(together);
        together = NULL;
    }
    return together;
}

void hdrt__together_destroy(hdrt__together *together)
{
    if (together) {
        hdrt__wide_destroy(together->wide);
        free(together);
    }
}

/* The next piece may be held until kernels like these would long be over: perhaps they wait for those that are held. */
static void begin_piece(hdrt__together *together, uint64_t now)
{
    together->held_until = now + (uint64_t)together->expected_us * 8000;
}

bool hdrt__together_add(hdrt__together *together, hdrt_queue *queue)
{
    if (!hdrt__wide_may(queue) || together->count == MOST ||
        (together->count && !hdrt__wide_match(together->queues[together->first], queue))) {
        return false;
    }
    uint64_t now = hdrt__now_ns();
    if (!together->count) {
        uint32_t expected = hdrt__wide_expected_us(queue);
        if (expected < HDRT__TOGETHER_LEAST_US) {
            return false; /* short ones go one after the other (pending.h) */
        }
        together->expected_us = expected;
        begin_piece(together, now);
    }
    if (now - together->added_at > APART_NS) {
        together->again = together->many && now - together->added_at < AGAIN_NS;
        together->many = false;
    }
    together->added_at = now;
    together->queues[(together->first + together->count++) % MOST] = queue;
    return true;
}

static hdrt_queue *take_first(hdrt__together *together)
{
    hdrt_queue *queue = together->queues[together->first];
    together->first = (together->first + 1) % MOST;
    together->count--;
    return queue;
}

/* How many of them go together. */
static uint32_t piece_of(const hdrt__together *together)
{
    return together->count < HDRT__WIDE_LIMIT ? together->count : HDRT__WIDE_LIMIT;
}

void hdrt__together_finish(hdrt__together *together)
{
    if (together->launched.count) {
        hdrt__wide_mark(together->launched.stream);
    }
    for (uint32_t i = 0; i < together->launched.count; i++) {
        hdrt_queue *queue = together->launched.queues[i];
        hdrt__wide_finish(queue);
        hdrt__park_tidy(queue);
        hdrt__committer_leave(queue);
        hdrt__queue_drop(queue);
    }
    together->launched.count = 0;
}

/* \return how many there are in the next piece. */
static uint32_t list_piece(const hdrt__together *together, hdrt_queue **queues)
{
    uint32_t count = piece_of(together);
    for (uint32_t i = 0; i < count; i++) {
        queues[i] = together->queues[(together->first + i) % MOST];
    }
    return count;
}

/* Whether those that are there are no piece. What is left of many goes like these, even if it is little: a kernel by itself
 * may get behind one of them in a hardware queue. */
static bool are_too_few(const hdrt__together *together, uint64_t now)
{
    hdrt_queue *queues[HDRT__WIDE_LIMIT];
    return together->count < HDRT__TEMPLATE_WIDE_LEAST &&
           (now - together->piece_at >= REST_NS ||
            !hdrt__wide_is_ready(together->wide, queues, list_piece(together, queues)));
}

/* \return how many were launched as a piece; 0: there is no template for it. */
static uint32_t launch_piece(hdrt__together *together, hdrt__stream *stream)
{
    hdrt_queue *queues[HDRT__WIDE_LIMIT];
    uint32_t count = list_piece(together, queues);
    if (together->launched.count && !hdrt__wide_is_ready(together->wide, queues, count)) {
        hdrt__together_finish(together); /* it may take long, and somebody want these queues */
    }
    uint32_t launched = hdrt__wide_hand_over(together->wide, stream, queues, count);
    hdrt__together_finish(together);
    for (uint32_t i = 0; i < launched; i++) {
        together->launched.queues[i] = take_first(together);
    }
    if (launched >= HDRT__TEMPLATE_WIDE_LEAST) {
        together->many = true;
        together->piece_at = hdrt__now_ns();
    }
    together->launched.count = launched;
    together->launched.stream = stream;
    return launched;
}

hdrt_queue *hdrt__together_next(hdrt__together *together)
{
    uint64_t now = hdrt__now_ns();
    while (together->count && !together->singles &&
           (together->count >= HDRT__WIDE_LIMIT || now - together->added_at >= QUIET_NS)) {
        hdrt_queue *queue = together->queues[together->first];
        if (are_too_few(together, now)) {
            together->singles = together->count;
            break;
        }
        bool ask = now - together->asked_at >= ASK_NS;
        hdrt__stream *stream = hdrt__scheduler_wide(queue->scheduler, queue->class, ask);
        if (ask) {
            together->asked_at = now;
        }
        if (!stream && now < together->held_until) {
            if (now - together->added_at >= QUIET_NS) { /* no more will come, and so many fit into no piece, or are few */
                together->singles = together->count < HDRT__TEMPLATE_WIDE_LEAST
                                        ? together->count
                                        : hdrt__wide_rest(queue, together->count);
            }
            break;
        }
        uint32_t launched = stream ? launch_piece(together, stream) : 0;
        if (!launched) {
            together->singles = piece_of(together);
            break;
        }
        now = hdrt__now_ns();
        if (together->count) {
            begin_piece(together, now);
        }
    }
    if (!together->singles) {
        return NULL;
    }
    hdrt__together_finish(together);
    together->singles--;
    return take_first(together);
}

uint64_t hdrt__together_awaited_until(const hdrt__together *together)
{
    return together->again && together->many ? together->added_at + AGAIN_NS : 0;
}

bool hdrt__together_is_due(const hdrt__together *together)
{
    return together->count >= HDRT__WIDE_LIMIT || together->singles;
}

uint64_t hdrt__together_pause(const hdrt__together *together)
{
    if (!together->count) {
        return UINT64_MAX;
    }
    uint64_t now = hdrt__now_ns();
    bool gathering = together->count < HDRT__WIDE_LIMIT && now - together->added_at < QUIET_NS;
    uint64_t held = (uint64_t)together->expected_us * 1000 / 16; /* until a piece is over */
    return gathering ? 0 : held;
}
