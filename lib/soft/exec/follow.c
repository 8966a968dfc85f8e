/* SPDX-License-Identifier: MIT */
#include "soft/exec/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/exec/watch.h"

/* Marks that are never looked at again (a register that is dead) are dropped in the end, the oldest first. */
#define MOST_MARKS 128

/* A register column with values of which some bytes were never written. */
struct hdsoft_mark {
    const unsigned char *frame;
    int32_t column;
    uint32_t lanes, whole;        /* whole: nothing of the value was ever written */
    uint8_t bytes[HDSOFT_LANES];  /* of the value, those never written */
    uint32_t origin;              /* the load */
    uint32_t size;                /* its bytes */
    uint64_t address[HDSOFT_LANES];
};

/* ---- what instructions do ---- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* "_u32" is 4, "_f16x2" too. */
static unsigned size_of(const char *suffix)
{
    unsigned bits = 0, count = 1;
    suffix += strcspn(suffix, "0123456789");
    return sscanf(suffix, "%ux%u", &bits, &count) > 0 ? bits * count / 8 : 0;
}

uint8_t hdsoft_flow_of(const char *form)
{
    static const struct {
        const char *begin;
        uint8_t flow;
    } flows[] = {
        {"mov_pred", HDSOFT_FLOW_USE}, {"mov_", HDSOFT_FLOW_COPY}, {"low_64", HDSOFT_FLOW_COPY},
        {"selp_", HDSOFT_FLOW_SELECT}, {"and_", HDSOFT_FLOW_BITS}, {"or_", HDSOFT_FLOW_BITS},
        {"xor_", HDSOFT_FLOW_BITS}, {"shl_", HDSOFT_FLOW_BITS}, {"shr_", HDSOFT_FLOW_BITS},
        {"bfe_", HDSOFT_FLOW_BITS}, {"bfi_", HDSOFT_FLOW_BITS}, {"prmt_", HDSOFT_FLOW_BITS},
        {"shf_", HDSOFT_FLOW_BITS}, {"lop3_", HDSOFT_FLOW_BITS}, {"cvt_u", HDSOFT_FLOW_BITS},
        {"cvt_s", HDSOFT_FLOW_BITS}, {"st_cell", HDSOFT_FLOW_KEEP}, {"st_local", HDSOFT_FLOW_KEEP},
        {"cp_async", HDSOFT_FLOW_ASYNC}, {"bra", HDSOFT_FLOW_BRANCH}, {"brx", HDSOFT_FLOW_OTHER},
        {"exit", HDSOFT_FLOW_OTHER}, {"ret", HDSOFT_FLOW_OTHER}, {"call", HDSOFT_FLOW_OTHER},
        {"barrier", HDSOFT_FLOW_OTHER}, {"shfl", HDSOFT_FLOW_OTHER}, {"vote", HDSOFT_FLOW_OTHER},
        {"match", HDSOFT_FLOW_OTHER}, {"redux", HDSOFT_FLOW_OTHER}, {"elect", HDSOFT_FLOW_OTHER},
        {"special_", HDSOFT_FLOW_OTHER}, {"ld_local", HDSOFT_FLOW_OTHER}, {"ld_cell", HDSOFT_FLOW_OTHER},
    };
    static const char *const memory[] = {"ld_generic_", "ld_shared_", "st_generic_", "st_shared_", "atom_"};
    static const uint8_t accesses[] = {HDSOFT_FLOW_LOAD, HDSOFT_FLOW_LOAD, HDSOFT_FLOW_STORE, HDSOFT_FLOW_STORE,
                                       HDSOFT_FLOW_ATOMIC};
    unsigned width, parts;
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        if (!begins(form, memory[i]))
            continue;
        uint8_t access = strstr(form, "_exch_") ? HDSOFT_FLOW_EXCHANGE : accesses[i];
        return (uint8_t)(access | size_of(strrchr(form, '_')));
    }
    if (begins(form, "pack_") && sscanf(form, "pack_%u_%u", &width, &parts) == 2)
        return (uint8_t)(HDSOFT_FLOW_PACK | width / parts / 8);
    if (begins(form, "unpack_") && sscanf(form, "unpack_%u_%u", &width, &parts) == 2)
        return (uint8_t)(HDSOFT_FLOW_UNPACK | width / parts / 8);
    for (size_t i = 0; i < sizeof flows / sizeof *flows; i++)
        if (begins(form, flows[i].begin))
            return flows[i].flow;
    return HDSOFT_FLOW_USE;
}

