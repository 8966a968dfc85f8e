/* SPDX-License-Identifier: MIT */
#include "jit/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "driver/fork.h"

/* Threads beyond two for each worker: they wait for other compiles of their key. */
#define SPARE_THREADS 4u

static bool copy(char **member, const char *text)
{
    return !text || (*member = strdup(text)) != NULL;
}

hdrt_status hdrt__jit_create(const hdrt__jit_config *config, hdrt__jit **out_jit)
{
    *out_jit = NULL;
    hdrt__jit *jit = calloc(1, sizeof(*jit));
    if (!jit)
        return hdrt__fail_memory(sizeof(*jit), "the jit");
    pthread_mutex_init(&jit->lock, NULL);
    jit->compile_workers = config->compile_workers;
    hdrt_status status = hdrt__fork_watch(&jit->fork_generation);
    if (status == HDRT_OK &&
        !(copy(&jit->worker, config->worker) && copy(&jit->recorder, config->recorder) &&
          copy(&jit->prelude, config->prelude) && copy(&jit->searched, config->searched) &&
          copy(&jit->nvrtc, config->nvrtc) && copy(&jit->clang, config->clang)))
        status = hdrt__fail_memory(sizeof(*jit), "the jit");
    if (status == HDRT_OK)
        status = hdrt__memory_cache_create(&jit->memory);
    if (status == HDRT_OK)
        status = hdrt__recording_create(&jit->recording);
    if (status == HDRT_OK)
        status = hdrt__store_open(config->cache_dir, &jit->store);
    if (status != HDRT_OK) {
        hdrt__jit_destroy(jit);
        return status;
    }
    *out_jit = jit;
    return HDRT_OK;
}

void hdrt__jit_destroy(hdrt__jit *jit)
{
    if (!jit)
        return;
    hdrt__service_destroy(jit->service, hdrt__forked(jit->fork_generation));
    hdrt__worker_pool_destroy(jit->pool);
    for (size_t i = 0; i < sizeof(jit->compilers) / sizeof(jit->compilers[0]); i++) {
        hdrt__found_free(&jit->compilers[i].found);
        hdrt__identity_free(&jit->compilers[i].identity);
    }
    hdrt__recording_destroy(jit->recording);
    hdrt__memory_cache_destroy(jit->memory);
    hdrt__store_close(jit->store);
    pthread_mutex_destroy(&jit->lock);
    free(jit->libdevice);
    free(jit->worker);
    free(jit->recorder);
    free(jit->prelude);
    free(jit->searched);
    free(jit->nvrtc);
    free(jit->clang);
    free(jit);
}

hdrt__store *hdrt__jit_store(hdrt__jit *jit)
{
    return jit->store;
}

uint64_t hdrt__jit_workers_started(hdrt__jit *jit)
{
    pthread_mutex_lock(&jit->lock);
    uint64_t started = jit->pool ? hdrt__worker_pool_started(jit->pool) : 0;
    pthread_mutex_unlock(&jit->lock);
    return started;
}

/* Under the lock: look for a compiler, once. */
static hdrt_status search(hdrt__jit *jit, hdrt_compiler compiler)
{
    struct hdrt__jit_compiler_entry *entry = &jit->compilers[compiler];
    hdrt_status status = HDRT_OK;
    if (entry->searched)
        return HDRT_OK;
    if (compiler == HDRT_COMPILER_NVRTC)
        status = hdrt__find_nvrtc(jit->nvrtc, &entry->found);
    else
        status = hdrt__find_clang(jit->clang, &entry->found);
    entry->searched = status == HDRT_OK;
    if (entry->searched)
        hdrt__log(HDRT_LOG_INFO, "%s: %s%s%s", compiler == HDRT_COMPILER_NVRTC ? "NVRTC" : "clang",
                  entry->found.path ? entry->found.path : "not found", entry->found.path ? ", by " : ": tried ",
                  entry->found.rule);
    return status;
}

hdrt_status hdrt__jit_compiler(hdrt__jit *jit, hdrt_compiler compiler, const char **out_path, const char **out_rule)
{
    pthread_mutex_lock(&jit->lock);
    hdrt_status status = search(jit, compiler);
    *out_path = jit->compilers[compiler].found.path;
    *out_rule = jit->compilers[compiler].found.rule;
    pthread_mutex_unlock(&jit->lock);
    return status;
}

