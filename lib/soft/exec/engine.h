/* SPDX-License-Identifier: MIT */
/*
 * The execution engine of the soft driver, as the driver model (lib/soft/model, lib/soft/api) sees it.
 *
 * The model owns devices, memory, streams and errors; the engine owns everything between a module's PTX text and the
 * last instruction of a kernel. The engine calls nothing of the model but the functions of hdsoft_memory.h. It keeps
 * no global state. Codes are CUresult numbers; every failure also writes a text.
 *
 *   hdsoft_program_parse -> hdsoft_program          immutable, shared by threads
 *   hdsoft_instance_create -> hdsoft_instance       a program whose globals live in one device's memory
 *   hdsoft_run_begin -> step ... step -> end        one launch; a step runs for a budget and can be resumed
 *
 * A run is used by one thread at a time (the device's executor). Different runs of one instance may interleave.
 */
#ifndef HDSOFT_ENGINE_H
#define HDSOFT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soft/model/hdsoft_memory.h"

typedef struct hdsoft_program hdsoft_program;
typedef struct hdsoft_instance hdsoft_instance;
typedef struct hdsoft_run hdsoft_run;
typedef struct hdsoft_watch hdsoft_watch; /* exec/watch.h */

/* A bounded text that failures are written to; always NUL-terminated; cut, never overrun. */
typedef struct hdsoft_text {
    char *bytes;
    size_t capacity, length;
} hdsoft_text;

/* One kernel parameter as the PTX declares it. kind: 'i' integer or pointer, 'f' floating point, 'b' bytes. */
typedef struct hdsoft_parameter {
    uint32_t offset, size, align;
    char kind;
} hdsoft_parameter;

/* What cuFuncGetAttribute and the launch checks need of one .entry. */
typedef struct hdsoft_entry {
    const char *name;
    const hdsoft_parameter *parameters;
    uint32_t parameter_count, parameter_bytes;
    uint32_t static_shared_bytes;    /* variables that this entry can reach */
    uint32_t local_bytes;            /* per thread */
    uint32_t register_count;         /* live registers, in 32-bit units, an estimate like ptxas's */
    uint32_t max_threads;            /* from .maxntid/.reqntid, else 1024 */
    uint32_t required_block[3];      /* .reqntid, zeros if none */
} hdsoft_entry;

/* One .global or .const variable. */
typedef struct hdsoft_variable {
    const char *name;
    uint64_t size;
    uint32_t align;
    bool constant;
} hdsoft_variable;

/*
 * Parse PTX text (size bytes; one trailing NUL is accepted). Returns 0; 218 (INVALID_PTX) with "line N: ..." in log;
 * 222 (UNSUPPORTED_PTX_VERSION) for .version above 9.0; 209 (NO_BINARY_FOR_GPU) when .target asks for more than
 * compute_capability (major * 10 + minor, e.g. 90); 2 (OUT_OF_MEMORY). Unknown instructions are kept as poison: the
 * module loads and only a kernel that reaches one fails, with its line. Untrusted input: never crashes, never
 * allocates more than a small multiple of size.
 */
int hdsoft_program_parse(const char *ptx, size_t size, unsigned compute_capability, hdsoft_program **out,
                         hdsoft_text *log);
/* The same with the handlers for an x86 level: -1 the best that this processor has, else at most 0 (any x86-64, SSE2),
 * 1 (AVX2) or 2 (AVX-512). They compute the same. */
int hdsoft_program_parse_level(const char *ptx, size_t size, unsigned compute_capability, int level,
                               hdsoft_program **out, hdsoft_text *log);
void hdsoft_program_destroy(hdsoft_program *program); /* after every instance of it; NULL is accepted */
size_t hdsoft_program_entry_count(const hdsoft_program *program);
const hdsoft_entry *hdsoft_program_entry(const hdsoft_program *program, size_t index);
const hdsoft_entry *hdsoft_program_find_entry(const hdsoft_program *program, const char *name); /* NULL: not there */
size_t hdsoft_program_variable_count(const hdsoft_program *program);
const hdsoft_variable *hdsoft_program_variable(const hdsoft_program *program, size_t index);

/* Place the globals and constants in memory and write their initialisers. Returns 0, 2, or 218. */
int hdsoft_instance_create(const hdsoft_program *program, hdsoft_memory *memory, hdsoft_instance **out,
                           hdsoft_text *log);
void hdsoft_instance_destroy(hdsoft_instance *instance); /* frees its globals; NULL is accepted */
/* The address of variable `index` of the program in this instance. */
uint64_t hdsoft_instance_address(const hdsoft_instance *instance, size_t index);

/* What a kernel did wrong, in the terms of a person who debugs it. */
typedef struct hdsoft_fault {
    int code;                        /* 700, 716, 717, 718, 715, 719, 710, 714, 801, 2 ... */
    uint32_t block[3], thread[3];
    uint64_t address;                /* for memory faults */
    uint32_t ptx_line, source_line;  /* 0: unknown (source_line needs -lineinfo) */
    char source_file[256];
    bool deadlock;                   /* no thread could go on */
    char text[768];                  /* one sentence with all of it */
} hdsoft_fault;

/* Where printf text and assertion messages go; called on the executor's thread, in program order of a warp. */
typedef void (*hdsoft_print_function)(void *context, const char *bytes, size_t length);

/* A clock for kernels: when the launch began, in ns, and how long a warp-instruction takes. */
typedef struct hdsoft_virtual_clock {
    uint64_t begin, picoseconds;
} hdsoft_virtual_clock;

typedef struct hdsoft_launch {
    const hdsoft_instance *instance;
    const hdsoft_entry *entry;
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes;
    const void *parameters;          /* parameter_bytes bytes in PTX layout; copied by hdsoft_run_begin */
    hdsoft_memory *memory;
    bool cooperative;                /* all blocks resident and rotated; grid barrier workspace in %envreg1:2 */
    uint32_t multiprocessors;        /* for %nsmid and %smid */
    uint64_t seed;                   /* order of blocks and splits; 0: lowest first, which is deterministic */
    hdsoft_print_function print;     /* NULL: text is dropped */
    void *print_context;
    const hdsoft_virtual_clock *clock; /* until the run's end; NULL: %globaltimer tells the real time */
    const hdsoft_watch *watch;       /* told of every access to global memory; NULL: nobody. Outlives the run */
} hdsoft_launch;

/* Returns 0, or 2 (OUT_OF_MEMORY). The launch's geometry has been checked by the caller. */
int hdsoft_run_begin(const hdsoft_launch *launch, hdsoft_run **out);
/*
 * Run for about `budget` warp-instructions. Returns 1: more to do; 0: done; -1: fault written to *fault (the run can
 * only be ended then). *executed, if not NULL, gets the warp-instructions executed, for the virtual clock; if the
 * return is 1 and *executed is 0 every thread waits (a spin on memory counts as progress), so the caller may block.
 */
int hdsoft_run_step(hdsoft_run *run, uint64_t budget, uint64_t *executed, hdsoft_fault *fault);
/* The ns that blocks have slept in nanosleep, added up over those that have ended. */
uint64_t hdsoft_run_slept(const hdsoft_run *run);
void hdsoft_run_end(hdsoft_run *run); /* NULL is accepted */

#endif
