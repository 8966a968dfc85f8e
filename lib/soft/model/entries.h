/* SPDX-License-Identifier: MIT */
/*
 * The entry points by number, in the order of cuda_symbols.h.
 */
#ifndef HDSOFT_MODEL_ENTRIES_H
#define HDSOFT_MODEL_ENTRIES_H

#include "driver/cuda_symbols.h"

typedef enum hdsoft__entry {
#define HDSOFT_ENTRY_NUMBER(name, symbol, version, need, parameters) HDSOFT__ENTRY_##name,
    HDCU_SYMBOL_LIST(HDSOFT_ENTRY_NUMBER)
#undef HDSOFT_ENTRY_NUMBER
    HDSOFT__ENTRIES
} hdsoft__entry;

/* The number of an entry by its symbol or its plain name; HDSOFT__ENTRIES: there is none. */
hdsoft__entry hdsoft__entry_find(const char *name);
const char *hdsoft__entry_name(hdsoft__entry entry);
const char *hdsoft__entry_symbol(hdsoft__entry entry);

#endif
