/* SPDX-License-Identifier: MIT */
/* Attributes of functions, their parameters, occupancy. */
#include "areas.h"
#include "support.h"

static hdcu_function function_of(const check *self)
{
    return kernel_of(module_functions, self->text);
}

static void attribute(const check *self)
{
    int value = 77;
    STATUS(cuFuncGetAttribute(&value, (unsigned)self->number, function_of(self)));
    say("%d", value);
}

static void registers(const check *self)
{
    int value = 77;
    STATUS(cuFuncGetAttribute(&value, HDCU_FUNC_ATTRIBUTE_NUM_REGS, function_of(self)));
    say("%s", value > 0 && value <= 255 ? "plausible" : "implausible");
}

static void get_misuse(const check *self)
{
    (void)self;
    hdcu_function function = kernel_of(module_functions, "plain");
    int value = 77;
    STATUS(cuFuncGetAttribute(NULL, HDCU_FUNC_ATTRIBUTE_NUM_REGS, function));
    STATUS(cuFuncGetAttribute(&value, 99, function));
    STATUS(cuFuncGetAttribute(&value, HDCU_FUNC_ATTRIBUTE_NUM_REGS, NULL));
    STATUS(cuFuncSetAttribute(NULL, HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1000));
}

/* `kind` is the attribute, `number` what it is set to. A module of its own: attributes stay. */
static void set(const check *self)
{
    hdcu_module module = NULL;
    hdcu_function function = NULL;
    int value = 77;
    NEED(cuModuleLoadData(&module, module_functions));
    NEED(cuModuleGetFunction(&function, module, self->text));
    STATUS(cuFuncSetAttribute(function, (unsigned)self->kind, (int)self->number));
    /* How many registers there are is the compiler's business. */
    if (self->kind != HDCU_FUNC_ATTRIBUTE_NUM_REGS && !cu.cuFuncGetAttribute(&value, (unsigned)self->kind, function))
        say("%d", value);
    NEED(cuModuleUnload(module));
}

static void cache_config(const check *self)
{
    (void)self;
    hdcu_function function = kernel_of(module_functions, "plain");
    STATUS(cuFuncSetCacheConfig(function, HDCU_FUNC_CACHE_PREFER_L1));
    STATUS(cuFuncSetCacheConfig(function, HDCU_FUNC_CACHE_PREFER_NONE));
    STATUS(cuFuncSetCacheConfig(function, 99));
}

static void parameter_info(const check *self)
{
    hdcu_function function =
        self->kind == 'b' ? kernel_of(module_basic, self->text) : kernel_of(module_functions, self->text);
    for (size_t i = 0; i < 10; i++) {
        size_t offset = 77, size = 77;
        hdcu_result status = cu.cuFuncGetParamInfo(function, i, &offset, &size);
        say("%u", status);
        if (status)
            return;
        say("%zu:%zu", offset, size);
    }
}

static void parameter_info_misuse(const check *self)
{
    (void)self;
    hdcu_function function = kernel_of(module_functions, "plain");
    size_t offset = 77, size = 77;
    STATUS(cuFuncGetParamInfo(function, 0, NULL, &size));
    STATUS(cuFuncGetParamInfo(function, 0, &offset, NULL));
    STATUS(cuFuncGetParamInfo(function, SIZE_MAX, &offset, &size));
}

/* ---- occupancy: inputs are the block's threads and the dynamic shared memory ---- */

static void occupancy(const check *self)
{
    int blocks = 77;
    const uint64_t *in = self->inputs[0];
    STATUS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_of(self), (int)in[0], in[1]));
    say("%d", blocks);
}

static void occupancy_opted_in(const check *self)
{
    hdcu_module module = NULL;
    hdcu_function function = NULL;
    int blocks = 77;
    const uint64_t *in = self->inputs[0];
    NEED(cuModuleLoadData(&module, module_functions));
    NEED(cuModuleGetFunction(&function, module, self->text));
    STATUS(cuFuncSetAttribute(function, HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)in[1]));
    STATUS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, (int)in[0], in[1]));
    say("%d", blocks);
    NEED(cuModuleUnload(module));
}

static void occupancy_misuse(const check *self)
{
    (void)self;
    hdcu_function function = kernel_of(module_functions, "plain");
    int blocks = 77;
    STATUS(cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, function, 32, 0));
    STATUS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 0, 0));
    STATUS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, -1, 0));
    STATUS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, NULL, 32, 0));
    STATUS(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, function, 32, 0, 99));
}

