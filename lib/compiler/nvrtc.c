/* SPDX-License-Identifier: MIT */
#include "compiler/nvrtc.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/clang_options.h"
#include "compiler/files.h"
#include "compiler/guard.h"
#include "compiler/nvrtc_abi.h"
#include "compiler/report.h"
#include "compiler/watch.h"

struct hdrt__cc_nvrtc_state {
    char *path;
    struct stat identity; /* of the file when it was opened */
    hdrt__nvrtc_table table;
    int major, minor;
    int *targets;         /* numbers that it knows, NULL if it does not say */
    int target_count;
    bool takes_no_cache, takes_random_seed;
    bool is_watched; /* its looks at files have been seen to come through us */
};

/* One compile under way. */
typedef struct nvrtc_job {
    hdrt__cc_nvrtc_state *state;
    const hdrt__cc_request *request;
    hdrt__cc_reply *reply;
    hdrt__cc_files files;
    hdrt__nvrtc_program program;
    char arch[16]; /* the target, sm_XX */
    bool cubin;    /* make one */
    bool lto;      /* make LTO-IR and nothing else */
} nvrtc_job;

/* -- the library --------------------------------------------------------------------------------------------------- */

static const char *resolve(void *library, hdrt__nvrtc_table *table)
{
    const char *missing = NULL;
#define REQUIRE(symbol, result, parameters) \
    table->symbol = (hdrt__##symbol *)dlsym(library, #symbol); \
    if (table->symbol == NULL) \
        missing = #symbol;
#define LOOK_UP(symbol, result, parameters) table->symbol = (hdrt__##symbol *)dlsym(library, #symbol);
    HDRT__NVRTC_REQUIRED(REQUIRE)
    HDRT__NVRTC_OPTIONAL(LOOK_UP)
#undef REQUIRE
#undef LOOK_UP
    return missing;
}

static void ask_for_targets(hdrt__cc_nvrtc_state *state)
{
    int count = 0;
    if (state->table.nvrtcGetNumSupportedArchs == NULL || state->table.nvrtcGetSupportedArchs == NULL ||
        state->table.nvrtcGetNumSupportedArchs(&count) != HDRT__NVRTC_SUCCESS || count <= 0 || count > 1000)
        return;
    state->targets = calloc((size_t)count, sizeof *state->targets);
    if (state->targets == NULL || state->table.nvrtcGetSupportedArchs(state->targets) != HDRT__NVRTC_SUCCESS)
        return;
    state->target_count = count;
}

/* The builtins come first, from where the client found them: NVRTC itself looks only where the loader does. */
static hdrt__cc_nvrtc_state *open_library(const hdrt__cc_request *request, hdrt__cc_reply *reply)
{
    hdrt__cc_nvrtc_state *state = calloc(1, sizeof *state);
    if (state != NULL)
        state->path = strdup(request->compiler_path);
    if (state == NULL || state->path == NULL) {
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_MEMORY, "out of memory while opening '%s'", request->compiler_path);
        goto free_state;
    }
    if (stat(request->compiler_path, &state->identity) != 0) {
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_NO_COMPILER, "cannot open '%s': %s", request->compiler_path,
                            strerror(errno));
        goto free_state;
    }
    if (request->builtins_path != NULL && dlopen(request->builtins_path, RTLD_NOW | RTLD_LOCAL) == NULL) {
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_NO_COMPILER, "cannot open NVRTC's builtins: %s", dlerror());
        goto free_state;
    }
    void *library = dlopen(request->compiler_path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_NO_COMPILER, "cannot open NVRTC: %s", dlerror());
        goto free_state;
    }
    const char *missing = resolve(library, &state->table);
    if (missing != NULL) {
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_NO_COMPILER, "'%s' has no function %s: it is not NVRTC 11.2 or newer",
                            request->compiler_path, missing);
        goto free_state;
    }
    state->table.nvrtcVersion(&state->major, &state->minor);
    state->takes_no_cache = state->major > 12 || (state->major == 12 && state->minor >= 9);
    state->takes_random_seed = true;
    ask_for_targets(state);
    return state;

