/* SPDX-License-Identifier: MIT */
/*
 * lib/driver against NVIDIA's own driver, on a machine that has one: every pinned entry is there, under its exact
 * symbol too, and a scope leaves the thread as it was. Elsewhere a visible skip with the loader's words.
 */
#include <hdrt.h>

#include <dlfcn.h>
#include <stdio.h>

#include "driver/error.h"
#include "driver/loader.h"
#include "driver/scope.h"

static int number;

static void result(bool right, const char *what)
{
    printf("%s %d - %s\n", right ? "ok" : "not ok", ++number, what);
}

/*
 * Every entry that the driver's version should have was found. Where cuGetProcAddress and dlsym name different
 * addresses that is shown: the driver may do so, and a wrongly pinned symbol would look so too.
 */
static void compare_entries(hdrt__driver *driver)
{
    static const struct {
        const char *symbol;
        int version;
    } entries[] = {
#define ENTRY(name, symbol, version, need, parameters) {symbol, version},
        HDCU_SYMBOL_LIST(ENTRY)
#undef ENTRY
    };
    bool known = true;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *found = hdrt__driver_symbol(driver, entries[i].symbol);
        void *exported = dlsym(driver->library, entries[i].symbol);
        if (!found && entries[i].version <= driver->version) {
            printf("# CUDA %d has no %s (since %d)\n", driver->version, entries[i].symbol, entries[i].version);
            known = false;
        }
        if (found != exported)
            printf("# %s: %p by version, %p by symbol\n", entries[i].symbol, found, exported);
    }
    result(known, "every entry that the driver's version should have is there");
}

static void enter_and_leave(const hdrt__driver_table *table)
{
    hdcu_context theirs = NULL, now = NULL;
    hdrt__scope scope;
    unsigned mode = HDCU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    hdrt__call call = HDRT__CALL(table, cuDevicePrimaryCtxRetain, &theirs, 0);
    if (call.result) {
        printf("# cuDevicePrimaryCtxRetain: %s\n", hdrt__result_name(call.result));
        result(false, "the primary context is retained");
        return;
    }
    table->cuThreadExchangeStreamCaptureMode(&mode);
    call = hdrt__scope_enter(table, theirs, &scope);
    table->cuCtxGetCurrent(&now);
    result(call.result == 0 && now == theirs, "a scope makes its context current");
    hdrt__scope_leave(table, &scope);
    table->cuCtxGetCurrent(&now);
    result(now == NULL, "leaving it makes none current again");
    mode = HDCU_STREAM_CAPTURE_MODE_GLOBAL;
    table->cuThreadExchangeStreamCaptureMode(&mode);
    result(mode == HDCU_STREAM_CAPTURE_MODE_THREAD_LOCAL, "the thread's capture mode is what it was");
    table->cuDevicePrimaryCtxRelease(0);
}

int main(void)
{
    hdrt__driver *driver;
    hdrt_status status = hdrt__driver_load(HDRT_DRIVER_CUDA, NULL, &driver);
    if (status == HDRT_ERROR_NO_DRIVER || status == HDRT_ERROR_NO_DEVICE) {
        printf("1..0 # SKIP %s\n", hdrt_last_error());
        return 0;
    }
    printf("1..5\n");
    result(status == HDRT_OK, "NVIDIA's driver is loaded");
    if (status != HDRT_OK) {
        printf("# %s\nBail out! no driver\n", hdrt_last_error());
        return 0;
    }
    printf("# %s, CUDA %d, %d device(s)\n", driver->path, driver->version, driver->device_count);
    compare_entries(driver);
    enter_and_leave(&driver->table);
    return 0;
}
