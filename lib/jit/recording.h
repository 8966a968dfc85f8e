/* SPDX-License-Identifier: MIT */
/*
 * What an application compiled, for `hdjit precompile`: with HDRT_RECORD set to a file's name, each compile that
 * succeeds (from the cache or not) appends one line of JSON to it, once for each key and jit. Any number of processes
 * may append. A file that cannot be written is said once, and costs no compile.
 *
 *     {"version":1,"path":"/a/k.cu" | "text":"...","name":"...","directory":"/a",
 *      "headers":[{"name":"x.h","text":"..."}],"options":["-DN=4"],"names":["k<int>"],
 *      "compiler":"clang","kind":"ptx","arch":"sm_90","lower_arch":true,"libdevice":false}
 *
 * "path" is the source's file, or "text" its bytes; text that is not UTF-8 stands as "text_base64" instead. "arch" is
 * the target that was asked for, by the device's where the caller named none. "libdevice" is false where it must not be
 * linked: for the soft driver, or where there is none.
 */
#ifndef HDRT_JIT_RECORDING_H
#define HDRT_JIT_RECORDING_H

#include <hdrt.h>

#include "jit/key.h"
#include "jit/source.h"

typedef struct hdrt__recording hdrt__recording;

/* NULL if none is asked for; HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY. */
hdrt_status hdrt__recording_create(hdrt__recording **out_recording);
void hdrt__recording_destroy(hdrt__recording *recording);
/* Any thread. `recording` may be NULL. */
void hdrt__recording_add(hdrt__recording *recording, const hdrt__digest *key, const hdrt__input *input,
                         const hdrt__request *request);

#endif
