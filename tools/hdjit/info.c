/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "json.h"
#include "message.h"
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One driver: loaded, or why not. */
typedef struct driver_state {
    const char *name;
    hdrt_runtime *runtime;
    char *reason; /* owned */
} driver_state;

/* What info shows is gathered first, into JSON, so that the text and the JSON cannot differ. */
typedef struct report {
    driver_state cuda, soft;
    driver_state *chosen;  /* NULL: none usable */
    hdrt_runtime *compile; /* compilers, companions and cache */
    int code;
} report;

static void load_driver(const options *o, driver_state *driver, const char *name, hdrt_driver_kind kind)
{
    driver->name = name;
    if (session_runtime(o, kind, &driver->runtime) != HDRT_OK)
        driver->reason = strdup(hdrt_last_error());
}

static void load(const options *o, report *r)
{
    load_driver(o, &r->cuda, "cuda", HDRT_DRIVER_CUDA);
    load_driver(o, &r->soft, "soft", HDRT_DRIVER_SOFT);
    if (o->driver != DRIVER_SOFT && r->cuda.runtime)
        r->chosen = &r->cuda;
    else if (o->driver != DRIVER_CUDA && r->soft.runtime)
        r->chosen = &r->soft;
    else
        r->code = EXIT_CODE_NO_DEVICE;
}

static json_t *describe_driver(const driver_state *driver)
{
    hdrt_runtime_info info = HDRT_RUNTIME_INFO_INIT;
    bool usable = driver->runtime && hdrt_runtime_get_info(driver->runtime, &info) == HDRT_OK;

    if (!usable)
        return json_pack("{s:b, s:o}", "usable", 0, "reason", json_text(driver->reason));
    return json_pack("{s:b, s:o, s:i, s:i}", "usable", 1, "path", json_text(info.driver_path), "cuda_version",
                     (int)info.driver_version, "devices", (int)info.device_count);
}

static void print_uuid(const unsigned char uuid[16], char out[37])
{
    size_t used = 0;

    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;

        used += (size_t)snprintf(out + used, 37 - used, "%s%02x", dash ? "-" : "", uuid[i]);
    }
}

static json_t *describe_device(hdrt_runtime *runtime, uint32_t index)
{
    hdrt_device_info info = HDRT_DEVICE_INFO_INIT;
    char uuid[37], capability[16];

    if (hdrt_runtime_device_info(runtime, index, &info) != HDRT_OK)
        return json_pack("{s:i, s:o}", "index", (int)index, "reason", json_text(hdrt_last_error()));
    print_uuid(info.uuid, uuid);
    snprintf(capability, sizeof capability, "%u.%u", info.compute_capability / 10, info.compute_capability % 10);
    return json_pack("{s:i, s:o, s:s, s:s, s:s, s:i, s:I, s:i, s:i, s:i, s:i, s:i, s:i}", "index", (int)index,
                     "name", json_text(info.name), "uuid", uuid, "pci", info.pci,
                     "compute_capability", capability, "multiprocessors", (int)info.multiprocessors,
                     "memory_bytes", (json_int_t)info.memory_bytes,
                     "max_threads_per_block", (int)info.max_threads_per_block,
                     "max_shared_per_block", (int)info.max_shared_per_block,
                     "max_shared_per_block_optin", (int)info.max_shared_per_block_optin,
                     "async_engines", (int)info.async_engines, "clock_khz", (int)info.clock_khz,
                     "l2_bytes", (int)info.l2_bytes);
}

static json_t *describe_devices(const report *r)
{
    hdrt_runtime_info info = HDRT_RUNTIME_INFO_INIT;
    json_t *devices = json_array();

    if (r->chosen && hdrt_runtime_get_info(r->chosen->runtime, &info) == HDRT_OK)
        for (uint32_t i = 0; i < info.device_count; i++)
            json_array_append_new(devices, describe_device(r->chosen->runtime, i));
    return devices;
}

static json_t *describe_compiler(hdrt_runtime *runtime, hdrt_compiler compiler)
{
    hdrt_compiler_info info = HDRT_COMPILER_INFO_INIT;

    if (hdrt_runtime_compiler(runtime, compiler, &info) != HDRT_OK)
        return json_pack("{s:n, s:o}", "path", "rule", json_text(hdrt_last_error()));
    return json_pack("{s:o, s:o}", "path", json_text(info.path), "rule", json_text(info.rule));
}

