/* SPDX-License-Identifier: MIT */
#include "worker_client.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A reply is waited for no longer than this; the worker's own limits are below. */
#define PATIENCE_MS 60000

const char *build_folder(void)
{
    const char *folder = getenv("abs_top_builddir");
    static char here[4096];
    return folder != NULL ? folder : getcwd(here, sizeof here);
}

static void in_build_folder(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/%s", build_folder(), name);
}

worker_process worker_start(void)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    char program[4096], option[32];
    in_build_folder(program, sizeof program, "hdrt-cc");
    snprintf(option, sizeof option, "--fd=%d", ends[1]);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        close(ends[0]);
        execl(program, "hdrt-cc", option, (char *)NULL);
        _exit(99);
    }
    close(ends[1]);
    return (worker_process){ends[0], pid};
}

int worker_wait(const worker_process *worker, int milliseconds)
{
    int status;
    for (int waited = 0; waited <= milliseconds; waited += 5) {
        if (waitpid(worker->pid, &status, WNOHANG) == worker->pid)
            return status;
        struct timespec nap = {0, 5000000};
        nanosleep(&nap, NULL);
    }
    return -1;
}

int worker_stop(worker_process *worker)
{
    close(worker->socket);
    int status = worker_wait(worker, 10000);
    if (status == -1) {
        kill(worker->pid, SIGKILL);
        waitpid(worker->pid, NULL, 0);
    }
    ck_assert_msg(status != -1, "the worker did not end with its socket");
    return status;
}

worker_ask worker_ask_clang(const char *clang, const char *source)
{
    return (worker_ask){
        .back_end = HDRT_CC_CLANG, .kind = HDRT_CC_PTX, .lower = 1, .time_limit_ms = 30000, .compiler = clang,
        .name = "k.cu", .directory = "/tmp", .arch = "sm_80", .source = source,
    };
}

static void add_number(hdrt__cc_buffer *payload, uint32_t tag, uint64_t number, size_t size)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(number >> (8 * i));
    hdrt__cc_buffer_field(payload, tag, bytes, size);
}

static void add_text(hdrt__cc_buffer *payload, uint32_t tag, const char *text)
{
    if (text != NULL)
        hdrt__cc_buffer_field(payload, tag, text, strlen(text));
}

void worker_send_payload(const worker_process *worker, const hdrt__cc_buffer *payload)
{
    hdrt__cc_buffer message = {0};
    hdrt__cc_buffer_u32(&message, HDRT_CC_MAGIC);
    hdrt__cc_buffer_u32(&message, HDRT_CC_VERSION);
    hdrt__cc_buffer_u32(&message, HDRT_CC_REQUEST_COMPILE);
    hdrt__cc_buffer_u32(&message, 0);
    hdrt__cc_buffer_u64(&message, payload->size);
    hdrt__cc_buffer_append(&message, payload->bytes, payload->size);
    ck_assert(!message.failed);
    for (size_t at = 0; at < message.size;) {
        ssize_t sent = send(worker->socket, message.bytes + at, message.size - at, MSG_NOSIGNAL);
        ck_assert_int_gt(sent, 0);
        at += (size_t)sent;
    }
    hdrt__cc_buffer_free(&message);
}

