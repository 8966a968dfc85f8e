/* SPDX-License-Identifier: MIT */
/* hdrt_cache_explain: what a compile would find in the cache, and what makes the difference if that is nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/device.h"
#include "device/runtime.h"
#include "jit/differ.h"
#include "jit/lookup.h"
#include "jit/state.h"

struct difference {
    hdrt_cache_reason reason;
    char *what, *before, *now;
};

struct hdrt_explanation {
    hdrt_cache_reason reason;
    char key[2 * HDRT__DIGEST_SIZE + 1], compared_to[2 * HDRT__DIGEST_SIZE + 1];
    char *text, *manifest, *image, *last_reason;
    struct difference *differences;
    uint32_t count;
    bool out_of_memory;
};

static bool copy(char **member, const char *text)
{
    return !text || (*member = strdup(text)) != NULL;
}

static void add(hdrt_explanation *explanation, hdrt_cache_reason reason, const char *what, const char *before,
                const char *now)
{
    struct difference *bigger = reallocarray(explanation->differences, explanation->count + 1u, sizeof(*bigger));
    if (!bigger) {
        explanation->out_of_memory = true;
        return;
    }
    explanation->differences = bigger;
    struct difference *difference = &bigger[explanation->count++];
    *difference = (struct difference){.reason = reason};
    if (!copy(&difference->what, what) || !copy(&difference->before, before) || !copy(&difference->now, now))
        explanation->out_of_memory = true;
}

static void add_field(void *context, uint32_t tag, const char *before, const char *now)
{
    add(context, hdrt__key_reason(tag), hdrt__key_label(tag), before, now);
}

/* Files that made the difference to this invocation's own manifest. */
static void explain_file(hdrt_explanation *explanation, const hdrt__finding *finding)
{
    const char *path = finding->path.bytes && !finding->path.failed ? (const char *)finding->path.bytes : NULL;
    switch (finding->reason) {
    case HDRT_CACHE_FILE_CHANGED:
        add(explanation, finding->reason, path, "other contents", "these contents");
        break;
    case HDRT_CACHE_FILE_GONE:
        add(explanation, finding->reason, path, "there", NULL);
        break;
    case HDRT_CACHE_FILE_APPEARED:
        add(explanation, finding->reason, path, NULL, "there");
        break;
    default:
        break;
    }
}

/* A key that there is no manifest of: its fields against the nearest's. */
static void explain_key(hdrt_explanation *explanation, hdrt__jit *jit, const hdrt__request *request)
{
    hdrt__fields fields;
    hdrt__manifest nearest;
    if (!hdrt__fields_of(request, &fields)) {
        explanation->out_of_memory = true;
        return;
    }
    if (hdrt__nearest_manifest(jit->store, request->name, &fields, &nearest)) {
        hdrt__digest_hex(&nearest.key, explanation->compared_to);
        hdrt__fields_compare(&nearest.fields, &fields, add_field, explanation);
        if (explanation->count)
            explanation->reason = explanation->differences[0].reason;
        hdrt__manifest_free(&nearest);
    }
    hdrt__fields_free(&fields);
}

static void put_text(hdrt_explanation *explanation)
{
    hdrt__buffer text = HDRT__BUFFER_INIT;
    hdrt__buffer_text(&text, hdrt_cache_reason_text(explanation->reason));
    for (uint32_t i = 0; i < explanation->count; i++) {
        const struct difference *difference = &explanation->differences[i];
        hdrt__buffer_format(&text, "%s%s", i ? "; " : ": ", difference->what ? difference->what : "");
        if (difference->reason == HDRT_CACHE_FILE_CHANGED || difference->reason == HDRT_CACHE_FILE_GONE ||
            difference->reason == HDRT_CACHE_FILE_APPEARED || difference->reason == HDRT_CACHE_SOURCE_CHANGED)
            continue;
        if (difference->before && difference->now)
            hdrt__buffer_format(&text, " '%s' before, '%s' now", difference->before, difference->now);
        else if (difference->now)
            hdrt__buffer_format(&text, " '%s' is new", difference->now);
        else if (difference->before)
            hdrt__buffer_format(&text, " '%s' is gone", difference->before);
    }
    explanation->text = hdrt__buffer_take(&text, NULL);
    hdrt__buffer_free(&text);
}

struct question {
    hdrt__jit *jit;
    bool no_cache;
    hdrt_explanation *explanation;
};

