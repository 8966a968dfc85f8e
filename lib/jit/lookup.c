/* SPDX-License-Identifier: MIT */
#include "jit/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "jit/differ.h"
#include "jit/names.h"
#include "jit/state.h"

void hdrt__miss_free(hdrt__miss *miss)
{
    hdrt__buffer_free(&miss->text);
    *miss = (hdrt__miss){0};
}

const char *hdrt__miss_words(const hdrt__miss *miss)
{
    return miss->text.bytes && !miss->text.failed ? (const char *)miss->text.bytes : "";
}

/* Says why: what was found out first stays, but for the general "never compiled". */
static void note(hdrt__miss *miss, hdrt_cache_reason reason, const char *text)
{
    if (miss->reason != HDRT_CACHE_HIT && miss->reason != HDRT_CACHE_NEW && miss->reason != HDRT_CACHE_OFF)
        return;
    if (reason == HDRT_CACHE_OFF && miss->reason == HDRT_CACHE_NEW)
        return;
    hdrt__buffer_free(&miss->text);
    miss->reason = reason;
    if (text)
        hdrt__buffer_text(&miss->text, text);
}

/* ---- images ----------------------------------------------------------------------------------------------------- */

static hdrt__code *read_image(hdrt__jit *jit, uint32_t folder, const hdrt__digest *name, hdrt_cache_reason *out_reason)
{
    size_t size;
    unsigned char *bytes = hdrt__store_read(jit->store, folder, name, HDRT__ENTRY_IMAGE, &size, out_reason);
    hdrt__code *code = bytes ? hdrt__code_read(bytes, size, name, out_reason) : NULL;
    free(bytes);
    return code;
}

/* Whether the driver refused this image: then only what was compiled since, in the own folder, is taken. */
static uint32_t folders_for(hdrt__jit *jit, const hdrt__digest *name)
{
    return hdrt__memory_rejected(jit->memory, name) ? 1 : hdrt__store_count(jit->store);
}

hdrt__code *hdrt__find_image(hdrt__jit *jit, const hdrt__digest *name, hdrt__miss *miss)
{
    hdrt__code *code = hdrt__memory_image(jit->memory, name);
    if (code) {
        hdrt__stats_count(&jit->stats, HDRT__STAT_MEMORY_HITS, 1);
        return code;
    }
    uint32_t folders = folders_for(jit, name);
    for (uint32_t folder = 0; folder < folders && !code; folder++) {
        hdrt_cache_reason reason;
        code = read_image(jit, folder, name, &reason);
        if (code)
            hdrt__stats_count(&jit->stats, folder ? HDRT__STAT_READ_ONLY_HITS : HDRT__STAT_DISK_HITS, 1);
        else if (reason != HDRT_CACHE_NEW && reason != HDRT_CACHE_OFF)
            note(miss, reason, "the image");
    }
    if (code)
        hdrt__memory_keep(jit->memory, code);
    else if (hdrt__memory_rejected(jit->memory, name))
        note(miss, HDRT_CACHE_QUARANTINED, NULL);
    else
        note(miss, HDRT_CACHE_IMAGE_GONE, NULL);
    return code;
}

/* ---- manifests -------------------------------------------------------------------------------------------------- */

/* The code of the first state whose files are as they were. */
static hdrt__code *match(hdrt__jit *jit, hdrt__manifest *manifest, bool *out_refreshed, uint32_t *out_index,
                         hdrt__miss *miss)
{
    *out_refreshed = false;
    for (uint32_t i = 0; i < manifest->count; i++) {
        bool refreshed;
        hdrt__buffer path = HDRT__BUFFER_INIT;
        hdrt_cache_reason reason = hdrt__files_current(&manifest->states[i].files, &refreshed, &path);
        hdrt__code *code = NULL;
        if (reason == HDRT_CACHE_HIT)
            code = hdrt__find_image(jit, &manifest->states[i].image, miss);
        else
            note(miss, reason, path.bytes && !path.failed ? (const char *)path.bytes : NULL);
        hdrt__buffer_free(&path);
        if (code) {
            *out_refreshed = refreshed;
            *out_index = i;
            return code;
        }
    }
    return NULL;
}

