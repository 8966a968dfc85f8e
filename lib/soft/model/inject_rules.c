/* SPDX-License-Identifier: MIT */
#include "soft/model/inject.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "soft/api/outside.h"
#include "soft/model/driver.h"

/* Where reading stands, and what is wrong there. */
typedef struct rule_reader {
    const char *text, *at;
    char *error;
    size_t error_size;
} rule_reader;

static int wrong(const rule_reader *reader, const char *at, const char *what)
{
    size_t shown = strcspn(at, ";");
    snprintf(reader->error, reader->error_size, "character %zu, at \"%.*s\": %s", (size_t)(at - reader->text) + 1,
             shown > 60 ? 60 : (int)shown, at, what);
    return 1;
}

static const struct {
    const char *name;
    unsigned code;
} code_names[] = {
#define CODE_NAME(name, number) {"CUDA_" #name, number},
    HDCU_RESULT_LIST(CODE_NAME)
#undef CODE_NAME
};

/* Digits up to 2^64; false: there are none, or too many. */
static bool read_digits(const char **at, uint64_t *out)
{
    const char *start = *at;
    uint64_t value = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(**at - '0'), &value))
            return false;
    }
    *out = value;
    return *at != start;
}

bool hdsoft__bytes_read(const char *text, const char **end, uint64_t *bytes)
{
    *end = text;
    if (!read_digits(end, bytes))
        return false;
    unsigned shift = **end == 'G' ? 30 : **end == 'M' ? 20 : **end == 'K' ? 10 : 0;
    *end += shift != 0;
    if (*bytes << shift >> shift != *bytes)
        return false;
    *bytes <<= shift;
    return true;
}

/* =CODE: a number, or its name in cuda.h. */
static int read_code(rule_reader *reader, unsigned *code)
{
    if (*reader->at != '=')
        return wrong(reader, reader->at, "expected = and the code to fail with");
    const char *start = ++reader->at;
    uint64_t number;
    if (read_digits(&reader->at, &number)) {
        if (!number || number > 99999)
            return wrong(reader, start, "expected a code from 1 to 99999");
        *code = (unsigned)number;
        return 0;
    }
    size_t length = strcspn(start, ";");
    for (size_t i = 0; i < sizeof code_names / sizeof *code_names; i++) {
        if (code_names[i].code && strlen(code_names[i].name) == length && !memcmp(start, code_names[i].name, length)) {
            reader->at = start + length;
            *code = code_names[i].code;
            return 0;
        }
    }
    return wrong(reader, start, "expected a code: a number, or a name like CUDA_ERROR_OUT_OF_MEMORY");
}

/* pX or pX@SEED, behind the p. By hand: strtod reads what the locale says. */
static int read_chance(rule_reader *reader, hdsoft__rule *out)
{
    const char *start = reader->at;
    uint64_t whole = 0, scale = 1, part = 0;
    bool digits = read_digits(&reader->at, &whole);
    if (*reader->at == '.') {
        for (reader->at++; *reader->at >= '0' && *reader->at <= '9'; reader->at++, digits = true) {
            if (scale < 1000000000u) {
                scale *= 10;
                part = part * 10 + (uint64_t)(*reader->at - '0');
            }
        }
    }
    if (!digits || whole > 1 || (whole == 1 && part))
        return wrong(reader, start, "expected a probability from 0 to 1");
    out->when = HDSOFT__WHEN_CHANCE;
    out->threshold = (uint64_t)(((double)whole + (double)part / (double)scale) * (double)(1ull << 53));
    out->random = 1;
    if (*reader->at != '@')
        return 0;
    start = ++reader->at;
    return read_digits(&reader->at, &out->random) ? 0 : wrong(reader, start, "expected the seed, a number");
}

/* N, N+, *, pX, pX@SEED */
static int read_when(rule_reader *reader, hdsoft__rule *out)
{
    const char *start = reader->at;
    if (*start == 'p') {
        reader->at++;
        return read_chance(reader, out);
    }
    if (*start == '*') {
        reader->at++;
        out->when = HDSOFT__WHEN_FROM;
        out->left = 1;
        return 0;
    }
    if (!read_digits(&reader->at, &out->left) || !out->left)
        return wrong(reader, start, "expected which call: a number from 1, 3+ for the third and all later ones, * for "
                                    "every, p0.01@7 for one in a hundred by seed 7");
    out->when = *reader->at == '+' ? HDSOFT__WHEN_FROM : HDSOFT__WHEN_NTH;
    reader->at += *reader->at == '+';
    return 0;
}

