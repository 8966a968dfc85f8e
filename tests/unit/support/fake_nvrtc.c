/* SPDX-License-Identifier: MIT */
/*
 * An NVRTC that does what its source says, to see what the worker makes of it; it needs no NVIDIA software. The source
 * is a list of commands, one a line; what is not one is passed over. Its "PTX" is the list of options it was given.
 * FAKE_OLD builds one that is like 11.8: it lists no targets, and knows neither -no-cache nor -frandom-seed.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/nvrtc_abi.h"

#define EXPORT __attribute__((visibility("default")))
#define DECLARE(name, result, parameters) EXPORT result name parameters;
HDRT__NVRTC_REQUIRED(DECLARE)
#ifndef FAKE_OLD
HDRT__NVRTC_OPTIONAL(DECLARE)
#endif

struct _nvrtcProgram {
    char *source, ptx[8192], log[8192];
};

hdrt__nvrtc_result nvrtcVersion(int *major, int *minor)
{
#ifdef FAKE_OLD
    *major = 11, *minor = 8;
#else
    *major = 13, *minor = 1;
#endif
    return HDRT__NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(hdrt__nvrtc_result result)
{
    return result == 11 ? "NVRTC_ERROR_INTERNAL_ERROR" : "NVRTC_ERROR";
}

hdrt__nvrtc_result nvrtcCreateProgram(hdrt__nvrtc_program *program, const char *source, const char *name,
                                      int header_count, const char *const *headers, const char *const *header_names)
{
    (void)name, (void)header_count, (void)headers, (void)header_names;
    *program = calloc(1, sizeof **program);
    if (*program == NULL)
        return HDRT__NVRTC_OUT_OF_MEMORY;
    (*program)->source = strdup(source);
    return (*program)->source != NULL ? HDRT__NVRTC_SUCCESS : HDRT__NVRTC_OUT_OF_MEMORY;
}

hdrt__nvrtc_result nvrtcDestroyProgram(hdrt__nvrtc_program *program)
{
    free((*program)->source);
    free(*program);
    *program = NULL;
    return HDRT__NVRTC_SUCCESS;
}

static int overflow(int depth)
{
    volatile char frame[4096];
    frame[0] = (char)depth;
    return depth < 0 ? 0 : overflow(depth + 1) + frame[0];
}

static void use_memory(void)
{
    for (;;) {
        char *block = malloc(1 << 20);
        if (block == NULL) {
            fputs("LLVM ERROR: out of memory\n", stderr);
            fflush(stderr);
            abort();
        }
        *(volatile char *)block = 1; /* or it is optimised away */
    }
}

static void *look_from_a_thread(void *path)
{
    struct stat status;
    if (stat(path, &status) == 0) {
        int fd = open(path, O_RDONLY);
        if (fd >= 0)
            close(fd);
    }
    return NULL;
}

static void look_at(hdrt__nvrtc_program program, const char *path)
{
    FILE *stream = fopen(path, "r");
    size_t length = strlen(program->ptx);
    if (stream == NULL)
        return;
    size_t got = fread(program->ptx + length, 1, sizeof program->ptx - length - 1, stream);
    program->ptx[length + got] = '\0';
    fclose(stream);
}

static void note_descriptor(hdrt__nvrtc_program program, const char *name, int fd)
{
    strcat(strcat(program->ptx, name), fd >= 0 ? " yes\n" : " no\n");
    if (fd >= 0)
        close(fd);
}

static void note_stream(hdrt__nvrtc_program program, const char *name, FILE *stream)
{
    note_descriptor(program, name, stream != NULL ? dup(fileno(stream)) : -1);
    if (stream != NULL)
        fclose(stream);
}

static void note_result(hdrt__nvrtc_program program, const char *name, int result)
{
    strcat(strcat(program->ptx, name), result == 0 ? " yes\n" : " no\n");
}

/* Every call by which a file can be looked at, each at a file of the call's own name in the folder `path`. */
static void call_all(hdrt__nvrtc_program program, const char *path)
{
    struct stat status;
    struct stat64 status64;
    int folder = open(path, O_RDONLY | O_DIRECTORY);
    if (folder < 0 || chdir(path) != 0)
        return;
    note_descriptor(program, "open", open("open", O_RDONLY));
    note_descriptor(program, "open64", open64("open64", O_RDONLY));
    note_descriptor(program, "openat", openat(folder, "openat", O_RDONLY));
    note_descriptor(program, "openat64", openat64(AT_FDCWD, "openat64", O_RDONLY));
    note_stream(program, "fopen", fopen("fopen", "re"));
    note_stream(program, "fopen64", fopen64("fopen64", "rb"));
    note_result(program, "access", access("access", R_OK));
    note_result(program, "stat", stat("stat", &status));
    note_result(program, "lstat", lstat("lstat", &status));
    note_result(program, "fstatat", fstatat(folder, "fstatat", &status, 0));
    note_result(program, "stat64", stat64("stat64", &status64));
    note_result(program, "lstat64", lstat64("lstat64", &status64));
    note_result(program, "fstatat64", fstatat64(folder, "fstatat64", &status64, 0));
    struct statx statusx;
    note_result(program, "faccessat", faccessat(folder, "faccessat", F_OK, 0));
    note_result(program, "statx", statx(folder, "statx", 0, STATX_SIZE, &statusx));
    static const char *const fortified[] = {"__open_2", "__open64_2"};
    for (size_t i = 0; i < sizeof fortified / sizeof *fortified; i++) {
        int (*call)(const char *, int) = (int (*)(const char *, int))dlsym(RTLD_DEFAULT, fortified[i]);
        note_descriptor(program, fortified[i], call != NULL ? call(fortified[i], O_RDONLY) : -1);
    }
    static const char *const older[] = {"__xstat", "__xstat64", "__lxstat", "__lxstat64"};
    for (size_t i = 0; i < sizeof older / sizeof *older; i++) {
        int (*call)(int, const char *, struct stat *) =
            (int (*)(int, const char *, struct stat *))dlsym(RTLD_DEFAULT, older[i]);
        note_result(program, older[i], call != NULL ? call(1, older[i], &status) : -1);
    }
    int fd = open("written", O_WRONLY | O_CREAT, 0644); /* not a look */
    note_descriptor(program, "written", fd);
    note_stream(program, "written", fopen("written", "r+"));
    close(folder);
}

