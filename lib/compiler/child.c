/* SPDX-License-Identifier: MIT */
#include "compiler/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/job.h"

#define SAID_LIMIT (4u << 20)
#define STATUS_FD (HDRT__CC_FIRST_FREE_FD - 1)

/* What an exec that did not happen tells its parent. */
typedef struct start_failure {
    int error;
    int in_directory;
} start_failure;

static _Atomic pid_t running; /* process group of the child, 0: none */

void hdrt__cc_kill_child(void)
{
    pid_t group = atomic_load(&running);
    if (group > 0)
        kill(-group, SIGKILL);
}

/* -- in the child, between fork and exec: async-signal-safe calls only --------------------------------------------- */

static void limit(int resource, uint64_t value)
{
    struct rlimit limits;
    if (getrlimit(resource, &limits) != 0)
        return;
    if (limits.rlim_max == RLIM_INFINITY || value < limits.rlim_max)
        limits.rlim_cur = limits.rlim_max = value;
    setrlimit(resource, &limits);
}

/* Close `first` to `last`, -1: all from there on. */
static void close_between(int first, int last)
{
    if (last >= 0 && first > last)
        return;
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)first, last < 0 ? ~0u : (unsigned)last, 0u) == 0)
        return;
#endif
    struct rlimit limits;
    long end = getrlimit(RLIMIT_NOFILE, &limits) == 0 && limits.rlim_cur < 65536 ? (long)limits.rlim_cur : 65536;
    for (long fd = first; fd < end && (last < 0 || fd <= last); fd++)
        close((int)fd);
}

static void close_others(const hdrt__cc_command *command)
{
    int next = STATUS_FD + 1;
    for (size_t i = 0; i < command->kept_count; i++) {
        close_between(next, command->kept[i] - 1);
        fcntl(command->kept[i], F_SETFD, 0);
        next = command->kept[i] + 1;
    }
    close_between(next, -1);
}

/* The worker's own descriptors lie above STATUS_FD (main.c sees to it), so none is overwritten before it is copied. */
static _Noreturn void become(const hdrt__cc_command *command, int said, int status, pid_t parent)
{
    start_failure failure = {0};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    if (dup2(command->output, 1) < 0 || dup2(said, 2) < 0 || dup2(status, STATUS_FD) < 0)
        _exit(127);
    fcntl(STATUS_FD, F_SETFD, FD_CLOEXEC);
    for (int i = 0; i < HDRT__CC_CHILD_FDS; i++)
        if (command->fds[i] < 0)
            close(3 + i);
        else if (dup2(command->fds[i], 3 + i) < 0)
            _exit(127);
    close_others(command);
    if (command->memory_limit > 0)
        limit(RLIMIT_AS, command->memory_limit);
    limit(RLIMIT_FSIZE, command->file_limit);
    signal(SIGXFSZ, SIG_DFL); /* ignored in the worker; a compiler may not look at its writes */
    if (chdir(command->directory) != 0)
        failure.in_directory = 1;
    else
        execve(command->argv[0], (char *const *)command->argv, (char *const *)command->environment);
    failure.error = errno;
    ssize_t written = write(STATUS_FD, &failure, sizeof failure);
    (void)written;
    _exit(127);
}

/* -- in the worker ------------------------------------------------------------------------------------------------- */

