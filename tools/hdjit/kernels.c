/* SPDX-License-Identifier: MIT */
#include "kernels.h"

#include "demangle.h"
#include "json.h"
#include "message.h"

#include <stdio.h>
#include <stdlib.h>

/* "f32", "i64", "24 bytes". */
static const char *parameter_text(const hdrt_parameter *parameter, char room[32])
{
    bool number = parameter->size == 1 || parameter->size == 2 || parameter->size == 4 || parameter->size == 8;

    if (number && parameter->argument_class == HDRT_CLASS_FLOAT)
        snprintf(room, 32, "f%u", 8 * parameter->size);
    else if (number && parameter->argument_class == HDRT_CLASS_INTEGER)
        snprintf(room, 32, "i%u", 8 * parameter->size);
    else
        snprintf(room, 32, "%u bytes", parameter->size);
    return room;
}

static void print_kernel(const hdrt_image_kernel_info *kernel, const char *indent)
{
    char room[32], *plain = demangle(kernel->name);

    printf("%s%s(", indent, kernel->name);
    for (uint32_t i = 0; i < kernel->parameter_count; i++)
        printf("%s%s", i ? ", " : "", parameter_text(&kernel->parameters[i], room));
    printf("%s)\n", kernel->parameters_known ? "" : "parameters not known");
    if (plain)
        printf("%s    %s\n", indent, plain);
    if (kernel->expression)
        printf("%s    by the name expression %s\n", indent, kernel->expression);
    if (kernel->resources_known)
        printf("%s    %u registers, %u bytes of shared and %u of local memory\n", indent, kernel->registers,
               kernel->static_shared_bytes, kernel->local_bytes);
    free(plain);
}

int kernels_print(const hdrt_image *image, const char *indent)
{
    hdrt_image_kernel_info kernel = HDRT_IMAGE_KERNEL_INFO_INIT;
    hdrt_status status;
    uint32_t index = 0;

    for (; (status = hdrt_image_kernel(image, index, &kernel)) == HDRT_OK; index++)
        print_kernel(&kernel, indent);
    if (status != HDRT_ERROR_NOT_FOUND)
        return fail_last(status);
    if (index == 0)
        printf("%sno kernels%s\n", indent, ": templates need --name");
    return 0;
}

static json_t *kernel_json(const hdrt_image_kernel_info *kernel)
{
    static const char *const classes[] = {
        [HDRT_CLASS_UNKNOWN] = "unknown", [HDRT_CLASS_INTEGER] = "integer", [HDRT_CLASS_FLOAT] = "float"};
    char *plain = demangle(kernel->name);
    json_t *parameters = kernel->parameters_known ? json_array() : json_null(), *object;

    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        const hdrt_parameter *parameter = &kernel->parameters[i];
        uint32_t which = parameter->argument_class <= HDRT_CLASS_FLOAT ? parameter->argument_class : HDRT_CLASS_UNKNOWN;

        json_array_append_new(parameters, json_pack("{s:I, s:I, s:I, s:s}", "offset", (json_int_t)parameter->offset,
                                                    "size", (json_int_t)parameter->size, "align",
                                                    (json_int_t)parameter->align, "class", classes[which]));
    }
    object = json_pack("{s:o, s:o, s:o, s:o}", "name", json_text(kernel->name), "demangled", json_text(plain),
                       "expression", json_text(kernel->expression), "parameters", parameters);
    free(plain);
    if (object && kernel->resources_known) {
        json_object_set_new(object, "registers", json_integer(kernel->registers));
        json_object_set_new(object, "shared_bytes", json_integer(kernel->static_shared_bytes));
        json_object_set_new(object, "local_bytes", json_integer(kernel->local_bytes));
    }
    return object;
}

json_t *kernels_json(const hdrt_image *image)
{
    hdrt_image_kernel_info kernel = HDRT_IMAGE_KERNEL_INFO_INIT;
    json_t *all = json_array();

    for (uint32_t i = 0; hdrt_image_kernel(image, i, &kernel) == HDRT_OK; i++)
        if (json_array_append_new(all, kernel_json(&kernel)) != 0) {
            json_decref(all);
            return NULL;
        }
    return all;
}
