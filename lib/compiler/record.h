/* SPDX-License-Identifier: MIT */
/*
 * What one file call of a compiler came to. The file calls themselves are taken over by interpose.c, which is built
 * into two things: hdrt-cc, whose exported definitions NVRTC's imports resolve to, and the recorder that is preloaded
 * into clang. Each has its own hdrt__cc_watch and hdrt__cc_record: hdrt-cc notes at once (files.c), the recorder
 * writes records to a descriptor that hdrt-cc reads afterwards (recorder.c).
 */
#ifndef HDRT_COMPILER_RECORD_H
#define HDRT_COMPILER_RECORD_H

#include <stdbool.h>
#include <stdint.h>

enum hdrt__cc_record_kind {
    HDRT__CC_RECORD_HELLO = 1,   /* the recorder is loaded; no path */
    HDRT__CC_RECORD_FILE = 2,    /* a regular file, opened or asked after */
    HDRT__CC_RECORD_MISS = 3,    /* the call failed with `error` */
    HDRT__CC_RECORD_REFUSED = 4, /* neither file nor folder, or a folder to be opened: the compiler was told ENOENT */
};

/* In front of path_length bytes of path. Same host, same build: plain memory. */
typedef struct hdrt__cc_record_head {
    uint32_t kind;
    uint32_t opened;         /* 1: it was to be opened; 0: only asked after */
    uint32_t error;          /* errno of a miss */
    uint32_t mode;           /* st_mode of a refused one */
    uint64_t path_length;
    uint64_t device, inode, size;
    int64_t mtime_ns, ctime_ns;
    int64_t seen_ns;         /* the kernel's coarse real time just before the call: what time stamps are made of */
} hdrt__cc_record_head;

enum hdrt__cc_watch {
    HDRT__CC_PASS, /* none of our business */
    HDRT__CC_WATCH,
    HDRT__CC_DENY, /* say that it is not there, and note nothing */
};

/* Asked before every call, in any thread; `opening`: it is an open for reading. */
enum hdrt__cc_watch hdrt__cc_watch(const char *path, bool opening);
/* Told after a watched call; `path` is absolute, or relative to the current folder. Keeps errno. */
void hdrt__cc_record(const hdrt__cc_record_head *head, const char *path);

/*
 * Environment of the recorder: descriptor to write to; the source's path, whose opening begins the recording; and the
 * path of the macros of the command line.
 */
#define HDRT__CC_ENV_RECORD_FD "HDRT_RECORD_FD"
#define HDRT__CC_ENV_RECORD_SOURCE "HDRT_RECORD_SOURCE"
#define HDRT__CC_ENV_RECORD_MACROS "HDRT_RECORD_MACROS"
/* There are in-memory headers: descriptors from this number on are theirs, and no files. */
#define HDRT__CC_ENV_RECORD_MEMORY "HDRT_RECORD_MEMORY"

#endif
