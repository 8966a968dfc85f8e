/* SPDX-License-Identifier: MIT */
#include "jit/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/status.h"
#include "jit/stamp.h"

#define SOURCE_LIMIT ((size_t)256 << 20)
#define DEFAULT_NAME "source.cu"
#define HEADER_NAME_LIMIT 1024u

static const char *words_for(int error)
{
    if (error == EINVAL)
        return "it is no regular file";
    if (error == EISDIR)
        return "it is a folder";
    if (error == EFBIG)
        return "it is larger than 256 MiB";
    return strerrordesc_np(error);
}

static hdrt_status read_path(const char *path, hdrt__input *out)
{
    out->bytes = (char *)hdrt__file_read(path, SOURCE_LIMIT, &out->size, NULL);
    if (out->bytes)
        return HDRT_OK;
    if (errno == ENOMEM)
        return hdrt__fail_memory(0, "the source");
    return hdrt__fail(HDRT_ERROR_IO, "cannot read the source '%s': %s", path, words_for(errno));
}

static hdrt_status copy_text(const hdrt_source *source, hdrt__input *out)
{
    out->size = source->length ? source->length : strlen(source->text);
    if (out->size > SOURCE_LIMIT)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "the source has %zu bytes, which is more than 256 MiB",
                          out->size);
    out->bytes = malloc(out->size + 1);
    if (!out->bytes)
        return hdrt__fail_memory(out->size, "the source");
    memcpy(out->bytes, source->text, out->size);
    out->bytes[out->size] = '\0';
    return HDRT_OK;
}

/* Removes a UTF-8 mark, which NVRTC does not take; refuses what would end the source early or is not UTF-8's ASCII. */
static hdrt_status check_bytes(hdrt__input *input)
{
    const unsigned char *bytes = (const unsigned char *)input->bytes;
    input->text = input->bytes;
    if (input->size >= 2 && ((bytes[0] == 0xff && bytes[1] == 0xfe) || (bytes[0] == 0xfe && bytes[1] == 0xff)))
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "the source '%s' is UTF-16: save it as UTF-8", input->name);
    if (input->size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) {
        input->text += 3;
        input->size -= 3;
    }
    const char *nul = input->size ? memchr(input->text, 0, input->size) : NULL;
    if (nul)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "the source '%s' has a NUL at byte %zu: it is no text",
                          input->name, (size_t)(nul - input->bytes));
    return HDRT_OK;
}

/* The names under which the compiler will know the source; `here` is the current folder. */
static hdrt_status set_names(const hdrt_source *source, const char *here, hdrt__input *out)
{
    const char *name = source->name ? source->name : source->path ? source->path : DEFAULT_NAME;
    if (!*name || strchr(name, '\n'))
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_source.name is %s",
                          *name ? "more than one line" : "empty");
    if (source->path) {
        /* Quoted includes are found beside the file, whatever it is called in messages. */
        out->path = *source->path == '/' ? strdup(source->path) : hdrt__path_join(here, source->path);
        if (!out->path)
            return hdrt__fail_memory(strlen(name), "the source's name");
        out->name = strdup(source->name ? source->name : out->path);
        size_t folder = (size_t)(strrchr(out->path, '/') - out->path);
        out->directory = strndup(out->path, folder ? folder : 1);
    } else {
        out->name = strdup(name);
        out->directory = strdup(here);
    }
    return out->name && out->directory ? HDRT_OK : hdrt__fail_memory(strlen(name), "the source's name");
}

static hdrt_status check_structs(const hdrt_source *source, const hdrt_compile_options *options, hdrt_source *known,
                                 hdrt_compile_options *asked)
{
    /* hdrt_source has one reserved number and no reserved tail. */
    if (!source)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "the source is NULL");
    hdrt_status status = hdrt__options_read("hdrt_source", source, known, sizeof(*known), sizeof(*known));
    if (status == HDRT_OK)
        status = hdrt__options_read("hdrt_compile_options", options, asked, sizeof(*asked),
                                    offsetof(hdrt_compile_options, reserved));
    if (status != HDRT_OK)
        return status;
    if (known->reserved != 0)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_source.reserved is not zero");
    if (asked->reserved_flag)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_compile_options.reserved_flag is not false");
    if (known->header_count && (!known->header_names || !known->header_texts))
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_source.%s is NULL, header_count is %u",
                          known->header_names ? "header_texts" : "header_names", known->header_count);
    if (asked->name_count && !asked->names)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_compile_options.names is NULL, name_count is %u",
                          asked->name_count);
    if (!known->path && !known->text)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_source has neither a path nor a text");
    if ((unsigned)asked->compiler > HDRT_COMPILER_CLANG || (unsigned)asked->kind > HDRT_CODE_LTO_IR)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_compile_options: there is no %s of number %d",
                          (unsigned)asked->compiler > HDRT_COMPILER_CLANG ? "compiler" : "kind of code",
                          (unsigned)asked->compiler > HDRT_COMPILER_CLANG ? (int)asked->compiler : (int)asked->kind);
    return asked->arch ? hdrt__arch_check(asked->arch) : HDRT_OK;
}

