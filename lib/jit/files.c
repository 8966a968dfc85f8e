/* SPDX-License-Identifier: MIT */
#include "jit/files.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "jit/cursor.h"

/*
 * The bytes, numbers little-endian, texts ended by NUL:
 *
 *     u32 count of folders, then for each
 *         u32 count of files, u32 count of absent names, u32 bytes that these take, u32 marks, stamp, path
 *         files: stamp, digest, name
 *         absent names: u8 marks, name
 */
#define STAMP_SIZE 40u
#define FOLDER_TELLS 1u     /* the folder's stamp tells that nothing came into it ... */
#define FOLDER_HAS_LINKS 2u /* ... but for some of its names */
#define NAME_LOOKED_AT 1u /* the name exists as a link to nothing: the folder cannot tell when that changes */
#define XFS_MAGIC 0x58465342
#define ZFS_MAGIC 0x2fc12fc1
#define BCACHEFS_MAGIC 0xca451a4e

struct folder {
    uint32_t files, absents, absent_bytes, marks;
    unsigned char *stamp; /* in the bytes, to be brought up to date */
    const char *path;
};

static const char *cursor_text(hdrt__cursor *cursor)
{
    const unsigned char *end = cursor->failed ? NULL : memchr(cursor->bytes, 0, cursor->left);
    size_t size;
    if (!end) {
        cursor->failed = true;
        return NULL;
    }
    return (const char *)hdrt__cursor_bytes(cursor, (uint64_t)(end - cursor->bytes) + 1, &size);
}

static uint64_t read_u64(const unsigned char *bytes)
{
    uint64_t number;
    memcpy(&number, bytes, sizeof(number));
    return le64toh(number);
}

static hdrt__stamp read_stamp(const unsigned char *bytes)
{
    return (hdrt__stamp){read_u64(bytes), read_u64(bytes + 8), read_u64(bytes + 16), read_u64(bytes + 24),
                         read_u64(bytes + 32)};
}

static void put_stamp(unsigned char *bytes, const hdrt__stamp *stamp)
{
    const uint64_t numbers[] = {stamp->size, stamp->mtime_ns, stamp->ctime_ns, stamp->device, stamp->inode};
    for (size_t n = 0; n < 5; n++)
        for (size_t i = 0; i < 8; i++)
            bytes[8 * n + i] = (unsigned char)(numbers[n] >> (8 * i));
}

static bool next_folder(hdrt__cursor *cursor, struct folder *out)
{
    size_t size;
    out->files = hdrt__cursor_u32(cursor);
    out->absents = hdrt__cursor_u32(cursor);
    out->absent_bytes = hdrt__cursor_u32(cursor);
    out->marks = hdrt__cursor_u32(cursor);
    out->stamp = (unsigned char *)hdrt__cursor_bytes(cursor, STAMP_SIZE, &size);
    out->path = cursor_text(cursor);
    return !cursor->failed;
}

static bool next_file(hdrt__cursor *cursor, unsigned char **stamp, hdrt__digest *digest, const char **name)
{
    size_t size;
    *stamp = (unsigned char *)hdrt__cursor_bytes(cursor, STAMP_SIZE, &size);
    const unsigned char *bytes = hdrt__cursor_bytes(cursor, HDRT__DIGEST_SIZE, &size);
    *name = cursor_text(cursor);
    if (cursor->failed)
        return false;
    memcpy(digest->bytes, bytes, HDRT__DIGEST_SIZE);
    return true;
}

static bool next_absent(hdrt__cursor *cursor, unsigned *marks, const char **name)
{
    *marks = (unsigned)hdrt__cursor_number(cursor, 1);
    *name = cursor_text(cursor);
    return !cursor->failed;
}

/* ---- packing ---------------------------------------------------------------------------------------------------- */

/* A path on its way into a folder's group. */
struct item {
    const char *path;
    size_t folder_size; /* of "/a/b" in "/a/b/c"; 1 for "/c" */
    const hdrt__dependency *dependency; /* NULL: absent */
    uint32_t order;
};

static int by_folder(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    size_t size = a->folder_size < b->folder_size ? a->folder_size : b->folder_size;
    int order = memcmp(a->path, b->path, size);
    if (order == 0 && a->folder_size != b->folder_size)
        order = a->folder_size < b->folder_size ? -1 : 1;
    if (order == 0 && !a->dependency != !b->dependency)
        order = a->dependency ? -1 : 1;
    if (order == 0)
        order = a->order < b->order ? -1 : a->order > b->order;
    return order;
}

static bool set_item(struct item *item, const char *path, const hdrt__dependency *dependency, uint32_t order)
{
    const char *slash = *path == '/' ? strrchr(path, '/') : NULL;
    if (!slash || !slash[1])
        return false;
    *item = (struct item){path, slash == path ? 1 : (size_t)(slash - path), dependency, order};
    return true;
}

