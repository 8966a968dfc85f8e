/* SPDX-License-Identifier: MIT */
/*
 * Groups of threads under the names of CUDA's header, for clang; part of the device prelude, which comes first: the
 * block, the grid, tiles of up to 32 threads, and the threads that run together. The grid's barrier is that of the
 * driver: a cooperative launch gives every thread the address of a zeroed workspace in %envreg1 (upper half) and
 * %envreg2, whose second word counts arrivals.
 */
#ifndef HDRT_COOPERATIVE_GROUPS_H
#define HDRT_COOPERATIVE_GROUPS_H

#ifndef HDRT_DEVICE_H
#error "this cooperative_groups.h goes with hdrt_device.h; for another compiler put CUDA's own headers first"
#endif
#pragma clang system_header

#define __HDRT_CG __device__ __forceinline__

namespace cooperative_groups {

namespace details {

__HDRT_CG unsigned int block_rank()
{
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
__HDRT_CG unsigned int block_size() { return blockDim.x * blockDim.y * blockDim.z; }
__HDRT_CG unsigned int lane_id() { return __nvvm_read_ptx_sreg_laneid(); }
__HDRT_CG unsigned int lanes_below()
{
    unsigned int mask;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    return mask;
}

/* Where the grid's barrier counts; null unless the launch is cooperative. */
__HDRT_CG unsigned int *grid_barrier()
{
    unsigned int high, low;
    asm("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm("mov.u32 %0, %%envreg2;" : "=r"(low));
    unsigned long long workspace = (unsigned long long)high << 32 | low;
    return workspace ? (unsigned int *)workspace + 1 : nullptr;
}

/* The first block adds what turns the top bit over once all the others have added one each. */
__HDRT_CG void grid_sync()
{
    __syncthreads();
    if (block_rank() == 0) {
        unsigned int *barrier = grid_barrier();
        if (!barrier)
            __trap();
        bool first = (blockIdx.x | blockIdx.y | blockIdx.z) == 0;
        unsigned int blocks = gridDim.x * gridDim.y * gridDim.z, before, now;
        unsigned int step = first ? 0x80000000u - (blocks - 1) : 1;
        asm volatile("fence.acq_rel.gpu;\natom.add.release.gpu.u32 %0, [%1], %2;"
                     : "=r"(before)
                     : "l"(barrier), "r"(step)
                     : "memory");
        do
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(barrier) : "memory");
        while (((before ^ now) & 0x80000000u) == 0);
    }
    __syncthreads();
}

template <class T> struct words {
    static_assert(sizeof(T) <= 32, "a group's threads exchange values of up to 32 bytes");
    unsigned int word[(sizeof(T) + 3) / 4];
};

/* A value of any plain type to or from another lane, word by word. */
template <class T, class Exchange> __HDRT_CG T exchange(const T &value, Exchange each)
{
    words<T> all = {};
    T result;
    __builtin_memcpy(&all, &value, sizeof value);
    for (unsigned int i = 0; i < sizeof all / 4; i++)
        all.word[i] = each(all.word[i]);
    __builtin_memcpy(&result, &all, sizeof result);
    return result;
}

/* The lane with rank `rank` among those of a mask. */
__HDRT_CG unsigned int nth_lane(unsigned int mask, unsigned int rank)
{
    for (; rank > 0; rank--)
        mask &= mask - 1;
    return __ffs((int)mask) - 1;
}

} // namespace details

/* ---- the grid and the block -------------------------------------------------------------------------------------- */

class grid_group {
public:
    __HDRT_CG bool is_valid() const { return details::grid_barrier() != nullptr; }
    __HDRT_CG void sync() const { details::grid_sync(); }
    __HDRT_CG static unsigned long long num_blocks()
    {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    }
    __HDRT_CG static unsigned long long block_rank()
    {
        return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    }
    __HDRT_CG static unsigned long long thread_rank()
    {
        return block_rank() * details::block_size() + details::block_rank();
    }
    __HDRT_CG static unsigned long long num_threads() { return num_blocks() * details::block_size(); }
    __HDRT_CG static unsigned long long size() { return num_threads(); }
    __HDRT_CG static dim3 group_dim() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
    __HDRT_CG static dim3 dim_blocks() { return group_dim(); }
    __HDRT_CG static dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
};

__HDRT_CG grid_group this_grid() { return grid_group(); }

class thread_block {
public:
    static const unsigned int max_size = 1024;

