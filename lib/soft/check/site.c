/* SPDX-License-Identifier: MIT */
#include "soft/check/site.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "soft/check/report.h"

/* The frames of our own between the entry point and here, and of libhdrt, come on top. */
#define DEPTH 48
#define BUCKETS 1024u
/* A program that makes things at more places than this gets the entry point alone for the rest. */
#define MOST_SITES 65536u

typedef struct entry_site {
    hdsoft__site site;
    struct entry_site *next;
} entry_site;

static struct {
    pthread_mutex_t lock;
    entry_site *buckets[BUCKETS];
    size_t count;
} sites = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread struct {
    const char *entry;
    void *return_address;
} calling __attribute__((tls_model("initial-exec")));

void hdsoft__site_enter(const char *entry, void *return_address)
{
    calling.entry = entry;
    calling.return_address = return_address;
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "?";
}

/* The object that holds the code before a return address: false if none does. */
static bool look_up(void *return_address, Dl_info *info)
{
    return dladdr((char *)return_address - 1, info) && info->dli_fname;
}

static bool is_library(void *return_address, const char **function)
{
    Dl_info info;
    if (!look_up(return_address, &info))
        return false;
    const char *name = base_name(info.dli_fname);
    if (strncmp(name, "libhdsoft.so", 12) == 0)
        return true;
    if (strncmp(name, "libhdrt.so", 10) != 0)
        return false;
    if (info.dli_sname)
        *function = info.dli_sname; /* the interface's functions are the only ones with names */
    return true;
}

static bool is_libc(void *return_address)
{
    Dl_info info;
    if (!look_up(return_address, &info))
        return false;
    const char *name = base_name(info.dli_fname);
    return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libpthread", 10) == 0;
}

/* How many frames are left without those that start a program or a thread. */
static int without_start(void *const *frames, int count)
{
    int last = count;
    if (last && !is_libc(frames[last - 1]))
        last--; /* _start, if libc called main for it */
    if (!last || !is_libc(frames[last - 1]))
        return count;
    while (last && is_libc(frames[last - 1]))
        last--;
    return last;
}

static void trace(hdsoft__site *site)
{
    void *frames[DEPTH];
    int count = backtrace(frames, DEPTH), first = 0;
    while (first < count && frames[first] != calling.return_address)
        first++;
    if (first == count) { /* no unwinding through the caller: its address is known all the same */
        frames[0] = calling.return_address;
        first = 0;
        count = calling.return_address != NULL;
    }
    int beyond = first, end = without_start(frames, count);
    count = end > first ? end : count;
    const char *function = NULL;
    while (beyond < count && is_library(frames[beyond], &function))
        beyond++;
    if (beyond > first && beyond < count) {
        first = beyond;
        site->through = function;
    }
    while (first < count && site->frame_count < HDSOFT__SITE_FRAMES)
        site->frames[site->frame_count++] = frames[first++];
}

static const hdsoft__site *keep(const hdsoft__site *site)
{
    uint64_t hash = (uintptr_t)site->entry;
    for (unsigned i = 0; i < site->frame_count; i++)
        hash = (hash ^ (uintptr_t)site->frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
    pthread_mutex_lock(&sites.lock);
    entry_site **bucket = &sites.buckets[(hash >> 32) % BUCKETS], *found = *bucket;
    while (found && memcmp(&found->site, site, sizeof *site) != 0)
        found = found->next;
    if (!found && (sites.count < MOST_SITES || site->frame_count == 0)) {
        found = malloc(sizeof *found);
        if (found) {
            found->site = *site;
            found->next = *bucket;
            *bucket = found;
            sites.count++;
        }
    }
    pthread_mutex_unlock(&sites.lock);
    return found ? &found->site : NULL;
}

const hdsoft__site *hdsoft__site_here(void)
{
    hdsoft__site site;
    if (!hdsoft__checking(~0u) || !calling.entry)
        return NULL;
    memset(&site, 0, sizeof site); /* compared as bytes */
    site.entry = calling.entry;
    trace(&site);
    const hdsoft__site *kept = keep(&site);
    if (!kept) {
        site.frame_count = 0;
        memset(site.frames, 0, sizeof site.frames);
        kept = keep(&site);
    }
    return kept;
}

static void describe_frame(void *return_address, hdsoft_text *text)
{
    Dl_info info;
    char *at = (char *)return_address - 1;
    if (!look_up(return_address, &info)) {
        hdsoft_text_append(text, "\n        at 0x%llx", (unsigned long long)(uintptr_t)at);
        return;
    }
    hdsoft_text_append(text, "\n        at %s+0x%llx", base_name(info.dli_fname),
                       (unsigned long long)(at - (char *)info.dli_fbase));
    if (info.dli_sname)
        hdsoft_text_append(text, " %s", info.dli_sname);
}

void hdsoft__site_describe(const hdsoft__site *site, hdsoft_text *text)
{
    if (!site) {
        hdsoft_text_append(text, "an unknown call");
        return;
    }
    hdsoft_text_append(text, "%s", site->entry);
    if (site->through)
        hdsoft_text_append(text, " through %s", site->through);
    for (unsigned i = 0; i < site->frame_count; i++)
        describe_frame(site->frames[i], text);
}
