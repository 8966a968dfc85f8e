/* SPDX-License-Identifier: MIT */
/* Calls, branches, barriers and the spaces of memory: one block, a word per thread. */
#include "areas.h"
#include "support.h"

static void block(const check *self)
{
    size_t threads = (size_t)self->number;
    hdcu_pointer out = new_bytes(threads * 4);
    NEED(cuMemsetD8(out, 0xff, threads * 4));
    STATUS(LAUNCH(kernel_of(module_control, self->text), 1, (unsigned)threads, NULL, &out));
    STATUS(cuCtxSynchronize());
    say_words(out, threads);
}

#define BLOCK(text_, kernel, threads) {.name = text_, .run = block, .text = kernel, .number = threads}

static const check checks[] = {
    BLOCK("recursion of lanes' own depth", "recursion", 32),
    BLOCK("indirect calls, divergent", "indirect", 32),
    BLOCK("loops with continue and break", "divergent_loop", 32),
    BLOCK("fall-through switch", "switched", 32),
    BLOCK("irreducible", "irreducible", 32),
    BLOCK("partial warp", "irreducible", 45),
    {.name = "spin lock between lanes", .run = block, .text = "spin_lock", .number = 32, .alone = true},
    {.name = "ping-pong between lanes", .run = block, .text = "ping_pong", .number = 32, .alone = true},
    BLOCK("early exit before a barrier", "early_exit", 64),
    BLOCK("named barriers", "named_barriers", 64),
    BLOCK("barriers that reduce", "reduced_barriers", 64),
    BLOCK("shared memory across warps", "shared_across_warps", 64),
    BLOCK("local memory", "local_rooms", 32),
    BLOCK("spaces", "spaces", 4),
};

const area area_control = {"control", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
