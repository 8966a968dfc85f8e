/* SPDX-License-Identifier: MIT */
#include "jit/module.h"

#include <hdrt/interop.h>

struct CUmod_st *hdrt_module_handle(const hdrt_module *module)
{
    hdrt_module *loaded;
    return module && hdrt__module_loaded(module, &loaded) == HDRT_OK ? loaded->handle : NULL;
}

struct CUfunc_st *hdrt_kernel_function(const hdrt_kernel *kernel)
{
    return kernel ? kernel->function : NULL;
}
