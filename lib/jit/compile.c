/* SPDX-License-Identifier: MIT */
#include "jit/jit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/number.h"
#include "base/status.h"
#include "compiler/protocol.h"
#include "config.h"
#include "driver/fork.h"
#include "jit/differ.h"
#include "jit/flight.h"
#include "jit/key.h"
#include "jit/lookup.h"
#include "jit/message.h"
#include "jit/state.h"

#define DEFAULT_ARCH "sm_80"
#define LAST_WORDS 512u /* of a compiler that crashed, in the message */
#define LONGEST_WAIT_NS (30 * UINT64_C(1000000000)) /* for another process's compile of the same key */
#define FLIGHTS 3

/* One compile on its way. */
struct job {
    hdrt__jit *jit;
    hdrt__request request;
    hdrt__digest key;
    hdrt__chosen_compiler chosen;
    bool nvidia, dependencies, list_failed;
    hdrt__cancel *cancel;
    hdrt__result *result;
    uint64_t began_ns;
};

static hdrt_status begin_job(struct job *job, const hdrt__input *input, const hdrt__target *target)
{
    job->nvidia = target->nvidia;
    hdrt_status status = hdrt__jit_choose(job->jit, input->asked.compiler, target, &job->chosen);
    if (status != HDRT_OK)
        return status;
    hdrt_compiler compiler = job->chosen.compiler;
    hdrt_code_kind kind = input->asked.kind;
    if (compiler == HDRT_COMPILER_CLANG && (kind == HDRT_CODE_CUBIN || kind == HDRT_CODE_LTO_IR))
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED, "clang makes PTX, no %s: ask for PTX, or use NVRTC",
                          kind == HDRT_CODE_CUBIN ? "cubin" : "LTO-IR");
    if (kind == HDRT_CODE_AUTO)
        kind = compiler == HDRT_COMPILER_NVRTC ? HDRT_CODE_CUBIN : HDRT_CODE_PTX;
    const char *arch = input->arch ? input->arch : target->arch ? target->arch : DEFAULT_ARCH;
    job->request = (hdrt__request){
        .compiler = compiler,
        .kind = kind,
        .arch = arch,
        .lower_arch = input->arch && !input->asked.lower_arch                        ? HDRT_CC_LOWER_NOT
                      : job->chosen.newer_than_driver && kind == HDRT_CODE_CUBIN ? HDRT_CC_LOWER_CUBIN
                                                                                 : HDRT_CC_LOWER_ANY,
        .source = input->text,
        .source_size = input->size,
        .name = input->name,
        .directory = input->directory,
        .options = &input->options,
        .headers = input->headers,
        .header_count = input->header_count,
        .names = input->names,
        .name_count = input->name_count,
        .identity = &job->chosen.identity,
        .identity_lines = job->chosen.identity_lines,
        .libdevice = job->chosen.libdevice,
        .time_limit_ms = input->asked.time_limit_ms ? input->asked.time_limit_ms : HDRT__TIME_LIMIT_MS,
        .memory_limit_bytes = input->asked.memory_limit_bytes ? input->asked.memory_limit_bytes
                                                              : HDRT__MEMORY_LIMIT_BYTES,
    };
#ifdef HDRT_SANITIZED
    job->request.memory_limit_bytes = 0; /* sanitizers reserve terabytes of address space */
#endif
    job->key = hdrt__request_key(&job->request);
    return HDRT_OK;
}

/* ---- compiling -------------------------------------------------------------------------------------------------- */

