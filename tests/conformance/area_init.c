/* SPDX-License-Identifier: MIT */
/* Initialisation, versions, cuGetProcAddress, fork. */
#include "areas.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BEFORE(entry, declarations, ...)                                                                               \
    static void before_##entry(const check *self)                                                                      \
    {                                                                                                                  \
        (void)self;                                                                                                    \
        declarations;                                                                                                  \
        STATUS(entry(__VA_ARGS__));                                                                                    \
    }

BEFORE(cuDriverGetVersion, int version = 0, &version)
BEFORE(cuDeviceGetCount, int count = 0, &count)
BEFORE(cuDeviceGet, hdcu_device device = 0, &device, 0)
BEFORE(cuDeviceGetAttribute, int value = 0, &value, HDCU_DEVICE_ATTRIBUTE_WARP_SIZE, 0)
BEFORE(cuDeviceTotalMem, size_t bytes = 0, &bytes, 0)
BEFORE(cuDevicePrimaryCtxRetain, hdcu_context context = NULL, &context, 0)
BEFORE(cuDevicePrimaryCtxGetState, unsigned flags = 0; int active = 0, 0, &flags, &active)
BEFORE(cuCtxCreate, hdcu_context context = NULL, &context, 0, 0)
BEFORE(cuCtxGetCurrent, hdcu_context context = NULL, &context)
BEFORE(cuCtxSetCurrent, , NULL)
BEFORE(cuCtxSynchronize, )
BEFORE(cuMemAlloc, hdcu_pointer pointer = 0, &pointer, 16)
BEFORE(cuMemHostAlloc, void *pointer = NULL, &pointer, 16, 0)
BEFORE(cuStreamCreate, hdcu_stream stream = NULL, &stream, 0)
BEFORE(cuEventCreate, hdcu_event event = NULL, &event, 0)
BEFORE(cuModuleLoadData, hdcu_module module = NULL, &module, "")
BEFORE(cuGraphCreate, hdcu_graph graph = NULL, &graph, 0)
BEFORE(cuGetErrorName, const char *name = NULL, 0, &name)

static void init(const check *self)
{
    STATUS(cuInit((unsigned)self->number));
}

static void init_twice(const check *self)
{
    (void)self;
    STATUS(cuInit(0));
    STATUS(cuInit(0));
}

static void init_bad_then_use(const check *self)
{
    (void)self;
    int count = 0;
    STATUS(cuInit(4));
    STATUS(cuDeviceGetCount(&count));
}

static void version(const check *self)
{
    (void)self;
    int number = 0;
    STATUS(cuDriverGetVersion(NULL));
    STATUS(cuDriverGetVersion(&number));
    say("%s", number >= 12000 && number < 20000 ? "plausible" : "implausible");
}