void worker_send(const worker_process *worker, const worker_ask *ask)
{
    char prelude[4096], recorder[4096];
    in_build_folder(prelude, sizeof prelude, "kernels/include");
    in_build_folder(recorder, sizeof recorder, ".libs/libhdrt-record.so");
    hdrt__cc_buffer payload = {0};
    add_number(&payload, HDRT_CC_BACK_END, ask->back_end, 4);
    add_number(&payload, HDRT_CC_KIND, ask->kind, 4);
    add_number(&payload, HDRT_CC_ARCH_LOWER, ask->lower, 4);
    add_number(&payload, HDRT_CC_TIME_LIMIT, ask->time_limit_ms, 4);
    add_number(&payload, HDRT_CC_MEMORY_LIMIT, ask->memory_limit, 8);
    add_text(&payload, HDRT_CC_COMPILER_PATH, ask->compiler);
    add_text(&payload, HDRT_CC_BUILTINS_PATH, ask->builtins);
    add_text(&payload, HDRT_CC_NAME, ask->name);
    add_text(&payload, HDRT_CC_DIRECTORY, ask->directory);
    add_text(&payload, HDRT_CC_ARCH, ask->arch);
    add_text(&payload, HDRT_CC_LIBDEVICE, ask->libdevice);
    add_text(&payload, HDRT_CC_RANDOM_SEED, "0123456789abcdef");
    if (ask->back_end == HDRT_CC_CLANG) {
        add_text(&payload, HDRT_CC_PRELUDE, ask->prelude != NULL ? ask->prelude : prelude);
        add_text(&payload, HDRT_CC_RECORDER, ask->recorder != NULL ? ask->recorder : recorder);
    }
    for (size_t i = 0; i < sizeof ask->options / sizeof *ask->options; i++)
        add_text(&payload, HDRT_CC_OPTION, ask->options[i]);
    hdrt__cc_buffer_field(&payload, HDRT_CC_SOURCE, ask->source,
                          ask->source_size > 0 ? ask->source_size : strlen(ask->source));
    worker_send_payload(worker, &payload);
    hdrt__cc_buffer_free(&payload);
}

/* false: end of file before the first byte. */
static bool receive(int socket, unsigned char *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        struct pollfd fd = {socket, POLLIN, 0};
        ck_assert_msg(poll(&fd, 1, PATIENCE_MS) > 0, "no reply within %d ms", PATIENCE_MS);
        ssize_t got = recv(socket, bytes + at, size - at, 0);
        if (got <= 0) {
            ck_assert_msg(at == 0, "half a reply");
            return false;
        }
        at += (size_t)got;
    }
    return true;
}

worker_reply worker_receive(const worker_process *worker)
{
    worker_reply reply = {0};
    unsigned char header[HDRT_CC_HEADER_SIZE];
    if (!receive(worker->socket, header, sizeof header))
        return reply;
    ck_assert_uint_eq(hdrt__cc_read_u32(header), HDRT_CC_MAGIC);
    ck_assert_uint_eq(hdrt__cc_read_u32(header + 4), HDRT_CC_VERSION);
    ck_assert_uint_eq(hdrt__cc_read_u32(header + 8), HDRT_CC_REPLY_COMPILE);
    ck_assert_uint_eq(hdrt__cc_read_u32(header + 12), 0);
    reply.size = (size_t)hdrt__cc_read_u64(header + 16);
    reply.payload = malloc(reply.size + 1);
    ck_assert_ptr_nonnull(reply.payload);
    ck_assert(receive(worker->socket, reply.payload, reply.size));
    size_t size;
    char *status = worker_text(&reply, HDRT_CC_STATUS, 0, &size);
    ck_assert_ptr_nonnull(status);
    ck_assert_uint_eq(size, 4);
    reply.status = hdrt__cc_read_u32((unsigned char *)status);
    free(status);
    reply.arrived = true;
    return reply;
}

worker_reply worker_compile(const worker_process *worker, const worker_ask *ask)
{
    worker_send(worker, ask);
    return worker_receive(worker);
}

void worker_reply_free(worker_reply *reply)
{
    free(reply->payload);
    *reply = (worker_reply){0};
}

char *worker_text(const worker_reply *reply, uint32_t tag, size_t index, size_t *out_size)
{
    size_t at = 0;
    bool malformed = false;
    hdrt__cc_field field;
    while (hdrt__cc_next_field(reply->payload, reply->size, &at, &field, &malformed))
        if (field.tag == tag && index-- == 0) {
            char *text = malloc(field.size + 1);
            ck_assert_ptr_nonnull(text);
            memcpy(text, field.bytes, field.size);
            text[field.size] = '\0';
            if (out_size != NULL)
                *out_size = field.size;
            return text;
        }
    ck_assert(!malformed);
    return NULL;
}

size_t worker_count(const worker_reply *reply, uint32_t tag)
{
    size_t at = 0, count = 0;
    bool malformed = false;
    hdrt__cc_field field;
    while (hdrt__cc_next_field(reply->payload, reply->size, &at, &field, &malformed))
        count += field.tag == tag;
    ck_assert(!malformed);
    return count;
}

