/* SPDX-License-Identifier: MIT */
/*
 * Arithmetic of f16 and bf16, single and two in a word. One handler per operation: which format, how many and what to
 * do with the result is in the instruction (HDSOFT_HALF_* of forms.h: option[0] how, option[2] what). Compiled once.
 */
#include "soft/exec/control.h"
#include "soft/exec/half.h"
#include "soft/exec/lanes.h"

typedef struct half_step {
    bool brain;
    unsigned how;
} half_step;

typedef uint16_t (*half_operation)(half_step step, uint32_t a, uint32_t b, uint32_t c);

/* The result of arithmetic, which goes through rounding to nearest. */
static uint16_t finish(half_step step, double value)
{
    if (step.how & HDSOFT_HALF_SATURATE)
        value = value > 0 ? (value < 1 ? value : 1) : 0;
    if ((step.how & HDSOFT_HALF_RELU) && !(value > 0) && value == value)
        value = 0;
    uint16_t half = half_encode(value, step.brain, HDSOFT_ROUND_NEAREST);
    return step.how & HDSOFT_HALF_FLUSH ? (uint16_t)half_flush(half, step.brain) : half;
}

static double operand(half_step step, uint32_t half)
{
    return half_decode(step.how & HDSOFT_HALF_FLUSH ? half_flush(half, step.brain) : half, step.brain);
}

static bool is_nan(half_step step, uint32_t half)
{
    return (half & 0x7fff) > half_layout_of(step.brain).infinity;
}

static uint16_t add(half_step step, uint32_t a, uint32_t b, uint32_t c)
{
    (void)c;
    return finish(step, half_sum(operand(step, a), operand(step, b)));
}

static uint16_t subtract(half_step step, uint32_t a, uint32_t b, uint32_t c)
{
    (void)c;
    return finish(step, half_sum(operand(step, a), -operand(step, b)));
}

static uint16_t multiply(half_step step, uint32_t a, uint32_t b, uint32_t c)
{
    (void)c;
    return finish(step, operand(step, a) * operand(step, b));
}

static uint16_t multiply_add(half_step step, uint32_t a, uint32_t b, uint32_t c)
{
    return finish(step, half_sum(operand(step, a) * operand(step, b), operand(step, c)));
}

static uint16_t with_sign(half_step step, uint32_t a, uint32_t magnitude_mask, uint32_t flip)
{
    if (step.how & HDSOFT_HALF_FLUSH)
        a = half_flush(a, step.brain);
    return is_nan(step, a) ? HALF_NAN : (uint16_t)((a & magnitude_mask) ^ flip);
}

static uint16_t negate(half_step step, uint32_t a, uint32_t b, uint32_t c)
{
    (void)b, (void)c;
    return with_sign(step, a, 0xffff, 0x8000);
}

static uint16_t absolute(half_step step, uint32_t a, uint32_t b, uint32_t c)
{
    (void)b, (void)c;
    return with_sign(step, a, 0x7fff, 0);
}

/* A number wins over a NaN unless .NaN asks for the contrary; -0 is less than +0. */
static uint16_t choose(half_step step, uint32_t a, uint32_t b, bool greatest)
{
    uint32_t sign = (a ^ b) & 0x8000;
    bool signs = step.how & HDSOFT_HALF_SIGNS;
    if (step.how & HDSOFT_HALF_FLUSH) {
        a = half_flush(a, step.brain);
        b = half_flush(b, step.brain);
    }
    if (signs) {
        a &= 0x7fff;
        b &= 0x7fff;
    }
    bool a_nan = is_nan(step, a), b_nan = is_nan(step, b);
    if ((a_nan && b_nan) || ((a_nan || b_nan) && (step.how & HDSOFT_HALF_NAN)))
        return HALF_NAN;
    /* As integers in order: those of negative numbers run the other way. */
    int32_t first = a & 0x8000 ? -(int32_t)(a & 0x7fff) - 1 : (int32_t)a;
    int32_t second = b & 0x8000 ? -(int32_t)(b & 0x7fff) - 1 : (int32_t)b;
    bool take_a = b_nan || (!a_nan && (greatest ? first > second : first < second));
    uint32_t result = take_a ? a : b;
    return (uint16_t)(signs ? result | sign : result);
}

static uint16_t minimum(half_step step, uint32_t a, uint32_t b, uint32_t c)
{
    (void)c;
    return choose(step, a, b, false);
}

static uint16_t maximum(half_step step, uint32_t a, uint32_t b, uint32_t c)
{
    (void)c;
    return choose(step, a, b, true);
}

static uint16_t power_of_two(half_step step, uint32_t a, uint32_t b, uint32_t c)
{
    (void)b, (void)c;
    return finish(step, exp2(operand(step, a)));
}

static uint16_t hyperbolic_tangent(half_step step, uint32_t a, uint32_t b, uint32_t c)
{
    (void)b, (void)c;
    return finish(step, tanh(operand(step, a)));
}

