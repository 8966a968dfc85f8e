/* SPDX-License-Identifier: MIT */
#include "soft/api/entry.h"
#include "soft/model/module.h"

/* One multiprocessor of an H200. */
#define WARPS 64
#define BLOCKS 32
#define SHARED 233472
#define SHARED_RESERVED 1024
#define SHARED_STEP 128
#define DEFAULT_SHARED 49152
#define QUARTERS 4
#define QUARTER_REGISTERS 16384
#define REGISTER_STEP 256
#define MULTIPROCESSORS 132

int hdsoft__blocks_per_multiprocessor(const hdsoft__function *function, int threads, size_t dynamic)
{
    const hdsoft_entry *entry = function->entry;
    size_t fixed = entry->static_shared_bytes;
    size_t most = fixed < DEFAULT_SHARED ? DEFAULT_SHARED - fixed : 0;
    most = (size_t)function->dynamic_limit > most ? (size_t)function->dynamic_limit : most;
    if (threads <= 0 || threads > 1024 || dynamic > most)
        return 0;
    size_t warps = ((size_t)threads + 31) / 32;
    size_t blocks = WARPS / warps < BLOCKS ? WARPS / warps : BLOCKS;
    size_t warp_registers = (hdsoft__registers(entry) * 32u + REGISTER_STEP - 1) / REGISTER_STEP * REGISTER_STEP;
    size_t by_registers = QUARTERS * (QUARTER_REGISTERS / warp_registers) / warps;
    size_t shared = (fixed + dynamic + SHARED_STEP - 1) / SHARED_STEP * SHARED_STEP + SHARED_RESERVED;
    blocks = by_registers < blocks ? by_registers : blocks;
    blocks = SHARED / shared < blocks ? SHARED / shared : blocks;
    return (int)blocks;
}

static hdcu_result max_active(int *out, hdcu_function handle, int threads, size_t dynamic)
{
    hdsoft__function *function;
    if (!out || threads <= 0)
        return HDCU_ERROR_INVALID_VALUE;
    int status = hdsoft__function_of(handle, &function);
    if (!status)
        *out = hdsoft__blocks_per_multiprocessor(function, threads, dynamic);
    return (hdcu_result)status;
}

hdcu_result hdsoft__cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, hdcu_function function, int threads,
                                                                size_t dynamic)
{
    return max_active(out, function, threads, dynamic);
}

hdcu_result hdsoft__cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, hdcu_function function, int threads,
                                                                         size_t dynamic, unsigned flags)
{
    if (flags > HDCU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return HDCU_ERROR_INVALID_VALUE;
    return max_active(out, function, threads, dynamic);
}

hdcu_result hdsoft__cuOccupancyMaxPotentialBlockSize(int *grid, int *block, hdcu_function handle,
                                                     hdcu_shared_for_block shared_for, size_t dynamic, int limit)
{
    hdsoft__function *function;
    if (!grid || !block || limit < 0)
        return HDCU_ERROR_INVALID_VALUE;
    int status = hdsoft__function_of(handle, &function);
    if (status)
        return (hdcu_result)status;
    int most = (int)function->entry->max_threads, best = 0;
    most = limit && limit < most ? limit : most;
    *grid = *block = 0;
    for (int threads = (most + 31) / 32 * 32; threads > 0; threads -= 32) {
        int tried = threads < most ? threads : most;
        int blocks = hdsoft__blocks_per_multiprocessor(function, tried, shared_for ? shared_for(tried) : dynamic);
        if (blocks * tried > best) {
            best = blocks * tried;
            *block = tried;
            *grid = blocks * MULTIPROCESSORS;
        }
    }
    return 0;
}

hdcu_result hdsoft__cuOccupancyAvailableDynamicSMemPerBlock(size_t *out, hdcu_function handle, int blocks, int threads)
{
    hdsoft__function *function;
    if (!out || blocks <= 0 || threads <= 0 || threads > 1024)
        return HDCU_ERROR_INVALID_VALUE;
    int status = hdsoft__function_of(handle, &function);
    if (status)
        return (hdcu_result)status;
    if (blocks > hdsoft__blocks_per_multiprocessor(function, threads, 0))
        return HDCU_ERROR_INVALID_VALUE;
    /* As an H200 counts, without what it keeps for itself in each block. */
    size_t share = SHARED / (size_t)blocks / SHARED_STEP * SHARED_STEP, most = (size_t)function->dynamic_limit;
    share -= function->entry->static_shared_bytes;
    *out = share < most ? share : most;
    return 0;
}
