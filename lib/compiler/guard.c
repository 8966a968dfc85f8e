/* SPDX-License-Identifier: MIT */
#include "compiler/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compiler/watchdog.h"
#include "config.h"

/* Indices of prepared replies. */
enum { OUT_OF_MEMORY, ABORTED, BAD_ACCESS, OTHER_SIGNAL, TIME_IS_UP };

/* What the signal handler needs; a handler has no other way to get at it. */
static struct {
    int socket, said;
    bool limited;
    const hdrt__cc_buffer *replies;
} dying;

#ifndef HDRT_SANITIZED
/* The last that the compiler printed before it died. Async-signal-safe, as all that follows. */
static char last_words[8192];

static ssize_t read_last_words(void)
{
    off_t end = lseek(dying.said, 0, SEEK_END);
    return pread(dying.said, last_words, sizeof last_words,
                 end > (off_t)sizeof last_words ? end - (off_t)sizeof last_words : 0);
}

/* Do they speak of memory? */
static bool speaks_of_memory(ssize_t size)
{
    static const char *const words[] = {"out of memory", "Out of memory", "bad_alloc", "annot allocate"};
    const char *text = last_words;
    for (ssize_t at = 0; at < size; at++)
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            size_t length = strlen(words[i]);
            if ((size_t)(size - at) >= length && memcmp(text + at, words[i], length) == 0)
                return true;
        }
    return false;
}

/* An allocation that failed is often not checked: then it is an invalid access, with no memory to be had. */
static bool has_no_memory(void)
{
    if (!dying.limited)
        return false;
    void *probe = mmap(NULL, 16u << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return probe == MAP_FAILED;
}

static void write_number(unsigned char *at, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(number >> (8 * i));
}

/* The prepared reply with the last words as one more field: its length stands at the end of the header. */
static void send_reply(const hdrt__cc_buffer *reply, ssize_t size)
{
    unsigned char header[HDRT_CC_HEADER_SIZE], field[12];
    memcpy(header, reply->bytes, sizeof header);
    uint64_t length = reply->size - sizeof header;
    if (size > 0)
        write_number(header + sizeof header - 8, length + sizeof field + (uint64_t)size, 8);
    hdrt__cc_send(dying.socket, header, sizeof header);
    hdrt__cc_send(dying.socket, reply->bytes + sizeof header, (size_t)length);
    if (size <= 0)
        return;
    write_number(field, HDRT_CC_LOG, 4);
    write_number(field + 4, (uint64_t)size, 8);
    hdrt__cc_send(dying.socket, field, sizeof field);
    for (ssize_t i = 0; i < size; i++)
        if (last_words[i] == '\0') /* texts have none */
            last_words[i] = ' ';
    hdrt__cc_send(dying.socket, (const unsigned char *)last_words, (size_t)size);
}

static void die(int number)
{
    ssize_t size = read_last_words();
    int which = number == SIGABRT ? ABORTED : number == SIGSEGV || number == SIGBUS ? BAD_ACCESS : OTHER_SIGNAL;
    if (number == SIGXCPU)
        which = TIME_IS_UP;
    else if (speaks_of_memory(size) || has_no_memory())
        which = OUT_OF_MEMORY;
    send_reply(&dying.replies[which], size);
    _exit(1);
}

static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGXCPU};
#endif

/* A sanitizer needs these signals itself. */
static void set_handlers(bool ours)
{
#ifndef HDRT_SANITIZED
    static char stack[65536];
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack, .ss_flags = ours ? 0 : SS_DISABLE};
    sigaltstack(&alternative, NULL);
    struct sigaction action = {.sa_flags = SA_ONSTACK | SA_RESETHAND | SA_NODEFER};
    action.sa_handler = ours ? die : SIG_DFL;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        sigaction(deadly[i], &action, NULL);
#endif
}

