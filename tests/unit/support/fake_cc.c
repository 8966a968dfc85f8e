/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for hdrt-cc that compiles nothing: it speaks compiler/protocol.h and makes PTX out of the source's digest,
 * so that tests of the cache can compile thousands of times and know every byte of the result. What it is to do stands
 * in the source, a line each:
 *
 *     //delay MILLISECONDS     before it answers
 *     //count PATH             one byte more in that file for each compile
 *     //read PATH              told as a file that was read, if it is there; its content goes into the code
 *     //absent PATH            told as looked for in vain, if it is not there; else as //read
 *     //crash                  ends instead of answering
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "compiler/protocol.h"
#include "fake_cc.h"

static unsigned char *reply;
static size_t reply_size;

static void put(uint32_t tag, const void *bytes, size_t size)
{
    uint64_t length = size;
    reply = realloc(reply, reply_size + 12 + size);
    if (!reply)
        _exit(3);
    memcpy(reply + reply_size, &tag, 4);
    memcpy(reply + reply_size + 4, &length, 8);
    if (size)
        memcpy(reply + reply_size + 12, bytes, size);
    reply_size += 12 + size;
}

static void put_u32(uint32_t tag, uint32_t value)
{
    put(tag, &value, sizeof value);
}

static void put_text(uint32_t tag, const char *text)
{
    put(tag, text, strlen(text));
}

static bool get(void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = read(3, (char *)bytes + done, size - done);
        if (got <= 0 && errno != EINTR)
            return false;
        done += got > 0 ? (size_t)got : 0;
        if (got == 0)
            return false;
    }
    return true;
}

static uint64_t nanoseconds(struct timespec time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* A file that was read: its stamp, digest and path; its bytes into the state. */
static bool put_file(crypto_generichash_state *state, const char *path)
{
    unsigned char payload[5 * 8 + 32 + 1024];
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) {
        if (file >= 0)
            close(file);
        return false;
    }
    char *bytes = malloc((size_t)status.st_size + 1);
    ssize_t size = bytes ? read(file, bytes, (size_t)status.st_size) : -1;
    close(file);
    if (size < 0)
        _exit(3);
    const uint64_t numbers[5] = {(uint64_t)status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim),
                                 status.st_dev, status.st_ino};
    memcpy(payload, numbers, sizeof numbers);
    crypto_generichash(payload + 40, 32, (unsigned char *)bytes, (size_t)size, NULL, 0);
    memcpy(payload + 72, path, strlen(path));
    put(HDRT_CC_DEPENDENCY, payload, 72 + strlen(path));
    crypto_generichash_update(state, (unsigned char *)bytes, (size_t)size);
    free(bytes);
    return true;
}

static void obey(const char *line, crypto_generichash_state *state)
{
    char path[1024];
    unsigned number;
    struct stat status;
    if (sscanf(line, "//delay %u", &number) == 1) {
        struct timespec pause = {number / 1000, (long)(number % 1000) * 1000000};
        nanosleep(&pause, NULL);
    } else if (sscanf(line, "//count %1023s", path) == 1) {
        int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0 || write(file, "x", 1) != 1)
            _exit(3);
        close(file);
    } else if (sscanf(line, "//read %1023s", path) == 1) {
        put_file(state, path);
    } else if (sscanf(line, "//absent %1023s", path) == 1) {
        if (stat(path, &status) != 0)
            put_text(HDRT_CC_ABSENT, path);
        else
            put_file(state, path);
    } else if (strncmp(line, "//crash", 7) == 0) {
        _exit(4);
    }
}

static void compile(const unsigned char *request, size_t size)
{
    const char *source = "", *arch = "sm_80";
    size_t source_size = 0, arch_size = 5;
    crypto_generichash_state state;
    unsigned char digest[32];
    crypto_generichash_init(&state, NULL, 0, sizeof digest);
    for (size_t at = 0; at + 12 <= size;) {
        uint32_t tag;
        uint64_t length;
        memcpy(&tag, request + at, 4);
        memcpy(&length, request + at + 4, 8);
        const char *value = (const char *)request + at + 12;
        if (tag == HDRT_CC_SOURCE) {
            source = value;
            source_size = length;
        } else if (tag == HDRT_CC_ARCH) {
            arch = value;
            arch_size = length;
        }
        /* All that a compiler's output depends on. */
        if (tag == HDRT_CC_SOURCE || tag == HDRT_CC_ARCH || tag == HDRT_CC_OPTION || tag == HDRT_CC_NAME)
            crypto_generichash_update(&state, (const unsigned char *)value, length);
        at += 12 + length;
    }
    char *text = strndup(source, source_size);
    for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        obey(line, &state);
    free(text);
    crypto_generichash_final(&state, digest, sizeof digest);
    size_t code_size;
    char *code = fake_code(digest, &code_size);
    put_u32(HDRT_CC_STATUS, HDRT_CC_STATUS_OK);
    put_text(HDRT_CC_LOG, "stand-in: compiled nothing");
    put(HDRT_CC_CODE_PTX, code, code_size);
    put(HDRT_CC_ARCH_USED, arch, arch_size);
    put_text(HDRT_CC_COMPILER_VERSION, "stand-in 1.0");
    free(code);
}

int main(void)
{
    struct header {
        uint32_t magic, version, type, zero;
        uint64_t length;
    } header;
    if (sodium_init() < 0)
        return 3;
    while (get(&header, sizeof header)) {
        unsigned char *request = malloc(header.length + 1);
        if (!request || header.magic != HDRT_CC_MAGIC || header.length > HDRT_CC_MESSAGE_LIMIT ||
            !get(request, header.length))
            return 3;
        reply_size = 0;
        compile(request, header.length);
        free(request);
        header = (struct header){HDRT_CC_MAGIC, HDRT_CC_VERSION, HDRT_CC_REPLY_COMPILE, 0, reply_size};
        if (write(3, &header, sizeof header) != sizeof header)
            return 0;
        for (size_t done = 0; done < reply_size;) {
            ssize_t wrote = write(3, reply + done, reply_size - done);
            if (wrote < 0 && errno != EINTR)
                return 0;
            done += wrote > 0 ? (size_t)wrote : 0;
        }
    }
    free(reply);
    return 0;
}
