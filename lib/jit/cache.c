/* SPDX-License-Identifier: MIT */
/* The public functions of the kernel cache, but for explanations (explain.c). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/status.h"
#include "device/runtime.h"
#include "jit/image.h"
#include "jit/jit.h"
#include "jit/key.h"
#include "jit/manifest.h"
#include "jit/memo.h"
#include "jit/names.h"
#include "jit/sweep.h"

static const struct {
    const char *name, *text;
} reasons[] = {
#define REASON(name, number, text) [number] = {#name, text},
    HDRT_CACHE_REASON_LIST(REASON)
#undef REASON
};

#define REASONS (sizeof(reasons) / sizeof(reasons[0]))

const char *hdrt_cache_reason_name(hdrt_cache_reason reason)
{
    return (unsigned)reason < REASONS ? reasons[reason].name : "?";
}

const char *hdrt_cache_reason_text(hdrt_cache_reason reason)
{
    return (unsigned)reason < REASONS ? reasons[reason].text : "?";
}

/* The runtime's jit, for a call named `call`; NULL with *out_status. */
static hdrt__jit *jit_of(hdrt_runtime *runtime, const char *call, hdrt_status *out_status)
{
    *out_status = hdrt__runtime_begin(runtime, call);
    hdrt__jit *jit = *out_status == HDRT_OK ? hdrt__runtime_jit(runtime) : NULL;
    if (*out_status == HDRT_OK && !jit)
        *out_status = HDRT_ERROR_OUT_OF_MEMORY;
    return jit;
}

hdrt_status hdrt_cache_get_info(hdrt_runtime *runtime, hdrt_cache_info *out_info)
{
    hdrt_cache_info info = HDRT_CACHE_INFO_INIT;
    hdrt_status status;
    hdrt__jit *jit = jit_of(runtime, "hdrt_cache_get_info", &status);
    if (!jit)
        return status;
    hdrt__store *store = hdrt__jit_store(jit);
    hdrt__store_check(store);
    info.directory = hdrt__store_directory(store, 0);
    info.reason = hdrt__store_reason(store, 0);
    info.limit_bytes = hdrt__store_limit(store);
    info.read_only_count = hdrt__store_count(store) - 1;
    return hdrt__info_write("hdrt_cache_info", out_info, &info, sizeof(info));
}

const char *hdrt_cache_read_only(hdrt_runtime *runtime, uint32_t index, const char **out_reason)
{
    hdrt_status status;
    hdrt__jit *jit = jit_of(runtime, "hdrt_cache_read_only", &status);
    hdrt__store *store = jit ? hdrt__jit_store(jit) : NULL;
    bool there = store && index < hdrt__store_count(store) - 1;
    if (out_reason)
        *out_reason = there ? hdrt__store_reason(store, index + 1) : NULL;
    return there ? hdrt__store_directory(store, index + 1) : NULL;
}

hdrt_status hdrt_cache_get_stats(hdrt_runtime *runtime, hdrt_cache_scope scope, hdrt_cache_stats *out_stats)
{
    uint64_t values[HDRT__STAT_COUNT], folder[HDRT__STAT_COUNT];
    hdrt_cache_stats stats;
    hdrt_status status;
    hdrt__jit *jit = jit_of(runtime, "hdrt_cache_get_stats", &status);
    if (!jit)
        return status;
    if (scope != HDRT_CACHE_THIS_RUNTIME && scope != HDRT_CACHE_ALL)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_cache_get_stats: there is no scope of number %d",
                          (int)scope);
    hdrt__store *store = hdrt__jit_store(jit);
    hdrt__stats_get(hdrt__jit_stats(jit), values);
    values[HDRT__STAT_EVICTED] = hdrt__store_evicted(store);
    if (scope == HDRT_CACHE_ALL) {
        hdrt__stats_read(hdrt__store_root(store, 0, false), folder);
        for (unsigned i = 0; i < HDRT__STAT_COUNT; i++)
            values[i] += folder[i];
    }
    hdrt__stats_fill(values, &stats);
    return hdrt__info_write("hdrt_cache_stats", out_stats, &stats, sizeof(stats));
}

hdrt_status hdrt_cache_reset_stats(hdrt_runtime *runtime)
{
    hdrt_status status;
    hdrt__jit *jit = jit_of(runtime, "hdrt_cache_reset_stats", &status);
    if (!jit)
        return status;
    hdrt__stats *stats = hdrt__jit_stats(jit);
    for (unsigned i = 0; i < HDRT__STAT_COUNT; i++)
        atomic_store(&stats->values[i], 0);
    int root = hdrt__store_root(hdrt__jit_store(jit), 0, false);
    if (root >= 0)
        hdrt__stats_merge(root, NULL);
    return HDRT_OK;
}

/* ---- looking at entries ----------------------------------------------------------------------------------------- */

/* An entry on its way to a visitor, with what it owns. */
struct shown {
    hdrt_cache_entry entry;
    hdrt__buffer path, options, kernels;
    hdrt__code *code;
    hdrt__manifest manifest;
    char *name;
};