/* ---- marks ---- */

bool hdsoft_follow_create(hdsoft_block *block)
{
    if (!block->run->watch || !block->run->watch->unwritten)
        return true;
    block->shared_written = malloc(block->run->shared_bytes / 8 + 16); /* so that the last bits can be read as a word */
    return block->shared_written;
}

void hdsoft_follow_destroy(hdsoft_block *block)
{
    free(block->shared_written);
    for (uint32_t i = 0; block->warps && i < block->warp_count; i++)
        free(block->warps[i].marks);
}

void hdsoft_follow_begin(hdsoft_block *block)
{
    if (!block->shared_written)
        return;
    memset(block->shared_written, 0, block->run->shared_bytes / 8 + 16);
    block->shared_left = block->run->shared_bytes;
    for (uint32_t i = 0; i < block->warp_count; i++)
        block->warps[i].mark_count = 0;
}

static struct hdsoft_mark *find(hdsoft_warp *warp, const unsigned char *frame, int32_t column)
{
    for (uint32_t i = 0; i < warp->mark_count; i++)
        if (warp->marks[i].column == column && warp->marks[i].frame == frame)
            return &warp->marks[i];
    return NULL;
}

static void forget(hdsoft_warp *warp, struct hdsoft_mark *mark, uint32_t lanes)
{
    mark->lanes &= ~lanes;
    mark->whole &= ~lanes;
    if (!mark->lanes)
        *mark = warp->marks[--warp->mark_count];
}

/* The mark of a column, new or there already; NULL without memory: then it is not followed. */
static struct hdsoft_mark *mark_for(hdsoft_warp *warp, const unsigned char *frame, int32_t column)
{
    struct hdsoft_mark *mark = find(warp, frame, column);
    if (mark)
        return mark;
    if (!warp->marks) {
        warp->marks = calloc(MOST_MARKS, sizeof *warp->marks);
        if (!warp->marks)
            return NULL;
    }
    if (warp->mark_count == MOST_MARKS) {
        memmove(warp->marks, warp->marks + 1, (MOST_MARKS - 1) * sizeof *warp->marks);
        warp->mark_count--;
    }
    mark = &warp->marks[warp->mark_count++];
    memset(mark, 0, sizeof *mark);
    mark->frame = frame;
    mark->column = column;
    return mark;
}

/* ---- one instruction ---- */

/* What it leaves in a destination. */
typedef struct outcome {
    int32_t column;
    struct hdsoft_mark mark; /* without lanes: all is written */
} outcome;

/* Where the lanes of an access go. */
typedef struct reach {
    uint64_t address[HDSOFT_LANES];
    hdsoft_access global;
    uint32_t shared, size, elements; /* shared: lanes; size: of an element */
} reach;

typedef struct step {
    hdsoft_warp *warp;
    const hdsoft_instruction *instruction;
    hdsoft_effect effect;
    const unsigned char *frame;
    uint32_t active, index, outcomes;
    outcome outcome[HDSOFT_OPERANDS];
    reach stored;                /* of a store */
    uint32_t left[HDSOFT_LANES]; /* the bytes that it leaves unwritten */
    bool leaves;                 /* there are some, in global memory */
} step;

static void tell_use(const step *s, const struct hdsoft_mark *mark, uint32_t lanes)
{
    const hdsoft_watch *watch = s->warp->run->watch;
    uint64_t first = mark->address[__builtin_ctz(lanes)];
    bool shared = (first & HDSOFT_WINDOW_MASK) == HDSOFT_WINDOW_SHARED;
    hdsoft_unwritten_use told = {.warp = s->warp, .instruction = s->index, .origin = mark->origin, .bytes = mark->size,
                                 .lanes = lanes, .shared = shared,
                                 .address = shared ? first - HDSOFT_WINDOW_SHARED : first};
    watch->used(watch->context, &told);
}

