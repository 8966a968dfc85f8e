/* SPDX-License-Identifier: MIT */
#include "base/environment.h"

#include <stdlib.h>

#include "base/status.h"

static const struct {
    const char *name, *type, *meaning;
} variables[] = {
#define VARIABLE(id, name, type, meaning) {name, type, meaning},
    HDRT__ENVIRONMENT_LIST(VARIABLE)
#undef VARIABLE
};

const char *hdrt__environment(hdrt__environment_id id)
{
    const char *value = secure_getenv(variables[id].name);
    return value && *value ? value : NULL;
}

hdrt_status hdrt_environment_get(uint32_t index, hdrt_environment_variable *out_variable)
{
    if (!out_variable)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_environment_get: out_variable is NULL");
    if (index >= HDRT__ENV_COUNT)
        return hdrt__fail(HDRT_ERROR_NOT_FOUND, "environment variable %u: there are %d", index, (int)HDRT__ENV_COUNT);
    out_variable->name = variables[index].name;
    out_variable->type = variables[index].type;
    out_variable->meaning = variables[index].meaning;
    out_variable->value = hdrt__environment((hdrt__environment_id)index);
    return HDRT_OK;
}
