/* SPDX-License-Identifier: MIT */
#include "compiler/clang.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/child.h"
#include "compiler/clang_memory.h"
#include "compiler/clang_options.h"
#include "compiler/files.h"
#include "compiler/ptx.h"
#include "compiler/report.h"

/* More PTX than this is nobody's kernel, but a compiler in a loop. */
#define OUTPUT_LIMIT (512ull << 20)
/*
 * Below this, clang crashes or does not start, often without a word of memory: a kernel of a few lines took clang 14
 * between 224 and 256 MiB of address space, clang 19 between 256 and 320.
 */
#define PLAUSIBLE_MEMORY (256ull << 20)
#define SOURCE_PATH "/proc/self/fd/3"
#define RECORDS_FD "4"
#define RECORDER_PATH "/proc/self/fd/5"
#define MACROS_PATH "/proc/self/fd/6"
#define OVERLAY_FD "7"
#define OVERLAY_PATH "/proc/self/fd/" OVERLAY_FD

/* One compile under way. */
typedef struct clang_job {
    hdrt__cc_clang_state *state;
    const hdrt__cc_request *request;
    hdrt__cc_reply *reply;
    hdrt__cc_clang_options options;
    hdrt__cc_files files;
    char *source_folder;
    char arch[16]; /* the target of this attempt */
    int source, recorder, macros;
    hdrt__cc_headers headers;
    size_t names_found; /* of the request's expressions */
    int output, records; /* of this attempt; -1: none */
    hdrt__cc_outcome outcome;
} clang_job;

static int memory_object(const char *name)
{
    return memfd_create(name, MFD_CLOEXEC);
}

/* -- one run ------------------------------------------------------------------------------------------------------- */

/* The flags that take the driver's own choices away come first, those of the request last, so that they win. */
static void build_arguments(const clang_job *job, hdrt__cc_arguments *out)
{
    static const char *const always[] = {
        "-x", "cuda", "--cuda-device-only",
        "--cuda-path=/nonexistent",   /* else it adopts whatever toolkit it finds */
        "-nocudainc", "-nocudalib",
        "-nostdlibinc",               /* no standard headers, as under NVRTC */
        "-Xclang", "-target-feature", "-Xclang", "+ptx75", /* the *_sync builtins; newer targets raise it themselves */
        "-S", "-fno-crash-diagnostics", "-fno-color-diagnostics", "-Wno-unused-command-line-argument",
        "-std=c++17",                 /* 14 to 16 would take C++14, NVRTC takes this */
    };
    const hdrt__cc_request *request = job->request;
    hdrt__cc_arguments_add(out, "%s", request->compiler_path);
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        hdrt__cc_arguments_add(out, "%s", always[i]);
    hdrt__cc_arguments_add(out, "--cuda-gpu-arch=%s", job->arch);
    if (job->options.debug) {
        hdrt__cc_arguments_add(out, "-O0");
        hdrt__cc_arguments_add(out, "-g");
        hdrt__cc_arguments_add(out, "--cuda-noopt-device-debug");
    } else {
        hdrt__cc_arguments_add(out, "-O2");
    }
    if (strpbrk(request->name, "\r\n") != NULL) /* clang 18 and newer put it into line comments */
        hdrt__cc_arguments_add(out, "-fno-verbose-asm");
    if (job->headers.count > 0) {
        hdrt__cc_arguments_add(out, "-ivfsoverlay");
        hdrt__cc_arguments_add(out, OVERLAY_PATH);
        hdrt__cc_arguments_add(out, "-iquote");
        hdrt__cc_arguments_add(out, HDRT__CC_HEADERS_FOLDER);
        hdrt__cc_arguments_add(out, "-I");
        hdrt__cc_arguments_add(out, HDRT__CC_HEADERS_FOLDER);
    }
    if (!job->options.no_source_include) {
        hdrt__cc_arguments_add(out, "-iquote");
        hdrt__cc_arguments_add(out, "%s", job->source_folder);
    }
    hdrt__cc_arguments_add(out, "-isystem");
    hdrt__cc_arguments_add(out, "%s", request->prelude);
    hdrt__cc_arguments_add(out, "-include");
    hdrt__cc_arguments_add(out, "%s/hdrt_device.h", request->prelude);
    if (job->options.macros.size > 0) {
        hdrt__cc_arguments_add(out, "-include");
        hdrt__cc_arguments_add(out, MACROS_PATH);
    }
    if (request->libdevice != NULL) {
        hdrt__cc_arguments_add(out, "-Xclang");
        hdrt__cc_arguments_add(out, "-mlink-builtin-bitcode");
        hdrt__cc_arguments_add(out, "-Xclang");
        hdrt__cc_arguments_add(out, "%s", request->libdevice);
    }
    for (size_t i = 0; i < job->options.arguments.count; i++)
        hdrt__cc_arguments_add(out, "%s", job->options.arguments.items[i]);
    hdrt__cc_arguments_add(out, "-o");
    hdrt__cc_arguments_add(out, "-");
    hdrt__cc_arguments_add(out, SOURCE_PATH);
}

