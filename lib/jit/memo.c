/* SPDX-License-Identifier: MIT */
#include "jit/memo.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jit/container.h"

static const char magic[HDRT__CONTAINER_MAGIC_SIZE] = {'H', 'D', 'R', 'T', 'M', 'E', 'M', '\n'};

enum { MEMO_NAME = 1, MEMO_TEXT = 2, MEMO_FILE = 3 /* u64 size, mtime, ctime, device, inode; path */ };

void hdrt__memo_files_free(hdrt__memo_file *files, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(files[i].path);
    free(files);
}

hdrt__stamp hdrt__memo_stamp(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? hdrt__stamp_of(&status) : (hdrt__stamp){0};
}

bool hdrt__memo_current(const char *path, const hdrt__stamp *stamp)
{
    const hdrt__stamp now = hdrt__memo_stamp(path);
    return hdrt__stamp_equal(&now, stamp);
}

static bool read_file(const hdrt__section *section, hdrt__memo_file **files, uint32_t *count)
{
    hdrt__cursor cursor = {section->bytes, section->size, false};
    hdrt__stamp stamp;
    stamp.size = hdrt__cursor_u64(&cursor);
    stamp.mtime_ns = hdrt__cursor_u64(&cursor);
    stamp.ctime_ns = hdrt__cursor_u64(&cursor);
    stamp.device = hdrt__cursor_u64(&cursor);
    stamp.inode = hdrt__cursor_u64(&cursor);
    const hdrt__section rest = {0, cursor.bytes, cursor.left};
    char *path = cursor.failed || cursor.left == 0 ? NULL : hdrt__section_text(&rest);
    hdrt__memo_file *bigger = path ? reallocarray(*files, *count + 1u, sizeof(*bigger)) : NULL;
    if (bigger)
        *files = bigger;
    if (!bigger || !hdrt__memo_current(path, &stamp)) {
        free(path);
        return false;
    }
    bigger[(*count)++] = (hdrt__memo_file){path, stamp};
    return true;
}

char *hdrt__memo_read(hdrt__store *store, const hdrt__digest *name, hdrt__memo_file **out_files, uint32_t *out_count)
{
    hdrt__cursor sections;
    hdrt__section section;
    hdrt_cache_reason reason;
    size_t size;
    char *text = NULL;
    unsigned char *bytes = hdrt__store_read(store, 0, name, HDRT__ENTRY_MEMO, &size, &reason);
    bool good = bytes && hdrt__container_open(bytes, size, magic, &sections) == HDRT_CACHE_HIT, named = false;
    *out_files = NULL;
    *out_count = 0;
    while (good && hdrt__container_next(&sections, &section)) {
        if (section.tag == MEMO_NAME)
            good = named = section.size == sizeof(name->bytes) && memcmp(section.bytes, name->bytes, section.size) == 0;
        else if (section.tag == MEMO_TEXT)
            good = !text && (text = hdrt__section_text(&section)) != NULL;
        else if (section.tag == MEMO_FILE)
            good = read_file(&section, out_files, out_count);
    }
    free(bytes);
    if (good && named && text && *out_count > 0)
        return text;
    hdrt__memo_files_free(*out_files, *out_count);
    *out_files = NULL;
    *out_count = 0;
    free(text);
    return NULL;
}

void hdrt__memo_write(hdrt__store *store, const hdrt__digest *name, const char *text, const hdrt__memo_file *files,
                      uint32_t count)
{
    hdrt__buffer bytes = HDRT__BUFFER_INIT;
    uint64_t now = hdrt__wall_ns();
    hdrt__container_begin(&bytes, magic);
    hdrt__container_section(&bytes, MEMO_NAME, name->bytes, sizeof(name->bytes));
    hdrt__container_text(&bytes, MEMO_TEXT, text);
    for (uint32_t i = 0; i < count; i++) {
        const hdrt__stamp *stamp = &files[i].stamp;
        hdrt__buffer payload = HDRT__BUFFER_INIT;
        if (hdrt__stamp_racy(stamp, now))
            goto free_bytes;
        hdrt__buffer_u64(&payload, stamp->size);
        hdrt__buffer_u64(&payload, stamp->mtime_ns);
        hdrt__buffer_u64(&payload, stamp->ctime_ns);
        hdrt__buffer_u64(&payload, stamp->device);
        hdrt__buffer_u64(&payload, stamp->inode);
        hdrt__buffer_text(&payload, files[i].path);
        bytes.failed = bytes.failed || payload.failed;
        hdrt__container_section(&bytes, MEMO_FILE, payload.bytes, payload.size);
        hdrt__buffer_free(&payload);
    }
    hdrt__container_end(&bytes);
    if (!bytes.failed)
        hdrt__store_write(store, name, HDRT__ENTRY_MEMO, bytes.bytes, bytes.size);
free_bytes:
    hdrt__buffer_free(&bytes);
}

hdrt_cache_reason hdrt__memo_check(const unsigned char *bytes, size_t size, const hdrt__digest *name)
{
    hdrt__cursor sections;
    hdrt__section section;
    hdrt_cache_reason reason = hdrt__container_open(bytes, size, magic, &sections);
    while (reason == HDRT_CACHE_HIT && hdrt__container_next(&sections, &section))
        if (section.tag == MEMO_NAME &&
            (section.size != sizeof(name->bytes) || memcmp(section.bytes, name->bytes, section.size) != 0))
            reason = HDRT_CACHE_MISPLACED;
    return reason;
}
