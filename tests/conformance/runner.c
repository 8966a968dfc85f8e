/* SPDX-License-Identifier: MIT */
/*
 * Processes. A job is a run of checks of one area that share a process; up to `jobs` of them run at once. The child
 * sends frames: a check that begins, a check's answer. A child that dies or exceeds the time of one check leaves that
 * as the check's answer, and what was left of its job starts again in a new child.
 */
#include "conformance.h"

#include <errno.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "support.h"

#define JOBS_MAX 32

typedef struct frame {
    int kind; /* 'b' begins, 'a' answers, 'v' version and device, 'x' cannot run */
    int number;
    char text[ANSWER_MAX];
} frame;

typedef struct job {
    size_t first, end; /* of the answers; first moves on */
} job;

typedef struct child {
    pid_t pid; /* 0: free */
    int pipe;
    job job;
    size_t running; /* the check that has begun; == job.first when none */
    bool begun;
    double deadline;
    size_t filled; /* of the frame that arrives */
    frame incoming;
} child;

typedef struct run {
    const run_options *options;
    answer *answers;
    job *jobs;
    size_t job_count, job_next;
    child children[JOBS_MAX];
    int version;
    char *device;
    char refusal[256];
} run;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void check_full_name(const answer *of, char out[256])
{
    snprintf(out, 256, "%s.%s", of->area->name, of->check->name);
}

bool pattern_matches(const char *pattern, const char *name)
{
    return !pattern || !fnmatch(pattern, name, 0) || strstr(name, pattern);
}

/* ---- the child's side ---- */

static void send_frame(int to, int kind, int number, const char *text)
{
    static frame out;
    memset(&out, 0, sizeof out);
    out.kind = kind;
    out.number = number;
    snprintf(out.text, sizeof out.text, "%s", text);
    const char *at = (const char *)&out;
    for (size_t left = sizeof out; left;) {
        ssize_t sent = write(to, at, left);
        if (sent <= 0 && errno != EINTR)
            _exit(3);
        if (sent > 0) {
            at += sent;
            left -= (size_t)sent;
        }
    }
}

/* NULL, or what stopped it. */
static const char *prepare(area_needs needs)
{
    static char text[96];
    const char *step = "cuInit";
    hdcu_result status = needs == NEEDS_NOTHING ? 0 : cu.cuInit(0);
    if (!status && needs == NEEDS_CONTEXT) {
        step = "cuCtxCreate";
        status = cu.cuCtxCreate(&own_context, 0, 0);
    }
    if (!status)
        return NULL;
    snprintf(text, sizeof text, "needed %s, got %u", step, status);
    return text;
}

static void tell_version(int to)
{
    int version = 0;
    char device[256] = "";
    cu.cuDriverGetVersion(&version);
    if (!cu.cuInit(0))
        cu.cuDeviceGetName(device, sizeof device, 0);
    send_frame(to, 'v', version, device);
}

_Noreturn static void child_main(const run *of, const job *work, int to)
{
    const char *wrong = driver_load(of->options->driver, of->options->library);
    if (wrong) {
        send_frame(to, 'x', 0, wrong);
        _exit(2);
    }
    if (work->first == work->end) {
        tell_version(to);
        _exit(0);
    }
    send_frame(to, 'b', (int)work->first, "");
    wrong = prepare(of->answers[work->first].area->needs);
    for (size_t i = work->first; i < work->end; i++) {
        bool unwell = false;
        send_frame(to, 'b', (int)i, "");
        send_frame(to, 'a', (int)i, wrong ? wrong : child_run_check(of->answers[i].check, &unwell));
        if (unwell)
            break;
    }
    _exit(0);
}

/* ---- the parent's side ---- */

