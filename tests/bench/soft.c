/* SPDX-License-Identifier: MIT */
/*
 * How long the soft driver takes for one instruction of one thread: `make bench-soft` prints a line "NAME ns limit" for
 * each kernel, with AVX2, with the handlers for any x86-64 (NAME-sse2) and with race checking (NAME-race), and exits 1
 * if one is past its limit or computes something wrong.
 *
 * Times are processor times of the whole process, so that other load does not count, and the least of some runs. Each
 * measurement has a process and so a driver of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "soft_kernels.h"

void *hdsoft_get_proc_address(const char *symbol);

#define RUNS 15

typedef struct setting {
    const char *suffix, *isa, *check; /* values of HDSOFT_ISA and HDSOFT_CHECK */
    double factor;                    /* of the kernel's limit */
} setting;

static const setting settings[] = {
    {"", "avx2", "", 1},
    {"-sse2", "sse2", "", 3},
    {"-race", "avx2", "race", 4},
};

static hdrt__driver_table cu;

static void must(hdcu_result result, const char *call)
{
    if (result != 0) {
        fprintf(stderr, "%s: %d\n", call, (int)result);
        exit(1);
    }
}
#define MUST(call) must(cu.call, #call)

static double processor_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static hdcu_function load(const char *ptx, const char *name)
{
    hdcu_context context;
    hdcu_module module;
    hdcu_function function;

#define FILL(entry, symbol, version, need, parameters) *(void **)&cu.entry = hdsoft_get_proc_address(symbol);
    HDCU_SYMBOL_LIST(FILL)
#undef FILL
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadDataEx(&module, ptx, 0, NULL, NULL));
    MUST(cuModuleGetFunction(&function, module, name));
    return function;
}

/* Runs in its own process: nanoseconds for an instruction of a thread, by the fastest of the runs. */
static double measure(const soft_kernel *kernel)
{
    void *input[SOFT_BUFFERS] = {NULL}, *arguments[SOFT_ARGUMENTS], *result;
    hdcu_pointer buffers[SOFT_BUFFERS];
    uint64_t instructions;
    double least = 1e9;

    for (int i = 0; i < SOFT_BUFFERS; i++) {
        input[i] = malloc(kernel->bytes[i] + 1);
        if (!input[i])
            exit(1);
    }
    result = malloc(kernel->bytes[kernel->result]);
    if (!result)
        exit(1);
    kernel->fill(input);
    char *ptx = kernel->ptx(input, &instructions);
    hdcu_function function = load(ptx, kernel->name);
    for (int i = 0; i < SOFT_BUFFERS && kernel->bytes[i]; i++)
        MUST(cuMemAlloc(&buffers[i], kernel->bytes[i]));
    kernel->arguments(buffers, arguments);
    for (int run = 0; run < RUNS; run++) {
        for (int i = 0; i < SOFT_BUFFERS && kernel->bytes[i]; i++)
            MUST(cuMemcpyHtoD(buffers[i], input[i], kernel->bytes[i]));
        MUST(cuCtxSynchronize());
        double begin = processor_seconds();
        MUST(cuLaunchKernel(function, kernel->grid[0], kernel->grid[1], kernel->grid[2], kernel->block[0],
                            kernel->block[1], kernel->block[2], 0, NULL, arguments, NULL));
        MUST(cuCtxSynchronize());
        double seconds = processor_seconds() - begin;
        least = seconds < least ? seconds : least;
    }
    MUST(cuMemcpyDtoH(result, buffers[kernel->result], kernel->bytes[kernel->result]));
    if (!kernel->check(input, result)) {
        fprintf(stderr, "%s computes something wrong\n", kernel->name);
        exit(1);
    }
    return least * 1e9 / (double)instructions;
}

/* The child prints its line; false: past the limit, or it failed. */
static bool run(const soft_kernel *kernel, const setting *with)
{
    double limit = kernel->limit * with->factor;
    int status;

    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setenv("HDSOFT_ISA", with->isa, 1);
        setenv("HDSOFT_CHECK", with->check, 1);
        double nanoseconds = measure(kernel);
        printf("%s%s %.3f %.1f\n", kernel->name, with->suffix, nanoseconds, limit);
        exit(nanoseconds > limit);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Without arguments all kernels in all settings; otherwise only lines of these names. */
int main(int argc, char **argv)
{
    bool within = true;

    for (size_t s = 0; s < sizeof settings / sizeof settings[0]; s++) {
        for (unsigned k = 0; k < soft_kernel_count; k++) {
            char name[64];
            bool wanted = argc < 2;
            snprintf(name, sizeof name, "%s%s", soft_kernels[k].name, settings[s].suffix);
            for (int i = 1; i < argc; i++)
                wanted |= strcmp(argv[i], name) == 0;
            if (wanted && !run(&soft_kernels[k], &settings[s]))
                within = false;
        }
    }
    return within ? 0 : 1;
}