static void end_attempt(clang_job *job)
{
    if (job->output >= 0)
        close(job->output);
    if (job->records >= 0)
        close(job->records);
    job->output = job->records = -1;
    hdrt__cc_buffer_free(&job->outcome.said);
    hdrt__cc_files_end(&job->files);
    hdrt__cc_files_begin(&job->files, job->request);
}

/* false: what the worker itself needed was not to be had; the reply says so. */
static bool attempt(clang_job *job)
{
    const char *const environment[] = {
        "LC_ALL=C",
        "CLANG_NO_DEFAULT_CONFIG=1",
        "LD_PRELOAD=" RECORDER_PATH, /* by descriptor, because a path with a space or colon would be two */
        HDRT__CC_ENV_RECORD_FD "=" RECORDS_FD,
        HDRT__CC_ENV_RECORD_SOURCE "=" SOURCE_PATH,
        HDRT__CC_ENV_RECORD_MACROS "=" MACROS_PATH,
        job->headers.count > 0 ? HDRT__CC_ENV_RECORD_MEMORY "=" OVERLAY_FD : NULL,
        NULL,
    };
    hdrt__cc_arguments arguments = {0};
    build_arguments(job, &arguments);
    if (arguments.failed) {
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_MEMORY, "out of memory while preparing the compile");
        goto free_arguments;
    }
    job->output = memory_object("hdrt-ptx");
    job->records = memory_object("hdrt-records");
    if (job->output < 0 || job->records < 0) {
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_IO, "no memory object for the output: %s", strerror(errno));
        goto free_arguments;
    }
    if (!job->options.no_source_include)
        hdrt__cc_files_look_at_folder(&job->files, job->source_folder);
    for (size_t i = 0; i < job->options.folders.count; i++)
        hdrt__cc_files_look_at_folder(&job->files, job->options.folders.items[i]);
    hdrt__cc_reply_command(job->reply, NULL, (const char *const *)arguments.items, arguments.count);
    hdrt__cc_command command = {
        .argv = (const char *const *)arguments.items, .environment = environment, .directory = job->request->directory,
        .output = job->output, .fds = {job->source, job->records, job->recorder, job->macros, job->headers.overlay},
        .kept = job->headers.fds, .kept_count = job->headers.count,
        .memory_limit = job->request->memory_limit, .file_limit = OUTPUT_LIMIT,
        .deadline_ns = job->request->deadline_ns,
    };
    hdrt__cc_run(&command, &job->outcome);

free_arguments:
    hdrt__cc_arguments_free(&arguments);
    return job->reply->status == HDRT_CC_STATUS_OK;
}

/* -- the target ---------------------------------------------------------------------------------------------------- */

