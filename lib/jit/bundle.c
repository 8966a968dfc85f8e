/* SPDX-License-Identifier: MIT */
#include "jit/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "jit/container.h"
#include "jit/image_api.h"

#define BUNDLE_LIMIT 4096u
#define CUBIN_BONUS 1000000u

static const char magic[HDRT__CONTAINER_MAGIC_SIZE] = {'H', 'D', 'R', 'T', 'B', 'D', 'L', '\n'};

enum bundle_section { BUNDLE_IMAGE = 1 /* an image file */ };

bool hdrt__is_bundle(const void *bytes, size_t size)
{
    return size >= sizeof(magic) && memcmp(bytes, magic, sizeof(magic)) == 0;
}

/* ---- writing and reading ----------------------------------------------------------------------------------------- */

static hdrt_status add_image(const hdrt_image *image, hdrt__buffer *bytes)
{
    hdrt__buffer file = HDRT__BUFFER_INIT;
    hdrt__code *code;
    hdrt_status status = hdrt__image_code(image, "hdrt_bundle_write", &code);
    if (status != HDRT_OK)
        return status;
    if (!code->ptx && !code->cubin && !code->lto_ir)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "the image of '%s' has no code: its compile failed",
                          image->name);
    hdrt__code_write(code, &file);
    bytes->failed = bytes->failed || file.failed;
    hdrt__container_section(bytes, BUNDLE_IMAGE, file.bytes, file.size);
    hdrt__buffer_free(&file);
    return HDRT_OK;
}

hdrt_status hdrt_bundle_write(const hdrt_image *const *images, uint32_t count, void *buffer, size_t *size)
{
    hdrt__buffer bytes = HDRT__BUFFER_INIT;
    if (!images || count == 0 || count > BUNDLE_LIMIT || !size)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_bundle_write: %s",
                          size ? "expected 1 to 4096 images" : "size is NULL");
    hdrt__container_begin(&bytes, magic);
    hdrt_status status = HDRT_OK;
    for (uint32_t i = 0; i < count && status == HDRT_OK; i++)
        status = add_image(images[i], &bytes);
    if (status == HDRT_OK) {
        hdrt__container_end(&bytes);
        if (bytes.failed)
            status = hdrt__fail_memory(0, "a bundle");
    }
    if (status == HDRT_OK && buffer && *size < bytes.size)
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_bundle_write: the bundle has %zu bytes, the buffer %zu",
                            bytes.size, *size);
    if (status == HDRT_OK && buffer)
        memcpy(buffer, bytes.bytes, bytes.size);
    if (status == HDRT_OK)
        *size = bytes.size;
    hdrt__buffer_free(&bytes);
    return status;
}

static hdrt_status open_bundle(const void *bytes, size_t size, const char *name, hdrt__cursor *out_sections)
{
    hdrt_cache_reason reason = hdrt__container_open(bytes, size, magic, out_sections);
    if (reason == HDRT_CACHE_HIT)
        return HDRT_OK;
    if (reason == HDRT_CACHE_MISPLACED)
        return hdrt__fail(HDRT_ERROR_INVALID_IMAGE, "'%s' is no bundle", name);
    return hdrt__fail(HDRT_ERROR_INVALID_IMAGE, "the bundle '%s' cannot be used: %s", name,
                      hdrt_cache_reason_text(reason));
}

static hdrt_status read_image(const hdrt__section *section, const char *name, hdrt__code **out_code)
{
    hdrt_cache_reason reason;
    *out_code = hdrt__code_read(section->bytes, section->size, NULL, &reason);
    if (*out_code)
        return HDRT_OK;
    if (reason == HDRT_CACHE_UNREADABLE)
        return hdrt__fail_memory(section->size, "an image of a bundle");
    return hdrt__fail(HDRT_ERROR_INVALID_IMAGE, "an image of the bundle '%s' cannot be used: %s", name,
                      hdrt_cache_reason_text(reason));
}

