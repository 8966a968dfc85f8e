/* SPDX-License-Identifier: MIT */
#include "base/digest.h"

#include <string.h>

/* Kinds of fields, so that a number, a text and an absent text of the same bytes differ. */
enum field_kind { FIELD_BYTES = 1, FIELD_TEXT, FIELD_ABSENT, FIELD_NUMBER };

/* Picks the processor's fastest variant; idempotent and thread-safe. Where it fails the portable one is used. */
static void choose_variant(void)
{
    if (sodium_init() < 0)
        return;
}

static void put_u64(unsigned char *bytes, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
}

static void add_field(hdrt__hasher *hasher, enum field_kind kind, uint32_t tag, const void *bytes, size_t size)
{
    unsigned char head[16];
    put_u64(head, (uint64_t)kind << 32 | tag);
    put_u64(head + 8, size);
    crypto_generichash_update(&hasher->state, head, sizeof head);
    if (size)
        crypto_generichash_update(&hasher->state, bytes, size);
}

void hdrt__hasher_begin(hdrt__hasher *hasher, const char *purpose)
{
    choose_variant();
    crypto_generichash_init(&hasher->state, NULL, 0, HDRT__DIGEST_SIZE);
    add_field(hasher, FIELD_TEXT, 0, purpose, strlen(purpose));
}

void hdrt__hasher_field(hdrt__hasher *hasher, uint32_t tag, const void *bytes, size_t size)
{
    add_field(hasher, FIELD_BYTES, tag, bytes, size);
}

void hdrt__hasher_text(hdrt__hasher *hasher, uint32_t tag, const char *text)
{
    if (text)
        add_field(hasher, FIELD_TEXT, tag, text, strlen(text));
    else
        add_field(hasher, FIELD_ABSENT, tag, NULL, 0);
}

void hdrt__hasher_number(hdrt__hasher *hasher, uint32_t tag, uint64_t number)
{
    unsigned char bytes[8];
    put_u64(bytes, number);
    add_field(hasher, FIELD_NUMBER, tag, bytes, sizeof bytes);
}

hdrt__digest hdrt__hasher_end(hdrt__hasher *hasher)
{
    hdrt__digest digest;
    crypto_generichash_final(&hasher->state, digest.bytes, sizeof digest.bytes);
    return digest;
}

hdrt__digest hdrt__digest_of(const void *bytes, size_t size)
{
    hdrt__digest digest;
    choose_variant();
    crypto_generichash(digest.bytes, sizeof digest.bytes, size ? bytes : NULL, size, NULL, 0);
    return digest;
}

void hdrt__checksum_of(const void *bytes, size_t size, unsigned char out[HDRT__CHECKSUM_SIZE])
{
    static const unsigned char key[crypto_onetimeauth_KEYBYTES] = "libhdrt: a checksum, no secret";
    choose_variant();
    crypto_onetimeauth(out, bytes, size, key);
}

bool hdrt__digest_equal(const hdrt__digest *a, const hdrt__digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void hdrt__digest_hex(const hdrt__digest *digest, char text[2 * HDRT__DIGEST_SIZE + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < HDRT__DIGEST_SIZE; i++) {
        text[2 * i] = digits[digest->bytes[i] >> 4];
        text[2 * i + 1] = digits[digest->bytes[i] & 15];
    }
    text[2 * HDRT__DIGEST_SIZE] = 0;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

bool hdrt__digest_parse(const char *text, hdrt__digest *out)
{
    hdrt__digest digest;
    for (int i = 0; i < HDRT__DIGEST_SIZE; i++) {
        int high = hex_value(text[2 * i]);
        int low = high < 0 ? -1 : hex_value(text[2 * i + 1]);
        if (low < 0)
            return false;
        digest.bytes[i] = (unsigned char)(high << 4 | low);
    }
    if (text[2 * HDRT__DIGEST_SIZE])
        return false;
    *out = digest;
    return true;
}
