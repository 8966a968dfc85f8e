/* SPDX-License-Identifier: MIT */
#include "compiler/files.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#define DIGEST_SIZE 32
/* A header beyond this is no header; its compile is not stored. */
#define FILE_LIMIT (256ull << 20)

struct hdrt__cc_file {
    char *path; /* absolute */
    bool present, missed, refused, changed;
    bool opened;                 /* or tried to; else it was only asked after */
    uint32_t error, mode;        /* of the last miss or refusal */
    hdrt__cc_record_head first;  /* the first look that found it */
};

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const hdrt__cc_file *)a)->path, ((const hdrt__cc_file *)b)->path);
}

void hdrt__cc_files_begin(hdrt__cc_files *files, const hdrt__cc_request *request)
{
    *files = (hdrt__cc_files){.request = request};
}

void hdrt__cc_files_end(hdrt__cc_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        tdelete(files->files[i], &files->by_path, compare_paths);
        free(files->files[i]->path);
        free(files->files[i]);
    }
    free(files->files);
    *files = (hdrt__cc_files){0};
}

/* The entry for a path, made if there is none; NULL without memory. Takes over `path`. */
static hdrt__cc_file *find_or_add(hdrt__cc_files *files, char *path)
{
    hdrt__cc_file key = {.path = path};
    hdrt__cc_file **found = tfind(&key, &files->by_path, compare_paths);
    if (found != NULL) {
        free(path);
        return *found;
    }
    if (files->count == files->capacity) {
        size_t capacity = files->capacity ? files->capacity * 2 : 64;
        hdrt__cc_file **grown = reallocarray(files->files, capacity, sizeof *grown);
        if (grown == NULL)
            goto free_path;
        files->files = grown;
        files->capacity = capacity;
    }
    hdrt__cc_file *file = calloc(1, sizeof *file);
    if (file == NULL)
        goto free_path;
    file->path = path;
    if (tsearch(file, &files->by_path, compare_paths) == NULL)
        goto free_file;
    files->files[files->count++] = file;
    return file;

free_file:
    free(file);
free_path:
    free(path);
    return NULL;
}

static bool same_file(const hdrt__cc_record_head *a, const hdrt__cc_record_head *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns;
}

static void merge(hdrt__cc_file *file, const hdrt__cc_record_head *head)
{
    file->opened |= head->opened != 0;
    if (head->kind == HDRT__CC_RECORD_FILE) {
        if (file->present && !same_file(&file->first, head))
            file->changed = true;
        if (!file->present)
            file->first = *head;
        file->present = true;
    } else if (head->kind == HDRT__CC_RECORD_MISS) {
        file->missed = true;
        file->error = head->error;
    } else if (head->kind == HDRT__CC_RECORD_REFUSED) {
        file->refused = true;
        file->mode = head->mode;
    }
}

void hdrt__cc_files_add(hdrt__cc_files *files, const hdrt__cc_record_head *head, const char *path)
{
    if (head->kind == HDRT__CC_RECORD_HELLO)
        files->hello = true;
    else if (path[0] != '\0' && (head->kind != HDRT__CC_RECORD_MISS || head->error != ENAMETOOLONG)) {
        char *absolute = hdrt__cc_absolute(files->request, path);
        hdrt__cc_file *file = absolute == NULL ? NULL : find_or_add(files, absolute);
        if (file == NULL)
            files->failed = true;
        else
            merge(file, head);
    }
}

/* The whole of a descriptor from its start, if it is no longer than `limit`. NULL: see errno. */
static char *read_whole(int fd, size_t size, size_t limit, size_t *out_size)
{
    if (size > limit) {
        errno = EFBIG;
        return NULL;
    }
    char *bytes = malloc(size + 1);
    if (bytes == NULL)
        return NULL;
    size_t at = 0;
    while (at < size) {
        ssize_t got = pread(fd, bytes + at, size - at, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            free(bytes);
            return NULL;
        }
        if (got == 0)
            break;
        at += (size_t)got;
    }
    bytes[at] = '\0';
    *out_size = at;
    return bytes;
}

bool hdrt__cc_files_read_records(hdrt__cc_files *files, int fd)
{
    struct stat status;
    size_t size = 0;
    char *bytes = NULL;
    if (fstat(fd, &status) == 0)
        bytes = read_whole(fd, (size_t)status.st_size, FILE_LIMIT, &size);
    if (bytes == NULL)
        return false;
    size_t at = 0;
    bool whole = true;
    while (whole && at < size) {
        hdrt__cc_record_head head;
        whole = size - at >= sizeof head;
        if (!whole)
            break;
        memcpy(&head, bytes + at, sizeof head);
        at += sizeof head;
        whole = head.path_length <= size - at;
        char *path = whole ? strndup(bytes + at, head.path_length) : NULL;
        if (path == NULL)
            break;
        hdrt__cc_files_add(files, &head, path);
        free(path);
        at += head.path_length;
    }
    free(bytes);
    return whole && at == size;
}

void hdrt__cc_files_look_at_folder(hdrt__cc_files *files, const char *path)
{
    char *absolute = hdrt__cc_absolute(files->request, path);
    struct stat status;
    if (absolute == NULL)
        files->failed = true;
    else if (stat(absolute, &status) != 0) {
        hdrt__cc_record_head head = {.kind = HDRT__CC_RECORD_MISS, .error = (uint32_t)errno};
        hdrt__cc_files_add(files, &head, absolute);
    }
    free(absolute);
}

static const char *kind_in_words(uint32_t mode)
{
    if (S_ISDIR(mode))
        return "a folder";
    if (S_ISFIFO(mode))
        return "a named pipe";
    if (S_ISSOCK(mode))
        return "a socket";
    return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "no regular file";
}