/* Something is done with the values: say so, and that once. */
static void use(step *s, struct hdsoft_mark *mark, uint32_t lanes)
{
    tell_use(s, mark, lanes);
    forget(s->warp, mark, lanes);
}

static struct hdsoft_mark *source(step *s, unsigned number)
{
    if (!(s->effect.uses >> number & 1))
        return NULL;
    struct hdsoft_mark *mark = find(s->warp, s->frame, s->instruction->operand[number]);
    return mark && mark->lanes & s->active ? mark : NULL;
}

static outcome *result(step *s, int32_t column, const struct hdsoft_mark *like, uint32_t lanes)
{
    outcome *made = &s->outcome[s->outcomes++];
    made->column = column;
    made->mark = *like;
    made->mark.lanes = lanes;
    made->mark.whole &= lanes;
    return made;
}

static void use_all(step *s, unsigned from)
{
    for (unsigned i = from; i < HDSOFT_OPERANDS; i++) {
        struct hdsoft_mark *mark = source(s, i);
        if (mark)
            use(s, mark, mark->lanes & s->active);
    }
}

static void copy(step *s)
{
    struct hdsoft_mark *mark = source(s, 1);
    if (mark)
        result(s, s->instruction->operand[0], mark, mark->lanes & s->active);
}

/* Of each lane the one that its predicate chooses. */
static void select_one(step *s)
{
    uint32_t predicate = *(const uint32_t *)hdsoft_source(s->warp, s->instruction->operand[3]);
    struct hdsoft_mark *a = source(s, 1), *b = source(s, 2);
    uint32_t from_a = a ? a->lanes & s->active & predicate : 0, from_b = b ? b->lanes & s->active & ~predicate : 0;
    if (!(from_a | from_b))
        return;
    struct hdsoft_mark both = from_a ? *a : *b;
    if (from_a && from_b) {
        for (uint32_t rest = from_b; rest; rest &= rest - 1) {
            unsigned lane = (unsigned)__builtin_ctz(rest);
            both.bytes[lane] = b->bytes[lane];
            both.address[lane] = b->address[lane];
        }
        both.whole = (a->whole & from_a) | (b->whole & from_b);
    }
    result(s, s->instruction->operand[0], &both, from_a | from_b);
}

static void pack(step *s, unsigned part)
{
    struct hdsoft_mark whole;
    uint32_t lanes = 0, sources = 0, everywhere = ~0u;
    for (unsigned i = 1; i < HDSOFT_OPERANDS && s->instruction->operand[i] != HDSOFT_ABSENT; i++, sources++) {
        const struct hdsoft_mark *mark = source(s, i);
        uint32_t here = mark ? mark->lanes & s->active : 0;
        everywhere &= mark ? mark->whole : 0;
        if (!here)
            continue;
        if (!lanes) {
            whole = *mark;
            memset(whole.bytes, 0, sizeof whole.bytes);
        }
        for (uint32_t rest = here; rest; rest &= rest - 1) {
            unsigned lane = (unsigned)__builtin_ctz(rest);
            whole.bytes[lane] |= (uint8_t)((mark->bytes[lane] & ((1u << part) - 1)) << part * sources);
            whole.address[lane] = mark->address[lane];
        }
        lanes |= here;
    }
    if (!lanes)
        return;
    whole.whole = everywhere & lanes;
    result(s, s->instruction->operand[0], &whole, lanes);
}

static void unpack(step *s, unsigned part)
{
    unsigned last = 0;
    while (last + 1 < HDSOFT_OPERANDS && s->instruction->operand[last + 1] != HDSOFT_ABSENT)
        last++;
    const struct hdsoft_mark *mark = source(s, last);
    if (!mark)
        return;
    for (unsigned i = 0; i < last; i++) {
        struct hdsoft_mark piece = *mark;
        uint32_t lanes = 0, all = (1u << part) - 1;
        piece.whole = 0;
        for (uint32_t rest = mark->lanes & s->active; rest; rest &= rest - 1) {
            unsigned lane = (unsigned)__builtin_ctz(rest);
            uint8_t bytes = (uint8_t)(mark->bytes[lane] >> part * i & all);
            piece.bytes[lane] = bytes;
            lanes |= (uint32_t)(bytes != 0) << lane;
            piece.whole |= (uint32_t)(bytes == all) << lane;
        }
        if (lanes)
            result(s, s->instruction->operand[i], &piece, lanes);
    }
}