static hdrt_cache_reason read_manifest(hdrt__jit *jit, uint32_t folder, const hdrt__digest *key, bool fields,
                                       hdrt__manifest *out)
{
    hdrt_cache_reason reason;
    size_t size;
    unsigned char *bytes = hdrt__store_read(jit->store, folder, key, HDRT__ENTRY_MANIFEST, &size, &reason);
    out->key = *key;
    out->count = 0;
    out->fields = (hdrt__fields){0};
    if (bytes)
        reason = hdrt__manifest_read(bytes, size, key, fields, out);
    return reason;
}

/* Adds a state (copied) to the own folder's manifest; `fields` NULL: as they are. */
static bool remember(hdrt__jit *jit, const hdrt__digest *key, const hdrt__state *state, hdrt__fields *fields)
{
    hdrt__manifest manifest;
    hdrt__state copy;
    hdrt__buffer bytes = HDRT__BUFFER_INIT;
    if (!hdrt__state_copy(state, &copy))
        return false;
    read_manifest(jit, 0, key, true, &manifest);
    hdrt__manifest_add(&manifest, &copy);
    if (fields && fields->count) {
        hdrt__fields_free(&manifest.fields);
        manifest.fields = *fields;
        *fields = (hdrt__fields){0};
    }
    hdrt__manifest_write(&manifest, &bytes);
    bool stored = !bytes.failed &&
                  hdrt__store_write(jit->store, key, HDRT__ENTRY_MANIFEST, bytes.bytes, bytes.size);
    hdrt__buffer_free(&bytes);
    hdrt__manifest_free(&manifest);
    return stored;
}

static hdrt__code *look_into(hdrt__jit *jit, uint32_t folder, const hdrt__digest *key, hdrt__manifest *memory,
                             hdrt__miss *miss, hdrt__files *out_files)
{
    hdrt__manifest manifest;
    bool refreshed;
    uint32_t index;
    hdrt_cache_reason reason = read_manifest(jit, folder, key, false, &manifest);
    if (reason != HDRT_CACHE_HIT) {
        note(miss, reason, reason == HDRT_CACHE_NEW || reason == HDRT_CACHE_OFF ? NULL : "the manifest");
        return NULL;
    }
    hdrt__code *code = match(jit, &manifest, &refreshed, &index, miss);
    if (code && out_files)
        hdrt__files_copy(&manifest.states[index].files, out_files);
    if (code && refreshed)
        remember(jit, key, &manifest.states[index], NULL);
    if (code && memory) {
        hdrt__manifest_add(memory, &manifest.states[index]); /* moved, not copied: it may be large */
        hdrt__state_free(&manifest.states[index]);
    }
    hdrt__manifest_free(&manifest);
    return code;
}

hdrt__code *hdrt__look_up(hdrt__jit *jit, const hdrt__digest *key, hdrt__manifest *memory, hdrt__miss *miss,
                          hdrt__files *out_files)
{
    bool refreshed;
    uint32_t index;
    hdrt__code *code = memory ? match(jit, memory, &refreshed, &index, miss) : NULL;
    if (code && out_files)
        hdrt__files_copy(&memory->states[index].files, out_files);
    for (uint32_t folder = 0; folder < hdrt__store_count(jit->store) && !code; folder++)
        code = look_into(jit, folder, key, memory, miss, out_files);
    return code;
}

/* ---- for explanations ------------------------------------------------------------------------------------------- */

