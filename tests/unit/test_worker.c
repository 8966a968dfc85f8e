/* SPDX-License-Identifier: MIT */
/* The compile worker without a compiler: its manners, its limits and what it makes of compilers that misbehave. */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "worker_client.h"

static char *folder;

static void set_up(void)
{
    folder = folder_make();
}

static void tear_down(void)
{
    folder_remove(folder);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void nap(int milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

/* The number that a script wrote into a file of the folder, as soon as it is there. */
static pid_t read_pid(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (int i = 0; i < 1000; i++) {
        int pid = 0;
        FILE *file = fopen(path, "re");
        bool known = file != NULL && fscanf(file, "%d", &pid) == 1;
        if (file != NULL)
            fclose(file);
        if (known)
            return pid;
        nap(10);
    }
    ck_abort_msg("no number in '%s'", path);
    return 0;
}

static bool dies(pid_t pid)
{
    for (int i = 0; i < 500; i++) {
        if (!process_lives(pid))
            return true;
        nap(10);
    }
    return false;
}

/* -- stand-in compilers -------------------------------------------------------------------------------------------- */

typedef struct stand_in {
    const char *script;
    uint32_t status;
    const char *message; /* in it */
} stand_in;

static const stand_in stand_ins[] = {
    {"echo '.version 7.5'", HDRT_CC_STATUS_OK, NULL},
    {"exit 0", HDRT_CC_STATUS_CRASHED, "ended well but wrote no code"},
    {"kill -SEGV $$", HDRT_CC_STATUS_CRASHED, "signal 11"},
    {"kill -ABRT $$", HDRT_CC_STATUS_CRASHED, "signal 6"},
    {"kill -KILL $$", HDRT_CC_STATUS_CRASHED, "signal 9 (Killed), as the kernel does when memory runs out"},
    {"echo 'LLVM ERROR: out of memory' >&2; kill -ABRT $$", HDRT_CC_STATUS_LIMIT, "ran out of memory"},
    {"echo 'LLVM ERROR: out of memory' >&2; exit 134", HDRT_CC_STATUS_LIMIT, "ran out of memory"},
    {"exit 139", HDRT_CC_STATUS_CRASHED, "signal 11"},
    {"echo 'fatal error: error in backend: too odd' >&2; echo 'Stack dump:' >&2; exit 70", HDRT_CC_STATUS_CRASHED,
     "failed inside (status 70): error in backend: too odd"},
    {"echo 'boo' >&2; exit 3", HDRT_CC_STATUS_CRASHED, "ended with status 3: boo"},
    {"exit 3", HDRT_CC_STATUS_CRASHED, "ended with status 3 and said nothing"},
    {"echo 'k.cu:3:4: error: odd' >&2; exit 1", HDRT_CC_STATUS_COMPILE, "k.cu:3:4: odd"},
    {"echo 'k.cu:3: error: odd' >&2; exit 1", HDRT_CC_STATUS_COMPILE, "k.cu:3: odd"},
    {"echo 'error: so many' >&2; exit 1", HDRT_CC_STATUS_COMPILE, "so many"},
    {"echo \"clang: error: unknown argument: '-x'\" >&2; exit 1", HDRT_CC_STATUS_OPTION, "unknown argument: '-x'"},
    {"echo 'x: error while loading shared libraries: y' >&2; exit 127", HDRT_CC_STATUS_NO_COMPILER, "cannot run: x:"},
    {"echo 'clang: error: unsupported CUDA gpu architecture: sm_80' >&2; exit 1", HDRT_CC_STATUS_OPTION,
     "does not know the target sm_80; it knows sm_80, none of them below it"},
};

START_TEST(stand_in_compilers)
{
    const stand_in *test = &stand_ins[_i];
    char *script = folder_script(folder, "a compiler's \"name\"", test->script);
    worker_process worker = worker_start();
    worker_ask ask = worker_ask_clang(script, "");
    worker_reply reply = worker_compile(&worker, &ask);
    ck_assert_msg(reply.arrived && reply.status == test->status, "%s", worker_print(&reply));
    if (test->message != NULL)
        ck_assert_msg(worker_says(&reply, HDRT_CC_MESSAGE, test->message), "%s", worker_print(&reply));
    if (test->status == HDRT_CC_STATUS_OK) { /* a shell is no clang: what it read was not recorded from its source on */
        ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, ".version 7.5\n"));
        ck_assert_uint_ge(worker_count(&reply, HDRT_CC_NO_STORE), 1);
    }
    worker_reply_free(&reply);
    reply = worker_compile(&worker, &ask); /* it is there for the next one */
    ck_assert_uint_eq(reply.status, test->status);
    worker_reply_free(&reply);
    ck_assert_int_eq(worker_stop(&worker), 0);
    free(script);
}
END_TEST

