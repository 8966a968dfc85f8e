/* SPDX-License-Identifier: MIT */
/*
 * What the template cache knows, all bounded and all under its lock: the sequences built, found by key; their instances
 * by last use; how often other sequences were seen; and the credit from which builds are paid.
 *
 * The credit makes bad luck cheap. It is in nanoseconds of the committer, for each kind its own: every launch earns one
 * per cent of what it costs, every launch of a template half of what it saved (a chain against an open one, the others
 * against single launches), and a build takes what it costs. So whatever the pattern, builds cost no more than that per
 * cent beyond what templates have saved, but for what there is at first.
 */
#ifndef HDRT_QUEUE_TEMPLATE_TABLE_H
#define HDRT_QUEUE_TEMPLATE_TABLE_H

#include "queue/template_sequence.h"

/* ---- what things cost on an H200, ns (FACTS: graph templates); only their ratios matter -------------------------- */

#define HDRT__TEMPLATE_DIRECT_NS 3500      /* a launch by itself */
#define HDRT__TEMPLATE_LAUNCH_NS 850       /* of a template, whatever its size */
#define HDRT__TEMPLATE_NODE_NS 600         /* each kernel in a chain */
#define HDRT__TEMPLATE_OPEN_NODE_NS 1300   /* and where it is another one each time */
#define HDRT__TEMPLATE_ORDERED_NODE_NS 300 /* in a wide one, in launch order */
#define HDRT__TEMPLATE_BRANCH_NODE_NS 1300 /* and where each is a branch */
#define HDRT__TEMPLATE_EARN_NS 35          /* of each launch, for builds: 1 % */
#define HDRT__TEMPLATE_CREDIT_NS 1200000   /* at first: two chains of 64 */
#define HDRT__TEMPLATE_WIDE_CREDIT_NS 12000000 /* a wide one of 512 */
/* No more is kept: what one part of a program has saved is not for the next one, of which nothing may come again. */
#define HDRT__TEMPLATE_CREDIT_MOST_NS 2000000
#define HDRT__TEMPLATE_WIDE_CREDIT_MOST_NS 100000000

static inline int64_t hdrt__template_build_ns(uint32_t count, bool branches)
{
    return branches ? 30000 + 20000 * (int64_t)count : 18000 + 9000 * (int64_t)count;
}

/* Device memory of an instance, as an estimate: one of a single node took 112 KiB, of 16 nodes 144, of 64 nodes 256, and 5.2
 * MiB where these were branches. What is destroyed the driver keeps for the next. */
static inline uint64_t hdrt__template_bytes(uint32_t count, bool branches)
{
    return 114688 + (branches ? 86016 : 2304) * (uint64_t)count;
}

/* ---- the tables -------------------------------------------------------------------------------------------------- */

/* What was used within so many launches is not dropped for another, but for a wide one: of more sequences in turn than there is
 * room for some stay, instead of each being dropped just before it comes again. */
#define HDRT__TEMPLATE_RECENT 65536u

#define HDRT__TEMPLATE_BUCKETS 4096u
#define HDRT__TEMPLATE_SEEN_SETS 1024u
#define HDRT__TEMPLATE_SEEN_WAYS 4u

/* A sequence that was seen and is not built. */
typedef struct hdrt__template_seen {
    uint64_t key; /* 0: free */
    int32_t count; /* below 0: a build failed, and it must be seen that much more often before another */
} hdrt__template_seen;

typedef struct hdrt__template_table {
    hdrt__template_sequence *buckets[HDRT__TEMPLATE_BUCKETS];
    hdrt__template_seen seen[HDRT__TEMPLATE_SEEN_SETS][HDRT__TEMPLATE_SEEN_WAYS];
    hdrt__template_instance *newest, *oldest;
    int64_t credit[HDRT__TEMPLATE_KINDS];
    uint64_t limit; /* of counts.bytes */
    uint32_t clock; /* launches that were asked for so far, of all streams */
    hdrt__template_counts counts;
} hdrt__template_table;

/* Of zeroed memory. */
void hdrt__template_table_init(hdrt__template_table *table);

/* Where the kernel's sequence of itself alone is remembered. */
static inline hdrt__template_sequence **hdrt__template_single(hdrt_kernel *kernel, hdrt__template_kind kind)
{
    return kind == HDRT__TEMPLATE_RINGING ? &kernel->single.ringing : &kernel->single.sequence;
}

/* The sequence of these launches, if it is built and not leaving. */
hdrt__template_sequence *hdrt__template_find(const hdrt__template_table *table, uint64_t key,
                                             const hdrt__run_launch *launches, uint32_t count,
                                             hdrt__template_kind kind);
void hdrt__template_enter(hdrt__template_table *table, hdrt__template_sequence *sequence);
void hdrt__template_leave(hdrt__template_table *table, hdrt__template_sequence *sequence);

/* Link an instance with its sequence and as the last used; take it out; make it the last used. */
void hdrt__template_instance_enter(hdrt__template_table *table, hdrt__template_instance *instance);
void hdrt__template_instance_leave(hdrt__template_table *table, hdrt__template_instance *instance);
void hdrt__template_instance_used(hdrt__template_table *table, hdrt__template_instance *instance);

/* Count a sight of an unbuilt sequence. \return the count. */
int32_t hdrt__template_see(hdrt__template_table *table, uint64_t key);
/* Set the count of one: 0 forgets it. */
void hdrt__template_set_seen(hdrt__template_table *table, uint64_t key, int32_t count);

void hdrt__template_earn(hdrt__template_table *table, hdrt__template_kind kind, int64_t ns);
/* After how many uses that save `gain` ns each a chain's build has paid: 2 or more. What was seen so often is likely to
 * be seen as often again. */
int32_t hdrt__template_sights(uint32_t count, int64_t gain);

#endif
