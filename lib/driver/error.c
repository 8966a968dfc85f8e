/* SPDX-License-Identifier: MIT */
#include "driver/error.h"

#include <stdio.h>

#include "base/status.h"

/* The words of a code that a user may meet, and its status where HDRT_ERROR_DRIVER says too little. */
typedef struct meaning {
    hdcu_result result;
    hdrt_status status;
    const char *text;
} meaning;

static const meaning meanings[] = {
    {HDCU_SUCCESS, HDRT_OK, "success"},
    {HDCU_ERROR_INVALID_VALUE, HDRT_ERROR_INVALID_ARGUMENT,
     "an argument is out of range, or an address is not the driver's"},
    {HDCU_ERROR_OUT_OF_MEMORY, HDRT_ERROR_OUT_OF_DEVICE_MEMORY, "out of memory"},
    {HDCU_ERROR_NOT_INITIALIZED, HDRT_ERROR_DRIVER, "the driver is not initialised, or the process was forked"},
    {HDCU_ERROR_DEINITIALIZED, HDRT_ERROR_DRIVER, "the driver is shutting down: the process is about to end"},
    {HDCU_ERROR_STUB_LIBRARY, HDRT_ERROR_DRIVER_STUB, "the library is the toolkit's link-time stub"},
    {HDCU_ERROR_CALL_REQUIRES_NEWER_DRIVER, HDRT_ERROR_DRIVER_TOO_OLD, "the call needs a newer driver"},
    {HDCU_ERROR_DEVICE_UNAVAILABLE, HDRT_ERROR_DRIVER, "the device is busy or in exclusive use by another process"},
    {HDCU_ERROR_NO_DEVICE, HDRT_ERROR_NO_DEVICE, "no CUDA device"},
    {HDCU_ERROR_INVALID_DEVICE, HDRT_ERROR_INVALID_ARGUMENT, "no such device, or not one for this operation"},
    {HDCU_ERROR_INVALID_IMAGE, HDRT_ERROR_INVALID_IMAGE, "the code image is damaged"},
    {HDCU_ERROR_INVALID_CONTEXT, HDRT_ERROR_DRIVER, "the context is not valid or was destroyed"},
    {HDCU_ERROR_NO_BINARY_FOR_GPU, HDRT_ERROR_INVALID_IMAGE, "the code image is for another GPU architecture"},
    {HDCU_ERROR_ECC_UNCORRECTABLE, HDRT_ERROR_DRIVER, "uncorrectable ECC error"},
    {HDCU_ERROR_UNSUPPORTED_LIMIT, HDRT_ERROR_UNSUPPORTED, "the device has no such limit"},
    {HDCU_ERROR_PEER_ACCESS_UNSUPPORTED, HDRT_ERROR_UNSUPPORTED, "the devices cannot reach each other's memory"},
    {HDCU_ERROR_INVALID_PTX, HDRT_ERROR_INVALID_IMAGE, "the PTX does not assemble"},
    {HDCU_ERROR_JIT_COMPILER_NOT_FOUND, HDRT_ERROR_UNSUPPORTED,
     "the driver's PTX compiler (libnvidia-ptxjitcompiler) is missing"},
    {HDCU_ERROR_UNSUPPORTED_PTX_VERSION, HDRT_ERROR_INVALID_IMAGE,
     "the PTX is of a newer version than the driver knows"},
    {HDCU_ERROR_JIT_COMPILATION_DISABLED, HDRT_ERROR_UNSUPPORTED, "compiling PTX is disabled (CUDA_DISABLE_PTX_JIT)"},
    {HDCU_ERROR_CONTAINED, HDRT_ERROR_DEVICE_LOST, "memory corruption, contained to this process"},
    {HDCU_ERROR_INVALID_SOURCE, HDRT_ERROR_INVALID_IMAGE, "the code image cannot be read"},
    {HDCU_ERROR_FILE_NOT_FOUND, HDRT_ERROR_NOT_FOUND, "file not found"},
    {HDCU_ERROR_OPERATING_SYSTEM, HDRT_ERROR_DRIVER, "an operating system call failed"},
    {HDCU_ERROR_INVALID_HANDLE, HDRT_ERROR_INVALID_ARGUMENT, "a handle is not valid or of another context"},
    {HDCU_ERROR_NOT_FOUND, HDRT_ERROR_NOT_FOUND, "no such name"},
    {HDCU_ERROR_NOT_READY, HDRT_NOT_READY, "not complete yet"},
    {HDCU_ERROR_ILLEGAL_ADDRESS, HDRT_ERROR_DEVICE_LOST, "a kernel used an illegal address"},
    {HDCU_ERROR_LAUNCH_OUT_OF_RESOURCES, HDRT_ERROR_LAUNCH, "too many registers or too much memory for the launch"},
    {HDCU_ERROR_LAUNCH_TIMEOUT, HDRT_ERROR_DEVICE_LOST, "a kernel ran longer than the display's watchdog allows"},
    {HDCU_ERROR_ASSERT, HDRT_ERROR_DEVICE_LOST, "an assertion in a kernel failed"},
    {HDCU_ERROR_HOST_MEMORY_ALREADY_REGISTERED, HDRT_ERROR_INVALID_ARGUMENT, "the host memory is registered already"},
    {HDCU_ERROR_HOST_MEMORY_NOT_REGISTERED, HDRT_ERROR_INVALID_ARGUMENT, "the host memory is not registered"},
    {HDCU_ERROR_HARDWARE_STACK_ERROR, HDRT_ERROR_DEVICE_LOST, "a kernel corrupted or overflowed its stack"},
    {HDCU_ERROR_ILLEGAL_INSTRUCTION, HDRT_ERROR_DEVICE_LOST, "a kernel met an illegal instruction"},
    {HDCU_ERROR_MISALIGNED_ADDRESS, HDRT_ERROR_DEVICE_LOST, "a kernel used a misaligned address"},
    {HDCU_ERROR_INVALID_ADDRESS_SPACE, HDRT_ERROR_DEVICE_LOST, "a kernel used an address of the wrong memory space"},
    {HDCU_ERROR_INVALID_PC, HDRT_ERROR_DEVICE_LOST, "a kernel jumped to an invalid address"},
    {HDCU_ERROR_LAUNCH_FAILED, HDRT_ERROR_DEVICE_LOST,
     "a kernel failed (a trap, or a fault without a code of its own)"},
    {HDCU_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, HDRT_ERROR_LAUNCH,
     "the cooperative grid does not fit on the device at once"},
    {HDCU_ERROR_TENSOR_MEMORY_LEAK, HDRT_ERROR_DEVICE_LOST, "a kernel ended without giving back its tensor memory"},
    {HDCU_ERROR_NOT_PERMITTED, HDRT_ERROR_DRIVER, "not permitted"},
    {HDCU_ERROR_NOT_SUPPORTED, HDRT_ERROR_UNSUPPORTED, "not supported by this driver or device"},
    {HDCU_ERROR_SYSTEM_NOT_READY, HDRT_ERROR_DRIVER,
     "the system is not ready: a service such as the fabric manager is not running"},
    {HDCU_ERROR_SYSTEM_DRIVER_MISMATCH, HDRT_ERROR_DRIVER,
     "libcuda and the kernel module are of different driver versions"},
    {HDCU_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, HDRT_ERROR_DRIVER,
     "the forward compatibility package does not support this device"},
    {HDCU_ERROR_MPS_CLIENT_TERMINATED, HDRT_ERROR_DEVICE_LOST, "the MPS server ended this client"},
    {HDCU_ERROR_STREAM_CAPTURE_UNSUPPORTED, HDRT_ERROR_CAPTURING, "not permitted while a stream is being captured"},
    {HDCU_ERROR_STREAM_CAPTURE_INVALIDATED, HDRT_ERROR_CAPTURING, "the stream's capture was invalidated"},
    {HDCU_ERROR_STREAM_CAPTURE_MERGE, HDRT_ERROR_CAPTURING, "two independent captures would be merged"},
    {HDCU_ERROR_STREAM_CAPTURE_UNMATCHED, HDRT_ERROR_CAPTURING, "the stream was not captured from here"},
    {HDCU_ERROR_STREAM_CAPTURE_UNJOINED, HDRT_ERROR_CAPTURING, "a captured stream was not joined"},
    {HDCU_ERROR_STREAM_CAPTURE_ISOLATION, HDRT_ERROR_CAPTURING, "a dependency would leave the captured graph"},
    {HDCU_ERROR_STREAM_CAPTURE_IMPLICIT, HDRT_ERROR_CAPTURING, "an implicit dependency on the captured legacy stream"},
    {HDCU_ERROR_CAPTURED_EVENT, HDRT_ERROR_CAPTURING, "the event was last recorded in a captured stream"},
    {HDCU_ERROR_STREAM_CAPTURE_WRONG_THREAD, HDRT_ERROR_CAPTURING, "another thread began the capture"},
    {HDCU_ERROR_EXTERNAL_DEVICE, HDRT_ERROR_DEVICE_LOST, "an external device that takes part failed"},
    {HDCU_ERROR_INVALID_CLUSTER_SIZE, HDRT_ERROR_LAUNCH, "the cluster does not fit the kernel or the device"},
    {HDCU_ERROR_UNKNOWN, HDRT_ERROR_DRIVER, "unknown error inside the driver"},
};

