/* SPDX-License-Identifier: MIT */
/* A block: its warps in turn, until all threads have exited. */
#include <stdlib.h>
#include <string.h>

#include "soft/exec/deadlock.h"
#include "soft/exec/follow.h"

/* How long one warp may run before the next one gets its turn. */
#define WARP_FUEL 4096

static bool create_warp(hdsoft_run *run, hdsoft_block *block, uint32_t index)
{
    hdsoft_warp *warp = &block->warps[index];
    warp->run = run;
    warp->block = block;
    warp->index = index;
    warp->code = run->code;
    warp->caches = run->caches;
    warp->shared = block->shared;
    warp->shared_bytes = run->shared_bytes;
    warp->parameters = run->parameters;
    warp->parameter_bytes = run->entry->parameter_bytes;
    for (uint32_t lane = 0; lane < HDSOFT_LANES; lane++) {
        uint32_t thread = index * HDSOFT_LANES + lane;
        warp->valid |= (uint32_t)(thread < run->threads) << lane;
        warp->thread_index[0][lane] = thread % run->block[0];
        warp->thread_index[1][lane] = thread / run->block[0] % run->block[1];
        warp->thread_index[2][lane] = thread / run->block[0] / run->block[1];
    }
    warp->kernel.function = run->function;
    warp->kernel.frame = aligned_alloc(128, (run->function->frame_bytes + 255u) / 128 * 128);
    if (!warp->kernel.frame)
        return false;
    memset(warp->kernel.frame, 0, run->function->frame_bytes);
    return hdsoft_local_reserve(warp, run->function->local_bytes);
}

bool hdsoft_block_create(hdsoft_run *run, hdsoft_block *block)
{
    memset(block, 0, sizeof *block);
    block->run = run;
    block->warp_count = (run->threads + HDSOFT_LANES - 1) / HDSOFT_LANES;
    block->warps = calloc(block->warp_count, sizeof *block->warps);
    block->shared = aligned_alloc(128, (run->shared_bytes + 255u) / 128 * 128);
    bool made = block->warps && block->shared;
    for (uint32_t i = 0; made && i < block->warp_count; i++)
        made = create_warp(run, block, i);
    made = made && hdsoft_follow_create(block);
    if (!made)
        hdsoft_block_destroy(block);
    return made;
}

void hdsoft_block_destroy(hdsoft_block *block)
{
    for (uint32_t i = 0; block->warps && i < block->warp_count; i++) {
        hdsoft_warp *warp = &block->warps[i];
        for (uint32_t s = 0; s < warp->split_count; s++) { /* a run that ended early: give back what was called */
            hdsoft_activation *activation = warp->splits[s].activation, *parent;
            for (; activation; activation = parent) {
                parent = activation->parent;
                hdsoft_activation_drop(warp, activation, warp->splits[s].lanes);
            }
        }
        free(warp->kernel.frame);
        free(warp->local);
    }
    hdsoft_follow_destroy(block);
    free(block->warps);
    free(block->shared);
    memset(block, 0, sizeof *block);
}

void hdsoft_block_begin(hdsoft_block *block, uint64_t linear)
{
    const hdsoft_run *run = block->run;
    block->linear = linear;
    block->id[0] = (uint32_t)(linear % run->grid[0]);
    block->id[1] = (uint32_t)(linear / run->grid[0] % run->grid[1]);
    block->id[2] = (uint32_t)(linear / run->grid[0] / run->grid[1]);
    block->live_threads = run->threads;
    block->next_warp = 0;
    block->executed = 0;
    block->resident = true;
    memset(block->barriers, 0, sizeof block->barriers);
    /* Fresh shared memory holds no useful numbers: the pattern is a NaN and an absurd integer. */
    memset(block->shared, 0xff, run->shared_bytes);
    hdsoft_follow_begin(block);
    for (uint32_t i = 0; i < block->warp_count; i++) {
        block->warps[i].constants = run->constants;
        block->warps[i].slept = 0;
        hdsoft_warp_begin(&block->warps[i]);
    }
}

/* Ranges that instructions remember are good until some range goes away. */
static void check_epoch(hdsoft_run *run)
{
    uint64_t epoch = hdsoft_memory_epoch(run->memory);
    if (epoch == run->epoch)
        return;
    run->epoch = epoch;
    memset(run->caches, 0, run->program->range_count * sizeof *run->caches);
}

uint64_t hdsoft_block_run(hdsoft_block *block, uint64_t budget)
{
    hdsoft_run *run = block->run;
    uint64_t executed = 0, idle = 0;
    while (executed < budget && block->live_threads && !run->faulted) {
        hdsoft_warp *warp = &block->warps[block->next_warp];
        block->next_warp = block->next_warp + 1 == block->warp_count ? 0 : block->next_warp + 1;
        uint64_t ran = 0;
        if (warp->live) {
            check_epoch(run);
            ran = hdsoft_warp_run(warp, WARP_FUEL);
        }
        executed += ran;
        idle = ran ? 0 : idle + 1;
        if (idle >= block->warp_count && block->live_threads && !run->faulted)
            hdsoft_deadlock_block(block);
    }
    block->executed += executed;
    return executed;
}