START_TEST(no_compiler_there)
{
    worker_process worker = worker_start();
    char *file = folder_write(folder, "file", "no program");
    const char *const paths[] = {"/nonexistent/clang", folder, file};
    for (int i = 0; i < 3; i++) {
        worker_ask ask = worker_ask_clang(paths[i], "");
        worker_reply reply = worker_compile(&worker, &ask);
        ck_assert_msg(reply.status == HDRT_CC_STATUS_NO_COMPILER, "%s", worker_print(&reply));
        ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, paths[i]));
        worker_reply_free(&reply);
    }
    worker_ask ask = worker_ask_clang("/bin/true", "");
    ask.directory = "/nonexistent/folder";
    worker_reply reply = worker_compile(&worker, &ask);
    ck_assert_msg(reply.status == HDRT_CC_STATUS_IO, "%s", worker_print(&reply));
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "/nonexistent/folder"));
    worker_reply_free(&reply);
    ask.kind = HDRT_CC_CUBIN;
    reply = worker_compile(&worker, &ask);
    ck_assert_uint_eq(reply.status, HDRT_CC_STATUS_UNSUPPORTED);
    worker_reply_free(&reply);
    worker_stop(&worker);
    free(file);
}
END_TEST

START_TEST(time_limit)
{
    char *script = folder_script(folder, "slow", "sleep 60 & echo $! > inner; echo $$ > outer; wait");
    worker_process worker = worker_start();
    worker_ask ask = worker_ask_clang(script, "");
    ask.directory = folder;
    ask.time_limit_ms = 400;
    double begin = seconds();
    worker_reply reply = worker_compile(&worker, &ask);
    double taken = seconds() - begin;
    ck_assert_msg(reply.status == HDRT_CC_STATUS_LIMIT, "%s", worker_print(&reply));
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "did not finish within 400 ms"));
    ck_assert_msg(taken >= 0.4 && taken < 0.4 + HDRT_CC_GRACE_MS / 1000.0, "%g s", taken);
    ck_assert(dies(read_pid("outer")));
    ck_assert(dies(read_pid("inner"))); /* what it had started goes with it */
    worker_reply_free(&reply);
    worker_stop(&worker);
    free(script);
}
END_TEST

START_TEST(compiler_that_floods_its_errors)
{
    char *script = folder_script(folder, "loud", "head -c 20000000 /dev/zero | tr '\\0' 'x' >&2; exit 1");
    worker_process worker = worker_start();
    worker_ask ask = worker_ask_clang(script, "");
    worker_reply reply = worker_compile(&worker, &ask);
    size_t size = 0;
    char *log = worker_text(&reply, HDRT_CC_LOG, 0, &size);
    ck_assert_uint_eq(size, 4u << 20);
    free(log);
    worker_reply_free(&reply);
    worker_stop(&worker);
    free(script);
}
END_TEST

/* The compiler itself is gone, only something that it left behind still holds its standard error. */
START_TEST(compiler_that_leaves_a_child)
{
    char *script = folder_script(folder, "parent", "sleep 60 & echo $! > left; echo .version; exit 0");
    worker_process worker = worker_start();
    worker_ask ask = worker_ask_clang(script, "");
    ask.directory = folder;
    double begin = seconds();
    worker_reply reply = worker_compile(&worker, &ask);
    ck_assert_msg(reply.status == HDRT_CC_STATUS_OK, "%s", worker_print(&reply));
    ck_assert(seconds() - begin < 20);
    ck_assert(dies(read_pid("left")));
    worker_reply_free(&reply);
    worker_stop(&worker);
    free(script);
}
END_TEST

/* A failure that may be the limit's says what the limit was; one that cannot be anything else is the limit's. */
START_TEST(memory_limit_is_named)
{
#ifndef HDRT_SANITIZED
    static const struct {
        const char *script, *message;
        uint64_t memory_limit;
        uint32_t status;
    } cases[] = {
        {"kill -SEGV $$", "ended under a memory limit of 67108864 bytes", 64u << 20, HDRT_CC_STATUS_LIMIT},
        {"kill -ABRT $$", "ended under a memory limit of 67108864 bytes", 64u << 20, HDRT_CC_STATUS_LIMIT},
        {"exit 135", "ended under a memory limit of 67108864 bytes", 64u << 20, HDRT_CC_STATUS_LIMIT},
        {"kill -TERM $$", "signal 15 (Terminated) (the memory limit was 64 MiB)", 64u << 20, HDRT_CC_STATUS_CRASHED},
        {"kill -SEGV $$", "signal 11 (Segmentation fault) (the memory limit was 1024 MiB)", 1u << 30,
         HDRT_CC_STATUS_CRASHED},
        {"exit 3", "ended with status 3 and said nothing (the memory limit was 1024 MiB)", 1u << 30,
         HDRT_CC_STATUS_CRASHED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *script = folder_script(folder, "limited", cases[i].script);
        worker_process worker = worker_start();
        worker_ask ask = worker_ask_clang(script, "");
        ask.memory_limit = cases[i].memory_limit;
        worker_reply reply = worker_compile(&worker, &ask);
        ck_assert_msg(reply.status == cases[i].status, "case %zu: %s", i, worker_print(&reply));
        ck_assert_msg(worker_says(&reply, HDRT_CC_MESSAGE, cases[i].message), "case %zu: %s", i, worker_print(&reply));
        worker_reply_free(&reply);
        worker_stop(&worker);
        free(script);
    }
#endif
}
END_TEST

START_TEST(memory_limit)
{
#ifndef HDRT_SANITIZED
    char *script = folder_script(folder, "hungry", "exec tail /dev/zero"); /* it looks for the end of a line */
    worker_process worker = worker_start();
    worker_ask ask = worker_ask_clang(script, "");
    ask.memory_limit = 64u << 20;
    worker_reply reply = worker_compile(&worker, &ask);
    ck_assert_msg(reply.status == HDRT_CC_STATUS_LIMIT, "%s", worker_print(&reply));
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "ended under a memory limit of 67108864 bytes"));
    worker_reply_free(&reply);
    worker_stop(&worker);
    free(script);
