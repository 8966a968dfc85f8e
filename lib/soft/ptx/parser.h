/* SPDX-License-Identifier: MIT */
/*
 * The state of one parse, shared by the files of lib/soft/ptx: parser.c (module and function structure),
 * declarations.c (variables and initialisers), operands.c, emit.c (micro-operations), decode*.c (instructions),
 * registers.c (liveness and slots), layout.c (what an entry reaches). Used by one thread, gone when the parse ends.
 *
 * Errors are sticky: the first one is written to the log and stops the lexer, so that everything above unwinds by
 * finding the end of the text. Functions that make something still answer something harmless then.
 */
#ifndef HDSOFT_PARSER_H
#define HDSOFT_PARSER_H

#include "soft/exec/forms.h"
#include "soft/ptx/lexer.h"
#include "soft/ptx/program.h"

#define HDSOFT_MODIFIERS 20
#define HDSOFT_NAME_LENGTH 128
#define HDSOFT_ARGUMENTS 8
#define HDSOFT_VECTOR 8
#define HDSOFT_SCOPE_DEPTH 64

typedef enum hdsoft_binding {
    HDSOFT_BIND_REGISTER,  /* index: virtual register */
    HDSOFT_BIND_RANGE,     /* %r<count>: index is the range's serial number */
    HDSOFT_BIND_GLOBAL,    /* index: global (constants too) */
    HDSOFT_BIND_SHARED,    /* index: shared variable */
    HDSOFT_BIND_LOCAL,     /* index: offset in the function's local memory */
    HDSOFT_BIND_PARAMETER, /* index: offset in a kernel's parameters */
    HDSOFT_BIND_CELL,      /* index: offset in the frame's cells */
    HDSOFT_BIND_FUNCTION,  /* index: function */
    HDSOFT_BIND_LABEL,     /* index: instruction */
    HDSOFT_BIND_PROTOTYPE, /* index unused */
    HDSOFT_BIND_TABLE,     /* index: branch table */
} hdsoft_binding;

typedef struct hdsoft_symbol {
    hdsoft_binding binding;
    uint8_t bits;        /* registers: 1 (predicate), 8, 16, 32, 64, 128 */
    uint32_t depth;      /* of the scope it was declared in */
    uint32_t index, count;
    uint64_t size;
    uint32_t name;       /* which name it binds */
    uint32_t shadowed;   /* the outer symbol of that name; NONE */
} hdsoft_symbol;

#define HDSOFT_NONE UINT32_MAX

typedef struct hdsoft_name {
    const char *text;
    uint32_t length;
    uint32_t hash;
    uint32_t symbol; /* the innermost binding; HDSOFT_NONE */
} hdsoft_name;

/* A key-value table of 64-bit keys: constants and numbered registers. */
typedef struct hdsoft_map {
    uint64_t *keys; /* two words a key */
    uint32_t *values;
    uint32_t count, capacity;
} hdsoft_map;

/* A branch or table entry that waits for its label. */
typedef struct hdsoft_pending {
    uint32_t name, depth, place, line;
    bool in_table;
} hdsoft_pending;

typedef struct hdsoft_type {
    char kind; /* 'u' 's' 'b' 'f' 'p'; 'e' bf16, 'x' f16x2, 'y' bf16x2; 0: none */
    uint8_t bits;
} hdsoft_type;

typedef enum hdsoft_value_kind {
    HDSOFT_VALUE_NONE,
    HDSOFT_VALUE_REGISTER,
    HDSOFT_VALUE_INTEGER,
    HDSOFT_VALUE_FLOAT,
    HDSOFT_VALUE_SYMBOL,
    HDSOFT_VALUE_SPECIAL,
    HDSOFT_VALUE_SINK, /* _ */
} hdsoft_value_kind;

typedef struct hdsoft_value {
    hdsoft_value_kind kind;
    bool negated;      /* !predicate */
    bool single;       /* a float written as 0f */
    uint8_t bits;      /* of a register */
    int32_t reg;       /* virtual register */
    uint32_t symbol;   /* index of the symbol; special register number */
    uint64_t integer;  /* or the float's bits */
    int64_t addend;    /* of a symbol or an address */
} hdsoft_value;