/* What an in-memory header's name must look like, for a message; NULL if this one does. */
static const char *header_name_wrong(const char *name)
{
    if (!*name || strlen(name) > HEADER_NAME_LIMIT)
        return "it is empty or longer than 1,024 bytes";
    if (*name == '/')
        return "it is an absolute path";
    if (strpbrk(name, "\"\\<>\n\r"))
        return "it has a quote, a backslash, an angle bracket or a line break in it";
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t size = strcspn(part, "/");
        if (size == 0 || (size == 1 && *part == '.') || (size == 2 && part[0] == '.' && part[1] == '.'))
            return "it has an empty part, \".\" or \"..\" in it";
    }
    return NULL;
}

static hdrt_status copy_headers(const hdrt_source *source, hdrt__input *out)
{
    if (source->header_count == 0)
        return HDRT_OK;
    out->headers = calloc(source->header_count, sizeof(*out->headers));
    if (!out->headers)
        return hdrt__fail_memory(source->header_count * sizeof(*out->headers), "in-memory headers");
    for (uint32_t i = 0; i < source->header_count; i++) {
        const char *name = source->header_names[i], *text = source->header_texts[i];
        if (!name || !text)
            return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_source.%s[%u] is NULL",
                              name ? "header_texts" : "header_names", i);
        const char *wrong = header_name_wrong(name);
        if (wrong)
            return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "the in-memory header '%s' cannot have this name: %s", name,
                              wrong);
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(out->headers[j].name, name) == 0)
                return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "the in-memory header '%s' is there twice", name);
        if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
            text += 3; /* NVRTC does not take a byte-order mark */
        out->header_count = i + 1;
        out->headers[i] = (hdrt__text_pair){strdup(name), strdup(text)};
        if (!out->headers[i].name || !out->headers[i].text)
            return hdrt__fail_memory(strlen(text), "in-memory headers");
    }
    return HDRT_OK;
}

/*
 * It is put between parentheses into a declaration (clang), so it must not be more than an expression. Braces are those
 * of a lambda.
 */
static const char *expression_wrong(const char *text)
{
    int depth = 0, braces = 0;
    if (!text[strspn(text, " \t")])
        return "it is empty";
    if (strpbrk(text, "#\n\r\\\""))
        return "it has one of # \\ \", or a line break, in it";
    if (strstr(text, "//") || strstr(text, "/*"))
        return "it has a comment in it";
    for (const char *at = text; *at; at++) {
        depth += *at == '(' || *at == '[' ? 1 : *at == ')' || *at == ']' ? -1 : 0;
        braces += *at == '{' ? 1 : *at == '}' ? -1 : 0;
        if (*at == ';' && braces == 0)
            return "it has a semicolon in it";
        if (depth < 0 || braces < 0)
            break;
    }
    return depth || braces ? "its parentheses do not match" : NULL;
}

static hdrt_status copy_names(const hdrt_compile_options *asked, hdrt__input *out)
{
    if (asked->name_count == 0)
        return HDRT_OK;
    out->names = calloc(asked->name_count, sizeof(*out->names));
    if (!out->names)
        return hdrt__fail_memory(asked->name_count * sizeof(*out->names), "name expressions");
    for (uint32_t i = 0; i < asked->name_count; i++) {
        const char *name = asked->names[i];
        const char *wrong = name ? expression_wrong(name) : "it is NULL";
        if (wrong)
            return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "the name expression '%s' cannot be one: %s",
                              name ? name : "", wrong);
        out->names[i] = strdup(name);
        out->name_count = i + 1;
        if (!out->names[i])
            return hdrt__fail_memory(strlen(name), "name expressions");
    }
    return HDRT_OK;
}

static hdrt_status copy_arch(hdrt__input *out)
{
    out->arch = out->asked.arch ? strdup(out->asked.arch) : NULL;
    return out->asked.arch && !out->arch ? hdrt__fail_memory(strlen(out->asked.arch), "the target's name") : HDRT_OK;
}

hdrt_status hdrt__input_read(const hdrt_source *source, const hdrt_compile_options *options, hdrt__input *out)
{
    hdrt_source known;
    *out = (hdrt__input){0};
    hdrt_status status = check_structs(source, options, &known, &out->asked);
    if (status != HDRT_OK)
        return status;
    char *here = getcwd(NULL, 0);
    if (!here)
        here = strdup("/"); /* a folder that was removed: absolute paths still work */
    if (!here)
        return hdrt__fail_memory(0, "the current folder");
    status = known.path ? read_path(known.path, out) : copy_text(&known, out);
    if (status == HDRT_OK)
        status = set_names(&known, here, out);
    if (status == HDRT_OK)
        status = check_bytes(out);
    if (status == HDRT_OK)
        status = hdrt__options_parse(out->asked.options, out->asked.option_count, here, &out->options);
    if (status == HDRT_OK)
        status = copy_headers(&known, out);
    if (status == HDRT_OK)
        status = copy_names(&out->asked, out);
    if (status == HDRT_OK)
        status = copy_arch(out);
    out->asked.options = NULL;
    out->asked.names = NULL;
    out->asked.arch = NULL;
    free(here);
    if (status != HDRT_OK)
        hdrt__input_free(out);
    return status;
}

void hdrt__input_free(hdrt__input *input)
{
    free(input->bytes);
    free(input->name);
    free(input->path);
    free(input->directory);
    hdrt__option_list_free(&input->options);
    for (uint32_t i = 0; i < input->header_count; i++) {
        free(input->headers[i].name);
        free(input->headers[i].text);
    }
    free(input->headers);
    for (uint32_t i = 0; i < input->name_count; i++)
        free(input->names[i]);
    free(input->names);
    free(input->arch);
    *input = (hdrt__input){0};
}
