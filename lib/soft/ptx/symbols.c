/* SPDX-License-Identifier: MIT */
#include "soft/ptx/parser.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash_text(const char *text, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(hash ^ hash >> 29);
}

static bool grow_name_slots(hdsoft_parser *parser)
{
    uint32_t slots = parser->name_slot_count ? parser->name_slot_count * 2 : 256;
    uint32_t *table = malloc(slots * sizeof *table);
    if (!table) {
        hdsoft_parser_fail(parser, 2, 0, "out of memory");
        return false;
    }
    memset(table, 0xff, slots * sizeof *table);
    for (uint32_t i = 0; i < parser->name_count; i++) {
        uint32_t slot = parser->names[i].hash & (slots - 1);
        while (table[slot] != HDSOFT_NONE)
            slot = (slot + 1) & (slots - 1);
        table[slot] = i;
    }
    free(parser->name_slots);
    parser->name_slots = table;
    parser->name_slot_count = slots;
    return true;
}

static uint32_t probe(const hdsoft_parser *parser, const char *text, size_t length, uint32_t hash)
{
    uint32_t slot = hash & (parser->name_slot_count - 1);
    while (parser->name_slots[slot] != HDSOFT_NONE) {
        const hdsoft_name *name = &parser->names[parser->name_slots[slot]];
        if (name->hash == hash && name->length == length && memcmp(name->text, text, length) == 0)
            break;
        slot = (slot + 1) & (parser->name_slot_count - 1);
    }
    return slot;
}

uint32_t hdsoft_name_find(const hdsoft_parser *parser, const char *text, size_t length)
{
    if (parser->name_slot_count == 0)
        return HDSOFT_NONE;
    return parser->name_slots[probe(parser, text, length, hash_text(text, length))];
}

uint32_t hdsoft_name_intern(hdsoft_parser *parser, const char *text, size_t length)
{
    if (parser->name_count * 2 >= parser->name_slot_count && !grow_name_slots(parser))
        return HDSOFT_NONE;
    uint32_t hash = hash_text(text, length);
    uint32_t slot = probe(parser, text, length, hash);
    if (parser->name_slots[slot] != HDSOFT_NONE)
        return parser->name_slots[slot];
    if (!hdsoft_parser_room(parser, &parser->names, &parser->room.names, parser->name_count, sizeof *parser->names))
        return HDSOFT_NONE;
    parser->names[parser->name_count] =
        (hdsoft_name){.text = text, .length = (uint32_t)length, .hash = hash, .symbol = HDSOFT_NONE};
    parser->name_slots[slot] = parser->name_count;
    return parser->name_count++;
}

uint32_t hdsoft_symbol_bind(hdsoft_parser *parser, uint32_t name, hdsoft_binding binding, uint32_t index)
{
    if (name == HDSOFT_NONE || !hdsoft_parser_room(parser, &parser->symbols, &parser->room.symbols,
                                                   parser->symbol_count, sizeof *parser->symbols))
        return HDSOFT_NONE;
    parser->symbols[parser->symbol_count] = (hdsoft_symbol){
        .binding = binding, .depth = parser->depth, .index = index, .name = name,
        .shadowed = parser->names[name].symbol};
    parser->names[name].symbol = parser->symbol_count;
    return parser->symbol_count++;
}

uint32_t hdsoft_symbol_find(const hdsoft_parser *parser, const char *text, size_t length)
{
    uint32_t name = hdsoft_name_find(parser, text, length);
    return name == HDSOFT_NONE ? HDSOFT_NONE : parser->names[name].symbol;
}

/* Split "%r12" into "%r" and 12; false if the name does not end in a plain number. */
static bool split_number(const char *text, size_t length, size_t *prefix, uint32_t *number)
{
    size_t first = length;
    while (first > 0 && text[first - 1] >= '0' && text[first - 1] <= '9')
        first--;
    if (first == length || first == 0 || length - first > 9 || (text[first] == '0' && length - first > 1))
        return false;
    uint32_t value = 0;
    for (size_t i = first; i < length; i++)
        value = value * 10 + (uint32_t)(text[i] - '0');
    *prefix = first;
    *number = value;
    return true;
}

int32_t hdsoft_register_find(hdsoft_parser *parser, const char *text, size_t length)
{
    uint32_t exact = hdsoft_symbol_find(parser, text, length);
    const hdsoft_symbol *symbol = exact == HDSOFT_NONE ? NULL : &parser->symbols[exact];
    size_t prefix;
    uint32_t number;
    if (split_number(text, length, &prefix, &number)) {
        uint32_t found = hdsoft_symbol_find(parser, text, prefix);
        const hdsoft_symbol *range = found == HDSOFT_NONE ? NULL : &parser->symbols[found];
        if (range && range->binding == HDSOFT_BIND_RANGE && number < range->count &&
            (!symbol || range->depth > symbol->depth)) {
            unsigned bits = range->bits;
            uint32_t *slot = hdsoft_map_slot(parser, &parser->numbered, range->index, number);
            if (!slot)
                return 0;
            if (*slot == HDSOFT_NONE)
                *slot = (uint32_t)hdsoft_register_new(parser, bits);
            return (int32_t)*slot;
        }
    }
    return symbol && symbol->binding == HDSOFT_BIND_REGISTER ? (int32_t)symbol->index : -1;
}

