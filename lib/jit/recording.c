/* SPDX-License-Identifier: MIT */
#include "jit/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/buffer.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/number.h"
#include "base/status.h"

struct seen {
    hdrt__digest key;
    UT_hash_handle hh;
};

struct hdrt__recording {
    char *path;           /* absolute: of the time when the jit was made */
    pthread_mutex_t lock; /* guards what follows */
    struct seen *seen;
    bool failed; /* and said so */
};

hdrt_status hdrt__recording_create(hdrt__recording **out_recording)
{
    const char *path = hdrt__environment(HDRT__ENV_RECORD);
    *out_recording = NULL;
    if (!path)
        return HDRT_OK;
    hdrt__recording *recording = calloc(1, sizeof(*recording));
    char *here = *path == '/' ? NULL : getcwd(NULL, 0);
    if (recording)
        recording->path = here ? hdrt__path_join(here, path) : strdup(path);
    free(here);
    if (!recording || !recording->path) {
        free(recording);
        return hdrt__fail_memory(strlen(path), "the record of compiles");
    }
    pthread_mutex_init(&recording->lock, NULL);
    *out_recording = recording;
    return HDRT_OK;
}

void hdrt__recording_destroy(hdrt__recording *recording)
{
    struct seen *seen, *next;
    if (!recording)
        return;
    HASH_ITER(hh, recording->seen, seen, next)
    {
        HASH_DEL(recording->seen, seen);
        free(seen);
    }
    pthread_mutex_destroy(&recording->lock);
    free(recording->path);
    free(recording);
}

/* How many bytes the UTF-8 character at `at` has; 0: it is none. */
static size_t utf8_length(const unsigned char *at, size_t left)
{
    size_t length = *at < 0x80 ? 1 : *at >= 0xc2 && *at < 0xe0 ? 2 : *at >= 0xe0 && *at < 0xf0 ? 3
                    : *at >= 0xf0 && *at < 0xf5 ? 4 : 0;
    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf0 && at[1] < 0x90) ||
        (at[0] == 0xf4 && at[1] > 0x8f))
        return 0;
    return length;
}

static bool is_utf8(const char *text, size_t size)
{
    for (size_t at = 0, length; at < size; at += length)
        if ((length = utf8_length((const unsigned char *)text + at, size - at)) == 0)
            return false;
    return true;
}

static void put_string(hdrt__buffer *line, const char *text, size_t size)
{
    hdrt__buffer_text(line, "\"");
    for (size_t at = 0, plain; at < size; at += plain) {
        plain = 0;
        while (at + plain < size && (unsigned char)text[at + plain] >= 0x20 && text[at + plain] != '"' &&
               text[at + plain] != '\\')
            plain++;
        hdrt__buffer_append(line, text + at, plain);
        if (plain == 0) {
            char c = text[at];
            if (c == '"' || c == '\\')
                hdrt__buffer_format(line, "\\%c", c);
            else if (c == '\n')
                hdrt__buffer_text(line, "\\n");
            else
                hdrt__buffer_format(line, "\\u%04x", (unsigned char)c);
            plain = 1;
        }
    }
    hdrt__buffer_text(line, "\"");
}

static void put_member(hdrt__buffer *line, const char *name, const char *text)
{
    if (!text)
        return;
    hdrt__buffer_format(line, ",\"%s\":", name);
    put_string(line, text, strlen(text));
}

/* Text of any bytes. */
static void put_text(hdrt__buffer *line, const char *separator, const char *text, size_t size)
{
    if (is_utf8(text, size)) {
        hdrt__buffer_format(line, "%s\"text\":", separator);
        put_string(line, text, size);
        return;
    }
    size_t room = sodium_base64_encoded_len(size, sodium_base64_VARIANT_ORIGINAL);
    char *base64 = malloc(room);
    if (!base64) {
        line->failed = true;
        return;
    }
    sodium_bin2base64(base64, room, (const unsigned char *)text, size, sodium_base64_VARIANT_ORIGINAL);
    hdrt__buffer_format(line, "%s\"text_base64\":\"", separator);
    hdrt__buffer_text(line, base64);
    hdrt__buffer_text(line, "\"");
    free(base64);
}

