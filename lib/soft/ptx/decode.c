/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/ptx/parser.h"

/* How an opcode is decoded. OWN: reads its operands itself. REGION: cannot be masked by lane, so that a guard becomes
 * a branch around it. */
enum { OWN = 1, REGION = 2 };

typedef struct opcode {
    const char *name;
    hdsoft_decoder decode;
    unsigned flags;
} opcode;

/* Sorted by name. What is not here is skipped and becomes poison. */
static const opcode opcodes[] = {
    {"abs", hdsoft_decode_arithmetic, 0},
    {"activemask", hdsoft_decode_warp, REGION},
    {"add", hdsoft_decode_arithmetic, 0},
    {"addc", hdsoft_decode_arithmetic, 0},
    {"and", hdsoft_decode_arithmetic, 0},
    {"applypriority", hdsoft_decode_nothing, 0},
    {"atom", hdsoft_decode_atomic, 0},
    {"bar", hdsoft_decode_barrier, REGION},
    {"barrier", hdsoft_decode_barrier, REGION},
    {"bfe", hdsoft_decode_arithmetic, 0},
    {"bfi", hdsoft_decode_arithmetic, 0},
    {"bfind", hdsoft_decode_arithmetic, 0},
    {"bmsk", hdsoft_decode_arithmetic, 0},
    {"bra", hdsoft_decode_branch, OWN},
    {"brev", hdsoft_decode_arithmetic, 0},
    {"brkpt", hdsoft_decode_leave, REGION},
    {"brx", hdsoft_decode_branch_table, OWN},
    {"call", hdsoft_decode_call, OWN},
    {"clz", hdsoft_decode_arithmetic, 0},
    {"cnot", hdsoft_decode_arithmetic, 0},
    {"copysign", hdsoft_decode_arithmetic, 0},
    {"cos", hdsoft_decode_arithmetic, 0},
    {"cp", hdsoft_decode_copy, 0},
    {"cvt", hdsoft_decode_convert, 0},
    {"cvta", hdsoft_decode_address, 0},
    {"discard", hdsoft_decode_nothing, 0},
    {"div", hdsoft_decode_arithmetic, 0},
    {"dp2a", hdsoft_decode_arithmetic, 0},
    {"dp4a", hdsoft_decode_arithmetic, 0},
    {"elect", hdsoft_decode_warp, REGION},
    {"ex2", hdsoft_decode_arithmetic, 0},
    {"exit", hdsoft_decode_leave, REGION},
    {"fence", hdsoft_decode_nothing, 0},
    {"fma", hdsoft_decode_arithmetic, 0},
    {"fns", hdsoft_decode_arithmetic, 0},
    {"isspacep", hdsoft_decode_is_space, 0},
    {"ld", hdsoft_decode_load, 0},
    {"ldu", hdsoft_decode_load, 0},
    {"lg2", hdsoft_decode_arithmetic, 0},
    {"lop3", hdsoft_decode_arithmetic, 0},
    {"mad", hdsoft_decode_arithmetic, 0},
    {"mad24", hdsoft_decode_arithmetic, 0},
    {"madc", hdsoft_decode_arithmetic, 0},
    {"match", hdsoft_decode_warp, REGION},
    {"max", hdsoft_decode_arithmetic, 0},
    {"membar", hdsoft_decode_nothing, 0},
    {"min", hdsoft_decode_arithmetic, 0},
    {"mov", hdsoft_decode_move, 0},
    {"mul", hdsoft_decode_arithmetic, 0},
    {"mul24", hdsoft_decode_arithmetic, 0},
    {"nanosleep", hdsoft_decode_nothing, REGION},
    {"neg", hdsoft_decode_arithmetic, 0},
    {"not", hdsoft_decode_arithmetic, 0},
    {"or", hdsoft_decode_arithmetic, 0},
    {"pmevent", hdsoft_decode_nothing, 0},
    {"popc", hdsoft_decode_arithmetic, 0},
    {"prefetch", hdsoft_decode_nothing, 0},
    {"prefetchu", hdsoft_decode_nothing, 0},
    {"prmt", hdsoft_decode_arithmetic, 0},
    {"rcp", hdsoft_decode_arithmetic, 0},
    {"red", hdsoft_decode_atomic, 0},
    {"redux", hdsoft_decode_warp, REGION},
    {"rem", hdsoft_decode_arithmetic, 0},
    {"ret", hdsoft_decode_leave, REGION},
    {"rsqrt", hdsoft_decode_arithmetic, 0},
    {"sad", hdsoft_decode_arithmetic, 0},
    {"selp", hdsoft_decode_select, 0},
    {"set", hdsoft_decode_set, 0},
    {"setp", hdsoft_decode_compare, 0},
    {"shf", hdsoft_decode_arithmetic, 0},
    {"shfl", hdsoft_decode_warp, REGION},
    {"shl", hdsoft_decode_arithmetic, 0},
    {"shr", hdsoft_decode_arithmetic, 0},
    {"sin", hdsoft_decode_arithmetic, 0},
    {"slct", hdsoft_decode_select_sign, 0},
    {"sqrt", hdsoft_decode_arithmetic, 0},
    {"st", hdsoft_decode_store, 0},
    {"sub", hdsoft_decode_arithmetic, 0},
    {"subc", hdsoft_decode_arithmetic, 0},
    {"szext", hdsoft_decode_arithmetic, 0},
    {"tanh", hdsoft_decode_arithmetic, 0},
    {"testp", hdsoft_decode_arithmetic, 0},
    {"trap", hdsoft_decode_leave, REGION},
    {"vabsdiff", hdsoft_decode_video, 0},
    {"vabsdiff4", hdsoft_decode_arithmetic, 0},
    {"vadd", hdsoft_decode_video, 0},
    {"vmad", hdsoft_decode_video, 0},
    {"vmax", hdsoft_decode_video, 0},
    {"vmin", hdsoft_decode_video, 0},
    {"vote", hdsoft_decode_warp, REGION},
    {"vset", hdsoft_decode_video, 0},
    {"vshl", hdsoft_decode_video, 0},
    {"vshr", hdsoft_decode_video, 0},
    {"vsub", hdsoft_decode_video, 0},
    {"xor", hdsoft_decode_arithmetic, 0},
};

