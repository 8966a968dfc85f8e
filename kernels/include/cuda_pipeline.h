/* SPDX-License-Identifier: MIT */
/* A thread's queue of copies into shared memory: the primitives, and the class over them. */
#ifndef HDRT_CUDA_PIPELINE_H
#define HDRT_CUDA_PIPELINE_H

#pragma clang system_header
#include "cuda_pipeline_primitives.h"

namespace nvcuda {
namespace experimental {

class pipeline {
    size_t committed = 0;

public:
    __device__ size_t commit()
    {
        __pipeline_commit();
        return committed++;
    }
    __device__ void commit_and_wait()
    {
        commit();
        __pipeline_wait_prior(0);
    }
    /* Up to the batch that commit numbered so. */
    __device__ void wait(size_t batch) { __pipeline_wait_prior(committed - 1 - batch); }
    template <unsigned int count> __device__ void wait_prior() { __pipeline_wait_prior(count); }
};

template <class T> __device__ void memcpy_async(T &to, const T &from, pipeline &)
{
    static_assert(sizeof(T) % 4 == 0, "a copy beside the thread is of four bytes or more");
    const size_t step = sizeof(T) % 16 == 0 && alignof(T) >= 16 ? 16 : sizeof(T) % 8 == 0 && alignof(T) >= 8 ? 8 : 4;
    for (size_t i = 0; i < sizeof(T); i += step)
        __pipeline_memcpy_async((char *)&to + i, (const char *)&from + i, step);
}

} // namespace experimental
} // namespace nvcuda

#endif