void hdrt__cc_files_explain_refusals(const hdrt__cc_files *files, hdrt__cc_reply *reply)
{
    for (size_t i = 0; i < files->count; i++) {
        const hdrt__cc_file *file = files->files[i];
        if (!file->refused || S_ISDIR(file->mode))
            continue;
        hdrt__cc_buffer text = {0};
        hdrt__cc_buffer_format(&text, "this is %s, not a regular file, and was not opened", kind_in_words(file->mode));
        if (text.failed)
            reply->fields.failed = true;
        else
            hdrt__cc_reply_diagnostic(reply, file->path, strlen(file->path), 0, 0, 1, (const char *)text.bytes,
                                      text.size);
        hdrt__cc_buffer_format(&reply->log, "%s: note: %s\n", file->path, text.failed ? "" : (const char *)text.bytes);
        hdrt__cc_buffer_free(&text);
    }
}

static hdrt__cc_record_head head_of(const struct stat *status)
{
    return (hdrt__cc_record_head){
        .device = (uint64_t)status->st_dev,
        .inode = (uint64_t)status->st_ino,
        .size = (uint64_t)status->st_size,
        .mtime_ns = (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec,
        .ctime_ns = (int64_t)status->st_ctim.tv_sec * 1000000000 + status->st_ctim.tv_nsec,
    };
}

static void append_dependency(hdrt__cc_reply *reply, const hdrt__cc_file *file, const unsigned char *digest)
{
    hdrt__cc_buffer *fields = &reply->fields;
    size_t length = strlen(file->path);
    hdrt__cc_buffer_u32(fields, HDRT_CC_DEPENDENCY);
    hdrt__cc_buffer_u64(fields, 5 * 8 + DIGEST_SIZE + (uint64_t)length);
    hdrt__cc_buffer_u64(fields, file->first.size);
    hdrt__cc_buffer_u64(fields, (uint64_t)file->first.mtime_ns);
    hdrt__cc_buffer_u64(fields, (uint64_t)file->first.ctime_ns);
    hdrt__cc_buffer_u64(fields, file->first.device);
    hdrt__cc_buffer_u64(fields, file->first.inode);
    hdrt__cc_buffer_append(fields, digest, DIGEST_SIZE);
    hdrt__cc_buffer_append(fields, file->path, length);
}

/* Read, hash and check one file that the compiler found. */
static void report_present(const hdrt__cc_file *file, hdrt__cc_reply *reply)
{
    struct stat before, after;
    size_t size = 0;
    char *bytes = NULL;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, &before) == 0 && S_ISREG(before.st_mode))
        bytes = read_whole(fd, (size_t)before.st_size, FILE_LIMIT, &size);
    if (bytes == NULL) {
        hdrt__cc_reply_no_store(reply, "'%s' could not be read again: %s", file->path, strerror(errno));
        goto close_file;
    }
    hdrt__cc_record_head now = head_of(&before);
    bool same = !file->changed && size == (size_t)before.st_size && same_file(&file->first, &now);
    if (same && fstat(fd, &after) == 0) {
        now = head_of(&after);
        same = same_file(&file->first, &now);
    }
    const char *macro = hdrt__cc_time_macro(bytes, size);
    if (!same)
        hdrt__cc_reply_no_store(reply, "'%s' changed during the compile", file->path);
    else if (file->first.ctime_ns >= file->first.seen_ns)
        hdrt__cc_reply_no_store(reply, "'%s' changed at the moment it was read, or in the future", file->path);
    else if (macro != NULL)
        hdrt__cc_reply_no_store(reply, "'%s' uses %s", file->path, macro);
    unsigned char digest[DIGEST_SIZE];
    crypto_generichash(digest, sizeof digest, (const unsigned char *)bytes, size, NULL, 0);
    append_dependency(reply, file, digest);

close_file:
    free(bytes);
    if (fd >= 0)
        close(fd);
}

void hdrt__cc_files_forget_unopened(hdrt__cc_files *files, const char *path)
{
    char *absolute = hdrt__cc_absolute(files->request, path);
    if (absolute == NULL) {
        files->failed = true;
        return;
    }
    hdrt__cc_file key = {.path = absolute};
    hdrt__cc_file **found = tfind(&key, &files->by_path, compare_paths);
    if (found != NULL && !(*found)->opened)
        (*found)->present = (*found)->missed = (*found)->refused = false;
    free(absolute);
}

bool hdrt__cc_files_are_recorded(const hdrt__cc_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        if (files->files[i]->opened)
            return true;
    return false;
}

void hdrt__cc_files_report(hdrt__cc_files *files, hdrt__cc_reply *reply)
{
    if (files->failed)
        hdrt__cc_reply_no_store(reply, "out of memory while recording which files were read");
    for (size_t i = 0; i < files->count; i++) {
        const hdrt__cc_file *file = files->files[i];
        if (file->refused)
            hdrt__cc_reply_no_store(reply, "'%s' is %s", file->path, kind_in_words(file->mode));
        if (file->missed && file->present)
            hdrt__cc_reply_no_store(reply, "'%s' came or went during the compile", file->path);
        if (file->present)
            report_present(file, reply);
        else if (file->missed && (file->error == ENOENT || file->error == ENOTDIR))
            hdrt__cc_buffer_field(&reply->fields, HDRT_CC_ABSENT, file->path, strlen(file->path));
        else if (file->missed)
            hdrt__cc_reply_no_store(reply, "'%s' could not be looked at: %s", file->path, strerror((int)file->error));
    }
}
