/* SPDX-License-Identifier: MIT */
#include "launch.h"

#include "message.h"
#include "source.h"

int launch_open(const options *o, session *s, checks *c, const arguments *args, const char *file, const char *kernel,
                hdrt_module **out_module, hdrt_kernel **out_kernel)
{
    hdrt_status status;
    int code = checks_usage(o);

    if (!code)
        code = session_open(o, s);
    if (!code)
        code = checks_begin(o, s, c, args);
    if (!code)
        code = session_open_device(o, s);
    if (!code)
        code = source_load(o, s, file, out_module);
    if (code)
        return code;
    status = hdrt_module_kernel(*out_module, kernel, out_kernel);
    return status == HDRT_OK ? 0 : fail_last(status);
}

void launch_note_zero_grid(const options *o)
{
    if (!o->grid[0] || !o->grid[1] || !o->grid[2])
        note("the grid %u,%u,%u has no blocks: the kernel does not run", o->grid[0], o->grid[1], o->grid[2]);
}

int launch_kernel(const options *o, hdrt_queue *queue, hdrt_kernel *kernel, const uint32_t grid[3],
                  const leading_argument *leading, uint32_t leading_count, const arguments *args)
{
    hdrt_launch_options launch = HDRT_LAUNCH_OPTIONS_INIT;
    const void *values[LEADING_LIMIT + HDRT_ARGS_LIMIT];
    uint32_t kinds[LEADING_LIMIT + HDRT_ARGS_LIMIT], count = 0;
    hdrt_status status;

    for (; count < leading_count; count++) {
        values[count] = leading[count].value;
        kinds[count] = leading[count].kind;
    }
    for (uint32_t i = 0; i < args->count; i++, count++) {
        values[count] = &args->list[i].value;
        kinds[count] = args->list[i].kind;
    }
    for (int i = 0; i < 3; i++) {
        launch.grid.grid[i] = grid[i];
        launch.grid.block[i] = o->block[i];
    }
    launch.grid.shared = o->shared;
    status = hdrt_launch_with(queue, kernel, &launch, values, kinds, count);
    return status == HDRT_OK ? 0 : fail_last(status);
}
