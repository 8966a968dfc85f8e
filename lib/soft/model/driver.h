/* SPDX-License-Identifier: MIT */
/*
 * The model of a CUDA driver: devices, contexts, streams, events and the commands between them. The entry points
 * (lib/soft/api) check arguments and call it; it calls the engine (lib/soft/exec/engine.h) for kernels.
 *
 * One mutex, hdsoft__driver.lock, guards everything here that says nothing else; functions that say "locked" expect
 * it held. Each device has an executor thread that runs the commands of its streams, and a caller thread for host
 * functions. An entry point never runs a command itself: it enqueues, and may wait on `progress`.
 *
 *   command: enqueued -> its stream's first -> dependencies met -> stepped until done -> completed
 *   device:  healthy -> faulted (for ever: every later call that needs it returns the fault's code)
 */
#ifndef HDSOFT_MODEL_DRIVER_H
#define HDSOFT_MODEL_DRIVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_abi.h"
#include "soft/exec/engine.h"
#include "soft/model/memory.h"
#include "soft/model/policy.h"

#define HDSOFT__DEVICES 8
#define HDSOFT__LIMITS 10
/* An H200 lets so many launches of one stream be outstanding; the next one blocks. */
#define HDSOFT__LAUNCH_DEPTH 1021

typedef struct CUctx_st hdsoft__context;
typedef struct CUstream_st hdsoft__stream;
typedef struct CUevent_st hdsoft__event;
typedef struct CUmod_st hdsoft__module;
typedef struct CUfunc_st hdsoft__function;
typedef struct CUgraph_st hdsoft__graph;
typedef struct CUgraphNode_st hdsoft__node;
typedef struct CUgraphExec_st hdsoft__exec;
typedef struct CUmemPoolHandle_st hdsoft__pool;
typedef struct hdsoft__device hdsoft__device;
typedef struct hdsoft__capture hdsoft__capture;
typedef struct hdsoft__operation hdsoft__operation; /* check/check.h */
typedef struct hdsoft__history hdsoft__history;     /* check/history.h; NULL while races are not looked for */

typedef enum hdsoft__kind {
    HDSOFT__CONTEXT = 1, HDSOFT__STREAM, HDSOFT__EVENT, HDSOFT__MODULE, HDSOFT__FUNCTION, HDSOFT__LIBRARY,
    HDSOFT__KERNEL, HDSOFT__GRAPH, HDSOFT__NODE, HDSOFT__EXEC, HDSOFT__POOL,
} hdsoft__kind;

/* ---- commands ---- */

typedef enum hdsoft__task_kind {
    HDSOFT__TASK_NONE, /* only its dependencies count */
    HDSOFT__TASK_KERNEL, HDSOFT__TASK_COPY, HDSOFT__TASK_FILL, HDSOFT__TASK_HOST, HDSOFT__TASK_WAIT_VALUE,
    HDSOFT__TASK_WRITE_VALUE, HDSOFT__TASK_ALLOCATE, HDSOFT__TASK_FREE,
    HDSOFT__TASK_SUSPEND,      /* a graph's free: the addresses stay the graph's, for its next launch */
    HDSOFT__TASK_RECORD_EVENT, /* a graph's record and wait */
    HDSOFT__TASK_WAIT_EVENT,
} hdsoft__task_kind;

typedef struct hdsoft__launch {
    hdsoft__function *function;
    uint32_t grid[3], block[3], shared_bytes;
    uint32_t blocks_each; /* how many blocks a multiprocessor holds at once */
    bool cooperative;
    void *parameters;
} hdsoft__launch;

/* One end of a copy: row r of slice z begins at address + z * slice + r * pitch. */
typedef struct hdsoft__copy_end {
    uint64_t address;
    uint64_t pitch, slice;
    bool pageable; /* host memory that no device knows: its address is followed as it is */
} hdsoft__copy_end;

typedef struct hdsoft__copy {
    hdsoft__copy_end source, destination;
    uint64_t width, height, depth;
    void *staged; /* the bytes of a pageable source, packed; freed with the task */
} hdsoft__copy;

