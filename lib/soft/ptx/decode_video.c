/* SPDX-License-Identifier: MIT */
/* The scalar video instructions: what their many modifiers say, into one form (exec/video.h). */
#include <string.h>

#include "soft/exec/video.h"
#include "soft/ptx/parser.h"

static int find(const char *const *names, unsigned count, const char *name)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

#define FIND(names, name) find(names, sizeof(names) / sizeof(names)[0], name)

/* The modifiers that are no types; false if one is not known. */
static bool read_modifier(const char *part, hdsoft_video *how)
{
    static const char *const relations[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    static const char *const seconds[] = {"", "add", "min", "max"};
    int relation = FIND(relations, part), second = FIND(seconds, part);
    if (relation >= 0)
        how->relation = (unsigned)relation & 7;
    else if (second > 0)
        how->then = (unsigned)second & 7;
    else if (strcmp(part, "sat") == 0)
        how->saturate = 1;
    else if (strcmp(part, "clamp") == 0)
        how->clamp = 1;
    else if (strcmp(part, "po") == 0)
        how->plus_one = 1;
    else if (strcmp(part, "shr7") == 0 || strcmp(part, "shr15") == 0)
        how->scale = part[3] == '7' ? 7 : 15;
    else
        return strcmp(part, "wrap") == 0;
    return true;
}

static bool read_how(const hdsoft_statement *statement, hdsoft_video *how)
{
    static const char *const operations[] = {"vadd", "vsub", "vabsdiff", "vmin", "vmax",
                                             "vshl", "vshr", "vmad",     "vset"};
    memset(how, 0, sizeof *how);
    how->operation = (unsigned)FIND(operations, statement->modifier[0]) & 15;
    bool sets = how->operation == HDSOFT_VIDEO_SET, is_signed[3] = {false, false, false};
    unsigned types = sets ? 1 : 0; /* vset's result has no type */
    for (unsigned m = 1; m < statement->modifiers; m++) {
        hdsoft_type type;
        const char *part = statement->modifier[m];
        if (!hdsoft_parse_type(part, strlen(part), &type)) {
            if (!read_modifier(part, how))
                return false;
        } else if (types == 3 || type.bits != 32 || (type.kind != 'u' && type.kind != 's')) {
            return false;
        } else {
            is_signed[types++] = type.kind == 's';
        }
    }
    how->to_signed = is_signed[sets]; /* a second operation of vset goes by its first type */
    how->first_signed = is_signed[1];
    how->second_signed = is_signed[2];
    return types == 3;
}

/* The parts of registers, and what the third operand is for. */
static bool read_parts(const hdsoft_statement *statement, hdsoft_video *how)
{
    const hdsoft_argument *argument = statement->argument;
    bool third = statement->arguments == 4;
    for (unsigned i = 0; i < statement->arguments; i++) {
        const hdsoft_argument *each = &argument[i];
        bool negative = each->negative && (how->operation != HDSOFT_VIDEO_MAD || i == 0);
        if (each->address || each->vector || each->pair.kind || negative || (i == 3 && each->part))
            return false;
    }
    how->to_part = argument[0].part & 7;
    how->first_part = argument[1].part & 7;
    how->second_part = argument[2].part & 7;
    if (how->operation == HDSOFT_VIDEO_MAD) {
        how->negate_product = argument[1].negative != argument[2].negative;
        how->negate_third = third && argument[3].negative;
        return third && !how->to_part && !how->then;
    }
    if (how->to_part)
        how->then = how->then ? 7 : HDSOFT_VIDEO_MERGE; /* not both */
    return how->then != 7 && third == (how->then != HDSOFT_VIDEO_ALONE);
}

/* Whether an H200 does what the instruction is documented to do. These are emulated there, and some forms answer
 * otherwise, each in a way of its own: better to refuse them than to be wrong in either sense. */
static bool is_dependable(hdsoft_video how)
{
    bool simple = how.then == HDSOFT_VIDEO_ALONE || how.then == HDSOFT_VIDEO_THEN_ADD;
    switch (how.operation) {
    case HDSOFT_VIDEO_SET:
        return true;
    case HDSOFT_VIDEO_ABSDIFF:
    case HDSOFT_VIDEO_SHL:
        return simple && !how.saturate;
    case HDSOFT_VIDEO_MAD:
        return !how.scale && (!how.saturate || how.first_signed || how.second_signed);
    default:
        return simple;
    }
}

void hdsoft_decode_video(hdsoft_parser *parser, hdsoft_statement *statement)
{
    hdsoft_video how;
    bool known = (statement->arguments == 3 || statement->arguments == 4) && read_how(statement, &how) &&
                 read_parts(statement, &how) && is_dependable(how);
    if (!known) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    int32_t to = hdsoft_define(parser, &statement->argument[0].value, 'w', 0);
    int32_t first = hdsoft_use(parser, &statement->argument[1].value, 'w', 1);
    int32_t second = hdsoft_use(parser, &statement->argument[2].value, 'w', 2);
    int32_t third = statement->arguments == 4 ? hdsoft_use(parser, &statement->argument[3].value, 'w', 3)
                                              : hdsoft_constant(parser, 32, 0);
    hdsoft_instruction *instruction =
        parser->code ? NULL : hdsoft_emit_named(parser, "video", to, first, second, third);
    if (instruction)
        memcpy(&instruction->immediate, &how, sizeof how);
}
