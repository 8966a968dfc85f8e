/* SPDX-License-Identifier: MIT */
/*
 * The loaded modules of a device that are shared by the name of their code: those in use, and those kept loaded
 * although nobody uses them any more, since loading again would hold up every launch (hdrt_module_preload). Used by
 * module.c.
 *
 *     IN USE --last reference goes--> KEPT --found again--> IN USE
 *                                      +--the bounds, or the device's end--> unloaded
 *
 * A kept module has no reference and does not hold its device, which unloads it at its own end.
 */
#ifndef HDRT_JIT_SHARED_H
#define HDRT_JIT_SHARED_H

#include "jit/module.h"

#define HDRT__KEPT_MODULES 64u
#define HDRT__KEPT_BYTES ((size_t)64 << 20) /* of code, as hdrt__code_bytes counts */

/* The loaded module that has this code, with a reference of the caller's; NULL if there is none. */
hdrt_module *hdrt__shared_find(hdrt_device *device, const hdrt__digest *name);
/* Enter a loaded module, unless another with the same code is there by now; sets its `shared`. */
void hdrt__shared_enter(hdrt_device *device, hdrt_module *module);
/*
 * A shared module's last reference went: keep it loaded, without its hold of the device, which the caller drops
 * afterwards; or with `keep` false take it out. \return a module, maybe the same, that is now to be unloaded and freed.
 */
hdrt_module *hdrt__shared_keep(hdrt_module *module, bool keep);

#endif
