/* SPDX-License-Identifier: MIT */
/**
 * \file hdrt/args.h
 * HDRT_ARGS: a launch's arguments with their kinds, in C (gcc, clang) and C++ (g++, clang++).
 *
 * HDRT_ARGS() to HDRT_ARGS(a1, ..., a32). In C each argument is copied into a compound literal of its own type, so
 * literals and expressions work; float stays float and double stays double: write 2.0f for a float parameter.
 */
#ifndef HDRT_ARGS_H
#define HDRT_ARGS_H

#ifndef HDRT_H
#error "include <hdrt.h>, not its parts"
#endif

/* The 33rd argument. */
#define HDRT_ARGS_PICK_(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, _17, _18, _19, _20, _21, _22, _23, _24, _25, _26, _27, _28, _29, _30, _31, _32, n, ...) n
/* 1 if there is a comma among the arguments, else 0. */
#define HDRT_ARGS_COMMA_(...) HDRT_ARGS_PICK_(__VA_ARGS__, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, ~)
#define HDRT_ARGS_TRIGGER_(...) ,
/* No arguments at all: no comma as they stand, none behind a trigger, none called, and one when triggered. */
#define HDRT_ARGS_EMPTY_(...)                                                                                          \
    HDRT_ARGS_EMPTY_4(HDRT_ARGS_COMMA_(__VA_ARGS__), HDRT_ARGS_COMMA_(HDRT_ARGS_TRIGGER_ __VA_ARGS__),                 \
                      HDRT_ARGS_COMMA_(__VA_ARGS__()), HDRT_ARGS_COMMA_(HDRT_ARGS_TRIGGER_ __VA_ARGS__()))
#define HDRT_ARGS_EMPTY_4(a, b, c, d) HDRT_ARGS_JOIN_5(HDRT_ARGS_EMPTY_, a, b, c, d)
#define HDRT_ARGS_JOIN_5(a, b, c, d, e) HDRT_ARGS_COMMA_(a##b##c##d##e)
#define HDRT_ARGS_EMPTY_0001 ,
#define HDRT_ARGS_COUNT_0(...) HDRT_ARGS_PICK_(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, ~)
#define HDRT_ARGS_COUNT_1(...) 0
#define HDRT_ARGS_COUNT(...) HDRT_ARGS_JOIN(HDRT_ARGS_COUNT_, HDRT_ARGS_EMPTY_(__VA_ARGS__))(__VA_ARGS__)
#define HDRT_ARGS_JOIN_(a, b) a##b
#define HDRT_ARGS_JOIN(a, b) HDRT_ARGS_JOIN_(a, b)
#define HDRT_ARGS_EACH_0(m, ...)
#define HDRT_ARGS_EACH_1(m, a) m(a)
#define HDRT_ARGS_EACH_2(m, a, ...) m(a) HDRT_ARGS_EACH_1(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_3(m, a, ...) m(a) HDRT_ARGS_EACH_2(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_4(m, a, ...) m(a) HDRT_ARGS_EACH_3(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_5(m, a, ...) m(a) HDRT_ARGS_EACH_4(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_6(m, a, ...) m(a) HDRT_ARGS_EACH_5(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_7(m, a, ...) m(a) HDRT_ARGS_EACH_6(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_8(m, a, ...) m(a) HDRT_ARGS_EACH_7(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_9(m, a, ...) m(a) HDRT_ARGS_EACH_8(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_10(m, a, ...) m(a) HDRT_ARGS_EACH_9(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_11(m, a, ...) m(a) HDRT_ARGS_EACH_10(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_12(m, a, ...) m(a) HDRT_ARGS_EACH_11(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_13(m, a, ...) m(a) HDRT_ARGS_EACH_12(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_14(m, a, ...) m(a) HDRT_ARGS_EACH_13(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_15(m, a, ...) m(a) HDRT_ARGS_EACH_14(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_16(m, a, ...) m(a) HDRT_ARGS_EACH_15(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_17(m, a, ...) m(a) HDRT_ARGS_EACH_16(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_18(m, a, ...) m(a) HDRT_ARGS_EACH_17(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_19(m, a, ...) m(a) HDRT_ARGS_EACH_18(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_20(m, a, ...) m(a) HDRT_ARGS_EACH_19(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_21(m, a, ...) m(a) HDRT_ARGS_EACH_20(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_22(m, a, ...) m(a) HDRT_ARGS_EACH_21(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_23(m, a, ...) m(a) HDRT_ARGS_EACH_22(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_24(m, a, ...) m(a) HDRT_ARGS_EACH_23(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_25(m, a, ...) m(a) HDRT_ARGS_EACH_24(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_26(m, a, ...) m(a) HDRT_ARGS_EACH_25(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_27(m, a, ...) m(a) HDRT_ARGS_EACH_26(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_28(m, a, ...) m(a) HDRT_ARGS_EACH_27(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_29(m, a, ...) m(a) HDRT_ARGS_EACH_28(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_30(m, a, ...) m(a) HDRT_ARGS_EACH_29(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_31(m, a, ...) m(a) HDRT_ARGS_EACH_30(m, __VA_ARGS__)
#define HDRT_ARGS_EACH_32(m, a, ...) m(a) HDRT_ARGS_EACH_31(m, __VA_ARGS__)
#define HDRT_ARGS_EACH(m, ...) HDRT_ARGS_JOIN(HDRT_ARGS_EACH_, HDRT_ARGS_COUNT(__VA_ARGS__))(m, __VA_ARGS__)

