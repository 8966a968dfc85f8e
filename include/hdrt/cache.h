/* SPDX-License-Identifier: MIT */
/**
 * \file hdrt/cache.h
 * The kernel cache on disk: what is in it, what it did, keeping it small, and why something was compiled again.
 *
 * A runtime has one folder of its own (hdrt_runtime_options.cache_dir), which it reads and writes, and any number of
 * further folders that are only read, e.g. a cache of kernels that an application ships. Entries are files that check
 * themselves: nothing of a file is used before its digest was found right. A cache may be deleted at any time, by any
 * means, and folders may be shared by any number of processes.
 *
 * Strings in structs filled here belong to the runtime unless a comment says otherwise.
 */
#ifndef HDRT_CACHE_H
#define HDRT_CACHE_H

#ifndef HDRT_H
#error "include <hdrt.h>, not its parts"
#endif

/**
 * What a look into the cache came to: X(name, number, text). 0 is a hit; all others are reasons for a compile.
 * Numbers never change, and are below HDRT_CACHE_REASON_LIMIT.
 */
#define HDRT_CACHE_REASON_LIST(X)                                                                                      \
    X(HDRT_CACHE_HIT, 0, "found in the cache")                                                                         \
    X(HDRT_CACHE_OFF, 1, "there is no disk cache, or it was not to be asked")                                          \
    X(HDRT_CACHE_NEW, 2, "this source was never compiled like this")                                                   \
    X(HDRT_CACHE_FILE_CHANGED, 3, "a file that it reads has other contents")                                           \
    X(HDRT_CACHE_FILE_GONE, 4, "a file that it reads is no longer there")                                              \
    X(HDRT_CACHE_FILE_APPEARED, 5, "a file is there that was looked for in vain, and could be read instead")           \
    X(HDRT_CACHE_IMAGE_GONE, 6, "the code was removed from the cache")                                                 \
    X(HDRT_CACHE_TRUNCATED, 7, "the entry is shorter than it says")                                                    \
    X(HDRT_CACHE_EXTENDED, 8, "the entry is longer than it says")                                                      \
    X(HDRT_CACHE_DAMAGED, 9, "the entry's digest does not fit its bytes")                                              \
    X(HDRT_CACHE_OTHER_VERSION, 10, "the entry is of another version of libhdrt")                                      \
    X(HDRT_CACHE_MISPLACED, 11, "the entry belongs to another name")                                                   \
    X(HDRT_CACHE_REFUSED, 12, "the file is no plain file of this user's alone")                                        \
    X(HDRT_CACHE_UNREADABLE, 13, "the entry cannot be read")                                                           \
    X(HDRT_CACHE_QUARANTINED, 14, "the driver did not take the cached code")                                           \
    X(HDRT_CACHE_OPTION_CHANGED, 15, "an option, the target or another part of the invocation differs")                \
    X(HDRT_CACHE_SOURCE_CHANGED, 16, "the source differs")                                                             \
    X(HDRT_CACHE_COMPILER_CHANGED, 17, "the compiler or what belongs to it differs")

/** See HDRT_CACHE_REASON_LIST. */
typedef enum hdrt_cache_reason {
#define HDRT_CACHE_REASON_ENUM(name, number, text) name = number,
    HDRT_CACHE_REASON_LIST(HDRT_CACHE_REASON_ENUM)
#undef HDRT_CACHE_REASON_ENUM
} hdrt_cache_reason;

#define HDRT_CACHE_REASON_LIMIT 32

/** The reason's name, e.g. "HDRT_CACHE_DAMAGED", and its text; "?" for other numbers. Static storage. Any thread. */
HDRT_EXPORT const char *hdrt_cache_reason_name(hdrt_cache_reason reason);
HDRT_EXPORT const char *hdrt_cache_reason_text(hdrt_cache_reason reason);

/** Where the cache is. */
typedef struct hdrt_cache_info {
    size_t size;              /**< set by the caller to sizeof(hdrt_cache_info) */
    const char *directory;    /**< the folder that is read and written; NULL: none */
    const char *reason;       /**< why there is none or nothing is stored in it; NULL: all is well */
    uint64_t limit_bytes;     /**< the size that it is kept below */
    uint32_t read_only_count; /**< further folders, see hdrt_cache_read_only */
    uint32_t reserved;        /**< zero */
} hdrt_cache_info;

#define HDRT_CACHE_INFO_INIT HDRT_INIT_(hdrt_cache_info)

/** Where the cache is. Looks whether it can be written, and makes nothing. */
HDRT_EXPORT hdrt_status hdrt_cache_get_info(hdrt_runtime *runtime, hdrt_cache_info *out_info);
/** The index-th further folder, and why it is not used (NULL: it is); NULL past the end. */
HDRT_EXPORT const char *hdrt_cache_read_only(hdrt_runtime *runtime, uint32_t index, const char **out_reason);

