/* SPDX-License-Identifier: MIT */
#include "jit/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"

#define STACK_SIZE ((size_t)64 << 10)
#define SAFE_DESCRIPTOR 10 /* above those that are given a meaning below */
#define REAP_MS 1000
#define REAP_STEP_MS 5

/* glibc's second name for clone: thread sanitizers intercept the first as if it were fork. */
extern int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);

/* What runs between clone and exec shares the application's memory: nothing there may be instrumented. */
#if defined(__clang__)
#define BARE __attribute__((no_sanitize("address", "thread", "undefined"), noinline, no_instrument_function))
#else
#define BARE __attribute__((no_sanitize_address, no_sanitize_thread, no_sanitize_undefined, noinline))
#endif

struct start {
    const char *path;
    char *const *arguments;
    char *const *environment;
    char *program_stack; /* the end: stacks grow down */
    int socket;
    int error;           /* errno of the step that failed, 0: none */
    const char *failed;  /* which step */
    pid_t pid;
};

/* Raw system calls: sanitizers' wrappers of these functions would keep books about the application's own. */
#define SYSTEM(...) ((long)syscall(__VA_ARGS__))

BARE static void give_up(struct start *start, const char *step)
{
    start->error = errno;
    start->failed = step;
    SYSTEM(SYS_exit_group, 127);
}

