/* SPDX-License-Identifier: MIT */
/* libdevice's functions (__nv_expf ...) by the C library's: within NVIDIA's stated errors, not their bits. */
#include <math.h>
#include <string.h>

#include "soft/exec/builtin.h"
#include "soft/exec/forms.h"

static float get_f(const hdsoft_cells *cells, unsigned row, unsigned lane)
{
    float value;
    uint32_t bits = (uint32_t)cells[row][lane];
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double get_d(const hdsoft_cells *cells, unsigned row, unsigned lane)
{
    double value;
    memcpy(&value, &cells[row][lane], sizeof value);
    return value;
}

static void put_f(hdsoft_cells *cells, unsigned lane, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    cells[0][lane] = value != value ? 0x7fffffff : bits;
}

static void put_d(hdsoft_cells *cells, unsigned lane, double value)
{
    memcpy(&cells[0][lane], &value, sizeof value);
}

#define CALLER(name, statement)                                                                          \
    static bool call_##name(hdsoft_warp *warp, const hdsoft_instruction *instruction,                    \
                            const hdsoft_builtin *builtin, hdsoft_cells *cells)                          \
    {                                                                                                    \
        (void)instruction, (void)builtin;                                                                \
        for (uint32_t rest = warp->mask; rest; rest &= rest - 1) {                                       \
            unsigned lane = (unsigned)__builtin_ctz(rest);                                               \
            statement;                                                                                   \
        }                                                                                                \
        return true;                                                                                     \
    }
#define F(row) get_f(cells, row, lane)
#define D(row) get_d(cells, row, lane)
#define I(row) ((int)(uint32_t)cells[row][lane])

CALLER(f, put_f(cells, lane, builtin->function.f(F(1))))
CALLER(ff, put_f(cells, lane, builtin->function.ff(F(1), F(2))))
CALLER(fff, put_f(cells, lane, builtin->function.fff(F(1), F(2), F(3))))
CALLER(d, put_d(cells, lane, builtin->function.d(D(1))))
CALLER(dd, put_d(cells, lane, builtin->function.dd(D(1), D(2))))
CALLER(ddd, put_d(cells, lane, builtin->function.ddd(D(1), D(2), D(3))))
CALLER(fi, put_f(cells, lane, builtin->function.fi(F(1), I(2))))
CALLER(di, put_d(cells, lane, builtin->function.di(D(1), I(2))))
CALLER(i_f, put_f(cells, lane, builtin->function.i_f(I(1), F(2))))
CALLER(i_d, put_d(cells, lane, builtin->function.i_d(I(1), D(2))))
CALLER(to_int, cells[0][lane] = (uint32_t)builtin->function.to_int(F(1)))
CALLER(to_int_d, cells[0][lane] = (uint32_t)builtin->function.to_int_d(D(1)))

