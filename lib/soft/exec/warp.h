/* SPDX-License-Identifier: MIT */
/*
 * A warp as the handlers see it, with its block and its run. Everything here belongs to one run and is touched by one
 * thread at a time.
 *
 * A warp is a set of splits: lanes that stand at the same instruction of the same activation. One split runs at a
 * time; the others wait in the table. The deepest activation goes first, within it the lowest instruction, so that
 * lanes meet again where control flow joins; when a split has used up its fuel, the one that has waited longest goes
 * next, so that lanes that wait for each other make progress.
 *
 *   split:  RUNNABLE -> RUNNABLE     fuel used up, branch, return
 *           RUNNABLE -> COLLECTIVE   waits for the lanes of its member mask      -> RUNNABLE when all have come
 *           RUNNABLE -> BARRIER      waits for the block                         -> RUNNABLE when enough have come
 *           RUNNABLE -> (gone)       its lanes exited, or joined another split
 */
#ifndef HDSOFT_WARP_H
#define HDSOFT_WARP_H

#include "soft/ptx/program.h"

#define HDSOFT_BARRIERS 16

typedef struct hdsoft_block hdsoft_block;

/* One call of a function by some lanes of a warp. */
typedef struct hdsoft_activation hdsoft_activation;
struct hdsoft_activation {
    hdsoft_activation *parent;          /* NULL: the kernel itself */
    const hdsoft_function *function;
    const hdsoft_instruction *call;     /* in the parent; execution goes on behind it */
    unsigned char *frame;
    uint32_t lanes;                     /* that have not returned */
    uint32_t depth;
    uint32_t local_base;                /* where its .local variables begin in each lane's stack */
    hdsoft_activation *next_free;
};

typedef enum hdsoft_split_state {
    HDSOFT_SPLIT_RUNNABLE,
    HDSOFT_SPLIT_COLLECTIVE,
    HDSOFT_SPLIT_BARRIER,
} hdsoft_split_state;

typedef struct hdsoft_split {
    const hdsoft_instruction *next;
    hdsoft_activation *activation;
    uint32_t lanes;
    hdsoft_split_state state;
    uint32_t members;                   /* COLLECTIVE: the member mask */
    uint32_t barrier;                   /* BARRIER: which */
    uint64_t turn;                      /* when it last ran */
} hdsoft_split;

/* Where a memory instruction found its memory last: [base, end) at host. */
typedef struct hdsoft_cache {
    uint64_t base, end;
    unsigned char *host;
} hdsoft_cache;

struct hdsoft_warp {
    /* What handlers need for every instruction. */
    unsigned char *frame;
    const unsigned char *constants;
    uint32_t active;                    /* lanes that this instruction acts on */
    uint32_t mask;                      /* lanes of the running split */
    uint32_t carry;                     /* the carry flag of each lane */
    const hdsoft_instruction *limit;    /* leave the inner loop at or behind it */
    const hdsoft_instruction *code;
    hdsoft_cache *caches;
    unsigned char *shared;
    uint64_t shared_bytes;
    unsigned char *local;               /* cells */
    uint64_t local_bytes;               /* per lane */
    const unsigned char *parameters;
    uint64_t parameter_bytes;

    hdsoft_activation *activation;      /* of the running split */
    hdsoft_block *block;
    struct hdsoft_run *run;
    uint32_t index;                     /* within the block */
    uint32_t live;                      /* lanes that have not exited */
    uint32_t valid;                     /* lanes that exist */
    uint32_t split_count, current;
    hdsoft_split splits[HDSOFT_LANES];
    uint32_t thread_index[3][HDSOFT_LANES];
    hdsoft_activation kernel;
    uint64_t turn;
    uint64_t local_room;                /* bytes per lane that `local` has room for */
    struct hdsoft_mark *marks;          /* registers with values that were never written (follow.c) */
    uint32_t mark_count;
    bool yield;                         /* nanosleep: others first */
    uint64_t slept;                     /* ns in nanosleep, and, on a virtual clock, in looks at it */
};

/* A named barrier: how many have come, in threads and in threads rounded up to warps (see barrier.c). */
typedef struct hdsoft_barrier {
    uint32_t threads, rounded, expected; /* expected: 0, every live thread of the block */
    uint32_t true_count, predicate_count;
    bool active;
} hdsoft_barrier;

struct hdsoft_block {
    struct hdsoft_run *run;
    uint32_t id[3];
    uint64_t linear;
    unsigned char *shared;
    uint32_t warp_count, next_warp;
    hdsoft_warp *warps;
    uint32_t live_threads;
    hdsoft_barrier barriers[HDSOFT_BARRIERS];
    unsigned char *shared_written;     /* a bit for each byte of shared memory, if that is followed (follow.c) */
    uint32_t shared_left;              /* bytes never written */
    bool resident;
    uint64_t executed; /* warp-instructions, to tell a block that spins */
};

struct hdsoft_run {
    const hdsoft_program *program;
    const hdsoft_instruction *code;    /* the program's, or a copy that tells the watch */
    hdsoft_instruction *watched_code;
    const hdsoft_watch *watch;         /* NULL: nobody watches */
    const hdsoft_instance *instance;
    const hdsoft_entry *entry;
    const hdsoft_function *function;
    hdsoft_memory *memory;
    uint32_t grid[3], block[3];
    uint32_t threads;                  /* of a block */
    uint64_t blocks;
    uint32_t shared_bytes, dynamic_offset, dynamic_bytes;
    uint32_t frame_bytes;
    unsigned char *parameters;
    bool cooperative;
    uint32_t multiprocessors;
    uint64_t seed, random;
    hdsoft_print_function print;
    void *print_context;

