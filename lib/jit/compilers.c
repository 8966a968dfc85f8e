/* SPDX-License-Identifier: MIT */
/* Which compiler a compile gets, and what it is. */
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/log.h"
#include "base/status.h"
#include "jit/files.h"
#include "jit/memo.h"
#include "jit/search.h"
#include "jit/state.h"

#define FOLDER_LIMIT 64u
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- looking ----------------------------------------------------------------------------------------------------- */

static void free_compilers(hdrt__jit_compilers *compilers)
{
    for (uint32_t i = 0; compilers->identities && i < compilers->list.count; i++)
        hdrt__identity_free(&compilers->identities[i]);
    free(compilers->identities);
    hdrt__found_list_free(&compilers->list);
}

void hdrt__jit_compilers_free(hdrt__jit *jit)
{
    for (size_t i = 0; i < COUNT(jit->compilers); i++) {
        free_compilers(&jit->compilers[i]);
        for (hdrt__jit_compilers *old = jit->compilers[i].before, *next; old; old = next) {
            next = old->before;
            free_compilers(old);
            free(old);
        }
        jit->compilers[i] = (hdrt__jit_compilers){0};
    }
}

/* Under the lock: forget what was found, so that the next look searches again. */
static void search_again(hdrt__jit_compilers *compilers)
{
    hdrt__jit_compilers *old = malloc(sizeof(*old));
    if (!old)
        return; /* what was found stays */
    *old = *compilers;
    *compilers = (hdrt__jit_compilers){.before = old};
}

static const char *kind_name(hdrt_compiler compiler)
{
    return compiler == HDRT_COMPILER_NVRTC ? "NVRTC" : "clang";
}

/* ---- the search for clang, remembered ---------------------------------------------------------------------------- */

static hdrt__digest clang_memo(const char *folders)
{
    hdrt__hasher hasher;
    hdrt__hasher_begin(&hasher, "hdrt clang in PATH");
    hdrt__hasher_text(&hasher, 1, folders);
    return hdrt__hasher_end(&hasher);
}

/* Whether clang is looked for in PATH, which takes hundreds of looks for names that are not there. */
static bool in_path(const hdrt__jit *jit)
{
    return !(jit->clang && *jit->clang) && !hdrt__environment(HDRT__ENV_CLANG);
}

/* What an earlier search found, if since then nothing came into or left the folders. */
static bool recall_clang(hdrt__jit *jit, hdrt__found_list *out)
{
    hdrt__memo_file *files;
    uint32_t count;
    const hdrt__digest name = clang_memo(hdrt__program_folders());
    char *path = in_path(jit) ? hdrt__memo_read(jit->store, &name, &files, &count) : NULL;
    if (!path)
        return false;
    hdrt__memo_files_free(files, count);
    hdrt__found *found = calloc(1, sizeof(*found));
    char *rule = strdup("PATH");
    if (!found || !rule) {
        free(found);
        free(rule);
        free(path);
        return false;
    }
    *found = (hdrt__found){.path = path, .rule = rule};
    *out = (hdrt__found_list){found, 1, 1};
    return true;
}

/* Takes the folders of PATH into `files`, as many as fit; false if one does not tell what comes into it. */
static bool stamp_folders(const char *folders, hdrt__memo_file files[FOLDER_LIMIT], uint32_t *count)
{
    while (*folders) {
        size_t size = strcspn(folders, ":");
        char *folder = *folders == '/' ? strndup(folders, size) : NULL;
        if (*folders == '/' && (!folder || *count == FOLDER_LIMIT)) {
            free(folder);
            return false;
        }
        if (folder) {
            files[*count] = (hdrt__memo_file){folder, hdrt__memo_stamp(folder)};
            if (files[(*count)++].stamp.inode != 0 && !hdrt__folders_tell(folder))
                return false;
        }
        folders += size + (folders[size] == ':');
    }
    return true;
}

static void keep_clang(hdrt__jit *jit, const hdrt__found_list *list, const hdrt__memo_file *files, uint32_t count)
{
    const hdrt__digest name = clang_memo(hdrt__program_folders());
    if (list->count == 1 && list->items[0].path)
        hdrt__memo_write(jit->store, &name, list->items[0].path, files, count);
}

static hdrt_status find_clang(hdrt__jit *jit, hdrt__found_list *out)
{
    hdrt__memo_file files[FOLDER_LIMIT];
    uint32_t count = 0;
    if (recall_clang(jit, out))
        return HDRT_OK;
    /* The folders' stamps first: what changes while they are searched is seen next time. */
    bool stamped = in_path(jit) && stamp_folders(hdrt__program_folders(), files, &count);
    hdrt_status status = hdrt__find_clangs(jit->clang, out);
    if (status == HDRT_OK && stamped)
        keep_clang(jit, out, files, count);
    for (uint32_t i = 0; i < count; i++)
        free(files[i].path);
    return status;
}