int32_t hdsoft_register_new(hdsoft_parser *parser, unsigned bits)
{
    if (!hdsoft_parser_room(parser, &parser->registers, &parser->room.registers, parser->register_count,
                            sizeof *parser->registers))
        return 0;
    parser->registers[parser->register_count] = (uint8_t)bits;
    return (int32_t)parser->register_count++;
}

void hdsoft_scope_open(hdsoft_parser *parser)
{
    if (parser->depth + 1 >= HDSOFT_SCOPE_DEPTH) {
        hdsoft_parser_fail(parser, 218, parser->lexer.token.line, "braces are nested deeper than %d",
                           HDSOFT_SCOPE_DEPTH - 2);
        return;
    }
    parser->scope_first[++parser->depth] = parser->symbol_count;
}

static void fill_in(hdsoft_parser *parser, const hdsoft_pending *wanted, uint32_t instruction)
{
    if (wanted->in_table)
        parser->program->branch_targets[wanted->place] = instruction;
    else
        parser->program->code[wanted->place].target = instruction;
}

/* Labels of the closing scope satisfy the branches in it; the rest looks one scope further out. */
static void settle_labels(hdsoft_parser *parser)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < parser->pending_count; i++) {
        hdsoft_pending wanted = parser->pending[i];
        if (wanted.depth == parser->depth) {
            uint32_t found = parser->names[wanted.name].symbol;
            const hdsoft_symbol *symbol = found == HDSOFT_NONE ? NULL : &parser->symbols[found];
            if (symbol && symbol->binding == HDSOFT_BIND_LABEL && symbol->depth == parser->depth) {
                fill_in(parser, &wanted, symbol->index);
                continue;
            }
            if (parser->depth <= 1) {
                const hdsoft_name *name = &parser->names[wanted.name];
                hdsoft_parser_fail(parser, 218, wanted.line, "label '%.*s' is not defined", (int)name->length,
                                   name->text);
                continue;
            }
            wanted.depth--;
        }
        parser->pending[kept++] = wanted;
    }
    parser->pending_count = kept;
}

void hdsoft_scope_close(hdsoft_parser *parser)
{
    if (parser->depth == 0)
        return;
    settle_labels(parser);
    while (parser->symbol_count > parser->scope_first[parser->depth]) {
        const hdsoft_symbol *symbol = &parser->symbols[--parser->symbol_count];
        parser->names[symbol->name].symbol = symbol->shadowed;
    }
    parser->depth--;
}

void hdsoft_label_wanted(hdsoft_parser *parser, const hdsoft_token *label, uint32_t place, bool in_table)
{
    uint32_t name = hdsoft_name_intern(parser, label->text, label->length);
    if (name == HDSOFT_NONE || !hdsoft_parser_room(parser, &parser->pending, &parser->room.pending,
                                                   parser->pending_count, sizeof *parser->pending))
        return;
    parser->pending[parser->pending_count++] = (hdsoft_pending){
        .name = name, .depth = parser->depth, .place = place, .line = label->line, .in_table = in_table};
}

static uint64_t mix(uint64_t high, uint64_t low)
{
    uint64_t hash = (high * UINT64_C(0x9e3779b97f4a7c15)) ^ low;
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

static bool grow_map(hdsoft_parser *parser, hdsoft_map *map)
{
    uint32_t capacity = map->capacity ? map->capacity * 2 : 64;
    uint64_t *keys = malloc((size_t)capacity * 2 * sizeof *keys);
    uint32_t *values = malloc((size_t)capacity * sizeof *values);
    if (!keys || !values) {
        free(keys);
        free(values);
        hdsoft_parser_fail(parser, 2, 0, "out of memory");
        return false;
    }
    memset(values, 0xff, (size_t)capacity * sizeof *values);
    for (uint32_t i = 0; i < map->capacity; i++) {
        if (map->values[i] == HDSOFT_NONE)
            continue;
        uint32_t slot = (uint32_t)mix(map->keys[2 * i], map->keys[2 * i + 1]) & (capacity - 1);
        while (values[slot] != HDSOFT_NONE)
            slot = (slot + 1) & (capacity - 1);
        keys[2 * slot] = map->keys[2 * i];
        keys[2 * slot + 1] = map->keys[2 * i + 1];
        values[slot] = map->values[i];
    }
    free(map->keys);
    free(map->values);
    map->keys = keys;
    map->values = values;
    map->capacity = capacity;
    return true;
}

/* The value for a key; a new one reads HDSOFT_NONE and must be written before the next call. */
uint32_t *hdsoft_map_slot(hdsoft_parser *parser, hdsoft_map *map, uint64_t high, uint64_t low)
{
    if (map->count * 2 >= map->capacity && !grow_map(parser, map))
        return NULL;
    uint32_t slot = (uint32_t)mix(high, low) & (map->capacity - 1);
    while (map->values[slot] != HDSOFT_NONE) {
        if (map->keys[2 * slot] == high && map->keys[2 * slot + 1] == low)
            return &map->values[slot];
        slot = (slot + 1) & (map->capacity - 1);
    }
    map->keys[2 * slot] = high;
    map->keys[2 * slot + 1] = low;
    map->count++;
    return &map->values[slot];
}

void hdsoft_map_clear(hdsoft_map *map)
{
    free(map->keys);
    free(map->values);
    *map = (hdsoft_map){0};
}

void hdsoft_symbols_destroy(hdsoft_parser *parser)
{
    free(parser->names);
    free(parser->name_slots);
    free(parser->symbols);
    free(parser->pending);
    hdsoft_map_clear(&parser->constants);
    hdsoft_map_clear(&parser->numbered);
}
