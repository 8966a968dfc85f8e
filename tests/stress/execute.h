/* SPDX-License-Identifier: MIT */
/*
 * Random programs on the library: a bed is a process' runtime with its devices, kernels and cells, which many programs
 * use one after the other. What goes wrong is told on standard error and ends the process with status 1.
 */
#ifndef TEST_STRESS_EXECUTE_H
#define TEST_STRESS_EXECUTE_H

#include <hdrt.h>
#include <hdrt/interop.h>

#include "program.h"

typedef struct bed {
    hdrt_runtime *runtime;
    uint32_t device_count;
    hdrt_device *devices[PROGRAM_DEVICES];
    hdrt_module *modules[PROGRAM_DEVICES];
    hdrt_kernel *kernels[PROGRAM_DEVICES][3]; /* MIX, TURN, PACK */
    hdrt_queue *own[PROGRAM_DEVICES];         /* for what is around programs */
    hdrt_ptr cells[PROGRAM_CELLS];            /* of devices */
    hdrt_ptr stamps[PROGRAM_DEVICES];
    uint32_t *host_cells[PROGRAM_CELLS];
    uint32_t *pinned; /* room for what is read back */
    hdrt_submission submission;
    hdrt_queue *queues[PROGRAM_QUEUES]; /* of the program, and the event after each of its operations */
    hdrt_event events[PROGRAM_OPS];
} bed;

/* As CHECK_OK in tests, without Check. */
#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        hdrt_status must_status_ = (call);                                                                             \
        if (must_status_ != HDRT_OK) {                                                                                 \
            bed_fail("%s: %s: %s", #call, hdrt_status_name(must_status_), hdrt_last_error());                          \
        }                                                                                                              \
    } while (0)

void bed_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void bed_open(bed *b, uint32_t devices);
void bed_close(bed *b);
/* Address of a function of the soft driver's beyond CUDA. */
void bed_symbol(const bed *b, const char *name, void *out_function);

/* Run a program. `between`, if not NULL, is called when all is enqueued, before the host waits. */
void bed_execute(bed *b, const program_graph *program, program_result *out_result, void (*between)(void *), void *context);
/* Whether two results agree; if not, how they differ is told. */
bool bed_compare(const program_graph *program, const program_result *result, const program_result *expected,
                 const char *name);

#endif
