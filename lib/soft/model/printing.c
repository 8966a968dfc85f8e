/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/model/driver.h"

/* What kernels printed and nobody has fetched yet, as the FIFO of a real device holds it: the oldest goes first when
 * it is full. The lock is a leaf. */
static struct {
    pthread_mutex_t lock, writing;
    char *bytes;
    size_t length, limit;
    hdsoft_print_function function;
    void *context;
} fifo = {.lock = PTHREAD_MUTEX_INITIALIZER, .writing = PTHREAD_MUTEX_INITIALIZER, .limit = 8650752};

void hdsoft__print_limit(size_t bytes)
{
    pthread_mutex_lock(&fifo.lock);
    fifo.limit = bytes;
    pthread_mutex_unlock(&fifo.lock);
}

/* Make room for `wanted` bytes by dropping whole lines from the front. */
static void drop_oldest(size_t wanted)
{
    size_t over = fifo.length + wanted - fifo.limit;
    if (over > fifo.length)
        over = fifo.length;
    const char *line = memchr(fifo.bytes + over, '\n', fifo.length - over);
    size_t dropped = line ? (size_t)(line + 1 - fifo.bytes) : fifo.length;
    memmove(fifo.bytes, fifo.bytes + dropped, fifo.length - dropped);
    fifo.length -= dropped;
}

void hdsoft__print(void *device, const char *bytes, size_t length)
{
    (void)device;
    pthread_mutex_lock(&fifo.lock);
    if (length > fifo.limit)
        length = fifo.limit;
    if (fifo.length && fifo.length + length > fifo.limit)
        drop_oldest(length);
    char *grown = realloc(fifo.bytes, fifo.length + length + 1);
    if (grown) {
        fifo.bytes = grown;
        memcpy(grown + fifo.length, bytes, length);
        fifo.length += length;
    }
    pthread_mutex_unlock(&fifo.lock);
}

void hdsoft__print_flush(void)
{
    /* Two threads that synchronise at once must not mix their parts up. */
    pthread_mutex_lock(&fifo.writing);
    pthread_mutex_lock(&fifo.lock);
    char *bytes = fifo.bytes;
    size_t length = fifo.length;
    hdsoft_print_function function = fifo.function;
    void *context = fifo.context;
    fifo.bytes = NULL;
    fifo.length = 0;
    pthread_mutex_unlock(&fifo.lock);
    if (length && function) {
        function(context, bytes, length);
    } else if (length) {
        fwrite(bytes, 1, length, stdout);
        fflush(stdout);
    }
    pthread_mutex_unlock(&fifo.writing);
    free(bytes);
}

void hdsoft__print_to(hdsoft_print_function function, void *context)
{
    pthread_mutex_lock(&fifo.lock);
    fifo.function = function;
    fifo.context = context;
    pthread_mutex_unlock(&fifo.lock);
}
