/* SPDX-License-Identifier: MIT */
#include "demangle.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* __cxa_demangle of the Itanium C++ ABI; the result is from malloc. */
typedef char *demangler(const char *name, char *room, size_t *size, int *status);

char *demangle(const char *name)
{
    void *library = strncmp(name, "_Z", 2) == 0 ? dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL) : NULL;
    demangler *function = NULL;
    int status = 0;

    if (!library)
        return NULL;
    *(void **)&function = dlsym(library, "__cxa_demangle");
    /* It stays open: it costs milliseconds to open, and there may be many names. */
    return function ? function(name, NULL, NULL, &status) : NULL;
}
