/* SPDX-License-Identifier: MIT */
#include "jit/differ.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/names.h"

#define VALUE_LIMIT 1024u

struct collection {
    hdrt__fields *fields;
    bool good, has_lines;
};

static bool is_list(uint32_t tag)
{
    return tag == HDRT__KEY_OPTION || tag == HDRT__KEY_NAME_EXPRESSION || tag == HDRT__KEY_COMPILER_FILE ||
           tag == HDRT__KEY_LIBDEVICE || tag == HDRT__KEY_HEADER_TEXT;
}

static void collect(void *context, hdrt__key_tag tag, const char *value, size_t size)
{
    struct collection *collection = context;
    char text[2 * HDRT__DIGEST_SIZE + 32];
    if (value && (size > VALUE_LIMIT || tag == HDRT__KEY_SOURCE || memchr(value, 0, size))) {
        hdrt__digest digest = hdrt__digest_of(value, size);
        hdrt__digest_hex(&digest, text);
        snprintf(text + 16, sizeof(text) - 16, ", %zu bytes", size);
        value = text;
        size = strlen(text);
    }
    collection->good = collection->good && hdrt__fields_add(collection->fields, tag, value, size);
}

bool hdrt__fields_of(const hdrt__request *request, hdrt__fields *out)
{
    struct collection collection = {.fields = out, .good = true};
    *out = (hdrt__fields){0};
    hdrt__request_fields(request, collect, &collection);
    if (!collection.good)
        hdrt__fields_free(out);
    return collection.good;
}

/* ---- comparing -------------------------------------------------------------------------------------------------- */

struct comparison {
    hdrt__difference_visitor visitor;
    void *context;
    uint32_t count;
};

static void differ(struct comparison *comparison, uint32_t tag, const char *before, const char *now)
{
    comparison->count++;
    if (comparison->visitor)
        comparison->visitor(comparison->context, tag, before, now);
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The n-th field of a tag; NULL if there are fewer. */
static const hdrt__field *nth(const hdrt__fields *fields, uint32_t tag, uint32_t n)
{
    for (uint32_t i = 0; i < fields->count; i++)
        if (fields->items[i].tag == tag && n-- == 0)
            return &fields->items[i];
    return NULL;
}

static uint32_t occurrences(const hdrt__fields *fields, uint32_t tag, const char *value)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < fields->count; i++)
        count += fields->items[i].tag == tag && same(fields->items[i].value, value);
    return count;
}

/* Whether the i-th field is the first of its tag and value. */
static bool is_first(const hdrt__fields *fields, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (fields->items[i].tag == fields->items[index].tag && same(fields->items[i].value, fields->items[index].value))
            return false;
    return true;
}

/* The identity's digest stands before the lines that it is made of, which say more. */
static bool is_identity_digest(const char *value)
{
    return value && strlen(value) == 2 * HDRT__DIGEST_SIZE && strspn(value, "0123456789abcdef") == strlen(value);
}

static uint32_t values_gone(const hdrt__fields *from, const hdrt__fields *to, uint32_t tag, bool reversed, bool digests,
                            struct comparison *comparison)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        const hdrt__field *field = &from->items[i];
        if (field->tag != tag || !is_first(from, i) ||
            (tag == HDRT__KEY_COMPILER_FILE && is_identity_digest(field->value) != digests) ||
            occurrences(from, tag, field->value) <= occurrences(to, tag, field->value))
            continue;
        found++;
        differ(comparison, tag, reversed ? NULL : field->value, reversed ? field->value : NULL);
    }
    return found;
}

/* A list: what left it, what came; if nothing did, its order. */
static void compare_list(const hdrt__fields *before, const hdrt__fields *now, uint32_t tag,
                         struct comparison *comparison)
{
    uint32_t found = values_gone(before, now, tag, false, false, comparison);
    found += values_gone(now, before, tag, true, false, comparison);
    if (found == 0 && tag == HDRT__KEY_COMPILER_FILE) {
        found += values_gone(before, now, tag, false, true, comparison);
        found += values_gone(now, before, tag, true, true, comparison);
    }
    for (uint32_t n = 0; found == 0; n++) {
        const hdrt__field *a = nth(before, tag, n), *b = nth(now, tag, n);
        if (!a && !b)
            return;
        if (!a || !b || !same(a->value, b->value)) {
            differ(comparison, tag, a ? a->value : NULL, b ? b->value : NULL);
            return;
        }
    }
}

