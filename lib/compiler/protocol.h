/* SPDX-License-Identifier: MIT */
/*
 * What lib/jit and hdrt-cc say to each other: the one bridge between the two. Plain definitions, no code.
 *
 * The client makes a SOCK_STREAM socketpair and starts hdrt-cc with the other end as descriptor 3 and `--fd=3`. It
 * sends one request, hdrt-cc answers with one reply, and so on until the socket closes. Both ends are the same build
 * of the same package: the version must be equal, or the worker answers HDRT_CC_STATUS_PROTOCOL.
 *
 * A message is a header and a payload of `length` bytes; the payload is a sequence of fields, each a tag (u32), a
 * length (u64) and that many bytes; numbers are little-endian; texts carry no NUL. Repeated tags make lists, in order.
 * Neither side trusts a length: messages are bounded by HDRT_CC_MESSAGE_LIMIT, fields by their message. Unknown tags
 * are an error in a request and skipped in a reply.
 *
 * Cancelling is closing the socket: the worker and whatever it runs end at once, in the middle of a compile too. A
 * time limit is kept by the worker, which answers HDRT_CC_STATUS_LIMIT; NVRTC cannot be interrupted, so there it ends
 * itself after that answer. The client waits for the limit and HDRT_CC_GRACE_MS more, then closes the socket. End of
 * file instead of a reply: the worker was killed or crashed. It also ends after HDRT_CC_IDLE_MS without a request,
 * after an NVRTC compile that hit a limit, and when the libnvrtc that it has loaded was replaced on disk, so that a
 * request to a worker used before may meet a closed socket: start another one then.
 */
#ifndef HDRT_COMPILER_PROTOCOL_H
#define HDRT_COMPILER_PROTOCOL_H

#define HDRT_CC_MAGIC 0x43434448u /* "HDCC" */
#define HDRT_CC_VERSION 2u
#define HDRT_CC_MESSAGE_LIMIT (1ull << 30)
/* Header: magic u32, version u32, type u32, zero u32, length u64 = 24 bytes. */
#define HDRT_CC_HEADER_SIZE 24u
#define HDRT_CC_IDLE_MS 60000u
#define HDRT_CC_GRACE_MS 2000u

enum hdrt_cc_type {
    HDRT_CC_REQUEST_COMPILE = 1,
    HDRT_CC_REPLY_COMPILE = 2,
};

/* Fields of a compile request. */
enum hdrt_cc_request_tag {
    HDRT_CC_BACK_END = 1,       /* u32: HDRT_CC_NVRTC or HDRT_CC_CLANG */
    HDRT_CC_COMPILER_PATH = 2,  /* text: absolute path of libnvrtc.so or of clang */
    HDRT_CC_BUILTINS_PATH = 3,  /* text: NVRTC's builtins, opened first; may be absent */
    HDRT_CC_SOURCE = 4,         /* bytes: the source as it was hashed (byte-order mark already removed) */
    HDRT_CC_NAME = 5,           /* text: program name: absolute path of the source file, or a bare name */
    HDRT_CC_DIRECTORY = 6,      /* text: absolute folder that relative paths and a bare name refer to */
    HDRT_CC_ARCH = 7,           /* text: sm_XX[a|f]; the worker lowers it if the compiler does not know it and
                                   HDRT_CC_ARCH_LOWER allows it, else that is an error naming what it knows */
    HDRT_CC_ARCH_LOWER = 8,     /* u32: enum hdrt_cc_lower */
    HDRT_CC_KIND = 9,           /* u32: HDRT_CC_PTX, HDRT_CC_CUBIN */
    HDRT_CC_OPTION = 10,        /* text, repeated: NVRTC spelling, checked against the allow-list by the client */
    HDRT_CC_PRELUDE = 11,       /* text: folder of the device prelude (clang) */
    HDRT_CC_RECORDER = 12,      /* text: path of the file recorder to preload into clang */
    HDRT_CC_TIME_LIMIT = 13,    /* u32 ms, 0: none */
    HDRT_CC_MEMORY_LIMIT = 14,  /* u64 bytes of address space for the compiler; 0: none */
    HDRT_CC_RANDOM_SEED = 15,   /* text: -frandom-seed for NVRTC, hex */
    HDRT_CC_LIBDEVICE = 16,     /* text: absolute path of libdevice.10.bc for clang to link; absent: calls to __nv_*
                                   stay in the PTX and come back as HDRT_CC_UNRESOLVED */
    HDRT_CC_HEADER_NAME = 17,   /* text, repeated: an in-memory header's name as an include gives it: relative, without
                                   "." and ".."; the field behind it is its text */
    HDRT_CC_HEADER_TEXT = 18,   /* text: of the header named last */
    HDRT_CC_INPUT = 20,         /* repeated, for a link: enum hdrt_cc_input u32, length u32 of the name, name, bytes to
                                   the end. A link has no source, no headers and no expressions */
    HDRT_CC_EXPRESSION = 19,    /* text, repeated: a name expression, to come back as HDRT_CC_LOWERED_NAME */
};