typedef struct hdsoft__fill {
    uint64_t address, pitch, width, height; /* width in elements */
    uint32_t value, element_size;
} hdsoft__fill;

/* What a command does. Immutable once made, and counted: graphs share them with the launches in flight. */
typedef struct hdsoft__task {
    hdsoft__task_kind kind;
    unsigned references;
    union {
        hdsoft__launch launch;
        hdsoft__copy copy;
        hdsoft__fill fill;
        struct {
            hdcu_host_function function;
            hdcu_stream_callback callback; /* of cuStreamAddCallback, instead of function */
            hdcu_stream stream;
            void *argument;
        } host;
        struct {
            uint64_t address, value;
            unsigned bytes, condition;
        } value;
        struct {
            hdsoft_memory *memory;
            hdsoft__pool *pool;
            hdsoft_range of;
            hdsoft__leaving *leaving; /* of an enqueued free */
        } range;
        hdsoft__event *event;
    };
} hdsoft__task;

/* "All of `stream` up to `position`." Holds a reference of the stream. */
typedef struct hdsoft__dependency {
    hdsoft__stream *stream;
    uint64_t position;
    hdsoft__history *history; /* of a mark, which holds it */
} hdsoft__dependency;

/* What one cuEventRecord stands for; events and the record command share it. */
typedef struct hdsoft__mark {
    unsigned references;
    hdsoft__dependency at;
    uint64_t time; /* ns; 0: not reached */
    unsigned queries; /* unsuccessful ones, which force it in the end */
} hdsoft__mark;

typedef struct hdsoft__command hdsoft__command;
typedef struct hdsoft__precedence hdsoft__precedence; /* graph.h: which of a graph's tasks waits for which */

/* One task of one command at work. */
typedef struct hdsoft__work {
    hdsoft__task *task;   /* NULL: nothing but a place in the order */
    hdsoft__command *command;
    hdsoft_run *run;
    uint64_t copied;      /* bytes */
    uint64_t executed, slept; /* warp-instructions; ns in all blocks */
    uint64_t seed;        /* of a kernel's blocks and splits; 0: lowest first */
    uint32_t waits;       /* works of the command that must be done first */
    hdsoft__operation *operation; /* once it has begun; NULL while no check follows memory */
    bool begun;
    bool tried;           /* a failure that was asked for has had its chance */
    bool calling;         /* the caller thread has it */
    bool idle;            /* its last step got nowhere */
    struct {              /* simulate.c */
        struct hdsoft__work *next, *next_live;
        uint64_t order, blocks, started, done, unit, since, length;
        unsigned phase;
        hdsoft_virtual_clock clock;
    } simulated;
} hdsoft__work;

/* What was enqueued at once: a task, an event's record or wait, or a graph's launch with a work for each node. */
struct hdsoft__command {
    hdsoft__command *next;
    hdsoft__stream *stream;
    uint64_t position, sequence, deadline;
    hdsoft__dependency *dependencies;
    size_t dependency_count;
    hdsoft__work *works, only[1];
    hdsoft__precedence *order;            /* of a graph; NULL: one work */
    uint32_t work_count, works_left;
    uint32_t *ready, only_ready[1];  /* works that wait for none of the others, oldest first */
    uint32_t ready_count, turn;
    hdsoft__mark *mark;              /* set when done */
    bool is_launch;                  /* counts towards the depth */
    bool is_wait;                    /* cuStreamWaitEvent's */
    bool begun;                      /* something of it was started */
    const hdsoft__site *enqueued;    /* by which call; NULL: unknown */
    hdsoft__history *history;
};

/* ---- objects ---- */

