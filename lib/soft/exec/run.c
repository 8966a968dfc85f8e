/* SPDX-License-Identifier: MIT */
/*
 * One launch, a step at a time. Blocks run one after another as long as they end; a block that goes on for long may be
 * waiting for a later one, so another becomes resident beside it, up to what a device would hold, and they take turns.
 */
#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "soft/exec/deadlock.h"
#include "soft/exec/instance.h"
#include "soft/exec/warp.h"

#define BLOCK_TURN 65536         /* instructions of a block before the next resident one */
#define BLOCK_PATIENCE 300000    /* instructions before a block is taken to wait for another */
#define WARPS_OF_A_MULTIPROCESSOR 64
#define BLOCKS_OF_A_MULTIPROCESSOR 32
#define MOST_RESIDENT 4096

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A seed walks the blocks by a stride that meets each once. */
static void order_blocks(hdsoft_run *run)
{
    run->order_stride = 1;
    if (run->seed == 0 || run->blocks < 2)
        return;
    run->random = run->seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    run->order_start = run->random % run->blocks;
    run->order_stride = (run->random >> 20) % run->blocks | 1;
    while (greatest_common_divisor(run->order_stride, run->blocks) != 1)
        run->order_stride++;
}

static void set_limits(hdsoft_run *run)
{
    uint32_t warps = (run->threads + HDSOFT_LANES - 1) / HDSOFT_LANES;
    uint64_t each = WARPS_OF_A_MULTIPROCESSOR / (warps ? warps : 1);
    if (each > BLOCKS_OF_A_MULTIPROCESSOR)
        each = BLOCKS_OF_A_MULTIPROCESSOR;
    uint64_t limit = (each ? each : 1) * run->multiprocessors;
    if (limit > MOST_RESIDENT)
        limit = MOST_RESIDENT;
    if (run->cooperative || limit > run->blocks)
        limit = run->blocks;
    run->context_limit = (uint32_t)limit;
}

int hdsoft_run_begin(const hdsoft_launch *launch, hdsoft_run **out)
{
    *out = NULL;
    const hdsoft_program *program = launch->instance->program;
    hdsoft_run *run = calloc(1, sizeof *run);
    if (!run)
        return 2;
    run->program = program;
    run->code = program->code;
    run->watch = launch->watch;
    run->instance = launch->instance;
    run->constants = launch->instance->constants;
    run->entry = launch->entry;
    run->function = &program->functions[program->entry_functions[launch->entry - program->entries]];
    run->memory = launch->memory;
    memcpy(run->grid, launch->grid, sizeof run->grid);
    memcpy(run->block, launch->block, sizeof run->block);
    run->threads = launch->block[0] * launch->block[1] * launch->block[2];
    run->blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    run->cooperative = launch->cooperative;
    run->multiprocessors = launch->multiprocessors ? launch->multiprocessors : 1;
    run->seed = launch->seed;
    run->print = launch->print;
    run->print_context = launch->print_context;
    run->clock = launch->clock;
    run->dynamic_offset = (launch->entry->static_shared_bytes + 127u) / 128 * 128;
    if (launch->dynamic_shared_bytes == 0)
        run->dynamic_offset = launch->entry->static_shared_bytes;
    run->dynamic_bytes = launch->dynamic_shared_bytes;
    run->shared_bytes = run->dynamic_offset + run->dynamic_bytes;
    run->epoch = hdsoft_memory_epoch(run->memory);
    run->caches = calloc(program->range_count + 1u, sizeof *run->caches);
    run->parameters = calloc(1, launch->entry->parameter_bytes + 1u);
    if (!run->caches || !run->parameters || (run->watch && !hdsoft_watch_code(run))) {
        hdsoft_run_end(run);
        return 2;
    }
    if (launch->entry->parameter_bytes)
        memcpy(run->parameters, launch->parameters, launch->entry->parameter_bytes);
    order_blocks(run);
    set_limits(run);
    if (run->threads == 0)
        run->blocks = 0;
    *out = run;
    return 0;
}

