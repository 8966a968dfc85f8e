/* SPDX-License-Identifier: MIT */
/* Sums of all threads before, over a tile or a coalesced group. */
#ifndef HDRT_COOPERATIVE_GROUPS_SCAN_H
#define HDRT_COOPERATIVE_GROUPS_SCAN_H

#pragma clang system_header
#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class Group, class T, class Operation>
__HDRT_CG T inclusive_scan(const Group &group, const T &value, Operation operation)
{
    T result = value;
    unsigned int rank = group.thread_rank(), count = group.size();
    for (unsigned int step = 1; step < count; step *= 2) {
        T other = group.shfl_up(result, step);
        if (rank >= step)
            result = operation(other, result);
    }
    return result;
}
template <class Group, class T> __HDRT_CG T inclusive_scan(const Group &group, const T &value)
{
    return inclusive_scan(group, value, plus<T>());
}

/* The first thread gets T(). */
template <class Group, class T, class Operation>
__HDRT_CG T exclusive_scan(const Group &group, const T &value, Operation operation)
{
    T before = group.shfl_up(inclusive_scan(group, value, operation), 1);
    return group.thread_rank() == 0 ? T() : before;
}
template <class Group, class T> __HDRT_CG T exclusive_scan(const Group &group, const T &value)
{
    return exclusive_scan(group, value, plus<T>());
}

} // namespace cooperative_groups

#endif
