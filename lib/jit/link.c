/* SPDX-License-Identifier: MIT */
/* Linking code by nvJitLink. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "compiler/protocol.h"
#include "config.h"
#include "device/runtime.h"
#include "jit/image_api.h"
#include "jit/lookup.h"
#include "jit/manifest.h"
#include "jit/message.h"
#include "jit/state.h"

#define INPUT_LIMIT 4096u
#define NAME_SIZE 24u

enum { TAG_FORMAT = 1, TAG_LINKER, TAG_ARCH, TAG_PTX, TAG_OPTION, TAG_TYPE, TAG_NAME, TAG_CODE };

/* One link on its way. */
struct link {
    hdrt__jit *jit;
    hdrt_link_options asked;
    hdrt__option_list options;
    hdrt__link_piece *pieces;
    char (*names)[NAME_SIZE]; /* of inputs that were given none */
    uint32_t count;
    const char *arch, *made_by; /* of the first image; its compiler's path */
    char *linker;
    hdrt__digest name; /* of the image in the cache */
};

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

/* What the bytes are, as hdrt_cc_input; 0: nothing that can be linked. */
static uint32_t recognise(const unsigned char *bytes, size_t size)
{
    static const unsigned char elf[] = {0x7f, 'E', 'L', 'F'}, lto_ir[] = {0xed, 0x43, 0x4e, 0x7f};
    if (size >= 4 && memcmp(bytes, lto_ir, 4) == 0)
        return HDRT_CC_INPUT_LTO_IR;
    if (hdrt__is_fatbin(bytes, size))
        return HDRT_CC_INPUT_FATBIN;
    if (hdrt__is_cubin(bytes, size))
        return HDRT_CC_INPUT_CUBIN;
    if (size >= 4 && memcmp(bytes, elf, 4) == 0)
        return HDRT_CC_INPUT_OBJECT;
    if (size >= 8 && memcmp(bytes, "!<arch>\n", 8) == 0)
        return HDRT_CC_INPUT_LIBRARY;
    return hdrt__is_ptx(bytes, size) ? HDRT_CC_INPUT_PTX : 0;
}

static hdrt_status take_image(struct link *link, const hdrt_image *image, hdrt__link_piece *piece)
{
    hdrt__code *code;
    hdrt_status status = hdrt__image_code(image, "hdrt_image_link", &code);
    if (status == HDRT_NOT_READY)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "the compile of '%s' is still under way", image->name);
    if (status != HDRT_OK)
        return status;
    piece->name = image->name;
    if (code->lto_ir)
        *piece = (hdrt__link_piece){HDRT_CC_INPUT_LTO_IR, image->name, code->lto_ir, code->lto_ir_size};
    else if (code->cubin)
        *piece = (hdrt__link_piece){HDRT_CC_INPUT_CUBIN, image->name, code->cubin, code->cubin_size};
    else if (code->ptx)
        *piece = (hdrt__link_piece){HDRT_CC_INPUT_PTX, image->name, code->ptx, code->ptx_size};
    else
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "the image of '%s' has no code: its compile failed",
                          image->name);
    if (!link->arch) {
        link->arch = code->arch;
        link->made_by = code->compiler_path;
    }
    return HDRT_OK;
}

static hdrt_status take_input(struct link *link, uint32_t index, const hdrt_link_input *given)
{
    hdrt_link_input input;
    hdrt__link_piece *piece = &link->pieces[index];
    hdrt_status status = hdrt__options_read("hdrt_link_input", given, &input, sizeof(input), sizeof(input));
    if (status != HDRT_OK)
        return status;
    if ((input.image != NULL) == (input.code != NULL))
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "it needs an image or bytes, and not both");
    if (input.image) {
        status = take_image(link, input.image, piece);
    } else {
        *piece = (hdrt__link_piece){recognise(input.code, input.code_size), NULL, input.code, input.code_size};
        if (piece->type == 0)
            status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "it is neither LTO-IR nor PTX, cubin, object, fatbin or "
                                                             "library");
    }
    if (input.name)
        piece->name = input.name;
    if (!piece->name) {
        snprintf(link->names[index], NAME_SIZE, "input %u", index);
        piece->name = link->names[index];
    }
    return status;
}