struct CUstream_st {
    hdsoft__context *context;
    hdsoft__stream *next, *previous;                 /* of the context */
    hdsoft__stream *busy_next, *busy_previous;       /* of the device: those with commands */
    hdsoft__command *first, *last;
    hdsoft__leaving_list leaving;                    /* frees among them */
    uint64_t issued, completed, forced;              /* positions */
    uint64_t id;
    unsigned flags, references, launches, queries;
    int priority;
    bool legacy, per_thread, destroyed;
    const hdsoft__site *made;
    hdsoft__history *history;                        /* of the last command */
    uint32_t *chains, chain_count;                   /* check/history.c */
    hdsoft__capture *capture;
    hdsoft__node **capture_nodes;                    /* what the next captured node depends on */
    size_t capture_count;
};

struct CUevent_st {
    hdsoft__context *context;
    hdsoft__event *next, *previous;
    unsigned flags, references;                      /* its handle's, and those of tasks */
    hdsoft__mark *mark;                              /* NULL: never recorded */
    const hdsoft__site *made;
    uint64_t capture_id;                             /* not 0: last recorded in that capture */
    hdsoft__node **capture_nodes;
    size_t capture_count;
};

struct CUctx_st {
    hdsoft__context *next;                           /* of the driver; contexts are never freed */
    hdsoft__device *device;
    bool primary, destroyed;
    unsigned retained, flags;
    uint64_t limits[HDSOFT__LIMITS];
    hdsoft__stream *streams, *legacy;
    hdsoft__event *events;
    hdsoft__module *modules;
    unsigned peers;                                  /* devices whose memory was opened to this context's */
    struct hdsoft__clock *departed;                  /* what streams that are gone have done: check/history.c */
};

struct CUmemPoolHandle_st {
    hdsoft__device *device;
    hdsoft__pool *next;
    bool is_default, destroyed;
    uint64_t used, used_high, reserved, reserved_high, threshold;
    uint64_t reuse[3];
    uint64_t live;                                   /* allocations, the pending frees among them */
    unsigned peers;                                  /* devices that may reach its memory */
};

struct hdsoft__device {
    unsigned ordinal;
    hdsoft_memory *memory;
    hdsoft__context *primary;
    unsigned primary_flags;
    hdsoft__pool *default_pool, *current_pool;
    hdsoft__stream *busy;                            /* ring of streams with commands */
    uint64_t outstanding;                            /* commands enqueued and not completed */
    _Atomic unsigned fault;                          /* the sticky code; 0: healthy */
    bool started, caller_started;
    bool running;                                    /* a thread sleeps on `work` or is awake for it, */
    bool resting;                                    /* and sleeps without end */
    bool look_again;                                 /* something was forced since the executor looked */
    hdsoft__stream *stepping;                        /* whose command the executor works at, without the lock */
    pthread_cond_t work, calls;
    hdsoft__work *call;                              /* the host function that is being called */
    unsigned prioritised;                            /* streams with commands and a priority above the lowest */
    unsigned picks;
    unsigned loading;                                /* module loads that hold up launches */
};

typedef struct hdsoft__thread {
    struct hdsoft__thread *next, *previous;          /* all of them: in a forked child nothing else leads to them */
    hdsoft__context **stack;
    size_t depth, capacity;
    unsigned capture_mode;
    bool in_callback;
    bool observing;                                  /* its queries and waits force nothing */
    uint64_t id;
    struct {
        hdsoft__context *context;
        hdsoft__stream *stream;
    } *streams;                                      /* its per-thread default streams */
    size_t stream_count;
} hdsoft__thread;

struct hdsoft__capture {
    hdsoft__capture *next;
    uint64_t id, thread;
    unsigned mode;
    bool invalidated;
    hdsoft__stream *origin;
    hdsoft__graph *graph;
};

typedef struct hdsoft__slot {
    const void *handle;
    hdsoft__kind kind;
} hdsoft__slot;

