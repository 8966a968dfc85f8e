/* SPDX-License-Identifier: MIT */
/* A module of PTX on the soft driver's engine, with a device's memory around it. */
#ifndef SOFT_ENGINE_H
#define SOFT_ENGINE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/model/memory.h"
#include "soft/ptx/program.h"

struct engine {
    hdsoft_memory *hosts, *memory;
    hdsoft_program *program;
    hdsoft_instance *instance;
    hdsoft_fault fault;
    char printed[4096];
    size_t printed_length;
    uint64_t executed, seed;
    bool cooperative;
    uint32_t multiprocessors, dynamic_shared;
};

static inline void engine_print(void *context, const char *bytes, size_t length)
{
    struct engine *engine = context;
    if (length > sizeof engine->printed - 1 - engine->printed_length)
        length = sizeof engine->printed - 1 - engine->printed_length;
    memcpy(engine->printed + engine->printed_length, bytes, length);
    engine->printed_length += length;
    engine->printed[engine->printed_length] = '\0';
}

static inline void engine_open_text(struct engine *engine, const char *ptx, size_t size, int level)
{
    char log[1024];
    hdsoft_text text = {log, sizeof log, 0};
    memset(engine, 0, sizeof *engine);
    engine->multiprocessors = 4;
    int code = hdsoft_program_parse_level(ptx, size, 90, level, &engine->program, &text);
    ck_assert_msg(code == 0, "parse: %d %s", code, log);
    engine->hosts = hdsoft__memory_create(0, NULL);
    engine->memory = hdsoft__memory_create(1u << 26, engine->hosts);
    ck_assert_ptr_nonnull(engine->memory);
    code = hdsoft_instance_create(engine->program, engine->memory, &engine->instance, &text);
    ck_assert_msg(code == 0, "instance: %d %s", code, log);
}

/* A module is its body; the head is the same for all. */
static inline void engine_open(struct engine *engine, const char *body)
{
    static const char head[] = ".version 8.0\n.target sm_90\n.address_size 64\n";
    size_t size = strlen(head) + strlen(body);
    char *text = malloc(size + 1);
    ck_assert_ptr_nonnull(text);
    strcpy(text, head);
    strcat(text, body);
    engine_open_text(engine, text, size + 1, -1);
    free(text);
}

static inline void engine_close(struct engine *engine)
{
    hdsoft_instance_destroy(engine->instance);
    hdsoft_program_destroy(engine->program);
    hdsoft__memory_destroy(engine->memory);
    hdsoft__memory_destroy(engine->hosts);
}

static inline hdsoft_range engine_allocate(struct engine *engine, size_t size)
{
    hdsoft_range range;
    ck_assert_int_eq(hdsoft_memory_allocate(engine->memory, size, 256, HDSOFT_RANGE_DEVICE, &range), 0);
    memset(range.host, 0, size);
    return range;
}

/* 0, or the code of the fault, which is in engine->fault. */
static inline int engine_run(struct engine *engine, const char *kernel, uint32_t blocks, uint32_t threads,
                             const void *parameters)
{
    hdsoft_launch launch = {
        .instance = engine->instance, .entry = hdsoft_program_find_entry(engine->program, kernel),
        .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .parameters = parameters, .memory = engine->memory,
        .multiprocessors = engine->multiprocessors, .print = engine_print, .print_context = engine,
        .seed = engine->seed, .cooperative = engine->cooperative, .dynamic_shared_bytes = engine->dynamic_shared};
    hdsoft_run *run;
    ck_assert_msg(launch.entry != NULL, "no kernel %s", kernel);
    ck_assert_int_eq(hdsoft_run_begin(&launch, &run), 0);
    int result;
    engine->executed = 0;
    do {
        uint64_t executed;
        result = hdsoft_run_step(run, 50000, &executed, &engine->fault);
        engine->executed += executed;
    } while (result == 1 && engine->executed < 200000000);
    ck_assert_msg(result != 1, "kernel %s does not end", kernel);
    hdsoft_run_end(run);
    return result < 0 ? engine->fault.code : 0;
}

#endif
