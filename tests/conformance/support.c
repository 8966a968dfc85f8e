/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "child.h"

#define OBJECTS_MAX 64
#define MODULES_MAX 32
#define HOLDS_MAX 64

typedef struct object {
    enum { BYTES, PINNED, STREAM, EVENT } kind;
    union {
        hdcu_pointer bytes;
        void *pinned;
        hdcu_stream stream;
        hdcu_event event;
    };
} object;

struct hold {
    volatile uint32_t *word;
};

hdcu_context own_context;

static char said[ANSWER_MAX];
static size_t said_length;
static jmp_buf check_end;
static object objects[OBJECTS_MAX];
static size_t object_count;
static hold holds[HOLDS_MAX];
static size_t hold_count;
static struct {
    const char *text;
    hdcu_module module;
} modules[MODULES_MAX];
static size_t module_count;
static int output = -1;

/* ---- saying ---- */

static void say_list(const char *format, va_list arguments)
{
    if (said_length && said_length + 1 < sizeof said)
        said[said_length++] = ':';
    int length = vsnprintf(said + said_length, sizeof said - said_length, format, arguments);
    if (length > 0)
        said_length += (size_t)length < sizeof said - said_length ? (size_t)length : sizeof said - said_length - 1;
}

void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say_list(format, arguments);
    va_end(arguments);
}

void give_up(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say_list(format, arguments);
    va_end(arguments);
    longjmp(check_end, 1);
}

void need(hdcu_result status, const char *call)
{
    if (status)
        give_up("needed %.*s, got %u", (int)strcspn(call, "("), call, status);
}

const char *child_run_check(const check *chosen, bool *unwell)
{
    said_length = 0;
    said[0] = 0;
    bool ended_early = setjmp(check_end) != 0;
    if (!ended_early)
        chosen->run(chosen);
    *unwell = ended_early || !tidy_up();
    return said;
}

/* ---- objects ---- */

static object *remember(void)
{
    if (object_count == OBJECTS_MAX)
        give_up("more than %d objects in one check", OBJECTS_MAX);
    return &objects[object_count++];
}

hdcu_pointer new_bytes(size_t bytes)
{
    hdcu_pointer made = 0;
    NEED(cuMemAlloc(&made, bytes));
    *remember() = (object){.kind = BYTES, .bytes = made};
    return made;
}

void *new_pinned(size_t bytes)
{
    void *made = NULL;
    NEED(cuMemHostAlloc(&made, bytes, HDCU_MEMHOSTALLOC_DEVICEMAP | HDCU_MEMHOSTALLOC_PORTABLE));
    *remember() = (object){.kind = PINNED, .pinned = made};
    memset(made, 0, bytes);
    return made;
}

hdcu_stream new_stream(unsigned flags)
{
    hdcu_stream made = NULL;
    NEED(cuStreamCreate(&made, flags));
    *remember() = (object){.kind = STREAM, .stream = made};
    return made;
}

hdcu_event new_event(unsigned flags)
{
    hdcu_event made = NULL;
    NEED(cuEventCreate(&made, flags));
    *remember() = (object){.kind = EVENT, .event = made};
    return made;
}

static hdcu_result give_back(const object *of)
{
    switch (of->kind) {
    case BYTES: return cu.cuMemFree(of->bytes);
    case PINNED: return cu.cuMemFreeHost(of->pinned);
    case STREAM: return cu.cuStreamDestroy(of->stream);
    case EVENT: return cu.cuEventDestroy(of->event);
    }
    return 0;
}

bool tidy_up(void)
{
    bool well = true;
    release_all();
    if (!own_context)
        return true;
    hdcu_context current = NULL;
    well = !cu.cuCtxGetCurrent(&current) && current == own_context && !cu.cuCtxSynchronize();
    while (well && object_count)
        well = !give_back(&objects[--object_count]);
    return well;
}

/* ---- kernels ---- */

