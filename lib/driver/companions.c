/* SPDX-License-Identifier: MIT */
#include "driver/companions.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/number.h"
#include "base/status.h"

#define WORKER "hdrt-cc"
#define SOFT "libhdsoft.so"
#define RECORDER "libhdrt-record.so"
#define PRELUDE "hdrt_device.h"

/* A search in progress. `searched` becomes companions->searched. */
typedef struct lookup {
    hdrt__companions *found;
    hdrt__buffer searched;
    bool out_of_memory;
} lookup;

static char *join(lookup *search, const char *folder, const char *name)
{
    char *path = hdrt__path_join(folder, name);
    if (!path)
        search->out_of_memory = true;
    return path;
}

/* Fill an empty slot with the absolute path of folder/name, if that is a regular file which may be used as `mode`. */
static void take_file(lookup *search, char **slot, const char *folder, const char *name, int mode)
{
    if (*slot)
        return;
    char *path = join(search, folder, name);
    struct stat file;
    if (path && stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, mode) == 0) {
        *slot = realpath(path, NULL);
        if (!*slot && errno == ENOMEM)
            search->out_of_memory = true;
    }
    free(path);
}

/* Fill the empty prelude slot with folder/name, if the prelude's header is in it. */
static void take_prelude(lookup *search, const char *folder, const char *name)
{
    if (search->found->prelude)
        return;
    char *header = NULL, *place = join(search, folder, name);
    if (place)
        take_file(search, &header, place, PRELUDE, R_OK);
    if (header) {
        *strrchr(header, '/') = 0;
        search->found->prelude = header;
    }
    free(place);
}

/* All in one folder, as an option or HDRT_LIBEXEC names it and as the build tree has it. */
static void look_in_folder(lookup *search, const char *folder)
{
    hdrt__companions *found = search->found;
    take_file(search, &found->worker, folder, WORKER, X_OK);
    take_file(search, &found->worker, folder, ".libs/" WORKER, X_OK);
    take_file(search, &found->soft, folder, SOFT, R_OK);
    take_file(search, &found->soft, folder, ".libs/" SOFT, R_OK);
    take_file(search, &found->recorder, folder, RECORDER, R_OK);
    take_file(search, &found->recorder, folder, ".libs/" RECORDER, R_OK);
    take_prelude(search, folder, "include");
    take_prelude(search, folder, "kernels/include");
}

/* Each in its own folder, as `make install` lays them out. */
static void look_in_installation(lookup *search, const char *libexec, const char *lib, const char *data)
{
    hdrt__companions *found = search->found;
    take_file(search, &found->worker, libexec, WORKER, X_OK);
    take_file(search, &found->soft, lib, SOFT, R_OK);
    take_file(search, &found->recorder, lib, RECORDER, R_OK);
    take_prelude(search, data, "include");
}

static bool found_any(const lookup *search)
{
    const hdrt__companions *found = search->found;
    return found->worker || found->soft || found->recorder || found->prelude;
}

static const char *skip_slashes(const char *path)
{
    while (*path == '/')
        path++;
    return path;
}

/* base/.. for each component of `from` that `to` does not share, then the rest of `to`. Both are absolute. */
static char *moved(lookup *search, const char *base, const char *from, const char *to)
{
    from = skip_slashes(from);
    to = skip_slashes(to);
    for (;;) {
        size_t length = strcspn(from, "/");
        if (!length || length != strcspn(to, "/") || strncmp(from, to, length) != 0)
            break;
        from = skip_slashes(from + length);
        to = skip_slashes(to + length);
    }
    hdrt__buffer path = HDRT__BUFFER_INIT;
    hdrt__buffer_text(&path, base);
    for (; *from; from = skip_slashes(from + strcspn(from, "/")))
        hdrt__buffer_text(&path, "/..");
    hdrt__buffer_text(&path, "/");
    hdrt__buffer_text(&path, to);
    char *text = hdrt__buffer_take(&path, NULL);
    if (!text)
        search->out_of_memory = true;
    return text;
}

