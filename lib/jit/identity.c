/* SPDX-License-Identifier: MIT */
#include "jit/identity.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/number.h"
#include "base/status.h"
#include "jit/build_id.h"
#include "jit/loader_cache.h"

#define PRELUDE_FILE_LIMIT ((size_t)16 << 20)
#define PRELUDE_FILES 256

/* Libraries that decide what clang makes; the rest of what it links is the system's. */
static const char *const clang_libraries[] = {"libLLVM", "libclang-cpp", NULL};

#define MEMO_FORMAT 1u
#define LOADER_CACHE "/etc/ld.so.cache"
#define WHOLE_FILE_LIMIT ((size_t)1 << 30)

static bool watch(hdrt__identity *identity, const char *path, const hdrt__stamp *stamp)
{
    if (identity->count == identity->capacity) {
        uint32_t capacity = identity->capacity ? identity->capacity * 2 : 8;
        hdrt__memo_file *bigger = reallocarray(identity->files, capacity, sizeof(*bigger));
        if (!bigger)
            return false;
        identity->files = bigger;
        identity->capacity = capacity;
    }
    char *copy = strdup(path);
    if (!copy)
        return false;
    identity->files[identity->count++] = (hdrt__memo_file){copy, *stamp};
    return true;
}

static hdrt_status no_memory(void)
{
    return hdrt__fail_memory(0, "the compiler's identity");
}

/* "clang-19: build identifier 0123..., 98304 bytes", or by its content. */
static bool describe(hdrt__buffer *lines, const char *name, const char *path, const hdrt__stamp *stamp)
{
    char build[2 * HDRT__BUILD_ID_LIMIT + 1], hex[2 * HDRT__DIGEST_SIZE + 1];
    if (hdrt__build_id(path, build)) {
        hdrt__buffer_format(lines, "%s: build identifier %s, %llu bytes\n", name, build,
                            (unsigned long long)stamp->size);
        return true;
    }
    size_t size;
    unsigned char *bytes = hdrt__file_read(path, WHOLE_FILE_LIMIT, &size, NULL);
    if (!bytes)
        return false;
    hdrt__digest digest = hdrt__digest_of(bytes, size);
    free(bytes);
    hdrt__digest_hex(&digest, hex);
    hdrt__buffer_format(lines, "%s: digest %s, %zu bytes\n", name, hex, size);
    return true;
}

/* A file of the compiler by its real path, so that another link to it is the same compiler. */
static hdrt_status add_file(hdrt__identity *identity, hdrt__buffer *lines, const char *path)
{
    hdrt__stamp stamp;
    errno = 0;
    char *real = realpath(path, NULL);
    if (!real || !hdrt__stamp_file(real, &stamp) || !describe(lines, strrchr(real, '/') + 1, real, &stamp)) {
        int error = real && errno == 0 ? EINVAL : errno;
        free(real);
        return error == ENOMEM ? no_memory()
                               : hdrt__fail(HDRT_ERROR_NO_COMPILER,
                                            "cannot look at '%s', which belongs to the compiler: %s", path,
                                            strerrordesc_np(error));
    }
    bool watched = watch(identity, real, &stamp);
    free(real);
    return watched ? HDRT_OK : no_memory();
}

static hdrt_status add_libraries(hdrt__identity *identity, hdrt__buffer *lines, const char *program)
{
    hdrt__buffer paths = HDRT__BUFFER_INIT;
    hdrt_status status = HDRT_OK;
    hdrt__elf_needed(program, clang_libraries, &paths);
    if (paths.failed)
        status = no_memory();
    for (size_t at = 0; status == HDRT_OK && at < paths.size; at += strlen((char *)paths.bytes + at) + 1) {
        const char *path = (char *)paths.bytes + at;
        if (*path == '/')
            status = add_file(identity, lines, path);
        else
            hdrt__buffer_format(lines, "%s: not found\n", path);
    }
    hdrt__buffer_free(&paths);
    return status;
}

/* A file of libhdrt's own; without it compiling fails, and looking into the cache does not. */
static hdrt_status add_companion(hdrt__identity *identity, hdrt__buffer *lines, const char *name, const char *path)
{
    hdrt__stamp stamp;
    if (!path || !hdrt__stamp_file(path, &stamp) || !describe(lines, name, path, &stamp))
        return HDRT_OK;
    return watch(identity, path, &stamp) ? HDRT_OK : no_memory();
}

static int is_header(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name);
    return size > 2 && strcmp(entry->d_name + size - 2, ".h") == 0;
}