/* The plain lgamma writes a global. */
static float lgamma_f(float a) { int sign; return lgammaf_r(a, &sign); }
static double lgamma_d(double a) { int sign; return lgamma_r(a, &sign); }
static float rsqrt_f(float a) { return (float)(1.0 / sqrt((double)a)); }
static double rsqrt_d(double a) { return 1.0 / sqrt(a); }
static float rcbrt_f(float a) { return (float)(1.0 / cbrt((double)a)); }
static double rcbrt_d(double a) { return 1.0 / cbrt(a); }
static double sinpi_d(double a) { return sin(M_PI * remainder(a, 2.0)); }
static double cospi_d(double a) { return cos(M_PI * remainder(a, 2.0)); }
static float sinpi_f(float a) { return (float)sinpi_d(a); }
static float cospi_f(float a) { return (float)cospi_d(a); }
static float exp10_f(float a) { return (float)pow(10.0, (double)a); }
static double exp10_d(double a) { return pow(10.0, a); }
static float erfcx_f(float a) { return (float)(exp((double)a * a) * erfc((double)a)); }
static double erfcx_d(double a) { return exp(a * a) * erfc(a); }
static double normcdf_d(double a) { return 0.5 * erfc(-a * M_SQRT1_2); }
static float normcdf_f(float a) { return (float)normcdf_d(a); }
static float rhypot_f(float a, float b) { return 1.0f / hypotf(a, b); }
static double rhypot_d(double a, double b) { return 1.0 / hypot(a, b); }
static float norm3d_f(float a, float b, float c) { return (float)sqrt((double)a * a + (double)b * b + (double)c * c); }
static double norm3d_d(double a, double b, double c) { return hypot(hypot(a, b), c); }
static float powi_f(float a, int b) { return (float)pow((double)a, b); }
static double powi_d(double a, int b) { return pow(a, b); }
static float saturate_f(float a) { return a > 0 ? (a < 1 ? a : 1) : 0; }
static float divide_f(float a, float b) { return a / b; }
static int isinf_f(float a) { return isinf(a) != 0; }
static int isnan_f(float a) { return isnan(a) != 0; }
static int isfinite_f(float a) { return isfinite(a) != 0; }
static int isinf_d(double a) { return isinf(a) != 0; }
static int isnan_d(double a) { return isnan(a) != 0; }
static int isfinite_d(double a) { return isfinite(a) != 0; }
static int signbit_f(float a) { return signbit(a) != 0; }
static int signbit_d(double a) { return signbit(a) != 0; }

/* Functions that store a second result through a pointer. */
#define CALLER_OUT(name, declare, statement, address, value)                                                    \
    static bool call_##name(hdsoft_warp *warp, const hdsoft_instruction *instruction,                           \
                            const hdsoft_builtin *builtin, hdsoft_cells *cells)                                 \
    {                                                                                                           \
        (void)builtin;                                                                                          \
        for (uint32_t rest = warp->mask; rest; rest &= rest - 1) {                                              \
            unsigned lane = (unsigned)__builtin_ctz(rest);                                                      \
            declare;                                                                                            \
            statement;                                                                                          \
            if (!hdsoft_copy_out(warp, instruction, lane, cells[address][lane], &(value), sizeof(value)))       \
                return false;                                                                                   \
        }                                                                                                       \
        return true;                                                                                            \
    }
CALLER_OUT(frexpf, int exponent, put_f(cells, lane, frexpf(F(1), &exponent)), 2, exponent)
CALLER_OUT(frexp, int exponent, put_d(cells, lane, frexp(D(1), &exponent)), 2, exponent)
CALLER_OUT(modff, float whole, put_f(cells, lane, modff(F(1), &whole)), 2, whole)
CALLER_OUT(modf, double whole, put_d(cells, lane, modf(D(1), &whole)), 2, whole)
CALLER_OUT(remquof, int quotient, put_f(cells, lane, remquof(F(1), F(2), &quotient)), 3, quotient)
CALLER_OUT(remquo, int quotient, put_d(cells, lane, remquo(D(1), D(2), &quotient)), 3, quotient)

static bool sine_cosine(hdsoft_warp *warp, const hdsoft_instruction *instruction, const hdsoft_builtin *builtin,
                        hdsoft_cells *cells)
{
    bool pi = strncmp(builtin->name, "__nv_sincospi", 13) == 0;
    bool single = builtin->signature[1] == 'f';
    for (uint32_t rest = warp->mask; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        double angle = single ? (double)F(0) : D(0);
        double results[2] = {pi ? sinpi_d(angle) : sin(angle), pi ? cospi_d(angle) : cos(angle)};
        for (unsigned i = 0; i < 2; i++) {
            float small = (float)results[i];
            const void *bytes = single ? (const void *)&small : &results[i];
            if (!hdsoft_copy_out(warp, instruction, lane, cells[1 + i][lane], bytes, single ? 4 : 8))
                return false;
        }
    }
    return true;
}

