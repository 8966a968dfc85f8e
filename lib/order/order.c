/* SPDX-License-Identifier: MIT */
#include "order/order.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/environment.h"
#include "base/log.h"
#include "base/status.h"

/* Points in a line at which it came to know more, kept for those who wait for positions behind them. */
#define POINTS 256u
#define NO_SLOT UINT32_MAX

typedef enum record_kind {
    RECORD_TOUCH,   /* accesses */
    RECORD_FORGET,  /* a block */
    RECORD_WAIT,    /* for an event */
    RECORD_HOST,    /* what the host knew */
    RECORD_UNKNOWN, /* everything */
    RECORD_CALL,    /* a host call, until it is over */
} record_kind;

typedef struct record {
    struct record *next;
    record_kind kind;
    uint64_t position;
    hdrt_event awaited;
    uint64_t block;
    bool over;         /* of a call */
    hdrt__clock clock; /* HOST, CALL: what the host knew */
    hdrt__toucher *toucher;
    uint32_t count;
    hdrt__access accesses[];
} record;

/* From `position` on the line knows so much; of a host timeline: when it was signalled. */
typedef struct point {
    uint64_t position;
    hdrt__clock clock;
} point;

typedef struct line {
    uint64_t timeline;
    uint32_t slot; /* in clocks */
    uint64_t base; /* clocks have base + position */
    uint64_t enqueued; /* last position that is known to be, or value that was signalled */
    bool is_host, is_foreign, ended;
    uint64_t host_version; /* what of the host's knowledge it has */
    hdrt__clock now;       /* of the records that were looked at */
    record *first, **last;
    point *points;
    uint32_t point_count;
    char name[48];
    UT_hash_handle hh;
} line;

typedef struct report {
    struct report *next;
    char text[];
} report;

typedef struct slot {
    line *line;   /* NULL: free */
    uint64_t top; /* of lines that had it before */
} slot;

struct hdrt__order {
    pthread_mutex_t lock;
    line *lines;
    slot *slots;
    uint32_t slot_count;
    uint32_t pending; /* lines with records */
    hdrt__clock host;
    uint64_t host_version;
    hdrt__shadow *shadow;
    report *reports, **last_report;
    uint64_t count;
    bool blind; /* there was no memory: nothing more is found */
};

/* ---- reports ----------------------------------------------------------------------------------------------------- */

/* Under the lock. */
static void add_report(hdrt__order *order, const char *text)
{
    size_t bytes = strlen(text) + 1;
    report *added = malloc(sizeof *added + bytes);
    order->count++;
    if (added) {
        memcpy(added->text, text, bytes);
        added->next = NULL;
        *order->last_report = added;
        order->last_report = &added->next;
    }
}

static void go_blind(hdrt__order *order)
{
    if (!order->blind) {
        order->blind = true;
        order->count--; /* it is no race */
        add_report(order, "the order check has no memory left: races from here on are not found");
    }
}

void hdrt__order_report(hdrt__order *order, const char *text)
{
    if (order) {
        pthread_mutex_lock(&order->lock);
        add_report(order, text);
        pthread_mutex_unlock(&order->lock);
    }
}

static void tell_line(const char *text)
{
    if (hdrt__log_enabled(HDRT_LOG_WARN)) {
        hdrt__log(HDRT_LOG_WARN, "%s", text);
    } else { /* who asks for the check wants to see what it finds */
        fprintf(stderr, "hdrt: %s\n", text);
    }
}

void hdrt__order_tell(hdrt__order *order)
{
    if (!order) {
        return;
    }
    pthread_mutex_lock(&order->lock);
    report *reports = order->reports;
    order->reports = NULL;
    order->last_report = &order->reports;
    pthread_mutex_unlock(&order->lock);
    while (reports) {
        report *next = reports->next;
        tell_line(reports->text);
        free(reports);
        reports = next;
    }
}

uint64_t hdrt__order_count(hdrt__order *order)
{
    if (!order) {
        return 0;
    }
    pthread_mutex_lock(&order->lock);
    uint64_t count = order->count;
    pthread_mutex_unlock(&order->lock);
    return count;
}

