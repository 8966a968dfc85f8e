/* SPDX-License-Identifier: MIT */
#include "jit/identity.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/status.h"
#include "jit/loader_cache.h"

#define PRELUDE_FILE_LIMIT ((size_t)16 << 20)
#define PRELUDE_FILES 256

/* Libraries that decide what clang makes; the rest of what it links is the system's. */
static const char *const clang_libraries[] = {"libLLVM", "libclang-cpp", NULL};

enum { TAG_COMPILER = 1, TAG_PATH, TAG_SIZE, TAG_TIME, TAG_BARE_NAME, TAG_WORKER, TAG_PRELUDE_NAME, TAG_PRELUDE };

static bool watch(hdrt__identity *identity, const char *path, const hdrt__stamp *stamp)
{
    if (identity->count == identity->capacity) {
        uint32_t capacity = identity->capacity ? identity->capacity * 2 : 8;
        hdrt__identity_file *bigger = reallocarray(identity->files, capacity, sizeof(*bigger));
        if (!bigger)
            return false;
        identity->files = bigger;
        identity->capacity = capacity;
    }
    char *copy = strdup(path);
    if (!copy)
        return false;
    identity->files[identity->count++] = (hdrt__identity_file){copy, *stamp};
    return true;
}

/* A file of the compiler by its real path, so that another link to it is the same compiler. */
static hdrt_status add_file(hdrt__identity *identity, hdrt__hasher *hasher, const char *path)
{
    hdrt__stamp stamp;
    char *real = realpath(path, NULL);
    if (!real || !hdrt__stamp_file(real, &stamp)) {
        int error = real ? EINVAL : errno;
        free(real);
        return hdrt__fail(HDRT_ERROR_NO_COMPILER, "cannot look at '%s', which belongs to the compiler: %s", path,
                          strerrordesc_np(error));
    }
    hdrt__hasher_text(hasher, TAG_PATH, real);
    hdrt__hasher_number(hasher, TAG_SIZE, stamp.size);
    hdrt__hasher_number(hasher, TAG_TIME, stamp.mtime_ns);
    bool watched = watch(identity, real, &stamp);
    free(real);
    return watched ? HDRT_OK : hdrt__fail_memory(strlen(path), "the compiler's identity");
}

static hdrt_status add_libraries(hdrt__identity *identity, hdrt__hasher *hasher, const char *program)
{
    hdrt__buffer paths = HDRT__BUFFER_INIT;
    hdrt_status status = HDRT_OK;
    hdrt__elf_needed(program, clang_libraries, &paths);
    if (paths.failed)
        status = hdrt__fail_memory(0, "the compiler's identity");
    for (size_t at = 0; status == HDRT_OK && at < paths.size; at += strlen((char *)paths.bytes + at) + 1) {
        const char *path = (char *)paths.bytes + at;
        if (*path == '/')
            status = add_file(identity, hasher, path);
        else
            hdrt__hasher_text(hasher, TAG_BARE_NAME, path);
    }
    hdrt__buffer_free(&paths);
    return status;
}

/* Without its path: a moved installation is the same one. */
static hdrt_status add_companion(hdrt__identity *identity, hdrt__hasher *hasher, const char *path)
{
    hdrt__stamp stamp;
    if (!path || !hdrt__stamp_file(path, &stamp))
        return HDRT_OK;
    hdrt__hasher_number(hasher, TAG_WORKER, stamp.size);
    hdrt__hasher_number(hasher, TAG_TIME, stamp.mtime_ns);
    return watch(identity, path, &stamp) ? HDRT_OK : hdrt__fail_memory(strlen(path), "the compiler's identity");
}

static int is_header(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name);
    return size > 2 && strcmp(entry->d_name + size - 2, ".h") == 0;
}

static hdrt_status add_prelude_file(hdrt__identity *identity, hdrt__hasher *hasher, const char *folder,
                                    const char *name)
{
    char *path = hdrt__path_join(folder, name);
    hdrt__stamp stamp;
    size_t size;
    unsigned char *bytes = path ? hdrt__file_read(path, PRELUDE_FILE_LIMIT, &size, &stamp) : NULL;
    hdrt_status status = HDRT_OK;
    if (!path || (!bytes && errno == ENOMEM)) {
        status = hdrt__fail_memory(strlen(folder), "the device prelude");
    } else if (!bytes) {
        status =
            hdrt__fail(HDRT_ERROR_COMPANION, "cannot read the device prelude '%s': %s", path, strerrordesc_np(errno));
    } else {
        hdrt__hasher_text(hasher, TAG_PRELUDE_NAME, name);
        hdrt__hasher_field(hasher, TAG_PRELUDE, bytes, size);
        if (!watch(identity, path, &stamp))
            status = hdrt__fail_memory(size, "the compiler's identity");
    }
    free(bytes);
    free(path);
    return status;
}

static hdrt_status add_prelude(hdrt__identity *identity, hdrt__hasher *hasher, const char *folder)
{
    struct dirent **entries = NULL;
    hdrt_status status = HDRT_OK;
    int count = scandir(folder, &entries, is_header, alphasort);
    if (count < 0)
        return hdrt__fail(HDRT_ERROR_COMPANION, "cannot read the device prelude's folder '%s': %s", folder,
                          strerrordesc_np(errno));
    if (count > PRELUDE_FILES)
        status = hdrt__fail(HDRT_ERROR_COMPANION, "the device prelude's folder '%s' has %d headers: this is not it",
                            folder, count);
    for (int i = 0; i < count; i++) {
        if (status == HDRT_OK)
            status = add_prelude_file(identity, hasher, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return status;
}

hdrt_status hdrt__identity_of(hdrt_compiler compiler, const hdrt__found *found, const char *worker, const char *prelude,
                              const char *recorder, hdrt__identity *out)
{
    hdrt__hasher hasher;
    *out = (hdrt__identity){0};
    hdrt__hasher_begin(&hasher, "hdrt compiler");
    hdrt__hasher_number(&hasher, TAG_COMPILER, compiler);
    hdrt_status status = add_file(out, &hasher, found->path);
    if (status == HDRT_OK && found->builtins)
        status = add_file(out, &hasher, found->builtins);
    if (status == HDRT_OK && compiler == HDRT_COMPILER_CLANG)
        status = add_libraries(out, &hasher, found->path);
    if (status == HDRT_OK)
        status = add_companion(out, &hasher, worker);
    if (status == HDRT_OK && compiler == HDRT_COMPILER_CLANG)
        status = add_companion(out, &hasher, recorder);
    if (status == HDRT_OK && compiler == HDRT_COMPILER_CLANG && prelude)
        status = add_prelude(out, &hasher, prelude);
    out->digest = hdrt__hasher_end(&hasher);
    if (status != HDRT_OK)
        hdrt__identity_free(out);
    return status;
}

bool hdrt__identity_current(const hdrt__identity *identity)
{
    for (uint32_t i = 0; i < identity->count; i++) {
        hdrt__stamp now;
        if (!hdrt__stamp_file(identity->files[i].path, &now) || !hdrt__stamp_equal(&now, &identity->files[i].stamp))
            return false;
    }
    return identity->count > 0;
}

void hdrt__identity_free(hdrt__identity *identity)
{
    for (uint32_t i = 0; i < identity->count; i++)
        free(identity->files[i].path);
    free(identity->files);
    *identity = (hdrt__identity){0};
}
