/* SPDX-License-Identifier: MIT */
#include "jit/find.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/environment.h"
#include "base/number.h"
#include "base/status.h"
#include "jit/loader_cache.h"

#define CLANG_NEWEST 40
#define CLANG_OLDEST 14
#define BUILTINS_PREFIX "libnvrtc-builtins.so."

#if defined(__aarch64__)
#define TOOLKIT_TARGETS "targets/sbsa-linux/lib", "targets/aarch64-linux/lib"
#else
#define TOOLKIT_TARGETS "targets/x86_64-linux/lib"
#endif

static const char *const nvrtc_names[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
static const char *const toolkit_folders[] = {"lib64", "lib", TOOLKIT_TARGETS};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A search in progress: what was tried, and the result once there is one. */
struct search {
    hdrt__buffer tried;
    hdrt__found *found;
};

static void note(struct search *search, const char *rule, const char *what)
{
    hdrt__buffer_format(&search->tried, "%s%s%s%s", search->tried.size ? ", " : "", rule, what ? " " : "",
                        what ? what : "");
}

/* A path; without memory the search has failed as a whole, and must not say that nothing is there. */
static char *join(struct search *search, const char *folder, const char *name)
{
    char *path = hdrt__path_join(folder, name);
    if (!path)
        search->tried.failed = true;
    return path;
}

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Takes `path` (malloc'ed, made absolute) as the result. */
static void take(struct search *search, char *path, const char *rule)
{
    if (path && *path != '/') {
        char *here = getcwd(NULL, 0);
        char *absolute = here ? hdrt__path_join(here, path) : NULL;
        free(here);
        free(path);
        path = absolute;
    }
    search->found->path = path;
    search->found->rule = strdup(rule);
    if (!path)
        search->tried.failed = true;
}

/* Any of NVRTC's names in a folder. */
static bool try_folder(struct search *search, const char *folder, const char *rule)
{
    for (size_t i = 0; i < COUNT(nvrtc_names); i++) {
        char *path = join(search, folder, nvrtc_names[i]);
        if (path && is_file(path)) {
            take(search, path, rule);
            return true;
        }
        free(path);
    }
    return false;
}

/* A folder given by the user: the library may be right there, or where toolkits have it. */
static bool try_toolkit(struct search *search, const char *root, const char *rule)
{
    bool found = false;
    for (size_t i = 0; i < COUNT(toolkit_folders) && !found; i++) {
        char *folder = join(search, root, toolkit_folders[i]);
        found = folder && try_folder(search, folder, rule);
        free(folder);
    }
    return found;
}

static void search_named(struct search *search, const char *place, const char *rule)
{
    if (is_folder(place)) {
        if (!try_folder(search, place, rule) && !try_toolkit(search, place, rule)) {
            hdrt__buffer_format(&search->tried, "%s '%s' (no libnvrtc.so.13 or .so.12 in that folder)", rule, place);
        }
    } else if (is_file(place)) {
        take(search, strdup(place), rule);
    } else {
        hdrt__buffer_format(&search->tried, "%s '%s' (no such file or folder)", rule, place);
    }
}

/* The colon-separated folders of LD_LIBRARY_PATH; an empty one would be the current folder and is left out. */
static bool try_library_path(struct search *search)
{
    const char *list = secure_getenv("LD_LIBRARY_PATH");
    bool found = false;
    while (list && *list && !found) {
        size_t size = strcspn(list, ":;");
        char *folder = *list == '/' ? strndup(list, size) : NULL;
        found = folder && try_folder(search, folder, "LD_LIBRARY_PATH");
        free(folder);
        list += size + (list[size] != '\0');
    }
    return found;
}

static bool try_loader(struct search *search)
{
    size_t size = 0;
    unsigned char *cache = hdrt__loader_cache_read(&size);
    bool found = false;
    for (size_t i = 0; cache && i < COUNT(nvrtc_names) && !found; i++) {
        char *path = hdrt__loader_cache_find(cache, size, nvrtc_names[i]);
        found = path && is_file(path);
        if (found)
            take(search, path, "the loader's cache");
        else
            free(path);
    }
    free(cache);
    for (size_t i = 0; hdrt__loader_folders[i] && !found; i++)
        found = try_folder(search, hdrt__loader_folders[i], "the loader's folders");
    return found;
}

static void search_nvrtc(struct search *search, const char *option)
{
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
    const char *named = hdrt__environment(HDRT__ENV_NVRTC);
    if (option && *option) {
        search_named(search, option, "the runtime option nvrtc");
        return;
    }
    if (named) {
        search_named(search, named, "HDRT_NVRTC");
        return;
    }
    for (size_t i = 0; i < COUNT(variables); i++) {
        const char *root = secure_getenv(variables[i]);
        note(search, variables[i], root && *root ? root : "(not set)");
        if (root && *root == '/' && try_toolkit(search, root, variables[i]))
            return;
    }
    note(search, "libnvrtc.so.13 and libnvrtc.so.12 by LD_LIBRARY_PATH, the loader's cache and its folders", NULL);
    if (try_library_path(search) || try_loader(search))
        return;
    note(search, "/usr/local/cuda", NULL);
    try_toolkit(search, "/usr/local/cuda", "/usr/local/cuda");
}

/* "13.0" of "/x/libnvrtc.so.13.0.88"; how many parts there are: 0 for none. */
static unsigned version_of(const char *path, unsigned *major, unsigned *minor)
{
    const char *so = strstr(path, ".so.");
    int parts = so ? sscanf(so, ".so.%u.%u", major, minor) : 0;
    return parts > 0 ? (unsigned)parts : 0;
}

/*
 * The builtins beside the library itself. Its real name often tells the minor version; where it does not, the folder
 * must have builtins of one minor version only.
 */
static char *find_builtins(const char *library)
{
    char *real = realpath(library, NULL), *found = NULL;
    unsigned major = 0, minor = 0, parts = real ? version_of(real, &major, &minor) : 0;
    char *slash = real ? strrchr(real, '/') : NULL;
    if (!slash) {
        free(real);
        return NULL;
    }
    *slash = '\0';
    char name[64];
    if (parts == 2) {
        snprintf(name, sizeof(name), BUILTINS_PREFIX "%u.%u", major, minor);
        found = hdrt__path_join(real, name);
    } else if (parts == 1) {
        DIR *folder = opendir(real);
        bool several = false;
        unsigned first = 0;
        for (struct dirent *entry; folder && (entry = readdir(folder));) {
            unsigned entry_major, entry_minor;
            if (strncmp(entry->d_name, BUILTINS_PREFIX, sizeof(BUILTINS_PREFIX) - 1) != 0 ||
                version_of(entry->d_name, &entry_major, &entry_minor) != 2 || entry_major != major)
                continue;
            several = several || (found && entry_minor != first);
            first = entry_minor;
            snprintf(name, sizeof(name), BUILTINS_PREFIX "%u.%u", entry_major, entry_minor);
            free(found);
            found = hdrt__path_join(real, name);
        }
        if (folder)
            closedir(folder);
        if (several) {
            free(found);
            found = NULL;
        }
    }
    free(real);
    if (found && !is_file(found)) {
        free(found);
        found = NULL;
    }
    return found;
}

static hdrt_status finish(struct search *search)
{
    hdrt__found *found = search->found;
    if (!found->path && !search->tried.failed)
        found->rule = hdrt__buffer_take(&search->tried, NULL);
    bool failed = search->tried.failed || !found->rule;
    hdrt__buffer_free(&search->tried);
    if (!failed)
        return HDRT_OK;
    hdrt__found_free(found);
    return hdrt__fail_memory(0, "the search for compilers");
}

hdrt_status hdrt__find_nvrtc(const char *option, hdrt__found *out)
{
    struct search search = {.found = out};
    *out = (hdrt__found){0};
    search_nvrtc(&search, option);
    if (out->path)
        out->builtins = find_builtins(out->path);
    return finish(&search);
}

static bool runnable(const char *path)
{
    return is_file(path) && faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

/* A program by name in the colon-separated folders; relative ones are left out. */
static char *find_program(struct search *search, const char *folders, const char *name)
{
    while (folders && *folders) {
        size_t size = strcspn(folders, ":");
        char *folder = *folders == '/' ? strndup(folders, size) : NULL;
        char *path = folder ? join(search, folder, name) : NULL;
        free(folder);
        if (path && runnable(path))
            return path;
        free(path);
        folders += size + (folders[size] == ':');
    }
    return NULL;
}

static void search_clang(struct search *search, const char *option)
{
    const char *named = option && *option ? option : hdrt__environment(HDRT__ENV_CLANG);
    const char *rule = option && *option ? "the runtime option clang" : "HDRT_CLANG";
    const char *folders = secure_getenv("PATH");
    if (getauxval(AT_SECURE) || !folders || !*folders)
        folders = "/usr/local/bin:/usr/bin:/bin";
    char *path = NULL;
    if (named) {
        path = strchr(named, '/') ? (runnable(named) ? strdup(named) : NULL) : find_program(search, folders, named);
        if (path)
            take(search, path, rule);
        else
            hdrt__buffer_format(&search->tried, "%s '%s' (no such program)", rule, named);
        return;
    }
    for (unsigned version = CLANG_NEWEST; version >= CLANG_OLDEST && !path; version--) {
        char name[16];
        snprintf(name, sizeof(name), "clang-%u", version);
        path = find_program(search, folders, name);
    }
    if (!path)
        path = find_program(search, folders, "clang");
    if (path)
        take(search, path, "PATH");
    else
        hdrt__buffer_format(&search->tried, "HDRT_CLANG (not set), clang-%u down to clang-%u and clang in PATH '%s'",
                            CLANG_NEWEST, CLANG_OLDEST, folders);
}

hdrt_status hdrt__find_clang(const char *option, hdrt__found *out)
{
    struct search search = {.found = out};
    *out = (hdrt__found){0};
    search_clang(&search, option);
    return finish(&search);
}

void hdrt__found_free(hdrt__found *found)
{
    free(found->path);
    free(found->builtins);
    free(found->rule);
    *found = (hdrt__found){0};
}

static char *libdevice_in(const char *root)
{
    char *path = root && *root == '/' ? hdrt__path_join(root, "nvvm/libdevice/libdevice.10.bc") : NULL;
    if (path && is_file(path))
        return path;
    free(path);
    return NULL;
}

char *hdrt__find_libdevice(const char *nvrtc)
{
    char *path = libdevice_in(secure_getenv("CUDA_HOME"));
    if (!path)
        path = libdevice_in(secure_getenv("CUDA_PATH"));
    /* The toolkit that an NVRTC lies in, up to targets/<machine>/lib deep. */
    char *root = !path && nvrtc ? realpath(nvrtc, NULL) : NULL;
    for (unsigned up = 0; root && !path && up < 4; up++) {
        char *slash = strrchr(root, '/');
        if (!slash || slash == root)
            break;
        *slash = '\0';
        path = libdevice_in(root);
    }
    free(root);
    return path ? path : libdevice_in("/usr/local/cuda");
}