/* Nothing comes of nothing: what is known of no byte stays so. What is known of some may be all that is taken. */
static void bits(step *s)
{
    for (unsigned i = 0; i < HDSOFT_OPERANDS; i++) {
        struct hdsoft_mark *mark = source(s, i);
        uint32_t lanes = mark ? mark->whole & s->active : 0;
        if (!lanes)
            continue;
        struct hdsoft_mark like = *mark;
        for (uint32_t rest = lanes; rest; rest &= rest - 1)
            like.bytes[__builtin_ctz(rest)] = (uint8_t)((1u << mark->size) - 1);
        result(s, s->instruction->operand[0], &like, lanes);
        return;
    }
}

/* ---- memory ---- */

static void reach_out(const step *s, unsigned base, reach *to)
{
    hdsoft_warp *warp = s->warp;
    const uint64_t *from = hdsoft_source(warp, s->instruction->operand[base]);
    unsigned kind = s->effect.flow & HDSOFT_FLOW_KIND;
    bool atomic = kind == HDSOFT_FLOW_ATOMIC || kind == HDSOFT_FLOW_EXCHANGE;
    uint64_t window = s->instruction->option[1] == HDSOFT_SPACE_SHARED ? HDSOFT_WINDOW_SHARED : 0;
    to->size = s->effect.flow & 15u;
    to->elements = atomic ? 1 : s->instruction->option[0];
    uint32_t bytes = to->size * to->elements;
    for (unsigned lane = 0; lane < HDSOFT_LANES; lane++)
        to->address[lane] = from[lane] + (uint64_t)s->instruction->immediate + window;
    to->global = (hdsoft_access){.warp = warp, .instruction = s->index, .bytes = bytes,
                                 .flags = s->instruction->access & 0xff, .addresses = to->address,
                                 .active = hdsoft_global_lanes(to->address, s->active)};
    to->shared = 0;
    for (uint32_t rest = s->active & ~to->global.active; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint64_t offset = to->address[lane] - HDSOFT_WINDOW_SHARED;
        to->shared |= (uint32_t)(offset < warp->shared_bytes && warp->shared_bytes - offset >= bytes) << lane;
    }
}

/* The bits of up to 32 bytes of shared memory. */
static uint64_t shared_bits(const hdsoft_block *block, uint64_t offset, uint32_t bytes)
{
    uint64_t word;
    memcpy(&word, block->shared_written + offset / 8, sizeof word);
    return word >> offset % 8 & ((UINT64_C(1) << bytes) - 1);
}

/* A store: all bytes but those of the mask are written now. */
static void write_shared(hdsoft_block *block, uint64_t offset, uint32_t bytes, uint32_t but)
{
    uint64_t word, all = ((UINT64_C(1) << bytes) - 1) << offset % 8, bits = all & ~((uint64_t)but << offset % 8);
    memcpy(&word, block->shared_written + offset / 8, sizeof word);
    block->shared_left += (uint32_t)__builtin_popcountll(word & all);
    word = (word & ~all) | bits;
    block->shared_left -= (uint32_t)__builtin_popcountll(bits);
    memcpy(block->shared_written + offset / 8, &word, sizeof word);
}

/* What was never written of what the lanes read; false: nothing. */
static bool unwritten(const step *s, const reach *at, uint32_t masks[HDSOFT_LANES])
{
    const hdsoft_watch *watch = s->warp->run->watch;
    const hdsoft_block *block = s->warp->block;
    bool any = at->global.active && watch->unwritten(watch->context, &at->global, masks);
    for (uint32_t rest = any ? s->active & ~at->global.active : s->active; rest; rest &= rest - 1)
        masks[__builtin_ctz(rest)] = 0;
    uint32_t all = (uint32_t)((UINT64_C(1) << at->global.bytes) - 1);
    for (uint32_t rest = block->shared_left ? at->shared : 0; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        masks[lane] = all & ~(uint32_t)shared_bits(block, at->address[lane] - HDSOFT_WINDOW_SHARED, at->global.bytes);
        any |= masks[lane] != 0;
    }
    return any;
}