#endif
}
END_TEST

START_TEST(endless_output)
{
    char *script = folder_script(folder, "endless", "ulimit -f 1024; exec cat /dev/zero");
    worker_process worker = worker_start();
    worker_ask ask = worker_ask_clang(script, "");
    worker_reply reply = worker_compile(&worker, &ask);
    ck_assert_msg(reply.status == HDRT_CC_STATUS_LIMIT, "%s", worker_print(&reply));
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "wrote more than"));
    worker_reply_free(&reply);
    worker_stop(&worker);
    free(script);
}
END_TEST

/* -- manners ------------------------------------------------------------------------------------------------------- */

/* What the compiler finds around it: its own descriptors and a scrubbed environment, whatever the application had. */
START_TEST(surroundings_of_the_compiler)
{
    setenv("NVRTC_APPEND_FLAGS", "-G", 1);
    setenv("CPATH", "/tmp", 1);
    signal(SIGTERM, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    int leak = open("/dev/null", O_RDONLY);
    ck_assert_int_ge(leak, 0);
    char *script = folder_script(folder, "nosy",
                                 "(env | sort; echo; cd /proc/self/fd && echo *; pwd; umask;"
                                 " grep -E '^Sig(Blk|Ign)' /proc/$$/status; ulimit -c) >&2;"
                                 "echo $PPID > parent; exit 1");
    worker_process worker = worker_start();
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_DFL);
    worker_ask ask = worker_ask_clang(script, "");
    ask.directory = folder;
    worker_reply reply = worker_compile(&worker, &ask);
    char *log = worker_text(&reply, HDRT_CC_LOG, 0, NULL);
    ck_assert_ptr_nonnull(log);
    ck_assert_msg(strstr(log, "NVRTC_APPEND_FLAGS") == NULL && strstr(log, "CPATH") == NULL &&
                      strstr(log, "HOME") == NULL,
                  "%s", log);
    ck_assert_msg(strstr(log, "LC_ALL=C\n") != NULL, "%s", log);
    ck_assert_msg(strstr(log, "\n0 1 2 3 4 5") != NULL && strstr(log, " 8 ") == NULL, "%s", log);
    ck_assert_msg(strstr(log, "\n0077\n") != NULL, "%s", log);
    ck_assert_msg(strstr(log, "SigBlk:\t0000000000000000\n") != NULL, "%s", log);
    const char *ignored = strstr(log, "SigIgn:\t");
    ck_assert_ptr_nonnull(ignored);
    char *rest;
    unsigned long long mask = strtoull(ignored + strlen("SigIgn:\t"), &rest, 16);
    mask &= ~(3ull << 31); /* 32 and 33 are the C library's own, and nobody can set them by it */
    ck_assert_msg(mask == 0 && strcmp(rest, "\n0\n") == 0, "%s", log);
    ck_assert_int_eq(read_pid("parent"), worker.pid);
    free(log);
    worker_reply_free(&reply);
    worker_stop(&worker);
    free(script);
}
END_TEST

static void link_of(pid_t pid, const char *what, char *target, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
    ssize_t length = readlink(path, target, size - 1);
    target[length > 0 ? length : 0] = '\0';
}

