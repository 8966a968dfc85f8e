/* SPDX-License-Identifier: MIT */
/*
 * Loads and stores, in three ways. Quickest: all lanes are active and stand in line, by groups; a group is one copy.
 * any_NAME: all addresses lie in the range that this instruction met last (or in the block's shared memory) and are
 * aligned; a gather. slow_NAME: everything else, faults included, lane by lane through memory_access.c, which also
 * remembers the range for the next time.
 */
#include "soft/exec/lanes.h"

#define INLINE static inline __attribute__((always_inline))

typedef struct lane_survey {
    uint64_t address[HDSOFT_LANES]; /* inactive lanes repeat an active one */
    uint64_t lowest, highest, all_bits;
    bool consecutive;
} lane_survey;

INLINE void look_at(const hdsoft_warp *warp, const hdsoft_instruction *instruction, lane_survey *survey)
{
    const column_64 *base = (const column_64 *)hdsoft_source(warp, instruction->operand[0]);
    uint64_t offset = (uint64_t)instruction->immediate;
    uint64_t stand_in = base[__builtin_ctz(warp->active)] + offset;
    uint64_t lowest = stand_in, highest = stand_in, bits = 0;
    if (warp->active == HDSOFT_ALL_LANES) {
        HDSOFT_EACH_LANE survey->address[lane] = base[lane] + offset;
    } else {
        uint32_t active = warp->active;
        HDSOFT_EACH_LANE survey->address[lane] = active >> lane & 1 ? base[lane] + offset : stand_in;
    }
    HDSOFT_EACH_LANE {
        uint64_t address = survey->address[lane];
        bits |= address;
        lowest = address < lowest ? address : lowest;
        highest = address > highest ? address : highest;
    }
    survey->lowest = lowest;
    survey->highest = highest;
    survey->all_bits = bits;
}

/* The host bytes of address 0 of a range that holds [lowest, highest + bytes), or NULL. */
INLINE unsigned char *range_of(const hdsoft_warp *warp, const hdsoft_instruction *instruction, bool shared,
                               uint64_t lowest, uint64_t highest, uint64_t bytes, uint64_t *base)
{
    if (shared) {
        *base = 0;
        return highest < warp->shared_bytes && warp->shared_bytes - highest >= bytes ? warp->shared : NULL;
    }
    const hdsoft_cache *cache = &warp->caches[instruction->target];
    if (lowest >= cache->base && highest < cache->end && cache->end - highest >= bytes) {
        *base = cache->base;
        return cache->host;
    }
    *base = HDSOFT_WINDOW_SHARED;
    uint64_t end = HDSOFT_WINDOW_SHARED + warp->shared_bytes;
    bool inside = lowest >= HDSOFT_WINDOW_SHARED && highest < end && end - highest >= bytes;
    return inside && instruction->option[1] == HDSOFT_SPACE_GENERIC ? warp->shared : NULL;
}

/*
 * Groups of eight lanes whose addresses are side by side, or all the same, are copied as one: rows of tiles, and what
 * a row shares. All groups are alike, or none is.
 */
#define GROUP 8u
#define GROUPS (HDSOFT_LANES / GROUP)
#ifdef __AVX2__
#define ADDRESSES 4u
#define RAMP ((address_vector){0, 1, 2, 3})
#else
#define ADDRESSES 2u
#define RAMP ((address_vector){0, 1})
#endif
typedef uint64_t __attribute__((vector_size(8 * ADDRESSES), may_alias, aligned(8))) address_vector;

typedef struct lane_groups {
    unsigned char *host[GROUPS];
    bool same; /* one address for the whole group */
} lane_groups;

/* The groups' places in `room` bytes at host, which have the address `origin`; false: not all lie inside. */
INLINE bool place_groups(const column_64 *base, uint64_t offset, unsigned char *host, uint64_t origin, uint64_t room,
                         uint64_t bytes, lane_groups *groups)
{
    bool outside = room < bytes;
    HDSOFT_UNROLLED for (unsigned g = 0; g < GROUPS; g++) {
        uint64_t at = base[g * GROUP] + offset - origin;
        outside |= at > room - bytes;
        groups->host[g] = (unsigned char *)((uintptr_t)host + at); /* host may be NULL */
    }
    return !outside;
}

