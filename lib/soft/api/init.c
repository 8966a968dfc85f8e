/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "soft/api/entry.h"
#include "soft/model/inject.h"

#define VERSION 13000

int hdsoft__api_version(void)
{
    if (hdsoft__inject_version())
        return hdsoft__inject_version();
    const char *text = secure_getenv("HDSOFT_DRIVER_VERSION");
    long version = text ? strtol(text, NULL, 10) : VERSION;
    return version >= 1000 && version < VERSION ? (int)version : VERSION;
}

hdsoft__context *hdsoft__here(void)
{
    hdsoft__context *context;
    hdsoft__current(&context);
    return context;
}

hdsoft__device *hdsoft__device_at(hdcu_device ordinal)
{
    return ordinal >= 0 && (unsigned)ordinal < hdsoft__the.device_count ? &hdsoft__the.devices[ordinal] : NULL;
}

hdsoft__device *hdsoft__device_of(uint64_t address)
{
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        if (hdsoft__memory_is_device(hdsoft__the.devices[i].memory, address))
            return &hdsoft__the.devices[i];
    }
    return NULL;
}

bool hdsoft__range_of(uint64_t address, hdsoft__allocation *out, hdsoft__device **device)
{
    *device = hdsoft__device_of(address);
    return hdsoft__memory_lookup(*device ? (*device)->memory : hdsoft__the.hosts, address, out);
}

hdcu_result hdsoft__synchronised(int status)
{
    hdsoft__unlock();
    hdsoft__print_flush();
    hdsoft__lock();
    return (hdcu_result)status;
}

hdsoft__allocation hdsoft__born(hdsoft__range_state state)
{
    return (hdsoft__allocation){
        .state = state, .owner = hdsoft__here(), .birth = hdsoft__the.next_sequence, .made = hdsoft__site_here()};
}

hdcu_result hdsoft__cuInit(unsigned flags)
{
    return flags ? HDCU_ERROR_INVALID_VALUE : (hdcu_result)hdsoft__driver_start();
}

hdcu_result hdsoft__cuDriverGetVersion(int *version)
{
    if (!version)
        return HDCU_ERROR_INVALID_VALUE;
    *version = hdsoft__api_version();
    return 0;
}

