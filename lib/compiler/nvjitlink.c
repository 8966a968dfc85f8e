/* SPDX-License-Identifier: MIT */
#include "compiler/nvjitlink.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/clang_options.h"
#include "compiler/guard.h"
#include "compiler/nvjitlink_abi.h"

struct hdrt__cc_nvjitlink_state {
    char *path;
    hdrt__nvjitlink_table table;
    unsigned major, minor; /* 0, 0: before 12.3, which does not tell */
};

/* One link under way. */
typedef struct link_job {
    hdrt__cc_nvjitlink_state *state;
    const hdrt__cc_request *request;
    hdrt__cc_reply *reply;
    hdrt__nvjitlink link;
    const char *failed; /* what failed: "adding 'a.cu'" */
    hdrt__nvjitlink_result result;
} link_job;

/* -- the library --------------------------------------------------------------------------------------------------- */

/* Before 12.4 the functions are there by names with a version only, one for each up to the library's own. */
static void *look_up(void *library, const char *symbol)
{
    void *found = dlsym(library, symbol);
    for (int minor = 9; found == NULL && minor >= 0; minor--) {
        char name[64];
        snprintf(name, sizeof name, "__%s_12_%d", symbol, minor);
        found = dlsym(library, name);
    }
    return found;
}

static const char *resolve(void *library, hdrt__nvjitlink_table *table)
{
    const char *missing = NULL;
#define REQUIRE(symbol, parameters) \
    table->symbol = (hdrt__##symbol *)look_up(library, #symbol); \
    if (table->symbol == NULL) \
        missing = #symbol;
#define LOOK_UP(symbol, parameters) table->symbol = (hdrt__##symbol *)dlsym(library, #symbol);
    HDRT__NVJITLINK_REQUIRED(REQUIRE)
    HDRT__NVJITLINK_OPTIONAL(LOOK_UP)
#undef REQUIRE
#undef LOOK_UP
    return missing;
}

static hdrt__cc_nvjitlink_state *open_library(const hdrt__cc_request *request, hdrt__cc_reply *reply)
{
    hdrt__cc_nvjitlink_state *state = calloc(1, sizeof *state);
    if (state != NULL)
        state->path = strdup(request->compiler_path);
    if (state == NULL || state->path == NULL) {
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_MEMORY, "out of memory while opening '%s'", request->compiler_path);
        goto free_state;
    }
    void *library = dlopen(request->compiler_path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_UNSUPPORTED, "cannot open nvJitLink: %s", dlerror());
        goto free_state;
    }
    const char *missing = resolve(library, &state->table);
    if (missing != NULL) {
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_UNSUPPORTED, "'%s' has no function %s: it is not nvJitLink",
                            request->compiler_path, missing);
        goto free_state;
    }
    if (state->table.nvJitLinkVersion != NULL)
        state->table.nvJitLinkVersion(&state->major, &state->minor);
    return state;

free_state:
    hdrt__cc_nvjitlink_state_free(state);
    return NULL;
}

void hdrt__cc_nvjitlink_state_free(hdrt__cc_nvjitlink_state *state)
{
    if (state == NULL)
        return;
    free(state->path);
    free(state);
}

/* -- one link ------------------------------------------------------------------------------------------------------ */

static bool is_option(const char *option, const char *name)
{
    return strcmp(option, name) == 0;
}

/* NVRTC's spellings, said in nvJitLink's. false: the reply says which option it does not have. */
static bool translate(const char *option, hdrt__cc_arguments *out, hdrt__cc_reply *reply)
{
    static const char *const joined[][2] = {
        {"--maxrregcount=", "-maxrregcount="}, {"-Xptxas=", "-Xptxas="}, {"--split-compile=", "-split-compile="}};
    static const char *const booleans[][2] = {
        {"--ftz=", "-ftz="}, {"--prec-div=", "-prec-div="}, {"--prec-sqrt=", "-prec-sqrt="}, {"--fmad=", "-fma="}};
    for (size_t i = 0; i < sizeof joined / sizeof *joined; i++)
        if (strncmp(option, joined[i][0], strlen(joined[i][0])) == 0) {
            hdrt__cc_arguments_add(out, "%s%s", joined[i][1], option + strlen(joined[i][0]));
            return true;
        }
    for (size_t i = 0; i < sizeof booleans / sizeof *booleans; i++)
        if (strncmp(option, booleans[i][0], strlen(booleans[i][0])) == 0) {
            bool on = strcmp(option + strlen(booleans[i][0]), "true") == 0;
            hdrt__cc_arguments_add(out, "%s%d", booleans[i][1], on);
            return true;
        }
    if (is_option(option, "-G"))
        hdrt__cc_arguments_add(out, "-g");
    else if (is_option(option, "-lineinfo"))
        hdrt__cc_arguments_add(out, "-lineinfo");
    else if (is_option(option, "--use_fast_math")) {
        hdrt__cc_arguments_add(out, "-ftz=1");
        hdrt__cc_arguments_add(out, "-prec-div=0");
        hdrt__cc_arguments_add(out, "-prec-sqrt=0");
    } else {
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_OPTION, "'%s' is no option of a link", option);
        return false;
    }
    return true;
}

