/* SPDX-License-Identifier: MIT */
#include "compiler/clang_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compiler/child.h"
#include "compiler/ptx.h"

static bool write_whole(int fd, const unsigned char *bytes, size_t size)
{
    size_t at = 0;
    while (at < size) {
        ssize_t written = write(fd, bytes + at, size - at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += (size_t)written;
    }
    return true;
}

int hdrt__cc_memory_text(const char *name, const hdrt__cc_buffer *text, int least)
{
    if (text->failed) {
        errno = ENOMEM;
        return -1;
    }
    int made = memfd_create(name, MFD_CLOEXEC);
    int fd = made;
    if (made >= 0 && made < least) {
        fd = fcntl(made, F_DUPFD_CLOEXEC, least);
        int error = errno;
        close(made);
        errno = error;
    }
    if (fd >= 0 && !write_whole(fd, text->bytes, text->size)) {
        int error = errno;
        close(fd);
        errno = error;
        fd = -1;
    }
    return fd;
}

/* The name as a C string literal; only these escapes are allowed there by clang 17 and newer. */
static void append_literal(hdrt__cc_buffer *out, const char *text)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '"': hdrt__cc_buffer_text(out, "\\\""); break;
        case '\\': hdrt__cc_buffer_text(out, "\\\\"); break;
        case '\n': hdrt__cc_buffer_text(out, "\\n"); break;
        case '\r': hdrt__cc_buffer_text(out, "\\r"); break;
        default: hdrt__cc_buffer_append(out, text, 1);
        }
}

void hdrt__cc_name_text(hdrt__cc_buffer *out, const char *name, const void *text, size_t size)
{
    hdrt__cc_buffer_text(out, "#line 1 \"");
    append_literal(out, name);
    hdrt__cc_buffer_text(out, "\"\n");
    hdrt__cc_buffer_append(out, text, size);
}

/* Without debug information: what is taken out of the PTX must not be referred to there. */
void hdrt__cc_declare_expressions(const hdrt__cc_request *request, hdrt__cc_buffer *out)
{
    for (size_t i = 0; i < request->expressions.count; i++) {
        const char *expression = request->expressions.items[i];
        hdrt__cc_buffer_text(out, "\n#line 1 \"name expression ");
        append_literal(out, expression);
        hdrt__cc_buffer_format(out, "\"\nextern \"C\" __device__ __attribute__((used, nodebug)) const void *const "
                               HDRT__CC_NAME_PREFIX "%zu = (const void *)(%s);\n", i, expression);
    }
}

/* One root for each header: the overlay merges those of one folder. Names have neither quotes nor backslashes. */
static void describe(const hdrt__cc_headers *headers, const hdrt__cc_request *request, hdrt__cc_buffer *out)
{
    hdrt__cc_buffer_text(out, "{\"version\": 0, \"use-external-names\": false, \"roots\": [");
    for (size_t i = 0; i < headers->count; i++) {
        const char *name = request->header_names.items[i], *slash = strrchr(name, '/');
        const char *file = slash != NULL ? slash + 1 : name;
        hdrt__cc_buffer_format(out, "%s\n{\"type\": \"directory\", \"name\": \"" HDRT__CC_HEADERS_FOLDER "%s%.*s\", "
                               "\"contents\": [{\"type\": \"file\", \"name\": \"%s\", \"external-contents\": "
                               "\"/proc/self/fd/%d\"}]}", i > 0 ? "," : "", slash != NULL ? "/" : "",
                               slash != NULL ? (int)(slash - name) : 0, name, file, headers->fds[i]);
    }
    hdrt__cc_buffer_text(out, "\n]}\n");
}

bool hdrt__cc_headers_make(const hdrt__cc_request *request, hdrt__cc_headers *out)
{
    *out = (hdrt__cc_headers){.overlay = -1};
    if (request->header_names.count == 0)
        return true;
    out->fds = calloc(request->header_names.count, sizeof *out->fds);
    if (out->fds == NULL)
        return false;
    int least = HDRT__CC_FIRST_FREE_FD;
    while (out->count < request->header_names.count) {
        hdrt__cc_buffer text = {0};
        const char *bytes = request->header_texts.items[out->count];
        hdrt__cc_buffer_append(&text, bytes, strlen(bytes));
        int fd = hdrt__cc_memory_text("hdrt-header", &text, least);
        hdrt__cc_buffer_free(&text);
        if (fd < 0)
            return false;
        out->fds[out->count++] = fd;
        least = fd + 1;
    }
    hdrt__cc_buffer overlay = {0};
    describe(out, request, &overlay);
    out->overlay = hdrt__cc_memory_text("hdrt-overlay", &overlay, 0);
    hdrt__cc_buffer_free(&overlay);
    return out->overlay >= 0;
}

void hdrt__cc_headers_free(hdrt__cc_headers *headers)
{
    for (size_t i = 0; i < headers->count; i++)
        close(headers->fds[i]);
    free(headers->fds);
    if (headers->overlay >= 0)
        close(headers->overlay);
    *headers = (hdrt__cc_headers){.overlay = -1};
}
