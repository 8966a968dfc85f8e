/* SPDX-License-Identifier: MIT */
#include "soft/check/check.h"

#include "soft/check/init.h"
#include "soft/check/race.h"
#include "soft/check/release.h"
#include "soft/check/shadow.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* In order of arrival: an executor comes back for it at once after each step, and would never let anybody in. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t turn;
    uint64_t next, serving;
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .turn = PTHREAD_COND_INITIALIZER};
static __thread unsigned held __attribute__((tls_model("initial-exec")));

void hdsoft__check_lock(void)
{
    if (held++)
        return;
    pthread_mutex_lock(&gate.mutex);
    uint64_t mine = gate.next++;
    while (gate.serving != mine)
        pthread_cond_wait(&gate.turn, &gate.mutex);
    pthread_mutex_unlock(&gate.mutex);
}

void hdsoft__check_unlock(void)
{
    if (--held)
        return;
    pthread_mutex_lock(&gate.mutex);
    if (++gate.serving != gate.next)
        pthread_cond_broadcast(&gate.turn);
    pthread_mutex_unlock(&gate.mutex);
}

/* ---- lines ---- */

typedef struct line_entry {
    uint32_t ptx_line, line;
    uint32_t file, function; /* 1-based names; 0: none */
} line_entry;

struct hdsoft__lines {
    _Atomic unsigned references;
    uint32_t count, name_count;
    line_entry *entries;
    char **names;
};

/* The number of a name, which is one of the last two unless it is new: files and functions come in stretches. */
static uint32_t name_number(hdsoft__lines *lines, const char *name)
{
    if (!name)
        return 0;
    for (uint32_t i = lines->name_count; i-- > 0;) {
        if (strcmp(lines->names[i], name) == 0)
            return i + 1;
    }
    char **grown = realloc(lines->names, (lines->name_count + 1u) * sizeof *grown);
    if (!grown)
        return 0;
    lines->names = grown;
    grown[lines->name_count] = strdup(name);
    return grown[lines->name_count] ? ++lines->name_count : 0;
}

hdsoft__lines *hdsoft__lines_new(const hdsoft_program *program)
{
    hdsoft__lines *lines = calloc(1, sizeof *lines);
    if (!lines)
        return NULL;
    lines->references = 1;
    lines->entries = calloc(hdsoft_program_size(program) + 1u, sizeof *lines->entries);
    if (!lines->entries) {
        free(lines);
        return NULL;
    }
    lines->count = hdsoft_program_size(program);
    for (uint32_t i = 0; i < lines->count; i++) {
        hdsoft_place place;
        hdsoft_program_where(program, i, &place);
        lines->entries[i] = (line_entry){place.ptx_line, place.line, name_number(lines, place.file),
                                         name_number(lines, place.function)};
    }
    return lines;
}

void hdsoft__lines_release(hdsoft__lines *lines)
{
    if (!lines || atomic_fetch_sub(&lines->references, 1) != 1)
        return;
    for (uint32_t i = 0; i < lines->name_count; i++)
        free(lines->names[i]);
    free(lines->names);
    free(lines->entries);
    free(lines);
}

bool hdsoft__lines_find(const hdsoft__lines *lines, uint32_t instruction, hdsoft_place *place)
{
    if (!lines || instruction >= lines->count)
        return false;
    const line_entry *entry = &lines->entries[instruction];
    place->ptx_line = entry->ptx_line;
    place->line = entry->line;
    place->file = entry->file ? lines->names[entry->file - 1] : NULL;
    place->function = entry->function ? lines->names[entry->function - 1] : NULL;
    return true;
}

/* ---- operations ---- */

hdsoft__operation *hdsoft__operation_new(hdsoft__operation_kind kind, uint64_t stream, const hdsoft__site *enqueued,
                                         const char *kernel, hdsoft__lines *lines)
{
    hdsoft__operation *operation = calloc(1, sizeof *operation);
    if (!operation)
        return NULL;
    operation->references = 1;
    operation->kind = kind;
    operation->stream = stream;
    operation->enqueued = enqueued;
    if (kernel)
        operation->kernel = strdup(kernel);
    if (lines) {
        atomic_fetch_add(&lines->references, 1);
        operation->lines = lines;
    }
    return operation;
}

hdsoft__operation *hdsoft__operation_hold(hdsoft__operation *operation)
{
    atomic_fetch_add_explicit(&operation->references, 1, memory_order_relaxed);
    return operation;
}

void hdsoft__operation_release(hdsoft__operation *operation)
{
    if (!operation || atomic_fetch_sub(&operation->references, 1) != 1)
        return;
    hdsoft__race_free(operation->race);
    hdsoft__lines_release(operation->lines);
    free(operation->kernel);
    free(operation);
}