free_state:
    hdrt__cc_nvrtc_state_free(state);
    return NULL;
}

void hdrt__cc_nvrtc_state_free(hdrt__cc_nvrtc_state *state)
{
    if (state == NULL)
        return;
    free(state->targets);
    free(state->path);
    free(state);
}

/*
 * A library that was replaced on disk cannot be loaded again under its name, and what is loaded is no longer what the
 * client's key says. So the worker ends without an answer, which the client takes for one that was idle too long.
 */
static bool is_still_the_same(const hdrt__cc_nvrtc_state *state)
{
    struct stat now;
    return stat(state->path, &now) == 0 && now.st_dev == state->identity.st_dev &&
           now.st_ino == state->identity.st_ino && now.st_size == state->identity.st_size &&
           now.st_mtim.tv_sec == state->identity.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == state->identity.st_mtim.tv_nsec;
}

/* -- the target ---------------------------------------------------------------------------------------------------- */

static bool knows(const hdrt__cc_nvrtc_state *state, int number)
{
    for (int i = 0; i < state->target_count; i++)
        if (state->targets[i] == number)
            return true;
    return state->target_count == 0;
}

/* The highest known below; 0: none. */
static int highest_below(const hdrt__cc_nvrtc_state *state, int number)
{
    int best = 0;
    for (int i = 0; i < state->target_count; i++)
        if (state->targets[i] < number && state->targets[i] > best)
            best = state->targets[i];
    return best;
}

static void refuse_target(nvrtc_job *job)
{
    hdrt__cc_buffer known = {0};
    for (int i = 0; i < job->state->target_count; i++)
        hdrt__cc_buffer_format(&known, " sm_%d", job->state->targets[i]);
    bool cubin_only = job->request->arch_lower == HDRT_CC_LOWER_CUBIN;
    hdrt__cc_reply_fail(job->reply, cubin_only ? HDRT_CC_STATUS_UNSUPPORTED : HDRT_CC_STATUS_OPTION,
                        "NVRTC %d.%d ('%s') does not know the target %s%s%s%s",
                        job->state->major, job->state->minor, job->state->path, job->request->arch,
                        known.size > 0 ? "; it knows" : "", known.size > 0 ? (const char *)known.bytes : "",
                        cubin_only ? ", none of them with code that runs there, and the driver is older than this "
                                     "NVRTC and takes no PTX from it: install an NVRTC of the driver's version, or a "
                                     "newer driver"
                        : job->request->arch_lower ? ", none of them below it" : "");
    hdrt__cc_buffer_free(&known);
}

/* A cubin runs on its own major number only, so after lowering to another one PTX is all that is of use. */
static bool choose_target(nvrtc_job *job)
{
    int asked = atoi(job->request->arch + 3), number = asked;
    job->cubin = job->request->kind == HDRT_CC_CUBIN;
    job->lto = job->request->kind == HDRT_CC_LTO_IR;
    snprintf(job->arch, sizeof job->arch, "%s", job->request->arch);
    if (knows(job->state, asked))
        return true;
    number = job->request->arch_lower != HDRT_CC_LOWER_NOT ? highest_below(job->state, asked) : 0;
    if (job->request->arch_lower == HDRT_CC_LOWER_CUBIN && number / 10 != asked / 10)
        number = 0;
    if (number == 0) {
        refuse_target(job);
        return false;
    }
    snprintf(job->arch, sizeof job->arch, "sm_%d", number);
    job->cubin = job->cubin && number / 10 == asked / 10;
    return true;
}

/* -- one compile --------------------------------------------------------------------------------------------------- */

