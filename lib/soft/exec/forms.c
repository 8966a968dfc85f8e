/* SPDX-License-Identifier: MIT */
#include "soft/exec/forms.h"

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

void hdsoft_forms_tables(const hdsoft_form *tables[HDSOFT_FORM_TABLES], int level)
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
    int best = processor_level();
    if (level < 0 || level > best)
        level = best;
    unsigned count = 0;
    for (unsigned i = 0; i < sizeof levels[0] / sizeof levels[0][0]; i++)
        tables[count++] = levels[level][i];
    for (unsigned i = 0; i < sizeof always / sizeof always[0]; i++)
        tables[count++] = always[i];
    tables[count] = NULL;
}