/* The folder that libhdrt's code was loaded from, links resolved; NULL if the loader does not say. malloc'ed. */
static char *own_folder(void)
{
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)hdrt__companions_find, &info) || !info.dli_fname)
        return NULL;
    char *path = realpath(info.dli_fname, NULL);
    if (path)
        *strrchr(path, '/') = 0;
    return path;
}

static void look_beside(lookup *search)
{
    char *folder = own_folder();
    if (!folder)
        return;
    hdrt__buffer_format(&search->searched, "beside libhdrt in '%s', ", folder);
    char *last = strrchr(folder, '/');
    if (last && strcmp(last, "/.libs") == 0) { /* where libtool builds */
        *last = 0;
        look_in_folder(search, folder);
    } else {
        char *libexec = moved(search, folder, HDRT_LIBDIR, HDRT_PKGLIBEXECDIR);
        char *lib = moved(search, folder, HDRT_LIBDIR, HDRT_PKGLIBDIR);
        char *data = moved(search, folder, HDRT_LIBDIR, HDRT_PKGDATADIR);
        if (libexec && lib && data)
            look_in_installation(search, libexec, lib, data);
        free(data);
        free(lib);
        free(libexec);
    }
    free(folder);
}

static const char *look(lookup *search, const char *option)
{
    const char *variable = hdrt__environment(HDRT__ENV_LIBEXEC);
    if (option) {
        hdrt__buffer_format(&search->searched, "the option's folder '%s'", option);
        look_in_folder(search, option);
        return "option";
    }
    if (variable) {
        hdrt__buffer_format(&search->searched, "HDRT_LIBEXEC '%s'", variable);
        look_in_folder(search, variable);
        return "HDRT_LIBEXEC";
    }
    look_beside(search);
    if (found_any(search))
        return "beside libhdrt";
    hdrt__buffer_text(&search->searched, "the configured folders '" HDRT_PKGLIBEXECDIR "', '" HDRT_PKGLIBDIR
                                         "' and '" HDRT_PKGDATADIR "'");
    look_in_installation(search, HDRT_PKGLIBEXECDIR, HDRT_PKGLIBDIR, HDRT_PKGDATADIR);
    return "configured";
}

hdrt_status hdrt__companions_find(const char *option, hdrt__companions **out_companions)
{
    *out_companions = NULL;
    lookup search = {calloc(1, sizeof *search.found), HDRT__BUFFER_INIT, false};
    if (!search.found)
        return hdrt__fail_memory(sizeof *search.found, "the companions' paths");
    const char *rule = look(&search, option);
    if (found_any(&search))
        search.found->rule = rule;
    search.found->searched = hdrt__buffer_take(&search.searched, NULL);
    if (!search.found->searched || search.out_of_memory) {
        hdrt__companions_free(search.found);
        return hdrt__fail(HDRT_ERROR_OUT_OF_MEMORY, "out of host memory: looking for libhdrt's companions");
    }
    const hdrt__companions *found = search.found;
    hdrt__log(HDRT_LOG_INFO, "companions (%s): worker %s, soft driver %s, recorder %s, prelude %s",
              found->rule ? found->rule : "none found", found->worker ? found->worker : "-",
              found->soft ? found->soft : "-", found->recorder ? found->recorder : "-",
              found->prelude ? found->prelude : "-");
    *out_companions = search.found;
    return HDRT_OK;
}

void hdrt__companions_free(hdrt__companions *companions)
{
    if (!companions)
        return;
    free(companions->searched);
    free(companions->prelude);
    free(companions->recorder);
    free(companions->soft);
    free(companions->worker);
    free(companions);
}

hdrt_status hdrt__companion_missing(const hdrt__companions *companions, const char *file, const char *purpose)
{
    return hdrt__fail(HDRT_ERROR_COMPANION,
                      "%s is missing, which %s needs; looked in %s%s; install libhdrt whole, or name the folder of its "
                      "companions with HDRT_LIBEXEC", file, purpose, companions->searched,
                      companions->rule ? " (where others were found)" : "");
}
