/* SPDX-License-Identifier: MIT */
/*
 * Bundles: several image files in one container, for several targets or of several sources. hdrt_module_load hands one
 * to hdrt__bundle_choose, which takes the image that fits the device best.
 */
#ifndef HDRT_JIT_BUNDLE_H
#define HDRT_JIT_BUNDLE_H

#include <hdrt.h>

#include "jit/image.h"
#include "jit/jit.h"

/* Whether bytes begin like a bundle. */
bool hdrt__is_bundle(const void *bytes, size_t size);

/*
 * The code that suits the target best: a cubin for just this GPU, else one for an older GPU of its major number, else
 * the newest PTX that it can be compiled from. HDRT_OK; HDRT_ERROR_INVALID_IMAGE  damaged; HDRT_ERROR_UNSUPPORTED  none
 * suits, the message lists those there; HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__bundle_choose(const void *bytes, size_t size, const char *name, const hdrt__target *target,
                                hdrt__code **out_code);

/*
 * How well code suits a target, for the choice above; 0: not at all. `arch` is the target's: "sm_90".
 */
uint32_t hdrt__bundle_fit(const hdrt__code *code, const hdrt__target *target);

#endif
