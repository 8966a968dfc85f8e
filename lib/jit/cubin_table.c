/* SPDX-License-Identifier: MIT */
/*
 * The reader of a cubin's kernels and their parameters: symbols marked as entries, and the .nv.info section of each.
 * NVIDIA does not document these records; their layout here is what its own tools print for files of CUDA 11 to 13.
 * Everything is read through bounds-checked cursors, and what does not add up is "parameters not known".
 */
#include "jit/kernel_table.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "jit/cursor.h"

#define EM_CUDA_MACHINE 190
#define ENTRY_MARK 0x10 /* in a symbol's st_other: a kernel */
#define FATBIN_MAGIC 0xba55ed50u
#define SECTION_LIMIT 1048576u
#define NAME_LIMIT 65536u
#define NV_INFO_TYPE 0x70000000u

/* A record of .nv.info: format, attribute, then a 16-bit value, or for FORMAT_SIZED that many bytes. */
enum {
    FORMAT_SIZED = 4,
    ATTRIBUTE_FRAME_SIZE = 0x11, /* u32 symbol, u32 bytes of local memory */
    ATTRIBUTE_PARAMETER = 0x17,
    ATTRIBUTE_PARAMETER_BYTES = 0x19,
    ATTRIBUTE_REGISTERS = 0x2f, /* u32 symbol, u32 count */
    ATTRIBUTE_PARAMETER_V2 = 0x45,
};

#define SHARED_PREFIX ".nv.shared."
#define RESERVED_SHARED ".nv.shared.reserved.0" /* where it is, each kernel's section has the driver's part in it */
#define RESERVED_SHARED_BYTES 1024u

struct section {
    uint32_t name, type, link, info;
    uint64_t offset, size;
};

struct elf {
    const unsigned char *bytes;
    size_t size;
    uint64_t sections_at;
    uint32_t section_count, names;
};

bool hdrt__is_cubin(const void *bytes, size_t size)
{
    const unsigned char *elf = bytes;
    return size >= sizeof(Elf64_Ehdr) && memcmp(elf, ELFMAG, SELFMAG) == 0 && elf[EI_CLASS] == ELFCLASS64 &&
           elf[EI_DATA] == ELFDATA2LSB && (elf[18] | elf[19] << 8) == EM_CUDA_MACHINE;
}

bool hdrt__is_fatbin(const void *bytes, size_t size)
{
    hdrt__cursor cursor = {bytes, size, false};
    return hdrt__cursor_u32(&cursor) == FATBIN_MAGIC && !cursor.failed;
}

static bool read_section(const struct elf *elf, uint32_t index, struct section *out)
{
    size_t skipped;
    if (index >= elf->section_count)
        return false;
    hdrt__cursor cursor = hdrt__cursor_within(
        elf->bytes, elf->size, elf->sections_at + (uint64_t)index * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr));
    out->name = hdrt__cursor_u32(&cursor);
    out->type = hdrt__cursor_u32(&cursor);
    hdrt__cursor_bytes(&cursor, 16, &skipped); /* flags and address */
    out->offset = hdrt__cursor_u64(&cursor);
    out->size = hdrt__cursor_u64(&cursor);
    out->link = hdrt__cursor_u32(&cursor);
    out->info = hdrt__cursor_u32(&cursor);
    return !cursor.failed;
}

static hdrt__cursor section_bytes(const struct elf *elf, const struct section *section)
{
    if (section->type == SHT_NOBITS)
        return (hdrt__cursor){elf->bytes, 0, true};
    return hdrt__cursor_within(elf->bytes, elf->size, section->offset, section->size);
}

/* The NUL-terminated name at `offset` of string section `index`, or NULL. */
static const char *string_at(const struct elf *elf, uint32_t index, uint32_t offset)
{
    struct section strings;
    size_t skipped;
    if (!read_section(elf, index, &strings) || strings.type != SHT_STRTAB)
        return NULL;
    hdrt__cursor cursor = section_bytes(elf, &strings);
    hdrt__cursor_bytes(&cursor, offset, &skipped);
    if (cursor.failed || !memchr(cursor.bytes, 0, cursor.left < NAME_LIMIT ? cursor.left : NAME_LIMIT))
        return NULL;
    return (const char *)cursor.bytes;
}

