/* SPDX-License-Identifier: MIT */
/*
 * atom and red, lane after lane from the lowest. Other kernels of the device do not run at the same time, so plain
 * memory does; only memory that the host can reach is changed with real atomic instructions. Compiled once: each lane
 * is a step of its own, wider vectors would not help.
 */
#include "soft/exec/control.h"
#include "soft/exec/half.h"
#include "soft/exec/lanes.h"

/* In global memory subnormals are zero, in shared memory they are not. */
static inline uint32_t add_bits_f32(uint32_t a, uint32_t b, bool flushing)
{
    float x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x = flushing ? flush(flush(x) + flush(y)) : x + y;
    x = canonical(x);
    memcpy(&a, &x, sizeof a);
    return a;
}

static inline uint64_t add_bits_f64(uint64_t a, uint64_t b)
{
    double x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x += y;
    memcpy(&a, &x, sizeof a);
    return a;
}

/* Sums of 16 bits, or of two in a word: subnormals are numbers (.noftz). */
static inline uint32_t add_halves(uint32_t a, uint32_t b, bool brain, unsigned count)
{
    uint32_t sums = 0;
    for (unsigned shift = 0; shift < count * 16; shift += 16)
        sums |= (uint32_t)half_encode(half_sum(half_decode(a >> shift & 0xffff, brain),
                                               half_decode(b >> shift & 0xffff, brain)),
                                      brain, HDSOFT_ROUND_NEAREST) << shift;
    return sums;
}

/* Where the lane's element lies; NULL after a fault. */
static unsigned char *place(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned lane, uint64_t address,
                            uint32_t size, bool shared, bool *host_memory)
{
    *host_memory = false;
    if (address % size == 0) {
        if (shared && address < warp->shared_bytes && warp->shared_bytes - address >= size)
            return warp->shared + address;
        const hdsoft_cache *cache = &warp->caches[instruction->target];
        if (!shared && address >= cache->base && address < cache->end && cache->end - address >= size)
            return cache->host + (address - cache->base);
    }
    if (shared)
        address += HDSOFT_WINDOW_SHARED;
    return hdsoft_locate(warp, instruction, lane, address, size, size, HDSOFT_WRITE, host_memory);
}

/* `expression` makes the new value of old, b and c. */
#define ATOMIC(name, T, is_shared, expression)                                                            \
    HANDLER(name)                                                                                         \
    {                                                                                                     \
        typedef VALUE_##T element;                                                                        \
        const column_64 *base = (const column_64 *)hdsoft_source(warp, instruction->operand[1]);          \
        const COLUMN_##T *second = SOURCE(T, 2);                                                          \
        const COLUMN_##T *third = instruction->operand[3] == HDSOFT_ABSENT ? second : SOURCE(T, 3);       \
        COLUMN_##T *to = instruction->operand[0] == HDSOFT_ABSENT                                         \
                             ? NULL                                                                       \
                             : (COLUMN_##T *)(void *)(warp->frame + instruction->operand[0]);             \
        for (uint32_t rest = warp->active; rest; rest &= rest - 1) {                                      \
            unsigned lane = (unsigned)__builtin_ctz(rest);                                                \
            bool host_memory;                                                                             \
            unsigned char *at = place(warp, instruction, lane, base[lane] + (uint64_t)instruction->immediate, \
                                      sizeof(element), is_shared, &host_memory);                          \
            if (!at)                                                                                      \
                return instruction + 1;                                                                   \
            element b = (element)second[lane], c = (element)third[lane], old, new;                        \
            (void)b, (void)c;                                                                             \
            if (host_memory) {                                                                            \
                element *word = (element *)(void *)at;                                                    \
                old = __atomic_load_n(word, __ATOMIC_RELAXED);                                            \
                do                                                                                        \
                    new = (element)(expression);                                                          \
                while (!__atomic_compare_exchange_n(word, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)); \
            } else {                                                                                      \
                memcpy(&old, at, sizeof old);                                                             \
                new = (element)(expression);                                                              \
                memcpy(at, &new, sizeof new);                                                             \
            }                                                                                             \
            if (to)                                                                                       \
                to[lane] = (COLUMN_##T)old;                                                               \
        }                                                                                                 \
        return instruction + 1;                                                                           \
    }

#define ATOMICS(X, space, shared) \
    X(atom_##space##_add_u32, "w:qw", u32, shared, old + b) \
    X(atom_##space##_inc_u32, "w:qw", u32, shared, old >= b ? 0 : old + 1) \
    X(atom_##space##_dec_u32, "w:qw", u32, shared, old == 0 || old > b ? b : old - 1) \
    X(atom_##space##_min_u32, "w:qw", u32, shared, b < old ? b : old) \
    X(atom_##space##_max_u32, "w:qw", u32, shared, b > old ? b : old) \
    X(atom_##space##_min_s32, "w:qw", s32, shared, b < old ? b : old) \
    X(atom_##space##_max_s32, "w:qw", s32, shared, b > old ? b : old) \
    X(atom_##space##_and_u32, "w:qw", u32, shared, old & b) \
    X(atom_##space##_or_u32, "w:qw", u32, shared, old | b) \
    X(atom_##space##_xor_u32, "w:qw", u32, shared, old ^ b) \
    X(atom_##space##_exch_u32, "w:qw", u32, shared, b) \
    X(atom_##space##_cas_u32, "w:qww", u32, shared, old == b ? c : old) \
    X(atom_##space##_cas_u16, "h:qhh", u16, shared, old == b ? c : old) \
    X(atom_##space##_add_f32, "f:qf", u32, shared, add_bits_f32(old, b, !(shared))) \
    X(atom_##space##_add_u64, "q:qq", u64, shared, old + b) \
    X(atom_##space##_min_u64, "q:qq", u64, shared, b < old ? b : old) \
    X(atom_##space##_max_u64, "q:qq", u64, shared, b > old ? b : old) \
    X(atom_##space##_min_s64, "q:qq", s64, shared, b < old ? b : old) \
    X(atom_##space##_max_s64, "q:qq", s64, shared, b > old ? b : old) \
    X(atom_##space##_and_u64, "q:qq", u64, shared, old & b) \
    X(atom_##space##_or_u64, "q:qq", u64, shared, old | b) \
    X(atom_##space##_xor_u64, "q:qq", u64, shared, old ^ b) \
    X(atom_##space##_exch_u64, "q:qq", u64, shared, b) \
    X(atom_##space##_cas_u64, "q:qqq", u64, shared, old == b ? c : old) \
    X(atom_##space##_add_f16, "h:qh", u16, shared, add_halves(old, b, false, 1)) \
    X(atom_##space##_add_bf16, "h:qh", u16, shared, add_halves(old, b, true, 1)) \
    X(atom_##space##_add_f16x2, "w:qw", u32, shared, add_halves(old, b, false, 2)) \
    X(atom_##space##_add_bf16x2, "w:qw", u32, shared, add_halves(old, b, true, 2)) \
    X(atom_##space##_add_f64, "d:qd", u64, shared, add_bits_f64(old, b))
#define DEFINE_ATOMIC(name, letters, T, shared, expression) ATOMIC(name, T, shared, expression)
#define ROW(name, letters, ...) {#name, handle_##name, letters},

ATOMICS(DEFINE_ATOMIC, generic, false)
ATOMICS(DEFINE_ATOMIC, shared, true)

const hdsoft_form hdsoft_forms_atomic[] = {
    ATOMICS(ROW, generic, false) ATOMICS(ROW, shared, true)
    {NULL, NULL, NULL},
};