BARE static void default_signals(void)
{
    /*
     * The kernel's own struct sigaction begins with the handler; all zero behind it is right on every machine. A signal
     * to the application's process group may have come before setsid and be pending: ignoring drops it.
     */
    static const unsigned long ignore[8] = {(unsigned long)SIG_IGN}, standard[8];
    static const uint64_t none;
    for (int number = 1; number <= 64; number++) {
        SYSTEM(SYS_rt_sigaction, number, ignore, NULL, sizeof(none));
        SYSTEM(SYS_rt_sigaction, number, standard, NULL, sizeof(none));
    }
    SYSTEM(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
}

/* For kernels without close_range. The name buffer is the kernel's struct linux_dirent64. */
BARE static void close_listed(void)
{
    char entries[2048] __attribute__((aligned(8)));
    long folder = SYSTEM(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (folder < 0) {
        for (int fd = 4; fd < 65536; fd++)
            SYSTEM(SYS_close, fd);
        return;
    }
    for (;;) {
        long size = SYSTEM(SYS_getdents64, folder, entries, sizeof(entries));
        if (size <= 0)
            break;
        for (long at = 0; at < size;) {
            unsigned short length;
            __builtin_memcpy(&length, entries + at + 16, sizeof(length));
            int fd = 0;
            const char *name = entries + at + 19;
            while (*name >= '0' && *name <= '9')
                fd = fd * 10 + (*name++ - '0');
            if (*name == '\0' && fd > 3 && fd != folder)
                SYSTEM(SYS_close, fd);
            at += length;
        }
    }
    SYSTEM(SYS_close, folder);
}

/* The new process, up to its exec. */
BARE static int program(void *argument)
{
    struct start *start = argument;
    SYSTEM(SYS_setsid);
    long socket = SYSTEM(SYS_fcntl, start->socket, F_DUPFD, SAFE_DESCRIPTOR);
    if (socket < 0)
        give_up(start, "dup");
    long null = SYSTEM(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
    if (null < 0)
        give_up(start, "open /dev/null");
    null = SYSTEM(SYS_fcntl, null, F_DUPFD, SAFE_DESCRIPTOR);
    for (int fd = 0; fd < 3; fd++)
        if (null < 0 || SYSTEM(SYS_dup3, null, fd, 0) < 0)
            give_up(start, "dup");
    if (SYSTEM(SYS_dup3, socket, 3, 0) < 0)
        give_up(start, "dup");
#ifdef SYS_close_range
    if (SYSTEM(SYS_close_range, 4, ~0u, 0) != 0)
#endif
        close_listed();
    if (SYSTEM(SYS_chdir, "/") != 0)
        give_up(start, "chdir /");
    default_signals();
    SYSTEM(SYS_execve, start->path, start->arguments, start->environment);
    give_up(start, "execute it");
    return 127;
}

/* The process between: starts the program and ends. Its end wakes the application's thread. */
BARE static int between(void *argument)
{
    struct start *start = argument;
    int pid = __clone(program, start->program_stack, CLONE_VM | CLONE_VFORK | SIGCHLD, start);
    if (pid < 0) {
        start->error = errno;
        start->failed = "start a process";
    } else if (start->error != 0) {
        SYSTEM(SYS_wait4, pid, NULL, 0, NULL);
    }
    start->pid = pid;
    SYSTEM(SYS_exit_group, 0);
    return 0;
}

static hdrt_status start_failed(const struct start *start)
{
    if (start->error == ENOMEM || start->error == EAGAIN || start->error == EMFILE || start->error == ENFILE)
        return hdrt__fail(HDRT_ERROR_OUT_OF_MEMORY, "cannot start the compile worker '%s': %s failed: %s", start->path,
                          start->failed, strerrordesc_np(start->error));
    return hdrt__fail(HDRT_ERROR_COMPANION, "cannot start the compile worker '%s': cannot %s: %s", start->path,
                      start->failed, strerrordesc_np(start->error));
}

static bool peer_open(int socket)
{
    char byte;
    ssize_t got = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

/* A descriptor of the process, or -1. The process was alive afterwards: the number had not passed to another. */
static int open_process(pid_t pid, int socket)
{
#ifdef SYS_pidfd_open
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd >= 0 && peer_open(socket))
        return pidfd;
    if (pidfd >= 0)
        close(pidfd);
#endif
    return -1;
}

hdrt_status hdrt__spawn(const char *path, char *const arguments[], char *const environment[], int socket, int peer,
                        hdrt__process *out)
{
    uint64_t all = ~UINT64_C(0), before = 0;
    /* Shared, because valgrind makes a fork of this clone: what the processes say must come back then too. */
    const size_t size = sizeof(struct start) + 2 * STACK_SIZE;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *out = (hdrt__process){-1, -1};
    if (memory == MAP_FAILED)
        return hdrt__fail_memory(size, "starting the compile worker");
    struct start *start = (struct start *)(void *)(memory + 2 * STACK_SIZE);
    *start = (struct start){path, arguments, environment, memory + STACK_SIZE, socket, 0, NULL, -1};
    /*
     * No handler of the application may run in the new processes: the mask is inherited, and cleaned before exec. Raw,
     * because pthread_sigmask leaves out the two signals that glibc uses itself.
     */
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all));
    int pid = __clone(between, memory + 2 * STACK_SIZE, CLONE_VM | CLONE_VFORK, start);
    if (pid < 0) {
        start->error = errno;
        start->failed = "start a process";
    } else {
        while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
            continue;
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
    hdrt_status status = HDRT_OK;
    if (start->error != 0)
        status = start_failed(start);
    else
        *out = (hdrt__process){start->pid, open_process(start->pid, peer)};
    munmap(memory, size);
    return status;
}

static void kill_by_descriptor(int pidfd)
{
#ifdef SYS_pidfd_send_signal
    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
#endif
}

void hdrt__process_kill(const hdrt__process *process, int socket)
{
    if (process->pid <= 0)
        return;
    bool there = peer_open(socket);
    if (there)
        kill(-process->pid, SIGKILL);
    if (process->pidfd >= 0)
        kill_by_descriptor(process->pidfd);
    if (there && process->pidfd < 0)
        kill(process->pid, SIGKILL);
}

/* Takes away what is left of a process that init would have taken. It was killed, or ends with its socket. */
static void reap(const hdrt__process *process)
{
    struct pollfd ended = {process->pidfd, POLLIN, 0};
    if (process->pidfd >= 0)
        poll(&ended, 1, REAP_MS);
    for (int waited = 0; waitpid(process->pid, NULL, WNOHANG) == 0 && waited < REAP_MS; waited += REAP_STEP_MS)
        poll(NULL, 0, REAP_STEP_MS);
}

bool hdrt__adopts_orphans(void)
{
    int adopts = 0;
    return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &adopts) == 0 && adopts);
}

void hdrt__process_end(hdrt__process *process)
{
    if (process->pid > 0 && hdrt__adopts_orphans())
        reap(process);
    if (process->pidfd >= 0)
        close(process->pidfd);
    *process = (hdrt__process){-1, -1};
}