static void fork_after(const check *self)
{
    (void)self;
    int status = 0, count = 0;
    NEED(cuInit(0));
    pid_t pid = fork();
    if (!pid) {
        hdcu_result again = cu.cuInit(0), counted = cu.cuDeviceGetCount(&count);
        _exit(again == 3 && counted == 3 ? 33 : again == 3 ? 30 : counted == 3 ? 3 : (int)(again & 127));
    }
    waitpid(pid, &status, 0);
    say("%d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    STATUS(cuDeviceGetCount(&count));
}

/* ---- cuGetProcAddress ---- */

typedef hdcu_result (*get_proc_v2)(const char *, void **, int, uint64_t, unsigned *);

static void proc(const check *self)
{
    void *found = (void *)16;
    STATUS(cuGetProcAddress(self->text, &found, (int)self->number, 0));
    say("%s", found == (void *)16 ? "untouched" : found ? "found" : "null");
}

static void proc_v2(const check *self)
{
    void *found = (void *)16, *entry = driver_symbol("cuGetProcAddress_v2");
    unsigned status = 77;
    get_proc_v2 ask;
    if (!entry)
        give_up("%u", ABSENT);
    memcpy(&ask, &entry, sizeof ask);
    say("%u", ask(self->text, &found, (int)self->number, 0, &status));
    say("%s", found == (void *)16 ? "untouched" : found ? "found" : "null");
    say("%u", status);
}

static void proc_flags(const check *self)
{
    (void)self;
    void *found = NULL, *legacy = NULL, *own = NULL, *plain = NULL;
    STATUS(cuGetProcAddress("cuStreamSynchronize", &found, 12000, 64));
    STATUS(cuGetProcAddress("cuStreamSynchronize", &plain, 12000, 0));
    STATUS(cuGetProcAddress("cuStreamSynchronize", &legacy, 12000, 1));
    STATUS(cuGetProcAddress("cuStreamSynchronize", &own, 12000, 2));
    say("%d", plain == legacy);
    say("%d", plain == own);
    STATUS(cuGetProcAddress("cuStreamSynchronize", &found, 12000, 3));
}

static void proc_same(const check *self)
{
    (void)self;
    void *found = NULL, *exported;
    NEED(cuGetProcAddress("cuMemAlloc", &found, 12000, 0));
    memcpy(&exported, &cu.cuMemAlloc, sizeof exported);
    say("%d", found == exported);
    NEED(cuGetProcAddress("cuStreamBeginCapture", &found, 10010, 0));
    memcpy(&exported, &cu.cuStreamBeginCapture, sizeof exported);
    say("%d", found == exported);
    NEED(cuGetProcAddress("cuCtxCreate", &found, 11000, 0));
    memcpy(&exported, &cu.cuCtxCreate, sizeof exported);
    say("%d", found == exported);
}

#define BEFORE_CHECK(entry) {.name = "before." #entry, .run = before_##entry}

static const check checks[] = {
    BEFORE_CHECK(cuDriverGetVersion),
    BEFORE_CHECK(cuGetErrorName),
    BEFORE_CHECK(cuDeviceGetCount),
    BEFORE_CHECK(cuDeviceGet),
    BEFORE_CHECK(cuDeviceGetAttribute),
    BEFORE_CHECK(cuDeviceTotalMem),
    BEFORE_CHECK(cuDevicePrimaryCtxRetain),
    BEFORE_CHECK(cuDevicePrimaryCtxGetState),
    BEFORE_CHECK(cuCtxCreate),
    BEFORE_CHECK(cuCtxGetCurrent),
    BEFORE_CHECK(cuCtxSetCurrent),
    BEFORE_CHECK(cuCtxSynchronize),
    BEFORE_CHECK(cuMemAlloc),
    BEFORE_CHECK(cuMemHostAlloc),
    BEFORE_CHECK(cuStreamCreate),
    BEFORE_CHECK(cuEventCreate),
    BEFORE_CHECK(cuModuleLoadData),
    BEFORE_CHECK(cuGraphCreate),
    {.name = "flags 0", .run = init, .alone = true, .number = 0},
    {.name = "flags 1", .run = init, .alone = true, .number = 1},
    {.name = "twice", .run = init_twice, .alone = true},
    {.name = "bad flags, then use", .run = init_bad_then_use, .alone = true},
    {.name = "version", .run = version},
    {.name = "fork after", .run = fork_after, .alone = true},
    {.name = "proc cuMemAlloc 12000", .run = proc, .text = "cuMemAlloc", .number = 12000},
    {.name = "proc unknown", .run = proc, .text = "cuNoSuchEntry", .number = 12000},
    {.name = "proc with suffix", .run = proc, .text = "cuMemAlloc_v2", .number = 12000},
    {.name = "proc too old", .run = proc, .text = "cuLaunchKernelEx", .number = 11000},
    {.name = "proc just new enough", .run = proc, .text = "cuLaunchKernelEx", .number = 11060},
    {.name = "proc in other letters", .run = proc, .text = "CUINIT", .number = 12000},
    {.name = "proc empty", .run = proc, .text = "", .number = 12000},
    {.name = "proc flags", .run = proc_flags},
    {.name = "proc is the pinned entry", .run = proc_same},
    {.name = "proc_v2 found", .run = proc_v2, .text = "cuInit", .number = 12000},
    {.name = "proc_v2 unknown", .run = proc_v2, .text = "cuNoSuchEntry", .number = 12000},
    {.name = "proc_v2 too old", .run = proc_v2, .text = "cuLaunchKernelEx", .number = 11000},
};

const area area_init = {"init", NEEDS_NOTHING, checks, COUNT_OF(checks)};
