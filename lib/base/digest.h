/* SPDX-License-Identifier: MIT */
/*
 * BLAKE2b-256 by libsodium. Fields are length-prefixed and tagged, so that no two different sequences of fields have
 * the same input.
 */
#ifndef HDRT_BASE_DIGEST_H
#define HDRT_BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sodium.h>

#define HDRT__DIGEST_SIZE 32
#define HDRT__CHECKSUM_SIZE 16

typedef struct hdrt__digest {
    unsigned char bytes[HDRT__DIGEST_SIZE];
} hdrt__digest;

typedef struct hdrt__hasher {
    crypto_generichash_state state;
} hdrt__hasher;

void hdrt__hasher_begin(hdrt__hasher *hasher, const char *purpose); /* purpose: a constant that separates uses */
void hdrt__hasher_field(hdrt__hasher *hasher, uint32_t tag, const void *bytes, size_t size);
void hdrt__hasher_text(hdrt__hasher *hasher, uint32_t tag, const char *text); /* NULL differs from "" */
void hdrt__hasher_number(hdrt__hasher *hasher, uint32_t tag, uint64_t number);
hdrt__digest hdrt__hasher_end(hdrt__hasher *hasher);
hdrt__digest hdrt__digest_of(const void *bytes, size_t size); /* plain BLAKE2b-256 of the bytes */
/*
 * Poly1305 under a fixed key: tells damage, a quarter of a digest's time. It differs for any two inputs with a chance of
 * 2^-100 or so unless they were made with the key at hand, so it names nothing and proves no origin.
 */
void hdrt__checksum_of(const void *bytes, size_t size, unsigned char out[HDRT__CHECKSUM_SIZE]);
bool hdrt__digest_equal(const hdrt__digest *a, const hdrt__digest *b);
void hdrt__digest_hex(const hdrt__digest *digest, char text[2 * HDRT__DIGEST_SIZE + 1]);
bool hdrt__digest_parse(const char *text, hdrt__digest *out); /* exactly 64 lower-case hex digits */

#endif
