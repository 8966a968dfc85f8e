/* SPDX-License-Identifier: MIT */
#include "jit/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

bool hdrt__is_absent(const char *path)
{
    struct stat status;
    return stat(path, &status) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

static bool word_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static const char *const time_macros[] = {"__DATE__", "__TIME__", "__TIMESTAMP__"};
#define TIME_MACROS (sizeof(time_macros) / sizeof(time_macros[0]))

/* The cuts of a macro's name that were seen: bit n of `first` for its first n characters as a word, and so on. */
struct pieces {
    uint32_t first[TIME_MACROS], rest[TIME_MACROS];
};

/* Takes a word into account; true if it, or with an earlier one pasted to it, is a macro's name. */
static bool take_word(struct pieces *pieces, const char *word, size_t size)
{
    for (size_t n = 0; n < TIME_MACROS; n++) {
        size_t length = strlen(time_macros[n]);
        if (size > length)
            continue;
        if (memcmp(word, time_macros[n], size) == 0) {
            if (size == length)
                return true;
            pieces->first[n] |= UINT32_C(1) << size;
        }
        if (memcmp(word, time_macros[n] + (length - size), size) == 0)
            pieces->rest[n] |= UINT32_C(1) << (length - size);
        if (pieces->first[n] & pieces->rest[n])
            return true;
    }
    return false;
}

/* Every word with an underscore in it, which all pieces of the names have. */
static bool find_time_macro(const char *bytes, size_t size)
{
    struct pieces pieces = {{0}, {0}};
    const char *end = bytes + size, *at = bytes;
    while (at < end && (at = memchr(at, '_', (size_t)(end - at))) != NULL) {
        const char *begin = at, *stop = at;
        while (begin > bytes && word_character(begin[-1]))
            begin--;
        while (stop < end && word_character(*stop))
            stop++;
        if (take_word(&pieces, begin, (size_t)(stop - begin)))
            return true;
        at = stop;
    }
    return false;
}

/* The bytes without their spliced line ends (a backslash or its trigraph before one); NULL if memory is out. */
static char *join_lines(const char *bytes, size_t size, size_t *out_size)
{
    char *joined = malloc(size + 1);
    size_t kept = 0;
    for (size_t i = 0; joined && i < size;) {
        size_t escape = bytes[i] == '\\' ? 1 : i + 3 <= size && memcmp(bytes + i, "?\?/", 3) == 0 ? 3 : 0;
        size_t end = i + escape;
        while (escape && end < size && (bytes[end] == ' ' || bytes[end] == '\t' || bytes[end] == '\r'))
            end++;
        if (escape && end < size && bytes[end] == '\n')
            i = end + 1;
        else
            joined[kept++] = bytes[i++];
    }
    *out_size = kept;
    return joined;
}

bool hdrt__has_time_macro(const char *bytes, size_t size)
{
    bool spliced = memmem(bytes, size, "\\\n", 2) || memmem(bytes, size, "\\\r", 2) || memmem(bytes, size, "\\ ", 2) ||
                   memmem(bytes, size, "\\\t", 2) || memmem(bytes, size, "?\?/", 3);
    if (!spliced)
        return find_time_macro(bytes, size);
    char *joined = join_lines(bytes, size, &size);
    bool found = !joined || find_time_macro(joined, size); /* without memory: not known, so not stored */
    free(joined);
    return found;
}

const char *hdrt__record_settle(hdrt__record *record, uint64_t began_ns, hdrt__buffer *text)
{
    for (uint32_t i = 0; i < record->absent_count; i++)
        if (!hdrt__is_absent(record->absent[i])) {
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