typedef struct hdsoft_argument {
    hdsoft_value value;                   /* or the base of an address */
    hdsoft_value pair;                    /* what follows "|" */
    hdsoft_value element[HDSOFT_VECTOR];
    unsigned elements;                    /* of a vector { } */
    bool address, vector;
    bool negative;      /* of a video instruction: a minus before the register */
    uint8_t part;       /* the same: which part of the register (exec/video.h) */
} hdsoft_argument;

/* One PTX instruction as written. */
typedef struct hdsoft_statement {
    char text[HDSOFT_NAME_LENGTH];            /* opcode and modifiers, dots replaced by NUL */
    const char *modifier[HDSOFT_MODIFIERS];   /* modifier[0] is the opcode */
    unsigned modifiers;
    hdsoft_argument argument[HDSOFT_ARGUMENTS];
    unsigned arguments;
    hdsoft_value guard;
    uint32_t line;
} hdsoft_statement;

typedef struct hdsoft_parser {
    hdsoft_lexer lexer;
    hdsoft_program *program;
    hdsoft_text *log;
    int code; /* 0, or the CUresult of the first error */
    unsigned compute_capability;
    int level; /* of the handlers */

    struct {
        uint32_t code, origins, effects, functions, globals, shared, constants, relocations, calls, actuals, tables,
            branch_targets, locations, files, messages, names, symbols, pending, registers, formals, references,
            entries, entry_functions, parameters;
    } room;

    hdsoft_name *names;
    uint32_t name_count, *name_slots, name_slot_count;
    hdsoft_symbol *symbols;
    uint32_t symbol_count;
    uint32_t scope_first[HDSOFT_SCOPE_DEPTH];
    uint32_t depth;
    hdsoft_pending *pending;
    uint32_t pending_count;
    hdsoft_map constants;

    const hdsoft_forms *forms;
    const hdsoft_form *form_rounded, *form_poison;
    hdsoft_handler flow_handlers[6]; /* none, bra, bra_if, brx, exit, ret */

    /* The function being built. */
    uint32_t function;
    uint8_t *registers;            /* bits of each virtual register */
    uint32_t register_count, range_serial;
    hdsoft_map numbered;           /* range serial and number to register */
    uint32_t cell_bytes;
    uint32_t location;
    hdsoft_formal *register_formals; /* per formal: offset is the register, size its bits; size 0: in cells */
    uint32_t register_formal_count;
    int32_t guard;                 /* what the next instruction emitted is guarded by */
    bool guard_negated;
    hdsoft_statement statement;

    /* Which function refers to which shared variable (bit 31) or function. */
    struct hdsoft_reference {
        uint32_t from, to;
    } *references;
    uint32_t reference_count;
} hdsoft_parser;

