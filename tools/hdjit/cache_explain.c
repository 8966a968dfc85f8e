/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "file.h"
#include "json.h"
#include "message.h"
#include "session.h"
#include "source.h"
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *explanation_json(const hdrt_explanation *explanation, const hdrt_explanation_info *info)
{
    json_t *differences = json_array();
    hdrt_difference difference;

    for (uint32_t i = 0; hdrt_explanation_difference(explanation, i, &difference) == HDRT_OK; i++)
        json_array_append_new(differences,
                              json_pack("{s:s, s:o, s:o, s:o}", "reason", hdrt_cache_reason_name(difference.reason),
                                        "what", json_text(difference.what), "before", json_text(difference.before),
                                        "now", json_text(difference.now)));
    return json_pack("{s:b, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "hit", info->reason == HDRT_CACHE_HIT, "reason",
                     hdrt_cache_reason_name(info->reason), "text", json_text(info->text), "differences", differences,
                     "key", info->key, "manifest", json_text(info->manifest), "image", json_text(info->image),
                     "last_reason", json_text(info->last_reason), "compared_to", json_text(info->compared_to));
}

static void print_difference(const hdrt_difference *difference)
{
    if (difference->reason == HDRT_CACHE_FILE_CHANGED)
        printf("  %s: has other contents\n", difference->what);
    else if (difference->reason == HDRT_CACHE_FILE_GONE)
        printf("  %s: is no longer there\n", difference->what);
    else if (difference->reason == HDRT_CACHE_FILE_APPEARED)
        printf("  %s: was not there, and could be read instead of another\n", difference->what);
    else if (difference->before && difference->now)
        printf("  %s: '%s' before, '%s' now\n", difference->what, difference->before, difference->now);
    else if (difference->now)
        printf("  %s: '%s' now, none before\n", difference->what, difference->now);
    else if (difference->before)
        printf("  %s: '%s' before, none now\n", difference->what, difference->before);
    else
        printf("  %s\n", difference->what);
}

static void print_explanation(const char *name, const hdrt_explanation *explanation, const hdrt_explanation_info *info)
{
    hdrt_difference difference;

    if (info->reason == HDRT_CACHE_HIT) {
        printf("%s: found: no compiler would run\n", name);
    } else {
        printf("%s: would be compiled: %s\n", name, hdrt_cache_reason_text(info->reason));
        if (info->difference_count)
            printf("what differs from %s:\n",
                   info->compared_to ? "the nearest compile of a source of this name" : "its latest compile");
        for (uint32_t i = 0; hdrt_explanation_difference(explanation, i, &difference) == HDRT_OK; i++)
            print_difference(&difference);
    }
    printf("key          %s\n", info->key);
    if (info->manifest)
        printf("manifest     %s\n", info->manifest);
    if (info->image)
        printf("image        %s\n", info->image);
    if (info->last_reason && *info->last_reason)
        printf("last compile because %s\n", info->last_reason);
}

static int explain(const options *o, session *s, const char *path, const hdrt_compile_options *wanted)
{
    hdrt_source source = HDRT_SOURCE_INIT;
    hdrt_explanation_info info = HDRT_EXPLANATION_INFO_INIT;
    hdrt_explanation *explanation = NULL;
    unsigned char *text = NULL;
    uint64_t length = 0;
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "<stdin>" : path;
    hdrt_status status;
    int code = standard ? file_read(path, &text, &length) : 0;

    if (code)
        return code;
    source_describe(&source, path, text, length);
    status = s->device ? hdrt_cache_explain_for(s->device, &source, wanted, &explanation)
                       : hdrt_cache_explain(s->runtime, &source, wanted, &explanation);
    if (status == HDRT_OK)
        status = hdrt_explanation_get_info(explanation, &info);
    if (status != HDRT_OK)
        code = source_failed(name, status);
    else if (o->json)
        code = json_show(explanation_json(explanation, &info));
    else
        print_explanation(name, explanation, &info);
    hdrt_explanation_destroy(explanation);
    free(text);
    return code;
}

int command_cache_explain(options *o, int argc, char **argv)
{
    hdrt_compile_options wanted;
    session s = {0};
    char arch[TARGET_ROOM];
    int first, code = options_parse(o, COMMAND_CACHE_EXPLAIN, argc, argv, &first);

    if (code != OPTIONS_GO_ON)
        return code;
    if (argc - first != 1)
        return argc == first
                   ? fail(EXIT_CODE_USAGE, "cache explain needs a source file; see hdjit cache explain --help")
                   : fail(EXIT_CODE_USAGE, "cache explain takes one source file, but got '%s' too", argv[first + 1]);
    if (o->for_device) {
        source_wanted(o, &wanted);
        code = session_open(o, &s);
        if (!code)
            code = session_open_device(o, &s);
    } else {
        target_compiler(o);
        source_wanted(o, &wanted);
        code = target_choose(o, &wanted, arch);
        if (!code)
            code = session_open_compile_only(o, &s);
    }
    if (!code)
        code = explain(o, &s, argv[first], &wanted);
    session_close(&s);
    return code;
}