static bool said(const clang_job *job, const char *words)
{
    const hdrt__cc_buffer *text = &job->outcome.said;
    return text->size > 0 && memmem(text->bytes, text->size, words, strlen(words)) != NULL;
}

/* The next target below `arch`: the same without its letter, then the next number. false: there is none. */
static bool lower_target(char arch[16])
{
    static const unsigned known[] = {50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 110, 120};
    char *letter = arch + 3 + strspn(arch + 3, "0123456789");
    if (*letter != '\0') {
        *letter = '\0';
        return true;
    }
    unsigned number = (unsigned)strtoul(arch + 3, NULL, 10), best = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] < number)
            best = known[i];
    if (best > 0)
        snprintf(arch, 16, "sm_%u", best);
    return best > 0;
}

static void refuse_target(clang_job *job)
{
    hdrt__cc_buffer targets = {0};
    hdrt__cc_clang_list_targets(job->request, &targets);
    hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_OPTION, "%s does not know the target %s%s%s%s",
                        job->state->version[0] != '\0' ? job->state->version : job->request->compiler_path,
                        job->request->arch, targets.size > 0 ? "; it knows " : "",
                        targets.size > 0 && !targets.failed ? (const char *)targets.bytes : "",
                        job->request->arch_lower ? ", none of them below it" : "");
    hdrt__cc_buffer_free(&targets);
}

/* Run clang for the target asked for, or for the highest below that it takes. false: the reply says why not. */
static bool run_for_target(clang_job *job)
{
    snprintf(job->arch, sizeof job->arch, "%s", job->request->arch);
    bool lower = job->request->arch_lower;
    while (lower && job->state->first_unknown != 0 &&
           strtoul(job->arch + 3, NULL, 10) >= job->state->first_unknown && lower_target(job->arch))
        continue;
    for (;;) {
        if (!attempt(job))
            return false;
        if (job->outcome.end != HDRT__CC_EXITED || job->outcome.code != 1 ||
            !said(job, "unsupported CUDA gpu architecture"))
            break;
        char *letter = job->arch + 3 + strspn(job->arch + 3, "0123456789");
        if (*letter == '\0')
            job->state->first_unknown = (unsigned)strtoul(job->arch + 3, NULL, 10);
        if (!lower || !lower_target(job->arch)) {
            hdrt__cc_clang_learn_version(job->state, job->request);
            refuse_target(job);
            return false;
        }
        end_attempt(job);
    }
    return true;
}

/* -- what came of it ----------------------------------------------------------------------------------------------- */

static bool ran_out_of_memory(const clang_job *job)
{
    static const char *const words[] = {
        "out of memory", "Out of memory", "Out of space", "annot allocate memory", "bad_alloc", "failed to map segment",
        "memory exhausted", "Insufficient memory",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (said(job, words[i]))
            return true;
    return false;
}

/* A crash is the limit's doing if clang could not live under it, or had come near it. */
static bool crashed_by_memory(const clang_job *job, int number)
{
    uint64_t most = job->request->memory_limit;
    bool crash = number == SIGSEGV || number == SIGBUS || number == SIGABRT || number == SIGILL || number == SIGTRAP ||
                 number == SIGKILL;
    return crash && most > 0 && (most < PLAUSIBLE_MEMORY || job->outcome.peak_bytes > most - most / 4);
}

/* What a failure that names no cause may come from. */
static const char *memory_hint(const clang_job *job, char room[64])
{
    room[0] = '\0';
    if (job->request->memory_limit > 0)
        snprintf(room, 64, " (the memory limit was %llu MiB)", (unsigned long long)job->request->memory_limit >> 20);
    return room;
}

static void fail_by_file_limit(clang_job *job)
{
    unsigned long long most = hdrt__cc_file_limit(OUTPUT_LIMIT);
    hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_LIMIT, "'%s' wrote more than %llu bytes%s and was stopped",
                        job->request->compiler_path, most,
                        most < OUTPUT_LIMIT ? ", the file size limit of this process (ulimit -f)," : "");
}