/* Have the next block resident, in a context that is free or new. */
static bool admit(hdsoft_run *run)
{
    hdsoft_block *block = NULL;
    for (uint32_t i = 0; i < run->context_count && !block; i++)
        if (!run->contexts[i]->resident)
            block = run->contexts[i];
    if (!block) {
        hdsoft_block **grown = realloc(run->contexts, (run->context_count + 1u) * sizeof(hdsoft_block *));
        if (!grown)
            return false;
        run->contexts = grown;
        block = calloc(1, sizeof *block);
        if (!block || !hdsoft_block_create(run, block)) {
            free(block);
            return false;
        }
        run->contexts[run->context_count++] = block;
    }
    uint64_t step = (uint64_t)((unsigned __int128)run->next_block * run->order_stride % run->blocks);
    hdsoft_block_begin(block, (run->order_start + step) % run->blocks);
    run->next_block++;
    run->resident++;
    return true;
}

static int fault_memory(hdsoft_run *run, hdsoft_fault *fault)
{
    memset(fault, 0, sizeof *fault);
    fault->code = 2;
    strcpy(fault->text, "no memory for a block of kernel '");
    strncat(fault->text, run->entry->name, sizeof fault->text - strlen(fault->text) - 2);
    strcat(fault->text, "'");
    return -1;
}

/* Blocks that must be resident: one, or all of a cooperative launch. False without memory. */
static bool admit_needed(hdsoft_run *run)
{
    uint32_t needed = run->cooperative ? run->context_limit : 1;
    while (run->next_block < run->blocks && run->resident < needed)
        if (!admit(run))
            return false;
    return true;
}

static bool wants_company(const hdsoft_run *run, const hdsoft_block *block)
{
    return run->next_block < run->blocks && run->resident < run->context_limit && block->executed > BLOCK_PATIENCE;
}

static uint64_t longest_sleep(const hdsoft_block *block)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i < block->warp_count; i++)
        longest = block->warps[i].slept > longest ? block->warps[i].slept : longest;
    return longest;
}

static int run_blocks(hdsoft_run *run, uint64_t budget, uint64_t *executed, hdsoft_fault *fault)
{
    uint64_t ran = 0;
    int result = 1;
    while (result == 1 && ran < budget) {
        if (!admit_needed(run)) {
            result = fault_memory(run, fault);
            break;
        }
        if (run->resident == 0) {
            result = 0;
            break;
        }
        uint32_t before = run->turn;
        do
            run->turn = run->turn + 1 >= run->context_count ? 0 : run->turn + 1;
        while (!run->contexts[run->turn]->resident);
        hdsoft_block *block = run->contexts[run->turn];
        if (run->cooperative && run->turn <= before)
            hdsoft_deadlock_look(run);
        uint64_t turn = budget - ran < BLOCK_TURN ? budget - ran : BLOCK_TURN;
        uint64_t now = run->faulted ? 0 : hdsoft_block_run(block, turn);
        ran += now;
        run->executed += now;
        if (run->faulted) {
            *fault = run->fault;
            result = -1;
        } else if (block->live_threads == 0) {
            block->resident = false;
            run->resident--;
            run->slept += longest_sleep(block);
        } else if (wants_company(run, block) && !admit(run)) {
            result = fault_memory(run, fault);
        }
    }
    *executed = ran;
    return result;
}

int hdsoft_run_step(hdsoft_run *run, uint64_t budget, uint64_t *executed, hdsoft_fault *fault)
{
    uint64_t ran;
    fenv_t saved; /* the caller's thread may round otherwise, or take subnormals for zero */
    fegetenv(&saved);
    fesetenv(FE_DFL_ENV);
    int result = run_blocks(run, budget, &ran, fault);
    fesetenv(&saved);
    if (executed)
        *executed = ran;
    return result;
}

uint64_t hdsoft_run_slept(const hdsoft_run *run)
{
    return run->slept;
}

void hdsoft_run_end(hdsoft_run *run)
{
    if (!run)
        return;
    for (uint32_t i = 0; i < run->context_count; i++) {
        hdsoft_block_destroy(run->contexts[i]);
        free(run->contexts[i]);
    }
    free(run->contexts);
    hdsoft_activations_destroy(run);
    if (run->workspace)
        hdsoft_memory_release(run->memory, run->workspace);
    free(run->watched_code);
    free(run->caches);
    free(run->parameters);
    free(run);
}
