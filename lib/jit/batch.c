/* SPDX-License-Identifier: MIT */
/* Asynchronous and batch compiles. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/device.h"
#include "device/runtime.h"
#include "jit/image_api.h"
#include "jit/module.h"

/* ---- images ------------------------------------------------------------------------------------------------------ */

struct image_job {
    hdrt__service_job job;
    hdrt__jit *jit;    /* alive: the image's future holds the runtime */
    hdrt_image *image; /* held */
    hdrt__input input;
    hdrt__target target;
    hdrt__result result;
};

static void keep_image(void *argument)
{
    struct image_job *job = argument;
    job->image->result = job->result;
    job->result = (hdrt__result){0};
}

static void run_image(hdrt__service_job *service_job)
{
    struct image_job *job = (struct image_job *)service_job;
    hdrt_image *image = job->image;
    hdrt__cancel *cancel = hdrt__future_cancel_token(image->future);
    hdrt_status status = hdrt__cancel_asked(cancel) ? hdrt__cancelled()
                                                    : hdrt__jit_obtain(job->jit, &job->input, &job->target, true,
                                                                       cancel, &job->result);
    hdrt__future_keep(image->future, status, keep_image, job);
    hdrt__result_free(&job->result);
    hdrt__input_free(&job->input);
    free(job);
    hdrt__image_release(image);
}

static hdrt_status submit_image(hdrt_runtime *runtime, const hdrt_source *source, const hdrt_compile_options *options,
                                hdrt_image **out_image)
{
    hdrt__jit *jit = hdrt__runtime_jit(runtime);
    hdrt__service *service = NULL;
    struct image_job *job = jit ? calloc(1, sizeof(*job)) : NULL;
    if (!job)
        return jit ? hdrt__fail_memory(sizeof(*job), "a compile") : HDRT_ERROR_OUT_OF_MEMORY;
    job->job.run = run_image;
    job->jit = jit;
    hdrt__runtime_target(runtime, &job->target);
    hdrt_status status = hdrt__input_read(source, options, &job->input);
    if (status != HDRT_OK)
        goto free_job;
    hdrt_image *image = job->image = hdrt__image_create(job->input.name);
    status = image ? hdrt__future_create(runtime, &image->future) : HDRT_ERROR_OUT_OF_MEMORY;
    if (status == HDRT_OK)
        status = hdrt__jit_service(jit, &service);
    if (status != HDRT_OK)
        goto release_image;
    atomic_fetch_add(&image->references, 1);
    status = hdrt__service_submit(service, &job->job);
    if (status == HDRT_OK) {
        *out_image = image;
        return HDRT_OK;
    }
    atomic_fetch_sub(&image->references, 1);
release_image:
    if (image)
        hdrt__image_release(image);
    hdrt__input_free(&job->input);
free_job:
    free(job);
    return status;
}

