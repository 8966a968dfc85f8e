/* SPDX-License-Identifier: MIT */
#include "arguments.h"

#include "file.h"
#include "message.h"
#include "npy.h"
#include "number.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the words of numbers begin with. */
enum number_type { TYPE_I32, TYPE_U32, TYPE_I64, TYPE_U64, TYPE_F32, TYPE_F64 };

static const struct {
    const char *prefix;
    enum number_type type;
    uint32_t kind;
    const char *expected;
} number_types[] = {
    {"i32:", TYPE_I32, HDRT_KIND(HDRT_CLASS_INTEGER, 4), "a whole number from -2147483648 to 2147483647"},
    {"u32:", TYPE_U32, HDRT_KIND(HDRT_CLASS_INTEGER, 4), "a whole number from 0 to 4294967295"},
    {"i64:", TYPE_I64, HDRT_KIND(HDRT_CLASS_INTEGER, 8),
     "a whole number from -9223372036854775808 to 9223372036854775807"},
    {"u64:", TYPE_U64, HDRT_KIND(HDRT_CLASS_INTEGER, 8), "a whole number from 0 to 18446744073709551615"},
    {"f32:", TYPE_F32, HDRT_KIND(HDRT_CLASS_FLOAT, 4), "a floating point number that fits 32 bits"},
    {"f64:", TYPE_F64, HDRT_KIND(HDRT_CLASS_FLOAT, 8), "a floating point number that fits 64 bits"},
};

static enum number_result parse_number(argument *arg, enum number_type type, const char *text)
{
    enum number_result result;
    uint64_t whole = 0;
    int64_t sign = 0;

    switch (type) {
    case TYPE_I32:
        result = number_signed(text, INT32_MIN, INT32_MAX, &sign);
        arg->value.i32 = (int32_t)sign;
        return result;
    case TYPE_U32:
        result = number_unsigned(text, UINT32_MAX, &whole);
        arg->value.u32 = (uint32_t)whole;
        return result;
    case TYPE_I64:
        return number_signed(text, INT64_MIN, INT64_MAX, &arg->value.i64);
    case TYPE_U64:
        return number_unsigned(text, UINT64_MAX, &arg->value.u64);
    case TYPE_F32:
        return number_float(text, &arg->value.f32);
    default:
        return number_double(text, &arg->value.f64);
    }
}

/* FILE, and for out FILE:BYTES, where FILE may hold colons. */
static int parse_file(argument *arg, enum argument_role role, const char *text)
{
    const char *colon = strrchr(text, ':');

    arg->role = role;
    arg->kind = HDRT_KIND(HDRT_CLASS_INTEGER, sizeof(hdrt_ptr));
    if (role == ARGUMENT_OUT &&
        (!colon || colon == text || number_size(colon + 1, INT64_MAX, &arg->bytes) != NUMBER_OK))
        return fail(EXIT_CODE_USAGE, "%s: expected out:FILE:BYTES, BYTES a whole number (K, M or G may follow)",
                    arg->word);
    if (role == ARGUMENT_OUT && arg->bytes == 0)
        return fail(EXIT_CODE_USAGE, "%s: 0 bytes: expected 1 or more", arg->word);
    if (!*text)
        return fail(EXIT_CODE_USAGE, "%s: the file's name is missing", arg->word);
    arg->file = role == ARGUMENT_OUT ? strndup(text, (size_t)(colon - text)) : strdup(text);
    return arg->file ? 0 : fail(EXIT_CODE_FAILED, "out of memory");
}

