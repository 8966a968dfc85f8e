/* SPDX-License-Identifier: MIT */
/* What the stand-in compiler makes of a digest: a kernel, and filling whose bytes follow from the digest. */
#ifndef TEST_FAKE_CC_H
#define TEST_FAKE_CC_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_FILLING 6000u

static inline char *fake_code(const unsigned char digest[32], size_t *out_size)
{
    static const char hex[] = "0123456789abcdef";
    size_t filling = 500 + (digest[0] * 256u + digest[1]) % FAKE_FILLING, size;
    char *code = malloc(400 + filling);
    if (!code)
        abort();
    size = (size_t)sprintf(code, ".version 8.0\n.target sm_80\n.address_size 64\n"
                                 ".visible .entry k(.param .u64 p)\n{\n    ret;\n}\n// ");
    for (size_t i = 0; i < filling; i++)
        code[size++] = hex[(digest[i % 32] + i * 7 + i / 32) % 16];
    code[size++] = '\n';
    *out_size = size;
    return code;
}

#endif
