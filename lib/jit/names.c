/* SPDX-License-Identifier: MIT */
#include "jit/names.h"

#include <stdlib.h>
#include <string.h>

#include "jit/container.h"

static const char magic[HDRT__CONTAINER_MAGIC_SIZE] = {'H', 'D', 'R', 'T', 'N', 'A', 'M', '\n'};

enum { NAMES_NAME = 1, NAMES_KEY = 2 };

static hdrt__digest entry_of(const char *name)
{
    hdrt__hasher hasher;
    hdrt__hasher_begin(&hasher, "hdrt name");
    hdrt__hasher_text(&hasher, NAMES_NAME, name);
    return hdrt__hasher_end(&hasher);
}

static uint32_t read_keys(const unsigned char *bytes, size_t size, const char *name,
                          hdrt__digest keys[HDRT__NAMES_LIMIT])
{
    hdrt__cursor sections;
    hdrt__section section;
    uint32_t count = 0;
    bool named = false;
    if (hdrt__container_open(bytes, size, magic, &sections) != HDRT_CACHE_HIT)
        return 0;
    while (hdrt__container_next(&sections, &section)) {
        if (section.tag == NAMES_NAME)
            named = section.size == strlen(name) && memcmp(section.bytes, name, section.size) == 0;
        else if (section.tag == NAMES_KEY && section.size == HDRT__DIGEST_SIZE && count < HDRT__NAMES_LIMIT)
            memcpy(keys[count++].bytes, section.bytes, HDRT__DIGEST_SIZE);
    }
    return named ? count : 0;
}

uint32_t hdrt__names_read(hdrt__store *store, uint32_t folder, const char *name, hdrt__digest keys[HDRT__NAMES_LIMIT])
{
    const hdrt__digest entry = entry_of(name);
    hdrt_cache_reason reason;
    size_t size;
    unsigned char *bytes = hdrt__store_read(store, folder, &entry, HDRT__ENTRY_NAMES, &size, &reason);
    uint32_t count = bytes ? read_keys(bytes, size, name, keys) : 0;
    free(bytes);
    return count;
}

void hdrt__names_add(hdrt__store *store, const char *name, const hdrt__digest *key)
{
    const hdrt__digest entry = entry_of(name);
    hdrt__digest keys[HDRT__NAMES_LIMIT];
    hdrt__buffer bytes = HDRT__BUFFER_INIT;
    uint32_t count = hdrt__names_read(store, 0, name, keys), written = 1;
    if (count && hdrt__digest_equal(&keys[0], key))
        return;
    hdrt__container_begin(&bytes, magic);
    hdrt__container_text(&bytes, NAMES_NAME, name);
    hdrt__container_section(&bytes, NAMES_KEY, key->bytes, HDRT__DIGEST_SIZE);
    for (uint32_t i = 0; i < count && written < HDRT__NAMES_LIMIT; i++) {
        if (hdrt__digest_equal(&keys[i], key))
            continue;
        hdrt__container_section(&bytes, NAMES_KEY, keys[i].bytes, HDRT__DIGEST_SIZE);
        written++;
    }
    hdrt__container_end(&bytes);
    if (!bytes.failed)
        hdrt__store_write(store, &entry, HDRT__ENTRY_NAMES, bytes.bytes, bytes.size);
    hdrt__buffer_free(&bytes);
}

char *hdrt__names_name(const unsigned char *bytes, size_t size, hdrt_cache_reason *out_reason)
{
    hdrt__cursor sections;
    hdrt__section section;
    char *name = NULL;
    *out_reason = hdrt__container_open(bytes, size, magic, &sections);
    while (*out_reason == HDRT_CACHE_HIT && !name && hdrt__container_next(&sections, &section))
        if (section.tag == NAMES_NAME)
            name = hdrt__section_text(&section);
    if (*out_reason == HDRT_CACHE_HIT && !name)
        *out_reason = HDRT_CACHE_DAMAGED;
    return name;
}
