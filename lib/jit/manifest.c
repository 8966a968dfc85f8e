/* SPDX-License-Identifier: MIT */
#include "jit/manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jit/container.h"

static const char magic[HDRT__CONTAINER_MAGIC_SIZE] = {'H', 'D', 'R', 'T', 'M', 'A', 'N', '\n'};

/* Sections of a manifest; a record is its image's name and all that follows up to the next one. */
enum manifest_section {
    MANIFEST_KEY = 1,
    MANIFEST_IMAGE = 2,
    MANIFEST_DEPENDENCY = 3, /* u64 size, mtime, ctime, device, inode; digest; path */
    MANIFEST_ABSENT = 4,
};

static void *grown(void *array, uint32_t count, uint32_t *capacity, size_t element)
{
    if (count < *capacity)
        return array;
    uint32_t wanted = *capacity ? *capacity * 2 : 8;
    void *bigger = wanted > *capacity ? reallocarray(array, wanted, element) : NULL;
    if (bigger)
        *capacity = wanted;
    return bigger;
}

bool hdrt__record_add_dependency(hdrt__record *record, const char *path, size_t path_size, const hdrt__stamp *stamp,
                                 const hdrt__digest *digest)
{
    hdrt__dependency *list = grown(record->dependencies, record->dependency_count, &record->dependency_capacity,
                                   sizeof(*list));
    if (!list)
        return false;
    record->dependencies = list;
    char *copy = strndup(path, path_size);
    if (!copy)
        return false;
    list[record->dependency_count++] = (hdrt__dependency){copy, *stamp, *digest};
    return true;
}

bool hdrt__record_add_absent(hdrt__record *record, const char *path, size_t path_size)
{
    char **list = grown(record->absent, record->absent_count, &record->absent_capacity, sizeof(*list));
    if (!list)
        return false;
    record->absent = list;
    char *copy = strndup(path, path_size);
    if (!copy)
        return false;
    list[record->absent_count++] = copy;
    return true;
}

bool hdrt__record_copy(const hdrt__record *record, hdrt__record *out)
{
    bool good = true;
    *out = (hdrt__record){.image = record->image};
    for (uint32_t i = 0; good && i < record->dependency_count; i++) {
        const hdrt__dependency *d = &record->dependencies[i];
        good = hdrt__record_add_dependency(out, d->path, strlen(d->path), &d->stamp, &d->digest);
    }
    for (uint32_t i = 0; good && i < record->absent_count; i++)
        good = hdrt__record_add_absent(out, record->absent[i], strlen(record->absent[i]));
    if (!good)
        hdrt__record_free(out);
    return good;
}

void hdrt__record_free(hdrt__record *record)
{
    for (uint32_t i = 0; i < record->dependency_count; i++)
        free(record->dependencies[i].path);
    for (uint32_t i = 0; i < record->absent_count; i++)
        free(record->absent[i]);
    free(record->dependencies);
    free(record->absent);
    *record = (hdrt__record){0};
}

hdrt__digest hdrt__record_image(const hdrt__digest *key, const hdrt__record *record)
{
    hdrt__hasher hasher;
    hdrt__hasher_begin(&hasher, "hdrt image");
    hdrt__hasher_field(&hasher, 1, key->bytes, sizeof(key->bytes));
    for (uint32_t i = 0; i < record->dependency_count; i++) {
        hdrt__hasher_text(&hasher, 2, record->dependencies[i].path);
        hdrt__hasher_field(&hasher, 3, record->dependencies[i].digest.bytes, HDRT__DIGEST_SIZE);
    }
    for (uint32_t i = 0; i < record->absent_count; i++)
        hdrt__hasher_text(&hasher, 4, record->absent[i]);
    return hdrt__hasher_end(&hasher);
}

