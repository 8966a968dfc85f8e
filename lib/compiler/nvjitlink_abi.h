/* SPDX-License-Identifier: MIT */
/* The part of nvJitLink's interface (12.0 to 13) that is used, in our own declarations. */
#ifndef HDRT_COMPILER_NVJITLINK_ABI_H
#define HDRT_COMPILER_NVJITLINK_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct nvJitLink *hdrt__nvjitlink;
typedef int hdrt__nvjitlink_result;

#define HDRT__NVJITLINK_SUCCESS 0
#define HDRT__NVJITLINK_UNRECOGNIZED_OPTION 1
#define HDRT__NVJITLINK_INTERNAL 6
#define HDRT__NVJITLINK_THREADPOOL 7
#define HDRT__NVJITLINK_INCOMPATIBLE_OPTIONS 11
#define HDRT__NVJITLINK_OUTDATED_LIBRARY 14
#define HDRT__NVJITLINK_UNRECOGNIZED_ARCH 16
#define HDRT__NVJITLINK_UNSUPPORTED_ARCH 17

/* name, parameters; all give a result */
#define HDRT__NVJITLINK_REQUIRED(X) \
    X(nvJitLinkCreate, (hdrt__nvjitlink *link, uint32_t option_count, const char **options)) \
    X(nvJitLinkDestroy, (hdrt__nvjitlink *link)) \
    X(nvJitLinkAddData, (hdrt__nvjitlink link, int type, const void *data, size_t size, const char *name)) \
    X(nvJitLinkComplete, (hdrt__nvjitlink link)) \
    X(nvJitLinkGetLinkedCubinSize, (hdrt__nvjitlink link, size_t *size)) \
    X(nvJitLinkGetLinkedCubin, (hdrt__nvjitlink link, void *bytes)) \
    X(nvJitLinkGetLinkedPtxSize, (hdrt__nvjitlink link, size_t *size)) \
    X(nvJitLinkGetLinkedPtx, (hdrt__nvjitlink link, char *bytes)) \
    X(nvJitLinkGetErrorLogSize, (hdrt__nvjitlink link, size_t *size)) \
    X(nvJitLinkGetErrorLog, (hdrt__nvjitlink link, char *bytes)) \
    X(nvJitLinkGetInfoLogSize, (hdrt__nvjitlink link, size_t *size)) \
    X(nvJitLinkGetInfoLog, (hdrt__nvjitlink link, char *bytes))

#define HDRT__NVJITLINK_OPTIONAL(X) X(nvJitLinkVersion, (unsigned *major, unsigned *minor)) /* 12.3 */

#define HDRT__NVJITLINK_TYPE(name, parameters) typedef hdrt__nvjitlink_result hdrt__##name parameters;
HDRT__NVJITLINK_REQUIRED(HDRT__NVJITLINK_TYPE)
HDRT__NVJITLINK_OPTIONAL(HDRT__NVJITLINK_TYPE)

#define HDRT__NVJITLINK_MEMBER(name, parameters) hdrt__##name *name;
typedef struct hdrt__nvjitlink_table {
    HDRT__NVJITLINK_REQUIRED(HDRT__NVJITLINK_MEMBER)
    HDRT__NVJITLINK_OPTIONAL(HDRT__NVJITLINK_MEMBER)
} hdrt__nvjitlink_table;

#endif
