/* SPDX-License-Identifier: MIT */
/* The places of NVRTC: toolkits, the loader's, Python packages. */
#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/environment.h"
#include "base/number.h"
#include "base/status.h"
#include "jit/loader_cache.h"
#include "jit/search.h"

#define BUILTINS_PREFIX "libnvrtc-builtins.so."

#if defined(__aarch64__)
#define TOOLKIT_TARGETS "targets/sbsa-linux/lib", "targets/aarch64-linux/lib"
#else
#define TOOLKIT_TARGETS "targets/x86_64-linux/lib"
#endif

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Newest first. 11.2 is what all of 11.2 to 11.8 are called. */
static const char *const nvrtc_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
static const char *const toolkit_folders[] = {"lib64", "lib", TOOLKIT_TARGETS};

/* ---- folders ----------------------------------------------------------------------------------------------------- */

/* All of NVRTC's names in a folder. */
static bool try_folder(hdrt__search *search, const char *folder, const char *rule)
{
    bool found = false;
    for (size_t i = 0; i < COUNT(nvrtc_names); i++) {
        char *path = hdrt__search_join(search, folder, nvrtc_names[i]);
        if (path && hdrt__is_file(path)) {
            hdrt__search_take(search, path, rule);
            found = true;
        } else {
            free(path);
        }
    }
    return found;
}

/* A folder given by the user: the library may be right there, or where toolkits have it. */
static bool try_toolkit(hdrt__search *search, const char *root, const char *rule)
{
    bool found = false;
    for (size_t i = 0; i < COUNT(toolkit_folders) && !found; i++) {
        char *folder = hdrt__search_join(search, root, toolkit_folders[i]);
        found = folder && try_folder(search, folder, rule);
        free(folder);
    }
    return found;
}

static void search_named(hdrt__search *search, const char *place, const char *rule)
{
    if (hdrt__is_folder(place)) {
        if (!try_folder(search, place, rule) && !try_toolkit(search, place, rule))
            hdrt__buffer_format(&search->tried, "%s '%s' (no libnvrtc.so.13, .so.12 or .so.11.2 in that folder)", rule,
                                place);
    } else if (hdrt__is_file(place)) {
        hdrt__search_take(search, strdup(place), rule);
    } else {
        hdrt__buffer_format(&search->tried, "%s '%s' (no such file or folder)", rule, place);
    }
}

/* ---- the loader's places ----------------------------------------------------------------------------------------- */

/* The colon-separated folders of LD_LIBRARY_PATH; an empty one would be the current folder and is left out. */
static void try_library_path(hdrt__search *search)
{
    const char *list = secure_getenv("LD_LIBRARY_PATH");
    while (list && *list) {
        size_t size = strcspn(list, ":;");
        char *folder = *list == '/' ? strndup(list, size) : NULL;
        if (folder)
            try_folder(search, folder, "LD_LIBRARY_PATH");
        free(folder);
        list += size + (list[size] != '\0');
    }
}

static void try_loader(hdrt__search *search)
{
    size_t size = 0;
    unsigned char *cache = hdrt__loader_cache_read(&size);
    for (size_t i = 0; cache && i < COUNT(nvrtc_names); i++) {
        char *path = hdrt__loader_cache_find(cache, size, nvrtc_names[i]);
        if (path && hdrt__is_file(path))
            hdrt__search_take(search, path, "the loader's cache");
        else
            free(path);
    }
    free(cache);
    for (size_t i = 0; hdrt__loader_folders[i]; i++)
        try_folder(search, hdrt__loader_folders[i], "the loader's folders");
}

/* ---- Python packages --------------------------------------------------------------------------------------------- */

/* The folders that match a pattern below `root`, last in the alphabet first, which is the newest mostly. */
static void try_matches(hdrt__search *search, const char *root, const char *pattern, const char *rule,
                        void (*try_one)(hdrt__search *search, const char *folder, const char *rule))
{
    glob_t matches = {0};
    hdrt__buffer text = HDRT__BUFFER_INIT;
    for (const char *at = root; *at; at++) /* the root is meant as it is */
        hdrt__buffer_format(&text, strchr("*?[\\", *at) ? "\\%c" : "%c", *at);
    hdrt__buffer_format(&text, "/%s", pattern);
    search->tried.failed = search->tried.failed || text.failed;
    if (!text.failed && glob((const char *)text.bytes, 0, NULL, &matches) == 0)
        for (size_t i = matches.gl_pathc; i > 0; i--)
            try_one(search, matches.gl_pathv[i - 1], rule);
    globfree(&matches);
    hdrt__buffer_free(&text);
}

