/* SPDX-License-Identifier: MIT */
/*
 * Finding what belongs to libhdrt but is not in it: the compile worker, the soft driver, the file recorder and the
 * device prelude. lib/device looks once per runtime. Rules in order; the first folder in which anything is found
 * decides the rest too, so that an old installation never lends a part to a new one:
 *
 *     option          the runtime's `libexec` option
 *     HDRT_LIBEXEC    the environment variable (never in privileged programs)
 *     beside libhdrt  the place of libhdrt itself: the build tree, or the installed tree wherever it was moved
 *     configured      the folders given to configure
 */
#ifndef HDRT_DRIVER_COMPANIONS_H
#define HDRT_DRIVER_COMPANIONS_H

#include <hdrt.h>

typedef struct hdrt__companions {
    char *worker;     /* hdrt-cc; NULL if not found, as each of these */
    char *soft;       /* libhdsoft.so */
    char *recorder;   /* libhdrt-record.so */
    char *prelude;    /* the folder of hdrt_device.h */
    const char *rule; /* which rule found them, NULL if none did. Static. */
    char *searched;   /* the folders looked into, for messages: "HDRT_LIBEXEC '/a'" */
} hdrt__companions;

/*
 * Look for the companions. Finding none is no failure; the need for one is. An `option` or HDRT_LIBEXEC that was given
 * is the only place that is searched.
 * \return HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY. Free with hdrt__companions_free.
 */
hdrt_status hdrt__companions_find(const char *option, hdrt__companions **out_companions);
void hdrt__companions_free(hdrt__companions *companions);

/*
 * HDRT_ERROR_COMPANION with a message for a companion that is NULL and needed: what is missing, what for, where it was
 * looked for and what to do. Example: hdrt__companion_missing(companions, "libhdsoft.so", "the soft driver").
 */
hdrt_status hdrt__companion_missing(const hdrt__companions *companions, const char *file, const char *purpose);

#endif