uint32_t hdrt__fields_compare(const hdrt__fields *before, const hdrt__fields *now, hdrt__difference_visitor visitor,
                              void *context)
{
    /* Options first: whoever changed one wants to hear of that, not of what follows from it. */
    static const uint32_t order[] = {
        HDRT__KEY_OPTION, HDRT__KEY_ARCH, HDRT__KEY_SOURCE,
#define TAG(tag, number, label, reason) HDRT__KEY_##tag,
        HDRT__KEY_FIELDS(TAG)
#undef TAG
    };
    struct comparison comparison = {visitor, context, 0};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        uint32_t tag = order[i];
        if (i >= 3 && (tag == order[0] || tag == order[1] || tag == order[2]))
            continue;
        if (is_list(tag)) {
            compare_list(before, now, tag, &comparison);
        } else {
            for (uint32_t n = 0;; n++) {
                const hdrt__field *a = nth(before, tag, n), *b = nth(now, tag, n);
                if (!a && !b)
                    break;
                if (!a || !b || !same(a->value, b->value))
                    differ(&comparison, tag, a ? a->value : NULL, b ? b->value : NULL);
            }
        }
    }
    return comparison.count;
}

void hdrt__difference_words(hdrt__buffer *text, uint32_t tag, const char *before, const char *now)
{
    const char *label = hdrt__key_label(tag);
    if (tag == HDRT__KEY_SOURCE)
        hdrt__buffer_text(text, "the source differs");
    else if (before && now)
        hdrt__buffer_format(text, "%s: '%s' before, '%s' now", label, before, now);
    else if (now)
        hdrt__buffer_format(text, "%s '%s' is new", label, now);
    else
        hdrt__buffer_format(text, "%s '%s' is gone", label, before ? before : "");
}

/* ---- the nearest ------------------------------------------------------------------------------------------------ */

static bool read_manifest(hdrt__store *store, const hdrt__digest *key, hdrt__manifest *out)
{
    for (uint32_t folder = 0; folder < hdrt__store_count(store); folder++) {
        hdrt_cache_reason reason;
        size_t size;
        unsigned char *bytes = hdrt__store_read(store, folder, key, HDRT__ENTRY_MANIFEST, &size, &reason);
        if (bytes && hdrt__manifest_read(bytes, size, key, true, out) == HDRT_CACHE_HIT)
            return true;
    }
    return false;
}

bool hdrt__nearest_manifest(hdrt__store *store, const char *name, const hdrt__fields *fields, hdrt__manifest *out)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t folder = 0; folder < hdrt__store_count(store); folder++) {
        hdrt__digest keys[HDRT__NAMES_LIMIT];
        uint32_t count = hdrt__names_read(store, folder, name, keys);
        for (uint32_t i = 0; i < count; i++) {
            hdrt__manifest manifest = {.count = 0};
            if (!read_manifest(store, &keys[i], &manifest))
                continue;
            uint32_t differences = hdrt__fields_compare(&manifest.fields, fields, NULL, NULL);
            if (differences < least) {
                if (least != UINT32_MAX)
                    hdrt__manifest_free(out);
                *out = manifest;
                least = differences;
            } else {
                hdrt__manifest_free(&manifest);
            }
        }
    }
    return least != UINT32_MAX;
}

struct first_words {
    hdrt__buffer *text;
    hdrt_cache_reason reason;
    uint32_t seen;
};

static void take_first(void *context, uint32_t tag, const char *before, const char *now)
{
    struct first_words *words = context;
    if (words->seen++ == 0) {
        words->reason = hdrt__key_reason(tag);
        hdrt__difference_words(words->text, tag, before, now);
    }
}

hdrt_cache_reason hdrt__explain_new(hdrt__store *store, const char *name, const hdrt__fields *fields,
                                    hdrt__buffer *text)
{
    hdrt__manifest nearest;
    if (!hdrt__nearest_manifest(store, name, fields, &nearest)) {
        hdrt__buffer_text(text, "no source of this name was compiled before");
        return HDRT_CACHE_NEW;
    }
    struct first_words words = {text, HDRT_CACHE_NEW, 0};
    hdrt__fields_compare(&nearest.fields, fields, take_first, &words);
    if (words.seen > 1)
        hdrt__buffer_format(text, " (and %u more difference%s)", words.seen - 1, words.seen > 2 ? "s" : "");
    hdrt__manifest_free(&nearest);
    return words.reason;
}