static hdrt_status ask_worker(struct job *job, const char *libdevice, hdrt__reply *out_reply)
{
    hdrt__jit *jit = job->jit;
    hdrt__worker_pool *pool = NULL;
    hdrt__buffer request = HDRT__BUFFER_INIT;
    char seed[2 * HDRT__DIGEST_SIZE + 1];
    unsigned char *reply = NULL;
    size_t size = 0;
    if (job->request.compiler == HDRT_COMPILER_CLANG && !jit->prelude)
        return hdrt__jit_missing_companion(jit, "the device prelude hdrt_device.h");
    hdrt_status status = hdrt__jit_pool(jit, &pool);
    if (status != HDRT_OK)
        return status;
    hdrt__digest_hex(&job->key, seed);
    seed[16] = '\0';
    hdrt__compile_setting setting = {&job->chosen.found, jit->prelude, jit->recorder, libdevice, seed};
    hdrt__message_request(&job->request, &setting, &request);
    if (request.failed)
        status = hdrt__fail_memory(job->request.source_size, "a compile request");
    uint64_t began = hdrt__now_ns();
    if (status == HDRT_OK)
        status = hdrt__worker_exchange(pool, request.bytes, request.size, job->request.time_limit_ms, job->cancel,
                                       &reply, &size);
    if (status == HDRT_OK)
        status = hdrt__message_reply(reply, size, out_reply);
    if (status == HDRT_OK)
        hdrt__log(HDRT_LOG_DEBUG, "compiled '%s' for %s by %s in %.1f ms: worker's status %u", job->request.name,
                  out_reply->code->arch, job->chosen.found.path, (double)(hdrt__now_ns() - began) / 1e6,
                  out_reply->status);
    free(reply);
    hdrt__buffer_free(&request);
    return status;
}

/* "file:line:column: text" of the first error, as every compiler user expects it first. */
static hdrt_status compile_error(const hdrt__code *code, const char *message)
{
    uint32_t errors = 0;
    const hdrt_diagnostic *first = NULL;
    for (uint32_t i = 0; i < code->diagnostic_count; i++)
        if (code->diagnostics[i].severity == HDRT_SEVERITY_ERROR && errors++ == 0)
            first = &code->diagnostics[i];
    hdrt__buffer text = HDRT__BUFFER_INIT;
    if (first && first->file) {
        hdrt__buffer_text(&text, first->file);
        if (first->line)
            hdrt__buffer_format(&text, ":%u", first->line);
        if (first->line && first->column)
            hdrt__buffer_format(&text, ":%u", first->column);
        hdrt__buffer_text(&text, ": ");
    }
    hdrt__buffer_text(&text, first ? first->text : *message ? message : code->log);
    if (errors > 1)
        hdrt__buffer_format(&text, " (and %u more error%s)", errors - 1, errors > 2 ? "s" : "");
    char *words = hdrt__buffer_take(&text, NULL);
    hdrt_status status = hdrt__fail_with(HDRT_ERROR_COMPILE, words ? words : "the source has errors");
    free(words);
    return status;
}

/* With the last that the compiler said, unless the message has it already. */
static hdrt_status crashed(const char *message, const char *log)
{
    size_t size = strlen(log);
    while (size > 0 && strchr(" \t\r\n", log[size - 1]))
        size--;
    size_t shown = size < LAST_WORDS ? size : LAST_WORDS;
    hdrt__buffer text = HDRT__BUFFER_INIT;
    hdrt__buffer_text(&text, message);
    if (shown > 0 && !memmem(message, strlen(message), log + size - shown, shown))
        hdrt__buffer_format(&text, "; the last that it said: %s%.*s", shown < size ? "..." : "", (int)shown,
                            log + size - shown);
    hdrt_status status = hdrt__fail_with(HDRT_ERROR_COMPILER_CRASHED, text.failed ? message : (char *)text.bytes);
    hdrt__buffer_free(&text);
    return status;
}

