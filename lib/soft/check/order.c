/* SPDX-License-Identifier: MIT */
#include "soft/check/order.h"

#include "soft/model/module.h"

static hdsoft__operation_kind kind_of(const hdsoft__task *task)
{
    switch (task->kind) {
    case HDSOFT__TASK_KERNEL: return HDSOFT__OPERATION_KERNEL;
    case HDSOFT__TASK_COPY: return HDSOFT__OPERATION_COPY;
    case HDSOFT__TASK_FILL: return HDSOFT__OPERATION_FILL;
    case HDSOFT__TASK_WAIT_VALUE: return HDSOFT__OPERATION_WAIT_VALUE;
    case HDSOFT__TASK_WRITE_VALUE: return HDSOFT__OPERATION_WRITE_VALUE;
    case HDSOFT__TASK_ALLOCATE: return HDSOFT__OPERATION_ALLOCATE;
    case HDSOFT__TASK_SUSPEND:
    case HDSOFT__TASK_FREE: return HDSOFT__OPERATION_FREE;
    default: return HDSOFT__OPERATION_OTHER;
    }
}

void hdsoft__order_begin(hdsoft__work *work)
{
    if (!hdsoft__checking_memory() || work->operation || !work->task)
        return;
    const hdsoft__command *command = work->command;
    const hdsoft__task *task = work->task;
    const char *kernel = NULL;
    hdsoft__lines *lines = NULL;
    if (task->kind == HDSOFT__TASK_KERNEL) {
        hdsoft__image *image = task->launch.function->module->image;
        if (!image->lines)
            image->lines = hdsoft__lines_new(image->program);
        lines = image->lines;
        kernel = task->launch.function->entry->name;
    }
    work->operation = hdsoft__operation_new(kind_of(task), command->stream->id, command->enqueued, kernel, lines);
}

void hdsoft__order_end(hdsoft__work *work)
{
    hdsoft__operation_release(work->operation);
    work->operation = NULL;
}