static void tell_access(void *context, const hdsoft_access *access)
{
    if (hdsoft__checking(HDSOFT_CHECK_INIT))
        hdsoft__init_access(access);
    hdsoft__race_access(context, access);
}

static void tell_fence(void *context)
{
    hdsoft__race_fence(context);
}

const hdsoft_watch *hdsoft__operation_watch(hdsoft__operation *operation)
{
    operation->watch = (hdsoft_watch){.context = operation, .access = tell_access, .fence = tell_fence};
    if (hdsoft__checking(HDSOFT_CHECK_INIT)) {
        operation->watch.unwritten = hdsoft__init_unwritten;
        operation->watch.left = hdsoft__init_left;
        operation->watch.used = hdsoft__init_used;
    }
    return &operation->watch;
}

/* ---- events ---- */

void hdsoft__check_read(hdsoft__operation *operation, uint64_t address, uint64_t bytes)
{
    hdsoft__race_read(operation, address, bytes);
}

void hdsoft__check_write(hdsoft__operation *operation, uint64_t address, uint64_t bytes)
{
    if (hdsoft__checking(HDSOFT_CHECK_INIT) && operation->kind != HDSOFT__OPERATION_COPY)
        hdsoft__init_written(address, bytes); /* what a copy moves is not always written */
    hdsoft__race_write(operation, address, bytes);
}

void hdsoft__check_moved(hdsoft__operation *operation, uint64_t from, uint64_t to, uint64_t bytes)
{
    if (hdsoft__checking(HDSOFT_CHECK_INIT))
        hdsoft__init_moved(operation, from, to, bytes);
}

void hdsoft__check_allocated(hdsoft__operation *operation, const hdsoft_range *range)
{
    hdsoft__race_allocated(operation, range);
}

void hdsoft__check_freed(hdsoft__operation *operation, const hdsoft_range *range)
{
    hdsoft__race_freed(operation, range);
}

void hdsoft__check_appeared(const hdsoft_range *range)
{
    if (hdsoft__checking(HDSOFT_CHECK_INIT))
        hdsoft__init_appeared(range);
    if (hdsoft__checking(HDSOFT_CHECK_RACE) && !hdsoft__shadow_add(range))
        hdsoft__race_give_up("there is no memory for what was touched by whom");
}

void hdsoft__check_vanished(const hdsoft_range *range)
{
    hdsoft__shadow_remove(range);
    hdsoft__release_forget(range->base, range->end);
}

/* ---- text ---- */

static const char *operation_name(const hdsoft__operation *operation)
{
    switch (operation->kind) {
    case HDSOFT__OPERATION_COPY: return "a copy";
    case HDSOFT__OPERATION_FILL: return "a memset";
    case HDSOFT__OPERATION_WAIT_VALUE: return "a wait for a value";
    case HDSOFT__OPERATION_WRITE_VALUE: return "a write of a value";
    case HDSOFT__OPERATION_ALLOCATE: return "an allocation";
    case HDSOFT__OPERATION_FREE: return "a free";
    default: return "a command";
    }
}

void hdsoft__describe_touch(const hdsoft__touch *touch, hdsoft_text *text)
{
    const hdsoft__operation *operation = touch->operation;
    hdsoft_place place;
    hdsoft_text_append(text, "%s by ", touch->atomic ? "atomic access" : touch->write ? "write" : "read");
    if (operation->kernel) {
        hdsoft_text_append(text, "kernel '%s'", operation->kernel);
        if (hdsoft__lines_find(operation->lines, touch->instruction, &place)) {
            if (place.function && strcmp(place.function, operation->kernel) != 0)
                hdsoft_text_append(text, " in function '%s'", place.function);
            if (place.file)
                hdsoft_text_append(text, " at %s:%u", place.file, place.line);
            hdsoft_text_append(text, " (PTX line %u)", place.ptx_line);
        }
    } else {
        hdsoft_text_append(text, "%s", operation_name(operation));
    }
    if (touch->known_thread)
        hdsoft_text_append(text, ", block (%u,%u,%u) thread (%u,%u,%u)", touch->block[0], touch->block[1],
                           touch->block[2], touch->thread[0], touch->thread[1], touch->thread[2]);
    if (operation->stream)
        hdsoft_text_append(text, ", in stream %llu", (unsigned long long)operation->stream);
    else
        hdsoft_text_append(text, ", by the host");
    hdsoft_text_append(text, ", enqueued by ");
    hdsoft__site_describe(operation->enqueued, text);
}
