/* SPDX-License-Identifier: MIT */
/*
 * HDRT_ARGS from C and from C++: the body of test_args.c and test_args_cxx.cc. Both print TAP; that they compile
 * without a warning is half the test.
 */
#include <hdrt.h>
#include <hdrt/interop.h>

#include <stdio.h>
#include <string.h>

static int number;

static void result(bool right, const char *what)
{
    printf("%s %d - %s\n", right ? "ok" : "not ok", ++number, what);
}

typedef struct triple {
    int a, b, c;
} triple;

/* Whether `args` are `count` arguments of these kinds. */
static bool kinds_are(hdrt_args args, uint32_t count, const uint32_t *kinds)
{
    bool right = args.count == count;
    for (uint32_t i = 0; right && i < count; i++)
        right = args.kinds[i] == kinds[i] && args.pointers[i] != NULL;
    return right;
}

static bool holds(hdrt_args args, uint32_t index, const void *value, size_t size)
{
    return index < args.count && memcmp(args.pointers[index], value, size) == 0;
}

static void no_arguments(void)
{
    result(kinds_are(HDRT_ARGS(), 0, NULL), "no arguments");
}

static void classes(void)
{
    float f = 2.5f;
    const double d = 3.5;
    volatile int i = 7;
    unsigned char byte = 9;
    hdrt_ptr address = 0x123456789abcull;
    triple t = {1, 2, 3};
    const char *text = "text";
    static const uint32_t kinds[] = {
        HDRT_KIND(HDRT_CLASS_FLOAT, 4),
        HDRT_KIND(HDRT_CLASS_FLOAT, 8),
        HDRT_KIND(HDRT_CLASS_INTEGER, 4),
        HDRT_KIND(HDRT_CLASS_INTEGER, 1),
        HDRT_KIND(HDRT_CLASS_INTEGER, 8),
        HDRT_KIND(HDRT_CLASS_UNKNOWN, sizeof(triple)),
        HDRT_KIND(HDRT_CLASS_INTEGER, sizeof(char *)),
    };
    result(kinds_are(HDRT_ARGS(f, d, (int)i, byte, address, t, text), 7, kinds), "each type has its class and size");
    static const uint32_t literals[] = {HDRT_KIND(HDRT_CLASS_FLOAT, 4), HDRT_KIND(HDRT_CLASS_FLOAT, 8),
                                        HDRT_KIND(HDRT_CLASS_INTEGER, 4), HDRT_KIND(HDRT_CLASS_INTEGER, 8)};
    result(kinds_are(HDRT_ARGS(2.0f, 2.0, 2, 2ull), 4, literals), "literals keep their types");
    result(holds(HDRT_ARGS(t, f + 1), 0, &t, sizeof t), "a struct is passed by value");
    float sum = f + 1;
    result(holds(HDRT_ARGS(t, f + 1), 1, &sum, sizeof sum), "an expression is evaluated");
    uint32_t single[] = {HDRT_KIND(HDRT_CLASS_INTEGER, 8)};
    result(kinds_are(HDRT_ARGS((address)), 1, single), "an argument in parentheses is one");
}

static void thirty_two(void)
{
    uint32_t kinds[HDRT_ARGS_LIMIT];
    for (int i = 0; i < HDRT_ARGS_LIMIT; i++)
        kinds[i] = HDRT_KIND(HDRT_CLASS_INTEGER, 4);
    int last = 32;
#define SIXTEEN(n) n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n
    result(kinds_are(HDRT_ARGS(SIXTEEN(1), SIXTEEN(32)), 32, kinds), "32 arguments");
    result(holds(HDRT_ARGS(SIXTEEN(1), SIXTEEN(32)), 31, &last, sizeof last), "the last of 32");
}

static void initialisers(void)
{
    hdrt_runtime_options runtime = HDRT_RUNTIME_OPTIONS_INIT;
    hdrt_queue_options queue = HDRT_QUEUE_OPTIONS_INIT;
    hdrt_event zero = {0, 0};
    result(runtime.size == sizeof runtime && runtime.driver == HDRT_DRIVER_DEFAULT && !runtime.libexec &&
               queue.size == sizeof queue && !queue.exclusive && zero.value == 0,
           "options start from their defaults");
    result(hdrt_version() == HDRT_VERSION && strcmp(hdrt_status_name(HDRT_OK), "HDRT_OK") == 0, "the library links");
}

static int run_cases(void)
{
    printf("1..10\n");
    no_arguments();
    classes();
    thirty_two();
    initialisers();
    return 0;
}
