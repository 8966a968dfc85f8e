/* SPDX-License-Identifier: MIT */
#include "soft/check/init.h"

#include <string.h>
#include <sys/mman.h>

#include "soft/check/fault.h"
#include "soft/model/driver.h"

#define TEXT_BYTES 4096
#define LANES 32u
#define PAGE ((uintptr_t)4096)
/* From so many bytes of bits on, pages are given back instead of cleared. */
#define GIVE_BACK ((uint64_t)64 << 10)
#define NARROW_GAP 3u
#define WIDE_GAP 7u

/* The bits of one device's window; a page of them appears when it is first written. */
typedef struct shadow {
    uint64_t base, bytes;
    unsigned char *bits; /* NULL: not made, or no addresses for it: then all counts as written */
    bool tried;
} shadow;

static shadow shadows[HDSOFT__DEVICES];

/* ---- bits ---- */

static void make(shadow *made, unsigned ordinal)
{
    hdsoft__memory_window(hdsoft__the.devices[ordinal].memory, &made->base, &made->bytes);
    made->tried = true;
    /* Some more, so that the last ones can be read as words. */
    void *at = mmap(NULL, made->bytes / 8 + 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                    0);
    if (at == MAP_FAILED)
        return;
    madvise(at, made->bytes / 8 + 16, MADV_DONTDUMP);
    made->bits = at;
}

/* The shadow of an address; NULL: it has none. */
static shadow *shadow_of(uint64_t address)
{
    for (unsigned i = 0; i < HDSOFT__DEVICES; i++)
        if (shadows[i].bits && address - shadows[i].base < shadows[i].bytes)
            return &shadows[i];
    return NULL;
}

static void set_bits(unsigned char *at, uint8_t bits, bool value)
{
    *at = (unsigned char)(value ? *at | bits : *at & ~bits);
}

static void set_range(const shadow *in, uint64_t address, uint64_t bytes, bool value)
{
    uint64_t first = address - in->base, last = first + bytes;
    if (!bytes || last > in->bytes)
        return;
    unsigned char *from = in->bits + first / 8, *to = in->bits + last / 8;
    uint8_t head = (uint8_t)(0xff << first % 8), tail = (uint8_t)((1u << last % 8) - 1);
    if (from == to) {
        set_bits(from, head & tail, value);
        return;
    }
    set_bits(from, head, value);
    set_bits(to, tail, value);
    from++;
    if (!value && (uint64_t)(to - from) >= GIVE_BACK) {
        unsigned char *page = from + (-(uintptr_t)from & (PAGE - 1)), *end = to - ((uintptr_t)to & (PAGE - 1));
        if (!madvise(page, (size_t)(end - page), MADV_DONTNEED)) {
            memset(from, 0, (size_t)(page - from));
            from = end;
        }
    }
    memset(from, value ? 0xff : 0, (size_t)(to - from));
}

/* The bits of up to 32 bytes that lie within the window. */
static uint32_t bits_at(const shadow *in, uint64_t address, uint32_t bytes)
{
    uint64_t offset = address - in->base, word;
    memcpy(&word, in->bits + offset / 8, sizeof word);
    return (uint32_t)(word >> offset % 8) & (uint32_t)((UINT64_C(1) << bytes) - 1);
}

/* Where the next byte lies, from `from` up to `to`, whose bit is `value`; `to` if there is none. */
static uint64_t next_bit(const shadow *in, uint64_t from, uint64_t to, bool value)
{
    while (from < to) {
        uint32_t bytes = to - from < 32 ? (uint32_t)(to - from) : 32;
        uint32_t all = (uint32_t)((UINT64_C(1) << bytes) - 1), bits = bits_at(in, from, bytes);
        uint32_t wanted = value ? bits : ~bits & all;
        if (wanted)
            return from + (uint32_t)__builtin_ctz(wanted);
        from += bytes;
    }
    return to;
}

/* ---- ranges and commands ---- */

void hdsoft__init_appeared(const hdsoft_range *range)
{
    if (range->kind == HDSOFT_RANGE_HOST)
        return;
    shadow *in = shadow_of(range->base);
    for (unsigned i = 0; !in && i < hdsoft__the.device_count; i++) {
        if (shadows[i].tried || !hdsoft__memory_is_device(hdsoft__the.devices[i].memory, range->base))
            continue;
        make(&shadows[i], i);
        in = shadow_of(range->base);
    }
    if (in)
        set_range(in, range->base, range->end - range->base,
                  range->kind != HDSOFT_RANGE_DEVICE && range->kind != HDSOFT_RANGE_HEAP);
}

void hdsoft__init_written(uint64_t address, uint64_t bytes)
{
    const shadow *in = shadow_of(address);
    if (in)
        set_range(in, address, bytes, true);
}

