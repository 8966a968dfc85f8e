/* SPDX-License-Identifier: MIT */
#include "soft/check/race.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "soft/check/race_report.h"
#include "soft/check/release.h"
#include "soft/check/shadow.h"
#include "soft/check/state.h"

#define MEMO 256u
/* So many places are remembered from which freed memory was taken. */
#define FREED 1024u
/* Values that others may wait for are no larger. */
#define VALUE_BYTES 8u

/* "An access of this kind by this instruction makes that state of this one." */
typedef struct memo {
    uint64_t what; /* 0: empty */
    uint32_t from, to;
} memo;

struct hdsoft__race {
    uint32_t chain;
    uint64_t time, last;      /* of the accesses now; the last that the operation may get to */
    hdsoft__clock *clock;
    hdsoft__clock *pending;   /* read from others' releases, and not fenced yet */
    bool fenced;
    uint64_t epoch;           /* of the shadow that `near` is of */
    hdsoft__shadow *near;
    uint64_t sweeps;          /* how often states had been swept when the memos were made */
    memo *memos;              /* MEMO of them, while the operation is at work */
};

/* A range that a stream's order has freed. */
typedef struct freed_range {
    hdsoft_range range;
    hdsoft__operation *by;
} freed_range;

static struct {
    uint64_t sweeps;
    freed_range freed[FREED];
    unsigned freed_next;
    hdsoft__state_entry *scratch;
    uint32_t scratch_room;
} all;