static hdrt_status take_inputs(struct link *link, const hdrt_link_input *inputs, uint32_t count)
{
    if (!inputs || count == 0 || count > INPUT_LIMIT)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_image_link: there are %u inputs: expected 1 to %u",
                          inputs ? count : 0, INPUT_LIMIT);
    link->pieces = calloc(count, sizeof(*link->pieces));
    link->names = calloc(count, sizeof(*link->names));
    if (!link->pieces || !link->names)
        return hdrt__fail_memory(count * sizeof(*link->pieces), "a link");
    link->count = count;
    for (uint32_t i = 0; i < count; i++) {
        /* Each has its own size, of the library version that its caller was built with: the array's step. */
        hdrt_status status = take_input(link, i, (const hdrt_link_input *)(const void *)
                                                     ((const char *)inputs + i * inputs->size));
        if (status != HDRT_OK) {
            hdrt__fail_prefix("input %u of the link", i);
            return status;
        }
        if (link->asked.ptx && link->pieces[i].type != HDRT_CC_INPUT_LTO_IR)
            return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "input %u of the link ('%s') is no LTO-IR, so the result "
                                                           "cannot be PTX", i, link->pieces[i].name);
    }
    return HDRT_OK;
}

static hdrt_status take_options(struct link *link, const hdrt_link_options *options)
{
    hdrt_status status = hdrt__options_read("hdrt_link_options", options, &link->asked, sizeof(link->asked),
                                            offsetof(hdrt_link_options, reserved));
    if (status == HDRT_OK && (link->asked.reserved_flags[0] || link->asked.reserved_flags[1]))
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_link_options.reserved_flags is not zero");
    if (status == HDRT_OK && link->asked.arch)
        status = hdrt__arch_check(link->asked.arch);
    return status == HDRT_OK ? hdrt__options_parse(link->asked.options, link->asked.option_count, "/", &link->options)
                             : status;
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

/* The name of the linked image: all that decides it. */
static hdrt_status name_link(struct link *link)
{
    hdrt__identity identity;
    hdrt__hasher hasher;
    const hdrt__found found = {.path = link->linker};
    hdrt_status status = hdrt__identity_of(HDRT_COMPILER_NVRTC, &found, link->jit->worker, NULL, NULL, link->jit->store,
                                           &identity);
    if (status != HDRT_OK)
        return status;
    hdrt__hasher_begin(&hasher, "hdrt link");
    hdrt__hasher_number(&hasher, TAG_FORMAT, HDRT_CC_VERSION);
    hdrt__hasher_field(&hasher, TAG_LINKER, identity.digest.bytes, sizeof(identity.digest.bytes));
    hdrt__hasher_text(&hasher, TAG_ARCH, link->arch);
    hdrt__hasher_number(&hasher, TAG_PTX, link->asked.ptx);
    for (uint32_t i = 0; i < link->options.count; i++)
        hdrt__hasher_text(&hasher, TAG_OPTION, link->options.items[i]);
    for (uint32_t i = 0; i < link->count; i++) {
        hdrt__hasher_number(&hasher, TAG_TYPE, link->pieces[i].type);
        hdrt__hasher_text(&hasher, TAG_NAME, link->pieces[i].name);
        hdrt__hasher_field(&hasher, TAG_CODE, link->pieces[i].bytes, link->pieces[i].size);
    }
    link->name = hdrt__hasher_end(&hasher);
    hdrt__identity_free(&identity);
    return HDRT_OK;
}

static hdrt__code *look_up(struct link *link)
{
    hdrt__miss miss = {0};
    hdrt__code *code = hdrt__find_image(link->jit, &link->name, &miss);
    hdrt__miss_free(&miss);
    return code;
}

static void store(struct link *link, hdrt__code *code)
{
    hdrt__buffer bytes = HDRT__BUFFER_INIT;
    code->name = link->name;
    hdrt__code_write(code, &bytes);
    if (!bytes.failed)
        hdrt__store_write(link->jit->store, &link->name, HDRT__ENTRY_IMAGE, bytes.bytes, bytes.size);
    hdrt__memory_keep(link->jit->memory, code);
    hdrt__buffer_free(&bytes);
}

/* ---- the link ---------------------------------------------------------------------------------------------------- */

static hdrt_status ask_worker(struct link *link, hdrt__reply *out_reply)
{
    hdrt__worker_pool *pool;
    hdrt__buffer request = HDRT__BUFFER_INIT;
    unsigned char *reply = NULL;
    size_t size = 0;
    hdrt__link_request asked = {
        .linker = link->linker,
        .arch = link->arch,
        .ptx = link->asked.ptx,
        .options = &link->options,
        .pieces = link->pieces,
        .piece_count = link->count,
        .time_limit_ms = link->asked.time_limit_ms ? link->asked.time_limit_ms : HDRT__TIME_LIMIT_MS,
        .memory_limit_bytes = link->asked.memory_limit_bytes ? link->asked.memory_limit_bytes
                                                             : HDRT__MEMORY_LIMIT_BYTES,
    };
#ifdef HDRT_SANITIZED
    asked.memory_limit_bytes = 0; /* sanitizers reserve terabytes of address space */
#endif
    hdrt_status status = hdrt__jit_pool(link->jit, &pool);
    if (status != HDRT_OK)
        return status;
    hdrt__message_link(&asked, &request);
    if (request.failed)
        status = hdrt__fail_memory(request.size, "a link request");
    if (status == HDRT_OK)
        status = hdrt__worker_exchange(pool, request.bytes, request.size, asked.time_limit_ms, NULL, &reply, &size);
    if (status == HDRT_OK)
        status = hdrt__message_reply(reply, size, out_reply);
    free(reply);
    hdrt__buffer_free(&request);
    return status;
}

static hdrt_status make(struct link *link, hdrt__result *result)
{
    hdrt__reply reply = {0};
    hdrt_status status = ask_worker(link, &reply);
    if (status != HDRT_OK)
        return status;
    status = hdrt__jit_judge(&reply);
    hdrt__code *code = reply.code;
    if (status == HDRT_OK) {
        char *path = strdup(link->linker);
        code->compiler = HDRT_COMPILER_NVRTC;
        code->kind = code->cubin ? HDRT_CODE_CUBIN : HDRT_CODE_PTX;
        if (path) {
            free(code->compiler_path);
            code->compiler_path = path;
        }
        status = path ? hdrt__code_read_table(code) : hdrt__fail_memory(strlen(link->linker), "a link's result");
    }
    if (status == HDRT_OK && !link->asked.no_cache)
        store(link, code);
    if (status == HDRT_OK || status == HDRT_ERROR_COMPILE) {
        result->code = code;
        reply.code = NULL;
    }
    hdrt__reply_free(&reply);
    return status;
}

static hdrt_status link_all(struct link *link, const hdrt_link_input *inputs, uint32_t count,
                            const hdrt_link_options *options, hdrt__result *result)
{
    hdrt_status status = take_options(link, options);
    if (status == HDRT_OK)
        status = take_inputs(link, inputs, count);
    if (status != HDRT_OK)
        return status;
    if (link->asked.arch)
        link->arch = link->asked.arch;
    if (!link->arch || !*link->arch)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_link_options.arch is needed where no input is an image");
    status = hdrt__jit_linker(link->jit, link->made_by, &link->linker);
    if (status == HDRT_OK)
        status = name_link(link);
    if (status != HDRT_OK)
        return status;
    result->code = link->asked.no_cache ? NULL : look_up(link);
    result->from_cache = result->code != NULL;
    return result->code ? HDRT_OK : make(link, result);
}

hdrt_status hdrt_image_link(hdrt_runtime *runtime, const hdrt_link_input *inputs, uint32_t count,
                            const hdrt_link_options *options, hdrt_image **out_image)
{
    struct link link = {0};
    hdrt__result result = {0};
    int cancel_state;
    if (!out_image)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_image_link: out_image is NULL");
    *out_image = NULL;
    hdrt_status status = hdrt__runtime_begin(runtime, "hdrt_image_link");
    if (status != HDRT_OK)
        return status;
    link.jit = hdrt__runtime_jit(runtime);
    if (!link.jit)
        return HDRT_ERROR_OUT_OF_MEMORY;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    status = link_all(&link, inputs, count, options, &result);
    if (result.code)
        status = hdrt__image_finish(link.pieces[0].name, status, &result, out_image);
    pthread_setcancelstate(cancel_state, NULL);
    hdrt__result_free(&result);
    hdrt__option_list_free(&link.options);
    free(link.linker);
    free(link.names);
    free(link.pieces);
    return status;
}
