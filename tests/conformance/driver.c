/* SPDX-License-Identifier: MIT */
#include "conformance.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

driver cu;

static void *library;
static hdcu_soft_lookup soft_lookup;

static hdcu_result absent(void)
{
    return ABSENT;
}

void *driver_symbol(const char *symbol)
{
    return soft_lookup ? soft_lookup(symbol) : dlsym(library, symbol);
}

/* Entries are found by their exact symbols, not through cuGetProcAddress, which is itself under test. */
static void fill(void)
{
    void *found;
    void *missing = (void *)absent;
#define FILL(name, symbol, version, need, parameters)                                                                  \
    found = driver_symbol(symbol);                                                                                     \
    memcpy(&cu.name, found ? &found : &missing, sizeof found);
    HDCU_SYMBOL_LIST(FILL)
#undef FILL
}

const char *driver_load(const char *kind, const char *path)
{
    bool soft = !strcmp(kind, "soft");
    library = dlopen(path ? path : soft ? "libhdsoft.so" : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return dlerror();
    if (soft) {
        void *lookup = dlsym(library, HDCU_SOFT_LOOKUP);
        if (!lookup)
            return "the library has no " HDCU_SOFT_LOOKUP;
        memcpy(&soft_lookup, &lookup, sizeof lookup);
    }
    fill();
    return NULL;
}
