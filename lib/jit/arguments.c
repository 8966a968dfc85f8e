/* SPDX-License-Identifier: MIT */
/* The check of a launch's arguments: fast where all is well, full sentences where not. */
#include "jit/kernel.h"

#include <stdio.h>

#include "base/buffer.h"
#include "base/status.h"

static const char *class_word(uint32_t argument_class)
{
    return argument_class == HDRT_CLASS_FLOAT ? "floating point" : argument_class == HDRT_CLASS_INTEGER
                                                                       ? "integer or pointer"
                                                                       : "bytes";
}

/* "a, b, c": what the kernel takes, for a message. */
static void describe_parameters(const hdrt_kernel *kernel, hdrt__buffer *text)
{
    for (uint32_t i = 0; i < kernel->parameter_count && i < HDRT_ARGS_LIMIT; i++)
        hdrt__buffer_format(text, "%s%u-byte %s", i ? ", " : "", kernel->parameters[i].size,
                            class_word(kernel->parameters[i].argument_class));
    if (kernel->parameter_count > HDRT_ARGS_LIMIT)
        hdrt__buffer_text(text, ", ...");
}

static hdrt_status wrong_count(const hdrt_kernel *kernel, uint32_t count)
{
    hdrt__buffer text = HDRT__BUFFER_INIT;
    describe_parameters(kernel, &text);
    hdrt_status status = hdrt__fail(
        HDRT_ERROR_LAUNCH, "launch of '%s': %u argument%s given, the kernel has %u parameter%s%s%s", kernel->name,
        count, count == 1 ? "" : "s", kernel->parameter_count, kernel->parameter_count == 1 ? "" : "s",
        text.size ? ": " : "", text.size ? (const char *)text.bytes : "");
    hdrt__buffer_free(&text);
    return status;
}

static hdrt_status wrong_kind(const hdrt_kernel *kernel, uint32_t index, uint32_t kind)
{
    const hdrt_parameter *parameter = &kernel->parameters[index];
    uint32_t size = kind & 0xffffffu, argument_class = kind >> 24;
    const char *hint = "";
    if (parameter->argument_class == HDRT_CLASS_FLOAT && argument_class == HDRT_CLASS_FLOAT)
        hint = parameter->size == 4 ? "; write 2.0f, not 2.0, for a float" : "; write 2.0, not 2.0f, for a double";
    else if (argument_class == HDRT_CLASS_INTEGER && parameter->argument_class == HDRT_CLASS_FLOAT)
        hint = "; an integer is not converted";
    return hdrt__fail(HDRT_ERROR_LAUNCH,
                      "launch of '%s': argument %u of %u is %u-byte %s, the parameter is %u-byte %s%s", kernel->name,
                      index + 1, kernel->parameter_count, size, class_word(argument_class), parameter->size,
                      class_word(parameter->argument_class), hint);
}

hdrt_status hdrt__kernel_check_arguments(const hdrt_kernel *kernel, const void *const *args, const uint32_t *kinds,
                                         uint32_t count)
{
    if (count != kernel->parameter_count)
        return wrong_count(kernel, count);
    if (count == 0)
        return HDRT_OK;
    if (!args || !kinds)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "launch of '%s': %s is NULL, but there are %u arguments",
                          kernel->name, args ? "kinds" : "args", count);
    for (uint32_t i = 0; i < count; i++) {
        const hdrt_parameter *parameter = &kernel->parameters[i];
        uint32_t given = kinds[i] >> 24, expected = parameter->argument_class;
        bool fits = (kinds[i] & 0xffffffu) == parameter->size &&
                    (given == expected || given == HDRT_CLASS_UNKNOWN || expected == HDRT_CLASS_UNKNOWN);
        if (!fits)
            return wrong_kind(kernel, i, kinds[i]);
        if (!args[i])
            return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "launch of '%s': the pointer to argument %u of %u is NULL",
                              kernel->name, i + 1, count);
    }
    return HDRT_OK;
}
