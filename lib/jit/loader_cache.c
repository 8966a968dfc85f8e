/* SPDX-License-Identifier: MIT */
#include "jit/loader_cache.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "jit/cursor.h"
#include "jit/stamp.h"

/* A file of the old format has the new one behind it, at the next multiple of 8. */
#define OLD_MAGIC "ld.so-1.7.0"
#define OLD_HEADER 16u
#define OLD_ENTRY 12u
#define NEW_MAGIC "glibc-ld.so.cache1.1"
#define NEW_HEADER 48u
#define NEW_ENTRY 24u
#define CACHE_LIMIT ((size_t)64 << 20)
#define DYNAMIC_LIMIT (1u << 20)
#define STRINGS_LIMIT (16u << 20)

/* The kind of library in an entry's flags: libc6 of this machine. */
#if defined(__x86_64__)
#define ENTRY_FLAGS 0x0303u
#define MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define ENTRY_FLAGS 0x0a03u
#define MULTIARCH "aarch64-linux-gnu"
#else
#define ENTRY_FLAGS 0u
#define MULTIARCH "none"
#endif

const char *const hdrt__loader_folders[] = {"/lib/" MULTIARCH, "/usr/lib/" MULTIARCH, "/lib64", "/usr/lib64", "/lib",
                                            "/usr/lib", "/usr/local/lib", NULL};

/* The string at `offset`, if it ends inside the bytes. */
static const char *string_in(const unsigned char *bytes, size_t size, uint64_t offset)
{
    if (offset >= size || !memchr(bytes + offset, 0, size - (size_t)offset))
        return NULL;
    return (const char *)bytes + offset;
}

char *hdrt__loader_cache_find(const unsigned char *cache, size_t size, const char *name)
{
    if (size >= OLD_HEADER && memcmp(cache, OLD_MAGIC, sizeof(OLD_MAGIC) - 1) == 0) {
        hdrt__cursor count = {cache + 12, 4, false};
        uint64_t skip = (OLD_HEADER + (uint64_t)OLD_ENTRY * hdrt__cursor_u32(&count) + 7) / 8 * 8;
        if (skip > size)
            return NULL;
        cache += skip;
        size -= (size_t)skip;
    }
    if (size < NEW_HEADER || memcmp(cache, NEW_MAGIC, sizeof(NEW_MAGIC) - 1) != 0)
        return NULL;
    hdrt__cursor header = {cache + 20, 4, false};
    uint32_t count = hdrt__cursor_u32(&header);
    hdrt__cursor entries = hdrt__cursor_within(cache, size, NEW_HEADER, (uint64_t)count * NEW_ENTRY);
    for (uint32_t i = 0; i < count && !entries.failed; i++) {
        uint32_t flags = hdrt__cursor_u32(&entries);
        uint32_t key_at = hdrt__cursor_u32(&entries), path_at = hdrt__cursor_u32(&entries);
        hdrt__cursor_u32(&entries); /* version of the system */
        uint64_t hardware = hdrt__cursor_u64(&entries);
        const char *key = string_in(cache, size, key_at), *path = string_in(cache, size, path_at);
        if (!entries.failed && (ENTRY_FLAGS == 0 || flags == ENTRY_FLAGS) && hardware == 0 && key && path &&
            *path == '/' && strcmp(key, name) == 0)
            return strdup(path);
    }
    return NULL;
}

unsigned char *hdrt__loader_cache_read(size_t *out_size)
{
    return hdrt__file_read("/etc/ld.so.cache", CACHE_LIMIT, out_size, NULL);
}

/* Part of a file, malloc'ed; NULL if it is not all there. */
static unsigned char *read_part(int file, uint64_t offset, uint64_t size, uint64_t limit)
{
    if (size == 0 || size > limit || offset > (uint64_t)INT64_MAX)
        return NULL;
    unsigned char *bytes = malloc((size_t)size);
    for (size_t done = 0; bytes && done < size;) {
        ssize_t got = pread(file, bytes + done, (size_t)size - done, (off_t)(offset + done));
        if (got <= 0) {
            free(bytes);
            return NULL;
        }
        done += (size_t)got;
    }
    return bytes;
}

struct dynamic {
    unsigned char *entries; /* the dynamic section */
    unsigned char *strings; /* its string table, with a NUL behind */
    size_t entries_size, strings_size;
};

/* Where an address of the loaded image lies in the file; false if no segment has it. */
static bool file_offset(const unsigned char *headers, unsigned count, uint64_t address, uint64_t *out)
{
    for (unsigned i = 0; i < count; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, headers + i * sizeof(segment), sizeof(segment));
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
            *out = segment.p_offset + (address - segment.p_vaddr);
            return true;
        }
    }
    return false;
}

