/* SPDX-License-Identifier: MIT */
/*
 * The decoded form of a PTX module: what the parser builds and the execution engine runs. Once hdsoft_program_parse
 * has returned, nothing in it changes, so any number of threads may run it.
 *
 * An instruction is a handler and its operands. A register is a column of 32 lanes in the frame of a function; an
 * immediate is a broadcast column in the constants of the instance. Both are named by a byte offset; the sign of the
 * offset tells which. Frame layout: parameter cells, predicates, 32-bit registers, 64-bit registers.
 *
 * Parameter and local memory is kept in cells: byte b of lane l lies at (b / 8) * 256 + l * 8 + b % 8, so that a
 * stack grows at its end and lanes with equal offsets lie side by side.
 */
#ifndef HDSOFT_PROGRAM_H
#define HDSOFT_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soft/exec/engine.h"

#define HDSOFT_LANES 32u
#define HDSOFT_ALL_LANES 0xffffffffu
#define HDSOFT_OPERANDS 6
#define HDSOFT_CELL 256u /* bytes of one row of cells: 8 bytes of each lane */

/* Operand values. */
#define HDSOFT_ABSENT INT32_MAX          /* no such operand, or no guard */
#define HDSOFT_CONSTANT_BIT INT32_MIN    /* an offset into the constants, not into the frame */

/* Where generic addresses of a thread's own spaces lie: no user-space pointer reaches there. */
#define HDSOFT_WINDOW_SHARED UINT64_C(0x0100000000000000)
#define HDSOFT_WINDOW_LOCAL UINT64_C(0x0200000000000000)
#define HDSOFT_WINDOW_PARAMETER UINT64_C(0x0300000000000000)
#define HDSOFT_WINDOW_CODE UINT64_C(0x0400000000000000)
#define HDSOFT_WINDOW_MASK UINT64_C(0xff00000000000000)

/* State spaces, in option[1] of memory accesses. */
typedef enum hdsoft_space {
    HDSOFT_SPACE_GENERIC,
    HDSOFT_SPACE_GLOBAL,
    HDSOFT_SPACE_CONSTANT,
    HDSOFT_SPACE_SHARED,
    HDSOFT_SPACE_LOCAL,
    HDSOFT_SPACE_PARAMETER,
} hdsoft_space;

#define HDSOFT_NO_FUNCTION UINT32_MAX

typedef struct hdsoft_warp hdsoft_warp;
typedef struct hdsoft_instruction hdsoft_instruction;
/* Executes one instruction for the warp's active lanes and returns the next one. */
typedef const hdsoft_instruction *(*hdsoft_handler)(hdsoft_warp *warp, const hdsoft_instruction *instruction);

struct hdsoft_instruction {
    hdsoft_handler handler;
    hdsoft_handler inner;             /* what a handler that wraps another one calls */
    int32_t operand[HDSOFT_OPERANDS]; /* destinations first */
    int32_t guard;                    /* frame offset of the predicate, or HDSOFT_ABSENT */
    uint32_t target;                  /* branch: instruction; call: call; memory: range cache; poison: message */
    int64_t immediate;
    uint8_t guard_negated;
    uint8_t option[3];                /* meaning depends on the handler */
    uint32_t access;                  /* what it does to global memory (exec/watch.h); 0: nothing */
};

/* Beside every instruction: where it came from. */
typedef struct hdsoft_origin {
    uint32_t ptx_line;
    uint32_t location; /* 1-based index into locations; 0: unknown */
} hdsoft_origin;

/* The same: which operands are written and read, as bits (constants are neither), and what becomes of the values
 * (exec/follow.h). */
typedef struct hdsoft_effect {
    uint8_t defines, uses, flow;
} hdsoft_effect;

typedef struct hdsoft_location {
    uint32_t file, line; /* file: number of the .file directive */
} hdsoft_location;

typedef struct hdsoft_file {
    uint32_t number;
    char *name;
} hdsoft_file;

/* One formal parameter or return value of a .func: bytes in its frame's cells. */
typedef struct hdsoft_formal {
    uint32_t offset, size;
} hdsoft_formal;

/* What a call of an external function does; see exec/builtin.h. */
typedef struct hdsoft_builtin hdsoft_builtin;