typedef struct hdsoft__driver {
    pthread_mutex_t lock;
    pthread_cond_t progress;
    unsigned waiters, patient;                       /* on `progress`; of them, those who forced nothing */
    _Atomic bool ready, forked;
    pthread_key_t thread_key;
    hdsoft__options options;
    bool options_set;                                /* by hdsoft_set_policy, which goes before the environment */
    uint64_t clock;                                  /* virtual time, ns */
    hdsoft__policy policy;                           /* the options' */
    hdsoft__command *spare;                          /* for the next ones */
    unsigned spare_count;
    unsigned demand;                                 /* streams that were forced further than they have got */
    uint64_t gpu_waits;                              /* waits for events that streams went through */
    int level;                                       /* of x86 that kernels run on; -1: the best */
    hdsoft_memory *hosts;
    unsigned device_count;
    hdsoft__device devices[HDSOFT__DEVICES];
    hdsoft__context *contexts;
    hdsoft__pool *pools;
    hdsoft__capture *captures;
    uint64_t next_sequence, next_id;
    hdsoft__slot *slots;                             /* live handles, open addressing */
    size_t slot_count, slot_capacity, slot_dead;
    char fault_text[1024];
    _Atomic bool fault_told;                         /* the text is there, for good */
} hdsoft__driver;

extern hdsoft__driver hdsoft__the; /* the process's only one, as libcuda is */
/* Whether the call that this thread is in means its own stream when it says none. */
extern __thread bool hdsoft__own_default_stream __attribute__((tls_model("initial-exec")));

/* ---- driver.c ---- */
/* cuInit: 0, 3 in a forked child, 100 without devices, 2. */
int hdsoft__driver_start(void);
/* 0, or 1: not a policy, or device work has begun under another. */
int hdsoft__driver_set_policy(const char *policy);
static inline void hdsoft__lock(void) { pthread_mutex_lock(&hdsoft__the.lock); }
static inline void hdsoft__unlock(void) { pthread_mutex_unlock(&hdsoft__the.lock); }
/* The calling thread's state; NULL: no memory for it. */
hdsoft__thread *hdsoft__thread_state(void);
/* The context that is current: 0, 201 (none), 709 (destroyed; still written to *out), 2. */
int hdsoft__current(hdsoft__context **out);
bool hdsoft__handle_add(const void *handle, hdsoft__kind kind);                  /* locked */
void hdsoft__handle_remove(const void *handle);                                  /* locked */
bool hdsoft__handle_is(const void *handle, hdsoft__kind kind);                   /* locked */
uint64_t hdsoft__now(void);
/* What an event that is reached now remembers: the virtual clock's time, or the real one's. locked */
uint64_t hdsoft__timestamp(void);
int hdsoft__start_thread(void *(*main)(void *), void *argument); /* detached, all signals blocked; 0 or 304 */
/* The sticky fault: first one wins. locked */
void hdsoft__fault(hdsoft__device *device, unsigned code, const char *text);
bool hdsoft__is_sticky(unsigned code);
void hdsoft__wait_progress(void);                                                /* locked */
void hdsoft__wake(void);                                                         /* locked */

/* ---- context.c ---- */
int hdsoft__context_create(hdsoft__device *device, unsigned flags, bool primary, hdsoft__context **out); /* locked */
/* Wait for all its work, free all it owns. Takes the lock away while it waits. locked */
void hdsoft__context_destroy(hdsoft__context *context);

/* ---- stream.c ---- */
hdsoft__stream *hdsoft__stream_create(hdsoft__context *context, unsigned flags, int priority);   /* locked; NULL: 2 */
void hdsoft__stream_destroy(hdsoft__stream *stream);                                             /* locked */
void hdsoft__stream_release(hdsoft__stream *stream);                                             /* locked */
/* A destroyed stream's last command is done: it leaves its context. locked */
void hdsoft__stream_retire(hdsoft__stream *stream);
/* Handle to stream: 0, 1 and 2 are the current context's. 0, 400, 201. locked */
int hdsoft__stream_of(hdcu_stream handle, hdsoft__stream **out);
/* The same for work to be enqueued or captured: also 901, and 906 with what it does to captures. locked */
int hdsoft__stream_for_work(hdcu_stream handle, hdsoft__stream **out);
/* Append a command that owns `task` (NULL: none) and waits for `dependencies` besides stream order. On failure (2)
 * the task is released. *position, if not NULL, is what to wait for. locked */