static bool start_child(run *of, child *slot, job work)
{
    int ends[2];
    if (pipe(ends))
        return false;
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    if (!pid) {
        close(ends[0]);
        if (!of->options->verbose && (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
            _exit(3);
        child_main(of, &work, ends[1]);
    }
    close(ends[1]);
    *slot = (child){.pid = pid, .pipe = ends[0], .job = work, .deadline = seconds_now() + of->options->seconds};
    return true;
}

static void set_answer(run *of, size_t index, const char *text)
{
    free(of->answers[index].text);
    of->answers[index].text = strdup(text);
}

static void take_frame(run *of, child *from)
{
    const frame *in = &from->incoming;
    from->deadline = seconds_now() + of->options->seconds;
    switch (in->kind) {
    case 'b':
        from->running = (size_t)in->number;
        from->begun = true;
        break;
    case 'a':
        set_answer(of, (size_t)in->number, in->text);
        from->job.first = (size_t)in->number + 1;
        from->begun = false;
        break;
    case 'v':
        of->version = in->number;
        snprintf(of->device, 256, "%.255s", in->text);
        break;
    default: snprintf(of->refusal, sizeof of->refusal, "%.255s", in->text); break;
    }
}

/* The child is gone: what it left undone starts again, without the check that took it down. */
static void end_child(run *of, child *gone, const char *why)
{
    int status = 0;
    char text[64];
    if (why)
        kill(gone->pid, SIGKILL);
    while (waitpid(gone->pid, &status, 0) < 0 && errno == EINTR) {}
    close(gone->pipe);
    job left = gone->job;
    if (gone->begun || why) {
        if (!why) {
            snprintf(text, sizeof text, WIFSIGNALED(status) ? "signal %d" : "exit %d",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            why = text;
        }
        if (left.first < left.end)
            set_answer(of, left.first++, why);
    }
    gone->pid = 0;
    if (of->refusal[0] || left.first >= left.end)
        return;
    if (!start_child(of, gone, left))
        snprintf(of->refusal, sizeof of->refusal, "cannot start a process: %s", strerror(errno));
}

static void hear(run *of, child *from)
{
    ssize_t got = read(from->pipe, (char *)&from->incoming + from->filled, sizeof from->incoming - from->filled);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        end_child(of, from, NULL);
        return;
    }
    from->filled += (size_t)got;
    if (from->filled == sizeof from->incoming) {
        from->filled = 0;
        take_frame(of, from);
    }
}

/* One round: waits for children to say something or to run out of time. False when none is left. */
static bool step(run *of)
{
    struct pollfd polled[JOBS_MAX];
    child *who[JOBS_MAX];
    nfds_t count = 0;
    for (size_t i = 0; i < of->options->jobs; i++) {
        child *slot = &of->children[i];
        if (!slot->pid && of->job_next < of->job_count && !of->refusal[0] &&
            !start_child(of, slot, of->jobs[of->job_next++]))
            snprintf(of->refusal, sizeof of->refusal, "cannot start a process: %s", strerror(errno));
        if (slot->pid) {
            who[count] = slot;
            polled[count++] = (struct pollfd){.fd = slot->pipe, .events = POLLIN};
        }
    }
    if (!count)
        return false;
    if (poll(polled, count, 200) < 0 && errno != EINTR)
        return false;
    for (nfds_t i = 0; i < count; i++) {
        if (polled[i].revents)
            hear(of, who[i]);
        else if (seconds_now() > who[i]->deadline)
            end_child(of, who[i], "timeout");
    }
    return true;
}

/* ---- all of it ---- */

answer *answers_list(const char *pattern, size_t *count)
{
    size_t total = 0;
    for (size_t a = 0; a < area_count; a++)
        total += areas[a]->count;
    answer *made = calloc(total + 1, sizeof *made);
    *count = 0;
    for (size_t a = 0; made && a < area_count; a++) {
        for (size_t c = 0; c < areas[a]->count; c++) {
            char name[256];
            made[*count] = (answer){.area = areas[a], .check = &areas[a]->checks[c]};
            check_full_name(&made[*count], name);
            *count += pattern_matches(pattern, name);
        }
    }
    return made;
}

/* Checks that stand alone get a job each; the others of an area, in chunks, share one. */
static size_t list_jobs(const answer *answers, size_t count, job *jobs)
{
    size_t made = 0;
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        if (!answers[i].check->alone)
            while (end < count && end - i < 24 && answers[end].area == answers[i].area && !answers[end].check->alone)
                end++;
        jobs[made++] = (job){i, end};
        i = end;
    }
    return made;
}

bool run_all(const run_options *options, answer *answers, size_t count, int *version, char device[256])
{
    bool done = false;
    run *of = calloc(1, sizeof *of);
    job *jobs = calloc(count + 1, sizeof *jobs);
    if (!of || !jobs) {
        fprintf(stderr, "conformance: out of memory\n");
        goto give_back;
    }
    /* First an empty job, alone: it asks the version, and tells whether the driver can be had. */
    *of = (run){.options = options, .answers = answers, .jobs = jobs, .job_count = 1, .device = device};
    while (step(of)) {}
    if (!of->refusal[0]) {
        of->job_count = list_jobs(answers, count, jobs);
        of->job_next = 0;
        while (step(of)) {}
    }
    *version = of->version;
    done = !of->refusal[0];
    if (!done)
        fprintf(stderr, "conformance: %s driver: %s\n", options->driver, of->refusal);

give_back:
    free(jobs);
    free(of);
    return done;
}

void answers_free(answer *answers, size_t count)
{
    for (size_t i = 0; answers && i < count; i++)
        free(answers[i].text);
    free(answers);
}
