/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"

#define LINE_SIZE 4096
#define LEVEL_UNKNOWN (-1)

/*
 * Where lines go. Function and context belong together, so they are read under an even, unchanged `version` (a
 * sequence lock); readers take no lock because a child of fork must not find it held. `writer` orders hdrt_log_set.
 */
static atomic_int current_level = LEVEL_UNKNOWN;
static atomic_uint version;
static _Atomic(hdrt_log_function) current_function;
static _Atomic(void *) current_context;
static pthread_mutex_t writer = PTHREAD_MUTEX_INITIALIZER;

static const char *const level_names[] = {"none", "error", "warn", "info", "debug"};
#define LEVEL_COUNT (int)(sizeof level_names / sizeof *level_names)

static int environment_level(void)
{
    const char *wanted = hdrt__environment(HDRT__ENV_LOG);
    for (int level = 1; wanted && level < LEVEL_COUNT; level++)
        if (strcmp(wanted, level_names[level]) == 0)
            return level;
    return HDRT_LOG_NONE;
}

bool hdrt__log_enabled(hdrt_log_level level)
{
    int now = atomic_load_explicit(&current_level, memory_order_relaxed);
    if (now == LEVEL_UNKNOWN) {
        int wanted = environment_level();
        /* Whoever set the level meanwhile wins. */
        if (atomic_compare_exchange_strong(&current_level, &now, wanted))
            now = wanted;
    }
    return level != HDRT_LOG_NONE && (int)level <= now;
}

void hdrt_log_set(hdrt_log_level level, hdrt_log_function function, void *context)
{
    int wanted = function ? (int)level : environment_level();
    pthread_mutex_lock(&writer);
    atomic_fetch_add(&version, 1);
    atomic_store(&current_function, function);
    atomic_store(&current_context, context);
    atomic_fetch_add(&version, 1);
    atomic_store(&current_level, wanted);
    pthread_mutex_unlock(&writer);
}

/* False if a writer was in the way for long: in a child of fork it may never finish, and the line is dropped. */
static bool read_target(hdrt_log_function *out_function, void **out_context)
{
    for (int attempt = 0; attempt < 10000; attempt++) {
        unsigned before = atomic_load(&version);
        *out_function = atomic_load(&current_function);
        *out_context = atomic_load(&current_context);
        if (!(before & 1) && before == atomic_load(&version))
            return true;
    }
    return false;
}

static void print_line(hdrt_log_level level, const char *line)
{
    char text[LINE_SIZE + 32];
    int length = snprintf(text, sizeof text, "hdrt: %s: %s\n", level_names[level], line);
    /* One write, so that lines of several threads do not mix. A log that cannot be written is lost, and must be. */
    if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0)
        return;
}

void hdrt__log(hdrt_log_level level, const char *format, ...)
{
    if ((int)level >= LEVEL_COUNT || !hdrt__log_enabled(level))
        return;
    char line[LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    if ((size_t)length >= sizeof line)
        memcpy(line + sizeof line - 4, "...", 4);
    for (char *c = line; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    hdrt_log_function function;
    void *context;
    if (!read_target(&function, &context))
        return;
    if (function)
        function(context, level, line);
    else
        print_line(level, line);
}