/* False: some lane is out of line, or not everything is in range and aligned. */
INLINE bool find_groups(const hdsoft_warp *warp, const hdsoft_instruction *instruction, bool shared, uint64_t size,
                        lane_groups *groups)
{
    const column_64 *base = (const column_64 *)hdsoft_source(warp, instruction->operand[0]);
    uint64_t step = base[1] - base[0], offset = (uint64_t)instruction->immediate;
    if (step != 0 && step != size)
        return false;
    const address_vector ramp = RAMP * size;
    address_vector steps = (address_vector){0} + (step ? ~UINT64_C(0) : 0), wrong = {0};
    uint64_t bits = offset;
    HDSOFT_UNROLLED for (unsigned g = 0; g < GROUPS; g++) {
        const column_64 *at = base + g * GROUP;
        HDSOFT_UNROLLED for (unsigned lane = 0; lane < GROUP; lane += ADDRESSES)
            wrong |= (*(const address_vector *)(at + lane) - at[0]) ^ ((ramp + lane * size) & steps);
        bits |= at[0];
    }
    uint64_t out_of_line = 0;
    for (unsigned i = 0; i < ADDRESSES; i++)
        out_of_line |= wrong[i];
    if (out_of_line | bits % size)
        return false;
    groups->same = step == 0;
    uint64_t bytes = step ? GROUP * size : size;
    if (shared)
        return place_groups(base, offset, warp->shared, 0, warp->shared_bytes, bytes, groups);
    const hdsoft_cache *cache = &warp->caches[instruction->target];
    if (place_groups(base, offset, cache->host, cache->base, cache->end - cache->base, bytes, groups))
        return true;
    return instruction->option[1] == HDSOFT_SPACE_GENERIC &&
           place_groups(base, offset, warp->shared, HDSOFT_WINDOW_SHARED, warp->shared_bytes, bytes, groups);
}

#define LOAD_ELEMENT(T, C, to, from)    \
    do {                                \
        T loaded;                       \
        memcpy(&loaded, (const void *)(from), sizeof loaded); \
        (to) = (C)loaded;               \
    } while (0)

/* --- global, generic and shared memory --- */