static const char *item_name(const struct item *item)
{
    return strrchr(item->path, '/') + 1;
}

bool hdrt__folders_tell(const char *path)
{
    struct statfs system;
    if (statfs(path, &system) != 0)
        return false;
    switch ((unsigned long)system.f_type) {
    case EXT4_SUPER_MAGIC: /* and ext2, ext3 */
    case XFS_MAGIC:
    case ZFS_MAGIC:
    case BCACHEFS_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
        return true;
    default:
        return false;
    }
}

static bool is_dangling_link(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

/* The stamp of a folder as it is now; false if it is none. */
static bool stamp_folder(const char *path, hdrt__stamp *out)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return false;
    *out = hdrt__stamp_of(&status);
    return true;
}

static bool pack_folder(const struct item *items, uint32_t count, uint64_t when_ns, hdrt__buffer *bytes)
{
    unsigned char stamp_bytes[STAMP_SIZE] = {0};
    hdrt__stamp stamp;
    uint32_t files = 0, marks = 0;
    hdrt__buffer absents = HDRT__BUFFER_INIT;
    bool good = true;
    while (files < count && items[files].dependency)
        files++;
    char *path = strndup(items->path, items->folder_size);
    if (!path)
        return false;
    if (files < count && hdrt__folders_tell(path) && stamp_folder(path, &stamp)) {
        marks = FOLDER_TELLS;
        if (!hdrt__stamp_racy(&stamp, when_ns))
            put_stamp(stamp_bytes, &stamp);
    }
    for (uint32_t i = files; i < count && good; i++) {
        good = hdrt__is_absent(items[i].path); /* it may have come since the record was settled */
        unsigned char name_marks = is_dangling_link(items[i].path) ? NAME_LOOKED_AT : 0;
        marks |= name_marks ? FOLDER_HAS_LINKS : 0;
        hdrt__buffer_append(&absents, &name_marks, 1);
        hdrt__buffer_append(&absents, item_name(&items[i]), strlen(item_name(&items[i])) + 1);
    }
    good = good && !absents.failed && absents.size <= UINT32_MAX;
    hdrt__buffer_u32(bytes, files);
    hdrt__buffer_u32(bytes, count - files);
    hdrt__buffer_u32(bytes, (uint32_t)absents.size);
    hdrt__buffer_u32(bytes, marks);
    hdrt__buffer_append(bytes, stamp_bytes, STAMP_SIZE);
    hdrt__buffer_append(bytes, path, items->folder_size + 1);
    free(path);
    for (uint32_t i = 0; i < files; i++) {
        const hdrt__dependency *dependency = items[i].dependency;
        put_stamp(stamp_bytes, &dependency->stamp);
        hdrt__buffer_append(bytes, stamp_bytes, STAMP_SIZE);
        hdrt__buffer_append(bytes, dependency->digest.bytes, HDRT__DIGEST_SIZE);
        hdrt__buffer_append(bytes, item_name(&items[i]), strlen(item_name(&items[i])) + 1);
    }
    if (absents.size)
        hdrt__buffer_append(bytes, absents.bytes, absents.size);
    hdrt__buffer_free(&absents);
    return good;
}

static bool same_folder(const struct item *a, const struct item *b)
{
    return a->folder_size == b->folder_size && memcmp(a->path, b->path, a->folder_size) == 0;
}

bool hdrt__files_pack(const hdrt__record *record, uint64_t when_ns, hdrt__files *out)
{
    uint32_t count = record->dependency_count + record->absent_count, folders = 0, at = 0;
    struct item *items = calloc(count + 1u, sizeof(*items));
    hdrt__buffer bytes = HDRT__BUFFER_INIT;
    bool good = items != NULL;
    *out = (hdrt__files){0};
    for (uint32_t i = 0; good && i < record->dependency_count; i++)
        good = set_item(&items[at++], record->dependencies[i].path, &record->dependencies[i], i);
    for (uint32_t i = 0; good && i < record->absent_count; i++)
        good = set_item(&items[at++], record->absent[i], NULL, i);
    if (good)
        qsort(items, count, sizeof(*items), by_folder);
    for (uint32_t i = 0; good && i < count; i++)
        folders += i == 0 || !same_folder(&items[i], &items[i - 1]);
    hdrt__buffer_u32(&bytes, folders);
    for (uint32_t first = 0; good && first < count;) {
        uint32_t end = first + 1;
        while (end < count && same_folder(&items[first], &items[end]))
            end++;
        good = pack_folder(items + first, end - first, when_ns, &bytes);
        first = end;
    }
    free(items);
    if (good && !bytes.failed)
        out->block = out->bytes = (unsigned char *)hdrt__buffer_take(&bytes, &out->size);
    hdrt__buffer_free(&bytes);
    return out->bytes != NULL;
}