static struct {
    pthread_mutex_t lock; /* a leaf */
    hdsoft__clock *host, *floor;
    uint64_t host_time;
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const no_memory = "there is no memory, or too much of it in use, for what was touched by whom";

/* ---- clocks ---- */

hdsoft__clock *hdsoft__host_clock(void)
{
    pthread_mutex_lock(&known.lock);
    hdsoft__clock *clock = hdsoft__clock_hold(known.host);
    pthread_mutex_unlock(&known.lock);
    return clock;
}

void hdsoft__host_learn(hdsoft__clock *clock)
{
    pthread_mutex_lock(&known.lock);
    bool learnt = hdsoft__clock_join(&known.host, clock);
    pthread_mutex_unlock(&known.lock);
    if (!learnt)
        hdsoft__race_give_up(no_memory);
}

uint64_t hdsoft__host_step(void)
{
    pthread_mutex_lock(&known.lock);
    uint64_t time = ++known.host_time;
    bool learnt = hdsoft__clock_learn(&known.host, HDSOFT__HOST_CHAIN, time);
    pthread_mutex_unlock(&known.lock);
    if (!learnt)
        hdsoft__race_give_up(no_memory);
    return time;
}

void hdsoft__race_floor(hdsoft__clock *clock)
{
    pthread_mutex_lock(&known.lock);
    hdsoft__clock *before = known.floor;
    known.floor = clock;
    pthread_mutex_unlock(&known.lock);
    hdsoft__clock_release(before);
}

struct hdsoft__race *hdsoft__race_new(uint32_t chain, uint64_t time, hdsoft__clock *clock)
{
    struct hdsoft__race *race = calloc(1, sizeof *race);
    if (!race) {
        hdsoft__clock_release(clock);
        hdsoft__race_give_up(no_memory);
        return NULL;
    }
    race->chain = chain;
    race->time = time;
    race->last = time + HDSOFT__TIMES_OF_AN_OPERATION - 1;
    race->clock = clock;
    return race;
}

void hdsoft__race_free(struct hdsoft__race *race)
{
    if (!race)
        return;
    hdsoft__clock_release(race->clock);
    hdsoft__clock_release(race->pending);
    free(race->memos);
    free(race);
}

hdsoft__clock *hdsoft__race_clock(const struct hdsoft__race *race)
{
    return race->clock;
}

bool hdsoft__race_known(const hdsoft__operation *operation, uint64_t time, const hdsoft__clock *clock)
{
    return hdsoft__clock_knows(clock, operation->race->chain, time);
}

static void forget_memos(struct hdsoft__race *race)
{
    if (race->memos)
        memset(race->memos, 0, MEMO * sizeof *race->memos);
}

void hdsoft__race_learn(struct hdsoft__race *race, hdsoft__clock *clock)
{
    const hdsoft__clock *before = race->clock;
    if (!hdsoft__clock_join(&race->clock, clock))
        hdsoft__race_give_up(no_memory);
    if (race->clock != before)
        forget_memos(race);
}

void hdsoft__race_end(struct hdsoft__race *race)
{
    free(race->memos);
    race->memos = NULL;
    if (!hdsoft__clock_learn(&race->clock, race->chain, race->last))
        hdsoft__race_give_up(no_memory);
}

/* What the operation does from now on is not part of what it has released. */
static void next_time(struct hdsoft__race *race)
{
    if (race->time + 1 >= race->last)
        return; /* too many releases to tell apart: the rest counts as released too */
    race->time++;
    if (!hdsoft__clock_learn(&race->clock, race->chain, race->time))
        hdsoft__race_give_up(no_memory);
    forget_memos(race);
}

/* ---- states ---- */

/* One access on its way through the words that it touches. */
typedef struct cursor {
    hdsoft__operation *operation;
    struct hdsoft__race *race;
    const hdsoft_access *access; /* of a kernel; NULL: a command's */
    hdsoft__touch_kind kind;
    uint32_t instruction;
} cursor;

static bool scratch_room(uint32_t count)
{
    if (count <= all.scratch_room)
        return true;
    hdsoft__state_entry *grown = realloc(all.scratch, 2 * count * sizeof *grown);
    if (!grown)
        return false;
    all.scratch = grown;
    all.scratch_room = 2 * count;
    return true;
}

/* `words`: so many that follow are in the same state, and touched alike. */
static void report(const cursor *at, const hdsoft__state_entry *other, uint64_t address, uint8_t bytes, uint64_t words)
{
    hdsoft__touch now = {.operation = at->operation, .instruction = at->instruction,
                         .write = at->kind != HDSOFT__TOUCH_READ && at->kind != HDSOFT__TOUCH_STRONG_READ &&
                                  at->kind != HDSOFT__TOUCH_POLL,
                         .atomic = at->kind == HDSOFT__TOUCH_STRONG_WRITE};
    hdsoft__touch before = {.operation = other->operation, .instruction = other->instruction,
                            .write = other->kind != HDSOFT__TOUCH_READ && other->kind != HDSOFT__TOUCH_STRONG_READ &&
                                     other->kind != HDSOFT__TOUCH_POLL,
                            .atomic = other->kind == HDSOFT__TOUCH_STRONG_WRITE};
    uint64_t first = address + (unsigned)__builtin_ctz(bytes);
    for (uint32_t rest = at->access ? at->access->active : 0; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        if (first - at->access->addresses[lane] >= at->access->bytes)
            continue;
        now.known_thread = true;
        hdsoft_access_thread(at->access, lane, now.block, now.thread);
        break;
    }
    hdsoft__race_report(&now, &before, first, bytes == 0xf ? 4 * words : (unsigned)__builtin_popcount(bytes));
}

/* Whether nothing orders the access after the entry's, and something must. */
static bool races(const cursor *at, const hdsoft__state_entry *entry)
{
    if (!hdsoft__conflict(at->kind, entry->kind))
        return false;
    /* The host may free what its stream has allocated, if nobody uses it: the driver sees to the order of the two. */
    return !(at->operation->kind == HDSOFT__OPERATION_FREE && at->operation->stream == 0 &&
             entry->operation->kind == HDSOFT__OPERATION_ALLOCATE);
}

/* What the access makes of a state, for the bytes of `mask` in `words` words from that at `address` on. */
static uint32_t change(const cursor *at, uint32_t from, uint8_t mask, uint64_t address, uint64_t words)
{
    const hdsoft__state *state = from ? hdsoft__state_get(from) : NULL;
    uint32_t count = 0, old_count = state ? state->count : 0;
    if (!scratch_room(old_count + 1))
        return UINT32_MAX;
    hdsoft__state_entry mine = {at->operation, at->race->time, at->instruction, (uint8_t)at->kind, mask};
    for (uint32_t i = 0; i < old_count; i++) {
        hdsoft__state_entry entry = state->entries[i];
        uint8_t common = entry.mask & mask;
        bool own = entry.operation == at->operation, now = own && entry.time == at->race->time;
        if (now && common == mask && hdsoft__covers(entry.kind, at->kind))
            return from;
        bool ordered = own || hdsoft__race_known(entry.operation, entry.time, at->race->clock);
        bool race = common && !ordered && races(at, &entry);
        if (race)
            report(at, &entry, address, common, words);
        if ((ordered || race) && hdsoft__covers(at->kind, entry.kind))
            entry.mask &= (uint8_t)~mask;
        if (now && entry.kind == at->kind && entry.instruction == at->instruction) {
            mine.mask |= entry.mask; /* other bytes of the word, by other lanes */
            entry.mask = 0;
        }
        if (entry.mask)
            all.scratch[count++] = entry;
    }
    all.scratch[count++] = mine;
    return hdsoft__state_number(all.scratch, count);
}

static uint32_t after(const cursor *at, uint32_t from, uint8_t mask, uint64_t address, uint64_t words)
{
    uint64_t what = (uint64_t)at->instruction << 16 | (uint64_t)at->kind << 8 | mask;
    uint64_t hash = (what * 31 + from) * UINT64_C(0x9e3779b97f4a7c15);
    memo *last = &at->race->memos[hash >> 56];
    if (last->what == what && last->from == from)
        return last->to;
    uint32_t to = change(at, from, mask, address, words);
    if (to == UINT32_MAX) {
        hdsoft__race_give_up(no_memory);
        return from;
    }
    *last = (memo){what, from, to};
    return to;
}

/* ---- words ---- */

static void touch_words(const cursor *at, uint32_t *words, uint32_t count, uint8_t mask, uint64_t address)
{
    for (uint32_t first = 0, last; first < count; first = last) {
        uint32_t from = words[first];
        for (last = first + 1; last < count && words[last] == from;)
            last++;
        uint32_t to = after(at, from, mask, address + UINT64_C(4) * first, last - first);
        for (uint32_t i = first; i < last && from != to; i++)
            words[i] = to;
    }
}

/* Words [first, last) of a range, counted from its own first. */
static void touch_range(const cursor *at, hdsoft__shadow *shadow, uint64_t first, uint64_t last, uint8_t mask)
{
    while (first < last) {
        hdsoft__shadow_page *page = &shadow->pages[first / HDSOFT__PAGE_WORDS];
        uint64_t page_first = first / HDSOFT__PAGE_WORDS * HDSOFT__PAGE_WORDS;
        uint64_t page_last = page_first + HDSOFT__PAGE_WORDS;
        uint64_t end = last < page_last ? last : page_last;
        uint64_t address = (shadow->first + first) * 4;
        bool whole = first == page_first && (end == page_last || end == shadow->words) && mask == 0xf;
        if (!page->words && whole) {
            page->same = after(at, page->same, mask, address, end - first);
        } else {
            uint32_t *words = hdsoft__shadow_words(page);
            if (!words) {
                hdsoft__race_give_up(no_memory);
                return;
            }
            touch_words(at, words + (first - page_first), (uint32_t)(end - first), mask, address);
        }
        first = end;
    }
}

/* Which of a word's bytes, the first of which is at `word`, lie in [low, high). */
static uint8_t bytes_in(uint64_t word, uint64_t low, uint64_t high)
{
    uint8_t mask = 0;
    for (unsigned i = 0; i < 4; i++)
        mask |= (uint8_t)((word + i >= low && word + i < high) << i);
    return mask;
}

/* Memory that is not there (any more): whoever touches it faults; if its free was not ordered, it is a race as well. */
static void touch_nothing(const cursor *at, uint64_t address)
{
    for (unsigned i = 1; i <= FREED; i++) {
        const freed_range *freed = &all.freed[(all.freed_next - i) % FREED];
        if (!freed->by || address < freed->range.base || address >= freed->range.end)
            continue;
        hdsoft__state_entry entry = {.operation = freed->by, .time = freed->by->race->time,
                                     .kind = HDSOFT__TOUCH_WRITE};
        if (!hdsoft__race_known(freed->by, entry.time, at->race->clock))
            report(at, &entry, address & ~UINT64_C(3), (uint8_t)(1u << (address & 3)), 1);
        return;
    }
}

static hdsoft__shadow *find(struct hdsoft__race *race, uint64_t address)
{
    if (race->epoch == hdsoft__shadow_epoch() && race->near && address >= race->near->range.base &&
        address < race->near->range.end)
        return race->near;
    race->epoch = hdsoft__shadow_epoch();
    race->near = hdsoft__shadow_find(address);
    return race->near;
}

/* Bytes [low, high), which the range may end before. */
static void touch(const cursor *at, uint64_t low, uint64_t high)
{
    hdsoft__shadow *shadow = find(at->race, low);
    if (!shadow) {
        touch_nothing(at, low);
        return;
    }
    if (high > shadow->range.end || high < low)
        high = shadow->range.end;
    uint64_t first = low / 4 - shadow->first, last = (high - 1) / 4 - shadow->first; /* both touched */
    uint8_t head = bytes_in(low & ~UINT64_C(3), low, high), tail = bytes_in((high - 1) & ~UINT64_C(3), low, high);
    if (head != 0xf || first == last) {
        touch_range(at, shadow, first, first + 1, head);
        if (first++ == last)
            return;
    }
    touch_range(at, shadow, first, last + (tail == 0xf), 0xf);
    if (tail != 0xf)
        touch_range(at, shadow, last, last + 1, tail);
}

/* ---- kernels ---- */

/* Before an access is looked at: states that are of no use any more may go now. */
static bool ready(struct hdsoft__race *race)
{
    if (!race || !hdsoft__checking(HDSOFT_CHECK_RACE))
        return false;
    if (!race->memos && !(race->memos = calloc(MEMO, sizeof *race->memos))) {
        hdsoft__race_give_up(no_memory);
        return false;
    }
    if (hdsoft__states_are_many()) {
        pthread_mutex_lock(&known.lock);
        hdsoft__clock *floor = hdsoft__clock_hold(known.floor);
        pthread_mutex_unlock(&known.lock);
        hdsoft__states_sweep(floor);
        hdsoft__clock_release(floor);
        all.sweeps++;
    }
    if (race->sweeps != all.sweeps) {
        forget_memos(race);
        race->sweeps = all.sweeps;
    }
    return true;
}

/* Lanes that touch what follows on, or the same, are one stretch. */
static void touch_lanes(const cursor *at, const hdsoft_access *access)
{
    uint32_t rest = access->active;
    uint64_t low = access->addresses[__builtin_ctz(rest)], high = low + access->bytes;
    for (rest &= rest - 1; rest; rest &= rest - 1) {
        uint64_t address = access->addresses[__builtin_ctz(rest)];
        if (address == high) {
            high += access->bytes;
        } else if (address < low || address + access->bytes > high) {
            touch(at, low, high);
            low = address;
            high = low + access->bytes;
        }
    }
    touch(at, low, high);
}

static void learn_pending(struct hdsoft__race *race)
{
    if (race->pending)
        hdsoft__race_learn(race, race->pending);
}

/* What a strong access learns from whom it may read, and tells those who may read it. Fences make that count: one
 * after the read, one before the write. */
static void synchronise(hdsoft__operation *operation, const hdsoft_access *access)
{
    struct hdsoft__race *race = operation->race;
    bool reads = access->flags & HDSOFT_ACCESS_READ, writes = access->flags & HDSOFT_ACCESS_WRITE, told = false;
    bool releases = writes && (race->fenced || access->flags & HDSOFT_ACCESS_RELEASE);
    for (uint32_t rest = access->active; rest && (reads || releases); rest &= rest - 1) {
        uint64_t address = access->addresses[__builtin_ctz(rest)];
        const hdsoft__shadow *shadow = find(race, address);
        bool host = shadow && shadow->range.kind == HDSOFT_RANGE_HOST;
        if (reads) {
            hdsoft__clock *clock = host ? hdsoft__host_clock() : NULL;
            if (!hdsoft__clock_join(&race->pending, clock) ||
                !hdsoft__clock_join(&race->pending, hdsoft__released(address)))
                hdsoft__race_give_up(no_memory);
            hdsoft__clock_release(clock);
            if (access->flags & HDSOFT_ACCESS_ACQUIRE)
                learn_pending(race);
        }
        if (!releases)
            continue;
        if (host)
            hdsoft__host_learn(race->clock);
        if (!hdsoft__release(address, race->clock, reads))
            hdsoft__race_give_up(no_memory);
        told = true;
    }
    if (told)
        next_time(race);
}

void hdsoft__race_access(hdsoft__operation *operation, const hdsoft_access *access)
{
    struct hdsoft__race *race = operation->race;
    if (!ready(race))
        return;
    bool write = access->flags & HDSOFT_ACCESS_WRITE, strong = access->flags & HDSOFT_ACCESS_STRONG;
    cursor at = {.operation = operation, .race = race, .access = access, .instruction = access->instruction,
                 .kind = strong ? write ? HDSOFT__TOUCH_STRONG_WRITE : HDSOFT__TOUCH_STRONG_READ
                         : write ? HDSOFT__TOUCH_WRITE : HDSOFT__TOUCH_READ};
    touch_lanes(&at, access);
    if (strong)
        synchronise(operation, access);
}

void hdsoft__race_fence(hdsoft__operation *operation)
{
    if (!operation->race)
        return;
    operation->race->fenced = true;
    learn_pending(operation->race);
}

/* ---- commands ---- */

static void wait_for_value(hdsoft__operation *operation, uint64_t address)
{
    const hdsoft__shadow *shadow = find(operation->race, address);
    hdsoft__clock *released = hdsoft__released(address);
    hdsoft__race_learn(operation->race, released);
    if (released && shadow && shadow->range.kind != HDSOFT_RANGE_HOST)
        return;
    /* The host may have written it, knowing what it knows. */
    hdsoft__clock *host = hdsoft__host_clock();
    hdsoft__race_learn(operation->race, host);
    hdsoft__clock_release(host);
}

void hdsoft__race_read(hdsoft__operation *operation, uint64_t address, uint64_t bytes)
{
    if (!bytes || !ready(operation->race))
        return;
    bool waits = operation->kind == HDSOFT__OPERATION_WAIT_VALUE;
    cursor at = {.operation = operation, .race = operation->race,
                 .kind = waits ? HDSOFT__TOUCH_POLL : HDSOFT__TOUCH_READ};
    touch(&at, address, address + bytes);
    if (waits)
        wait_for_value(operation, address);
}

void hdsoft__race_write(hdsoft__operation *operation, uint64_t address, uint64_t bytes)
{
    if (!bytes || !ready(operation->race))
        return;
    bool value = operation->kind == HDSOFT__OPERATION_WRITE_VALUE;
    cursor at = {.operation = operation, .race = operation->race,
                 .kind = value ? HDSOFT__TOUCH_STRONG_WRITE : HDSOFT__TOUCH_COMMAND_WRITE};
    touch(&at, address, address + bytes);
    const hdsoft__shadow *shadow = find(operation->race, address);
    if (value && shadow && shadow->range.kind == HDSOFT_RANGE_HOST)
        hdsoft__host_learn(operation->race->clock);
    if (bytes <= VALUE_BYTES && !hdsoft__release(address, operation->race->clock, false))
        hdsoft__race_give_up(no_memory);
}

/* ---- memory in a stream's order ---- */

static void touch_all(hdsoft__operation *operation, const hdsoft_range *range)
{
    cursor at = {.operation = operation, .race = operation->race, .kind = HDSOFT__TOUCH_WRITE};
    touch(&at, range->base, range->end);
}

void hdsoft__race_allocated(hdsoft__operation *operation, const hdsoft_range *range)
{
    if (ready(operation->race))
        touch_all(operation, range);
}

void hdsoft__race_freed(hdsoft__operation *operation, const hdsoft_range *range)
{
    if (!ready(operation->race))
        return;
    touch_all(operation, range);
    freed_range *freed = &all.freed[all.freed_next++ % FREED];
    hdsoft__operation_release(freed->by);
    *freed = (freed_range){*range, hdsoft__operation_hold(operation)};
}