static void try_library_folder(hdrt__search *search, const char *folder, const char *rule)
{
    try_folder(search, folder, rule);
}

/* A folder of packages: CUDA 13 has all of NVIDIA's in one, earlier ones have one for each part. */
static void try_packages(hdrt__search *search, const char *packages, const char *rule)
{
    try_matches(search, packages, "nvidia/cu[0-9]*/lib", rule, try_library_folder);
    try_matches(search, packages, "nvidia/cuda_nvrtc/lib", rule, try_library_folder);
}

/* An installation of Python: its packages, and a library folder as conda has it. */
static void try_python(hdrt__search *search, const char *prefix, const char *rule)
{
    if (!prefix || *prefix != '/')
        return;
    try_matches(search, prefix, "lib/python3*/site-packages", rule, try_packages);
    try_matches(search, prefix, "lib/python3*/dist-packages", rule, try_packages);
}

/* The folder that a python3 of PATH belongs to; links tell where it is installed. */
static void try_python_of_path(hdrt__search *search)
{
    char *program = hdrt__search_program(search, hdrt__program_folders(), "python3");
    char *real = program ? realpath(program, NULL) : NULL;
    for (unsigned up = 0; real && up < 2; up++) {
        char *slash = strrchr(real, '/');
        if (slash)
            *slash = '\0';
    }
    if (real && *real)
        try_python(search, real, "the python3 in PATH");
    free(real);
    free(program);
}

static void search_python(hdrt__search *search)
{
    const char *environment = secure_getenv("VIRTUAL_ENV"), *conda = secure_getenv("CONDA_PREFIX");
    const char *base = secure_getenv("PYTHONUSERBASE"), *home = secure_getenv("HOME");
    hdrt__search_note(search, "Python packages of VIRTUAL_ENV, CONDA_PREFIX, the user and the system", NULL);
    try_python(search, environment, "the Python packages of VIRTUAL_ENV");
    if (conda && *conda == '/') {
        try_toolkit(search, conda, "CONDA_PREFIX");
        try_python(search, conda, "the Python packages of CONDA_PREFIX");
    }
    if (base) {
        try_python(search, base, "the user's Python packages");
    } else if (home && *home == '/') {
        char *local = hdrt__search_join(search, home, ".local");
        try_python(search, local, "the user's Python packages");
        free(local);
    }
    if (!getauxval(AT_SECURE))
        try_python_of_path(search);
    try_python(search, "/usr/local", "the system's Python packages");
    try_python(search, "/usr", "the system's Python packages");
}

/* ---- what belongs to a library ----------------------------------------------------------------------------------- */

/* How many numbers "13.0.88" behind ".so." has: 0 for none; the first two of them. */
static unsigned version_of(const char *path, unsigned *major, unsigned *minor)
{
    const char *so = strstr(path, ".so.");
    int parts = so ? sscanf(so, ".so.%u.%u", major, minor) : 0;
    return parts > 0 ? (unsigned)parts : 0;
}

/* The builtins of a major version in a folder, if they are of one minor version only. NULL: none, or several. */
static char *only_builtins(const char *folder, unsigned major, unsigned *out_minor)
{
    char *found = NULL;
    bool several = false;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        unsigned entry_major, entry_minor;
        if (strncmp(entry->d_name, BUILTINS_PREFIX, sizeof(BUILTINS_PREFIX) - 1) != 0 ||
            version_of(entry->d_name, &entry_major, &entry_minor) < 2 || entry_major != major)
            continue;
        several = several || (found && entry_minor != *out_minor);
        *out_minor = entry_minor;
        char name[64];
        snprintf(name, sizeof(name), BUILTINS_PREFIX "%u.%u", entry_major, entry_minor);
        free(found);
        found = hdrt__path_join(folder, name);
    }
    if (entries)
        closedir(entries);
    if (several || (found && !hdrt__is_file(found))) {
        free(found);
        found = NULL;
    }
    return found;
}