static int compare_opcode(const void *key, const void *element)
{
    return strcmp(key, ((const opcode *)element)->name);
}

bool hdsoft_has(const hdsoft_statement *statement, const char *modifier)
{
    for (unsigned i = 1; i < statement->modifiers; i++)
        if (strcmp(statement->modifier[i], modifier) == 0)
            return true;
    return false;
}

hdsoft_type hdsoft_type_of(const hdsoft_statement *statement, unsigned n)
{
    hdsoft_type type;
    for (unsigned i = 1; i < statement->modifiers; i++)
        if (hdsoft_parse_type(statement->modifier[i], strlen(statement->modifier[i]), &type) && n-- == 0)
            return type;
    return (hdsoft_type){0, 0};
}

void hdsoft_decode_unknown(hdsoft_parser *parser, const hdsoft_statement *statement)
{
    char text[HDSOFT_NAME_LENGTH + HDSOFT_MODIFIERS];
    size_t length = 0;
    for (unsigned i = 0; i < statement->modifiers; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i ? "." : "", statement->modifier[i]);
    hdsoft_emit_poison(parser, "instruction '%s' is not supported by the soft driver", text);
}

/* Bulk copies, tensor maps and what completes at an mbarrier, whose first word is that of something known. */
static bool is_left_out(const hdsoft_statement *statement)
{
    static const char *const words[] = {"bulk", "tensormap", "tensormap::generic", "mbarrier_init", "async::generic"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (hdsoft_has(statement, words[i]))
            return true;
    }
    return strcmp(statement->modifier[0], "cp") != 0 && hdsoft_has(statement, "async");
}

uint32_t hdsoft_guard_open(hdsoft_parser *parser)
{
    if (parser->guard == HDSOFT_ABSENT)
        return HDSOFT_NONE;
    int32_t guard = parser->guard;
    parser->guard = HDSOFT_ABSENT;
    uint32_t opened = parser->program->code_count;
    hdsoft_instruction *branch =
        hdsoft_emit_named(parser, "bra_if", guard, HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT);
    if (branch)
        branch->option[0] = !parser->guard_negated;
    return opened;
}

void hdsoft_guard_close(hdsoft_parser *parser, uint32_t opened)
{
    if (opened != HDSOFT_NONE && opened < parser->program->code_count)
        parser->program->code[opened].target = parser->program->code_count;
}