/* Said as libcuda says it, because people search for these words. */
static const struct {
    unsigned code;
    const char *text;
} texts[] = {
    {0, "no error"},
    {1, "invalid argument"},
    {2, "out of memory"},
    {3, "initialization error"},
    {4, "driver shutting down"},
    {5, "profiler disabled while using external profiling tool"},
    {6, "profiler not initialized: call cudaProfilerInitialize()"},
    {7, "profiler already started"},
    {8, "profiler already stopped"},
    {34, "CUDA driver is a stub library"},
    {36, "API call is not supported in the installed CUDA driver"},
    {46, "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "no CUDA-capable device is detected"},
    {101, "invalid device ordinal"},
    {102, "device doesn't have valid Grid license"},
    {200, "device kernel image is invalid"},
    {201, "invalid device context"},
    {202, "context already current"},
    {205, "mapping of buffer object failed"},
    {206, "unmapping of buffer object failed"},
    {207, "array is mapped"},
    {208, "resource already mapped"},
    {209, "no kernel image is available for execution on the device"},
    {210, "resource already acquired"},
    {211, "resource not mapped"},
    {212, "resource not mapped as array"},
    {213, "resource not mapped as pointer"},
    {214, "uncorrectable ECC error encountered"},
    {215, "limit is not supported on this architecture"},
    {216, "exclusive-thread device already in use by a different thread"},
    {217, "peer access is not supported between these two devices"},
    {218, "a PTX JIT compilation failed"},
    {219, "invalid OpenGL or DirectX context"},
    {220, "uncorrectable NVLink error detected during the execution"},
    {221, "PTX JIT compiler library not found"},
    {222, "the provided PTX was compiled with an unsupported toolchain."},
    {223, "PTX JIT compilation was disabled"},
    {224, "the provided execution affinity is not supported"},
    {225, "the provided PTX contains unsupported call to cudaDeviceSynchronize"},
    {226, "Invalid access of peer GPU memory over nvlink or a hardware error"},
    {300, "device kernel image is invalid"},
    {301, "file not found"},
    {302, "shared object symbol not found"},
    {303, "shared object initialization failed"},
    {304, "OS call failed or operation not supported on this OS"},
    {400, "invalid resource handle"},
    {401, "the operation cannot be performed in the present state"},
    {402, "attempted introspection would be semantically lossy"},
    {500, "named symbol not found"},
    {600, "device not ready"},
    {700, "an illegal memory access was encountered"},
    {701, "too many resources requested for launch"},
    {702, "the launch timed out and was terminated"},
    {703, "launch uses incompatible texturing mode"},
    {704, "peer access is already enabled"},
    {705, "peer access has not been enabled"},
    {708, "cannot set while device is active in this process"},
    {709, "context is destroyed"},
    {710, "device-side assert triggered"},
    {711, "peer mapping resources exhausted"},
    {712, "part or all of the requested memory range is already mapped"},
    {713, "pointer does not correspond to a registered memory region"},
    {714, "hardware stack error"},
    {715, "an illegal instruction was encountered"},
    {716, "misaligned address"},
    {717, "operation not supported on global/shared address space"},
    {718, "invalid program counter"},
    {719, "unspecified launch failure"},
    {720, "too many blocks in cooperative launch"},
    {721, "tensor memory not completely freed"},
    {800, "operation not permitted"},
    {801, "operation not supported"},
    {802, "system not yet initialized"},
    {803, "system has unsupported display driver / cuda driver combination"},
    {804, "forward compatibility was attempted on non supported HW"},
    {805, "MPS client failed to connect to the MPS control daemon or the MPS server"},
    {806, "the remote procedural call between the MPS server and the MPS client failed"},
    {807, "MPS server is not ready to accept new MPS client requests"},
    {808, "the hardware resources required to create MPS client have been exhausted"},
    {809, "the hardware resources required to support device connections have been exhausted"},
    {810, "the MPS client has been terminated by the server"},
    {811, "is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it"},
    {812, "unsupported interaction between different versions of CUDA Dynamic Parallelism"},
    {900, "operation not permitted when stream is capturing"},
    {901, "operation failed due to a previous error during capture"},
    {902, "operation would result in a merge of separate capture sequences"},
    {903, "capture was not ended in the same stream as it began"},
    {904, "capturing stream has unjoined work"},
    {905, "dependency created on uncaptured work in another stream"},
    {906, "operation would make the legacy stream depend on a capturing blocking stream"},
    {907, "operation not permitted on an event last recorded in a capturing stream"},
    {908, "attempt to terminate a thread-local capture sequence from another thread"},
    {909, "wait operation timed out"},
    {910, "the graph update was not performed because it included changes which violated constraints "
          "specific to instantiated graph update"},
    {911, "an async error has occured in external entity outside of CUDA"},
    {912, "a kernel launch error has occurred due to cluster misconfiguration"},
    {913, "the function handle is not loaded when calling an API that requires a loaded function"},
    {914, "one or more resources passed in are not valid resource types for the operation"},
    {915, "one or more resources are insufficient or non-applicable for the operation"},
    {916, "an error happened during the key rotation sequence"},
    {999, "unknown error"},
};

static const char *name_of(unsigned code)
{
    switch (code) {
#define NAME_CASE(name, number) \
    case number: return "CUDA_" #name;
        HDCU_RESULT_LIST(NAME_CASE)
#undef NAME_CASE
    default: return NULL;
    }
}

hdcu_result hdsoft__cuGetErrorName(hdcu_result code, const char **out)
{
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    *out = name_of(code);
    return *out ? 0 : HDCU_ERROR_INVALID_VALUE;
}

hdcu_result hdsoft__cuGetErrorString(hdcu_result code, const char **out)
{
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    *out = name_of(code);
    for (size_t i = 0; *out && i < sizeof texts / sizeof *texts; i++) {
        if (texts[i].code == code)
            *out = texts[i].text;
    }
    return *out ? 0 : HDCU_ERROR_INVALID_VALUE;
}
