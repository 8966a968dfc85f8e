/* SPDX-License-Identifier: MIT */
/* Between the runner and the support of checks: one check, in this process. */
#ifndef CONFORMANCE_CHILD_H
#define CONFORMANCE_CHILD_H

#include "conformance.h"

/* The answer, valid until the next check; `unwell` tells that this process should run no further one. */
const char *child_run_check(const check *chosen, bool *unwell);

#endif