hdrt_status hdrt_image_compile_async(hdrt_runtime *runtime, const hdrt_source *source,
                                     const hdrt_compile_options *options, hdrt_image **out_image, hdrt_event *out_event)
{
    if (out_event)
        *out_event = (hdrt_event){0, 0};
    if (!out_image)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_image_compile_async: out_image is NULL");
    *out_image = NULL;
    hdrt_status status = hdrt__runtime_begin(runtime, "hdrt_image_compile_async");
    if (status == HDRT_OK)
        status = submit_image(runtime, source, options, out_image);
    if (status == HDRT_OK && out_event)
        *out_event = hdrt__future_event((*out_image)->future);
    return status;
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

struct module_job {
    hdrt__service_job job;
    hdrt_module *module; /* held: the one under way */
    hdrt__input input;
    hdrt_module *opened; /* held: the loaded one */
    bool from_cache;
};

static void keep_module(void *argument)
{
    struct module_job *job = argument;
    if (job->opened)
        hdrt__module_become(job->module, job->opened, job->from_cache);
    job->opened = NULL;
}

static void run_module(hdrt__service_job *service_job)
{
    struct module_job *job = (struct module_job *)service_job;
    hdrt_module *module = job->module, *opened = NULL;
    hdrt__cancel *cancel = hdrt__future_cancel_token(module->future);
    hdrt_status status = hdrt__cancel_asked(cancel)
                             ? hdrt__cancelled()
                             : hdrt__module_from_input(module->device, &job->input, cancel, &opened);
    if (status == HDRT_OK) {
        job->from_cache = opened->from_cache;
        job->opened = atomic_load(&opened->loaded);
        hdrt__module_hold(job->opened);
        hdrt__module_release(opened);
    }
    hdrt__future_keep(module->future, status, keep_module, job);
    if (job->opened)
        hdrt__module_release(job->opened);
    hdrt__input_free(&job->input);
    free(job);
    hdrt__module_release(module);
}

static hdrt_status submit_module(hdrt_device *device, const hdrt_source *source, const hdrt_compile_options *options,
                                 hdrt_module **out_module)
{
    hdrt__jit *jit = hdrt__runtime_jit(device->runtime);
    hdrt__service *service = NULL;
    struct module_job *job = jit ? calloc(1, sizeof(*job)) : NULL;
    if (!job)
        return jit ? hdrt__fail_memory(sizeof(*job), "a compile") : HDRT_ERROR_OUT_OF_MEMORY;
    job->job.run = run_module;
    hdrt_status status = hdrt__input_read(source, options, &job->input);
    if (status != HDRT_OK)
        goto free_job;
    status = hdrt__module_create_pending(device, &job->module);
    if (status != HDRT_OK)
        goto free_input;
    status = hdrt__jit_service(jit, &service);
    if (status != HDRT_OK)
        goto release_module;
    hdrt_module *module = job->module;
    hdrt__module_hold(module);
    status = hdrt__service_submit(service, &job->job);
    if (status == HDRT_OK) {
        *out_module = module;
        return HDRT_OK;
    }
    hdrt__module_release(module);
release_module:
    hdrt__module_release(job->module);
free_input:
    hdrt__input_free(&job->input);
free_job:
    free(job);
    return status;
}

hdrt_status hdrt_module_compile_async(hdrt_device *device, const hdrt_source *source,
                                      const hdrt_compile_options *options, hdrt_module **out_module,
                                      hdrt_event *out_event)
{
    if (out_event)
        *out_event = (hdrt_event){0, 0};
    if (!out_module)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_module_compile_async: out_module is NULL");
    *out_module = NULL;
    hdrt_status status = hdrt__device_begin(device, "hdrt_module_compile_async");
    if (status == HDRT_OK)
        status = submit_module(device, source, options, out_module);
    if (status == HDRT_OK && out_event)
        *out_event = hdrt__future_event((*out_module)->future);
    return status;
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

hdrt_status hdrt_image_compile_batch(hdrt_runtime *runtime, const hdrt_compile_item *items, uint32_t count,
                                     hdrt_image **out_images)
{
    if (count && (!items || !out_images))
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_image_compile_batch: %s is NULL",
                          items ? "out_images" : "items");
    for (uint32_t i = 0; i < count; i++)
        out_images[i] = NULL;
    hdrt_status status = hdrt__runtime_begin(runtime, "hdrt_image_compile_batch");
    for (uint32_t i = 0; i < count && status == HDRT_OK; i++) {
        status = submit_image(runtime, items[i].source, items[i].options, &out_images[i]);
        if (status != HDRT_OK)
            hdrt__fail_prefix("compile %u of the batch", i);
    }
    if (status != HDRT_OK) {
        for (uint32_t i = 0; i < count; i++) {
            hdrt_image_destroy(out_images[i]);
            out_images[i] = NULL;
        }
        return status;
    }
    uint32_t failed = count;
    for (uint32_t i = 0; i < count; i++) {
        hdrt_event_wait(runtime, hdrt__future_event(out_images[i]->future), HDRT_FOREVER);
        if (failed == count && hdrt_image_status(out_images[i]) != HDRT_OK)
            failed = i;
    }
    if (failed == count)
        return HDRT_OK;
    status = hdrt_image_status(out_images[failed]); /* again, for its message */
    hdrt__fail_prefix("'%s'", out_images[failed]->name);
    return status;
}