/* A result other than success ends the compile. */
static hdrt__nvrtc_result obey(hdrt__nvrtc_program program, const char *word, const char *rest)
{
    pthread_t thread;
    volatile uintptr_t nowhere = 16;
    if (strcmp(word, "abort") == 0)
        abort();
    if (strcmp(word, "access") == 0)
        *(volatile int *)nowhere = 1;
    if (strcmp(word, "overflow") == 0)
        return overflow(1);
    if (strcmp(word, "starve") == 0)
        use_memory();
    if (strcmp(word, "exit") == 0)
        exit(4);
    if (strcmp(word, "hang") == 0)
        for (;;)
            sleep(1);
    if (strcmp(word, "read") == 0)
        look_at(program, rest);
    if (strcmp(word, "calls") == 0)
        call_all(program, rest);
    if (strcmp(word, "thread") == 0 && pthread_create(&thread, NULL, look_from_a_thread, (void *)rest) == 0)
        pthread_join(thread, NULL);
    if (strcmp(word, "log") == 0)
        strcat(strcat(program->log, rest), "\n");
    if (strcmp(word, "print") == 0)
        fprintf(stderr, "%s\n", rest);
    return strcmp(word, "result") == 0 ? atoi(rest) : HDRT__NVRTC_SUCCESS;
}

hdrt__nvrtc_result nvrtcCompileProgram(hdrt__nvrtc_program program, int option_count, const char *const *options)
{
    for (int i = 0; i < option_count; i++) {
#ifdef FAKE_OLD
        if (strcmp(options[i], "-no-cache") == 0 || strncmp(options[i], "-frandom-seed", 13) == 0) {
            sprintf(program->log, "nvrtc: error: unrecognized option %s found\n", options[i]);
            return HDRT__NVRTC_INVALID_OPTION;
        }
#endif
        strcat(strcat(program->ptx, options[i]), "\n");
    }
    hdrt__nvrtc_result result = HDRT__NVRTC_SUCCESS;
    char *rest = NULL;
    for (char *line = strtok_r(program->source, "\n", &rest); line != NULL && result == HDRT__NVRTC_SUCCESS;
         line = strtok_r(NULL, "\n", &rest)) {
        char *blank = strchr(line, ' ');
        if (blank != NULL)
            *blank = '\0';
        result = obey(program, line, blank != NULL ? blank + 1 : "");
    }
    return result;
}

hdrt__nvrtc_result nvrtcGetPTXSize(hdrt__nvrtc_program program, size_t *size)
{
    *size = strlen(program->ptx) + 1;
    return HDRT__NVRTC_SUCCESS;
}

hdrt__nvrtc_result nvrtcGetPTX(hdrt__nvrtc_program program, char *bytes)
{
    strcpy(bytes, program->ptx);
    return HDRT__NVRTC_SUCCESS;
}

hdrt__nvrtc_result nvrtcGetProgramLogSize(hdrt__nvrtc_program program, size_t *size)
{
    *size = strlen(program->log) + 1;
    return HDRT__NVRTC_SUCCESS;
}

hdrt__nvrtc_result nvrtcGetProgramLog(hdrt__nvrtc_program program, char *bytes)
{
    strcpy(bytes, program->log);
    return HDRT__NVRTC_SUCCESS;
}

#ifndef FAKE_OLD
static const int targets[] = {75, 80, 90, 120};

hdrt__nvrtc_result nvrtcGetNumSupportedArchs(int *count)
{
    *count = (int)(sizeof targets / sizeof *targets);
    return HDRT__NVRTC_SUCCESS;
}

hdrt__nvrtc_result nvrtcGetSupportedArchs(int *numbers)
{
    memcpy(numbers, targets, sizeof targets);
    return HDRT__NVRTC_SUCCESS;
}

hdrt__nvrtc_result nvrtcGetCUBINSize(hdrt__nvrtc_program program, size_t *size)
{
    *size = strstr(program->ptx, "-architecture=sm_") != NULL ? 4 : 0;
    return HDRT__NVRTC_SUCCESS;
}

hdrt__nvrtc_result nvrtcGetCUBIN(hdrt__nvrtc_program program, char *bytes)
{
    (void)program;
    memcpy(bytes, "FAKE", 4);
    return HDRT__NVRTC_SUCCESS;
}
#endif
