/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "help.h"
#include "json.h"
#include "message.h"
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const kind_names[] = {
    [HDRT_CACHE_IMAGE] = "image",   [HDRT_CACHE_MANIFEST] = "manifest",     [HDRT_CACHE_NAMES] = "names",
    [HDRT_CACHE_MEMO] = "memo",     [HDRT_CACHE_QUARANTINE] = "quarantine", [HDRT_CACHE_TEMPORARY] = "temporary",
    [HDRT_CACHE_OTHER] = "unknown",
};

#define KIND_COUNT (sizeof kind_names / sizeof kind_names[0])

/* A size for people. */
static const char *size_text(uint64_t bytes, char room[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;

    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    snprintf(room, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return room;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- entries ------------------------------------------------------------------------------------------------------ */

/* Of the entries as a visitor sees them, what list and verify show. */
typedef struct entries {
    json_t *list;
    bool images_only;
    bool failed; /* out of memory */
} entries;

static const char *kind_name(hdrt_cache_kind kind)
{
    return kind > 0 && (size_t)kind < KIND_COUNT ? kind_names[kind] : "unknown";
}

static json_t *entry_json(const hdrt_cache_entry *entry)
{
    json_t *object = json_pack("{s:o, s:s, s:i, s:I, s:I, s:s, s:s}", "path", json_text(entry->path), "kind",
                               kind_name(entry->kind), "folder", (int)entry->folder, "bytes",
                               (json_int_t)entry->bytes, "used", (json_int_t)(entry->used_ns / 1000000000), "state",
                               hdrt_cache_reason_name(entry->reason), "state_text",
                               entry->reason == HDRT_CACHE_HIT ? "undamaged" : hdrt_cache_reason_text(entry->reason));

    if (!object || entry->reason != HDRT_CACHE_HIT)
        return object;
    if (entry->name)
        json_object_set_new(object, "name", json_text(entry->name));
    if (entry->kind == HDRT_CACHE_IMAGE || entry->kind == HDRT_CACHE_MANIFEST) {
        json_object_set_new(object, "arch", json_text(entry->arch));
        json_object_set_new(object, "compiler", json_text(entry->compiler));
        json_object_set_new(object, "options", json_text(entry->options));
    }
    if (entry->kind == HDRT_CACHE_IMAGE) {
        json_object_set_new(object, "compiler_version", json_text(entry->compiler_version));
        json_object_set_new(object, "kernel_count", json_integer(entry->kernel_count));
        json_object_set_new(object, "kernels", json_text(entry->kernels));
    } else if (entry->kind == HDRT_CACHE_MANIFEST) {
        json_object_set_new(object, "images", json_integer(entry->image_count));
        json_object_set_new(object, "files", json_integer(entry->file_count));
        json_object_set_new(object, "absent", json_integer(entry->absent_count));
    }
    return object;
}

static bool take_entry(void *context, const hdrt_cache_entry *entry)
{
    entries *all = context;

    if (all->images_only && entry->kind != HDRT_CACHE_IMAGE)
        return true;
    all->failed = json_array_append_new(all->list, entry_json(entry)) != 0;
    return !all->failed;
}

static int by_use(const void *left, const void *right)
{
    json_int_t a = json_integer_value(json_object_get(*(json_t *const *)left, "used"));
    json_int_t b = json_integer_value(json_object_get(*(json_t *const *)right, "used"));

    return a != b ? (a < b ? 1 : -1)
                  : strcmp(json_text_at(*(json_t *const *)left, "path"), json_text_at(*(json_t *const *)right, "path"));
}

/* A new array with the latest used first; NULL without memory. Drops the old one. */
static json_t *sort_entries(json_t *list)
{
    size_t count = json_array_size(list), i;
    json_t **items = calloc(count + 1, sizeof *items), *sorted = json_array(), *item;

    if (items && sorted) {
        json_array_foreach(list, i, item)
            items[i] = item;
        qsort(items, count, sizeof *items, by_use);
        for (i = 0; i < count; i++)
            json_array_append(sorted, items[i]);
    }
    if (!items || json_array_size(sorted) != count) {
        json_decref(sorted);
        sorted = NULL;
    }
    free(items);
    json_decref(list);
    return sorted;
}

static void print_entry(const json_t *entry)
{
    time_t used = (time_t)json_integer_value(json_object_get(entry, "used"));
    const char *state = json_text_at(entry, "state"), *given = json_text_at(entry, "options");
    char when[32] = "", size[32];
    struct tm local;

    if (localtime_r(&used, &local))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M", &local);
    size_text((uint64_t)json_integer_value(json_object_get(entry, "bytes")), size);
    if (strcmp(state, "HDRT_CACHE_HIT") != 0) {
        printf("%s  %10s  %s: %s\n", when, size, json_text_at(entry, "path"), json_text_at(entry, "state_text"));
        return;
    }
    printf("%s  %10s  %-7s  %s%s%s: %s\n", when, size, json_text_at(entry, "arch"), json_text_at(entry, "name"),
           *given ? " " : "", given,
           *json_text_at(entry, "kernels") ? json_text_at(entry, "kernels") : "no kernels");
}

static int cache_list(const options *o, session *s)
{
    entries all = {.list = json_array(), .images_only = !o->json};
    const json_t *entry;
    hdrt_status status = HDRT_OK;
    size_t i;

    if (all.list)
        status = hdrt_cache_list(s->runtime, take_entry, &all);
    if (status != HDRT_OK) {
        json_decref(all.list);
        return fail_status(-1, status, "the cache cannot be listed");
    }
    all.list = all.failed ? NULL : sort_entries(all.list);
    if (o->json || !all.list)
        return json_show(all.list);
    json_array_foreach(all.list, i, entry)
        print_entry(entry);
    json_decref(all.list);
    return 0;
}

/* ---- statistics --------------------------------------------------------------------------------------------------- */

typedef struct sizes {
    uint64_t files, bytes, images, kernels;
} sizes;

static bool count_entry(void *context, const hdrt_cache_entry *entry)
{
    sizes *all = context;

    if (entry->folder == 0) {
        all->files++;
        all->bytes += entry->bytes;
        all->images += entry->kind == HDRT_CACHE_IMAGE && entry->reason == HDRT_CACHE_HIT;
        all->kernels += entry->kind == HDRT_CACHE_IMAGE ? entry->kernel_count : 0;
    }
    return true;
}

static json_t *stats_json(const hdrt_cache_info *info, const hdrt_cache_stats *stats, const sizes *all)
{
    json_t *misses = json_object(), *object;

    for (uint32_t i = 1; i < HDRT_CACHE_REASON_LIMIT; i++)
        if (strcmp(hdrt_cache_reason_name((hdrt_cache_reason)i), "?") != 0)
            json_object_set_new(misses, hdrt_cache_reason_name((hdrt_cache_reason)i),
                                json_integer((json_int_t)stats->misses[i]));
    object = json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "folder", json_text(info->directory), "reason",
                       json_text(info->reason), "limit_bytes", (json_int_t)info->limit_bytes, "files",
                       (json_int_t)all->files, "bytes", (json_int_t)all->bytes, "images", (json_int_t)all->images,
                       "kernels", (json_int_t)all->kernels, "misses", misses);
    if (!object)
        return NULL;
    json_object_set_new(object, "memory_hits", json_integer((json_int_t)stats->memory_hits));
    json_object_set_new(object, "disk_hits", json_integer((json_int_t)stats->disk_hits));
    json_object_set_new(object, "read_only_hits", json_integer((json_int_t)stats->read_only_hits));
    json_object_set_new(object, "shared_compiles", json_integer((json_int_t)stats->shared_compiles));
    json_object_set_new(object, "compiles", json_integer((json_int_t)stats->compiles));
    json_object_set_new(object, "compile_ns", json_integer((json_int_t)stats->compile_ns));
    json_object_set_new(object, "stored", json_integer((json_int_t)stats->stored));
    json_object_set_new(object, "not_cacheable", json_integer((json_int_t)stats->not_cacheable));
    json_object_set_new(object, "store_failures", json_integer((json_int_t)stats->store_failures));
    json_object_set_new(object, "evicted", json_integer((json_int_t)stats->evicted));
    return object;
}

static void print_folders(session *s, const hdrt_cache_info *info)
{
    printf("folder       %s%s%s\n", info->directory ? info->directory : "none", info->reason ? ": " : "",
           info->reason ? info->reason : "");
    for (uint32_t i = 0; i < info->read_only_count; i++) {
        const char *reason = NULL, *folder = hdrt_cache_read_only(s->runtime, i, &reason);

        if (folder)
            printf("read only    %s%s%s\n", folder, reason ? ": " : "", reason ? reason : "");
    }
}

static void print_stats(session *s, const hdrt_cache_info *info, const hdrt_cache_stats *stats, const sizes *all)
{
    uint64_t hits = stats->memory_hits + stats->disk_hits + stats->read_only_hits, misses = 0;
    char size[32], limit[32];

    print_folders(s, info);
    printf("size         %s of at most %s, %llu file%s: %llu image%s with %llu kernel%s\n", size_text(all->bytes, size),
           size_text(info->limit_bytes, limit), (unsigned long long)all->files, plural(all->files),
           (unsigned long long)all->images, plural(all->images), (unsigned long long)all->kernels,
           plural(all->kernels));
    printf("hits         %llu: %llu in memory, %llu on disk, %llu in read-only folders\n", (unsigned long long)hits,
           (unsigned long long)stats->memory_hits, (unsigned long long)stats->disk_hits,
           (unsigned long long)stats->read_only_hits);
    printf("compiles     %llu in %.3f s; %llu stored, %llu not to be stored, %llu not possible to store\n",
           (unsigned long long)stats->compiles, (double)stats->compile_ns / 1e9, (unsigned long long)stats->stored,
           (unsigned long long)stats->not_cacheable, (unsigned long long)stats->store_failures);
    printf("shared       %llu: another process was just compiling the same\n",
           (unsigned long long)stats->shared_compiles);
    printf("evicted      %llu\n", (unsigned long long)stats->evicted);
    for (uint32_t i = 1; i < HDRT_CACHE_REASON_LIMIT; i++)
        misses += stats->misses[i];
    printf("misses       %llu\n", (unsigned long long)misses);
    for (uint32_t i = 1; i < HDRT_CACHE_REASON_LIMIT; i++)
        if (stats->misses[i])
            printf("  %8llu   %s\n", (unsigned long long)stats->misses[i],
                   hdrt_cache_reason_text((hdrt_cache_reason)i));
}

static int cache_stats(const options *o, session *s)
{
    hdrt_cache_info info = HDRT_CACHE_INFO_INIT;
    hdrt_cache_stats stats = HDRT_CACHE_STATS_INIT;
    sizes all = {0};
    hdrt_status status = hdrt_cache_get_info(s->runtime, &info);
    int code = 0;

    if (status == HDRT_OK)
        status = hdrt_cache_get_stats(s->runtime, HDRT_CACHE_ALL, &stats);
    if (status == HDRT_OK)
        status = hdrt_cache_list(s->runtime, count_entry, &all);
    if (status != HDRT_OK)
        return fail_status(-1, status, "the cache's counters cannot be read");
    if (o->json)
        code = json_show(stats_json(&info, &stats, &all));
    else
        print_stats(s, &info, &stats, &all);
    if (!code && o->zero && (status = hdrt_cache_reset_stats(s->runtime)) != HDRT_OK)
        code = fail_status(-1, status, "the cache's counters cannot be set to zero");
    return code;
}

/* ---- the other subcommands ---------------------------------------------------------------------------------------- */

static int cache_path(session *s)
{
    hdrt_cache_info info = HDRT_CACHE_INFO_INIT;
    hdrt_status status = hdrt_cache_get_info(s->runtime, &info);

    if (status != HDRT_OK)
        return fail_status(-1, status, "the cache");
    if (!info.directory)
        return fail(EXIT_CODE_FAILED, "there is no cache: %s", info.reason ? info.reason : "it is off");
    printf("%s\n", info.directory);
    if (info.reason)
        note("%s: %s", info.directory, info.reason);
    return 0;
}

static int cache_verify(const options *o, session *s)
{
    hdrt_cache_summary summary = HDRT_CACHE_SUMMARY_INIT;
    entries bad = {.list = json_array()};
    const json_t *entry;
    hdrt_status status = HDRT_OK;
    char size[32];
    size_t i;
    int code;

    if (bad.list)
        status = hdrt_cache_verify(s->runtime, o->repair, take_entry, &bad, &summary);
    if (status != HDRT_OK || !bad.list || bad.failed) {
        json_decref(bad.list);
        return status != HDRT_OK ? fail_status(-1, status, "the cache cannot be verified")
                                 : fail(EXIT_CODE_FAILED, "out of memory");
    }
    code = summary.bad_files > summary.removed_files ? EXIT_CODE_FAILED : EXIT_CODE_OK;
    if (o->json) {
        int shown = json_show(json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "files", (json_int_t)summary.files, "bytes",
                                        (json_int_t)summary.bytes, "bad_files", (json_int_t)summary.bad_files,
                                        "bad_bytes", (json_int_t)summary.bad_bytes, "removed_files",
                                        (json_int_t)summary.removed_files, "bad", bad.list));

        return shown ? shown : code;
    }
    json_array_foreach(bad.list, i, entry)
        printf("%s: %s\n", json_text_at(entry, "path"), json_text_at(entry, "state_text"));
    printf("%llu file%s, %s: %llu bad, %llu removed\n", (unsigned long long)summary.files, plural(summary.files),
           size_text(summary.bytes, size), (unsigned long long)summary.bad_files,
           (unsigned long long)summary.removed_files);
    json_decref(bad.list);
    return code;
}

static void print_removed(const hdrt_cache_summary *summary)
{
    char before[32], removed[32];

    printf("removed %llu of %llu file%s, %s of %s\n", (unsigned long long)summary->removed_files,
           (unsigned long long)summary->files, plural(summary->files), size_text(summary->removed_bytes, removed),
           size_text(summary->bytes, before));
}

static int cache_trim(const options *o, session *s)
{
    hdrt_cache_summary summary = HDRT_CACHE_SUMMARY_INIT;
    hdrt_status status = hdrt_cache_trim(s->runtime, o->max_bytes, o->max_age_s, &summary);

    if (status != HDRT_OK)
        return fail_status(-1, status, "the cache cannot be trimmed");
    print_removed(&summary);
    return 0;
}

static int cache_clear(session *s)
{
    hdrt_cache_summary summary = HDRT_CACHE_SUMMARY_INIT;
    hdrt_status status = hdrt_cache_clear(s->runtime, &summary);

    if (status != HDRT_OK)
        return fail_status(-1, status, "the cache cannot be cleared");
    print_removed(&summary);
    return 0;
}

static int run(const options *o, enum command command, session *s)
{
    switch (command) {
    case COMMAND_CACHE_STATS:
        return cache_stats(o, s);
    case COMMAND_CACHE_LIST:
        return cache_list(o, s);
    case COMMAND_CACHE_PATH:
        return cache_path(s);
    case COMMAND_CACHE_VERIFY:
        return cache_verify(o, s);
    case COMMAND_CACHE_TRIM:
        return cache_trim(o, s);
    default:
        return cache_clear(s);
    }
}

int command_cache(options *o, int argc, char **argv)
{
    enum command command;
    session s;
    char list[128];
    int first, code = options_parse(o, COMMAND_CACHE, argc, argv, &first);

    if (code != OPTIONS_GO_ON)
        return code;
    command_list(COMMAND_CACHE, list, sizeof list);
    if (first == argc)
        return fail(EXIT_CODE_USAGE, "cache needs to know what: expected %s; see hdjit cache --help", list);
    argc -= first;
    argv += first;
    command = command_by_name(COMMAND_CACHE, argv[0]);
    if (command == COMMAND_NONE)
        return fail(EXIT_CODE_USAGE, "'%s' is no command of cache: expected %s; see hdjit cache --help", argv[0], list);
    if (command == COMMAND_CACHE_EXPLAIN)
        return command_cache_explain(o, argc, argv);
    code = options_parse(o, command, argc, argv, &first);
    if (code != OPTIONS_GO_ON)
        return code;
    if (first < argc)
        return fail(EXIT_CODE_USAGE, "%s takes no words, but got '%s'", command_name(command), argv[first]);
    code = session_open_compile_only(o, &s);
    if (!code)
        code = run(o, command, &s);
    session_close(&s);
    return code;
}
