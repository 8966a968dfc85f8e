/* SPDX-License-Identifier: MIT */
/*
 * The recording of an H200 (h200.json) against the answers of this run. The file is ours, yet it is read as if it were
 * not: anything but an object of objects of strings and plain values is refused with its place.
 */
#include "conformance.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIFFERENCES_MAX 10

typedef struct pair {
    char *name, *value;
} pair;

typedef struct pairs {
    pair *at;
    size_t count, room;
} pairs;

typedef struct reader {
    const char *start, *at;
    bool wrong;
} reader;

static void skip_space(reader *in)
{
    while (isspace((unsigned char)*in->at))
        in->at++;
}

static bool take(reader *in, char wanted)
{
    skip_space(in);
    if (*in->at != wanted)
        return false;
    in->at++;
    return true;
}

static void expect(reader *in, char wanted)
{
    if (!in->wrong && !take(in, wanted))
        in->wrong = true;
}

static char unescaped(reader *in)
{
    unsigned code;
    switch (*in->at++) {
    case '"': return '"';
    case '\\': return '\\';
    case '/': return '/';
    case 'n': return '\n';
    case 't': return '\t';
    case 'u':
        if (sscanf(in->at, "%4x", &code) == 1 && code && code < 128) {
            in->at += 4;
            return (char)code;
        }
        break;
    default: break;
    }
    in->wrong = true;
    return '?';
}

static char *read_string(reader *in)
{
    expect(in, '"');
    if (in->wrong)
        return NULL;
    char *text = malloc(strlen(in->at) + 1), *to = text;
    while (text && !in->wrong && *in->at && *in->at != '"') {
        if (*in->at == '\\') {
            in->at++;
            *to++ = unescaped(in);
        } else {
            *to++ = *in->at++;
        }
    }
    if (text)
        *to = 0;
    expect(in, '"');
    return text;
}

static void skip_plain(reader *in)
{
    skip_space(in);
    if (*in->at == '"')
        free(read_string(in));
    else if (isalnum((unsigned char)*in->at) || *in->at == '-')
        while (isalnum((unsigned char)*in->at) || strchr("+-.", *in->at))
            in->at++;
    else
        in->wrong = true;
}

static void read_pairs(reader *in, pairs *into)
{
    expect(in, '{');
    if (in->wrong || take(in, '}'))
        return;
    do {
        char *name = read_string(in);
        expect(in, ':');
        char *value = read_string(in);
        if (into->count == into->room) {
            size_t room = into->room ? into->room * 2 : 64;
            pair *grown = realloc(into->at, room * sizeof *grown);
            if (!grown)
                in->wrong = true;
            else
                *into = (pairs){grown, into->count, room};
        }
        if (!name || !value || in->wrong) {
            in->wrong = true;
            free(name);
            free(value);
            return;
        }
        into->at[into->count++] = (pair){name, value};
    } while (take(in, ','));
    expect(in, '}');
}

static void free_pairs(pairs *of)
{
    for (size_t i = 0; i < of->count; i++) {
        free(of->at[i].name);
        free(of->at[i].value);
    }
    free(of->at);
}

static const char *value_of(const pairs *in, const char *name)
{
    for (size_t i = 0; i < in->count; i++)
        if (!strcmp(in->at[i].name, name))
            return in->at[i].value;
    return NULL;
}

static char *whole_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    size_t length = file && text ? fread(text, 1, (1 << 20) - 1, file) : 0;
    if (file)
        fclose(file);
    if (length)
        return text;
    free(text);
    return NULL;
}

static bool read_recording(const char *path, pairs *checks, pairs *differences)
{
    char *text = whole_file(path);
    if (!text) {
        printf("Bail out! %s cannot be read\n", path);
        return false;
    }
    reader in = {text, text, false};
    expect(&in, '{');
    do {
        char *name = read_string(&in);
        expect(&in, ':');
        if (name && !strcmp(name, "checks"))
            read_pairs(&in, checks);
        else if (name && !strcmp(name, "differences"))
            read_pairs(&in, differences);
        else
            skip_plain(&in);
        free(name);
    } while (!in.wrong && take(&in, ','));
    expect(&in, '}');
    if (in.wrong)
        printf("Bail out! %s is no recording: unexpected at byte %zu\n", path, (size_t)(in.at - in.start));
    free(text);
    return !in.wrong;
}

static void diagnose(const char *label, const char *text)
{
    printf("# %s ", label);
    for (; *text; text++)
        fputc(*text == '\n' ? '|' : *text, stdout);
    fputc('\n', stdout);
}

/* A check that the recording lacks, or that is listed as different and is not, is a defect of the recording. */
static bool compare_one(const answer *of, const pairs *checks, const pairs *differences)
{
    char name[256];
    check_full_name(of, name);
    const char *recorded = value_of(checks, name), *reason = value_of(differences, name);
    const char *text = of->text ? of->text : "not run";
    bool same = recorded && !strcmp(recorded, text);
    bool good = same ? !reason : recorded && reason;
    printf("%sok - %s%s%s\n", good ? "" : "not ", name, reason ? ": differs: " : "", reason ? reason : "");
    if (good)
        return true;
    diagnose("recorded:", recorded ? recorded : "(nothing; record it on an H200)");
    diagnose("answered:", text);
    if (same)
        diagnose("listed as different, yet it is not:", "take it off \"differences\"");
    return false;
}

bool compare(const char *path, const answer *answers, size_t count, bool partial)
{
    pairs checks = {0}, differences = {0};
    size_t bad = 0, unknown = 0;
    bool read = read_recording(path, &checks, &differences);
    if (read) {
        printf("1..%zu\n", count + 1);
        for (size_t i = 0; i < count; i++)
            bad += !compare_one(&answers[i], &checks, &differences);
        for (size_t i = 0; i < checks.count && !partial; i++) {
            bool known = false;
            for (size_t k = 0; k < count && !known; k++) {
                char name[256];
                check_full_name(&answers[k], name);
                known = !strcmp(name, checks.at[i].name);
            }
            if (!known)
                diagnose("recorded, but no check:", checks.at[i].name);
            unknown += !known;
        }
        bool listed = differences.count <= DIFFERENCES_MAX && !unknown;
        printf("%sok - the recording fits: %zu checks, %zu listed differences (at most %d), %zu unknown\n",
               listed ? "" : "not ", checks.count, differences.count, DIFFERENCES_MAX, unknown);
        bad += !listed;
        fprintf(stderr, "conformance: %zu checks, %zu differ from %s\n", count, bad, path);
    }
    free_pairs(&checks);
    free_pairs(&differences);
    return read && !bad;
}