/* Under the lock: look for compilers of a kind, in all places unless one is good enough before. */
static hdrt_status search(hdrt__jit *jit, hdrt_compiler compiler, hdrt__found_enough *enough, void *context)
{
    hdrt__jit_compilers *compilers = &jit->compilers[compiler];
    if (compilers->searched && (compilers->all || enough))
        return HDRT_OK;
    if (compilers->searched)
        search_again(compilers);
    if (compilers->searched)
        return hdrt__fail_memory(sizeof(*compilers), "the search for compilers");
    hdrt_status status = compiler == HDRT_COMPILER_NVRTC
                             ? hdrt__find_nvrtcs(jit->nvrtc, enough, context, &compilers->list)
                             : find_clang(jit, &compilers->list);
    if (status == HDRT_OK && !(compilers->identities = calloc(compilers->list.count, sizeof(hdrt__identity)))) {
        hdrt__found_list_free(&compilers->list);
        status = hdrt__fail_memory(sizeof(hdrt__identity), "the compilers");
    }
    if (status != HDRT_OK)
        return status;
    compilers->searched = true;
    compilers->all = !enough || compiler != HDRT_COMPILER_NVRTC;
    for (uint32_t i = 0; i < compilers->list.count; i++) {
        const hdrt__found *found = &compilers->list.items[i];
        hdrt__log(HDRT_LOG_INFO, "%s: %s%s%s", kind_name(compiler), found->path ? found->path : "not found",
                  found->path ? ", by " : ": tried ", found->rule);
    }
    return HDRT_OK;
}

