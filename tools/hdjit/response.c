/* SPDX-License-Identifier: MIT */
#include "response.h"

#include "file.h"
#include "message.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_LIMIT 10
#define WORD_LIMIT 1000000

static int add_word(response *out, char *word)
{
    char **list;

    if (out->count >= WORD_LIMIT)
        return fail(EXIT_CODE_USAGE, "the command line has more than %d words", WORD_LIMIT);
    list = reallocarray(out->list, (size_t)out->count + 2, sizeof *list);
    if (!list)
        return fail(EXIT_CODE_FAILED, "out of memory");
    out->list = list;
    list[out->count++] = word;
    list[out->count] = NULL;
    return 0;
}

static int expand(response *out, char *word, int depth, bool *as_is);

/* Cuts the text into words, in place: a word is never longer than what it was written as. */
static int split(response *out, const char *path, char *text, int depth, bool *as_is)
{
    static const char space[] = " \t\r\n\f\v";
    char *from = text;

    for (from += strspn(from, space); *from;) {
        char *word = from, *to = from, quote = 0, next;
        int code;

        for (; *from && (quote || !strchr(space, *from)); from++) {
            if (*from == '\\' && from[1])
                *to++ = *++from;
            else if (quote ? *from == quote : *from == '\'' || *from == '"')
                quote = quote ? 0 : *from;
            else
                *to++ = *from;
        }
        if (quote)
            return fail(EXIT_CODE_USAGE, "%s: a quote (%c) is not closed", path, quote);
        next = *from;
        *to = 0;
        code = expand(out, word, depth, as_is);
        if (code)
            return code;
        from += next != 0;
        from += strspn(from, space);
    }
    return 0;
}

static int expand(response *out, char *word, int depth, bool *as_is)
{
    unsigned char *text;
    char **texts;
    uint64_t bytes;

    if (strcmp(word, "--") == 0)
        *as_is = true;
    if (*as_is || word[0] != '@' || !word[1])
        return add_word(out, word);
    if (depth == DEPTH_LIMIT)
        return fail(EXIT_CODE_USAGE, "%s: response files name each other more than %d deep", word, DEPTH_LIMIT);
    if (file_read(word + 1, &text, &bytes) != 0)
        return EXIT_CODE_USAGE;
    texts = reallocarray(out->texts, (size_t)out->text_count + 1, sizeof *texts);
    if (!texts) {
        free(text);
        return fail(EXIT_CODE_FAILED, "out of memory");
    }
    out->texts = texts;
    texts[out->text_count++] = (char *)text;
    if (strlen((char *)text) != bytes)
        return fail(EXIT_CODE_USAGE, "%s: is no text: there is a NUL in it", word + 1);
    return split(out, word + 1, (char *)text, depth + 1, as_is);
}

int response_expand(int argc, char **argv, response *out)
{
    bool as_is = false;
    int code = 0;

    for (int i = 0; i < argc && !code; i++)
        code = i == 0 ? add_word(out, argv[0]) : expand(out, argv[i], 0, &as_is);
    return code;
}

void response_free(response *words)
{
    for (int i = 0; i < words->text_count; i++)
        free(words->texts[i]);
    free(words->texts);
    free(words->list);
    *words = (response){0};
}