/*
 * The builtins beside the library itself, and the version by them. Its real name often tells the minor version, but not
 * where it is only called 11.2 or 12; then the folder must have builtins of one minor version only.
 */
static void find_builtins(hdrt__found *found, const char *folder, const char *real)
{
    char name[64];
    unsigned major = 0, minor = 0, parts = version_of(real, &major, &minor);
    if (parts == 0)
        return;
    if (parts == 2) {
        snprintf(name, sizeof(name), BUILTINS_PREFIX "%u.%u", major, minor);
        found->builtins = hdrt__path_join(folder, name);
        if (found->builtins && !hdrt__is_file(found->builtins)) {
            free(found->builtins);
            found->builtins = NULL;
        }
    }
    if (!found->builtins && (found->builtins = only_builtins(folder, major, &minor)) != NULL)
        parts = 2;
    if (parts == 2) {
        found->major = major;
        found->minor = minor;
    }
}

/* nvJitLink of that major version: in a toolkit beside the library, in Python's packages in the next one. */
static void find_linker(hdrt__found *found, const char *folder)
{
    static const char *const places[] = {".", "../../nvjitlink/lib"};
    char name[96];
    for (size_t i = 0; i < COUNT(places) && !found->linker && found->major >= 12; i++) {
        snprintf(name, sizeof(name), "%s/libnvJitLink.so.%u", places[i], found->major);
        char *path = hdrt__path_join(folder, name);
        found->linker = path ? realpath(path, NULL) : NULL;
        free(path);
    }
}

static void describe(hdrt__found *found)
{
    char *real = realpath(found->path, NULL);
    char *folder = real ? strdup(real) : NULL;
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash) {
        *slash = '\0';
        find_builtins(found, folder, real);
        find_linker(found, folder);
    }
    free(folder);
    free(real);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void search_variables(hdrt__search *search)
{
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
    for (size_t i = 0; i < COUNT(variables); i++) {
        const char *root = secure_getenv(variables[i]);
        hdrt__search_note(search, variables[i], root && *root ? root : "(not set)");
        if (root && *root == '/')
            try_toolkit(search, root, variables[i]);
    }
}

static void search_loader(hdrt__search *search)
{
    hdrt__search_note(search, "libnvrtc.so.13, .so.12 and .so.11.2 by LD_LIBRARY_PATH, the loader's cache and its "
                              "folders", NULL);
    try_library_path(search);
    try_loader(search);
}

static void search_usual(hdrt__search *search)
{
    hdrt__search_note(search, "/usr/local/cuda", NULL);
    try_toolkit(search, "/usr/local/cuda", "/usr/local/cuda");
}

static void try_toolkit_folder(hdrt__search *search, const char *folder, const char *rule)
{
    try_toolkit(search, folder, rule);
}

static void search_versions(hdrt__search *search)
{
    try_matches(search, "/usr/local", "cuda-[0-9]*", "/usr/local/cuda-*", try_toolkit_folder);
}

/* The only place, if one is named. */
static bool search_explicit(hdrt__search *search, const char *option)
{
    const char *named = hdrt__environment(HDRT__ENV_NVRTC);
    if (option && *option)
        search_named(search, option, "the runtime option nvrtc");
    else if (named)
        search_named(search, named, "HDRT_NVRTC");
    else
        return false;
    hdrt__found_list *list = search->list;
    while (list->count > 1)
        hdrt__found_free(&list->items[--list->count]);
    return true;
}

hdrt_status hdrt__find_nvrtcs(const char *option, hdrt__found_enough *enough, void *context, hdrt__found_list *out)
{
    static void (*const steps[])(hdrt__search *search) = {search_variables, search_loader, search_usual,
                                                          search_versions, search_python};
    hdrt__search search = {.list = out};
    *out = (hdrt__found_list){0};
    bool over = search_explicit(&search, option);
    uint32_t described = 0;
    for (size_t i = 0; i <= COUNT(steps); i++) {
        for (; described < out->count; described++) {
            describe(&out->items[described]);
            over = over || (enough && enough(&out->items[described], context));
        }
        if (over || i == COUNT(steps))
            break;
        steps[i](&search);
    }
    return hdrt__search_end(&search);
}
