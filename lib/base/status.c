/* SPDX-License-Identifier: MIT */
#include "base/status.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A caller's struct may be newer than this library, but not by this much: beyond, its size was never set. */
#define PLAUSIBLE_GROWTH 4096

/*
 * Where a thread's message lives. The full-sized buffer comes from the heap at the thread's first failure; when that
 * is the very thing that failed, `reserve` takes a cut message. The initial-exec model matters when libhdrt itself was
 * loaded by dlopen: otherwise the first access allocates, and the C library ends the program when it cannot.
 */
#ifdef __GLIBC__
#define TLS_MODEL __attribute__((tls_model("initial-exec")))
#else
#define TLS_MODEL
#endif
typedef struct thread_message {
    char *text; /* NULL, or HDRT__MESSAGE_SIZE bytes */
    bool in_reserve;
    char reserve[176];
} thread_message;

static _Thread_local thread_message thread_last TLS_MODEL;

/* Frees a thread's buffer at its end. The loader's once and this are the library's only process-wide state. */
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

static void make_key(void)
{
    key_made = pthread_key_create(&key, free) == 0;
}

static char *full_buffer(void)
{
    if (thread_last.text)
        return thread_last.text;
    if (pthread_once(&key_once, make_key) != 0 || !key_made)
        return NULL;
    char *text = calloc(1, HDRT__MESSAGE_SIZE);
    if (!text)
        return NULL;
    if (pthread_setspecific(key, text) != 0) {
        free(text);
        return NULL;
    }
    return thread_last.text = text;
}

static void copy_cut(char *to, size_t capacity, const char *from)
{
    size_t length = strnlen(from, capacity);
    if (length < capacity) {
        memmove(to, from, length + 1);
        return;
    }
    memmove(to, from, capacity - 4);
    memcpy(to + capacity - 4, "...", 4);
}

static void keep(const char *message)
{
    char *text = full_buffer();
    thread_last.in_reserve = !text;
    if (text)
        copy_cut(text, HDRT__MESSAGE_SIZE, message);
    else
        copy_cut(thread_last.reserve, sizeof thread_last.reserve, message);
}

/* Formats into a buffer of its own first: the arguments may point into the message that is about to be replaced. */
static void format_cut(char *to, size_t capacity, const char *format, va_list arguments)
{
    int length = vsnprintf(to, capacity, format, arguments);
    if (length < 0)
        copy_cut(to, capacity, format);
    else if ((size_t)length >= capacity)
        memcpy(to + capacity - 4, "...", 4);
}

hdrt_status hdrt__fail(hdrt_status status, const char *format, ...)
{
    char message[HDRT__MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    format_cut(message, sizeof message, format, arguments);
    va_end(arguments);
    keep(message);
    return status;
}

hdrt_status hdrt__fail_with(hdrt_status status, const char *message)
{
    keep(message ? message : hdrt_status_text(status));
    return status;
}

void hdrt__fail_prefix(const char *format, ...)
{
    char message[HDRT__MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    format_cut(message, sizeof message, format, arguments);
    va_end(arguments);
    size_t length = strlen(message);
    const char *last = hdrt_last_error();
    if (length + 2 < sizeof message) {
        memcpy(message + length, ": ", 3);
        copy_cut(message + length + 2, sizeof message - length - 2, last);
    }
    keep(message);
}

hdrt_status hdrt__fail_memory(size_t bytes, const char *what)
{
    return hdrt__fail(HDRT_ERROR_OUT_OF_MEMORY, "out of host memory: %zu bytes for %s", bytes, what);
}

const char *hdrt_last_error(void)
{
    if (thread_last.in_reserve || !thread_last.text)
        return thread_last.reserve;
    return thread_last.text;
}

const char *hdrt_status_name(hdrt_status status)
{
    switch (status) {
#define NAME_CASE(name, number, text)                                                                                  \
    case name:                                                                                                         \
        return #name;
        HDRT_STATUS_LIST(NAME_CASE)
#undef NAME_CASE
    }
    return "HDRT_STATUS_?";
}

const char *hdrt_status_text(hdrt_status status)
{
    switch (status) {
#define TEXT_CASE(name, number, text)                                                                                  \
    case name:                                                                                                         \
        return text;
        HDRT_STATUS_LIST(TEXT_CASE)
#undef TEXT_CASE
    }
    return "unknown status";
}

/* Index of the first non-zero byte in [begin, end), `end` if there is none. */
static size_t first_nonzero(const unsigned char *bytes, size_t begin, size_t end)
{
    while (begin < end && !bytes[begin])
        begin++;
    return begin;
}

hdrt_status hdrt__options_read(const char *name, const void *given, void *known, size_t known_size,
                               size_t reserved_offset)
{
    memset(known, 0, known_size);
    memcpy(known, &known_size, sizeof known_size);
    if (!given)
        return HDRT_OK;

    size_t size;
    memcpy(&size, given, sizeof size);
    if (size < reserved_offset || size > known_size + PLAUSIBLE_GROWTH)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "%s: its size is %zu, expected %zu: initialise it with the ..._INIT macro", name, size,
                          known_size);
    size_t end = size < known_size ? size : known_size;
    size_t bad = first_nonzero(given, reserved_offset, end);
    if (bad < end)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "%s: the reserved byte at offset %zu is not zero: initialise it with the ..._INIT macro",
                          name, bad);
    bad = first_nonzero(given, end, size);
    if (bad < size)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "%s: a member at offset %zu is set that this library (%d.%d.%d) does not know", name, bad,
                          HDRT_VERSION_MAJOR, HDRT_VERSION_MINOR, HDRT_VERSION_PATCH);
    memcpy((unsigned char *)known + sizeof size, (const unsigned char *)given + sizeof size, end - sizeof size);
    return HDRT_OK;
}

hdrt_status hdrt__info_write(const char *name, void *given, const void *full, size_t full_size)
{
    if (!given)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: the pointer is NULL", name);
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size <= sizeof size || size > full_size + PLAUSIBLE_GROWTH)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "%s: its size is %zu, expected %zu: initialise it with the ..._INIT macro", name, size,
                          full_size);
    unsigned char *bytes = given;
    size_t end = size < full_size ? size : full_size;
    memcpy(bytes + sizeof size, (const unsigned char *)full + sizeof size, end - sizeof size);
    memset(bytes + end, 0, size - end);
    return HDRT_OK;
}