static void look_at_state(hdrt__jit *jit, hdrt__state *state, hdrt__finding *out)
{
    bool refreshed;
    hdrt__buffer path = HDRT__BUFFER_INIT;
    hdrt_cache_reason reason = hdrt__files_current(&state->files, &refreshed, &path);
    uint32_t folders = folders_for(jit, &state->image);
    for (uint32_t folder = 0; reason == HDRT_CACHE_HIT && folder < folders; folder++) {
        hdrt__code *code = read_image(jit, folder, &state->image, &reason);
        if (code) {
            hdrt__code_drop(code);
            out->image = state->image;
            out->image_folder = folder;
            break;
        }
        reason = folder + 1 < folders && reason == HDRT_CACHE_NEW ? HDRT_CACHE_HIT : reason;
        if (reason == HDRT_CACHE_NEW)
            reason = HDRT_CACHE_IMAGE_GONE;
    }
    bool first = out->reason == HDRT_CACHE_NEW || out->reason == HDRT_CACHE_OFF;
    if (reason == HDRT_CACHE_HIT || first) {
        hdrt__buffer_free(&out->path);
        out->reason = reason;
        out->path = path;
    } else {
        hdrt__buffer_free(&path);
    }
}

void hdrt__look_closely(hdrt__jit *jit, const hdrt__digest *key, hdrt__finding *out)
{
    *out = (hdrt__finding){.reason = HDRT_CACHE_NEW};
    for (uint32_t folder = 0; folder < hdrt__store_count(jit->store) && out->reason != HDRT_CACHE_HIT; folder++) {
        hdrt__manifest manifest;
        hdrt_cache_reason reason = read_manifest(jit, folder, key, false, &manifest);
        if (reason != HDRT_CACHE_HIT) {
            if (out->reason == HDRT_CACHE_NEW && reason != HDRT_CACHE_OFF)
                out->reason = reason;
            continue;
        }
        out->folder = folder;
        if (manifest.count && manifest.states[0].reason && !out->last_reason)
            out->last_reason = strdup(manifest.states[0].reason);
        for (uint32_t i = 0; i < manifest.count && out->reason != HDRT_CACHE_HIT; i++)
            look_at_state(jit, &manifest.states[i], out);
        hdrt__manifest_free(&manifest);
    }
    if (out->reason == HDRT_CACHE_NEW && !hdrt__store_directory(jit->store, 0))
        out->reason = HDRT_CACHE_OFF;
}

void hdrt__finding_free(hdrt__finding *finding)
{
    hdrt__buffer_free(&finding->path);
    free(finding->last_reason);
    *finding = (hdrt__finding){0};
}

/* ---- keeping ---------------------------------------------------------------------------------------------------- */

/* "HDRT_CACHE_...'s text: what it is about". */
static char *words_of(const hdrt__miss *miss)
{
    hdrt__buffer words = HDRT__BUFFER_INIT;
    const char *about = hdrt__miss_words(miss);
    hdrt__buffer_format(&words, "%s%s%s", hdrt_cache_reason_text(miss->reason), *about ? ": " : "", about);
    return hdrt__buffer_take(&words, NULL);
}

bool hdrt__keep(hdrt__jit *jit, const hdrt__outcome *outcome, hdrt__manifest *memory)
{
    hdrt__state state = {.image = hdrt__record_image(outcome->key, outcome->record)}, copy;
    hdrt__fields fields = {0};
    hdrt__buffer bytes = HDRT__BUFFER_INIT;
    if (!hdrt__files_pack(outcome->record, outcome->began_ns, &state.files))
        return false;
    state.reason = words_of(outcome->miss);
    outcome->code->name = state.image;
    hdrt__code_write(outcome->code, &bytes);
    bool stored = !bytes.failed &&
                  hdrt__store_write(jit->store, &state.image, HDRT__ENTRY_IMAGE, bytes.bytes, bytes.size);
    hdrt__memory_keep(jit->memory, outcome->code);
    if (memory && hdrt__state_copy(&state, &copy)) {
        hdrt__manifest_add(memory, &copy);
        hdrt__state_free(&copy);
    }
    if (stored) {
        hdrt__fields_of(outcome->request, &fields);
        stored = remember(jit, outcome->key, &state, &fields);
        hdrt__fields_free(&fields);
    }
    if (stored)
        hdrt__names_add(jit->store, outcome->request->name, outcome->key);
    hdrt__buffer_free(&bytes);
    hdrt__state_free(&state);
    return stored;
}
