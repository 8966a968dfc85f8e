/* SPDX-License-Identifier: MIT */
#include "jit/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "jit/container.h"

static const char magic[HDRT__CONTAINER_MAGIC_SIZE] = {'H', 'D', 'R', 'T', 'M', 'A', 'N', '\n'};

/* Sections of a manifest; a state is its image's name and all that follows up to the next one. */
enum manifest_section {
    MANIFEST_KEY = 1,
    MANIFEST_IMAGE = 2,
    MANIFEST_FILES = 5,
    MANIFEST_REASON = 6,
    MANIFEST_FIELD = 7, /* u32 tag, u32 1 if there is a value, value */
};

bool hdrt__fields_add(hdrt__fields *fields, uint32_t tag, const char *value, size_t size)
{
    if (fields->count == fields->capacity) {
        uint32_t capacity = fields->capacity ? fields->capacity * 2 : 16;
        hdrt__field *bigger = reallocarray(fields->items, capacity, sizeof(*bigger));
        if (!bigger)
            return false;
        fields->items = bigger;
        fields->capacity = capacity;
    }
    char *copy = value ? strndup(value, size) : NULL;
    if (value && !copy)
        return false;
    fields->items[fields->count++] = (hdrt__field){tag, copy};
    return true;
}

void hdrt__fields_free(hdrt__fields *fields)
{
    for (uint32_t i = 0; i < fields->count; i++)
        free(fields->items[i].value);
    free(fields->items);
    *fields = (hdrt__fields){0};
}

bool hdrt__state_copy(const hdrt__state *state, hdrt__state *out)
{
    *out = (hdrt__state){.image = state->image};
    if (hdrt__files_copy(&state->files, &out->files) &&
        (!state->reason || (out->reason = strdup(state->reason)) != NULL))
        return true;
    hdrt__state_free(out);
    return false;
}

void hdrt__state_free(hdrt__state *state)
{
    hdrt__files_free(&state->files);
    free(state->reason);
    *state = (hdrt__state){0};
}

void hdrt__manifest_add(hdrt__manifest *manifest, hdrt__state *state)
{
    uint32_t at = 0;
    while (at < manifest->count && !hdrt__digest_equal(&manifest->states[at].image, &state->image))
        at++;
    if (at == HDRT__STATE_LIMIT)
        at--;
    if (at < manifest->count)
        hdrt__state_free(&manifest->states[at]);
    else
        manifest->count++;
    memmove(&manifest->states[1], &manifest->states[0], at * sizeof(manifest->states[0]));
    manifest->states[0] = *state;
    *state = (hdrt__state){0};
}

static void write_field(const hdrt__field *field, hdrt__buffer *bytes)
{
    hdrt__buffer payload = HDRT__BUFFER_INIT;
    hdrt__buffer_u32(&payload, field->tag);
    hdrt__buffer_u32(&payload, field->value != NULL);
    hdrt__buffer_text(&payload, field->value ? field->value : "");
    bytes->failed = bytes->failed || payload.failed;
    hdrt__container_section(bytes, MANIFEST_FIELD, payload.bytes, payload.size);
    hdrt__buffer_free(&payload);
}

void hdrt__manifest_write(const hdrt__manifest *manifest, hdrt__buffer *bytes)
{
    hdrt__container_begin(bytes, magic);
    hdrt__container_section(bytes, MANIFEST_KEY, manifest->key.bytes, HDRT__DIGEST_SIZE);
    for (uint32_t i = 0; i < manifest->fields.count; i++)
        write_field(&manifest->fields.items[i], bytes);
    for (uint32_t i = 0; i < manifest->count; i++) {
        const hdrt__state *state = &manifest->states[i];
        hdrt__container_section(bytes, MANIFEST_IMAGE, state->image.bytes, HDRT__DIGEST_SIZE);
        hdrt__container_section(bytes, MANIFEST_FILES, state->files.bytes, state->files.size);
        hdrt__container_text(bytes, MANIFEST_REASON, state->reason);
    }
    hdrt__container_end(bytes);
}

static bool read_field(hdrt__manifest *manifest, const hdrt__section *section)
{
    hdrt__cursor cursor = {section->bytes, section->size, false};
    uint32_t tag = hdrt__cursor_u32(&cursor), there = hdrt__cursor_u32(&cursor);
    return !cursor.failed && !(cursor.left && memchr(cursor.bytes, 0, cursor.left)) &&
           hdrt__fields_add(&manifest->fields, tag, there ? (const char *)cursor.bytes : NULL, cursor.left);
}