/* opcode.modifier.modifier into the statement; false if it is too long to be anything known. */
static bool read_mnemonic(hdsoft_parser *parser, hdsoft_statement *statement)
{
    hdsoft_lexer *lexer = &parser->lexer;
    size_t length = 0;
    bool fits = true;
    do {
        bool directive = lexer->token.kind == HDSOFT_TOKEN_DIRECTIVE;
        size_t more = lexer->token.length - directive;
        if (length + more + 1 >= sizeof statement->text || statement->modifiers == HDSOFT_MODIFIERS) {
            fits = false;
        } else {
            memcpy(statement->text + length, lexer->token.text + directive, more);
            statement->text[length + more] = '\0';
            statement->modifier[statement->modifiers++] = statement->text + length;
            length += more + 1;
        }
        hdsoft_lexer_next(lexer);
    } while (lexer->token.kind == HDSOFT_TOKEN_DIRECTIVE && lexer->token.joined);
    return fits;
}

static void read_guard(hdsoft_parser *parser, hdsoft_statement *statement)
{
    parser->guard = HDSOFT_ABSENT;
    parser->guard_negated = false;
    if (!hdsoft_parser_accept_sign(parser, '@'))
        return;
    hdsoft_value *guard = &statement->guard;
    if (!hdsoft_parse_value(parser, guard))
        return;
    if (guard->kind != HDSOFT_VALUE_REGISTER || guard->bits != 1) {
        hdsoft_parser_fail(parser, 218, statement->line, "what follows '@' must be a predicate");
        return;
    }
    parser->guard = guard->reg;
    parser->guard_negated = guard->negated;
}

void hdsoft_decode(hdsoft_parser *parser)
{
    hdsoft_statement *statement = &parser->statement;
    statement->modifiers = statement->arguments = 0;
    statement->line = parser->lexer.token.line;
    read_guard(parser, statement);
    if (parser->code)
        return;
    if (parser->lexer.token.kind != HDSOFT_TOKEN_WORD) {
        const hdsoft_token *token = &parser->lexer.token;
        hdsoft_parser_fail(parser, 218, token->line, "an instruction is expected, not '%.*s'",
                           (int)(token->length < 40 ? token->length : 40), token->text);
        return;
    }
    bool fits = read_mnemonic(parser, statement);
    const opcode *known = fits ? bsearch(statement->modifier[0], opcodes, sizeof opcodes / sizeof opcodes[0],
                                         sizeof opcodes[0], compare_opcode)
                               : NULL;
    if (!known || is_left_out(statement)) {
        hdsoft_parser_skip_statement(parser);
        uint32_t opened = hdsoft_guard_open(parser);
        hdsoft_decode_unknown(parser, statement);
        hdsoft_guard_close(parser, opened);
        return;
    }
    if (!(known->flags & OWN))
        hdsoft_parse_arguments(parser, statement);
    if (parser->code)
        return;
    uint32_t opened = known->flags & REGION ? hdsoft_guard_open(parser) : HDSOFT_NONE;
    known->decode(parser, statement);
    hdsoft_guard_close(parser, opened);
}

/* --- arithmetic: a form's name is the opcode, the modifiers that matter and the types --- */

const hdsoft_form *hdsoft_form_signless(const hdsoft_parser *parser, char *name)
{
    const hdsoft_form *form = hdsoft_form_find(parser, name);
    char *type = strrchr(name, '_');
    if (!form && type && (type[1] == 's' || type[1] == 'b')) {
        type[1] = 'u';
        form = hdsoft_form_find(parser, name);
    }
    return form;
}

typedef struct form_variant {
    char name[HDSOFT_NAME_LENGTH + HDSOFT_MODIFIERS];
    unsigned rounding;
    bool flush, saturate, approximate;
    hdsoft_type type;
} form_variant;

static void append(form_variant *variant, const char *part)
{
    size_t length = strlen(variant->name);
    snprintf(variant->name + length, sizeof variant->name - length, "%s%s", length ? "_" : "", part);
}

