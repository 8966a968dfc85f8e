/* SPDX-License-Identifier: MIT */
#include "compiler/clang_state.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compiler/child.h"

#define ANSWER_TIME_NS 5000000000
#define GRACE_NS 500000000

bool hdrt__cc_clang_state_begin(hdrt__cc_clang_state *state, const char *path)
{
    struct stat now = {0};
    stat(path, &now); /* that it is not there comes out when it is to run */
    if (state->path != NULL && strcmp(state->path, path) == 0 && state->identity.st_ino == now.st_ino &&
        state->identity.st_dev == now.st_dev && state->identity.st_mtim.tv_sec == now.st_mtim.tv_sec &&
        state->identity.st_mtim.tv_nsec == now.st_mtim.tv_nsec)
        return true;
    hdrt__cc_clang_state_free(state);
    state->identity = now;
    state->path = strdup(path);
    return state->path != NULL;
}

void hdrt__cc_clang_state_free(hdrt__cc_clang_state *state)
{
    free(state->path);
    *state = (hdrt__cc_clang_state){0};
}

/* Run clang for what it says of itself: on its standard output or error. */
static void ask(const hdrt__cc_request *request, const char *first, const char *second, hdrt__cc_buffer *said)
{
    const char *const argv[] = {request->compiler_path, first, second, NULL};
    const char *const environment[] = {"LC_ALL=C", "CLANG_NO_DEFAULT_CONFIG=1", NULL};
    int64_t deadline = hdrt__cc_now_ns() + ANSWER_TIME_NS;
    if (request->deadline_ns < deadline) /* the client allows for some grace, so the answer may take a little of it */
        deadline = request->deadline_ns + GRACE_NS;
    int output = memfd_create("hdrt-answer", MFD_CLOEXEC);
    if (output < 0)
        return;
    hdrt__cc_command command = {
        .argv = argv, .environment = environment, .directory = "/", .output = output, .fds = {-1, -1, -1, -1, -1},
        .memory_limit = request->memory_limit, .file_limit = 1 << 20,
        .deadline_ns = deadline,
    };
    hdrt__cc_outcome outcome;
    hdrt__cc_run(&command, &outcome);
    char bytes[4096];
    ssize_t got = pread(output, bytes, sizeof bytes, 0);
    if (got > 0)
        hdrt__cc_buffer_append(said, bytes, (size_t)got);
    hdrt__cc_buffer_append(said, outcome.said.bytes, outcome.said.size);
    hdrt__cc_buffer_free(&outcome.said);
    close(output);
}

/* "Debian clang version 19.1.7 (3~deb12u1)" */
void hdrt__cc_clang_learn_version(hdrt__cc_clang_state *state, const hdrt__cc_request *request)
{
    if (state->version_asked)
        return;
    state->version_asked = true;
    hdrt__cc_buffer said = {0};
    ask(request, "--version", NULL, &said);
    const char *number = said.size > 0 && !said.failed ? strstr((const char *)said.bytes, "clang version ") : NULL;
    if (number != NULL) {
        number += strlen("clang version ");
        snprintf(state->version, sizeof state->version, "clang %.*s", (int)strcspn(number, " \t\r\n"), number);
    }
    hdrt__cc_buffer_free(&said);
}

/* "sm_20 sm_21 ... sm_90a", as clang lists its targets; left empty if it does not. */
void hdrt__cc_clang_list_targets(const hdrt__cc_request *request, hdrt__cc_buffer *out)
{
    hdrt__cc_buffer said = {0};
    ask(request, "--target=nvptx64", "--print-supported-cpus", &said);
    const char *at = said.size > 0 && !said.failed ? (const char *)said.bytes : "";
    while ((at = strstr(at, "sm_")) != NULL) {
        size_t length = 3;
        while (isalnum((unsigned char)at[length]))
            length++;
        hdrt__cc_buffer_format(out, "%s%.*s", out->size > 0 ? " " : "", (int)length, at);
        at += length;
    }
    hdrt__cc_buffer_free(&said);
}