START_TEST(surroundings_of_the_worker)
{
    int pipe_ends[2];
    ck_assert_int_eq(pipe(pipe_ends), 0);
    worker_process worker = worker_start();
    worker_ask ask = worker_ask_clang("/nonexistent", ""); /* when it has answered, it has settled down */
    worker_reply reply = worker_compile(&worker, &ask);
    worker_reply_free(&reply);
    ck_assert_int_eq(getsid(worker.pid), worker.pid);
    char target[4096];
    link_of(worker.pid, "cwd", target, sizeof target);
    ck_assert_str_eq(target, "/");
    for (int fd = 0; fd < 3; fd++) {
        char name[16];
        snprintf(name, sizeof name, "fd/%d", fd);
        link_of(worker.pid, name, target, sizeof target);
        ck_assert_str_eq(target, "/dev/null");
    }
    int sockets = 0;
    for (int fd = 3; fd < 64; fd++) {
        char name[16];
        snprintf(name, sizeof name, "fd/%d", fd);
        link_of(worker.pid, name, target, sizeof target);
        sockets += strncmp(target, "socket:", 7) == 0;
        ck_assert_msg(strncmp(target, "pipe:", 5) != 0, "it kept %s", target);
    }
    ck_assert_int_eq(sockets, 1);
    close(pipe_ends[1]);
    char byte;
    ck_assert_int_eq(read(pipe_ends[0], &byte, 1), 0); /* end of file: it holds no copy of the other end */
    ck_assert_int_eq(worker_stop(&worker), 0);
}
END_TEST

START_TEST(closed_socket_in_a_compile)
{
    char *script = folder_script(folder, "slow", "sleep 60 & echo $! > inner; echo $$ > outer; wait");
    worker_process worker = worker_start();
    worker_ask ask = worker_ask_clang(script, "");
    ask.directory = folder;
    worker_send(&worker, &ask);
    pid_t outer = read_pid("outer"), inner = read_pid("inner");
    ck_assert(process_lives(outer));
    double begin = seconds();
    worker_stop(&worker);
    ck_assert(seconds() - begin < 5);
    ck_assert(dies(outer));
    ck_assert(dies(inner));
    free(script);
}
END_TEST

START_TEST(killed_worker_takes_its_compiler_along)
{
    char *script = folder_script(folder, "slow", "echo $$ > outer; exec sleep 60");
    worker_process worker = worker_start();
    worker_ask ask = worker_ask_clang(script, "");
    ask.directory = folder;
    worker_send(&worker, &ask);
    pid_t outer = read_pid("outer");
    kill(worker.pid, SIGKILL);
    ck_assert(dies(outer));
    worker_reply reply = worker_receive(&worker);
    ck_assert(!reply.arrived);
    worker_stop(&worker);
    free(script);
}
END_TEST

/* The sender stops in the middle and goes away. */
START_TEST(half_a_message)
{
    static const unsigned char header[HDRT_CC_HEADER_SIZE] = {'H', 'D', 'C', 'C', 1, 0, 0, 0, 1, 0, 0, 0,
                                                              0,   0,   0,   0,   0, 0, 0, 16};
    for (size_t cut = 0; cut <= sizeof header; cut += 8) {
        worker_process worker = worker_start();
        ck_assert_int_eq(send(worker.socket, header, cut, MSG_NOSIGNAL), (ssize_t)cut);
        worker_stop(&worker);
    }
}
END_TEST

typedef struct bad_header {
    uint32_t magic, version, type, zero;
    uint64_t length;
    const char *message;
} bad_header;

static const bad_header bad_headers[] = {
    {0x12345678, HDRT_CC_VERSION, 1, 0, 0, "no request to hdrt-cc"},
    {HDRT_CC_MAGIC, HDRT_CC_VERSION + 1, 1, 0, 0, "another version"},
    {HDRT_CC_MAGIC, HDRT_CC_VERSION, 2, 0, 0, "unknown type"},
    {HDRT_CC_MAGIC, HDRT_CC_VERSION, 1, 1, 0, "unknown type"},
    {HDRT_CC_MAGIC, HDRT_CC_VERSION, 1, 0, HDRT_CC_MESSAGE_LIMIT + 1, "too long"},
    {HDRT_CC_MAGIC, HDRT_CC_VERSION, 1, 0, UINT64_MAX, "too long"},
};

START_TEST(malformed_headers)
{
    const bad_header *test = &bad_headers[_i];
    hdrt__cc_buffer message = {0};
    hdrt__cc_buffer_u32(&message, test->magic);
    hdrt__cc_buffer_u32(&message, test->version);
    hdrt__cc_buffer_u32(&message, test->type);
    hdrt__cc_buffer_u32(&message, test->zero);
    hdrt__cc_buffer_u64(&message, test->length);
    worker_process worker = worker_start();
    ck_assert_int_eq(send(worker.socket, message.bytes, message.size, MSG_NOSIGNAL), (ssize_t)message.size);
    worker_reply reply = worker_receive(&worker);
    ck_assert_msg(reply.status == HDRT_CC_STATUS_PROTOCOL, "%s", worker_print(&reply));
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, test->message));
    worker_reply_free(&reply);
    ck_assert_int_eq(worker_wait(&worker, 5000), 0); /* what follows could be anything, so it ends by itself */
    close(worker.socket);
    hdrt__cc_buffer_free(&message);
}
END_TEST