static bool is_target_option(const char *option)
{
    const char *name = option + (option[0] == '-') + (option[0] == '-' && option[1] == '-');
    return strncmp(name, "arch", 4) == 0 || strncmp(name, "gpu-architecture", 16) == 0;
}

static bool has_option(const hdrt__cc_request *request, const char *name)
{
    for (size_t i = 0; i < request->options.count; i++)
        if (strstr(request->options.items[i], name) == request->options.items[i] + strspn(request->options.items[i], "-"))
            return true;
    return false;
}

static bool build_options(const nvrtc_job *job, hdrt__cc_arguments *out)
{
    const hdrt__cc_request *request = job->request;
    for (size_t i = 0; i < request->options.count; i++) {
        if (is_target_option(request->options.items[i])) {
            hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_OPTION, "'%s': the target is given apart from the options",
                                request->options.items[i]);
            return false;
        }
        hdrt__cc_arguments_add(out, "%s", request->options.items[i]);
    }
    hdrt__cc_arguments_add(out, "--gpu-architecture=%s%s", job->cubin ? "sm_" : "compute_", job->arch + 3);
    if (job->lto)
        hdrt__cc_arguments_add(out, "-dlto");
    if (job->state->takes_no_cache && !has_option(request, "no-cache"))
        hdrt__cc_arguments_add(out, "-no-cache"); /* it would initialise the driver, and be a second cache */
    if (job->state->takes_random_seed && request->random_seed != NULL && !has_option(request, "frandom-seed"))
        hdrt__cc_arguments_add(out, "-frandom-seed=%s", request->random_seed);
    if (out->failed)
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_MEMORY, "out of memory while preparing the compile");
    return !out->failed;
}

static void append_log(nvrtc_job *job)
{
    size_t size = 0;
    if (job->state->table.nvrtcGetProgramLogSize(job->program, &size) != HDRT__NVRTC_SUCCESS || size <= 1)
        return;
    char *text = malloc(size + 1);
    if (text == NULL) {
        job->reply->log.failed = true;
        return;
    }
    text[size] = '\0';
    if (job->state->table.nvrtcGetProgramLog(job->program, text) == HDRT__NVRTC_SUCCESS)
        hdrt__cc_buffer_append(&job->reply->log, text, strlen(text));
    free(text);
}

/* Create and compile once, under guard, in the request's folder. */
static hdrt__nvrtc_result compile_once(nvrtc_job *job, const hdrt__cc_arguments *options)
{
    const hdrt__nvrtc_table *table = &job->state->table;
    hdrt__cc_files_end(&job->files);
    hdrt__cc_files_begin(&job->files, job->request);
    const hdrt__cc_request *request = job->request;
    hdrt__nvrtc_result result =
        table->nvrtcCreateProgram(&job->program, request->source, request->name, (int)request->header_names.count,
                                  request->header_texts.items, request->header_names.items);
    for (size_t i = 0; i < request->expressions.count && result == HDRT__NVRTC_SUCCESS; i++)
        result = table->nvrtcAddNameExpression(job->program, request->expressions.items[i]);
    if (result != HDRT__NVRTC_SUCCESS)
        return result;
    hdrt__cc_watch_begin(&job->files);
    result = table->nvrtcCompileProgram(job->program, (int)options->count, (const char *const *)options->items);
    hdrt__cc_watch_end();
    append_log(job);
    return result;
}

static bool log_has(const nvrtc_job *job, const char *words)
{
    const hdrt__cc_buffer *log = &job->reply->log;
    return log->size > 0 && memmem(log->bytes, log->size, words, strlen(words)) != NULL;
}

/* It lists numbers only, so a letter that it does not know comes out like this (11 to 12, 13). */
static bool refuses_target(const nvrtc_job *job)
{
    return log_has(job, "--nv_arch") || log_has(job, "gpu-architecture");
}

