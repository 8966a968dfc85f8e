/* SPDX-License-Identifier: MIT */
#include "target.h"

#include "message.h"
#include "session.h"

#include <stdio.h>

void target_compiler(options *o)
{
    if (o->kind == HDRT_CODE_CUBIN || o->kind == HDRT_CODE_LTO_IR)
        o->compiler = HDRT_COMPILER_NVRTC;
    else if (o->compiler == HDRT_COMPILER_AUTO && o->driver == DRIVER_SOFT)
        o->compiler = HDRT_COMPILER_CLANG;
}

int target_choose(const options *o, hdrt_compile_options *wanted, char arch[TARGET_ROOM])
{
    hdrt_device_info info = HDRT_DEVICE_INFO_INIT;
    session s = {0};
    hdrt_status status;
    int code = 0;

    *arch = 0;
    if (wanted->arch)
        return 0;
    if (o->driver == DRIVER_AUTO) {
        status = session_runtime(o, HDRT_DRIVER_CUDA, &s.runtime);
        if (status != HDRT_OK) {
            note("%s: compiling for sm_80 (-arch=sm_XX chooses)", hdrt_status_text(status));
            return 0;
        }
    } else if ((code = session_open(o, &s)) != 0) {
        return code;
    }
    status = hdrt_runtime_device_info(s.runtime, o->device, &info);
    if (status == HDRT_OK)
        snprintf(arch, TARGET_ROOM, "sm_%u", info.compute_capability);
    else
        code = fail_status(EXIT_CODE_NO_DEVICE, status, "device %u cannot be used", o->device);
    session_close(&s);
    wanted->arch = *arch ? arch : NULL;
    wanted->lower_arch = wanted->arch != NULL;
    return code;
}