hdrt_status hdrt__jit_judge(const hdrt__reply *reply)
{
    static const struct {
        enum hdrt_cc_status theirs;
        hdrt_status ours;
    } statuses[] = {
        {HDRT_CC_STATUS_OPTION, HDRT_ERROR_INVALID_ARGUMENT}, {HDRT_CC_STATUS_NO_COMPILER, HDRT_ERROR_NO_COMPILER},
        {HDRT_CC_STATUS_CRASHED, HDRT_ERROR_COMPILER_CRASHED}, {HDRT_CC_STATUS_LIMIT, HDRT_ERROR_COMPILE_LIMIT},
        {HDRT_CC_STATUS_UNSUPPORTED, HDRT_ERROR_UNSUPPORTED},  {HDRT_CC_STATUS_PROTOCOL, HDRT_ERROR_COMPANION},
        {HDRT_CC_STATUS_MEMORY, HDRT_ERROR_OUT_OF_MEMORY},     {HDRT_CC_STATUS_IO, HDRT_ERROR_IO},
    };
    if (reply->status == HDRT_CC_STATUS_OK && (reply->code->ptx || reply->code->cubin || reply->code->lto_ir))
        return HDRT_OK;
    if (reply->status == HDRT_CC_STATUS_COMPILE)
        return compile_error(reply->code, reply->message);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (reply->status == statuses[i].theirs) {
            const char *words = *reply->message ? reply->message : hdrt_status_text(statuses[i].ours);
            if (statuses[i].ours == HDRT_ERROR_COMPILER_CRASHED)
                return crashed(words, reply->code->log);
            return hdrt__fail_with(statuses[i].ours, words);
        }
    return hdrt__fail(HDRT_ERROR_COMPANION, "the compile worker answered with status %u and no code", reply->status);
}

static bool add_note(hdrt__code *code, const char *text)
{
    hdrt__buffer note = HDRT__BUFFER_INIT;
    hdrt__buffer_format(&note, "%s%s%s", code->note ? code->note : "", code->note ? "; " : "", text);
    char *words = hdrt__buffer_take(&note, NULL);
    if (!words)
        return false;
    free(code->note);
    code->note = words;
    return true;
}

/* Where the code came from, for people who look at image files. */
static bool add_origin(hdrt__code *code, const hdrt__request *request)
{
    hdrt__buffer options = HDRT__BUFFER_INIT;
    hdrt__buffer_text(&options, "");
    for (uint32_t i = 0; i < request->options->count; i++)
        hdrt__buffer_format(&options, "%s%s", i ? " " : "", request->options->items[i]);
    char *name = strdup(request->name), *words = hdrt__buffer_take(&options, NULL);
    if (!name || !words) {
        free(name);
        free(words);
        return false;
    }
    free(code->source_name);
    free(code->options);
    code->source_name = name;
    code->options = words;
    return true;
}

/* Completes the code of a good reply: what it is, its table, and what the caller should know. */
static hdrt_status complete(struct job *job, hdrt__reply *reply)
{
    hdrt__code *code = reply->code;
    code->compiler = job->request.compiler;
    code->kind = code->lto_ir ? HDRT_CODE_LTO_IR : code->cubin ? HDRT_CODE_CUBIN : HDRT_CODE_PTX;
    char *path = strdup(job->chosen.found.path);
    if (path) {
        free(code->compiler_path);
        code->compiler_path = path;
    }
    hdrt_status status = hdrt__code_read_table(code);
    bool noted = path != NULL && add_origin(code, &job->request);
    if (status == HDRT_OK && code->table.kernel_count == 0 && !code->lto_ir)
        noted = noted && add_note(code, job->request.source_size ? "the source has no __global__ function: there is no "
                                                                   "kernel in the code" : "the source is empty");
    if (status == HDRT_OK && code->unresolved && job->nvidia)
        noted = noted && add_note(code, "the code calls functions that NVIDIA's driver does not have, since no "
                                        "libdevice.10.bc was found to link: ") && add_note(code, code->unresolved);
    if (status == HDRT_OK && !noted)
        status = hdrt__fail_memory(0, "a compile's result");
    return status;
}

/* Why the result must not be stored; NULL if it may be. */
static const char *unfit_to_store(struct job *job, hdrt__reply *reply, hdrt__buffer *text)
{
    const hdrt__request *request = &job->request;
    if (reply->no_store)
        return reply->no_store;
    if (hdrt__has_time_macro(request->source, request->source_size))
        return "the source asks for the date or time";
    for (uint32_t i = 0; i < request->header_count; i++)
        if (hdrt__has_time_macro(request->headers[i].text, strlen(request->headers[i].text)))
            return "an in-memory header asks for the date or time";
    for (uint32_t i = 0; i < request->options->count; i++)
        if (hdrt__has_time_macro(request->options->items[i], strlen(request->options->items[i])))
            return "an option asks for the date or time";
    if (reply->record.dependency_count == 0 && reply->record.absent_count == 0 && request->header_count == 0 &&
        (request->options->includes || memmem(request->source, request->source_size, "include", 7)))
        return "the source includes files, but none was seen to be read";
    if (!hdrt__jit_still(job->jit, &job->chosen))
        return "the compiler changed during the compile";
    return hdrt__record_settle(&reply->record, job->began_ns, text);
}

