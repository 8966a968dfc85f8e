/* SPDX-License-Identifier: MIT */
/* Runtimes and devices: opening, describing, contexts, features, and living with others. */
#include "device_fixture.h"

START_TEST(runtime_tells_what_it_loaded)
{
    hdrt_runtime_info info = HDRT_RUNTIME_INFO_INIT;
    CK_OK(hdrt_runtime_get_info(rt, &info));
    ck_assert_int_eq(info.driver, on_cuda() ? HDRT_DRIVER_CUDA : HDRT_DRIVER_SOFT);
    ck_assert_ptr_nonnull(info.driver_path);
    ck_assert_uint_ge(info.driver_version, 11040);
    ck_assert_uint_ge(info.device_count, 1);
    CK_STATUS(hdrt_runtime_get_info(NULL, &info), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_runtime_get_info(rt, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(hdrt_runtime_driver_symbol(rt, "cuStreamQuery"));
    ck_assert_ptr_null(hdrt_runtime_driver_symbol(rt, "cuNoSuchEntry"));
    ck_assert_ptr_null(hdrt_runtime_driver_symbol(rt, NULL));
    ck_assert_ptr_null(hdrt_runtime_driver_symbol(NULL, "cuStreamQuery"));
}
END_TEST

START_TEST(descriptions_are_plausible_and_the_same)
{
    hdrt_device_info closed = HDRT_DEVICE_INFO_INIT, open = HDRT_DEVICE_INFO_INIT;
    CK_OK(hdrt_runtime_device_info(rt, 0, &closed));
    CK_OK(hdrt_device_get_info(dev, &open));
    ck_assert_mem_eq(&closed, &open, sizeof open);
    ck_assert_str_ne(open.name, "");
    ck_assert_uint_ge(open.compute_capability, 50);
    ck_assert_uint_eq(open.warp_size, 32);
    ck_assert_uint_ge(open.multiprocessors, 1);
    ck_assert_uint_ge(open.max_threads_per_block, 1024);
    ck_assert_uint_ge(open.max_shared_per_block, 48 * 1024);
    ck_assert_uint_ge(open.max_shared_per_block_optin, open.max_shared_per_block);
    ck_assert_uint_ge(open.max_grid[0], 65535);
    ck_assert_uint_gt(open.memory_bytes, 0);
    ck_assert_ptr_nonnull(strchr(open.pci, ':'));
    CK_STATUS(hdrt_runtime_device_info(rt, 1000, &closed), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("no device 1000");
    CK_STATUS(hdrt_runtime_device_info(NULL, 0, &closed), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_device_get_info(NULL, &closed), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_device_get_info(dev, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    open.size = 3;
    CK_STATUS(hdrt_device_get_info(dev, &open), HDRT_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(opening_checks_its_arguments)
{
    hdrt_device *device = dev;
    hdrt_device_options options = HDRT_DEVICE_OPTIONS_INIT;
    CK_STATUS(hdrt_device_open(rt, 0, NULL, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_device_open(NULL, 0, NULL, &device), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_null(device);
    CK_STATUS(hdrt_device_open(rt, 4711, NULL, &device), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("there are");
    options.context_kind = (hdrt_context_kind)17;
    CK_STATUS(hdrt_device_open(rt, 0, &options, &device), HDRT_ERROR_INVALID_ARGUMENT);
    options.context_kind = HDRT_CONTEXT_ADOPTED;
    CK_STATUS(hdrt_device_open(rt, 0, &options, &device), HDRT_ERROR_INVALID_ARGUMENT);
    options.context_kind = HDRT_CONTEXT_PRIMARY;
    options.context = hdrt_device_context(dev);
    CK_STATUS(hdrt_device_open(rt, 0, &options, &device), HDRT_ERROR_INVALID_ARGUMENT);
    options.context = NULL;
    options.reserved[3] = 1;
    CK_STATUS(hdrt_device_open(rt, 0, &options, &device), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_null(device);
}
END_TEST

typedef int (*get_current)(struct CUctx_st **);
typedef int (*push_current)(struct CUctx_st *);

static struct CUctx_st *current_context(void)
{
    struct CUctx_st *context = NULL;
    get_current function;
    void *symbol = hdrt_runtime_driver_symbol(rt, "cuCtxGetCurrent");
    memcpy(&function, &symbol, sizeof function);
    ck_assert_int_eq(function(&context), 0);
    return context;
}

START_TEST(context_kinds)
{
    hdrt_device *second, *own, *adopted;
    hdrt_device_options options = HDRT_DEVICE_OPTIONS_INIT;
    CK_OK(hdrt_device_open(rt, 0, NULL, &second));
    ck_assert_ptr_eq(hdrt_device_context(second), hdrt_device_context(dev));
    options.context_kind = HDRT_CONTEXT_OWN;
    CK_OK(hdrt_device_open(rt, 0, &options, &own));
    ck_assert_ptr_ne(hdrt_device_context(own), hdrt_device_context(dev));
    options.context_kind = HDRT_CONTEXT_ADOPTED;
    options.context = hdrt_device_context(own);
    CK_OK(hdrt_device_open(rt, 0, &options, &adopted));
    ck_assert_ptr_eq(hdrt_device_context(adopted), hdrt_device_context(own));
    ck_assert_ptr_eq(hdrt_device_runtime(adopted), rt);
    ck_assert_int_eq(hdrt_device_ordinal(adopted), hdrt_device_ordinal(dev));
    ck_assert_ptr_null(current_context());

    hdrt_queue *queue;
    CK_OK(hdrt_queue_create(adopted, NULL, &queue));
    hdrt_ptr memory;
    CK_OK(hdrt_alloc(queue, 100, &memory));
    CK_OK(hdrt_free(queue, memory));
    CK_OK(hdrt_queue_synchronize(queue));
    hdrt_queue_destroy(queue);
    hdrt_device_close(adopted);
    hdrt_device_close(own);
    hdrt_device_close(second);
    ck_assert_ptr_null(current_context());
    ck_assert_ptr_null(hdrt_device_runtime(NULL));
    ck_assert_ptr_null(hdrt_device_context(NULL));
    ck_assert_int_eq(hdrt_device_ordinal(NULL), -1);
}
END_TEST

START_TEST(the_callers_context_stays)
{
    hdrt_device *own;
    hdrt_device_options options = HDRT_DEVICE_OPTIONS_INIT;
    options.context_kind = HDRT_CONTEXT_OWN;
    CK_OK(hdrt_device_open(rt, 0, &options, &own));
    push_current push;
    void *symbol = hdrt_runtime_driver_symbol(rt, "cuCtxPushCurrent_v2");
    memcpy(&push, &symbol, sizeof push);
    ck_assert_int_eq(push(hdrt_device_context(own)), 0);

    hdrt_queue *queue = make_queue(NULL);
    hdrt_ptr memory;
    void *pinned;
    uint64_t free_bytes, total_bytes;
    CK_OK(hdrt_alloc(queue, 4096, &memory));
    CK_OK(hdrt_host_alloc(dev, 4096, &pinned));
    CK_OK(hdrt_copy_htod(queue, memory, pinned, 4096));
    CK_OK(hdrt_queue_synchronize(queue));
    CK_OK(hdrt_device_memory_info(dev, &free_bytes, &total_bytes));
    ck_assert_uint_le(free_bytes, total_bytes);
    CK_OK(hdrt_device_memory_info(dev, NULL, NULL));
    CK_OK(hdrt_host_free(dev, pinned));
    CK_OK(hdrt_free(queue, memory));
    CK_OK(hdrt_device_synchronize(dev));
    hdrt_queue_destroy(queue);
    ck_assert_ptr_eq(current_context(), hdrt_device_context(own));
    hdrt_device_close(own);
}
END_TEST

START_TEST(limits_are_set)
{
    hdrt_device *own;
    hdrt_device_options options = HDRT_DEVICE_OPTIONS_INIT;
    options.context_kind = HDRT_CONTEXT_OWN;
    options.printf_fifo_bytes = 1 << 20;
    options.malloc_heap_bytes = 16 << 20;
    options.stack_bytes = 2048;
    CK_OK(hdrt_device_open(rt, 0, &options, &own));
    hdrt_device_close(own);
}
END_TEST

START_TEST(features_that_are_there)
{
    ck_assert(!hdrt_device_supports(NULL, HDRT_FEATURE_SOFTWARE));
    ck_assert(hdrt_device_supports(dev, HDRT_FEATURE_SOFTWARE) == !on_cuda());
    ck_assert(!hdrt_device_supports(dev, HDRT_FEATURE_CLUSTER_LAUNCH));
    ck_assert(!hdrt_device_supports(dev, HDRT_FEATURE_ASYNC_PAGEABLE));
    ck_assert(!hdrt_device_supports(dev, (hdrt_feature)999));
    ck_assert(hdrt_device_supports(dev, HDRT_FEATURE_COOPERATIVE_LAUNCH));
    (void)hdrt_device_supports(dev, HDRT_FEATURE_MEMORY_POOLS);
    (void)hdrt_device_supports(dev, HDRT_FEATURE_PARAMETER_INFO);
    hdrt_pool_statistics statistics = {.size = sizeof statistics};
    CK_STATUS(hdrt_device_pool_statistics(dev, &statistics), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_device_pool_trim(dev, 0), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_device_pool_trim(NULL, 0), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_device_synchronize(NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_device_memory_info(NULL, NULL, NULL), HDRT_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(two_runtimes_share_a_driver)
{
    hdrt_runtime *second = make_runtime();
    hdrt_device *device;
    CK_OK(hdrt_device_open(second, 0, NULL, &device));
    hdrt_queue *queue = make_queue("first runtime's");
    hdrt_queue *other;
    CK_OK(hdrt_queue_create(device, NULL, &other));
    hdrt_device_close(device);
    hdrt_runtime_destroy(second);
    hdrt_ptr memory;
    CK_OK(hdrt_alloc(other, 64, &memory));
    CK_OK(hdrt_queue_synchronize(other));
    hdrt_queue_destroy(other);
    hdrt_queue_destroy(queue);
}
END_TEST

static void fail_nth(const char *name, int nth, unsigned code)
{
    char rule[128];
    snprintf(rule, sizeof rule, "%s:%d=%u", name, nth, code);
    inject(NULL);
    inject(rule);
}

/* Every driver call of opening fails in turn: a status, nothing left behind, and the next try works. */
START_TEST(opening_survives_every_failure)
{
    static const char *const calls[] = {"cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent",
                                        "cuThreadExchangeStreamCaptureMode", "cuDeviceGetAttribute",
                                        "cuCtxGetStreamPriorityRange", "cuCtxSetLimit", "cuCtxCreate", "cuCtxGetDevice",
                                        "cuCtxPopCurrent"};
    hdrt_device *own, *device;
    hdrt_device_options options = HDRT_DEVICE_OPTIONS_INIT;
    options.context_kind = HDRT_CONTEXT_OWN;
    CK_OK(hdrt_device_open(rt, 0, &options, &own));
    int failed = 0;
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        for (int kind = HDRT_CONTEXT_PRIMARY; kind <= HDRT_CONTEXT_ADOPTED; kind++) {
            for (int nth = 1; nth <= 6; nth++) {
                options.context_kind = (hdrt_context_kind)kind;
                options.context = kind == HDRT_CONTEXT_ADOPTED ? hdrt_device_context(own) : NULL;
                options.stack_bytes = 1024;
                options.printf_fifo_bytes = 1 << 20;
                options.malloc_heap_bytes = 8 << 20;
                fail_nth(calls[c], nth, 999);
                hdrt_status status = hdrt_device_open(rt, 0, &options, &device);
                inject(NULL);
                if (status == HDRT_OK) {
                    hdrt_device_close(device);
                } else {
                    ck_assert_ptr_null(device);
                    CK_STATUS(status, HDRT_ERROR_DRIVER);
                    CK_MESSAGE("999");
                    failed++;
                }
                options.context = NULL;
            }
        }
    }
    ck_assert_int_ge(failed, 20);
    options.context_kind = HDRT_CONTEXT_PRIMARY;
    CK_OK(hdrt_device_open(rt, 0, &options, &device));
    hdrt_device_close(device);
    hdrt_device_close(own);
}
END_TEST

START_TEST(creating_survives_every_failure)
{
    static const char *const calls[] = {"cuDeviceGet", "cuDeviceGetName", "cuDeviceGetUuid", "cuDeviceGetPCIBusId",
                                        "cuDeviceTotalMem", "cuDeviceGetAttribute", "cuThreadExchangeStreamCaptureMode"};
    hdrt_runtime *runtime;
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    options.driver = HDRT_DRIVER_SOFT;
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        for (int nth = 1; nth <= (strcmp(calls[c], "cuDeviceGetAttribute") ? 1 : 21); nth++) {
            fail_nth(calls[c], nth, 999);
            CK_STATUS(hdrt_runtime_create(&options, &runtime), HDRT_ERROR_DRIVER);
            ck_assert_ptr_null(runtime);
        }
    }
    inject(NULL);
    inject("cuDeviceGetAttribute:3=1"); /* an attribute that a driver does not know reads as 0 */
    CK_OK(hdrt_runtime_create(&options, &runtime));
    hdrt_device_info info = HDRT_DEVICE_INFO_INIT;
    CK_OK(hdrt_runtime_device_info(runtime, 0, &info));
    ck_assert_uint_eq(info.max_threads_per_block, 0);
    hdrt_runtime_destroy(runtime);
}
END_TEST

START_TEST(asking_for_memory_survives_failure)
{
    uint64_t free_bytes;
    fail_nth("cuMemGetInfo", 1, 999);
    CK_STATUS(hdrt_device_memory_info(dev, &free_bytes, NULL), HDRT_ERROR_DRIVER);
    fail_nth("cuCtxPushCurrent", 1, 201);
    CK_STATUS(hdrt_device_memory_info(dev, &free_bytes, NULL), HDRT_ERROR_DRIVER);
    inject(NULL);
    CK_OK(hdrt_device_memory_info(dev, &free_bytes, NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device");
    TCase *tcase = tcase_create("device"), *failures = tcase_create("failures");
    tcase_add_checked_fixture(tcase, setup_device, teardown_device);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, runtime_tells_what_it_loaded);
    tcase_add_test(tcase, descriptions_are_plausible_and_the_same);
    tcase_add_test(tcase, opening_checks_its_arguments);
    tcase_add_test(tcase, context_kinds);
    tcase_add_test(tcase, the_callers_context_stays);
    tcase_add_test(tcase, limits_are_set);
    tcase_add_test(tcase, features_that_are_there);
    tcase_add_test(tcase, two_runtimes_share_a_driver);
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(failures, setup_device, teardown_device);
    tcase_set_timeout(failures, 60);
    tcase_add_test(failures, opening_survives_every_failure);
    tcase_add_test(failures, creating_survives_every_failure);
    tcase_add_test(failures, asking_for_memory_survives_failure);
    add_soft_tcase(suite, failures, "device failures");
    return run_suite(suite);
}