hdrt_status hdrt_bundle_image(const void *bytes, size_t size, uint32_t index, const char *name, hdrt_image **out_image)
{
    hdrt__cursor sections;
    hdrt__section section;
    hdrt__result result = {.from_cache = true};
    const char *words = name ? name : "bundle";
    if (!bytes || !out_image)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_bundle_image: %s", bytes ? "out_image is NULL"
                                                                                   : "the bytes are NULL");
    *out_image = NULL;
    hdrt_status status = open_bundle(bytes, size, words, &sections);
    uint32_t seen = 0;
    while (status == HDRT_OK && hdrt__container_next(&sections, &section)) {
        if (section.tag != BUNDLE_IMAGE || seen++ != index)
            continue;
        status = read_image(&section, words, &result.code);
        if (status == HDRT_OK)
            status = hdrt__image_finish(words, HDRT_OK, &result, out_image);
        hdrt__result_free(&result);
        return status;
    }
    if (status == HDRT_OK)
        status = hdrt__fail(HDRT_ERROR_NOT_FOUND, "the bundle '%s' has %u images: there is none of index %u", words,
                            seen, index);
    return status;
}

/* ---- the choice -------------------------------------------------------------------------------------------------- */

/* "sm_90a" as 90 and 'a'. */
static bool read_arch(const char *arch, unsigned *number, char *letter)
{
    char rest = '\0';
    *letter = '\0';
    int fields = sscanf(arch, "sm_%4u%c%c", number, letter, &rest);
    return fields >= 1 && rest == '\0' && (*letter == '\0' || *letter == 'a' || *letter == 'f');
}

static bool is_newer_than_driver(const hdrt__code *code, uint32_t driver_version)
{
    unsigned major, minor;
    return driver_version && sscanf(code->compiler_version, "NVRTC %u.%u", &major, &minor) == 2 &&
           1000 * major + 10 * minor > driver_version;
}

uint32_t hdrt__bundle_fit(const hdrt__code *code, const hdrt__target *target)
{
    unsigned device, number;
    char letter, none;
    if (!target->arch || !read_arch(target->arch, &device, &none) || !read_arch(code->arch, &number, &letter))
        return 0;
    if (number > device || (letter == 'a' && number != device) || (letter == 'f' && number / 10 != device / 10))
        return 0;
    /* The nearer the better; what is made for just this GPU, or its family, may use more of it. */
    uint32_t rank = 4 * number + (letter == 'a' ? 2 : letter == 'f' ? 1 : 0) + 1;
    if (target->soft)
        return code->ptx && code->compiler != HDRT_COMPILER_NVRTC ? rank : 0;
    if (code->cubin && number / 10 == device / 10)
        return CUBIN_BONUS + rank;
    return code->ptx && !is_newer_than_driver(code, target->driver_version) ? rank : 0;
}

static void list_code(const hdrt__code *code, hdrt__buffer *list)
{
    const char *maker = code->compiler == HDRT_COMPILER_NVRTC   ? " from NVRTC"
                        : code->compiler == HDRT_COMPILER_CLANG ? " from clang"
                                                                : "";
    hdrt__buffer_format(list, "%s%s %s%s", list->size ? ", " : "", code->arch,
                        code->lto_ir ? "LTO-IR" : code->cubin ? (code->ptx ? "cubin and PTX" : "cubin") : "PTX", maker);
}

hdrt_status hdrt__bundle_choose(const void *bytes, size_t size, const char *name, const hdrt__target *target,
                                hdrt__code **out_code)
{
    hdrt__buffer list = HDRT__BUFFER_INIT;
    hdrt__cursor sections;
    hdrt__section section;
    hdrt__code *best = NULL, *code;
    uint32_t best_fit = 0;
    hdrt_status status = open_bundle(bytes, size, name, &sections);
    while (status == HDRT_OK && hdrt__container_next(&sections, &section)) {
        if (section.tag != BUNDLE_IMAGE)
            continue;
        status = read_image(&section, name, &code);
        if (status != HDRT_OK)
            break;
        list_code(code, &list);
        uint32_t fit = hdrt__bundle_fit(code, target);
        if (fit > best_fit) {
            hdrt__code_drop(best);
            best = code;
            best_fit = fit;
        } else {
            hdrt__code_drop(code);
        }
    }
    if (status == HDRT_OK && !best)
        status = hdrt__fail(HDRT_ERROR_UNSUPPORTED, "the bundle '%s' has no code that runs on %s%s: it has %s", name,
                            target->arch ? target->arch : "this device",
                            target->soft ? " of the soft driver, which takes PTX, and none of NVRTC" : "",
                            list.size && !list.failed ? (const char *)list.bytes : "no images");
    hdrt__buffer_free(&list);
    if (status == HDRT_OK)
        *out_code = best;
    else
        hdrt__code_drop(best);
    return status;
}