#ifndef __cplusplus

#define HDRT_ARGS_CLASS(a)                                                                                             \
    _Generic((a),                                                                                                      \
        float: HDRT_CLASS_FLOAT,                                                                                       \
        double: HDRT_CLASS_FLOAT,                                                                                      \
        default: __builtin_classify_type(a) == 12 || __builtin_classify_type(a) == 13 ? HDRT_CLASS_UNKNOWN             \
                                                                                       : HDRT_CLASS_INTEGER)
#define HDRT_ARGS_POINTER(a) &(const __typeof__(a)[]){a}[0],
#define HDRT_ARGS_KIND(a) HDRT_KIND(HDRT_ARGS_CLASS(a), sizeof(a)),
#define HDRT_ARGS(...)                                                                                                 \
    ((hdrt_args){(const void *const[]){HDRT_ARGS_EACH(HDRT_ARGS_POINTER, __VA_ARGS__) NULL},                         \
                 (const uint32_t[]){HDRT_ARGS_EACH(HDRT_ARGS_KIND, __VA_ARGS__) 0},                                  \
                 HDRT_ARGS_COUNT(__VA_ARGS__)})

#else /* C++: templates, since compound literals of arrays are not C++ */

extern "C++" {
namespace hdrt_detail {
template <typename T> struct argument_class {
    static const uint32_t value = __is_class(T) || __is_union(T) ? HDRT_CLASS_UNKNOWN : HDRT_CLASS_INTEGER;
};
template <> struct argument_class<float> { static const uint32_t value = HDRT_CLASS_FLOAT; };
template <> struct argument_class<double> { static const uint32_t value = HDRT_CLASS_FLOAT; };

/* Lives, like the temporaries it points to, until the end of the full expression: the call that it is an argument of. */
template <unsigned N> struct packed_arguments {
    const void *pointers[N + 1];
    uint32_t kinds[N + 1];
    operator hdrt_args() const
    {
        hdrt_args args = {pointers, kinds, N};
        return args;
    }
};
template <typename... T> packed_arguments<sizeof...(T)> pack_arguments(const T &...a)
{
    packed_arguments<sizeof...(T)> packed = {{static_cast<const void *>(&a)..., NULL},
                                             {HDRT_KIND(argument_class<T>::value, sizeof(T))..., 0}};
    return packed;
}
}
}
#define HDRT_ARGS(...) (::hdrt_detail::pack_arguments(__VA_ARGS__))

#endif

#endif
