/* SPDX-License-Identifier: MIT */
#include "soft/model/inject.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/model/driver.h"

static struct {
    pthread_mutex_t lock;
    hdsoft__rule rules[HDSOFT__RULES];
    size_t count;
    _Atomic bool active, hides, read;
    int environment; /* what reading HDSOFT_FAIL came to */
    _Atomic int version;
    _Atomic uint64_t memory;
    _Atomic uint64_t calls[HDSOFT__ENTRIES];
    char error[256];
} injection = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
    const char *name, *symbol;
} entries[HDSOFT__ENTRIES] = {
#define ENTRY_NAMES(name, symbol, version, need, parameters) {#name, symbol},
    HDCU_SYMBOL_LIST(ENTRY_NAMES)
#undef ENTRY_NAMES
};

hdsoft__entry hdsoft__entry_find(const char *name)
{
    for (unsigned i = 0; i < HDSOFT__ENTRIES; i++) {
        if (!strcmp(entries[i].symbol, name) || !strcmp(entries[i].name, name))
            return i;
    }
    return HDSOFT__ENTRIES;
}

const char *hdsoft__entry_name(hdsoft__entry entry)
{
    return entries[entry].name;
}

const char *hdsoft__entry_symbol(hdsoft__entry entry)
{
    return entries[entry].symbol;
}

/* ---- the rules that there are ---- */

static bool is_spent(const hdsoft__rule *rule)
{
    return rule->kind != HDSOFT__RULE_HIDE && rule->when == HDSOFT__WHEN_NTH && !rule->left;
}

static void forget_all(void)
{
    injection.count = 0;
    atomic_store(&injection.version, 0);
    atomic_store(&injection.memory, 0);
}

/* Keep what is read; settings take effect and need not be kept. 0, or 1: no room. */
static int keep(const hdsoft__rule *rules, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < injection.count; i++) {
        if (!is_spent(&injection.rules[i]))
            injection.rules[kept++] = injection.rules[i];
    }
    injection.count = kept;
    if (count > HDSOFT__RULES - kept) {
        snprintf(injection.error, sizeof injection.error, "more than %d rules at once: forget some with NULL first",
                 HDSOFT__RULES);
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        if (rules[i].kind == HDSOFT__RULE_VERSION)
            atomic_store(&injection.version, (int)rules[i].value);
        else if (rules[i].kind == HDSOFT__RULE_MEMORY)
            atomic_store(&injection.memory, rules[i].value);
        else
            injection.rules[injection.count++] = rules[i];
    }
    return 0;
}

static void look_at_rules(void)
{
    bool active = false, hides = false;
    for (size_t i = 0; i < injection.count; i++) {
        hides |= injection.rules[i].kind == HDSOFT__RULE_HIDE;
        active |= injection.rules[i].kind <= HDSOFT__RULE_COMMAND;
    }
    atomic_store(&injection.hides, hides);
    atomic_store(&injection.active, active);
}

static int add(const char *text)
{
    hdsoft__rule parsed[HDSOFT__RULES];
    size_t count;
    if (hdsoft__rules_read(text, parsed, &count, injection.error, sizeof injection.error))
        return 1;
    for (size_t i = 0; i < count; i++) {
        if (parsed[i].kind == HDSOFT__RULE_MEMORY && atomic_load(&hdsoft__the.ready)) {
            snprintf(injection.error, sizeof injection.error, "memory=: the devices are there already; say it before "
                                                              "cuInit");
            return 1;
        }
    }
    return keep(parsed, count);
}

int hdsoft__inject(const char *text)
{
    int status = 0;
    hdsoft__inject_from_environment(); /* what it asks for comes first, and NULL forgets that too */
    pthread_mutex_lock(&injection.lock);
    injection.error[0] = '\0';
    if (text)
        status = add(text);
    else
        forget_all();
    look_at_rules();
    pthread_mutex_unlock(&injection.lock);
    return status;
}

const char *hdsoft__inject_error(void)
{
    return injection.error;
}

int hdsoft__inject_from_environment(void)
{
    if (atomic_load_explicit(&injection.read, memory_order_acquire))
        return injection.environment;
    pthread_mutex_lock(&injection.lock);
    const char *rules = secure_getenv("HDSOFT_FAIL");
    if (!atomic_load(&injection.read) && rules) {
        injection.environment = add(rules);
        look_at_rules();
        if (injection.environment)
            fprintf(stderr, "libhdsoft: HDSOFT_FAIL: %s\n", injection.error);
    }
    atomic_store_explicit(&injection.read, true, memory_order_release);
    int status = injection.environment;
    pthread_mutex_unlock(&injection.lock);
    return status;
}

/* ---- what they do ---- */

/* SplitMix64: any seed will do, neighbours too. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t value = *state += 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

static bool strikes(hdsoft__rule *rule)
{
    switch (rule->when) {
    case HDSOFT__WHEN_NTH: return rule->left && !--rule->left;
    case HDSOFT__WHEN_FROM:
        if (rule->left == 1)
            return true;
        rule->left--;
        return false;
    default: return next_random(&rule->random) >> 11 < rule->threshold;
    }
}

static bool is_about(const hdsoft__rule *rule, hdsoft__rule_kind kind, unsigned entry)
{
    return rule->kind == kind && (kind != HDSOFT__RULE_CALL || (rule->entries[entry / 64] >> entry % 64 & 1));
}

static unsigned strike(hdsoft__rule_kind kind, unsigned entry)
{
    if (!atomic_load_explicit(&injection.active, memory_order_acquire))
        return 0;
    unsigned code = 0;
    pthread_mutex_lock(&injection.lock);
    for (size_t i = 0; i < injection.count; i++) {
        hdsoft__rule *rule = &injection.rules[i];
        if (is_about(rule, kind, entry) && strikes(rule))
            code = code ? code : rule->code;
    }
    pthread_mutex_unlock(&injection.lock);
    return code;
}

unsigned hdsoft__inject_call(hdsoft__entry entry)
{
    hdsoft__inject_from_environment();
    hdsoft__call_log(entry, atomic_fetch_add_explicit(&injection.calls[entry], 1, memory_order_relaxed) + 1);
    return strike(HDSOFT__RULE_CALL, entry);
}

unsigned hdsoft__inject_command(bool kernel)
{
    unsigned code = kernel ? strike(HDSOFT__RULE_KERNEL, 0) : 0;
    unsigned other = strike(HDSOFT__RULE_COMMAND, 0);
    return code ? code : other;
}

bool hdsoft__inject_hides(const char *name, const char *symbol)
{
    hdsoft__inject_from_environment();
    if (!atomic_load_explicit(&injection.hides, memory_order_acquire))
        return false;
    bool hidden = false;
    pthread_mutex_lock(&injection.lock);
    for (size_t i = 0; i < injection.count && !hidden; i++) {
        const hdsoft__rule *rule = &injection.rules[i];
        hidden = rule->kind == HDSOFT__RULE_HIDE &&
                 (!fnmatch(rule->pattern, name, 0) || !fnmatch(rule->pattern, symbol, 0));
    }
    pthread_mutex_unlock(&injection.lock);
    return hidden;
}

int hdsoft__inject_version(void)
{
    return atomic_load(&injection.version);
}

uint64_t hdsoft__inject_memory(void)
{
    return atomic_load(&injection.memory);
}

uint64_t hdsoft__call_count(const char *name)
{
    hdsoft__entry entry = name ? hdsoft__entry_find(name) : HDSOFT__ENTRIES;
    return entry == HDSOFT__ENTRIES ? 0 : atomic_load(&injection.calls[entry]);
}
