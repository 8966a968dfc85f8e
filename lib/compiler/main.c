/* SPDX-License-Identifier: MIT */
/*
 * hdrt-cc, the compile worker: compilers run here, so that what they do to a process (signal handlers, aborts, hangs,
 * hidden driver initialisation) is not done to the application's. See protocol.h for what is said on the socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sodium.h>

#include "compiler/child.h"
#include "compiler/clang.h"
#include "compiler/job.h"
#include "compiler/nvjitlink.h"
#include "compiler/nvrtc.h"
#include "compiler/protocol.h"
#include "compiler/watchdog.h"
#include "config.h"

/* Compilers recurse with the source; a caller's small stack limit is none of the source's business. */
#define STACK_BYTES (64u << 20)
/* The payload is read in steps, so that a length alone allocates nothing. */
#define READ_STEP 65536u

typedef struct worker {
    int socket;
    hdrt__cc_clang_state clang;
    hdrt__cc_nvrtc_state *nvrtc;
    hdrt__cc_nvjitlink_state *nvjitlink;
} worker;

/* -- getting out of sight ------------------------------------------------------------------------------------------ */

/* The dispositions and the mask of whoever started us mean nothing here. */
static void reset_signals(void)
{
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN); /* a source beyond the file size limit is then a failed write, with a message */
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void close_all_from(int first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)first, ~0u, 0u) == 0)
        return;
#endif
    struct rlimit limits;
    long last = getrlimit(RLIMIT_NOFILE, &limits) == 0 && limits.rlim_cur < 65536 ? (long)limits.rlim_cur : 65536;
    for (long fd = first; fd < last; fd++)
        close((int)fd);
}

/*
 * The socket to a high number, /dev/null at all low ones, everything else closed. The low ones are kept occupied so
 * that what is handed to a child never lies where it is to be copied to (child.c).
 */
static int keep_only(int fd)
{
    int null = open("/dev/null", O_RDWR); /* not close-on-exec: it may itself be one of the low ones */
    int socket = fcntl(fd, F_DUPFD_CLOEXEC, HDRT__CC_FIRST_FREE_FD);
    if (null < 0 || socket < 0)
        return -1;
    if (socket != HDRT__CC_FIRST_FREE_FD && dup3(socket, HDRT__CC_FIRST_FREE_FD, O_CLOEXEC) < 0)
        return -1;
    for (int low = 0; low < HDRT__CC_FIRST_FREE_FD; low++)
        if (null != low && dup2(null, low) < 0)
            return -1;
    close_all_from(HDRT__CC_FIRST_FREE_FD + 1);
    return HDRT__CC_FIRST_FREE_FD;
}

/*
 * No core files of a compiler's abort; the application's limit on files is not meant for memory objects, which count as
 * such; enough stack for deep sources.
 */
static void set_limits(void)
{
    struct rlimit limits = {0, 0};
    setrlimit(RLIMIT_CORE, &limits);
    if (getrlimit(RLIMIT_FSIZE, &limits) == 0) {
        limits.rlim_cur = limits.rlim_max;
        setrlimit(RLIMIT_FSIZE, &limits);
    }
    if (getrlimit(RLIMIT_STACK, &limits) == 0 && limits.rlim_cur != RLIM_INFINITY && limits.rlim_cur < STACK_BYTES) {
        limits.rlim_cur = limits.rlim_max == RLIM_INFINITY || limits.rlim_max > STACK_BYTES ? STACK_BYTES
                                                                                             : limits.rlim_max;
        setrlimit(RLIMIT_STACK, &limits);
    }
}

/* Compilers read a dozen variables of their own, and none of them is in the key of the cache. */
static int scrub_environment(void)
{
    if (clearenv() != 0)
        return -1;
    return setenv("LC_ALL", "C", 1) != 0 || setenv("CUDA_CACHE_DISABLE", "1", 1) != 0 ? -1 : 0;
}

/* The socket's new number, -1 if something essential failed; errno then says what. */
static int get_out_of_sight(int fd)
{
    setsid(); /* fails if we lead one already, which is as good */
    reset_signals();
    int socket = keep_only(fd);
    if (socket < 0 || chdir("/") != 0 || scrub_environment() != 0)
        return -1;
    umask(077);
    set_limits();
    return socket;
}