int hdsoft__enqueue(hdsoft__stream *stream, hdsoft__task *task, const hdsoft__dependency *dependencies, size_t count,
                    uint64_t *position);
/* cuStreamWaitEvent's command. locked */
int hdsoft__enqueue_event_wait(hdsoft__stream *stream, const hdsoft__dependency *dependency);
/* As above for a graph's tasks, one for each place of the order (NULL: nothing to do there), whose references it takes
 * over, not the array; it holds the order. locked */
int hdsoft__enqueue_graph(hdsoft__stream *stream, hdsoft__task **tasks, hdsoft__precedence *order, uint64_t *position);
/* Enqueue, or add to the graph if the stream is captured. locked */
int hdsoft__submit(hdsoft__stream *stream, hdsoft__task *task, uint64_t *position);
/* Block until a stream has room for one more launch and no module load is in the way. 0 or the sticky code. locked */
int hdsoft__wait_for_room(hdsoft__stream *stream);
bool hdsoft__reached(const hdsoft__stream *stream, uint64_t position);                           /* locked */
/* Somebody needs the stream to get to a position: what this means is the policy's (policy.h). locked */
void hdsoft__force(hdsoft__stream *stream, uint64_t position);                                   /* locked */
/* The same by a host thread, unless it only observes. locked */
void hdsoft__demand(hdsoft__stream *stream, uint64_t position);
/* A host thread asked whether a stream has got to a position, and it had not: asking often enough gets it there.
 * `queries` counts. May take the lock away for a while. Returns whether it has now. locked */
bool hdsoft__query(hdsoft__stream *stream, uint64_t position, unsigned *queries);
/* Wait until a stream has got to a position. 0 or the device's sticky code. locked */
int hdsoft__wait(hdsoft__stream *stream, uint64_t position);
/* Wait for everything that was enqueued so far on a device (context NULL) or in a context. locked */
int hdsoft__wait_all(hdsoft__device *device, const hdsoft__context *context);
/* If anything was enqueued on the device after `birth`, wait for all of it, as an H200 does before it frees. locked */
int hdsoft__wait_since(hdsoft__device *device, uint64_t birth);
/* A record: a new mark behind all that is in the stream. NULL: out of memory. locked */
hdsoft__mark *hdsoft__mark_enqueue(hdsoft__stream *stream);
/* A mark for a stream's commands so far, reached now: a graph's record. NULL: out of memory. locked */
hdsoft__mark *hdsoft__mark_reached(hdsoft__stream *stream);
void hdsoft__event_release(hdsoft__event *event);                                                /* locked */
void hdsoft__mark_release(hdsoft__mark *mark); /* locked; NULL is fine */

/* ---- task.c ---- */
hdsoft__task *hdsoft__task_new(hdsoft__task_kind kind);
hdsoft__task *hdsoft__event_task(hdsoft__task_kind kind, hdsoft__event *event);                  /* locked; NULL: 2 */
hdsoft__task *hdsoft__task_hold(hdsoft__task *task);                                             /* locked */
void hdsoft__task_release(hdsoft__task *task); /* locked; NULL is fine */
/* A free's range is gone: what nobody took over is given back. locked */
void hdsoft__task_freed(hdsoft__task *task);
/* One step of a work's task, without the lock, of about so many warp-instructions or bytes (0: as many as keep others
 * waiting for no longer than is good): 1 more to do, 2 the same but nothing moved, 0 done, else -code with text. */
int hdsoft__task_step(hdsoft__device *device, hdsoft__work *work, uint64_t budget, char *text, size_t capacity);
/* Whether a wait-value task's condition holds now; -700 if its memory is gone. */
int hdsoft__value_holds(hdsoft__device *device, const hdsoft__task *task);

/* ---- printing.c ---- */
void hdsoft__print(void *device, const char *bytes, size_t length); /* an hdsoft_print_function */
void hdsoft__print_limit(size_t bytes);
void hdsoft__print_flush(void);     /* what kernels printed so far, to whoever wants it; not locked */
void hdsoft__print_to(hdsoft_print_function function, void *context);

#endif
