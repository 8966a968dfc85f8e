/* SPDX-License-Identifier: MIT */
#include "soft/check/report.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Atomic unsigned hdsoft__checks_on;

/* A program with more different faults than this has been told enough; the rest is counted. */
#define MOST_REPORTS 1000u

typedef struct told {
    struct told *next;
    char *kind, *kernel, *source_file, *text;
    uint32_t source_line, ptx_line;
    uint64_t distinct, allocation;
    unsigned long long count, given; /* how often it was met; how often when it was given, 0: not yet */
} told;

static struct {
    pthread_mutex_t lock;
    told *first, **last; /* in the order of their coming */
    unsigned long long count, beyond;
    _Atomic bool waiting; /* something is to be given */
    hdsoft__report_function function;
    void *context;
    bool chosen; /* the checks, from C */
} reports = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &reports.first};

/* ---- which checks ---- */

bool hdsoft__checks_parse(const char *text, unsigned *checks, const char **unknown, size_t *length)
{
    static const struct {
        const char *word;
        unsigned check;
    } words[] = {{"memory", HDSOFT_CHECK_MEMORY}, {"race", HDSOFT_CHECK_RACE}, {"init", HDSOFT_CHECK_INIT},
                 {"leak", HDSOFT_CHECK_LEAK}};
    *checks = 0;
    while (text && *text) {
        size_t word_length = strcspn(text, ",");
        unsigned found = 0;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strlen(words[i].word) == word_length && memcmp(words[i].word, text, word_length) == 0)
                found = words[i].check;
        if (!found) {
            *unknown = text;
            *length = word_length;
            return false;
        }
        *checks |= found;
        text += word_length + (text[word_length] == ',');
    }
    return true;
}

int hdsoft__checks_set(const char *text)
{
    unsigned checks;
    const char *unknown;
    size_t length;
    if (!hdsoft__checks_parse(text, &checks, &unknown, &length))
        return 1;
    atomic_store(&hdsoft__checks_on, checks);
    pthread_mutex_lock(&reports.lock);
    reports.chosen = true;
    pthread_mutex_unlock(&reports.lock);
    return 0;
}

void hdsoft__checks_from_environment(void)
{
    const char *text = secure_getenv("HDSOFT_CHECK"), *unknown;
    unsigned checks;
    size_t length;
    pthread_mutex_lock(&reports.lock);
    bool chosen = reports.chosen;
    pthread_mutex_unlock(&reports.lock);
    if (!text || chosen)
        return;
    if (hdsoft__checks_parse(text, &checks, &unknown, &length))
        atomic_store(&hdsoft__checks_on, checks);
    else
        fprintf(stderr, "hdsoft: HDSOFT_CHECK has '%.*s': expected words out of memory, race, init and leak, with "
                "commas between; nothing is checked\n", (int)length, unknown);
}

/* ---- reports ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* A report without a place in a kernel is told apart by its text. Called under the lock. */
static told *find(const hdsoft__report *report)
{
    bool placed = report->source_line || report->ptx_line || report->distinct;
    for (told *at = reports.first; at; at = at->next) {
        if (strcmp(at->kind, report->kind) != 0 || at->distinct != report->distinct ||
            !same_text(at->kernel, report->kernel))
            continue;
        if (!placed ? same_text(at->text, report->text)
            : report->source_line ? at->source_line == report->source_line &&
                                        same_text(at->source_file, report->source_file)
                                  : at->ptx_line == report->ptx_line && !at->source_line)
            return at;
    }
    return NULL;
}

static void destroy(told *gone)
{
    free(gone->kind);
    free(gone->kernel);
    free(gone->source_file);
    free(gone->text);
    free(gone);
}

static told *create(const hdsoft__report *report)
{
    told *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->kind = strdup(report->kind);
    made->text = strdup(report->text ? report->text : "");
    made->kernel = report->kernel ? strdup(report->kernel) : NULL;
    made->source_file = report->source_file ? strdup(report->source_file) : NULL;
    if (!made->kind || !made->text || (report->kernel && !made->kernel) ||
        (report->source_file && !made->source_file)) {
        destroy(made);
        return NULL;
    }
    made->source_line = report->source_line;
    made->ptx_line = report->ptx_line;
    made->distinct = report->distinct;
    made->allocation = report->allocation;
    made->count = 1;
    return made;
}

bool hdsoft__report_add(const hdsoft__report *report)
{
    bool is_new = false;
    pthread_mutex_lock(&reports.lock);
    told *found = find(report);
    if (found) {
        found->count++;
    } else {
        told *made = reports.count < MOST_REPORTS ? create(report) : NULL;
        reports.count++;
        is_new = true;
        if (made) {
            *reports.last = made;
            reports.last = &made->next;
            atomic_store(&reports.waiting, true);
        } else {
            reports.beyond++;
        }
    }
    pthread_mutex_unlock(&reports.lock);
    return is_new;
}