static inline __attribute__((always_inline)) const hdsoft_instruction *
perform(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned sources, half_operation operation)
{
    half_step step = {instruction->option[2] & HDSOFT_HALF_BRAIN, instruction->option[0]};
    bool pair = instruction->option[2] & HDSOFT_HALF_PAIR;
    column_32 *to = (column_32 *)(void *)(warp->frame + instruction->operand[0]);
    const column_32 *first = SOURCE(u32, 1), *second = sources > 1 ? SOURCE(u32, 2) : first;
    const column_32 *third = sources > 2 ? SOURCE(u32, 3) : first;
    for (uint32_t rest = warp->active; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint32_t a = first[lane], b = second[lane], c = third[lane];
        uint32_t result = operation(step, a & 0xffff, b & 0xffff, c & 0xffff);
        if (pair)
            result |= (uint32_t)operation(step, a >> 16, b >> 16, c >> 16) << 16;
        to[lane] = result;
    }
    return instruction + 1;
}

#define OPERATIONS(X) \
    X(half_add, "w:ww", 2, add) \
    X(half_sub, "w:ww", 2, subtract) \
    X(half_mul, "w:ww", 2, multiply) \
    X(half_fma, "w:www", 3, multiply_add) \
    X(half_neg, "w:w", 1, negate) \
    X(half_abs, "w:w", 1, absolute) \
    X(half_min, "w:ww", 2, minimum) \
    X(half_max, "w:ww", 2, maximum) \
    X(half_ex2, "w:w", 1, power_of_two) \
    X(half_tanh, "w:w", 1, hyperbolic_tangent)
#define DEFINE(name, letters, sources, operation)                     \
    HANDLER(name)                                                     \
    {                                                                 \
        return perform(warp, instruction, sources, operation);        \
    }
#define ROW(name, letters, ...) {#name, handle_##name, letters},
OPERATIONS(DEFINE)

/* --- conversions; option[1] is the rounding mode, or which half of a word to take --- */

static float single_of(const hdsoft_instruction *instruction, uint32_t word)
{
    uint32_t half = instruction->option[1] ? word >> 16 : word & 0xffff;
    if (instruction->option[2] & HDSOFT_HALF_BRAIN) { /* the upper half of a float, NaNs too */
        uint32_t bits = half << 16;
        float single;
        memcpy(&single, &bits, sizeof single);
        return single;
    }
    if (instruction->option[0] & HDSOFT_HALF_FLUSH)
        half = half_flush(half, false);
    return canonical((float)half_decode(half, false));
}

LANES_1(single_half, f32, u32, single_of(instruction, a))

/* An f16's NaN keeps its digits and becomes quiet. */
static uint64_t double_of(uint32_t half)
{
    double value = half_decode(half, false);
    return half_double_bits(value) | (value != value ? UINT64_C(1) << 51 : 0);
}

LANES_1(double_half, u64, u16, double_of(a))

static uint32_t half_of(const hdsoft_instruction *instruction, double value)
{
    bool brain = instruction->option[2] & HDSOFT_HALF_BRAIN;
    unsigned how = instruction->option[0];
    if (how & HDSOFT_HALF_SATURATE)
        value = value > 0 ? (value < 1 ? value : 1) : 0;
    if ((how & HDSOFT_HALF_RELU) && !(value > 0) && value == value)
        value = 0;
    uint16_t half = half_encode(value, brain, instruction->option[1]);
    uint32_t infinity = half_layout_of(brain).infinity;
    return (how & HDSOFT_HALF_FINITE) && (half & 0x7fffu) == infinity ? half - 1u : half;
}

/* A whole number as a double; one that has no double, rounded to odd. */
static double odd_double(uint64_t magnitude, bool negative)
{
    unsigned digits = magnitude ? 64u - (unsigned)__builtin_clzll(magnitude) : 0, drop = digits > 53 ? digits - 53 : 0;
    uint64_t lost = magnitude & ((UINT64_C(1) << drop) - 1);
    magnitude = (magnitude >> drop | (lost != 0)) << drop;
    return negative ? -(double)magnitude : (double)magnitude;
}

LANES_1(half_f64, u32, f64, half_of(instruction, a))
LANES_1(half_u64, u32, u64, half_of(instruction, odd_double(a, false)))
LANES_1(half_s64, u32, s64, half_of(instruction, odd_double(a < 0 ? 0 - (uint64_t)a : (uint64_t)a, a < 0)))
LANES_2(halves_f64, u32, f64, f64, half_of(instruction, a) << 16 | half_of(instruction, b))

const hdsoft_form hdsoft_forms_half[] = {
    OPERATIONS(ROW)
    {"single_half", handle_single_half, "f:w"},
    {"double_half", handle_double_half, "d:w"},
    {"half_f64", handle_half_f64, "w:d"},
    {"half_u64", handle_half_u64, "w:q"},
    {"half_s64", handle_half_s64, "w:q"},
    {"halves_f64", handle_halves_f64, "w:dd"},
    {NULL, NULL, NULL},
};