hdrt_status hdrt__jit_compiler(hdrt__jit *jit, hdrt_compiler compiler, uint32_t index, hdrt__found *out_found)
{
    pthread_mutex_lock(&jit->lock);
    hdrt_status status = search(jit, compiler, NULL, NULL);
    const hdrt__found_list *list = &jit->compilers[compiler].list;
    if (status == HDRT_OK && index >= list->count)
        status = hdrt__fail(HDRT_ERROR_NOT_FOUND, "there are %u of %s: there is none of index %u", list->count,
                            kind_name(compiler), index);
    if (status == HDRT_OK)
        *out_found = list->items[index];
    pthread_mutex_unlock(&jit->lock);
    return status;
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

/* The first and the last version of NVRTC that knows a target, by CUDA's release notes. 0: still known. */
static const struct {
    unsigned target, first, last;
} known_targets[] = {
    {50, 0, 1209},   {52, 0, 1209},   {53, 0, 1209},   {60, 0, 1209},   {61, 0, 1209},   {62, 0, 1209},
    {70, 0, 1209},   {72, 0, 1209},   {75, 0, 0},      {80, 1100, 0},   {86, 1101, 0},   {87, 1104, 0},
    {88, 1300, 0},   {89, 1108, 0},   {90, 1108, 0},   {100, 1208, 0},  {103, 1209, 0},  {110, 1300, 0},
    {120, 1208, 0},  {121, 1209, 0},
};

/* By version only: the worker asks the library itself. Of what is not in the table, newer ones know more. */
static bool knows_target(const hdrt__found *found, const hdrt__target *target)
{
    unsigned version = 100 * found->major + found->minor;
    unsigned asked = target->arch ? (unsigned)strtoul(target->arch + strlen("sm_"), NULL, 10) : 0;
    if (asked == 0 || version == 0)
        return true;
    for (size_t i = 0; i < COUNT(known_targets); i++)
        if (known_targets[i].target == asked)
            return version >= known_targets[i].first && (!known_targets[i].last || version <= known_targets[i].last);
    return asked > known_targets[COUNT(known_targets) - 1].target && version > 1300;
}

/* Drivers take PTX of their own version and older ones. */
static bool newer_than_driver(const hdrt__found *found, const hdrt__target *target)
{
    return target->driver_version != 0 && 1000 * found->major + 10 * found->minor > target->driver_version;
}

/* 0 is best; hdrt_runtime_compiler in hdrt/jit.h says the order. */
static unsigned rank(const hdrt__found *found, const hdrt__target *target)
{
    bool knows = knows_target(found, target), newer = newer_than_driver(found, target);
    return knows ? (newer ? 1 : 0) : (newer ? 3 : 2);
}

static bool is_best(const hdrt__found *found, void *context)
{
    return rank(found, context) == 0;
}

/* The first of the best rank. */
static uint32_t best_of(const hdrt__found_list *list, const hdrt__target *target, unsigned *out_rank)
{
    uint32_t best = 0;
    *out_rank = rank(&list->items[0], target);
    for (uint32_t i = 1; i < list->count; i++) {
        unsigned this_rank = rank(&list->items[i], target);
        if (this_rank < *out_rank) {
            best = i;
            *out_rank = this_rank;
        }
    }
    return best;
}

/* Under the lock: the best NVRTC; true if there is one at all. */
static hdrt_status choose_nvrtc(hdrt__jit *jit, const hdrt__target *target, uint32_t *out_index, bool *out_found)
{
    hdrt__target wanted = *target;
    hdrt__found_list *list = &jit->compilers[HDRT_COMPILER_NVRTC].list;
    unsigned best_rank = 0;
    hdrt_status status = search(jit, HDRT_COMPILER_NVRTC, is_best, &wanted);
    if (status == HDRT_OK && list->items[0].path)
        *out_index = best_of(list, target, &best_rank);
    if (status == HDRT_OK && best_rank > 0) {
        status = search(jit, HDRT_COMPILER_NVRTC, NULL, NULL); /* those found for another target may not be all */
        if (status == HDRT_OK)
            *out_index = best_of(list, target, &best_rank);
    }
    *out_found = status == HDRT_OK && list->items[0].path;
    return status;
}

/* Under the lock: NVRTC first where NVIDIA's driver may load the result. */
static hdrt_status choose(hdrt__jit *jit, hdrt_compiler asked, const hdrt__target *target, hdrt_compiler *out,
                          uint32_t *out_index)
{
    const hdrt__found_list *nvrtc = &jit->compilers[HDRT_COMPILER_NVRTC].list,
                           *clang = &jit->compilers[HDRT_COMPILER_CLANG].list;
    hdrt_status status = HDRT_OK;
    bool try_nvrtc = asked != HDRT_COMPILER_CLANG && !target->soft, try_clang = asked != HDRT_COMPILER_NVRTC;
    bool found = false;
    *out_index = 0;
    if (asked == HDRT_COMPILER_NVRTC && target->soft)
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED, "NVRTC cannot compile for the soft driver: its output is for NVIDIA "
                                                  "GPUs only; use clang");
    if (try_nvrtc)
        status = choose_nvrtc(jit, target, out_index, &found);
    if (status == HDRT_OK && found) {
        *out = HDRT_COMPILER_NVRTC;
        return HDRT_OK;
    }
    if (status == HDRT_OK && try_clang)
        status = search(jit, HDRT_COMPILER_CLANG, NULL, NULL);
    if (status != HDRT_OK)
        return status;
    if (try_clang && clang->items[0].path) {
        *out = HDRT_COMPILER_CLANG;
        return HDRT_OK;
    }
    return hdrt__fail(HDRT_ERROR_NO_COMPILER, "no kernel compiler found.%s%s%s%s%s%s Install clang 14 or newer%s.",
                      try_nvrtc ? " NVRTC: tried " : "", try_nvrtc ? nvrtc->items[0].rule : "", try_nvrtc ? "." : "",
                      try_clang ? " clang: tried " : "", try_clang ? clang->items[0].rule : "", try_clang ? "." : "",
                      target->soft ? "" : ", or NVIDIA's CUDA toolkit for NVRTC");
}

/* Under the lock: the compiler's identity as its files are now. */
static hdrt_status identify(hdrt__jit *jit, hdrt_compiler compiler, uint32_t index, hdrt__digest *out)
{
    hdrt__jit_compilers *compilers = &jit->compilers[compiler];
    hdrt__identity *identity = &compilers->identities[index];
    if (!hdrt__identity_current(identity)) {
        hdrt__identity_free(identity);
        hdrt_status status = hdrt__identity_of(compiler, &compilers->list.items[index], jit->worker, jit->prelude,
                                               jit->recorder, jit->store, identity);
        if (status != HDRT_OK) {
            search_again(compilers); /* it is gone: look again next time */
            return status;
        }
    }
    *out = identity->digest;
    return HDRT_OK;
}

static bool copy(char **member, const char *text)
{
    return !text || (*member = strdup(text)) != NULL;
}

