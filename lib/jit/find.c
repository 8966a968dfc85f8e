/* SPDX-License-Identifier: MIT */
#include "jit/search.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/number.h"
#include "base/status.h"

#define CLANG_NEWEST 40
#define CLANG_OLDEST 14

/* ---- what the searches share ------------------------------------------------------------------------------------- */

void hdrt__search_note(hdrt__search *search, const char *rule, const char *what)
{
    hdrt__buffer_format(&search->tried, "%s%s%s%s", search->tried.size ? ", " : "", rule, what ? " " : "",
                        what ? what : "");
}

char *hdrt__search_join(hdrt__search *search, const char *folder, const char *name)
{
    char *path = hdrt__path_join(folder, name);
    if (!path)
        search->tried.failed = true;
    return path;
}

bool hdrt__is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

bool hdrt__is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool hdrt__is_program(const char *path)
{
    return hdrt__is_file(path) && faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

static bool same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static bool add(hdrt__found_list *list, char *path, const char *rule)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 4;
        hdrt__found *bigger = reallocarray(list->items, capacity, sizeof(*bigger));
        if (!bigger)
            return false;
        list->items = bigger;
        list->capacity = capacity;
    }
    hdrt__found found = {.path = path, .rule = strdup(rule)};
    if (!found.rule)
        return false;
    list->items[list->count++] = found;
    return true;
}

void hdrt__search_take(hdrt__search *search, char *path, const char *rule)
{
    if (path && *path != '/') {
        char *here = getcwd(NULL, 0);
        char *absolute = here ? hdrt__path_join(here, path) : NULL;
        free(here);
        free(path);
        path = absolute;
    }
    for (uint32_t i = 0; path && i < search->list->count; i++)
        if (same_file(path, search->list->items[i].path)) {
            free(path);
            return;
        }
    if (path && add(search->list, path, rule))
        return;
    free(path);
    search->tried.failed = true;
}

hdrt_status hdrt__search_end(hdrt__search *search)
{
    hdrt__found_list *list = search->list;
    if (list->count == 0 && !search->tried.failed) {
        hdrt__buffer_text(&search->tried, "");
        if (search->tried.failed || !add(list, NULL, search->tried.bytes ? (const char *)search->tried.bytes : ""))
            search->tried.failed = true;
    }
    bool failed = search->tried.failed;
    hdrt__buffer_free(&search->tried);
    if (!failed)
        return HDRT_OK;
    hdrt__found_list_free(list);
    return hdrt__fail_memory(0, "the search for compilers");
}

void hdrt__found_list_free(hdrt__found_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        hdrt__found_free(&list->items[i]);
    free(list->items);
    *list = (hdrt__found_list){0};
}

void hdrt__found_free(hdrt__found *found)
{
    free(found->path);
    free(found->builtins);
    free(found->linker);
    free(found->rule);
    *found = (hdrt__found){0};
}

/* Moves the first of a list out of it. */
static hdrt_status take_first(hdrt_status status, hdrt__found_list *list, hdrt__found *out)
{
    *out = (hdrt__found){0};
    if (status == HDRT_OK) {
        *out = list->items[0];
        list->items[0] = (hdrt__found){0};
    }
    hdrt__found_list_free(list);
    return status;
}

hdrt_status hdrt__find_nvrtc(const char *option, hdrt__found *out)
{
    hdrt__found_list list;
    return take_first(hdrt__find_nvrtcs(option, NULL, NULL, &list), &list, out);
}

hdrt_status hdrt__find_clang(const char *option, hdrt__found *out)
{
    hdrt__found_list list;
    return take_first(hdrt__find_clangs(option, &list), &list, out);
}

const char *hdrt__program_folders(void)
{
    const char *folders = secure_getenv("PATH");
    return getauxval(AT_SECURE) || !folders || !*folders ? "/usr/local/bin:/usr/bin:/bin" : folders;
}

char *hdrt__search_program(hdrt__search *search, const char *folders, const char *name)
{
    while (folders && *folders) {
        size_t size = strcspn(folders, ":");
        char *folder = *folders == '/' ? strndup(folders, size) : NULL;
        char *path = folder ? hdrt__search_join(search, folder, name) : NULL;
        free(folder);
        if (path && hdrt__is_program(path))
            return path;
        free(path);
        folders += size + (folders[size] == ':');
    }
    return NULL;
}

/* ---- clang and libdevice ----------------------------------------------------------------------------------------- */

static void search_clang(hdrt__search *search, const char *option)
{
    const char *named = option && *option ? option : hdrt__environment(HDRT__ENV_CLANG);
    const char *rule = option && *option ? "the runtime option clang" : "HDRT_CLANG";
    const char *folders = hdrt__program_folders();
    char *path = NULL;
    if (named) {
        if (!strchr(named, '/'))
            path = hdrt__search_program(search, folders, named);
        else if (hdrt__is_program(named))
            path = strdup(named);
        if (path)
            hdrt__search_take(search, path, rule);
        else
            hdrt__buffer_format(&search->tried, "%s '%s' (no such program)", rule, named);
        return;
    }
    for (unsigned version = CLANG_NEWEST; version >= CLANG_OLDEST && !path; version--) {
        char name[16];
        snprintf(name, sizeof(name), "clang-%u", version);
        path = hdrt__search_program(search, folders, name);
    }
    if (!path)
        path = hdrt__search_program(search, folders, "clang");
    if (path)
        hdrt__search_take(search, path, "PATH");
    else
        hdrt__buffer_format(&search->tried, "HDRT_CLANG (not set), clang-%u down to clang-%u and clang in PATH '%s'",
                            CLANG_NEWEST, CLANG_OLDEST, folders);
}

hdrt_status hdrt__find_clangs(const char *option, hdrt__found_list *out)
{
    hdrt__search search = {.list = out};
    *out = (hdrt__found_list){0};
    search_clang(&search, option);
    return hdrt__search_end(&search);
}

static char *libdevice_in(const char *root)
{
    char *path = root && *root == '/' ? hdrt__path_join(root, "nvvm/libdevice/libdevice.10.bc") : NULL;
    if (path && hdrt__is_file(path))
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