/* After a failure: give up one of our own additions if that is what it does not know. true: try again. */
static bool drop_an_addition(nvrtc_job *job)
{
    hdrt__cc_nvrtc_state *state = job->state;
    char *letter = job->arch + 3 + strspn(job->arch + 3, "0123456789");
    if (state->takes_no_cache && log_has(job, "no-cache"))
        state->takes_no_cache = false;
    else if (state->takes_random_seed && log_has(job, "frandom-seed"))
        state->takes_random_seed = false;
    else if (refuses_target(job) && *letter != '\0' && job->request->arch_lower)
        *letter = '\0';
    else
        return false;
    return true;
}

/* false: it did not come to a compile; the reply says why. */
static bool run(nvrtc_job *job, hdrt__nvrtc_result *result)
{
    for (;;) {
        hdrt__cc_arguments options = {0};
        bool built = build_options(job, &options);
        if (built) {
            hdrt__cc_reply_command(job->reply, job->state->path, (const char *const *)options.items, options.count);
            *result = compile_once(job, &options);
        }
        hdrt__cc_arguments_free(&options);
        if (!built)
            return false;
        bool refused = *result == HDRT__NVRTC_INVALID_OPTION ||
                       (*result == HDRT__NVRTC_COMPILATION && log_has(job, "Command-line error"));
        if (!refused || !drop_an_addition(job))
            return true;
        hdrt__cc_buffer_free(&job->reply->log);
        job->state->table.nvrtcDestroyProgram(&job->program);
        job->program = NULL;
    }
}

/* -- what came of it ----------------------------------------------------------------------------------------------- */

static void fail_by_result(nvrtc_job *job, hdrt__nvrtc_result result, const hdrt__cc_errors *errors)
{
    const hdrt__cc_request *request = job->request;
    const char *words = job->state->table.nvrtcGetErrorString(result);
    bool placed = errors->count > 0 && errors->first.file != NULL;
    bool starved = log_has(job, "out of memory") || log_has(job, "Loop in catastrophic error processing");
    if (result == HDRT__NVRTC_OUT_OF_MEMORY || (!placed && starved))
        hdrt__cc_reply_fail_by_memory(job->reply, request);
    else if (errors->count == 0 && refuses_target(job))
        refuse_target(job);
    else if (result == HDRT__NVRTC_COMPILATION)
        hdrt__cc_report_first_error(job->reply, HDRT_CC_STATUS_COMPILE, errors, words);
    else if (result == HDRT__NVRTC_INVALID_OPTION)
        hdrt__cc_report_first_error(job->reply, HDRT_CC_STATUS_OPTION, errors, words);
    else if (result == HDRT__NVRTC_BUILTIN_OPERATION_FAILURE)
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_NO_COMPILER,
                            "'%s' cannot use its builtins (%s): libnvrtc-builtins of the same version belongs "
                            "beside it",
                            request->compiler_path,
                            request->builtins_path != NULL ? request->builtins_path : "not found");
    else
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_CRASHED, "'%s' failed inside: %s%s%.*s", request->compiler_path,
                            words, errors->count > 0 ? ": " : "", (int)errors->first.text_length,
                            errors->count > 0 ? errors->first.text : "");
}

typedef hdrt__nvrtc_result size_call(hdrt__nvrtc_program program, size_t *size);
typedef hdrt__nvrtc_result code_call(hdrt__nvrtc_program program, char *bytes);

/* Put code into the reply straight from the library. false: it has none. */
static bool take_code(nvrtc_job *job, uint32_t tag, size_call *get_size, code_call *get_code)
{
    size_t size = 0;
    if (get_size == NULL || get_code == NULL || get_size(job->program, &size) != HDRT__NVRTC_SUCCESS || size == 0)
        return false;
    char *bytes = malloc(size);
    if (bytes == NULL) {
        job->reply->fields.failed = true;
        return true;
    }
    bool got = get_code(job->program, bytes) == HDRT__NVRTC_SUCCESS;
    if (got && tag == HDRT_CC_CODE_PTX && bytes[size - 1] == '\0')
        size--;
    if (got)
        hdrt__cc_buffer_field(&job->reply->fields, tag, bytes, size);
    free(bytes);
    return got && size > 0;
}