static void load(step *s)
{
    reach at;
    uint32_t masks[HDSOFT_LANES];
    reach_out(s, 0, &at);
    if (!unwritten(s, &at, masks))
        return;
    uint32_t all = (1u << at.size) - 1;
    for (unsigned e = 0; e < at.elements; e++) {
        struct hdsoft_mark mark = {.origin = s->index, .size = at.size};
        for (uint32_t rest = at.global.active | at.shared; rest; rest &= rest - 1) {
            unsigned lane = (unsigned)__builtin_ctz(rest);
            uint32_t bytes = masks[lane] >> at.size * e & all;
            mark.bytes[lane] = (uint8_t)bytes;
            mark.address[lane] = at.address[lane] + (uint64_t)at.size * e;
            mark.lanes |= (uint32_t)(bytes != 0) << lane;
            mark.whole |= (uint32_t)(bytes == all) << lane;
        }
        if (mark.lanes)
            result(s, s->instruction->operand[1 + e], &mark, mark.lanes);
    }
}

/* The old value takes part in the new one, so this is a use of it. */
static void atomic(step *s, bool needs_old)
{
    reach at;
    uint32_t masks[HDSOFT_LANES];
    use_all(s, 0);
    reach_out(s, 1, &at);
    if (needs_old && unwritten(s, &at, masks)) {
        struct hdsoft_mark old = {.origin = s->index, .size = at.size};
        for (uint32_t rest = at.global.active | at.shared; rest; rest &= rest - 1)
            old.lanes |= (uint32_t)(masks[__builtin_ctz(rest)] != 0) << __builtin_ctz(rest);
        memcpy(old.address, at.address, sizeof old.address);
        tell_use(s, &old, old.lanes);
    }
    for (uint32_t rest = at.shared; rest; rest &= rest - 1)
        write_shared(s->warp->block, at.address[__builtin_ctz(rest)] - HDSOFT_WINDOW_SHARED, at.size, 0);
}

/* A store carries marks into memory; of global memory the watch is told what it leaves unwritten. */
static void store(step *s)
{
    if (source(s, 0))
        use(s, source(s, 0), source(s, 0)->lanes & s->active);
    reach *at = &s->stored;
    reach_out(s, 0, at);
    memset(s->left, 0, sizeof s->left);
    for (unsigned e = 0; s->warp->mark_count && e < at->elements; e++) {
        const struct hdsoft_mark *mark = source(s, 1 + e);
        uint32_t all = (1u << at->size) - 1;
        for (uint32_t rest = mark ? mark->lanes & s->active : 0; rest; rest &= rest - 1) {
            unsigned lane = (unsigned)__builtin_ctz(rest);
            s->left[lane] |= (mark->bytes[lane] & all) << at->size * e;
            s->leaves |= at->global.active >> lane & 1;
        }
    }
    for (uint32_t rest = at->shared; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        write_shared(s->warp->block, at->address[lane] - HDSOFT_WINDOW_SHARED, at->global.bytes, s->left[lane]);
    }
}

/* cp.async; what it brings counts as written. */
static void copy_async(step *s)
{
    const uint64_t *to = hdsoft_source(s->warp, s->instruction->operand[0]);
    uint32_t bytes = s->instruction->option[0];
    use_all(s, 0);
    for (uint32_t rest = s->active; rest; rest &= rest - 1) {
        uint64_t offset = to[__builtin_ctz(rest)];
        if (offset < s->warp->shared_bytes && s->warp->shared_bytes - offset >= bytes)
            write_shared(s->warp->block, offset, bytes, 0);
    }
}