static size_t shared_for(int threads)
{
    return (size_t)threads * 64;
}

static void potential(const check *self)
{
    int grid = 77, block = 77;
    const uint64_t *in = self->inputs[0];
    STATUS(cuOccupancyMaxPotentialBlockSize(&grid, &block, function_of(self), in[2] ? shared_for : NULL, in[0],
                                            (int)in[1]));
    say("%d:%d", grid, block);
}

static void potential_misuse(const check *self)
{
    (void)self;
    hdcu_function function = kernel_of(module_functions, "plain");
    int grid = 77, block = 77;
    STATUS(cuOccupancyMaxPotentialBlockSize(NULL, &block, function, NULL, 0, 0));
    STATUS(cuOccupancyMaxPotentialBlockSize(&grid, NULL, function, NULL, 0, 0));
    STATUS(cuOccupancyMaxPotentialBlockSize(&grid, &block, NULL, NULL, 0, 0));
}

/* How much dynamic shared memory so many blocks of so many threads leave each other. */
static void available(const check *self)
{
    size_t bytes = 77;
    const uint64_t *in = self->inputs[0];
    STATUS(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function_of(self), (int)in[0], (int)in[1]));
    say("%zu", bytes);
}

static void available_opted_in(const check *self)
{
    hdcu_module module = NULL;
    hdcu_function function = NULL;
    size_t bytes = 77;
    const uint64_t *in = self->inputs[0];
    NEED(cuModuleLoadData(&module, module_functions));
    NEED(cuModuleGetFunction(&function, module, self->text));
    STATUS(cuFuncSetAttribute(function, HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200000));
    STATUS(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, (int)in[0], (int)in[1]));
    say("%zu", bytes);
    NEED(cuModuleUnload(module));
}

