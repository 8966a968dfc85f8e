/* SPDX-License-Identifier: MIT */
#include "jit/service.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/status.h"
#include "driver/thread.h"

struct hdrt__service {
    uint32_t limit;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t work;
    hdrt__service_job *first, **last;
    uint32_t queued, idle, count;
    bool stop, orphaned;
    pthread_t orphan; /* if orphaned: the thread in which it was destroyed, and which frees it */
    pthread_t *threads;
};

hdrt_status hdrt__service_create(uint32_t limit, hdrt__service **out_service)
{
    *out_service = NULL;
    hdrt__service *service = calloc(1, sizeof(*service));
    if (service)
        service->threads = calloc(limit, sizeof(*service->threads));
    if (!service || !service->threads) {
        free(service);
        return hdrt__fail_memory(sizeof(*service), "the compile service");
    }
    service->limit = limit;
    service->last = &service->first;
    pthread_mutex_init(&service->lock, NULL);
    pthread_cond_init(&service->work, NULL);
    *out_service = service;
    return HDRT_OK;
}

static void free_service(hdrt__service *service)
{
    pthread_cond_destroy(&service->work);
    pthread_mutex_destroy(&service->lock);
    free(service->threads);
    free(service);
}

static void *serve(void *argument)
{
    hdrt__service *service = argument;
    pthread_mutex_lock(&service->lock);
    for (;;) {
        hdrt__service_job *job = service->first;
        if (job) {
            service->first = job->next;
            if (!service->first)
                service->last = &service->first;
            service->queued--;
            pthread_mutex_unlock(&service->lock);
            job->run(job);
            pthread_mutex_lock(&service->lock);
        } else if (service->stop) {
            break;
        } else {
            service->idle++;
            pthread_cond_wait(&service->work, &service->lock);
            service->idle--;
        }
    }
    bool orphaned = service->orphaned && pthread_equal(service->orphan, pthread_self());
    pthread_mutex_unlock(&service->lock);
    if (orphaned)
        free_service(service);
    return NULL;
}

void hdrt__service_destroy(hdrt__service *service, bool forked)
{
    if (!service)
        return;
    if (forked) { /* its threads are not in this process, and its lock may be held for ever */
        free(service->threads);
        free(service);
        return;
    }
    pthread_mutex_lock(&service->lock);
    service->stop = true;
    pthread_cond_broadcast(&service->work);
    bool own = false; /* the last reference to the owner was let go by a job */
    uint32_t count = service->count;
    for (uint32_t i = 0; i < count; i++)
        own = own || pthread_equal(service->threads[i], pthread_self());
    service->orphaned = own;
    service->orphan = pthread_self();
    pthread_mutex_unlock(&service->lock);
    for (uint32_t i = 0; i < count; i++) {
        if (pthread_equal(service->threads[i], pthread_self()))
            pthread_detach(service->threads[i]);
        else
            pthread_join(service->threads[i], NULL);
    }
    if (!own)
        free_service(service);
}

hdrt_status hdrt__service_submit(hdrt__service *service, hdrt__service_job *job)
{
    hdrt_status status = HDRT_OK;
    job->next = NULL;
    pthread_mutex_lock(&service->lock);
    if (service->idle <= service->queued && service->count < service->limit) {
        status = hdrt__thread_start(&service->threads[service->count], "hdrt-compile", serve, service);
        if (status == HDRT_OK)
            service->count++;
        else if (service->count > 0)
            status = HDRT_OK; /* one of those there will come to it */
    }
    if (status == HDRT_OK) {
        *service->last = job;
        service->last = &job->next;
        service->queued++;
        pthread_cond_signal(&service->work);
    }
    pthread_mutex_unlock(&service->lock);
    return status;
}
