/* SPDX-License-Identifier: MIT */
/*
 * Copies from global to shared memory that go on beside the thread, under the names of CUDA's header, for clang; part
 * of the device prelude, which comes first. Below sm_80 there is no such instruction: the copies are made at once.
 */
#ifndef HDRT_CUDA_PIPELINE_PRIMITIVES_H
#define HDRT_CUDA_PIPELINE_PRIMITIVES_H

#ifndef HDRT_DEVICE_H
#error "this cuda_pipeline_primitives.h goes with hdrt_device.h; for another compiler put CUDA's own headers first"
#endif
#pragma clang system_header

#if __CUDA_ARCH__ >= 800
#define __HDRT_COPY(size, cache)                                                                                       \
    asm volatile("cp.async." cache ".shared.global [%0], [%1], " #size ", %2;" ::"r"(shared), "l"(global), "r"(read)   \
                 : "memory")
/* `size` bytes, 4, 8 or 16, of which the last `zeros` become zero instead of being read. */
__HDRT_FN void __pipeline_memcpy_async(void *to, const void *from, size_t size, size_t zeros = 0)
{
    unsigned int shared = (unsigned int)__cvta_generic_to_shared(to), read = (unsigned int)(size - zeros);
    size_t global = __cvta_generic_to_global(from);
    if (size == 16)
        __HDRT_COPY(16, "cg");
    else if (size == 8)
        __HDRT_COPY(8, "ca");
    else if (size == 4)
        __HDRT_COPY(4, "ca");
    else
        __trap();
}
#undef __HDRT_COPY
__HDRT_FN void __pipeline_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* All but the last `count` groups of copies are complete. */
__HDRT_FN void __pipeline_wait_prior(size_t count)
{
    switch (count) {
    case 0: asm volatile("cp.async.wait_all;" ::: "memory"); break;
    case 1: asm volatile("cp.async.wait_group 1;" ::: "memory"); break;
    case 2: asm volatile("cp.async.wait_group 2;" ::: "memory"); break;
    case 3: asm volatile("cp.async.wait_group 3;" ::: "memory"); break;
    case 4: asm volatile("cp.async.wait_group 4;" ::: "memory"); break;
    case 5: asm volatile("cp.async.wait_group 5;" ::: "memory"); break;
    case 6: asm volatile("cp.async.wait_group 6;" ::: "memory"); break;
    case 7: asm volatile("cp.async.wait_group 7;" ::: "memory"); break;
    default: asm volatile("cp.async.wait_group 8;" ::: "memory"); break;
    }
}
#else
__HDRT_FN void __pipeline_memcpy_async(void *to, const void *from, size_t size, size_t zeros = 0)
{
    for (size_t i = 0; i < size; i += 4)
        *(unsigned int *)((char *)to + i) = 0;
    __builtin_memcpy(to, from, size - zeros);
}
__HDRT_FN void __pipeline_commit() {}
__HDRT_FN void __pipeline_wait_prior(size_t) {}
#endif

#endif