enum hdrt_cc_lower {
    HDRT_CC_LOWER_NOT = 0,
    HDRT_CC_LOWER_ANY = 1,
    HDRT_CC_LOWER_CUBIN = 2,    /* only as far as a cubin still runs: the driver takes no PTX of this compiler */
};
enum hdrt_cc_back_end {
    HDRT_CC_NVRTC = 1,
    HDRT_CC_CLANG = 2,
    HDRT_CC_NVJITLINK = 3,      /* its path is HDRT_CC_COMPILER_PATH; kinds: PTX (of LTO-IR only), cubin */
};
/* nvJitLink's own numbers. */
enum hdrt_cc_input {
    HDRT_CC_INPUT_CUBIN = 1,
    HDRT_CC_INPUT_PTX = 2,
    HDRT_CC_INPUT_LTO_IR = 3,
    HDRT_CC_INPUT_FATBIN = 4,
    HDRT_CC_INPUT_OBJECT = 5,
    HDRT_CC_INPUT_LIBRARY = 6,
};
enum hdrt_cc_kind { HDRT_CC_PTX = 1, HDRT_CC_CUBIN = 2, HDRT_CC_LTO_IR = 3 /* NVRTC only */ };

/* Fields of a compile reply. */
enum hdrt_cc_reply_tag {
    HDRT_CC_STATUS = 1,         /* u32: enum hdrt_cc_status; always there */
    HDRT_CC_MESSAGE = 2,        /* text: the status in words, with the cause */
    HDRT_CC_LOG = 3,            /* text: all that the compiler said */
    HDRT_CC_DIAGNOSTIC = 4,     /* repeated; payload: line u32, column u32, severity u32 (1 note, 2 warning, 3 error),
                                   file length u32, file, text to the end */
    HDRT_CC_CODE_PTX = 5,       /* bytes, without a NUL */
    HDRT_CC_CODE_CUBIN = 6,     /* bytes, beside the PTX; none although asked for if the arch was lowered to another
                                   major number, where a cubin would not run: the driver has to compile the PTX */
    HDRT_CC_ARCH_USED = 7,      /* text: what it was compiled for */
    HDRT_CC_DEPENDENCY = 8,     /* repeated: a file that was read; payload: size u64, mtime ns u64, ctime ns u64,
                                   device u64, inode u64, BLAKE2b-256 of the content (32 bytes), path to the end */
    HDRT_CC_ABSENT = 9,         /* text, repeated: absolute path where nothing was (stat failed with ENOENT or ENOTDIR):
                                   anything there, a folder too, can change the result */
    HDRT_CC_NO_STORE = 10,      /* text, repeated: a reason why the result must not be cached */
    HDRT_CC_COMPILER_VERSION = 11, /* text: "NVRTC 13.0", "clang 19.1.7" */
    HDRT_CC_NOTE = 12,          /* text, repeated: the target was lowered, say */
    HDRT_CC_UNRESOLVED = 13,    /* text, repeated: functions that the PTX calls and nobody defines (__nv_*);
                                   not those of the driver (vprintf, __assertfail, malloc, free). clang only */
    HDRT_CC_CODE_LTO_IR = 14,   /* bytes, with neither PTX nor cubin */
    HDRT_CC_LOWERED_NAME = 15,  /* repeated: length u32 of the expression, expression, name in the code to the end */
    HDRT_CC_COMMAND = 16,       /* text: the compiler's path and options, quoted for a shell where that is needed */
};

enum hdrt_cc_status {
    HDRT_CC_STATUS_OK = 0,
    HDRT_CC_STATUS_COMPILE = 1,       /* the source has errors; log and diagnostics are there */
    HDRT_CC_STATUS_OPTION = 2,        /* an option or arch that this compiler does not take, named in the message */
    HDRT_CC_STATUS_NO_COMPILER = 3,   /* the compiler cannot be opened or started */
    HDRT_CC_STATUS_CRASHED = 4,       /* the compiler ended by a signal or an internal error */
    HDRT_CC_STATUS_LIMIT = 5,         /* time or memory limit */
    HDRT_CC_STATUS_UNSUPPORTED = 6,   /* this compiler cannot do that: a cubin from clang, say */
    HDRT_CC_STATUS_PROTOCOL = 7,      /* malformed or foreign request */
    HDRT_CC_STATUS_MEMORY = 8,        /* out of memory in the worker itself */
    HDRT_CC_STATUS_IO = 9,            /* a temporary object could not be made */
};

#endif