static void put_list(hdrt__buffer *line, const char *name, char *const *items, uint32_t count)
{
    if (count == 0)
        return;
    hdrt__buffer_format(line, ",\"%s\":[", name);
    for (uint32_t i = 0; i < count; i++) {
        hdrt__buffer_text(line, i ? "," : "");
        put_string(line, items[i], strlen(items[i]));
    }
    hdrt__buffer_text(line, "]");
}

static void put_line(hdrt__buffer *line, const hdrt__input *input, const hdrt__request *request)
{
    static const char *const kinds[] = {"auto", "ptx", "cubin", "lto_ir"};
    hdrt__buffer_text(line, "{\"version\":1");
    if (input->path)
        put_member(line, "path", input->path);
    else
        put_text(line, ",", input->text, input->size);
    put_member(line, "name", input->name);
    put_member(line, "directory", input->directory);
    for (uint32_t i = 0; i < input->header_count; i++) {
        hdrt__buffer_text(line, i ? ",{\"name\":" : ",\"headers\":[{\"name\":");
        put_string(line, input->headers[i].name, strlen(input->headers[i].name));
        put_text(line, ",", input->headers[i].text, strlen(input->headers[i].text));
        hdrt__buffer_text(line, i + 1 == input->header_count ? "}]" : "}");
    }
    put_list(line, "options", input->options.items, input->options.count);
    put_list(line, "names", input->names, input->name_count);
    put_member(line, "compiler", request->compiler == HDRT_COMPILER_CLANG ? "clang" : "nvrtc");
    put_member(line, "kind", kinds[request->kind]);
    put_member(line, "arch", request->arch);
    hdrt__buffer_format(line, ",\"lower_arch\":%s,\"libdevice\":%s}\n", request->lower_arch ? "true" : "false",
                        request->libdevice ? "true" : "false");
}

/* Strings that name files cannot be said in JSON if they are not UTF-8. */
static bool can_be_said(const hdrt__input *input)
{
    bool good = is_utf8(input->name, strlen(input->name)) && is_utf8(input->directory, strlen(input->directory));
    for (uint32_t i = 0; i < input->options.count; i++)
        good = good && is_utf8(input->options.items[i], strlen(input->options.items[i]));
    for (uint32_t i = 0; i < input->name_count; i++)
        good = good && is_utf8(input->names[i], strlen(input->names[i]));
    for (uint32_t i = 0; i < input->header_count; i++)
        good = good && is_utf8(input->headers[i].name, strlen(input->headers[i].name));
    return good;
}

/* Under the lock: once for each key. Without memory it is recorded again, which does no harm. */
static bool is_new(hdrt__recording *recording, const hdrt__digest *key)
{
    struct seen *there = NULL;
    HASH_FIND(hh, recording->seen, key, sizeof(*key), there);
    if (there)
        return false;
    struct seen *seen = calloc(1, sizeof(*seen));
    if (!seen)
        return true;
    seen->key = *key;
    HASH_ADD(hh, recording->seen, key, sizeof(seen->key), seen);
    HASH_FIND(hh, recording->seen, key, sizeof(*key), there);
    if (!there)
        free(seen);
    return true;
}

/* One write to the end of the file, so that lines of several processes do not mix. Returns errno, 0: written. */
static int append(const char *path, const hdrt__buffer *line)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return errno;
    ssize_t written = write(fd, line->bytes, line->size);
    int error = written < 0 ? errno : (size_t)written < line->size ? ENOSPC : 0;
    close(fd);
    return error;
}

void hdrt__recording_add(hdrt__recording *recording, const hdrt__digest *key, const hdrt__input *input,
                         const hdrt__request *request)
{
    if (!recording)
        return;
    pthread_mutex_lock(&recording->lock);
    if (!recording->failed && is_new(recording, key)) {
        hdrt__buffer line = HDRT__BUFFER_INIT;
        int error = EILSEQ;
        if (can_be_said(input)) {
            put_line(&line, input, request);
            error = line.failed ? ENOMEM : append(recording->path, &line);
        }
        if (error)
            hdrt__log(HDRT_LOG_WARN, "'%s' is not recorded in '%s' (HDRT_RECORD): %s", input->name, recording->path,
                      strerrordesc_np(error));
        recording->failed = error && error != EILSEQ && error != ENOMEM;
        hdrt__buffer_free(&line);
    }
    pthread_mutex_unlock(&recording->lock);
}