    hdsoft_cache *caches;
    uint64_t epoch;
    hdsoft_block **contexts;           /* blocks, resident or free for the next */
    uint32_t context_count, context_limit, turn, resident;
    uint64_t next_block, order_start, order_stride;
    uint64_t executed;
    uint64_t workspace;                /* of grid barriers; 0: none yet */
    uint32_t stuck_rounds;             /* in which all blocks did nothing but wait there (deadlock.c) */
    bool wants_grid_barrier;           /* asked for, in a launch that has none */
    hdsoft_activation *free_activations;
    uint64_t frame_bytes_used;         /* by activations */
    uint64_t fence;                    /* what a fence writes */
    uint64_t ticks;                    /* of the clock, besides those of instructions */
    const hdsoft_virtual_clock *clock; /* NULL: the real one */
    uint64_t slept;                    /* ns, over all blocks that have ended: the longest of each one's warps */
    const unsigned char *constants;    /* of the instance */

    bool faulted;
    hdsoft_fault fault;
};

static inline const void *hdsoft_source(const hdsoft_warp *warp, int32_t operand)
{
    return operand < 0 ? warp->constants + (operand & INT32_MAX) : warp->frame + operand;
}

static inline uint32_t hdsoft_index(const hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    return (uint32_t)(instruction - warp->code);
}

/* --- warp.c --- */
/* Run for up to `fuel` instructions; answers how many it ran. 0: nothing is runnable. */
uint64_t hdsoft_warp_run(hdsoft_warp *warp, uint64_t fuel);
#define HDSOFT_NO_SPLIT UINT32_MAX
/* Take `lanes` out of the running split and have them stand at `next`. The split itself goes on. */
void hdsoft_warp_part(hdsoft_warp *warp, const hdsoft_instruction *next, uint32_t lanes);
/* Leave the inner loop after this instruction. */
static inline void hdsoft_warp_leave(hdsoft_warp *warp)
{
    warp->limit = NULL;
}
/* The lanes of the running split have exited. */
void hdsoft_warp_exit(hdsoft_warp *warp);
/* All valid lanes at the kernel's first instruction. */
void hdsoft_warp_begin(hdsoft_warp *warp);

/* --- fault.c: the run is over; the first fault stays --- */
const hdsoft_instruction *hdsoft_fault_raise(hdsoft_warp *warp, const hdsoft_instruction *instruction, int code,
                                             unsigned lane, uint64_t address, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* --- memory_access.c: the slow way for one lane; NULL after a fault --- */
enum { HDSOFT_READ = 0, HDSOFT_WRITE = 1 };
/* The host bytes of [address, address + size), or NULL. *host_memory: others may touch it at the same time. */
unsigned char *hdsoft_locate(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned lane, uint64_t address,
                             uint32_t size, uint32_t align, int write, bool *host_memory);
/* Load or store for the active lanes, lane by lane; the elements of lane l are at data[l * 4 + element]. */
bool hdsoft_load_lanes(hdsoft_warp *warp, const hdsoft_instruction *instruction, const uint64_t *addresses,
                       uint32_t size, uint32_t elements, uint64_t *data);
bool hdsoft_store_lanes(hdsoft_warp *warp, const hdsoft_instruction *instruction, const uint64_t *addresses,
                        uint32_t size, uint32_t elements, const uint64_t *data);
/* Copy bytes of generic memory for a builtin (strings, packed arguments); false after a fault. */
bool hdsoft_copy_in(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned lane, uint64_t address,
                    void *bytes, uint32_t size);
bool hdsoft_copy_out(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned lane, uint64_t address,
                     const void *bytes, uint32_t size);
/* Raise the fault of a lane whose shared, local or parameter access lies outside. */
const hdsoft_instruction *hdsoft_fault_space(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned lane,
                                             uint64_t address, uint32_t size, uint64_t limit, const char *space,
                                             int write);

/* --- watch.c --- */
/* Have the run work on a copy of the code that tells its watch; false without memory. */
bool hdsoft_watch_code(hdsoft_run *run);
/* Tell the watch of an instruction that is about to run. */
void hdsoft_watch_tell(hdsoft_warp *warp, const hdsoft_instruction *instruction);
/* The lanes whose addresses lie in no thread's own space. */
uint32_t hdsoft_global_lanes(const uint64_t *addresses, uint32_t active);

/* --- barrier.c --- */
void hdsoft_barrier_check(hdsoft_block *block); /* after threads have exited */

/* --- collective.c --- */
void hdsoft_collective_check(hdsoft_warp *warp); /* after lanes have exited */

/* --- call.c --- */
/* Lanes leave an activation, which goes when the last has left. */
void hdsoft_activation_drop(hdsoft_warp *warp, hdsoft_activation *activation, uint32_t lanes);
/* Make room for `bytes` of local memory per lane; false without memory. */
bool hdsoft_local_reserve(hdsoft_warp *warp, uint64_t bytes);
void hdsoft_activations_destroy(hdsoft_run *run);

/* --- block.c --- */
bool hdsoft_block_create(hdsoft_run *run, hdsoft_block *block);
void hdsoft_block_destroy(hdsoft_block *block);
void hdsoft_block_begin(hdsoft_block *block, uint64_t linear);
/* Run for about `budget` instructions; answers how many it ran. It has ended when live_threads is 0. */
uint64_t hdsoft_block_run(hdsoft_block *block, uint64_t budget);

/* --- special.c: one special register for all lanes; false after a fault --- */
bool hdsoft_special_read(hdsoft_warp *warp, const hdsoft_instruction *instruction, uint32_t number,
                         uint64_t values[HDSOFT_LANES]);

#endif
