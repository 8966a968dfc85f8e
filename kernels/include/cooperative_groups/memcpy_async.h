/* SPDX-License-Identifier: MIT */
/* Copies by a whole group, complete when the group has waited. */
#ifndef HDRT_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H
#define HDRT_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H

#pragma clang system_header
#include "../cooperative_groups.h"

namespace cooperative_groups {

/* Words of four bytes where both sides are aligned to them. */
template <class Group> __HDRT_CG void memcpy_async(const Group &group, void *to, const void *from, size_t bytes)
{
    size_t rank = group.thread_rank(), count = group.size(), done = 0;
    if ((((size_t)to | (size_t)from) & 3) == 0) {
        for (size_t i = rank; i < bytes / 4; i += count)
            ((unsigned int *)to)[i] = ((const unsigned int *)from)[i];
        done = bytes & ~(size_t)3;
    }
    for (size_t i = done + rank; i < bytes; i += count)
        ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
}
template <class Group, class T>
__HDRT_CG void memcpy_async(const Group &group, T *to, size_t to_count, const T *from, size_t from_count)
{
    memcpy_async(group, (void *)to, (const void *)from, sizeof(T) * (to_count < from_count ? to_count : from_count));
}

template <class Group> __HDRT_CG void wait(const Group &group) { group.sync(); }
template <unsigned int Stages, class Group> __HDRT_CG void wait_prior(const Group &group) { group.sync(); }

} // namespace cooperative_groups

#endif
