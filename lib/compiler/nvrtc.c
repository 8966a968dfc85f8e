/* SPDX-License-Identifier: MIT */
#include "compiler/nvrtc.h"

void hdrt__cc_compile_nvrtc(hdrt__cc_nvrtc_state **state, int socket, const hdrt__cc_request *request,
                            hdrt__cc_reply *reply)
{
    hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_NO_COMPILER, "'%s' is not opened", request->compiler_path);
}

void hdrt__cc_nvrtc_state_free(hdrt__cc_nvrtc_state *state)
{
}