static int parse_word(argument *arg, const char *word)
{
    *arg = (argument){.word = word, .result = OUTPUT_NONE};
    for (size_t i = 0; i < sizeof number_types / sizeof number_types[0]; i++) {
        if (strncmp(word, number_types[i].prefix, 4) != 0)
            continue;
        arg->kind = number_types[i].kind;
        if (parse_number(arg, number_types[i].type, word + 4) == NUMBER_OK)
            return 0;
        return fail(EXIT_CODE_USAGE, "%s: expected %s behind %s", word, number_types[i].expected,
                    number_types[i].prefix);
    }
    if (strncmp(word, "in:", 3) == 0)
        return parse_file(arg, ARGUMENT_IN, word + 3);
    if (strncmp(word, "inout:", 6) == 0)
        return parse_file(arg, ARGUMENT_INOUT, word + 6);
    if (strncmp(word, "out:", 4) == 0)
        return parse_file(arg, ARGUMENT_OUT, word + 4);
    return fail(EXIT_CODE_USAGE,
                "'%s' is no argument: expected i32:N, u32:N, i64:N, u64:N, f32:X, f64:X, in:FILE, inout:FILE or "
                "out:FILE:BYTES", word);
}

static bool is_written(const argument *arg)
{
    return arg->role == ARGUMENT_INOUT || arg->role == ARGUMENT_OUT;
}

static bool is_read(const argument *arg)
{
    return arg->role == ARGUMENT_IN || arg->role == ARGUMENT_INOUT;
}

/* Two results for one file, or two readers of standard input: one would be lost. */
static int check_pairs(const arguments *args)
{
    for (uint32_t i = 0; i < args->count; i++)
        for (uint32_t j = 0; j < i; j++) {
            const argument *a = &args->list[j], *b = &args->list[i];

            if (!a->file || !b->file || strcmp(a->file, b->file) != 0)
                continue;
            if ((is_written(a) && is_written(b)) || (strcmp(a->file, "-") == 0 && is_read(a) && is_read(b)))
                return fail(EXIT_CODE_USAGE, "%s and %s use the same file", a->word, b->word);
        }
    return 0;
}

int arguments_parse(arguments *args, char *const *words, uint32_t count)
{
    *args = (arguments){0};
    if (count > HDRT_ARGS_LIMIT)
        return fail(EXIT_CODE_USAGE, "%u arguments: at most %d are supported", count, HDRT_ARGS_LIMIT);
    args->list = calloc(count ? count : 1, sizeof *args->list);
    if (!args->list)
        return fail(EXIT_CODE_FAILED, "out of memory");
    for (; args->count < count; args->count++) {
        int code = parse_word(&args->list[args->count], words[args->count]);

        if (code)
            return code;
    }
    return check_pairs(args);
}

bool arguments_read_standard_input(const arguments *args)
{
    for (uint32_t i = 0; i < args->count; i++)
        if (is_read(&args->list[i]) && strcmp(args->list[i].file, "-") == 0)
            return true;
    return false;
}

bool arguments_write_standard_output(const arguments *args)
{
    for (uint32_t i = 0; i < args->count; i++)
        if (is_written(&args->list[i]) && strcmp(args->list[i].file, "-") == 0)
            return true;
    return false;
}

static int open_input(argument *arg)
{
    const char *trouble;
    int code = file_read(arg->file, &arg->data, &arg->bytes);

    if (!code && npy_named(arg->file)) {
        trouble = npy_check(arg->data, arg->bytes, &arg->header);
        if (trouble)
            return fail(EXIT_CODE_FAILED, "%s: is no .npy file to use: %s", arg->file, trouble);
        arg->bytes -= arg->header;
    }
    if (!code && arg->bytes == 0)
        return fail(EXIT_CODE_FAILED, "%s: is empty: the kernel would get no memory; expected 1 byte or more",
                    arg->file);
    return code;
}

/* The header for a .npy result: that of the file in its place if it has the same size, else plain bytes. */
static size_t result_header(const argument *arg, unsigned char header[NPY_HEADER_LIMIT], unsigned char **out_old)
{
    uint64_t bytes, header_bytes;
    struct stat about;

    *out_old = NULL;
    if (!npy_named(arg->file))
        return 0;
    if (stat(arg->file, &about) == 0 && S_ISREG(about.st_mode) && access(arg->file, R_OK) == 0 &&
        file_read(arg->file, out_old, &bytes) == 0 && npy_check(*out_old, bytes, &header_bytes) == NULL &&
        bytes - header_bytes == arg->bytes)
        return header_bytes;
    free(*out_old);
    *out_old = NULL;
    return npy_bytes_header(arg->bytes, header);
}

