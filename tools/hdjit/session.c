/* SPDX-License-Identifier: MIT */
#include "session.h"

#include "message.h"

hdrt_status session_runtime(const options *o, hdrt_driver_kind kind, hdrt_runtime **out_runtime)
{
    hdrt_runtime_options wanted = HDRT_RUNTIME_OPTIONS_INIT;

    wanted.driver = kind;
    wanted.libexec = o->libexec;
    wanted.cache_dir = o->cache_dir;
    wanted.nvrtc = o->nvrtc;
    wanted.clang = o->clang;
    wanted.compile_workers = o->jobs;
    return hdrt_runtime_create(&wanted, out_runtime);
}

static int no_driver(hdrt_status status, const char *name)
{
    int code = status == HDRT_ERROR_OUT_OF_MEMORY ? EXIT_CODE_FAILED : EXIT_CODE_NO_DEVICE;

    return fail_status(code, status, "the %s driver cannot be used", name);
}

int session_open(const options *o, session *s)
{
    hdrt_status status;

    *s = (session){0};
    if (o->driver != DRIVER_SOFT) {
        status = session_runtime(o, HDRT_DRIVER_CUDA, &s->runtime);
        if (status == HDRT_OK)
            return 0;
        if (o->driver == DRIVER_CUDA)
            return no_driver(status, "cuda");
        note("%s: taking the soft driver, which runs kernels on the CPU (--driver=soft says so without this line, "
             "hdjit info has the details)", hdrt_status_text(status));
    }
    status = session_runtime(o, HDRT_DRIVER_SOFT, &s->runtime);
    if (status != HDRT_OK)
        return no_driver(status, "soft");
    s->soft = true;
    return 0;
}

int session_open_device(const options *o, session *s)
{
    hdrt_status status = hdrt_device_open(s->runtime, o->device, NULL, &s->device);
    int code = status == HDRT_ERROR_OUT_OF_MEMORY ? EXIT_CODE_FAILED : EXIT_CODE_NO_DEVICE;

    return status == HDRT_OK ? 0 : fail_status(code, status, "device %u cannot be used", o->device);
}

int session_open_compile_only(const options *o, session *s)
{
    hdrt_status status;

    *s = (session){0};
    status = session_runtime(o, HDRT_DRIVER_NONE, &s->runtime);
    return status == HDRT_OK ? 0 : fail_status(-1, status, "the runtime cannot be created");
}

void session_close(session *s)
{
    hdrt_device_close(s->device);
    hdrt_runtime_destroy(s->runtime);
    *s = (session){0};
}
