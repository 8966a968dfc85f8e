/* SPDX-License-Identifier: MIT */
#include "base/number.h"

#include <hdrt.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t hdrt__now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail: the clock exists and the pointer is good */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t hdrt__deadline(uint64_t timeout_ns)
{
    uint64_t deadline;
    if (timeout_ns == HDRT_FOREVER || __builtin_add_overflow(hdrt__now_ns(), timeout_ns, &deadline))
        return UINT64_MAX;
    return deadline;
}

char *hdrt__path_join(const char *directory, const char *name)
{
    size_t left = strlen(directory), right = strlen(name), size;
    if (!hdrt__size_add(left, right, &size) || !hdrt__size_add(size, 2, &size))
        return NULL;
    char *path = malloc(size);
    if (!path)
        return NULL;
    memcpy(path, directory, left);
    if (left && directory[left - 1] != '/')
        path[left++] = '/';
    memcpy(path + left, name, right + 1);
    return path;
}