static void fail_by_signal(clang_job *job, int number)
{
    char hint[64];
    if (number == SIGXFSZ)
        fail_by_file_limit(job);
    else if (ran_out_of_memory(job) || crashed_by_memory(job, number))
        hdrt__cc_reply_fail_by_memory(job->reply, job->request);
    else
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_CRASHED, "'%s' was ended by signal %d (%s)%s%s",
                            job->request->compiler_path, number, strsignal(number),
                            number == SIGKILL ? ", as the kernel does when memory runs out" : "",
                            memory_hint(job, hint));
}

/* Errors of the command line come from the driver and have no place; these are its words. */
static bool is_about_an_option(const hdrt__cc_diagnostic *error)
{
    static const char *const words[] = {
        "unknown argument", "unsupported option", "unsupported argument", "invalid value", "invalid argument",
        "unknown target", "unsupported CUDA gpu architecture", "invalid integral value",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memmem(error->text, error->text_length, words[i], strlen(words[i])) != NULL)
            return error->file == NULL;
    return false;
}

static void fail_by_status(clang_job *job, const hdrt__cc_errors *errors, int status)
{
    const hdrt__cc_diagnostic *error = &errors->first;
    const char *path = job->request->compiler_path;
    const hdrt__cc_buffer *text = &job->outcome.said;
    const char *line = text->size > 0 ? (const char *)text->bytes : "";
    int length = (int)strcspn(line, "\r\n");
    char hint[64];
    if (status > 128 && status < 160) /* a signal, caught by clang's own crash handling or by a shell */
        fail_by_signal(job, status - 128);
    else if (errors->count == 0 && ran_out_of_memory(job))
        hdrt__cc_reply_fail_by_memory(job->reply, job->request);
    else if (status == 127)
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_NO_COMPILER, "'%s' cannot run: %.*s%s", path, length, line,
                            memory_hint(job, hint));
    else if (status == 1 && errors->count > 0)
        hdrt__cc_report_first_error(job->reply, is_about_an_option(error) ? HDRT_CC_STATUS_OPTION
                                                                          : HDRT_CC_STATUS_COMPILE, errors, "");
    else if (errors->count > 0)
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_CRASHED, "'%s' failed inside (status %d): %.*s%s", path, status,
                            (int)error->text_length, error->text, memory_hint(job, hint));
    else
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_CRASHED, "'%s' ended with status %d%s%.*s%s", path, status,
                            length > 0 ? ": " : " and said nothing", length, line, memory_hint(job, hint));
}

/* true: clang ended well. */
static bool judge(clang_job *job)
{
    const hdrt__cc_outcome *outcome = &job->outcome;
    const hdrt__cc_request *request = job->request;
    if (outcome->said.failed) {
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_MEMORY, "out of memory while reading what the compiler said");
        return false;
    }
    hdrt__cc_buffer_append(&job->reply->log, outcome->said.bytes, outcome->said.size);
    hdrt__cc_errors errors =
        hdrt__cc_report_diagnostics(job->reply, hdrt__cc_parse_clang, &outcome->said, request->name);
    hdrt__cc_files_explain_refusals(&job->files, job->reply);
    switch (outcome->end) {
    case HDRT__CC_NO_CHILD:
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_IO, "cannot start a process for '%s': %s",
                            request->compiler_path, strerror(outcome->code));
        break;
    case HDRT__CC_NOT_STARTED:
        if (outcome->in_directory)
            hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_IO,
                                "cannot enter the folder '%s', from which relative paths go: %s", request->directory,
                                strerror(outcome->code));
        else if (outcome->code == ENOMEM)
            hdrt__cc_reply_fail_by_memory(job->reply, job->request);
        else
            hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_NO_COMPILER, "cannot run '%s': %s", request->compiler_path,
                                strerror(outcome->code));
        break;
    case HDRT__CC_TIMED_OUT:
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_LIMIT, "'%s' did not finish within %u ms and was stopped",
                            request->compiler_path, request->time_limit_ms);
        break;
    case HDRT__CC_SIGNALLED: fail_by_signal(job, outcome->code); break;
    case HDRT__CC_EXITED:
        if (outcome->code != 0)
            fail_by_status(job, &errors, outcome->code);
        break;
    }
    return job->reply->status == HDRT_CC_STATUS_OK;
}

