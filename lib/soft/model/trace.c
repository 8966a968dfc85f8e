/* SPDX-License-Identifier: MIT */
#include "soft/model/trace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "soft/model/module.h"

static struct {
    uint64_t hash;
    FILE *file;
} trace = {.hash = UINT64_C(0xcbf29ce484222325)};

void hdsoft__trace_from_environment(void)
{
    const char *path = secure_getenv("HDSOFT_TRACE");
    if (!path || !*path)
        return;
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
    trace.file = file < 0 ? NULL : fdopen(file, "w");
    if (trace.file)
        setvbuf(trace.file, NULL, _IOLBF, 0); /* the last lines before a crash are those that are wanted */
    else if (file >= 0)
        close(file);
    if (!trace.file)
        fprintf(stderr, "soft driver: HDSOFT_TRACE: the file '%s' cannot be written: %m\n", path);
}

void hdsoft__trace_note(uint64_t number)
{
    /* FNV's idea on words: what comes first goes through everything after it. */
    trace.hash = (trace.hash ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    trace.hash ^= trace.hash >> 29;
}

uint64_t hdsoft__trace_hash(void)
{
    return trace.hash;
}

static const char *const kinds[] = {
    [HDSOFT__TASK_NONE] = "nothing", [HDSOFT__TASK_KERNEL] = "kernel", [HDSOFT__TASK_COPY] = "copy",
    [HDSOFT__TASK_FILL] = "fill", [HDSOFT__TASK_HOST] = "host", [HDSOFT__TASK_WAIT_VALUE] = "wait-value",
    [HDSOFT__TASK_WRITE_VALUE] = "write-value", [HDSOFT__TASK_ALLOCATE] = "allocate", [HDSOFT__TASK_FREE] = "free",
    [HDSOFT__TASK_SUSPEND] = "suspend", [HDSOFT__TASK_RECORD_EVENT] = "record", [HDSOFT__TASK_WAIT_EVENT] = "wait",
};

static void put_where(const char *what, const hdsoft__work *work)
{
    const hdsoft__command *command = work->command;
    if (hdsoft__the.policy == HDSOFT__VIRTUAL)
        fprintf(trace.file, "%llu ", (unsigned long long)hdsoft__timestamp());
    fprintf(trace.file, "%s %u stream %llu command %llu", what, command->stream->context->device->ordinal,
            (unsigned long long)command->stream->id, (unsigned long long)command->position);
    if (command->order)
        fprintf(trace.file, " node %zu", (size_t)(work - command->works));
}

static void put_what(const hdsoft__work *work)
{
    const hdsoft__task *task = work->task;
    const hdsoft__command *command = work->command;
    if (!task) {
        fprintf(trace.file, " %s", command->mark ? "record" : command->is_wait ? "wait" : "nothing");
        return;
    }
    fprintf(trace.file, " %s", kinds[task->kind]);
    if (task->kind == HDSOFT__TASK_KERNEL) {
        const hdsoft__launch *launch = &task->launch;
        fprintf(trace.file, " %s grid %u,%u,%u block %u,%u,%u shared %u", launch->function->entry->name,
                launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
                launch->block[2], launch->shared_bytes);
    } else if (task->kind == HDSOFT__TASK_COPY) {
        fprintf(trace.file, " bytes %llu",
                (unsigned long long)(task->copy.width * task->copy.height * task->copy.depth));
    } else if (task->kind == HDSOFT__TASK_FILL) {
        fprintf(trace.file, " bytes %llu",
                (unsigned long long)(task->fill.width * task->fill.height * task->fill.element_size));
    }
}

static void note_work(const hdsoft__work *work, unsigned end)
{
    const hdsoft__command *command = work->command;
    hdsoft__trace_note(command->stream->id << 20 ^ command->position << 2 ^ end);
    hdsoft__trace_note((uint64_t)(work - command->works) << 8 | (work->task ? work->task->kind : 0));
    if (hdsoft__the.policy == HDSOFT__VIRTUAL)
        hdsoft__trace_note(hdsoft__timestamp());
}

void hdsoft__trace_begin(const hdsoft__work *work)
{
    note_work(work, 0);
    if (!trace.file)
        return;
    put_where("begin", work);
    put_what(work);
    fputc('\n', trace.file);
}

void hdsoft__trace_end(const hdsoft__work *work)
{
    note_work(work, 1);
    if (!trace.file)
        return;
    put_where("end", work);
    fputc('\n', trace.file);
}
