/* SPDX-License-Identifier: MIT */
/*
 * The driver table: one function pointer per entry of cuda_symbols.h. Filled once by the loader and only read after
 * that; optional entries may be NULL.
 */
#ifndef HDRT_DRIVER_CUDA_TABLE_H
#define HDRT_DRIVER_CUDA_TABLE_H

#include "driver/cuda_symbols.h"

typedef struct hdrt__driver_table {
#define HDRT__TABLE_MEMBER(name, symbol, version, need, parameters) hdcu_result(*name) parameters;
    HDCU_SYMBOL_LIST(HDRT__TABLE_MEMBER)
#undef HDRT__TABLE_MEMBER
} hdrt__driver_table;

#endif
