/* SPDX-License-Identifier: MIT */
/*
 * Memory lane by lane: any space by its generic address, with every check, faults, and the range caches that make
 * handlers_memory.c quick. Memory that the host can reach is never cached: it is touched with atomic instructions.
 */
#include <string.h>

#include "soft/exec/warp.h"

static bool inside(uint64_t address, uint32_t size, uint64_t base, uint64_t end)
{
    return address >= base && address < end && end - address >= size;
}

static unsigned char *fault_here(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned lane,
                                 uint64_t address, uint32_t size, int write)
{
    char around[256];
    hdsoft_memory_explain(warp->run->memory, address, around, sizeof around);
    hdsoft_fault_raise(warp, instruction, 700, lane, address, "out of bounds %s of %u bytes at address 0x%llx: %s",
                       write ? "write" : "read", size, (unsigned long long)address, around);
    return NULL;
}

static unsigned char *locate_device(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned lane,
                                    uint64_t address, uint32_t size, int write, bool remember,
                                    bool *host_memory)
{
    hdsoft_range range;
    if (!hdsoft_memory_find(warp->run->memory, address, &range) || !inside(address, size, range.base, range.end))
        return fault_here(warp, instruction, lane, address, size, write);
    if (write && range.kind == HDSOFT_RANGE_CONSTANT) {
        hdsoft_fault_raise(warp, instruction, 700, lane, address, "write of %u bytes to constant memory at 0x%llx",
                           size, (unsigned long long)address);
        return NULL;
    }
    *host_memory = range.kind == HDSOFT_RANGE_HOST;
    if (!*host_memory && remember)
        warp->caches[instruction->target] = (hdsoft_cache){range.base, range.end, range.host};
    return range.host + (address - range.base);
}

/* remember: the instruction is a memory access, with a range cache of its own. */
static unsigned char *locate(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned lane, uint64_t address,
                             uint32_t size, uint32_t align, int write, bool remember, bool *host_memory)
{
    *host_memory = false;
    if (address % align) {
        hdsoft_fault_raise(warp, instruction, 716, lane, address, "misaligned %s of %u bytes at address 0x%llx",
                           write ? "write" : "read", size, (unsigned long long)address);
        return NULL;
    }
    uint64_t offset = address & ~HDSOFT_WINDOW_MASK;
    if (instruction->option[1] == HDSOFT_SPACE_GLOBAL && address - HDSOFT_WINDOW_SHARED < HDSOFT_WINDOW_CODE) {
        hdsoft_fault_raise(warp, instruction, 717, lane, address,
                           "%s of %u bytes of global memory at 0x%llx, which is %s memory", write ? "write" : "read",
                           size, (unsigned long long)address,
                           address < HDSOFT_WINDOW_LOCAL       ? "shared"
                           : address < HDSOFT_WINDOW_PARAMETER ? "local"
                                                               : "parameter or code");
        return NULL;
    }
    switch (address & HDSOFT_WINDOW_MASK) {
    case 0:
        return locate_device(warp, instruction, lane, address, size, write, remember, host_memory);
    case HDSOFT_WINDOW_SHARED:
        if (inside(offset, size, 0, warp->shared_bytes))
            return warp->shared + offset;
        hdsoft_fault_space(warp, instruction, lane, offset, size, warp->shared_bytes, "shared", write);
        return NULL;
    case HDSOFT_WINDOW_LOCAL: /* the caller steps by at most one cell */
        if (inside(offset, size, 0, warp->local_bytes))
            return warp->local + (offset >> 3) * HDSOFT_CELL + lane * 8 + (offset & 7);
        hdsoft_fault_space(warp, instruction, lane, offset, size, warp->local_bytes, "local", write);
        return NULL;
    case HDSOFT_WINDOW_PARAMETER:
        if (!write && inside(offset, size, 0, warp->parameter_bytes))
            return warp->run->parameters + offset;
        hdsoft_fault_space(warp, instruction, lane, offset, size, warp->parameter_bytes, "parameter", write);
        return NULL;
    default:
        return fault_here(warp, instruction, lane, address, size, write);
    }
}