bool hdrt__files_copy(const hdrt__files *files, hdrt__files *out)
{
    unsigned char *bytes = malloc(files->size + 1);
    *out = (hdrt__files){bytes, files->size, bytes};
    if (!bytes)
        return false;
    if (files->size)
        memcpy(bytes, files->bytes, files->size);
    return true;
}

void hdrt__files_free(hdrt__files *files)
{
    free(files->block);
    *files = (hdrt__files){0};
}

/* ---- looking ---------------------------------------------------------------------------------------------------- */

static void tell(hdrt__buffer *path, const struct folder *folder, const char *name)
{
    if (path)
        hdrt__buffer_format(path, "%s%s%s", folder->path, strcmp(folder->path, "/") == 0 ? "" : "/", name);
}

/* A file whose stamp differs: its content decides. */
static hdrt_cache_reason look_closely(const struct folder *folder, const char *name, const hdrt__stamp *known,
                                      const hdrt__digest *digest, unsigned char *stamp, bool *out_refreshed)
{
    hdrt__buffer path = HDRT__BUFFER_INIT;
    hdrt__stamp now = {0};
    hdrt__digest found;
    size_t size;
    uint64_t when = hdrt__wall_ns();
    tell(&path, folder, name);
    unsigned char *bytes = path.failed ? NULL
                                       : hdrt__file_read((char *)path.bytes, HDRT__HEADER_LIMIT, &size, &now);
    hdrt__buffer_free(&path);
    if (!bytes)
        return HDRT_CACHE_FILE_CHANGED;
    bool same = size == known->size;
    if (same) {
        found = hdrt__digest_of(bytes, size);
        same = hdrt__digest_equal(&found, digest);
    }
    free(bytes);
    if (!same)
        return HDRT_CACHE_FILE_CHANGED;
    if (!hdrt__stamp_racy(&now, when)) {
        put_stamp(stamp, &now);
        *out_refreshed = true;
    }
    return HDRT_CACHE_HIT;
}

static hdrt_cache_reason check_file(int at, const struct folder *folder, unsigned char *stamp,
                                    const hdrt__digest *digest, const char *name, bool *out_refreshed)
{
    struct stat status;
    if (fstatat(at, name, &status, 0) != 0)
        return errno == ENOENT || errno == ENOTDIR ? HDRT_CACHE_FILE_GONE : HDRT_CACHE_FILE_CHANGED;
    if (!S_ISREG(status.st_mode))
        return HDRT_CACHE_FILE_CHANGED;
    hdrt__stamp known = read_stamp(stamp), now = hdrt__stamp_of(&status);
    if (hdrt__stamp_equal(&now, &known))
        return HDRT_CACHE_HIT;
    if (now.size != known.size)
        return HDRT_CACHE_FILE_CHANGED;
    return look_closely(folder, name, &known, digest, stamp, out_refreshed);
}

static void skip_absents(const struct folder *folder, hdrt__cursor *cursor)
{
    size_t size;
    hdrt__cursor_bytes(cursor, folder->absent_bytes, &size);
}