hdcu_module module_of(const char *text)
{
    for (size_t i = 0; i < module_count; i++)
        if (modules[i].text == text)
            return modules[i].module;
    hdcu_module loaded = NULL;
    NEED(cuModuleLoadData(&loaded, text));
    if (module_count < MODULES_MAX) {
        modules[module_count].text = text;
        modules[module_count++].module = loaded;
    }
    return loaded;
}

hdcu_function kernel_of(const char *text, const char *name)
{
    hdcu_function found = NULL;
    NEED(cuModuleGetFunction(&found, module_of(text), name));
    return found;
}

/* ---- holding streams up ---- */

/* Loading code may wait for the device, so what is launched while a stream is held up is loaded before. */
void load_shared_kernels(void)
{
    static const char *const names[] = {"nothing", "store", "add", "copy", "spin"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        cu.cuFuncLoad(kernel_of(module_basic, names[i]));
}

hold *hold_up(hdcu_stream stream)
{
    if (hold_count == HOLDS_MAX)
        give_up("more than %d holds in one process", HOLDS_MAX);
    if (!hold_count)
        load_shared_kernels();
    if (!hold_count) {
        void *words = NULL;
        NEED(cuMemHostAlloc(&words, HOLDS_MAX * sizeof(uint32_t), HDCU_MEMHOSTALLOC_DEVICEMAP));
        for (size_t i = 0; i < HOLDS_MAX; i++)
            holds[i].word = (volatile uint32_t *)words + i;
    }
    hold *made = &holds[hold_count++];
    *made->word = 0;
    hdcu_pointer address = 0;
    NEED(cuMemHostGetDevicePointer(&address, (void *)made->word, 0));
    NEED(cuStreamWaitValue32(stream, address, 1, HDCU_STREAM_WAIT_VALUE_EQ));
    return made;
}

void release(hold *held)
{
    __atomic_store_n(held->word, 1, __ATOMIC_RELEASE);
}

/* The words stay allocated: a stream may still be looking at one. */
void release_all(void)
{
    for (size_t i = 0; i < hold_count; i++)
        release(&holds[i]);
}

/* ---- words ---- */

uint32_t word_at(hdcu_pointer address)
{
    uint32_t value = 0;
    NEED(cuMemcpyDtoH(&value, address, sizeof value));
    return value;
}

void set_word(hdcu_pointer address, uint32_t value)
{
    NEED(cuMemcpyHtoD(address, &value, sizeof value));
    NEED(cuCtxSynchronize());
}

void say_words(hdcu_pointer address, size_t count)
{
    uint32_t words[128] = {0};
    if (count > COUNT_OF(words))
        give_up("more than %zu words", COUNT_OF(words));
    NEED(cuMemcpyDtoH(words, address, count * sizeof *words));
    for (size_t i = 0; i < count; i++)
        say("%x", words[i]);
}

/* ---- threads and output ---- */

typedef struct errand {
    void (*body)(void *argument);
    void *argument;
} errand;

static void *run_errand(void *argument)
{
    errand *of = argument;
    of->body(of->argument);
    return NULL;
}

/* The body must not need or give up: the check's end is in the thread that runs the check. */
void in_thread(void (*body)(void *argument), void *argument)
{
    errand of = {body, argument};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_errand, &of))
        give_up("no thread");
    pthread_join(thread, NULL);
}

void capture_output(void)
{
    fflush(NULL);
    if (output < 0) {
        output = memfd_create("conformance-output", MFD_CLOEXEC);
        if (output < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
            give_up("no file for the output");
    }
    if (ftruncate(output, 0) || lseek(output, 0, SEEK_SET))
        give_up("cannot rewind the output");
}

void say_output(void)
{
    char text[ANSWER_MAX / 2];
    fflush(NULL);
    ssize_t length = pread(output, text, sizeof text - 1, 0);
    text[length < 0 ? 0 : length] = 0;
    for (char *at = text; *at; at++)
        if (*at == '\n')
            *at = '|';
    say("%s", text);
}