static const meaning *find(hdcu_result result)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].result == result)
            return &meanings[i];
    return NULL;
}

const char *hdrt__result_name(hdcu_result result)
{
    switch (result) {
#define NAME_CASE(name, number)                                                                                        \
    case number:                                                                                                       \
        return "CUDA_" #name;
        HDCU_RESULT_LIST(NAME_CASE)
#undef NAME_CASE
    default:
        return "CUDA_ERROR_?";
    }
}

const char *hdrt__result_text(hdcu_result result)
{
    const meaning *known = find(result);
    return known ? known->text : "see the CUDA driver's documentation";
}

hdrt_status hdrt__result_status(hdcu_result result)
{
    const meaning *known = find(result);
    return known ? known->status : HDRT_ERROR_DRIVER;
}

bool hdrt__result_is_lost(hdcu_result result)
{
    return hdrt__result_status(result) == HDRT_ERROR_DEVICE_LOST;
}

hdrt_status hdrt__call_failed_with(hdcu_result result, const char *call, const char *format, va_list arguments)
{
    if (result == HDCU_SUCCESS)
        return HDRT_OK;
    char attempted[512];
    if (vsnprintf(attempted, sizeof attempted, format, arguments) < 0)
        attempted[0] = 0;
    return hdrt__fail(hdrt__result_status(result), "%s: %s failed: %s (%u): %s", attempted, call,
                      hdrt__result_name(result), result, hdrt__result_text(result));
}

hdrt_status hdrt__call_failed(hdrt__call call, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    hdrt_status status = hdrt__call_failed_with(call.result, call.text, format, arguments);
    va_end(arguments);
    return status;
}