static json_t *describe(const options *o, report *r)
{
    hdrt_runtime_info info = HDRT_RUNTIME_INFO_INIT;
    hdrt_runtime *runtime = r->compile;
    unsigned version = hdrt_version();
    char number[32];

    snprintf(number, sizeof number, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
    if (hdrt_runtime_get_info(runtime, &info) != HDRT_OK)
        return NULL;
    return json_pack("{s:s, s:o, s:{s:o, s:o}, s:o, s:{s:o, s:o}, s:{s:o, s:o, s:o, s:o, s:o}, s:{s:o, s:o}}",
                     "version", number, "driver", json_text(r->chosen ? r->chosen->name : NULL),
                     "drivers", "cuda", describe_driver(&r->cuda), "soft", describe_driver(&r->soft),
                     "devices", describe_devices(r),
                     "compilers", "nvrtc", describe_compiler(runtime, HDRT_COMPILER_NVRTC),
                     "clang", describe_compiler(runtime, HDRT_COMPILER_CLANG),
                     "companions", "rule", json_text(info.libexec_rule), "worker", json_text(info.libexec_worker),
                     "soft_driver", json_text(info.libexec_soft), "recorder", json_text(info.libexec_recorder),
                     "prelude", json_text(info.libexec_prelude),
                     "cache", "folder", json_text(info.cache_dir), "reason", json_text(info.cache_reason));
}

/* The text at `key`, "not found" where it is null. */
static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value ? value : "not found";
}

static long long number(const json_t *object, const char *key)
{
    return (long long)json_integer_value(json_object_get(object, key));
}

static void print_driver(const json_t *drivers, const char *name)
{
    const json_t *driver = json_object_get(drivers, name);
    long long version = number(driver, "cuda_version");

    if (json_is_true(json_object_get(driver, "usable")))
        printf("  %-6s   %s, CUDA %lld.%lld, %lld device%s\n", name, text(driver, "path"), version / 1000,
               version % 1000 / 10, number(driver, "devices"), number(driver, "devices") == 1 ? "" : "s");
    else
        printf("  %-6s   not usable: %s\n", name, text(driver, "reason"));
}

static void print_text(const json_t *all)
{
    static const char *const companions[][2] = {
        {"worker", "hdrt-cc"}, {"soft_driver", "soft driver"}, {"recorder", "recorder"}, {"prelude", "prelude"}};
    static const char *const compilers[] = {"nvrtc", "clang"};
    const json_t *part = json_object_get(all, "devices"), *device, *found = json_object_get(all, "companions");
    const char *folder = json_string_value(json_object_get(json_object_get(all, "cache"), "folder"));
    const char *reason = json_string_value(json_object_get(json_object_get(all, "cache"), "reason"));
    size_t i;

    printf("hdjit      %s\ndriver     %s\n", text(all, "version"), text(all, "driver"));
    print_driver(json_object_get(all, "drivers"), "cuda");
    print_driver(json_object_get(all, "drivers"), "soft");
    printf("devices\n");
    json_array_foreach(part, i, device)
        printf("  %-6lld   %s, compute capability %s, %lld multiprocessors, %.1f GiB, %s\n", number(device, "index"),
               text(device, "name"), text(device, "compute_capability"), number(device, "multiprocessors"),
               (double)number(device, "memory_bytes") / (1 << 30), text(device, "pci"));
    printf("compilers\n");
    for (i = 0; i < 2; i++) {
        part = json_object_get(json_object_get(all, "compilers"), compilers[i]);
        printf("  %-6s   %s (%s)\n", compilers[i], text(part, "path"), text(part, "rule"));
    }
    printf("companions (%s)\n", text(found, "rule"));
    for (i = 0; i < sizeof companions / sizeof companions[0]; i++)
        printf("  %-11s %s\n", companions[i][1], text(found, companions[i][0]));
    if (folder && !reason)
        printf("cache      %s\n", folder);
    else
        printf("cache      %s%s %s\n", folder ? folder : "none", folder ? "," : ":", reason ? reason : "no folder");
}

static int show(const options *o, report *r)
{
    json_t *all = describe(o, r);
    int code = r->code, shown = 0;

    if (all && !o->json)
        print_text(all);
    if (!all || o->json)
        shown = json_show(all);
    else
        json_decref(all);
    if (shown)
        return shown;
    if (code)
        fail(code, "the %s driver cannot be used: %s", o->driver == DRIVER_CUDA ? "cuda" : "soft",
             o->driver == DRIVER_CUDA ? r->cuda.reason : r->soft.reason);
    return code;
}

int command_info(options *o, int argc, char **argv)
{
    report r = {0};
    session s;
    int first, code = options_parse(o, COMMAND_INFO, argc, argv, &first);

    if (code != OPTIONS_GO_ON)
        return code;
    if (first < argc)
        return fail(EXIT_CODE_USAGE, "info takes no words, but got '%s'", argv[first]);
    code = session_open_compile_only(o, &s);
    if (code)
        return code;
    r.compile = s.runtime;
    load(o, &r);
    code = show(o, &r);
    hdrt_runtime_destroy(r.cuda.runtime);
    hdrt_runtime_destroy(r.soft.runtime);
    free(r.cuda.reason);
    free(r.soft.reason);
    session_close(&s);
    return code;
}
