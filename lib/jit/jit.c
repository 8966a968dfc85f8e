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
    const hdrt__store_config store = {config->cache_dir, config->cache_read_only, config->cache_read_only_count,
                                      config->cache_limit_bytes};
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
        status = hdrt__store_open(&store, &jit->store);
    if (status != HDRT_OK) {
        hdrt__jit_destroy(jit);
        return status;
    }
    *out_jit = jit;
    return HDRT_OK;
}

/* Adds this jit's counters to the folder's. A forked child's are its parent's. */
static void give_stats(hdrt__jit *jit)
{
    uint64_t values[HDRT__STAT_COUNT], sum = 0;
    if (!jit->store || hdrt__forked(jit->fork_generation))
        return;
    hdrt__stats_get(&jit->stats, values);
    values[HDRT__STAT_EVICTED] = hdrt__store_evicted(jit->store);
    for (unsigned i = 0; i < HDRT__STAT_COUNT; i++)
        sum |= values[i];
    if (sum)
        hdrt__stats_merge(hdrt__store_root(jit->store, 0, false), values);
}

void hdrt__jit_destroy(hdrt__jit *jit)
{
    if (!jit)
        return;
    hdrt__service_destroy(jit->service, hdrt__forked(jit->fork_generation));
    hdrt__worker_pool_destroy(jit->pool);
    hdrt__jit_compilers_free(jit);
    hdrt__recording_destroy(jit->recording);
    hdrt__memory_cache_destroy(jit->memory);
    give_stats(jit);
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

hdrt__stats *hdrt__jit_stats(hdrt__jit *jit)
{
    return &jit->stats;
}

uint64_t hdrt__jit_workers_started(hdrt__jit *jit)
{
    pthread_mutex_lock(&jit->lock);
    uint64_t started = jit->pool ? hdrt__worker_pool_started(jit->pool) : 0;
    pthread_mutex_unlock(&jit->lock);
    return started;
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
