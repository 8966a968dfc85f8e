/* SPDX-License-Identifier: MIT */
#include "soft/model/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MILLISECOND UINT64_C(1000000)
#define LAZY_PATIENCE (1000 * MILLISECOND)
#define LONG_PATIENCE (10000 * MILLISECOND)

static const char *const names[] = {
    [HDSOFT__EAGER] = "eager", [HDSOFT__LAZY] = "lazy", [HDSOFT__RANDOM] = "random", [HDSOFT__VIRTUAL] = "virtual",
};

/* A key takes a decimal number, which is kept times `scale`. */
static const struct key {
    const char *name;
    unsigned policies; /* a bit for each that has it */
    uint64_t scale, most;
    size_t offset;
} keys[] = {
#define ALL_BUT_EAGER (1u << HDSOFT__LAZY | 1u << HDSOFT__RANDOM | 1u << HDSOFT__VIRTUAL)
#define COST(name, scale, most) {#name, 1u << HDSOFT__VIRTUAL, scale, most, offsetof(hdsoft__options, costs.name)}
    {"patience", ALL_BUT_EAGER, MILLISECOND, 1000000, offsetof(hdsoft__options, patience)},
    COST(launch, 1, 1000000000), COST(node, 1, 1000000000), COST(block, 1, 1000000000), COST(copy, 1, 1000000000),
    COST(fill, 1, 1000000000), COST(record, 1, 1000000000), COST(wait, 1, 1000000000), COST(value, 1, 1000000000),
    COST(host, 1, 1000000000), COST(instruction, 1000, 1000000), COST(h2d, 1000, 1000000), COST(d2h, 1000, 1000000),
    COST(d2d, 1000, 1000000), COST(p2p, 1000, 1000000), COST(set, 1000, 1000000), COST(sms, 1, 1024),
    COST(engines, 1, 64), COST(kernels, 1, 65536),
#undef COST
};

void hdsoft__options_default(hdsoft__options *options)
{
    *options = (hdsoft__options){
        .policy = HDSOFT__EAGER, .patience = LAZY_PATIENCE,
        .costs = {
            .launch = 1000, .node = 750, .copy = 1500, .fill = 1200, .record = 200, .wait = 1500, .value = 900,
            .host = 5000, .instruction = 1000, .h2d = 54000, .d2h = 55000, .d2d = 2000000, .p2p = 395000,
            .set = 2000000, .sms = 132, .engines = 1, .kernels = 128,
        },
    };
}

/* A decimal number up to key->most with its scale, rounded down. False: it is none. */
static bool read_number(const char *text, size_t length, const struct key *key, uint64_t *out)
{
    uint64_t whole = 0, fraction = 0, unit = key->scale;
    size_t at = 0;
    for (; at < length && text[at] >= '0' && text[at] <= '9'; at++) {
        whole = 10 * whole + (uint64_t)(text[at] - '0');
        if (whole > key->most)
            return false;
    }
    if (at == 0)
        return false;
    if (at < length && text[at] == '.') {
        for (at++; at < length && text[at] >= '0' && text[at] <= '9'; at++) {
            unit /= 10;
            fraction += unit * (uint64_t)(text[at] - '0');
        }
    }
    *out = whole * key->scale + fraction;
    return at == length;
}

static bool read_key(const char *text, size_t length, hdsoft__options *options)
{
    size_t name = strcspn(text, "=");
    if (name >= length)
        return false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strlen(keys[i].name) != name || memcmp(keys[i].name, text, name) ||
            !(keys[i].policies >> options->policy & 1))
            continue;
        uint64_t *value = (uint64_t *)((char *)options + keys[i].offset);
        if (!read_number(text + name + 1, length - name - 1, &keys[i], value))
            return false;
        if (value == &options->patience && !*value)
            *value = UINT64_MAX;
        return true;
    }
    return false;
}

static int fail(hdsoft__options *options, char *text, size_t capacity, const char *what, const char *where)
{
    snprintf(text, capacity, "%s '%.80s' (policies are eager, lazy, random:SEED and virtual, options KEY=NUMBER)", what,
             where);
    hdsoft__options_default(options);
    return 1;
}

int hdsoft__options_read(const char *policy, hdsoft__options *options, char *text, size_t capacity)
{
    hdsoft__options_default(options);
    size_t length = strcspn(policy, ":"), which = 0;
    while (which < sizeof names / sizeof *names &&
           (strlen(names[which]) != length || memcmp(names[which], policy, length)))
        which++;
    if (which == sizeof names / sizeof *names)
        return fail(options, text, capacity, "no such policy:", policy);
    options->policy = (hdsoft__policy)which;
    if (options->policy >= HDSOFT__RANDOM)
        options->patience = LONG_PATIENCE;
    const char *at = policy[length] ? policy + length + 1 : policy + length;
    if (options->policy == HDSOFT__RANDOM) {
        char *end;
        options->seed = strtoull(at, &end, 10);
        if (*at < '0' || *at > '9' || (*end && *end != ','))
            return fail(options, text, capacity, "random needs a seed, a number:", policy);
        at = *end ? end + 1 : end;
    }
    while (*at) {
        length = strcspn(at, ",");
        if (!read_key(at, length, options))
            return fail(options, text, capacity, "not an option of this policy:", at);
        at += length + (at[length] == ',');
    }
    if (!options->costs.sms || !options->costs.engines || !options->costs.kernels)
        return fail(options, text, capacity, "sms, engines and kernels are at least 1:", policy);
    return 0;
}
