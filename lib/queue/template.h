/* SPDX-License-Identifier: MIT */
/*
 * Templates: instantiated graphs, refilled and launched, by which runs of kernels go out at a fraction of what single
 * launches cost. A chain template is keyed by its sequence of functions; an open one takes any so many kernels, one after
 * the other; a wide one holds one kernel of each of many queues side by side. The stream's committer calls it with a run;
 * what no template serves is launched one by one.
 * A ringing one holds a single kernel and the write by which whoever waits for it is told (bell.h).
 *
 * On an H200 a kernel of a chain takes 650 to 850 ns where its node is only refilled, 1250 to 1550 where the node's
 * function changes, and 2800 to 4400 by itself. So what comes again and again has a chain of its own, and all else goes by
 * open ones. An exec runs one launch at a time, so streams that are at work at the same time need an instance each.
 *
 * In a wide one each kernel follows the one before it in launch order, and so begins when that has begun; where the driver
 * or the device does not know that, each is a branch of the graph.
 *
 * A sequence: UNSEEN --first run--> SEEN --second run, or as often as its build needs to pay--> BUILT
 *                                        --least recently used, or its code leaves--> gone
 *
 * Builds are paid for from a credit (template_table.h), so that no pattern of launches, however bad, becomes slower by
 * builds that never pay.
 *
 * All functions: inside the device's scope (but destroy on a lost device, which calls no driver). The cache has a lock
 * of its own for its tables; it is a leaf, and no driver call is made under it. Launches and builds run outside it:
 * several committers, each with a stream of its own, call at the same time.
 *
 * A sequence holds the modules of its kernels, an open one those of what its nodes hold, and so their device. So whoever
 * owns the cache destroys it when the device is closed, not when its last reference goes. And when code is destroyed that
 * only templates hold any more, device->unwanted tells the scheduler, which calls hdrt__templates_forget.
 */
#ifndef HDRT_QUEUE_TEMPLATE_H
#define HDRT_QUEUE_TEMPLATE_H

#include <hdrt.h>

#include "driver/call.h"
#include "jit/kernel.h"

#define HDRT__TEMPLATE_CHAIN_LIMIT 64u /* kernels in a chain */
#define HDRT__TEMPLATE_WIDE_LEAST 8u   /* kernels side by side, below which there is no template */
#define HDRT__TEMPLATE_WIDE_LIMIT 256u
#define HDRT__TEMPLATE_MEMORY ((uint64_t)32 << 20) /* bytes of device memory, as estimated, that the cache keeps */

typedef struct hdrt__templates hdrt__templates;

/* One launch of a run. */
typedef struct hdrt__run_launch {
    hdrt_kernel *kernel;
    const hdrt_grid *grid; /* no zeros */
    void **params;         /* a pointer to each parameter's value */
} hdrt__run_launch;

/* Where a run goes: a stream, its index in the device, and the sequence number, from 1, that the launch will have
 * there. */
typedef struct hdrt__run_place {
    hdcu_stream stream;
    uint32_t index;
    uint64_t sequence;
    hdcu_pointer word; /* where the GPU is to write the number too, behind a kernel that is launched alone; 0: nowhere */
    bool rings;        /* set: it will */
} hdrt__run_place;

/*
 * Whether what has this number in the stream of this index is known complete. Makes no driver call, takes no lock. A
 * stream's numbers only grow; if an index is given to another stream, its numbers go on from the earlier one's.
 */
typedef bool (*hdrt__template_complete)(void *context, uint32_t index, uint64_t sequence);

/* NULL with a message if there is no memory. A driver without graphs and HDRT_TEMPLATES=off give a cache that serves
 * nothing. */
hdrt__templates *hdrt__templates_create(hdrt_device *device, hdrt__template_complete complete, void *context);
/* Nothing of it is in flight any more, or the device is lost. Not under a lock: it releases modules. NULL accepted. */
void hdrt__templates_destroy(hdrt__templates *templates);
/* Keep no more than this much device memory, as estimated, instead of HDRT__TEMPLATE_MEMORY. Before the first run. */
void hdrt__templates_limit(hdrt__templates *templates, uint64_t bytes);

/*
 * Launch the first kernels of a run, one after the other, by one template. The first 64 are looked at; give that many
 * where there are. `more`: the run goes on beyond what is given, so that its end says nothing of where to cut.
 * One call at a time for each stream. \return how many kernels went out, in one driver command; 0: none, and the caller
 * launches *out_direct of them (1 to count) one by one before it calls again for the rest (sequences that are only now
 * seen, templates that are in flight elsewhere, no memory). A failed driver call of the launch itself is in
 * *out_call, and nothing went out.
 */
uint32_t hdrt__templates_chain(hdrt__templates *templates, hdrt__run_place *place,
                               const hdrt__run_launch *launches, uint32_t count, bool more, uint32_t *out_direct,
                               hdrt__call *out_call);

/*
 * The same for launches of one function that may run at once, as many of the first as one template takes: there are such
 * for powers of two, and fewer can go by a larger one where the driver can switch nodes off; fewer than
 * HDRT__TEMPLATE_WIDE_LEAST only by one that is there already. \return how many went out, 0: none, and the caller does
 * otherwise with them.
 */
uint32_t hdrt__templates_wide(hdrt__templates *templates, const hdrt__run_place *place,
                              const hdrt__run_launch *launches, uint32_t count, hdrt__call *out_call);
/* Whether the kernels of such a template follow each other in launch order: then it is in one of the hardware's queues, and
 * another one may wait behind it in its stream. Else each is a branch, and they are spread over all hardware queues. */
bool hdrt__templates_wide_in_order(hdrt__templates *templates);
/* How many of so many fit into no such template. */
uint32_t hdrt__templates_wide_rest(hdrt__templates *templates, uint32_t count);
/* Whether that need not build anything, nor be a first launch: the driver may take long for those, or even wait. */
bool hdrt__templates_wide_is_ready(hdrt__templates *templates, const hdrt__run_launch *launches, uint32_t count);

/*
 * Release the modules of templates that were dropped meanwhile, and of kernels that were nodes'. Cheap when there are none.
 * May unload code, so call it with no lock held: the first dispatcher does, when it has nothing else to do.
 */
void hdrt__templates_collect(hdrt__templates *templates);

/*
 * Drop what holds code that nobody but templates does, as far as it is not in flight. Not under a lock. \return whether some
 * is left: ask again later.
 */
bool hdrt__templates_forget(hdrt__templates *templates);

/* Instances, sequences built, bytes as estimated; launches of templates and kernels in them; for tests, statistics. */
typedef struct hdrt__template_counts {
    uint64_t instances, sequences, bytes, launches, kernels, built, evicted;
} hdrt__template_counts;
void hdrt__templates_count(hdrt__templates *templates, hdrt__template_counts *out_counts);

#endif
