/* SPDX-License-Identifier: MIT */
#include "file.h"

#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_ROOM 65536

/* Reads to the end; the size that fstat tells is only where the room begins. */
static int read_all(int fd, const char *name, size_t room, unsigned char **out_data, uint64_t *out_bytes)
{
    unsigned char *data = malloc(room + 1), *larger;
    size_t used = 0;

    while (data) {
        ssize_t got = read(fd, data + used, room - used);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int error = errno;

            free(data);
            return fail(EXIT_CODE_FAILED, "%s: cannot be read: %s", name, strerror(error));
        }
        if (got == 0)
            break;
        used += (size_t)got;
        if (used < room)
            continue;
        larger = room < SIZE_MAX / 2 - 1 ? realloc(data, 2 * room + 1) : NULL;
        if (!larger)
            free(data);
        data = larger;
        room *= 2;
    }
    if (!data)
        return fail(EXIT_CODE_FAILED, "%s: out of memory after %zu bytes", name, used);
    data[used] = 0;
    *out_data = data;
    *out_bytes = used;
    return 0;
}

int file_read(const char *path, unsigned char **out_data, uint64_t *out_bytes)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), code;
    struct stat about;
    size_t room = FIRST_ROOM;

    if (fd < 0)
        return fail(EXIT_CODE_FAILED, "%s: cannot be opened: %s", name, strerror(errno));
    /* One byte more than the size, so that the end shows without another turn. */
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0 && (uint64_t)about.st_size < SIZE_MAX / 4)
        room = (size_t)about.st_size + 1;
    code = read_all(fd, name, room, out_data, out_bytes);
    if (!standard)
        close(fd);
    return code;
}