/* What of a copy was never written. */
typedef struct gaps {
    uint64_t bytes, first, count; /* of those wider than NARROW_GAP */
    bool alike;                   /* they may be those between the members of structures */
} gaps;

static gaps look_for_gaps(const shadow *in, uint64_t from, uint64_t to)
{
    gaps found = {.alike = true};
    uint64_t width = 0, stride = 0, last = 0;
    for (uint64_t at = next_bit(in, from, to, false); at < to;) {
        uint64_t end = next_bit(in, at, to, true), bytes = end - at;
        if (bytes > NARROW_GAP || at == from || end == to) {
            if (found.count == 0) {
                found.first = at;
                width = bytes;
            } else if (found.count == 1) {
                stride = at - last;
            }
            if (bytes != width || bytes > WIDE_GAP || (found.count > 1 && at - last != stride))
                found.alike = false;
            found.bytes += bytes;
            found.count++;
            last = at;
        }
        at = next_bit(in, end, to, false);
    }
    if (found.count < 2 || found.first - from >= stride || to - last > stride)
        found.alike = false;
    return found;
}

static void describe_place(uint64_t address, hdsoft_text *text)
{
    hdsoft__allocation allocation;
    bool gone;
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        hdsoft_memory *memory = hdsoft__the.devices[i].memory;
        if (hdsoft__memory_is_device(memory, address) &&
            hdsoft__memory_neighbour(memory, address, &allocation, &gone) && !gone)
            hdsoft_text_append(text, "byte %llu of allocation #%llu",
                               (unsigned long long)(address - allocation.range.base),
                               (unsigned long long)allocation.range.id);
    }
}

/* The device's memory that an address lies in; it is there, as the address has a shadow. */
static uint64_t describe_allocation(uint64_t address, hdsoft_text *text)
{
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        hdsoft_memory *memory = hdsoft__the.devices[i].memory;
        if (hdsoft__memory_is_device(memory, address))
            return hdsoft__describe_allocation(memory, address, text);
    }
    return 0;
}

static void report_copy(const hdsoft__operation *operation, const gaps *found, uint64_t bytes)
{
    char buffer[TEXT_BYTES];
    hdsoft_text text = {buffer, sizeof buffer, 0};
    hdsoft_text_append(&text,
                       "uninitialised copy: %llu of %llu bytes that a copy takes to the host were never written, the "
                       "first at 0x%llx, ",
                       (unsigned long long)found->bytes, (unsigned long long)bytes, (unsigned long long)found->first);
    describe_place(found->first, &text);
    hdsoft_text_append(&text, "\n    the copy was enqueued by ");
    hdsoft__site_describe(operation->enqueued, &text);
    uint64_t allocation = describe_allocation(found->first, &text);
    hdsoft__report report = {.kind = "uninitialised copy",
                             .distinct = (uint64_t)(uintptr_t)operation->enqueued ^ allocation,
                             .allocation = allocation,
                             .text = buffer};
    hdsoft__report_add(&report);
}

static void move_bits(const shadow *in, uint64_t from, const shadow *out, uint64_t to, uint64_t bytes)
{
    bool backwards = in == out && to > from;
    for (uint64_t done = 0; done < bytes;) {
        uint32_t part = bytes - done < 32 ? (uint32_t)(bytes - done) : 32;
        uint64_t at = backwards ? bytes - done - part : done;
        uint32_t bits = bits_at(in, from + at, part);
        if (bits == (uint32_t)((UINT64_C(1) << part) - 1) || !bits) {
            set_range(out, to + at, part, bits != 0);
        } else {
            for (uint32_t i = 0; i < part; i++)
                set_range(out, to + at + i, 1, bits >> i & 1);
        }
        done += part;
    }
}

void hdsoft__init_moved(const hdsoft__operation *operation, uint64_t from, uint64_t to, uint64_t bytes)
{
    const shadow *in = from ? shadow_of(from) : NULL, *out = to ? shadow_of(to) : NULL;
    if (in && (from - in->base > in->bytes || in->bytes - (from - in->base) < bytes))
        return;
    if (!in) {
        if (out)
            set_range(out, to, bytes, true);
    } else if (out) {
        if (next_bit(in, from, from + bytes, false) == from + bytes)
            set_range(out, to, bytes, true);
        else
            move_bits(in, from, out, to, bytes);
    } else {
        gaps found = look_for_gaps(in, from, from + bytes);
        if (found.bytes && !found.alike)
            report_copy(operation, &found, bytes);
    }
}

/* ---- kernels ---- */