static void report_external(const char *name, size_t length, void *context)
{
    hdrt__cc_reply *reply = context;
    hdrt__cc_buffer_field(&reply->fields, HDRT_CC_UNRESOLVED, name, length);
}

static void report_name(size_t number, const char *name, size_t length, void *context)
{
    clang_job *job = context;
    if (number >= job->request->expressions.count)
        return;
    hdrt__cc_reply_lowered(job->reply, job->request->expressions.items[number], name, length);
    job->names_found++;
}

static void take_ptx(clang_job *job)
{
    struct stat status;
    if (fstat(job->output, &status) != 0 || status.st_size == 0) {
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_CRASHED, "'%s' ended well but wrote no code",
                            job->request->compiler_path);
        return;
    }
    size_t size = (size_t)status.st_size;
    char *ptx = mmap(NULL, size, PROT_READ, MAP_PRIVATE, job->output, 0);
    if (ptx == MAP_FAILED) {
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_MEMORY, "out of memory while reading the code");
        return;
    }
    hdrt__cc_buffer bare = {0}, mended = {0}, limited = {0};
    const char *code = ptx;
    size_t code_size = size;
    if (job->request->expressions.count > 0) {
        hdrt__cc_ptx_take_names(code, code_size, report_name, job, &bare);
        code = (const char *)bare.bytes;
        code_size = bare.size;
    }
    if (job->options.debug) {
        hdrt__cc_ptx_mend_debug_names(code, code_size, &mended);
        code = (const char *)mended.bytes;
        code_size = mended.size;
    }
    if (job->options.max_registers > 0) {
        hdrt__cc_ptx_limit_registers(code, code_size, job->options.max_registers, &limited);
        code = (const char *)limited.bytes;
        code_size = limited.size;
    }
    hdrt__cc_buffer_field(&job->reply->fields, HDRT_CC_CODE_PTX, code, code_size);
    job->reply->fields.failed |= bare.failed || mended.failed || limited.failed;
    hdrt__cc_ptx_externals(ptx, size, report_external, job->reply);
    hdrt__cc_buffer_free(&limited);
    hdrt__cc_buffer_free(&mended);
    hdrt__cc_buffer_free(&bare);
    munmap(ptx, size);
    if (job->names_found < job->request->expressions.count)
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_UNSUPPORTED,
                            "'%s' gave names for %zu of %zu name expressions: each must name a kernel or the address "
                            "of a variable", job->request->compiler_path, job->names_found,
                            job->request->expressions.count);
}

/* What stands in the way of storing, apart from single files. */
static void judge_records(clang_job *job, bool whole)
{
    const hdrt__cc_request *request = job->request;
    if (!whole)
        hdrt__cc_reply_no_store(job->reply, "the records of the files read are damaged");
    else if (!job->files.hello)
        hdrt__cc_reply_no_store(job->reply, "the file recorder '%s' did not run in '%s'", request->recorder,
                                request->compiler_path);
    else if (!hdrt__cc_files_are_recorded(&job->files))
        hdrt__cc_reply_no_store(job->reply, "not one file was recorded, not even the prelude");
    hdrt__cc_refuse_time_macros(request, job->reply);
}

