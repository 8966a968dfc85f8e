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
#define TEXT_BYTES 2048
/* A program that makes things at more places than this gets the entry point alone for the rest. */
#define MOST_SITES 65536u

typedef struct entry_site {
    hdsoft__site site;
    struct entry_site *next;
    char *text;
} entry_site;

static struct {
    pthread_mutex_t lock;
    entry_site *buckets[BUCKETS];
    size_t count;
} sites = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread const hdsoft__site *this_site __attribute__((tls_model("initial-exec")));

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

static void trace(hdsoft__site *site, void *return_address)
{
    void *frames[DEPTH];
    int count = backtrace(frames, DEPTH), first = 0;
    while (first < count && frames[first] != return_address)
        first++;
    if (first == count) { /* no unwinding through the caller: its address is known all the same */
        frames[0] = return_address;
        first = 0;
        count = return_address != NULL;
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

/* What a report says of it. Asked of the loader here, where no lock is held that its own may wait for. */
static char *render(const hdsoft__site *site)
{
    char bytes[TEXT_BYTES];
    hdsoft_text text = {bytes, sizeof bytes, 0};
    hdsoft_text_append(&text, "%s", site->entry);
    if (site->through)
        hdsoft_text_append(&text, " through %s", site->through);
    for (unsigned i = 0; i < site->frame_count; i++)
        describe_frame(site->frames[i], &text);
    return strdup(bytes);
}

static uint64_t hash_of(const hdsoft__site *site)
{
    uint64_t hash = (uintptr_t)site->entry;
    for (unsigned i = 0; i < site->frame_count; i++)
        hash = (hash ^ (uintptr_t)site->frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return hash;
}

/* The kept one; without `made` only if there is one. `made` becomes it, or goes. */
static const hdsoft__site *keep(const hdsoft__site *site, entry_site *made)
{
    pthread_mutex_lock(&sites.lock);
    entry_site **bucket = &sites.buckets[(hash_of(site) >> 32) % BUCKETS], *found = *bucket;
    while (found && memcmp(&found->site, site, sizeof *site) != 0)
        found = found->next;
    if (!found && made && (sites.count < MOST_SITES || site->frame_count == 0)) {
        found = made;
        made = NULL;
        found->next = *bucket;
        *bucket = found;
        sites.count++;
    }
    pthread_mutex_unlock(&sites.lock);
    if (made)
        free(made->text);
    free(made);
    return found ? &found->site : NULL;
}

static const hdsoft__site *keep_new(const hdsoft__site *site)
{
    entry_site *made = malloc(sizeof *made);
    if (!made)
        return NULL;
    made->site = *site;
    made->text = render(site);
    if (!made->text) {
        free(made);
        return NULL;
    }
    return keep(site, made);
}


void hdsoft__site_enter(const char *entry, void *return_address)
{
    hdsoft__site site;
    this_site = NULL;
    if (!entry)
        return;
    memset(&site, 0, sizeof site); /* compared as bytes */
    site.entry = entry;
    trace(&site, return_address);
    this_site = keep(&site, NULL);
    if (!this_site)
        this_site = keep_new(&site);
    if (!this_site) {
        site.frame_count = 0;
        memset(site.frames, 0, sizeof site.frames);
        this_site = keep_new(&site);
    }
}

const hdsoft__site *hdsoft__site_here(void)
{
    return hdsoft__checking(~0u) ? this_site : NULL;
}

void hdsoft__site_describe(const hdsoft__site *site, hdsoft_text *text)
{
    /* The site is the first member of what keeps it. */
    hdsoft_text_append(text, "%s", site ? ((const entry_site *)(const void *)site)->text : "an unknown call");
}