/* Random payloads, and a good one with bytes changed: always a reply, and the same worker to the end. */
START_TEST(mutated_requests)
{
    unsigned seed = 7;
    worker_process worker = worker_start();
    for (int round = 0; round < 300; round++) {
        hdrt__cc_buffer payload = {0};
        hdrt__cc_buffer_field(&payload, HDRT_CC_BACK_END, "\2\0\0\0", 4);
        hdrt__cc_buffer_field(&payload, HDRT_CC_KIND, "\1\0\0\0", 4);
        hdrt__cc_buffer_field(&payload, HDRT_CC_COMPILER_PATH, "/nonexistent/x", 14);
        hdrt__cc_buffer_field(&payload, HDRT_CC_PRELUDE, "/p", 2);
        hdrt__cc_buffer_field(&payload, HDRT_CC_RECORDER, "/r", 2);
        hdrt__cc_buffer_field(&payload, HDRT_CC_SOURCE, "int x;", 6);
        hdrt__cc_buffer_field(&payload, HDRT_CC_NAME, "n", 1);
        hdrt__cc_buffer_field(&payload, HDRT_CC_DIRECTORY, "/", 1);
        hdrt__cc_buffer_field(&payload, HDRT_CC_ARCH, "sm_80", 5);
        hdrt__cc_buffer_field(&payload, HDRT_CC_OPTION, "-DA=1", 5);
        for (int i = 0; i < 1 + rand_r(&seed) % 4; i++)
            payload.bytes[(size_t)rand_r(&seed) % payload.size] = (unsigned char)rand_r(&seed);
        if (rand_r(&seed) % 3 == 0)
            payload.size = (size_t)rand_r(&seed) % payload.size;
        worker_send_payload(&worker, &payload);
        worker_reply reply = worker_receive(&worker);
        ck_assert(reply.arrived && reply.status != HDRT_CC_STATUS_OK);
        worker_reply_free(&reply);
        hdrt__cc_buffer_free(&payload);
    }
    ck_assert_int_eq(worker_stop(&worker), 0);
}
END_TEST

START_TEST(source_with_a_nul)
{
    worker_process worker = worker_start();
    worker_ask ask = worker_ask_clang("/bin/true", "int a;\nint \0b;\n");
    ask.source_size = 15;
    worker_reply reply = worker_compile(&worker, &ask);
    ck_assert_msg(reply.status == HDRT_CC_STATUS_COMPILE, "%s", worker_print(&reply));
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "k.cu:2:5: the source has a NUL byte"));
    ck_assert(worker_diagnoses(&reply, "k.cu", 2, 5, 3, "the source has a NUL byte"));
    worker_reply_free(&reply);
    worker_stop(&worker);
}
END_TEST

/* -- the command line ---------------------------------------------------------------------------------------------- */

static int run_worker(const char *arguments, char *output, size_t size)
{
    char command[8192];
    snprintf(command, sizeof command, "'%s/hdrt-cc' %s 2>&1", build_folder(), arguments);
    FILE *stream = popen(command, "re");
    ck_assert_ptr_nonnull(stream);
    size_t length = fread(output, 1, size - 1, stream);
    output[length] = '\0';
    int status = pclose(stream);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(command_line)
{
    static const struct {
        const char *arguments;
        int status;
        const char *output;
    } cases[] = {
        {"--help", 0, "Usage: hdrt-cc --fd=N\n"}, {"--version", 0, "hdrt-cc (libhdrt) "},
        {"", 2, "try 'hdrt-cc --help'"},          {"--fd=", 2, "try 'hdrt-cc --help'"},
        {"--fd=0x3", 2, "--fd=N"},                {"--fd=-1", 2, "--fd=N"},
        {"--fd=77", 2, "--fd=N"},                 {"--fd=0 </dev/null", 2, "stream socket"},
        {"--fd=3 more", 2, "--fd=N"},             {"--other", 2, "--fd=N"},
    };
    char output[4096];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(run_worker(cases[i].arguments, output, sizeof output), cases[i].status);
        ck_assert_msg(strstr(output, cases[i].output) != NULL, "'%s': %s", cases[i].arguments, output);
    }
}
END_TEST

/* -- a stand-in NVRTC ---------------------------------------------------------------------------------------------- */

static char *fake_nvrtc(const char *name)
{
    char *path = NULL;
    ck_assert_int_gt(asprintf(&path, "%s/tests/unit/support/.libs/%s.so", build_folder(), name), 0);
    return path;
}

static worker_ask ask_nvrtc(const char *library, const char *source)
{
    return (worker_ask){
        .back_end = HDRT_CC_NVRTC, .kind = HDRT_CC_PTX, .lower = 1, .time_limit_ms = 20000, .compiler = library,
        .name = "k.cu", .directory = folder, .arch = "sm_90", .source = source,
    };
}

typedef struct misdeed {
    const char *source;
    uint32_t status;
    const char *message; /* NULL: the worker ends without an answer */
    bool goes_on;        /* the worker is there for the next one */
    uint64_t memory_limit;
} misdeed;