static void store_code(struct job *job, hdrt__reply *reply, hdrt__manifest *memory, const hdrt__miss *miss)
{
    hdrt__buffer text = HDRT__BUFFER_INIT;
    const char *unfit = unfit_to_store(job, reply, &text);
    if (unfit) {
        hdrt__log(HDRT_LOG_DEBUG, "'%s' is not cached: %s", job->request.name, unfit);
        hdrt__stats_count(&job->jit->stats, HDRT__STAT_NOT_CACHEABLE, 1);
    } else {
        hdrt__outcome outcome = {&job->request, &job->key, &reply->record, reply->code, miss, job->began_ns};
        bool stored = hdrt__keep(job->jit, &outcome, memory);
        hdrt__stats_count(&job->jit->stats, stored ? HDRT__STAT_STORED : HDRT__STAT_STORE_FAILURES, 1);
    }
    hdrt__buffer_free(&text);
}

static hdrt_status compile(struct job *job, hdrt__reply *reply)
{
    job->began_ns = hdrt__wall_ns();
    hdrt_status status = ask_worker(job, NULL, reply);
    /* Most kernels need nothing of libdevice, and linking it takes clang tens of milliseconds. */
    if (status == HDRT_OK && reply->status == HDRT_CC_STATUS_OK && reply->missing_libdevice && job->chosen.libdevice) {
        hdrt__reply_free(reply);
        status = ask_worker(job, job->chosen.libdevice, reply);
    }
    if (status != HDRT_OK)
        return status;
    status = hdrt__jit_judge(reply);
    if (status == HDRT_OK && job->request.kind == HDRT_CODE_CUBIN && !reply->code->cubin && !job->request.lower_arch)
        status = hdrt__fail(HDRT_ERROR_UNSUPPORTED, "NVRTC made no cubin for %s, only PTX", job->request.arch);
    return status == HDRT_OK ? complete(job, reply) : status;
}

/* How long to wait for whoever else compiles this: no longer than a compile may take. */
static uint64_t longest_wait(const struct job *job)
{
    uint64_t limit = (uint64_t)job->request.time_limit_ms * 1000000u;
    return hdrt__now_ns() + (limit < LONGEST_WAIT_NS ? limit : LONGEST_WAIT_NS);
}

/* A compile under way: what it looks for, and why it has not found it. */
struct search {
    hdrt__manifest *memory; /* the claimed manifest; NULL: none */
    hdrt__miss miss;
    uint64_t deadline_ns; /* of waiting for others */
};

static void add_dependency(void *context, const char *path, const hdrt__digest *digest)
{
    struct job *job = context;
    hdrt__result *result = job->result;
    if (!digest || job->list_failed)
        return;
    char **bigger = reallocarray(result->dependencies, result->dependency_count + 1u, sizeof(*bigger));
    if (bigger)
        result->dependencies = bigger;
    job->list_failed = !bigger || !(bigger[result->dependency_count] = strdup(path));
    result->dependency_count += !job->list_failed;
}

/* The files that a compile just read, for who asked. */
static void list_dependencies(struct job *job, const hdrt__record *record)
{
    for (uint32_t i = 0; job->dependencies && i < record->dependency_count; i++)
        add_dependency(job, record->dependencies[i].path, &record->dependencies[i].digest);
}

static bool look_up(struct job *job, struct search *search)
{
    hdrt__files files = {0};
    job->result->code = hdrt__look_up(job->jit, &job->key, search->memory, &search->miss,
                                      job->dependencies ? &files : NULL);
    if (files.bytes)
        hdrt__files_each(&files, add_dependency, job);
    hdrt__files_free(&files);
    return job->result->code != NULL;
}

