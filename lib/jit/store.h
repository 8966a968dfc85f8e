/* SPDX-License-Identifier: MIT */
/*
 * The folder of the disk cache: finds it, guards it, reads and publishes whole entries by digest and kind. It knows
 * nothing of what is in them.
 *
 *     <root>/CACHEDIR.TAG, <root>/v1/<2 hex digits>/<62 hex digits>.<kind>
 *
 * Readers take no lock. Entries are immutable: written to a temporary file in the same folder and renamed. What is not
 * ours alone (owner, modes, links, kinds of file) is not read and not written. Nothing here fails a compile: without a
 * usable folder every read is a miss, every write is dropped, and the reason is kept and logged once.
 *
 * All functions may be called from any thread.
 */
#ifndef HDRT_JIT_STORE_H
#define HDRT_JIT_STORE_H

#include <hdrt.h>

#include "base/digest.h"

typedef struct hdrt__store hdrt__store;

/* Kinds of entries, as their names end. */
typedef enum hdrt__entry_kind {
    HDRT__ENTRY_MANIFEST,
    HDRT__ENTRY_IMAGE,
} hdrt__entry_kind;

/* Larger files are neither read nor written. */
#define HDRT__ENTRY_LIMIT (256u << 20)

/*
 * Open the cache: `option` (runtime option; NULL: HDRT_CACHE_DIR, $XDG_CACHE_HOME/hdrt, $HOME/.cache/hdrt). "" as
 * option and "off" in the environment mean none, and so does a privileged program. Makes no folder yet: the first write
 * does. HDRT_OK, also without a usable folder; HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__store_open(const char *option, hdrt__store **out_store);
void hdrt__store_close(hdrt__store *store);

/* Look whether the folder can be used and written: the reason is known before the first compile. Makes nothing. */
void hdrt__store_check(hdrt__store *store);

/* The folder, NULL if there is none. Belongs to the store. */
const char *hdrt__store_directory(const hdrt__store *store);
/* Why there is no folder, or why nothing is stored in it; NULL if all is well. The store's; may appear later. */
const char *hdrt__store_reason(const hdrt__store *store);

/* The whole entry, malloc'ed; NULL for a miss of any sort. */
unsigned char *hdrt__store_read(hdrt__store *store, const hdrt__digest *name, hdrt__entry_kind kind, size_t *out_size);
/* Publish an entry, replacing one of that name. false if it was not stored. */
bool hdrt__store_write(hdrt__store *store, const hdrt__digest *name, hdrt__entry_kind kind, const void *bytes,
                       size_t size);

#endif