bool hdsoft__report_is_new(const hdsoft__report *report)
{
    pthread_mutex_lock(&reports.lock);
    told *found = find(report);
    if (found)
        found->count++;
    pthread_mutex_unlock(&reports.lock);
    return !found;
}

/* ---- the sink ---- */

static void give(const char *kind, const char *text, unsigned long long allocation, unsigned long long count)
{
    pthread_mutex_lock(&reports.lock);
    hdsoft__report_function function = reports.function;
    void *context = reports.context;
    pthread_mutex_unlock(&reports.lock);
    if (function) {
        function(context, kind, text, allocation, count);
        return;
    }
    /* One write, so that lines of several threads and processes do not mix. */
    char *line;
    int length = asprintf(&line, "hdsoft: %s\n", text);
    if (length < 0)
        return;
    fwrite(line, 1, (size_t)length, stderr);
    fflush(stderr);
    free(line);
}

/* What is told of a report that came again; NULL: no memory. */
static char *again_text(const told *at)
{
    char buffer[1024];
    hdsoft_text text = {buffer, sizeof buffer, 0};
    buffer[0] = '\0';
    hdsoft_text_append(&text, "%s", at->kind);
    if (at->kernel)
        hdsoft_text_append(&text, " in kernel '%s'", at->kernel);
    if (at->source_line)
        hdsoft_text_append(&text, " at %s:%u", at->source_file ? at->source_file : "?", at->source_line);
    else if (at->ptx_line)
        hdsoft_text_append(&text, " at PTX line %u", at->ptx_line);
    hdsoft_text_append(&text, ": the same again, %llu times in all", at->count);
    return strdup(buffer);
}

static char *first_text(const told *at)
{
    char *text;
    if (at->count == 1)
        return strdup(at->text);
    return asprintf(&text, "%s\n    met %llu times", at->text, at->count) < 0 ? NULL : text;
}

/* The next report that was never given, or, with `again`, that was met since, as a copy; false: there is none. */
static bool take_next(bool again, char **kind, char **text, unsigned long long *allocation, unsigned long long *count)
{
    bool taken = false;
    *kind = *text = NULL;
    pthread_mutex_lock(&reports.lock);
    for (told *at = reports.first; at && !taken; at = at->next) {
        if (again ? !at->given || at->given == at->count : at->given != 0)
            continue;
        *text = again ? again_text(at) : first_text(at);
        *kind = strdup(at->kind);
        *allocation = at->allocation;
        *count = at->count;
        at->given = at->count;
        taken = *text && *kind;
        if (!taken) { /* no memory to tell it with: the next one */
            free(*text);
            free(*kind);
        }
    }
    if (!taken && !again)
        atomic_store(&reports.waiting, false);
    pthread_mutex_unlock(&reports.lock);
    return taken;
}

static void give_all(bool again)
{
    char *kind, *text;
    unsigned long long allocation, count;
    while (take_next(again, &kind, &text, &allocation, &count)) {
        give(kind, text, allocation, count);
        free(text);
        free(kind);
    }
}

void hdsoft__report_flush(void)
{
    if (atomic_load_explicit(&reports.waiting, memory_order_relaxed))
        give_all(false);
}

void hdsoft__report_summary(void)
{
    hdsoft__report_flush();
    give_all(true);
    pthread_mutex_lock(&reports.lock);
    unsigned long long beyond = reports.beyond;
    reports.beyond = 0;
    pthread_mutex_unlock(&reports.lock);
    char text[96];
    snprintf(text, sizeof text, "%llu more reports, after the first %u, are not told", beyond, MOST_REPORTS);
    if (beyond)
        give("more", text, 0, beyond);
}

unsigned long long hdsoft__report_count(void)
{
    pthread_mutex_lock(&reports.lock);
    unsigned long long count = reports.count;
    pthread_mutex_unlock(&reports.lock);
    return count;
}

void hdsoft__report_reset(void)
{
    pthread_mutex_lock(&reports.lock);
    for (told *at = reports.first, *next; at; at = next) {
        next = at->next;
        destroy(at);
    }
    reports.first = NULL;
    reports.last = &reports.first;
    reports.count = reports.beyond = 0;
    atomic_store(&reports.waiting, false);
    pthread_mutex_unlock(&reports.lock);
}

void hdsoft__report_to(hdsoft__report_function function, void *context)
{
    pthread_mutex_lock(&reports.lock);
    reports.function = function;
    reports.context = context;
    pthread_mutex_unlock(&reports.lock);
}
