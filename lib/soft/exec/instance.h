/* SPDX-License-Identifier: MIT */
/* A program whose variables live in one device's memory. Immutable once made. */
#ifndef HDSOFT_INSTANCE_H
#define HDSOFT_INSTANCE_H

#include "soft/ptx/program.h"

struct hdsoft_instance {
    const hdsoft_program *program;
    hdsoft_memory *memory;
    hdsoft_range *ranges;      /* per global */
    uint32_t range_count;      /* how many of them are allocated */
    unsigned char *constants;  /* broadcast columns, with the globals' addresses in */
};

#endif