static const misdeed misdeeds[] = {
    {"nothing", HDRT_CC_STATUS_OK, "", true, 0},
    {"result 6", HDRT_CC_STATUS_COMPILE, "NVRTC_ERROR", true, 0},
    {"log k.cu(3): error: odd\nlog   x y\nlog    ^\nresult 6", HDRT_CC_STATUS_COMPILE, "k.cu:3:2: odd", true, 0},
    {"log nvrtc: error: unrecognized option -q found\nresult 5", HDRT_CC_STATUS_OPTION, "option -q found", true, 0},
    {"result 1", HDRT_CC_STATUS_LIMIT, "ran out of memory", false, 0},
    {"log Loop in catastrophic error processing.\nresult 6", HDRT_CC_STATUS_LIMIT, "ran out of memory", false, 0},
    {"result 7", HDRT_CC_STATUS_NO_COMPILER, "cannot use its builtins (not found)", true, 0},
    {"result 11", HDRT_CC_STATUS_CRASHED, "failed inside: NVRTC_ERROR_INTERNAL_ERROR", false, 0},
    {"hang", HDRT_CC_STATUS_LIMIT, "did not finish within 500 ms", false, 0},
    {"exit", HDRT_CC_STATUS_OK, NULL, false, 0},
#ifndef HDRT_SANITIZED
    {"abort", HDRT_CC_STATUS_CRASHED, "crashed: it aborted", false, 0},
    {"print LLVM ERROR: out of memory\nabort", HDRT_CC_STATUS_LIMIT, "ran out of memory", false, 0},
    {"access", HDRT_CC_STATUS_CRASHED, "crashed: an invalid memory access, or a stack overflow", false, 0},
    {"overflow", HDRT_CC_STATUS_CRASHED, "stack overflow", false, 0},
    {"starve", HDRT_CC_STATUS_LIMIT, "ended under a memory limit of 268435456 bytes", false, 256u << 20},
#endif
};

START_TEST(nvrtc_that_misbehaves)
{
    const misdeed *test = &misdeeds[_i];
    char *library = fake_nvrtc("fake_nvrtc");
    worker_process worker = worker_start();
    worker_ask ask = ask_nvrtc(library, test->source);
    ask.memory_limit = test->memory_limit;
    if (strcmp(test->source, "hang") == 0)
        ask.time_limit_ms = 500;
    worker_reply reply = worker_compile(&worker, &ask);
    ck_assert_int_eq(reply.arrived, test->message != NULL);
    ck_assert_msg(reply.status == test->status, "%s", worker_print(&reply));
    if (test->message != NULL && test->message[0] != '\0')
        ck_assert_msg(worker_says(&reply, HDRT_CC_MESSAGE, test->message), "%s", worker_print(&reply));
    worker_reply_free(&reply);
    if (test->goes_on) {
        ask.source = "nothing";
        reply = worker_compile(&worker, &ask);
        ck_assert_uint_eq(reply.status, HDRT_CC_STATUS_OK);
        worker_reply_free(&reply);
        worker_stop(&worker);
    } else {
        ck_assert_int_ne(worker_wait(&worker, 5000), -1);
        close(worker.socket);
    }
    free(library);
}
END_TEST

START_TEST(what_nvrtc_is_given)
{
    char *library = fake_nvrtc("fake_nvrtc"), *old = fake_nvrtc("fake_nvrtc_old");
    worker_process worker = worker_start();
    worker_ask ask = ask_nvrtc(library, "print said by it");
    ask.options[0] = "-I a", ask.options[1] = "-lineinfo";
    worker_reply reply = worker_compile(&worker, &ask);
    ck_assert_msg(worker_lists(&reply, HDRT_CC_CODE_PTX, "-I a\n-lineinfo\n--gpu-architecture=compute_90\n-no-cache\n"
                                                         "-frandom-seed=0123456789abcdef\n"),
                  "%s", worker_print(&reply));
    ck_assert(worker_says(&reply, HDRT_CC_LOG, "said by it\n"));
    ck_assert(worker_says(&reply, HDRT_CC_COMPILER_VERSION, "NVRTC 13.1"));
    worker_reply_free(&reply);

    ask.kind = HDRT_CC_CUBIN;
    ask.arch = "sm_89"; /* lowered within its major number: a cubin of it runs */
    reply = worker_compile(&worker, &ask);
    ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, "--gpu-architecture=sm_80\n"));
    ck_assert(worker_lists(&reply, HDRT_CC_CODE_CUBIN, "FAKE"));
    ck_assert(worker_says(&reply, HDRT_CC_NOTE, "does not know sm_89; compiled for sm_80"));
    worker_reply_free(&reply);
    ask.arch = "sm_100"; /* to another: it would not */
    reply = worker_compile(&worker, &ask);
    ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, "--gpu-architecture=compute_90\n"));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_CODE_CUBIN), 0);
    ck_assert(worker_says(&reply, HDRT_CC_NOTE, "as PTX that the driver compiles"));
    worker_reply_free(&reply);
    ask.lower = 0;
    reply = worker_compile(&worker, &ask);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "the target sm_100; it knows sm_75 sm_80 sm_90 sm_120"));
    worker_reply_free(&reply);

    ask = ask_nvrtc(old, "nothing"); /* another library in the same worker, which refuses what ours added */
    reply = worker_compile(&worker, &ask);
    ck_assert_msg(worker_lists(&reply, HDRT_CC_CODE_PTX, "--gpu-architecture=compute_90\n"), "%s",
                  worker_print(&reply));
    ck_assert(worker_says(&reply, HDRT_CC_COMPILER_VERSION, "NVRTC 11.8"));
    worker_reply_free(&reply);
    ask.kind = HDRT_CC_CUBIN;
    reply = worker_compile(&worker, &ask);
    ck_assert_msg(reply.status == HDRT_CC_STATUS_UNSUPPORTED, "%s", worker_print(&reply));
    worker_reply_free(&reply);
    worker_stop(&worker);
    free(library);
    free(old);
}
END_TEST