static void show_image(struct shown *shown, const unsigned char *bytes, size_t size, const hdrt__digest *expected)
{
    hdrt_cache_entry *entry = &shown->entry;
    shown->code = hdrt__code_read(bytes, size, expected, &entry->reason);
    if (!shown->code)
        return;
    const hdrt__kernel_table *table = &shown->code->table;
    entry->name = shown->code->source_name;
    entry->arch = shown->code->arch;
    entry->compiler = shown->code->compiler_path;
    entry->compiler_version = shown->code->compiler_version;
    entry->options = shown->code->options;
    entry->kernel_count = table->kernel_count;
    hdrt__buffer_text(&shown->kernels, "");
    for (uint32_t i = 0; i < table->kernel_count; i++)
        hdrt__buffer_format(&shown->kernels, "%s%s", i ? " " : "", table->kernels[i].name);
    entry->kernels = shown->kernels.failed ? NULL : (const char *)shown->kernels.bytes;
}

static void show_manifest(struct shown *shown, unsigned char *bytes, size_t size, const hdrt__digest *expected)
{
    hdrt_cache_entry *entry = &shown->entry;
    hdrt__manifest *manifest = &shown->manifest;
    entry->reason = hdrt__manifest_read(bytes, size, expected, true, manifest);
    if (entry->reason != HDRT_CACHE_HIT)
        return;
    hdrt__buffer_text(&shown->options, "");
    for (uint32_t i = 0; i < manifest->fields.count; i++) {
        const hdrt__field *field = &manifest->fields.items[i];
        if (field->tag == HDRT__KEY_NAME)
            entry->name = field->value;
        else if (field->tag == HDRT__KEY_ARCH)
            entry->arch = field->value;
        else if (field->tag == HDRT__KEY_COMPILER)
            entry->compiler = field->value;
        else if (field->tag == HDRT__KEY_OPTION && field->value)
            hdrt__buffer_format(&shown->options, "%s%s", shown->options.size ? " " : "", field->value);
    }
    entry->options = shown->options.failed ? NULL : (const char *)shown->options.bytes;
    entry->image_count = manifest->count;
    if (manifest->count)
        hdrt__files_count(&manifest->states[0].files, &entry->file_count, &entry->absent_count);
}

static void show_content(struct shown *shown, const hdrt__swept *file, hdrt__folder_use use)
{
    char hex[2 * HDRT__DIGEST_SIZE + 1];
    hdrt__digest name;
    size_t size;
    hdrt_cache_entry *entry = &shown->entry;
    unsigned char *bytes = hdrt__file_take(file->shard, file->name, use, HDRT__ENTRY_LIMIT, false, &size,
                                           &entry->reason);
    if (!bytes)
        return;
    memcpy(hex, file->shard_name, 2);
    memcpy(hex + 2, file->name, sizeof(hex) - 3);
    hex[sizeof(hex) - 1] = '\0';
    if (!hdrt__digest_parse(hex, &name))
        entry->reason = HDRT_CACHE_MISPLACED;
    else if (entry->kind == HDRT_CACHE_IMAGE || entry->kind == HDRT_CACHE_QUARANTINE)
        show_image(shown, bytes, size, &name);
    else if (entry->kind == HDRT_CACHE_MANIFEST) {
        show_manifest(shown, bytes, size, &name);
        bytes = NULL; /* it has them */
    } else if (entry->kind == HDRT_CACHE_NAMES)
        entry->name = shown->name = hdrt__names_name(bytes, size, &entry->reason);
    else if (entry->kind == HDRT_CACHE_MEMO)
        entry->reason = hdrt__memo_check(bytes, size, &name);
    free(bytes);
}

static void show(struct shown *shown, const hdrt__swept *file, const char *directory, uint32_t folder)
{
    *shown = (struct shown){.entry = {.size = sizeof(hdrt_cache_entry),
                                      .kind = file->kind,
                                      .folder = folder,
                                      .bytes = file->bytes,
                                      .used_ns = file->used_ns}};
    hdrt__buffer_format(&shown->path, "%s/" HDRT__STORE_FOLDER "/%s/%s", directory, file->shard_name, file->name);
    shown->entry.path = shown->path.failed ? "" : (const char *)shown->path.bytes;
    if (file->kind == HDRT_CACHE_OTHER || !file->regular)
        shown->entry.reason = HDRT_CACHE_REFUSED;
    else if (file->kind != HDRT_CACHE_TEMPORARY)
        show_content(shown, file, folder ? HDRT__FOLDER_READ_ONLY : HDRT__FOLDER_READ);
}

static void hide(struct shown *shown)
{
    hdrt__buffer_free(&shown->path);
    hdrt__buffer_free(&shown->options);
    hdrt__buffer_free(&shown->kernels);
    hdrt__code_drop(shown->code);
    hdrt__manifest_free(&shown->manifest);
    free(shown->name);
}

