/* SPDX-License-Identifier: MIT */
/*
 * Runs kernels of a source file through the public interface, for tests that compare them with the CPU. Every step is
 * asserted, so a test reads as its data. Open and close it in a checked fixture: with a real driver the parent process
 * must stay free of CUDA.
 *
 * The environment of the test run decides where: HDRT_TEST_DRIVER is "soft" (also when unset) or "cuda";
 * HDRT_TEST_COMPILER is "clang" or "nvrtc" instead of the library's own choice; HDRT_TEST_ARCH is what to compile for
 * ("sm_70") instead of the device's; HDRT_TEST_PTX is a folder with NAME.ptx for NAME.cu, to be loaded instead of
 * compiling.
 */
#ifndef KERNEL_RUNNER_H
#define KERNEL_RUNNER_H

#include <hdrt.h>

#include <check.h>

/* For loops over many values: Check notes every assertion that it passes, in a pipe. */
#define EXPECT(condition, ...)                                                                                         \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            ck_abort_msg(__VA_ARGS__);                                                                                 \
    } while (0)

struct kernel_runner {
    hdrt_runtime *runtime;
    hdrt_device *device;
    hdrt_queue *queue;
    hdrt_module *module;
};

/* The TAP line that skips the whole program where its driver or compiler is not here, else NULL. Starts neither. */
const char *kernel_runner_skip(void);

/* Opens the device and loads SOURCE, a path from the top of the tree. */
void kernel_runner_open(struct kernel_runner *runner, const char *source);
void kernel_runner_close(struct kernel_runner *runner);

/* Device memory of at least one byte; upload fills it from DATA. */
hdrt_ptr kernel_runner_allocate(struct kernel_runner *runner, size_t bytes);
hdrt_ptr kernel_runner_upload(struct kernel_runner *runner, const void *data, size_t bytes);
/* Waits for all before, and frees POINTER when it has been read. */
void kernel_runner_take(struct kernel_runner *runner, void *data, hdrt_ptr pointer, size_t bytes);
void kernel_runner_free(struct kernel_runner *runner, hdrt_ptr pointer);

void kernel_runner_launch(struct kernel_runner *runner, const char *kernel, hdrt_grid grid, hdrt_args args);

#endif
