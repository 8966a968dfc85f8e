/* SPDX-License-Identifier: MIT */
/* A device is closed, the program exits, the process forks: in the middle of it all. On the soft driver. */
#include "device_fixture.h"

#include <stdatomic.h>
#include <sys/wait.h>

#include "child.h"

static atomic_int calls;

static void count_call(void *unused)
{
    atomic_fetch_add(&calls, 1);
}

/* Work in every place: in flight, in rings, parked for a value that never comes, at a host call, as templates. */
static void fill_everything(gate *g, hdrt_queue *queues[4], hdrt_timeline **out_timeline)
{
    hdrt_module *module = load_kernels();
    hdrt_kernel *add = kernel_of(module, "add"), *stamp = kernel_of(module, "stamp");
    hdrt_ptr memory;
    for (int i = 0; i < 4; i++) {
        hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
        options.submission = (hdrt_submission)(i % 3);
        CK_OK(hdrt_queue_create(dev, &options, &queues[i]));
    }
    CK_OK(hdrt_alloc(queues[0], 64, &memory));
    CK_OK(hdrt_queue_synchronize(queues[0]));
    for (int i = 0; i < 300; i++) { /* twice the same: it becomes a template */
        CK_OK(hdrt_launch(queues[0], i % 3 ? add : stamp, hdrt_grid_1d(1, 1),
                          i % 3 ? HDRT_ARGS(memory, 1u, 1u) : HDRT_ARGS(memory, 1u)));
    }
    gate_hold(g, queues[0]);
    for (int i = 0; i < 300; i++) {
        CK_OK(hdrt_launch(queues[0], add, hdrt_grid_1d(1, 1), HDRT_ARGS(memory, 1u, 1u)));
        CK_OK(hdrt_fill(queues[1], memory + 32, "x", 1, 8));
    }
    CK_OK(hdrt_queue_host_call(queues[1], gate_wait, g));
    CK_OK(hdrt_launch(queues[1], add, hdrt_grid_1d(1, 1), HDRT_ARGS(memory, 1u, 1u)));
    CK_OK(hdrt_timeline_create(rt, out_timeline));
    CK_OK(hdrt_queue_wait(queues[2], hdrt_timeline_event(*out_timeline, 1)));
    CK_OK(hdrt_queue_host_call(queues[2], count_call, NULL));
    CK_OK(hdrt_queue_wait(queues[3], hdrt_queue_record(queues[2])));
    CK_OK(hdrt_queue_host_call(queues[3], count_call, NULL));
    hdrt_module_destroy(module);
}

START_TEST(a_device_may_be_closed_while_work_runs)
{
    static gate g = GATE_INIT;
    hdrt_queue *queues[4];
    hdrt_timeline *timeline;
    setup_device();
    fill_everything(&g, queues, &timeline);
    hdrt_device_close(dev);
    for (int i = 0; i < 4; i++) {
        hdrt_queue_destroy(queues[i]);
    }
    hdrt_runtime_destroy(rt);
    gate_open(&g);
    ck_assert_int_eq(calls, 0);
    if (_i) {
        CK_OK(hdrt_timeline_signal(timeline, 1)); /* what is parked goes on, and ends */
        for (int i = 0; i < 5000 && calls < 2; i++) {
            usleep(1000);
        }
        ck_assert_int_eq(calls, 2);
    }
    hdrt_timeline_destroy(timeline); /* else it fails */
    usleep(50000);
    ck_assert_int_eq(calls, _i ? 2 : 0);
}
END_TEST

START_TEST(exit_with_work_in_every_place)
{
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        static gate g = GATE_INIT;
        hdrt_queue *queues[4];
        hdrt_timeline *timeline;
        alarm(30);
        setup_device();
        fill_everything(&g, queues, &timeline);
        if (_i) {
            gate_open(&g);
        }
        fclose(stdout);
        exit(7);
    }
    int result;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_msg(WIFEXITED(result) && WEXITSTATUS(result) == 7, "child: status 0x%x", result);
}
END_TEST

static int use_in_child(hdrt_queue *queues[4], hdrt_event event)
{
    for (int i = 0; i < 4; i++) {
        if (hdrt_queue_host_call(queues[i], count_call, NULL) != HDRT_ERROR_FORKED ||
            hdrt_queue_wait(queues[i], event) != HDRT_ERROR_FORKED ||
            hdrt_queue_synchronize(queues[i]) != HDRT_ERROR_FORKED ||
            hdrt_event_query(rt, event) != HDRT_ERROR_FORKED) {
            return 1;
        }
        hdrt_queue_destroy(queues[i]);
    }
    hdrt_device_close(dev);
    hdrt_runtime_destroy(rt);
    return 0;
}

START_TEST(a_fork_with_work_in_every_place)
{
    static gate g = GATE_INIT;
    hdrt_queue *queues[4];
    hdrt_timeline *timeline;
    setup_device();
    fill_everything(&g, queues, &timeline);
    hdrt_event event = hdrt_queue_record(queues[0]);
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(30);
        child_exit(use_in_child(queues, event));
    }
    int result;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_msg(WIFEXITED(result) && WEXITSTATUS(result) == 0, "child: status 0x%x", result);
    gate_open(&g);
    CK_OK(hdrt_timeline_signal(timeline, 1));
    for (int i = 0; i < 4; i++) {
        CK_OK(hdrt_queue_synchronize(queues[i]));
        hdrt_queue_destroy(queues[i]);
    }
    ck_assert_int_eq(calls, 2);
    hdrt_timeline_destroy(timeline);
    teardown_device();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ends");
    TCase *ends = tcase_create("ends");
    tcase_set_timeout(ends, 60);
    tcase_add_loop_test(ends, a_device_may_be_closed_while_work_runs, 0, 2);
    tcase_add_loop_test(ends, exit_with_work_in_every_place, 0, 2);
    tcase_add_test(ends, a_fork_with_work_in_every_place);
    add_soft_tcase(suite, ends, "ends");
    return run_suite(suite);
}