static bool open_elf(const void *bytes, size_t size, struct elf *out)
{
    if (!hdrt__is_cubin(bytes, size))
        return false;
    size_t skipped;
    hdrt__cursor cursor = {bytes, size, false};
    hdrt__cursor_bytes(&cursor, 40, &skipped);
    *out = (struct elf){.bytes = bytes, .size = size};
    out->sections_at = hdrt__cursor_u64(&cursor);
    hdrt__cursor_bytes(&cursor, 10, &skipped); /* flags, header sizes, program headers */
    uint16_t entry_size = hdrt__cursor_u16(&cursor);
    out->section_count = hdrt__cursor_u16(&cursor);
    out->names = hdrt__cursor_u16(&cursor);
    struct section first;
    if (cursor.failed || entry_size != sizeof(Elf64_Shdr) || out->sections_at == 0 || out->sections_at > size)
        return false;
    /* More sections than 16 bits hold: their numbers are in the first section header. */
    bool extended = out->section_count == 0;
    if (extended)
        out->section_count = 1;
    if (!read_section(out, 0, &first))
        return false;
    if (extended)
        out->section_count = first.size > SECTION_LIMIT ? 0 : (uint32_t)first.size;
    if (out->names == SHN_XINDEX)
        out->names = first.link;
    return out->section_count > 0 && out->section_count <= (size - out->sections_at) / sizeof(Elf64_Shdr);
}

/* One parameter record into its place by ordinal; the array is filled in any order. */
static bool place_parameter(hdrt__kernel_entry *entry, uint32_t ordinal, uint32_t offset, uint32_t size)
{
    if (ordinal >= HDRT__PARAMETER_LIMIT || size == 0)
        return false;
    static const hdrt_parameter empty;
    while (entry->parameter_count <= ordinal)
        if (!hdrt__kernel_entry_add(entry, &empty))
            return false;
    hdrt_parameter *parameter = &entry->parameters[ordinal];
    if (parameter->size != 0)
        return false;
    uint32_t align = 1;
    while (align < 16 && offset % (align * 2) == 0 && size % (align * 2) == 0)
        align *= 2;
    *parameter = (hdrt_parameter){offset, size, align, HDRT_CLASS_UNKNOWN};
    return true;
}

/* Whether the records were complete: every ordinal there, none overlapping, all within the bytes that the file says. */
static bool parameters_complete(const hdrt__kernel_entry *entry, uint32_t total)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < entry->parameter_count; i++) {
        const hdrt_parameter *parameter = &entry->parameters[i];
        if (parameter->size == 0 || parameter->offset < end)
            return false;
        end = (uint64_t)parameter->offset + parameter->size;
    }
    return end == total;
}

static void read_info(const struct elf *elf, const struct section *info, hdrt__kernel_entry *entry)
{
    hdrt__cursor cursor = section_bytes(elf, info);
    uint32_t total = 0;
    bool good = !cursor.failed;
    while (good && cursor.left > 0) {
        unsigned format = (unsigned)hdrt__cursor_number(&cursor, 1);
        unsigned attribute = (unsigned)hdrt__cursor_number(&cursor, 1);
        unsigned value = hdrt__cursor_u16(&cursor);
        if (format == FORMAT_SIZED) {
            size_t size, skipped;
            const unsigned char *payload = hdrt__cursor_bytes(&cursor, value, &size);
            hdrt__cursor record = {payload, size, payload == NULL};
            if (attribute != ATTRIBUTE_PARAMETER && attribute != ATTRIBUTE_PARAMETER_V2)
                continue;
            hdrt__cursor_bytes(&record, 4, &skipped);
            uint32_t ordinal = hdrt__cursor_u16(&record), offset = hdrt__cursor_u16(&record);
            uint32_t packed = hdrt__cursor_u32(&record);
            uint32_t bytes = attribute == ATTRIBUTE_PARAMETER ? packed >> 18 : packed & 0xffff;
            good = !record.failed && place_parameter(entry, ordinal, offset, bytes);
        } else if (attribute == ATTRIBUTE_PARAMETER_BYTES) {
            total = value;
        }
        good = good && !cursor.failed;
    }
    entry->parameters_known = good && !cursor.failed && parameters_complete(entry, total);
}

/*
 * For each section, the .nv.info section about it (0: none): an .nv.info section's sh_info is the index of the
 * kernel's text section. One pass, so that a file of many kernels is not searched once for each.
 */
static uint32_t *index_infos(const struct elf *elf)
{
    uint32_t *infos = calloc(elf->section_count, sizeof(*infos));
    for (uint32_t i = 1; infos && i < elf->section_count; i++) {
        struct section section;
        if (read_section(elf, i, &section) && section.type == NV_INFO_TYPE && section.info > 0 &&
            section.info < elf->section_count)
            infos[section.info] = i;
    }
    return infos;
}