/* --- parser.c --- */
void hdsoft_parser_fail(hdsoft_parser *parser, int code, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Make room for one more element; false (and a sticky error) if there is no memory. */
bool hdsoft_parser_room(hdsoft_parser *parser, void *array_address, uint32_t *room, uint32_t count, size_t element);
/* A copy of text that the program owns; NULL without memory. */
char *hdsoft_parser_copy(hdsoft_parser *parser, const char *text, size_t length);
bool hdsoft_parser_accept(hdsoft_parser *parser, const char *word);
bool hdsoft_parser_accept_sign(hdsoft_parser *parser, char sign);
void hdsoft_parser_expect_sign(hdsoft_parser *parser, char sign);
void hdsoft_parser_skip_statement(hdsoft_parser *parser);

/* --- symbols.c --- */
uint32_t hdsoft_name_intern(hdsoft_parser *parser, const char *text, size_t length);
uint32_t hdsoft_name_find(const hdsoft_parser *parser, const char *text, size_t length);
uint32_t hdsoft_symbol_bind(hdsoft_parser *parser, uint32_t name, hdsoft_binding binding, uint32_t index);
/* The innermost symbol of that name (registers of a range included are not symbols); HDSOFT_NONE. */
uint32_t hdsoft_symbol_find(const hdsoft_parser *parser, const char *text, size_t length);
/* The virtual register of that name, or -1. */
int32_t hdsoft_register_find(hdsoft_parser *parser, const char *text, size_t length);
int32_t hdsoft_register_new(hdsoft_parser *parser, unsigned bits);
void hdsoft_scope_open(hdsoft_parser *parser);
void hdsoft_scope_close(hdsoft_parser *parser);
/* Have instruction or branch target `place` filled in when the label is known. */
void hdsoft_label_wanted(hdsoft_parser *parser, const hdsoft_token *label, uint32_t place, bool in_table);
uint32_t *hdsoft_map_slot(hdsoft_parser *parser, hdsoft_map *map, uint64_t high, uint64_t low); /* NULL: no memory */
void hdsoft_map_clear(hdsoft_map *map);
void hdsoft_symbols_destroy(hdsoft_parser *parser);

/* --- declarations.c --- */
bool hdsoft_parse_type(const char *text, size_t length, hdsoft_type *type); /* text without its dot */
/* A variable declaration whose first token (linking directive or space) is current. */
void hdsoft_parse_variable(hdsoft_parser *parser, hdsoft_space space, bool external, bool weak);
void hdsoft_parse_registers(hdsoft_parser *parser);
/* One .param (or .reg) declaration of a parameter list, up to the sign behind it. */
typedef struct hdsoft_declared {
    const char *name;
    size_t length;
    hdsoft_type type;
    uint32_t align;
    uint64_t size;
    bool is_register;
} hdsoft_declared;
bool hdsoft_parse_parameter(hdsoft_parser *parser, hdsoft_declared *out);
int64_t hdsoft_parse_expression(hdsoft_parser *parser);
uint32_t hdsoft_cells_new(hdsoft_parser *parser, uint64_t size);

/* --- operands.c --- */
bool hdsoft_parse_value(hdsoft_parser *parser, hdsoft_value *value);
void hdsoft_parse_arguments(hdsoft_parser *parser, hdsoft_statement *statement);

/* --- emit.c --- */
const hdsoft_form *hdsoft_form_find(const hdsoft_parser *parser, const char *name);
bool hdsoft_forms_begin(hdsoft_parser *parser);
/* Append an instruction of a form with its operands; the answer is good until the next one is appended. */
hdsoft_instruction *hdsoft_emit(hdsoft_parser *parser, const hdsoft_form *form, const int32_t *operands);
/* The same with the operands that are written and read given as bits. */
hdsoft_instruction *hdsoft_emit_raw(hdsoft_parser *parser, const hdsoft_form *form, const int32_t *operands,
                                    unsigned defines, unsigned uses);
hdsoft_instruction *hdsoft_emit_named(hdsoft_parser *parser, const char *name, int32_t a, int32_t b, int32_t c,
                                      int32_t d);
/* The same without the guard: for an operation without side effects into a temporary register, whose lanes outside of
 * the guard nobody reads. Keeps temporaries short-lived. */
hdsoft_instruction *hdsoft_emit_temporary(hdsoft_parser *parser, const char *name, int32_t a, int32_t b, int32_t c,
                                          int32_t d);
void hdsoft_emit_poison(hdsoft_parser *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));
int32_t hdsoft_constant(hdsoft_parser *parser, unsigned bits, uint64_t value);
int32_t hdsoft_constant_address(hdsoft_parser *parser, unsigned bits, hdsoft_symbol_kind kind, uint32_t symbol,
                                int64_t addend);