static bool absent_in(int at, const char *name)
{
    struct stat status;
    return fstatat(at, name, &status, 0) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

/* The names that were looked for in vain, in a folder that is there now; its stamp may spare looking for each. */
static hdrt_cache_reason check_absents(int at, const struct folder *folder, hdrt__cursor *cursor, bool *out_refreshed,
                                       hdrt__buffer *path)
{
    struct stat status;
    hdrt__stamp known = read_stamp(folder->stamp), now = {0};
    uint64_t when = hdrt__wall_ns();
    bool stamped = (folder->marks & FOLDER_TELLS) && fstat(at, &status) == 0;
    if (stamped)
        now = hdrt__stamp_of(&status);
    bool untouched = stamped && hdrt__stamp_equal(&now, &known);
    if (untouched && !(folder->marks & FOLDER_HAS_LINKS)) {
        skip_absents(folder, cursor);
        return HDRT_CACHE_HIT;
    }
    for (uint32_t i = 0; i < folder->absents; i++) {
        unsigned marks;
        const char *name;
        if (!next_absent(cursor, &marks, &name))
            return HDRT_CACHE_DAMAGED;
        if ((!untouched || (marks & NAME_LOOKED_AT)) && !absent_in(at, name)) {
            tell(path, folder, name);
            return HDRT_CACHE_FILE_APPEARED;
        }
    }
    if (stamped && !untouched && !hdrt__stamp_racy(&now, when)) {
        put_stamp(folder->stamp, &now);
        *out_refreshed = true;
    }
    return HDRT_CACHE_HIT;
}

static hdrt_cache_reason check_folder(const struct folder *folder, hdrt__cursor *cursor, bool *out_refreshed,
                                      hdrt__buffer *path)
{
    int at = open(folder->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool gone = at < 0 && (errno == ENOENT || errno == ENOTDIR);
    hdrt_cache_reason reason = HDRT_CACHE_HIT;
    for (uint32_t i = 0; i < folder->files && reason == HDRT_CACHE_HIT; i++) {
        unsigned char *stamp;
        hdrt__digest digest;
        const char *name;
        if (!next_file(cursor, &stamp, &digest, &name))
            reason = HDRT_CACHE_DAMAGED;
        else if (at < 0)
            reason = gone ? HDRT_CACHE_FILE_GONE : HDRT_CACHE_FILE_CHANGED;
        else
            reason = check_file(at, folder, stamp, &digest, name, out_refreshed);
        if (reason != HDRT_CACHE_HIT && reason != HDRT_CACHE_DAMAGED)
            tell(path, folder, name);
    }
    if (reason == HDRT_CACHE_HIT && folder->absents) {
        if (at >= 0) {
            reason = check_absents(at, folder, cursor, out_refreshed, path);
        } else if (gone) {
            skip_absents(folder, cursor); /* nothing can be in a folder that is not there */
        } else {
            reason = HDRT_CACHE_FILE_APPEARED; /* a folder that cannot be looked into may have anything */
            tell(path, folder, "");
        }
    }
    if (at >= 0)
        close(at);
    return reason;
}

hdrt_cache_reason hdrt__files_current(hdrt__files *files, bool *out_refreshed, hdrt__buffer *path)
{
    hdrt__cursor cursor = {files->bytes, files->size, false};
    uint32_t folders = hdrt__cursor_u32(&cursor);
    hdrt_cache_reason reason = HDRT_CACHE_HIT;
    *out_refreshed = false;
    for (uint32_t i = 0; i < folders && reason == HDRT_CACHE_HIT; i++) {
        struct folder folder;
        reason = next_folder(&cursor, &folder) ? check_folder(&folder, &cursor, out_refreshed, path)
                                               : HDRT_CACHE_DAMAGED;
    }
    return cursor.failed ? HDRT_CACHE_DAMAGED : reason;
}

/* ---- walking ---------------------------------------------------------------------------------------------------- */

static bool walk(const hdrt__files *files, void (*visit)(void *, const struct folder *, const char *,
                                                         const hdrt__digest *), void *context)
{
    hdrt__cursor cursor = {files->bytes, files->size, false};
    uint32_t folders = hdrt__cursor_u32(&cursor);
    for (uint32_t f = 0; f < folders && !cursor.failed; f++) {
        struct folder folder;
        hdrt__digest digest;
        unsigned char *stamp;
        const char *name;
        unsigned marks;
        if (!next_folder(&cursor, &folder))
            return false;
        for (uint32_t i = 0; i < folder.files && next_file(&cursor, &stamp, &digest, &name); i++)
            visit(context, &folder, name, &digest);
        size_t before = cursor.left;
        for (uint32_t i = 0; i < folder.absents && next_absent(&cursor, &marks, &name); i++)
            visit(context, &folder, name, NULL);
        if (cursor.failed || before - cursor.left != folder.absent_bytes)
            return false;
    }
    return !cursor.failed && cursor.left == 0;
}

static void ignore(void *context, const struct folder *folder, const char *name, const hdrt__digest *digest)
{
}

bool hdrt__files_valid(const hdrt__files *files)
{
    return walk(files, ignore, NULL);
}

struct visit {
    hdrt__files_visitor visitor;
    void *context;
};

static void visit_path(void *context, const struct folder *folder, const char *name, const hdrt__digest *digest)
{
    const struct visit *visit = context;
    hdrt__buffer path = HDRT__BUFFER_INIT;
    tell(&path, folder, name);
    if (!path.failed)
        visit->visitor(visit->context, (const char *)path.bytes, digest);
    hdrt__buffer_free(&path);
}

void hdrt__files_each(const hdrt__files *files, hdrt__files_visitor visitor, void *context)
{
    struct visit visit = {visitor, context};
    walk(files, visit_path, &visit);
}

static void count_one(void *context, const struct folder *folder, const char *name, const hdrt__digest *digest)
{
    uint32_t *counts = context;
    counts[digest ? 0 : 1]++;
}

void hdrt__files_count(const hdrt__files *files, uint32_t *out_read, uint32_t *out_absent)
{
    uint32_t counts[2] = {0, 0};
    walk(files, count_one, counts);
    *out_read = counts[0];
    *out_absent = counts[1];
}
