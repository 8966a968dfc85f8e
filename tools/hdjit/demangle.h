/* SPDX-License-Identifier: MIT */
/*
 * C++ names as people write them, by the C++ library if there is one: hdjit itself needs none.
 */
#ifndef HDJIT_DEMANGLE_H
#define HDJIT_DEMANGLE_H

/* malloc'ed; NULL: it is no mangled name, or it cannot be told. */
char *demangle(const char *name);

#endif