/** Whose counters. */
typedef enum hdrt_cache_scope {
    HDRT_CACHE_THIS_RUNTIME = 0, /**< of this runtime since it was made */
    HDRT_CACHE_ALL = 1,          /**< of all that used the folder and ended in order, this runtime included */
} hdrt_cache_scope;

/** Counters. Those of the folder are approximate: a process that is killed takes its own along. */
typedef struct hdrt_cache_stats {
    size_t size;              /**< set by the caller to sizeof(hdrt_cache_stats) */
    uint64_t memory_hits;     /**< code that was still in memory */
    uint64_t disk_hits;       /**< code from the folder */
    uint64_t read_only_hits;  /**< code from a further folder */
    uint64_t shared_compiles; /**< of the disk hits, those that waited for another process's compile */
    uint64_t compiles;        /**< compiles that were asked of a worker and succeeded */
    uint64_t compile_ns;      /**< time they took */
    uint64_t stored;          /**< compiles whose code was stored */
    uint64_t not_cacheable;   /**< that must not be: date or time in the source, files that changed meanwhile, ... */
    uint64_t store_failures;  /**< that could not be: no room, no rights, ... */
    uint64_t evicted;         /**< entries removed to make room */
    uint64_t misses[HDRT_CACHE_REASON_LIMIT]; /**< compiles, by the reason for each; the 0th is not used */
    uint64_t reserved[8];     /**< zero */
} hdrt_cache_stats;

#define HDRT_CACHE_STATS_INIT HDRT_INIT_(hdrt_cache_stats)

/** Counters. \return HDRT_OK, HDRT_ERROR_INVALID_ARGUMENT, HDRT_ERROR_OUT_OF_MEMORY, HDRT_ERROR_FORKED. */
HDRT_EXPORT hdrt_status hdrt_cache_get_stats(hdrt_runtime *runtime, hdrt_cache_scope scope,
                                             hdrt_cache_stats *out_stats);
/** Set the counters of the runtime and of the folder to zero. */
HDRT_EXPORT hdrt_status hdrt_cache_reset_stats(hdrt_runtime *runtime);

/** What a file of the cache is. */
typedef enum hdrt_cache_kind {
    HDRT_CACHE_IMAGE = 1,       /**< compiled code */
    HDRT_CACHE_MANIFEST = 2,    /**< for one source and invocation: files read and looked for, and the images made */
    HDRT_CACHE_NAMES = 3,       /**< the latest manifests of one source's name, for explanations */
    HDRT_CACHE_MEMO = 4,        /**< the digest of a compiler's file that has no build identifier */
    HDRT_CACHE_QUARANTINE = 5,  /**< code that the driver did not take, kept to be looked at */
    HDRT_CACHE_TEMPORARY = 6,   /**< an entry being written, or left by a process that was killed */
    HDRT_CACHE_OTHER = 7,       /**< a file that libhdrt did not make */
} hdrt_cache_kind;

/** One file of the cache. Strings are valid during the call that gets it; those not known are NULL. */
typedef struct hdrt_cache_entry {
    size_t size;              /**< sizeof(hdrt_cache_entry) of the library */
    const char *path;         /**< absolute */
    hdrt_cache_kind kind;
    uint32_t folder;          /**< 0: the runtime's own; else 1 + index of the further folder */
    uint64_t bytes;           /**< size of the file */
    uint64_t used_ns;         /**< last use, as time since 1970, an hour exact at best */
    hdrt_cache_reason reason; /**< HDRT_CACHE_HIT: undamaged; else what is wrong with it */
    uint32_t kernel_count;    /**< images: how many kernels */
    const char *name;         /**< images, manifests: the source's name */
    const char *arch;         /**< images, manifests: the target */
    const char *compiler;     /**< images, manifests: path of the compiler */
    const char *compiler_version; /**< images */
    const char *options;      /**< images, manifests: options, separated by blanks */
    const char *kernels;      /**< images: names of the kernels, separated by blanks */
    uint32_t image_count;     /**< manifests: states of the files read that have an image each */
    uint32_t file_count;      /**< manifests: files read, in the latest of them */
    uint32_t absent_count;    /**< manifests: paths looked for in vain, in the latest of them */
    uint32_t reserved;
} hdrt_cache_entry;

/** Gets entries one by one; false ends the walk. Must not call functions of this header. */
typedef bool (*hdrt_cache_visitor)(void *context, const hdrt_cache_entry *entry);

/** What a walk over the cache's own folder found and did. */
typedef struct hdrt_cache_summary {
    size_t size;            /**< set by the caller to sizeof(hdrt_cache_summary) */
    uint64_t files, bytes;  /**< all that there was */
    uint64_t bad_files, bad_bytes; /**< verify: files whose entry->reason was not HDRT_CACHE_HIT */
    uint64_t removed_files, removed_bytes;
    uint64_t reserved[4];   /**< zero */
} hdrt_cache_summary;

