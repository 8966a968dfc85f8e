/* SPDX-License-Identifier: MIT */
#include "options.h"

#define KERNELS (COMMAND_COMPILE | COMMAND_RUN | COMMAND_PIPE | COMMAND_CACHE_EXPLAIN)
#define LAUNCHES (COMMAND_RUN | COMMAND_PIPE)
#define CACHES                                                                                                         \
    (COMMAND_CACHE | COMMAND_CACHE_STATS | COMMAND_CACHE_LIST | COMMAND_CACHE_PATH | COMMAND_CACHE_VERIFY |            \
     COMMAND_CACHE_TRIM | COMMAND_CACHE_CLEAR | COMMAND_CACHE_EXPLAIN)
#define LINKS (KERNELS | COMMAND_LINK)
#define MESSAGES (KERNELS | COMMAND_LINK | COMMAND_PRECOMPILE)
#define RUNTIMES (COMMAND_LINK | COMMAND_PRECOMPILE | COMMAND_NONE | KERNELS | COMMAND_INFO | CACHES)
#define ALL (RUNTIMES | COMMAND_ENV | COMMAND_INSPECT)

const option_entry option_table[] = {
    {"output", 'o', OPTION_OUTPUT, "OUT", COMMAND_COMPILE | COMMAND_LINK, NULL, "write the code here; - is standard output"},
    {"ptx", 0, OPTION_PTX, NULL, COMMAND_COMPILE | COMMAND_CACHE_EXPLAIN | COMMAND_LINK, NULL, "make PTX, whatever OUT's ending"},
    {"cubin", 0, OPTION_CUBIN, NULL, COMMAND_COMPILE | COMMAND_CACHE_EXPLAIN, NULL, "make a cubin (NVRTC only), whatever OUT's ending"},
    {"lto-ir", 0, OPTION_LTO_IR, NULL, COMMAND_COMPILE | COMMAND_CACHE_EXPLAIN, NULL,
     "make LTO-IR (NVRTC only) to be linked"},
    {"bundle", 0, OPTION_BUNDLE, NULL, COMMAND_COMPILE, NULL, "make a bundle, whatever OUT's ending"},
    {"list-kernels", 0, OPTION_LIST_KERNELS, NULL, COMMAND_COMPILE, NULL, "print the kernels; then OUT may be left out"},
    {"print-cmd", 0, OPTION_PRINT_COMMAND, NULL, COMMAND_COMPILE | COMMAND_LINK, NULL,
     "print what the compiler is called with"},
    {"M", 0, OPTION_DEPFILE_ONLY, NULL, COMMAND_COMPILE, NULL, "print a rule for make instead of writing code"},
    {"MD", 0, OPTION_DEPFILE_ALSO, NULL, COMMAND_COMPILE, NULL, "write a rule for make, too, to OUT with the ending .d"},
    {"MF", 0, OPTION_DEPFILE, "FILE", COMMAND_COMPILE, NULL, "write the rule to FILE"},
    {"MT", 0, OPTION_DEPFILE_TARGET, "TARGET", COMMAND_COMPILE, NULL, "the rule's target, as it is; more than once"},
    {"MQ", 0, OPTION_DEPFILE_TARGET_QUOTED, "TARGET", COMMAND_COMPILE, NULL, "the rule's target, quoted for make"},
    {"MP", 0, OPTION_PHONY, NULL, COMMAND_COMPILE, NULL, "a rule without prerequisites for each header, too"},
    {"into", 0, OPTION_INTO, "DIR", COMMAND_PRECOMPILE, NULL, "the cache folder to compile into"},
    {"jobs", 'j', OPTION_JOBS, "N", COMMAND_COMPILE | COMMAND_PRECOMPILE, NULL, "most compilers at once"},

    {"grid", 0, OPTION_GRID, "X[,Y[,Z]]", LAUNCHES, NULL, "blocks; pipe: ceil(n / block) unless given"},
    {"block", 0, OPTION_BLOCK, "X[,Y[,Z]]", LAUNCHES, NULL, "threads in a block; pipe: 256 unless given"},
    {"shared", 0, OPTION_SHARED, "BYTES", LAUNCHES, NULL, "dynamic shared memory of a block"},
    {"set", 0, OPTION_SET, "NAME=FILE", LAUNCHES, NULL, "fill a global or constant variable from a file"},
    {"check", 0, OPTION_CHECK, "LIST", LAUNCHES, NULL, "memory, race and init: check the kernel (soft driver only)"},
    {"repeat", 0, OPTION_REPEAT, "N", COMMAND_RUN, NULL, "run N times and print the median kernel time"},
    {"batch", 0, OPTION_BATCH, "SIZE", COMMAND_PIPE, NULL, "bytes of a batch (default 4M)"},
    {"depth", 0, OPTION_DEPTH, "N", COMMAND_PIPE, NULL, "slots for batches under way (default 3)"},
    {"stats", 0, OPTION_STATS, NULL, COMMAND_PIPE, NULL, "print bytes, times and a drawn timeline"},
    {"measure", 0, OPTION_MEASURE, "SIZE", COMMAND_PIPE, NULL,
     "measure the device part alone: SIZE bytes of zeros, nothing read or written"},
    {"json", 0, OPTION_JSON, NULL,
     COMMAND_INFO | COMMAND_INSPECT | COMMAND_CACHE_STATS | COMMAND_CACHE_LIST | COMMAND_CACHE_VERIFY |
         COMMAND_CACHE_EXPLAIN,
     NULL, "print JSON"},
    {"zero", 0, OPTION_ZERO, NULL, COMMAND_CACHE_STATS, NULL, "set the counters to zero, after printing them"},
    {"repair", 0, OPTION_REPAIR, NULL, COMMAND_CACHE_VERIFY, NULL, "remove what is bad"},
    {"max-size", 0, OPTION_MAX_SIZE, "SIZE", COMMAND_CACHE_TRIM, NULL, "keep at most SIZE (default: the cache's limit)"},
    {"max-age", 0, OPTION_MAX_AGE, "TIME", COMMAND_CACHE_TRIM, NULL, "remove what was not used for 30d, 12h, 90m, 10s"},
    {"for-device", 0, OPTION_FOR_DEVICE, NULL, COMMAND_CACHE_EXPLAIN, NULL,
     "look as run, pipe and programs do: for the device"},

    {"compiler", 0, OPTION_COMPILER, "WHICH", KERNELS, NULL, "auto, nvrtc or clang"},
    {"arch", 0, OPTION_ARCH, "sm_XX", KERNELS | COMMAND_LINK | COMMAND_PRECOMPILE, NULL,
     "target architecture (default: the device's); compile and precompile: several with commas"},
    {"name", 'x', OPTION_NAME, "EXPRESSION", KERNELS, NULL, "instantiate what a name expression says: 'ns::scale<float>'"},
    {"diagnostics", 0, OPTION_DIAGNOSTICS, "FORM", MESSAGES, NULL, "text, or json: a line of JSON for each message"},
    {NULL, 'I', OPTION_PASS, "DIR", KERNELS, "-I", "look for headers in DIR too"},
    {NULL, 'D', OPTION_PASS, "NAME[=TEXT]", KERNELS, "-D", "define a macro"},
    {NULL, 'U', OPTION_PASS, "NAME", KERNELS, "-U", "undefine a macro"},
    {"include", 0, OPTION_PASS, "FILE", KERNELS, "--pre-include=", "include FILE before the source"},
    {"std", 0, OPTION_PASS, "STD", KERNELS, "-std=", "language: c++14, c++17, c++20"},
    {"lineinfo", 0, OPTION_PASS, NULL, LINKS, "-lineinfo", "keep source lines in the code"},
    {NULL, 'G', OPTION_PASS, NULL, LINKS, "-G", "debug code, not optimised"},
    {NULL, 'w', OPTION_PASS, NULL, KERNELS, "-w", "no warnings"},
    {"use_fast_math", 0, OPTION_PASS, NULL, KERNELS, "--use_fast_math", "fast, less exact mathematics"},
    {"fmad", 0, OPTION_PASS, "BOOL", LINKS, "--fmad=", "contract a * b + c to one operation (default true)"},
    {"ftz", 0, OPTION_PASS, "BOOL", LINKS, "--ftz=", "flush denormal floats to zero (default false)"},
    {"prec-div", 0, OPTION_PASS, "BOOL", LINKS, "--prec-div=", "exact float division (default true)"},
    {"prec-sqrt", 0, OPTION_PASS, "BOOL", LINKS, "--prec-sqrt=", "exact float square root (default true)"},
    {"maxrregcount", 0, OPTION_PASS, "N", LINKS, "--maxrregcount=", "most registers of a thread"},
    {"restrict", 0, OPTION_PASS, NULL, KERNELS, "--restrict", "pointers of a kernel do not overlap"},
    {"Xptxas", 0, OPTION_PASS, "OPTION", LINKS, "-Xptxas=", "option of NVRTC's assembler"},
    {"compiler-option", 0, OPTION_PASS, "OPTION", KERNELS, "", "any other option that the compiler takes"},
    {"time-limit", 0, OPTION_TIME_LIMIT, "SECONDS", MESSAGES, NULL, "longest compile (default 60)"},
    {"memory-limit", 0, OPTION_MEMORY_LIMIT, "SIZE", MESSAGES, NULL, "most memory of the compiler (default 8G)"},
    {"no-cache", 0, OPTION_NO_CACHE, NULL, LINKS, NULL, "do not use the kernel cache"},

    {"driver", 0, OPTION_DRIVER, "WHICH", ALL, NULL, "auto, cuda or soft"},
    {"device", 0, OPTION_DEVICE, "N", ALL, NULL, "which device, from 0"},
    {"cache-dir", 0, OPTION_CACHE_DIR, "DIR", RUNTIMES, NULL, "folder of the kernel cache; off: none"},
    {"nvrtc", 0, OPTION_NVRTC, "PATH", RUNTIMES, NULL, "NVRTC library, or the folder it is in"},
    {"clang", 0, OPTION_CLANG, "PATH", RUNTIMES, NULL, "clang program"},
    {"libexec", 0, OPTION_LIBEXEC, "DIR", RUNTIMES, NULL, "folder of libhdrt's companions"},
    {"log", 0, OPTION_LOG, "LEVEL", ALL, NULL, "log to standard error: error, warn, info or debug"},
    {"help", 'h', OPTION_HELP, NULL, ALL, NULL, "print this help"},
    {"version", 'V', OPTION_VERSION, NULL, ALL, NULL, "print the version"},
    {NULL, 0, 0, NULL, 0, NULL, NULL},
};