/*
 * Where they lie, for the time being. Whoever walks over the files checks them: the checksum was right, so it is no news
 * that they are whole.
 */
static bool read_files(hdrt__state *state, const hdrt__section *section)
{
    if (!state || state->files.bytes)
        return false;
    state->files = (hdrt__files){(unsigned char *)section->bytes, section->size, NULL};
    return true;
}

/* Gives each state its files: a single one keeps all the bytes, which may be large, else each gets a copy of its own. */
static bool own_files(hdrt__manifest *manifest, unsigned char *bytes)
{
    bool single = manifest->count == 1, good = true;
    if (single)
        manifest->states[0].files.block = bytes;
    for (uint32_t i = 0; !single && i < manifest->count; i++) {
        hdrt__files *files = &manifest->states[i].files;
        hdrt__files borrowed = *files;
        *files = (hdrt__files){0};
        good = good && hdrt__files_copy(&borrowed, files);
    }
    if (!single)
        free(bytes);
    return good;
}

/* HDRT_CACHE_HIT to go on. */
static hdrt_cache_reason read_section(hdrt__manifest *manifest, const hdrt__section *section, const hdrt__digest *key,
                                      bool fields, bool *keyed)
{
    hdrt__state *state = manifest->count ? &manifest->states[manifest->count - 1] : NULL;
    bool good = true;
    switch ((enum manifest_section)section->tag) {
    case MANIFEST_KEY:
        if (section->size != HDRT__DIGEST_SIZE)
            return HDRT_CACHE_DAMAGED;
        memcpy(manifest->key.bytes, section->bytes, HDRT__DIGEST_SIZE);
        *keyed = true;
        return !key || hdrt__digest_equal(&manifest->key, key) ? HDRT_CACHE_HIT : HDRT_CACHE_MISPLACED;
    case MANIFEST_FIELD:
        good = !fields || read_field(manifest, section);
        break;
    case MANIFEST_IMAGE:
        good = section->size == HDRT__DIGEST_SIZE && manifest->count < HDRT__STATE_LIMIT;
        if (good) {
            state = &manifest->states[manifest->count++];
            *state = (hdrt__state){0};
            memcpy(state->image.bytes, section->bytes, HDRT__DIGEST_SIZE);
        }
        break;
    case MANIFEST_FILES:
        good = read_files(state, section);
        break;
    case MANIFEST_REASON:
        good = state && !state->reason && (state->reason = hdrt__section_text(section)) != NULL;
        break;
    default:
        break; /* written by a later version */
    }
    return good ? HDRT_CACHE_HIT : HDRT_CACHE_DAMAGED;
}

hdrt_cache_reason hdrt__manifest_read(unsigned char *bytes, size_t size, const hdrt__digest *key, bool fields,
                                      hdrt__manifest *out)
{
    hdrt__cursor sections;
    hdrt__section section;
    bool keyed = false;
    out->count = 0;
    out->fields = (hdrt__fields){0};
    if (key)
        out->key = *key;
    hdrt_cache_reason reason = hdrt__container_open(bytes, size, magic, &sections);
    while (reason == HDRT_CACHE_HIT && hdrt__container_next(&sections, &section))
        reason = read_section(out, &section, key, fields, &keyed);
    for (uint32_t i = 0; reason == HDRT_CACHE_HIT && i < out->count; i++)
        if (!out->states[i].files.bytes)
            reason = HDRT_CACHE_DAMAGED;
    if (reason == HDRT_CACHE_HIT && (!keyed || sections.failed))
        reason = HDRT_CACHE_DAMAGED;
    if (reason != HDRT_CACHE_HIT)
        free(bytes);
    else if (!own_files(out, bytes))
        reason = HDRT_CACHE_DAMAGED;
    if (reason != HDRT_CACHE_HIT) {
        hdrt__manifest_free(out);
        if (key)
            out->key = *key;
    }
    return reason;
}

void hdrt__manifest_free(hdrt__manifest *manifest)
{
    for (uint32_t i = 0; i < manifest->count; i++)
        hdrt__state_free(&manifest->states[i]);
    hdrt__fields_free(&manifest->fields);
    manifest->count = 0;
}