/* Under the lock: the linker of that NVRTC, or else of the newest that has one. */
static const hdrt__found *find_linker(const hdrt__found_list *list, const char *nvrtc)
{
    const hdrt__found *newest = NULL;
    for (uint32_t i = 0; i < list->count; i++) {
        const hdrt__found *found = &list->items[i];
        if (!found->linker)
            continue;
        if (nvrtc && found->path && strcmp(found->path, nvrtc) == 0)
            return found;
        if (!newest || 100 * found->major + found->minor > 100 * newest->major + newest->minor)
            newest = found;
    }
    return newest;
}

static hdrt_status no_linker(const hdrt__found_list *list)
{
    hdrt__buffer places = HDRT__BUFFER_INIT;
    for (uint32_t i = 0; i < list->count; i++)
        hdrt__buffer_format(&places, "%s%s", i ? ", " : "",
                            list->items[i].path ? list->items[i].path : list->items[i].rule);
    hdrt_status status = hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                                    "linking needs NVIDIA's nvJitLink, of CUDA 12 or newer, which is looked for beside "
                                    "NVRTC (in Python's packages in nvidia/nvjitlink/lib); NVRTC: %s",
                                    places.bytes ? (const char *)places.bytes : "");
    hdrt__buffer_free(&places);
    return status;
}

hdrt_status hdrt__jit_linker(hdrt__jit *jit, const char *nvrtc, char **out_path)
{
    *out_path = NULL;
    pthread_mutex_lock(&jit->lock);
    hdrt_status status = search(jit, HDRT_COMPILER_NVRTC, NULL, NULL);
    const hdrt__found_list *list = &jit->compilers[HDRT_COMPILER_NVRTC].list;
    const hdrt__found *found = status == HDRT_OK ? find_linker(list, nvrtc) : NULL;
    if (status == HDRT_OK && !found)
        status = no_linker(list);
    else if (status == HDRT_OK && !(*out_path = strdup(found->linker)))
        status = hdrt__fail_memory(strlen(found->linker), "a link");
    pthread_mutex_unlock(&jit->lock);
    return status;
}

/* Under the lock. */
static const char *libdevice_of(hdrt__jit *jit)
{
    const hdrt__found_list *nvrtc = &jit->compilers[HDRT_COMPILER_NVRTC].list;
    if (!jit->libdevice_searched)
        jit->libdevice = hdrt__find_libdevice(nvrtc->count ? nvrtc->items[0].path : NULL);
    jit->libdevice_searched = true;
    return jit->libdevice;
}

hdrt_status hdrt__jit_choose(hdrt__jit *jit, hdrt_compiler asked, const hdrt__target *target,
                             hdrt__chosen_compiler *out)
{
    *out = (hdrt__chosen_compiler){0};
    pthread_mutex_lock(&jit->lock);
    hdrt_status status = choose(jit, asked, target, &out->compiler, &out->index);
    if (status == HDRT_OK)
        status = identify(jit, out->compiler, out->index, &out->identity);
    if (status == HDRT_OK) {
        const hdrt__found *found = &jit->compilers[out->compiler].list.items[out->index];
        bool copied = copy(&out->found.path, found->path) && copy(&out->found.builtins, found->builtins) &&
                      copy(&out->identity_lines, jit->compilers[out->compiler].identities[out->index].lines);
        out->found.major = found->major;
        out->found.minor = found->minor;
        out->newer_than_driver = out->compiler == HDRT_COMPILER_NVRTC && newer_than_driver(found, target);
        if (copied && target->nvidia && out->compiler == HDRT_COMPILER_CLANG)
            copied = copy(&out->libdevice, libdevice_of(jit));
        if (!copied)
            status = hdrt__fail_memory(0, "a compile");
    }
    pthread_mutex_unlock(&jit->lock);
    return status;
}

void hdrt__chosen_free(hdrt__chosen_compiler *chosen)
{
    hdrt__found_free(&chosen->found);
    free(chosen->identity_lines);
    free(chosen->libdevice);
    *chosen = (hdrt__chosen_compiler){0};
}

bool hdrt__jit_still(hdrt__jit *jit, const hdrt__chosen_compiler *chosen)
{
    pthread_mutex_lock(&jit->lock);
    const hdrt__jit_compilers *compilers = &jit->compilers[chosen->compiler];
    bool same = false;
    for (uint32_t i = 0; i < compilers->list.count && !same; i++)
        same = compilers->list.items[i].path && strcmp(compilers->list.items[i].path, chosen->found.path) == 0 &&
               hdrt__digest_equal(&compilers->identities[i].digest, &chosen->identity) &&
               hdrt__identity_current(&compilers->identities[i]);
    pthread_mutex_unlock(&jit->lock);
    return same;
}