/* Read what is there; false at the end. Beyond the bound it is read and dropped, so that the child is not held up. */
static bool drain(int fd, hdrt__cc_buffer *said)
{
    char bytes[65536];
    for (;;) {
        ssize_t got = read(fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno == EAGAIN;
        if (got == 0)
            return false;
        size_t room = said->size < SAID_LIMIT ? SAID_LIMIT - said->size : 0;
        hdrt__cc_buffer_append(said, bytes, (size_t)got < room ? (size_t)got : room);
    }
}

/* Milliseconds to poll for, at most `most` (-1: as long as it takes). 0: the deadline is past. */
static int time_left(int64_t deadline_ns, int most)
{
    if (deadline_ns == INT64_MAX)
        return most;
    int64_t left = (deadline_ns - hdrt__cc_now_ns() + 999999) / 1000000;
    if (left <= 0)
        return 0;
    if (most < 0)
        most = 1000000;
    return left < most ? (int)left : most;
}

/* Wait for the child itself, not for others that hold its standard error. false: the deadline came first. */
static bool wait_for_end(pid_t pid, int said, int64_t deadline_ns, hdrt__cc_buffer *text)
{
#ifdef SYS_pidfd_open
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
#else
    int pidfd = -1;
#endif
    bool ended = false, open = true;
    while (!ended) {
        /* Without a pidfd, before Linux 5.3, the end is asked for every few milliseconds. */
        int timeout = time_left(deadline_ns, pidfd >= 0 ? -1 : 5);
        if (timeout == 0)
            break;
        struct pollfd fds[2] = {{open ? said : -1, POLLIN, 0}, {pidfd, POLLIN, 0}};
        if (poll(fds, 2, timeout) < 0 && errno != EINTR)
            break;
        if (fds[0].revents != 0)
            open = drain(said, text);
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
            ended = info.si_pid == pid;
    }
    if (pidfd >= 0)
        close(pidfd);
    return ended;
}

static void reap(pid_t pid, int said, int status, bool ended, hdrt__cc_outcome *outcome)
{
    kill(-pid, SIGKILL); /* while the unreaped child keeps the group's number */
    kill(pid, SIGKILL);
    atomic_store(&running, 0);
    int result = 0;
    struct rusage usage = {0};
    while (wait4(pid, &result, 0, &usage) < 0 && errno == EINTR)
        continue;
    outcome->peak_bytes = (uint64_t)usage.ru_maxrss << 10;
    drain(said, &outcome->said);
    start_failure failure;
    if (read(status, &failure, sizeof failure) == (ssize_t)sizeof failure) {
        outcome->end = HDRT__CC_NOT_STARTED;
        outcome->code = failure.error;
        outcome->in_directory = failure.in_directory != 0;
    } else if (!ended) {
        outcome->end = HDRT__CC_TIMED_OUT;
    } else if (WIFSIGNALED(result)) {
        outcome->end = HDRT__CC_SIGNALLED;
        outcome->code = WTERMSIG(result);
    } else {
        outcome->end = HDRT__CC_EXITED;
        outcome->code = WEXITSTATUS(result);
    }
}

/* The reading end does not block. */
static bool open_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0)
        return true;
    int error = errno;
    close(ends[0]);
    close(ends[1]);
    errno = error;
    return false;
}

uint64_t hdrt__cc_file_limit(uint64_t wanted)
{
    struct rlimit limits;
    bool lower = getrlimit(RLIMIT_FSIZE, &limits) == 0 && limits.rlim_max != RLIM_INFINITY && limits.rlim_max <= wanted;
    return lower ? limits.rlim_cur : wanted;
}

void hdrt__cc_run(const hdrt__cc_command *command, hdrt__cc_outcome *outcome)
{
    int said[2], status[2];
    *outcome = (hdrt__cc_outcome){.end = HDRT__CC_NO_CHILD};
    if (!open_pipe(said)) {
        outcome->code = errno;
        return;
    }
    if (!open_pipe(status)) {
        outcome->code = errno;
        goto close_said;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become(command, said[1], status[1], parent);
    outcome->code = errno;
    close(said[1]);
    close(status[1]);
    said[1] = status[1] = -1;
    if (pid < 0)
        goto close_status;
    setpgid(pid, pid); /* in both, so that it is done before either needs it */
    atomic_store(&running, pid);
    bool ended = wait_for_end(pid, said[0], command->deadline_ns, &outcome->said);
    reap(pid, said[0], status[0], ended, outcome);

close_status:
    close(status[0]);
    if (status[1] >= 0)
        close(status[1]);
close_said:
    close(said[0]);
    if (said[1] >= 0)
        close(said[1]);
}