/* Under the lock: NVRTC first where NVIDIA's driver may load the result. */
static hdrt_status choose(hdrt__jit *jit, hdrt_compiler asked, const hdrt__target *target, hdrt_compiler *out)
{
    const hdrt__found *nvrtc = &jit->compilers[HDRT_COMPILER_NVRTC].found,
                      *clang = &jit->compilers[HDRT_COMPILER_CLANG].found;
    hdrt_status status = HDRT_OK;
    bool try_nvrtc = asked != HDRT_COMPILER_CLANG && !target->soft, try_clang = asked != HDRT_COMPILER_NVRTC;
    if (asked == HDRT_COMPILER_NVRTC && target->soft)
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED, "NVRTC cannot compile for the soft driver: its output is for NVIDIA "
                                                  "GPUs only; use clang");
    if (try_nvrtc)
        status = search(jit, HDRT_COMPILER_NVRTC);
    if (status == HDRT_OK && try_nvrtc && nvrtc->path) {
        *out = HDRT_COMPILER_NVRTC;
        return HDRT_OK;
    }
    if (status == HDRT_OK && try_clang)
        status = search(jit, HDRT_COMPILER_CLANG);
    if (status != HDRT_OK)
        return status;
    if (try_clang && clang->path) {
        *out = HDRT_COMPILER_CLANG;
        return HDRT_OK;
    }
    return hdrt__fail(HDRT_ERROR_NO_COMPILER, "no kernel compiler found.%s%s%s%s%s%s Install clang 14 or newer%s.",
                      try_nvrtc ? " NVRTC: tried " : "", try_nvrtc ? nvrtc->rule : "", try_nvrtc ? "." : "",
                      try_clang ? " clang: tried " : "", try_clang ? clang->rule : "", try_clang ? "." : "",
                      target->soft ? "" : ", or NVIDIA's CUDA toolkit for NVRTC");
}

/* Under the lock: the compiler's identity as its files are now. */
static hdrt_status identify(hdrt__jit *jit, hdrt_compiler compiler, hdrt__digest *out)
{
    struct hdrt__jit_compiler_entry *entry = &jit->compilers[compiler];
    if (!hdrt__identity_current(&entry->identity)) {
        hdrt__identity_free(&entry->identity);
        hdrt_status status = hdrt__identity_of(compiler, &entry->found, jit->worker, jit->prelude, jit->recorder,
                                               &entry->identity);
        if (status != HDRT_OK) {
            entry->searched = false; /* it is gone: look again next time */
            hdrt__found_free(&entry->found);
            return status;
        }
    }
    *out = entry->identity.digest;
    return HDRT_OK;
}

hdrt_status hdrt__jit_choose(hdrt__jit *jit, hdrt_compiler asked, const hdrt__target *target,
                             hdrt__chosen_compiler *out)
{
    *out = (hdrt__chosen_compiler){0};
    pthread_mutex_lock(&jit->lock);
    hdrt_status status = choose(jit, asked, target, &out->compiler);
    if (status == HDRT_OK)
        status = identify(jit, out->compiler, &out->identity);
    if (status == HDRT_OK) {
        const hdrt__found *found = &jit->compilers[out->compiler].found;
        bool copied = copy(&out->found.path, found->path) && copy(&out->found.builtins, found->builtins);
        if (copied && target->nvidia && out->compiler == HDRT_COMPILER_CLANG) {
            if (!jit->libdevice_searched)
                jit->libdevice = hdrt__find_libdevice(jit->compilers[HDRT_COMPILER_NVRTC].found.path);
            jit->libdevice_searched = true;
            copied = copy(&out->libdevice, jit->libdevice);
        }
        if (!copied)
            status = hdrt__fail_memory(0, "a compile");
    }
    pthread_mutex_unlock(&jit->lock);
    return status;
}

void hdrt__chosen_free(hdrt__chosen_compiler *chosen)
{
    hdrt__found_free(&chosen->found);
    free(chosen->libdevice);
    *chosen = (hdrt__chosen_compiler){0};
}

bool hdrt__jit_still(hdrt__jit *jit, const hdrt__chosen_compiler *chosen)
{
    pthread_mutex_lock(&jit->lock);
    const hdrt__identity *identity = &jit->compilers[chosen->compiler].identity;
    bool same = hdrt__identity_current(identity) && hdrt__digest_equal(&identity->digest, &chosen->identity);
    pthread_mutex_unlock(&jit->lock);
    return same;
}

hdrt_status hdrt__jit_missing_companion(const hdrt__jit *jit, const char *what)
{
    return hdrt__fail(HDRT_ERROR_COMPANION,
                      "%s is missing, without which nothing can be compiled%s%s: reinstall libhdrt, "
                      "or set HDRT_LIBEXEC to its folder",
                      what, jit->searched ? "; looked into " : "", jit->searched ? jit->searched : "");
}

hdrt_status hdrt__jit_service(hdrt__jit *jit, hdrt__service **out_service)
{
    hdrt_status status = HDRT_OK;
    pthread_mutex_lock(&jit->lock);
    if (!jit->service)
        status = hdrt__service_create(2 * hdrt__worker_limit(jit->compile_workers) + SPARE_THREADS, &jit->service);
    *out_service = jit->service;
    pthread_mutex_unlock(&jit->lock);
    return status;
}

hdrt_status hdrt__jit_pool(hdrt__jit *jit, hdrt__worker_pool **out_pool)
{
    hdrt_status status = HDRT_OK;
    if (!jit->worker)
        return hdrt__jit_missing_companion(jit, "the compile worker hdrt-cc");
    pthread_mutex_lock(&jit->lock);
    if (!jit->pool)
        status = hdrt__worker_pool_create(jit->worker, jit->compile_workers, &jit->pool);
    *out_pool = jit->pool;
    pthread_mutex_unlock(&jit->lock);
    return status;
}