static bool has_lto(const hdrt__cc_request *request)
{
    for (size_t i = 0; i < request->input_count; i++)
        if (request->inputs[i].type == HDRT_CC_INPUT_LTO_IR)
            return true;
    return false;
}

static bool build_options(const link_job *job, hdrt__cc_arguments *out)
{
    const hdrt__cc_request *request = job->request;
    hdrt__cc_arguments_add(out, "-arch=%s", request->arch);
    if (has_lto(request))
        hdrt__cc_arguments_add(out, "-lto");
    if (request->kind == HDRT_CC_PTX)
        hdrt__cc_arguments_add(out, "-ptx");
    for (size_t i = 0; i < request->options.count; i++)
        if (!translate(request->options.items[i], out, job->reply))
            return false;
    if (out->failed)
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_MEMORY, "out of memory while preparing the link");
    return !out->failed;
}

typedef hdrt__nvjitlink_result size_call(hdrt__nvjitlink link, size_t *size);
typedef hdrt__nvjitlink_result text_call(hdrt__nvjitlink link, char *bytes);

static void append_log(link_job *job, size_call *get_size, text_call *get_text)
{
    size_t size = 0;
    if (job->link == NULL || get_size(job->link, &size) != HDRT__NVJITLINK_SUCCESS || size == 0)
        return;
    char *text = calloc(1, size + 1);
    if (text == NULL) {
        job->reply->log.failed = true;
        return;
    }
    if (get_text(job->link, text) == HDRT__NVJITLINK_SUCCESS)
        hdrt__cc_buffer_append(&job->reply->log, text, strlen(text));
    free(text);
}

/* Under guard. */
static void run(link_job *job, const hdrt__cc_arguments *options)
{
    const hdrt__nvjitlink_table *table = &job->state->table;
    const hdrt__cc_request *request = job->request;
    hdrt__cc_reply_command(job->reply, job->state->path, (const char *const *)options->items, options->count);
    job->failed = "the options";
    job->result = table->nvJitLinkCreate(&job->link, (uint32_t)options->count, (const char **)options->items);
    for (size_t i = 0; i < request->input_count && job->result == HDRT__NVJITLINK_SUCCESS; i++) {
        const hdrt__cc_input *input = &request->inputs[i];
        job->failed = input->name;
        size_t size = input->size + (input->type == HDRT_CC_INPUT_PTX); /* PTX with its NUL */
        job->result = table->nvJitLinkAddData(job->link, (int)input->type, input->bytes, size, input->name);
    }
    if (job->result == HDRT__NVJITLINK_SUCCESS) {
        job->failed = "all inputs together";
        job->result = table->nvJitLinkComplete(job->link);
    }
    append_log(job, table->nvJitLinkGetErrorLogSize, table->nvJitLinkGetErrorLog);
    append_log(job, table->nvJitLinkGetInfoLogSize, table->nvJitLinkGetInfoLog);
}

/* The log's first line that says something; "" if there is none. */
static int first_line(const hdrt__cc_buffer *log, const char **out)
{
    const char *text = log->size > 0 && !log->failed ? (const char *)log->bytes : "";
    text += strspn(text, " \t\r\n");
    *out = text;
    return (int)strcspn(text, "\r\n");
}

