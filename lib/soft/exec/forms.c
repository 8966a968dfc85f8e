/* SPDX-License-Identifier: MIT */
#include "soft/exec/forms.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "soft/exec/control.h"

#define LEVEL(level)                                      \
    extern const hdsoft_form hdsoft_forms_integer_##level[]; \
    extern const hdsoft_form hdsoft_forms_float_##level[];   \
    extern const hdsoft_form hdsoft_forms_compare_##level[]; \
    extern const hdsoft_form hdsoft_forms_convert_##level[]; \
    extern const hdsoft_form hdsoft_forms_memory_##level[];

LEVEL(base)
#ifdef HDSOFT_LEVELS
LEVEL(v3)
LEVEL(v4)
#endif

#define TABLES(level)                                                                                   \
    {                                                                                                   \
        hdsoft_forms_integer_##level, hdsoft_forms_float_##level, hdsoft_forms_compare_##level,         \
            hdsoft_forms_convert_##level, hdsoft_forms_memory_##level                                   \
    }

static int processor_level(void)
{
#ifdef HDSOFT_LEVELS
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("movbe") &&
        __builtin_cpu_supports("f16c"))
        return 1;
#endif
    return 0;
}

#define FORM_TABLES 16

/* The tables of a level; NULL behind the last. */
static void tables_of(const hdsoft_form *tables[FORM_TABLES], int level)
{
    static const hdsoft_form *const levels[][5] = {
        TABLES(base),
#ifdef HDSOFT_LEVELS
        TABLES(v3),
        TABLES(v4),
#endif
    };
    static const hdsoft_form *const always[] = {
        hdsoft_forms_control, hdsoft_forms_call, hdsoft_forms_collective, hdsoft_forms_barrier, hdsoft_forms_atomic,
        hdsoft_forms_half, hdsoft_forms_copy, hdsoft_forms_video};
    unsigned count = 0;
    for (unsigned i = 0; i < sizeof levels[0] / sizeof levels[0][0]; i++)
        tables[count++] = levels[level][i];
    for (unsigned i = 0; i < sizeof always / sizeof always[0]; i++)
        tables[count++] = always[i];
    tables[count] = NULL;
}

/* ---- by name ---------------------------------------------------------------------------------------------------- */

struct hdsoft_forms {
    uint32_t slot_count;        /* a power of two, at most half of it used */
    const hdsoft_form *slots[]; /* linear probing */
};

static uint32_t hash_name(const char *name)
{
    uint32_t hash = 2166136261u;
    while (*name)
        hash = (hash ^ (unsigned char)*name++) * 16777619u;
    return hash ^ hash >> 15;
}

static hdsoft_forms *index_level(int level)
{
    const hdsoft_form *tables[FORM_TABLES];
    uint32_t count = 0, slot_count = 64;
    tables_of(tables, level);
    for (int t = 0; tables[t]; t++)
        for (const hdsoft_form *form = tables[t]; form->name; form++)
            count++;
    while (slot_count < count * 2)
        slot_count *= 2;
    hdsoft_forms *forms = calloc(1, sizeof *forms + slot_count * sizeof(forms->slots[0]));
    if (!forms)
        return NULL;
    forms->slot_count = slot_count;
    for (int t = 0; tables[t]; t++) {
        for (const hdsoft_form *form = tables[t]; form->name; form++) {
            uint32_t slot = hash_name(form->name) & (slot_count - 1);
            while (forms->slots[slot])
                slot = (slot + 1) & (slot_count - 1);
            forms->slots[slot] = form;
        }
    }
    return forms;
}

const hdsoft_forms *hdsoft_forms_of(int level)
{
    static _Atomic(hdsoft_forms *) indexes[3];
    int best = processor_level();
    if (level < 0 || level > best)
        level = best;
    hdsoft_forms *known = atomic_load(&indexes[level]);
    hdsoft_forms *made = known ? NULL : index_level(level);
    if (!made || atomic_compare_exchange_strong(&indexes[level], &known, made))
        return known ? known : made;
    free(made); /* another thread was faster */
    return known;
}

const hdsoft_form *hdsoft_forms_find(const hdsoft_forms *forms, const char *name)
{
    uint32_t slot = hash_name(name) & (forms->slot_count - 1);
    while (forms->slots[slot] && strcmp(forms->slots[slot]->name, name) != 0)
        slot = (slot + 1) & (forms->slot_count - 1);
    return forms->slots[slot];
}
