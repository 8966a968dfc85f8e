/* SPDX-License-Identifier: MIT */
#include "failing_malloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);

static atomic_long count, fail_at, fail_from;
static atomic_bool failed;

static bool must_fail(void)
{
    long number = atomic_fetch_add(&count, 1) + 1;
    long at = atomic_load(&fail_at), from = atomic_load(&fail_from);
    if ((at == 0 || number != at) && (from == 0 || number < from))
        return false;
    atomic_store(&failed, true);
    errno = ENOMEM;
    return true;
}

void failing_malloc_arm(long n)
{
    atomic_store(&fail_at, 0);
    atomic_store(&fail_from, 0);
    atomic_store(&failed, false);
    atomic_store(&count, 0);
    atomic_store(&fail_at, n);
}

void failing_malloc_arm_from(long n)
{
    failing_malloc_arm(0);
    atomic_store(&fail_from, n);
}

bool failing_malloc_disarm(void)
{
    atomic_store(&fail_at, 0);
    atomic_store(&fail_from, 0);
    return atomic_load(&failed);
}

long failing_malloc_count(void)
{
    return atomic_load(&count);
}

void *__wrap_malloc(size_t size)
{
    return must_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t members, size_t size)
{
    return must_fail() ? NULL : __real_calloc(members, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return must_fail() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
    return must_fail() ? NULL : __real_strdup(text);
}