struct symbol_reader {
    const struct elf *elf;
    const uint32_t *infos;
    hdrt__kernel_table *table;
    size_t budget; /* bytes of names still allowed: many symbols may share one long string */
    bool out_of_memory;
};

static bool add_kernel(struct symbol_reader *reader, const char *name, uint32_t text_section)
{
    hdrt__kernel_entry *entry = hdrt__kernel_table_add(reader->table, name, strlen(name));
    struct section info;
    if (!entry) {
        reader->out_of_memory = true;
        return false;
    }
    uint32_t index = text_section < reader->elf->section_count ? reader->infos[text_section] : 0;
    if (index != 0 && read_section(reader->elf, index, &info))
        read_info(reader->elf, &info, entry);
    else
        entry->parameters_known = false;
    return true;
}

static bool add_symbol(struct symbol_reader *reader, const struct section *symbols, hdrt__cursor *cursor)
{
    uint32_t name_at = hdrt__cursor_u32(cursor);
    unsigned type = (unsigned)hdrt__cursor_number(cursor, 1) & 0xf;
    unsigned other = (unsigned)hdrt__cursor_number(cursor, 1);
    uint32_t section_index = hdrt__cursor_u16(cursor);
    hdrt__cursor_u64(cursor);
    uint64_t bytes = hdrt__cursor_u64(cursor);
    bool kernel = type == STT_FUNC && (other & ENTRY_MARK);
    if (cursor->failed || section_index == SHN_UNDEF || (!kernel && type != STT_OBJECT))
        return true;
    const char *name = string_at(reader->elf, symbols->link, name_at);
    if (!name || !*name)
        return true;
    size_t size = strlen(name) + 1;
    if (size > reader->budget)
        return false;
    reader->budget -= size;
    if (kernel)
        return add_kernel(reader, name, section_index);
    reader->table->writable_variables = true;
    reader->out_of_memory = !hdrt__kernel_table_add_variable(reader->table, name, size - 1, bytes);
    return !reader->out_of_memory;
}

hdrt_status hdrt__kernel_table_from_cubin(const void *cubin, size_t size, hdrt__kernel_table *table)
{
    struct elf elf;
    *table = (hdrt__kernel_table){0};
    if (!open_elf(cubin, size, &elf))
        return hdrt__fail(HDRT_ERROR_INVALID_IMAGE, "this is no intact cubin: its ELF headers are damaged");
    uint32_t *infos = index_infos(&elf);
    if (!infos)
        return hdrt__fail_memory(elf.section_count * sizeof(*infos), "the kernel table");
    struct symbol_reader reader = {&elf, infos, table, size, false};
    bool good = true;
    for (uint32_t i = 0; i < elf.section_count && good; i++) {
        struct section symbols;
        if (!read_section(&elf, i, &symbols) || symbols.type != SHT_SYMTAB)
            continue;
        hdrt__cursor cursor = section_bytes(&elf, &symbols);
        while (good && !cursor.failed && cursor.left >= sizeof(Elf64_Sym))
            good = add_symbol(&reader, &symbols, &cursor);
    }
    free(infos);
    if (good && hdrt__kernel_table_add_resources(cubin, size, table) == HDRT_OK)
        return HDRT_OK;
    reader.out_of_memory = reader.out_of_memory || good;
    hdrt__kernel_table_free(table);
    if (reader.out_of_memory)
        return hdrt__fail_memory(size, "the kernel table");
    return hdrt__fail(HDRT_ERROR_INVALID_IMAGE, "this is no intact cubin: its symbols' names exceed the file");
}

/* ---- resources -------------------------------------------------------------------------------------------------- */

/* What the sections tell, by symbol and by section: found in one pass, whatever their order. */
struct resources {
    const struct elf *elf;
    uint32_t symbol_count;
    uint32_t *registers, *frames; /* by symbol; registers are 1 more, 0: not told */
    uint64_t *shared;             /* by text section */
    bool reserved;
};