#define HDRT_CACHE_SUMMARY_INIT HDRT_INIT_(hdrt_cache_summary)

/** All entries of all folders, each read whole and checked. Order: none. No folder: no entry. */
HDRT_EXPORT hdrt_status hdrt_cache_list(hdrt_runtime *runtime, hdrt_cache_visitor visitor, void *context);

/**
 * Read every file of the cache's own folder and check it.
 *
 * \param repair  remove what is damaged, of another version, misplaced or not libhdrt's
 * \param visitor  gets the bad ones; may be NULL
 * \param out_summary  may be NULL
 * \return HDRT_OK, also when some are bad: see out_summary; HDRT_ERROR_IO  a folder cannot be listed
 */
HDRT_EXPORT hdrt_status hdrt_cache_verify(hdrt_runtime *runtime, bool repair, hdrt_cache_visitor visitor, void *context,
                                          hdrt_cache_summary *out_summary);

/**
 * Remove the least recently used entries until the folder is small enough, those not used for long, and all that
 * killed processes left.
 *
 * Safe while others read and write: who has an entry open keeps it.
 *
 * \param limit_bytes  0: the runtime's limit
 * \param max_age_s  0: any age; else remove what was not used for so many seconds
 * \param out_summary  may be NULL
 */
HDRT_EXPORT hdrt_status hdrt_cache_trim(hdrt_runtime *runtime, uint64_t limit_bytes, uint64_t max_age_s,
                                        hdrt_cache_summary *out_summary);

/** Remove all that libhdrt made in the cache's own folder. Counters stay. */
HDRT_EXPORT hdrt_status hdrt_cache_clear(hdrt_runtime *runtime, hdrt_cache_summary *out_summary);

struct hdrt_source;
struct hdrt_compile_options;

/** What a compile would find in the cache, and why it would not find more. Belongs to the caller. */
typedef struct hdrt_explanation hdrt_explanation;

/** An explanation's result. Strings belong to the explanation. */
typedef struct hdrt_explanation_info {
    size_t size;              /**< set by the caller to sizeof(hdrt_explanation_info) */
    hdrt_cache_reason reason; /**< HDRT_CACHE_HIT, or the first reason why a compiler would have to run */
    uint32_t difference_count;
    const char *text;         /**< all of it in one sentence */
    const char *key;          /**< digest of the invocation, 64 hexadecimal digits */
    const char *manifest;     /**< path where its manifest is, or would be stored; NULL: no folder */
    const char *image;        /**< path of the code on a hit; NULL otherwise */
    const char *last_reason;  /**< why the latest compile of this invocation was needed, in words; NULL: not known */
    const char *compared_to;  /**< the other invocation of the same source's name that `differences` compare to: its
                                   key; NULL: this invocation's own manifest */
} hdrt_explanation_info;

#define HDRT_EXPLANATION_INFO_INIT HDRT_INIT_(hdrt_explanation_info)

/** One thing that differs from what the cache has. */
typedef struct hdrt_difference {
    hdrt_cache_reason reason; /**< which sort: FILE_..., OPTION_CHANGED, SOURCE_CHANGED, COMPILER_CHANGED */
    const char *what;         /**< the file's path, or the field: "option", "target", "source", "name", ... */
    const char *before, *now; /**< values, in words; NULL: there was, or is, none */
} hdrt_difference;

/**
 * Look without compiling: would this be found in the cache, and if not, what makes the difference to the nearest
 * earlier compile of a source of this name?
 *
 * \return HDRT_OK, hit or not; what hdrt_image_compile returns for arguments that it refuses or without a compiler
 */
HDRT_EXPORT hdrt_status hdrt_cache_explain(hdrt_runtime *runtime, const struct hdrt_source *source,
                                           const struct hdrt_compile_options *options, hdrt_explanation **out_explanation);
/** As hdrt_cache_explain, as hdrt_module_compile for that device would look. */
HDRT_EXPORT hdrt_status hdrt_cache_explain_for(hdrt_device *device, const struct hdrt_source *source,
                                               const struct hdrt_compile_options *options, hdrt_explanation **out_explanation);
HDRT_EXPORT void hdrt_explanation_destroy(hdrt_explanation *explanation);
HDRT_EXPORT hdrt_status hdrt_explanation_get_info(const hdrt_explanation *explanation, hdrt_explanation_info *out_info);
/** The index-th difference; HDRT_ERROR_NOT_FOUND past the end. */
HDRT_EXPORT hdrt_status hdrt_explanation_difference(const hdrt_explanation *explanation, uint32_t index,
                                                    hdrt_difference *out_difference);

#endif