static void finish(clang_job *job, bool records_whole)
{
    take_ptx(job);
    if (job->reply->status != HDRT_CC_STATUS_OK)
        return;
    hdrt__cc_reply_text(job->reply, HDRT_CC_ARCH_USED, "%s", job->arch);
    if (strcmp(job->arch, job->request->arch) != 0)
        hdrt__cc_reply_text(job->reply, HDRT_CC_NOTE, "%s does not know %s; compiled for %s",
                            job->state->version[0] != '\0' ? job->state->version : "clang", job->request->arch,
                            job->arch);
    judge_records(job, records_whole);
    hdrt__cc_files_report(&job->files, job->reply);
}

/* What the compile needs beside its options. false: the reply says what was not to be had. */
static bool prepare(clang_job *job)
{
    const hdrt__cc_request *request = job->request;
    job->source_folder = hdrt__cc_source_directory(request);
    if (job->source_folder == NULL || !hdrt__cc_clang_state_begin(job->state, request->compiler_path)) {
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_MEMORY, "out of memory while preparing the compile");
        return false;
    }
    job->recorder = open(request->recorder, O_RDONLY | O_CLOEXEC);
    if (job->recorder < 0) {
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_IO, "cannot open the file recorder '%s': %s", request->recorder,
                            strerror(errno));
        return false;
    }
    hdrt__cc_buffer source = {0}, macros = {0};
    hdrt__cc_name_text(&source, request->name, request->source, request->source_size);
    hdrt__cc_declare_expressions(request, &source);
    job->source = hdrt__cc_memory_text("hdrt-source", &source, 0);
    hdrt__cc_name_text(&macros, "<command line>", job->options.macros.bytes, job->options.macros.size);
    if (job->source >= 0 && job->options.macros.size > 0)
        job->macros = hdrt__cc_memory_text("hdrt-macros", &macros, 0);
    hdrt__cc_buffer_free(&macros);
    hdrt__cc_buffer_free(&source);
    if (!hdrt__cc_headers_make(request, &job->headers)) {
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_IO, "no memory object for the in-memory headers: %s",
                            strerror(errno));
        return false;
    }
    if (job->source < 0 || (job->options.macros.size > 0 && job->macros < 0)) {
        hdrt__cc_reply_fail(job->reply, HDRT_CC_STATUS_IO, "no memory object for the source: %s", strerror(errno));
        return false;
    }
    return true;
}

static void end(clang_job *job)
{
    end_attempt(job);
    const int fds[] = {job->source, job->recorder, job->macros};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    hdrt__cc_headers_free(&job->headers);
    free(job->source_folder);
    hdrt__cc_clang_options_free(&job->options);
    hdrt__cc_files_end(&job->files);
}

void hdrt__cc_compile_clang(hdrt__cc_clang_state *state, const hdrt__cc_request *request, hdrt__cc_reply *reply)
{
    clang_job job = {.state = state, .request = request, .reply = reply, .source = -1, .recorder = -1, .macros = -1,
                     .output = -1, .records = -1, .headers = {.overlay = -1}};
    if (request->kind != HDRT_CC_PTX) {
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_UNSUPPORTED, "clang makes PTX only, no %s: that takes NVRTC",
                            request->kind == HDRT_CC_CUBIN ? "cubin" : "LTO-IR");
        return;
    }
    hdrt__cc_files_begin(&job.files, request);
    if (!hdrt__cc_clang_translate(request, &job.options, reply) || !prepare(&job))
        goto end_job;
    if (run_for_target(&job)) {
        bool records_whole = hdrt__cc_files_read_records(&job.files, job.records);
        bool well = judge(&job);
        if (job.outcome.end != HDRT__CC_NOT_STARTED && job.outcome.end != HDRT__CC_TIMED_OUT)
            hdrt__cc_clang_learn_version(state, request);
        if (well)
            finish(&job, records_whole);
    }
    if (state->version[0] != '\0')
        hdrt__cc_reply_text(reply, HDRT_CC_COMPILER_VERSION, "%s", state->version);

end_job:
    end(&job);
}