/* As the compiler's search sees it: anything there, even a folder or a dangling link's target, is not absent. */
static bool is_absent(const char *path)
{
    struct stat status;
    return stat(path, &status) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

bool hdrt__record_current(hdrt__record *record, bool *out_refreshed)
{
    *out_refreshed = false;
    for (uint32_t i = 0; i < record->absent_count; i++)
        if (!is_absent(record->absent[i]))
            return false;
    for (uint32_t i = 0; i < record->dependency_count; i++) {
        hdrt__dependency *dependency = &record->dependencies[i];
        hdrt__stamp now;
        if (!hdrt__stamp_file(dependency->path, &now))
            return false;
        if (hdrt__stamp_equal(&now, &dependency->stamp))
            continue;
        if (now.size != dependency->stamp.size)
            return false;
        uint64_t when = hdrt__wall_ns();
        size_t size;
        unsigned char *bytes = hdrt__file_read(dependency->path, HDRT__HEADER_LIMIT, &size, &now);
        if (!bytes)
            return false;
        hdrt__digest digest = hdrt__digest_of(bytes, size);
        free(bytes);
        if (!hdrt__digest_equal(&digest, &dependency->digest))
            return false;
        if (!hdrt__stamp_racy(&now, when)) {
            dependency->stamp = now;
            *out_refreshed = true;
        }
    }
    return true;
}

static bool word_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool hdrt__has_time_macro(const char *bytes, size_t size)
{
    static const char *const names[] = {"__DATE__", "__TIME__", "__TIMESTAMP__"};
    for (size_t n = 0; n < 3; n++) {
        size_t length = strlen(names[n]);
        const char *end = bytes + size, *at = bytes;
        while ((at = memmem(at, (size_t)(end - at), names[n], length)) != NULL) {
            bool begins = at == bytes || !word_character(at[-1]);
            bool ends = at + length == end || !word_character(at[length]);
            if (begins && ends)
                return true;
            at += length;
        }
    }
    return false;
}

const char *hdrt__record_settle(hdrt__record *record, uint64_t began_ns, hdrt__buffer *text)
{
    for (uint32_t i = 0; i < record->absent_count; i++)
        if (!is_absent(record->absent[i])) {
            hdrt__buffer_format(text, "'%s' appeared during the compile", record->absent[i]);
            goto not_stored;
        }
    for (uint32_t i = 0; i < record->dependency_count; i++) {
        hdrt__dependency *dependency = &record->dependencies[i];
        size_t size;
        unsigned char *bytes = hdrt__file_read(dependency->path, HDRT__HEADER_LIMIT, &size, &dependency->stamp);
        hdrt__digest digest = bytes ? hdrt__digest_of(bytes, size) : (hdrt__digest){0};
        bool timed = bytes && hdrt__has_time_macro((const char *)bytes, size);
        free(bytes);
        if (!bytes || !hdrt__digest_equal(&digest, &dependency->digest)) {
            hdrt__buffer_format(text, "'%s' changed during the compile", dependency->path);
            goto not_stored;
        }
        if (timed) {
            hdrt__buffer_format(text, "'%s' asks for the date or time", dependency->path);
            goto not_stored;
        }
        if (hdrt__stamp_racy(&dependency->stamp, began_ns)) {
            dependency->stamp.mtime_ns = 0;
            dependency->stamp.ctime_ns = 0;
        }
    }
    return NULL;
not_stored:
    return text->failed ? "memory is out" : (const char *)text->bytes;
}

void hdrt__manifest_add(hdrt__manifest *manifest, hdrt__record *record)
{
    uint32_t at = 0;
    while (at < manifest->count && !hdrt__digest_equal(&manifest->records[at].image, &record->image))
        at++;
    if (at == HDRT__RECORD_LIMIT)
        at--;
    if (at < manifest->count)
        hdrt__record_free(&manifest->records[at]);
    else
        manifest->count++;
    memmove(&manifest->records[1], &manifest->records[0], at * sizeof(manifest->records[0]));
    manifest->records[0] = *record;
    *record = (hdrt__record){0};
}

static void write_dependency(const hdrt__dependency *dependency, hdrt__buffer *bytes)
{
    hdrt__buffer payload = HDRT__BUFFER_INIT;
    hdrt__buffer_u64(&payload, dependency->stamp.size);
    hdrt__buffer_u64(&payload, dependency->stamp.mtime_ns);
    hdrt__buffer_u64(&payload, dependency->stamp.ctime_ns);
    hdrt__buffer_u64(&payload, dependency->stamp.device);
    hdrt__buffer_u64(&payload, dependency->stamp.inode);
    hdrt__buffer_append(&payload, dependency->digest.bytes, HDRT__DIGEST_SIZE);
    hdrt__buffer_text(&payload, dependency->path);
    bytes->failed = bytes->failed || payload.failed;
    hdrt__container_section(bytes, MANIFEST_DEPENDENCY, payload.bytes, payload.size);
    hdrt__buffer_free(&payload);
}

void hdrt__manifest_write(const hdrt__manifest *manifest, hdrt__buffer *bytes)
{
    hdrt__container_begin(bytes, magic);
    hdrt__container_section(bytes, MANIFEST_KEY, manifest->key.bytes, HDRT__DIGEST_SIZE);
    for (uint32_t r = 0; r < manifest->count; r++) {
        const hdrt__record *record = &manifest->records[r];
        hdrt__container_section(bytes, MANIFEST_IMAGE, record->image.bytes, HDRT__DIGEST_SIZE);
        for (uint32_t i = 0; i < record->dependency_count; i++)
            write_dependency(&record->dependencies[i], bytes);
        for (uint32_t i = 0; i < record->absent_count; i++)
            hdrt__container_text(bytes, MANIFEST_ABSENT, record->absent[i]);
    }
    hdrt__container_end(bytes);
}

static bool read_dependency(hdrt__record *record, const hdrt__section *section)
{
    hdrt__cursor cursor = {section->bytes, section->size, false};
    hdrt__stamp stamp;
    hdrt__digest digest;
    size_t digest_size;
    stamp.size = hdrt__cursor_u64(&cursor);
    stamp.mtime_ns = hdrt__cursor_u64(&cursor);
    stamp.ctime_ns = hdrt__cursor_u64(&cursor);
    stamp.device = hdrt__cursor_u64(&cursor);
    stamp.inode = hdrt__cursor_u64(&cursor);
    const unsigned char *bytes = hdrt__cursor_bytes(&cursor, HDRT__DIGEST_SIZE, &digest_size);
    if (cursor.failed || cursor.left == 0 || memchr(cursor.bytes, 0, cursor.left))
        return false;
    memcpy(digest.bytes, bytes, digest_size);
    return hdrt__record_add_dependency(record, (const char *)cursor.bytes, cursor.left, &stamp, &digest);
}

static bool read_section(hdrt__manifest *manifest, const hdrt__section *section, const hdrt__digest *key, bool *keyed)
{
    hdrt__record *record = manifest->count ? &manifest->records[manifest->count - 1] : NULL;
    switch ((enum manifest_section)section->tag) {
    case MANIFEST_KEY:
        *keyed = section->size == HDRT__DIGEST_SIZE && memcmp(section->bytes, key->bytes, HDRT__DIGEST_SIZE) == 0;
        return *keyed;
    case MANIFEST_IMAGE:
        if (section->size != HDRT__DIGEST_SIZE || manifest->count == HDRT__RECORD_LIMIT)
            return false;
        record = &manifest->records[manifest->count++];
        *record = (hdrt__record){0};
        memcpy(record->image.bytes, section->bytes, HDRT__DIGEST_SIZE);
        return true;
    case MANIFEST_DEPENDENCY:
        return record && read_dependency(record, section);
    case MANIFEST_ABSENT:
        return record && section->size && !memchr(section->bytes, 0, section->size) &&
               hdrt__record_add_absent(record, (const char *)section->bytes, section->size);
    }
    return true; /* written by a later version */
}

bool hdrt__manifest_read(const unsigned char *bytes, size_t size, const hdrt__digest *key, hdrt__manifest *out)
{
    hdrt__cursor sections;
    hdrt__section section;
    bool good = true, keyed = false;
    *out = (hdrt__manifest){.key = *key};
    if (!hdrt__container_open(bytes, size, magic, &sections))
        return false;
    while (good && hdrt__container_next(&sections, &section))
        good = read_section(out, &section, key, &keyed);
    if (good && keyed && !sections.failed)
        return true;
    hdrt__manifest_free(out);
    return false;
}

void hdrt__manifest_free(hdrt__manifest *manifest)
{
    for (uint32_t i = 0; i < manifest->count; i++)
        hdrt__record_free(&manifest->records[i]);
    manifest->count = 0;
}