static int read_pattern(rule_reader *reader, const char *ends, char pattern[HDSOFT__PATTERN])
{
    size_t length = strcspn(reader->at, ends);
    if (!length)
        return wrong(reader, reader->at, "expected a driver call's name");
    if (length >= HDSOFT__PATTERN)
        return wrong(reader, reader->at, "no driver call has such a long name");
    memcpy(pattern, reader->at, length);
    pattern[length] = '\0';
    return 0;
}

static bool matches(const char *pattern, const char *name, const char *symbol)
{
    return !fnmatch(pattern, name, 0) || !fnmatch(pattern, symbol, 0);
}

static const char no_such_entry[] =
    "the soft driver has no entry point of that name, and none that it fits as a pattern";

static bool match_entries(hdsoft__rule *rule)
{
    bool any = false;
    for (unsigned i = 0; i < HDSOFT__ENTRIES; i++) {
        if (!matches(rule->pattern, hdsoft__entry_name(i), hdsoft__entry_symbol(i)))
            continue;
        rule->entries[i / 64] |= 1ull << i % 64;
        any = true;
    }
    return any;
}

static int read_call(rule_reader *reader, hdsoft__rule *out)
{
    const char *start = reader->at;
    if (read_pattern(reader, ":=;@", out->pattern))
        return 1;
    out->kind = HDSOFT__RULE_CALL;
    if (!match_entries(out))
        return wrong(reader, start, no_such_entry);
    reader->at += strlen(out->pattern);
    if (*reader->at != ':')
        return wrong(reader, reader->at, "expected : and which call is to fail");
    reader->at++;
    return read_when(reader, out) || read_code(reader, &out->code);
}

/* hide=NAME,NAME: a rule each. */
static int read_hidden(rule_reader *reader, hdsoft__rule *rules, size_t *count)
{
    for (;;) {
        if (*count == HDSOFT__RULES)
            return wrong(reader, reader->at, "too many rules");
        hdsoft__rule *rule = &rules[*count];
        memset(rule, 0, sizeof *rule);
        if (read_pattern(reader, ",;=:", rule->pattern))
            return 1;
        rule->kind = HDSOFT__RULE_HIDE;
        if (!match_entries(rule) && !hdsoft__outside_matches(rule->pattern))
            return wrong(reader, reader->at, no_such_entry);
        reader->at += strlen(rule->pattern);
        ++*count;
        if (*reader->at != ',')
            return 0;
        reader->at++;
    }
}

static int read_setting(rule_reader *reader, hdsoft__rule *out, hdsoft__rule_kind kind)
{
    const char *start = reader->at;
    out->kind = kind;
    if (kind == HDSOFT__RULE_VERSION) {
        if (!read_digits(&reader->at, &out->value) || out->value < 1000 || out->value > 13000)
            return wrong(reader, start, "expected a driver version from 1000 to 13000, like 11040 for 11.4");
        return 0;
    }
    if (!hdsoft__bytes_read(start, &reader->at, &out->value) || !out->value)
        return wrong(reader, start, "expected bytes of device memory, like 64M");
    return 0;
}

static bool skip(rule_reader *reader, const char *word)
{
    if (strncmp(reader->at, word, strlen(word)))
        return false;
    reader->at += strlen(word);
    return true;
}

static int read_rule(rule_reader *reader, hdsoft__rule *rules, size_t *count)
{
    if (skip(reader, "hide="))
        return read_hidden(reader, rules, count);
    if (*count == HDSOFT__RULES)
        return wrong(reader, reader->at, "too many rules");
    hdsoft__rule *rule = &rules[*count];
    memset(rule, 0, sizeof *rule);
    int status;
    if (skip(reader, "version=")) {
        status = read_setting(reader, rule, HDSOFT__RULE_VERSION);
    } else if (skip(reader, "memory=")) {
        status = read_setting(reader, rule, HDSOFT__RULE_MEMORY);
    } else if (skip(reader, "fault@") || skip(reader, "command@")) {
        rule->kind = reader->at[-2] == 't' ? HDSOFT__RULE_KERNEL : HDSOFT__RULE_COMMAND;
        status = read_when(reader, rule) || read_code(reader, &rule->code);
    } else {
        status = read_call(reader, rule);
    }
    *count += !status;
    return status;
}

int hdsoft__rules_read(const char *text, hdsoft__rule rules[HDSOFT__RULES], size_t *count, char *error,
                       size_t error_size)
{
    rule_reader reader = {text, text, error, error_size};
    *count = 0;
    for (;;) {
        reader.at += strspn(reader.at, "; \n\t");
        if (!*reader.at)
            return 0;
        if (read_rule(&reader, rules, count))
            return 1;
        if (*reader.at && *reader.at != ';')
            return wrong(&reader, reader.at, "expected the rule's end or a ;");
    }
}
