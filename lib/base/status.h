/* SPDX-License-Identifier: MIT */
/*
 * Failing with words. Every function that fails calls one of these at the place where the failure is first known, and
 * returns the status; callers further out pass it on without a message of their own. The text is kept per thread and
 * read by hdrt_last_error.
 */
#ifndef HDRT_BASE_STATUS_H
#define HDRT_BASE_STATUS_H

#include <hdrt.h>

/* Longest message kept, with its NUL; longer ones are cut and end in "...". */
#define HDRT__MESSAGE_SIZE 4096

/* Keep the message for this thread and return `status`. */
hdrt_status hdrt__fail(hdrt_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Keep `message` as it is for this thread (a message stored in a queue, say) and return `status`. */
hdrt_status hdrt__fail_with(hdrt_status status, const char *message);

/* Put words in front of this thread's last message: "context: message". For callers that know the object's name. */
void hdrt__fail_prefix(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* hdrt__fail for a failed allocation of `bytes` for `what`. */
hdrt_status hdrt__fail_memory(size_t bytes, const char *what);

/*
 * The options protocol: NULL or a struct whose first member is its size. Copies what both sides know into `known`
 * (known_size bytes, filled with the defaults: zeros and its size) and refuses unknown non-zero tails, too small
 * sizes, and non-zero bytes in [reserved_offset, known_size). `name` is the struct's name for messages.
 */
hdrt_status hdrt__options_read(const char *name, const void *given, void *known, size_t known_size,
                               size_t reserved_offset);

/*
 * The other way, for ..._get_info functions: fill the caller's struct from `full`, as much of it as the caller's size
 * says it has room for; its size stays, and members that this library does not know become zero. Refuses NULL and
 * sizes that were never set.
 */
hdrt_status hdrt__info_write(const char *name, void *given, const void *full, size_t full_size);

#endif