/* -- requests ------------------------------------------------------------------------------------------------------ */

/* Read exactly `size` bytes. false: the client is gone, silent for too long, or memory ran out (buffer->failed). */
static bool receive(int socket, hdrt__cc_buffer *buffer, size_t size)
{
    unsigned char bytes[READ_STEP];
    while (size > 0) {
        struct pollfd fd = {socket, POLLIN, 0};
        int ready = poll(&fd, 1, HDRT_CC_IDLE_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        ssize_t got = recv(socket, bytes, size < sizeof bytes ? size : sizeof bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        hdrt__cc_buffer_append(buffer, bytes, (size_t)got);
        if (buffer->failed)
            return false;
        size -= (size_t)got;
    }
    return true;
}

static bool send_reply(int socket, hdrt__cc_reply *reply)
{
    hdrt__cc_buffer message = {0};
    hdrt__cc_reply_finish(reply, &message);
    if (message.failed) { /* say so in a reply that takes next to nothing */
        hdrt__cc_reply poor = {0};
        hdrt__cc_buffer_free(&message);
        hdrt__cc_reply_fail(&poor, HDRT_CC_STATUS_MEMORY, "out of memory while answering");
        hdrt__cc_reply_finish(&poor, &message);
        hdrt__cc_reply_free(&poor);
    }
    bool sent = !message.failed && hdrt__cc_send(socket, message.bytes, message.size);
    hdrt__cc_buffer_free(&message);
    return sent;
}

/* A NUL ends the text for a compiler, which would then compile half a source, or none of UTF-16, without a word. */
static bool source_is_text(const hdrt__cc_request *request, hdrt__cc_reply *reply)
{
    const char *nul = memchr(request->source, '\0', request->source_size);
    if (nul == NULL)
        return true;
    static const char text[] = "the source has a NUL byte here; is it UTF-16, or no text at all?";
    uint32_t line = 1, column = 1;
    for (const char *at = request->source; at < nul; at++) {
        column = *at == '\n' ? 1 : column + 1;
        line += *at == '\n';
    }
    hdrt__cc_reply_diagnostic(reply, request->name, strlen(request->name), line, column, 3, text, strlen(text));
    hdrt__cc_buffer_format(&reply->log, "%s:%u:%u: error: %s\n", request->name, line, column, text);
    hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_COMPILE, "%s:%u:%u: %s", request->name, line, column, text);
    return false;
}

static bool answer(worker *self, const hdrt__cc_buffer *payload)
{
    hdrt__cc_reply reply = {0};
    hdrt__cc_request request;
    hdrt__cc_watchdog_busy(true);
    if (hdrt__cc_request_parse(&request, payload->bytes, payload->size, &reply) && source_is_text(&request, &reply)) {
#ifdef HDRT_SANITIZED
        request.memory_limit = 0; /* a sanitizer reserves terabytes of addresses */
#endif
        if (request.back_end == HDRT_CC_CLANG)
            hdrt__cc_compile_clang(&self->clang, &request, &reply);
        else if (request.back_end == HDRT_CC_NVJITLINK)
            hdrt__cc_link(&self->nvjitlink, self->socket, &request, &reply);
        else
            hdrt__cc_compile_nvrtc(&self->nvrtc, self->socket, &request, &reply);
    }
    /* An NVRTC that ran out of something is not used again: it leaves its data as they were at that moment. */
    bool worn_out = request.back_end != HDRT_CC_CLANG &&
                    (reply.status == HDRT_CC_STATUS_LIMIT || reply.status == HDRT_CC_STATUS_CRASHED ||
                     reply.status == HDRT_CC_STATUS_MEMORY);
    hdrt__cc_request_free(&request);
    bool sent = send_reply(self->socket, &reply);
    hdrt__cc_reply_free(&reply);
    hdrt__cc_watchdog_busy(false);
    return sent && !worn_out;
}

static void refuse(int socket, enum hdrt_cc_status status, const char *text)
{
    hdrt__cc_reply reply = {0};
    hdrt__cc_reply_fail(&reply, status, "%s", text);
    send_reply(socket, &reply);
    hdrt__cc_reply_free(&reply);
}

/* One request. false: there will be no more, because the client is gone or what it says cannot be told apart. */
static bool serve_one(worker *self)
{
    hdrt__cc_buffer header = {0}, payload = {0};
    bool more = false;
    if (!receive(self->socket, &header, HDRT_CC_HEADER_SIZE))
        goto free_buffers;
    uint32_t version = hdrt__cc_read_u32(header.bytes + 4);
    uint64_t length = hdrt__cc_read_u64(header.bytes + 16);
    if (hdrt__cc_read_u32(header.bytes) != HDRT_CC_MAGIC)
        refuse(self->socket, HDRT_CC_STATUS_PROTOCOL, "this is no request to hdrt-cc");
    else if (version != HDRT_CC_VERSION)
        refuse(self->socket, HDRT_CC_STATUS_PROTOCOL, "hdrt-cc is of another version than the library that asks");
    else if (hdrt__cc_read_u32(header.bytes + 8) != HDRT_CC_REQUEST_COMPILE ||
             hdrt__cc_read_u32(header.bytes + 12) != 0)
        refuse(self->socket, HDRT_CC_STATUS_PROTOCOL, "a request of an unknown type");
    else if (length > HDRT_CC_MESSAGE_LIMIT)
        refuse(self->socket, HDRT_CC_STATUS_PROTOCOL, "a request that is too long");
    else if (receive(self->socket, &payload, (size_t)length))
        more = answer(self, &payload);
    else if (payload.failed)
        refuse(self->socket, HDRT_CC_STATUS_MEMORY, "out of memory while receiving the request");

free_buffers:
    hdrt__cc_buffer_free(&payload);
    hdrt__cc_buffer_free(&header);
    return more;
}

/* -- the command line ---------------------------------------------------------------------------------------------- */

static void print_help(FILE *stream)
{
    fputs("Usage: hdrt-cc --fd=N\n"
          "The compile worker of libhdrt: compiles for the program at the other end of the stream\n"
          "socket N. libhdrt starts it when it needs it; there is nothing to use it for by hand.\n"
          "\n"
          "      --fd=N     the socket's descriptor number\n"
          "      --help     print this help and exit\n"
          "      --version  print the version and exit\n",
          stream);
}

static bool is_stream_socket(int fd)
{
    int type = 0;
    socklen_t size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

/* The descriptor, or -1 after help and version, or -2 for a wrong command line. */
static int parse_command_line(int argc, char **argv)
{
    static const struct option options[] = {
        {"fd", required_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {0},
    };
    int fd = -2, option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (option) {
        case 'f': {
            char *end;
            long number = strtol(optarg, &end, 10);
            fd = *optarg == '\0' || *end != '\0' || number < 0 || number > 1 << 20 ? -2 : (int)number;
            break;
        }
        case 'h': print_help(stdout); return -1;
        case 'v': puts("hdrt-cc (" PACKAGE_NAME ") " PACKAGE_VERSION); return -1;
        default: return -2;
        }
    return optind == argc && fd >= 0 && is_stream_socket(fd) ? fd : -2;
}

int main(int argc, char **argv)
{
    int fd = parse_command_line(argc, argv);
    if (fd == -1)
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    if (fd < 0) {
        fputs("hdrt-cc is started by libhdrt, with --fd=N for a stream socket N; try 'hdrt-cc --help'\n", stderr);
        return 2;
    }
    worker self = {.socket = get_out_of_sight(fd)};
    if (self.socket < 0 || sodium_init() < 0 || hdrt__cc_watchdog_start(self.socket) != 0)
        return EXIT_FAILURE;
    while (serve_one(&self))
        continue;
    hdrt__cc_clang_state_free(&self.clang);
    hdrt__cc_nvjitlink_state_free(self.nvjitlink);
    hdrt__cc_nvrtc_state_free(self.nvrtc);
    return EXIT_SUCCESS;
}
