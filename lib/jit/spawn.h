/* SPDX-License-Identifier: MIT */
/*
 * Starting a process that the application never notices: it is no child that wait() can reap, sends no SIGCHLD, is in
 * a session of its own, has default dispositions and an empty signal mask, and no descriptor but its socket (as 3) and
 * /dev/null (as 0, 1, 2).
 *
 * How: an intermediate process, made by clone with no exit signal (so that wait() without __WCLONE does not see it),
 * starts the program and is gone when the call returns; the program belongs to init from then on. Both run in this
 * process's memory with the calling thread stopped, as with vfork: no page tables are copied, no fork handler runs. An
 * application that adopts orphans itself (init of a container, PR_SET_CHILD_SUBREAPER) would be given the program; for
 * such hdrt__process_end waits for it.
 */
#ifndef HDRT_JIT_SPAWN_H
#define HDRT_JIT_SPAWN_H

#include <sys/types.h>

#include <hdrt.h>

typedef struct hdrt__process {
    pid_t pid;  /* also its process group and session */
    int pidfd;  /* -1 on kernels without */
} hdrt__process;

/*
 * Start `path` (absolute) with `socket` as descriptor 3; the caller closes its copy afterwards. `peer` is the end that
 * the caller keeps.
 * HDRT_OK; HDRT_ERROR_COMPANION  it cannot be executed, with the reason; HDRT_ERROR_OUT_OF_MEMORY  no process or
 * memory.
 */
hdrt_status hdrt__spawn(const char *path, char *const arguments[], char *const environment[], int socket, int peer,
                        hdrt__process *out);

/*
 * Kill the process and its group at once. `socket` is our end of its socket, still open: it tells whether the process
 * still has the other end, so that no other process of the same number is hit.
 */
void hdrt__process_kill(const hdrt__process *process, int socket);

/* Whether this process is given the orphans of its descendants, so that it would see ours. */
bool hdrt__adopts_orphans(void);

/* Forget a process whose socket was closed or that was killed. */
void hdrt__process_end(hdrt__process *process);

#endif