static bool cancel_asked(void *context)
{
    return hdrt__cancel_asked(context);
}

/*
 * Lets one process compile a key while others wait for it: true if another did. The lock, if *flight holds one, is to
 * be kept over the compile.
 */
static bool wait_for_others(struct job *job, struct search *search, hdrt__flight *flight)
{
    hdrt__flight_result result = HDRT__FLIGHT_LANDED;
    /* What takes the time into the code is never stored: nobody can wait for it. */
    if (hdrt__has_time_macro(job->request.source, job->request.source_size))
        return false;
    for (unsigned i = 0; i < FLIGHTS && result == HDRT__FLIGHT_LANDED; i++) {
        result = hdrt__flight_begin(job->jit->store, &job->key, search->deadline_ns, cancel_asked, job->cancel, flight);
        if (result != HDRT__FLIGHT_LATE && look_up(job, search)) {
            hdrt__stats_count(&job->jit->stats, HDRT__STAT_SHARED_COMPILES, 1);
            return true;
        }
    }
    return false;
}

/* A key that nobody compiled before: what differs from the nearest that somebody did. */
static void explain_new(struct job *job, hdrt__miss *miss)
{
    hdrt__fields fields;
    if (miss->reason != HDRT_CACHE_NEW || !hdrt__fields_of(&job->request, &fields))
        return;
    hdrt__buffer_free(&miss->text);
    miss->reason = hdrt__explain_new(job->jit->store, job->request.name, &fields, &miss->text);
    hdrt__fields_free(&fields);
}

static hdrt_status compile_and_store(struct job *job, bool use_cache, struct search *search)
{
    hdrt__reply reply = {0};
    hdrt__stats *stats = &job->jit->stats;
    const hdrt__miss *miss = &search->miss;
    uint64_t began = hdrt__now_ns();
    hdrt__log(HDRT_LOG_DEBUG, "'%s': not from the cache: %s%s%s", job->request.name,
              hdrt_cache_reason_text(miss->reason), *hdrt__miss_words(miss) ? ": " : "", hdrt__miss_words(miss));
    hdrt_status status = compile(job, &reply);
    if (status == HDRT_OK) {
        hdrt__stats_count(stats, HDRT__STAT_COMPILES, 1);
        hdrt__stats_count(stats, HDRT__STAT_COMPILE_NS, hdrt__now_ns() - began);
        hdrt__stats_count(stats, HDRT__STAT_MISSES + (unsigned)miss->reason, 1);
        reply.code->reason = miss->reason;
        reply.code->reason_words = strdup(hdrt__miss_words(miss));
        list_dependencies(job, &reply.record);
        if (use_cache)
            store_code(job, &reply, search->memory, miss);
    }
    if (status == HDRT_OK || status == HDRT_ERROR_COMPILE) {
        job->result->code = reply.code;
        reply.code = NULL;
    }
    hdrt__reply_free(&reply);
    return status;
}

/* Cache or compiler, with the key claimed. */
static hdrt_status obtain(struct job *job, bool use_cache)
{
    hdrt__jit *jit = job->jit;
    hdrt__flight flight = {-1, 0};
    struct search search = {.miss = {.reason = use_cache ? HDRT_CACHE_NEW : HDRT_CACHE_OFF},
                            .deadline_ns = longest_wait(job)};
    hdrt_status status = HDRT_OK;
    if (use_cache)
        search.memory = hdrt__memory_claim(jit->memory, &job->key, search.deadline_ns);
    job->result->from_cache = use_cache && (look_up(job, &search) || wait_for_others(job, &search, &flight));
    if (job->result->from_cache) {
        hdrt__log(HDRT_LOG_DEBUG, "'%s': found in the cache", job->request.name);
    } else if (hdrt__cancel_asked(job->cancel)) {
        status = hdrt__cancelled();
    } else {
        explain_new(job, &search.miss);
        status = compile_and_store(job, use_cache, &search);
    }
    hdrt__flight_end(&flight);
    hdrt__memory_release(jit->memory, search.memory);
    hdrt__miss_free(&search.miss);
    return job->list_failed ? hdrt__fail_memory(0, "the list of files that a compile read") : status;
}