static void fail(link_job *job)
{
    const char *line;
    int length = first_line(&job->reply->log, &line);
    enum hdrt_cc_status status = HDRT_CC_STATUS_COMPILE;
    switch (job->result) {
    case HDRT__NVJITLINK_UNRECOGNIZED_OPTION:
    case HDRT__NVJITLINK_INCOMPATIBLE_OPTIONS:
    case HDRT__NVJITLINK_UNRECOGNIZED_ARCH:
    case HDRT__NVJITLINK_UNSUPPORTED_ARCH:
        status = HDRT_CC_STATUS_OPTION;
        break;
    case HDRT__NVJITLINK_OUTDATED_LIBRARY:
        status = HDRT_CC_STATUS_UNSUPPORTED;
        break;
    case HDRT__NVJITLINK_INTERNAL:
    case HDRT__NVJITLINK_THREADPOOL:
        status = HDRT_CC_STATUS_CRASHED;
        break;
    }
    hdrt__cc_reply_fail(job->reply, status, "linking for %s by '%s' failed at %s (error %d)%s%.*s%s",
                        job->request->arch, job->state->path, job->failed, job->result, length > 0 ? ": " : "", length,
                        line, job->result == HDRT__NVJITLINK_OUTDATED_LIBRARY
                                  ? "; it is older than what made the input: use an nvJitLink that is not" : "");
}

/* Put code into the reply straight from the library. */
static void take_code(link_job *job)
{
    const hdrt__nvjitlink_table *table = &job->state->table;
    bool ptx = job->request->kind == HDRT_CC_PTX;
    size_t size = 0;
    job->result = ptx ? table->nvJitLinkGetLinkedPtxSize(job->link, &size)
                      : table->nvJitLinkGetLinkedCubinSize(job->link, &size);
    char *bytes = job->result == HDRT__NVJITLINK_SUCCESS && size > 0 ? malloc(size) : NULL;
    if (bytes == NULL) {
        hdrt__cc_reply_fail(job->reply, size > 0 ? HDRT_CC_STATUS_MEMORY : HDRT_CC_STATUS_UNSUPPORTED,
                            "'%s' gave no %s", job->state->path, ptx ? "PTX" : "cubin");
        return;
    }
    job->result = ptx ? table->nvJitLinkGetLinkedPtx(job->link, bytes)
                      : table->nvJitLinkGetLinkedCubin(job->link, bytes);
    if (ptx && bytes[size - 1] == '\0')
        size--;
    if (job->result == HDRT__NVJITLINK_SUCCESS)
        hdrt__cc_buffer_field(&job->reply->fields, ptx ? HDRT_CC_CODE_PTX : HDRT_CC_CODE_CUBIN, bytes, size);
    else
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_UNSUPPORTED, "'%s' gave no %s (error %d)", job->state->path,
                            ptx ? "PTX" : "cubin", job->result);
    free(bytes);
    hdrt__cc_reply_text(job->reply, HDRT_CC_ARCH_USED, "%s", job->request->arch);
}

void hdrt__cc_link(hdrt__cc_nvjitlink_state **state, int socket, const hdrt__cc_request *request, hdrt__cc_reply *reply)
{
    hdrt__cc_guard guard;
    hdrt__cc_arguments options = {0};
    if (*state != NULL && strcmp((*state)->path, request->compiler_path) != 0)
        _exit(0); /* two versions in one process would share symbols: the client starts another worker */
    if (*state == NULL)
        *state = open_library(request, reply);
    if (*state == NULL)
        return;
    link_job job = {.state = *state, .request = request, .reply = reply};
    if (!build_options(&job, &options) || !hdrt__cc_guard_begin(&guard, socket, request, reply))
        goto free_options;
    run(&job, &options);
    hdrt__cc_guard_end(&guard, &reply->log);
    if (job.result == HDRT__NVJITLINK_SUCCESS)
        take_code(&job);
    else
        fail(&job);
    if (job.link != NULL)
        (*state)->table.nvJitLinkDestroy(&job.link);
    if ((*state)->major > 0)
        hdrt__cc_reply_text(reply, HDRT_CC_COMPILER_VERSION, "nvJitLink %u.%u", (*state)->major, (*state)->minor);
    else
        hdrt__cc_reply_text(reply, HDRT_CC_COMPILER_VERSION, "nvJitLink 12");

free_options:
    hdrt__cc_arguments_free(&options);
}