START_TEST(what_nvrtc_reads)
{
    char *library = fake_nvrtc("fake_nvrtc");
    free(folder_write(folder, "sub/a.h", "text of a\n"));
    char *threaded = folder_write(folder, "b.h", "");
    char *fifo = NULL;
    ck_assert_int_gt(asprintf(&fifo, "%s/fifo", folder), 0);
    ck_assert_int_eq(mkfifo(fifo, 0666), 0);
    nap(20);
    worker_process worker = worker_start();
    worker_ask ask = ask_nvrtc(library, "#include\nread sub/a.h\nread /nonexistent/x\nthread b.h\nread fifo\nread sub\n"
                                        "read /proc/self/stat\nread a.h/b\nread sub/a.h/b\nread loop");
    char path[4096];
    snprintf(path, sizeof path, "%s/loop", folder);
    ck_assert_int_eq(symlink("loop", path), 0);
    worker_reply reply = worker_compile(&worker, &ask);
    ck_assert_msg(reply.status == HDRT_CC_STATUS_OK, "%s", worker_print(&reply));
    ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, "\ntext of a\n"));
    snprintf(path, sizeof path, "%s/sub/a.h", folder);
    ck_assert(worker_lists(&reply, HDRT_CC_DEPENDENCY, path));
    ck_assert(worker_lists(&reply, HDRT_CC_DEPENDENCY, threaded));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_DEPENDENCY), 2);
    ck_assert(worker_lists(&reply, HDRT_CC_ABSENT, "/nonexistent/x"));
    strcat(path, "/b"); /* below a file: ENOTDIR */
    ck_assert(worker_lists(&reply, HDRT_CC_ABSENT, path));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_ABSENT), 3);
    ck_assert(worker_says(&reply, HDRT_CC_NO_STORE, "fifo' is a named pipe"));
    ck_assert(worker_says(&reply, HDRT_CC_NO_STORE, "sub' is a folder"));
    ck_assert(worker_says(&reply, HDRT_CC_NO_STORE, "loop' could not be looked at: Too many levels"));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_NO_STORE), 3);
    worker_reply_free(&reply);
    worker_stop(&worker);
    free(fifo);
    free(threaded);
    free(library);
}
END_TEST

START_TEST(every_call_is_recorded)
{
    static const char *const calls[] = {"open",    "open64",  "openat",    "openat64", "fopen",     "fopen64",
                                        "access",  "stat",    "lstat",     "fstatat",  "stat64",    "lstat64",
                                        "fstatat64", "__xstat", "__xstat64", "__lxstat", "__lxstat64", "faccessat",
                                        "statx",   "__open_2", "__open64_2"};
    const size_t count = sizeof calls / sizeof *calls;
    char *library = fake_nvrtc("fake_nvrtc"), source[4096], path[4096], line[64];
    worker_process worker = worker_start();
    worker_ask ask = ask_nvrtc(library, source);
    snprintf(source, sizeof source, "calls %s", folder);
    worker_reply reply = worker_compile(&worker, &ask);
    ck_assert_msg(reply.status == HDRT_CC_STATUS_OK, "%s", worker_print(&reply));
    for (size_t i = 0; i < count; i++) { /* nothing there */
        snprintf(path, sizeof path, "%s/%s", folder, calls[i]);
        snprintf(line, sizeof line, "\n%s no\n", calls[i]);
        ck_assert_msg(worker_lists(&reply, HDRT_CC_ABSENT, path), "%s", calls[i]);
        ck_assert_msg(worker_says(&reply, HDRT_CC_CODE_PTX, line), "%s", calls[i]);
    }
    ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, "written yes\nwritten yes\n"));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_ABSENT), count);
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_DEPENDENCY), 0);
    worker_reply_free(&reply);
    for (size_t i = 0; i < count; i++)
        free(folder_write(folder, calls[i], calls[i]));
    nap(20);
    reply = worker_compile(&worker, &ask);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, calls[i]);
        snprintf(line, sizeof line, "\n%s yes\n", calls[i]);
        ck_assert_msg(worker_lists(&reply, HDRT_CC_DEPENDENCY, path), "%s", calls[i]);
        ck_assert_msg(worker_says(&reply, HDRT_CC_CODE_PTX, line), "%s", calls[i]);
        ck_assert_int_eq(remove(path), 0);
        ck_assert_int_eq(mkfifo(path, 0666), 0);
    }
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_DEPENDENCY), count);
    worker_reply_free(&reply);
    reply = worker_compile(&worker, &ask); /* named pipes now: none is opened, each is said not to be there */
    for (size_t i = 0; i < count; i++) {
        snprintf(line, sizeof line, "\n%s no\n", calls[i]);
        ck_assert_msg(worker_says(&reply, HDRT_CC_CODE_PTX, line), "%s", calls[i]);
    }
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_DIAGNOSTIC), count);
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_NO_STORE), 8); /* the first few reasons */
    worker_reply_free(&reply);
    worker_stop(&worker);
    free(library);
}
END_TEST