void hdrt__order_words(char *text, size_t size, const hdrt__access *access, const hdrt__toucher *toucher,
                       const hdrt__toucher *other, bool other_writes, uint64_t address, const char *order)
{
    char where[120] = "";
    if (access->block_bytes) {
        snprintf(where, sizeof where, " (byte %llu of the %llu at 0x%llx)",
                 (unsigned long long)(address - access->block_address), (unsigned long long)access->block_bytes,
                 (unsigned long long)access->block_address);
    }
    snprintf(text, size, "race: %s %s 0x%llx%s, which %s %s; %s", toucher->text, access->writes ? "writes" : "reads",
             (unsigned long long)address, where, other->text, other_writes ? "writes" : "reads", order);
}

static void conflict(void *context, const hdrt__access *access, const hdrt__toucher *toucher,
                     const hdrt__toucher *other, bool other_writes, uint64_t address)
{
    char text[1000];
    hdrt__order_words(text, sizeof text, access, toucher, other, other_writes, address,
                      "nothing that was enqueued orders them: let the later one's queue wait for an event that is "
                      "recorded behind the other (hdrt_queue_record, hdrt_queue_wait)");
    add_report(context, text);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static line *find_line(hdrt__order *order, uint64_t timeline)
{
    line *found;
    HASH_FIND(hh, order->lines, &timeline, sizeof timeline, found);
    return found;
}

static void free_record(record *gone)
{
    hdrt__clock_free(&gone->clock);
    hdrt__toucher_drop(gone->toucher);
    free(gone);
}

static void free_line(hdrt__order *order, line *gone)
{
    HASH_DEL(order->lines, gone);
    order->pending -= gone->first != NULL;
    while (gone->first) {
        record *next = gone->first->next;
        free_record(gone->first);
        gone->first = next;
    }
    for (uint32_t i = 0; i < gone->point_count; i++) {
        hdrt__clock_free(&gone->points[i].clock);
    }
    free(gone->points);
    hdrt__clock_free(&gone->now);
    free(gone);
}

/* A number in clocks: of a line that has ended, if the host knows that all of it is over, or a new one. */
static bool take_slot(hdrt__order *order, line *taker)
{
    for (uint32_t i = 0; i < order->slot_count; i++) {
        line *old = order->slots[i].line;
        if (old && old->ended && !old->first && hdrt__clock_get(&order->host, i) >= old->base + old->enqueued) {
            order->slots[i].top = old->base + old->enqueued;
            order->slots[i].line = NULL;
            free_line(order, old);
        }
        if (!order->slots[i].line) {
            order->slots[i].line = taker;
            taker->slot = i;
            taker->base = order->slots[i].top + 1;
            return true;
        }
    }
    slot *slots = realloc(order->slots, (order->slot_count + 1u) * sizeof *slots);
    if (!slots) {
        return false;
    }
    order->slots = slots;
    taker->slot = order->slot_count;
    taker->base = 0;
    slots[order->slot_count++] = (slot){taker, 0};
    return true;
}

static line *make_line(hdrt__order *order, uint64_t timeline, bool is_host, const char *name)
{
    line *made = calloc(1, sizeof *made);
    if (!made) {
        return NULL;
    }
    made->timeline = timeline;
    made->is_host = is_host;
    made->slot = NO_SLOT;
    made->last = &made->first;
    snprintf(made->name, sizeof made->name, "%s", name);
    if (!is_host && !take_slot(order, made)) {
        free(made);
        return NULL;
    }
    HASH_ADD(hh, order->lines, timeline, sizeof timeline, made);
    if (!made->hh.tbl) {
        if (!is_host) {
            order->slots[made->slot].line = NULL;
        }
        free(made);
        return NULL;
    }
    return made;
}

static line *line_of_queue(hdrt__order *order, hdrt_event event, const char *queue)
{
    line *found = find_line(order, event.timeline);
    if (!found && !order->blind && !(found = make_line(order, event.timeline, false, queue))) {
        go_blind(order);
    }
    return found;
}

/* The line knows more from `position` on. */
static bool add_point(line *of, uint64_t position)
{
    if (of->point_count && of->points[of->point_count - 1].position == position) {
        return hdrt__clock_join(&of->points[of->point_count - 1].clock, &of->now);
    }
    if (of->point_count == POINTS) { /* who waits for what is older comes to know more than he would */
        hdrt__clock_free(&of->points[0].clock);
        memmove(of->points, of->points + 1, --of->point_count * sizeof *of->points);
    }
    point *points = realloc(of->points, (of->point_count + 1u) * sizeof *points);
    if (!points) {
        return false;
    }
    of->points = points;
    points[of->point_count].position = position;
    if (!hdrt__clock_copy(&points[of->point_count].clock, &of->now)) {
        return false;
    }
    of->point_count++;
    return true;
}

/* What the line's point was that is in force at `value`. */
static const hdrt__clock *clock_at(const line *of, uint64_t value)
{
    if (of->is_host) { /* the first signal that is enough */
        for (uint32_t i = 0; i < of->point_count; i++) {
            if (of->points[i].position >= value) {
                return &of->points[i].clock;
            }
        }
        return NULL;
    }
    for (uint32_t i = of->point_count; i-- > 0;) {
        if (of->points[i].position <= value || i == 0) {
            return of->points[i].position <= value || of->point_count == POINTS ? &of->points[i].clock : NULL;
        }
    }
    return NULL;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static bool join_everything(hdrt__order *order, hdrt__clock *clock)
{
    bool joined = true;
    for (uint32_t i = 0; i < order->slot_count; i++) {
        const line *other = order->slots[i].line;
        joined &= hdrt__clock_raise(clock, i, other ? other->base + other->enqueued : order->slots[i].top);
    }
    return joined;
}

static bool join_event(hdrt__order *order, hdrt__clock *clock, hdrt_event event)
{
    const line *target = find_line(order, event.timeline);
    if (!target) {
        return true;
    }
    if (target->is_foreign) {
        return join_everything(order, clock);
    }
    const hdrt__clock *known = clock_at(target, event.value);
    return (!known || hdrt__clock_join(clock, known)) &&
           (target->is_host || hdrt__clock_raise(clock, target->slot, target->base + event.value));
}

static bool is_ready(hdrt__order *order, const record *next)
{
    if (next->kind == RECORD_CALL) {
        return next->over;
    }
    if (next->kind != RECORD_WAIT) {
        return true;
    }
    const line *target = find_line(order, next->awaited.timeline);
    return !target || target->ended || target->is_foreign ||
           (target->enqueued >= next->awaited.value &&
            (!target->first || target->first->position > next->awaited.value));
}

static bool look_at(hdrt__order *order, line *of, const record *next)
{
    bool done = true;
    switch (next->kind) {
    case RECORD_TOUCH:
        for (uint32_t i = 0; i < next->count && done; i++) {
            done = hdrt__shadow_touch(order->shadow, &next->accesses[i], next->toucher, &of->now, conflict, order);
        }
        return done;
    case RECORD_FORGET:
        hdrt__shadow_forget(order->shadow, next->block);
        return true;
    case RECORD_WAIT:
        done = join_event(order, &of->now, next->awaited);
        break;
    case RECORD_HOST:
    case RECORD_CALL:
        done = hdrt__clock_join(&of->now, &next->clock);
        break;
    case RECORD_UNKNOWN:
        done = join_everything(order, &of->now);
        break;
    }
    return done && add_point(of, next->position);
}

static bool settle_line(hdrt__order *order, line *of)
{
    bool moved = false;
    while (of && of->first && is_ready(order, of->first)) {
        record *next = of->first;
        if (!order->blind && !look_at(order, of, next)) {
            go_blind(order);
        }
        of->first = next->next;
        if (!of->first) {
            of->last = &of->first;
            order->pending--;
        }
        free_record(next);
        moved = true;
    }
    return moved;
}

/* Look at what can be, until nothing more can; `changed` first. */
static void settle(hdrt__order *order, line *changed)
{
    settle_line(order, changed);
    for (bool moved = true; moved && order->pending;) {
        moved = false;
        for (uint32_t i = 0; i < order->slot_count; i++) {
            moved |= settle_line(order, order->slots[i].line);
        }
    }
}

/* \return NULL: no memory. */
static record *add_record(hdrt__order *order, line *to, record_kind kind, uint64_t position, uint32_t count)
{
    record *added = calloc(1, sizeof *added + count * sizeof(hdrt__access));
    if (!added) {
        go_blind(order);
        return NULL;
    }
    added->kind = kind;
    added->position = position;
    added->count = count;
    order->pending += !to->first;
    *to->last = added;
    to->last = &added->next;
    return added;
}

/* What the host knows by now holds for what is enqueued from now on. */
static void take_host(hdrt__order *order, line *to, uint64_t position)
{
    if (to->host_version == order->host_version) {
        return;
    }
    to->host_version = order->host_version;
    record *added = add_record(order, to, RECORD_HOST, position, 0);
    if (added && !hdrt__clock_copy(&added->clock, &order->host)) {
        go_blind(order);
    }
}

/* The queue's line, before something of `event`'s position; NULL: nothing can be noted. */
static line *come_to(hdrt__order *order, hdrt_event event, const char *queue)
{
    line *at = line_of_queue(order, event, queue);
    if (at) {
        take_host(order, at, event.value);
    }
    return at;
}

static void raise_enqueued(line *of, uint64_t position)
{
    if (of && position > of->enqueued) {
        of->enqueued = position;
    }
}

void hdrt__order_operation(hdrt__order *order, hdrt_event event, const char *queue, const char *what,
                           const hdrt__access *accesses, uint32_t count)
{
    char text[300];
    if (!order) {
        return;
    }
    pthread_mutex_lock(&order->lock);
    line *at = come_to(order, event, queue);
    if (at && count && !at->is_foreign && !order->blind) {
        snprintf(text, sizeof text, "%s of queue '%s' (position %llu)", what, at->name,
                 (unsigned long long)event.value);
        record *added = add_record(order, at, RECORD_TOUCH, event.value, count);
        if (added) {
            memcpy(added->accesses, accesses, count * sizeof *accesses);
            added->toucher = hdrt__toucher_create(at->slot, at->base + event.value, text);
            if (!added->toucher) {
                added->count = 0;
                go_blind(order);
            }
        }
    }
    raise_enqueued(at, event.value);
    settle(order, at);
    pthread_mutex_unlock(&order->lock);
}

void hdrt__order_forget(hdrt__order *order, hdrt_event event, uint64_t block)
{
    if (!order) {
        return;
    }
    pthread_mutex_lock(&order->lock);
    line *at = find_line(order, event.timeline);
    record *added = at ? add_record(order, at, RECORD_FORGET, event.value, 0) : NULL;
    if (added) {
        added->block = block;
    } else {
        hdrt__shadow_forget(order->shadow, block);
    }
    settle(order, at);
    pthread_mutex_unlock(&order->lock);
}

void hdrt__order_wait(hdrt__order *order, hdrt_event event, const char *queue, hdrt_event awaited)
{
    if (!order) {
        return;
    }
    pthread_mutex_lock(&order->lock);
    line *at = come_to(order, event, queue);
    record *added = at ? add_record(order, at, RECORD_WAIT, event.value, 0) : NULL;
    if (added) {
        added->awaited = awaited;
    }
    settle(order, at);
    pthread_mutex_unlock(&order->lock);
}

void hdrt__order_wait_unknown(hdrt__order *order, hdrt_event event, const char *queue)
{
    if (!order) {
        return;
    }
    pthread_mutex_lock(&order->lock);
    line *at = come_to(order, event, queue);
    if (at) {
        add_record(order, at, RECORD_UNKNOWN, event.value, 0);
    }
    settle(order, at);
    pthread_mutex_unlock(&order->lock);
}

void hdrt__order_foreign(hdrt__order *order, hdrt_event event, const char *queue)
{
    if (!order) {
        return;
    }
    pthread_mutex_lock(&order->lock);
    line *at = line_of_queue(order, event, queue);
    if (at) {
        at->is_foreign = true;
    }
    settle(order, at);
    pthread_mutex_unlock(&order->lock);
}

void hdrt__order_queue(hdrt__order *order, hdrt_event event, const char *queue, uint64_t enqueued)
{
    if (!order) {
        return;
    }
    pthread_mutex_lock(&order->lock);
    line *at = line_of_queue(order, event, queue);
    raise_enqueued(at, enqueued);
    settle(order, at);
    pthread_mutex_unlock(&order->lock);
}

void hdrt__order_end(hdrt__order *order, hdrt_event event)
{
    if (!order) {
        return;
    }
    pthread_mutex_lock(&order->lock);
    line *at = find_line(order, event.timeline);
    if (at) {
        at->ended = true;
        settle(order, at);
        if (at->is_host && !order->pending) { /* nobody who waits can ask what it knew */
            free_line(order, at);
        }
    }
    pthread_mutex_unlock(&order->lock);
}

/* ---- the host ---------------------------------------------------------------------------------------------------- */

void hdrt__order_known(hdrt__order *order, hdrt_event event)
{
    if (!order) {
        return;
    }
    pthread_mutex_lock(&order->lock);
    if (!join_event(order, &order->host, event)) {
        go_blind(order);
    }
    order->host_version++;
    pthread_mutex_unlock(&order->lock);
}

void hdrt__order_call(hdrt__order *order, hdrt_event event, const char *queue)
{
    if (!order) {
        return;
    }
    pthread_mutex_lock(&order->lock);
    line *at = come_to(order, event, queue);
    if (at) {
        add_record(order, at, RECORD_CALL, event.value, 0);
    }
    raise_enqueued(at, event.value);
    settle(order, at);
    pthread_mutex_unlock(&order->lock);
}

void hdrt__order_call_begin(hdrt__order *order, hdrt_event event)
{
    hdrt__order_known(order, event); /* what is before it; the call itself touches nothing */
}

void hdrt__order_call_end(hdrt__order *order, hdrt_event event)
{
    if (!order) {
        return;
    }
    pthread_mutex_lock(&order->lock);
    line *at = find_line(order, event.timeline);
    for (record *of = at ? at->first : NULL; of; of = of->next) {
        if (of->kind == RECORD_CALL && of->position == event.value) {
            of->over = true;
            if (!hdrt__clock_copy(&of->clock, &order->host)) {
                go_blind(order);
            }
            break;
        }
    }
    settle(order, at);
    pthread_mutex_unlock(&order->lock);
}

void hdrt__order_timeline(hdrt__order *order, hdrt_event event)
{
    if (!order) {
        return;
    }
    pthread_mutex_lock(&order->lock);
    line *old = find_line(order, event.timeline);
    if (!old && !make_line(order, event.timeline, true, "host")) {
        go_blind(order);
    }
    pthread_mutex_unlock(&order->lock);
}

void hdrt__order_signal(hdrt__order *order, hdrt_event event)
{
    if (!order) {
        return;
    }
    pthread_mutex_lock(&order->lock);
    line *at = find_line(order, event.timeline);
    if (at && !order->blind) {
        at->enqueued = event.value;
        if (!hdrt__clock_join(&at->now, &order->host) || !add_point(at, event.value)) {
            go_blind(order);
        }
        settle(order, at);
    }
    pthread_mutex_unlock(&order->lock);
}

/* ---- making and ending ------------------------------------------------------------------------------------------- */

hdrt_status hdrt__order_create(hdrt__order **out_order)
{
    const char *wanted = hdrt__environment(HDRT__ENV_CHECK);
    *out_order = NULL;
    if (!wanted) {
        return HDRT_OK;
    }
    if (strcmp(wanted, "order") != 0) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "HDRT_CHECK is '%s': the library checks 'order'", wanted);
    }
    hdrt__order *order = calloc(1, sizeof *order);
    hdrt__shadow *shadow = hdrt__shadow_create();
    if (!order || !shadow) {
        hdrt__shadow_destroy(shadow);
        free(order);
        return hdrt__fail_memory(sizeof *order, "the order check");
    }
    pthread_mutex_init(&order->lock, NULL);
    order->shadow = shadow;
    order->last_report = &order->reports;
    *out_order = order;
    return HDRT_OK;
}

void hdrt__order_destroy(hdrt__order *order)
{
    if (!order) {
        return;
    }
    hdrt__order_tell(order);
    if (order->count) {
        char text[80];
        snprintf(text, sizeof text, "order: %llu races between queues in all", (unsigned long long)order->count);
        tell_line(text);
    }
    while (order->lines) {
        free_line(order, order->lines);
    }
    free(order->slots);
    hdrt__clock_free(&order->host);
    hdrt__shadow_destroy(order->shadow);
    pthread_mutex_destroy(&order->lock);
    free(order);
}