#define DEFINE_LOAD(name, type, is_shared)                                                                     \
    static __attribute__((noinline)) const hdsoft_instruction *slow_##name(                                    \
        hdsoft_warp *warp, const hdsoft_instruction *instruction)                                              \
    {                                                                                                          \
        uint64_t data[HDSOFT_LANES * 4];                                                                       \
        lane_survey survey;                                                                                    \
        unsigned elements = instruction->option[0];                                                            \
        look_at(warp, instruction, &survey);                                                                   \
        if (is_shared)                                                                                         \
            HDSOFT_EACH_LANE survey.address[lane] += HDSOFT_WINDOW_SHARED;                                     \
        if (!hdsoft_load_lanes(warp, instruction, survey.address, sizeof(VALUE_##type), elements, data))       \
            return instruction + 1;                                                                            \
        for (unsigned e = 0; e < elements; e++) {                                                              \
            COLUMN_##type *to = (COLUMN_##type *)(void *)(warp->frame + instruction->operand[1 + e]);          \
            for (unsigned lane = 0; lane < HDSOFT_LANES; lane++)                                               \
                if (warp->active >> lane & 1)                                                                  \
                    to[lane] = (COLUMN_##type)(VALUE_##type)data[lane * 4 + e];                                \
        }                                                                                                      \
        return instruction + 1;                                                                                \
    }                                                                                                          \
    static __attribute__((noinline)) const hdsoft_instruction *any_##name(                                     \
        hdsoft_warp *warp, const hdsoft_instruction *instruction)                                              \
    {                                                                                                          \
        typedef VALUE_##type element;                                                                          \
        typedef COLUMN_##type column;                                                                          \
        unsigned elements = instruction->option[0];                                                            \
        uint64_t bytes = sizeof(element) * elements, origin;                                                   \
        lane_survey survey;                                                                                    \
        look_at(warp, instruction, &survey);                                                                   \
        const unsigned char *host =                                                                            \
            range_of(warp, instruction, is_shared, survey.lowest, survey.highest, bytes, &origin);             \
        if (!host || survey.all_bits % bytes)                                                                  \
            return slow_##name(warp, instruction);                                                             \
        for (unsigned e = 0; e < elements; e++) {                                                              \
            column *to = (column *)(void *)(warp->frame + instruction->operand[1 + e]);                        \
            column aside[HDSOFT_LANES];                                                                        \
            column *out = warp->active == HDSOFT_ALL_LANES ? to : aside;                                       \
            uintptr_t from = (uintptr_t)host - origin + e * sizeof(element);                                   \
            if (survey.lowest == survey.highest) {                                                             \
                column same;                                                                                   \
                LOAD_ELEMENT(element, column, same, from + survey.lowest);                                     \
                HDSOFT_EACH_LANE out[lane] = same;                                                             \
            } else {                                                                                           \
                HDSOFT_EACH_LANE LOAD_ELEMENT(element, column, out[lane], from + survey.address[lane]);        \
            }                                                                                                  \
            if (out == aside)                                                                                  \
                MERGE(to, aside, warp->active);                                                                \
        }                                                                                                      \
        return instruction + 1;                                                                                \
    }                                                                                                          \
    HANDLER(name)                                                                                              \
    {                                                                                                          \
        typedef VALUE_##type element;                                                                          \
        typedef COLUMN_##type column;                                                                          \
        lane_groups groups;                                                                                    \
        if (warp->active != HDSOFT_ALL_LANES || instruction->option[0] != 1 ||                                 \
            !find_groups(warp, instruction, is_shared, sizeof(element), &groups))                              \
            return any_##name(warp, instruction);                                                              \
        column *to = (column *)(void *)(warp->frame + instruction->operand[1]);                                \
        HDSOFT_UNROLLED for (unsigned g = 0; g < GROUPS; g++, to += GROUP) {                                   \
            if (groups.same) {                                                                                 \
                column same;                                                                                   \
                LOAD_ELEMENT(element, column, same, groups.host[g]);                                           \
                for (unsigned lane = 0; lane < GROUP; lane++)                                                  \
                    to[lane] = same;                                                                           \
            } else if (sizeof(element) == sizeof(column)) {                                                    \
                memcpy(to, groups.host[g], sizeof(element) * GROUP);                                           \
            } else {                                                                                           \
                for (unsigned lane = 0; lane < GROUP; lane++)                                                  \
                    LOAD_ELEMENT(element, column, to[lane], groups.host[g] + lane * sizeof(element));          \
            }                                                                                                  \
        }                                                                                                      \
        return instruction + 1;                                                                                \
    }

#define DEFINE_STORE(name, type, is_shared)                                                                    \
    static __attribute__((noinline)) const hdsoft_instruction *slow_##name(                                    \
        hdsoft_warp *warp, const hdsoft_instruction *instruction)                                              \
    {                                                                                                          \
        uint64_t data[HDSOFT_LANES * 4];                                                                       \
        lane_survey survey;                                                                                    \
        unsigned elements = instruction->option[0];                                                            \
        look_at(warp, instruction, &survey);                                                                   \
        if (is_shared)                                                                                         \
            HDSOFT_EACH_LANE survey.address[lane] += HDSOFT_WINDOW_SHARED;                                     \
        for (unsigned e = 0; e < elements; e++) {                                                              \
            const COLUMN_##type *from = SOURCE(type, 1 + e);                                                   \
            HDSOFT_EACH_LANE data[lane * 4 + e] = from[lane];                                                  \
        }                                                                                                      \
        hdsoft_store_lanes(warp, instruction, survey.address, sizeof(VALUE_##type), elements, data);           \
        return instruction + 1;                                                                                \
    }                                                                                                          \
    static __attribute__((noinline)) const hdsoft_instruction *any_##name(                                     \
        hdsoft_warp *warp, const hdsoft_instruction *instruction)                                              \
    {                                                                                                          \
        typedef VALUE_##type element;                                                                          \
        typedef COLUMN_##type column;                                                                          \
        unsigned elements = instruction->option[0];                                                            \
        uint64_t bytes = sizeof(element) * elements, origin;                                                   \
        lane_survey survey;                                                                                    \
        look_at(warp, instruction, &survey);                                                                   \
        unsigned char *host =                                                                                  \
            range_of(warp, instruction, is_shared, survey.lowest, survey.highest, bytes, &origin);             \
        if (!host || survey.all_bits % bytes)                                                                  \
            return slow_##name(warp, instruction);                                                             \
        for (unsigned e = 0; e < elements; e++) {                                                              \
            const column *from = SOURCE(type, 1 + e);                                                          \
            uintptr_t to = (uintptr_t)host - origin + e * sizeof(element);                                     \
            for (uint32_t rest = warp->active; rest; rest &= rest - 1) {                                       \
                unsigned lane = (unsigned)__builtin_ctz(rest);                                                 \
                element value = (element)from[lane];                                                           \
                memcpy((void *)(to + survey.address[lane]), &value, sizeof value);                             \
            }                                                                                                  \
        }                                                                                                      \
        return instruction + 1;                                                                                \
    }                                                                                                          \
    HANDLER(name)                                                                                              \
    {                                                                                                          \
        typedef VALUE_##type element;                                                                          \
        typedef COLUMN_##type column;                                                                          \
        lane_groups groups;                                                                                    \
        if (warp->active != HDSOFT_ALL_LANES || instruction->option[0] != 1 ||                                 \
            !find_groups(warp, instruction, is_shared, sizeof(element), &groups))                              \
            return any_##name(warp, instruction);                                                              \
        const column *from = SOURCE(type, 1);                                                                  \
        HDSOFT_UNROLLED for (unsigned g = 0; g < GROUPS; g++, from += GROUP) {                                 \
            if (groups.same) { /* the last lane wins */                                                        \
                element value = (element)from[GROUP - 1];                                                      \
                memcpy(groups.host[g], &value, sizeof value);                                                  \
            } else if (sizeof(element) == sizeof(column)) {                                                    \
                memcpy(groups.host[g], from, sizeof(element) * GROUP);                                         \
            } else {                                                                                           \
                element values[GROUP];                                                                         \
                for (unsigned lane = 0; lane < GROUP; lane++)                                                  \
                    values[lane] = (element)from[lane];                                                        \
                memcpy(groups.host[g], values, sizeof values);                                                 \
            }                                                                                                  \
        }                                                                                                      \
        return instruction + 1;                                                                                \
    }

/* --- cells: local memory and parameters of functions --- */

INLINE unsigned char *cell_at(unsigned char *cells, uint64_t offset, unsigned lane)
{
    return cells + (offset >> 3) * HDSOFT_CELL + lane * 8 + (offset & 7);
}

/* The cells that an instruction means, their bytes per lane and what to call them. */
INLINE unsigned char *cells_of(hdsoft_warp *warp, bool local, uint64_t *limit, const char **space)
{
    *space = local ? "local" : "parameter";
    *limit = local ? warp->local_bytes : (uint64_t)warp->activation->function->cell_rows * 8;
    return local ? warp->local : warp->frame;
}

#define DEFINE_CELLS(name, type, is_local, is_load)                                                            \
    HANDLER(name)                                                                                              \
    {                                                                                                          \
        typedef VALUE_##type element;                                                                          \
        typedef COLUMN_##type column;                                                                          \
        unsigned elements = instruction->option[0];                                                            \
        uint64_t bytes = sizeof(element) * elements, limit;                                                    \
        const char *space;                                                                                     \
        unsigned char *cells = cells_of(warp, is_local, &limit, &space);                                       \
        const column_64 *base = instruction->operand[0] == HDSOFT_ABSENT                                       \
                                    ? NULL                                                                     \
                                    : (const column_64 *)hdsoft_source(warp, instruction->operand[0]);         \
        uint64_t addresses[HDSOFT_LANES];                                                                      \
        for (unsigned lane = 0; lane < HDSOFT_LANES; lane++)                                                   \
            addresses[lane] = (base ? base[lane] : 0) + (uint64_t)instruction->immediate;                      \
        for (uint32_t rest = warp->active; rest; rest &= rest - 1) {                                           \
            unsigned lane = (unsigned)__builtin_ctz(rest);                                                     \
            uint64_t address = addresses[lane];                                                                \
            if (address >= limit || limit - address < bytes || address % bytes)                                \
                return hdsoft_fault_space(warp, instruction, lane, address, (uint32_t)bytes, limit, space,     \
                                          !(is_load));                                                         \
        }                                                                                                      \
        for (unsigned e = 0; e < elements; e++) {                                                              \
            column *kept = (column *)(uintptr_t)hdsoft_source(warp, instruction->operand[1 + e]);              \
            for (uint32_t rest = warp->active; rest; rest &= rest - 1) {                                       \
                unsigned lane = (unsigned)__builtin_ctz(rest);                                                 \
                unsigned char *at = cell_at(cells, addresses[lane] + e * sizeof(element), lane);               \
                if (is_load) {                                                                                 \
                    LOAD_ELEMENT(element, column, kept[lane], at);                                             \
                } else {                                                                                       \
                    element value = (element)kept[lane];                                                       \
                    memcpy(at, &value, sizeof value);                                                          \
                }                                                                                              \
            }                                                                                                  \
        }                                                                                                      \
        return instruction + 1;                                                                                \
    }

/* --- a kernel's parameters: the same bytes for every thread --- */

#define DEFINE_KERNEL(name, type)                                                                              \
    HANDLER(name)                                                                                              \
    {                                                                                                          \
        typedef VALUE_##type element;                                                                          \
        typedef COLUMN_##type column;                                                                          \
        unsigned elements = instruction->option[0];                                                            \
        uint64_t bytes = sizeof(element) * elements, limit = warp->parameter_bytes;                            \
        const column_64 *base = instruction->operand[0] == HDSOFT_ABSENT                                       \
                                    ? NULL                                                                     \
                                    : (const column_64 *)hdsoft_source(warp, instruction->operand[0]);         \
        uint64_t addresses[HDSOFT_LANES];                                                                      \
        for (unsigned lane = 0; base && lane < HDSOFT_LANES; lane++)                                           \
            addresses[lane] = base[lane] + (uint64_t)instruction->immediate;                                   \
        for (uint32_t rest = base ? warp->active : 0; rest; rest &= rest - 1) {                                \
            unsigned lane = (unsigned)__builtin_ctz(rest);                                                     \
            if (addresses[lane] >= limit || limit - addresses[lane] < bytes || addresses[lane] % bytes)        \
                return hdsoft_fault_space(warp, instruction, lane, addresses[lane], (uint32_t)bytes, limit,    \
                                          "parameter", HDSOFT_READ);                                           \
        }                                                                                                      \
        for (unsigned e = 0; e < elements; e++) {                                                              \
            column *to = (column *)(void *)(warp->frame + instruction->operand[1 + e]);                        \
            column aside[HDSOFT_LANES];                                                                        \
            column *out = warp->active == HDSOFT_ALL_LANES ? to : aside;                                       \
            const unsigned char *from = warp->parameters + e * sizeof(element);                                \
            if (base) {                                                                                        \
                for (uint32_t rest = warp->active; rest; rest &= rest - 1) {                                   \
                    unsigned lane = (unsigned)__builtin_ctz(rest);                                             \
                    LOAD_ELEMENT(element, column, out[lane], from + addresses[lane]);                          \
                }                                                                                              \
            } else {                                                                                           \
                column same;                                                                                   \
                LOAD_ELEMENT(element, column, same, from + instruction->immediate);                            \
                HDSOFT_EACH_LANE out[lane] = same;                                                             \
            }                                                                                                  \
            if (out == aside)                                                                                  \
                MERGE(to, aside, warp->active);                                                                \
        }                                                                                                      \
        return instruction + 1;                                                                                \
    }

#define LOADS(X, space, extra) \
    X(ld_##space##_u8, u8, extra) X(ld_##space##_s8, s8, extra) X(ld_##space##_u16, u16, extra) \
    X(ld_##space##_s16, s16, extra) X(ld_##space##_32, u32, extra) X(ld_##space##_64, u64, extra)
#define STORES(X, space, extra) \
    X(st_##space##_8, u8, extra) X(st_##space##_16, u16, extra) X(st_##space##_32, u32, extra) \
    X(st_##space##_64, u64, extra)

#define DEFINE_CELL_LOAD(name, type, local) DEFINE_CELLS(name, type, local, true)
#define DEFINE_CELL_STORE(name, type, local) DEFINE_CELLS(name, type, local, false)
#define DEFINE_KERNEL_LOAD(name, type, extra) DEFINE_KERNEL(name, type)
#define ROW(name, type, extra) {#name, handle_##name, ""},

LOADS(DEFINE_LOAD, generic, false)
LOADS(DEFINE_LOAD, shared, true)
STORES(DEFINE_STORE, generic, false)
STORES(DEFINE_STORE, shared, true)
LOADS(DEFINE_CELL_LOAD, local, true)
STORES(DEFINE_CELL_STORE, local, true)
LOADS(DEFINE_CELL_LOAD, cell, false)
STORES(DEFINE_CELL_STORE, cell, false)
LOADS(DEFINE_KERNEL_LOAD, kernel, 0)

extern const hdsoft_form HDSOFT_TABLE(memory)[];
const hdsoft_form HDSOFT_TABLE(memory)[] = {
    LOADS(ROW, generic, 0) LOADS(ROW, shared, 0) STORES(ROW, generic, 0) STORES(ROW, shared, 0)
    LOADS(ROW, local, 0) STORES(ROW, local, 0) LOADS(ROW, cell, 0) STORES(ROW, cell, 0) LOADS(ROW, kernel, 0)
    {NULL, NULL, NULL},
};
