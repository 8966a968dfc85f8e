/* SPDX-License-Identifier: MIT */
/*
 * The injection sweep: every driver call of every test fails once with every plausible code.
 *
 * Linked into the test programs with --wrap=fork,--wrap=_exit. Check forks a process for each test; with HDRT_SWEEP set
 * that fork comes here, and the test runs many times: once to write down its driver calls (HDSOFT_CALLS), then for each
 * call and each code with a rule in HDSOFT_FAIL that makes it fail. Calls from one place, by backtrace, are swept once
 * in a program: with all codes where the two nearest callers are new, else with one of each kind, which the library
 * tells apart (no memory; the device is lost; any other, in turn). What the test then asserts does not matter; a crash,
 * a sanitizer's report, a leak and a time-out do.
 *
 *   HDRT_SWEEP=all|some|count|one  some: each entry point at its first place in the program, one code of each kind;
 *                        count: no failures, how many there would be; one: the test HDRT_SWEEP_TEST once, with
 *                        HDSOFT_FAIL as it is
 *   HDRT_SWEEP_OUT=FILE  gets lines "bad test N, RULE: ..." and at the end "done PLACES RUNS BAD"
 *   HDRT_SWEEP_TEST=N    only the N-th test
 *   HDRT_SWEEP_SHARD=I/N only every N-th place, from the I-th (0 to N - 1) on: N processes sweep a program together
 *
 * A test that fails ends in _exit with its stack as it was, so what only its variables hold is no leak.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLACES 65536 /* a power of 2 */
#define LEAKED 98
#define REPORTED 99 /* exitcode= of the sanitizers' options, which sweep.sh sets */

pid_t __real_fork(void);
pid_t __wrap_fork(void);
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static struct {
    bool on, some, count, one;
    pid_t parent;
    pid_t child; /* in the child: itself */
    FILE *out;
    int only, test;
    unsigned long found, places, runs, bad; /* places: those of this shard */
    unsigned shard, shards;
    unsigned long long seen[PLACES];
    char calls[64], errors[64];
    int baseline_ms;
} sweep;

static void finish(void)
{
    if (getpid() != sweep.parent)
        return;
    fprintf(sweep.out, "done %lu %lu %lu\n", sweep.places, sweep.runs, sweep.bad);
    fclose(sweep.out);
    unlink(sweep.calls);
    unlink(sweep.errors);
}

__attribute__((constructor)) static void begin(void)
{
    const char *what = getenv("HDRT_SWEEP"), *out = getenv("HDRT_SWEEP_OUT"), *only = getenv("HDRT_SWEEP_TEST");
    if (!what)
        return;
    sweep.out = fopen(out ? out : "/dev/null", "ae");
    if (!sweep.out)
        return;
    setvbuf(sweep.out, NULL, _IOLBF, 0);
    sweep.parent = getpid();
    sweep.some = strcmp(what, "some") == 0;
    sweep.count = strcmp(what, "count") == 0;
    sweep.one = strcmp(what, "one") == 0;
    sweep.only = only ? atoi(only) : 0;
    const char *shard = getenv("HDRT_SWEEP_SHARD");
    if (!shard || sscanf(shard, "%u/%u", &sweep.shard, &sweep.shards) != 2 || !sweep.shards)
        sweep.shard = 0, sweep.shards = 1;
    snprintf(sweep.calls, sizeof sweep.calls, "/tmp/hdrt-sweep-%d.calls", (int)sweep.parent);
    snprintf(sweep.errors, sizeof sweep.errors, "/tmp/hdrt-sweep-%d.errors", (int)sweep.parent);
    sweep.on = true;
    atexit(finish);
}

void __wrap__exit(int status)
{
    if (sweep.child && getpid() == sweep.child && __lsan_do_recoverable_leak_check &&
        __lsan_do_recoverable_leak_check())
        status = LEAKED;
    __real__exit(status);
}

/* ---- what to fail with ---- */

