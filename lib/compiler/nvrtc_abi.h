/* SPDX-License-Identifier: MIT */
/*
 * The part of NVRTC's interface that is used, in our own declarations, so that nothing of a toolkit is needed to build.
 * All of it is the same in 11.2 to 13. Symbols that came later are looked up one by one, and their absence means that
 * the library cannot do that.
 */
#ifndef HDRT_COMPILER_NVRTC_ABI_H
#define HDRT_COMPILER_NVRTC_ABI_H

#include <stddef.h>

typedef struct _nvrtcProgram *hdrt__nvrtc_program;
typedef int hdrt__nvrtc_result;

#define HDRT__NVRTC_SUCCESS 0
#define HDRT__NVRTC_OUT_OF_MEMORY 1
#define HDRT__NVRTC_INVALID_OPTION 5
#define HDRT__NVRTC_COMPILATION 6
#define HDRT__NVRTC_BUILTIN_OPERATION_FAILURE 7

/* name, result, parameters */
#define HDRT__NVRTC_REQUIRED(X) \
    X(nvrtcVersion, hdrt__nvrtc_result, (int *major, int *minor)) \
    X(nvrtcGetErrorString, const char *, (hdrt__nvrtc_result result)) \
    X(nvrtcCreateProgram, hdrt__nvrtc_result, \
      (hdrt__nvrtc_program *program, const char *source, const char *name, int header_count, \
       const char *const *headers, const char *const *header_names)) \
    X(nvrtcDestroyProgram, hdrt__nvrtc_result, (hdrt__nvrtc_program *program)) \
    X(nvrtcCompileProgram, hdrt__nvrtc_result, \
      (hdrt__nvrtc_program program, int option_count, const char *const *options)) \
    X(nvrtcGetPTXSize, hdrt__nvrtc_result, (hdrt__nvrtc_program program, size_t *size)) \
    X(nvrtcGetPTX, hdrt__nvrtc_result, (hdrt__nvrtc_program program, char *bytes)) \
    X(nvrtcGetProgramLogSize, hdrt__nvrtc_result, (hdrt__nvrtc_program program, size_t *size)) \
    X(nvrtcGetProgramLog, hdrt__nvrtc_result, (hdrt__nvrtc_program program, char *bytes))

#define HDRT__NVRTC_OPTIONAL(X) \
    X(nvrtcGetNumSupportedArchs, hdrt__nvrtc_result, (int *count)) /* 11.2 */ \
    X(nvrtcGetSupportedArchs, hdrt__nvrtc_result, (int *numbers)) /* 11.2 */ \
    X(nvrtcGetCUBINSize, hdrt__nvrtc_result, (hdrt__nvrtc_program program, size_t *size)) /* 11.1 */ \
    X(nvrtcGetCUBIN, hdrt__nvrtc_result, (hdrt__nvrtc_program program, char *bytes)) /* 11.1 */ \
    X(nvrtcGetLTOIRSize, hdrt__nvrtc_result, (hdrt__nvrtc_program program, size_t *size)) /* 12.0 */ \
    X(nvrtcGetLTOIR, hdrt__nvrtc_result, (hdrt__nvrtc_program program, char *bytes)) /* 12.0 */ \
    X(nvrtcAddNameExpression, hdrt__nvrtc_result, (hdrt__nvrtc_program program, const char *expression)) /* 8.0 */ \
    X(nvrtcGetLoweredName, hdrt__nvrtc_result, \
      (hdrt__nvrtc_program program, const char *expression, const char **name)) /* 8.0 */

#define HDRT__NVRTC_TYPE(name, result, parameters) typedef result hdrt__##name parameters;
HDRT__NVRTC_REQUIRED(HDRT__NVRTC_TYPE)
HDRT__NVRTC_OPTIONAL(HDRT__NVRTC_TYPE)

#define HDRT__NVRTC_MEMBER(name, result, parameters) hdrt__##name *name;
typedef struct hdrt__nvrtc_table {
    HDRT__NVRTC_REQUIRED(HDRT__NVRTC_MEMBER)
    HDRT__NVRTC_OPTIONAL(HDRT__NVRTC_MEMBER)
} hdrt__nvrtc_table;

#endif