#define GET(kernel, which)                                                                                             \
    {.name = "get " kernel " " #which, .run = attribute, .text = kernel, .number = HDCU_FUNC_ATTRIBUTE_##which}
#define SET(text_, kernel, which, value)                                                                               \
    {.name = "set " text_, .run = set, .text = kernel, .kind = HDCU_FUNC_ATTRIBUTE_##which, .number = value}
#define OCCUPANCY(kernel, threads, bytes)                                                                              \
    {.name = "occupancy " kernel " " #threads " + " #bytes, .run = occupancy, .text = kernel, INPUTS({threads, bytes})}
#define OPTED_IN(kernel, threads, bytes)                                                                               \
    {.name = "occupancy opted in " kernel " " #threads " + " #bytes, .run = occupancy_opted_in, .text = kernel,        \
     INPUTS({threads, bytes})}
#define AVAILABLE(kernel, blocks, threads)                                                                             \
    {.name = "available " kernel " " #blocks " x " #threads, .run = available, .text = kernel,                         \
     INPUTS({blocks, threads})}
#define AVAILABLE_OPTED_IN(kernel, blocks, threads)                                                                    \
    {.name = "available opted in " kernel " " #blocks " x " #threads, .run = available_opted_in, .text = kernel,       \
     INPUTS({blocks, threads})}

static const check checks[] = {
    GET("plain", MAX_THREADS_PER_BLOCK),
    GET("plain", SHARED_SIZE_BYTES),
    GET("plain", CONST_SIZE_BYTES),
    GET("plain", LOCAL_SIZE_BYTES),
    GET("plain", PTX_VERSION),
    GET("plain", BINARY_VERSION),
    GET("plain", CACHE_MODE_CA),
    GET("plain", MAX_DYNAMIC_SHARED_SIZE_BYTES),
    GET("plain", PREFERRED_SHARED_MEMORY_CARVEOUT),
    GET("plain", CLUSTER_SIZE_MUST_BE_SET),
    GET("plain", REQUIRED_CLUSTER_WIDTH),
    GET("shared_1k", SHARED_SIZE_BYTES),
    GET("shared_1k", MAX_DYNAMIC_SHARED_SIZE_BYTES),
    GET("shared_48k", SHARED_SIZE_BYTES),
    GET("shared_48k", MAX_DYNAMIC_SHARED_SIZE_BYTES),
    GET("constant_256", CONST_SIZE_BYTES),
    GET("local_array", LOCAL_SIZE_BYTES),
    GET("bounded", MAX_THREADS_PER_BLOCK),
    {.name = "registers", .run = registers, .text = "local_array"},
    {.name = "get misuse", .run = get_misuse},
    SET("dynamic 1000", "plain", MAX_DYNAMIC_SHARED_SIZE_BYTES, 1000),
    SET("dynamic 49153", "plain", MAX_DYNAMIC_SHARED_SIZE_BYTES, 49153),
    SET("dynamic 232448", "plain", MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448),
    SET("dynamic 232449", "plain", MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449),
    SET("dynamic -1", "plain", MAX_DYNAMIC_SHARED_SIZE_BYTES, -1),
    SET("dynamic beside static", "shared_1k", MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448 - 1024),
    SET("dynamic beside static, one more", "shared_1k", MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448 - 1023),
    SET("carveout 50", "plain", PREFERRED_SHARED_MEMORY_CARVEOUT, 50),
    SET("carveout -1", "plain", PREFERRED_SHARED_MEMORY_CARVEOUT, -1),
    SET("carveout 101", "plain", PREFERRED_SHARED_MEMORY_CARVEOUT, 101),
    SET("registers", "plain", NUM_REGS, 32),
    SET("max threads", "plain", MAX_THREADS_PER_BLOCK, 32),
    {.name = "cache config", .run = cache_config},
    {.name = "parameters of mixed", .run = parameter_info, .text = "mixed", .kind = 'b'},
    {.name = "parameters of structure", .run = parameter_info, .text = "structure"},
    {.name = "parameters of plain", .run = parameter_info, .text = "plain"},
    {.name = "parameters of none", .run = parameter_info, .text = "no_parameters"},
    {.name = "parameters misuse", .run = parameter_info_misuse},
    OCCUPANCY("plain", 1, 0),
    OCCUPANCY("plain", 32, 0),
    OCCUPANCY("plain", 33, 0),
    OCCUPANCY("plain", 64, 0),
    OCCUPANCY("plain", 96, 0),
    OCCUPANCY("plain", 128, 0),
    OCCUPANCY("plain", 256, 0),
    OCCUPANCY("plain", 512, 0),
    OCCUPANCY("plain", 768, 0),
    OCCUPANCY("plain", 1024, 0),
    OCCUPANCY("plain", 1025, 0),
    OCCUPANCY("plain", 128, 1000),
    OCCUPANCY("plain", 128, 16384),
    OCCUPANCY("plain", 128, 49152),
    OCCUPANCY("plain", 128, 49153),
    OCCUPANCY("shared_1k", 128, 0),
    OCCUPANCY("shared_1k", 1024, 1000),
    OCCUPANCY("shared_48k", 64, 0),
    OCCUPANCY("shared_48k", 64, 1),
    OCCUPANCY("bounded", 256, 0),
    OCCUPANCY("bounded", 257, 0),
    OPTED_IN("plain", 128, 100000),
    OPTED_IN("plain", 128, 116224),
    OPTED_IN("plain", 128, 232448),
    OPTED_IN("shared_1k", 32, 65536),
    {.name = "occupancy misuse", .run = occupancy_misuse},
    {.name = "potential plain", .run = potential, .text = "plain", INPUTS({0, 0})},
    {.name = "potential at most 100", .run = potential, .text = "plain", INPUTS({0, 100})},
    {.name = "potential with 16384", .run = potential, .text = "plain", INPUTS({16384, 0})},
    {.name = "potential with 64 per thread", .run = potential, .text = "plain", INPUTS({0, 0, 1})},
    {.name = "potential bounded", .run = potential, .text = "bounded", INPUTS({0, 0})},
    {.name = "potential misuse", .run = potential_misuse},
    AVAILABLE("plain", 1, 128),
    AVAILABLE("plain", 2, 128),
    AVAILABLE("plain", 4, 256),
    AVAILABLE("plain", 16, 128),
    AVAILABLE("shared_1k", 2, 128),
    AVAILABLE("plain", 3, 1024),
    AVAILABLE("plain", 32, 64),
    AVAILABLE("plain", 33, 32),
    AVAILABLE("shared_1k", 13, 128),
    AVAILABLE("shared_48k", 4, 64),
    AVAILABLE("shared_48k", 5, 64),
    AVAILABLE_OPTED_IN("plain", 1, 128),
    AVAILABLE_OPTED_IN("plain", 2, 128),
    AVAILABLE_OPTED_IN("plain", 7, 128),
    AVAILABLE_OPTED_IN("shared_1k", 3, 128),
};

const area area_function = {"function", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