static const struct {
    const char *prefix;
    unsigned codes[8];
} plausible[] = {
    {"", {1, 2, 4, 201, 400, 700, 801, 999}}, /* all calls */
    {"cuInit", {3, 34, 46, 100, 802, 803, 804}},
    {"cuGetProcAddress", {500}},
    {"cuDevice", {46, 101, 802}},
    {"cuCtx", {709}},
    {"cuMemAlloc", {719}},
    {"cuMemcpy", {719}},
    {"cuModuleLoad", {209, 218, 222, 301}},
    {"cuModuleGet", {500}},
    {"cuLibrary", {209, 218, 500}},
    {"cuStreamQuery", {600, 716}},
    {"cuEventQuery", {600, 716}},
    {"cuStreamSynchronize", {710, 716}},
    {"cuEventSynchronize", {710, 716}},
    {"cuStreamBeginCapture", {900}},
    {"cuStreamEndCapture", {901, 904, 908}},
    {"cuLaunch", {701, 719, 720, 900}},
    {"cuGraph", {910}},
};

/* ---- one run ---- */

static int now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int)(now.tv_sec % 100000 * 1000 + now.tv_nsec / 1000000);
}

/* In the new process: as Check's fork had returned. */
static void become_test(const char *variable, const char *value)
{
    sweep.child = getpid();
    setenv(variable, value, 1);
    int errors = open(sweep.errors, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (errors >= 0)
        dup2(errors, STDERR_FILENO);
}

/* Wait for a test's end. Returns its wait status, or -1: it had to be killed. */
static int wait_for(pid_t child, int limit_ms)
{
    int status, file = (int)syscall(SYS_pidfd_open, child, 0);
    struct pollfd ended = {.fd = file, .events = POLLIN};
    bool late = file < 0 || poll(&ended, 1, limit_ms) != 1;
    if (late)
        kill(child, SIGABRT); /* which a debugger or a core file can look at */
    if (late && poll(&ended, 1, 1000) != 1)
        kill(child, SIGKILL);
    if (file >= 0)
        close(file);
    waitpid(child, &status, 0);
    kill(-child, SIGKILL); /* what it has started; Check made it lead a group */
    return late ? -1 : status;
}

/* Whether all that leaked was allocated by the test itself, which has ended early and need not tidy up. */
static bool leaked_by_the_test(void)
{
    FILE *errors = fopen(sweep.errors, "re");
    char line[1000];
    bool looking = false, own = errors != NULL;
    while (own && fgets(line, sizeof line, errors)) {
        if (strstr(line, " leak of "))
            looking = true;
        else if (looking && strstr(line, "    #") && !strstr(line, "    #0") && !strstr(line, "failing_malloc")) {
            own = strstr(line, "/tests/unit/test_") != NULL;
            looking = false;
        }
    }
    if (errors)
        fclose(errors);
    return own;
}

static void tell(const char *rule, int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == LEAKED && leaked_by_the_test())
        return;
    const char *what = status == -1                                                  ? "does not end"
                       : WIFSIGNALED(status)                                         ? strsignal(WTERMSIG(status))
                       : WEXITSTATUS(status) == LEAKED || WEXITSTATUS(status) == 23 ? "leak"
                                                                                     : "sanitizer report";
    sweep.bad++;
    fprintf(sweep.out, "bad test %d, %s: %s\n", sweep.test, rule, what);
    FILE *errors = fopen(sweep.errors, "re");
    char line[300];
    for (int lines = 0; errors && lines < 40 && fgets(line, sizeof line, errors); lines++)
        fprintf(sweep.out, "    %s", line);
    if (errors)
        fclose(errors);
}

/* True in the process that is to be the test. What does not end may be kept by a busy machine, and runs once more. */
static bool run(const char *rule, bool again)
{
    if (sweep.count) {
        sweep.runs++;
        return false;
    }
    pid_t child = __real_fork();
    if (child == 0) {
        become_test("HDSOFT_FAIL", rule);
        return true;
    }
    if (child < 0) {
        fprintf(sweep.out, "bad test %d, %s: no process: %m\n", sweep.test, rule);
        sweep.bad++;
        return false;
    }
    int limit_ms = 20000 + 10 * sweep.baseline_ms, status = wait_for(child, again ? 6 * limit_ms : limit_ms);
    if (status == -1 && !again) {
        fprintf(sweep.out, "late test %d, %s: not within %d s; tried again\n", sweep.test, rule, limit_ms / 1000);
        return run(rule, true);
    }
    sweep.runs++;
    if (status == -1 || WIFSIGNALED(status) || WEXITSTATUS(status) == LEAKED || WEXITSTATUS(status) == REPORTED ||
        WEXITSTATUS(status) == 23)
        tell(rule, status);
    return false;
}

