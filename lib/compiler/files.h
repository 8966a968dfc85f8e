/* SPDX-License-Identifier: MIT */
/*
 * What a compile read and what it looked for in vain: gathered from records (record.h) while or after it ran, checked
 * and hashed at its end, and put into the reply as HDRT_CC_DEPENDENCY and HDRT_CC_ABSENT, or as the reason why the
 * result must not be stored. One thread at a time: watch.c sees to that where NVRTC's threads add.
 *
 * Why a hash taken afterwards is the hash of what was read: a change of a file sets its change time to the kernel's
 * coarse clock. All looks at one file, the last one after hashing it, must have found the same device, inode, size,
 * modification and change time, and that change time must lie before the coarse time of the first look. Then nothing
 * was changed from the first look on.
 */
#ifndef HDRT_COMPILER_FILES_H
#define HDRT_COMPILER_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "compiler/job.h"
#include "compiler/record.h"

typedef struct hdrt__cc_file hdrt__cc_file;

typedef struct hdrt__cc_files {
    hdrt__cc_file **files;   /* in the order of the first look */
    size_t count, capacity;
    void *by_path;           /* tsearch tree over the same */
    const hdrt__cc_request *request;
    bool failed;             /* out of memory: something is missing here */
    bool hello;              /* the recorder ran */
} hdrt__cc_files;

void hdrt__cc_files_begin(hdrt__cc_files *files, const hdrt__cc_request *request);
/* Note one look. `path` may be relative to the request's folder. */
void hdrt__cc_files_add(hdrt__cc_files *files, const hdrt__cc_record_head *head, const char *path);
/* Note all records that the recorder wrote to `fd`. false: they are malformed. */
bool hdrt__cc_files_read_records(hdrt__cc_files *files, int fd);
/* Note that a folder in the search path is not there, before the compile. */
void hdrt__cc_files_look_at_folder(hdrt__cc_files *files, const char *path);
/* NVRTC asks after names that stand for no file: forget this one unless it was opened as well. */
void hdrt__cc_files_forget_unopened(hdrt__cc_files *files, const char *path);
/* Whether anything was opened, or tried to. */
bool hdrt__cc_files_are_recorded(const hdrt__cc_files *files);
/* Append to the log what the compiler was not allowed to open, in words. */
void hdrt__cc_files_explain_refusals(const hdrt__cc_files *files, hdrt__cc_reply *reply);
/* Check, hash and report everything after a compile that succeeded. */
void hdrt__cc_files_report(hdrt__cc_files *files, hdrt__cc_reply *reply);
void hdrt__cc_files_end(hdrt__cc_files *files);

#endif
