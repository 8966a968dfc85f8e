/* SPDX-License-Identifier: MIT */
#include "jit/module.h"

#include <hdrt/interop.h>

struct CUmod_st *hdrt_module_handle(const hdrt_module *module)
{
    return module ? module->loaded->handle : NULL;
}

struct CUfunc_st *hdrt_kernel_function(const hdrt_kernel *kernel)
{
    return kernel ? kernel->function : NULL;
}
