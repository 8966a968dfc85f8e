/* SPDX-License-Identifier: MIT */
#include <hdrt.h>

unsigned hdrt_version(void)
{
    return HDRT_VERSION;
}
