/* SPDX-License-Identifier: MIT */
/* Prints what libhdrt takes from its environment; tests/tool/privileged.sh runs it with another user's rights. */
#include <hdrt.h>

#include <stdio.h>
#include <sys/auxv.h>

#include "driver/companions.h"
#include "driver/loader.h"

int main(void)
{
    hdrt_environment_variable variable;
    hdrt__companions *companions;
    hdrt_driver_kind kind;
    printf("privileged %lu\n", getauxval(AT_SECURE));
    for (uint32_t i = 0; hdrt_environment_get(i, &variable) == HDRT_OK; i++)
        if (variable.value)
            printf("uses %s\n", variable.name);
    if (hdrt__driver_choose(HDRT_DRIVER_DEFAULT, &kind) == HDRT_OK)
        printf("driver %d\n", (int)kind);
    if (hdrt__companions_find(NULL, &companions) == HDRT_OK) {
        printf("searched %s\n", companions->searched);
        hdrt__companions_free(companions);
    }
    return 0;
}
