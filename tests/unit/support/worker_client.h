/* SPDX-License-Identifier: MIT */
/*
 * A client of hdrt-cc for its tests: starts the built worker on a socketpair, sends one request, takes the reply apart.
 * The worker is a child of the test here, unlike under the library, so that its end can be waited for.
 */
#ifndef WORKER_CLIENT_H
#define WORKER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "compiler/buffer.h"
#include "compiler/protocol.h"

typedef struct worker_process {
    int socket;
    pid_t pid;
} worker_process;

/* A compile to ask for. Start from worker_ask_clang or worker_ask_nvrtc. */
typedef struct worker_ask {
    uint32_t back_end, kind, lower, time_limit_ms;
    uint64_t memory_limit;
    const char *compiler, *builtins, *name, *directory, *arch, *libdevice;
    const char *prelude, *recorder; /* NULL: those of the build tree */
    const char *source;
    size_t source_size; /* 0: up to its NUL */
    const char *options[8];
} worker_ask;

/* A reply; texts are NUL-terminated copies. */
typedef struct worker_reply {
    bool arrived; /* false: end of file instead */
    uint32_t status;
    unsigned char *payload;
    size_t size;
} worker_reply;

/* The top of the build tree: of make's environment, else the current folder. */
const char *build_folder(void);
worker_process worker_start(void);
/* Close the socket and see the worker end, within seconds. Returns its wait status. */
int worker_stop(worker_process *worker);
/* Wait for it to end; -1: it is still there after the time. */
int worker_wait(const worker_process *worker, int milliseconds);

worker_ask worker_ask_clang(const char *clang, const char *source);
/* Send a message of this payload with a right header. */
void worker_send_payload(const worker_process *worker, const hdrt__cc_buffer *payload);
void worker_send(const worker_process *worker, const worker_ask *ask);
worker_reply worker_receive(const worker_process *worker);
/* Both. */
worker_reply worker_compile(const worker_process *worker, const worker_ask *ask);
void worker_reply_free(worker_reply *reply);

/* The index-th field with this tag as a malloc'ed text; NULL past the last. */
char *worker_text(const worker_reply *reply, uint32_t tag, size_t index, size_t *out_size);
size_t worker_count(const worker_reply *reply, uint32_t tag);
/* Whether a field with this tag contains the text. */
bool worker_says(const worker_reply *reply, uint32_t tag, const char *text);
/* Whether a field with this tag is exactly the text; of dependencies the path counts. */
bool worker_lists(const worker_reply *reply, uint32_t tag, const char *text);
/* Whether there is a diagnostic at this place: "file:line:column:severity:text", text as a beginning. */
bool worker_diagnoses(const worker_reply *reply, const char *file, uint32_t line, uint32_t column, uint32_t severity,
                      const char *text);
/* All fields but code in words, for assertion messages; in a static buffer. */
const char *worker_print(const worker_reply *reply);

/* Whether a process is there and not a zombie. */
bool process_lives(pid_t pid);
/* A private folder under TMPDIR that is removed by folder_remove; aborts the test without one. */
char *folder_make(void);
void folder_remove(char *path);
/* Write a file into it, subfolders included; returns its path, to be freed. */
char *folder_write(const char *folder, const char *name, const char *text);
/* The same as an executable script of /bin/sh. */
char *folder_script(const char *folder, const char *name, const char *text);
/* An executable along PATH, or NULL. malloc'ed. Does not assert, so it may be called outside of a test. */
char *find_program(const char *name);

#endif
