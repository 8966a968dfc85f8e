/* SPDX-License-Identifier: MIT */
/*
 * The folders of the disk cache: finds them, guards them, reads and publishes whole entries by digest and kind. It
 * knows nothing of what is in them.
 *
 *     <root>/CACHEDIR.TAG, <root>/v1/<2 hex digits>/<62 hex digits>.<kind>, <root>/v1/{usage,lock,stats}
 *
 * One folder is read and written; any number of further ones are only read. Readers take no lock. Entries are
 * immutable: written to a temporary file in the same folder and renamed. What is not ours alone (owner, modes, links,
 * kinds of file) is not read and not written. Nothing here fails a compile: without a usable folder every read is a
 * miss, every write is dropped, and the reason is kept and logged once.
 *
 * The folder is kept below its limit by removing what was not used for longest (sweep.h). An entry's modification time
 * is its last use, brought up to date once an hour.
 *
 * All functions may be called from any thread.
 */
#ifndef HDRT_JIT_STORE_H
#define HDRT_JIT_STORE_H

#include <hdrt.h>

#include "base/digest.h"

typedef struct hdrt__store hdrt__store;

/* Kinds of entries, as their names end: one letter each. */
typedef enum hdrt__entry_kind {
    HDRT__ENTRY_MANIFEST = 'm',
    HDRT__ENTRY_IMAGE = 'i',
    HDRT__ENTRY_NAMES = 'n',
    HDRT__ENTRY_MEMO = 'o',
    HDRT__ENTRY_QUARANTINE = 'q',
} hdrt__entry_kind;

#define HDRT__STORE_FOLDER "v1"
#define HDRT__STORE_TEMPORARY ".tmp-"
#define HDRT__STORE_USAGE "usage"
#define HDRT__STORE_LOCK "lock"
#define HDRT__STORE_STATS "stats"

/* Larger files are neither read nor written. */
#define HDRT__ENTRY_LIMIT (256u << 20)
#define HDRT__STORE_LIMIT_DEFAULT (UINT64_C(1) << 30)

/* Copied. */
typedef struct hdrt__store_config {
    const char *directory; /* runtime option; NULL: HDRT_CACHE_DIR, $XDG_CACHE_HOME/hdrt, $HOME/.cache/hdrt */
    const char *const *read_only; /* NULL: HDRT_CACHE_READ_ONLY, separated by colons */
    uint32_t read_only_count;
    uint64_t limit_bytes; /* 0: HDRT_CACHE_LIMIT, or the default */
} hdrt__store_config;

/*
 * Open the cache. "" as directory and "off" in the environment mean none, and so does a privileged program. Makes no
 * folder yet: the first write does. HDRT_OK, also without a usable folder; HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__store_open(const hdrt__store_config *config, hdrt__store **out_store);
void hdrt__store_close(hdrt__store *store);

/* Look whether the folder can be used and written: the reason is known before the first compile. Makes nothing. */
void hdrt__store_check(hdrt__store *store);

/* Folder 0 is the one that is written, those behind it are read only. */
uint32_t hdrt__store_count(const hdrt__store *store);
/* The folder, NULL if there is none. Belongs to the store. */
const char *hdrt__store_directory(const hdrt__store *store, uint32_t folder);
/* Why there is no folder, or why nothing is stored in it; NULL if all is well. The store's; may appear later. */
const char *hdrt__store_reason(const hdrt__store *store, uint32_t folder);
uint64_t hdrt__store_limit(const hdrt__store *store);

/* The whole entry, malloc'ed; NULL with *out_reason: HDRT_CACHE_OFF, _NEW, _TRUNCATED (empty), _REFUSED, _UNREADABLE. */
unsigned char *hdrt__store_read(hdrt__store *store, uint32_t folder, const hdrt__digest *name, hdrt__entry_kind kind,
                                size_t *out_size, hdrt_cache_reason *out_reason);
/* Publish an entry, replacing one of that name. false if it was not stored. */
bool hdrt__store_write(hdrt__store *store, const hdrt__digest *name, hdrt__entry_kind kind, const void *bytes,
                       size_t size);
/* Sets an image aside that the driver did not take, so that it is not found again. */
void hdrt__store_quarantine(hdrt__store *store, const hdrt__digest *image);

/* malloc'ed path of an entry, there or not; NULL without a folder or memory. */
char *hdrt__store_path(const hdrt__store *store, uint32_t folder, const hdrt__digest *name, hdrt__entry_kind kind);

/* For what works on a folder as a whole: descriptor of <folder>/v1, borrowed; -1 if there is none. */
int hdrt__store_root(hdrt__store *store, uint32_t folder, bool make);

/* Entries that were removed to make room, since the store was opened. */
uint64_t hdrt__store_evicted(const hdrt__store *store);

/* "512", "512K", "512M", "2G": bytes; 0 if it is no size. */
uint64_t hdrt__size_parse(const char *text);

#endif