static void prepare(hdrt__cc_guard *guard, const hdrt__cc_request *request)
{
    static const char *const how[] = {
        [ABORTED] = "it aborted",
        [BAD_ACCESS] = "an invalid memory access, or a stack overflow by too deep nesting",
        [OTHER_SIGNAL] = "by a signal",
    };
    for (int i = 0; i < HDRT__CC_GUARD_REPLIES; i++) {
        hdrt__cc_reply reply = {0};
        if (i == TIME_IS_UP)
            hdrt__cc_reply_fail(&reply, HDRT_CC_STATUS_LIMIT, "'%s' did not finish within %u ms and was stopped",
                                request->compiler_path, request->time_limit_ms);
        else if (i == OUT_OF_MEMORY)
            hdrt__cc_reply_fail_by_memory(&reply, request);
        else
            hdrt__cc_reply_fail(&reply, HDRT_CC_STATUS_CRASHED, "'%s' crashed: %s", request->compiler_path, how[i]);
        hdrt__cc_reply_finish(&reply, &guard->replies[i]);
        hdrt__cc_reply_free(&reply);
    }
}

/* Only the soft limits: the hard ones could not be raised again. */
static void lower_limits(hdrt__cc_guard *guard, const hdrt__cc_request *request)
{
    getrlimit(RLIMIT_AS, &guard->address_space);
    getrlimit(RLIMIT_CPU, &guard->processor);
    struct rlimit limits = guard->address_space;
    if (request->memory_limit > 0 && request->memory_limit < limits.rlim_cur) {
        limits.rlim_cur = request->memory_limit;
        setrlimit(RLIMIT_AS, &limits);
    }
    /* A backstop for the deadline, should the watchdog not get to run: four processors for all of the time. */
    struct rusage usage;
    if (request->time_limit_ms > 0 && getrusage(RUSAGE_SELF, &usage) == 0) {
        limits = guard->processor;
        rlim_t seconds = (rlim_t)usage.ru_utime.tv_sec + (rlim_t)usage.ru_stime.tv_sec + 10 +
                         4 * (rlim_t)(request->time_limit_ms / 1000);
        if (seconds < limits.rlim_cur) {
            limits.rlim_cur = seconds;
            setrlimit(RLIMIT_CPU, &limits);
        }
    }
}

bool hdrt__cc_guard_begin(hdrt__cc_guard *guard, int socket, const hdrt__cc_request *request, hdrt__cc_reply *reply)
{
    *guard = (hdrt__cc_guard){.said = memfd_create("hdrt-said", MFD_CLOEXEC)};
    if (guard->said < 0 || dup2(guard->said, 2) < 0) {
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_IO, "no memory object for what the compiler says: %s",
                            strerror(errno));
        goto close_said;
    }
    prepare(guard, request);
    for (int i = 0; i < HDRT__CC_GUARD_REPLIES; i++)
        if (guard->replies[i].failed) {
            hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_MEMORY, "out of memory while preparing the compile");
            goto free_replies;
        }
    dying.socket = socket;
    dying.said = guard->said;
    dying.replies = guard->replies;
    dying.limited = request->memory_limit > 0;
    set_handlers(true);
    hdrt__cc_watchdog_arm(request->deadline_ns, guard->replies[TIME_IS_UP].bytes, guard->replies[TIME_IS_UP].size);
    lower_limits(guard, request);
    return true;

free_replies:
    for (int i = 0; i < HDRT__CC_GUARD_REPLIES; i++)
        hdrt__cc_buffer_free(&guard->replies[i]);
close_said:
    if (guard->said >= 0)
        close(guard->said);
    return false;
}

void hdrt__cc_guard_end(hdrt__cc_guard *guard, hdrt__cc_buffer *log)
{
    setrlimit(RLIMIT_AS, &guard->address_space);
    setrlimit(RLIMIT_CPU, &guard->processor);
    hdrt__cc_watchdog_disarm();
    set_handlers(false);
    dup2(0, 2); /* /dev/null again */
    char bytes[4096];
    ssize_t got;
    for (off_t at = 0; at < 1 << 20 && (got = pread(guard->said, bytes, sizeof bytes, at)) > 0; at += got)
        hdrt__cc_buffer_append(log, bytes, (size_t)got);
    close(guard->said);
    for (int i = 0; i < HDRT__CC_GUARD_REPLIES; i++)
        hdrt__cc_buffer_free(&guard->replies[i]);
}