/* ---- all runs of a test ---- */

static bool is_new(unsigned long long place)
{
    size_t at = (size_t)(place * 0x9e3779b97f4a7c15u >> 40) & (PLACES - 1);
    place |= 1;
    while (sweep.seen[at] && sweep.seen[at] != place)
        at = (at + 1) & (PLACES - 1);
    bool new_one = !sweep.seen[at] && sweep.found < PLACES / 2;
    if (new_one)
        sweep.seen[at] = place;
    return new_one;
}

/* Of a call with new nearest callers all codes, else two and one more in turn. */
static bool is_wanted(unsigned code, size_t row, bool all, unsigned long long place)
{
    static const unsigned others[] = {1, 4, 201, 400, 801, 999};
    return all || code == 2 || code == 700 ||
           (row == 0 ? code == others[place / 2 % (sizeof others / sizeof *others)] : place % 2);
}

static bool sweep_call(const char *symbol, unsigned long long number, bool all, unsigned long long place)
{
    char rule[128];
    if (sweep.found++ % sweep.shards != sweep.shard)
        return false;
    sweep.places++;
    for (size_t i = 0; i < sizeof plausible / sizeof *plausible; i++) {
        if (strncmp(symbol, plausible[i].prefix, strlen(plausible[i].prefix)))
            continue;
        for (size_t k = 0; k < 8 && plausible[i].codes[k]; k++) {
            snprintf(rule, sizeof rule, "%s:%llu=%u", symbol, number, plausible[i].codes[k]);
            if (is_wanted(plausible[i].codes[k], i, all, place) && run(rule, false))
                return true;
        }
    }
    return false;
}

static unsigned long long hash_of(const char *text)
{
    unsigned long long hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

/* The driver calls that a test has written down; NULL: none. All at once: a forked test that exits would set back the
   offset of a file that is read here. */
static char *read_calls(void)
{
    FILE *file = fopen(sweep.calls, "re");
    char *text = NULL;
    size_t capacity = 0;
    if (file && getdelim(&text, &capacity, '\0', file) < 0) {
        free(text);
        text = NULL;
    }
    if (file)
        fclose(file);
    return text;
}

/* True in the process that is to be the test. */
static bool sweep_test(void)
{
    char symbol[100];
    unsigned long long number, site, place;
    unlink(sweep.calls);
    int start = now_ms();
    pid_t child = __real_fork();
    if (child == 0) {
        become_test("HDSOFT_CALLS", sweep.calls);
        return true;
    }
    if (child < 0 || wait_for(child, 120000) != 0)
        return false; /* it fails or is skipped without any help */
    sweep.baseline_ms = now_ms() - start;
    char *calls = read_calls();
    if (!calls)
        return false; /* it calls no driver */
    bool test = false;
    unsigned before = (unsigned)sweep.runs;
    int length;
    for (const char *at = calls;
         !test && sscanf(at, "%99s %llu %llx %llx%n", symbol, &number, &site, &place, &length) == 4; at += length) {
        site ^= hash_of(symbol);
        if (is_new(sweep.some ? hash_of(symbol) : place ^ hash_of(symbol)))
            test = sweep_call(symbol, number, !sweep.some && is_new(site), place);
    }
    free(calls);
    /* Devices that fault by themselves; in a small sweep where nothing else was new there is no need. */
    static const char *const commands[] = {"command@1=700", "command@2=719", "command@4=716"};
    for (size_t i = 0; !test && i < 3 && (!sweep.some || sweep.runs > before); i++)
        test = (sweep.test + i) % sweep.shards == sweep.shard && run(commands[i], false);
    return test;
}

pid_t __wrap_fork(void)
{
    if (!sweep.on || getpid() != sweep.parent)
        return __real_fork();
    sweep.test++;
    if (sweep.one || (sweep.only && sweep.test != sweep.only)) {
        pid_t child = __real_fork();
        if (child == 0 && sweep.test != sweep.only)
            unsetenv("HDSOFT_FAIL");
        return child;
    }
    if (sweep_test())
        return 0;
    pid_t child = __real_fork();
    if (child == 0)
        __real__exit(0); /* Check gets an end to wait for; the runs have left it messages enough */
    return child;
}
