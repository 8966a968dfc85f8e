/* SPDX-License-Identifier: MIT */
#include "depfile.h"

#include "message.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Dependencies of several targets, each once, in the order of the first that has it. */
typedef struct names {
    const char **list;
    size_t count;
} names;

/* GNU make halves backslashes only in front of what they would quote. */
char *depfile_quote(const char *name, bool target)
{
    size_t length = strlen(name), slashes = 0, used = 0;
    char *out = malloc(2 * length + 1 + 2 * length);

    if (!out)
        return NULL;
    for (size_t i = 0; i <= length; i++) {
        char c = name[i];
        bool quoted = c == ' ' || c == '\t' || c == '#' || c == ':' || (target && c == '%');

        if (c == '\\') {
            slashes++;
        } else {
            for (; slashes > 0; slashes--)
                if (quoted || c == 0)
                    out[used++] = '\\';
        }
        if (quoted)
            out[used++] = '\\';
        if (c == '$')
            out[used++] = '$';
        out[used++] = c;
    }
    return out;
}

/* Lists are of some hundreds of headers. */
static bool add(names *all, const char *name)
{
    const char **list;

    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->list[i], name) == 0)
            return true;
    list = reallocarray(all->list, all->count + 1, sizeof *list);
    if (!list)
        return false;
    all->list = list;
    list[all->count++] = name;
    return true;
}

static int put_name(FILE *text, const char *name, bool target)
{
    char *quoted = depfile_quote(name, target);

    if (strchr(name, '\n')) {
        free(quoted);
        return fail(EXIT_CODE_FAILED, "'%s' has a line feed in it, which make cannot read", name);
    }
    if (!quoted)
        return fail(EXIT_CODE_FAILED, "out of memory");
    fputs(quoted, text);
    free(quoted);
    return 0;
}

static int put_rule(FILE *text, const options *o, const char *source, const char *target, const names *all)
{
    int code = 0;

    for (uint32_t i = 0; i < o->depfile_target_count; i++)
        fprintf(text, "%s%s", i ? " " : "", o->depfile_targets[i]);
    if (o->depfile_target_count == 0)
        code = put_name(text, target, true);
    fputs(":", text);
    if (strcmp(source, "-") != 0) {
        fputs(" ", text);
        code = code ? code : put_name(text, source, false);
    }
    for (size_t i = 0; i < all->count && !code; i++) {
        fputs(" \\\n  ", text);
        code = put_name(text, all->list[i], false);
    }
    fputs("\n", text);
    for (size_t i = 0; i < all->count && o->phony && !code; i++) {
        fputs("\n", text);
        code = put_name(text, all->list[i], true);
        fputs(":\n", text);
    }
    return code;
}

int depfile_write(const options *o, const char *source, const char *target, const char *file, int standard_output,
                  hdrt_image *const *images, uint32_t count)
{
    names all = {0};
    output out = OUTPUT_NONE;
    const char *name;
    char *bytes = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&bytes, &size);
    bool good = text != NULL;
    int code = 0;

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; good && (name = hdrt_image_dependency(images[i], j)) != NULL; j++)
            good = add(&all, name);
    if (good)
        code = put_rule(text, o, source, target, &all);
    if (text && fclose(text) != 0)
        good = false;
    if (!good)
        code = fail(EXIT_CODE_FAILED, "%s: out of memory", file);
    if (!code)
        code = output_open(&out, file, standard_output);
    if (!code)
        code = output_write(&out, bytes, size);
    if (!code)
        code = output_finish(&out);
    output_close(&out);
    free(bytes);
    free(all.list);
    return code;
}
