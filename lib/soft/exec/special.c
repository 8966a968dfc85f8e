/* SPDX-License-Identifier: MIT */
/* Special registers: %tid.x and the like. */
#include <string.h>
#include <time.h>

#include "soft/exec/forms.h"
#include "soft/exec/warp.h"

/* X(name, bits, value) with the value of one lane. The first twelve are known to control.c by their numbers. */
#define SPECIALS(X) \
    X("%tid.x", 32, warp->thread_index[0][lane]) \
    X("%tid.y", 32, warp->thread_index[1][lane]) \
    X("%tid.z", 32, warp->thread_index[2][lane]) \
    X("%ntid.x", 32, run->block[0]) \
    X("%ntid.y", 32, run->block[1]) \
    X("%ntid.z", 32, run->block[2]) \
    X("%ctaid.x", 32, warp->block->id[0]) \
    X("%ctaid.y", 32, warp->block->id[1]) \
    X("%ctaid.z", 32, warp->block->id[2]) \
    X("%nctaid.x", 32, run->grid[0]) \
    X("%nctaid.y", 32, run->grid[1]) \
    X("%nctaid.z", 32, run->grid[2]) \
    X("%laneid", 32, lane) \
    X("%warpid", 32, warp->index) \
    X("%nwarpid", 32, 64) \
    X("%smid", 32, warp->block->linear % run->multiprocessors) \
    X("%nsmid", 32, run->multiprocessors) \
    X("%gridid", 64, 1) \
    X("%lanemask_eq", 32, UINT32_C(1) << lane) \
    X("%lanemask_le", 32, UINT32_MAX >> (31 - lane)) \
    X("%lanemask_lt", 32, (UINT32_C(1) << lane) - 1) \
    X("%lanemask_ge", 32, UINT32_MAX << lane) \
    X("%lanemask_gt", 32, UINT32_MAX << lane << 1) \
    X("%clock", 32, clock) \
    X("%clock_hi", 32, clock >> 32) \
    X("%clock64", 64, clock) \
    X("%globaltimer", 64, timer) \
    X("%globaltimer_lo", 32, timer) \
    X("%globaltimer_hi", 32, timer >> 32) \
    X("%envreg1", 32, run->workspace >> 32) \
    X("%envreg2", 32, run->workspace) \
    X("%envreg0", 32, 0) \
    X("%total_smem_size", 32, run->shared_bytes) \
    X("%dynamic_smem_size", 32, run->dynamic_bytes) \
    X("%aggr_smem_size", 32, run->shared_bytes) \
    X("%is_explicit_cluster", 1, 0) \
    X("%clusterid.x", 32, warp->block->id[0]) \
    X("%clusterid.y", 32, warp->block->id[1]) \
    X("%clusterid.z", 32, warp->block->id[2]) \
    X("%nclusterid.x", 32, run->grid[0]) \
    X("%nclusterid.y", 32, run->grid[1]) \
    X("%nclusterid.z", 32, run->grid[2]) \
    X("%cluster_ctaid.x", 32, 0) \
    X("%cluster_ctaid.y", 32, 0) \
    X("%cluster_ctaid.z", 32, 0) \
    X("%cluster_nctaid.x", 32, 1) \
    X("%cluster_nctaid.y", 32, 1) \
    X("%cluster_nctaid.z", 32, 1) \
    X("%cluster_ctarank", 32, 0) \
    X("%cluster_nctarank", 32, 1)

#define NAME(name, bits, value) {name, bits},
static const hdsoft_special specials[] = {SPECIALS(NAME)};
#define SPECIAL_COUNT ((int)(sizeof specials / sizeof specials[0]))

int hdsoft_special_find(const char *name, size_t length)
{
    for (int i = 0; i < SPECIAL_COUNT; i++)
        if (strncmp(specials[i].name, name, length) == 0 && specials[i].name[length] == '\0')
            return i;
    return -1;
}

const hdsoft_special *hdsoft_special_get(int number)
{
    return &specials[number];
}

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What a look at a clock takes; without a virtual one, in ticks. */
#define LOOK_TICKS 64
#define LOOK_NS 32
#define VIRTUAL_MHZ 1980

static bool is_timer(uint32_t number)
{
    return strncmp(specials[number].name, "%globaltimer", 12) == 0;
}

static bool is_clock(uint32_t number)
{
    return is_timer(number) || strncmp(specials[number].name, "%clock", 6) == 0;
}

/* The grid barrier of a cooperative launch needs a few zeroed words. */
static bool need_workspace(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    hdsoft_run *run = warp->run;
    hdsoft_range range;
    if (run->workspace)
        return true;
    if (hdsoft_memory_allocate(run->memory, 1024, 256, HDSOFT_RANGE_GLOBAL, &range)) {
        hdsoft_fault_raise(warp, instruction, 2, 0, 0, "no memory for the workspace of the grid's barrier");
        return false;
    }
    memset(range.host, 0, 1024);
    run->workspace = range.base;
    return true;
}

bool hdsoft_special_read(hdsoft_warp *warp, const hdsoft_instruction *instruction, uint32_t number,
                         uint64_t values[HDSOFT_LANES])
{
    hdsoft_run *run = warp->run;
    if (strncmp(specials[number].name, "%envreg", 7) == 0) {
        run->wants_grid_barrier = true;
        if (run->cooperative && !need_workspace(warp, instruction))
            return false;
    }
    /* Clocks that a spinning thread can wait for: they move with every look. */
    run->ticks += LOOK_TICKS;
    uint64_t clock = run->executed * 4 + run->ticks, timer = 0;
    if (run->clock && is_clock(number)) {
        warp->slept += LOOK_NS;
        timer = run->clock->begin + warp->slept + warp->block->executed * run->clock->picoseconds / 1000;
        clock = timer * VIRTUAL_MHZ / 1000;
    } else if (is_timer(number)) {
        timer = nanoseconds();
    }
    uint32_t position = 0;
#define VALUE(name, bits, value)                                  \
    if (position++ == number) {                                   \
        for (unsigned lane = 0; lane < HDSOFT_LANES; lane++)      \
            values[lane] = (uint64_t)(value);                     \
        return true;                                              \
    }
    SPECIALS(VALUE)
    return true;
}
