/* SPDX-License-Identifier: MIT */
#include "jit/flight.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "jit/folder.h"

#define FIRST_PAUSE_NS 100000u
#define LONGEST_PAUSE_NS 4000000u

#define CIFS_MAGIC 0xff534d42
#define SMB2_MAGIC 0xfe534d42
#define LUSTRE_MAGIC 0x0bd00bd0
#define GPFS_MAGIC 0x47504653
#define CEPH_MAGIC 0x00c36400
#define BEEGFS_MAGIC 0x19830326

/* Locks there may hang with their server, which nothing here could bound. */
static bool is_network(int root)
{
    struct statfs system;
    if (fstatfs(root, &system) != 0)
        return true;
    switch ((unsigned long)system.f_type & 0xffffffffu) {
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case CODA_SUPER_MAGIC:
    case AFS_SUPER_MAGIC:
    case V9FS_MAGIC:
    case CIFS_MAGIC:
    case SMB2_MAGIC:
    case LUSTRE_MAGIC:
    case GPFS_MAGIC:
    case CEPH_MAGIC:
    case BEEGFS_MAGIC:
        return true;
    default:
        return false;
    }
}

/* The machine's own folder for a user's locks, where there is one. */
static int open_local_folder(void)
{
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR"), *why;
    char *path = runtime && *runtime == '/' ? hdrt__path_join(runtime, "hdrt") : NULL;
    int folder = path ? hdrt__folder_open(AT_FDCWD, path, HDRT__FOLDER_MAKE, &why) : -1;
    free(path);
    return folder;
}

static int open_lock_file(hdrt__store *store)
{
    const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    struct stat status;
    int root = hdrt__store_root(store, 0, true);
    if (root < 0)
        return -1;
    bool network = is_network(root);
    int folder = network ? open_local_folder() : root;
    int file = folder >= 0 ? openat(folder, HDRT__STORE_LOCK, flags, 0600) : -1;
    if (file >= 0 && (fstat(file, &status) != 0 || !hdrt__file_is_ours(&status, HDRT__FOLDER_READ))) {
        close(file);
        file = -1;
    }
    if (network && folder >= 0)
        close(folder);
    return file;
}

static struct flock lock_of(const hdrt__flight *flight, short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = flight->byte, .l_len = 1};
}

static bool is_held_by_another(const hdrt__flight *flight)
{
    struct flock lock = lock_of(flight, F_WRLCK);
    return fcntl(flight->file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

void hdrt__flight_end(hdrt__flight *flight)
{
    if (flight->file < 0)
        return;
    /* Also for a child forked meanwhile, which has this file open too. */
    struct flock lock = lock_of(flight, F_UNLCK);
    fcntl(flight->file, F_OFD_SETLK, &lock);
    close(flight->file);
    flight->file = -1;
}

hdrt__flight_result hdrt__flight_begin(hdrt__store *store, const hdrt__digest *key, uint64_t deadline_ns,
                                       bool (*cancelled)(void *), void *context, hdrt__flight *flight)
{
    hdrt__flight_result result = HDRT__FLIGHT_LEADS;
    uint64_t pause = FIRST_PAUSE_NS;
    *flight = (hdrt__flight){open_lock_file(store), 0};
    if (flight->file < 0)
        return HDRT__FLIGHT_LEADS;
    for (unsigned i = 0; i < 8; i++)
        flight->byte = (int64_t)((uint64_t)flight->byte << 8 | key->bytes[i]);
    flight->byte &= INT64_MAX >> 1;
    struct flock lock = lock_of(flight, F_WRLCK);
    if (fcntl(flight->file, F_OFD_SETLK, &lock) == 0)
        return HDRT__FLIGHT_LEADS;
    bool busy = errno == EAGAIN || errno == EACCES;
    while (busy && is_held_by_another(flight)) {
        uint64_t now = hdrt__now_ns();
        result = HDRT__FLIGHT_LATE;
        if (now >= deadline_ns || (cancelled && cancelled(context)))
            break;
        uint64_t step = deadline_ns - now < pause ? deadline_ns - now : pause;
        const struct timespec time = {.tv_nsec = (long)step};
        nanosleep(&time, NULL);
        pause = pause * 2 < LONGEST_PAUSE_NS ? pause * 2 : LONGEST_PAUSE_NS;
        result = HDRT__FLIGHT_LANDED;
    }
    if (busy && result == HDRT__FLIGHT_LEADS)
        result = HDRT__FLIGHT_LANDED; /* let go between the two questions */
    close(flight->file);
    flight->file = -1;
    return result;
}