static hdrt_status add_prelude_file(hdrt__identity *identity, hdrt__buffer *lines, const char *folder,
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
        char hex[2 * HDRT__DIGEST_SIZE + 1];
        hdrt__digest digest = hdrt__digest_of(bytes, size);
        hdrt__digest_hex(&digest, hex);
        hdrt__buffer_format(lines, "%s of the device prelude: digest %s\n", name, hex);
        if (!watch(identity, path, &stamp))
            status = no_memory();
    }
    free(bytes);
    free(path);
    return status;
}

static hdrt_status add_prelude(hdrt__identity *identity, hdrt__buffer *lines, const char *folder)
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
            status = add_prelude_file(identity, lines, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static hdrt_status watch_place(hdrt__identity *identity, const char *path)
{
    const hdrt__stamp stamp = hdrt__memo_stamp(path);
    return watch(identity, path, &stamp) ? HDRT_OK : no_memory();
}

/* What leads to other files without one of them changing: links, new libraries, new headers. */
static hdrt_status watch_places(hdrt__identity *identity, const hdrt__found *found, const char *prelude)
{
    hdrt_status status = watch_place(identity, found->path);
    if (status == HDRT_OK)
        status = watch_place(identity, LOADER_CACHE);
    if (status == HDRT_OK && prelude)
        status = watch_place(identity, prelude);
    return status;
}

static hdrt__digest memo_name(hdrt_compiler compiler, const hdrt__found *found, const char *worker, const char *prelude,
                              const char *recorder)
{
    hdrt__hasher hasher;
    hdrt__hasher_begin(&hasher, "hdrt compiler's memo");
    hdrt__hasher_number(&hasher, 1, MEMO_FORMAT);
    hdrt__hasher_number(&hasher, 2, compiler);
    hdrt__hasher_text(&hasher, 3, found->path);
    hdrt__hasher_text(&hasher, 4, found->builtins);
    hdrt__hasher_text(&hasher, 5, worker);
    hdrt__hasher_text(&hasher, 6, prelude);
    hdrt__hasher_text(&hasher, 7, recorder);
    return hdrt__hasher_end(&hasher);
}

static hdrt_status look(hdrt_compiler compiler, const hdrt__found *found, const char *worker, const char *prelude,
                        const char *recorder, hdrt__identity *out)
{
    bool clang = compiler == HDRT_COMPILER_CLANG;
    hdrt__buffer lines = HDRT__BUFFER_INIT;
    hdrt_status status = add_file(out, &lines, found->path);
    if (status == HDRT_OK && found->builtins)
        status = add_file(out, &lines, found->builtins);
    if (status == HDRT_OK && clang)
        status = add_libraries(out, &lines, found->path);
    if (status == HDRT_OK)
        status = add_companion(out, &lines, "compile worker", worker);
    if (status == HDRT_OK && clang)
        status = add_companion(out, &lines, "file recorder", recorder);
    if (status == HDRT_OK && clang && prelude)
        status = add_prelude(out, &lines, prelude);
    if (status == HDRT_OK)
        status = watch_places(out, found, clang ? prelude : NULL);
    if (status == HDRT_OK && !(out->lines = hdrt__buffer_take(&lines, NULL)))
        status = no_memory();
    hdrt__buffer_free(&lines);
    return status;
}

hdrt_status hdrt__identity_of(hdrt_compiler compiler, const hdrt__found *found, const char *worker, const char *prelude,
                              const char *recorder, hdrt__store *store, hdrt__identity *out)
{
    hdrt_status status = HDRT_OK;
    *out = (hdrt__identity){0};
    const hdrt__digest memo = memo_name(compiler, found, worker, prelude, recorder);
    if (store && (out->lines = hdrt__memo_read(store, &memo, &out->files, &out->count)) != NULL) {
        out->capacity = out->count;
    } else {
        status = look(compiler, found, worker, prelude, recorder, out);
        if (status == HDRT_OK && store)
            hdrt__memo_write(store, &memo, out->lines, out->files, out->count);
    }
    if (status != HDRT_OK)
        hdrt__identity_free(out);
    else
        out->digest = hdrt__digest_of(out->lines, strlen(out->lines));
    return status;
}

bool hdrt__identity_current(const hdrt__identity *identity)
{
    for (uint32_t i = 0; i < identity->count; i++)
        if (!hdrt__memo_current(identity->files[i].path, &identity->files[i].stamp))
            return false;
    return identity->count > 0;
}

void hdrt__identity_free(hdrt__identity *identity)
{
    hdrt__memo_files_free(identity->files, identity->count);
    free(identity->lines);
    *identity = (hdrt__identity){0};
}
