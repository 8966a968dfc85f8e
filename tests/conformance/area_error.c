/* SPDX-License-Identifier: MIT */
/* Names and strings of every status, by hundreds. */
#include "areas.h"
#include "support.h"

static const unsigned codes[] = {
#define CODE(name, number) number,
    HDCU_RESULT_LIST(CODE)
#undef CODE
};

static void texts(const check *self)
{
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        const char *text = NULL;
        if (codes[i] / 50 != (unsigned)self->number)
            continue;
        hdcu_result status = self->kind == 'n' ? cu.cuGetErrorName(codes[i], &text)
                                               : cu.cuGetErrorString(codes[i], &text);
        say("%u %s", codes[i], status || !text ? "none" : text);
    }
}

static void unknown(const check *self)
{
    const char *name = "untouched", *string = "untouched";
    STATUS(cuGetErrorName((hdcu_result)self->number, &name));
    say("%s", name ? name : "null");
    STATUS(cuGetErrorString((hdcu_result)self->number, &string));
    say("%s", string ? string : "null");
}

#define HUNDRED(range, base)                                                                                           \
    {.name = "names " range, .run = texts, .kind = 'n', .number = base},                                               \
    {.name = "strings " range, .run = texts, .kind = 's', .number = base}

static const check checks[] = {
    HUNDRED("0-49", 0),     HUNDRED("100-149", 2),  HUNDRED("200-249", 4),  HUNDRED("300-349", 6),
    HUNDRED("400-449", 8),  HUNDRED("500-549", 10), HUNDRED("600-649", 12), HUNDRED("700-749", 14),
    HUNDRED("800-849", 16), HUNDRED("900-949", 18), HUNDRED("950-999", 19),
    {.name = "unknown 12345", .run = unknown, .number = 12345},
    {.name = "unknown 35", .run = unknown, .number = 35},
    {.name = "unknown -1", .run = unknown, .number = -1},
};

const area area_error = {"error", NEEDS_NOTHING, checks, COUNT_OF(checks)};