static void look(step *s)
{
    unsigned part = s->effect.flow & 15u;
    switch (s->effect.flow & HDSOFT_FLOW_KIND) {
    case HDSOFT_FLOW_COPY: copy(s); return;
    case HDSOFT_FLOW_SELECT: select_one(s); return;
    case HDSOFT_FLOW_PACK: pack(s, part); return;
    case HDSOFT_FLOW_UNPACK: unpack(s, part); return;
    case HDSOFT_FLOW_BITS: bits(s); return;
    case HDSOFT_FLOW_LOAD:
        use_all(s, 0);
        load(s);
        return;
    case HDSOFT_FLOW_STORE: store(s); return;
    case HDSOFT_FLOW_ATOMIC: atomic(s, true); return;
    case HDSOFT_FLOW_EXCHANGE: atomic(s, false); return;
    case HDSOFT_FLOW_ASYNC: copy_async(s); return;
    case HDSOFT_FLOW_KEEP:
        if (source(s, 0))
            use(s, source(s, 0), source(s, 0)->lanes & s->active);
        return;
    default: use_all(s, 0);
    }
}

/* After the instruction: what it defined is good, but for what it carried along. */
static void settle(step *s)
{
    hdsoft_warp *warp = s->warp;
    for (unsigned i = 0; i < HDSOFT_OPERANDS; i++) {
        struct hdsoft_mark *old =
            s->effect.defines >> i & 1 ? find(warp, s->frame, s->instruction->operand[i]) : NULL;
        if (old)
            forget(warp, old, s->active);
    }
    for (uint32_t i = 0; i < s->outcomes; i++) {
        const struct hdsoft_mark *from = &s->outcome[i].mark;
        struct hdsoft_mark *made = mark_for(warp, s->frame, s->outcome[i].column);
        if (!made)
            continue;
        for (uint32_t rest = from->lanes; rest; rest &= rest - 1) {
            unsigned lane = (unsigned)__builtin_ctz(rest);
            made->bytes[lane] = from->bytes[lane];
            made->address[lane] = from->address[lane];
        }
        made->lanes |= from->lanes;
        made->whole |= from->whole;
        made->origin = from->origin;
        made->size = from->size;
    }
}

static const hdsoft_instruction *follow(hdsoft_warp *warp, const hdsoft_instruction *instruction, uint32_t index)
{
    hdsoft_run *run = warp->run;
    step s;
    s.warp = warp;
    s.instruction = instruction;
    s.effect = run->program->effects[index];
    s.frame = warp->frame;
    s.active = warp->active;
    s.index = index;
    s.outcomes = 0;
    s.leaves = false;
    look(&s);
    if (instruction->access) /* after the look: it makes a store's bytes written ones */
        hdsoft_watch_tell(warp, instruction);
    if (s.leaves)
        run->watch->left(run->watch->context, &s.stored.global, s.left);
    const hdsoft_instruction *next = run->program->code[index].handler(warp, instruction);
    if (s.outcomes || warp->mark_count)
        settle(&s);
    return next;
}

/* Whether an instruction must be looked at although no register is marked. */
static bool touches_memory(const hdsoft_warp *warp, uint32_t index)
{
    unsigned kind = warp->run->program->effects[index].flow & HDSOFT_FLOW_KIND;
    if (kind < HDSOFT_FLOW_LOAD || kind > HDSOFT_FLOW_ASYNC || kind == HDSOFT_FLOW_KEEP)
        return false;
    unsigned space = warp->run->program->code[index].option[1];
    if (kind == HDSOFT_FLOW_LOAD || kind == HDSOFT_FLOW_ATOMIC)
        return warp->block->shared_left || space != HDSOFT_SPACE_SHARED;
    bool into_shared = kind == HDSOFT_FLOW_ASYNC || space == HDSOFT_SPACE_SHARED || space == HDSOFT_SPACE_GENERIC;
    return into_shared && warp->block->shared_left;
}

const hdsoft_instruction *hdsoft_followed(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    uint32_t index = hdsoft_index(warp, instruction);
    if (warp->mark_count || touches_memory(warp, index))
        return follow(warp, instruction, index);
    if (instruction->access)
        hdsoft_watch_tell(warp, instruction);
    return warp->run->program->code[index].handler(warp, instruction);
}
