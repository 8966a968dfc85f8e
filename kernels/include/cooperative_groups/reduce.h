/* SPDX-License-Identifier: MIT */
/* Reductions over a tile or a coalesced group: every thread gets the result. */
#ifndef HDRT_COOPERATIVE_GROUPS_REDUCE_H
#define HDRT_COOPERATIVE_GROUPS_REDUCE_H

#pragma clang system_header
#include "../cooperative_groups.h"

namespace cooperative_groups {

/* In pairs of neighbours, then of pairs, and so on: the order of a tree, whatever the group's size. */
template <class Group, class T, class Operation>
__HDRT_CG T reduce(const Group &group, const T &value, Operation operation)
{
    T result = value;
    unsigned int rank = group.thread_rank(), count = group.size();
    for (unsigned int step = 1; step < count; step *= 2) {
        T other = group.shfl_down(result, step);
        if (rank % (2 * step) == 0 && rank + step < count)
            result = operation(result, other);
    }
    return group.shfl(result, 0);
}

template <class Group, class T, class Operation>
__HDRT_CG void reduce_update_async(const Group &group, T *total, const T &value, Operation operation)
{
    T sum = reduce(group, value, operation), old, wanted;
    static_assert(sizeof(T) == 4, "the total has four bytes");
    if (group.thread_rank() != 0)
        return;
    unsigned int seen = *(volatile unsigned int *)total, before;
    do {
        before = seen;
        old = __builtin_bit_cast(T, before);
        wanted = operation(old, sum);
        seen = atomicCAS((unsigned int *)total, before, __builtin_bit_cast(unsigned int, wanted));
    } while (seen != before);
}

} // namespace cooperative_groups

#endif
