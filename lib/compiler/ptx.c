/* SPDX-License-Identifier: MIT */
#include "compiler/ptx.h"

#include <stdbool.h>
#include <string.h>

/* A line of LLVM's PTX, from `at`; each directive that matters here stands on a line of its own. */
static const char *line_end(const char *at, const char *end)
{
    const char *feed = memchr(at, '\n', (size_t)(end - at));
    return feed != NULL ? feed : end;
}

static bool begins(const char *at, const char *end, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(end - at) >= length && memcmp(at, word, length) == 0;
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

static bool is_entry(const char *at, const char *end)
{
    return begins(at, end, ".visible .entry") || begins(at, end, ".weak .entry") || begins(at, end, ".entry");
}

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

static bool supplied_by_the_driver(const char *name, size_t length)
{
    static const char *const names[] = {"vprintf", "__assertfail", "malloc", "free"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return true;
    return false;
}

/* ".extern .func  (.param .b32 func_retval0) __nv_expf", the name sometimes on the next line. */
void hdrt__cc_ptx_externals(const char *ptx, size_t size, void (*sink)(const char *name, size_t length, void *context),
                            void *context)
{
    static const char word[] = ".extern .func";
    const char *end = ptx + size;
    for (const char *at = ptx, *feed; at < end; at = feed < end ? feed + 1 : end) {
        feed = line_end(at, end);
        if (!begins(at, feed, word))
            continue;
        const char *name = skip_space(at + sizeof word - 1, end);
        if (name < end && *name == '(') {
            const char *close = memchr(name, ')', (size_t)(end - name));
            if (close == NULL)
                return;
            name = skip_space(close + 1, end);
        }
        const char *stop = name;
        while (stop < end && is_name(*stop))
            stop++;
        if (stop > name && !supplied_by_the_driver(name, (size_t)(stop - name)))
            sink(name, (size_t)(stop - name), context);
    }
}

/* A kernel's directives stand between the line with .entry and the one that is its opening brace. */
void hdrt__cc_ptx_limit_registers(const char *ptx, size_t size, uint32_t count, hdrt__cc_buffer *out)
{
    const char *end = ptx + size;
    bool in_head = false, limited = false;
    for (const char *at = ptx, *next; at < end; at = next) {
        const char *feed = line_end(at, end);
        next = feed < end ? feed + 1 : end;
        if (is_entry(at, feed)) {
            in_head = true;
            limited = false;
        } else if (in_head && begins(at, feed, ".maxnreg")) {
            limited = true;
        } else if (in_head && begins(at, feed, "{")) {
            if (!limited)
                hdrt__cc_buffer_format(out, ".maxnreg %u\n", count);
            in_head = false;
        }
        hdrt__cc_buffer_append(out, at, (size_t)(next - at));
    }
}

void hdrt__cc_ptx_mend_debug_names(const char *ptx, size_t size, hdrt__cc_buffer *out)
{
    static const char word[] = ".b64 ";
    const char *end = ptx + size;
    for (const char *at = ptx, *next; at < end; at = next) {
        const char *feed = line_end(at, end);
        next = feed < end ? feed + 1 : end;
        const char *name = at + sizeof word - 1;
        bool named = begins(at, feed, word) && name < feed && is_name(*name) && !(*name >= '0' && *name <= '9');
        if (!named) {
            hdrt__cc_buffer_append(out, at, (size_t)(next - at));
            continue;
        }
        hdrt__cc_buffer_append(out, at, (size_t)(name - at));
        for (at = name; at < feed && (is_name(*at) || *at == '.'); at++)
            hdrt__cc_buffer_append(out, *at == '.' ? "_$_" : at, *at == '.' ? 3 : 1);
        hdrt__cc_buffer_append(out, at, (size_t)(next - at));
    }
}

/* ".visible .const .align 8 .u64 __hdrt_name_3 = generic(_ZN2ns3varE);" or, for a function, "= _Z1kPi;" */
static bool take_name(const char *at, const char *feed,
                      void (*sink)(size_t number, const char *name, size_t length, void *context), void *context)
{
    const char *prefix = *at == '.' ? memmem(at, (size_t)(feed - at), " " HDRT__CC_NAME_PREFIX,
                                             strlen(" " HDRT__CC_NAME_PREFIX)) : NULL;
    if (prefix == NULL)
        return false;
    size_t number = 0;
    const char *name = prefix + strlen(" " HDRT__CC_NAME_PREFIX);
    for (; name < feed && *name >= '0' && *name <= '9'; name++)
        number = number * 10 + (size_t)(*name - '0');
    if (!begins(name, feed, " = "))
        return false;
    name += strlen(" = ");
    if (begins(name, feed, "generic("))
        name += strlen("generic(");
    const char *stop = name;
    while (stop < feed && is_name(*stop))
        stop++;
    if (stop > name)
        sink(number, name, (size_t)(stop - name), context);
    return true;
}

void hdrt__cc_ptx_take_names(const char *ptx, size_t size,
                             void (*sink)(size_t number, const char *name, size_t length, void *context),
                             void *context, hdrt__cc_buffer *out)
{
    const char *end = ptx + size;
    bool in_declaration = false;
    for (const char *at = ptx, *next; at < end; at = next) {
        const char *feed = line_end(at, end);
        next = feed < end ? feed + 1 : end;
        /* A definition has its parenthesis on the line of its name, a declaration on the next. */
        if (is_entry(at, feed) && memchr(at, '(', (size_t)(feed - at)) == NULL)
            in_declaration = true;
        if (!in_declaration && !take_name(at, feed, sink, context))
            hdrt__cc_buffer_append(out, at, (size_t)(next - at));
        if (in_declaration && begins(at, feed, ";"))
            in_declaration = false;
    }
}
