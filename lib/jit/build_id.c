/* SPDX-License-Identifier: MIT */
#include "jit/build_id.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "jit/cursor.h"

#define BEGINNING 4096u /* of a file: its header, its program headers, and mostly its notes */
#define PROGRAM_HEADERS 64u
#define NOTES_LIMIT 4096u

static bool read_at(int file, uint64_t offset, void *bytes, size_t size)
{
    return offset <= INT64_MAX && pread(file, bytes, size, (off_t)offset) == (ssize_t)size;
}

/* The build identifier among notes. */
static bool find_note(const unsigned char *bytes, size_t size, char *out)
{
    hdrt__cursor cursor = {bytes, size, false};
    while (!cursor.failed && cursor.left >= 12) {
        size_t got;
        uint32_t name_size = hdrt__cursor_u32(&cursor), value_size = hdrt__cursor_u32(&cursor);
        uint32_t type = hdrt__cursor_u32(&cursor);
        const unsigned char *name = hdrt__cursor_bytes(&cursor, ((uint64_t)name_size + 3) & ~UINT64_C(3), &got);
        const unsigned char *value = hdrt__cursor_bytes(&cursor, ((uint64_t)value_size + 3) & ~UINT64_C(3), &got);
        if (cursor.failed || type != NT_GNU_BUILD_ID || name_size != 4 || memcmp(name, "GNU", 4) != 0)
            continue;
        if (value_size < 8 || value_size > HDRT__BUILD_ID_LIMIT)
            return false;
        sodium_bin2hex(out, 2 * HDRT__BUILD_ID_LIMIT + 1, value, value_size);
        return true;
    }
    return false;
}

static bool look_at_header(int file, const unsigned char *beginning, const ElfW(Phdr) *header, char *out)
{
    unsigned char notes[NOTES_LIMIT];
    if (header->p_type != PT_NOTE || header->p_filesz > sizeof(notes))
        return false;
    if (header->p_offset <= BEGINNING && header->p_filesz <= BEGINNING - header->p_offset)
        return find_note(beginning + header->p_offset, header->p_filesz, out);
    return read_at(file, header->p_offset, notes, header->p_filesz) && find_note(notes, header->p_filesz, out);
}

bool hdrt__build_id(const char *path, char out[2 * HDRT__BUILD_ID_LIMIT + 1])
{
    unsigned char beginning[BEGINNING];
    ElfW(Ehdr) elf;
    bool found = false;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0)
        return false;
    if (read_at(file, 0, beginning, sizeof(beginning))) {
        memcpy(&elf, beginning, sizeof(elf));
        bool ours = memcmp(elf.e_ident, ELFMAG, SELFMAG) == 0 && elf.e_phentsize == sizeof(ElfW(Phdr));
        for (unsigned i = 0; ours && i < elf.e_phnum && i < PROGRAM_HEADERS && !found; i++) {
            ElfW(Phdr) header;
            uint64_t at = elf.e_phoff + i * sizeof(header);
            if (at > sizeof(beginning) - sizeof(header))
                break; /* linkers put them right behind the header */
            memcpy(&header, beginning + at, sizeof(header));
            found = look_at_header(file, beginning, &header, out);
        }
    }
    close(file);
    return found;
}