static void read_variant(const hdsoft_statement *statement, bool keep_flush, form_variant *variant)
{
    memset(variant, 0, sizeof *variant);
    hdsoft_type type = hdsoft_type_of(statement, 0);
    variant->type = type;
    bool floating = type.kind == 'f';
    append(variant, statement->modifier[0]);
    for (unsigned i = 1; i < statement->modifiers; i++) {
        const char *part = statement->modifier[i];
        if (floating && strcmp(part, "rn") == 0)
            continue;
        if (floating && strcmp(part, "rz") == 0)
            variant->rounding = HDSOFT_ROUND_ZERO;
        else if (floating && strcmp(part, "rm") == 0)
            variant->rounding = HDSOFT_ROUND_DOWN;
        else if (floating && strcmp(part, "rp") == 0)
            variant->rounding = HDSOFT_ROUND_UP;
        else if (floating && (strcmp(part, "approx") == 0 || strcmp(part, "full") == 0))
            variant->approximate = true;
        else if (floating && strcmp(part, "sat") == 0)
            variant->saturate = true;
        else if (strcmp(part, "ftz") == 0) {
            variant->flush = true;
            if (keep_flush)
                append(variant, part);
        } else {
            append(variant, part);
        }
    }
}

/* A copy of an f32 operand with subnormals made zero. */
static int32_t flushed(hdsoft_parser *parser, int32_t operand)
{
    int32_t copy = hdsoft_register_new(parser, 32);
    hdsoft_emit_temporary(parser, "flush_f32", copy, operand, HDSOFT_ABSENT, HDSOFT_ABSENT);
    return copy;
}

static const hdsoft_form *find_variant(hdsoft_parser *parser, const hdsoft_statement *statement, form_variant *variant)
{
    read_variant(statement, true, variant);
    const hdsoft_form *form = hdsoft_form_signless(parser, variant->name);
    if (form) {
        variant->flush = false;
        return form;
    }
    if (!variant->flush)
        return NULL;
    read_variant(statement, false, variant);
    return hdsoft_form_signless(parser, variant->name);
}

/* Emit the operation; afterwards saturate and flush its result if asked for. */
static void emit_variant(hdsoft_parser *parser, const hdsoft_form *form, const form_variant *variant, int32_t *operands,
                         int64_t immediate)
{
    const hdsoft_form *wrapped = variant->rounding ? parser->form_rounded : NULL;
    bool after = (variant->saturate || variant->flush) && variant->type.kind == 'f' && form->signature[0] != 'p';
    int32_t destination = operands[0], guard = parser->guard;
    if (after) {
        operands[0] = hdsoft_register_new(parser, variant->type.bits);
        parser->guard = HDSOFT_ABSENT;
    }
    hdsoft_instruction *instruction = hdsoft_emit(parser, form, operands);
    if (instruction) {
        instruction->immediate = immediate;
        if (wrapped) {
            instruction->inner = form->handler;
            instruction->handler = wrapped->handler;
            instruction->option[0] = (uint8_t)variant->rounding;
        }
    }
    if (!after)
        return;
    int32_t result = operands[0];
    if (variant->flush && variant->type.bits == 32)
        result = flushed(parser, result);
    parser->guard = guard;
    bool wide = variant->type.bits == 64;
    hdsoft_emit_named(parser,
                      variant->saturate ? (wide ? "saturate_f64" : "saturate_f32") : (wide ? "mov_64" : "mov_32"),
                      destination, result, HDSOFT_ABSENT, HDSOFT_ABSENT);
}

void hdsoft_decode_arithmetic(hdsoft_parser *parser, hdsoft_statement *statement)
{
    if (hdsoft_type_is_half(hdsoft_type_of(statement, 0))) {
        hdsoft_decode_half(parser, statement);
        return;
    }
    form_variant variant;
    const hdsoft_form *form = find_variant(parser, statement, &variant);
    size_t letters = form ? strlen(form->signature) - 1 : 0;
    if (!form || letters != statement->arguments) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    int32_t operands[HDSOFT_OPERANDS + 1];
    int64_t immediate = 0;
    unsigned count = 0;
    bool defines = true;
    for (const char *letter = form->signature; *letter; letter++) {
        if (*letter == ':') {
            defines = false;
            continue;
        }
        const hdsoft_argument *argument = &statement->argument[count];
        if (argument->address || argument->vector || argument->pair.kind) {
            hdsoft_decode_unknown(parser, statement);
            return;
        }
        if (*letter == 'i') {
            immediate = (int64_t)argument->value.integer;
            operands[count] = HDSOFT_ABSENT;
        } else if (defines) {
            operands[count] = hdsoft_define(parser, &argument->value, *letter, count);
        } else {
            operands[count] = hdsoft_use(parser, &argument->value, *letter, count);
            if (variant.flush && *letter == 'f')
                operands[count] = flushed(parser, operands[count]);
        }
        count++;
    }
    if (parser->code == 0)
        emit_variant(parser, form, &variant, operands, immediate);
}