unsigned char *hdsoft_locate(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned lane, uint64_t address,
                             uint32_t size, uint32_t align, int write, bool *host_memory)
{
    return locate(warp, instruction, lane, address, size, align, write, true, host_memory);
}

static uint64_t read_element(const unsigned char *at, uint32_t size, bool host_memory)
{
    uint64_t value = 0;
    if (host_memory) {
        switch (size) {
        case 1:
            return __atomic_load_n(at, __ATOMIC_ACQUIRE);
        case 2:
            return __atomic_load_n((const uint16_t *)(const void *)at, __ATOMIC_ACQUIRE);
        case 4:
            return __atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_ACQUIRE);
        default:
            return __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_ACQUIRE);
        }
    }
    memcpy(&value, at, size); /* little-endian, as everything about PTX */
    return value;
}

static void write_element(unsigned char *at, uint32_t size, uint64_t value, bool host_memory)
{
    if (!host_memory) {
        memcpy(at, &value, size);
        return;
    }
    switch (size) {
    case 1:
        __atomic_store_n(at, (uint8_t)value, __ATOMIC_RELEASE);
        return;
    case 2:
        __atomic_store_n((uint16_t *)(void *)at, (uint16_t)value, __ATOMIC_RELEASE);
        return;
    case 4:
        __atomic_store_n((uint32_t *)(void *)at, (uint32_t)value, __ATOMIC_RELEASE);
        return;
    default:
        __atomic_store_n((uint64_t *)(void *)at, value, __ATOMIC_RELEASE);
    }
}

/* Where element `e` of a vector at `at` lies: in local memory a vector goes on in the next cell. */
static unsigned char *element_at(unsigned char *at, uint64_t address, uint32_t size, uint32_t e)
{
    if ((address & HDSOFT_WINDOW_MASK) != HDSOFT_WINDOW_LOCAL)
        return at + (size_t)e * size;
    uint64_t first = address & 7, offset = first + (uint64_t)e * size;
    return at - first + (offset >> 3) * HDSOFT_CELL + (offset & 7);
}

bool hdsoft_load_lanes(hdsoft_warp *warp, const hdsoft_instruction *instruction, const uint64_t *addresses,
                       uint32_t size, uint32_t elements, uint64_t *data)
{
    for (uint32_t rest = warp->active; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        bool host_memory;
        unsigned char *at = hdsoft_locate(warp, instruction, lane, addresses[lane], size * elements, size * elements,
                                          HDSOFT_READ, &host_memory);
        if (!at)
            return false;
        for (uint32_t e = 0; e < elements; e++)
            data[lane * 4 + e] = read_element(element_at(at, addresses[lane], size, e), size, host_memory);
    }
    return true;
}

bool hdsoft_store_lanes(hdsoft_warp *warp, const hdsoft_instruction *instruction, const uint64_t *addresses,
                        uint32_t size, uint32_t elements, const uint64_t *data)
{
    for (uint32_t rest = warp->active; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        bool host_memory;
        unsigned char *at = hdsoft_locate(warp, instruction, lane, addresses[lane], size * elements, size * elements,
                                          HDSOFT_WRITE, &host_memory);
        if (!at)
            return false;
        for (uint32_t e = 0; e < elements; e++)
            write_element(element_at(at, addresses[lane], size, e), size, data[lane * 4 + e], host_memory);
    }
    return true;
}

bool hdsoft_copy_in(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned lane, uint64_t address,
                    void *bytes, uint32_t size)
{
    unsigned char *to = bytes;
    for (uint32_t i = 0; i < size; i++) {
        bool host_memory;
        unsigned char *at = locate(warp, instruction, lane, address + i, 1, 1, HDSOFT_READ, false, &host_memory);
        if (!at)
            return false;
        to[i] = (unsigned char)read_element(at, 1, host_memory);
    }
    return true;
}

bool hdsoft_copy_out(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned lane, uint64_t address,
                     const void *bytes, uint32_t size)
{
    const unsigned char *from = bytes;
    for (uint32_t i = 0; i < size; i++) {
        bool host_memory;
        unsigned char *at = locate(warp, instruction, lane, address + i, 1, 1, HDSOFT_WRITE, false, &host_memory);
        if (!at)
            return false;
        write_element(at, 1, from[i], host_memory);
    }
    return true;
}
