/* SPDX-License-Identifier: MIT */
/* Devices: limits that must be an H200's, identity that must be plausible, misuse. */
#include "areas.h"
#include "support.h"

#include <ctype.h>
#include <string.h>

static void attribute(const check *self)
{
    int value = -77;
    STATUS(cuDeviceGetAttribute(&value, (unsigned)self->number, 0));
    say("%d", value);
}

/* Not a limit of the device but a property of the board or the host: any value of a switch will do. */
static void switch_attribute(const check *self)
{
    int value = -77;
    STATUS(cuDeviceGetAttribute(&value, (unsigned)self->number, 0));
    say("%s", value == 0 || value == 1 ? "a switch" : "no switch");
}

static void positive_attribute(const check *self)
{
    int value = -77;
    STATUS(cuDeviceGetAttribute(&value, (unsigned)self->number, 0));
    say("%s", value > 0 ? "positive" : "not positive");
}

static void attribute_unknown(const check *self)
{
    int value = -77;
    STATUS(cuDeviceGetAttribute(&value, (unsigned)self->number, 0));
    say("%d", value);
}

static void attribute_misuse(const check *self)
{
    (void)self;
    int value = 0;
    STATUS(cuDeviceGetAttribute(NULL, HDCU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    STATUS(cuDeviceGetAttribute(&value, HDCU_DEVICE_ATTRIBUTE_WARP_SIZE, 99));
    STATUS(cuDeviceGetAttribute(&value, HDCU_DEVICE_ATTRIBUTE_WARP_SIZE, -1));
}

static void count(const check *self)
{
    (void)self;
    int number = 0;
    STATUS(cuDeviceGetCount(NULL));
    STATUS(cuDeviceGetCount(&number));
    say("%s", number >= 1 && number < 64 ? "plausible" : "implausible");
}

static void get(const check *self)
{
    hdcu_device device = -5;
    STATUS(cuDeviceGet(&device, (int)self->number));
    say("%d", device);
}

static void get_null(const check *self)
{
    (void)self;
    STATUS(cuDeviceGet(NULL, 0));
}

static void name(const check *self)
{
    (void)self;
    char text[256] = "";
    STATUS(cuDeviceGetName(text, sizeof text, 0));
    say("%s", text[0] ? "named" : "nameless");
    STATUS(cuDeviceGetName(NULL, 10, 0));
    STATUS(cuDeviceGetName(text, 10, 99));
}

static void name_cut(const check *self)
{
    (void)self;
    char text[8] = "xxxxxxx";
    STATUS(cuDeviceGetName(text, 4, 0));
    say("%zu", strnlen(text, sizeof text));
    say("%c", text[5]);
}

static void uuid(const check *self)
{
    (void)self;
    hdcu_uuid one, zero = {{0}};
    STATUS(cuDeviceGetUuid(&one, 0));
    say("%s", memcmp(&one, &zero, sizeof one) ? "set" : "zero");
    STATUS(cuDeviceGetUuid(NULL, 0));
    STATUS(cuDeviceGetUuid(&one, 99));
}

static void total(const check *self)
{
    (void)self;
    size_t bytes = 0;
    STATUS(cuDeviceTotalMem(&bytes, 0));
    say("%s", bytes >= (size_t)1 << 28 ? "plausible" : "implausible");
    STATUS(cuDeviceTotalMem(NULL, 0));
    STATUS(cuDeviceTotalMem(&bytes, 99));
}

static void bus(const check *self)
{
    (void)self;
    char text[32] = "", shape[32] = "";
    hdcu_device back = -5;
    STATUS(cuDeviceGetPCIBusId(text, sizeof text, 0));
    for (size_t i = 0; text[i]; i++)
        shape[i] = isxdigit((unsigned char)text[i]) ? 'h' : text[i];
    say("%s", shape);
    STATUS(cuDeviceGetByPCIBusId(&back, text));
    say("%d", back);
}

static void bus_misuse(const check *self)
{
    (void)self;
    char text[32] = "";
    hdcu_device back = -5;
    STATUS(cuDeviceGetPCIBusId(NULL, 32, 0));
    STATUS(cuDeviceGetPCIBusId(text, 32, 99));
    STATUS(cuDeviceGetByPCIBusId(&back, "nonsense"));
    STATUS(cuDeviceGetByPCIBusId(&back, "ffff:ff:1f.0"));
    STATUS(cuDeviceGetByPCIBusId(&back, NULL));
    STATUS(cuDeviceGetByPCIBusId(NULL, "0000:00:00.0"));
}

static void peer_self(const check *self)
{
    (void)self;
    int can = -5;
    STATUS(cuDeviceCanAccessPeer(&can, 0, 0));
    say("%d", can);
    STATUS(cuDeviceCanAccessPeer(NULL, 0, 0));
    STATUS(cuDeviceCanAccessPeer(&can, 0, 99));
}

static void p2p_self(const check *self)
{
    (void)self;
    int value = -5;
    STATUS(cuDeviceGetP2PAttribute(&value, HDCU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
    STATUS(cuDeviceGetP2PAttribute(&value, 99, 0, 0));
}

#define EQUAL(name) {"attribute " #name, attribute, .number = HDCU_DEVICE_ATTRIBUTE_##name}
#define SWITCH(name) {"attribute " #name, switch_attribute, .number = HDCU_DEVICE_ATTRIBUTE_##name}
#define POSITIVE(name) {"attribute " #name, positive_attribute, .number = HDCU_DEVICE_ATTRIBUTE_##name}

static const check checks[] = {
    EQUAL(MAX_THREADS_PER_BLOCK),
    EQUAL(MAX_BLOCK_DIM_X),
    EQUAL(MAX_BLOCK_DIM_Y),
    EQUAL(MAX_BLOCK_DIM_Z),
    EQUAL(MAX_GRID_DIM_X),
    EQUAL(MAX_GRID_DIM_Y),
    EQUAL(MAX_GRID_DIM_Z),
    EQUAL(MAX_SHARED_MEMORY_PER_BLOCK),
    EQUAL(TOTAL_CONSTANT_MEMORY),
    EQUAL(WARP_SIZE),
    EQUAL(MAX_PITCH),
    EQUAL(MAX_REGISTERS_PER_BLOCK),
    POSITIVE(CLOCK_RATE),
    EQUAL(GPU_OVERLAP),
    EQUAL(MULTIPROCESSOR_COUNT),
    SWITCH(KERNEL_EXEC_TIMEOUT),
    EQUAL(INTEGRATED),
    EQUAL(CAN_MAP_HOST_MEMORY),
    EQUAL(COMPUTE_MODE),
    EQUAL(CONCURRENT_KERNELS),
    SWITCH(ECC_ENABLED),
    SWITCH(TCC_DRIVER),
    POSITIVE(MEMORY_CLOCK_RATE),
    EQUAL(GLOBAL_MEMORY_BUS_WIDTH),
    EQUAL(L2_CACHE_SIZE),
    EQUAL(MAX_THREADS_PER_MULTIPROCESSOR),
    EQUAL(ASYNC_ENGINE_COUNT),
    EQUAL(UNIFIED_ADDRESSING),
    EQUAL(COMPUTE_CAPABILITY_MAJOR),
    EQUAL(COMPUTE_CAPABILITY_MINOR),
    EQUAL(STREAM_PRIORITIES_SUPPORTED),
    EQUAL(GLOBAL_L1_CACHE_SUPPORTED),
    EQUAL(LOCAL_L1_CACHE_SUPPORTED),
    EQUAL(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    EQUAL(MAX_REGISTERS_PER_MULTIPROCESSOR),
    SWITCH(MULTI_GPU_BOARD),
    EQUAL(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
    EQUAL(COMPUTE_PREEMPTION_SUPPORTED),
    EQUAL(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    EQUAL(COOPERATIVE_LAUNCH),
    EQUAL(COOPERATIVE_MULTI_DEVICE_LAUNCH),
    EQUAL(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    EQUAL(HOST_REGISTER_SUPPORTED),
    EQUAL(MAX_BLOCKS_PER_MULTIPROCESSOR),
    EQUAL(MAX_PERSISTING_L2_CACHE_SIZE),
    EQUAL(MAX_ACCESS_POLICY_WINDOW_SIZE),
    EQUAL(RESERVED_SHARED_MEMORY_PER_BLOCK),
    SWITCH(READ_ONLY_HOST_REGISTER_SUPPORTED),
    EQUAL(MEMORY_POOLS_SUPPORTED),
    EQUAL(CAN_USE_64_BIT_STREAM_MEM_OPS),
    EQUAL(CAN_USE_STREAM_WAIT_VALUE_NOR),
    EQUAL(MEM_SYNC_DOMAIN_COUNT),
    SWITCH(UNIFIED_FUNCTION_POINTERS),
    {.name = "attribute number 0", .run = attribute_unknown, .number = 0},
    {.name = "attribute number 5000", .run = attribute_unknown, .number = 5000},
    {.name = "attribute misuse", .run = attribute_misuse},
    {.name = "count", .run = count},
    {.name = "get 0", .run = get, .number = 0},
    {.name = "get -1", .run = get, .number = -1},
    {.name = "get 99", .run = get, .number = 99},
    {.name = "get null", .run = get_null},
    {.name = "name", .run = name},
    {.name = "name cut", .run = name_cut},
    {.name = "uuid", .run = uuid},
    {.name = "total memory", .run = total},
    {.name = "bus id", .run = bus},
    {.name = "bus id misuse", .run = bus_misuse},
    {.name = "peer to self", .run = peer_self},
    {.name = "p2p attribute to self", .run = p2p_self},
};

const area area_device = {"device", NEEDS_INIT, checks, COUNT_OF(checks)};