/* Names that stand for no file, although NVRTC asks the system after them. */
static void forget_pseudo_files(nvrtc_job *job)
{
    static const char *const names[] = {"__nv_nvrtc_builtin_header.h", "__nv_name_map"};
    hdrt__cc_files_forget_unopened(&job->files, job->request->name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        hdrt__cc_files_forget_unopened(&job->files, names[i]);
}

static bool take_lowered_names(nvrtc_job *job)
{
    for (size_t i = 0; i < job->request->expressions.count; i++) {
        const char *expression = job->request->expressions.items[i], *name = NULL;
        hdrt__nvrtc_result result = job->state->table.nvrtcGetLoweredName(job->program, expression, &name);
        if (result != HDRT__NVRTC_SUCCESS || name == NULL || *name == '\0') {
            hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_COMPILE, "'%s' gave no name for the expression '%s': %s",
                                job->state->path, expression, job->state->table.nvrtcGetErrorString(result));
            return false;
        }
        hdrt__cc_reply_lowered(job->reply, expression, name, strlen(name));
    }
    return true;
}

/*
 * Whether what the library reads is recorded. A source whose headers are all in memory looks at no file, so that
 * nothing recorded says nothing; then the library is made to look for a header that is nowhere.
 */
static bool is_watched(nvrtc_job *job)
{
    static const char source[] = "#include \"hdrt/there-is-no-such-header\"\n";
    const hdrt__nvrtc_table *table = &job->state->table;
    hdrt__nvrtc_program program = NULL;
    hdrt__cc_files files;
    if (job->state->is_watched || hdrt__cc_files_are_recorded(&job->files)) {
        job->state->is_watched = true;
        return true;
    }
    if (job->request->header_names.count == 0)
        return false;
    hdrt__cc_files_begin(&files, job->request);
    if (table->nvrtcCreateProgram(&program, source, "probe.cu", 0, NULL, NULL) == HDRT__NVRTC_SUCCESS) {
        hdrt__cc_watch_begin(&files);
        const char *const options[] = {"-no-cache"};
        table->nvrtcCompileProgram(program, job->state->takes_no_cache ? 1 : 0, options);
        hdrt__cc_watch_end();
        table->nvrtcDestroyProgram(&program);
    }
    job->state->is_watched = hdrt__cc_files_are_recorded(&files);
    hdrt__cc_files_end(&files);
    return job->state->is_watched;
}

static void finish(nvrtc_job *job)
{
    const hdrt__nvrtc_table *table = &job->state->table;
    if (job->lto && !take_code(job, HDRT_CC_CODE_LTO_IR, table->nvrtcGetLTOIRSize, table->nvrtcGetLTOIR)) {
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_UNSUPPORTED, "'%s' gave no LTO-IR: that takes NVRTC 12 or newer",
                            job->state->path);
        return;
    }
    bool ptx = !job->lto && take_code(job, HDRT_CC_CODE_PTX, table->nvrtcGetPTXSize, table->nvrtcGetPTX);
    bool cubin = job->cubin && take_code(job, HDRT_CC_CODE_CUBIN, table->nvrtcGetCUBINSize, table->nvrtcGetCUBIN);
    if (!job->lto && (job->cubin ? !cubin : !ptx)) {
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_UNSUPPORTED, "'%s' gave no %s for %s", job->state->path,
                            job->cubin ? "cubin" : "PTX", job->arch);
        return;
    }
    if (!take_lowered_names(job))
        return;
    hdrt__cc_reply_text(job->reply, HDRT_CC_ARCH_USED, "%s", job->arch);
    if (strcmp(job->arch, job->request->arch) != 0)
        hdrt__cc_reply_text(job->reply, HDRT_CC_NOTE, "NVRTC %d.%d does not know %s; compiled for %s%s",
                            job->state->major, job->state->minor, job->request->arch, job->arch,
                            job->request->kind == HDRT_CC_CUBIN && !job->cubin ? ", as PTX that the driver compiles"
                                                                               : "");
    hdrt__cc_refuse_time_macros(job->request, job->reply);
    if (hdrt__cc_includes_anything(job->request) && !is_watched(job))
        hdrt__cc_reply_no_store(job->reply, "the source includes files, but none was recorded");
    forget_pseudo_files(job);
    hdrt__cc_files_report(&job->files, job->reply);
}