void hdrt__result_free(hdrt__result *result)
{
    hdrt__code_drop(result->code);
    for (uint32_t i = 0; i < result->dependency_count; i++)
        free(result->dependencies[i]);
    free(result->dependencies);
    *result = (hdrt__result){0};
}

static hdrt_status check_forked(const hdrt__jit *jit)
{
    if (hdrt__forked(jit->fork_generation))
        return hdrt__fail(HDRT_ERROR_FORKED, "the runtime was made before this process was forked: make a new one");
    return HDRT_OK;
}

hdrt_status hdrt__jit_obtain(hdrt__jit *jit, const hdrt__input *input, const hdrt__target *target, bool dependencies,
                             hdrt__cancel *cancel, hdrt__result *out_result)
{
    struct job job = {.jit = jit, .dependencies = dependencies, .cancel = cancel, .result = out_result};
    int cancel_state;
    *out_result = (hdrt__result){0};
    hdrt_status status = check_forked(jit);
    if (status != HDRT_OK)
        return status;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* locks and memory are held over system calls */
    status = begin_job(&job, input, target);
    if (status == HDRT_OK)
        status = obtain(&job, !input->asked.no_cache);
    if (status == HDRT_OK && !input->asked.no_cache)
        hdrt__recording_add(jit->recording, &job.key, input, &job.request);
    hdrt__chosen_free(&job.chosen);
    pthread_setcancelstate(cancel_state, NULL);
    if (status != HDRT_OK && status != HDRT_ERROR_COMPILE)
        hdrt__result_free(out_result);
    return status;
}

hdrt_status hdrt__jit_compile(hdrt__jit *jit, const hdrt_source *source, const hdrt_compile_options *options,
                              const hdrt__target *target, hdrt__code **out_code, bool *out_from_cache)
{
    hdrt__input input;
    hdrt__result result = {0};
    int cancel_state;
    *out_code = NULL;
    *out_from_cache = false;
    hdrt_status status = check_forked(jit);
    if (status != HDRT_OK)
        return status;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    status = hdrt__input_read(source, options, &input);
    if (status == HDRT_OK) {
        status = hdrt__jit_obtain(jit, &input, target, false, NULL, &result);
        *out_code = result.code;
        *out_from_cache = result.from_cache;
        hdrt__input_free(&input);
    }
    pthread_setcancelstate(cancel_state, NULL);
    return status;
}

hdrt_status hdrt__jit_request(hdrt__jit *jit, const hdrt__input *input, const hdrt__target *target,
                              hdrt__request_visitor visitor, void *context)
{
    struct job job = {.jit = jit};
    int cancel_state;
    hdrt_status status = check_forked(jit);
    if (status != HDRT_OK)
        return status;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    status = begin_job(&job, input, target);
    if (status == HDRT_OK)
        status = visitor(context, &job.request, &job.key);
    hdrt__chosen_free(&job.chosen);
    pthread_setcancelstate(cancel_state, NULL);
    return status;
}

void hdrt__jit_reject(hdrt__jit *jit, const hdrt__code *code)
{
    static const hdrt__digest unnamed;
    if (hdrt__digest_equal(&code->name, &unnamed))
        return;
    hdrt__log(HDRT_LOG_WARN, "kernel cache: the driver did not take cached code, which is set aside: %s",
              hdrt_last_error());
    hdrt__memory_reject(jit->memory, &code->name);
    hdrt__store_quarantine(jit->store, &code->name);
}

hdrt_status hdrt__jit_unresolved(const hdrt__code *code)
{
    if (!code->unresolved)
        return HDRT_OK;
    return hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                      "the code calls functions that nobody defines: %s. Those that begin with __nv_ are in NVIDIA's "
                      "libdevice.10.bc, which was not found: set CUDA_HOME to a CUDA toolkit, or compile with NVRTC",
                      code->unresolved);
}
