/* SPDX-License-Identifier: MIT */
#include "jit/cancel.h"

#include <sys/socket.h>

#include "base/status.h"

void hdrt__cancel_init(hdrt__cancel *cancel)
{
    pthread_mutex_init(&cancel->lock, NULL);
    cancel->asked = false;
    cancel->socket = -1;
}

void hdrt__cancel_end(hdrt__cancel *cancel)
{
    pthread_mutex_destroy(&cancel->lock);
}

void hdrt__cancel_now(hdrt__cancel *cancel)
{
    pthread_mutex_lock(&cancel->lock);
    cancel->asked = true;
    if (cancel->socket >= 0)
        shutdown(cancel->socket, SHUT_RDWR);
    pthread_mutex_unlock(&cancel->lock);
}

bool hdrt__cancel_asked(hdrt__cancel *cancel)
{
    if (!cancel)
        return false;
    pthread_mutex_lock(&cancel->lock);
    bool asked = cancel->asked;
    pthread_mutex_unlock(&cancel->lock);
    return asked;
}

bool hdrt__cancel_attach(hdrt__cancel *cancel, int socket)
{
    if (!cancel)
        return true;
    pthread_mutex_lock(&cancel->lock);
    bool asked = cancel->asked;
    if (!asked)
        cancel->socket = socket;
    pthread_mutex_unlock(&cancel->lock);
    return !asked;
}

void hdrt__cancel_detach(hdrt__cancel *cancel)
{
    if (!cancel)
        return;
    pthread_mutex_lock(&cancel->lock);
    cancel->socket = -1;
    pthread_mutex_unlock(&cancel->lock);
}

hdrt_status hdrt__cancelled(void)
{
    return hdrt__fail(HDRT_ERROR_CANCELLED, "the compile was cancelled");
}
