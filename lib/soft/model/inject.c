/* SPDX-License-Identifier: MIT */
#include "soft/model/inject.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RULES 64
#define KERNELS HDSOFT__ENTRIES /* the "entry" that fault@ rules are about */

typedef struct rule {
    unsigned entry, code;
    bool every;
    uint64_t left; /* calls until it strikes; 0: spent */
} rule;

static struct {
    pthread_mutex_t lock;
    rule rules[RULES];
    size_t count;
    _Atomic bool active;
    _Atomic uint64_t calls[HDSOFT__ENTRIES];
} injection = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
    const char *name, *symbol;
} entries[HDSOFT__ENTRIES] = {
#define ENTRY_NAMES(name, symbol, version, need, parameters) {#name, symbol},
    HDCU_SYMBOL_LIST(ENTRY_NAMES)
#undef ENTRY_NAMES
};

static bool is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && !memcmp(name, text, length);
}

static hdsoft__entry find_entry(const char *text, size_t length)
{
    for (unsigned i = 0; i < HDSOFT__ENTRIES; i++) {
        if (is_name(entries[i].symbol, text, length) || is_name(entries[i].name, text, length))
            return i;
    }
    return HDSOFT__ENTRIES;
}

hdsoft__entry hdsoft__entry_find(const char *name)
{
    return find_entry(name, strlen(name));
}

const char *hdsoft__entry_symbol(hdsoft__entry entry)
{
    return entries[entry].symbol;
}

/* One rule from *text on, which is moved behind it. */
static bool parse_rule(const char **text, rule *out)
{
    const char *at = *text;
    size_t length = strcspn(at, ":@=;");
    char separator = at[length];
    if (separator == '@') {
        if (!is_name("fault", at, length))
            return false;
        out->entry = KERNELS;
    } else {
        out->entry = find_entry(at, length);
        if (separator != ':' || out->entry == HDSOFT__ENTRIES)
            return false;
    }
    at += length + 1;
    char *end = (char *)at + 1;
    out->every = *at == '*';
    out->left = out->every ? 1 : strtoull(at, &end, 10);
    if (end == at || *end != '=' || !out->left)
        return false;
    at = end + 1;
    out->code = (unsigned)strtoul(at, &end, 10);
    if (end == at || (*end && *end != ';') || !out->code)
        return false;
    *text = *end ? end + 1 : end;
    return true;
}

int hdsoft__inject(const char *text)
{
    rule parsed[RULES];
    size_t count = 0;
    int status = 0;
    for (const char *at = text; at && *at; count++) {
        if (count == RULES || !parse_rule(&at, &parsed[count]))
            return 1;
    }
    pthread_mutex_lock(&injection.lock);
    if (!text) {
        injection.count = 0;
    } else {
        size_t kept = 0;
        for (size_t i = 0; i < injection.count; i++) {
            if (injection.rules[i].left)
                injection.rules[kept++] = injection.rules[i];
        }
        injection.count = kept;
        if (kept + count > RULES) {
            status = 1;
        } else {
            memcpy(injection.rules + kept, parsed, count * sizeof *parsed);
            injection.count += count;
        }
    }
    atomic_store(&injection.active, injection.count > 0);
    pthread_mutex_unlock(&injection.lock);
    return status;
}

void hdsoft__inject_from_environment(void)
{
    const char *rules = secure_getenv("HDSOFT_FAIL");
    if (rules)
        hdsoft__inject(rules);
}

static unsigned strike(unsigned entry)
{
    if (!atomic_load_explicit(&injection.active, memory_order_acquire))
        return 0;
    unsigned code = 0;
    pthread_mutex_lock(&injection.lock);
    for (size_t i = 0; i < injection.count; i++) {
        rule *at = &injection.rules[i];
        if (at->entry != entry || !at->left)
            continue;
        if (at->every || !--at->left)
            code = code ? code : at->code;
    }
    pthread_mutex_unlock(&injection.lock);
    return code;
}

unsigned hdsoft__inject_call(hdsoft__entry entry)
{
    atomic_fetch_add_explicit(&injection.calls[entry], 1, memory_order_relaxed);
    return strike(entry);
}

unsigned hdsoft__inject_kernel(void)
{
    return strike(KERNELS);
}

uint64_t hdsoft__call_count(const char *name)
{
    hdsoft__entry entry = name ? hdsoft__entry_find(name) : HDSOFT__ENTRIES;
    return entry == HDSOFT__ENTRIES ? 0 : atomic_load(&injection.calls[entry]);
}
