/* SPDX-License-Identifier: MIT */
/* Linking code by nvJitLink. */
#include "base/status.h"
#include "device/runtime.h"
#include "jit/image_api.h"

hdrt_status hdrt_image_link(hdrt_runtime *runtime, const hdrt_link_input *inputs, uint32_t count,
                            const hdrt_link_options *options, hdrt_image **out_image)
{
    (void)inputs, (void)count, (void)options;
    if (!out_image)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_image_link: out_image is NULL");
    *out_image = NULL;
    hdrt_status status = hdrt__runtime_begin(runtime, "hdrt_image_link");
    return status == HDRT_OK ? hdrt__fail(HDRT_ERROR_UNSUPPORTED, "linking is not in this version") : status;
}