bool worker_says(const worker_reply *reply, uint32_t tag, const char *text)
{
    char *field;
    bool found = false;
    for (size_t i = 0; !found && (field = worker_text(reply, tag, i, NULL)) != NULL; i++) {
        found = strstr(field, text) != NULL;
        free(field);
    }
    return found;
}

bool worker_lists(const worker_reply *reply, uint32_t tag, const char *text)
{
    char *field;
    bool found = false;
    for (size_t i = 0; !found && (field = worker_text(reply, tag, i, NULL)) != NULL; i++) {
        found = strcmp(tag == HDRT_CC_DEPENDENCY ? field + 72 : field, text) == 0;
        free(field);
    }
    return found;
}

bool worker_diagnoses(const worker_reply *reply, const char *file, uint32_t line, uint32_t column, uint32_t severity,
                      const char *text)
{
    char *field;
    size_t size;
    bool found = false;
    for (size_t i = 0; !found && (field = worker_text(reply, HDRT_CC_DIAGNOSTIC, i, &size)) != NULL; i++) {
        const unsigned char *bytes = (unsigned char *)field;
        ck_assert_uint_ge(size, 16);
        size_t length = hdrt__cc_read_u32(bytes + 12);
        ck_assert_uint_le(length, size - 16);
        found = hdrt__cc_read_u32(bytes) == line && hdrt__cc_read_u32(bytes + 4) == column &&
                hdrt__cc_read_u32(bytes + 8) == severity && length == strlen(file) &&
                memcmp(field + 16, file, length) == 0 &&
                strncmp(field + 16 + length, text, strlen(text)) == 0;
        free(field);
    }
    return found;
}

const char *worker_print(const worker_reply *reply)
{
    static char text[4000]; /* Check takes no more */
    size_t at = 0, used = (size_t)snprintf(text, sizeof text, "status %u;", reply->status);
    bool malformed = false;
    hdrt__cc_field field;
    while (reply->arrived && hdrt__cc_next_field(reply->payload, reply->size, &at, &field, &malformed)) {
        bool code = field.tag == HDRT_CC_CODE_PTX || field.tag == HDRT_CC_CODE_CUBIN || field.tag == HDRT_CC_STATUS;
        size_t skip = field.tag == HDRT_CC_DEPENDENCY ? 72 : field.tag == HDRT_CC_DIAGNOSTIC ? 16 : 0;
        if (!code && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, " %u: %.*s;", field.tag, (int)(field.size - skip),
                                     (const char *)field.bytes + skip);
    }
    return reply->arrived ? text : "end of file";
}

bool process_lives(pid_t pid)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    bool known = fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
    fclose(file);
    return known && state != 'Z' && state != 'X';
}

char *folder_make(void)
{
    const char *base = getenv("TMPDIR");
    char *path = NULL;
    ck_assert_int_gt(asprintf(&path, "%s/hdrt-worker-test-XXXXXX", base != NULL ? base : "/tmp"), 0);
    ck_assert_ptr_nonnull(mkdtemp(path));
    char *real = realpath(path, NULL);
    ck_assert_ptr_nonnull(real);
    free(path);
    return real;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status, (void)kind, (void)at;
    return remove(path);
}

void folder_remove(char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(path);
}

char *folder_write(const char *folder, const char *name, const char *text)
{
    char *path = NULL;
    ck_assert_int_gt(asprintf(&path, "%s/%s", folder, name), 0);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        ck_assert(mkdir(path, 0777) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

char *folder_script(const char *folder, const char *name, const char *text)
{
    char *whole = NULL;
    ck_assert_int_gt(asprintf(&whole, "#!/bin/sh\n%s", text), 0);
    char *path = folder_write(folder, name, whole);
    free(whole);
    ck_assert_int_eq(chmod(path, 0755), 0);
    return path;
}

char *find_program(const char *name)
{
    const char *path = getenv("PATH");
    for (const char *at = path != NULL ? path : "/usr/bin:/bin"; *at != '\0';) {
        size_t length = strcspn(at, ":");
        char *program = NULL;
        if (asprintf(&program, "%.*s/%s", (int)length, at, name) < 0)
            return NULL;
        if (program[0] == '/' && access(program, X_OK) == 0)
            return program;
        free(program);
        at += length + (at[length] == ':');
    }
    return NULL;
}