struct listing {
    const char *directory;
    uint32_t folder;
    hdrt_cache_visitor visitor;
    void *context;
    bool ended;
};

static bool list_one(void *context, const hdrt__swept *file)
{
    struct listing *listing = context;
    struct shown shown;
    show(&shown, file, listing->directory, listing->folder);
    listing->ended = !listing->visitor(listing->context, &shown.entry);
    hide(&shown);
    return !listing->ended;
}

hdrt_status hdrt_cache_list(hdrt_runtime *runtime, hdrt_cache_visitor visitor, void *context)
{
    hdrt_status status;
    hdrt__jit *jit = jit_of(runtime, "hdrt_cache_list", &status);
    if (!jit)
        return status;
    if (!visitor)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_cache_list: the visitor is NULL");
    hdrt__store *store = hdrt__jit_store(jit);
    struct listing listing = {.visitor = visitor, .context = context};
    for (uint32_t folder = 0; folder < hdrt__store_count(store) && status == HDRT_OK && !listing.ended; folder++) {
        listing.directory = hdrt__store_directory(store, folder);
        listing.folder = folder;
        status = hdrt__sweep_walk(hdrt__store_root(store, folder, false),
                                  folder ? HDRT__FOLDER_READ_ONLY : HDRT__FOLDER_READ, list_one, &listing);
    }
    return status;
}

/* ---- verifying, trimming, clearing ------------------------------------------------------------------------------ */

struct verification {
    struct listing listing;
    bool repair;
    hdrt_cache_summary *summary;
};

static bool verify_one(void *context, const hdrt__swept *file)
{
    struct verification *verification = context;
    struct listing *listing = &verification->listing;
    hdrt_cache_summary *summary = verification->summary;
    struct shown shown;
    show(&shown, file, listing->directory, 0);
    summary->files++;
    summary->bytes += file->bytes;
    /* One that another process removed or replaced since it was listed is not bad. */
    bool bad = shown.entry.reason != HDRT_CACHE_HIT && shown.entry.reason != HDRT_CACHE_NEW;
    if (bad) {
        summary->bad_files++;
        summary->bad_bytes += file->bytes;
        if (verification->repair && unlinkat(file->shard, file->name, 0) == 0) {
            summary->removed_files++;
            summary->removed_bytes += file->bytes;
        }
        if (listing->visitor)
            listing->ended = !listing->visitor(listing->context, &shown.entry);
    }
    hide(&shown);
    return !listing->ended;
}

hdrt_status hdrt_cache_verify(hdrt_runtime *runtime, bool repair, hdrt_cache_visitor visitor, void *context,
                              hdrt_cache_summary *out_summary)
{
    hdrt_cache_summary summary = HDRT_CACHE_SUMMARY_INIT;
    hdrt_status status;
    hdrt__jit *jit = jit_of(runtime, "hdrt_cache_verify", &status);
    if (!jit)
        return status;
    hdrt__store *store = hdrt__jit_store(jit);
    struct verification verification = {
        .listing = {.directory = hdrt__store_directory(store, 0), .visitor = visitor, .context = context},
        .repair = repair,
        .summary = &summary,
    };
    status = hdrt__sweep_walk(hdrt__store_root(store, 0, false), HDRT__FOLDER_READ, verify_one, &verification);
    hdrt_status written = out_summary ? hdrt__info_write("hdrt_cache_summary", out_summary, &summary, sizeof(summary))
                                      : HDRT_OK;
    return status == HDRT_OK ? written : status;
}

hdrt_status hdrt_cache_trim(hdrt_runtime *runtime, uint64_t limit_bytes, uint64_t max_age_s,
                            hdrt_cache_summary *out_summary)
{
    hdrt_cache_summary summary;
    hdrt_status status;
    hdrt__jit *jit = jit_of(runtime, "hdrt_cache_trim", &status);
    if (!jit)
        return status;
    hdrt__store *store = hdrt__jit_store(jit);
    uint64_t limit = limit_bytes ? limit_bytes : hdrt__store_limit(store);
    status = hdrt__sweep_trim(hdrt__store_root(store, 0, false), limit, max_age_s, &summary);
    hdrt_status written = out_summary ? hdrt__info_write("hdrt_cache_summary", out_summary, &summary, sizeof(summary))
                                      : HDRT_OK;
    return status == HDRT_OK ? written : status;
}

hdrt_status hdrt_cache_clear(hdrt_runtime *runtime, hdrt_cache_summary *out_summary)
{
    hdrt_cache_summary summary;
    hdrt_status status;
    hdrt__jit *jit = jit_of(runtime, "hdrt_cache_clear", &status);
    if (!jit)
        return status;
    status = hdrt__sweep_clear(hdrt__store_root(hdrt__jit_store(jit), 0, false), &summary);
    hdrt_status written = out_summary ? hdrt__info_write("hdrt_cache_summary", out_summary, &summary, sizeof(summary))
                                      : HDRT_OK;
    return status == HDRT_OK ? written : status;
}