static hdrt_status answer(void *context, const hdrt__request *request, const hdrt__digest *key)
{
    struct question *question = context;
    hdrt_explanation *explanation = question->explanation;
    hdrt__store *store = question->jit->store;
    hdrt__finding finding;
    hdrt__look_closely(question->jit, key, &finding);
    hdrt__digest_hex(key, explanation->key);
    explanation->reason = question->no_cache ? HDRT_CACHE_OFF : finding.reason;
    explanation->manifest = hdrt__store_path(store, finding.folder, key, HDRT__ENTRY_MANIFEST);
    if (explanation->reason == HDRT_CACHE_HIT)
        explanation->image = hdrt__store_path(store, finding.image_folder, &finding.image, HDRT__ENTRY_IMAGE);
    explanation->last_reason = finding.last_reason;
    finding.last_reason = NULL;
    explain_file(explanation, &finding);
    if (explanation->reason == HDRT_CACHE_NEW)
        explain_key(explanation, question->jit, request);
    put_text(explanation);
    hdrt__finding_free(&finding);
    return explanation->text && !explanation->out_of_memory ? HDRT_OK : hdrt__fail_memory(0, "an explanation");
}

static hdrt_status explain(hdrt_runtime *runtime, const hdrt_source *source, const hdrt_compile_options *options,
                           const hdrt__target *target, hdrt_explanation **out_explanation)
{
    hdrt__jit *jit = hdrt__runtime_jit(runtime);
    hdrt_explanation *explanation = jit ? calloc(1, sizeof(*explanation)) : NULL;
    if (!explanation)
        return hdrt__fail_memory(sizeof(*explanation), "an explanation");
    hdrt__input input;
    hdrt_status status = hdrt__input_read(source, options, &input);
    if (status == HDRT_OK) {
        struct question question = {jit, input.asked.no_cache, explanation};
        status = hdrt__jit_request(jit, &input, target, answer, &question);
        hdrt__input_free(&input);
    }
    if (status != HDRT_OK) {
        hdrt_explanation_destroy(explanation);
        return status;
    }
    *out_explanation = explanation;
    return HDRT_OK;
}

hdrt_status hdrt_cache_explain(hdrt_runtime *runtime, const hdrt_source *source, const hdrt_compile_options *options,
                               hdrt_explanation **out_explanation)
{
    if (!out_explanation)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_cache_explain: out_explanation is NULL");
    *out_explanation = NULL;
    hdrt_status status = hdrt__runtime_begin(runtime, "hdrt_cache_explain");
    if (status != HDRT_OK)
        return status;
    hdrt__target target;
    hdrt__runtime_target(runtime, &target);
    return explain(runtime, source, options, &target, out_explanation);
}

hdrt_status hdrt_cache_explain_for(hdrt_device *device, const hdrt_source *source, const hdrt_compile_options *options,
                                   hdrt_explanation **out_explanation)
{
    char arch[16];
    hdrt__target target;
    if (!out_explanation)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_cache_explain_for: out_explanation is NULL");
    *out_explanation = NULL;
    if (!device)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_cache_explain_for: the device is NULL");
    hdrt_status status = hdrt__runtime_begin(device->runtime, "hdrt_cache_explain_for");
    if (status != HDRT_OK)
        return status;
    hdrt__device_target(device, arch, &target);
    return explain(device->runtime, source, options, &target, out_explanation);
}

void hdrt_explanation_destroy(hdrt_explanation *explanation)
{
    if (!explanation)
        return;
    for (uint32_t i = 0; i < explanation->count; i++) {
        free(explanation->differences[i].what);
        free(explanation->differences[i].before);
        free(explanation->differences[i].now);
    }
    free(explanation->differences);
    free(explanation->text);
    free(explanation->manifest);
    free(explanation->image);
    free(explanation->last_reason);
    free(explanation);
}

hdrt_status hdrt_explanation_get_info(const hdrt_explanation *explanation, hdrt_explanation_info *out_info)
{
    if (!explanation)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_explanation_get_info: the explanation is NULL");
    hdrt_explanation_info info = HDRT_EXPLANATION_INFO_INIT;
    info.reason = explanation->reason;
    info.difference_count = explanation->count;
    info.text = explanation->text;
    info.key = explanation->key;
    info.manifest = explanation->manifest;
    info.image = explanation->image;
    info.last_reason = explanation->last_reason;
    info.compared_to = explanation->compared_to[0] ? explanation->compared_to : NULL;
    return hdrt__info_write("hdrt_explanation_info", out_info, &info, sizeof(info));
}

hdrt_status hdrt_explanation_difference(const hdrt_explanation *explanation, uint32_t index,
                                        hdrt_difference *out_difference)
{
    if (!explanation || !out_difference)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_explanation_difference: %s is NULL",
                          explanation ? "out_difference" : "the explanation");
    if (index >= explanation->count)
        return hdrt__fail(HDRT_ERROR_NOT_FOUND, "the explanation has %u differences: there is none of index %u",
                          explanation->count, index);
    const struct difference *difference = &explanation->differences[index];
    *out_difference = (hdrt_difference){difference->reason, difference->what, difference->before, difference->now};
    return HDRT_OK;
}
