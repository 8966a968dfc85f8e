/* SPDX-License-Identifier: MIT */
/* Random yields at the changes of a queue's state, for tests that link the core (yields.c). */
#ifndef TEST_STRESS_YIELDS_H
#define TEST_STRESS_YIELDS_H

#include <stdint.h>

/* From now on one of so many changes yields the processor; 0: none. */
void yields_set(uint32_t one_of);

#endif