/* Sockets closed at any moment of a compile: never anything left running. */
START_TEST(sockets_closed_at_random)
{
    unsigned seed = 11;
    char *script = folder_script(folder, "slow", "echo $$ >> started; exec sleep 60");
    for (int i = 0; i < 25; i++) {
        worker_process worker = worker_start();
        worker_ask ask = worker_ask_clang(script, "");
        ask.directory = folder;
        worker_send(&worker, &ask);
        nap(rand_r(&seed) % 30);
        worker_stop(&worker);
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/started", folder);
    FILE *file = fopen(path, "re");
    int pid;
    while (file != NULL && fscanf(file, "%d", &pid) == 1)
        ck_assert(dies(pid));
    if (file != NULL)
        fclose(file);
    free(script);
}
END_TEST

/* The library is replaced while a worker has it loaded: that worker must not compile with the old one any more. */
START_TEST(nvrtc_that_is_replaced)
{
    char *library = fake_nvrtc("fake_nvrtc"), command[8192];
    snprintf(command, sizeof command, "cp '%s' '%s/libnvrtc.so'", library, folder);
    ck_assert_int_eq(system(command), 0);
    snprintf(command, sizeof command, "%s/libnvrtc.so", folder);
    worker_process worker = worker_start();
    worker_ask ask = ask_nvrtc(command, "nothing");
    worker_reply reply = worker_compile(&worker, &ask);
    ck_assert_msg(reply.status == HDRT_CC_STATUS_OK && reply.arrived, "%s", worker_print(&reply));
    worker_reply_free(&reply);
    char replace[8192];
    snprintf(replace, sizeof replace, "cp '%s' '%s/new' && mv '%s/new' '%s/libnvrtc.so'", library, folder, folder,
             folder);
    ck_assert_int_eq(system(replace), 0);
    reply = worker_compile(&worker, &ask);
    ck_assert(!reply.arrived);
    ck_assert_int_eq(worker_wait(&worker, 5000), 0);
    close(worker.socket);
    free(library);
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

int main(void)
{
    Suite *suite = suite_create("worker");
    TCase *tests = tcase_create("worker");
    tcase_set_timeout(tests, 90);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, stand_in_compilers, 0, COUNT(stand_ins));
    tcase_add_test(tests, no_compiler_there);
    tcase_add_test(tests, time_limit);
    tcase_add_test(tests, compiler_that_floods_its_errors);
    tcase_add_test(tests, compiler_that_leaves_a_child);
    tcase_add_test(tests, memory_limit);
    tcase_add_test(tests, memory_limit_is_named);
    tcase_add_test(tests, endless_output);
    tcase_add_test(tests, surroundings_of_the_compiler);
    tcase_add_test(tests, surroundings_of_the_worker);
    tcase_add_test(tests, closed_socket_in_a_compile);
    tcase_add_test(tests, killed_worker_takes_its_compiler_along);
    tcase_add_test(tests, half_a_message);
    tcase_add_loop_test(tests, malformed_headers, 0, COUNT(bad_headers));
    tcase_add_test(tests, mutated_requests);
    tcase_add_test(tests, source_with_a_nul);
    tcase_add_test(tests, command_line);
    tcase_add_loop_test(tests, nvrtc_that_misbehaves, 0, COUNT(misdeeds));
    tcase_add_test(tests, what_nvrtc_is_given);
    tcase_add_test(tests, what_nvrtc_reads);
    tcase_add_test(tests, every_call_is_recorded);
    tcase_add_test(tests, sockets_closed_at_random);
    tcase_add_test(tests, nvrtc_that_is_replaced);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