typedef struct hdsoft_function {
    char *name;
    uint32_t first, count;       /* instructions */
    uint32_t frame_bytes;        /* cells included */
    uint32_t cell_rows;          /* rows of parameter cells at the start of the frame */
    uint32_t local_bytes;        /* .local variables of one activation */
    uint32_t register_units;     /* live 32-bit registers at the worst place */
    uint32_t return_count, formal_count; /* formals: return values first */
    hdsoft_formal *formals;
    const hdsoft_builtin *builtin;
    uint32_t line;
    bool defined, entry, weak;
} hdsoft_function;

/* One call: which function, and the caller's cells that go in and come back. */
typedef struct hdsoft_call {
    uint32_t function;                 /* HDSOFT_NO_FUNCTION: operand[0] holds its address */
    uint32_t first_actual;             /* into actuals: return values first */
    uint32_t return_count, actual_count;
    uint32_t line;
} hdsoft_call;

typedef struct hdsoft_branch_table {
    uint32_t first, count; /* into branch_targets */
} hdsoft_branch_table;

typedef enum hdsoft_symbol_kind {
    HDSOFT_SYMBOL_GLOBAL,   /* index of a global */
    HDSOFT_SYMBOL_FUNCTION, /* index of a function */
    HDSOFT_SYMBOL_SHARED,   /* index of a static .shared variable */
} hdsoft_symbol_kind;

/* A place that receives an address: in the constants (a broadcast column of 64 or 32 bits) or in a global's bytes. */
typedef struct hdsoft_relocation {
    hdsoft_symbol_kind kind;
    uint32_t symbol;
    bool in_constants;
    uint8_t width;          /* bytes: of the column's elements, or in the global */
    uint8_t shift;          /* the address is shifted right by so many bits first: 0xFF00(symbol) initialisers */
    uint32_t global;        /* whose bytes, if not in the constants */
    uint64_t offset;
    int64_t addend;
} hdsoft_relocation;

/* A .global or .const variable with its initial bytes. */
typedef struct hdsoft_global {
    hdsoft_variable variable;
    unsigned char *bytes; /* initial bytes, `filled` of them; the rest is zero */
    size_t filled;
    uint32_t line;
    bool defined, weak, initialised;
} hdsoft_global;

/* A module-scope or demoted .shared variable. */
typedef struct hdsoft_shared {
    uint64_t size;
    uint32_t align, offset;
    bool dynamic; /* extern []: lies after the entry's static variables */
} hdsoft_shared;

struct hdsoft_program {
    hdsoft_instruction *code;
    hdsoft_origin *origins;
    hdsoft_effect *effects;
    uint32_t code_count;
    hdsoft_function *functions;
    uint32_t function_count;
    hdsoft_entry *entries;             /* one per defined .entry, in order */
    uint32_t *entry_functions;
    hdsoft_parameter *parameters;      /* of all entries */
    uint32_t entry_count, parameter_count;
    hdsoft_global *globals;
    uint32_t global_count;
    hdsoft_shared *shared;
    uint32_t shared_count;
    unsigned char *constants;          /* broadcast columns before relocation */
    uint32_t constant_bytes;
    hdsoft_relocation *relocations;
    uint32_t relocation_count;
    hdsoft_call *calls;
    uint32_t call_count;
    hdsoft_formal *actuals;
    uint32_t actual_count;
    hdsoft_branch_table *tables;
    uint32_t table_count;
    uint32_t *branch_targets;
    uint32_t branch_target_count;
    hdsoft_location *locations;
    uint32_t location_count;
    hdsoft_file *files;
    uint32_t file_count;
    char **messages;                   /* of poisoned instructions */
    uint32_t message_count;
    uint32_t range_count;              /* memory instructions, each with a range cache in a run */
    unsigned version, target;          /* .version * 10, .target's number */
};

/* The source line of an instruction: false if the PTX has no .loc for it. */
bool hdsoft_program_source(const hdsoft_program *program, uint32_t instruction, const char **file, uint32_t *line);
/* The function that an instruction belongs to; NULL if none. */
const hdsoft_function *hdsoft_program_function_of(const hdsoft_program *program, uint32_t instruction);

#endif