#define ROW_F(symbol, c) {.name = "__nv_" #symbol, .signature = "f:f", .call = call_f, .function.f = c},
#define ROW_D(symbol, c) {.name = "__nv_" #symbol, .signature = "d:d", .call = call_d, .function.d = c},
#define ROW_FF(symbol, c) {.name = "__nv_" #symbol, .signature = "f:ff", .call = call_ff, .function.ff = c},
#define ROW_DD(symbol, c) {.name = "__nv_" #symbol, .signature = "d:dd", .call = call_dd, .function.dd = c},
/* The single and the double one of the same function. */
#define BOTH(symbol) ROW_F(symbol##f, symbol##f) ROW_D(symbol, symbol)
#define BOTH_2(symbol) ROW_FF(symbol##f, symbol##f) ROW_DD(symbol, symbol)

const hdsoft_builtin hdsoft_builtins_math[] = {
    BOTH(sin) BOTH(cos) BOTH(tan) BOTH(asin) BOTH(acos) BOTH(atan) BOTH(sinh) BOTH(cosh) BOTH(tanh) BOTH(asinh)
    BOTH(acosh) BOTH(atanh) BOTH(exp) BOTH(exp2) BOTH(expm1) BOTH(log) BOTH(log2) BOTH(log10) BOTH(log1p) BOTH(logb)
    BOTH(sqrt) BOTH(cbrt) BOTH(erf) BOTH(erfc) BOTH(tgamma) ROW_F(lgammaf, lgamma_f) ROW_D(lgamma, lgamma_d)
    BOTH(ceil) BOTH(floor) BOTH(trunc) BOTH(rint)
    BOTH(nearbyint) BOTH(round) BOTH(fabs) BOTH(j0) BOTH(j1) BOTH(y0) BOTH(y1)
    BOTH_2(pow) BOTH_2(fmod) BOTH_2(remainder) BOTH_2(atan2) BOTH_2(hypot) BOTH_2(fmin) BOTH_2(fmax) BOTH_2(fdim)
    BOTH_2(nextafter) BOTH_2(copysign)
    ROW_F(rsqrtf, rsqrt_f) ROW_D(rsqrt, rsqrt_d) ROW_F(rcbrtf, rcbrt_f) ROW_D(rcbrt, rcbrt_d)
    ROW_F(sinpif, sinpi_f) ROW_D(sinpi, sinpi_d) ROW_F(cospif, cospi_f) ROW_D(cospi, cospi_d)
    ROW_F(exp10f, exp10_f) ROW_D(exp10, exp10_d) ROW_F(erfcxf, erfcx_f) ROW_D(erfcx, erfcx_d)
    ROW_F(normcdff, normcdf_f) ROW_D(normcdf, normcdf_d) ROW_FF(rhypotf, rhypot_f) ROW_DD(rhypot, rhypot_d)
    ROW_F(saturatef, saturate_f) ROW_FF(fdividef, divide_f) ROW_FF(fast_fdividef, divide_f)
    ROW_F(fast_sinf, sinf) ROW_F(fast_cosf, cosf) ROW_F(fast_tanf, tanf) ROW_F(fast_expf, expf)
    ROW_F(fast_exp10f, exp10_f) ROW_F(fast_logf, logf) ROW_F(fast_log2f, log2f) ROW_F(fast_log10f, log10f)
    ROW_FF(fast_powf, powf) ROW_F(fsqrt_rn, sqrtf) ROW_D(dsqrt_rn, sqrt)
    {.name = "__nv_fmaf", .signature = "f:fff", .call = call_fff, .function.fff = fmaf},
    {.name = "__nv_fma", .signature = "d:ddd", .call = call_ddd, .function.ddd = fma},
    {.name = "__nv_norm3df", .signature = "f:fff", .call = call_fff, .function.fff = norm3d_f},
    {.name = "__nv_norm3d", .signature = "d:ddd", .call = call_ddd, .function.ddd = norm3d_d},
    {.name = "__nv_ldexpf", .signature = "f:fw", .call = call_fi, .function.fi = ldexpf},
    {.name = "__nv_ldexp", .signature = "d:dw", .call = call_di, .function.di = ldexp},
    {.name = "__nv_scalbnf", .signature = "f:fw", .call = call_fi, .function.fi = scalbnf},
    {.name = "__nv_scalbn", .signature = "d:dw", .call = call_di, .function.di = scalbn},
    {.name = "__nv_powif", .signature = "f:fw", .call = call_fi, .function.fi = powi_f},
    {.name = "__nv_powi", .signature = "d:dw", .call = call_di, .function.di = powi_d},
    {.name = "__nv_jnf", .signature = "f:wf", .call = call_i_f, .function.i_f = jnf},
    {.name = "__nv_jn", .signature = "d:wd", .call = call_i_d, .function.i_d = jn},
    {.name = "__nv_ynf", .signature = "f:wf", .call = call_i_f, .function.i_f = ynf},
    {.name = "__nv_yn", .signature = "d:wd", .call = call_i_d, .function.i_d = yn},
    {.name = "__nv_ilogbf", .signature = "w:f", .call = call_to_int, .function.to_int = ilogbf},
    {.name = "__nv_ilogb", .signature = "w:d", .call = call_to_int_d, .function.to_int_d = ilogb},
    {.name = "__nv_isinff", .signature = "w:f", .call = call_to_int, .function.to_int = isinf_f},
    {.name = "__nv_isinfd", .signature = "w:d", .call = call_to_int_d, .function.to_int_d = isinf_d},
    {.name = "__nv_isnanf", .signature = "w:f", .call = call_to_int, .function.to_int = isnan_f},
    {.name = "__nv_isnand", .signature = "w:d", .call = call_to_int_d, .function.to_int_d = isnan_d},
    {.name = "__nv_finitef", .signature = "w:f", .call = call_to_int, .function.to_int = isfinite_f},
    {.name = "__nv_isfinited", .signature = "w:d", .call = call_to_int_d, .function.to_int_d = isfinite_d},
    {.name = "__nv_signbitf", .signature = "w:f", .call = call_to_int, .function.to_int = signbit_f},
    {.name = "__nv_signbitd", .signature = "w:d", .call = call_to_int_d, .function.to_int_d = signbit_d},
    {.name = "__nv_frexpf", .signature = "f:fq", .call = call_frexpf},
    {.name = "__nv_frexp", .signature = "d:dq", .call = call_frexp},
    {.name = "__nv_modff", .signature = "f:fq", .call = call_modff},
    {.name = "__nv_modf", .signature = "d:dq", .call = call_modf},
    {.name = "__nv_remquof", .signature = "f:ffq", .call = call_remquof},
    {.name = "__nv_remquo", .signature = "d:ddq", .call = call_remquo},
    {.name = "__nv_sincosf", .signature = ":fqq", .call = sine_cosine},
    {.name = "__nv_fast_sincosf", .signature = ":fqq", .call = sine_cosine},
    {.name = "__nv_sincos", .signature = ":dqq", .call = sine_cosine},
    {.name = "__nv_sincospif", .signature = ":fqq", .call = sine_cosine},
    {.name = "__nv_sincospi", .signature = ":dqq", .call = sine_cosine},
    {.name = NULL},
};

const hdsoft_builtin *hdsoft_builtin_find(const char *name)
{
    for (const hdsoft_builtin *builtin = hdsoft_builtins_system; builtin->name; builtin++)
        if (strcmp(builtin->name, name) == 0)
            return builtin;
    for (const hdsoft_builtin *builtin = hdsoft_builtins_math; builtin->name; builtin++)
        if (strcmp(builtin->name, name) == 0)
            return builtin;
    return NULL;
}

bool hdsoft_builtin_fits(const hdsoft_builtin *builtin, const hdsoft_function *function)
{
    uint32_t count = 0, returned = 0;
    for (const char *letter = builtin->signature; *letter; letter++) {
        if (*letter == ':') {
            returned = count;
            continue;
        }
        uint32_t size = *letter == 'q' || *letter == 'd' ? 8 : 4;
        if (count >= function->formal_count || function->formals[count].size != size)
            return false;
        count++;
    }
    return count == function->formal_count && returned == function->return_count;
}