static int open_result(argument *arg)
{
    unsigned char plain[NPY_HEADER_LIMIT], *old;

    arg->header = result_header(arg, plain, &old);
    if (arg->bytes > SIZE_MAX - arg->header || !(arg->data = calloc(1, (size_t)(arg->header + arg->bytes)))) {
        free(old);
        return fail(EXIT_CODE_FAILED, "%s: out of memory for %llu bytes", arg->word, (unsigned long long)arg->bytes);
    }
    memcpy(arg->data, old ? old : plain, (size_t)arg->header);
    free(old);
    return 0;
}

int arguments_open(arguments *args, int standard_output)
{
    for (uint32_t i = 0; i < args->count; i++) {
        argument *arg = &args->list[i];
        int code = 0;

        if (is_read(arg))
            code = open_input(arg);
        else if (arg->role == ARGUMENT_OUT)
            code = open_result(arg);
        if (!code && is_written(arg))
            code = output_open(&arg->result, arg->file, standard_output);
        if (code)
            return code;
    }
    return 0;
}

int arguments_allocate(arguments *args, hdrt_queue *queue)
{
    for (uint32_t i = 0; i < args->count; i++) {
        argument *arg = &args->list[i];
        hdrt_status status = arg->file ? hdrt_alloc(queue, arg->bytes, &arg->value.pointer) : HDRT_OK;

        if (status != HDRT_OK)
            return fail_status(-1, status, "%s", arg->word);
    }
    return 0;
}

int arguments_upload(arguments *args, hdrt_queue *queue)
{
    for (uint32_t i = 0; i < args->count; i++) {
        argument *arg = &args->list[i];
        hdrt_status status = HDRT_OK;

        if (arg->role == ARGUMENT_OUT)
            status = hdrt_fill(queue, arg->value.pointer, "", 1, arg->bytes);
        else if (arg->file)
            status = hdrt_copy_htod(queue, arg->value.pointer, arg->data + arg->header, arg->bytes);
        if (status != HDRT_OK)
            return fail_status(-1, status, "%s", arg->word);
    }
    return 0;
}

int arguments_download(arguments *args, hdrt_queue *queue)
{
    hdrt_status status;

    for (uint32_t i = 0; i < args->count; i++) {
        argument *arg = &args->list[i];

        if (!is_written(arg))
            continue;
        status = hdrt_copy_dtoh(queue, arg->data + arg->header, arg->value.pointer, arg->bytes);
        if (status != HDRT_OK)
            return fail_status(-1, status, "%s", arg->word);
    }
    status = hdrt_queue_synchronize(queue);
    return status == HDRT_OK ? 0 : fail_status(-1, status, "the results");
}

int arguments_commit(arguments *args)
{
    int code = 0;

    for (uint32_t i = 0; i < args->count && !code; i++)
        if (is_written(&args->list[i]))
            code = output_write(&args->list[i].result, args->list[i].data, args->list[i].header + args->list[i].bytes);
    for (uint32_t i = 0; i < args->count && !code; i++)
        if (is_written(&args->list[i]))
            code = output_finish(&args->list[i].result);
    return code;
}

void arguments_end(arguments *args, hdrt_queue *queue)
{
    for (uint32_t i = 0; i < args->count; i++) {
        argument *arg = &args->list[i];

        if (queue && arg->file)
            hdrt_free(queue, arg->value.pointer);
        output_close(&arg->result);
        free(arg->file);
        free(arg->data);
    }
    free(args->list);
    *args = (arguments){0};
}
