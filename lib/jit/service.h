/* SPDX-License-Identifier: MIT */
/*
 * The threads on which asynchronous compiles run, one set per jit: started when there is work for one more, joined at
 * the jit's end. A job runs from beginning to end on one thread, which mostly waits for a compile worker; how many
 * compiles really run at once is the worker pool's matter, so there are more threads than workers: those of jobs that
 * wait for another compile of the same key must not keep other keys from a worker.
 */
#ifndef HDRT_JIT_SERVICE_H
#define HDRT_JIT_SERVICE_H

#include <hdrt.h>

typedef struct hdrt__service hdrt__service;

typedef struct hdrt__service_job {
    struct hdrt__service_job *next;
    /* Called once, on a thread of the service, with no lock held. May free the job, and end the service's owner. */
    void (*run)(struct hdrt__service_job *job);
} hdrt__service_job;

/* At most `limit` threads. Starts none. HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY. */
hdrt_status hdrt__service_create(uint32_t limit, hdrt__service **out_service);
/* No job is left but the one that calls this, if one does. Joins all threads but the calling one. NULL accepted. */
void hdrt__service_destroy(hdrt__service *service, bool forked);
/* Jobs begin in order. HDRT_OK; HDRT_ERROR_OUT_OF_MEMORY  no thread can be started: the job was not taken. */
hdrt_status hdrt__service_submit(hdrt__service *service, hdrt__service_job *job);

#endif