/* The lanes' accesses as one, if they are side by side: *first, and how many bytes; 0: they are not. */
static uint64_t one_stretch(const hdsoft_access *access, uint64_t *first)
{
    const uint64_t *at = access->addresses;
    uint64_t wrong = 0, bytes = access->bytes;
    if (access->active != ~0u)
        return 0;
    for (unsigned lane = 0; lane < LANES; lane++)
        wrong |= (at[lane] - at[0]) ^ lane * bytes;
    *first = at[0];
    return wrong ? 0 : LANES * bytes;
}

static bool within(const shadow *in, uint64_t address, uint64_t bytes)
{
    return in && in->bytes - (address - in->base) >= bytes;
}

void hdsoft__init_access(const hdsoft_access *access)
{
    if (!(access->flags & HDSOFT_ACCESS_WRITE))
        return;
    uint64_t first, bytes = one_stretch(access, &first);
    if (bytes) {
        hdsoft__init_written(first, bytes);
        return;
    }
    for (uint32_t rest = access->active; rest; rest &= rest - 1)
        hdsoft__init_written(access->addresses[__builtin_ctz(rest)], access->bytes);
}

bool hdsoft__init_unwritten(void *operation, const hdsoft_access *access, uint32_t masks[32])
{
    (void)operation;
    uint64_t first, bytes = one_stretch(access, &first);
    const shadow *in = bytes ? shadow_of(first) : NULL;
    if (bytes && (!in || (within(in, first, bytes) && next_bit(in, first, first + bytes, false) == first + bytes)))
        return false;
    bool any = false;
    for (uint32_t rest = access->active; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint64_t address = access->addresses[lane];
        uint32_t all = (uint32_t)((UINT64_C(1) << access->bytes) - 1);
        if (!in || address - in->base >= in->bytes)
            in = shadow_of(address);
        masks[lane] = within(in, address, access->bytes) ? ~bits_at(in, address, access->bytes) & all : 0;
        any |= masks[lane] != 0;
    }
    return any;
}

void hdsoft__init_left(void *operation, const hdsoft_access *access, const uint32_t masks[32])
{
    (void)operation;
    for (uint32_t rest = access->active; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        const shadow *in = shadow_of(access->addresses[lane]);
        for (uint32_t bits = in ? masks[lane] : 0; bits; bits &= bits - 1)
            set_range(in, access->addresses[lane] + (uint32_t)__builtin_ctz(bits), 1, false);
    }
}

static void append_place(const hdsoft_place *place, hdsoft_text *text)
{
    if (place->file)
        hdsoft_text_append(text, " at %s:%u", place->file, place->line);
    hdsoft_text_append(text, " (PTX line %u)", place->ptx_line);
}

void hdsoft__init_used(void *context, const hdsoft_unwritten_use *use)
{
    const hdsoft__operation *operation = context;
    hdsoft_place load = {0}, place = {0};
    bool known = hdsoft__lines_find(operation->lines, use->origin, &load) &&
                 hdsoft__lines_find(operation->lines, use->instruction, &place);
    hdsoft__report report = {.kind = "uninitialised read", .kernel = operation->kernel, .source_file = load.file,
                             .source_line = load.file ? load.line : 0, .ptx_line = load.ptx_line};
    if (!hdsoft__report_is_new(&report))
        return;
    char buffer[TEXT_BYTES];
    hdsoft_text text = {buffer, sizeof buffer, 0};
    unsigned lane = (unsigned)__builtin_ctz(use->lanes);
    uint32_t block[3], thread[3];
    hdsoft_access access = {.warp = use->warp};
    hdsoft_access_thread(&access, lane, block, thread);
    hdsoft_text_append(&text, "uninitialised read: kernel '%s'", operation->kernel ? operation->kernel : "?");
    if (known && load.function && operation->kernel && strcmp(load.function, operation->kernel) != 0)
        hdsoft_text_append(&text, " in function '%s'", load.function);
    append_place(&load, &text);
    hdsoft_text_append(&text, ", block (%u,%u,%u) thread (%u,%u,%u): uses %u bytes at ", block[0], block[1], block[2],
                       thread[0], thread[1], thread[2], use->bytes);
    if (use->shared) {
        hdsoft_text_append(&text, "0x%llx of shared memory that no thread of the block has written",
                           (unsigned long long)use->address);
    } else {
        hdsoft_text_append(&text, "address 0x%llx that nobody has written: ", (unsigned long long)use->address);
        describe_place(use->address, &text);
    }
    if (use->instruction != use->origin && (place.line != load.line || !place.file)) {
        hdsoft_text_append(&text, "\n    the use is");
        append_place(&place, &text);
    }
    if (!use->shared)
        report.allocation = describe_allocation(use->address, &text);
    report.text = buffer;
    hdsoft__report_add(&report);
}