static bool read_dynamic(int file, struct dynamic *out)
{
    Elf64_Ehdr header;
    uint64_t strings_address = 0, strings_size = 0, strings_at;
    bool good = false;
    *out = (struct dynamic){0};
    if (pread(file, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof(Elf64_Phdr))
        return false;
    unsigned char *headers =
        read_part(file, header.e_phoff, (uint64_t)header.e_phnum * sizeof(Elf64_Phdr), DYNAMIC_LIMIT);
    if (!headers)
        return false;
    for (unsigned i = 0; i < header.e_phnum && !out->entries; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, headers + i * sizeof(segment), sizeof(segment));
        if (segment.p_type == PT_DYNAMIC) {
            out->entries = read_part(file, segment.p_offset, segment.p_filesz, DYNAMIC_LIMIT);
            out->entries_size = (size_t)segment.p_filesz;
        }
    }
    for (size_t at = 0; out->entries && at + sizeof(Elf64_Dyn) <= out->entries_size; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn entry;
        memcpy(&entry, out->entries + at, sizeof(entry));
        if (entry.d_tag == DT_STRTAB)
            strings_address = entry.d_un.d_ptr;
        else if (entry.d_tag == DT_STRSZ)
            strings_size = entry.d_un.d_val;
    }
    if (out->entries && file_offset(headers, header.e_phnum, strings_address, &strings_at)) {
        out->strings = read_part(file, strings_at, strings_size, STRINGS_LIMIT);
        out->strings_size = (size_t)strings_size;
        good = out->strings != NULL;
    }
    free(headers);
    return good;
}

/* The library in one of the colon-separated folders, where $ORIGIN is `origin`; malloc'ed or NULL. */
static char *find_in_path(const char *folders, const char *origin, const char *name)
{
    while (*folders) {
        size_t size = strcspn(folders, ":");
        hdrt__buffer path = HDRT__BUFFER_INIT;
        size_t skip = strncmp(folders, "$ORIGIN", 7) == 0 ? 7 : strncmp(folders, "${ORIGIN}", 9) == 0 ? 9 : 0;
        if (skip)
            hdrt__buffer_text(&path, origin);
        hdrt__buffer_format(&path, "%.*s/%s", (int)(size - skip), folders + skip, name);
        char *full = hdrt__buffer_take(&path, NULL);
        if (full && *full == '/' && access(full, R_OK) == 0)
            return full;
        free(full);
        folders += size + (folders[size] == ':');
    }
    return NULL;
}

static char *find_library(const char *runpath, const char *origin, const unsigned char *cache, size_t cache_size,
                          const char *name)
{
    char *path = runpath ? find_in_path(runpath, origin, name) : NULL;
    if (!path && cache)
        path = hdrt__loader_cache_find(cache, cache_size, name);
    for (size_t i = 0; !path && hdrt__loader_folders[i]; i++)
        path = find_in_path(hdrt__loader_folders[i], origin, name);
    return path;
}

static bool has_prefix(const char *name, const char *const *prefixes)
{
    for (; *prefixes; prefixes++)
        if (strncmp(name, *prefixes, strlen(*prefixes)) == 0)
            return true;
    return false;
}

static void list_needed(const struct dynamic *dynamic, const char *origin, const char *const *prefixes,
                        hdrt__buffer *paths)
{
    const char *runpath = NULL;
    size_t cache_size = 0;
    unsigned char *cache = hdrt__loader_cache_read(&cache_size);
    for (int pass = 0; pass < 2; pass++) /* the run path may stand behind what is needed */
        for (size_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic->entries_size; at += sizeof(Elf64_Dyn)) {
            Elf64_Dyn entry;
            memcpy(&entry, dynamic->entries + at, sizeof(entry));
            const char *text = string_in(dynamic->strings, dynamic->strings_size, entry.d_un.d_val);
            if (pass == 0 && (entry.d_tag == DT_RUNPATH || entry.d_tag == DT_RPATH) && text)
                runpath = text;
            if (pass == 0 || entry.d_tag != DT_NEEDED || !text || !has_prefix(text, prefixes))
                continue;
            char *library = find_library(runpath, origin, cache, cache_size, text);
            char *real = library ? realpath(library, NULL) : NULL;
            const char *shown = real ? real : text;
            hdrt__buffer_append(paths, shown, strlen(shown) + 1);
            free(real);
            free(library);
        }
    free(cache);
}

void hdrt__elf_needed(const char *path, const char *const *prefixes, hdrt__buffer *paths)
{
    struct dynamic dynamic = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return;
    char *origin = realpath(path, NULL);
    if (origin && read_dynamic(file, &dynamic)) {
        char *slash = strrchr(origin, '/');
        if (slash)
            *slash = '\0';
        list_needed(&dynamic, origin, prefixes, paths);
    }
    free(origin);
    free(dynamic.entries);
    free(dynamic.strings);
    close(file);
}