static void read_counts(struct resources *resources, const struct section *info)
{
    hdrt__cursor cursor = section_bytes(resources->elf, info);
    while (!cursor.failed && cursor.left > 0) {
        unsigned format = (unsigned)hdrt__cursor_number(&cursor, 1);
        unsigned attribute = (unsigned)hdrt__cursor_number(&cursor, 1);
        unsigned size = hdrt__cursor_u16(&cursor);
        if (format != FORMAT_SIZED)
            continue;
        size_t got;
        const unsigned char *payload = hdrt__cursor_bytes(&cursor, size, &got);
        hdrt__cursor record = {payload, got, payload == NULL};
        uint32_t symbol = hdrt__cursor_u32(&record), value = hdrt__cursor_u32(&record);
        if (record.failed || symbol >= resources->symbol_count || value > UINT32_MAX / 2)
            continue;
        if (attribute == ATTRIBUTE_REGISTERS)
            resources->registers[symbol] = value + 1;
        else if (attribute == ATTRIBUTE_FRAME_SIZE)
            resources->frames[symbol] = value;
    }
}

static void read_sections(struct resources *resources)
{
    const struct elf *elf = resources->elf;
    for (uint32_t i = 1; i < elf->section_count; i++) {
        struct section section;
        if (!read_section(elf, i, &section))
            continue;
        const char *name = string_at(elf, elf->names, section.name);
        if (section.type == NV_INFO_TYPE && section.info == 0)
            read_counts(resources, &section);
        else if (name && strcmp(name, RESERVED_SHARED) == 0)
            resources->reserved = true;
        else if (name && strncmp(name, SHARED_PREFIX, strlen(SHARED_PREFIX)) == 0 && section.info < elf->section_count)
            resources->shared[section.info] = section.size;
    }
}

static void set_resources(const struct resources *resources, const struct section *symbols, hdrt__kernel_table *table)
{
    hdrt__cursor cursor = section_bytes(resources->elf, symbols);
    for (uint32_t i = 0; i < resources->symbol_count && !cursor.failed && cursor.left >= sizeof(Elf64_Sym); i++) {
        uint32_t name_at = hdrt__cursor_u32(&cursor), index;
        unsigned type = (unsigned)hdrt__cursor_number(&cursor, 1) & 0xf;
        unsigned other = (unsigned)hdrt__cursor_number(&cursor, 1);
        uint32_t text = hdrt__cursor_u16(&cursor);
        hdrt__cursor_u64(&cursor);
        hdrt__cursor_u64(&cursor);
        const char *name = type == STT_FUNC && (other & ENTRY_MARK) ? string_at(resources->elf, symbols->link, name_at)
                                                                    : NULL;
        if (!name || !hdrt__kernel_table_find(table, name, &index) || resources->registers[i] == 0)
            continue;
        hdrt__kernel_entry *kernel = &table->kernels[index];
        uint64_t shared = text < resources->elf->section_count ? resources->shared[text] : 0;
        if (resources->reserved && shared >= RESERVED_SHARED_BYTES)
            shared -= RESERVED_SHARED_BYTES;
        kernel->resources_known = shared <= UINT32_MAX;
        kernel->registers = resources->registers[i] - 1;
        kernel->local_bytes = resources->frames[i];
        kernel->static_shared_bytes = (uint32_t)shared;
    }
}

hdrt_status hdrt__kernel_table_add_resources(const void *cubin, size_t size, hdrt__kernel_table *table)
{
    struct elf elf;
    struct section symbols = {0};
    bool found = false;
    if (!open_elf(cubin, size, &elf))
        return hdrt__fail(HDRT_ERROR_INVALID_IMAGE, "this is no intact cubin: its ELF headers are damaged");
    for (uint32_t i = 0; i < elf.section_count && !found; i++)
        found = read_section(&elf, i, &symbols) && symbols.type == SHT_SYMTAB;
    if (!found || section_bytes(&elf, &symbols).failed)
        return HDRT_OK; /* it tells nothing */
    struct resources resources = {.elf = &elf, .symbol_count = (uint32_t)(symbols.size / sizeof(Elf64_Sym))};
    resources.registers = calloc(resources.symbol_count + 1u, sizeof(*resources.registers));
    resources.frames = calloc(resources.symbol_count + 1u, sizeof(*resources.frames));
    resources.shared = calloc(elf.section_count + 1u, sizeof(*resources.shared));
    hdrt_status status = HDRT_OK;
    if (resources.registers && resources.frames && resources.shared) {
        read_sections(&resources);
        set_resources(&resources, &symbols, table);
    } else {
        status = hdrt__fail_memory(size, "the kernel table");
    }
    free(resources.registers);
    free(resources.frames);
    free(resources.shared);
    return status;
}