    __HDRT_CG static void sync() { __syncthreads(); }
    __HDRT_CG static unsigned int thread_rank() { return details::block_rank(); }
    __HDRT_CG static unsigned int num_threads() { return details::block_size(); }
    __HDRT_CG static unsigned int size() { return details::block_size(); }
    __HDRT_CG static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    __HDRT_CG static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    __HDRT_CG static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    __HDRT_CG static dim3 dim_threads() { return group_dim(); }
};

__HDRT_CG thread_block this_thread_block() { return thread_block(); }

/* ---- threads of one warp ----------------------------------------------------------------------------------------- */

/* What tiles and coalesced groups have in common: a mask of lanes. Group says how a rank becomes a lane. */
template <class Group> class lane_group {
protected:
    unsigned int mask, below;

    __HDRT_CG explicit lane_group(unsigned int lanes) : mask(lanes), below(lanes & details::lanes_below()) {}
    __HDRT_CG const Group &self() const { return *static_cast<const Group *>(this); }

    /* A mask of the warp's lanes as one of the group's ranks. */
    __HDRT_CG unsigned int ranks(unsigned int lanes) const
    {
        unsigned int packed = 0, at = 0;
        for (unsigned int rest = mask; rest; rest &= rest - 1, at++)
            packed |= (lanes >> (__ffs((int)rest) - 1) & 1u) << at;
        return packed;
    }

public:
    __HDRT_CG unsigned int thread_rank() const { return __popc(below); }
    __HDRT_CG unsigned int num_threads() const { return __popc(mask); }
    __HDRT_CG unsigned int size() const { return __popc(mask); }
    __HDRT_CG void sync() const { __syncwarp(mask); }
    __HDRT_CG int any(int predicate) const { return __any_sync(mask, predicate); }
    __HDRT_CG int all(int predicate) const { return __all_sync(mask, predicate); }
    __HDRT_CG unsigned int ballot(int predicate) const { return ranks(__ballot_sync(mask, predicate)); }
    template <class T> __HDRT_CG unsigned int match_any(T value) const
    {
        return ranks(__match_any_sync(mask, value));
    }
    template <class T> __HDRT_CG unsigned int match_all(T value, int &all) const
    {
        return ranks(__match_all_sync(mask, value, &all));
    }

    template <class T> __HDRT_CG T shfl(const T &value, int rank) const
    {
        unsigned int lanes = mask, from = self().lane_of((unsigned int)rank % size());
        return details::exchange(value, [=](unsigned int word) { return __shfl_sync(lanes, word, (int)from); });
    }
    /* Beyond the ends every thread gets its own. */
    template <class T> __HDRT_CG T shfl_down(const T &value, unsigned int distance) const
    {
        unsigned int rank = thread_rank(), there = distance < size() - rank ? rank + distance : rank;
        return shfl(value, (int)there);
    }
    template <class T> __HDRT_CG T shfl_up(const T &value, unsigned int distance) const
    {
        unsigned int rank = thread_rank();
        return shfl(value, (int)(distance <= rank ? rank - distance : rank));
    }
};

/* 1, 2, 4 ... 32 threads with neighbouring ranks in the block. */
template <unsigned int Size, class Parent = void> class thread_block_tile
    : public lane_group<thread_block_tile<Size, Parent>> {
    typedef lane_group<thread_block_tile<Size, Parent>> lanes;
    static_assert(Size > 0 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");

    __HDRT_CG static unsigned int first() { return details::lane_id() & ~(Size - 1); }

public:
    __HDRT_CG thread_block_tile() : lanes((0xffffffffu >> (32 - Size)) << first()) {}
    /* Whose part it is, is not kept in every tile's type. */
    template <class Other> __HDRT_CG thread_block_tile(const thread_block_tile<Size, Other> &) : thread_block_tile() {}

    __HDRT_CG static unsigned int lane_of(unsigned int rank) { return first() + rank; }
    __HDRT_CG static constexpr unsigned int num_threads() { return Size; }
    __HDRT_CG static constexpr unsigned int size() { return Size; }
    __HDRT_CG static unsigned int thread_rank() { return details::lane_id() & (Size - 1); }
    __HDRT_CG static unsigned int meta_group_rank() { return details::block_rank() / Size; }
    __HDRT_CG static unsigned int meta_group_size() { return (details::block_size() + Size - 1) / Size; }
    __HDRT_CG unsigned int ballot(int predicate) const
    {
        return __ballot_sync(lanes::mask, predicate) >> first() & (0xffffffffu >> (32 - Size));
    }
    template <class T> __HDRT_CG T shfl_xor(const T &value, unsigned int flip) const
    {
        return this->shfl(value, (int)(thread_rank() ^ flip));
    }
};

template <unsigned int Size, class Parent> __HDRT_CG thread_block_tile<Size, Parent> tiled_partition(const Parent &)
{
    return thread_block_tile<Size, Parent>();
}
/* The tile of a tile: Size divides the parent's. */
template <unsigned int Size, unsigned int Whole, class Parent>
__HDRT_CG thread_block_tile<Size, thread_block_tile<Whole, Parent>> tiled_partition(
    const thread_block_tile<Whole, Parent> &)
{
    static_assert(Size <= Whole, "a tile's part is not larger than it");
    return thread_block_tile<Size, thread_block_tile<Whole, Parent>>();
}

class coalesced_group : public lane_group<coalesced_group> {
    unsigned int group, groups;

public:
    __HDRT_CG explicit coalesced_group(unsigned int lanes, unsigned int rank = 0, unsigned int count = 1)
        : lane_group(lanes), group(rank), groups(count) {}
    /* A tile's threads as a group whose type does not say its size. */
    template <unsigned int Size, class Parent>
    __HDRT_CG coalesced_group(const thread_block_tile<Size, Parent> &)
        : lane_group((0xffffffffu >> (32 - Size)) << (details::lane_id() & ~(Size - 1))),
          group(thread_block_tile<Size, Parent>::meta_group_rank()),
          groups(thread_block_tile<Size, Parent>::meta_group_size()) {}

    __HDRT_CG unsigned int lane_of(unsigned int rank) const
    {
        return mask == 0xffffffffu ? rank : details::nth_lane(mask, rank);
    }
    __HDRT_CG unsigned int meta_group_rank() const { return group; }
    __HDRT_CG unsigned int meta_group_size() const { return groups; }
    /* The lanes of those whose bits are set among `ranks_wanted` threads of the group. */
    __HDRT_CG unsigned int lanes_of(unsigned int first, unsigned int count) const
    {
        unsigned int lanes = 0, at = 0;
        for (unsigned int rest = mask; rest; rest &= rest - 1, at++)
            lanes |= at >= first && at < first + count ? rest & (0u - rest) : 0u;
        return lanes;
    }
    __HDRT_CG unsigned int lane_mask() const { return mask; }
};

__HDRT_CG coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

/* `count` threads a group, the last one with what is left. */
__HDRT_CG coalesced_group tiled_partition(const coalesced_group &parent, unsigned int count)
{
    unsigned int rank = parent.thread_rank() / count;
    return coalesced_group(parent.lanes_of(rank * count, count), rank, (parent.size() + count - 1) / count);
}

/* ---- partitions by what the threads say -------------------------------------------------------------------------- */

template <class Group> __HDRT_CG coalesced_group labeled_partition(const Group &parent, int label)
{
    coalesced_group all(parent);
    unsigned int whole = all.lane_mask(), mine = __match_any_sync(whole, label), rank = 0, count = 0;
    for (unsigned int rest = whole; rest; count++) { /* groups are numbered by their first threads */
        unsigned int first = __ffs((int)rest) - 1;
        unsigned int same = __shfl_sync(whole, mine, (int)first);
        rank += first < (unsigned int)__ffs((int)mine) - 1;
        rest &= ~same;
    }
    return coalesced_group(mine, rank, count);
}

template <class Group> __HDRT_CG coalesced_group binary_partition(const Group &parent, bool predicate)
{
    coalesced_group all(parent);
    unsigned int yes = __ballot_sync(all.lane_mask(), predicate), no = all.lane_mask() & ~yes;
    return coalesced_group(predicate ? yes : no, predicate && no, 1u + (yes && no));
}

/* ---- by function instead of by member ---------------------------------------------------------------------------- */

template <class Group> __HDRT_CG void sync(const Group &group) { group.sync(); }
template <class Group> __HDRT_CG unsigned int thread_rank(const Group &group) { return group.thread_rank(); }
template <class Group> __HDRT_CG unsigned int group_size(const Group &group) { return group.size(); }

/* One thread of the group calls; the others go on. */
template <class Group, class Function> __HDRT_CG void invoke_one(const Group &group, Function function)
{
    if (group.thread_rank() == 0)
        function();
}

/* ---- operations for reduce and the scans ------------------------------------------------------------------------- */

template <class T> struct plus {
    __HDRT_CG T operator()(T a, T b) const { return a + b; }
};
template <class T> struct less {
    __HDRT_CG T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T> struct greater {
    __HDRT_CG T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T> struct bit_and {
    __HDRT_CG T operator()(T a, T b) const { return a & b; }
};
template <class T> struct bit_or {
    __HDRT_CG T operator()(T a, T b) const { return a | b; }
};
template <class T> struct bit_xor {
    __HDRT_CG T operator()(T a, T b) const { return a ^ b; }
};

} // namespace cooperative_groups

#endif