/* The operand for a value that is read as class `letter` of a signature (see forms.h). */
int32_t hdsoft_use(hdsoft_parser *parser, const hdsoft_value *value, char letter, unsigned number);
/* The operand for a destination of class `letter`; a sink gets a register of its own. */
int32_t hdsoft_define(hdsoft_parser *parser, const hdsoft_value *value, char letter, unsigned number);
/* The address of a symbol (64 bits) as an operand. */
int32_t hdsoft_use_symbol(hdsoft_parser *parser, const hdsoft_value *value, unsigned bits);
unsigned hdsoft_letter_bits(char letter);
void hdsoft_reference_add(hdsoft_parser *parser, uint32_t to);
#define HDSOFT_ANY_ADDRESS_TAKEN (HDSOFT_NO_FUNCTION - 1) /* stands for what an indirect call may reach */
void hdsoft_address_taken(hdsoft_parser *parser, uint32_t function);

/* --- decode*.c: the statement, whose opcode has been read, up to and including its ";" --- */
void hdsoft_decode(hdsoft_parser *parser);
/* Poison instead of the statement: a form that is not known. */
void hdsoft_decode_unknown(hdsoft_parser *parser, const hdsoft_statement *statement);
/* The form called name, else the one for the same operation without sign (s32, b32 as u32). */
const hdsoft_form *hdsoft_form_signless(const hdsoft_parser *parser, char *name);
/* The statement's n-th type (from 0); kind 0 if there is none. */
hdsoft_type hdsoft_type_of(const hdsoft_statement *statement, unsigned n);
bool hdsoft_has(const hdsoft_statement *statement, const char *modifier);
typedef void (*hdsoft_decoder)(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_arithmetic(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_compare(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_set(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_select(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_select_sign(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_convert(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_video(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_move(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_address(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_is_space(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_load(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_store(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_atomic(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_copy(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_branch(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_leave(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_barrier(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_warp(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_nothing(hdsoft_parser *parser, hdsoft_statement *statement);
/* --- decode_half.c: f16 and bf16 --- */
typedef struct hdsoft_conversion {
    hdsoft_type to, from;
    const char *integer_rounding; /* "rni" ... or NULL */
    unsigned rounding;
    bool saturate, flush, relu, finite;
} hdsoft_conversion;
bool hdsoft_type_is_half(hdsoft_type type);
void hdsoft_type_name(hdsoft_type type, char *text, size_t room); /* as PTX writes it */
void hdsoft_decode_half(hdsoft_parser *parser, hdsoft_statement *statement); /* arithmetic */
/* A temporary with one number of a column, the upper of a packed one if `high`, as f32. */
int32_t hdsoft_half_as_single(hdsoft_parser *parser, int32_t source, hdsoft_type type, bool high, bool flush);
/* cvt whose destination is f16 or bf16; source is the column of the first operand, f32 if that was half itself. */
void hdsoft_convert_to_half(hdsoft_parser *parser, hdsoft_statement *statement, const hdsoft_conversion *conversion,
                            int32_t source);
/* Statements with a syntax of their own; the opcode is in the statement, the operands not yet read. */
void hdsoft_decode_call(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_decode_branch_table(hdsoft_parser *parser, hdsoft_statement *statement);
void hdsoft_parse_branch_targets(hdsoft_parser *parser, const hdsoft_token *label);
void hdsoft_parse_prototype(hdsoft_parser *parser, const hdsoft_token *label);
/* Any register or constant of at most 32 bits that sits in a 32-bit column, or of 64 in a 64-bit one. */
int32_t hdsoft_use_column(hdsoft_parser *parser, const hdsoft_value *value, hdsoft_type type, unsigned number);
/* An address operand (64 bits): base of the argument, without its addend. */
int32_t hdsoft_use_base(hdsoft_parser *parser, const hdsoft_argument *argument);
/* Begin and end a region that only the lanes of the guard run (for instructions that cannot be masked). */
uint32_t hdsoft_guard_open(hdsoft_parser *parser);
void hdsoft_guard_close(hdsoft_parser *parser, uint32_t opened);

/* --- registers.c: give the registers of instructions [first, end) slots; answers false without memory --- */
bool hdsoft_registers_assign(hdsoft_parser *parser, hdsoft_function *function);

/* --- layout.c: after the last function --- */
bool hdsoft_layout(hdsoft_parser *parser);

#endif