static void compile(nvrtc_job *job, int socket)
{
    hdrt__cc_guard guard;
    hdrt__nvrtc_result result = HDRT__NVRTC_SUCCESS;
    if (chdir(job->request->directory) != 0) {
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_IO,
                            "cannot enter the folder '%s', from which relative paths go: %s", job->request->directory,
                            strerror(errno));
        return;
    }
    if (!hdrt__cc_guard_begin(&guard, socket, job->request, job->reply))
        goto leave_folder;
    bool compiled = run(job, &result);
    hdrt__cc_buffer *log = &job->reply->log;
    hdrt__cc_guard_end(&guard, log);
    if (!compiled)
        goto destroy_program;
    hdrt__cc_buffer text = *log; /* the errors point into it while notes are appended to the log */
    *log = (hdrt__cc_buffer){0};
    hdrt__cc_errors errors = hdrt__cc_report_diagnostics(job->reply, hdrt__cc_parse_nvrtc, &text, job->request->name);
    hdrt__cc_buffer_append(log, text.bytes, text.size);
    hdrt__cc_files_explain_refusals(&job->files, job->reply);
    if (result == HDRT__NVRTC_SUCCESS)
        finish(job);
    else
        fail_by_result(job, result, &errors);
    hdrt__cc_buffer_free(&text);

destroy_program:
    if (job->program != NULL)
        job->state->table.nvrtcDestroyProgram(&job->program);
leave_folder:
    if (chdir("/") != 0)
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_IO, "cannot return to the root folder: %s", strerror(errno));
}

void hdrt__cc_compile_nvrtc(hdrt__cc_nvrtc_state **state, int socket, const hdrt__cc_request *request,
                            hdrt__cc_reply *reply)
{
    if (*state != NULL && strcmp((*state)->path, request->compiler_path) != 0) {
        hdrt__cc_nvrtc_state_free(*state); /* its library stays open */
        *state = NULL;
    }
    if (*state != NULL && !is_still_the_same(*state))
        _exit(0);
    if (*state == NULL)
        *state = open_library(request, reply);
    if (*state == NULL)
        return;
    const hdrt__nvrtc_table *table = &(*state)->table;
    if (request->kind == HDRT_CC_LTO_IR && (table->nvrtcGetLTOIR == NULL || table->nvrtcGetLTOIRSize == NULL)) {
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_UNSUPPORTED, "'%s' is NVRTC %d.%d, which makes no LTO-IR: 12.0 does",
                            request->compiler_path, (*state)->major, (*state)->minor);
        return;
    }
    if (request->expressions.count > 0 &&
        (table->nvrtcAddNameExpression == NULL || table->nvrtcGetLoweredName == NULL)) {
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_UNSUPPORTED, "'%s' takes no name expressions",
                            request->compiler_path);
        return;
    }
    nvrtc_job job = {.state = *state, .request = request, .reply = reply};
    hdrt__cc_files_begin(&job.files, request);
    if (choose_target(&job))
        compile(&job, socket);
    hdrt__cc_files_end(&job.files);
    hdrt__cc_reply_text(reply, HDRT_CC_COMPILER_VERSION, "NVRTC %d.%d", (*state)->major, (*state)->minor);
}
